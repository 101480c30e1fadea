// Deletes by query and by date: what they delete, what they leave, and in how many batches.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

Schema DatedSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"until", FieldType::kDate, true, false, true, {}},
                   {"seen", FieldType::kDate, true, false, false, {}}};
  return schema;
}

Document Doc(const std::string& key, const std::string& body) {
  Document document;
  document.Add("id", key).Add("body", body);
  return document;
}

class DeleteMatchingTest : public ::testing::Test {
 protected:
  DeleteMatchingTest() { Open(Options()); }
  void Open(Options options) {
    store_.reset();
    options.create_if_missing = true;
    options.merge_factor = 0;
    const Schema schema = DatedSchema();
    absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(env_ = disk_.NewProcess(), "/s", options, &schema);
    ASSERT_OK(store);
    store_ = *std::move(store);
  }
  absl::StatusOr<DeleteResult> Delete(std::string_view query, const DeleteOptions& options = {}) {
    const absl::StatusOr<PreparedQuery> prepared = store_->Prepare(query);
    if (!prepared.ok()) return prepared.status();
    return store_->DeleteMatching(*prepared, options);
  }
  std::string Keys() {
    std::string keys;
    EXPECT_OK(store_->TakeSnapshot().ScanKeys([&keys](std::string_view key, DocumentId) {
      keys += (keys.empty() ? "" : " ") + std::string(key);
      return true;
    }));
    return keys;
  }

  env::SimDisk disk_{1};
  env::Env env_;
  std::unique_ptr<Store> store_;
};

TEST_F(DeleteMatchingTest, DeletesFromSegmentsAndOverlayInOneBatch) {
  ASSERT_OK(store_->Put(Doc("a", "red granite")));
  ASSERT_OK(store_->Put(Doc("b", "grey granite")));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Put(Doc("c", "red marble")));
  ASSERT_OK(store_->Put(Doc("d", "white marble")));
  const Snapshot before = store_->TakeSnapshot();
  ASSERT_OK_AND_ASSIGN(const DeleteResult result, Delete("red"));
  EXPECT_EQ(result.documents, 2u);
  EXPECT_EQ(result.batches, 1u);
  EXPECT_EQ(result.sequence, before.sequence() + 2) << "a delete takes a sequence";
  EXPECT_EQ(store_->TakeSnapshot().sequence(), result.sequence);
  EXPECT_EQ(Keys(), "b d");
  EXPECT_EQ(before.document_count(), 4u);
  disk_.KillProcess(env_);
  Open(Options());
  EXPECT_EQ(Keys(), "b d") << "it is in the journal";
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(Keys(), "b d");
}

TEST_F(DeleteMatchingTest, TakesPhrasesExclusionsAndFields) {
  ASSERT_OK(store_->Put(Doc("a", "red granite wall")));
  ASSERT_OK(store_->Put(Doc("b", "granite red wall")));
  Document titled = Doc("c", "nothing");
  titled.Add("title", "granite");
  ASSERT_OK(store_->Put(titled));
  ASSERT_OK_AND_ASSIGN(DeleteResult result, Delete("\"red granite\""));
  EXPECT_EQ(result.documents, 1u);
  DeleteOptions options;
  options.fields = {"title"};
  ASSERT_OK_AND_ASSIGN(result, Delete("granite", options));
  EXPECT_EQ(Keys(), "b");
  ASSERT_OK_AND_ASSIGN(result, Delete("granite -wall"));
  EXPECT_EQ(result.documents, 0u);
  EXPECT_EQ(Keys(), "b");
}

TEST_F(DeleteMatchingTest, NothingToDeleteWritesNothingButAWatermark) {
  ASSERT_OK(store_->Put(Doc("a", "red")));
  const Sequence before = store_->TakeSnapshot().sequence();
  ASSERT_OK_AND_ASSIGN(DeleteResult result, Delete("blue"));
  EXPECT_EQ(result.documents, 0u);
  EXPECT_EQ(result.batches, 0u);
  EXPECT_EQ(result.sequence, 0u);
  EXPECT_EQ(store_->TakeSnapshot().sequence(), before);
  DeleteOptions options;
  options.write.watermark = "7";
  ASSERT_OK_AND_ASSIGN(result, Delete("blue", options));
  EXPECT_EQ(result.batches, 1u);
  EXPECT_EQ(result.sequence, before + 1);
  EXPECT_EQ(store_->GetStats().watermark, "7");
}

