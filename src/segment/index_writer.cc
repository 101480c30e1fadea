#include "src/segment/index_writer.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "format/bit_pack.h"
#include "format/frontier.h"
#include "format/position_block.h"
#include "format/posting_block.h"
#include "src/base/check.h"
#include "src/base/status.h"

namespace ashlar::segment {
namespace {

constexpr size_t kSinkBytes = size_t{64} << 10;          // handed to the sink at once
constexpr size_t kPositionsHeldBytes = size_t{1} << 20;  // a list's payloads lie together up to this much of positions

// Lists of so many postings have dense windows (docs/adr/0009).
constexpr uint32_t kWindowsFromDocuments = 2 * format::kWindowDocuments;
constexpr uint32_t kDocumentsAPosting = 8;
bool WantsWindows(uint32_t documents, uint64_t postings) {
  return documents >= kWindowsFromDocuments && postings >= format::kBlockListPostings &&
         postings >= documents / kDocumentsAPosting;
}

// A bound that is always there, where no posting is.
constexpr format::Frontier::Pair kLeastPair{0, format::kCodeMax};

// Length codes by ordinal: a byte each, looked up once a posting.
std::vector<uint8_t> LengthCodes(std::span<const uint32_t> lengths) {
  std::vector<uint8_t> codes(lengths.size());
  std::transform(lengths.begin(), lengths.end(), codes.begin(), format::LengthCode);
  return codes;
}

double Average(std::span<const uint32_t> lengths) {
  uint64_t sum = 0;
  for (const uint32_t length : lengths) sum += length;
  return lengths.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(lengths.size());
}

uint8_t CodeAt(const std::vector<uint8_t>& codes, uint32_t ordinal) {
  return ordinal < codes.size() ? codes[ordinal] : uint8_t{0};
}

// Frequencies up to here are their own code.
inline uint8_t CodeOf(uint32_t frequency) {
  return frequency < format::kExactCodes ? static_cast<uint8_t>(frequency) : format::FrequencyCode(frequency);
}

}  // namespace

struct IndexWriter::Impl {
  Impl(const format::IndexShape& index_shape, uint32_t documents_of_segment, std::span<const uint32_t> lengths,
       std::vector<std::span<const uint32_t>> member_lengths, ByteSink* postings);

  // One member's index beside the group's.
  struct Member {
    MemorySink sink;
    std::unique_ptr<Impl> index;
    std::vector<std::pair<uint32_t, uint32_t>>
        postings;  // of the open term, with frequencies: how many decides its encoding
  };

  absl::Status Fail(absl::Status status) {
    error = status;
    return status;
  }
  absl::Status BeginTerm(std::string_view text, uint64_t postings_expected);
  absl::Status AddPosting(uint32_t ordinal, std::span<const uint32_t> frequencies,
                          std::span<const uint32_t> row_positions);
  absl::Status EndTerm();
  absl::Status Finish(ByteBuffer* terms_out, ByteBuffer* headers_out);

  void AddToMembers(uint32_t ordinal, std::span<const uint32_t> frequencies);
  absl::Status EndMembers();
  absl::Status BeginWindows();
  absl::Status FlushSlicesBefore(uint32_t ordinal);
  absl::Status FlushBlock();
  void AppendBlock(format::BlockHeader* header);
  void AppendSlice(format::BlockHeader* header);
  void GatherBounds(format::BlockHeader* header);
  absl::Status CloseGroup();
  absl::Status FlushPositions();
  void EndShortList(format::TermEntry* entry);
  absl::Status EndBlockList(format::TermEntry* entry);
  absl::Status Drain(size_t at_least);
  bool EndsGroup() const { return list.blocks.size() % format::kBlocksPerGroup == 0; }
  const format::PairLimits& PairsMax() const { return list.windows ? format::kWindowListPairs : format::kBlockListPairs; }
  uint64_t offset() const { return sink->offset() + pending.size(); }

  const format::IndexShape shape;
  const uint32_t segment_documents;
  ByteSink* const sink;
  const bool grouped;  // two members or more
  const std::vector<uint8_t> length_codes;
  const std::vector<uint8_t> largest_codes;  // the largest member's, only if grouped
  const format::ReductionScale scale;
  std::vector<std::unique_ptr<Member>> members;  // by member; null for the largest

  absl::Status error;
  format::TermsBuilder terms;
  ByteBuffer headers;
  ByteBuffer pending;  // of the postings section, not yet in the sink
  uint64_t postings_total = 0;

