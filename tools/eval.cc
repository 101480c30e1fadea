#include "tools/eval.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/base/status.h"
#include "tools/json_documents.h"

namespace ashlar::tools {
namespace {

// Takes the next line off `text`, without its end.
std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

absl::Status BadLine(std::string_view source, size_t line, std::string_view what) {
  return InvalidArgument(absl::StrCat(ToAbsl(source), ":", line, ":", ToAbsl(what)));
}

double Discount(size_t rank) { return 1.0 / std::log2(static_cast<double>(rank) + 1.0); }

double IdealDcg(const Judgments& judgments, size_t k) {
  std::vector<int> gains;
  for (const auto& [key, relevance] : judgments) {
    if (relevance > 0) gains.push_back(relevance);
  }
  std::sort(gains.rbegin(), gains.rend());
  double dcg = 0;
  for (size_t i = 0; i < std::min(k, gains.size()); ++i) dcg += gains[i] * Discount(i + 1);
  return dcg;
}

}  // namespace

absl::StatusOr<std::vector<EvalQuery>> ParseQueries(std::string_view text, std::string_view source) {
  std::vector<EvalQuery> queries;
  std::set<std::string> ids;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(&text);
    if (IsBlank(line)) continue;
    if (const std::optional<std::string> error = FindJsonError(line); error.has_value())
      return BadLine(source, number, *error);
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    EvalQuery query;
    for (const auto& [name, target] : {std::pair("id", &query.id), std::pair("text", &query.text)}) {
      const auto member = json.is_object() ? json.find(name) : json.end();
      if (!json.is_object() || member == json.end() || !member->is_string()) {
        return BadLine(source, number, "1: a query is {\"id\":\"...\",\"text\":\"...\"}");
      }
      *target = member->get<std::string>();
    }
    if (!ids.insert(query.id).second)
      return BadLine(source, number, absl::StrCat("1: query id ", query.id, " comes twice"));
    queries.push_back(std::move(query));
  }
  return queries;
}

absl::StatusOr<Qrels> ParseQrels(std::string_view text, std::string_view source) {
  Qrels qrels;
  TakeLine(&text);  // the header
  for (size_t number = 2; !text.empty(); ++number) {
    const std::string_view line = TakeLine(&text);
    if (IsBlank(line)) continue;
    const size_t first = line.find('\t');
    const size_t second = first == std::string_view::npos ? first : line.find('\t', first + 1);
    int relevance = 0;
    if (second == std::string_view::npos) {
      return BadLine(source, number, "1: a judgment is query-id TAB document-key TAB integer");
    }
    const std::string_view score = line.substr(second + 1);
    const auto [end, error] = std::from_chars(score.data(), score.data() + score.size(), relevance);
    if (error != std::errc() || end != score.data() + score.size()) {
      return BadLine(source, number, absl::StrCat(second + 2, ": the relevance is not an integer"));
    }
    qrels[std::string(line.substr(0, first))][std::string(line.substr(first + 1, second - first - 1))] = relevance;
  }
  return qrels;
}

QueryScores ScoreRanking(std::span<const std::string> ranking, const Judgments& judgments, size_t k) {
  QueryScores scores;
  size_t relevant = 0;
  for (const auto& [key, relevance] : judgments) relevant += relevance > 0 ? 1 : 0;
  if (relevant == 0) return scores;

  double dcg = 0, precisions = 0;
  size_t found = 0, found_at_k = 0, found_at_100 = 0;
  for (size_t i = 0; i < std::min(ranking.size(), kRunDepth); ++i) {
    const size_t rank = i + 1;
    const auto judgment = judgments.find(ranking[i]);
    if (judgment == judgments.end() || judgment->second <= 0) continue;
    ++found;
    precisions += static_cast<double>(found) / static_cast<double>(rank);
    if (rank <= k) {
      dcg += judgment->second * Discount(rank);
      ++found_at_k;
    }
    if (rank <= kRecallDepth) ++found_at_100;
  }
  scores.ndcg = dcg / IdealDcg(judgments, k);
  scores.average_precision = precisions / static_cast<double>(relevant);
  scores.precision = static_cast<double>(found_at_k) / static_cast<double>(k);
  scores.recall = static_cast<double>(found_at_100) / static_cast<double>(relevant);
  return scores;
}

void Evaluation::Add(const QueryScores& scores) {
  ++count_;
  sum_.ndcg += scores.ndcg;
  sum_.average_precision += scores.average_precision;
  sum_.precision += scores.precision;
  sum_.recall += scores.recall;
}

QueryScores Evaluation::Mean() const {
  if (count_ == 0) return {};
  const auto count = static_cast<double>(count_);
  return {sum_.ndcg / count, sum_.average_precision / count, sum_.precision / count, sum_.recall / count};
}

std::string RunLine(std::string_view query, std::string_view key, size_t rank, double score) {
  std::string word(key);
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }, '_');
  return absl::StrFormat("%s Q0 %s %u %.17g ashlar\n", std::string(query), word, rank, score);
}

}  // namespace ashlar::tools
