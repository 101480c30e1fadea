// Analyzer: positions, options, the token limit, hostile text.
#include "src/text/analyzer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/prng.h"
#include "src/text/stop_words.h"
#include "tests/text/test_data.h"

namespace ashlar::text {
namespace {

using Terms = std::vector<std::pair<std::string, uint32_t>>;

Terms TermsOf(const TokenStream& stream) {
  Terms terms;
  for (const Token& t : stream.tokens) terms.emplace_back(t.term(stream.bytes), t.position);
  return terms;
}

std::unique_ptr<Analyzer> Make(const AnalyzerOptions& options) {
  absl::StatusOr<std::unique_ptr<Analyzer>> analyzer = Analyzer::Create(options);
  EXPECT_TRUE(analyzer.ok()) << analyzer.status();
  return *std::move(analyzer);
}

TokenStream AnalyzeWith(const AnalyzerOptions& options, std::string_view text) {
  TokenStream stream;
  const absl::Status status = Make(options)->Analyze(text, &stream);
  EXPECT_TRUE(status.ok()) << status;
  return stream;
}

TEST(Analyzer, PlainWordsAndPositions) {
  const TokenStream stream = AnalyzeWith({}, "The Quick, brown FOX -- isn't 3.5 kg!");
  const Terms expected = {{"the", 0}, {"quick", 1}, {"brown", 2}, {"fox", 3}, {"isn't", 4}, {"3.5", 5}, {"kg", 6}};
  EXPECT_EQ(TermsOf(stream), expected);
  EXPECT_EQ(stream.next_position, 7 + kPositionGap);
  EXPECT_EQ(stream.tokens_cut, 0u);
}

TEST(Analyzer, MixedScripts) {
  const TokenStream stream =
      AnalyzeWith({}, "Plain words " + Utf8({0xC9}) + "TUDE and " + Utf8({0x41C, 0x438, 0x440}) + " again");
  const Terms expected = {
      {"plain", 0}, {"words", 1}, {Utf8({0xE9}) + "tude", 2}, {"and", 3}, {Utf8({0x43C, 0x438, 0x440}), 4},
      {"again", 5}};
  EXPECT_EQ(TermsOf(stream), expected);
}

TEST(Analyzer, ValuesOfAFieldAreAGapApart) {
  const std::unique_ptr<Analyzer> analyzer = Make({});
  TokenStream stream;
  ASSERT_TRUE(analyzer->Analyze("one two", &stream).ok());
  ASSERT_TRUE(analyzer->Analyze("", &stream).ok());
  ASSERT_TRUE(analyzer->Analyze("three", &stream).ok());
  const Terms expected = {{"one", 0}, {"two", 1}, {"three", 2 + 2 * kPositionGap}};
  EXPECT_EQ(TermsOf(stream), expected);
  stream.Clear();
  ASSERT_TRUE(analyzer->Analyze("four", &stream).ok());
  EXPECT_EQ(TermsOf(stream), (Terms{{"four", 0}}));
}

TEST(Analyzer, StopWordsKeepTheirPlaces) {
  const Terms expected = {{"plans", 0}, {"eat", 3}};
  EXPECT_EQ(TermsOf(AnalyzeWith({StopWords::kEnglish33, "none", Marks::kKeep}, "Plans TO the eat")), expected);
  // The same off the ASCII path.
  const std::string e = Utf8({0xE9});
  const Terms accented = {{e, 0}, {"plans", 1}, {e, 4}};
  EXPECT_EQ(TermsOf(AnalyzeWith({StopWords::kEnglish33, "none", Marks::kKeep}, e + "\nPlans\nTO\nthe\n" + e)),
            accented);
}

TEST(Analyzer, StopWordsAreLuceneS33) {
  EXPECT_EQ(kEnglishStopWords.size(), 33u);
  for (const std::string_view word : kEnglishStopWords) {
    EXPECT_TRUE(IsEnglishStopWord(word)) << word;
    EXPECT_FALSE(IsEnglishStopWord(std::string(word) + "x")) << word;
    EXPECT_TRUE(AnalyzeWith({StopWords::kEnglish33, "none", Marks::kKeep}, word).tokens.empty()) << word;
    EXPECT_EQ(AnalyzeWith({}, word).tokens.size(), 1u) << word;
  }
  // The table knows no other word: all of up to four letters.
  const std::set<std::string_view> set(kEnglishStopWords.begin(), kEnglishStopWords.end());
  std::string word;
  for (uint32_t i = 1; i < 27 * 27 * 27 * 27; ++i) {
    word.clear();
    for (uint32_t rest = i; rest > 0; rest /= 27) word.push_back(static_cast<char>('`' + rest % 27));
    ASSERT_EQ(IsEnglishStopWord(word), set.count(word) == 1) << word;
  }
  // Compared after folding: full-width letters.
  EXPECT_TRUE(
      AnalyzeWith({StopWords::kEnglish33, "none", Marks::kKeep}, Utf8({0xFF34, 0xFF48, 0xFF45})).tokens.empty());
}

TEST(Analyzer, EnglishStems) {
  const Terms expected = {{"run", 1}, {"hors", 2}, {"jump", 4}};
  EXPECT_EQ(TermsOf(AnalyzeWith(AnalyzerOptions::English(), "the Running horses and jumped")), expected);
  // A stem that differs inside a mixed value too.
  const Terms mixed = {{Utf8({0xE9}), 0}, {"hors", 1}};
  EXPECT_EQ(TermsOf(AnalyzeWith(AnalyzerOptions::English(), Utf8({0xE9}) + "\nhorses")), mixed);
  EXPECT_EQ(TermsOf(AnalyzeWith({StopWords::kNone, "german", Marks::kKeep}, Utf8({'H', 0xE4, 'u', 's', 'e', 'r'}))),
            (Terms{{"haus", 0}}));
}

TEST(Analyzer, StemmedTermsDoNotDisturbEachOther) {
  const std::unique_ptr<Analyzer> analyzer = Make({StopWords::kNone, "porter", Marks::kKeep});
  TokenStream stream;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(analyzer->Analyze("relational hopping ponies caresses sky", &stream).ok());
  ASSERT_EQ(stream.tokens.size(), 15u);
  const std::string_view expected[] = {"relat", "hop", "poni", "caress", "sky"};
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(stream.tokens[i].term(stream.bytes), expected[i % 5]);
}

TEST(Analyzer, MarksRemoved) {
  EXPECT_EQ(TermsOf(AnalyzeWith({StopWords::kNone, "none", Marks::kRemove}, Utf8({0xC9, 't', 0xE9}))),
            (Terms{{"ete", 0}}));
}

TEST(Analyzer, AWordThatFoldsToNothingKeepsItsPlace) {
  const Terms expected = {{"a", 0}, {"b", 2}};
  EXPECT_EQ(TermsOf(AnalyzeWith({}, "a " + Utf8({0x3164}) + " b")), expected);
}

TEST(Analyzer, UnknownStemmerIsInvalid) {
  const absl::Status status = Analyzer::Create({StopWords::kNone, "klingon", Marks::kKeep}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("klingon"), std::string::npos);
}

// C33: a cut falls between two characters, and under the limit different words stay different.
TEST(TokenLimit, AstralCharactersAfter63Letters) {
  const std::string letters(63, 'x');
  // Two Gothic letters, which are word characters, of four bytes.
  const std::string a = letters + Utf8({0x10330});
  const std::string b = letters + Utf8({0x10331});
  const TokenStream stream = AnalyzeWith({}, a + " " + b);
  EXPECT_EQ(TermsOf(stream), (Terms{{a, 0}, {b, 1}}));
  EXPECT_EQ(stream.tokens_cut, 0u);
}

TEST(TokenLimit, CutsBetweenCharacters) {
  for (const uint32_t c : {0x430u, 0x915u, 0x10330u}) {
    const size_t bytes = Utf8({c}).size();
    for (size_t letters = kTermBytesMax - 8; letters <= kTermBytesMax + 1; ++letters) {
      std::string word(letters, 'x');
      for (int i = 0; i < 3; ++i) AppendUtf8(c, &word);
      const TokenStream stream = AnalyzeWith({}, word);
      ASSERT_EQ(stream.tokens.size(), 1u);
      const std::string term(stream.tokens[0].term(stream.bytes));
      EXPECT_TRUE(IsValidUtf8(term));
      EXPECT_EQ(word.substr(0, term.size()), term);
      EXPECT_EQ(stream.tokens_cut, word.size() > kTermBytesMax ? 1u : 0u);
      if (word.size() > kTermBytesMax) {
        EXPECT_LE(term.size(), kTermBytesMax);
        EXPECT_GT(term.size() + bytes, kTermBytesMax);
      }
    }
  }
}

// C35: one huge word is one cut term with one position, in ASCII and in three-byte characters.
TEST(TokenLimit, HugeWordAmongOthers) {
  std::string ascii(200000, 'q');
  std::string devanagari;
  while (devanagari.size() < 200000) AppendUtf8(0x915, &devanagari);
  for (const std::string& huge : {ascii, devanagari}) {
    for (const char* stem : {"none", "porter"}) {
      const TokenStream stream = AnalyzeWith({StopWords::kNone, stem, Marks::kKeep}, "left " + huge + " right");
      ASSERT_EQ(stream.tokens.size(), 3u);
      EXPECT_EQ(stream.tokens_cut, 1u);
      EXPECT_EQ(stream.tokens[0].term(stream.bytes), "left");
      EXPECT_EQ(stream.tokens[1].length, kTermBytesMax);
      EXPECT_EQ(stream.tokens[1].term(stream.bytes), huge.substr(0, kTermBytesMax));
      EXPECT_EQ(stream.tokens[1].position, 1u);
      EXPECT_EQ(stream.tokens[2].term(stream.bytes), "right");
      EXPECT_EQ(stream.tokens[2].position, 2u);
    }
  }
}

TEST(TokenLimit, FoldingCountsNotTheOriginal) {
  // 100 times U+FB03, three bytes, folds to 100 times "ffi".
  std::string word;
  for (int i = 0; i < 100; ++i) AppendUtf8(0xFB03, &word);
  const TokenStream stream = AnalyzeWith({}, word);
  ASSERT_EQ(stream.tokens.size(), 1u);
  EXPECT_EQ(stream.tokens[0].length, kTermBytesMax);
  EXPECT_EQ(stream.tokens_cut, 1u);
}

TEST(Hostile, NulAndControlBytesSeparate) {
  const TokenStream stream = AnalyzeWith({}, std::string_view("a\0b\x01\x7F c", 7));
  EXPECT_EQ(TermsOf(stream), (Terms{{"a", 0}, {"b", 1}, {"c", 2}}));
  const TokenStream mixed = AnalyzeWith({}, Utf8({'a', 0, 0xE9, 0}));
  EXPECT_EQ(TermsOf(mixed), (Terms{{"a", 0}, {Utf8({0xE9}), 1}}));
}

TEST(Hostile, EmptyAndBlank) {
  for (const std::string_view text : {"", " ", "\n\n", "...", "\xE2\x80\xA8"}) {
    const TokenStream stream = AnalyzeWith({}, text);
    EXPECT_TRUE(stream.tokens.empty());
    EXPECT_EQ(stream.next_position, kPositionGap);
  }
}

// Every term of valid text is valid UTF-8, within the limit, and has no replacement character that was not there.
void ExpectSoundTerms(const std::string& text, const TokenStream& stream) {
  const bool had_replacement = text.find("\xEF\xBF\xBD") != std::string::npos;
  uint32_t last = 0;
  for (const Token& t : stream.tokens) {
    const std::string term(t.term(stream.bytes));
    ASSERT_GE(t.length, 1u);
    ASSERT_LE(t.length, kTermBytesMax);
    ASSERT_TRUE(IsValidUtf8(term)) << testing::PrintToString(text);
    if (!had_replacement) {
      ASSERT_EQ(term.find("\xEF\xBF\xBD"), std::string::npos) << testing::PrintToString(text);
    }
    ASSERT_GE(t.position, last);
    last = t.position;
  }
}

std::vector<AnalyzerOptions> AllKinds() {
  return {{},
          AnalyzerOptions::English(),
          {StopWords::kEnglish33, "english", Marks::kRemove},
          {StopWords::kNone, "german", Marks::kRemove},
          {StopWords::kNone, "turkish", Marks::kKeep}};
}

TEST(Hostile, BigListOfNaughtyStrings) {
  const std::string file = ReadTestData("blns.json");
  const nlohmann::json strings = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(strings.is_array());
  ASSERT_EQ(strings.size(), 515u);
  for (const AnalyzerOptions& options : AllKinds()) {
    const std::unique_ptr<Analyzer> analyzer = Make(options);
    size_t terms = 0;
    for (const nlohmann::json& s : strings) {
      const std::string text = s.get<std::string>();
      ASSERT_TRUE(IsValidUtf8(text));
      TokenStream stream;
      const absl::Status status = analyzer->Analyze(text, &stream);
      ASSERT_TRUE(status.ok()) << status << " for " << text;
      ExpectSoundTerms(text, stream);
      terms += stream.tokens.size();
    }
    EXPECT_GT(terms, 1500u);
  }
}

TEST(Hostile, RandomCodePoints) {
  const uint64_t seed = 4711;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  for (const AnalyzerOptions& options : AllKinds()) {
    const std::unique_ptr<Analyzer> analyzer = Make(options);
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (uint64_t n = prng.Below(200); n > 0; --n) {
        const uint32_t tops[] = {0x80, 0x800, 0x3400, 0x10000, 0x110000};
        const auto c = static_cast<uint32_t>(prng.Below(tops[prng.Below(5)]));
        if (c < 0xD800 || c > 0xDFFF) AppendUtf8(c, &text);
      }
      TokenStream stream;
      ASSERT_TRUE(analyzer->Analyze(text, &stream).ok());
      ExpectSoundTerms(text, stream);
    }
  }
}

// One very long line without spaces, of a script that needs a dictionary.
TEST(Hostile, LongJapaneseLine) {
  const std::string sentence = Utf8({0x543E, 0x8F29, 0x306F, 0x732B, 0x3067, 0x3042, 0x308B, 0x3002});
  std::string text;
  while (text.size() < 300000) text += sentence;
  const TokenStream stream = AnalyzeWith({}, text);
  ExpectSoundTerms(text, stream);
  EXPECT_GT(stream.tokens.size(), text.size() / sentence.size() * 3);
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() == 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
      digits.clear();
    }
  }
  EXPECT_TRUE(digits.empty()) << hex;
  return bytes;
}

