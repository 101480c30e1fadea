#include "src/segment/segment_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/frame.h"
#include "format/page_checksums.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/env/page_buffer.h"

namespace ashlar::segment {
namespace {

using format::kPageBytes;

constexpr std::string_view kChecksumSection = "checksums";

uint64_t PagesOf(uint64_t bytes) { return (bytes + (kPageBytes - 1)) / kPageBytes; }

uint64_t KeyOfSection(format::SectionKind kind, uint32_t id) {
  return uint64_t{static_cast<uint16_t>(kind)} << 32 | id;
}

std::unique_ptr<std::atomic<uint64_t>[]> MakeBits(uint64_t bits) {
  return std::make_unique<std::atomic<uint64_t>[]>((bits + 63) / 64);
}

}  // namespace

Section::Section(const SegmentFile* file, const format::SectionEntry& entry, const std::byte* data, bool all_verified)
    : VerifiedBytes(data, entry.length, all_verified), file_(file), entry_(entry) {
  SetVerifiedPages(file->verified_pages(), entry.offset);
}

absl::Status Section::Damage(uint64_t offset, std::string_view message) const {
  return DataLoss(file_->path(), label(), entry_.offset + offset, message);
}

absl::Status Section::Verify(uint64_t offset, uint64_t length) const {
  if (complete_.load(std::memory_order_acquire)) return absl::OkStatus();
  absl::Status status = file_->VerifyRange(entry_.offset + offset, length, format::SectionName(entry_.kind),
                                           populated_.load(std::memory_order_acquire));
  if (status.ok() && length == size()) complete_.store(true, std::memory_order_release);
  return status;
}

absl::Status Section::Populate() const {
  if (populated_.load(std::memory_order_acquire)) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(file_->Populate(entry_.offset, size(), format::SectionName(entry_.kind)));
  populated_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

bool Section::VerifyAhead() const {
  constexpr uint64_t kAheadBytes = 8 * format::kPageBytes;
  if (complete_.load(std::memory_order_acquire)) return true;
  const uint64_t from = ahead_.load(std::memory_order_relaxed);
  if (from > size()) return false;                              // something is damaged
  ahead_.store(from + kAheadBytes, std::memory_order_relaxed);  // two threads at once do the same
  const bool is_last = from + kAheadBytes > size();
  const absl::Status status = is_last ? Ensure(0, size()) : Ensure(from, kAheadBytes);
  return is_last && status.ok();
}

void SegmentFile::FreeArray::operator()(std::byte* p) const { ::operator delete(p, alignment); }

absl::StatusOr<std::unique_ptr<SegmentFile>> SegmentFile::Open(env::Env env, const std::string& path,
                                                               const format::SegmentEntry& entry,
                                                               const format::StoreId& store_id,
                                                               uint64_t catalog_generation,
                                                               const ReadOptions& options) {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, env.files->OpenForRead(path));
  std::unique_ptr<SegmentFile> f(new SegmentFile);
  f->path_ = path;
  ASHLAR_ASSIGN_OR_RETURN(f->size_, file->Size());
  std::array<std::byte, format::kFileHeaderBytes> bytes{};
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*file, path, "header", 0, bytes));
  ASHLAR_ASSIGN_OR_RETURN(const format::FileHeader header,
                          format::DecodeFileHeader(bytes, format::FileKind::kSegment, path, store_id));
  if (SiteIsOn(Site::kCheckSegmentIdentity) && header.file_id != entry.file_id)
    return DataLoss(path, "header", 24, "not the file that the catalog names");
  if (SiteIsOn(Site::kCheckSegmentSize) && f->size_ != entry.file_bytes)
    return DataLoss(path, "footer", f->size_,
                    absl::StrCat("the file has ", f->size_, " bytes, the catalog says ", entry.file_bytes));
  if (f->size_ < format::kFileHeaderBytes + format::kSegmentFooterBytes)
    return DataLoss(path, "footer", 0, "the file is too short for a segment");
  ASHLAR_RETURN_IF_ERROR(f->Load(*file, options));
  ASHLAR_RETURN_IF_ERROR(f->ReadTail(header.file_id));
  if (SiteIsOn(Site::kCheckSegmentGeneration) && f->footer_.generation > catalog_generation)
    return DataLoss(path, "footer", f->size_ - format::kSegmentFooterBytes + 40,
                    absl::StrCat("built on catalog generation ", f->footer_.generation, ", newer than the catalog's ",
                                 catalog_generation));
  if (options.mode == OpenMode::kArray) f->load_damage_ = f->VerifyArray();
  if (!options.keep_damaged) ASHLAR_RETURN_IF_ERROR(f->load_damage_);
  const bool all_verified = options.mode == OpenMode::kArray && f->load_damage_.ok();
  for (const format::SectionEntry& e : f->entries_) {
    f->sections_.push_back(std::make_unique<Section>(f.get(), e, f->data_ + e.offset, all_verified));
    f->by_key_[KeyOfSection(e.kind, e.id)] = f->sections_.back().get();
  }
  return f;
}

