#include "src/segment/segment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/frame.h"
#include "format/lengths.h"
#include "format/packed_numbers.h"
#include "format/posting_block.h"
#include "format/section_table.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "src/segment/segment_builder.h"
#include "src/segment/segment_impl.h"
#include "src/segment/segment_schema.h"

namespace ashlar::segment {
namespace {

using format::IndexId;
using format::kGroupIndex;
using format::NumberArray;
using format::PartOf;
using format::PlainBytes;
using format::SectionKind;
using format::SortedStrings;

}  // namespace

uint32_t LengthReader::Escaped(uint32_t ordinal) const {
  uint32_t low = 0, high = exception_count_;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const std::byte* p = exceptions_ + size_t{middle} * format::kLengthExceptionBytes;
    if (LoadU32(p) == ordinal) return LoadU32(p + 4);
    if (LoadU32(p) < ordinal) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return kEscape;
}

absl::StatusOr<std::shared_ptr<const Segment>> Segment::Open(env::Env env, const std::string& directory,
                                                             const format::SegmentEntry& entry,
                                                             const format::StoreId& store_id,
                                                             uint64_t catalog_generation, const ReadOptions& options) {
  ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<const SegmentImpl> segment,
                          SegmentImpl::OpenFile(env, directory, entry, store_id, catalog_generation, options));
  return std::shared_ptr<const Segment>(std::move(segment));
}

absl::StatusOr<uint64_t> PeekGeneration(env::Env env, const std::string& directory, uint64_t number,
                                        const format::StoreId& store_id) {
  const std::string path = env::JoinPath(directory, FileName(number));
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, env.files->OpenForRead(path));
  ASHLAR_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < format::kFileHeaderBytes + format::kSegmentFooterBytes) return DataLoss(path, "footer", size, "no footer");
  std::byte header[format::kFileHeaderBytes], footer[format::kSegmentFooterBytes];
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*file, path, "header", 0, header));
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*file, path, "footer", size - sizeof footer, footer));
  ASHLAR_ASSIGN_OR_RETURN(const format::FileHeader frame,
                          format::DecodeFileHeader(header, format::FileKind::kSegment, path, store_id));
  ASHLAR_ASSIGN_OR_RETURN(const format::SegmentFooter decoded,
                          format::DecodeSegmentFooter(footer, frame.file_id, size, path));
  return decoded.generation;
}

absl::StatusOr<std::shared_ptr<const SegmentImpl>> SegmentImpl::OpenFile(env::Env env, const std::string& directory,
                                                                         const format::SegmentEntry& entry,
                                                                         const format::StoreId& store_id,
                                                                         uint64_t catalog_generation,
                                                                         const ReadOptions& options) {
  std::shared_ptr<SegmentImpl> s(new SegmentImpl);
  ASHLAR_ASSIGN_OR_RETURN(s->file_, SegmentFile::Open(env, env::JoinPath(directory, FileName(entry.number)), entry,
                                                      store_id, catalog_generation, options));
  ASHLAR_RETURN_IF_ERROR(s->ReadMeta(entry));
  ASHLAR_RETURN_IF_ERROR(s->FindSections());
  return std::shared_ptr<const SegmentImpl>(std::move(s));
}

absl::StatusOr<format::SegmentMeta> SegmentImpl::DecodeMeta() const {
  const Section* section = file_->Find(SectionKind::kMeta);
  if (section == nullptr) return DataLoss(path(), "section table", file_->footer().table_offset, "no meta section");
  ASHLAR_RETURN_IF_ERROR(section->Ensure(0, section->size()));
  std::optional<format::SegmentMeta> meta = format::DecodeSegmentMeta(ByteSpan(section->data(), section->size()));
  if (!meta.has_value()) return section->Damage(0, "malformed");
  return *std::move(meta);
}

