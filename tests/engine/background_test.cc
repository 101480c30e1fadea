// Work beside the writers: a flush or a merge is held at each of its steps, and meanwhile batches are written,
// documents that are being flushed or merged are replaced and deleted, and answers stay the oracle's. Under
// ThreadSanitizer, too.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "src/base/mutex.h"
#include "src/env/env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

using env::WorkStep;

// Holds the work at one step, until it is let go.
class Holder : public env::WorkObserver {
 public:
  void Reached(WorkStep step) override {
    MutexLock lock(&mutex_);
    if (step != held_at_) return;
    held_ = true;
    changed_.SignalAll();
    while (held_at_ == step) changed_.Wait(&mutex_);
    held_ = false;
  }
  void HoldAt(WorkStep step) {
    MutexLock lock(&mutex_);
    held_at_ = step;
  }
  void WaitUntilHeld() {
    MutexLock lock(&mutex_);
    while (!held_) changed_.Wait(&mutex_);
  }
  void LetGo() {
    MutexLock lock(&mutex_);
    held_at_.reset();
    changed_.SignalAll();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<WorkStep> held_at_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

Schema TestSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"blob", FieldType::kBytes, true, false, false, {}}};
  return schema;
}

class BackgroundTest : public ::testing::Test {
 protected:
  BackgroundTest() : oracle_(TestSchema()), random_(7) {
    env_ = env::PosixEnv();
    env_.observer = &holder_;
    options_.create_if_missing = true;
    options_.scheduler = Scheduler::kBackground;
    options_.durability = Durability::kOs;
    options_.overlay_bytes_max = uint64_t{1} << 20;
    options_.merge_factor = 0;
  }
  ~BackgroundTest() override { holder_.LetGo(); }

  void Open() {
    const Schema schema = TestSchema();
    absl::StatusOr<std::unique_ptr<Store>> opened = OpenOn(env_, directory_.Sub("s"), options_, &schema);
    ASSERT_OK(opened);
    store_ = *std::move(opened);
    EXPECT_EQ(store_->GetStats().scheduler, options_.scheduler);
  }
  void Write(const WriteBatch& batch) {
    const absl::StatusOr<OracleWrite> expected = oracle_.Apply(batch);
    ASSERT_OK(expected);
    const absl::StatusOr<WriteResult> result = store_->Write(batch);
    ASSERT_OK(result);
    EXPECT_EQ(result->sequence, expected->sequence);
    EXPECT_EQ(result->existed, expected->existed);
  }
  static Document Doc(int key, int version, size_t blob_bytes = 0) {
    Document document;
    document.Add("id", "k" + std::to_string(key));
    document.Add("body", "stone wall v" + std::to_string(version) + (version % 2 == 0 ? " arch" : " lime"));
    if (blob_bytes > 0) {
      Prng prng(static_cast<uint64_t>(key) * 1000 + static_cast<uint64_t>(version));
      Blob blob;
      while (blob.bytes.size() < blob_bytes) blob.bytes.push_back(static_cast<char>(prng.Below(256)));
      document.Add("blob", std::move(blob));
    }
    return document;
  }
  void Put(int key, size_t blob_bytes = 0) {
    WriteBatch batch;
    batch.Put(Doc(key, ++version_, blob_bytes));
    Write(batch);
  }
  void Delete(int key) {
    WriteBatch batch;
    batch.Delete("k" + std::to_string(key));
    Write(batch);
  }
  void ExpectRight() {
    ExpectEqual(*store_, store_->TakeSnapshot(), oracle_, &random_, 3);
    ExpectSameDocuments(store_->TakeSnapshot(), oracle_);
  }
  uint64_t Counter(const std::string& name) { return store_->GetStats().counters[name]; }
  // New documents until the overlay is frozen.
  void Fill() {
    while (store_->GetStats().overlay_bytes <= options_.overlay_bytes_max) Put(next_key_++, 2000);
  }
  // Documents of every source die, by deletion and by replacement, and some come.
  void Stir() {
    for (int key = 0; key < next_key_; key += 7) Put(key);
    for (int key = 3; key < next_key_; key += 11) Delete(key);
    Put(next_key_++);
  }
  // A merge that is due, paused while it copies.
  void StopInTheMiddle() {
    holder_.HoldAt(WorkStep::kMergeCopying);
    store_->ResumeMerges();
    holder_.WaitUntilHeld();
    store_->PauseMerges();
    holder_.LetGo();
  }
  void Reopen() {
    ASSERT_OK(store_->Close());
    store_.reset();
    Open();
  }

