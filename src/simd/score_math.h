// Contributions and bounds, one at a time: what the scalar level computes and what the others compute many at once.
#ifndef ASHLAR_SRC_SIMD_SCORE_MATH_H_
#define ASHLAR_SRC_SIMD_SCORE_MATH_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "src/simd/kernels.h"

namespace ashlar::simd {

// Rounds to nearest even like lrintf, without a call: |x| must be below 2^31.
inline int32_t RoundToInt(float x) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: the sum's low bits are the integer
  return static_cast<int32_t>(std::bit_cast<uint64_t>(static_cast<double>(x) + kShift));
}

inline int32_t Contribution(float weight, float frequency, float k) {
  return RoundToInt(weight * frequency / (frequency + k));
}

inline float KOf(Scoring scoring, float length) { return scoring.a + scoring.b * length; }

// --- codes (SPEC P-6) ---

inline constexpr uint32_t kExactCodes = 64;
inline constexpr uint32_t kCodeMax = 255;
// A code from 64 on is a float less its lowest 19 bits of mantissa: (16 + m) 2^(2 + e) = (1 + m / 16) 2^(6 + e), where
// the code is 64 + 16 e + m. So shifting it to its place and adding the bias of the exponent gives the float.
inline constexpr uint32_t kCodeShift = 19;
inline constexpr uint32_t kCodeBias = (127u + 6u - 4u) << 23;
inline constexpr float kFrequencyOfLastCode = 4294967296.0f;  // 2^32 - 1, as a float

constexpr float LengthOfCode(uint32_t code) {
  const auto exact = static_cast<float>(code);
  const auto coarse = std::bit_cast<float>((code << kCodeShift) + kCodeBias);
  return code < kExactCodes ? exact : coarse;
}

constexpr float FrequencyOfCode(uint32_t code) { return code == kCodeMax ? kFrequencyOfLastCode : LengthOfCode(code); }

// --- bounds ---
//
// A posting (f, l) is covered by a pair (F, L) with F >= f and L <= l, and contributes no more before any rounding.
// With the rounding:
// - In K, and so in the length, the computed contribution is monotone, because every rounded operation is.
// - In f it is not: numerator and denominator both grow, and each rounds on its own. The three roundings (product, sum,
//   quotient) move a result by at most 3u each way, u = 2^-24, so the pair may come out lower by a factor of 1 - 6u.
//   From f to f + 1 the exact value grows by a factor of 1 + K / (f (f + 1 + K)). As long as that is more than 1 + 6u
//   for all f below F, the computed one grows too, and the pair's own contribution is a bound. It is if
//   F (F + K) <= 2^21 K, which makes the growth 8u at least.
// - Otherwise the bound is c + c / 2^21 + 1: 8u for the roundings, and 1 for rounding to an integer.
// With K about 1 that starts at frequencies of about 1,400; with K = 0 (k1 = 0) at 1: (3 W) / 3 may be less than W.
// Adding the slack always would cost more: a bound that equals the threshold lets a block be skipped, and where many
// documents tie, that is most of the blocks.
inline constexpr float kGrowthLimit = 2097152.0f;  // 2^21
inline constexpr int kSlackShift = 21;

// A frequency of 0 (the block has none of what is asked for) is bounded by 0.
inline int32_t BoundOf(float weight, float frequency, float k) {
  const float sum = frequency + k;
  const int32_t c = RoundToInt(weight * frequency / sum);
  const int32_t slack = frequency * sum <= k * kGrowthLimit ? 0 : (c >> kSlackShift) + 1;
  return frequency == 0 ? 0 : c + slack;
}

// No frequency below this one contributes `needed`; kNoFrequency: none at all does. Solves w f / (f + k) >= needed for
// f, from below by more than roundings make. A contribution that is just below what is needed is not rare, for that is
// where a threshold comes from: there it is looked at exactly.
inline constexpr uint32_t kNoFrequency = 0xFFFFFFFFu;
inline uint32_t LeastFrequency(float weight, float k, int64_t needed) {
  constexpr double kRoundedUp = 1 + 1.0 / (1 << 20);
  constexpr double kJustBelow = 1e-3;
  constexpr double kMost = 0x80000000u;  // SPEC P-5
  if (needed <= 1) return 1;
  const double share = static_cast<double>(needed - 1) / (double{weight} * kRoundedUp);
  if (share >= 1) return kNoFrequency;
  const double at_least = std::clamp(share * double{k} / (1 - share), 1.0, kMost);
  auto frequency = static_cast<uint32_t>(at_least);
  frequency += frequency < at_least ? 1 : 0;
  if (frequency - at_least < kJustBelow && BoundOf(weight, static_cast<float>(frequency), k) < needed) ++frequency;
  return frequency;
}

}  // namespace ashlar::simd

#endif  // ASHLAR_SRC_SIMD_SCORE_MATH_H_
