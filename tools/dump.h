// Any file of a store as text, section by section, by the names and rules of format/SPEC.md.
#ifndef ASHLAR_TOOLS_DUMP_H_
#define ASHLAR_TOOLS_DUMP_H_

#include <string>

#include "absl/status/statusor.h"

namespace ashlar::tools {

// DataLoss if the file is damaged or not one of ours; NotFound.
absl::StatusOr<std::string> DumpFile(const std::string& path);

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_DUMP_H_
