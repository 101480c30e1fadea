// A segment whose file can't be opened: numbers from the catalog, and an error for everything else.
#include <utility>

#include "src/base/status.h"
#include "src/segment/segment.h"
#include "src/segment/segment_builder.h"

namespace ashlar::segment {
namespace {

class UnreadableSegment final : public Segment {
 public:
  UnreadableSegment(std::string path, format::SegmentEntry entry, absl::Status damage)
      : path_(std::move(path)), entry_(std::move(entry)), damage_(std::move(damage)) {}

  uint64_t number() const override { return entry_.number; }
  uint32_t document_count() const override { return entry_.documents; }
  DocumentId first_id() const override { return entry_.first_id; }
  DocumentId last_id() const override { return entry_.last_id; }
  const Schema& schema() const override { return no_schema_; }
  const std::string& analyzer_identity() const override { return no_identity_; }
  const std::string& path() const override { return path_; }
  std::map<std::string, uint64_t> SectionBytes() const override { return {}; }
  uint64_t file_bytes() const override { return entry_.file_bytes; }
  absl::Status CheckIntact() const override { return damage_; }
  absl::Status LoadDamage() const override { return damage_; }

  absl::StatusOr<std::optional<uint32_t>> FindKey(std::string_view) const override { return damage_; }
  absl::StatusOr<std::optional<uint32_t>> FindId(DocumentId) const override { return damage_; }
  absl::StatusOr<DocumentId> IdOf(uint32_t) const override { return damage_; }
  absl::StatusOr<std::string> KeyOf(uint32_t) const override { return damage_; }
  absl::StatusOr<ByteBuffer> StoredOf(uint32_t) const override { return damage_; }
  absl::Status VisitKeys(std::string_view, const std::function<bool(std::string_view, uint32_t)>&) const override {
    return damage_;
  }
  absl::StatusOr<LengthReader> Lengths(format::IndexId) const override { return damage_; }
  absl::StatusOr<LengthReader> SomeLengths(format::IndexId) const override { return damage_; }
  uint64_t LengthSum(format::IndexId) const override { return 0; }
  PostingCursor OpenTerm(format::IndexId, std::string_view, std::pmr::memory_resource*) const override {
    return PostingCursor(damage_);
  }
  PostingCursor OpenPositions(format::IndexId, std::string_view, std::pmr::memory_resource*) const override {
    return PostingCursor(damage_);
  }
  absl::Status ColumnValues(uint32_t, uint32_t, std::vector<Value>*) const override { return damage_; }
  absl::Status CopyTo(env::FileSystem&, const std::string&) const override { return damage_; }
  std::vector<absl::Status> Check() const override { return {damage_}; }

 private:
  const std::string path_;
  const format::SegmentEntry entry_;
  const absl::Status damage_;
  const Schema no_schema_;
  const std::string no_identity_;
};

}  // namespace

std::shared_ptr<const Segment> Segment::Unreadable(const std::string& directory, const format::SegmentEntry& entry,
                                                   absl::Status damage) {
  return std::make_shared<const UnreadableSegment>(env::JoinPath(directory, FileName(entry.number)), entry,
                                                   std::move(damage));
}

}  // namespace ashlar::segment
