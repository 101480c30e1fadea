// stat, check, dump: what a store and its files hold.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/dump.h"

namespace ashlar::tools {
namespace {

struct InspectArguments {
  std::string path;
  bool json = false;
  bool prometheus = false;  // stat
};

std::string StatJson(const Stats& stats) {
  nlohmann::ordered_json json;
  json["documents"] = stats.documents;
  json["deleted"] = stats.deleted;
  json["segments"] = nlohmann::ordered_json::array();
  for (const SegmentStats& segment : stats.segments) {
    nlohmann::ordered_json entry;
    entry["id"] = segment.id;
    entry["documents"] = segment.documents;
    entry["deleted"] = segment.deleted;
    entry["damage"] = segment.damage;
    entry["bytes"] = segment.bytes;
    json["segments"].push_back(std::move(entry));
  }
  json["journal"] = {
      {"files", stats.journal_files}, {"bytes", stats.journal_bytes}, {"replay_bytes", stats.replay_bytes}};
  json["overlay"] = {{"documents", stats.overlay_documents}, {"bytes", stats.overlay_bytes}};
  if (stats.watermark.has_value()) json["watermark"] = *stats.watermark;
  json["open_mode"] = std::string(OpenModeName(stats.open_mode));
  json["state"] = std::string(StoreStateName(stats.state));
  json["state_cause"] = stats.state_cause;
  json["state_since_ms"] = stats.state_since_ms;
  json["state_remedy"] = stats.state_remedy;
  json["last_failure"] = stats.last_failure;
  json["scheduler"] = stats.scheduler == Scheduler::kBackground ? "background" : "cooperative";
  json["write_amplification"] = stats.write_amplification;
  json["counters"] = stats.counters;
  if (stats.analyzer_identity != stats.analyzer_identity_build) {
    json["analyzer_mismatch"] = {{"store", stats.analyzer_identity}, {"build", stats.analyzer_identity_build}};
  }
  return JsonLine(json);
}

std::string StatText(const Stats& stats) {
  std::string text;
  absl::StrAppend(&text, "documents  ", WithCommas(stats.documents), "\n");
  absl::StrAppend(&text, "deleted    ", WithCommas(stats.deleted), "\n");
  absl::StrAppend(&text, "segments   ", stats.segments.size(), "\n");
  for (const SegmentStats& segment : stats.segments) {
    absl::StrAppend(&text, "  segment ", segment.id, ": ", WithCommas(segment.documents), " documents, ",
                    WithCommas(segment.deleted), " deleted\n");
    if (!segment.damage.empty()) absl::StrAppend(&text, "    damaged, and left out of merges: ", segment.damage, "\n");
    for (const auto& [section, bytes] : segment.bytes) {
      text += absl::StrFormat("    %-24s %15s bytes\n", section, WithCommas(bytes));
    }
  }
  absl::StrAppend(&text, "journal    ", stats.journal_files, " files, ", WithCommas(stats.journal_bytes), " bytes, ",
                  WithCommas(stats.replay_bytes), " to replay\n");
  absl::StrAppend(&text, "overlay    ", WithCommas(stats.overlay_documents), " documents, ",
                  WithCommas(stats.overlay_bytes), " bytes\n");
  if (stats.watermark.has_value())
    absl::StrAppend(&text, "watermark  ", JsonLine(*stats.watermark));  // one line, whatever is in it
  absl::StrAppend(&text, "open mode  ", ToAbsl(OpenModeName(stats.open_mode)), "\n");
  absl::StrAppend(&text, "state      ", ToAbsl(StoreStateName(stats.state)), stats.state_cause.empty() ? "" : ": ",
                  stats.state_cause, "\n");
  if (!stats.state_remedy.empty()) absl::StrAppend(&text, "remedy     ", stats.state_remedy, "\n");
  absl::StrAppend(&text, "analyzer   ", stats.analyzer_identity, "\n");
  if (stats.analyzer_identity != stats.analyzer_identity_build) {
    absl::StrAppend(&text, "           this build analyses as ", stats.analyzer_identity_build,
                    ": words may split in another way; `ashlar reindex` cures it\n");
  }
  if (!stats.counters.empty()) text += "counters\n";
  for (const auto& [name, value] : stats.counters) {
    text += absl::StrFormat("    %-24s %15s\n", name, WithCommas(value));
  }
  return text;
}

absl::Status RunStat(const InspectArguments& arguments) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(arguments.path));
  const Stats stats = store->GetStats();
  Print(arguments.prometheus ? PrometheusText(stats) : arguments.json ? StatJson(stats) : StatText(stats));
  return absl::OkStatus();
}

void PrintFindingsJson(bool ok, const std::vector<Finding>& findings) {
  nlohmann::ordered_json json;
  json["ok"] = ok;
  json["findings"] = FindingsToJson(findings);
  Print(JsonLine(json));
}

absl::Status RunCheck(const InspectArguments& arguments) {
  StatusLine line;
  const absl::StatusOr<std::vector<Finding>> checked =
      CheckStore(arguments.path, [&line](uint64_t done, uint64_t all) {
        line.Show(absl::StrFormat("checked %.1f of %.1f MB of segments", static_cast<double>(done) / 1e6,
                                  static_cast<double>(all) / 1e6));
      });
  line.Clear();
  if (!checked.ok()) {
    const ErrorPlace place = PlaceOf(checked.status()).value_or(ErrorPlace());
    if (arguments.json) {
      PrintFindingsJson(false, {{Finding::Kind::kDamage, place.file, place.section, place.offset,
                                 std::string(FromAbsl(checked.status().message()))}});
    }
    return checked.status();
  }
  const std::vector<Finding>& findings = *checked;
  uint64_t damages = 0;
  for (const Finding& finding : findings) damages += finding.kind == Finding::Kind::kDamage ? 1 : 0;
  if (arguments.json) {
    PrintFindingsJson(damages == 0, findings);
  } else {
    for (const Finding& finding : findings)
      Print((finding.kind == Finding::Kind::kNote ? "note: " : "") + finding.message + "\n");
    Print(damages == 0 ? "no damage found\n" : absl::StrCat(damages, " findings of damage\n"));
  }
  if (damages == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(arguments.path, ": ", damages, " findings of damage"));
}

}  // namespace

void AddInspectCommands(Program* program) {
  auto stat = std::make_shared<InspectArguments>();
  CLI::App* command = program->app.add_subcommand("stat", "Say what a store holds and how it is");
  command->add_option("DIR", stat->path, "Directory of the store")->required();
  CLI::Option* json = command->add_flag("--json", stat->json, "Print one JSON object");
  command->add_flag("--prometheus", stat->prometheus, "Print metrics in Prometheus' text format")->excludes(json);
  command->callback([=] { program->run = [stat] { return RunStat(*stat); }; });

  auto check = std::make_shared<InspectArguments>();
  command = program->app.add_subcommand("check", "Verify every byte and every cross-reference, also of a store that does not open");
  command->add_option("DIR", check->path, "Directory of the store")->required();
  command->add_flag("--json", check->json, "Print one JSON object");
  command->callback([=] { program->run = [check] { return RunCheck(*check); }; });

  auto path = std::make_shared<std::string>();
  command = program->app.add_subcommand("dump", "Print a file of a store as text");
  command->add_option("FILE", *path, "A journal, segment, deaths or catalog file")->required();
  command->callback([=] { program->run = [path] { return DumpFile(*path, Print); }; });
}

}  // namespace ashlar::tools
