// Positions as bytes (SPEC P-11, P-12): for each posting, for each member, the first position and then the steps to the next
// ones. Blocks hold them as packed streams of 128, short lists as varints.
#ifndef ASHLAR_FORMAT_POSITION_BLOCK_H_
#define ASHLAR_FORMAT_POSITION_BLOCK_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "format/packed_stream.h"
#include "src/base/bytes.h"

namespace ashlar::format {

// Appends the positions of one posting as steps: each member's count (of `frequencies`) from 0 anew. False if a member's
// positions descend or the counts do not add up.
bool AppendSteps(std::span<const uint32_t> frequencies, std::span<const uint32_t> positions,
                 std::vector<uint32_t>* steps);

// The inverse, in place, of one posting's steps. False if a position passes 2^32 - 1.
bool SumSteps(std::span<const uint32_t> frequencies, std::span<uint32_t> steps);

// Appends a block's steps as streams of 128, the last one shorter.
void AppendPositionBlock(std::span<const uint32_t> steps, ByteBuffer* out);

// Reads a block's steps; only the streams that are asked for are decoded, the ones before are stepped over.
class PositionBlockReader {
 public:
  PositionBlockReader() = default;
  // `count` steps lie in [in, end); kPackedSlack bytes beyond must be readable.
  PositionBlockReader(const std::byte* in, const std::byte* end, uint64_t count)
      : begin_(in), end_(end), count_(count), next_(in) {}
  // Appends steps [from, from + n). False for bytes that break P-11. Cheap when `from` does not fall.
  bool Read(uint64_t from, uint64_t n, std::vector<uint32_t>* out);
  // Whether the last step ends the bytes.
  bool EndsHere();

 private:
  bool Load(uint64_t stream);
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
  uint64_t count_ = 0;
  const std::byte* next_ = nullptr;  // the stream after the decoded or skipped ones
  uint64_t next_stream_ = 0;
  uint64_t decoded_ = UINT64_MAX;    // stream in values_
  std::array<uint32_t, kStreamValuesMax + kUnpackSlack> values_;
};

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_POSITION_BLOCK_H_
