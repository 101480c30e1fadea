// Random operations on a store, compared with the oracle after each: whatever mixture of overlay, segments, merges,
// deaths and reopenings lies below, the answers are those of a plain map of documents, bit for bit. The run's seed is
// in its name.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

// What the oracle finds, deleted there in the same batches.
void DeleteMatching(RandomStore* random, Store* store, Oracle* oracle) {
  Query query = random->RandomQuery(oracle->schema());
  query.clauses[0].occur = Occur::kMust;  // few
  DeleteOptions options;
  if (random->prng().OneIn(3)) options.batch_documents_max = 1 + random->prng().Below(4);
  options.fields = random->RandomSearchOptions(oracle->schema()).fields;
  SearchOptions search;
  search.k = UINT64_MAX;
  search.fields = options.fields;
  std::vector<DocumentId> ids;
  for (const OracleHit& hit : oracle->Search(query, search).hits) ids.push_back(hit.id);
  std::sort(ids.begin(), ids.end());
  ASSERT_OK_AND_ASSIGN(const PreparedQuery prepared, store->Prepare(query));
  ASSERT_OK_AND_ASSIGN(const DeleteResult result, store->DeleteMatching(prepared, options));
  WriteBatch batch;
  for (const DocumentId id : ids) batch.DeleteId(id);
  ASSERT_EQ(result.documents, ids.size());
  if (ids.empty()) {
    ASSERT_EQ(result.batches, 0u);
    return;
  }
  const uint64_t most = options.batch_documents_max == 0 ? ids.size() : options.batch_documents_max;
  ASSERT_EQ(result.batches, (ids.size() + most - 1) / most);
  ASSERT_OK_AND_ASSIGN(const OracleWrite expected, oracle->Apply(batch));
  ASSERT_EQ(result.sequence, expected.sequence);
}

void Expire(RandomStore* random, Store* store, Oracle* oracle) {
  const Date now{static_cast<int64_t>(random->prng().Below(300)) - 500};
  WriteBatch batch;
  for (const DocumentId id : oracle->Ids()) {
    std::optional<int64_t> latest;
    const Document document = oracle->GetById(id)->document;
    for (const FieldValue& value : document.values)
      if (value.field == "until")
        latest = std::max(latest.value_or(INT64_MIN), std::get<Date>(value.value).milliseconds);
    if (latest.has_value() && *latest < now.milliseconds) batch.DeleteId(id);
  }
  ASSERT_OK_AND_ASSIGN(const DeleteResult result, store->Expire("until", now));
  ASSERT_EQ(result.documents, batch.size());
  if (!batch.empty()) ASSERT_OK(oracle->Apply(batch));
}

struct Held {
  Snapshot snapshot;
  Oracle oracle;
};

class ModelTest : public ::testing::TestWithParam<int> {
 protected:
  void Run(Scheduler scheduler);
};

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, ::testing::Range(1, 61));

void ModelTest::Run(Scheduler scheduler) {
  RandomStore random(static_cast<uint64_t>(GetParam()));
  Prng& prng = random.prng();
  env::SimDisk disk(static_cast<uint64_t>(GetParam()));
  env::Env env = disk.NewProcess();
  const Schema schema = random.RandomSchema();
  const auto random_options = [&random, scheduler] {
    Options options = random.RandomOptions();
    options.scheduler = scheduler;
    return options;
  };
  Options options = random_options();
  options.create_if_missing = true;
  Oracle oracle(schema);
  absl::StatusOr<std::unique_ptr<Store>> opened = OpenOn(env, "/store", options, &schema);
  ASSERT_OK(opened);
  std::unique_ptr<Store> store = *std::move(opened);
  std::vector<Held> held;

  for (int step = 0; step < 120; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const uint64_t what = prng.Below(100);
    if (what < 4) {
      DeleteMatching(&random, store.get(), &oracle);
    } else if (what < 6) {
      Expire(&random, store.get(), &oracle);
    } else if (what < 70) {
      const WriteBatch batch = random.RandomBatch(oracle.schema(), oracle);
      const absl::StatusOr<OracleWrite> expected = oracle.Apply(batch);
      const absl::StatusOr<WriteResult> result = store->Write(batch);
      ASSERT_EQ(result.status().code(), expected.status().code()) << result.status() << expected.status();
      if (result.ok()) {
        ASSERT_EQ(result->sequence, expected->sequence);
        ASSERT_EQ(result->existed, expected->existed);
      }
    } else if (what < 80) {
      ASSERT_OK(store->Flush());
    } else if (what < 84) {
      ASSERT_OK(store->Merge(1 + static_cast<uint32_t>(prng.Below(3))));
    } else if (what < 85) {
      const absl::Status purged = store->Purge(1 + static_cast<uint32_t>(prng.Below(3)));
      if (held.empty() || !absl::IsFailedPrecondition(purged)) ASSERT_OK(purged);
    } else if (what < 87) {
      ASSERT_OK(store->RunPending());
    } else if (what < 91) {  // clean or not, with other options
      const bool clean = prng.OneIn(2);
      if (clean) ASSERT_OK(store->Close());
      if (!clean) disk.KillProcess(env);
      store.reset();
      held.clear();
      env = disk.NewProcess();
      options = random_options();
      opened = OpenOn(env, "/store", options, nullptr);
      ASSERT_OK(opened);
      store = *std::move(opened);
      if (!clean) {
        ASSERT_OK_AND_ASSIGN(const WriteResult empty, store->Write(WriteBatch()));
        ASSERT_GE(empty.sequence, oracle.next_sequence());
        oracle.SetNextSequence(empty.sequence + 1);
      }
    } else if (what < 96) {
      held.push_back({store->TakeSnapshot(), oracle});
      if (held.size() > 4) held.erase(held.begin());
    } else if (what < 97) {
      const std::vector<Field> fields = {
          {"extra" + std::to_string(step), FieldType::kText, true, true, false, AnalyzerOptions::English()}};
      ASSERT_OK(store->AddFields(fields));
      oracle.AddFields(fields);
    } else {
      ExpectCheckClean(*store);
      ExpectSameDocuments(store->TakeSnapshot(), oracle);
    }
    ExpectEqual(*store, store->TakeSnapshot(), oracle, &random, 2);
    if (!held.empty() && step % 5 == 0) {
      const Held& one = held[prng.Below(held.size())];
      ExpectEqual(*store, one.snapshot, one.oracle, &random, 2);
    }
    if (HasFatalFailure()) return;
  }
  for (const Held& one : held) ExpectSameDocuments(one.snapshot, one.oracle);
  ExpectCheckClean(*store);
  ExpectSameDocuments(store->TakeSnapshot(), oracle);
}

TEST_P(ModelTest, EqualsTheOracle) { Run(Scheduler::kCooperative); }

// The same operations; what is flushed and merged when, the thread decides.
class BackgroundModelTest : public ModelTest {};
TEST_P(BackgroundModelTest, EqualsTheOracle) { Run(Scheduler::kBackground); }

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr int kBackgroundSeeds = 15;  // a second each there
#else
constexpr int kBackgroundSeeds = 60;
#endif
#else
constexpr int kBackgroundSeeds = 60;
#endif
INSTANTIATE_TEST_SUITE_P(Seeds, BackgroundModelTest, ::testing::Range(1, kBackgroundSeeds + 1));

}  // namespace
}  // namespace ashlar::testing
