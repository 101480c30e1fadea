#include "src/engine/salvage_journal.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "src/base/status.h"
#include "src/journal/file_scanner.h"

namespace ashlar::engine {
namespace {

std::vector<uint64_t> JournalNumbers(env::Env env, const std::string& directory) {
  std::vector<uint64_t> numbers;
  const absl::StatusOr<std::vector<env::FileSystem::DirectoryEntry>> entries = env.files->List(directory);
  if (!entries.ok()) return numbers;
  for (const env::FileSystem::DirectoryEntry& entry : *entries)
    if (const std::optional<uint64_t> number = journal::NumberOf(entry.name); entry.is_file && number.has_value())
      numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Batches beyond `last` that are whole, wherever in the files they stand.
uint64_t CountBatches(env::Env env, const std::string& directory, const format::StoreId& store_id, uint64_t from_number,
                      Sequence last) {
  uint64_t batches = 0;
  for (const uint64_t number : JournalNumbers(env, directory)) {
    if (number < from_number) continue;
    const absl::StatusOr<std::unique_ptr<journal::FileScanner>> scanner =
        journal::FileScanner::Open(*env.files, env::JoinPath(directory, journal::FileName(number)));
    if (!scanner.ok() || (*scanner)->header().store_id != store_id) continue;
    for (uint64_t at = (*scanner)->first_offset(); at < (*scanner)->size();) {
      const absl::StatusOr<std::optional<journal::ScannedRecord>> record = (*scanner)->RecordAt(at, (*scanner)->size());
      if (!record.ok()) break;
      if (!record->has_value()) {
        at += 8;
        continue;
      }
      const format::JournalRecord& header = (*record)->header.record;
      const Sequence end = header.first_sequence + std::max<uint64_t>(header.operation_count, 1) - 1;
      if (header.type == format::RecordType::kBatch && end > last) ++batches;
      at += (*record)->bytes;
    }
  }
  return batches;
}

}  // namespace

SalvagedJournal ReadDamagedJournal(env::Env env, const std::string& directory, const format::StoreId& store_id,
                                   const std::optional<format::CatalogValue>& catalog, Sequence floor,
                                   const std::function<absl::Status(const journal::Record&)>& visit) {
  SalvagedJournal result;
  result.last_sequence = floor;
  journal::ReplayOptions options;
  options.store_id = store_id;
  options.floor = floor;
  const std::vector<uint64_t> numbers = JournalNumbers(env, directory);
  if (catalog.has_value()) {
    options.first_number = catalog->journal_number;
    options.durable = {catalog->durable_journal_number, catalog->durable_journal_offset};
    options.catalog_generation = catalog->generation;
  } else {
    if (numbers.empty()) return result;
    options.first_number = numbers.front();
    options.catalog_generation = UINT64_MAX;
  }
  const absl::StatusOr<std::unique_ptr<journal::StatusPage>> page =
      journal::StatusPage::Open(env, directory, store_id, /*writable=*/false);
  const std::optional<journal::Status> status = page.ok() ? (*page)->Load() : std::nullopt;
  if (status.has_value() && status->durable.number >= options.first_number)
    options.durable = std::max(options.durable, status->durable);
  const auto remember = [&](const journal::Record& record) {
    const absl::Status visited = visit(record);
    if (visited.ok()) result.last_sequence = record.last_sequence();
    return visited;
  };
  result.damage = journal::Replay(env, directory, options, remember).status();
  if (!result.damage.ok())
    result.batches_lost_min = CountBatches(env, directory, store_id, options.first_number, result.last_sequence);
  return result;
}

std::optional<JournalSchema> SchemaOfJournal(env::Env env, const std::string& directory) {
  std::optional<JournalSchema> best;
  for (const uint64_t number : JournalNumbers(env, directory)) {
    const absl::StatusOr<std::unique_ptr<journal::FileScanner>> scanner =
        journal::FileScanner::Open(*env.files, env::JoinPath(directory, journal::FileName(number)));
    if (!scanner.ok()) continue;
    const format::JournalHeader& header = (*scanner)->header();
    if (!best.has_value() || header.schema_number >= best->schema_number)
      best = JournalSchema{header.store_id, header.schema, header.schema_number};
  }
  return best;
}

}  // namespace ashlar::engine
