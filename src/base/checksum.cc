#include "src/base/checksum.h"

#include <array>
#include <cstring>

#include "src/base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ashlar {

uint64_t Checksum(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t PlaceSeed(std::span<const std::byte, 16> file_id, uint64_t offset) {
  std::array<std::byte, 24> buffer;
  std::memcpy(buffer.data(), file_id.data(), 16);
  StoreU64(buffer.data() + 16, offset);
  return XXH3_64bits_withSeed(buffer.data(), buffer.size(), 0);
}

uint64_t HashBytes(std::string_view bytes) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), 0); }

}  // namespace ashlar
