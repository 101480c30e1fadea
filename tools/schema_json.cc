#include "tools/schema_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "tools/files.h"
#include "tools/json_documents.h"

namespace ashlar::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFieldTypes = {FieldType::kText,   FieldType::kKeyword, FieldType::kInt64,
                                    FieldType::kDouble, FieldType::kDate,    FieldType::kBytes};

std::string Quoted(std::string_view name) { return absl::StrCat("'", absl::CHexEscape(ToAbsl(name)), "'"); }

// Reads the members of one object: each by name, then none may be left.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Fail("is not an object");
  }

  std::string String(const char* name, std::string fallback) {
    const Json* member = Member(name);
    if (member == nullptr) return fallback;
    if (member->is_string()) return member->get<std::string>();
    Fail(absl::StrCat("\"", name, "\" is not a string"));
    return fallback;
  }
  bool Bool(const char* name, bool fallback) {
    const Json* member = Member(name);
    if (member == nullptr) return fallback;
    if (member->is_boolean()) return member->get<bool>();
    Fail(absl::StrCat("\"", name, "\" is not true or false"));
    return fallback;
  }
  const Json* Member(const char* name) {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    if (found == json_.end()) return nullptr;
    ++read_;
    names_.push_back(name);
    return &*found;
  }
  void Fail(std::string_view what) {
    if (status_.ok()) status_ = InvalidArgument(absl::StrCat("schema: ", where_, " ", ToAbsl(what)));
  }
  absl::Status Finish() {
    if (!status_.ok() || read_ == json_.size()) return status_;
    for (const auto& member : json_.items()) {
      bool known = false;
      for (const char* name : names_) known = known || member.key() == name;
      if (!known) Fail(absl::StrCat("has an unknown member ", Quoted(member.key())));
    }
    return status_;
  }

 private:
  const Json& json_;
  std::string where_;
  size_t read_ = 0;
  std::vector<const char*> names_;
  absl::Status status_;
};

absl::Status ReadAnalyzer(const Json& json, const std::string& where, AnalyzerOptions* analyzer) {
  ObjectReader reader(json, where);
  const std::string stop = reader.String("stop", "none");
  const std::string marks = reader.String("marks", "keep");
  analyzer->stem = reader.String("stem", "none");
  if (stop != "none" && stop != "english33") reader.Fail("\"stop\" is neither \"none\" nor \"english33\"");
  if (marks != "keep" && marks != "remove") reader.Fail("\"marks\" is neither \"keep\" nor \"remove\"");
  analyzer->stop = stop == "english33" ? StopWords::kEnglish33 : StopWords::kNone;
  analyzer->marks = marks == "remove" ? Marks::kRemove : Marks::kKeep;
  return reader.Finish();
}

absl::Status ReadField(const Json& json, size_t number, Field* field) {
  const std::string where = absl::StrCat("field ", number);
  ObjectReader reader(json, where);
  field->name = reader.String("name", "");
  const std::string type = reader.String("type", "");
  bool known = false;
  for (const FieldType candidate : kFieldTypes) {
    if (type != FieldTypeName(candidate)) continue;
    field->type = candidate;
    known = true;
  }
  if (!known) reader.Fail(absl::StrCat("has no known \"type\": ", Quoted(type)));
  field->stored = reader.Bool("stored", field->stored);
  field->positions = reader.Bool("positions", field->positions);
  field->column = reader.Bool("column", field->column);
  if (const Json* analyzer = reader.Member("analyzer"); analyzer != nullptr) {
    if (field->type != FieldType::kText) reader.Fail("has an \"analyzer\" and is not a text field");
    ASHLAR_RETURN_IF_ERROR(ReadAnalyzer(*analyzer, absl::StrCat("the analyzer of ", where), &field->analyzer));
  }
  return reader.Finish();
}

// "line 3, column 7: ..." for a text of several lines.
absl::Status SyntaxError(std::string_view text) {
  const std::optional<std::string> error = FindJsonError(text);
  if (!error.has_value()) return absl::OkStatus();
  const size_t byte = std::stoull(*error);
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const size_t newline = before.rfind('\n');
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = newline == std::string_view::npos ? byte : byte - newline - 1;
  return InvalidArgument(absl::StrCat("schema: line ", line, ", column ", column, error->substr(error->find(':'))));
}

