// The public Store on top of Engine.
#include "ashlar/store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ashlar/reindex.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"

namespace ashlar {

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& directory, const Options& options,
                                                   const Schema* schema) {
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<engine::Engine> engine,
                          engine::Engine::Open(env::PosixEnv(), nullptr, directory, options, schema));
  return std::make_unique<Store>(std::move(engine));
}

absl::StatusOr<std::unique_ptr<Store>> Store::Create(const std::string& directory, const Schema& schema,
                                                     const Options& options) {
  Options creating = options;
  creating.create_if_missing = true;
  creating.error_if_exists = true;
  return Open(directory, creating, &schema);
}

absl::StatusOr<std::unique_ptr<Store>> Store::OpenInMemory(const Schema& schema, const Options& options) {
  std::shared_ptr<env::MemoryEnv> memory = env::NewMemoryEnv();
  Options creating = options;
  creating.create_if_missing = true;
  const env::Env env = memory->env();
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<engine::Engine> engine,
                          engine::Engine::Open(env, std::move(memory), "/store", creating, &schema));
  return std::make_unique<Store>(std::move(engine));
}

Store::Store(std::unique_ptr<engine::Engine> engine) : engine_(std::move(engine)) {}
Store::~Store() = default;

absl::StatusOr<WriteResult> Store::Write(const WriteBatch& batch, const WriteOptions& options) {
  return engine_->Write(batch, options);
}

namespace {

absl::StatusOr<Sequence> WriteOne(engine::Engine& engine, const WriteBatch& batch) {
  ASHLAR_ASSIGN_OR_RETURN(const WriteResult result, engine.Write(batch, {}));
  return result.sequence;
}

}  // namespace

absl::StatusOr<Sequence> Store::Insert(Document document) {
  WriteBatch batch;
  batch.Insert(std::move(document));
  return WriteOne(*engine_, batch);
}

absl::StatusOr<Sequence> Store::Put(Document document) {
  WriteBatch batch;
  batch.Put(std::move(document));
  return WriteOne(*engine_, batch);
}

absl::StatusOr<Sequence> Store::PutIf(Document document, DocumentId expected) {
  WriteBatch batch;
  batch.PutIf(std::move(document), expected);
  return WriteOne(*engine_, batch);
}

absl::StatusOr<bool> Store::Delete(std::string key) {
  WriteBatch batch;
  batch.Delete(std::move(key));
  ASHLAR_ASSIGN_OR_RETURN(const WriteResult result, engine_->Write(batch, {}));
  return bool{result.existed[0]};
}

absl::StatusOr<DeleteResult> Store::DeleteMatching(const PreparedQuery& query, const DeleteOptions& options) {
  return engine_->DeleteMatching(query, options);
}
absl::StatusOr<DeleteResult> Store::Expire(std::string_view field, Date now, const DeleteOptions& options) {
  return engine_->Expire(field, now, options);
}

absl::Status Store::Sync() { return engine_->Sync(); }
absl::Status Store::Flush() { return engine_->Flush(); }
absl::Status Store::Merge(uint32_t segments_max) { return engine_->Merge(segments_max); }
absl::Status Store::Purge(uint32_t segments_max) { return engine_->Purge(segments_max); }
absl::Status Store::RunPending() { return engine_->RunPending(); }
void Store::PauseMerges() { engine_->PauseMerges(); }
void Store::ResumeMerges() { engine_->ResumeMerges(); }
absl::Status Store::AddFields(const std::vector<Field>& fields) { return engine_->AddFields(fields); }
Schema Store::schema() const { return engine_->schema(); }
Snapshot Store::TakeSnapshot() const { return Snapshot(engine_->TakeSnapshot()); }
absl::StatusOr<PreparedQuery> Store::Prepare(const Query& query) const { return engine_->Prepare(query); }
absl::StatusOr<PreparedQuery> Store::Prepare(std::string_view query_text) const {
  ASHLAR_ASSIGN_OR_RETURN(const Query query, ParseQuery(query_text));
  return engine_->Prepare(query);
}
absl::StatusOr<bool> Store::Refresh() { return engine_->Refresh(); }
Stats Store::GetStats() const { return engine_->GetStats(); }
absl::StatusOr<CheckpointReport> Store::Checkpoint(const std::string& directory,
                                                   const CheckpointOptions& options) const {
  return engine_->Checkpoint(directory, options);
}
absl::StatusOr<std::vector<Finding>> Store::Check() const { return engine_->Check(); }
absl::Status Store::Close() { return engine_->Close(); }

absl::Status Reindex(const Store& source, const std::string& directory, const Options& options,
                     const std::function<void(uint64_t documents)>& progress) {
  const Schema schema = source.schema();
  for (const Field& field : schema.fields)
    if (!field.stored && field.name != schema.key)
      return FailedPrecondition(
          absl::StrCat("field '", field.name, "' is not stored, so its text can't be indexed again from this store"));
  const env::Env env = env::PosixEnv();
  ASHLAR_ASSIGN_OR_RETURN(const bool exists, env.files->Exists(directory));
  if (exists) return AlreadyExists(absl::StrCat(directory, ": exists"));
  // Under another name until it is whole, so that nobody takes a part of it for the store.
  const std::string unfinished = directory + ".unfinished";
  Options creating = options;
  creating.create_if_missing = true;
  creating.error_if_exists = true;
  creating.durability = Durability::kOff;
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Engine> engine,
                          engine::Engine::Open(env, nullptr, unfinished, creating, &schema));
  const Snapshot snapshot = source.TakeSnapshot();
  absl::Status status;
  uint64_t documents = 0;
  ASHLAR_RETURN_IF_ERROR(snapshot.Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
    status = engine->PutWithId(stored.document, stored.id);
    if (status.ok() && progress) progress(++documents);
    return status.ok();
  }));
  ASHLAR_RETURN_IF_ERROR(status);
  WriteOptions last;
  last.watermark = snapshot.watermark();
  if (last.watermark.has_value()) ASHLAR_RETURN_IF_ERROR(engine->Write(WriteBatch(), last).status());
  ASHLAR_RETURN_IF_ERROR(engine->Flush());
  ASHLAR_RETURN_IF_ERROR(engine->Close());
  ASHLAR_RETURN_IF_ERROR(env.files->Rename(unfinished, directory));
  return env.files->SyncDirectory(engine::ParentOf(directory));
}

}  // namespace ashlar
