// eval: how well a store ranks, measured with queries and relevance judgments.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"
#include "tools/eval.h"
#include "tools/files.h"

namespace ashlar::tools {
namespace {

struct EvalArguments {
  std::string directory, queries, qrels, run;
  uint64_t k = 10;
  SearchOptions search;
  bool json = false;
};

absl::StatusOr<std::vector<std::string>> Rank(const Store& store, const Snapshot& snapshot, const EvalQuery& query,
                                              const SearchOptions& options, std::string* run) {
  const Query words = PlainWords(query.text);
  if (words.clauses.empty()) return std::vector<std::string>();
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery prepared, store.Prepare(words));
  ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, snapshot.Search(prepared, options));
  std::vector<Handle> handles;
  for (const Hit& hit : result.hits) handles.push_back(hit.handle);
  ASHLAR_ASSIGN_OR_RETURN(std::vector<std::string> keys, snapshot.FetchKeys(handles));
  if (run != nullptr) {
    for (size_t i = 0; i < keys.size(); ++i) *run += RunLine(query.id, keys[i], i + 1, result.hits[i].score);
  }
  return keys;
}

void PrintScores(const Evaluation& evaluation, const EvalArguments& arguments) {
  const QueryScores mean = evaluation.Mean();
  const std::string at = absl::StrCat("@", arguments.k);
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["queries"] = evaluation.query_count();
    json["ndcg" + at] = mean.ndcg;
    json["map"] = mean.average_precision;
    json["p" + at] = mean.precision;
    json["recall@100"] = mean.recall;
    Print(json.dump() + "\n");
    return;
  }
  Print(absl::StrFormat("queries     %u\nnDCG%-8s%.4f\nMAP         %.4f\nP%-11s%.4f\nrecall@100  %.4f\n",
                        evaluation.query_count(), at, mean.ndcg, mean.average_precision, at, mean.precision,
                        mean.recall));
}

absl::Status RunEval(const EvalArguments& arguments) {
  ASHLAR_ASSIGN_OR_RETURN(const std::string queries_text, ReadTextFile(arguments.queries));
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<EvalQuery> queries, ParseQueries(queries_text, arguments.queries));
  ASHLAR_ASSIGN_OR_RETURN(const std::string qrels_text, ReadTextFile(arguments.qrels));
  ASHLAR_ASSIGN_OR_RETURN(const Qrels qrels, ParseQrels(qrels_text, arguments.qrels));
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(arguments.directory));
  if (store->schema().key.empty()) {
    return FailedPrecondition(
        absl::StrCat(arguments.directory, ": judgments name documents by key, and the store has none"));
  }
  const Snapshot snapshot = store->TakeSnapshot();
  SearchOptions options = arguments.search;
  options.k = std::max<uint64_t>(kRunDepth, arguments.k);
  options.total = Total::kNone;

  Evaluation evaluation;
  std::string run;
  for (const EvalQuery& query : queries) {
    const auto judgments = qrels.find(query.id);
    if (judgments == qrels.end()) continue;
    ASHLAR_ASSIGN_OR_RETURN(const std::vector<std::string> ranking,
                            Rank(*store, snapshot, query, options, arguments.run.empty() ? nullptr : &run));
    evaluation.Add(ScoreRanking(ranking, judgments->second, arguments.k));
  }
  if (!arguments.run.empty()) ASHLAR_RETURN_IF_ERROR(WriteTextFile(arguments.run, run));
  PrintScores(evaluation, arguments);
  return absl::OkStatus();
}

}  // namespace

void AddEvalCommand(Program* program) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = program->app.add_subcommand("eval", "Measure ranking quality: nDCG, MAP, P, recall");
  command->add_option("DIR", arguments->directory, "Directory of the store")->required();
  command->add_option("--queries", arguments->queries, R"(Queries, {"id","text"} a line; plain words)")->required();
  command->add_option("--qrels", arguments->qrels, "Judgments: a header line, then query, key and relevance with tabs")
      ->required();
  command->add_option("--k", arguments->k, "Ranks for nDCG and P")
      ->check(WholeNumber(1, kRunDepth))
      ->capture_default_str();
  command->add_option("--k1", arguments->search.k1, "BM25 k1")->capture_default_str();
  command->add_option("--b", arguments->search.b, "BM25 b")->capture_default_str();
  command->add_option("--run", arguments->run, "Write the rankings, 1,000 deep, in TREC's form");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([=] { program->run = [arguments] { return RunEval(*arguments); }; });
}

}  // namespace ashlar::tools
