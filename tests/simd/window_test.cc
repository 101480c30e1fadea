// Windows of 4,096 documents: adding, scanning, bitmaps; each level against loops over documents.
#include <bit>
#include <cstdint>
#include <vector>

#include "src/simd/scatter.h"
#include "tests/simd/simd_support.h"

namespace ashlar::simd {
namespace {

class WindowTest : public KernelsTest {
 protected:
  // Accumulators, some of which are close to the end of their range.
  std::vector<uint16_t> RandomAccumulators() {
    std::vector<uint16_t> accumulators(kWindow);
    for (auto& a : accumulators)
      a = static_cast<uint16_t>(prng_.OneIn(3) ? 0xFFFF - prng_.Below(300) : prng_.Below(1000));
    return accumulators;
  }
  // Entries beyond 2^width are noise.
  std::vector<uint8_t> RandomTable() {
    std::vector<uint8_t> table(kTableBytes);
    for (auto& t : table) t = static_cast<uint8_t>(prng_.Next());
    return table;
  }
  std::vector<uint64_t> RandomBitmap(uint64_t one_in) {
    std::vector<uint64_t> bitmap(kWindowWords, 0);
    for (size_t d = 0; d < kWindow; ++d) bitmap[d / 64] |= uint64_t{prng_.OneIn(one_in)} << (d % 64);
    return bitmap;
  }
};
ASHLAR_FOR_ALL_KERNELS(WindowTest);

uint16_t Saturated(uint32_t sum) { return static_cast<uint16_t>(std::min<uint32_t>(sum, 0xFFFF)); }

TEST_P(WindowTest, AddColumn) {
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    for (size_t offset = 0; offset < 64; offset += 7) {
      const auto values = RandomValues(kWindow, width, &prng_);
      const auto table = RandomTable();
      const auto before = RandomAccumulators();
      auto expected = before;
      for (size_t d = 0; d < kWindow; ++d) expected[d] = Saturated(uint32_t{before[d]} + table[values[d]]);
      const PackedBytes column(values, width, offset, &prng_);
      Output<uint16_t> accumulators(kWindow, offset / 2 * 2);
      std::copy(before.begin(), before.end(), accumulators.data());
      kernels().add_column(column.data(), width, table.data(), accumulators.data());
      ASSERT_EQ(accumulators.First(kWindow), expected) << "width " << width;
      ASSERT_TRUE(accumulators.Intact());
    }
  }
}

TEST_P(WindowTest, AddBitmap) {
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    for (const uint64_t one_in : {1u, 2u, 3u, 10u, 300u, 1000000u}) {
      const auto bitmap = RandomBitmap(one_in);
      std::vector<uint32_t> documents;
      for (uint32_t d = 0; d < kWindow; ++d) {
        if ((bitmap[d / 64] >> (d % 64) & 1) != 0) documents.push_back(d);
      }
      const auto values = RandomValues(documents.size(), width, &prng_);
      const auto table = RandomTable();
      const auto before = RandomAccumulators();
      auto expected = before;
      for (size_t i = 0; i < documents.size(); ++i) {
        expected[documents[i]] = Saturated(uint32_t{before[documents[i]]} + table[values[i]]);
      }
      const PackedBytes packed(values, width, width, &prng_);
      std::vector<std::byte> bytes(1 + 8 * kWindowWords);  // at an odd place
      std::memcpy(bytes.data() + 1, bitmap.data(), 8 * kWindowWords);
      Output<uint16_t> accumulators(kWindow);
      std::copy(before.begin(), before.end(), accumulators.data());
      kernels().add_bitmap(bytes.data() + 1, packed.data(), width, table.data(), accumulators.data());
      ASSERT_EQ(accumulators.First(kWindow), expected) << "width " << width << " one in " << one_in;
      ASSERT_TRUE(accumulators.Intact());
    }
  }
}

