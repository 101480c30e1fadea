// The public interface of a store: every call, its answers and its errors. Runs over a directory and in memory.
#include "ashlar/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "ashlar/reindex.h"
#include "src/catalog/catalog.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar {
namespace {

using testing::TempDir;

Schema TestSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {
      {"id", FieldType::kKeyword, true, false, false, {}}, {"title", FieldType::kText, true, true, false, {}},
      {"body", FieldType::kText, true, true, false, {}},   {"tag", FieldType::kKeyword, true, false, true, {}},
      {"year", FieldType::kInt64, true, false, true, {}},  {"weight", FieldType::kDouble, true, false, true, {}},
      {"day", FieldType::kDate, true, false, true, {}},    {"raw", FieldType::kBytes, true, false, false, {}}};
  return schema;
}

Document Doc(const std::string& id, const std::string& body, const std::string& title = "a title") {
  Document document;
  document.Add("id", id).Add("title", title).Add("body", body);
  return document;
}

std::vector<std::string> KeysOf(const Store& store, std::string_view query, SearchOptions options = {}) {
  const absl::StatusOr<PreparedQuery> prepared = store.Prepare(query);
  EXPECT_OK(prepared);
  if (!prepared.ok()) return {};
  const Snapshot snapshot = store.TakeSnapshot();
  const absl::StatusOr<SearchResult> result = snapshot.Search(*prepared, options);
  EXPECT_OK(result);
  if (!result.ok()) return {};
  std::vector<Handle> handles;
  for (const Hit& hit : result->hits) handles.push_back(hit.handle);
  const absl::StatusOr<std::vector<std::string>> keys = snapshot.FetchKeys(handles);
  EXPECT_OK(keys);
  return keys.ok() ? *keys : std::vector<std::string>();
}

// A store in a directory, with a way to close and open it again.
class StoreTest : public ::testing::TestWithParam<OpenMode> {
 protected:
  void SetUp() override { Create(TestSchema()); }
  void Create(const Schema& schema) {
    store_.reset();
    std::filesystem::remove_all(path());
    options_.open_mode = GetParam();
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Create(path(), schema, options_);
    ASSERT_OK(store);
    store_ = *std::move(store);
  }
  void Reopen() {
    if (store_ != nullptr) ASSERT_OK(store_->Close());
    store_.reset();
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path(), options_);
    ASSERT_OK(store);
    store_ = *std::move(store);
  }
  void TearDown() override {
    if (store_ == nullptr) return;
    ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, store_->Check());
    for (const Finding& finding : findings) EXPECT_EQ(finding.kind, Finding::Kind::kNote) << finding.message;
  }
  std::string path() const { return directory_.Sub("store"); }

  TempDir directory_;
  Options options_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Modes, StoreTest, ::testing::Values(OpenMode::kMapped, OpenMode::kArray),
                         [](const auto& param) { return param.param == OpenMode::kMapped ? "mapped" : "array"; });

TEST_P(StoreTest, PutIsSearchableAtOnceAndAfterFlushAndReopen) {
  ASSERT_OK(store_->Put(Doc("a", "granite and marble")));
  ASSERT_OK(store_->Put(Doc("b", "marble only")));
  const std::vector<std::string> expected = {"b", "a"};
  EXPECT_EQ(KeysOf(*store_, "marble"), expected);
  ASSERT_OK(store_->Flush());
  EXPECT_EQ(KeysOf(*store_, "marble"), expected);
  EXPECT_EQ(store_->GetStats().segments.size(), 1u);
  Reopen();
  EXPECT_EQ(KeysOf(*store_, "marble"), expected);
  ASSERT_OK(store_->Put(Doc("c", "marble marble marble")));
  Reopen();  // from the journal this time
  EXPECT_EQ(KeysOf(*store_, "marble").size(), 3u);
  EXPECT_EQ(KeysOf(*store_, "marble")[0], "c");
}

