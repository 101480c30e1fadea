// By which shuffles and shifts packed values come apart, by width.
//
// Eight values of any width take `width` bytes, so groups of 8 begin on a byte, and where each value lies in its group
// depends on the width alone. Whatever bit of its first byte it begins at, a value of up to 25 bits lies in 4 bytes,
// one of up to 8 bits in 2.
#ifndef ASHLAR_SRC_SIMD_UNPACK_TABLES_H_
#define ASHLAR_SRC_SIMD_UNPACK_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/simd/kernels.h"

namespace ashlar::simd {

inline constexpr uint32_t kShuffledWidthMax = 25;

// AVX2: 8 values to 8 numbers of 32 bits. Values 0 to 3 come from the 16 bytes at the group's begin, 4 to 7 from those
// at second_half.
struct alignas(64) Unpack8 {
  uint8_t bytes[32];
  uint32_t shifts[8];
  uint32_t second_half;
  uint32_t mask;
};

constexpr std::array<Unpack8, kShuffledWidthMax + 1> MakeUnpack8() {
  std::array<Unpack8, kShuffledWidthMax + 1> table{};
  for (uint32_t width = 0; width <= kShuffledWidthMax; ++width) {
    Unpack8& t = table[width];
    t.second_half = 4 * width / 8;
    t.mask = (1u << width) - 1;
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t bit = i * width - (i < 4 ? 0 : 8 * t.second_half);
      t.shifts[i] = bit % 8;
      for (uint32_t j = 0; j < 4; ++j) t.bytes[4 * i + j] = static_cast<uint8_t>(bit / 8 + j);
    }
  }
  return table;
}
inline constexpr auto kUnpack8 = MakeUnpack8();

// AVX-512: 16 values to 16 numbers of 32 bits, from the 64 bytes at the group's begin.
struct alignas(64) Unpack16 {
  uint8_t bytes[64];
  uint32_t shifts[16];
};

constexpr std::array<Unpack16, kShuffledWidthMax + 1> MakeUnpack16() {
  std::array<Unpack16, kShuffledWidthMax + 1> table{};
  for (uint32_t width = 0; width <= kShuffledWidthMax; ++width) {
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t bit = i * width;
      table[width].shifts[i] = bit % 8;
      for (uint32_t j = 0; j < 4; ++j) table[width].bytes[4 * i + j] = static_cast<uint8_t>(bit / 8 + j);
    }
  }
  return table;
}
inline constexpr auto kUnpack16 = MakeUnpack16();

// AVX2: 8 values to 8 numbers of 16 bits in each half of a register, from the 16 bytes at the group's begin. AVX2 has
// no shift of 16 bits by several amounts: a multiplication moves each value to bit 8.
struct alignas(64) UnpackBytes8 {
  uint8_t bytes[32];
  uint16_t factors[16];
};

constexpr std::array<UnpackBytes8, kByteWidthMax + 1> MakeUnpackBytes8() {
  std::array<UnpackBytes8, kByteWidthMax + 1> table{};
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t bit = i % 8 * width;
      table[width].factors[i] = static_cast<uint16_t>(1u << (8 - bit % 8));
      for (uint32_t j = 0; j < 2; ++j) table[width].bytes[2 * i + j] = static_cast<uint8_t>(bit / 8 + j);
    }
  }
  return table;
}
inline constexpr auto kUnpackBytes8 = MakeUnpackBytes8();

// AVX-512: 64 values to 64 bytes. Values 8 q to 8 q + 7 take `width` bytes, which go to the q-th eight bytes and are
// shifted out.
struct alignas(64) UnpackBytes64 {
  uint8_t bytes[64];
  uint8_t shifts[64];
};

constexpr std::array<UnpackBytes64, kByteWidthMax + 1> MakeUnpackBytes64() {
  std::array<UnpackBytes64, kByteWidthMax + 1> table{};
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    for (uint32_t i = 0; i < 64; ++i) {
      table[width].bytes[i] = static_cast<uint8_t>(i / 8 * width + i % 8);
      table[width].shifts[i] = static_cast<uint8_t>(i % 8 * width);
    }
  }
  return table;
}
inline constexpr auto kUnpackBytes64 = MakeUnpackBytes64();

// Eight bits as positions: entry b has, for each bit of b that is set, how many are set below it, and 0x80 for the
// others, so that a byte shuffle spreads consecutive bytes over the set bits and leaves zeros between them.
struct alignas(8) Spread8 {
  uint8_t bytes[8];
};
// The inverse: the positions of the set bits, in order, so that a permutation moves chosen elements together.
constexpr std::array<Spread8, 256> MakeSpread8() {
  std::array<Spread8, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    uint8_t below = 0;
    for (uint32_t i = 0; i < 8; ++i) table[bits].bytes[i] = (bits >> i & 1) != 0 ? below++ : uint8_t{0x80};
  }
  return table;
}
inline constexpr auto kSpread8 = MakeSpread8();

constexpr std::array<Spread8, 256> MakeGather8() {
  std::array<Spread8, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) {
    uint32_t found = 0;
    for (uint8_t i = 0; i < 8; ++i) {
      if ((bits >> i & 1) != 0) table[bits].bytes[found++] = i;
    }
  }
  return table;
}
inline constexpr auto kGather8 = MakeGather8();

}  // namespace ashlar::simd

#endif  // ASHLAR_SRC_SIMD_UNPACK_TABLES_H_