  const TempDir directory_;
  Holder holder_;
  env::Env env_;
  Options options_;
  Oracle oracle_;
  RandomStore random_;
  std::unique_ptr<Store> store_;
  int version_ = 0;
  int next_key_ = 0;
};

class HeldFlushTest : public BackgroundTest, public ::testing::WithParamInterface<WorkStep> {};
INSTANTIATE_TEST_SUITE_P(Steps, HeldFlushTest, ::testing::Values(WorkStep::kFlushWritten, WorkStep::kFlushCommitted));

TEST_P(HeldFlushTest, BatchesSearchesAndDeletesGoOn) {
  Open();
  for (int i = 0; i < 20; ++i) Put(next_key_++);
  ASSERT_OK(store_->Flush());  // documents of a segment die, too
  const uint64_t flushes = Counter("flushes");
  const Snapshot before = store_->TakeSnapshot();
  const Oracle then = oracle_;

  holder_.HoldAt(GetParam());
  Fill();
  holder_.WaitUntilHeld();
  ExpectRight();
  Stir();
  ExpectRight();
  Stir();  // of what was replaced meanwhile
  ExpectRight();
  ExpectSameDocuments(before, then);
  EXPECT_EQ(Counter("stalls"), 0u);
  EXPECT_EQ(Counter("flushes"), flushes);
  const Snapshot held = store_->TakeSnapshot();
  const Oracle held_oracle = oracle_;

  holder_.LetGo();
  ASSERT_OK(store_->RunPending());
  EXPECT_GT(Counter("flushes"), flushes);
  ExpectRight();
  Stir();
  ExpectRight();
  ExpectSameDocuments(held, held_oracle);
  ExpectCheckClean(*store_);
  Reopen();
  ExpectRight();
  ASSERT_OK(store_->Merge());
  ExpectRight();
  ExpectCheckClean(*store_);
}

// What the catalog says then is the floor of the frozen overlay; the journal has the rest.
TEST_P(HeldFlushTest, AKilledProcessLosesNothing) {
  Open();
  for (int i = 0; i < 20; ++i) Put(next_key_++);
  ASSERT_OK(store_->Flush());
  holder_.HoldAt(GetParam());
  Fill();
  holder_.WaitUntilHeld();
  Stir();
  // A copy of the directory is what a kill leaves.
  const std::string copy = directory_.Sub("copy");
  std::filesystem::copy(directory_.Sub("s"), copy);
  holder_.LetGo();
  ASSERT_OK(store_->Close());
  store_.reset();
  Options options = options_;
  options.read_only = true;
  absl::StatusOr<std::unique_ptr<Store>> opened = OpenOn(env::PosixEnv(), copy, options, nullptr);
  ASSERT_OK(opened);
  ExpectSameDocuments((*opened)->TakeSnapshot(), oracle_);
}

TEST_P(HeldFlushTest, CheckpointsAndChecksAreWhole) {
  Open();
  holder_.HoldAt(GetParam());
  Fill();
  holder_.WaitUntilHeld();
  Stir();
  ASSERT_OK(store_->Checkpoint(directory_.Sub("copy")));
  if (GetParam() == WorkStep::kFlushWritten) (void)store_->Check();  // beside the commit it waits for that
  holder_.LetGo();
  Options options;
  options.read_only = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(directory_.Sub("copy"), options));
  ExpectSameDocuments(copy->TakeSnapshot(), oracle_);
  ExpectCheckClean(*copy);
}

TEST_F(BackgroundTest, MemoryAtItsLimitMakesWritersWait) {
  Open();
  holder_.HoldAt(WorkStep::kFlushWritten);
  Fill();
  holder_.WaitUntilHeld();
  EXPECT_EQ(Counter("stalls"), 0u);
  std::thread writer([this] {
    for (int i = 0; i < 800; ++i) Put(next_key_++, 2000);
  });
  while (Counter("stalls") == 0) std::this_thread::yield();
  EXPECT_LT(store_->GetStats().overlay_bytes, 2 * options_.overlay_bytes_max + 64 * 1024);
  holder_.LetGo();
  writer.join();
  EXPECT_GT(Counter("stall_ns"), 0u);
  ExpectRight();
}

