// The simulated disk: what a crash may leave, what each fault does, and that a seed replays.
#include "src/env/sim_env.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/prng.h"
#include "src/base/status.h"

namespace ashlar::env {
namespace {

using Code = absl::StatusCode;
using Effect = SimFault::Effect;

constexpr uint64_t kSeeds = 400;

class SimEnvTest : public testing::Test {
 protected:
  // A durable directory entry and durable bytes.
  void PutDurable(const std::string& path, std::string_view bytes) {
    auto file = files_->CreateFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(AsBytes(bytes)).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    ASSERT_TRUE(files_->SyncDirectory("/").ok());
  }

  std::unique_ptr<WritableFile> OpenForWrite(const std::string& path) {
    auto file = files_->OpenForWrite(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  // After a crash: the bytes, or "-" if the name is not there.
  static std::string Left(const SimDisk& disk, const std::string& path) {
    const auto bytes = disk.Contents(path);
    if (!bytes.ok()) return "-";
    return std::string(AsString(*bytes));
  }
  std::string LeftBy(const CrashPolicy& policy, const std::string& path) {
    return Left(*disk_.CrashedCopy(policy), path);
  }

  SimDisk disk_{12345};
  FileSystem* files_ = disk_.NewProcess().files;
};

// ------------------------------------------------------------------------------------------------
// Crashes

TEST_F(SimEnvTest, UnsyncedBytesAreKeptOrDropped) {
  PutDurable("a", "synced");
  ASSERT_TRUE(OpenForWrite("a")->Append(AsBytes(" and not")).ok());
  EXPECT_EQ(LeftBy(CrashPolicy::KeepAll(), "a"), "synced and not");
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "synced");
}

TEST_F(SimEnvTest, ASyncedFileWithoutDirectorySyncLosesItsName) {
  auto file = files_->CreateFile("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("x")).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "-");
  EXPECT_EQ(LeftBy(CrashPolicy::KeepAll(), "a"), "x");
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "x");
}

TEST_F(SimEnvTest, ASyncedNameWithoutFileSyncIsAnEmptyFile) {
  auto file = files_->CreateFile("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("x")).ok());
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "");
}

TEST_F(SimEnvTest, ARemovedFileMayComeBack) {
  PutDurable("a", "x");
  ASSERT_TRUE(files_->Remove("a").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "x");
  EXPECT_EQ(LeftBy(CrashPolicy::KeepAll(), "a"), "-");
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "-");
}

TEST_F(SimEnvTest, WhatIsDurableSurvivesEveryCrash) {
  PutDurable("a", std::string(10'000, 'a'));
  PutDurable("b", "b");
  ASSERT_TRUE(files_->CreateDirectory("d").ok());
  PutDurable("d/c", "c");
  ASSERT_TRUE(files_->SyncDirectory("d").ok());
  const uint64_t hash = disk_.DurableHash();
  EXPECT_EQ(disk_.pending_count(), 0u);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk_.CrashedCopy(CrashPolicy::Random(seed));
    ASSERT_EQ(after->DurableHash(), hash) << "seed " << seed;
    ASSERT_EQ(Left(*after, "d/c"), "c");
  }
}

TEST_F(SimEnvTest, HandlesOfBeforeTheCrashFailAndANewProcessGoesOn) {
  PutDurable("a", "x");
  auto writer = OpenForWrite("a");
  const auto reader = files_->OpenForRead("a");
  ASSERT_TRUE(reader.ok());
  const auto region = (*reader)->Map();
  ASSERT_TRUE(region.ok());
  auto lock = files_->Lock("LOCK");
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  disk_.Crash(CrashPolicy::DropAll());

  std::array<std::byte, 1> out{};
  EXPECT_FALSE(writer->Append(AsBytes("y")).ok());
  EXPECT_FALSE(writer->Sync().ok());
  EXPECT_FALSE(writer->Truncate(0).ok());
  EXPECT_FALSE((*reader)->ReadAt(0, out).ok());
  EXPECT_FALSE((*reader)->Size().ok());
  EXPECT_FALSE((*reader)->Map().ok());
  EXPECT_FALSE((*region)->Populate(0, 1).ok());
  EXPECT_FALSE(files_->CreateFile("b").ok());
  EXPECT_FALSE(files_->Remove("a").ok());
  EXPECT_FALSE(files_->Lock("LOCK").ok());

  FileSystem* const fresh = disk_.NewProcess().files;
  auto own = fresh->Lock("LOCK");
  EXPECT_TRUE(own.ok()) << "locks go with their process";
  lock->reset();
  EXPECT_TRUE(*fresh->IsLocked("LOCK")) << "the dead process's handle releases nothing";
  writer.reset();
  EXPECT_EQ(Left(disk_, "a"), "x");
}

TEST_F(SimEnvTest, ARenameIsNeverHalfDone) {
  PutDurable("current", "old");
  PutDurable("next", "new");
  ASSERT_TRUE(files_->Rename("next", "current").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk_.CrashedCopy(CrashPolicy::Random(seed));
    seen.insert(Left(*after, "current") + "," + Left(*after, "next"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old,new", "new,-"}));
}

TEST_F(SimEnvTest, NamesSurviveIndependentlyButInOrderOfTheirOwnChanges) {
  for (const char* name : {"a", "b"}) ASSERT_TRUE(files_->CreateFile(name).ok());
  ASSERT_TRUE(files_->Rename("b", "c").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk_.CrashedCopy(CrashPolicy::Random(seed));
    std::string names;
    for (const std::string& name : after->FileNames()) names += name;
    seen.insert(names);
  }
  // "c" without the file having been created as "b" cannot be told from both kept.
  EXPECT_EQ(seen, (std::set<std::string>{"", "a", "b", "ab", "c", "ac"}));
}

TEST_F(SimEnvTest, ALinkIsDurableWithItsDirectory) {
  PutDurable("a", "x");
  ASSERT_TRUE(files_->Link("a", "b").ok());
  ASSERT_TRUE(files_->Remove("a").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk_.CrashedCopy(CrashPolicy::Random(seed));
    seen.insert(Left(*after, "a") + "," + Left(*after, "b"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"x,x", "x,-", "-,x", "-,-"}));
  EXPECT_EQ(disk_.used_bytes(), 1u);
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a") + LeftBy(CrashPolicy::DropAll(), "b"), "-x");
}

TEST_F(SimEnvTest, ALaterRenameNeedsTheEarlierOne) {
  PutDurable("a", "new");
  PutDurable("b", "old");
  ASSERT_TRUE(files_->Rename("a", "b").ok());
  ASSERT_TRUE(files_->Rename("b", "c").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk_.CrashedCopy(CrashPolicy::Random(seed));
    seen.insert(Left(*after, "a") + "," + Left(*after, "b") + "," + Left(*after, "c"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"new,old,-", "-,new,-", "-,-,new"}));
}

TEST_F(SimEnvTest, ADirectoryThatIsLostTakesItsFilesAlong) {
  ASSERT_TRUE(files_->CreateDirectory("d").ok());
  auto file = files_->CreateFile("d/a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("x")).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("d").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "d/a"), "-");
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "d/a"), "x");
}

TEST_F(SimEnvTest, AMoveBetweenDirectoriesIsSyncedWithEither) {
  for (const char* synced : {"from", "to"}) {
    SimDisk disk(1);
    FileSystem* const files = disk.NewProcess().files;
    ASSERT_TRUE(files->CreateDirectory("from").ok());
    ASSERT_TRUE(files->CreateDirectory("to").ok());
    ASSERT_TRUE(files->SyncDirectory("/").ok());
    ASSERT_TRUE(files->CreateFile("from/a").ok());
    ASSERT_TRUE(files->CreateFile("from/stays").ok());
    ASSERT_TRUE(files->Rename("from/a", "to/b").ok());
    ASSERT_TRUE(files->SyncDirectory(synced).ok());
    // The creation of "from/a" went along: it must not come back when the rest is kept.
    for (const CrashPolicy& policy : {CrashPolicy::DropAll(), CrashPolicy::KeepAll()}) {
      const std::vector<std::string> names = disk.CrashedCopy(policy)->FileNames();
      EXPECT_EQ(std::count(names.begin(), names.end(), "to/b"), 1) << synced;
      EXPECT_EQ(std::count(names.begin(), names.end(), "from/a"), 0) << synced;
    }
  }
}

// A sector of 512 bytes is old or new, never a mix; with garbage off nothing else appears.
TEST_F(SimEnvTest, AnOverwriteIsTornBetweenSectorsOnly) {
  constexpr size_t kSize = 16 * 1024;
  PutDurable("a", std::string(kSize, 'o'));
  ASSERT_TRUE(OpenForWrite("a")->WriteAt(0, AsBytes(std::string(kSize, 'n'))).ok());
  bool torn_at_512 = false;
  bool torn_at_4096 = false;
  bool whole = false;
  bool none = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CrashPolicy policy = CrashPolicy::Random(seed);
    policy.garbage = false;
    const std::string left = LeftBy(policy, "a");
    ASSERT_EQ(left.size(), kSize);
    std::set<size_t> edges;
    for (size_t i = 1; i < kSize; ++i) {
      ASSERT_TRUE(left[i] == 'o' || left[i] == 'n') << "seed " << seed;
      if (left[i] != left[i - 1]) edges.insert(i);
    }
    for (const size_t edge : edges) ASSERT_EQ(edge % 512, 0u) << "seed " << seed;
    const bool pages =
        std::all_of(edges.begin(), edges.end(), [](size_t edge) { return edge % 4096 == 0; });
    torn_at_512 |= !pages;
    torn_at_4096 |= pages && !edges.empty();
    whole |= edges.empty() && left[0] == 'n';
    none |= edges.empty() && left[0] == 'o';
  }
  EXPECT_TRUE(torn_at_512);
  EXPECT_TRUE(torn_at_4096);
  EXPECT_TRUE(whole);
  EXPECT_TRUE(none);
}

// Each sector holds its content as of one of the writes, and a later write may survive an earlier
// one elsewhere.
TEST_F(SimEnvTest, SectorsHoldOneOfTheirVersions) {
  PutDurable("a", std::string(1024, '0'));
  auto file = OpenForWrite("a");
  ASSERT_TRUE(file->WriteAt(0, AsBytes(std::string(100, '1'))).ok());
  ASSERT_TRUE(file->WriteAt(100, AsBytes(std::string(100, '2'))).ok());
  ASSERT_TRUE(file->WriteAt(512, AsBytes(std::string(100, '3'))).ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CrashPolicy policy = CrashPolicy::Random(seed);
    policy.garbage = false;
    const std::string left = LeftBy(policy, "a");
    seen.insert({left[0], left[100], left[512]});
  }
  // Never "02": the sector that holds the second write holds the first.
  EXPECT_EQ(seen, (std::set<std::string>{"000", "100", "120", "003", "103", "123"}));
}

TEST_F(SimEnvTest, GarbageStaysInTheRangeThatWasBeingWritten) {
  const std::string synced(700, 's');
  PutDurable("a", synced);
  ASSERT_TRUE(OpenForWrite("a")->Append(AsBytes(std::string(3000, 'p'))).ok());
  bool garbage = false;
  bool extended_with_zeros = false;
  bool shorter = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string left = LeftBy(CrashPolicy::Random(seed), "a");
    ASSERT_GE(left.size(), 700u);
    ASSERT_LE(left.size(), 3700u);
    ASSERT_EQ(left.substr(0, 700), synced) << "seed " << seed;
    const std::string tail = left.substr(700);
    shorter |= tail.empty();
    extended_with_zeros |= tail.find(std::string(512, '\0')) != std::string::npos;
    garbage |= std::any_of(tail.begin(), tail.end(), [](char c) { return c != 'p' && c != '\0'; });
  }
  EXPECT_TRUE(garbage);
  EXPECT_TRUE(extended_with_zeros);
  EXPECT_TRUE(shorter);
}

TEST_F(SimEnvTest, StaleSectorsComeFromOtherFiles) {
  PutDurable("old", std::string(4096, 'O'));
  ASSERT_TRUE(files_->Remove("old").ok());
  PutDurable("a", "");
  ASSERT_TRUE(OpenForWrite("a")->Append(AsBytes(std::string(4096, 'n'))).ok());
  bool stale = false;
  for (uint64_t seed = 0; seed < 4 * kSeeds && !stale; ++seed) {
    stale = LeftBy(CrashPolicy::Random(seed), "a").find(std::string(512, 'O')) != std::string::npos;
  }
  EXPECT_TRUE(stale);
}

TEST_F(SimEnvTest, ATruncationIsLostOrKeptWithWhatFollows) {
  PutDurable("a", std::string(2000, 'o'));
  auto file = OpenForWrite("a");
  ASSERT_TRUE(file->Truncate(0).ok());
  ASSERT_TRUE(file->Append(AsBytes("n")).ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CrashPolicy policy = CrashPolicy::Random(seed);
    policy.garbage = false;
    std::string left = LeftBy(policy, "a");
    if (left == std::string(2000, 'o')) left = "old";
    seen.insert(left);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old", "", "n", std::string(1, '\0')}));
}

TEST_F(SimEnvTest, SubsetsCanBeEnumerated) {
  PutDurable("a", std::string(2048, '.'));
  auto file = OpenForWrite("a");
  ASSERT_TRUE(files_->CreateFile("b").ok());
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(file->WriteAt(512 * i, AsBytes("x")).ok());
  ASSERT_EQ(disk_.pending_count(), 4u);
  std::set<std::string> seen;
  std::set<uint64_t> hashes;
  for (int bits = 0; bits < 16; ++bits) {
    std::vector<bool> keep;
    for (int i = 0; i < 4; ++i) keep.push_back((bits >> i & 1) != 0);
    const auto after = disk_.CrashedCopy(CrashPolicy::Subset(keep));
    const std::string a = Left(*after, "a");
    std::string state = Left(*after, "b") == "-" ? "-" : "b";
    for (size_t i = 0; i < 3; ++i) state += a[512 * i];
    std::string expected = keep[0] ? "b" : "-";
    for (size_t i = 0; i < 3; ++i) expected += keep[i + 1] ? 'x' : '.';
    EXPECT_EQ(state, expected);
    seen.insert(state);
    hashes.insert(after->DurableHash());
  }
  EXPECT_EQ(seen.size(), 16u);
  EXPECT_EQ(hashes.size(), 16u) << "equal hashes would hide states";
}

TEST_F(SimEnvTest, ACrashedCopyLeavesTheDiskAlone) {
  PutDurable("a", "x");
  auto file = OpenForWrite("a");
  ASSERT_TRUE(file->Append(AsBytes("y")).ok());
  const auto copy = disk_.CrashedCopy(CrashPolicy::DropAll());
  FileSystem* const other = copy->NewProcess().files;
  ASSERT_TRUE(other->Remove("a").ok());
  ASSERT_TRUE(file->Append(AsBytes("z")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Left(disk_, "a"), "xyz");
  EXPECT_EQ(Left(*copy, "a"), "-");
}

TEST_F(SimEnvTest, ASharedPageIsWrittenBackAtSomeTime) {
  auto page = files_->MapShared("page", 512, true);
  ASSERT_TRUE(page.ok());
  auto file = OpenForWrite("page");
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  (*page)->data()[3] = std::byte{'x'};
  EXPECT_EQ(LeftBy(CrashPolicy::KeepAll(), "page")[3], 'x');
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "page")[3], '\0');
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "page")[3], 'x');
  ASSERT_TRUE(file->WriteAt(4, AsBytes("y")).ok());
  EXPECT_EQ((*page)->data()[4], std::byte{'y'});
}

// ------------------------------------------------------------------------------------------------
// Power

TEST_F(SimEnvTest, PowerIsCutInsteadOfAStep) {
  const uint64_t first = disk_.steps();
  for (uint64_t step = 0; step < 5; ++step) {
    SimDisk disk(1);
    disk.CutPowerAtStep(step);
    FileSystem* const files = disk.NewProcess().files;
    auto file = files->CreateFile("a");                     // step 0
    if (file.ok()) (void)(*file)->Append(AsBytes("1"));     // step 1
    if (file.ok()) (void)(*file)->Append(AsBytes("2"));     // step 2
    const bool synced = file.ok() && (*file)->Sync().ok();  // step 3
    const bool named = files->SyncDirectory("/").ok();      // step 4
    EXPECT_EQ(disk.steps(), step);
    EXPECT_TRUE(disk.power_is_cut());
    EXPECT_EQ(synced, step > 3);
    EXPECT_FALSE(named);
    EXPECT_FALSE(files->Exists("a").ok()) << "nothing works without power";
    disk.Crash(CrashPolicy::KeepAll());
    EXPECT_FALSE(disk.power_is_cut());
    const std::array<std::string, 5> expected = {"-", "", "1", "12", "12"};
    EXPECT_EQ(Left(disk, "a"), expected[step]);
    EXPECT_TRUE(disk.NewProcess().files->CreateFile("b").ok()) << "the cut is forgotten";
  }
  EXPECT_EQ(first, 0u);
}

TEST_F(SimEnvTest, TheHookSeesAndDecides) {
  std::vector<std::string> seen;
  disk_.SetHook([&seen](const SimOperation& operation) {
    seen.push_back(std::string(SimOpName(operation.op)) + " " + operation.path);
    SimDisk::Decision decision;
    if (operation.op == SimOp::kSync) decision.error = EIO;
    decision.cut_power = operation.op == SimOp::kRemove;
    return decision;
  });
  auto file = files_->CreateFile("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("x")).ok());
  EXPECT_EQ((*file)->Sync().code(), Code::kInternal);
  EXPECT_FALSE(files_->Remove("a").ok());
  EXPECT_TRUE(disk_.power_is_cut());
  EXPECT_EQ(seen, (std::vector<std::string>{"create a", "write a", "sync a", "remove a"}));
}

// The laboratory has to find what it is built for: the same replacement of a file, done right and
// with a sync left out.
class Replacement {
 public:
  bool sync_file = true;
  bool sync_directory = true;

  // How many crash states break the promise "the old value or the new one, the new one once
  // acknowledged".
  int CountBroken(uint64_t* states) const {
    int broken = 0;
    for (uint64_t cut = 0;; ++cut) {
      SimDisk disk(99);
      FileSystem* const files = disk.NewProcess().files;
      Write(files, "value", "old");
      (void)files->SyncDirectory("/");
      disk.CutPowerAtStep(disk.steps() + cut);
      const bool acknowledged = Write(files, "next", std::string(5000, 'n')) &&
                                files->Rename("next", "value").ok() &&
                                (!sync_directory || files->SyncDirectory("/").ok());
      for (uint64_t seed = 0; seed < 60; ++seed) {
        const CrashPolicy policy = seed == 0   ? CrashPolicy::DropAll()
                                   : seed == 1 ? CrashPolicy::KeepAll()
                                               : CrashPolicy::Random(seed);
        const auto after = disk.CrashedCopy(policy);
        const auto value = after->Contents("value");
        const bool is_new = value.ok() && AsString(*value) == std::string(5000, 'n');
        const bool is_old = value.ok() && AsString(*value) == "old";
        if (!is_new && (acknowledged || !is_old)) ++broken;
        ++*states;
      }
      if (acknowledged) return broken;
    }
  }

 private:
  bool Write(FileSystem* files, const std::string& path, const std::string& bytes) const {
    auto file = files->CreateFile(path);
    return file.ok() && (*file)->Append(AsBytes(bytes)).ok() &&
           ((!sync_file && path != "value") || (*file)->Sync().ok());
  }
};

TEST(SimDriverTest, FindsEveryMissingSync) {
  uint64_t states = 0;
  EXPECT_EQ((Replacement{true, true}).CountBroken(&states), 0);
  EXPECT_GE(states, 5u * 60u);
  EXPECT_GT((Replacement{false, true}).CountBroken(&states), 0) << "no sync of the file";
  EXPECT_GT((Replacement{true, false}).CountBroken(&states), 0) << "no sync of the directory";
}

// ------------------------------------------------------------------------------------------------
// Faults

TEST_F(SimEnvTest, TheNthReadFails) {
  PutDurable("a", "x");
  PutDurable("b", "x");
  disk_.AddFault({.op = SimOp::kRead, .path_contains = "a", .nth = 2, .times = 2});
  const auto a = files_->OpenForRead("a");
  const auto b = files_->OpenForRead("b");
  const auto region = (*a)->Map();
  std::array<std::byte, 1> out{};
  EXPECT_TRUE((*a)->ReadAt(0, out).ok());
  EXPECT_TRUE((*b)->ReadAt(0, out).ok());
  EXPECT_EQ((*a)->ReadAt(0, out).status().code(), Code::kInternal);
  EXPECT_TRUE((*b)->ReadAt(0, out).ok());
  EXPECT_EQ((*region)->Populate(0, 1).code(), Code::kInternal) << "a page fault is a read";
  EXPECT_TRUE((*a)->ReadAt(0, out).ok());
  EXPECT_EQ(disk_.counters().faults, 2u);
}

TEST_F(SimEnvTest, AFailedWriteLeavesAPrefix) {
  std::set<size_t> sizes;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimDisk disk(seed);
    FileSystem* const files = disk.NewProcess().files;
    auto file = files->CreateFile("a");
    ASSERT_TRUE(file.ok());
    disk.AddFault({.op = SimOp::kWrite});
    EXPECT_EQ((*file)->Append(AsBytes("0123456789")).code(), Code::kInternal);
    const std::string left = Left(disk, "a");
    EXPECT_EQ(left, std::string("0123456789").substr(0, left.size()));
    sizes.insert(left.size());
    EXPECT_TRUE((*file)->WriteAt(0, AsBytes("0123456789")).ok()) << "one fault, one failure";
  }
  EXPECT_GT(sizes.size(), 5u);
}

TEST_F(SimEnvTest, AnOperationMayFailAfterItWasDone) {
  disk_.AddFault({.op = SimOp::kCreate, .effect = Effect::kFailsAfterwards});
  EXPECT_EQ(files_->CreateFile("a").status().code(), Code::kInternal);
  EXPECT_TRUE(*files_->Exists("a"));
  disk_.AddFault({.op = SimOp::kRename, .effect = Effect::kFailsAfterwards});
  EXPECT_EQ(files_->Rename("a", "b").code(), Code::kInternal);
  EXPECT_TRUE(*files_->Exists("b"));
  disk_.AddFault({.op = SimOp::kRename});
  EXPECT_EQ(files_->Rename("b", "c").code(), Code::kInternal);
  EXPECT_TRUE(*files_->Exists("b"));
}

TEST_F(SimEnvTest, EveryOperationCanFail) {
  PutDurable("a", "x");
  ASSERT_TRUE(files_->CreateDirectory("d").ok());
  auto writer = OpenForWrite("a");
  const auto reader = files_->OpenForRead("a");
  std::array<std::byte, 1> out{};
  const std::vector<std::pair<SimOp, std::function<absl::Status()>>> calls = {
      {SimOp::kOpen, [&] { return files_->OpenForRead("a").status(); }},
      {SimOp::kOpen, [&] { return files_->OpenForWrite("a").status(); }},
      {SimOp::kRead, [&] { return (*reader)->ReadAt(0, out).status(); }},
      {SimOp::kMap, [&] { return (*reader)->Map().status(); }},
      {SimOp::kStat, [&] { return (*reader)->Size().status(); }},
      {SimOp::kStat, [&] { return files_->FileSize("a").status(); }},
      {SimOp::kStat, [&] { return files_->Exists("a").status(); }},
      {SimOp::kStat, [&] { return files_->IsLocked("a").status(); }},
      {SimOp::kList, [&] { return files_->List("/").status(); }},
      {SimOp::kCreate, [&] { return files_->CreateFile("new").status(); }},
      {SimOp::kWrite, [&] { return writer->Append(AsBytes("y")); }},
      {SimOp::kTruncate, [&] { return writer->Truncate(1); }},
      {SimOp::kSync, [&] { return writer->Sync(); }},
      {SimOp::kRename, [&] { return files_->Rename("new", "newer"); }},
      {SimOp::kLink, [&] { return files_->Link("newer", "again"); }},
      {SimOp::kRemove, [&] { return files_->Remove("newer"); }},
      {SimOp::kCreateDirectory, [&] { return files_->CreateDirectory("e"); }},
      {SimOp::kSyncDirectory, [&] { return files_->SyncDirectory("/"); }},
      {SimOp::kLock, [&] { return files_->Lock("LOCK").status(); }},
      {SimOp::kMapShared, [&] { return files_->MapShared("page", 64, true).status(); }},
  };
  for (const auto& call : calls) {
    SCOPED_TRACE(SimOpName(call.first));
    disk_.AddFault({.op = call.first, .error = ENOMEM});
    EXPECT_EQ(call.second().code(), Code::kResourceExhausted);
    EXPECT_TRUE(call.second().ok()) << call.second();
    disk_.ClearFaults();
  }
}

TEST_F(SimEnvTest, AFailedSyncLosesWhatALaterOneCannotSave) {
  PutDurable("a", "old");
  auto file = OpenForWrite("a");
  ASSERT_TRUE(file->Append(AsBytes("+lost")).ok());
  disk_.AddFault({.op = SimOp::kSync});
  EXPECT_EQ(file->Sync().code(), Code::kInternal);
  EXPECT_EQ(Left(disk_, "a"), "old+lost") << "the page cache still shows it";
  EXPECT_TRUE(file->Sync().ok()) << "which is why a second try proves nothing";
  EXPECT_EQ(LeftBy(CrashPolicy::KeepAll(), "a"), "old");
  ASSERT_TRUE(file->Append(AsBytes("+later")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), std::string("old\0\0\0\0\0+later", 14));
}

TEST_F(SimEnvTest, AFailedSyncMayHaveWorkedOrHalfWorked) {
  PutDurable("a", "");
  auto file = OpenForWrite("a");
  ASSERT_TRUE(file->Append(AsBytes("kept")).ok());
  disk_.AddFault({.op = SimOp::kSync, .sync_loss = CrashPolicy::KeepAll()});
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "kept");
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimDisk disk(seed);
    auto other = disk.NewProcess().files->CreateFile("b");
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE((*other)->Append(AsBytes(std::string(1024, 'x'))).ok());
    CrashPolicy loss = CrashPolicy::Random(0);
    loss.garbage = false;
    disk.AddFault({.op = SimOp::kSync, .sync_loss = loss});
    EXPECT_FALSE((*other)->Sync().ok());
    const auto durable = disk.DurableContents("b");
    ASSERT_TRUE(durable.ok());
    seen.insert(std::string(AsString(*durable)));
  }
  EXPECT_GE(seen.size(), 4u);
}

