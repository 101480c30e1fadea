// Write path: document -> analysis -> journal -> overlay -> visible -> acknowledged.
//
// Batches that wait at the same time are written as one group: one write to the journal and at most one sync. Every
// operation of a batch is resolved (what it replaces, whether its condition holds) before anything is written, so that
// a batch that fails leaves no trace.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/check.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/env/process.h"
#include "src/text/analyzer.h"

namespace ashlar::engine {
namespace {

constexpr size_t kGroupBatchesMax = 256;
constexpr size_t kGroupBytesMax = size_t{1} << 20;

// A leader waits half a sync at most for writers who were acknowledged just now, and this long at most.
constexpr uint64_t kReturnNsMax = 2'000'000;
constexpr uint32_t kSkippedWaits = 64;

void EncodeOperations(const std::vector<AnalyzedOperation>& operations, const WriteOptions& options, ByteBuffer* out) {
  if (options.watermark.has_value())
    format::AppendOperation({format::OperationKind::kWatermark, {}, *options.watermark, 0}, out);
  for (const AnalyzedOperation& operation : operations) {
    format::OperationView view;
    if (operation.is_put()) {
      view.kind = format::OperationKind::kPut;
      view.document = operation.document.encoded;
    } else if (operation.kind == WriteBatch::Kind::kDelete) {
      view.kind = format::OperationKind::kDelete;
      view.key = operation.key;
    } else {
      view.kind = format::OperationKind::kDeleteId;
      view.id = operation.expected;
    }
    format::AppendOperation(view, out);
  }
}

uint64_t BytesOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  if (const auto* blob = std::get_if<Blob>(&value)) return blob->bytes.size();
  return sizeof(uint64_t);
}

// An empty batch takes one sequence, too.
Sequence SequencesOf(const PendingWrite& write) { return std::max<Sequence>(1, write.operations->size()); }

}  // namespace

absl::Status Engine::CheckFork() const {
  if (env::ForkGeneration() == fork_generation_) return absl::OkStatus();
  return FailedPrecondition("the store was opened before a fork; open it again in this process");
}

absl::Status Engine::CheckWritable() const {
  if (closed_) return FailedPrecondition("the store is closed");
  if (options_.read_only) return FailedPrecondition("the store is open read-only");
  if (lock_ != nullptr) ASHLAR_RETURN_IF_ERROR(lock_->CheckHeld());
  return failure_state_.CheckWritable();
}

absl::Status Engine::Fail(const absl::Status& status, bool outcome_unknown) {
  failure_state_.Failed(status, outcome_unknown, env_.clock->WallMs());
  return status;
}

absl::StatusOr<std::vector<AnalyzedOperation>> Engine::AnalyzeBatch(const WriteBatch& batch) const {
  ASHLAR_ASSIGN_OR_RETURN(AnalyzerPool::Loan analyzer, analyzers_.Borrow());
  std::vector<AnalyzedOperation> result(batch.size());
  size_t index = 0;
  for (const WriteBatch::Operation& operation : batch.operations()) {
    AnalyzedOperation& analyzed = result[index];
    analyzed.kind = operation.kind;
    analyzed.expected = operation.expected;
    absl::Status status;
    if (analyzed.is_put()) {
      status = analyzer->Analyze(operation.document, &analyzed.document);
    } else if (operation.kind == WriteBatch::Kind::kDelete) {
      if (analyzer.schema().key.empty()) status = InvalidArgument("delete by key in a store without a key field");
      analyzed.key = operation.key;
    }
    if (!status.ok()) return Annotate(status, absl::StrCat("operation ", index, " of the batch"));
    ++index;
  }
  return result;
}

// Before anything is made of the batch: its analysis takes a multiple of its size.
absl::Status Engine::CheckSizes(const WriteBatch& batch, const WriteOptions& options) const {
  if (options.watermark.has_value() && options.watermark->size() > kWatermarkBytesMax)
    return ResourceExhausted(
        absl::StrCat("the watermark has ", options.watermark->size(), " bytes; at most ", kWatermarkBytesMax));
  uint64_t bytes = 0;
  for (const WriteBatch::Operation& operation : batch.operations()) {
    bytes += operation.key.size();
    for (const FieldValue& value : operation.document.values) bytes += BytesOf(value.value);
  }
  return CheckBatchBytes(bytes);
}

