// ashlar: the command line. docs/cli.md describes every command, its output and its exit code.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "ashlar/version.h"
#include "src/base/status.h"
#include "src/env/process.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"

namespace {

// 0: done. The other two are part of the interface.
constexpr int kExitFailed = 1;  // the store or the data says no
constexpr int kExitUsage = 2;

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
  try {
    program.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.app.exit(error);  // --help, --version
    std::fprintf(stderr, "ashlar: %s\nashlar --help and ashlar COMMAND --help say more.\n", error.what());
    return kExitUsage;
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