TEST_F(SimEnvTest, AFullDiskWritesWhatFitsAndRecovers) {
  auto file = files_->CreateFile("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("0123456789")).ok());
  disk_.SetCapacity(disk_.used_bytes() + 4);
  const absl::Status full = (*file)->Append(AsBytes("abcdef"));
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_NE(std::string(full.message()).find("No space left"), std::string::npos);
  EXPECT_EQ((*file)->size(), 14u);
  EXPECT_TRUE((*file)->WriteAt(0, AsBytes("X")).ok()) << "overwriting needs no space";
  EXPECT_EQ((*file)->Truncate(100).code(), Code::kResourceExhausted);
  EXPECT_EQ(files_->MapShared("page", 64, true).status().code(), Code::kResourceExhausted);
  EXPECT_EQ((*file)->WriteAt(1000, AsBytes("far")).code(), Code::kResourceExhausted);
  EXPECT_EQ((*file)->size(), 14u);
  EXPECT_TRUE((*file)->Truncate(10).ok());
  EXPECT_TRUE((*file)->Append(AsBytes("abcd")).ok()) << "freed space is used again";
  disk_.SetCapacity(disk_.used_bytes(), EDQUOT);
  const absl::Status quota = (*file)->Append(AsBytes("x"));
  EXPECT_EQ(quota.code(), Code::kResourceExhausted);
  EXPECT_NE(std::string(quota.message()).find("quota"), std::string::npos);
  disk_.SetCapacity(UINT64_MAX);
  EXPECT_TRUE((*file)->Append(AsBytes("x")).ok());
}

TEST_F(SimEnvTest, AnInterruptedWriteIsHiddenButHasPieces) {
  auto file = files_->CreateFile("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  disk_.AddFault({.op = SimOp::kWrite, .times = 3, .effect = Effect::kInterrupted});
  const uint64_t before = disk_.steps();
  ASSERT_TRUE((*file)->Append(AsBytes(std::string(4000, 'x'))).ok());
  EXPECT_EQ(disk_.steps(), before + 4);
  EXPECT_EQ(Left(disk_, "a"), std::string(4000, 'x'));
  // The power may go between two pieces.
  disk_.AddFault({.op = SimOp::kWrite, .effect = Effect::kInterrupted});
  disk_.CutPowerAtStep(disk_.steps() + 1);
  EXPECT_FALSE((*file)->Append(AsBytes(std::string(4000, 'y'))).ok());
  const std::string left = LeftBy(CrashPolicy::KeepAll(), "a");
  EXPECT_GT(left.size(), 4000u);
  EXPECT_LT(left.size(), 8000u);
}

TEST_F(SimEnvTest, TooManyOpenFiles) {
  PutDurable("a", "x");
  disk_.SetOpenFilesMax(2);
  auto first = files_->OpenForRead("a");
  auto second = files_->CreateFile("b");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(files_->OpenForRead("a").status().code(), Code::kResourceExhausted);
  EXPECT_EQ(files_->CreateFile("c").status().code(), Code::kResourceExhausted);
  EXPECT_FALSE(*files_->Exists("c"));
  EXPECT_TRUE(disk_.NewProcess().files->OpenForRead("a").ok()) << "the limit is a process's";
  ASSERT_TRUE((*second)->Close().ok());
  auto third = files_->OpenForWrite("a");
  EXPECT_TRUE(third.ok());
  second->reset();
  EXPECT_FALSE(files_->OpenForRead("a").ok()) << "a closed file is not closed twice";
  first->reset();
  EXPECT_TRUE(files_->OpenForRead("a").ok());
}

// ------------------------------------------------------------------------------------------------
// Damage

TEST_F(SimEnvTest, FlippedBitsAreReadAndMapped) {
  PutDurable("a", "abc");
  const auto reader = files_->OpenForRead("a");
  ASSERT_TRUE(reader.ok());
  const auto before = (*reader)->Map();
  ASSERT_TRUE(disk_.FlipBit("a", 8).ok());
  EXPECT_EQ(AsString(*ReadFile(*files_, "a")), "acc");
  const auto after = (*reader)->Map();
  EXPECT_EQ(AsString(ByteSpan((*before)->data(), 3)), "abc");
  EXPECT_EQ(AsString(ByteSpan((*after)->data(), 3)), "acc");
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "acc");
  ASSERT_TRUE(disk_.FlipBit("a", 8).ok());
  EXPECT_EQ(Left(disk_, "a"), "abc") << "twice is not at all";
  EXPECT_EQ(disk_.FlipBit("a", 24).code(), Code::kInvalidArgument);
  EXPECT_EQ(disk_.FlipBit("no", 0).code(), Code::kNotFound);
}

TEST_F(SimEnvTest, ExchangedSectors) {
  PutDurable("a", std::string(512, '1') + std::string(512, '2') + "rest");
  PutDurable("b", std::string(512, '3'));
  ASSERT_TRUE(disk_.ExchangeSectors("a", 1, "b", 0).ok());
  EXPECT_EQ(Left(disk_, "a"), std::string(512, '1') + std::string(512, '3') + "rest");
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "b"), std::string(512, '2'));
  ASSERT_TRUE(disk_.ExchangeSectors("a", 0, "a", 1).ok());
  EXPECT_EQ(Left(disk_, "a"), std::string(512, '3') + std::string(512, '1') + "rest");
  EXPECT_EQ(disk_.ExchangeSectors("a", 2, "b", 0).code(), Code::kInvalidArgument) << "not whole";
  EXPECT_EQ(disk_.ExchangeSectors("a", UINT64_MAX, "b", 0).code(), Code::kInvalidArgument);
}