absl::Status SegmentImpl::ReadMeta(const format::SegmentEntry& entry) {
  ASHLAR_ASSIGN_OR_RETURN(meta_, DecodeMeta());
  const Section* section = file_->Find(SectionKind::kMeta);
  if (meta_.number != entry.number || meta_.documents != entry.documents || meta_.first_id != entry.first_id ||
      meta_.last_id != entry.last_id)
    return section->Damage(0, "number, documents or DocumentIds differ from the catalog's");
  if (meta_.generation != file_->footer().generation) return section->Damage(8, "generation differs from the footer's");
  group_ = GroupFieldsOf(meta_.schema);
  if (group_.size() != meta_.schema.default_group.size()) return section->Damage(0, "the schema's group is malformed");
  if (!group_.empty() && MemberOf(meta_.largest_field) < 0)
    return section->Damage(0, "the largest field is not of the group");
  key_field_ = KeyFieldOf(meta_.schema);
  return absl::OkStatus();
}

absl::Status SegmentImpl::FindDocumentSections() {
  const Section* stored = file_->Find(SectionKind::kStored);
  ids_ = file_->Find(SectionKind::kDocumentIds);
  keys_ = key_field_ >= 0 ? file_->Find(SectionKind::kKeys) : nullptr;
  if (stored == nullptr || ids_ == nullptr || (key_field_ >= 0 && keys_ == nullptr))
    return DataLoss(path(), "section table", file_->footer().table_offset, "no stored documents, ids or keys");
  stored_.emplace(stored, meta_.documents);
  return absl::OkStatus();
}

absl::StatusOr<SalvagedSegment> SegmentImpl::OpenDamaged(env::Env env, const std::string& path, uint64_t number,
                                                         const SalvageHints& hints) {
  std::shared_ptr<SegmentImpl> s(new SegmentImpl);
  SalvagedSegment result;
  ASHLAR_ASSIGN_OR_RETURN(s->file_, SegmentFile::OpenDamaged(env, path, &result.store_id, &result.damage));
  result.generation = s->file_->footer().generation;
  result.file_id = s->file_->footer().file_id;
  absl::StatusOr<format::SegmentMeta> meta = s->DecodeMeta();
  if (meta.ok()) {
    s->meta_ = *std::move(meta);
    result.schema_number = s->meta_.schema_number;
  } else {
    result.damage.push_back(meta.status());
    if (!hints.entry.has_value() || hints.schema == nullptr) return meta.status();
    s->meta_.number = number;
    s->meta_.documents = hints.entry->documents;
    s->meta_.first_id = hints.entry->first_id;
    s->meta_.last_id = hints.entry->last_id;
    s->meta_.schema = *hints.schema;
  }
  if (s->meta_.number != number) return DataLoss(path, "meta", 0, "has the number of another file");
  s->key_field_ = KeyFieldOf(s->meta_.schema);
  ASHLAR_RETURN_IF_ERROR(s->FindDocumentSections());
  result.segment = std::move(s);
  return result;
}

absl::StatusOr<SalvagedSegment> OpenForSalvage(env::Env env, const std::string& directory, uint64_t number,
                                               const SalvageHints& hints) {
  return SegmentImpl::OpenDamaged(env, env::JoinPath(directory, FileName(number)), number, hints);
}

absl::Status SegmentImpl::FindSections() {
  const auto need = [this](SectionKind kind, uint32_t id, const Section** out) {
    *out = file_->Find(kind, id);
    if (*out != nullptr) return absl::OkStatus();
    return DataLoss(path(), "section table", file_->footer().table_offset,
                    absl::StrCat("no section ", format::SectionLabel(kind, id)));
  };
  const size_t fields = meta_.schema.fields.size();
  lengths_.resize(fields);
  columns_.resize(fields);
  indexes_.resize(fields);
  const Section* stored = nullptr;
  ASHLAR_RETURN_IF_ERROR(need(SectionKind::kStored, 0, &stored));
  ASHLAR_RETURN_IF_ERROR(need(SectionKind::kDocumentIds, 0, &ids_));
  if (key_field_ >= 0) ASHLAR_RETURN_IF_ERROR(need(SectionKind::kKeys, 0, &keys_));
  filter_ = file_->Find(SectionKind::kKeyFilter);
  stored_.emplace(stored, meta_.documents);
  if (group_.size() > 1) ASHLAR_RETURN_IF_ERROR(need(SectionKind::kLengths, kGroupIndex, &group_lengths_));
  if (!group_.empty()) group_index_ = OpenIndex(kGroupIndex);
  for (uint32_t field = 0; field < fields; ++field) {
    columns_[field] = file_->Find(SectionKind::kColumn, field);
    if (!IsSearchable(meta_.schema, field)) continue;
    ASHLAR_RETURN_IF_ERROR(need(SectionKind::kLengths, field, &lengths_[field]));
    if (field != meta_.largest_field) indexes_[field] = OpenIndex(field);
  }
  return absl::OkStatus();
}

