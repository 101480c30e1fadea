// Opening, refreshing and closing a store: catalog -> segments -> deaths -> journal -> view.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/env/process.h"
#include "src/segment/segment_builder.h"
#include "src/text/analyzer.h"

namespace ashlar::engine {
namespace {

// A longer journal is flushed at close rather than replayed at the next open: replay analyses about 30 MB of text a
// second.
constexpr uint64_t kSealedTailBytesMax = uint64_t{256} << 10;
// Readers beside a writer that commits all the time try again this often.
constexpr int kReadTries = 20;

// Whether a reader met files that the writer was changing: it starts again from the catalog.
bool MayHaveMoved(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status) || absl::IsUnavailable(status);
}

absl::Status ValidateOptions(const Options& options) {
  if (options.overlay_bytes_max < 4096) return InvalidArgument("overlay_bytes_max is below 4 KiB");
  if (options.journal_file_bytes_min < 4096 || options.journal_file_bytes_min > uint64_t{64} << 20)
    return InvalidArgument("journal_file_bytes_min must be 4 KiB to 64 MiB");
  if (options.batch_bytes_max == 0 || options.batch_bytes_max > uint64_t{1} << 30)
    return InvalidArgument("batch_bytes_max must be 1 to 1 GiB");
  if (options.merge_factor == 1) return InvalidArgument("merge_factor must be 0 or 2 and more");
  if (options.interval_ms == 0) return InvalidArgument("interval_ms must be 1 or more");
  return absl::OkStatus();
}

}  // namespace

Engine::Engine(env::Env env, std::shared_ptr<env::MemoryEnv> memory, std::string directory, const Options& options)
    : env_(env),
      memory_(std::move(memory)),
      directory_(std::move(directory)),
      options_(options),
      fork_generation_(env::ForkGeneration()),
      failure_state_(env.clock->WallMs()) {}

