#include "src/segment/segment_builder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/lengths.h"
#include "src/base/check.h"
#include "src/base/file_number.h"
#include "src/base/status.h"
#include "src/segment/segment_builder_impl.h"
#include "src/segment/segment_schema.h"

namespace ashlar::segment {
namespace {

using format::IndexId;
using format::kGroupIndex;
using format::SectionKind;

constexpr std::string_view kNamePrefix = "segment-";
constexpr std::string_view kNameSuffix = ".seg";

bool IsColumn(const Field& field) {
  switch (field.type) {
    case FieldType::kKeyword:
    case FieldType::kInt64:
    case FieldType::kDouble:
    case FieldType::kDate: return field.column;
    default: return false;
  }
}

}  // namespace

std::string FileName(uint64_t number) { return NumberedName(kNamePrefix, number, kNameSuffix); }
uint64_t NumberOf(std::string_view name) { return NumberInName(kNamePrefix, name, kNameSuffix).value_or(0); }

std::vector<uint32_t> GroupFieldsOf(const Schema& schema) {
  std::vector<uint32_t> fields;
  for (const std::string& name : schema.default_group) {
    const int field = FieldNumberOf(schema, name);
    if (field >= 0) fields.push_back(static_cast<uint32_t>(field));
  }
  std::sort(fields.begin(), fields.end());
  return fields;
}

std::vector<IndexId> IndexesOf(const Schema& schema) {
  const std::vector<uint32_t> group = GroupFieldsOf(schema);
  std::vector<IndexId> indexes;
  if (!group.empty()) indexes.push_back(kGroupIndex);
  for (uint32_t field = 0; field < schema.fields.size(); ++field)
    if (IsSearchable(schema, field) && !std::binary_search(group.begin(), group.end(), field))
      indexes.push_back(field);
  return indexes;
}

absl::StatusOr<std::unique_ptr<SegmentBuilder>> SegmentBuilder::Create(env::Env env, const std::string& directory,
                                                                       const SegmentSpec& spec) {
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<SegmentBuilderImpl> builder,
                          SegmentBuilderImpl::Make(env, directory, spec));
  return std::unique_ptr<SegmentBuilder>(std::move(builder));
}

absl::StatusOr<std::unique_ptr<SegmentBuilderImpl>> SegmentBuilderImpl::Make(env::Env env,
                                                                             const std::string& directory,
                                                                             const SegmentSpec& spec) {
  if (spec.number == 0) return InvalidArgument("a segment's number is not 0");
  const std::string path = env::JoinPath(directory, FileName(spec.number));
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<SegmentFileWriter> file,
                          SegmentFileWriter::Create(env, directory, path, spec.store_id));
  std::unique_ptr<SegmentBuilderImpl> b(new SegmentBuilderImpl(spec, std::move(file)));
  ASHLAR_RETURN_IF_ERROR(b->file_->BeginSection(SectionKind::kStored, 0));
  return b;
}

SegmentBuilderImpl::SegmentBuilderImpl(const SegmentSpec& spec, std::unique_ptr<SegmentFileWriter> file)
    : spec_(spec),
      file_(std::move(file)),
      group_(GroupFieldsOf(spec.schema)),
      indexes_(IndexesOf(spec.schema)),
      key_field_(KeyFieldOf(spec.schema)) {
  stored_.emplace(file_.get());
  spec_.postings_per_field.resize(spec_.schema.fields.size());
  for (uint32_t m = 1; m < group_.size(); ++m)
    if (spec_.postings_per_field[group_[m]] > spec_.postings_per_field[group_[largest_member_]]) largest_member_ = m;
  PlanFields();
}

