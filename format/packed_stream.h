// A packed stream (SPEC P-4): up to 128 integers at the width that makes them smallest, with the high bits of the few
// that do not fit kept as patches (the idea of PFOR: Zukowski et al., "Super-Scalar RAM-CPU Cache Compression", ICDE
// 2006).
//
//   u8 width, plus 0x80 if there are patches
//   u8 patches (1 .. n), u8 high width (1 .. 32 - width)    only with patches
//   n values, the low `width` bits of each, packed
//   u8 index of each patch, ascending; their high bits, packed     only with patches
#ifndef ASHLAR_FORMAT_PACKED_STREAM_H_
#define ASHLAR_FORMAT_PACKED_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "format/bit_pack.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kStreamValuesMax = 128;
// Values beyond n that any way of unpacking may write.
inline constexpr size_t kUnpackSlackMax = 16;
static_assert(kUnpackSlackMax >= kUnpackSlack);

// How packed values are read: by the plain code of format/bit_pack.h, or by a reader's own with the same results.
struct Unpacking {
  void (*unpack)(const std::byte* in, size_t n, uint32_t width, uint32_t* values);
  void (*unpack_plus_one)(const std::byte* in, size_t n, uint32_t width, uint32_t* values);
  // Gaps of at most `width` bits to documents in place: value i becomes first_possible + gap 0 + ... + gap i + i.
  // Returns the document after the last, in 64 bits.
  uint64_t (*prefix_sum)(uint32_t* values, size_t n, uint32_t width, uint64_t first_possible);
  // unpack and prefix_sum.
  uint64_t (*unpack_gaps)(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible, uint32_t* documents);
};
const Unpacking& PlainUnpacking();

// Appends a stream of 1 to 128 values.
void AppendStream(const uint32_t* values, size_t n, ByteBuffer* out);

// Decodes n (1 .. 128) values from [in, end); kPackedSlack bytes after `end` must be readable, kUnpackSlack values
// after n writable (as many as `unpacking` writes, if that is more). Returns the stream's end, or null if it breaks P-4
// or passes `end`.
const std::byte* ReadStream(const std::byte* in, const std::byte* end, size_t n, uint32_t* values,
                            const Unpacking& unpacking = PlainUnpacking());

// The same for gaps: gives documents, and in `next` the one after the last, in 64 bits.
const std::byte* ReadGaps(const std::byte* in, const std::byte* end, size_t n, uint64_t first_possible,
                          uint32_t* documents, uint64_t* next, const Unpacking& unpacking = PlainUnpacking());
// The same plus 1, which makes 1 to 2^31; null also for more.
const std::byte* ReadPlusOne(const std::byte* in, const std::byte* end, size_t n, uint32_t* values,
                             const Unpacking& unpacking = PlainUnpacking());

// The same without decoding.
const std::byte* SkipStream(const std::byte* in, const std::byte* end, size_t n);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_PACKED_STREAM_H_