absl::Status Engine::CheckBatchBytes(uint64_t bytes) const {
  if (bytes <= options_.batch_bytes_max) return absl::OkStatus();
  return ResourceExhausted(
      absl::StrCat("the batch has ", bytes, " bytes; batch_bytes_max is ", options_.batch_bytes_max));
}

absl::StatusOr<WriteResult> Engine::Write(const WriteBatch& batch, const WriteOptions& options) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  if (options.keys_are_new && options_.durability != Durability::kOff)
    return InvalidArgument("keys_are_new needs a store opened with Durability::kOff");
  ASHLAR_RETURN_IF_ERROR(CheckSizes(batch, options));
  ASHLAR_ASSIGN_OR_RETURN(std::vector<AnalyzedOperation> operations, AnalyzeBatch(batch));
  PendingWrite write;
  write.operations = &operations;
  write.options = &options;
  EncodeOperations(operations, options, &write.encoded);
  ASHLAR_RETURN_IF_ERROR(CheckBatchBytes(write.encoded.size()));
  ASHLAR_RETURN_IF_ERROR(Submit(&write));
  return std::move(write.result);
}

absl::Status Engine::PutWithId(const Document& document, DocumentId id) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  WriteBatch batch;
  batch.Put(document);
  ASHLAR_ASSIGN_OR_RETURN(std::vector<AnalyzedOperation> operations, AnalyzeBatch(batch));
  const WriteOptions options;
  PendingWrite write;
  write.operations = &operations;
  write.options = &options;
  write.forced_id = id;
  EncodeOperations(operations, options, &write.encoded);
  return Submit(&write);
}

absl::Status Engine::ReserveSequences(Sequence last) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock lock(&writer_mutex_);
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  next_sequence_ = std::max(next_sequence_, last + 1);
  return absl::OkStatus();
}

std::vector<PendingWrite*> Engine::Lead(PendingWrite* write) {
  std::vector<PendingWrite*> group;
  MutexLock lock(&queue_mutex_);
  queue_.push_back(write);
  if (returning_ > 0 && --returning_ == 0) queue_.front()->moved.SignalAll();
  while (!write->done && queue_.front() != write) write->moved.Wait(&queue_mutex_);
  if (write->done) return group;
  if (std::min(write->options->durability.value_or(options_.durability), options_.durability) == Durability::kSync)
    WaitForReturning(write);
  size_t bytes = 0;
  for (PendingWrite* member : queue_) {
    bytes += member->encoded.size();
    if (!group.empty() && (bytes > kGroupBytesMax || group.size() == kGroupBatchesMax || member->alone)) break;
    group.push_back(member);
    if (member->alone) break;
  }
  return group;
}

// Writers who commit one batch after the other would else take turns by halves: while one half's sync runs the other
// half waits for its own. Who was acknowledged just now mostly comes again in much less than the time of a sync, and is
// worth waiting for. A writer who is alone never waits, and after a wait in vain there is none for a while.
void Engine::WaitForReturning(PendingWrite* leader) {
  const uint64_t ns_max = std::min(sync_ns_.load() / 2, kReturnNsMax);
  if (returning_ == 0 || ns_max == 0) return;
  if (waits_skipped_ > 0) {
    --waits_skipped_;
    return;
  }
  const size_t before = queue_.size();
  uint64_t now_ns = env_.clock->MonotonicNs();
  const uint64_t end_ns = now_ns + ns_max;
  while (returning_ > 0 && now_ns < end_ns) {
    leader->moved.WaitFor(&queue_mutex_, end_ns - now_ns);
    now_ns = env_.clock->MonotonicNs();
  }
  if (queue_.size() == before) waits_skipped_ = kSkippedWaits;
}

void Engine::Leave(const std::vector<PendingWrite*>& group) {
  MutexLock lock(&queue_mutex_);
  for (PendingWrite* member : group) {
    member->done = true;
    queue_.pop_front();
  }
  if (!queue_.empty()) queue_.front()->moved.SignalAll();
  for (PendingWrite* member : group) member->moved.SignalAll();
  returning_ = group.size();
}

// The first in the queue leads: it writes for all that wait with it, then wakes them.
absl::Status Engine::Submit(PendingWrite* write) {
  write->alone |= write->options->keys_are_new || write->forced_id != 0;
  const std::vector<PendingWrite*> group = Lead(write);
  if (group.empty()) return write->status;
  if (const absl::Status room = MakeRoom(); room.ok()) {
    WriteLed(group);
  } else {
    for (PendingWrite* member : group) member->status = room;
  }
  Leave(group);
  SeeToWork();  // nobody waits for it but this call, and with a thread not even this one
  return write->status;
}

