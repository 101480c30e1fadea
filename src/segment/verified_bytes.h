// VerifiedBytes: the bytes of one section, which may be looked at once Ensure() has vouched for them.
#ifndef ASHLAR_SRC_SEGMENT_VERIFIED_BYTES_H_
#define ASHLAR_SRC_SEGMENT_VERIFIED_BYTES_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "src/base/bytes.h"

namespace ashlar::segment {

// What: one section, mapped or loaded; offsets count from its start.
// Owns: nothing of the bytes themselves; valid while its Segment lives.
// Threads: immutable but for what Verify() remembers; any number of threads.
// Errors: DataLoss that names file, section and offset.
class VerifiedBytes {
 public:
  virtual ~VerifiedBytes() = default;

  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

  // After OK, [offset, offset + length) is inside the section, is there, and has the checksum that the file says.
  absl::Status Ensure(uint64_t offset, uint64_t length) const {
    if (length > size_ || offset > size_ - length) [[unlikely]] {
      return Damage(offset, "reaches beyond the end of its section");
    }
    return all_verified_ ? absl::OkStatus() : Verify(offset, length);
  }

  // The error for bytes that break a rule of the format.
  virtual absl::Status Damage(uint64_t offset, std::string_view message) const = 0;

 protected:
  // `all_verified`: everything was checked when it was loaded, so Verify() is never called.
  VerifiedBytes(const std::byte* data, uint64_t size, bool all_verified)
      : data_(data), size_(size), all_verified_(all_verified) {}
  // Only for ranges inside the section.
  virtual absl::Status Verify(uint64_t offset, uint64_t length) const = 0;

 private:
  const std::byte* data_;
  uint64_t size_;
  bool all_verified_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_VERIFIED_BYTES_H_
