// Journal: what makes a write durable before it is in a segment. Append-only files of checksummed, chained, salted
// records, one record per batch (SPEC J-*).
#ifndef ASHLAR_SRC_JOURNAL_JOURNAL_H_
#define ASHLAR_SRC_JOURNAL_JOURNAL_H_

#include <cstdint>
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
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/bytes.h"
#include "src/env/env.h"

namespace ashlar::journal {

// A place in the journal: file number, then offset in it.
struct Position {
  uint64_t number = 0;
  uint64_t offset = 0;
  auto operator<=>(const Position&) const = default;
};

// What a journal file's header says about the store it was built on.
struct FileContext {
  format::StoreId store_id{};
  Schema schema;
  uint32_t schema_number = 0;
  std::string analyzer_identity;
  uint64_t generation = 0;  // of the catalog when the file was made
};

// One batch as it lies in the journal. `operations` is the encoding of format/journal_record.h.
struct Record {
  Sequence first_sequence = 0;
  uint32_t operation_count = 0;  // sequences first .. first + count - 1; an empty batch has count 1 and no operations
  uint32_t schema_number = 0;
  ByteSpan operations;
  Sequence last_sequence() const { return first_sequence + operation_count - 1; }
};

struct WriterOptions {
  uint64_t first_file_bytes = uint64_t{256} << 10;  // doubling from here
  uint64_t file_bytes_max = uint64_t{64} << 20;     // but for a group that is larger
};

struct WriterCounters {
  uint64_t writes = 0, syncs = 0, bytes = 0, files_created = 0, files_recycled = 0, rotations = 0;
};

// Where replay ended; what Writer::Continue needs to go on.
struct ReplayEnd {
  Position end;  // just past the last valid record (or seal)
  Sequence last_sequence = 0;
  uint64_t chain = 0;   // checksum of the last record
  bool sealed = false;  // a seal is the last record and nothing lies behind it
  // Nothing proves that what lies behind the last batch, as it is read now, is what is on the disk: the end is not sealed, and
  // a void record, a torn tail or old content of a recycled file is there. Under it may be a batch that was refused.
  bool is_unsure = false;
  uint64_t file_count = 0;
  uint64_t replayed_bytes = 0;  // of records beyond the floor
  uint64_t torn_bytes = 0;  // bytes after `end` that were cut as a torn tail
  // What going on from here needs to know of the last file; zero without one.
  uint64_t salt = 0;
  uint64_t durable_to = 0;  // the file is known to be synced to here; the end of a record, at most end.offset
  uint64_t capacity = 0;    // bytes in the file, the unused ones included
};

// Appends. One thread at a time.
// Call order: (Create | Continue) (Append | Sync | Rotate | Prepare | DropBelow)* Seal?
// Errors: ResourceExhausted leaves the journal as it was before the call, to be tried again; any failure of a sync
// breaks the writer. A destroyed writer that was not sealed leaves an unsealed file, as a crash does.
class Writer {
 public:
  // Starts a new file `next_number()` whose chain goes on from `previous` (all zero for a new store). What was replayed
  // but is not known to be durable is copied into the new file: after a failed sync the operating system may show bytes
  // that are not on the disk and never will be.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(env::Env env, const std::string& directory,
                                                        const FileContext& context, const ReplayEnd& previous,
                                                        std::function<uint64_t()> next_number,
                                                        const WriterOptions& options);
  // Goes on after the seal of the last file (previous.sealed must be true).
  static absl::StatusOr<std::unique_ptr<Writer>> Continue(env::Env env, const std::string& directory,
                                                          const FileContext& context, const ReplayEnd& previous,
                                                          std::function<uint64_t()> next_number,
                                                          const WriterOptions& options);
  virtual ~Writer() = default;

