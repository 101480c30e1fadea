// The walker: accepts every file that LMDB writes, and keeps LMDB away from every file that is damaged, so that opening and
// reading give the right value or a typed error, and never a signal.
#include <lmdb.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "src/base/site.h"
#include "src/catalog/lmdb_walker.h"
#include "tests/catalog/catalog_harness.h"

namespace ashlar::catalog {
namespace {

std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
void Spill(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class LmdbWalkerTest : public testing::Test {
 protected:
  // A catalog's file after `generations` commits of values with `segments` segments.
  std::string MakeFile(uint64_t generations, size_t segments) {
    auto catalog = OpenCatalog(env_, directory_.path(), Access::kCreate);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    for (uint64_t generation = 1; generation <= generations; ++generation)
      EXPECT_TRUE((*catalog)->Commit(MakeValue(generation, segments)).ok());
    return Slurp(file_);
  }
  absl::StatusOr<LmdbContent> WalkFile() {
    auto file = env_.files->OpenForRead(file_);
    return file.ok() ? WalkLmdb(**file, file_) : absl::StatusOr<LmdbContent>(file.status());
  }
  // Opens and reads a file with these bytes: 0 the right value, 1 a typed error with its place, 2 anything else.
  int Outcome(std::string_view bytes, uint64_t generation, size_t segments) {
    Spill(file_, bytes);
    return Outcome(generation, segments);
  }
  int Outcome(uint64_t generation, size_t segments) {
    auto catalog = OpenCatalog(env_, directory_.path(), Access::kRead);
    const auto value = catalog.ok() ? (*catalog)->Read() : absl::StatusOr<format::CatalogValue>(catalog.status());
    if (value.ok()) return *value == MakeValue(generation, segments) ? 0 : 2;
    return absl::IsDataLoss(value.status()) && PlaceOf(value.status()).has_value() ? 1 : 2;
  }
  // The same for many variants in one child: its exit code, or -1 if a signal ended it.
  template <class Body>
  int InChild(Body body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int state = 0;
    EXPECT_EQ(::waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

  const TemporaryDirectory directory_{/*in_memory=*/true};
  const std::string file_ = directory_ / "catalog.lmdb";
  const env::Env env_ = env::PosixEnv();
};

TEST_F(LmdbWalkerTest, AcceptsEveryStateThatLmdbWrites) {
  // Sizes that grow and shrink: values in the leaf, on one overflow page and on many; the free list grows beyond a page.
  constexpr uint64_t kSeed = 5;
  Prng random(kSeed);
  SCOPED_TRACE(kSeed);
  auto catalog = OpenCatalog(env_, directory_.path(), Access::kCreate);
  ASSERT_TRUE(catalog.ok());
  ASSERT_TRUE(WalkFile().ok());
  EXPECT_TRUE(WalkFile()->entries.empty());
  for (uint64_t generation = 1; generation <= 150; ++generation) {
    const size_t segments = random.OneIn(20) ? random.Below(30000) : random.Below(random.OneIn(3) ? 3000 : 30);
    ASSERT_TRUE((*catalog)->Commit(MakeValue(generation, segments)).ok());
    const auto content = WalkFile();
    ASSERT_TRUE(content.ok()) << "generation " << generation << ": " << content.status();
    ASSERT_EQ(content->entries.size(), std::min<uint64_t>(generation, 2));
    ASSERT_EQ(content->entries.back().generation, generation);
    ASSERT_EQ(*format::DecodeCatalogValue(content->entries.back().value, "walked"), MakeValue(generation, segments));
  }
}

TEST_F(LmdbWalkerTest, AcceptsAStateWithAnOldReader) {
  // A reader elsewhere keeps pages from being used again: long free lists of many transactions.
  auto catalog = OpenCatalog(env_, directory_.path(), Access::kCreate);
  ASSERT_TRUE((*catalog)->Commit(MakeValue(1, 300)).ok());
  int ready[2], stop[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(stop), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    char c = 0;
    const bool ok = mdb_env_create(&env) == 0 && mdb_env_open(env, file_.c_str(), MDB_NOSUBDIR | MDB_RDONLY, 0644) == 0 &&
                    mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn) == 0;
    if (!ok || ::write(ready[1], "r", 1) != 1 || ::read(stop[0], &c, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  for (uint64_t generation = 2; generation <= 100; ++generation) {
    ASSERT_TRUE((*catalog)->Commit(MakeValue(generation, 300)).ok());
    const auto content = WalkFile();
    ASSERT_TRUE(content.ok()) << "generation " << generation << ": " << content.status();
  }
  ASSERT_EQ(::write(stop[1], "s", 1), 1);
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  for (uint64_t generation = 101; generation <= 130; ++generation) {
    ASSERT_TRUE((*catalog)->Commit(MakeValue(generation, 300)).ok());
    ASSERT_TRUE(WalkFile().ok());
  }
  for (const int fd : {ready[0], ready[1], stop[0], stop[1]}) ::close(fd);
}

// Which bytes of a file decide: both metas, every page in a tree, the used part of overflow pages. The others may hold
// anything, and a stride over all of them shows it. With ASHLAR_EVERY_BIT in the environment there is no stride.
TEST_F(LmdbWalkerTest, EveryBitFlipGivesTheRightValueOrATypedError) {
  struct Case {
    uint64_t generations;
    size_t segments;
  };
  for (const Case& c : {Case{7, 4}, Case{8, 100}}) {
    const std::string whole = MakeFile(c.generations, c.segments);
    const auto flip_all = [&] {
      int outcomes[3] = {0, 0, 0};
      const size_t bits = whole.size() * 8;
      std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
      const auto put = [&file](size_t at, char byte) {
        file.seekp(static_cast<std::streamoff>(at));
        file.put(byte).flush();
      };
      for (size_t bit = 0; bit < bits;) {
        put(bit / 8, static_cast<char>(whole[bit / 8] ^ 1 << bit % 8));
        ++outcomes[Outcome(c.generations, c.segments)];
        put(bit / 8, whole[bit / 8]);
        // Metas and page headers whole, the rest in steps that visit every bit of a byte in turn.
        const bool dense = bit / 8 % 4096 < 48 || (bit / 8 < 8192 && bit / 8 % 4096 < 160);
        bit += dense || std::getenv("ASHLAR_EVERY_BIT") != nullptr ? 1 : 131;
      }
      std::printf("%zu bytes: %d flips harmless, %d damage\n", whole.size(), outcomes[0], outcomes[1]);
      std::fflush(stdout);
      return outcomes[2] != 0 ? 1 : outcomes[1] < 1000 || outcomes[0] < 100 ? 2 : 0;
    };
    EXPECT_EQ(InChild(flip_all), 0) << "-1: a signal, 1: a wrong value or an untyped error";
    std::filesystem::remove(file_);
  }
}

// What the walker lets through must be good enough to write to as well.
TEST_F(LmdbWalkerTest, FilesThatAreAcceptedTakeCommits) {
  const std::string whole = MakeFile(8, 100);
  const auto flip_and_commit = [&] {
    int accepted = 0;
    for (size_t bit = 0; bit < whole.size() * 8; bit += bit < 8192 * 8 && bit / 8 % 4096 < 160 ? 7 : 4099) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      Spill(file_, bytes);
      auto catalog = OpenCatalog(env_, directory_.path(), Access::kWrite);
      if (!catalog.ok()) continue;
      ++accepted;
      for (uint64_t generation = 9; generation <= 10; ++generation)
        if (!(*catalog)->Commit(MakeValue(generation, 100)).ok()) return 1;
      if (*(*catalog)->Read() != MakeValue(10, 100) || !(*catalog)->Check()->empty()) return 2;
    }
    return accepted > 50 ? 0 : 3;
  };
  EXPECT_EQ(InChild(flip_and_commit), 0);
}

TEST_F(LmdbWalkerTest, EveryTruncationGivesTheRightValueOrATypedError) {
  const std::string whole = MakeFile(9, 100);
  const auto cut_all = [&] {
    int outcomes[3] = {0, 0, 0};
    const bool every = std::getenv("ASHLAR_EVERY_BIT") != nullptr;
    for (size_t size = 0; size < whole.size(); size += every || size % 4096 < 64 || size % 4096 > 4090 ? 1 : 197)
      ++outcomes[Outcome(whole.substr(0, size), 9, 100)];
    std::printf("%zu bytes: %d truncations harmless, %d damage\n", whole.size(), outcomes[0], outcomes[1]);
    std::fflush(stdout);
    return outcomes[2] != 0 ? 1 : outcomes[1] < 100 ? 2 : 0;
  };
  EXPECT_EQ(InChild(cut_all), 0);
}

TEST_F(LmdbWalkerTest, GarbageAndExchangedPagesAreNoticed) {
  const std::string whole = MakeFile(8, 100);
  const size_t pages = whole.size() / 4096;
  const auto exchange_all = [&] {
    int outcomes[3] = {0, 0, 0};
    Prng random(3);
    for (size_t a = 0; a < pages; ++a) {
      for (size_t b = a + 1; b < pages; ++b) {
        std::string bytes = whole;
        std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a * 4096),
                         bytes.begin() + static_cast<std::ptrdiff_t>(a * 4096 + 4096),
                         bytes.begin() + static_cast<std::ptrdiff_t>(b * 4096));
        ++outcomes[Outcome(bytes, 8, 100)];
      }
      for (int i = 0; i < 8; ++i) {
        std::string bytes = whole;
        const size_t from = a * 4096 + random.Below(4096), n = 1 + random.Below(512);
        for (size_t at = from; at < std::min(from + n, whole.size()); ++at) bytes[at] = static_cast<char>(random.Next());
        ++outcomes[Outcome(bytes, 8, 100)];
      }
    }
    return outcomes[2] != 0 ? 1 : outcomes[1] < 10 ? 2 : 0;
  };
  EXPECT_EQ(InChild(exchange_all), 0);
}

// The one damage that LMDB itself would never notice: the newest meta claims to be older, and LMDB reads the state before.
TEST_F(LmdbWalkerTest, MetaThatLiesAboutItsAgeIsDamage) {
  const std::string whole = MakeFile(10, 4);
  for (const size_t meta : {size_t{0}, size_t{4096}}) {
    for (int change = -4; change <= 4; ++change) {
      if (change == 0) continue;
      std::string bytes = whole;
      uint64_t transaction = 0;
      std::memcpy(&transaction, bytes.data() + meta + 16 + 128, 8);
      transaction += static_cast<uint64_t>(static_cast<int64_t>(change));
      std::memcpy(bytes.data() + meta + 16 + 128, &transaction, 8);
      EXPECT_EQ(Outcome(bytes, 10, 4), 1) << meta << " " << change;
    }
  }
  // An older meta in both places: the file is consistent and old; the journal's and the segments' generations tell.
  std::string bytes = whole;
  std::copy(whole.begin() + 4096 + 10, whole.begin() + 8192, bytes.begin() + 10);
  EXPECT_EQ(Outcome(bytes, 10, 4), 1);
}

// ---- Each check taken away: some damage then gives a wrong value, a lost commit, or a signal.

// Whether a file gives a wrong value, or takes commits and is then wrong. What is refused is right.
bool IsWrong(const env::Env& env, const std::string& directory, uint64_t generation, size_t segments) {
  // Where LMDB may not write its reader table, the walker alone reads.
  const std::string path = env::JoinPath(directory, "catalog.lmdb");
  const auto walked = WalkLmdb(**env.files->OpenForRead(path), path);
  if (walked.ok() && (walked->entries.empty() || walked->entries.back().generation != generation)) return true;
  for (const uint64_t committed : {generation, generation + 1, generation + 2}) {
    auto catalog = OpenCatalog(env, directory, Access::kWrite);
    if (!catalog.ok()) return committed != generation;
    if (committed != generation && !(*catalog)->Commit(MakeValue(committed, segments)).ok()) return true;
    const auto value = (*catalog)->Read();
    if (absl::IsDataLoss(value.status()) && committed == generation) return false;
    if (!value.ok() || *value != MakeValue(committed, segments)) return true;
  }
  return false;
}

// Damage of many kinds, of a file of whole pages: bits of metas, page headers, values and free lists; metas that lie
// about their age; metas in each other's place.
std::vector<std::string> DamagedFiles(const std::string& whole) {
  std::vector<std::string> files;
  const auto flip = [&](size_t bit) {
    files.push_back(whole);
    files.back()[bit / 8] = static_cast<char>(files.back()[bit / 8] ^ 1 << bit % 8);
  };
  for (const size_t meta : {size_t{0}, size_t{4096}}) {
    for (size_t byte = meta + 16; byte < meta + 160; ++byte)
      for (size_t bit = byte * 8 + byte % 3; bit < byte * 8 + 8; bit += 3) flip(bit);
    files.push_back(whole);  // the body of the other
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(4096 - meta) + 16, 140,
                files.back().begin() + static_cast<std::ptrdiff_t>(meta) + 16);
    files.push_back(files.back());  // the same, with its own age
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(meta) + 144, 8,
                files.back().begin() + static_cast<std::ptrdiff_t>(meta) + 144);
  }
  for (size_t page = 2; page < whole.size() / 4096; ++page) {
    for (size_t bit = page * 4096 * 8; bit < (page * 4096 + 24) * 8; bit += 5) flip(bit);
    for (size_t bit = (page * 4096 + 24) * 8; bit < (page + 1) * 4096 * 8; bit += 307) flip(bit);
    // Free lists are at the ends of their pages: page numbers of 8 bytes.
    for (size_t bit = (page * 4096 + 3900) * 8; bit < (page + 1) * 4096 * 8; ++bit)
      if (bit % 64 < 4) flip(bit);
  }
  return files;
}

TEST_F(LmdbWalkerTest, EveryCheckIsNeeded) {
  constexpr uint64_t kGeneration = 10;
  constexpr size_t kSegments = 20;
  const std::string whole = MakeFile(kGeneration, kSegments);
  const std::vector<std::string> damaged = DamagedFiles(whole);
  // The number of the first damaged file that is wrong, 0: none, or what a signal says.
  const auto first_wrong = [&](Site site) {
    int numbers[2];
    EXPECT_EQ(::pipe(numbers), 0);
    const int code = InChild([&] {
      const rlimit seconds{60, 60};  // a damaged file may lead LMDB in a circle
      ::setrlimit(RLIMIT_CPU, &seconds);
      DisableSite(site);
      for (size_t i = 0; i < damaged.size(); ++i) {
        if (::write(numbers[1], &i, sizeof i) != sizeof i) return 2;
        Spill(file_, damaged[i]);
        if (IsWrong(env_, directory_.path(), kGeneration, kSegments)) return 1;
        size_t done = 0;
        if (::read(numbers[0], &done, sizeof done) != sizeof done) return 2;
      }
      return 0;
    });
    size_t last = 0;
    if (code != 0) EXPECT_EQ(::read(numbers[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
    for (const int fd : numbers) ::close(fd);
    std::printf("without %s: %s %zu of %zu damaged files\n", std::string(SiteName(site)).c_str(),
                code == 0 ? "nothing found in" : code == 1 ? "wrong at" : "a signal at", last + 1, damaged.size());
    return code;
  };
  EXPECT_EQ(first_wrong(Site::kNone), 0);
  for (const Site site : {Site::kCatalogWalk, Site::kCatalogMetasInTurn, Site::kCatalogPagesAccounted,
                          Site::kCatalogEntriesOfTransaction, Site::kCheckFramed})
    EXPECT_NE(first_wrong(site), 0) << SiteName(site);
}

// The file goes back under a reader that has it open: LMDB takes its number from the reader table and the tree from the
// meta, and only the generation tells that they do not belong together.
TEST_F(LmdbWalkerTest, FileThatGoesBackWhileItIsOpenIsDamage) {
  const std::string whole = MakeFile(10, 4);
  auto catalog = OpenCatalog(env_, directory_.path(), Access::kRead);
  ASSERT_TRUE(catalog.ok());
  ASSERT_EQ(*(*catalog)->Read(), MakeValue(10, 4));
  std::fstream file(file_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(16);
  file.write(whole.data() + 4096 + 16, 136).flush();
  EXPECT_TRUE(absl::IsDataLoss((*catalog)->Read().status())) << (*catalog)->Read().status();
  DisableSite(Site::kCatalogNewestIsTransaction);
  EXPECT_EQ(*(*catalog)->Read(), MakeValue(9, 4)) << "without the check the older value passes";
  DisableSite(Site::kNone);
}

TEST_F(LmdbWalkerTest, CheckNamesWhatIsWrong) {
  const std::string whole = MakeFile(4, 4);
  const auto content = WalkFile();
  ASSERT_TRUE(content.ok());
  std::string bytes = whole;
  bytes[content->entries[0].offset + 100] ^= 1;  // the older value
  Spill(file_, bytes);
  auto catalog = OpenCatalog(env_, directory_.path(), Access::kRead);
  ASSERT_TRUE(catalog.ok());
  EXPECT_EQ(*(*catalog)->Read(), MakeValue(4, 4));
  const auto findings = (*catalog)->Check();
  ASSERT_TRUE(findings.ok());
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_NE((*findings)[0].message().find("generation 3"), absl::string_view::npos) << (*findings)[0];
  EXPECT_EQ(PlaceOf((*findings)[0])->offset, content->entries[0].offset);
}

}  // namespace
}  // namespace ashlar::catalog
