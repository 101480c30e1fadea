// The term dictionary of one index as bytes (SPEC T-*): blocks of prefix-coded terms with their entries, and a sparse index
// of the blocks that is searched where it lies.
//
//   terms section = header (64 bytes), blocks, index, zeros
#ifndef ASHLAR_FORMAT_TERM_BLOCK_H_
#define ASHLAR_FORMAT_TERM_BLOCK_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kTermsHeaderBytes = 64;
inline constexpr size_t kTermBytesMax = 255;
inline constexpr uint32_t kTermsPerBlock = 16;        // a block may have fewer
inline constexpr size_t kTermBlockBytes = 4096;       // a block that reaches this takes no further term
inline constexpr uint32_t kMembersMax = 1024;
inline constexpr uint32_t kInlinePositionsMax = 4;    // of a single posting, in its dictionary entry (SPEC T-6)

// What an index is made of. A group of one is just that field.
struct IndexShape {
  uint32_t members = 1;    // fields that a posting has frequencies of
  uint32_t largest = 0;    // the member with the most postings (SPEC P-9)
  bool positions = false;  // postings have positions
  bool operator==(const IndexShape&) const = default;
};

struct TermsHeader {
  IndexShape shape;
  uint64_t term_count = 0;
  uint64_t posting_count = 0;  // over all terms
  uint64_t block_count = 0;
  uint64_t index_offset = 0;   // of the sparse index; the blocks end there
  bool operator==(const TermsHeader&) const = default;
};

void EncodeTermsHeader(const TermsHeader& header, std::span<std::byte, kTermsHeaderBytes> out);
// False if the bytes break T-1. `section_bytes`: of the whole section, for bounds.
bool DecodeTermsHeader(ByteSpan bytes, uint64_t section_bytes, TermsHeader* header);

// Where a term's list is. Spans point into the dictionary and live as long as it does.
struct TermInfo {
  uint32_t postings = 0;          // documents in the list
  uint32_t largest_postings = 0;  // of them, those with the term in the largest member
  ByteSpan inline_documents;      // postings == 1: the coded posting
  ByteSpan inline_positions;      // postings == 1 and few positions: they
  uint64_t offset = 0;            // 1 <= postings < 128: of document bytes (or of positions that are not inline) in the
                                  // postings section; from 128 on: of the list's headers in the headers section
  uint64_t document_bytes = 0;    // 2 <= postings < 128
  uint64_t position_bytes = 0;    // postings < 128, in the postings section after the document bytes
  bool has_blocks() const;
};

// What the writer knows of a term when its list is written.
struct TermEntry {
  uint32_t postings = 0;
  uint32_t largest_postings = 0;
  ByteSpan inline_documents;   // postings == 1
  ByteSpan inline_positions;   // postings == 1 and at most kInlinePositionsMax positions
  bool positions_inline = false;
  uint64_t headers_offset = 0;  // postings >= 128, a multiple of 8
  uint64_t document_bytes = 0;  // 2 <= postings < 128
  uint64_t position_bytes = 0;  // postings < 128, what it wrote to the postings section after the document bytes
  uint64_t list_bytes = 0;      // postings >= 128: all that it wrote to the postings section
};

// Builds the terms section. Terms ascend; entries' lists lie in the postings section in the same order without gaps (T-7).
class TermsBuilder {
 public:
  explicit TermsBuilder(const IndexShape& shape);
  void Add(std::string_view term, const TermEntry& entry);
  uint64_t bytes() const { return out_.size() + pool_.size(); }
  // False if the sparse index passes 4 GiB. The builder is spent.
  bool Finish(ByteBuffer* out);

 private:
  void CloseBlock();
  TermsHeader header_;
  ByteBuffer out_;
  ByteBuffer texts_, entries_;       // of the open block
  uint32_t block_terms_ = 0;
  uint64_t block_postings_offset_ = 0;
  uint64_t postings_offset_ = 0;
  std::string last_;                 // the term before
  ByteBuffer pool_;                  // records of the sparse index
  std::vector<uint64_t> record_offsets_;
};

// One record of the sparse index.
struct TermIndexRecord {
  uint64_t block_offset = 0;
  std::string_view separator;  // above every term of the block before, not above the block's first
};

// Reads one dictionary block. Terms are handed out in order.
class TermBlockReader {
 public:
  // False if the bytes break T-4.
  bool Init(ByteSpan block, const IndexShape& shape);
  uint32_t count() const { return count_; }
  // Looks for a term. Returns 1 found, 0 not there, -1 damage.
  int Find(std::string_view term, TermInfo* info) const;
  // The next term: `term` holds the term before on entry. False at the end or on damage, which ok() tells apart.
  bool Next(std::string* term, TermInfo* info);
  bool ok() const { return ok_; }

 private:
  // One entry (T-5). `in` reads `bytes`; the list begins at `*postings_offset`, which moves to the next one's.
  bool ReadEntry(ByteSpan bytes, ByteReader* in, uint64_t* postings_offset, TermInfo* info) const;
  ByteSpan texts_, entries_;
  IndexShape shape_;
  uint32_t count_ = 0;
  uint32_t returned_ = 0;
  uint64_t postings_offset_ = 0;  // of the block's first list
  uint64_t next_offset_ = 0;      // of the list that Next comes to
  size_t text_at_ = 0, entry_at_ = 0;
  bool ok_ = true;
};

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_TERM_BLOCK_H_