TEST_P(WindowTest, AddClassed) {
  std::vector<uint8_t> classes(kWindow);
  for (auto& c : classes) c = static_cast<uint8_t>(2 * prng_.Below(kLengthClasses));
  for (uint32_t width = 0; width <= kClassedWidthMax; ++width) {
    for (const uint64_t one_in : {1u, 2u, 3u, 10u, 300u, 1000000u}) {
      const auto bitmap = RandomBitmap(one_in);
      const auto column_values = RandomValues(kWindow, width, &prng_);
      std::vector<uint32_t> documents;
      for (uint32_t d = 0; d < kWindow; ++d)
        if ((bitmap[d / 64] >> (d % 64) & 1) != 0) documents.push_back(d);
      const auto values = RandomValues(documents.size(), width, &prng_);
      const auto table = RandomTable();
      const auto before = RandomAccumulators();
      auto by_column = before, by_bitmap = before;
      for (size_t d = 0; d < kWindow; ++d)
        by_column[d] = Saturated(uint32_t{before[d]} + table[(classes[d] >> width << width) + column_values[d]]);
      for (size_t i = 0; i < documents.size(); ++i) {
        const uint32_t d = documents[i];
        by_bitmap[d] = Saturated(uint32_t{before[d]} + table[(classes[d] >> width << width) + values[i]]);
      }
      const PackedBytes column(column_values, width, one_in % 7, &prng_), packed(values, width, width, &prng_);
      Output<uint16_t> accumulators(kWindow);
      std::copy(before.begin(), before.end(), accumulators.data());
      kernels().add_classed_column(column.data(), width, classes.data(), table.data(), accumulators.data());
      ASSERT_EQ(accumulators.First(kWindow), by_column) << "width " << width;
      ASSERT_TRUE(accumulators.Intact());
      std::vector<std::byte> bytes(1 + 8 * kWindowWords);  // at an odd place
      std::memcpy(bytes.data() + 1, bitmap.data(), 8 * kWindowWords);
      std::copy(before.begin(), before.end(), accumulators.data());
      kernels().add_classed_bitmap(bytes.data() + 1, packed.data(), width, classes.data(), table.data(),
                                   accumulators.data());
      ASSERT_EQ(accumulators.First(kWindow), by_bitmap) << "width " << width << " one in " << one_in;
      ASSERT_TRUE(accumulators.Intact());
    }
  }
}

TEST_P(WindowTest, Classify) {
  for (const size_t n : {0u, 1u, 31u, 64u, 100u, 4096u}) {
    for (int round = 0; round < 4; ++round) {
      const auto floor = static_cast<uint16_t>(round == 3 ? 0xFFFF - prng_.Below(3) : prng_.Below(300));
      const auto scale = static_cast<uint16_t>(round == 2 ? 0xFFFF : prng_.Below(0x10000));
      std::vector<std::byte> lengths(2 * ((n + 63) / 64 * 64));
      std::vector<uint8_t> expected(n);
      for (size_t i = 0; i < n; ++i) {
        const auto length = static_cast<uint16_t>(prng_.OneIn(10) ? 0xFFFF - prng_.Below(3) : prng_.Below(320));
        std::memcpy(&lengths[2 * i], &length, 2);
        const uint64_t above = length > floor ? length - floor : 0;
        expected[i] = static_cast<uint8_t>(2 * std::min<uint64_t>(above * scale / 65536, kLengthClasses - 1));
      }
      Output<uint8_t> classes((n + 63) / 64 * 64);
      kernels().classify(lengths.data(), n, floor, scale, classes.data());
      ASSERT_EQ(classes.First(n), expected);
      ASSERT_TRUE(classes.Intact());
    }
  }
}

TEST_P(WindowTest, TakePresent) {
  for (const uint64_t one_in : {1u, 2u, 5u, 100u, 100000u}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<uint8_t> values(kBlock, 0);
      std::vector<uint32_t> documents, present;
      const auto first = static_cast<uint32_t>(prng_.Next());
      for (uint32_t i = 0; i < kBlock; ++i) {
        if (!prng_.OneIn(one_in)) continue;
        values[i] = static_cast<uint8_t>(1 + prng_.Below(255));
        documents.push_back(first + i);
        present.push_back(values[i]);
      }
      Output<uint32_t> got_documents(kBlock), got(kBlock, 4);
      ASSERT_EQ(kernels().take_present(values.data(), first, got_documents.data(), got.data()), present.size());
      ASSERT_EQ(got_documents.First(present.size()), documents);
      ASSERT_EQ(got.First(present.size()), present);
      ASSERT_TRUE(got_documents.Intact() && got.Intact());
    }
  }
}