TEST_F(BackgroundTest, AFullDiskFailsTheWriterAtTheLimitAndIsTriedAgain) {
  // Segments can't be made while a directory has their name's place.
  Open();
  for (uint64_t number = 1; number < 3000; ++number) {
    char name[40];
    std::snprintf(name, sizeof name, "segment-%016llx.seg", static_cast<unsigned long long>(number));
    std::filesystem::create_directories(directory_.Sub("s/" + std::string(name) + "/taken"));
  }
  absl::Status refused;
  for (int i = 0; i < 2000 && refused.ok(); ++i) {
    WriteBatch batch;
    batch.Put(Doc(next_key_++, 1, 2000));
    refused = store_->Write(batch).status();
    if (refused.ok()) ASSERT_OK(oracle_.Apply(batch));
  }
  EXPECT_FALSE(refused.ok());
  EXPECT_LT(store_->GetStats().overlay_bytes, 2 * options_.overlay_bytes_max + 64 * 1024);
  EXPECT_FALSE(store_->GetStats().last_failure.empty());
  ExpectRight();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.Sub("s")))
    if (entry.is_directory()) std::filesystem::remove_all(entry.path());
  ASSERT_OK(store_->Put(Doc(next_key_++, 1)));
  EXPECT_GT(Counter("flushes"), 0u);
}

class HeldMergeTest : public BackgroundTest, public ::testing::WithParamInterface<WorkStep> {
 protected:
  // Two segments of which some documents are dead, and a merge of them that is held.
  void BeginMerge() {
    options_.merge_factor = 2;
    Open();
    store_->PauseMerges();
    for (int segment = 0; segment < 2; ++segment) {
      for (int i = 0; i < 40; ++i) Put(next_key_++, 500);
      for (int key = 1; key < next_key_; key += 9) Put(key);
      ASSERT_OK(store_->Flush());
    }
    for (int key = 2; key < next_key_; key += 9) Delete(key);  // beyond the floor
    ASSERT_EQ(Counter("merges"), 0u);
    holder_.HoldAt(GetParam());
    store_->ResumeMerges();
    holder_.WaitUntilHeld();
  }
};
INSTANTIATE_TEST_SUITE_P(Steps, HeldMergeTest,
                         ::testing::Values(WorkStep::kMergeCopying, WorkStep::kMergeWritten,
                                           WorkStep::kMergeCommitted));

TEST_P(HeldMergeTest, BatchesSearchesAndDeletesGoOn) {
  BeginMerge();
  ExpectRight();
  Stir();
  ExpectRight();
  if (GetParam() != WorkStep::kMergeCommitted) ASSERT_OK(store_->Flush());
  Stir();
  ExpectRight();
  const Snapshot held = store_->TakeSnapshot();
  const Oracle held_oracle = oracle_;
  holder_.LetGo();
  ASSERT_OK(store_->RunPending());
  EXPECT_GT(Counter("merges"), 0u);
  ExpectRight();
  Stir();
  ExpectRight();
  ExpectSameDocuments(held, held_oracle);
  ExpectCheckClean(*store_);
  Reopen();
  ExpectRight();
  ExpectCheckClean(*store_);
}

// Who flushes by hand, and so never fills an overlay, gets merges all the same.
TEST_F(BackgroundTest, AFlushWakesTheThreadForMerges) {
  options_.merge_factor = 2;
  Open();
  holder_.HoldAt(WorkStep::kMergeCommitted);
  for (int segment = 0; segment < 2; ++segment) {
    Put(next_key_++);
    ASSERT_OK(store_->Flush());
  }
  holder_.WaitUntilHeld();
  holder_.LetGo();
  ASSERT_OK(store_->RunPending());
  EXPECT_EQ(Counter("merges"), 1u);
  ExpectRight();
}

TEST_F(BackgroundTest, PausedMergesStandStill) {
  options_.merge_factor = 2;
  Open();
  store_->PauseMerges();
  for (int segment = 0; segment < 4; ++segment) {
    Put(next_key_++);
    ASSERT_OK(store_->Flush());
    ASSERT_OK(store_->RunPending());
  }
  EXPECT_EQ(Counter("merges"), 0u);
  EXPECT_TRUE(store_->GetStats().merges_are_paused);
  store_->ResumeMerges();
  ASSERT_OK(store_->RunPending());
  EXPECT_GT(Counter("merges"), 0u);
  ExpectRight();
}

