// create, get, delete, expire, flush, merge.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/document_source.h"
#include "tools/json_documents.h"
#include "tools/schema_json.h"

namespace ashlar::tools {
namespace {

struct CreateOptions {
  std::string directory, schema_file, infer_file, analyzer, key;
};

absl::Status RunCreate(const CreateOptions& options) {
  Schema schema;
  if (!options.schema_file.empty()) {
    ASHLAR_ASSIGN_OR_RETURN(schema, ReadSchemaFile(options.schema_file));
  } else {
    ASHLAR_ASSIGN_OR_RETURN(const AnalyzerOptions analyzer,
                            AnalyzerByName(options.analyzer.empty() ? "plain" : options.analyzer));
    ASHLAR_ASSIGN_OR_RETURN(const auto source, DocumentSource::Open({options.infer_file}));
    ASHLAR_ASSIGN_OR_RETURN(schema, source->InferSchema(options.key, analyzer, /*skip_bad_lines=*/false));
  }
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options.directory, schema, CommandOptions()));
  return store->Close();
}

struct KeyOptions {
  std::string directory;
  std::vector<std::string> keys;
  std::vector<uint64_t> ids;
};

absl::Status RunGet(const KeyOptions& options) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(options.directory));
  const Snapshot snapshot = store->TakeSnapshot();
  absl::StatusOr<StoredDocument> document =
      options.ids.empty() ? snapshot.Get(options.keys.front()) : snapshot.GetById(options.ids.front());
  if (!document.ok()) return document.status();
  Print(DocumentToJson(document->document));
  Print("\n");
  return absl::OkStatus();
}

absl::Status RunDelete(const KeyOptions& options) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForWriting(options.directory));
  WriteBatch batch;
  std::vector<std::string> names = options.keys;
  for (const std::string& key : options.keys) batch.Delete(key);
  for (const uint64_t id : options.ids) {
    batch.DeleteId(id);
    names.push_back(absl::StrCat("document id ", id));
  }
  ASHLAR_ASSIGN_OR_RETURN(const WriteResult result, store->Write(batch));
  ASHLAR_RETURN_IF_ERROR(store->Close());
  std::string missing;
  for (size_t i = 0; i < names.size() && i < result.existed.size(); ++i) {
    if (!result.existed[i]) absl::StrAppend(&missing, missing.empty() ? "" : ", ", names[i]);
  }
  if (missing.empty()) return absl::OkStatus();
  return NotFound(
      absl::StrCat(options.directory, ": not found: ", missing, names.size() > 1 ? "; the others are deleted" : ""));
}

struct DeleteArguments {
  std::string directory, query, field;
  std::optional<Date> now;
  DeleteOptions options;
};

absl::Status FinishDelete(Store& store, const absl::StatusOr<DeleteResult>& result) {
  if (!result.ok()) return result.status();
  ASHLAR_RETURN_IF_ERROR(store.Close());
  Print(absl::StrCat("deleted ", result->documents, "\n"));
  return absl::OkStatus();
}

absl::Status RunDeleteMatching(const DeleteArguments& arguments) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForWriting(arguments.directory));
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery query, store->Prepare(arguments.query));
  return FinishDelete(*store, store->DeleteMatching(query, arguments.options));
}

absl::Status RunExpire(const DeleteArguments& arguments) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForWriting(arguments.directory));
  return FinishDelete(*store,
                      store->Expire(arguments.field, arguments.now.value_or(Date{WallMs()}), arguments.options));
}

absl::Status RunFlush(const std::string& directory) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForWriting(directory));
  ASHLAR_RETURN_IF_ERROR(store->Flush());
  return store->Close();
}

absl::Status RunMerge(const std::string& directory, uint32_t segments_max, bool purge) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForWriting(directory));
  ASHLAR_RETURN_IF_ERROR(purge ? store->Purge(segments_max) : store->Merge(segments_max));
  return store->Close();
}

void AddCreate(Program* program) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* command = program->app.add_subcommand("create", "Make a new store");
  command->add_option("DIR", options->directory, "Directory of the store")->required();
  CLI::Option* schema = command->add_option("--schema", options->schema_file, "Schema as a JSON file");
  CLI::Option* infer = command->add_option(
      "--infer", options->infer_file, "JSON Lines file whose first 1,000 lines make the schema; - is standard input");
  command->add_option("--analyzer", options->analyzer, "With --infer: plain, or english (stop words and Porter stems)")
      ->check(CLI::IsMember({"plain", "english"}))
      ->needs(infer);
  command
      ->add_option("--key", options->key, "With --infer: the field that holds the key (id, if every document has it)")
      ->needs(infer);
  schema->excludes(infer);
  command->callback([=] {
    if (options->schema_file.empty() == options->infer_file.empty()) {
      throw CLI::RequiredError("create: one of --schema and --infer");
    }
    program->run = [options] { return RunCreate(*options); };
  });
}