TEST_P(WindowTest, LookUp) {
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    for (const uint64_t one_in : {1u, 2u, 10u, 300u}) {
      const auto bitmap = RandomBitmap(one_in);
      std::vector<uint16_t> ranks;
      std::vector<uint32_t> in_bitmap(kWindow, 0);
      std::vector<uint32_t> values;
      for (uint32_t d = 0; d < kWindow; ++d) {
        if (d % kBlock == 0) ranks.push_back(static_cast<uint16_t>(values.size()));
        if ((bitmap[d / 64] >> (d % 64) & 1) == 0) continue;
        values.push_back(RandomValues(1, width, &prng_)[0]);
        in_bitmap[d] = values.back() + 1;
      }
      ranks.push_back(static_cast<uint16_t>(values.size()));
      const auto column_values = RandomValues(kWindow, width, &prng_);
      const PackedBytes column(column_values, width, one_in % 7, &prng_), packed(values, width, width, &prng_);
      std::vector<std::byte> bytes(1 + 8 * kWindowWords);  // at an odd place
      std::memcpy(bytes.data() + 1, bitmap.data(), 8 * kWindowWords);

      std::vector<uint32_t> documents, expected_column, expected_bitmap;
      const auto base = static_cast<uint32_t>(kWindow * prng_.Below(1000));
      for (uint32_t d = 0; d < kWindow; d += 1 + static_cast<uint32_t>(prng_.Below(20))) {
        documents.push_back(base + d);
        expected_column.push_back(column_values[d]);
        expected_bitmap.push_back(in_bitmap[d]);
      }
      Output<uint32_t> found(documents.size());
      kernels().look_up_column(column.data(), width, documents.data(), documents.size(), found.data());
      ASSERT_EQ(found.First(documents.size()), expected_column) << "width " << width;
      kernels().look_up_bitmap(bytes.data() + 1, ranks.data(), packed.data(), width, documents.data(), documents.size(),
                               found.data());
      ASSERT_EQ(found.First(documents.size()), expected_bitmap) << "width " << width << " one in " << one_in;
      ASSERT_TRUE(found.Intact());

      // Bits beyond the last rank count as not set: there is no value for them.
      ranks.back() = static_cast<uint16_t>(values.size() / 2);
      kernels().look_up_bitmap(bytes.data() + 1, ranks.data(), packed.data(), width, documents.data(), documents.size(),
                               found.data());
      for (size_t i = 0; i < documents.size(); ++i) {
        const uint32_t d = documents[i] - base;
        const auto rank = static_cast<size_t>(
            std::count_if(in_bitmap.begin(), in_bitmap.begin() + d, [](uint32_t v) { return v != 0; }));
        ASSERT_EQ(found.First(documents.size())[i], rank < ranks.back() ? expected_bitmap[i] : 0);
      }
    }
  }
}

TEST_P(WindowTest, Scan16) {
  for (const uint32_t limit : {0u, 1u, 700u, 999u, 1000u, 0x7FFFu, 0x8000u, 0xFFF0u, 0xFFFFu}) {
    for (const bool rare : {false, true}) {
      auto accumulators = rare ? std::vector<uint16_t>(kWindow, 0) : RandomAccumulators();
      for (int i = 0; i < 3; ++i) accumulators[prng_.Below(kWindow)] = static_cast<uint16_t>(limit);
      std::vector<uint16_t> expected;
      for (size_t d = 0; d < kWindow; ++d) {
        if (accumulators[d] >= limit) expected.push_back(static_cast<uint16_t>(d));
      }
      Output<uint16_t> offsets(kWindow, 2);
      ASSERT_EQ(kernels().scan_16(accumulators.data(), static_cast<uint16_t>(limit), offsets.data()), expected.size());
      ASSERT_EQ(offsets.First(expected.size()), expected) << "limit " << limit;
      ASSERT_TRUE(offsets.Intact());
    }
  }
}

TEST_P(WindowTest, EachAccumulatorIsFound) {
  std::vector<uint16_t> small(kWindow, 0);
  std::vector<int32_t> large(kWindow, 0);
  std::vector<uint16_t> offsets(kWindow);
  std::vector<int32_t> scores(kWindow);
  for (size_t d = 0; d < kWindow; ++d) {
    small[d] = 9;
    large[d] = 9;
    ASSERT_EQ(kernels().scan_16(small.data(), 9, offsets.data()), 1u);
    ASSERT_EQ(offsets[0], d);
    ASSERT_EQ(kernels().scan_32(large.data(), 9, offsets.data(), scores.data()), 1u);
    ASSERT_EQ(offsets[0], d);
    ASSERT_EQ(scores[0], 9);
    small[d] = 8;
    large[d] = 8;
  }
}

TEST_P(WindowTest, Scan32AndTake32) {
  for (const int32_t limit : {INT32_MIN, -5, 0, 1, 500, 1 << 29, INT32_MAX}) {
    for (const uint64_t one_in : {1u, 4u, 500u}) {
      std::vector<int32_t> accumulators(kWindow, 0);
      for (auto& a : accumulators) {
        if (prng_.OneIn(one_in)) a = prng_.OneIn(5) ? limit : static_cast<int32_t>(prng_.Next());
      }
      std::vector<uint16_t> expected;
      std::vector<int32_t> expected_scores;
      for (size_t d = 0; d < kWindow; ++d) {
        if (accumulators[d] < limit) continue;
        expected.push_back(static_cast<uint16_t>(d));
        expected_scores.push_back(accumulators[d]);
      }
      Output<int32_t> window(kWindow);
      std::copy(accumulators.begin(), accumulators.end(), window.data());
      for (const bool take : {false, true}) {
        Output<uint16_t> offsets(kWindow);
        Output<int32_t> scores(kWindow);
        const auto scan = take ? kernels().take_32(window.data(), limit, offsets.data(), scores.data())
                               : kernels().scan_32(window.data(), limit, offsets.data(), scores.data());
        ASSERT_EQ(scan, expected.size()) << "limit " << limit;
        ASSERT_EQ(offsets.First(scan), expected) << "limit " << limit;
        ASSERT_EQ(scores.First(scan), expected_scores) << "limit " << limit;
        ASSERT_TRUE(offsets.Intact() && scores.Intact() && window.Intact());
        ASSERT_EQ(window.First(kWindow), take ? std::vector<int32_t>(kWindow, 0) : accumulators);
      }
    }
  }
}

