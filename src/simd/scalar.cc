// The scalar level: the oracle of the others. Loops are written so that a compiler can vectorise them for any x86-64.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "src/base/bytes.h"
#include "src/simd/levels.h"
#include "src/simd/look_up.h"
#include "src/simd/score_math.h"

namespace ashlar::simd {
namespace {

// --- packed numbers ---

constexpr size_t kGroup = 8;  // eight values of any width end on a byte
constexpr uint32_t kWidths = 33;

template <uint32_t width, size_t i>
inline uint32_t ValueOfGroup(const std::byte* group) {
  constexpr uint64_t kMask = (uint64_t{1} << width) - 1;
  return static_cast<uint32_t>((LoadU64(group + i * width / 8) >> (i * width % 8)) & kMask);
}

template <uint32_t width, size_t... i>
inline void UnpackGroup(const std::byte* group, uint32_t* values, std::index_sequence<i...>) {
  ((values[i] = ValueOfGroup<width, i>(group)), ...);
}

template <uint32_t width>
void UnpackWidth(const std::byte* in, size_t n, uint32_t* values) {
  for (size_t done = 0; done < n; done += kGroup, in += width, values += kGroup) {
    UnpackGroup<width>(in, values, std::make_index_sequence<kGroup>());
  }
}

template <>
void UnpackWidth<0>(const std::byte*, size_t n, uint32_t* values) {
  std::fill_n(values, n, 0u);
}

using UnpackFunction = void (*)(const std::byte*, size_t, uint32_t*);

template <uint32_t... width>
constexpr std::array<UnpackFunction, kWidths> UnpackTable(std::integer_sequence<uint32_t, width...>) {
  return {UnpackWidth<width>...};
}
constexpr auto kUnpack = UnpackTable(std::make_integer_sequence<uint32_t, kWidths>());

void Unpack(const std::byte* in, size_t n, uint32_t width, uint32_t* values) { kUnpack[width](in, n, values); }

void UnpackPlusOne(const std::byte* in, size_t n, uint32_t width, uint32_t* values) {
  Unpack(in, n, width, values);
  for (size_t i = 0; i < n; ++i) ++values[i];
}

uint64_t PrefixSum(uint32_t* values, size_t n, uint32_t, uint64_t first_possible) {
  uint64_t sum = first_possible;
  for (size_t i = 0; i < n; ++i) {
    sum += values[i];
    values[i] = static_cast<uint32_t>(sum + i);
  }
  return sum + n;
}

uint64_t UnpackGaps(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible, uint32_t* documents) {
  Unpack(in, n, width, documents);
  return PrefixSum(documents, n, width, first_possible);
}

size_t RowsOf(size_t n) { return (n + kLanes - 1) / kLanes; }

uint64_t SumOf(const uint32_t* values, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += values[i];
  return sum;
}

// Down the lanes first, then from lane to lane.
uint64_t PrefixSumLanes(uint32_t* values, size_t n, uint64_t first_possible) {
  const size_t rows = RowsOf(n);
  const uint64_t next = first_possible + SumOf(values, rows * kLanes) + n;
  for (size_t v = 1; v < rows; ++v) {
    for (size_t l = 0; l < kLanes; ++l) values[v * kLanes + l] += values[(v - 1) * kLanes + l];
  }
  uint32_t before[kLanes];  // the document a lane counts from
  uint32_t sum = static_cast<uint32_t>(first_possible);
  const uint32_t* last_row = values + (rows - 1) * kLanes;
  for (size_t l = 0; l < kLanes; ++l) {
    before[l] = sum;
    sum += last_row[l] + static_cast<uint32_t>(rows);
  }
  for (size_t v = 0; v < rows; ++v) {
    for (size_t l = 0; l < kLanes; ++l) values[v * kLanes + l] += before[l] + static_cast<uint32_t>(v);
  }
  return next;
}

uint64_t UnpackLanes(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible, uint32_t* documents) {
  Unpack(in, RowsOf(n) * kLanes, width, documents);
  return PrefixSumLanes(documents, n, first_possible);
}

uint64_t UnpackLanesAscending(const std::byte* in, size_t n, uint32_t width, uint64_t first_possible,
                              uint32_t* documents) {
  uint32_t transposed[kBlock];
  const uint64_t next = UnpackLanes(in, n, width, first_possible, transposed);
  const size_t rows = RowsOf(n);
  for (size_t l = 0; l < kLanes; ++l) {
    for (size_t v = 0; v < rows; ++v) documents[l * rows + v] = transposed[v * kLanes + l];
  }
  return next;
}

// --- packed bytes ---

constexpr uint64_t kEveryByte = 0x0101010101010101u;

constexpr uint64_t FieldMask(uint32_t width, uint32_t spacing) {
  uint64_t mask = 0;
  for (uint32_t at = 0; at < 64; at += spacing) mask |= ((uint64_t{1} << width) - 1) << at;
  return mask;
}

// Eight fields of `width` bits to eight bytes: the upper half of each group of fields moves to where its bytes are to
// be, groups of 8, then 4, then 2.
template <uint32_t width>
inline uint64_t SpreadToBytes(uint64_t x) {
  if constexpr (width == 0) return 0;
  if constexpr (width == 8) return x;
  constexpr uint64_t kFour = FieldMask(4 * width, 64), kTwo = FieldMask(2 * width, 32), kOne = FieldMask(width, 16);
  x = (x & kFour) | (x & kFour << (4 * width)) << (4 * (8 - width));
  x = (x & kTwo) | (x & kTwo << (2 * width)) << (2 * (8 - width));
  return (x & kOne) | (x & kOne << width) << (8 - width);
}

// Each byte plus one; 255 stays.
template <uint32_t width>
inline uint64_t AddOneToBytes(uint64_t x) {
  if constexpr (width < 8) return x + kEveryByte;
  // Bits 0 to 6 carry into 7 at most where they are all set; a byte is 255 where all eight are.
  uint64_t all = x & (x >> 4);
  all &= all >> 2;
  all &= all >> 1;
  return x + (kEveryByte & ~all);
}

template <uint32_t width, bool plus_one>
void UnpackBytesWidth(const std::byte* in, size_t n, uint8_t* values) {
  for (size_t done = 0; done < n; done += kGroup, in += width, values += kGroup) {
    uint64_t x = width == 0 ? 0 : SpreadToBytes<width>(LoadU64(in));
    if (plus_one) x = AddOneToBytes<width>(x);
    std::memcpy(values, &x, sizeof x);
  }
}

using UnpackBytesFunction = void (*)(const std::byte*, size_t, uint8_t*);

template <bool plus_one, uint32_t... width>
constexpr std::array<UnpackBytesFunction, kByteWidthMax + 1> UnpackBytesTable(
    std::integer_sequence<uint32_t, width...>) {
  return {UnpackBytesWidth<width, plus_one>...};
}
using ByteWidths = std::make_integer_sequence<uint32_t, kByteWidthMax + 1>;
constexpr auto kUnpackBytes = UnpackBytesTable<false>(ByteWidths());
constexpr auto kUnpackBytesPlusOne = UnpackBytesTable<true>(ByteWidths());

void UnpackBytes(const std::byte* in, size_t n, uint32_t width, uint8_t* values) { kUnpackBytes[width](in, n, values); }

void UnpackBytesPlusOne(const std::byte* in, size_t n, uint32_t width, uint8_t* values) {
  kUnpackBytesPlusOne[width](in, n, values);
}

// --- scores: in chunks, through arrays that alias nothing, so that the arithmetic vectorises ---

constexpr size_t kChunk = 64;

template <float (*of_code)(uint32_t)>
constexpr std::array<float, kCodeMax + 1> CodeTable() {
  std::array<float, kCodeMax + 1> table{};
  for (uint32_t code = 0; code <= kCodeMax; ++code) table[code] = of_code(code);
  return table;
}
constexpr auto kFrequencies = CodeTable<FrequencyOfCode>();
constexpr auto kLengths = CodeTable<LengthOfCode>();

void Bounds(const uint8_t* frequency_codes, const uint8_t* length_codes, size_t stride, size_t pairs, size_t n,
            Scoring scoring, int32_t* out) {
  float frequencies[kChunk], lengths[kChunk];
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t count = std::min(kChunk, n - begin);
    int32_t highest[kChunk] = {};
    for (size_t p = 0; p < pairs; ++p) {
      for (size_t i = 0; i < count; ++i) {
        frequencies[i] = kFrequencies[frequency_codes[p * stride + begin + i]];
        lengths[i] = kLengths[length_codes[p * stride + begin + i]];
      }
      for (size_t i = 0; i < count; ++i) {
        const int32_t bound = BoundOf(scoring.weight, frequencies[i], KOf(scoring, lengths[i]));
        highest[i] = highest[i] < bound ? bound : highest[i];
      }
    }
    std::copy_n(highest, count, out + begin);
  }
}

template <class Frequency>
inline void ContributionsOfLengths(const Frequency* frequencies, const uint16_t* lengths, size_t n, Scoring scoring,
                                   int32_t* out) {
  int32_t contributions[kChunk];
  for (size_t i = 0; i < n; ++i) {
    contributions[i] =
        Contribution(scoring.weight, static_cast<float>(frequencies[i]), KOf(scoring, static_cast<float>(lengths[i])));
  }
  std::copy_n(contributions, n, out);
}

inline bool AnyEscaped(const uint16_t* lengths, size_t n) {
  uint16_t any = 0;
  for (size_t i = 0; i < n; ++i) any = static_cast<uint16_t>(any | (lengths[i] == kLengthEscaped ? 1 : 0));
  return any != 0;
}

template <class Frequency>
bool ContributionsOfRow(const Frequency* frequencies, const std::byte* lengths, size_t n, Scoring scoring,
                        int32_t* out) {
  bool escaped = false;
  uint16_t chunk[kChunk];
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t count = std::min(kChunk, n - begin);
    std::memcpy(chunk, lengths + 2 * begin, 2 * count);
    ContributionsOfLengths(frequencies + begin, chunk, count, scoring, out + begin);
    escaped |= AnyEscaped(chunk, count);
  }
  return escaped;
}

