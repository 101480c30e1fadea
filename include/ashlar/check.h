// Findings of Store::Check and of `ashlar check`.
#ifndef ASHLAR_CHECK_H_
#define ASHLAR_CHECK_H_

#include <cstdint>
#include <string>

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

}  // namespace ashlar

#endif  // ASHLAR_CHECK_H_
