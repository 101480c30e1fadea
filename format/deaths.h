// The deaths file (SPEC L-*): for each segment with dead documents, which ordinals died at which sequence, as of one
// catalog generation. Immutable; a generation that changes it writes a new one.
#ifndef ASHLAR_FORMAT_DEATHS_H_
#define ASHLAR_FORMAT_DEATHS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

struct Death {
  uint32_t ordinal = 0;
  Sequence sequence = 0;  // > 0
  bool operator==(const Death&) const = default;
};

struct SegmentDeaths {
  uint64_t segment_number = 0;
  std::vector<Death> deaths;  // ascending ordinal
  bool operator==(const SegmentDeaths&) const = default;
};

struct DeathsFile {
  FileId file_id{};
  StoreId store_id{};
  uint64_t generation = 0;  // the catalog generation it was written for
  std::vector<SegmentDeaths> segments;  // ascending segment number, none empty
  bool operator==(const DeathsFile&) const = default;
};

ByteBuffer EncodeDeaths(const DeathsFile& deaths);
absl::StatusOr<DeathsFile> DecodeDeaths(ByteSpan bytes, std::string_view file);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_DEATHS_H_
