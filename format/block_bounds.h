// BlockBounds: from what the most that the postings of blocks contribute is computed (format/frontier.h), in whatever
// form a list's headers lie.
#ifndef ASHLAR_FORMAT_BLOCK_BOUNDS_H_
#define ASHLAR_FORMAT_BLOCK_BOUNDS_H_

#include <cstdint>

namespace ashlar::format {

// Arrays by pair and block, and by pair and group of blocks; format::ListHeaders says how.
template <class Headers>
struct BlockBounds {
  const Headers* headers = nullptr;
  uint32_t pairs = 0;  // 0: there are none
  uint32_t group_pairs = 0;
  const uint8_t* pair_frequencies = nullptr;
  const uint8_t* pair_lengths = nullptr;
  const uint8_t* group_pair_frequencies = nullptr;
  const uint8_t* group_pair_lengths = nullptr;
};

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_BLOCK_BOUNDS_H_