// JSON lets a member come twice, and parsers take the last one without a word.
absl::StatusOr<Json> ParseWithoutRepeats(std::string_view text) {
  std::vector<std::set<std::string>> open_objects;
  std::optional<std::string> repeated;
  const auto look = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event != Json::parse_event_t::key) return true;
    std::string name = parsed.get<std::string>();
    if (!open_objects.back().insert(name).second && !repeated.has_value()) repeated = std::move(name);
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (repeated.has_value())
    return InvalidArgument(absl::StrCat("schema: the member ", Quoted(*repeated), " comes twice"));
  return json;
}

Json AnalyzerJson(const AnalyzerOptions& analyzer) {
  return {{"stop", analyzer.stop == StopWords::kEnglish33 ? "english33" : "none"},
          {"stem", analyzer.stem},
          {"marks", analyzer.marks == Marks::kRemove ? "remove" : "keep"}};
}

// The type that one JSON value asks for; nothing for null.
absl::StatusOr<std::optional<FieldType>> TypeOf(const Json& value, std::string_view name) {
  switch (value.type()) {
    case Json::value_t::null:
      return std::optional<FieldType>();
    case Json::value_t::string:
      return std::optional(FieldType::kText);
    case Json::value_t::boolean:
      return std::optional(FieldType::kKeyword);
    case Json::value_t::number_integer:
      return std::optional(FieldType::kInt64);
    case Json::value_t::number_unsigned:
      if (value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        return InvalidArgument(absl::StrCat("1: field ", Quoted(name), ": the integer is out of the range of int64"));
      }
      return std::optional(FieldType::kInt64);
    case Json::value_t::number_float:
      return std::optional(FieldType::kDouble);
    default:
      return InvalidArgument(absl::StrCat("1: field ", Quoted(name), " holds ",
                                          value.is_object() ? "an object" : "an array in an array",
                                          "; no field type takes that"));
  }
}

// Adds what a value (or each of an array) says to what is known of the field.
absl::Status MergeValue(const Json& value, std::string_view name, std::optional<FieldType>* type) {
  if (value.is_array()) {
    for (const Json& element : value) {
      if (element.is_array()) return TypeOf(element, name).status();
      ASHLAR_RETURN_IF_ERROR(MergeValue(element, name, type));
    }
    return absl::OkStatus();
  }
  ASHLAR_ASSIGN_OR_RETURN(const std::optional<FieldType> found, TypeOf(value, name));
  if (!found.has_value() || found == *type) return absl::OkStatus();
  const auto is_number = [](FieldType t) { return t == FieldType::kInt64 || t == FieldType::kDouble; };
  if (!type->has_value()) {
    *type = found;
  } else if (is_number(**type) && is_number(*found)) {
    *type = FieldType::kDouble;
  } else {
    return InvalidArgument(absl::StrCat("1: field ", Quoted(name), " holds values of different types: ",
                                        ToAbsl(FieldTypeName(**type)), " and ", ToAbsl(FieldTypeName(*found))));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> ParseObject(std::string_view line) {
  if (const std::optional<std::string> error = FindJsonError(line); error.has_value()) return InvalidArgument(*error);
  Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object()) return InvalidArgument("1: a document is a JSON object");
  return json;
}

}  // namespace

absl::StatusOr<Schema> SchemaFromJson(std::string_view text) {
  ASHLAR_RETURN_IF_ERROR(SyntaxError(text));
  ASHLAR_ASSIGN_OR_RETURN(const Json json, ParseWithoutRepeats(text));
  ObjectReader reader(json, "the schema");
  Schema schema;
  schema.key = reader.String("key", "");
  if (const Json* group = reader.Member("default_group"); group != nullptr) {
    if (!group->is_array()) reader.Fail("has a \"default_group\" that is not an array");
    for (const Json& name : *group) {
      if (name.is_string()) {
        schema.default_group.push_back(name.get<std::string>());
      } else {
        reader.Fail("has a \"default_group\" with something else than names");
      }
    }
  }
  if (const Json* fields = reader.Member("fields"); fields != nullptr) {
    if (!fields->is_array()) reader.Fail("has \"fields\" that are not an array");
    for (const Json& entry : *fields) {
      Field field;
      ASHLAR_RETURN_IF_ERROR(ReadField(entry, schema.fields.size(), &field));
      schema.fields.push_back(std::move(field));
    }
  }
  ASHLAR_RETURN_IF_ERROR(reader.Finish());
  ASHLAR_RETURN_IF_ERROR(schema.Validate());
  return schema;
}

