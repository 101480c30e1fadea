// export, reindex, checkpoint, backup, salvage: all documents of a store, out or into another directory.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
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

struct CopyArguments {
  std::string directory, out;
  CheckpointOptions options;
  bool copy = false, no_verify = false, json = false;
};

absl::Status RunCheckpoint(const CopyArguments& arguments) {
  CheckpointOptions options = arguments.options;
  options.hard_links = !arguments.copy;
  options.verify = !arguments.no_verify;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(arguments.directory));
  ASHLAR_ASSIGN_OR_RETURN(const CheckpointReport report, store->Checkpoint(arguments.out, options));
  if (arguments.json) {
    Print(JsonLine({{"sequence", report.sequence},
                    {"documents", report.documents},
                    {"segments_linked", report.segments_linked},
                    {"segments_copied", report.segments_copied},
                    {"segments_kept", report.segments_kept},
                    {"bytes_written", report.bytes_written}}));
    return absl::OkStatus();
  }
  Print(absl::StrCat(WithCommas(report.documents), " documents up to sequence ", report.sequence, "; segments: ",
                     report.segments_linked, " linked, ", report.segments_copied, " copied, ", report.segments_kept,
                     " kept; ", WithCommas(report.bytes_written), " bytes written",
                     options.verify ? ", verified\n" : "\n"));
  return absl::OkStatus();
}

struct SalvageArguments {
  std::string directory, out;
  bool json = false;
};

std::string SalvageText(const SalvageReport& report) {
  std::string text;
  for (const Finding& finding : report.damage)
    absl::StrAppend(&text, finding.kind == Finding::Kind::kNote ? "note: " : "", finding.message, "\n");
  absl::StrAppend(&text, WithCommas(report.documents_saved), " documents saved, ", WithCommas(report.documents_lost),
                  " known to be lost\n");
  if (report.batches_lost_min > 0)
    absl::StrAppend(&text, "at least ", WithCommas(report.batches_lost_min), " batches of the journal are lost\n");
  if (report.deletes_may_be_undone) text += "documents that were deleted or replaced may be back\n";
  if (report.catalog_lost) text += "the catalog is lost: the segments were found by their files\n";
  absl::StrAppend(&text, "last sequence ", report.last_sequence, "\n");
  return text;
}

absl::Status RunSalvage(const SalvageArguments& arguments) {
  StatusLine line;
  SalvageOptions options;
  options.progress = [&line](uint64_t saved, uint64_t seen) {
    line.Show(absl::StrCat(WithCommas(saved), " documents saved of ", WithCommas(seen), " seen"));
  };
  const absl::StatusOr<SalvageReport> report = Salvage(arguments.directory, arguments.out, options);
  line.Clear();
  if (!report.ok()) return report.status();
  if (!arguments.json) {
    Print(SalvageText(*report));
    return absl::OkStatus();
  }
  Print(JsonLine({{"documents_saved", report->documents_saved},
                  {"documents_lost", report->documents_lost},
                  {"batches_lost_min", report->batches_lost_min},
                  {"deletes_may_be_undone", report->deletes_may_be_undone},
                  {"catalog_lost", report->catalog_lost},
                  {"last_sequence", report->last_sequence},
                  {"damage", FindingsToJson(report->damage)}}));
  return absl::OkStatus();
}

void AddCopyCommand(Program* program, const std::string& name, const std::string& what, bool incremental) {
  auto arguments = std::make_shared<CopyArguments>();
  arguments->options.incremental = incremental;
  CLI::App* command = program->app.add_subcommand(name, what);
  command->add_option("DIR", arguments->directory, "Directory of the store; another process may write to it")->required();
  command->add_option("OUT", arguments->out, "Directory of the copy")->required();
  command->add_flag("--copy", arguments->copy, "Copy the bytes of segments instead of making hard links");
  command->add_flag("--no-verify", arguments->no_verify, "Do not check the copy");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([=] { program->run = [arguments] { return RunCheckpoint(*arguments); }; });
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

  AddCopyCommand(program, "checkpoint", "Make a consistent copy of a store in a new directory, while it is written to",
                 /*incremental=*/false);
  AddCopyCommand(program, "backup", "Make a checkpoint, or bring an earlier one up to date with what it does not have",
                 /*incremental=*/true);

  auto salvage = std::make_shared<SalvageArguments>();
  command = program->app.add_subcommand("salvage", "Take everything readable out of a damaged store into a new one");
  command->add_option("DIR", salvage->directory, "Directory of the store; it is not changed")->required();
  command->add_option("OUT", salvage->out, "Directory of the new store")->required();
  command->add_flag("--json", salvage->json, "Print one JSON object");
  command->callback([=] { program->run = [salvage] { return RunSalvage(*salvage); }; });
}

}  // namespace ashlar::tools
