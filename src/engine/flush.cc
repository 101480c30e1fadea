// Flush: overlay -> segment file -> catalog. A full overlay is frozen: batches go to a new one, and the old one becomes
// a segment while writers and readers go on. What the commit says is the state as of the freeze (the floor): a document
// that died since is alive in the catalog and dead in memory, and the journal beyond the floor has its death.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/death_relay.h"
#include "src/engine/engine.h"
#include "src/engine/overlay_segment.h"
#include "src/segment/segment_builder.h"
#include "src/segment/segment_schema.h"

namespace ashlar::engine {

absl::Status Engine::CheckSettled() const {
  for (const std::shared_ptr<LiveSegment>& live : view_->segments) {
    if (!live->unsettled()) continue;
    return Annotate(
        live->damage()->status,
        absl::StrCat("the journal is kept, because a batch in it may replace a document of a damaged segment (",
                     ToAbsl(RemedyOf(StoreState::kDamaged)), ")"));
  }
  return absl::OkStatus();
}

bool Engine::FreezeIsDue() const {
  // One at a time: what comes while it is flushed may fill the overlay up to twice the limit.
  return view_->frozen.empty() && cell_.overlay_documents > 0 && view_->overlay->bytes() > options_.overlay_bytes_max;
}

absl::Status Engine::Freeze(bool rotate) {
  FrozenOverlay frozen;
  if (options_.durability != Durability::kOff) {
    if (rotate || journal_ == nullptr) ASHLAR_RETURN_IF_ERROR(RotateJournal());
    frozen.journal_number = journal_->end().number;
  }
  frozen.overlay = view_->overlay;
  frozen.documents = cell_.overlay_documents;
  frozen.floor = cell_.sequence;
  frozen.watermark = watermark_;
  frozen.replay_bytes = replay_bytes_;
  std::vector<FrozenOverlay> all = view_->frozen;
  all.push_back(std::move(frozen));
  view_ = NewView(view_->segments, std::move(all), std::make_shared<LiveOverlay>(committed_.schema));
  cell_.overlay_documents = 0;
  return absl::OkStatus();
}

absl::Status Engine::RotateJournal() {
  absl::Status status = EnsureJournal();
  if (status.ok()) status = journal_->Rotate(JournalContext());
  if (!status.ok()) return Fail(status, NewJournalMayBeThere());
  schema_rotation_due_ = false;
  oldest_unsynced_ns_ = 0;  // a rotation syncs what it leaves
  interval_asked_ = false;
  return absl::OkStatus();
}

Engine::FlushJob Engine::BeginFlush(FrozenOverlay source) {
  FlushJob job;
  job.source = std::move(source);
  job.spec.number = flush_number_ = NextFileNumber();
  job.spec.store_id = committed_.store_id;
  job.spec.schema = committed_.schema;
  job.spec.schema_number = committed_.schema_number;
  job.spec.generation = committed_.generation;
  return job;
}

absl::StatusOr<std::shared_ptr<LiveSegment>> Engine::OpenNewSegment(const format::SegmentEntry& entry,
                                                                    const segment::SegmentSpec& spec) const {
  ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<const segment::Segment> segment,
                          segment::Segment::Open(env_, directory_, entry, spec.store_id, spec.generation,
                                                 SegmentOptions(options_, /*keep_damaged=*/false)));
  return std::make_shared<LiveSegment>(std::move(segment), entry, env_.clock);
}

absl::StatusOr<std::shared_ptr<LiveSegment>> Engine::WriteSegment(const FlushJob& job) {
  const LiveOverlay& overlay = *job.source.overlay;
  segment::SegmentSpec spec = job.spec;
  spec.postings_per_field.assign(spec.schema.fields.size(), 0);
  for (uint32_t field = 0; field < spec.schema.fields.size(); ++field)
    if (segment::IsSearchable(spec.schema, field)) spec.postings_per_field[field] = overlay.PostingsOf(field);
  const absl::StatusOr<std::optional<format::SegmentEntry>> entry =
      WriteOverlaySegment(env_, directory_, overlay, job.source.documents, job.source.floor, std::move(spec));
  if (entry.ok() && !entry->has_value()) return std::shared_ptr<LiveSegment>();
  absl::StatusOr<std::shared_ptr<LiveSegment>> live = entry.ok() ? OpenNewSegment(**entry, job.spec) : entry.status();
  if (live.ok()) return live;
  RemoveUnpublished(segment::FileName(job.spec.number));
  return Fail(live.status(), false);
}