absl::StatusOr<Schema> ReadSchemaFile(const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  absl::StatusOr<Schema> schema = SchemaFromJson(text);
  if (!schema.ok()) return Annotate(schema.status(), path);
  return schema;
}

std::string SchemaToJson(const Schema& schema) {
  Json json;
  if (!schema.key.empty()) json["key"] = schema.key;
  json["default_group"] = schema.default_group;
  json["fields"] = Json::array();
  for (const Field& field : schema.fields) {
    Json entry;
    entry["name"] = field.name;
    entry["type"] = std::string(FieldTypeName(field.type));
    entry["stored"] = field.stored;
    entry["positions"] = field.positions;
    entry["column"] = field.column;
    if (field.type == FieldType::kText) entry["analyzer"] = AnalyzerJson(field.analyzer);
    json["fields"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<AnalyzerOptions> AnalyzerByName(std::string_view name) {
  if (name == "plain") return AnalyzerOptions();
  if (name == "english") return AnalyzerOptions::English();
  return InvalidArgument(absl::StrCat("analyzer ", Quoted(name), ": there are plain and english"));
}

SchemaInference::SchemaInference(std::optional<std::string> key, const AnalyzerOptions& analyzer)
    : key_(std::move(key)), analyzer_(analyzer) {}

SchemaInference::Seen& SchemaInference::Find(const std::string& name) {
  const auto [entry, is_new] = numbers_.try_emplace(name, fields_.size());
  if (is_new) fields_.push_back({name, std::nullopt, 0});
  return fields_[entry->second];
}

absl::Status SchemaInference::Add(std::string_view line) {
  ASHLAR_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  // All of the line counts or nothing of it.
  std::vector<std::optional<FieldType>> types;
  for (const auto& member : json.items()) {
    types.push_back(Find(member.key()).type);
    ASHLAR_RETURN_IF_ERROR(MergeValue(member.value(), member.key(), &types.back()));
  }
  ++documents_;
  size_t next = 0;
  for (const auto& member : json.items()) {
    Seen& seen = Find(member.key());
    seen.type = types[next++];
    const Json* value = &member.value();
    if (value->is_array() && value->size() == 1) value = &value->front();
    if (value->is_string() && !value->get_ref<const std::string&>().empty()) ++seen.single_strings;
  }
  return absl::OkStatus();
}

Field SchemaInference::MakeField(const Seen& seen, bool is_key) const {
  Field field;
  field.name = seen.name;
  field.type = is_key ? FieldType::kKeyword : *seen.type;
  if (field.type == FieldType::kText) field.analyzer = analyzer_;
  return field;
}

absl::StatusOr<Schema> SchemaInference::Finish() const {
  Schema schema;
  const std::string wanted = key_.value_or("id");
  const auto found = numbers_.find(wanted);
  if (found != numbers_.end() && fields_[found->second].single_strings == documents_) {
    schema.key = wanted;
  } else if (key_.has_value()) {
    return InvalidArgument(absl::StrCat("the key field ", Quoted(wanted), " is not one string in each of the first ",
                                        documents_, " documents"));
  }
  for (const Seen& seen : fields_) {
    if (!seen.type.has_value()) continue;
    const bool is_key = seen.name == schema.key;
    schema.fields.push_back(MakeField(seen, is_key));
    if (schema.fields.back().type == FieldType::kText) schema.default_group.push_back(seen.name);
  }
  if (schema.fields.empty()) return InvalidArgument("there is no document to infer a schema from");
  ASHLAR_RETURN_IF_ERROR(schema.Validate());
  return schema;
}

absl::StatusOr<std::vector<Field>> SchemaInference::InferNewFields(std::string_view line, const Schema& schema,
                                                                   const AnalyzerOptions& analyzer) {
  ASHLAR_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  std::set<std::string_view> known;
  for (const Field& field : schema.fields) known.insert(field.name);
  const SchemaInference inference(std::nullopt, analyzer);
  std::vector<Field> fields;
  for (const auto& member : json.items()) {
    if (known.count(member.key()) > 0) continue;
    Seen seen{member.key(), std::nullopt, 0};
    ASHLAR_RETURN_IF_ERROR(MergeValue(member.value(), member.key(), &seen.type));
    if (seen.type.has_value()) fields.push_back(inference.MakeField(seen, /*is_key=*/false));
  }
  return fields;
}

}  // namespace ashlar::tools