TEST_F(SimEnvTest, AFileShortenedWhileMappedIsDataLoss) {
  PutDurable("a", std::string(1000, 'x'));
  const auto reader = files_->OpenForRead("a");
  const auto region = (*reader)->Map();
  ASSERT_TRUE((*region)->Populate(0, 1000).ok());
  ASSERT_TRUE(disk_.TruncateFile("a", 999).ok());
  const absl::Status status = (*region)->Populate(0, 10);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(std::string(status.message()).find("expected 1000 bytes, found 999"),
            std::string::npos);
  EXPECT_EQ((*region)->data()[999], std::byte{'x'});
  EXPECT_EQ(disk_.TruncateFile("a", 1000).code(), Code::kInvalidArgument);
}

TEST_F(SimEnvTest, APutFileIsDurable) {
  PutDurable("a", "mine");
  const auto reader = files_->OpenForRead("a");
  ASSERT_TRUE(disk_.PutFile("a", AsBytes("another store's")).ok());
  EXPECT_EQ(LeftBy(CrashPolicy::DropAll(), "a"), "another store's");
  EXPECT_EQ(*(*reader)->Size(), 4u);
  EXPECT_EQ(disk_.PutFile("no/a", AsBytes("x")).code(), Code::kNotFound);
}

// ------------------------------------------------------------------------------------------------
// Processes, time, repeatability

