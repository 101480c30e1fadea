// Purge: a merge after which nothing of what was deleted before is left in a file of the directory. Such bytes are in:
//   segments     documents that died; and dictionaries of stored documents, which merges take over, have text of some
//                that are gone. So every segment is written again, with dictionaries of its own documents.
//   journal      a new file is begun, which is not a recycled one, and all others go, those set aside, too
//   catalog      LMDB leaves old values in its free pages, so it gets a new file
//   leftovers    what a failed flush or merge could not remove
// Each step is one that a flush, a merge or a commit takes as well, so it may end anywhere.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/engine.h"

namespace ashlar::engine {

absl::Status Engine::Purge(uint32_t segments_max) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  if (options_.durability == Durability::kOff)
    return FailedPrecondition(
        "a store that is open without a journal can't be purged: what an earlier opening has left in "
        "the journal stays until there is a new one");
  scheduler_->BeginAskedMerge();
  absl::Status status;
  {
    MutexLock lock(&merge_mutex_);
    status = MergeTo(std::max(segments_max, 1u), MergeKind::kPurge);
    MutexLock flush_lock(&flush_mutex_);
    if (status.ok()) status = CommitAsItIs(CommitMode::kRewrite);
    if (status.ok()) status = EraseLeftovers();
  }
  scheduler_->EndAskedMerge();
  if (!status.ok()) return status;
  Count("purges");
  return CheckNotHeld();
}

absl::StatusOr<Engine::Segments> Engine::FlushForPurge() {
  ASHLAR_RETURN_IF_ERROR(FlushFrozen());
  Segments before;
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_RETURN_IF_ERROR(CheckWritable());
    ASHLAR_RETURN_IF_ERROR(CheckSettled());
    before = view_->segments;
    if (absl::Status status = EnsureJournal(); !status.ok()) return Fail(status, NewJournalMayBeThere());
    ASHLAR_RETURN_IF_ERROR(journal_->EraseBelow(0));  // else the next file might be a recycled one
    ASHLAR_RETURN_IF_ERROR(Freeze(/*rotate=*/true));
    erases_journal_ = true;
  }
  const absl::Status status = FlushFrozen();
  MutexLock lock(&writer_mutex_);
  erases_journal_ = false;
  if (!status.ok()) return status;
  return before;
}

absl::Status Engine::EraseLeftovers() {
  MutexLock lock(&writer_mutex_);
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  ASHLAR_RETURN_IF_ERROR(journal_->EraseBelow(committed_.journal_number));
  NoteJournal();
  uint64_t last_number = 0;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<std::string> orphans, FindOrphans(&last_number));
  for (const std::string& name : orphans) {
    const absl::Status status = env_.files->Remove(Path(name));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return env_.files->SyncDirectory(directory_);  // else power loss might bring names back
}

absl::Status Engine::CheckNotHeld() const {
  constexpr size_t kNamedMax = 10;
  const std::vector<SnapshotList::Entry> holders = snapshots_->HoldersOfOthers(CurrentSegments());
  if (holders.empty()) return absl::OkStatus();
  std::string names;
  for (const SnapshotList::Entry& holder : holders) {
    if (&holder - holders.data() == kNamedMax) {
      absl::StrAppend(&names, " and others");
      break;
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", "that of sequence ", holder.sequence, ", held for ",
                    (env_.clock->MonotonicNs() - holder.taken_ns) / 1000000, " ms");
  }
  return FailedPrecondition(absl::StrCat(
      directory_, ": purged, but removed files are on the disk until these snapshots are released: ", names));
}

}  // namespace ashlar::engine
