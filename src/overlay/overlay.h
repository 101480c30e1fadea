// Overlay: the in-memory inverted index of what is not flushed yet. Append-only: one writer adds documents, any number
// of readers look at the first n of them (n comes from their snapshot) without locks and without waiting.
//
// Memory order: the writer finishes a document's postings, then publishes the document count that includes it (by way
// of the engine's snapshot cell, under a mutex or with release); a reader that got n by acquire sees all of the first n
// documents. Within shared structures (term table, posting chunks, key table) counts and heads are atomics, so that
// ThreadSanitizer agrees.
//
// The fields of the default group share one list per term, whose postings say which fields they come from
// (posting_list.h): a word of the group costs one look-up and one append, and a field of the group alone is that list,
// filtered.
#ifndef ASHLAR_SRC_OVERLAY_OVERLAY_H_
#define ASHLAR_SRC_OVERLAY_OVERLAY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/block_bounds.h"
#include "format/dense_window.h"
#include "format/layout.h"
#include "src/base/bytes.h"
#include "src/overlay/posting_list.h"
#include "src/text/analyzed_document.h"

namespace ashlar::overlay {

class Overlay;

// What a list of one block or more shows of its blocks, as of a snapshot; the last block may be a part of one.
struct BlockTable {
  static constexpr uint32_t kPairs = static_cast<uint32_t>(format::kBlockListPairs.block);

  uint32_t blocks = 0;
  uint32_t groups = 0;                                              // of format::kBlocksPerGroup blocks
  std::vector<ByteCursor> begins;                                   // by block
  std::vector<uint32_t> last_documents;                             // by block
  std::vector<uint8_t> pair_frequencies, pair_lengths;              // [pair * blocks + block]
  std::vector<uint8_t> group_pair_frequencies, group_pair_lengths;  // by group, one pair
  uint32_t tail_postings = 0;                                       // of the last block

  uint64_t FirstPossible(uint32_t block) const { return block == 0 ? 0 : uint64_t{last_documents[block - 1]} + 1; }
  uint32_t LastDocument(uint32_t block) const { return last_documents[block]; }
  // The first block, from `from` on, that ends at or after the document; `blocks` if none does.
  uint32_t FindBlock(uint32_t from, uint32_t document) const;
  uint32_t PostingsOf(uint32_t block) const { return block + 1 == blocks ? tail_postings : kBlockPostings; }
};

using BlockBounds = format::BlockBounds<BlockTable>;

// Walks the postings of one term among the first n documents. Models query::PostingCursor and query::BoundedCursor: a
// new cursor stands on its first posting. Owns nothing of the overlay: valid while the Overlay lives. One thread at a
// time.
class Cursor {
 public:
  using Bounds = BlockBounds;

  Cursor() = default;                              // empty list
  uint32_t document() const { return document_; }  // format::kNoDocument at the end
  uint32_t frequency() const { return frequency_; }
  void Next();
  void Seek(uint32_t target);  // to the first document >= target; never back
  // Documents in the list, dead ones included. O(1) unless documents were added since the snapshot, then O(blocks), or
  // this is one field of a larger group: then the first call walks the list.
  uint32_t postings() const {
    if (postings_ == kNotCounted) postings_ = CountPostings();
    return postings_;
  }
  absl::Status status() const { return absl::OkStatus(); }
  // Appends the positions of the current posting, ascending. Empty where the field keeps none, and on the group's own
  // list.
  void AppendPositions(std::vector<uint32_t>* out) const;
  // The same of the group's own list, too: its fields' positions one after another; `counts` becomes how many each has.
  void AppendPositions(std::vector<uint32_t>* out, std::vector<uint32_t>* counts) const {
    counts->clear();
    AppendRow(counts, out);
  }
  // Flush: the current posting in the form of segment::PostingRow. Appends one frequency per member of the index (the
  // group's fields in ascending field number, or the one field) and the members' positions one after another.
  void AppendRow(std::vector<uint32_t>* frequencies, std::vector<uint32_t>* positions) const;

  // --- blocks and their bounds, for traversals that skip; as segment::PostingCursor has them ---
  // Of all lists but those of one field of a larger group.
  bool is_bounded() const { return member_ == kAllMembers; }
  // O(blocks) at the first call. No pairs for a list that is shorter than a block.
  BlockBounds bounds() const;
  bool MoveToBlock(uint32_t block);
  void Rewind();
  bool has_windows() const { return false; }
  const format::Window* OpenWindow(uint32_t) { return nullptr; }
  // Of the block that MoveToBlock moved to; of a list without blocks: all.
  std::span<const uint32_t> block_documents() const { return {Decoded()->documents.data(), decoded_->count}; }
  std::span<const uint32_t> block_frequencies() const { return {Decoded()->frequencies.data(), decoded_->count}; }

