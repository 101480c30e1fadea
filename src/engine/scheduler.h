// WorkScheduler: when the work beside the writers (flushes, merges) runs, and when it has to wait or to end. With a
// thread of its own, or, in cooperative mode, without: then whoever commits, or calls RunPending, does the work and
// asks here whether it may.
#ifndef ASHLAR_SRC_ENGINE_SCHEDULER_H_
#define ASHLAR_SRC_ENGINE_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "src/base/mutex.h"
#include "src/env/thread.h"

namespace ashlar::engine {

// Threads: any. Its mutex is a leaf.
class WorkScheduler {
 public:
  WorkScheduler() = default;
  ~WorkScheduler() { Stop(); }
  WorkScheduler(const WorkScheduler&) = delete;
  WorkScheduler& operator=(const WorkScheduler&) = delete;

  // Starts the thread, which calls `work` each time that it was woken, and when as many nanoseconds are over as `work`
  // returned (0: no such wish). ResourceExhausted: there can be no thread.
  absl::Status Start(std::function<uint64_t()> work);
  void Wake();
  // Whether there was a wake; whoever asks takes care of it.
  bool TakeWake();
  // Ends the thread, after the work that it was woken for, in which long merges end early. Idempotent.
  void Stop();
  bool stopping() const;

  // Merges that nobody asked for stand still between two blocks until they may go on.
  void PauseMerges();
  void ResumeMerges();
  bool merges_are_paused() const { return paused_.load(); }

  // Around a merge that somebody asked for and before which the others give way.
  void BeginAskedMerge();
  void EndAskedMerge();
  bool merge_is_asked_for() const;
  // Waits until woken, or something above changes, or so many nanoseconds are over.
  void WaitForChange(uint64_t ns_max);

 private:
  void Run(const std::function<uint64_t()>& work);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> paused_{false};
  int asked_merges_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<env::Thread> thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_SCHEDULER_H_
