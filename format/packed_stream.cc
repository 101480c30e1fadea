#include "format/packed_stream.h"

#include <array>
#include <cstring>

#include "src/base/check.h"

namespace ashlar::format {
namespace {

constexpr uint8_t kPatched = 0x80;

struct Widths {
  uint32_t low = 0;
  uint32_t high = 0;  // 0: no patches
  size_t patches = 0;
};

size_t StreamBytes(size_t n, const Widths& w) {
  const size_t patch_bytes = w.patches == 0 ? 0 : 2 + w.patches + PackedBytes(w.patches, w.high);
  return 1 + PackedBytes(n, w.low) + patch_bytes;
}

// The widths that take the fewest bytes; of equals the one with fewer patches, which decodes faster.
Widths BestWidths(const uint32_t* values, size_t n) {
  std::array<uint8_t, 33> of_width{};
  for (size_t i = 0; i < n; ++i) ++of_width[WidthOf(values[i])];
  uint32_t widest = 32;
  while (widest > 0 && of_width[widest] == 0) --widest;
  Widths best{widest, 0, 0};
  size_t best_bytes = StreamBytes(n, best);
  size_t patches = 0;
  for (uint32_t low = widest; low-- > 0;) {
    patches += of_width[low + 1];
    const Widths w{low, widest - low, patches};
    const size_t bytes = StreamBytes(n, w);
    if (bytes < best_bytes) {
      best = w;
      best_bytes = bytes;
    }
  }
  return best;
}

// Reads the widths; null if they break P-4.
inline const std::byte* ReadWidths(const std::byte* in, const std::byte* end, size_t n, Widths* w) {
  if (in >= end) return nullptr;
  const auto first = static_cast<uint8_t>(*in++);
  w->low = first & (kPatched - 1u);
  if (w->low > 32) return nullptr;
  if ((first & kPatched) == 0) return in;
  if (end - in < 2) return nullptr;
  w->patches = static_cast<uint8_t>(in[0]);
  w->high = static_cast<uint8_t>(in[1]);
  if (w->patches == 0 || w->patches > n || w->high == 0 || w->high > 32 - w->low) return nullptr;
  return in + 2;
}

// Puts the high bits in their places; false if a place breaks P-4.
bool Patch(const std::byte* in, const Widths& w, size_t n, uint32_t* values) {
  std::array<uint32_t, kStreamValuesMax + kUnpackSlack> high;
  Unpack(in + w.patches, w.patches, w.high, high.data());
  int before = -1;
  for (size_t i = 0; i < w.patches; ++i) {
    const auto at = static_cast<int>(static_cast<uint8_t>(in[i]));
    if (at <= before || at >= static_cast<int>(n)) return false;
    values[at] |= high[i] << w.low;
    before = at;
  }
  return true;
}

}  // namespace

void AppendStream(const uint32_t* values, size_t n, ByteBuffer* out) {
  ASHLAR_CHECK(n >= 1 && n <= kStreamValuesMax);
  const Widths w = BestWidths(values, n);
  const size_t at = out->size();
  out->resize(at + StreamBytes(n, w));
  std::byte* to = out->data() + at;
  *to++ = static_cast<std::byte>(w.low | (w.patches != 0 ? kPatched : 0u));
  if (w.patches == 0) {
    Pack(values, n, w.low, to);
    return;
  }
  *to++ = static_cast<std::byte>(w.patches);
  *to++ = static_cast<std::byte>(w.high);
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << w.low) - 1);
  std::array<uint32_t, kStreamValuesMax> low, high;
  std::byte* places = to + PackedBytes(n, w.low);
  size_t patches = 0;
  for (size_t i = 0; i < n; ++i) {
    low[i] = values[i] & mask;
    if (values[i] == low[i]) continue;
    places[patches] = static_cast<std::byte>(i);
    high[patches++] = values[i] >> w.low;
  }
  Pack(low.data(), n, w.low, to);
  Pack(high.data(), patches, w.high, places + patches);
}

const Unpacking& PlainUnpacking() {
  // The sum is in 64 bits, so that it tells whether the documents ascend.
  static constexpr auto kPrefixSum = [](uint32_t* values, size_t n, uint64_t first_possible) {
    uint64_t next = first_possible;
    for (size_t i = 0; i < n; ++i) {
      next += values[i];
      values[i] = static_cast<uint32_t>(next);
      ++next;
    }
    return next;
  };
  static constexpr Unpacking kPlain{&Unpack, kPrefixSum};
  return kPlain;
}

const std::byte* ReadStream(const std::byte* in, const std::byte* end, size_t n, uint32_t* values,
                            const Unpacking& unpacking) {
  Widths w;
  in = ReadWidths(in, end, n, &w);
  if (in == nullptr) return nullptr;
  const size_t low_bytes = PackedBytes(n, w.low);
  const size_t patch_bytes = w.patches + PackedBytes(w.patches, w.high);
  if (static_cast<size_t>(end - in) < low_bytes + patch_bytes) return nullptr;
  unpacking.unpack(in, n, w.low, values);
  if (w.patches != 0 && !Patch(in + low_bytes, w, n, values)) return nullptr;
  return in + low_bytes + patch_bytes;
}

const std::byte* SkipStream(const std::byte* in, const std::byte* end, size_t n) {
  Widths w;
  in = ReadWidths(in, end, n, &w);
  if (in == nullptr) return nullptr;
  const size_t bytes = PackedBytes(n, w.low) + w.patches + PackedBytes(w.patches, w.high);
  return static_cast<size_t>(end - in) < bytes ? nullptr : in + bytes;
}

}  // namespace ashlar::format