template <class Frequency>
bool ContributionsOfColumn(const Frequency* frequencies, const std::byte* column, const uint32_t* documents, size_t n,
                           Scoring scoring, int32_t* out) {
  bool escaped = false;
  uint16_t chunk[kChunk];
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t count = std::min(kChunk, n - begin);
    for (size_t i = 0; i < count; ++i) chunk[i] = LoadU16(column + size_t{2} * documents[begin + i]);
    ContributionsOfLengths(frequencies + begin, chunk, count, scoring, out + begin);
    escaped |= AnyEscaped(chunk, count);
  }
  return escaped;
}

template <class Frequency>
void ContributionsOfFixed(const Frequency* frequencies, size_t n, float weight, float k, int32_t* out) {
  for (size_t i = 0; i < n; ++i) out[i] = Contribution(weight, static_cast<float>(frequencies[i]), k);
}

// --- windows ---

// Stays at 65,535: a sum that wrapped is below what was added to.
inline void AddTo(uint16_t* at, uint16_t more) {
  const auto sum = static_cast<uint16_t>(*at + more);
  *at = static_cast<uint16_t>(sum < *at ? 0xFFFF : sum);
}

// Looking up does not vectorise, adding does.
void AddColumn(const std::byte* column, uint32_t width, const uint8_t* table, uint16_t* accumulators) {
  uint8_t values[kWindow];
  UnpackBytes(column, kWindow, width, values);
  for (size_t d = 0; d < kWindow; ++d) values[d] = table[values[d]];
  for (size_t d = 0; d < kWindow; ++d) AddTo(accumulators + d, values[d]);
}

