// The catalog's value of one generation (SPEC C-*): everything that a reader needs to find the store's files.
#ifndef ASHLAR_FORMAT_CATALOG_VALUE_H_
#define ASHLAR_FORMAT_CATALOG_VALUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

struct SegmentEntry {
  uint64_t number = 0;    // names the file: segment-<number, 16 hex digits>.seg; never reused
  FileId file_id{};
  uint64_t file_bytes = 0;
  uint32_t documents = 0;  // dead ones included
  uint32_t dead = 0;       // as of the floor
  DocumentId first_id = 0, last_id = 0;  // DocumentIds in it; ranges of segments are disjoint and ascend
  bool operator==(const SegmentEntry&) const = default;
};

struct CatalogValue {
  uint64_t generation = 0;   // grows by one a commit
  StoreId store_id{};
  Schema schema;
  uint32_t schema_number = 0;  // grows when fields are added
  std::string analyzer_identity;
  std::vector<SegmentEntry> segments;  // in order of DocumentId
  uint64_t deaths_number = 0;          // names deaths-<number>.dea; 0: nobody is dead
  FileId deaths_file_id{};
  Sequence floor = 0;             // replay ignores records <= floor
  Sequence last_sequence = 0;     // sequences after a crash start beyond this and beyond the journal's
  uint64_t journal_number = 0;    // the first journal file that may hold records > floor; lower ones are orphans
  uint64_t next_file_number = 1;  // for segments, deaths and journals alike
  std::optional<std::string> watermark;
  uint64_t durable_journal_number = 0;  // the journal was known to be synced to here when this was committed
  uint64_t durable_journal_offset = 0;
  bool operator==(const CatalogValue&) const = default;
};

inline constexpr size_t kAnalyzerIdentityBytesMax = 4096;

// C-6: whether the value was committed by a checkpoint, and no writer has committed since.
inline bool IsCheckpoint(const CatalogValue& value) {
  return value.durable_journal_number == 0 && value.durable_journal_offset == value.generation;
}

// The file id in a catalog value's header: derived from the store and the generation, so that equal values have equal
// bytes and a value in the wrong place is noticed.
FileId CatalogFileId(const StoreId& store_id, uint64_t generation);

// Framed and checksummed bytes, and back. Decode: DataLoss (place: `source`), Unimplemented for a newer format.
ByteBuffer EncodeCatalogValue(const CatalogValue& value);
absl::StatusOr<CatalogValue> DecodeCatalogValue(ByteSpan bytes, std::string_view source);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_CATALOG_VALUE_H_
