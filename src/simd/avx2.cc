// The AVX2 level (with BMI and POPCNT, which every processor with AVX2 has).
#ifdef __x86_64__

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/simd/levels.h"
#include "src/simd/look_up.h"
#include "src/simd/score_math.h"
#include "src/simd/unpack_tables.h"

#define ASHLAR_AVX2 __attribute__((target("avx2,bmi,popcnt")))
#define ASHLAR_AVX2_INLINE __attribute__((target("avx2,bmi,popcnt"), always_inline)) inline

namespace ashlar::simd {
namespace {

constexpr size_t kStep = 8;  // numbers of 32 bits in a register

ASHLAR_AVX2_INLINE __m256i Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
ASHLAR_AVX2_INLINE __m128i Load16Bytes(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
ASHLAR_AVX2_INLINE __m128i Load8Bytes(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
ASHLAR_AVX2_INLINE void Store(void* p, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }

// The 16 bytes at each of two places.
ASHLAR_AVX2_INLINE __m256i LoadHalves(const std::byte* low, const std::byte* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(Load16Bytes(low)), Load16Bytes(high), 1);
}

ASHLAR_AVX2_INLINE __m256i Indices() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

// One bit an element.
ASHLAR_AVX2_INLINE uint32_t MaskOf32(__m256i x) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(x)));
}
ASHLAR_AVX2_INLINE uint32_t MaskOf8(__m256i x) { return static_cast<uint32_t>(_mm256_movemask_epi8(x)); }

// --- packed numbers ---

// Takes groups of 8 values of one width apart.
struct GroupUnpacker {
  __m256i bytes, shifts, mask;
  size_t second_half;

  ASHLAR_AVX2_INLINE explicit GroupUnpacker(uint32_t width)
      : bytes(Load(kUnpack8[width].bytes)),
        shifts(Load(kUnpack8[width].shifts)),
        mask(_mm256_set1_epi32(static_cast<int>(kUnpack8[width].mask))),
        second_half(kUnpack8[width].second_half) {}

  ASHLAR_AVX2_INLINE __m256i operator()(const std::byte* group) const {
    const __m256i four_bytes_each = _mm256_shuffle_epi8(LoadHalves(group, group + second_half), bytes);
    return _mm256_and_si256(_mm256_srlv_epi32(four_bytes_each, shifts), mask);
  }
};

ASHLAR_AVX2 void Unpack(const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack(in, n, width, values);
  const GroupUnpacker unpacker(width);
  for (size_t i = 0; i < n; i += kStep, in += width) Store(values + i, unpacker(in));
}

ASHLAR_AVX2 void UnpackPlusOne(const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_plus_one(in, n, width, values);
  const GroupUnpacker unpacker(width);
  const __m256i one = _mm256_set1_epi32(1);
  for (size_t i = 0; i < n; i += kStep, in += width) Store(values + i, _mm256_add_epi32(unpacker(in), one));
}

// x0, x0 + x1, ... in each half
ASHLAR_AVX2_INLINE __m256i PrefixSumsOfHalves(__m256i x) {
  x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
  return _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
}

ASHLAR_AVX2_INLINE __m256i PrefixSums(__m256i x) {
  x = PrefixSumsOfHalves(x);
  const __m256i low_half_above = _mm256_permute2x128_si256(x, x, 0x08);
  return _mm256_add_epi32(x, _mm256_shuffle_epi32(low_half_above, 0xFF));
}

ASHLAR_AVX2_INLINE __m256i BroadcastLast(__m256i x) { return _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(7)); }

// Gaps to documents, eight at a time. `next` is the least document that each of the eight could be.
struct Accumulator {
  __m256i next;

  ASHLAR_AVX2_INLINE explicit Accumulator(uint64_t first_possible)
      : next(_mm256_add_epi32(Indices(), _mm256_set1_epi32(static_cast<int>(first_possible)))) {}

  ASHLAR_AVX2_INLINE __m256i operator()(__m256i gaps) {
    const __m256i sums = PrefixSums(gaps);
    const __m256i documents = _mm256_add_epi32(sums, next);
    next = _mm256_add_epi32(next, _mm256_add_epi32(BroadcastLast(sums), _mm256_set1_epi32(kStep)));
    return documents;
  }
};

// Four groups of eight, four quads deep and two wide: element i of v[j] is element j of its half's quad, and the quads
// of both halves take turns. Twice gives what there was.
ASHLAR_AVX2_INLINE void Transpose(__m256i* v) {
  const __m256i low01 = _mm256_unpacklo_epi32(v[0], v[1]), high01 = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(v[2], v[3]), high23 = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(low01, low23);
  v[1] = _mm256_unpackhi_epi64(low01, low23);
  v[2] = _mm256_unpacklo_epi64(high01, high23);
  v[3] = _mm256_unpackhi_epi64(high01, high23);
}

// Gaps to documents, 32 at a time: sums down the transposed quads take three additions, and only the quads' own sums
// are added up across. `next` is the least document that the first of each quad could be.
struct WideAccumulator {
  __m256i next;

  ASHLAR_AVX2_INLINE explicit WideAccumulator(uint64_t first_possible)
      : next(_mm256_add_epi32(_mm256_setr_epi32(0, 8, 16, 24, 4, 12, 20, 28),
                              _mm256_set1_epi32(static_cast<int>(first_possible)))) {}