TEST_F(DeleteMatchingTest, BoundedBatchesAreInOrderAndTheWatermarkComesLast) {
  for (int i = 0; i < 10; ++i) ASSERT_OK(store_->Put(Doc("k" + std::to_string(i), "red")));
  DeleteOptions options;
  options.batch_documents_max = 4;
  options.write.watermark = "5";
  // The last batch, of the two newest, is refused: what came before it stays done, and the watermark is not there.
  env::SimFault fault;
  fault.op = env::SimOp::kWrite;
  fault.path_contains = "journal";
  fault.nth = 3;
  fault.error = ENOSPC;
  disk_.AddFault(fault);
  EXPECT_CODE(Delete("red", options), kResourceExhausted);
  EXPECT_EQ(Keys(), "k8 k9");
  EXPECT_FALSE(store_->GetStats().watermark.has_value());
  ASSERT_OK_AND_ASSIGN(const DeleteResult result, Delete("red", options));
  EXPECT_EQ(result.documents, 2u);
  EXPECT_EQ(Keys(), "");
  EXPECT_EQ(store_->GetStats().watermark, "5");
}

TEST_F(DeleteMatchingTest, ABatchThatIsTooLargeDeletesNothing) {
  for (int i = 0; i < 100; ++i) ASSERT_OK(store_->Put(Doc("k" + std::to_string(i), "red")));
  ASSERT_OK(store_->Close());
  Options options;
  options.batch_bytes_max = 100;
  Open(options);
  EXPECT_CODE(Delete("red"), kResourceExhausted);
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 100u);
  DeleteOptions bounded;
  bounded.batch_documents_max = 20;
  ASSERT_OK_AND_ASSIGN(const DeleteResult result, Delete("red", bounded));
  EXPECT_EQ(result.documents, 100u);
  EXPECT_EQ(result.batches, 5u);
}

TEST_F(DeleteMatchingTest, RefusesWhatItCanNotDo) {
  ASSERT_OK(store_->Put(Doc("a", "red")));
  EXPECT_CODE(store_->DeleteMatching(PreparedQuery()), kInvalidArgument);
  EXPECT_CODE(store_->Expire("body", Date{1}), kInvalidArgument);
  EXPECT_CODE(store_->Expire("nobody", Date{1}), kInvalidArgument);
  EXPECT_CODE(store_->Expire("seen", Date{1}), kInvalidArgument) << "it has no column";
  ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store_->Prepare("red"));
  Options options;
  options.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, OpenOn(disk_.NewProcess(), "/s", options, nullptr));
  EXPECT_CODE(reader->DeleteMatching(query), kFailedPrecondition);
  EXPECT_CODE(reader->Expire("until", Date{1}), kFailedPrecondition);
  ASSERT_OK(store_->Close());
  EXPECT_CODE(store_->DeleteMatching(query), kFailedPrecondition);
}

TEST_F(DeleteMatchingTest, DamageDeletesNothing) {
  for (int i = 0; i < 50; ++i) ASSERT_OK(store_->Put(Doc("a" + std::to_string(i), "red")));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Put(Doc("b", "red")));
  ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store_->Prepare("red"));
  ASSERT_OK(store_->Close());
  for (const std::string& name : disk_.FileNames())
    if (name.find(".seg") != std::string::npos) ASSERT_OK(disk_.FlipBit(name, 8 * 100));
  Open(Options());
  EXPECT_CODE(store_->DeleteMatching(query), kDataLoss);
  EXPECT_OK(store_->Expire("until", Date{1})) << "it does not need what is damaged";
  EXPECT_OK(store_->TakeSnapshot().Get("b"));
}

