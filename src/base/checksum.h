// Checksums: XXH3-64, the only hash that reaches the disk. The seed ties bytes to their place (SPEC F-5).
#ifndef ASHLAR_SRC_BASE_CHECKSUM_H_
#define ASHLAR_SRC_BASE_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ashlar {

// XXH3-64 of `bytes` with `seed`.
uint64_t Checksum(std::span<const std::byte> bytes, uint64_t seed);

// A well mixed seed from a file's 16-byte id and an offset in it, so that a block at the wrong place or in the wrong
// file fails: XXH3-64 over (file id, offset as 8 bytes little-endian), seed 0.
uint64_t PlaceSeed(std::span<const std::byte, 16> file_id, uint64_t offset);

// The in-memory hash of keys and terms. The same function is stored in key filters (SPEC K-*): XXH3-64, seed 0.
uint64_t HashBytes(std::string_view bytes);

}  // namespace ashlar

#endif  // ASHLAR_SRC_BASE_CHECKSUM_H_
