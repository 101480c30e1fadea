// The frame that every Ashlar file begins with (SPEC F-*): 64 bytes that say what the file is, whose it is, and what a
// reader must know to read it.
//
//   offset size name
//        0    8 magic         "ASHLAR\r\n"
//        8    2 kind          FileKind, never 0
//       10    2 version       of the format; a reader refuses a newer one with Unimplemented
//       12    4 incompat      an unknown bit: Unimplemented
//       16    2 ro_compat     an unknown bit: may be read, not written
//       18    2 compat        unknown bits are ignored
//       20    4 header_bytes  64
//       24   16 file id       random, of this file alone
//       40   16 store id      random, of the store it belongs to
//       56    8 checksum      XXH3-64, seed 0, of bytes 0 to 55
#ifndef ASHLAR_FORMAT_FRAME_H_
#define ASHLAR_FORMAT_FRAME_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "format/layout.h"
#include "src/base/bytes.h"

namespace ashlar::format {

inline constexpr size_t kFileHeaderBytes = 64;

struct FileHeader {
  FileKind kind = FileKind::kJournal;
  uint16_t version = kFormatVersion;
  uint32_t incompat = 0;
  uint16_t ro_compat = 0;
  uint16_t compat = 0;
  FileId file_id{};
  StoreId store_id{};
  bool operator==(const FileHeader&) const = default;
};

void EncodeFileHeader(const FileHeader& header, std::span<std::byte, kFileHeaderBytes> out);

// Valid iff the magic, the checksum, the header size and the kind are right (DataLoss otherwise), the version is not
// newer than ours and no unknown incompat bit is set (Unimplemented otherwise), and, if given, the store is `store_id` (DataLoss).
absl::StatusOr<FileHeader> DecodeFileHeader(ByteSpan bytes, FileKind kind, std::string_view file,
                                            const std::optional<StoreId>& store_id = std::nullopt);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_FRAME_H_
