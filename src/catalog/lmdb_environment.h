// LmdbEnvironment: the one MDB_env that a process may have for a catalog file, shared by all catalogs that are open on
// it. LMDB must not be opened twice in a process: closing one of the two would drop the file locks of both.
#ifndef ASHLAR_SRC_CATALOG_LMDB_ENVIRONMENT_H_
#define ASHLAR_SRC_CATALOG_LMDB_ENVIRONMENT_H_

#include <lmdb.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::catalog {

// A failed LMDB call as a status that names the file. MDB_MAP_FULL is OutOfRange, which Transact turns into a larger
// map.
absl::Status LmdbError(int code, std::string_view operation, const std::string& path);

// Threads: any. After a fork the child gets FailedPrecondition and its destructors touch neither file nor lock.
class LmdbEnvironment {
 public:
  // A share in the process's environment for the file at `path` (a native path that exists and was walked). A writable
  // share makes an environment that was opened for reading only a writable one.
  class Share {
   public:
    explicit Share(LmdbEnvironment* environment) : environment_(environment) {}
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    LmdbEnvironment* operator->() const { return environment_; }

   private:
    LmdbEnvironment* const environment_;
  };
  static absl::StatusOr<std::unique_ptr<Share>> Acquire(const std::string& path, bool writable);

  // Makes the two metas of an empty catalog in a new file, without a lock file; not synced.
  static absl::Status CreateFile(const std::string& path);

  // Runs `body` in a transaction, again if the map had to grow meanwhile. A read transaction is aborted behind it; a
  // write transaction is committed if it returns OK. `body` may run several times and must not keep pointers into the
  // map.
  absl::Status Transact(bool write, const std::function<absl::Status(MDB_txn*, MDB_dbi)>& body);

  // Whether `path` (a native one) is the name of this environment's file.
  absl::StatusOr<bool> IsAt(const std::string& path);

  // After a commit that failed in a way that leaves its fate open.
  bool fate_unknown() const { return fate_unknown_; }
  // LMDB itself gave up: when it can't write a meta page it puts the old transaction's number back over the new trees,
  // which is no state at all.
  bool may_have_spoiled_meta() const { return commit_failed_; }

 private:
  explicit LmdbEnvironment(std::string path) : path_(std::move(path)) {}
  ~LmdbEnvironment();
  friend class Share;

  absl::Status Open(bool writable);
  absl::Status Reopen(bool writable);
  absl::Status Begin(bool write, MDB_txn** txn);
  absl::Status Grow(size_t bytes_min);
  absl::Status SyncMeta();
  absl::Status CommitFailed(int code);

  const std::string path_;
  pid_t pid_ = 0;
  int shares_ = 0;  // guarded by the registry's mutex
  // Held shared around transactions, and alone to close, reopen or resize, which LMDB allows only between transactions.
  std::shared_mutex mutex_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  bool writable_ = false;
  std::atomic<bool> fate_unknown_ = false;
  std::atomic<bool> commit_failed_ = false;
};

}  // namespace ashlar::catalog

#endif  // ASHLAR_SRC_CATALOG_LMDB_ENVIRONMENT_H_
