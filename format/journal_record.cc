#include "format/journal_record.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ashlar/options.h"
#include "format/catalog_value.h"
#include "format/frame.h"
#include "format/schema_codec.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::format {
namespace {

constexpr std::string_view kHeaderSection = "journal header";
constexpr size_t kHeaderBytesOffset = 64;
constexpr size_t kHeaderFixedBytes = 144;  // up to the schema
constexpr size_t kHeaderChecksumBytes = 8;
constexpr uint32_t kFlagRecycled = 1;
constexpr size_t kRecordChecksumOffset = 56;

size_t AlignUp(size_t n) { return (n + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment; }

uint64_t SeedOf(const RecordPlace& place) {
  std::array<std::byte, 16> id;
  StoreU64(id.data(), place.salt);
  StoreU64(id.data() + 8, place.number);
  return PlaceSeed(id, place.offset);
}

// SPEC J-6, the part that is not the checksum.
bool FieldsAreValid(const RecordHeader& h, uint8_t type, bool reserved_is_zero, const RecordPlace& place) {
  if (type < 1 || type > 3 || !reserved_is_zero) return false;
  if (h.payload_bytes > kRecordPayloadBytesMax || h.record.durable_to > place.offset) return false;
  if (h.record.first_sequence == 0) return false;
  if (h.record.type == RecordType::kBatch)
    return h.record.operation_count > 0 &&
           h.record.operation_count - 1 <= std::numeric_limits<Sequence>::max() - h.record.first_sequence;
  return h.payload_bytes == 0 && h.record.operation_count == 0 && h.record.schema_number == 0;
}

}  // namespace

void AppendOperation(const OperationView& operation, ByteBuffer* out) {
  ByteWriter w(out);
  w.U8(static_cast<uint8_t>(operation.kind));
  switch (operation.kind) {
    case OperationKind::kPut:
      w.Varint(operation.document.size());
      w.Span(operation.document);
      break;
    case OperationKind::kDelete:
    case OperationKind::kWatermark:
      w.Sized(operation.key);
      break;
    case OperationKind::kDeleteId:
      w.Varint(operation.id);
      break;
  }
}

bool VisitOperations(ByteSpan bytes, const std::function<bool(const OperationView&)>& visit) {
  ByteReader in(bytes);
  while (!in.done()) {
    OperationView operation;
    operation.kind = static_cast<OperationKind>(in.U8());
    switch (operation.kind) {
      case OperationKind::kPut:
        operation.document = in.Span(in.Varint());
        break;
      case OperationKind::kDelete:
        operation.key = in.Sized();
        break;
      case OperationKind::kDeleteId:
        operation.id = in.Varint();
        break;
      case OperationKind::kWatermark:
        if (in.position() != 1) return false;
        operation.key = in.Sized();
        if (operation.key.size() > kWatermarkBytesMax) return false;
        break;
      default:
        return false;
    }
    if (!in.ok()) return false;
    if (!visit(operation)) return true;
  }
  return true;
}

ByteBuffer EncodeJournalHeader(const JournalHeader& header) {
  ByteBuffer out(kFileHeaderBytes);
  FileHeader frame;
  frame.kind = FileKind::kJournal;
  frame.file_id = header.file_id;
  frame.store_id = header.store_id;
  EncodeFileHeader(frame, std::span<std::byte, kFileHeaderBytes>(out.data(), kFileHeaderBytes));
  ByteWriter w(&out);
  w.U32(0);  // the header's size, set below
  w.U32(header.recycled ? kFlagRecycled : 0);
  w.U64(header.salt);
  w.U64(header.number);
  w.U64(header.next_sequence);
  w.U64(header.previous_number);
  w.U64(header.previous_end);
  w.U64(header.previous_chain);
  w.U64(header.synced_end);
  w.U64(header.generation);
  w.U32(header.schema_number);
  w.U32(0);
  ByteBuffer schema;
  EncodeSchema(header.schema, &schema);
  w.Sized(AsString(schema));
  w.Sized(header.analyzer_identity);
  w.Zeros(AlignUp(out.size()) - out.size());
  StoreU32(out.data() + kHeaderBytesOffset, static_cast<uint32_t>(out.size() + kHeaderChecksumBytes));
  w.U64(Checksum(ByteSpan(out).subspan(kFileHeaderBytes), PlaceSeed(header.file_id, kFileHeaderBytes)));
  return out;
}

size_t PeekJournalHeaderBytes(ByteSpan bytes) {
  if (bytes.size() < kJournalHeaderPeekBytes) return 0;
  return std::min<size_t>(LoadU32(bytes.data() + kHeaderBytesOffset), kJournalHeaderBytesMax);
}

absl::StatusOr<JournalHeader> DecodeJournalHeader(ByteSpan bytes, std::string_view file) {
  ASHLAR_ASSIGN_OR_RETURN(const FileHeader frame, DecodeFileHeader(bytes, FileKind::kJournal, file));
  const size_t header_bytes = PeekJournalHeaderBytes(bytes);
  if (header_bytes < kHeaderFixedBytes + kHeaderChecksumBytes || header_bytes > bytes.size() ||
      header_bytes % kRecordAlignment != 0)
    return DataLoss(file, kHeaderSection, kHeaderBytesOffset, "impossible header size");
  const ByteSpan body = bytes.subspan(kFileHeaderBytes, header_bytes - kFileHeaderBytes - kHeaderChecksumBytes);
  const size_t checksum_at = header_bytes - kHeaderChecksumBytes;
  if (SiteIsOn(Site::kCheckJournalHeader) &&
      LoadU64(bytes.data() + checksum_at) != Checksum(body, PlaceSeed(frame.file_id, kFileHeaderBytes)))
    return DataLoss(file, kHeaderSection, checksum_at, "checksum mismatch");
  JournalHeader header;
  header.file_id = frame.file_id;
  header.store_id = frame.store_id;
  ByteReader in(body.subspan(4));
  const uint32_t flags = in.U32();
  header.recycled = (flags & kFlagRecycled) != 0;
  header.salt = in.U64();
  header.number = in.U64();
  header.next_sequence = in.U64();
  header.previous_number = in.U64();
  header.previous_end = in.U64();
  header.previous_chain = in.U64();
  header.synced_end = in.U64();
  header.generation = in.U64();
  header.schema_number = in.U32();
  in.U32();
  const std::string_view schema_bytes = in.Sized();
  header.analyzer_identity = in.Sized();
  if (!in.ok() || header.analyzer_identity.size() > kAnalyzerIdentityBytesMax)
    return DataLoss(file, kHeaderSection, kHeaderFixedBytes, "the header ends too early");
  std::optional<Schema> schema = DecodeSchema(AsBytes(schema_bytes));
  if (!schema.has_value()) return DataLoss(file, kHeaderSection, kHeaderFixedBytes, "not a schema");
  header.schema = *std::move(schema);
  if (header.number == 0 || header.previous_number >= header.number || header.next_sequence == 0 ||
      header.synced_end < header_bytes || header.synced_end % kRecordAlignment != 0)
    return DataLoss(file, kHeaderSection, kFileHeaderBytes, "impossible numbers");
  // One header has one encoding (SPEC J-3): refuses reserved bits and bytes that are not zero.
  const ByteBuffer again = EncodeJournalHeader(header);
  if (again.size() != header_bytes ||
      !std::equal(again.begin() + kFileHeaderBytes, again.end() - kHeaderChecksumBytes, bytes.begin() + kFileHeaderBytes))
    return DataLoss(file, kHeaderSection, kFileHeaderBytes, "not in its canonical form");
  return header;
}

uint64_t AppendRecord(const JournalRecord& record, ByteSpan payload, const RecordPlace& place, ByteBuffer* out) {
  const size_t start = out->size();
  const uint64_t seed = SeedOf(place);
  out->resize(start + RecordBytes(payload.size()));  // padding is zero
  std::byte* p = out->data() + start;
  if (!payload.empty()) std::memcpy(p + kRecordHeaderBytes, payload.data(), payload.size());
  StoreU32(p, static_cast<uint32_t>(payload.size()));
  p[4] = std::byte{static_cast<uint8_t>(record.type)};
  StoreU64(p + 8, record.first_sequence);
  StoreU32(p + 16, record.operation_count);
  StoreU32(p + 20, record.schema_number);
  StoreU64(p + 32, record.durable_to);
  StoreU64(p + 40, record.chain);
  StoreU64(p + 48, Checksum(ByteSpan(*out).subspan(start + kRecordHeaderBytes), seed));
  const uint64_t checksum = Checksum(ByteSpan(p, kRecordChecksumOffset), seed);
  StoreU64(p + kRecordChecksumOffset, checksum);
  return checksum;
}

std::optional<RecordHeader> DecodeRecordHeader(ByteSpan bytes, const RecordPlace& place) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const std::byte* p = bytes.data();
  const auto type = static_cast<uint8_t>(p[4]);
  const bool reserved_is_zero = p[5] == std::byte{0} && LoadU16(p + 6) == 0 && LoadU64(p + 24) == 0;
  RecordHeader header;
  header.payload_bytes = LoadU32(p);
  header.record.type = static_cast<RecordType>(type);
  header.record.first_sequence = LoadU64(p + 8);
  header.record.operation_count = LoadU32(p + 16);
  header.record.schema_number = LoadU32(p + 20);
  header.record.durable_to = LoadU64(p + 32);
  header.record.chain = LoadU64(p + 40);
  header.payload_checksum = LoadU64(p + 48);
  header.checksum = LoadU64(p + kRecordChecksumOffset);
  // The cheap tests come first: the scan behind a torn tail tries every eighth byte of the file.
  if (!FieldsAreValid(header, type, reserved_is_zero, place)) return std::nullopt;
  if (SiteIsOn(Site::kCheckRecordHeader) &&
      header.checksum != Checksum(bytes.first(kRecordChecksumOffset), SeedOf(place)))
    return std::nullopt;
  return header;
}

bool RecordPayloadIsValid(const RecordHeader& header, ByteSpan record, const RecordPlace& place) {
  if (record.size() != RecordBytes(header.payload_bytes)) return false;
  const ByteSpan padded = record.subspan(kRecordHeaderBytes);
  if (SiteIsOn(Site::kCheckRecordPayload) && header.payload_checksum != Checksum(padded, SeedOf(place))) return false;
  return std::all_of(padded.begin() + header.payload_bytes, padded.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace ashlar::format
