// What a SegmentBuilder keeps of its documents until all are there: keys, lengths and columns.
#ifndef ASHLAR_SRC_SEGMENT_DOCUMENT_COLUMNS_H_
#define ASHLAR_SRC_SEGMENT_DOCUMENT_COLUMNS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/column.h"
#include "format/document_codec.h"
#include "src/base/bytes.h"

namespace ashlar::segment {

// What: keys by ordinal, sorted at the end. Owns their bytes (a block of memory that grows). Threads: one.
class KeyTable {
 public:
  void Add(std::string_view key);
  std::string_view KeyOf(uint32_t ordinal) const {
    return {bytes_.data() + ends_[ordinal], static_cast<size_t>(ends_[ordinal + 1] - ends_[ordinal])};
  }
  // Ordinals in ascending order of key. AlreadyExists, naming the key, if one is there twice.
  absl::StatusOr<std::vector<uint32_t>> SortedOrdinals() const;
  // The sections of `ordinals`' keys.
  ByteBuffer EncodeKeysSection(const std::vector<uint32_t>& ordinals) const;
  ByteBuffer EncodeFilter() const;

 private:
  std::string bytes_;
  std::vector<uint64_t> ends_{0};
};

// What: gathers one column. Keyword values get a number in the order in which they come, and their rank at the end.
// Owns: packed blocks of numbers; the distinct keywords, and a number for each value.
// Threads: one.
class ColumnGatherer {
 public:
  explicit ColumnGatherer(FieldType type) : type_(type), writer_(type) {}
  void AddValue(const format::ValueView& value);  // of the current document
  void EndDocument();
  ByteBuffer Finish();

 private:
  uint32_t NumberOf(std::string_view keyword);
  FieldType type_;
  format::ColumnWriter writer_;
  std::vector<uint64_t> codes_;  // of the current document
  // keywords
  std::deque<std::string> keywords_;  // by number; a deque because the map's keys point into it
  absl::flat_hash_map<std::string_view, uint32_t> numbers_;
  std::vector<uint32_t> values_;  // numbers, of all documents
  std::vector<uint64_t> ends_;    // where each document's values end
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_DOCUMENT_COLUMNS_H_
