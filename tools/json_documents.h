// JSON Lines and documents: one object a line becomes a Document by the rules of a schema, and back.
//
//   text        a string
//   keyword     a string; true and false become "true" and "false"
//   int64       a number without fraction or exponent, in the range of int64
//   double      any number that a double can hold
//   date        a string "2024-02-29" or "2024-02-29T12:00:00.123Z" (or with an offset, +01:00), or an integer:
//   milliseconds bytes       a string of base64
//
// null and an empty array are a missing value, under any name; an array is several values. An object, an array in an
// array, an unknown field, a member that comes twice and a value of another type are InvalidArgument.
#ifndef ASHLAR_TOOLS_JSON_DOCUMENTS_H_
#define ASHLAR_TOOLS_JSON_DOCUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"

namespace ashlar::tools {

// What: one line of JSON to a Document.
// Owns: a copy of the schema and the parser's buffers, which are reused from line to line.
// Threads: one.
// Errors: InvalidArgument whose message begins with the column (in bytes, from 1): "17: malformed JSON: ...".
class DocumentParser {
 public:
  explicit DocumentParser(const Schema& schema);
  ~DocumentParser();
  DocumentParser(const DocumentParser&) = delete;
  DocumentParser& operator=(const DocumentParser&) = delete;

  // Replaces *document. `line` must be followed by kLinePadding readable bytes (a LineReader's lines are). The key
  // field, if the schema names one, must have exactly one value, and not an empty one.
  absl::Status Parse(std::string_view line, Document* document);

  // After a failed Parse: the field that the schema does not know. Empty if the line failed for another reason.
  const std::string& unknown_field() const;
  // For a schema that grew.
  void SetSchema(const Schema& schema);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One JSON object without a line end. Fields in the order of the document, several values of one as an array; dates as
// strings with milliseconds in UTC (as integers outside the years 0000 to 9999), bytes as base64.
std::string DocumentToJson(const Document& document);

// "2024-02-29" or "2024-02-29T12:00:00Z", with up to nine digits of fraction (what is below a millisecond is cut off)
// and "Z", "+hh:mm" or "-hh:mm". Nothing if it is anything else.
std::optional<Date> ParseDate(std::string_view text);
std::string FormatDate(Date date);

// The double nearest to a JSON number; a blank, ',', ']' or '}' ends it, and what follows is not looked at. Nothing if
// it is no JSON number or its magnitude is beyond the largest double.
std::optional<double> ParseDouble(std::string_view token);

// Nothing if the line is one JSON value and nothing else; otherwise "COLUMN: malformed JSON: what is wrong there".
std::optional<std::string> FindJsonError(std::string_view line);

// True for an empty line and one of blanks.
bool IsBlank(std::string_view line);

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_JSON_DOCUMENTS_H_
