#include "src/segment/segment_file_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/frame.h"
#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::segment {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;  // a multiple of a page, so that pages are hashed where they lie
constexpr std::array<std::byte, format::kSectionAlignment> kZeros{};

void AppendNumbers(const std::vector<uint64_t>& numbers, ByteBuffer* out) {
  ByteWriter w(out);
  for (const uint64_t n : numbers) w.U64(n);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SegmentFileWriter>> SegmentFileWriter::Create(env::Env env,
                                                                             const std::string& directory,
                                                                             const std::string& path,
                                                                             const format::StoreId& store_id) {
  format::FileHeader header;
  header.kind = format::FileKind::kSegment;
  header.store_id = store_id;
  env.entropy->Fill(header.file_id);
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::WritableFile> file, env.files->CreateFile(path));
  std::unique_ptr<SegmentFileWriter> w(new SegmentFileWriter(env, directory, path, header.file_id));
  w->file_ = std::move(file);
  w->buffer_.reserve(kBufferBytes);
  std::array<std::byte, format::kFileHeaderBytes> bytes{};
  format::EncodeFileHeader(header, bytes);
  ASHLAR_RETURN_IF_ERROR(w->Write(bytes));
  return w;
}

SegmentFileWriter::~SegmentFileWriter() {
  if (finished_) return;
  // Nobody names the file, so what can't be removed now is an orphan for the next opening.
  (void)file_->Close();
  (void)env_.files->Remove(path_);
}

absl::Status SegmentFileWriter::Flush() {
  if (!status_.ok() || buffer_.empty()) return status_;
  if (summing_) sums_.Append(buffer_);
  status_ = file_->Append(buffer_);
  buffer_.clear();
  return status_;
}

absl::Status SegmentFileWriter::Write(ByteSpan bytes) {
  if (!status_.ok()) return status_;
  written_ += bytes.size();
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    if (buffer_.size() == kBufferBytes) ASHLAR_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status SegmentFileWriter::Pad() {
  return Write(ByteSpan(kZeros).first(format::AlignSection(written_) - written_));
}

absl::Status SegmentFileWriter::BeginSection(format::SectionKind kind, uint32_t id, uint16_t flags) {
  ASHLAR_RETURN_IF_ERROR(Pad());
  section_start_ = written_;
  sections_.push_back({kind, flags, id, written_, 0});
  return absl::OkStatus();
}

absl::Status SegmentFileWriter::Append(ByteSpan bytes) { return Write(bytes); }

void SegmentFileWriter::EndSection() { sections_.back().length = written_ - section_start_; }

absl::Status SegmentFileWriter::WriteSection(format::SectionKind kind, uint32_t id, ByteSpan bytes, uint16_t flags) {
  ASHLAR_RETURN_IF_ERROR(BeginSection(kind, id, flags));
  ASHLAR_RETURN_IF_ERROR(Append(bytes));
  EndSection();
  return absl::OkStatus();
}

absl::Status SegmentFileWriter::WriteTail(uint64_t generation) {
  ASHLAR_RETURN_IF_ERROR(Pad());
  ASHLAR_RETURN_IF_ERROR(Flush());
  summing_ = false;
  sums_.Finish();
  format::SegmentFooter footer;
  footer.data_end = written_;
  footer.generation = generation;
  footer.file_id = file_id_;
  ByteBuffer bytes;
  AppendNumbers(sums_.sums(), &bytes);
  const std::vector<uint64_t> roots = format::ChecksumRoots(file_id_, written_, bytes);
  ASHLAR_RETURN_IF_ERROR(Write(bytes));
  ASHLAR_RETURN_IF_ERROR(Pad());

  bytes.clear();
  AppendNumbers(roots, &bytes);
  footer.root_offset = written_;
  footer.root_count = static_cast<uint32_t>(roots.size());
  footer.root_checksum = Checksum(bytes, PlaceSeed(file_id_, written_));
  ASHLAR_RETURN_IF_ERROR(Write(bytes));
  ASHLAR_RETURN_IF_ERROR(Pad());

  bytes.clear();
  format::EncodeSectionTable(sections_, &bytes);
  footer.table_offset = written_;
  footer.table_count = static_cast<uint32_t>(sections_.size());
  footer.table_checksum = Checksum(bytes, PlaceSeed(file_id_, written_));
  ASHLAR_RETURN_IF_ERROR(Write(bytes));

  footer.file_bytes = written_ + format::kSegmentFooterBytes;
  std::array<std::byte, format::kSegmentFooterBytes> end{};
  format::EncodeSegmentFooter(footer, end);
  ASHLAR_RETURN_IF_ERROR(Write(end));
  return Flush();
}

absl::StatusOr<uint64_t> SegmentFileWriter::Finish(uint64_t generation) {
  ASHLAR_CHECK(!finished_);
  ASHLAR_RETURN_IF_ERROR(WriteTail(generation));
  if (SiteIsOn(Site::kSegmentSync)) ASHLAR_RETURN_IF_ERROR(file_->Sync());
  ASHLAR_RETURN_IF_ERROR(file_->Close());
  if (SiteIsOn(Site::kSegmentDirectorySync)) ASHLAR_RETURN_IF_ERROR(env_.files->SyncDirectory(directory_));
  finished_ = true;
  return written_;
}

}  // namespace ashlar::segment
