#include "src/text/analyzed_document.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "format/document_codec.h"
#include "src/base/status.h"
#include "src/text/utf8.h"

namespace ashlar::text {
namespace {

using format::ValueView;

// Up to here every integer is a double.
constexpr int64_t kExactDoubleMax = int64_t{1} << 53;

absl::Status FieldError(const Field& field, std::string_view message) {
  return InvalidArgument("field \"" + field.name + "\": " + std::string(message));
}

std::string_view NameOfValueKind(const Value& value) {
  switch (value.index()) {
    case 0:
      return "string";
    case 1:
      return "int64";
    case 2:
      return "double";
    case 3:
      return "date";
    default:
      return "bytes";
  }
}

absl::Status WrongType(const Field& field, std::string_view got) {
  return FieldError(field, "is " + std::string(FieldTypeName(field.type)) + ", the value is " + std::string(got));
}

// Turns a value into its encoded kind. WrongType unless it fits the field's type.
absl::Status ViewOf(const Field& field, const Value& value, ValueView* view) {
  view->type = field.type;
  switch (field.type) {
    case FieldType::kText:
    case FieldType::kKeyword:
      if (const auto* s = std::get_if<std::string>(&value)) {
        view->bytes = *s;
        return absl::OkStatus();
      }
      break;
    case FieldType::kInt64:
      if (const auto* i = std::get_if<int64_t>(&value)) {
        view->integer = *i;
        return absl::OkStatus();
      }
      break;
    case FieldType::kDouble:
      if (const auto* d = std::get_if<double>(&value)) {
        view->real = *d;
        return absl::OkStatus();
      }
      if (const auto* i = std::get_if<int64_t>(&value)) {
        if (*i > kExactDoubleMax || *i < -kExactDoubleMax)
          return FieldError(field, "the integer " + std::to_string(*i) + " is beyond 2^53 and not exact as a double");
        view->real = static_cast<double>(*i);
        return absl::OkStatus();
      }
      break;
    case FieldType::kDate:
      if (const auto* date = std::get_if<Date>(&value)) {
        view->integer = date->milliseconds;
        return absl::OkStatus();
      }
      break;
    case FieldType::kBytes:
      if (const auto* blob = std::get_if<Blob>(&value)) {
        view->bytes = blob->bytes;
        return absl::OkStatus();
      }
      break;
  }
  return WrongType(field, NameOfValueKind(value));
}

// The rules that a value of the right type must keep, wherever it comes from.
absl::Status CheckValue(const Field& field, const ValueView& view) {
  switch (field.type) {
    case FieldType::kText:
    case FieldType::kKeyword:
      if (const size_t bad = FirstInvalidUtf8(view.bytes); bad != view.bytes.size())
        return FieldError(field, "invalid UTF-8 at byte " + std::to_string(bad));
      break;
    case FieldType::kDouble:
      if (!std::isfinite(view.real)) return FieldError(field, "a double that is not finite");
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckKey(const Field& field, std::string_view key) {
  if (key.empty()) return FieldError(field, "the key is empty");
  if (key.size() > kKeyBytesMax)
    return FieldError(field,
                      "the key has " + std::to_string(key.size()) + " bytes; at most " + std::to_string(kKeyBytesMax));
  return absl::OkStatus();
}

// A keyword is one term at the place of its index among the values; an empty one has a place and no term.
absl::Status AppendKeyword(const Field& field, std::string_view keyword, TokenStream* out) {
  if (out->bytes.size() + kTermBytesMax > UINT32_MAX || out->next_position == UINT32_MAX)
    return ResourceExhausted("field \"" + field.name + "\": over 4 GiB of keywords");
  const uint32_t position = out->next_position++;
  if (keyword.empty()) return absl::OkStatus();
  const size_t length = CutToCharacter(keyword, kTermBytesMax);
  if (length < keyword.size()) ++out->tokens_cut;
  out->tokens.push_back({static_cast<uint32_t>(out->bytes.size()), static_cast<uint16_t>(length), position});
  out->bytes.append(keyword.substr(0, length));
  return absl::OkStatus();
}

}  // namespace

struct DocumentAnalyzer::Impl {
  Schema schema;
  int key_index = -1;
  absl::flat_hash_map<std::string_view, uint32_t> field_of_name;  // names are schema's
  std::vector<std::unique_ptr<Analyzer>> analyzers;               // one for each set of options
  std::vector<Analyzer*> analyzer_of_field;                       // nullptr unless text
  // Scratch of one call.
  std::vector<uint64_t> order;  // field << 32 | place in the document
  std::vector<ValueView> values;

  absl::Status Init(const Schema& from);
  absl::Status Collect(const Document& document);
  absl::Status Build(AnalyzedDocument* out);
  absl::Status TakeKey(AnalyzedDocument* out) const;
  absl::Status AnalyzeField(std::span<const ValueView> field_values, FieldTokens* out);
  absl::Status AppendTerms(uint32_t field, std::string_view utf8, TokenStream* out);
};

absl::Status DocumentAnalyzer::Impl::Init(const Schema& from) {
  ASHLAR_RETURN_IF_ERROR(from.Validate());
  schema = from;
  key_index = schema.KeyIndex();
  analyzer_of_field.resize(schema.fields.size(), nullptr);
  std::vector<const AnalyzerOptions*> options;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const Field& field = schema.fields[i];
    field_of_name.emplace(field.name, static_cast<uint32_t>(i));
    if (field.type != FieldType::kText) continue;
    size_t same = 0;
    while (same < options.size() && *options[same] != field.analyzer) ++same;
    if (same == options.size()) {
      absl::StatusOr<std::unique_ptr<Analyzer>> analyzer = Analyzer::Create(field.analyzer);
      if (!analyzer.ok()) return Annotate(analyzer.status(), "field \"" + field.name + "\"");
      options.push_back(&field.analyzer);
      analyzers.push_back(*std::move(analyzer));
    }
    analyzer_of_field[i] = analyzers[same].get();
  }
  return absl::OkStatus();
}

absl::Status DocumentAnalyzer::Impl::Collect(const Document& document) {
  order.clear();
  for (const FieldValue& value : document.values) {
    const auto it = field_of_name.find(value.field);
    if (it == field_of_name.end()) {
      // Bad bytes are not echoed: the message stays valid UTF-8.
      return InvalidArgument(IsValidUtf8(value.field) ? "unknown field \"" + value.field + "\""
                                                      : std::string("unknown field, its name is not valid UTF-8"));
    }
    order.push_back(uint64_t{it->second} << 32 | order.size());
  }
  // The place is the low half, so this is stable.
  if (!std::is_sorted(order.begin(), order.end())) std::sort(order.begin(), order.end());
  values.clear();
  for (const uint64_t entry : order) {
    ValueView view;
    view.field = static_cast<uint32_t>(entry >> 32);
    const Field& field = schema.fields[view.field];
    ASHLAR_RETURN_IF_ERROR(ViewOf(field, document.values[static_cast<uint32_t>(entry)].value, &view));
    ASHLAR_RETURN_IF_ERROR(CheckValue(field, view));
    values.push_back(view);
  }
  return absl::OkStatus();
}

absl::Status DocumentAnalyzer::Impl::TakeKey(AnalyzedDocument* out) const {
  out->key.clear();
  if (key_index < 0) return absl::OkStatus();
  const Field& field = schema.fields[static_cast<size_t>(key_index)];
  const ValueView* key = nullptr;
  for (const ValueView& value : values) {
    if (value.field != static_cast<uint32_t>(key_index)) continue;
    if (key != nullptr) return FieldError(field, "a document has one key, here are several");
    key = &value;
  }
  if (key == nullptr) return FieldError(field, "the document has no key");
  ASHLAR_RETURN_IF_ERROR(CheckKey(field, key->bytes));
  out->key.assign(key->bytes);
  return absl::OkStatus();
}

absl::Status DocumentAnalyzer::Impl::AppendTerms(uint32_t field, std::string_view utf8, TokenStream* out) {
  Analyzer* const analyzer = analyzer_of_field[field];
  if (analyzer == nullptr) return AppendKeyword(schema.fields[field], utf8, out);
  const absl::Status status = analyzer->Analyze(utf8, out);
  return status.ok() ? status : Annotate(status, "field \"" + schema.fields[field].name + "\"");
}

absl::Status DocumentAnalyzer::Impl::AnalyzeField(std::span<const ValueView> field_values, FieldTokens* out) {
  out->field = field_values.front().field;
  out->stream.Clear();
  for (const ValueView& value : field_values)
    ASHLAR_RETURN_IF_ERROR(AppendTerms(out->field, value.bytes, &out->stream));
  return absl::OkStatus();
}

// Key, tokens: everything but the encoded bytes, from `values`.
absl::Status DocumentAnalyzer::Impl::Build(AnalyzedDocument* out) {
  out->field_count = 0;
  out->tokens_cut = 0;
  if (values.empty()) return InvalidArgument("a document without values");
  ASHLAR_RETURN_IF_ERROR(TakeKey(out));
  for (size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    const uint32_t field = values[begin].field;
    while (end < values.size() && values[end].field == field) ++end;
    const FieldType type = schema.fields[field].type;
    if (static_cast<int>(field) == key_index || (type != FieldType::kText && type != FieldType::kKeyword)) continue;
    if (out->field_count == out->fields.size()) out->fields.emplace_back();
    FieldTokens& tokens = out->fields[out->field_count];
    ASHLAR_RETURN_IF_ERROR(AnalyzeField(std::span(values).subspan(begin, end - begin), &tokens));
    out->tokens_cut += tokens.stream.tokens_cut;
    // A field without terms is as good as missing.
    if (!tokens.stream.tokens.empty()) ++out->field_count;
  }
  return absl::OkStatus();
}

DocumentAnalyzer::DocumentAnalyzer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DocumentAnalyzer::~DocumentAnalyzer() = default;

absl::StatusOr<std::unique_ptr<DocumentAnalyzer>> DocumentAnalyzer::Create(const Schema& schema) {
  auto impl = std::make_unique<Impl>();
  ASHLAR_RETURN_IF_ERROR(impl->Init(schema));
  return std::unique_ptr<DocumentAnalyzer>(new DocumentAnalyzer(std::move(impl)));
}

absl::Status DocumentAnalyzer::Analyze(const Document& document, AnalyzedDocument* out) {
  ASHLAR_RETURN_IF_ERROR(impl_->Collect(document));
  ASHLAR_RETURN_IF_ERROR(impl_->Build(out));
  out->encoded.clear();
  for (const ValueView& value : impl_->values) format::AppendValue(value, &out->encoded);
  return absl::OkStatus();
}

absl::Status DocumentAnalyzer::AnalyzeEncoded(ByteSpan encoded, AnalyzedDocument* out) {
  std::vector<ValueView>& values = impl_->values;
  values.clear();
  const bool formed = format::VisitValues(encoded, [&values](const ValueView& value) { values.push_back(value); });
  if (!formed) return InvalidArgument("the bytes are not an encoded document");
  for (const ValueView& value : values) {
    if (value.field >= impl_->schema.fields.size())
      return InvalidArgument("an encoded document with the unknown field number " + std::to_string(value.field));
    const Field& field = impl_->schema.fields[value.field];
    if (value.type != field.type) return WrongType(field, FieldTypeName(value.type));
    ASHLAR_RETURN_IF_ERROR(CheckValue(field, value));
  }
  ASHLAR_RETURN_IF_ERROR(impl_->Build(out));
  if (encoded.data() != out->encoded.data()) out->encoded.assign(encoded.begin(), encoded.end());
  return absl::OkStatus();
}

absl::Status DocumentAnalyzer::AnalyzeText(uint32_t field, std::string_view utf8, TokenStream* out) {
  out->Clear();
  if (field >= impl_->schema.fields.size()) return InvalidArgument("unknown field number " + std::to_string(field));
  const Field& f = impl_->schema.fields[field];
  if (static_cast<int>(field) == impl_->key_index) return FieldError(f, "the key field can't be searched by words");
  if (f.type != FieldType::kText && f.type != FieldType::kKeyword)
    return FieldError(f, "a field of type " + std::string(FieldTypeName(f.type)) + " can't be searched by words");
  ValueView view;
  view.bytes = utf8;
  ASHLAR_RETURN_IF_ERROR(CheckValue(f, view));
  return impl_->AppendTerms(field, utf8, out);
}

bool DecodeDocument(const Schema& schema, ByteSpan encoded, Document* out) {
  out->values.clear();
  bool fits = true;
  const bool formed = format::VisitValues(encoded, [&](const ValueView& view) {
    if (!fits || view.field >= schema.fields.size() || schema.fields[view.field].type != view.type) {
      fits = false;
      return;
    }
    const Field& field = schema.fields[view.field];
    if (!CheckValue(field, view).ok()) {
      fits = false;
      return;
    }
    Value value;
    switch (view.type) {
      case FieldType::kText:
      case FieldType::kKeyword:
        value = std::string(view.bytes);
        break;
      case FieldType::kInt64:
        value = view.integer;
        break;
      case FieldType::kDouble:
        value = view.real;
        break;
      case FieldType::kDate:
        value = Date{view.integer};
        break;
      case FieldType::kBytes:
        value = Blob{std::string(view.bytes)};
        break;
    }
    out->values.push_back({field.name, std::move(value)});
  });
  return formed && fits;
}

}  // namespace ashlar::text