  // The least document of each quad, given their sums; and the next ones.
  ASHLAR_AVX2_INLINE __m256i QuadStarts(__m256i sums) {
    const __m256i pair_sums = _mm256_add_epi32(sums, _mm256_permute2x128_si256(sums, sums, 0x01));
    const __m256i inclusive = PrefixSumsOfHalves(pair_sums);
    const __m256i first_of_pair = _mm256_permute2x128_si256(sums, sums, 0x08);  // in the high half
    const __m256i before = _mm256_add_epi32(_mm256_sub_epi32(inclusive, pair_sums), first_of_pair);
    const __m256i starts = _mm256_add_epi32(next, before);
    const __m256i all = _mm256_shuffle_epi32(inclusive, 0xFF);
    next = _mm256_add_epi32(next, _mm256_add_epi32(all, _mm256_set1_epi32(4 * kStep)));
    return starts;
  }

  ASHLAR_AVX2_INLINE void operator()(__m256i* v) {
    Transpose(v);
    for (size_t j = 1; j < 4; ++j) v[j] = _mm256_add_epi32(v[j], v[j - 1]);
    __m256i starts = QuadStarts(v[3]);
    for (size_t j = 0; j < 4; ++j) {
      v[j] = _mm256_add_epi32(v[j], starts);
      starts = _mm256_add_epi32(starts, _mm256_set1_epi32(1));
    }
    Transpose(v);
  }
};

// Adds up the gaps that group(i) gives for each multiple i of 8.
template <class Group>
ASHLAR_AVX2_INLINE void StoreDocuments(const Group& group, size_t n, uint64_t first_possible, uint32_t* documents) {
  constexpr size_t kWide = 4 * kStep;
  WideAccumulator wide(first_possible);
  size_t i = 0;
  for (; i + kWide <= n; i += kWide) {
    __m256i v[4];
    for (size_t j = 0; j < 4; ++j) v[j] = group(i + j * kStep);
    wide(v);
    for (size_t j = 0; j < 4; ++j) Store(documents + i + j * kStep, v[j]);
  }
  if (i == n) return;
  Accumulator accumulator(i == 0 ? first_possible : uint64_t{documents[i - 1]} + 1);
  for (; i < n; i += kStep) Store(documents + i, accumulator(group(i)));
}

struct PlainGroups {
  const uint32_t* values;
  ASHLAR_AVX2_INLINE __m256i operator()(size_t i) const { return Load(values + i); }
};

struct PackedGroups {
  GroupUnpacker unpacker;
  const std::byte* in;
  size_t group_bytes;
  ASHLAR_AVX2_INLINE __m256i operator()(size_t i) const { return unpacker(in + i / kStep * group_bytes); }
};

// The document after the last of n, if their gaps add up to less than 2^32.
inline uint64_t NextDocument(uint64_t first_possible, size_t n, uint32_t last) {
  return first_possible + static_cast<uint32_t>(last - static_cast<uint32_t>(first_possible + n - 1)) + n;
}

// Whether the gaps are so small that kBlock of them add up to less than 2^32. Looks at the padding too.
ASHLAR_AVX2_INLINE bool SumFits(const uint32_t* gaps, size_t n) {
  __m256i all = _mm256_setzero_si256();
  for (size_t i = 0; i < n; i += kStep) all = _mm256_or_si256(all, Load(gaps + i));
  return _mm256_testz_si256(all, _mm256_set1_epi32(static_cast<int>(~((1u << kShuffledWidthMax) - 1)))) != 0;
}

// kBlock gaps of that width add up to less than 2^32.
static_assert(kBlock <= size_t{1} << (32 - kShuffledWidthMax));

ASHLAR_AVX2 uint64_t PrefixSum(uint32_t* values, size_t n, uint32_t width, uint64_t first_possible) {
  if (width > kShuffledWidthMax) return kScalarKernels.prefix_sum(values, n, width, first_possible);
  StoreDocuments(PlainGroups{values}, n, first_possible, values);
  return NextDocument(first_possible, n, values[n - 1]);
}

ASHLAR_AVX2 uint64_t UnpackGaps(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                uint32_t* documents) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_gaps(in, n, width, first_possible, documents);
  StoreDocuments(PackedGroups{GroupUnpacker(width), in, width}, n, first_possible, documents);
  return NextDocument(first_possible, n, documents[n - 1]);
}

constexpr size_t kRowsMax = kBlock / kLanes;
inline size_t RowsOf(size_t n) { return (n + kLanes - 1) / kLanes; }

// What the lanes of a row (two registers) begin to count from, given what their gaps add up to.
struct LaneStarts {
  __m256i low, high;

  ASHLAR_AVX2_INLINE LaneStarts(__m256i low_sums, __m256i high_sums, size_t rows, uint64_t first_possible) {
    const __m256i first = _mm256_set1_epi32(static_cast<int>(first_possible));
    const __m256i a_lane = _mm256_set1_epi32(static_cast<int>(rows));
    const __m256i low_inclusive = PrefixSums(_mm256_add_epi32(low_sums, a_lane));
    const __m256i high_inclusive = PrefixSums(_mm256_add_epi32(high_sums, a_lane));
    low = _mm256_add_epi32(first, _mm256_sub_epi32(low_inclusive, _mm256_add_epi32(low_sums, a_lane)));
    const __m256i before_high = _mm256_add_epi32(first, BroadcastLast(low_inclusive));
    high = _mm256_add_epi32(before_high, _mm256_sub_epi32(high_inclusive, _mm256_add_epi32(high_sums, a_lane)));
  }
};

// Adds what the lanes begin at to their running sums.
ASHLAR_AVX2_INLINE void AddLaneStarts(LaneStarts starts, size_t rows, uint32_t* documents) {
  const __m256i one = _mm256_set1_epi32(1);
  for (size_t v = 0; v < rows; ++v, documents += kLanes) {
    Store(documents, _mm256_add_epi32(Load(documents), starts.low));
    Store(documents + kStep, _mm256_add_epi32(Load(documents + kStep), starts.high));
    starts.low = _mm256_add_epi32(starts.low, one);
    starts.high = _mm256_add_epi32(starts.high, one);
  }
}