TEST_P(WindowTest, Bitmaps) {
  for (uint32_t width = 0; width <= kByteWidthMax; ++width) {
    const auto before = RandomBitmap(20), more = RandomBitmap(10);
    auto values = RandomValues(kWindow, width, &prng_);
    for (auto& v : values) v *= prng_.OneIn(3) ? 1u : 0u;
    auto expected = before;
    size_t count = 0;
    for (size_t d = 0; d < kWindow; ++d) {
      expected[d / 64] |= more[d / 64] & uint64_t{1} << (d % 64);
      expected[d / 64] |= uint64_t{values[d] != 0} << (d % 64);
      count += expected[d / 64] >> (d % 64) & 1;
    }
    const PackedBytes column(values, width, 3, &prng_);
    std::vector<std::byte> bytes(3 + 8 * kWindowWords);
    std::memcpy(bytes.data() + 3, more.data(), 8 * kWindowWords);
    Output<uint64_t> bitmap(kWindowWords);
    std::copy(before.begin(), before.end(), bitmap.data());
    kernels().or_column(column.data(), width, bitmap.data());
    kernels().or_bitmap(bytes.data() + 3, bitmap.data());
    ASSERT_EQ(bitmap.First(kWindowWords), expected) << "width " << width;
    ASSERT_EQ(kernels().count_bitmap(bitmap.data()), count);
    ASSERT_TRUE(bitmap.Intact());
  }
  EXPECT_EQ(kernels().count_bitmap(std::vector<uint64_t>(kWindowWords, ~uint64_t{0}).data()), kWindow);
  EXPECT_EQ(kernels().count_bitmap(std::vector<uint64_t>(kWindowWords, 0).data()), 0u);
}

TEST(ScatterTest, AddsToEachDocument) {
  Prng prng(3);
  constexpr uint32_t kBase = 8192;
  std::vector<uint32_t> documents;
  std::vector<int32_t> contributions;
  std::vector<uint8_t> bytes;
  std::vector<uint16_t> halves;
  for (uint32_t d = 0; d < kWindow; d += 1 + static_cast<uint32_t>(prng.Below(5))) {
    documents.push_back(kBase + d);
    contributions.push_back(static_cast<int32_t>(prng.Below(1 << 29)));
    bytes.push_back(static_cast<uint8_t>(prng.Next()));
    halves.push_back(static_cast<uint16_t>(prng.Next()));
  }
  std::vector<int32_t> sums(kWindow, -1), expected_sums(kWindow, 0);
  std::vector<uint16_t> sums16(kWindow, 1), expected16(kWindow, 0);
  std::vector<uint64_t> bitmap(kWindowWords, 1), expected_bits(kWindowWords, 0);
  ClearWindow(sums.data());
  ClearWindow(sums16.data());
  std::fill(bitmap.begin(), bitmap.end(), 0);
  for (int round = 0; round < 3; ++round) {
    Scatter(documents.data(), contributions.data(), documents.size(), kBase, sums.data());
    Scatter(documents.data(), bytes.data(), documents.size(), kBase, sums16.data());
    Scatter(documents.data(), halves.data(), documents.size(), kBase, sums16.data());
    for (size_t i = 0; i < documents.size(); ++i) {
      const uint32_t d = documents[i] - kBase;
      expected_sums[d] += contributions[i];
      expected16[d] = Saturated(uint32_t{expected16[d]} + bytes[i] + halves[i]);
    }
  }
  ScatterBits(documents.data(), documents.size(), kBase, bitmap.data());
  for (const uint32_t d : documents) expected_bits[(d - kBase) / 64] |= uint64_t{1} << (d % 64);
  EXPECT_EQ(sums, expected_sums);
  EXPECT_EQ(sums16, expected16);
  EXPECT_EQ(bitmap, expected_bits);
}

}  // namespace
}  // namespace ashlar::simd
