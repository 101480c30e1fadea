// Lengths by ordinal (SPEC K-6): 16 bits each; longer ones are escaped to a sorted list behind.
#ifndef ASHLAR_FORMAT_LENGTHS_H_
#define ASHLAR_FORMAT_LENGTHS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr uint16_t kLengthEscape = 0xFFFF;   // look among the exceptions
inline constexpr size_t kLengthExceptionBytes = 8;  // u32 ordinal, u32 length

ByteBuffer EncodeLengths(std::span<const uint32_t> lengths);

struct LengthsView {
  const std::byte* codes = nullptr;       // u16 an ordinal
  const std::byte* exceptions = nullptr;  // ascending by ordinal
  uint32_t exception_count = 0;
};
// Nullopt if `section` can't hold the lengths of `documents` documents. The view points into it.
std::optional<LengthsView> DecodeLengths(ByteSpan section, uint32_t documents);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_LENGTHS_H_
