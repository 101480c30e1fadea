// Snapshots, preparation and statistics: what a store tells without changing.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/query/prepare.h"
#include "src/text/analyzer.h"

namespace ashlar::engine {

std::shared_ptr<const SnapshotState> Engine::TakeSnapshot() const {
  auto [view, cell] = box_.Get();
  return std::make_shared<const SnapshotState>(std::move(view), std::move(cell), snapshots_, env_.clock->MonotonicNs());
}

absl::StatusOr<PreparedQuery> Engine::Prepare(const Query& query) const {
  ASHLAR_ASSIGN_OR_RETURN(const AnalyzerPool::Loan analyzer, analyzers_.Borrow());
  ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<const query::PreparedTerms> terms,
                          query::Prepare(query, analyzer.schema(), *analyzer));
  return PreparedQuery(std::move(terms));
}

Schema Engine::schema() const { return *box_.Get().first->schema; }

void Engine::NoteJournal() {
  MutexLock lock(&state_mutex_);
  journal_stats_.replay_bytes = replay_bytes_;
  if (journal_ == nullptr) {
    journal_stats_.journal_files = replay_end_.file_count;
    journal_stats_.journal_bytes = replay_end_.replayed_bytes;
    return;
  }
  journal_stats_.journal_files = journal_->file_count();
  journal_stats_.journal_bytes = journal_->file_bytes();
  const journal::WriterCounters counters = journal_->counters();
  counters_["journal_writes"] = counters.writes;
  counters_["journal_syncs"] = counters.syncs;
  counters_["journal_bytes"] = counters.bytes;
  counters_["journal_rotations"] = counters.rotations;
  counters_["journal_files_created"] = counters.files_created;
  counters_["journal_files_recycled"] = counters.files_recycled;
}

Stats Engine::GetStats() const {
  const auto [view, cell] = box_.Get();
  Stats stats;
  {
    MutexLock lock(&state_mutex_);
    stats = journal_stats_;
    stats.recovery = recovery_;
    stats.counters = counters_;
    for (const char* const name :
         {"flushes", "bytes_flushed", "merges", "bytes_merged", "purges", "stalls", "stall_ns"})
      stats.counters.try_emplace(name, 0);
    stats.analyzer_identity = analyzer_identity_;
  }
  failure_state_.Report(&stats);
  stats.scheduler = background_ ? Scheduler::kBackground : Scheduler::kCooperative;
  stats.merges_are_paused = scheduler_->merges_are_paused();
  if (const uint64_t flushed = stats.counters["bytes_flushed"]; flushed > 0)
    stats.write_amplification = static_cast<double>(flushed + stats.counters["bytes_merged"]) / static_cast<double>(flushed);
  stats.analyzer_identity_build = text::AnalyzerIdentity();
  stats.documents = cell->live_documents;
  stats.overlay_documents = cell->overlay_documents;
  stats.overlay_bytes = view->overlay->bytes();
  for (const FrozenOverlay& frozen : view->frozen) {
    stats.overlay_documents += frozen.documents;
    stats.overlay_bytes += frozen.overlay->bytes();
  }
  uint64_t total = stats.overlay_documents;
  for (const std::shared_ptr<LiveSegment>& live : view->segments) {
    SegmentStats segment;
    segment.id = live->entry().number;
    segment.documents = live->document_count();
    segment.deleted = live->death_count();
    segment.bytes = live->segment().SectionBytes();
    segment.analyzer_identity = live->segment().analyzer_identity();
    if (const std::optional<SegmentDamage> damage = live->damage()) {
      segment.damage = std::string(damage->status.message());
      // The first to be found is the state's cause.
      if (stats.state == StoreState::kHealthy ||
          (stats.state == StoreState::kDamaged && damage->since_ms < stats.state_since_ms)) {
        stats.state = StoreState::kDamaged;
        stats.state_cause = segment.damage;
        stats.state_since_ms = damage->since_ms;
        stats.state_remedy = std::string(RemedyOf(StoreState::kDamaged));
      }
    }
    total += segment.documents;
    stats.segments.push_back(std::move(segment));
  }
  stats.deleted = total - cell->live_documents;
  stats.visible_sequence = cell->sequence;
  stats.watermark = cell->watermark;
  stats.open_mode = options_.open_mode;
  const SnapshotList::Entry oldest = snapshots_->Oldest();
  stats.oldest_snapshot_sequence = oldest.sequence;
  if (oldest.taken_ns != 0) stats.oldest_snapshot_age_ms = (env_.clock->MonotonicNs() - oldest.taken_ns) / 1000000;
  return stats;
}

}  // namespace ashlar::engine
