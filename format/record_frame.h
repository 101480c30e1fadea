// What catalog values and deaths files share (SPEC C-1, L-1): the file header, a body, and a checksum of the body at the
// end. Private to format/.
#ifndef ASHLAR_FORMAT_RECORD_FRAME_H_
#define ASHLAR_FORMAT_RECORD_FRAME_H_

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "format/frame.h"
#include "src/base/bytes.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::format {

inline constexpr size_t kTrailerBytes = 8;

// A buffer that begins with the header; the caller appends the body and calls EndFramed.
inline ByteBuffer BeginFramed(const FileHeader& header) {
  ByteBuffer out(kFileHeaderBytes);
  EncodeFileHeader(header, std::span<std::byte, kFileHeaderBytes>(out.data(), kFileHeaderBytes));
  return out;
}

inline void EndFramed(const FileId& file_id, ByteBuffer* out) {
  const ByteSpan body = ByteSpan(*out).subspan(kFileHeaderBytes);
  ByteWriter(out).U64(Checksum(body, PlaceSeed(file_id, kFileHeaderBytes)));
}

// The body of framed bytes, once header and checksum are right.
struct Framed {
  FileHeader header;
  ByteSpan body;
};
inline absl::StatusOr<Framed> OpenFramed(ByteSpan bytes, FileKind kind, std::string_view file) {
  Framed framed;
  ASHLAR_ASSIGN_OR_RETURN(framed.header, DecodeFileHeader(bytes, kind, file));
  // Unknown ro_compat and compat bits may be read over, but nothing in this version sets them.
  if (bytes.size() < kFileHeaderBytes + kTrailerBytes)
    return DataLoss(file, "trailer", bytes.size(), "the file ends before its checksum");
  const size_t end = bytes.size() - kTrailerBytes;
  framed.body = bytes.subspan(kFileHeaderBytes, end - kFileHeaderBytes);
  if (SiteIsOn(Site::kCheckFramed) &&
      LoadU64(bytes.data() + end) != Checksum(framed.body, PlaceSeed(framed.header.file_id, kFileHeaderBytes)))
    return DataLoss(file, "trailer", end, "checksum mismatch");
  return framed;
}

// Where the bodies of two framed values differ first, as an offset in `bytes`; nullopt: nowhere.
inline std::optional<uint64_t> FirstDifference(ByteSpan canonical, ByteSpan bytes) {
  const ByteSpan mine = canonical.subspan(kFileHeaderBytes, canonical.size() - kFileHeaderBytes - kTrailerBytes);
  const ByteSpan theirs = bytes.subspan(kFileHeaderBytes, bytes.size() - kFileHeaderBytes - kTrailerBytes);
  const auto [a, b] = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end());
  if (a == mine.end() && b == theirs.end()) return std::nullopt;
  return kFileHeaderBytes + static_cast<uint64_t>(b - theirs.begin());
}

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_RECORD_FRAME_H_