TEST_F(SimEnvTest, ProcessesExcludeEachOtherAndDieAlone) {
  const Env first = disk_.NewProcess();
  const Env second = disk_.NewProcess();
  auto lock = first.files->Lock("LOCK");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(second.files->Lock("LOCK").status().code(), Code::kUnavailable);
  EXPECT_TRUE(*second.files->IsLocked("LOCK"));
  auto file = first.files->CreateFile("a");
  ASSERT_TRUE((*file)->Append(AsBytes("unsynced")).ok());
  disk_.KillProcess(first);
  EXPECT_FALSE((*file)->Append(AsBytes("x")).ok());
  EXPECT_FALSE(first.files->Exists("a").ok());
  EXPECT_EQ(AsString(*ReadFile(*second.files, "a")), "unsynced")
      << "the page cache is the machine's";
  EXPECT_TRUE(second.files->Lock("LOCK").ok());
}

TEST_F(SimEnvTest, TimeMovesAndRestartsWithTheMachine) {
  const Env process = disk_.NewProcess();
  const int64_t wall = process.clock->WallMs();
  const uint64_t start = process.clock->MonotonicNs();
  disk_.AdvanceClock(5'000'000'000);
  EXPECT_GE(process.clock->MonotonicNs(), start + 5'000'000'000);
  EXPECT_GE(process.clock->WallMs(), wall + 5000);
  disk_.JumpWallClock(-60'000);
  EXPECT_LT(process.clock->WallMs(), wall);
  EXPECT_GE(process.clock->MonotonicNs(), start + 5'000'000'000) << "monotonic";
  disk_.Crash(CrashPolicy::DropAll());
  EXPECT_LT(disk_.NewProcess().clock->MonotonicNs(), 1'000'000u);
}

struct RunResult {
  uint64_t trace = 0;
  uint64_t left = 0;
  std::vector<std::byte> random;
  uint64_t time = 0;
  bool operator==(const RunResult&) const = default;
};

RunResult RandomRun(uint64_t seed, uint64_t crash_seed) {
  SimDisk disk(seed);
  Prng prng(7);  // the workload is the same for all
  disk.AddFault({.op = SimOp::kWrite, .nth = 5, .times = 3, .effect = Effect::kInterrupted});
  disk.AddFault({.op = SimOp::kWrite, .nth = 20});
  disk.AddFault({.op = SimOp::kSync, .nth = 4, .sync_loss = CrashPolicy::Random(3)});
  const Env env = disk.NewProcess();
  RunResult result;
  for (int i = 0; i < 200; ++i) {
    const std::string path = std::to_string(prng.Below(6)) + ".txt";
    std::vector<std::byte> bytes(prng.Below(3000));
    env.entropy->Fill(bytes);
    auto file = env.files->CreateFile(path);
    if (!file.ok()) file = env.files->OpenForWrite(path);
    if (!file.ok()) continue;
    (void)(*file)->WriteAt(prng.Below(5000), bytes);
    if (prng.OneIn(3)) (void)(*file)->Sync();
    if (prng.OneIn(4)) (void)env.files->SyncDirectory("/");
    if (prng.OneIn(9)) (void)env.files->Rename(path, "renamed");
    if (prng.OneIn(9)) (void)env.files->Remove(path);
    (void)ReadFile(*env.files, path);
  }
  disk.Crash(CrashPolicy::Random(crash_seed));
  result.trace = disk.trace_hash();
  result.left = disk.DurableHash();
  result.random.resize(16);
  env.entropy->Fill(result.random);
  result.time = env.clock->MonotonicNs();
  return result;
}

TEST_F(SimEnvTest, ASeedReplays) {
  std::set<uint64_t> traces;
  std::set<uint64_t> left;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RunResult once = RandomRun(seed, 1);
    EXPECT_TRUE(once == RandomRun(seed, 1)) << "seed " << seed;
    traces.insert(once.trace);
    left.insert(once.left);
    left.insert(RandomRun(seed, 2).left);
  }
  EXPECT_EQ(traces.size(), 20u);
  EXPECT_GT(left.size(), 35u);
}

TEST_F(SimEnvTest, TheTraceCoversArgumentsAndBytes) {
  std::set<uint64_t> traces;
  for (const char* const bytes : {"x", "y"}) {
    for (const uint64_t offset : {0u, 1u}) {
      for (const char* const path : {"a", "b"}) {
        SimDisk disk(1);
        auto file = disk.NewProcess().files->CreateFile(path);
        ASSERT_TRUE(file.ok());
        ASSERT_TRUE((*file)->WriteAt(offset, AsBytes(bytes)).ok());
        traces.insert(disk.trace_hash());
      }
    }
  }
  EXPECT_EQ(traces.size(), 8u);
}

TEST_F(SimEnvTest, OperationsAreCounted) {
  PutDurable("a", "12345");
  EXPECT_EQ(AsString(*ReadFile(*files_, "a")), "12345");
  ASSERT_TRUE(files_->Rename("a", "b").ok());
  ASSERT_TRUE(files_->Remove("b").ok());
  const SimCounters counters = disk_.counters();
  EXPECT_EQ(counters.creates, 1u);
  EXPECT_EQ(counters.writes, 1u);
  EXPECT_EQ(counters.bytes_written, 5u);
  EXPECT_EQ(counters.reads, 1u);
  EXPECT_EQ(counters.bytes_read, 5u);
  EXPECT_EQ(counters.syncs, 1u);
  EXPECT_EQ(counters.directory_syncs, 1u);
  EXPECT_EQ(counters.renames, 1u);
  EXPECT_EQ(counters.removes, 1u);
  EXPECT_EQ(counters.faults, 0u);
  EXPECT_EQ(disk_.steps(), 6u);
  EXPECT_EQ(disk_.operations(), 9u) << "and open, size, read";
}

// Random writes, syncs and crashes: whatever the last good sync covered is there, byte for byte.
TEST_F(SimEnvTest, SyncedBytesSurviveRandomHistories) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng prng(seed);
    SimDisk disk(seed);
    std::string model;             // what reads must show
    std::vector<bool> may_change;  // bytes written since the last sync
    ASSERT_TRUE(disk.PutFile("a", {}).ok());
    for (int boot = 0; boot < 4; ++boot) {
      auto file = disk.NewProcess().files->OpenForWrite("a");
      ASSERT_TRUE(file.ok());
      size_t synced_size = model.size();
      may_change.assign(model.size(), false);
      for (int i = 0; i < 12; ++i) {
        const std::string bytes(1 + prng.Below(3000), static_cast<char>('a' + prng.Below(26)));
        const size_t offset = prng.Below(model.size() + 1);
        ASSERT_TRUE((*file)->WriteAt(offset, AsBytes(bytes)).ok());
        if (model.size() < offset + bytes.size()) model.resize(offset + bytes.size());
        model.replace(offset, bytes.size(), bytes);
        may_change.resize(model.size());
        std::fill_n(may_change.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), true);
        if (prng.OneIn(3)) {
          ASSERT_TRUE((*file)->Sync().ok());
          std::fill(may_change.begin(), may_change.end(), false);
          synced_size = model.size();
        }
        ASSERT_EQ(Left(disk, "a"), model);
      }
      disk.Crash(CrashPolicy::Random(prng.Next()));
      const std::string left = Left(disk, "a");
      ASSERT_GE(left.size(), synced_size);
      ASSERT_LE(left.size(), model.size());
      for (size_t i = 0; i < left.size(); ++i) {
        ASSERT_TRUE(may_change[i] || left[i] == model[i]) << "byte " << i;
      }
      model = left;
    }
  }
}

