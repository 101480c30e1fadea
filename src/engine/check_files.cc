// The check of a store that does not open: each file for itself, found by the catalog or, without one, by its name.
#include "src/engine/check_files.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "format/deaths.h"
#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "src/engine/document_check.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/engine/finding.h"
#include "src/engine/salvage_journal.h"
#include "src/segment/segment.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

class FileChecker {
 public:
  FileChecker(env::Env env, std::string directory, const CheckProgress& progress)
      : env_(env), directory_(std::move(directory)), progress_(progress) {}

  absl::StatusOr<std::vector<Finding>> Run() {
    ASHLAR_ASSIGN_OR_RETURN(entries_, env_.files->List(directory_));
    Catalog();
    if (catalog_.has_value()) {
      NamedSegments();
    } else {
      FoundSegments();
    }
    Deaths();
    Journal();
    return std::move(findings_);
  }

 private:
  std::string Path(std::string_view name) const { return env::JoinPath(directory_, name); }

  void Add(const absl::Status& status) {
    if (status.ok()) return;
    Finding finding = FindingOf(status);
    const bool known = std::any_of(findings_.begin(), findings_.end(), [&finding](const Finding& other) {
      return other.file == finding.file && other.offset == finding.offset && other.message == finding.message;
    });
    if (!known) findings_.push_back(std::move(finding));
  }

  void Catalog() {
    const absl::StatusOr<std::unique_ptr<catalog::Catalog>> opened =
        catalog::OpenCatalog(env_, directory_, catalog::Access::kRead);
    if (!opened.ok()) {
      if (absl::IsNotFound(opened.status()))
        return Add(DataLoss(directory_, "catalog", 0, "the catalog is missing"));
      return Add(opened.status());
    }
    const absl::StatusOr<std::vector<absl::Status>> checked = (*opened)->Check();
    if (checked.ok()) {
      for (const absl::Status& status : *checked) Add(status);
    } else {
      Add(checked.status());
    }
    absl::StatusOr<format::CatalogValue> value = (*opened)->Read();
    if (value.ok()) {
      catalog_ = *std::move(value);
      store_id_ = catalog_->store_id;
    } else if (findings_.empty()) {
      Add(value.status());
    }
  }

  void CheckSegment(const format::SegmentEntry& entry, const format::StoreId& store_id, uint64_t generation) {
    const absl::StatusOr<std::shared_ptr<const segment::Segment>> segment =
        segment::Segment::Open(env_, directory_, entry, store_id, generation, OpenMode::kMapped);
    if (!segment.ok()) return Add(segment.status());
    const std::vector<absl::Status> findings = (*segment)->Check();
    for (const absl::Status& status : findings) Add(status);
    if (findings.empty()) Add(CheckDocuments(**segment));
  }

  void NamedSegments() {
    uint64_t done = 0, all = 0;
    for (const format::SegmentEntry& entry : catalog_->segments) all += entry.file_bytes;
    for (const format::SegmentEntry& entry : catalog_->segments) {
      CheckSegment(entry, catalog_->store_id, catalog_->generation);
      done += entry.file_bytes;
      if (progress_) progress_(done, all);
    }
  }

  void FoundSegments() {
    for (const env::FileSystem::DirectoryEntry& entry : entries_) {
      const uint64_t number = segment::NumberOf(entry.name);
      if (number == 0 || !entry.is_file) continue;
      const absl::StatusOr<segment::SalvagedSegment> opened = segment::OpenForSalvage(env_, directory_, number, {});
      if (!opened.ok()) {
        Add(opened.status());
        continue;
      }
      if (!opened->damage.empty() || !opened->store_id.has_value()) {
        for (const absl::Status& status : opened->damage) Add(status);
        continue;
      }
      if (!store_id_.has_value()) store_id_ = opened->store_id;
      const segment::Segment& segment = *opened->segment;
      CheckSegment({number, opened->file_id, segment.file_bytes(), segment.document_count(), 0, segment.first_id(),
                    segment.last_id()},
                   *opened->store_id, UINT64_MAX);
    }
  }

  void Deaths() {
    for (const env::FileSystem::DirectoryEntry& entry : entries_) {
      const uint64_t number = DeathsNumberOf(entry.name);
      if (number == 0 || (catalog_.has_value() && number != catalog_->deaths_number)) continue;
      const std::string path = Path(entry.name);
      const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, path);
      Add(bytes.ok() ? format::DecodeDeaths(*bytes, path).status() : bytes.status());
    }
    if (!catalog_.has_value() || catalog_->deaths_number == 0) return;
    const std::string name = DeathsFileName(catalog_->deaths_number);
    if (std::none_of(entries_.begin(), entries_.end(), [&name](const auto& entry) { return entry.name == name; }))
      Add(DataLoss(Path(name), "deaths", 0, "the file is missing"));
  }

  void Journal() {
    if (!store_id_.has_value()) {
      const std::optional<JournalSchema> journal = SchemaOfJournal(env_, directory_);
      if (!journal.has_value()) return;
      store_id_ = journal->store_id;
    }
    Add(ReadDamagedJournal(env_, directory_, *store_id_, catalog_, UINT64_MAX,
                           [](const journal::Record&) { return absl::OkStatus(); })
            .damage);
  }

  const env::Env env_;
  const std::string directory_;
  const CheckProgress& progress_;
  std::vector<env::FileSystem::DirectoryEntry> entries_;
  std::optional<format::CatalogValue> catalog_;
  std::optional<format::StoreId> store_id_;
  std::vector<Finding> findings_;
};

// An error that says something about the files.
bool IsAboutFiles(const absl::Status& status) { return absl::IsDataLoss(status) || absl::IsNotFound(status); }

}  // namespace

absl::StatusOr<std::vector<Finding>> CheckStoreOn(env::Env env, const std::string& directory,
                                                  const CheckProgress& progress) {
  Options options;
  options.read_only = true;
  const absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Open(env, nullptr, directory, options, nullptr);
  if (engine.ok()) return (*engine)->Check(/*segments=*/true, progress);
  const absl::Status& why = engine.status();
  if (!IsAboutFiles(why)) return why;
  ASHLAR_ASSIGN_OR_RETURN(const bool exists, env.files->Exists(directory));
  if (!exists) return why;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, env.files->List(directory));
  const bool is_store = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return catalog::IsCatalogFile(entry.name) || segment::NumberOf(entry.name) != 0 ||
           journal::NumberOf(entry.name).has_value();
  });
  if (!is_store) return why;
  ASHLAR_ASSIGN_OR_RETURN(std::vector<Finding> findings, FileChecker(env, directory, progress).Run());
  // Why it does not open, unless the same place was found damaged.
  Finding reason = FindingOf(why);
  const bool found = std::any_of(findings.begin(), findings.end(), [&reason](const Finding& finding) {
    return finding.message == reason.message || (!reason.file.empty() && finding.file == reason.file);
  });
  if (!found && !(absl::IsNotFound(why) && !findings.empty())) findings.push_back(std::move(reason));
  return findings;
}

}  // namespace ashlar::engine

namespace ashlar {

absl::StatusOr<std::vector<Finding>> CheckStore(const std::string& directory, const CheckProgress& progress) {
  return engine::CheckStoreOn(env::PosixEnv(), directory, progress);
}

}  // namespace ashlar
