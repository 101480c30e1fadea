// Sorted strings in front-coded blocks of 16 (SPEC K-3), the keys section made of them (K-4), and the filter that
// says quickly that a key is not there (K-5). Keyword columns keep their distinct values in the same form.
//
// A block: varint length and bytes of its first string; then for each further one a byte (shared << 4 | suffix),
// where 15 in either half means that a varint with the rest follows (shared's first), and the suffix's bytes.
#ifndef ASHLAR_FORMAT_KEY_BLOCK_H_
#define ASHLAR_FORMAT_KEY_BLOCK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/layout.h"
#include "format/packed_numbers.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kStringsPerBlock = 16;

// Where sorted strings lie in their section.
struct StringsPlace {
  uint32_t count = 0;
  uint64_t blocks_offset = 0;
  uint64_t blocks_length = 0;
  uint64_t offsets_offset = 0;  // number array: where each block begins, from blocks_offset
  uint64_t offsets_length = 0;
  bool operator==(const StringsPlace&) const = default;
};

// Call order: Add* Finish. Strings ascend by bytes and are distinct.
class SortedStringsWriter {
 public:
  void Add(std::string_view s);
  uint32_t count() const { return count_; }
  // Appends blocks and offsets to `out`, whose size is their offset in the section.
  StringsPlace Finish(ByteBuffer* out);

 private:
  ByteBuffer blocks_;
  NumberArrayWriter offsets_;
  std::string last_;
  uint32_t count_ = 0;
};

// Walks the strings of one block. Any bytes are safe: a block that breaks K-3 ends early with ok() false.
class StringBlockReader {
 public:
  explicit StringBlockReader(ByteSpan block) : in_(block) {}
  // To the next string, at most kStringsPerBlock. False at the end of the block or on damage.
  bool Next();
  std::string_view value() const { return value_; }
  bool ok() const { return ok_; }

 private:
  ByteReader in_;
  std::string value_;
  size_t read_ = 0;
  bool ok_ = true;
};

// Reads sorted strings: by rank, and the other way. `Bytes`: see packed_numbers.h. Functions return false when bytes
// can't be had or break the format.
template <class Bytes>
class SortedStrings {
 public:
  SortedStrings(const Bytes& bytes, const StringsPlace& place)
      : blocks_(bytes, place.blocks_offset, place.blocks_length),
        offsets_(PartOf<Bytes>(bytes, place.offsets_offset, place.offsets_length), BlocksOf(place.count)),
        count_(place.count) {}

  uint32_t count() const { return count_; }

  bool At(uint32_t rank, std::string* value) const {
    if (rank >= count_) return false;
    std::optional<ByteSpan> block = Block(rank / kStringsPerBlock);
    if (!block.has_value()) return false;
    StringBlockReader reader(*block);
    for (uint32_t i = 0; i <= rank % kStringsPerBlock; ++i)
      if (!reader.Next()) return false;
    value->assign(reader.value());
    return true;
  }

  // The rank of the first string >= `s` (count() if there is none), and whether it is `s`.
  bool LowerBound(std::string_view s, uint32_t* rank, bool* equal) const {
    *equal = false;
    *rank = count_;
    uint64_t low = 0, high = BlocksOf(count_);  // the last block whose first string is <= s is low - 1 in the end
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      std::optional<std::string_view> first = First(middle);
      if (!first.has_value()) return false;
      if (*first <= s) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) {
      *rank = 0;
      return true;
    }
    std::optional<ByteSpan> block = Block(low - 1);
    if (!block.has_value()) return false;
    StringBlockReader reader(*block);
    uint64_t at = (low - 1) * kStringsPerBlock;
    for (; reader.Next(); ++at) {
      if (reader.value() < s) continue;
      *equal = reader.value() == s;
      break;
    }
    if (!reader.ok() || at > count_) return false;
    *rank = static_cast<uint32_t>(at);
    return true;
  }

  // The bytes of a block.
  std::optional<ByteSpan> Block(uint64_t block) const {
    uint64_t begin = 0, end = blocks_.size();
    if (!offsets_.At(block, &begin)) return std::nullopt;
    if (block + 1 < offsets_.count() && !offsets_.At(block + 1, &end)) return std::nullopt;
    if (begin >= end) return std::nullopt;
    const std::byte* p = blocks_.Read(begin, end - begin);
    if (p == nullptr) return std::nullopt;
    return ByteSpan(p, end - begin);
  }

  uint64_t block_count() const { return offsets_.count(); }

 private:
  static uint64_t BlocksOf(uint64_t count) { return (count + (kStringsPerBlock - 1)) / kStringsPerBlock; }
  std::optional<std::string_view> First(uint64_t block) const {
    std::optional<ByteSpan> bytes = Block(block);
    if (!bytes.has_value()) return std::nullopt;
    ByteReader in(*bytes);
    const std::string_view first = in.Sized();
    if (!in.ok()) return std::nullopt;
    return first;
  }
  PartOf<Bytes> blocks_;
  NumberArray<Bytes> offsets_;
  uint32_t count_;
};

// The keys section's header. `rank_width` is the width of both permutations; 0 means that rank and ordinal are equal.
struct KeysHeader {
  StringsPlace strings;
  uint64_t ranks_offset = 0;     // packed: ordinal -> rank
  uint64_t ordinals_offset = 0;  // packed: rank -> ordinal
  uint8_t width = 0;
  bool operator==(const KeysHeader&) const = default;
};
inline constexpr size_t kKeysHeaderBytes = 64;

// `ordinals`: by rank; a permutation of 0 .. count - 1. `key(rank)` gives the keys, ascending and distinct.
template <class KeyOfRank>
ByteBuffer EncodeKeys(std::span<const uint32_t> ordinals, const KeyOfRank& key);

// Nullopt unless the header obeys K-4 in a section of `section_bytes`.
std::optional<KeysHeader> DecodeKeysHeader(ByteSpan bytes, uint64_t section_bytes);

// --- filter ---

// Split block Bloom filter: blocks of 32 bytes, eight words with one bit of each key.
inline constexpr size_t kFilterBlockBytes = 32;
// Bytes of a filter for `keys` keys: about 10 bits a key, at least one block.
uint64_t KeyFilterBytes(uint64_t keys);
void AddToKeyFilter(uint64_t hash, std::span<std::byte> filter);
// Offset of the block that a key's bits are in, in a filter of `filter_bytes` (a multiple of 32, not 0).
inline uint64_t KeyFilterBlock(uint64_t hash, uint64_t filter_bytes) {
  return ((hash >> 32) * (filter_bytes / kFilterBlockBytes) >> 32) * kFilterBlockBytes;
}
// False: no key of this hash was added. `block`: its 32 bytes.
bool KeyFilterMayHold(uint64_t hash, const std::byte* block);

// --- inline part ---

ByteBuffer FinishKeys(SortedStringsWriter* strings, std::span<const uint32_t> ordinals);

template <class KeyOfRank>
ByteBuffer EncodeKeys(std::span<const uint32_t> ordinals, const KeyOfRank& key) {
  SortedStringsWriter strings;
  for (uint32_t rank = 0; rank < ordinals.size(); ++rank) strings.Add(key(rank));
  return FinishKeys(&strings, ordinals);
}

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_KEY_BLOCK_H_
