// StoredReader: fetches stored documents from their compressed blocks (SPEC Z-*).
#ifndef ASHLAR_SRC_SEGMENT_STORED_READER_H_
#define ASHLAR_SRC_SEGMENT_STORED_READER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/stored_block.h"
#include "src/base/bytes.h"
#include "src/segment/verified_bytes.h"

namespace ashlar::segment {

// What: the reading side of the stored section. A thread keeps the block it decoded last, so neighbours are cheap to
// fetch. Owns: the dictionaries, made ready at first use. Threads: any number. Errors: DataLoss of the section.
class StoredReader {
 public:
  StoredReader(const VerifiedBytes* bytes, uint32_t documents);

  absl::StatusOr<ByteBuffer> Document(uint32_t ordinal) const;

  // --- for merges and checks ---
  struct Block {
    uint32_t first = 0;  // ordinal
    uint32_t count = 0;  // documents
    ByteSpan bytes;      // verified
    uint8_t first_byte() const { return static_cast<uint8_t>(bytes[0]); }
  };
  absl::StatusOr<uint32_t> BlockCount() const;
  absl::StatusOr<Block> BlockAt(uint32_t block) const;
  absl::Status Decode(const Block& block, ByteBuffer* raw) const;
  absl::StatusOr<uint32_t> DictionaryCount() const;
  absl::StatusOr<ByteSpan> Dictionary(uint32_t index) const;
  // Of a block that was decoded to `raw`.
  absl::StatusOr<ByteSpan> DocumentIn(const Block& block, ByteSpan raw, uint32_t ordinal) const;

 private:
  absl::StatusOr<format::StoredTrailer> Trailer() const;
  absl::StatusOr<uint32_t> BlockOf(const format::StoredTrailer& trailer, uint32_t ordinal) const;
  absl::StatusOr<Block> BlockAt(const format::StoredTrailer& trailer, uint32_t block) const;
  absl::StatusOr<ByteSpan> Dictionary(const format::StoredTrailer& trailer, uint32_t index) const;
  absl::StatusOr<const format::Decompressor*> DecompressorOf(uint8_t first_byte) const;

  const VerifiedBytes* bytes_;
  uint32_t documents_;
  uint64_t serial_;  // tells this reader's blocks from those of readers before it, in the threads' memory
  mutable std::array<std::atomic<const format::Decompressor*>, format::kStoredDictionariesMax> ready_{};
  mutable std::mutex mutex_;  // guards owned_
  mutable std::vector<std::unique_ptr<format::Decompressor>> owned_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_STORED_READER_H_
