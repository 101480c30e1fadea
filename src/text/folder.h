// Folder: one word to its folded form, NFKC case folding (Unicode's NFKC_Casefold), then marks removed by option.
#ifndef ASHLAR_SRC_TEXT_FOLDER_H_
#define ASHLAR_SRC_TEXT_FOLDER_H_

#include <unicode/normalizer2.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ashlar/schema.h"

namespace ashlar::text {

// Lower case in place; on ASCII that is NFKC case folding (tests/text/folder_test.cc).
inline void FoldAscii(char* p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const auto c = static_cast<unsigned char>(p[i]);
    const bool upper = static_cast<unsigned char>(c - 'A') < 26;
    p[i] = static_cast<char>(c | (upper ? 0x20 : 0));
  }
}

// Not thread safe. The folded form may be empty (a word of ignorable characters, such as U+3164) and may hold spaces
// (the folded form of U+037A does): words are not segmented again after folding.
class Folder {
 public:
  explicit Folder(Marks marks) : marks_(marks) {}

  // Replaces `out` by the folded form of a word of valid UTF-8.
  absl::Status Fold(std::string_view word, std::string* out);

 private:
  absl::Status Load();
  absl::Status RemoveMarks(std::string* word);

  const Marks marks_;
  // Owned by ICU, immutable.
  const icu::Normalizer2* fold_ = nullptr;
  const icu::Normalizer2* decompose_ = nullptr;
  const icu::Normalizer2* compose_ = nullptr;
  std::string decomposed_;
};

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_FOLDER_H_
