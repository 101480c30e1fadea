// The random driver: long seeded runs over random schemas and options. Crashes are tried all along; the run goes on
// with one of them, with what a fault left, or with a disk that was full for a while.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/env/sim_env.h"
#include "src/testing/driver.h"
#include "src/testing/history.h"
#include "src/testing/recovery_checker.h"
#include "src/testing/workload_runner.h"

namespace ashlar::testing {
namespace {

using env::CrashPolicy;
using env::SimFault;
using env::SimOp;

constexpr uint64_t kDefaultRuns = 100;
constexpr size_t kPoliciesInPassing = 8;
constexpr uint64_t kRandomPolicies = 6;  // at each of the run's own crashes

// One run.
class RandomRun {
 public:
  RandomRun(LabRun* run, uint64_t seed) : run_(*run), prng_(seed), disk_(seed), workload_(MakeWorkload()) {}
  absl::Status Run();

 private:
  Workload MakeWorkload();
  Options RandomOptions();
  Operation RandomOperation(const Options& now);
  Operation RandomWrite(const Options& now);
  BatchPart RandomPart();
  void PlanTrouble(WorkloadRunner* runner);
  absl::Status Work(WorkloadRunner* runner);
  absl::Status CrashAndRecover(WorkloadRunner* runner, RecoveryChecker* checker);

