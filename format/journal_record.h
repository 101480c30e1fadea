// Journal files as bytes (SPEC J-*): header, records, seal, end marker, and the operations inside a record.
//
// A file is the common frame, the journal header, then records one after the other at offsets that are multiples of 8. Each
// record's checksums are seeded with the file's salt, its number and the record's offset, so neither a recycled file's old
// content nor a record at another place is ever valid.
#ifndef ASHLAR_FORMAT_JOURNAL_RECORD_H_
#define ASHLAR_FORMAT_JOURNAL_RECORD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

// ---- Operations: the payload of a batch record.

enum class OperationKind : uint8_t { kPut = 1, kDelete = 2, kDeleteId = 3, kWatermark = 4 };

struct OperationView {
  OperationKind kind = OperationKind::kPut;
  ByteSpan document;     // kPut: encoded document
  std::string_view key;  // kDelete; kWatermark: its bytes
  DocumentId id = 0;     // kDeleteId
};

// kWatermark is no operation of the batch, takes no sequence, and comes first or not at all.
void AppendOperation(const OperationView& operation, ByteBuffer* out);
// False if the bytes are not a well-formed list of operations; stops when `visit` returns false (and returns true).
bool VisitOperations(ByteSpan bytes, const std::function<bool(const OperationView&)>& visit);

// ---- The file's header: the common frame and what follows it.

inline constexpr size_t kJournalHeaderPeekBytes = 72;               // enough for PeekJournalHeaderBytes
inline constexpr size_t kJournalHeaderBytesMax = size_t{2} << 20;   // bounds what a damaged length makes us read

struct JournalHeader {
  FileId file_id{};
  StoreId store_id{};
  uint64_t salt = 0;             // random, of this use of the file
  uint64_t number = 0;           // also in its name
  Sequence next_sequence = 0;    // every record here has a first sequence of at least this
  uint64_t previous_number = 0;  // the file whose records these go on from; 0: none
  uint64_t previous_end = 0;     // its records count up to here, and were synced before this file was made
  uint64_t previous_chain = 0;   // checksum of its last record; the first record here carries it
  uint64_t synced_end = 0;       // this file was synced up to here before it got its name
  uint64_t generation = 0;       // of the catalog when the file was made
  uint32_t schema_number = 0;
  bool recycled = false;         // beyond the records lies old content instead of zeros
  Schema schema;
  std::string analyzer_identity;
  bool operator==(const JournalHeader&) const = default;
};

// The header's bytes; their count is a multiple of 8 and the offset of the first record.
ByteBuffer EncodeJournalHeader(const JournalHeader& header);
// How many bytes the header at the start of `bytes` claims to have: 0 if `bytes` is too short to say, at most
// kJournalHeaderBytesMax. Nothing is verified.
size_t PeekJournalHeaderBytes(ByteSpan bytes);
// Decodes the header at the start of `bytes` (which may be longer). DataLoss, Unimplemented.
absl::StatusOr<JournalHeader> DecodeJournalHeader(ByteSpan bytes, std::string_view file);

// ---- Records.

enum class RecordType : uint8_t {
  kBatch = 1,  // the operations of one batch
  kSeal = 2,   // the journal was closed here, everything before is synced
  kVoid = 3,   // end marker: a group whose write failed began here and is void; the journal goes on after the marker
};

inline constexpr size_t kRecordHeaderBytes = 64;
inline constexpr size_t kRecordAlignment = 8;
inline constexpr uint64_t kRecordPayloadBytesMax = uint64_t{1} << 30;

struct JournalRecord {
  RecordType type = RecordType::kBatch;
  Sequence first_sequence = 0;   // seal and marker: the next sequence expected
  uint32_t operation_count = 0;  // batch: at least 1; seal and marker: 0
  uint32_t schema_number = 0;
  uint64_t durable_to = 0;  // this file was known to be synced up to this offset when the record was written
  uint64_t chain = 0;       // checksum of the record before, in this file or in the one before
  bool operator==(const JournalRecord&) const = default;
};

// What ties a record to its place.
struct RecordPlace {
  uint64_t salt = 0;
  uint64_t number = 0;  // of the file
  uint64_t offset = 0;
};

// A decoded record header.
struct RecordHeader {
  JournalRecord record;
  uint32_t payload_bytes = 0;
  uint64_t payload_checksum = 0;
  uint64_t checksum = 0;  // of the header, hence of the whole record: the next one's chain
};

// Bytes that a record with such a payload takes.
inline constexpr uint64_t RecordBytes(uint64_t payload_bytes) {
  return kRecordHeaderBytes + (payload_bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}
// Appends a record; returns its checksum.
uint64_t AppendRecord(const JournalRecord& record, ByteSpan payload, const RecordPlace& place, ByteBuffer* out);
// The record header at the start of `bytes`; nullopt iff there is none that is valid at this place (SPEC J-6).
std::optional<RecordHeader> DecodeRecordHeader(ByteSpan bytes, const RecordPlace& place);
// Whether `record` (RecordBytes(header.payload_bytes) bytes) has the payload that its header promises (SPEC J-7).
bool RecordPayloadIsValid(const RecordHeader& header, ByteSpan record, const RecordPlace& place);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_JOURNAL_RECORD_H_
