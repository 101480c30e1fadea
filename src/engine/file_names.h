// Names of the files that the engine itself makes in a store's directory.
#ifndef ASHLAR_SRC_ENGINE_FILE_NAMES_H_
#define ASHLAR_SRC_ENGINE_FILE_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace ashlar::engine {

inline constexpr std::string_view kLockFileName = "lock";

// "deaths-<16 hex digits>.dea", and back (0: not such a name).
std::string DeathsFileName(uint64_t number);
uint64_t DeathsNumberOf(std::string_view name);

// The directory that holds `path`: "." or "/" where it names none.
std::string ParentOf(const std::string& path);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_FILE_NAMES_H_
