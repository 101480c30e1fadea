#include "src/engine/scheduler.h"

#include <utility>

#include "src/base/status.h"

namespace ashlar::engine {

absl::Status WorkScheduler::Start(std::function<uint64_t()> work) {
  MutexLock lock(&mutex_);
  ASHLAR_ASSIGN_OR_RETURN(thread_, env::Thread::Start("ashlar-work", [this, work = std::move(work)] { Run(work); }));
  return absl::OkStatus();
}

void WorkScheduler::Run(const std::function<uint64_t()>& work) {
  uint64_t wait_ns = 0;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (wait_ns > 0 && !woken_ && !stopping_) {
        changed_.WaitFor(&mutex_, wait_ns);
      } else {
        while (!woken_ && !stopping_) changed_.Wait(&mutex_);
      }
      if (stopping_ && !woken_) return;
      woken_ = false;
    }
    wait_ns = work();
  }
}

bool WorkScheduler::TakeWake() {
  MutexLock lock(&mutex_);
  return std::exchange(woken_, false);
}

bool WorkScheduler::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void WorkScheduler::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  changed_.SignalAll();
}

void WorkScheduler::Stop() {
  std::unique_ptr<env::Thread> thread;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
}  // waits for the thread

void WorkScheduler::PauseMerges() { paused_.store(true); }

void WorkScheduler::ResumeMerges() {
  MutexLock lock(&mutex_);
  paused_.store(false);
  woken_ = true;
  changed_.SignalAll();
}

void WorkScheduler::BeginAskedMerge() {
  MutexLock lock(&mutex_);
  ++asked_merges_;
  changed_.SignalAll();
}

void WorkScheduler::EndAskedMerge() {
  MutexLock lock(&mutex_);
  --asked_merges_;
  woken_ = true;
  changed_.SignalAll();
}

bool WorkScheduler::merge_is_asked_for() const {
  MutexLock lock(&mutex_);
  return asked_merges_ > 0;
}

void WorkScheduler::WaitForChange(uint64_t ns_max) {
  MutexLock lock(&mutex_);
  if (woken_ || stopping_ || asked_merges_ > 0) return;
  changed_.WaitFor(&mutex_, ns_max);
}

}  // namespace ashlar::engine
