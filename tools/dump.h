// Any file of a store as text, part by part, by the names of format/SPEC.md.
#ifndef ASHLAR_TOOLS_DUMP_H_
#define ASHLAR_TOOLS_DUMP_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace ashlar::tools {

// Calls `print` with pieces of text, in order. A journal, a segment (every document, term and posting), a deaths file,
// a catalog value, the LMDB file of a catalog (of which the newest value is printed), the lock, or the status page.
// Reads whole files into memory. DataLoss if the file is damaged (what comes before the damage is printed) or none of
// these; NotFound.
absl::Status DumpFile(const std::string& path, const std::function<void(std::string_view)>& print);

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_DUMP_H_
