// The journal of a damaged store: the records before the damage, and what can be said of those behind it.
#ifndef ASHLAR_SRC_ENGINE_SALVAGE_JOURNAL_H_
#define ASHLAR_SRC_ENGINE_SALVAGE_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "src/env/env.h"
#include "src/journal/journal.h"

namespace ashlar::engine {

struct SalvagedJournal {
  absl::Status damage;             // OK: read to its end
  Sequence last_sequence = 0;      // of what was visited
  uint64_t batches_lost_min = 0;   // whole records behind the damage
};

// Visits the records above the floor up to the first damage. Records behind damage are only counted: what they replace
// and delete depends on those that are lost, and the state before the damage is one that the store really was in.
// `catalog`: nullopt if it is lost; then every journal file there is read, and `floor` is the caller's guess.
SalvagedJournal ReadDamagedJournal(env::Env env, const std::string& directory, const format::StoreId& store_id,
                                   const std::optional<format::CatalogValue>& catalog, Sequence floor,
                                   const std::function<absl::Status(const journal::Record&)>& visit);

// The newest schema that a journal file's header has; and the store's id. For when nothing else has them.
struct JournalSchema {
  format::StoreId store_id{};
  Schema schema;
  uint32_t schema_number = 0;
};
std::optional<JournalSchema> SchemaOfJournal(env::Env env, const std::string& directory);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_SALVAGE_JOURNAL_H_
