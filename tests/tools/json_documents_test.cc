// JSON lines to documents and back: every type, every kind of bad input and where it is said to be.
#include "tools/json_documents.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/base/prng.h"
#include "src/base/status.h"
#include "tools/line_reader.h"

namespace ashlar::tools {
namespace {

Schema TestSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  const std::pair<const char*, FieldType> fields[] = {{"id", FieldType::kKeyword}, {"title", FieldType::kText},
                                                      {"body", FieldType::kText},  {"tag", FieldType::kKeyword},
                                                      {"n", FieldType::kInt64},    {"x", FieldType::kDouble},
                                                      {"when", FieldType::kDate},  {"raw", FieldType::kBytes}};
  for (const auto& [name, type] : fields) {
    schema.fields.emplace_back();
    schema.fields.back().name = name;
    schema.fields.back().type = type;
  }
  return schema;
}

struct Outcome {
  absl::Status status;
  Document document;
  std::string unknown;
};

Outcome ParseLine(std::string_view line, const Schema& schema = TestSchema()) {
  DocumentParser parser(schema);
  std::string padded(line);
  padded.append(kLinePadding, '#');
  Outcome outcome;
  outcome.status = parser.Parse(std::string_view(padded).substr(0, line.size()), &outcome.document);
  outcome.unknown = parser.unknown_field();
  return outcome;
}

// The message of a line that must fail.
std::string ErrorOf(std::string_view line) {
  const Outcome outcome = ParseLine(line);
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(FromAbsl(outcome.status.message()));
}

TEST(JsonDocumentsTest, EveryTypeHasItsValue) {
  const Outcome outcome =
      ParseLine(R"({"id":"a","title":"Caf\u00e9 \"x\"","body":"","tag":[true,"b",null,false],"n":-9223372036854775808,)"
                R"("x":1e3,"when":"2024-02-29","raw":"AAEC/w=="} )");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  Document expected;
  expected.Add("id", std::string("a"))
      .Add("title", std::string("Caf\xC3\xA9 \"x\""))
      .Add("body", std::string())
      .Add("tag", std::string("true"))
      .Add("tag", std::string("b"))
      .Add("tag", std::string("false"))
      .Add("n", std::numeric_limits<int64_t>::min())
      .Add("x", 1000.0)
      .Add("when", Date{1709164800000})
      .Add("raw", Blob{std::string("\x00\x01\x02\xff", 4)});
  EXPECT_EQ(outcome.document, expected);
}

TEST(JsonDocumentsTest, OrderOfMembersAndBlanksDoNotMatter) {
  const Outcome outcome = ParseLine(" \t{ \"body\" : \"b\" , \"n\" : 7 , \"id\" : \"k\" , \"title\" : \"t\" }\r");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.document.values.size(), 4u);
  EXPECT_EQ(*outcome.document.Find("id"), Value(std::string("k")));
  EXPECT_EQ(*outcome.document.Find("n"), Value(int64_t{7}));
}

