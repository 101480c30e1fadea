// DocumentAnalyzer and the document codec: what is refused, what comes out, and that bytes never lead astray.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "format/document_codec.h"
#include "src/base/prng.h"
#include "src/text/analyzed_document.h"
#include "tests/text/test_data.h"

namespace ashlar::text {
namespace {

using format::ValueView;

Field Named(std::string name, FieldType type) {
  Field field;
  field.name = std::move(name);
  field.type = type;
  return field;
}

// Fields: 0 id (key), 1 title, 2 tag, 3 year, 4 price, 5 day, 6 raw, 7 body.
Schema TestSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {Named("id", FieldType::kKeyword),   Named("title", FieldType::kText),
                   Named("tag", FieldType::kKeyword),  Named("year", FieldType::kInt64),
                   Named("price", FieldType::kDouble), Named("day", FieldType::kDate),
                   Named("raw", FieldType::kBytes),    Named("body", FieldType::kText)};
  return schema;
}

std::unique_ptr<DocumentAnalyzer> Make(const Schema& schema) {
  absl::StatusOr<std::unique_ptr<DocumentAnalyzer>> analyzer = DocumentAnalyzer::Create(schema);
  EXPECT_TRUE(analyzer.ok()) << analyzer.status();
  return *std::move(analyzer);
}

std::vector<std::string> TermsOf(const TokenStream& stream) {
  std::vector<std::string> terms;
  for (const Token& t : stream.tokens)
    terms.push_back(std::string(t.term(stream.bytes)) + "@" + std::to_string(t.position));
  return terms;
}

// What two analyses must agree on: key, bytes, and terms by field.
void ExpectSame(const AnalyzedDocument& a, const AnalyzedDocument& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.encoded, b.encoded);
  EXPECT_EQ(a.tokens_cut, b.tokens_cut);
  ASSERT_EQ(a.field_count, b.field_count);
  for (size_t i = 0; i < a.field_count; ++i) {
    EXPECT_EQ(a.fields[i].field, b.fields[i].field);
    EXPECT_EQ(TermsOf(a.fields[i].stream), TermsOf(b.fields[i].stream));
    EXPECT_EQ(a.fields[i].stream.next_position, b.fields[i].stream.next_position);
  }
}

TEST(DocumentAnalyzer, SortsByFieldAndKeepsPutOrder) {
  Document document;
  document.Add("body", "second field")
      .Add("tag", "Red Car")
      .Add("title", "One two")
      .Add("year", int64_t{1999})
      .Add("id", "k1")
      .Add("tag", "blue")
      .Add("title", "three")
      .Add("price", int64_t{12})
      .Add("price", 0.5)
      .Add("day", Date{-1})
      .Add("raw", Blob{std::string("\0\xFF", 2)});
  AnalyzedDocument out;
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(TestSchema());
  ASSERT_TRUE(analyzer->Analyze(document, &out).ok());
  EXPECT_EQ(out.key, "k1");
  ASSERT_EQ(out.field_count, 3u);
  EXPECT_EQ(out.fields[0].field, 1u);
  EXPECT_EQ(TermsOf(out.fields[0].stream), (std::vector<std::string>{"one@0", "two@1", "three@102"}));
  EXPECT_EQ(out.fields[0].length(), 3u);
  // A keyword is one term as it stands; its position is its index.
  EXPECT_EQ(out.fields[1].field, 2u);
  EXPECT_EQ(TermsOf(out.fields[1].stream), (std::vector<std::string>{"Red Car@0", "blue@1"}));
  EXPECT_EQ(out.fields[2].field, 7u);

  Document expected;
  expected.Add("id", "k1")
      .Add("title", "One two")
      .Add("title", "three")
      .Add("tag", "Red Car")
      .Add("tag", "blue")
      .Add("year", int64_t{1999})
      .Add("price", 12.0)
      .Add("price", 0.5)
      .Add("day", Date{-1})
      .Add("raw", Blob{std::string("\0\xFF", 2)})
      .Add("body", "second field");
  Document decoded;
  ASSERT_TRUE(DecodeDocument(TestSchema(), out.encoded, &decoded));
  EXPECT_EQ(decoded, expected);

  AnalyzedDocument again;
  ASSERT_TRUE(analyzer->AnalyzeEncoded(out.encoded, &again).ok());
  ExpectSame(out, again);
  // Its own bytes may be the input.
  ASSERT_TRUE(analyzer->AnalyzeEncoded(again.encoded, &again).ok());
  ExpectSame(out, again);
}

