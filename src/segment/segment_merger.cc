// MergeSegments: many segments into one, document by document and term by term.
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/segment/segment.h"
#include "src/segment/segment_builder.h"
#include "src/segment/segment_builder_impl.h"
#include "src/segment/segment_impl.h"
#include "src/segment/segment_schema.h"

namespace ashlar::segment {
namespace {

using format::IndexId;
using format::kNoDocument;

constexpr uint32_t kStepsPerCancelCheck = 4096;
// A column with no more keywords than this has them all decoded at the start; others are looked up one by one.
constexpr uint32_t kKeywordsHeldMax = 65536;
// A block with less content is recompressed together with its neighbours: merges of small segments must not keep
// small blocks.
constexpr uint64_t kCopyRawBytesMin = format::kStoredBlockBytes / 2;

// The keys of a segment by ordinal, read in key order: one pass is far cheaper than a look-up per document.
class KeysByOrdinal {
 public:
  absl::Status Load(const SegmentImpl& segment) {
    if (segment.keys() == nullptr) return absl::OkStatus();
    places_.resize(segment.document_count());
    return segment.VisitKeys({}, [this](std::string_view key, uint32_t ordinal) {
      places_[ordinal] = {bytes_.size(), static_cast<uint32_t>(key.size())};
      bytes_.append(key);
      return true;
    });
  }
  std::string_view At(uint32_t ordinal) const {
    if (ordinal >= places_.size()) return {};
    return std::string_view(bytes_).substr(places_[ordinal].offset, places_[ordinal].size);
  }

 private:
  struct Place {
    uint64_t offset = 0;
    uint32_t size = 0;
  };
  std::string bytes_;
  std::vector<Place> places_;
};

// The values of one column of one input.
class ColumnCopier {
 public:
  // `section` and `header` outlive it.
  ColumnCopier(uint32_t field, const Section* section, const format::ColumnHeader& header)
      : field_(field),
        reader_(section),
        header_(header),
        column_(reader_, header_),
        strings_(reader_, header_.strings) {}
  ColumnCopier(const ColumnCopier&) = delete;
  ColumnCopier& operator=(const ColumnCopier&) = delete;

  absl::Status LoadKeywords() {
    if (header_.type != FieldType::kKeyword || strings_.count() > kKeywordsHeldMax) return absl::OkStatus();
    for (uint64_t b = 0; b < strings_.block_count(); ++b) {
      const std::optional<ByteSpan> block = strings_.Block(b);
      if (!block.has_value()) return reader_.Failure("malformed column dictionary");
      format::StringBlockReader in(*block);
      while (in.Next()) keywords_.emplace_back(in.value());
    }
    if (keywords_.size() != strings_.count()) return reader_.Failure("malformed column dictionary");
    return absl::OkStatus();
  }

