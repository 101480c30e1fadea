// The catalog in LMDB: "catalog.lmdb", one transaction a generation, key = generation (8 bytes, big-endian), value =
// the framed bytes of format/catalog_value.h. The transaction's id is the generation, so a meta page that lies about
// its age is noticed (lmdb_walker.h). The file is made under another name and renamed when it is durable: one with the
// final name is never empty.
#include <lmdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/catalog/implementations.h"
#include "src/catalog/lmdb_environment.h"
#include "src/catalog/lmdb_walker.h"

namespace ashlar::catalog {
namespace {

constexpr std::string_view kFileName = "catalog.lmdb";
constexpr std::string_view kLockName = "catalog.lmdb-lock";
constexpr std::string_view kNewName = "catalog-new.lmdb";
constexpr std::string_view kNewLockName = "catalog-new.lmdb-lock";
constexpr uint64_t kGenerationsKept = 2;
constexpr int kAttemptsMax = 100;        // commits that may pass by while one value is read
constexpr size_t kLockFileBytes = 8192;  // room for LMDB's 126 readers
// In a meta page; see lmdb_walker.cc.
constexpr size_t kMetaSectorBytes = 512;  // what a disk writes whole
constexpr uint64_t kMetaPageBytesOffset = 16 + 24, kMetaTransactionOffset = 16 + 128;

using Key = std::array<std::byte, 8>;

Key KeyOf(uint64_t generation) {
  Key key;
  StoreU64(key.data(), __builtin_bswap64(generation));
  return key;
}

MDB_val ValOf(ByteSpan bytes) { return {bytes.size(), const_cast<std::byte*>(bytes.data())}; }

std::string SourceOf(const std::string& path, uint64_t generation) {
  return absl::StrCat(path, " generation ", generation);
}

absl::StatusOr<LmdbContent> WalkFile(env::FileSystem& files, const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, files.OpenForRead(path));
  return WalkLmdb(*file, path);
}

absl::StatusOr<format::CatalogValue> DecodeEntry(const std::string& path, uint64_t generation, ByteSpan bytes) {
  ASHLAR_ASSIGN_OR_RETURN(format::CatalogValue value, format::DecodeCatalogValue(bytes, SourceOf(path, generation)));
  if (value.generation != generation)
    return DataLoss(path, "catalog value", 0, absl::StrCat("generation ", value.generation, " has key ", generation));
  return value;
}

// ---- Meta pages, as bytes. Only the sector that holds what changes.

using MetaSectors = std::array<ByteBuffer, 2>;

absl::StatusOr<MetaSectors> ReadMetas(env::FileSystem& files, const std::string& path) {
  MetaSectors metas = {ByteBuffer(kMetaSectorBytes), ByteBuffer(kMetaSectorBytes)};
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, files.OpenForRead(path));
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*file, path, "lmdb meta", 0, metas[0]));
  const uint64_t page_bytes = LoadU32(metas[0].data() + kMetaPageBytesOffset);
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*file, path, "lmdb meta", page_bytes, metas[1]));
  return metas;
}

absl::Status WriteMetas(env::FileSystem& files, const std::string& path, const MetaSectors& metas) {
  const uint64_t page_bytes = LoadU32(metas[0].data() + kMetaPageBytesOffset);
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files.OpenForWrite(path));
  ASHLAR_RETURN_IF_ERROR(file->WriteAt(0, metas[0]));
  ASHLAR_RETURN_IF_ERROR(file->WriteAt(page_bytes, metas[1]));
  ASHLAR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// The newest meta page may be in the page cache only, after a commit whose last sync failed or never came. Whoever
// opens for writing removes files that the state it reads does not name, so that state is made the disk's first. The
// pages that a meta leads to were synced before it was written. A plain sync is not enough: pages whose sync has failed
// count as clean.
absl::Status RewriteMetas(env::FileSystem& files, const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(const MetaSectors metas, ReadMetas(files, path));
  return WriteMetas(files, path, metas);
}