TEST(DocumentAnalyzer, RecyclesWithoutLeavingsOfTheLastDocument) {
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(TestSchema());
  AnalyzedDocument out;
  Document large;
  large.Add("id", "k1").Add("title", "a b c").Add("tag", std::string(300, 'x')).Add("body", "d");
  ASSERT_TRUE(analyzer->Analyze(large, &out).ok());
  EXPECT_EQ(out.field_count, 3u);
  EXPECT_EQ(out.tokens_cut, 1u);
  Document small;
  small.Add("id", "k2").Add("body", "e");
  ASSERT_TRUE(analyzer->Analyze(small, &out).ok());
  EXPECT_EQ(out.fields.size(), 3u);
  ASSERT_EQ(out.field_count, 1u);
  EXPECT_EQ(out.key, "k2");
  EXPECT_EQ(out.tokens_cut, 0u);
  EXPECT_EQ(out.fields[0].field, 7u);
  EXPECT_EQ(TermsOf(out.fields[0].stream), (std::vector<std::string>{"e@0"}));
}

TEST(DocumentAnalyzer, FieldsWithoutTermsAreLeftOut) {
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(TestSchema());
  AnalyzedDocument out;
  Document document;
  document.Add("id", "k").Add("title", "").Add("tag", "").Add("tag", "x").Add("body", "...");
  ASSERT_TRUE(analyzer->Analyze(document, &out).ok());
  ASSERT_EQ(out.field_count, 1u);
  EXPECT_EQ(TermsOf(out.fields[0].stream), (std::vector<std::string>{"x@1"}));
}

TEST(DocumentAnalyzer, RefusesAndNamesTheFault) {
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(TestSchema());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const struct {
    std::function<void(Document*)> change;
    std::string message;
  } cases[] = {
      {[](Document* d) { d->values.clear(); }, "without values"},
      {[](Document* d) { d->values.clear(), d->Add("title", "x"); }, "\"id\": the document has no key"},
      {[](Document* d) { d->Add("id", "again"); }, "\"id\": a document has one key"},
      {[](Document* d) { d->values[0].value = std::string(); }, "\"id\": the key is empty"},
      {[](Document* d) { d->values[0].value = std::string(1025, 'k'); },
       "\"id\": the key has 1025 bytes; at most 1024"},
      {[](Document* d) { d->values[0].value = int64_t{1}; }, "\"id\": is keyword, the value is int64"},
      {[](Document* d) { d->Add("color", "red"); }, "unknown field \"color\""},
      {[](Document* d) { d->Add("\xFF", "red"); }, "its name is not valid UTF-8"},
      {[](Document* d) { d->Add("title", int64_t{1}); }, "\"title\": is text, the value is int64"},
      {[](Document* d) { d->Add("title", Blob{"x"}); }, "\"title\": is text, the value is bytes"},
      {[](Document* d) { d->Add("tag", 1.5); }, "\"tag\": is keyword, the value is double"},
      {[](Document* d) { d->Add("year", 1.0); }, "\"year\": is int64, the value is double"},
      {[](Document* d) { d->Add("year", "1999"); }, "\"year\": is int64, the value is string"},
      {[](Document* d) { d->Add("year", Date{1}); }, "\"year\": is int64, the value is date"},
      {[](Document* d) { d->Add("day", int64_t{1}); }, "\"day\": is date, the value is int64"},
      {[](Document* d) { d->Add("price", "1"); }, "\"price\": is double, the value is string"},
      {[nan](Document* d) { d->Add("price", nan); }, "\"price\": a double that is not finite"},
      {[infinity](Document* d) { d->Add("price", -infinity); }, "\"price\": a double that is not finite"},
      {[](Document* d) { d->Add("price", (int64_t{1} << 53) + 1); }, "\"price\": the integer 9007199254740993"},
      {[](Document* d) { d->Add("price", std::numeric_limits<int64_t>::min()); }, "beyond 2^53"},
      {[](Document* d) { d->Add("raw", "x"); }, "\"raw\": is bytes, the value is string"},
      {[](Document* d) { d->Add("title", "abc\xFF"); }, "\"title\": invalid UTF-8 at byte 3"},
      {[](Document* d) { d->Add("tag", "ab\xED\xA0\x80"); }, "\"tag\": invalid UTF-8 at byte 2"},
      {[](Document* d) { d->values[0].value = std::string("k\xC0\x80"); }, "\"id\": invalid UTF-8 at byte 1"},
  };
  AnalyzedDocument out;
  for (const auto& c : cases) {
    Document document;
    document.Add("id", "k1");
    c.change(&document);
    const absl::Status status = analyzer->Analyze(document, &out);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_NE(std::string(status.message()).find(c.message), std::string::npos) << status << " for " << c.message;
  }
  // And it still works.
  Document good;
  good.Add("id", std::string(kKeyBytesMax, 'k')).Add("price", int64_t{1} << 53).Add("price", -(int64_t{1} << 53));
  ASSERT_TRUE(analyzer->Analyze(good, &out).ok());
  Document decoded;
  ASSERT_TRUE(DecodeDocument(TestSchema(), out.encoded, &decoded));
  EXPECT_EQ(std::get<double>(decoded.values[1].value), 0x1p53);
}

