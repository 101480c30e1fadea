// ashlar: the command line. docs/cli.md describes every command, its output and its exit code.
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "ashlar/version.h"
#include "src/base/status.h"
#include "src/env/process.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"

namespace {

// 0: done. The other two are part of the interface.
constexpr int kExitFailed = 1;  // the store or the data says no
constexpr int kExitUsage = 2;

// The option parser misses a command before it sees that a word is none.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  if (!app.get_subcommands().empty() || rest.empty()) return error.what();
  return (rest.front().starts_with('-') ? "unknown option '" : "unknown command '") + rest.front() + "'";
}

// What --help and --version print.
std::string HelpText(const CLI::App& app, const CLI::ParseError& request) {
  std::ostringstream text;
  app.exit(request, text, text);
  return text.str();
}

int Run(int argc, char** argv) {
  using namespace ashlar;  // NOLINT: the whole file is about one program
  tools::Program program;
  program.app.set_version_flag("--version", "ashlar " ASHLAR_VERSION);
  program.app.require_subcommand(1);
  program.app.get_formatter()->column_width(36);
  tools::AddStoreCommands(&program);
  tools::AddIngestCommand(&program);
  tools::AddSearchCommand(&program);
  tools::AddEvalCommand(&program);
  tools::AddInspectCommands(&program);
  tools::AddTransferCommands(&program);
  tools::AddCrashlabCommand(&program);
  tools::AddFileSystemOption(&program.app);
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      std::fprintf(stderr, "ashlar: %s\nashlar --help and ashlar COMMAND --help say more.\n",
                   UsageError(program.app, error).c_str());
      return kExitUsage;
    }
    program.run = [text = HelpText(program.app, error)] {
      tools::Print(text);
      return absl::OkStatus();
    };
  }

  absl::Status status = program.run();
  const absl::Status output = tools::FinishOutput();
  if (status.ok()) status = output;
  if (status.ok()) return 0;
  if (!absl::IsCancelled(status)) std::fprintf(stderr, "ashlar: %s\n", std::string(FromAbsl(status.message())).c_str());
  return kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  ashlar::env::ReserveStandardDescriptors();
  // A closed pipe is an error of the write, met between two batches, and not the end of the process in the middle of
  // one.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ashlar: %s\n", error.what());
    return kExitFailed;
  }
}
