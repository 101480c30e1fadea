// Measures of ranking quality against values worked out by hand.
#include "tools/eval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace ashlar::tools {
namespace {

// a, b, c are relevant with 3, 2, 1; z is judged and not relevant.
const Judgments kJudgments = {{"a", 3}, {"b", 2}, {"c", 1}, {"z", 0}};

TEST(EvalTest, PerfectRanking) {
  const std::vector<std::string> ranking = {"a", "b", "c"};
  const QueryScores scores = ScoreRanking(ranking, kJudgments, 10);
  EXPECT_DOUBLE_EQ(scores.ndcg, 1.0);
  EXPECT_DOUBLE_EQ(scores.average_precision, 1.0);
  EXPECT_DOUBLE_EQ(scores.precision, 0.3);
  EXPECT_DOUBLE_EQ(scores.recall, 1.0);
}

TEST(EvalTest, ByHand) {
  const std::vector<std::string> ranking = {"x", "b", "z", "a"};
  const QueryScores scores = ScoreRanking(ranking, kJudgments, 10);
  // DCG = 2 / log2(3) + 3 / log2(5); ideal = 3 / 1 + 2 / log2(3) + 1 / 2.
  const double dcg = 2 / std::log2(3.0) + 3 / std::log2(5.0);
  const double ideal = 3 + 2 / std::log2(3.0) + 0.5;
  EXPECT_DOUBLE_EQ(scores.ndcg, dcg / ideal);
  EXPECT_NEAR(scores.ndcg, 0.5363, 0.0001);
  // Relevant at ranks 2 and 4: (1/2 + 2/4) / 3.
  EXPECT_DOUBLE_EQ(scores.average_precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.precision, 0.2);
  EXPECT_DOUBLE_EQ(scores.recall, 2.0 / 3);
}

TEST(EvalTest, CutsAtK) {
  const std::vector<std::string> ranking = {"x", "b", "z", "a"};
  const QueryScores scores = ScoreRanking(ranking, kJudgments, 2);
  // Ideal at 2 = 3 + 2 / log2(3).
  EXPECT_DOUBLE_EQ(scores.ndcg, (2 / std::log2(3.0)) / (3 + 2 / std::log2(3.0)));
  EXPECT_DOUBLE_EQ(scores.precision, 0.5);
  // MAP and recall look deeper.
  EXPECT_DOUBLE_EQ(scores.average_precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.recall, 2.0 / 3);
}

TEST(EvalTest, DepthsOfRecallAndMap) {
  std::vector<std::string> ranking(1001, "x");
  ranking[99].assign(1, 'a');    // rank 100: counts for recall
  ranking[100].assign(1, 'b');   // rank 101: not for recall
  ranking[1000].assign(1, 'c');  // rank 1,001: for nothing
  const QueryScores scores = ScoreRanking(ranking, kJudgments, 10);
  EXPECT_DOUBLE_EQ(scores.recall, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.average_precision, (1.0 / 100 + 2.0 / 101) / 3);
  EXPECT_EQ(scores.ndcg, 0);
}

TEST(EvalTest, NothingFoundAndNothingRelevant) {
  EXPECT_EQ(ScoreRanking({}, kJudgments, 10).ndcg, 0);
  const std::vector<std::string> ranking = {"z"};
  const QueryScores scores = ScoreRanking(ranking, {{"z", 0}, {"y", -1}}, 10);
  EXPECT_EQ(scores.ndcg, 0);
  EXPECT_EQ(scores.average_precision, 0);
  EXPECT_EQ(scores.recall, 0);
}

TEST(EvalTest, MeanOverQueries) {
  Evaluation evaluation;
  EXPECT_EQ(evaluation.Mean().ndcg, 0);
  evaluation.Add({1.0, 0.5, 0.2, 1.0});
  evaluation.Add({0.0, 0.25, 0.4, 0.0});
  EXPECT_EQ(evaluation.query_count(), 2u);
  EXPECT_DOUBLE_EQ(evaluation.Mean().ndcg, 0.5);
  EXPECT_DOUBLE_EQ(evaluation.Mean().average_precision, 0.375);
  EXPECT_DOUBLE_EQ(evaluation.Mean().precision, 0.3);
}

TEST(EvalTest, ReadsQueriesAndJudgments) {
  const auto queries =
      ParseQueries("{\"id\":\"q1\",\"text\":\"a \\\"b\\\"\"}\r\n\n{\"text\":\"c\",\"id\":\"q2\"}", "q.jsonl");
  ASSERT_TRUE(queries.ok()) << queries.status();
  ASSERT_EQ(queries->size(), 2u);
  EXPECT_EQ((*queries)[0].text, "a \"b\"");
  EXPECT_EQ((*queries)[1].id, "q2");
  const auto qrels = ParseQrels("query-id\tcorpus-id\tscore\nq1\td 1\t2\r\nq1\td2\t0\nq2\td2\t-1\n", "q.tsv");
  ASSERT_TRUE(qrels.ok()) << qrels.status();
  EXPECT_EQ(qrels->at("q1"), (Judgments{{"d 1", 2}, {"d2", 0}}));
  EXPECT_EQ(qrels->at("q2"), (Judgments{{"d2", -1}}));
}

TEST(EvalTest, BadFilesNameLineAndColumn) {
  const auto message = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(FromAbsl(status.message()));
  };
  EXPECT_EQ(message(ParseQueries("\n{\"id\":\"q\",}", "q").status()).substr(0, 23), "q:2:11: malformed JSON:");
  EXPECT_EQ(message(ParseQueries("{\"id\":1,\"text\":\"t\"}", "q").status()),
            "q:1:1: a query is {\"id\":\"...\",\"text\":\"...\"}");
  EXPECT_EQ(message(ParseQueries("[]", "q").status()), "q:1:1: a query is {\"id\":\"...\",\"text\":\"...\"}");
  EXPECT_EQ(message(ParseQueries("{\"id\":\"q\",\"text\":\"t\"}\n{\"id\":\"q\",\"text\":\"t\"}", "q").status()),
            "q:2:1: query id q comes twice");
  EXPECT_EQ(message(ParseQrels("h\nq\td\n", "r").status()),
            "r:2:1: a judgment is query-id TAB document-key TAB integer");
  EXPECT_EQ(message(ParseQrels("h\nq\td\tx\n", "r").status()), "r:2:5: the relevance is not an integer");
}

TEST(EvalTest, RunLinesAreTrecs) { EXPECT_EQ(RunLine("q1", "d 1", 3, 0.5), "q1 Q0 d_1 3 0.5 ashlar\n"); }

}  // namespace
}  // namespace ashlar::tools
