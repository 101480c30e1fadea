#include "format/frontier.h"

#include <algorithm>

namespace ashlar::format {

void FrontierTable::Take(Frontier* out) {
  out->count = 0;
  uint16_t shortest = kNone;
  for (uint32_t f = highest_ + 1; f-- > 0;) {
    if (shortest_[f] < shortest) {
      shortest = shortest_[f];
      out->pairs[out->count++] = {static_cast<uint8_t>(f), static_cast<uint8_t>(shortest)};
    }
    shortest_[f] = kNone;
  }
  highest_ = 0;
}

ReductionScale::ReductionScale(double average_length) {
  constexpr double kK1 = 1.2, kB = 0.75;
  const double average = average_length > 0 ? average_length : 1;
  for (uint32_t code = 0; code <= kCodeMax; ++code) {
    k_[code] = kK1 * (1 - kB + kB * LengthOfCode(static_cast<uint8_t>(code)) / average);
  }
}

void ReduceFrontier(const ReductionScale& scale, size_t pairs_max, Frontier* frontier) {
  if (frontier->count <= pairs_max) return;
  constexpr double kRise = 100;  // a merge that lifts the best score comes after every one that does not
  auto& pairs = frontier->pairs;
  std::array<double, 256> score;
  double best = 0;
  for (size_t i = 0; i < frontier->count; ++i) {
    score[i] = scale.Score(pairs[i]);
    best = std::max(best, score[i]);
  }
  while (frontier->count > pairs_max) {
    size_t cheapest = 0;
    double cheapest_cost = 2 * kRise;
    for (size_t i = 0; i + 1 < frontier->count; ++i) {
      const double merged = scale.Score({pairs[i].frequency, pairs[i + 1].length});
      const double cost = kRise * std::max(0.0, merged - best) + merged - std::max(score[i], score[i + 1]);
      if (cost < cheapest_cost) {
        cheapest = i;
        cheapest_cost = cost;
      }
    }
    pairs[cheapest].length = pairs[cheapest + 1].length;
    score[cheapest] = scale.Score(pairs[cheapest]);
    best = std::max(best, score[cheapest]);
    for (size_t i = cheapest + 1; i + 1 < frontier->count; ++i) {
      pairs[i] = pairs[i + 1];
      score[i] = score[i + 1];
    }
    --frontier->count;
  }
}

}  // namespace ashlar::format
