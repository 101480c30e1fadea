// What the LMDB catalog does beyond the contract: one environment a process, forks, read-only media, and the first files.
#include <fcntl.h>
#include <lmdb.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "src/base/site.h"
#include "tests/catalog/catalog_harness.h"

namespace ashlar::catalog {
namespace {

class LmdbCatalogTest : public testing::Test {
 protected:
  std::unique_ptr<Catalog> Open(Access access) {
    auto catalog = OpenCatalog(env_, directory_.path(), access);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return catalog.ok() ? *std::move(catalog) : nullptr;
  }
  // Runs `body` in a child and returns its exit code; -1 if a signal ended it.
  template <class Body>
  static int InChild(Body body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int state = 0;
    EXPECT_EQ(::waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

  const TemporaryDirectory directory_;
  const env::Env env_ = env::PosixEnv();
};

TEST_F(LmdbCatalogTest, ReaderFirstThenWriterInOneProcess) {
  ASSERT_TRUE(Open(Access::kCreate)->Commit(MakeValue(1)).ok());
  auto reader = Open(Access::kRead);
  auto writer = Open(Access::kWrite);
  ASSERT_TRUE(writer->Commit(MakeValue(2)).ok());
  EXPECT_EQ(reader->Read()->generation, 2u);
  writer.reset();
  EXPECT_EQ(reader->Read()->generation, 2u);
  EXPECT_TRUE(absl::IsFailedPrecondition(reader->Commit(MakeValue(3))));
  writer = Open(Access::kWrite);
  ASSERT_TRUE(writer->Commit(MakeValue(3)).ok());
  EXPECT_EQ(reader->Read()->generation, 3u);
}

TEST_F(LmdbCatalogTest, SameFileByAnotherPathSharesTheEnvironment) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
  const std::string link = directory_ / "link";
  std::filesystem::create_directory_symlink(directory_.path(), link);
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  auto reader = OpenCatalog(env_, link, Access::kRead);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(descriptors(), before);
  ASSERT_TRUE(writer->Commit(MakeValue(2)).ok());
  EXPECT_EQ((*reader)->Read()->generation, 2u);
}

TEST_F(LmdbCatalogTest, ClosedCatalogLeavesNoDescriptor) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) {
    auto first = Open(Access::kCreate);
    auto second = Open(Access::kRead);
    EXPECT_GT(descriptors(), before);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(LmdbCatalogTest, ChildOfAForkIsRefusedAndMayOpenItsOwn) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
  const int code = InChild([&] {
    if (!absl::IsFailedPrecondition(writer->Read().status())) return 1;
    if (!absl::IsFailedPrecondition(writer->Commit(MakeValue(2)))) return 2;
    writer.reset();  // touches nothing
    auto own = OpenCatalog(env_, directory_.path(), Access::kWrite);
    if (!own.ok()) return 3;
    if ((*own)->Read()->generation != 1) return 4;
    if (!(*own)->Commit(MakeValue(2)).ok()) return 5;
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(writer->Read()->generation, 2u);
  ASSERT_TRUE(writer->Commit(MakeValue(3)).ok());
}

TEST_F(LmdbCatalogTest, ReadersInOtherProcessesSeeOnlyWholeValues) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1, 1)).ok());
  constexpr uint64_t kGenerations = 150;
  const pid_t child = ::fork();
  if (child == 0) {
    uint64_t last = 0;
    while (last < kGenerations) {
      auto reader = OpenCatalog(env_, directory_.path(), Access::kRead);
      if (!reader.ok()) ::_exit(1);
      for (int i = 0; i < 5; ++i) {
        auto value = (*reader)->Read();
        if (!value.ok()) ::_exit(2);
        if (value->generation < last) ::_exit(3);
        if (*value != MakeValue(value->generation, value->generation)) ::_exit(4);
        last = value->generation;
      }
    }
    ::_exit(0);
  }
  for (uint64_t generation = 2; generation <= kGenerations; ++generation)
    ASSERT_TRUE(writer->Commit(MakeValue(generation, generation)).ok());
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 0);
}

