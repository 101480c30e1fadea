// How packed values of a segment are read: by the kernels.
#ifndef ASHLAR_SRC_SEGMENT_UNPACKING_H_
#define ASHLAR_SRC_SEGMENT_UNPACKING_H_

#include "format/dense_window.h"
#include "format/packed_stream.h"
#include "src/simd/kernels.h"

namespace ashlar::segment {

// Writes up to 15 values beyond the last; arrays for blocks have room for 128 and more.
inline const format::Unpacking kUnpacking{simd::BestKernels().unpack, simd::BestKernels().unpack_plus_one,
                                          simd::BestKernels().prefix_sum, simd::BestKernels().unpack_gaps};

inline const format::SliceDecoding kSliceDecoding{simd::BestKernels().unpack_bytes, simd::BestKernels().take_present};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_UNPACKING_H_