TEST_P(StoreTest, GetReturnsAllStoredValuesInFieldOrder) {
  Document document;
  document.Add("raw", Blob{std::string("\0\xff", 2)})
      .Add("day", Date{86400000})
      .Add("tag", std::string("x"))
      .Add("tag", std::string("a"))
      .Add("weight", 1.5)
      .Add("year", int64_t{-7})
      .Add("body", std::string("second"))
      .Add("id", std::string("k"));
  Document ordered;
  ordered.Add("id", std::string("k"))
      .Add("body", std::string("second"))
      .Add("tag", std::string("x"))
      .Add("tag", std::string("a"))
      .Add("year", int64_t{-7})
      .Add("weight", 1.5)
      .Add("day", Date{86400000})
      .Add("raw", Blob{std::string("\0\xff", 2)});
  ASSERT_OK_AND_ASSIGN(const Sequence sequence, store_->Put(document));
  for (int step = 0; step < 3; ++step) {
    ASSERT_OK_AND_ASSIGN(const StoredDocument stored, store_->TakeSnapshot().Get("k"));
    EXPECT_EQ(stored.document, ordered) << step;
    EXPECT_EQ(stored.id, sequence);
    EXPECT_EQ(stored.key, "k");
    ASSERT_OK_AND_ASSIGN(const StoredDocument by_id, store_->TakeSnapshot().GetById(sequence));
    EXPECT_EQ(by_id.document, ordered);
    if (step == 0) ASSERT_OK(store_->Flush());
    if (step == 1) Reopen();
  }
  EXPECT_CODE(store_->TakeSnapshot().Get("nobody"), kNotFound);
  EXPECT_CODE(store_->TakeSnapshot().GetById(sequence + 1), kNotFound);
}

TEST_P(StoreTest, UnstoredFieldsAreSearchedButNotReturned) {
  Schema schema = TestSchema();
  schema.fields[2].stored = false;
  Create(schema);
  ASSERT_OK(store_->Put(Doc("a", "hidden words", "seen")));
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(KeysOf(*store_, "hidden"), std::vector<std::string>{"a"});
    ASSERT_OK_AND_ASSIGN(const StoredDocument stored, store_->TakeSnapshot().Get("a"));
    EXPECT_EQ(stored.document.Find("body"), nullptr);
    EXPECT_NE(stored.document.Find("title"), nullptr);
    ASSERT_OK(store_->Flush());
  }
}

TEST_P(StoreTest, ReplaceDeleteAndTheirReports) {
  ASSERT_OK(store_->Put(Doc("a", "one")));
  ASSERT_OK_AND_ASSIGN(bool existed, store_->Delete("a"));
  EXPECT_TRUE(existed);
  ASSERT_OK_AND_ASSIGN(existed, store_->Delete("a"));
  EXPECT_FALSE(existed);
  WriteBatch batch;
  batch.Put(Doc("a", "two"));
  batch.Put(Doc("b", "two"));
  batch.Put(Doc("a", "three"));
  batch.Delete("b");
  batch.Delete("nobody");
  ASSERT_OK_AND_ASSIGN(const WriteResult result, store_->Write(batch));
  EXPECT_EQ(result.existed, (std::vector<bool>{false, false, true, true, false}));
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 1u);
  EXPECT_TRUE(KeysOf(*store_, "two").empty());
  EXPECT_EQ(KeysOf(*store_, "three"), std::vector<std::string>{"a"});
  ASSERT_OK_AND_ASSIGN(const StoredDocument stored, store_->TakeSnapshot().Get("a"));
  EXPECT_EQ(stored.id, result.sequence - 2);
}

TEST_P(StoreTest, EveryOperationTakesOneSequenceAndSoDoesAnEmptyBatch) {
  ASSERT_OK_AND_ASSIGN(const Sequence first, store_->Put(Doc("a", "x")));
  ASSERT_OK_AND_ASSIGN(const WriteResult empty, store_->Write(WriteBatch()));
  EXPECT_EQ(empty.sequence, first + 1);
  WriteBatch batch;
  for (int i = 0; i < 5; ++i) batch.Put(Doc("a", "y"));
  ASSERT_OK_AND_ASSIGN(const WriteResult five, store_->Write(batch));
  EXPECT_EQ(five.sequence, first + 6);
  EXPECT_EQ(store_->TakeSnapshot().sequence(), first + 6);
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().sequence(), first + 6);
  ASSERT_OK_AND_ASSIGN(const Sequence next, store_->Put(Doc("a", "z")));
  EXPECT_EQ(next, first + 7) << "a clean close loses no number";
}

