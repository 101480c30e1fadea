// The codecs of schema, catalog value, deaths file and journal records: what is encoded comes back, one value has one
// encoding, and bytes that break a rule of SPEC.md are refused with their place.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "ashlar/options.h"
#include "format/frame.h"
#include "format/schema_codec.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "tests/format/records_support.h"

namespace ashlar::format {
namespace {

constexpr Sequence kSequenceMax = std::numeric_limits<Sequence>::max();

ByteBuffer BytesOf(const Schema& schema) {
  ByteBuffer out;
  EncodeSchema(schema, &out);
  return out;
}

// ---- Schema (SPEC D-5 to D-7).

TEST(SchemaCodec, RandomSchemasComeBack) {
  Prng random(1);
  for (int i = 0; i < 2000; ++i) {
    const Schema schema = RandomSchema(random);
    const ByteBuffer bytes = BytesOf(schema);
    const auto decoded = DecodeSchema(bytes);
    ASSERT_TRUE(decoded.has_value());
    ASSERT_EQ(*decoded, schema);
  }
}

TEST(SchemaCodec, WhatDecodesEncodesToTheSameBytes) {
  Prng random(2);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    ByteBuffer bytes = BytesOf(RandomSchema(random));
    for (uint64_t n = random.Below(3); n > 0; --n) bytes[random.Below(bytes.size())] = static_cast<std::byte>(random.Next());
    if (random.OneIn(4)) bytes.resize(random.Below(bytes.size() + 4));
    const auto decoded = DecodeSchema(bytes);
    if (!decoded.has_value()) continue;
    ++accepted;
    ASSERT_EQ(BytesOf(*decoded), bytes);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(SchemaCodec, LimitsAreRefused) {
  Schema schema;
  schema.fields.resize(kFieldsMax + 1);
  for (size_t i = 0; i < schema.fields.size(); ++i) schema.fields[i].name = absl::StrCat("f", i);
  EXPECT_FALSE(DecodeSchema(BytesOf(schema)).has_value());
  schema.fields.resize(kFieldsMax);
  EXPECT_TRUE(DecodeSchema(BytesOf(schema)).has_value());
  schema = FixedSchema();
  schema.fields[0].name.assign(256, 'x');
  EXPECT_FALSE(DecodeSchema(BytesOf(schema)).has_value());
  schema = FixedSchema();
  schema.fields[0].name.clear();
  EXPECT_FALSE(DecodeSchema(BytesOf(schema)).has_value());
  schema = FixedSchema();
  schema.fields[0].analyzer.stem.assign(64, 'x');
  EXPECT_FALSE(DecodeSchema(BytesOf(schema)).has_value());
  schema = FixedSchema();
  schema.default_group.assign(4, "title");  // more than there are fields
  EXPECT_FALSE(DecodeSchema(BytesOf(schema)).has_value());
  EXPECT_FALSE(DecodeSchema({}).has_value());
}

TEST(SchemaCodec, SecondSpellingOfANumberIsRefused) {
  ByteBuffer bytes = BytesOf(FixedSchema());
  ASSERT_EQ(bytes[0], std::byte{3});
  bytes[0] = std::byte{0x83};
  bytes.insert(bytes.begin() + 1, std::byte{0});
  EXPECT_FALSE(DecodeSchema(bytes).has_value());
}

// ---- Catalog value (SPEC C-*).

CatalogValue RandomValue(Prng& random) {
  CatalogValue value;
  value.generation = 1 + random.Next() % 1000000;
  for (std::byte& b : value.store_id) b = static_cast<std::byte>(random.Next());
  value.schema = RandomSchema(random);
  value.schema_number = static_cast<uint32_t>(random.Next());
  value.analyzer_identity = RandomName(random, 100);
  value.next_file_number = uint64_t{1} << 40;
  DocumentId id = 1;
  for (uint64_t i = random.Below(20); i > 0; --i) {
    SegmentEntry segment;
    segment.number = i;
    segment.file_bytes = random.Next();
    segment.documents = 1 + static_cast<uint32_t>(random.Below(1000));
    segment.dead = static_cast<uint32_t>(random.Below(segment.documents + 1));
    segment.first_id = id + random.Below(100);
    segment.last_id = segment.first_id + random.Below(100);
    id = segment.last_id + 1;
    value.segments.push_back(segment);
  }
  value.deaths_number = random.Below(3);
  if (value.deaths_number != 0) value.deaths_file_id = CountingId(9);
  value.last_sequence = random.Next();
  value.floor = value.last_sequence - random.Below(value.last_sequence);
  value.journal_number = random.Next();
  if (random.OneIn(2)) value.watermark = RandomName(random, 100);
  value.durable_journal_number = random.Next();
  value.durable_journal_offset = random.Next();
  return value;
}

TEST(CatalogValueCodec, RandomValuesComeBack) {
  Prng random(3);
  for (int i = 0; i < 500; ++i) {
    const CatalogValue value = RandomValue(random);
    const ByteBuffer bytes = EncodeCatalogValue(value);
    const auto decoded = DecodeCatalogValue(bytes, "value");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(*decoded, value);
    ASSERT_EQ(EncodeCatalogValue(*decoded), bytes);
  }
}

TEST(CatalogValueCodec, ImpossibleValuesAreRefused) {
  Prng random(4);
  CatalogValue good = RandomValue(random);
  while (good.segments.size() < 3) good = RandomValue(random);
  ASSERT_TRUE(DecodeCatalogValue(EncodeCatalogValue(good), "value").ok());
  const std::vector<std::function<void(CatalogValue&)>> faults = {
      [](CatalogValue& v) { v.generation = 0; },
      [](CatalogValue& v) { v.last_sequence = 5, v.floor = 6; },
      [](CatalogValue& v) { v.segments[1].number = 0; },
      [](CatalogValue& v) { v.segments[1].number = v.segments[0].number; },
      [](CatalogValue& v) { v.segments[1].number = v.next_file_number; },
      [](CatalogValue& v) { v.segments[1].documents = 0; },
      [](CatalogValue& v) { v.segments[1].dead = v.segments[1].documents + 1; },
      [](CatalogValue& v) { v.segments[1].first_id = v.segments[0].last_id; },
      [](CatalogValue& v) { v.segments[1].first_id = v.segments[1].last_id + 1; },
      [](CatalogValue& v) { v.segments[0].first_id = 0; },
      [](CatalogValue& v) { v.deaths_number = v.next_file_number; },
      [](CatalogValue& v) { v.deaths_number = 0, v.deaths_file_id = CountingId(1); },
      [](CatalogValue& v) { v.analyzer_identity.assign(kAnalyzerIdentityBytesMax + 1, 'x'); },
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    CatalogValue bad = good;
    faults[i](bad);
    const auto decoded = DecodeCatalogValue(EncodeCatalogValue(bad), "value");
    EXPECT_TRUE(absl::IsDataLoss(decoded.status())) << i << " " << decoded.status();
    EXPECT_EQ(PlaceOf(decoded.status())->file, "value");
  }
}

// A value of another generation or store in this one's place has a good checksum and a wrong id.
TEST(CatalogValueCodec, FileIdIsDerived) {
  const StoreId store = CountingId(1), other = CountingId(2);
  EXPECT_EQ(CatalogFileId(store, 1), CatalogFileId(store, 1));
  EXPECT_NE(CatalogFileId(store, 1), CatalogFileId(store, 2));
  EXPECT_NE(CatalogFileId(store, 1), CatalogFileId(other, 1));
  Prng random(5);
  const CatalogValue value = RandomValue(random);
  ByteBuffer bytes = EncodeCatalogValue(value);
  FileHeader header = *DecodeFileHeader(bytes, FileKind::kCatalogValue, "value");
  header.file_id = CatalogFileId(value.store_id, value.generation + 1);
  EncodeFileHeader(header, std::span<std::byte, kFileHeaderBytes>(bytes.data(), kFileHeaderBytes));
  const ByteSpan body = ByteSpan(bytes).subspan(64, bytes.size() - 72);
  StoreU64(bytes.data() + bytes.size() - 8, Checksum(body, PlaceSeed(header.file_id, 64)));
  EXPECT_TRUE(absl::IsDataLoss(DecodeCatalogValue(bytes, "value").status()));
}

TEST(CatalogValueCodec, NewerVersionAndUnknownFeaturesAreUnimplemented) {
  Prng random(6);
  const ByteBuffer good = EncodeCatalogValue(RandomValue(random));
  const auto with = [&good](auto change) {
    ByteBuffer bytes = good;
    change(bytes.data());
    StoreU64(bytes.data() + 56, Checksum(ByteSpan(bytes).first(56), 0));
    return DecodeCatalogValue(bytes, "value").status();
  };
  EXPECT_TRUE(absl::IsUnimplemented(with([](std::byte* p) { StoreU16(p + 10, kFormatVersion + 1); })));
  EXPECT_TRUE(absl::IsUnimplemented(with([](std::byte* p) { StoreU32(p + 12, 4); })));
  EXPECT_TRUE(absl::IsDataLoss(with([](std::byte* p) { StoreU16(p + 10, 0); })));
  EXPECT_TRUE(absl::IsDataLoss(with([](std::byte* p) { StoreU16(p + 8, 3); })));
  EXPECT_TRUE(with([](std::byte* p) { StoreU16(p + 18, 1); }).ok());  // compat bits are ignored
}

// ---- Deaths file (SPEC L-*).

DeathsFile RandomDeaths(Prng& random) {
  DeathsFile deaths;
  deaths.file_id = CountingId(static_cast<uint8_t>(random.Next()));
  deaths.store_id = CountingId(7);
  deaths.generation = random.Next();
  uint64_t number = 0;
  for (uint64_t i = random.Below(6); i > 0; --i) {
    SegmentDeaths segment;
    number += 1 + random.Below(1000);
    segment.segment_number = number;
    uint64_t ordinal = random.Below(3);
    for (uint64_t n = 1 + random.Below(50); n > 0; --n) {
      segment.deaths.push_back({static_cast<uint32_t>(ordinal), 1 + random.Next() % (random.OneIn(2) ? 1000 : kSequenceMax)});
      ordinal += 1 + random.Below(random.OneIn(5) ? 1000000 : 3);
    }
    deaths.segments.push_back(segment);
  }
  return deaths;
}

TEST(DeathsCodec, RandomFilesComeBack) {
  Prng random(7);
  for (int i = 0; i < 1000; ++i) {
    const DeathsFile deaths = RandomDeaths(random);
    const ByteBuffer bytes = EncodeDeaths(deaths);
    const auto decoded = DecodeDeaths(bytes, "deaths");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(*decoded, deaths);
    ASSERT_EQ(EncodeDeaths(*decoded), bytes);
  }
}

TEST(DeathsCodec, ExtremesComeBack) {
  DeathsFile deaths;
  deaths.segments = {{std::numeric_limits<uint64_t>::max(), {{0, kSequenceMax}, {kNoDocument - 1, 1}}}};
  const auto decoded = DecodeDeaths(EncodeDeaths(deaths), "deaths");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, deaths);
}

TEST(DeathsCodec, DeathsOfOneTimeAreSmall) {
  DeathsFile deaths;
  SegmentDeaths segment;
  segment.segment_number = 1;
  for (uint32_t i = 0; i < 10000; ++i) segment.deaths.push_back({i * 5, 1000000000 + i});
  deaths.segments.push_back(segment);
  EXPECT_LT(EncodeDeaths(deaths).size(), 31000u);  // three bytes each
}

TEST(DeathsCodec, ImpossibleFilesAreRefused) {
  const DeathsFile good{CountingId(1), CountingId(2), 3, {{5, {{1, 10}, {2, 11}}}, {6, {{1, 12}}}}};
  ASSERT_TRUE(DecodeDeaths(EncodeDeaths(good), "deaths").ok());
  const std::vector<std::function<void(DeathsFile&)>> faults = {
      [](DeathsFile& d) { d.segments[1].segment_number = 5; },
      [](DeathsFile& d) { d.segments[1].segment_number = 4; },
      [](DeathsFile& d) { d.segments[0].segment_number = 0; },
      [](DeathsFile& d) { d.segments[0].deaths.clear(); },
      [](DeathsFile& d) { d.segments[0].deaths[1].ordinal = 1; },
      [](DeathsFile& d) { d.segments[0].deaths[1].ordinal = 0; },
      [](DeathsFile& d) { d.segments[0].deaths[1].ordinal = kNoDocument; },
      [](DeathsFile& d) { d.segments[0].deaths[0].sequence = 0; },
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    DeathsFile bad = good;
    faults[i](bad);
    EXPECT_TRUE(absl::IsDataLoss(DecodeDeaths(EncodeDeaths(bad), "deaths").status())) << i;
  }
}

// Bodies of any bytes under a good checksum: never a crash, and what is accepted has that encoding.
TEST(RecordCodecs, AnyBodyIsRefusedOrCanonical) {
  Prng random(8);
  int accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    const bool deaths = random.OneIn(2);
    ByteBuffer bytes = deaths ? EncodeDeaths(RandomDeaths(random)) : EncodeCatalogValue(RandomValue(random));
    const FileHeader header = *DecodeFileHeader(bytes, deaths ? FileKind::kDeaths : FileKind::kCatalogValue, "file");
    bytes.resize(bytes.size() - 8);
    for (uint64_t n = random.Below(3); n > 0 && bytes.size() > 64; --n)
      bytes[64 + random.Below(bytes.size() - 64)] = static_cast<std::byte>(random.OneIn(2) ? random.Next() : random.Below(3));
    if (random.OneIn(3)) bytes.resize(64 + random.Below(bytes.size() - 63));
    const uint64_t checksum = Checksum(ByteSpan(bytes).subspan(64), PlaceSeed(header.file_id, 64));
    ByteWriter(&bytes).U64(checksum);
    if (deaths) {
      const auto decoded = DecodeDeaths(bytes, "file");
      ASSERT_TRUE(decoded.ok() || absl::IsDataLoss(decoded.status())) << decoded.status();
      if (decoded.ok()) {
        ASSERT_EQ(EncodeDeaths(*decoded), bytes);
      }
      accepted += decoded.ok();
    } else {
      const auto decoded = DecodeCatalogValue(bytes, "file");
      ASSERT_TRUE(decoded.ok() || absl::IsDataLoss(decoded.status())) << decoded.status();
      if (decoded.ok()) {
        ASSERT_EQ(EncodeCatalogValue(*decoded), bytes);
      }
      accepted += decoded.ok();
    }
  }
  EXPECT_GT(accepted, 5000);
}

// ---- Journal (SPEC J-*).

TEST(JournalOperations, AWatermarkComesFirstAndIsBounded) {
  const auto accepted = [](const ByteBuffer& bytes) {
    return VisitOperations(bytes, [](const OperationView&) { return true; });
  };
  ByteBuffer bytes;
  AppendOperation({OperationKind::kWatermark, {}, std::string(kWatermarkBytesMax, 'w'), 0}, &bytes);
  EXPECT_TRUE(accepted(bytes));
  ByteBuffer two = bytes;
  two.insert(two.end(), bytes.begin(), bytes.end());
  EXPECT_FALSE(accepted(two));
  ByteBuffer behind;
  AppendOperation({OperationKind::kDelete, {}, "key", 0}, &behind);
  behind.insert(behind.end(), bytes.begin(), bytes.end());
  EXPECT_FALSE(accepted(behind));
  ByteBuffer longer;
  AppendOperation({OperationKind::kWatermark, {}, std::string(kWatermarkBytesMax + 1, 'w'), 0}, &longer);
  EXPECT_FALSE(accepted(longer));
}

TEST(JournalOperations, ComeBackAndMayBeStopped) {
  ByteBuffer bytes;
  const std::string document(300, 'd');
  AppendOperation({OperationKind::kPut, AsBytes(document), {}, 0}, &bytes);
  AppendOperation({OperationKind::kDelete, {}, "key", 0}, &bytes);
  AppendOperation({OperationKind::kDeleteId, {}, {}, 1234567890123}, &bytes);
  AppendOperation({OperationKind::kDelete, {}, "", 0}, &bytes);
  std::vector<std::string> seen;
  const auto visit = [&seen](const OperationView& operation) {
    seen.push_back(absl::StrCat(static_cast<int>(operation.kind), " ", operation.document.size(), " ",
                                ToAbsl(operation.key), " ", operation.id));
    return true;
  };
  ASSERT_TRUE(VisitOperations(bytes, visit));
  EXPECT_EQ(seen, (std::vector<std::string>{"1 300  0", "2 0 key 0", "3 0  1234567890123", "2 0  0"}));
  int visited = 0;
  EXPECT_TRUE(VisitOperations(bytes, [&visited](const OperationView&) { return ++visited < 2; }));
  EXPECT_EQ(visited, 2);
  for (size_t size = 1; size < bytes.size(); ++size) {
    const bool boundary = size == 303 || size == 308 || size == bytes.size() - 2;
    EXPECT_EQ(VisitOperations(ByteSpan(bytes).first(size), [](const OperationView&) { return true; }), boundary) << size;
  }
  bytes[0] = std::byte{9};
  EXPECT_FALSE(VisitOperations(bytes, visit));
  EXPECT_TRUE(VisitOperations({}, visit));
}

JournalHeader FixedHeader() {
  JournalHeader header;
  header.file_id = CountingId(1);
  header.store_id = CountingId(2);
  header.salt = 77;
  header.number = 9;
  header.next_sequence = 4;
  header.previous_number = 8;
  header.previous_end = 800;
  header.previous_chain = 5;
  header.synced_end = 4096;
  header.generation = 6;
  header.schema_number = 1;
  header.recycled = true;
  header.schema = FixedSchema();
  header.analyzer_identity = "identity";
  return header;
}

TEST(JournalHeaderCodec, ComesBackFromALongerSpan) {
  const JournalHeader header = FixedHeader();
  ByteBuffer bytes = EncodeJournalHeader(header);
  ASSERT_EQ(bytes.size() % kRecordAlignment, 0u);
  EXPECT_EQ(PeekJournalHeaderBytes(bytes), bytes.size());
  EXPECT_EQ(PeekJournalHeaderBytes(ByteSpan(bytes).first(71)), 0u);
  bytes.resize(bytes.size() + 100, std::byte{0xee});
  const auto decoded = DecodeJournalHeader(bytes, "journal");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, header);
}

