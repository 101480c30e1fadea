// Segment::Check: everything of one segment, against itself.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "format/packed_numbers.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "src/segment/segment_builder.h"
#include "src/segment/segment_impl.h"
#include "src/segment/segment_schema.h"

namespace ashlar::segment {
namespace {

using format::IndexId;
using format::kGroupIndex;
using format::kNoDocument;

constexpr size_t kFindingsMax = 100;  // a broken section breaks the same rule again and again

// Adds findings and stops when there are enough.
class Checker {
 public:
  Checker(const SegmentImpl& segment, std::vector<absl::Status>* findings)
      : segment_(segment), findings_(findings), count_(segment.document_count()) {}

  void Run() {
    segment_.file().CheckPages(findings_);
    for (const absl::Status& status : *findings_)
      if (const std::optional<ErrorPlace> place = PlaceOf(status)) damaged_.insert(place->offset);
    // Parts that are whole are still checked. What meets a damaged page ends there and adds nothing.
    Ids();
    Keys();
    Filter();
    Stored();
    for (uint32_t field = 0; field < segment_.schema().fields.size(); ++field) Column(field);
    for (const IndexId index : Indexes()) Index(index);
    for (const uint32_t field : segment_.group()) Member(field);
  }

 private:
  bool Full() const { return findings_->size() >= kFindingsMax; }
  void Add(const absl::Status& status) {
    if (status.ok() || Full()) return;
    const std::optional<ErrorPlace> place = PlaceOf(status);
    if (place.has_value() && damaged_.contains(place->offset)) return;
    if (std::find(findings_->begin(), findings_->end(), status) == findings_->end()) findings_->push_back(status);
  }

  std::vector<IndexId> Indexes() const {
    std::vector<IndexId> indexes = IndexesOf(segment_.schema());
    for (const uint32_t field : segment_.group()) indexes.push_back(field);
    return indexes;
  }

  void Ids() {
    DocumentId last = 0;
    for (uint32_t ordinal = 0; ordinal < count_; ++ordinal) {
      const absl::StatusOr<DocumentId> id = segment_.IdOf(ordinal);
      if (!id.ok()) return Add(id.status());
      if (*id <= last) return Add(segment_.ids()->Damage(0, absl::StrCat("DocumentIds do not ascend at ", ordinal)));
      last = *id;
      if (ordinal == 0 && *id != segment_.first_id())
        return Add(segment_.ids()->Damage(0, "the first DocumentId is not the meta section's"));
    }
    if (last != segment_.last_id()) Add(segment_.ids()->Damage(0, "the last DocumentId is not the meta section's"));
  }

  // Keys ascend, and ordinal -> rank is the inverse of rank -> ordinal: then both are permutations.
  void Keys() {
    if (segment_.keys() == nullptr) return;
    const SectionReader reader(segment_.keys());
    const absl::StatusOr<format::KeysHeader> header = segment_.KeysHeaderOf(reader);
    if (!header.ok()) return Add(header.status());
    std::string last;
    uint32_t rank = 0;
    absl::Status found;
    const absl::Status walked = segment_.VisitKeys({}, [&](std::string_view key, uint32_t ordinal) {
      if (rank > 0 && key <= last)
        found = segment_.keys()->Damage(0, absl::StrCat("keys do not ascend at rank ", rank));
      if (key.empty()) found = segment_.keys()->Damage(0, "an empty key");
      uint64_t back = ordinal;
      if (header->width != 0 && !format::ReadPacked(reader, header->ranks_offset, ordinal, header->width, &back))
        found = reader.Failure("malformed", header->ranks_offset);
      if (found.ok() && back != rank)
        found =
            segment_.keys()->Damage(header->ranks_offset, absl::StrCat("document ", ordinal, " has another rank"));
      last.assign(key);
      ++rank;
      return found.ok();
    });
    Add(walked);
    Add(found);
    if (walked.ok() && found.ok() && rank != count_)
      Add(segment_.keys()->Damage(0, absl::StrCat(rank, " keys for ", count_, " documents")));
  }