// ------------------------------------------------------------------------------------------------
// Enumeration, observers, and faults of reading

// What may be left of "file" after each crash of the list.
std::set<std::string> AllLeft(const SimDisk& disk, size_t policies_max = 1000) {
  std::set<std::string> left;
  for (const CrashPolicy& policy : disk.EnumerateCrashes(policies_max)) {
    const auto bytes = disk.CrashedCopy(policy)->Contents("/file");
    left.insert(bytes.ok() ? std::string(AsString(*bytes)) : "-");
  }
  return left;
}

TEST_F(SimEnvTest, EnumerationHasEverySubsetOfFewChanges) {
  PutDurable("/file", std::string(3 * kSimSectorBytes, '.'));
  const auto file = OpenForWrite("/file");
  EXPECT_EQ(AllLeft(disk_).size(), 1u);
  for (uint64_t sector = 0; sector < 3; ++sector) {
    ASSERT_TRUE(file->WriteAt(sector * kSimSectorBytes, AsBytes(std::string(kSimSectorBytes, 'x'))).ok());
  }
  const std::set<std::string> left = AllLeft(disk_);
  for (int mask = 0; mask < 8; ++mask) {
    std::string wanted;
    for (int sector = 0; sector < 3; ++sector) {
      wanted += std::string(kSimSectorBytes, (mask >> sector & 1) != 0 ? 'x' : '.');
    }
    EXPECT_TRUE(left.contains(wanted)) << mask;
  }
  EXPECT_GT(left.size(), 8u);  // garbage and old bytes as well
  EXPECT_LE(disk_.EnumerateCrashes(7).size(), 7u);
}