// A damaged index is remembered, not returned: the segment's other parts stay readable.
SegmentImpl::Index SegmentImpl::OpenIndex(IndexId id) const {
  Index index;
  const Section* terms = file_->Find(SectionKind::kTerms, id);
  const Section* headers = file_->Find(SectionKind::kBlockHeaders, id);
  const Section* postings = file_->Find(SectionKind::kPostings, id);
  if (terms == nullptr || headers == nullptr || postings == nullptr) {
    index.status = DataLoss(path(), "section table", file_->footer().table_offset,
                            absl::StrCat("no section ", format::SectionLabel(SectionKind::kTerms, id)));
    return index;
  }
  absl::StatusOr<std::unique_ptr<IndexReader>> reader = IndexReader::Open(meta_.documents, terms, headers, postings);
  const size_t members = id == kGroupIndex ? group_.size() : 1;
  if (reader.ok() && ((*reader)->shape().members != members ||
                      (id == kGroupIndex && group_[(*reader)->shape().largest] != meta_.largest_field)))
    reader = terms->Damage(0, "the index has another shape than the group");
  if (reader.ok()) {
    index.reader = *std::move(reader);
  } else {
    index.status = reader.status();
  }
  return index;
}

std::map<std::string, uint64_t> SegmentImpl::SectionBytes() const {
  std::map<std::string, uint64_t> bytes;
  uint64_t sum = 0;
  for (const std::unique_ptr<Section>& s : file_->sections()) {
    bytes[std::string(format::SectionName(s->entry().kind))] += s->size();
    sum += s->size();
  }
  const uint64_t checksums = file_->footer().table_offset - file_->footer().data_end;
  bytes["checksums"] += checksums;
  bytes["frame"] = file_->size() - sum - checksums;  // header, padding, section table, footer
  return bytes;
}

absl::Status SegmentImpl::OutOfRange(uint32_t ordinal) const {
  return InvalidArgument(absl::StrCat("document ", ordinal, " of ", meta_.documents, " in ", path()));
}

// --- documents ---

