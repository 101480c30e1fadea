// Store: a durable search index in a directory, or in memory.
#ifndef ASHLAR_STORE_H_
#define ASHLAR_STORE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/check.h"
#include "ashlar/checkpoint.h"
#include "ashlar/document.h"
#include "ashlar/options.h"
#include "ashlar/query.h"
#include "ashlar/schema.h"
#include "ashlar/snapshot.h"

namespace ashlar {

namespace engine {
class Engine;
}

// What: documents in, answers out. Writes go to a journal and an in-memory overlay, are searchable at once, and are
//   flushed into immutable segments that merges keep few.
// Owns: the directory's lock (unless read-only), its journal, overlay and mappings.
// Threads: every method may be called from any thread; writes are done one at a time, in the order in which they
//   arrive. TakeSnapshot never waits for a write, a flush or a merge.
// Errors: see ashlar/status.h. After a failed call nothing of it is visible or durable, unless the message says that the
//   outcome is unknown until the store is reopened (a failed sync). Out of memory in a small allocation terminates.
class Store final {
 public:
  // Opens a store. `schema` is needed when one is created and is else ignored.
  // NotFound: no store there and not to be created. AlreadyExists: error_if_exists. Unavailable: locked by a writer.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& directory, const Options& options = {},
                                                     const Schema* schema = nullptr);
  static absl::StatusOr<std::unique_ptr<Store>> Create(const std::string& directory, const Schema& schema,
                                                       const Options& options = {});
  // A store that lives in memory only, with the same behaviour; gone when closed.
  static absl::StatusOr<std::unique_ptr<Store>> OpenInMemory(const Schema& schema, const Options& options = {});

  explicit Store(std::unique_ptr<engine::Engine> engine);
  ~Store();  // closes; an error can't be returned then, so call Close()
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Writes a batch: all of it or nothing. Returns once it is as durable as asked for and visible to new snapshots.
  // May block on the journal's sync, and on a flush when memory is at its limit; with Scheduler::kCooperative also on a flush
  // when the overlay is full, and on merges.
  // `keys_are_new` (kOff only) says that no key of the batch is in the store: they are not looked up, nothing of the
  // batch is visible before Flush(), and a duplicate fails that flush with AlreadyExists naming the key.
  absl::StatusOr<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options = {});
  // Batches of one operation.
  absl::StatusOr<Sequence> Insert(Document document);
  absl::StatusOr<Sequence> Put(Document document);
  absl::StatusOr<Sequence> PutIf(Document document, DocumentId expected);
  absl::StatusOr<bool> Delete(std::string key);  // whether it existed

  // Deletes every document that the query matches, filters included, by ordinary deletes of its DocumentIds: journaled,
  // as durable as any batch, seen by merges like any. What matches is decided on a snapshot taken by the call, and
  // other writers go on meanwhile. Then what they do is as if it had come after: what they add stays, and so does what
  // they put in the place of a document that matched. What they delete first is not counted. Loads with `keys_are_new`
  // that are not flushed are not seen. DataLoss: damage keeps a part of the answer from being told, and nothing was
  // deleted. ResourceExhausted: the batch is larger than batch_bytes_max; see DeleteOptions::batch_documents_max. The
  // cost is that of the search and of the deletes.
  absl::StatusOr<DeleteResult> DeleteMatching(const PreparedQuery& query, const DeleteOptions& options = {});
  // Deletes every document whose date in `field` is before `now`, in the same way; of several dates the latest counts,
  // and a document without one stays. The store looks at no clock: until it is called, nothing expires. O(documents).
  // InvalidArgument: `field` is no date field with a column.
  absl::StatusOr<DeleteResult> Expire(std::string_view field, Date now, const DeleteOptions& options = {});

  // Everything acknowledged before the call survives power loss after it.
  absl::Status Sync();
  // Writes the overlay into a segment, drops the journal it needed, and wakes the thread for merges, if there is one. Others go on.
  absl::Status Flush();
  // Flushes, then merges until at most `segments_max` segments are left of those that there are then. Others write and read
  // meanwhile. Aborted: the store is being closed.
  absl::Status Merge(uint32_t segments_max = 1);
  // Merge, after which no file of the store's directory has a byte of the documents that were deleted or replaced
  // before the call: every segment is written again, with stored documents compressed anew; all journal files before,
  // what was kept for recycling, and what a failed flush or merge has left are removed; the catalog gets a new file.
  // O(store). It speaks of the names in the directory: not of checkpoints and other hard links, of files that other
  // processes or other Stores have open, nor of the device's free blocks. FailedPrecondition: snapshots of this Store
  // still hold removed files open, and the message names them; all else is done, and once they are released nothing is
  // left. Also Durability::kOff. DataLoss: a damaged segment could not be written again. After any error the store is
  // right, and another call does the rest.
  absl::Status Purge(uint32_t segments_max = 1);
  // Does what is due, and returns when it is done: an interval sync, the flush of a full overlay, merges of full tiers.
  absl::Status RunPending();
  // Merges that nobody asked for stand still, between two blocks of what they copy, until they may go on; a merge in the call of
  // a writer gives up, and is due again. Flush and Merge work as ever. For moments when the disk is needed for something else.
  void PauseMerges();
  void ResumeMerges();

  // Adds fields at the end of the schema; durable when it returns. They never join the default group.
  absl::Status AddFields(const std::vector<Field>& fields);
  Schema schema() const;

  Snapshot TakeSnapshot() const;
  // Analyses a query against the schema. InvalidArgument: unknown field, a field that can't be searched, no positive word.
  absl::StatusOr<PreparedQuery> Prepare(const Query& query) const;
  absl::StatusOr<PreparedQuery> Prepare(std::string_view query_text) const;  // ParseQuery, then Prepare

  // Read-only stores: takes in what the writer has published since. True if something was new.
  absl::StatusOr<bool> Refresh();

  Stats GetStats() const;
  // Verifies every byte and every cross-reference; returns what it found, damage and notes.
  absl::StatusOr<std::vector<Finding>> Check() const;

  // Makes a consistent copy of the store in another directory, while it is written to and without stopping anybody: all
  // batches up to the report's sequence, which is what a snapshot taken now shows. The copy is a store of its own with the
  // same DocumentIds. Also for read-only stores.
  // AlreadyExists, FailedPrecondition: `directory` is not free, or no earlier checkpoint of this store. Unavailable: it is in
  // use. DataLoss: damage, in the store or the copy. A checkpoint that fails removes what it made.
  absl::StatusOr<CheckpointReport> Checkpoint(const std::string& directory, const CheckpointOptions& options = {}) const;

  // Seals the journal and releases everything. Snapshots stay usable. Idempotent.
  absl::Status Close();

 private:
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace ashlar

#endif  // ASHLAR_STORE_H_
