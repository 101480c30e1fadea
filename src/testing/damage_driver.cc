// The damage driver: small stores with one file damaged at rest. A bit is flipped, the end is cut off, two sectors are
// exchanged as misdirected writes leave them, or the file is gone, or one of another store, of the same store's other
// life, an older version of itself, or another file of its kind. What is then read is right or a typed error, nothing that the
// store writes afterwards makes damage look whole, and what a checksum covers is noticed by opening or by Check.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "format/journal_record.h"
#include "src/base/checksum.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/env/sim_env.h"
#include "src/testing/driver.h"
#include "src/testing/history.h"
#include "src/testing/recovery_checker.h"
#include "src/testing/workload_runner.h"

namespace ashlar::testing {
namespace {

using env::CrashPolicy;

constexpr uint64_t kDamagesPerTask = 512;
constexpr uint64_t kSectorPairs = 2048;  // a store
constexpr uint64_t kUnusedNumber = 0x777;  // of a file
constexpr uint64_t kProbeKey = 1'000'000;
// Of the built-in workloads, those whose stores together hold every kind of file and section.
constexpr std::string_view kDamaged[] = {"deletes_after_flush_sync", "fields_sync", "journals_os", "keyless_os", "merges_os",
                                         "watermarks_sync"};

bool IsTyped(const absl::Status& status) { return absl::IsDataLoss(status) || absl::IsFailedPrecondition(status); }

// A store at rest, and what it must hold.
struct Specimen {
  std::string name;
  std::unique_ptr<env::SimDisk> disk;
  std::unique_ptr<History> history;
  Workload workload;
  size_t least = 0;  // a shorter prefix would be a loss
  struct Replacement {
    std::string file;
    std::string what;  // where the bytes are from
    ByteBuffer bytes;
  };
  std::vector<Replacement> replacements;
  std::vector<Replacement> strangers;  // put beside the store's own files
};

struct Damage {
  enum class Kind : uint8_t { kBit, kCut, kSectors, kMissing, kRenamed, kReplaced, kStranger };
  Kind kind = Kind::kBit;
  std::string file;
  uint64_t at = 0;         // a bit, the size that is left, a sector, or which of the specimen's replacements
  std::string other_file{};  // kSectors; kRenamed: the new name
  uint64_t other_sector = 0;
};

std::string DamageText(const Specimen& specimen, const Damage& damage) {
  const std::string start = absl::StrCat(specimen.name, ", ", damage.file);
  switch (damage.kind) {
    case Damage::Kind::kBit:
      return absl::StrCat(start, " bit ", damage.at);
    case Damage::Kind::kCut:
      return absl::StrCat(start, " cut to ", damage.at);
    case Damage::Kind::kSectors:
      return absl::StrCat(start, " sector ", damage.at, " exchanged with sector ", damage.other_sector, " of ",
                          damage.other_file);
    case Damage::Kind::kMissing:
      return absl::StrCat(start, " removed");
    case Damage::Kind::kRenamed:
      return absl::StrCat(start, " renamed to ", damage.other_file);
    case Damage::Kind::kStranger:
      return absl::StrCat(start, " put there: ", specimen.strangers[damage.at].what);
    case Damage::Kind::kReplaced:
      return absl::StrCat(start, " replaced by ", specimen.replacements[damage.at].what);
  }
  return start;
}

using Files = std::map<std::string, ByteBuffer>;

Files FilesOf(const env::SimDisk& disk) {
  Files files;
  for (const std::string& name : disk.FileNames())
    if (absl::StatusOr<ByteBuffer> bytes = disk.DurableContents(name); bytes.ok()) files[name] = *std::move(bytes);
  return files;
}

// The letters of a file's name: segment, deaths, journal ...
std::string KindOf(const std::string& file) {
  std::string kind;
  for (const char c : file)
    if (c < '0' || c > '9') kind += c;
  return kind;
}

// The name of a file of the same kind.
std::string NumberedName(const std::string& file, uint64_t number) {
  return file.substr(0, file.find('-') + 1) + absl::StrCat(absl::Hex(number, absl::kZeroPad16)) +
         file.substr(file.rfind('.'));
}

// Another store in which nearly the same was done.
absl::StatusOr<Files> TwinFiles(const Workload& workload, uint64_t seed) {
  env::SimDisk disk(seed);
  History history(workload.schema);
  WorkloadRunner runner(&disk, &workload, &history);
  Operation first;
  first.parts.push_back({BatchPart::Kind::kPut, 77, 0});
  ASHLAR_RETURN_IF_ERROR(runner.Step(first));
  for (const Operation& operation : workload.operations) ASHLAR_RETURN_IF_ERROR(runner.Step(operation));
  runner.Die();
  return FilesOf(*disk.CrashedCopy(CrashPolicy::KeepAll()));
}

// The same store, in which something else was done from some moment on.
absl::StatusOr<Files> OtherLifeFiles(const env::SimDisk& then, const Workload& workload) {
  const std::unique_ptr<env::SimDisk> disk = then.CrashedCopy(CrashPolicy::KeepAll());
  const env::Env env = disk->NewProcess();
  std::array<std::byte, 8> spent{};
  env.entropy->Fill(spent);  // or new files would get the ids that they got in the other life
  Options options = workload.options;
  options.create_if_missing = false;
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenOn(env, kLabDirectory, options, nullptr));
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t key = 0; key < 3; ++key)
      ASHLAR_RETURN_IF_ERROR(store->Put(WorkloadDocument(store->schema(), round + key, 50 + round, 3)).status());
    ASHLAR_RETURN_IF_ERROR(store->Flush());
  }
  ASHLAR_RETURN_IF_ERROR(store->Close());
  return FilesOf(*disk);
}

