// Threads: writers, readers, flushes and merges at once. Run under ThreadSanitizer, too.
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

Schema PairSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

Document Doc(const std::string& key, const std::string& body) {
  Document document;
  document.Add("id", key).Add("body", body);
  return document;
}

// Every batch replaces both documents of a pair with the same version: no snapshot may see half of it.
TEST(ConcurrencyTest, ReadersSeeWholeBatchesWhileWritersFlushAndMerge) {
  const TempDir directory;
  Options options;
  options.durability = Durability::kOs;
  options.overlay_bytes_max = 64 * 1024;
  options.merge_factor = 3;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Create(directory.Sub("s"), PairSchema(), options));
  constexpr int kWriters = 3, kReaders = 3, kBatches = 120;
  std::atomic<int> writers_left{kWriters};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      const std::string name = "w" + std::to_string(w);
      for (int version = 0; version < kBatches; ++version) {
        WriteBatch batch;
        const std::string body = name + " v" + std::to_string(version) + " common";
        batch.Put(Doc(name + "left", body));
        batch.Put(Doc(name + "right", body));
        EXPECT_OK(store->Write(batch));
        if (version % 40 == 39) EXPECT_OK(store->Flush());
        if (version % 60 == 59) EXPECT_OK(store->Merge());
      }
      writers_left.fetch_sub(1);
    });
  }
  std::atomic<uint64_t> looked{0};
  for (int r = 0; r < kReaders; ++r) {
    threads.emplace_back([&, r] {
      Sequence last = 0;
      while (writers_left.load() > 0 || looked.load() < 20) {
        const Snapshot snapshot = store->TakeSnapshot();
        EXPECT_GE(snapshot.sequence(), last);
        last = snapshot.sequence();
        const std::string name = "w" + std::to_string(r % kWriters);
        const absl::StatusOr<StoredDocument> left = snapshot.Get(name + "left");
        const absl::StatusOr<StoredDocument> right = snapshot.Get(name + "right");
        ASSERT_EQ(left.ok(), right.ok());
        if (left.ok()) ASSERT_EQ(*left->document.Find("body"), *right->document.Find("body"));
        const absl::StatusOr<PreparedQuery> query = store->Prepare("common");
        ASSERT_OK(query);
        const absl::StatusOr<SearchResult> result = snapshot.Search(*query);
        ASSERT_OK(result);
        ASSERT_EQ(result->total, snapshot.document_count());
        ASSERT_EQ(result->total % 2, 0u);
        looked.fetch_add(1);
        (void)store->GetStats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->TakeSnapshot().document_count(), uint64_t{2 * kWriters});
  ExpectCheckClean(*store);
  const Stats stats = store->GetStats();
  EXPECT_EQ(stats.counters.at("batches"), uint64_t{kWriters * kBatches});
}

// Writers that wait together are written together.
TEST(ConcurrencyTest, GroupCommitSharesSyncs) {
  const TempDir directory;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Create(directory.Sub("s"), PairSchema()));
  std::vector<std::thread> threads;
  for (int w = 0; w < 8; ++w) {
    threads.emplace_back([&store, w] {
      for (int i = 0; i < 40; ++i) EXPECT_OK(store->Put(Doc("k" + std::to_string(w * 100 + i), "x")));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Stats stats = store->GetStats();
  EXPECT_EQ(stats.documents, 320u);
  EXPECT_EQ(stats.counters.at("batches"), 320u);
  EXPECT_LE(stats.counters.at("groups"), 320u);
  EXPECT_LE(stats.counters.at("journal_syncs"), stats.counters.at("groups") + 8);
}

// Stands still but for the syncs of a disk, so that a leader waits until all have come whom it waits for; or runs, and nobody waits
// for long.
class SyncClock : public env::Clock {
 public:
  uint64_t MonotonicNs() override { return runs_.load() ? now_ns_ += 10'000'000 : now_ns_.load(); }
  int64_t WallMs() override { return 0; }
  void PassSync() { now_ns_ += 4'000'000; }
  void Run() { runs_.store(true); }

 private:
  std::atomic<uint64_t> now_ns_{1};
  std::atomic<bool> runs_{false};
};

struct SyncedStore {
  SyncedStore() {
    disk.SetHook([this](const env::SimOperation& operation) {
      if (operation.op == env::SimOp::kSync) clock.PassSync();
      return env::SimDisk::Decision();
    });
    env::Env env = disk.NewProcess();
    env.clock = &clock;
    Options options;
    options.create_if_missing = true;
    const Schema schema = PairSchema();
    auto opened = OpenOn(env, "/store", options, &schema);
    EXPECT_OK(opened);
    store = *std::move(opened);
  }
  env::SimDisk disk{1};
  SyncClock clock;
  std::unique_ptr<Store> store;
};

// Whoever was in a group is in the next one, too: once all have been in one, all share each sync.
TEST(GroupCommitTest, WritersDoNotTakeTurnsByHalves) {
  SyncedStore synced;
  constexpr uint64_t kWriters = 8, kGroups = 100;
  std::atomic<uint64_t> begun{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      for (uint64_t i = 0; !stop.load(); ++i) {
        EXPECT_OK(synced.store->Put(Doc("k" + std::to_string(w * 100 + i % 100), "x")));
        if (i == 0) begun.fetch_add(1);
      }
    });
  }
  while (begun.load() < kWriters) std::this_thread::yield();
  const auto before = synced.store->GetStats().counters;
  auto after = before;
  while (after.at("groups") < before.at("groups") + kGroups) after = synced.store->GetStats().counters;
  stop.store(true);
  synced.clock.Run();
  for (std::thread& thread : threads) thread.join();
  const uint64_t groups = after.at("groups") - before.at("groups"), batches = after.at("batches") - before.at("batches");
  // The counters of a group are not raised in one moment.
  EXPECT_LE(groups * kWriters, batches + kWriters);
  EXPECT_LE(after.at("journal_syncs"), after.at("groups") + 8);
}

// The clock stands still: a wait would never end.
TEST(GroupCommitTest, WhoIsAloneDoesNotWait) {
  SyncedStore synced;
  for (int i = 0; i < 50; ++i) ASSERT_OK(synced.store->Put(Doc("k", "alone")));
  std::thread([&] { EXPECT_OK(synced.store->Put(Doc("k", "another one"))); }).join();
  synced.clock.Run();
}

}  // namespace
}  // namespace ashlar::testing
