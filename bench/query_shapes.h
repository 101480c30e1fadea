// The query shapes of the zipf corpus, and running them over a store.
#ifndef ASHLAR_BENCH_QUERY_SHAPES_H_
#define ASHLAR_BENCH_QUERY_SHAPES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ashlar/ashlar.h"
#include "bench/allocations.h"
#include "bench/lane.h"

namespace ashlar::bench {

struct QueryShape {
  std::string name;
  std::string query;
  uint64_t k;
};

// BM25 k1 1.5, b 0.75; any of the words unless the query says otherwise.
const std::vector<QueryShape>& ZipfShapes();

// A way to run a shape.
struct Arm {
  Traversal traversal = Traversal::kAuto;
  Total total = Total::kNone;
};
std::string_view TraversalName(Traversal traversal);  // "auto", "exhaustive", "daat", "pruned"

SearchOptions OptionsOf(const QueryShape& shape, const Arm& arm);

// Remembers the hash of a page, which covers DocumentIds and score bits, by the shape's name. Internal: there was
// another one before.
absl::Status CheckHash(const Snapshot& snapshot, const QueryShape& shape, std::string_view mode,
                       const SearchResult& result, std::map<std::string, std::string>* hashes);

// What one arm took.
struct ArmResult {
  SearchResult result;
  Latencies latencies;
  Allocations allocations;  // of one search, the last
  std::string hash;
};

// The row of a query.
Json QueryRow(const Snapshot& snapshot, const QueryShape& shape, const Arm& arm, std::string_view mode,
              const ArmResult& result);

// Runs a shape by all arms over one snapshot: round after round, in each every arm a few times after one warm run. The
// hash of the results is the same for all modes and arms, or that is an error. Adds a row for each arm, if there is a
// report.
absl::StatusOr<std::vector<ArmResult>> RunShape(const Store& store, const Snapshot& snapshot, const QueryShape& shape,
                                                const std::vector<Arm>& arms, std::string_view mode, uint64_t runs,
                                                Report* report, std::map<std::string, std::string>* hashes);

// Every shape by each of the traversals, without a total.
absl::Status RunShapes(const Store& store, std::string_view mode, uint64_t runs, Report* report,
                       std::map<std::string, std::string>* hashes);

// The time of one query from its text to its hits, in microseconds.
absl::StatusOr<double> TimeOneQuery(const Store& store, const char* query);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_QUERY_SHAPES_H_
