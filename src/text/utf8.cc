#include <unicode/utf8.h>

#include <algorithm>
#include <cstring>

#include "src/text/analyzer.h"
#include "src/text/utf8.h"

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

AsciiStretch NextAsciiStretch(std::string_view utf8, size_t from) {
  const size_t n = utf8.size();
  size_t run = from;
  while (run < n && static_cast<unsigned char>(utf8[run]) >= 0x80) ++run;
  const size_t run_end = run + AsciiPrefix(utf8.substr(run));
  AsciiStretch stretch{run, run_end, run_end};
  if (run > 0) {
    // To the first character that follows a space and is none itself.
    while (stretch.begin < run_end && utf8[stretch.begin] != ' ') ++stretch.begin;
    while (stretch.begin < run_end && utf8[stretch.begin] == ' ') ++stretch.begin;
  }
  if (run_end < n) {
    // Back to the end of the last character that is followed by a space and is none itself.
    while (stretch.end > stretch.begin && utf8[stretch.end - 1] != ' ') --stretch.end;
    while (stretch.end > stretch.begin && utf8[stretch.end - 1] == ' ') --stretch.end;
  }
  if (stretch.end <= stretch.begin) stretch.begin = stretch.end = run_end;
  return stretch;
}

size_t CutToCharacter(std::string_view utf8, size_t limit) {
  if (utf8.size() <= limit) return utf8.size();
  while (limit > 0 && (static_cast<unsigned char>(utf8[limit]) & 0xC0) == 0x80) --limit;
  return limit;
}

}  // namespace ashlar::text
