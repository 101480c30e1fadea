// ICU's error codes as Status.
#ifndef ASHLAR_SRC_TEXT_ICU_STATUS_H_
#define ASHLAR_SRC_TEXT_ICU_STATUS_H_

#include <unicode/utypes.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/base/status.h"

namespace ashlar::text {

// OK for success and warnings; ResourceExhausted for memory; Internal for the rest (missing data, a bug).
inline absl::Status IcuStatus(UErrorCode error, std::string_view what) {
  if (U_SUCCESS(error)) return absl::OkStatus();
  const std::string message = "ICU " + std::string(what) + ": " + u_errorName(error);
  return error == U_MEMORY_ALLOCATION_ERROR ? ResourceExhausted(message) : Internal(message);
}

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_ICU_STATUS_H_
