// What an error says beside its code and message. Codes have one meaning everywhere in Ashlar:
//
//   InvalidArgument     bad document, query, option or schema; nothing was written
//   NotFound            no such store, file, key or document
//   AlreadyExists       the store or the key exists
//   FailedPrecondition  wrong mode (read-only, closed, after a fork, failed sync, PutIf on another version)
//   ResourceExhausted   no space on the device, a memory or size limit, too many open files
//   Unavailable         the store is locked by another writer
//   PermissionDenied    the operating system refused access
//   Unimplemented       the file is of a newer format, or names a feature this build does not know
//   DataLoss            damage: a checksum or a rule of format/SPEC.md is broken
//   Internal            the operating system failed in another way (EIO ...)
#ifndef ASHLAR_STATUS_H_
#define ASHLAR_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace ashlar {

// Where an error was seen. `section` is the name of a section or record of format/SPEC.md, empty if none applies.
struct ErrorPlace {
  std::string file;
  std::string section;
  uint64_t offset = 0;
};

// The place attached to a status, if there is one.
std::optional<ErrorPlace> PlaceOf(const absl::Status& status);

}  // namespace ashlar

#endif  // ASHLAR_STATUS_H_
