// UTF-8 helpers beside IsValidUtf8 and FirstInvalidUtf8 (analyzer.h).
#ifndef ASHLAR_SRC_TEXT_UTF8_H_
#define ASHLAR_SRC_TEXT_UTF8_H_

#include <cstddef>
#include <string_view>

namespace ashlar::text {

// The number of bytes before the first one over 0x7F.
size_t AsciiPrefix(std::string_view bytes);

// A stretch of ASCII that can be analysed on its own.
struct AsciiStretch {
  size_t begin = 0;  // begin == end: none here
  size_t end = 0;
  size_t next_search = 0;  // where to look for the next one; the size of the text if there is nothing more
};

// Looks at the first run of ASCII from `from` on. Its stretch begins at the start of the text or between a space and an
// ASCII character that is none, and ends at the end of the text or between such a character and a space.
AsciiStretch NextAsciiStretch(std::string_view utf8, size_t from);

// The largest length up to `limit` at which valid UTF-8 can be cut between two code points.
size_t CutToCharacter(std::string_view utf8, size_t limit);

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_UTF8_H_
