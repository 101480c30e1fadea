#include "format/section_table.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/frame.h"
#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::format {
namespace {

constexpr uint64_t kMagic = 0x0A0D52414C485341;  // "ASHLAR\r\n"
static_assert(kSegmentFooterEnd == ~kMagic);
constexpr size_t kFooterChecksumOffset = 112;
constexpr size_t kFooterMagicOffset = 120;
constexpr std::string_view kFooter = "footer";
constexpr std::string_view kTable = "section table";

bool IsKnown(SectionKind kind) { return kind >= SectionKind::kMeta && kind <= SectionKind::kColumn; }

}  // namespace

std::string_view SectionName(SectionKind kind) {
  switch (kind) {
    case SectionKind::kMeta: return "meta";
    case SectionKind::kDocumentIds: return "ids";
    case SectionKind::kKeys: return "keys";
    case SectionKind::kKeyFilter: return "key_filter";
    case SectionKind::kLengths: return "lengths";
    case SectionKind::kTerms: return "terms";
    case SectionKind::kBlockHeaders: return "block_headers";
    case SectionKind::kPostings: return "postings";
    case SectionKind::kStored: return "stored";
    case SectionKind::kColumn: return "columns";
    case SectionKind::kVectors: return "vectors";
    case SectionKind::kChecksums: return "checksums";
  }
  return "unknown";
}

std::string SectionLabel(SectionKind kind, uint32_t id) {
  switch (kind) {
    case SectionKind::kLengths:
    case SectionKind::kTerms:
    case SectionKind::kBlockHeaders:
    case SectionKind::kPostings:
    case SectionKind::kColumn:
      if (id == kGroupIndex) return absl::StrCat(ToAbsl(SectionName(kind)), " group");
      return absl::StrCat(ToAbsl(SectionName(kind)), " ", id);
    default: return std::string(SectionName(kind));
  }
}

void EncodeSectionTable(std::span<const SectionEntry> entries, ByteBuffer* out) {
  ByteWriter w(out);
  for (const SectionEntry& e : entries) {
    w.U16(static_cast<uint16_t>(e.kind));
    w.U16(e.flags);
    w.U32(e.id);
    w.U64(e.offset);
    w.U64(e.length);
    w.U64(0);
  }
}

void EncodeSegmentFooter(const SegmentFooter& f, std::span<std::byte, kSegmentFooterBytes> out) {
  std::byte* p = out.data();
  std::memset(p, 0, kSegmentFooterBytes);
  StoreU64(p, f.file_bytes);
  StoreU64(p + 8, f.table_offset);
  StoreU32(p + 16, f.table_count);
  StoreU32(p + 20, f.root_count);
  StoreU64(p + 24, f.root_offset);
  StoreU64(p + 32, f.data_end);
  StoreU64(p + 40, f.generation);
  std::memcpy(p + 48, f.file_id.data(), f.file_id.size());
  StoreU64(p + 64, f.root_checksum);
  StoreU64(p + 72, f.table_checksum);
  const uint64_t place = f.file_bytes - kSegmentFooterBytes;
  StoreU64(p + kFooterChecksumOffset, Checksum(ByteSpan(p, kFooterChecksumOffset), PlaceSeed(f.file_id, place)));
  StoreU64(p + kFooterMagicOffset, kSegmentFooterEnd);
}

