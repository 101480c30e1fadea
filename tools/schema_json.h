// Schemas as JSON files, and schemas inferred from documents.
//
//   {"key":"id","default_group":["title","body"],"fields":[{"name":"body","type":"text","stored":true,"positions":true,
//    "column":true,"analyzer":{"stop":"none","stem":"none","marks":"keep"}}]}
//
// "name" and "type" (text, keyword, int64, double, date, bytes) must be there; what is left out has the defaults of
// ashlar/schema.h, and the group is then empty. A member of another name is an error,
// and so is one that comes twice. "positions" and "column" say nothing of a type that has none.
#ifndef ASHLAR_TOOLS_SCHEMA_JSON_H_
#define ASHLAR_TOOLS_SCHEMA_JSON_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/schema.h"

namespace ashlar::tools {

// InvalidArgument that names the member, or the line and column if it is no JSON. The schema is validated.
absl::StatusOr<Schema> SchemaFromJson(std::string_view text);
absl::StatusOr<Schema> ReadSchemaFile(const std::string& path);
// The same form, indented. SchemaFromJson gives the schema back.
std::string SchemaToJson(const Schema& schema);

// How many lines inference looks at.
inline constexpr size_t kInferenceLines = 1000;

// "plain" or "english".
absl::StatusOr<AnalyzerOptions> AnalyzerByName(std::string_view name);

// What: makes a schema from the first documents. A string makes a text field (stored, with positions), an integer
// int64, a number
//   with a fraction double (also where other lines have integers), true and false a keyword field; null and [] say
//   nothing. All text fields found are the default group, in the order in which they were seen.
// Threads: one.
// Errors: InvalidArgument that begins with the column: malformed JSON, an object or an array in an array, values of one
//   field that do not go together, an integer out of the range of int64.
class SchemaInference {
 public:
  // `key`: the field that holds the key and becomes a keyword field; its values must be strings. If not given, "id" is
  // the key if every document has it as one string.
  explicit SchemaInference(std::optional<std::string> key, const AnalyzerOptions& analyzer = {});

  absl::Status Add(std::string_view line);
  // InvalidArgument if there was no field, or not the key field.
  absl::StatusOr<Schema> Finish() const;

  // The fields of one line that `schema` lacks, in the line's order, for a store whose schema grows. Members without a
  // value make none.
  static absl::StatusOr<std::vector<Field>> InferNewFields(std::string_view line, const Schema& schema,
                                                           const AnalyzerOptions& analyzer);

 private:
  struct Seen {
    std::string name;
    std::optional<FieldType> type;
    uint64_t single_strings = 0;  // documents in which it is one string that is not empty
  };
  Seen& Find(const std::string& name);
  Field MakeField(const Seen& seen, bool is_key) const;

  std::optional<std::string> key_;
  AnalyzerOptions analyzer_;
  std::vector<Seen> fields_;
  std::map<std::string, size_t> numbers_;
  uint64_t documents_ = 0;
};

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_SCHEMA_JSON_H_
