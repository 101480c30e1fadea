// The journal on a disk that loses power: at every step of a scenario, and again while recovering from that. What was
// synced is there, what was refused is not, and never is a crash taken for damage.
#include "format/frame.h"
#include "src/base/site.h"
#include "src/env/path.h"
#include "src/env/sim_env.h"
#include "tests/journal/journal_harness.h"

namespace ashlar::journal {
namespace {

using env::CrashPolicy;
using env::SimDisk;

// What an engine would know: everything sent, how much of it was acknowledged as durable, and what its catalog says.
struct Known {
  std::vector<Batch> sent;    // every batch that an append accepted, in order
  size_t durable = 0;         // how many of them a sync covered
  Position durable_position;  // as the last catalog commit would state it
  uint64_t first_number = 0;  // the catalog's journal number
  size_t dropped = 0;         // batches before first_number, in segments by now
  Sequence next_sequence = 1;
  uint64_t next_number = 1;
};

class Driver {
 public:
  explicit Driver(env::Env env) : env_(env) {
    options_.first_file_bytes = 2048;
    options_.file_bytes_max = 4096;
  }

  ReplayOptions OptionsOf(const Known& known) const {
    ReplayOptions options;
    options.store_id = context_.store_id;
    options.catalog_generation = context_.generation;
    options.first_number = known.first_number;
    options.durable = known.durable_position;
    return options;
  }

  // Replays and compares; the caller goes on from `end`. Batches that were sent and not acknowledged may be there or
  // not, as a prefix; afterwards what is there is what was sent.
  void Recover(Known* known, ReplayEnd* end) {
    std::vector<Batch> found;
    auto replayed = Replay(env_, kDirectory, OptionsOf(*known), [&found](const Record& record) {
      found.push_back({record.first_sequence, record.operation_count, std::string(AsString(record.operations))});
      return absl::OkStatus();
    });
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    ASSERT_GE(found.size() + known->dropped, known->durable);
    ASSERT_LE(found.size() + known->dropped, known->sent.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], known->sent[known->dropped + i]);
    known->sent.resize(known->dropped + found.size());
    *end = *replayed;
  }

  // Opens as an engine does; null after a failure.
  std::unique_ptr<Writer> Open(Known* known, const ReplayEnd& end) {
    const auto numbers = [known] { return known->next_number++; };
    auto writer = end.sealed ? Writer::Continue(env_, kDirectory, context_, end, numbers, options_)
                             : Writer::Create(env_, kDirectory, context_, end, numbers, options_);
    if (!writer.ok()) return nullptr;
    // What was found counts as durable from now on.
    known->durable = known->sent.size();
    return *std::move(writer);
  }

  // Groups, syncs, rotations, a flush with recycling, a seal. Stops at the first failure.
  void Work(Known* known, Writer* writer, uint64_t seed) {
    Prng random(seed);
    for (int step = 0; step < 14; ++step) {
      const uint64_t dice = random.Below(10);
      if (dice < 6) {
        std::vector<Batch> group;
        for (uint64_t i = 0; i <= random.Below(3); ++i) {
          group.push_back(MakeBatch(known->next_sequence, random.Below(700)));
          known->next_sequence = group.back().first + 1;
        }
        std::vector<Record> records;
        for (const Batch& batch : group) records.push_back(ToRecord(batch));
        // Sent before the outcome is known: with the power gone nobody can say.
        const size_t before = known->sent.size();
        known->sent.insert(known->sent.end(), group.begin(), group.end());
        const absl::Status status = writer->Append(records);
        if (!status.ok() && !writer->broken()) known->sent.resize(before);  // refused: must never be seen
        if (!status.ok()) return;
      } else if (dice < 8) {
        if (!writer->Sync().ok()) return;
        known->durable = known->sent.size();
      } else if (dice == 8) {
        if (!writer->Rotate(context_).ok()) return;
        known->durable = known->sent.size();
      } else {
        // A flush: the catalog commits, then the files go.
        if (!writer->Rotate(context_).ok()) return;
        known->durable = known->dropped = known->sent.size();
        known->first_number = writer->end().number;
        known->durable_position = writer->synced();
        if (!writer->DropBelow(known->first_number).ok()) return;
      }
    }
    if (random.OneIn(2) && writer->Seal().ok()) known->durable = known->sent.size();
  }

