#include "src/engine/read_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/document_codec.h"
#include "src/base/status.h"
#include "src/text/analyzed_document.h"

namespace ashlar::engine {
namespace {

constexpr size_t kScanChunk = 1024;

bool IsDead(Sequence death, Sequence at) { return death != 0 && death <= at; }

uint32_t SegmentCount(const SnapshotState& snapshot) { return static_cast<uint32_t>(snapshot.view().segments.size()); }

// Of a source that is an overlay; null: it is a segment.
const LiveOverlay* OverlayOf(const SnapshotState& snapshot, uint32_t source) {
  const uint32_t segments = SegmentCount(snapshot);
  return source < segments ? nullptr : &snapshot.overlay(source - segments);
}

absl::Status CheckHandle(const SnapshotState& snapshot, Handle handle) {
  if (handle.source < SourceCountOf(snapshot) && handle.ordinal < DocumentCountOf(snapshot, handle.source))
    return absl::OkStatus();
  return InvalidArgument(absl::StrCat("handle (", handle.source, ", ", handle.ordinal, ") is not of this snapshot"));
}

// Decodes stored values and puts the key where its field belongs, so that a document looks the same whether it comes
// from the overlay, which holds every value, or from a segment, which keeps the key apart.
absl::Status Assemble(const Schema& schema, ByteSpan encoded, bool stored_only, StoredDocument* out) {
  const int key = schema.KeyIndex();
  bool key_done = key < 0;
  const auto add_key = [&] {
    out->document.Add(schema.fields[static_cast<size_t>(key)].name, Value(out->key));
    key_done = true;
  };
  bool known = true;
  const bool well_formed = format::VisitValues(encoded, [&](const format::ValueView& value) {
    if (value.field >= schema.fields.size()) {
      known = false;
      return;
    }
    const Field& field = schema.fields[value.field];
    if (static_cast<int>(value.field) == key || (stored_only && !field.stored)) return;
    if (!key_done && static_cast<int>(value.field) > key) add_key();
    switch (value.type) {
      case FieldType::kText:
      case FieldType::kKeyword:
        out->document.Add(field.name, std::string(value.bytes));
        break;
      case FieldType::kInt64:
        out->document.Add(field.name, value.integer);
        break;
      case FieldType::kDouble:
        out->document.Add(field.name, value.real);
        break;
      case FieldType::kDate:
        out->document.Add(field.name, Date{value.integer});
        break;
      case FieldType::kBytes:
        out->document.Add(field.name, Blob{std::string(value.bytes)});
        break;
    }
  });
  if (!well_formed || !known) return absl::DataLossError("a stored document is malformed");
  if (!key_done) add_key();
  return absl::OkStatus();
}

// Live keys of one source in ascending order, a chunk at a time.
class KeyCursor {
 public:
  KeyCursor(const SnapshotState* snapshot, uint32_t source, std::string_view from)
      : snapshot_(snapshot), source_(source), from_(from) {}

  absl::Status Start() {
    if (const LiveOverlay* overlay = OverlayOf(*snapshot_, source_)) LoadOverlay(*overlay);
    return Fill();
  }
  bool done() const { return at_ == chunk_.size(); }
  const std::string& key() const { return chunk_[at_].first; }
  Handle handle() const { return {source_, chunk_[at_].second}; }
  absl::Status Next() {
    ++at_;
    return done() ? Fill() : absl::OkStatus();
  }

 private:
  void LoadOverlay(const LiveOverlay& overlay) {
    for (uint32_t ordinal = 0; ordinal < DocumentCountOf(*snapshot_, source_); ++ordinal) {
      const std::string_view key = overlay.KeyOf(ordinal);
      if (!IsDead(overlay.DeathOf(ordinal), snapshot_->cell().sequence) && key >= from_)
        chunk_.emplace_back(std::string(key), ordinal);
    }
    std::sort(chunk_.begin(), chunk_.end());
    exhausted_ = true;
  }

  absl::Status Fill() {
    while (done() && !exhausted_) {
      chunk_.clear();
      at_ = 0;
      const LiveSegment& live = *snapshot_->view().segments[source_];
      size_t seen = 0;
      std::string last;
      ASHLAR_RETURN_IF_ERROR(live.VisitKeys(from_, [&](std::string_view key, uint32_t ordinal) {
        last.assign(key);
        if (!IsDead(live.DeathOf(ordinal), snapshot_->cell().sequence)) chunk_.emplace_back(std::string(key), ordinal);
        return ++seen < kScanChunk;
      }));
      exhausted_ = seen < kScanChunk;
      from_ = last + '\0';  // the least key that is greater
    }
    return absl::OkStatus();
  }

