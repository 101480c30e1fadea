// Stemmer: a Snowball algorithm with a bounded memory of what it has stemmed.
#ifndef ASHLAR_SRC_TEXT_STEMMER_H_
#define ASHLAR_SRC_TEXT_STEMMER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sb_stemmer;

namespace ashlar::text {

// Not thread safe. About 256 KiB.
class Stemmer {
 public:
  // InvalidArgument unless `algorithm` is in StemmerNames() and not "none".
  static absl::StatusOr<std::unique_ptr<Stemmer>> Create(const std::string& algorithm);
  ~Stemmer();
  Stemmer(const Stemmer&) = delete;
  Stemmer& operator=(const Stemmer&) = delete;

  // The stem of a folded word, valid until the next call. A word whose stem is empty is its own stem.
  absl::StatusOr<std::string_view> Stem(std::string_view word);

 private:
  // Stemming costs some 150 ns a word and text repeats its words, so the last word of each slot is kept.
  static constexpr size_t kSlots = 4096;
  static constexpr size_t kWordBytesMax = 30;
  struct Slot {
    uint8_t word_bytes = 0;  // 0: empty
    uint8_t stem_bytes = 0;
    std::array<char, kWordBytesMax> word;
    std::array<char, kWordBytesMax + 2> stem;
  };
  static_assert(sizeof(Slot) == 64);

  explicit Stemmer(sb_stemmer* stemmer) : stemmer_(stemmer), slots_(kSlots) {}
  absl::StatusOr<std::string_view> Compute(std::string_view word);

  sb_stemmer* stemmer_;
  std::vector<Slot> slots_;
};

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_STEMMER_H_
