// Read view: what a snapshot's sources look like to src/query, and reading documents from them.
// This is the one place that sees both sides: the adapters model query::Source over segments and the overlay.
#ifndef ASHLAR_SRC_ENGINE_READ_VIEW_H_
#define ASHLAR_SRC_ENGINE_READ_VIEW_H_

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ashlar/hits.h"
#include "ashlar/query.h"
#include "src/engine/view.h"
#include "src/query/cursor.h"

namespace ashlar::engine {

// One segment as of a snapshot. Borrowed from it.
class SegmentSource {
 public:
  using Cursor = segment::PostingCursor;
  using Lengths = segment::LengthReader;

  // Its cursors are in `memory`.
  SegmentSource(const LiveSegment& live, uint32_t base, Sequence at,
                std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : live_(&live), base_(base), at_(at), has_deaths_(live.has_deaths()), memory_(memory) {}
  uint32_t document_count() const { return live_->document_count(); }
  uint32_t put_order_base() const { return base_; }
  bool has_deaths() const { return has_deaths_; }
  bool IsDead(uint32_t ordinal) const { return live_->IsDeadAt(ordinal, at_); }
  uint64_t DeadBits(uint32_t word) const { return live_->DeadBitsAt(word, at_); }
  Cursor OpenTerm(format::IndexId index, std::string_view term) const { return live_->OpenTerm(index, term, memory_); }
  Cursor OpenPositions(format::IndexId index, std::string_view term) const {
    return live_->OpenPositions(index, term, memory_);
  }
  absl::StatusOr<uint32_t> DeadPostings(format::IndexId index, std::string_view term) const {
    return live_->DeadPostings(index, term, at_);
  }
  absl::StatusOr<Lengths> OpenLengths(format::IndexId index) const { return live_->Lengths(index); }
  absl::StatusOr<Lengths> OpenSomeLengths(format::IndexId index) const { return live_->SomeLengths(index); }

 private:
  const LiveSegment* live_;
  uint32_t base_;
  Sequence at_;
  bool has_deaths_;
  std::pmr::memory_resource* memory_;
};

// The first documents of an overlay as of a snapshot. Borrowed from it.
class OverlaySource {
 public:
  using Cursor = overlay::Cursor;
  using Lengths = overlay::Lengths;

  OverlaySource(const LiveOverlay& overlay, uint32_t documents, uint32_t base, Sequence at)
      : overlay_(&overlay), documents_(documents), base_(base), at_(at) {}
  uint32_t document_count() const { return documents_; }
  uint32_t put_order_base() const { return base_; }
  bool has_deaths() const { return overlay_->death_count() > 0; }
  bool IsDead(uint32_t ordinal) const {
    const Sequence death = overlay_->DeathOf(ordinal);
    return death != 0 && death <= at_;
  }
  uint64_t DeadBits(uint32_t word) const { return overlay_->DeadBitsAt(word, documents_, at_); }
  Cursor OpenTerm(format::IndexId index, std::string_view term) const {
    return overlay_->OpenTerm(index, term, documents_);
  }
  Cursor OpenPositions(format::IndexId index, std::string_view term) const { return OpenTerm(index, term); }
  absl::StatusOr<uint32_t> DeadPostings(format::IndexId index, std::string_view term) const {
    return overlay_->DeadPostings(index, term, documents_, at_);
  }
  absl::StatusOr<Lengths> OpenLengths(format::IndexId index) const { return overlay_->OpenLengths(index); }

 private:
  const LiveOverlay* overlay_;
  uint32_t documents_;
  uint32_t base_;
  Sequence at_;
};

static_assert(query::CountsDeadPostings<SegmentSource>);
static_assert(query::CountsDeadPostings<OverlaySource>);

// Sources by their number in a Handle: the segments, then the overlays.
uint32_t DocumentCountOf(const SnapshotState& snapshot, uint32_t source);  // dead ones included
inline uint32_t SourceCountOf(const SnapshotState& snapshot) {
  return static_cast<uint32_t>(snapshot.view().segments.size() + snapshot.overlay_count());
}
bool IsDeadIn(const SnapshotState& snapshot, Handle handle);

// A live document's place, or nullopt. A key that is alive in one source is dead or absent in all others, so damage matters only
// where nobody else has it.
absl::StatusOr<std::optional<Handle>> FindKey(const SnapshotState& snapshot, std::string_view key);
absl::StatusOr<std::optional<Handle>> FindId(const SnapshotState& snapshot, DocumentId id);

// Decodes a segment's or the overlay's stored values; `out->key` is set before, and is put where its field belongs.
absl::Status AssembleDocument(const Schema& schema, ByteSpan encoded, StoredDocument* out);
// Decodes an encoded document with all its values, the key and fields that are not stored among them.
absl::Status DecodeWholeDocument(const Schema& schema, ByteSpan encoded, StoredDocument* out);

// What is at a place; InvalidArgument if the handle is not of this snapshot.
absl::StatusOr<StoredDocument> ReadDocument(const SnapshotState& snapshot, Handle handle);
absl::StatusOr<std::string> ReadKey(const SnapshotState& snapshot, Handle handle);
absl::StatusOr<DocumentId> ReadId(const SnapshotState& snapshot, Handle handle);

absl::StatusOr<SearchResult> Search(const SnapshotState& snapshot, const PreparedQuery& query,
                                    const SearchOptions& options);

// Live documents in order of key, from the first key >= from; until `visit` returns false.
absl::Status VisitKeys(const SnapshotState& snapshot, std::string_view from,
                       const std::function<absl::StatusOr<bool>(std::string_view key, Handle handle)>& visit);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_READ_VIEW_H_
