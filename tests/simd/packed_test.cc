// Packed numbers to numbers, documents and bytes: each level against what the layouts say, by the letter.
#include <cstdint>
#include <vector>

#include "tests/simd/simd_support.h"

namespace ashlar::simd {
namespace {

class PackedTest : public KernelsTest {};
ASHLAR_FOR_ALL_KERNELS(PackedTest);

size_t RowsOf(size_t n) { return (n + kLanes - 1) / kLanes; }

// Documents of gaps, one after the other, and the one after the last in 64 bits.
std::vector<uint32_t> DocumentsOf(const std::vector<uint32_t>& gaps, uint64_t first_possible, uint64_t* next) {
  std::vector<uint32_t> documents;
  *next = first_possible;
  for (const uint32_t gap : gaps) {
    *next += gap;
    documents.push_back(static_cast<uint32_t>(*next));
    ++*next;
  }
  return documents;
}

// Where value i of n lies in the lanes layout.
size_t PlaceInLanes(size_t i, size_t n) { return i % RowsOf(n) * kLanes + i / RowsOf(n); }

std::vector<uint32_t> ToLanes(const std::vector<uint32_t>& values) {
  std::vector<uint32_t> lanes(RowsOf(values.size()) * kLanes, 0);
  for (size_t i = 0; i < values.size(); ++i) lanes[PlaceInLanes(i, values.size())] = values[i];
  return lanes;
}

std::vector<uint32_t> FromLanes(const std::vector<uint32_t>& lanes, size_t n) {
  std::vector<uint32_t> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = lanes[PlaceInLanes(i, n)];
  return values;
}

uint64_t RandomFirst(Prng* prng) {
  switch (prng->Below(4)) {
    case 0:
      return 0;
    case 1:
      return uint64_t{1} << 32;  // after the highest document there is
    case 2:
      return prng->Below(1000);
    default:
      return prng->Next() >> 32;
  }
}

TEST_P(PackedTest, UnpackAllWidthsLengthsAndAlignments) {
  for (uint32_t width = 0; width <= 32; ++width) {
    for (size_t n = 0; n <= 200; ++n) {
      const auto values = RandomValues(n, width, &prng_);
      const size_t offset = (n + width) % 64;
      const PackedBytes packed(values, width, offset, &prng_);
      Output<uint32_t> out(RoundUp(n, 16), 4 * (n % 16));
      kernels().unpack(packed.data(), n, width, out.data());
      ASSERT_EQ(out.First(n), values) << "width " << width << " n " << n;
      kernels().unpack_plus_one(packed.data(), n, width, out.data());
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out.First(n)[i], values[i] + 1) << "width " << width << " n " << n;
      ASSERT_TRUE(out.Intact());
    }
  }
}

TEST_P(PackedTest, GapsOfAllWidthsAndLengths) {
  for (uint32_t width = 0; width <= 32; ++width) {
    for (size_t n = 1; n <= kBlock; ++n) {
      const auto gaps = RandomValues(n, width, &prng_);
      const PackedBytes packed(gaps, width, (3 * n + width) % 64, &prng_);
      const uint64_t first_possible = RandomFirst(&prng_);
      uint64_t next = 0;
      const auto expected = DocumentsOf(gaps, first_possible, &next);

      Output<uint32_t> documents(RoundUp(n, 16));
      ASSERT_EQ(kernels().unpack_gaps(packed.data(), n, width, first_possible, documents.data()), next);
      ASSERT_EQ(documents.First(n), expected) << "width " << width << " n " << n;
      ASSERT_TRUE(documents.Intact());

      Output<uint32_t> in_place(RoundUp(n, 16));
      std::copy(gaps.begin(), gaps.end(), in_place.data());
      ASSERT_EQ(kernels().prefix_sum(in_place.data(), n, width, first_possible), next);
      ASSERT_EQ(in_place.First(n), expected) << "width " << width << " n " << n;
      ASSERT_TRUE(in_place.Intact());
    }
  }
}

TEST_P(PackedTest, LanesOfAllWidthsAndLengths) {
  for (uint32_t width = 0; width <= 32; ++width) {
    for (size_t n = 1; n <= kBlock; ++n) {
      const auto gaps = RandomValues(n, width, &prng_);
      const auto lanes = ToLanes(gaps);
      const PackedBytes packed(lanes, width, (5 * n + width) % 64, &prng_);
      const uint64_t first_possible = RandomFirst(&prng_);
      uint64_t next = 0;
      const auto expected = DocumentsOf(gaps, first_possible, &next);

      Output<uint32_t> transposed(lanes.size());
      ASSERT_EQ(kernels().unpack_lanes(packed.data(), n, width, first_possible, transposed.data()), next);
      ASSERT_EQ(FromLanes(transposed.First(lanes.size()), n), expected) << "width " << width << " n " << n;
      ASSERT_TRUE(transposed.Intact());

      Output<uint32_t> ascending(lanes.size());
      ASSERT_EQ(kernels().unpack_lanes_ascending(packed.data(), n, width, first_possible, ascending.data()), next);
      ASSERT_EQ(ascending.First(n), expected) << "width " << width << " n " << n;
      ASSERT_TRUE(ascending.Intact());

      Output<uint32_t> in_place(lanes.size());
      std::copy(lanes.begin(), lanes.end(), in_place.data());
      ASSERT_EQ(kernels().prefix_sum_lanes(in_place.data(), n, first_possible), next);
      ASSERT_EQ(FromLanes(in_place.First(lanes.size()), n), expected) << "width " << width << " n " << n;
      ASSERT_TRUE(in_place.Intact());
    }
  }
}

TEST_P(PackedTest, WholeBlocksAtAllAlignments) {
  for (uint32_t width = 0; width <= 32; ++width) {
    const auto gaps = RandomValues(kBlock, width, &prng_);
    uint64_t next = 0;
    const auto expected = DocumentsOf(gaps, 77, &next);
    for (size_t offset = 0; offset < 64; ++offset) {
      const PackedBytes natural(gaps, width, offset, &prng_);
      Output<uint32_t> documents(kBlock, 4 * (offset % 16));
      ASSERT_EQ(kernels().unpack_gaps(natural.data(), kBlock, width, 77, documents.data()), next);
      ASSERT_EQ(documents.First(kBlock), expected) << "width " << width << " offset " << offset;
      const PackedBytes lanes(ToLanes(gaps), width, offset, &prng_);
      ASSERT_EQ(kernels().unpack_lanes_ascending(lanes.data(), kBlock, width, 77, documents.data()), next);
      ASSERT_EQ(documents.First(kBlock), expected) << "width " << width << " offset " << offset;
      ASSERT_TRUE(documents.Intact());
    }
  }
}

// Sums at and just beyond 2^32 are told apart, though the documents are the same modulo 2^32.
TEST_P(PackedTest, NextDocumentIsExact) {
  for (const uint32_t width : {24u, 25u, 26u, 31u, 32u}) {
    const auto most = static_cast<uint32_t>((uint64_t{1} << width) - 1);
    for (const size_t n : {1u, 7u, 16u, 100u, 127u, 128u}) {
      for (const uint64_t first_possible : {uint64_t{0}, uint64_t{1} << 31, uint64_t{0xFFFFFFFF}, uint64_t{1} << 32}) {
        const std::vector<uint32_t> gaps(n, most);
        uint64_t next = 0;
        const auto expected = DocumentsOf(gaps, first_possible, &next);
        Output<uint32_t> out(kBlock);
        const PackedBytes natural(gaps, width, 0, &prng_);
        EXPECT_EQ(kernels().unpack_gaps(natural.data(), n, width, first_possible, out.data()), next);
        EXPECT_EQ(out.First(n), expected);
        const PackedBytes lanes(ToLanes(gaps), width, 0, &prng_);
        EXPECT_EQ(kernels().unpack_lanes(lanes.data(), n, width, first_possible, out.data()), next);
        EXPECT_EQ(FromLanes(out.First(RowsOf(n) * kLanes), n), expected);
      }
    }
  }
}

// Patches: a few gaps get high bits between unpacking and adding up.
TEST_P(PackedTest, PatchedGaps) {
  for (int round = 0; round < 500; ++round) {
    const size_t n = 1 + prng_.Below(kBlock);
    const auto width = static_cast<uint32_t>(prng_.Below(20));
    auto gaps = RandomValues(n, width, &prng_);
    const PackedBytes packed(gaps, width, prng_.Below(64), &prng_);
    Output<uint32_t> documents(RoundUp(n, 16));
    kernels().unpack(packed.data(), n, width, documents.data());
    const auto high_width = static_cast<uint32_t>(width + prng_.Below(33 - width));
    for (uint64_t patches = prng_.Below(8); patches > 0; --patches) {
      const size_t at = prng_.Below(n);
      const uint32_t high = high_width == width ? 0 : OfWidth(high_width - width, &prng_) << width;
      gaps[at] |= high;
      documents.data()[at] |= high;
    }
    uint64_t next = 0;
    const auto expected = DocumentsOf(gaps, round, &next);
    ASSERT_EQ(kernels().prefix_sum(documents.data(), n, high_width, static_cast<uint64_t>(round)), next);
    ASSERT_EQ(documents.First(n), expected);
  }
}

TEST_P(PackedTest, BytesOfAllWidthsLengthsAndAlignments) {
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    for (size_t n = 0; n <= 300; ++n) {
      const auto values = RandomValues(n, width, &prng_);
      std::vector<uint8_t> bytes(n), plus_one(n);
      for (size_t i = 0; i < n; ++i) {
        bytes[i] = static_cast<uint8_t>(values[i]);
        plus_one[i] = static_cast<uint8_t>(values[i] == 255 ? 255 : values[i] + 1);
      }
      const PackedBytes packed(values, width, n % 64, &prng_);
      Output<uint8_t> out(RoundUp(n, 64), width);
      kernels().unpack_bytes(packed.data(), n, width, out.data());
      ASSERT_EQ(out.First(n), bytes) << "width " << width << " n " << n;
      kernels().unpack_bytes_plus_one(packed.data(), n, width, out.data());
      ASSERT_EQ(out.First(n), plus_one) << "width " << width << " n " << n;
      ASSERT_TRUE(out.Intact());
    }
  }
}

}  // namespace
}  // namespace ashlar::simd
