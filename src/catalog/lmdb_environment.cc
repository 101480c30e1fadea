#include "src/catalog/lmdb_environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::catalog {
namespace {

// Address space only. A catalog of 10,000 segments has some megabytes.
constexpr size_t kMapBytesMin = size_t{64} << 20;
constexpr int kAttemptsMax = 64;  // of a transaction, each after the map grew
constexpr mdb_mode_t kFileMode = 0644;

using FileKey = std::pair<dev_t, ino_t>;

struct Registry {
  std::mutex mutex;
  std::map<FileKey, LmdbEnvironment*> environments;
};
Registry& TheRegistry() {
  static Registry* const registry = new Registry;  // outlives every catalog
  return *registry;
}

absl::StatusOr<FileKey> KeyOfFile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError(errno, "stat", path);
  return FileKey(info.st_dev, info.st_ino);
}

size_t RoundUp(size_t bytes) {
  constexpr size_t kUnit = size_t{1} << 20;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// Frees the reader slots of processes that died within a transaction: they would keep the pages of their time from
// being used again for ever, and fill the table.
void FreeDeadReaders(MDB_env* env) {
  int dead = 0;
  mdb_reader_check(env, &dead);
}

int BeginTransaction(MDB_env* env, unsigned flags, MDB_txn** txn) {
  // A look at 126 slots, for a transaction that writes and syncs.
  if ((flags & MDB_RDONLY) == 0 && SiteIsOn(Site::kCatalogDeadReaders)) FreeDeadReaders(env);
  const int code = mdb_txn_begin(env, nullptr, flags, txn);
  if (code != MDB_READERS_FULL) return code;
  FreeDeadReaders(env);
  return mdb_txn_begin(env, nullptr, flags, txn);
}

}  // namespace

absl::Status LmdbError(int code, std::string_view operation, const std::string& path) {
  if (code > 0) return ErrnoError(code, operation, path);
  const std::string message = absl::StrCat(path, ": ", ToAbsl(operation), ": ", mdb_strerror(code));
  switch (code) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
      return DataLoss(path, "lmdb", 0, mdb_strerror(code));
    case MDB_VERSION_MISMATCH:
      return WithPlace(Unimplemented(message), path, "lmdb", 0);
    case MDB_MAP_FULL:
      return absl::OutOfRangeError(message);
    case MDB_READERS_FULL:
    case MDB_TXN_FULL:
      return WithPlace(ResourceExhausted(message), path, "", 0);
    default:
      return WithPlace(Internal(message), path, "", 0);
  }
}

// ---- Opening, closing, sharing.

absl::Status LmdbEnvironment::Open(bool writable) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) return ErrnoError(errno, "stat", path_);
  int code = mdb_env_create(&env_);
  if (code != 0) {
    env_ = nullptr;
    return LmdbError(code, "mdb_env_create", path_);
  }
  // Never the size that the file states: it is not checked by anything.
  code = mdb_env_set_mapsize(env_, RoundUp(std::max(kMapBytesMin, static_cast<size_t>(info.st_size) * 2)));
  // NOTLS ties reader slots to transactions, so that any thread may read and none leaves a slot behind.
  // NOMETASYNC: LMDB would write the meta page through an O_DSYNC descriptor, and when that fails spoil it. We sync
  // the file once more instead, which costs the same.
  const unsigned flags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NOMETASYNC | (writable ? 0u : unsigned{MDB_RDONLY});
  if (code == 0) code = mdb_env_open(env_, path_.c_str(), flags, kFileMode);
  if (code == 0) {
    MDB_txn* txn = nullptr;
    code = BeginTransaction(env_, MDB_RDONLY, &txn);
    if (code == 0) {
      code = mdb_dbi_open(txn, nullptr, 0, &dbi_);
      mdb_txn_abort(txn);
    }
  }
  if (code != 0) {
    mdb_env_close(env_);
    env_ = nullptr;
    return LmdbError(code, "mdb_env_open", path_);
  }
  writable_ = writable;
  pid_ = ::getpid();
  return absl::OkStatus();
}

absl::Status LmdbEnvironment::Reopen(bool writable) {
  const std::unique_lock<std::shared_mutex> guard(mutex_);
  if (env_ != nullptr) mdb_env_close(env_);
  env_ = nullptr;
  const absl::Status status = Open(writable);
  // The readers that were there go on as before.
  if (!status.ok()) Open(false).IgnoreError();
  return status;
}

LmdbEnvironment::~LmdbEnvironment() {
  if (env_ != nullptr) mdb_env_close(env_);
}

absl::StatusOr<std::unique_ptr<LmdbEnvironment::Share>> LmdbEnvironment::Acquire(const std::string& path,
                                                                                 bool writable) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> guard(registry.mutex);
  ASHLAR_ASSIGN_OR_RETURN(const FileKey key, KeyOfFile(path));
  LmdbEnvironment*& slot = registry.environments[key];
  // A parent's environment is of no use after a fork: it is left alone, descriptors and all.
  if (slot != nullptr && slot->pid_ != ::getpid()) slot = nullptr;
  if (slot == nullptr) {
    std::unique_ptr<LmdbEnvironment, void (*)(LmdbEnvironment*)> fresh(new LmdbEnvironment(path),
                                                                       [](LmdbEnvironment* e) { delete e; });
    if (const absl::Status status = fresh->Open(writable); !status.ok()) {
      registry.environments.erase(key);
      return status;
    }
    slot = fresh.release();
  } else if (writable && !slot->writable_) {
    ASHLAR_RETURN_IF_ERROR(slot->Reopen(true));
  }
  ++slot->shares_;
  return std::make_unique<Share>(slot);
}

