// The words of the ASCII path are ICU's, and ICU's are those of UAX #29 (with the choices that words.h states).
#include "src/text/words.h"

#include <gtest/gtest.h>
#include <unicode/uchar.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/prng.h"
#include "src/text/analyzer.h"
#include "src/text/ascii_words.h"
#include "src/text/folder.h"
#include "src/text/letters.h"
#include "src/text/utf8.h"
#include "tests/text/test_data.h"

namespace ashlar::text {
namespace {

std::vector<WordRange> IcuWordsOf(IcuWords* icu, std::string_view text) {
  std::vector<WordRange> words;
  const absl::Status status = icu->Find(text, &words);
  EXPECT_TRUE(status.ok()) << status;
  return words;
}

std::vector<WordRange> AsciiWordsOf(std::string_view text) {
  std::vector<WordRange> words;
  ForEachWord(text, [&words](size_t begin, size_t end) {
    words.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  });
  return words;
}

std::vector<std::string> Texts(std::string_view text, const std::vector<WordRange>& words) {
  std::vector<std::string> out;
  for (const WordRange& w : words) out.emplace_back(text.substr(w.begin, w.end - w.begin));
  return out;
}

// Compares both ways on every string over `alphabet` of exactly `length` characters; returns their number.
size_t CompareAll(IcuWords* icu, std::string_view alphabet, size_t length) {
  std::string text(length, alphabet[0]);
  std::vector<size_t> digits(length, 0);
  size_t count = 0;
  for (;;) {
    ++count;
    if (AsciiWordsOf(text) != IcuWordsOf(icu, text)) {
      ADD_FAILURE() << "differs on \"" << testing::PrintToString(text) << "\"";
      return count;
    }
    size_t i = 0;
    while (i < length && ++digits[i] == alphabet.size()) {
      digits[i] = 0;
      text[i] = alphabet[0];
      ++i;
    }
    if (i == length) return count;
    text[i] = alphabet[digits[i]];
  }
}

TEST(AsciiWords, EqualIcuOnEveryPairOfCharactersInEveryContext) {
  IcuWords icu;
  std::string all;
  for (int c = 0; c < 128; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(CompareAll(&icu, all, 1), 128u);
  EXPECT_EQ(CompareAll(&icu, all, 2), 128u * 128);
  // Each pair between and beside letters, digits and connectors.
  for (const char left : {'a', '1', '_', ' '}) {
    for (const char right : {'b', '2', '_', ' '}) {
      for (const char x : all) {
        for (const char y : all) {
          const std::string text = {left, x, y, right};
          ASSERT_EQ(AsciiWordsOf(text), IcuWordsOf(&icu, text)) << testing::PrintToString(text);
        }
      }
    }
  }
}

TEST(AsciiWords, EqualIcuOnAllShortStringsOfTheClasses) {
  IcuWords icu;
  // One of each class: letter, digit, connector, mid of letters and digits, mid of digits, other, space.
  size_t count = 0;
  for (size_t length = 1; length <= 7; ++length) count += CompareAll(&icu, "a1_.,- ", length);
  EXPECT_EQ(count, 7u + 49 + 343 + 2401 + 16807 + 117649 + 823543);
  // More representatives, shorter.
  for (size_t length = 1; length <= 4; ++length) CompareAll(&icu, "aZ19_.',;:@\"- \t\r\n\v", length);
  // The two longest patterns that matter, a mid and what surrounds it, at length 9.
  CompareAll(&icu, "a1.", 9);
}

TEST(AsciiWords, EqualIcuOnLongRandomText) {
  IcuWords icu;
  const uint64_t seed = 20240611;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  constexpr std::string_view kCommon = "abcXYZ0189__..'',;:@ \"-\n";
  for (int round = 0; round < 10000; ++round) {
    // Words over the borders of the 64-byte blocks and texts that end at one.
    std::string text(prng.OneIn(2) ? prng.Below(300) : 64 * prng.Below(4), ' ');
    for (char& c : text) {
      c = prng.OneIn(8) ? static_cast<char>(prng.Below(128)) : kCommon[prng.Below(kCommon.size())];
    }
    ASSERT_EQ(AsciiWordsOf(text), IcuWordsOf(&icu, text)) << testing::PrintToString(text);
  }
}

TEST(AsciiWords, MasksAreThePortableOnes) {
  std::string text;
  for (int c = 0; c < 256; ++c) text.push_back(static_cast<char>(c));
  text += text;
  for (size_t offset = 0; offset < 256; ++offset) {
    const char* block = text.data() + offset;
    ASSERT_EQ(internal::Classify(block), internal::ClassifyPortable(block)) << offset;
  }
}

TEST(AsciiWords, OurChoices) {
  const std::string_view text = "user@example.com @home title:word ____ _x_ it's 3,141.59 a,b 1:2";
  const std::vector<std::string> expected = {"user", "example.com", "home", "title", "word", "_x_",
                                             "it's", "3,141.59",    "a",    "b",     "1",    "2"};
  EXPECT_EQ(Texts(text, AsciiWordsOf(text)), expected);
}

TEST(IcuWords, OurChoicesHoldBesideOtherScripts) {
  IcuWords icu;
  const std::string e = Utf8({0xE9});
  const std::string text = e + "@" + e + " " + e + ":" + e + " " + Utf8({0x203F, 0x203F}) + " __ " + e + "_";
  const std::vector<std::string> expected = {e, e, e, e, e + "_"};
  EXPECT_EQ(Texts(text, IcuWordsOf(&icu, text)), expected);
}

TEST(IcuWords, KindsOfWords) {
  IcuWords icu;
  // Emoji and flags are no words; a keycap is a number; kana and ideographs are words.
  const std::string text =
      Utf8({0x1F600, ' ', 0x1F1E9, 0x1F1EA, ' ', '1', 0xFE0F, 0x20E3, ' ', 0x30AB, 0x30CA, ' ', 0x732B});
  const std::vector<std::string> expected = {Utf8({'1', 0xFE0F, 0x20E3}), Utf8({0x30AB, 0x30CA}), Utf8({0x732B})};
  EXPECT_EQ(Texts(text, IcuWordsOf(&icu, text)), expected);
}

// One line of WordBreakTest.txt: the text and the segments that it marks.
struct BreakCase {
  std::string text;
  std::vector<WordRange> segments;
  bool has_colon = false;
  bool has_joined_pictograph =
      false;  // a joiner and a pictograph: ICU gives such a segment no status, whatever it begins with
};

BreakCase ParseBreakCase(std::string_view line) {
  BreakCase result;
  uint32_t begin = 0;
  uint32_t last = 0;
  size_t i = 0;
  while (i < line.size()) {
    const size_t end = std::min(line.find(' ', i), line.size());
    const std::string token(line.substr(i, end - i));
    i = end + 1;
    if (token == "\xC3\xB7") {  // the division sign: a break
      const auto here = static_cast<uint32_t>(result.text.size());
      if (here > begin) result.segments.push_back({begin, here});
      begin = here;
    } else if (token != "\xC3\x97" && !token.empty()) {  // not the multiplication sign
      const auto c = static_cast<uint32_t>(std::stoul(token, nullptr, 16));
      result.has_colon |= c == ':';
      result.has_joined_pictograph |=
          last == 0x200D && u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_EXTENDED_PICTOGRAPHIC) != 0;
      last = c;
      AppendUtf8(c, &result.text);
    }
  }
  return result;
}

// By the properties of UAX #29 alone: does the segment hold a letter, a number, kana or an ideograph?
bool HasWordCharacter(std::string_view segment) {
  const auto* s = reinterpret_cast<const uint8_t*>(segment.data());
  for (int32_t i = 0; i < static_cast<int32_t>(segment.size());) {
    UChar32 c = 0;
    U8_NEXT(s, i, static_cast<int32_t>(segment.size()), c);
    switch (u_getIntPropertyValue(c, UCHAR_WORD_BREAK)) {
      case U_WB_ALETTER:
      case U_WB_HEBREW_LETTER:
      case U_WB_NUMERIC:
      case U_WB_KATAKANA:
        return true;
      default:
        if (u_hasBinaryProperty(c, UCHAR_IDEOGRAPHIC)) return true;
    }
  }
  return false;
}

TEST(IcuWords, UnicodeWordBreakTest) {
  const std::string file = ReadTestData("WordBreakTest.txt.gz");
  ASSERT_FALSE(file.empty());
  IcuWords icu;
  size_t cases = 0;
  size_t colon_cases = 0;
  size_t pictograph_differences = 0;
  size_t colon_differences = 0;
  for (std::string_view line : SplitLines(file)) {
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty()) continue;
    ++cases;
    const BreakCase c = ParseBreakCase(line);
    std::vector<WordRange> expected;
    for (const WordRange& s : c.segments)
      if (HasWordCharacter(std::string_view(c.text).substr(s.begin, s.end - s.begin))) expected.push_back(s);
    const std::vector<WordRange> words = IcuWordsOf(&icu, c.text);
    if (c.has_colon) {
      // ':' separates here and in CLDR, where UAX #29 without tailoring lets it join letters.
      ++colon_cases;
      colon_differences += words != expected;
    } else if (c.has_joined_pictograph) {
      pictograph_differences += words != expected;
    } else {
      EXPECT_EQ(words, expected) << line;
    }
  }
  EXPECT_EQ(cases, 1823u);
  EXPECT_GT(colon_cases, 90u);
  EXPECT_LE(colon_differences, 15u);
  EXPECT_LE(pictograph_differences, 2u);
}

// What the analyzer must give, by ICU alone: the words of the whole value, each folded and without its possessive.
std::vector<std::string> ReferenceTerms(IcuWords* icu, Folder* folder, std::string_view text, size_t* words) {
  std::vector<std::string> terms;
  const std::vector<WordRange> ranges = IcuWordsOf(icu, text);
  *words = ranges.size();
  for (const std::string& word : Texts(text, ranges)) {
    std::string term;
    EXPECT_TRUE(folder->Fold(word, &term).ok());
    for (const std::string ending : {"'s", "\u2019s"})
      if (term.size() > ending.size() && term.ends_with(ending)) {
        term.resize(term.size() - ending.size());
        break;
      }
    if (!term.empty()) terms.push_back(term.substr(0, CutToCharacter(term, kTermBytesMax)));
  }
  return terms;
}

class FastPath : public testing::TestWithParam<Marks> {
 protected:
  FastPath() : folder_(GetParam()) {
    absl::StatusOr<std::unique_ptr<Analyzer>> analyzer = Analyzer::Create({StopWords::kNone, "none", GetParam()});
    EXPECT_TRUE(analyzer.ok());
    analyzer_ = *std::move(analyzer);
  }

