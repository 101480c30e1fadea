// The contributions of a block's postings, by the kernels.
#ifndef ASHLAR_SRC_QUERY_BLOCK_CONTRIBUTIONS_H_
#define ASHLAR_SRC_QUERY_BLOCK_CONTRIBUTIONS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/query/scorer.h"
#include "src/simd/kernels.h"

namespace ashlar::query {

// Lengths that lie in one column of u16 (null: all are 0), as kernels read them.
template <class L>
concept HasLengthColumn = requires(const L& lengths) {
  { lengths.column() } -> std::same_as<const std::byte*>;
};

// What the postings of these documents contribute at this weight. All arrays are padded to 16 (src/simd/kernels.h). L
// is a source's lengths.
template <class L>
void BlockContributions(float weight, const Norm& norm, const L& lengths, const uint32_t* documents,
                        std::span<const uint32_t> frequencies, int32_t* out) {
  const simd::Kernels& kernels = simd::BestKernels();
  if (norm.b == 0) {
    kernels.contributions_fixed_u32(frequencies.data(), frequencies.size(), weight, norm.K(0), out);
    return;
  }
  if constexpr (HasLengthColumn<L>) {
    if constexpr (requires { lengths.Ensure(documents, frequencies.size()); })
      lengths.Ensure(documents, frequencies.size());
    const std::byte* const column = lengths.column();
    if (column == nullptr) {
      kernels.contributions_fixed_u32(frequencies.data(), frequencies.size(), weight, norm.K(0), out);
      return;
    }
    const bool escaped = kernels.contributions_column_u32(frequencies.data(), column, documents, frequencies.size(),
                                                          {weight, norm.a, norm.b}, out);
    if (!escaped) return;
  }
  for (size_t i = 0; i < frequencies.size(); ++i)
    out[i] = Contribution(weight, frequencies[i], norm.K(lengths[documents[i]]));
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_BLOCK_CONTRIBUTIONS_H_
