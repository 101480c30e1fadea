// Columns (SPEC V-1 to V-4): the values of one field by ordinal, in blocks of 512 documents that state their smallest
// and largest value. Every type becomes unsigned codes in the order of its values; a keyword's code is its rank among
// the column's distinct keywords.
#ifndef ASHLAR_FORMAT_COLUMN_H_
#define ASHLAR_FORMAT_COLUMN_H_

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ashlar/schema.h"
#include "format/key_block.h"
#include "format/packed_numbers.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kColumnBlockDocuments = 512;
inline constexpr size_t kColumnHeaderBytes = 96;
inline constexpr size_t kColumnBlockBytes = 32;

// Codes that compare as the values do. int64 and dates: the sign bit flipped. Doubles: IEEE 754 total order, so -0 <
// +0.
inline uint64_t IntegerCode(int64_t v) { return static_cast<uint64_t>(v) ^ (uint64_t{1} << 63); }
inline int64_t IntegerOfCode(uint64_t code) { return static_cast<int64_t>(code ^ (uint64_t{1} << 63)); }
inline uint64_t DoubleCode(double v) {
  const auto bits = std::bit_cast<uint64_t>(v);
  return bits >> 63 != 0 ? ~bits : bits | uint64_t{1} << 63;
}
inline double DoubleOfCode(uint64_t code) {
  return std::bit_cast<double>(code >> 63 != 0 ? code & ~(uint64_t{1} << 63) : ~code);
}

struct ColumnHeader {
  FieldType type = FieldType::kInt64;
  uint32_t documents = 0;
  uint64_t values = 0;
  uint64_t blocks_offset = 0;  // one entry per 512 documents
  uint64_t payload_offset = 0, payload_length = 0;
  StringsPlace strings;  // keyword only
  bool operator==(const ColumnHeader&) const = default;
};
// Nullopt unless the header obeys V-2 in a section of `section_bytes`.
std::optional<ColumnHeader> DecodeColumnHeader(ByteSpan bytes, uint64_t section_bytes);

// How a block keeps which document has which values. DO NOT CHANGE.
enum class ColumnForm : uint8_t {
  kNone = 0,       // no document has a value
  kOneEach = 1,    // values by place in the block
  kAtMostOne = 2,  // 512 presence bits, then values by place, 0 where there is none
  kMany = 3,       // packed starts (documents + 1 of them), then values
};

struct ColumnBlock {
  uint64_t min = 0, max = 0;  // codes
  uint64_t offset = 0;        // of its bytes, from the payload's start
  uint32_t values = 0;
  ColumnForm form = ColumnForm::kNone;
  uint8_t width = 0;        // of (code - min)
  uint8_t start_width = 0;  // kMany
};
std::optional<ColumnBlock> DecodeColumnBlock(ByteSpan bytes);

// Call order: Add* Finish, one Add per document.
class ColumnWriter {
 public:
  explicit ColumnWriter(FieldType type) : type_(type) {}
  // The codes of the next document, ascending.
  void Add(std::span<const uint64_t> codes);
  // The section. `strings`: a keyword column's distinct values, else null.
  ByteBuffer Finish(SortedStringsWriter* strings);
  uint64_t bytes() const { return blocks_.size() + payload_.size(); }

 private:
  void EndBlock();
  FieldType type_;
  uint32_t documents_ = 0;
  uint64_t value_count_ = 0;
  std::vector<uint64_t> codes_;      // of the unfinished block
  std::vector<uint64_t> starts_{0};  // where each of its documents begins, and the end
  ByteBuffer blocks_;
  ByteBuffer payload_;
};

// Reads codes by ordinal. O(values of the document).
template <class Bytes>
class Column {
 public:
  Column(const Bytes& bytes, const ColumnHeader& header) : bytes_(bytes), header_(header) {}

  // Appends the document's codes, ascending. False: out of range, or the bytes can't be had or break V-3.
  bool Codes(uint32_t ordinal, std::vector<uint64_t>* codes) const {
    if (ordinal >= header_.documents) return false;
    const std::byte* entry =
        bytes_.Read(header_.blocks_offset + ordinal / kColumnBlockDocuments * kColumnBlockBytes, kColumnBlockBytes);
    if (entry == nullptr) return false;
    const std::optional<ColumnBlock> block = DecodeColumnBlock(ByteSpan(entry, kColumnBlockBytes));
    if (!block.has_value()) return false;
    const PartOf<Bytes> payload(bytes_, header_.payload_offset, header_.payload_length);
    const uint64_t j = ordinal % kColumnBlockDocuments;
    uint64_t begin = j, end = j + 1, at = block->offset;
    switch (block->form) {
      case ColumnForm::kNone: return true;
      case ColumnForm::kOneEach: break;
      case ColumnForm::kAtMostOne: {
        const std::byte* bits = payload.Read(at, kColumnBlockDocuments / 8);
        if (bits == nullptr) return false;
        if ((static_cast<uint8_t>(bits[j / 8]) >> (j % 8) & 1) == 0) return true;
        at += kColumnBlockDocuments / 8;
        break;
      }
      case ColumnForm::kMany: {
        const uint64_t first = ordinal - j;
        const uint64_t n = std::min<uint64_t>(kColumnBlockDocuments, header_.documents - first);
        if (!ReadPacked(payload, at, j, block->start_width, &begin) ||
            !ReadPacked(payload, at, j + 1, block->start_width, &end))
          return false;
        at += PackedNumberBytes(n + 1, block->start_width);
        if (begin > end || end > block->values) return false;
        break;
      }
    }
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t difference = 0;
      if (!ReadPacked(payload, at, i, block->width, &difference)) return false;
      codes->push_back(block->min + difference);
    }
    return true;
  }

 private:
  const Bytes& bytes_;
  const ColumnHeader& header_;
};

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_COLUMN_H_
