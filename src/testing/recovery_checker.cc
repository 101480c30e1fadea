#include "src/testing/recovery_checker.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "src/engine/file_names.h"
#include "src/journal/journal.h"
#include "src/segment/segment_builder.h"
#include "src/testing/workload_runner.h"

namespace ashlar::testing {
namespace {

constexpr uint64_t kProbeKey = 1'000'000;  // of the document that is written after a recovery

// Independent small choices from one hash.
class Dice {
 public:
  explicit Dice(uint64_t hash) : bits_(hash * 0x9E3779B97F4A7C15ull) {}
  uint64_t Below(uint64_t n) {
    bits_ = (bits_ ^ (bits_ >> 31)) * 0xBF58476D1CE4E5B9ull;
    return (bits_ >> 33) % n;
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t bits_;
};

}  // namespace

absl::Status CompareSearch(const Snapshot& snapshot, const PreparedQuery& prepared, const SearchOptions& options,
                           const OracleResult& expected) {
  ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, snapshot.Search(prepared, options));
  std::vector<Handle> handles;
  for (const Hit& hit : result.hits) handles.push_back(hit.handle);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<DocumentId> ids, snapshot.FetchIds(handles));
  bool same = result.total == expected.total && result.total_is_exact && ids.size() == expected.hits.size();
  for (size_t i = 0; i < ids.size() && same; ++i)
    same = ids[i] == expected.hits[i].id &&
           std::bit_cast<uint64_t>(result.hits[i].score) == std::bit_cast<uint64_t>(expected.hits[i].score);
  if (same) return absl::OkStatus();
  return Internal(absl::StrCat("a search found ", ids.size(), " hits of ", result.total, " that are not the oracle's ",
                               expected.hits.size(), " of ", expected.total));
}

absl::Status CompareGet(const absl::StatusOr<StoredDocument>& got, const std::optional<StoredDocument>& expected) {
  if (!expected.has_value()) {
    if (absl::IsNotFound(got.status())) return absl::OkStatus();
    return got.ok() ? Internal(absl::StrCat("a document that is not live was found: ", got->id)) : got.status();
  }
  if (!got.ok()) return got.status();
  if (got->id == expected->id && got->document == expected->document) return absl::OkStatus();
  return Internal(absl::StrCat("document ", expected->id, " was read as ", got->id, " or with other values"));
}

absl::Status CheckClean(const Store& store) {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<Finding> findings, store.Check());
  return findings.empty() ? absl::OkStatus() : Internal(absl::StrCat("check: ", findings[0].message));
}

absl::Status CheckNoStrays(const env::Env& env, const std::string& directory) {
  ASHLAR_ASSIGN_OR_RETURN(const auto catalog, catalog::OpenCatalog(env, directory, catalog::Access::kRead));
  ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue value, catalog->Read());
  ASHLAR_ASSIGN_OR_RETURN(const auto entries, env.files->List(directory));
  size_t segments = 0;
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    bool named = entry.name == engine::kLockFileName || entry.name == journal::kStatusFileName ||
                 journal::IsSpareFileName(entry.name);
    // Generations whose removal was lost go with the next commit.
    if (catalog::IsCatalogFile(entry.name)) named = true;
    if (const auto number = journal::NumberOf(entry.name)) named = *number >= value.journal_number;
    if (const uint64_t number = engine::DeathsNumberOf(entry.name); number != 0) named = number == value.deaths_number;
    if (const uint64_t number = segment::NumberOf(entry.name); number != 0) {
      for (const format::SegmentEntry& s : value.segments) named |= s.number == number;
      segments += named;
    }
    if (!named) return Internal(absl::StrCat("a stray file is left: ", entry.name));
  }
  if (segments != value.segments.size()) return Internal("a segment that the catalog names is not there");
  return absl::OkStatus();
}

absl::Status RecoveryChecker::Explore(const env::SimDisk& disk) { return ExploreAt(disk, options_.policies_max, 0); }

absl::Status RecoveryChecker::ExploreOne(const env::SimDisk& disk, const env::CrashPolicy& policy) {
  return ExploreCopy(disk, policy, 0);
}

absl::Status RecoveryChecker::ExploreAt(const env::SimDisk& disk, size_t policies_max, int depth) {
  for (const env::CrashPolicy& policy : disk.EnumerateCrashes(policies_max))
    ASHLAR_RETURN_IF_ERROR(ExploreCopy(disk, policy, depth));
  return absl::OkStatus();
}

