#include "bench/bench_store.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/query_shapes.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr uint64_t kBatchDocuments = 1000;
constexpr char kFirstQuery[] = "w1000x w20000x";

absl::Status BuildStore(const LaneOptions& options) {
  Options store_options;
  store_options.durability = Durability::kOs;
  store_options.merge_factor = 0;
  store_options.overlay_bytes_max = uint64_t{1} << 40;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options.directory, BenchSchema(), store_options));
  const uint64_t documents = options.corpus.documents;
  uint64_t flushed = 0;
  ASHLAR_RETURN_IF_ERROR(WriteCorpus(options.corpus, store.get(), [&](uint64_t written) {
                           if (written < documents * (flushed + 1) / options.segments) return absl::OkStatus();
                           ++flushed;
                           return store->Flush();
                         }).status());
  ASHLAR_RETURN_IF_ERROR(DeleteShare(documents, options.deleted, store.get()));
  return store->Close();
}

}  // namespace

Schema BenchSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  Field id, body;
  id.name = "id";
  id.type = FieldType::kKeyword;
  body.name = "body";
  schema.fields = {id, body};
  return schema;
}

absl::StatusOr<WriteTimes> WriteCorpus(const ZipfOptions& options, Store* store,
                                       const std::function<absl::Status(uint64_t documents)>& after_batch,
                                       const std::function<void(uint64_t n, Document*)>& complete) {
  ZipfCorpus corpus(options);
  WriteTimes times;
  WriteBatch batch;
  std::string id, body;
  uint64_t documents = 0;
  bool more = true;
  while (more) {
    more = corpus.Next(&id, &body);
    if (more) {
      Document document;
      document.Add("id", id).Add("body", body);
      if (complete) complete(documents + batch.size(), &document);
      batch.Put(std::move(document));
    }
    if (batch.size() < kBatchDocuments && (more || batch.empty())) continue;
    documents += batch.size();
    const uint64_t start = NowNs();
    ASHLAR_RETURN_IF_ERROR(store->Write(batch).status());
    times.write_ns += NowNs() - start;
    batch.Clear();
    if (after_batch) ASHLAR_RETURN_IF_ERROR(after_batch(documents));
  }
  times.words = corpus.words_made();
  return times;
}

// Every n-th document of the hundred.
absl::Status DeleteShare(uint64_t documents, uint32_t percent, Store* store) {
  WriteBatch batch;
  for (uint64_t i = 0; i < documents; ++i)
    if (i * percent / 100 != (i + 1) * percent / 100) batch.Delete(absl::StrCat("d", i));
  return batch.empty() ? absl::OkStatus() : store->Write(batch).status();
}

absl::StatusOr<Json> TimeOpening(const std::string& directory, OpenMode mode, std::unique_ptr<Store>* store) {
  Options options;
  options.read_only = true;
  options.open_mode = mode;
  const uint64_t start = NowNs();
  ASHLAR_ASSIGN_OR_RETURN(*store, Store::Open(directory, options));
  const uint64_t opened = NowNs();
  ASHLAR_ASSIGN_OR_RETURN(const double first_query_us, TimeOneQuery(**store, kFirstQuery));
  Json row = PhaseRow(mode == OpenMode::kMapped ? "open mapped" : "open array", opened - start, directory);
  row["open_us"] = static_cast<double>(opened - start) / 1000;
  row["first_query_us"] = first_query_us;
  return row;
}

void NoteForm(const LaneOptions& options, Report* report) {
  report->corpus()["segments"] = options.segments;
  report->corpus()["deleted_percent"] = options.deleted;
}

absl::Status WithStore(const LaneOptions& options, const std::function<absl::Status()>& measure) {
  if (options.keep && std::filesystem::exists(options.directory)) return measure();
  if (options.keep) {
    ASHLAR_RETURN_IF_ERROR(BuildStore(options));
    return measure();
  }
  return WithDirectory(options, [&] {
    ASHLAR_RETURN_IF_ERROR(BuildStore(options));
    return measure();
  });
}

absl::Status WithDirectory(const LaneOptions& options, const std::function<absl::Status()>& measure) {
  if (std::filesystem::exists(options.directory)) {
    return AlreadyExists(absl::StrCat(options.directory, ": exists; the lane makes it and removes it"));
  }
  const absl::Status status = measure();
  std::error_code ignored;
  std::filesystem::remove_all(options.directory, ignored);
  return status;
}

}  // namespace ashlar::bench
