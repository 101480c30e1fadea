// Salvage: every live document that can still be read, out of a damaged store into a fresh one.
//
// Which documents are live is decided as when a store is opened: segments, deaths, then the journal. Where one of them
// can't be read, the others go as far as they reach, and the report says what that means:
//   catalog  the segments are found by their files. Where the DocumentIds of two overlap, one is the merge of the other:
//            the one built on the newer generation says what lives.
//   deaths   every document counts as live; of a key, the newest version that can be read.
//   journal  counts up to the damage. What stands behind it is not taken: what it replaces and deletes can't be told
//            without what is lost, and the state before it is one that the store was in.
//   pages    documents whose id, key or stored values lie on a damaged page are lost, the others are not.
// A document that was replaced is never brought back while the deaths file says so.
#include "ashlar/salvage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "format/deaths.h"
#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/engine/finding.h"
#include "src/engine/read_view.h"
#include "src/engine/salvage.h"
#include "src/engine/salvage_journal.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

constexpr int32_t kFromJournal = -1;
// More than a damaged journal can have handed out; see recovery.cc.
constexpr Sequence kUnknownSequencesMax = Sequence{1} << 29;
constexpr uint64_t kProgressDocuments = 1000;

// A segment file, as far as it could be opened.
struct Source {
  uint64_t number = 0;
  std::shared_ptr<const segment::Segment> segment;
  uint64_t generation = 0;
  absl::flat_hash_set<uint32_t> dead;
  uint32_t unknown = 0;  // live documents whose id or key can't be read
};

struct Place {
  int32_t source = kFromJournal;
  uint32_t at = 0;  // ordinal; of the journal: index
};

class Salvager {
 public:
  Salvager(env::Env env, std::string directory, std::string out, const SalvageOptions& options)
      : env_(env), directory_(std::move(directory)), out_(std::move(out)), options_(options) {}

  absl::StatusOr<SalvageReport> Run();

 private:
  absl::Status CheckPlaces();
  void ReadCatalog();
  void OpenNamedSegments();
  void OpenFoundSegments();
  absl::Status ChooseSchema();
  void ReadDeaths();
  std::optional<format::DeathsFile> ReadDeathsFile(uint64_t number);
  void TakeDeaths(const format::DeathsFile& deaths);
  void GatherSegments();
  void GatherSegment(int32_t index);
  bool IsOfOlderState(const Source& source, bool* complete) const;
  void AddVersion(DocumentId id, const std::string& key, Place place);
  void Kill(DocumentId id);
  void KillKey(const std::string& key);
  void ReadJournal();
  absl::Status TakeRecord(const journal::Record& record);
  absl::Status TakeOperation(const format::OperationView& operation, Sequence sequence);
  void SettleVersions();
  void SettleKey(const std::string& key, DocumentId newest);
  absl::StatusOr<StoredDocument> Read(DocumentId id, Place place) const;
  absl::StatusOr<StoredDocument> ReadAnywhere(DocumentId id, Place place) const;
  absl::Status WriteAll(Engine& engine);
  absl::Status WriteOut();
  void RemoveUnfinished(const std::string& directory);

  absl::StatusOr<DocumentId> IdOf(const Source& source, uint32_t ordinal) const;
  void Note(const absl::Status& status);
  std::string Path(std::string_view name) const { return env::JoinPath(directory_, name); }

  const env::Env env_;
  const std::string directory_, out_;
  const SalvageOptions options_;
  SalvageReport report_;

  std::vector<env::FileSystem::DirectoryEntry> entries_;
  std::optional<format::CatalogValue> catalog_;
  std::optional<format::StoreId> store_id_;
  Schema schema_;
  uint32_t schema_number_ = 0;
  bool deaths_known_ = true;
  Sequence floor_ = 0;
  Sequence last_known_ = 0;  // highest sequence that is known to have been given

