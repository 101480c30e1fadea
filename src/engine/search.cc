// Search: runs a prepared query over the sources of one snapshot. Where damage may be passed over, it is run again
// without the segment that was met, for what was counted in it is in the scores of all others.
#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/engine/read_view.h"
#include "src/query/execution.h"
#include "src/query/search_arena.h"

namespace ashlar::engine {
namespace {

// One run over the sources that are left.
class Run {
 public:
  Run(const SnapshotState& snapshot, const std::vector<bool>& left_out)
      : view_(snapshot.view()), cell_(snapshot.cell()) {
    const size_t segments = view_.segments.size();
    sources_.reserve(segments);  // runs point into it
    runs_.reserve(segments);
    for (size_t i = 0; i < segments; ++i) {
      if (!left_out.empty() && left_out[i]) continue;
      sources_.emplace_back(*view_.segments[i], view_.bases[i], cell_.sequence, arena_.memory());
      runs_.emplace_back(&sources_.back(), static_cast<uint32_t>(i), arena_.memory());
    }
    overlays_.reserve(snapshot.overlay_count());
    overlay_runs_.reserve(snapshot.overlay_count());
    for (size_t i = 0; i < snapshot.overlay_count(); ++i) {
      if (snapshot.overlay_documents(i) == 0) continue;
      overlays_.emplace_back(snapshot.overlay(i), snapshot.overlay_documents(i), view_.bases[segments + i],
                             cell_.sequence);
      overlay_runs_.emplace_back(&overlays_.back(), static_cast<uint32_t>(segments + i), arena_.memory());
    }
  }

  absl::StatusOr<SearchResult> Search(const PreparedQuery& query, const SearchOptions& options) {
    query::IndexStatistics statistics;
    statistics.live_documents = cell_.live_documents;
    statistics.length_sum = [this, needed = options.b != 0 && options.k1 != 0](format::IndexId index) {
      if (needed) NoteUnknownLengths(index);
      // A field that was added after this snapshot is in no document of it.
      const size_t at = SumIndex(*view_.schema, index);
      return at < cell_.length_sums.size() ? cell_.length_sums[at] : 0;
    };
    ASHLAR_ASSIGN_OR_RETURN(
        query::Execution execution,
        query::Execution::Create(*query.terms(), *view_.schema, options, std::move(statistics), arena_.memory()));
    for (query::SourceRun<SegmentSource>& run : runs_)
      ASHLAR_RETURN_IF_ERROR(Checked(run, execution.AddStatistics(&run)));
    for (query::SourceRun<OverlaySource>& run : overlay_runs_) ASHLAR_RETURN_IF_ERROR(execution.AddStatistics(&run));
    execution.FinishWeights();
    ASHLAR_RETURN_IF_ERROR(unknown_lengths_);
    std::pmr::vector<std::pair<int32_t, query::SourceRun<SegmentSource>*>> order(arena_.memory());
    order.reserve(runs_.size());
    for (query::SourceRun<SegmentSource>& run : runs_) order.emplace_back(INT32_MAX, &run);
    const size_t sources = runs_.size() + overlay_runs_.size();
    if (sources > 1) {
      for (auto& [bound, run] : order) {
        absl::StatusOr<int32_t> known = execution.Prepare(run, sources);
        ASHLAR_RETURN_IF_ERROR(Checked(*run, known.status()));
        bound = *known;
      }
      for (query::SourceRun<OverlaySource>& run : overlay_runs_)
        ASHLAR_RETURN_IF_ERROR(execution.Prepare(&run, sources).status());
      // What is likely to hold the best hits comes first and spares the others work.
      std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first > b.first : a.second->index < b.second->index;
      });
    }
    for (const auto& [bound, run] : order) {
      ASHLAR_RETURN_IF_ERROR(Checked(*run, execution.Run(run)));
      // Nothing of the segment is read after this, so what was read counts.
      if (!execution.matches_nothing()) ASHLAR_RETURN_IF_ERROR(Checked(*run, LiveOf(*run).CheckIntact()));
    }
    for (query::SourceRun<OverlaySource>& run : overlay_runs_) ASHLAR_RETURN_IF_ERROR(execution.Run(&run));
    return execution.Results();
  }

  // The segment that the error came from, if it came from one.
  std::optional<size_t> failed() const { return failed_; }

 private:
  const LiveSegment& LiveOf(const query::SourceRun<SegmentSource>& run) const { return *view_.segments[run.index]; }
  absl::Status Checked(const query::SourceRun<SegmentSource>& run, absl::Status status) {
    if (!status.ok()) failed_ = run.index;
    return LiveOf(run).Explained(status);
  }

  // A sum that is not exact must not get into a score: the segment that it was estimated for fails the run.
  void NoteUnknownLengths(format::IndexId index) {
    for (const query::SourceRun<SegmentSource>& run : runs_) {
      if (!unknown_lengths_.ok()) return;
      unknown_lengths_ = LiveOf(run).LengthsKnown(index);
      if (!unknown_lengths_.ok()) failed_ = run.index;
    }
  }

  query::ArenaLoan arena_;  // ends last
  const View& view_;
  const Cell& cell_;
  std::pmr::vector<SegmentSource> sources_{arena_.memory()};
  std::pmr::vector<query::SourceRun<SegmentSource>> runs_{arena_.memory()};
  std::pmr::vector<OverlaySource> overlays_{arena_.memory()};
  std::pmr::vector<query::SourceRun<OverlaySource>> overlay_runs_{arena_.memory()};
  std::optional<size_t> failed_;
  absl::Status unknown_lengths_;
};

}  // namespace

absl::StatusOr<SearchResult> Search(const SnapshotState& snapshot, const PreparedQuery& query,
                                    const SearchOptions& options) {
  if (query.terms() == nullptr) return InvalidArgument("the query was not prepared");
  const std::vector<std::shared_ptr<LiveSegment>>& segments = snapshot.view().segments;
  std::vector<bool> left_out;  // by segment; empty: none
  uint64_t documents_not_searched = 0;
  std::vector<absl::Status> damage;
  while (true) {  // at most once a segment, and once more
    Run run(snapshot, left_out);
    absl::StatusOr<SearchResult> result = run.Search(query, options);
    if (result.ok()) {
      result->documents_not_searched = documents_not_searched;
      result->damage = std::move(damage);
      return result;
    }
    if (!options.allow_partial || !run.failed().has_value() || !IsDamage(result.status())) return result.status();
    left_out.resize(segments.size(), false);
    left_out[*run.failed()] = true;
    documents_not_searched += segments[*run.failed()]->LiveCount(snapshot.cell().sequence);
    damage.push_back(result.status());
  }
}

}  // namespace ashlar::engine
