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
// Of each 128 postings a note says where they end and what bounds their contributions, so that readers can pass them
// over (query::BoundedCursor). Notes lie in chunks of their own that double in size.
//
// Threads: one writer appends and then stores `published` with release. A reader that loads it with acquire may read
// that many postings: their bytes, the chunk links in front of them and the notes of whole blocks among them are never
// written again.
#ifndef ASHLAR_SRC_OVERLAY_POSTING_LIST_H_
#define ASHLAR_SRC_OVERLAY_POSTING_LIST_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "format/frontier.h"
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

// Reads the bytes of a list front to back. The reader of a list knows how many postings there are and reads no further.
class ByteCursor {
 public:
  ByteCursor() = default;
  // At `at` in a chunk of this level that ends at `end`.
  ByteCursor(const std::byte* at, const std::byte* end, int level) : at_(at), end_(end), level_(level) {}

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

// Of a whole block of postings.
inline constexpr uint32_t kBlockPostings = 128;
struct BlockNote {
  ByteCursor end;  // where the next block begins
  uint32_t last_document = 0;
  // The block's frontier (format/frontier.h), of all members together; the last pair is repeated.
  std::array<format::Frontier::Pair, format::kBlockListPairs.block> pairs{};
};
struct NoteChunk {
  static constexpr uint32_t kFirstCapacity = 4;
  uint32_t capacity = 0;
  NoteChunk* next = nullptr;
  BlockNote* notes() { return reinterpret_cast<BlockNote*>(this + 1); }
  const BlockNote* notes() const { return reinterpret_cast<const BlockNote*>(this + 1); }
};

// One term of one index: 56 bytes, then the bytes of the term.
struct TermEntry {
  std::atomic<uint64_t> published{0};  // last ordinal << 32 | postings
  NoteChunk* notes = nullptr;          // of blocks among the published postings
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
static_assert(sizeof(TermEntry) == 56);

inline ByteCursor FirstPosting(const TermEntry& term) {
  return {term.first_chunk, term.first_chunk + kFirstChunkBytes, 0};
}

// Reads n postings of all members; `last` is the ordinal before, and becomes that of the last one.
void ReadPostings(const ListShape& shape, size_t n, ByteCursor* at, uint32_t* last, uint32_t* documents,
                  uint32_t* frequencies);

// Writer: appends bytes to a list and links new chunks as needed.
void AppendBytes(TermEntry* term, const std::byte* bytes, size_t count, Arena* arena);
// The note of a block that has one.
const BlockNote& NoteOf(const TermEntry& term, uint32_t block);
// Writer: adds the note of block number `block`, the next one.
void AppendNote(TermEntry* term, uint32_t block, const BlockNote& note, Arena* arena);

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_POSTING_LIST_H_