TEST(DocumentAnalyzer, KeylessSchema) {
  Schema schema = TestSchema();
  schema.key.clear();
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(schema);
  AnalyzedDocument out;
  Document document;
  document.Add("id", "x").Add("id", "y");
  ASSERT_TRUE(analyzer->Analyze(document, &out).ok());
  EXPECT_EQ(out.key, "");
  ASSERT_EQ(out.field_count, 1u);
  EXPECT_EQ(TermsOf(out.fields[0].stream), (std::vector<std::string>{"x@0", "y@1"}));
}

TEST(DocumentAnalyzer, BadSchemaIsInvalid) {
  Schema schema = TestSchema();
  schema.fields[1].analyzer.stem = "klingon";
  EXPECT_EQ(DocumentAnalyzer::Create(schema).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DocumentAnalyzer, FieldsKeepTheirOwnAnalyzers) {
  Schema schema = TestSchema();
  schema.default_group.clear();
  schema.fields[7].analyzer = AnalyzerOptions::English();
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(schema);
  TokenStream stream;
  ASSERT_TRUE(analyzer->AnalyzeText(1, "the horses", &stream).ok());
  EXPECT_EQ(TermsOf(stream), (std::vector<std::string>{"the@0", "horses@1"}));
  ASSERT_TRUE(analyzer->AnalyzeText(7, "the horses", &stream).ok());
  EXPECT_EQ(TermsOf(stream), (std::vector<std::string>{"hors@1"}));
  ASSERT_TRUE(analyzer->AnalyzeText(2, "the Horses", &stream).ok());
  EXPECT_EQ(TermsOf(stream), (std::vector<std::string>{"the Horses@0"}));
  for (const uint32_t field : {0u, 3u, 4u, 5u, 6u, 8u, 1000u}) {
    EXPECT_EQ(analyzer->AnalyzeText(field, "x", &stream).code(), absl::StatusCode::kInvalidArgument) << field;
  }
  EXPECT_EQ(analyzer->AnalyzeText(1, "\x80", &stream).code(), absl::StatusCode::kInvalidArgument);
}

TEST(DocumentAnalyzer, LongKeywordIsCutAsATerm) {
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(TestSchema());
  std::string keyword(254, 'x');
  AppendUtf8(0x1F600, &keyword);
  AnalyzedDocument out;
  Document document;
  document.Add("id", "k").Add("tag", keyword).Add("tag", "after");
  ASSERT_TRUE(analyzer->Analyze(document, &out).ok());
  EXPECT_EQ(out.tokens_cut, 1u);
  EXPECT_EQ(TermsOf(out.fields[0].stream), (std::vector<std::string>{std::string(254, 'x') + "@0", "after@1"}));
  // The value itself is whole.
  Document decoded;
  ASSERT_TRUE(DecodeDocument(TestSchema(), out.encoded, &decoded));
  EXPECT_EQ(decoded, document);
}

Document RandomDocument(const Schema& schema, Prng* prng) {
  Document document;
  document.Add("id", "k" + std::to_string(prng->Next()));
  for (uint64_t n = prng->Below(12); n > 0; --n) {
    const Field& field = schema.fields[1 + prng->Below(schema.fields.size() - 1)];
    std::string text;
    for (uint64_t c = prng->Below(40); c > 0; --c)
      AppendUtf8(static_cast<uint32_t>(prng->OneIn(4) ? prng->Below(0xD800) : 32 + prng->Below(96)), &text);
    switch (field.type) {
      case FieldType::kText:
      case FieldType::kKeyword:
        document.Add(field.name, text);
        break;
      case FieldType::kInt64:
        document.Add(field.name, static_cast<int64_t>(prng->Next()));
        break;
      case FieldType::kDouble:
        document.Add(field.name, std::ldexp(prng->Uniform() - 0.5, static_cast<int>(prng->Below(2000)) - 1000));
        break;
      case FieldType::kDate:
        document.Add(field.name, Date{static_cast<int64_t>(prng->Next())});
        break;
      case FieldType::kBytes:
        document.Add(field.name, Blob{text + "\xFF"});
        break;
    }
  }
  return document;
}

TEST(DocumentCodec, RandomDocumentsComeBack) {
  const uint64_t seed = 20250101;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  const Schema schema = TestSchema();
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(schema);
  AnalyzedDocument out;
  AnalyzedDocument again;
  for (int round = 0; round < 2000; ++round) {
    const Document document = RandomDocument(schema, &prng);
    ASSERT_TRUE(analyzer->Analyze(document, &out).ok());
    Document decoded;
    ASSERT_TRUE(DecodeDocument(schema, out.encoded, &decoded));
    Document expected = document;
    std::stable_sort(expected.values.begin(), expected.values.end(), [&](const FieldValue& a, const FieldValue& b) {
      return schema.IndexOf(a.field) < schema.IndexOf(b.field);
    });
    ASSERT_EQ(decoded, expected);
    ASSERT_TRUE(analyzer->AnalyzeEncoded(out.encoded, &again).ok());
    ExpectSame(out, again);
    if (HasFailure()) return;
  }
}

// The worked example of SPEC D.
TEST(DocumentCodec, SpecExample) {
  ByteBuffer bytes;
  ValueView value;
  value.type = FieldType::kKeyword;
  value.bytes = "k1";
  format::AppendValue(value, &bytes);
  value = {};
  value.field = 2;
  value.type = FieldType::kInt64;
  value.integer = -1;
  format::AppendValue(value, &bytes);
  value.integer = 7;
  format::AppendValue(value, &bytes);
  value = {};
  value.field = 3;
  value.type = FieldType::kText;
  value.bytes = "\xC3\xA9";
  format::AppendValue(value, &bytes);
  constexpr unsigned char kExpected[] = {0x00, 0x02, 0x02, 0x6B, 0x31, 0x02, 0x03, 0xFF, 0xFF, 0xFF,
                                         0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02, 0x03, 0x07, 0x00, 0x00,
                                         0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x01, 0x02, 0xC3, 0xA9};
  EXPECT_EQ(AsString(bytes), std::string_view(reinterpret_cast<const char*>(kExpected), sizeof kExpected));
}

bool FormedAndSame(ByteSpan bytes) {
  ByteBuffer copy;
  if (!format::VisitValues(bytes, [&copy](const ValueView& value) { format::AppendValue(value, &copy); })) return false;
  EXPECT_EQ(AsString(copy), AsString(bytes)) << "accepted bytes must be what the encoder writes (D-2)";
  return true;
}

bool Formed(std::initializer_list<unsigned> bytes) {
  ByteBuffer buffer;
  for (const unsigned b : bytes) buffer.push_back(static_cast<std::byte>(b));
  return FormedAndSame(buffer);
}

TEST(DocumentCodec, RulesOfTheSpec) {
  EXPECT_TRUE(Formed({}));  // D-3
  EXPECT_TRUE(Formed({0, 1, 0}));
  EXPECT_FALSE(Formed({1, 1, 0, 0, 1, 0}));  // D-1: descending
  EXPECT_FALSE(Formed({0x80, 0x00, 1, 0}));  // D-2: field number too long
  EXPECT_FALSE(Formed({0, 1, 0x80, 0x00}));  // D-2: size too long
  EXPECT_FALSE(Formed({0, 0, 0}));           // no such type
  EXPECT_FALSE(Formed({0, 7, 0}));
  EXPECT_FALSE(Formed({0}));  // D-3: cut short
  EXPECT_FALSE(Formed({0, 1}));
  EXPECT_FALSE(Formed({0, 1, 1}));
  EXPECT_FALSE(Formed({0, 3, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_FALSE(Formed({0xE8, 0x07, 1, 0}));                                                  // field 1000
  EXPECT_TRUE(Formed({0xE7, 0x07, 1, 0}));                                                   // field 999
  EXPECT_FALSE(Formed({0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));  // size 2^64 - 1
  EXPECT_FALSE(Formed({0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}));  // over 64 bits
}

TEST(DocumentCodec, MalformedBytesAreRefusedOrHarmless) {
  const uint64_t seed = 31337;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  const Schema schema = TestSchema();
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(schema);
  AnalyzedDocument out;
  size_t refused = 0;
  const auto probe = [&](const ByteBuffer& bytes) {
    const bool formed = FormedAndSame(bytes);
    Document decoded;
    const bool fits = DecodeDocument(schema, bytes, &decoded);
    const absl::Status status = analyzer->AnalyzeEncoded(bytes, &out);
    if (!formed) {
      EXPECT_FALSE(fits);
    }
    if (!fits) {
      ++refused;
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    }
    if (status.ok()) {
      EXPECT_EQ(out.encoded, bytes);
      EXPECT_FALSE(out.key.empty());
    }
  };
  for (int round = 0; round < 20000; ++round) {
    ByteBuffer bytes(prng.Below(40));
    for (std::byte& b : bytes) b = static_cast<std::byte>(prng.OneIn(2) ? prng.Below(8) : prng.Below(256));
    probe(bytes);
  }
  for (int round = 0; round < 60; ++round) {
    ASSERT_TRUE(analyzer->Analyze(RandomDocument(schema, &prng), &out).ok());
    const ByteBuffer good = out.encoded;
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      ByteBuffer bytes = good;
      bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      probe(bytes);
    }
    for (size_t size = 0; size < good.size(); ++size)
      probe(ByteBuffer(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 20000u);
}

TEST(DocumentAnalyzer, EncodedDocumentsMustFitTheSchema) {
  const std::unique_ptr<DocumentAnalyzer> analyzer = Make(TestSchema());
  AnalyzedDocument out;
  const auto encode = [](std::vector<ValueView> values) {
    ByteBuffer bytes;
    for (const ValueView& v : values) format::AppendValue(v, &bytes);
    return bytes;
  };
  ValueView key;
  key.type = FieldType::kKeyword;
  key.bytes = "k";
  ValueView other;
  other.field = 1;
  other.type = FieldType::kKeyword;
  const struct {
    std::vector<ValueView> values;
    std::string message;
  } cases[] = {
      {{}, "without values"},
      {{key, other}, "\"title\": is text, the value is keyword"},
      {{key, {8, FieldType::kText, "x", 0, 0}}, "unknown field number 8"},
      {{key, {1, FieldType::kText, "\xFF", 0, 0}}, "\"title\": invalid UTF-8 at byte 0"},
      {{key, {4, FieldType::kDouble, {}, 0, std::numeric_limits<double>::infinity()}}, "not finite"},
      {{{1, FieldType::kText, "x", 0, 0}}, "has no key"},
      {{key, key}, "one key"},
  };
  for (const auto& c : cases) {
    const ByteBuffer bytes = encode(c.values);
    const absl::Status status = analyzer->AnalyzeEncoded(bytes, &out);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_NE(std::string(status.message()).find(c.message), std::string::npos) << status << " for " << c.message;
  }
}

}  // namespace
}  // namespace ashlar::text
