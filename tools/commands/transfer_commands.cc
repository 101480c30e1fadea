// export, reindex: all documents of a store, out or into a new one.
#include <memory>
#include <string>

#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/json_documents.h"

namespace ashlar::tools {
namespace {

// Documents between two looks at whether the output still goes anywhere.
constexpr uint64_t kOutputDocuments = 1000;

absl::Status RunExport(const std::string& directory) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(directory));
  absl::Status output;
  uint64_t documents = 0;
  ASHLAR_RETURN_IF_ERROR(store->TakeSnapshot().Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& document) {
    Print(DocumentToJson(document.document));
    Print("\n");
    // A pipe whose reader has gone ends the work.
    if (++documents % kOutputDocuments == 0) output = FinishOutput();
    return output.ok();
  }));
  return output;
}

absl::Status RunReindex(const std::string& directory, const std::string& out) {
  ASHLAR_ASSIGN_OR_RETURN(const auto source, OpenForReading(directory));
  return Annotate(Reindex(*source, out, CommandOptions()), directory);
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
