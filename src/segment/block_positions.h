// BlockPositions: the positions of a block's postings (SPEC P-11), decoded as they are asked for and each stream once.
#ifndef ASHLAR_SRC_SEGMENT_BLOCK_POSITIONS_H_
#define ASHLAR_SRC_SEGMENT_BLOCK_POSITIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/packed_stream.h"
#include "format/posting_block.h"

namespace ashlar::segment {

class BlockPositions {
 public:
  // The steps lie in [in, end), as many as the n totals say, which must stay; format::kPackedSlack bytes beyond must be
  // readable.
  void Open(const std::byte* in, const std::byte* end, const uint32_t* totals, uint32_t n);
  // Appends the positions of one field of a posting: the sums of n of its steps, after `skip` of them. False for bytes
  // that break P-11 and positions beyond 32 bits; what was appended then does not count. Cheap if postings do not fall.
  bool Append(uint32_t posting, uint64_t skip, uint32_t n, std::vector<uint32_t>* out);
  // A posting's steps as they are stored: the first position and then the gaps, field after field. Empty if they are
  // more than 128, and for bytes that break P-11. Valid until the next call.
  std::span<const uint32_t> Steps(uint32_t posting, uint32_t n);
  // Whether the last step ends the bytes.
  bool EndsHere();

 private:
  static constexpr uint32_t kStride = 8;

  bool Load(uint64_t stream);
  uint64_t FirstStep(uint32_t posting) const;

  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
  const std::byte* next_ = nullptr;  // the stream after the decoded or skipped ones
  uint64_t next_stream_ = 0;
  uint64_t decoded_ = UINT64_MAX;  // stream in values_
  uint64_t count_ = 0;
  const uint32_t* totals_ = nullptr;
  std::array<uint64_t, format::kBlockPostings / kStride> first_steps_;  // of every kStride-th posting
  std::array<uint32_t, format::kStreamValuesMax + format::kUnpackSlack> values_;
  std::array<uint32_t, format::kStreamValuesMax> joined_;  // steps that lie in two streams
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_BLOCK_POSITIONS_H_
