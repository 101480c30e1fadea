// Scorer: BM25 in integers, so that sums have no order and no traversal ever re-scores.
//
//   contribution = int32(round to nearest even, (W f) / (f + K))     every operation in binary32, each rounded once
//   K = A + B length,  A = float(k1 (1 - b)),  B = float(k1 b / average)
//   W = float(weight 2^s),  weight = idf (k1 + 1) boost  in binary64
//   idf = ln(1 + (N - df + 0.5) / (df + 0.5)),  N and df of live documents
//   S = the weights added in descending order = m 2^e, m in [0.5, 1);  s = 29 - e
//   score = sum of contributions 2^-s, exact in binary64
//
// B is 0 where b is 0, and where no live document has a length (the key field). The sum of a document's contributions
// is at most about 2^29 + one per term, so it fits an int32. Needs -ffp-contract=off and the default rounding mode.
// Scalar code and SIMD code that follow these lines give the same bits.
#ifndef ASHLAR_SRC_QUERY_SCORER_H_
#define ASHLAR_SRC_QUERY_SCORER_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

namespace ashlar::query {

// Length normalisation of one index.
struct Norm {
  float a = 0;
  float b = 0;
  float K(uint32_t length) const { return a + b * static_cast<float>(length); }
};

inline Norm MakeNorm(double k1, double b, uint64_t length_sum, uint64_t live_documents) {
  Norm norm;
  norm.a = static_cast<float>(k1 * (1 - b));
  if (b == 0 || length_sum == 0) return norm;
  const double average = static_cast<double>(length_sum) / static_cast<double>(live_documents);
  norm.b = static_cast<float>(k1 * b / average);
  return norm;
}

inline double Idf(uint64_t live_documents, uint64_t frequency) {
  const auto n = static_cast<double>(live_documents);
  const auto df = static_cast<double>(frequency);
  return std::log(1 + (n - df + 0.5) / (df + 0.5));
}

inline double Weight(double idf, double k1, double boost) { return idf * (k1 + 1) * boost; }

// s, from the weights of all terms that score.
// Sorts them.
inline int ScaleOf(std::span<double> weights) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  double sum = 0;
  for (const double weight : weights) sum += weight;
  int exponent = 0;
  std::frexp(sum, &exponent);
  return 29 - exponent;
}

inline float ScaledWeight(double weight, int scale) { return static_cast<float>(std::ldexp(weight, scale)); }

// Rounds to nearest even like lrintf, without a call: |x| must be below 2^31.
inline int32_t RoundToInt(float x) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: the sum's low bits are the integer
  return static_cast<int32_t>(std::bit_cast<uint64_t>(static_cast<double>(x) + kShift));
}

inline int32_t Contribution(float weight, uint32_t frequency, float k) {
  const auto f = static_cast<float>(frequency);
  return RoundToInt(weight * f / (f + k));
}

inline double ScoreOf(int32_t sum, int scale) { return std::ldexp(static_cast<double>(sum), -scale); }

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_SCORER_H_
