// Findings from statuses: what check and salvage report.
#ifndef ASHLAR_SRC_ENGINE_FINDING_H_
#define ASHLAR_SRC_ENGINE_FINDING_H_

#include <string>

#include "absl/status/status.h"
#include "ashlar/check.h"
#include "src/base/status.h"

namespace ashlar::engine {

inline Finding FindingOf(const absl::Status& status, Finding::Kind kind = Finding::Kind::kDamage) {
  const ErrorPlace place = PlaceOf(status).value_or(ErrorPlace());
  return {kind, place.file, place.section, place.offset, std::string(FromAbsl(status.message()))};
}

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_FINDING_H_
