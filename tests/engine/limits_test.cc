// What is too much gets a typed error that names the limit, costs no memory in proportion, and leaves the store as it
// was; what is just large works.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

Schema BodySchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

Document Doc(const std::string& key, std::string body) {
  Document document;
  document.Add("id", key).Add("body", std::move(body));
  return document;
}

uint64_t CountOf(const Store& store, std::string_view words) {
  const absl::StatusOr<PreparedQuery> prepared = store.Prepare(words);
  EXPECT_OK(prepared);
  const absl::StatusOr<SearchResult> result = store.TakeSnapshot().Search(*prepared);
  EXPECT_OK(result);
  return result.ok() ? result->total : UINT64_MAX;
}

class LimitsTest : public ::testing::Test {
 protected:
  LimitsTest() { Open(BodySchema()); }
  void Open(const Schema& schema, Options options = {}) {
    if (store_ != nullptr) EXPECT_OK(store_->Close());
    store_.reset();
    options.create_if_missing = true;
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path(), options, &schema);
    EXPECT_OK(store);
    store_ = *std::move(store);
  }
  std::string path() const { return directory_.Sub("s"); }

  const TempDir directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(LimitsTest, ADocumentOfOneGibibyte) {
  Options options;
  options.batch_bytes_max = uint64_t{1} << 30;  // there is no higher
  Open(BodySchema(), options);
  ASSERT_OK(store_->Put(Doc("a", "stone")));
  WriteBatch batch;
  batch.Put(Doc("b", std::string(size_t{1} << 30, 'x')));
  const absl::Status status = store_->Write(batch).status();
  EXPECT_CODE(status, kResourceExhausted);
  EXPECT_NE(status.message().find("batch_bytes_max"), std::string::npos) << status;
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 1u);
  ASSERT_OK(store_->Put(Doc("c", "stone")));
}

// The batch is measured before anything is made of it, so it does not matter what is in it.
TEST_F(LimitsTest, ABatchThatIsTooLargeIsNotEvenLookedAt) {
  Options options;
  options.batch_bytes_max = 10'000;
  Open(BodySchema(), options);
  WriteBatch batch;
  for (int i = 0; i < 20; ++i) batch.Put(Doc("", std::string(600, '\xff')));  // no key, no UTF-8
  EXPECT_CODE(store_->Write(batch), kResourceExhausted);
  WriteBatch deletes;
  for (int i = 0; i < 20; ++i) deletes.Delete(std::string(600, 'k'));
  EXPECT_CODE(store_->Write(deletes), kResourceExhausted);
  batch.Clear();
  batch.Put(Doc("a", std::string(9000, 'x')));
  EXPECT_OK(store_->Write(batch));
}

TEST_F(LimitsTest, ALargeDocumentThatFits) {
  std::string body;
  for (int i = 0; body.size() < (size_t{8} << 20); ++i) body += i % 3 == 0 ? "stone " : "wall ";
  body += "last";
  ASSERT_OK(store_->Put(Doc("a", body)));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(CountOf(*store_, "\"wall last\""), 1u);
    ASSERT_OK_AND_ASSIGN(const StoredDocument stored, store_->TakeSnapshot().Get("a"));
    EXPECT_TRUE(*stored.document.Find("body") == Value(body));
    if (round == 0) Open(BodySchema());  // replays
    if (round == 1) ASSERT_OK(store_->Flush());
  }
  ASSERT_OK(store_->Put(Doc("b", "wall")));
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(CountOf(*store_, "wall"), 2u);
  ExpectCheckClean(*store_);
}

TEST_F(LimitsTest, AMillionDistinctTermsInOneDocument) {
  std::string body;
  for (int i = 0; i < 1'000'000; ++i) body += "t" + std::to_string(i) + " ";
  ASSERT_OK(store_->Put(Doc("a", body)));
  EXPECT_EQ(CountOf(*store_, "t999999"), 1u);
  ASSERT_OK(store_->Flush());
  EXPECT_EQ(CountOf(*store_, "t0"), 1u);
  EXPECT_EQ(CountOf(*store_, "\"t499999 t500000\""), 1u);
  EXPECT_EQ(CountOf(*store_, "t1000000"), 0u);
  ASSERT_OK(store_->Put(Doc("b", "t5")));
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(CountOf(*store_, "t5"), 2u);
  ExpectCheckClean(*store_);
}