  // the open term
  bool in_term = false;
  bool wants_windows = false;
  std::string term;
  std::string previous_term;
  uint64_t list_begin = 0;
  uint64_t next_possible = 0;  // the least ordinal that may come
  uint64_t block_first_possible = 0;
  uint32_t term_postings = 0;
  uint32_t term_largest = 0;
  format::ListHeaderValues list;
  ByteBuffer positions;                // of closed and open groups, not yet in `pending`
  size_t unplaced_groups = 0;          // the last so many groups have their positions in `positions`
  uint64_t group_positions_begin = 0;  // within `positions`

  // the open block
  size_t count = 0;
  std::array<uint32_t, format::kBlockPostings> documents;
  std::array<uint32_t, format::kBlockPostings> totals;
  std::vector<uint32_t> frequencies;  // [member][posting], only if grouped
  std::vector<uint32_t> steps;

  // the open window, of a list with windows
  std::vector<uint16_t> window_offsets;
  std::vector<uint32_t> window_frequencies;
  ByteBuffer window_members;  // members' streams of its slices

  format::FrontierTable block_table, group_table;
  format::Frontier frontier;
  ByteBuffer inline_documents, inline_positions;
};

IndexWriter::Impl::Impl(const format::IndexShape& index_shape, uint32_t documents_of_segment,
                        std::span<const uint32_t> lengths, std::vector<std::span<const uint32_t>> member_lengths,
                        ByteSink* postings)
    : shape(index_shape),
      segment_documents(documents_of_segment),
      sink(postings),
      grouped(index_shape.members > 1),
      length_codes(LengthCodes(lengths)),
      largest_codes(index_shape.members > 1 ? LengthCodes(member_lengths.at(index_shape.largest))
                                            : std::vector<uint8_t>()),
      scale(Average(lengths)),
      terms(index_shape) {
  ASHLAR_CHECK(shape.members >= 1 && shape.members <= format::kMembersMax && shape.largest < shape.members);
  list.positions = shape.positions;
  list.members = grouped;
  if (!grouped) return;
  ASHLAR_CHECK(member_lengths.size() == shape.members);
  frequencies.resize(shape.members * format::kBlockPostings);
  for (uint32_t m = 0; m < shape.members; ++m) {
    members.emplace_back();
    if (m == shape.largest) continue;
    members[m] = std::make_unique<Member>();
    members[m]->index = std::make_unique<Impl>(format::IndexShape{}, documents_of_segment, member_lengths[m],
                                               std::vector<std::span<const uint32_t>>(), &members[m]->sink);
  }
}

absl::Status IndexWriter::Impl::BeginTerm(std::string_view text, uint64_t postings_expected) {
  ASHLAR_RETURN_IF_ERROR(error);
  if (in_term) return Fail(InvalidArgument("a term began before the one before it ended"));
  if (text.empty() || text.size() > format::kTermBytesMax) {
    return Fail(InvalidArgument("a term must have 1 to 255 bytes"));
  }
  if (text <= previous_term) return Fail(InvalidArgument("terms must ascend"));
  in_term = true;
  wants_windows = WantsWindows(segment_documents, postings_expected);
  list.windows = false;
  term.assign(text);
  list_begin = offset();
  next_possible = block_first_possible = 0;
  term_postings = term_largest = 0;
  return absl::OkStatus();
}

absl::Status IndexWriter::Impl::AddPosting(uint32_t ordinal, std::span<const uint32_t> row_frequencies,
                                           std::span<const uint32_t> row_positions) {
  ASHLAR_RETURN_IF_ERROR(error);
  if (!in_term || ordinal < next_possible || ordinal == format::kNoDocument) {
    return Fail(InvalidArgument("ordinals of a term must ascend"));
  }
  if (row_frequencies.size() != shape.members) return Fail(InvalidArgument("a posting needs one frequency a member"));
  uint64_t total = 0;
  for (const uint32_t f : row_frequencies) total += f;
  if (total == 0 || total > format::kFrequencyMax) {
    return Fail(InvalidArgument("a posting's frequency must be 1 to 2^31"));
  }
  if (list.windows) ASHLAR_RETURN_IF_ERROR(FlushSlicesBefore(ordinal));
  if (shape.positions &&
      (row_positions.size() != total || !format::AppendSteps(row_frequencies, row_positions, &steps))) {
    return Fail(InvalidArgument("a posting's positions must ascend and be as many as its frequencies say"));
  }
  documents[count] = ordinal;
  totals[count] = static_cast<uint32_t>(total);
  if (grouped) {
    for (uint32_t m = 0; m < shape.members; ++m) {
      frequencies[m * format::kBlockPostings + count] = row_frequencies[m];
    }
    if (row_frequencies[shape.largest] != 0) ++term_largest;
    AddToMembers(ordinal, row_frequencies);
  }
  ++count;
  ++term_postings;
  next_possible = uint64_t{ordinal} + 1;
  if (list.windows || count < format::kBlockPostings) return absl::OkStatus();
  return wants_windows && list.blocks.empty() ? BeginWindows() : FlushBlock();
}

void IndexWriter::Impl::AddToMembers(uint32_t ordinal, std::span<const uint32_t> row_frequencies) {
  for (uint32_t m = 0; m < shape.members; ++m)
    if (m != shape.largest && row_frequencies[m] != 0) members[m]->postings.emplace_back(ordinal, row_frequencies[m]);
}

absl::Status IndexWriter::Impl::EndMembers() {
  for (auto& member : members) {
    if (member == nullptr || member->postings.empty()) continue;
    Impl& index = *member->index;
    absl::Status status = index.BeginTerm(term, member->postings.size());
    for (const auto& [ordinal, frequency] : member->postings)
      if (status.ok()) status = index.AddPosting(ordinal, {&frequency, 1}, {});
    if (status.ok()) status = index.EndTerm();
    if (!status.ok()) return Fail(status);
    member->postings.clear();
  }
  return absl::OkStatus();
}

// The list is long enough to have blocks: what was gathered for a first one goes into slices.
absl::Status IndexWriter::Impl::BeginWindows() {
  list.windows = true;
  const auto gathered_documents = documents;
  const auto gathered_totals = totals;
  const auto gathered_frequencies = frequencies;
  const std::vector<uint32_t> gathered_steps = std::exchange(steps, {});
  const size_t n = std::exchange(count, 0);
  size_t step = 0;
  for (size_t i = 0; i < n; ++i) {
    ASHLAR_RETURN_IF_ERROR(FlushSlicesBefore(gathered_documents[i]));
    documents[count] = gathered_documents[i];
    totals[count] = gathered_totals[i];
    for (uint32_t m = 0; grouped && m < shape.members; ++m)
      frequencies[m * format::kBlockPostings + count] = gathered_frequencies[m * format::kBlockPostings + i];
    ++count;
    if (!shape.positions) continue;
    const auto from = gathered_steps.begin() + static_cast<ptrdiff_t>(step);
    steps.insert(steps.end(), from, from + gathered_totals[i]);
    step += gathered_totals[i];
  }
  return absl::OkStatus();
}

// Closes slices until the open one is that of `ordinal`.
absl::Status IndexWriter::Impl::FlushSlicesBefore(uint32_t ordinal) {
  while (list.blocks.size() < ordinal / format::kSliceDocuments) ASHLAR_RETURN_IF_ERROR(FlushBlock());
  return absl::OkStatus();
}

// The block's frontier, and the largest member's extremes in a group.
void IndexWriter::Impl::GatherBounds(format::BlockHeader* header) {
  for (size_t i = 0; i < count; ++i) block_table.Add(CodeOf(totals[i]), CodeAt(length_codes, documents[i]));
  block_table.Take(&frontier);
  group_table.Add(frontier);
  format::ReduceFrontier(scale, PairsMax().block, &frontier);
  header->pair_count = static_cast<uint8_t>(frontier.count);
  std::copy_n(frontier.pairs.begin(), frontier.count, header->pairs.begin());
  if (count == 0) header->pairs[header->pair_count++] = kLeastPair;
  if (!grouped) return;
  header->largest = {0, format::kCodeMax};
  const uint32_t* largest = &frequencies[shape.largest * format::kBlockPostings];
  for (size_t i = 0; i < count; ++i) {
    if (largest[i] == 0) continue;
    header->largest.frequency = std::max(header->largest.frequency, CodeOf(largest[i]));
    header->largest.length = std::min(header->largest.length, CodeAt(largest_codes, documents[i]));
  }
}

absl::Status IndexWriter::Impl::FlushBlock() {
  if (EndsGroup()) {
    list.groups.emplace_back();
    list.groups.back().payload_base = offset();
    group_positions_begin = positions.size();
    ++unplaced_groups;
  }
  format::BlockHeader header;
  header.count = static_cast<uint8_t>(count);
  GatherBounds(&header);
  if (list.windows) {
    AppendSlice(&header);
  } else {
    AppendBlock(&header);
  }
  if (shape.positions) {
    format::AppendPositionBlock(steps, &positions);
    steps.clear();
  }
  const uint64_t payload_bytes = offset() - list.groups.back().payload_base + window_members.size();
  const uint64_t positions_end = positions.size() - group_positions_begin;
  if (payload_bytes > 0xFFFFFFFFu || positions_end > 0xFFFFFFFFu) {
    return Fail(InvalidArgument("the positions of 4,096 postings of one term pass 4 GiB"));
  }
  header.positions_end = static_cast<uint32_t>(positions_end);
  list.blocks.push_back(header);
  block_first_possible = next_possible;
  count = 0;
  if (EndsGroup()) ASHLAR_RETURN_IF_ERROR(CloseGroup());
  return Drain(kSinkBytes);
}

void IndexWriter::Impl::AppendBlock(format::BlockHeader* header) {
  header->last_document = documents[count - 1];
  format::AppendPackedBlock(block_first_possible, {documents.data(), count}, {totals.data(), count}, &pending);
  for (uint32_t m = 0; grouped && m < shape.members; ++m) {
    if (m != shape.largest) format::AppendStream(&frequencies[m * format::kBlockPostings], count, &pending);
  }
  header->payload_end = static_cast<uint32_t>(offset() - list.groups.back().payload_base);
}

void IndexWriter::Impl::AppendSlice(format::BlockHeader* header) {
  for (size_t i = 0; i < count; ++i) {
    window_offsets.push_back(static_cast<uint16_t>(documents[i] % format::kWindowDocuments));
    window_frequencies.push_back(totals[i]);
  }
  for (uint32_t m = 0; grouped && count != 0 && m < shape.members; ++m) {
    if (m != shape.largest) format::AppendStream(&frequencies[m * format::kBlockPostings], count, &window_members);
  }
  header->payload_end = static_cast<uint32_t>(window_members.size());
}

absl::Status IndexWriter::Impl::CloseGroup() {
  group_table.Take(&frontier);
  format::ReduceFrontier(scale, PairsMax().group, &frontier);
  format::GroupHeader& group = list.groups.back();
  group.pair_count = static_cast<uint8_t>(frontier.count);
  std::copy_n(frontier.pairs.begin(), frontier.count, group.pairs.begin());
  if (frontier.count == 0) group.pairs[group.pair_count++] = kLeastPair;
  if (list.windows) {
    group.window = format::AppendWindow(window_offsets, window_frequencies, &pending);
    ByteWriter(&pending).Span(window_members);
    group.payload_bytes = static_cast<uint32_t>(offset() - group.payload_base);
    window_offsets.clear();
    window_frequencies.clear();
    window_members.clear();
  }
  // Not a place yet: FlushPositions adds where the buffer goes.
  group.positions_base = group_positions_begin;
  return positions.size() >= kPositionsHeldBytes ? FlushPositions() : absl::OkStatus();
}

absl::Status IndexWriter::Impl::FlushPositions() {
  const uint64_t base = offset();
  for (size_t g = list.groups.size() - unplaced_groups; g < list.groups.size(); ++g) {
    list.groups[g].positions_base += base;
  }
  unplaced_groups = 0;
  ByteWriter(&pending).Span(positions);
  positions.clear();
  return Drain(kSinkBytes);
}

absl::Status IndexWriter::Impl::EndTerm() {
  ASHLAR_RETURN_IF_ERROR(error);
  if (!in_term) return Fail(InvalidArgument("no term to end"));
  in_term = false;
  ASHLAR_RETURN_IF_ERROR(EndMembers());
  previous_term.swap(term);
  if (term_postings == 0) return absl::OkStatus();
  format::TermEntry entry;
  entry.postings = term_postings;
  entry.largest_postings = grouped ? term_largest : term_postings;
  if (term_postings < format::kBlockListPostings) {
    EndShortList(&entry);
  } else {
    ASHLAR_RETURN_IF_ERROR(EndBlockList(&entry));
  }
  terms.Add(previous_term, entry);
  postings_total += term_postings;
  return Drain(kSinkBytes);
}

void IndexWriter::Impl::EndShortList(format::TermEntry* entry) {
  const bool single = term_postings == 1;
  inline_documents.clear();
  inline_positions.clear();
  ByteBuffer* out = single ? &inline_documents : &pending;
  const size_t documents_begin = out->size();
  std::vector<uint32_t> row(grouped ? shape.members : 0);
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t m = 0; m < row.size(); ++m) row[m] = frequencies[m * format::kBlockPostings + i];
    const std::span<const uint32_t> posting = grouped ? std::span<const uint32_t>(row) : std::span(&totals[i], 1);
    format::AppendShortPosting(static_cast<uint32_t>(documents[i] - next), posting, shape.largest, out);
    next = uint64_t{documents[i]} + 1;
  }
  if (!single) entry->document_bytes = pending.size() - documents_begin;
  entry->inline_documents = inline_documents;

  entry->positions_inline = single && shape.positions && totals[0] <= format::kInlinePositionsMax;
  out = entry->positions_inline ? &inline_positions : &pending;
  const size_t positions_begin = out->size();
  ByteWriter writer(out);
  for (const uint32_t step : steps) writer.Varint(step);
  if (!entry->positions_inline) entry->position_bytes = out->size() - positions_begin;
  entry->inline_positions = inline_positions;
  steps.clear();
  count = 0;
}