TEST_P(StoreTest, FailedInsertAndPutIfWriteNothingOfTheirBatch) {
  ASSERT_OK_AND_ASSIGN(const Sequence a, store_->Insert(Doc("a", "one")));
  WriteBatch batch;
  batch.Put(Doc("b", "new"));
  batch.Insert(Doc("a", "again"));
  absl::StatusOr<WriteResult> result = store_->Write(batch);
  EXPECT_CODE(result, kAlreadyExists);
  EXPECT_NE(result.status().message().find("'a'"), std::string::npos);
  EXPECT_CODE(store_->TakeSnapshot().Get("b"), kNotFound);

  EXPECT_CODE(store_->PutIf(Doc("a", "two"), a + 1), kFailedPrecondition);
  EXPECT_CODE(store_->PutIf(Doc("c", "two"), a), kFailedPrecondition);
  ASSERT_OK(store_->PutIf(Doc("c", "two"), 0));
  ASSERT_OK_AND_ASSIGN(const Sequence two, store_->PutIf(Doc("a", "two"), a));
  EXPECT_CODE(store_->PutIf(Doc("a", "three"), a), kFailedPrecondition);
  ASSERT_OK(store_->PutIf(Doc("a", "three"), two));

  WriteBatch twice;
  twice.Insert(Doc("d", "x"));
  twice.Insert(Doc("d", "y"));
  EXPECT_CODE(store_->Write(twice), kAlreadyExists);
  WriteBatch again;
  again.Delete("a");
  again.Insert(Doc("a", "fresh"));
  ASSERT_OK(store_->Write(again));
  EXPECT_EQ(KeysOf(*store_, "fresh"), std::vector<std::string>{"a"});
}

TEST_P(StoreTest, DeleteByDocumentId) {
  ASSERT_OK_AND_ASSIGN(const Sequence a, store_->Put(Doc("a", "one")));
  ASSERT_OK_AND_ASSIGN(const Sequence b, store_->Put(Doc("b", "one")));
  ASSERT_OK(store_->Flush());
  ASSERT_OK_AND_ASSIGN(const Sequence c, store_->Put(Doc("c", "one")));
  WriteBatch batch;
  batch.DeleteId(a);
  batch.DeleteId(c);
  batch.DeleteId(a);  // again
  batch.Put(Doc("b", "two"));
  batch.DeleteId(b);  // replaced just now
  batch.Insert(Doc("a", "free again"));
  ASSERT_OK_AND_ASSIGN(const WriteResult result, store_->Write(batch));
  EXPECT_EQ(result.existed, (std::vector<bool>{true, true, false, true, false, false}));
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 2u);
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 2u);
  EXPECT_EQ(KeysOf(*store_, "one two free"), (std::vector<std::string>{"b", "a"}));
}

TEST_P(StoreTest, KeylessDocuments) {
  Schema schema = TestSchema();
  schema.key.clear();
  schema.fields[0].name = "label";
  Create(schema);
  Document document;
  document.Add("body", std::string("same"));
  ASSERT_OK_AND_ASSIGN(const Sequence first, store_->Put(document));
  ASSERT_OK(store_->Put(document));
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 2u);
  EXPECT_CODE(store_->Delete("x"), kInvalidArgument);
  EXPECT_CODE(store_->TakeSnapshot().Get("x"), kInvalidArgument);
  ASSERT_OK(store_->Flush());
  WriteBatch batch;
  batch.DeleteId(first);
  ASSERT_OK(store_->Write(batch));
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 1u);
  EXPECT_CODE(store_->TakeSnapshot().GetById(first), kNotFound);
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 1u);
}