TEST(JournalHeaderCodec, ImpossibleHeadersAreRefused) {
  const std::vector<std::function<void(JournalHeader&)>> faults = {
      [](JournalHeader& h) { h.number = 0; },
      [](JournalHeader& h) { h.previous_number = 9; },
      [](JournalHeader& h) { h.next_sequence = 0; },
      [](JournalHeader& h) { h.synced_end = 8; },
      [](JournalHeader& h) { h.synced_end = 4097; },
      [](JournalHeader& h) { h.analyzer_identity.assign(5000, 'x'); },
      [](JournalHeader& h) { h.schema.fields[0].name.clear(); },
  };
  for (size_t i = 0; i < faults.size(); ++i) {
    JournalHeader bad = FixedHeader();
    faults[i](bad);
    EXPECT_TRUE(absl::IsDataLoss(DecodeJournalHeader(EncodeJournalHeader(bad), "journal").status())) << i;
  }
}

TEST(JournalRecordCodec, BelongsToItsPlaceAlone) {
  JournalRecord record;
  record.first_sequence = 5;
  record.operation_count = 2;
  record.schema_number = 3;
  record.durable_to = 320;
  record.chain = 1234;
  const RecordPlace place{77, 9, 400};
  const std::string payload = "thirteen byte";
  ByteBuffer bytes;
  const uint64_t checksum = AppendRecord(record, AsBytes(payload), place, &bytes);
  ASSERT_EQ(bytes.size(), RecordBytes(payload.size()));
  const auto header = DecodeRecordHeader(bytes, place);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->record, record);
  EXPECT_EQ(header->payload_bytes, payload.size());
  EXPECT_EQ(header->checksum, checksum);
  EXPECT_TRUE(RecordPayloadIsValid(*header, bytes, place));
  EXPECT_FALSE(DecodeRecordHeader(bytes, {78, 9, 400}).has_value());
  EXPECT_FALSE(DecodeRecordHeader(bytes, {77, 10, 400}).has_value());
  EXPECT_FALSE(DecodeRecordHeader(bytes, {77, 9, 408}).has_value());
  EXPECT_FALSE(RecordPayloadIsValid(*header, bytes, {77, 9, 408}));
  EXPECT_FALSE(DecodeRecordHeader(ByteSpan(bytes).first(63), place).has_value());
}

