// IndexReader: looks up terms of one inverted index of a segment and opens cursors on their lists (SPEC T-*, P-*).
#ifndef ASHLAR_SRC_SEGMENT_INDEX_READER_H_
#define ASHLAR_SRC_SEGMENT_INDEX_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/term_block.h"
#include "src/segment/posting_cursor.h"
#include "src/segment/verified_bytes.h"

namespace ashlar::segment {

class TermIterator;

// What: the reading side of one index. Looks only at bytes it has ensured: a dictionary block, a list's headers, a
// block. Owns: nothing; the three sections must outlive it, its cursors and iterators. Threads: immutable; any number
// of threads. Cursors and iterators: one each. Errors: DataLoss from the section concerned; Unimplemented for an
// encoding, list layout or pair count that is newer than we are.
class IndexReader {
 public:
  // Looks at the first bytes of the terms section only. `document_count`: every list's ordinals are below it.
  static absl::StatusOr<std::unique_ptr<IndexReader>> Open(uint32_t document_count, const VerifiedBytes* terms,
                                                           const VerifiedBytes* headers, const VerifiedBytes* postings);

  const format::IndexShape& shape() const { return header_.shape; }
  uint64_t term_count() const { return header_.term_count; }
  uint64_t posting_count() const { return header_.posting_count; }  // over all terms

  // O(log terms); no allocation.
  absl::StatusOr<std::optional<format::TermInfo>> FindTerm(std::string_view term) const;

  // `member`: kAllMembers, or a member of the group (0 ..): only documents that have the term in that field, with the
  // field's own frequencies and positions. postings() is then exact for the largest member; for others, whose own index
  // has the exact count, it is the group's. Errors show in status().
  PostingCursor OpenCursor(const format::TermInfo& info, uint32_t member = kAllMembers,
                           std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const;
  // FindTerm and OpenCursor in one; an empty cursor if there is no such term.
  PostingCursor OpenTerm(std::string_view term, uint32_t member = kAllMembers,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const;

  // All terms in ascending order, for merges and checks. Stands before the first term.
  TermIterator Terms() const;

  // Walks everything: order of terms, counts, lists, positions, and, if `length` (of the index's lists, by ordinal) is
  // given, that no posting's contribution can be above its block's bounds. `largest_length`: the same of a group's
  // largest member. The first finding.
  using LengthOf = std::function<uint32_t(uint32_t ordinal)>;
  absl::Status Check(const LengthOf& length = nullptr, const LengthOf& largest_length = nullptr) const;

 private:
  friend class TermIterator;
  IndexReader() = default;
  // The dictionary block that may hold `term` (T-8), or -1.
  absl::StatusOr<int64_t> FindBlock(std::string_view term) const;
  absl::StatusOr<ByteSpan> BlockBytes(uint64_t block) const;
  absl::Status Record(uint64_t block, format::TermIndexRecord* record) const;
  absl::Status CheckList(std::string_view term, const format::TermInfo& info, const LengthOf& length,
                         const LengthOf& largest_length) const;

  format::TermsHeader header_{};
  uint32_t document_count_ = 0;
  const VerifiedBytes* terms_ = nullptr;
  const VerifiedBytes* headers_ = nullptr;
  const VerifiedBytes* postings_ = nullptr;
};

// Walks a dictionary front to back.
class TermIterator {
 public:
  explicit TermIterator(const IndexReader* reader) : reader_(reader) {}
  // To the next term; false at the end or on an error, which status() tells apart.
  bool Next();
  std::string_view term() const { return term_; }  // valid until Next()
  const format::TermInfo& info() const { return info_; }
  PostingCursor OpenCursor() const { return reader_->OpenCursor(info_); }  // all members
  const absl::Status& status() const { return status_; }

 private:
  bool LoadBlock();
  const IndexReader* reader_;
  uint64_t next_block_ = 0;
  uint64_t block_offset_ = 0;
  format::TermBlockReader block_{};
  uint64_t returned_ = 0;
  std::string previous_;
  std::string term_;
  format::TermInfo info_{};
  absl::Status status_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_INDEX_READER_H_
