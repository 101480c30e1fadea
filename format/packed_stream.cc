#include "format/packed_stream.h"

#include <algorithm>
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

// A stream whose widths were read and whose bytes are all there.
struct Stream {
  Widths widths;
  const std::byte* low = nullptr;      // null: it breaks P-4, or passes the end
  const std::byte* patches = nullptr;  // their places, then their high bits
  const std::byte* end = nullptr;
  uint32_t width() const { return widths.low + widths.high; }  // of all values
};

inline Stream Open(const std::byte* in, const std::byte* end, size_t n) {
  Stream stream;
  Widths& w = stream.widths;
  if (in >= end) return {};
  const auto first = static_cast<uint8_t>(*in++);
  w.low = first & (kPatched - 1u);
  if (w.low > 32) return {};
  if ((first & kPatched) != 0) {
    if (end - in < 2) return {};
    w.patches = static_cast<uint8_t>(in[0]);
    w.high = static_cast<uint8_t>(in[1]);
    if (w.patches == 0 || w.patches > n || w.high == 0 || w.high > 32 - w.low) return {};
    in += 2;
  }
  const size_t low_bytes = PackedBytes(n, w.low);
  const size_t patch_bytes = w.patches + PackedBytes(w.patches, w.high);
  if (static_cast<size_t>(end - in) < low_bytes + patch_bytes) return {};
  stream.low = in;
  stream.patches = in + low_bytes;
  stream.end = stream.patches + patch_bytes;
  return stream;
}

// Adds the high bits in their places; false if a place breaks P-4.
inline bool Patch(const Stream& stream, size_t n, const Unpacking& unpacking, uint32_t* values) {
  const Widths& w = stream.widths;
  if (w.patches == 0) return true;
  std::array<uint32_t, kStreamValuesMax + kUnpackSlackMax> high;
  unpacking.unpack(stream.patches + w.patches, w.patches, w.high, high.data());
  int before = -1;
  for (size_t i = 0; i < w.patches; ++i) {
    const auto at = static_cast<int>(static_cast<uint8_t>(stream.patches[i]));
    if (at <= before || at >= static_cast<int>(n)) return false;
    values[at] += high[i] << w.low;
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
  static constexpr auto kPrefixSum = [](uint32_t* values, size_t n, uint32_t, uint64_t first_possible) {
    uint64_t next = first_possible;
    for (size_t i = 0; i < n; ++i) {
      next += values[i];
      values[i] = static_cast<uint32_t>(next);
      ++next;
    }
    return next;
  };
  static constexpr auto kUnpackPlusOne = [](const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
    Unpack(in, n, width, values);
    for (size_t i = 0; i < n; ++i) ++values[i];
  };
  static constexpr auto kUnpackGaps = [](const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                         uint32_t* documents) {
    Unpack(in, n, width, documents);
    return kPrefixSum(documents, n, width, first_possible);
  };
  static constexpr Unpacking kPlain{&Unpack, kUnpackPlusOne, kPrefixSum, kUnpackGaps};
  return kPlain;
}

const std::byte* ReadStream(const std::byte* in, const std::byte* end, size_t n, uint32_t* values,
                            const Unpacking& unpacking) {
  const Stream stream = Open(in, end, n);
  if (stream.low == nullptr) return nullptr;
  unpacking.unpack(stream.low, n, stream.widths.low, values);
  return Patch(stream, n, unpacking, values) ? stream.end : nullptr;
}

const std::byte* ReadGaps(const std::byte* in, const std::byte* end, size_t n, uint64_t first_possible,
                          uint32_t* documents, uint64_t* next, const Unpacking& unpacking) {
  const Stream stream = Open(in, end, n);
  if (stream.low == nullptr) return nullptr;
  if (stream.widths.patches == 0) {
    *next = unpacking.unpack_gaps(stream.low, n, stream.widths.low, first_possible, documents);
    return stream.end;
  }
  unpacking.unpack(stream.low, n, stream.widths.low, documents);
  if (!Patch(stream, n, unpacking, documents)) return nullptr;
  *next = unpacking.prefix_sum(documents, n, stream.width(), first_possible);
  return stream.end;
}

const std::byte* ReadPlusOne(const std::byte* in, const std::byte* end, size_t n, uint32_t* values,
                             const Unpacking& unpacking) {
  const Stream stream = Open(in, end, n);
  if (stream.low == nullptr) return nullptr;
  unpacking.unpack_plus_one(stream.low, n, stream.widths.low, values);
  if (!Patch(stream, n, unpacking, values)) return nullptr;
  // Values of 31 bits plus 1 are at most 2^31.
  constexpr uint32_t kMost = 0x80000000u;
  if (stream.width() > 31 && std::any_of(values, values + n, [](uint32_t v) { return v == 0 || v > kMost; }))
    return nullptr;
  return stream.end;
}

const std::byte* SkipStream(const std::byte* in, const std::byte* end, size_t n) { return Open(in, end, n).end; }

}  // namespace ashlar::format
