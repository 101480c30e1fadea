// The journal without faults of the disk: what was appended comes back, files rotate and are recycled, a closed journal
// goes on, and every way in which bytes can be wrong is either a torn tail or damage, by the rule of SPEC J-9.
#include <algorithm>

#include "format/journal_record.h"
#include "src/base/site.h"
#include "tests/journal/journal_harness.h"

namespace ashlar::journal {
namespace {

TEST_F(JournalTest, EmptyDirectoryReplaysToNothing) {
  const Replayed replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.end.end, Position{});
  EXPECT_TRUE(replayed.batches.empty());
}

TEST_F(JournalTest, AppendedBatchesComeBackInOrder) {
  auto writer = Create();
  const std::vector<Batch> group1 = {MakeBatch(1, 10, 3), MakeBatch(4, 0), MakeBatch(5, 1)};
  const std::vector<Batch> group2 = {MakeBatch(6, 500)};
  ASSERT_TRUE(Append(*writer, group1).ok());
  ASSERT_TRUE(Append(*writer, group2).ok());
  EXPECT_EQ(writer->counters().writes, 2u);  // one write a group
  const Replayed replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches, (std::vector<Batch>{group1[0], group1[1], group1[2], group2[0]}));
  EXPECT_EQ(replayed.end.end, writer->end());
  EXPECT_EQ(replayed.end.last_sequence, 6u);
  EXPECT_FALSE(replayed.end.sealed);
  EXPECT_EQ(replayed.end.torn_bytes, 0u);
  EXPECT_EQ(replayed.end.file_count, 1u);
}

TEST_F(JournalTest, SequencesMustAscend) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(5, 10, 2)}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Append(*writer, {MakeBatch(6, 10)})));
  EXPECT_TRUE(absl::IsInvalidArgument(Append(*writer, {MakeBatch(7, 10), MakeBatch(7, 10)})));
  EXPECT_TRUE(absl::IsInvalidArgument(Append(*writer, {MakeBatch(7, 10, 0)})));
  ASSERT_TRUE(Append(*writer, {MakeBatch(100, 10)}).ok());  // gaps are fine
  EXPECT_EQ(ReplayAll().batches.size(), 2u);
}

TEST_F(JournalTest, RotatesAndDoublesAndChainsFiles) {
  auto writer = Create();
  std::vector<Batch> batches;
  for (Sequence s = 1; s <= 60; ++s) {
    batches.push_back(MakeBatch(s, 900));
    ASSERT_TRUE(Append(*writer, {batches.back()}).ok());
  }
  EXPECT_GT(writer->counters().rotations, 3u);
  const std::vector<uint64_t> numbers = FileNumbers();
  EXPECT_EQ(writer->file_count(), numbers.size());
  EXPECT_EQ(*env_.files->FileSize(PathOf(numbers[0])), 4096u);
  EXPECT_EQ(*env_.files->FileSize(PathOf(numbers[1])), 8192u);
  EXPECT_EQ(*env_.files->FileSize(PathOf(numbers[2])), 16384u);
  EXPECT_EQ(*env_.files->FileSize(PathOf(numbers.back())), 16384u);
  const Replayed replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches, batches);
  EXPECT_EQ(replayed.end.file_count, numbers.size());
}

TEST_F(JournalTest, BatchLargerThanAnyFileGetsItsOwn) {
  auto writer = Create();
  const std::vector<Batch> batches = {MakeBatch(1, 100), MakeBatch(2, 50000), MakeBatch(3, 100), MakeBatch(4, 100)};
  for (const Batch& batch : batches) ASSERT_TRUE(Append(*writer, {batch}).ok());
  EXPECT_EQ(ReplayAll().batches, batches);
  const std::vector<uint64_t> numbers = FileNumbers();
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_GT(*env_.files->FileSize(PathOf(numbers[1])), 50000u);
  EXPECT_EQ(*env_.files->FileSize(PathOf(numbers[2])), 16384u);  // back to the usual size
}

