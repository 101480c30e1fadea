// Files that become shorter, or can't be read, under a mapping.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "ashlar/status.h"
#include "src/env/env.h"
#include "tests/damage/damage_support.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

constexpr int kPerSegment = 400;

// Three segments in a real directory.
class MappedStore {
 public:
  MappedStore() : oracle_(DamageSchema()), directory_(dir_.Sub("s")) {
    Options options;
    options.create_if_missing = true;
    options.durability = Durability::kOs;
    const Schema schema = DamageSchema();
    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(directory_, options, &schema);
    EXPECT_OK(store);
    for (int s = 0; s < 3; ++s) {
      WriteBatch batch;
      for (int i = 0; i < kPerSegment; ++i) batch.Put(DamageDocument(s * kPerSegment + i, s));
      EXPECT_OK((*store)->Write(batch));
      EXPECT_OK(oracle_.Apply(batch));
      EXPECT_OK((*store)->Flush());
    }
    for (const SegmentStats& segment : (*store)->GetStats().segments)
      paths_.push_back(SegmentPath(directory_, segment.id));
    EXPECT_OK((*store)->Close());
  }

  std::unique_ptr<Store> Open(OpenMode mode, bool guard, bool read_only = false) {
    Options options;
    options.open_mode = mode;
    options.sigbus_guard = guard;
    options.read_only = read_only;
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(directory_, options);
    EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }
  const std::string& path(int segment) const { return paths_[segment]; }
  uint64_t size(int segment) const { return std::filesystem::file_size(paths_[segment]); }
  void Truncate(int segment, uint64_t size) const { std::filesystem::resize_file(paths_[segment], size); }
  const Oracle& oracle() const { return oracle_; }
  std::set<DocumentId> IdsOf(int segment) const {
    std::set<DocumentId> ids;
    for (int i = 0; i < kPerSegment; ++i) ids.insert(static_cast<DocumentId>(segment * kPerSegment + i + 1));
    return ids;
  }

 private:
  TempDir dir_;
  Oracle oracle_;
  std::string directory_;
  std::vector<std::string> paths_;
};

const char* const kQueries[] = {"shared", "third stone", "word7 word407 word807", "filler version1"};

absl::StatusOr<SearchResult> Find(const Store& store, const Snapshot& snapshot, const char* words, SearchOptions options) {
  const absl::StatusOr<PreparedQuery> query = store.Prepare(PlainWords(words));
  if (!query.ok()) return query.status();
  return snapshot.Search(*query, options);
}

// Everything is read once, so that nothing is left to be verified.
void Warm(const Store& store, const Oracle& oracle) {
  const Snapshot snapshot = store.TakeSnapshot();
  for (const char* words : kQueries) {
    ASSERT_OK_AND_ASSIGN(const SearchResult result, Find(store, snapshot, words, {}));
    ExpectHits(snapshot, result, oracle.Search(PlainWords(words)));
  }
  uint64_t seen = 0;
  ASSERT_OK(snapshot.Scan(Snapshot::Order::kKey, [&](const StoredDocument&) { return ++seen > 0; }));
  ASSERT_EQ(seen, oracle.document_count());
}

