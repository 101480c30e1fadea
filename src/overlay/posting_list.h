// Posting lists of the overlay: byte-coded postings in a chain of chunks that grow with the list.
//
//   list    = posting*                              the list's count says how many are there
//   posting = varint(gap * 2 + 1) [varint(code)]    the term occurs once: code = position << member_bits | member;
//                                                   left out if the index has one member and keeps no positions
//           | varint(gap * 2) varint(frequency)     gap: from the ordinal before (from 0 for the first)
//             [varint(bytes) member*]               left out under the same condition; `bytes` skips the members
//   member  = varint(frequency << member_bits | member) [varint(first position) varint(position gap)*]
//
// The members of an index are the fields that share its lists: the default group's, in ascending field number, or one
// field. Postings run on from chunk to chunk. A chunk ends with the address of the next one; its size follows from its
// level.
//
// Threads: one writer appends and then stores `published` with release. A reader that loads it with acquire may read
// that many postings: their bytes, and the chunk links in front of them, are never written again.
#ifndef ASHLAR_SRC_OVERLAY_POSTING_LIST_H_
#define ASHLAR_SRC_OVERLAY_POSTING_LIST_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "src/overlay/arena.h"
#include "src/overlay/paged_array.h"

namespace ashlar::overlay {

// How an index's postings are coded.
struct ListShape {
  uint32_t members = 1;
  uint8_t member_bits = 0;
  bool positions = false;
  bool has_payload() const { return members > 1 || positions; }
  uint32_t MemberOf(uint64_t code) const { return static_cast<uint32_t>(code & ((uint64_t{1} << member_bits) - 1)); }
};

// The first chunk lies in the entry: more than half of all terms of real text occur in one document.
inline constexpr size_t kFirstChunkBytes = 9;
inline constexpr int kLastLevel = 8;
// Payload bytes of a chunk, without the address behind them: 9, 24, 56, ... 4,088.
inline constexpr size_t ChunkBytes(int level) {
  return level == 0 ? kFirstChunkBytes : (size_t{16} << std::min(level, kLastLevel)) - sizeof(std::byte*);
}

// One term of one index: 48 bytes, then the bytes of the term.
struct TermEntry {
  std::atomic<uint64_t> published{0};  // last ordinal << 32 | postings
  // The writer's own: where the next byte goes.
  std::byte* tail = nullptr;
  uint32_t pending = 0;  // the document's list of terms, the place of this one; valid if that place agrees
  // Fixed before the entry is published.
  uint32_t hash = 0;
  uint16_t family = 0;
  uint16_t term_bytes = 0;
  uint16_t tail_left = 0;  // the writer's
  uint8_t level = 0;       // the writer's
  std::byte first_chunk[kFirstChunkBytes + sizeof(std::byte*)];

  std::string_view term() const { return {reinterpret_cast<const char*>(this + 1), term_bytes}; }
  static uint32_t PostingsOf(uint64_t published) { return static_cast<uint32_t>(published); }
  static uint32_t LastOrdinalOf(uint64_t published) { return static_cast<uint32_t>(published >> 32); }
};
static_assert(sizeof(TermEntry) == 48);

// Reads the bytes of a list front to back. The reader of a list knows how many postings there are and reads no further.
class ByteCursor {
 public:
  ByteCursor() = default;
  explicit ByteCursor(const TermEntry& term) : at_(term.first_chunk), end_(term.first_chunk + kFirstChunkBytes) {}

  uint64_t Varint() {
    uint8_t byte = Byte();
    uint64_t value = byte & 0x7f;
    for (int shift = 7; byte >= 0x80; shift += 7) {
      byte = Byte();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    }
    return value;
  }
  void Skip(uint64_t bytes) {
    while (bytes > static_cast<uint64_t>(end_ - at_)) {
      bytes -= static_cast<uint64_t>(end_ - at_);
      NextChunk();
    }
    at_ += bytes;
  }

 private:
  // The link is read only when a byte behind it is wanted: a chunk that is just full may have none yet.
  uint8_t Byte() {
    if (at_ == end_) NextChunk();
    return static_cast<uint8_t>(*at_++);
  }
  void NextChunk() {
    std::memcpy(&at_, end_, sizeof at_);
    end_ = at_ + ChunkBytes(++level_);
  }

  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  int level_ = 0;
};

// Writer: appends bytes to a list and links new chunks as needed.
void AppendBytes(TermEntry* term, const std::byte* bytes, size_t count, Arena* arena);

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_POSTING_LIST_H_
