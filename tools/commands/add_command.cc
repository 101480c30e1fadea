// add: JSON Lines into a store.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/document_source.h"
#include "tools/json_documents.h"
#include "tools/schema_json.h"

namespace ashlar::tools {
namespace {

// A batch is also written when its lines are larger than this, so that large documents don't meet the limit on batches.
constexpr uint64_t kBatchLineBytes = uint64_t{16} << 20;
constexpr uint64_t kProgressNs = 200'000'000;

struct AddOptions {
  std::string directory;
  std::vector<std::string> files;
  bool create = false;
  std::string analyzer = "plain";
  std::string key;
  uint64_t batch_documents = 1000;
  bool acks = false;
  bool add_fields = false;
  std::string durability = "sync";
  std::string on_error = "stop";
  std::string scheduler;
};

// One line on the terminal that says how far things are; silent where standard error is not one.
class Progress {
 public:
  explicit Progress(const DocumentSource& source) : source_(source), active_(isatty(STDERR_FILENO) == 1) {
    if (active_) start_ns_ = last_ns_ = NowNs();
  }
  void Show(uint64_t documents) {
    if (!active_) return;
    const uint64_t now = NowNs();
    if (now - last_ns_ < kProgressNs) return;
    last_ns_ = now;
    const double seconds = Seconds(now);
    const double read = static_cast<double>(source_.bytes_read());
    std::string line = absl::StrFormat("\r%s documents, %.1f MB/s", WithCommas(documents), read / 1e6 / seconds);
    if (source_.bytes_total() > 0 && read > 0) {
      const double left = seconds * (static_cast<double>(source_.bytes_total()) - read) / read;
      absl::StrAppend(&line, ", ", absl::StrFormat("%.0f s left", left));
    }
    std::fprintf(stderr, "%-70s", line.c_str());
    shown_ = true;
  }
  void End(uint64_t documents) {
    if (!active_) return;
    const double seconds = Seconds(NowNs());
    const double megabytes = static_cast<double>(source_.bytes_read()) / 1e6;
    std::fprintf(
        stderr, "%s%-70s\n", shown_ ? "\r" : "",
        absl::StrFormat("%s documents in %.1f s, %.1f MB/s", WithCommas(documents), seconds, megabytes / seconds)
            .c_str());
  }
  // Before anything else is written to the terminal.
  void Clear() {
    if (shown_) std::fprintf(stderr, "\r%70s\r", "");
    shown_ = false;
  }

 private:
  double Seconds(uint64_t now) const { return std::max(1e-9, static_cast<double>(now - start_ns_) / 1e9); }
  const DocumentSource& source_;
  bool active_;
  bool shown_ = false;
  uint64_t start_ns_ = 0, last_ns_ = 0;
};

// Reads lines, gathers them into batches, writes those.
class Ingest {
 public:
  Ingest(const AddOptions& options, DocumentSource* source, Store* store)
      : options_(options), source_(*source), store_(*store), parser_(store->schema()), progress_(*source) {}

  absl::Status Run() {
    const absl::Status status = ReadAll();
    if (status.ok()) {
      progress_.End(acknowledged_);
    } else {
      progress_.Clear();
    }
    if (skipped_ > 0) std::fprintf(stderr, "ashlar: %s lines skipped\n", WithCommas(skipped_).c_str());
    return status;
  }

 private:
  bool skips() const { return options_.on_error == "skip"; }

  absl::Status ReadAll() {
    SourceLine line;
    while (true) {
      const absl::StatusOr<bool> more = source_.Next(&line);
      if (!more.ok()) return Fate(more.status());
      if (!*more) return WriteBatchNow();
      Document document;
      absl::Status status = line.status;
      if (status.ok()) status = Parse(line, &document);
      if (!status.ok()) {
        ASHLAR_RETURN_IF_ERROR(BadLine(status));
        continue;
      }
      batch_bytes_ += line.text.size();
      batch_.Put(std::move(document));
      places_.push_back({line.file, line.number});
      if (batch_.size() >= options_.batch_documents || batch_bytes_ >= kBatchLineBytes) {
        ASHLAR_RETURN_IF_ERROR(WriteBatchNow());
      }
    }
  }

