// SegmentFileWriter: writes a segment file from front to back: sections, page checksums, section table, footer.
// Call order: Create (BeginSection Append* EndSection)* Finish
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_FILE_WRITER_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/page_checksums.h"
#include "format/section_table.h"
#include "src/env/env.h"
#include "src/segment/byte_sink.h"

namespace ashlar::segment {

// What: the file below a SegmentBuilder.
// Owns: the open file and a buffer of 1 MiB. Unfinished, its destructor removes the file.
// Threads: one.
// Errors: the file's; the first one is final.
class SegmentFileWriter final : public ByteSink {
 public:
  static absl::StatusOr<std::unique_ptr<SegmentFileWriter>> Create(env::Env env, const std::string& directory,
                                                                   const std::string& path,
                                                                   const format::StoreId& store_id);
  ~SegmentFileWriter() override;

  absl::Status BeginSection(format::SectionKind kind, uint32_t id, uint16_t flags = 0);
  // To the open section.
  absl::Status Append(ByteSpan bytes) override;
  // Of the open section.
  uint64_t offset() const override { return written_ - section_start_; }
  void EndSection();
  // A section that is there as a whole.
  absl::Status WriteSection(format::SectionKind kind, uint32_t id, ByteSpan bytes, uint16_t flags = 0);

  // Writes the tail, syncs the file and then the directory. Returns the file's size.
  absl::StatusOr<uint64_t> Finish(uint64_t generation);

  const format::FileId& file_id() const { return file_id_; }
  uint64_t bytes_written() const { return written_; }

 private:
  SegmentFileWriter(env::Env env, std::string directory, std::string path, const format::FileId& file_id)
      : env_(env), directory_(std::move(directory)), path_(std::move(path)), file_id_(file_id), sums_(file_id) {}
  absl::Status Write(ByteSpan bytes);
  absl::Status Pad();
  absl::Status Flush();
  absl::Status WriteTail(uint64_t generation);

  env::Env env_;
  std::string directory_;
  std::string path_;
  format::FileId file_id_;
  std::unique_ptr<env::WritableFile> file_;
  format::PageChecksummer sums_;
  bool summing_ = true;   // until the end of the sections
  ByteBuffer buffer_;     // not written yet
  uint64_t written_ = 0;  // the buffer included
  uint64_t section_start_ = 0;
  std::vector<format::SectionEntry> sections_;
  absl::Status status_;
  bool finished_ = false;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_FILE_WRITER_H_
