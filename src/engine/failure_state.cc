#include "src/engine/failure_state.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar {

std::string_view StoreStateName(StoreState state) {
  switch (state) {
    case StoreState::kHealthy:
      return "healthy";
    case StoreState::kNoSpace:
      return "no_space";
    case StoreState::kFailedSync:
      return "failed_sync";
    case StoreState::kClosed:
      return "closed";
    case StoreState::kDamaged:
      return "damaged";
  }
  return "unknown";
}

}  // namespace ashlar

namespace ashlar::engine {

std::string_view RemedyOf(StoreState state) {
  switch (state) {
    case StoreState::kHealthy:
      return "";
    case StoreState::kNoSpace:
      return "make room on the device; the next write, flush or merge tries again";
    case StoreState::kFailedSync:
      return "close the store and open it again; recovery keeps what is durable";
    case StoreState::kClosed:
      return "open the store again";
    case StoreState::kDamaged:
      return "put the file back from a checkpoint and open the store again, or take out what is readable with `ashlar salvage`";
  }
  return "";
}

void FailureState::Enter(StoreState state, const absl::Status& cause, int64_t now_ms) {
  if (state_ == state) return;  // since the first time, for the first cause
  state_ = state;
  cause_ = std::string(cause.message());
  since_ms_ = now_ms;
}

void FailureState::Failed(const absl::Status& status, bool outcome_unknown, int64_t now_ms) {
  MutexLock lock(&mutex_);
  ++failures_;
  last_failure_ = std::string(status.message());
  last_failure_ms_ = now_ms;
  if (outcome_unknown) {
    if (SiteIsOn(Site::kWriteFailedSyncIsFinal)) Enter(StoreState::kFailedSync, status, now_ms);
  } else if (absl::IsResourceExhausted(status) && state_ == StoreState::kHealthy) {
    Enter(StoreState::kNoSpace, status, now_ms);
  }
}

void FailureState::Succeeded(int64_t now_ms) {
  MutexLock lock(&mutex_);
  if (state_ == StoreState::kNoSpace) Enter(StoreState::kHealthy, absl::OkStatus(), now_ms);
}

void FailureState::Close(int64_t now_ms) {
  MutexLock lock(&mutex_);
  Enter(StoreState::kClosed, absl::OkStatus(), now_ms);
}

StoreState FailureState::state() const {
  MutexLock lock(&mutex_);
  return state_;
}

absl::Status FailureState::CheckWritable() const {
  MutexLock lock(&mutex_);
  if (state_ != StoreState::kFailedSync) return absl::OkStatus();
  return FailedPrecondition(absl::StrCat("since ", absl::FormatTime(absl::FromUnixMillis(since_ms_), absl::UTCTimeZone()),
                                         " nothing more is acknowledged, because a sync failed: ", cause_, " (",
                                         ToAbsl(RemedyOf(state_)), ")"));
}

void FailureState::Report(Stats* stats) const {
  MutexLock lock(&mutex_);
  stats->state = state_;
  stats->state_cause = cause_;
  stats->state_since_ms = since_ms_;
  stats->state_remedy = std::string(RemedyOf(state_));
  stats->last_failure = last_failure_;
  stats->last_failure_ms = last_failure_ms_;
  stats->counters["failures"] = failures_;
}

}  // namespace ashlar::engine
