// Salvage (ashlar/salvage.h) over any environment.
#ifndef ASHLAR_SRC_ENGINE_SALVAGE_H_
#define ASHLAR_SRC_ENGINE_SALVAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "ashlar/salvage.h"
#include "src/env/env.h"

namespace ashlar::engine {

absl::StatusOr<SalvageReport> SalvageOn(env::Env env, const std::string& directory, const std::string& out,
                                        const SalvageOptions& options);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_SALVAGE_H_
