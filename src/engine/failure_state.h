// FailureState: whether a store can be written to, why not, since when, and what helps.
//
//   healthy --no room--> no space --a write, flush or merge succeeds--> healthy
//   healthy, no space --a sync fails, or a commit's outcome is unknown--> failed sync --the store is reopened--> healthy
//   any --Close--> closed
//
// A damaged segment is not a state of the writer: it is seen in the view (live_segment.h) and shown when nothing here is worse.
#ifndef ASHLAR_SRC_ENGINE_FAILURE_STATE_H_
#define ASHLAR_SRC_ENGINE_FAILURE_STATE_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "ashlar/options.h"
#include "src/base/mutex.h"

namespace ashlar::engine {

// How a program leaves a state; empty for kHealthy.
std::string_view RemedyOf(StoreState state);

// Threads: any.
class FailureState {
 public:
  explicit FailureState(int64_t now_ms) : since_ms_(now_ms) {}

  // A write, flush or merge failed. `outcome_unknown`: by a sync, or in a way that leaves open what is durable.
  void Failed(const absl::Status& status, bool outcome_unknown, int64_t now_ms);
  // A write, flush or merge reached the disk: there is room.
  void Succeeded(int64_t now_ms);
  void Close(int64_t now_ms);

  StoreState state() const;
  // FailedPrecondition with cause, time and remedy in kFailedSync; OK otherwise.
  absl::Status CheckWritable() const;
  // Fills in the state and last failure members.
  void Report(Stats* stats) const;

 private:
  void Enter(StoreState state, const absl::Status& cause, int64_t now_ms) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  StoreState state_ ABSL_GUARDED_BY(mutex_) = StoreState::kHealthy;
  std::string cause_ ABSL_GUARDED_BY(mutex_);
  int64_t since_ms_ ABSL_GUARDED_BY(mutex_);
  std::string last_failure_ ABSL_GUARDED_BY(mutex_);
  int64_t last_failure_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_FAILURE_STATE_H_
