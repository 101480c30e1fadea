#include "tools/json_documents.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/base/status.h"
#include "tools/line_reader.h"

namespace ashlar::tools {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);

constexpr int64_t kMsPerDay = 86'400'000;

// Finds where a text stops being JSON; simdjson does not say.
class ErrorFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool key(string_t&) override { return true; }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override {
    message_ = error.what();
    // `position` is the last byte read. A string or number that may not stand there was read whole, and its start is
    // the place.
    const bool whole = message_.find("unexpected string literal") != std::string::npos ||
                       message_.find("unexpected number literal") != std::string::npos;
    column_ = std::max<size_t>(whole && token.size() <= position ? position - token.size() + 1 : position, 1);
    return false;
  }
  size_t column() const { return column_; }
  // Without the library's own numbering and without the text it quotes, which may be long and is not always UTF-8.
  std::string message() const {
    std::string text = message_.substr(0, message_.find("; last read"));
    if (const size_t bracket = text.find("] "); bracket != std::string::npos) text.erase(0, bracket + 2);
    if (const size_t column = text.find("column "); column != std::string::npos) {
      if (const size_t colon = text.find(": ", column); colon != std::string::npos) text.erase(0, colon + 2);
    }
    return text;
  }

 private:
  size_t column_ = 1;
  std::string message_;
};

std::string_view NameOf(ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::array:
      return "an array";
    case ondemand::json_type::object:
      return "an object";
    case ondemand::json_type::number:
      return "a number";
    case ondemand::json_type::string:
      return "a string";
    case ondemand::json_type::boolean:
      return "a boolean";
    case ondemand::json_type::null:
      return "null";
  }
  return "something else";
}

std::string_view WantedFor(FieldType type) {
  switch (type) {
    case FieldType::kText:
      return "a string";
    case FieldType::kKeyword:
      return "a string or a boolean";
    case FieldType::kInt64:
      return "an integer";
    case FieldType::kDouble:
      return "a number";
    case FieldType::kDate:
      return "a date string or an integer of milliseconds";
    case FieldType::kBytes:
      return "a string of base64";
  }
  return "another type";
}

// A field's name for a message: JSON may hold any character.
std::string Quoted(std::string_view name) { return absl::StrCat("'", absl::CHexEscape(ToAbsl(name)), "'"); }

bool ReadDigits(std::string_view text, size_t at, size_t count, int* value) {
  if (at + count > text.size()) return false;
  *value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    *value = *value * 10 + (text[i] - '0');
  }
  return true;
}

// "+01:00", "-0830" is not taken, "Z". Minutes east of Greenwich.
bool ReadZone(std::string_view text, int* minutes) {
  *minutes = 0;
  if (text == "Z" || text == "z") return true;
  int hour = 0, minute = 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' || !ReadDigits(text, 1, 2, &hour) ||
      !ReadDigits(text, 4, 2, &minute) || hour > 23 || minute > 59) {
    return false;
  }
  *minutes = (hour * 60 + minute) * (text[0] == '-' ? -1 : 1);
  return true;
}

// The fraction of a second at `text`, which begins after the point; milliseconds and how many digits it has (0: bad).
size_t ReadFraction(std::string_view text, int* milliseconds) {
  size_t digits = 0;
  *milliseconds = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits < 3) *milliseconds = *milliseconds * 10 + (text[digits] - '0');
    ++digits;
  }
  for (size_t i = digits; i < 3; ++i) *milliseconds *= 10;
  return digits <= 9 ? digits : 0;
}

}  // namespace

