// The journal on a disk that fails: writes that find no room or break off in the middle, syncs that fail.
#include "tests/journal/faulty_files.h"
#include "tests/journal/journal_harness.h"

namespace ashlar::journal {
namespace {

class JournalFaultTest : public JournalTest {
 protected:
  JournalFaultTest() : faulty_(memory_->env().files) { env_.files = &faulty_; }
  FaultyFiles faulty_;
};

// A group of three records breaks off after each number of bytes; what was in the group is never seen again, whatever
// follows: nothing, the same batch tried again, or another one that ends where a record of the group begins.
TEST_F(JournalFaultTest, FailedWriteLeavesNoTraceAtAnyByte) {
  options_.first_file_bytes = 8192;
  const std::vector<Batch> group = {MakeBatch(2, 30), MakeBatch(3, 30), MakeBatch(4, 30)};
  const uint64_t group_bytes = 3 * (64 + 32);
  for (uint64_t cut = 0; cut <= group_bytes; ++cut) {
    for (int after = 0; after < 3; ++after) {
      SCOPED_TRACE(absl::StrCat("cut ", cut, " after ", after));
      for (const uint64_t number : FileNumbers()) ASSERT_TRUE(env_.files->Remove(PathOf(number)).ok());
      auto writer = Create();
      ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
      faulty_.FailWrite(1, cut, ResourceExhausted("no space"));
      ASSERT_TRUE(absl::IsResourceExhausted(Append(*writer, group)));
      ASSERT_FALSE(writer->broken());
      EXPECT_EQ(writer->synced(), writer->end());  // the marker is durable before the error is known
      std::vector<Batch> expected = {MakeBatch(1, 30)};
      if (after == 1) expected.push_back(group[0]);
      if (after == 2) expected.push_back(MakeBatch(9, 60));
      if (after > 0) {
        ASSERT_TRUE(Append(*writer, {expected.back()}).ok());
      }
      const Replayed replayed = ReplayAll();
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      ASSERT_EQ(replayed.batches, expected);
      ASSERT_EQ(replayed.end.end, writer->end());
    }
  }
}

TEST_F(JournalFaultTest, MarkerThatCannotBeWrittenBreaksTheWriter) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
  faulty_.FailWrite(1, 10, Internal("EIO"));
  faulty_.FailWrite(2, 0, Internal("EIO"));
  EXPECT_FALSE(Append(*writer, {MakeBatch(2, 30)}).ok());
  EXPECT_TRUE(writer->broken());
  EXPECT_TRUE(absl::IsFailedPrecondition(Append(*writer, {MakeBatch(2, 30)})));
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->Sync()));
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->Rotate(context_)));
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->Seal()));
}

TEST_F(JournalFaultTest, MarkerThatCannotBeSyncedBreaksTheWriter) {
  auto writer = Create();
  faulty_.FailWrite(1, 10, Internal("EIO"));
  faulty_.FailSync(1, Internal("EIO"));
  EXPECT_FALSE(Append(*writer, {MakeBatch(2, 30)}).ok());
  EXPECT_TRUE(writer->broken());
}

TEST_F(JournalFaultTest, FailedSyncIsFinal) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
  const Position synced = writer->synced();
  faulty_.FailSync(1, Internal("EIO"));
  EXPECT_EQ(writer->Sync(), Internal("EIO"));
  EXPECT_TRUE(writer->broken());
  EXPECT_EQ(writer->synced(), synced);
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->Sync()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Append(*writer, {MakeBatch(2, 30)})));
}

TEST_F(JournalFaultTest, NothingToSyncCostsNoSync) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
  ASSERT_TRUE(writer->Sync().ok());
  const uint64_t syncs = writer->counters().syncs;
  ASSERT_TRUE(writer->Sync().ok());
  EXPECT_EQ(writer->counters().syncs, syncs);
}

TEST_F(JournalFaultTest, RecoveryCopiesTheUnsyncedTailAndLeavesTheOldFileAlone) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
  ASSERT_TRUE(writer->Sync().ok());
  const uint64_t synced = writer->synced().offset;
  ASSERT_TRUE(Append(*writer, {MakeBatch(2, 30)}).ok());
  ASSERT_TRUE(Append(*writer, {MakeBatch(3, 3000)}).ok());
  const ReplayEnd end = ReplayAll().end;
  EXPECT_EQ(end.durable_to, synced);
  writer.reset();
  faulty_.ClearLog();
  writer = Create(end);
  EXPECT_EQ(writer->synced(), writer->end());
  for (const std::string& operation : faulty_.log()) EXPECT_EQ(operation.find(PathOf(1)), std::string::npos) << operation;
  // The old file is lost from there on, as if its last sync had failed for good.
  auto old = env_.files->OpenForWrite(PathOf(1));
  ASSERT_TRUE((*old)->WriteAt(synced, ByteBuffer(3500)).ok());
  const std::vector<Batch> batches = {MakeBatch(1, 30), MakeBatch(2, 30), MakeBatch(3, 3000)};
  Replayed replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches, batches);
  EXPECT_EQ(replayed.end.durable_to, replayed.end.end.offset);
  // The copies are vouched for by the header.
  ByteBuffer bytes = ReadBytes(PathOf(2));
  bytes[replayed.end.end.offset - 1] ^= std::byte{1};
  WriteBytes(PathOf(2), bytes);
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll().status));
}

