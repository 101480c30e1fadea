// Ranking quality: queries, relevance judgments, TREC run files, and the measures nDCG@k, MAP, P@k and recall@k.
#ifndef ASHLAR_TOOLS_EVAL_H_
#define ASHLAR_TOOLS_EVAL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::tools {

struct EvalQuery {
  std::string id;
  std::string text;
};

// Relevance of documents by key; 0 or less: judged and not relevant.
using Judgments = std::map<std::string, int, std::less<>>;
// Judgments by query id.
using Qrels = std::map<std::string, Judgments, std::less<>>;

// {"id":"...","text":"..."} a line. InvalidArgument names `source`, line and column. A query id that repeats is an
// error.
absl::StatusOr<std::vector<EvalQuery>> ParseQueries(std::string_view text, std::string_view source);
// A header line, then query-id TAB document-key TAB integer. InvalidArgument names `source` and line.
absl::StatusOr<Qrels> ParseQrels(std::string_view text, std::string_view source);

inline constexpr size_t kRunDepth = 1000;    // ranks that MAP looks at
inline constexpr size_t kRecallDepth = 100;  // recall@100

struct QueryScores {
  double ndcg = 0, average_precision = 0, precision = 0, recall = 0;
};

// Scores of one ranking, best first. The measures are those of trec_eval:
//   nDCG@k  sum over ranks r <= k of gain / log2(r + 1), divided by that sum for the best possible order of all judged
//           documents; gain = relevance, 0 if negative
//   AP      sum of the precision at each relevant document found, divided by the number of relevant documents
//   P@k     relevant documents in the first k ranks, divided by k (also where the ranking is shorter)
//   R@100   relevant documents in the first 100 ranks, divided by their number
// All are 0 where nothing is relevant.
QueryScores ScoreRanking(std::span<const std::string> ranking, const Judgments& judgments, size_t k);

// Means over the queries added.
class Evaluation {
 public:
  void Add(const QueryScores& scores);
  uint64_t query_count() const { return count_; }
  QueryScores Mean() const;

 private:
  uint64_t count_ = 0;
  QueryScores sum_;
};

// "QUERY Q0 KEY RANK SCORE ashlar", as trec_eval reads it. Blanks in a key would break the line and become '_'.
std::string RunLine(std::string_view query, std::string_view key, size_t rank, double score);

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_EVAL_H_
