// Posting lists as bytes (SPEC P-*): short lists, block payloads, and the headers that stand apart from the payloads so
// that skipping a block touches none of it.
#ifndef ASHLAR_FORMAT_POSTING_BLOCK_H_
#define ASHLAR_FORMAT_POSTING_BLOCK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "format/dense_window.h"
#include "format/frontier.h"
#include "format/layout.h"
#include "format/packed_stream.h"
#include "src/base/bytes.h"

namespace ashlar::format {

// Layout ids of a list (SPEC P-8). DO NOT CHANGE.
enum class ListLayout : uint8_t { kNatural = 1, kWindows = 2 };
// Encoding ids of a block (SPEC P-10). DO NOT CHANGE.
enum class BlockEncoding : uint8_t { kPacked = 1 };

// Lists from here on have blocks.
inline constexpr uint32_t kBlockListPostings = 128;
// The most that a posting's frequency, summed over members, can be (SPEC P-5).
inline constexpr uint32_t kFrequencyMax = 0x80000000u;
inline constexpr size_t kListHeadersAlignment = 8;
inline constexpr size_t kListHeadersFixedBytes = 16;

// What a decoder says: the caller knows file and place and makes the error.
enum class Decode : uint8_t { kOk, kDamage, kUnknown };

// --- short lists ---

// A short posting's lowest bit: more than the one occurrence in the largest member.
inline constexpr uint64_t kNotSimple = 1;

// One posting: u is the gap to the next possible document. `members`: one frequency a member.
void AppendShortPosting(uint32_t gap, std::span<const uint32_t> members, uint32_t largest, ByteBuffer* out);

struct ShortPosting {
  uint32_t gap = 0;
  uint32_t frequency = 0;  // summed
};
// Reads one; `members` receives a frequency a member. False if it breaks P-5.
bool ReadShortPosting(ByteReader* in, uint32_t largest, std::span<uint32_t> members, ShortPosting* posting);
// The same in an index of one member.
inline bool ReadShortPosting(ByteReader* in, ShortPosting* posting) {
  const uint64_t token = in->Varint();
  posting->gap = static_cast<uint32_t>(token >> 1);
  posting->frequency = 1;
  if ((token & kNotSimple) == 0) return in->ok() && token >> 1 <= 0xFFFFFFFFu;
  const uint64_t above = in->Varint();
  posting->frequency = static_cast<uint32_t>(above + 2);
  return in->ok() && token >> 1 <= 0xFFFFFFFFu && above <= kFrequencyMax - 2;
}

// --- block payloads, encoding kPacked ---

// The first document of a block counts from `first_possible`: the document after the last of the block before, or 0.
void AppendPackedBlock(uint64_t first_possible, std::span<const uint32_t> documents,
                       std::span<const uint32_t> frequencies, ByteBuffer* out);

// Decodes n documents of [in, end). The last one must be `last`. Arrays have room for kUnpackSlack values more. Returns
// where the frequencies begin, or null for bytes that break P-10.
const std::byte* ReadPackedDocuments(const std::byte* in, const std::byte* end, size_t n, uint64_t first_possible,
                                     uint32_t last, uint32_t* documents,
                                     const Unpacking& unpacking = PlainUnpacking());
// The frequencies behind them. Returns where the members' streams begin (without any: `end`), or null.
const std::byte* ReadPackedFrequencies(const std::byte* in, const std::byte* end, size_t n, uint32_t* frequencies,
                                       const Unpacking& unpacking = PlainUnpacking());
// Both.
const std::byte* ReadPackedBlock(const std::byte* in, const std::byte* end, size_t n, uint64_t first_possible,
                                 uint32_t last, uint32_t* documents, uint32_t* frequencies,
                                 const Unpacking& unpacking = PlainUnpacking());

// --- headers of a list with blocks ---

// What the writer knows of one block.
struct BlockHeader {
  uint32_t last_document = 0;  // not in windows
  uint32_t payload_end = 0;    // from the group's base; in windows that of the members' streams, from the first block's
  uint32_t positions_end = 0;  // the same; 0 without positions
  uint8_t count = 0;
  BlockEncoding encoding = BlockEncoding::kPacked;
  std::array<Frontier::Pair, kWindowListPairs.block> pairs{};
  uint8_t pair_count = 0;
  Frontier::Pair largest{};  // the largest member's highest frequency and least length
};

// One second-level header.
struct GroupHeader {
  uint64_t payload_base = 0;  // in the postings section
  uint64_t positions_base = 0;
  uint32_t payload_bytes = 0;  // only in windows
  WindowShape window;          // the same
  std::array<Frontier::Pair, kWindowListPairs.group> pairs{};
  uint8_t pair_count = 0;
};

struct ListHeaderValues {
  bool windows = false;
  uint32_t postings = 0;
  uint32_t largest_postings = 0;
  bool positions = false;
  bool members = false;  // of a group of two or more
  std::vector<BlockHeader> blocks;
  std::vector<GroupHeader> groups;  // one per kBlocksPerGroup blocks
};

// Appends the headers, padded to kListHeadersAlignment. Pair arrays are as wide as the widest frontier needs.
void AppendListHeaders(const ListHeaderValues& values, ByteBuffer* out);

// A view of a list's headers where they lie. Arrays go by block, second-level ones by group of kBlocksPerGroup blocks.
// 64 bytes after the last array can be read, so loops may run in steps.
//
// Bounds: for a scorer that grows with the frequency and falls with the length, the maximum over the pairs of a block,
// FrequencyOfCode(pair_frequencies[p * blocks + b]) with LengthOfCode(pair_lengths[p * blocks + b]) for p < pairs, is
// at least what any posting of block b contributes; the same for groups. Pair 0 has the highest frequency, the last
// pair the least length; spare pairs repeat the last one.
struct ListHeaders {
  uint32_t postings = 0;
  uint32_t largest_postings = 0;
  uint32_t blocks = 0;
  uint32_t groups = 0;
  uint32_t pairs = 0;
  uint32_t group_pairs = 0;
  bool windows = false;  // a group is a window of kWindowDocuments, a block a slice of it, which may have no posting
  bool positions = false;
  bool members = false;
  const std::byte* payload_bases = nullptr;         // u64 by group
  const std::byte* positions_bases = nullptr;       // u64 by group
  const std::byte* group_last_documents = nullptr;  // u32 by group; not in windows
  const std::byte* last_documents = nullptr;        // u32 by block; not in windows
  const std::byte* payload_ends = nullptr;          // u32 by block; in windows only with members
  const std::byte* positions_ends = nullptr;        // u32 by block
  const uint8_t* counts = nullptr;                  // postings less one; in windows postings
  const uint8_t* encodings = nullptr;               // not in windows
  const std::byte* window_bytes = nullptr;          // u32 by window
  const std::byte* window_exceptions = nullptr;     // u16 by window
  const uint8_t* window_encodings = nullptr;
  const uint8_t* window_widths = nullptr;
  const uint8_t* pair_frequencies = nullptr;
  const uint8_t* pair_lengths = nullptr;
  const uint8_t* largest_frequencies = nullptr;  // by block, only with members; 0: the block has none of it
  const uint8_t* largest_lengths = nullptr;
  const uint8_t* group_pair_frequencies = nullptr;
  const uint8_t* group_pair_lengths = nullptr;
  const uint8_t* group_largest_frequencies = nullptr;  // by group
  const uint8_t* group_largest_lengths = nullptr;

