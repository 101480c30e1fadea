// The exhaustive driver: every workload with the power cut at every step, and with every kind of fault at every operation.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/env/sim_env.h"
#include "src/testing/driver.h"
#include "src/testing/fault_plan.h"
#include "src/testing/history.h"
#include "src/testing/recovery_checker.h"
#include "src/testing/workload_runner.h"

namespace ashlar::testing {
namespace {

using env::CrashPolicy;
using env::SimFault;

constexpr size_t kPositionsPerTask = 32;
constexpr size_t kPoliciesAfterFault = 6;

std::vector<TracedOperation> Trace(const Workload& workload, uint64_t seed, uint64_t* trace_hash) {
  std::vector<TracedOperation> trace;
  env::SimDisk disk(seed);
  RecordTrace(&disk, &trace);
  History history(workload.schema);
  WorkloadRunner runner(&disk, &workload, &history);
  runner.Run().IgnoreError();  // the driver's other tasks report what is wrong with it
  *trace_hash = disk.trace_hash();
  return trace;
}

RecoveryOptions RecoveryOptionsOf(const CrashLabOptions& options) {
  RecoveryOptions recovery;
  recovery.policies_max = options.policies_max;
  recovery.recovery_share = options.recovery_share;
  return recovery;
}

// One run; before each of its steps every crash is tried.
absl::Status ExploreCrashes(LabRun* run, const Workload& workload, uint64_t seed) {
  env::SimDisk disk(seed);
  History history(workload.schema);
  KnownStates known;
  RecoveryChecker checker(RecoveryOptionsOf(run->options()), workload.options, &history, &run->states(),
                          &run->counters(), &known);
  absl::Status finding;
  disk.SetObserver([&](const env::SimOperation&) {
    if (finding.ok() && !run->Done()) finding = checker.Explore(disk);
    run->Progress();
  });
  WorkloadRunner runner(&disk, &workload, &history);
  absl::Status status = runner.Run();
  if (finding.ok() && status.ok()) status = runner.CompareNow();
  if (finding.ok() && status.ok() && !run->Done()) status = checker.Explore(disk);
  ++run->counters().runs;
  return finding.ok() ? status : finding;
}

// One run with one fault, then a crash.
absl::Status ExploreFault(LabRun* run, const Workload& workload, uint64_t seed, const SimFault& fault,
                          KnownStates* known) {
  env::SimDisk disk(seed);
  disk.AddFault(fault);
  History history(workload.schema);
  WorkloadRunner runner(&disk, &workload, &history);
  if (fault.effect == SimFault::Effect::kFlippedBit) runner.ExcuseDamage();
  absl::Status status = runner.Run();
  if (status.ok()) status = runner.CompareNow();
  runner.Die();
  run->counters().faults += disk.counters().faults;
  ++run->counters().runs;
  RecoveryOptions recovery = RecoveryOptionsOf(run->options());
  recovery.recovery_share = 0;
  RecoveryChecker checker(recovery, workload.options, &history, &run->states(), &run->counters(), known);
  disk.ClearFaults();
  for (const CrashPolicy& policy : disk.EnumerateCrashes(kPoliciesAfterFault))
    if (status.ok()) status = checker.ExploreOne(disk, policy);
  if (status.ok()) status = checker.ExploreOne(disk, CrashPolicy::Random(fault.nth));
  return status.ok() ? status : Annotate(status, absl::StrCat("fault: ", FaultText(fault)));
}

}  // namespace

void RunExhaustive(LabRun* run, const std::vector<Workload>& workloads) {
  std::vector<Task> tasks;
  const uint64_t lab_seed = run->options().seed;
  for (const Workload& workload : workloads) {
    const uint64_t seed = SeedOf(lab_seed, workload.name);
    const auto report = [run, &workload, lab_seed](const absl::Status& status) {
      if (!status.ok()) run->AddFinding(Driver::kExhaustive, workload.name, lab_seed, status);
    };
    tasks.push_back([=, &workload] { report(ExploreCrashes(run, workload, seed)); });
  }
  for (const Workload& workload : workloads) {
    const uint64_t seed = SeedOf(lab_seed, workload.name);
    const auto report = [run, &workload, lab_seed](const absl::Status& status) {
      if (!status.ok()) run->AddFinding(Driver::kExhaustive, workload.name, lab_seed, status);
    };
    uint64_t trace_hash = 0;
    uint64_t replay_hash = 0;
    auto trace = std::make_shared<const std::vector<TracedOperation>>(Trace(workload, seed, &trace_hash));
    for (size_t first = 0; first < trace->size(); first += kPositionsPerTask) {
      tasks.push_back([=, &workload] {
        KnownStates known;
        for (size_t i = first; i < std::min(trace->size(), first + kPositionsPerTask); ++i)
          for (const SimFault& fault : FaultsFor((*trace)[i]))
            if (!run->Done()) report(ExploreFault(run, workload, seed, fault, &known));
      });
    }
    Trace(workload, seed, &replay_hash);
    if (replay_hash != trace_hash) report(Internal("two runs of one seed did different things"));
  }
  RunTasks(run, tasks);
}

}  // namespace ashlar::testing