inline uint64_t NextDocumentOfLanes(const uint32_t* documents, size_t n, uint64_t first_possible) {
  const size_t rows = RowsOf(n);
  // The last of all 16 r, which is beyond n by as many documents.
  const uint64_t next = NextDocument(first_possible, rows * kLanes, documents[rows * kLanes - 1]);
  return next - (rows * kLanes - n);
}

ASHLAR_AVX2 uint64_t PrefixSumLanes(uint32_t* values, size_t n, uint64_t first_possible) {
  const size_t rows = RowsOf(n);
  if (!SumFits(values, rows * kLanes)) return kScalarKernels.prefix_sum_lanes(values, n, first_possible);
  __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  for (size_t v = 0; v < rows; ++v) {
    low = _mm256_add_epi32(low, Load(values + v * kLanes));
    high = _mm256_add_epi32(high, Load(values + v * kLanes + kStep));
    Store(values + v * kLanes, low);
    Store(values + v * kLanes + kStep, high);
  }
  AddLaneStarts(LaneStarts(low, high, rows, first_possible), rows, values);
  return NextDocumentOfLanes(values, n, first_possible);
}

// `rows` is a constant for whole blocks, so that the loops unroll.
ASHLAR_AVX2_INLINE void UnpackRows(const std::byte* in, size_t rows, uint32_t width, uint64_t first_possible,
                                   uint32_t* documents) {
  const GroupUnpacker unpacker(width);
  __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  for (size_t v = 0; v < rows; ++v, in += 2 * width) {
    low = _mm256_add_epi32(low, unpacker(in));
    high = _mm256_add_epi32(high, unpacker(in + width));
    Store(documents + v * kLanes, low);
    Store(documents + v * kLanes + kStep, high);
  }
  AddLaneStarts(LaneStarts(low, high, rows, first_possible), rows, documents);
}

ASHLAR_AVX2 uint64_t UnpackLanes(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                 uint32_t* documents) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_lanes(in, n, width, first_possible, documents);
  const size_t rows = RowsOf(n);
  if (rows == kRowsMax) {
    UnpackRows(in, kRowsMax, width, first_possible, documents);
  } else {
    UnpackRows(in, rows, width, first_possible, documents);
  }
  return NextDocumentOfLanes(documents, n, first_possible);
}

// Eight rows of eight, `stride` apart, to eight columns one after the other.
ASHLAR_AVX2_INLINE void Transpose8(const uint32_t* rows, size_t stride, uint32_t* columns) {
  // Rows r and r + 4 side by side, so that no step below crosses from half to half.
  __m256i sides[2][4];
  for (size_t half = 0; half < 2; ++half) {
    for (size_t r = 0; r < 4; ++r) {
      const uint32_t* row = rows + r * stride + 4 * half;
      sides[half][r] =
          LoadHalves(reinterpret_cast<const std::byte*>(row), reinterpret_cast<const std::byte*>(row + 4 * stride));
    }
  }
  for (size_t half = 0; half < 2; ++half) {
    const __m256i* s = sides[half];
    const __m256i low01 = _mm256_unpacklo_epi32(s[0], s[1]), high01 = _mm256_unpackhi_epi32(s[0], s[1]);
    const __m256i low23 = _mm256_unpacklo_epi32(s[2], s[3]), high23 = _mm256_unpackhi_epi32(s[2], s[3]);
    uint32_t* out = columns + 32 * half;
    Store(out, _mm256_unpacklo_epi64(low01, low23));
    Store(out + 8, _mm256_unpackhi_epi64(low01, low23));
    Store(out + 16, _mm256_unpacklo_epi64(high01, high23));
    Store(out + 24, _mm256_unpackhi_epi64(high01, high23));
  }
}

ASHLAR_AVX2 uint64_t UnpackLanesAscending(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                                          uint32_t* documents) {
  if (width > kShuffledWidthMax) return kScalarKernels.unpack_lanes_ascending(in, n, width, first_possible, documents);
  alignas(64) uint32_t transposed[kBlock];
  const size_t rows = RowsOf(n);
  if (rows == kRowsMax) {
    UnpackRows(in, kRowsMax, width, first_possible, transposed);
    Transpose8(transposed, kLanes, documents);
    Transpose8(transposed + kStep, kLanes, documents + kBlock / 2);
  } else {
    UnpackRows(in, rows, width, first_possible, transposed);
    for (size_t l = 0; l < kLanes; ++l) {
      for (size_t v = 0; v < rows; ++v) documents[l * rows + v] = transposed[v * kLanes + l];
    }
  }
  return NextDocumentOfLanes(transposed, n, first_possible);
}

// --- packed bytes ---

// Takes groups of 32 values of up to 8 bits apart.
struct ByteUnpacker {
  __m256i bytes, factors, mask;
  size_t width;

  ASHLAR_AVX2_INLINE explicit ByteUnpacker(uint32_t w)
      : bytes(Load(kUnpackBytes8[w].bytes)),
        factors(Load(kUnpackBytes8[w].factors)),
        mask(_mm256_set1_epi8(static_cast<char>((1u << w) - 1))),
        width(w) {}

  ASHLAR_AVX2_INLINE __m256i TwoGroups(const std::byte* low, const std::byte* high) const {
    const __m256i two_bytes_each = _mm256_shuffle_epi8(LoadHalves(low, high), bytes);
    return _mm256_srli_epi16(_mm256_mullo_epi16(two_bytes_each, factors), 8);
  }
  // Packing goes half by half, so groups 0 and 2 come first.
  ASHLAR_AVX2_INLINE __m256i operator()(const std::byte* in) const {
    const __m256i even = TwoGroups(in, in + 2 * width), odd = TwoGroups(in + width, in + 3 * width);
    return _mm256_and_si256(_mm256_packus_epi16(even, odd), mask);
  }
};