  // Whether the analyzer and the reference agree on terms and places.
  testing::AssertionResult Agrees(const std::string& text) {
    TokenStream stream;
    if (const absl::Status status = analyzer_->Analyze(text, &stream); !status.ok())
      return testing::AssertionFailure() << status;
    size_t words = 0;
    const std::vector<std::string> expected = ReferenceTerms(&icu_, &folder_, text, &words);
    std::vector<std::string> got;
    for (const Token& t : stream.tokens) got.emplace_back(t.term(stream.bytes));
    if (got != expected || stream.next_position != words + kPositionGap) {
      return testing::AssertionFailure() << testing::PrintToString(text) << ": " << testing::PrintToString(got)
                                         << " instead of " << testing::PrintToString(expected);
    }
    return testing::AssertionSuccess();
  }

  IcuWords icu_;
  Folder folder_;
  std::unique_ptr<Analyzer> analyzer_;
};

// Every character of the table (and around it), in every kind of neighbourhood.
TEST_P(FastPath, EqualsIcuOnEveryCharacter) {
  const std::string left[] = {"", " ", "a", "1", "_", ".", Utf8({0xE9}), Utf8({0x2019}), Utf8({'a', 0x2019})};
  const std::string right[] = {"",           " ", "b", "2", ",", Utf8({0x2019}), Utf8({0x2019, 'b'}), Utf8({0x430}),
                               Utf8({0x301})};
  for (uint32_t c = 0x80; c < 0x2400; ++c) {
    if (c == 0xA00) c = 0x1D00;  // scripts that are not in the table
    const std::string character = Utf8({c});
    for (const std::string& l : left)
      for (const std::string& r : right) ASSERT_TRUE(Agrees(l + character + r)) << std::hex << c;
    ASSERT_TRUE(Agrees("ab " + character + character + " cd")) << std::hex << c;
    // The form after itself and after a letter, upper case too.
    ASSERT_TRUE(Agrees("X" + character + "Y" + character)) << std::hex << c;
  }
}

TEST_P(FastPath, EqualsIcuOnPairsOfLetters) {
  std::vector<uint32_t> letters;
  for (uint32_t c = 0x80; c < 0x800; ++c)
    if (u_isalpha(static_cast<UChar32>(c))) letters.push_back(c);
  const uint64_t seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    for (uint64_t n = 1 + prng.Below(6); n > 0; --n) AppendUtf8(letters[prng.Below(letters.size())], &text);
    ASSERT_TRUE(Agrees(text));
  }
}

