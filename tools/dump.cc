#include "tools/dump.h"

#include "src/base/status.h"

namespace ashlar::tools {

absl::StatusOr<std::string> DumpFile(const std::string& path) { return Unimplemented(path); }

}  // namespace ashlar::tools