TEST_F(SimEnvTest, EnumerationTearsAtSectorsAndPages) {
  PutDurable("/file", std::string(3 * kSimPageBytes, '.'));
  const auto file = OpenForWrite("/file");
  ASSERT_TRUE(file->WriteAt(0, AsBytes(std::string(3 * kSimPageBytes, 'x'))).ok());
  const std::set<std::string> left = AllLeft(disk_);
  for (const size_t torn : {kSimSectorBytes, 2 * kSimSectorBytes, kSimPageBytes, 2 * kSimPageBytes}) {
    const std::string front = std::string(torn, 'x') + std::string(3 * kSimPageBytes - torn, '.');
    const std::string back = std::string(torn, '.') + std::string(3 * kSimPageBytes - torn, 'x');
    EXPECT_TRUE(left.contains(front)) << torn;
    EXPECT_TRUE(left.contains(back)) << torn;
  }
}

TEST_F(SimEnvTest, EnumerationExtendsAndLosesNames) {
  PutDurable("/file", "durable");
  const auto file = OpenForWrite("/file");
  ASSERT_TRUE(file->Append(AsBytes("+more")).ok());
  const std::set<std::string> left = AllLeft(disk_);
  EXPECT_TRUE(left.contains("durable"));
  EXPECT_TRUE(left.contains("durable+more"));
  EXPECT_TRUE(left.contains(std::string("durable") + std::string(5, '\0')));
  ASSERT_TRUE(files_->Remove("/file").ok());
  EXPECT_TRUE(AllLeft(disk_).contains("-"));
  EXPECT_TRUE(AllLeft(disk_).contains("durable"));
}

