#include "ashlar/testing/crash_lab.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "src/env/env.h"
#include "src/testing/driver.h"

namespace ashlar::testing {
namespace {

constexpr uint64_t kProgressNs = 500'000'000;

uint64_t NowNs() {
  static env::Clock* const clock = env::PosixEnv().clock;
  return clock->MonotonicNs();
}

// The text of workloads, or names of built-in ones.
absl::StatusOr<std::vector<Workload>> FindWorkloads(const std::string& wanted) {
  if (wanted.empty()) return BuiltInWorkloads();
  std::vector<Workload> found;
  for (const absl::string_view name : absl::StrSplit(wanted, absl::ByAnyChar(", \n"), absl::SkipEmpty())) {
    const std::vector<Workload>& known = BuiltInWorkloads();
    const auto is_it = [name](const Workload& workload) { return workload.name == FromAbsl(name); };
    const auto it = std::find_if(known.begin(), known.end(), is_it);
    if (it == known.end()) return ParseWorkloads(wanted, "workloads");
    found.push_back(*it);
  }
  return found;
}

}  // namespace

std::string_view DriverName(Driver driver) {
  switch (driver) {
    case Driver::kExhaustive:
      return "exhaustive";
    case Driver::kRandom:
      return "random";
    case Driver::kDamage:
      return "damage";
  }
  return "unknown";
}

std::vector<std::string> BuiltInWorkloadNames() {
  std::vector<std::string> names;
  for (const Workload& workload : BuiltInWorkloads()) names.push_back(workload.name);
  return names;
}

LabRun::LabRun(const CrashLabOptions& options) : options_(options), started_ns_(NowNs()) {
  next_progress_ns_ = started_ns_ + kProgressNs;
}

void LabRun::AddFinding(Driver driver, std::string_view workload, uint64_t seed, const absl::Status& status) {
  LabFinding finding;
  finding.driver = DriverName(driver);
  finding.workload = workload;
  finding.seed = seed;
  finding.message = std::string(status.message());
  finding.replay =
      absl::StrCat("ashlar crashlab --drivers ", finding.driver, " --seed ", seed,
                   driver == Driver::kRandom ? " --runs 1" : absl::StrCat(" --workload ", finding.workload));
  AddFinding(std::move(finding));
}

void LabRun::AddFinding(LabFinding finding) {
  ++finding_count_;
  MutexLock lock(&mutex_);
  findings_.push_back(std::move(finding));
}

bool LabRun::Done() const {
  return finding_count_ >= options_.findings_max || (options_.states_max != 0 && states_.size() >= options_.states_max);
}

LabReport LabRun::Report() const {
  LabReport report;
  report.states = states_.size();
  report.crashes = counters_.crashes;
  report.faults = counters_.faults;
  report.recoveries = counters_.recoveries;
  report.recovery_crashes = counters_.recovery_crashes;
  report.damages = counters_.damages;
  report.runs = counters_.runs;
  report.seconds = static_cast<double>(NowNs() - started_ns_) / 1e9;
  MutexLock lock(&mutex_);
  report.findings = findings_;
  return report;
}

void LabRun::Progress() {
  if (!options_.progress) return;
  uint64_t due_ns = next_progress_ns_;
  const uint64_t now_ns = NowNs();
  if (now_ns < due_ns || !next_progress_ns_.compare_exchange_strong(due_ns, now_ns + kProgressNs)) return;
  LabReport report = Report();
  report.findings.clear();
  options_.progress(report);
}

void RunTasks(LabRun* run, const std::function<Task()>& next) {
  Mutex mutex;
  const auto work = [&] {
    while (!run->Done()) {
      Task task;
      {
        MutexLock lock(&mutex);
        task = next();
      }
      if (!task) return;
      task();
      run->Progress();
    }
  };
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < run->options().threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

void RunTasks(LabRun* run, const std::vector<Task>& tasks) {
  size_t index = 0;
  RunTasks(run, [&]() -> Task { return index < tasks.size() ? tasks[index++] : Task(); });
}

uint64_t SeedOf(uint64_t seed, std::string_view name) { return HashBytes(name) ^ (seed * 0x9E3779B97F4A7C15ull); }

// Every recovery takes and gives back the same large arrays. Kept, and not mapped anew each time, they halve its cost.
static void KeepFreedMemory() {
  ::mallopt(M_MMAP_THRESHOLD, 256 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

absl::StatusOr<LabReport> RunCrashLab(const CrashLabOptions& options) {
  KeepFreedMemory();
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<Workload> workloads, FindWorkloads(options.workloads));
  LabRun run(options);
  for (const Driver driver : options.drivers) {
    if (run.Done()) break;
    if (driver == Driver::kExhaustive) RunExhaustive(&run, workloads);
    if (driver == Driver::kDamage) RunDamage(&run, workloads);
    if (driver == Driver::kRandom) RunRandom(&run);
  }
  return run.Report();
}

}  // namespace ashlar::testing