// Journal files of another life are left out: they are what that life acknowledged, and nothing but the operator can
// know that it is not this one's.
absl::Status AddReplacements(uint64_t seed, const std::vector<Files>& versions, const env::SimDisk& middle,
                             Specimen* specimen) {
  const Files now = FilesOf(*specimen->disk);
  const auto add = [&now, specimen](const std::string& file, std::string what, const ByteBuffer& bytes) {
    if (now.at(file) != bytes) specimen->replacements.push_back({file, std::move(what), bytes});
  };
  ASHLAR_ASSIGN_OR_RETURN(const Files twin, TwinFiles(specimen->workload, seed + 1));
  ASHLAR_ASSIGN_OR_RETURN(const Files other_life, OtherLifeFiles(middle, specimen->workload));
  for (const auto& [file, bytes] : now) {
    if (const auto found = twin.find(file); found != twin.end()) add(file, "another store's", found->second);
    const bool is_journal = absl::StrContains(file, "journal");
    if (const auto found = other_life.find(file); found != other_life.end() && !is_journal)
      add(file, "that of another life", found->second);
    for (const auto& [other, others_bytes] : now)
      if (other != file && KindOf(other) == KindOf(file)) add(file, other, others_bytes);
    std::set<uint64_t> seen;
    for (size_t i = 0; i < versions.size(); ++i)
      if (const auto found = versions[i].find(file);
          found != versions[i].end() && seen.insert(Checksum(found->second, 0)).second)
        add(file, absl::StrCat("its version after operation ", i), found->second);
  }
  // Under the first number that no file of that kind has.
  for (const auto& [file, bytes] : twin) {
    for (uint64_t number = 1; KindOf(file).ends_with("-.seg") || KindOf(file).ends_with("-.dea"); ++number) {
      const std::string name = NumberedName(file, number);
      if (now.contains(name)) continue;
      specimen->strangers.push_back({name, "another store's file", bytes});
      break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Specimen>> MakeSpecimen(const Workload& workload, uint64_t seed, bool closed) {
  auto specimen = std::make_shared<Specimen>();
  specimen->name = absl::StrCat(workload.name, closed ? " closed" : " killed");
  specimen->workload = workload;
  specimen->history = std::make_unique<History>(workload.schema);
  env::SimDisk disk(seed);
  WorkloadRunner runner(&disk, &specimen->workload, specimen->history.get());
  std::vector<Files> versions;
  std::unique_ptr<env::SimDisk> middle;
  for (const Operation& operation : specimen->workload.operations) {
    ASHLAR_RETURN_IF_ERROR(runner.Step(operation));
    versions.push_back(FilesOf(*disk.CrashedCopy(CrashPolicy::KeepAll())));
    if (versions.size() == specimen->workload.operations.size() / 2) middle = disk.CrashedCopy(CrashPolicy::KeepAll());
  }
  if (closed) {
    Operation reopen;
    reopen.kind = Operation::Kind::kReopen;  // closes, and opening changes nothing
    ASHLAR_RETURN_IF_ERROR(runner.Step(reopen));
  }
  runner.Die();
  specimen->least = closed ? specimen->history->acknowledged() : specimen->history->least_after_power_loss();
  specimen->disk = disk.CrashedCopy(CrashPolicy::KeepAll());
  // Once for all threads, which only read afterwards.
  for (size_t i = specimen->least; i < specimen->history->state_count(); ++i)
    for (size_t query = 0; query < LabQueries().size(); ++query) specimen->history->state(i)->Expected(query);
  if (middle != nullptr) ASHLAR_RETURN_IF_ERROR(AddReplacements(seed, versions, *middle, specimen.get()));
  return std::shared_ptr<const Specimen>(std::move(specimen));
}

// One damaged copy.
class Examination {
 public:
  // `least`: the state before which nothing may be shown.
  Examination(const Specimen& specimen, size_t least, env::SimDisk* disk, uint64_t seed)
      : specimen_(specimen), least_(least), disk_(*disk), prng_(seed) {}
  // `must_be_noticed`: silence is a finding, even if nothing wrong is read. `must_not_matter`: so is any error at opening.
  absl::Status Run(bool must_be_noticed, bool must_not_matter);

 private:
  absl::Status Open();
  absl::Status Read();
  absl::Status Search(const Snapshot& snapshot, const LabState& state);
  absl::Status Write();
  // OK for what damage may cause; `ok` tells whether it was no error at all.
  static absl::Status Judge(const absl::Status& status, std::string_view what, bool* ok);

  const Specimen& specimen_;
  const size_t least_;
  env::SimDisk& disk_;
  Prng prng_;
  env::Env env_{};
  std::unique_ptr<Store> store_;
  LabStatePtr state_;  // once it is known
  DocumentList expected_;
};

absl::Status Examination::Judge(const absl::Status& status, std::string_view what, bool* ok) {
  *ok = status.ok();
  if (status.ok() || IsTyped(status)) return absl::OkStatus();
  return Annotate(status, absl::StrCat(ToAbsl(what), " gave an error of the wrong type"));
}

absl::Status Examination::Open() {
  env_ = disk_.NewProcess();
  Options options = specimen_.workload.options;
  options.create_if_missing = false;
  options.open_mode = prng_.OneIn(2) ? OpenMode::kMapped : OpenMode::kArray;
  absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(env_, kLabDirectory, options, nullptr);
  bool ok = false;
  ASHLAR_RETURN_IF_ERROR(Judge(store.status(), "Open", &ok));
  if (ok) store_ = *std::move(store);
  return absl::OkStatus();
}

absl::Status Examination::Read() {
  const Snapshot snapshot = store_->TakeSnapshot();
  const absl::StatusOr<DocumentList> found = ReadDocuments(snapshot);
  bool ok = false;
  ASHLAR_RETURN_IF_ERROR(Judge(found.status(), "Scan", &ok));
  const History& history = *specimen_.history;
  if (ok) {
    size_t index = 0;
    state_ = history.Match(*found, store_->schema(), store_->GetStats().watermark, least_, &index);
    if (state_ == nullptr)
      return Internal(absl::StrCat("the ", found->size(), " documents read are not what was written"));
    expected_ = *found;
  } else if (least_ == history.acknowledged()) {
    state_ = history.state(history.acknowledged());  // what can be read must be of it
    expected_ = state_->documents;
  }
  return state_ == nullptr ? absl::OkStatus() : Search(snapshot, *state_);
}

absl::Status Examination::Search(const Snapshot& snapshot, const LabState& state) {
  bool ok = false;
  for (int i = 0; i < 2; ++i) {
    const size_t query = prng_.Below(LabQueries().size());
    const absl::StatusOr<PreparedQuery> prepared = store_->Prepare(LabQueries()[query].query);
    if (!prepared.ok()) return prepared.status();
    const absl::Status status = CompareSearch(snapshot, *prepared, LabQueries()[query].options, state.Expected(query));
    ASHLAR_RETURN_IF_ERROR(Judge(status, "Search", &ok));
  }
  for (const auto& [id, document] : state.documents) {
    const std::optional<StoredDocument> expected = state.oracle->GetById(id);
    const absl::StatusOr<StoredDocument> got =
        specimen_.workload.schema.key.empty() ? snapshot.GetById(id) : snapshot.Get(expected->key);
    ASHLAR_RETURN_IF_ERROR(Judge(CompareGet(got, expected), "Get", &ok));
  }
  return absl::OkStatus();
}

// Put, flush, merge, reopen; in between nothing wrong is shown.
absl::Status Examination::Write() {
  bool ok = false;
  const Document probe = WorkloadDocument(store_->schema(), kProbeKey, 1, 0);
  const absl::StatusOr<Sequence> written = store_->Put(probe);
  ASHLAR_RETURN_IF_ERROR(Judge(written.status(), "Put", &ok));
  if (!ok) return absl::OkStatus();
  expected_.emplace_back(*written, HashDocument(probe));
  ASHLAR_RETURN_IF_ERROR(Judge(store_->Flush(), "Flush", &ok));
  ASHLAR_RETURN_IF_ERROR(Judge(store_->Merge(), "Merge", &ok));
  ASHLAR_RETURN_IF_ERROR(Judge(store_->Check().status(), "Check", &ok));
  ASHLAR_RETURN_IF_ERROR(Judge(store_->Close(), "Close", &ok));
  ASHLAR_RETURN_IF_ERROR(Open());
  if (store_ == nullptr) return absl::OkStatus();
  const absl::StatusOr<DocumentList> found = ReadDocuments(store_->TakeSnapshot());
  ASHLAR_RETURN_IF_ERROR(Judge(found.status(), "Scan", &ok));
  if (!ok) return absl::OkStatus();
  if (state_ != nullptr && *found != expected_) return Internal("after writing, other documents are read");
  return absl::OkStatus();
}

absl::Status Examination::Run(bool must_be_noticed, bool must_not_matter) {
  ASHLAR_RETURN_IF_ERROR(Open());
  if (store_ == nullptr && must_not_matter) return Internal("the store does not open");
  if (store_ == nullptr) return absl::OkStatus();
  absl::Status status;
  if (must_be_noticed) {
    const absl::StatusOr<std::vector<Finding>> findings = store_->Check();
    if (findings.ok() && findings->empty()) status = Internal("neither opening nor Check noticed it");
  }
  if (status.ok()) status = Read();
  if (status.ok()) status = Write();
  disk_.KillProcess(env_);
  store_.reset();
  return status;
}

absl::Status RemoveFile(const std::string& file, env::SimDisk* disk) {
  const env::Env env = disk->NewProcess();
  const absl::Status removed = env.files->Remove(file);
  disk->KillProcess(env);
  return removed;
}

absl::Status DoDamage(const Specimen& specimen, const Damage& damage, env::SimDisk* disk) {
  switch (damage.kind) {
    case Damage::Kind::kBit:
      return disk->FlipBit(damage.file, damage.at);
    case Damage::Kind::kCut:
      return disk->TruncateFile(damage.file, damage.at);
    case Damage::Kind::kSectors:
      return disk->ExchangeSectors(damage.file, damage.at, damage.other_file, damage.other_sector);
    case Damage::Kind::kMissing:
      return RemoveFile(damage.file, disk);
    case Damage::Kind::kRenamed:
      ASHLAR_RETURN_IF_ERROR(disk->PutFile(damage.other_file, *specimen.disk->DurableContents(damage.file)));
      // The status page would tell which file is the right one; power loss may leave none.
      ASHLAR_RETURN_IF_ERROR(RemoveFile(absl::StrCat(kLabDirectory, "/status"), disk));
      return RemoveFile(damage.file, disk);
    case Damage::Kind::kStranger:
      return disk->PutFile(damage.file, specimen.strangers[damage.at].bytes);
    case Damage::Kind::kReplaced:
      return disk->PutFile(damage.file, specimen.replacements[damage.at].bytes);
  }
  return absl::OkStatus();
}

// Segments, deaths files and catalogs to the last bit, and headers of journals; where their records end is not known for certain.
bool IsCovered(const Specimen& specimen, const Damage& damage) {
  if (damage.kind != Damage::Kind::kBit) return false;
  const std::string kind = KindOf(damage.file);
  for (const std::string_view covered : {"catalog-.cat", "deaths-.dea", "segment-.seg"})
    if (kind.ends_with(covered)) return true;
  if (!kind.ends_with("journal-.jnl")) return false;
  const absl::StatusOr<ByteBuffer> bytes = specimen.disk->DurableContents(damage.file);
  const absl::StatusOr<format::JournalHeader> header =
      bytes.ok() ? format::DecodeJournalHeader(*bytes, damage.file) : bytes.status();
  return header.ok() && damage.at / 8 < format::EncodeJournalHeader(*header).size();
}

// An exchange damages two places. The journal's last records and the status page, which alone knows of them when nothing follows
// them: that is the known limit of docs/durability.md, and looks like power loss in the middle of a write.
size_t LeastAfter(const Specimen& specimen, const Damage& damage) {
  const auto is_status = [](const std::string& file, uint64_t sector) { return file.ends_with("/status") && sector == 0; };
  const bool with_status = is_status(damage.file, damage.at) || is_status(damage.other_file, damage.other_sector);
  return damage.kind == Damage::Kind::kSectors && with_status ? 0 : specimen.least;
}

// The status page, of which a damaged one counts as none.
bool IsOnlyEvidence(const Damage& damage) {
  return damage.kind == Damage::Kind::kBit && KindOf(damage.file).ends_with("/status");
}

absl::Status Examine(LabRun* run, const Specimen& specimen, const Damage& damage) {
  const std::unique_ptr<env::SimDisk> copy = specimen.disk->CrashedCopy(CrashPolicy::KeepAll());
  ASHLAR_RETURN_IF_ERROR(DoDamage(specimen, damage, copy.get()));
  ++run->counters().damages;
  run->states().Insert(copy->DurableHash());
  Examination examination(specimen, LeastAfter(specimen, damage), copy.get(), damage.at);
  absl::Status status = examination.Run(IsCovered(specimen, damage), IsOnlyEvidence(damage));
  if (status.ok() && damage.kind == Damage::Kind::kStranger) {
    const absl::StatusOr<ByteBuffer> now = copy->Contents(damage.file);
    if (!now.ok() || *now != specimen.strangers[damage.at].bytes) status = Internal("a stranger's file was touched");
  }
  return status.ok() ? status : Annotate(status, DamageText(specimen, damage));
}

// The tasks for one file: `bits` flips, then cuts.
void AddTasks(LabRun* run, const std::shared_ptr<const Specimen>& specimen, const std::string& file, uint64_t bytes,
              std::vector<Task>* tasks) {
  const uint64_t share = std::max<uint32_t>(1, run->options().damage_share);
  const uint64_t lab_seed = run->options().seed;
  const auto add = [&](uint64_t end, Damage::Kind kind) {
    for (uint64_t first = 0; first < end; first += kDamagesPerTask * share) {
      tasks->push_back([=] {
        Prng prng(lab_seed ^ (first * 31) ^ (kind == Damage::Kind::kCut));
        for (uint64_t i = 0; i < kDamagesPerTask && !run->Done(); ++i) {
          const uint64_t at = first + i * share + (share == 1 ? 0 : prng.Below(share));
          if (at >= end) continue;
          const absl::Status status = Examine(run, *specimen, {kind, file, at, {}, 0});
          if (!status.ok()) run->AddFinding(Driver::kDamage, specimen->workload.name, lab_seed, status);
        }
      });
    }
  };
  add(bytes * 8, Damage::Kind::kBit);
  add(bytes, Damage::Kind::kCut);
}

// One task each: all replacements of files, and exchanges of random sectors.
void AddTasks(LabRun* run, const std::shared_ptr<const Specimen>& specimen, std::vector<Task>* tasks) {
  const uint64_t lab_seed = run->options().seed;
  const auto examine = [=](const Damage& damage) {
    const absl::Status status = Examine(run, *specimen, damage);
    if (!status.ok()) run->AddFinding(Driver::kDamage, specimen->workload.name, lab_seed, status);
  };
  tasks->push_back([=] {
    for (const std::string& file : specimen->disk->FileNames())
      if (!run->Done()) examine({Damage::Kind::kMissing, file, 0, {}, 0});
    for (const auto& [file, bytes] : FilesOf(*specimen->disk))
      if (KindOf(file).ends_with("-.jnl") && !run->Done())
        examine({Damage::Kind::kRenamed, file, 0, NumberedName(file, kUnusedNumber), 0});
    for (size_t i = 0; i < specimen->strangers.size() && !run->Done(); ++i)
      examine({Damage::Kind::kStranger, specimen->strangers[i].file, i, {}, 0});
    for (size_t i = 0; i < specimen->replacements.size() && !run->Done(); ++i)
      examine({Damage::Kind::kReplaced, specimen->replacements[i].file, i, {}, 0});
  });
  tasks->push_back([=] {
    std::vector<std::pair<std::string, uint64_t>> sectors;
    for (const auto& [file, bytes] : FilesOf(*specimen->disk))
      for (uint64_t i = 0; (i + 1) * env::kSimSectorBytes <= bytes.size(); ++i) sectors.emplace_back(file, i);
    if (sectors.size() < 2) return;
    Prng prng(lab_seed);
    for (uint64_t n = 0; n < kSectorPairs / std::max<uint32_t>(1, run->options().damage_share) && !run->Done(); ++n) {
      const auto& [file, sector] = sectors[prng.Below(sectors.size())];
      const auto& [other, other_sector] = sectors[prng.Below(sectors.size())];
      examine({Damage::Kind::kSectors, file, sector, other, other_sector});
    }
  });
}

}  // namespace

void RunDamage(LabRun* run, const std::vector<Workload>& workloads) {
  std::vector<Task> tasks;
  const uint64_t lab_seed = run->options().seed;
  for (const Workload& workload : workloads) {
    const bool listed = std::find(std::begin(kDamaged), std::end(kDamaged), workload.name) != std::end(kDamaged);
    if (!listed && run->options().workloads.empty()) continue;
    for (const bool closed : {false, true}) {
      const auto specimen = MakeSpecimen(workload, SeedOf(lab_seed, workload.name), closed);
      if (!specimen.ok()) {
        run->AddFinding(Driver::kDamage, workload.name, lab_seed, specimen.status());
        continue;
      }
      AddTasks(run, *specimen, &tasks);
      for (const std::string& file : (*specimen)->disk->FileNames()) {
        const absl::StatusOr<ByteBuffer> bytes = (*specimen)->disk->DurableContents(file);
        if (bytes.ok()) AddTasks(run, *specimen, file, bytes->size(), &tasks);
      }
    }
  }
  RunTasks(run, tasks);
}

}  // namespace ashlar::testing
