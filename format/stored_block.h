// Stored documents (SPEC Z-1 to Z-5): small zstd blocks, compressed with a dictionary of the segment's own documents.
//
//   blocks ... | dictionaries ... | first ordinals | block offsets | dictionary table | trailer
//
// A block names its dictionary by its index in the section's table, so a merge copies blocks as they are and changes
// one byte.
#ifndef ASHLAR_FORMAT_STORED_BLOCK_H_
#define ASHLAR_FORMAT_STORED_BLOCK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "src/base/bytes.h"

namespace ashlar::format {

// Block bytes before compression. Measured on 300-byte documents: a fetch takes 3 us at 2 KiB, 5.5 at 4 KiB, for 4 %
// of size.
inline constexpr size_t kStoredBlockBytes = 2048;
inline constexpr uint32_t kStoredBlockDocumentsMax = 512;
inline constexpr size_t kStoredDictionaryBytes = size_t{32} << 10;
// Documents that a dictionary is made from, in bytes. Below a quarter of it a dictionary does not pay for itself.
inline constexpr size_t kStoredSampleBytes = size_t{512} << 10;
inline constexpr size_t kStoredDictionariesMax = 8;
inline constexpr uint64_t kStoredRawBytesMax = uint64_t{1} << 30;  // of one block
inline constexpr size_t kStoredTrailerBytes = 64;
inline constexpr size_t kStoredDictionaryEntryBytes = 16;  // u64 offset, u64 length

// The first byte of a block: 0 zstd without a dictionary, 1 + index in the table with one, 255 not compressed.
inline constexpr uint8_t kStoredNoDictionary = 0;
inline constexpr uint8_t kStoredPlain = 255;

struct StoredTrailer {
  uint32_t documents = 0;
  uint32_t blocks = 0;
  uint64_t blocks_length = 0;                     // blocks are the section's bytes from 0 to here
  uint64_t first_offset = 0, first_length = 0;    // number array: first ordinal of each block
  uint64_t places_offset = 0, places_length = 0;  // number array: offset of each block
  uint64_t table_offset = 0;
  uint32_t dictionaries = 0;
  bool operator==(const StoredTrailer&) const = default;
};
void EncodeStoredTrailer(const StoredTrailer& trailer, ByteBuffer* out);
// Nullopt unless the trailer obeys Z-4 in a section of `section_bytes`.
std::optional<StoredTrailer> DecodeStoredTrailer(ByteSpan bytes, uint64_t section_bytes);

// A dictionary from documents that lie in `samples` one after another; nullopt if they are unfit, which is no error.
// Takes a few ms: the dictionary is made of evenly spread samples, which measured as good as zstd's trainer at a
// tenth of its time.
std::optional<ByteBuffer> MakeDictionary(ByteSpan samples, std::span<const size_t> sizes);

// A dictionary made ready for use. Any number of threads may use one. Null if the bytes are unfit or memory is short.
class Compressor {
 public:
  static std::unique_ptr<Compressor> Create(ByteSpan dictionary);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

 private:
  friend bool AppendStoredBlock(ByteSpan, uint8_t, const Compressor*, ByteBuffer*);
  Compressor() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
class Decompressor {
 public:
  static std::unique_ptr<Decompressor> Create(ByteSpan dictionary);
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

 private:
  friend bool DecodeStoredBlock(ByteSpan, const Decompressor*, ByteBuffer*);
  Decompressor() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Appends a block with the content `raw` (Z-2). `compressor` belongs to the dictionary `first_byte` - 1; null without
// one. False if zstd refuses, which only a lack of memory can cause.
bool AppendStoredBlock(ByteSpan raw, uint8_t first_byte, const Compressor* compressor, ByteBuffer* out);
// The content of a block; false unless the block obeys Z-3. The caller finds the dictionary by the block's first
// byte.
bool DecodeStoredBlock(ByteSpan block, const Decompressor* decompressor, ByteBuffer* raw);
// A block's content: lengths of its `count` documents as varints, then their bytes. Gives document `index`; nullopt
// if the content breaks Z-2.
std::optional<ByteSpan> StoredDocument(ByteSpan raw, uint32_t count, uint32_t index);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_STORED_BLOCK_H_