constexpr size_t kByteStep = 32;

template <bool plus_one>
ASHLAR_AVX2 void UnpackBytes(const std::byte* in, size_t n, uint32_t width, uint8_t* values) {
  const ByteUnpacker unpacker(width);
  for (size_t i = 0; i < n; i += kByteStep, in += 4 * width) {
    __m256i x = unpacker(in);
    if (plus_one) x = _mm256_adds_epu8(x, _mm256_set1_epi8(1));
    Store(values + i, x);
  }
}

// --- scores ---

ASHLAR_AVX2_INLINE __m256 ContributionFloat(__m256 weight, __m256 f, __m256 sum) {
  return _mm256_div_ps(_mm256_mul_ps(weight, f), sum);
}

// LengthOfCode.
ASHLAR_AVX2_INLINE __m256 LengthsOfCodes(__m256i codes) {
  const __m256 exact = _mm256_cvtepi32_ps(codes);
  const __m256i coarse =
      _mm256_add_epi32(_mm256_slli_epi32(codes, kCodeShift), _mm256_set1_epi32(static_cast<int>(kCodeBias)));
  const __m256i is_exact = _mm256_cmpgt_epi32(_mm256_set1_epi32(kExactCodes), codes);
  return _mm256_blendv_ps(_mm256_castsi256_ps(coarse), exact, _mm256_castsi256_ps(is_exact));
}

ASHLAR_AVX2_INLINE __m256 FrequenciesOfCodes(__m256i codes) {
  const __m256i is_last = _mm256_cmpeq_epi32(codes, _mm256_set1_epi32(kCodeMax));
  return _mm256_blendv_ps(LengthsOfCodes(codes), _mm256_set1_ps(kFrequencyOfLastCode), _mm256_castsi256_ps(is_last));
}

struct ScoringVector {
  __m256 weight, a, b;
  ASHLAR_AVX2_INLINE explicit ScoringVector(Scoring s)
      : weight(_mm256_set1_ps(s.weight)), a(_mm256_set1_ps(s.a)), b(_mm256_set1_ps(s.b)) {}
  ASHLAR_AVX2_INLINE __m256 K(__m256 lengths) const { return _mm256_add_ps(a, _mm256_mul_ps(b, lengths)); }
};

// BoundOf, but below 0 (not a number) where frequency and K are 0.
ASHLAR_AVX2_INLINE __m256i BoundsOf(__m256 weight, __m256 f, __m256 k) {
  const __m256 sum = _mm256_add_ps(f, k);
  const __m256i c = _mm256_cvtps_epi32(ContributionFloat(weight, f, sum));
  const __m256 growth = _mm256_mul_ps(f, sum), limit = _mm256_mul_ps(k, _mm256_set1_ps(kGrowthLimit));
  const __m256i grows = _mm256_castps_si256(_mm256_cmp_ps(growth, limit, _CMP_LE_OQ));
  const __m256i slack = _mm256_add_epi32(_mm256_srai_epi32(c, kSlackShift), _mm256_set1_epi32(1));
  return _mm256_add_epi32(c, _mm256_andnot_si256(grows, slack));
}

ASHLAR_AVX2 void Bounds(const uint8_t* frequency_codes, const uint8_t* length_codes, size_t stride, size_t pairs,
                        size_t n, Scoring scoring, int32_t* out) {
  const ScoringVector s(scoring);
  for (size_t i = 0; i < n; i += kStep) {
    __m256i highest = _mm256_setzero_si256();
    for (size_t p = 0; p < pairs; ++p) {
      const __m256i frequencies = _mm256_cvtepu8_epi32(Load8Bytes(frequency_codes + p * stride + i));
      const __m256i lengths = _mm256_cvtepu8_epi32(Load8Bytes(length_codes + p * stride + i));
      const __m256i bounds = BoundsOf(s.weight, FrequenciesOfCodes(frequencies), s.K(LengthsOfCodes(lengths)));
      highest = _mm256_max_epi32(highest, bounds);
    }
    Store(out + i, highest);
  }
}

ASHLAR_AVX2_INLINE __m256 LoadFrequencies(const uint8_t* frequencies) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(Load8Bytes(frequencies)));
}
// AVX2 converts signed numbers only. Both halves convert exactly, so the sum is the one rounding.
ASHLAR_AVX2_INLINE __m256 LoadFrequencies(const uint32_t* frequencies) {
  const __m256i x = Load(frequencies);
  const __m256 high = _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 16));
  const __m256 low = _mm256_cvtepi32_ps(_mm256_and_si256(x, _mm256_set1_epi32(0xFFFF)));
  return _mm256_add_ps(_mm256_mul_ps(high, _mm256_set1_ps(65536.0f)), low);
}

ASHLAR_AVX2_INLINE __m256i Contributions(__m256 weight, __m256 f, __m256 k) {
  return _mm256_cvtps_epi32(ContributionFloat(weight, f, _mm256_add_ps(f, k)));
}

// Which of the eight elements from i on are below n: all bits or none.
ASHLAR_AVX2_INLINE __m256i Below(size_t i, size_t n) {
  const auto left = static_cast<int>(std::min(n - i, kStep));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(left), Indices());
}

ASHLAR_AVX2_INLINE __m256i Escaped(__m256i lengths) {
  return _mm256_cmpeq_epi32(lengths, _mm256_set1_epi32(kLengthEscaped));
}