absl::Status RecoveryChecker::ExploreCopy(const env::SimDisk& disk, const env::CrashPolicy& policy, int depth) {
  const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policy);
  after->SetCapacity(UINT64_MAX);  // a store without room may refuse what is asked of it here
  const uint64_t hash = after->DurableHash();
  ++counters_.crashes;
  states_.Insert(hash);
  if (const auto known = known_.find(hash); known != known_.end() && IsAllowed(known->second)) return absl::OkStatus();
  KnownState known;
  if (absl::Status status = Recover(after.get(), hash, depth, &known); !status.ok())
    return Annotate(status, absl::StrCat("power cut at step ", disk.steps(), ", ", env::CrashPolicyText(policy)));
  known_[hash] = known;
  ++counters_.recoveries;
  return absl::OkStatus();
}

bool RecoveryChecker::IsAllowed(const KnownState& known) const {
  if (known.sequence < history_.next_sequence_min()) return false;
  const std::optional<Sequence> exactly = history_.next_sequence_exactly();
  if (known.numbers_on && exactly.has_value() && known.sequence != *exactly) return false;
  bool copy_is_allowed = known.copy == 0 && !history_.copy_is_promised();
  for (const LabStatePtr& copy : history_.copies()) copy_is_allowed |= copy->fingerprint == known.copy;
  if (!copy_is_allowed) return false;
  for (size_t i = history_.state_count(); i-- > history_.least_after_power_loss();)
    if (history_.state(i)->fingerprint == known.fingerprint) return true;
  return false;
}

// Opens; with `depth` left, the power is cut at each step of that, too.
absl::StatusOr<std::unique_ptr<Store>> RecoveryChecker::Open(env::SimDisk* disk, const env::Env& env,
                                                             const Options& options, int depth, uint64_t hash) {
  absl::Status finding;
  const bool explore =
      depth < options_.depth_max && options_.recovery_share != 0 && (hash >> 8) % options_.recovery_share == 0;
  if (explore) {
    disk->SetObserver([&](const env::SimOperation&) {
      if (!finding.ok()) return;
      ++counters_.recovery_crashes;
      finding = ExploreAt(*disk, options_.recovery_policies_max, depth + 1);
    });
  }
  Options creating = options;
  const Schema schema = history_.state(0)->oracle->schema();
  absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(env, kLabDirectory, options, nullptr);
  if (!store.ok() && !history_.created() && absl::IsNotFound(store.status())) {
    // Power went while the store was made: nothing was promised, and making it again works.
    creating.create_if_missing = true;
    store = OpenOn(env, kLabDirectory, creating, &schema);
  }
  disk->SetObserver(nullptr);
  if (!finding.ok()) return Annotate(finding, "while recovering");
  return store;
}

absl::Status RecoveryChecker::Recover(env::SimDisk* disk, uint64_t hash, int depth, KnownState* known) {
  Dice dice(hash);
  Options options = store_options_;
  options.create_if_missing = false;
  options.open_mode = dice.OneIn(2) ? OpenMode::kMapped : OpenMode::kArray;
  constexpr Durability kModes[] = {Durability::kSync, Durability::kOs, Durability::kOs, Durability::kOff};
  options.durability = kModes[dice.Below(std::size(kModes))];
  const env::Env env = disk->NewProcess();
  absl::StatusOr<std::unique_ptr<Store>> opened = Open(disk, env, options, depth, hash);
  if (!opened.ok()) return Annotate(opened.status(), "recovery failed");
  std::unique_ptr<Store> store = *std::move(opened);

  const Snapshot snapshot = store->TakeSnapshot();
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList found, ReadDocuments(snapshot));
  const Schema schema = store->schema();
  const std::optional<std::string> watermark = store->GetStats().watermark;
  const size_t least = history_.least_after_power_loss();
  size_t index = 0;
  const LabStatePtr state = history_.Match(found, schema, watermark, least, &index);
  if (state == nullptr) {
    size_t older = 0;
    const bool lost = history_.Match(found, schema, watermark, 0, &older) != nullptr;
    return Internal(lost ? absl::StrCat("only ", older, " batches are there, ", least, " were promised")
                         : absl::StrCat("the ", found.size(), " documents are no prefix of what was written (states ",
                                        least, " to ", history_.state_count() - 1, ")"));
  }
  known->fingerprint = history_.state(index)->fingerprint;
  ASHLAR_RETURN_IF_ERROR(CheckAnswers(*store, snapshot, *state, hash));
  ASHLAR_RETURN_IF_ERROR(CheckClean(*store));
  ASHLAR_RETURN_IF_ERROR(CheckNoStrays(env, kLabDirectory));
  ASHLAR_RETURN_IF_ERROR(CheckCopy(env, *store, *state, &known->copy));
  return CheckWrites(disk, env, options, std::move(store), found, hash, depth, known);
}

