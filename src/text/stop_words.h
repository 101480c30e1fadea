// Lucene's 33 English stop words.
#ifndef ASHLAR_SRC_TEXT_STOP_WORDS_H_
#define ASHLAR_SRC_TEXT_STOP_WORDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ashlar::text {

inline constexpr std::array<std::string_view, 33> kEnglishStopWords = {
    "a",    "an",  "and",  "are",  "as",    "at",    "be",   "but",  "by",    "for", "if",   "in",
    "into", "is",  "it",   "no",   "not",   "of",    "on",   "or",   "such",  "that", "the", "their",
    "then", "there", "these", "they", "this", "to", "was", "will", "with"};

namespace internal {

inline constexpr size_t kStopWordBytesMax = 5;

// A short word as a number: its bytes, first byte lowest. Different words of at most 8 bytes without NUL differ.
constexpr uint64_t PackWord(std::string_view word) {
  uint64_t packed = 0;
  for (size_t i = 0; i < word.size(); ++i)
    packed |= static_cast<uint64_t>(static_cast<unsigned char>(word[i])) << (8 * i);
  return packed;
}

constexpr std::array<uint64_t, kEnglishStopWords.size()> SortedStopWords() {
  std::array<uint64_t, kEnglishStopWords.size()> packed{};
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = PackWord(kEnglishStopWords[i]);
  std::sort(packed.begin(), packed.end());
  return packed;
}
inline constexpr auto kPackedStopWords = SortedStopWords();

}  // namespace internal

// `word` is folded.
inline bool IsEnglishStopWord(std::string_view word) {
  if (word.size() > internal::kStopWordBytesMax) return false;
  return std::binary_search(internal::kPackedStopWords.begin(), internal::kPackedStopWords.end(),
                            internal::PackWord(word));
}

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_STOP_WORDS_H_