// The longest valid prefix by definition (Unicode table 3-7), a way of its own.
size_t ValidPrefix(const std::string& bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const auto at = [&](size_t k) { return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0u; };
    const unsigned lead = at(i);
    size_t more = 0;
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (lead < 0x80) {
      more = 0;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return i;
    }
    for (size_t k = 1; k <= more; ++k) {
      if (i + k >= bytes.size()) return i;
      const unsigned c = at(i + k);
      if (k == 1 ? (c < low || c > high) : (c < 0x80 || c > 0xBF)) return i;
    }
    i += more + 1;
  }
  return i;
}

TEST(Utf8, TestFile) {
  const std::string file = ReadTestData("utf8tests.txt");
  ASSERT_FALSE(file.empty());
  size_t valid = 0;
  size_t invalid = 0;
  for (const std::string_view line : SplitLines(file)) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    ASSERT_NE(colon, std::string_view::npos);
    std::string_view rest = line.substr(colon + 1);
    if (rest[0] == ' ') rest.remove_prefix(1);
    std::string bytes;
    bool good = true;
    if (rest.substr(0, 10) == "valid hex:") {
      bytes = FromHex(rest.substr(10));
    } else if (rest.substr(0, 12) == "invalid hex:") {
      rest = rest.substr(12);
      bytes = FromHex(rest.substr(0, rest.find(':')));
      good = false;
    } else {
      ASSERT_EQ(rest.substr(0, 6), "valid:") << line;
      bytes = std::string(rest.substr(6));
    }
    good ? ++valid : ++invalid;
    EXPECT_EQ(IsValidUtf8(bytes), good) << line;
    EXPECT_EQ(FirstInvalidUtf8(bytes), ValidPrefix(bytes)) << line;
    // The same far from the start and off any alignment.
    for (const size_t pad : {1u, 63u, 64u, 200u}) {
      const std::string padded = std::string(pad, 'x') + bytes + "yz";
      EXPECT_EQ(FirstInvalidUtf8(padded), ValidPrefix(padded)) << line << " after " << pad;
    }
  }
  EXPECT_GT(valid, 60u);
  EXPECT_GT(invalid, 120u);
}

