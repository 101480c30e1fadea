// StoredWriter: gathers stored documents into compressed blocks and writes the stored section (SPEC Z-*).
// Call order: Adopt* (Add | CopyBlock)* Finish
#ifndef ASHLAR_SRC_SEGMENT_STORED_WRITER_H_
#define ASHLAR_SRC_SEGMENT_STORED_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "format/packed_numbers.h"
#include "format/stored_block.h"
#include "src/base/bytes.h"
#include "src/segment/byte_sink.h"

namespace ashlar::segment {

// What: keeps the first documents (512 KiB of them) until a dictionary can be made from them, then streams blocks. A
// merge
//   adopts the dictionaries of its inputs instead; then none is made.
// Owns: the documents of the unfinished block, the sample, the dictionaries.
// Threads: one. Errors: the sink's.
class StoredWriter {
 public:
  explicit StoredWriter(ByteSink* sink) : sink_(sink) {}

  // Takes over a dictionary of an input; its index in this section's table, nullopt if the table is full (or it is
  // unfit). The same bytes get the same index. New blocks are compressed with the one adopted first.
  std::optional<uint8_t> Adopt(ByteSpan dictionary);

  absl::Status Add(ByteSpan document);
  // A block of another segment with `documents` documents, unchanged but for its first byte.
  absl::Status CopyBlock(ByteSpan block, uint32_t documents, uint8_t first_byte);

  // Writes what is left, dictionaries, indexes and the trailer.
  absl::Status Finish();
  uint32_t documents() const { return documents_; }

 private:
  struct Dictionary {
    ByteBuffer bytes;
    std::unique_ptr<format::Compressor> compressor;
  };
  absl::Status EndSample();
  absl::Status AddToBlock(ByteSpan document);
  absl::Status EndBlock();
  absl::Status WriteBlock(ByteSpan block, uint32_t documents);
  absl::Status WriteTail();

  ByteSink* sink_;
  bool sampling_ = true;
  ByteBuffer sample_;
  std::vector<size_t> sample_sizes_;
  std::vector<Dictionary> dictionaries_;

  ByteBuffer heads_;        // lengths of the unfinished block's documents
  ByteBuffer bodies_;       // and their bytes
  ByteBuffer raw_, block_;  // scratch
  uint32_t block_documents_ = 0;

  uint32_t documents_ = 0;    // added, the unfinished block's included
  uint32_t block_first_ = 0;  // first ordinal of the next block to be written
  uint32_t blocks_ = 0;
  format::NumberArrayWriter firsts_, places_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_STORED_WRITER_H_