TEST_F(JournalTest, FloorIsReadAndNotVisited) {
  auto writer = Create();
  for (Sequence s = 1; s <= 10; ++s) ASSERT_TRUE(Append(*writer, {MakeBatch(s, 50)}).ok());
  ReplayOptions options = DefaultReplay();
  options.floor = 7;
  const Replayed replayed = ReplayAll(options);
  ASSERT_EQ(replayed.batches.size(), 3u);
  EXPECT_EQ(replayed.batches[0], MakeBatch(8, 50));
  EXPECT_EQ(replayed.end.last_sequence, 10u);
}

TEST_F(JournalTest, SealIsContinuedInTheSameFile) {
  std::vector<Batch> batches;
  ReplayEnd end;
  for (int round = 0; round < 4; ++round) {
    auto writer = round == 0 ? Create() : Continue(end);
    ASSERT_NE(writer, nullptr);
    batches.push_back(MakeBatch(end.last_sequence + 1, 40));
    ASSERT_TRUE(Append(*writer, {batches.back()}).ok());
    ASSERT_TRUE(writer->Seal().ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(Append(*writer, {MakeBatch(99, 1)})));
    const Replayed replayed = ReplayAll();
    ASSERT_TRUE(replayed.status.ok()) << replayed.status;
    EXPECT_TRUE(replayed.end.sealed);
    EXPECT_EQ(replayed.batches, batches);
    end = replayed.end;
  }
  EXPECT_EQ(FileNumbers().size(), 1u);
  // Opened and closed without a word: not a byte longer.
  ASSERT_TRUE(Continue(end)->Seal().ok());
  EXPECT_EQ(ReplayAll().end.end, end.end);
  // Continued, written, not sealed.
  auto writer = Continue(end);
  ASSERT_TRUE(Append(*writer, {MakeBatch(50, 40)}).ok());
  EXPECT_FALSE(ReplayAll().end.sealed);
}

TEST_F(JournalTest, UnsealedIsFollowedByANewFile) {
  { ASSERT_TRUE(Append(*Create(), {MakeBatch(1, 40)}).ok()); }
  Replayed replayed = ReplayAll();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Writer::Continue(env_, kDirectory, context_, replayed.end, Numbers(), options_).status()));
  { ASSERT_TRUE(Append(*Create(replayed.end), {MakeBatch(2, 40)}).ok()); }
  replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches, (std::vector<Batch>{MakeBatch(1, 40), MakeBatch(2, 40)}));
  EXPECT_EQ(FileNumbers().size(), 2u);
}

TEST_F(JournalTest, NumbersGoBeyondEveryFileThatExists) {
  { ASSERT_TRUE(Append(*Create(), {MakeBatch(1, 40)}).ok()); }
  const ReplayEnd end = ReplayAll().end;
  next_number_ = 1;  // the catalog never heard of the file
  auto writer = Create(end);
  EXPECT_EQ(writer->end().number, 2u);
}

TEST_F(JournalTest, ErasedFilesLeaveNothing) {
  auto writer = Create();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Append(*writer, {MakeBatch(1 + i, 700)}).ok());
    ASSERT_TRUE(writer->Rotate(context_).ok());
  }
  ASSERT_TRUE(writer->DropBelow(writer->end().number).ok());
  EXPECT_GT(SpareFiles(), 1);
  ASSERT_TRUE(Append(*writer, {MakeBatch(4, 700)}).ok());
  ASSERT_TRUE(writer->EraseBelow(0).ok());
  EXPECT_EQ(SpareFiles(), 0);
  ASSERT_TRUE(writer->Rotate(context_).ok());
  EXPECT_EQ(writer->counters().files_recycled, 0u);
  ASSERT_TRUE(Append(*writer, {MakeBatch(5, 700)}).ok());
  ASSERT_TRUE(writer->EraseBelow(writer->end().number).ok());
  EXPECT_EQ(SpareFiles(), 0);
  EXPECT_EQ(FileNumbers(), std::vector<uint64_t>{writer->end().number});
  EXPECT_EQ(writer->file_count(), 1u);
  ReplayOptions options = DefaultReplay();
  options.first_number = writer->end().number;
  EXPECT_EQ(ReplayAll(options).batches, std::vector<Batch>{MakeBatch(5, 700)});
}

