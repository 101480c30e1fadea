#include "ashlar/schema.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <set>
#include <string>

#include "src/base/status.h"
#include "src/text/analyzer.h"

namespace ashlar {
namespace {

constexpr size_t kFieldNameBytesMax = 255;

std::string Quoted(std::string_view name) {
  std::string quoted = "\"";
  quoted.append(name).append("\"");
  return quoted;
}

bool HasControlCharacter(std::string_view utf8) {
  const auto* s = reinterpret_cast<const uint8_t*>(utf8.data());
  const size_t n = utf8.size();
  size_t i = 0;
  while (i < n) {
    UChar32 c = 0;
    U8_NEXT(s, i, n, c);
    if (c >= 0 && u_charType(c) == U_CONTROL_CHAR) return true;
  }
  return false;
}

absl::Status ValidateName(const std::string& name, size_t number) {
  const std::string which = "field " + std::to_string(number);
  if (name.empty()) return InvalidArgument(which + " has no name");
  // Bad bytes are not echoed: the message stays valid UTF-8.
  if (!text::IsValidUtf8(name)) return InvalidArgument("the name of " + which + " is not valid UTF-8");
  if (HasControlCharacter(name)) return InvalidArgument("the name of " + which + " has a control character");
  if (name.size() > kFieldNameBytesMax) return InvalidArgument("the name of " + which + " is over 255 bytes");
  if (name[0] == '_') return InvalidArgument("field " + Quoted(name) + ": names that start with '_' are reserved");
  return absl::OkStatus();
}

absl::Status ValidateField(const Field& field, const std::vector<std::string>& stemmers) {
  if (FieldTypeName(field.type).empty())
    return InvalidArgument("field " + Quoted(field.name) + ": unknown type " +
                           std::to_string(static_cast<int>(field.type)));
  if (field.type != FieldType::kText) return absl::OkStatus();
  const AnalyzerOptions& analyzer = field.analyzer;
  if (analyzer.stop != StopWords::kNone && analyzer.stop != StopWords::kEnglish33)
    return InvalidArgument("field " + Quoted(field.name) + ": unknown stop words");
  if (analyzer.marks != Marks::kKeep && analyzer.marks != Marks::kRemove)
    return InvalidArgument("field " + Quoted(field.name) + ": unknown rule for marks");
  if (std::find(stemmers.begin(), stemmers.end(), analyzer.stem) == stemmers.end())
    return InvalidArgument("field " + Quoted(field.name) + ": unknown stemmer " + Quoted(analyzer.stem));
  return absl::OkStatus();
}

absl::Status ValidateGroup(const Schema& schema) {
  std::set<std::string_view> seen;
  const Field* first = nullptr;
  for (const std::string& name : schema.default_group) {
    const int index = schema.IndexOf(name);
    if (index < 0) return InvalidArgument("default group: unknown field " + Quoted(name));
    const Field& field = schema.fields[static_cast<size_t>(index)];
    if (field.type != FieldType::kText) return InvalidArgument("default group: field " + Quoted(name) + " is not text");
    if (!seen.insert(name).second) return InvalidArgument("default group: field " + Quoted(name) + " occurs twice");
    if (first == nullptr) first = &field;
    if (field.analyzer != first->analyzer || field.positions != first->positions)
      return InvalidArgument("default group: fields " + Quoted(first->name) + " and " + Quoted(name) +
                             " differ in analyzer or positions");
  }
  return absl::OkStatus();
}

absl::Status ValidateKey(const Schema& schema) {
  if (schema.key.empty()) return absl::OkStatus();
  const int index = schema.KeyIndex();
  if (index < 0) return InvalidArgument("key: unknown field " + Quoted(schema.key));
  if (schema.fields[static_cast<size_t>(index)].type != FieldType::kKeyword)
    return InvalidArgument("key: field " + Quoted(schema.key) + " is not a keyword");
  return absl::OkStatus();
}

}  // namespace

absl::Status Schema::Validate() const {
  if (fields.empty()) return InvalidArgument("a schema without fields");
  if (fields.size() > kFieldsMax)
    return InvalidArgument("a schema with " + std::to_string(fields.size()) + " fields; at most " +
                           std::to_string(kFieldsMax));
  const std::vector<std::string> stemmers = text::StemmerNames();
  std::set<std::string_view> names;
  for (size_t i = 0; i < fields.size(); ++i) {
    ASHLAR_RETURN_IF_ERROR(ValidateName(fields[i].name, i));
    if (!names.insert(fields[i].name).second)
      return InvalidArgument("field " + Quoted(fields[i].name) + " occurs twice");
    ASHLAR_RETURN_IF_ERROR(ValidateField(fields[i], stemmers));
  }
  ASHLAR_RETURN_IF_ERROR(ValidateGroup(*this));
  return ValidateKey(*this);
}

int Schema::IndexOf(std::string_view name) const {
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string_view FieldTypeName(FieldType type) {
  switch (type) {
    case FieldType::kText:
      return "text";
    case FieldType::kKeyword:
      return "keyword";
    case FieldType::kInt64:
      return "int64";
    case FieldType::kDouble:
      return "double";
    case FieldType::kDate:
      return "date";
    case FieldType::kBytes:
      return "bytes";
  }
  return "";
}

}  // namespace ashlar