absl::Status IndexWriter::Impl::EndBlockList(format::TermEntry* entry) {
  if (count != 0) ASHLAR_RETURN_IF_ERROR(FlushBlock());
  while (list.windows && !EndsGroup()) ASHLAR_RETURN_IF_ERROR(FlushBlock());  // windows are whole
  if (!EndsGroup()) ASHLAR_RETURN_IF_ERROR(CloseGroup());
  ASHLAR_RETURN_IF_ERROR(FlushPositions());
  entry->headers_offset = headers.size();
  entry->list_bytes = offset() - list_begin;
  list.postings = term_postings;
  list.largest_postings = entry->largest_postings;
  format::AppendListHeaders(list, &headers);
  list.blocks.clear();
  list.groups.clear();
  return absl::OkStatus();
}

absl::Status IndexWriter::Impl::Drain(size_t at_least) {
  if (pending.size() < at_least) return absl::OkStatus();
  if (absl::Status s = sink->Append(pending); !s.ok()) return Fail(s);
  pending.clear();
  return absl::OkStatus();
}

absl::Status IndexWriter::Impl::Finish(ByteBuffer* terms_out, ByteBuffer* headers_out) {
  ASHLAR_RETURN_IF_ERROR(error);
  if (in_term) return Fail(InvalidArgument("a term was not ended"));
  ByteWriter(&pending).Zeros(format::kPackedSlack);
  ByteWriter(&headers).Zeros(format::kPackedSlack);
  ASHLAR_RETURN_IF_ERROR(Drain(1));
  if (!terms.Finish(terms_out)) return Fail(ResourceExhausted("the dictionary's index passes 4 GiB"));
  *headers_out = std::move(headers);
  return absl::OkStatus();
}