  const SnapshotState* snapshot_;
  uint32_t source_;
  std::string from_;
  std::vector<std::pair<std::string, uint32_t>> chunk_;
  size_t at_ = 0;
  bool exhausted_ = false;
};

}  // namespace

uint32_t DocumentCountOf(const SnapshotState& snapshot, uint32_t source) {
  const uint32_t segments = SegmentCount(snapshot);
  return source < segments ? snapshot.view().segments[source]->document_count()
                           : snapshot.overlay_documents(source - segments);
}

bool IsDeadIn(const SnapshotState& snapshot, Handle handle) {
  const LiveOverlay* overlay = OverlayOf(snapshot, handle.source);
  return IsDead(overlay != nullptr ? overlay->DeathOf(handle.ordinal)
                                   : snapshot.view().segments[handle.source]->DeathOf(handle.ordinal),
                snapshot.cell().sequence);
}

absl::Status AssembleDocument(const Schema& schema, ByteSpan encoded, StoredDocument* out) {
  return Assemble(schema, encoded, /*stored_only=*/true, out);
}

absl::Status DecodeWholeDocument(const Schema& schema, ByteSpan encoded, StoredDocument* out) {
  const int key = schema.KeyIndex();
  format::VisitValues(encoded, [&](const format::ValueView& value) {
    if (static_cast<int>(value.field) == key) out->key.assign(value.bytes);
  });
  return Assemble(schema, encoded, /*stored_only=*/false, out);
}

absl::StatusOr<std::optional<Handle>> FindKey(const SnapshotState& snapshot, std::string_view key) {
  const View& view = snapshot.view();
  const Cell& cell = snapshot.cell();
  const uint32_t segments = SegmentCount(snapshot);
  for (size_t i = snapshot.overlay_count(); i-- > 0;)
    if (const std::optional<uint32_t> ordinal =
            snapshot.overlay(i).FindKey(key, snapshot.overlay_documents(i), cell.sequence))
      return std::optional<Handle>(Handle{segments + static_cast<uint32_t>(i), *ordinal});
  absl::Status damage;
  for (uint32_t i = segments; i-- > 0;) {
    const absl::StatusOr<std::optional<uint32_t>> ordinal = view.segments[i]->FindKey(key);
    damage.Update(ordinal.status());
    if (ordinal.ok() && ordinal->has_value() && !IsDead(view.segments[i]->DeathOf(**ordinal), cell.sequence))
      return std::optional<Handle>(Handle{i, **ordinal});
  }
  if (!damage.ok()) return damage;
  return std::optional<Handle>();
}

absl::StatusOr<std::optional<Handle>> FindId(const SnapshotState& snapshot, DocumentId id) {
  const View& view = snapshot.view();
  const Cell& cell = snapshot.cell();
  const uint32_t segments = SegmentCount(snapshot);
  for (size_t i = 0; i < snapshot.overlay_count(); ++i) {
    const std::optional<uint32_t> ordinal = snapshot.overlay(i).FindId(id, snapshot.overlay_documents(i));
    if (!ordinal.has_value()) continue;
    if (IsDead(snapshot.overlay(i).DeathOf(*ordinal), cell.sequence)) return std::optional<Handle>();
    return std::optional<Handle>(Handle{segments + static_cast<uint32_t>(i), *ordinal});
  }
  for (uint32_t i = 0; i < segments; ++i) {
    const LiveSegment& live = *view.segments[i];
    if (id < live.segment().first_id() || id > live.segment().last_id()) continue;
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<uint32_t> ordinal, live.FindId(id));
    if (!ordinal.has_value() || IsDead(live.DeathOf(*ordinal), cell.sequence)) return std::optional<Handle>();
    return std::optional<Handle>(Handle{i, *ordinal});
  }
  return std::optional<Handle>();
}

absl::StatusOr<std::string> ReadKey(const SnapshotState& snapshot, Handle handle) {
  ASHLAR_RETURN_IF_ERROR(CheckHandle(snapshot, handle));
  const View& view = snapshot.view();
  if (view.schema->key.empty()) return std::string();
  if (const LiveOverlay* overlay = OverlayOf(snapshot, handle.source)) return std::string(overlay->KeyOf(handle.ordinal));
  return view.segments[handle.source]->KeyOf(handle.ordinal);
}

absl::StatusOr<DocumentId> ReadId(const SnapshotState& snapshot, Handle handle) {
  ASHLAR_RETURN_IF_ERROR(CheckHandle(snapshot, handle));
  if (const LiveOverlay* overlay = OverlayOf(snapshot, handle.source)) return overlay->IdOf(handle.ordinal);
  return snapshot.view().segments[handle.source]->IdOf(handle.ordinal);
}

absl::StatusOr<StoredDocument> ReadDocument(const SnapshotState& snapshot, Handle handle) {
  StoredDocument result;
  ASHLAR_ASSIGN_OR_RETURN(result.id, ReadId(snapshot, handle));
  ASHLAR_ASSIGN_OR_RETURN(result.key, ReadKey(snapshot, handle));
  const View& view = snapshot.view();
  if (const LiveOverlay* overlay = OverlayOf(snapshot, handle.source)) {
    ASHLAR_RETURN_IF_ERROR(AssembleDocument(*view.schema, overlay->DocumentOf(handle.ordinal), &result));
    return result;
  }
  const LiveSegment& live = *view.segments[handle.source];
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer stored, live.StoredOf(handle.ordinal));
  ASHLAR_RETURN_IF_ERROR(live.Explained(
      WithPlace(AssembleDocument(*view.schema, stored, &result), live.segment().path(), "stored", handle.ordinal)));
  return result;
}

absl::Status VisitKeys(const SnapshotState& snapshot, std::string_view from,
                       const std::function<absl::StatusOr<bool>(std::string_view key, Handle handle)>& visit) {
  std::vector<KeyCursor> cursors;
  for (uint32_t source = 0; source < SourceCountOf(snapshot); ++source) {
    cursors.emplace_back(&snapshot, source, from);
    ASHLAR_RETURN_IF_ERROR(cursors.back().Start());
  }
  while (true) {
    KeyCursor* least = nullptr;
    for (KeyCursor& cursor : cursors)
      if (!cursor.done() && (least == nullptr || cursor.key() < least->key())) least = &cursor;
    if (least == nullptr) return absl::OkStatus();
    ASHLAR_ASSIGN_OR_RETURN(const bool more, visit(least->key(), least->handle()));
    if (!more) return absl::OkStatus();
    ASHLAR_RETURN_IF_ERROR(least->Next());
  }
}

}  // namespace ashlar::engine
