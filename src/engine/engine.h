// Engine: the state of one open store, and the steps that change it. The steps stand in files of their own, in data
// order: open.cc and recovery.cc (catalog, segments, journal), write_path.cc, flush.cc, merge.cc, publish.cc, purge.cc,
// check.cc.
//
// Who may change what, in the order in which it may be taken (docs/adr/0011):
//   the queue      whoever is at its head is the one writer: of batches, of added fields
//   merge_mutex_   one merge at a time
//   flush_mutex_   one flush at a time, from a frozen overlay to its publication; and every change of the durable state: who
//                  holds it may rely on committed_ and on the segments of the view
//   catalog_mutex_ the catalog's file, while it is read or written
//   writer_mutex_  the state in memory. Held while a group of batches is written, and for moments else: never while a segment is
//                  written or the catalog commits
//   ViewBox, SnapshotList, AnalyzerPool, WorkScheduler, state_mutex_  leaves, held for a copy only
// A reader takes only leaves.
#ifndef ASHLAR_SRC_ENGINE_ENGINE_H_
#define ASHLAR_SRC_ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/check.h"
#include "ashlar/checkpoint.h"
#include "ashlar/document.h"
#include "ashlar/options.h"
#include "ashlar/query.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "format/frame.h"
#include "format/journal_record.h"
#include "src/base/mutex.h"
#include "src/catalog/catalog.h"
#include "src/engine/analyzer_pool.h"
#include "src/engine/failure_state.h"
#include "src/engine/scheduler.h"
#include "src/engine/view.h"
#include "src/env/env.h"
#include "src/journal/journal.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {

// One operation of a batch, validated and analysed; the sequence is not known yet.
struct AnalyzedOperation {
  WriteBatch::Kind kind = WriteBatch::Kind::kPut;
  text::AnalyzedDocument document;  // puts; its key is the operation's key
  std::string key;                  // kDelete
  DocumentId expected = 0;          // kPutIf, kDeleteId
  const std::string& key_of() const { return kind == WriteBatch::Kind::kDelete ? key : document.key; }
  bool is_put() const { return kind <= WriteBatch::Kind::kPutIf; }
};

// A batch on its way through the write path.
struct PendingWrite {
  std::vector<AnalyzedOperation>* operations = nullptr;
  const WriteOptions* options = nullptr;
  ByteBuffer encoded;        // the record's operations
  DocumentId forced_id = 0;  // reindex: the sequence that the one operation must get
  bool alone = false;        // not in one group with others
  absl::Status status;
  WriteResult result;
  bool done = false;  // guarded by the engine's queue mutex
  ConditionVariable moved;  // it is done, or leads, or leads and need not wait for others any more
};

