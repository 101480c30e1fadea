// Explores an application of somebody else's: the exhaustive driver with its workload and its check.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ashlar/testing/crash_lab.h"
#include "ashlar/testing/simulated_disk.h"
#include "src/base/status.h"
#include "src/env/sim_env.h"
#include "src/testing/driver.h"
#include "src/testing/fault_plan.h"

namespace ashlar::testing {
namespace {

constexpr size_t kPositionsPerTask = 32;
constexpr size_t kPoliciesAfterFault = 4;

class ApplicationRun {
 public:
  ApplicationRun(LabRun* run, const LabApplication* application)
      : run_(*run), application_(*application), seed_(SeedOf(run->options().seed, application->name)) {}

  void ExploreCrashes();
  void ExploreFaults();

 private:
  // One run of the workload on a disk of its own.
  struct Attempt {
    explicit Attempt(uint64_t seed) {
      auto inner = std::make_unique<env::SimDisk>(seed);
      sim = inner.get();
      disk = std::make_unique<SimulatedDisk>(std::move(inner));
    }
    env::SimDisk* sim = nullptr;
    std::unique_ptr<SimulatedDisk> disk;
    LabProgress progress;
    // (state, acknowledged) that were looked at.
    absl::flat_hash_set<uint64_t> seen{};
  };

  void Work(Attempt* attempt) {
    application_.workload(attempt->disk.get(), &attempt->progress);
    ++run_.counters().runs;
  }
  absl::Status CheckCrashes(Attempt* attempt, size_t policies_max);
  absl::Status WithFault(const env::SimFault& fault);
  void Report(const absl::Status& status);

  LabRun& run_;
  const LabApplication& application_;
  const uint64_t seed_;
};

absl::Status ApplicationRun::CheckCrashes(Attempt* attempt, size_t policies_max) {
  for (const env::CrashPolicy& policy : attempt->sim->EnumerateCrashes(policies_max)) {
    if (run_.Done()) break;
    std::unique_ptr<env::SimDisk> copy = attempt->sim->CrashedCopy(policy);
    const uint64_t hash = copy->DurableHash();
    ++run_.counters().crashes;
    run_.states().Insert(hash);
    const uint64_t acknowledged = attempt->progress.acknowledged();
    if (!attempt->seen.insert(hash ^ (acknowledged * 0x9E3779B97F4A7C15ull)).second) continue;
    SimulatedDisk after(std::move(copy));
    ++run_.counters().recoveries;
    const absl::Status status = application_.check(&after, acknowledged);
    if (!status.ok())
      return Annotate(status, absl::StrCat("power cut at step ", attempt->sim->steps(), " with ", acknowledged,
                                           " acknowledged, ", env::CrashPolicyText(policy)));
  }
  return absl::OkStatus();
}

void ApplicationRun::Report(const absl::Status& status) {
  if (status.ok()) return;
  LabFinding finding;
  finding.driver = "application";
  finding.workload = application_.name;
  finding.seed = run_.options().seed;
  finding.message = std::string(status.message());
  finding.replay = absl::StrCat("the same application with seed ", finding.seed);
  run_.AddFinding(std::move(finding));
}

void ApplicationRun::ExploreCrashes() {
  Attempt attempt(seed_);
  absl::Status finding;
  attempt.sim->SetObserver([&](const env::SimOperation&) {
    if (finding.ok()) finding = CheckCrashes(&attempt, run_.options().policies_max);
    run_.Progress();
  });
  Work(&attempt);
  if (finding.ok()) finding = CheckCrashes(&attempt, run_.options().policies_max);
  Report(finding);
}

absl::Status ApplicationRun::WithFault(const env::SimFault& fault) {
  Attempt attempt(seed_);
  attempt.sim->AddFault(fault);
  Work(&attempt);
  run_.counters().faults += attempt.sim->counters().faults;
  attempt.sim->ClearFaults();
  const absl::Status status = CheckCrashes(&attempt, kPoliciesAfterFault);
  return status.ok() ? status : Annotate(status, absl::StrCat("fault: ", FaultText(fault)));
}

void ApplicationRun::ExploreFaults() {
  std::vector<TracedOperation> trace;
  {
    Attempt attempt(seed_);
    RecordTrace(attempt.sim, &trace);
    Work(&attempt);
  }
  std::vector<Task> tasks;
  for (size_t first = 0; first < trace.size(); first += kPositionsPerTask) {
    tasks.push_back([this, &trace, first] {
      for (size_t i = first; i < std::min(trace.size(), first + kPositionsPerTask); ++i)
        for (const env::SimFault& fault : FaultsFor(trace[i]))
          if (fault.effect != env::SimFault::Effect::kFlippedBit && !run_.Done()) Report(WithFault(fault));
    });
  }
  RunTasks(&run_, tasks);
}

}  // namespace

LabReport ExploreApplication(const CrashLabOptions& options, const LabApplication& application) {
  LabRun run(options);
  ApplicationRun application_run(&run, &application);
  application_run.ExploreCrashes();
  if (application.faults && !run.Done()) application_run.ExploreFaults();
  return run.Report();
}

}  // namespace ashlar::testing