  // The filter knows every key.
  void Filter() {
    if (segment_.keys() == nullptr || segment_.filter() == nullptr) return;
    const Section& filter = *segment_.filter();
    if (const absl::Status status = filter.Ensure(0, filter.size()); !status.ok()) return Add(status);
    if (filter.size() == 0 || filter.size() % format::kFilterBlockBytes != 0)
      return Add(filter.Damage(0, "the filter has a wrong size"));
    (void)segment_.VisitKeys({}, [&](std::string_view key, uint32_t) {  // Keys() reports what can't be walked
      const uint64_t hash = HashBytes(key);
      const uint64_t at = format::KeyFilterBlock(hash, filter.size());
      if (format::KeyFilterMayHold(hash, filter.data() + at)) return true;
      Add(filter.Damage(at, absl::StrCat("the filter misses the key \"", ToAbsl(key), "\"")));
      return false;
    });
  }

  void Stored() {
    const StoredReader& stored = segment_.stored();
    const Section& section = *segment_.file().Find(format::SectionKind::kStored);
    const absl::StatusOr<uint32_t> blocks = stored.BlockCount();
    if (!blocks.ok()) return Add(blocks.status());
    uint32_t next = 0;
    ByteBuffer raw;
    for (uint32_t b = 0; b < *blocks && !Full(); ++b) {
      const absl::StatusOr<StoredReader::Block> block = stored.BlockAt(b);
      if (!block.ok()) return Add(block.status());
      if (block->first != next)
        return Add(section.Damage(0, absl::StrCat("stored block ", b, " starts at a wrong document")));
      next = block->first + block->count;
      if (const absl::Status status = stored.Decode(*block, &raw); !status.ok()) {
        Add(status);
        continue;
      }
      for (uint32_t ordinal = block->first; ordinal < next; ++ordinal) {
        const absl::StatusOr<ByteSpan> document = stored.DocumentIn(*block, raw, ordinal);
        if (!document.ok()) {
          Add(document.status());
          break;
        }
      }
    }
    if (next != count_) Add(section.Damage(0, absl::StrCat("stored blocks hold ", next, " documents")));
  }

  void Column(uint32_t field) {
    const Section* section = segment_.column(field);
    if (section == nullptr) return;
    const absl::StatusOr<std::optional<format::ColumnHeader>> header = segment_.ColumnHeaderOf(field);
    if (!header.ok()) return Add(header.status());
    const SectionReader reader(section);
    const format::Column<SectionReader> column(reader, **header);
    const bool keyword = (*header)->type == FieldType::kKeyword;
    uint64_t values = 0;
    std::vector<uint64_t> codes;
    for (uint32_t ordinal = 0; ordinal < count_; ++ordinal) {
      codes.clear();
      if (!column.Codes(ordinal, &codes)) return Add(reader.Failure("malformed column block"));
      values += codes.size();
      if (!std::is_sorted(codes.begin(), codes.end()))
        return Add(section->Damage(0, absl::StrCat("the values of document ", ordinal, " do not ascend")));
      if (const absl::Status status = CheckBounds(*section, reader, **header, ordinal, codes); !status.ok())
        return Add(status);
      if (keyword && !codes.empty() && codes.back() >= (*header)->strings.count)
        return Add(section->Damage(0, absl::StrCat("document ", ordinal, " has an unknown keyword")));
    }
    if (values != (*header)->values) Add(section->Damage(8, "the number of values is another"));
    if (keyword) Keywords(*section, reader, **header);
  }

