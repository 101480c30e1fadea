#include "format/dense_window.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "format/bit_pack.h"
#include "format/posting_block.h"
#include "src/base/check.h"

namespace ashlar::format {
namespace {

constexpr size_t kExceptionBytes = 2 + 4;

// A column has its value without counting what stands before it, and is worth so many bytes more, in percent.
constexpr size_t kColumnWorthPercent = 135;

constexpr uint32_t AllOnes(uint32_t width) { return (1u << width) - 1; }

size_t ValueBytes(WindowShape shape, size_t postings) {
  return shape.encoding == WindowEncoding::kColumn ? kWindowBitmapBytes * shape.width
                                                   : kWindowBitmapBytes + PackedBytes(postings, shape.width);
}

// By value: the frequency, and less one where every posting has a value.
using Histogram = std::array<uint32_t, AllOnes(kWindowWidthMax) + 1>;

// Values that need an exception: none if the highest fits the width.
uint32_t ExceptionsAt(const Histogram& histogram, uint32_t width, uint32_t highest) {
  if (highest <= AllOnes(width)) return 0;
  uint32_t n = 0;
  for (size_t value = AllOnes(width); value < histogram.size(); ++value) n += histogram[value];
  return n;
}

struct Choice {
  WindowShape shape;
  size_t bytes = SIZE_MAX;
};

Choice BestWidth(WindowEncoding encoding, std::span<const uint32_t> frequencies) {
  const uint32_t less = encoding == WindowEncoding::kColumn ? 0 : 1;
  Histogram histogram{};
  uint32_t highest = 0;
  for (const uint32_t frequency : frequencies) {
    ++histogram[std::min<uint32_t>(frequency - less, histogram.size() - 1)];
    highest = std::max(highest, frequency - less);
  }
  Choice best;
  // Without a bit there is no value that could stand for an exception.
  for (uint32_t width = highest == 0 ? 0 : 1; width <= kWindowWidthMax; ++width) {
    if (width == 0 && encoding == WindowEncoding::kColumn) continue;
    Choice choice;
    choice.shape = {encoding, static_cast<uint8_t>(width),
                    static_cast<uint16_t>(ExceptionsAt(histogram, width, highest))};
    choice.bytes = ValueBytes(choice.shape, frequencies.size()) + kExceptionBytes * choice.shape.exceptions;
    if (choice.bytes < best.bytes) best = choice;
  }
  return best;
}

}  // namespace

WindowShape AppendWindow(std::span<const uint16_t> offsets, std::span<const uint32_t> frequencies, ByteBuffer* out) {
  ASHLAR_CHECK(offsets.size() == frequencies.size() && offsets.size() <= kWindowDocuments);
  const Choice column = BestWidth(WindowEncoding::kColumn, frequencies);
  const Choice bitmap = BestWidth(WindowEncoding::kBitmap, frequencies);
  const WindowShape shape = column.bytes * 100 <= bitmap.bytes * kColumnWorthPercent ? column.shape : bitmap.shape;

  const uint32_t escape = shape.exceptions != 0 ? AllOnes(shape.width) : UINT32_MAX;
  std::vector<uint32_t> values;
  ByteWriter w(out);
  if (shape.encoding == WindowEncoding::kColumn) {
    values.assign(kWindowDocuments, 0);
    for (size_t i = 0; i < offsets.size(); ++i) values[offsets[i]] = std::min(frequencies[i], escape);
  } else {
    std::array<uint64_t, kWindowDocuments / 64> bits{};
    for (const uint16_t offset : offsets) bits[offset / 64] |= uint64_t{1} << (offset % 64);
    for (const uint64_t word : bits) w.U64(word);
    for (const uint32_t frequency : frequencies) values.push_back(std::min(frequency - 1, escape));
  }
  const size_t at = out->size();
  out->resize(at + PackedBytes(values.size(), shape.width));
  Pack(values.data(), values.size(), shape.width, out->data() + at);
  if (shape.exceptions == 0) return shape;

  const uint32_t less = shape.encoding == WindowEncoding::kColumn ? 0 : 1;
  const auto is_exception = [&](size_t i) { return frequencies[i] - less >= escape; };
  for (size_t i = 0; i < offsets.size(); ++i)
    if (is_exception(i)) w.U16(offsets[i]);
  for (size_t i = 0; i < offsets.size(); ++i)
    if (is_exception(i)) w.U32(frequencies[i]);
  return shape;
}

// Eight slices at a time, as every window that a search looks at is opened.
void Window::ReadRanks(const uint8_t* slice_counts) {
  using Bytes = uint8_t __attribute__((vector_size(8)));
  using Ranks = uint16_t __attribute__((vector_size(16)));
  static_assert(kBlocksPerGroup % 8 == 0);
  const Ranks none{};
  Ranks before{};  // in all of them, how many there are before these eight slices
  for (size_t slice = 0; slice < kBlocksPerGroup; slice += 8) {
    Bytes bytes;
    std::memcpy(&bytes, slice_counts + slice, sizeof bytes);
    const Ranks counts = __builtin_convertvector(bytes, Ranks);
    Ranks sums = counts + __builtin_shufflevector(none, counts, 0, 8, 9, 10, 11, 12, 13, 14);
    sums += __builtin_shufflevector(none, sums, 0, 1, 8, 9, 10, 11, 12, 13);
    sums += __builtin_shufflevector(none, sums, 0, 1, 2, 3, 8, 9, 10, 11);
    sums += before;
    std::memcpy(ranks_ + slice + 1, &sums, sizeof sums);
    before = __builtin_shufflevector(sums, sums, 7, 7, 7, 7, 7, 7, 7, 7);
  }
}

bool Window::Open(const std::byte* in, uint64_t bytes, WindowShape shape, const uint8_t* slice_counts) {
  const bool column = shape.encoding == WindowEncoding::kColumn;
  if (!column && shape.encoding != WindowEncoding::kBitmap) return false;
  if (shape.width > kWindowWidthMax || (shape.width == 0 && (column || shape.exceptions != 0))) return false;
  ReadRanks(slice_counts);
  const uint32_t rank = postings();
  if (rank > kWindowDocuments || shape.exceptions > rank) return false;
  const size_t value_bytes = ValueBytes(shape, rank);
  shape_ = shape;
  size_ = value_bytes + kExceptionBytes * shape.exceptions;
  if (size_ > bytes) return false;
  all_ones_ = AllOnes(shape.width);
  bitmap_ = column ? nullptr : in;
  values_ = column ? in : in + kWindowBitmapBytes;
  exception_offsets_ = in + value_bytes;
  exception_frequencies_ = exception_offsets_ + size_t{2} * shape.exceptions;
  return true;
}

bool Window::IsException(uint32_t frequency) const {
  return frequency <= kFrequencyMax && frequency >= all_ones_ + (bitmap_ == nullptr ? 0u : 1u);
}

bool Window::ExceptionsAreValid() const {
  uint32_t next = 0;
  for (size_t i = 0; i < shape_.exceptions; ++i) {
    const uint32_t offset = LoadU16(exception_offsets_ + 2 * i);
    if (offset < next || offset >= kWindowDocuments) return false;
    if (!IsException(LoadU32(exception_frequencies_ + 4 * i))) return false;
    next = offset + 1;
  }
  return true;
}

size_t Window::FirstException(uint32_t offset) const {
  size_t low = 0, n = shape_.exceptions;
  while (n > 0) {
    const size_t half = (n + 1) / 2;
    const bool before = LoadU16(exception_offsets_ + 2 * (low + half - 1)) < offset;
    low += before ? half : 0;
    n = before ? n - half : half - 1;
  }
  return low;
}

uint32_t Window::ExceptionAt(uint32_t offset, size_t* from) const {
  // Counts among the next few what is before: no branch that has no pattern. Most often these are enough.
  constexpr size_t kCounted = 16;
  const size_t n = shape_.exceptions;
  size_t low = *from;
  for (size_t before = kCounted; before == kCounted && low < n; low += before) {
    const size_t counted = std::min(kCounted, n - low);
    before = 0;
    for (size_t i = 0; i < counted; ++i) before += LoadU16(exception_offsets_ + 2 * (low + i)) < offset ? 1 : 0;
  }
  *from = low;
  if (low == n || LoadU16(exception_offsets_ + 2 * low) != offset) return 0;
  const uint32_t frequency = LoadU32(exception_frequencies_ + 4 * low);
  return IsException(frequency) ? frequency : 0;
}

const SliceDecoding& PlainSliceDecoding() {
  static constexpr auto kUnpack = [](const std::byte* in, size_t n, uint32_t width, uint8_t* values) {
    for (size_t i = 0; i < n; ++i) {
      const size_t bit = i * width;
      values[i] = static_cast<uint8_t>(LoadU16(in + bit / 8) >> (bit % 8) & AllOnes(width));
    }
  };
  static constexpr auto kTakePresent = [](const uint8_t* values, uint32_t first, uint32_t* documents,
                                          uint32_t* present) {
    size_t n = 0;
    for (uint32_t i = 0; i < kSliceDocuments; ++i) {
      documents[n] = first + i;
      present[n] = values[i];
      n += values[i] != 0 ? 1 : 0;
    }
    return n;
  };
  static constexpr SliceDecoding kPlain{kUnpack, kTakePresent};
  return kPlain;
}

bool Window::DecodeSlice(uint32_t slice, uint32_t first_document, uint32_t* documents, uint32_t* frequencies,
                         const SliceDecoding& decoding) const {
  const uint32_t begin = slice * kSliceDocuments;
  const uint32_t expected = ranks_[slice + 1] - ranks_[slice];
  alignas(64) std::array<uint8_t, kSliceDocuments + 64> values;
  uint32_t n = 0;
  if (bitmap_ == nullptr) {
    decoding.unpack(values_ + size_t{begin} * shape_.width / 8, kSliceDocuments, shape_.width, values.data());
    n = static_cast<uint32_t>(decoding.take_present(values.data(), first_document + begin, documents, frequencies));
  } else {
    for (uint32_t half = 0; half < kSliceDocuments; half += 64) {
      const uint32_t base = begin + half;
      for (uint64_t word = LoadU64(bitmap_ + base / 8); word != 0; word &= word - 1)
        documents[n++] = first_document + base + static_cast<uint32_t>(std::countr_zero(word));
    }
    if (n != expected) return false;
    // Values of a slice begin anywhere in a byte.
    for (uint32_t i = 0; i < n; ++i) frequencies[i] = Value(ranks_[slice] + i) + 1;
  }
  if (n != expected) return false;
  if (!has_exceptions()) return true;
  const uint32_t escaped = all_ones_ + (bitmap_ == nullptr ? 0 : 1);
  size_t exception = FirstException(begin);
  for (uint32_t i = 0; i < n; ++i) {
    if (frequencies[i] != escaped) continue;
    frequencies[i] = ExceptionAt(documents[i] - first_document, &exception);
    if (frequencies[i] == 0) return false;
  }
  return true;
}

}  // namespace ashlar::format
