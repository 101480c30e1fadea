// What every environment promises (src/env/env.h), run over the operating system's files, files in
// memory and the simulated disk.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/env/env.h"
#include "src/env/sim_env.h"
#include "tests/support/sanitizers.h"

namespace ashlar::env {
namespace {

// An environment and an empty directory in it.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Env env() = 0;
  virtual std::string root() = 0;
};

class PosixSubject : public Subject {
 public:
  PosixSubject() {
    std::string name = (std::filesystem::temp_directory_path() / "ashlar_env_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root_ = name;
  }
  ~PosixSubject() override {
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }
  Env env() override { return PosixEnv(); }
  std::string root() override { return root_; }

 private:
  std::string root_;
};

class MemorySubject : public Subject {
 public:
  Env env() override { return memory_->env(); }
  std::string root() override { return ""; }

 private:
  std::unique_ptr<MemoryEnv> memory_ = NewMemoryEnv();
};

class SimSubject : public Subject {
 public:
  Env env() override { return process_; }
  std::string root() override { return "/"; }

 private:
  SimDisk disk_{20240607};
  Env process_ = disk_.NewProcess();
};

struct Kind {
  const char* name;
  std::unique_ptr<Subject> (*make)();
};

class EnvContractTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make();
    env_ = subject_->env();
    files_ = env_.files;
  }

  std::string At(std::string_view name) { return JoinPath(subject_->root(), name); }

  void Put(const std::string& path, std::string_view text) {
    auto file = files_->CreateFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(AsBytes(text)).ok());
    ASSERT_TRUE((*file)->Close().ok());
  }

  std::string Get(const std::string& path) {
    const auto bytes = ReadFile(*files_, path);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? std::string(AsString(*bytes)) : "";
  }

  static std::string ReadAll(const ReadableFile& file) {
    std::array<std::byte, 256> buffer{};
    const auto n = file.ReadAt(0, buffer);
    EXPECT_TRUE(n.ok()) << n.status();
    return n.ok() ? std::string(AsString(ByteSpan(buffer).first(*n))) : "";
  }

  std::vector<std::string> Names(const std::string& directory) {
    std::vector<std::string> names;
    const auto entries = files_->List(directory);
    EXPECT_TRUE(entries.ok()) << entries.status();
    if (!entries.ok()) return names;
    for (const auto& entry : *entries) {
      names.push_back(entry.name);
      if (!entry.is_file) names.back() += '/';
    }
    return names;
  }

  std::unique_ptr<Subject> subject_;
  Env env_;
  FileSystem* files_ = nullptr;
};

using Code = absl::StatusCode;

TEST_P(EnvContractTest, WritesAndReadsBack) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 0u);
  EXPECT_TRUE((*file)->Append(AsBytes("hello ")).ok());
  EXPECT_TRUE((*file)->Append(AsBytes("world")).ok());
  EXPECT_EQ((*file)->size(), 11u);
  EXPECT_TRUE((*file)->WriteAt(0, AsBytes("J")).ok());
  EXPECT_EQ((*file)->size(), 11u);
  EXPECT_TRUE((*file)->Append({}).ok());
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_TRUE(files_->SyncDirectory(subject_->root().empty() ? "." : subject_->root()).ok());
  EXPECT_EQ(Get(At("a")), "Jello world");
  EXPECT_EQ(*files_->FileSize(At("a")), 11u);
}

TEST_P(EnvContractTest, WriteBeyondTheEndFillsWithZeros) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(AsBytes("ab")).ok());
  ASSERT_TRUE((*file)->WriteAt(9000, AsBytes("z")).ok());
  EXPECT_EQ((*file)->size(), 9001u);
  const std::string bytes = Get(At("a"));
  ASSERT_EQ(bytes.size(), 9001u);
  EXPECT_EQ(bytes.substr(0, 2), "ab");
  EXPECT_EQ(bytes.substr(2, 8998), std::string(8998, '\0'));
  EXPECT_EQ(bytes.back(), 'z');
  // Appending goes on after it.
  ASSERT_TRUE((*file)->Append(AsBytes("!")).ok());
  EXPECT_EQ((*file)->size(), 9002u);
}

