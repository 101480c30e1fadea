#include "src/testing/workload_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/engine.h"

namespace ashlar::testing {
namespace {

// Opening may meet a fault; it comes once, so that soon an attempt meets none.
constexpr int kOpenAttemptsMax = 4;

bool HasLiveKey(const WriteBatch& batch, const Oracle& oracle) {
  return std::any_of(batch.operations().begin(), batch.operations().end(), [&oracle](const WriteBatch::Operation& one) {
    const Value* key = one.document.Find(oracle.schema().key);
    return key != nullptr && oracle.Get(std::get<std::string>(*key)).has_value();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenOn(env::Env env, const std::string& directory, const Options& options,
                                              const Schema* schema) {
  auto engine = engine::Engine::Open(env, nullptr, directory, options, schema);
  if (!engine.ok()) return engine.status();
  return std::make_unique<Store>(*std::move(engine));
}

absl::Status CompareLive(const Store& store, const History& history) {
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList shown, ReadDocuments(store.TakeSnapshot()));
  const LabState& state = history.acknowledged_state();
  if (shown != state.documents)
    return Internal(absl::StrCat("the store shows ", shown.size(), " documents which are not the ",
                                 state.documents.size(), " acknowledged ones"));
  if (store.GetStats().watermark != state.watermark) return Internal("the store shows another watermark");
  if (store.schema() != state.oracle->schema()) return Internal("the store shows another schema");
  return absl::OkStatus();
}

absl::Status CompareCopy(const env::Env& env, const History& history, uint64_t* fingerprint) {
  *fingerprint = 0;
  if (history.copies().empty()) return absl::OkStatus();
  Options options;
  options.read_only = true;
  const absl::StatusOr<std::unique_ptr<Store>> copy = OpenOn(env, kLabCopyDirectory, options, nullptr);
  if (absl::IsNotFound(copy.status()) && !history.copy_is_promised()) return absl::OkStatus();
  if (!copy.ok()) return Annotate(copy.status(), "the checkpoint");
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList shown, ReadDocuments((*copy)->TakeSnapshot()));
  for (const LabStatePtr& state : history.copies()) {
    if (shown != state->documents || (*copy)->GetStats().watermark != state->watermark ||
        (*copy)->schema() != state->oracle->schema())
      continue;
    *fingerprint = state->fingerprint;
    return absl::OkStatus();
  }
  return Internal(absl::StrCat("the checkpoint holds ", shown.size(), " documents that are no state it was made of"));
}

bool IsNewerCopy(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) &&
         (absl::StrContains(status.message(), "which is newer than the store's") ||
          absl::StrContains(status.message(), "has a newer schema than the store"));
}

WorkloadRunner::WorkloadRunner(env::SimDisk* disk, const Workload* workload, History* history)
    : disk_(disk), workload_(*workload), history_(*history), options_(workload->options) {}

WorkloadRunner::~WorkloadRunner() { Die(); }

void WorkloadRunner::Die() {
  if (env_.files != nullptr) disk_->KillProcess(env_);
  store_.reset();
  bulk_ = false;
}

void WorkloadRunner::LosePower() {
  Die();
  power_lost_ = true;
}

bool WorkloadRunner::FailedSync() const {
  return store_ != nullptr && store_->GetStats().state == StoreState::kFailedSync;
}

absl::Status WorkloadRunner::Excuse(const absl::Status& status, std::string_view what) {
  if (power_is_cut() || disk_->counters().faults > faults_before_) return absl::OkStatus();
  if (damage_excused_ && absl::IsDataLoss(status)) return absl::OkStatus();
  if (room_limited_ && absl::IsResourceExhausted(status)) return absl::OkStatus();
  if (FailedSync() && absl::IsFailedPrecondition(status)) return absl::OkStatus();
  return Annotate(status, absl::StrCat(ToAbsl(what), " failed although nothing was wrong"));
}

absl::Status WorkloadRunner::Run() {
  faults_before_ = disk_->counters().faults;
  ASHLAR_RETURN_IF_ERROR(Open());
  for (const Operation& operation : workload_.operations) {
    if (power_is_cut()) break;
    if (absl::Status status = Step(operation); !status.ok())
      return Annotate(status, absl::StrCat("operation ", operations_done_, ", line ", operation.line));
  }
  return absl::OkStatus();
}

absl::Status WorkloadRunner::Step(const Operation& operation) {
  faults_before_ = disk_->counters().faults;
  if (store_ == nullptr) ASHLAR_RETURN_IF_ERROR(Open());
  if (operation.at.has_value()) {
    beside_.push_back(operation);
    return absl::OkStatus();
  }
  if (store_ != nullptr) {
    doing_ = &operation;
    absl::Status status = Do(operation);
    doing_ = nullptr;
    status.Update(std::exchange(beside_status_, absl::OkStatus()));
    ASHLAR_RETURN_IF_ERROR(status);
  }
  ++operations_done_;
  if (power_is_cut() || store_ == nullptr) return absl::OkStatus();
  const bool quarantined = store_->GetStats().state == StoreState::kDamaged;
  if (!FailedSync() && !quarantined) return absl::OkStatus();
  // After a failed sync reads go on; every acknowledged batch is still shown, and nothing else.
  if (!quarantined) ASHLAR_RETURN_IF_ERROR(CompareNow());
  Die();
  return Open();
}

bool WorkloadRunner::MayGoBeside(env::WorkStep step, const Operation& operation) const {
  using Kind = Operation::Kind;
  if (operation.at != step || store_ == nullptr || doing_ == nullptr || bulk_ || power_is_cut() || FailedSync())
    return false;
  const bool in_upkeep = doing_->kind == Kind::kFlush || doing_->kind == Kind::kMerge || doing_->kind == Kind::kPurge ||
                         doing_->kind == Kind::kRunPending;
  // A write's own flush for back-pressure, before it, stops all writers.
  const bool behind_write =
      doing_->kind == Kind::kWrite && outer_visible_.has_value() && store_->TakeSnapshot().sequence() != *outer_visible_;
  if (!in_upkeep && !behind_write) return false;
  // These wait for the flush that they would go beside.
  if (options_.durability == Durability::kOff) return false;
  if (store_->GetStats().overlay_bytes >= 2 * options_.overlay_bytes_max) return false;
  const bool in_copying = step == env::WorkStep::kMergeCopying || step == env::WorkStep::kMergeWritten;
  return operation.kind != Kind::kFlush || in_copying;
}

absl::Status WorkloadRunner::AcknowledgeOuter() {
  if (!outer_visible_.has_value() || outer_acknowledged_) return absl::OkStatus();
  outer_existed_ = history_.begun_existed();
  outer_acknowledged_ = true;
  ASHLAR_RETURN_IF_ERROR(history_.Acknowledge(store_->TakeSnapshot().sequence()));
  outer_state_ = history_.acknowledged();
  return absl::OkStatus();
}

void WorkloadRunner::Reached(env::WorkStep step) {
  while (beside_status_.ok() && !beside_.empty() && MayGoBeside(step, beside_.front())) {
    const Operation operation = beside_.front();
    beside_.pop_front();
    beside_status_ = AcknowledgeOuter();
    const std::optional<Sequence> outer_visible = std::exchange(outer_visible_, std::nullopt);
    const bool outer_acknowledged = outer_acknowledged_;
    const size_t outer_state = outer_state_;
    const std::vector<bool> outer_existed = outer_existed_;
    const Operation* const outer = std::exchange(doing_, nullptr);  // steps within are not looked at
    if (beside_status_.ok()) beside_status_ = Do(operation);
    doing_ = outer;
    outer_visible_ = outer_visible;
    outer_acknowledged_ = outer_acknowledged;
    outer_state_ = outer_state;
    outer_existed_ = outer_existed;
  }
}

absl::Status WorkloadRunner::CompareNow() const {
  if (store_ == nullptr || bulk_ || power_is_cut()) return absl::OkStatus();
  const uint64_t faults = disk_->counters().faults;
  const absl::Status status = CompareLive(*store_, history_);
  if (damage_excused_ && absl::IsDataLoss(status)) return absl::OkStatus();
  return disk_->counters().faults > faults ? absl::OkStatus() : status;
}

absl::Status WorkloadRunner::Open() {
  absl::Status status;
  for (int attempt = 0; attempt < kOpenAttemptsMax; ++attempt) {
    const uint64_t faults = disk_->counters().faults;
    status = OpenOnce();
    if (status.ok() || power_is_cut()) return absl::OkStatus();
    Die();
    if (disk_->counters().faults == faults) return Annotate(status, "opening failed although nothing was wrong");
  }
  return absl::OkStatus();  // later, perhaps
}

absl::Status WorkloadRunner::OpenOnce() {
  env_ = disk_->NewProcess();
  env_.observer = this;
  Options options = options_;
  options.create_if_missing = !history_.created();
  ASHLAR_ASSIGN_OR_RETURN(store_, OpenOn(env_, kLabDirectory, options, &workload_.schema));
  history_.SetCreated();
  history_.SetSealed(false);
  acknowledged_ns_.clear();
  ASHLAR_ASSIGN_OR_RETURN(const DocumentList found, ReadDocuments(store_->TakeSnapshot()));
  const size_t least = power_lost_       ? history_.least_after_power_loss()
                       : closed_cleanly_ ? history_.acknowledged()
                                         : history_.least_after_kill();
  size_t index = 0;
  LabStatePtr state = history_.Match(found, store_->schema(), store_->GetStats().watermark, least, &index);
  if (state == nullptr)
    return Internal(absl::StrCat("after reopening, the ", found.size(), " documents are no state from ", least, " to ",
                                 history_.state_count() - 1));
  history_.ContinueFrom(least, index, std::move(state));
  history_.SetJournaled(options.durability != Durability::kOff);
  // What survived a power loss is on the disk; and in kOff opening flushes.
  if (power_lost_ || options.durability == Durability::kOff) history_.SetDurable();
  closed_cleanly_ = power_lost_ = false;
  return absl::OkStatus();
}

absl::Status WorkloadRunner::CloseStore() {
  const absl::Status status = store_->Close();
  if (status.ok()) {
    closed_cleanly_ = true;
    history_.SetDurable();
    history_.SetSealed(options_.durability != Durability::kOff);
  }
  const absl::Status excused = status.ok() ? status : Excuse(status, "closing");
  Die();
  return excused;
}

absl::Status WorkloadRunner::Do(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kWrite:
      return Write(operation);
    case Operation::Kind::kAddField:
      return AddField(operation);
    case Operation::Kind::kCheckpoint:
      return Checkpoint();
    case Operation::Kind::kWait:
      disk_->AdvanceClock(operation.number * 1'000'000);
      return absl::OkStatus();
    case Operation::Kind::kFault:
      disk_->AddFault(operation.fault);
      return absl::OkStatus();
    case Operation::Kind::kReopen:
      ASHLAR_RETURN_IF_ERROR(CompareNow());
      ASHLAR_RETURN_IF_ERROR(CloseStore());
      break;
    case Operation::Kind::kKill:
      ASHLAR_RETURN_IF_ERROR(CompareNow());
      Die();
      break;
    default:
      return Upkeep(operation);
  }
  if (power_is_cut()) return absl::OkStatus();
  if (operation.options.has_value()) options_ = *operation.options;
  if (options_.durability == Durability::kOff) history_.SetSealed(false);  // opening reserves sequences
  return Open();
}

absl::Status WorkloadRunner::Upkeep(const Operation& operation) {
  absl::Status status;
  const char* what = "";
  const uint64_t now_ns = env_.clock->MonotonicNs();
  const size_t before = history_.acknowledged();  // what comes beside it is not promised by it
  switch (operation.kind) {
    case Operation::Kind::kSync:
      what = "Sync";
      status = store_->Sync();
      break;
    case Operation::Kind::kFlush:
      what = "Flush";
      status = store_->Flush();
      break;
    case Operation::Kind::kMerge:
      what = "Merge";
      status = store_->Merge(static_cast<uint32_t>(operation.number));
      break;
    case Operation::Kind::kPurge:
      if (options_.durability == Durability::kOff) return absl::OkStatus();  // not done without a journal
      what = "Purge";
      status = store_->Purge(static_cast<uint32_t>(operation.number));
      break;
    default:
      what = "RunPending";
      status = store_->RunPending();
      break;
  }
  if (!status.ok()) return Excuse(status, what);
  if (operation.kind == Operation::Kind::kRunPending) {
    NoteInterval(now_ns);
    return absl::OkStatus();
  }
  history_.SetDurable(before);
  bulk_ = false;
  return absl::OkStatus();
}

absl::Status WorkloadRunner::Checkpoint() {
  if (bulk_) return absl::OkStatus();  // what the oracle holds is not visible yet
  history_.BeginCopy();
  CheckpointOptions options;
  options.incremental = true;
  const absl::Status status = store_->Checkpoint(kLabCopyDirectory, options).status();
  if (!status.ok()) return IsNewerCopy(status) ? absl::OkStatus() : Excuse(status, "Checkpoint");
  history_.AcknowledgeCopy();
  const uint64_t faults = disk_->counters().faults;
  uint64_t fingerprint = 0;
  const absl::Status copied = CompareCopy(env_, history_, &fingerprint);
  if (copied.ok() || power_is_cut() || disk_->counters().faults > faults) return absl::OkStatus();
  return damage_excused_ && absl::IsDataLoss(copied) ? absl::OkStatus() : copied;
}

// What was acknowledged an interval before a call that checks for that is durable when the call returns.
void WorkloadRunner::NoteInterval(uint64_t called_ns) {
  for (const auto& [acknowledged_ns, state] : acknowledged_ns_)
    if (called_ns >= acknowledged_ns + uint64_t{options_.interval_ms} * 1'000'000) history_.SetDurable(state);
}

absl::Status WorkloadRunner::AddField(const Operation& operation) {
  const std::vector<Field> fields = {AddedField(operation.name)};
  if (history_.oracle().schema().IndexOf(operation.name) >= 0) {
    const absl::Status status = store_->AddFields(fields);
    if (status.ok()) return Internal("a field was added twice");
    return absl::IsInvalidArgument(status) ? absl::OkStatus() : Excuse(status, "AddFields");
  }
  history_.BeginFields(fields);
  const absl::Status status = store_->AddFields(fields);
  if (status.ok()) {
    history_.AcknowledgeFields();
    history_.SetDurable();
    bulk_ = false;
    return status;
  }
  if (!power_is_cut() && !FailedSync()) history_.Refuse();
  return Excuse(status, "AddFields");
}

absl::Status WorkloadRunner::Write(const Operation& operation) {
  const WriteBatch batch = MakeBatch(operation.parts, history_.oracle(), &version_);
  // A fault may have refused the deletion of what is to be loaded: it is not new then.
  if (operation.write.keys_are_new && disk_->counters().faults > 0 && HasLiveKey(batch, history_.oracle()))
    return absl::OkStatus();
  const absl::Status expected = history_.Begin(batch, operation.write.watermark);
  // A fault may have refused the batch before, whose document this one was to collide with.
  if (expected.ok() && operation.must_fail && disk_->counters().faults == 0)
    return InvalidArgument("the workload says 'fail', and nothing is wrong");
  const bool had_failed = FailedSync();
  const uint64_t now_ns = env_.clock->MonotonicNs();
  outer_visible_ = store_->TakeSnapshot().sequence();
  outer_acknowledged_ = false;
  const absl::StatusOr<WriteResult> result = store_->Write(batch, operation.write);
  const bool acknowledged = outer_acknowledged_;  // with batches that came beside its flush behind it
  outer_visible_.reset();
  if (!expected.ok()) {
    if (result.ok()) return Internal("a batch that breaks a rule was accepted");
    // Which of several broken rules is named does not matter.
    const absl::Status& refused = result.status();
    const bool names_a_rule =
        absl::IsInvalidArgument(refused) || absl::IsAlreadyExists(refused) || absl::IsFailedPrecondition(refused);
    return names_a_rule ? absl::OkStatus() : Excuse(refused, "a bad batch");
  }
  if (!result.ok()) {
    if (power_is_cut()) return absl::OkStatus();
    if (!FailedSync() || had_failed) {
      history_.Refuse();
    } else {
      history_.LeaveUnknown();
    }
    return Excuse(result.status(), "a write");
  }
  if (!acknowledged) ASHLAR_RETURN_IF_ERROR(history_.Acknowledge(result->sequence));
  const size_t own = acknowledged ? outer_state_ : history_.acknowledged();
  if (operation.write.keys_are_new) {
    bulk_ = true;
  } else {
    bulk_ = false;
    if (result->existed != (acknowledged ? outer_existed_ : history_.begun_existed()))
      return Internal("a batch said wrongly what existed before");
  }
  const Durability asked = operation.write.durability.value_or(options_.durability);
  if (std::min(asked, options_.durability) == Durability::kSync ||
      (options_.durability == Durability::kOff && asked != Durability::kOff)) {
    history_.SetDurable(own);
  }
  if (options_.durability == Durability::kInterval) {
    NoteInterval(now_ns);
    acknowledged_ns_.emplace_back(env_.clock->MonotonicNs(), history_.acknowledged());
  }
  return absl::OkStatus();
}

}  // namespace ashlar::testing
