// FileScanner: one journal file, read from front to back through a window that grows to the record at hand. The journal's
// reading side; knows the format of a file and nothing of the chain of files.
#ifndef ASHLAR_SRC_JOURNAL_FILE_SCANNER_H_
#define ASHLAR_SRC_JOURNAL_FILE_SCANNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/journal_record.h"
#include "src/base/bytes.h"
#include "src/env/env.h"

namespace ashlar::journal {

// A record and its payload, valid until the next call.
struct ScannedRecord {
  format::RecordHeader header;
  ByteSpan payload;
  uint64_t bytes = 0;  // that the record takes in the file
};

// What lies behind a place where no valid record begins.
struct TailEvidence {
  uint64_t durable_to = 0;       // the most that a later self-consistent record of this file says was synced
  uint64_t last_used_end = 0;    // just past the last self-consistent record, or past the last byte that is not zero
};

// Owns the open file. One thread at a time. Errors: those of reading, and what DecodeJournalHeader says.
class FileScanner {
 public:
  static absl::StatusOr<std::unique_ptr<FileScanner>> Open(env::FileSystem& files, const std::string& path);

  const std::string& path() const { return path_; }
  const format::JournalHeader& header() const { return header_; }
  uint64_t first_offset() const { return first_offset_; }
  uint64_t size() const { return size_; }

  // The record at `offset` that ends at or before `end`, its payload verified; nullopt if there is none.
  absl::StatusOr<std::optional<ScannedRecord>> RecordAt(uint64_t offset, uint64_t end);
  // Looks through everything from `offset`. O(file), so only for the place where replay stops.
  absl::StatusOr<TailEvidence> Tail(uint64_t offset);
  // Whether the header on disk is still the one that was read: false once the file has been recycled.
  bool StillSame();

 private:
  FileScanner(std::string path, std::unique_ptr<env::ReadableFile> file) : path_(std::move(path)), file_(std::move(file)) {}
  absl::Status ReadHeader();
  // At least min(n, bytes left) bytes at `offset`.
  absl::StatusOr<ByteSpan> Window(uint64_t offset, uint64_t n);

  const std::string path_;
  const std::unique_ptr<env::ReadableFile> file_;
  format::JournalHeader header_;
  ByteBuffer header_bytes_;
  uint64_t first_offset_ = 0;
  uint64_t size_ = 0;
  ByteBuffer window_;
  uint64_t window_offset_ = 0;
};

}  // namespace ashlar::journal

#endif  // ASHLAR_SRC_JOURNAL_FILE_SCANNER_H_
