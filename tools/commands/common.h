// What several commands share: options that look the same everywhere, opening stores, output, time.
#ifndef ASHLAR_TOOLS_COMMANDS_COMMON_H_
#define ASHLAR_TOOLS_COMMANDS_COMMON_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/options.h"
#include "ashlar/query.h"
#include "ashlar/store.h"

namespace ashlar::tools {

absl::StatusOr<std::unique_ptr<Store>> OpenForReading(const std::string& directory, OpenMode mode = OpenMode::kMapped);
absl::StatusOr<std::unique_ptr<Store>> OpenForWriting(const std::string& directory);

// "sync", "interval", "interval:250", "os", "off" into options->durability and interval_ms. False: something else.
bool ParseDurability(std::string_view text, Options* options);

std::string_view OpenModeName(OpenMode mode);
std::string_view StateName(StoreState state);

// For the option parser: a whole number from `least` to `most`. Its own conversion wraps around.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);

// Writes to standard output; an error (a full disk, a closed pipe) stays and shows in Finish.
void Print(std::string_view text);
// Flushes standard output. Cancelled: the reader of a pipe has gone, of which nothing needs to be said.
absl::Status FinishOutput();

// "1234567" -> "1,234,567".
std::string WithCommas(uint64_t number);

uint64_t NowNs();

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_COMMANDS_COMMON_H_