TEST_P(StoreTest, SnapshotsAreFixedPoints) {
  ASSERT_OK(store_->Put(Doc("a", "first version")));
  const Snapshot before = store_->TakeSnapshot();
  ASSERT_OK(store_->Put(Doc("a", "second version")));
  ASSERT_OK(store_->Put(Doc("b", "first")));
  const Snapshot middle = store_->TakeSnapshot();
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Delete("a"));
  ASSERT_OK(store_->Merge());
  ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store_->Prepare("first second"));
  const auto count = [&query](const Snapshot& snapshot) {
    const absl::StatusOr<SearchResult> result = snapshot.Search(query);
    EXPECT_OK(result);
    return result.ok() ? result->total : 0;
  };
  EXPECT_EQ(count(before), 1u);
  EXPECT_EQ(count(middle), 2u);
  EXPECT_EQ(count(store_->TakeSnapshot()), 1u);
  ASSERT_OK_AND_ASSIGN(const StoredDocument old, before.Get("a"));
  EXPECT_EQ(std::get<std::string>(*old.document.Find("body")), "first version");
  EXPECT_CODE(before.Get("b"), kNotFound);
  ASSERT_OK(store_->Close());
  EXPECT_EQ(count(middle), 2u) << "a snapshot outlives its store";
  store_.reset();
  EXPECT_EQ(count(middle), 2u);
}

TEST_P(StoreTest, ScanInBothOrders) {
  for (const char* key : {"m", "c", "x", "a"}) ASSERT_OK(store_->Put(Doc(key, "t")));
  ASSERT_OK(store_->Flush());
  for (const char* key : {"b", "c", "z"}) ASSERT_OK(store_->Put(Doc(key, "t")));
  ASSERT_OK(store_->Delete("x"));
  const Snapshot snapshot = store_->TakeSnapshot();
  std::string by_key, by_id, from_c;
  ASSERT_OK(snapshot.Scan(Snapshot::Order::kKey, [&](const StoredDocument& d) {
    by_key += d.key;
    return true;
  }));
  ASSERT_OK(snapshot.Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& d) {
    by_id += d.key;
    return true;
  }));
  ASSERT_OK(snapshot.ScanKeys(
      [&](std::string_view key, DocumentId) {
        from_c += key;
        return from_c.size() < 2;
      },
      "bb"));
  EXPECT_EQ(by_key, "abcmz");
  EXPECT_EQ(by_id, "mabcz");
  EXPECT_EQ(from_c, "cm");
}

TEST_P(StoreTest, AddFieldsWithoutReindex) {
  ASSERT_OK(store_->Put(Doc("a", "old")));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Put(Doc("b", "unflushed")));
  EXPECT_CODE(store_->Prepare("note:fresh"), kInvalidArgument);
  EXPECT_CODE(store_->AddFields({{"title", FieldType::kText, true, true, false, {}}}), kInvalidArgument);
  ASSERT_OK(store_->AddFields({{"note", FieldType::kText, true, true, false, AnalyzerOptions::English()}}));
  Document document = Doc("c", "new");
  document.Add("note", std::string("fresh running"));
  ASSERT_OK(store_->Put(document));
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(KeysOf(*store_, "note:run"), std::vector<std::string>{"c"}) << step;
    EXPECT_EQ(KeysOf(*store_, "old unflushed new").size(), 3u);
    EXPECT_TRUE(KeysOf(*store_, "fresh").empty()) << "an added field never joins the group";
    if (step == 0) Reopen();
    if (step == 1) ASSERT_OK(store_->Merge());
  }
  EXPECT_EQ(store_->schema().fields.size(), 9u);
}

TEST_P(StoreTest, WatermarkFollowsTheNewestBatch) {
  EXPECT_FALSE(store_->GetStats().watermark.has_value());
  EXPECT_FALSE(store_->TakeSnapshot().watermark().has_value());
  WriteBatch batch;
  batch.Put(Doc("a", "x"));
  WriteOptions options;
  options.watermark = "row 41";
  ASSERT_OK(store_->Write(batch, options));
  const Snapshot first = store_->TakeSnapshot();
  ASSERT_OK(store_->Put(Doc("b", "y")));
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "row 41") << "a batch without one leaves it";
  Reopen();  // from the journal
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "row 41");
  options.watermark = std::string("\0row\xff\n", 6);
  ASSERT_OK_AND_ASSIGN(const WriteResult empty, store_->Write(WriteBatch(), options));
  EXPECT_EQ(empty.sequence, store_->TakeSnapshot().sequence()) << "an empty batch takes a sequence";
  EXPECT_EQ(store_->TakeSnapshot().watermark(), options.watermark);
  EXPECT_EQ(first.watermark(), "row 41") << "a snapshot keeps its own";
  ASSERT_OK(store_->Flush());
  Reopen();  // from the catalog
  EXPECT_EQ(store_->GetStats().watermark, options.watermark);
  ASSERT_OK(store_->Merge());
  ASSERT_OK(store_->Checkpoint(directory_.Sub("copy")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(directory_.Sub("copy")));
  EXPECT_EQ(copy->TakeSnapshot().watermark(), options.watermark);
  options.watermark = "";
  ASSERT_OK(store_->Write(WriteBatch(), options));
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "") << "empty is not none";
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "");
}

