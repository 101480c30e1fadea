// Dense windows (SPEC P-14): the postings of 4,096 documents of a frequent term, so that the frequency of any document
// is found without decoding those before it: a column of one value a document, or a bitmap with one value a posting.
#ifndef ASHLAR_FORMAT_DENSE_WINDOW_H_
#define ASHLAR_FORMAT_DENSE_WINDOW_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr uint32_t kWindowDocuments = 4096;
inline constexpr uint32_t kSliceDocuments = kWindowDocuments / kBlocksPerGroup;  // of a block of a list with windows
inline constexpr size_t kWindowBitmapBytes = kWindowDocuments / 8;
inline constexpr uint32_t kWindowWidthMax = 8;

// Encoding ids of a window (SPEC P-14). DO NOT CHANGE.
enum class WindowEncoding : uint8_t { kColumn = 1, kBitmap = 2 };

struct WindowShape {
  WindowEncoding encoding = WindowEncoding::kColumn;
  uint8_t width = 1;  // of a value: column 1 to 8, bitmap 0 to 8
  uint16_t exceptions = 0;
  bool operator==(const WindowShape&) const = default;
};

// Appends the window of these postings, with offsets from its first document; chooses the shape.
WindowShape AppendWindow(std::span<const uint16_t> offsets, std::span<const uint32_t> frequencies, ByteBuffer* out);

// How slices are decoded: by plain code, or by a reader's own with the same results.
struct SliceDecoding {
  // `values` has room for kSliceDocuments.
  void (*unpack)(const std::byte* in, size_t n, uint32_t width, uint8_t* values);
  // Of kSliceDocuments documents from `first` on those whose value is not 0, and the values; returns how many.
  size_t (*take_present)(const uint8_t* values, uint32_t first, uint32_t* documents, uint32_t* present);
};
const SliceDecoding& PlainSliceDecoding();

// A window where it lies; kPackedSlack bytes after it are readable.
class Window {
 public:
  // Of no posting.
  Window() = default;
  // `slice_counts`: postings in each of kBlocksPerGroup slices. False if the bytes break P-14, of which exceptions are
  // not looked at; `bytes` may be more than the window takes.
  bool Open(const std::byte* in, uint64_t bytes, WindowShape shape, const uint8_t* slice_counts);
  // Whether exceptions keep to P-14, too. O(exceptions): whoever looks up a few documents can do without, for one that
  // is malformed shows as 0.
  bool ExceptionsAreValid() const;

  const WindowShape& shape() const { return shape_; }
  uint32_t postings() const { return ranks_[kBlocksPerGroup]; }
  size_t size() const { return size_; }
  // The frequency that all-ones values stand for is among the exceptions.
  bool has_exceptions() const { return shape_.exceptions != 0; }
  // Column: kWindowDocuments values, 0 where the term does not occur. Bitmap: a frequency less one for each posting.
  const std::byte* values() const { return values_; }
  const std::byte* bitmap() const { return bitmap_; }  // null for a column

  // How many postings there are before each slice, and in the end all.
  const uint16_t* ranks() const { return ranks_; }
  // What stands for an exception, among values plus 1 in a bitmap.
  uint32_t escape() const { return all_ones_ + (bitmap_ == nullptr ? 0u : 1u); }
  // The frequency of a document for which there is an exception; 0 if there is none. `from`: no exception before it is
  // of this or a later document; moved on to this one. O(exceptions passed over).
  uint32_t ExceptionAt(uint32_t offset, size_t* from) const;
  uint32_t ExceptionAt(uint32_t offset) const {
    size_t from = FirstException(offset);
    return ExceptionAt(offset, &from);
  }
  // The first exception that is of this or a later document. O(log exceptions).
  size_t FirstException(uint32_t offset) const;

  // 0 if the document is not there. `offset` is below kWindowDocuments. Damage shows as 0, and at the latest in
  // DecodeSlice.
  uint32_t FrequencyAt(uint32_t offset) const {
    uint32_t value = 0;
    if (bitmap_ == nullptr) {
      value = Value(offset);
      if (value == all_ones_ && has_exceptions()) [[unlikely]]
        return ExceptionAt(offset);
      return value;
    }
    const uint64_t word = LoadU64(bitmap_ + offset / 64 * 8);
    if ((word >> (offset % 64) & 1) == 0) return 0;
    uint32_t rank = ranks_[offset / kSliceDocuments];
    if (offset % kSliceDocuments >= 64)
      rank += static_cast<uint32_t>(std::popcount(LoadU64(bitmap_ + offset / kSliceDocuments * 16)));
    rank += static_cast<uint32_t>(std::popcount(word & ((uint64_t{1} << (offset % 64)) - 1)));
    if (rank >= postings()) [[unlikely]]
      return 0;
    value = Value(rank);
    if (value == all_ones_ && has_exceptions()) [[unlikely]]
      return ExceptionAt(offset);
    return value + 1;
  }

  // The slice's documents and frequencies; `first_document` is that of the window. Both arrays have room for
  // kSliceDocuments. False if they are not as many as the slice's count says, or an exception is missing.
  bool DecodeSlice(uint32_t slice, uint32_t first_document, uint32_t* documents, uint32_t* frequencies,
                   const SliceDecoding& decoding = PlainSliceDecoding()) const;

 private:
  uint32_t Value(uint32_t i) const {
    const uint64_t bit = uint64_t{i} * shape_.width;
    return LoadU16(values_ + bit / 8) >> (bit % 8) & all_ones_;
  }
  bool IsException(uint32_t frequency) const;
  void ReadRanks(const uint8_t* slice_counts);

  WindowShape shape_;
  uint32_t all_ones_ = 0;
  size_t size_ = 0;
  const std::byte* bitmap_ = nullptr;
  const std::byte* values_ = nullptr;
  const std::byte* exception_offsets_ = nullptr;
  const std::byte* exception_frequencies_ = nullptr;
  uint16_t ranks_[kBlocksPerGroup + 1] = {};  // postings before each slice, and all
};

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_DENSE_WINDOW_H_
