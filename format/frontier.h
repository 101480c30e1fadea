// Frontiers (SPEC P-7): the (frequency, length) pairs of a block that no other pair of it beats, from which the most that
// any posting of the block can contribute is computed at query time, whatever the statistics and parameters.
//
// A scorer that grows with the frequency and falls with the length takes its maximum over a block on such a pair. Pairs are
// codes of 8 bits: a frequency's is rounded up, a length's down, so that a bound may only rise.
#ifndef ASHLAR_FORMAT_FRONTIER_H_
#define ASHLAR_FORMAT_FRONTIER_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ashlar::format {

// What version 1 writes at most; a reader takes 1, 2, 4, 8 and 16.
struct PairLimits {
  size_t block;
  size_t group;  // of 32 blocks
};
inline constexpr PairLimits kBlockListPairs{4, 8};
inline constexpr PairLimits kWindowListPairs{8, 16};  // frequent terms: their lists are walked by their bounds alone
inline constexpr size_t kPairsMax = 16;

// Codes (SPEC P-6): 0 to 63 stand for themselves; above, four bits follow the leading one.
inline constexpr uint32_t kExactCodes = 64;
inline constexpr uint32_t kCodeMax = 255;

inline constexpr uint32_t CodeValue(uint32_t code) {
  if (code < kExactCodes) return code;
  return (16 + (code - kExactCodes) % 16) << (2 + (code - kExactCodes) / 16);
}

// The largest code whose value is not above `length`.
inline constexpr uint8_t LengthCode(uint32_t length) {
  if (length < kExactCodes) return static_cast<uint8_t>(length);
  const auto exponent = static_cast<uint32_t>(std::bit_width(length)) - 1;
  const uint32_t code = kExactCodes + (exponent - 6) * 16 + ((length >> (exponent - 4)) & 15);
  return static_cast<uint8_t>(code < kCodeMax ? code : kCodeMax);
}
inline constexpr uint32_t LengthOfCode(uint8_t code) { return CodeValue(code); }

// The smallest code whose value is not below `frequency`; code 255 stands for 2^32 - 1.
inline constexpr uint8_t FrequencyCode(uint32_t frequency) {
  const uint8_t below = LengthCode(frequency);
  if (below == kCodeMax || CodeValue(below) == frequency) return below;
  return static_cast<uint8_t>(below + 1);
}
inline constexpr uint32_t FrequencyOfCode(uint8_t code) { return code == kCodeMax ? 0xFFFFFFFFu : CodeValue(code); }

// Pairs of codes in falling order of frequency, so also of length.
struct Frontier {
  struct Pair {
    uint8_t frequency = 0;
    uint8_t length = 0;
    bool operator==(const Pair&) const = default;
  };
  size_t count = 0;
  std::array<Pair, 256> pairs;
};

// Gathers a block's (or many blocks') pairs.
class FrontierTable {
 public:
  FrontierTable() { shortest_.fill(kNone); }
  void Add(uint8_t frequency_code, uint8_t length_code) {
    uint16_t& shortest = shortest_[frequency_code];
    if (length_code < shortest) shortest = length_code;
    if (frequency_code > highest_) highest_ = frequency_code;
  }
  void Add(const Frontier& frontier) {
    for (size_t i = 0; i < frontier.count; ++i) Add(frontier.pairs[i].frequency, frontier.pairs[i].length);
  }
  // The frontier of what was added since the last Take.
  void Take(Frontier* out);

 private:
  static constexpr uint16_t kNone = 256;
  std::array<uint16_t, 256> shortest_;  // by frequency code
  uint32_t highest_ = 0;
};

// K of the default scorer (k1 1.2, b 0.75) by length code, with which frontiers are reduced.
class ReductionScale {
 public:
  explicit ReductionScale(double average_length);
  // f / (f + K): what a pair's contribution is in proportion to.
  double Score(Frontier::Pair pair) const {
    const double f = FrequencyOfCode(pair.frequency);
    return f / (f + k_[pair.length]);
  }

 private:
  std::array<double, 256> k_;
};

// Merges neighbours, (f1, l1) and (f2, l2) with f1 > f2 into (f1, l2), until at most `pairs_max` are left: first those that
// leave the best score where it is, among them the merge that adds least.
void ReduceFrontier(const ReductionScale& scale, size_t pairs_max, Frontier* frontier);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_FRONTIER_H_
