#include "tools/line_reader.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace ashlar::tools {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kPackedBytes = size_t{256} << 10;
constexpr char kGzipMagic[] = {'\x1f', '\x8b'};

}  // namespace

// A gzip stream of one or more members.
class LineReader::Inflater {
 public:
  Inflater() : packed_(kPackedBytes) {
    std::memset(&stream_, 0, sizeof stream_);
    ok_ = inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK;
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool hungry() const { return stream_.avail_in == 0; }
  // Packed bytes go here when it is hungry.
  char* packed() { return packed_.data(); }
  void Feed(size_t count) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(count);
  }
  // Unpacks what it has into `out`. Null, or what is wrong with the stream behind the *count bytes.
  const char* Unpack(char* out, size_t room, size_t* count) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(room);
    const char* error = nullptr;
    while (error == nullptr && stream_.avail_in > 0 && stream_.avail_out > 0) error = Step();
    *count = room - stream_.avail_out;
    return error;
  }
  // A stream may end only here.
  bool between_members() const { return between_members_; }

 private:
  const char* Step() {
    if (!ok_) return "zlib has no memory";
    if (between_members_) {
      PassOverZeros();
      if (stream_.avail_in == 0) return nullptr;
      if (has_zeros_) return "something follows the zero bytes behind the stream";
      ok_ = inflateReset(&stream_) == Z_OK;
      between_members_ = false;
    }
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) between_members_ = true;
    if (result == Z_STREAM_END || result == Z_OK || result == Z_BUF_ERROR) return nullptr;
    return stream_.msg != nullptr ? stream_.msg : "the stream is broken";
  }
  // Tapes and disks fill their last block with them, and gzip passes over them too.
  void PassOverZeros() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      has_zeros_ = true;
    }
  }

  z_stream stream_;
  std::vector<char> packed_;
  bool ok_ = false;
  bool between_members_ = false;
  bool has_zeros_ = false;  // behind the last member
};

LineReader::LineReader(std::FILE* file, std::string name, uint64_t bytes_total)
    : file_(file), name_(std::move(name)), bytes_total_(bytes_total), buffer_(kBufferBytes + kLinePadding) {}

LineReader::~LineReader() {
  if (file_ != stdin) std::fclose(file_);
}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  if (path == "-") return std::unique_ptr<LineReader>(new LineReader(stdin, "<stdin>", 0));
  // A directory opens and fails only when it is read.
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return InvalidArgument(absl::StrCat(path, ": is a directory"));
  const uintmax_t size = std::filesystem::file_size(path, error);
  const uint64_t bytes_total = error ? 0 : size;
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return ErrnoError(errno, "open", path);
  return std::unique_ptr<LineReader>(new LineReader(file, path, bytes_total));
}

// What is there, without waiting for more: stdio would wait until its buffer is full.
absl::StatusOr<size_t> LineReader::ReadFile(char* out, size_t room) {
  while (true) {
    const ssize_t count = read(fileno(file_), out, room);
    if (count >= 0) {
      bytes_read_ += static_cast<uint64_t>(count);
      return static_cast<size_t>(count);
    }
    if (errno != EINTR) return ErrnoError(errno, "read", name_);
  }
}

// Reads more behind end_, making room first.
absl::Status LineReader::Fill() {
  if (!damage_.ok()) return damage_;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - kLinePadding - end_ < kBufferBytes / 2) buffer_.resize(2 * buffer_.size());
  char* out = buffer_.data() + end_;
  const size_t room = buffer_.size() - kLinePadding - end_;
  if (inflater_ != nullptr) return FillUnpacked(out, room);
  const bool first = bytes_read_ == 0;
  ASHLAR_ASSIGN_OR_RETURN(const size_t count, ReadFile(out, first ? std::min(room, kPackedBytes) : room));
  if (first && count >= sizeof kGzipMagic && std::memcmp(out, kGzipMagic, sizeof kGzipMagic) == 0) {
    inflater_ = std::make_unique<Inflater>();
    std::memcpy(inflater_->packed(), out, count);
    inflater_->Feed(count);
    return FillUnpacked(out, room);
  }
  end_ += count;
  at_end_ = count == 0;
  return absl::OkStatus();
}

absl::Status LineReader::FillUnpacked(char* out, size_t room) {
  size_t count = 0;
  while (count == 0) {
    if (inflater_->hungry()) {
      ASHLAR_ASSIGN_OR_RETURN(const size_t packed, ReadFile(inflater_->packed(), kPackedBytes));
      if (packed == 0) {
        if (!inflater_->between_members())
          return DataLoss(name_, "gzip stream", bytes_read_, "the file ends too early");
        at_end_ = true;
        return absl::OkStatus();
      }
      inflater_->Feed(packed);
    }
    const char* error = inflater_->Unpack(out, room, &count);
    if (error == nullptr) continue;
    // What was unpacked before the damage is given out first.
    damage_ = DataLoss(name_, "gzip stream", bytes_read_, error);
    if (count == 0) return damage_;
  }
  end_ += count;
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
