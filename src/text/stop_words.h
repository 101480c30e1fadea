// Lucene's 33 English stop words.
#ifndef ASHLAR_SRC_TEXT_STOP_WORDS_H_
#define ASHLAR_SRC_TEXT_STOP_WORDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ashlar::text {

inline constexpr std::array<std::string_view, 33> kEnglishStopWords = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};

namespace internal {

inline constexpr size_t kStopWordBytesMax = 5;

constexpr uint64_t Byte(std::string_view word, size_t i) {
  return static_cast<uint64_t>(static_cast<unsigned char>(word[i])) << (8 * i);
}

// A word of 1 to 5 bytes as a number; different words differ. The first, middle and last bytes are all bytes up to a
// length of three; without a loop there is no branch to mispredict.
constexpr uint64_t PackWord(std::string_view word) {
  const size_t n = word.size();
  uint64_t packed = Byte(word, 0) | Byte(word, n / 2) | Byte(word, n - 1);
  if (n > 3) packed |= Byte(word, 1) | Byte(word, n - 2);
  return packed;
}

inline constexpr int kSlotBits = 8;

constexpr size_t SlotOfWord(uint64_t packed, uint64_t factor) {
  return static_cast<size_t>((packed * factor) >> (64 - kSlotBits));
}

struct StopWordTable {
  uint64_t factor = 0;
  std::array<uint64_t, size_t{1} << kSlotBits> slots{};  // packed words; 0: none
};

// Looks for a factor that gives each word a slot of its own.
constexpr StopWordTable MakeStopWordTable() {
  for (uint64_t factor = 0x9E3779B97F4A7C15ull;; factor = factor * 6364136223846793005ull + 1442695040888963407ull) {
    StopWordTable table;
    table.factor = factor;
    bool collision = false;
    for (const std::string_view word : kEnglishStopWords) {
      uint64_t& slot = table.slots[SlotOfWord(PackWord(word), factor)];
      collision |= slot != 0;
      slot = PackWord(word);
    }
    if (!collision) return table;
  }
}
inline constexpr StopWordTable kStopWordTable = MakeStopWordTable();

}  // namespace internal

// `word` is folded and not empty.
inline bool IsEnglishStopWord(std::string_view word) {
  if (word.size() > internal::kStopWordBytesMax) return false;
  const uint64_t packed = internal::PackWord(word);
  return internal::kStopWordTable.slots[internal::SlotOfWord(packed, internal::kStopWordTable.factor)] == packed;
}

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_STOP_WORDS_H_
