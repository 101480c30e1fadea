// From clauses to terms, and from terms to a plan.
#include "src/query/prepare.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/base/check.h"

namespace ashlar::query {
namespace {

constexpr uint32_t kTitle = 0, kBody = 2, kNote = 4, kEnglish = 6;

// 0 title, 1 id, 2 body, 3 tag, 4 note, 5 year, 6 english, 7 blob; the group is G.
Schema TestSchema() {
  const auto field = [](const char* name, FieldType type) {
    Field f;
    f.name = name;
    f.type = type;
    return f;
  };
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body", "title"};
  schema.fields = {field("title", FieldType::kText),   field("id", FieldType::kKeyword),
                   field("body", FieldType::kText),    field("tag", FieldType::kKeyword),
                   field("note", FieldType::kText),    field("year", FieldType::kInt64),
                   field("english", FieldType::kText), field("blob", FieldType::kBytes)};
  schema.fields[kEnglish].analyzer = AnalyzerOptions::English();
  return schema;
}

class PrepareTest : public ::testing::Test {
 protected:
  explicit PrepareTest(Schema schema = TestSchema()) : schema_(std::move(schema)) {
    auto analyzer = text::DocumentAnalyzer::Create(schema_);
    ASHLAR_CHECK(analyzer.ok());
    analyzer_ = *std::move(analyzer);
  }

  absl::StatusOr<Plan> PlanOf(const Query& query, const SearchOptions& options = {}) {
    const auto prepared = Prepare(query, schema_, *analyzer_);
    if (!prepared.ok()) return prepared.status();
    const auto plan = MakePlan(**prepared, schema_, options);
    if (!plan.ok()) return plan.status();
    return **plan;
  }
  absl::StatusOr<Plan> PlanOf(std::string_view text, const SearchOptions& options = {}) {
    const auto query = ParseQuery(text);
    if (!query.ok()) return query.status();
    return PlanOf(*query, options);
  }
  // "+index/index:term^boost ... index:[place=word,...]" in the plan's order; G is the group.
  std::string Show(const absl::StatusOr<Plan>& plan) {
    if (!plan.ok()) return plan.status().ToString();
    std::string text;
    const auto show = [&](const auto& part, const std::string& words) {
      absl::StrAppend(&text, text.empty() ? "" : " ",
                      part.occur == Occur::kMust      ? "+"
                      : part.occur == Occur::kMustNot ? "-"
                                                      : "");
      std::string members;
      for (const format::IndexId member : plan->indexes[part.index].members) {
        absl::StrAppend(&members, members.empty() ? "" : "/",
                        member == format::kGroupIndex ? "G" : absl::StrCat(member));
      }
      absl::StrAppend(&text, members, ":", words);
      if (part.boost != 1) absl::StrAppend(&text, "^", part.boost);
    };
    for (const PlannedTerm& term : plan->terms) show(term, term.term);
    for (const PlannedPhrase& phrase : plan->phrases) {
      std::string words;
      for (const PlacedWord& word : phrase.words) absl::StrAppend(&words, word.place, "=", word.term, ",");
      show(phrase, absl::StrCat("[", words, "]"));
    }
    return text;
  }
  void ExpectInvalid(const absl::Status& status, const std::string& part) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
  }
  template <class P>
  void ExpectInvalid(const absl::StatusOr<P>& plan, const std::string& part) {
    ExpectInvalid(plan.status(), part);
  }