// "7,9" as the argument of --id.
std::vector<uint64_t> ParseIds(std::string_view text) {
  std::vector<uint64_t> ids;
  for (const std::string& part : SplitList(text).value_or(std::vector<std::string>{""})) {
    const std::optional<uint64_t> id = ParseWholeNumber(part);
    if (!id.has_value() || *id == 0) {
      throw CLI::ValidationError("--id",
                                 absl::StrCat("'", ToAbsl(text), "' is not one DocumentId or several, with commas"));
    }
    ids.push_back(*id);
  }
  return ids;
}

CLI::Option* AddBatchOption(CLI::App* command, DeleteArguments* arguments) {
  return command
      ->add_option("--batch", arguments->options.batch_documents_max,
                   "Delete in batches of at most N documents; without, all or nothing")
      ->check(WholeNumber(1, UINT64_MAX));
}

void AddKeyCommands(Program* program) {
  auto get = std::make_shared<KeyOptions>();
  CLI::App* command = program->app.add_subcommand("get", "Print one document as JSON");
  command->add_option("DIR", get->directory, "Directory of the store")->required();
  command->add_option("KEY", get->keys, "Key of the document")->expected(1);
  command->add_option("--id", get->ids, "DocumentId instead of a key")->check(WholeNumber(1, UINT64_MAX))->expected(1);
  command->callback([=] {
    if (get->keys.size() + get->ids.size() != 1) throw CLI::RequiredError("get: one of KEY and --id");
    program->run = [get] { return RunGet(*get); };
  });

  auto deletion = std::make_shared<KeyOptions>();
  auto matching = std::make_shared<DeleteArguments>();
  command = program->app.add_subcommand("delete", "Delete documents by key or by a query, all of them at once");
  command->add_option("DIR", matching->directory, "Directory of the store")->required();
  command->add_option("KEY", deletion->keys, "Keys of the documents");
  // A string, not a list: a list would take what follows for other ids.
  auto ids = std::make_shared<std::string>();
  CLI::Option* id_option =
      command->add_option("--id", *ids, "DocumentIds with commas between them, for a store without keys");
  CLI::Option* query = command->add_option("--query", matching->query, "Delete every document that this query matches");
  auto fields = std::make_shared<std::string>();
  CLI::Option* fields_option =
      command->add_option("--fields", *fields, "With --query: fields that words without a field search, with commas")
          ->needs(query);
  AddBatchOption(command, matching.get())->needs(query);
  command->callback([=] {
    const int ways = (deletion->keys.empty() ? 0 : 1) + (id_option->count() > 0 ? 1 : 0) + (query->count() > 0 ? 1 : 0);
    if (ways != 1) throw CLI::RequiredError("delete: one of KEY, --id and --query");
    if (fields_option->count() > 0) matching->options.fields = ParseFieldNames(*fields);
    if (query->count() > 0) {
      program->run = [matching] { return RunDeleteMatching(*matching); };
      return;
    }
    if (id_option->count() > 0) deletion->ids = ParseIds(*ids);
    deletion->directory = matching->directory;
    program->run = [deletion] { return RunDelete(*deletion); };
  });
}

void AddExpire(Program* program) {
  auto expire = std::make_shared<DeleteArguments>();
  auto now = std::make_shared<std::string>();
  CLI::App* command = program->app.add_subcommand("expire", "Delete every document whose date is over");
  command->add_option("DIR", expire->directory, "Directory of the store")->required();
  command
      ->add_option("--field", expire->field, "Date field that says until when; without a date in it a document stays")
      ->required();
  CLI::Option* now_option =
      command->add_option("--now", *now, "Date in place of now, such as 2024-02-29 or 2024-02-29T12:00:00Z");
  AddBatchOption(command, expire.get());
  command->callback([=] {
    if (now_option->count() > 0) expire->now = ParseDate(*now);
    if (now_option->count() > 0 && !expire->now.has_value())
      throw CLI::ValidationError("--now", absl::StrCat("'", *now, "' is no date"));
    program->run = [expire] { return RunExpire(*expire); };
  });
}

void AddUpkeep(Program* program) {
  auto directory = std::make_shared<std::string>();
  auto segments = std::make_shared<uint32_t>(1);
  CLI::App* flush = program->app.add_subcommand("flush", "Write what is in memory and journal into a segment");
  flush->add_option("DIR", *directory, "Directory of the store")->required();
  flush->callback([=] { program->run = [directory] { return RunFlush(*directory); }; });

  CLI::App* merge = program->app.add_subcommand("merge", "Merge segments, dropping deleted documents");
  merge->add_option("DIR", *directory, "Directory of the store")->required();
  merge->add_option("--to", *segments, "Merge until at most N segments are left")
      ->check(WholeNumber(1, UINT32_MAX))
      ->capture_default_str();
  auto purge = std::make_shared<bool>(false);
  merge->add_flag(
      "--purge", *purge,
      "Leave no byte of what was deleted before in any file of DIR: writes all segments again. Not in checkpoints "
      "and other hard links, files that other processes have open, and free blocks of the device");
  merge->callback([=] { program->run = [=] { return RunMerge(*directory, *segments, *purge); }; });
}

}  // namespace

void AddStoreCommands(Program* program) {
  AddCreate(program);
  AddKeyCommands(program);
  AddExpire(program);
  AddUpkeep(program);
}

}  // namespace ashlar::tools