TEST_P(StoreTest, WatermarkHasALimit) {
  WriteOptions options;
  options.watermark = std::string(kWatermarkBytesMax, 'w');
  ASSERT_OK(store_->Write(WriteBatch(), options));
  ASSERT_OK(store_->Flush());
  const Sequence before = store_->TakeSnapshot().sequence();
  WriteOptions longer;
  longer.watermark = std::string(kWatermarkBytesMax + 1, 'w');
  WriteBatch batch;
  batch.Put(Doc("a", "x"));
  const absl::Status refused = store_->Write(batch, longer).status();
  EXPECT_CODE(refused, kResourceExhausted);
  EXPECT_NE(refused.message().find("4096"), std::string::npos) << refused;
  EXPECT_EQ(store_->TakeSnapshot().sequence(), before);
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().watermark(), options.watermark);
}

// It follows the order of the sequences: that of a batch that fails is never seen, and of several the last one stays.
TEST_P(StoreTest, WatermarkOfABatchThatFails) {
  ASSERT_OK(store_->Put(Doc("a", "x")));
  WriteOptions options;
  options.watermark = "good";
  ASSERT_OK(store_->Write(WriteBatch(), options));
  WriteBatch clash;
  clash.Insert(Doc("a", "y"));
  options.watermark = "bad";
  EXPECT_CODE(store_->Write(clash, options), kAlreadyExists);
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "good");
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "good");
}

TEST_P(StoreTest, BulkPathIsInvisibleUntilItsFlushAndFindsDuplicates) {
  ASSERT_OK(store_->Put(Doc("a", "one")));
  EXPECT_CODE(store_->Write(WriteBatch(),
                            [] {
                              WriteOptions o;
                              o.keys_are_new = true;
                              return o;
                            }()),
              kInvalidArgument);
  ASSERT_OK(store_->Close());
  options_.durability = Durability::kOff;
  Reopen();
  WriteOptions bulk;
  bulk.keys_are_new = true;
  WriteBatch batch;
  for (int i = 0; i < 100; ++i) batch.Put(Doc("bulk" + std::to_string(i), "loaded"));
  ASSERT_OK(store_->Write(batch, bulk));
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 1u);
  ASSERT_OK(store_->Flush());
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 101u);
  SearchOptions options;
  options.k = 200;
  EXPECT_EQ(KeysOf(*store_, "loaded", options).size(), 100u);

  batch.Clear();
  batch.Put(Doc("fresh", "loaded"));
  batch.Put(Doc("bulk7", "again"));
  ASSERT_OK(store_->Write(batch, bulk));
  const absl::Status status = store_->Flush();
  EXPECT_CODE(status, kAlreadyExists);
  EXPECT_NE(status.message().find("bulk7"), std::string::npos);
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 101u);
  batch.Clear();
  batch.Put(Doc("twin", "x"));
  batch.Put(Doc("twin", "y"));
  ASSERT_OK(store_->Write(batch, bulk));
  EXPECT_CODE(store_->Flush(), kAlreadyExists);
  ASSERT_OK(store_->Put(Doc("a", "two")));
  options_.durability = Durability::kSync;
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 101u);
  EXPECT_EQ(KeysOf(*store_, "two"), std::vector<std::string>{"a"});
}

