// Engine: the state of one open store, and the steps that change it. The steps stand in files of their own, in data
// order: open.cc and recovery.cc (catalog, segments, journal), write_path.cc, flush.cc, merge.cc, check.cc.
//
// Locks, in the order in which they may be taken:
//   queue_mutex_   the writers that wait for group commit
//   writer_mutex_  everything that changes the store: one writer (or flush, merge, refresh, close) at a time
//   ViewBox, SnapshotList, AnalyzerPool  leaves, held for a copy only
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
#include "src/engine/view.h"
#include "src/env/env.h"
#include "src/journal/journal.h"

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
  absl::Status status;
  WriteResult result;
  bool done = false;  // guarded by the engine's queue mutex
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
  absl::Status Sync();
  absl::Status Flush();
  absl::Status Merge(uint32_t segments_max);
  absl::Status RunPending();
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
    uint32_t segment = 0;  // kSegment: index in the view
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
  absl::Status OpenFiles(const Schema* schema) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status CheckNothingIsLost() const;
  absl::Status CreateStore(const Schema& schema) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Everything that `committed_` names, then the journal; shows it.
  absl::Status LoadStore() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status FinishOpening() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
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
  absl::Status RemoveOrphans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<LengthSums> SumLiveLengths(const View& view, uint64_t* live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // In the child of a fork: forgets what belongs to the parent without touching it. Its mutexes may be held for ever.
  void Abandon() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Takes over the schema of `committed_`.
  void SetSchema() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status LoadForReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  std::shared_ptr<View> NewView(std::vector<std::shared_ptr<LiveSegment>> segments,
                                std::shared_ptr<LiveOverlay> overlay) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

  // --- check.cc ---
  // The files that only the writer's mutex holds still: catalog, deaths, journal, status page.
  std::vector<absl::Status> CheckCommitted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  bool StatusPageSaysSomething() const;
  absl::StatusOr<std::vector<std::string>> Strangers(const View& view, uint64_t deaths_number) const;

  // --- write_path.cc, resolve.cc ---
  absl::StatusOr<std::vector<AnalyzedOperation>> AnalyzeBatch(const WriteBatch& batch) const;
  absl::Status Submit(PendingWrite* write);
  void WriteGroup(const std::vector<PendingWrite*>& writes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status WriteBulk(PendingWrite* write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
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
  absl::Status Fail(const absl::Status& status, bool outcome_unknown) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

  // --- flush.cc ---
  // Why the floor must stay where it is: the journal has batches whose effect on a damaged segment is not known.
  absl::Status CheckSettled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<std::optional<std::string>> FindBulkDuplicate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status FlushBulk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<std::optional<format::SegmentEntry>> WriteOverlay(const overlay::Overlay& overlay, uint32_t documents,
                                                                   Sequence at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // Makes `segments` and everything up to the visible sequence the store's durable state, and shows it with a new
  // overlay.
  absl::Status PublishFloor(std::vector<std::shared_ptr<LiveSegment>> segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void RemoveUnpublished(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void ForgetUnpublished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // The commit point: one catalog transaction.
  absl::Status CommitCatalog(format::CatalogValue* value, const std::vector<std::shared_ptr<LiveSegment>>& segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<std::shared_ptr<LiveSegment>> OpenSegment(const format::SegmentEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void RemoveFiles(const std::vector<std::string>& names) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

  // --- merge.cc ---
  absl::Status CheckRoomForMerge(size_t first, size_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status MergeRange(size_t first, size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  // The same; OK also if it failed because an input is damaged, which is then quarantined.
  absl::Status MergeOrQuarantine(size_t first, size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::StatusOr<std::shared_ptr<const segment::Segment>> OpenMergeInput(const LiveSegment& live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status MergeDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

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

  mutable Mutex writer_mutex_;
  std::unique_ptr<env::FileLock> lock_ ABSL_GUARDED_BY(writer_mutex_);
  std::unique_ptr<catalog::Catalog> catalog_ ABSL_GUARDED_BY(writer_mutex_);
  std::unique_ptr<journal::Writer> journal_ ABSL_GUARDED_BY(writer_mutex_);  // made at the first write
  std::unique_ptr<journal::StatusPage> status_page_ ABSL_GUARDED_BY(writer_mutex_);
  format::CatalogValue committed_ ABSL_GUARDED_BY(writer_mutex_);  // what the catalog says
  journal::ReplayEnd replay_end_ ABSL_GUARDED_BY(writer_mutex_);
  journal::Position replay_durable_ ABSL_GUARDED_BY(writer_mutex_);  // what the catalog and the status page proved
  uint64_t next_file_number_ ABSL_GUARDED_BY(writer_mutex_) = 1;
  Sequence next_sequence_ ABSL_GUARDED_BY(writer_mutex_) = 1;
  bool deaths_changed_ ABSL_GUARDED_BY(writer_mutex_) = false;  // since the last catalog commit
  std::vector<std::string> unpublished_ ABSL_GUARDED_BY(writer_mutex_);  // files removed since then that power loss may bring back
  std::optional<uint64_t> watermark_ ABSL_GUARDED_BY(writer_mutex_);
  uint64_t oldest_unsynced_ns_ ABSL_GUARDED_BY(writer_mutex_) = 0;  // 0: everything acknowledged is synced
  bool interval_asked_ ABSL_GUARDED_BY(writer_mutex_) = false;      // by a batch since the last sync
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
  std::unique_ptr<overlay::Overlay> bulk_ ABSL_GUARDED_BY(writer_mutex_);

  Mutex queue_mutex_;
  ConditionVariable queue_moved_;  // somebody was done, and somebody else may lead
  std::deque<PendingWrite*> queue_ ABSL_GUARDED_BY(queue_mutex_);

  // Counters, readable without the writer's lock.
  mutable Mutex state_mutex_;
  RecoveryReport recovery_ ABSL_GUARDED_BY(state_mutex_);
  std::map<std::string, uint64_t> counters_ ABSL_GUARDED_BY(state_mutex_);
  Stats journal_stats_ ABSL_GUARDED_BY(state_mutex_);  // only its journal members are kept up
  std::optional<uint64_t> visible_watermark_ ABSL_GUARDED_BY(state_mutex_);
  std::string analyzer_identity_ ABSL_GUARDED_BY(state_mutex_);
  void Count(const std::string& name, uint64_t amount = 1) ABSL_LOCKS_EXCLUDED(state_mutex_);
  void NoteJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_) ABSL_LOCKS_EXCLUDED(state_mutex_);
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_ENGINE_H_