void SegmentBuilderImpl::PlanFields() {
  const Schema& schema = spec_.schema;
  plans_.resize(schema.fields.size());
  lengths_.resize(schema.fields.size());
  for (uint32_t field = 0; field < schema.fields.size(); ++field) {
    plans_[field].has_length = IsSearchable(schema, field);
    if (plans_[field].has_length) lengths_[field].reserve(spec_.documents_expected);
    if (!IsColumn(schema.fields[field]) || static_cast<int>(field) == key_field_) continue;
    plans_[field].column = static_cast<int>(columns_.size());
    columns_.emplace_back(schema.fields[field].type);
    column_fields_.push_back(field);
  }
  if (group_.size() > 1) group_lengths_.reserve(spec_.documents_expected);
}

absl::Status SegmentBuilderImpl::CheckRow(const DocumentRow& row) const {
  if (documents_ended_) return InvalidArgument("a document after the first index");
  if (row.id <= last_id_) return InvalidArgument("DocumentIds do not ascend");
  if (documents_ == format::kNoDocument - 1) return InvalidArgument("too many documents for a segment");
  if ((key_field_ >= 0) != !row.key.empty())
    return InvalidArgument("a document without its key, or a key without a key field");
  if (row.lengths.size() != plans_.size()) return InvalidArgument("a document needs a length per field");
  for (const format::ValueView& v : row.columns)
    if (v.field >= plans_.size() || plans_[v.field].column < 0 || v.type != spec_.schema.fields[v.field].type)
      return InvalidArgument(absl::StrCat("field ", v.field, " has no such column"));
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::AddLengths(const DocumentRow& row) {
  uint64_t sum = 0;
  for (const uint32_t field : group_) sum += row.lengths[field];
  if (sum > std::numeric_limits<uint32_t>::max()) return InvalidArgument("a document is too long");
  if (group_.size() > 1) group_lengths_.push_back(static_cast<uint32_t>(sum));
  for (size_t field = 0; field < plans_.size(); ++field)
    if (plans_[field].has_length) lengths_[field].push_back(row.lengths[field]);
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::AddDocumentWithoutStored(const DocumentRow& row) {
  ASHLAR_RETURN_IF_ERROR(CheckRow(row));
  ASHLAR_RETURN_IF_ERROR(AddLengths(row));
  if (documents_ == 0) first_id_ = row.id;
  last_id_ = row.id;
  ids_.Add(row.id);
  if (key_field_ >= 0) keys_.Add(row.key);
  for (const format::ValueView& v : row.columns) columns_[static_cast<size_t>(plans_[v.field].column)].AddValue(v);
  for (ColumnGatherer& c : columns_) c.EndDocument();
  ++documents_;
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::AddDocument(const DocumentRow& row) {
  ASHLAR_RETURN_IF_ERROR(AddDocumentWithoutStored(row));
  return stored_->Add(row.stored);
}

std::span<const uint32_t> SegmentBuilderImpl::LengthsOf(IndexId index) const {
  if (index != kGroupIndex) return lengths_[index];
  return group_.size() > 1 ? std::span<const uint32_t>(group_lengths_) : lengths_[group_[0]];
}

absl::Status SegmentBuilderImpl::WriteKeys() {
  if (key_field_ < 0) return absl::OkStatus();
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint32_t> ordinals, keys_.SortedOrdinals());
  ASHLAR_RETURN_IF_ERROR(file_->WriteSection(SectionKind::kKeys, 0, keys_.EncodeKeysSection(ordinals)));
  ASHLAR_RETURN_IF_ERROR(
      file_->WriteSection(SectionKind::kKeyFilter, 0, keys_.EncodeFilter(), format::kSectionOptional));
  keys_ = KeyTable();
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::WriteLengths() {
  const auto write = [this](IndexId index, std::span<const uint32_t> lengths) {
    uint64_t sum = 0;
    for (const uint32_t n : lengths) sum += n;
    length_sums_.push_back({index, sum});
    return file_->WriteSection(SectionKind::kLengths, index, format::EncodeLengths(lengths));
  };
  for (uint32_t field = 0; field < plans_.size(); ++field)
    if (plans_[field].has_length) ASHLAR_RETURN_IF_ERROR(write(field, lengths_[field]));
  return group_.size() > 1 ? write(kGroupIndex, group_lengths_) : absl::OkStatus();
}

absl::Status SegmentBuilderImpl::EndDocuments() {
  if (documents_ended_) return absl::OkStatus();
  documents_ended_ = true;
  if (documents_ == 0) return InvalidArgument("a segment has at least one document");
  ASHLAR_CHECK(stored_->documents() == documents_);
  ASHLAR_RETURN_IF_ERROR(stored_->Finish());
  file_->EndSection();
  stored_.reset();
  ByteBuffer ids;
  ids_.Finish(&ids);
  ASHLAR_RETURN_IF_ERROR(file_->WriteSection(SectionKind::kDocumentIds, 0, ids));
  ASHLAR_RETURN_IF_ERROR(WriteKeys());
  ASHLAR_RETURN_IF_ERROR(WriteLengths());
  for (size_t i = 0; i < columns_.size(); ++i)
    ASHLAR_RETURN_IF_ERROR(file_->WriteSection(SectionKind::kColumn, column_fields_[i], columns_[i].Finish()));
  columns_.clear();
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::StartIndex(IndexId index) {
  const bool group = index == kGroupIndex;
  format::IndexShape shape;
  shape.members = group ? static_cast<uint32_t>(group_.size()) : 1;
  shape.largest = group ? largest_member_ : 0;
  const Field& field = spec_.schema.fields[group ? group_[0] : index];
  shape.positions = field.type == FieldType::kText && field.positions;
  std::vector<std::span<const uint32_t>> member_lengths;
  if (shape.members > 1)
    for (const uint32_t member : group_) member_lengths.emplace_back(lengths_[member]);
  ASHLAR_RETURN_IF_ERROR(file_->BeginSection(SectionKind::kPostings, index));
  index_ = std::make_unique<IndexWriter>(shape, documents_, LengthsOf(index), std::move(member_lengths), file_.get());
  index_id_ = index;
  index_terms_ = 0;
  member_terms_.assign(shape.members, 0);
  member_postings_.assign(shape.members, 0);
  term_has_member_.assign(shape.members, false);
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::BeginIndex(IndexId index) {
  ASHLAR_RETURN_IF_ERROR(EndDocuments());
  if (index_ != nullptr) return InvalidArgument("an index inside another");
  const auto at = std::find(indexes_.begin() + static_cast<ptrdiff_t>(next_index_), indexes_.end(), index);
  if (at == indexes_.end())
    return InvalidArgument(absl::StrCat("index ", index, " is out of order or does not exist"));
  while (indexes_[next_index_] != index) {  // those that were left out are there, and empty
    ASHLAR_RETURN_IF_ERROR(StartIndex(indexes_[next_index_]));
    ASHLAR_RETURN_IF_ERROR(EndIndex());
  }
  return StartIndex(index);
}

absl::Status SegmentBuilderImpl::BeginTerm(std::string_view term, uint64_t postings_expected) {
  if (index_ == nullptr) return InvalidArgument("a term outside an index");
  term_has_postings_ = false;
  term_has_member_.assign(term_has_member_.size(), false);
  return index_->BeginTerm(term, postings_expected);
}

absl::Status SegmentBuilderImpl::AddPosting(const PostingRow& row) {
  if (index_ == nullptr) return InvalidArgument("a posting outside an index");
  if (row.ordinal >= documents_) return InvalidArgument("a posting of a document that was not added");
  if (row.frequencies.size() != member_postings_.size())
    return InvalidArgument("a posting needs a frequency per member");
  for (size_t m = 0; m < row.frequencies.size(); ++m) {
    if (row.frequencies[m] == 0) continue;
    ++member_postings_[m];
    term_has_member_[m] = true;
  }
  term_has_postings_ = true;
  return index_->AddPosting(row);
}

absl::Status SegmentBuilderImpl::EndTerm() {
  if (index_ == nullptr) return InvalidArgument("a term outside an index");
  index_terms_ += term_has_postings_ ? 1 : 0;
  for (size_t m = 0; m < member_terms_.size(); ++m) member_terms_[m] += term_has_member_[m] ? 1 : 0;
  return index_->EndTerm();
}

void SegmentBuilderImpl::Summarize(IndexId index, uint64_t terms, uint64_t postings) {
  summaries_.push_back({index, terms, postings});
}

absl::Status SegmentBuilderImpl::WriteIndexSections(IndexId index, ByteSpan terms, ByteSpan headers) {
  ASHLAR_RETURN_IF_ERROR(file_->WriteSection(SectionKind::kBlockHeaders, index, headers));
  return file_->WriteSection(SectionKind::kTerms, index, terms);
}

absl::Status SegmentBuilderImpl::WriteMembers() {
  for (uint32_t m = 0; m < group_.size(); ++m) {
    Summarize(group_[m], member_terms_[m], member_postings_[m]);
    if (group_.size() == 1 || m == largest_member_) continue;  // its lists are the group's, filtered
    const IndexBytes bytes = index_->TakeMember(m);
    ASHLAR_RETURN_IF_ERROR(file_->WriteSection(SectionKind::kPostings, group_[m], bytes.postings));
    ASHLAR_RETURN_IF_ERROR(WriteIndexSections(group_[m], bytes.terms, bytes.headers));
  }
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::EndIndex() {
  if (index_ == nullptr) return InvalidArgument("no index to end");
  ByteBuffer terms, headers;
  ASHLAR_RETURN_IF_ERROR(index_->Finish(&terms, &headers));
  file_->EndSection();
  ASHLAR_RETURN_IF_ERROR(WriteIndexSections(index_id_, terms, headers));
  Summarize(index_id_, index_terms_, index_->posting_count());
  if (index_id_ == kGroupIndex) ASHLAR_RETURN_IF_ERROR(WriteMembers());
  index_.reset();
  ++next_index_;
  return absl::OkStatus();
}

absl::Status SegmentBuilderImpl::WriteMeta() {
  format::SegmentMeta meta;
  meta.number = spec_.number;
  meta.generation = spec_.generation;
  meta.documents = documents_;
  meta.first_id = first_id_;
  meta.last_id = last_id_;
  meta.schema_number = spec_.schema_number;
  meta.schema = spec_.schema;
  meta.analyzer_identity = spec_.analyzer_identity;
  if (!group_.empty()) meta.largest_field = group_[largest_member_];
  const auto by_index = [](const auto& a, const auto& b) { return a.index < b.index; };
  std::sort(summaries_.begin(), summaries_.end(), by_index);
  std::sort(length_sums_.begin(), length_sums_.end(), by_index);
  meta.indexes = summaries_;
  meta.lengths = length_sums_;
  return file_->WriteSection(SectionKind::kMeta, 0, format::EncodeSegmentMeta(meta));
}

absl::StatusOr<format::SegmentEntry> SegmentBuilderImpl::Finish() {
  ASHLAR_RETURN_IF_ERROR(EndDocuments());
  if (index_ != nullptr) return InvalidArgument("an index was not ended");
  while (next_index_ < indexes_.size()) {
    ASHLAR_RETURN_IF_ERROR(StartIndex(indexes_[next_index_]));
    ASHLAR_RETURN_IF_ERROR(EndIndex());
  }
  ASHLAR_RETURN_IF_ERROR(WriteMeta());
  format::SegmentEntry entry;
  entry.number = spec_.number;
  entry.file_id = file_->file_id();
  ASHLAR_ASSIGN_OR_RETURN(entry.file_bytes, file_->Finish(spec_.generation));
  entry.documents = documents_;
  entry.first_id = first_id_;
  entry.last_id = last_id_;
  return entry;
}

}  // namespace ashlar::segment
