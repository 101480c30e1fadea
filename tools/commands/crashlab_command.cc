// crashlab: the crash laboratory from the command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ashlar/testing/crash_lab.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/files.h"

namespace ashlar::tools {
namespace {

using testing::CrashLabOptions;
using testing::Driver;
using testing::LabFinding;
using testing::LabReport;

struct LabArguments {
  CrashLabOptions options;
  std::string workload, drivers;
  std::string sites;
  bool mutations = false;
  bool json = false;
  bool list = false;
};

std::string Counts(const LabReport& report) {
  return absl::StrCat(WithCommas(report.states), " states, ", WithCommas(report.faults), " faults, ",
                      WithCommas(report.recoveries), " recoveries, ", WithCommas(report.recovery_crashes),
                      " crashes in recoveries, ", static_cast<uint64_t>(report.seconds), " s");
}

void ProgressOnTerminal(const LabReport& report) {
  std::fprintf(stderr, "\r\033[K%s", Counts(report).c_str());
  std::fflush(stderr);
}

// One line a minute, so that the log of a run of hours shows how far it came should it be ended from outside.
std::function<void(const LabReport&)> ProgressInLog() {
  constexpr double kSecondsALine = 60;
  return [due = std::make_shared<std::atomic<double>>(kSecondsALine)](const LabReport& report) {
    double expected = *due;
    if (report.seconds < expected || !due->compare_exchange_strong(expected, report.seconds + kSecondsALine)) return;
    std::fprintf(stderr, "%s\n", Counts(report).c_str());
  };
}

std::string ReportText(const LabReport& report) {
  std::string text;
  const auto row = [&text](std::string_view name, uint64_t count) {
    absl::StrAppend(&text, ToAbsl(name), std::string(26 - name.size(), ' '), WithCommas(count), "\n");
  };
  row("distinct states", report.states);
  row("crashes tried", report.crashes);
  row("recoveries checked", report.recoveries);
  row("crashes in recoveries", report.recovery_crashes);
  row("faults injected", report.faults);
  row("bits and cuts", report.damages);
  row("workload runs", report.runs);
  row("seconds", static_cast<uint64_t>(report.seconds));
  row("findings", report.findings.size());
  for (const LabFinding& finding : report.findings)
    absl::StrAppend(&text, "\n", finding.driver, " ", finding.workload, ": ", finding.message, "\n  ", finding.replay,
                    "\n");
  return text;
}

std::string ReportJson(const LabReport& report, uint64_t seed) {
  nlohmann::ordered_json json;
  json["seed"] = seed;
  json["states"] = report.states;
  json["crashes"] = report.crashes;
  json["recoveries"] = report.recoveries;
  json["recovery_crashes"] = report.recovery_crashes;
  json["faults"] = report.faults;
  json["damages"] = report.damages;
  json["runs"] = report.runs;
  json["seconds"] = report.seconds;
  json["findings"] = nlohmann::ordered_json::array();
  for (const LabFinding& finding : report.findings)
    json["findings"].push_back({{"driver", finding.driver},
                                {"workload", finding.workload},
                                {"seed", finding.seed},
                                {"message", finding.message},
                                {"replay", finding.replay}});
  return json.dump() + "\n";
}

absl::Status ChooseDrivers(std::string_view names, std::vector<Driver>* drivers) {
  if (names.empty()) return absl::OkStatus();
  drivers->clear();
  for (const std::string& name : SplitList(names).value_or(std::vector<std::string>{""})) {
    bool known = false;
    for (const Driver driver : {Driver::kExhaustive, Driver::kRandom, Driver::kDamage}) {
      if (testing::DriverName(driver) != name) continue;
      drivers->push_back(driver);
      known = true;
    }
    if (!known) return InvalidArgument(absl::StrCat("'", name, "' is not exhaustive, random or damage"));
  }
  return absl::OkStatus();
}

// A built-in workload's name, or a file of workloads.
absl::Status ChooseWorkloads(const std::string& workload, std::string* text) {
  if (workload.empty()) return absl::OkStatus();
  const std::vector<std::string> names = testing::BuiltInWorkloadNames();
  bool known = true;
  for (const std::string& part : SplitList(workload).value_or(std::vector<std::string>{""}))
    known = known && std::find(names.begin(), names.end(), part) != names.end();
  if (known) {
    *text = workload;
    return absl::OkStatus();
  }
  ASHLAR_ASSIGN_OR_RETURN(*text, ReadTextFile(workload));
  return absl::OkStatus();
}

std::string MutationText(const testing::MutationResult& result) {
  std::string name = result.site;
  name.resize(std::max<size_t>(name.size(), 34), ' ');
  if (!result.found) return absl::StrCat(name, " NOT FOUND in ", WithCommas(result.states), " states\n");
  return absl::StrCat(name, " ", result.driver, " ", result.workload, " seed ", result.seed, ", ", WithCommas(result.states),
                      " states: ", result.message, "\n");
}

absl::Status RunMutationTable(const LabArguments& arguments) {
  const std::vector<std::string> sites =
      arguments.sites.empty() ? std::vector<std::string>() : SplitList(arguments.sites).value_or(std::vector<std::string>{""});
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  uint64_t not_found = 0;
  const auto done = [&](const testing::MutationResult& result) {
    not_found += result.found ? 0 : 1;
    if (!arguments.json) {
      Print(MutationText(result));
      FinishOutput().IgnoreError();
      return;
    }
    json.push_back({{"site", result.site},
                    {"found", result.found},
                    {"driver", result.driver},
                    {"workload", result.workload},
                    {"seed", result.seed},
                    {"states", result.states},
                    {"seconds", result.seconds},
                    {"message", result.message}});
  };
  ASHLAR_RETURN_IF_ERROR(testing::RunMutations(arguments.options, sites, done).status());
  if (arguments.json) Print(json.dump() + "\n");
  return not_found == 0 ? absl::OkStatus() : Internal(absl::StrCat(not_found, " sites were switched off unnoticed"));
}

absl::Status RunCrashlab(LabArguments* arguments) {
  CrashLabOptions& options = arguments->options;
  if (arguments->list) {
    for (const std::string& name : testing::BuiltInWorkloadNames()) Print(name + "\n");
    return absl::OkStatus();
  }
  ASHLAR_RETURN_IF_ERROR(ChooseDrivers(arguments->drivers, &options.drivers));
  ASHLAR_RETURN_IF_ERROR(ChooseWorkloads(arguments->workload, &options.workloads));
  if (arguments->mutations || !arguments->sites.empty()) return RunMutationTable(*arguments);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  options.progress = terminal ? ProgressOnTerminal : ProgressInLog();
  ASHLAR_ASSIGN_OR_RETURN(const LabReport report, testing::RunCrashLab(options));
  if (terminal) std::fprintf(stderr, "\r\033[K");
  Print(arguments->json ? ReportJson(report, options.seed) : ReportText(report));
  if (report.findings.empty()) return absl::OkStatus();
  return Internal(absl::StrCat(report.findings.size(), " findings"));
}

}  // namespace

void AddCrashlabCommand(Program* program) {
  auto arguments = std::make_shared<LabArguments>();
  CrashLabOptions& options = arguments->options;
  CLI::App* command = program->app.add_subcommand("crashlab", "Crash, fault and damage stores on a simulated disk");
  command->add_option("--workload", arguments->workload, "A file of workloads, or names of built-in ones, with commas");
  command->add_option("--drivers", arguments->drivers, "Of exhaustive, damage and random, with commas (all)");
  command->add_option("--states", options.states_max, "End after so many distinct states; random runs fill up")
      ->check(WholeNumber(1, UINT64_MAX));
  command->add_option("--runs", options.random_runs_max, "Random runs at most")->check(WholeNumber(1, UINT64_MAX));
  command->add_option("--seed", options.seed, "Decides everything")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--threads", options.threads, "Threads")->check(WholeNumber(1, 1024))->capture_default_str();
  command->add_option("--policies", options.policies_max, "Crashes tried at one step")
      ->check(WholeNumber(2, 100000))
      ->capture_default_str();
  command->add_option("--recovery-share", options.recovery_share, "One recovery of so many is crashed, too; 0: none")
      ->check(WholeNumber(0, UINT32_MAX))
      ->capture_default_str();
  command->add_option("--damage-share", options.damage_share, "Damage one place of so many")
      ->check(WholeNumber(1, UINT32_MAX))
      ->capture_default_str();
  command->add_flag("--mutations", arguments->mutations, "Switch off each site in turn, until something is found");
  command->add_option("--site", arguments->sites, "Only these sites, with commas");
  command->add_flag("--list", arguments->list, "Print the names of the built-in workloads");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([=] { program->run = [arguments] { return RunCrashlab(arguments.get()); }; });
}

}  // namespace ashlar::tools