 private:
  const env::Env env_;
  const FileContext context_ = MakeContext();
  WriterOptions options_;
};

std::vector<CrashPolicy> Policies(uint64_t seed, int random_count) {
  std::vector<CrashPolicy> policies = {CrashPolicy::DropAll(), CrashPolicy::KeepAll()};
  for (int i = 0; i < random_count; ++i) policies.push_back(CrashPolicy::Random(seed * 100 + static_cast<uint64_t>(i)));
  return policies;
}

void MakeDirectory(env::Env env) {
  ASSERT_TRUE(env.files->CreateDirectory(kDirectory).ok());
  ASSERT_TRUE(env.files->SyncDirectory("/").ok());
}

// Runs a scenario to the end, or until the power goes.
void RunScenario(SimDisk& disk, uint64_t seed, Known* known) {
  Driver driver(disk.NewProcess());
  ReplayEnd end;
  if (auto writer = driver.Open(known, end)) driver.Work(known, writer.get(), seed);
}

TEST(JournalCrashTest, PowerLossAtEveryStepTwice) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    uint64_t steps = 0;
    {
      SimDisk disk(seed);
      MakeDirectory(disk.NewProcess());
      Known known;
      RunScenario(disk, seed, &known);
      steps = disk.steps();
    }
    for (uint64_t cut = 2; cut <= steps; ++cut) {
      SimDisk disk(seed);
      MakeDirectory(disk.NewProcess());
      disk.CutPowerAtStep(cut);
      Known at_cut;
      RunScenario(disk, seed, &at_cut);
      for (const CrashPolicy& policy : Policies(seed + cut, 4)) {
        SCOPED_TRACE(
            absl::StrCat("seed ", seed, " cut ", cut, " policy ", static_cast<int>(policy.kind), " ", policy.seed));
        auto after = disk.CrashedCopy(policy);
        Known known = at_cut;
        Driver driver(after->NewProcess());
        ReplayEnd end;
        driver.Recover(&known, &end);
        if (testing::Test::HasFatalFailure()) return;
        // Recover, and lose power again somewhere on the way.
        after->CutPowerAtStep(after->steps() + cut % 9);
        Known second = known;
        {
          auto writer = driver.Open(&second, end);
          if (writer != nullptr) driver.Work(&second, writer.get(), seed + 1000);
        }
        after->Crash(CrashPolicy::Random(cut));
        Driver last(after->NewProcess());
        last.Recover(&second, &end);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(JournalCrashTest, KilledProcessLosesNothingAndLaterPowerLossIsNoDamage) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    SimDisk disk(seed);
    const env::Env first = disk.NewProcess();
    MakeDirectory(first);
    Known known;
    {
      Driver driver(first);
      auto writer = driver.Open(&known, {});
      ASSERT_NE(writer, nullptr);
      driver.Work(&known, writer.get(), seed);
      disk.KillProcess(first);
    }
    known.durable = known.sent.size();  // the page cache is still there
    Driver driver(disk.NewProcess());
    ReplayEnd end;
    driver.Recover(&known, &end);
    if (testing::Test::HasFatalFailure()) return;
    auto writer = driver.Open(&known, end);
    ASSERT_NE(writer, nullptr);
    disk.Crash(CrashPolicy::DropAll());
    Driver last(disk.NewProcess());
    last.Recover(&known, &end);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// A sync fails and drops what was pending; the pages look written. Reopening believes what it sees, and must make that
// true before it relies on it.
TEST(JournalCrashTest, FailedSyncThenReopenThenPowerLoss) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (uint64_t nth = 1; nth <= 24; ++nth) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, " sync ", nth));
      SimDisk disk(seed);
      const env::Env first = disk.NewProcess();
      MakeDirectory(first);
      env::SimFault fault;
      fault.op = env::SimOp::kSync;
      fault.nth = nth;
      disk.AddFault(fault);
      Known known;
      {
        Driver driver(first);
        if (auto writer = driver.Open(&known, {})) driver.Work(&known, writer.get(), seed);
        disk.KillProcess(first);
      }
      disk.ClearFaults();
      Driver driver(disk.NewProcess());
      ReplayEnd end;
      driver.Recover(&known, &end);
      if (testing::Test::HasFatalFailure()) return;
      auto writer = driver.Open(&known, end);
      ASSERT_NE(writer, nullptr);
      const Batch batch = MakeBatch(known.next_sequence++, 20);
      known.sent.push_back(batch);
      const Record record = ToRecord(batch);
      ASSERT_TRUE(writer->Append(std::span(&record, 1)).ok());
      ASSERT_TRUE(writer->Sync().ok());
      known.durable = known.sent.size();
      disk.Crash(CrashPolicy::DropAll());
      Driver last(disk.NewProcess());
      last.Recover(&known, &end);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// The disk fills up after each number of bytes; once there is room the same writer goes on.
// Journal files that can't be told for whose they are, among what power loss leaves after a spare could only be
// overwritten in part.
int CountUnknownFiles() {
  int unknown = 0;
  for (uint64_t seed = 1; seed < 12; ++seed) {
    SimDisk disk(seed);
    const env::Env env = disk.NewProcess();
    EXPECT_TRUE(env.files->CreateDirectory(kDirectory).ok());
    EXPECT_TRUE(env.files->SyncDirectory("/").ok());
    uint64_t next_number = 1;
    WriterOptions options;
    options.first_file_bytes = 4096;
    const auto writer = Writer::Create(
        env, kDirectory, MakeContext(), ReplayEnd(), [&] { return next_number++; }, options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->Rotate(MakeContext()).ok());
    EXPECT_TRUE((*writer)->DropBelow((*writer)->end().number).ok());
    env::SimFault fault;
    fault.op = env::SimOp::kWrite;
    fault.error = ENOSPC;
    disk.AddFault(fault);
    EXPECT_FALSE((*writer)->Rotate(MakeContext()).ok());
    for (const CrashPolicy& policy : disk.EnumerateCrashes(64)) {
      const std::unique_ptr<SimDisk> after = disk.CrashedCopy(policy);
      const env::Env reader = after->NewProcess();
      const auto entries = reader.files->List(kDirectory);
      EXPECT_TRUE(entries.ok()) << entries.status();
      for (const env::FileSystem::DirectoryEntry& entry : *entries) {
        if (!NumberOf(entry.name).has_value()) continue;
        const auto bytes = env::ReadFile(*reader.files, env::JoinPath(kDirectory, entry.name));
        EXPECT_TRUE(bytes.ok()) << bytes.status();
        unknown += format::DecodeFileHeader(*bytes, format::FileKind::kJournal, entry.name).ok() ? 0 : 1;
      }
    }
  }
  return unknown;
}

TEST(JournalCrashTest, ASpareIsOverwrittenOnlyOnceItsOldNameIsGoneForGood) {
  EXPECT_EQ(CountUnknownFiles(), 0);
  DisableSite(Site::kJournalSpareSync);
  EXPECT_GT(CountUnknownFiles(), 0) << "journal.spare_sync was switched off and nothing noticed";
  DisableSite(Site::kNone);
}

TEST(JournalCrashTest, FullDiskRecoversInPlace) {
  uint64_t full = 0;
  {
    SimDisk disk(1);
    MakeDirectory(disk.NewProcess());
    Known known;
    RunScenario(disk, 3, &known);
    full = disk.used_bytes();
  }
  int refused = 0;
  for (uint64_t capacity = 1; capacity < full + 4096; capacity += 37) {
    SCOPED_TRACE(capacity);
    SimDisk disk(1);
    MakeDirectory(disk.NewProcess());
    disk.SetCapacity(capacity);
    Driver driver(disk.NewProcess());
    Known known;
    auto writer = driver.Open(&known, {});
    if (writer == nullptr) {
      disk.SetCapacity(UINT64_MAX);
      writer = driver.Open(&known, {});
      ASSERT_NE(writer, nullptr);
      disk.SetCapacity(capacity);
    }
    for (int i = 0; i < 12; ++i) {
      const Batch batch = MakeBatch(known.next_sequence++, 600);
      const Record record = ToRecord(batch);
      absl::Status status = writer->Append(std::span(&record, 1));
      if (!status.ok()) {
        ++refused;
        ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
        ASSERT_FALSE(writer->broken());
        disk.SetCapacity(UINT64_MAX);
        status = writer->Append(std::span(&record, 1));
      }
      ASSERT_TRUE(status.ok()) << status;
      known.sent.push_back(batch);
    }
    ASSERT_TRUE(writer->Sync().ok());
    known.durable = known.sent.size();
    disk.Crash(CrashPolicy::DropAll());
    Driver last(disk.NewProcess());
    ReplayEnd end;
    last.Recover(&known, &end);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace ashlar::journal