std::optional<Date> ParseDate(std::string_view text) {
  int year = 0, month = 0, day = 0;
  if (!ReadDigits(text, 0, 4, &year) || !ReadDigits(text, 5, 2, &month) || !ReadDigits(text, 8, 2, &day) ||
      text[4] != '-' || text[7] != '-') {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  if (text.size() == 10) return Date{days * kMsPerDay};

  int hour = 0, minute = 0, second = 0, milliseconds = 0, zone = 0;
  if ((text[10] != 'T' && text[10] != 't' && text[10] != ' ') || !ReadDigits(text, 11, 2, &hour) ||
      !ReadDigits(text, 14, 2, &minute) || !ReadDigits(text, 17, 2, &second) || text[13] != ':' || text[16] != ':' ||
      hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    const size_t digits = ReadFraction(text.substr(at + 1), &milliseconds);
    if (digits == 0) return std::nullopt;
    at += 1 + digits;
  }
  if (!ReadZone(text.substr(at), &zone)) return std::nullopt;
  return Date{days * kMsPerDay + ((hour * 60 + minute - zone) * int64_t{60} + second) * 1000 + milliseconds};
}

namespace {

size_t EndOfDigits(std::string_view text, size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

// RFC 8259, section 6.
bool IsJsonNumber(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t integer = at;
  at = EndOfDigits(text, at);
  if (at == integer || (text[integer] == '0' && at > integer + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = at + 1;
    at = EndOfDigits(text, fraction);
    if (at == fraction) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const bool has_sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-');
    const size_t exponent = at + (has_sign ? 2 : 1);
    at = EndOfDigits(text, exponent);
    if (at == exponent) return false;
  }
  return at == text.size();
}

}  // namespace

std::optional<double> ParseDouble(std::string_view token) {
  token = token.substr(0, token.find_first_of(" \t\r\n,]}"));
  if (!IsJsonNumber(token)) return std::nullopt;
  double real = 0;
  const std::errc error = std::from_chars(token.data(), token.data() + token.size(), real).ec;
  if (error == std::errc()) return std::isfinite(real) ? std::optional(real) : std::nullopt;
  // from_chars says the same of too large and too small; the latter is the nearest double, like any other number.
  real = std::strtod(std::string(token).c_str(), nullptr);
  if (!std::isfinite(real)) return std::nullopt;
  return real;
}

std::string FormatDate(Date date) {
  int64_t day = date.milliseconds / kMsPerDay;
  int64_t rest = date.milliseconds % kMsPerDay;
  if (rest < 0) {
    rest += kMsPerDay;
    --day;
  }
  // Only called for years that fit; see DocumentToJson.
  const std::chrono::year_month_day ymd{std::chrono::sys_days(std::chrono::days(day))};
  return absl::StrFormat("%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(ymd.year()),
                         static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), rest / 3'600'000,
                         rest / 60'000 % 60, rest / 1000 % 60, rest % 1000);
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::optional<std::string> FindJsonError(std::string_view line) {
  ErrorFinder finder;
  if (nlohmann::json::sax_parse(line.begin(), line.end(), &finder)) {
    // It takes a NUL byte for the end of the text.
    const size_t nul = line.find('\0');
    if (nul == std::string_view::npos) return std::nullopt;
    return absl::StrCat(nul + 1, ": malformed JSON: a NUL byte");
  }
  return absl::StrCat(finder.column(), ": malformed JSON: ", finder.message());
}

// ---------------------------------------------------------------------------------------------------------------------

class DocumentParser::Impl {
 public:
  explicit Impl(const Schema& schema) { SetSchema(schema); }

  void SetSchema(const Schema& schema) {
    schema_ = schema;
    key_index_ = schema_.KeyIndex();
    numbers_.clear();
    for (size_t i = 0; i < schema_.fields.size(); ++i) numbers_[schema_.fields[i].name] = i;
    seen_.assign(schema_.fields.size(), 0);
    round_ = 0;
  }

  absl::Status Parse(std::string_view line, Document* document) {
    line_ = line;
    document_ = document;
    document_->values.clear();
    unknown_field_.clear();
    key_values_ = 0;
    ++round_;
    absl::Status status = ParseObject();
    if (status.ok()) return CheckKey();
    // A line that is no JSON is called so, whatever else was met first.
    if (std::optional<std::string> error = FindJsonError(line); error.has_value()) {
      unknown_field_.clear();
      return InvalidArgument(*error);
    }
    return status;
  }

  const std::string& unknown_field() const { return unknown_field_; }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  absl::Status ErrorAt(const char* place, std::string_view message) const {
    const bool inside = place >= line_.data() && place <= line_.data() + line_.size();
    return InvalidArgument(absl::StrCat(inside ? place - line_.data() + 1 : 1, ": ", ToAbsl(message)));
  }
  absl::Status Malformed(simdjson::error_code error) {
    return ErrorAt(nullptr, absl::StrCat("malformed JSON: ", simdjson::error_message(error)));
  }

  absl::Status ParseObject() {
    if (parser_.capacity() < line_.size()) {
      // In steps of two, so that lines of slowly growing length don't allocate each time.
      if (auto error = parser_.allocate(std::bit_ceil(std::max<size_t>(line_.size(), 4096)))) return Malformed(error);
    }
    ondemand::document json;
    if (auto error = parser_.iterate(line_.data(), line_.size(), line_.size() + kLinePadding).get(json)) {
      return Malformed(error);
    }
    ondemand::object object;
    if (auto error = json.get_object().get(object)) {
      if (error != simdjson::INCORRECT_TYPE) return Malformed(error);
      return ErrorAt(line_.data() + line_.find_first_not_of(" \t\r"), "a document is a JSON object");
    }
    size_t expected = 0;
    for (auto member : object) {
      ondemand::field field;
      if (auto error = std::move(member).get(field)) return Malformed(error);
      ASHLAR_RETURN_IF_ERROR(ParseMember(field, &expected));
    }
    const char* rest = nullptr;
    if (json.current_location().get(rest) == simdjson::SUCCESS) {
      return ErrorAt(rest, "malformed JSON: something follows the object");
    }
    return absl::OkStatus();
  }

  // The number of the field of that name, or kNone. Documents mostly have the same members in the same order, so the
  // field after the last one is tried first.
  absl::Status FindField(ondemand::field& field, size_t* expected, size_t* number, std::string* unknown) {
    const size_t count = schema_.fields.size();
    for (size_t tries = 0; tries < 2 && *expected + tries < count; ++tries) {
      const std::string& name = schema_.fields[*expected + tries].name;
      if (field.key().unsafe_is_equal(name)) {
        *number = *expected + tries;
        *expected = *number + 1;
        return absl::OkStatus();
      }
    }
    std::string_view name;
    if (auto error = field.unescaped_key().get(name)) return Malformed(error);
    const auto found = numbers_.find(std::string(name));
    *number = found == numbers_.end() ? kNone : found->second;
    if (*number == kNone) *unknown = std::string(name);
    if (*number != kNone) *expected = *number + 1;
    return absl::OkStatus();
  }

  absl::Status ParseMember(ondemand::field& field, size_t* expected) {
    // Before the key is consumed: it points behind the opening quote.
    const char* place = field.key().raw() - 1;
    size_t number = kNone;
    std::string unknown;
    ASHLAR_RETURN_IF_ERROR(FindField(field, expected, &number, &unknown));
    if (number == kNone) return PassUnknown(field.value(), place, unknown);
    if (seen_[number] == round_) {
      return ErrorAt(place, absl::StrCat("field ", Quoted(schema_.fields[number].name),
                                         " comes twice; several values are an array"));
    }
    seen_[number] = round_;
    return ParseValues(field.value(), number);
  }

  // null and [] say that nothing is there, which is true of a field that is not in the schema.
  absl::Status PassUnknown(ondemand::value value, const char* place, const std::string& name) {
    ondemand::json_type type;
    if (auto error = value.type().get(type)) return Malformed(error);
    if (type == ondemand::json_type::null) {
      if (auto error = value.is_null().error()) return Malformed(error);
      return absl::OkStatus();
    }
    if (type == ondemand::json_type::array) {
      ondemand::array array;
      bool empty = false;
      if (auto error = value.get_array().get(array)) return Malformed(error);
      if (auto error = array.is_empty().get(empty)) return Malformed(error);
      if (empty) return absl::OkStatus();
    }
    unknown_field_ = name;
    return ErrorAt(place, absl::StrCat("unknown field ", Quoted(name)));
  }

  absl::Status ParseValues(ondemand::value value, size_t number) {
    ondemand::json_type type;
    if (auto error = value.type().get(type)) return Malformed(error);
    if (type != ondemand::json_type::array) return ParseScalar(value, type, number);
    ondemand::array array;
    if (auto error = value.get_array().get(array)) return Malformed(error);
    for (auto item : array) {
      ondemand::value element;
      if (auto error = std::move(item).get(element)) return Malformed(error);
      if (auto error = element.type().get(type)) return Malformed(error);
      if (type == ondemand::json_type::array) return WrongType(element, type, number, " in an array");
      ASHLAR_RETURN_IF_ERROR(ParseScalar(element, type, number));
    }
    return absl::OkStatus();
  }

  absl::Status WrongType(ondemand::value& value, ondemand::json_type type, size_t number,
                         std::string_view where = "") const {
    const Field& field = schema_.fields[number];
    return ErrorAt(value.raw_json_token().data(),
                   absl::StrCat("field ", Quoted(field.name), " of type ", ToAbsl(FieldTypeName(field.type)), " takes ",
                                ToAbsl(WantedFor(field.type)), ", not ", ToAbsl(NameOf(type)), ToAbsl(where)));
  }

  void Add(size_t number, Value value) {
    if (static_cast<int>(number) == key_index_) ++key_values_;
    document_->values.push_back({schema_.fields[number].name, std::move(value)});
  }

  absl::Status ParseScalar(ondemand::value& value, ondemand::json_type type, size_t number) {
    const FieldType wanted = schema_.fields[number].type;
    switch (type) {
      case ondemand::json_type::null: {
        if (auto error = value.is_null().error()) return Malformed(error);
        return absl::OkStatus();
      }
      case ondemand::json_type::string:
        if (wanted == FieldType::kInt64 || wanted == FieldType::kDouble) return WrongType(value, type, number);
        return ParseString(value, number);
      case ondemand::json_type::boolean: {
        bool truth = false;
        if (auto error = value.get_bool().get(truth)) return Malformed(error);
        if (wanted != FieldType::kKeyword) return WrongType(value, type, number);
        Add(number, std::string(truth ? "true" : "false"));
        return absl::OkStatus();
      }
      case ondemand::json_type::number:
        return ParseNumber(value, number);
      default:
        return WrongType(value, type, number);
    }
  }

  absl::Status ParseString(ondemand::value& value, size_t number) {
    const std::string_view token = value.raw_json_token();
    std::string text;
    if (std::memchr(token.data(), '\\', token.size()) == nullptr) {
      // Nothing is escaped: the text is what stands between the quotes. UTF-8 and control characters are checked
      // already.
      const size_t close = token.rfind('"');
      if (close == 0 || close == std::string_view::npos) return Malformed(simdjson::STRING_ERROR);
      ondemand::raw_json_string consumed;
      if (auto error = value.get_raw_json_string().get(consumed)) return Malformed(error);
      text.assign(token.data() + 1, close - 1);
    } else {
      std::string_view unescaped;
      if (auto error = value.get_string().get(unescaped)) return Malformed(error);
      text.assign(unescaped);
    }
    return AddString(token.data(), std::move(text), number);
  }

  absl::Status AddString(const char* place, std::string text, size_t number) {
    switch (schema_.fields[number].type) {
      case FieldType::kDate: {
        const std::optional<Date> date = ParseDate(text);
        if (!date.has_value()) {
          return ErrorAt(place, absl::StrCat("field ", Quoted(schema_.fields[number].name),
                                             " takes a date like 2024-02-29 or 2024-02-29T12:00:00Z"));
        }
        Add(number, *date);
        return absl::OkStatus();
      }
      case FieldType::kBytes: {
        Blob blob;
        if (!absl::Base64Unescape(ToAbsl(text), &blob.bytes)) {
          return ErrorAt(place,
                         absl::StrCat("field ", Quoted(schema_.fields[number].name), " takes a string of base64"));
        }
        Add(number, std::move(blob));
        return absl::OkStatus();
      }
      default:
        if (static_cast<int>(number) == key_index_ && text.empty()) return ErrorAt(place, "the key is empty");
        Add(number, std::move(text));
        return absl::OkStatus();
    }
  }

  absl::Status ParseNumber(ondemand::value& value, size_t number) {
    const FieldType wanted = schema_.fields[number].type;
    if (wanted == FieldType::kDouble) {
      // Not get_double(): simdjson 3.0.1 misreads literals of 20 and more digits (its issue 2093).
      const std::optional<double> real = ParseDouble(value.raw_json_token());
      if (!real.has_value()) return Malformed(simdjson::NUMBER_ERROR);
      Add(number, *real);
      return absl::OkStatus();
    }
    if (wanted != FieldType::kInt64 && wanted != FieldType::kDate) {
      return WrongType(value, ondemand::json_type::number, number);
    }
    // get_int64 says only that it failed; whether the number is none, too large or has a fraction is found out then.
    int64_t integer = 0;
    const char* place = value.raw_json_token().data();
    if (value.get_int64().get(integer) != simdjson::SUCCESS) {
      const std::string_view token = value.raw_json_token();
      const bool real = token.find_first_of(".eE") != std::string_view::npos;
      return ErrorAt(
          place, absl::StrCat("field ", Quoted(schema_.fields[number].name), " of type ", ToAbsl(FieldTypeName(wanted)),
                              real ? " takes integers only" : ": the integer is out of the range of int64"));
    }
    if (wanted == FieldType::kDate) {
      Add(number, Date{integer});
    } else {
      Add(number, integer);
    }
    return absl::OkStatus();
  }

  absl::Status CheckKey() const {
    if (key_index_ < 0 || key_values_ == 1) return absl::OkStatus();
    return ErrorAt(line_.data(),
                   absl::StrCat("the document has ", key_values_ == 0 ? "no" : "several",
                                key_values_ == 0 ? " value" : " values", " in the key field ", Quoted(schema_.key)));
  }

  Schema schema_;
  int key_index_ = -1;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<uint64_t> seen_;  // by field: the round that met it last
  uint64_t round_ = 0;
  ondemand::parser parser_;
  std::string_view line_;
  Document* document_ = nullptr;
  std::string unknown_field_;
  size_t key_values_ = 0;
};

DocumentParser::DocumentParser(const Schema& schema) : impl_(std::make_unique<Impl>(schema)) {}
DocumentParser::~DocumentParser() = default;
absl::Status DocumentParser::Parse(std::string_view line, Document* document) { return impl_->Parse(line, document); }
const std::string& DocumentParser::unknown_field() const { return impl_->unknown_field(); }
void DocumentParser::SetSchema(const Schema& schema) { impl_->SetSchema(schema); }

// ---------------------------------------------------------------------------------------------------------------------

namespace {

nlohmann::ordered_json ToJson(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* date = std::get_if<Date>(&value)) {
    constexpr int64_t kYear0Ms = -62'167'219'200'000, kYear10000Ms = 253'402'300'800'000;
    if (date->milliseconds < kYear0Ms || date->milliseconds >= kYear10000Ms) return date->milliseconds;
    return FormatDate(*date);
  }
  return absl::Base64Escape(ToAbsl(std::get<Blob>(value).bytes));
}

}  // namespace

std::string DocumentToJson(const Document& document) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const FieldValue& field : document.values) {
    if (!object.contains(field.field)) {
      object[field.field] = ToJson(field.value);
      continue;
    }
    nlohmann::ordered_json& there = object[field.field];
    if (!there.is_array()) there = nlohmann::ordered_json::array({there});
    there.push_back(ToJson(field.value));
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ashlar::tools
