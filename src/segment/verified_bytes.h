// VerifiedBytes: the bytes of one section, which may be looked at once Ensure() has vouched for them.
#ifndef ASHLAR_SRC_SEGMENT_VERIFIED_BYTES_H_
#define ASHLAR_SRC_SEGMENT_VERIFIED_BYTES_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "format/layout.h"
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
    if (all_verified_ || IsInVerifiedPage(offset, length)) [[likely]] return absl::OkStatus();
    return Verify(offset, length);
  }

  // The error for bytes that break a rule of the format.
  virtual absl::Status Damage(uint64_t offset, std::string_view message) const = 0;

 protected:
  // `all_verified`: everything was checked when it was loaded, so Verify() is never called.
  VerifiedBytes(const std::byte* data, uint64_t size, bool all_verified)
      : data_(data), size_(size), all_verified_(all_verified) {}
  // Only for ranges inside the section.
  virtual absl::Status Verify(uint64_t offset, uint64_t length) const = 0;

  // Where Verify() remembers pages: a bit for each of the file in which the section begins at `section_offset`.
  void SetVerifiedPages(const std::atomic<uint64_t>* pages, uint64_t section_offset) {
    pages_ = pages;
    section_offset_ = section_offset;
  }

 private:
  // Most ranges lie in one page that was looked at before.
  bool IsInVerifiedPage(uint64_t offset, uint64_t length) const {
    if (pages_ == nullptr || length == 0) return false;
    const uint64_t page = (section_offset_ + offset) / format::kPageBytes;
    if (page != (section_offset_ + offset + length - 1) / format::kPageBytes) return false;
    return (pages_[page / 64].load(std::memory_order_acquire) >> (page % 64) & 1) != 0;
  }

  const std::byte* data_;
  uint64_t size_;
  bool all_verified_;
  const std::atomic<uint64_t>* pages_ = nullptr;
  uint64_t section_offset_ = 0;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_VERIFIED_BYTES_H_