  LabRun& run_;
  Prng prng_;
  env::SimDisk disk_;
  const Workload workload_;
  uint64_t next_new_key_ = 1000;
  uint64_t fields_added_ = 0;
  std::string trouble_;
};

Options RandomRun::RandomOptions() {
  constexpr Durability kModes[] = {Durability::kSync, Durability::kOs, Durability::kInterval, Durability::kOff};
  Options options;
  options.create_if_missing = true;
  options.durability = kModes[prng_.Below(std::size(kModes))];
  options.interval_ms = 1 + static_cast<uint32_t>(prng_.Below(5));
  options.open_mode = prng_.OneIn(2) ? OpenMode::kMapped : OpenMode::kArray;
  options.merge_factor = prng_.OneIn(3) ? 0 : 2 + static_cast<uint32_t>(prng_.Below(3));
  options.overlay_bytes_max = uint64_t{64 * 1024} << prng_.Below(3);
  options.journal_file_bytes_min = uint64_t{4096} << prng_.Below(3);
  return options;
}

Workload RandomRun::MakeWorkload() {
  Workload workload;
  workload.name = "random";
  workload.schema = WorkloadSchema(!prng_.OneIn(5));
  const AnalyzerOptions english = {StopWords::kEnglish33, "english", Marks::kRemove};
  const bool stems = prng_.OneIn(2);
  const bool positions = !prng_.OneIn(3);
  for (Field& field : workload.schema.fields) {
    if (field.type != FieldType::kText) continue;
    field.positions = positions;
    if (stems) field.analyzer = english;
  }
  workload.schema.fields.back().column = prng_.OneIn(2);
  workload.options = RandomOptions();
  return workload;
}

BatchPart RandomRun::RandomPart() {
  BatchPart part;
  part.key = prng_.OneIn(3) ? prng_.Below(40) : prng_.Below(8);
  if (prng_.OneIn(6)) part.words = prng_.OneIn(4) ? prng_.Below(400) : prng_.Below(40);
  const uint64_t kind = prng_.Below(20);
  if (kind < 3) {
    part.kind = BatchPart::Kind::kDelete;
  } else if (kind < 5) {
    part.kind = BatchPart::Kind::kDeleteId;
  } else if (kind == 5) {
    part.kind = BatchPart::Kind::kInsert;
  } else if (kind < 8) {
    part.kind = BatchPart::Kind::kPutIf;
  } else if (kind == 8 && prng_.OneIn(4)) {
    part.kind = prng_.OneIn(2) ? BatchPart::Kind::kPutIfStale : BatchPart::Kind::kBadDocument;
  }
  if (workload_.schema.key.empty() && part.kind != BatchPart::Kind::kBadDocument &&
      part.kind != BatchPart::Kind::kDeleteId)
    part.kind = kind < 5 ? BatchPart::Kind::kDeleteId : BatchPart::Kind::kPut;
  return part;
}

Operation RandomRun::RandomWrite(const Options& now) {
  Operation operation;
  if (now.durability == Durability::kOff && prng_.OneIn(4)) {
    operation.write.keys_are_new = true;
    for (uint64_t count = 1 + prng_.Below(5); count > 0; --count)
      operation.parts.push_back({BatchPart::Kind::kPut, next_new_key_++, prng_.Below(20)});
    return operation;
  }
  const uint64_t count = prng_.OneIn(20)   ? 0
                         : prng_.OneIn(30) ? prng_.Below(60)
                         : prng_.OneIn(3)  ? 1 + prng_.Below(6)
                                           : 1;
  for (uint64_t i = 0; i < count; ++i) operation.parts.push_back(RandomPart());
  if (prng_.OneIn(4)) {
    const size_t size = prng_.OneIn(4) ? prng_.Below(kWatermarkBytesMax + 1) : 3;
    operation.write.watermark = std::string(size, static_cast<char>(prng_.Below(256)));
  }
  constexpr Durability kModes[] = {Durability::kSync, Durability::kOs, Durability::kInterval};
  if (prng_.OneIn(6)) operation.write.durability = kModes[prng_.Below(std::size(kModes))];
  return operation;
}

Operation RandomRun::RandomOperation(const Options& now) {
  const uint64_t kind = prng_.Below(100);
  if (kind < 62) {
    Operation write = RandomWrite(now);
    constexpr env::WorkStep kSteps[] = {env::WorkStep::kFlushWritten, env::WorkStep::kFlushCommitted,
                                        env::WorkStep::kMergeWritten, env::WorkStep::kMergeCommitted};
    if (!write.write.keys_are_new && prng_.OneIn(8)) write.at = kSteps[prng_.Below(std::size(kSteps))];
    return write;
  }
  Operation operation;
  if (kind < 67) {
    operation.kind = Operation::Kind::kSync;
  } else if (kind < 77) {
    operation.kind = Operation::Kind::kFlush;
  } else if (kind < 81) {
    operation.kind = prng_.OneIn(3) ? Operation::Kind::kPurge : Operation::Kind::kMerge;
    operation.number = 1 + prng_.Below(3);
  } else if (kind < 87) {
    operation.kind = Operation::Kind::kRunPending;
  } else if (kind < 89) {
    operation.kind = Operation::Kind::kCheckpoint;
  } else if (kind < 91) {
    operation.kind = Operation::Kind::kWait;
    operation.number = prng_.Below(8);
  } else if (kind == 91 && fields_added_ < 3) {
    operation.kind = Operation::Kind::kAddField;
    operation.name = absl::StrCat("extra", fields_added_++);
  } else {
    operation.kind = prng_.OneIn(2) ? Operation::Kind::kReopen : Operation::Kind::kKill;
    operation.options = prng_.OneIn(3) ? RandomOptions() : now;
  }
  return operation;
}

// Before a stretch of work: the power goes at some step, an operation fails, or the disk is full for a while.
void RandomRun::PlanTrouble(WorkloadRunner* runner) {
  trouble_.clear();
  runner->SetRoomLimited(false);
  disk_.SetCapacity(UINT64_MAX);
  if (prng_.OneIn(2)) {
    const uint64_t step = disk_.steps() + prng_.Below(300);
    disk_.CutPowerAtStep(step);
    absl::StrAppend(&trouble_, " power at step ", step);
  }
  if (prng_.OneIn(6)) {
    const uint64_t room = prng_.Below(1 << 15);
    runner->SetRoomLimited(true);
    disk_.SetCapacity(disk_.used_bytes() + room, prng_.OneIn(2) ? ENOSPC : EDQUOT);
    absl::StrAppend(&trouble_, " room for ", room, " bytes");
  }
  if (!prng_.OneIn(2)) return;
  constexpr SimOp kOps[] = {SimOp::kWrite,  SimOp::kSync,  SimOp::kCreate,        SimOp::kRename,
                            SimOp::kRemove, SimOp::kOpen,  SimOp::kSyncDirectory, SimOp::kRead,
                            SimOp::kMap,    SimOp::kWrite, SimOp::kStat};
  constexpr int kErrors[] = {EIO, EIO, ENOSPC, EDQUOT, ENOMEM, EMFILE};
  SimFault fault;
  fault.op = kOps[prng_.Below(std::size(kOps))];
  fault.nth = 1 + prng_.Below(60);
  fault.times = prng_.OneIn(5) ? 2 : 1;
  fault.error = kErrors[prng_.Below(std::size(kErrors))];
  if (prng_.OneIn(4)) fault.effect = SimFault::Effect::kFailsAfterwards;
  if (prng_.OneIn(6)) fault.effect = SimFault::Effect::kInterrupted;
  fault.sync_loss = prng_.OneIn(2) ? CrashPolicy::DropAll() : CrashPolicy::Random(prng_.Next());
  absl::StrAppend(&trouble_, " ", env::SimOpName(*fault.op), " ", fault.nth, " error ", fault.error, " effect ",
                  static_cast<int>(fault.effect));
  disk_.AddFault(std::move(fault));
}

absl::Status RandomRun::Work(WorkloadRunner* runner) {
  for (uint64_t left = 5 + prng_.Below(50); left > 0 && !disk_.power_is_cut() && !run_.Done(); --left) {
    if (absl::Status status = runner->Step(RandomOperation(runner->options())); !status.ok())
      return Annotate(status, absl::StrCat("operation ", runner->operations_done()));
  }
  return runner->CompareNow();
}

absl::Status RandomRun::CrashAndRecover(WorkloadRunner* runner, RecoveryChecker* checker) {
  disk_.ClearFaults();
  std::vector<CrashPolicy> policies = disk_.EnumerateCrashes(run_.options().policies_max);
  for (uint64_t i = 0; i < kRandomPolicies; ++i) policies.push_back(CrashPolicy::Random(prng_.Next()));
  for (const CrashPolicy& policy : policies)
    if (!run_.Done()) ASHLAR_RETURN_IF_ERROR(checker->ExploreOne(disk_, policy));
  if (prng_.OneIn(3) && !disk_.power_is_cut()) {
    runner->Die();
    return absl::OkStatus();
  }
  runner->LosePower();
  disk_.SetCapacity(UINT64_MAX);
  disk_.Crash(policies[prng_.Below(policies.size())]);
  return absl::OkStatus();
}

absl::Status RandomRun::Run() {
  History history(workload_.schema);
  WorkloadRunner runner(&disk_, &workload_, &history);
  RecoveryOptions recovery;
  recovery.policies_max = kPoliciesInPassing;
  recovery.recovery_share = run_.options().recovery_share * uint64_t{4};
  Options options = workload_.options;
  KnownStates known;
  RecoveryChecker checker(recovery, options, &history, &run_.states(), &run_.counters(), &known);
  absl::Status finding;
  for (uint64_t crashes = 2 + prng_.Below(5); crashes > 0 && !run_.Done(); --crashes) {
    PlanTrouble(&runner);
    const uint64_t share = 1 + prng_.Below(8);
    disk_.SetObserver([&](const env::SimOperation& operation) {
      if (finding.ok() && operation.step % share == 0 && !run_.Done()) finding = checker.Explore(disk_);
      run_.Progress();
    });
    absl::Status status = Work(&runner);
    disk_.SetObserver(nullptr);
    if (finding.ok()) finding = std::move(status);
    if (finding.ok()) finding = CrashAndRecover(&runner, &checker);
    if (!finding.ok()) return Annotate(finding, absl::StrCat("with", trouble_.empty() ? " no fault" : trouble_));
  }
  run_.counters().faults += disk_.counters().faults;
  ++run_.counters().runs;
  return absl::OkStatus();
}

}  // namespace

void RunRandom(LabRun* run) {
  const CrashLabOptions& options = run->options();
  const uint64_t runs = options.random_runs_max != 0 ? options.random_runs_max
                        : options.states_max != 0    ? UINT64_MAX
                                                     : kDefaultRuns;
  uint64_t next = 0;
  RunTasks(run, [&, run]() -> Task {
    if (next == runs) return Task();
    const uint64_t seed = options.seed + next++;
    return [run, seed] {
      const absl::Status status = RandomRun(run, seed).Run();
      if (!status.ok()) run->AddFinding(Driver::kRandom, "random", seed, status);
    };
  });
}

}  // namespace ashlar::testing
