// Searching, filtering, and the choice of a level.
#include <cstdint>
#include <vector>

#include "tests/simd/simd_support.h"

namespace ashlar::simd {
namespace {

class SearchTest : public KernelsTest {};
ASHLAR_FOR_ALL_KERNELS(SearchTest);

// In an allocation of its own size, so that a sanitizer sees any look beyond it.
std::vector<uint32_t> Ascending(size_t n, uint64_t step, Prng* prng) {
  std::vector<uint32_t> values(n);
  uint64_t last = prng->Below(2) == 0 ? 0 : (uint64_t{1} << 31) - n;  // around where a sign would change
  for (auto& v : values) {
    v = static_cast<uint32_t>(last += prng->Below(step));
  }
  return values;
}

size_t FirstNotBelow(const std::vector<uint32_t>& values, uint32_t target) {
  size_t i = 0;
  while (i < values.size() && values[i] < target) ++i;
  return i;
}

TEST_P(SearchTest, LowerBound) {
  for (size_t n = 0; n <= 300; ++n) {
    for (const uint64_t step : {1u, 2u, 1000u}) {  // 1: all the same
      const auto values = Ascending(n, step, &prng_);
      std::vector<uint32_t> targets = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
      for (const uint32_t v : values) targets.insert(targets.end(), {v - 1, v, v + 1});
      for (const uint32_t target : targets) {
        ASSERT_EQ(kernels().lower_bound(values.data(), n, target), FirstNotBelow(values, target))
            << "n " << n << " target " << target;
      }
    }
  }
}

TEST_P(SearchTest, Find) {
  for (size_t n = 1; n <= kBlock; ++n) {
    for (const uint64_t step : {1u, 3u, 1000u, 1u << 24}) {
      // What stands in the padding is not found, though it is looked for.
      std::vector<uint32_t> values(RoundUp(n, 8), 7);
      uint32_t last = prng_.Below(2) == 0 ? 0 : 0x7FFFFFFF - 100;
      for (size_t i = 0; i < n; ++i) values[i] = last += 8 + static_cast<uint32_t>(prng_.Below(step));
      std::vector<uint32_t> targets = {7, 0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
      for (size_t i = 0; i < n; ++i) targets.insert(targets.end(), {values[i] - 1, values[i], values[i] + 1});
      for (size_t i = n; i < values.size(); ++i) targets.push_back(values[i] = values[n - 1] + 2);
      std::vector<uint32_t> expected, expected_places;
      for (size_t i = 0; i < targets.size(); ++i) {
        for (size_t at = 0; at < n; ++at) {
          if (values[at] != targets[i]) continue;
          expected.push_back(static_cast<uint32_t>(i));
          expected_places.push_back(static_cast<uint32_t>(at));
        }
      }
      for (const size_t m : {targets.size(), size_t{0}, size_t{1}, prng_.Below(targets.size())}) {
        Output<uint32_t> found(m, 4), places(m, 4);
        const size_t k = kernels().find(values.data(), n, targets.data(), m, found.data(), places.data());
        const auto end = std::lower_bound(expected.begin(), expected.end(), m);
        ASSERT_EQ(k, static_cast<size_t>(end - expected.begin())) << "n " << n << " m " << m;
        ASSERT_EQ(found.First(k), std::vector<uint32_t>(expected.begin(), end));
        ASSERT_EQ(places.First(k),
                  std::vector<uint32_t>(expected_places.begin(), expected_places.begin() + static_cast<ptrdiff_t>(k)));
        ASSERT_TRUE(found.Intact() && places.Intact());
      }
    }
  }
}

TEST_P(SearchTest, FirstAtLeastAndMaximum) {
  for (size_t n = 0; n <= 200; ++n) {
    std::vector<int32_t> values(n);
    for (auto& v : values) v = static_cast<int32_t>(prng_.Next());
    int32_t highest = INT32_MIN;
    for (const int32_t v : values) highest = std::max(highest, v);
    ASSERT_EQ(kernels().maximum(values.data(), n), highest);

    std::vector<int32_t> limits = {INT32_MIN, -1, 0, 1, INT32_MAX, highest};
    for (int i = 0; i < 10 && n > 0; ++i) limits.push_back(values[prng_.Below(n)]);
    for (const int32_t limit : limits) {
      size_t expected = 0;
      while (expected < n && values[expected] < limit) ++expected;
      ASSERT_EQ(kernels().first_at_least(values.data(), n, limit), expected) << "n " << n << " limit " << limit;
    }
    // The only one that reaches the limit is found wherever it is.
    for (size_t at = 0; at < n; ++at) {
      std::vector<int32_t> low(n, 4);
      low[at] = 5;
      ASSERT_EQ(kernels().first_at_least(low.data(), n, 5), at);
      ASSERT_EQ(kernels().maximum(low.data(), n), 5);
    }
  }
}

TEST_P(SearchTest, KeepAtLeast) {
  const int32_t kSums[][2] = {{0, 0},
                              {10, 50},
                              {-20, 30},
                              {INT32_MAX, INT32_MAX},
                              {INT32_MIN, INT32_MAX},
                              {INT32_MAX, INT32_MIN},
                              {INT32_MIN, INT32_MIN},
                              {1, INT32_MIN},
                              {0, INT32_MAX}};
  for (size_t n = 0; n <= 200; ++n) {
    for (const auto& [more, limit] : kSums) {
      Output<uint32_t> documents(RoundUp(n, 16), 4);
      Output<int32_t> scores(RoundUp(n, 16), 8);
      std::vector<uint32_t> expected_documents;
      std::vector<int32_t> expected_scores;
      for (size_t i = 0; i < n; ++i) {
        const int32_t near = static_cast<int32_t>(prng_.Below(100));
        const int32_t score = prng_.OneIn(4) ? static_cast<int32_t>(prng_.Next()) : prng_.OneIn(9) ? INT32_MAX : near;
        documents.data()[i] = static_cast<uint32_t>(prng_.Next());
        scores.data()[i] = score;
        if (int64_t{score} + more < limit) continue;
        expected_documents.push_back(documents.data()[i]);
        expected_scores.push_back(score);
      }
      const size_t kept = kernels().keep_at_least(documents.data(), scores.data(), n, more, limit);
      ASSERT_EQ(kept, expected_documents.size()) << "n " << n << " more " << more << " limit " << limit;
      ASSERT_EQ(documents.First(kept), expected_documents);
      ASSERT_EQ(scores.First(kept), expected_scores);
      ASSERT_TRUE(documents.Intact() && scores.Intact());
    }
  }
}

TEST_P(SearchTest, TakeFrequent) {
  for (size_t n = 0; n <= 200; ++n) {
    for (const uint32_t limit : {1u, 2u, 3u, 9u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
      Output<uint32_t> documents(RoundUp(n, 16)), frequencies(RoundUp(n, 16));
      std::vector<uint32_t> expected, expected_frequencies;
      for (size_t i = 0; i < RoundUp(n, 16); ++i) {
        documents.data()[i] = static_cast<uint32_t>(prng_.Next());
        const uint32_t around = limit - static_cast<uint32_t>(prng_.Below(2));
        frequencies.data()[i] = prng_.Below(3) == 0 ? around : static_cast<uint32_t>(1 + prng_.Below(4));
        if (i >= n || frequencies.data()[i] < limit) continue;
        expected.push_back(documents.data()[i]);
        expected_frequencies.push_back(frequencies.data()[i]);
      }
      Output<uint32_t> taken(RoundUp(n, 16)), taken_frequencies(RoundUp(n, 16));
      const size_t k = kernels().take_frequent(documents.data(), frequencies.data(), n, limit, taken.data(),
                                               taken_frequencies.data());
      ASSERT_EQ(k, expected.size()) << "n " << n << " limit " << limit;
      ASSERT_EQ(taken.First(k), expected);
      ASSERT_EQ(taken_frequencies.First(k), expected_frequencies);
      ASSERT_TRUE(taken.Intact() && taken_frequencies.Intact());
    }
  }
}

TEST(LevelTest, TheWishIsAnUpperLimit) {
  const auto levels = AvailableLevels();
  ASSERT_FALSE(levels.empty());
  const Level best = levels.back()->level;
  EXPECT_EQ(ChooseKernels(nullptr).level, best);
  EXPECT_EQ(ChooseKernels("neon").level, best);
  EXPECT_EQ(ChooseKernels("avx512").level, best);
  EXPECT_EQ(ChooseKernels("scalar").level, Level::kScalar);
  EXPECT_EQ(ChooseKernels("avx2").level, std::min(best, Level::kAvx2));
}

TEST(LevelTest, TablesAreWhatTheySay) {
  ASSERT_NE(KernelsFor(Level::kScalar), nullptr);
  for (const Level level : {Level::kScalar, Level::kAvx2, Level::kAvx512}) {
    if (const Kernels* kernels = KernelsFor(level)) EXPECT_EQ(kernels->level, level);
  }
  EXPECT_EQ(&BestKernels(), &BestKernels());
}

}  // namespace
}  // namespace ashlar::simd