// Owns a share of the process's environment. Without one (`share` is null) it reads by walking: where the lock file
// cannot be written LMDB would read without a lock, and a writer that may write could overwrite the pages under it.
class LmdbCatalog : public Catalog {
 public:
  // `directory`: of the store whose catalog it is; empty: of none yet.
  LmdbCatalog(env::Env env, std::string directory, std::string path, std::unique_ptr<LmdbEnvironment::Share> share,
              bool writable)
      : env_(env),
        files_(*env.files),
        directory_(std::move(directory)),
        path_(std::move(path)),
        share_(std::move(share)),
        writable_(writable) {}

  absl::StatusOr<format::CatalogValue> Read() override;
  absl::Status Commit(const format::CatalogValue& value) override;
  absl::Status Rewrite(const format::CatalogValue& value) override;
  absl::StatusOr<bool> WasReplaced() override;
  absl::StatusOr<std::vector<absl::Status>> Check() override;
  // `expected`: the generation that must be the newest now; 0: none.
  absl::Status CommitAfter(uint64_t expected, const format::CatalogValue& value);

 private:
  // The newest generation's key and bytes; false if there is none.
  absl::StatusOr<bool> Newest(MDB_txn* txn, MDB_dbi dbi, uint64_t* generation, ByteBuffer* bytes) const;
  absl::Status CheckWritable() const;
  absl::StatusOr<bool> NewestByLmdb(uint64_t* generation, ByteBuffer* bytes) const;
  absl::Status Put(MDB_txn* txn, MDB_dbi dbi, uint64_t generation, ByteSpan bytes) const;

  const env::Env env_;
  env::FileSystem& files_;
  const std::string directory_;
  const std::string path_;
  std::unique_ptr<LmdbEnvironment::Share> share_;
  const bool writable_;
  bool fate_unknown_ = false;  // a replacement that failed half-way
};

absl::StatusOr<bool> LmdbCatalog::Newest(MDB_txn* txn, MDB_dbi dbi, uint64_t* generation, ByteBuffer* bytes) const {
  MDB_cursor* cursor = nullptr;
  int code = mdb_cursor_open(txn, dbi, &cursor);
  if (code != 0) return LmdbError(code, "mdb_cursor_open", path_);
  MDB_val key{}, value{};
  code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  mdb_cursor_close(cursor);
  if (code == MDB_NOTFOUND) return false;
  if (code != 0) return LmdbError(code, "mdb_cursor_get", path_);
  if (key.mv_size != sizeof(Key)) return DataLoss(path_, "lmdb main tree", 0, "wrong key size");
  *generation = __builtin_bswap64(LoadU64(static_cast<const std::byte*>(key.mv_data)));
  if (bytes != nullptr) {
    const auto* data = static_cast<const std::byte*>(value.mv_data);
    bytes->assign(data, data + value.mv_size);
  }
  return true;
}

// LMDB takes its id first and the meta page's trees after it, so with two commits in between they are those of a newer
// transaction (whole, and safe from being overwritten). Tried again, so that what is believed is one state.
absl::StatusOr<bool> LmdbCatalog::NewestByLmdb(uint64_t* generation, ByteBuffer* bytes) const {
  uint64_t transaction = 0;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    bool found = false;
    ASHLAR_RETURN_IF_ERROR((*share_)->Transact(false, [&](MDB_txn* txn, MDB_dbi dbi) -> absl::Status {
      transaction = mdb_txn_id(txn);
      ASHLAR_ASSIGN_OR_RETURN(found, Newest(txn, dbi, generation, bytes));
      return absl::OkStatus();
    }));
    if (transaction == (found ? *generation : 0) || !SiteIsOn(Site::kCatalogNewestIsTransaction)) return found;
  }
  return DataLoss(path_, "lmdb meta", 0, absl::StrCat("transaction ", transaction, " holds generation ", *generation));
}

