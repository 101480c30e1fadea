// Search: runs a prepared query over the sources of one snapshot.
#include <vector>

#include "src/base/status.h"
#include "src/engine/read_view.h"
#include "src/query/execution.h"

namespace ashlar::engine {

absl::StatusOr<SearchResult> Search(const SnapshotState& snapshot, const PreparedQuery& query,
                                    const SearchOptions& options) {
  if (query.terms() == nullptr) return InvalidArgument("the query was not prepared");
  const View& view = snapshot.view();
  const Cell& cell = snapshot.cell();
  query::IndexStatistics statistics;
  statistics.live_documents = cell.live_documents;
  statistics.length_sum = [&view, &cell](format::IndexId index) {
    // A field that was added after this snapshot is in no document of it.
    const size_t at = SumIndex(*view.schema, index);
    return at < cell.length_sums.size() ? cell.length_sums[at] : 0;
  };
  ASHLAR_ASSIGN_OR_RETURN(query::Execution execution,
                          query::Execution::Create(*query.terms(), *view.schema, options, std::move(statistics)));

  std::vector<SegmentSource> segments;
  segments.reserve(view.segments.size());
  for (size_t i = 0; i < view.segments.size(); ++i)
    segments.emplace_back(*view.segments[i], view.bases[i], cell.sequence);
  const OverlaySource overlay(*view.overlay, cell.overlay_documents, view.bases.back(), cell.sequence);
  std::vector<query::SourceRun<SegmentSource>> runs;
  runs.reserve(segments.size());
  for (size_t i = 0; i < segments.size(); ++i) runs.emplace_back(&segments[i], static_cast<uint32_t>(i));
  query::SourceRun<OverlaySource> overlay_run(&overlay, static_cast<uint32_t>(segments.size()));

  for (query::SourceRun<SegmentSource>& run : runs) ASHLAR_RETURN_IF_ERROR(execution.AddStatistics(&run));
  ASHLAR_RETURN_IF_ERROR(execution.AddStatistics(&overlay_run));
  execution.FinishWeights();
  for (query::SourceRun<SegmentSource>& run : runs) ASHLAR_RETURN_IF_ERROR(execution.Run(&run));
  ASHLAR_RETURN_IF_ERROR(execution.Run(&overlay_run));
  return execution.Results();
}

}  // namespace ashlar::engine