TEST_F(JournalTest, DroppedFilesAreRecycledAndOldContentIsNeverRead) {
  auto writer = Create();
  std::vector<Batch> live;
  for (Sequence s = 1; s <= 400; ++s) {
    const Batch batch = MakeBatch(s, 700);
    ASSERT_TRUE(Append(*writer, {batch}).ok());
    live.push_back(batch);
    if (s % 20 != 0) continue;
    ASSERT_TRUE(writer->Rotate(context_).ok());
    ASSERT_TRUE(writer->DropBelow(writer->end().number).ok());
    live.clear();
    EXPECT_EQ(FileNumbers().size(), 1u);
    ReplayOptions options = DefaultReplay();
    options.first_number = writer->end().number;
    const Replayed replayed = ReplayAll(options);
    ASSERT_TRUE(replayed.status.ok()) << replayed.status;
    EXPECT_TRUE(replayed.batches.empty());
  }
  EXPECT_GT(writer->counters().files_recycled, 10u);
  ASSERT_TRUE(Append(*writer, {MakeBatch(401, 10)}).ok());
  ReplayOptions options = DefaultReplay();
  options.first_number = writer->end().number;
  EXPECT_EQ(ReplayAll(options).batches, std::vector<Batch>{MakeBatch(401, 10)});
  ASSERT_TRUE(writer->Seal().ok());
  EXPECT_TRUE(ReplayAll(options).end.sealed);
  EXPECT_FALSE(Exists(kSpareFileName));
  EXPECT_FALSE(Exists(kNewFileName));
}

// Between two flushes nearly four files fill up.
TEST_F(JournalTest, WhatOneFlushLetsGoIsEnoughForTheNext) {
  auto writer = Create();
  const auto spares = [this] { return SpareFiles(); };
  uint64_t created = 0;
  const auto write = [&](Sequence first, Sequence last) {
    for (Sequence s = first; s <= last; ++s) {
      ASSERT_TRUE(Append(*writer, {MakeBatch(s, 700)}).ok());
      if (s % 80 != 0) continue;
      ASSERT_TRUE(writer->DropBelow(writer->end().number).ok());
      EXPECT_LE(spares(), 4);
      if (s == 320) created = writer->counters().files_created;
    }
  };
  write(1, 800);
  EXPECT_EQ(writer->counters().files_created, created);
  EXPECT_GT(writer->counters().files_recycled, 20u);
  EXPECT_GT(spares(), 2);
  // Nor are they lost with the process.
  ReplayOptions options = DefaultReplay();
  options.first_number = writer->end().number;
  const ReplayEnd end = ReplayAll(options).end;
  writer = Create(end);
  write(801, 1200);
  EXPECT_LE(writer->counters().files_created, 1u);
  ASSERT_TRUE(writer->Seal().ok());
  EXPECT_EQ(spares(), 0);
}

TEST_F(JournalTest, PreparedFileIsTakenByTheNextRotation) {
  auto writer = Create();
  ASSERT_TRUE(writer->Prepare().ok());
  EXPECT_TRUE(Exists(kSpareFileName));
  const uint64_t created = writer->counters().files_created;
  ASSERT_TRUE(writer->Rotate(context_).ok());
  EXPECT_FALSE(Exists(kSpareFileName));
  EXPECT_EQ(writer->counters().files_created, created);
  EXPECT_EQ(writer->counters().files_recycled, 1u);
}

TEST_F(JournalTest, HeadersCarryTheContext) {
  auto writer = Create();
  FileContext newer = context_;
  newer.schema.fields.push_back(newer.schema.fields[0]);
  newer.schema.fields.back().name = "body";
  newer.schema_number = 8;
  newer.generation = 5;
  ASSERT_TRUE(writer->Rotate(newer).ok());
  ReplayOptions options = DefaultReplay();
  options.catalog_generation = 5;
  std::vector<FileContext> headers;
  auto end = Replay(
      env_, kDirectory, options, [](const Record&) { return absl::OkStatus(); }, &headers);
  ASSERT_TRUE(end.ok()) << end.status();
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0].schema, context_.schema);
  EXPECT_EQ(headers[1].schema, newer.schema);
  EXPECT_EQ(headers[1].schema_number, 8u);
  EXPECT_EQ(headers[1].generation, 5u);
  EXPECT_EQ(headers[1].analyzer_identity, "test");
  // The catalog went back: damage.
  options.catalog_generation = 4;
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll(options).status));
  DisableSite(Site::kCheckJournalGeneration);
  EXPECT_TRUE(ReplayAll(options).status.ok()) << "nothing else tells";
  DisableSite(Site::kNone);
}

