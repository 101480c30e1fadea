// Schema: the fields of a store. Fixed at creation, except that fields may be added at the end later.
#ifndef ASHLAR_SCHEMA_H_
#define ASHLAR_SCHEMA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace ashlar {

// Values reach the disk: DO NOT CHANGE.
enum class FieldType : uint8_t { kText = 1, kKeyword = 2, kInt64 = 3, kDouble = 4, kDate = 5, kBytes = 6 };
enum class StopWords : uint8_t { kNone = 0, kEnglish33 = 1 };
enum class Marks : uint8_t { kKeep = 0, kRemove = 1 };

// How a text field becomes terms. Words are UAX #29 words, NFKC case folded; these are the options on top.
struct AnalyzerOptions {
  StopWords stop = StopWords::kNone;  // removed words leave a gap in the positions
  std::string stem = "none";          // "none" or a Snowball algorithm: "porter", "english", "german", ...
  Marks marks = Marks::kKeep;         // kRemove drops accents: e-acute becomes e
  bool operator==(const AnalyzerOptions&) const = default;

  // Lucene's 33 English stop words and Porter stems.
  static AnalyzerOptions English() { return {StopWords::kEnglish33, "porter", Marks::kKeep}; }
};

struct Field {
  std::string name;                    // 1 to 255 bytes of UTF-8 without control characters, not starting with '_'
  FieldType type = FieldType::kText;
  bool stored = true;                  // returned with the document
  bool positions = true;               // text only: keeps word places, needed by phrases
  bool column = true;                  // keyword, int64, double, date only: filters, facets, sort
  AnalyzerOptions analyzer{};          // text only
  bool operator==(const Field&) const = default;
};

inline constexpr size_t kFieldsMax = 1000;

struct Schema {
  std::string key;                         // name of the key field (type keyword), or empty: documents have no key
  std::vector<std::string> default_group;  // text fields that words without a field search, as one text; fixed at creation
  std::vector<Field> fields;               // a field's number is its index here and never changes
  bool operator==(const Schema&) const = default;

  // InvalidArgument that names what is wrong: no fields, duplicate or bad names, group members that are not text or
  // repeat, fields of one group that differ in analyzer or positions, unknown stemmer, key that is not a keyword field.
  absl::Status Validate() const;

  // A field's number, or -1.
  int IndexOf(std::string_view name) const;
  // The key field's number, or -1.
  int KeyIndex() const { return key.empty() ? -1 : IndexOf(key); }
};

std::string_view FieldTypeName(FieldType type);

}  // namespace ashlar

#endif  // ASHLAR_SCHEMA_H_
