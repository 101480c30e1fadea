// Options and Stats of a store.
#ifndef ASHLAR_OPTIONS_H_
#define ASHLAR_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ashlar/document.h"

namespace ashlar {

// When an acknowledged write survives what. See docs/durability.md.
enum class Durability : uint8_t {
  kSync,      // power loss
  kInterval,  // the death of the process; power loss costs at most the last interval
  kOs,        // the death of the process
  kOff,       // nothing until Flush(); no journal is written
};

// Where segment bytes live. Never changes an answer.
enum class OpenMode : uint8_t {
  kMapped,  // memory-mapped, verified page by page at first touch; opening costs no reading
  kArray,   // read into memory and verified when opened
};

// Who writes full overlays into segments and merges segments. Never changes an answer.
enum class Scheduler : uint8_t {
  kAuto,         // kBackground for stores on disk, if the system gives a thread; else kCooperative. Stats say which
  kCooperative,  // the call that fills the overlay, after its batch is acknowledged to all others; and RunPending()
  kBackground,   // a thread of the store's own; a call waits only when memory is at its limit
};

struct Options {
  bool create_if_missing = false;  // needs a schema given to Store::Open
  bool error_if_exists = false;
  bool read_only = false;          // takes no lock, changes no file; see Store::Refresh
  OpenMode open_mode = OpenMode::kMapped;
  Durability durability = Durability::kSync;
  uint32_t interval_ms = 100;                      // kInterval
  // The overlay is flushed when it is larger. What is being flushed and what comes meanwhile take at most twice as much: then
  // writes wait for the flush, or get its error.
  uint64_t overlay_bytes_max = uint64_t{64} << 20;
  uint64_t batch_bytes_max = uint64_t{64} << 20;   // a larger batch is ResourceExhausted
  uint64_t journal_file_bytes_min = uint64_t{256} << 10;  // of the first; each is twice the one before, to overlay_bytes_max / 4
  uint32_t merge_factor = 8;                       // segments of one size tier before they are merged; 0: never by itself
  Scheduler scheduler = Scheduler::kAuto;          // kBackground: ResourceExhausted if the system gives no thread
  uint64_t merge_bytes_per_second = 0;             // with a thread: merges that are due write no faster; 0: no limit
  // kMapped: a file that somebody shortens, or a disk that fails, under a mapping gives DataLoss and not a signal. For that
  // the first such store of the process installs a SIGBUS handler, which passes on every fault that is not in a mapping of
  // ours. False: none is installed, and such a fault ends the process. See docs/adr/0006.
  bool sigbus_guard = true;
  // Locks, mappings and syncs of network file systems do not keep the promises made here: Open refuses them
  // (FailedPrecondition naming the file system) unless this is set.
  bool allow_network_file_system = false;
};

inline constexpr size_t kWatermarkBytesMax = 4096;

struct WriteOptions {
  std::optional<Durability> durability;  // raises the store's for this batch; a lower one is ignored
  // Data of the application's own, such as how far it has got: kept with the batch, also an empty one, atomically, and
  // given back by Snapshot::watermark, also after a reopening, until a batch with another one. At most
  // kWatermarkBytesMax bytes, else ResourceExhausted; empty is a watermark, too.
  std::optional<std::string> watermark;
  bool keys_are_new = false;  // kOff only: skips the key look-up; see Store::Write
};

struct WriteResult {
  Sequence sequence = 0;       // the last one of the batch
  uint64_t documents_replaced = 0;
  std::vector<bool> existed;   // one per operation: whether it replaced or deleted a live document
};

struct DeleteOptions {
  WriteOptions write;  // of each batch; the watermark goes with the last one
  // DeleteMatching: the text fields that words without a field search, as in SearchOptions.
  std::vector<std::string> fields;
  // 0: all deletes are one batch, all or nothing. Else batches of at most so many, in ascending order of DocumentId:
  // each is atomic, and what a failure or a crash leaves undone a second call does. A delete in a batch takes about
  // half a KB of memory while it is written.
  uint64_t batch_documents_max = 0;
};

struct DeleteResult {
  uint64_t documents = 0;  // deleted
  uint64_t batches = 0;
  Sequence sequence = 0;  // of the last batch; 0: none was written, for there was nothing to delete and no watermark
};

// What works and what does not. Where several apply, the later one of this list is shown, except that kDamaged gives way to
// kNoSpace.
enum class StoreState : uint8_t {
  kHealthy,
  kNoSpace,     // the last write, flush or merge found no room; the next one tries again
  kFailedSync,  // a sync failed: no more acknowledgements, reads go on, reopening recovers
  kClosed,
  kDamaged,     // a segment is quarantined: what needs its damaged part fails, it is not merged, everything else works
};
std::string_view StoreStateName(StoreState state);  // "healthy", "no_space", "failed_sync", "closed", "damaged"

struct SegmentStats {
  uint64_t id = 0;
  uint64_t documents = 0;  // dead ones included
  uint64_t deleted = 0;
  std::string damage;                     // why it is quarantined; empty if it is not
  std::map<std::string, uint64_t> bytes;  // by section name
  std::string analyzer_identity;          // what made its terms; several, joined by "; ", if merged from several
};

// What the opening found and did.
struct RecoveryReport {
  uint64_t batches_replayed = 0;  // from the journal
  uint64_t bytes_replayed = 0;
  // A torn tail: what a crash left half written behind the last whole batch. Nothing of it had been acknowledged as durable.
  std::string torn_file;  // empty if there was none
  uint64_t torn_offset = 0;
  uint64_t torn_bytes = 0;
  uint64_t orphans_removed = 0;  // files of this store that nothing names: left by a flush or merge that did not finish
};

struct Stats {
  uint64_t documents = 0;  // live
  uint64_t deleted = 0;    // dead, still in segments or overlay
  std::vector<SegmentStats> segments;
  uint64_t journal_files = 0;
  uint64_t journal_bytes = 0;
  uint64_t replay_bytes = 0;  // what a reopening would replay now
  uint64_t overlay_documents = 0;
  uint64_t overlay_bytes = 0;
  Sequence visible_sequence = 0;
  std::optional<std::string> watermark;   // Snapshot::watermark of a snapshot taken now
  Sequence oldest_snapshot_sequence = 0;  // 0: no snapshot is held
  uint64_t oldest_snapshot_age_ms = 0;
  OpenMode open_mode = OpenMode::kMapped;
  StoreState state = StoreState::kHealthy;
  std::string state_cause;     // the error that led there; empty when healthy
  int64_t state_since_ms = 0;  // wall clock, Unix time; of a healthy store: since the opening or the end of the last trouble
  std::string state_remedy;    // how to leave the state; empty when healthy
  RecoveryReport recovery;     // read-only stores: of the last reading of the journal
  std::string last_failure;    // of a write, flush, merge or sync, also of those that were done unasked; kept after recovery
  int64_t last_failure_ms = 0;
  std::string analyzer_identity;         // of the store
  std::string analyzer_identity_build;   // of this build; another one: see docs/architecture.md, "Analyzer identity"
  Scheduler scheduler = Scheduler::kCooperative;  // the one in use: never kAuto
  bool merges_are_paused = false;
  double write_amplification = 0;  // bytes of segments written since the opening, by byte flushed; 0: nothing was flushed
  std::map<std::string, uint64_t> counters;  // "flushes", "merges", "journal_syncs", "tokens_cut", ...
};

}  // namespace ashlar

#endif  // ASHLAR_OPTIONS_H_
