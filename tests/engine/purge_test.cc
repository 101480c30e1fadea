// Purge: what was deleted is in no file of the directory any more, and it was before.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "src/base/prng.h"
#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

Schema PurgeSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"tag", FieldType::kKeyword, true, false, true, {}},
                   {"raw", FieldType::kBytes, true, false, false, {}}};
  return schema;
}

// Kinds of files, by name without the number, in which some bytes are.
std::set<std::string> FilesWith(const std::string& directory, const std::string& bytes) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (content.find(bytes) == std::string::npos) continue;
    const std::string name = entry.path().filename().string();
    found.insert(name.find("spare") != std::string::npos ? "spare" : name.substr(0, name.find_first_of("-.")));
  }
  return found;
}

using Kinds = std::set<std::string>;

class PurgeTest : public ::testing::TestWithParam<Scheduler> {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    if (store_ != nullptr) ASSERT_OK(store_->Close());
    store_.reset();
    Options options;
    options.create_if_missing = true;
    options.merge_factor = 0;
    options.scheduler = GetParam();
    const Schema schema = PurgeSchema();
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path(), options, &schema);
    ASSERT_OK(store);
    store_ = *std::move(store);
  }
  void TearDown() override {
    ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, store_->Check());
    for (const Finding& finding : findings) ADD_FAILURE() << finding.message;
  }
  std::string path() const { return directory_.Sub("store"); }
  Kinds With(const std::string& bytes) const { return FilesWith(path(), bytes); }

  // Different for each number, and incompressible.
  static Document Filler(uint64_t number) {
    Document document;
    Prng random(number + 1);
    std::string noise;
    for (int i = 0; i < 40; ++i) noise += static_cast<char>(random.Next());
    document.Add("id", "filler" + std::to_string(number))
        .Add("body", "granite wall number" + std::to_string(number))
        .Add("tag", std::string(number % 2 == 0 ? "even" : "odd"))
        .Add("raw", Blob{noise});
    return document;
  }
  void PutFillers(uint64_t first, uint64_t count) {
    WriteBatch batch;
    for (uint64_t i = first; i < first + count; ++i) batch.Put(Filler(i));
    ASSERT_OK(store_->Write(batch));
  }

  const std::string key_ = "qZ7keyQx", term_ = "qz7termqx", tag_ = "qZ7tagQx";
  std::string noise_ = [] {
    Prng random(99);
    std::string noise;
    for (int i = 0; i < 64; ++i) noise += static_cast<char>(random.Next());
    return noise;
  }();
  Document Secret() const {
    Document document;
    document.Add("id", key_).Add("body", "granite " + term_).Add("tag", tag_).Add("raw", Blob{noise_});
    return document;
  }

  const TempDir directory_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Schedulers, PurgeTest, ::testing::Values(Scheduler::kCooperative, Scheduler::kBackground),
                         [](const auto& param) {
                           return param.param == Scheduler::kCooperative ? "cooperative" : "background";
                         });

TEST_P(PurgeTest, KeyTermTextAndKeywordAreGoneFromEveryFile) {
  PutFillers(0, 300);
  ASSERT_OK(store_->Put(Secret()));
  ASSERT_OK(store_->Flush());
  EXPECT_TRUE(With(term_).contains("spare")) << "the journal's file was set aside";
  PutFillers(300, 10);
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Delete(key_));
  for (const std::string& bytes : {key_, term_, tag_, noise_}) EXPECT_TRUE(With(bytes).contains("segment")) << bytes;
  EXPECT_TRUE(With(term_).contains("journal")) << "the file is used again, and what it held lies behind the delete";
  EXPECT_TRUE(With(key_).contains("journal"));
  ASSERT_OK(store_->Purge(2));
  EXPECT_EQ(store_->GetStats().segments.size(), 2u);
  EXPECT_EQ(store_->GetStats().deleted, 0u);
  EXPECT_EQ(store_->GetStats().counters.at("purges"), 1u);
  for (const std::string& bytes : {key_, term_, tag_, noise_}) EXPECT_EQ(With(bytes), Kinds()) << bytes;
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 310u);
  ASSERT_OK(store_->TakeSnapshot().Get("filler7"));
  Open();
  for (const std::string& bytes : {key_, term_, tag_, noise_}) EXPECT_EQ(With(bytes), Kinds()) << bytes;
  ASSERT_OK(store_->Put(Secret()));
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 311u);
}