template <class Frequency>
ASHLAR_AVX2 bool ContributionsOfRow(const Frequency* frequencies, const std::byte* lengths, size_t n, Scoring scoring,
                                    int32_t* out) {
  const ScoringVector s(scoring);
  __m256i escaped = _mm256_setzero_si256();
  for (size_t i = 0; i < n; i += kStep) {
    const __m256i l = _mm256_cvtepu16_epi32(Load16Bytes(lengths + 2 * i));
    escaped = _mm256_or_si256(escaped, _mm256_and_si256(Escaped(l), Below(i, n)));
    Store(out + i, Contributions(s.weight, LoadFrequencies(frequencies + i), s.K(_mm256_cvtepi32_ps(l))));
  }
  return _mm256_testz_si256(escaped, escaped) == 0;
}

// The lengths of documents, as a row, block by block. Plain loads: a gather was no faster where it was measured (AMD
// Zen 3), and is slower where microcode protects it (Intel before 2023).
template <class Frequency>
ASHLAR_AVX2 bool ContributionsOfColumn(const Frequency* frequencies, const std::byte* column, const uint32_t* documents,
                                       size_t n, Scoring scoring, int32_t* out) {
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
ASHLAR_AVX2 void ContributionsOfFixed(const Frequency* frequencies, size_t n, float weight, float k, int32_t* out) {
  const __m256 w = _mm256_set1_ps(weight), ks = _mm256_set1_ps(k);
  for (size_t i = 0; i < n; i += kStep) Store(out + i, Contributions(w, LoadFrequencies(frequencies + i), ks));
}

// --- windows ---

// A table of 2^width bytes as shuffles of 16, and their application to 32 values.
template <size_t tables>
struct TableLookup {
  __m256i parts[tables];

  ASHLAR_AVX2_INLINE explicit TableLookup(const uint8_t* table) {
    for (size_t t = 0; t < tables; ++t) parts[t] = _mm256_broadcastsi128_si256(Load16Bytes(table + 16 * t));
  }
  // A shuffle gives 0 where bit 7 is set. Saturating, v - 16 t + 0x70 has bit 7 clear only for v in [16 t, 16 t + 16),
  // and then its low half is v's.
  ASHLAR_AVX2_INLINE __m256i operator()(__m256i values) const {
    if (tables == 1) return _mm256_shuffle_epi8(parts[0], values);
    __m256i found = _mm256_setzero_si256();
    for (size_t t = 0; t < tables; ++t) {
      const __m256i relative = _mm256_sub_epi8(values, _mm256_set1_epi8(static_cast<char>(16 * t)));
      const __m256i index = _mm256_adds_epu8(relative, _mm256_set1_epi8(0x70));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(parts[t], index));
    }
    return found;
  }
};

ASHLAR_AVX2_INLINE void AddBytes16(uint16_t* accumulators, __m128i bytes) {
  Store(accumulators, _mm256_adds_epu16(Load(accumulators), _mm256_cvtepu8_epi16(bytes)));
}

template <size_t tables>
ASHLAR_AVX2 void AddColumnThrough(const std::byte* column, uint32_t width, const uint8_t* table,
                                  uint16_t* accumulators) {
  const ByteUnpacker unpacker(width);
  const TableLookup<tables> lookup(table);
  for (size_t d = 0; d < kWindow; d += kByteStep, column += 4 * width) {
    const __m256i contributions = lookup(unpacker(column));
    AddBytes16(accumulators + d, _mm256_castsi256_si128(contributions));
    AddBytes16(accumulators + d + 16, _mm256_extracti128_si256(contributions, 1));
  }
}

ASHLAR_AVX2 void AddColumn(const std::byte* column, uint32_t width, const uint8_t* table, uint16_t* accumulators) {
  switch (width) {
    case 8:
      return AddColumnThrough<16>(column, width, table, accumulators);
    case 7:
      return AddColumnThrough<8>(column, width, table, accumulators);
    case 6:
      return AddColumnThrough<4>(column, width, table, accumulators);
    case 5:
      return AddColumnThrough<2>(column, width, table, accumulators);
    default:
      return AddColumnThrough<1>(column, width, table, accumulators);
  }
}

ASHLAR_AVX2 size_t CountBitmap(const uint64_t* bitmap) {
  size_t count = 0;
  for (size_t w = 0; w < kWindowWords; ++w) count += static_cast<size_t>(_mm_popcnt_u64(bitmap[w]));
  return count;
}

template <size_t tables>
ASHLAR_AVX2 void LookUpPacked(const std::byte* in, size_t n, uint32_t width, const uint8_t* table, uint8_t* found) {
  const ByteUnpacker unpacker(width);
  const TableLookup<tables> lookup(table);
  for (size_t i = 0; i < n; i += kByteStep, in += 4 * width) Store(found + i, lookup(unpacker(in)));
}

ASHLAR_AVX2 void LookUp(const std::byte* in, size_t n, uint32_t width, const uint8_t* table, uint8_t* found) {
  switch (width) {
    case 8:
      return LookUpPacked<16>(in, n, width, table, found);
    case 7:
      return LookUpPacked<8>(in, n, width, table, found);
    case 6:
      return LookUpPacked<4>(in, n, width, table, found);
    case 5:
      return LookUpPacked<2>(in, n, width, table, found);
    default:
      return LookUpPacked<1>(in, n, width, table, found);
  }
}

