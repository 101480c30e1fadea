#include "src/engine/document_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "format/document_codec.h"
#include "src/base/status.h"

namespace ashlar::engine {
namespace {

Value ValueOf(const format::ValueView& value) {
  switch (value.type) {
    case FieldType::kInt64:
      return value.integer;
    case FieldType::kDouble:
      return value.real;
    case FieldType::kDate:
      return Date{value.integer};
    default:
      return std::string(value.bytes);
  }
}

// Any order will do, if both sides have it.
bool Less(const Value& a, const Value& b) {
  if (a.index() != b.index()) return a.index() < b.index();
  if (const auto* s = std::get_if<std::string>(&a)) return *s < std::get<std::string>(b);
  if (const auto* i = std::get_if<int64_t>(&a)) return *i < std::get<int64_t>(b);
  if (const auto* d = std::get_if<double>(&a)) return *d < std::get<double>(b);
  if (const auto* t = std::get_if<Date>(&a)) return t->milliseconds < std::get<Date>(b).milliseconds;
  return false;
}

// Looks at one document after the other.
class DocumentChecker {
 public:
  explicit DocumentChecker(const segment::Segment& segment)
      : segment_(segment), schema_(segment.schema()), key_(schema_.KeyIndex()), lengths_(schema_.fields.size()) {}

  absl::Status Run() {
    for (uint32_t field = 0; field < schema_.fields.size(); ++field) {
      ASHLAR_ASSIGN_OR_RETURN(lengths_[field], segment_.Lengths(field));
    }
    for (uint32_t ordinal = 0; ordinal < segment_.document_count(); ++ordinal)
      ASHLAR_RETURN_IF_ERROR(Check(ordinal));
    return absl::OkStatus();
  }

 private:
  bool HasColumn(const Field& field) const {
    return field.column && field.type != FieldType::kText && field.type != FieldType::kBytes;
  }

  absl::Status Check(uint32_t ordinal) {
    ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer stored, segment_.StoredOf(ordinal));
    values_.assign(schema_.fields.size(), {});
    bool fits = true;
    const bool well_formed = format::VisitValues(stored, [&](const format::ValueView& value) {
      fits = fits && value.field < schema_.fields.size() && value.type == schema_.fields[value.field].type &&
             schema_.fields[value.field].stored && static_cast<int>(value.field) != key_;
      if (fits) values_[value.field].push_back(ValueOf(value));
    });
    if (!well_formed) return Damage(ordinal, "its stored values are malformed");
    if (!fits) return Damage(ordinal, "a stored value does not fit the schema");
    for (uint32_t field = 0; field < schema_.fields.size(); ++field)
      ASHLAR_RETURN_IF_ERROR(CheckField(field, ordinal));
    return absl::OkStatus();
  }

  // Columns hold the same values; a keyword that is not empty is one term, so they add up to the length.
  absl::Status CheckField(uint32_t number, uint32_t ordinal) {
    const Field& field = schema_.fields[number];
    if (!field.stored || static_cast<int>(number) == key_) return absl::OkStatus();
    std::vector<Value>& values = values_[number];
    if (field.type == FieldType::kKeyword) {
      const auto keywords = std::count_if(values.begin(), values.end(),
                                          [](const Value& value) { return !std::get<std::string>(value).empty(); });
      if (static_cast<uint32_t>(keywords) != lengths_[number][ordinal])
        return Damage(ordinal, absl::StrCat("field '", field.name, "' has ", keywords, " keywords and the length ",
                                            lengths_[number][ordinal]));
    }
    if (!HasColumn(field)) return absl::OkStatus();
    std::vector<Value> column;
    ASHLAR_RETURN_IF_ERROR(segment_.ColumnValues(number, ordinal, &column));
    std::sort(values.begin(), values.end(), Less);
    std::sort(column.begin(), column.end(), Less);
    if (values == column) return absl::OkStatus();
    return Damage(ordinal, absl::StrCat("the column of field '", field.name, "' has other values than are stored"));
  }

  absl::Status Damage(uint32_t ordinal, std::string_view what) const {
    return DataLoss(segment_.path(), "stored", 0, absl::StrCat("document ", ordinal, ": ", ToAbsl(what)));
  }

  const segment::Segment& segment_;
  const Schema& schema_;
  const int key_;
  std::vector<segment::LengthReader> lengths_;  // by field
  std::vector<std::vector<Value>> values_;      // of the current document, by field
};

}  // namespace

absl::Status CheckDocuments(const segment::Segment& segment) { return DocumentChecker(segment).Run(); }

}  // namespace ashlar::engine
