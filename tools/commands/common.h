// What several commands share: options that look the same everywhere, opening stores, output, time.
#ifndef ASHLAR_TOOLS_COMMANDS_COMMON_H_
#define ASHLAR_TOOLS_COMMANDS_COMMON_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/check.h"
#include "ashlar/options.h"
#include "ashlar/query.h"
#include "ashlar/store.h"

namespace ashlar::tools {

// Gives every command that opens a store --allow-network-file-system.
void AddFileSystemOption(CLI::App* app);
// What the options of every command start from.
Options CommandOptions();

absl::StatusOr<std::unique_ptr<Store>> OpenForReading(const std::string& directory, OpenMode mode = OpenMode::kMapped);
absl::StatusOr<std::unique_ptr<Store>> OpenForWriting(const std::string& directory);

// "sync", "interval", "interval:250", "os", "off" into options->durability and interval_ms. False: something else, and
// an interval of 0.
bool ParseDurability(std::string_view text, Options* options);

std::string_view OpenModeName(OpenMode mode);

// Decimal digits and nothing else; no leading zero, which the option parser would take for octal.
std::optional<uint64_t> ParseWholeNumber(std::string_view text);
// For the option parser: a whole number from `least` to `most`. Its own conversion wraps around.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);

// "a,b" -> {"a", "b"}. Nothing if a part is empty.
std::optional<std::vector<std::string>> SplitList(std::string_view text);

// The argument of --fields; what is no list of names is bad usage.
std::vector<std::string> ParseFieldNames(std::string_view text);

// For the option parser: one of several names, each for a value of an enumeration.
template <typename Enum>
CLI::Validator Choice(std::vector<std::pair<std::string, Enum>> choices) {
  std::string names;
  for (const auto& choice : choices) names += (names.empty() ? "" : "|") + choice.first;
  return CLI::Validator(
      [choices, names](std::string& text) {
        for (const auto& choice : choices) {
          if (choice.first != text) continue;
          text = CLI::detail::value_string(choice.second);
          return std::string();
        }
        return "'" + text + "' is not one of " + names;
      },
      names);
}

// Writes to standard output; an error (a full disk, a closed pipe) stays and shows in Finish.
void Print(std::string_view text);
// Flushes standard output. Cancelled: the reader of a pipe has gone, of which nothing needs to be said.
absl::Status FinishOutput();

// "1234567" -> "1,234,567".
std::string WithCommas(uint64_t number);

uint64_t NowNs();
int64_t WallMs();

// One line on the terminal that says how far things are; silent where standard error is not one.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  // At most a few times a second; other calls do nothing.
  void Show(const std::string& text);
  void Clear();

 private:
  const bool active_;
  bool shown_ = false;
  uint64_t last_ns_ = 0;
};

// [{"kind","file","section","offset","message"}], for the commands that print findings as JSON.
nlohmann::ordered_json FindingsToJson(const std::vector<Finding>& findings);
// One line, without invalid UTF-8.
std::string JsonLine(const nlohmann::ordered_json& json);

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_COMMANDS_COMMON_H_