TEST_F(JournalTest, AnotherStoresFileIsDamage) {
  { ASSERT_TRUE(Append(*Create(), {MakeBatch(1, 40)}).ok()); }
  ReplayOptions options = DefaultReplay();
  options.store_id.fill(std::byte{1});
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll(options).status));
}

TEST_F(JournalTest, FileUnderAnotherNameIsDamage) {
  { ASSERT_TRUE(Append(*Create(), {MakeBatch(1, 40)}).ok()); }
  ASSERT_TRUE(env_.files->Rename(PathOf(1), PathOf(2)).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll().status));
}

TEST_F(JournalTest, MissingFileIsDamage) {
  auto writer = Create();
  for (Sequence s = 1; s <= 60; ++s) ASSERT_TRUE(Append(*writer, {MakeBatch(s, 900)}).ok());
  const std::vector<uint64_t> numbers = FileNumbers();
  ASSERT_GE(numbers.size(), 4u);
  // The first one: the second says that there was one, unless the catalog does not need it.
  const ByteBuffer first = ReadBytes(PathOf(numbers[0]));
  ASSERT_TRUE(env_.files->Remove(PathOf(numbers[0])).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll().status));
  ReplayOptions options = DefaultReplay();
  options.first_number = numbers[1];
  EXPECT_TRUE(ReplayAll(options).status.ok());
  WriteBytes(PathOf(numbers[0]), first);
  EXPECT_TRUE(ReplayAll().status.ok());
  // One in the middle.
  ASSERT_TRUE(env_.files->Remove(PathOf(numbers[2])).ok());
  const Replayed replayed = ReplayAll();
  EXPECT_TRUE(absl::IsDataLoss(replayed.status));
  EXPECT_EQ(PlaceOf(replayed.status)->file, PathOf(numbers[2]));
  // The last one, when the catalog knows of it.
  for (size_t i = 3; i < numbers.size(); ++i) ASSERT_TRUE(env_.files->Remove(PathOf(numbers[i])).ok());
  EXPECT_TRUE(ReplayAll().status.ok());
  options = DefaultReplay();
  options.durable = {numbers[2], 200};
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll(options).status));
}

TEST_F(JournalTest, VisitorsErrorEndsTheReplay) {
  auto writer = Create();
  for (Sequence s = 1; s <= 3; ++s) ASSERT_TRUE(Append(*writer, {MakeBatch(s, 9)}).ok());
  int visited = 0;
  auto end = Replay(env_, kDirectory, DefaultReplay(),
                    [&visited](const Record&) { return ++visited == 2 ? Internal("enough") : absl::OkStatus(); });
  EXPECT_EQ(end.status(), Internal("enough"));
  EXPECT_EQ(visited, 2);
}

