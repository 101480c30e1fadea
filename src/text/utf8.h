// UTF-8 helpers beside IsValidUtf8 and FirstInvalidUtf8 (analyzer.h).
#ifndef ASHLAR_SRC_TEXT_UTF8_H_
#define ASHLAR_SRC_TEXT_UTF8_H_

#include <cstddef>
#include <string_view>

namespace ashlar::text {

// The number of bytes before the first one over 0x7F.
size_t AsciiPrefix(std::string_view bytes);

// The start of the next character after the one at `at` (valid UTF-8), or the size.
inline size_t NextCharacter(std::string_view utf8, size_t at) {
  if (at < utf8.size()) ++at;
  while (at < utf8.size() && (static_cast<unsigned char>(utf8[at]) & 0xC0) == 0x80) ++at;
  return at;
}

// The largest length up to `limit` at which valid UTF-8 can be cut between two code points.
size_t CutToCharacter(std::string_view utf8, size_t limit);

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_UTF8_H_
