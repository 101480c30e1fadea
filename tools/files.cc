#include "tools/files.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace ashlar::tools {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 30;

struct Closer {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return InvalidArgument(absl::StrCat(path, ": is a directory"));
  errno = 0;
  const std::unique_ptr<std::FILE, Closer> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return ErrnoError(errno, "open", path);
  std::string text;
  char buffer[1 << 16];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    if (text.size() + count > kFileBytesMax) {
      return ResourceExhausted(absl::StrCat(path, ": is larger than the limit of ", kFileBytesMax, " bytes"));
    }
    text.append(buffer, count);
  }
  if (std::ferror(file.get()) != 0) return ErrnoError(errno, "read", path);
  return text;
}

absl::Status WriteTextFile(const std::string& path, std::string_view text) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return ErrnoError(errno, "open", path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0 || !written) return ErrnoError(written ? errno : error, "write", path);
  return absl::OkStatus();
}

}  // namespace ashlar::tools
