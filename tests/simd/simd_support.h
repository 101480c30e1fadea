// What the tests of kernels share: the levels of this machine, packed input with nothing but its slack behind it, and
// output that notices what is written beyond what the kernel may write.
#ifndef ASHLAR_TESTS_SIMD_SIMD_SUPPORT_H_
#define ASHLAR_TESTS_SIMD_SIMD_SUPPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/base/prng.h"
#include "src/simd/kernels.h"

namespace ashlar::simd {

// The AVX-512 level on plain functions: avx512_stand_in_level.cc.
extern const Kernels kAvx512StandIns;

inline std::vector<const Kernels*> AvailableLevels() {
  std::vector<const Kernels*> levels;
  for (const Level level : {Level::kScalar, Level::kAvx2, Level::kAvx512}) {
    if (const Kernels* kernels = KernelsFor(level)) levels.push_back(kernels);
  }
  return levels;
}

inline std::vector<const Kernels*> TestedKernels() {
  auto tested = AvailableLevels();
  tested.push_back(&kAvx512StandIns);
  return tested;
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
  Prng prng_{1};
};

inline std::string KernelsName(const testing::TestParamInfo<const Kernels*>& info) {
  return info.param == &kAvx512StandIns ? "avx512_stand_ins" : info.param->name;
}

#define ASHLAR_FOR_ALL_KERNELS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Levels, Suite, testing::ValuesIn(TestedKernels()), KernelsName)

inline size_t RoundUp(size_t n, size_t step) { return (n + step - 1) / step * step; }

// Of at most `width` bits; often all zeros or all ones.
inline uint32_t OfWidth(uint32_t width, Prng* prng) {
  if (width == 0) return 0;
  const auto mask = static_cast<uint32_t>((uint64_t{1} << width) - 1);
  switch (prng->Below(8)) {
    case 0:
      return 0;
    case 1:
      return mask;
    default:
      return static_cast<uint32_t>(prng->Next()) & mask;
  }
}

inline std::vector<uint32_t> RandomValues(size_t n, uint32_t width, Prng* prng) {
  std::vector<uint32_t> values(n);
  for (uint32_t& v : values) v = OfWidth(width, prng);
  return values;
}

// Values packed in natural order (P-3 by the letter), `offset` bytes after the begin of an allocation that ends with
// the slack. The slack and the unused bits of the last byte are noise.
class PackedBytes {
 public:
  PackedBytes(const std::vector<uint32_t>& values, uint32_t width, size_t offset, Prng* prng) : offset_(offset) {
    const size_t bits = values.size() * width;
    bytes_.resize(offset + (bits + 7) / 8 + kReadSlack);
    for (std::byte& b : bytes_) b = static_cast<std::byte>(prng->Next());
    for (size_t bit = 0; bit < bits; ++bit) {
      const auto one = static_cast<std::byte>(1u << (bit % 8));
      std::byte& b = bytes_[offset + bit / 8];
      b = (values[bit / width] >> (bit % width) & 1) != 0 ? b | one : b & ~one;
    }
  }
  const std::byte* data() const { return bytes_.data() + offset_; }

 private:
  size_t offset_;
  std::vector<std::byte> bytes_;
};

// Room for `size` elements, `offset` bytes after the begin of an allocation, with marks behind it.
template <class T>
class Output {
 public:
  explicit Output(size_t size, size_t offset = 0)
      : offset_(offset), size_(size), bytes_(offset + size * sizeof(T) + kMarks, kMark) {}
  T* data() { return reinterpret_cast<T*>(bytes_.data() + offset_); }
  std::vector<T> First(size_t n) const {
    std::vector<T> values(n);
    if (n != 0) std::memcpy(values.data(), bytes_.data() + offset_, n * sizeof(T));
    return values;
  }
  bool Intact() const {
    const auto is_mark = [](uint8_t b) { return b == kMark; };
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(offset_), is_mark) &&
           std::all_of(bytes_.end() - static_cast<ptrdiff_t>(kMarks), bytes_.end(), is_mark);
  }

 private:
  static constexpr size_t kMarks = 128;
  static constexpr uint8_t kMark = 0xA7;
  size_t offset_;
  size_t size_;
  std::vector<uint8_t> bytes_;
};

}  // namespace ashlar::simd

#endif  // ASHLAR_TESTS_SIMD_SIMD_SUPPORT_H_