TEST_P(EnvContractTest, TruncateCutsAndExtendsWithZeros) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(AsBytes(std::string(5000, 'x'))).ok());
  ASSERT_TRUE((*file)->Truncate(3).ok());
  EXPECT_EQ((*file)->size(), 3u);
  EXPECT_EQ(Get(At("a")), "xxx");
  ASSERT_TRUE((*file)->Truncate(6).ok());
  EXPECT_EQ(Get(At("a")), std::string("xxx\0\0\0", 6));
  ASSERT_TRUE((*file)->Append(AsBytes("y")).ok());
  EXPECT_EQ(Get(At("a")), std::string("xxx\0\0\0y", 7));
}

TEST_P(EnvContractTest, SizesThatNoFileCanHaveAreErrors) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->WriteAt(UINT64_MAX, AsBytes("x")).code(), Code::kResourceExhausted);
  EXPECT_EQ((*file)->WriteAt(INT64_MAX, AsBytes("x")).code(), Code::kResourceExhausted);
  EXPECT_EQ((*file)->Truncate(UINT64_MAX).code(), Code::kResourceExhausted);
  EXPECT_EQ((*file)->size(), 0u);
}

TEST_P(EnvContractTest, ClosedFileRefusesEverythingButClose) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_EQ((*file)->Append(AsBytes("x")).code(), Code::kFailedPrecondition);
  EXPECT_EQ((*file)->WriteAt(0, AsBytes("x")).code(), Code::kFailedPrecondition);
  EXPECT_EQ((*file)->Sync().code(), Code::kFailedPrecondition);
  EXPECT_EQ((*file)->Truncate(0).code(), Code::kFailedPrecondition);
}