// Calls set(document) for each bit that is set, in order.
template <class Set>
inline void ForEachBit(const std::byte* bitmap, Set set) {
  for (uint32_t w = 0; w < kWindowWords; ++w) {
    for (uint64_t bits = LoadU64(bitmap + size_t{8} * w); bits != 0; bits &= bits - 1) {
      set(64 * w + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
}

// Sums of bits in neighbouring pairs, fours, bytes, halves: unlike a table of bits, this vectorises.
size_t CountBitmap(const uint64_t* bitmap) {
  uint64_t sums = 0;
  for (size_t w = 0; w < kWindowWords; ++w) {
    uint64_t x = bitmap[w];
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    x = (x & 0x00FF00FF00FF00FFu) + ((x >> 8) & 0x00FF00FF00FF00FFu);
    sums += x;  // four sums of 16 bits: 64 words have at most 16 * 64 each
  }
  return (sums * 0x0001000100010001u) >> 48;
}

void AddBitmap(const std::byte* bitmap, const std::byte* values, uint32_t width, const uint8_t* table,
               uint16_t* accumulators) {
  uint64_t words[kWindowWords];
  std::memcpy(words, bitmap, sizeof words);
  uint8_t unpacked[kWindow];
  UnpackBytes(values, CountBitmap(words), width, unpacked);
  const uint8_t* next = unpacked;
  ForEachBit(bitmap, [&](uint32_t d) { AddTo(accumulators + d, table[*next++]); });
}

void AddClassedColumn(const std::byte* column, uint32_t width, const uint8_t* classes, const uint8_t* table,
                      uint16_t* accumulators) {
  uint8_t values[kWindow];
  UnpackBytes(column, kWindow, width, values);
  const auto mask = static_cast<uint8_t>(ClassMask(width));
  for (size_t d = 0; d < kWindow; ++d) values[d] = table[values[d] | (classes[d] & mask)];
  for (size_t d = 0; d < kWindow; ++d) AddTo(accumulators + d, values[d]);
}

void AddClassedBitmap(const std::byte* bitmap, const std::byte* values, uint32_t width, const uint8_t* classes,
                      const uint8_t* table, uint16_t* accumulators) {
  uint64_t words[kWindowWords];
  std::memcpy(words, bitmap, sizeof words);
  uint8_t unpacked[kWindow];
  UnpackBytes(values, CountBitmap(words), width, unpacked);
  const uint8_t* next = unpacked;
  const uint32_t mask = ClassMask(width);
  ForEachBit(bitmap, [&](uint32_t d) { AddTo(accumulators + d, table[*next++ | (classes[d] & mask)]); });
}

void Classify(const std::byte* lengths, size_t n, uint16_t floor, uint16_t scale, uint8_t* classes) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t length = LoadU16(lengths + 2 * i);
    const uint32_t above = length > floor ? length - floor : 0;
    classes[i] = static_cast<uint8_t>(2 * std::min(above * scale >> 16, kLengthClasses - 1));
  }
}

size_t TakePresent(const uint8_t* values, uint32_t first, uint32_t* documents, uint32_t* present) {
  size_t n = 0;
  for (uint32_t i = 0; i < kBlock; ++i) {
    documents[n] = first + i;
    present[n] = values[i];
    n += values[i] != 0 ? 1 : 0;
  }
  return n;
}

void LookUpColumn(const std::byte* column, uint32_t width, const uint32_t* documents, size_t n, uint32_t* found) {
  LookUpColumnBy(column, width, documents, n, found);
}

void LookUpBitmap(const std::byte* bitmap, const uint16_t* ranks, const std::byte* values, uint32_t width,
                  const uint32_t* documents, size_t n, uint32_t* found) {
  const auto count = [](uint64_t word) { return static_cast<uint32_t>(std::popcount(word)); };
  LookUpBitmapBy(count, bitmap, ranks, values, width, documents, n, found);
}

constexpr size_t kScanStep = 64;  // accumulators that are asked at once whether any reaches the limit

template <class T>
inline bool AnyReaches(const T* accumulators, T limit) {
  T any = 0;
  for (size_t i = 0; i < kScanStep; ++i) any = static_cast<T>(any | (accumulators[i] >= limit ? 1 : 0));
  return any != 0;
}

size_t Scan16(const uint16_t* accumulators, uint16_t limit, uint16_t* offsets) {
  size_t found = 0;
  for (size_t begin = 0; begin < kWindow; begin += kScanStep) {
    if (!AnyReaches(accumulators + begin, limit)) continue;
    for (size_t d = begin; d < begin + kScanStep; ++d) {
      if (accumulators[d] >= limit) offsets[found++] = static_cast<uint16_t>(d);
    }
  }
  return found;
}

size_t Scan32(const int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores) {
  size_t found = 0;
  for (size_t begin = 0; begin < kWindow; begin += kScanStep) {
    if (!AnyReaches(accumulators + begin, limit)) continue;
    for (size_t d = begin; d < begin + kScanStep; ++d) {
      if (accumulators[d] < limit) continue;
      offsets[found] = static_cast<uint16_t>(d);
      scores[found++] = accumulators[d];
    }
  }
  return found;
}

size_t Take32(int32_t* accumulators, int32_t limit, uint16_t* offsets, int32_t* scores) {
  const size_t found = Scan32(accumulators, limit, offsets, scores);
  std::memset(accumulators, 0, kWindow * sizeof(int32_t));
  return found;
}

// One bit for each of eight bytes that is not 0: its bit 7 (set by a carry or there already), and those moved together.
inline uint64_t PresentOf8(const uint8_t* bytes) {
  constexpr uint64_t kLow = 0x7F * kEveryByte;
  uint64_t x;
  std::memcpy(&x, bytes, sizeof x);
  x = (((x & kLow) + kLow) | x) & ~kLow;
  return ((x >> 7) * 0x0102040810204080u) >> 56;
}

void OrColumn(const std::byte* column, uint32_t width, uint64_t* bitmap) {
  uint8_t values[kWindow];
  UnpackBytes(column, kWindow, width, values);
  for (size_t w = 0; w < kWindowWords; ++w) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 64; i += 8) bits |= PresentOf8(values + 64 * w + i) << i;
    bitmap[w] |= bits;
  }
}

