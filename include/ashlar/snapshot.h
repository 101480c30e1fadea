// Snapshot: a fixed point in time of a store, to search and read.
#ifndef ASHLAR_SNAPSHOT_H_
#define ASHLAR_SNAPSHOT_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/hits.h"
#include "ashlar/query.h"

namespace ashlar {

namespace engine {
class SnapshotState;
}

// What: all batches up to one sequence, and nothing later.
// Owns: shares the segments and overlays it reads; their files and memory live as long as it does. It may outlive
//   its Store, also after Close().
// Threads: immutable; any number of threads may use one, and copies, at once. It blocks no writer and none blocks it.
// Errors: DataLoss where a damaged page is touched; InvalidArgument for bad queries and options.
class Snapshot {
 public:
  Snapshot() = default;
  explicit Snapshot(std::shared_ptr<const engine::SnapshotState> state) : state_(std::move(state)) {}

  Sequence sequence() const;
  uint64_t document_count() const;  // live documents
  // The watermark of the newest batch up to sequence() that has one. nullopt: none has.
  std::optional<std::string> watermark() const;
  uint32_t segment_count() const;
  uint64_t overlay_document_count() const;

  // The best `options.k` hits after `options.offset`. May read pages of segment files; takes no lock.
  absl::StatusOr<SearchResult> Search(const PreparedQuery& query, const SearchOptions& options = {}) const;

  // Documents, keys or ids of hits, in the order given. Handles must come from this snapshot.
  absl::StatusOr<std::vector<StoredDocument>> Fetch(std::span<const Handle> handles) const;
  absl::StatusOr<std::vector<std::string>> FetchKeys(std::span<const Handle> handles) const;
  absl::StatusOr<std::vector<DocumentId>> FetchIds(std::span<const Handle> handles) const;

  // NotFound if there is no live document of that key or id. O(segments) look-ups.
  absl::StatusOr<StoredDocument> Get(std::string_view key) const;
  absl::StatusOr<StoredDocument> GetById(DocumentId id) const;
  // One entry per key, in the order given; a key without a document gives NotFound in its entry.
  std::vector<absl::StatusOr<StoredDocument>> MultiGet(std::span<const std::string> keys) const;

  enum class Order { kKey, kDocumentId };
  // Calls `visit` for every live document in ascending order of key (bytes) or DocumentId until it returns false.
  // kKey starts at the first key >= `from_key`.
  absl::Status Scan(Order order, const std::function<bool(const StoredDocument&)>& visit,
                    std::string_view from_key = {}) const;
  // The same without reading the documents: keys only, in key order.
  absl::Status ScanKeys(const std::function<bool(std::string_view key, DocumentId id)>& visit,
                        std::string_view from_key = {}) const;

 private:
  std::shared_ptr<const engine::SnapshotState> state_;
};

}  // namespace ashlar

#endif  // ASHLAR_SNAPSHOT_H_
