// The store lane: what the path costs that a service runs. Write, flush, merge, open (mapped and array), first query,
// and the query shapes over overlay, several segments, one segment mapped and in arrays, all with the same hits and
// score bits.
#include <memory>

#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/lane.h"
#include "bench/query_shapes.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

// More documents than this don't go into one overlay.
constexpr uint64_t kOverlayDocumentsMax = 1'000'000;

absl::Status Timed(std::string_view phase, const std::string& directory, Report* report,
                   const std::function<absl::Status()>& work) {
  const uint64_t start = NowNs();
  ASHLAR_RETURN_IF_ERROR(work());
  report->AddRow(PhaseRow(phase, NowNs() - start, directory));
  return absl::OkStatus();
}

using Hashes = std::map<std::string, std::string>;

absl::Status BuildStore(const LaneOptions& options, Report* report, Hashes* hashes) {
  Options store_options;
  store_options.durability = Durability::kOs;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options.directory, BenchSchema(), store_options));
  ASHLAR_ASSIGN_OR_RETURN(const WriteTimes times, WriteCorpus(options.corpus, store.get()));
  report->corpus()["postings_words"] = times.words;
  Json row = PhaseRow("write", times.write_ns, options.directory);
  row["docs_per_s"] =
      static_cast<uint64_t>(static_cast<double>(options.corpus.documents) * 1e9 / static_cast<double>(times.write_ns));
  row["peak_bytes"] = PeakBytes();
  report->AddRow(std::move(row));
  ASHLAR_RETURN_IF_ERROR(Timed("flush", options.directory, report, [&] { return store->Flush(); }));
  ASHLAR_RETURN_IF_ERROR(RunShapes(*store, "mapped", options.runs, report, hashes));
  ASHLAR_RETURN_IF_ERROR(Timed("merge", options.directory, report, [&] { return store->Merge(1); }));
  const Stats stats = store->GetStats();
  for (const SegmentStats& segment : stats.segments) {
    Json sections = {{"phase", "segment"}, {"documents", segment.documents}};
    uint64_t total = 0;
    for (const auto& [section, bytes] : segment.bytes) {
      sections[section] = bytes;
      total += bytes;
    }
    sections["bytes"] = total;
    report->AddRow(std::move(sections));
  }
  return store->Close();
}

absl::Status OpenAndQuery(const LaneOptions& options, OpenMode mode, Report* report, Hashes* hashes) {
  std::unique_ptr<Store> store;
  ASHLAR_ASSIGN_OR_RETURN(Json row, TimeOpening(options.directory, mode, &store));
  report->AddRow(std::move(row));
  return RunShapes(*store, mode == OpenMode::kMapped ? "mapped" : "array", options.runs, report, hashes);
}

absl::Status QueryOverlay(const LaneOptions& options, Report* report, Hashes* hashes) {
  Options store_options;
  store_options.overlay_bytes_max = uint64_t{1} << 40;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::OpenInMemory(BenchSchema(), store_options));
  ASHLAR_RETURN_IF_ERROR(WriteCorpus(options.corpus, store.get()).status());
  ASHLAR_RETURN_IF_ERROR(RunShapes(*store, "overlay", options.runs, report, hashes));
  return store->Close();
}

absl::Status RunPhases(const LaneOptions& options, Report* report) {
  Hashes hashes;
  ASHLAR_RETURN_IF_ERROR(BuildStore(options, report, &hashes));
  ASHLAR_RETURN_IF_ERROR(OpenAndQuery(options, OpenMode::kMapped, report, &hashes));
  ASHLAR_RETURN_IF_ERROR(OpenAndQuery(options, OpenMode::kArray, report, &hashes));
  if (options.corpus.documents <= kOverlayDocumentsMax) {
    ASHLAR_RETURN_IF_ERROR(QueryOverlay(options, report, &hashes));
  } else {
    report->NotMeasured("overlay: more than 1,000,000 documents");
  }
  for (const char* what : {"prefix: not in the query language yet", "mapped_cold: the page cache is not dropped",
                           "decoded, blocks_skipped"}) {
    report->NotMeasured(what);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunStoreLane(const LaneOptions& options) {
  Report report("store", options);
  ASHLAR_RETURN_IF_ERROR(WithDirectory(options, [&] { return RunPhases(options, &report); }));
  return report.Finish();
}

}  // namespace ashlar::bench