void Engine::SetFloor(const FlushJob& job, format::CatalogValue* value) const {
  value->floor = SiteIsOn(Site::kFlushFloorOfFreeze) ? job.source.floor : cell_.sequence;
  value->watermark = job.source.watermark;
  if (job.source.journal_number == 0) return;
  value->journal_number = SiteIsOn(Site::kFlushJournalOfFreeze) ? job.source.journal_number : journal_->end().number;
  value->durable_journal_number = journal_->synced().number;
  value->durable_journal_offset = journal_->synced().offset;
}

absl::Status Engine::PublishFlush(const FlushJob& job, const std::shared_ptr<LiveSegment>& live) {
  const FrozenOverlay& source = job.source;
  DeathRelay relay(source.floor);
  if (live != nullptr && SiteIsOn(Site::kFlushRelaysDeaths))
    relay.AddSource(&source.overlay->deaths(), SegmentOrdinals(*source.overlay, source.documents, source.floor));
  MutexLock catalog_lock(&catalog_mutex_);
  Publication publication;
  Sequence reached = 0;
  {
    MutexLock lock(&writer_mutex_);
    publication = BeginPublication();
    SetFloor(job, &publication.value);
    reached = cell_.sequence;
    if (!SiteIsOn(Site::kFlushDropsAfterCommit) && journal_ != nullptr)
      journal_->DropBelow(publication.value.journal_number).IgnoreError();
  }
  if (live != nullptr) {
    publication.segments.push_back(live);
    relay.Pass(reached, live.get());
  }
  ASHLAR_RETURN_IF_ERROR(CommitCatalog(&publication));
  Reached(env::WorkStep::kFlushCommitted);

  MutexLock lock(&writer_mutex_);
  if (live != nullptr) relay.Pass(UINT64_MAX, live.get());
  std::vector<FrozenOverlay> frozen = view_->frozen;
  if (!job.is_bulk) {
    frozen.erase(frozen.begin());
  } else if (live != nullptr) {
    AddBulkToCell(job, *live);
  }
  TakeOver(std::move(publication), std::move(frozen));
  replay_bytes_ -= std::min(replay_bytes_, source.replay_bytes);
  if (FreezeIsDue()) Freeze(/*rotate=*/false).IgnoreError();
  Show();
  if (journal_ != nullptr) {  // orphans at worst
    const uint64_t needed = committed_.journal_number;
    (erases_journal_ ? journal_->EraseBelow(needed) : journal_->DropBelow(needed)).IgnoreError();
  }
  NoteJournal();
  return absl::OkStatus();
}

absl::Status Engine::RunFlush(const FlushJob& job) {
  const absl::StatusOr<std::shared_ptr<LiveSegment>> live = WriteSegment(job);
  absl::Status status = live.status();
  if (status.ok()) {
    Reached(env::WorkStep::kFlushWritten);
    status = PublishFlush(job, *live);
    if (!status.ok() && *live != nullptr) RemoveUnpublished(segment::FileName(job.spec.number));
  }
  {
    MutexLock lock(&writer_mutex_);
    flush_number_ = 0;
  }
  if (!status.ok()) return status;
  Count("flushes");
  if (*live != nullptr) Count("bytes_flushed", (*live)->entry().file_bytes);
  return absl::OkStatus();
}

absl::Status Engine::FlushFrozen() {
  while (true) {
    FlushJob job;
    {
      MutexLock lock(&writer_mutex_);
      if (view_->frozen.empty()) return absl::OkStatus();
      ASHLAR_RETURN_IF_ERROR(CheckWritable());
      ASHLAR_RETURN_IF_ERROR(CheckSettled());
      job = BeginFlush(view_->frozen.front());
    }
    ASHLAR_RETURN_IF_ERROR(RunFlush(job));
  }
}

bool Engine::AllIsFlushed() const {
  return view_->frozen.empty() && cell_.overlay_documents == 0 && committed_.floor == cell_.sequence &&
         committed_.watermark == watermark_;
}