TEST_P(PurgeTest, WhatWasReplacedAndNeverFlushedIsGoneToo) {
  PutFillers(0, 20);
  ASSERT_OK(store_->Put(Secret()));
  Document other = Filler(1000);
  for (FieldValue& value : other.values)
    if (value.field == "id") value.value = key_;
  ASSERT_OK(store_->Put(other));
  EXPECT_TRUE(With(term_).contains("journal"));
  ASSERT_OK(store_->Purge());
  EXPECT_EQ(With(term_), Kinds());
  EXPECT_EQ(With(noise_), Kinds());
  EXPECT_EQ(With(key_), Kinds({"segment"})) << "the key lives";
}

// Merges take dictionaries over, and with them text of documents that have been gone for long.
TEST_P(PurgeTest, DictionariesAreMadeAnew) {
  const std::string phrase = "an unforgettable sentence, number ";
  WriteBatch batch;
  for (int i = 0; i < 3000; ++i) {
    Document document;
    document.Add("id", "s" + std::to_string(i)).Add("body", phrase + std::to_string(i * 7919));
    batch.Put(document);
  }
  ASSERT_OK(store_->Write(batch));
  PutFillers(0, 2000);
  ASSERT_OK(store_->Flush());
  ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store_->Prepare("unforgettable"));
  ASSERT_OK_AND_ASSIGN(const DeleteResult deleted, store_->DeleteMatching(query));
  EXPECT_EQ(deleted.documents, 3000u);
  ASSERT_OK(store_->Merge());
  EXPECT_EQ(store_->GetStats().deleted, 0u);
  EXPECT_TRUE(With("unforgettable sentence").contains("segment")) << "in the dictionary";
  ASSERT_OK(store_->Purge());
  EXPECT_EQ(With("unforgettable"), Kinds());
  EXPECT_EQ(store_->TakeSnapshot().document_count(), 2000u);
}

TEST_P(PurgeTest, OldValuesOfTheCatalogAreGone) {
  const auto old = [](uint64_t i) { return "watermark of long ago " + std::to_string(i) + std::string(50 * i, '.'); };
  WriteOptions options;
  for (uint64_t i = 0; i < 40; ++i) {
    options.watermark = old(i);
    ASSERT_OK(store_->Write(WriteBatch(), options));
    ASSERT_OK(store_->Flush());
  }
  options.watermark = "new";
  ASSERT_OK(store_->Write(WriteBatch(), options));
  for (uint64_t i = 0; i < 4; ++i) {
    PutFillers(i, 1);
    ASSERT_OK(store_->Flush());
  }
  EXPECT_TRUE(With("watermark of long ago").contains("catalog")) << "in a free page";
  ASSERT_OK(store_->Purge());
  EXPECT_EQ(With("watermark of long ago"), Kinds());
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "new");
  Open();
  EXPECT_EQ(store_->TakeSnapshot().watermark(), "new");
  PutFillers(10, 1);
  ASSERT_OK(store_->Flush());
}

TEST_P(PurgeTest, SnapshotsThatHoldOldFilesAreNamed) {
  PutFillers(0, 5);
  ASSERT_OK(store_->Flush());
  std::optional<Snapshot> held = store_->TakeSnapshot();
  const Sequence sequence = held->sequence();
  ASSERT_OK(store_->Put(Secret()));
  ASSERT_OK(store_->Delete(key_));
  const absl::Status status = store_->Purge();
  EXPECT_CODE(status, kFailedPrecondition);
  EXPECT_NE(status.message().find("sequence " + std::to_string(sequence)), std::string::npos) << status;
  EXPECT_EQ(With(term_), Kinds()) << "all else is done";
  EXPECT_OK(held->Get("filler3"));
  const Snapshot now = store_->TakeSnapshot();
  EXPECT_CODE(store_->Purge(), kFailedPrecondition);
  held.reset();
  EXPECT_CODE(store_->Purge(), kFailedPrecondition) << "`now` holds what the second purge replaced";
}

