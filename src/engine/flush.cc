// Flush: overlay -> segment file -> catalog. The catalog commit is the one moment at which the store's durable state
// changes; before it the new files are orphans, after it the old ones are.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/deaths.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/deaths_file.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/engine/overlay_segment.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

// kOff writes no journal that could tell which sequences were handed out before a crash, so the catalog reserves them.
constexpr Sequence kUnjournaledReserve = Sequence{1} << 40;

}  // namespace

absl::StatusOr<std::optional<format::SegmentEntry>> Engine::WriteOverlay(const overlay::Overlay& overlay,
                                                                         uint32_t documents, Sequence at) {
  segment::SegmentSpec spec;
  spec.number = NextFileNumber();
  spec.store_id = committed_.store_id;
  spec.schema = *view_->schema;
  spec.schema_number = committed_.schema_number;
  spec.generation = committed_.generation;
  spec.postings_per_field.assign(spec.schema.fields.size(), 0);
  for (const format::IndexId index : searchable_)
    if (index != format::kGroupIndex) spec.postings_per_field[index] = overlay.PostingsOf(index);
  const std::string name = segment::FileName(spec.number);
  absl::StatusOr<std::optional<format::SegmentEntry>> entry =
      WriteOverlaySegment(env_, directory_, overlay, documents, at, std::move(spec));
  if (!entry.ok()) RemoveUnpublished(name);
  return entry;
}

absl::StatusOr<std::shared_ptr<LiveSegment>> Engine::OpenSegment(const format::SegmentEntry& entry) {
  ASHLAR_ASSIGN_OR_RETURN(
      std::shared_ptr<const segment::Segment> segment,
      segment::Segment::Open(env_, directory_, entry, committed_.store_id, committed_.generation,
                             SegmentOptions(options_, /*keep_damaged=*/false)));
  return std::make_shared<LiveSegment>(std::move(segment), entry, env_.clock);
}

absl::Status Engine::CommitCatalog(format::CatalogValue* value,
                                   const std::vector<std::shared_ptr<LiveSegment>>& segments) {
  value->generation = committed_.generation + 1;
  value->last_sequence =
      next_sequence_ - 1 + (options_.durability == Durability::kOff && !closing_ && SiteIsOn(Site::kOpenReservesSequences)
                                ? kUnjournaledReserve
                                : 0);
  value->watermark = watermark_;
  value->segments.clear();
  format::DeathsFile deaths;
  for (const std::shared_ptr<LiveSegment>& live : segments) {
    format::SegmentDeaths of_segment;
    of_segment.segment_number = live->entry().number;
    of_segment.deaths = live->DeathsUpTo(value->floor);
    format::SegmentEntry entry = live->entry();
    entry.dead = static_cast<uint32_t>(of_segment.deaths.size());
    value->segments.push_back(entry);
    if (!of_segment.deaths.empty()) deaths.segments.push_back(std::move(of_segment));
  }
  std::sort(deaths.segments.begin(), deaths.segments.end(),
            [](const format::SegmentDeaths& a, const format::SegmentDeaths& b) {
              return a.segment_number < b.segment_number;
            });
  if (deaths_changed_) {
    value->deaths_number = 0;
    value->deaths_file_id = {};
    if (!deaths.segments.empty()) {
      value->deaths_number = NextFileNumber();
      env_.entropy->Fill(deaths.file_id);
      deaths.store_id = committed_.store_id;
      deaths.generation = value->generation;
      value->deaths_file_id = deaths.file_id;
      const std::string path = Path(DeathsFileName(value->deaths_number));
      absl::Status status = WriteDeathsFile(env_, path, deaths).status();
      if (status.ok() && SiteIsOn(Site::kDeathsDirectorySync)) status = env_.files->SyncDirectory(directory_);
      if (!status.ok()) {
        RemoveUnpublished(DeathsFileName(value->deaths_number));
        return status;
      }
    }
  }
  value->next_file_number = next_file_number_;
  if (lock_ != nullptr) ASHLAR_RETURN_IF_ERROR(lock_->CheckHeld());
  const uint64_t old_deaths = committed_.deaths_number;
  if (!SiteIsOn(Site::kDeathsRemovedAfterCommit) && old_deaths != 0 && old_deaths != value->deaths_number)
    RemoveFiles({DeathsFileName(old_deaths)});
  ForgetUnpublished();
  if (const absl::Status status = catalog_->Commit(*value); !status.ok()) {
    Fail(status, !absl::IsResourceExhausted(status)).IgnoreError();
    if (value->deaths_number != old_deaths && value->deaths_number != 0)
      RemoveUnpublished(DeathsFileName(value->deaths_number));
    return status;
  }
  failure_state_.Succeeded(env_.clock->WallMs());
  committed_ = *value;
  deaths_changed_ = false;
  if (old_deaths != 0 && old_deaths != value->deaths_number) RemoveFiles({DeathsFileName(old_deaths)});
  return absl::OkStatus();
}