  absl::Status Parse(const SourceLine& line, Document* document) {
    absl::Status status = parser_.Parse(line.text, document);
    if (!status.ok() && options_.add_fields && !parser_.unknown_field().empty()) {
      status = ParseWithNewFields(line.text, document);
      parser_.SetSchema(store_.schema());
    }
    return status.ok() ? status : line.Error(status);
  }

  // The store's schema changes only if the whole line is good, and then once.
  absl::Status ParseWithNewFields(std::string_view line, Document* document) {
    ASHLAR_ASSIGN_OR_RETURN(const AnalyzerOptions analyzer, AnalyzerByName(options_.analyzer));
    Schema schema = store_.schema();
    ASHLAR_ASSIGN_OR_RETURN(const std::vector<Field> fields, SchemaInference::InferNewFields(line, schema, analyzer));
    schema.fields.insert(schema.fields.end(), fields.begin(), fields.end());
    parser_.SetSchema(schema);
    ASHLAR_RETURN_IF_ERROR(parser_.Parse(line, document));
    return Annotate(store_.AddFields(fields), "1");
  }

  absl::Status BadLine(const absl::Status& status) {
    if (!skips() || !IsAboutDocuments(status)) return Fate(status);
    progress_.Clear();
    std::fprintf(stderr, "ashlar: %s (skipped)\n", std::string(FromAbsl(status.message())).c_str());
    ++skipped_;
    return absl::OkStatus();
  }

