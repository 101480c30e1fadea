// The one file that is compiled for AVX2 as a whole, for xxHash chooses its code when it is compiled. It includes
// nothing else that has code, so that no function of another file can become one for AVX2.
#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ashlar {

uint64_t ChecksumAvx2(const void* bytes, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(bytes, n, seed); }

}  // namespace ashlar