void Engine::RemoveFiles(const std::vector<std::string>& names) {
  // What can't be removed now is an orphan that the next open removes.
  for (const std::string& name : names) env_.files->Remove(Path(name)).IgnoreError();
}

absl::Status Engine::CheckSettled() const {
  for (const std::shared_ptr<LiveSegment>& live : view_->segments) {
    if (!live->unsettled()) continue;
    return Annotate(live->damage()->status,
                    absl::StrCat("the journal is kept, because a batch in it may replace a document of a damaged segment (",
                                 ToAbsl(RemedyOf(StoreState::kDamaged)), ")"));
  }
  return absl::OkStatus();
}

absl::Status Engine::FlushLocked() {
  if (bulk_ != nullptr) ASHLAR_RETURN_IF_ERROR(FlushBulk());
  const bool documents = cell_.overlay_documents > 0;
  if (!documents && !deaths_changed_ && committed_.floor == cell_.sequence && committed_.watermark == watermark_)
    return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(CheckSettled());
  absl::StatusOr<std::optional<format::SegmentEntry>> entry =
      WriteOverlay(*view_->overlay, cell_.overlay_documents, cell_.sequence);
  if (!entry.ok()) return Fail(entry.status(), false);
  std::vector<std::shared_ptr<LiveSegment>> segments = view_->segments;
  if (entry->has_value()) {
    absl::StatusOr<std::shared_ptr<LiveSegment>> live = OpenSegment(**entry);
    if (!live.ok()) {
      RemoveUnpublished(segment::FileName((*entry)->number));
      return Fail(live.status(), false);
    }
    segments.push_back(*std::move(live));
  }
  if (absl::Status status = PublishFloor(std::move(segments)); !status.ok()) {
    if (entry->has_value()) RemoveUnpublished(segment::FileName((*entry)->number));
    return status;
  }
  Count("flushes");
  return absl::OkStatus();
}

// A file whose writing or publication failed. If the outcome is unknown the catalog may name it, so it stays.
void Engine::RemoveUnpublished(const std::string& name) {
  if (failure_state_.state() == StoreState::kFailedSync) return;
  unpublished_.push_back(name);
  RemoveFiles({name});
}

// Once a commit has taken numbers beyond that of a file which failed, opening no longer takes it for ours if it is half
// written: so its removal lasts first. A failure here leaves a file that nobody reads.
void Engine::ForgetUnpublished() {
  if (unpublished_.empty() || !SiteIsOn(Site::kUnpublishedRemoval)) return;
  RemoveFiles(unpublished_);
  env_.files->SyncDirectory(directory_).IgnoreError();
  unpublished_.clear();
}

absl::Status Engine::PublishFloor(std::vector<std::shared_ptr<LiveSegment>> segments) {
  format::CatalogValue value = committed_;
  value.floor = cell_.sequence;
  if (options_.durability != Durability::kOff) {
    // The journal goes on in a new file, so that everything before it can go once the catalog has the new floor.
    absl::Status status = EnsureJournal();
    if (status.ok()) status = journal_->Rotate(JournalContext());
    if (status.ok()) schema_rotation_due_ = false;
    if (!status.ok()) return Fail(status, NewJournalMayBeThere());
    oldest_unsynced_ns_ = 0;  // a rotation syncs what it leaves
    interval_asked_ = false;
    value.journal_number = journal_->end().number;
    value.durable_journal_number = journal_->synced().number;
    value.durable_journal_offset = journal_->synced().offset;
  }
  if (!SiteIsOn(Site::kFlushDropsAfterCommit) && journal_ != nullptr) journal_->DropBelow(value.journal_number).IgnoreError();
  ASHLAR_RETURN_IF_ERROR(CommitCatalog(&value, segments));
  view_ = NewView(std::move(segments), std::make_shared<LiveOverlay>(committed_.schema));
  cell_.overlay_documents = 0;
  replay_bytes_ = 0;
  Show();
  if (journal_ != nullptr) journal_->DropBelow(committed_.journal_number).IgnoreError();  // orphans at worst
  NoteJournal();
  return absl::OkStatus();
}

