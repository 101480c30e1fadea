// The words of ASCII text, 64 bytes at a time: a bit for each byte that belongs to a word, and words are runs of bits.
// What a word is stands in words.h; tests/text/words_test.cc proves that these are IcuWords' words.
#ifndef ASHLAR_SRC_TEXT_ASCII_WORDS_H_
#define ASHLAR_SRC_TEXT_ASCII_WORDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ashlar::text {
namespace internal {

inline constexpr size_t kMaskBytes = 64;

// Of 64 bytes, one bit each, the first byte lowest. Bytes over 0x7F count as letters (see letters.h).
struct ClassMasks {
  uint64_t letter = 0;
  uint64_t digit = 0;
  uint64_t connector = 0;  // '_'
  uint64_t mid_both = 0;   // "'" and ".": join two letters or two digits
  uint64_t mid_digit = 0;  // "," and ";": join two digits
  bool operator==(const ClassMasks&) const = default;
};

inline ClassMasks ClassifyPortable(const char* p) {
  ClassMasks masks;
  for (size_t i = 0; i < kMaskBytes; ++i) {
    const auto c = static_cast<unsigned char>(p[i]);
    const uint64_t bit = uint64_t{1} << i;
    if (c >= 0x80 || static_cast<unsigned char>((c | 0x20) - 'a') < 26) masks.letter |= bit;
    if (static_cast<unsigned char>(c - '0') < 10) masks.digit |= bit;
    if (c == '_') masks.connector |= bit;
    if (c == '\'' || c == '.') masks.mid_both |= bit;
    if (c == ',' || c == ';') masks.mid_digit |= bit;
  }
  return masks;
}

#if defined(__SSE2__)

// One bit for each of 16 bytes whose value is in [low, low + count).
inline uint64_t InRange(__m128i bytes, char low, int count) {
  // Shifts the range to the bottom of the signed values, where one comparison decides.
  const __m128i shifted = _mm_sub_epi8(bytes, _mm_set1_epi8(static_cast<char>(low + 128)));
  const __m128i inside = _mm_cmplt_epi8(shifted, _mm_set1_epi8(static_cast<char>(count - 128)));
  return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(inside)));
}

inline uint64_t EqualTo(__m128i bytes, char c) {
  return static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)))));
}

inline ClassMasks Classify(const char* p) {
  ClassMasks masks;
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
    const int shift = 16 * i;
    const auto high = static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(bytes)));
    masks.letter |= (high | InRange(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 26)) << shift;
    masks.digit |= InRange(bytes, '0', 10) << shift;
    masks.connector |= EqualTo(bytes, '_') << shift;
    masks.mid_both |= (EqualTo(bytes, '\'') | EqualTo(bytes, '.')) << shift;
    masks.mid_digit |= (EqualTo(bytes, ',') | EqualTo(bytes, ';')) << shift;
  }
  return masks;
}

#else

inline ClassMasks Classify(const char* p) { return ClassifyPortable(p); }

#endif

// The masks of the block at `offset`, zero beyond the end of the text.
inline ClassMasks ClassifyAt(std::string_view text, size_t offset) {
  if (offset + kMaskBytes <= text.size()) return Classify(text.data() + offset);
  if (offset >= text.size()) return {};
  char padded[kMaskBytes] = {};
  std::memcpy(padded, text.data() + offset, text.size() - offset);
  return Classify(padded);
}

inline bool IsConnectorsOnly(std::string_view word) { return word.find_first_not_of('_') == std::string_view::npos; }

}  // namespace internal

// Calls emit(begin, end) for each word of a text, in order. Bytes over 0x7F are taken for letters: what is not ASCII
// must have been made sure of by the caller. Linear; no allocation.
template <class Emit>
inline void ForEachWord(std::string_view text, Emit&& emit) {
  using namespace internal;
  ClassMasks now = ClassifyAt(text, 0);
  uint64_t letter_before = 0;  // the last bits of the block before
  uint64_t digit_before = 0;
  uint64_t word_before = 0;
  size_t begin = 0;
  for (size_t offset = 0; offset < text.size(); offset += kMaskBytes) {
    const ClassMasks next = ClassifyAt(text, offset + kMaskBytes);
    // WB6, WB7, WB11, WB12: a mid character joins its two neighbours if both are letters, or both digits.
    const uint64_t between_letters = (now.letter << 1 | letter_before) & (now.letter >> 1 | next.letter << 63);
    const uint64_t between_digits = (now.digit << 1 | digit_before) & (now.digit >> 1 | next.digit << 63);
    const uint64_t joined = (now.mid_both & (between_letters | between_digits)) | (now.mid_digit & between_digits);
    // WB5, WB8 to WB10, WB13a, WB13b: letters, digits and connectors never break.
    const uint64_t word = now.letter | now.digit | now.connector | joined;
    // Where words begin and end, in turn.
    uint64_t edges = word ^ (word << 1 | word_before);
    bool inside = word_before != 0;
    while (edges != 0) {
      const size_t at = offset + static_cast<size_t>(std::countr_zero(edges));
      edges &= edges - 1;
      if (inside) {
        if (text[begin] != '_' || !IsConnectorsOnly(text.substr(begin, at - begin))) emit(begin, at);
      } else {
        begin = at;
      }
      inside = !inside;
    }
    letter_before = now.letter >> 63;
    digit_before = now.digit >> 63;
    word_before = word >> 63;
    now = next;
  }
  // A text whose last byte ends both a block and a word.
  if (word_before != 0 && (text[begin] != '_' || !IsConnectorsOnly(text.substr(begin)))) emit(begin, text.size());
}

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_ASCII_WORDS_H_