absl::StatusOr<std::optional<uint32_t>> SegmentImpl::FindKey(std::string_view key) const {
  return IfIntact(LookUpKey(key));
}
absl::StatusOr<std::optional<uint32_t>> SegmentImpl::FindId(DocumentId id) const { return IfIntact(LookUpId(id)); }
absl::StatusOr<DocumentId> SegmentImpl::IdOf(uint32_t ordinal) const { return IfIntact(ReadId(ordinal)); }
absl::StatusOr<std::string> SegmentImpl::KeyOf(uint32_t ordinal) const { return IfIntact(ReadKey(ordinal)); }
absl::Status SegmentImpl::VisitKeys(std::string_view from,
                                    const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const {
  return IfIntact(WalkKeys(from, visit));
}
absl::Status SegmentImpl::ColumnValues(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const {
  return IfIntact(ReadColumn(field, ordinal, out));
}

absl::StatusOr<DocumentId> SegmentImpl::ReadId(uint32_t ordinal) const {
  if (ordinal >= meta_.documents) return OutOfRange(ordinal);
  const SectionReader reader(ids_);
  const NumberArray<SectionReader> ids(PartOf(reader, 0, reader.size()), meta_.documents);
  DocumentId id = 0;
  if (!ids.At(ordinal, &id)) return reader.Failure("malformed");
  return id;
}

absl::StatusOr<std::optional<uint32_t>> SegmentImpl::LookUpId(DocumentId id) const {
  if (id < meta_.first_id || id > meta_.last_id) return std::nullopt;
  const SectionReader reader(ids_);
  const NumberArray<SectionReader> ids(PartOf(reader, 0, reader.size()), meta_.documents);
  uint64_t at = 0;
  DocumentId found = 0;
  if (!ids.LowerBound(id, &at)) return reader.Failure("malformed");
  if (at == meta_.documents) return std::nullopt;
  if (!ids.At(at, &found)) return reader.Failure("malformed");
  if (found != id) return std::nullopt;
  return static_cast<uint32_t>(at);
}

absl::StatusOr<format::KeysHeader> SegmentImpl::KeysHeaderOf(const SectionReader& reader) const {
  const std::byte* p = reader.Read(0, format::kKeysHeaderBytes);
  if (p == nullptr) return reader.Failure("malformed");
  const std::optional<format::KeysHeader> header =
      format::DecodeKeysHeader(ByteSpan(p, format::kKeysHeaderBytes), reader.size());
  if (!header.has_value() || header->strings.count != meta_.documents) return keys_->Damage(0, "malformed header");
  return *header;
}

absl::StatusOr<uint32_t> SegmentImpl::OrdinalOfRank(const SectionReader& reader, const format::KeysHeader& header,
                                                    uint32_t rank) const {
  if (header.width == 0) return rank;
  uint64_t ordinal = 0;
  if (!format::ReadPacked(reader, header.ordinals_offset, rank, header.width, &ordinal))
    return reader.Failure("malformed", header.ordinals_offset);
  if (ordinal >= meta_.documents) return keys_->Damage(header.ordinals_offset, "a key's ordinal is out of range");
  return static_cast<uint32_t>(ordinal);
}

absl::StatusOr<std::optional<uint32_t>> SegmentImpl::LookUpKey(std::string_view key) const {
  if (keys_ == nullptr) return std::nullopt;
  if (filter_ != nullptr) {
    if (filter_->size() == 0 || filter_->size() % format::kFilterBlockBytes != 0)
      return filter_->Damage(0, "the filter has a wrong size");
    const uint64_t hash = HashBytes(key);
    const uint64_t at = format::KeyFilterBlock(hash, filter_->size());
    ASHLAR_RETURN_IF_ERROR(filter_->Ensure(at, format::kFilterBlockBytes));
    if (!format::KeyFilterMayHold(hash, filter_->data() + at)) return std::nullopt;
  }
  const SectionReader reader(keys_);
  ASHLAR_ASSIGN_OR_RETURN(const format::KeysHeader header, KeysHeaderOf(reader));
  const SortedStrings<SectionReader> strings(reader, header.strings);
  uint32_t rank = 0;
  bool equal = false;
  if (!strings.LowerBound(key, &rank, &equal)) return reader.Failure("malformed key blocks");
  if (!equal) return std::nullopt;
  absl::StatusOr<uint32_t> ordinal = OrdinalOfRank(reader, header, rank);
  if (!ordinal.ok()) return ordinal.status();
  return *ordinal;
}

absl::StatusOr<std::string> SegmentImpl::ReadKey(uint32_t ordinal) const {
  if (ordinal >= meta_.documents) return OutOfRange(ordinal);
  if (keys_ == nullptr) return std::string();
  const SectionReader reader(keys_);
  ASHLAR_ASSIGN_OR_RETURN(const format::KeysHeader header, KeysHeaderOf(reader));
  uint64_t rank = ordinal;
  if (header.width != 0 && !format::ReadPacked(reader, header.ranks_offset, ordinal, header.width, &rank))
    return reader.Failure("malformed", header.ranks_offset);
  std::string key;
  if (rank >= meta_.documents) return keys_->Damage(header.ranks_offset, "a rank is out of range");
  if (!SortedStrings<SectionReader>(reader, header.strings).At(static_cast<uint32_t>(rank), &key))
    return reader.Failure("malformed key blocks");
  return key;
}

absl::Status SegmentImpl::WalkKeys(std::string_view from,
                                   const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const {
  if (keys_ == nullptr) return absl::OkStatus();
  const SectionReader reader(keys_);
  ASHLAR_ASSIGN_OR_RETURN(const format::KeysHeader header, KeysHeaderOf(reader));
  const SortedStrings<SectionReader> strings(reader, header.strings);
  uint32_t rank = 0;
  bool equal = false;
  if (!strings.LowerBound(from, &rank, &equal)) return reader.Failure("malformed key blocks");
  while (rank < strings.count()) {
    constexpr auto kPerBlock = static_cast<uint32_t>(format::kStringsPerBlock);
    const std::optional<ByteSpan> block = strings.Block(rank / kPerBlock);
    if (!block.has_value()) return reader.Failure("malformed key blocks");
    format::StringBlockReader keys(*block);
    uint32_t at = rank / kPerBlock * kPerBlock;
    for (; keys.Next(); ++at) {
      if (at < rank) continue;
      if (at >= strings.count()) return keys_->Damage(0, "a key block holds too many keys");
      ASHLAR_ASSIGN_OR_RETURN(const uint32_t ordinal, OrdinalOfRank(reader, header, at));
      if (!visit(keys.value(), ordinal)) return absl::OkStatus();
    }
    if (!keys.ok() || at <= rank) return keys_->Damage(0, "malformed key blocks");
    rank = at;
  }
  return absl::OkStatus();
}

absl::StatusOr<ByteBuffer> SegmentImpl::StoredOf(uint32_t ordinal) const {
  if (ordinal >= meta_.documents) return OutOfRange(ordinal);
  return IfIntact(stored_->Document(ordinal));
}

// --- scoring ---

int SegmentImpl::MemberOf(IndexId index) const {
  const auto at = std::lower_bound(group_.begin(), group_.end(), index);
  return at != group_.end() && *at == index ? static_cast<int>(at - group_.begin()) : -1;
}

const Section* SegmentImpl::lengths(IndexId index) const {
  if (index != kGroupIndex) return index < lengths_.size() ? lengths_[index] : nullptr;
  if (group_.empty()) return nullptr;
  return group_.size() > 1 ? group_lengths_ : lengths_[group_[0]];
}

void LengthReader::Verify(const uint32_t* ordinals, size_t n) const {
  for (size_t i = 0; i < n && status_.ok(); ++i)
    if (ordinals[i] < count_) status_ = unverified_->Ensure(size_t{2} * ordinals[i], 2);
}

absl::StatusOr<LengthReader> SegmentImpl::Lengths(IndexId index) const {
  const Section* section = lengths(index);
  if (section != nullptr) ASHLAR_RETURN_IF_ERROR(section->Ensure(0, section->size()));
  return LengthsIn(section);
}

absl::StatusOr<LengthReader> SegmentImpl::SomeLengths(IndexId index) const {
  const Section* section = lengths(index);
  ASHLAR_ASSIGN_OR_RETURN(LengthReader reader, LengthsIn(section));
  if (section == nullptr || section->VerifyAhead()) return reader;
  ASHLAR_RETURN_IF_ERROR(section->Populate());
  const uint64_t exceptions = reader.exception_count_ * format::kLengthExceptionBytes;
  ASHLAR_RETURN_IF_ERROR(section->Ensure(section->size() - exceptions, exceptions));
  reader.unverified_ = section;
  return reader;
}

// Nothing is looked at.
absl::StatusOr<LengthReader> SegmentImpl::LengthsIn(const Section* section) const {
  LengthReader reader;
  if (section == nullptr) return reader;
  const std::optional<format::LengthsView> view =
      format::DecodeLengths(ByteSpan(section->data(), section->size()), meta_.documents);
  if (!view.has_value()) return section->Damage(0, "wrong size");
  reader.codes_ = view->codes;
  reader.count_ = meta_.documents;
  reader.exceptions_ = view->exceptions;
  reader.exception_count_ = view->exception_count;
  return reader;
}

uint64_t SegmentImpl::LengthSum(IndexId index) const {
  if (index == kGroupIndex && group_.size() == 1) index = group_[0];
  for (const format::LengthSummary& s : meta_.lengths)
    if (s.index == index) return s.sum;
  return 0;
}

absl::StatusOr<const IndexReader*> SegmentImpl::IndexOf(IndexId index) const {
  const Index* i = nullptr;
  if (index == kGroupIndex) {
    i = &group_index_;
  } else if (index < indexes_.size()) {
    i = &indexes_[index];
  }
  if (i == nullptr) return nullptr;
  if (!i->status.ok()) return i->status;
  return i->reader.get();
}

PostingCursor SegmentImpl::OpenIn(const Index& index, std::string_view term, uint32_t member,
                                  std::pmr::memory_resource* memory) const {
  if (!index.status.ok()) return PostingCursor(index.status);
  if (index.reader == nullptr) return PostingCursor();
  return index.reader->OpenTerm(term, member, memory);
}

PostingCursor SegmentImpl::OpenKey(std::string_view term, std::pmr::memory_resource* memory) const {
  absl::StatusOr<std::optional<uint32_t>> ordinal = FindKey(term);
  if (!ordinal.ok()) return PostingCursor(ordinal.status());
  if (!ordinal->has_value()) return PostingCursor();
  // A list of one posting, coded as the dictionary of an index would hold it; the cursor decodes it when it is
  // opened.
  ByteBuffer posting;
  const uint32_t frequency = 1;
  format::AppendShortPosting(**ordinal, {&frequency, 1}, 0, &posting);
  format::TermInfo info;
  info.postings = 1;
  info.largest_postings = 1;
  info.inline_documents = posting;
  return PostingCursor::Open(ListSource{format::IndexShape{}, meta_.documents, keys_, keys_}, info, kAllMembers,
                             memory);
}

PostingCursor SegmentImpl::OpenTerm(IndexId index, std::string_view term, std::pmr::memory_resource* memory) const {
  if (index == kGroupIndex) return OpenIn(group_index_, term, kAllMembers, memory);
  if (index >= indexes_.size()) return PostingCursor();
  if (static_cast<int>(index) == key_field_) return OpenKey(term, memory);
  if (index == meta_.largest_field) return OpenPositions(index, term, memory);
  return OpenIn(indexes_[index], term, kAllMembers, memory);
}

PostingCursor SegmentImpl::OpenPositions(IndexId index, std::string_view term,
                                         std::pmr::memory_resource* memory) const {
  const int member = index == kGroupIndex ? -1 : MemberOf(index);
  if (member < 0) return OpenTerm(index, term, memory);
  return OpenIn(group_index_, term, group_.size() > 1 ? static_cast<uint32_t>(member) : kAllMembers, memory);
}

// --- columns ---

absl::StatusOr<std::optional<format::ColumnHeader>> SegmentImpl::ColumnHeaderOf(uint32_t field) const {
  const Section* section = column(field);
  if (section == nullptr) return std::nullopt;
  const SectionReader reader(section);
  const std::byte* p = reader.Read(0, format::kColumnHeaderBytes);
  if (p == nullptr) return reader.Failure("malformed");
  const std::optional<format::ColumnHeader> header =
      format::DecodeColumnHeader(ByteSpan(p, format::kColumnHeaderBytes), section->size());
  if (!header.has_value() || header->documents != meta_.documents || header->type != meta_.schema.fields[field].type)
    return section->Damage(0, "malformed header");
  return header;
}

absl::Status SegmentImpl::ReadColumn(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const {
  if (ordinal >= meta_.documents) return OutOfRange(ordinal);
  if (static_cast<int>(field) == key_field_) {  // every document has one
    ASHLAR_ASSIGN_OR_RETURN(std::string key, KeyOf(ordinal));
    out->emplace_back(std::move(key));
    return absl::OkStatus();
  }
  ASHLAR_ASSIGN_OR_RETURN(const std::optional<format::ColumnHeader> header, ColumnHeaderOf(field));
  if (!header.has_value()) return absl::OkStatus();
  const SectionReader reader(columns_[field]);
  std::vector<uint64_t> codes;
  if (!format::Column<SectionReader>(reader, *header).Codes(ordinal, &codes))
    return reader.Failure("malformed column block");
  const SortedStrings<SectionReader> strings(reader, header->strings);
  for (const uint64_t code : codes) {
    switch (header->type) {
      case FieldType::kKeyword: {
        std::string s;
        if (code >= strings.count() || !strings.At(static_cast<uint32_t>(code), &s))
          return reader.Failure("malformed column dictionary");
        out->emplace_back(std::move(s));
        break;
      }
      case FieldType::kDouble:
        out->emplace_back(format::DoubleOfCode(code));
        break;
      case FieldType::kDate:
        out->emplace_back(Date{format::IntegerOfCode(code)});
        break;
      default:
        out->emplace_back(format::IntegerOfCode(code));
        break;
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::segment
