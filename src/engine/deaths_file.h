// The deaths file: which documents of which segments are dead, as of one generation of the catalog.
#ifndef ASHLAR_SRC_ENGINE_DEATHS_FILE_H_
#define ASHLAR_SRC_ENGINE_DEATHS_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "format/deaths.h"
#include "src/env/env.h"

namespace ashlar::engine {

// A new file, synced; its name is the caller's to make durable. Returns its size. After a failure it may be there.
absl::StatusOr<uint64_t> WriteDeathsFile(const env::Env& env, const std::string& path,
                                         const format::DeathsFile& deaths);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_DEATHS_FILE_H_
