#include "format/position_block.h"

#include <algorithm>

#include "format/packed_stream.h"

namespace ashlar::format {

bool AppendSteps(std::span<const uint32_t> frequencies, std::span<const uint32_t> positions,
                 std::vector<uint32_t>* steps) {
  const uint32_t* next = positions.data();
  size_t left = positions.size();
  for (const uint32_t count : frequencies) {
    if (count > left) return false;
    left -= count;
    uint32_t before = 0;
    for (const uint32_t* end = next + count; next != end; ++next) {
      if (*next < before) return false;
      steps->push_back(*next - before);
      before = *next;
    }
  }
  return left == 0;
}

bool SumSteps(std::span<const uint32_t> frequencies, std::span<uint32_t> steps) {
  size_t at = 0;
  for (const uint32_t count : frequencies) {
    if (count > steps.size() - at) return false;
    uint64_t position = 0;
    for (const size_t end = at + count; at < end; ++at) {
      position += steps[at];
      if (position > 0xFFFFFFFFu) return false;
      steps[at] = static_cast<uint32_t>(position);
    }
  }
  return true;
}

void AppendPositionBlock(std::span<const uint32_t> steps, ByteBuffer* out) {
  for (size_t at = 0; at < steps.size(); at += kStreamValuesMax) {
    AppendStream(steps.data() + at, std::min(kStreamValuesMax, steps.size() - at), out);
  }
}

}  // namespace ashlar::format