  // Says what became of the documents around an error.
  absl::Status Fate(const absl::Status& status) const {
    std::string fate =
        absl::StrCat(status.message(), " (", WithCommas(acknowledged_), " documents before it are stored");
    if (!batch_.empty()) absl::StrAppend(&fate, "; ", batch_.size(), " of its batch are not");
    fate += ")";
    absl::Status result(status.code(), fate);
    status.ForEachPayload(
        [&result](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
    return result;
  }

  absl::Status WriteBatchNow() {
    if (batch_.empty()) return absl::OkStatus();
    const absl::StatusOr<WriteResult> result = store_.Write(batch_);
    if (result.ok()) {
      Acknowledge(batch_.size(), result->sequence);
    } else if (skips() && IsAboutDocuments(result.status())) {
      ASHLAR_RETURN_IF_ERROR(WriteOneByOne());
    } else {
      return Fate(Annotate(result.status(), Places()));
    }
    batch_.Clear();
    places_.clear();
    batch_bytes_ = 0;
    return Pause();
  }

  // An error that another document might not meet.
  bool IsAboutDocuments(const absl::Status& status) const {
    if (status.code() == absl::StatusCode::kInvalidArgument) return true;
    return status.code() == absl::StatusCode::kResourceExhausted && store_.GetStats().state == StoreState::kHealthy;
  }

  absl::Status WriteOneByOne() {
    for (size_t i = 0; i < batch_.size(); ++i) {
      WriteBatch single;
      single.Put(batch_.operations()[i].document);
      const absl::StatusOr<WriteResult> result = store_.Write(single);
      if (result.ok()) {
        Acknowledge(1, result->sequence);
      } else if (IsAboutDocuments(result.status())) {
        ASHLAR_RETURN_IF_ERROR(
            BadLine(Annotate(result.status(), absl::StrCat(places_[i].file, ":", places_[i].number, ":1"))));
      } else {
        return Fate(result.status());
      }
    }
    return absl::OkStatus();
  }

  std::string Places() const {
    const Place& first = places_.front();
    const Place& last = places_.back();
    if (first.file == last.file) return absl::StrCat(first.file, ": lines ", first.number, " to ", last.number);
    return absl::StrCat(first.file, ":", first.number, " to ", last.file, ":", last.number);
  }

  void Acknowledge(uint64_t documents, Sequence sequence) {
    acknowledged_ += documents;
    if (options_.acks) Print(absl::StrCat("acked ", acknowledged_, " ", sequence, "\n"));
  }

  // Between batches.
  absl::Status Pause() {
    progress_.Show(acknowledged_);
    if (options_.acks) ASHLAR_RETURN_IF_ERROR(FinishOutput());
    return absl::OkStatus();
  }

  struct Place {
    std::string file;
    uint64_t number;
  };

  const AddOptions& options_;
  DocumentSource& source_;
  Store& store_;
  DocumentParser parser_;
  Progress progress_;
  WriteBatch batch_;
  std::vector<Place> places_;  // of the batch's documents
  uint64_t batch_bytes_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t skipped_ = 0;
};

absl::StatusOr<std::unique_ptr<Store>> OpenOrCreate(const AddOptions& add, const Options& options,
                                                    DocumentSource* source) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(add.directory, options);
  if (store.ok() || !add.create || store.status().code() != absl::StatusCode::kNotFound) return store;
  ASHLAR_ASSIGN_OR_RETURN(const AnalyzerOptions analyzer, AnalyzerByName(add.analyzer));
  ASHLAR_ASSIGN_OR_RETURN(const Schema schema, source->InferSchema(add.key, analyzer, add.on_error == "skip"));
  return Store::Create(add.directory, schema, options);
}

absl::Status RunAdd(const AddOptions& add, const Options& options) {
  ASHLAR_ASSIGN_OR_RETURN(const auto source, DocumentSource::Open(add.files));
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenOrCreate(add, options, source.get()));
  if (const std::string key = store->schema().key; !add.key.empty() && add.key != key) {
    return InvalidArgument(absl::StrCat(add.directory, ": --key ", add.key, ": the store ",
                                        key.empty() ? "has no key field" : absl::StrCat("has the key field ", key)));
  }
  absl::Status status = Ingest(add, source.get(), store.get()).Run();
  // Earlier batches stay, so they are brought to rest also after an error; the first error is the one to tell.
  if (options.durability == Durability::kOff) {
    if (const absl::Status flushed = store->Flush(); status.ok()) status = flushed;
  }
  // Merges that the documents made due are done before the command ends; what fails is due again.
  if (status.ok()) store->RunPending().IgnoreError();
  if (const absl::Status closed = store->Close(); status.ok()) status = closed;
  return status;
}

}  // namespace

void AddIngestCommand(Program* program) {
  auto add = std::make_shared<AddOptions>();
  CLI::App* command =
      program->app.add_subcommand("add", "Add documents from JSON Lines, replacing those of the same key");
  command->add_option("DIR", add->directory, "Directory of the store")->required();
  command->add_option("FILE", add->files, "JSON Lines files, plain or .gz; - or none is standard input");
  command->add_flag("--create", add->create,
                    "Make the store if it is not there, with a schema from the first 1,000 lines");
  CLI::Option* analyzer =
      command->add_option("--analyzer", add->analyzer, "For fields made by --create and --add-fields: plain or english")
          ->check(CLI::IsMember({"plain", "english"}))
          ->capture_default_str();
  command->add_option("--key", add->key, "With --create: the field that holds the key (id, if every document has it)");
  command->add_option("--batch", add->batch_documents, "Documents in a batch")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--acks", add->acks, "Print `acked DOCUMENTS SEQUENCE` after each acknowledged batch");
  command->add_flag("--add-fields", add->add_fields, "Add a field that is not in the schema instead of stopping at it");
  command->add_option("--durability", add->durability, "sync, interval[:MS], os or off")->capture_default_str();
  command->add_option("--on-error", add->on_error, "At a bad line: stop (its batch is not written), or skip it")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  command
      ->add_option(
          "--scheduler", add->scheduler,
          "Flush and merge in the background, as far as there can be a thread, or between batches (cooperative)")
      ->check(CLI::IsMember({"background", "cooperative"}))
      ->default_str("background");
  command->callback([=] {
    Options options = CommandOptions();
    if (add->scheduler == "cooperative") options.scheduler = Scheduler::kCooperative;
    if (!ParseDurability(add->durability, &options)) {
      throw CLI::ValidationError("--durability", "sync, interval, interval:MS (from 1), os or off");
    }
    if (analyzer->count() > 0 && !add->create && !add->add_fields) {
      throw CLI::ValidationError("--analyzer", "is for fields made by --create or --add-fields");
    }
    if (add->files.empty()) add->files.push_back("-");
    program->run = [add, options] { return RunAdd(*add, options); };
  });
}

}  // namespace ashlar::tools
