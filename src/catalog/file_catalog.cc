// The catalog over env::FileSystem, for stores in memory and on the simulated disk: one file a generation,
// "catalog-<generation, 16 hex digits>.cat". A file gets that name by a rename after its bytes are synced, so a file that
// has it is whole, and one that is not is damage; the newest name is the newest value. An empty file of generation 0 says
// that a catalog was made and nothing was committed yet.
#include <algorithm>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/file_number.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/catalog/implementations.h"

namespace ashlar::catalog {
namespace {

constexpr std::string_view kNewName = "catalog-new.cat";
constexpr std::string_view kPrefix = "catalog-";
constexpr std::string_view kSuffix = ".cat";
constexpr size_t kGenerationsKept = 2;
constexpr int kAttemptsMax = 100;  // commits that may pass by while one value is read

std::string NameOf(uint64_t generation) { return NumberedName(kPrefix, generation, kSuffix); }
std::optional<uint64_t> GenerationOf(std::string_view name) { return NumberInName(kPrefix, name, kSuffix); }

// Owns nothing but its directory's name. Threads: any. Several may be open on a directory, one of them for writing.
class FileCatalog : public Catalog {
 public:
  FileCatalog(env::Env env, std::string directory, Access access)
      : files_(*env.files), directory_(std::move(directory)), access_(access) {}

  absl::Status Init();
  absl::StatusOr<format::CatalogValue> Read() override;
  absl::Status Commit(const format::CatalogValue& value) override;
  absl::Status Rewrite(const format::CatalogValue& value) override;
  absl::StatusOr<bool> WasReplaced() override { return false; }  // looks for the newest file each time
  absl::StatusOr<std::vector<absl::Status>> Check() override;
  // Commit without an older value, or over one that is not the generation before.
  absl::Status Replace(const format::CatalogValue& value);

 private:
  std::string PathOf(std::string_view name) const { return env::JoinPath(directory_, name); }
  // Ascending.
  absl::StatusOr<std::vector<uint64_t>> Generations();
  absl::StatusOr<format::CatalogValue> ReadGeneration(uint64_t generation);
  absl::Status WriteFile(const std::string& path, ByteSpan bytes);
  absl::Status Publish(const std::string& from, uint64_t generation);
  // `generations`: what is there.
  absl::Status WriteAndPublish(const format::CatalogValue& value, const std::vector<uint64_t>& generations);
  void RemoveOld(const std::vector<uint64_t>& generations);

  env::FileSystem& files_;
  const std::string directory_;
  const Access access_;
  std::mutex mutex_;
  bool unknown_ = false;  // a commit failed half-way
};

absl::StatusOr<std::vector<uint64_t>> FileCatalog::Generations() {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, files_.List(directory_));
  std::vector<uint64_t> generations;
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    const std::optional<uint64_t> generation = GenerationOf(entry.name);
    if (entry.is_file && generation.has_value()) generations.push_back(*generation);
  }
  std::sort(generations.begin(), generations.end());
  return generations;
}

absl::Status FileCatalog::Init() {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> generations, Generations());
  if (!generations.empty()) {
    // After a commit of unknown outcome the newest name may be in the page cache only. Whoever opens for writing removes what
    // it does not name, so it is made durable first.
    return access_ == Access::kRead ? absl::OkStatus() : files_.SyncDirectory(directory_);
  }
  if (access_ != Access::kCreate) return NotFound(absl::StrCat(directory_, ": there is no catalog"));
  ASHLAR_RETURN_IF_ERROR(WriteFile(PathOf(kNewName), {}));
  return Publish(PathOf(kNewName), 0);
}

absl::Status FileCatalog::WriteFile(const std::string& path, ByteSpan bytes) {
  if (const absl::Status status = files_.Remove(path); !status.ok() && !absl::IsNotFound(status)) return status;
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files_.CreateFile(path));
  ASHLAR_RETURN_IF_ERROR(file->Append(bytes));
  if (SiteIsOn(Site::kFileCatalogSync)) ASHLAR_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status FileCatalog::Publish(const std::string& from, uint64_t generation) {
  absl::Status status = files_.Rename(from, PathOf(NameOf(generation)));
  if (!status.ok()) {
    // It may have been done all the same. Only if it was not for certain does the old value stand.
    const absl::StatusOr<bool> is_there = files_.Exists(PathOf(NameOf(generation)));
    if (is_there.ok() && !*is_there) return status;
    if (is_there.ok()) status = absl::OkStatus();
  }
  if (status.ok() && SiteIsOn(Site::kFileCatalogDirectorySync)) status = files_.SyncDirectory(directory_);
  if (status.ok()) return status;
  // The name may be durable or not, so not even "no space" may be tried again.
  unknown_ = true;
  return absl::IsResourceExhausted(status) ? Internal(FromAbsl(status.message())) : status;
}