TEST_F(LmdbCatalogTest, MapGrowsForThisProcessAndForReaders) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
  int to_child[2], to_parent[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_parent), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto reader = OpenCatalog(env_, directory_.path(), Access::kRead);
    const bool small = reader.ok() && (*reader)->Read().ok();
    char c = 0;
    if (::write(to_parent[1], "r", 1) != 1 || ::read(to_child[0], &c, 1) != 1) ::_exit(1);
    ::_exit(small && (*reader)->Read()->segments.size() == 400000 ? 0 : 2);
  }
  char c = 0;
  ASSERT_EQ(::read(to_parent[0], &c, 1), 1);
  // 22 MB each; with the two kept, the old ones on the free list and copies, more than the 64 MiB of the first map.
  for (uint64_t generation = 2; generation <= 5; ++generation)
    ASSERT_TRUE(writer->Commit(MakeValue(generation, 400000)).ok());
  ASSERT_GT(std::filesystem::file_size(directory_ / "catalog.lmdb"), size_t{64} << 20);
  ASSERT_EQ(::write(to_child[1], "g", 1), 1);
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
  EXPECT_TRUE(writer->Check()->empty());
}

// ---- LMDB's reader table: 126 slots, shared by all processes.

// A process of its own that has `readers` transactions open, until it is killed.
class OtherReaders {
 public:
  OtherReaders(const std::string& path, int readers) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      MDB_env* env = nullptr;
      MDB_txn* txn = nullptr;
      bool ok = mdb_env_create(&env) == 0 &&
                mdb_env_open(env, path.c_str(), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOTLS, 0644) == 0;
      for (int i = 0; i < readers; ++i) ok = ok && mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn) == 0;
      if (!ok || ::write(ready[1], "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char c = 0;
    EXPECT_EQ(::read(ready[0], &c, 1), 1);
    ::close(ready[0]);
  }
  ~OtherReaders() { Kill(); }
  void Kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    EXPECT_EQ(::waitpid(child_, nullptr, 0), child_);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
};

TEST_F(LmdbCatalogTest, FullReaderTableIsATypedErrorAndDeadReadersAreNoReaders) {
  ASSERT_TRUE(Open(Access::kCreate)->Commit(MakeValue(1)).ok());
  OtherReaders others(directory_ / "catalog.lmdb", 126);
  for (const Access access : {Access::kRead, Access::kWrite}) {
    const auto refused = OpenCatalog(env_, directory_.path(), access);
    EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  }
  others.Kill();
  auto writer = Open(Access::kWrite);
  ASSERT_TRUE(writer->Commit(MakeValue(2)).ok());
  EXPECT_EQ(Open(Access::kRead)->Read()->generation, 2u);
}

TEST_F(LmdbCatalogTest, ReaderTableThatFillsUpLaterIsATypedError) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
  OtherReaders others(directory_ / "catalog.lmdb", 126);
  EXPECT_TRUE(absl::IsResourceExhausted(writer->Read().status()));
  ASSERT_TRUE(writer->Commit(MakeValue(2)).ok());  // writing needs no slot
  others.Kill();
  EXPECT_EQ(writer->Read()->generation, 2u);
}

// A reader that was killed in a transaction keeps its pages only until the next commit.
TEST_F(LmdbCatalogTest, DeadReaderDoesNotLetTheFileGrow) {
  const auto bytes_after_commits = [this](bool frees_dead_readers) {
    std::filesystem::remove(directory_ / "catalog.lmdb");
    std::filesystem::remove(directory_ / "catalog.lmdb-lock");
    auto writer = Open(Access::kCreate);
    EXPECT_TRUE(writer->Commit(MakeValue(1, 100)).ok());
    OtherReaders(directory_ / "catalog.lmdb", 1).Kill();
    if (!frees_dead_readers) DisableSite(Site::kCatalogDeadReaders);
    for (uint64_t generation = 2; generation <= 60; ++generation)
      EXPECT_TRUE(writer->Commit(MakeValue(generation, 100)).ok());
    DisableSite(Site::kNone);
    return std::filesystem::file_size(directory_ / "catalog.lmdb");
  };
  EXPECT_LT(bytes_after_commits(true), 100u * 1024);
  EXPECT_GT(bytes_after_commits(false), 400u * 1024) << "without that step the file must grow";
}

// ---- The lock file.