  std::vector<Source> sources_;
  std::vector<StoredDocument> from_journal_;
  std::map<DocumentId, Place> live_;
  absl::flat_hash_map<std::string, DocumentId> keys_;            // the newest version
  absl::flat_hash_map<DocumentId, DocumentId> older_;            // of the same key; only without deaths
  absl::flat_hash_map<DocumentId, std::vector<Place>> again_;    // other places of the same document
  absl::flat_hash_set<DocumentId> lost_ids_;                     // live, and their key can't be read
  absl::flat_hash_set<std::string> noted_;
};

void Salvager::Note(const absl::Status& status) {
  if (status.ok()) return;
  Finding finding = FindingOf(status);
  // The same page is met by many documents, from several sections.
  if (noted_.insert(absl::StrCat(finding.file, "\n", finding.offset, finding.file.empty() ? finding.message : ""))
          .second)
    report_.damage.push_back(std::move(finding));
}

absl::Status Salvager::CheckPlaces() {
  ASHLAR_ASSIGN_OR_RETURN(const bool exists, env_.files->Exists(directory_));
  if (!exists) return NotFound(absl::StrCat(directory_, ": no such directory"));
  ASHLAR_ASSIGN_OR_RETURN(entries_, env_.files->List(directory_));
  const bool is_store = std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return catalog::IsCatalogFile(entry.name) || segment::NumberOf(entry.name) != 0 ||
           journal::NumberOf(entry.name).has_value();
  });
  if (!is_store) return NotFound(absl::StrCat(directory_, ": not an Ashlar store"));
  ASHLAR_ASSIGN_OR_RETURN(const bool taken, env_.files->Exists(out_));
  if (taken) return AlreadyExists(absl::StrCat(out_, ": exists"));
  ASHLAR_ASSIGN_OR_RETURN(const bool locked, env_.files->IsLocked(Path(kLockFileName)));
  if (locked) return Unavailable(absl::StrCat(directory_, ": is open for writing"));
  return absl::OkStatus();
}

void Salvager::ReadCatalog() {
  const absl::StatusOr<std::unique_ptr<catalog::Catalog>> opened =
      catalog::OpenCatalog(env_, directory_, catalog::Access::kRead);
  absl::StatusOr<format::CatalogValue> value = opened.ok() ? (*opened)->Read() : opened.status();
  if (value.ok()) {
    catalog_ = *std::move(value);
    store_id_ = catalog_->store_id;
    floor_ = catalog_->floor;
    last_known_ = catalog_->last_sequence;
    return;
  }
  Note(value.status());
  report_.catalog_lost = true;
}

void Salvager::OpenNamedSegments() {
  for (const format::SegmentEntry& entry : catalog_->segments) {
    segment::SalvageHints hints;
    hints.entry = entry;
    hints.schema = &catalog_->schema;
    absl::StatusOr<segment::SalvagedSegment> opened =
        segment::OpenForSalvage(env_, directory_, entry.number, hints);
    if (opened.ok() && opened->file_id != entry.file_id)
      opened = DataLoss(Path(segment::FileName(entry.number)), "header", 24, "not the file that the catalog names");
    if (!opened.ok()) {
      Note(opened.status());
      report_.documents_lost += entry.documents - entry.dead;
      continue;
    }
    for (const absl::Status& status : opened->damage) Note(status);
    sources_.push_back({entry.number, opened->segment, opened->generation, {}, 0});
  }
}

