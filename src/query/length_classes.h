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
  std::array<uint16_t, simd::kLengthClasses - 1> limits{};
  std::array<uint8_t, simd::kWindow> of{};  // by document, as simd::Kernels::classify gives them

  // No document of the class is shorter.
  uint8_t LeastCode(size_t length_class) const {
    return length_class == 0 ? uint8_t{0} : format::LengthCode(limits[length_class - 1]);
  }

  // Limits that cut the lengths of these documents into parts. False if they do not differ.
  bool Choose(const std::byte* column, uint32_t documents) {
    constexpr uint32_t kSampled = 64;
    constexpr std::array<size_t, simd::kLengthClasses - 1> kPlaces = {kSampled / 6, kSampled * 2 / 5,
                                                                      kSampled * 7 / 10};
    std::array<uint16_t, kSampled> sample;
    for (uint32_t i = 0; i < kSampled; ++i) sample[i] = LoadU16(column + 2 * (uint64_t{documents} * i / kSampled));
    std::sort(sample.begin(), sample.end());
    for (size_t i = 0; i < limits.size(); ++i) limits[i] = sample[kPlaces[i]];
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
    simd::BestKernels().classify(lengths, simd::kWindow, limits.data(), of.data());
  }
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_LENGTH_CLASSES_H_
