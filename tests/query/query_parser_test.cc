// The query syntax: what it means, where it goes wrong, and that no input can hurt.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/query.h"
#include "gtest/gtest.h"
#include "src/base/prng.h"

namespace ashlar {
namespace {

std::string Show(const Query& query) {
  std::string text;
  for (const Clause& c : query.clauses) {
    absl::StrAppend(&text, text.empty() ? "" : " | ",
                    c.occur == Occur::kMust      ? "+"
                    : c.occur == Occur::kMustNot ? "-"
                                                 : "",
                    c.field.empty() ? "" : c.field + " = ", c.phrase ? "[" : "", c.text, c.phrase ? "]" : "");
    if (c.boost != 1) absl::StrAppend(&text, " ^ ", c.boost);
  }
  return text;
}

struct Meaning {
  const char* query;
  const char* clauses;
};

TEST(QueryParserTest, Meanings) {
  const Meaning table[] = {
      {"", ""},
      {" \t\r\n ", ""},
      {"word", "word"},
      {"any of these", "any | of | these"},
      {"+must -not maybe", "+must | -not | maybe"},
      {"field:word", "field = word"},
      {"+field:word -other:word", "+field = word | -other = word"},
      {"word^2.5", "word ^ 2.5"},
      {"+title:fast^0.25", "+title = fast ^ 0.25"},
      {"w^1e3", "w ^ 1000"},
      {"well-known c++ a+b", "well-known | c++ | a+b"},
      {"\\+literal \\-literal", "+literal | -literal"},
      {"a\\:b", "a:b"},
      {"f\\:g:w", "f:g = w"},
      {"url:http://host:80/x", "url = http://host:80/x"},
      {"a\\^2", "a^2"},
      {"tag:New\\ York", "tag = New York"},
      {"back\\\\slash", "back\\slash"},
      {"\"two words\"", "[two words]"},
      {"a \"b c\" d", "a | [b c] | d"},
      {"+\"a b\" -\"c d\"", "+[a b] | -[c d]"},
      {"title:\"a b\" +title:\"c\" -f:\"d\"", "title = [a b] | +title = [c] | -f = [d]"},
      {"\"a b\"^2 f:\"c\"^0.5", "[a b] ^ 2 | f = [c] ^ 0.5"},
      {"\"\"", "[]"},
      {"\" a  +b -c:d^2 \"", "[ a  +b -c:d^2 ]"},
      {"\"say \\\"cheese\\\" now\"", "[say \"cheese\" now]"},
      {"\"back\\\\slash\"", "[back\\slash]"},
      {"\"a \\b\"", "[a b]"},
      {"\\\"a b\\\"", "\"a | b\""},
      {"5\" nails", "5\" | nails"},
      {"rock\"n\"roll a\"", "rock\"n\"roll | a\""},
      {"f\"g:h i:j\"k", "f\"g = h | i = j\"k"},
      {"\xE2\x80\x9C"
       "a b\xE2\x80\x9D",
       "\xE2\x80\x9C"
       "a | b\xE2\x80\x9D"},
      {"\"a\tb\nc\"", "[a\tb\nc]"},
      {"(a OR b)*", "(a | OR | b)*"},
      {"+\xC3\xA9t\xC3\xA9:\xE4\xB8\xAD^2", "+\xC3\xA9t\xC3\xA9 = \xE4\xB8\xAD ^ 2"},
      {"-5", "-5"},
  };
  for (const Meaning& row : table) {
    const auto query = ParseQuery(row.query);
    ASSERT_TRUE(query.ok()) << row.query << ": " << query.status();
    EXPECT_EQ(Show(*query), row.clauses) << row.query;
  }
  EXPECT_EQ(ParseQuery("-5")->clauses[0].occur, Occur::kMustNot);
  EXPECT_EQ(ParseQuery("-5")->clauses[0].text, "5");
}

struct Mistake {
  const char* query;
  int column;
};

TEST(QueryParserTest, MistakesNameTheirColumn) {
  const Mistake table[] = {
      {"+", 2},
      {"-", 2},
      {"a - b", 4},
      {"++a", 2},
      {"a +-b", 4},
      {":word", 1},
      {"a :b", 3},
      {"field:", 7},
      {"+field:", 8},
      {"f: word", 3},
      {"^2", 1},
      {"f:^2", 3},
      {"word^", 6},
      {"word^x", 6},
      {"word^2x", 6},
      {"word^0", 6},
      {"word^-1", 6},
      {"word^1e7", 6},
      {"word^inf", 6},
      {"word^nan", 6},
      {"word^1e999", 6},
      {"word^1e-999", 6},
      {"a^2^3", 3},
      {"word\\", 5},
      {"a^+2", 3},
      {"\xC3\xA9 \xC3\xA9^", 5},
      {"ab \xFF", 4},
      {"\xC3\xA9\xC3", 2},
      {"x^0x10", 3},
      {"\"", 1},
      {"\"a b", 1},
      {"a +\"b c", 4},
      {"f:\"a b", 3},
      {"\xC3\xA9 \"\xC3\xA9", 3},
      {"\"a\\", 1},
      {"\"a\\\"", 1},
      {"\"a b\"c", 6},
      {"\"a b\":c", 6},
      {"\"a b\"\"c\"", 6},
      {"\"a b\"~2", 6},
      {"\"a b\"^", 7},
      {"\"a b\"^x", 7},
      {"a \"b\" c\" \"", 10},
  };
  for (const Mistake& row : table) {
    const absl::Status status = ParseQuery(row.query).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.query;
    const std::string start = absl::StrCat("query, column ", row.column, ":");
    EXPECT_EQ(std::string(status.message()).substr(0, start.size()), start) << row.query << " gave " << status;
  }
}

TEST(QueryParserTest, NulBytesAreOrdinary) {
  const auto query = ParseQuery(std::string("a\0b c", 5));
  ASSERT_TRUE(query.ok());
  ASSERT_EQ(query->clauses.size(), 2u);
  EXPECT_EQ(query->clauses[0].text, std::string("a\0b", 3));
}

TEST(QueryParserTest, PlainWordsGiveNoCharacterAMeaning) {
  EXPECT_EQ(Show(PlainWords("  +a -b:c ^2 \\ d\t\n")), "+a | -b:c | ^2 | \\ | d");
  for (const Clause& clause : PlainWords("+a -b:c ^2").clauses) {
    EXPECT_EQ(clause.occur, Occur::kShould);
    EXPECT_EQ(clause.field, "");
    EXPECT_EQ(clause.boost, 1.0);
  }
  EXPECT_TRUE(PlainWords("").clauses.empty());
  EXPECT_EQ(Show(PlainWords("he said \"yes and no\"")), "he | said | \"yes | and | no\"");
}

// Whatever parses must come back the same from its own escaped form.
std::string Escaped(const Query& query) {
  std::string text;
  const auto append = [&text](const std::string& word) {
    for (const char c : word) {
      if (c == ' ' || (c >= '\t' && c <= '\r') || std::string("\\+-:^\"").find(c) != std::string::npos) text += '\\';
      text += c;
    }
  };
  for (const Clause& c : query.clauses) {
    text += c.occur == Occur::kMust ? " +" : c.occur == Occur::kMustNot ? " -" : " ";
    append(c.field);
    if (!c.field.empty()) text += ':';
    if (c.phrase) text += '"';
    append(c.text);
    if (c.phrase) text += '"';
    if (c.boost != 1) absl::StrAppend(&text, "^", absl::StrFormat("%.17g", c.boost));
  }
  return text;
}

TEST(QueryParserTest, RandomInputParsesOrNamesAColumn) {
  const uint64_t seed = 97;
  SCOPED_TRACE(seed);
  Prng prng(seed);
  using std::string_literals::operator""s;
  const std::string alphabet = "ab :^+-\\\"\t\n\0.019e\xC3\xA9\xF0\x9F\x98\x80\xFF"s;
  int parsed = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text;
    for (uint64_t i = prng.Below(24); i > 0; --i) text += alphabet[prng.Below(alphabet.size())];
    const auto query = ParseQuery(text);
    if (!query.ok()) {
      ASSERT_EQ(query.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_NE(std::string(query.status().message()).find("column "), std::string::npos);
      continue;
    }
    ++parsed;
    const auto again = ParseQuery(Escaped(*query));
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(Show(*again), Show(*query));
  }
  EXPECT_GT(parsed, 1000);
}

TEST(QueryParserTest, VeryLongInput) {
  const std::string word(200000, 'x');
  const auto one = ParseQuery(word);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->clauses[0].text.size(), word.size());
  std::string many;
  for (int i = 0; i < 100000; ++i) many += "+a ";
  EXPECT_EQ(ParseQuery(many)->clauses.size(), 100000u);
  EXPECT_FALSE(ParseQuery(std::string(100000, '+')).ok());
  EXPECT_FALSE(ParseQuery(std::string(100001, '\\')).ok());
}

}  // namespace
}  // namespace ashlar