uint64_t Engine::OverlayBytes() const {
  uint64_t bytes = view_->overlay->bytes();
  for (const FrozenOverlay& frozen : view_->frozen) bytes += frozen.overlay->bytes();
  return bytes;
}

absl::Status Engine::MakeRoom() {
  uint64_t begun_ns = 0;
  while (true) {
    {
      MutexLock lock(&writer_mutex_);
      const bool something = !view_->frozen.empty() || cell_.overlay_documents > 0;
      if (!something || OverlayBytes() < 2 * options_.overlay_bytes_max) break;
      ASHLAR_RETURN_IF_ERROR(CheckWritable());
      if (view_->frozen.empty()) ASHLAR_RETURN_IF_ERROR(Freeze(/*rotate=*/false));
    }
    if (begun_ns == 0) {
      begun_ns = env_.clock->MonotonicNs();
      Count("stalls");
    }
    ASHLAR_RETURN_IF_ERROR(FlushDue());
  }
  if (begun_ns != 0) Count("stall_ns", env_.clock->MonotonicNs() - begun_ns);
  return absl::OkStatus();
}

namespace {

// In kOff a batch with more durability is flushed before it is shown.
bool AsksForFlush(const std::vector<PendingWrite*>& writes) {
  return std::any_of(writes.begin(), writes.end(), [](const PendingWrite* write) {
    return write->options->durability.value_or(Durability::kOff) != Durability::kOff;
  });
}

void FailAll(const std::vector<PendingWrite*>& writes, const absl::Status& status) {
  for (PendingWrite* write : writes)
    if (write->status.ok()) write->status = status;
}

}  // namespace

void Engine::WriteLed(const std::vector<PendingWrite*>& writes) {
  if (options_.durability == Durability::kOff &&
      (writes[0]->options->keys_are_new || bulk_waits_.load() || AsksForFlush(writes))) {
    MutexLock lock(&flush_mutex_);
    return WriteAndFlush(writes);
  }
  MutexLock lock(&writer_mutex_);
  WriteGroup(writes, /*show=*/true);
}

void Engine::WriteAndFlush(const std::vector<PendingWrite*>& writes) {
  if (writes[0]->options->keys_are_new) {
    writes[0]->status = WriteBulk(writes[0]);
    return;
  }
  // What is there already goes first: a load, for DocumentIds of segments must ascend, and so that a failure now, for
  // lack of room mostly, leaves no trace of the batch.
  if (const absl::Status status = FlushAll(); !status.ok()) return FailAll(writes, status);
  const bool flush = AsksForFlush(writes);
  {
    MutexLock lock(&writer_mutex_);
    WriteGroup(writes, /*show=*/!flush);
  }
  if (!flush) return;
  // Applied and not shown: if this fails, only a reopening can take it back. Nobody else publishes meanwhile.
  if (const absl::Status status = FlushAll(); !status.ok())
    FailAll(writes, Fail(Annotate(status, "the outcome is unknown until the store is reopened"), true));
}

void Engine::WriteGroup(const std::vector<PendingWrite*>& writes, bool show) {
  absl::Status status = CheckWritable();
  if (status.ok()) status = SyncIfDue();
  if (!status.ok()) return FailAll(writes, status);

  Group group;
  std::vector<PendingWrite*> accepted;
  std::vector<Sequence> firsts;
  bool sync = false;
  Sequence next = next_sequence_;
  for (PendingWrite* write : writes) {
    if (write->forced_id != 0) {
      if (write->forced_id < next) {
        write->status = InvalidArgument("the DocumentId is not beyond the store's last sequence");
        continue;
      }
      next = write->forced_id;
    }
    write->status = ResolveBatch(write, next, &group);
    if (!write->status.ok()) continue;
    accepted.push_back(write);
    firsts.push_back(next);
    next += SequencesOf(*write);
    write->result.sequence = next - 1;
    const Durability asked = write->options->durability.value_or(options_.durability);
    const Durability effective = std::min(asked, options_.durability);
    if (effective == Durability::kSync) sync = true;
    if (effective == Durability::kInterval) interval_asked_ = true;
  }
  if (accepted.empty()) return;
  next_sequence_ = next;  // also if the write fails: a sequence whose fate is unknown is never used again
  if (options_.durability != Durability::kOff) {
    status = JournalGroup(accepted, firsts, sync);
    if (!status.ok()) return FailAll(writes, status);
  }
  Apply(&group.effects);
  for (const PendingWrite* write : accepted)
    if (write->options->watermark.has_value()) watermark_ = write->options->watermark;
  cell_.sequence = next - 1;
  if (show && FreezeIsDue()) Freeze(/*rotate=*/false).IgnoreError();  // a failure shows in the state
  if (show) Show();
  if (background_ && journal_ != nullptr && spare_bytes_wanted_ == 0) spare_bytes_wanted_ = journal_->SpareWanted();
  if ((!view_->frozen.empty() && flush_number_ == 0) || spare_bytes_wanted_ != 0) work_is_due_.store(true);
  Count("batches", accepted.size());
  Count("operations", group.effects.size());
  Count("groups");
}