Engine::~Engine() {
  Close().IgnoreError();
  // In the child of a fork the thread is not, but waits for ever as far as this memory can tell.
  if (env::ForkGeneration() != fork_generation_) (void)scheduler_.release();
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(env::Env env, std::shared_ptr<env::MemoryEnv> memory,
                                                     const std::string& directory, const Options& options,
                                                     const Schema* schema) {
  ASHLAR_RETURN_IF_ERROR(ValidateOptions(options));
  if (schema != nullptr) ASHLAR_RETURN_IF_ERROR(schema->Validate());
  std::unique_ptr<Engine> engine(new Engine(env, std::move(memory), directory, options));
  absl::Status status;
  {
    MutexLock catalog_lock(&engine->catalog_mutex_);
    MutexLock lock(&engine->writer_mutex_);
    status = engine->OpenFiles(schema);
  }
  if (status.ok() && !options.read_only && options.durability == Durability::kOff) status = engine->StartUnjournaled();
  if (status.ok() && !options.read_only) status = engine->StartScheduler(options);
  if (status.ok()) return engine;
  MutexLock lock(&engine->writer_mutex_);
  engine->closed_ = true;  // nothing to seal
  return status;
}

// A directory that is not there yet is on its parent's file system. One that can't be looked at gives its error later.
absl::Status Engine::CheckFileSystem() const {
  if (options_.allow_network_file_system) return absl::OkStatus();
  absl::StatusOr<env::FileSystemKind> kind = env_.files->Kind(directory_);
  if (absl::IsNotFound(kind.status())) kind = env_.files->Kind(ParentOf(directory_));
  if (!kind.ok() || !kind->network) return absl::OkStatus();
  return WithPlace(
      FailedPrecondition(absl::StrCat(
          directory_, ": on a file system of type ", kind->name,
          ", whose locks, mappings and syncs can't be relied on; allow_network_file_system opens it all the same")),
      directory_, "", 0);
}

absl::Status Engine::OpenFiles(const Schema* schema) {
  ASHLAR_RETURN_IF_ERROR(CheckFileSystem());
  if (options_.read_only) return LoadForReading();
  absl::StatusOr<bool> exists = env_.files->Exists(directory_);
  if (!exists.ok()) return exists.status();
  if (!*exists) {
    if (!options_.create_if_missing) return NotFound(absl::StrCat(directory_, ": no such directory"));
    ASHLAR_RETURN_IF_ERROR(env_.files->CreateDirectory(directory_));
  }
  if (!options_.create_if_missing) {
    // Before the lock, which would leave a lock file in a directory that is not a store.
    const absl::StatusOr<std::unique_ptr<catalog::Catalog>> found =
        catalog::OpenCatalog(env_, directory_, catalog::Access::kRead);
    if (absl::IsNotFound(found.status()))
      return NotFound(absl::StrCat(directory_, ": not an Ashlar store (it has no catalog)"));
    if (!found.ok()) return found.status();
  }
  ASHLAR_ASSIGN_OR_RETURN(lock_, env_.files->Lock(Path(kLockFileName)));
  absl::StatusOr<std::unique_ptr<catalog::Catalog>> catalog =
      catalog::OpenCatalog(env_, directory_, catalog::Access::kWrite);
  if (absl::IsNotFound(catalog.status()) && options_.create_if_missing) {
    if (schema == nullptr) return InvalidArgument(absl::StrCat(directory_, ": a new store needs a schema"));
    return CreateStore(*schema);
  }
  if (!catalog.ok()) return catalog.status();
  catalog_ = *std::move(catalog);
  absl::StatusOr<format::CatalogValue> value = catalog_->Read();
  if (absl::IsNotFound(value.status()) && options_.create_if_missing) {
    // A crash between the making of the catalog and its first commit: nothing was ever acknowledged.
    if (schema == nullptr) return InvalidArgument(absl::StrCat(directory_, ": a new store needs a schema"));
    return CreateStore(*schema);
  }
  if (absl::IsNotFound(value.status())) ASHLAR_RETURN_IF_ERROR(CheckNothingIsLost());
  if (!value.ok()) return value.status();
  if (options_.error_if_exists) return AlreadyExists(absl::StrCat(directory_, ": the store exists"));
  committed_ = *std::move(value);
  ASHLAR_RETURN_IF_ERROR(LoadStore());
  ASHLAR_RETURN_IF_ERROR(RemoveOrphans());
  return StartWriting();
}

// The catalog is committed before any of these is made, so with them there it is lost, and a new one would make the
// next opening take them for orphans.
absl::Status Engine::CheckNothingIsLost() const {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, env_.files->List(directory_));
  for (const env::FileSystem::DirectoryEntry& entry : entries)
    if (segment::NumberOf(entry.name) != 0 || DeathsNumberOf(entry.name) != 0 ||
        journal::NumberOf(entry.name).has_value())
      return DataLoss(directory_, "catalog", 0,
                      absl::StrCat("the catalog is missing, but ", entry.name,
                                   " is there; `ashlar salvage` takes out what is readable"));
  return absl::OkStatus();
}

absl::Status Engine::CreateStore(const Schema& schema) {
  ASHLAR_RETURN_IF_ERROR(CheckNothingIsLost());
  // The directory's own name may not be durable, whoever made it: an attempt to make the store that failed here, too.
  if (SiteIsOn(Site::kOpenParentSync)) {
    const absl::Status synced = env_.files->SyncDirectory(ParentOf(directory_));
    // Who may not even look at the parent can't have made the directory.
    if (!synced.ok() && !absl::IsPermissionDenied(synced)) return synced;
  }
  if (catalog_ == nullptr) {
    ASHLAR_ASSIGN_OR_RETURN(catalog_, catalog::OpenCatalog(env_, directory_, catalog::Access::kCreate));
  }
  format::CatalogValue value;
  value.generation = 1;
  env_.entropy->Fill(value.store_id);
  value.schema = schema;
  value.schema_number = 1;
  value.analyzer_identity = text::AnalyzerIdentity();
  value.journal_number = 1;
  value.next_file_number = 1;
  ASHLAR_RETURN_IF_ERROR(catalog_->Commit(value));
  committed_ = value;
  ASHLAR_RETURN_IF_ERROR(LoadStore());
  return StartWriting();
}

absl::Status Engine::StartWriting() {
  ASHLAR_ASSIGN_OR_RETURN(status_page_,
                          journal::StatusPage::Open(env_, directory_, committed_.store_id, /*writable=*/true));
  Show();
  NoteJournal();
  // A void record, or what is left of one that was torn, may be in the page cache only, above a batch on the disk that
  // is whole and was never acknowledged: what is shown now must hold after power loss. A failure shows in the state;
  // the next write tries again.
  if (options_.durability != Durability::kOff && replay_end_.is_unsure && SiteIsOn(Site::kOpenSecuresVoid))
    TakeJournalOver().IgnoreError();
  return absl::OkStatus();
}