// Without a catalog: every segment file of the store that most of them are of.
void Salvager::OpenFoundSegments() {
  std::vector<std::pair<format::StoreId, Source>> found;
  std::map<format::StoreId, size_t> votes;
  std::map<uint64_t, std::pair<uint32_t, Schema>> schemas;
  for (const env::FileSystem::DirectoryEntry& entry : entries_) {
    const uint64_t number = segment::NumberOf(entry.name);
    if (number == 0 || !entry.is_file) continue;
    absl::StatusOr<segment::SalvagedSegment> opened = segment::OpenForSalvage(env_, directory_, number, {});
    if (!opened.ok()) {
      Note(opened.status());
      continue;
    }
    for (const absl::Status& status : opened->damage) Note(status);
    if (!opened->store_id.has_value()) continue;  // whose it is can't be told
    ++votes[*opened->store_id];
    schemas[number] = {opened->schema_number, opened->segment->schema()};
    found.push_back({*opened->store_id, {number, opened->segment, opened->generation, {}, 0}});
  }
  for (const auto& [id, count] : votes)
    if (!store_id_.has_value() || count > votes[*store_id_]) store_id_ = id;
  for (auto& [id, source] : found) {
    if (id != *store_id_) {
      Note(DataLoss(source.segment->path(), "header", 40, "belongs to another store"));
      continue;
    }
    floor_ = std::max(floor_, source.segment->last_id());
    if (schemas[source.number].first >= schema_number_)
      std::tie(schema_number_, schema_) = schemas[source.number];
    sources_.push_back(std::move(source));
  }
  // The newest state first: it decides about what it overlaps.
  std::sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) {
    return std::pair(a.generation, a.number) > std::pair(b.generation, b.number);
  });
  last_known_ = floor_;
}

absl::Status Salvager::ChooseSchema() {
  if (catalog_.has_value()) {
    schema_ = catalog_->schema;
    schema_number_ = catalog_->schema_number;
    return absl::OkStatus();
  }
  if (const std::optional<JournalSchema> journal = SchemaOfJournal(env_, directory_); journal.has_value()) {
    if (!store_id_.has_value()) store_id_ = journal->store_id;
    if (journal->store_id == *store_id_ && journal->schema_number >= schema_number_) {
      schema_ = journal->schema;
      schema_number_ = journal->schema_number;
    }
  }
  if (!store_id_.has_value())
    return DataLoss(directory_, "", 0, "neither the catalog nor any segment or journal file can be read");
  return absl::OkStatus();
}

std::optional<format::DeathsFile> Salvager::ReadDeathsFile(uint64_t number) {
  const std::string path = Path(DeathsFileName(number));
  const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, path);
  absl::StatusOr<format::DeathsFile> deaths = bytes.ok() ? format::DecodeDeaths(*bytes, path) : bytes.status();
  if (deaths.ok() && deaths->store_id != *store_id_) deaths = DataLoss(path, "header", 40, "belongs to another store");
  if (deaths.ok() && catalog_.has_value() && deaths->file_id != catalog_->deaths_file_id)
    deaths = DataLoss(path, "header", 24, "not the deaths file that the catalog names");
  if (deaths.ok()) return *std::move(deaths);
  Note(deaths.status());
  return std::nullopt;
}

void Salvager::TakeDeaths(const format::DeathsFile& deaths) {
  for (const format::SegmentDeaths& of_segment : deaths.segments) {
    for (Source& source : sources_) {
      if (source.number != of_segment.segment_number) continue;
      for (const format::Death& death : of_segment.deaths) {
        source.dead.insert(death.ordinal);
        last_known_ = std::max(last_known_, death.sequence);
      }
    }
  }
}

void Salvager::ReadDeaths() {
  std::optional<format::DeathsFile> deaths;
  if (catalog_.has_value()) {
    if (catalog_->deaths_number == 0) return;
    deaths = ReadDeathsFile(catalog_->deaths_number);
  } else {
    for (const env::FileSystem::DirectoryEntry& entry : entries_) {
      const uint64_t number = DeathsNumberOf(entry.name);
      if (number == 0) continue;
      std::optional<format::DeathsFile> one = ReadDeathsFile(number);
      if (one.has_value() && (!deaths.has_value() || one->generation > deaths->generation)) deaths = std::move(one);
    }
  }
  if (deaths.has_value()) return TakeDeaths(*deaths);
  deaths_known_ = false;
  report_.deletes_may_be_undone = true;
}

