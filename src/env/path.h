// Paths of the file systems that we keep in memory: parts between '/', empty parts and "." ignored,
// ".." one up; no current directory, so a leading '/' means nothing.
#ifndef ASHLAR_SRC_ENV_PATH_H_
#define ASHLAR_SRC_ENV_PATH_H_

#include <string>
#include <string_view>
#include <vector>

namespace ashlar::env {

inline std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return parts;
}

// The one spelling of a path; empty for the root.
inline std::string CanonicalPath(std::string_view path) {
  std::string canonical;
  for (const std::string& part : SplitPath(path)) {
    if (!canonical.empty()) canonical += '/';
    canonical += part;
  }
  return canonical;
}

// Of a canonical path; the root is its own parent.
inline std::string ParentPath(const std::string& canonical) {
  const size_t slash = canonical.rfind('/');
  return slash == std::string::npos ? std::string() : canonical.substr(0, slash);
}

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_PATH_H_