absl::StatusOr<SegmentFooter> DecodeSegmentFooter(ByteSpan bytes, const FileId& header_id, uint64_t file_bytes,
                                                  std::string_view file) {
  if (bytes.size() != kSegmentFooterBytes || file_bytes < kFileHeaderBytes + kSegmentFooterBytes)
    return DataLoss(file, kFooter, 0, absl::StrCat("the file has ", file_bytes, " bytes, too few for a segment"));
  const std::byte* p = bytes.data();
  const uint64_t place = file_bytes - kSegmentFooterBytes;
  const auto damage = [&](size_t at, std::string_view what) { return DataLoss(file, kFooter, place + at, what); };
  if (LoadU64(p + kFooterMagicOffset) != kSegmentFooterEnd)
    return damage(kFooterMagicOffset, "the file does not end in a segment footer");
  if (SiteIsOn(Site::kCheckSegmentFooter) &&
      LoadU64(p + kFooterChecksumOffset) != Checksum(bytes.first(kFooterChecksumOffset), PlaceSeed(header_id, place)))
    return damage(kFooterChecksumOffset, "checksum mismatch");
  SegmentFooter f;
  f.file_bytes = LoadU64(p);
  f.table_offset = LoadU64(p + 8);
  f.table_count = LoadU32(p + 16);
  f.root_count = LoadU32(p + 20);
  f.root_offset = LoadU64(p + 24);
  f.data_end = LoadU64(p + 32);
  f.generation = LoadU64(p + 40);
  std::memcpy(f.file_id.data(), p + 48, f.file_id.size());
  f.root_checksum = LoadU64(p + 64);
  f.table_checksum = LoadU64(p + 72);
  if (f.file_id != header_id) return damage(48, "belongs to another file");
  if (f.file_bytes != file_bytes) return damage(0, "states another file size");
  for (size_t at = 80; at < kFooterChecksumOffset; ++at)
    if (p[at] != std::byte{0}) return damage(at, "a reserved byte is not zero");
  // The tail must be exactly: page checksums, roots, table, footer. Each comparison rules out overflow of the next.
  const uint64_t pages = f.data_end / kPageBytes + (f.data_end % kPageBytes != 0 ? 1 : 0);
  const uint64_t roots = (pages * 8 + (kPageBytes - 1)) / kPageBytes;
  if (f.data_end > place || f.data_end < kFileHeaderBytes || f.data_end % kSectionAlignment != 0)
    return damage(32, "the end of the sections is out of range");
  if (f.root_count != roots || f.root_offset != AlignSection(f.data_end + pages * 8))
    return damage(20, "the checksum roots are at the wrong place");
  if (f.table_offset != AlignSection(f.root_offset + roots * 8))
    return damage(8, "the section table is at the wrong place");
  if (f.table_offset > place || place - f.table_offset != uint64_t{f.table_count} * kSectionEntryBytes)
    return damage(16, "the section table has the wrong size");
  return f;
}

absl::StatusOr<std::vector<SectionEntry>> DecodeSectionTable(ByteSpan bytes, const SegmentFooter& footer,
                                                             std::string_view file) {
  const auto damage = [&](size_t at, std::string_view what) {
    return DataLoss(file, kTable, footer.table_offset + at, what);
  };
  if (bytes.size() != size_t{footer.table_count} * kSectionEntryBytes) return damage(0, "wrong size");
  if (SiteIsOn(Site::kCheckSegmentTable) &&
      Checksum(bytes, PlaceSeed(footer.file_id, footer.table_offset)) != footer.table_checksum)
    return damage(0, "checksum mismatch");
  std::vector<SectionEntry> entries;
  std::set<std::pair<SectionKind, uint32_t>> seen;
  uint64_t end = kFileHeaderBytes;  // of what came before
  for (size_t i = 0; i < footer.table_count; ++i) {
    const size_t at = i * kSectionEntryBytes;
    const std::byte* p = bytes.data() + at;
    SectionEntry e;
    e.kind = static_cast<SectionKind>(LoadU16(p));
    e.flags = LoadU16(p + 2);
    e.id = LoadU32(p + 4);
    e.offset = LoadU64(p + 8);
    e.length = LoadU64(p + 16);
    if (LoadU64(p + 24) != 0) return damage(at + 24, "a reserved byte is not zero");
    if (e.offset != AlignSection(end)) return damage(at + 8, "a section is at the wrong place");
    if (e.offset > footer.data_end || e.length > footer.data_end - e.offset)
      return damage(at + 16, "a section ends beyond the data");
    end = e.offset + e.length;
    // A flag that this build does not know may change what the bytes mean, so it makes the section an unknown one.
    if (!IsKnown(e.kind) || (e.flags & ~kSectionOptional) != 0) {
      if ((e.flags & kSectionOptional) != 0) continue;
      return WithPlace(
          Unimplemented(absl::StrCat(ToAbsl(file), ": needs section kind ", static_cast<uint16_t>(e.kind),
                                     " with flags ", e.flags, ", unknown to this build")),
          file, kTable, footer.table_offset + at);
    }
    if (!seen.insert({e.kind, e.id}).second) return damage(at, "a section is there twice");
    entries.push_back(e);
  }
  if (AlignSection(end) != footer.data_end) return damage(0, "the sections do not fill the data");
  return entries;
}

}  // namespace ashlar::format
