// SegmentBuilderImpl: the builder, with what a merge needs beside the public calls.
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_BUILDER_IMPL_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_BUILDER_IMPL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/packed_numbers.h"
#include "format/segment_meta.h"
#include "src/segment/document_columns.h"
#include "src/segment/index_writer.h"
#include "src/segment/segment_builder.h"
#include "src/segment/segment_file_writer.h"
#include "src/segment/stored_writer.h"

namespace ashlar::segment {

// What: streams stored documents and postings to the file, keeps the rest of the documents in few bytes until the
// last one. Owns: the file until it is finished. Threads: one. Errors: InvalidArgument for calls or rows out of
// order, AlreadyExists for a key that is there twice (when the documents end), the
//   file's. After an error only destroying it makes sense.
class SegmentBuilderImpl final : public SegmentBuilder {
 public:
  static absl::StatusOr<std::unique_ptr<SegmentBuilderImpl>> Make(env::Env env, const std::string& directory,
                                                                  const SegmentSpec& spec);

  absl::Status AddDocument(const DocumentRow& row) override;
  absl::Status BeginIndex(format::IndexId index) override;
  absl::Status BeginTerm(std::string_view term, uint64_t postings_expected) override;
  absl::Status AddPosting(const PostingRow& row) override;
  absl::Status EndTerm() override;
  absl::Status EndIndex() override;
  absl::StatusOr<format::SegmentEntry> Finish() override;
  uint64_t bytes_written() const override { return file_->bytes_written(); }

  // For merges: a document whose stored values the caller gives to stored() itself.
  absl::Status AddDocumentWithoutStored(const DocumentRow& row);
  StoredWriter* stored() { return &*stored_; }

 private:
  // Of a document's fields, as a bit set.
  struct FieldPlan {
    bool has_length = false;
    int column = -1;  // place in columns_
  };
  SegmentBuilderImpl(const SegmentSpec& spec, std::unique_ptr<SegmentFileWriter> file);
  void PlanFields();
  absl::Status CheckRow(const DocumentRow& row) const;
  absl::Status AddLengths(const DocumentRow& row);
  absl::Status EndDocuments();
  absl::Status WriteKeys();
  absl::Status WriteLengths();
  absl::Status StartIndex(format::IndexId index);
  absl::Status WriteIndexSections(format::IndexId index, ByteSpan terms, ByteSpan headers);
  absl::Status WriteMembers();
  absl::Status WriteMeta();
  void Summarize(format::IndexId index, uint64_t terms, uint64_t postings);
  std::span<const uint32_t> LengthsOf(format::IndexId index) const;

  SegmentSpec spec_;
  std::unique_ptr<SegmentFileWriter> file_;
  std::optional<StoredWriter> stored_;
  std::vector<uint32_t> group_;           // fields
  std::vector<format::IndexId> indexes_;  // in BeginIndex order
  size_t next_index_ = 0;
  uint32_t largest_member_ = 0;
  int key_field_ = -1;
  std::vector<FieldPlan> plans_;  // by field

  bool documents_ended_ = false;
  uint32_t documents_ = 0;
  DocumentId first_id_ = 0, last_id_ = 0;
  format::NumberArrayWriter ids_;
  KeyTable keys_;
  std::vector<std::vector<uint32_t>> lengths_;  // by field; empty for fields without
  std::vector<uint32_t> group_lengths_;         // of a group of two or more
  std::vector<ColumnGatherer> columns_;
  std::vector<uint32_t> column_fields_;

  std::unique_ptr<IndexWriter> index_;
  format::IndexId index_id_ = 0;
  uint64_t index_terms_ = 0;  // terms that got a posting
  bool term_has_postings_ = false;
  std::vector<uint64_t> member_terms_, member_postings_;
  std::vector<bool> term_has_member_;
  std::vector<format::IndexSummary> summaries_;
  std::vector<format::LengthSummary> length_sums_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_BUILDER_IMPL_H_
