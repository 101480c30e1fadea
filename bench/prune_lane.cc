// The prune lane: how much of the postings of a query pruning reads, with fixed and variable lengths, dead documents, a
// filter, a page that is larger than the rare term's list, and very many words; with the page of every other traversal.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/lane.h"
#include "bench/query_shapes.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr uint64_t kParts = 100;  // the filter's field has so many values, so that one is 1 percent
constexpr char kFilter[] = "+part:p7 ";

struct PruneShape {
  QueryShape shape;
  bool filter = false;
};

// Spread like deleted documents are not.
uint64_t PartOf(uint64_t n) {
  constexpr uint64_t kFactor = 2654435761;
  return (n * kFactor >> 16) % kParts;
}

// The live postings of a query's words.
absl::StatusOr<uint64_t> PostingsOf(const Store& store, const Snapshot& snapshot, const std::string& query) {
  std::string plain = query;
  std::erase_if(plain, [](char c) { return c == '+' || c == '"'; });
  SearchOptions counted;
  counted.k = 1;
  uint64_t postings = 0;
  std::istringstream words(plain);
  for (std::string word; words >> word;) {
    ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery prepared, store.Prepare(std::string_view(word)));
    ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, snapshot.Search(prepared, counted));
    postings += result.total;
  }
  return postings;
}

// So many words, from the most frequent to the rarest, their ranks spread evenly by logarithm where that gives enough.
std::string WordsOf(uint64_t words, uint64_t vocabulary) {
  std::set<uint64_t> ranks;
  for (uint64_t i = 0; i < words; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(words);
    ranks.insert(static_cast<uint64_t>(std::pow(static_cast<double>(vocabulary), part)));
  }
  for (uint64_t rank = 1; ranks.size() < words && rank <= vocabulary; rank += 1 + vocabulary / words)
    ranks.insert(rank);
  for (uint64_t rank = 1; ranks.size() < words && rank <= vocabulary; ++rank) ranks.insert(rank);
  std::string query;
  for (const uint64_t rank : ranks) absl::StrAppend(&query, "w", rank, "x ");
  return query;
}

std::vector<PruneShape> Shapes(uint64_t vocabulary) {
  std::vector<PruneShape> shapes;
  for (const QueryShape& shape : ZipfShapes()) shapes.push_back({shape});
  for (const QueryShape& shape : ZipfShapes()) {
    if (shape.query[0] != 'w') continue;  // of its own it says what must occur
    shapes.push_back({{absl::StrCat(shape.name, " filtered"), absl::StrCat(kFilter, shape.query), shape.k}, true});
  }
  shapes.push_back({{"page above rare", "w1x w20000x", 1000}});
  shapes.push_back({{"words 100", WordsOf(100, vocabulary), 10}});
  shapes.push_back({{"words 1000", WordsOf(1000, vocabulary), 10}});
  return shapes;
}

Schema SchemaWithParts() {
  Schema schema = BenchSchema();
  Field part;
  part.name = "part";
  part.type = FieldType::kKeyword;
  schema.fields.push_back(part);
  return schema;
}

class PruneLane {
 public:
  PruneLane(const LaneOptions& options, Report* report) : options_(options), report_(report) {}

  absl::Status Run() {
    for (const bool variable : {false, true}) {
      ASHLAR_RETURN_IF_ERROR(
          WithDirectory(options_, [&] { return MeasureLengths(variable ? "variable" : "fixed", variable); }));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status MeasureLengths(std::string_view lengths, bool variable) {
    ZipfOptions corpus = options_.corpus;
    corpus.variable_length = variable;
    Options store_options;
    store_options.durability = Durability::kOs;
    store_options.merge_factor = 0;
    store_options.overlay_bytes_max = uint64_t{1} << 40;
    ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options_.directory, SchemaWithParts(), store_options));
    ASHLAR_RETURN_IF_ERROR(WriteCorpus(corpus, store.get(), nullptr, [](uint64_t n, Document* document) {
                             document->Add("part", absl::StrCat("p", PartOf(n)));
                           }).status());
    ASHLAR_RETURN_IF_ERROR(store->Flush());
    for (const uint32_t deleted : {0, 10, 50}) {
      ASHLAR_RETURN_IF_ERROR(DeleteShare(corpus.documents, deleted, store.get()));
      ASHLAR_RETURN_IF_ERROR(MeasureShapes(*store, lengths, deleted));
    }
    return store->Close();
  }

  absl::Status MeasureShapes(const Store& store, std::string_view lengths, uint32_t deleted) {
    const Snapshot snapshot = store.TakeSnapshot();
    const std::vector<Arm> arms = {
        {Traversal::kAuto}, {Traversal::kPruned}, {Traversal::kDaat}, {Traversal::kExhaustive}};
    std::map<std::string, std::string> hashes;
    for (const PruneShape& wanted : Shapes(options_.corpus.vocabulary)) {
      if (!options_.shape.empty() && options_.shape != wanted.shape.name) continue;
      ASHLAR_ASSIGN_OR_RETURN(
          const std::vector<ArmResult> results,
          RunShape(store, snapshot, wanted.shape, arms, "mapped", options_.runs, /*report=*/nullptr, &hashes));
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t all, PostingsOf(store, snapshot, wanted.shape.query));
      for (size_t i = 0; i < arms.size(); ++i) {
        Json row = QueryRow(snapshot, wanted.shape, arms[i], "mapped", results[i]);
        row["lengths"] = lengths;
        row["deleted"] = deleted;
        row["filter"] = wanted.filter ? "1 percent" : "none";
        row["postings_of_terms"] = all;
        if (all != 0)
          row["read_percent"] =
              std::round(1e4 * static_cast<double>(results[i].result.postings_read) / static_cast<double>(all)) / 100;
        report_->AddRow(std::move(row));
      }
    }
    return hashes.empty() ? NotFound(absl::StrCat("there is no shape ", options_.shape)) : absl::OkStatus();
  }

  const LaneOptions& options_;
  Report* const report_;
};

}  // namespace

absl::Status RunPruneLane(const LaneOptions& options) {
  Report report("prune", options);
  ASHLAR_RETURN_IF_ERROR(PruneLane(options, &report).Run());
  for (const char* what :
       {"blocks skipped, contributions computed: a search does not count them",
        "without frontiers, and with documents in another order: there is no such store",
        "a filter that does not score: the query language has none, so it is a word that must occur"}) {
    report.NotMeasured(what);
  }
  return report.Finish();
}

}  // namespace ashlar::bench
