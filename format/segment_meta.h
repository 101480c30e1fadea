// The meta section of a segment (SPEC S-9): what is known about it as a whole, read when it is opened.
#ifndef ASHLAR_FORMAT_SEGMENT_META_H_
#define ASHLAR_FORMAT_SEGMENT_META_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr uint32_t kNoField = 0xFFFFFFFFu;

// One inverted index: the group, or a text or keyword field. The group's largest field has none of its own.
struct IndexSummary {
  IndexId index = 0;
  uint64_t terms = 0;
  uint64_t postings = 0;
  bool operator==(const IndexSummary&) const = default;
};

// Sum of the lengths of one field or the group over all documents.
struct LengthSummary {
  IndexId index = 0;
  uint64_t sum = 0;
  bool operator==(const LengthSummary&) const = default;
};

struct SegmentMeta {
  uint64_t number = 0;
  uint64_t generation = 0;
  uint32_t documents = 0;  // at least 1
  DocumentId first_id = 0, last_id = 0;
  uint32_t schema_number = 0;
  Schema schema;
  std::string analyzer_identity;
  uint32_t largest_field = kNoField;   // of the group
  std::vector<IndexSummary> indexes;   // ascending by index, so the group is last
  std::vector<LengthSummary> lengths;  // ascending by index
  bool operator==(const SegmentMeta&) const = default;
};

ByteBuffer EncodeSegmentMeta(const SegmentMeta& meta);
// Nullopt unless the bytes obey S-9.
std::optional<SegmentMeta> DecodeSegmentMeta(ByteSpan bytes);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_SEGMENT_META_H_
