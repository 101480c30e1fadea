// SplitMix64: seeded, repeatable numbers for salts in tests, the simulated disk, corpora and random tests.
#ifndef ASHLAR_SRC_BASE_PRNG_H_
#define ASHLAR_SRC_BASE_PRNG_H_

#include <cstdint>

namespace ashlar {

class Prng {
 public:
  explicit Prng(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n), n > 0.
  uint64_t Below(uint64_t n) { return Next() % n; }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace ashlar

#endif  // ASHLAR_SRC_BASE_PRNG_H_
