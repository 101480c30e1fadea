// Words: where they begin and end in a value. UAX #29 word boundaries; a segment counts as a word if ICU's rule status
// says letters, numbers, kana or ideographs.
//
// Three choices of ours inside UAX #29, the same here and on the fast path (ascii_words.h):
//   - ':' always separates, as in CLDR's root rules ("title:word" is two words);
//   - '@' always separates, unlike CLDR 42, where it is a letter: "@name" must be found by "name";
//   - a segment of connectors alone ("____") is no word.
#ifndef ASHLAR_SRC_TEXT_WORDS_H_
#define ASHLAR_SRC_TEXT_WORDS_H_

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

// Finds words of any text by ICU. Not thread safe. The iterator is made at the first use.
class IcuWords {
 public:
  IcuWords();
  ~IcuWords();
  IcuWords(const IcuWords&) = delete;
  IcuWords& operator=(const IcuWords&) = delete;

  // Replaces `words` by the words of `utf8` (valid UTF-8, at most kValueBytesMax). Linear in its length. Internal if
  // ICU can't work (its data is missing).
  absl::Status Find(std::string_view utf8, std::vector<WordRange>* words);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ICU counts in 32 bits.
inline constexpr size_t kValueBytesMax = size_t{1} << 30;

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_WORDS_H_
