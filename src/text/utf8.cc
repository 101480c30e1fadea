#include "src/text/utf8.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstring>

#include "src/text/analyzer.h"

namespace ashlar::text {

size_t AsciiPrefix(std::string_view bytes) {
  const char* const p = bytes.data();
  const size_t n = bytes.size();
  size_t i = 0;
  // 64 bytes a turn, so that the compiler makes vectors of it.
  for (; i + 64 <= n; i += 64) {
    uint64_t high = 0;
    for (size_t j = 0; j < 64; j += 8) {
      uint64_t word;
      std::memcpy(&word, p + i + j, 8);
      high |= word;
    }
    if ((high & 0x8080808080808080ull) != 0) break;
  }
  while (i < n && static_cast<unsigned char>(p[i]) < 0x80) ++i;
  return i;
}

size_t FirstInvalidUtf8(std::string_view bytes) {
  const auto* const s = reinterpret_cast<const uint8_t*>(bytes.data());
  const size_t n = bytes.size();
  size_t i = AsciiPrefix(bytes);
  while (i < n) {
    const size_t begin = i;
    UChar32 c = 0;
    U8_NEXT(s, i, n, c);
    if (c < 0) return begin;
    if (c < 0x80 && n - i >= 64) i += AsciiPrefix(bytes.substr(i));
  }
  return n;
}

bool IsValidUtf8(std::string_view bytes) { return FirstInvalidUtf8(bytes) == bytes.size(); }

size_t CutToCharacter(std::string_view utf8, size_t limit) {
  if (utf8.size() <= limit) return utf8.size();
  while (limit > 0 && (static_cast<unsigned char>(utf8[limit]) & 0xC0) == 0x80) --limit;
  return limit;
}

}  // namespace ashlar::text
