// The traversal lane: every traversal on every query shape, on one store, alternating; what the choice rule took beside
// the best; and what an exact total costs on top.
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/lane.h"
#include "bench/query_shapes.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

// Every n-th document of the hundred, spread evenly.
absl::Status DeleteShare(uint64_t documents, uint32_t percent, Store* store) {
  WriteBatch batch;
  for (uint64_t i = 0; i < documents; ++i)
    if (i * percent / 100 != (i + 1) * percent / 100) batch.Delete(absl::StrCat("d", i));
  return batch.empty() ? absl::OkStatus() : store->Write(batch).status();
}

absl::Status BuildStore(const LaneOptions& options) {
  Options store_options;
  store_options.durability = Durability::kOs;
  store_options.merge_factor = 0;
  store_options.overlay_bytes_max = uint64_t{1} << 40;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options.directory, BenchSchema(), store_options));
  const uint64_t documents = options.corpus.documents;
  uint64_t flushed = 0;
  ASHLAR_RETURN_IF_ERROR(WriteCorpus(options.corpus, store.get(), [&](uint64_t written) {
                           if (written < documents * (flushed + 1) / options.segments) return absl::OkStatus();
                           ++flushed;
                           return store->Flush();
                         }).status());
  ASHLAR_RETURN_IF_ERROR(DeleteShare(documents, options.deleted, store.get()));
  return store->Close();
}

absl::Status MeasureShapes(const LaneOptions& options, Report* report) {
  Options store_options;
  store_options.read_only = true;
  store_options.open_mode = options.array ? OpenMode::kArray : OpenMode::kMapped;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Open(options.directory, store_options));
  const Snapshot snapshot = store->TakeSnapshot();
  const std::vector<Arm> arms = {{Traversal::kAuto},
                                 {Traversal::kPruned},
                                 {Traversal::kDaat},
                                 {Traversal::kExhaustive},
                                 {Traversal::kAuto, Total::kExact}};
  std::map<std::string, std::string> hashes;
  for (const QueryShape& shape : ZipfShapes()) {
    if (!options.shape.empty() && options.shape != shape.name) continue;
    ASHLAR_ASSIGN_OR_RETURN(
        const std::vector<ArmResult> results,
        RunShape(*store, snapshot, shape, arms, options.array ? "array" : "mapped", options.runs, report, &hashes));
    size_t best = 1;
    for (const size_t forced : {2, 3})
      if (results[forced].latencies.MedianUs() < results[best].latencies.MedianUs()) best = forced;
    const double chosen_us = results[0].latencies.MedianUs(), best_us = results[best].latencies.MedianUs();
    report->AddRow({{"shape", shape.name},
                    {"chosen", TraversalName(results[0].result.traversal)},
                    {"chosen_p50_us", chosen_us},
                    {"best", TraversalName(arms[best].traversal)},
                    {"best_p50_us", best_us},
                    {"ratio", chosen_us / best_us}});
  }
  report->NotMeasured("random queries; levels of ASHLAR_SIMD other than the one that this run had");
  return hashes.empty() ? NotFound(absl::StrCat("there is no shape ", options.shape)) : absl::OkStatus();
}

}  // namespace

absl::Status RunTraversalLane(const LaneOptions& options) {
  const bool there = std::filesystem::exists(options.directory);
  if (there && !options.keep) {
    return AlreadyExists(absl::StrCat(options.directory, ": exists; with --keep it is used as it is"));
  }
  Report report("traversal", options);
  report.corpus()["segments"] = options.segments;
  report.corpus()["deleted_percent"] = options.deleted;
  absl::Status status = there ? absl::OkStatus() : BuildStore(options);
  if (status.ok()) status = MeasureShapes(options, &report);
  std::error_code ignored;
  if (!options.keep) std::filesystem::remove_all(options.directory, ignored);
  if (status.ok()) status = report.Finish();
  return status;
}

}  // namespace ashlar::bench
