// ByteSink: where a writer streams one section's bytes to.
#ifndef ASHLAR_SRC_SEGMENT_BYTE_SINK_H_
#define ASHLAR_SRC_SEGMENT_BYTE_SINK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "src/base/bytes.h"

namespace ashlar::segment {

// What: an append-only run of bytes, the body of one section.
// Threads: one writer.
// Errors: of the file below it; the first one is final.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual absl::Status Append(ByteSpan bytes) = 0;
  // Bytes appended so far: the offset, from the section's start, of what comes next.
  virtual uint64_t offset() const = 0;
};

// A sink in memory.
class MemorySink final : public ByteSink {
 public:
  absl::Status Append(ByteSpan bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }
  uint64_t offset() const override { return bytes_.size(); }
  ByteBuffer& bytes() { return bytes_; }

 private:
  ByteBuffer bytes_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_BYTE_SINK_H_
