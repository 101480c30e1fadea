// SegmentBuilder: writes one immutable segment file from front to back (SPEC S-*).
// Call order: Create AddDocument+ (BeginIndex (BeginTerm AddPosting+ EndTerm)* EndIndex)* Finish
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_BUILDER_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_BUILDER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "format/document_codec.h"
#include "format/layout.h"
#include "src/env/env.h"

namespace ashlar::segment {

struct SegmentSpec {
  uint64_t number = 0;
  format::StoreId store_id{};
  Schema schema;
  uint32_t schema_number = 0;
  std::string analyzer_identity;
  uint64_t generation = 0;  // of the catalog it is built on
  // Postings per field number (or an estimate of them): the group's field with the most is the "largest", whose lists
  // are the group's own, filtered. Ties go to the lower number. Sized to schema.fields.
  std::vector<uint64_t> postings_per_field;
  uint32_t documents_expected = 0;  // a hint
  // A merge: stored documents are compressed anew, with a dictionary made of these alone. Else the inputs' dictionaries
  // are taken over, and in them may be text of documents that are no more.
  bool fresh_dictionaries = false;
};

struct DocumentRow {
  DocumentId id = 0;     // ascending
  std::string_view key;  // empty without a key field
  // One per field of the schema, 0 where the field is not text or keyword, or missing.
  std::span<const uint32_t> lengths;
  ByteSpan stored;                             // encoded values of stored fields, without the key field
  std::span<const format::ValueView> columns;  // values of column fields, ascending by field, without the key field
};

struct PostingRow {
  uint32_t ordinal = 0;  // ascending within a term
  // One per member of the index: the group's fields in ascending field number, or the one field. Not all zero.
  std::span<const uint32_t> frequencies;
  // The members' positions one after another, each member's ascending; empty if the index keeps none.
  std::span<const uint32_t> positions;
};

class SegmentBuilder {
 public:
  static absl::StatusOr<std::unique_ptr<SegmentBuilder>> Create(env::Env env, const std::string& directory,
                                                                const SegmentSpec& spec);
  virtual ~SegmentBuilder() = default;  // unfinished: removes its file

  virtual absl::Status AddDocument(const DocumentRow& row) = 0;
  // The group first (if the schema has one), then the text and keyword fields outside the group by ascending number.
  // Lists of the group's smaller fields are made by the builder from the group's rows. The key field has no index.
  virtual absl::Status BeginIndex(format::IndexId index) = 0;
  // Ascending bytes. About so many postings decide how the list is encoded, and nothing else.
  virtual absl::Status BeginTerm(std::string_view term, uint64_t postings_expected) = 0;
  virtual absl::Status AddPosting(const PostingRow& row) = 0;
  virtual absl::Status EndTerm() = 0;
  virtual absl::Status EndIndex() = 0;
  // Writes what is left, syncs the file and the directory. `dead` of the entry is 0.
  virtual absl::StatusOr<format::SegmentEntry> Finish() = 0;
  virtual uint64_t bytes_written() const = 0;
};

// The indexes that a segment of this schema is built from, in BeginIndex order.
std::vector<format::IndexId> IndexesOf(const Schema& schema);
// The group's fields in ascending field number.
std::vector<uint32_t> GroupFieldsOf(const Schema& schema);

// "segment-<16 hex digits>.seg", and back (0: not such a name).
std::string FileName(uint64_t number);
uint64_t NumberOf(std::string_view name);

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_BUILDER_H_
