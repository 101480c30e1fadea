// Checksums are XXH3 whatever code computes them.
#include "src/base/checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/base/prng.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ashlar {
namespace {

TEST(Checksum, IsXxh3AtAllLengthsAndPlaces) {
  Prng prng(3);
  std::vector<std::byte> bytes(9000);
  for (auto& b : bytes) b = static_cast<std::byte>(prng.Next());
  for (size_t n = 0; n < 1200; ++n) {
    const size_t at = n % 67;
    const uint64_t seed = n % 3 == 0 ? 0 : prng.Next();
    ASSERT_EQ(Checksum(std::span(bytes).subspan(at, n), seed), XXH3_64bits_withSeed(bytes.data() + at, n, seed)) << n;
  }
  for (const size_t n : {4096u, 4097u, 8191u, 8192u})
    ASSERT_EQ(Checksum(std::span(bytes).subspan(1, n), 5), XXH3_64bits_withSeed(bytes.data() + 1, n, 5)) << n;
}

// What a file says must stay what it says.
TEST(Checksum, IsWhatItWas) {
  const std::vector<std::byte> zeros(4096);
  EXPECT_EQ(Checksum({}, 0), 0x2D06800538D394C2u);
  EXPECT_EQ(Checksum(zeros, 0), XXH3_64bits(zeros.data(), zeros.size()));
}

}  // namespace
}  // namespace ashlar
