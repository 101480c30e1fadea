#include "format/catalog_value.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ashlar/options.h"
#include "format/record_frame.h"
#include "format/schema_codec.h"

namespace ashlar::format {
namespace {

constexpr std::string_view kSection = "catalog value";
constexpr size_t kSegmentEntryBytes = 56;

void PutId(const std::array<std::byte, 16>& id, ByteWriter* w) { w->Span(ByteSpan(id)); }

std::array<std::byte, 16> GetId(ByteReader* in) {
  std::array<std::byte, 16> id{};
  const ByteSpan bytes = in->Span(id.size());
  if (bytes.size() == id.size()) std::memcpy(id.data(), bytes.data(), id.size());
  return id;
}

void PutSegment(const SegmentEntry& segment, ByteWriter* w) {
  w->U64(segment.number);
  PutId(segment.file_id, w);
  w->U64(segment.file_bytes);
  w->U32(segment.documents);
  w->U32(segment.dead);
  w->U64(segment.first_id);
  w->U64(segment.last_id);
}

SegmentEntry GetSegment(ByteReader* in) {
  SegmentEntry segment;
  segment.number = in->U64();
  segment.file_id = GetId(in);
  segment.file_bytes = in->U64();
  segment.documents = in->U32();
  segment.dead = in->U32();
  segment.first_id = in->U64();
  segment.last_id = in->U64();
  return segment;
}

// What is wrong with a well-formed value, or null (SPEC C-4).
const char* Fault(const CatalogValue& value) {
  if (value.generation == 0) return "generation 0";
  if (value.floor > value.last_sequence) return "the floor is beyond the last sequence";
  if (value.analyzer_identity.size() > kAnalyzerIdentityBytesMax) return "the analyzer identity is too long";
  DocumentId last_id = 0;
  for (const SegmentEntry& segment : value.segments) {
    if (segment.number == 0 || segment.number >= value.next_file_number) return "a segment number was never given out";
    if (segment.documents == 0 || segment.dead > segment.documents) return "impossible document counts";
    if (segment.first_id <= last_id || segment.last_id < segment.first_id) return "DocumentId ranges do not ascend";
    last_id = segment.last_id;
  }
  std::vector<uint64_t> numbers;
  for (const SegmentEntry& segment : value.segments) numbers.push_back(segment.number);
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) return "a segment is named twice";
  if (value.deaths_number >= value.next_file_number) return "the deaths file's number was never given out";
  if (value.watermark.has_value() && value.watermark->size() > kWatermarkBytesMax) return "the watermark is too long";
  if (value.deaths_number == 0 && value.deaths_file_id != FileId{}) return "an id of no deaths file";
  return nullptr;
}

ByteBuffer Encode(const CatalogValue& value) {
  FileHeader header;
  header.kind = FileKind::kCatalogValue;
  header.file_id = CatalogFileId(value.store_id, value.generation);
  header.store_id = value.store_id;
  ByteBuffer out = BeginFramed(header);
  ByteWriter w(&out);
  w.U64(value.generation);
  w.U64(value.floor);
  w.U64(value.last_sequence);
  w.U64(value.journal_number);
  w.U64(value.next_file_number);
  w.U64(value.durable_journal_number);
  w.U64(value.durable_journal_offset);
  w.U64(value.deaths_number);
  PutId(value.deaths_file_id, &w);
  w.U32(value.schema_number);
  ByteBuffer schema;
  EncodeSchema(value.schema, &schema);
  w.Sized(AsString(schema));
  w.Sized(value.analyzer_identity);
  w.U8(value.watermark.has_value() ? 1 : 0);
  w.Sized(value.watermark.value_or(""));
  w.Varint(value.segments.size());
  for (const SegmentEntry& segment : value.segments) PutSegment(segment, &w);
  EndFramed(header.file_id, &out);
  return out;
}

}  // namespace

FileId CatalogFileId(const StoreId& store_id, uint64_t generation) {
  std::array<std::byte, 24> source;
  std::memcpy(source.data(), store_id.data(), 16);
  StoreU64(source.data() + 16, generation);
  FileId id;
  StoreU64(id.data(), Checksum(source, 1));
  StoreU64(id.data() + 8, Checksum(source, 2));
  return id;
}

ByteBuffer EncodeCatalogValue(const CatalogValue& value) { return Encode(value); }

absl::StatusOr<CatalogValue> DecodeCatalogValue(ByteSpan bytes, std::string_view source) {
  ASHLAR_ASSIGN_OR_RETURN(const Framed framed, OpenFramed(bytes, FileKind::kCatalogValue, source));
  CatalogValue value;
  value.store_id = framed.header.store_id;
  ByteReader in(framed.body);
  value.generation = in.U64();
  value.floor = in.U64();
  value.last_sequence = in.U64();
  value.journal_number = in.U64();
  value.next_file_number = in.U64();
  value.durable_journal_number = in.U64();
  value.durable_journal_offset = in.U64();
  value.deaths_number = in.U64();
  value.deaths_file_id = GetId(&in);
  value.schema_number = in.U32();
  const std::string_view schema_bytes = in.Sized();
  const uint64_t schema_at = kFileHeaderBytes + in.position() - schema_bytes.size();
  value.analyzer_identity = in.Sized();
  const bool has_watermark = in.U8() != 0;
  const std::string_view watermark = in.Sized();
  if (has_watermark) value.watermark.emplace(watermark);
  const uint64_t segment_count = in.Varint();
  const uint64_t segments_at = kFileHeaderBytes + in.position();
  if (!in.ok() || segment_count > in.left() / kSegmentEntryBytes)
    return DataLoss(source, kSection, segments_at, "the value ends too early");
  std::optional<Schema> schema = DecodeSchema(AsBytes(schema_bytes));
  if (!schema.has_value()) return DataLoss(source, "schema", schema_at, "not a schema");
  value.schema = *std::move(schema);
  value.segments.reserve(segment_count);
  for (uint64_t i = 0; i < segment_count; ++i) value.segments.push_back(GetSegment(&in));
  if (!in.done()) return DataLoss(source, kSection, kFileHeaderBytes + in.position(), "bytes after the last segment");
  if (framed.header.file_id != CatalogFileId(value.store_id, value.generation))
    return DataLoss(source, kSection, 24, "the file id is not that of this store and generation");
  if (const char* fault = Fault(value)) return DataLoss(source, kSection, kFileHeaderBytes, fault);
  // One value has one encoding (SPEC C-5): refuses long varints, flags other than 0 and 1, a watermark that is not there.
  if (const std::optional<uint64_t> at = FirstDifference(Encode(value), bytes))
    return DataLoss(source, kSection, *at, "not in its canonical form");
  return value;
}

}  // namespace ashlar::format
