// IndexWriter: writes one inverted index of a segment (SPEC T-*, P-*): the default group, or one field.
// Call order: (BeginTerm AddPosting+ EndTerm)* Finish TakeMember*
#ifndef ASHLAR_SRC_SEGMENT_INDEX_WRITER_H_
#define ASHLAR_SRC_SEGMENT_INDEX_WRITER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "format/term_block.h"
#include "src/base/bytes.h"
#include "src/segment/byte_sink.h"
#include "src/segment/segment_builder.h"

namespace ashlar::segment {

// The three sections of an index that was built in memory.
struct IndexBytes {
  ByteBuffer terms, headers, postings;
};

// What: turns sorted terms with sorted postings into an index's sections. The postings section is streamed to a sink,
// the
//   terms and headers sections are kept in memory until Finish(). The sections end with their own padding.
// Owns: buffers for one term's unfinished block or window, up to about 1 MiB of its positions, and 8 bytes for each of
// its
//   postings in smaller members of a group.
// Threads: one.
// Errors: InvalidArgument for rows out of order or out of shape; the sink's own. The first error is final.
class IndexWriter {
 public:
  // `lengths`: by ordinal, the lengths that the index's lists are scored with (the field's, or the group's).
  // `member_lengths`: for a group of two or more, each member's lengths by ordinal; otherwise not looked at. All must
  // outlive the writer, and so must `postings`. Ordinals beyond a span have length 0. `documents`: of the segment;
  // ordinals are below it.
  IndexWriter(const format::IndexShape& shape, uint32_t documents, std::span<const uint32_t> lengths,
              std::vector<std::span<const uint32_t>> member_lengths, ByteSink* postings);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  // Ascending bytes, 1 to 255 of them. About so many postings decide how the list is encoded, and nothing else.
  absl::Status BeginTerm(std::string_view term, uint64_t postings_expected);
  // `row.frequencies`: one a member, not all 0, at most 2^31 together. `row.positions`: as many as the frequencies say;
  // not looked at if the shape keeps none (P-1).
  absl::Status AddPosting(const PostingRow& row);
  absl::Status EndTerm();  // a term without postings leaves no trace
  // Pads the postings section and gives the other two.
  absl::Status Finish(ByteBuffer* terms, ByteBuffer* headers);

  // After Finish(), for a group of two or more and a member other than the largest: that field's own index, of shape
  // {members 1, no positions}, scored with `member_lengths[member]`. Once per member.
  IndexBytes TakeMember(uint32_t member);

  uint64_t posting_count() const;   // so far
  uint64_t bytes_buffered() const;  // terms, headers and members' indexes held in memory

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_INDEX_WRITER_H_
