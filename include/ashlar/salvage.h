// Salvage: takes everything readable out of a damaged store into a fresh one.
#ifndef ASHLAR_SALVAGE_H_
#define ASHLAR_SALVAGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/check.h"
#include "ashlar/options.h"

namespace ashlar {

struct SalvageOptions {
  Options store;  // of the fresh store; create_if_missing, error_if_exists and read_only are ignored
  // Called now and then with documents saved and documents looked at.
  std::function<void(uint64_t saved, uint64_t seen)> progress;
};

struct SalvageReport {
  uint64_t documents_saved = 0;
  uint64_t documents_lost = 0;      // known to have been there and live, and not readable
  uint64_t batches_lost_min = 0;    // journal records behind damage: at least this many
  bool deletes_may_be_undone = false;  // the deaths file or a part of the journal is lost: a deleted document may be back
  bool catalog_lost = false;        // which segments belong to the store was found out from the segments themselves
  Sequence last_sequence = 0;       // of the newest document or batch saved
  std::vector<Finding> damage;      // what could not be read
};

// Reads the store in `directory`, which must not be open for writing, changes nothing in it, and writes every live document
// that can be read whole to a new store in `out`, with its DocumentId. Works without a readable catalog, journal or deaths
// file, and says in the report what that means.
// NotFound: no store there. AlreadyExists: `out` exists. Unavailable: a writer has the store. DataLoss: not even a schema can
// be read. O(documents).
absl::StatusOr<SalvageReport> Salvage(const std::string& directory, const std::string& out,
                                      const SalvageOptions& options = {});

}  // namespace ashlar

#endif  // ASHLAR_SALVAGE_H_