absl::StatusOr<format::CatalogValue> LmdbCatalog::Read() {
  uint64_t generation = 0;
  ByteBuffer bytes;
  bool found = false;
  if (share_ != nullptr) {
    ASHLAR_ASSIGN_OR_RETURN(found, NewestByLmdb(&generation, &bytes));
  } else {
    ASHLAR_ASSIGN_OR_RETURN(LmdbContent content, WalkFile(files_, path_));
    found = !content.entries.empty();
    if (found) {
      generation = content.entries.back().generation;
      bytes = std::move(content.entries.back().value);
    }
  }
  if (!found) return NotFound(absl::StrCat(path_, ": nothing was committed yet"));
  return DecodeEntry(path_, generation, bytes);
}

absl::Status LmdbCatalog::Put(MDB_txn* txn, MDB_dbi dbi, uint64_t generation, ByteSpan bytes) const {
  const Key key_bytes = KeyOf(generation);
  MDB_val key = ValOf(key_bytes), value = ValOf(bytes);
  int code = mdb_put(txn, dbi, &key, &value, MDB_NOOVERWRITE);
  if (code != 0) return LmdbError(code, "mdb_put", path_);
  if (generation <= kGenerationsKept) return absl::OkStatus();
  const Key old_bytes = KeyOf(generation - kGenerationsKept);
  MDB_val old = ValOf(old_bytes);
  code = mdb_del(txn, dbi, &old, nullptr);
  return code == 0 || code == MDB_NOTFOUND ? absl::OkStatus() : LmdbError(code, "mdb_del", path_);
}

absl::Status LmdbCatalog::CheckWritable() const {
  if (!writable_) return FailedPrecondition(absl::StrCat(path_, ": open for reading only"));
  if (fate_unknown_) return FailedPrecondition("the last commit's fate is unknown; reopen the store");
  return absl::OkStatus();
}

absl::Status LmdbCatalog::Commit(const format::CatalogValue& value) { return CommitAfter(value.generation - 1, value); }

absl::Status LmdbCatalog::CommitAfter(uint64_t expected, const format::CatalogValue& value) {
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, EncodeForCommit(value, SourceOf(path_, value.generation)));
  ASHLAR_ASSIGN_OR_RETURN(const MetaSectors metas, ReadMetas(files_, path_));
  const absl::Status status = (*share_)->Transact(true, [&](MDB_txn* txn, MDB_dbi dbi) -> absl::Status {
    uint64_t newest = 0;
    ASHLAR_ASSIGN_OR_RETURN(const bool found, Newest(txn, dbi, &newest, nullptr));
    if ((found ? newest : 0) != expected)
      return FailedPrecondition(absl::StrCat(path_, ": generation ", value.generation, " does not follow ", newest));
    if (mdb_txn_id(txn) != value.generation)
      return DataLoss(path_, "lmdb meta", 0,
                      absl::StrCat("transaction ", mdb_txn_id(txn), " for generation ", value.generation));
    return Put(txn, dbi, value.generation, bytes);
  });
  // What the page cache shows then must be a state; the disk's turn comes when the catalog is opened again
  // (RewriteMetas).
  if (!status.ok() && (*share_)->may_have_spoiled_meta()) WriteMetas(files_, path_, metas).IgnoreError();
  return status;
}

absl::StatusOr<std::vector<absl::Status>> LmdbCatalog::Check() {
  std::vector<absl::Status> findings;
  const absl::StatusOr<LmdbContent> content = WalkFile(files_, path_);
  if (!content.ok()) {
    if (!absl::IsDataLoss(content.status())) return content.status();
    findings.push_back(content.status());
    return findings;
  }
  for (const LmdbEntry& entry : content->entries) {
    const absl::Status status = DecodeEntry(path_, entry.generation, entry.value).status();
    // The value's own error counts from its start, which is no place in the file.
    if (!status.ok()) findings.push_back(DataLoss(path_, "catalog value", entry.offset, FromAbsl(status.message())));
  }
  return findings;
}

// ---- Replacing.

