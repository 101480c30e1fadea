// The AVX-512 level: F, BW, VL, DQ, VBMI and VBMI2 (Intel from Ice Lake, AMD from Zen 4 on).
#ifdef __x86_64__

// Tests compile this file a second time with plain functions for the instructions, for machines that lack them.
#ifdef ASHLAR_SIMD_STAND_INS
#define ASHLAR_AVX512
#define ASHLAR_AVX512_INLINE inline
#define ASHLAR_KEEP_IN_REGISTER(x)
#else
// g++ 12 calls its own "undefined" registers uninitialised (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#define ASHLAR_AVX512_TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,bmi,popcnt"
#define ASHLAR_AVX512 __attribute__((target(ASHLAR_AVX512_TARGET)))
#define ASHLAR_AVX512_INLINE __attribute__((target(ASHLAR_AVX512_TARGET), always_inline)) inline
#define ASHLAR_KEEP_IN_REGISTER(x) asm("" : "+v"(x))
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/simd/levels.h"
#include "src/simd/look_up.h"
#include "src/simd/score_math.h"
#include "src/simd/unpack_tables.h"

namespace ashlar::simd {
namespace {

constexpr size_t kStep = 16;      // numbers of 32 bits in a register
constexpr size_t kByteStep = 64;  // bytes in a register

ASHLAR_AVX512_INLINE __m512i Load(const void* p) { return _mm512_loadu_si512(p); }
ASHLAR_AVX512_INLINE __m256i Load32Bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
ASHLAR_AVX512_INLINE __m128i Load16Bytes(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
ASHLAR_AVX512_INLINE void Store(void* p, __m512i x) { _mm512_storeu_si512(p, x); }
ASHLAR_AVX512_INLINE void Store32Bytes(void* p, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }

ASHLAR_AVX512_INLINE __m512i Indices() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// Which of the 16 elements from i on are below n.
ASHLAR_AVX512_INLINE __mmask16 Below(size_t i, size_t n) {
  return static_cast<__mmask16>(n - i < kStep ? (1u << (n - i)) - 1 : 0xFFFF);
}

// --- packed numbers ---

// Takes rows of 16 values of one width apart.
struct RowUnpacker {
  __m512i bytes, shifts, mask;

  ASHLAR_AVX512_INLINE explicit RowUnpacker(uint32_t width)
      : bytes(Load(kUnpack16[width].bytes)),
        shifts(Load(kUnpack16[width].shifts)),
        mask(_mm512_set1_epi32(static_cast<int>((1u << width) - 1))) {}

  ASHLAR_AVX512_INLINE __m512i operator()(const std::byte* row) const {
    const __m512i four_bytes_each = _mm512_permutexvar_epi8(bytes, Load(row));
    return _mm512_and_si512(_mm512_srlv_epi32(four_bytes_each, shifts), mask);
  }
};

ASHLAR_AVX512 void Unpack(const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack(in, n, width, values);
  const RowUnpacker unpacker(width);
  for (size_t i = 0; i < n; i += kStep, in += 2 * width) Store(values + i, unpacker(in));
}

ASHLAR_AVX512 void UnpackPlusOne(const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_plus_one(in, n, width, values);
  const RowUnpacker unpacker(width);
  const __m512i one = _mm512_set1_epi32(1);
  for (size_t i = 0; i < n; i += kStep, in += 2 * width) Store(values + i, _mm512_add_epi32(unpacker(in), one));
}

// x0, x0 + x1, ... of pairs, quads, halves, all. Pairs by a shift, as shuffles are what this waits for.
ASHLAR_AVX512_INLINE __m512i PrefixSums(__m512i x) {
  x = _mm512_add_epi32(x, _mm512_slli_epi64(x, 32));
  const __m512i ends_of_pairs = _mm512_setr_epi32(1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13);
  x = _mm512_mask_add_epi32(x, 0xCCCC, x, _mm512_permutexvar_epi32(ends_of_pairs, x));
  const __m512i ends_of_quads = _mm512_setr_epi32(3, 3, 3, 3, 3, 3, 3, 3, 11, 11, 11, 11, 11, 11, 11, 11);
  x = _mm512_mask_add_epi32(x, 0xF0F0, x, _mm512_permutexvar_epi32(ends_of_quads, x));
  return _mm512_mask_add_epi32(x, 0xFF00, x, _mm512_permutexvar_epi32(_mm512_set1_epi32(7), x));
}

ASHLAR_AVX512_INLINE __m512i BroadcastLast(__m512i x) { return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x); }

// Gaps to documents, 16 at a time. `next` is the least document that each of the 16 could be.
struct Accumulator {
  __m512i next;

  ASHLAR_AVX512_INLINE explicit Accumulator(uint64_t first_possible)
      : next(_mm512_add_epi32(Indices(), _mm512_set1_epi32(static_cast<int>(first_possible)))) {}

