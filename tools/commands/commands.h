// The commands of `ashlar`, one file a group. Each Add function declares its commands on the parser; the one that the
// user names leaves its work in Program::run, which main calls when the whole line has been read.
#ifndef ASHLAR_TOOLS_COMMANDS_COMMANDS_H_
#define ASHLAR_TOOLS_COMMANDS_COMMANDS_H_

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"

namespace ashlar::tools {

struct Program {
  CLI::App app{"Ashlar: an embedded search store. docs/cli.md tells all of this at length.", "ashlar"};
  std::function<absl::Status()> run;
};

void AddStoreCommands(Program* program);     // create, get, delete, expire, flush, merge
void AddIngestCommand(Program* program);     // add
void AddSearchCommand(Program* program);     // search
void AddEvalCommand(Program* program);       // eval
void AddInspectCommands(Program* program);   // stat, check, dump
void AddTransferCommands(Program* program);  // export, reindex, checkpoint, backup, salvage
void AddCrashlabCommand(Program* program);   // crashlab

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_COMMANDS_COMMANDS_H_
