// Findings of Store::Check and of `ashlar check`, and the check of a store that may not open.
#ifndef ASHLAR_CHECK_H_
#define ASHLAR_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ashlar {

struct Finding {
  enum class Kind : uint8_t {
    kDamage,  // bytes or cross-references that are wrong
    kNote,    // nothing is wrong: a file of somebody else in the directory
  };
  Kind kind = Kind::kDamage;
  std::string file;     // path; empty if the finding is not about one file
  std::string section;  // name of a section or record of format/SPEC.md; empty if none applies
  uint64_t offset = 0;  // in the file
  std::string message;  // for people; names the above too
};

// Called now and then with the bytes that were looked at and those of all segments.
using CheckProgress = std::function<void(uint64_t done, uint64_t all)>;

// Opens the store in `directory` read-only and checks it as Store::Check does. If it does not open, each of its files is
// checked for itself, as far as it can be read, and why it does not open is among the findings.
// NotFound: no store there. Unavailable, Unimplemented and failures of the system are errors, not findings.
absl::StatusOr<std::vector<Finding>> CheckStore(const std::string& directory, const CheckProgress& progress = nullptr);

}  // namespace ashlar

#endif  // ASHLAR_CHECK_H_
