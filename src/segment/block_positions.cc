#include "src/segment/block_positions.h"

#include <algorithm>

#include "src/segment/unpacking.h"

namespace ashlar::segment {

void BlockPositions::Open(const std::byte* in, const std::byte* end, const uint32_t* totals, uint32_t n) {
  begin_ = next_ = in;
  end_ = end;
  next_stream_ = 0;
  decoded_ = UINT64_MAX;
  totals_ = totals;
  count_ = 0;
  for (uint32_t i = 0; i < n; i += kStride) {
    first_steps_[i / kStride] = count_;
    uint64_t sum = 0;
    const uint32_t end_of_stride = std::min(i + kStride, n);
    for (uint32_t j = i; j < end_of_stride; ++j) sum += totals[j];
    count_ += sum;
  }
}

uint64_t BlockPositions::FirstStep(uint32_t posting) const {
  uint64_t first = first_steps_[posting / kStride];
  for (uint32_t i = posting - posting % kStride; i < posting; ++i) first += totals_[i];
  return first;
}

bool BlockPositions::Load(uint64_t stream) {
  if (stream == decoded_) return true;
  if (stream < next_stream_) {
    next_ = begin_;
    next_stream_ = 0;
  }
  decoded_ = UINT64_MAX;
  const std::byte* next = next_;
  for (; next_stream_ < stream && next != nullptr; ++next_stream_) {
    next = format::SkipStream(next, end_, format::kStreamValuesMax);
  }
  const auto n =
      static_cast<size_t>(std::min<uint64_t>(format::kStreamValuesMax, count_ - stream * format::kStreamValuesMax));
  if (next != nullptr) next = format::ReadStream(next, end_, n, values_.data(), kUnpacking);
  if (next == nullptr) {  // so that a later call fails again
    next_ = begin_;
    next_stream_ = 0;
    return false;
  }
  next_ = next;
  ++next_stream_;
  decoded_ = stream;
  return true;
}

bool BlockPositions::Append(uint32_t posting, uint64_t skip, uint32_t n, std::vector<uint32_t>* out) {
  if (n == 0) return true;
  uint64_t from = FirstStep(posting) + skip;
  // A stream takes a byte at least, so that no count makes room for what the bytes can't hold.
  const auto bytes = static_cast<uint64_t>(end_ - begin_);
  if (n > count_ || from > count_ - n || (n - uint64_t{1}) / format::kStreamValuesMax > bytes) return false;
  const size_t old = out->size();
  out->resize(old + n);
  uint32_t* to = out->data() + old;
  uint64_t position = 0;
  for (uint32_t left = n; left > 0;) {
    if (!Load(from / format::kStreamValuesMax)) return false;
    const uint64_t at = from % format::kStreamValuesMax;
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(left, format::kStreamValuesMax - at));
    const uint32_t* step = values_.data() + at;
    for (const uint32_t* const end = step + part; step != end; ++step) {
      position += *step;
      *to++ = static_cast<uint32_t>(position);
    }
    from += part;
    left -= part;
  }
  return position <= UINT32_MAX;
}

std::span<const uint32_t> BlockPositions::Steps(uint32_t posting, uint32_t n) {
  const uint64_t from = FirstStep(posting);
  if (n > format::kStreamValuesMax || n > count_ || from > count_ - n) return {};
  const uint64_t stream = from / format::kStreamValuesMax;
  const size_t at = from % format::kStreamValuesMax;
  if (!Load(stream)) return {};
  if (at + n <= format::kStreamValuesMax) return std::span(values_).subspan(at, n);
  const size_t part = format::kStreamValuesMax - at;
  std::copy_n(values_.begin() + static_cast<ptrdiff_t>(at), part, joined_.begin());
  if (!Load(stream + 1)) return {};
  std::copy_n(values_.begin(), n - part, joined_.begin() + static_cast<ptrdiff_t>(part));
  return std::span(joined_).first(n);
}

bool BlockPositions::EndsHere() {
  if (count_ == 0) return begin_ == end_;
  return Load((count_ - 1) / format::kStreamValuesMax) && next_ == end_;
}

}  // namespace ashlar::segment