// The batches are acknowledged whatever becomes of it: a failure shows in the state, and is tried again.
void Engine::SeeToWork() {
  if (!work_is_due_.load() || !work_is_due_.exchange(false)) return;
  if (background_) return scheduler_->Wake();
  DoWork().IgnoreError();
}

absl::Status Engine::DoWork() {
  ASHLAR_RETURN_IF_ERROR(DoUrgentWork());
  return MergeDue();
}

absl::Status Engine::DoUrgentWork() {
  ASHLAR_RETURN_IF_ERROR(FlushDue());
  return background_ ? PrepareJournal() : absl::OkStatus();
}

// Without the writer's mutex while the file is written. A failure leaves the making of the file to the rotation.
absl::Status Engine::PrepareJournal() {
  uint64_t bytes = 0;
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_RETURN_IF_ERROR(SyncIfDue());
    bytes = std::exchange(spare_bytes_wanted_, 0);
    if (bytes == 0 || journal_ == nullptr) return absl::OkStatus();
  }
  if (!journal::WriteSpare(env_, directory_, bytes).ok()) return absl::OkStatus();
  MutexLock lock(&writer_mutex_);
  if (journal_ != nullptr) journal_->AdoptSpare().IgnoreError();
  return absl::OkStatus();
}

uint64_t Engine::NextSyncNs() const {
  MutexLock lock(&writer_mutex_);
  if (!interval_asked_ || oldest_unsynced_ns_ == 0 || !failure_state_.CheckWritable().ok()) return 0;
  const uint64_t due_ns = oldest_unsynced_ns_ + uint64_t{options_.interval_ms} * 1000000;
  const uint64_t now_ns = env_.clock->MonotonicNs();
  return due_ns > now_ns ? due_ns - now_ns : 1;
}

uint64_t Engine::WorkInBackground() {
  DoWork().IgnoreError();  // a failure shows in the state, and the next commit wakes again
  return NextSyncNs();
}

absl::Status Engine::JournalGroup(const std::vector<PendingWrite*>& writes, const std::vector<Sequence>& firsts,
                                  bool sync) {
  // A seal says that no sequence beyond it was handed out, and an unclean end that fewer than kUnsyncedSequencesMax
  // were. So the first group that goes on behind either is synced in every mode: else power loss could take
  // acknowledged batches and leave the older end, and their sequences would be given again.
  if (!session_synced_ && replay_end_.file_count > 0 && SiteIsOn(Site::kWriteSyncAfterSeal)) sync = true;
  if (absl::Status status = EnsureJournal(); !status.ok()) return Fail(status, NewJournalMayBeThere());
  ASHLAR_RETURN_IF_ERROR(RotateForSchema());
  std::vector<journal::Record> records;
  records.reserve(writes.size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < writes.size(); ++i) {
    journal::Record record;
    record.first_sequence = firsts[i];
    record.operation_count = static_cast<uint32_t>(SequencesOf(*writes[i]));
    record.schema_number = committed_.schema_number;
    record.operations = writes[i]->encoded;
    bytes += record.operations.size();
    records.push_back(record);
  }
  absl::Status status = journal_->Append(records);
  if (!status.ok()) {
    const bool unknown = journal_->broken();
    NoteJournal();
    return Fail(status, unknown);
  }
  replay_bytes_ += bytes;
  if (oldest_unsynced_ns_ == 0) {
    oldest_unsynced_ns_ = env_.clock->MonotonicNs();
    if (background_ && interval_asked_) work_is_due_.store(true);  // the thread has to know when
  }
  if (sync && SiteIsOn(Site::kWriteSync)) status = SyncJournal();
  if (status.ok()) failure_state_.Succeeded(env_.clock->WallMs());
  NoteJournal();
  return status;
}

