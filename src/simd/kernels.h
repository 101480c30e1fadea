// Kernels: the inner loops of the query layer, at several levels of instruction set, with the same results bit for bit.
//
// Scalar code is the oracle. A level is chosen once, by what the processor and the operating system can do; the
// environment variable ASHLAR_SIMD (scalar, avx2, avx512) lowers it.
//
// For all kernels:
// - Nothing has to be aligned beyond its type. Inputs and outputs do not overlap unless it says so.
// - "Packed" is natural order (SPEC P-3): value i takes bits i * width to i * width + width - 1. kReadSlack bytes after
//   packed bytes are readable and do not matter (SPEC P-2).
// - "Padded to m" of an array of n: its elements up to n rounded up to a multiple of m may be written, with anything;
//   of an input: they may be read, and do not matter. What lies beyond is not touched.
// - n may be 0 except where it says so.
#ifndef ASHLAR_SRC_SIMD_KERNELS_H_
#define ASHLAR_SRC_SIMD_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace ashlar::simd {

inline constexpr size_t kReadSlack = 64;  // readable bytes after packed ones
inline constexpr size_t kBlock = 128;     // most values of a block of postings
inline constexpr size_t kLanes = 16;      // of the lanes layout
inline constexpr size_t kWindow = 4096;   // documents of a dense window
inline constexpr size_t kWindowWords = kWindow / 64;
inline constexpr size_t kTableBytes = 256;  // of a table that windows are added through
inline constexpr uint32_t kByteWidthMax = 8;
inline constexpr uint32_t kLengthClasses = 32;  // that classify tells apart
inline constexpr uint32_t kClassedWidthMax = 4;
inline constexpr size_t kClassedBytes = 2 * kLengthClasses;
inline constexpr uint32_t kLengthEscaped = 0xFFFF;

// The arithmetic of a term's contribution (src/query/scorer.h):
//   int32, rounded to nearest even, of (weight f) / (f + K),  K = a + b length,  every operation in binary32.
struct Scoring {
  float weight = 0;
  float a = 0;
  float b = 0;
};

enum class Level : uint8_t { kScalar, kAvx2, kAvx512 };

struct Kernels {
  Level level;
  const char* name;

  // --- packed numbers ---

  // n values of 0 to 32 bits. `values` is padded to 16.
  void (*unpack)(const std::byte* in, size_t n, uint32_t width, uint32_t* values);
  // The same plus 1, modulo 2^32.
  void (*unpack_plus_one)(const std::byte* in, size_t n, uint32_t width, uint32_t* values);

  // Gaps to documents, in place: document i = first_possible + gap 0 + ... + gap i + i. n is 1 to kBlock; `values` is
  // padded to 16, and no gap is wider than `width` bits. Returns the document after the last in 64 bits: up to 2^32,
  // the documents ascend; above, the array has their low 32 bits. Patches are put into unpacked gaps before this.
  uint64_t (*prefix_sum)(uint32_t* values, size_t n, uint32_t width, uint64_t first_possible);

  // unpack and prefix_sum in one, for blocks without patches.
  uint64_t (*unpack_gaps)(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible, uint32_t* documents);

  // The same for the lanes layout: r = (n + 15) / 16 rows of 16 packed gaps; lane l has gaps l * r to l * r + r - 1, so
  // gap i is the one at i % r * 16 + i / r; gaps from n on are 0. All 16 r of them are decoded.
  //
  // Transposed: documents stay where their gaps were, so they ascend within a lane. `documents` has room for 16 r.
  uint64_t (*prefix_sum_lanes)(uint32_t* values, size_t n, uint64_t first_possible);
  uint64_t (*unpack_lanes)(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible, uint32_t* documents);
  // Ascending. `documents` has room for 16 r.
  uint64_t (*unpack_lanes_ascending)(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                     uint32_t* documents);

  // n values of 0 to 8 bits, and the same plus 1 (255 stays 255). `values` is padded to 64.
  void (*unpack_bytes)(const std::byte* in, size_t n, uint32_t width, uint8_t* values);
  void (*unpack_bytes_plus_one)(const std::byte* in, size_t n, uint32_t width, uint8_t* values);

  // --- scores ---

  // The most that postings covered by a frontier can contribute: out[i] = maximum over p < pairs of the bound of the
  // pair (frequency_codes[p * stride + i], length_codes[p * stride + i]); codes as in SPEC P-6. See BoundOf in
  // score_math.h for what a bound is. kReadSlack bytes after the last code are readable; `out` is padded to 16.
  void (*bounds)(const uint8_t* frequency_codes, const uint8_t* length_codes, size_t stride, size_t pairs, size_t n,
                 Scoring scoring, int32_t* out);

  // Contributions of n postings with their frequencies, 1 to 2^31. Padded to 16: `out`, frequencies, a row of lengths.
  //
  // Lengths are u16: a row has that of posting i at 2 i, a column that of document d at 2 d. Returns whether a length
  // is kLengthEscaped: it was taken for a length, and the caller does such postings again.
  bool (*contributions_row_u8)(const uint8_t* frequencies, const std::byte* lengths, size_t n, Scoring scoring,
                               int32_t* out);
  bool (*contributions_row_u32)(const uint32_t* frequencies, const std::byte* lengths, size_t n, Scoring scoring,
                                int32_t* out);
  bool (*contributions_column_u8)(const uint8_t* frequencies, const std::byte* column, const uint32_t* documents,
                                  size_t n, Scoring scoring, int32_t* out);
  bool (*contributions_column_u32)(const uint32_t* frequencies, const std::byte* column, const uint32_t* documents,
                                   size_t n, Scoring scoring, int32_t* out);
  // Where all lengths are the same, or do not matter (b = 0).
  void (*contributions_fixed_u8)(const uint8_t* frequencies, size_t n, float weight, float k, int32_t* out);
  void (*contributions_fixed_u32)(const uint32_t* frequencies, size_t n, float weight, float k, int32_t* out);

