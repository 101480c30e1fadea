// Golden files of version 1: a journal, a deaths file and a catalog value (format/golden/v1/). Each decodes to the text below,
// the same values encode to the same bytes, and every flipped bit and every truncation is detected or harmless.
//
// To write them anew (while version 1 may still change): ASHLAR_WRITE_GOLDEN=1 records_golden_test, and commit the files
// together with the change of SPEC.md that made it necessary.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "format/schema_codec.h"
#include "src/base/status.h"
#include "tests/format/records_support.h"

namespace ashlar::format {
namespace {

// ---- The values.

ByteBuffer GoldenJournal() {
  JournalHeader header;
  header.file_id = CountingId(0x10);
  header.store_id = CountingId(0x20);
  header.salt = 0x0123456789abcdef;
  header.number = 5;
  header.next_sequence = 101;
  header.previous_number = 3;
  header.previous_end = 4000;
  header.previous_chain = 0xfeedface;
  header.generation = 12;
  header.schema_number = 2;
  header.schema = FixedSchema();
  header.analyzer_identity = "ashlar 1, ICU 72.1";
  header.synced_end = EncodeJournalHeader(header).size();
  ByteBuffer out = EncodeJournalHeader(header);
  const uint64_t synced = out.size();
  uint64_t chain = header.previous_chain;
  const auto append = [&](RecordType type, Sequence first, uint32_t count, uint64_t durable_to, ByteSpan payload) {
    JournalRecord record;
    record.type = type;
    record.first_sequence = first;
    record.operation_count = count;
    record.schema_number = count > 0 ? 2 : 0;
    record.durable_to = durable_to;
    record.chain = chain;
    chain = AppendRecord(record, payload, {header.salt, header.number, out.size()}, &out);
  };
  ByteBuffer operations;
  AppendOperation({OperationKind::kPut, AsBytes("a document's bytes"), {}, 0}, &operations);
  AppendOperation({OperationKind::kDelete, {}, "gone", 0}, &operations);
  AppendOperation({OperationKind::kDeleteId, {}, {}, 77}, &operations);
  ByteBuffer watermark;
  AppendOperation({OperationKind::kWatermark, {}, "row 9000", 0}, &watermark);
  append(RecordType::kBatch, 101, 3, synced, operations);
  append(RecordType::kBatch, 104, 1, synced, watermark);
  append(RecordType::kVoid, 105, 0, synced + 96, {});
  append(RecordType::kSeal, 105, 0, out.size(), {});
  out.resize(out.size() + 40);
  return out;
}

DeathsFile GoldenDeaths() {
  return {CountingId(0x30),
          CountingId(0x20),
          12,
          {{4, {{0, 50}, {1, 51}, {700, 49}}}, {9, {{65535, 1000000}, {4294967294u, 1000001}}}}};
}

CatalogValue GoldenCatalogValue() {
  CatalogValue value;
  value.generation = 12;
  value.store_id = CountingId(0x20);
  value.schema = FixedSchema();
  value.schema_number = 2;
  value.analyzer_identity = "ashlar 1, ICU 72.1";
  value.segments = {{4, CountingId(0x40), 123456, 1000, 3, 1, 1100}, {9, CountingId(0x50), 777, 20, 0, 1200, 1300}};
  value.deaths_number = 10;
  value.deaths_file_id = CountingId(0x30);
  value.floor = 1300;
  value.last_sequence = 1307;
  value.journal_number = 5;
  value.next_file_number = 11;
  value.watermark = "row 8999";
  value.durable_journal_number = 5;
  value.durable_journal_offset = 440;
  return value;
}

// ---- Their text.

// What can be read of a journal file, in lines; ends where the records do.
absl::StatusOr<std::vector<std::string>> JournalText(ByteSpan bytes) {
  const auto header = DecodeJournalHeader(bytes, "journal");
  if (!header.ok()) return header.status();
  std::vector<std::string> lines = {
      absl::StrCat("file ", Hex(header->file_id), " store ", Hex(header->store_id)),
      absl::StrCat("journal ", header->number, " salt ", absl::Hex(header->salt), " next ", header->next_sequence,
                   " previous ", header->previous_number, " to ", header->previous_end, " chain ",
                   absl::Hex(header->previous_chain), " synced to ", header->synced_end, " generation ",
                   header->generation, " schema ", header->schema_number, header->recycled ? " recycled" : ""),
      absl::StrCat(ToText(header->schema), " identity ", header->analyzer_identity)};
  uint64_t offset = PeekJournalHeaderBytes(bytes);
  uint64_t chain = header->previous_chain;
  while (true) {
    const RecordPlace place{header->salt, header->number, offset};
    const ByteSpan rest = bytes.subspan(std::min<size_t>(offset, bytes.size()));
    const auto record = DecodeRecordHeader(rest, place);
    if (!record.has_value() || record->record.chain != chain) break;
    const uint64_t size = RecordBytes(record->payload_bytes);
    if (size > rest.size() || !RecordPayloadIsValid(*record, rest.first(size), place)) break;
    std::string line = absl::StrCat(offset, " type ", static_cast<int>(record->record.type), " sequence ",
                                    record->record.first_sequence, "+", record->record.operation_count, " schema ",
                                    record->record.schema_number, " durable ", record->record.durable_to);
    const bool whole =
        VisitOperations(rest.subspan(kRecordHeaderBytes, record->payload_bytes), [&line](const OperationView& operation) {
          absl::StrAppend(&line, " [", static_cast<int>(operation.kind), " ", ToAbsl(AsString(operation.document)),
                          ToAbsl(operation.key), " ", operation.id, "]");
          return true;
        });
    EXPECT_TRUE(whole);
    lines.push_back(line);
    chain = record->checksum;
    offset += size;
  }
  return lines;
}

const std::vector<std::string> kJournalText = {
    "file 101112131415161718191a1b1c1d1e1f store 202122232425262728292a2b2c2d2e2f",
    "journal 5 salt 123456789abcdef next 101 previous 3 to 4000 chain feedface synced to 232 generation 12 schema 2",
    "schema key=id group=title, title:1spc/1porter0 year:3pc/0none0 id:2sc/0none0 identity ashlar 1, ICU 72.1",
    "232 type 1 sequence 101+3 schema 2 durable 232 [1 a document's bytes 0] [2 gone 0] [3  77]",
    "328 type 1 sequence 104+1 schema 2 durable 232 [4 row 9000 0]",
    "408 type 3 sequence 105+0 schema 0 durable 328",
    "472 type 2 sequence 105+0 schema 0 durable 472",
};

std::string DeathsText(const DeathsFile& deaths) {
  std::string out = absl::StrCat(Hex(deaths.file_id), " ", Hex(deaths.store_id), " ", deaths.generation);
  for (const SegmentDeaths& segment : deaths.segments) {
    absl::StrAppend(&out, " | ", segment.segment_number);
    for (const Death& death : segment.deaths) absl::StrAppend(&out, " ", death.ordinal, "@", death.sequence);
  }
  return out;
}

const std::string kDeathsText =
    "303132333435363738393a3b3c3d3e3f 202122232425262728292a2b2c2d2e2f 12 | 4 0@50 1@51 700@49 | 9 65535@1000000 "
    "4294967294@1000001";

std::string CatalogText(const CatalogValue& value) {
  std::string out = absl::StrCat("generation ", value.generation, " store ", Hex(value.store_id), " ", ToText(value.schema),
                                 " number ", value.schema_number, " identity ", value.analyzer_identity);
  for (const SegmentEntry& s : value.segments)
    absl::StrAppend(&out, " | ", s.number, " ", Hex(s.file_id), " ", s.file_bytes, " ", s.documents, "-", s.dead, " ",
                    s.first_id, "..", s.last_id);
  absl::StrAppend(&out, " | deaths ", value.deaths_number, " ", Hex(value.deaths_file_id), " floor ", value.floor,
                  " last ", value.last_sequence, " journal ", value.journal_number, " next ", value.next_file_number,
                  " watermark ", value.watermark.value_or("none"), " durable ", value.durable_journal_number, ":",
                  value.durable_journal_offset);
  return out;
}

const std::string kCatalogText =
    "generation 12 store 202122232425262728292a2b2c2d2e2f schema key=id group=title, title:1spc/1porter0 "
    "year:3pc/0none0 "
    "id:2sc/0none0 number 2 identity ashlar 1, ICU 72.1 | 4 404142434445464748494a4b4c4d4e4f 123456 1000-3 1..1100 | 9 "
    "505152535455565758595a5b5c5d5e5f 777 20-0 1200..1300 | deaths 10 303132333435363738393a3b3c3d3e3f floor 1300 last "
    "1307 journal 5 next 11 watermark row 8999 durable 5:440";

// ---- The files.

ByteBuffer Golden(const std::string& name, const ByteBuffer& encoded) {
  const std::string path = std::string(ASHLAR_GOLDEN_DIR) + "/" + name;
  if (std::getenv("ASHLAR_WRITE_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(encoded.data()), static_cast<std::streamsize>(encoded.size()));
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return {AsBytes(bytes).begin(), AsBytes(bytes).end()};
}

// Calls `check` with every variant that differs in one bit, and with every shorter one.
void ForEachDamage(const ByteBuffer& whole, const std::function<void(const ByteBuffer&, const std::string&, size_t)>& check) {
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    ByteBuffer bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    check(bytes, absl::StrCat("byte ", bit / 8, " bit ", bit % 8), bit / 8);
  }
  for (size_t size = 0; size < whole.size(); ++size)
    check(ByteBuffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), absl::StrCat("size ", size), size);
}

TEST(GoldenTest, Journal) {
  const ByteBuffer bytes = Golden("journal.bin", GoldenJournal());
  EXPECT_EQ(bytes, GoldenJournal());
  const auto text = JournalText(bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, kJournalText);
  const size_t end = bytes.size() - 40;
  ForEachDamage(bytes, [&](const ByteBuffer& damaged, const std::string& what, size_t at) {
    const auto lines = JournalText(damaged);
    if (!lines.ok()) {
      ASSERT_TRUE(absl::IsDataLoss(lines.status())) << what << " " << lines.status();
      ASSERT_LT(at, 232u) << what;
      return;
    }
    // The records end before the damage, and those before it are untouched.
    ASSERT_LE(lines->size(), kJournalText.size()) << what;
    ASSERT_TRUE(std::equal(lines->begin(), lines->end(), kJournalText.begin())) << what;
    ASSERT_EQ(lines->size() == kJournalText.size(), at >= end) << what;
  });
}

TEST(GoldenTest, Deaths) {
  const ByteBuffer bytes = Golden("deaths.bin", EncodeDeaths(GoldenDeaths()));
  EXPECT_EQ(bytes, EncodeDeaths(GoldenDeaths()));
  const auto deaths = DecodeDeaths(bytes, "deaths");
  ASSERT_TRUE(deaths.ok()) << deaths.status();
  EXPECT_EQ(DeathsText(*deaths), kDeathsText);
  ForEachDamage(bytes, [](const ByteBuffer& damaged, const std::string& what, size_t) {
    const absl::Status status = DecodeDeaths(damaged, "deaths").status();
    ASSERT_TRUE(absl::IsDataLoss(status)) << what << " " << status;
    ASSERT_EQ(PlaceOf(status)->file, "deaths");
  });
}

TEST(GoldenTest, CatalogValue) {
  const ByteBuffer bytes = Golden("catalog_value.bin", EncodeCatalogValue(GoldenCatalogValue()));
  EXPECT_EQ(bytes, EncodeCatalogValue(GoldenCatalogValue()));
  const auto value = DecodeCatalogValue(bytes, "value");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(CatalogText(*value), kCatalogText);
  ForEachDamage(bytes, [](const ByteBuffer& damaged, const std::string& what, size_t) {
    const absl::Status status = DecodeCatalogValue(damaged, "value").status();
    ASSERT_TRUE(absl::IsDataLoss(status)) << what << " " << status;
    ASSERT_EQ(PlaceOf(status)->file, "value");
  });
}

// The worked examples of SPEC.md are parts of the golden files.
ByteBuffer SpecExample(std::string_view marker) {
  std::ifstream in(ASHLAR_SPEC);
  EXPECT_TRUE(in.good()) << ASHLAR_SPEC;
  const std::string spec{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const size_t at = spec.find(marker);
  EXPECT_NE(at, std::string::npos) << marker;
  ByteBuffer bytes;
  // Lines indented by four, up to the blank line behind them.
  for (size_t line = spec.find("\n    ", at) + 1; spec.substr(line, 4) == "    "; line = spec.find('\n', line) + 1) {
    for (size_t i = line + 4; i < spec.find('\n', line); ++i) {
      if (spec[i] == ' ') continue;
      bytes.push_back(static_cast<std::byte>(std::stoi(spec.substr(i, 2), nullptr, 16)));
      ++i;
    }
  }
  return bytes;
}

bool Contains(const ByteBuffer& bytes, const ByteBuffer& part) {
  return !part.empty() && std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
}

TEST(GoldenTest, SpecExamplesAreInTheFiles) {
  EXPECT_TRUE(Contains(GoldenJournal(), SpecExample("Example: `format/golden/v1/journal.bin`")));
  EXPECT_TRUE(Contains(EncodeDeaths(GoldenDeaths()), SpecExample("Example, from `format/golden/v1/deaths.bin`")));
  ByteBuffer schema;
  EncodeSchema(FixedSchema(), &schema);
  EXPECT_EQ(SpecExample("Example: `title` (text, stored"), schema);
}

}  // namespace
}  // namespace ashlar::format
