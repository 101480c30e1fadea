// The seam between search and storage: what a cursor and a source must offer. src/query knows these and no file; the
// cursors of src/segment and src/overlay model the first, the adapters of src/engine/read_view.h the second.
#ifndef ASHLAR_SRC_QUERY_CURSOR_H_
#define ASHLAR_SRC_QUERY_CURSOR_H_

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/dense_window.h"
#include "format/layout.h"

namespace ashlar::query {

// clang-format off: version 14 does not know concepts.

// A new cursor stands on its first posting.
template <class C>
concept PostingCursor = std::movable<C> && requires(C c, const C& k, uint32_t target) {
  { k.document() } -> std::same_as<uint32_t>;   // format::kNoDocument at the end
  { k.frequency() } -> std::same_as<uint32_t>;  // of the current posting, at least 1
  {c.Next()};
  {c.Seek(target)};                              // to the first document >= target; never back
  { k.postings() } -> std::same_as<uint32_t>;    // documents in the list, dead ones included
  { k.status() } -> std::same_as<absl::Status>;  // sticky; read before hits are returned
};

// A cursor that knows where in its document the words stand.
template <class C>
concept PositionCursor = PostingCursor<C> &&
    requires(C c, std::vector<uint32_t>* positions, std::vector<uint32_t>* counts) {
  // Appends the current posting's positions, those of one field of its index after another in a fixed order, ascending
  // in each; *counts becomes how many belong to each field. Damage ends the cursor.
  {c.AppendPositions(positions, counts)};
};

// A cursor that finds out about a document only when it must. A new one need not stand on a posting: document() is then
// one before which it has none. Whoever walks it with Next calls Settle first; whoever asks for documents calls SeekTo
// alone.
template <class C>
concept LazyCursor = PostingCursor<C> && requires(C c, uint32_t document) {
  // Whether it has the document; if not, document() is beyond it, and nothing after it was looked at.
  { c.SeekTo(document) } -> std::same_as<bool>;
};

// Makes a new cursor stand on its first posting.
template <PostingCursor C>
void Settle(C* cursor) {
  if constexpr (LazyCursor<C>) cursor->Seek(0);
}

// A cursor whose list has bounds, for traversals that skip: the most that the postings of a block contribute follows
// from pairs of (frequency, length) codes (format/frontier.h). 16 values behind block_frequencies() are readable, as
// kernels do.
template <class C>
concept BoundedCursor = PostingCursor<C> && requires(C c, const C& k, uint32_t block) {
  { k.is_bounded() } -> std::same_as<bool>;            // this list
  { k.bounds() } -> std::same_as<typename C::Bounds>;  // no pairs: one block of block_documents(), which has no headers
  { c.MoveToBlock(block) } -> std::same_as<bool>;      // in any direction; false after damage
  {c.Rewind()};                                        // of a list with blocks: to its first posting
  { k.has_windows() } -> std::same_as<bool>;           // each group of blocks is a format::Window
  { c.OpenWindow(block) } -> std::same_as<const format::Window*>;  // null: behind the last one, or after damage
  { k.block_documents() } -> std::same_as<std::span<const uint32_t>>;
  { c.block_frequencies() } -> std::same_as<std::span<const uint32_t>>;  // may be decoded only now
};

// One segment or overlay as of one snapshot: ordinals 0 .. document_count() - 1.
template <class S>
concept Source = requires(const S& s, format::IndexId index, std::string_view term, uint32_t ordinal) {
  typename S::Cursor;
  typename S::Lengths;                               // operator[](uint32_t ordinal) -> uint32_t; default: all 0
  { s.document_count() } -> std::same_as<uint32_t>;  // dead ones included
  { s.put_order_base() } -> std::same_as<uint32_t>;  // put order of ordinal 0
  { s.has_deaths() } -> std::same_as<bool>;          // false: IsDead is false for all
  { s.IsDead(ordinal) } -> std::same_as<bool>;       // as of the snapshot
  { s.OpenTerm(index, term) } -> std::same_as<typename S::Cursor>;
  { s.OpenPositions(index, term) } -> std::same_as<typename S::Cursor>;  // with positions; postings() may be too many
  {s.OpenLengths(index)};                                                // absl::StatusOr<S::Lengths>
}
&&PositionCursor<typename S::Cursor>&& std::default_initializable<typename S::Lengths>;

// clang-format on

// A source that can tell the dead documents many at a time.
template <class S>
concept HasDeadBits = Source<S> && requires(const S& s, uint32_t word) {
  { s.DeadBits(word) } -> std::same_as<uint64_t>;  // bit i: ordinal 64 word + i is dead as of the snapshot
};

// A source whose lengths can be opened for a search that looks at few: status() of them tells of damage that was met.
template <class S>
concept HasSomeLengths = Source<S> && requires(const S& s, format::IndexId index, const typename S::Lengths& lengths) {
  {s.OpenSomeLengths(index)};
  {lengths.status()};
};

// A source that can tell the dead postings of a term without a walk over the list.
template <class S>
concept CountsDeadPostings = Source<S> && requires(const S& s, format::IndexId index, std::string_view term) {
  { s.DeadPostings(index, term) } -> std::same_as<absl::StatusOr<uint32_t>>;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_CURSOR_H_