  // --- windows of kWindow documents; accumulators have kWindow elements ---
  // Adding single postings is scalar on all levels: src/simd/scatter.h.

  // accumulators[d] += table[value d], staying at 65,535, of a column of kWindow packed values of 0 to 8 bits. `table`
  // has 2^width entries that count and kTableBytes readable ones.
  void (*add_column)(const std::byte* column, uint32_t width, const uint8_t* table, uint16_t* accumulators);
  // The same for a bitmap of kWindow documents and the packed values of those that are set, in order.
  void (*add_bitmap)(const std::byte* bitmap, const std::byte* values, uint32_t width, const uint8_t* table,
                     uint16_t* accumulators);

  // The same where the table depends on the length of the document as well. `classes` has 2 c of each document of class
  // c; `table` has kClassedBytes. The entry for value v, of `width` bits, kClassedWidthMax at most, is the one at 2 c
  // with the lowest bits exchanged for v: the wider the values, the fewer classes are told apart.
  void (*add_classed_column)(const std::byte* column, uint32_t width, const uint8_t* classes, const uint8_t* table,
                             uint16_t* accumulators);
  void (*add_classed_bitmap)(const std::byte* bitmap, const std::byte* values, uint32_t width, const uint8_t* classes,
                             const uint8_t* table, uint16_t* accumulators);
  // Twice the class of each of n lengths, of u16: (length - floor) scale / 2^16, rounded down, at least 0 and at most
  // kLengthClasses - 1. `classes` is padded to 64, and so are the lengths.
  void (*classify)(const std::byte* lengths, size_t n, uint16_t floor, uint16_t scale, uint8_t* classes);

  // Of kBlock documents from `first` on those whose value is not 0, and the values; returns how many. Both outputs have room for
  // kBlock.
  size_t (*take_present)(const uint8_t* values, uint32_t first, uint32_t* documents, uint32_t* present);
  // What a window has for documents, at `document` % kWindow: its value in a column; in a bitmap the value plus 1 of
  // those that are set, 0 for others. `ranks` has how many are set before each kBlock documents, and in the end all:
  // more are taken for not set.
  void (*look_up_column)(const std::byte* column, uint32_t width, const uint32_t* documents, size_t n, uint32_t* found);
  void (*look_up_bitmap)(const std::byte* bitmap, const uint16_t* ranks, const std::byte* values, uint32_t width,
                         const uint32_t* documents, size_t n, uint32_t* found);

  // Writes the offsets whose accumulator is at or above the limit, ascending, and returns their number. `offsets` (and
  // `scores`, what stands there) have room for kWindow. take_32 also sets all accumulators to 0.
  size_t (*scan_16)(const uint16_t* accumulators, uint16_t limit, uint16_t* offsets);
  size_t (*scan_32)(const int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores);
  size_t (*take_32)(int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores);

  // bitmap |= documents whose value is not 0. A bitmap has kWindowWords words.
  void (*or_column)(const std::byte* column, uint32_t width, uint64_t* bitmap);
  void (*or_bitmap)(const std::byte* from, uint64_t* bitmap);
  size_t (*count_bitmap)(const uint64_t* bitmap);

  // --- search ---

  // The first index whose value is at or above the target; n if there is none. Values ascend.
  size_t (*lower_bound)(const uint32_t* values, size_t n, uint32_t target);
  // Which of m targets are among n values, 1 to kBlock of them, that ascend. Writes for each that is, in the order of
  // the targets, which one it is and the index of the value, and returns how many. `values` is padded to 8; outputs
  // have room for m.
  size_t (*find)(const uint32_t* values, size_t n, const uint32_t* targets, size_t m, uint32_t* found,
                 uint32_t* places);
  // The first index whose value is at or above the limit; n if there is none. Values have no order.
  size_t (*first_at_least)(const int32_t* values, size_t n, int32_t limit);
  // INT32_MIN if n is 0.
  int32_t (*maximum)(const int32_t* values, size_t n);

  // Writes the (document, frequency) pairs whose frequency is at or above the limit, 1 or more, in order, and returns
  // their number. All arrays are padded to 16.
  size_t (*take_frequent)(const uint32_t* documents, const uint32_t* frequencies, size_t n, uint32_t limit,
                          uint32_t* taken, uint32_t* taken_frequencies);
  // Keeps the (document, score) pairs with score + more >= limit, in order and in place, and returns their number. The
  // sum is not cut to 32 bits. Both arrays are padded to 16.
  size_t (*keep_at_least)(uint32_t* documents, int32_t* scores, size_t n, int32_t more, int32_t limit);
};

// The best level that this machine has and ASHLAR_SIMD allows. Always the same one.
const Kernels& BestKernels();

// Null if the machine lacks the level; the scalar one is always there.
const Kernels* KernelsFor(Level level);

// What BestKernels does with a value of ASHLAR_SIMD (null: not set). An unknown value counts as not set.
const Kernels& ChooseKernels(const char* wish);

}  // namespace ashlar::simd

#endif  // ASHLAR_SRC_SIMD_KERNELS_H_
