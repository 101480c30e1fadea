// Checkpoint: a copy of the store as a snapshot sees it, in another directory. Segment files are linked or copied, each
// overlay becomes one more segment, the deaths up to the snapshot's sequence a deaths file; when all of that is
// durable, the copy's catalog is put in place by a rename, which is the moment at which the copy becomes the new state.
//
// The snapshot is all that is taken from the living store, so nobody waits. Files that a merge removes meanwhile are
// copied from what the snapshot keeps open.
//
// File numbers. Segments keep theirs, so that the next incremental checkpoint knows them again. What a checkpoint
// writes itself is numbered far beyond what the store will have come to by then.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/deaths.h"
#include "format/frame.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/deaths_file.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/engine/overlay_segment.h"
#include "src/env/path.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

using Entries = std::vector<env::FileSystem::DirectoryEntry>;

constexpr uint64_t kOwnNumbersBeyond = uint64_t{1} << 40;

// Whether a path is another one or below it, by spelling.
bool IsInside(const std::string& path, const std::string& directory) {
  if (path.starts_with('/') != directory.starts_with('/')) return false;
  const std::vector<std::string> inner = env::SplitPath(path), outer = env::SplitPath(directory);
  return inner.size() >= outer.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

bool HasCatalog(const Entries& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return catalog::IsCatalogFile(entry.name); });
}

// One run. Owns the lock on the target while it lives.
class CheckpointWriter {
 public:
  CheckpointWriter(env::Env env, std::string source, std::string target, std::shared_ptr<const SnapshotState> snapshot,
                   const CheckpointOptions& options)
      : env_(env),
        source_(std::move(source)),
        target_(std::move(target)),
        snapshot_(std::move(snapshot)),
        view_(snapshot_->view()),
        cell_(snapshot_->cell()),
        options_(options) {}

  absl::StatusOr<CheckpointReport> Run();

 private:
  absl::Status CheckPlace() const;
  absl::Status TakeTarget();
  absl::Status TakeExisting();
  absl::Status ReadOldState();
  absl::Status CheckOldState(const format::CatalogValue& old, const Entries& entries) const;
  // Files with names of ours that the old state does not name: of a run that broke off.
  absl::Status RemoveLeftovers();
  absl::Status Build();
  absl::Status AddSegments();
  absl::Status AddSegment(const LiveSegment& live);
  absl::Status AddOverlay(const LiveOverlay& overlay, uint32_t documents);
  absl::Status AddDeaths();
  absl::Status VerifySegments() const;
  absl::Status VerifyWhole() const;
  void RemoveOldFiles();
  void Undo();
  void RemoveEverything();

  bool Names(const format::CatalogValue& value, std::string_view name) const;
  absl::StatusOr<bool> IsOfAnotherStore(const std::string& path, format::FileKind kind) const;
  std::string Target(std::string_view name) const { return env::JoinPath(target_, name); }
  absl::Status Refuse(std::string_view why) const {
    return FailedPrecondition(absl::StrCat(target_, ": ", ToAbsl(why)));
  }

  const env::Env env_;
  const std::string source_, target_;
  const std::shared_ptr<const SnapshotState> snapshot_;
  const View& view_;
  const Cell& cell_;
  const CheckpointOptions options_;

  std::unique_ptr<env::FileLock> lock_;
  bool made_directory_ = false;
  bool made_lock_ = false;
  bool owned_ = false;             // the directory is free for us, or holds a checkpoint of this store
  bool committing_ = false;        // the new files may be named by the catalog from here on
  std::vector<std::string> made_;  // names of new files
  std::optional<format::CatalogValue> old_;
  format::CatalogValue value_;  // the new state
  CheckpointReport report_;
};

bool CheckpointWriter::Names(const format::CatalogValue& value, std::string_view name) const {
  if (const uint64_t number = DeathsNumberOf(name); number != 0) return number == value.deaths_number;
  const uint64_t number = segment::NumberOf(name);
  return std::any_of(value.segments.begin(), value.segments.end(),
                     [number](const format::SegmentEntry& entry) { return entry.number == number; });
}