TEST_F(JournalFaultTest, CommitIsOneWriteAndOneSync) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
  ASSERT_TRUE(writer->Sync().ok());
  faulty_.ClearLog();
  ASSERT_TRUE(Append(*writer, {MakeBatch(2, 30), MakeBatch(3, 30)}).ok());
  ASSERT_TRUE(writer->Sync().ok());
  EXPECT_EQ(faulty_.log().size(), 2u);
}

TEST_F(JournalFaultTest, FileGetsItsNameLast) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 30)}).ok());
  faulty_.ClearLog();
  ASSERT_TRUE(writer->Rotate(context_).ok());
  const std::string made = env::JoinPath(kDirectory, kNewFileName);
  const std::vector<std::string>& log = faulty_.log();
  ASSERT_EQ(log.size(), 6u);
  EXPECT_EQ(log[0], absl::StrCat("sync ", PathOf(1)));
  EXPECT_EQ(log[1], absl::StrCat("write ", made, " 0 4096"));
  EXPECT_EQ(log[2].substr(0, 6 + made.size() + 2), absl::StrCat("write ", made, " 0"));
  EXPECT_EQ(log[3], absl::StrCat("sync ", made));
  EXPECT_EQ(log[4], absl::StrCat("rename ", made, " ", PathOf(2)));
  EXPECT_EQ(log[5], absl::StrCat("syncdir ", kDirectory));
}

// No room for the next file: the append fails, nothing is broken, and it succeeds once there is room.
TEST_F(JournalFaultTest, RotationWithoutRoomMayBeTriedAgain) {
  auto writer = Create();
  std::vector<Batch> batches;
  Sequence sequence = 0;
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    const Batch batch = MakeBatch(++sequence, 900);
    const uint64_t files = writer->file_count();
    const uint64_t rotations = writer->counters().rotations;
    // Writes beyond the first of this append are those of a rotation: the blank file, a smaller one, its header.
    faulty_.FailCreate(ResourceExhausted("no space"), 2);
    const absl::Status status = Append(*writer, {batch});
    faulty_.Heal();
    if (!status.ok()) {
      ++refused;
      ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
      ASSERT_FALSE(writer->broken());
      ASSERT_EQ(writer->file_count(), files);
      ASSERT_EQ(writer->counters().rotations, rotations);
      ASSERT_EQ(ReplayAll().batches, batches);
      ASSERT_TRUE(Append(*writer, {batch}).ok());
    }
    batches.push_back(batch);
    ASSERT_EQ(ReplayAll().batches, batches);
  }
  EXPECT_GT(refused, 2);
}

// Every write and every sync of a scenario with rotations fails once, in each of three ways. Whatever was acknowledged and
// synced is there after reopening, in order, and nothing that was refused.
TEST_F(JournalFaultTest, EveryFailurePointKeepsWhatWasAcknowledged) {
  for (int kind = 0; kind < 3; ++kind) {
    for (int n = 1;; ++n) {
      SCOPED_TRACE(absl::StrCat("kind ", kind, " failure ", n));
      auto entries = env_.files->List(kDirectory);
      for (const auto& entry : *entries)
        ASSERT_TRUE(env_.files->Remove(env::JoinPath(kDirectory, entry.name)).ok());
      faulty_.Heal();
      if (kind == 0) faulty_.FailWrite(n, 37, ResourceExhausted("no space"));
      if (kind == 1) faulty_.FailWrite(n, 5, Internal("EIO"));
      if (kind == 2) faulty_.FailSync(n, Internal("EIO"));
      std::vector<Batch> acknowledged;
      auto created = Writer::Create(env_, kDirectory, context_, {}, Numbers(), options_);
      if (created.ok()) {
        Writer& writer = **created;
        for (Sequence s = 1; s <= 12; ++s) {
          const Batch batch = MakeBatch(s, 1000);
          if (!Append(writer, {batch}).ok()) continue;
          if (!writer.Sync().ok()) continue;
          acknowledged.push_back(batch);
        }
        if (!writer.broken()) {
          EXPECT_TRUE(writer.Seal().ok() || faulty_.fired());
        }
      }
      const bool fired = faulty_.fired();
      faulty_.Heal();
      const Replayed replayed = ReplayAll();
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      // An unacknowledged batch whose sync failed may be there too, behind the others.
      ASSERT_GE(replayed.batches.size(), acknowledged.size());
      ASSERT_LE(replayed.batches.size(), acknowledged.size() + (kind == 2 ? 1 : 0));
      for (size_t i = 0; i < acknowledged.size(); ++i) ASSERT_EQ(replayed.batches[i], acknowledged[i]);
      if (!fired) {
        EXPECT_EQ(acknowledged.size(), 12u);
        EXPECT_GT(n, 10);
        break;
      }
    }
  }
}

}  // namespace
}  // namespace ashlar::journal
