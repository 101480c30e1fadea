#include "format/term_block.h"

#include <algorithm>
#include <cstring>

#include "format/bit_pack.h"
#include "format/posting_block.h"
#include "src/base/check.h"

namespace ashlar::format {
namespace {

constexpr uint32_t kHasPositions = 1;

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

// Steps over one posting and says how often its term occurs.
bool SkipShortPosting(ByteReader* in, const IndexShape& shape, uint64_t* frequency, bool* in_largest) {
  const uint64_t token = in->Varint();
  *frequency = 1;
  *in_largest = true;
  if ((token & 1) == 0) return in->ok();
  if (shape.members == 1) {
    *frequency = in->Varint() + 2;
    return in->ok() && *frequency <= kFrequencyMax;
  }
  *frequency = 0;
  for (uint32_t m = 0; m < shape.members; ++m) {
    const uint64_t f = in->Varint();
    if (f > kFrequencyMax) return false;
    *frequency += f;
    if (m == shape.largest) *in_largest = f != 0;
  }
  return in->ok() && *frequency <= kFrequencyMax;
}

}  // namespace

bool TermInfo::has_blocks() const { return postings >= kBlockListPostings; }

// --- header ---

void EncodeTermsHeader(const TermsHeader& header, std::span<std::byte, kTermsHeaderBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  std::byte* p = out.data();
  StoreU32(p, header.shape.members);
  StoreU32(p + 4, header.shape.largest);
  StoreU32(p + 8, header.shape.positions ? kHasPositions : 0);
  StoreU64(p + 16, header.term_count);
  StoreU64(p + 24, header.posting_count);
  StoreU64(p + 32, header.block_count);
  StoreU64(p + 40, header.index_offset);
}

bool DecodeTermsHeader(ByteSpan bytes, uint64_t section_bytes, TermsHeader* header) {
  if (bytes.size() < kTermsHeaderBytes) return false;
  const std::byte* p = bytes.data();
  header->shape.members = LoadU32(p);
  header->shape.largest = LoadU32(p + 4);
  const uint32_t flags = LoadU32(p + 8);
  header->shape.positions = (flags & kHasPositions) != 0;
  header->term_count = LoadU64(p + 16);
  header->posting_count = LoadU64(p + 24);
  header->block_count = LoadU64(p + 32);
  header->index_offset = LoadU64(p + 40);
  if (header->shape.members == 0 || header->shape.members > kMembersMax) return false;
  if (header->shape.largest >= header->shape.members || (flags & ~kHasPositions) != 0) return false;
  if (LoadU32(p + 12) != 0 || LoadU64(p + 48) != 0 || LoadU64(p + 56) != 0) return false;
  if (section_bytes < kTermsHeaderBytes + kPackedSlack) return false;
  const uint64_t content = section_bytes - kPackedSlack;
  if (header->index_offset < kTermsHeaderBytes || header->index_offset > content) return false;
  // A record has at least its block's offset and there is one more than blocks, as there is of record offsets.
  return header->block_count < (content - header->index_offset) / 4 && header->block_count <= header->term_count;
}

// --- builder ---

TermsBuilder::TermsBuilder(const IndexShape& shape) {
  header_.shape = shape;
  out_.resize(kTermsHeaderBytes);
}

void TermsBuilder::Add(std::string_view term, const TermEntry& entry) {
  // T-2: what a reader's search relies on is checked before it is written.
  ASHLAR_CHECK(!term.empty() && term.size() <= kTermBytesMax && entry.postings > 0);
  ASHLAR_CHECK(header_.term_count == 0 || last_ < term);
  if (block_terms_ == 0) {
    block_postings_offset_ = postings_offset_;
    const size_t separator = CommonPrefix(last_, term) + 1;
    record_offsets_.push_back(pool_.size());
    ByteWriter pool(&pool_);
    pool.U64(out_.size());
    pool.String(term.substr(0, separator));
  }
  const size_t shared = block_terms_ == 0 ? 0 : CommonPrefix(last_, term);
  ByteWriter texts(&texts_);
  texts.U8(static_cast<uint8_t>(shared));
  texts.U8(static_cast<uint8_t>(term.size() - shared));
  texts.String(term.substr(shared));

  ByteWriter w(&entries_);
  w.Varint(entry.postings);
  if (entry.postings == 1) {
    w.Span(entry.inline_documents);
    if (header_.shape.positions) {
      if (entry.positions_inline) {
        w.Span(entry.inline_positions);
      } else {
        w.Varint(entry.position_bytes);
        postings_offset_ += entry.position_bytes;
      }
    }
  } else {
    if (header_.shape.members > 1) w.Varint(entry.postings - entry.largest_postings);
    if (entry.postings < kBlockListPostings) {
      w.Varint(entry.document_bytes);
      if (header_.shape.positions) w.Varint(entry.position_bytes);
      postings_offset_ += entry.document_bytes + entry.position_bytes;
    } else {
      w.Varint(entry.headers_offset / kListHeadersAlignment);
      w.Varint(entry.list_bytes);
      postings_offset_ += entry.list_bytes;
    }
  }
  last_.assign(term);
  ++header_.term_count;
  header_.posting_count += entry.postings;
  if (++block_terms_ == kTermsPerBlock || texts_.size() + entries_.size() >= kTermBlockBytes) CloseBlock();
}

void TermsBuilder::CloseBlock() {
  if (block_terms_ == 0) return;
  ByteWriter w(&out_);
  w.U8(static_cast<uint8_t>(block_terms_));
  w.Varint(block_postings_offset_);
  w.Varint(texts_.size());
  w.Span(texts_);
  w.Span(entries_);
  texts_.clear();
  entries_.clear();
  block_terms_ = 0;
  ++header_.block_count;
}

bool TermsBuilder::Finish(ByteBuffer* out) {
  CloseBlock();
  header_.index_offset = out_.size();
  // T-3: one record more, for where the last block ends.
  record_offsets_.push_back(pool_.size());
  ByteWriter(&pool_).U64(out_.size());
  record_offsets_.push_back(pool_.size());
  if (pool_.size() > 0xFFFFFFFFu) return false;
  ByteWriter w(&out_);
  for (const uint64_t offset : record_offsets_) w.U32(static_cast<uint32_t>(offset));
  w.Span(pool_);
  w.Zeros(kPackedSlack);
  EncodeTermsHeader(header_, std::span<std::byte, kTermsHeaderBytes>(out_.data(), kTermsHeaderBytes));
  *out = std::move(out_);
  return true;
}

// --- reader ---

bool TermBlockReader::Init(ByteSpan block, const IndexShape& shape) {
  *this = TermBlockReader();
  shape_ = shape;
  ByteReader in(block);
  count_ = in.U8();
  postings_offset_ = next_offset_ = in.Varint();
  texts_ = in.Span(in.Varint());
  entries_ = block.subspan(in.position());
  ok_ = in.ok() && count_ >= 1 && count_ <= kTermsPerBlock;
  return ok_;
}

bool TermBlockReader::ReadEntry(ByteSpan bytes, ByteReader* in, uint64_t* postings_offset,
                                TermInfo* info) const {
  *info = TermInfo();
  const uint64_t postings = in->Varint();
  if (postings == 0 || postings > 0xFFFFFFFFu) return false;
  info->postings = static_cast<uint32_t>(postings);
  info->largest_postings = info->postings;
  uint64_t list_bytes = 0;
  if (postings == 1) {
    uint64_t frequency;
    bool in_largest;
    const size_t begin = in->position();
    if (!SkipShortPosting(in, shape_, &frequency, &in_largest)) return false;
    info->inline_documents = bytes.subspan(begin, in->position() - begin);
    info->largest_postings = in_largest ? 1 : 0;
    info->offset = *postings_offset;
    if (shape_.positions && frequency <= kInlinePositionsMax) {
      const size_t from = in->position();
      for (uint64_t i = 0; i < frequency; ++i) in->Varint();
      if (!in->ok()) return false;
      info->inline_positions = bytes.subspan(from, in->position() - from);
    } else if (shape_.positions) {
      list_bytes = info->position_bytes = in->Varint();
    }
  } else {
    if (shape_.members > 1) {
      const uint64_t outside = in->Varint();
      if (outside > postings) return false;
      info->largest_postings = static_cast<uint32_t>(postings - outside);
    }
    if (postings < kBlockListPostings) {
      info->offset = *postings_offset;
      info->document_bytes = in->Varint();
      if (shape_.positions) info->position_bytes = in->Varint();
      if (info->position_bytes > UINT64_MAX - info->document_bytes) return false;
      list_bytes = info->document_bytes + info->position_bytes;
    } else {
      const uint64_t units = in->Varint();
      if (units > UINT64_MAX / kListHeadersAlignment) return false;
      info->offset = units * kListHeadersAlignment;
      list_bytes = in->Varint();
    }
  }
  if (!in->ok() || list_bytes > UINT64_MAX - *postings_offset) return false;
  *postings_offset += list_bytes;
  return true;
}

int TermBlockReader::Find(std::string_view term, TermInfo* info) const {
  if (!ok_) return -1;
  const auto* p = reinterpret_cast<const unsigned char*>(texts_.data());
  const auto* end = p + texts_.size();
  // Terms ascend and all so far are below `term`, so the one at hand is below too if it shares more with the one before
  // than `term` does, and above if it shares less.
  size_t matched = 0;
  size_t before = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    if (end - p < 2) return -1;
    const size_t shared = p[0], suffix = p[1];
    p += 2;
    if (static_cast<size_t>(end - p) < suffix || shared > before || shared + suffix > kTermBytesMax) return -1;
    before = shared + suffix;
    if (shared < matched) return 0;
    if (shared == matched) {
      const size_t n = std::min(suffix, term.size() - matched);
      size_t same = 0;
      while (same < n && p[same] == static_cast<unsigned char>(term[matched + same])) ++same;
      if (same == suffix && matched + same == term.size()) {
        ByteReader in(entries_);
        uint64_t postings_offset = postings_offset_;
        for (uint32_t j = 0; j <= i; ++j) {
          if (!ReadEntry(entries_, &in, &postings_offset, info)) return -1;
        }
        return 1;
      }
      const bool above = matched + same == term.size() ||
                         (same < suffix && p[same] > static_cast<unsigned char>(term[matched + same]));
      if (above) return 0;
      matched += same;
    }
    p += suffix;
  }
  return 0;
}

bool TermBlockReader::Next(std::string* term, TermInfo* info) {
  if (!ok_ || returned_ == count_) return false;
  const size_t left = texts_.size() - text_at_;
  ok_ = false;
  if (left < 2) return false;
  const auto shared = static_cast<size_t>(texts_[text_at_]);
  const auto suffix = static_cast<size_t>(texts_[text_at_ + 1]);
  if (suffix > left - 2 || shared + suffix > kTermBytesMax || shared + suffix == 0) return false;
  if (shared > (returned_ == 0 ? 0 : term->size())) return false;
  term->resize(shared);
  term->append(AsString(texts_.subspan(text_at_ + 2, suffix)));
  const ByteSpan entries = entries_.subspan(entry_at_);
  ByteReader in(entries);
  if (!ReadEntry(entries, &in, &next_offset_, info)) return false;
  text_at_ += 2 + suffix;
  entry_at_ += in.position();
  ok_ = ++returned_ < count_ || (text_at_ == texts_.size() && entry_at_ == entries_.size());
  return ok_;
}

}  // namespace ashlar::format