// Case C07: 100 acknowledged batches and a 101st that was not.
TEST_F(JournalTest, TornTailIsCutAtEveryLength) {
  options_.first_file_bytes = 65536;
  options_.file_bytes_max = 65536;
  auto writer = Create();
  for (Sequence s = 1; s <= 100; ++s) {
    ASSERT_TRUE(Append(*writer, {MakeBatch(s, 60)}).ok());
    ASSERT_TRUE(writer->Sync().ok());
  }
  const uint64_t start = writer->end().offset;
  ASSERT_TRUE(Append(*writer, {MakeBatch(101, 75)}).ok());
  const uint64_t end = writer->end().offset;
  writer.reset();
  const ByteBuffer whole = ReadBytes(PathOf(1));
  for (uint64_t cut = start; cut <= end; ++cut) {
    for (int kind = 0; kind < 3; ++kind) {
      SCOPED_TRACE(absl::StrCat("cut ", cut, " of ", start, " to ", end, ", kind ", kind));
      ByteBuffer bytes = whole;
      if (kind == 0) bytes.resize(cut);
      for (uint64_t i = cut; i < bytes.size(); ++i)
        bytes[i] = kind == 1 ? std::byte{0} : whole[i - cut + 300];  // zeros, or the file's own older records
      WriteBytes(PathOf(1), bytes);
      ReplayOptions options = DefaultReplay();
      options.durable = {1, start};
      const Replayed replayed = ReplayAll(options);
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      const bool intact = std::equal(whole.begin() + static_cast<std::ptrdiff_t>(start),
                                     whole.begin() + static_cast<std::ptrdiff_t>(end),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(start, bytes.size())),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(end, bytes.size())));
      ASSERT_EQ(replayed.batches.size(), intact ? 101u : 100u);
      for (Sequence s = 1; s <= 100; ++s) ASSERT_EQ(replayed.batches[s - 1], MakeBatch(s, 60));
      if (intact) {
        ASSERT_EQ(replayed.batches[100], MakeBatch(101, 75));
      }
      ASSERT_EQ(replayed.end.end, (Position{1, intact ? end : start}));
      // What was dropped is said: everything up to the last byte that is not zero.
      uint64_t used = bytes.size();
      while (used > replayed.end.end.offset && bytes[used - 1] == std::byte{0}) --used;
      ASSERT_GE(replayed.end.torn_bytes, used - replayed.end.end.offset);
    }
  }
}

TEST_F(JournalTest, EveryTruncationOfASyncedJournalIsDamageOrATornTail) {
  auto writer = Create();
  for (Sequence s = 1; s <= 4; ++s) ASSERT_TRUE(Append(*writer, {MakeBatch(s, 20)}).ok());
  ASSERT_TRUE(writer->Sync().ok());
  const uint64_t synced = writer->synced().offset;
  writer.reset();
  const ByteBuffer whole = ReadBytes(PathOf(1));
  for (uint64_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    WriteBytes(PathOf(1), ByteSpan(whole).first(size));
    ReplayOptions options = DefaultReplay();
    options.durable = {1, synced};
    const Replayed replayed = ReplayAll(options);
    if (size < synced) {
      ASSERT_TRUE(absl::IsDataLoss(replayed.status)) << replayed.status;
    } else {
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      ASSERT_EQ(replayed.batches.size(), 4u);
    }
  }
}

// Every bit of a small journal of two files, the first one left by rotation, the second one sealed.
TEST_F(JournalTest, EveryBitFlipIsDamageOrHarmless) {
  options_.first_file_bytes = 600;
  options_.file_bytes_max = 1200;
  auto writer = Create();
  std::vector<Batch> batches;
  for (Sequence s = 1; s <= 6; ++s) {
    batches.push_back(MakeBatch(s, 50));
    ASSERT_TRUE(Append(*writer, {batches.back()}).ok());
  }
  ASSERT_TRUE(writer->Seal().ok());
  writer.reset();
  const std::vector<uint64_t> numbers = FileNumbers();
  ASSERT_EQ(numbers.size(), 2u);
  const Position end = ReplayAll().end.end;
  int damaged = 0, harmless = 0, torn = 0;
  for (const uint64_t number : numbers) {
    const ByteBuffer whole = ReadBytes(PathOf(number));
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      ByteBuffer bytes = whole;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      WriteBytes(PathOf(number), bytes);
      const Replayed replayed = ReplayAll();
      SCOPED_TRACE(absl::StrCat("file ", number, " byte ", bit / 8, " bit ", bit % 8));
      if (!replayed.status.ok()) {
        ASSERT_TRUE(absl::IsDataLoss(replayed.status)) << replayed.status;
        ASSERT_TRUE(PlaceOf(replayed.status).has_value());
        ++damaged;
        continue;
      }
      // Nothing but the bytes behind the end and the seal itself may be wrong unnoticed.
      ASSERT_EQ(replayed.batches, batches);
      const bool seal = number == end.number && bit / 8 < end.offset;
      if (seal) {
        ASSERT_GE(bit / 8, end.offset - 64);
        ASSERT_FALSE(replayed.end.sealed);
        ++torn;
      } else {
        ++harmless;
      }
    }
    WriteBytes(PathOf(number), whole);
  }
  EXPECT_GT(damaged, 5000);
  EXPECT_GT(harmless, 100);
  EXPECT_EQ(torn, 64 * 8);
}

