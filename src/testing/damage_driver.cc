// The damage driver: bits flipped and files cut in small stores, at rest. What is then read is right or a typed error, and
// nothing that the store writes afterwards makes damage look whole.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
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
constexpr uint64_t kProbeKey = 1'000'000;
// Of the built-in workloads, those whose stores together hold every kind of file and section.
constexpr std::string_view kDamaged[] = {"deletes_after_flush_sync", "fields_sync", "keyless_os", "merges_os",
                                         "watermarks_sync"};

bool IsTyped(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status);
}

// A store at rest, and what it must hold.
struct Specimen {
  std::string name;
  std::unique_ptr<env::SimDisk> disk;
  std::unique_ptr<History> history;
  Workload workload;
  size_t least = 0;  // a shorter prefix would be a loss
};

struct Damage {
  std::string file;
  uint64_t at = 0;  // a bit, or the size that is left
  bool cut = false;
};

std::string DamageText(const Specimen& specimen, const Damage& damage) {
  return absl::StrCat(specimen.name, ", ", damage.file, damage.cut ? " cut to " : " bit ", damage.at);
}

absl::StatusOr<std::shared_ptr<const Specimen>> MakeSpecimen(const Workload& workload, uint64_t seed, bool closed) {
  auto specimen = std::make_shared<Specimen>();
  specimen->name = absl::StrCat(workload.name, closed ? " closed" : " killed");
  specimen->workload = workload;
  specimen->history = std::make_unique<History>(workload.schema);
  env::SimDisk disk(seed);
  WorkloadRunner runner(&disk, &specimen->workload, specimen->history.get());
  ASHLAR_RETURN_IF_ERROR(runner.Run());
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
  return std::shared_ptr<const Specimen>(std::move(specimen));
}

// One damaged copy.
class Examination {
 public:
  Examination(const Specimen& specimen, env::SimDisk* disk, uint64_t seed)
      : specimen_(specimen), disk_(*disk), prng_(seed) {}
  absl::Status Run();

 private:
  absl::Status Open();
  absl::Status Read();
  absl::Status Search(const Snapshot& snapshot, const LabState& state);
  absl::Status Write();
  // OK for what damage may cause; `ok` tells whether it was no error at all.
  static absl::Status Judge(const absl::Status& status, std::string_view what, bool* ok);

  const Specimen& specimen_;
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
    state_ = history.Match(*found, store_->schema(), store_->GetStats().watermark, specimen_.least, &index);
    if (state_ == nullptr) return Internal(absl::StrCat("the ", found->size(), " documents read are not what was written"));
    expected_ = *found;
  } else if (specimen_.least == history.acknowledged()) {
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
    const absl::Status status =
        CompareSearch(snapshot, *prepared, LabQueries()[query].options, state.Expected(query));
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

absl::Status Examination::Run() {
  ASHLAR_RETURN_IF_ERROR(Open());
  if (store_ == nullptr) return absl::OkStatus();
  absl::Status status = Read();
  if (status.ok()) status = Write();
  disk_.KillProcess(env_);
  store_.reset();
  return status;
}

absl::Status Examine(LabRun* run, const Specimen& specimen, const Damage& damage) {
  const std::unique_ptr<env::SimDisk> copy = specimen.disk->CrashedCopy(CrashPolicy::KeepAll());
  const absl::Status done =
      damage.cut ? copy->TruncateFile(damage.file, damage.at) : copy->FlipBit(damage.file, damage.at);
  if (!done.ok()) return done;
  ++run->counters().damages;
  run->states().Insert(copy->DurableHash());
  Examination examination(specimen, copy.get(), damage.at);
  const absl::Status status = examination.Run();
  return status.ok() ? status : Annotate(status, DamageText(specimen, damage));
}

// The tasks for one file: `bits` flips, then cuts.
void AddTasks(LabRun* run, const std::shared_ptr<const Specimen>& specimen, const std::string& file, uint64_t bytes,
              std::vector<Task>* tasks) {
  const uint64_t share = std::max<uint32_t>(1, run->options().damage_share);
  const uint64_t lab_seed = run->options().seed;
  const auto add = [&](uint64_t end, bool cut) {
    for (uint64_t first = 0; first < end; first += kDamagesPerTask * share) {
      tasks->push_back([=] {
        Prng prng(lab_seed ^ (first * 31) ^ cut);
        for (uint64_t i = 0; i < kDamagesPerTask && !run->Done(); ++i) {
          const uint64_t at = first + i * share + (share == 1 ? 0 : prng.Below(share));
          if (at >= end) continue;
          const absl::Status status = Examine(run, *specimen, {file, at, cut});
          if (!status.ok()) run->AddFinding(Driver::kDamage, specimen->workload.name, lab_seed, status);
        }
      });
    }
  };
  add(bytes * 8, false);
  add(bytes, true);
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
      for (const std::string& file : (*specimen)->disk->FileNames()) {
        const absl::StatusOr<ByteBuffer> bytes = (*specimen)->disk->DurableContents(file);
        if (bytes.ok()) AddTasks(run, *specimen, file, bytes->size(), &tasks);
      }
    }
  }
  RunTasks(run, tasks);
}

}  // namespace ashlar::testing