// The bytes at `next` spread over the set bits of 16, zeros elsewhere.
ASHLAR_AVX2_INLINE __m128i Spread16(const uint8_t* next, uint32_t bits) {
  const uint32_t low = bits & 0xFF, high = bits >> 8;
  const auto in_low = static_cast<uint8_t>(_mm_popcnt_u32(low));
  const uint64_t low_order = std::bit_cast<uint64_t>(kSpread8[low]);
  // The high eight go on where the low ones ended. 0x80 plus at most 8 still has bit 7.
  const uint64_t high_order = std::bit_cast<uint64_t>(kSpread8[high]) + in_low * 0x0101010101010101u;
  const __m128i order = _mm_set_epi64x(static_cast<int64_t>(high_order), static_cast<int64_t>(low_order));
  return _mm_shuffle_epi8(Load16Bytes(next), order);
}

ASHLAR_AVX2 void AddBitmap(const std::byte* bitmap, const std::byte* values, uint32_t width, const uint8_t* table,
                           uint16_t* accumulators) {
  uint64_t words[kWindowWords];
  std::memcpy(words, bitmap, sizeof words);
  alignas(64) uint8_t contributions[kWindow + kByteStep];
  LookUp(values, CountBitmap(words), width, table, contributions);
  const uint8_t* next = contributions;
  for (size_t w = 0; w < kWindowWords; ++w) {
    for (uint32_t part = 0; part < 64; part += 16) {
      const auto bits = static_cast<uint32_t>(words[w] >> part) & 0xFFFF;
      AddBytes16(accumulators + 64 * w + part, Spread16(next, bits));
      next += _mm_popcnt_u32(bits);
    }
  }
}

ASHLAR_AVX2 void AddClassedColumn(const std::byte* column, uint32_t width, const uint8_t* classes, const uint8_t* table,
                                  uint16_t* accumulators) {
  const ByteUnpacker unpacker(width);
  const TableLookup<4> lookup(table);
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(ClassMask(width)));
  for (size_t d = 0; d < kWindow; d += kByteStep, column += 4 * width) {
    const __m256i of_class = _mm256_and_si256(Load(classes + d), mask);
    const __m256i contributions = lookup(_mm256_or_si256(unpacker(column), of_class));
    AddBytes16(accumulators + d, _mm256_castsi256_si128(contributions));
    AddBytes16(accumulators + d + 16, _mm256_extracti128_si256(contributions, 1));
  }
}

// 0xFF for each of 16 bits that is set.
ASHLAR_AVX2_INLINE __m128i BytesOfBits16(uint32_t bits) {
  const __m128i spread = _mm_shuffle_epi8(_mm_set1_epi16(static_cast<int16_t>(bits)),
                                          _mm_set_epi64x(0x0101010101010101, 0x0000000000000000));
  const __m128i each = _mm_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  return _mm_cmpeq_epi8(_mm_and_si128(spread, each), each);
}

ASHLAR_AVX2 void AddClassedBitmap(const std::byte* bitmap, const std::byte* values, uint32_t width,
                                  const uint8_t* classes, const uint8_t* table, uint16_t* accumulators) {
  uint64_t words[kWindowWords];
  std::memcpy(words, bitmap, sizeof words);
  alignas(64) uint8_t unpacked[kWindow + kByteStep];
  UnpackBytes<false>(values, CountBitmap(words), width, unpacked);
  const TableLookup<4> lookup(table);
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(ClassMask(width)));
  const uint8_t* next = unpacked;
  for (size_t d = 0; d < kWindow; d += kByteStep) {
    const auto bits = static_cast<uint32_t>(words[d / 64] >> (d % 64));
    const uint32_t low = bits & 0xFFFF, high = bits >> 16;
    const __m128i first = Spread16(next, low);
    next += _mm_popcnt_u32(low);
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(first), Spread16(next, high), 1);
    next += _mm_popcnt_u32(high);
    const __m256i there = _mm256_inserti128_si256(_mm256_castsi128_si256(BytesOfBits16(low)), BytesOfBits16(high), 1);
    const __m256i of_class = _mm256_and_si256(Load(classes + d), mask);
    const __m256i contributions = _mm256_and_si256(lookup(_mm256_or_si256(both, of_class)), there);
    AddBytes16(accumulators + d, _mm256_castsi256_si128(contributions));
    AddBytes16(accumulators + d + 16, _mm256_extracti128_si256(contributions, 1));
  }
}

ASHLAR_AVX2_INLINE __m256i AtLeastU16(__m256i x, __m256i limit) {
  return _mm256_cmpeq_epi16(_mm256_subs_epu16(limit, x), _mm256_setzero_si256());
}

// Twice the classes of 16 lengths.
ASHLAR_AVX2_INLINE __m256i ClassesOf16(__m256i lengths, __m256i floor, __m256i scale) {
  const __m256i scaled = _mm256_mulhi_epu16(_mm256_subs_epu16(lengths, floor), scale);
  return _mm256_slli_epi16(_mm256_min_epu16(scaled, _mm256_set1_epi16(kLengthClasses - 1)), 1);
}