  ASHLAR_AVX512_INLINE __m512i operator()(__m512i gaps) {
    const __m512i sums = PrefixSums(gaps);
    const __m512i documents = _mm512_add_epi32(sums, next);
    next = _mm512_add_epi32(next, _mm512_add_epi32(BroadcastLast(sums), _mm512_set1_epi32(kStep)));
    return documents;
  }
};

// The document after the last of n, if their gaps add up to less than 2^32.
inline uint64_t NextDocument(uint64_t first_possible, size_t n, uint32_t last) {
  return first_possible + static_cast<uint32_t>(last - static_cast<uint32_t>(first_possible + n - 1)) + n;
}

// Whether the gaps are so small that kBlock of them add up to less than 2^32. Looks at the padding too.
ASHLAR_AVX512_INLINE bool SumFits(const uint32_t* gaps, size_t n) {
  __m512i all = _mm512_setzero_si512();
  for (size_t i = 0; i < n; i += kStep) all = _mm512_or_si512(all, Load(gaps + i));
  return _mm512_test_epi32_mask(all, _mm512_set1_epi32(static_cast<int>(~((1u << kShuffledWidthMax) - 1)))) == 0;
}

// kBlock gaps of that width add up to less than 2^32.
static_assert(kBlock <= size_t{1} << (32 - kShuffledWidthMax));

ASHLAR_AVX512 uint64_t PrefixSum(uint32_t* values, size_t n, uint32_t width, uint64_t first_possible) {
  if (width > kShuffledWidthMax) return kScalarKernels.prefix_sum(values, n, width, first_possible);
  Accumulator accumulator(first_possible);
  for (size_t i = 0; i < n; i += kStep) Store(values + i, accumulator(Load(values + i)));
  return NextDocument(first_possible, n, values[n - 1]);
}

ASHLAR_AVX512 uint64_t UnpackGaps(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                  uint32_t* documents) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_gaps(in, n, width, first_possible, documents);
  const RowUnpacker unpacker(width);
  Accumulator accumulator(first_possible);
  for (size_t i = 0; i < n; i += kStep, in += 2 * width) Store(documents + i, accumulator(unpacker(in)));
  return NextDocument(first_possible, n, documents[n - 1]);
}

constexpr size_t kRowsMax = kBlock / kLanes;
inline size_t RowsOf(size_t n) { return (n + kLanes - 1) / kLanes; }

// What the lanes begin to count from, given what their gaps add up to.
ASHLAR_AVX512_INLINE __m512i LaneStarts(__m512i sums, size_t rows, uint64_t first_possible) {
  const __m512i steps = _mm512_add_epi32(sums, _mm512_set1_epi32(static_cast<int>(rows)));
  const __m512i exclusive = _mm512_sub_epi32(PrefixSums(steps), steps);
  return _mm512_add_epi32(exclusive, _mm512_set1_epi32(static_cast<int>(first_possible)));
}

// Running sums down the lanes to documents. `rows` is a constant for whole blocks: then all stays in registers.
template <class Row>
ASHLAR_AVX512_INLINE void SumRows(size_t rows, uint64_t first_possible, __m512i* documents, const Row& row) {
  __m512i running = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (size_t v = 0; v < rows; ++v) documents[v] = running = _mm512_add_epi32(running, row(v));
  const __m512i starts = LaneStarts(running, rows, first_possible);
#pragma GCC unroll 8
  for (size_t v = 0; v < rows; ++v) {
    documents[v] = _mm512_add_epi32(documents[v], _mm512_add_epi32(starts, _mm512_set1_epi32(static_cast<int>(v))));
  }
}

struct PackedRows {
  RowUnpacker unpacker;
  const std::byte* in;
  size_t row_bytes;
  ASHLAR_AVX512_INLINE __m512i operator()(size_t v) const { return unpacker(in + v * row_bytes); }
};

struct PlainRows {
  const uint32_t* values;
  ASHLAR_AVX512_INLINE __m512i operator()(size_t v) const { return Load(values + v * kLanes); }
};

inline uint64_t NextDocumentOfLanes(const uint32_t* documents, size_t n, uint64_t first_possible) {
  const size_t rows = RowsOf(n);
  // The last of all 16 r, which is beyond n by as many documents.
  const uint64_t next = NextDocument(first_possible, rows * kLanes, documents[rows * kLanes - 1]);
  return next - (rows * kLanes - n);
}

template <class Row>
ASHLAR_AVX512_INLINE uint64_t SumLanes(const Row& row, size_t n, uint64_t first_possible, uint32_t* documents) {
  const size_t rows = RowsOf(n);
  __m512i sums[kRowsMax];
  if (rows == kRowsMax) {
    SumRows(kRowsMax, first_possible, sums, row);
#pragma GCC unroll 8
    for (size_t v = 0; v < kRowsMax; ++v) Store(documents + v * kLanes, sums[v]);
  } else {
    SumRows(rows, first_possible, sums, row);
    for (size_t v = 0; v < rows; ++v) Store(documents + v * kLanes, sums[v]);
  }
  return NextDocumentOfLanes(documents, n, first_possible);
}

ASHLAR_AVX512 uint64_t PrefixSumLanes(uint32_t* values, size_t n, uint64_t first_possible) {
  if (!SumFits(values, RowsOf(n) * kLanes)) return kScalarKernels.prefix_sum_lanes(values, n, first_possible);
  return SumLanes(PlainRows{values}, n, first_possible, values);
}

ASHLAR_AVX512 uint64_t UnpackLanes(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                   uint32_t* documents) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_lanes(in, n, width, first_possible, documents);
  return SumLanes(PackedRows{RowUnpacker(width), in, 2 * width}, n, first_possible, documents);
}