TEST_P(FastPath, EqualsIcuOnMixtures) {
  const uint64_t seed = 77;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  const std::vector<std::string> pieces = {" ",
                                           " ",
                                           "  ",
                                           "a",
                                           "B",
                                           "1",
                                           "'",
                                           ".",
                                           ",",
                                           "_",
                                           ":",
                                           "@",
                                           "\n",
                                           "\r",
                                           "the",
                                           "Quick ",
                                           " and",
                                           "\"",
                                           Utf8({0xE9}),
                                           Utf8({0xC9}),
                                           Utf8({0xDF}),
                                           Utf8({0x130}),
                                           Utf8({0x149}),
                                           Utf8({0x37A}),
                                           Utf8({0x41C}),
                                           Utf8({0x1EC7}),
                                           Utf8({0x2019}),
                                           Utf8({0x2019}),
                                           Utf8({0xB7}),
                                           Utf8({0x387}),
                                           Utf8({0x201C}),
                                           Utf8({0x2014}),
                                           Utf8({0xAB}),
                                           Utf8({0xA9}),
                                           Utf8({0xBD}),
                                           Utf8({0xB2}),
                                           Utf8({0x2139}),
                                           Utf8({0x627}),
                                           Utf8({0x660}),
                                           Utf8({0x5D0}),
                                           Utf8({0x301}),
                                           Utf8({0x200D}),
                                           Utf8({0xAD}),
                                           Utf8({0x1F1E9}),
                                           Utf8({0x30AB}),
                                           Utf8({0x3042}),
                                           Utf8({0x732B}),
                                           Utf8({0xE01}),
                                           Utf8({0x2003}),
                                           Utf8({0x1F600}),
                                           Utf8({0x2028}),
                                           Utf8({0x85}),
                                           Utf8({0xA0}),
                                           Utf8({0x203F}),
                                           Utf8({0x1F3FB}),
                                           Utf8({0xFE0F}),
                                           Utf8({0xAC00}),
                                           Utf8({0x3164}),
                                           Utf8({0x915})};
  for (int round = 0; round < 60000; ++round) {
    std::string text;
    for (uint64_t n = prng.Below(14) + 1; n > 0; --n) text += pieces[prng.Below(pieces.size())];
    ASSERT_TRUE(Agrees(text));
  }
}