TEST_F(JournalTest, DurableToTellsDamageFromATornTail) {
  auto writer = Create();
  std::vector<uint64_t> starts;
  for (Sequence s = 1; s <= 6; ++s) {
    starts.push_back(writer->end().offset);
    ASSERT_TRUE(Append(*writer, {MakeBatch(s, 40)}).ok());
    if (s == 3) {
      ASSERT_TRUE(writer->Sync().ok());
    }
  }
  const ByteBuffer whole = ReadBytes(PathOf(1));
  for (Sequence s = 1; s <= 6; ++s) {
    SCOPED_TRACE(s);
    ByteBuffer bytes = whole;
    bytes[starts[s - 1] + 70] ^= std::byte{1};
    WriteBytes(PathOf(1), bytes);
    const Replayed replayed = ReplayAll();
    if (s <= 3) {  // records 4 to 6 say that it was synced
      ASSERT_TRUE(absl::IsDataLoss(replayed.status));
      EXPECT_EQ(PlaceOf(replayed.status)->offset, starts[s - 1]);
      EXPECT_EQ(PlaceOf(replayed.status)->file, PathOf(1));
    } else {
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      EXPECT_EQ(replayed.batches.size(), s - 1);
      EXPECT_EQ(replayed.end.torn_bytes, writer->end().offset - starts[s - 1]);
    }
    // The catalog's word counts as much as a record's.
    ReplayOptions options = DefaultReplay();
    options.durable = {1, starts[s - 1] + 1};
    EXPECT_TRUE(absl::IsDataLoss(ReplayAll(options).status));
  }
}

// A whole record that does not follow the one before it: what a group that was made void left behind, say.
TEST_F(JournalTest, RecordsOfAnotherChainAreNotRead) {
  ASSERT_TRUE(Append(*Create(), {MakeBatch(1, 40)}).ok());
  const Replayed before = ReplayAll();
  ASSERT_TRUE(before.status.ok());
  ByteBuffer bytes = ReadBytes(PathOf(before.end.end.number));
  const auto header = format::DecodeJournalHeader(bytes, "journal");
  ASSERT_TRUE(header.ok());
  format::JournalRecord stray;
  stray.first_sequence = 2;
  stray.operation_count = 1;
  stray.schema_number = 7;
  stray.chain = before.end.chain + 1;
  ByteBuffer record;
  format::AppendRecord(stray, AsBytes("stray"), {header->salt, header->number, before.end.end.offset}, &record);
  std::copy(record.begin(), record.end(), bytes.begin() + static_cast<std::ptrdiff_t>(before.end.end.offset));
  WriteBytes(PathOf(before.end.end.number), bytes);
  EXPECT_EQ(ReplayAll().batches.size(), 1u);
  DisableSite(Site::kCheckRecordChain);
  EXPECT_EQ(ReplayAll().batches.size(), 2u) << "nothing else tells";
  DisableSite(Site::kNone);
}

// What a new file took over from the one before was synced before the file got its name. Until something is appended
// and synced, the file's own header is the only one to say so.
TEST_F(JournalTest, DamageInWhatAFileTookOverIsNoTornTail) {
  ASSERT_TRUE(Append(*Create(), {MakeBatch(1, 40), MakeBatch(2, 40)}).ok());  // not synced, not sealed
  const Replayed killed = ReplayAll();
  ASSERT_TRUE(killed.status.ok());
  Create(killed.end);
  const Replayed whole = ReplayAll();
  ASSERT_EQ(whole.batches.size(), 2u);
  ByteBuffer bytes = ReadBytes(PathOf(whole.end.end.number));
  bytes[whole.end.end.offset - 1] ^= std::byte{1};
  bytes[whole.end.end.offset - 20] ^= std::byte{1};
  WriteBytes(PathOf(whole.end.end.number), bytes);
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll().status));
  DisableSite(Site::kCheckTailHeader);
  EXPECT_TRUE(ReplayAll().status.ok()) << "nothing else tells";
  DisableSite(Site::kNone);
}