absl::StatusOr<std::unique_ptr<SegmentFile>> SegmentFile::OpenDamaged(env::Env env, const std::string& path,
                                                                      std::optional<format::StoreId>* store_id,
                                                                      std::vector<absl::Status>* damage) {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, env.files->OpenForRead(path));
  std::unique_ptr<SegmentFile> f(new SegmentFile);
  f->path_ = path;
  ASHLAR_ASSIGN_OR_RETURN(f->size_, file->Size());
  if (f->size_ < format::kFileHeaderBytes + format::kSegmentFooterBytes)
    return DataLoss(path, "footer", 0, "the file is too short for a segment");
  ASHLAR_RETURN_IF_ERROR(f->Load(*file, ReadOptions(OpenMode::kMapped)));
  ASHLAR_RETURN_IF_ERROR(f->Populate(0, format::kFileHeaderBytes, "header"));
  const absl::StatusOr<format::FileHeader> header =
      format::DecodeFileHeader(ByteSpan(f->data_, format::kFileHeaderBytes), format::FileKind::kSegment, path);
  format::FileId id{};
  if (header.ok()) {
    id = header->file_id;
    *store_id = header->store_id;
  } else {
    // The footer has it, too, and a checksum that is seeded with it.
    damage->push_back(header.status());
    const uint64_t place = f->size_ - format::kSegmentFooterBytes + format::kFooterFileIdOffset;
    ASHLAR_RETURN_IF_ERROR(f->Populate(place, id.size(), "footer"));
    std::memcpy(id.data(), f->data_ + place, id.size());
  }
  ASHLAR_RETURN_IF_ERROR(f->ReadTail(id));
  for (const format::SectionEntry& e : f->entries_) {
    f->sections_.push_back(std::make_unique<Section>(f.get(), e, f->data_ + e.offset, false));
    f->by_key_[KeyOfSection(e.kind, e.id)] = f->sections_.back().get();
  }
  return f;
}

absl::Status SegmentFile::Load(const env::ReadableFile& file, const ReadOptions& options) {
  if (options.mode == OpenMode::kMapped) {
    ASHLAR_ASSIGN_OR_RETURN(region_, file.Map());
    if (options.sigbus_guard) ASHLAR_RETURN_IF_ERROR(region_->Guard());
    if (region_->size() < size_) return DataLoss(path_, "footer", region_->size(), "the file became shorter");
    data_ = region_->data();
    return absl::OkStatus();
  }
  // The size is the catalog's and the file's, so it is not a damaged number that decides how much memory is taken.
  const bool huge = size_ >= env::kHugePageBytes;
  const std::align_val_t alignment{huge ? env::kHugePageBytes : size_t{kPageBytes}};
  array_ = std::unique_ptr<std::byte, FreeArray>(
      static_cast<std::byte*>(::operator new(size_, alignment, std::nothrow)), FreeArray{alignment});
  if (array_ == nullptr) return ResourceExhausted(absl::StrCat(path_, ": no memory for ", size_, " bytes"));
  data_ = array_.get();
  if (huge) env::AdviseHugePages(array_.get(), size_);
  return env::ReadExactly(file, path_, "pages", 0, std::span(array_.get(), size_));
}

absl::Status SegmentFile::VerifyArray() {
  absl::Status first;
  for (uint64_t offset = 0; offset < footer_.data_end; offset += kPageBytes) {
    const uint64_t length = std::min<uint64_t>(kPageBytes, footer_.data_end - offset);
    first.Update(VerifyRange(offset, length, SectionAt(offset)));
  }
  return first;
}