void OrBitmap(const std::byte* from, uint64_t* bitmap) {
  for (size_t w = 0; w < kWindowWords; ++w) bitmap[w] |= LoadU64(from + 8 * w);
}

// --- search ---

// Halving without branches that could be guessed wrong.
size_t LowerBound(const uint32_t* values, size_t n, uint32_t target) {
  if (n == 0) return 0;
  const uint32_t* base = values;
  while (n > 1) {
    const size_t half = n / 2;
    base += base[half - 1] < target ? half : 0;
    n -= half;
  }
  return static_cast<size_t>(base - values) + (*base < target ? 1 : 0);
}

size_t Find(const uint32_t* values, size_t n, const uint32_t* targets, size_t m, uint32_t* found, uint32_t* places) {
  size_t k = 0;
  for (size_t i = 0; i < m; ++i) {
    const size_t at = LowerBound(values, n, targets[i]);
    found[k] = static_cast<uint32_t>(i);
    places[k] = static_cast<uint32_t>(at);
    k += at < n && values[at] == targets[i] ? 1 : 0;
  }
  return k;
}

size_t FirstAtLeast(const int32_t* values, size_t n, int32_t limit) {
  size_t i = 0;
  while (i < n && values[i] < limit) ++i;
  return i;
}

int32_t Maximum(const int32_t* values, size_t n) {
  int32_t highest = INT32_MIN;
  for (size_t i = 0; i < n; ++i) highest = std::max(highest, values[i]);
  return highest;
}