// A key of the bulk overlay that is there twice, or already in the store; nullopt: all are new.
absl::StatusOr<std::optional<std::string>> Engine::FindBulkDuplicate() const {
  const std::vector<uint32_t> by_key = bulk_->OrdinalsByKey();
  const Group nothing_pending;
  for (size_t i = 0; i < by_key.size(); ++i) {
    const std::string_view key = bulk_->KeyOf(by_key[i]);
    bool duplicate = i > 0 && bulk_->KeyOf(by_key[i - 1]) == key;
    if (!duplicate) {
      ASHLAR_ASSIGN_OR_RETURN(const Location live, FindLive(key, nothing_pending));
      duplicate = live.where != Location::Where::kNone;
    }
    if (duplicate) return std::optional<std::string>(key);
  }
  return std::optional<std::string>();
}

absl::Status Engine::FlushBulk() {
  ASHLAR_ASSIGN_OR_RETURN(const std::optional<std::string> duplicate, FindBulkDuplicate());
  if (duplicate.has_value()) {
    bulk_.reset();
    return AlreadyExists(absl::StrCat("key '", *duplicate,
                                      "' was written with keys_are_new but is not new; nothing of that load since the "
                                      "last flush was kept"));
  }
  // After any other failure the load is kept, and the next flush tries again.
  const uint32_t documents = bulk_->document_count();
  absl::StatusOr<std::optional<format::SegmentEntry>> entry = WriteOverlay(*bulk_, documents, next_sequence_ - 1);
  if (!entry.ok()) return Fail(entry.status(), false);
  if (!entry->has_value()) {
    bulk_.reset();
    return absl::OkStatus();
  }
  absl::StatusOr<std::shared_ptr<LiveSegment>> live = OpenSegment(**entry);
  if (!live.ok()) {
    RemoveUnpublished(segment::FileName((*entry)->number));
    return Fail(live.status(), false);
  }
  std::vector<std::shared_ptr<LiveSegment>> segments = view_->segments;
  segments.push_back(*std::move(live));
  const Cell before = cell_;
  const Schema& schema = *view_->schema;
  for (const format::IndexId index : searchable_)
    cell_.length_sums[SumIndex(schema, index)] += segments.back()->segment().LengthSum(index);
  cell_.live_documents += documents;
  cell_.sequence = next_sequence_ - 1;
  if (absl::Status status = PublishFloor(std::move(segments)); !status.ok()) {
    cell_ = before;
    RemoveUnpublished(segment::FileName((*entry)->number));
    return status;
  }
  bulk_.reset();
  Count("flushes");
  return absl::OkStatus();
}

absl::Status Engine::Flush() {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock lock(&writer_mutex_);
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  return FlushLocked();
}

absl::Status Engine::AddFields(const std::vector<Field>& fields) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock lock(&writer_mutex_);
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  Schema schema = committed_.schema;
  schema.fields.insert(schema.fields.end(), fields.begin(), fields.end());
  ASHLAR_RETURN_IF_ERROR(schema.Validate());
  if (fields.empty()) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(FlushLocked());  // an overlay is of one schema
  format::CatalogValue value = committed_;
  value.schema = schema;
  ++value.schema_number;
  // The group's sum stays the last one.
  const uint64_t group_sum = cell_.length_sums.back();
  ASHLAR_RETURN_IF_ERROR(CommitCatalog(&value, view_->segments));
  cell_.length_sums.back() = 0;
  cell_.length_sums.resize(schema.fields.size() + 1, 0);
  cell_.length_sums.back() = group_sum;
  SetSchema();
  view_ = NewView(view_->segments, std::make_shared<LiveOverlay>(committed_.schema));
  Show();
  // New records go to a file whose header has the new schema. The fields are durable whatever becomes of that: a failure
  // shows in the state, and the next write tries again.
  schema_rotation_due_ = journal_ != nullptr;
  if (RotateForSchema().ok()) Show();
  return absl::OkStatus();
}

absl::Status Engine::RotateForSchema() {
  if (!schema_rotation_due_) return absl::OkStatus();
  if (absl::Status status = journal_->Rotate(JournalContext()); !status.ok()) return Fail(status, journal_->broken());
  schema_rotation_due_ = false;
  return absl::OkStatus();
}

}  // namespace ashlar::engine
