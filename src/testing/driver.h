// What the drivers of the laboratory share: the report under construction, and a list of tasks for several threads.
#ifndef ASHLAR_SRC_TESTING_DRIVER_H_
#define ASHLAR_SRC_TESTING_DRIVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "ashlar/testing/crash_lab.h"
#include "src/base/mutex.h"
#include "src/testing/state_set.h"
#include "src/testing/workload.h"

namespace ashlar::testing {

// Threads: any.
class LabRun {
 public:
  explicit LabRun(const CrashLabOptions& options);

  const CrashLabOptions& options() const { return options_; }
  StateSet& states() { return states_; }
  LabCounters& counters() { return counters_; }

  void AddFinding(Driver driver, std::string_view workload, uint64_t seed, const absl::Status& status);
  void AddFinding(LabFinding finding);
  // Enough states or findings.
  bool Done() const;
  LabReport Report() const;
  void Progress();

 private:
  const CrashLabOptions options_;
  const uint64_t started_ns_;
  StateSet states_;
  LabCounters counters_;
  std::atomic<uint64_t> finding_count_{0};
  std::atomic<uint64_t> next_progress_ns_{0};
  mutable Mutex mutex_;
  std::vector<LabFinding> findings_ ABSL_GUARDED_BY(mutex_);
};

// One task after another, `threads` at once, until `next` has none left or the run is done.
using Task = std::function<void()>;
void RunTasks(LabRun* run, const std::function<Task()>& next);
void RunTasks(LabRun* run, const std::vector<Task>& tasks);

void RunExhaustive(LabRun* run, const std::vector<Workload>& workloads);
void RunRandom(LabRun* run);
void RunDamage(LabRun* run, const std::vector<Workload>& workloads);

// The seed of a workload's disks.
uint64_t SeedOf(uint64_t seed, std::string_view name);

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_DRIVER_H_
