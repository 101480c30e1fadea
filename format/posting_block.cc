#include "format/posting_block.h"

#include <algorithm>
#include <array>

#include "src/base/check.h"

namespace ashlar::format {
namespace {

constexpr uint8_t kHasPositions = 1;
constexpr uint8_t kHasMembers = 2;

uint32_t GroupsOf(uint32_t blocks) {
  return static_cast<uint32_t>((uint64_t{blocks} + kBlocksPerGroup - 1) / kBlocksPerGroup);
}

// Smallest power of two that holds `n`, at least 1.
uint8_t PairSlots(size_t n) { return static_cast<uint8_t>(std::bit_ceil(std::max<size_t>(n, 1))); }

bool IsPairCount(uint32_t pairs) { return std::has_single_bit(pairs) && pairs <= kPairsMax; }

}  // namespace

void AppendShortPosting(uint32_t gap, std::span<const uint32_t> members, uint32_t largest, ByteBuffer* out) {
  ByteWriter writer(out);
  uint64_t sum = 0;
  for (const uint32_t f : members) sum += f;
  const bool simple = sum == 1 && members[largest] == 1;
  writer.Varint(uint64_t{gap} << 1 | (simple ? 0 : kNotSimple));
  if (simple) return;
  if (members.size() == 1) {
    writer.Varint(members[0] - 2);
  } else {
    for (const uint32_t f : members) writer.Varint(f);
  }
}

bool ReadShortPosting(ByteReader* in, uint32_t largest, std::span<uint32_t> members, ShortPosting* posting) {
  if (members.size() == 1) {
    const bool read = ReadShortPosting(in, posting);
    members[0] = posting->frequency;
    return read;
  }
  const uint64_t token = in->Varint();
  if (token >> 1 > 0xFFFFFFFFu) return false;
  posting->gap = static_cast<uint32_t>(token >> 1);
  uint64_t sum = 0;
  if ((token & kNotSimple) == 0) {
    std::fill(members.begin(), members.end(), 0);
    members[largest] = 1;
    sum = 1;
  } else {
    for (uint32_t& f : members) {
      const uint64_t value = in->Varint();
      if (value > kFrequencyMax) return false;
      f = static_cast<uint32_t>(value);
      sum += value;
    }
  }
  posting->frequency = static_cast<uint32_t>(sum);
  return in->ok() && sum >= 1 && sum <= kFrequencyMax;
}

void AppendPackedBlock(uint64_t first_possible, std::span<const uint32_t> documents,
                       std::span<const uint32_t> frequencies, ByteBuffer* out) {
  const size_t n = documents.size();
  ASHLAR_CHECK(n >= 1 && n <= kBlockPostings && frequencies.size() == n);
  std::array<uint32_t, kBlockPostings> values;
  uint64_t next = first_possible;
  for (size_t i = 0; i < n; ++i) {
    values[i] = static_cast<uint32_t>(documents[i] - next);
    next = uint64_t{documents[i]} + 1;
  }
  AppendStream(values.data(), n, out);
  for (size_t i = 0; i < n; ++i) values[i] = frequencies[i] - 1;
  AppendStream(values.data(), n, out);
}

const std::byte* ReadPackedDocuments(const std::byte* in, const std::byte* end, size_t n, uint64_t first_possible,
                                     uint32_t last, uint32_t* documents, const Unpacking& unpacking) {
  uint64_t next = 0;
  in = ReadGaps(in, end, n, first_possible, documents, &next, unpacking);
  // It is behind `last` only if no step passed 2^32: the documents ascend.
  return next == uint64_t{last} + 1 ? in : nullptr;
}

const std::byte* ReadPackedFrequencies(const std::byte* in, const std::byte* end, size_t n, uint32_t* frequencies,
                                       const Unpacking& unpacking) {
  static_assert(kFrequencyMax == 0x80000000u);
  return ReadPlusOne(in, end, n, frequencies, unpacking);
}

const std::byte* ReadPackedBlock(const std::byte* in, const std::byte* end, size_t n, uint64_t first_possible,
                                 uint32_t last, uint32_t* documents, uint32_t* frequencies,
                                 const Unpacking& unpacking) {
  in = ReadPackedDocuments(in, end, n, first_possible, last, documents, unpacking);
  return in == nullptr ? nullptr : ReadPackedFrequencies(in, end, n, frequencies, unpacking);
}

void AppendListHeaders(const ListHeaderValues& values, ByteBuffer* out) {
  const auto& blocks = values.blocks;
  const auto& groups = values.groups;
  ASHLAR_CHECK(!blocks.empty() && blocks.size() <= 0xFFFFFFFFu &&
               groups.size() == GroupsOf(static_cast<uint32_t>(blocks.size())));
  size_t pairs = 1, group_pairs = 1;
  for (const auto& block : blocks) pairs = std::max<size_t>(pairs, block.pair_count);
  for (const auto& group : groups) group_pairs = std::max<size_t>(group_pairs, group.pair_count);
  pairs = PairSlots(pairs);
  group_pairs = PairSlots(group_pairs);

  ByteWriter w(out);
  w.U8(static_cast<uint8_t>(values.windows ? ListLayout::kWindows : ListLayout::kNatural));
  w.U8(static_cast<uint8_t>(pairs));
  w.U8(static_cast<uint8_t>(group_pairs));
  w.U8(static_cast<uint8_t>((values.positions ? kHasPositions : 0) | (values.members ? kHasMembers : 0)));
  w.U32(static_cast<uint32_t>(blocks.size()));
  w.U32(values.postings);
  w.U32(values.largest_postings);

  const auto group_end = [&](size_t g) { return std::min(blocks.size(), (g + 1) * kBlocksPerGroup); };
  for (const auto& group : groups) w.U64(group.payload_base);
  if (values.positions) {
    for (const auto& group : groups) w.U64(group.positions_base);
  }
  if (values.windows) {
    ASHLAR_CHECK(blocks.size() % kBlocksPerGroup == 0);
    for (const auto& group : groups) w.U32(group.payload_bytes);
    for (const auto& group : groups) w.U16(group.window.exceptions);
    for (const auto& group : groups) w.U8(static_cast<uint8_t>(group.window.encoding));
    for (const auto& group : groups) w.U8(group.window.width);
  } else {
    for (size_t g = 0; g < groups.size(); ++g) w.U32(blocks[group_end(g) - 1].last_document);
    for (const auto& block : blocks) w.U32(block.last_document);
  }
  if (!values.windows || values.members) {
    for (const auto& block : blocks) w.U32(block.payload_end);
  }
  if (values.positions) {
    for (const auto& block : blocks) w.U32(block.positions_end);
  }
  for (const auto& block : blocks) w.U8(static_cast<uint8_t>(values.windows ? block.count : block.count - 1));
  if (!values.windows) {
    for (const auto& block : blocks) w.U8(static_cast<uint8_t>(block.encoding));
  }

  const auto put_pairs = [&](const auto& headers, size_t slots) {
    const auto pair_at = [](const auto& header, size_t p) {
      return header.pairs[std::min<size_t>(p, header.pair_count - 1u)];
    };
    for (size_t p = 0; p < slots; ++p) {
      for (const auto& header : headers) w.U8(pair_at(header, p).frequency);
    }
    for (size_t p = 0; p < slots; ++p) {
      for (const auto& header : headers) w.U8(pair_at(header, p).length);
    }
  };
  put_pairs(blocks, pairs);
  if (values.members) {
    for (const auto& block : blocks) w.U8(block.largest.frequency);
    for (const auto& block : blocks) w.U8(block.largest.length);
  }
  put_pairs(groups, group_pairs);
  if (values.members) {
    std::vector<Frontier::Pair> largest(groups.size(), {0, kCodeMax});
    for (size_t b = 0; b < blocks.size(); ++b) {
      auto& pair = largest[b / kBlocksPerGroup];
      pair.frequency = std::max(pair.frequency, blocks[b].largest.frequency);
      pair.length = std::min(pair.length, blocks[b].largest.length);
    }
    for (const auto& pair : largest) w.U8(pair.frequency);
    for (const auto& pair : largest) w.U8(pair.length);
  }
  while (out->size() % kListHeadersAlignment != 0) w.U8(0);
}

Decode ListHeadersBytes(const std::byte* fixed, uint64_t* bytes) {
  const auto layout = static_cast<uint8_t>(fixed[0]);
  const uint32_t pairs = static_cast<uint8_t>(fixed[1]);
  const uint32_t group_pairs = static_cast<uint8_t>(fixed[2]);
  const auto flags = static_cast<uint8_t>(fixed[3]);
  const uint32_t blocks = LoadU32(fixed + 4);
  const uint32_t postings = LoadU32(fixed + 8);
  const uint32_t largest_postings = LoadU32(fixed + 12);
  const bool windows = layout == static_cast<uint8_t>(ListLayout::kWindows);
  if (layout != static_cast<uint8_t>(ListLayout::kNatural) && !windows)
    return layout == 0 ? Decode::kDamage : Decode::kUnknown;
  if ((flags & ~(kHasPositions | kHasMembers)) != 0) return Decode::kUnknown;
  if (!IsPairCount(pairs) || !IsPairCount(group_pairs)) return Decode::kDamage;
  if (blocks == 0 || largest_postings > postings) return Decode::kDamage;
  if (windows ? blocks % kBlocksPerGroup != 0 || blocks > kNoDocument / kSliceDocuments : blocks > postings)
    return Decode::kDamage;
  const uint64_t positions = (flags & kHasPositions) != 0 ? 1 : 0;
  const uint64_t members = (flags & kHasMembers) != 0 ? 1 : 0;
  const uint64_t a_group = 8 + 8 * positions + (windows ? 4 + 2 + 2 : 4) + 2 * uint64_t{group_pairs} + 2 * members;
  const uint64_t a_block = (windows ? 4 * members + 1 : 4 + 4 + 2) + 4 * positions + 2 * uint64_t{pairs} + 2 * members;
  *bytes = kListHeadersFixedBytes + GroupsOf(blocks) * a_group + blocks * a_block;
  return Decode::kOk;
}

void ReadListHeaders(const std::byte* in, ListHeaders* h) {
  *h = ListHeaders();
  h->pairs = static_cast<uint8_t>(in[1]);
  h->group_pairs = static_cast<uint8_t>(in[2]);
  const auto flags = static_cast<uint8_t>(in[3]);
  h->windows = static_cast<uint8_t>(in[0]) == static_cast<uint8_t>(ListLayout::kWindows);
  h->positions = (flags & kHasPositions) != 0;
  h->members = (flags & kHasMembers) != 0;
  h->blocks = LoadU32(in + 4);
  h->postings = LoadU32(in + 8);
  h->largest_postings = LoadU32(in + 12);
  h->groups = GroupsOf(h->blocks);
  in += kListHeadersFixedBytes;
  const auto take = [&in](size_t bytes) {
    const std::byte* at = in;
    in += bytes;
    return at;
  };
  const auto take_codes = [&](size_t n) { return reinterpret_cast<const uint8_t*>(take(n)); };
  const size_t blocks = h->blocks, groups = h->groups;
  h->payload_bases = take(8 * groups);
  if (h->positions) h->positions_bases = take(8 * groups);
  if (h->windows) {
    h->window_bytes = take(4 * groups);
    h->window_exceptions = take(2 * groups);
    h->window_encodings = take_codes(groups);
    h->window_widths = take_codes(groups);
  } else {
    h->group_last_documents = take(4 * groups);
    h->last_documents = take(4 * blocks);
  }
  if (!h->windows || h->members) h->payload_ends = take(4 * blocks);
  if (h->positions) h->positions_ends = take(4 * blocks);
  h->counts = take_codes(blocks);
  if (!h->windows) h->encodings = take_codes(blocks);
  h->pair_frequencies = take_codes(h->pairs * blocks);
  h->pair_lengths = take_codes(h->pairs * blocks);
  if (h->members) {
    h->largest_frequencies = take_codes(blocks);
    h->largest_lengths = take_codes(blocks);
  }
  h->group_pair_frequencies = take_codes(h->group_pairs * groups);
  h->group_pair_lengths = take_codes(h->group_pairs * groups);
  if (h->members) {
    h->group_largest_frequencies = take_codes(groups);
    h->group_largest_lengths = take_codes(groups);
  }
}

uint32_t ListHeaders::FindBlock(uint32_t from, uint32_t target) const {
  if (windows) return std::min(std::max(from, target / kSliceDocuments), blocks);
  // Gallop, then halve: [low, high) always holds the answer or ends at it.
  uint64_t low = from, step = 1;
  while (low + step <= blocks && LastDocument(static_cast<uint32_t>(low + step - 1)) < target) {
    low += step;
    step *= 2;
  }
  uint64_t high = std::min<uint64_t>(low + step - 1, blocks);
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (LastDocument(static_cast<uint32_t>(middle)) < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<uint32_t>(low);
}

bool ListHeaders::Range(const std::byte* bases, const std::byte* ends, uint32_t block, uint64_t* offset,
                        uint64_t* bytes) {
  const uint64_t base = LoadU64(bases + size_t{8} * (block / kBlocksPerGroup));
  const uint32_t begin = block % kBlocksPerGroup == 0 ? 0 : LoadU32(ends + size_t{4} * (block - 1));
  const uint32_t end = LoadU32(ends + size_t{4} * block);
  if (begin > end || base > UINT64_MAX - end) return false;
  *offset = base + begin;
  *bytes = end - begin;
  return true;
}

}  // namespace ashlar::format
