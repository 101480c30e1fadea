// Check: everything is read and compared with everything that depends on it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/deaths.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/engine/read_view.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

using Findings = std::vector<std::string>;

void Add(const absl::Status& status, Findings* findings) {
  if (!status.ok()) findings->push_back(std::string(status.message()));
}

// At any snapshot a key has at most one live document.
void CheckKeys(const SnapshotState& snapshot, Findings* findings) {
  if (snapshot.view().schema->key.empty()) return;
  std::string last;
  uint64_t count = 0;
  const absl::Status status = VisitKeys(snapshot, {}, [&](std::string_view key, Handle handle) -> absl::StatusOr<bool> {
    if (count > 0 && key == last)
      findings->push_back(absl::StrCat("key '", last, "' has two live documents; the second is (", handle.source, ", ",
                                       handle.ordinal, ")"));
    last.assign(key);
    ++count;
    return true;
  });
  Add(status, findings);
  if (status.ok() && count != snapshot.cell().live_documents)
    findings->push_back(absl::StrCat("the segments and the overlay have ", count, " live keys, the statistics say ",
                                     snapshot.cell().live_documents, " live documents"));
}

// The statistics that scores depend on, counted again.
void CheckLengths(const SnapshotState& snapshot, const std::vector<format::IndexId>& searchable, Findings* findings) {
  const View& view = snapshot.view();
  const Cell& cell = snapshot.cell();
  for (const format::IndexId index : searchable) {
    uint64_t sum = 0;
    for (size_t i = 0; i < view.segments.size(); ++i) {
      const LiveSegment& live = *view.segments[i];
      const absl::StatusOr<segment::LengthReader> lengths = live.segment().Lengths(index);
      if (!lengths.ok()) return Add(lengths.status(), findings);
      const SegmentSource source(live, view.bases[i], cell.sequence);
      for (uint32_t ordinal = 0; ordinal < live.document_count(); ++ordinal)
        if (!source.IsDead(ordinal)) sum += (*lengths)[ordinal];
    }
    const OverlaySource overlay(*view.overlay, cell.overlay_documents, view.bases.back(), cell.sequence);
    for (uint32_t ordinal = 0; ordinal < cell.overlay_documents; ++ordinal)
      if (!overlay.IsDead(ordinal)) sum += view.overlay->Length(index, ordinal);
    const uint64_t kept = cell.length_sums[SumIndex(*view.schema, index)];
    if (sum != kept)
      findings->push_back(
          absl::StrCat("index ", index, ": the live lengths sum to ", sum, ", the statistics say ", kept));
  }
}

}  // namespace

absl::StatusOr<std::vector<Finding>> Engine::Check() const {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  Findings findings, strangers;
  std::vector<format::IndexId> searchable;
  format::CatalogValue committed;
  {
    MutexLock lock(&writer_mutex_);
    if (closed_) return FailedPrecondition("the store is closed");
    searchable = searchable_;
    committed = committed_;
    const absl::StatusOr<Findings> catalog = catalog_->Check();
    if (catalog.ok()) {
      findings = *catalog;
    } else {
      Add(catalog.status(), &findings);
    }
    // Only while the writer stands still is the file that the catalog names sure to be there.
    if (committed.deaths_number != 0) {
      const std::string path = Path(DeathsFileName(committed.deaths_number));
      const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, path);
      Add(bytes.ok() ? format::DecodeDeaths(*bytes, path).status() : bytes.status(), &findings);
    }
  }
  const std::shared_ptr<const SnapshotState> snapshot = TakeSnapshot();
  for (const std::shared_ptr<LiveSegment>& live : snapshot->view().segments) {
    const Findings of_segment = live->segment().Check();
    findings.insert(findings.end(), of_segment.begin(), of_segment.end());
  }
  CheckKeys(*snapshot, &findings);
  CheckLengths(*snapshot, searchable, &findings);

  // What is not ours is a note, never damage. A writer in another process may be making or removing files at this
  // moment.
  bool writer_lives = false;
  if (options_.read_only) {
    ASHLAR_ASSIGN_OR_RETURN(writer_lives, env_.files->IsLocked(Path(kLockFileName)));
  }
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, env_.files->List(directory_));
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    bool ours = entry.name == kLockFileName || entry.name == journal::kStatusFileName ||
                catalog::IsCatalogFile(entry.name) || journal::NumberOf(entry.name).has_value() ||
                entry.name == journal::kSpareFileName || entry.name == journal::kNewFileName;
    if (const uint64_t number = segment::NumberOf(entry.name); number != 0)
      for (const std::shared_ptr<LiveSegment>& live : snapshot->view().segments) ours |= live->entry().number == number;
    if (const uint64_t number = DeathsNumberOf(entry.name); number != 0) ours |= number == committed.deaths_number;
    if (writer_lives && (segment::NumberOf(entry.name) != 0 || DeathsNumberOf(entry.name) != 0)) continue;
    if (!ours || !entry.is_file)
      strangers.push_back(Path(entry.name));
  }
  std::vector<Finding> result;
  for (const std::string& message : findings) result.push_back({Finding::Kind::kDamage, "", "", 0, message});
  for (const std::string& path : strangers)
    result.push_back({Finding::Kind::kNote, path, "", 0, path + " is not a file of this store"});
  return result;
}

}  // namespace ashlar::engine