LmdbEnvironment::Share::~Share() {
  if (environment_->pid_ != ::getpid()) return;
  // Closed under the registry's mutex, so that nobody opens the file while it is being closed.
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> guard(registry.mutex);
  if (--environment_->shares_ > 0) return;
  for (auto it = registry.environments.begin(); it != registry.environments.end(); ++it) {
    if (it->second != environment_) continue;
    registry.environments.erase(it);
    break;
  }
  delete environment_;
}

absl::Status LmdbEnvironment::CreateFile(const std::string& path) {
  MDB_env* env = nullptr;
  int code = mdb_env_create(&env);
  if (code != 0) return LmdbError(code, "mdb_env_create", path);
  code = mdb_env_set_mapsize(env, kMapBytesMin);
  if (code == 0) code = mdb_env_open(env, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK, kFileMode);
  mdb_env_close(env);
  return code == 0 ? absl::OkStatus() : LmdbError(code, "mdb_env_open", path);
}

absl::StatusOr<bool> LmdbEnvironment::IsAt(const std::string& path) {
  const std::shared_lock<std::shared_mutex> guard(mutex_);
  if (env_ == nullptr) return FailedPrecondition(absl::StrCat(path_, ": the catalog could not be reopened"));
  int descriptor = -1;
  struct stat open_file {};
  const int code = mdb_env_get_fd(env_, &descriptor);
  if (code != 0) return LmdbError(code, "mdb_env_get_fd", path_);
  if (::fstat(descriptor, &open_file) != 0) return ErrnoError(errno, "stat", path_);
  ASHLAR_ASSIGN_OR_RETURN(const FileKey named, KeyOfFile(path));
  return named == FileKey(open_file.st_dev, open_file.st_ino);
}

// ---- Transactions.

absl::Status LmdbEnvironment::Grow(size_t bytes_min) {
  const std::unique_lock<std::shared_mutex> guard(mutex_);
  if (env_ == nullptr) return FailedPrecondition(absl::StrCat(path_, ": the catalog could not be reopened"));
  MDB_envinfo info{};
  mdb_env_info(env_, &info);
  if (info.me_mapsize >= bytes_min && bytes_min != 0) return absl::OkStatus();  // somebody else was here
  // 0: as much as another process's commits need.
  const int code = mdb_env_set_mapsize(env_, bytes_min == 0 ? 0 : RoundUp(bytes_min));
  return code == 0 ? absl::OkStatus() : LmdbError(code, "mdb_env_set_mapsize", path_);
}

// No space before the meta page was written leaves the old state; anything else is found out by reopening.
absl::Status LmdbEnvironment::CommitFailed(int code) {
  const absl::Status status = LmdbError(code, "mdb_txn_commit", path_);
  MDB_txn* probe = nullptr;
  const int usable = mdb_txn_begin(env_, nullptr, 0, &probe);
  if (usable == 0) mdb_txn_abort(probe);
  if (absl::IsResourceExhausted(status) && usable == 0) return status;
  fate_unknown_ = commit_failed_ = true;
  return absl::IsResourceExhausted(status) ? Internal(FromAbsl(status.message())) : status;
}

// The new state is in the page cache, and its pages are on the disk. If its meta page does not get there either state
// may be found after power is lost, so nothing may be removed before the store was opened again.
absl::Status LmdbEnvironment::SyncMeta() {
  const int code = SiteIsOn(Site::kCatalogMetaSync) ? mdb_env_sync(env_, 1) : 0;
  if (code == 0) return absl::OkStatus();
  fate_unknown_ = true;
  const absl::Status status = LmdbError(code, "mdb_env_sync", path_);
  return absl::IsResourceExhausted(status) ? Internal(FromAbsl(status.message())) : status;
}

absl::Status LmdbEnvironment::Transact(bool write, const std::function<absl::Status(MDB_txn*, MDB_dbi)>& body) {
  if (pid_ != ::getpid()) return FailedPrecondition(absl::StrCat(path_, ": opened before a fork; open it again"));
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    size_t grow_to = 0;  // 0: as large as the file
    {
      const std::shared_lock<std::shared_mutex> guard(mutex_);
      if (env_ == nullptr) return FailedPrecondition(absl::StrCat(path_, ": the catalog could not be reopened"));
      if (write && fate_unknown_) return FailedPrecondition("the last commit's fate is unknown; reopen the store");
      MDB_txn* txn = nullptr;
      int code = BeginTransaction(env_, write ? 0u : unsigned{MDB_RDONLY}, &txn);
      if (code != 0 && code != MDB_MAP_RESIZED) return LmdbError(code, "mdb_txn_begin", path_);
      if (code == 0) {
        MDB_envinfo info{};
        mdb_env_info(env_, &info);
        const absl::Status status = body(txn, dbi_);
        const bool full = absl::IsOutOfRange(status);
        if (!write || (!status.ok() && !full)) {
          mdb_txn_abort(txn);
          return status;
        }
        if (full) {
          mdb_txn_abort(txn);
          code = MDB_MAP_FULL;
        } else {
          code = mdb_txn_commit(txn);
          if (code == 0) return SyncMeta();
          if (code != MDB_MAP_FULL) return CommitFailed(code);
        }
        grow_to = info.me_mapsize * 2;
      }
    }
    ASHLAR_RETURN_IF_ERROR(Grow(grow_to));
  }
  return ResourceExhausted(absl::StrCat(path_, ": the map cannot grow any further"));
}

}  // namespace ashlar::catalog