// Four rows: the k-th quarter of columns[j] is column 4 k + j.
ASHLAR_AVX512_INLINE void Transpose4(const __m512i* rows, __m512i* columns) {
  const __m512i low01 = _mm512_unpacklo_epi32(rows[0], rows[1]), high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(rows[2], rows[3]), high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
  columns[0] = _mm512_unpacklo_epi64(low01, low23);
  columns[1] = _mm512_unpackhi_epi64(low01, low23);
  columns[2] = _mm512_unpacklo_epi64(high01, high23);
  columns[3] = _mm512_unpackhi_epi64(high01, high23);
}

// Eight rows of 16 to 16 columns of 8, one after the other.
ASHLAR_AVX512_INLINE void StoreColumns(const __m512i* rows, uint32_t* out) {
  __m512i top[4], bottom[4];
  Transpose4(rows, top);
  Transpose4(rows + 4, bottom);
  const __m512i first_two = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i last_two = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i low = _mm512_permutex2var_epi64(top[j], first_two, bottom[j]);
    const __m512i high = _mm512_permutex2var_epi64(top[j], last_two, bottom[j]);
    Store32Bytes(out + 8 * j, _mm512_castsi512_si256(low));
    Store32Bytes(out + 8 * (j + 4), _mm512_extracti64x4_epi64(low, 1));
    Store32Bytes(out + 8 * (j + 8), _mm512_castsi512_si256(high));
    Store32Bytes(out + 8 * (j + 12), _mm512_extracti64x4_epi64(high, 1));
  }
}

ASHLAR_AVX512 uint64_t UnpackLanesAscending(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                            uint32_t* documents) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_lanes_ascending(in, n, width, first_possible, documents);
  const PackedRows packed{RowUnpacker(width), in, 2 * width};
  const size_t rows = RowsOf(n);
  if (rows < kRowsMax) {
    alignas(64) uint32_t transposed[kBlock];
    const uint64_t next = SumLanes(packed, n, first_possible, transposed);
    for (size_t l = 0; l < kLanes; ++l) {
      for (size_t v = 0; v < rows; ++v) documents[l * rows + v] = transposed[v * kLanes + l];
    }
    return next;
  }
  __m512i sums[kRowsMax];
  SumRows(kRowsMax, first_possible, sums, packed);
  StoreColumns(sums, documents);
  return NextDocumentOfLanes(documents, n, first_possible);
}

// --- packed bytes ---

// Takes groups of 64 values of up to 8 bits apart.
struct ByteUnpacker {
  __m512i bytes, shifts, mask;

  ASHLAR_AVX512_INLINE explicit ByteUnpacker(uint32_t width)
      : bytes(Load(kUnpackBytes64[width].bytes)),
        shifts(Load(kUnpackBytes64[width].shifts)),
        mask(_mm512_set1_epi8(static_cast<char>((1u << width) - 1))) {}

  ASHLAR_AVX512_INLINE __m512i operator()(const std::byte* in) const {
    const __m512i eight_values_each = _mm512_permutexvar_epi8(bytes, Load(in));
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, eight_values_each), mask);
  }
};

template <bool plus_one>
ASHLAR_AVX512 void UnpackBytes(const std::byte* in, size_t n, uint32_t width, uint8_t* values) {
  const ByteUnpacker unpacker(width);
  for (size_t i = 0; i < n; i += kByteStep, in += 8 * width) {
    __m512i x = unpacker(in);
    if (plus_one) x = _mm512_adds_epu8(x, _mm512_set1_epi8(1));
    Store(values + i, x);
  }
}

// --- scores ---

// LengthOfCode.
ASHLAR_AVX512_INLINE __m512 LengthsOfCodes(__m512i codes) {
  const __m512i coarse =
      _mm512_add_epi32(_mm512_slli_epi32(codes, kCodeShift), _mm512_set1_epi32(static_cast<int>(kCodeBias)));
  const __mmask16 exact = _mm512_cmplt_epi32_mask(codes, _mm512_set1_epi32(kExactCodes));
  return _mm512_mask_cvtepi32_ps(_mm512_castsi512_ps(coarse), exact, codes);
}

