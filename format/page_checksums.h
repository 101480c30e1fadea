// Page checksums of a segment file (SPEC S-5): XXH3-64 of every 4096-byte page of file offset, seeded with its place,
// in a table that is itself checked page by page by a second level, the roots. So a reader checks any page with one
// look into the table, and opening a file of any size reads eight bytes for every 2 MiB of it.
#ifndef ASHLAR_FORMAT_PAGE_CHECKSUMS_H_
#define ASHLAR_FORMAT_PAGE_CHECKSUMS_H_

#include <cstdint>
#include <vector>

#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

// The checksum of `bytes`, which lie at `offset` of the file.
uint64_t PageChecksum(const FileId& file_id, uint64_t offset, ByteSpan bytes);

// Cuts a stream of bytes into pages and collects their checksums. `Append` sees the file from offset 0 on, in order.
class PageChecksummer {
 public:
  explicit PageChecksummer(const FileId& file_id) : file_id_(file_id) { page_.reserve(kPageBytes); }
  void Append(ByteSpan bytes);
  // Ends the last page. Nothing may follow.
  void Finish();
  const std::vector<uint64_t>& sums() const { return sums_; }

 private:
  FileId file_id_;
  uint64_t offset_ = 0;  // of the page being filled
  ByteBuffer page_;      // its bytes so far
  std::vector<uint64_t> sums_;
};

// The roots of a table of page checksums that lies at `table_offset`.
std::vector<uint64_t> ChecksumRoots(const FileId& file_id, uint64_t table_offset, ByteSpan table);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_PAGE_CHECKSUMS_H_