TEST_F(SimEnvTest, EqualDisksEnumerateEqually) {
  const auto list = [] {
    SimDisk disk(5);
    FileSystem* const files = disk.NewProcess().files;
    const auto file = files->CreateFile("/file");
    EXPECT_TRUE((*file)->Append(AsBytes(std::string(5000, 'x'))).ok());
    std::vector<uint64_t> hashes;
    for (const CrashPolicy& policy : disk.EnumerateCrashes(100)) hashes.push_back(disk.CrashedCopy(policy)->DurableHash());
    return hashes;
  };
  EXPECT_EQ(list(), list());
}

TEST_F(SimEnvTest, ObserverSeesTheDiskBeforeEachStep) {
  std::vector<std::string> seen;
  disk_.SetObserver([&](const SimOperation& operation) {
    seen.push_back(std::string(SimOpName(operation.op)) + " " + LeftBy(CrashPolicy::KeepAll(), "/file"));
  });
  const auto file = files_->CreateFile("/file");
  ASSERT_TRUE((*file)->Append(AsBytes("a")).ok());
  ASSERT_TRUE((*file)->Append(AsBytes("b")).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"create -", "write ", "write a", "sync ab"}));
  disk_.SetObserver(nullptr);
  ASSERT_TRUE((*file)->Append(AsBytes("c")).ok());
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(SimEnvTest, FlippedBitIsOfOneReadOrMapping) {
  PutDurable("/file", "abc");
  SimFault fault;
  fault.effect = Effect::kFlippedBit;
  fault.op = SimOp::kMap;
  disk_.AddFault(fault);
  const auto file = files_->OpenForRead("/file");
  const auto flipped = (*file)->Map();
  const auto right = (*file)->Map();
  EXPECT_EQ((*flipped)->data()[0], std::byte{'`'});
  EXPECT_EQ((*right)->data()[0], std::byte{'a'});
  fault.op = SimOp::kRead;
  fault.bit = 9;
  disk_.AddFault(fault);
  std::array<std::byte, 3> bytes{};
  ASSERT_TRUE((*file)->ReadAt(0, bytes).ok());
  EXPECT_EQ(AsString(bytes), "a`c");
  ASSERT_TRUE((*file)->ReadAt(0, bytes).ok());
  EXPECT_EQ(AsString(bytes), "abc");
  EXPECT_EQ(Left(disk_, "/file"), "abc");
}