TEST(Utf8, EveryShortSequence) {
  std::string bytes(2, '\0');
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      bytes[0] = static_cast<char>(a);
      bytes[1] = static_cast<char>(b);
      ASSERT_EQ(FirstInvalidUtf8(bytes), ValidPrefix(bytes)) << a << " " << b;
    }
  }
  const uint64_t seed = 99;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  constexpr unsigned char kEdges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1,
                                      0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  for (int round = 0; round < 200000; ++round) {
    std::string s(prng.Below(8), '\0');
    for (char& c : s) c = static_cast<char>(kEdges[prng.Below(sizeof kEdges)]);
    ASSERT_EQ(FirstInvalidUtf8(s), ValidPrefix(s)) << testing::PrintToString(s);
  }
}

TEST(AnalyzerIdentity, NamesItsParts) {
  const std::string identity = AnalyzerIdentity();
  EXPECT_EQ(identity.rfind("ashlar-", 0), 0u) << identity;
  for (const char* part : {" unicode-", " icu-", " snowball-"}) EXPECT_NE(identity.find(part), std::string::npos);
  EXPECT_EQ(identity, AnalyzerIdentity());
}

std::vector<std::string> NamesOf(const TokenStream& stream) {
  std::vector<std::string> names;
  for (const Token& token : stream.tokens) names.emplace_back(token.term(stream.bytes));
  return names;
}

TEST(AnalyzerTest, APossessiveIsNoPartOfItsWord) {
  for (const AnalyzerOptions& options : {AnalyzerOptions{}, AnalyzerOptions{StopWords::kNone, "none", Marks::kRemove}}) {
    EXPECT_EQ(NamesOf(AnalyzeWith(options, "Kennedy's KENNEDY'S o'clock it's its s's 's rock'n'roll dogs'")),
              (std::vector<std::string>{"kennedy", "kennedy", "o'clock", "it", "its", "s", "s", "rock'n'roll", "dogs"}));
    EXPECT_EQ(NamesOf(AnalyzeWith(options, Utf8({'a', 'b', 0x2019, 'S', ' ', 0x77F3, ' ', 0xE9, 0x2019, 's'}))),
              (std::vector<std::string>{"ab", Utf8({0x77F3}), options.marks == Marks::kRemove ? "e" : Utf8({0xE9})}));
  }
  EXPECT_EQ(NamesOf(AnalyzeWith(AnalyzerOptions::English(), "the company's profits")),
            (std::vector<std::string>{"compani", "profit"}));
}

}  // namespace
}  // namespace ashlar::text
