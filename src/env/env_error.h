// Errors that all environments say in the same words.
#ifndef ASHLAR_SRC_ENV_ENV_ERROR_H_
#define ASHLAR_SRC_ENV_ENV_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace ashlar::env {

// ErrnoError (src/base/status.h), except that a directory where a file belongs and a directory that
// is not empty are FailedPrecondition: the caller's doing, not the system's.
absl::Status EnvError(int error, std::string_view operation, const std::string& path);

absl::Status ClosedError(const std::string& path);

// A range that is not inside a mapping of `size` bytes.
absl::Status OutsideMappingError(const std::string& path, uint64_t offset, uint64_t length,
                                 uint64_t size);

// A file that has fewer bytes than when it was mapped, or than has to be mapped.
absl::Status ShortenedError(const std::string& path, uint64_t offset, uint64_t expected,
                            uint64_t found);

absl::Status PageSizeError(const std::string& path, uint64_t size);

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_ENV_ERROR_H_
