#include "format/page_checksums.h"

#include <algorithm>

#include "src/base/checksum.h"

namespace ashlar::format {

uint64_t PageChecksum(const FileId& file_id, uint64_t offset, ByteSpan bytes) {
  return Checksum(bytes, PlaceSeed(file_id, offset));
}

void PageChecksummer::Append(ByteSpan bytes) {
  while (!bytes.empty()) {
    if (page_.empty() && bytes.size() >= kPageBytes) {  // a whole page needs no copy
      sums_.push_back(PageChecksum(file_id_, offset_, bytes.first(kPageBytes)));
      offset_ += kPageBytes;
      bytes = bytes.subspan(kPageBytes);
      continue;
    }
    const size_t n = std::min(bytes.size(), kPageBytes - page_.size());
    page_.insert(page_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    if (page_.size() == kPageBytes) Finish();
  }
}

void PageChecksummer::Finish() {
  if (page_.empty()) return;
  sums_.push_back(PageChecksum(file_id_, offset_, page_));
  offset_ += page_.size();
  page_.clear();
}

std::vector<uint64_t> ChecksumRoots(const FileId& file_id, uint64_t table_offset, ByteSpan table) {
  std::vector<uint64_t> roots;
  for (size_t at = 0; at < table.size(); at += kPageBytes)
    roots.push_back(
        PageChecksum(file_id, table_offset + at, table.subspan(at, std::min(kPageBytes, table.size() - at))));
  return roots;
}

}  // namespace ashlar::format
