// CheckStore (ashlar/check.h) over any environment.
#ifndef ASHLAR_SRC_ENGINE_CHECK_FILES_H_
#define ASHLAR_SRC_ENGINE_CHECK_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/check.h"
#include "src/env/env.h"

namespace ashlar::engine {

absl::StatusOr<std::vector<Finding>> CheckStoreOn(env::Env env, const std::string& directory,
                                                  const CheckProgress& progress = nullptr);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_CHECK_FILES_H_
