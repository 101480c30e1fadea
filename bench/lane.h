// What all lanes of ashlar-bench share: options, the machine's facts, latencies, and the report as JSON.
#ifndef ASHLAR_BENCH_LANE_H_
#define ASHLAR_BENCH_LANE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/corpus.h"

namespace ashlar::bench {

struct LaneOptions {
  ZipfOptions corpus;
  std::string directory;  // where stores are made; must not exist, is removed at the end
  std::string json_file;  // empty: no JSON
  uint64_t runs = 50;     // timed repetitions of a query
  // Of lanes that measure one store.
  bool keep = false;  // use the store that is there, and leave it there
  uint32_t segments = 1;
  uint32_t deleted = 0;            // percent of the documents
  bool array = false;              // segments loaded instead of mapped
  std::string shape;               // one only
  bool trace_allocations = false;  // once a query, on standard error
  uint64_t random = 0;             // queries more, drawn by the corpus's seed
  // Of the concurrency lane.
  std::vector<uint32_t> callers = {1, 2, 4, 8};
  double seconds = 0.2;  // of one arm in one round
  // Of the scale lane.
  std::vector<uint64_t> sizes = {10'000, 100'000, 1'000'000};
  // Of lanes with a text corpus and other engines.
  std::string corpus_file, queries_file;
  uint64_t per_class = 0;  // queries of a class that are run; 0: all
  bool peers = false;
  std::vector<std::string> peer_names;  // commit: none means all
  // Of the commit lane, and of the ingest lane.
  std::vector<uint64_t> batches = {1, 10, 200};
  std::vector<uint32_t> writers = {1, 2, 4, 8};
  uint64_t commits = 500;  // of an arm, in all its rounds
  uint64_t rounds = 3;
};

using Json = nlohmann::ordered_json;

// CPU, memory, kernel, file system of `directory`, compiler, versions of libraries.
Json MachineFacts(const std::string& directory);
Json LoadAverages();
// The most memory this process ever had resident.
uint64_t PeakBytes();
// From now on PeakBytesSinceReset counts anew.
void ResetPeakBytes();
uint64_t PeakBytesSinceReset();
// Resident, and not of files: what was taken and not given back.
uint64_t OwnBytes();
// What this process gave to calls that write, and how many such calls it made.
struct Written {
  uint64_t bytes = 0, calls = 0;
  Written Since(const Written& before) const { return {bytes - before.bytes, calls - before.calls}; }
};
Written WrittenBytes();
// CPU time of all threads of this process, in whole ticks of the system.
uint64_t ProcessCpuNs();
double Median(std::vector<double> values);  // of one or more
// Of the files under a directory.
uint64_t DirectoryBytes(const std::string& directory);
uint64_t NowNs();
// "phase", "seconds" and the "bytes" under the directory.
Json PhaseRow(std::string_view phase, uint64_t ns, const std::string& directory);

// Times of one thing done several times.
class Latencies {
 public:
  void Add(uint64_t ns) { ns_.push_back(ns); }
  uint64_t count() const { return ns_.size(); }
  void AddAll(const Latencies& other) { ns_.insert(ns_.end(), other.ns_.begin(), other.ns_.end()); }
  double MedianUs() const;  // of one or more
  double QuantileUs(double part) const;
  // "n", "p50_us", "p99_us", "min_us", "mean_us" into a row.
  void Report(Json* row) const;

 private:
  std::vector<uint64_t> ns_;
};

// Gathers rows, prints each as it comes, and writes the JSON object at the end.
class Report {
 public:
  Report(std::string lane, const LaneOptions& options);
  void AddRow(Json row);
  void NotMeasured(std::string what);
  Json& corpus() { return corpus_; }
  absl::Status Finish();

 private:
  std::string lane_;
  LaneOptions options_;
  Json load_before_, corpus_;
  Json rows_ = Json::array(), not_measured_ = Json::array();
};

absl::Status RunCommitLane(const LaneOptions& options);
absl::Status RunConcurrencyLane(const LaneOptions& options);
absl::Status RunIngestLane(const LaneOptions& options);
absl::Status RunPruneLane(const LaneOptions& options);
absl::Status RunScaleLane(const LaneOptions& options);
absl::Status RunStoreLane(const LaneOptions& options);
absl::Status RunTextLane(const LaneOptions& options);
absl::Status RunTraversalLane(const LaneOptions& options);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_LANE_H_
