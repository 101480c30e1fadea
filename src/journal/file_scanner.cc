#include "src/journal/file_scanner.h"

#include <algorithm>

#include "src/base/status.h"

namespace ashlar::journal {
namespace {

constexpr uint64_t kWindowBytesMin = uint64_t{256} << 10;
constexpr uint64_t kHeaderGuessBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<FileScanner>> FileScanner::Open(env::FileSystem& files, const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::ReadableFile> file, files.OpenForRead(path));
  std::unique_ptr<FileScanner> scanner(new FileScanner(path, std::move(file)));
  ASHLAR_ASSIGN_OR_RETURN(scanner->size_, scanner->file_->Size());
  ASHLAR_RETURN_IF_ERROR(scanner->ReadHeader());
  return scanner;
}

absl::Status FileScanner::ReadHeader() {
  ASHLAR_ASSIGN_OR_RETURN(ByteSpan start, Window(0, kHeaderGuessBytes));
  const size_t claimed = format::PeekJournalHeaderBytes(start);
  if (claimed > start.size()) {
    ASHLAR_ASSIGN_OR_RETURN(start, Window(0, claimed));
  }
  ASHLAR_ASSIGN_OR_RETURN(header_, format::DecodeJournalHeader(start, path_));
  first_offset_ = claimed;
  header_bytes_.assign(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(claimed));
  return absl::OkStatus();
}

absl::StatusOr<ByteSpan> FileScanner::Window(uint64_t offset, uint64_t n) {
  n = std::min(n, offset < size_ ? size_ - offset : 0);
  const bool inside = offset >= window_offset_ && offset - window_offset_ <= window_.size() &&
                      n <= window_.size() - (offset - window_offset_);
  if (!inside) {
    window_.resize(std::min(std::max(n, kWindowBytesMin), size_ - offset));
    window_offset_ = offset;
    ASHLAR_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset, window_));
    window_.resize(got);  // fewer: the file became shorter since it was opened
  }
  return ByteSpan(window_).subspan(offset - window_offset_);
}

absl::StatusOr<std::optional<ScannedRecord>> FileScanner::RecordAt(uint64_t offset, uint64_t end) {
  end = std::min(end, size_);
  if (offset > end || end - offset < format::kRecordHeaderBytes) return std::optional<ScannedRecord>();
  const format::RecordPlace place{header_.salt, header_.number, offset};
  ASHLAR_ASSIGN_OR_RETURN(ByteSpan bytes, Window(offset, format::kRecordHeaderBytes));
  const std::optional<format::RecordHeader> header = format::DecodeRecordHeader(bytes, place);
  if (!header.has_value()) return std::optional<ScannedRecord>();
  const uint64_t record_bytes = format::RecordBytes(header->payload_bytes);
  if (record_bytes > end - offset) return std::optional<ScannedRecord>();
  ASHLAR_ASSIGN_OR_RETURN(bytes, Window(offset, record_bytes));
  if (bytes.size() < record_bytes) return std::optional<ScannedRecord>();
  if (!format::RecordPayloadIsValid(*header, bytes.first(record_bytes), place)) return std::optional<ScannedRecord>();
  return std::optional<ScannedRecord>(
      ScannedRecord{*header, bytes.subspan(format::kRecordHeaderBytes, header->payload_bytes), record_bytes});
}

absl::StatusOr<TailEvidence> FileScanner::Tail(uint64_t offset) {
  TailEvidence evidence;
  evidence.last_used_end = offset;
  while (offset < size_) {
    ASHLAR_ASSIGN_OR_RETURN(const ByteSpan bytes, Window(offset, format::kRecordHeaderBytes));
    if (bytes.empty()) break;
    // Every position of this window at which a whole header fits, then on with the next window.
    const size_t last = bytes.size() < format::kRecordHeaderBytes ? 0 : bytes.size() - format::kRecordHeaderBytes;
    size_t at = 0;
    for (; at <= last; at += format::kRecordAlignment) {
      const ByteSpan here = bytes.subspan(at);
      // In a recycled file old content says nothing; in a fresh one every byte that is not zero was written.
      if (!header_.recycled) {
        const size_t n = std::min(here.size(), format::kRecordAlignment);
        for (size_t i = n; i > 0; --i) {
          if (here[i - 1] == std::byte{0}) continue;
          evidence.last_used_end = std::max(evidence.last_used_end, offset + at + i);
          break;
        }
      }
      const format::RecordPlace place{header_.salt, header_.number, offset + at};
      const std::optional<format::RecordHeader> header = format::DecodeRecordHeader(here, place);
      if (!header.has_value()) continue;
      evidence.durable_to = std::max(evidence.durable_to, header->record.durable_to);
      const uint64_t end = std::min(size_, place.offset + format::RecordBytes(header->payload_bytes));
      evidence.last_used_end = std::max(evidence.last_used_end, end);
    }
    offset += at;
  }
  return evidence;
}

bool FileScanner::StillSame() {
  ByteBuffer now(header_bytes_.size());
  const absl::StatusOr<size_t> got = file_->ReadAt(0, now);
  return got.ok() && *got == now.size() && now == header_bytes_;
}

}  // namespace ashlar::journal
