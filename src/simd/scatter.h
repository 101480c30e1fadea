// Windows, one posting at a time. Scalar on all levels: AVX-512's scatter was slower where it was measured.
#ifndef ASHLAR_SRC_SIMD_SCATTER_H_
#define ASHLAR_SRC_SIMD_SCATTER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/simd/kernels.h"

namespace ashlar::simd {

// All kWindow accumulators to 0. (The C library's memset is the best there is.)
template <class T>
inline void ClearWindow(T* accumulators) {
  std::memset(accumulators, 0, kWindow * sizeof(T));
}

// Adds contributions[i] to the document documents[i], which must be in [base, base + kWindow).
inline void Scatter(const uint32_t* documents, const int32_t* contributions, size_t n, uint32_t base,
                    int32_t* accumulators) {
  for (size_t i = 0; i < n; ++i) accumulators[documents[i] - base] += contributions[i];
}

// The same, staying at 65,535. T is uint8_t or uint16_t.
template <class T>
inline void Scatter(const uint32_t* documents, const T* contributions, size_t n, uint32_t base,
                    uint16_t* accumulators) {
  for (size_t i = 0; i < n; ++i) {
    uint16_t& at = accumulators[documents[i] - base];
    const uint32_t sum = uint32_t{at} + contributions[i];
    at = static_cast<uint16_t>(sum < 0xFFFF ? sum : 0xFFFF);
  }
}

// Sets the bits of documents in [base, base + kWindow).
inline void ScatterBits(const uint32_t* documents, size_t n, uint32_t base, uint64_t* bitmap) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t offset = documents[i] - base;
    bitmap[offset / 64] |= uint64_t{1} << (offset % 64);
  }
}

}  // namespace ashlar::simd

#endif  // ASHLAR_SRC_SIMD_SCATTER_H_