ASHLAR_AVX512_INLINE __m512 FrequenciesOfCodes(__m512i codes) {
  const __mmask16 last = _mm512_cmpeq_epi32_mask(codes, _mm512_set1_epi32(kCodeMax));
  return _mm512_mask_mov_ps(LengthsOfCodes(codes), last, _mm512_set1_ps(kFrequencyOfLastCode));
}

struct ScoringVector {
  __m512 weight, a, b;
  ASHLAR_AVX512_INLINE explicit ScoringVector(Scoring s)
      : weight(_mm512_set1_ps(s.weight)), a(_mm512_set1_ps(s.a)), b(_mm512_set1_ps(s.b)) {}
  ASHLAR_AVX512_INLINE __m512 K(__m512 lengths) const { return _mm512_add_ps(a, _mm512_mul_ps(b, lengths)); }
};

ASHLAR_AVX512_INLINE __m512 ContributionFloat(__m512 weight, __m512 f, __m512 sum) {
  return _mm512_div_ps(_mm512_mul_ps(weight, f), sum);
}

// BoundOf, but below 0 (not a number) where frequency and K are 0.
ASHLAR_AVX512_INLINE __m512i BoundsOf(__m512 weight, __m512 f, __m512 k) {
  const __m512 sum = _mm512_add_ps(f, k);
  const __m512i c = _mm512_cvtps_epi32(ContributionFloat(weight, f, sum));
  const __m512 growth = _mm512_mul_ps(f, sum), limit = _mm512_mul_ps(k, _mm512_set1_ps(kGrowthLimit));
  const __mmask16 may_fall = _mm512_cmp_ps_mask(growth, limit, _CMP_NLE_UQ);
  const __m512i slack = _mm512_add_epi32(_mm512_srai_epi32(c, kSlackShift), _mm512_set1_epi32(1));
  return _mm512_mask_add_epi32(c, may_fall, c, slack);
}

ASHLAR_AVX512 void Bounds(const uint8_t* frequency_codes, const uint8_t* length_codes, size_t stride, size_t pairs,
                          size_t n, Scoring scoring, int32_t* out) {
  const ScoringVector s(scoring);
  for (size_t i = 0; i < n; i += kStep) {
    __m512i highest = _mm512_setzero_si512();
    for (size_t p = 0; p < pairs; ++p) {
      const __m512i frequencies = _mm512_cvtepu8_epi32(Load16Bytes(frequency_codes + p * stride + i));
      const __m512i lengths = _mm512_cvtepu8_epi32(Load16Bytes(length_codes + p * stride + i));
      const __m512i bounds = BoundsOf(s.weight, FrequenciesOfCodes(frequencies), s.K(LengthsOfCodes(lengths)));
      highest = _mm512_max_epi32(highest, bounds);
    }
    Store(out + i, highest);
  }
}

ASHLAR_AVX512_INLINE __m512 LoadFrequencies(const uint8_t* frequencies) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(Load16Bytes(frequencies)));
}
ASHLAR_AVX512_INLINE __m512 LoadFrequencies(const uint32_t* frequencies) {
  return _mm512_cvtepu32_ps(Load(frequencies));
}

ASHLAR_AVX512_INLINE __m512i Contributions(__m512 weight, __m512 f, __m512 k) {
  return _mm512_cvtps_epi32(ContributionFloat(weight, f, _mm512_add_ps(f, k)));
}

ASHLAR_AVX512_INLINE __mmask16 Escaped(__m512i lengths) {
  return _mm512_cmpeq_epi32_mask(lengths, _mm512_set1_epi32(kLengthEscaped));
}

template <class Frequency>
ASHLAR_AVX512 bool ContributionsOfRow(const Frequency* frequencies, const std::byte* lengths, size_t n, Scoring scoring,
                                      int32_t* out) {
  const ScoringVector s(scoring);
  uint32_t escaped = 0;
  for (size_t i = 0; i < n; i += kStep) {
    const __m512i l = _mm512_cvtepu16_epi32(Load32Bytes(lengths + 2 * i));
    escaped |= static_cast<uint32_t>(Escaped(l) & Below(i, n));
    Store(out + i, Contributions(s.weight, LoadFrequencies(frequencies + i), s.K(_mm512_cvtepi32_ps(l))));
  }
  return escaped != 0;
}

// The lengths of documents, as a row, block by block. Plain loads: a gather was no faster where it was measured (AMD
// Zen 3), and is slower where microcode protects it (Intel before 2023).
template <class Frequency>
ASHLAR_AVX512 bool ContributionsOfColumn(const Frequency* frequencies, const std::byte* column,
                                         const uint32_t* documents, size_t n, Scoring scoring, int32_t* out) {
  alignas(64) std::byte row[2 * kBlock];
  bool escaped = false;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t count = std::min(kBlock, n - begin);
    for (size_t i = 0; i < count; ++i) std::memcpy(row + 2 * i, column + size_t{2} * documents[begin + i], 2);
    escaped |= ContributionsOfRow(frequencies + begin, row, count, scoring, out + begin);
  }
  return escaped;
}