class Engine {
 public:
  // `env` must outlive the engine and its snapshots; `memory`, if given, owns it. Opens or creates as options say.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(env::Env env, std::shared_ptr<env::MemoryEnv> memory,
                                                      const std::string& directory, const Options& options,
                                                      const Schema* schema);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  absl::StatusOr<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options);
  // Reindex: puts an encoded document under a given DocumentId, which must be beyond every sequence so far.
  absl::Status PutWithId(const Document& document, DocumentId id);
  // Salvage: sequences up to `last` are never given.
  absl::Status ReserveSequences(Sequence last);
  // delete_matching.cc
  absl::StatusOr<DeleteResult> DeleteMatching(const PreparedQuery& query, const DeleteOptions& options);
  absl::StatusOr<DeleteResult> Expire(std::string_view field, Date now, const DeleteOptions& options);
  absl::Status Sync();
  absl::Status Flush();
  absl::Status Merge(uint32_t segments_max);
  absl::Status Purge(uint32_t segments_max);  // purge.cc
  absl::Status RunPending();
  void PauseMerges();
  void ResumeMerges();
  absl::Status AddFields(const std::vector<Field>& fields);
  absl::StatusOr<bool> Refresh();
  absl::Status Close();

  std::shared_ptr<const SnapshotState> TakeSnapshot() const;
  absl::StatusOr<PreparedQuery> Prepare(const Query& query) const;
  Schema schema() const;
  Stats GetStats() const;
  // `segments`: also each segment for itself; else only what concerns several files.
  absl::StatusOr<std::vector<Finding>> Check(bool segments = true, const CheckProgress& progress = nullptr) const;
  // checkpoint.cc
  absl::StatusOr<CheckpointReport> Checkpoint(const std::string& directory, const CheckpointOptions& options) const;

 private:
  Engine(env::Env env, std::shared_ptr<env::MemoryEnv> memory, std::string directory, const Options& options);

  // Where a live document is, and its lengths, found before anything is written.
  struct Location {
    enum class Where : uint8_t { kNone, kSegment, kOverlay, kPending };
    Where where = Where::kNone;
    uint32_t source = 0;   // kSegment: index in the view; kOverlay: index for OverlayAt
    uint32_t ordinal = 0;  // kSegment, kOverlay: in the source; kPending: index of the effect
    DocumentId id = 0;
  };
  // What one operation does, decided before the journal is written.
  struct Effect {
    AnalyzedOperation* operation = nullptr;
    Sequence sequence = 0;
    Location kills;     // kNone: nothing
    bool adds = false;  // false for deletes and for puts that a later operation of the batch supersedes
    uint32_t added_ordinal = 0;
  };
  // The state of the group of batches being written: what its earlier operations did to keys and ids.
  struct Group {
    std::vector<Effect> effects;
    absl::flat_hash_map<std::string, Location> keys;
    absl::flat_hash_map<DocumentId, uint32_t> added_ids;  // DocumentId -> effect, for kDeleteId
    absl::flat_hash_set<DocumentId> killed_ids;           // not applied yet, so their sources still say "alive"

    void BeginBatch();
    void SetKey(const std::string& key, const Location& location);
    Location Supersede(const Location& location);
    void RollBackBatch();

    // Of the batch being resolved.
    size_t batch_first_effect = 0;
    std::vector<std::pair<std::string, std::optional<Location>>> undo_keys;  // key -> what the group knew before
    std::vector<DocumentId> undo_added, undo_killed;
  };

  // --- open.cc, recovery.cc ---
  absl::Status CheckFileSystem() const;
  absl::Status OpenFiles(const Schema* schema) ABSL_EXCLUSIVE_LOCKS_REQUIRED(catalog_mutex_, writer_mutex_);
  absl::Status CheckNothingIsLost() const;
  absl::Status CreateStore(const Schema& schema) ABSL_EXCLUSIVE_LOCKS_REQUIRED(catalog_mutex_, writer_mutex_);
  // Everything that `committed_` names, then the journal; shows it.
  absl::Status LoadStore() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status StartWriting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // kOff: what the journal had is flushed, and sequences are reserved.
  absl::Status StartScheduler(const Options& options);
  absl::Status StartUnjournaled() ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  absl::StatusOr<std::vector<std::shared_ptr<LiveSegment>>> OpenSegments(const format::CatalogValue& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // A segment that the catalog names; one that can't be opened is sealed off.
  absl::StatusOr<std::shared_ptr<LiveSegment>> OpenNamedSegment(const format::SegmentEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status LoadDeaths(const format::CatalogValue& value, const std::vector<std::shared_ptr<LiveSegment>>& segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Whether there is a journal file of this or a higher number.
  absl::StatusOr<bool> HasJournal(uint64_t first_number) const;
  absl::Status ReplayJournal(bool resume) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // What the status page says; nullopt if there is none, or none of this store.
  std::optional<journal::Status> LoadStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status ReplayRecord(const journal::Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status CheckOrphanGeneration(format::FileKind kind, uint64_t number, const std::string& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Files that are ours beyond doubt and that the catalog does not name. `last_number` becomes the highest in any
  // file's name.
  absl::StatusOr<std::vector<std::string>> FindOrphans(uint64_t* last_number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status RemoveOrphans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<LengthSums> SumLiveLengths(const View& view, uint64_t* live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // In the child of a fork: forgets what belongs to the parent without touching it. Its mutexes may be held for ever.
  void Abandon() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Takes over the schema of `committed_`.
  void SetSchema() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<bool> ForgetReplacedCatalog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(catalog_mutex_);
  absl::Status LoadForReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(catalog_mutex_, writer_mutex_);
  std::shared_ptr<View> NewView(std::vector<std::shared_ptr<LiveSegment>> segments, std::vector<FrozenOverlay> frozen,
                                std::shared_ptr<LiveOverlay> overlay) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // The frozen overlays of the view by index, then the overlay.
  LiveOverlay& OverlayAt(size_t i) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) {
    return i < view_->frozen.size() ? *view_->frozen[i].overlay : *view_->overlay;
  }
  // What closing does while it may still write.
  absl::Status FlushForClose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  absl::Status SealJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

  // --- check.cc ---
  // The files that only these mutexes hold still: catalog, deaths, journal, status page.
  std::vector<absl::Status> CheckCommitted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(catalog_mutex_, writer_mutex_);
  bool StatusPageSaysSomething() const;
  // Files that can be told: those of flushes and merges that are in the air, or that came since, can't.
  struct KnownFiles {
    uint64_t deaths_number = 0;
    uint64_t flush_number = 0;
    uint64_t next_file_number = 0;
  };
  absl::StatusOr<std::vector<std::string>> Strangers(const View& view, const KnownFiles& known) const;

  // --- delete_matching.cc ---
  // Before the work of finding out what to delete.
  absl::Status CheckMayDelete() const ABSL_LOCKS_EXCLUDED(writer_mutex_);
  // `ids` ascend.
  absl::StatusOr<DeleteResult> DeleteIds(const std::vector<DocumentId>& ids, const DeleteOptions& options);

  // --- write_path.cc, resolve.cc ---
  absl::Status CheckSizes(const WriteBatch& batch, const WriteOptions& options) const;
  absl::Status CheckBatchBytes(uint64_t bytes) const;
  absl::StatusOr<std::vector<AnalyzedOperation>> AnalyzeBatch(const WriteBatch& batch) const;
  absl::Status Submit(PendingWrite* write);
  // Waits for `write` to come to the queue's head, or to be done by who was there. Empty: done. Else the batches that the call
  // must write now, its own first, and then hand to Leave.
  std::vector<PendingWrite*> Lead(PendingWrite* write) ABSL_LOCKS_EXCLUDED(queue_mutex_);
  void WaitForReturning(PendingWrite* leader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_);
  void Leave(const std::vector<PendingWrite*>& group) ABSL_LOCKS_EXCLUDED(queue_mutex_);
  // Back-pressure: returns when the overlays are below twice their limit.
  absl::Status MakeRoom() ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  uint64_t OverlayBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void WriteLed(const std::vector<PendingWrite*>& writes) ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  // kOff, and a batch is to be flushed before it is shown, or a load waits or comes.
  void WriteAndFlush(const std::vector<PendingWrite*>& writes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  void WriteGroup(const std::vector<PendingWrite*>& writes, bool show) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status WriteBulk(PendingWrite* write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  // After a commit: work that is due is done, or the thread that does it is woken.
  void SeeToWork() ABSL_LOCKS_EXCLUDED(merge_mutex_, flush_mutex_, catalog_mutex_, writer_mutex_);
  // What must not wait for a merge: the flush of what is frozen, an interval's sync, the journal's next file.
  absl::Status DoUrgentWork() ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  absl::Status PrepareJournal() ABSL_LOCKS_EXCLUDED(writer_mutex_);
  // The thread's: returns after how many nanoseconds it has to be done again, 0 if that will be said.
  uint64_t WorkInBackground() ABSL_LOCKS_EXCLUDED(merge_mutex_, flush_mutex_, catalog_mutex_, writer_mutex_);
  uint64_t NextSyncNs() const ABSL_LOCKS_EXCLUDED(writer_mutex_);
  // All work that is due.
  absl::Status DoWork() ABSL_LOCKS_EXCLUDED(merge_mutex_, flush_mutex_, catalog_mutex_, writer_mutex_);
  absl::Status ResolveBatch(PendingWrite* write, Sequence first, Group* group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status ResolveOperation(AnalyzedOperation* operation, Sequence sequence, WriteResult* result, Group* group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<Location> FindLive(std::string_view key, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<Location> FindLiveId(DocumentId id, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // A delete by id of a document with a key: later operations of the group must see the key as free.
  absl::Status ForgetKeyOf(const Location& location, Group* group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // A segment that may hold what was looked up, and why that can't be told.
  struct Doubtful {
    LiveSegment* live;
    absl::Status damage;
  };
  absl::Status Settle(const std::vector<Doubtful>& doubtful) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void Apply(std::vector<Effect>* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void KillAt(const Location& location, Sequence sequence, const std::vector<Effect>& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status JournalGroup(const std::vector<PendingWrite*>& writes, const std::vector<Sequence>& firsts, bool sync)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status EnsureJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status RotateForSchema() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status TakeJournalOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status SecureReplayed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  bool NewJournalMayBeThere() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status SyncJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status SyncIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void PublishStatus(const journal::Position& durable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Shows `view_` and `cell_` to new snapshots and to readers in other processes.
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  journal::FileContext JournalContext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status CheckWritable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status CheckFork() const;
  // Notes a failure of a write, flush or merge in the store's state and returns it.
  absl::Status Fail(const absl::Status& status, bool outcome_unknown);

  // --- flush.cc ---
  // Why the floor must stay where it is: the journal has batches whose effect on a damaged segment is not known.
  absl::Status CheckSettled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  bool FreezeIsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // From now on batches go to a new overlay, and the old one can be flushed. Shows nothing else than before. `rotate`: the journal
  // goes on in a new file, so that the flush lets go of all files before; without, nothing can fail once there is a journal.
  absl::Status Freeze(bool rotate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status RotateJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // A frozen overlay, or a bulk load, on its way to be a segment.
  struct FlushJob {
    FrozenOverlay source;
    bool is_bulk = false;
    segment::SegmentSpec spec;
  };
  FlushJob BeginFlush(FrozenOverlay source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Null: no document is alive, and there is no file.
  absl::StatusOr<std::shared_ptr<LiveSegment>> WriteSegment(const FlushJob& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_) ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  absl::Status PublishFlush(const FlushJob& job, const std::shared_ptr<LiveSegment>& live)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_) ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  absl::Status RunFlush(const FlushJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  // What a commit for a flush says: the state as of the job's floor.
  void SetFloor(const FlushJob& job, format::CatalogValue* value) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // The statistics with a bulk load that is durable now.
  void AddBulkToCell(const FlushJob& job, const LiveSegment& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // What is frozen; OK if nothing is.
  absl::Status FlushFrozen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  // Everything up to now, and what was frozen or loaded before. `rotate`: as Freeze.
  absl::Status FlushAll(bool rotate = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  absl::Status FlushDue() ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  bool AllIsFlushed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<std::optional<std::string>> FindBulkDuplicate() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_, writer_mutex_);
  absl::Status FlushBulk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  void DropBulk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_);
  // While no batch can come.
  absl::Status AddFieldsAlone(const std::vector<Field>& fields)
      ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  // A file that was written under `spec`.
  absl::StatusOr<std::shared_ptr<LiveSegment>> OpenNewSegment(const format::SegmentEntry& entry,
                                                              const segment::SegmentSpec& spec) const;

  // --- publish.cc ---
  // What a commit is to make the store's state.
  struct Publication {
    format::CatalogValue value;
    std::vector<std::shared_ptr<LiveSegment>> segments;
  };
  // The state as it is, with the next generation's number.
  Publication BeginPublication() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_, writer_mutex_);
  // The commit point: one catalog transaction. Fills in segments and deaths as of the value's floor.
  enum class CommitMode : uint8_t { kAdd, kRewrite };  // kRewrite: nothing of older values stays in the catalog's file
  absl::Status CommitCatalog(Publication* publication, CommitMode mode = CommitMode::kAdd)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_, catalog_mutex_) ABSL_LOCKS_EXCLUDED(writer_mutex_);
  absl::Status WriteDeaths(format::CatalogValue* value, format::DeathsFile deaths)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_) ABSL_LOCKS_EXCLUDED(writer_mutex_);
  absl::Status CheckStillWritable() ABSL_LOCKS_EXCLUDED(writer_mutex_);
  // The same state under the next generation: which sequences are reserved has changed, or the catalog gets a new file.
  absl::Status CommitAsItIs(CommitMode mode = CommitMode::kAdd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  // In memory it is the state, too. The caller shows it.
  void TakeOver(Publication publication, std::vector<FrozenOverlay> frozen)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(flush_mutex_, catalog_mutex_, writer_mutex_);
  void RemoveUnpublished(const std::string& name) ABSL_LOCKS_EXCLUDED(state_mutex_);
  void ForgetUnpublished() ABSL_LOCKS_EXCLUDED(state_mutex_);
  void RemoveFiles(const std::vector<std::string>& names) const;
  void Reached(env::WorkStep step) const {
    if (env_.observer != nullptr) env_.observer->Reached(step);
  }

  // --- merge.cc ---
  using Segments = std::vector<std::shared_ptr<LiveSegment>>;
  // One merge from its inputs, neighbours of the view, to the segment in their place.
  struct MergeJob {
    Segments inputs;
    bool asked = false;  // by Merge or Purge; else only due
    Sequence floor = 0;  // documents that died later are copied, for the journal may not keep their deaths
    segment::SegmentSpec spec;
    uint64_t begun_ns = 0;
  };
  enum class MergeKind : uint8_t { kDue, kAsked, kPurge };
  MergeJob BeginMerge(Segments inputs, MergeKind kind) ABSL_LOCKS_EXCLUDED(writer_mutex_);
  absl::Status CheckRoomForMerge(const MergeJob& job) const;
  absl::StatusOr<std::shared_ptr<const segment::Segment>> OpenMergeInput(const LiveSegment& live,
                                                                         const segment::SegmentSpec& spec) const;
  absl::StatusOr<std::vector<segment::MergeInput>> OpenMergeInputs(MergeJob* job) const;
  absl::Status RunMerge(MergeJob job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_)
      ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  absl::Status PublishMerge(const MergeJob& job, segment::MergeOutput output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_)
      ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  // Closed, failed, or not asked for while one that is asked for waits. Short merges are not given up at closing: a program
  // that opens and closes the store all the time would never come to merge.
  bool MergeHasToEnd(const Segments& inputs, bool asked) const;
  // How long a merge has to wait until it has written no more than it may.
  uint64_t MergeWaitNs(const MergeJob& job) const;
  // Between the blocks of a merge: lets urgent work go first, waits as it has to. True: the merge has to end.
  bool StepMerge(const MergeJob& job) ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  // OK also if it failed because an input is damaged, which is then quarantined.
  absl::Status MergeOrQuarantine(const Segments& inputs, MergeKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_)
      ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  absl::Status MergeTo(uint32_t segments_max, MergeKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_)
      ABSL_LOCKS_EXCLUDED(flush_mutex_, catalog_mutex_, writer_mutex_);
  absl::Status MergeDue() ABSL_LOCKS_EXCLUDED(merge_mutex_, flush_mutex_, catalog_mutex_, writer_mutex_);
  // --- purge.cc ---
  // Flushes into a new journal file and removes all others. The segments that were there before.
  absl::StatusOr<Segments> FlushForPurge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_, flush_mutex_)
      ABSL_LOCKS_EXCLUDED(catalog_mutex_, writer_mutex_);
  // Removes what nothing names, and says so if something can't be removed.
  absl::Status EraseLeftovers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mutex_, flush_mutex_)
      ABSL_LOCKS_EXCLUDED(writer_mutex_);
  absl::Status CheckNotHeld() const;

  Segments CurrentSegments() const { return box_.Get().first->segments; }
  Sequence CommittedFloor() const ABSL_LOCKS_EXCLUDED(writer_mutex_);

  uint64_t NextFileNumber() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) { return next_file_number_++; }
  std::string Path(std::string_view name) const { return env::JoinPath(directory_, name); }

  const env::Env env_;
  const std::shared_ptr<env::MemoryEnv> memory_;
  const std::string directory_;
  const Options options_;
  const uint64_t fork_generation_;
  const std::shared_ptr<SnapshotList> snapshots_ = std::make_shared<SnapshotList>();
  ViewBox box_;
  mutable AnalyzerPool analyzers_;

  FailureState failure_state_;
  std::unique_ptr<WorkScheduler> scheduler_ = std::make_unique<WorkScheduler>();
  bool background_ = false;  // the scheduler has a thread; set once, at opening

  Mutex merge_mutex_;
  Mutex flush_mutex_ ABSL_ACQUIRED_AFTER(merge_mutex_);
  mutable Mutex catalog_mutex_ ABSL_ACQUIRED_AFTER(flush_mutex_);
  mutable Mutex writer_mutex_ ABSL_ACQUIRED_AFTER(catalog_mutex_);
  std::unique_ptr<env::FileLock> lock_ ABSL_GUARDED_BY(writer_mutex_);
  std::unique_ptr<catalog::Catalog> catalog_ ABSL_GUARDED_BY(catalog_mutex_);
  std::unique_ptr<journal::Writer> journal_ ABSL_GUARDED_BY(writer_mutex_);  // made at the first write
  std::unique_ptr<journal::StatusPage> status_page_ ABSL_GUARDED_BY(writer_mutex_);
  // What the catalog says; once the store is open, changed only by who holds flush_mutex_ as well.
  format::CatalogValue committed_ ABSL_GUARDED_BY(writer_mutex_);
  journal::ReplayEnd replay_end_ ABSL_GUARDED_BY(writer_mutex_);
  journal::Position replay_durable_ ABSL_GUARDED_BY(writer_mutex_);  // what the catalog and the status page proved
  uint64_t next_file_number_ ABSL_GUARDED_BY(writer_mutex_) = 1;
  Sequence next_sequence_ ABSL_GUARDED_BY(writer_mutex_) = 1;
  std::atomic<bool> work_is_due_{false};  // something is frozen and nobody flushes it, or merges are due
  uint64_t spare_bytes_wanted_ ABSL_GUARDED_BY(writer_mutex_) = 0;  // for the journal's next file
  bool erases_journal_ ABSL_GUARDED_BY(writer_mutex_) = false;      // a flush keeps no journal file for recycling
  uint64_t flush_number_ ABSL_GUARDED_BY(writer_mutex_) =
      0;  // of the segment that a flush in the air makes; 0: none is
  std::optional<std::string> watermark_ ABSL_GUARDED_BY(writer_mutex_);
  uint64_t oldest_unsynced_ns_ ABSL_GUARDED_BY(writer_mutex_) = 0;   // 0: everything acknowledged is synced
  bool interval_asked_ ABSL_GUARDED_BY(writer_mutex_) = false;       // by a batch since the last sync
  bool schema_rotation_due_ ABSL_GUARDED_BY(writer_mutex_) = false;  // the journal's file has an older schema
  bool session_synced_ ABSL_GUARDED_BY(writer_mutex_) = false;      // a sequence of this session is durable
  bool loaded_ ABSL_GUARDED_BY(writer_mutex_) = false;  // view_ and cell_ are whole: no load or replay broke off
  bool closed_ ABSL_GUARDED_BY(writer_mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(writer_mutex_) = false;

  // The view and the cell being built; Show() makes them visible.
  std::shared_ptr<const View> view_ ABSL_GUARDED_BY(writer_mutex_);
  Cell cell_ ABSL_GUARDED_BY(writer_mutex_);
  std::shared_ptr<const Schema> schema_ ABSL_GUARDED_BY(writer_mutex_);  // committed_.schema, shared with views
  text::DocumentAnalyzer* replay_analyzer_ ABSL_GUARDED_BY(writer_mutex_) = nullptr;  // during ReplayJournal
  std::vector<format::IndexId> searchable_ ABSL_GUARDED_BY(writer_mutex_);  // fields with lengths, and the group
  uint64_t replay_bytes_ ABSL_GUARDED_BY(writer_mutex_) = 0;                // in the journal beyond the floor
  uint64_t tokens_cut_ ABSL_GUARDED_BY(writer_mutex_) = 0;                  // since this store was opened

  // The bulk path (kOff, keys_are_new): invisible until its flush.
  std::shared_ptr<LiveOverlay> bulk_ ABSL_GUARDED_BY(flush_mutex_);
  std::atomic<bool> bulk_waits_{false};  // bulk_ is there

  Mutex queue_mutex_;
  std::deque<PendingWrite*> queue_ ABSL_GUARDED_BY(queue_mutex_);
  size_t returning_ ABSL_GUARDED_BY(queue_mutex_) = 0;     // of the last group: those who have not come again since
  uint32_t waits_skipped_ ABSL_GUARDED_BY(queue_mutex_) = 0;  // so many groups don't wait for them, for nobody came
  std::atomic<uint64_t> sync_ns_{0};                       // what the last sync took

  // Counters, readable without the writer's lock.
  mutable Mutex state_mutex_;
  // Files removed since the last commit that power loss may bring back.
  std::vector<std::string> unpublished_ ABSL_GUARDED_BY(state_mutex_);
  RecoveryReport recovery_ ABSL_GUARDED_BY(state_mutex_);
  std::map<std::string, uint64_t> counters_ ABSL_GUARDED_BY(state_mutex_);
  Stats journal_stats_ ABSL_GUARDED_BY(state_mutex_);  // only its journal members are kept up
  std::string analyzer_identity_ ABSL_GUARDED_BY(state_mutex_);
  void Count(const std::string& name, uint64_t amount = 1) ABSL_LOCKS_EXCLUDED(state_mutex_);
  void NoteJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) ABSL_LOCKS_EXCLUDED(state_mutex_);
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_ENGINE_H_
