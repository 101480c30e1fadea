// The laboratory itself: it repeats, it understands its language, it notices what is switched off.
#include <algorithm>

#include "src/base/site.h"
#include "src/env/sim_env.h"
#include "src/testing/history.h"
#include "src/testing/recovery_checker.h"
#include "src/testing/workload.h"
#include "src/testing/workload_runner.h"
#include "tests/support/status_matchers.h"
#include "tests/testing/lab_support.h"

namespace ashlar::testing {
namespace {

uint64_t TraceOf(const Workload& workload, uint64_t seed) {
  env::SimDisk disk(seed);
  History history(workload.schema);
  WorkloadRunner runner(&disk, &workload, &history);
  EXPECT_OK(runner.Run());
  EXPECT_OK(runner.CompareNow());
  return disk.trace_hash();
}

// Every workload does without a fault what it says, and one seed gives one trace.
TEST(LabTest, RunsRepeat) {
  ASSERT_GE(BuiltInWorkloads().size(), 50u);
  for (const Workload& workload : BuiltInWorkloads()) {
    SCOPED_TRACE(workload.name);
    const uint64_t trace = TraceOf(workload, 1);
    EXPECT_EQ(TraceOf(workload, 1), trace);
    EXPECT_NE(TraceOf(workload, 2), trace);
  }
}

TEST(LabTest, ReportsRepeat) {
  CrashLabOptions options;
  options.drivers = {Driver::kExhaustive, Driver::kRandom};
  options.workloads = "kills_os";
  options.random_runs_max = 2;
  options.policies_max = 8;
  const LabReport one = RunLab(options);
  const LabReport two = RunLab(options);
  EXPECT_EQ(one.states, two.states);
  EXPECT_EQ(one.crashes, two.crashes);
  EXPECT_EQ(one.faults, two.faults);
  EXPECT_EQ(one.recoveries, two.recoveries);
  EXPECT_GT(one.states, 300u);
}

TEST(LabTest, Language) {
  ASSERT_OK_AND_ASSIGN(const auto workloads,
                       ParseWorkloads("workload a durability=os mode=array  # a comment\n"
                                      "repeat 2\nput 1..3 words=4\nend\n"
                                      "batch put 1; delete 2 watermark=7 durability=sync\nempty\n"
                                      "merge 2\nkill durability=off\nload put 8..9\nreopen\nfault write 2 done\n",
                                      "text"));
  ASSERT_EQ(workloads.size(), 1u);
  const Workload& workload = workloads[0];
  EXPECT_EQ(workload.options.durability, Durability::kOs);
  EXPECT_EQ(workload.options.open_mode, OpenMode::kArray);
  ASSERT_EQ(workload.operations.size(), 13u);
  EXPECT_EQ(workload.operations[5].parts[0].key, 3u);
  EXPECT_EQ(workload.operations[5].parts[0].words, 4u);
  EXPECT_EQ(workload.operations[6].parts.size(), 2u);
  EXPECT_EQ(workload.operations[6].write.watermark, "7");
  EXPECT_EQ(workload.operations[6].write.durability, Durability::kSync);
  EXPECT_TRUE(workload.operations[7].parts.empty());
  EXPECT_EQ(workload.operations[8].number, 2u);
  EXPECT_EQ(workload.operations[9].options->durability, Durability::kOff);
  EXPECT_TRUE(workload.operations[10].write.keys_are_new);
  EXPECT_EQ(workload.operations[11].options->durability, Durability::kOff);
  EXPECT_EQ(workload.operations[12].fault.op, env::SimOp::kWrite);
  EXPECT_EQ(workload.operations[12].fault.times, 2u);
}

TEST(LabTest, LanguageErrorsNameTheLine) {
  for (const char* const text :
       {"put 1\n", "workload\n", "workload a\nfly\n", "workload a\nput x\n", "workload a\nput 3..1\n",
        "workload a\nrepeat 0\nend\n", "workload a\nrepeat 2\nput 1\n", "workload a\nend\n", "workload a what=1\n",
        "workload a\nfault fly 1\n", "workload a\nfault write\n", "workload a\nfault write 0\n",
        "workload a\nfault sync 1 fly\n", "workload a\nput 1 watermark=x\n", "workload a\nbatch fly 1\n", "workload a\nwait\n"}) {
    const auto parsed = ParseWorkloads(text, "text");
    EXPECT_CODE(parsed, kInvalidArgument) << text;
    EXPECT_NE(std::string(parsed.status().message()).find("text:"), std::string::npos) << parsed.status();
  }
}

// A history accepts the states that its promises allow, and no other.
TEST(LabTest, HistoryKnowsItsPromises) {
  History history(WorkloadSchema(true));
  uint64_t version = 0;
  for (uint64_t key = 0; key < 3; ++key) {
    const WriteBatch batch = MakeBatch({{BatchPart::Kind::kPut, key, 0}}, history.oracle(), &version);
    ASSERT_OK(history.Begin(batch, std::nullopt));
    ASSERT_OK(history.Acknowledge(key + 1));
    if (key == 0) history.SetDurable();
  }
  size_t index = 0;
  const Schema schema = WorkloadSchema(true);
  const DocumentList all = history.state(3)->documents;
  const DocumentList two(all.begin(), all.begin() + 2);
  EXPECT_NE(history.Match(all, schema, std::nullopt, history.durable(), &index), nullptr);
  EXPECT_EQ(index, 3u);
  EXPECT_NE(history.Match(two, schema, std::nullopt, history.durable(), &index), nullptr);
  EXPECT_EQ(index, 2u);
  EXPECT_EQ(history.Match({}, schema, std::nullopt, history.durable(), &index), nullptr);  // lost what was durable
  EXPECT_EQ(history.Match({all[0], all[2]}, schema, std::nullopt, 0, &index), nullptr);    // no prefix
  EXPECT_EQ(history.Match(all, schema, "7", history.durable(), &index), nullptr);          // another watermark
  DocumentList changed = all;
  changed[1].second ^= 1;
  EXPECT_EQ(history.Match(changed, schema, std::nullopt, 0, &index), nullptr);
  history.ContinueFrom(2, 2, history.state(2));
  EXPECT_EQ(history.next_sequence_min(), 4u);  // that of the lost batch stays taken
}

// Some sites of each kind; the whole table takes a mutation run (docs/testing.md).
TEST(LabTest, MutationsAreFound) {
  CrashLabOptions options;
  options.random_runs_max = 3;
  const auto results = RunMutations(
      options, {"write.sync", "journal.new_file_sync", "segment.sync", "file_catalog.directory_sync", "open.sequence_jump"});
  ASSERT_OK(results);
  for (const MutationResult& result : *results)
    EXPECT_TRUE(result.found) << result.site << " was switched off and nothing noticed";
}

// Sites that one workload was written for.
TEST(LabTest, MutationsAreFoundByTheirWorkload) {
  for (const auto& [site, workload] : {std::pair("merge.number_beyond", "numbers_beyond_a_merge_sync"),
                                       std::pair("open.secures_void", "lost_void_sync")}) {
    CrashLabOptions options;
    options.drivers = {Driver::kExhaustive};
    options.workloads = workload;
    const auto results = RunMutations(options, {site});
    ASSERT_OK(results);
    EXPECT_TRUE((*results)[0].found) << site << " was switched off and " << workload << " did not notice";
    RunLab(options);
  }
}

// Runs that once found something. What they do has changed since with every step that was added to a flush, so which site they
// would notice today is for a mutation run to say (docs/testing.md).
TEST(LabTest, WhatRandomRunsHaveFoundStaysFixed) {
  for (const uint64_t seed : {2078, 202}) {
    CrashLabOptions options;
    options.drivers = {Driver::kRandom};
    options.random_runs_max = 1;
    options.seed = seed;
    RunLab(options);
  }
}

// A flush between the writing of a merge and its commit fails, for lack of room.
class FailedFlushBesideMerge : public env::WorkObserver {
 public:
  FailedFlushBesideMerge(env::SimDisk* disk, std::function<void()> then) : disk_(disk), then_(std::move(then)) {}
  void SetStore(Store* store) { store_ = store; }
  void Reached(env::WorkStep step) override {
    if (step != env::WorkStep::kMergeWritten || store_ == nullptr) return;
    EXPECT_OK(store_->Put(WorkloadDocument(WorkloadSchema(true), 7, 7, 5)));
    env::SimFault fault;
    fault.op = env::SimOp::kWrite;
    fault.path_contains = ".seg";
    fault.error = ENOSPC;
    disk_->AddFault(fault);
    EXPECT_CODE(store_->Flush(), kResourceExhausted);
    then_();
  }

