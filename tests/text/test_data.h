// Files of tests/text/data.
#ifndef ASHLAR_TESTS_TEXT_TEST_DATA_H_
#define ASHLAR_TESTS_TEXT_TEST_DATA_H_

#include <unicode/utf8.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::text {

// The content of a file, unpacked if it is gzip. Empty if it is not there.
inline std::string ReadTestData(const std::string& name) {
  std::string content;
  gzFile file = gzopen((std::string(ASHLAR_TEXT_TEST_DATA "/") + name).c_str(), "rb");
  if (file == nullptr) return content;
  char buffer[1 << 16];
  for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) content.append(buffer, static_cast<size_t>(n));
  gzclose(file);
  return content;
}

inline std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

inline void AppendUtf8(uint32_t code_point, std::string* out) {
  char bytes[4];
  int32_t length = 0;
  UBool error = false;
  U8_APPEND(bytes, length, 4, static_cast<UChar32>(code_point), error);
  if (!error) out->append(bytes, static_cast<size_t>(length));
}

inline std::string Utf8(std::initializer_list<uint32_t> code_points) {
  std::string out;
  for (const uint32_t c : code_points) AppendUtf8(c, &out);
  return out;
}

}  // namespace ashlar::text

#endif  // ASHLAR_TESTS_TEXT_TEST_DATA_H_