TEST_P(StoreTest, ReadersInTheSameProcessRefresh) {
  ASSERT_OK(store_->Put(Doc("a", "one")));
  Options reading;
  reading.read_only = true;
  reading.open_mode = GetParam();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(path(), reading));
  EXPECT_EQ(reader->TakeSnapshot().document_count(), 1u);
  EXPECT_CODE(reader->Put(Doc("b", "x")), kFailedPrecondition);
  EXPECT_CODE(reader->Flush(), kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(bool fresh, reader->Refresh());
  EXPECT_FALSE(fresh);
  ASSERT_OK(store_->Put(Doc("b", "two")));
  EXPECT_EQ(reader->TakeSnapshot().document_count(), 1u);
  ASSERT_OK_AND_ASSIGN(fresh, reader->Refresh());
  EXPECT_TRUE(fresh);
  EXPECT_EQ(KeysOf(*reader, "two"), std::vector<std::string>{"b"});
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Put(Doc("a", "three")));
  ASSERT_OK_AND_ASSIGN(fresh, reader->Refresh());
  EXPECT_TRUE(fresh);
  EXPECT_EQ(KeysOf(*reader, "three"), std::vector<std::string>{"a"});
  EXPECT_TRUE(KeysOf(*reader, "one").empty());
  EXPECT_EQ(reader->TakeSnapshot().sequence(), store_->TakeSnapshot().sequence());
  EXPECT_CODE(store_->Refresh(), kFailedPrecondition);
}

TEST_P(StoreTest, OpeningErrors) {
  Options creating;
  const Schema schema = TestSchema();
  EXPECT_CODE(Store::Open(path(), creating), kUnavailable);  // this test's own writer
  EXPECT_CODE(Store::Open(directory_.Sub("nowhere")), kNotFound);
  std::filesystem::create_directory(directory_.Sub("empty"));
  EXPECT_CODE(Store::Open(directory_.Sub("empty")), kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.Sub("empty"))) << "a failed open leaves nothing behind";
  ASSERT_OK(store_->Close());
  EXPECT_CODE(Store::Create(path(), schema), kAlreadyExists);
  std::ofstream(directory_.Sub("file")) << "text";
  EXPECT_FALSE(Store::Open(directory_.Sub("file")).ok());
  Schema bad = schema;
  bad.fields.push_back(bad.fields[1]);
  EXPECT_CODE(Store::Create(directory_.Sub("other"), bad), kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(directory_.Sub("other")));
  Reopen();
}

TEST_P(StoreTest, CallsAfterCloseAreTyped) {
  ASSERT_OK(store_->Put(Doc("a", "x")));
  ASSERT_OK(store_->Close());
  ASSERT_OK(store_->Close());
  EXPECT_CODE(store_->Put(Doc("b", "x")), kFailedPrecondition);
  EXPECT_CODE(store_->Flush(), kFailedPrecondition);
  EXPECT_EQ(store_->GetStats().state, StoreState::kClosed);
  Reopen();
}

TEST_P(StoreTest, BadDocumentsWriteNothing) {
  const auto rejects = [this](const Document& document) {
    WriteBatch batch;
    batch.Put(Doc("good", "fine"));
    batch.Put(document);
    EXPECT_CODE(store_->Write(batch), kInvalidArgument);
    EXPECT_EQ(store_->TakeSnapshot().document_count(), 0u);
  };
  rejects(Document());
  rejects(Document().Add("body", std::string("no key")));
  rejects(Doc("k", "bad \xff utf8"));
  rejects(Doc("k", "x").Add("nofield", std::string("x")));
  rejects(Doc("k", "x").Add("year", std::string("1999")));
  rejects(Doc("k", "x").Add("id", std::string("second")));
  rejects(Doc("", "x"));
}

TEST_P(StoreTest, BatchOverTheLimitIsTyped) {
  options_.batch_bytes_max = 10000;
  Reopen();
  EXPECT_CODE(store_->Put(Doc("a", std::string(20000, 'x'))), kResourceExhausted);
  ASSERT_OK(store_->Put(Doc("a", "small")));
  EXPECT_EQ(store_->GetStats().state, StoreState::kHealthy);
}