TEST_F(SimEnvTest, InterruptedReadsAreWholeAndInTheTrace) {
  PutDurable("/file", std::string(1000, 'x'));
  SimFault fault;
  fault.effect = Effect::kInterrupted;
  fault.op = SimOp::kRead;
  disk_.AddFault(fault);
  const auto file = files_->OpenForRead("/file");
  ByteBuffer bytes(1000);
  const uint64_t before = disk_.operations();
  EXPECT_EQ(*(*file)->ReadAt(0, bytes), 1000u);
  EXPECT_EQ(disk_.operations(), before + 2);
  EXPECT_EQ(AsString(bytes), std::string(1000, 'x'));
}

TEST_F(SimEnvTest, MisdirectedWritesGoElsewhere) {
  PutDurable("/file", "0123456789");
  PutDurable("/other", "abcdefghij");
  SimFault fault;
  fault.effect = Effect::kMisdirected;
  fault.op = SimOp::kWrite;
  fault.misdirect_path = "/other";
  fault.misdirect_offset = 2;
  disk_.AddFault(fault);
  const auto file = OpenForWrite("/file");
  EXPECT_TRUE(file->WriteAt(0, AsBytes("XY")).ok());
  EXPECT_EQ(Left(disk_, "/file"), "0123456789");
  EXPECT_EQ(Left(disk_, "/other"), "abXYefghij");
  fault.misdirect_path.clear();
  fault.misdirect_offset = 8;
  disk_.AddFault(fault);
  EXPECT_TRUE(file->WriteAt(0, AsBytes("Z")).ok());
  EXPECT_EQ(Left(disk_, "/file"), "01234567Z9");
}

// Cached hashes of pages, and pages that were never made real, change nothing.
TEST_F(SimEnvTest, HashIsOfBytesAlone) {
  const auto hash_of = [](const std::vector<std::pair<uint64_t, std::string>>& writes) {
    SimDisk disk(1);
    FileSystem* const files = disk.NewProcess().files;
    const auto file = files->CreateFile("/file");
    for (const auto& [offset, bytes] : writes) EXPECT_TRUE((*file)->WriteAt(offset, AsBytes(bytes)).ok());
    disk.Crash(CrashPolicy::KeepAll());
    return disk.DurableHash();
  };
  const std::string zeros(kSimPageBytes, '\0');
  EXPECT_EQ(hash_of({{0, zeros}, {kSimPageBytes, "x"}}), hash_of({{kSimPageBytes, "x"}}));
  EXPECT_EQ(hash_of({{0, "y"}, {0, zeros}, {kSimPageBytes, "x"}}), hash_of({{kSimPageBytes, "x"}}));
  EXPECT_NE(hash_of({{0, "y"}}), hash_of({{0, "x"}}));
  EXPECT_NE(hash_of({{0, zeros}}), hash_of({{0, zeros + zeros}}));
}

}  // namespace
}  // namespace ashlar::env
