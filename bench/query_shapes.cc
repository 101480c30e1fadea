#include "bench/query_shapes.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/base/bytes.h"
#include "src/base/checksum.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr double kK1 = 1.5, kB = 0.75;
constexpr uint64_t kRounds = 5;

// Covers the DocumentIds and score bits of a page, in order.
absl::StatusOr<std::string> HashOf(const Snapshot& snapshot, const SearchResult& result) {
  std::vector<Handle> handles;
  for (const Hit& hit : result.hits) handles.push_back(hit.handle);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<DocumentId> ids, snapshot.FetchIds(handles));
  ByteBuffer bytes;
  ByteWriter writer(&bytes);
  for (size_t i = 0; i < ids.size(); ++i) {
    writer.U64(ids[i]);
    writer.U64(std::bit_cast<uint64_t>(result.hits[i].score));
  }
  return absl::StrFormat("%016x", Checksum(bytes, 0));
}

std::string_view TotalName(Total total) {
  return total == Total::kExact ? "exact" : total == Total::kBound ? "bound" : "none";
}

}  // namespace

const std::vector<QueryShape>& ZipfShapes() {
  static const auto* shapes = new std::vector<QueryShape>{
      {"one_tail", "w20000x", 10},
      {"three_tail", "w20000x w25000x w29000x", 10},
      {"one_head", "w1x", 10},
      {"two_mid", "w100x w300x", 10},
      {"five_mixed", "w1x w10x w100x w1000x w10000x", 10},
      {"ten_heads", "w1x w2x w3x w4x w5x w6x w7x w8x w9x w10x", 100},
      {"twenty_mixed",
       "w1x w2x w4x w8x w16x w32x w64x w128x w256x w512x w1024x w2048x w4096x w8192x w16384x w20000x w22000x w25000x "
       "w27000x "
       "w29000x",
       100},
      {"and_two", "+w10x +w50x", 10},
      {"phrase", "\"w1x w2x\"", 10},
  };
  return *shapes;
}

std::string_view TraversalName(Traversal traversal) {
  switch (traversal) {
    case Traversal::kAuto:
      return "auto";
    case Traversal::kExhaustive:
      return "exhaustive";
    case Traversal::kDaat:
      return "daat";
    case Traversal::kPruned:
      return "pruned";
  }
  return "unknown";
}

SearchOptions OptionsOf(const QueryShape& shape, const Arm& arm) {
  SearchOptions options;
  options.k = shape.k;
  options.k1 = kK1;
  options.b = kB;
  options.traversal = arm.traversal;
  options.total = arm.total;
  return options;
}

absl::Status CheckHash(const Snapshot& snapshot, const QueryShape& shape, std::string_view mode,
                       const SearchResult& result, std::map<std::string, std::string>* hashes) {
  ASHLAR_ASSIGN_OR_RETURN(const std::string hash, HashOf(snapshot, result));
  const std::string& first = hashes->try_emplace(shape.name, hash).first->second;
  if (first == hash) return absl::OkStatus();
  return Internal(absl::StrCat(shape.name, " over ", ToAbsl(mode), ": hash ", hash,
                               " where another mode or traversal gave ", first));
}

Json QueryRow(const Snapshot& snapshot, const QueryShape& shape, const Arm& arm, std::string_view mode,
              const ArmResult& result) {
  Json row = {{"name", shape.name},
              {"query", shape.query},
              {"k", shape.k},
              {"mode", mode},
              {"segments", snapshot.segment_count()},
              {"threads", 1},
              {"total", TotalName(arm.total)},
              {"traversal", TraversalName(arm.traversal)},
              {"hits", result.result.hits.size()}};
  if (arm.total == Total::kExact) row["matches"] = result.result.total;
  result.latencies.Report(&row);
  row["postings"] = result.result.postings_read;
  result.allocations.Report(&row);
  row["result_hash"] = result.hash;
  return row;
}

absl::StatusOr<std::vector<ArmResult>> RunShape(const Store& store, const Snapshot& snapshot, const QueryShape& shape,
                                                const std::vector<Arm>& arms, std::string_view mode, uint64_t runs,
                                                Report* report, std::map<std::string, std::string>* hashes) {
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery query, store.Prepare(std::string_view(shape.query)));
  std::vector<ArmResult> results(arms.size());
  const uint64_t runs_a_round = std::max<uint64_t>(1, runs / kRounds);
  for (uint64_t done = 0; done < runs; done += runs_a_round) {
    for (size_t i = 0; i < arms.size(); ++i) {
      const SearchOptions options = OptionsOf(shape, arms[i]);
      SearchResult& result = results[i].result;
      ASHLAR_ASSIGN_OR_RETURN(result, snapshot.Search(query, options));
      if (done == 0) ASHLAR_RETURN_IF_ERROR(CheckHash(snapshot, shape, mode, result, hashes));
      for (uint64_t run = done; run < std::min(runs, done + runs_a_round); ++run) {
        const Allocations before = ThreadAllocations();
        const uint64_t start = NowNs();
        ASHLAR_ASSIGN_OR_RETURN(result, snapshot.Search(query, options));
        results[i].latencies.Add(NowNs() - start);
        results[i].allocations = ThreadAllocations().Since(before);
      }
    }
  }
  for (size_t i = 0; i < arms.size(); ++i) {
    results[i].hash = hashes->at(shape.name);
    if (report != nullptr) report->AddRow(QueryRow(snapshot, shape, arms[i], mode, results[i]));
  }
  return results;
}

absl::Status RunShapes(const Store& store, std::string_view mode, uint64_t runs, Report* report,
                       std::map<std::string, std::string>* hashes) {
  const Snapshot snapshot = store.TakeSnapshot();
  const std::vector<Arm> arms = {{Traversal::kDaat}, {Traversal::kExhaustive}, {Traversal::kPruned}};
  for (const QueryShape& shape : ZipfShapes())
    ASHLAR_RETURN_IF_ERROR(RunShape(store, snapshot, shape, arms, mode, runs, report, hashes).status());
  return absl::OkStatus();
}

absl::StatusOr<double> TimeOneQuery(const Store& store, const char* query) {
  const uint64_t start = NowNs();
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery prepared, store.Prepare(std::string_view(query)));
  ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, store.TakeSnapshot().Search(prepared, {}));
  const double us = static_cast<double>(NowNs() - start) / 1000;
  if (result.hits.empty()) return Internal(absl::StrCat("no hit for ", query));
  return us;
}

}  // namespace ashlar::bench