// Gives both metas of a new, empty file higher transactions, in turn as LMDB has them. The walker's rules then hold
// once the newest two generations, and the two before the older state's, were committed.
absl::Status StartAtTransaction(env::FileSystem& files, const std::string& path, uint64_t transaction) {
  ByteBuffer first(kMetaTransactionOffset + 8);
  {
    ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, files.OpenForRead(path));
    ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*file, path, "lmdb meta", 0, first));
  }
  const uint64_t page_bytes = LoadU32(first.data() + kMetaPageBytesOffset);
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files.OpenForWrite(path));
  for (const uint64_t id : {transaction - 1, transaction}) {
    std::array<std::byte, 8> bytes{};
    StoreU64(bytes.data(), id);
    ASHLAR_RETURN_IF_ERROR(file->WriteAt(id % 2 * page_bytes + kMetaTransactionOffset, bytes));
  }
  ASHLAR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// A new file whose newest value is `value`, durable but for its name. LMDB can't skip transactions, and the newest two
// hold two generations each, so up to two generations before are given the same state.
absl::Status MakeCatalogAt(env::Env env, const std::string& path, const format::CatalogValue& value) {
  env::FileSystem& files = *env.files;
  const uint64_t before = std::min<uint64_t>(value.generation - 1, kGenerationsKept);
  const uint64_t start = value.generation - before - 1;
  ASHLAR_RETURN_IF_ERROR(LmdbEnvironment::CreateFile(files.NativePath(path)));
  if (start > 0) ASHLAR_RETURN_IF_ERROR(StartAtTransaction(files, path, start));
  {
    ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<LmdbEnvironment::Share> share,
                            LmdbEnvironment::Acquire(files.NativePath(path), /*writable=*/true));
    LmdbCatalog catalog(env, "", path, std::move(share), /*writable=*/true);
    format::CatalogValue step = value;
    for (step.generation = start + 1; step.generation <= value.generation; ++step.generation)
      ASHLAR_RETURN_IF_ERROR(catalog.CommitAfter(step.generation == start + 1 ? 0 : step.generation - 1, step));
  }
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files.OpenForWrite(path));
  ASHLAR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status RemoveIfThere(env::FileSystem& files, const std::string& path) {
  const absl::Status status = files.Remove(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// Under its name in the making; nothing is left of it after a failure.
absl::Status MakeReplacement(env::Env env, const std::string& directory, const format::CatalogValue& value) {
  env::FileSystem& files = *env.files;
  const std::string made = env::JoinPath(directory, kNewName);
  const std::string made_lock = env::JoinPath(directory, kNewLockName);
  ASHLAR_RETURN_IF_ERROR(RemoveIfThere(files, made));
  ASHLAR_RETURN_IF_ERROR(RemoveIfThere(files, made_lock));
  absl::Status status = MakeCatalogAt(env, made, value);
  if (status.ok()) status = WalkFile(files, made).status();
  RemoveIfThere(files, made_lock).IgnoreError();
  if (!status.ok()) RemoveIfThere(files, made).IgnoreError();
  return status;
}

absl::Status PutReplacement(env::FileSystem& files, const std::string& directory) {
  const std::string made = env::JoinPath(directory, kNewName);
  // A lock file tells the transaction that its users know. Those of the old catalog keep the old one, without its name.
  const std::string lock = env::JoinPath(directory, kLockName);
  absl::Status status = RemoveIfThere(files, lock);
  if (status.ok()) status = files.Rename(made, env::JoinPath(directory, kFileName));
  if (!status.ok()) {
    RemoveIfThere(files, made).IgnoreError();
    return status;
  }
  RemoveIfThere(files, lock).IgnoreError();  // made in between by a reader that still found the old catalog
  return files.SyncDirectory(directory);
}

absl::Status LmdbCatalog::Rewrite(const format::CatalogValue& value) {
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue newest, Read());
  if (newest.generation + 1 != value.generation)
    return FailedPrecondition(
        absl::StrCat(path_, ": generation ", value.generation, " does not follow ", newest.generation));
  ASHLAR_RETURN_IF_ERROR(MakeReplacement(env_, directory_, value));
  absl::Status status = PutReplacement(files_, directory_);
  if (status.ok()) {
    share_.reset();  // gives back the descriptors that the new one needs
    absl::StatusOr<std::unique_ptr<LmdbEnvironment::Share>> share =
        LmdbEnvironment::Acquire(files_.NativePath(path_), /*writable=*/true);
    if (share.ok()) share_ = *std::move(share);
    status = share.status();
  }
  if (status.ok()) return status;
  // From the removal of the lock file on, other processes may not see what this one does.
  fate_unknown_ = true;
  return absl::IsResourceExhausted(status) ? Internal(FromAbsl(status.message())) : status;
}

absl::StatusOr<bool> LmdbCatalog::WasReplaced() {
  if (share_ == nullptr) return false;  // the file of this name is read each time
  ASHLAR_ASSIGN_OR_RETURN(const bool is_there, (*share_)->IsAt(files_.NativePath(path_)));
  return !is_there;
}

// ---- Opening.

absl::Status CreateFiles(env::Env env, const std::string& directory) {
  env::FileSystem& files = *env.files;
  const std::string made = env::JoinPath(directory, kNewName);
  const std::string lock = env::JoinPath(directory, kLockName);
  if (const absl::Status status = files.Remove(made); !status.ok() && !absl::IsNotFound(status)) return status;
  ASHLAR_ASSIGN_OR_RETURN(const bool has_lock, files.Exists(lock));
  if (!has_lock) {
    // Written, not left to LMDB, which maps a sparse file: a full disk would then be a signal.
    ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files.CreateFile(lock));
    ASHLAR_RETURN_IF_ERROR(file->WriteAt(0, ByteBuffer(kLockFileBytes)));
  }
  ASHLAR_RETURN_IF_ERROR(LmdbEnvironment::CreateFile(files.NativePath(made)));
  {
    ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files.OpenForWrite(made));
    if (SiteIsOn(Site::kCatalogFileSync)) ASHLAR_RETURN_IF_ERROR(file->Sync());
  }
  ASHLAR_RETURN_IF_ERROR(files.Rename(made, env::JoinPath(directory, kFileName)));
  return SiteIsOn(Site::kCatalogDirectorySync) ? files.SyncDirectory(directory) : absl::OkStatus();
}

