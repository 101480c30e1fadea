#include "src/base/checksum.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include "src/base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ashlar {

#ifdef ASHLAR_HAS_CHECKSUM_AVX2
uint64_t ChecksumAvx2(const void* bytes, size_t n, uint64_t seed);  // checksum_avx2.cc
#endif

namespace {

uint64_t ChecksumPlain(const void* bytes, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(bytes, n, seed); }

using ChecksumFunction = uint64_t (*)(const void* bytes, size_t n, uint64_t seed);
// ASHLAR_SIMD lowers this as it does the kernels (src/simd/kernels.h), so that counts of instructions do not depend on
// the machine.
ChecksumFunction Choose() {
#ifdef ASHLAR_HAS_CHECKSUM_AVX2
  const char* const wish = std::getenv("ASHLAR_SIMD");
  const bool is_plain = wish != nullptr && std::string_view(wish) == "scalar";
  if (!is_plain && __builtin_cpu_supports("avx2")) return ChecksumAvx2;
#endif
  return ChecksumPlain;
}

}  // namespace

uint64_t Checksum(std::span<const std::byte> bytes, uint64_t seed) {
  static const ChecksumFunction checksum = Choose();
  return checksum(bytes.data(), bytes.size(), seed);
}

uint64_t PlaceSeed(std::span<const std::byte, 16> file_id, uint64_t offset) {
  std::array<std::byte, 24> buffer;
  std::memcpy(buffer.data(), file_id.data(), 16);
  StoreU64(buffer.data() + 16, offset);
  return XXH3_64bits_withSeed(buffer.data(), buffer.size(), 0);
}

uint64_t HashBytes(std::string_view bytes) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), 0); }

}  // namespace ashlar
