#include "src/engine/overlay_segment.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "format/document_codec.h"
#include "src/base/status.h"
#include "src/segment/segment_schema.h"
#include "src/text/analyzer.h"

namespace ashlar::engine {
namespace {

// Splits an encoded document into what a segment stores and what its columns hold.
class DocumentSplitter {
 public:
  explicit DocumentSplitter(const Schema& schema) : schema_(schema), key_(schema.KeyIndex()) {}

  bool Split(ByteSpan encoded) {
    stored_.clear();
    columns_.clear();
    return format::VisitValues(encoded, [this](const format::ValueView& value) {
      if (static_cast<int>(value.field) == key_) return;
      const Field& field = schema_.fields[value.field];
      if (field.stored) format::AppendValue(value, &stored_);
      if (field.column && field.type != FieldType::kText && field.type != FieldType::kBytes) columns_.push_back(value);
    });
  }
  const ByteBuffer& stored() const { return stored_; }
  const std::vector<format::ValueView>& columns() const { return columns_; }

 private:
  const Schema& schema_;
  const int key_;
  ByteBuffer stored_;
  std::vector<format::ValueView> columns_;
};

// Feeds the live postings of one index of an overlay to a builder. `new_ordinal` maps the overlay's ordinals to the
// segment's; format::kNoDocument: left out.
absl::Status FeedIndex(const overlay::Overlay& overlay, format::IndexId index, const std::vector<uint32_t>& new_ordinal,
                       segment::SegmentBuilder* builder) {
  std::vector<uint32_t> frequencies, positions;
  return overlay.VisitTerms(index, [&](std::string_view term, overlay::Cursor cursor) -> absl::Status {
    bool begun = false;
    // Documents that a writer adds meanwhile stand behind all of ours.
    for (; cursor.document() < new_ordinal.size(); cursor.Next()) {
      const uint32_t ordinal = new_ordinal[cursor.document()];
      if (ordinal == format::kNoDocument) continue;
      if (!begun) ASHLAR_RETURN_IF_ERROR(builder->BeginTerm(term, cursor.postings()));
      begun = true;
      frequencies.clear();
      positions.clear();
      cursor.AppendRow(&frequencies, &positions);
      ASHLAR_RETURN_IF_ERROR(builder->AddPosting({ordinal, frequencies, positions}));
    }
    return begun ? builder->EndTerm() : absl::OkStatus();
  });
}

// Tokens of each field: postings can't be counted beside a writer, and this tells the largest field about as well.
std::vector<uint64_t> TokensPerField(const overlay::Overlay& overlay, const std::vector<uint32_t>& fields,
                                     const Schema& schema, uint32_t documents) {
  std::vector<uint64_t> tokens(schema.fields.size(), 0);
  for (const uint32_t field : fields)
    for (uint32_t ordinal = 0; ordinal < documents; ++ordinal) tokens[field] += overlay.Length(field, ordinal);
  return tokens;
}

}  // namespace

std::vector<uint32_t> SegmentOrdinals(const overlay::Overlay& overlay, uint32_t documents, Sequence at) {
  std::vector<uint32_t> result(documents, format::kNoDocument);
  uint32_t live = 0;
  for (uint32_t ordinal = 0; ordinal < documents; ++ordinal) {
    const Sequence death = overlay.DeathOf(ordinal);
    if (death == 0 || death > at) result[ordinal] = live++;
  }
  return result;
}

absl::StatusOr<std::optional<format::SegmentEntry>> WriteOverlaySegment(env::Env env, const std::string& directory,
                                                                        const overlay::Overlay& overlay,
                                                                        uint32_t documents, Sequence at,
                                                                        segment::SegmentSpec spec) {
  const Schema schema = spec.schema;
  const std::vector<uint32_t> new_ordinal = SegmentOrdinals(overlay, documents, at);
  const auto live = static_cast<uint32_t>(
      std::count_if(new_ordinal.begin(), new_ordinal.end(), [](uint32_t o) { return o != format::kNoDocument; }));
  if (live == 0) return std::optional<format::SegmentEntry>();

  std::vector<uint32_t> searchable;
  for (uint32_t field = 0; field < schema.fields.size(); ++field)
    if (segment::IsSearchable(schema, field)) searchable.push_back(field);
  spec.analyzer_identity = text::AnalyzerIdentity();  // of the build that analyses, whatever made the store
  spec.documents_expected = live;
  if (spec.postings_per_field.empty())
    spec.postings_per_field = TokensPerField(overlay, searchable, schema, documents);
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<segment::SegmentBuilder> builder,
                          segment::SegmentBuilder::Create(env, directory, spec));

  DocumentSplitter splitter(schema);
  std::vector<uint32_t> lengths(schema.fields.size(), 0);
  for (uint32_t ordinal = 0; ordinal < documents; ++ordinal) {
    if (new_ordinal[ordinal] == format::kNoDocument) continue;
    if (!splitter.Split(overlay.DocumentOf(ordinal)))
      return Internal("an encoded document of the overlay is malformed");
    for (const uint32_t field : searchable) lengths[field] = overlay.Length(field, ordinal);
    ASHLAR_RETURN_IF_ERROR(builder->AddDocument(
        {overlay.IdOf(ordinal), overlay.KeyOf(ordinal), lengths, splitter.stored(), splitter.columns()}));
  }
  for (const format::IndexId index : segment::IndexesOf(schema)) {
    ASHLAR_RETURN_IF_ERROR(builder->BeginIndex(index));
    ASHLAR_RETURN_IF_ERROR(FeedIndex(overlay, index, new_ordinal, builder.get()));
    ASHLAR_RETURN_IF_ERROR(builder->EndIndex());
  }
  ASHLAR_ASSIGN_OR_RETURN(format::SegmentEntry entry, builder->Finish());
  return std::optional<format::SegmentEntry>(std::move(entry));
}

}  // namespace ashlar::engine
