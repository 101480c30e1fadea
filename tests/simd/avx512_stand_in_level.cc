// The AVX-512 level with stand-ins for its instructions, for machines without them.
#include "tests/simd/avx512_stand_ins.h"

namespace ashlar::simd {
using namespace stand_ins;  // NOLINT: they take the place of global names
}

#define ASHLAR_SIMD_STAND_INS
#define kAvx512Kernels kAvx512StandIns
#include "src/simd/avx512.cc"