TEST_P(PurgeTest, ReadersGoOverToTheNewCatalog) {
  PutFillers(0, 5);
  Options options;
  options.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(path(), options));
  ASSERT_OK(store_->Purge());
  PutFillers(5, 5);
  ASSERT_OK_AND_ASSIGN(bool fresh, reader->Refresh());
  EXPECT_TRUE(fresh);
  EXPECT_EQ(reader->TakeSnapshot().document_count(), 10u);
  PutFillers(10, 5);
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Purge());
  ASSERT_OK(store_->Purge());
  PutFillers(15, 5);
  ASSERT_OK_AND_ASSIGN(fresh, reader->Refresh());
  EXPECT_EQ(reader->TakeSnapshot().document_count(), 20u);
  ASSERT_OK_AND_ASSIGN(fresh, reader->Refresh());
  EXPECT_FALSE(fresh);
}

TEST_P(PurgeTest, AnEmptyStoreAndOneWithoutLivingDocuments) {
  ASSERT_OK(store_->Purge());
  ASSERT_OK(store_->Put(Secret()));
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Delete(key_));
  ASSERT_OK(store_->Purge());
  EXPECT_EQ(With(key_), Kinds());
  EXPECT_EQ(store_->GetStats().segments.size(), 0u);
}

TEST_P(PurgeTest, IsRefusedWithoutAJournalOrWriting) {
  ASSERT_OK(store_->Close());
  Options options;
  options.durability = Durability::kOff;
  ASSERT_OK_AND_ASSIGN(store_, Store::Open(path(), options));
  EXPECT_CODE(store_->Purge(), kFailedPrecondition);
  Options reading;
  reading.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(path(), reading));
  EXPECT_CODE(reader->Purge(), kFailedPrecondition);
}

// Wherever it is broken off, the store is right and another purge does the rest.
TEST(PurgeFaultTest, BrokenOffAnywhereLeavesARightStore) {
  const Schema schema = PurgeSchema();
  Options options;
  options.create_if_missing = true;
  options.merge_factor = 0;
  options.journal_file_bytes_min = 4096;
  const auto put = [](Store& store, const std::string& key, const std::string& body) {
    Document document;
    document.Add("id", key).Add("body", body);
    return store.Put(document);
  };
  const auto names = [](env::SimDisk& disk, const std::string& bytes) {
    std::string found;
    for (const std::string& name : disk.FileNames()) {
      const absl::StatusOr<ByteBuffer> content = env::ReadFile(*disk.NewProcess().files, name);
      if (!content.ok()) continue;
      const std::string text(reinterpret_cast<const char*>(content->data()), content->size());
      if (text.find(bytes) != std::string::npos) found += name + " ";
    }
    return found;
  };
  int broken_off = 0;
  for (const int error : {EIO, ENOSPC}) {
    bool done = false;
    for (uint64_t nth = 1; !done; ++nth) {
      SCOPED_TRACE(std::to_string(error) + " at operation " + std::to_string(nth));
      env::SimDisk disk(nth);
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
      ASSERT_OK(put(*store, "secretkey", "secretterm granite"));
      ASSERT_OK(put(*store, "a", "granite"));
      ASSERT_OK(store->Flush());
      ASSERT_OK(put(*store, "b", "granite"));
      ASSERT_OK(store->Delete("secretkey"));
      EXPECT_NE(names(disk, "secretterm"), "");
      env::SimFault fault;
      fault.nth = nth;
      fault.error = error;
      disk.AddFault(fault);
      const uint64_t faults = disk.counters().faults;
      const absl::Status status = store->Purge();
      done = disk.counters().faults == faults;
      if (done) ASSERT_OK(status);
      disk.ClearFaults();
      if (!status.ok()) ++broken_off;
      EXPECT_EQ(store->TakeSnapshot().document_count(), 2u);
      if (store->GetStats().state != StoreState::kHealthy || nth % 3 == 0) {
        store->Close().IgnoreError();
        if (nth % 2 == 0) disk.Crash(env::CrashPolicy::Random(nth));
        ASSERT_OK_AND_ASSIGN(store, OpenOn(disk.NewProcess(), "/s", options, nullptr));
      }
      EXPECT_EQ(store->TakeSnapshot().document_count(), 2u);
      ExpectCheckClean(*store);
      ASSERT_OK(store->Purge());
      EXPECT_EQ(names(disk, "secretterm"), "");
      EXPECT_EQ(names(disk, "secretkey"), "");
      ASSERT_OK(put(*store, "c", "granite"));
      ExpectCheckClean(*store);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(broken_off, 50);
}

}  // namespace
}  // namespace ashlar::testing
