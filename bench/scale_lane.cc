// The scale lane: what building, memory, bytes, opening and each query shape cost as the store grows.
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/lane.h"
#include "bench/query_shapes.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

class ScaleLane {
 public:
  ScaleLane(const LaneOptions& options, Report* report) : options_(options), report_(report) {}

  absl::Status Run() {
    for (const uint64_t size : options_.sizes) {
      corpus_ = options_.corpus;
      corpus_.documents = size;
      ASHLAR_RETURN_IF_ERROR(WithDirectory(options_, [&] { return MeasureSize(); }));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MeasureSize() {
    ASHLAR_RETURN_IF_ERROR(Build());
    std::unique_ptr<Store> array, mapped;
    ASHLAR_ASSIGN_OR_RETURN(Json row, TimeOpening(options_.directory, OpenMode::kArray, &array));
    AddRow(std::move(row));
    ASHLAR_RETURN_IF_ERROR(array->Close());
    array.reset();
    ASHLAR_ASSIGN_OR_RETURN(row, TimeOpening(options_.directory, OpenMode::kMapped, &mapped));
    AddRow(std::move(row));
    return MeasureShapes(*mapped);
  }

  // As a service fills a store: overlays of the usual size, merges as they fall due; then into one segment.
  absl::Status Build() {
    const uint64_t own_before = OwnBytes();
    ResetPeakBytes();
    const uint64_t peak_before = PeakBytesSinceReset();
    Options store_options;
    store_options.durability = Durability::kOs;
    ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options_.directory, BenchSchema(), store_options));
    ASHLAR_ASSIGN_OR_RETURN(const WriteTimes times, WriteCorpus(corpus_, store.get()));
    const uint64_t flush_start = NowNs();
    ASHLAR_RETURN_IF_ERROR(store->Flush());
    const uint64_t build_ns = times.write_ns + NowNs() - flush_start;
    const uint64_t peak = PeakBytesSinceReset(), own = OwnBytes();
    const uint64_t merge_start = NowNs();
    ASHLAR_RETURN_IF_ERROR(store->Merge(1));
    const uint64_t merge_ns = NowNs() - merge_start;
    Json row = PhaseRow("build", build_ns, options_.directory);
    row["docs_per_s"] = static_cast<double>(corpus_.documents) * 1e9 / static_cast<double>(build_ns);
    row["merge_seconds"] = static_cast<double>(merge_ns) / 1e9;
    row["peak_bytes"] = peak;
    row["peak_bytes_per_doc"] = PerDocument(peak, peak_before);
    row["retained_bytes_per_doc"] = PerDocument(own, own_before);
    const Stats stats = store->GetStats();
    row["index_bytes_per_doc"] = PerDocument(SegmentBytes(stats), 0);
    row["merges"] = stats.counters.contains("merges") ? stats.counters.at("merges") : 0;
    AddRow(std::move(row));
    return store->Close();
  }

  absl::Status MeasureShapes(const Store& store) {
    const Snapshot snapshot = store.TakeSnapshot();
    const Arm arm;
    std::map<std::string, std::string> hashes;
    for (const QueryShape& shape : ZipfShapes()) {
      ASHLAR_ASSIGN_OR_RETURN(
          const std::vector<ArmResult> results,
          RunShape(store, snapshot, shape, {arm}, "mapped", options_.runs, /*report=*/nullptr, &hashes));
      const double us = results[0].latencies.MedianUs();
      Json row = QueryRow(snapshot, shape, arm, "mapped", results[0]);
      if (const auto smaller = smaller_us_.find(shape.name); smaller != smaller_us_.end())
        row["times_smaller"] = us / smaller->second;
      smaller_us_[shape.name] = us;
      AddRow(std::move(row));
    }
    return absl::OkStatus();
  }

  static uint64_t SegmentBytes(const Stats& stats) {
    uint64_t total = 0;
    for (const SegmentStats& segment : stats.segments)
      for (const auto& [section, bytes] : segment.bytes) total += bytes;
    return total;
  }

  double PerDocument(uint64_t bytes, uint64_t before) const {
    return (static_cast<double>(bytes) - static_cast<double>(before)) / static_cast<double>(corpus_.documents);
  }

  void AddRow(Json row) {
    Json with_size = {{"docs", corpus_.documents}};
    with_size.update(row);
    report_->AddRow(std::move(with_size));
  }

  const LaneOptions& options_;
  Report* const report_;
  ZipfOptions corpus_;
  std::map<std::string, double> smaller_us_;  // by shape: the median at the size before
};

}  // namespace

absl::Status RunScaleLane(const LaneOptions& options) {
  Report report("scale", options);
  report.corpus()["docs"] = options.sizes;
  ASHLAR_RETURN_IF_ERROR(ScaleLane(options, &report).Run());
  report.NotMeasured("opening and first query with a cold page cache");
  report.NotMeasured(
      "retained_bytes_per_doc leaves out what is mapped: the page cache has it, and the system may take it back");
  return report.Finish();
}

}  // namespace ashlar::bench
