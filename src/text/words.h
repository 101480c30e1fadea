// Words: where they begin and end in a value. UAX #29 word boundaries; a segment counts as a word if ICU's rule status
// says letters, numbers, kana or ideographs.
//
// Three choices of ours inside UAX #29, the same in both ways of finding words:
//   - ':' always separates, as in CLDR's root rules ("title:word" is two words);
//   - '@' always separates, unlike CLDR 42, where it is a letter: "@name" must be found by "name";
//   - a segment of connectors alone ("____") is no word.
#ifndef ASHLAR_SRC_TEXT_WORDS_H_
#define ASHLAR_SRC_TEXT_WORDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace ashlar::text {

// A half-open range of bytes of the value.
struct WordRange {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const WordRange&) const = default;
};

namespace internal {

// What UAX #29 says of an ASCII character. A character between two letters joins them iff it has kMidLetter; between
// two digits iff it has kMidDigit. The mid bits are the core bits shifted by kMidShift.
enum AsciiClass : uint8_t { kLetter = 1, kDigit = 2, kConnector = 4, kMidLetter = 16, kMidDigit = 32 };
inline constexpr int kMidShift = 4;
inline constexpr uint8_t kCore = kLetter | kDigit | kConnector;

constexpr std::array<uint8_t, 256> MakeAsciiClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit;
  classes['_'] = kConnector;
  classes['\''] = classes['.'] = kMidLetter | kMidDigit;
  classes[','] = classes[';'] = kMidDigit;
  return classes;
}
inline constexpr std::array<uint8_t, 256> kAsciiClasses = MakeAsciiClasses();

}  // namespace internal

// Calls emit(begin, end) for each word of an ASCII text, in order. Exactly the words of IcuWords (tests/text/words_test.cc
// compares them on all short strings). Linear; no allocation.
template <class Emit>
inline void ForEachAsciiWord(std::string_view text, Emit&& emit) {
  using namespace internal;
  const auto* const p = reinterpret_cast<const uint8_t*>(text.data());
  const size_t n = text.size();
  size_t i = 0;
  while (i < n) {
    const uint8_t first = kAsciiClasses[p[i]];
    if ((first & kCore) == 0) {
      ++i;
      continue;
    }
    const size_t begin = i;
    uint8_t last = first;
    uint8_t seen = 0;
    for (;;) {
      seen |= last;
      if (++i == n) break;
      const uint8_t next = kAsciiClasses[p[i]];
      if ((next & kCore) != 0) {
        last = next;
        continue;
      }
      // WB6, WB7, WB11, WB12: a mid character joins its two neighbours if both are letters, or both digits.
      if (next == 0 || i + 1 == n) break;
      const uint8_t after = kAsciiClasses[p[i + 1]];
      if (((next >> kMidShift) & last & after) == 0) break;
      last = after;
      ++i;
    }
    if ((seen & (kLetter | kDigit)) != 0) emit(begin, i);
  }
}

// Finds words of any text by ICU. Not thread safe. The iterator is made at the first use.
class IcuWords {
 public:
  IcuWords();
  ~IcuWords();
  IcuWords(const IcuWords&) = delete;
  IcuWords& operator=(const IcuWords&) = delete;

  // Replaces `words` by the words of `utf8` (valid UTF-8, at most kValueBytesMax). Linear in its length. Internal if ICU
  // can't work (its data is missing).
  absl::Status Find(std::string_view utf8, std::vector<WordRange>* words);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ICU counts in 32 bits.
inline constexpr size_t kValueBytesMax = size_t{1} << 30;

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_WORDS_H_