 private:
  friend class Overlay;
  struct DecodedBlock {
    size_t count = 0;
    std::vector<uint32_t> documents, frequencies;
  };
  const BlockTable& Table() const;
  void FindBlocks(BlockTable* table, std::vector<const BlockNote*>* notes) const;
  void FillPairs(const std::vector<const BlockNote*>& notes, BlockTable* table) const;
  const DecodedBlock* Decoded() const;
  // Decodes `count` postings of all members and keeps those of the snapshot.
  void Decode(const ByteCursor& begin, uint32_t last, uint32_t count) const;
  // Of them, those of the member that is looked at.
  void DecodeMember(const ByteCursor& begin, uint32_t last, uint32_t count) const;
  // Before the first posting of a block; Next goes on there.
  void StandBefore(uint32_t block);

  static constexpr uint32_t kNotCounted = 0xFFFFFFFFu;
  static constexpr uint32_t kAllMembers = 0xFFFFFFFFu;

  void NextInKeyList();
  void StandInKeyList();
  uint32_t CountPostings() const;
  // Appends a member's positions in the current posting and returns its frequency, 0 if it has none.
  uint32_t AppendMember(uint32_t member, std::vector<uint32_t>* out) const;

  uint32_t document_ = format::kNoDocument;
  uint32_t frequency_ = 0;
  mutable uint32_t postings_ = 0;
  uint32_t left_ = 0;              // postings of the list not read yet
  uint32_t documents_ = 0;         // n: documents from here on are not the snapshot's
  uint32_t member_ = kAllMembers;  // the member that is looked at
  uint32_t last_ = 0;              // the ordinal of the posting read last
  uint32_t total_ = 0;             // its occurrences in all members, unless occurs_once_
  bool occurs_once_ = false;
  ListShape shape_;
  ByteCursor at_;       // the next posting
  ByteCursor payload_;  // the members and positions of the current one
  const TermEntry* term_ = nullptr;
  const LengthColumn* lengths_ = nullptr;  // of the index
  uint32_t published_ = 0;                 // postings, some of them perhaps of documents from n on
  mutable std::unique_ptr<BlockTable> table_;
  mutable std::unique_ptr<DecodedBlock> decoded_;
  std::vector<uint32_t> ordinals_;  // the key field: the documents themselves, ascending
  size_t ordinal_at_ = 0;
};

// Lengths of one field or the group by ordinal, 0 where missing. Valid while the Overlay lives; ordinals must be below
// a document count got from a snapshot.
class Lengths {
 public:
  Lengths() = default;  // all 0
  uint32_t operator[](uint32_t ordinal) const { return column_ == nullptr ? 0 : column_->Get(ordinal); }

 private:
  friend class Overlay;
  explicit Lengths(const LengthColumn* column) : column_(column) {}
  const LengthColumn* column_ = nullptr;
};

class Overlay {
 public:
  explicit Overlay(const Schema& schema);
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  // --- writer ---
  // Adds a document and returns its ordinal. DocumentIds must ascend. Ordinals count from 0; at most 2^32 - 2
  // documents.
  uint32_t Add(DocumentId id, const text::AnalyzedDocument& document);
  // Marks a document dead at `sequence` (> 0); once per document.
  void Kill(uint32_t ordinal, Sequence sequence);
  uint32_t document_count() const;  // added so far (the writer's view)
  uint64_t bytes() const;           // of memory in use, all of it; any thread

  // --- readers; `n` is the snapshot's document count ---
  Cursor OpenTerm(format::IndexId index, std::string_view term, uint32_t n) const;
  // Length of a field (or the group) of a document, 0 if missing.
  uint32_t Length(format::IndexId index, uint32_t ordinal) const;
  Lengths OpenLengths(format::IndexId index) const;
  Sequence DeathOf(uint32_t ordinal) const;  // 0: alive
  // Bit i: document 64 word + i is dead at `at`. Only words with a document of the snapshot.
  uint64_t DeadBitsAt(uint32_t word, uint32_t n, Sequence at) const;
  // Documents killed so far. 0: every document of any snapshot taken before is alive, so nothing need ask DeathOf.
  uint32_t death_count() const;
  DocumentId IdOf(uint32_t ordinal) const;
  std::string_view KeyOf(uint32_t ordinal) const;
  ByteSpan DocumentOf(uint32_t ordinal) const;  // encoded, all values
  // The newest of the first n documents with this key whose death is 0 or > at; nullopt if there is none.
  std::optional<uint32_t> FindKey(std::string_view key, uint32_t n, Sequence at) const;
  std::optional<uint32_t> FindId(DocumentId id, uint32_t n) const;

  // --- flush: only when frozen (no writer any more), but for VisitTerms ---
  // Ordinals in ascending order of key (bytes), those of one key ascending; documents without a key are left out.
  std::vector<uint32_t> OrdinalsByKey() const;
  // Terms of an index in ascending byte order, each with a cursor over all documents. kGroupIndex gives the group's
  // lists, whose Cursor::AppendRow has the members apart, so that a flush reads each list once. Stops at the first
  // error. Beside a writer it finds every term of the documents published so far; lists may go on beyond those.
  absl::Status VisitTerms(format::IndexId index,
                          const std::function<absl::Status(std::string_view term, Cursor cursor)>& visit) const;
  // Postings of a field, for choosing the largest of the group.
  uint64_t PostingsOf(format::IndexId field) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_OVERLAY_H_
