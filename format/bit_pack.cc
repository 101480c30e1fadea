#include "format/bit_pack.h"

#include <array>
#include <cstring>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/check.h"

namespace ashlar::format {
namespace {

constexpr size_t kGroup = 8;  // eight values of any width end on a byte
constexpr uint32_t kWidths = 33;

// Eight values into `width` bytes.
template <uint32_t width>
void PackGroup(const uint32_t* values, std::byte* out) {
  uint64_t bits = 0;
  uint32_t held = 0;
  for (size_t i = 0; i < kGroup; ++i) {
    bits |= uint64_t{values[i]} << held;
    held += width;
    if (held >= 32) {
      StoreU32(out, static_cast<uint32_t>(bits));
      out += 4;
      bits >>= 32;
      held -= 32;
    }
  }
  for (; held > 0; held -= 8) {
    *out++ = static_cast<std::byte>(bits & 0xFF);
    bits >>= 8;
  }
}

template <uint32_t width>
void PackValues(const uint32_t* values, size_t n, std::byte* out) {
  for (; n >= kGroup; n -= kGroup, values += kGroup, out += width) PackGroup<width>(values, out);
  if (n == 0) return;
  uint32_t last[kGroup] = {};
  std::memcpy(last, values, n * sizeof(uint32_t));
  std::byte packed[32];
  PackGroup<width>(last, packed);
  std::memcpy(out, packed, PackedBytes(n, width));
}

template <>
void PackValues<0>(const uint32_t*, size_t, std::byte*) {}

template <uint32_t width, size_t i>
inline uint32_t UnpackOne(const std::byte* in) {
  constexpr uint64_t kMask = (uint64_t{1} << width) - 1;
  return static_cast<uint32_t>((LoadU64(in + i * width / 8) >> (i * width % 8)) & kMask);
}

template <uint32_t width, size_t... i>
inline void UnpackGroup(const std::byte* in, uint32_t* values, std::index_sequence<i...>) {
  ((values[i] = UnpackOne<width, i>(in)), ...);
}

template <uint32_t width>
void UnpackValues(const std::byte* in, size_t n, uint32_t* values) {
  for (size_t done = 0; done < n; done += kGroup, in += width, values += kGroup) {
    UnpackGroup<width>(in, values, std::make_index_sequence<kGroup>());
  }
}

template <>
void UnpackValues<0>(const std::byte*, size_t n, uint32_t* values) {
  std::memset(values, 0, n * sizeof(uint32_t));
}

using PackFunction = void (*)(const uint32_t*, size_t, std::byte*);
using UnpackFunction = void (*)(const std::byte*, size_t, uint32_t*);

template <uint32_t... width>
constexpr std::array<PackFunction, kWidths> PackTable(std::integer_sequence<uint32_t, width...>) {
  return {PackValues<width>...};
}
template <uint32_t... width>
constexpr std::array<UnpackFunction, kWidths> UnpackTable(std::integer_sequence<uint32_t, width...>) {
  return {UnpackValues<width>...};
}

constexpr auto kPack = PackTable(std::make_integer_sequence<uint32_t, kWidths>());
constexpr auto kUnpack = UnpackTable(std::make_integer_sequence<uint32_t, kWidths>());

}  // namespace

void Pack(const uint32_t* values, size_t n, uint32_t width, std::byte* out) {
  ASHLAR_CHECK(width < kWidths);
  kPack[width](values, n, out);
}

void Unpack(const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
  ASHLAR_CHECK(width < kWidths);
  kUnpack[width](in, n, values);
}

}  // namespace ashlar::format