  // Writes all records of a group with one write, rotating first if they don't fit in the file (a record never spans
  // files). If the write fails, the group's start is overwritten with a void record and synced before the error
  // returns, and the journal goes on as if the group had never been; if that fails too, the writer is broken: broken()
  // is true and every later call fails with FailedPrecondition.
  virtual absl::Status Append(std::span<const Record> records) = 0;
  // Everything appended so far survives power loss. After a failure the writer is broken for good.
  virtual absl::Status Sync() = 0;
  // Closes this file (synced) and starts a new one with `context`, so that lower numbers can be removed or recycled.
  virtual absl::Status Rotate(const FileContext& context) = 0;
  // Makes the next file in advance, so that the next rotation writes no zeros. May be skipped; a failure other than a
  // failed sync changes nothing. For quiet moments: costs a write and a sync of a whole file unless a spare is at hand.
  virtual absl::Status Prepare() = 0;
  // The same in three steps, so that who appends need not wait while the file is written:
  //   SpareWanted (who appends) -> WriteSpare (below; anybody) -> AdoptSpare (who appends)
  // The bytes that the next file would like to have; 0: none is needed yet, there is one, or it was asked for before.
  virtual uint64_t SpareWanted() = 0;
  virtual absl::Status AdoptSpare() = 0;
  // Appends a seal, syncs, closes, and removes the spare file. No sequence from `next_sequence` on was handed out (0: none
  // behind the last record's): who replays the seal goes on there.
  virtual absl::Status Seal(Sequence next_sequence) = 0;
  absl::Status Seal() { return Seal(0); }
  // Files below `number` are not needed any more: removed, or kept aside for recycling.
  virtual absl::Status DropBelow(uint64_t number) = 0;
  // The same, and nothing of them is left under the journal's names: none is kept for recycling, and one that was
  // before is removed. An error tells of a file that stays; all others are gone.
  virtual absl::Status EraseBelow(uint64_t number) = 0;

  virtual Position end() const = 0;     // after the last append
  virtual Position synced() const = 0;  // known durable to here
  // Of a sealed journal: where the seal begins. All before it was synced before the seal was written.
  virtual Position seal_position() const = 0;
  virtual bool broken() const = 0;
  virtual WriterCounters counters() const = 0;
  virtual uint64_t file_count() const = 0;
  virtual uint64_t file_bytes() const = 0;
};

struct ReplayOptions {
  format::StoreId store_id{};
  uint64_t first_number = 0;        // the catalog's journal_number; lower files are ignored
  Position durable;                 // the catalog's: an invalid record before it is damage
  Sequence floor = 0;               // records <= floor are read for the chain and not visited
  uint64_t catalog_generation = 0;  // a header that names a newer generation is damage (the catalog went back)
  // A reader beside a living writer: nothing beyond this is looked at, and nothing is called damage there.
  std::optional<Position> limit;
  // Goes on from an earlier end instead of from first_number (Refresh).
  std::optional<ReplayEnd> resume;
};

// Makes a file that AdoptSpare can take. Nothing is left of it after a failure.
absl::Status WriteSpare(env::Env env, const std::string& directory, uint64_t bytes);

// Calls `visit` with every record above the floor, in order. DataLoss for damage (see SPEC J-9: told from a torn tail
// by durable_to); Unimplemented for a newer format; with `limit` or `resume`, Unavailable if the writer's files moved
// on and the reader has to start again from the catalog. An error of `visit` ends the replay and is returned. Changes
// nothing. `headers`, if given, receives the contexts of the files read, so that recovery can compare schema numbers.
absl::StatusOr<ReplayEnd> Replay(env::Env env, const std::string& directory, const ReplayOptions& options,
                                 const std::function<absl::Status(const Record&)>& visit,
                                 std::vector<FileContext>* headers = nullptr);

// "journal-<16 hex digits>.jnl", and back (nullopt: not such a name).
std::string FileName(uint64_t number);
std::optional<uint64_t> NumberOf(std::string_view name);

// Files set aside for recycling (the first one's name, and whether a name is of one), and two in the making: by who appends, and
// by WriteSpare. None is ever read; all are ours to remove.
inline constexpr std::string_view kSpareFileName = "journal-spare.jnl";
bool IsSpareFileName(std::string_view name);
inline constexpr std::string_view kNewFileName = "journal-new.jnl";
inline constexpr std::string_view kNextFileName = "journal-next.jnl";

// The status page: one small shared mapping by which a living writer tells readers in other processes how far the
// acknowledged journal goes. Written by the writer only; torn reads are told by a sequence lock and a checksum. When no writer
// lives, `durable` still proves to who opens the store that the journal went that far.
struct Status {
  Sequence sequence = 0;  // acknowledged and visible
  Position position{};    // end of its record
  uint64_t generation = 0;
  Position durable{};     // the journal was synced to here when this was published
};
class StatusPage {
 public:
  static absl::StatusOr<std::unique_ptr<StatusPage>> Open(env::Env env, const std::string& directory,
                                                          const format::StoreId& store_id, bool writable);
  virtual ~StatusPage() = default;
  virtual void Publish(const Status& status) = 0;
  // nullopt: never written, of another store, or damaged.
  virtual std::optional<Status> Load() const = 0;
};
inline constexpr std::string_view kStatusFileName = "status";

}  // namespace ashlar::journal

#endif  // ASHLAR_SRC_JOURNAL_JOURNAL_H_