TEST_F(LmdbCatalogTest, DamagedLockFileOfNobodyIsMadeAnew) {
  ASSERT_TRUE(Open(Access::kCreate)->Commit(MakeValue(1)).ok());
  const std::string lock = directory_ / "catalog.lmdb-lock";
  Prng random(7);
  uint64_t generation = 1;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{64}, size_t{4096}, size_t{8192}, size_t{100000}}) {
    for (const Access access : {Access::kWrite, Access::kRead}) {
      std::string garbage(size, 0);
      for (char& c : garbage) c = static_cast<char>(random.Next());
      std::ofstream(lock, std::ios::trunc | std::ios::binary) << garbage;
      auto catalog = Open(access);
      ASSERT_NE(catalog, nullptr) << size;
      EXPECT_EQ(catalog->Read()->generation, generation) << size;
      if (access != Access::kWrite) continue;
      ++generation;
      ASSERT_TRUE(catalog->Commit(MakeValue(generation)).ok()) << size;
    }
  }
}

TEST_F(LmdbCatalogTest, DamagedLockFileOfALivingWriterIsATypedError) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
  const std::string lock = directory_ / "catalog.lmdb-lock";
  // In a child: closing the file here would drop LMDB's locks of this process.
  const auto flip = [&lock](int at) {
    return InChild([&] {
      std::fstream file(lock, std::ios::binary | std::ios::in | std::ios::out);
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      return file.put(static_cast<char>(byte ^ 0x55)).flush() ? 0 : 1;
    });
  };
  for (const int at : {0, 4}) {  // magic, format
    ASSERT_EQ(flip(at), 0);
    const auto code = static_cast<absl::StatusCode>(InChild([this] {
      return static_cast<int>(OpenCatalog(env_, directory_.path(), Access::kRead).status().code());
    }));
    EXPECT_TRUE(code == absl::StatusCode::kDataLoss || code == absl::StatusCode::kUnimplemented) << code;
    ASSERT_EQ(flip(at), 0);
  }
  EXPECT_EQ(InChild([this] { return Open(Access::kRead)->Read()->generation == 1 ? 0 : 1; }), 0);
  ASSERT_TRUE(writer->Commit(MakeValue(2)).ok());
}

TEST_F(LmdbCatalogTest, WithoutALockFileToWriteItStillReads) {
  {
    auto writer = Open(Access::kCreate);
    ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
    ASSERT_TRUE(writer->Commit(MakeValue(2)).ok());
  }
  std::filesystem::remove(directory_ / "catalog.lmdb-lock");
  std::filesystem::permissions(directory_ / "catalog.lmdb", std::filesystem::perms::owner_read);
  std::filesystem::permissions(directory_.path(),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  // As nobody: to root every file is writable.
  const int code = InChild([this] {
    if (::getuid() == 0) {
      std::filesystem::permissions(directory_.path(), std::filesystem::perms(0555));
      std::filesystem::permissions(directory_ / "catalog.lmdb", std::filesystem::perms(0444));
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
    }
    auto reader = OpenCatalog(env_, directory_.path(), Access::kRead);
    if (!reader.ok()) return 2;
    auto value = (*reader)->Read();
    if (!value.ok() || *value != MakeValue(2)) return 3;
    return (*reader)->Check()->empty() ? 0 : 4;
  });
  EXPECT_EQ(code, 0);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "catalog.lmdb-lock"));
}

TEST_F(LmdbCatalogTest, FileThatIsNoCatalogIsDamage) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4096}, size_t{8192}, size_t{20000}}) {
    std::ofstream(directory_ / "catalog.lmdb", std::ios::trunc) << std::string(size, 'x');
    for (const Access access : {Access::kCreate, Access::kWrite, Access::kRead}) {
      const auto catalog = OpenCatalog(env_, directory_.path(), access);
      EXPECT_TRUE(absl::IsDataLoss(catalog.status())) << size << " " << catalog.status();
    }
  }
}

TEST_F(LmdbCatalogTest, CreationThatNeverFinishedIsDoneAgain) {
  std::ofstream(directory_ / "catalog-new.lmdb") << "half";
  ASSERT_TRUE(Open(Access::kCreate)->Commit(MakeValue(1)).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "catalog-new.lmdb"));
  // Not sparse: LMDB maps it, and a full disk must not become a signal.
  EXPECT_GE(std::filesystem::file_size(directory_ / "catalog.lmdb-lock"), 8192u);
}

}  // namespace
}  // namespace ashlar::catalog
