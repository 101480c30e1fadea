// export, reindex: all documents of a store, out or into a new one.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/json_documents.h"

namespace ashlar::tools {
namespace {

constexpr uint64_t kBatchDocuments = 1000;

absl::Status RunExport(const std::string& directory) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(directory));
  absl::Status output;
  uint64_t documents = 0;
  ASHLAR_RETURN_IF_ERROR(store->TakeSnapshot().Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& document) {
    Print(DocumentToJson(document.document));
    Print("\n");
    // A pipe whose reader has gone ends the work.
    if (++documents % kBatchDocuments == 0) output = FinishOutput();
    return output.ok();
  }));
  return output;
}

// A new store gets its words from the stored values, so a field without them can't come along.
absl::Status CheckAllStored(const Schema& schema, const std::string& directory) {
  for (const Field& field : schema.fields) {
    if (!field.stored && field.name != schema.key) {
      return FailedPrecondition(absl::StrCat(directory, ": field '", field.name,
                                             "' is not stored; add the documents to a new store from where they came"));
    }
  }
  return absl::OkStatus();
}

absl::Status RunReindex(const std::string& directory, const std::string& out) {
  ASHLAR_ASSIGN_OR_RETURN(const auto source, OpenForReading(directory));
  const Schema schema = source->schema();
  ASHLAR_RETURN_IF_ERROR(CheckAllStored(schema, directory));
  Options options;
  options.durability = Durability::kOff;
  ASHLAR_ASSIGN_OR_RETURN(const auto target, Store::Create(out, schema, options));
  WriteBatch batch;
  absl::Status written;
  const auto write = [&] {
    written = target->Write(batch).status();
    batch.Clear();
  };
  ASHLAR_RETURN_IF_ERROR(source->TakeSnapshot().Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& document) {
    batch.Put(document.document);
    if (batch.size() == kBatchDocuments) write();
    return written.ok();
  }));
  if (written.ok() && !batch.empty()) write();
  ASHLAR_RETURN_IF_ERROR(written);
  ASHLAR_RETURN_IF_ERROR(target->Flush());
  return target->Close();
}

}  // namespace

void AddTransferCommands(Program* program) {
  auto directory = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  CLI::App* command =
      program->app.add_subcommand("export", "Print all documents as JSON Lines, in the order of their last put");
  command->add_option("DIR", *directory, "Directory of the store")->required();
  command->callback([=] { program->run = [directory] { return RunExport(*directory); }; });

  command = program->app.add_subcommand("reindex", "Write all documents into a new store, analysed by this build");
  command->add_option("DIR", *directory, "Directory of the store")->required();
  command->add_option("OUT", *out, "Directory of the new store")->required();
  command->callback([=] { program->run = [directory, out] { return RunReindex(*directory, *out); }; });
}

}  // namespace ashlar::tools
