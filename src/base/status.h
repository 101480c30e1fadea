// Status helpers: the one place where std::string_view meets Abseil's, and where errno and damage become typed errors.
// Level: base. Errors carry an ErrorPlace payload (include/ashlar/status.h) where a file is involved.
#ifndef ASHLAR_SRC_BASE_STATUS_H_
#define ASHLAR_SRC_BASE_STATUS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ashlar/status.h"

namespace ashlar {

// Debian's Abseil has a string_view of its own, so the two need a bridge; nobody else converts.
inline absl::string_view ToAbsl(std::string_view s) { return absl::string_view(s.data(), s.size()); }
inline std::string_view FromAbsl(absl::string_view s) { return std::string_view(s.data(), s.size()); }

absl::Status InvalidArgument(std::string_view message);
absl::Status NotFound(std::string_view message);
absl::Status AlreadyExists(std::string_view message);
absl::Status FailedPrecondition(std::string_view message);
absl::Status ResourceExhausted(std::string_view message);
absl::Status Unavailable(std::string_view message);
absl::Status Unimplemented(std::string_view message);
absl::Status Internal(std::string_view message);

// Damage: what was read breaks a checksum or a rule of format/SPEC.md. `section` is a section or record name.
absl::Status DataLoss(std::string_view file, std::string_view section, uint64_t offset, std::string_view message);

// A failed system call. ENOSPC, EDQUOT -> ResourceExhausted; ENOENT -> NotFound; EEXIST -> AlreadyExists; EACCES,
// EPERM, EROFS -> PermissionDenied; ENOMEM, EMFILE, ENFILE -> ResourceExhausted; EIO -> Internal; others -> Internal.
absl::Status ErrnoError(int error, std::string_view operation, std::string_view file);

// Prefixes the message and keeps code and payload.
absl::Status Annotate(const absl::Status& status, std::string_view prefix);

// Attaches a place to an error that has none yet (OK and placed errors come back unchanged).
absl::Status WithPlace(absl::Status status, std::string_view file, std::string_view section, uint64_t offset);

}  // namespace ashlar

#define ASHLAR_CONCAT_INNER(a, b) a##b
#define ASHLAR_CONCAT(a, b) ASHLAR_CONCAT_INNER(a, b)

#define ASHLAR_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status ashlar_status = (expr); !ashlar_status.ok()) return ashlar_status; \
  } while (false)

#define ASHLAR_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                 \
  if (!result.ok()) return std::move(result).status();  \
  lhs = *std::move(result)

#define ASHLAR_ASSIGN_OR_RETURN(lhs, expr) \
  ASHLAR_ASSIGN_OR_RETURN_IMPL(ASHLAR_CONCAT(ashlar_result_, __LINE__), lhs, expr)

#endif  // ASHLAR_SRC_BASE_STATUS_H_
