// SectionReader: lets the readers of format/ look into a section whose bytes are verified as they are touched.
#ifndef ASHLAR_SRC_SEGMENT_SECTION_READER_H_
#define ASHLAR_SRC_SEGMENT_SECTION_READER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "src/segment/verified_bytes.h"

namespace ashlar::segment {

// What: the `Bytes` of format/packed_numbers.h over one section, for the time of one call.
// Owns: nothing. Threads: one each.
// Errors: Read() gives null and Failure() says why.
class SectionReader {
 public:
  explicit SectionReader(const VerifiedBytes* bytes) : bytes_(bytes) {}

  const std::byte* Read(uint64_t offset, uint64_t length) const {
    absl::Status status = bytes_->Ensure(offset, length);
    if (!status.ok()) [[unlikely]] {
      failure_ = std::move(status);
      return nullptr;
    }
    return bytes_->data() + offset;
  }
  uint64_t size() const { return bytes_->size(); }

  // After a reader of format/ gave up: why the bytes could not be had, or, if they could, that they break the format.
  absl::Status Failure(std::string_view message, uint64_t offset = 0) const {
    return failure_.ok() ? bytes_->Damage(offset, message) : failure_;
  }

 private:
  const VerifiedBytes* bytes_;
  mutable absl::Status failure_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SECTION_READER_H_