// Runs `work` in a child; what waitpid says.
int StatusOfChild(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// A mapping of two pages of which the second is gone.
std::unique_ptr<env::MappedRegion> MapShortened(const std::string& path, bool guard) {
  const env::Env env = env::PosixEnv();
  auto file = env.files->CreateFile(path);
  if (!file.ok() || !(*file)->Append(ByteBuffer(8192, std::byte{7})).ok()) return nullptr;
  auto readable = env.files->OpenForRead(path);
  auto region = (*readable)->Map();
  if (!region.ok() || (guard && !(*region)->Guard().ok())) return nullptr;
  std::filesystem::resize_file(path, 4096);
  return *std::move(region);
}

std::byte Touch(const std::byte* at) { return *static_cast<const volatile std::byte*>(at); }

extern "C" void EndWith42(int) { ::_exit(42); }
extern "C" void EndWith43(int, siginfo_t*, void*) { ::_exit(43); }

// First in this file, because the guard is installed once in a process, over what it then finds.
TEST(SigbusGuardInAFreshProcess, ForeignFaultsGoToWhoWasThereBefore) {
  TempDir dir;
  int number = 0;
  // `handler` is installed, then the guard; then a page is lost that nobody guards, or the signal is sent.
  const auto end_of = [&](const struct sigaction& handler, bool sent) {
    const std::string ours = dir.Sub(std::to_string(number++)), foreign = dir.Sub(std::to_string(number++));
    return StatusOfChild([&] {
      ::sigaction(SIGBUS, &handler, nullptr);
      const auto guarded = MapShortened(ours, true);
      const auto unguarded = MapShortened(foreign, false);
      if (Touch(guarded->data() + 5000) != std::byte{0}) ::_exit(1);
      if (sent) {
        ::raise(SIGBUS);
      } else {
        Touch(unguarded->data() + 5000);
      }
      ::_exit(9);
    });
  };
  for (const bool sent : {false, true}) {
    SCOPED_TRACE(sent ? "sent" : "fault");
    struct sigaction handler {};
    handler.sa_handler = SIG_DFL;
    const int by_default = end_of(handler, sent);
    EXPECT_TRUE(WIFSIGNALED(by_default) && WTERMSIG(by_default) == SIGBUS) << by_default;
    handler.sa_handler = SIG_IGN;
    const int ignored = end_of(handler, sent);
    if (sent) {
      EXPECT_TRUE(WIFEXITED(ignored) && WEXITSTATUS(ignored) == 9) << ignored;
    } else {
      EXPECT_TRUE(WIFSIGNALED(ignored) && WTERMSIG(ignored) == SIGBUS) << ignored;
    }
    handler.sa_handler = &EndWith42;
    const int plain = end_of(handler, sent);
    EXPECT_TRUE(WIFEXITED(plain) && WEXITSTATUS(plain) == 42) << plain;
    struct sigaction with_info {};
    with_info.sa_sigaction = &EndWith43;
    with_info.sa_flags = SA_SIGINFO | SA_RESETHAND;
    const int informed = end_of(with_info, sent);
    EXPECT_TRUE(WIFEXITED(informed) && WEXITSTATUS(informed) == 43) << informed;
  }
}

TEST(CaseC19, FileShortenedWhileItIsMapped) {
  const uint64_t whole = MappedStore().size(1);
  for (const bool read_before : {false, true}) {
    for (const uint64_t left : {whole / 2, whole - 1, whole / 2 / 4096 * 4096 + 8, uint64_t{0}}) {
      SCOPED_TRACE(left);
      MappedStore store_on_disk;
      const std::unique_ptr<Store> store = store_on_disk.Open(OpenMode::kMapped, true);
      if (read_before) Warm(*store, store_on_disk.oracle());
      store_on_disk.Truncate(1, left);
      const Snapshot snapshot = store->TakeSnapshot();
      for (const char* words : kQueries) {
        SCOPED_TRACE(words);
        const absl::Status status = Find(*store, snapshot, words, {}).status();
        ExpectDamageIn(status, store_on_disk.path(1));
        EXPECT_NE(status.message().find("expected " + std::to_string(whole) + " bytes, found " + std::to_string(left)),
                  absl::string_view::npos)
            << status;
        SearchOptions partial;
        partial.allow_partial = true;
        ASSERT_OK_AND_ASSIGN(const SearchResult result, Find(*store, snapshot, words, partial));
        EXPECT_EQ(result.documents_not_searched, static_cast<uint64_t>(kPerSegment));
        ExpectHits(snapshot, result,
                   store_on_disk.oracle().SearchWithout(store_on_disk.IdsOf(1), PlainWords(words), partial));
      }
      for (int i = 0; i < 3 * kPerSegment; i += 37) {
        const absl::StatusOr<StoredDocument> found = snapshot.Get(DamageKey(i));
        if (i / kPerSegment == 1) {
          ExpectDamageIn(found.status(), store_on_disk.path(1));
        } else {
          ASSERT_OK(found);
          EXPECT_EQ(found->document, store_on_disk.oracle().Get(DamageKey(i))->document);
        }
      }
      EXPECT_EQ(store->GetStats().state, StoreState::kDamaged);
      ASSERT_OK(store->Put(DamageDocument(3, 9))) << "the key is found in another segment";
      ASSERT_OK(store->Flush());
      ExpectDamageIn(store->Merge(), store_on_disk.path(1));
      ASSERT_OK(store->Close());
    }
  }
}

TEST(CaseC19, FileShortenedInTheMiddleOfQueries) {
  for (const int round : {1, 2, 3}) {
    MappedStore made;
    const std::unique_ptr<Store> store = made.Open(OpenMode::kMapped, true);
    Warm(*store, made.oracle());
    std::map<std::string, uint64_t> totals;  // the oracle is for one thread
    for (const char* words : kQueries) totals[words] = made.oracle().Search(PlainWords(words)).total;
    std::atomic<int> queries{0};
    std::atomic<bool> shortened{false};
    std::thread shortener([&] {
      while (queries.load() < 5 * round) std::this_thread::yield();
      made.Truncate(1, made.size(1) / 2 + static_cast<uint64_t>(round) * 777);
      shortened.store(true);
    });
    std::vector<std::thread> readers;
    std::atomic<int> failed{0};
    for (int r = 0; r < 2; ++r) {
      readers.emplace_back([&] {
        int after = 0;
        while (after < 3) {
          after += shortened.load() ? 1 : 0;
          const Snapshot snapshot = store->TakeSnapshot();
          for (const char* words : kQueries) {
            const absl::StatusOr<SearchResult> result = Find(*store, snapshot, words, {});
            queries.fetch_add(1);
            if (result.ok()) {
              EXPECT_EQ(result->total, totals.at(words));
              EXPECT_EQ(after, 0) << "the file is shorter, and " << words << " is answered";
            } else {
              ExpectDamageIn(result.status(), made.path(1));
              failed.fetch_add(1);
            }
          }
        }
      });
    }
    for (std::thread& reader : readers) reader.join();
    shortener.join();
    EXPECT_GT(failed.load(), 0);
    EXPECT_OK(store->Close());
  }
}

TEST(CaseC19, AnArrayDoesNotNotice) {
  MappedStore made;
  const std::unique_ptr<Store> store = made.Open(OpenMode::kArray, true);
  made.Truncate(1, made.size(1) / 2);
  Warm(*store, made.oracle());
  EXPECT_EQ(store->GetStats().state, StoreState::kHealthy);
}

TEST(SigbusGuard, OffMeansThatTheProcessEnds) {
  MappedStore made;
  const int status = StatusOfChild([&] {
    ::signal(SIGBUS, SIG_DFL);  // a sanitizer's
    const std::unique_ptr<Store> store = made.Open(OpenMode::kMapped, false, true);
    Warm(*store, made.oracle());
    struct sigaction installed {};
    ::sigaction(SIGBUS, nullptr, &installed);
    if (installed.sa_handler != SIG_DFL) ::_exit(3);
    made.Truncate(1, 4096);
    (void)Find(*store, store->TakeSnapshot(), "shared", {});
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGBUS);
}

TEST(SigbusGuard, ALostPageReadsAsZerosAndIsTold) {
  TempDir dir;
  const auto region = MapShortened(dir.Sub("f"), true);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(Touch(region->data() + 10), std::byte{7});
  EXPECT_FALSE(region->lost());
  EXPECT_EQ(Touch(region->data() + 5000), std::byte{0});
  EXPECT_TRUE(region->lost());
  EXPECT_EQ(Touch(region->data() + 10), std::byte{7});
  const absl::Status status = region->Populate(0, 100);
  EXPECT_CODE(status, kDataLoss);
  EXPECT_NE(status.message().find("expected 8192 bytes, found 4096"), absl::string_view::npos) << status;
  std::filesystem::resize_file(dir.Sub("f"), 8192);
  EXPECT_CODE(region->Populate(0, 100), kDataLoss) << "lost for good";
  // In a child of a fork, too.
  const auto other = MapShortened(dir.Sub("g"), true);
  const int in_child = StatusOfChild([&] {
    if (Touch(other->data() + 5000) != std::byte{0} || !other->lost()) ::_exit(1);
  });
  EXPECT_TRUE(WIFEXITED(in_child) && WEXITSTATUS(in_child) == 0) << in_child;
  EXPECT_FALSE(other->lost());
}

TEST(SigbusGuard, PlacesAreUsedAgain) {
  TempDir dir;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<env::MappedRegion>> regions;
    for (int i = 0; i < 150; ++i) {
      regions.push_back(MapShortened(dir.Sub(std::to_string(round) + "-" + std::to_string(i)), true));
      ASSERT_NE(regions.back(), nullptr);
      EXPECT_FALSE(regions.back()->lost());
    }
    for (size_t i = 0; i < regions.size(); i += 3) Touch(regions[i]->data() + 4096);
    for (size_t i = 0; i < regions.size(); ++i) EXPECT_EQ(regions[i]->lost(), i % 3 == 0) << i;
  }
}

}  // namespace
}  // namespace ashlar::testing
