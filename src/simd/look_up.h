// Looking single documents up in windows. The same code on all levels, which differ in how they count bits.
#ifndef ASHLAR_SRC_SIMD_LOOK_UP_H_
#define ASHLAR_SRC_SIMD_LOOK_UP_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/simd/kernels.h"

namespace ashlar::simd {

// Value i of packed ones of at most 8 bits.
inline __attribute__((always_inline)) uint32_t PackedByte(const std::byte* values, uint32_t width, uint32_t i) {
  const uint32_t bit = i * width;
  uint16_t two;
  std::memcpy(&two, values + bit / 8, sizeof two);
  return two >> (bit % 8) & ((1u << width) - 1);
}

inline __attribute__((always_inline)) void LookUpColumnBy(const std::byte* column, uint32_t width,
                                                          const uint32_t* documents, size_t n, uint32_t* found) {
  for (size_t i = 0; i < n; ++i) found[i] = PackedByte(column, width, documents[i] % kWindow);
}

template <class CountBits>
inline __attribute__((always_inline)) void LookUpBitmapBy(const CountBits& count, const std::byte* bitmap,
                                                          const uint16_t* ranks, const std::byte* values,
                                                          uint32_t width, const uint32_t* documents, size_t n,
                                                          uint32_t* found) {
  static_assert(kBlock == 128);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t offset = documents[i] % kWindow, slice = offset / kBlock;
    uint64_t words[2];
    std::memcpy(words, bitmap + size_t{16} * slice, sizeof words);
    const bool second = offset % kBlock >= 64;
    const uint64_t word = words[second ? 1 : 0];
    const uint64_t before = word & ((uint64_t{1} << (offset % 64)) - 1);
    const uint32_t rank = ranks[slice] + (second ? count(words[0]) : 0) + count(before);
    const bool is_set = (word >> (offset % 64) & 1) != 0 && rank < ranks[kWindow / kBlock];
    found[i] = is_set ? PackedByte(values, width, rank) + 1 : 0;
  }
}

}  // namespace ashlar::simd

#endif  // ASHLAR_SRC_SIMD_LOOK_UP_H_