// The last bytes that a shorter file would lose. Where the new end is inside a page, that page's rest reads as zeros
// without a fault, and this is what tells: a shortening that loses anything loses these bytes.
bool SegmentFile::EndsInFooter() const {
  const volatile std::byte* last = data_ + (size_ - sizeof(uint64_t));
  std::byte seen[sizeof(uint64_t)];
  for (size_t i = 0; i < sizeof seen; ++i) seen[i] = last[i];
  return LoadU64(seen) == format::kSegmentFooterEnd;
}

absl::Status SegmentFile::Lost() const {
  const uint64_t end = size_ - sizeof(uint64_t);
  ASHLAR_RETURN_IF_ERROR(Populate(end, sizeof(uint64_t), "file"));  // names the lengths, if it is shorter now
  return DataLoss(path_, "file", end, "the file changed under its mapping");
}

absl::Status SegmentFile::ReadTail(const format::FileId& header_id) {
  const uint64_t footer_offset = size_ - format::kSegmentFooterBytes;
  ASHLAR_RETURN_IF_ERROR(Populate(footer_offset, format::kSegmentFooterBytes, "footer"));
  ASHLAR_ASSIGN_OR_RETURN(
      footer_, format::DecodeSegmentFooter(ByteSpan(data_ + footer_offset, format::kSegmentFooterBytes), header_id,
                                           size_, path_));
  ASHLAR_RETURN_IF_ERROR(Populate(footer_.root_offset, footer_offset - footer_.root_offset, "section table"));
  const ByteSpan roots(data_ + footer_.root_offset, uint64_t{footer_.root_count} * 8);
  if (SiteIsOn(Site::kCheckSegmentRoots) &&
      Checksum(roots, PlaceSeed(header_id, footer_.root_offset)) != footer_.root_checksum)
    return DataLoss(path_, kChecksumSection, footer_.root_offset, "checksum mismatch of the roots");
  for (size_t i = 0; i < footer_.root_count; ++i) roots_.push_back(LoadU64(roots.data() + i * 8));
  ASHLAR_ASSIGN_OR_RETURN(
      entries_, format::DecodeSectionTable(ByteSpan(data_ + footer_.table_offset, footer_offset - footer_.table_offset),
                                           footer_, path_));
  table_offset_ = footer_.data_end;
  page_count_ = PagesOf(footer_.data_end);
  verified_ = MakeBits(page_count_);
  table_verified_ = MakeBits(footer_.root_count);
  ASHLAR_RETURN_IF_ERROR(CheckZeros(table_offset_ + page_count_ * 8, footer_.root_offset));
  return CheckZeros(footer_.root_offset + roots.size(), footer_.table_offset);
}

absl::Status SegmentFile::CheckZeros(uint64_t from, uint64_t to) const {
  ASHLAR_RETURN_IF_ERROR(Populate(from, to - from, kChecksumSection));
  for (uint64_t at = from; at < to; ++at)
    if (SiteIsOn(Site::kCheckSegmentPadding) && data_[at] != std::byte{0})
      return DataLoss(path_, kChecksumSection, at, "padding is not zero");
  return absl::OkStatus();
}

const Section* SegmentFile::Find(format::SectionKind kind, uint32_t id) const {
  const auto found = by_key_.find(KeyOfSection(kind, id));
  return found != by_key_.end() ? found->second : nullptr;
}

absl::Status SegmentFile::Populate(uint64_t offset, uint64_t length, std::string_view section) const {
  if (region_ == nullptr || length == 0) return absl::OkStatus();
  return WithPlace(region_->Populate(offset, length), path_, section, offset);
}