// Whether this process may write LMDB's reader table.
bool MayLock(env::FileSystem& files, const std::string& directory) {
  const std::string lock = files.NativePath(env::JoinPath(directory, kLockName));
  if (::access(lock.c_str(), R_OK | W_OK) == 0) return true;
  return errno == ENOENT && ::access(files.NativePath(directory).c_str(), W_OK | X_OK) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Catalog>> OpenLmdbCatalog(env::Env env, const std::string& directory, Access access) {
  const std::string path = env::JoinPath(directory, kFileName);
  ASHLAR_ASSIGN_OR_RETURN(const bool exists, env.files->Exists(path));
  if (!exists) {
    if (access != Access::kCreate) return NotFound(absl::StrCat(directory, ": there is no catalog"));
    ASHLAR_RETURN_IF_ERROR(CreateFiles(env, directory));
  }
  if (SiteIsOn(Site::kCatalogWalk)) ASHLAR_RETURN_IF_ERROR(WalkFile(*env.files, path).status());
  const bool writable = access != Access::kRead;
  if (exists && writable && SiteIsOn(Site::kCatalogMetaRewrite)) ASHLAR_RETURN_IF_ERROR(RewriteMetas(*env.files, path));
  std::unique_ptr<LmdbEnvironment::Share> share;
  if (writable || MayLock(*env.files, directory)) {
    ASHLAR_ASSIGN_OR_RETURN(share, LmdbEnvironment::Acquire(env.files->NativePath(path), writable));
  }
  return std::unique_ptr<Catalog>(std::make_unique<LmdbCatalog>(env, directory, path, std::move(share), writable));
}

absl::Status ReplaceLmdbCatalog(env::Env env, const std::string& directory, const format::CatalogValue& value) {
  ASHLAR_RETURN_IF_ERROR(MakeReplacement(env, directory, value));
  return PutReplacement(*env.files, directory);
}

bool IsLmdbCatalogFile(std::string_view name) {
  return name == kFileName || name == kLockName || name == kNewName || name == kNewLockName;
}

}  // namespace ashlar::catalog