// Each document is deleted, and counted, by one of the two; what a third puts in a document's place while they look is
// not what they found, so it stays.
TEST(DeleteMatchingThreadsTest, NobodyDeletesWhatCameMeanwhile) {
  const TempDir directory;
  Options options;
  options.durability = Durability::kOs;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Create(directory.Sub("s"), DatedSchema(), options));
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    WriteBatch batch;
    for (int i = 0; i < 200; ++i) batch.Put(Doc("k" + std::to_string(i), "red"));
    ASSERT_OK(store->Write(batch));
    if (round % 5 == 4) ASSERT_OK(store->Flush());
    std::atomic<uint64_t> deleted{0}, replaced{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        const absl::StatusOr<PreparedQuery> query = store->Prepare("red");
        ASSERT_OK(query);
        const absl::StatusOr<DeleteResult> result = store->DeleteMatching(*query);
        ASSERT_OK(result);
        deleted += result->documents;
      });
    threads.emplace_back([&] {
      WriteBatch blue;
      for (int i = 0; i < 200; i += 2) blue.Put(Doc("k" + std::to_string(i), "blue"));
      const absl::StatusOr<WriteResult> result = store->Write(blue);
      ASSERT_OK(result);
      replaced += result->documents_replaced;
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(deleted + replaced, 200u);
    EXPECT_EQ(store->TakeSnapshot().document_count(), 100u);
    ASSERT_OK_AND_ASSIGN(const PreparedQuery blue, store->Prepare("blue"));
    ASSERT_OK_AND_ASSIGN(const DeleteResult rest, store->DeleteMatching(blue));
    EXPECT_EQ(rest.documents, 100u);
  }
}

TEST_F(DeleteMatchingTest, ExpireTakesWhatIsBeforeNow) {
  const auto put = [this](const std::string& key, const std::vector<int64_t>& dates) {
    Document document = Doc(key, "x");
    for (const int64_t date : dates) document.Add("until", Date{date});
    ASSERT_OK(store_->Put(document));
  };
  put("before", {999});
  put("long_before", {-5'000'000});
  put("now", {1000});
  put("after", {1001});
  put("never", {});
  put("latest_counts", {1, 1000});
  put("all_before", {7, -3});
  ASSERT_OK(store_->Flush());
  put("one_more", {0});
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 8u) << "a merge lets nothing expire";
  ASSERT_OK(store_->Delete("one_more"));
  put("new_before", {0});
  put("new_after", {1'000'000});
  put("new_latest_counts", {1000, 1});
  const Snapshot held = store_->TakeSnapshot();
  ASSERT_OK_AND_ASSIGN(DeleteResult result, store_->Expire("until", Date{1000}));
  EXPECT_EQ(result.documents, 4u);
  EXPECT_EQ(result.batches, 1u);
  EXPECT_EQ(Keys(), "after latest_counts never new_after new_latest_counts now");
  EXPECT_EQ(held.document_count(), 10u);
  ASSERT_OK_AND_ASSIGN(result, store_->Expire("until", Date{1000}));
  EXPECT_EQ(result.batches, 0u);
  disk_.KillProcess(env_);
  Open(Options());
  EXPECT_EQ(Keys(), "after latest_counts never new_after new_latest_counts now");
  DeleteOptions bounded;
  bounded.batch_documents_max = 1;
  ASSERT_OK_AND_ASSIGN(result, store_->Expire("until", Date{INT64_MAX}, bounded));
  EXPECT_EQ(result.batches, 5u);
  EXPECT_EQ(Keys(), "never");
}

TEST_F(DeleteMatchingTest, ExpireByAFieldThatWasAddedLater) {
  ASSERT_OK(store_->Put(Doc("old", "x")));
  ASSERT_OK(store_->AddFields({{"gone", FieldType::kDate, true, false, true, {}}}));
  Document document = Doc("new", "x");
  document.Add("gone", Date{1});
  ASSERT_OK(store_->Put(document));
  ASSERT_OK_AND_ASSIGN(const DeleteResult result, store_->Expire("gone", Date{2}));
  EXPECT_EQ(result.documents, 1u);
  EXPECT_EQ(Keys(), "old");
}

}  // namespace
}  // namespace ashlar::testing
