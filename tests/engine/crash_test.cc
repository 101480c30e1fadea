// Power loss at every step of a few workloads over the simulated disk, with everything un-synced kept, dropped, or a random
// part of it: after each, the store opens, holds a prefix of the acknowledged batches that is as long as the durability mode
// promises, answers like the oracle, passes its check, leaves no stray file, and takes a write.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

Schema CrashSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

Document Doc(int key, int version) {
  Document document;
  document.Add("id", "k" + std::to_string(key))
      .Add("title", "stone " + std::to_string(version))
      .Add("body", std::string("wall of stone and lime ") + (version % 2 == 0 ? "even" : "odd"));
  return document;
}

// What a workload did until the power went.
struct Outcome {
  explicit Outcome(const Schema& schema) : oracle(schema) {}
  Oracle oracle;
  std::vector<Oracle> states;   // after 0, 1, 2 ... batches, the last one possibly in flight
  size_t acknowledged = 0;      // batches
  size_t durable = 0;           // batches that were durable by promise
  bool created = false;         // Open succeeded once
};

class Workload {
 public:
  Workload(env::Env env, const Options& options, Outcome* run) : env_(env), options_(options), run_(run) {
    options_.create_if_missing = true;
  }
  bool Open() {
    const Schema schema = CrashSchema();
    absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(env_, "/store", options_, &schema);
    if (!store.ok()) return false;
    store_ = *std::move(store);
    if (!run_->created) run_->states.push_back(run_->oracle);
    run_->created = true;
    return true;
  }
  bool Write(const WriteBatch& batch, WriteOptions options = {}) {
    Oracle next = run_->oracle;
    EXPECT_OK(next.Apply(batch));
    run_->states.push_back(next);
    if (!store_->Write(batch, options).ok()) return false;
    run_->oracle = next;
    ++run_->acknowledged;
    if (options_.durability == Durability::kSync || options.durability == Durability::kSync)
      run_->durable = run_->acknowledged;
    return true;
  }
  bool Durable(const absl::Status& status) {
    if (status.ok()) run_->durable = run_->acknowledged;
    return status.ok();
  }
  bool Put(int key, int version) {
    WriteBatch batch;
    batch.Put(Doc(key, version));
    return Write(batch);
  }
  bool Flush() { return Durable(store_->Flush()); }
  bool Merge() { return Durable(store_->Merge()); }
  bool Sync() { return Durable(store_->Sync()); }
  bool Close() { return Durable(store_->Close()); }
  bool AddField() {
    const std::vector<Field> fields = {{"extra", FieldType::kText, true, true, false, {}}};
    if (!store_->AddFields(fields).ok()) return false;
    run_->durable = run_->acknowledged;
    return true;
  }

 private:
  env::Env env_;
  Options options_;
  Outcome* run_;
  std::unique_ptr<Store> store_;
};

using Script = std::function<void(Workload&)>;

// Each stops at the first failure, which is the power cut.
void PutsAndReplaces(Workload& w) {
  if (!w.Open()) return;
  for (int i = 0; i < 6; ++i)
    if (!w.Put(i % 4, i)) return;
  w.Close();
}

void FlushesDeletesAndMerges(Workload& w) {
  if (!w.Open()) return;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i)
      if (!w.Put(i + round, 10 * round + i)) return;
    if (!w.Flush()) return;
  }
  WriteBatch batch;
  batch.Delete("k1");
  batch.Put(Doc(2, 99));
  if (!w.Write(batch) || !w.Flush() || !w.Merge()) return;
  if (!w.Put(7, 7)) return;
  w.Close();
}

void ReopensAndContinues(Workload& w) {
  for (int round = 0; round < 3; ++round) {
    if (!w.Open() || !w.Put(round, round) || !w.Put(9, round)) return;
    if (round == 1 && !w.Flush()) return;
    if (!w.Close()) return;
  }
}

void AddsAField(Workload& w) {
  if (!w.Open() || !w.Put(1, 1) || !w.AddField() || !w.Put(2, 2) || !w.Flush() || !w.Put(1, 3)) return;
  w.Close();
}

void BigBatchesRotateTheJournal(Workload& w) {
  if (!w.Open()) return;
  for (int i = 0; i < 4; ++i) {
    WriteBatch batch;
    for (int k = 0; k < 900; ++k) batch.Put(Doc(k % 5, i * 1000 + k));
    if (!w.Write(batch)) return;
  }
  if (!w.Sync()) return;
  w.Close();
}

struct Named {
  const char* name;
  Script script;
  Durability durability;
};

const Named kWorkloads[] = {
    {"puts_sync", PutsAndReplaces, Durability::kSync},
    {"puts_os", PutsAndReplaces, Durability::kOs},
    {"merges_sync", FlushesDeletesAndMerges, Durability::kSync},
    {"merges_os", FlushesDeletesAndMerges, Durability::kOs},
    {"merges_off", FlushesDeletesAndMerges, Durability::kOff},
    {"reopens_sync", ReopensAndContinues, Durability::kSync},
    {"reopens_interval", ReopensAndContinues, Durability::kInterval},
    {"field_sync", AddsAField, Durability::kSync},
    {"rotate_sync", BigBatchesRotateTheJournal, Durability::kSync},
    {"rotate_os", BigBatchesRotateTheJournal, Durability::kOs},
};

class CrashTest : public ::testing::TestWithParam<Named> {};

INSTANTIATE_TEST_SUITE_P(Workloads, CrashTest, ::testing::ValuesIn(kWorkloads),
                         [](const auto& param) { return param.param.name; });

