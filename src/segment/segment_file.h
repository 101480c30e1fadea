// SegmentFile: the bytes of a segment file, mapped or loaded, cut into sections and checked page by page (SPEC S-1 to
// S-8).
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_FILE_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_FILE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/options.h"
#include "format/catalog_value.h"
#include "format/section_table.h"
#include "src/env/env.h"
#include "src/segment/segment.h"
#include "src/segment/verified_bytes.h"

namespace ashlar::segment {

class SegmentFile;

// One section of a file.
class Section final : public VerifiedBytes {
 public:
  Section(const SegmentFile* file, const format::SectionEntry& entry, const std::byte* data, bool all_verified);
  absl::Status Damage(uint64_t offset, std::string_view message) const override;
  const format::SectionEntry& entry() const { return entry_; }
  std::string label() const { return format::SectionLabel(entry_.kind, entry_.id); }
  // Makes all of it readable at once, so that pages that are verified one by one later cost no system call each.
  absl::Status Populate() const;
  // Verifies the next few pages, so that after enough calls all are; damage is left to those who need it. Whether all
  // are.
  bool VerifyAhead() const;

 protected:
  absl::Status Verify(uint64_t offset, uint64_t length) const override;

 private:
  const SegmentFile* file_;
  format::SectionEntry entry_;
  mutable std::atomic<bool> complete_{false};  // all of it was verified
  mutable std::atomic<uint64_t> ahead_{0};     // where VerifyAhead goes on
  mutable std::atomic<bool> populated_{false};
};

// What: opens a segment file and vouches for its bytes.
// Owns: the mapping or the array.
// Threads: immutable but for the bits of verified pages; any number of threads. Two may verify one page at once; both
// find
//   the same. A bit is set with release after its page was checked and read with acquire.
// Errors: DataLoss naming file, section and offset. In mapped mode a page is verified once: what happens to it later
// (evicted
//   and read again) is not seen.
class SegmentFile {
 public:
  static absl::StatusOr<std::unique_ptr<SegmentFile>> Open(env::Env env, const std::string& path,
                                                           const format::SegmentEntry& entry,
                                                           const format::StoreId& store_id, uint64_t catalog_generation,
                                                           const ReadOptions& options);
  // A file about which nothing else is known; a damaged header goes to `damage`. Salvage only.
  static absl::StatusOr<std::unique_ptr<SegmentFile>> OpenDamaged(env::Env env, const std::string& path,
                                                                  std::optional<format::StoreId>* store_id,
                                                                  std::vector<absl::Status>* damage);
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  const format::SegmentFooter& footer() const { return footer_; }
  const std::vector<std::unique_ptr<Section>>& sections() const { return sections_; }
  // Null if there is none.
  const Section* Find(format::SectionKind kind, uint32_t id = 0) const;

  // Checks the pages of [offset, offset + length) of the file; the range is inside the data. `is_populated`: and was
  // made readable.
  absl::Status VerifyRange(uint64_t offset, uint64_t length, std::string_view section, bool is_populated = false) const;
  // Makes a range readable, or says why it can't be read.
  absl::Status Populate(uint64_t offset, uint64_t length, std::string_view section) const;
  // See Segment::CopyTo.
  absl::Status CopyTo(env::FileSystem& files, const std::string& path) const;
  // See Segment.
  absl::Status CheckIntact() const {
    if (region_ == nullptr || (!region_->lost() && EndsInFooter())) [[likely]]
      return absl::OkStatus();
    return Lost();
  }
  // A bit for each page that VerifyRange found right.
  const std::atomic<uint64_t>* verified_pages() const { return verified_.get(); }
  const absl::Status& load_damage() const { return load_damage_; }
  // Every page, whether it was verified before or not, and the zeros between sections.
  void CheckPages(std::vector<absl::Status>* findings) const;

 private:
  struct FreeArray {
    std::align_val_t alignment;
    void operator()(std::byte* p) const;
  };

  SegmentFile() = default;
  absl::Status Load(const env::ReadableFile& file, const ReadOptions& options);
  // Verifies every page of an array; the first damage.
  absl::Status VerifyArray();
  bool EndsInFooter() const;
  absl::Status Lost() const;
  absl::Status ReadTail(const format::FileId& header_id);
  absl::Status CheckZeros(uint64_t from, uint64_t to) const;
  absl::Status CopyBytes(env::WritableFile& out) const;
  absl::Status HashPage(uint64_t page, std::string_view section) const;
  // Checks one page of the checksum table against its root.
  absl::Status VerifyTablePage(uint64_t table_page) const;
  bool IsVerified(uint64_t page) const {
    return (verified_[page / 64].load(std::memory_order_acquire) >> (page % 64) & 1) != 0;
  }
  std::string SectionAt(uint64_t offset) const;

  std::string path_;
  uint64_t size_ = 0;
  const std::byte* data_ = nullptr;
  std::unique_ptr<env::MappedRegion> region_;                          // mapped mode
  std::unique_ptr<std::byte, FreeArray> array_{nullptr, FreeArray{}};  // array mode
  absl::Status load_damage_;
  format::SegmentFooter footer_;
  std::vector<uint64_t> roots_;
  uint64_t table_offset_ = 0;  // of the page checksums
  uint64_t page_count_ = 0;
  mutable std::unique_ptr<std::atomic<uint64_t>[]> verified_;        // a bit a page
  mutable std::unique_ptr<std::atomic<uint64_t>[]> table_verified_;  // a bit a page of the checksum table
  std::vector<format::SectionEntry> entries_;
  std::vector<std::unique_ptr<Section>> sections_;
  absl::flat_hash_map<uint64_t, const Section*> by_key_;  // kind << 32 | id
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_FILE_H_
