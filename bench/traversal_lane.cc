// The traversal lane: every traversal on every query shape, on one store, alternating; what the choice rule took beside
// the best; and what an exact total costs on top.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/lane.h"
#include "bench/query_shapes.h"
#include "src/base/prng.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

// The chosen traversal beside the best of those forced, in one query.
struct Choice {
  size_t best = 1;  // arm
  double chosen_us = 0, best_us = 0;
  double ratio() const { return chosen_us / best_us; }
};
Choice CompareArms(const std::vector<ArmResult>& results) {
  Choice choice;
  for (const size_t forced : {2, 3})
    if (results[forced].latencies.MedianUs() < results[choice.best].latencies.MedianUs()) choice.best = forced;
  choice.chosen_us = results[0].latencies.MedianUs();
  choice.best_us = results[choice.best].latencies.MedianUs();
  return choice;
}

// One to six words, their ranks drawn evenly by logarithm; one query in four asks for all of its words.
QueryShape RandomQuery(uint64_t number, uint64_t vocabulary, Prng* prng) {
  constexpr uint64_t kPages[] = {10, 10, 10, 100, 1000};
  QueryShape query{absl::StrCat("random ", number), "", kPages[prng->Below(std::size(kPages))]};
  const bool all = prng->OneIn(4);
  for (uint64_t words = 1 + prng->Below(6); words > 0; --words) {
    const auto rank = static_cast<uint64_t>(std::exp(prng->Uniform() * std::log(static_cast<double>(vocabulary))));
    absl::StrAppend(&query.query, all ? "+w" : "w", rank, "x ");
  }
  return query;
}

absl::Status MeasureRandom(const LaneOptions& options, const Store& store, const Snapshot& snapshot,
                           const std::vector<Arm>& arms, Report* report) {
  Prng prng(options.corpus.seed);
  std::vector<std::pair<double, Json>> choices;
  for (uint64_t i = 0; i < options.random; ++i) {
    const QueryShape query = RandomQuery(i, options.corpus.vocabulary, &prng);
    std::map<std::string, std::string> hashes;
    ASHLAR_ASSIGN_OR_RETURN(const std::vector<ArmResult> results,
                            RunShape(store, snapshot, query, arms, "random", std::min<uint64_t>(options.runs, 7),
                                     /*report=*/nullptr, &hashes));
    const Choice choice = CompareArms(results);
    choices.emplace_back(choice.ratio(), Json{{"query", query.query},
                                              {"k", query.k},
                                              {"chosen", TraversalName(results[0].result.traversal)},
                                              {"chosen_p50_us", choice.chosen_us},
                                              {"best", TraversalName(arms[choice.best].traversal)},
                                              {"best_p50_us", choice.best_us},
                                              {"ratio", choice.ratio()}});
  }
  std::sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  report->AddRow({{"random", options.random},
                  {"ratio_p50", choices[(choices.size() - 1) / 2].first},
                  {"ratio_p99", choices[(choices.size() - 1) * 99 / 100].first},
                  {"ratio_max", choices.back().first}});
  constexpr size_t kWorst = 10;
  for (size_t i = choices.size() - std::min(choices.size(), kWorst); i < choices.size(); ++i)
    report->AddRow(choices[i].second);
  return absl::OkStatus();
}

// What one search allocates, and from where.
absl::Status TraceAllocations(const Store& store, const Snapshot& snapshot, const QueryShape& shape) {
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery query, store.Prepare(std::string_view(shape.query)));
  const SearchOptions options = OptionsOf(shape, {});
  ASHLAR_RETURN_IF_ERROR(snapshot.Search(query, options).status());  // the thread's scratch is there now
  std::fprintf(stderr, "search %s\n", shape.name.c_str());
  const AllocationTrace trace;
  return snapshot.Search(query, options).status();
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
    if (options.trace_allocations) ASHLAR_RETURN_IF_ERROR(TraceAllocations(*store, snapshot, shape));
    const Choice choice = CompareArms(results);
    report->AddRow({{"shape", shape.name},
                    {"chosen", TraversalName(results[0].result.traversal)},
                    {"chosen_p50_us", choice.chosen_us},
                    {"best", TraversalName(arms[choice.best].traversal)},
                    {"best_p50_us", choice.best_us},
                    {"ratio", choice.ratio()}});
  }
  if (options.random != 0) ASHLAR_RETURN_IF_ERROR(MeasureRandom(options, *store, snapshot, arms, report));
  report->NotMeasured("levels of ASHLAR_SIMD other than the one that this run had");
  return hashes.empty() ? NotFound(absl::StrCat("there is no shape ", options.shape)) : absl::OkStatus();
}

}  // namespace

absl::Status RunTraversalLane(const LaneOptions& options) {
  Report report("traversal", options);
  NoteForm(options, &report);
  ASHLAR_RETURN_IF_ERROR(WithStore(options, [&] { return MeasureShapes(options, &report); }));
  return report.Finish();
}

}  // namespace ashlar::bench