template <class Frequency>
ASHLAR_AVX512 void ContributionsOfFixed(const Frequency* frequencies, size_t n, float weight, float k, int32_t* out) {
  const __m512 w = _mm512_set1_ps(weight), ks = _mm512_set1_ps(k);
  for (size_t i = 0; i < n; i += kStep) Store(out + i, Contributions(w, LoadFrequencies(frequencies + i), ks));
}

// --- windows ---

// A table of 2^width bytes in registers of 64, and its application to 64 values.
template <size_t tables>
struct TableLookup {
  __m512i parts[tables];

  ASHLAR_AVX512_INLINE explicit TableLookup(const uint8_t* table) {
    for (size_t t = 0; t < tables; ++t) parts[t] = Load(table + kByteStep * t);
  }
  ASHLAR_AVX512_INLINE __m512i operator()(__m512i values) const {
    if constexpr (tables == 1) {
      return _mm512_permutexvar_epi8(values, parts[0]);
    } else if constexpr (tables == 2) {
      return _mm512_permutex2var_epi8(parts[0], values, parts[1]);
    } else {
      const __m512i low = _mm512_permutex2var_epi8(parts[0], values, parts[1]);
      const __m512i high = _mm512_permutex2var_epi8(parts[2], values, parts[3]);
      return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(values), high);
    }
  }
};

ASHLAR_AVX512_INLINE void AddBytes32(uint16_t* accumulators, __m256i bytes) {
  Store(accumulators, _mm512_adds_epu16(Load(accumulators), _mm512_cvtepu8_epi16(bytes)));
}

ASHLAR_AVX512_INLINE void AddBytes64(uint16_t* accumulators, __m512i bytes) {
  AddBytes32(accumulators, _mm512_castsi512_si256(bytes));
  AddBytes32(accumulators + 32, _mm512_extracti64x4_epi64(bytes, 1));
}

template <size_t tables>
ASHLAR_AVX512 void AddColumnThrough(const std::byte* column, uint32_t width, const uint8_t* table,
                                    uint16_t* accumulators) {
  const ByteUnpacker unpacker(width);
  const TableLookup<tables> lookup(table);
  for (size_t d = 0; d < kWindow; d += kByteStep, column += 8 * width) {
    AddBytes64(accumulators + d, lookup(unpacker(column)));
  }
}

ASHLAR_AVX512 void AddColumn(const std::byte* column, uint32_t width, const uint8_t* table, uint16_t* accumulators) {
  if (width == 8) return AddColumnThrough<4>(column, width, table, accumulators);
  if (width == 7) return AddColumnThrough<2>(column, width, table, accumulators);
  return AddColumnThrough<1>(column, width, table, accumulators);
}

ASHLAR_AVX512 size_t CountBitmap(const uint64_t* bitmap) {
  size_t count = 0;
  for (size_t w = 0; w < kWindowWords; ++w) count += static_cast<size_t>(_mm_popcnt_u64(bitmap[w]));
  return count;
}

template <size_t tables>
ASHLAR_AVX512 void LookUpPacked(const std::byte* in, size_t n, uint32_t width, const uint8_t* table, uint8_t* found) {
  const ByteUnpacker unpacker(width);
  const TableLookup<tables> lookup(table);
  for (size_t i = 0; i < n; i += kByteStep, in += 8 * width) Store(found + i, lookup(unpacker(in)));
}

ASHLAR_AVX512 void LookUp(const std::byte* in, size_t n, uint32_t width, const uint8_t* table, uint8_t* found) {
  if (width == 8) return LookUpPacked<4>(in, n, width, table, found);
  if (width == 7) return LookUpPacked<2>(in, n, width, table, found);
  LookUpPacked<1>(in, n, width, table, found);
}

ASHLAR_AVX512 void AddBitmap(const std::byte* bitmap, const std::byte* values, uint32_t width, const uint8_t* table,
                             uint16_t* accumulators) {
  uint64_t words[kWindowWords];
  std::memcpy(words, bitmap, sizeof words);
  alignas(64) uint8_t contributions[kWindow + kByteStep];
  LookUp(values, CountBitmap(words), width, table, contributions);
  const uint8_t* next = contributions;
  for (size_t w = 0; w < kWindowWords; ++w) {
    // The load is not part of the expansion: from memory, that is slow on some processors.
    __m512i bytes = Load(next);
    ASHLAR_KEEP_IN_REGISTER(bytes);
    AddBytes64(accumulators + 64 * w, _mm512_maskz_expand_epi8(words[w], bytes));
    next += _mm_popcnt_u64(words[w]);
  }
}