absl::StatusOr<DocumentId> Salvager::IdOf(const Source& source, uint32_t ordinal) const {
  const segment::Segment& segment = *source.segment;
  absl::StatusOr<DocumentId> id = segment.IdOf(ordinal);
  // Ids ascend, so where there are as many as there can be, each is known.
  if (!id.ok() && segment.last_id() - segment.first_id() + 1 == segment.document_count())
    return segment.first_id() + ordinal;
  return id;
}

void Salvager::AddVersion(DocumentId id, const std::string& key, Place place) {
  if (!live_.emplace(id, place).second) {
    again_[id].push_back(place);
    return;
  }
  if (schema_.key.empty()) return;
  const auto [known, fresh] = keys_.emplace(key, id);
  if (fresh) return;
  // Two versions: the deaths that would tell are lost.
  DocumentId newer = std::max(known->second, id), older = std::min(known->second, id);
  known->second = newer;
  // The chain of a key descends.
  while (true) {
    const auto next = older_.find(newer);
    if (next == older_.end()) {
      older_[newer] = older;
      return;
    }
    if (next->second < older) std::swap(next->second, older);
    newer = next->second;
  }
}

// Whether a newer state covers the segment's DocumentIds: then it is what was merged. `complete`: all ids of the newer
// one are known, so that what it does not have is dead.
bool Salvager::IsOfOlderState(const Source& source, bool* complete) const {
  for (const Source& other : sources_) {
    if (&other == &source) return false;  // sources stand in order of age, the newest first
    if (other.segment->first_id() > source.segment->last_id() || other.segment->last_id() < source.segment->first_id())
      continue;
    *complete = other.unknown == 0;
    return true;
  }
  return false;
}

void Salvager::GatherSegment(int32_t index) {
  Source& source = sources_[static_cast<size_t>(index)];
  bool complete = false;
  const bool older = report_.catalog_lost && IsOfOlderState(source, &complete);
  for (uint32_t ordinal = 0; ordinal < source.segment->document_count(); ++ordinal) {
    if (source.dead.contains(ordinal)) continue;
    const absl::StatusOr<DocumentId> id = IdOf(source, ordinal);
    if (!id.ok()) {
      Note(id.status());
      ++source.unknown;
      if (!older) ++report_.documents_lost;
      continue;
    }
    if (older && complete && !live_.contains(*id)) continue;
    const absl::StatusOr<std::string> key = source.segment->KeyOf(ordinal);
    if (!key.ok()) {
      Note(key.status());
      ++source.unknown;
      lost_ids_.insert(*id);
      continue;
    }
    lost_ids_.erase(*id);
    AddVersion(*id, *key, {index, ordinal});
  }
}

void Salvager::GatherSegments() {
  for (size_t i = 0; i < sources_.size(); ++i) GatherSegment(static_cast<int32_t>(i));
  for (const auto& [id, place] : live_) lost_ids_.erase(id);
}

void Salvager::Kill(DocumentId id) {
  live_.erase(id);
  lost_ids_.erase(id);
}

void Salvager::KillKey(const std::string& key) {
  const auto known = keys_.find(key);
  if (known == keys_.end()) return;
  DocumentId id = known->second;
  keys_.erase(known);
  while (true) {
    Kill(id);
    const auto older = older_.find(id);
    if (older == older_.end()) return;
    id = older->second;
    older_.erase(older);
  }
}

