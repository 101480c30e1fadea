// NFKC case folding, its ASCII form, and the removal of marks.
#include "src/text/folder.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/text/test_data.h"

namespace ashlar::text {
namespace {

std::string Fold(Marks marks, const std::string& word) {
  Folder folder(marks);
  std::string out;
  const absl::Status status = folder.Fold(word, &out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}
std::string Fold(const std::string& word) { return Fold(Marks::kKeep, word); }

TEST(Folder, AsciiIsLowerCase) {
  // No ASCII character combines with another, so single characters and pairs cover the whole.
  Folder folder(Marks::kKeep);
  Folder remover(Marks::kRemove);
  std::string folded;
  for (int a = 0; a < 128; ++a) {
    for (int b = 0; b < 128; ++b) {
      const std::string word = {static_cast<char>(a), static_cast<char>(b)};
      std::string ascii = word;
      FoldAscii(ascii.data(), ascii.size());
      ASSERT_TRUE(folder.Fold(word, &folded).ok());
      ASSERT_EQ(folded, ascii);
      ASSERT_TRUE(remover.Fold(word, &folded).ok());
      ASSERT_EQ(folded, ascii);
    }
  }
}

TEST(Folder, NfkcCaseFolding) {
  const struct {
    std::string word, folded;
  } cases[] = {
      {Utf8({'S', 't', 'r', 'a', 0xDF, 'e'}), "strasse"},
      {Utf8({0x1E9E}), "ss"},                        // capital sharp s
      {Utf8({0x130}), Utf8({'i', 0x307})},           // capital I with dot
      {Utf8({0x131}), Utf8({0x131})},                // dotless i stays
      {Utf8({0x3A3, 0x3C2}), Utf8({0x3C3, 0x3C3})},  // final sigma
      {Utf8({0xFB01}), "fi"},                        // ligature
      {Utf8({0xFF21, 0xFF11}), "a1"},                // full width
      {Utf8({'e', 0x301}), Utf8({0xE9})},            // composed
      {Utf8({0xC9}), Utf8({0xE9})},
      {Utf8({0x2460}), "1"},                         // circled one
      {Utf8({0xBD}), Utf8({'1', 0x2044, '2'})},      // one half
      {Utf8({0x3B1, 0x345}), Utf8({0x3B1, 0x3B9})},  // iota subscript
      {Utf8({'a', 0xAD, 'b'}), "ab"},                // soft hyphen vanishes
      {Utf8({'a', 0x200D, 'b'}), "ab"},              // joiner vanishes
      {Utf8({'x', 0xFE0F}), "x"},                    // variation selector vanishes
      {Utf8({0x3164}), ""},                          // Hangul filler folds to nothing
      {Utf8({0x10400}), Utf8({0x10428})},            // Deseret, beyond the BMP
      {Utf8({0x1100, 0x1161}), Utf8({0xAC00})},      // Hangul composes
      {Utf8({0xFF76, 0xFF9E}), Utf8({0x30AC})},      // half-width katakana with its mark
      {Utf8({0x13A0}), Utf8({0x13A0})},              // Cherokee folds to capitals
      {Utf8({0xAB70}), Utf8({0x13A0})},
      {Utf8({0x37A}), Utf8({' ', 0x3B9})},  // a folded form with a space
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Fold(c.word), c.folded) << testing::PrintToString(c.word);
    EXPECT_EQ(Fold(c.folded), c.folded) << "folding twice changes nothing: " << testing::PrintToString(c.word);
  }
}

TEST(Folder, MarksRemoved) {
  const struct {
    std::string word, folded;
  } cases[] = {
      {Utf8({0xC9, 't', 0xE9}), "ete"},
      {Utf8({'e', 0x301, 0x323}), "e"},
      {Utf8({0xE5}), "a"},
      {Utf8({0xF8}), Utf8({0xF8})},  // o with stroke has no mark
      {Utf8({0x1EC7}), "e"},         // two marks
      {Utf8({0x130}), "i"},
      {Utf8({0x439}), Utf8({0x438})},         // short i
      {Utf8({0x5D0, 0x5B7}), Utf8({0x5D0})},  // Hebrew points
      {Utf8({0xAC01}), Utf8({0xAC01})},       // Hangul is whole again
      {Utf8({0x304C}), Utf8({0x304B})},       // kana lose their voicing mark: it is a mark to Unicode
      {"plain", "plain"},
  };
  for (const auto& c : cases) EXPECT_EQ(Fold(Marks::kRemove, c.word), c.folded) << testing::PrintToString(c.word);
}

}  // namespace
}  // namespace ashlar::text
