// LineReader: the lines of a plain or gzip file, or of standard input, one at a time in bounded memory.
#ifndef ASHLAR_TOOLS_LINE_READER_H_
#define ASHLAR_TOOLS_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::tools {

// A longer line is refused: no batch could hold its document (Options::batch_bytes_max).
inline constexpr size_t kLineBytesMax = size_t{64} << 20;
// Bytes behind every line that may be read, though not used; simdjson wants them.
inline constexpr size_t kLinePadding = 64;

// What: lines without their '\n'; the last one need not end in one. Of a pipe, a line is given as soon as it is there.
// A file
//   that begins with gzip's magic bytes is gzip; lines before damage in it are given before the error, and zero bytes
//   behind it are passed over.
// Owns: the open file and a buffer of 1 MiB that grows up to the longest line.
// Threads: one.
// Errors: name the file; NotFound, PermissionDenied, DataLoss (a broken gzip file), Internal (reading failed).
class LineReader {
 public:
  // "-" is standard input.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // False at the end. The line is valid until the next call and is followed by kLinePadding readable bytes.
  // ResourceExhausted: the line is longer than kLineBytesMax; it is passed over, and the next call gives the next line.
  absl::StatusOr<bool> Next(std::string_view* line);

  uint64_t line_number() const { return line_number_; }  // of the last line given, from 1
  const std::string& name() const { return name_; }      // for messages
  uint64_t bytes_read() const { return bytes_read_; }    // of the file as it lies on disk
  uint64_t bytes_total() const { return bytes_total_; }  // 0: not known

 private:
  class Inflater;
  LineReader(std::FILE* file, std::string name, uint64_t bytes_total);
  absl::Status Fill();
  absl::Status FillUnpacked(char* out, size_t room);
  absl::StatusOr<size_t> ReadFile(char* out, size_t room);
  absl::StatusOr<bool> PassOver();

  std::FILE* file_;
  std::string name_;
  uint64_t bytes_total_;
  uint64_t bytes_read_ = 0;
  uint64_t line_number_ = 0;
  std::unique_ptr<Inflater> inflater_;  // of a gzip file
  std::vector<char> buffer_;
  size_t begin_ = 0;  // what is read and not given out yet: [begin_, end_)
  size_t end_ = 0;
  bool at_end_ = false;
  absl::Status damage_;  // behind what the buffer holds
};

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_LINE_READER_H_
