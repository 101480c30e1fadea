#include "tools/line_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace ashlar::tools {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int kStandardInput = 0;

}  // namespace

LineReader::LineReader(gzFile file, std::string name, uint64_t bytes_total)
    : file_(file), name_(std::move(name)), bytes_total_(bytes_total), buffer_(kBufferBytes + kLinePadding) {}

LineReader::~LineReader() { gzclose_r(file_); }

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  gzFile file = nullptr;
  uint64_t bytes_total = 0;
  errno = 0;
  if (path == "-") {
    file = gzdopen(kStandardInput, "rb");
  } else {
    // zlib opens a directory and fails only when it reads.
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return InvalidArgument(absl::StrCat(path, ": is a directory"));
    const uintmax_t size = std::filesystem::file_size(path, error);
    bytes_total = error ? 0 : size;
    file = gzopen(path.c_str(), "rb");
  }
  if (file == nullptr) return ErrnoError(errno != 0 ? errno : ENOMEM, "open", path);
  gzbuffer(file, 256 << 10);
  return std::unique_ptr<LineReader>(new LineReader(file, path == "-" ? "<stdin>" : path, bytes_total));
}

uint64_t LineReader::bytes_read() const {
  const z_off_t offset = gzoffset(file_);
  return offset > 0 ? static_cast<uint64_t>(offset) : 0;
}

// Reads more behind end_, making room first.
absl::Status LineReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - kLinePadding - end_ < kBufferBytes / 2) buffer_.resize(2 * buffer_.size());
  const auto room = static_cast<unsigned>(buffer_.size() - kLinePadding - end_);
  const int count = gzread(file_, buffer_.data() + end_, room);
  int error = Z_OK;
  const char* message = gzerror(file_, &error);
  // A gzip file that ends too early gives its bytes first and Z_BUF_ERROR beside them.
  if (count < 0 || error == Z_BUF_ERROR) {
    if (error == Z_ERRNO) return ErrnoError(errno, "read", name_);
    // zlib puts the path before its message.
    std::string_view what = message;
    if (what.substr(0, name_.size() + 2) == name_ + ": ") what.remove_prefix(name_.size() + 2);
    return DataLoss(name_, "gzip stream", bytes_read(), what);
  }
  end_ += static_cast<size_t>(count);
  at_end_ = count == 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> LineReader::PassOver() {
  while (true) {
    const auto* newline = static_cast<const char*>(std::memchr(buffer_.data() + begin_, '\n', end_ - begin_));
    if (newline != nullptr) {
      begin_ = static_cast<size_t>(newline - buffer_.data()) + 1;
      break;
    }
    begin_ = end_;
    if (at_end_) break;
    ASHLAR_RETURN_IF_ERROR(Fill());
  }
  return ResourceExhausted(
      absl::StrCat(name_, ":", line_number_, ":1: the line is longer than the limit of ", kLineBytesMax, " bytes"));
}

absl::StatusOr<bool> LineReader::Next(std::string_view* line) {
  size_t searched = 0;  // bytes after begin_ that hold no '\n'
  while (true) {
    const char* start = buffer_.data() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(start + searched, '\n', end_ - begin_ - searched));
    if (newline != nullptr || (at_end_ && begin_ < end_)) {
      const size_t length = newline != nullptr ? static_cast<size_t>(newline - start) : end_ - begin_;
      ++line_number_;
      if (length > kLineBytesMax) return PassOver();
      *line = std::string_view(start, length);
      begin_ += length + (newline != nullptr ? 1 : 0);
      return true;
    }
    if (at_end_) return false;
    searched = end_ - begin_;
    if (searched > kLineBytesMax) {
      ++line_number_;
      return PassOver();
    }
    ASHLAR_RETURN_IF_ERROR(Fill());
  }
}

}  // namespace ashlar::tools