absl::Status Engine::StartScheduler(const Options& options) {
  const bool tries = options.scheduler == Scheduler::kAuto && env_.has_threads;
  if (!tries && options.scheduler != Scheduler::kBackground) return absl::OkStatus();
  background_ = true;
  const absl::Status started = scheduler_->Start([this] { return WorkInBackground(); });
  if (started.ok()) {
    scheduler_->Wake();  // merges may have been left due
    return started;
  }
  background_ = false;
  return tries ? absl::OkStatus() : started;
}

// Without a journal, what was replayed must be safe before more comes, and sequences must be reserved.
absl::Status Engine::StartUnjournaled() {
  MutexLock lock(&flush_mutex_);
  ASHLAR_RETURN_IF_ERROR(FlushAll());
  return CommitAsItIs();
}

// After a purge the writer's catalog is another file, and the one that this reader has open says nothing new any more.
absl::StatusOr<bool> Engine::ForgetReplacedCatalog() {
  if (catalog_ == nullptr) return false;
  ASHLAR_ASSIGN_OR_RETURN(const bool replaced, catalog_->WasReplaced());
  if (replaced) catalog_.reset();
  return replaced;
}

absl::Status Engine::LoadForReading() {
  absl::Status status;
  for (int attempt = 0; attempt < kReadTries; ++attempt) {
    ASHLAR_RETURN_IF_ERROR(ForgetReplacedCatalog().status());
    if (catalog_ == nullptr) {
      absl::StatusOr<std::unique_ptr<catalog::Catalog>> catalog =
          catalog::OpenCatalog(env_, directory_, catalog::Access::kRead);
      if (absl::IsNotFound(catalog.status()))
        return NotFound(absl::StrCat(directory_, ": not an Ashlar store (it has no catalog)"));
      if (!catalog.ok()) return catalog.status();
      catalog_ = *std::move(catalog);
    }
    ASHLAR_ASSIGN_OR_RETURN(format::CatalogValue value, catalog_->Read());
    committed_ = value;
    status = LoadStore();
    // Files may vanish while they are opened, because the writer has published a newer generation: then start again.
    ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue now, catalog_->Read());
    ASHLAR_ASSIGN_OR_RETURN(const bool replaced, ForgetReplacedCatalog());
    if (!replaced && now.generation == value.generation && !MayHaveMoved(status)) return status;
    Count("reader_retries");
  }
  return status.ok() ? Unavailable(absl::StrCat(directory_, ": the writer publishes faster than this reader can open"))
                     : status;
}

absl::Status Engine::LoadStore() {
  loaded_ = false;
  SetSchema();
  ASHLAR_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<LiveSegment>> segments, OpenSegments(committed_));
  ASHLAR_RETURN_IF_ERROR(LoadDeaths(committed_, segments));
  watermark_ = committed_.watermark;
  next_file_number_ = std::max(next_file_number_, committed_.next_file_number);
  std::shared_ptr<View> view = NewView(std::move(segments), {}, std::make_shared<LiveOverlay>(committed_.schema));
  view_ = view;
  cell_ = Cell();
  cell_.sequence = committed_.floor;
  ASHLAR_ASSIGN_OR_RETURN(cell_.length_sums, SumLiveLengths(*view, &cell_.live_documents));
  ASHLAR_RETURN_IF_ERROR(ReplayJournal(/*resume=*/false));
  loaded_ = true;
  Show();
  return absl::OkStatus();
}

void Engine::SetSchema() {
  const Schema& schema = committed_.schema;
  searchable_.clear();
  const int key = schema.KeyIndex();
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const FieldType type = schema.fields[i].type;
    if ((type == FieldType::kText || type == FieldType::kKeyword) && static_cast<int>(i) != key)
      searchable_.push_back(static_cast<format::IndexId>(i));
  }
  if (!schema.default_group.empty()) searchable_.push_back(format::kGroupIndex);
  schema_ = std::make_shared<const Schema>(schema);
  analyzers_.SetSchema(schema_);
  MutexLock lock(&state_mutex_);
  analyzer_identity_ = committed_.analyzer_identity;
}

