// SegmentImpl: the reading side, with what merges and checks need beside the public calls.
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_IMPL_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_IMPL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/column.h"
#include "format/key_block.h"
#include "format/segment_meta.h"
#include "src/segment/index_reader.h"
#include "src/segment/section_reader.h"
#include "src/segment/segment.h"
#include "src/segment/segment_file.h"
#include "src/segment/stored_reader.h"

namespace ashlar::segment {

class SegmentImpl final : public Segment {
 public:
  static absl::StatusOr<std::shared_ptr<const SegmentImpl>> OpenFile(env::Env env, const std::string& directory,
                                                                     const format::SegmentEntry& entry,
                                                                     const format::StoreId& store_id,
                                                                     uint64_t catalog_generation,
                                                                     const ReadOptions& options);

  static absl::StatusOr<SalvagedSegment> OpenDamaged(env::Env env, const std::string& path, uint64_t number,
                                                     const SalvageHints& hints);

  uint64_t number() const override { return meta_.number; }
  uint32_t document_count() const override { return meta_.documents; }
  DocumentId first_id() const override { return meta_.first_id; }
  DocumentId last_id() const override { return meta_.last_id; }
  const Schema& schema() const override { return meta_.schema; }
  const std::string& analyzer_identity() const override { return meta_.analyzer_identity; }
  const std::string& path() const override { return file_->path(); }
  std::map<std::string, uint64_t> SectionBytes() const override;
  uint64_t file_bytes() const override { return file_->size(); }
  absl::Status CheckIntact() const override { return file_->CheckIntact(); }
  absl::Status LoadDamage() const override { return file_->load_damage(); }

  absl::StatusOr<std::optional<uint32_t>> FindKey(std::string_view key) const override;
  absl::StatusOr<std::optional<uint32_t>> FindId(DocumentId id) const override;
  absl::StatusOr<DocumentId> IdOf(uint32_t ordinal) const override;
  absl::StatusOr<std::string> KeyOf(uint32_t ordinal) const override;
  absl::StatusOr<ByteBuffer> StoredOf(uint32_t ordinal) const override;
  absl::Status VisitKeys(std::string_view from,
                         const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const override;
  absl::StatusOr<LengthReader> Lengths(format::IndexId index) const override;
  absl::StatusOr<LengthReader> SomeLengths(format::IndexId index) const override;
  uint64_t LengthSum(format::IndexId index) const override;
  PostingCursor OpenTerm(format::IndexId index, std::string_view term,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const override;
  PostingCursor OpenPositions(format::IndexId index, std::string_view term,
                              std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const override;
  absl::Status ColumnValues(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const override;
  absl::Status CopyTo(env::FileSystem& files, const std::string& path) const override {
    return file_->CopyTo(files, path);
  }
  std::vector<absl::Status> Check() const override;

  // --- for merges and checks ---
  const SegmentFile& file() const { return *file_; }
  const format::SegmentMeta& meta() const { return meta_; }
  const StoredReader& stored() const { return *stored_; }
  const std::vector<uint32_t>& group() const { return group_; }
  int key_field() const { return key_field_; }
  // Null: the segment has no such index of its own.
  absl::StatusOr<const IndexReader*> IndexOf(format::IndexId index) const;
  // Nullopt: the segment has no such column.
  absl::StatusOr<std::optional<format::ColumnHeader>> ColumnHeaderOf(uint32_t field) const;
  const Section* column(uint32_t field) const { return field < columns_.size() ? columns_[field] : nullptr; }
  absl::StatusOr<format::KeysHeader> KeysHeaderOf(const SectionReader& reader) const;
  const Section* keys() const { return keys_; }
  const Section* filter() const { return filter_; }
  const Section* ids() const { return ids_; }
  const Section* lengths(format::IndexId index) const;

 private:
  struct Index {
    absl::Status status;  // why there is no reader, if it could not be opened
    std::unique_ptr<IndexReader> reader;
  };
  SegmentImpl() = default;
  // What was read, unless the bytes were lost meanwhile.
  template <class T>
  T IfIntact(T result) const {
    if (absl::Status status = file_->CheckIntact(); !status.ok()) [[unlikely]]
      return status;
    return result;
  }
  absl::StatusOr<std::optional<uint32_t>> LookUpKey(std::string_view key) const;
  absl::StatusOr<std::optional<uint32_t>> LookUpId(DocumentId id) const;
  absl::StatusOr<DocumentId> ReadId(uint32_t ordinal) const;
  absl::StatusOr<std::string> ReadKey(uint32_t ordinal) const;
  absl::Status WalkKeys(std::string_view from,
                        const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const;
  absl::Status ReadColumn(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const;
  absl::Status ReadMeta(const format::SegmentEntry& entry);
  absl::StatusOr<format::SegmentMeta> DecodeMeta() const;
  // The sections that hold documents.
  absl::Status FindDocumentSections();
  absl::Status FindSections();
  Index OpenIndex(format::IndexId index) const;
  absl::Status OutOfRange(uint32_t ordinal) const;
  absl::StatusOr<uint32_t> OrdinalOfRank(const SectionReader& reader, const format::KeysHeader& header,
                                         uint32_t rank) const;
  absl::StatusOr<LengthReader> LengthsIn(const Section* section) const;
  PostingCursor OpenKey(std::string_view term, std::pmr::memory_resource* memory) const;
  PostingCursor OpenIn(const Index& index, std::string_view term, uint32_t member,
                       std::pmr::memory_resource* memory) const;
  // The place of a field in the group, or -1.
  int MemberOf(format::IndexId index) const;

  std::unique_ptr<SegmentFile> file_;
  format::SegmentMeta meta_;
  std::vector<uint32_t> group_;
  int key_field_ = -1;
  const Section* ids_ = nullptr;
  const Section* keys_ = nullptr;
  const Section* filter_ = nullptr;
  const Section* group_lengths_ = nullptr;
  std::vector<const Section*> lengths_;  // by field
  std::vector<const Section*> columns_;  // by field
  std::optional<StoredReader> stored_;
  Index group_index_;
  std::vector<Index> indexes_;  // by field
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_IMPL_H_