ASHLAR_AVX512 void AddClassedColumn(const std::byte* column, uint32_t width, const uint8_t* classes,
                                    const uint8_t* table, uint16_t* accumulators) {
  const ByteUnpacker unpacker(width);
  const TableLookup<1> lookup(table);
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(ClassMask(width)));
  for (size_t d = 0; d < kWindow; d += kByteStep, column += 8 * width) {
    const __m512i of_class = _mm512_and_si512(Load(classes + d), mask);
    AddBytes64(accumulators + d, lookup(_mm512_or_si512(unpacker(column), of_class)));
  }
}

ASHLAR_AVX512 void AddClassedBitmap(const std::byte* bitmap, const std::byte* values, uint32_t width,
                                    const uint8_t* classes, const uint8_t* table, uint16_t* accumulators) {
  uint64_t words[kWindowWords];
  std::memcpy(words, bitmap, sizeof words);
  alignas(64) uint8_t unpacked[kWindow + kByteStep];
  UnpackBytes<false>(values, CountBitmap(words), width, unpacked);
  const TableLookup<1> lookup(table);
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(ClassMask(width)));
  const uint8_t* next = unpacked;
  for (size_t w = 0; w < kWindowWords; ++w) {
    __m512i bytes = Load(next);
    ASHLAR_KEEP_IN_REGISTER(bytes);
    const __m512i spread = _mm512_maskz_expand_epi8(words[w], bytes);
    const __m512i of_class = _mm512_and_si512(Load(classes + 64 * w), mask);
    const __m512i contributions = lookup(_mm512_or_si512(spread, of_class));
    AddBytes64(accumulators + 64 * w, _mm512_maskz_mov_epi8(words[w], contributions));
    next += _mm_popcnt_u64(words[w]);
  }
}

ASHLAR_AVX512 void Classify(const std::byte* lengths, size_t n, uint16_t floor, uint16_t scale, uint8_t* classes) {
  const __m512i floors = _mm512_set1_epi16(static_cast<int16_t>(floor));
  const __m512i scales = _mm512_set1_epi16(static_cast<int16_t>(scale));
  const __m512i last = _mm512_set1_epi16(kLengthClasses - 1);
  for (size_t i = 0; i < n; i += kByteStep / 2) {
    const __m512i above = _mm512_subs_epu16(Load(lengths + 2 * i), floors);
    const __m512i of_class = _mm512_min_epu16(_mm512_mulhi_epu16(above, scales), last);
    Store32Bytes(classes + i, _mm512_cvtepi16_epi8(_mm512_add_epi16(of_class, of_class)));
  }
}

ASHLAR_AVX512 size_t TakePresent(const uint8_t* values, uint32_t first, uint32_t* documents, uint32_t* present) {
  size_t n = 0;
  for (uint32_t i = 0; i < kBlock; i += kStep) {
    const __m512i x = _mm512_cvtepu8_epi32(Load16Bytes(values + i));
    const __m512i document = _mm512_add_epi32(Indices(), _mm512_set1_epi32(static_cast<int>(first + i)));
    const __mmask16 there = _mm512_test_epi32_mask(x, x);
    Store(documents + n, _mm512_maskz_compress_epi32(there, document));
    Store(present + n, _mm512_maskz_compress_epi32(there, x));
    n += static_cast<size_t>(_mm_popcnt_u32(there));
  }
  return n;
}

ASHLAR_AVX512 void LookUpColumn(const std::byte* column, uint32_t width, const uint32_t* documents, size_t n,
                                uint32_t* found) {
  LookUpColumnBy(column, width, documents, n, found);
}

ASHLAR_AVX512 void LookUpBitmap(const std::byte* bitmap, const uint16_t* ranks, const std::byte* values, uint32_t width,
                                const uint32_t* documents, size_t n, uint32_t* found) {
  const auto count = [](uint64_t word) ASHLAR_AVX512 { return static_cast<uint32_t>(_mm_popcnt_u64(word)); };
  LookUpBitmapBy(count, bitmap, ranks, values, width, documents, n, found);
}

ASHLAR_AVX512_INLINE uint64_t Reaching16(const uint16_t* accumulators, __m512i limit) {
  const __mmask32 low = _mm512_cmpge_epu16_mask(Load(accumulators), limit);
  const __mmask32 high = _mm512_cmpge_epu16_mask(Load(accumulators + 32), limit);
  return low | uint64_t{high} << 32;
}

ASHLAR_AVX512 size_t Scan16(const uint16_t* accumulators, uint16_t limit, uint16_t* offsets) {
  const __m512i limits = _mm512_set1_epi16(static_cast<int16_t>(limit));
  size_t found = 0;
  for (size_t d = 0; d < kWindow; d += 64) {
    for (uint64_t bits = Reaching16(accumulators + d, limits); bits != 0; bits &= bits - 1) {
      offsets[found++] = static_cast<uint16_t>(d + static_cast<size_t>(std::countr_zero(bits)));
    }
  }
  return found;
}