absl::Status CheckpointWriter::CheckPlace() const {
  if (target_.empty()) return InvalidArgument("a checkpoint needs a directory");
  if (IsInside(target_, source_)) return InvalidArgument(absl::StrCat(target_, ": is the store itself, or inside it"));
  if (IsInside(source_, target_)) return InvalidArgument(absl::StrCat(target_, ": the store is inside it"));
  // The same by another spelling, and other stores: what is in a store's directory may be taken for its own.
  for (std::string parent = ParentOf(target_), last; parent != last; last = std::exchange(parent, ParentOf(parent))) {
    const absl::StatusOr<Entries> entries = env_.files->List(parent);
    if (entries.ok() && HasCatalog(*entries))
      return InvalidArgument(absl::StrCat(target_, ": is inside of the store in ", parent));
    if (parent == "." || parent == "/") break;
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::TakeTarget() {
  ASHLAR_RETURN_IF_ERROR(CheckPlace());
  const absl::Status created = env_.files->CreateDirectory(target_);
  if (!created.ok() && !(options_.incremental && absl::IsAlreadyExists(created))) return created;
  made_directory_ = made_lock_ = created.ok();
  // One that is there may have been made by an attempt that failed, so its name may not be durable either.
  if (SiteIsOn(Site::kCheckpointParentSync)) {
    const absl::Status synced = env_.files->SyncDirectory(ParentOf(target_));
    // Who may not even look at the parent can't have made the directory.
    if (!synced.ok() && (made_directory_ || !absl::IsPermissionDenied(synced))) return synced;
  }
  if (!made_directory_) return TakeExisting();
  ASHLAR_ASSIGN_OR_RETURN(lock_, env_.files->Lock(Target(kLockFileName)));
  return absl::OkStatus();
}

absl::Status CheckpointWriter::TakeExisting() {
  ASHLAR_ASSIGN_OR_RETURN(Entries entries, env_.files->List(target_));
  if (!HasCatalog(entries)) {
    // An empty directory, or a first checkpoint that broke off.
    for (const env::FileSystem::DirectoryEntry& entry : entries)
      if (!entry.is_file ||
          (segment::NumberOf(entry.name) == 0 && DeathsNumberOf(entry.name) == 0 && entry.name != kLockFileName))
        return Refuse(absl::StrCat("holds ", entry.name, " and no checkpoint"));
  }
  made_lock_ = std::none_of(entries.begin(), entries.end(), [](const auto& e) { return e.name == kLockFileName; });
  ASHLAR_ASSIGN_OR_RETURN(lock_, env_.files->Lock(Target(kLockFileName)));
  ASHLAR_RETURN_IF_ERROR(ReadOldState());
  return RemoveLeftovers();
}

absl::Status CheckpointWriter::ReadOldState() {
  ASHLAR_ASSIGN_OR_RETURN(const Entries entries, env_.files->List(target_));
  const absl::StatusOr<std::unique_ptr<catalog::Catalog>> catalog =
      catalog::OpenCatalog(env_, target_, catalog::Access::kRead);
  if (absl::IsNotFound(catalog.status())) return absl::OkStatus();
  if (!catalog.ok()) return catalog.status();
  absl::StatusOr<format::CatalogValue> old = (*catalog)->Read();
  if (absl::IsNotFound(old.status())) return Refuse("holds a store to which nothing was committed, not a checkpoint");
  if (!old.ok()) return old.status();
  ASHLAR_RETURN_IF_ERROR(CheckOldState(*old, entries));
  old_ = *std::move(old);
  return absl::OkStatus();
}

absl::Status CheckpointWriter::CheckOldState(const format::CatalogValue& old, const Entries& entries) const {
  if (old.store_id != view_.store_id) return Refuse("holds another store");
  bool written_to = !format::IsCheckpoint(old);
  for (const env::FileSystem::DirectoryEntry& entry : entries)
    written_to |= journal::NumberOf(entry.name).value_or(0) >= old.journal_number;
  if (written_to)
    return Refuse("was opened as a store and written to, so it is no checkpoint any more; choose another directory");
  if (old.floor > cell_.sequence)
    return Refuse(absl::StrCat("holds sequence ", old.floor, ", which is newer than the store's ", cell_.sequence));
  if (old.schema_number > view_.schema_number) return Refuse("has a newer schema than the store");
  return absl::OkStatus();
}

absl::StatusOr<bool> CheckpointWriter::IsOfAnotherStore(const std::string& path, format::FileKind kind) const {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, env_.files->OpenForRead(path));
  std::byte bytes[format::kFileHeaderBytes];
  ASHLAR_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, bytes));
  if (got < sizeof bytes) return false;
  const absl::StatusOr<format::FileHeader> header = format::DecodeFileHeader(bytes, kind, path);
  return header.ok() && header->store_id != view_.store_id;
}