TEST_P(FastPath, EqualsIcuOnLongTexts) {
  const uint64_t seed = 78;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Prng prng(seed);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    while (text.size() < 1000) {
      const uint32_t kinds[] = {0x61, 0x61, 0x61, 0xE0, 0x430};
      const uint32_t kind = kinds[prng.Below(5)];
      if (prng.OneIn(60)) AppendUtf8(static_cast<uint32_t>(0x80 + prng.Below(0xD700)), &text);
      AppendUtf8(kind + static_cast<uint32_t>(prng.Below(26)), &text);
      if (prng.OneIn(5)) text += ' ';
      if (prng.OneIn(300)) text.append(260, 'x');
    }
    ASSERT_TRUE(Agrees(text));
  }
}

INSTANTIATE_TEST_SUITE_P(Marks, FastPath, testing::Values(Marks::kKeep, Marks::kRemove),
                         [](const auto& test) { return test.param == Marks::kKeep ? "Keep" : "Remove"; });

TEST(SimpleCharacters, WhatIsSimple) {
  const SimpleCharacters& table = SimpleCharacters::Of(Marks::kKeep);
  const auto simple = [&table](uint32_t c) {
    const std::string s = Utf8({c});
    return table.RunEnd(s, 0) == s.size();
  };
  // Letters of five scripts, quotes, dashes.
  for (const uint32_t c : {0x61, 0x20, 0xE9, 0xDF, 0x3B1, 0x430, 0x561, 0x627, 0x1EC7, 0x201C, 0x2019, 0x2014, 0xA0})
    EXPECT_TRUE(simple(c)) << std::hex << c;
  // Marks, joiners, Hebrew, Arabic digits, Thai, kana, ideographs, emoji, line separator.
  for (const uint32_t c :
       {0x301, 0x200D, 0xAD, 0x5D0, 0x660, 0xE01, 0x3042, 0x30AB, 0x732B, 0x1F600, 0x2028, 0x85, 0x37A})
    EXPECT_FALSE(simple(c)) << std::hex << c;
  EXPECT_EQ(table.RunEnd(Utf8({'a', 0xE9, 0x301, 'b'}), 0), 3u);
}

TEST(SimpleCharacters, FoldedText) {
  const SimpleCharacters& table = SimpleCharacters::Of(Marks::kRemove);
  std::string out = "before ";
  table.AppendFolded(Utf8({'L', 0x2019, 0xC9, 't', 0xE9, 0x2019, ' ', 0x201C, 0xDF, 0x201D}), &out);
  EXPECT_EQ(out,
            Utf8({'b', 'e', 'f', 'o', 'r', 'e', ' ', 'l', 0x2019, 'e', 't', 'e', '\n', ' ', '\n', 's', 's', '\n'}));
}

}  // namespace
}  // namespace ashlar::text