absl::Status Engine::FlushAll(bool rotate) {
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_RETURN_IF_ERROR(CheckWritable());
  }
  if (bulk_ != nullptr) ASHLAR_RETURN_IF_ERROR(FlushBulk());
  ASHLAR_RETURN_IF_ERROR(FlushFrozen());  // it is older
  {
    MutexLock lock(&writer_mutex_);
    if (AllIsFlushed()) return absl::OkStatus();
    ASHLAR_RETURN_IF_ERROR(CheckSettled());
    ASHLAR_RETURN_IF_ERROR(Freeze(rotate));
  }
  return FlushFrozen();
}

absl::Status Engine::FlushDue() {
  MutexLock lock(&flush_mutex_);
  return FlushFrozen();
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

void Engine::DropBulk() {
  bulk_.reset();
  bulk_waits_.store(false);
}

void Engine::AddBulkToCell(const FlushJob& job, const LiveSegment& live) {
  const Schema& schema = *view_->schema;
  for (const format::IndexId index : searchable_)
    cell_.length_sums[SumIndex(schema, index)] += live.segment().LengthSum(index);
  cell_.live_documents += job.source.documents;
  cell_.sequence = job.source.floor;
}

absl::Status Engine::FlushBulk() {
  FlushJob job;
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<std::string> duplicate, FindBulkDuplicate());
    if (duplicate.has_value()) {
      DropBulk();
      return AlreadyExists(
          absl::StrCat("key '", *duplicate,
                       "' was written with keys_are_new but is not new; nothing of that load since the "
                       "last flush was kept"));
    }
    FrozenOverlay source;
    source.overlay = bulk_;
    source.documents = bulk_->document_count();
    source.floor = next_sequence_ - 1;
    source.watermark = watermark_;
    job = BeginFlush(std::move(source));
    job.is_bulk = true;
  }
  // After any failure the load is kept, and the next flush tries again.
  if (job.source.documents > 0) ASHLAR_RETURN_IF_ERROR(RunFlush(job));
  DropBulk();
  return absl::OkStatus();
}

absl::Status Engine::Flush() {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  {
    MutexLock lock(&flush_mutex_);
    ASHLAR_RETURN_IF_ERROR(FlushAll());
  }
  // Else the segments of who flushes often would be merged only when an overlay is full.
  if (background_) scheduler_->Wake();
  return absl::OkStatus();
}

absl::Status Engine::AddFields(const std::vector<Field>& fields) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  // At the head of the queue, so that no batch comes between the last flush of the old schema and the new one.
  std::vector<AnalyzedOperation> nothing;
  const WriteOptions options;
  PendingWrite turn;
  turn.operations = &nothing;
  turn.options = &options;
  turn.alone = true;
  const std::vector<PendingWrite*> group = Lead(&turn);
  const absl::Status status = AddFieldsAlone(fields);
  Leave(group);
  return status;
}

absl::Status Engine::AddFieldsAlone(const std::vector<Field>& fields) {
  MutexLock flush_lock(&flush_mutex_);
  Schema schema;
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_RETURN_IF_ERROR(CheckWritable());
    schema = committed_.schema;
  }
  schema.fields.insert(schema.fields.end(), fields.begin(), fields.end());
  ASHLAR_RETURN_IF_ERROR(schema.Validate());
  if (fields.empty()) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(FlushAll());  // an overlay is of one schema

  MutexLock catalog_lock(&catalog_mutex_);
  Publication publication;
  {
    MutexLock lock(&writer_mutex_);
    publication = BeginPublication();
  }
  publication.value.schema = schema;
  ++publication.value.schema_number;
  ASHLAR_RETURN_IF_ERROR(CommitCatalog(&publication));

  MutexLock lock(&writer_mutex_);
  committed_ = publication.value;
  // The group's sum stays the last one.
  const uint64_t group_sum = cell_.length_sums.back();
  cell_.length_sums.back() = 0;
  cell_.length_sums.resize(schema.fields.size() + 1, 0);
  cell_.length_sums.back() = group_sum;
  SetSchema();
  view_ = NewView(view_->segments, {}, std::make_shared<LiveOverlay>(committed_.schema));
  Show();
  // New records go to a file whose header has the new schema. The fields are durable whatever becomes of that: a
  // failure shows in the state, and the next write tries again.
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
