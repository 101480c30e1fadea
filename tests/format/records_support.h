// Random and fixed values of the record formats, and their text, for the codec and golden tests.
#ifndef ASHLAR_TESTS_FORMAT_RECORDS_SUPPORT_H_
#define ASHLAR_TESTS_FORMAT_RECORDS_SUPPORT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "format/catalog_value.h"
#include "format/deaths.h"
#include "format/journal_record.h"
#include "src/base/prng.h"

namespace ashlar::format {

// 16 bytes that count up from `first`.
inline std::array<std::byte, 16> CountingId(uint8_t first) {
  std::array<std::byte, 16> id;
  for (size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(first + i);
  return id;
}

inline std::string Hex(ByteSpan bytes) {
  std::string out;
  for (const std::byte b : bytes) absl::StrAppend(&out, absl::Hex(static_cast<uint8_t>(b), absl::kZeroPad2));
  return out;
}

inline Schema FixedSchema() {
  Field title;
  title.name = "title";
  title.analyzer = AnalyzerOptions::English();
  Field year;
  year.name = "year";
  year.type = FieldType::kInt64;
  year.stored = false;
  Field id;
  id.name = "id";
  id.type = FieldType::kKeyword;
  id.positions = false;
  Schema schema;
  schema.fields = {title, year, id};
  schema.key = "id";
  schema.default_group = {"title"};
  return schema;
}

inline std::string RandomName(Prng& random, size_t bytes_max) {
  std::string name;
  const size_t size = 1 + random.Below(bytes_max);
  for (size_t i = 0; i < size; ++i) name += static_cast<char>('a' + random.Below(26));
  return name;
}

inline Schema RandomSchema(Prng& random) {
  Schema schema;
  schema.fields.resize(random.Below(12));
  for (Field& field : schema.fields) {
    field.name = RandomName(random, random.OneIn(5) ? 255 : 12);
    field.type = static_cast<FieldType>(1 + random.Below(6));
    field.stored = random.OneIn(2);
    field.positions = random.OneIn(2);
    field.column = random.OneIn(2);
    field.analyzer.stop = static_cast<StopWords>(random.Below(2));
    field.analyzer.marks = static_cast<Marks>(random.Below(2));
    field.analyzer.stem = RandomName(random, 20);
  }
  for (const Field& field : schema.fields)
    if (random.OneIn(3)) schema.default_group.push_back(field.name);
  if (!schema.fields.empty() && random.OneIn(2)) schema.key = schema.fields[0].name;
  return schema;
}

inline std::string ToText(const Schema& schema) {
  std::string out = absl::StrCat("schema key=", schema.key, " group=");
  for (const std::string& name : schema.default_group) absl::StrAppend(&out, name, ",");
  for (const Field& field : schema.fields)
    absl::StrAppend(&out, " ", field.name, ":", static_cast<int>(field.type), field.stored ? "s" : "",
                    field.positions ? "p" : "", field.column ? "c" : "", "/", static_cast<int>(field.analyzer.stop),
                    field.analyzer.stem, static_cast<int>(field.analyzer.marks));
  return out;
}

}  // namespace ashlar::format

#endif  // ASHLAR_TESTS_FORMAT_RECORDS_SUPPORT_H_