size_t TakeFrequent(const uint32_t* documents, const uint32_t* frequencies, size_t n, uint32_t limit, uint32_t* taken,
                    uint32_t* taken_frequencies) {
  size_t k = 0;
  for (size_t i = 0; i < n; ++i) {
    taken[k] = documents[i];
    taken_frequencies[k] = frequencies[i];
    k += frequencies[i] >= limit ? 1 : 0;
  }
  return k;
}

size_t KeepAtLeast(uint32_t* documents, int32_t* scores, size_t n, int32_t more, int32_t limit) {
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t document = documents[i];
    const int32_t score = scores[i];
    documents[kept] = document;
    scores[kept] = score;
    kept += int64_t{score} + more >= limit ? 1 : 0;
  }
  return kept;
}

}  // namespace

const Kernels kScalarKernels = {
    .level = Level::kScalar,
    .name = "scalar",
    .unpack = Unpack,
    .unpack_plus_one = UnpackPlusOne,
    .prefix_sum = PrefixSum,
    .unpack_gaps = UnpackGaps,
    .prefix_sum_lanes = PrefixSumLanes,
    .unpack_lanes = UnpackLanes,
    .unpack_lanes_ascending = UnpackLanesAscending,
    .unpack_bytes = UnpackBytes,
    .unpack_bytes_plus_one = UnpackBytesPlusOne,
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
