// Positions as bytes (SPEC P-11, P-12): for each posting, for each member, the first position and then the steps to the next
// ones. Blocks hold them as packed streams of 128, short lists as varints.
#ifndef ASHLAR_FORMAT_POSITION_BLOCK_H_
#define ASHLAR_FORMAT_POSITION_BLOCK_H_

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_POSITION_BLOCK_H_