// Writes 16 elements where `found` ends, which never passes the element that is looked at.
template <bool take>
ASHLAR_AVX512_INLINE size_t Scan(const int32_t* accumulators, int32_t* cleared, int32_t limit, uint16_t* offsets,
                                 int32_t* scores) {
  const __m512i limits = _mm512_set1_epi32(limit);
  size_t found = 0;
  for (size_t d = 0; d < kWindow; d += kStep) {
    const __m512i x = Load(accumulators + d);
    const __mmask16 reached = _mm512_cmpge_epi32_mask(x, limits);
    if (take) Store(cleared + d, _mm512_setzero_si512());
    if (reached == 0) continue;
    const __m512i at = _mm512_add_epi32(Indices(), _mm512_set1_epi32(static_cast<int>(d)));
    Store(scores + found, _mm512_maskz_compress_epi32(reached, x));
    Store32Bytes(offsets + found, _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(reached, at)));
    found += static_cast<size_t>(_mm_popcnt_u32(reached));
  }
  return found;
}

ASHLAR_AVX512 size_t Scan32(const int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores) {
  return Scan<false>(accumulators, nullptr, limit, offsets, scores);
}

ASHLAR_AVX512 size_t Take32(int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores) {
  return Scan<true>(accumulators, accumulators, limit, offsets, scores);
}

ASHLAR_AVX512 void OrColumn(const std::byte* column, uint32_t width, uint64_t* bitmap) {
  const ByteUnpacker unpacker(width);
  for (size_t w = 0; w < kWindowWords; ++w, column += 8 * width) {
    const __m512i values = unpacker(column);
    bitmap[w] |= _mm512_test_epi8_mask(values, values);
  }
}

ASHLAR_AVX512 void OrBitmap(const std::byte* from, uint64_t* bitmap) {
  for (size_t w = 0; w < kWindowWords; w += 8) {
    Store(bitmap + w, _mm512_or_si512(Load(bitmap + w), Load(from + 8 * w)));
  }
}

// --- search ---

constexpr size_t kSearchStep = 64;

// How many of the first n (at most 16) values are below the target.
ASHLAR_AVX512_INLINE size_t CountBelow(const uint32_t* values, __mmask16 mask, __m512i target) {
  const __m512i x = _mm512_maskz_loadu_epi32(mask, values);
  return static_cast<size_t>(_mm_popcnt_u32(_mm512_mask_cmplt_epu32_mask(mask, x, target)));
}

// Halves to kSearchStep values, and counts among those what is below.
ASHLAR_AVX512 size_t LowerBound(const uint32_t* values, size_t n, uint32_t target) {
  const uint32_t* base = values;
  while (n > kSearchStep) {
    const size_t half = n / 2;
    base += base[half - 1] < target ? half : 0;
    n -= half;
  }
  const __m512i targets = _mm512_set1_epi32(static_cast<int>(target));
  auto index = static_cast<size_t>(base - values);
  for (size_t i = 0; i < n; i += kStep) index += CountBelow(base + i, Below(i, n), targets);
  return index;
}

// Every eighth value; behind n the last one.
ASHLAR_AVX512_INLINE __m512i EndsOfEights(const uint32_t* values, size_t n) {
  if (n < kBlock) {
    alignas(64) uint32_t ends[kStep];
    for (size_t g = 0; g < kStep; ++g) ends[g] = values[std::min(8 * g + 7, n - 1)];
    return Load(ends);
  }
  // Two of each row, by selecting from two rows at a time.
  const __m512i four = _mm512_setr_epi32(7, 15, 23, 31, 7, 15, 23, 31, 7, 15, 23, 31, 7, 15, 23, 31);
  const auto pair = [&](size_t row) ASHLAR_AVX512 {
    return _mm512_permutex2var_epi32(Load(values + row * kStep), four, Load(values + (row + 1) * kStep));
  };
  const __m512i low = _mm512_mask_mov_epi32(pair(0), 0x00F0, pair(2));
  const __m512i high = _mm512_mask_mov_epi32(pair(4), 0xF000, pair(6));
  return _mm512_mask_mov_epi32(low, 0xFF00, high);
}

// The group of eight by the last value of each, then the place in it. Targets do not wait for each other.
ASHLAR_AVX512 size_t Find(const uint32_t* values, size_t n, const uint32_t* targets, size_t m, uint32_t* found,
                          uint32_t* places) {
  static_assert(kBlock == 8 * kStep);
  const __m512i ends = EndsOfEights(values, n);
  const size_t last_group = (n - 1) / 8;
  size_t k = 0;
  for (size_t i = 0; i < m; ++i) {
    const auto target = static_cast<int>(targets[i]);
    const __mmask16 below = _mm512_cmplt_epu32_mask(ends, _mm512_set1_epi32(target));
    const size_t group = std::min<size_t>(static_cast<size_t>(_mm_popcnt_u32(below)), last_group);
    const __mmask8 same = _mm256_cmpeq_epi32_mask(Load32Bytes(values + 8 * group), _mm256_set1_epi32(target));
    const size_t at = 8 * group + static_cast<size_t>(std::countr_zero(same | 0x100u));
    found[k] = static_cast<uint32_t>(i);
    places[k] = static_cast<uint32_t>(at);
    k += same != 0 && at < n ? 1 : 0;
  }
  return k;
}