absl::Status Engine::SyncJournal() {
  if (journal_ == nullptr || oldest_unsynced_ns_ == 0) return absl::OkStatus();
  const uint64_t begun_ns = env_.clock->MonotonicNs();
  if (absl::Status status = journal_->Sync(); !status.ok())
    return Fail(Annotate(status, "the outcome is unknown until the store is reopened"), true);
  sync_ns_.store(env_.clock->MonotonicNs() - begun_ns);
  oldest_unsynced_ns_ = 0;
  interval_asked_ = false;
  session_synced_ = true;
  return absl::OkStatus();
}

// After the making of the journal's first file failed: if its name can be seen, nobody knows whether it lasts, and a
// second file must not take the same place in the chain.
bool Engine::NewJournalMayBeThere() const {
  if (journal_ != nullptr) return journal_->broken();
  const absl::StatusOr<std::vector<env::FileSystem::DirectoryEntry>> entries = env_.files->List(directory_);
  if (!entries.ok()) return true;
  const uint64_t last = replay_end_.file_count > 0 ? replay_end_.end.number : committed_.journal_number - 1;
  return std::any_of(entries->begin(), entries->end(), [last](const env::FileSystem::DirectoryEntry& entry) {
    return journal::NumberOf(entry.name).value_or(0) > last;
  });
}

// What was replayed after an unclean end may be in the page cache only. A new file takes it over, synced.
absl::Status Engine::SecureReplayed() {
  if (journal_ != nullptr || replay_end_.sealed || replay_bytes_ == 0) return absl::OkStatus();
  return TakeJournalOver();
}

absl::Status Engine::TakeJournalOver() {
  if (absl::Status status = EnsureJournal(); !status.ok()) return Fail(status, NewJournalMayBeThere());
  NoteJournal();
  PublishStatus(journal_->synced());
  return absl::OkStatus();
}

absl::Status Engine::SyncIfDue() {
  if (!interval_asked_ || oldest_unsynced_ns_ == 0 || !SiteIsOn(Site::kWriteIntervalSync)) return absl::OkStatus();
  const uint64_t age_ns = env_.clock->MonotonicNs() - oldest_unsynced_ns_;
  if (age_ns < uint64_t{options_.interval_ms} * 1000000) return absl::OkStatus();
  return SyncJournal();
}

absl::Status Engine::EnsureJournal() {
  if (journal_ != nullptr) return absl::OkStatus();
  const auto next_number = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return NextFileNumber(); };
  journal::WriterOptions options;
  options.first_file_bytes = options_.journal_file_bytes_min;
  // A flush lets go of whole files only: smaller ones fit what an overlay needs, and are used again.
  options.file_bytes_max = std::clamp(options_.overlay_bytes_max / 4, options_.journal_file_bytes_min,
                                      journal::WriterOptions().file_bytes_max);
  if (replay_end_.sealed) {
    ASHLAR_ASSIGN_OR_RETURN(
        journal_, journal::Writer::Continue(env_, directory_, JournalContext(), replay_end_, next_number, options));
  } else {
    ASHLAR_ASSIGN_OR_RETURN(
        journal_, journal::Writer::Create(env_, directory_, JournalContext(), replay_end_, next_number, options));
  }
  return absl::OkStatus();
}

journal::FileContext Engine::JournalContext() const {
  journal::FileContext context;
  context.store_id = committed_.store_id;
  context.schema = committed_.schema;
  context.schema_number = committed_.schema_number;
  context.analyzer_identity = text::AnalyzerIdentity();
  context.generation = committed_.generation;
  return context;
}

void Engine::KillAt(const Location& location, Sequence sequence, const std::vector<Effect>& effects) {
  if (location.where == Location::Where::kNone) return;
  const Schema& schema = *view_->schema;
  if (location.where == Location::Where::kSegment) {
    LiveSegment& live = *view_->segments[location.source];
    live.SubtractLengths(schema, location.ordinal, &cell_.length_sums);
    live.Kill(location.ordinal, sequence);
  } else {
    const bool pending = location.where == Location::Where::kPending;  // by now it is in the overlay
    LiveOverlay& overlay = pending ? *view_->overlay : OverlayAt(location.source);
    const uint32_t ordinal = pending ? effects[location.ordinal].added_ordinal : location.ordinal;
    for (const format::IndexId index : searchable_)
      cell_.length_sums[SumIndex(schema, index)] -= overlay.Length(index, ordinal);
    overlay.Kill(ordinal, sequence);
  }
  --cell_.live_documents;
}