std::shared_ptr<View> Engine::NewView(std::vector<std::shared_ptr<LiveSegment>> segments,
                                      std::vector<FrozenOverlay> frozen, std::shared_ptr<LiveOverlay> overlay) const {
  auto view = std::make_shared<View>();
  view->generation = committed_.generation;
  view->store_id = committed_.store_id;
  view->analyzer_identity = committed_.analyzer_identity;
  view->next_file_number = committed_.next_file_number;
  view->schema_number = committed_.schema_number;
  view->schema = schema_;
  uint32_t base = 0;
  for (const std::shared_ptr<LiveSegment>& live : segments) {
    view->bases.push_back(base);
    base += live->document_count();
  }
  for (const FrozenOverlay& one : frozen) {
    view->bases.push_back(base);
    base += one.documents;
  }
  view->bases.push_back(base);
  view->segments = std::move(segments);
  view->frozen = std::move(frozen);
  view->overlay = std::move(overlay);
  view->memory = memory_;
  return view;
}

absl::StatusOr<bool> Engine::Refresh() {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock catalog_lock(&catalog_mutex_);
  MutexLock lock(&writer_mutex_);
  if (closed_) return FailedPrecondition("the store is closed");
  if (!options_.read_only) return FailedPrecondition("the store is open for writing, so it is always fresh");
  ASHLAR_ASSIGN_OR_RETURN(const bool replaced, ForgetReplacedCatalog());
  if (replaced || catalog_ == nullptr) {
    ASHLAR_RETURN_IF_ERROR(LoadForReading());
    return true;
  }
  ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue value, catalog_->Read());
  const Sequence before = cell_.sequence;
  if (loaded_ && value.generation == committed_.generation) {
    loaded_ = false;  // a replay that breaks off leaves half its records applied: then everything is read again
    const absl::Status status = ReplayJournal(/*resume=*/true);
    if (status.ok()) {
      loaded_ = true;
      Show();
      return cell_.sequence != before;
    }
    ASHLAR_ASSIGN_OR_RETURN(const bool replaced_now, ForgetReplacedCatalog());
    if (!replaced_now && !MayHaveMoved(status)) return status;
  }
  ASHLAR_RETURN_IF_ERROR(LoadForReading());
  return true;
}

void Engine::Abandon() {
  (void)catalog_.release();
  (void)journal_.release();
  (void)status_page_.release();
  (void)lock_.release();
}

absl::Status Engine::FlushForClose() {
  bool flush = false;
  {
    MutexLock lock(&writer_mutex_);
    closing_ = true;
    flush = options_.durability == Durability::kOff || replay_bytes_ > kSealedTailBytesMax;
  }
  if (flush) ASHLAR_RETURN_IF_ERROR(FlushAll());
  // Gives back the reserved sequences.
  return options_.durability == Durability::kOff ? CommitAsItIs() : absl::OkStatus();
}

absl::Status Engine::SealJournal() {
  if (journal_ == nullptr || journal_->broken()) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(journal_->Seal(next_sequence_));
  // The page then proves at the next opening that the journal went to the seal. Not that the seal itself is there:
  // going on behind it writes it again, and power loss may take that.
  PublishStatus(SiteIsOn(Site::kStatusBeforeSeal) ? journal_->seal_position() : journal_->synced());
  return absl::OkStatus();
}

absl::Status Engine::Close() {
  if (env::ForkGeneration() != fork_generation_) {
    Abandon();
    return CheckFork();
  }
  scheduler_->Stop();
  MutexLock merge_lock(&merge_mutex_);
  MutexLock flush_lock(&flush_mutex_);
  absl::Status status;
  bool writes = false;
  {
    MutexLock lock(&writer_mutex_);
    if (closed_) return absl::OkStatus();
    // What another writer may have taken over is not sealed.
    if (!options_.read_only && lock_ != nullptr) status = lock_->CheckHeld();
    writes = !options_.read_only && status.ok() && failure_state_.state() != StoreState::kFailedSync;
  }
  if (writes) status = FlushForClose();
  MutexLock catalog_lock(&catalog_mutex_);
  MutexLock lock(&writer_mutex_);
  if (writes) {
    if (options_.durability != Durability::kOff && status.ok()) status = SecureReplayed();
    status.Update(SealJournal());
  }
  closed_ = true;
  journal_.reset();
  status_page_.reset();
  catalog_.reset();
  lock_.reset();
  failure_state_.Close(env_.clock->WallMs());
  return status;
}

}  // namespace ashlar::engine