absl::Status SegmentFile::VerifyTablePage(uint64_t table_page) const {
  std::atomic<uint64_t>& word = table_verified_[table_page / 64];
  const uint64_t bit = uint64_t{1} << (table_page % 64);
  if ((word.load(std::memory_order_acquire) & bit) != 0) return absl::OkStatus();
  const uint64_t offset = table_offset_ + table_page * kPageBytes;
  const uint64_t length = std::min<uint64_t>(kPageBytes, table_offset_ + page_count_ * 8 - offset);
  ASHLAR_RETURN_IF_ERROR(Populate(offset, length, kChecksumSection));
  if (SiteIsOn(Site::kCheckSegmentSums) &&
      format::PageChecksum(footer_.file_id, offset, ByteSpan(data_ + offset, length)) != roots_[table_page])
    return DataLoss(path_, kChecksumSection, offset, "checksum mismatch");
  word.fetch_or(bit, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status SegmentFile::HashPage(uint64_t page, std::string_view section) const {
  ASHLAR_RETURN_IF_ERROR(VerifyTablePage(page * 8 / kPageBytes));
  const uint64_t offset = page * kPageBytes;
  const uint64_t length = std::min<uint64_t>(kPageBytes, footer_.data_end - offset);
  const uint64_t sum = format::PageChecksum(footer_.file_id, offset, ByteSpan(data_ + offset, length));
  if (SiteIsOn(Site::kCheckSegmentPage) && sum != LoadU64(data_ + table_offset_ + page * 8))
    return DataLoss(path_, section, offset, "checksum mismatch");
  return absl::OkStatus();
}

absl::Status SegmentFile::VerifyRange(uint64_t offset, uint64_t length, std::string_view section,
                                      bool is_populated) const {
  if (length == 0) return absl::OkStatus();
  const uint64_t end = (offset + length - 1) / kPageBytes + 1;
  for (uint64_t page = offset / kPageBytes; page < end;) {
    if (IsVerified(page)) {
      ++page;
      continue;
    }
    uint64_t run_end = page + 1;  // pages that are not verified are made readable together
    while (run_end < end && !IsVerified(run_end)) ++run_end;
    const uint64_t run_bytes = std::min(run_end * kPageBytes, footer_.data_end) - page * kPageBytes;
    if (!is_populated) ASHLAR_RETURN_IF_ERROR(Populate(page * kPageBytes, run_bytes, section));
    for (; page < run_end; ++page) {
      ASHLAR_RETURN_IF_ERROR(HashPage(page, section));
      verified_[page / 64].fetch_or(uint64_t{1} << (page % 64), std::memory_order_release);
    }
  }
  return absl::OkStatus();
}

absl::Status SegmentFile::CopyBytes(env::WritableFile& out) const {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  for (uint64_t at = 0; at < size_; at += kPiece) {
    const uint64_t length = std::min(kPiece, size_ - at);
    if (at < footer_.data_end)
      ASHLAR_RETURN_IF_ERROR(VerifyRange(at, std::min(length, footer_.data_end - at), SectionAt(at)));
    ASHLAR_RETURN_IF_ERROR(Populate(at, length, "pages"));
    ASHLAR_RETURN_IF_ERROR(out.Append(ByteSpan(data_ + at, length)));
  }
  // The rest of the tail was verified when the file was opened.
  for (uint64_t page = 0; page < footer_.root_count; ++page) ASHLAR_RETURN_IF_ERROR(VerifyTablePage(page));
  ASHLAR_RETURN_IF_ERROR(out.Sync());
  return out.Close();
}

absl::Status SegmentFile::CopyTo(env::FileSystem& files, const std::string& path) const {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> out, files.CreateFile(path));
  const absl::Status status = CopyBytes(*out);
  if (!status.ok()) files.Remove(path).IgnoreError();
  return status;
}

std::string SegmentFile::SectionAt(uint64_t offset) const {
  std::string label = "header";
  for (const format::SectionEntry& e : entries_)
    if (e.offset <= offset) label = format::SectionLabel(e.kind, e.id);
  return label;
}

void SegmentFile::CheckPages(std::vector<absl::Status>* findings) const {
  const auto add = [findings](const absl::Status& status) {
    // A damaged page of checksums fails all the pages that it is for.
    if (!status.ok() && (findings->empty() || findings->back() != status)) findings->push_back(status);
  };
  for (uint64_t page = 0; page < page_count_; ++page) {
    const uint64_t offset = page * kPageBytes;
    const std::string section = SectionAt(offset);
    absl::Status status = Populate(offset, std::min<uint64_t>(kPageBytes, footer_.data_end - offset), section);
    if (status.ok()) status = HashPage(page, section);
    add(status);
  }
  uint64_t end = format::kFileHeaderBytes;
  for (const format::SectionEntry& e : entries_) {
    // Unknown optional sections are not listed, so only gaps that can hold no section are padding.
    const bool is_padding = e.offset == format::AlignSection(end);
    // A damaged page was named above.
    if (is_padding && VerifyRange(end, e.offset - end, "padding").ok()) add(CheckZeros(end, e.offset));
    end = e.offset + e.length;
  }
}

}  // namespace ashlar::segment