void Engine::Apply(std::vector<Effect>* effects) {
  const Schema& schema = *view_->schema;
  LiveOverlay& overlay = *view_->overlay;
  for (Effect& effect : *effects) {
    KillAt(effect.kills, effect.sequence, *effects);
    if (!effect.adds) continue;
    effect.added_ordinal = overlay.Add(effect.sequence, effect.operation->document);
    tokens_cut_ += effect.operation->document.tokens_cut;
    for (const format::IndexId index : searchable_)
      cell_.length_sums[SumIndex(schema, index)] += overlay.Length(index, effect.added_ordinal);
    ++cell_.live_documents;
  }
  cell_.overlay_documents = overlay.document_count();
}

void Engine::Show() {
  cell_.last_sequence = next_sequence_ - 1;
  cell_.watermark = watermark_;
  box_.Set(view_, std::make_shared<const Cell>(cell_));
  {
    MutexLock lock(&state_mutex_);
    counters_["tokens_cut"] = tokens_cut_;
  }
  if (journal_ == nullptr) return PublishStatus(replay_durable_);
  PublishStatus(SiteIsOn(Site::kStatusDurable) ? journal_->synced() : journal_->end());
}

void Engine::PublishStatus(const journal::Position& durable) {
  if (status_page_ == nullptr) return;
  journal::Status status;
  status.sequence = cell_.sequence;
  status.position = journal_ != nullptr ? journal_->end() : replay_end_.end;
  status.generation = committed_.generation;
  status.durable = durable;
  status_page_->Publish(status);
}

absl::Status Engine::WriteBulk(PendingWrite* write) {
  bool overlay_waits = false;
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_RETURN_IF_ERROR(CheckWritable());
    overlay_waits = !view_->frozen.empty() || view_->overlay->document_count() > 0;
  }
  if (overlay_waits) ASHLAR_RETURN_IF_ERROR(FlushAll());
  for (const AnalyzedOperation& operation : *write->operations)
    if (operation.kind != WriteBatch::Kind::kPut && operation.kind != WriteBatch::Kind::kInsert)
      return InvalidArgument("a batch with keys_are_new may hold puts and inserts only");
  {
    MutexLock lock(&writer_mutex_);
    if (bulk_ == nullptr) bulk_ = std::make_shared<LiveOverlay>(*view_->schema);
    bulk_waits_.store(true);
    for (AnalyzedOperation& operation : *write->operations) {
      bulk_->Add(next_sequence_++, operation.document);
      tokens_cut_ += operation.document.tokens_cut;
    }
    if (write->operations->empty()) ++next_sequence_;
    write->result.sequence = next_sequence_ - 1;
    if (write->options->watermark.has_value()) watermark_ = write->options->watermark;
  }
  write->result.existed.assign(write->operations->size(), false);
  Count("batches");
  if (bulk_->bytes() <= options_.overlay_bytes_max) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(FlushAll());
  work_is_due_.store(true);  // merges
  return absl::OkStatus();
}

absl::Status Engine::Sync() {
  if (options_.durability == Durability::kOff) return Flush();
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock lock(&writer_mutex_);
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  ASHLAR_RETURN_IF_ERROR(SecureReplayed());
  return SyncJournal();
}

absl::Status Engine::RunPending() {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  {
    MutexLock lock(&writer_mutex_);
    ASHLAR_RETURN_IF_ERROR(CheckWritable());
    ASHLAR_RETURN_IF_ERROR(SyncIfDue());
    if (FreezeIsDue()) ASHLAR_RETURN_IF_ERROR(Freeze(/*rotate=*/false));
  }
  ASHLAR_RETURN_IF_ERROR(DoWork());
  MutexLock lock(&writer_mutex_);
  // The next journal file, so that a rotation need not write it. Without room for it nothing is lost.
  if (journal_ != nullptr)
    if (absl::Status status = journal_->Prepare(); !status.ok() && journal_->broken()) return Fail(status, true);
  return absl::OkStatus();
}

void Engine::Count(const std::string& name, uint64_t amount) {
  MutexLock lock(&state_mutex_);
  counters_[name] += amount;
}

}  // namespace ashlar::engine
