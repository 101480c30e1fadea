#include "src/text/stemmer.h"

#include <libstemmer.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/status.h"
#include "src/text/analyzer.h"

namespace ashlar::text {
namespace {

// Eight bytes of a word of any length, without a byte beyond it: different words of at most eight bytes differ.
uint64_t FirstAndLastBytes(const char* p, size_t n, bool last) {
  if (n >= 8) {
    uint64_t bytes;
    std::memcpy(&bytes, last ? p + n - 8 : p, 8);
    return bytes;
  }
  if (n >= 4) {
    uint32_t head;
    uint32_t tail;
    std::memcpy(&head, p, 4);
    std::memcpy(&tail, p + n - 4, 4);
    return uint64_t{tail} << 32 | head;
  }
  return static_cast<uint64_t>(static_cast<unsigned char>(p[0])) |
         static_cast<uint64_t>(static_cast<unsigned char>(p[n / 2])) << 8 |
         static_cast<uint64_t>(static_cast<unsigned char>(p[n - 1])) << 16;
}

// Mixes the ends and the length; words that differ only between meet, which costs time and not correctness.
size_t PairOf(std::string_view word, size_t pairs) {
  const uint64_t first = FirstAndLastBytes(word.data(), word.size(), false);
  const uint64_t last = FirstAndLastBytes(word.data(), word.size(), true);
  uint64_t h = (first ^ (last << 29 | last >> 35) ^ word.size()) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93ull;
  return (h >> 40) % pairs;
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

bool Stemmer::Compute(std::string_view word, std::string_view* stem) {
  *stem = word;
  const sb_symbol* symbols =
      sb_stemmer_stem(stemmer_, reinterpret_cast<const sb_symbol*>(word.data()), static_cast<int>(word.size()));
  if (symbols == nullptr) return false;
  const int length = sb_stemmer_length(stemmer_);
  if (length > 0) *stem = {reinterpret_cast<const char*>(symbols), static_cast<size_t>(length)};
  return true;
}

bool Stemmer::Stem(std::string_view word, std::string_view* stem) {
  if (word.empty() || word.size() > kWordBytesMax) return Compute(word, stem);
  Slot* const pair = &slots_[2 * PairOf(word, kPairs)];
  if (!pair[0].Holds(word)) {
    // The one used last moves to the front; a new word drops the other.
    std::swap(pair[0], pair[1]);
    if (!pair[0].Holds(word)) {
      if (!Compute(word, stem)) return false;
      if (stem->size() > pair[0].stem.size()) return true;
      pair[0].word_bytes = static_cast<uint8_t>(word.size());
      pair[0].stem_bytes = static_cast<uint8_t>(stem->size());
      std::memcpy(pair[0].word.data(), word.data(), word.size());
      std::memcpy(pair[0].stem.data(), stem->data(), stem->size());
    }
  }
  *stem = {pair[0].stem.data(), pair[0].stem_bytes};
  return true;
}

}  // namespace ashlar::text
