// Schema files and inference.
#include "tools/schema_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/status.h"

namespace ashlar::tools {
namespace {

std::string ErrorOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(FromAbsl(status.message()));
}

TEST(SchemaJsonTest, ReadsWhatTheFileSays) {
  const auto schema = SchemaFromJson(R"({"key":"id","default_group":["title","body"],"fields":[
    {"name":"id","type":"keyword"},
    {"name":"title","type":"text","stored":false,"positions":false,"analyzer":{"stop":"english33","stem":"porter"}},
    {"name":"body","type":"text","positions":false,"analyzer":{"stop":"english33","stem":"porter","marks":"keep"}},
    {"name":"de","type":"text","analyzer":{"stem":"german","marks":"remove"}},
    {"name":"n","type":"int64","column":false},{"name":"x","type":"double"},{"name":"d","type":"date"},
    {"name":"raw","type":"bytes"}]})");
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->key, "id");
  EXPECT_EQ(schema->default_group, std::vector<std::string>({"title", "body"}));
  ASSERT_EQ(schema->fields.size(), 8u);
  EXPECT_FALSE(schema->fields[1].stored);
  EXPECT_FALSE(schema->fields[1].positions);
  EXPECT_EQ(schema->fields[1].analyzer, AnalyzerOptions::English());
  EXPECT_EQ(schema->fields[3].analyzer.marks, Marks::kRemove);
  EXPECT_EQ(schema->fields[3].analyzer.stem, "german");
  EXPECT_FALSE(schema->fields[4].column);
  EXPECT_EQ(schema->fields[7].type, FieldType::kBytes);
  const auto back = SchemaFromJson(SchemaToJson(*schema));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, *schema);
}

TEST(SchemaJsonTest, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf(SchemaFromJson("{\n  \"key\": oops}").status()).substr(0, 24), "schema: line 2, column 1");
  EXPECT_EQ(ErrorOf(SchemaFromJson("[]").status()), "schema: the schema is not an object");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"text"}],"keys":"a"})").status()),
            "schema: the schema has an unknown member 'keys'");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"texts"}]})").status()),
            "schema: field 0 has no known \"type\": 'texts'");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"text","store":true}]})").status()),
            "schema: field 0 has an unknown member 'store'");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"text","stored":1}]})").status()),
            "schema: field 0 \"stored\" is not true or false");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"text","analyzer":{"stop":"all"}}]})").status()),
            "schema: the analyzer of field 0 \"stop\" is neither \"none\" nor \"english33\"");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"int64","analyzer":{}}]})").status()),
            "schema: field 0 has an \"analyzer\" and is not a text field");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"default_group":"a","fields":[]})").status()),
            "schema: the schema has a \"default_group\" that is not an array");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"key":"a","key":"b","fields":[{"name":"b","type":"keyword"}]})").status()),
            "schema: the member 'key' comes twice");
  EXPECT_EQ(ErrorOf(SchemaFromJson(R"({"fields":[{"name":"a","type":"text","type":"int64"}]})").status()),
            "schema: the member 'type' comes twice");
  EXPECT_EQ(ErrorOf(SchemaFromJson(
                        R"({"fields":[{"name":"a","type":"text","analyzer":{"stem":"none","st\u0065m":"porter"}}]})")
                        .status()),
            "schema: the member 'stem' comes twice");
  // What Schema::Validate finds.
  EXPECT_FALSE(SchemaFromJson(R"({"fields":[]})").ok());
  EXPECT_FALSE(SchemaFromJson(R"({"fields":[{"name":"a","type":"text"},{"name":"a","type":"text"}]})").ok());
  EXPECT_FALSE(SchemaFromJson(R"({"key":"a","fields":[{"name":"a","type":"text"}]})").ok());
}

TEST(SchemaJsonTest, PositionsAndColumnSayNothingWhereThereAreNone) {
  for (const char* flag : {"true", "false"}) {
    const std::string members = std::string(R"(,"positions":)") + flag + R"(,"column":)" + flag + "}";
    const auto schema = SchemaFromJson(R"({"fields":[{"name":"a","type":"int64")" + members +
                                       R"(,{"name":"b","type":"bytes")" + members + "]}");
    ASSERT_TRUE(schema.ok()) << schema.status();
    EXPECT_EQ(schema->fields.size(), 2u);
  }
}

absl::StatusOr<Schema> Infer(const std::vector<std::string>& lines, std::optional<std::string> key = std::nullopt) {
  SchemaInference inference(std::move(key), AnalyzerOptions::English());
  for (const std::string& line : lines) {
    const absl::Status status = inference.Add(line);
    if (!status.ok()) return status;
  }
  return inference.Finish();
}