// Closing gives a long merge up at its next block, leaves nothing of it, and the merge is due again.
TEST_F(BackgroundTest, ClosingEndsALongMerge) {
  options_.merge_factor = 2;
  options_.overlay_bytes_max = uint64_t{64} << 20;
  Open();
  store_->PauseMerges();
  for (int segment = 0; segment < 2; ++segment) {
    for (int i = 0; i < 50; ++i) Put(next_key_++, 100'000);
    ASSERT_OK(store_->Flush());
  }
  StopInTheMiddle();
  ASSERT_OK(store_->Close());
  store_.reset();
  size_t segments = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.Sub("s")))
    segments += absl::EndsWith(entry.path().string(), ".seg") ? 1 : 0;
  EXPECT_LE(segments, 2u);
  Open();
  ASSERT_OK(store_->RunPending());
  EXPECT_EQ(store_->TakeSnapshot().segment_count(), 1u);
  ExpectRight();
}

// One that is asked for does not wait for one that is only due.
TEST_F(BackgroundTest, AnAskedMergeGoesFirst) {
  options_.merge_factor = 2;
  Open();
  store_->PauseMerges();
  for (int segment = 0; segment < 3; ++segment) {
    for (int i = 0; i < 30; ++i) Put(next_key_++, 500);
    ASSERT_OK(store_->Flush());
  }
  StopInTheMiddle();
  ASSERT_OK(store_->Merge(1));
  EXPECT_EQ(store_->TakeSnapshot().segment_count(), 1u);
  ExpectRight();
}

TEST(SchedulerTest, StoresOnDiskHaveAThreadUnlessTheyAreToldOtherwise) {
  const TempDir directory;
  const Schema schema = TestSchema();
  Options options;
  options.create_if_missing = true;
  ASSERT_OK_AND_ASSIGN(const auto on_disk, Store::Open(directory.Sub("auto"), options, &schema));
  EXPECT_EQ(on_disk->GetStats().scheduler, Scheduler::kBackground);
  ASSERT_OK_AND_ASSIGN(const auto in_memory, Store::OpenInMemory(schema, options));
  EXPECT_EQ(in_memory->GetStats().scheduler, Scheduler::kCooperative);
  options.scheduler = Scheduler::kCooperative;
  ASSERT_OK_AND_ASSIGN(const auto without, Store::Open(directory.Sub("cooperative"), options, &schema));
  EXPECT_EQ(without->GetStats().scheduler, Scheduler::kCooperative);
  options.scheduler = Scheduler::kBackground;
  ASSERT_OK_AND_ASSIGN(const auto asked_for, Store::OpenInMemory(schema, options));
  EXPECT_EQ(asked_for->GetStats().scheduler, Scheduler::kBackground);
  ASSERT_OK(on_disk->Close());
  options.scheduler = Scheduler::kAuto;
  options.read_only = true;
  options.create_if_missing = false;
  ASSERT_OK_AND_ASSIGN(const auto reader, Store::Open(directory.Sub("auto"), options));
  EXPECT_EQ(reader->GetStats().scheduler, Scheduler::kCooperative);
}

// Everything at once; the answers are looked at when all is quiet, and pairs all the time (concurrency_test).
TEST_F(BackgroundTest, ManyWritersWhileFlushesAndMergesRun) {
  options_.merge_factor = 2;
  options_.overlay_bytes_max = 64 * 1024;
  options_.merge_bytes_per_second = uint64_t{64} << 20;
  Open();
  constexpr int kWriters = 3, kDocuments = 150;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([this, w] {
      for (int i = 0; i < kDocuments; ++i) EXPECT_OK(store_->Put(Doc(w * 1000 + i % 40, i, 1000)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(store_->AddFields({{"extra", FieldType::kText, true, true, false, {}}}));
  ASSERT_OK(store_->RunPending());
  EXPECT_EQ(store_->TakeSnapshot().document_count(), uint64_t{kWriters * 40});
  EXPECT_GT(Counter("flushes"), 0u);
  EXPECT_GE(store_->GetStats().write_amplification, 1.0);
  ExpectCheckClean(*store_);
  ASSERT_OK(store_->Close());
}

}  // namespace
}  // namespace ashlar::testing