void FileCatalog::RemoveOld(const std::vector<uint64_t>& generations) {
  // The caller's new generation is not in the list. A name that stays is removed by the next commit.
  for (size_t i = 0; i + (kGenerationsKept - 1) < generations.size(); ++i)
    files_.Remove(PathOf(NameOf(generations[i]))).IgnoreError();
}

absl::StatusOr<format::CatalogValue> FileCatalog::ReadGeneration(uint64_t generation) {
  const std::string path = PathOf(NameOf(generation));
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, env::ReadFile(files_, path));
  ASHLAR_ASSIGN_OR_RETURN(format::CatalogValue value, format::DecodeCatalogValue(bytes, path));
  if (value.generation != generation) return DataLoss(path, "catalog value", 64, "has another generation's name");
  return value;
}

absl::StatusOr<format::CatalogValue> FileCatalog::Read() {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> generations, Generations());
    if (generations.empty()) return DataLoss(directory_, "catalog", 0, "the catalog is gone");
    if (generations.back() == 0) return NotFound(absl::StrCat(directory_, ": nothing was committed yet"));
    absl::StatusOr<format::CatalogValue> value = ReadGeneration(generations.back());
    // Another handle committed twice since the names were listed.
    if (!absl::IsNotFound(value.status())) return value;
  }
  return Unavailable(absl::StrCat(directory_, ": commits pass by faster than the catalog can be read"));
}

absl::Status FileCatalog::Commit(const format::CatalogValue& value) {
  if (access_ == Access::kRead) return FailedPrecondition("the catalog is open for reading only");
  const std::lock_guard<std::mutex> guard(mutex_);
  if (unknown_) return FailedPrecondition("the last commit's fate is unknown; reopen the store");
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> generations, Generations());
  if (generations.empty()) return DataLoss(directory_, "catalog", 0, "the catalog is gone");
  if (value.generation != generations.back() + 1)
    return FailedPrecondition(absl::StrCat("generation ", value.generation, " does not follow ", generations.back()));
  return WriteAndPublish(value, generations);
}

absl::Status FileCatalog::Rewrite(const format::CatalogValue& value) {
  ASHLAR_RETURN_IF_ERROR(Commit(value));
  const std::lock_guard<std::mutex> guard(mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> generations, Generations());
  for (const uint64_t generation : generations)
    if (generation != value.generation) ASHLAR_RETURN_IF_ERROR(files_.Remove(PathOf(NameOf(generation))));
  return absl::OkStatus();
}

absl::Status FileCatalog::Replace(const format::CatalogValue& value) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> generations, Generations());
  if (!generations.empty() && value.generation <= generations.back())
    return FailedPrecondition(absl::StrCat("generation ", value.generation, " is not above ", generations.back()));
  return WriteAndPublish(value, generations);
}

absl::Status FileCatalog::WriteAndPublish(const format::CatalogValue& value, const std::vector<uint64_t>& generations) {
  const std::string path = PathOf(kNewName);
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, EncodeForCommit(value, path));
  if (const absl::Status status = WriteFile(path, bytes); !status.ok()) {
    // Nothing has its final name, so the old value stands. A failed sync is final all the same.
    unknown_ = !absl::IsResourceExhausted(status);
    files_.Remove(path).IgnoreError();
    return status;
  }
  ASHLAR_RETURN_IF_ERROR(Publish(path, value.generation));
  RemoveOld(generations);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Status>> FileCatalog::Check() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> generations, Generations());
  std::vector<absl::Status> findings;
  for (const uint64_t generation : generations) {
    if (generation == 0) continue;
    const absl::Status status = ReadGeneration(generation).status();
    if (!status.ok() && !absl::IsNotFound(status)) findings.push_back(status);
  }
  return findings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Catalog>> OpenFileCatalog(env::Env env, const std::string& directory, Access access) {
  auto catalog = std::make_unique<FileCatalog>(env, directory, access);
  ASHLAR_RETURN_IF_ERROR(catalog->Init());
  return std::unique_ptr<Catalog>(std::move(catalog));
}

absl::Status ReplaceFileCatalog(env::Env env, const std::string& directory, const format::CatalogValue& value) {
  return FileCatalog(env, directory, Access::kWrite).Replace(value);
}

bool IsFileCatalogFile(std::string_view name) { return name == kNewName || GenerationOf(name).has_value(); }

}  // namespace ashlar::catalog
