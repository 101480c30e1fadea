// Positions of a block, read from anywhere (SPEC P-11).
#include "src/segment/block_positions.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "format/bit_pack.h"
#include "format/position_block.h"
#include "gtest/gtest.h"
#include "src/base/prng.h"

namespace ashlar::segment {
namespace {

struct Block {
  std::vector<uint32_t> totals, steps;
  ByteBuffer bytes;  // with room after them
  size_t size = 0;
};

// Postings with up to `most` positions each.
Block RandomBlock(size_t postings, uint64_t most, Prng* prng) {
  Block block;
  for (size_t i = 0; i < postings; ++i) {
    block.totals.push_back(1 + static_cast<uint32_t>(prng->Below(most)));
    for (uint32_t j = 0; j < block.totals.back(); ++j)
      block.steps.push_back(static_cast<uint32_t>(prng->Below(uint64_t{1} << prng->Below(12))));
  }
  format::AppendPositionBlock(block.steps, &block.bytes);
  block.size = block.bytes.size();
  for (size_t i = 0; i < format::kPackedSlack; ++i) block.bytes.push_back(static_cast<std::byte>(prng->Next()));
  return block;
}

TEST(BlockPositionsTest, PostingsInAnyOrder) {
  Prng prng(11);
  for (const size_t postings : {1, 2, 7, 8, 9, 100, 128}) {
    for (const uint64_t most : {1, 3, 40, 200}) {
      const Block block = RandomBlock(postings, most, &prng);
      BlockPositions reader;
      reader.Open(block.bytes.data(), block.bytes.data() + block.size, block.totals.data(),
                  static_cast<uint32_t>(postings));
      for (int i = 0; i < 200; ++i) {
        const auto posting = static_cast<uint32_t>(prng.Below(postings));
        const uint32_t total = block.totals[posting];
        const auto first =
            std::accumulate(block.totals.begin(), block.totals.begin() + static_cast<ptrdiff_t>(posting), size_t{0});
        const uint32_t skip = static_cast<uint32_t>(prng.Below(total));
        const uint32_t n = static_cast<uint32_t>(prng.Below(total - skip + 1));
        std::vector<uint32_t> expected(n), got = {7};
        std::partial_sum(block.steps.begin() + static_cast<ptrdiff_t>(first + skip),
                         block.steps.begin() + static_cast<ptrdiff_t>(first + skip + n), expected.begin());
        expected.insert(expected.begin(), 7);
        ASSERT_TRUE(reader.Append(posting, skip, n, &got));
        ASSERT_EQ(got, expected);
        const auto steps = reader.Steps(posting, total);
        ASSERT_EQ(steps.empty(), total > 128);
        ASSERT_TRUE(steps.empty() ||
                    std::equal(steps.begin(), steps.end(), block.steps.begin() + static_cast<ptrdiff_t>(first)));
      }
      EXPECT_TRUE(reader.EndsHere());
    }
  }
}

TEST(BlockPositionsTest, WhatIsNotThere) {
  Prng prng(12);
  const Block block = RandomBlock(100, 5, &prng);
  const uint32_t last = block.totals[99];
  BlockPositions reader;
  std::vector<uint32_t> out;
  reader.Open(block.bytes.data(), block.bytes.data() + block.size, block.totals.data(), 100);
  EXPECT_FALSE(reader.Append(99, last, 1, &out));
  EXPECT_FALSE(reader.Append(0, UINT64_MAX, 2, &out));
  EXPECT_TRUE(reader.Steps(99, last + 1).empty());
  reader.Open(block.bytes.data(), block.bytes.data() + block.size - 1, block.totals.data(), 100);
  EXPECT_FALSE(reader.Append(99, 0, last, &out));
  EXPECT_FALSE(reader.Append(99, 0, last, &out));  // again
  EXPECT_FALSE(reader.EndsHere());
  const std::vector<uint32_t> far = {0xFFFFFFFFu, 1}, two = {2};
  ByteBuffer bytes;
  format::AppendPositionBlock(far, &bytes);
  const size_t size = bytes.size();
  bytes.resize(size + format::kPackedSlack);
  reader.Open(bytes.data(), bytes.data() + size, two.data(), 1);
  EXPECT_FALSE(reader.Append(0, 0, 2, &out));  // beyond 32 bits
  EXPECT_TRUE(reader.Append(0, 0, 1, &out));
}

}  // namespace
}  // namespace ashlar::segment