TEST(JournalRecordCodec, ImpossibleRecordsAreRefused) {
  JournalRecord good;
  good.first_sequence = 5;
  good.operation_count = 2;
  const RecordPlace place{1, 2, 400};
  const auto valid = [&place](const JournalRecord& record, std::string_view payload) {
    ByteBuffer bytes;
    AppendRecord(record, AsBytes(payload), place, &bytes);
    return DecodeRecordHeader(bytes, place).has_value();
  };
  EXPECT_TRUE(valid(good, "x"));
  const auto with = [&](auto change) {
    JournalRecord record = good;
    change(record);
    return valid(record, "x");
  };
  EXPECT_FALSE(with([](JournalRecord& r) { r.first_sequence = 0; }));
  EXPECT_FALSE(with([](JournalRecord& r) { r.operation_count = 0; }));
  EXPECT_FALSE(with([](JournalRecord& r) { r.first_sequence = kSequenceMax; }));
  EXPECT_TRUE(with([](JournalRecord& r) { r.first_sequence = kSequenceMax - 1; }));
  EXPECT_FALSE(with([](JournalRecord& r) { r.durable_to = 401; }));
  EXPECT_FALSE(with([](JournalRecord& r) { r.type = static_cast<RecordType>(0); }));
  EXPECT_FALSE(with([](JournalRecord& r) { r.type = static_cast<RecordType>(4); }));
  EXPECT_FALSE(with([](JournalRecord& r) { r.type = RecordType::kSeal; }));
  JournalRecord seal;
  seal.type = RecordType::kSeal;
  seal.first_sequence = 1;
  EXPECT_TRUE(valid(seal, ""));
  EXPECT_FALSE(valid(seal, "x"));
}

TEST(JournalRecordCodec, ZerosAreNeverARecord) {
  const ByteBuffer zeros(4096);
  EXPECT_FALSE(DecodeRecordHeader(zeros, {0, 0, 0}).has_value());
  EXPECT_FALSE(DecodeRecordHeader(zeros, {1, 1, 4096}).has_value());
}

}  // namespace
}  // namespace ashlar::format
