// Simple characters: those beside ASCII whose part in UAX #29 and whose folding do not depend on their neighbours, so
// that text made of them and ASCII (most of what Latin, Greek, Cyrillic and Arabic scripts write) needs no ICU.
#ifndef ASHLAR_SRC_TEXT_LETTERS_H_
#define ASHLAR_SRC_TEXT_LETTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ashlar/schema.h"

namespace ashlar::text {

// A table made from ICU's properties, so it follows the Unicode version of the library that is linked. A character is
//   a letter    if it is an ALetter, needs no dictionary, and folds to such letters whatever stands before it;
//   a separator if its word break property is Other;
//   a mid       if it is a MidNumLet or MidLetter (U+2019, U+00B7) and folds to itself.
// Marks, joiners, Hebrew, digits of other scripts, kana and ideographs are not simple.
class SimpleCharacters {
 public:
  // The table for one rule of marks: made at the first use, kept by the process, immutable. Without ICU's data nothing
  // is simple.
  static const SimpleCharacters& Of(Marks marks);

  // The end of the run of simple characters from `from` on. Valid UTF-8, `from` at a character. Linear in the run.
  size_t RunEnd(std::string_view utf8, size_t from) const;

  // Appends the folded form of a run. In it, words are what ForEachWord finds: separators, and mids that join nothing
  // there, have become line feeds; a mid that joins is left as it is. Spaces stay spaces and none are added.
  void AppendFolded(std::string_view run, std::string* out) const;

 private:
  enum Class : uint8_t { kNone, kLetter, kSeparator, kMidBoth, kMidLetter };
  struct Entry {
    std::array<char, 6> folded;  // of a letter or a mid; one byte of no word for a separator
    uint8_t folded_bytes;
    Class kind;
  };
  static_assert(sizeof(Entry) == 8);
  // All characters of two bytes, and the blocks from Latin Extended Additional to Miscellaneous Technical.
  static constexpr uint32_t kFirst = 0x80;
  static constexpr uint32_t kFirstEnd = 0x800;
  static constexpr uint32_t kSecond = 0x1E00;
  static constexpr uint32_t kSecondEnd = 0x2300;
  static const Entry kNotSimple;

  static SimpleCharacters Make(Marks marks);
  static Entry MakeEntry(uint32_t c, Marks marks);
  const Entry& At(std::string_view utf8, size_t at, size_t* bytes) const;
  bool JoinsAt(std::string_view run, size_t at, size_t bytes, Class mid) const;
  Class ClassBefore(std::string_view run, size_t at, bool* digit) const;

  std::array<Entry, (kFirstEnd - kFirst) + (kSecondEnd - kSecond)> entries_{};
};

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_LETTERS_H_