ASHLAR_AVX2 void Classify(const std::byte* lengths, size_t n, uint16_t floor, uint16_t scale, uint8_t* classes) {
  const __m256i floors = _mm256_set1_epi16(static_cast<int16_t>(floor));
  const __m256i scales = _mm256_set1_epi16(static_cast<int16_t>(scale));
  for (size_t i = 0; i < n; i += 32) {
    const __m256i low = ClassesOf16(Load(lengths + 2 * i), floors, scales);
    const __m256i high = ClassesOf16(Load(lengths + 2 * i + 32), floors, scales);
    // Packing goes half by half.
    Store(classes + i, _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0b11'01'10'00));
  }
}

ASHLAR_AVX2 void LookUpColumn(const std::byte* column, uint32_t width, const uint32_t* documents, size_t n,
                              uint32_t* found) {
  LookUpColumnBy(column, width, documents, n, found);
}

ASHLAR_AVX2 void LookUpBitmap(const std::byte* bitmap, const uint16_t* ranks, const std::byte* values, uint32_t width,
                              const uint32_t* documents, size_t n, uint32_t* found) {
  const auto count = [](uint64_t word) ASHLAR_AVX2 { return static_cast<uint32_t>(_mm_popcnt_u64(word)); };
  LookUpBitmapBy(count, bitmap, ranks, values, width, documents, n, found);
}

constexpr size_t kScanStep = 64;  // accumulators that are asked at once whether any reaches the limit

ASHLAR_AVX2_INLINE bool AnyReaches16(const uint16_t* accumulators, __m256i limit) {
  const __m256i highest = _mm256_max_epu16(_mm256_max_epu16(Load(accumulators), Load(accumulators + 16)),
                                           _mm256_max_epu16(Load(accumulators + 32), Load(accumulators + 48)));
  return MaskOf8(AtLeastU16(highest, limit)) != 0;
}

// One bit for each of 32 accumulators.
ASHLAR_AVX2_INLINE uint32_t Reaching16(const uint16_t* accumulators, __m256i limit) {
  const __m256i packed =
      _mm256_packs_epi16(AtLeastU16(Load(accumulators), limit), AtLeastU16(Load(accumulators + 16), limit));
  return MaskOf8(_mm256_permute4x64_epi64(packed, 0b11'01'10'00));  // packing goes half by half
}

ASHLAR_AVX2 size_t Scan16(const uint16_t* accumulators, uint16_t limit, uint16_t* offsets) {
  const __m256i limits = _mm256_set1_epi16(static_cast<int16_t>(limit));
  size_t found = 0;
  for (size_t begin = 0; begin < kWindow; begin += kScanStep) {
    if (!AnyReaches16(accumulators + begin, limits)) continue;
    for (size_t d = begin; d < begin + kScanStep; d += 32) {
      for (uint32_t bits = Reaching16(accumulators + d, limits); bits != 0; bits &= bits - 1) {
        offsets[found++] = static_cast<uint16_t>(d + static_cast<size_t>(std::countr_zero(bits)));
      }
    }
  }
  return found;
}

ASHLAR_AVX2_INLINE __m256i HighestOf32(const int32_t* accumulators) {
  __m256i highest = Load(accumulators);
  for (size_t i = kStep; i < kScanStep; i += kStep) highest = _mm256_max_epi32(highest, Load(accumulators + i));
  return highest;
}

template <bool take>
ASHLAR_AVX2_INLINE size_t Scan(const int32_t* accumulators, int32_t* cleared, int32_t limit, uint16_t* offsets,
                               int32_t* scores) {
  const __m256i limits = _mm256_set1_epi32(limit);
  size_t found = 0;
  for (size_t begin = 0; begin < kWindow; begin += kScanStep) {
    if (MaskOf32(_mm256_cmpgt_epi32(limits, HighestOf32(accumulators + begin))) != 0xFF) {
      for (size_t d = begin; d < begin + kScanStep; d += kStep) {
        uint32_t bits = MaskOf32(_mm256_cmpgt_epi32(limits, Load(accumulators + d))) ^ 0xFF;
        for (; bits != 0; bits &= bits - 1) {
          const size_t at = d + static_cast<size_t>(std::countr_zero(bits));
          offsets[found] = static_cast<uint16_t>(at);
          scores[found++] = accumulators[at];
        }
      }
    }
    if (!take) continue;
    for (size_t d = begin; d < begin + kScanStep; d += kStep) Store(cleared + d, _mm256_setzero_si256());
  }
  return found;
}

ASHLAR_AVX2 size_t Scan32(const int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores) {
  return Scan<false>(accumulators, nullptr, limit, offsets, scores);
}

ASHLAR_AVX2 size_t Take32(int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores) {
  return Scan<true>(accumulators, accumulators, limit, offsets, scores);
}

// One bit for each of 32 documents whose value is not 0.
ASHLAR_AVX2_INLINE uint32_t Present32(const ByteUnpacker& unpacker, const std::byte* column) {
  return ~MaskOf8(_mm256_cmpeq_epi8(unpacker(column), _mm256_setzero_si256()));
}

ASHLAR_AVX2 void OrColumn(const std::byte* column, uint32_t width, uint64_t* bitmap) {
  const ByteUnpacker unpacker(width);
  for (size_t w = 0; w < kWindowWords; ++w, column += 8 * width) {
    bitmap[w] |= Present32(unpacker, column) | uint64_t{Present32(unpacker, column + 4 * width)} << 32;
  }
}

ASHLAR_AVX2 void OrBitmap(const std::byte* from, uint64_t* bitmap) {
  for (size_t w = 0; w < kWindowWords; w += 4) {
    Store(bitmap + w, _mm256_or_si256(Load(bitmap + w), Load(from + 8 * w)));
  }
}

// --- search ---

constexpr size_t kSearchStep = 32;

// The group of eight by the last value of each, then the place in it. Targets do not wait for each other.
ASHLAR_AVX2 size_t Find(const uint32_t* values, size_t n, const uint32_t* targets, size_t m, uint32_t* found,
                        uint32_t* places) {
  static_assert(kBlock == 16 * kStep);
  const __m256i sign = _mm256_set1_epi32(INT32_MIN);  // comparisons are signed
  alignas(32) uint32_t ends_of_groups[2 * kStep];
  for (size_t g = 0; g < 2 * kStep; ++g) ends_of_groups[g] = values[std::min(8 * g + 7, n - 1)];
  const __m256i low = _mm256_xor_si256(Load(ends_of_groups), sign);
  const __m256i high = _mm256_xor_si256(Load(ends_of_groups + kStep), sign);
  const size_t last_group = (n - 1) / 8;
  size_t k = 0;
  for (size_t i = 0; i < m; ++i) {
    const __m256i target = _mm256_set1_epi32(static_cast<int>(targets[i]));
    const __m256i flipped = _mm256_xor_si256(target, sign);
    const uint32_t below = MaskOf32(_mm256_cmpgt_epi32(flipped, low)) | MaskOf32(_mm256_cmpgt_epi32(flipped, high))
                                                                            << kStep;
    const size_t group = std::min<size_t>(static_cast<size_t>(std::popcount(below)), last_group);
    const uint32_t same = MaskOf32(_mm256_cmpeq_epi32(Load(values + 8 * group), target));
    const size_t at = 8 * group + static_cast<size_t>(std::countr_zero(same | 0x100u));
    found[k] = static_cast<uint32_t>(i);
    places[k] = static_cast<uint32_t>(at);
    k += same != 0 && at < n ? 1 : 0;
  }
  return k;
}

// One bit for each of eight values at or above the target.
ASHLAR_AVX2_INLINE uint32_t AtLeastU32(const uint32_t* values, __m256i target) {
  const __m256i x = Load(values);
  return MaskOf32(_mm256_cmpeq_epi32(_mm256_max_epu32(x, target), x));
}

// Halves to kSearchStep values, and looks at all of those.
ASHLAR_AVX2 size_t LowerBound(const uint32_t* values, size_t n, uint32_t target) {
  if (n < kSearchStep) return kScalarKernels.lower_bound(values, n, target);
  const uint32_t* base = values;
  size_t left = n;
  while (left > kSearchStep) {
    const size_t half = left / 2;
    base += base[half - 1] < target ? half : 0;
    left -= half;
  }
  // What stands before base is below the target, so a step that begins earlier still finds the same.
  base = std::min(base, values + (n - kSearchStep));
  const __m256i targets = _mm256_set1_epi32(static_cast<int>(target));
  uint32_t reached = AtLeastU32(base, targets);
  for (size_t i = kStep; i < kSearchStep; i += kStep) reached |= AtLeastU32(base + i, targets) << i;
  return static_cast<size_t>(base - values) + static_cast<size_t>(std::countr_zero(reached));
}

// One bit for each of 32 values at or above the limit.
ASHLAR_AVX2_INLINE uint32_t AtLeast32(const int32_t* values, __m256i limit) {
  uint32_t below = 0;
  for (size_t i = 0; i < kSearchStep; i += kStep) {
    below |= MaskOf32(_mm256_cmpgt_epi32(limit, Load(values + i))) << i;
  }
  return ~below;
}

ASHLAR_AVX2 size_t FirstAtLeast(const int32_t* values, size_t n, int32_t limit) {
  const __m256i limits = _mm256_set1_epi32(limit);
  size_t i = 0;
  for (; i + kSearchStep <= n; i += kSearchStep) {
    const uint32_t reached = AtLeast32(values + i, limits);
    if (reached != 0) return i + static_cast<size_t>(std::countr_zero(reached));
  }
  while (i < n && values[i] < limit) ++i;
  return i;
}

ASHLAR_AVX2 int32_t Maximum(const int32_t* values, size_t n) {
  __m256i highest = _mm256_set1_epi32(INT32_MIN);
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) highest = _mm256_max_epi32(highest, Load(values + i));
  alignas(32) int32_t lanes[kStep];
  Store(lanes, highest);
  return std::max(kScalarKernels.maximum(lanes, kStep), kScalarKernels.maximum(values + i, n - i));
}

ASHLAR_AVX2_INLINE __m256i MoveTogether(__m256i x, uint32_t bits) {
  return _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(Load8Bytes(kGather8[bits].bytes)));
}

ASHLAR_AVX2 size_t TakeFrequent(const uint32_t* documents, const uint32_t* frequencies, size_t n, uint32_t limit,
                                uint32_t* taken, uint32_t* taken_frequencies) {
  const __m256i limits = _mm256_set1_epi32(static_cast<int>(limit));
  size_t k = 0;
  for (size_t i = 0; i < n; i += kStep) {
    const __m256i f = Load(frequencies + i);
    const uint32_t reached = MaskOf32(_mm256_cmpeq_epi32(_mm256_max_epu32(f, limits), f));
    const uint32_t bits = reached & (n - i < kStep ? (1u << (n - i)) - 1 : 0xFF);
    Store(taken + k, MoveTogether(Load(documents + i), bits));
    Store(taken_frequencies + k, MoveTogether(f, bits));
    k += static_cast<size_t>(_mm_popcnt_u32(bits));
  }
  return k;
}

ASHLAR_AVX2 size_t KeepAtLeast(uint32_t* documents, int32_t* scores, size_t n, int32_t more, int32_t limit) {
  const int64_t least = int64_t{limit} - more;
  if (least > INT32_MAX) return 0;
  const __m256i limits = _mm256_set1_epi32(static_cast<int32_t>(std::max<int64_t>(least, INT32_MIN)));
  size_t kept = 0;
  for (size_t i = 0; i < n; i += kStep) {
    const __m256i d = Load(documents + i), s = Load(scores + i);
    const uint32_t below = MaskOf32(_mm256_cmpgt_epi32(limits, s));
    const uint32_t bits = ~below & (n - i < kStep ? (1u << (n - i)) - 1 : 0xFF);
    Store(documents + kept, MoveTogether(d, bits));
    Store(scores + kept, MoveTogether(s, bits));
    kept += static_cast<size_t>(_mm_popcnt_u32(bits));
  }
  return kept;
}

}  // namespace

const Kernels kAvx2Kernels = {
    .level = Level::kAvx2,
    .name = "avx2",
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
    .take_present = kScalarKernels.take_present,
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
