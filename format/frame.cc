#include "format/frame.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::format {
namespace {

constexpr char kMagic[9] = "ASHLAR\r\n";
constexpr size_t kChecksumOffset = 56;

}  // namespace

void EncodeFileHeader(const FileHeader& header, std::span<std::byte, kFileHeaderBytes> out) {
  std::byte* p = out.data();
  std::memcpy(p, kMagic, 8);
  StoreU16(p + 8, static_cast<uint16_t>(header.kind));
  StoreU16(p + 10, header.version);
  StoreU32(p + 12, header.incompat);
  StoreU16(p + 16, header.ro_compat);
  StoreU16(p + 18, header.compat);
  StoreU32(p + 20, kFileHeaderBytes);
  std::memcpy(p + 24, header.file_id.data(), 16);
  std::memcpy(p + 40, header.store_id.data(), 16);
  StoreU64(p + kChecksumOffset, Checksum(ByteSpan(p, kChecksumOffset), 0));
}

absl::StatusOr<FileHeader> DecodeFileHeader(ByteSpan bytes, FileKind kind, std::string_view file,
                                            const std::optional<StoreId>& store_id) {
  constexpr std::string_view kSection = "header";
  if (bytes.size() < kFileHeaderBytes)
    return DataLoss(file, kSection, 0, absl::StrCat("the file has ", bytes.size(), " bytes, less than a header"));
  const std::byte* p = bytes.data();
  if (std::memcmp(p, kMagic, 8) != 0) return DataLoss(file, kSection, 0, "not an Ashlar file: wrong magic");
  if (SiteIsOn(Site::kCheckFileHeader) && LoadU64(p + kChecksumOffset) != Checksum(bytes.first(kChecksumOffset), 0))
    return DataLoss(file, kSection, kChecksumOffset, "checksum mismatch");
  FileHeader header;
  header.kind = static_cast<FileKind>(LoadU16(p + 8));
  header.version = LoadU16(p + 10);
  header.incompat = LoadU32(p + 12);
  header.ro_compat = LoadU16(p + 16);
  header.compat = LoadU16(p + 18);
  std::memcpy(header.file_id.data(), p + 24, 16);
  std::memcpy(header.store_id.data(), p + 40, 16);
  if (header.version > kFormatVersion)
    return WithPlace(Unimplemented(absl::StrCat(ToAbsl(file), ": format version ", header.version,
                                                " is newer than this build's ", kFormatVersion)),
                     file, kSection, 10);
  if (header.incompat != 0)
    return WithPlace(Unimplemented(absl::StrCat(ToAbsl(file), ": needs unknown features ", header.incompat)), file,
                     kSection, 12);
  if (header.version == 0) return DataLoss(file, kSection, 10, "version 0");
  if (header.kind != kind) return DataLoss(file, kSection, 8, "another kind of file");
  if (LoadU32(p + 20) != kFileHeaderBytes) return DataLoss(file, kSection, 20, "wrong header size");
  if (SiteIsOn(Site::kCheckStoreId) && store_id.has_value() && header.store_id != *store_id)
    return DataLoss(file, kSection, 40, "belongs to another store");
  return header;
}

}  // namespace ashlar::format