absl::Status Salvager::TakeOperation(const format::OperationView& operation, Sequence sequence) {
  switch (operation.kind) {
    case format::OperationKind::kDelete:
      KillKey(std::string(operation.key));
      return absl::OkStatus();
    case format::OperationKind::kDeleteId: {
      if (const auto found = live_.find(operation.id); found != live_.end() && !schema_.key.empty()) {
        const absl::StatusOr<StoredDocument> document = ReadAnywhere(found->first, found->second);
        if (document.ok()) {
          const auto known = keys_.find(document->key);
          if (known != keys_.end() && known->second == operation.id) KillKey(document->key);
        }
      }
      Kill(operation.id);
      return absl::OkStatus();
    }
    case format::OperationKind::kPut:
    case format::OperationKind::kWatermark:
      break;
  }
  StoredDocument document;
  document.id = sequence;
  ASHLAR_RETURN_IF_ERROR(DecodeWholeDocument(schema_, operation.document, &document));
  if (!schema_.key.empty()) KillKey(document.key);
  from_journal_.push_back(std::move(document));
  AddVersion(sequence, from_journal_.back().key, {kFromJournal, static_cast<uint32_t>(from_journal_.size() - 1)});
  return absl::OkStatus();
}

absl::Status Salvager::TakeRecord(const journal::Record& record) {
  Sequence sequence = record.first_sequence;
  absl::Status status;
  const bool well_formed = format::VisitOperations(record.operations, [&](const format::OperationView& operation) {
    if (operation.kind == format::OperationKind::kWatermark) return true;
    status = TakeOperation(operation, sequence++);
    return status.ok();
  });
  if (!well_formed) status = absl::DataLossError("malformed operations");
  return WithPlace(std::move(status), Path("journal"), "record", 0);
}

void Salvager::ReadJournal() {
  const SalvagedJournal journal =
      ReadDamagedJournal(env_, directory_, *store_id_, catalog_, floor_,
                         [this](const journal::Record& record) { return TakeRecord(record); });
  report_.last_sequence = std::max(floor_, journal.last_sequence);
  last_known_ = std::max(last_known_, report_.last_sequence);
  if (journal.damage.ok()) return;
  Note(journal.damage);
  report_.batches_lost_min = journal.batches_lost_min;
  report_.deletes_may_be_undone = true;
  last_known_ += kUnknownSequencesMax;
}

absl::StatusOr<StoredDocument> Salvager::Read(DocumentId id, Place place) const {
  if (place.source == kFromJournal) return from_journal_[place.at];
  const segment::Segment& segment = *sources_[static_cast<size_t>(place.source)].segment;
  StoredDocument document;
  document.id = id;
  ASHLAR_ASSIGN_OR_RETURN(document.key, segment.KeyOf(place.at));
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer stored, segment.StoredOf(place.at));
  ASHLAR_RETURN_IF_ERROR(
      WithPlace(AssembleDocument(schema_, stored, &document), segment.path(), "stored", place.at));
  return document;
}

absl::StatusOr<StoredDocument> Salvager::ReadAnywhere(DocumentId id, Place place) const {
  absl::StatusOr<StoredDocument> document = Read(id, place);
  const auto others = again_.find(id);
  if (document.ok() || others == again_.end()) return document;
  for (const Place& other : others->second) {
    absl::StatusOr<StoredDocument> again = Read(id, other);
    if (again.ok()) return again;
  }
  return document;
}

// Leaves one version of each key: the newest that can be read.
void Salvager::SettleVersions() {
  for (const auto& [key, newest] : keys_)
    if (older_.contains(newest)) SettleKey(key, newest);
}

void Salvager::SettleKey(const std::string& key, DocumentId newest) {
  bool settled = false;
  std::string lost;
  for (DocumentId id = newest; id != 0;) {
    const auto place = live_.find(id);
    // The journal has deleted it by its id, and what is older was dead before.
    if (place == live_.end()) settled = true;
    if (!settled) {
      const absl::Status status = ReadAnywhere(id, place->second).status();
      if (!status.ok()) {
        Note(status);
        absl::StrAppend(&lost, lost.empty() ? "" : ", ", id);
        live_.erase(place);
      } else if (!lost.empty()) {
        report_.damage.push_back({Finding::Kind::kDamage, "", "", 0,
                                  absl::StrCat("key '", key, "': version ", lost, " can't be read; the older version ",
                                               id, " is saved in its place")});
      }
      settled = status.ok();
    } else if (place != live_.end()) {
      live_.erase(place);
    }
    const auto older = older_.find(id);
    id = older == older_.end() ? 0 : older->second;
  }
  if (!lost.empty()) ++report_.documents_lost;  // the live version, whatever stands in for it
}