absl::Status CheckpointWriter::RemoveLeftovers() {
  ASHLAR_ASSIGN_OR_RETURN(const Entries entries, env_.files->List(target_));
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    const bool is_segment = segment::NumberOf(entry.name) != 0;
    if (!entry.is_file || (!is_segment && DeathsNumberOf(entry.name) == 0)) continue;
    if (old_.has_value() && Names(*old_, entry.name)) continue;
    ASHLAR_ASSIGN_OR_RETURN(
        const bool foreign,
        IsOfAnotherStore(Target(entry.name), is_segment ? format::FileKind::kSegment : format::FileKind::kDeaths));
    if (foreign) return Refuse(absl::StrCat(entry.name, " is a file of another store"));
    ASHLAR_RETURN_IF_ERROR(env_.files->Remove(Target(entry.name)));
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::AddSegment(const LiveSegment& live) {
  format::SegmentEntry entry = live.entry();
  entry.dead = static_cast<uint32_t>(live.DeathsUpTo(cell_.sequence).size());
  value_.segments.push_back(entry);
  if (old_.has_value()) {
    for (const format::SegmentEntry& there : old_->segments) {
      if (there.number != entry.number) continue;
      if (there.file_id != entry.file_id || there.file_bytes != entry.file_bytes)
        return Refuse(absl::StrCat("has another segment ", entry.number));
      ++report_.segments_kept;
      return absl::OkStatus();
    }
  }
  const std::string name = segment::FileName(entry.number);
  made_.push_back(name);
  if (options_.hard_links) {
    const absl::Status linked = env_.files->Link(env::JoinPath(source_, name), Target(name));
    if (linked.ok()) {
      ++report_.segments_linked;
      return linked;
    }
    // NotFound: a merge has removed the name meanwhile, but the snapshot holds the file.
    if (!absl::IsUnimplemented(linked) && !absl::IsNotFound(linked)) return linked;
  }
  ASHLAR_RETURN_IF_ERROR(live.segment().CopyTo(*env_.files, Target(name)));
  ++report_.segments_copied;
  report_.bytes_written += entry.file_bytes;
  return absl::OkStatus();
}

absl::Status CheckpointWriter::AddSegments() {
  // Not even unverified: which documents of a segment that was sealed off are dead may not be known, and the copy's
  // floor would say that it is.
  for (const std::shared_ptr<LiveSegment>& live : view_.segments)
    if (const std::optional<SegmentDamage> damage = live->damage(); damage.has_value())
      return Annotate(damage->status, "a damaged store is not copied; see Salvage");
  for (const std::shared_ptr<LiveSegment>& live : view_.segments) ASHLAR_RETURN_IF_ERROR(AddSegment(*live));
  return absl::OkStatus();
}

absl::Status CheckpointWriter::AddOverlay(const LiveOverlay& overlay, uint32_t documents) {
  if (documents == 0) return absl::OkStatus();
  segment::SegmentSpec spec;
  spec.number = value_.next_file_number++;
  spec.store_id = value_.store_id;
  spec.schema = value_.schema;
  spec.schema_number = value_.schema_number;
  spec.generation = value_.generation;
  made_.push_back(segment::FileName(spec.number));
  ASHLAR_ASSIGN_OR_RETURN(
      const std::optional<format::SegmentEntry> entry,
      WriteOverlaySegment(env_, target_, overlay, documents, cell_.sequence, std::move(spec)));
  if (!entry.has_value()) return absl::OkStatus();
  value_.segments.push_back(*entry);
  report_.bytes_written += entry->file_bytes;
  return absl::OkStatus();
}

absl::Status CheckpointWriter::AddDeaths() {
  format::DeathsFile deaths;
  for (const std::shared_ptr<LiveSegment>& live : view_.segments) {
    std::vector<format::Death> of_segment = live->DeathsUpTo(cell_.sequence);
    if (!of_segment.empty()) deaths.segments.push_back({live->entry().number, std::move(of_segment)});
  }
  if (deaths.segments.empty()) return absl::OkStatus();
  std::sort(deaths.segments.begin(), deaths.segments.end(),
            [](const auto& a, const auto& b) { return a.segment_number < b.segment_number; });
  env_.entropy->Fill(deaths.file_id);
  deaths.store_id = value_.store_id;
  deaths.generation = value_.generation;
  value_.deaths_number = value_.next_file_number++;
  value_.deaths_file_id = deaths.file_id;
  const std::string name = DeathsFileName(value_.deaths_number);
  made_.push_back(name);
  ASHLAR_ASSIGN_OR_RETURN(const uint64_t bytes, WriteDeathsFile(env_, Target(name), deaths));
  report_.bytes_written += bytes;
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Build() {
  value_.store_id = view_.store_id;
  value_.schema = *view_.schema;
  value_.schema_number = view_.schema_number;
  value_.analyzer_identity = view_.analyzer_identity;
  value_.floor = cell_.sequence;
  value_.last_sequence = std::max(cell_.sequence, cell_.last_sequence);
  value_.watermark = cell_.watermark;
  value_.generation = view_.generation;
  value_.next_file_number = view_.next_file_number + kOwnNumbersBeyond;
  if (old_.has_value()) {
    value_.generation = std::max(value_.generation, old_->generation + 1);
    value_.next_file_number = std::max(value_.next_file_number, old_->next_file_number);
    value_.last_sequence = std::max(value_.last_sequence, old_->last_sequence);
  }
  if (value_.next_file_number >= UINT64_MAX - kOwnNumbersBeyond)
    return ResourceExhausted(absl::StrCat(target_, ": file numbers are used up"));
  ASHLAR_RETURN_IF_ERROR(AddSegments());
  for (size_t i = 0; i < snapshot_->overlay_count(); ++i)
    ASHLAR_RETURN_IF_ERROR(AddOverlay(snapshot_->overlay(i), snapshot_->overlay_documents(i)));
  ASHLAR_RETURN_IF_ERROR(AddDeaths());
  value_.journal_number = value_.next_file_number;
  value_.durable_journal_offset = value_.generation;  // C-6
  if (SiteIsOn(Site::kCheckpointDirectorySync)) ASHLAR_RETURN_IF_ERROR(env_.files->SyncDirectory(target_));
  return VerifySegments();
}

// Before the commit, so that an old checkpoint is never given up for a damaged one.
absl::Status CheckpointWriter::VerifySegments() const {
  for (const format::SegmentEntry& entry : value_.segments) {
    ASHLAR_ASSIGN_OR_RETURN(
        const std::shared_ptr<const segment::Segment> segment,
        segment::Segment::Open(env_, target_, entry, value_.store_id, value_.generation, OpenMode::kMapped));
    if (!options_.verify) continue;
    const std::vector<absl::Status> findings = segment->Check();
    if (!findings.empty()) return findings.front();
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::VerifyWhole() const {
  Options options;
  options.read_only = true;
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> copy, Engine::Open(env_, nullptr, target_, options, nullptr));
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<Finding> findings, copy->Check(/*segments=*/false));
  for (const Finding& finding : findings)
    if (finding.kind == Finding::Kind::kDamage)
      return DataLoss(finding.file.empty() ? target_ : finding.file, finding.section, finding.offset, finding.message);
  const uint64_t documents = copy->GetStats().documents;
  if (documents == cell_.live_documents) return absl::OkStatus();
  return DataLoss(target_, "", 0,
                  absl::StrCat("holds ", documents, " documents, the store had ", cell_.live_documents));
}

// What the new state does not name. What can't be removed now, the next run removes, or a writer that opens the copy.
void CheckpointWriter::RemoveOldFiles() {
  if (!old_.has_value()) return;
  std::vector<std::string> names;
  for (const format::SegmentEntry& entry : old_->segments) names.push_back(segment::FileName(entry.number));
  if (old_->deaths_number != 0) names.push_back(DeathsFileName(old_->deaths_number));
  for (const std::string& name : names)
    if (!Names(value_, name)) env_.files->Remove(Target(name)).IgnoreError();
  env_.files->SyncDirectory(target_).IgnoreError();
}

void CheckpointWriter::Undo() {
  if (owned_ && old_.has_value()) {
    // Once the commit was begun the catalog may name them; else orphans, which the next run removes.
    for (const std::string& name : made_)
      if (!committing_) env_.files->Remove(Target(name)).IgnoreError();
  } else if (owned_) {
    RemoveEverything();
  }
  if (lock_ != nullptr && made_lock_) env_.files->Remove(Target(kLockFileName)).IgnoreError();
  lock_.reset();
  env_.files->SyncDirectory(target_).IgnoreError();
  if (!made_directory_) return;
  env_.files->Remove(target_).IgnoreError();
  env_.files->SyncDirectory(ParentOf(target_)).IgnoreError();
}

// The catalog first, for good: without it the rest is nothing.
void CheckpointWriter::RemoveEverything() {
  const absl::StatusOr<Entries> entries = env_.files->List(target_);
  if (!entries.ok()) return;
  for (const bool catalog : {true, false}) {
    for (const env::FileSystem::DirectoryEntry& entry : *entries)
      if (catalog::IsCatalogFile(entry.name) == catalog && entry.name != kLockFileName)
        env_.files->Remove(Target(entry.name)).IgnoreError();
    // If that can't be made to last, the rest stays: a damaged checkpoint would look like a loss.
    if (catalog && SiteIsOn(Site::kCheckpointUndoSync) && !env_.files->SyncDirectory(target_).ok()) return;
  }
}

absl::StatusOr<CheckpointReport> CheckpointWriter::Run() {
  absl::Status status = TakeTarget();
  owned_ = status.ok();
  if (status.ok()) status = Build();
  if (status.ok()) {
    committing_ = true;
    status = catalog::ReplaceCatalog(env_, target_, value_);
  }
  if (status.ok() && options_.verify) status = VerifyWhole();
  if (!status.ok()) {
    Undo();
    return status;
  }
  RemoveOldFiles();
  report_.sequence = cell_.sequence;
  report_.documents = cell_.live_documents;
  return report_;
}

}  // namespace

absl::StatusOr<CheckpointReport> Engine::Checkpoint(const std::string& directory,
                                                    const CheckpointOptions& options) const {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  if (memory_ != nullptr) return FailedPrecondition("a store in memory has no files to be copied");
  if (failure_state_.state() == StoreState::kClosed) return FailedPrecondition("the store is closed");
  return CheckpointWriter(env_, directory_, directory, TakeSnapshot(), options).Run();
}

}  // namespace ashlar::engine
