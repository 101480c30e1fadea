#include "tools/commands/common.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/env/env.h"

namespace ashlar::tools {
namespace {

int output_error = 0;  // the first errno of standard output
bool allow_network_file_system = false;

}  // namespace

void AddFileSystemOption(CLI::App* app) {
  const auto opens_a_store = [](const CLI::App* one) { return one->get_name() != "dump" && one->get_name() != "crashlab"; };
  for (CLI::App* command : app->get_subcommands(opens_a_store))
    command->add_flag("--allow-network-file-system", allow_network_file_system,
                      "Open a store on NFS, SMB and the like, which do not keep its promises");
}

Options CommandOptions() {
  Options options;
  options.allow_network_file_system = allow_network_file_system;
  return options;
}

absl::StatusOr<std::unique_ptr<Store>> OpenForReading(const std::string& directory, OpenMode mode) {
  Options options = CommandOptions();
  options.read_only = true;
  options.open_mode = mode;
  return Store::Open(directory, options);
}

absl::StatusOr<std::unique_ptr<Store>> OpenForWriting(const std::string& directory) {
  return Store::Open(directory, CommandOptions());
}

bool ParseDurability(std::string_view text, Options* options) {
  constexpr std::string_view kInterval = "interval";
  if (text == "sync") {
    options->durability = Durability::kSync;
  } else if (text == "os") {
    options->durability = Durability::kOs;
  } else if (text == "off") {
    options->durability = Durability::kOff;
  } else if (text == kInterval) {
    options->durability = Durability::kInterval;
  } else if (text.starts_with("interval:")) {
    options->durability = Durability::kInterval;
    text.remove_prefix(kInterval.size() + 1);
    const std::optional<uint64_t> milliseconds = ParseWholeNumber(text);
    if (!milliseconds.has_value() || *milliseconds == 0 || *milliseconds > UINT32_MAX) return false;
    options->interval_ms = static_cast<uint32_t>(*milliseconds);
  } else {
    return false;
  }
  return true;
}

std::string_view OpenModeName(OpenMode mode) { return mode == OpenMode::kMapped ? "mapped" : "array"; }

std::optional<uint64_t> ParseWholeNumber(std::string_view text) {
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::vector<std::string>> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    if (comma == 0 || text.empty()) return std::nullopt;
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string> ParseFieldNames(std::string_view text) {
  std::optional<std::vector<std::string>> names = SplitList(text);
  if (!names.has_value()) throw CLI::ValidationError("--fields", "names with a comma between them");
  return *std::move(names);
}

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const std::optional<uint64_t> number = ParseWholeNumber(text);
        if (number.has_value() && *number >= least && *number <= most) return std::string();
        return absl::StrCat("'", text, "' is not a whole number from ", least, " to ", most);
      },
      "N");
}

void Print(std::string_view text) {
  if (output_error != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_error = errno;
}

absl::Status FinishOutput() {
  errno = 0;
  if (output_error == 0 && std::fflush(stdout) != 0) output_error = errno;
  if (output_error == 0) return absl::OkStatus();
  if (output_error == EPIPE) return absl::CancelledError("standard output was closed");
  return ErrnoError(output_error, "write", "standard output");
}

std::string WithCommas(uint64_t number) {
  std::string text = absl::StrCat(number);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

int64_t WallMs() { return env::PosixEnv().clock->WallMs(); }

uint64_t NowNs() {
  static env::Clock* const clock = env::PosixEnv().clock;
  return clock->MonotonicNs();
}

StatusLine::StatusLine() : active_(isatty(STDERR_FILENO) == 1) {}

void StatusLine::Show(const std::string& text) {
  constexpr uint64_t kPauseNs = 200'000'000;
  if (!active_) return;
  const uint64_t now = NowNs();
  if (shown_ && now - last_ns_ < kPauseNs) return;
  last_ns_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r%-70s", text.c_str());
}

void StatusLine::Clear() {
  if (shown_) std::fprintf(stderr, "\r%70s\r", "");
  shown_ = false;
}

nlohmann::ordered_json FindingsToJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"kind", finding.kind == Finding::Kind::kNote ? "note" : "damage"},
                    {"file", finding.file},
                    {"section", finding.section},
                    {"offset", finding.offset},
                    {"message", finding.message}});
  }
  return json;
}

std::string JsonLine(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ashlar::tools