  // In windows, no document of the block is above it.
  uint32_t LastDocument(uint32_t block) const {
    if (windows) return block * kSliceDocuments + (kSliceDocuments - 1);
    return LoadU32(last_documents + size_t{4} * block);
  }
  uint32_t Count(uint32_t block) const { return windows ? counts[block] : counts[block] + 1u; }
  uint64_t FirstPossible(uint32_t block) const { return block == 0 ? 0 : uint64_t{LastDocument(block - 1)} + 1; }
  WindowShape ShapeOf(uint32_t window) const {
    return {static_cast<WindowEncoding>(window_encodings[window]), window_widths[window],
            LoadU16(window_exceptions + size_t{2} * window)};
  }
  // The whole payload of a window, in the postings section.
  void WindowPayload(uint32_t window, uint64_t* offset, uint64_t* bytes) const {
    *offset = LoadU64(payload_bases + size_t{8} * window);
    *bytes = LoadU32(window_bytes + size_t{4} * window);
  }
  // Members' streams of a block of a window: [begin, end) from the end of the window's own bytes. False if they break
  // P-13.
  bool MemberStreams(uint32_t block, uint32_t* begin, uint32_t* end) const {
    *begin = block % kBlocksPerGroup == 0 ? 0 : LoadU32(payload_ends + size_t{4} * (block - 1));
    *end = LoadU32(payload_ends + size_t{4} * block);
    return *begin <= *end;
  }
  // Offsets in the postings section. False if they break P-8. Payload: not in windows.
  bool Payload(uint32_t block, uint64_t* offset, uint64_t* bytes) const {
    return Range(payload_bases, payload_ends, block, offset, bytes);
  }
  bool Positions(uint32_t block, uint64_t* offset, uint64_t* bytes) const {
    return Range(positions_bases, positions_ends, block, offset, bytes);
  }
  // The first block from `from` on whose last document is at or after `target`; `blocks` if there is none. O(log
  // distance).
  uint32_t FindBlock(uint32_t from, uint32_t target) const;

 private:
  static bool Range(const std::byte* bases, const std::byte* ends, uint32_t block, uint64_t* offset, uint64_t* bytes);
};

// Bytes that the headers take (padding excluded), from their first kListHeadersFixedBytes; kUnknown for a layout or
// pair count of a later version.
Decode ListHeadersBytes(const std::byte* fixed, uint64_t* bytes);
// The view; `in` must have ListHeadersBytes readable. For what ListHeadersBytes took.
void ReadListHeaders(const std::byte* in, ListHeaders* headers);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_POSTING_BLOCK_H_
