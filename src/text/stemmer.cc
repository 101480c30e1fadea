#include "src/text/stemmer.h"

#include <libstemmer.h>

#include <algorithm>
#include <cstring>

#include "src/base/status.h"
#include "src/text/analyzer.h"

namespace ashlar::text {
namespace {

// Mixes the first and last eight bytes and the length; words that differ only between meet in a slot, which costs time
// and not correctness.
size_t SlotOf(std::string_view word, size_t slots) {
  uint64_t first = 0;
  uint64_t last = 0;
  const size_t n = std::min<size_t>(word.size(), 8);
  std::memcpy(&first, word.data(), n);
  std::memcpy(&last, word.data() + word.size() - n, n);
  uint64_t h = (first ^ (last << 29 | last >> 35) ^ word.size()) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93ull;
  return (h >> 40) % slots;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stemmer>> Stemmer::Create(const std::string& algorithm) {
  const std::vector<std::string> names = StemmerNames();
  if (std::find(names.begin() + 1, names.end(), algorithm) == names.end())
    return InvalidArgument("unknown stemmer \"" + algorithm + "\"");
  sb_stemmer* stemmer = sb_stemmer_new(algorithm.c_str(), "UTF_8");
  if (stemmer == nullptr) return ResourceExhausted("no memory for the stemmer \"" + algorithm + "\"");
  return std::unique_ptr<Stemmer>(new Stemmer(stemmer));
}

Stemmer::~Stemmer() { sb_stemmer_delete(stemmer_); }

absl::StatusOr<std::string_view> Stemmer::Compute(std::string_view word) {
  const sb_symbol* stem = sb_stemmer_stem(stemmer_, reinterpret_cast<const sb_symbol*>(word.data()),
                                          static_cast<int>(word.size()));
  if (stem == nullptr) return ResourceExhausted("no memory to stem a word");
  const int length = sb_stemmer_length(stemmer_);
  if (length <= 0) return word;
  return std::string_view(reinterpret_cast<const char*>(stem), static_cast<size_t>(length));
}

absl::StatusOr<std::string_view> Stemmer::Stem(std::string_view word) {
  if (word.empty() || word.size() > kWordBytesMax) return Compute(word);
  Slot& slot = slots_[SlotOf(word, kSlots)];
  if (slot.word_bytes == word.size() && std::memcmp(slot.word.data(), word.data(), word.size()) == 0)
    return std::string_view(slot.stem.data(), slot.stem_bytes);
  absl::StatusOr<std::string_view> stem = Compute(word);
  if (!stem.ok() || stem->size() > slot.stem.size()) return stem;
  slot.word_bytes = static_cast<uint8_t>(word.size());
  slot.stem_bytes = static_cast<uint8_t>(stem->size());
  std::memcpy(slot.word.data(), word.data(), word.size());
  std::memcpy(slot.stem.data(), stem->data(), stem->size());
  return stem;
}

}  // namespace ashlar::text