  Schema schema_;
  std::unique_ptr<text::DocumentAnalyzer> analyzer_;
};

TEST_F(PrepareTest, WordsBecomeTermsOfTheirIndexes) {
  EXPECT_EQ(Show(PlanOf("Quick")), "G:quick");
  EXPECT_EQ(Show(PlanOf("title:FOX")), "0:fox");
  EXPECT_EQ(Show(PlanOf("tag:Red\\ Hat")), "3:Red Hat");
  EXPECT_EQ(Show(PlanOf("id:Not\\ Words!")), "1:Not Words!");
  EXPECT_EQ(Show(PlanOf("english:running")), "6:run");
  EXPECT_TRUE(PlanOf("id:x")->indexes[0].is_key);
  EXPECT_FALSE(PlanOf("tag:x")->indexes[0].is_key);
}

TEST_F(PrepareTest, AClauseOfSeveralWords) {
  Query query;
  query.clauses = {{Occur::kMust, "", "red fox", 2}, {Occur::kMustNot, "", "blue hen", 1}};
  EXPECT_EQ(Show(PlanOf(query)), "-G:blue +G:fox^2 -G:hen +G:red^2");
  query.clauses = {{Occur::kShould, "", "red red", 2}};
  EXPECT_EQ(Show(PlanOf(query)), "G:red^4");
}

TEST_F(PrepareTest, TheOrderOfClausesDoesNotMatter) {
  const std::string plan = Show(PlanOf("c^3 +a title:b -d a^0.1 c^0.2"));
  EXPECT_EQ(Show(PlanOf("a^0.1 c^0.2 -d title:b c^3 +a")), plan);
  EXPECT_EQ(plan, "0:b +G:a^1.1 G:c^3.2 -G:d");
}

TEST_F(PrepareTest, BoostsAreAddedInAscendingOrder) {
  const double small = 1e-10;  // vanishes beside 1e6, but not so many of them
  std::vector<Clause> clauses = {{Occur::kShould, "", "x", 1e6}};
  double ascending = 0;
  double descending = 1e6;
  for (int i = 0; i < 100; ++i) {
    clauses.push_back({Occur::kShould, "", "x", small});
    ascending += small;
    descending += small;
  }
  ascending += 1e6;
  ASSERT_NE(ascending, descending);
  Query query;
  query.clauses = clauses;
  EXPECT_EQ(PlanOf(query)->terms[0].boost, ascending);
}

TEST_F(PrepareTest, AWordBothWantedAndExcludedStaysBoth) { EXPECT_EQ(Show(PlanOf("+x -x x")), "+G:x^2 -G:x"); }

TEST_F(PrepareTest, WordsThatTheAnalyzerRemoves) {
  EXPECT_TRUE(PlanOf("english:the +english:of")->matches_nothing);
  EXPECT_TRUE(PlanOf("!!!")->matches_nothing);
  EXPECT_TRUE(PlanOf("english:the -x")->matches_nothing);
  EXPECT_EQ(Show(PlanOf("+english:the x")), "G:x");
  EXPECT_FALSE(PlanOf("+english:the x")->matches_nothing);
}

TEST_F(PrepareTest, Phrases) {
  EXPECT_EQ(Show(PlanOf("\"Red Fox\"")), "G:[0=red,1=fox,]");
  EXPECT_EQ(Show(PlanOf("+title:\"red fox red\"^2 -\"a b\"")), "+0:[0=red,1=fox,2=red,]^2 -G:[0=a,1=b,]");
  // Their own clauses and terms; equal ones are one.
  EXPECT_EQ(Show(PlanOf("red \"red fox\" +\"red fox\"^3 -\"red fox\"")), "G:red +G:[0=red,1=fox,]^4 -G:[0=red,1=fox,]");
  // One word is a term.
  EXPECT_EQ(Show(PlanOf("\"fox\" fox +\"FOX!\"")), "+G:fox^3");
  EXPECT_EQ(Show(PlanOf("tag:\"Red Hat\" id:\"a b\"")), "1:a b 3:Red Hat");
}

TEST_F(PrepareTest, RemovedWordsKeepTheirPlaces) {
  EXPECT_EQ(Show(PlanOf("english:\"running to the foxes\"")), "6:[0=run,3=fox,]");
  EXPECT_EQ(Show(PlanOf("english:\"the running foxes of\"")), "6:[0=run,1=fox,]");
  EXPECT_EQ(Show(PlanOf("english:\"the foxes\"")), "6:fox");
  EXPECT_TRUE(PlanOf("english:\"to the\"")->matches_nothing);
  EXPECT_TRUE(PlanOf("\"\" \"!!!\"")->matches_nothing);
  EXPECT_EQ(Show(PlanOf("+english:\"to the\" x")), "G:x");
  // A word that is cut has a place like others.
  const std::string cut(255, 'x');
  EXPECT_EQ(Show(PlanOf("\"a " + cut + "yy b\"")), "G:[0=a,1=" + cut + ",2=b,]");
  // Without a field, each analyzer has its own.
  SearchOptions options;
  options.fields = {"english"};
  EXPECT_EQ(Show(PlanOf("\"running to foxes\"", options)), "6:[0=run,2=fox,]");
  EXPECT_EQ(Show(PlanOf("\"running to foxes\"")), "G:[0=running,1=to,2=foxes,]");
  options.fields = {"note", "body"};
  EXPECT_EQ(Show(PlanOf("\"running to\"", options)), "2/4:[0=running,1=to,]");
  EXPECT_TRUE(PlanOf("\"running to\"", options)->has_merged_index);
}

TEST_F(PrepareTest, APhraseCantBeWiderThanTheGapBetweenValues) {
  std::string wide = "english:\"fox";
  for (int i = 0; i < 99; ++i) wide += " the";
  EXPECT_EQ(Show(PlanOf(wide + " hen\"")), "6:[0=fox,100=hen,]");
  ExpectInvalid(PlanOf(wide + " the hen\""), "hen");
  EXPECT_EQ(Show(PlanOf(wide + " the\"")), "6:fox");
}

// Case C27: never an empty answer.
TEST_F(PrepareTest, C27PhrasesNeedPositions) {
  schema_.fields[kNote].positions = false;
  SearchOptions options;
  ExpectInvalid(PlanOf("note:\"red fox\""), "\"note\" can't be searched for phrases");
  ExpectInvalid(PlanOf("x -note:\"red fox\""), "\"positions\"");
  ExpectInvalid(Prepare(*ParseQuery("note:\"red fox\""), schema_, *analyzer_).status(), "note");
  EXPECT_EQ(Show(PlanOf("note:\"fox\"")), "4:fox");
  EXPECT_EQ(Show(PlanOf("note:red\\ fox")), "4:fox 4:red");
  EXPECT_EQ(Show(PlanOf("\"red fox\"")), "G:[0=red,1=fox,]");
  for (const std::vector<std::string>& fields :
       {std::vector<std::string>{"note"}, {"title", "note"}, {"note", "body"}}) {
    options.fields = fields;
    ExpectInvalid(PlanOf("\"red fox\"", options), "note");
    EXPECT_TRUE(PlanOf("\"fox\"", options).ok());
  }
  // A group keeps positions of all of its fields or of none.
  schema_.fields[kTitle].positions = false;
  EXPECT_FALSE(schema_.Validate().ok());
  schema_.fields[kBody].positions = false;
  EXPECT_TRUE(schema_.Validate().ok());
  ExpectInvalid(PlanOf("\"red fox\""), "title");
  EXPECT_EQ(Show(PlanOf("\"fox\"")), "G:fox");
}

TEST_F(PrepareTest, FieldsChooseTheIndex) {
  SearchOptions options;
  const auto with = [&](std::vector<std::string> fields) {
    options.fields = std::move(fields);
    return PlanOf("word note:word", options);
  };
  EXPECT_EQ(Show(with({"title", "body"})), "4:word G:word");
  EXPECT_EQ(Show(with({"body", "title"})), "4:word G:word");
  EXPECT_EQ(Show(with({"title"})), "0:word 4:word");
  EXPECT_EQ(Show(with({"note"})), "4:word^2");
  EXPECT_EQ(Show(with({"note", "body"})), "2/4:word 4:word");
  EXPECT_EQ(Show(with({"title", "note", "body"})), "0/2/4:word 4:word");
  EXPECT_TRUE(with({"note", "body"})->has_merged_index);
  EXPECT_FALSE(with({"title"})->has_merged_index);
  // The words are analysed as the searched fields are.
  options.fields = {"english"};
  EXPECT_EQ(Show(PlanOf("running the", options)), "6:run");
  EXPECT_TRUE(PlanOf("the", options)->matches_nothing);
}

TEST_F(PrepareTest, BadFields) {
  SearchOptions options;
  const auto with = [&](std::vector<std::string> fields) {
    options.fields = std::move(fields);
    return PlanOf("word", options);
  };
  ExpectInvalid(with({"title", "nothing"}), "nothing");
  ExpectInvalid(with({"tag"}), "tag");
  ExpectInvalid(with({"year"}), "year");
  ExpectInvalid(with({"title", "title"}), "twice");
  ExpectInvalid(with({"title", "english"}), "analyzer");
  ExpectInvalid(PlanOf("year:1999"), "year");
  ExpectInvalid(PlanOf("blob:x"), "blob");
  ExpectInvalid(PlanOf("nothing:x"), "nothing");
}

TEST_F(PrepareTest, QueriesWithoutAPositiveWord) {
  ExpectInvalid(PlanOf(""), "no word");
  ExpectInvalid(PlanOf("-x -title:y"), "no word");
  ExpectInvalid(PlanOf(PlainWords("  ")), "no word");
}

TEST_F(PrepareTest, QueriesMadeByHandAreChecked) {
  Query query;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double boost : {0.0, -1.0, 1e6 * 1.0000001, nan, std::numeric_limits<double>::infinity()}) {
    query.clauses = {{Occur::kShould, "", "x", boost}};
    ExpectInvalid(PlanOf(query), "boost");
  }
  query.clauses = {{Occur::kShould, "", "a\xFF", 1}};
  ExpectInvalid(PlanOf(query), "UTF-8");
  query.clauses = {{Occur::kShould, "a\xFF", "x", 1}};
  EXPECT_EQ(PlanOf(query).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PrepareTest, OptionsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SearchOptions options;
  options.k = 0;
  ExpectInvalid(PlanOf("x", options), "k must");
  for (const double k1 : {-0.1, 1000.5, nan}) {
    options = {};
    options.k1 = k1;
    ExpectInvalid(PlanOf("x", options), "k1");
  }
  for (const double b : {-0.1, 1.1, nan}) {
    options = {};
    options.b = b;
    ExpectInvalid(PlanOf("x", options), "b ");
  }
  options = {};
  options.k1 = 1000;
  options.b = 1;
  EXPECT_TRUE(PlanOf("x", options).ok());
}

TEST_F(PrepareTest, AFieldAddedLaterNeedsAnotherPreparation) {
  const auto prepared = Prepare(PlainWords("running"), schema_, *analyzer_);
  ASSERT_TRUE(prepared.ok());
  Schema wider = schema_;
  Field field;
  field.name = "plain";
  wider.fields.push_back(field);
  field.name = "german";
  field.analyzer.stem = "german";
  wider.fields.push_back(field);
  SearchOptions options;
  options.fields = {"plain"};
  EXPECT_TRUE(MakePlan(**prepared, wider, options).ok());
  options.fields = {"german"};
  ExpectInvalid(MakePlan(**prepared, wider, options), "german");
}

// The plan for the default group is made once. A snapshot from before a field was added does not know the field.
TEST_F(PrepareTest, SearchesOfTheDefaultGroupShareOnePlan) {
  const auto prepared = Prepare(*ParseQuery("title:one two"), schema_, *analyzer_);
  ASSERT_TRUE(prepared.ok());
  ASSERT_NE((*prepared)->default_plan, nullptr);
  SearchOptions options;
  EXPECT_EQ(*MakePlan(**prepared, schema_, options), (*prepared)->default_plan);
  options.k1 = -1;
  ExpectInvalid(MakePlan(**prepared, schema_, options), "k1");
  options = {};
  options.fields = {"body"};
  EXPECT_NE(*MakePlan(**prepared, schema_, options), (*prepared)->default_plan);

  Schema wider = schema_;
  Field field;
  field.name = "added";
  wider.fields.push_back(field);
  const auto analyzer = text::DocumentAnalyzer::Create(wider);
  ASSERT_TRUE(analyzer.ok());
  const auto newer = Prepare(*ParseQuery("added:one"), wider, **analyzer);
  ASSERT_TRUE(newer.ok());
  EXPECT_TRUE(MakePlan(**newer, wider, SearchOptions()).ok());
  ExpectInvalid(MakePlan(**newer, schema_, SearchOptions()), "another schema");
}

class PrepareWithoutGroupTest : public PrepareTest {
 protected:
  static Schema WithoutGroup() {
    Schema schema = TestSchema();
    schema.default_group.clear();
    return schema;
  }
  PrepareWithoutGroupTest() : PrepareTest(WithoutGroup()) {}
};

TEST_F(PrepareWithoutGroupTest, WordsNeedAField) {
  ExpectInvalid(PlanOf("word"), "word");
  EXPECT_EQ(Show(PlanOf("title:word")), "0:word");
}

class PrepareGroupOfOneTest : public PrepareTest {
 protected:
  static Schema GroupOfOne() {
    Schema schema = TestSchema();
    schema.default_group = {"body"};
    return schema;
  }
  PrepareGroupOfOneTest() : PrepareTest(GroupOfOne()) {}
};

TEST_F(PrepareGroupOfOneTest, ItsFieldIsTheGroup) {
  EXPECT_EQ(Show(PlanOf("word body:word title:word")), "0:word G:word^2");
}

}  // namespace
}  // namespace ashlar::query