TEST(JsonDocumentsTest, EscapedMemberNamesAreTheSameNames) {
  const Outcome outcome = ParseLine(R"({"\u0069d":"k","bod\u0079":"text"})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(*outcome.document.Find("body"), Value(std::string("text")));
}

TEST(JsonDocumentsTest, NullAndEmptyArraysAreMissingUnderAnyName) {
  const Outcome outcome = ParseLine(R"({"id":"k","title":null,"body":[],"tag":[null],"nobody":null,"else":[ ]})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.document.values.size(), 1u);
}

TEST(JsonDocumentsTest, NulCharacterIsACharacter) {
  const Outcome outcome = ParseLine(R"({"id":"k","body":"a\u0000b"})");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(*outcome.document.Find("body"), Value(std::string("a\0b", 3)));
}

TEST(JsonDocumentsTest, ErrorsNameTheColumn) {
  EXPECT_EQ(ErrorOf(R"({"id":"k","n":"7"})"), "15: field 'n' of type int64 takes an integer, not a string");
  EXPECT_EQ(ErrorOf(R"({"id":"k","body":7})"), "18: field 'body' of type text takes a string, not a number");
  EXPECT_EQ(ErrorOf(R"({"id":"k","body":true})"), "18: field 'body' of type text takes a string, not a boolean");
  EXPECT_EQ(ErrorOf(R"({"id":"k","body":{"a":1}})"), "18: field 'body' of type text takes a string, not an object");
  EXPECT_EQ(ErrorOf(R"({"id":"k","tag":[ ["a"] ]})"),
            "19: field 'tag' of type keyword takes a string or a boolean, not an array in an array");
  EXPECT_EQ(ErrorOf(R"({"id":"k","n":1.5})"), "15: field 'n' of type int64 takes integers only");
  EXPECT_EQ(ErrorOf(R"({"id":"k","n":9223372036854775808})"),
            "15: field 'n' of type int64: the integer is out of the range of int64");
  EXPECT_EQ(ErrorOf(R"({"id":"k","n":123456789012345678901234567890})"),
            "15: field 'n' of type int64: the integer is out of the range of int64");
  EXPECT_EQ(ErrorOf(R"({"id":"k","when":"2023-02-29"})"),
            "18: field 'when' takes a date like 2024-02-29 or 2024-02-29T12:00:00Z");
  EXPECT_EQ(ErrorOf(R"({"id":"k","raw":"not base64!"})"), "17: field 'raw' takes a string of base64");
  EXPECT_EQ(ErrorOf(R"({"id":"k","title":"a","title":"b"})"),
            "23: field 'title' comes twice; several values are an array");
  EXPECT_EQ(ErrorOf(R"({"id":"k","colour":"red"})"), "11: unknown field 'colour'");
  EXPECT_EQ(ErrorOf(R"( [1])"), "2: a document is a JSON object");
  EXPECT_EQ(ErrorOf(R"({"title":"t"})"), "1: the document has no value in the key field 'id'");
  EXPECT_EQ(ErrorOf(R"({"id":null})"), "1: the document has no value in the key field 'id'");
  EXPECT_EQ(ErrorOf(R"({"id":["a","b"]})"), "1: the document has several values in the key field 'id'");
  EXPECT_EQ(ErrorOf(R"({"id":""})"), "7: the key is empty");
}

TEST(JsonDocumentsTest, MalformedLinesNameTheColumn) {
  EXPECT_EQ(ErrorOf(R"({"id":"k" "n":1})").substr(0, 19), "11: malformed JSON:");
  EXPECT_EQ(ErrorOf(R"({"id":"k"} x)").substr(0, 19), "12: malformed JSON:");
  EXPECT_EQ(ErrorOf(R"({"id":"k"}{"id":"l"})").substr(0, 19), "11: malformed JSON:");
  EXPECT_EQ(ErrorOf(R"({"id":"k","n":01})").substr(0, 19), "16: malformed JSON:");
  EXPECT_EQ(ErrorOf("{\"id\":\"k\",\"body\":\"a\xff\"}").substr(0, 19), "20: malformed JSON:");
  EXPECT_EQ(ErrorOf(std::string_view("{\"id\":\"k\0\"}", 11)).substr(0, 18), "9: malformed JSON:");
  EXPECT_EQ(ErrorOf(R"({"id":"\ud800"})").substr(0, 19), "14: malformed JSON:");
  // Of two errors in a line, that it is no JSON is the one to tell.
  EXPECT_EQ(ErrorOf(R"({"colour":"red","id":tru})").substr(0, 19), "25: malformed JSON:");
}

TEST(JsonDocumentsTest, UnknownFieldIsNamedOnlyIfThatIsTheError) {
  EXPECT_EQ(ParseLine(R"({"id":"k","colour":"red"})").unknown, "colour");
  EXPECT_EQ(ParseLine(R"({"id":"k","c\u006flour":["red"]})").unknown, "colour");
  EXPECT_EQ(ParseLine(R"({"id":"k","n":"7"})").unknown, "");
  EXPECT_EQ(ParseLine(R"({"id":"k","colour":"red")").unknown, "");
}

TEST(JsonDocumentsTest, ParserIsUsableAfterAnError) {
  DocumentParser parser(TestSchema());
  const std::string bad = R"({"id":"k","title":"t","title":"u"})" + std::string(kLinePadding, ' ');
  const std::string good = R"({"id":"k","title":"t","body":"b"})" + std::string(kLinePadding, ' ');
  Document document;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(parser.Parse(std::string_view(bad).substr(0, bad.size() - kLinePadding), &document).ok());
    ASSERT_TRUE(parser.Parse(std::string_view(good).substr(0, good.size() - kLinePadding), &document).ok());
    EXPECT_EQ(document.values.size(), 3u);
  }
}

TEST(JsonDocumentsTest, DatesReadAndWrite) {
  EXPECT_EQ(ParseDate("1970-01-01")->milliseconds, 0);
  EXPECT_EQ(ParseDate("1970-01-01T00:00:01Z")->milliseconds, 1000);
  EXPECT_EQ(ParseDate("1969-12-31T23:59:59.999Z")->milliseconds, -1);
  EXPECT_EQ(ParseDate("2000-03-01T01:00:00.5+01:00")->milliseconds, 951868800500);
  EXPECT_EQ(ParseDate("2000-02-29T20:30:00.123456789-03:30")->milliseconds, 951868800123);
  for (const char* bad :
       {"", "2024", "2024-13-01", "2024-00-10", "2024-04-31", "2024-01-01T", "2024-01-01T10:00:00",
        "2024-01-01T24:00:00Z", "2024-01-01T10:60:00Z", "2024-01-01T10:00:00.Z", "2024-01-01T10:00:00+1:00",
        "2024-01-01T10:00:00.1234567890Z", "2024-1-1", "20240101", "2024-01-01Z", "2024-01-01T10:00:00Zx"}) {
    EXPECT_FALSE(ParseDate(bad).has_value()) << bad;
  }
  EXPECT_EQ(FormatDate({0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatDate({-1}), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatDate({951868800123}), "2000-03-01T00:00:00.123Z");
  Prng prng(7);
  for (int i = 0; i < 10000; ++i) {
    // Years 0 to 9999.
    const Date date{static_cast<int64_t>(prng.Below(315569520000000)) - 62167219200000};
    ASSERT_EQ(ParseDate(FormatDate(date)), date) << FormatDate(date);
  }
}

TEST(JsonDocumentsTest, DocumentsSurviveTheRoundTrip) {
  const uint64_t seed = 20240229;
  SCOPED_TRACE(seed);
  Prng prng(seed);
  const std::vector<std::string> texts = {"",
                                          "plain words",
                                          "quote \" backslash \\ slash /",
                                          std::string("nul \0 x", 7),
                                          "tab\tline\nreturn\r",
                                          "\xE2\x82\xAC \xF0\x9F\x98\x80",
                                          "\x7f\x01"};
  for (int round = 0; round < 2000; ++round) {
    Document document;
    document.Add("id", std::to_string(round));
    for (uint64_t n = prng.Below(4); n > 0; --n) document.Add("title", texts[prng.Below(texts.size())]);
    for (uint64_t n = prng.Below(3); n > 0; --n) document.Add("n", static_cast<int64_t>(prng.Next()));
    for (uint64_t n = prng.Below(3); n > 0; --n) document.Add("x", (prng.Uniform() - 0.5) * 1e10);
    for (uint64_t n = prng.Below(3); n > 0; --n) document.Add("when", Date{static_cast<int64_t>(prng.Next() >> 8) * 5});
    if (prng.OneIn(2)) document.Add("raw", Blob{texts[prng.Below(texts.size())]});
    const std::string json = DocumentToJson(document);
    const Outcome back = ParseLine(json);
    ASSERT_TRUE(back.status.ok()) << back.status << " " << json;
    ASSERT_EQ(back.document, document) << json;
  }
}

TEST(JsonDocumentsTest, BigNumbersInDoubleFields) {
  EXPECT_EQ(*ParseLine(R"({"id":"k","x":18446744073709551616})").document.Find("x"), Value(18446744073709551616.0));
  EXPECT_EQ(*ParseLine(R"({"id":"k","x":5})").document.Find("x"), Value(5.0));
  EXPECT_EQ(ErrorOf(R"({"id":"k","x":1e999})").find("malformed JSON: "), 4u);
}

double StoredDouble(const std::string& literal) {
  const Outcome outcome = ParseLine("{\"x\":" + literal + ",\"id\":\"k\"}");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status << " " << literal;
  const Value* value = outcome.document.Find("x");
  return value != nullptr ? std::get<double>(*value) : std::nan("");
}

// The bits, so that -0.0 is not 0.0.
void ExpectAsStrtod(const std::string& literal) {
  EXPECT_EQ(std::bit_cast<uint64_t>(StoredDouble(literal)),
            std::bit_cast<uint64_t>(std::strtod(literal.c_str(), nullptr)))
      << literal;
}

TEST(JsonDocumentsTest, DoublesOfManyDigits) {
  for (const char* literal : {"0.950000000000000000000",
                              "0.95000000000000000000",
                              "-0.950000000000000000000",
                              "0.10000000000000000000000001",
                              "0.000000000000000000000000000001",
                              "0.99999999999999999999",
                              "123456789012345678901234567890.5",
                              "1.7976931348623157e308",
                              "2.2250738585072014e-308",
                              "4.9e-324",
                              "2e-324",
                              "1e-400",
                              "-1e-400",
                              "-0",
                              "-0.0",
                              "0e999",
                              "9007199254740993",
                              "9007199254740992.99999999999999999999999",
                              "0.5E+3",
                              "12e-3",
                              "1.00000000000000011102230246251565404236316680908203125"}) {
    ExpectAsStrtod(literal);
  }
  EXPECT_EQ(StoredDouble("0.950000000000000000000"), 0.95);
  EXPECT_EQ(StoredDouble("0.950000000000000000000 \t"), 0.95);
  const Outcome several = ParseLine(R"({"id":"k","x":[ 0.950000000000000000000 ,1.5, 2]})");
  ASSERT_TRUE(several.status.ok()) << several.status;
  ASSERT_EQ(several.document.values.size(), 4u);
  EXPECT_EQ(several.document.values[1].value, Value(0.95));
  EXPECT_EQ(several.document.values[3].value, Value(2.0));
}

TEST(JsonDocumentsTest, RandomDoubleLiterals) {
  const uint64_t seed = 2093;
  SCOPED_TRACE(seed);
  Prng prng(seed);
  const auto add_digits = [&prng](uint64_t count, std::string* text) {
    for (; count > 0; --count) text->push_back(static_cast<char>('0' + prng.Below(10)));
  };
  for (int round = 0; round < 5000; ++round) {
    std::string literal = prng.OneIn(2) ? "-" : "";
    if (prng.OneIn(2)) {
      literal += "0";
    } else {
      literal += static_cast<char>('1' + prng.Below(9));
      add_digits(prng.Below(30), &literal);
    }
    if (!prng.OneIn(4)) {
      literal += "." + std::string(prng.Below(4) * prng.Below(10), '0');
      add_digits(1 + prng.Below(30), &literal);
    }
    if (prng.OneIn(3)) literal += std::string("e") + (prng.OneIn(2) ? "-" : "") + std::to_string(prng.Below(270));
    ASSERT_NO_FATAL_FAILURE(ExpectAsStrtod(literal));
  }
}

TEST(JsonDocumentsTest, NumbersThatAreNone) {
  for (const char* bad : {"01.5", "1.",   ".5", "-",   "-.5",   "1e",     "1e+", "1.5.5", "0x10", "-inf",
                          "-nan", "1.5x", "+1", "--1", "1e400", "-1e400", "1 2", "1\t.5", "NaN",  "Infinity"}) {
    EXPECT_NE(ErrorOf(std::string("{\"id\":\"k\",\"x\":") + bad + "}").find("malformed JSON: "), std::string::npos)
        << bad;
    EXPECT_NE(ErrorOf(std::string("{\"id\":\"k\",\"x\":[") + bad + "]}").find("malformed JSON: "), std::string::npos)
        << bad;
  }
}

}  // namespace
}  // namespace ashlar::tools
