// DocumentSource: the lines of several JSON Lines files as one stream, with their places, of which the first can be
// looked at before they are taken.
#ifndef ASHLAR_TOOLS_DOCUMENT_SOURCE_H_
#define ASHLAR_TOOLS_DOCUMENT_SOURCE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/schema.h"
#include "tools/line_reader.h"

namespace ashlar::tools {

// A line that is not blank. If `status` is an error (the line is too long), there is no text, and the stream goes on
// behind it.
struct SourceLine {
  std::string_view text;  // followed by kLinePadding readable bytes; valid until the next call
  std::string file;
  uint64_t number = 0;  // from 1
  absl::Status status;

  // "file:7:" and a message that begins with its column.
  absl::Status Error(const absl::Status& error) const;
};

// Threads: one. Errors: those of LineReader, which end the stream.
class DocumentSource {
 public:
  // "-" is standard input. Files are opened when their turn comes, but they must all be there now.
  static absl::StatusOr<std::unique_ptr<DocumentSource>> Open(std::vector<std::string> paths);

  // False at the end of the last file.
  absl::StatusOr<bool> Next(SourceLine* line);

  // A schema from the first kInferenceLines lines (fewer if they are larger than kLineBytesMax together), which Next
  // gives all the same. `key` empty: see SchemaInference. `skip_bad_lines`: lines that are no documents say nothing;
  // otherwise the first one is the error.
  absl::StatusOr<Schema> InferSchema(const std::string& key, const AnalyzerOptions& analyzer, bool skip_bad_lines);

  // Of the files as they lie on disk. The total is 0 if one of them is standard input or a pipe.
  uint64_t bytes_read() const;
  uint64_t bytes_total() const { return bytes_total_; }

 private:
  struct Kept {
    std::string text;  // kLinePadding bytes longer than the line
    SourceLine line;
  };

  DocumentSource(std::vector<std::string> paths, uint64_t bytes_total)
      : paths_(std::move(paths)), bytes_total_(bytes_total) {}
  absl::StatusOr<bool> Read(SourceLine* line);

  std::vector<std::string> paths_;
  size_t next_path_ = 0;
  std::unique_ptr<LineReader> reader_;
  uint64_t bytes_done_ = 0;  // of the files before the one that is open
  uint64_t bytes_total_;
  std::deque<Kept> kept_;  // read for inference, not given out yet
  std::string current_;    // the text of the kept line given out last
};

}  // namespace ashlar::tools

#endif  // ASHLAR_TOOLS_DOCUMENT_SOURCE_H_
