// Searches over every kind of source against the oracle: same documents, same order, same bits of score.
#include "src/query/execution.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/base/prng.h"
#include "tests/query/search_fixture.h"

namespace ashlar::query {
namespace {

using testing::OracleResult;

Field MakeField(const char* name, FieldType type) {
  Field field;
  field.name = name;
  field.type = type;
  return field;
}

Schema TestSchema(std::vector<std::string> group) {
  Schema schema;
  schema.key = "id";
  schema.default_group = std::move(group);
  schema.fields = {MakeField("body", FieldType::kText),  MakeField("id", FieldType::kKeyword),
                   MakeField("title", FieldType::kText), MakeField("tag", FieldType::kKeyword),
                   MakeField("note", FieldType::kText),  MakeField("year", FieldType::kInt64)};
  return schema;
}

Query Words(std::vector<Clause> clauses) {
  Query query;
  query.clauses = std::move(clauses);
  return query;
}

std::string RandomWord(Prng* prng) { return absl::StrCat("w", prng->Below(1 + prng->Below(30))); }

std::string RandomText(Prng* prng, uint64_t words_max) {
  std::string text;
  for (uint64_t i = prng->Below(words_max + 1); i > 0; --i) absl::StrAppend(&text, RandomWord(prng), " ");
  return text;
}

Document RandomDocument(Prng* prng) {
  Document document;
  document.Add("id", absl::StrCat("k", prng->Below(80)));
  if (!prng->OneIn(5)) document.Add("title", RandomText(prng, 4));
  for (uint64_t i = prng->Below(3); i > 0; --i) document.Add("body", RandomText(prng, 25));
  for (uint64_t i = prng->Below(3); i > 0; --i) document.Add("tag", RandomWord(prng));
  if (prng->OneIn(2)) document.Add("note", RandomText(prng, 8));
  return document;
}

Clause RandomClause(Prng* prng) {
  static const char* const kFields[] = {"", "", "", "body", "title", "tag", "note", "id"};
  Clause clause;
  clause.field = kFields[prng->Below(8)];
  clause.text = clause.field == "id" ? absl::StrCat("k", prng->Below(80)) : RandomWord(prng);
  if (prng->OneIn(4) && clause.field != "id" && clause.field != "tag")
    absl::StrAppend(&clause.text, " ", RandomWord(prng));
  if (prng->OneIn(3) && clause.field != "id") {
    clause.phrase = true;
    for (uint64_t more = prng->Below(3); more > 0; --more) absl::StrAppend(&clause.text, " ", RandomWord(prng));
    if (prng->OneIn(8)) clause.text += " " + clause.text;
  }
  if (prng->OneIn(12)) clause.text = clause.phrase ? "w0 nowhere" : "nowhere";
  const uint64_t occur = prng->Below(10);
  clause.occur = occur < 7 ? Occur::kShould : occur < 9 ? Occur::kMust : Occur::kMustNot;
  if (prng->OneIn(3)) clause.boost = 0.1 + 5 * prng->Uniform();
  return clause;
}

Query RandomQuery(Prng* prng) {
  Query query;
  const uint64_t count = prng->OneIn(8) ? 20 + prng->Below(20) : 1 + prng->Below(5);
  for (uint64_t i = 0; i < count; ++i) query.clauses.push_back(RandomClause(prng));
  if (query.clauses[0].occur == Occur::kMustNot) query.clauses[0].occur = Occur::kShould;
  return query;
}

SearchOptions RandomOptions(Prng* prng) {
  static const std::vector<std::string> kFields[] = {{},
                                                     {},
                                                     {"body"},
                                                     {"title"},
                                                     {"note"},
                                                     {"title", "body"},
                                                     {"body", "title"},
                                                     {"note", "title"},
                                                     {"body", "note", "title"}};
  SearchOptions options;
  options.fields = kFields[prng->Below(9)];
  options.k = prng->OneIn(3) ? 1000 : 1 + prng->Below(12);
  if (prng->OneIn(4)) options.offset = prng->Below(15);
  if (prng->OneIn(3)) options.b = prng->OneIn(2) ? 0 : prng->Uniform();
  if (prng->OneIn(3)) options.k1 = prng->OneIn(2) ? 0 : 4 * prng->Uniform();
  return options;
}

std::string Show(const Query& query) {
  std::string text;
  for (const Clause& c : query.clauses) {
    absl::StrAppend(&text,
                    c.occur == Occur::kMust      ? "+"
                    : c.occur == Occur::kMustNot ? "-"
                                                 : "",
                    c.field, c.phrase ? ":\"" : ":(", c.text, c.phrase ? "\"^" : ")^", c.boost, " ");
  }
  return text;
}

std::vector<size_t> RandomCuts(Prng* prng, size_t documents) {
  std::vector<size_t> cuts;
  for (uint64_t i = prng->Below(6); i > 0; --i) cuts.push_back(prng->Below(documents + 1));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

void ExpectSame(const absl::StatusOr<OracleResult>& answer, const OracleResult& expected) {
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->total, expected.total);
  ASSERT_EQ(answer->hits.size(), expected.hits.size());
  for (size_t i = 0; i < expected.hits.size(); ++i) {
    ASSERT_EQ(answer->hits[i].id, expected.hits[i].id) << "hit " << i;
    ASSERT_EQ(answer->hits[i].score, expected.hits[i].score) << "hit " << i;
  }
}

void ExpectBothTraversalsAgree(Corpus* corpus, const Query& query, SearchOptions options) {
  SCOPED_TRACE(Show(query));
  const OracleResult expected = corpus->oracle.Search(query, options);
  for (const Traversal traversal : {Traversal::kDaat, Traversal::kExhaustive, Traversal::kAuto}) {
    options.traversal = traversal;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(corpus->Answer(query, options), expected));
  }
}

class ExecutionOracleTest : public ::testing::TestWithParam<int> {};

TEST_P(ExecutionOracleTest, AnyCutGivesTheOraclesAnswer) {
  const auto seed = static_cast<uint64_t>(GetParam());
  SCOPED_TRACE(seed);
  Prng prng(seed);
  static const std::vector<std::string> kGroups[] = {
      {"title", "body"}, {"body", "title"}, {"body"}, {"note", "body", "title"}};
  Corpus corpus(TestSchema(kGroups[seed % 4]));
  for (uint64_t i = 1 + prng.Below(seed % 2 == 0 ? 200 : 20); i > 0; --i) {
    if (prng.OneIn(10)) {
      corpus.Delete(absl::StrCat("k", prng.Below(80)));
    } else {
      corpus.Put(RandomDocument(&prng));
    }
  }
  for (int round = 0; round < 6; ++round) {
    corpus.Cut(RandomCuts(&prng, corpus.document_count()), prng.Below(4));
    for (int i = 0; i < 12; ++i) {
      const Query query = RandomQuery(&prng);
      ASSERT_NO_FATAL_FAILURE(ExpectBothTraversalsAgree(&corpus, query, RandomOptions(&prng)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExecutionOracleTest, ::testing::Range(1, 25));

class ExecutionTest : public ::testing::Test {
 protected:
  void Add(const std::string& key, const std::string& body, const std::string& title = "") {
    Document document;
    document.Add("id", key).Add("body", body);
    if (!title.empty()) document.Add("title", title);
    corpus_.Put(document);
  }
  std::vector<DocumentId> IdsOf(const Query& query, const SearchOptions& options = {}) {
    const auto answer = corpus_.Answer(query, options);
    EXPECT_TRUE(answer.ok()) << answer.status();
    std::vector<DocumentId> ids;
    if (!answer.ok()) return ids;
    for (const auto& hit : answer->hits) ids.push_back(hit.id);
    return ids;
  }

  Corpus corpus_{TestSchema({"title", "body"})};
};

TEST_F(ExecutionTest, TiesGoToTheLowerDocumentIdAcrossSources) {
  for (int i = 0; i < 9; ++i) Add(absl::StrCat("k", i), "same words here");
  Add("k2", "same words here");  // id 10 replaces id 3
  for (const size_t overlays : {0u, 1u, 4u}) {
    corpus_.Cut({3, 3, 7}, overlays);
    SearchOptions options;
    options.k = 4;
    EXPECT_EQ(IdsOf(PlainWords("same"), options), (std::vector<DocumentId>{1, 2, 4, 5}));
    options.offset = 6;
    EXPECT_EQ(IdsOf(PlainWords("same words"), options), (std::vector<DocumentId>{8, 9, 10}));
    options.offset = 9;
    EXPECT_EQ(IdsOf(PlainWords("same words"), options), (std::vector<DocumentId>{}));
  }
}

TEST_F(ExecutionTest, HugeKAndOffsetTakeNoMemory) {
  Add("a", "x y");
  Add("b", "x");
  corpus_.Cut({}, 1);
  SearchOptions options;
  options.k = UINT64_MAX;
  options.offset = 1;
  EXPECT_EQ(IdsOf(PlainWords("x"), options), (std::vector<DocumentId>{1}));
  options.offset = UINT64_MAX;
  EXPECT_EQ(IdsOf(PlainWords("x"), options), (std::vector<DocumentId>{}));
  options.offset = 0;
  options.k = 10000000;
  EXPECT_EQ(IdsOf(PlainWords("x"), options), (std::vector<DocumentId>{2, 1}));
}

TEST_F(ExecutionTest, AMatchWithScoreZeroIsAHit) {
  Add("a", "rare");
  Add("b", "common");
  corpus_.Cut({1}, 1);
  const Query query = Words({{Occur::kShould, "", "rare", 1e6}, {Occur::kShould, "", "common", 1e-6}});
  for (const Traversal traversal : {Traversal::kDaat, Traversal::kExhaustive}) {
    SearchOptions options;
    options.traversal = traversal;
    const auto answer = corpus_.Answer(query, options);
    ASSERT_TRUE(answer.ok());
    ASSERT_EQ(answer->hits.size(), 2u);
    EXPECT_EQ(answer->hits[1].id, 2u);
    EXPECT_EQ(answer->hits[1].score, 0.0);
    EXPECT_EQ(answer->total, 2u);
  }
}

TEST_F(ExecutionTest, DeletedDocumentsChangeNoScore) {
  for (int i = 0; i < 30; ++i) Add(absl::StrCat("k", i), absl::StrCat("red ", i % 3 == 0 ? "blue" : "green", " w", i));
  Corpus fresh(TestSchema({"title", "body"}));
  for (int i = 0; i < 30; ++i) {
    if (i % 4 == 1) continue;
    Document document;
    document.Add("id", absl::StrCat("k", i));
    document.Add("body", absl::StrCat("red ", i % 3 == 0 ? "blue" : "green", " w", i));
    fresh.Put(document);
  }
  for (int i = 1; i < 30; i += 4) corpus_.Delete(absl::StrCat("k", i));
  corpus_.Cut({5, 11, 20}, 2);
  fresh.Cut({}, 0);
  SearchOptions options;
  options.k = 100;
  const auto with_dead = corpus_.Answer(PlainWords("red blue w8"), options);
  const auto without = fresh.Answer(PlainWords("red blue w8"), options);
  ASSERT_TRUE(with_dead.ok() && without.ok());
  ASSERT_EQ(with_dead->hits.size(), without->hits.size());
  EXPECT_EQ(without->hits.size(), 22u);
  for (size_t i = 0; i < without->hits.size(); ++i) EXPECT_EQ(with_dead->hits[i].score, without->hits[i].score);
}

TEST_F(ExecutionTest, EqualClausesAreOneWithTheirBoostsAdded) {
  Add("a", "x y z");
  Add("b", "x");
  corpus_.Cut({}, 1);
  const auto three = corpus_.Answer(
      Words({{Occur::kShould, "", "x", 0.1}, {Occur::kMust, "", "x", 0.3}, {Occur::kShould, "", "x", 0.2}}), {});
  const auto one = corpus_.Answer(Words({{Occur::kMust, "", "x", 0.1 + 0.2 + 0.3}}), {});
  ASSERT_TRUE(three.ok() && one.ok());
  ASSERT_EQ(three->hits, one->hits);
}

TEST_F(ExecutionTest, TheOneFieldOfAGroupIsTheGroup) {
  Corpus corpus(TestSchema({"body"}));
  Document document;
  document.Add("id", std::string("a")).Add("body", std::string("x y"));
  corpus.Put(document);
  corpus.Cut({}, 1);
  const auto twice = corpus.Answer(Words({{Occur::kShould, "", "x", 1}, {Occur::kShould, "body", "x", 1}}), {});
  const auto once = corpus.Answer(Words({{Occur::kShould, "body", "x", 2}}), {});
  ASSERT_TRUE(twice.ok() && once.ok());
  EXPECT_EQ(twice->hits, once->hits);
  EXPECT_EQ(once->total, 1u);
}

Clause Phrase(const std::string& text, Occur occur = Occur::kShould) { return {occur, "", text, 1, true}; }

TEST_F(ExecutionTest, APhraseStandsInOneValueOfOneField) {
  Add("a", "red fox", "hen red");
  Add("b", "fox red", "fox hen");
  Add("c", "x red", "fox");
  Document values;
  values.Add("id", "d").Add("body", "red").Add("body", "fox");
  corpus_.Put(values);
  for (const size_t overlays : {0u, 1u, 3u}) {
    corpus_.Cut({1, 3}, overlays);
    SearchOptions options;
    options.b = 0;
    EXPECT_EQ(IdsOf(Words({Phrase("red fox")}), options), (std::vector<DocumentId>{1}));
    EXPECT_EQ(IdsOf(Words({Phrase("fox hen")}), options), (std::vector<DocumentId>{2}));
    EXPECT_EQ(IdsOf(Words({Phrase("x red fox")}), options), (std::vector<DocumentId>{}));
    EXPECT_EQ(IdsOf(Words({Phrase("red fox"), Phrase("fox red")}), options), (std::vector<DocumentId>{1, 2}));
    EXPECT_EQ(IdsOf(Words({{Occur::kMust, "", "fox", 1}, Phrase("red fox", Occur::kMustNot)}), options),
              (std::vector<DocumentId>{2, 3, 4}));
    EXPECT_EQ(IdsOf(Words({Phrase("red fox", Occur::kMust), Phrase("hen red", Occur::kMust)}), options),
              (std::vector<DocumentId>{1}));
    EXPECT_EQ(IdsOf(Words({Phrase("red nowhere"), {Occur::kShould, "", "x", 1}}), options),
              (std::vector<DocumentId>{3}));
    EXPECT_EQ(IdsOf(Words({Phrase("red nowhere", Occur::kMust), {Occur::kShould, "", "x", 1}}), options),
              (std::vector<DocumentId>{}));
  }
}

// A phrase scores as a word would that is where the phrase begins and whose idf is the sum.
TEST_F(ExecutionTest, TheFrequencyOfAPhraseIsItsNumberOfPlaces) {
  Add("a", "x x x y x");
  Add("b", "x y x y x y z");
  Add("c", "z x z y");
  corpus_.Cut({2}, 1);
  SearchOptions options;
  options.b = 0;
  const auto score_of = [&](const std::string& phrase, DocumentId id) {
    const auto answer = corpus_.Answer(Words({Phrase(phrase)}), options);
    EXPECT_TRUE(answer.ok());
    for (const auto& hit : answer->hits) {
      if (hit.id == id) return hit.score;
    }
    return 0.0;
  };
  const auto bm25 = [](double idf, double f) { return idf * 2.2 * f / (f + 1.2); };
  const double all = std::log(1 + 0.5 / 3.5);  // idf of a word that all three have
  EXPECT_NEAR(score_of("x x", 1), bm25(2 * all, 2), 1e-6);
  EXPECT_NEAR(score_of("x x x", 1), bm25(3 * all, 1), 1e-6);
  EXPECT_NEAR(score_of("x y", 1), bm25(2 * all, 1), 1e-6);
  EXPECT_NEAR(score_of("x y", 2), bm25(2 * all, 3), 1e-6);
  EXPECT_EQ(score_of("x y", 3), 0);
  EXPECT_NEAR(score_of("y z", 2), bm25(all + std::log(1 + 1.5 / 2.5), 1), 1e-6);
  EXPECT_EQ(score_of("x x x x", 1), 0);
}

TEST_F(ExecutionTest, NoDocumentsAndNoWordsGiveNoHits) {
  corpus_.Cut({}, 1);
  EXPECT_EQ(IdsOf(PlainWords("x")), (std::vector<DocumentId>{}));
  Add("a", "x");
  corpus_.Cut({}, 0);
  EXPECT_EQ(IdsOf(PlainWords("!!! ...")), (std::vector<DocumentId>{}));
  EXPECT_EQ(IdsOf(Words({{Occur::kMust, "", "x", 1}, {Occur::kMust, "", "absent", 1}})), (std::vector<DocumentId>{}));
  EXPECT_EQ(IdsOf(Words({{Occur::kMust, "", "...", 1}, {Occur::kShould, "", "x", 1}})), (std::vector<DocumentId>{1}));
  EXPECT_EQ(IdsOf(Words({{Occur::kMust, "", "...", 1}, {Occur::kMustNot, "", "y", 1}})), (std::vector<DocumentId>{}));
}

// Damage anywhere in what a query reads is an error, never fewer hits.
TEST_F(ExecutionTest, DamageIsReportedBeforeHits) {
  for (int i = 0; i < 40; ++i) Add(absl::StrCat("k", i), "x y", i % 2 == 0 ? "x" : "z");
  const Query queries[] = {PlainWords("x"),
                           Words({{Occur::kMust, "", "x", 1}, {Occur::kMust, "", "y", 1}}),
                           Words({{Occur::kShould, "", "x", 1}, {Occur::kMustNot, "", "z", 1}}),
                           PlainWords("body:x"),
                           Words({Phrase("x y")}),
                           Words({{Occur::kMust, "", "y", 1}, Phrase("y x", Occur::kMustNot)})};
  for (const bool with_deaths : {false, true}) {
    if (with_deaths) corpus_.Delete("k3");
    for (const std::vector<std::string>& fields : {std::vector<std::string>{}, {"body", "note"}}) {
      for (const Traversal traversal : {Traversal::kDaat, Traversal::kExhaustive}) {
        SearchOptions options;
        options.traversal = traversal;
        options.fields = fields;
        corpus_.Cut({20}, 0);
        ASSERT_TRUE(corpus_.Answer(queries[0], options).ok());
        corpus_.plain()[1].cursors_fail_at = 7;
        for (const Query& query : queries) {
          const absl::Status status = corpus_.Answer(query, options).status();
          EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << Show(query);
          EXPECT_TRUE(PlaceOf(status).has_value());
        }
        corpus_.Cut({20}, 0);
        corpus_.plain()[0].lengths_fail = true;
        EXPECT_EQ(corpus_.Answer(queries[0], options).status().code(), absl::StatusCode::kDataLoss);
      }
    }
  }
}

TEST_F(ExecutionTest, SaysWhichTraversalRan) {
  Add("a", "x");
  corpus_.Cut({}, 1);
  for (const Total total : {Total::kNone, Total::kBound, Total::kExact}) {
    SearchOptions options;
    options.total = total;
    const auto automatic = corpus_.Search(PlainWords("x"), options);
    options.traversal = Traversal::kExhaustive;
    const auto exhaustive = corpus_.Search(PlainWords("x"), options);
    ASSERT_TRUE(automatic.ok() && exhaustive.ok());
    EXPECT_EQ(automatic->traversal, Traversal::kDaat);
    EXPECT_EQ(exhaustive->traversal, Traversal::kExhaustive);
    EXPECT_TRUE(automatic->total_is_exact);
    EXPECT_EQ(automatic->total, 1u);
    EXPECT_GT(automatic->postings_read, 0u);
    EXPECT_GT(exhaustive->postings_read, 0u);
  }
}

// Case C23: seven optional words with different boosts, every order of the clauses.
TEST(ExecutionCaseTest, C23EveryOrderOfTheClausesGivesTheSameBits) {
  Prng prng(23);
  Corpus corpus(TestSchema({"title", "body"}));
  WriteBatch batch;
  for (int i = 0; i < 10000; ++i) {
    Document document;
    document.Add("id", absl::StrCat("d", i)).Add("body", RandomText(&prng, 20)).Add("title", RandomText(&prng, 3));
    batch.Put(document);
  }
  corpus.Apply(batch);
  corpus.Cut({4000}, 1);
  std::vector<Clause> clauses;
  for (int i = 0; i < 7; ++i)
    clauses.push_back({Occur::kShould, i == 3 ? "body" : "", absl::StrCat("w", 9 + 2 * i), 0.3 + 0.7 * i});
  SearchOptions options;
  options.k = 20;
  const OracleResult expected = corpus.oracle.Search(Words(clauses), options);
  ASSERT_EQ(expected.hits.size(), 20u);
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5, 6};
  int orders = 0;
  do {
    Query query;
    for (const size_t i : order) query.clauses.push_back(clauses[i]);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(corpus.Answer(query, options), expected));
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 5040);
}

}  // namespace
}  // namespace ashlar::query
