// PostingCursor: walks one posting list of a segment, reading packed blocks straight from its bytes.
#ifndef ASHLAR_SRC_SEGMENT_POSTING_CURSOR_H_
#define ASHLAR_SRC_SEGMENT_POSTING_CURSOR_H_

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "format/block_bounds.h"
#include "format/dense_window.h"
#include "format/layout.h"
#include "format/posting_block.h"
#include "format/term_block.h"
#include "src/segment/verified_bytes.h"

namespace ashlar::segment {

// Where the lists of one index are.
struct ListSource {
  format::IndexShape shape;
  uint32_t document_count = 0;  // ordinals are below it
  const VerifiedBytes* headers = nullptr;
  const VerifiedBytes* postings = nullptr;
};

using BlockBounds = format::BlockBounds<format::ListHeaders>;

// Of a cursor on a group's list: every document of it, with summed frequencies.
inline constexpr uint32_t kAllMembers = 0xFFFFFFFFu;

// Models query::PostingCursor. Move-only; valid while the Segment lives. Never throws: on damage it moves to the end
// and status() says why, for good. One thread.
class PostingCursor {
 public:
  using Bounds = BlockBounds;

  PostingCursor();  // empty list
  PostingCursor(PostingCursor&&) noexcept;
  PostingCursor& operator=(PostingCursor&&) noexcept;
  ~PostingCursor();
  // At the end from the start, with this error.
  explicit PostingCursor(absl::Status error);
  // On the first posting of a list; errors show in status(). IndexReader::OpenCursor says what `member` means.
  // What it decodes into is in `memory`, which must outlive it.
  static PostingCursor Open(const ListSource& source, const format::TermInfo& info, uint32_t member,
                            std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  uint32_t document() const { return document_; }  // format::kNoDocument at the end
  uint32_t frequency() const { return frequency_; }
  void Next() {
    if (++at_ < count_) [[likely]] {
      document_ = documents_[at_];
      frequency_ = frequencies_[at_];
    } else {
      NextBlock();
    }
  }
  // To the first document >= target; never back. Looks at headers and decodes the target's block only.
  void Seek(uint32_t target) {
    if (target > document_) SeekForward(target);
  }
  uint32_t postings() const { return postings_; }  // documents in the list, dead ones included
  absl::Status status() const;
  // Appends the positions of the current posting. For the group: each member field's one after another, in ascending
  // field number; `counts`, if given, receives how many belong to each member. A filtered cursor gives its member's
  // only.
  absl::Status AppendPositions(std::vector<uint32_t>* out, std::vector<uint32_t>* counts = nullptr);
  // The current posting's frequency in each member of the index, in member order; frequencies->size() becomes the
  // member count (a filtered cursor gives all members' as well).
  absl::Status MemberFrequencies(std::vector<uint32_t>* frequencies);

  // For checks, with all members: whether the current posting is the last of its block (or short list), and then
  // whether its positions end where the block's do.
  bool at_block_end() const { return at_ + 1 == count_; }
  absl::Status CheckPositionsEnd();

  // --- blocks and their bounds, for traversals that skip ---
  // The list's headers, or null for a list under 128 postings, which has none. Bounds hold for the list itself, not for
  // a member of a group, whose documents are shorter: those of the largest member are in headers()->largest_*.
  const format::ListHeaders* headers() const;
  // The block that the cursor stands in. Only with headers().
  uint32_t block() const;
  // To the first posting of a block at or after the current one (of the cursor's member, which may be in a later
  // block).
  void SeekBlock(uint32_t block);
  // Whether bounds() are those of what the cursor shows: of all lists but those filtered by another member than the
  // largest.
  bool is_bounded() const;
  // No pairs for a list without blocks.
  BlockBounds bounds() const;
  // Decodes a block's documents, in any direction; at the end if it has none of the cursor's member. False after
  // damage. What is shown is the block: frequency(), Next and Seek may be used again after block_frequencies() or
  // Rewind.
  bool MoveToBlock(uint32_t block);
  // Back to the first posting of a list with blocks.
  void Rewind();
  // Whether the list has dense windows that show what the cursor shows; a group of blocks is one.
  bool has_windows() const;
  // Valid until the next call of OpenWindow or of what moves the cursor; the cursor stays where it is. Null after
  // damage, and behind the last window.
  const format::Window* OpenWindow(uint32_t window);
  // To a posting of the block (of a short list), counted from its first one. Not beyond them.
  void MoveInBlock(uint32_t at);
  // The positions of such a posting as steps, in an index of one field: the first, then the gaps. Empty where that
  // would not be a look at what is there: in short lists, in groups, for more than 128 steps, for damage. Valid until
  // the next call.
  std::span<const uint32_t> StepsInBlock(uint32_t at);
  // The postings of the current block (of a short list: of all) from the current one on, decoded; empty at the end.
  std::span<const uint32_t> block_documents() const { return {documents_ + at_, count_ - at_}; }
  // Decodes them, if that was not done: after damage there the cursor is at the end, and they are 1.
  std::span<const uint32_t> block_frequencies() {
    return state_ == nullptr ? std::span<const uint32_t>() : ReadFrequencies();
  }

 private:
  struct State;
  void NextBlock();
  void SeekForward(uint32_t target);
  void Enter(uint32_t at);
  void MoveToEnd();
  void Fail(absl::Status status);
  void OpenShort(const format::TermInfo& info);
  void OpenBlocks(const format::TermInfo& info);
  // Decodes a block and shows it, whatever it has; false, and at the end, after damage.
  bool Decode(uint32_t block);
  // Decodes blocks from `block` on until one has a posting for this cursor; false (and at the end) if there is none.
  bool Load(uint32_t block);
  // Shows the decoded postings, or those of the cursor's member.
  absl::Status Show();
  std::span<const uint32_t> ReadFrequencies();

  uint32_t document_ = format::kNoDocument;
  uint32_t frequency_ = 0;
  uint32_t at_ = 0;     // within the decoded block
  uint32_t count_ = 0;  // of the decoded block
  const uint32_t* documents_ = nullptr;
  const uint32_t* frequencies_ = nullptr;
  uint32_t postings_ = 0;
  struct Delete {
    void operator()(State* state) const;
  };
  static std::unique_ptr<State, Delete> NewState(std::pmr::memory_resource* memory);

  std::unique_ptr<State, Delete> state_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_POSTING_CURSOR_H_
