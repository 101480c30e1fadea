// Numbers in few bits (SPEC K-1, K-2).
//
// Packed: `width` bits a number (0 to 64), from the lowest bit of little-endian 64-bit words on.
// Number array: any unsigned numbers in blocks of 512, each a straight line plus packed differences from it. Numbers
// that grow evenly (DocumentIds, offsets of blocks) cost next to nothing, and each is found in O(1).
//
// The readers here and in the other codecs of a segment's sections are templates over `Bytes`, which stands for one
// section:
//   const std::byte* Read(uint64_t offset, uint64_t length) const   the bytes, checked; null if they can't be had
// so that the same code reads verified pages of a mapping and plain memory (PlainBytes).
#ifndef ASHLAR_FORMAT_PACKED_NUMBERS_H_
#define ASHLAR_FORMAT_PACKED_NUMBERS_H_

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "src/base/bytes.h"

namespace ashlar::format {

// Bytes that need no checking but their bounds.
class PlainBytes {
 public:
  explicit PlainBytes(ByteSpan bytes) : bytes_(bytes) {}
  const std::byte* Read(uint64_t offset, uint64_t length) const {
    if (length > bytes_.size() || offset > bytes_.size() - length) return nullptr;
    return bytes_.data() + offset;
  }

 private:
  ByteSpan bytes_;
};

// A part of a section, with offsets of its own; `Bytes` and the numbers are copied.
template <class Bytes>
class PartOf {
 public:
  PartOf(const Bytes& bytes, uint64_t offset, uint64_t length) : bytes_(bytes), offset_(offset), length_(length) {}
  const std::byte* Read(uint64_t offset, uint64_t length) const {
    if (length > length_ || offset > length_ - length || offset_ + offset < offset_) return nullptr;
    return bytes_.Read(offset_ + offset, length);
  }
  uint64_t size() const { return length_; }

 private:
  const Bytes& bytes_;
  uint64_t offset_;
  uint64_t length_;
};

// Bits that `value` needs: 0 for 0.
inline unsigned BitWidth(uint64_t value) { return static_cast<unsigned>(std::bit_width(value)); }
// Bytes of `count` numbers (at most 2^33) of `width` bits.
inline uint64_t PackedNumberBytes(uint64_t count, unsigned width) { return (count * width + 63) / 64 * 8; }
// Appends `values`, each below 2^width.
void AppendPacked(std::span<const uint64_t> values, unsigned width, ByteBuffer* out);

// Number `i` of packed numbers that begin at `p`. The caller has checked width <= 64 and that PackedNumberBytes(i +
// 1, width) are there.
inline uint64_t PackedAt(const std::byte* p, uint64_t i, unsigned width) {
  if (width == 0) return 0;
  const uint64_t bit = i * width;
  p += bit / 64 * 8;
  const auto shift = static_cast<unsigned>(bit % 64);
  uint64_t v = LoadU64(p) >> shift;
  if (shift + width > 64) v |= LoadU64(p + 8) << (64 - shift);
  return width == 64 ? v : v & ((uint64_t{1} << width) - 1);
}
// The same by reading only the one or two words concerned. False: they can't be had.
template <class Bytes>
bool ReadPacked(const Bytes& bytes, uint64_t offset, uint64_t i, unsigned width, uint64_t* value) {
  if (width == 0) {
    *value = 0;
    return true;
  }
  if (width > 64 || i > UINT64_MAX / 64) return false;
  const uint64_t bit = i * width;
  const auto shift = static_cast<unsigned>(bit % 64);
  if (offset + bit / 64 * 8 < offset) return false;
  const std::byte* p = bytes.Read(offset + bit / 64 * 8, shift + width > 64 ? 16 : 8);
  if (p == nullptr) return false;
  uint64_t v = LoadU64(p) >> shift;
  if (shift + width > 64) v |= LoadU64(p + 8) << (64 - shift);
  *value = width == 64 ? v : v & ((uint64_t{1} << width) - 1);
  return true;
}

inline constexpr size_t kNumbersPerBlock = 512;
inline constexpr size_t kNumberBlockBytes = 24;  // base u64, slope u64, place u64 = offset << 8 | width

// The line of a number block: how far number `j` is expected above the base. The slope has 16 fractional bits; all
// arithmetic is modulo 2^64, so any slope gives back what was put in.
inline uint64_t NumberLine(uint64_t slope, uint64_t j) { return (slope * j) >> 16; }

// Collects numbers and gives the array's bytes: block entries, then their packed differences.
class NumberArrayWriter {
 public:
  void Add(uint64_t value);
  uint64_t count() const { return count_; }
  // Appends the array to `out`, which should be at a multiple of 8 (not needed, but faster to read).
  void Finish(ByteBuffer* out);

 private:
  void EndBlock();
  std::array<uint64_t, kNumbersPerBlock> pending_{};
  size_t pending_count_ = 0;
  uint64_t count_ = 0;
  ByteBuffer blocks_;
  ByteBuffer packed_;
};

// Reads an array of `count` numbers that fills `bytes`. O(1) a number.
template <class Bytes>
class NumberArray {
 public:
  NumberArray(PartOf<Bytes> bytes, uint64_t count) : bytes_(bytes), count_(count) {}
  uint64_t count() const { return count_; }
  // False: out of range, or the bytes can't be had, or break K-2.
  bool At(uint64_t i, uint64_t* value) const {
    if (i >= count_) return false;
    const uint64_t blocks = (count_ - 1) / kNumbersPerBlock + 1;
    const uint64_t j = i % kNumbersPerBlock;
    const std::byte* entry = bytes_.Read(i / kNumbersPerBlock * kNumberBlockBytes, kNumberBlockBytes);
    if (entry == nullptr) return false;
    const uint64_t place = LoadU64(entry + 16);
    uint64_t difference = 0;
    if (!ReadPacked(bytes_, blocks * kNumberBlockBytes + (place >> 8), j, static_cast<unsigned>(place & 0xFF),
                    &difference))
      return false;
    *value = LoadU64(entry) + NumberLine(LoadU64(entry + 8), j) + difference;
    return true;
  }
  // For ascending numbers: index of the first that is >= target, count() if there is none. O(log count).
  bool LowerBound(uint64_t target, uint64_t* index) const {
    uint64_t low = 0, high = count_;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      uint64_t value = 0;
      if (!At(middle, &value)) return false;
      if (value < target) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    *index = low;
    return true;
  }

 private:
  PartOf<Bytes> bytes_;
  uint64_t count_;
};

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_PACKED_NUMBERS_H_