Options OptionsOf(const Named& named) {
  Options options;
  options.durability = named.durability;
  options.merge_factor = 0;
  return options;
}

// The number of batches that the store holds, or nullopt.
std::optional<size_t> PrefixOf(const Snapshot& snapshot, const Outcome& run) {
  std::map<DocumentId, Document> found;
  EXPECT_OK(snapshot.Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
    found[stored.id] = stored.document;
    return true;
  }));
  for (size_t n = run.states.size(); n-- > 0;) {
    const std::vector<DocumentId> ids = run.states[n].Ids();
    if (ids.size() != found.size()) continue;
    bool same = true;
    for (const DocumentId id : ids) same = same && found.contains(id) && found[id] == run.states[n].GetById(id)->document;
    if (same) return n;
  }
  return std::nullopt;
}

void CheckRecovery(env::SimDisk* disk, const Named& named, const Outcome& run) {
  const env::Env env = disk->NewProcess();
  Options options = OptionsOf(named);
  absl::StatusOr<std::unique_ptr<Store>> opened = OpenOn(env, "/store", options, nullptr);
  if (!opened.ok() && !run.created) {
    // Power went while the store was made: nothing was promised, and making it again works.
    ASSERT_TRUE(absl::IsNotFound(opened.status())) << opened.status();
    options.create_if_missing = true;
    const Schema schema = CrashSchema();
    opened = OpenOn(env, "/store", options, &schema);
  }
  ASSERT_OK(opened);
  Store& store = **opened;
  const Snapshot snapshot = store.TakeSnapshot();
  if (!run.created) {
    ASSERT_EQ(snapshot.document_count(), 0u);
  } else {
    const std::optional<size_t> prefix = PrefixOf(snapshot, run);
    ASSERT_TRUE(prefix.has_value()) << "the documents are no prefix of the batches";
    ASSERT_GE(*prefix, run.durable);
    RandomStore random(*prefix + 1);
    ExpectEqual(store, snapshot, run.states[*prefix], &random, 2);
  }
  ExpectCheckClean(store);
  // Numbers that may have been seen are not given again.
  const absl::StatusOr<Sequence> written = store.Put(Doc(1000, 1));
  ASSERT_OK(written);
  if (run.created) ASSERT_GE(*written, run.oracle.next_sequence());
  ASSERT_OK(store.Flush());
  ASSERT_OK(store.TakeSnapshot().Get("k1000"));
  ASSERT_OK(store.Close());
}

TEST_P(CrashTest, EveryStep) {
  const Named named = GetParam();
  uint64_t steps = 0;
  {
    env::SimDisk disk(1);
    Outcome run(CrashSchema());
    Workload workload(disk.NewProcess(), OptionsOf(named), &run);
    named.script(workload);
    ASSERT_TRUE(run.created);
    ASSERT_EQ(run.acknowledged + 1, run.states.size()) << "the workload must succeed while there is power";
    steps = disk.steps();
  }
  std::set<uint64_t> states;
  for (uint64_t step = 0; step <= steps; ++step) {
    env::SimDisk disk(step + 1);
    Outcome run(CrashSchema());
    {
      disk.CutPowerAtStep(step);
      Workload workload(disk.NewProcess(), OptionsOf(named), &run);
      named.script(workload);
    }
    std::vector<env::CrashPolicy> policies = {env::CrashPolicy::DropAll(), env::CrashPolicy::KeepAll()};
    for (uint64_t seed = 0; seed < 4; ++seed) policies.push_back(env::CrashPolicy::Random(seed));
    for (size_t i = 0; i < policies.size(); ++i) {
      SCOPED_TRACE("power cut at step " + std::to_string(step) + ", policy " + std::to_string(i));
      const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policies[i]);
      if (!states.insert(after->DurableHash() ^ run.states.size() * 0x9E3779B97F4A7C15ull).second) continue;
      CheckRecovery(after.get(), named, run);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  std::printf("%s: %llu steps, %zu distinct states after a crash\n", named.name,
              static_cast<unsigned long long>(steps), states.size());
  EXPECT_GT(states.size(), steps / 2);
}

// The n-th write, sync, creation or directory sync fails: nothing acknowledged is lost, what failed is typed, and the
// store opens again.
TEST_P(CrashTest, EveryFailure) {
  const Named named = GetParam();
  for (const env::SimOp op : {env::SimOp::kWrite, env::SimOp::kSync, env::SimOp::kCreate, env::SimOp::kSyncDirectory,
                              env::SimOp::kRename, env::SimOp::kRemove}) {
    for (uint64_t nth = 1; nth < 200; ++nth) {
      SCOPED_TRACE(std::string(env::SimOpName(op)) + " " + std::to_string(nth));
      env::SimDisk disk(nth);
      env::SimFault fault;
      fault.op = op;
      fault.nth = nth;
      fault.error = nth % 2 == 0 ? EIO : ENOSPC;
      disk.AddFault(fault);
      Outcome run(CrashSchema());
      {
        Workload workload(disk.NewProcess(), OptionsOf(named), &run);
        named.script(workload);
      }
      const bool fired = disk.counters().faults > 0;
      disk.ClearFaults();
      for (const env::CrashPolicy& policy : {env::CrashPolicy::DropAll(), env::CrashPolicy::KeepAll()}) {
        const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policy);
        CheckRecovery(after.get(), named, run);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
      if (!fired) break;  // the workload has fewer of them
    }
  }
}

}  // namespace
}  // namespace ashlar::testing