absl::Status Salvager::WriteAll(Engine& engine) {
  uint64_t seen = 0;
  for (const auto& [id, place] : live_) {
    ++seen;
    const absl::StatusOr<StoredDocument> document = ReadAnywhere(id, place);
    if (document.ok()) {
      ASHLAR_RETURN_IF_ERROR(engine.PutWithId(document->document, id));
      ++report_.documents_saved;
    } else {
      Note(document.status());
      ++report_.documents_lost;
    }
    if (options_.progress && seen % kProgressDocuments == 0) options_.progress(report_.documents_saved, seen);
  }
  if (options_.progress) options_.progress(report_.documents_saved, seen);
  ASHLAR_RETURN_IF_ERROR(engine.ReserveSequences(last_known_));
  ASHLAR_RETURN_IF_ERROR(engine.Flush());
  return engine.Close();
}

void Salvager::RemoveUnfinished(const std::string& directory) {
  const absl::StatusOr<std::vector<env::FileSystem::DirectoryEntry>> entries = env_.files->List(directory);
  if (!entries.ok()) return;
  for (const env::FileSystem::DirectoryEntry& entry : *entries)
    env_.files->Remove(env::JoinPath(directory, entry.name)).IgnoreError();
  env_.files->Remove(directory).IgnoreError();
}

absl::Status Salvager::WriteOut() {
  // Under another name until it is whole, so that nobody takes a part of it for the store.
  const std::string unfinished = out_ + ".unfinished";
  ASHLAR_ASSIGN_OR_RETURN(const bool taken, env_.files->Exists(unfinished));
  if (taken) return AlreadyExists(absl::StrCat(unfinished, ": exists, from a run that broke off; remove it"));
  Options creating = options_.store;
  creating.create_if_missing = true;
  creating.error_if_exists = true;
  creating.read_only = false;
  creating.durability = Durability::kOff;
  absl::Status status;
  {
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Open(env_, nullptr, unfinished, creating, &schema_);
    status = engine.ok() ? WriteAll(**engine) : engine.status();
  }
  if (status.ok()) status = env_.files->Rename(unfinished, out_);
  if (status.ok()) return env_.files->SyncDirectory(ParentOf(out_));
  RemoveUnfinished(unfinished);
  return status;
}

absl::StatusOr<SalvageReport> Salvager::Run() {
  ASHLAR_RETURN_IF_ERROR(CheckPlaces());
  ReadCatalog();
  if (catalog_.has_value()) {
    OpenNamedSegments();
  } else {
    OpenFoundSegments();
  }
  ASHLAR_RETURN_IF_ERROR(ChooseSchema());
  ReadDeaths();
  GatherSegments();
  ReadJournal();
  report_.documents_lost += lost_ids_.size();
  SettleVersions();
  for (const Field& field : schema_.fields)
    if (!field.stored && field.name != schema_.key)
      report_.damage.push_back({Finding::Kind::kNote, "", "", 0,
                                absl::StrCat("field '", field.name, "' is not stored, so documents of segments are saved "
                                             "without it")});
  ASHLAR_RETURN_IF_ERROR(WriteOut());
  return report_;
}

}  // namespace

absl::StatusOr<SalvageReport> SalvageOn(env::Env env, const std::string& directory, const std::string& out,
                                        const SalvageOptions& options) {
  return Salvager(env, directory, out, options).Run();
}

}  // namespace ashlar::engine

namespace ashlar {

absl::StatusOr<SalvageReport> Salvage(const std::string& directory, const std::string& out,
                                      const SalvageOptions& options) {
  return engine::SalvageOn(env::PosixEnv(), directory, out, options);
}

}  // namespace ashlar