absl::Status RecoveryChecker::CheckAnswers(const Store& store, const Snapshot& snapshot, const LabState& state,
                                           uint64_t hash) const {
  if (snapshot.document_count() != state.oracle->document_count()) return Internal("the number of documents is wrong");
  Dice dice(hash + 1);
  constexpr Traversal kTraversals[] = {Traversal::kAuto, Traversal::kExhaustive, Traversal::kDaat};
  for (int i = 0; i < 2; ++i) {
    const size_t query = dice.Below(LabQueries().size());
    SearchOptions options = LabQueries()[query].options;
    options.traversal = kTraversals[dice.Below(std::size(kTraversals))];
    ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery prepared, store.Prepare(LabQueries()[query].query));
    ASHLAR_RETURN_IF_ERROR(CompareSearch(snapshot, prepared, options, state.Expected(query)));
  }
  const Oracle& oracle = *state.oracle;
  if (oracle.schema().key.empty()) {
    const DocumentId id = dice.Below(20);
    return CompareGet(snapshot.GetById(id), oracle.GetById(id));
  }
  for (int i = 0; i < 3; ++i) {
    const std::string key = absl::StrCat("k", dice.Below(12));
    ASHLAR_RETURN_IF_ERROR(CompareGet(snapshot.Get(key), oracle.Get(key)));
  }
  return absl::OkStatus();
}

// The checkpoint is whole, and the next one can be made over what a crash left of it.
absl::Status RecoveryChecker::CheckCopy(const env::Env& env, const Store& store, const LabState& state,
                                        uint64_t* fingerprint) const {
  if (history_.copies().empty()) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(CompareCopy(env, history_, fingerprint));
  CheckpointOptions options;
  options.incremental = true;
  const absl::Status made = store.Checkpoint(kLabCopyDirectory, options).status();
  if (IsNewerCopy(made)) return absl::OkStatus();
  if (!made.ok()) return Annotate(made, "a checkpoint after the recovery");
  Options reading;
  reading.read_only = true;
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<Store> copy, OpenOn(env, kLabCopyDirectory, reading, nullptr));
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList shown, ReadDocuments(copy->TakeSnapshot()));
  if (shown != state.documents) return Internal("a checkpoint after the recovery holds other documents");
  return CheckNoStrays(env, kLabCopyDirectory);
}

// The store takes a write, keeps it through a flush, a merge and a reopening, and gives no number twice.
absl::Status RecoveryChecker::CheckWrites(env::SimDisk* disk, const env::Env& env, const Options& options,
                                          std::unique_ptr<Store> store, const DocumentList& found, uint64_t hash,
                                          int depth, KnownState* known) const {
  Dice dice(hash + 2);
  const Schema schema = store->schema();
  const Document probe = WorkloadDocument(schema, kProbeKey, hash % 1000, 0);
  absl::StatusOr<Sequence> written = store->Put(probe);
  if (!written.ok()) return Annotate(written.status(), "a write after the recovery");
  known->sequence = *written;
  if (*written < history_.next_sequence_min() || (!found.empty() && *written <= found.back().first))
    return Internal(absl::StrCat("sequence ", *written, " was given twice; the next one is ",
                                 history_.next_sequence_min(), " or beyond"));
  const std::optional<Sequence> exactly = history_.next_sequence_exactly();
  known->numbers_on = depth == 0 && options.durability != Durability::kOff;
  if (known->numbers_on && exactly.has_value() && *written != *exactly)
    return Internal(absl::StrCat("sequence ", *written, " was given where ", *exactly, " was due after a clean end"));
  if (dice.OneIn(2)) ASHLAR_RETURN_IF_ERROR(store->Flush());
  if (dice.OneIn(8)) ASHLAR_RETURN_IF_ERROR(store->Merge());
  DocumentList expected = found;
  expected.emplace_back(*written, HashDocument(probe));
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList shown, ReadDocuments(store->TakeSnapshot()));
  if (shown != expected) return Internal("a write after the recovery is not shown, or changed other documents");
  if (!dice.OneIn(4)) {
    disk->KillProcess(env);
    return absl::OkStatus();
  }
  ASHLAR_RETURN_IF_ERROR(store->Close());
  const env::Env again = disk->NewProcess();
  ASHLAR_ASSIGN_OR_RETURN(store, OpenOn(again, kLabDirectory, options, nullptr));
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList reopened, ReadDocuments(store->TakeSnapshot()));
  if (reopened != expected) return Internal("a reopening after the recovery shows other documents");
  ASHLAR_RETURN_IF_ERROR(CheckClean(*store));
  disk->KillProcess(again);
  return absl::OkStatus();
}

}  // namespace ashlar::testing