  // A block's min and max hold for its values.
  static absl::Status CheckBounds(const Section& section, const SectionReader& reader,
                                  const format::ColumnHeader& header, uint32_t ordinal,
                                  const std::vector<uint64_t>& codes) {
    const uint64_t at = header.blocks_offset + ordinal / format::kColumnBlockDocuments * format::kColumnBlockBytes;
    const std::byte* entry = reader.Read(at, format::kColumnBlockBytes);
    if (entry == nullptr) return reader.Failure("malformed column block", at);
    for (const uint64_t code : codes)
      if (code < LoadU64(entry) || code > LoadU64(entry + 8))
        return section.Damage(at, absl::StrCat("a value of document ", ordinal, " is outside its block's bounds"));
    return absl::OkStatus();
  }

  void Keywords(const Section& section, const SectionReader& reader, const format::ColumnHeader& header) {
    const format::SortedStrings<SectionReader> strings(reader, header.strings);
    std::string last, s;
    for (uint32_t rank = 0; rank < strings.count(); ++rank) {
      if (!strings.At(rank, &s)) return Add(reader.Failure("malformed column dictionary"));
      if (rank > 0 && s <= last) return Add(section.Damage(header.strings.blocks_offset, "keywords do not ascend"));
      last.swap(s);
    }
  }

  void Index(IndexId index) {
    const Section* section = segment_.lengths(index);
    const absl::StatusOr<LengthReader> lengths = segment_.Lengths(index);
    if (!lengths.ok()) return Add(lengths.status());
    uint64_t sum = 0;
    for (uint32_t ordinal = 0; ordinal < count_; ++ordinal) sum += (*lengths)[ordinal];
    if (sum != segment_.LengthSum(index))
      Add(section->Damage(0, absl::StrCat("lengths add up to ", sum, ", not ", segment_.LengthSum(index))));
    const absl::StatusOr<const IndexReader*> reader = segment_.IndexOf(index);
    if (!reader.ok()) return Add(reader.status());
    if (*reader == nullptr) return Largest(index);
    const LengthReader& of = *lengths;
    LengthReader of_largest;
    const bool grouped = index == kGroupIndex && segment_.group().size() > 1;
    if (grouped) {
      const absl::StatusOr<LengthReader> largest = segment_.Lengths(segment_.meta().largest_field);
      if (!largest.ok()) return Add(largest.status());
      of_largest = *largest;
    }
    Add((*reader)->Check([&of](uint32_t ordinal) { return of[ordinal]; },
                         [&of_largest](uint32_t ordinal) { return of_largest[ordinal]; }));
    Frequencies(index, **reader);
    Summary(index, (*reader)->term_count(), (*reader)->posting_count());
  }

  // The frequencies of a document add up to its length, in every member of the index.
  void Frequencies(IndexId index, const IndexReader& reader) {
    const std::vector<uint32_t> fields = index == kGroupIndex ? segment_.group() : std::vector<uint32_t>{index};
    std::vector<std::vector<uint64_t>> sums(fields.size(), std::vector<uint64_t>(count_));
    std::vector<uint32_t> frequencies;
    TermIterator terms = reader.Terms();
    while (terms.Next()) {
      PostingCursor cursor = terms.OpenCursor();
      for (; cursor.document() != kNoDocument; cursor.Next()) {
        if (const absl::Status status = cursor.MemberFrequencies(&frequencies); !status.ok()) return Add(status);
        for (size_t m = 0; m < fields.size(); ++m) sums[m][cursor.document()] += frequencies[m];
      }
      if (!cursor.status().ok()) return Add(cursor.status());
    }
    if (!terms.status().ok()) return Add(terms.status());
    for (size_t m = 0; m < fields.size(); ++m) {
      const absl::StatusOr<LengthReader> lengths = segment_.Lengths(fields[m]);
      if (!lengths.ok()) return Add(lengths.status());
      for (uint32_t ordinal = 0; ordinal < count_; ++ordinal) {
        if (sums[m][ordinal] == (*lengths)[ordinal]) continue;
        return Add(segment_.lengths(fields[m])->Damage(
            uint64_t{ordinal} * 2, absl::StrCat("document ", ordinal, " has length ", (*lengths)[ordinal],
                                                " and frequencies of ", sums[m][ordinal])));
      }
    }
  }