TEST_P(StoreTest, ManyFlushesStayFewSegments) {
  options_.durability = Durability::kOs;
  Reopen();
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(store_->Put(Doc("k" + std::to_string(i % 97), "word" + std::to_string(i) + " common")));
    ASSERT_OK(store_->Flush());
    ASSERT_OK(store_->RunPending());
  }
  EXPECT_LE(store_->GetStats().segments.size(), 30u);
  SearchOptions options;
  options.k = 200;
  EXPECT_EQ(KeysOf(*store_, "common", options).size(), 97u);
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(store_->GetStats().segments.size(), 1u);
  EXPECT_EQ(store_->GetStats().deleted, 0u);
}

TEST_P(StoreTest, ReindexKeepsDocumentIdsAndAnswers) {
  for (int i = 0; i < 50; ++i)
    ASSERT_OK(store_->Put(Doc("k" + std::to_string(i), "stone number " + std::to_string(i % 7))));
  ASSERT_OK(store_->Delete("k3"));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Put(Doc("k4", "stone again")));
  WriteOptions marked;
  marked.watermark = "row 51";
  ASSERT_OK(store_->Write(WriteBatch(), marked));
  const std::string out = directory_.Sub("copy");
  ASSERT_OK(Reindex(*store_, out));
  EXPECT_CODE(Reindex(*store_, out), kAlreadyExists);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(out));
  EXPECT_EQ(copy->TakeSnapshot().document_count(), 49u);
  EXPECT_EQ(copy->TakeSnapshot().watermark(), "row 51");
  EXPECT_EQ(KeysOf(*copy, "stone 3"), KeysOf(*store_, "stone 3"));
  ASSERT_OK_AND_ASSIGN(const StoredDocument a, store_->TakeSnapshot().Get("k4"));
  ASSERT_OK_AND_ASSIGN(const StoredDocument b, copy->TakeSnapshot().Get("k4"));
  EXPECT_EQ(a.id, b.id);
  ASSERT_OK_AND_ASSIGN(const Sequence next, copy->Put(Doc("new", "x")));
  EXPECT_GT(next, a.id);
}

TEST_P(StoreTest, AForkedChildGetsATypedErrorAndTouchesNothing) {
  ASSERT_OK(store_->Put(Doc("a", "x")));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool typed = store_->Put(Doc("b", "child")).status().code() == absl::StatusCode::kFailedPrecondition &&
                       store_->Close().code() == absl::StatusCode::kFailedPrecondition;
    store_.reset();
    _exit(typed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_CODE(Store::Open(path()), kUnavailable) << "the parent still holds the lock";
  ASSERT_OK(store_->Put(Doc("c", "parent")));
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 2u);
}

// A store that another build made: it opens, says so, and works; what this build writes is marked as this build's.
TEST_P(StoreTest, AnotherAnalyzerIdentityIsToldAndReindexCuresIt) {
  ASSERT_OK(store_->Put(Doc("a", "old words")));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Close());
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<catalog::Catalog> catalog,
                         catalog::OpenCatalog(env::PosixEnv(), path(), catalog::Access::kWrite));
    ASSERT_OK_AND_ASSIGN(format::CatalogValue value, catalog->Read());
    value.analyzer_identity = "ashlar-0 unicode-1.0";
    ++value.generation;
    ASSERT_OK(catalog->Commit(value));
  }
  Reopen();
  const Stats stats = store_->GetStats();
  EXPECT_EQ(stats.analyzer_identity, "ashlar-0 unicode-1.0");
  EXPECT_NE(stats.analyzer_identity, stats.analyzer_identity_build);
  ASSERT_OK(store_->Put(Doc("b", "new words")));
  EXPECT_EQ(KeysOf(*store_, "words").size(), 2u);
  ASSERT_OK(store_->Flush());
  EXPECT_EQ(store_->GetStats().segments[1].analyzer_identity, stats.analyzer_identity_build);
  const std::string out = directory_.Sub("cured");
  ASSERT_OK(Reindex(*store_, out));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> cured, Store::Open(out));
  EXPECT_EQ(cured->GetStats().analyzer_identity, stats.analyzer_identity_build);
  EXPECT_EQ(KeysOf(*cured, "words").size(), 2u);
}

std::string OnlyJournal(const std::string& path) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".jnl") found = entry.path().string();
  return found;
}