 private:
  env::SimDisk* const disk_;
  const std::function<void()> then_;
  Store* store_ = nullptr;
};

// What a commit does after a flush that failed while it wrote. The commit is that of a merge, which takes a number beyond that
// of the file, whose removal nothing else makes durable.
struct AfterFailedFlush {
  int strays = 0;            // stores with a file that nobody names, among those that power loss leaves
  int commits_too_soon = 0;  // while the removal could still be lost
};
AfterFailedFlush CommitAfterFailedFlush() {
  AfterFailedFlush seen;
  const Schema schema = WorkloadSchema(true);
  for (uint64_t seed = 1; seed < 9; ++seed) {
    env::SimDisk disk(seed);
    bool removal_lasts = false;
    const auto explore = [&](const env::SimOperation& operation) {
      if (operation.op == env::SimOp::kSyncDirectory) removal_lasts = true;
      if (operation.op == env::SimOp::kRename && !std::exchange(removal_lasts, true)) ++seen.commits_too_soon;
      for (const env::CrashPolicy& policy : disk.EnumerateCrashes(48)) {
        const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policy);
        const env::Env env = after->NewProcess();
        const auto again = OpenOn(env, kLabDirectory, Options(), nullptr);
        EXPECT_OK(again);
        seen.strays += CheckNoStrays(env, kLabDirectory).ok() ? 0 : 1;
      }
    };
    FailedFlushBesideMerge beside(&disk, [&] { disk.SetObserver(explore); });
    env::Env env = disk.NewProcess();
    env.observer = &beside;
    Options options;
    options.create_if_missing = true;
    options.durability = Durability::kOff;
    options.merge_factor = 0;
    const auto store = OpenOn(env, kLabDirectory, options, &schema);
    EXPECT_OK(store);
    for (uint64_t key = 0; key < 2; ++key) {
      EXPECT_OK((*store)->Put(WorkloadDocument(schema, key, key, 5)));
      EXPECT_OK((*store)->Flush());
    }
    beside.SetStore(store->get());
    EXPECT_OK((*store)->Merge());
    disk.SetObserver(nullptr);
    beside.SetStore(nullptr);
  }
  return seen;
}

TEST(LabTest, AFileThatCouldNotBeWrittenDoesNotComeBack) {
  const AfterFailedFlush seen = CommitAfterFailedFlush();
  EXPECT_EQ(seen.strays, 0);
  EXPECT_EQ(seen.commits_too_soon, 0);
  DisableSite(Site::kUnpublishedRemoval);
  EXPECT_GT(CommitAfterFailedFlush().commits_too_soon, 0) << "unpublished.removal was switched off and nothing noticed";
  DisableSite(Site::kNone);
}

TEST(LabTest, NoMutationNoFinding) {
  CrashLabOptions options;
  options.drivers = {Driver::kExhaustive, Driver::kDamage};
  options.workloads = "watermarks_sync";
  options.damage_share = 64;
  const LabReport report = RunLab(options);
  EXPECT_GT(report.damages, 1'000u);
}

}  // namespace
}  // namespace ashlar::testing