  // A smaller field of the group has lists of its own, which must be the group's, filtered.
  void Member(uint32_t field) {
    const absl::StatusOr<const IndexReader*> own = segment_.IndexOf(field);
    if (!own.ok() || *own == nullptr) return;
    uint64_t postings = 0;
    TermIterator terms = (*own)->Terms();
    while (terms.Next()) {
      PostingCursor mine = terms.OpenCursor(), groups = segment_.OpenPositions(field, terms.term());
      for (; mine.document() != kNoDocument && mine.document() == groups.document() &&
             mine.frequency() == groups.frequency();
           mine.Next(), groups.Next())
        ++postings;
      if (!mine.status().ok() || !groups.status().ok()) return;  // found by Index()
      if (mine.document() == groups.document()) continue;
      return Add(segment_.file()
                     .Find(format::SectionKind::kPostings, field)
                     ->Damage(0, absl::StrCat("the list of \"", ToAbsl(terms.term()), "\" is not the group's")));
    }
    if (!terms.status().ok()) return;
    if (const std::optional<uint64_t> all = MemberPostings(field); all.has_value() && *all != postings)
      Add(segment_.file()
              .Find(format::SectionKind::kTerms, field)
              ->Damage(0, absl::StrCat("its lists have ", postings, " postings, the group has ", *all, " of the field")));
  }

  // Postings of the group in which a field occurs; nullopt if they can't be read.
  std::optional<uint64_t> MemberPostings(uint32_t field) const {
    const absl::StatusOr<const IndexReader*> group = segment_.IndexOf(kGroupIndex);
    if (!group.ok() || *group == nullptr) return std::nullopt;
    const auto member = static_cast<size_t>(std::find(segment_.group().begin(), segment_.group().end(), field) -
                                            segment_.group().begin());
    uint64_t count = 0;
    std::vector<uint32_t> frequencies;
    TermIterator terms = (*group)->Terms();
    while (terms.Next()) {
      PostingCursor cursor = terms.OpenCursor();
      for (; cursor.document() != kNoDocument; cursor.Next()) {
        if (!cursor.MemberFrequencies(&frequencies).ok()) return std::nullopt;
        if (frequencies[member] != 0) ++count;
      }
      if (!cursor.status().ok()) return std::nullopt;
    }
    return terms.status().ok() ? std::optional<uint64_t>(count) : std::nullopt;
  }

  // The group's largest field, whose lists are checked with the group's.
  void Largest(IndexId field) {
    const absl::StatusOr<const IndexReader*> group = segment_.IndexOf(kGroupIndex);
    if (!group.ok() || *group == nullptr) return;
    uint64_t count = 0, postings = 0;
    TermIterator terms = (*group)->Terms();
    while (terms.Next()) {
      count += terms.info().largest_postings != 0 ? 1 : 0;
      postings += terms.info().largest_postings;
    }
    if (terms.status().ok()) Summary(field, count, postings);
  }

  void Summary(IndexId index, uint64_t terms, uint64_t postings) {
    for (const format::IndexSummary& s : segment_.meta().indexes)
      if (s.index == index && (s.terms != terms || s.postings != postings))
        Add(segment_.file()
                .Find(format::SectionKind::kMeta)
                ->Damage(0, absl::StrCat("terms and postings of ",
                                         format::SectionLabel(format::SectionKind::kTerms, index), " are others")));
  }

  const SegmentImpl& segment_;
  std::vector<absl::Status>* findings_;
  absl::flat_hash_set<uint64_t> damaged_;  // offsets of damaged pages in the file
  uint32_t count_;
};

}  // namespace

std::vector<absl::Status> SegmentImpl::Check() const {
  std::vector<absl::Status> findings;
  Checker(*this, &findings).Run();
  return findings;
}

}  // namespace ashlar::segment