TEST_P(EnvContractTest, CreateFailsIfTheNameIsThere) {
  Put(At("a"), "first");
  EXPECT_EQ(files_->CreateFile(At("a")).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(Get(At("a")), "first");
  ASSERT_TRUE(files_->CreateDirectory(At("d")).ok());
  EXPECT_EQ(files_->CreateFile(At("d")).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(files_->CreateDirectory(At("d")).code(), Code::kAlreadyExists);
  EXPECT_EQ(files_->CreateDirectory(At("a")).code(), Code::kAlreadyExists);
}

TEST_P(EnvContractTest, MissingNamesAreNotFound) {
  EXPECT_EQ(files_->OpenForRead(At("no")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->OpenForWrite(At("no")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->FileSize(At("no")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->Remove(At("no")).code(), Code::kNotFound);
  EXPECT_EQ(files_->Rename(At("no"), At("other")).code(), Code::kNotFound);
  EXPECT_EQ(files_->List(At("no")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->SyncDirectory(At("no")).code(), Code::kNotFound);
  EXPECT_EQ(files_->MapShared(At("no"), 64, false).status().code(), Code::kNotFound);
  EXPECT_EQ(ReadFile(*files_, At("no")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->CreateFile(At("no/file")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->CreateDirectory(At("no/dir")).code(), Code::kNotFound);
  EXPECT_EQ(files_->Lock(At("no/lock")).status().code(), Code::kNotFound);
  const auto exists = files_->Exists(At("no"));
  ASSERT_TRUE(exists.ok());
  EXPECT_FALSE(*exists);
  EXPECT_TRUE(Names(subject_->root().empty() ? "." : subject_->root()).empty());
}

TEST_P(EnvContractTest, ErrorsNameTheFile) {
  const absl::Status status = files_->OpenForRead(At("some_name")).status();
  const auto place = PlaceOf(status);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->file, At("some_name"));
  EXPECT_NE(status.message().find("some_name"), absl::string_view::npos);
}

TEST_P(EnvContractTest, AFileIsNotADirectory) {
  Put(At("a"), "x");
  EXPECT_EQ(files_->List(At("a")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->SyncDirectory(At("a")).code(), Code::kNotFound);
  EXPECT_EQ(files_->CreateFile(At("a/b")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->OpenForRead(At("a/b")).status().code(), Code::kNotFound);
  const auto exists = files_->Exists(At("a/b"));
  ASSERT_TRUE(exists.ok()) << exists.status();
  EXPECT_FALSE(*exists);
}

TEST_P(EnvContractTest, ADirectoryIsNotAFile) {
  ASSERT_TRUE(files_->CreateDirectory(At("d")).ok());
  Put(At("d/inner"), "x");
  Put(At("a"), "x");
  EXPECT_EQ(files_->OpenForRead(At("d")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->OpenForWrite(At("d")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->FileSize(At("d")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->Lock(At("d")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->MapShared(At("d"), 64, true).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->Rename(At("a"), At("d")).code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->Remove(At("d")).code(), Code::kFailedPrecondition) << "it is not empty";
  EXPECT_TRUE(*files_->Exists(At("d")));
  EXPECT_TRUE(files_->Remove(At("d/inner")).ok());
  EXPECT_TRUE(files_->Remove(At("d")).ok());
  EXPECT_FALSE(*files_->Exists(At("d")));
}

TEST_P(EnvContractTest, OpenForWriteKeepsTheBytes) {
  Put(At("a"), "hello");
  auto file = files_->OpenForWrite(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 5u);
  ASSERT_TRUE((*file)->Append(AsBytes("!")).ok());
  ASSERT_TRUE((*file)->WriteAt(0, AsBytes("H")).ok());
  EXPECT_EQ(Get(At("a")), "Hello!");
}

TEST_P(EnvContractTest, ReadsAreShortOnlyAtTheEnd) {
  Put(At("a"), "0123456789");
  const auto file = files_->OpenForRead(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::array<std::byte, 4> out{};
  EXPECT_EQ(*(*file)->ReadAt(2, out), 4u);
  EXPECT_EQ(AsString(out), "2345");
  EXPECT_EQ(*(*file)->ReadAt(8, out), 2u);
  EXPECT_EQ(AsString(ByteSpan(out).first(2)), "89");
  EXPECT_EQ(*(*file)->ReadAt(10, out), 0u);
  EXPECT_EQ(*(*file)->ReadAt(UINT64_MAX, out), 0u);
  EXPECT_EQ(*(*file)->ReadAt(UINT64_MAX - 3, out), 0u);
  EXPECT_EQ(*(*file)->ReadAt(3, {}), 0u);
  EXPECT_EQ(*(*file)->Size(), 10u);
}

TEST_P(EnvContractTest, ReadExactlySaysWhereAFileEndsTooEarly) {
  Put(At("a"), "0123456789");
  const auto file = files_->OpenForRead(At("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::array<std::byte, 4> out{};
  EXPECT_TRUE(ReadExactly(**file, At("a"), "footer", 6, out).ok());
  EXPECT_EQ(AsString(out), "6789");
  const absl::Status status = ReadExactly(**file, At("a"), "footer", 7, out);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  const auto place = PlaceOf(status);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->file, At("a"));
  EXPECT_EQ(place->section, "footer");
  EXPECT_EQ(place->offset, 7u);
}

TEST_P(EnvContractTest, ReadFileRefusesWhatIsTooLarge) {
  Put(At("a"), "0123456789");
  EXPECT_TRUE(ReadFile(*files_, At("a"), 10).ok());
  EXPECT_EQ(ReadFile(*files_, At("a"), 9).status().code(), Code::kResourceExhausted);
}

TEST_P(EnvContractTest, AReaderSeesWhatIsWrittenLater) {
  auto writer = files_->CreateFile(At("a"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  const auto reader = files_->OpenForRead(At("a"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(ReadAll(**reader), "");
  ASSERT_TRUE((*writer)->Append(AsBytes("later")).ok());
  EXPECT_EQ(ReadAll(**reader), "later");
  EXPECT_EQ(*(*reader)->Size(), 5u);
}

TEST_P(EnvContractTest, RenameReplaces) {
  Put(At("a"), "new");
  Put(At("b"), "old");
  const auto old = files_->OpenForRead(At("b"));
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(files_->Rename(At("a"), At("b")).ok());
  EXPECT_EQ(Get(At("b")), "new");
  EXPECT_FALSE(*files_->Exists(At("a")));
  EXPECT_EQ(ReadAll(**old), "old");
  ASSERT_TRUE(files_->Rename(At("b"), At("b")).ok());
  EXPECT_EQ(Get(At("b")), "new");
}

TEST_P(EnvContractTest, ALinkIsASecondNameOfOneFile) {
  Put(At("a"), "one");
  ASSERT_TRUE(files_->CreateDirectory(At("d")).ok());
  ASSERT_TRUE(files_->Link(At("a"), At("d/b")).ok());
  EXPECT_EQ(Get(At("d/b")), "one");
  {
    const auto file = files_->OpenForWrite(At("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(AsBytes("+two")).ok());
  }
  EXPECT_EQ(Get(At("d/b")), "one+two");
  ASSERT_TRUE(files_->Remove(At("a")).ok());
  EXPECT_EQ(Get(At("d/b")), "one+two");
  Put(At("taken"), "x");
  EXPECT_EQ(files_->Link(At("d/b"), At("taken")).code(), Code::kAlreadyExists);
  EXPECT_EQ(Get(At("taken")), "x");
  EXPECT_EQ(files_->Link(At("a"), At("c")).code(), Code::kNotFound);
  EXPECT_EQ(files_->Link(At("d/b"), At("no/c")).code(), Code::kNotFound);
  EXPECT_EQ(files_->Link(At("d"), At("c")).code(), Code::kFailedPrecondition);
}

TEST_P(EnvContractTest, RenameMovesDirectories) {
  ASSERT_TRUE(files_->CreateDirectory(At("d")).ok());
  ASSERT_TRUE(files_->CreateDirectory(At("d/e")).ok());
  Put(At("d/e/f"), "deep");
  ASSERT_TRUE(files_->Rename(At("d"), At("moved")).ok());
  EXPECT_EQ(Get(At("moved/e/f")), "deep");
  EXPECT_FALSE(*files_->Exists(At("d")));
  EXPECT_FALSE(*files_->Exists(At("d/e/f")));
  EXPECT_EQ(files_->Rename(At("moved"), At("moved/e/again")).code(), Code::kFailedPrecondition);
  Put(At("plain"), "x");
  EXPECT_EQ(files_->Rename(At("moved"), At("plain")).code(), Code::kNotFound);
  ASSERT_TRUE(files_->CreateDirectory(At("full")).ok());
  Put(At("full/x"), "x");
  EXPECT_EQ(files_->Rename(At("moved"), At("full")).code(), Code::kFailedPrecondition);
  ASSERT_TRUE(files_->Remove(At("full/x")).ok());
  EXPECT_TRUE(files_->Rename(At("moved"), At("full")).ok());
  EXPECT_EQ(Get(At("full/e/f")), "deep");
}

TEST_P(EnvContractTest, ListIsSortedAndTellsDirectories) {
  ASSERT_TRUE(files_->CreateDirectory(At("d")).ok());
  for (const char* name : {"d/b", "d/a!", "d/B", "d/c"}) Put(At(name), "x");
  ASSERT_TRUE(files_->CreateDirectory(At("d/a")).ok());
  Put(At("d/a/inner"), "x");
  Put(At("d.x"), "a name that starts like the directory's");
  EXPECT_EQ(Names(At("d")), (std::vector<std::string>{"B", "a/", "a!", "b", "c"}));
  EXPECT_EQ(Names(At("d/a")), std::vector<std::string>{"inner"});
  EXPECT_EQ(Names(At("d/")), Names(At("d")));
}

TEST_P(EnvContractTest, OpenHandlesSurviveRemoval) {
  Put(At("a"), "kept");
  const auto reader = files_->OpenForRead(At("a"));
  ASSERT_TRUE(reader.ok());
  const auto region = (*reader)->Map();
  ASSERT_TRUE(region.ok()) << region.status();
  auto writer = files_->OpenForWrite(At("a"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(files_->Remove(At("a")).ok());
  EXPECT_FALSE(*files_->Exists(At("a")));
  Put(At("a"), "another");
  EXPECT_EQ(ReadAll(**reader), "kept");
  EXPECT_TRUE((*region)->Populate(0, 4).ok());
  EXPECT_EQ(AsString(ByteSpan((*region)->data(), 4)), "kept");
  EXPECT_TRUE((*writer)->Append(AsBytes(" still")).ok());
  EXPECT_EQ(ReadAll(**reader), "kept still");
  EXPECT_EQ(Get(At("a")), "another");
}

TEST_P(EnvContractTest, MapShowsTheFileAndOutlivesTheHandle) {
  std::string bytes(10'000, '\0');
  Prng prng(7);
  for (char& c : bytes) c = static_cast<char>(prng.Next());
  Put(At("a"), bytes);
  std::unique_ptr<MappedRegion> region;
  {
    const auto file = files_->OpenForRead(At("a"));
    ASSERT_TRUE(file.ok());
    auto mapped = (*file)->Map();
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    region = *std::move(mapped);
  }
  ASSERT_EQ(region->size(), bytes.size());
  EXPECT_TRUE(region->Populate(0, region->size()).ok());
  EXPECT_EQ(AsString(ByteSpan(region->data(), region->size())), bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(region->data()) % 4096, 0u) << "sections rely on it";
}

TEST_P(EnvContractTest, MappedBytesStayWhereTheyAre) {
  Put(At("a"), "mapped");
  const auto file = files_->OpenForRead(At("a"));
  ASSERT_TRUE(file.ok());
  const auto region = (*file)->Map();
  ASSERT_TRUE(region.ok());
  auto writer = files_->OpenForWrite(At("a"));
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE((*writer)->Append(AsBytes(std::string(1000, 'x'))).ok());
  EXPECT_EQ((*region)->size(), 6u);
  EXPECT_TRUE((*region)->Populate(0, 6).ok());
  EXPECT_EQ(AsString(ByteSpan((*region)->data(), 6)), "mapped");
}

TEST_P(EnvContractTest, PopulateChecksTheRange) {
  Put(At("a"), std::string(5000, 'x'));
  const auto file = files_->OpenForRead(At("a"));
  ASSERT_TRUE(file.ok());
  const auto region = (*file)->Map();
  ASSERT_TRUE(region.ok());
  EXPECT_TRUE((*region)->Populate(0, 0).ok());
  EXPECT_TRUE((*region)->Populate(5000, 0).ok());
  EXPECT_TRUE((*region)->Populate(4999, 1).ok());
  EXPECT_TRUE((*region)->Populate(4000, 1000).ok());
  EXPECT_EQ((*region)->Populate(4999, 2).code(), Code::kInvalidArgument);
  EXPECT_EQ((*region)->Populate(5001, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ((*region)->Populate(1, UINT64_MAX).code(), Code::kInvalidArgument);
  EXPECT_EQ((*region)->Populate(UINT64_MAX, 2).code(), Code::kInvalidArgument);
}

TEST_P(EnvContractTest, AnEmptyFileMapsToNothing) {
  Put(At("a"), "");
  const auto file = files_->OpenForRead(At("a"));
  ASSERT_TRUE(file.ok());
  const auto region = (*file)->Map();
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ((*region)->size(), 0u);
  EXPECT_TRUE((*region)->Populate(0, 0).ok());
}

TEST_P(EnvContractTest, LockExcludesAndIsReleased) {
  EXPECT_FALSE(*files_->IsLocked(At("LOCK"))) << "a missing file is not locked";
  EXPECT_FALSE(*files_->Exists(At("LOCK"))) << "asking changes nothing";
  auto lock = files_->Lock(At("LOCK"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(*files_->IsLocked(At("LOCK")));
  EXPECT_EQ(files_->Lock(At("LOCK")).status().code(), Code::kUnavailable);
  EXPECT_TRUE(*files_->IsLocked(At("LOCK"))) << "neither asking nor trying releases it";
  auto other = files_->Lock(At("OTHER"));
  EXPECT_TRUE(other.ok()) << other.status();
  lock->reset();
  EXPECT_FALSE(*files_->IsLocked(At("LOCK")));
  EXPECT_TRUE(*files_->Exists(At("LOCK"))) << "the file stays";
  EXPECT_TRUE(*files_->IsLocked(At("OTHER")));
  EXPECT_TRUE(files_->Lock(At("LOCK")).ok());
}

TEST_P(EnvContractTest, LockFollowsTheFileNotTheName) {
  auto lock = files_->Lock(At("LOCK"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(files_->Rename(At("LOCK"), At("MOVED")).ok());
  EXPECT_TRUE(*files_->IsLocked(At("MOVED")));
  EXPECT_FALSE(*files_->IsLocked(At("LOCK")));
  EXPECT_EQ(files_->Lock(At("MOVED")).status().code(), Code::kUnavailable);
}

TEST_P(EnvContractTest, SharedPagesShare) {
  auto writer = files_->MapShared(At("page"), 4096, true);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ((*writer)->size(), 4096u);
  EXPECT_EQ(*files_->FileSize(At("page")), 4096u);
  auto reader = files_->MapShared(At("page"), 4096, false);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->data(), nullptr) << "read-only";
  const SharedPage& page = **reader;
  EXPECT_EQ(page.data()[17], std::byte{0});
  (*writer)->data()[17] = std::byte{42};
  (*writer)->data()[4095] = std::byte{43};
  EXPECT_EQ(page.data()[17], std::byte{42});
  EXPECT_EQ(page.data()[4095], std::byte{43});
  const std::string bytes = Get(At("page"));
  ASSERT_EQ(bytes.size(), 4096u);
  EXPECT_EQ(bytes[17], 42);
  // The bytes stay when nobody has it open, and a second writer keeps them.
  writer->reset();
  reader->reset();
  auto again = files_->MapShared(At("page"), 4096, true);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->data()[17], std::byte{42});
}

TEST_P(EnvContractTest, SharedPageSetsTheSize) {
  Put(At("page"), std::string(100, 'x'));
  EXPECT_EQ(files_->MapShared(At("page"), 4096, false).status().code(), Code::kDataLoss);
  EXPECT_EQ(files_->MapShared(At("page"), 0, true).status().code(), Code::kInvalidArgument);
  auto grown = files_->MapShared(At("page"), 4096, true);
  ASSERT_TRUE(grown.ok()) << grown.status();
  EXPECT_EQ((*grown)->data()[99], std::byte{'x'});
  EXPECT_EQ((*grown)->data()[100], std::byte{0});
  EXPECT_EQ(*files_->FileSize(At("page")), 4096u);
  grown->reset();
  auto cut = files_->MapShared(At("page"), 64, true);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(*files_->FileSize(At("page")), 64u);
}

TEST_P(EnvContractTest, RandomWritesEqualAModel) {
  constexpr uint64_t kSeed = 0x5eed;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Prng prng(kSeed);
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok());
  const auto reader = files_->OpenForRead(At("a"));
  ASSERT_TRUE(reader.ok());
  std::string model;
  for (int round = 0; round < 400; ++round) {
    const std::string bytes(prng.Below(9000), static_cast<char>('a' + prng.Below(26)));
    const uint64_t offset = prng.Below(20'000);
    switch (prng.Below(5)) {
      case 0:
        ASSERT_TRUE((*file)->Truncate(offset).ok());
        model.resize(offset);
        break;
      case 1:
        ASSERT_TRUE((*file)->Append(AsBytes(bytes)).ok());
        model += bytes;
        break;
      case 2: {  // a mapping that lives through later changes must not disturb them
        const auto region = (*reader)->Map();
        ASSERT_TRUE(region.ok());
        ASSERT_EQ(AsString(ByteSpan((*region)->data(), (*region)->size())), model);
        break;
      }
      default:
        ASSERT_TRUE((*file)->WriteAt(offset, AsBytes(bytes)).ok());
        if (!bytes.empty() && model.size() < offset + bytes.size())
          model.resize(offset + bytes.size());
        model.replace(offset < model.size() ? offset : model.size(), bytes.size(), bytes);
    }
    if (model.size() > 60'000) {
      ASSERT_TRUE((*file)->Truncate(100).ok());
      model.resize(100);
    }
    ASSERT_EQ((*file)->size(), model.size());
    ASSERT_EQ(Get(At("a")), model);
  }
}

TEST_P(EnvContractTest, ThreadsReadWhileAnotherWrites) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok());
  const auto reader = files_->OpenForRead(At("a"));
  ASSERT_TRUE(reader.ok());
  constexpr int kRounds = 300;
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto size = (*reader)->Size();
        if (!size.ok()) ++bad;
        if (size.ok() && *size > 0) {
          std::array<std::byte, 1> last{};
          const auto n = (*reader)->ReadAt(*size - 1, last);
          if (!n.ok() || *n != 1 || last[0] != std::byte{'x'}) ++bad;
          const auto region = (*reader)->Map();
          if (!region.ok() || (*region)->data()[0] != std::byte{'x'}) ++bad;
        }
        const std::string own = At(std::to_string(t) + ".txt");
        if (!files_->CreateFile(own).ok() || !files_->Remove(own).ok()) ++bad;
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) EXPECT_TRUE((*file)->Append(AsBytes("xxxxxxxxxxxxxxxx")).ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(Get(At("a")), std::string(16 * kRounds, 'x'));
}

TEST_P(EnvContractTest, ClockGoesForward) {
  const uint64_t first = env_.clock->MonotonicNs();
  const uint64_t second = env_.clock->MonotonicNs();
  EXPECT_GE(second, first);
  EXPECT_GT(env_.clock->WallMs(), 1'600'000'000'000) << "after 2020";
}

TEST_P(EnvContractTest, EntropyDoesNotRepeat) {
  std::array<std::byte, 16> a{};
  std::array<std::byte, 16> b{};
  env_.entropy->Fill(a);
  env_.entropy->Fill(b);
  EXPECT_NE(a, b);
  EXPECT_NE(a, (std::array<std::byte, 16>{}));
  env_.entropy->Fill({});
}

// Sanitizers end the process when an allocation is absurd.
#if defined(ASHLAR_ADDRESS_SANITIZER) || defined(ASHLAR_THREAD_SANITIZER)
#define ASHLAR_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ASHLAR_TEST_SANITIZED
#endif
#endif
#ifndef ASHLAR_TEST_SANITIZED
TEST(MemoryEnvTest, NoMemoryIsAStatus) {
  const std::unique_ptr<MemoryEnv> memory = NewMemoryEnv();
  auto file = memory->env().files->CreateFile("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("kept")).ok());
  constexpr uint64_t kTooMuch = uint64_t{1} << 60;
  EXPECT_EQ((*file)->Truncate(kTooMuch).code(), Code::kResourceExhausted);
  EXPECT_EQ((*file)->WriteAt(kTooMuch, AsBytes("x")).code(), Code::kResourceExhausted);
  EXPECT_EQ(memory->env().files->MapShared("page", kTooMuch, true).status().code(),
            Code::kResourceExhausted);
  EXPECT_EQ((*file)->size(), 4u);
  EXPECT_EQ(AsString(*ReadFile(*memory->env().files, "a")), "kept");
}
#endif

INSTANTIATE_TEST_SUITE_P(
    All, EnvContractTest,
    testing::Values(Kind{"posix", [] { return std::unique_ptr<Subject>(new PosixSubject); }},
                    Kind{"memory", [] { return std::unique_ptr<Subject>(new MemorySubject); }},
                    Kind{"sim", [] { return std::unique_ptr<Subject>(new SimSubject); }}),
    [](const testing::TestParamInfo<Kind>& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace ashlar::env
