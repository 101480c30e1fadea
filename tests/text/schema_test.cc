// Schema::Validate: what is refused, and that the message names it.
#include "ashlar/schema.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace ashlar {
namespace {

Schema Good() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields.resize(4);
  schema.fields[0].name = "id";
  schema.fields[0].type = FieldType::kKeyword;
  schema.fields[1].name = "title";
  schema.fields[2].name = "body";
  schema.fields[3].name = "year";
  schema.fields[3].type = FieldType::kInt64;
  return schema;
}

TEST(SchemaValidate, AcceptsAGoodOne) {
  const Schema schema = Good();
  EXPECT_TRUE(schema.Validate().ok()) << schema.Validate();
  EXPECT_EQ(schema.IndexOf("body"), 2);
  EXPECT_EQ(schema.IndexOf("nobody"), -1);
  EXPECT_EQ(schema.KeyIndex(), 0);
  Schema keyless = schema;
  keyless.key.clear();
  keyless.default_group.clear();
  EXPECT_TRUE(keyless.Validate().ok());
  EXPECT_EQ(keyless.KeyIndex(), -1);
}

TEST(SchemaValidate, RefusesAndNamesTheFault) {
  const struct {
    std::function<void(Schema*)> change;
    std::string message;
  } cases[] = {
      {[](Schema* s) { s->fields.clear(); }, "without fields"},
      {[](Schema* s) { s->fields.resize(1001); }, "1001 fields"},
      {[](Schema* s) { s->fields[3].name = ""; }, "field 3 has no name"},
      {[](Schema* s) { s->fields[3].name = "_year"; }, "\"_year\""},
      {[](Schema* s) { s->fields[3].name = std::string(256, 'x'); }, "field 3 is over 255 bytes"},
      {[](Schema* s) { s->fields[3].name = "a\nb"; }, "control character"},
      {[](Schema* s) { s->fields[3].name = std::string("a\0b", 3); }, "control character"},
      {[](Schema* s) { s->fields[3].name = "a\xC2\x85"; }, "control character"},
      {[](Schema* s) { s->fields[3].name = "a\x7F"; }, "control character"},
      {[](Schema* s) { s->fields[3].name.push_back('\xFF'); }, "not valid UTF-8"},
      {[](Schema* s) { s->fields[3].name = "body"; }, "\"body\" occurs twice"},
      {[](Schema* s) { s->fields[3].type = static_cast<FieldType>(0); }, "\"year\": unknown type 0"},
      {[](Schema* s) { s->fields[3].type = static_cast<FieldType>(7); }, "unknown type 7"},
      {[](Schema* s) { s->fields[2].analyzer.stem = "klingon"; }, "unknown stemmer \"klingon\""},
      {[](Schema* s) { s->fields[2].analyzer.stop = static_cast<StopWords>(9); }, "unknown stop words"},
      {[](Schema* s) { s->fields[2].analyzer.marks = static_cast<Marks>(9); }, "unknown rule for marks"},
      {[](Schema* s) {
         s->default_group = {"title", "summary"};
       },
       "unknown field \"summary\""},
      {[](Schema* s) {
         s->default_group = {"title", "year"};
       },
       "\"year\" is not text"},
      {[](Schema* s) {
         s->default_group = {"title", "title"};
       },
       "\"title\" occurs twice"},
      {[](Schema* s) { s->fields[2].analyzer = AnalyzerOptions::English(); }, "\"title\" and \"body\" differ"},
      {[](Schema* s) { s->fields[2].positions = false; }, "\"title\" and \"body\" differ"},
      {[](Schema* s) { s->key = "isbn"; }, "key: unknown field \"isbn\""},
      {[](Schema* s) { s->key = "title"; }, "\"title\" is not a keyword"},
  };
  for (const auto& c : cases) {
    Schema schema = Good();
    c.change(&schema);
    const absl::Status status = schema.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_NE(std::string(status.message()).find(c.message), std::string::npos) << status << " for " << c.message;
  }
}

TEST(SchemaValidate, NamesMayBeAnyScript) {
  Schema schema = Good();
  schema.fields[3].name = "\xE9\xA1\x8C\xE5\x90\x8D";
  EXPECT_TRUE(schema.Validate().ok());
  schema.fields[3].name.assign(255, 'x');
  EXPECT_TRUE(schema.Validate().ok());
}

TEST(FieldTypeName, NamesEveryType) {
  EXPECT_EQ(FieldTypeName(FieldType::kText), "text");
  EXPECT_EQ(FieldTypeName(FieldType::kKeyword), "keyword");
  EXPECT_EQ(FieldTypeName(FieldType::kInt64), "int64");
  EXPECT_EQ(FieldTypeName(FieldType::kDouble), "double");
  EXPECT_EQ(FieldTypeName(FieldType::kDate), "date");
  EXPECT_EQ(FieldTypeName(FieldType::kBytes), "bytes");
  EXPECT_EQ(FieldTypeName(static_cast<FieldType>(0)), "");
}

}  // namespace
}  // namespace ashlar
