#include "format/key_block.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/check.h"

namespace ashlar::format {
namespace {

constexpr size_t kHalfByteMax = 15;

size_t SharedPrefix(std::string_view a, std::string_view b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

// Odd numbers that spread the low half of a hash over the eight words (as in the split block filters of Parquet).
constexpr std::array<uint32_t, 8> kSalts = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                            0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};

// True if [offset, offset + length) is inside `section_bytes`.
bool Inside(uint64_t offset, uint64_t length, uint64_t section_bytes) {
  return length <= section_bytes && offset <= section_bytes - length;
}

void PadToWord(ByteBuffer* out) { out->resize((out->size() + 7) / 8 * 8); }

}  // namespace

void SortedStringsWriter::Add(std::string_view s) {
  ASHLAR_CHECK(count_ == 0 || std::string_view(last_) < s);
  ByteWriter w(&blocks_);
  if (count_ % kStringsPerBlock == 0) {
    offsets_.Add(blocks_.size());
    w.Sized(s);
  } else {
    const size_t shared = SharedPrefix(last_, s);
    const size_t suffix = s.size() - shared;
    w.U8(static_cast<uint8_t>(std::min(shared, kHalfByteMax) << 4 | std::min(suffix, kHalfByteMax)));
    if (shared >= kHalfByteMax) w.Varint(shared - kHalfByteMax);
    if (suffix >= kHalfByteMax) w.Varint(suffix - kHalfByteMax);
    w.String(s.substr(shared));
  }
  last_.assign(s);
  ++count_;
}

StringsPlace SortedStringsWriter::Finish(ByteBuffer* out) {
  StringsPlace place;
  place.count = count_;
  place.blocks_offset = out->size();
  place.blocks_length = blocks_.size();
  out->insert(out->end(), blocks_.begin(), blocks_.end());
  PadToWord(out);
  place.offsets_offset = out->size();
  offsets_.Finish(out);
  place.offsets_length = out->size() - place.offsets_offset;
  return place;
}

bool StringBlockReader::Next() {
  if (!ok_ || in_.left() == 0 || read_ == kStringsPerBlock) {
    if (in_.left() != 0) ok_ = false;  // more than a block may hold, or damage seen before
    return false;
  }
  if (read_ == 0) {
    value_.assign(in_.Sized());
  } else {
    const uint8_t head = in_.U8();
    uint64_t shared = head >> 4, suffix = head & kHalfByteMax;
    if (shared == kHalfByteMax) shared += std::min<uint64_t>(in_.Varint(), UINT32_MAX);
    if (suffix == kHalfByteMax) suffix += std::min<uint64_t>(in_.Varint(), UINT32_MAX);
    const ByteSpan bytes = in_.Span(suffix);
    if (!in_.ok() || shared > value_.size()) return ok_ = false;
    value_.resize(shared);
    value_.append(AsString(bytes));
  }
  ++read_;
  return ok_ = in_.ok();
}

ByteBuffer FinishKeys(SortedStringsWriter* strings, std::span<const uint32_t> ordinals) {
  const size_t count = ordinals.size();
  ByteBuffer out(kKeysHeaderBytes);
  const StringsPlace place = strings->Finish(&out);
  bool identity = true;
  std::vector<uint64_t> by_rank(count), by_ordinal(count);
  for (size_t rank = 0; rank < count; ++rank) {
    ASHLAR_CHECK(ordinals[rank] < count);
    identity = identity && ordinals[rank] == rank;
    by_rank[rank] = ordinals[rank];
    by_ordinal[ordinals[rank]] = rank;
  }
  const unsigned width = identity ? 0 : BitWidth(count - 1);
  PadToWord(&out);
  const uint64_t ranks_offset = out.size();
  AppendPacked(by_ordinal, width, &out);
  const uint64_t ordinals_offset = out.size();
  AppendPacked(by_rank, width, &out);
  std::byte* p = out.data();
  StoreU32(p, place.count);
  StoreU32(p + 4, width);
  StoreU64(p + 8, place.blocks_offset);
  StoreU64(p + 16, place.blocks_length);
  StoreU64(p + 24, place.offsets_offset);
  StoreU64(p + 32, place.offsets_length);
  StoreU64(p + 40, ranks_offset);
  StoreU64(p + 48, ordinals_offset);
  return out;
}

std::optional<KeysHeader> DecodeKeysHeader(ByteSpan bytes, uint64_t section_bytes) {
  if (bytes.size() < kKeysHeaderBytes) return std::nullopt;
  const std::byte* p = bytes.data();
  KeysHeader h;
  h.strings.count = LoadU32(p);
  const uint32_t width = LoadU32(p + 4);
  h.strings.blocks_offset = LoadU64(p + 8);
  h.strings.blocks_length = LoadU64(p + 16);
  h.strings.offsets_offset = LoadU64(p + 24);
  h.strings.offsets_length = LoadU64(p + 32);
  h.ranks_offset = LoadU64(p + 40);
  h.ordinals_offset = LoadU64(p + 48);
  if (width > 32 || LoadU64(p + 56) != 0) return std::nullopt;
  h.width = static_cast<uint8_t>(width);
  const uint64_t packed = PackedNumberBytes(h.strings.count, width);
  if (!Inside(h.strings.blocks_offset, h.strings.blocks_length, section_bytes) ||
      !Inside(h.strings.offsets_offset, h.strings.offsets_length, section_bytes) ||
      !Inside(h.ranks_offset, packed, section_bytes) || !Inside(h.ordinals_offset, packed, section_bytes))
    return std::nullopt;
  return h;
}

uint64_t KeyFilterBytes(uint64_t keys) {
  constexpr uint64_t kBitsPerKey = 10;
  const uint64_t blocks = (keys * kBitsPerKey + (kFilterBlockBytes * 8 - 1)) / (kFilterBlockBytes * 8);
  return std::max<uint64_t>(blocks, 1) * kFilterBlockBytes;
}

void AddToKeyFilter(uint64_t hash, std::span<std::byte> filter) {
  std::byte* block = filter.data() + KeyFilterBlock(hash, filter.size());
  for (size_t i = 0; i < kSalts.size(); ++i) {
    const uint32_t bit = (static_cast<uint32_t>(hash) * kSalts[i]) >> 27;
    StoreU32(block + 4 * i, LoadU32(block + 4 * i) | uint32_t{1} << bit);
  }
}

bool KeyFilterMayHold(uint64_t hash, const std::byte* block) {
  uint32_t missing = 0;
  for (size_t i = 0; i < kSalts.size();
       ++i) {  // no early exit: eight independent lanes are faster than eight branches
    const uint32_t bit = (static_cast<uint32_t>(hash) * kSalts[i]) >> 27;
    missing |= ~LoadU32(block + 4 * i) & uint32_t{1} << bit;
  }
  return missing == 0;
}

}  // namespace ashlar::format
