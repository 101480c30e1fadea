// The arithmetic of a score, and the collector.
#include "src/query/scorer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "src/base/prng.h"
#include "src/query/top_k.h"

namespace ashlar::query {
namespace {

TEST(ScorerTest, RoundsToNearestEven) {
  EXPECT_EQ(RoundToInt(0.5f), 0);
  EXPECT_EQ(RoundToInt(1.5f), 2);
  EXPECT_EQ(RoundToInt(2.5f), 2);
  EXPECT_EQ(RoundToInt(-2.5f), -2);
  EXPECT_EQ(RoundToInt(536870912.0f), 536870912);
  EXPECT_EQ(RoundToInt(2147483520.0f), 2147483520);
  Prng prng(5);
  for (int i = 0; i < 1000000; ++i) {
    const float x = std::ldexp(static_cast<float>(prng.Uniform()), static_cast<int>(prng.Below(31)));
    ASSERT_EQ(RoundToInt(x), std::lrintf(x)) << x;
  }
}

// Bits worked out by hand in exact arithmetic: W = 3, f = 2, K = 0.25 + 0.5 * 3 = 1.75, so 6 / 3.75 = 1.6 -> 2.
TEST(ScorerTest, AContributionByHand) {
  Norm norm;
  norm.a = 0.25f;
  norm.b = 0.5f;
  EXPECT_EQ(norm.K(3), 1.75f);
  EXPECT_EQ(Contribution(3.0f, 2, norm.K(3)), 2);
  EXPECT_EQ(Contribution(100.0f, 1, 0.0f), 100);
}

TEST(ScorerTest, NormIgnoresLengthWhereItHasNone) {
  const Norm without_b = MakeNorm(1.2, 0, 1000, 10);
  EXPECT_EQ(without_b.K(0), without_b.K(100000));
  const Norm without_lengths = MakeNorm(1.2, 0.75, 0, 10);
  EXPECT_EQ(without_lengths.K(7), static_cast<float>(1.2 * 0.25));
  const Norm usual = MakeNorm(1.2, 0.75, 500, 10);
  EXPECT_EQ(usual.b, static_cast<float>(1.2 * 0.75 / 50));
  EXPECT_NEAR(usual.K(50), 1.2f, 1e-6);
}

TEST(ScorerTest, IdfIsPositiveForEveryFrequency) {
  for (const uint64_t n : {1u, 2u, 1000u, 4000000u}) {
    EXPECT_GT(Idf(n, n), 0);
    EXPECT_GT(Idf(n, 1), 0);
    EXPECT_GE(Idf(n, 1), Idf(n, n));
  }
  EXPECT_EQ(Idf(10, 3), std::log(1 + 7.5 / 3.5));
}

// The weights together fill 29 bits whatever their size, so sums fit an int32 and keep their precision.
TEST(ScorerTest, ScaleFillsTwentyNineBits) {
  Prng prng(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> weights;
    for (uint64_t i = 1 + prng.Below(40); i > 0; --i) {
      weights.push_back(std::ldexp(0.5 + prng.Uniform(), static_cast<int>(prng.Below(60)) - 40));
    }
    std::vector<double> sorted = weights;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    double sum = 0;
    for (const double weight : sorted) sum += weight;
    const int scale = ScaleOf(weights);
    ASSERT_GE(std::ldexp(sum, scale), 268435456.0);
    ASSERT_LT(std::ldexp(sum, scale), 536870912.0);
    int64_t most = 0;
    for (const double weight : weights) most += Contribution(ScaledWeight(weight, scale), 1000000, 0.0f);
    ASSERT_LT(most, int64_t{1} << 30);
    std::reverse(weights.begin(), weights.end());
    ASSERT_EQ(ScaleOf(weights), scale);
  }
}

TEST(ScorerTest, ScoreIsExact) {
  EXPECT_EQ(ScoreOf(536870911, 28), 536870911.0 / 268435456.0);
  EXPECT_EQ(ScoreOf(3, -2), 12.0);
  EXPECT_EQ(ScoreOf(0, 1000), 0.0);
}

TEST(TopKTest, KeepsTheBestInOrder) {
  Prng prng(11);
  for (const uint64_t limit : {0u, 1u, 2u, 7u, 100u, 5000u}) {
    TopK top(limit);
    std::vector<std::pair<int64_t, uint32_t>> all;
    for (uint32_t i = 0; i < 2000; ++i) {
      const uint32_t order = prng.OneIn(50) ? 0xFFFFFFF0u - i : i;
      const auto score = static_cast<int32_t>(prng.Below(40));
      top.Offer(score, order);
      all.emplace_back(-score, order);
    }
    std::sort(all.begin(), all.end());
    const std::span<const uint64_t> keys = top.Take();
    ASSERT_EQ(keys.size(), std::min<uint64_t>(limit, 2000));
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(TopK::ScoreOf(keys[i]), -all[i].first);
      ASSERT_EQ(TopK::PutOrderOf(keys[i]), all[i].second);
    }
  }
}

}  // namespace
}  // namespace ashlar::query