TEST(SchemaInferenceTest, TypesFollowTheValues) {
  const auto schema = Infer({R"({"id":"1","title":"t","n":1,"x":1,"flag":true,"nothing":null,"list":[]})",
                             R"({"id":"2","body":["a","b"],"n":-5,"x":1.5,"flag":[false,null]})"});
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->key, "id");
  EXPECT_EQ(schema->default_group, std::vector<std::string>({"title", "body"}));
  std::vector<std::pair<std::string, FieldType>> fields;
  for (const Field& field : schema->fields) fields.emplace_back(field.name, field.type);
  EXPECT_EQ(fields, (std::vector<std::pair<std::string, FieldType>>({{"id", FieldType::kKeyword},
                                                                     {"title", FieldType::kText},
                                                                     {"n", FieldType::kInt64},
                                                                     {"x", FieldType::kDouble},
                                                                     {"flag", FieldType::kKeyword},
                                                                     {"body", FieldType::kText}})));
  EXPECT_TRUE(schema->fields[1].stored);
  EXPECT_TRUE(schema->fields[1].positions);
  EXPECT_EQ(schema->fields[1].analyzer, AnalyzerOptions::English());
  EXPECT_EQ(schema->fields[0].analyzer, AnalyzerOptions());
}

TEST(SchemaInferenceTest, TheKey) {
  // Not a string everywhere: no key, and a field like others.
  auto schema = Infer({R"({"id":"1","body":"b"})", R"({"body":"c"})"});
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->key, "");
  EXPECT_EQ(schema->fields[0].type, FieldType::kText);
  schema = Infer({R"({"id":1,"body":"b"})"});
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->key, "");
  schema = Infer({R"({"id":"1","url":"u"})"}, "url");
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->key, "url");
  EXPECT_EQ(schema->default_group, std::vector<std::string>({"id"}));
  EXPECT_FALSE(Infer({R"({"id":"1","url":"u"})", R"({"id":"2"})"}, "url").ok());
}

TEST(SchemaInferenceTest, WhatDoesNotGoTogether) {
  EXPECT_EQ(ErrorOf(Infer({R"({"a":{"b":1}})"}).status()), "1: field 'a' holds an object; no field type takes that");
  EXPECT_EQ(ErrorOf(Infer({R"({"a":[[1]]})"}).status()),
            "1: field 'a' holds an array in an array; no field type takes that");
  EXPECT_EQ(ErrorOf(Infer({R"({"a":1})", R"({"a":"x"})"}).status()),
            "1: field 'a' holds values of different types: int64 and text");
  EXPECT_EQ(ErrorOf(Infer({R"({"a":9223372036854775808})"}).status()),
            "1: field 'a': the integer is out of the range of int64");
  EXPECT_EQ(ErrorOf(Infer({}).status()), "there is no document to infer a schema from");
  EXPECT_EQ(ErrorOf(Infer({"{}"}).status()), "there is no document to infer a schema from");
  EXPECT_EQ(ErrorOf(Infer({R"({"a":1)"}).status()).substr(0, 18), "7: malformed JSON:");
}

TEST(SchemaInferenceTest, ABadLineSaysNothing) {
  SchemaInference inference(std::nullopt);
  ASSERT_TRUE(inference.Add(R"({"id":"1","a":"x"})").ok());
  ASSERT_FALSE(inference.Add(R"({"b":"x","a":1})").ok());
  const auto schema = inference.Finish();
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->key, "id");
  EXPECT_EQ(schema->fields.size(), 2u);
}

TEST(SchemaInferenceTest, NewFieldsOfOneLine) {
  Schema schema;
  schema.fields.emplace_back();
  schema.fields.back().name = "known";
  const auto infer = [&schema](std::string_view line) {
    return SchemaInference::InferNewFields(line, schema, AnalyzerOptions::English());
  };
  const auto fields = infer(R"({"a":[1,2.5],"known":{},"none":null,"empty":[],"b":"text"})");
  ASSERT_TRUE(fields.ok()) << fields.status();
  ASSERT_EQ(fields->size(), 2u);
  EXPECT_EQ((*fields)[0].name, "a");
  EXPECT_EQ((*fields)[0].type, FieldType::kDouble);
  EXPECT_EQ((*fields)[1].name, "b");
  EXPECT_EQ((*fields)[1].analyzer, AnalyzerOptions::English());
  EXPECT_EQ(infer(R"({"a":1,"b":{}})").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SchemaInferenceTest, Analyzers) {
  EXPECT_EQ(*AnalyzerByName("plain"), AnalyzerOptions());
  EXPECT_EQ(*AnalyzerByName("english"), AnalyzerOptions::English());
  EXPECT_FALSE(AnalyzerByName("klingon").ok());
}

}  // namespace
}  // namespace ashlar::tools