TEST_F(JournalTest, TornSealIsCutAndNotContinued) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 40)}).ok());
  ASSERT_TRUE(writer->Seal().ok());
  const ReplayEnd sealed = ReplayAll().end;
  writer = Continue(sealed);
  const std::vector<Batch> group = {MakeBatch(2, 40), MakeBatch(3, 40)};
  ASSERT_TRUE(Append(*writer, group).ok());
  writer.reset();
  // The first record of the group behind the seal is torn and the second one whole: going on at the seal could make the
  // second one follow again.
  ByteBuffer bytes = ReadBytes(PathOf(1));
  bytes[sealed.end.offset + 80] ^= std::byte{1};
  WriteBytes(PathOf(1), bytes);
  const Replayed replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 1u);
  EXPECT_GT(replayed.end.torn_bytes, 0u);
  EXPECT_FALSE(replayed.end.sealed);
}

TEST_F(JournalTest, TornTailStaysCutOnceTheNextFileExists) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 40)}).ok());
  ASSERT_TRUE(writer->Sync().ok());
  const uint64_t end = writer->end().offset;
  ASSERT_TRUE(Append(*writer, {MakeBatch(2, 40), MakeBatch(3, 40)}).ok());
  writer.reset();
  ByteBuffer bytes = ReadBytes(PathOf(1));
  bytes[end + 3] ^= std::byte{0x40};
  WriteBytes(PathOf(1), bytes);
  const ReplayEnd torn = ReplayAll().end;
  EXPECT_EQ(torn.end, (Position{1, end}));
  { ASSERT_TRUE(Append(*Create(torn), {MakeBatch(10, 40)}).ok()); }
  const Replayed replayed = ReplayAll();
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches, (std::vector<Batch>{MakeBatch(1, 40), MakeBatch(10, 40)}));
  // The new file vouches for what is before the old one's end.
  bytes[end - 60] ^= std::byte{1};
  WriteBytes(PathOf(1), bytes);
  EXPECT_TRUE(absl::IsDataLoss(ReplayAll().status));
}

TEST_F(JournalTest, ReaderFollowsALivingWriter) {
  auto writer = Create();
  std::vector<Batch> seen;
  ReplayOptions options = DefaultReplay();
  Prng random(11);
  Sequence sequence = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<Batch> group;
    for (uint64_t i = 0; i < random.Below(4); ++i) group.push_back(MakeBatch(++sequence, random.Below(900)));
    if (!group.empty()) {
      ASSERT_TRUE(Append(*writer, group).ok());
    }
    const Position acknowledged = writer->end();
    // The writer is ahead of what it acknowledged.
    const Sequence unseen = sequence;
    ASSERT_TRUE(Append(*writer, {MakeBatch(++sequence, 30)}).ok());
    options.limit = acknowledged;
    const Replayed replayed = ReplayAll(options);
    ASSERT_TRUE(replayed.status.ok()) << replayed.status;
    EXPECT_EQ(replayed.end.end, acknowledged);
    EXPECT_EQ(replayed.end.last_sequence, unseen);
    seen.insert(seen.end(), replayed.batches.begin(), replayed.batches.end());
    ASSERT_EQ(seen.size(), unseen);
    EXPECT_EQ(seen.back().first, unseen);
    options.resume = replayed.end;
  }
  EXPECT_GT(writer->counters().rotations, 2u);
  for (Sequence s = 1; s < sequence; ++s) EXPECT_EQ(seen[s - 1].first, s);
}

TEST_F(JournalTest, LimitBehindTheResumePointReadsNothing) {
  auto writer = Create();
  const Position begin = writer->end();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 40)}).ok());
  ReplayOptions options = DefaultReplay();
  options.resume = ReplayAll().end;
  options.limit = begin;
  const Replayed replayed = ReplayAll(options);
  ASSERT_TRUE(replayed.status.ok());
  EXPECT_EQ(replayed.end.end, writer->end());
  EXPECT_TRUE(replayed.batches.empty());
  // Nothing acknowledged at all.
  options.resume.reset();
  options.limit = Position{};
  EXPECT_EQ(ReplayAll(options).end.end, Position{});
}

