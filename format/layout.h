// Constants of the file format that several codecs share. format/SPEC.md is normative; this follows it.
#ifndef ASHLAR_FORMAT_LAYOUT_H_
#define ASHLAR_FORMAT_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace ashlar::format {

using FileId = std::array<std::byte, 16>;
using StoreId = std::array<std::byte, 16>;

inline constexpr uint16_t kFormatVersion = 1;

// File kinds (SPEC F-2). 0 is never valid. DO NOT CHANGE.
enum class FileKind : uint16_t { kJournal = 1, kSegment = 2, kDeaths = 3, kCatalogValue = 4 };

// Section kinds of a segment (SPEC S-3). 0 is never valid. DO NOT CHANGE.
enum class SectionKind : uint16_t {
  kMeta = 1,           // schema, identity, counts, sums
  kDocumentIds = 2,    // ordinal -> DocumentId
  kKeys = 3,           // sorted keys -> ordinal, ordinal -> key
  kKeyFilter = 4,      // quick "not here" by key hash
  kLengths = 5,        // ordinal -> length, one section per text or keyword field and one for the group
  kTerms = 6,          // dictionary, one section per index
  kBlockHeaders = 7,   // posting block headers and frontiers, one section per index
  kPostings = 8,       // posting payloads and positions, one section per index
  kStored = 9,         // compressed documents
  kColumn = 10,        // one section per column
  kVectors = 11,       // reserved for sparse vectors
  kChecksums = 12,     // page checksum table
};

// Which inverted index a term belongs to: the default group, or a field by number.
using IndexId = uint32_t;
inline constexpr IndexId kGroupIndex = 0xFFFFFFFFu;

inline constexpr size_t kPageBytes = 4096;       // unit of segment checksums
inline constexpr size_t kSectionAlignment = 64;
inline constexpr size_t kBlockPostings = 128;    // most postings in a block
inline constexpr size_t kBlocksPerGroup = 32;    // first-level blocks under one second-level header
inline constexpr uint32_t kNoDocument = 0xFFFFFFFFu;  // past the last ordinal of every list

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_LAYOUT_H_