ASHLAR_AVX512 size_t FirstAtLeast(const int32_t* values, size_t n, int32_t limit) {
  const __m512i limits = _mm512_set1_epi32(limit);
  for (size_t i = 0; i < n; i += kStep) {
    const __mmask16 mask = Below(i, n);
    const __m512i x = _mm512_maskz_loadu_epi32(mask, values + i);
    const __mmask16 reached = _mm512_mask_cmpge_epi32_mask(mask, x, limits);
    if (reached != 0) return i + static_cast<size_t>(std::countr_zero(static_cast<uint32_t>(reached)));
  }
  return n;
}

ASHLAR_AVX512 int32_t Maximum(const int32_t* values, size_t n) {
  __m512i highest = _mm512_set1_epi32(INT32_MIN);
  for (size_t i = 0; i < n; i += kStep) {
    const __mmask16 mask = Below(i, n);
    highest = _mm512_mask_max_epi32(highest, mask, highest, _mm512_maskz_loadu_epi32(mask, values + i));
  }
  return _mm512_reduce_max_epi32(highest);
}

ASHLAR_AVX512 size_t TakeFrequent(const uint32_t* documents, const uint32_t* frequencies, size_t n, uint32_t limit,
                                  uint32_t* taken, uint32_t* taken_frequencies) {
  const __m512i below_all = _mm512_set1_epi32(static_cast<int>(limit - 1));
  size_t k = 0;
  for (size_t i = 0; i < n; i += kStep) {
    const __m512i f = Load(frequencies + i);
    const __mmask16 reached = _mm512_mask_cmplt_epu32_mask(Below(i, n), below_all, f);
    Store(taken + k, _mm512_maskz_compress_epi32(reached, Load(documents + i)));
    Store(taken_frequencies + k, _mm512_maskz_compress_epi32(reached, f));
    k += static_cast<size_t>(_mm_popcnt_u32(reached));
  }
  return k;
}

ASHLAR_AVX512 size_t KeepAtLeast(uint32_t* documents, int32_t* scores, size_t n, int32_t more, int32_t limit) {
  const int64_t least = int64_t{limit} - more;
  if (least > INT32_MAX) return 0;
  const __m512i limits = _mm512_set1_epi32(static_cast<int32_t>(std::max<int64_t>(least, INT32_MIN)));
  size_t kept = 0;
  for (size_t i = 0; i < n; i += kStep) {
    const __m512i d = Load(documents + i), s = Load(scores + i);
    const __mmask16 keep = _mm512_mask_cmpge_epi32_mask(Below(i, n), s, limits);
    Store(documents + kept, _mm512_maskz_compress_epi32(keep, d));
    Store(scores + kept, _mm512_maskz_compress_epi32(keep, s));
    kept += static_cast<size_t>(_mm_popcnt_u32(keep));
  }
  return kept;
}

}  // namespace

const Kernels kAvx512Kernels = {
    .level = Level::kAvx512,
    .name = "avx512",
    .unpack = Unpack,
    .unpack_plus_one = UnpackPlusOne,
    .prefix_sum = PrefixSum,
    .unpack_gaps = UnpackGaps,
    .prefix_sum_lanes = PrefixSumLanes,
    .unpack_lanes = UnpackLanes,
    .unpack_lanes_ascending = UnpackLanesAscending,
    .unpack_bytes = UnpackBytes<false>,
    .unpack_bytes_plus_one = UnpackBytes<true>,
    .bounds = Bounds,
    .contributions_row_u8 = ContributionsOfRow<uint8_t>,
    .contributions_row_u32 = ContributionsOfRow<uint32_t>,
    .contributions_column_u8 = ContributionsOfColumn<uint8_t>,
    .contributions_column_u32 = ContributionsOfColumn<uint32_t>,
    .contributions_fixed_u8 = ContributionsOfFixed<uint8_t>,
    .contributions_fixed_u32 = ContributionsOfFixed<uint32_t>,
    .add_column = AddColumn,
    .add_bitmap = AddBitmap,
    .add_classed_column = AddClassedColumn,
    .add_classed_bitmap = AddClassedBitmap,
    .classify = Classify,
    .take_present = TakePresent,
    .look_up_column = LookUpColumn,
    .look_up_bitmap = LookUpBitmap,
    .scan_16 = Scan16,
    .scan_32 = Scan32,
    .take_32 = Take32,
    .or_column = OrColumn,
    .or_bitmap = OrBitmap,
    .count_bitmap = CountBitmap,
    .lower_bound = LowerBound,
    .find = Find,
    .first_at_least = FirstAtLeast,
    .maximum = Maximum,
    .take_frequent = TakeFrequent,
    .keep_at_least = KeepAtLeast,
};

}  // namespace ashlar::simd

#endif  // __x86_64__