TEST_F(JournalTest, OvertakenReaderIsToldToStartAgain) {
  auto writer = Create();
  ASSERT_TRUE(Append(*writer, {MakeBatch(1, 40)}).ok());
  ReplayOptions options = DefaultReplay();
  options.limit = writer->end();
  options.resume = ReplayAll(options).end;
  for (Sequence s = 2; s <= 30; ++s) ASSERT_TRUE(Append(*writer, {MakeBatch(s, 900)}).ok());
  ASSERT_TRUE(writer->DropBelow(writer->end().number).ok());
  // Its file is gone.
  options.limit = writer->end();
  EXPECT_TRUE(absl::IsUnavailable(ReplayAll(options).status));
  // Its limit is in a file that is gone.
  options.resume.reset();
  options.limit = Position{1, 300};
  EXPECT_TRUE(absl::IsUnavailable(ReplayAll(options).status));
  // A file of a newer generation than the catalog that it read.
  FileContext newer = context_;
  newer.generation = 4;
  ASSERT_TRUE(writer->Rotate(newer).ok());
  options.first_number = writer->end().number;
  options.limit = writer->end();
  EXPECT_TRUE(absl::IsUnavailable(ReplayAll(options).status));
}

TEST_F(JournalTest, RandomHistoriesReplayExactly) {
  constexpr uint64_t kSeed = 20240;
  SCOPED_TRACE(kSeed);
  Prng random(kSeed);
  for (int history = 0; history < 40; ++history) {
    for (const uint64_t number : FileNumbers()) ASSERT_TRUE(env_.files->Remove(PathOf(number)).ok());
    std::vector<Batch> batches;
    uint64_t first_number = 0;
    Sequence sequence = 0;
    std::unique_ptr<Writer> writer = Create();
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(absl::StrCat("history ", history, " step ", step));
      const uint64_t dice = random.Below(20);
      if (dice < 14) {
        std::vector<Batch> group;
        for (uint64_t i = 0; i <= random.Below(4); ++i) {
          const uint32_t count = 1 + static_cast<uint32_t>(random.Below(3));
          group.push_back(MakeBatch(sequence + 1 + random.Below(2), random.Below(1500), count));
          sequence = group.back().first + count - 1;
        }
        ASSERT_TRUE(Append(*writer, group).ok());
        batches.insert(batches.end(), group.begin(), group.end());
      } else if (dice == 14) {
        ASSERT_TRUE(writer->Sync().ok());
      } else if (dice == 15) {
        ASSERT_TRUE(writer->Rotate(context_).ok());
      } else if (dice == 16) {
        ASSERT_TRUE(writer->Prepare().ok());
      } else if (dice == 17) {
        ASSERT_TRUE(writer->Rotate(context_).ok());
        first_number = writer->end().number;
        ASSERT_TRUE(writer->DropBelow(first_number).ok());
        batches.clear();
      } else {
        const bool seal = dice == 18;
        if (seal) {
          ASSERT_TRUE(writer->Seal().ok());
        }
        writer.reset();
        ReplayOptions options = DefaultReplay();
        options.first_number = first_number;
        const Replayed replayed = ReplayAll(options);
        ASSERT_TRUE(replayed.status.ok()) << replayed.status;
        if (seal) {
          ASSERT_TRUE(replayed.end.sealed);  // so may one be that was continued and not written
        }
        writer = replayed.end.sealed ? Continue(replayed.end) : Create(replayed.end);
        ASSERT_NE(writer, nullptr);
      }
      ReplayOptions options = DefaultReplay();
      options.first_number = first_number;
      const Replayed replayed = ReplayAll(options);
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      ASSERT_EQ(replayed.batches, batches);
      ASSERT_EQ(replayed.end.end, writer->end());
    }
  }
}

TEST(JournalNames, RoundTripAndRefuse) {
  EXPECT_EQ(FileName(0xabc), "journal-0000000000000abc.jnl");
  EXPECT_EQ(NumberOf("journal-0000000000000abc.jnl"), 0xabcu);
  EXPECT_EQ(NumberOf(FileName(~uint64_t{0})), ~uint64_t{0});
  for (const std::string_view name : {"journal-0000000000000ABC.jnl", "journal-abc.jnl", "journal-spare.jnl", "status",
                                      "journal-0000000000000abc.jnl~", "xjournal-000000000000abc.jnl"})
    EXPECT_EQ(NumberOf(name), std::nullopt) << name;
}

}  // namespace
}  // namespace ashlar::journal