IndexWriter::IndexWriter(const format::IndexShape& shape, uint32_t documents, std::span<const uint32_t> lengths,
                         std::vector<std::span<const uint32_t>> member_lengths, ByteSink* postings)
    : impl_(std::make_unique<Impl>(shape, documents, lengths, std::move(member_lengths), postings)) {}
IndexWriter::~IndexWriter() = default;

absl::Status IndexWriter::BeginTerm(std::string_view term, uint64_t postings_expected) {
  return impl_->BeginTerm(term, postings_expected);
}
absl::Status IndexWriter::AddPosting(const PostingRow& row) {
  return impl_->AddPosting(row.ordinal, row.frequencies, row.positions);
}
absl::Status IndexWriter::EndTerm() { return impl_->EndTerm(); }

absl::Status IndexWriter::Finish(ByteBuffer* terms, ByteBuffer* headers) { return impl_->Finish(terms, headers); }

IndexBytes IndexWriter::TakeMember(uint32_t member) {
  ASHLAR_CHECK(member < impl_->members.size() && impl_->members[member] != nullptr);
  IndexBytes bytes;
  const std::unique_ptr<Impl::Member> taken = std::move(impl_->members[member]);
  // In memory nothing can fail that did not fail on the group's own list before.
  const absl::Status status = taken->index->Finish(&bytes.terms, &bytes.headers);
  ASHLAR_CHECK(status.ok());
  bytes.postings = std::move(taken->sink.bytes());
  return bytes;
}

uint64_t IndexWriter::posting_count() const { return impl_->postings_total; }

uint64_t IndexWriter::bytes_buffered() const {
  uint64_t bytes = impl_->terms.bytes() + impl_->headers.size() + impl_->pending.size() + impl_->positions.size();
  for (const auto& member : impl_->members) {
    if (member == nullptr) continue;
    bytes += member->sink.offset() + member->index->terms.bytes() + member->index->headers.size();
  }
  return bytes;
}

}  // namespace ashlar::segment
