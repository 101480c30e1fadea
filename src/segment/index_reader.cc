#include "src/segment/index_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "format/bit_pack.h"
#include "src/base/status.h"

namespace ashlar::segment {

absl::StatusOr<std::unique_ptr<IndexReader>> IndexReader::Open(uint32_t document_count, const VerifiedBytes* terms,
                                                               const VerifiedBytes* headers,
                                                               const VerifiedBytes* postings) {
  ASHLAR_RETURN_IF_ERROR(terms->Ensure(0, format::kTermsHeaderBytes));
  std::unique_ptr<IndexReader> reader(new IndexReader);
  if (!format::DecodeTermsHeader({terms->data(), format::kTermsHeaderBytes}, terms->size(), &reader->header_)) {
    return terms->Damage(0, "the dictionary's header is malformed");
  }
  reader->document_count_ = document_count;
  reader->terms_ = terms;
  reader->headers_ = headers;
  reader->postings_ = postings;
  return reader;
}

absl::Status IndexReader::Record(uint64_t block, format::TermIndexRecord* record) const {
  const uint64_t place = header_.index_offset + 4 * block;
  ASHLAR_RETURN_IF_ERROR(terms_->Ensure(place, 8));
  const uint64_t begin = LoadU32(terms_->data() + place);
  const uint64_t end = LoadU32(terms_->data() + place + 4);
  if (end < begin + 8 || end - begin > 8 + format::kTermBytesMax) {
    return terms_->Damage(place, "a record of the dictionary's index is malformed");
  }
  const uint64_t pool = header_.index_offset + 4 * (header_.block_count + 2);
  ASHLAR_RETURN_IF_ERROR(terms_->Ensure(pool + begin, end - begin));
  const std::byte* at = terms_->data() + pool + begin;
  record->block_offset = LoadU64(at);
  record->separator = AsString({at + 8, end - begin - 8});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> IndexReader::FindBlock(std::string_view term) const {
  uint64_t low = 0,
           high = header_.block_count;  // blocks below `low` begin at or before the term, from `high` on after it
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    format::TermIndexRecord record;
    ASHLAR_RETURN_IF_ERROR(Record(middle, &record));
    if (record.separator <= term) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<int64_t>(low) - 1;
}

absl::StatusOr<ByteSpan> IndexReader::BlockBytes(uint64_t block) const {
  format::TermIndexRecord record, next;
  ASHLAR_RETURN_IF_ERROR(Record(block, &record));
  ASHLAR_RETURN_IF_ERROR(Record(block + 1, &next));
  if (record.block_offset < format::kTermsHeaderBytes || record.block_offset >= next.block_offset ||
      next.block_offset > header_.index_offset) {
    return terms_->Damage(header_.index_offset, "offsets of dictionary blocks do not ascend");
  }
  const uint64_t bytes = next.block_offset - record.block_offset;
  ASHLAR_RETURN_IF_ERROR(terms_->Ensure(record.block_offset, bytes));
  return ByteSpan(terms_->data() + record.block_offset, bytes);
}

absl::StatusOr<std::optional<format::TermInfo>> IndexReader::FindTerm(std::string_view term) const {
  std::optional<format::TermInfo> found;
  if (term.empty() || term.size() > format::kTermBytesMax || header_.block_count == 0) return found;
  ASHLAR_ASSIGN_OR_RETURN(const int64_t block, FindBlock(term));
  if (block < 0) return found;
  ASHLAR_ASSIGN_OR_RETURN(const ByteSpan bytes, BlockBytes(static_cast<uint64_t>(block)));
  format::TermBlockReader reader;
  format::TermInfo info;
  const int answer = reader.Init(bytes, header_.shape) ? reader.Find(term, &info) : -1;
  if (answer < 0) {
    return terms_->Damage(static_cast<uint64_t>(bytes.data() - terms_->data()), "a dictionary block is malformed");
  }
  if (answer > 0) found = info;
  return found;
}

PostingCursor IndexReader::OpenCursor(const format::TermInfo& info, uint32_t member,
                                      std::pmr::memory_resource* memory) const {
  return PostingCursor::Open({header_.shape, document_count_, headers_, postings_}, info, member, memory);
}

PostingCursor IndexReader::OpenTerm(std::string_view term, uint32_t member, std::pmr::memory_resource* memory) const {
  auto info = FindTerm(term);
  if (!info.ok()) return PostingCursor(std::move(info).status());
  return info->has_value() ? OpenCursor(**info, member, memory) : PostingCursor();
}

TermIterator IndexReader::Terms() const { return TermIterator(this); }

bool TermIterator::LoadBlock() {
  auto bytes = reader_->BlockBytes(next_block_);
  if (!bytes.ok()) {
    status_ = std::move(bytes).status();
    return false;
  }
  block_offset_ = static_cast<uint64_t>(bytes->data() - reader_->terms_->data());
  if (!block_.Init(*bytes, reader_->shape())) {
    status_ = reader_->terms_->Damage(block_offset_, "a dictionary block is malformed");
    return false;
  }
  ++next_block_;
  return true;
}

bool TermIterator::Next() {
  if (!status_.ok()) return false;
  previous_ = term_;
  while (!block_.Next(&term_, &info_)) {
    if (!block_.ok()) {
      status_ = reader_->terms_->Damage(block_offset_, "a dictionary block is malformed");
      return false;
    }
    if (next_block_ == reader_->header_.block_count) return false;
    if (!LoadBlock()) return false;
  }
  if (returned_++ != 0 && term_ <= previous_) {
    status_ = reader_->terms_->Damage(block_offset_, "terms do not ascend");
    return false;
  }
  return true;
}

namespace {

// What a list's check needs of one level of its headers.
struct Bounds {
  const uint8_t* frequencies;
  const uint8_t* lengths;
  uint32_t pairs;
  uint32_t stride;
};

bool Covers(const Bounds& bounds, uint32_t at, uint32_t frequency, uint32_t length) {
  for (uint32_t p = 0; p < bounds.pairs; ++p) {
    const size_t i = size_t{p} * bounds.stride + at;
    if (format::FrequencyOfCode(bounds.frequencies[i]) >= frequency &&
        format::LengthOfCode(bounds.lengths[i]) <= length) {
      return true;
    }
  }
  return false;
}

bool BoundsHold(const format::ListHeaders& h, uint32_t block, uint32_t frequency, uint32_t length) {
  const auto group = static_cast<uint32_t>(block / format::kBlocksPerGroup);
  return Covers({h.pair_frequencies, h.pair_lengths, h.pairs, h.blocks}, block, frequency, length) &&
         Covers({h.group_pair_frequencies, h.group_pair_lengths, h.group_pairs, h.groups}, group, frequency, length);
}

// The same for the largest member alone; `length`: of that field, 0 if it is not to be compared.
bool LargestBoundsHold(const format::ListHeaders& h, uint32_t block, uint32_t frequency, uint32_t length) {
  if (frequency == 0) return true;
  const auto group = static_cast<uint32_t>(block / format::kBlocksPerGroup);
  if (format::FrequencyOfCode(h.largest_frequencies[block]) < frequency ||
      format::FrequencyOfCode(h.group_largest_frequencies[group]) < frequency)
    return false;
  return length == 0 || (format::LengthOfCode(h.largest_lengths[block]) <= length &&
                         format::LengthOfCode(h.group_largest_lengths[group]) <= length);
}

bool CountsAdd(const format::ListHeaders& h) {
  uint64_t sum = 0;
  for (uint32_t b = 0; b < h.blocks; ++b) {
    sum += h.Count(b);
    const auto group = static_cast<uint32_t>(b / format::kBlocksPerGroup);
    const bool ends_group = !h.windows && (b + 1 == h.blocks || (b + 1) % format::kBlocksPerGroup == 0);
    if (ends_group && LoadU32(h.group_last_documents + size_t{4} * group) != h.LastDocument(b)) return false;
  }
  return sum == h.postings;
}

}  // namespace

absl::Status IndexReader::CheckList(std::string_view term, const format::TermInfo& info, const LengthOf& length,
                                    const LengthOf& largest_length) const {
  const auto finding = [&](std::string_view what) {
    const VerifiedBytes* section = info.has_blocks() ? headers_ : postings_;
    return section->Damage(info.offset, std::string(what) + ", term \"" + std::string(term) + "\"");
  };
  PostingCursor cursor = OpenCursor(info);
  const format::ListHeaders* headers = cursor.headers();
  if (headers != nullptr && !CountsAdd(*headers)) return finding("a list's block headers do not add up");
  std::vector<uint32_t> positions, counts, members;
  uint64_t postings = 0, largest = 0;
  for (; cursor.document() != format::kNoDocument; cursor.Next()) {
    ++postings;
    ASHLAR_RETURN_IF_ERROR(cursor.MemberFrequencies(&members));
    const uint32_t in_largest = members[header_.shape.largest];
    largest += in_largest != 0 ? 1 : 0;
    positions.clear();
    ASHLAR_RETURN_IF_ERROR(cursor.AppendPositions(&positions, &counts));
    if (cursor.at_block_end()) ASHLAR_RETURN_IF_ERROR(cursor.CheckPositionsEnd());
    if (headers == nullptr || length == nullptr) continue;
    const uint32_t block = cursor.block();
    if (!BoundsHold(*headers, block, cursor.frequency(), length(cursor.document()))) {
      return finding("a posting is above its block's bounds");
    }
    if (headers->members &&
        !LargestBoundsHold(*headers, block, in_largest, largest_length ? largest_length(cursor.document()) : 0)) {
      return finding("a posting is above its block's bounds of the largest member");
    }
  }
  ASHLAR_RETURN_IF_ERROR(cursor.status());
  if (postings != info.postings || largest != info.largest_postings) {
    return finding("a list's postings are not as many as its entry says");
  }
  return absl::OkStatus();
}

absl::Status IndexReader::Check(const LengthOf& length, const LengthOf& largest_length) const {
  uint64_t terms = 0, postings = 0;
  TermIterator iterator = Terms();
  while (iterator.Next()) {
    ++terms;
    postings += iterator.info().postings;
    ASHLAR_RETURN_IF_ERROR(CheckList(iterator.term(), iterator.info(), length, largest_length));
    ASHLAR_ASSIGN_OR_RETURN(const auto found, FindTerm(iterator.term()));
    if (!found.has_value()) {
      return terms_->Damage(header_.index_offset, "the dictionary's index does not lead to a term that is there");
    }
  }
  ASHLAR_RETURN_IF_ERROR(iterator.status());
  if (terms != header_.term_count || postings != header_.posting_count) {
    return terms_->Damage(0, "the dictionary's counts are not those of its terms");
  }
  return absl::OkStatus();
}

}  // namespace ashlar::segment