TEST_F(LimitsTest, AHundredThousandFields) {
  std::vector<Field> fields;
  for (int i = 0; i < 100'000; ++i)
    fields.push_back({"f" + std::to_string(i), FieldType::kText, true, true, false, {}});
  const absl::Status status = store_->AddFields(fields);
  EXPECT_CODE(status, kInvalidArgument);
  EXPECT_NE(status.message().find("1000"), std::string::npos) << status;
  EXPECT_EQ(store_->schema(), BodySchema());
  Schema schema;
  schema.fields = fields;
  EXPECT_CODE(Store::Create(directory_.Sub("other"), schema), kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(directory_.Sub("other")));
  Document document = Doc("a", "stone");
  for (const Field& field : fields) document.Add(field.name, std::string("x"));
  EXPECT_CODE(store_->Put(document), kInvalidArgument) << "unknown fields";
  Document values = Doc("b", "stone");
  for (int i = 0; i < 100'000; ++i) values.Add("body", "value" + std::to_string(i));
  ASSERT_OK(store_->Put(values)) << "values of one field are as many as one likes";
  EXPECT_EQ(CountOf(*store_, "value99999"), 1u);
}

TEST_F(LimitsTest, AsManyFieldsAsThereMayBe) {
  std::vector<Field> fields;
  for (size_t i = 2; i < kFieldsMax; ++i)
    fields.push_back({"f" + std::to_string(i), FieldType::kText, true, true, false, {}});
  ASSERT_OK(store_->AddFields(fields));
  Document document = Doc("a", "stone");
  for (const Field& field : fields) document.Add(field.name, field.name + " wall");
  ASSERT_OK(store_->Put(document));
  EXPECT_EQ(CountOf(*store_, "f999:wall"), 1u);
  ASSERT_OK(store_->Flush());
  EXPECT_CODE(store_->AddFields({{"more", FieldType::kText, true, true, false, {}}}), kInvalidArgument);
  ASSERT_OK(store_->Put(Doc("b", "stone")));
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(CountOf(*store_, "f500:f500"), 1u);
  EXPECT_EQ(CountOf(*store_, "stone"), 2u);
  ExpectCheckClean(*store_);
}

// The process may open so many files more than it has open; gives the limit back at the end.
class FewFiles {
 public:
  explicit FewFiles(size_t more) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlim_t used = 0;  // descriptors are given from the lowest on, so gaps count as free
    size_t free = 0;
    for (; free <= more; ++used)
      if (!std::filesystem::exists("/proc/self/fd/" + std::to_string(used))) ++free;
    rlimit few = before_;
    few.rlim_cur = used - 1;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewFiles() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST_F(LimitsTest, TooManyOpenFiles) {
  ASSERT_OK(store_->Put(Doc("a", "stone")));
  int refused = 0;
  uint64_t documents = 1;
  for (size_t more = 0; more < 12; ++more) {
    SCOPED_TRACE(more);
    {
      const FewFiles few(more);
      EXPECT_EQ(CountOf(*store_, "stone"), documents) << "reading goes on";
      const absl::StatusOr<Sequence> put = store_->Put(Doc("k" + std::to_string(more), "stone"));
      if (put.ok()) ++documents;
      const absl::Status merged = store_->Merge();
      const absl::Status purged = store_->Purge();
      const absl::Status opened = Store::Create(directory_.Sub("other" + std::to_string(more)), BodySchema()).status();
      for (const absl::Status& status : {put.status(), merged, purged, opened}) {
        if (status.ok()) continue;
        ++refused;
        EXPECT_CODE(status, kResourceExhausted);
      }
    }
    EXPECT_EQ(CountOf(*store_, "stone"), documents);
    ASSERT_OK(store_->Merge());
    ExpectCheckClean(*store_);
  }
  EXPECT_GT(refused, 5);
  Open(BodySchema());
  EXPECT_EQ(CountOf(*store_, "stone"), documents);
}

}  // namespace
}  // namespace ashlar::testing
