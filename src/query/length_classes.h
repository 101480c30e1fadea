// Length classes: the documents of a window by length, so that the bound of a posting need not be that of the shortest
// document of all. Any limits give right bounds; good ones give tight ones.
#ifndef ASHLAR_SRC_QUERY_LENGTH_CLASSES_H_
#define ASHLAR_SRC_QUERY_LENGTH_CLASSES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/frontier.h"
#include "src/base/bytes.h"
#include "src/simd/kernels.h"

namespace ashlar::query {

struct LengthClasses {
  uint16_t floor = 0, scale = 0;  // as simd::Kernels::classify takes them
  std::array<uint8_t, simd::kLengthClasses>
      least_codes{};                        // no document of the class is shorter than that of this code
  std::array<uint8_t, simd::kWindow> of{};  // by document, as simd::Kernels::classify gives them

  // Classes that cut the lengths of these documents into parts. False if they do not differ.
  bool Choose(const std::byte* column, uint32_t documents) {
    constexpr uint32_t kSampled = 64;
    constexpr size_t kLongPlace = kSampled * 9 / 10;  // longer documents are one class
    std::array<uint16_t, kSampled> sample;
    for (uint32_t i = 0; i < kSampled; ++i) sample[i] = LoadU16(column + 2 * (uint64_t{documents} * i / kSampled));
    std::sort(sample.begin(), sample.end());
    floor = sample.front();
    const uint32_t range = std::max<uint32_t>(sample[kLongPlace] - floor, 1);
    scale = static_cast<uint16_t>(std::min<uint32_t>((simd::kLengthClasses << 16) / range, 0xFFFF));
    for (uint32_t c = 1; c < simd::kLengthClasses; ++c) {
      // The least length with (length - floor) scale >= c 2^16.
      const uint32_t least = floor + ((c << 16) + scale - 1) / scale;
      least_codes[c] = format::LengthCode(std::min<uint32_t>(least, 0xFFFF));
    }
    return sample.front() != sample.back();
  }

  // Of the documents [begin, begin + n) of a column.
  void Classify(const std::byte* column, uint32_t begin, size_t n) {
    const std::byte* lengths = column + size_t{2} * begin;
    std::array<std::byte, 2 * simd::kWindow> last;
    if (n < simd::kWindow) {  // behind it there may be nothing
      std::memcpy(last.data(), lengths, 2 * n);
      std::memset(last.data() + 2 * n, 0, last.size() - 2 * n);
      lengths = last.data();
    }
    simd::BestKernels().classify(lengths, simd::kWindow, floor, scale, of.data());
  }
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_LENGTH_CLASSES_H_
