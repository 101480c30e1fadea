// Numbered file names: a prefix, 16 lower-case hex digits, a suffix.
#ifndef ASHLAR_SRC_BASE_FILE_NUMBER_H_
#define ASHLAR_SRC_BASE_FILE_NUMBER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ashlar {

inline std::string NumberedName(std::string_view prefix, uint64_t number, std::string_view suffix) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name(prefix);
  for (int shift = 60; shift >= 0; shift -= 4) name += kDigits[(number >> shift) & 15];
  name += suffix;
  return name;
}

// nullopt: not such a name.
inline std::optional<uint64_t> NumberInName(std::string_view prefix, std::string_view name, std::string_view suffix) {
  if (name.size() != prefix.size() + 16 + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
    return std::nullopt;
  uint64_t number = 0;
  for (const char c : name.substr(prefix.size(), 16)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    number = number << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return number;
}

}  // namespace ashlar

#endif  // ASHLAR_SRC_BASE_FILE_NUMBER_H_
