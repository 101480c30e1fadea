// The public Snapshot on top of a SnapshotState.
#include "ashlar/snapshot.h"

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/read_view.h"

namespace ashlar {

Sequence Snapshot::sequence() const { return state_->cell().sequence; }
uint64_t Snapshot::document_count() const { return state_->cell().live_documents; }
std::optional<std::string> Snapshot::watermark() const { return state_->cell().watermark; }
uint32_t Snapshot::segment_count() const { return static_cast<uint32_t>(state_->view().segments.size()); }
uint64_t Snapshot::overlay_document_count() const {
  uint64_t documents = 0;
  for (size_t i = 0; i < state_->overlay_count(); ++i) documents += state_->overlay_documents(i);
  return documents;
}

absl::StatusOr<SearchResult> Snapshot::Search(const PreparedQuery& query, const SearchOptions& options) const {
  return engine::Search(*state_, query, options);
}

absl::StatusOr<std::vector<StoredDocument>> Snapshot::Fetch(std::span<const Handle> handles) const {
  std::vector<StoredDocument> result;
  result.reserve(handles.size());
  for (const Handle handle : handles) {
    ASHLAR_ASSIGN_OR_RETURN(StoredDocument document, engine::ReadDocument(*state_, handle));
    result.push_back(std::move(document));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> Snapshot::FetchKeys(std::span<const Handle> handles) const {
  std::vector<std::string> result;
  result.reserve(handles.size());
  for (const Handle handle : handles) {
    ASHLAR_ASSIGN_OR_RETURN(std::string key, engine::ReadKey(*state_, handle));
    result.push_back(std::move(key));
  }
  return result;
}

absl::StatusOr<std::vector<DocumentId>> Snapshot::FetchIds(std::span<const Handle> handles) const {
  std::vector<DocumentId> result;
  result.reserve(handles.size());
  for (const Handle handle : handles) {
    ASHLAR_ASSIGN_OR_RETURN(const DocumentId id, engine::ReadId(*state_, handle));
    result.push_back(id);
  }
  return result;
}

absl::StatusOr<StoredDocument> Snapshot::Get(std::string_view key) const {
  if (state_->view().schema->key.empty()) return InvalidArgument("the store has no key field");
  ASHLAR_ASSIGN_OR_RETURN(const std::optional<Handle> handle, engine::FindKey(*state_, key));
  if (!handle.has_value()) return NotFound(absl::StrCat("no document with key '", ToAbsl(key), "'"));
  return engine::ReadDocument(*state_, *handle);
}

absl::StatusOr<StoredDocument> Snapshot::GetById(DocumentId id) const {
  ASHLAR_ASSIGN_OR_RETURN(const std::optional<Handle> handle, engine::FindId(*state_, id));
  if (!handle.has_value()) return NotFound(absl::StrCat("no document with DocumentId ", id));
  return engine::ReadDocument(*state_, *handle);
}

std::vector<absl::StatusOr<StoredDocument>> Snapshot::MultiGet(std::span<const std::string> keys) const {
  std::vector<absl::StatusOr<StoredDocument>> result;
  result.reserve(keys.size());
  for (const std::string& key : keys) result.push_back(Get(key));
  return result;
}

absl::Status Snapshot::Scan(Order order, const std::function<bool(const StoredDocument&)>& visit,
                            std::string_view from_key) const {
  const engine::SnapshotState& state = *state_;
  if (order == Order::kKey) {
    if (state.view().schema->key.empty()) return InvalidArgument("the store has no key field to scan by");
    return engine::VisitKeys(state, from_key, [&](std::string_view, Handle handle) -> absl::StatusOr<bool> {
      ASHLAR_ASSIGN_OR_RETURN(const StoredDocument document, engine::ReadDocument(state, handle));
      return visit(document);
    });
  }
  if (!from_key.empty()) return InvalidArgument("a scan by DocumentId starts at the first document");
  // Sources cover ascending ranges of DocumentIds, and so do the ordinals within them.
  for (uint32_t source = 0; source < engine::SourceCountOf(state); ++source) {
    const uint32_t count = engine::DocumentCountOf(state, source);
    for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
      if (engine::IsDeadIn(state, {source, ordinal})) continue;
      ASHLAR_ASSIGN_OR_RETURN(const StoredDocument document, engine::ReadDocument(state, {source, ordinal}));
      if (!visit(document)) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status Snapshot::ScanKeys(const std::function<bool(std::string_view key, DocumentId id)>& visit,
                                std::string_view from_key) const {
  if (state_->view().schema->key.empty()) return InvalidArgument("the store has no key field to scan by");
  return engine::VisitKeys(*state_, from_key, [&](std::string_view key, Handle handle) -> absl::StatusOr<bool> {
    ASHLAR_ASSIGN_OR_RETURN(const DocumentId id, engine::ReadId(*state_, handle));
    return visit(key, id);
  });
}

}  // namespace ashlar
