// The tables of the levels, for kernels.cc to choose from.
#ifndef ASHLAR_SRC_SIMD_LEVELS_H_
#define ASHLAR_SRC_SIMD_LEVELS_H_

#include "src/simd/kernels.h"

namespace ashlar::simd {

// The bits of a class that a table for values of this width tells apart.
constexpr uint32_t ClassMask(uint32_t width) { return (kClassedBytes - 1) & ~((1u << width) - 1); }

extern const Kernels kScalarKernels;

#ifdef __x86_64__
// These may only be called on machines that have the level.
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace ashlar::simd

#endif  // ASHLAR_SRC_SIMD_LEVELS_H_
