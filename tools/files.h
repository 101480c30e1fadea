// Small whole files for the command line: schemas, judgments, run files.
#ifndef ASHLAR_TOOLS_FILES_H_
#define ASHLAR_TOOLS_FILES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::tools {

// The whole file; "-" is standard input. ResourceExhausted above 1 GiB.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);
// Writes a new file in place of an old one; not synced.
absl::Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_FILES_H_
