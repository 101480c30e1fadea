#include "format/packed_numbers.h"

#include <algorithm>

#include "src/base/check.h"

namespace ashlar::format {

void AppendPacked(std::span<const uint64_t> values, unsigned width, ByteBuffer* out) {
  ASHLAR_CHECK(width <= 64);
  if (width == 0) return;
  ByteWriter w(out);
  uint64_t word = 0;
  unsigned used = 0;  // bits of `word`, always below 64
  for (const uint64_t v : values) {
    ASHLAR_DCHECK(width == 64 || v >> width == 0);
    word |= v << used;
    if (used + width >= 64) {
      w.U64(word);
      word = used == 0 ? 0 : v >> (64 - used);
      if (used + width == 64) word = 0;
      used = used + width - 64;
    } else {
      used += width;
    }
  }
  if (used > 0) w.U64(word);
}

void NumberArrayWriter::Add(uint64_t value) {
  pending_[pending_count_++] = value;
  ++count_;
  if (pending_count_ == kNumbersPerBlock) EndBlock();
}

void NumberArrayWriter::EndBlock() {
  const size_t n = pending_count_;
  if (n == 0) return;
  const uint64_t first = pending_[0];
  const uint64_t rise = pending_[n - 1] - first;
  // A line through the ends suits numbers that grow; for others a flat line with wide differences is as good.
  const bool grows = pending_[n - 1] >= first && rise < uint64_t{1} << 47;
  const uint64_t slope = n > 1 && grows ? (rise << 16) / (n - 1) : 0;
  const auto above = [&](size_t j) { return static_cast<int64_t>(pending_[j] - first - NumberLine(slope, j)); };
  int64_t lowest = 0, highest = 0;
  for (size_t j = 0; j < n; ++j) {
    lowest = std::min(lowest, above(j));
    highest = std::max(highest, above(j));
  }
  const unsigned width = BitWidth(static_cast<uint64_t>(highest) - static_cast<uint64_t>(lowest));
  ByteWriter blocks(&blocks_);
  blocks.U64(first + static_cast<uint64_t>(lowest));
  blocks.U64(slope);
  blocks.U64(uint64_t{packed_.size()} << 8 | width);
  for (size_t j = 0; j < n; ++j) pending_[j] = static_cast<uint64_t>(above(j)) - static_cast<uint64_t>(lowest);
  AppendPacked(std::span(pending_).first(n), width, &packed_);
  pending_count_ = 0;
}

void NumberArrayWriter::Finish(ByteBuffer* out) {
  EndBlock();
  out->insert(out->end(), blocks_.begin(), blocks_.end());
  out->insert(out->end(), packed_.begin(), packed_.end());
}

}  // namespace ashlar::format
