#include "format/position_block.h"

#include <algorithm>

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

bool PositionBlockReader::Load(uint64_t stream) {
  if (stream == decoded_) return true;
  if (stream < next_stream_) {
    next_ = begin_;
    next_stream_ = 0;
  }
  decoded_ = UINT64_MAX;
  for (; next_stream_ < stream; ++next_stream_) {
    next_ = SkipStream(next_, end_, kStreamValuesMax);
    if (next_ == nullptr) return false;
  }
  const auto n = static_cast<size_t>(std::min<uint64_t>(kStreamValuesMax, count_ - stream * kStreamValuesMax));
  next_ = ReadStream(next_, end_, n, values_.data());
  if (next_ == nullptr) return false;
  ++next_stream_;
  decoded_ = stream;
  return true;
}

bool PositionBlockReader::EndsHere() {
  if (count_ == 0) return begin_ == end_;
  return Load((count_ - 1) / kStreamValuesMax) && next_ == end_;
}

bool PositionBlockReader::Read(uint64_t from, uint64_t n, std::vector<uint32_t>* out) {
  if (n > count_ || from > count_ - n) return false;
  while (n > 0) {
    if (!Load(from / kStreamValuesMax)) {
      next_ = begin_;  // so that a later call fails again instead of reading from null
      next_stream_ = 0;
      return false;
    }
    const uint64_t at = from % kStreamValuesMax;
    const uint64_t part = std::min(n, kStreamValuesMax - at);
    out->insert(out->end(), values_.begin() + static_cast<ptrdiff_t>(at),
                values_.begin() + static_cast<ptrdiff_t>(at + part));
    from += part;
    n -= part;
  }
  return true;
}

}  // namespace ashlar::format