TEST_P(StoreTest, ACutOrZeroedJournalOfAClosedStoreIsDamage) {
  for (int i = 0; i < 50; ++i) ASSERT_OK(store_->Put(Doc("k" + std::to_string(i), "text")));
  ASSERT_OK(store_->Close());
  store_.reset();
  const std::string journal = OnlyJournal(path());
  const std::string copy = directory_.Sub("copy");
  std::filesystem::copy_file(journal, copy);
  Options reading;
  reading.read_only = true;
  for (const uint64_t size : {uint64_t{1000}, uint64_t{3000}, uint64_t{0}}) {
    std::filesystem::resize_file(journal, size);
    EXPECT_CODE(Store::Open(path(), options_), kDataLoss) << size;
    EXPECT_CODE(Store::Open(path(), reading), kDataLoss) << size;
    std::filesystem::copy_file(copy, journal, std::filesystem::copy_options::overwrite_existing);
  }
  {
    std::fstream file(journal, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(1000);
    file << std::string(std::filesystem::file_size(journal) - 1000, '\0');
  }
  EXPECT_CODE(Store::Open(path(), options_), kDataLoss);
  std::filesystem::copy_file(copy, journal, std::filesystem::copy_options::overwrite_existing);
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 50u);
}

TEST_P(StoreTest, ClosedStandardDescriptorsDoNotBecomeFilesOfTheStore) {
  ASSERT_OK(store_->Close());
  store_.reset();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int fd = 0; fd <= 2; ++fd) close(fd);
    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path(), options_);
    bool good = store.ok() && (*store)->Put(Doc("a", "x")).ok();
    for (int fd = 1; fd <= 2; ++fd) good = good && write(fd, "junk", 4) == -1;
    char byte;
    good = good && read(0, &byte, 1) == -1 && (*store)->Close().ok();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 1u);
}

TEST(MemoryStoreTest, HasTheSameInterface) {
  for (const OpenMode mode : {OpenMode::kMapped, OpenMode::kArray}) {
    Options options;
    options.open_mode = mode;
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, Store::OpenInMemory(TestSchema(), options));
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK(store->Put(Doc("k" + std::to_string(i % 50), "text " + std::to_string(i))));
      if (i % 40 == 39) ASSERT_OK(store->Flush());
    }
    ASSERT_OK(store->Merge());
    EXPECT_EQ(store->TakeSnapshot().document_count(), 50u);
    EXPECT_EQ(KeysOf(*store, "199"), std::vector<std::string>{"k49"});
    ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, store->Check());
    EXPECT_TRUE(findings.empty()) << findings[0].message;
    const Snapshot snapshot = store->TakeSnapshot();
    store.reset();
    EXPECT_OK(snapshot.Get("k1"));
  }
}

TEST(StoreQueryTest, BadQueriesAndOptionsAreTyped) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::OpenInMemory(TestSchema()));
  ASSERT_OK(store->Put(Doc("a", "one two")));
  EXPECT_CODE(store->Prepare(""), kInvalidArgument);
  EXPECT_CODE(store->Prepare("-one"), kInvalidArgument);
  EXPECT_CODE(store->Prepare("nofield:x"), kInvalidArgument);
  EXPECT_CODE(store->Prepare("year:1999"), kInvalidArgument);
  ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store->Prepare("one"));
  const Snapshot snapshot = store->TakeSnapshot();
  SearchOptions options;
  options.k = 0;
  EXPECT_CODE(snapshot.Search(query, options), kInvalidArgument);
  options.k = 10000000;
  ASSERT_OK_AND_ASSIGN(const SearchResult all, snapshot.Search(query, options));
  EXPECT_EQ(all.hits.size(), 1u);
  options = {};
  options.offset = UINT64_MAX;
  ASSERT_OK_AND_ASSIGN(const SearchResult none, snapshot.Search(query, options));
  EXPECT_TRUE(none.hits.empty());
  EXPECT_EQ(none.total, 1u);
  options = {};
  options.b = 1.5;
  EXPECT_CODE(snapshot.Search(query, options), kInvalidArgument);
  EXPECT_CODE(snapshot.Search(PreparedQuery()), kInvalidArgument);
  const std::vector<Handle> strange = {{7, 0}};
  EXPECT_CODE(snapshot.Fetch(strange), kInvalidArgument);
}

}  // namespace
}  // namespace ashlar
