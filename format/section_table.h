// The container of a segment file (SPEC S-1 to S-8): sections one after another, then a tail that says where they
// are.
//
//   frame header | sections ... | page checksums | checksum roots | section table | footer
//
// The footer is the last 128 bytes of the file and is found from its size; it checks itself, the section table and
// the roots, the roots check the page checksums, and those check everything before them. Opening reads only the tail.
#ifndef ASHLAR_FORMAT_SECTION_TABLE_H_
#define ASHLAR_FORMAT_SECTION_TABLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kSectionEntryBytes = 32;
inline constexpr size_t kSegmentFooterBytes = 128;
inline constexpr size_t kFooterFileIdOffset = 48;
// What every segment file ends in, read as LoadU64 does: the complement of the frame's magic.
inline constexpr uint64_t kSegmentFooterEnd = 0xF5F2ADBEB3B7ACBE;

// A reader that does not know the section may ignore it. DO NOT CHANGE.
inline constexpr uint16_t kSectionOptional = 1;

struct SectionEntry {
  SectionKind kind = SectionKind::kMeta;
  uint16_t flags = 0;
  uint32_t id = 0;  // the index or field it belongs to, 0 if there is no choice
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const SectionEntry&) const = default;
};

struct SegmentFooter {
  uint64_t file_bytes = 0;
  uint64_t table_offset = 0;
  uint32_t table_count = 0;
  uint32_t root_count = 0;
  uint64_t root_offset = 0;
  uint64_t data_end = 0;    // pages cover the file from 0 to here
  uint64_t generation = 0;  // of the catalog that the segment was built on
  FileId file_id{};
  uint64_t root_checksum = 0;   // XXH3-64 of the roots, seeded with their place
  uint64_t table_checksum = 0;  // XXH3-64 of the section table, seeded with its place
  bool operator==(const SegmentFooter&) const = default;
};

// "stored", "terms" ... for messages and statistics; "unknown" for a kind that this build does not know.
std::string_view SectionName(SectionKind kind);
// The name, and the field number or group where it matters: "lengths 3", "terms group".
std::string SectionLabel(SectionKind kind, uint32_t id);

// The first multiple of kSectionAlignment at or above `offset`.
inline uint64_t AlignSection(uint64_t offset) {
  return (offset + (kSectionAlignment - 1)) / kSectionAlignment * kSectionAlignment;
}

void EncodeSectionTable(std::span<const SectionEntry> entries, ByteBuffer* out);
void EncodeSegmentFooter(const SegmentFooter& footer, std::span<std::byte, kSegmentFooterBytes> out);

// `bytes` are the last 128 of the file. DataLoss unless they are this file's footer (S-6); `header_id` is the
// frame's.
absl::StatusOr<SegmentFooter> DecodeSegmentFooter(ByteSpan bytes, const FileId& header_id, uint64_t file_bytes,
                                                  std::string_view file);
// `bytes` are the section table, not yet checked. DataLoss unless it matches the footer and S-4, Unimplemented if a
// section is needed that this build does not know; unknown optional sections are left out.
absl::StatusOr<std::vector<SectionEntry>> DecodeSectionTable(ByteSpan bytes, const SegmentFooter& footer,
                                                             std::string_view file);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_SECTION_TABLE_H_