  // Appends views that are valid until the next call.
  absl::Status Append(uint32_t ordinal, std::vector<format::ValueView>* out) {
    codes_.clear();
    scratch_.clear();
    if (!column_.Codes(ordinal, &codes_)) return reader_.Failure("malformed column block");
    for (const uint64_t code : codes_) {
      format::ValueView v;
      v.field = field_;
      v.type = header_.type;
      switch (v.type) {
        case FieldType::kKeyword: {
          ASHLAR_ASSIGN_OR_RETURN(v.bytes, Keyword(code));
          break;
        }
        case FieldType::kDouble:
          v.real = format::DoubleOfCode(code);
          break;
        default:
          v.integer = format::IntegerOfCode(code);
          break;
      }
      out->push_back(v);
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::string_view> Keyword(uint64_t code) {
    if (code < keywords_.size()) return std::string_view(keywords_[code]);
    std::string& s = scratch_.emplace_back();
    if (code >= strings_.count() || !strings_.At(static_cast<uint32_t>(code), &s))
      return reader_.Failure("malformed column dictionary");
    return std::string_view(s);
  }

  uint32_t field_;
  SectionReader reader_;
  format::ColumnHeader header_;
  format::Column<SectionReader> column_;
  format::SortedStrings<SectionReader> strings_;
  std::deque<std::string> keywords_;
  std::deque<std::string> scratch_;
  std::vector<uint64_t> codes_;
};

class Merger {
 public:
  Merger(env::Env env, const std::string& directory, const SegmentSpec& spec, const std::vector<MergeInput>& inputs,
         const std::function<bool()>& cancelled)
      : env_(env), directory_(directory), spec_(spec), cancelled_(cancelled) {
    for (const MergeInput& input : inputs) {
      segments_.push_back(static_cast<const SegmentImpl*>(input.segment.get()));
      dead_.push_back(&input.dead);
    }
  }

  absl::StatusOr<MergeOutput> Run();

 private:
  bool IsDead(size_t input, uint32_t ordinal) const { return !dead_[input]->empty() && (*dead_[input])[ordinal]; }
  absl::Status Number();
  void EstimatePostings();
  absl::Status AdoptDictionaries();
  absl::Status CopyDocuments(size_t input);
  absl::Status CopyBlock(size_t input, const StoredReader::Block& block);
  absl::Status CopyRow(size_t input, uint32_t ordinal);
  absl::Status LoadInput(size_t input);
  absl::Status CopyIndex(IndexId index);
  absl::Status CheckPostingsRead(IndexId index);
  absl::Status CopyTerm(std::string_view term, const std::vector<std::pair<size_t, TermIterator*>>& sources);
  absl::Status CopyPostings(size_t input, std::string_view term, uint64_t postings_expected, PostingCursor cursor,
                            bool* begun);
  absl::Status CheckCancelled() {
    if (cancelled_ == nullptr || ++steps_ % kStepsPerCancelCheck != 0 || !cancelled_()) return absl::OkStatus();
    return absl::AbortedError("the merge was cancelled");
  }

  env::Env env_;
  const std::string& directory_;
  SegmentSpec spec_;
  const std::function<bool()>& cancelled_;
  std::vector<const SegmentImpl*> segments_;
  std::vector<const std::vector<bool>*> dead_;
  uint64_t documents_ = 0;  // of all inputs, dead ones included
  MergeOutput output_;
  std::unique_ptr<SegmentBuilderImpl> builder_;
  uint32_t steps_ = 0;
  uint64_t postings_read_ = 0;  // of the index that is being copied

  // by input: the index in the output of each of its dictionaries
  std::vector<std::vector<std::optional<uint8_t>>> dictionaries_;
  // of the input whose documents are being copied
  std::optional<KeysByOrdinal> keys_;
  std::vector<std::pair<uint32_t, LengthReader>> length_readers_;  // by searchable field
  std::deque<ColumnCopier> columns_;
  // scratch
  std::vector<uint32_t> lengths_, frequencies_, positions_;
  std::vector<format::ValueView> values_;
  ByteBuffer raw_;
};

absl::Status Merger::Number() {
  uint32_t live = 0;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const uint32_t count = segments_[i]->document_count();
    documents_ += count;
    if (!dead_[i]->empty() && dead_[i]->size() != count)
      return InvalidArgument("a merge needs to know for every document whether it is dead");
    std::vector<uint32_t>& map = output_.new_ordinal.emplace_back(count, kNoDocument);
    for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
      if (IsDead(i, ordinal)) continue;
      if (live == kNoDocument - 1) return InvalidArgument("too many documents for a segment");
      map[ordinal] = live++;
    }
  }
  spec_.documents_expected = live;
  return absl::OkStatus();
}

// Dead documents count too: it only decides which field's lists are the group's.
void Merger::EstimatePostings() {
  spec_.postings_per_field.assign(spec_.schema.fields.size(), 0);
  for (const SegmentImpl* s : segments_)
    for (const format::IndexSummary& summary : s->meta().indexes)
      if (summary.index < spec_.postings_per_field.size()) spec_.postings_per_field[summary.index] += summary.postings;
}

absl::Status Merger::AdoptDictionaries() {
  std::vector<size_t> order(segments_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
    return segments_[a]->document_count() > segments_[b]->document_count();
  });
  dictionaries_.resize(segments_.size());
  for (const size_t i : order) {  // the largest inputs first: they have the most blocks to copy
    ASHLAR_ASSIGN_OR_RETURN(const uint32_t count, segments_[i]->stored().DictionaryCount());
    if (spec_.fresh_dictionaries) {
      dictionaries_[i].resize(count);
      continue;
    }
    for (uint32_t d = 0; d < count; ++d) {
      ASHLAR_ASSIGN_OR_RETURN(const ByteSpan bytes, segments_[i]->stored().Dictionary(d));
      dictionaries_[i].push_back(builder_->stored()->Adopt(bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status Merger::LoadInput(size_t input) {
  const SegmentImpl& s = *segments_[input];
  keys_.emplace();
  ASHLAR_RETURN_IF_ERROR(keys_->Load(s));
  length_readers_.clear();
  columns_.clear();
  for (uint32_t field = 0; field < s.schema().fields.size(); ++field) {
    if (IsSearchable(s.schema(), field)) {
      ASHLAR_ASSIGN_OR_RETURN(const LengthReader lengths, s.Lengths(field));
      length_readers_.emplace_back(field, lengths);
    }
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<format::ColumnHeader> header, s.ColumnHeaderOf(field));
    if (!header.has_value()) continue;
    columns_.emplace_back(field, s.column(field), *header);
    ASHLAR_RETURN_IF_ERROR(columns_.back().LoadKeywords());
  }
  return absl::OkStatus();
}

absl::Status Merger::CopyRow(size_t input, uint32_t ordinal) {
  ASHLAR_RETURN_IF_ERROR(CheckCancelled());
  const SegmentImpl& s = *segments_[input];
  DocumentRow row;
  ASHLAR_ASSIGN_OR_RETURN(row.id, s.IdOf(ordinal));
  row.key = keys_->At(ordinal);
  lengths_.assign(spec_.schema.fields.size(), 0);
  for (const auto& [field, lengths] : length_readers_) lengths_[field] = lengths[ordinal];
  row.lengths = lengths_;
  values_.clear();
  for (ColumnCopier& c : columns_) ASHLAR_RETURN_IF_ERROR(c.Append(ordinal, &values_));
  row.columns = values_;
  return builder_->AddDocumentWithoutStored(row);
}

absl::Status Merger::CopyBlock(size_t input, const StoredReader::Block& block) {
  const uint32_t end = block.first + block.count;
  uint32_t live = 0;
  for (uint32_t ordinal = block.first; ordinal < end; ++ordinal) {
    if (IsDead(input, ordinal)) continue;
    ASHLAR_RETURN_IF_ERROR(CopyRow(input, ordinal));
    ++live;
  }
  if (live == 0) return absl::OkStatus();
  const uint8_t first_byte = block.first_byte();
  std::optional<uint8_t> copied_first_byte;  // if the block may be copied
  if (first_byte == format::kStoredPlain) copied_first_byte = format::kStoredPlain;
  if (first_byte != format::kStoredPlain && first_byte != format::kStoredNoDictionary &&
      first_byte <= dictionaries_[input].size() && dictionaries_[input][first_byte - 1].has_value())
    copied_first_byte = static_cast<uint8_t>(*dictionaries_[input][first_byte - 1] + 1);
  ByteReader header(block.bytes.subspan(1));
  if (live == block.count && copied_first_byte.has_value() && header.Varint() >= kCopyRawBytesMin)
    return builder_->stored()->CopyBlock(block.bytes, block.count, *copied_first_byte);

  const StoredReader& stored = segments_[input]->stored();
  ASHLAR_RETURN_IF_ERROR(stored.Decode(block, &raw_));
  for (uint32_t ordinal = block.first; ordinal < end; ++ordinal) {
    if (IsDead(input, ordinal)) continue;
    ASHLAR_ASSIGN_OR_RETURN(const ByteSpan document, stored.DocumentIn(block, raw_, ordinal));
    ASHLAR_RETURN_IF_ERROR(builder_->stored()->Add(document));
  }
  return absl::OkStatus();
}

absl::Status Merger::CopyDocuments(size_t input) {
  ASHLAR_RETURN_IF_ERROR(LoadInput(input));
  const StoredReader& stored = segments_[input]->stored();
  ASHLAR_ASSIGN_OR_RETURN(const uint32_t blocks, stored.BlockCount());
  uint32_t next = 0;
  for (uint32_t b = 0; b < blocks; ++b) {
    ASHLAR_ASSIGN_OR_RETURN(const StoredReader::Block block, stored.BlockAt(b));
    if (block.first != next)
      return segments_[input]->file().Find(format::SectionKind::kStored)->Damage(0, "bad block index");
    next = block.first + block.count;
    ASHLAR_RETURN_IF_ERROR(CopyBlock(input, block));
  }
  if (next != segments_[input]->document_count())
    return segments_[input]->file().Find(format::SectionKind::kStored)->Damage(0, "documents without a block");
  return absl::OkStatus();
}

absl::Status Merger::CopyPostings(size_t input, std::string_view term, uint64_t postings_expected, PostingCursor cursor,
                                  bool* begun) {
  const std::vector<uint32_t>& map = output_.new_ordinal[input];
  for (; cursor.document() != kNoDocument; cursor.Next()) {
    ++postings_read_;
    const uint32_t ordinal = map[cursor.document()];
    if (ordinal == kNoDocument) continue;
    if (!*begun) {
      ASHLAR_RETURN_IF_ERROR(builder_->BeginTerm(term, postings_expected));
      *begun = true;
    }
    positions_.clear();
    ASHLAR_RETURN_IF_ERROR(cursor.MemberFrequencies(&frequencies_));
    ASHLAR_RETURN_IF_ERROR(cursor.AppendPositions(&positions_));
    ASHLAR_RETURN_IF_ERROR(builder_->AddPosting({ordinal, frequencies_, positions_}));
  }
  return cursor.status();
}

// Sources stand at `term`, in the order of their segments.
absl::Status Merger::CopyTerm(std::string_view term, const std::vector<std::pair<size_t, TermIterator*>>& sources) {
  bool begun = false;
  uint64_t postings_expected = 0;
  for (const auto& [input, terms] : sources) postings_expected += terms->info().postings;
  postings_expected = postings_expected * spec_.documents_expected / documents_;  // as if all terms lost alike
  for (const auto& [input, terms] : sources)
    ASHLAR_RETURN_IF_ERROR(CopyPostings(input, term, postings_expected, terms->OpenCursor(), &begun));
  return begun ? builder_->EndTerm() : absl::OkStatus();
}

absl::Status Merger::CopyIndex(IndexId index) {
  ASHLAR_RETURN_IF_ERROR(builder_->BeginIndex(index));
  std::deque<std::pair<size_t, TermIterator>> all;
  std::vector<std::pair<size_t, TermIterator*>> open;  // those that stand at a term, in the order of their segments
  const auto advance = [](TermIterator* terms, bool* there) {
    *there = terms->Next();
    return terms->status();
  };
  for (size_t i = 0; i < segments_.size(); ++i) {
    ASHLAR_ASSIGN_OR_RETURN(const IndexReader* reader, segments_[i]->IndexOf(index));
    if (reader == nullptr) continue;  // a field that was added after the segment was built
    all.emplace_back(i, reader->Terms());
    bool there = false;
    ASHLAR_RETURN_IF_ERROR(advance(&all.back().second, &there));
    if (there) open.emplace_back(i, &all.back().second);
  }
  std::string term;
  std::vector<std::pair<size_t, TermIterator*>> sources;
  while (!open.empty()) {
    ASHLAR_RETURN_IF_ERROR(CheckCancelled());
    // Few segments: a scan is as good as a heap, and keeps them in order.
    std::string_view least = open[0].second->term();
    for (const auto& source : open) least = std::min(least, source.second->term());
    term.assign(least);
    sources.clear();
    for (const auto& source : open)
      if (source.second->term() == term) sources.push_back(source);
    ASHLAR_RETURN_IF_ERROR(CopyTerm(term, sources));
    for (const auto& source : sources) {
      bool there = false;
      ASHLAR_RETURN_IF_ERROR(advance(source.second, &there));
      if (!there) open.erase(std::find(open.begin(), open.end(), source));
    }
  }
  ASHLAR_RETURN_IF_ERROR(CheckPostingsRead(index));
  return builder_->EndIndex();
}

// Whatever went wrong while reading, no posting is lost silently.
absl::Status Merger::CheckPostingsRead(IndexId index) {
  uint64_t expected = 0;
  for (const SegmentImpl* s : segments_)
    for (const format::IndexSummary& summary : s->meta().indexes)
      if (summary.index == index) expected += summary.postings;
  if (std::exchange(postings_read_, 0) == expected) return absl::OkStatus();
  return DataLoss(segments_[0]->path(), "terms", 0, "a merge read another number of postings than the segments say");
}

absl::StatusOr<MergeOutput> Merger::Run() {
  ASHLAR_RETURN_IF_ERROR(Number());
  if (spec_.documents_expected == 0) return std::move(output_);
  EstimatePostings();
  ASHLAR_ASSIGN_OR_RETURN(builder_, SegmentBuilderImpl::Make(env_, directory_, spec_));
  ASHLAR_RETURN_IF_ERROR(AdoptDictionaries());
  for (size_t i = 0; i < segments_.size(); ++i) ASHLAR_RETURN_IF_ERROR(CopyDocuments(i));
  keys_.reset();
  columns_.clear();
  for (const IndexId index : IndexesOf(spec_.schema)) ASHLAR_RETURN_IF_ERROR(CopyIndex(index));
  if (cancelled_ != nullptr && cancelled_()) return absl::AbortedError("the merge was cancelled");
  // Everything was read; nothing of it may be zeros that stand for lost bytes.
  for (const SegmentImpl* s : segments_) ASHLAR_RETURN_IF_ERROR(s->CheckIntact());
  ASHLAR_ASSIGN_OR_RETURN(output_.entry, builder_->Finish());
  return std::move(output_);
}

}  // namespace

absl::StatusOr<MergeOutput> MergeSegments(env::Env env, const std::string& directory, const SegmentSpec& spec,
                                          const std::vector<MergeInput>& inputs,
                                          const std::function<bool()>& cancelled) {
  absl::StatusOr<MergeOutput> output = Merger(env, directory, spec, inputs, cancelled).Run();
  if (output.ok()) return output;
  // Zeros that stand for lost bytes may have looked like anything.
  for (const MergeInput& input : inputs) ASHLAR_RETURN_IF_ERROR(input.segment->CheckIntact());
  return output;
}

}  // namespace ashlar::segment
