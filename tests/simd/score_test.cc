// Contributions and bounds: each level against the scorer of the query layer and the codes of the format.
#include <cstdint>
#include <vector>

#include "format/frontier.h"
#include "src/query/scorer.h"
#include "src/simd/score_math.h"
#include "tests/simd/simd_support.h"

namespace ashlar::simd {
namespace {

class ScoreTest : public KernelsTest {};
ASHLAR_FOR_ALL_KERNELS(ScoreTest);

constexpr size_t kLengthsMax = 300;  // of arrays

// Parameters as queries have them, and extreme ones.
Scoring RandomScoring(Prng* prng) {
  Scoring s;
  s.weight = static_cast<float>(std::ldexp(1 + prng->Uniform(), static_cast<int>(prng->Below(30))));
  const double k1 = prng->OneIn(8) ? 0 : prng->OneIn(8) ? 1000 : 3 * prng->Uniform();
  const double b = prng->OneIn(4) ? static_cast<double>(prng->Below(2)) : prng->Uniform();
  const query::Norm norm = query::MakeNorm(k1, b, 1 + prng->Below(1000), 1 + prng->Below(10));
  s.a = norm.a;
  s.b = norm.b;
  return s;
}

int32_t Expected(Scoring s, uint32_t frequency, uint32_t length) {
  return query::Contribution(s.weight, frequency, query::Norm{s.a, s.b}.K(length));
}

// Mostly small; sometimes up to the highest there is.
uint32_t RandomFrequency(Prng* prng) {
  switch (prng->Below(8)) {
    case 0:
      return 0x80000000u;
    case 1:
      return 1 + static_cast<uint32_t>(prng->Below(0x80000000u));
    default:
      return 1 + static_cast<uint32_t>(prng->Below(20));
  }
}

struct Postings {
  std::vector<uint32_t> frequencies;
  std::vector<uint8_t> small_frequencies;
  std::vector<uint32_t> documents;
  std::vector<uint16_t> lengths;  // by posting
  std::vector<uint16_t> column;   // by document, and one more to read
};

Postings RandomPostings(size_t n, uint16_t length_max, Prng* prng) {
  Postings p;
  p.column.resize(5001);
  for (auto& length : p.column) length = static_cast<uint16_t>(prng->Below(length_max + 1u));
  for (size_t i = 0; i < n; ++i) {
    p.frequencies.push_back(RandomFrequency(prng));
    p.small_frequencies.push_back(static_cast<uint8_t>(1 + prng->Below(255)));
    p.documents.push_back(static_cast<uint32_t>(prng->Below(5000)));
    p.lengths.push_back(p.column[p.documents[i]]);
  }
  // Padding that would be far outside the column.
  for (size_t i = n; i < RoundUp(n, 16); ++i) {
    p.frequencies.push_back(0);
    p.small_frequencies.push_back(0);
    p.documents.push_back(0xFFFFFFFFu);
    p.lengths.push_back(static_cast<uint16_t>(kLengthEscaped));
  }
  return p;
}

const std::byte* BytesOf(const std::vector<uint16_t>& v) { return reinterpret_cast<const std::byte*>(v.data()); }

TEST_P(ScoreTest, ContributionsAreTheScorers) {
  for (size_t n = 0; n <= kLengthsMax; ++n) {
    const Scoring s = RandomScoring(&prng_);
    const Postings p = RandomPostings(n, n % 2 == 0 ? 100 : 0xFFFE, &prng_);
    std::vector<int32_t> large(n), small(n);
    for (size_t i = 0; i < n; ++i) {
      large[i] = Expected(s, p.frequencies[i], p.lengths[i]);
      small[i] = Expected(s, p.small_frequencies[i], p.lengths[i]);
    }
    Output<int32_t> out(RoundUp(n, 16), 4 * (n % 16));
    EXPECT_FALSE(kernels().contributions_row_u32(p.frequencies.data(), BytesOf(p.lengths), n, s, out.data()));
    ASSERT_EQ(out.First(n), large) << n;
    EXPECT_FALSE(kernels().contributions_row_u8(p.small_frequencies.data(), BytesOf(p.lengths), n, s, out.data()));
    ASSERT_EQ(out.First(n), small) << n;
    EXPECT_FALSE(kernels().contributions_column_u32(p.frequencies.data(), BytesOf(p.column), p.documents.data(), n, s,
                                                    out.data()));
    ASSERT_EQ(out.First(n), large) << n;
    EXPECT_FALSE(kernels().contributions_column_u8(p.small_frequencies.data(), BytesOf(p.column), p.documents.data(), n,
                                                   s, out.data()));
    ASSERT_EQ(out.First(n), small) << n;
    ASSERT_TRUE(out.Intact());
  }
}

TEST_P(ScoreTest, ContributionsAtOneLength) {
  for (size_t n = 0; n <= kLengthsMax; ++n) {
    const Scoring s = RandomScoring(&prng_);
    const Postings p = RandomPostings(n, 0, &prng_);
    const auto length = static_cast<uint32_t>(1 + prng_.Below(1000));
    const float k = query::Norm{s.a, s.b}.K(length);
    std::vector<int32_t> large(n), small(n);
    for (size_t i = 0; i < n; ++i) {
      large[i] = Expected(s, p.frequencies[i], length);
      small[i] = Expected(s, p.small_frequencies[i], length);
    }
    Output<int32_t> out(RoundUp(n, 16), 4 * (n % 16));
    kernels().contributions_fixed_u32(p.frequencies.data(), n, s.weight, k, out.data());
    ASSERT_EQ(out.First(n), large) << n;
    kernels().contributions_fixed_u8(p.small_frequencies.data(), n, s.weight, k, out.data());
    ASSERT_EQ(out.First(n), small) << n;
    ASSERT_TRUE(out.Intact());
  }
}

TEST_P(ScoreTest, EveryEscapedLengthIsNoticed) {
  constexpr size_t kPostings = 75;
  const Scoring s{1000, 0.3f, 0.01f};
  for (size_t escaped = 0; escaped < kPostings; ++escaped) {
    Postings p = RandomPostings(kPostings, 100, &prng_);
    p.lengths[escaped] = static_cast<uint16_t>(kLengthEscaped);
    p.documents[escaped] = 4999;
    p.column[4999] = static_cast<uint16_t>(kLengthEscaped);
    Output<int32_t> out(RoundUp(kPostings, 16));
    EXPECT_TRUE(kernels().contributions_row_u32(p.frequencies.data(), BytesOf(p.lengths), kPostings, s, out.data()));
    EXPECT_TRUE(
        kernels().contributions_row_u8(p.small_frequencies.data(), BytesOf(p.lengths), kPostings, s, out.data()));
    EXPECT_TRUE(kernels().contributions_column_u32(p.frequencies.data(), BytesOf(p.column), p.documents.data(),
                                                   kPostings, s, out.data()));
    EXPECT_TRUE(kernels().contributions_column_u8(p.small_frequencies.data(), BytesOf(p.column), p.documents.data(),
                                                  kPostings, s, out.data()));
    EXPECT_EQ(out.First(kPostings)[escaped], Expected(s, p.small_frequencies[escaped], kLengthEscaped));
  }
}

TEST(ScoreMathTest, CodesAreTheFormats) {
  for (uint32_t code = 0; code <= 255; ++code) {
    EXPECT_EQ(LengthOfCode(code), static_cast<float>(format::LengthOfCode(static_cast<uint8_t>(code))));
    EXPECT_EQ(FrequencyOfCode(code), static_cast<float>(format::FrequencyOfCode(static_cast<uint8_t>(code))));
  }
}

// What score_math.h says a bound is, with the format's codes.
int32_t ExpectedBound(Scoring s, uint8_t frequency_code, uint8_t length_code) {
  const uint32_t frequency = format::FrequencyOfCode(frequency_code);
  if (frequency == 0) return 0;
  const auto f = static_cast<float>(frequency);
  const float k = query::Norm{s.a, s.b}.K(format::LengthOfCode(length_code));
  const int32_t c = query::Contribution(s.weight, frequency, k);
  const bool grows = f * (f + k) <= k * 2097152.0f;
  return grows ? c : c + c / 2097152 + 1;
}

TEST_P(ScoreTest, BoundsOfAllCodes) {
  // All pairs of codes, as 256 pairs of 256 entries, one pair at a time.
  std::vector<uint8_t> frequencies(256 + kReadSlack), lengths(256 + kReadSlack);
  for (size_t i = 0; i < 256; ++i) lengths[i] = static_cast<uint8_t>(i);
  std::vector<Scoring> scorings = {{1 << 28, 0, 0}, {1 << 28, 0, 0.01f}, {1 << 28, 1.2f, 0}, {1, 0.3f, 0.01f}};
  for (int i = 0; i < 8; ++i) scorings.push_back(RandomScoring(&prng_));
  for (const Scoring s : scorings) {
    for (size_t code = 0; code < 256; ++code) {
      std::fill_n(frequencies.begin(), 256, static_cast<uint8_t>(code));
      std::vector<int32_t> expected(256);
      for (size_t i = 0; i < 256; ++i) {
        expected[i] = ExpectedBound(s, static_cast<uint8_t>(code), static_cast<uint8_t>(i));
      }
      Output<int32_t> out(256);
      kernels().bounds(frequencies.data(), lengths.data(), 0, 1, 256, s, out.data());
      ASSERT_EQ(out.First(256), expected) << "frequency code " << code;
    }
  }
}

TEST_P(ScoreTest, BoundsAreTheHighestOfThePairs) {
  for (const size_t pairs : {1u, 2u, 4u, 8u, 16u}) {
    for (size_t n = 0; n <= 140; ++n) {
      const size_t stride = n + prng_.Below(3) * 20;
      const Scoring s = RandomScoring(&prng_);
      // The entries are the last ones before the slack.
      const size_t codes = (pairs - 1) * stride + n;
      std::vector<uint8_t> frequencies(codes + kReadSlack), lengths(codes + kReadSlack);
      for (auto& f : frequencies) f = static_cast<uint8_t>(prng_.OneIn(4) ? prng_.Next() : 1 + prng_.Below(12));
      for (auto& l : lengths) l = static_cast<uint8_t>(prng_.Next());
      std::vector<int32_t> expected(n, 0);
      for (size_t p = 0; p < pairs; ++p) {
        for (size_t i = 0; i < n; ++i) {
          expected[i] = std::max(expected[i], ExpectedBound(s, frequencies[p * stride + i], lengths[p * stride + i]));
        }
      }
      Output<int32_t> out(RoundUp(n, 16));
      kernels().bounds(frequencies.data(), lengths.data(), stride, pairs, n, s, out.data());
      ASSERT_EQ(out.First(n), expected) << "pairs " << pairs << " n " << n;
      ASSERT_TRUE(out.Intact());
    }
  }
}

// No posting contributes more than the bound of a pair that covers it, rounding included.
TEST(ScoreMathTest, BoundsBound) {
  Prng prng(7);
  uint64_t above_own = 0;  // where the pair's own contribution would not have been a bound
  for (int round = 0; round < 3000; ++round) {
    const float weight = static_cast<float>(std::ldexp(1 + prng.Uniform(), static_cast<int>(prng.Below(29))));
    const float k =
        prng.OneIn(4) ? 0 : static_cast<float>(std::ldexp(1 + prng.Uniform(), static_cast<int>(prng.Below(24)) - 16));
    int32_t highest = 0;
    for (uint32_t f = 1; f <= 3000; ++f) {
      const int32_t c = query::Contribution(weight, f, k);
      highest = std::max(highest, c);
      ASSERT_LE(highest, BoundOf(weight, static_cast<float>(f), k)) << "f " << f << " K " << k << " weight " << weight;
      above_own += highest > c ? 1 : 0;
    }
  }
  EXPECT_GT(above_own, 0u);  // so the slack is there for a reason
}

// Where nothing forces it, there is no slack: small frequencies with parameters that people use.
TEST(ScoreMathTest, UsualBoundsAreContributions) {
  for (const float k : {0.3f, 1.2f, 2.7f}) {
    for (uint32_t f = 1; f <= 500; ++f) {
      EXPECT_EQ(BoundOf(1 << 27, static_cast<float>(f), k), query::Contribution(1 << 27, f, k));
    }
  }
}

// Nothing below it contributes what is needed, ties with the threshold included; for weights as terms have them and low
// frequencies it is hardly ever lower than it could be.
TEST(ScoreMathTest, LeastFrequency) {
  Prng prng(17);
  int loose = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    const auto weight = static_cast<float>(1 + prng.Below(400'000'000));
    const float k = round % 50 == 0 ? 0 : static_cast<float>(0.1 + 40 * prng.Uniform());
    const auto frequency = static_cast<float>(1 + prng.Below(round % 2 == 0 ? 12 : 3000));
    const int64_t needed = Contribution(weight, frequency, k) + static_cast<int64_t>(prng.Below(3)) - 1;
    const uint32_t least = LeastFrequency(weight, k, needed);
    for (uint32_t f = 1; f < std::min(least, 5000u); ++f)
      ASSERT_LT(Contribution(weight, static_cast<float>(f), k), needed) << weight << " " << k << " " << f;
    if (least != kNoFrequency && weight > 1e7f && k > 0 && frequency <= 12)
      loose += BoundOf(weight, static_cast<float>(least), k) < needed ? 1 : 0;
  }
  EXPECT_LT(loose, kRounds / 100);
  EXPECT_EQ(LeastFrequency(1000, 1.5, 0), 1u);
  EXPECT_EQ(LeastFrequency(1000, 1.5, 1002), kNoFrequency);
}

}  // namespace
}  // namespace ashlar::simd
