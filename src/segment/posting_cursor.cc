#include "src/segment/posting_cursor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/position_block.h"
#include "src/base/status.h"
#include "src/segment/block_positions.h"
#include "src/segment/unpacking.h"
#include "src/simd/kernels.h"

namespace ashlar::segment {
namespace {

// What another build may understand, at the place of `here`.
absl::Status Newer(const absl::Status& here, std::string_view what) {
  const ErrorPlace place = PlaceOf(here).value_or(ErrorPlace());
  return WithPlace(Unimplemented(absl::StrCat(place.file, ": ", ToAbsl(what))), place.file, place.section,
                   place.offset);
}

}  // namespace

// Postings are decoded into arrays by "raw" index: all postings of the block, or of the short list. A filtered cursor
// shows those of its member and remembers their raw indexes.
struct PostingCursor::State {
  explicit State(std::pmr::memory_resource* of) : memory(of) {}
  ~State() {
    if (arrays != nullptr) std::pmr::polymorphic_allocator<>(memory).deallocate_object(arrays, arrays_size);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  ListSource source;
  uint32_t member = kAllMembers;  // kAllMembers: unfiltered
  bool has_blocks = false;
  absl::Status status;
  format::ListHeaders headers;  // with blocks
  uint32_t block = 0;
  uint32_t decoded = kNone;     // the block whose postings are in the arrays
  uint64_t first_possible = 0;  // the least ordinal that a later block may hold
  format::Window window;        // of a list with windows: the open one
  uint32_t window_number = kNone;
  bool exceptions_checked = false;  // of that window

  uint32_t raw_count = 0;
  uint32_t* documents = nullptr;  // by raw index
  uint32_t* totals = nullptr;
  uint32_t* members = nullptr;  // [member * stride + raw index], of a group of two or more
  uint32_t stride = 0;
  const std::byte* frequencies_at = nullptr;  // of this block, that are not decoded yet
  bool members_known = false;                 // decoded for this block
  uint64_t members_offset = 0;                // in the postings section: this block's streams of members
  uint64_t payload_end = 0;
  uint32_t* shown_documents = nullptr;  // only filtered: the member's postings, and their raw indexes
  uint32_t* shown_frequencies = nullptr;
  uint32_t* shown_raw = nullptr;
  std::pmr::memory_resource* memory;  // of the state and the arrays
  uint32_t* arrays = nullptr;
  size_t arrays_size = 0;
  // Kernels read up to so many values behind those that they are asked for.
  static constexpr uint32_t kReadBehind = 16;
  static_assert(kReadBehind >= format::kUnpackSlack);
  std::array<uint32_t, 1 + kReadBehind> one;  // the arrays of a single posting

  ByteSpan short_positions;  // of a short list: all
  bool short_positions_known = false;
  uint64_t positions_offset = 0;  // in the postings section, for those that are not inline
  uint64_t positions_bytes = 0;
  uint32_t positions_raw = 0;  // of a short list: this posting's begin at the byte positions_before
  uint64_t positions_before = 0;
  bool positions_open = false;  // block_positions are this block's
  std::unique_ptr<BlockPositions> block_positions;

  bool grouped() const { return source.shape.members > 1; }
  bool filtered() const { return member != kAllMembers; }

  void Allocate(uint32_t postings);
  // Decode a short list of so many postings; false for damage.
  bool ReadShort(uint32_t postings, ByteReader* in);
  bool ReadShortGroup(uint32_t postings, ByteReader* in);
  absl::Status Damage(uint64_t offset, std::string_view message) const {
    return source.postings->Damage(offset, message);
  }
  // The documents; frequencies too where that is not a pass of its own.
  absl::Status DecodeBlock(uint32_t number);
  absl::Status DecodeFrequencies();
  absl::Status DecodeSlice(uint32_t number);
  absl::Status OpenWindow(uint32_t number);
  absl::Status DecodeMembers();
  uint32_t RawIndex(uint32_t at) const { return filtered() ? shown_raw[at] : at; }
  uint32_t FrequencyOf(uint32_t of_member, uint32_t raw) const {
    return grouped() ? members[of_member * stride + raw] : totals[raw];
  }
  absl::Status OpenPositions();
  absl::Status AppendPositions(uint32_t raw, uint64_t skip, uint32_t n, std::vector<uint32_t>* out);
  absl::Status ReadShortSteps(uint32_t raw, uint64_t skip, uint32_t n, std::vector<uint32_t>* out);
};

void PostingCursor::State::Allocate(uint32_t postings) {
  if (postings == 1 && !grouped()) {
    documents = &one[0];
    totals = &one[1];
    return;
  }
  stride = postings + kReadBehind;
  const size_t rows = 2 + (grouped() ? source.shape.members : 0) + (filtered() ? 3 : 0);
  arrays_size = rows * stride;
  uint32_t* next = arrays = std::pmr::polymorphic_allocator<>(memory).allocate_object<uint32_t>(arrays_size);
  const auto take = [&](size_t n) {
    uint32_t* row = next;
    next += n * stride;
    return row;
  };
  documents = take(1);
  totals = take(1);
  if (grouped()) members = take(source.shape.members);
  if (filtered()) {
    shown_documents = take(1);
    shown_frequencies = take(1);
    shown_raw = take(1);
  }
}

bool PostingCursor::State::ReadShort(uint32_t postings, ByteReader* in) {
  uint64_t next = 0;
  for (uint32_t i = 0; i < postings; ++i) {
    format::ShortPosting posting;
    const bool read = format::ReadShortPosting(in, &posting);
    next += posting.gap;
    if (!read || next >= source.document_count) return false;
    documents[i] = static_cast<uint32_t>(next++);
    totals[i] = posting.frequency;
  }
  return true;
}

bool PostingCursor::State::ReadShortGroup(uint32_t postings, ByteReader* in) {
  std::pmr::vector<uint32_t> row(source.shape.members, memory);
  uint64_t next = 0;
  for (uint32_t i = 0; i < postings; ++i) {
    format::ShortPosting posting;
    const bool read = format::ReadShortPosting(in, source.shape.largest, row, &posting);
    next += posting.gap;
    if (!read || next >= source.document_count) return false;
    documents[i] = static_cast<uint32_t>(next++);
    totals[i] = posting.frequency;
    for (size_t m = 0; m < row.size(); ++m) members[m * stride + i] = row[m];
  }
  return true;
}

absl::Status PostingCursor::State::OpenWindow(uint32_t number) {
  if (number == window_number) return absl::OkStatus();
  window_number = kNone;
  uint64_t offset, bytes;
  headers.WindowPayload(number, &offset, &bytes);
  ASHLAR_RETURN_IF_ERROR(source.postings->Ensure(offset, bytes));
  ASHLAR_RETURN_IF_ERROR(source.postings->Ensure(offset + bytes, format::kPackedSlack));
  const format::WindowShape shape = headers.ShapeOf(number);
  if (static_cast<uint8_t>(shape.encoding) > static_cast<uint8_t>(format::WindowEncoding::kBitmap))
    return Newer(Damage(offset, ""), "a window encoding of a later version");
  const uint8_t* const counts = headers.counts + size_t{number} * format::kBlocksPerGroup;
  if (!window.Open(source.postings->data() + offset, bytes, shape, counts) || (!grouped() && window.size() != bytes))
    return Damage(offset, "a window is malformed");
  window_number = number;
  exceptions_checked = false;
  return absl::OkStatus();
}

absl::Status PostingCursor::State::DecodeSlice(uint32_t number) {
  decoded = kNone;
  const auto in_window = static_cast<uint32_t>(number / format::kBlocksPerGroup);
  const auto slice = static_cast<uint32_t>(number % format::kBlocksPerGroup);
  ASHLAR_RETURN_IF_ERROR(OpenWindow(in_window));
  uint64_t offset, bytes;
  headers.WindowPayload(in_window, &offset, &bytes);
  if (!exceptions_checked && !window.ExceptionsAreValid()) return Damage(offset, "a window's exceptions are malformed");
  exceptions_checked = true;
  const uint32_t n = headers.Count(number);
  if (!window.DecodeSlice(slice, in_window * format::kWindowDocuments, documents, totals, kSliceDecoding))
    return Damage(offset, "a window's postings are not as many as its headers say");
  if (n != 0 && documents[n - 1] >= source.document_count)
    return Damage(offset, "a posting's ordinal is beyond the documents");
  block = number;
  decoded = number;
  raw_count = n;
  frequencies_at = nullptr;
  members_known = false;
  positions_open = false;
  if (!grouped()) return absl::OkStatus();
  uint32_t begin, end;
  if (!headers.MemberStreams(number, &begin, &end) || end > bytes - window.size())
    return Damage(offset, "members' frequencies are beyond their window");
  members_offset = offset + window.size() + begin;
  payload_end = offset + window.size() + end;
  return absl::OkStatus();
}

absl::Status PostingCursor::State::DecodeBlock(uint32_t number) {
  if (headers.windows) return DecodeSlice(number);
  decoded = kNone;
  const auto encoding = static_cast<format::BlockEncoding>(headers.encodings[number]);
  uint64_t offset, bytes;
  if (!headers.Payload(number, &offset, &bytes)) return Damage(0, "a block's payload ends before it begins");
  if (encoding != format::BlockEncoding::kPacked) {
    if (headers.encodings[number] == 0) return Damage(offset, "block encoding 0");
    return Newer(Damage(offset, ""), "a block encoding of a later version");
  }
  const uint32_t n = headers.Count(number);
  const uint32_t last = headers.LastDocument(number);
  const uint64_t first = headers.FirstPossible(number);
  if (n > format::kBlockPostings) return Damage(offset, "a block of more than 128 postings");
  if (last >= source.document_count) return Damage(offset, "a posting's ordinal is beyond the documents");
  if (first < first_possible) return Damage(offset, "last documents of blocks do not ascend");
  if (bytes > source.postings->size()) return Damage(offset, "a block's payload is beyond its section");
  ASHLAR_RETURN_IF_ERROR(source.postings->Ensure(offset, bytes + format::kPackedSlack));
  const std::byte* in = source.postings->data() + offset;
  frequencies_at = format::ReadPackedDocuments(in, in + bytes, n, first, last, documents, kUnpacking);
  if (frequencies_at == nullptr) return Damage(offset, "a block's documents are malformed");
  block = number;
  decoded = number;
  raw_count = n;
  first_possible = uint64_t{last} + 1;
  members_known = false;
  payload_end = offset + bytes;
  positions_open = false;
  return absl::OkStatus();
}

absl::Status PostingCursor::State::DecodeFrequencies() {
  if (frequencies_at == nullptr) return absl::OkStatus();
  const std::byte* const begin = std::exchange(frequencies_at, nullptr);
  const std::byte* const end = source.postings->data() + payload_end;
  const std::byte* const rest = format::ReadPackedFrequencies(begin, end, raw_count, totals, kUnpacking);
  if (rest == nullptr || (!grouped() && rest != end)) {
    std::fill_n(totals, raw_count, 1u);  // for who holds on to them
    return Damage(static_cast<uint64_t>(begin - source.postings->data()), "a block's frequencies are malformed");
  }
  members_offset = static_cast<uint64_t>(rest - source.postings->data());
  return absl::OkStatus();
}

absl::Status PostingCursor::State::DecodeMembers() {
  if (members_known || !grouped()) return absl::OkStatus();
  const std::byte* in = source.postings->data() + members_offset;
  const std::byte* end = source.postings->data() + payload_end;
  uint32_t* largest = members + size_t{source.shape.largest} * stride;
  std::copy_n(totals, raw_count, largest);
  for (uint32_t m = 0; m < source.shape.members; ++m) {
    if (m == source.shape.largest) continue;
    if (raw_count == 0) continue;  // a slice without postings has no streams
    uint32_t* row = members + size_t{m} * stride;
    in = format::ReadStream(in, end, raw_count, row);
    if (in == nullptr) return Damage(members_offset, "a member's frequencies are malformed");
    for (uint32_t i = 0; i < raw_count; ++i) {
      if (row[i] > largest[i]) return Damage(members_offset, "members' frequencies pass their sum");
      largest[i] -= row[i];
    }
  }
  if (in != end) return Damage(members_offset, "a block's payload is longer than its streams");
  members_known = true;
  return absl::OkStatus();
}

absl::Status PostingCursor::State::OpenPositions() {
  if (positions_open) return absl::OkStatus();
  if (!headers.Positions(block, &positions_offset, &positions_bytes) || positions_bytes > source.postings->size()) {
    return Damage(0, "a block's positions are beyond their section");
  }
  ASHLAR_RETURN_IF_ERROR(source.postings->Ensure(positions_offset, positions_bytes + format::kPackedSlack));
  const std::byte* in = source.postings->data() + positions_offset;
  if (block_positions == nullptr) block_positions = std::make_unique<BlockPositions>();
  block_positions->Open(in, in + positions_bytes, totals, raw_count);
  positions_open = true;
  return absl::OkStatus();
}

// Appends the positions of one member in a posting, after `skip` ones of others.
absl::Status PostingCursor::State::AppendPositions(uint32_t raw, uint64_t skip, uint32_t n,
                                                   std::vector<uint32_t>* out) {
  if (!has_blocks) {
    const size_t from = out->size();
    ASHLAR_RETURN_IF_ERROR(ReadShortSteps(raw, skip, n, out));
    if (format::SumSteps({&n, 1}, std::span(*out).subspan(from))) return absl::OkStatus();
    return Damage(positions_offset, "a position passes 32 bits");
  }
  ASHLAR_RETURN_IF_ERROR(OpenPositions());
  if (block_positions->Append(raw, skip, n, out)) return absl::OkStatus();
  return Damage(positions_offset, "a block's positions are malformed");
}

// Appends n steps of a posting, after `skip` of it.
absl::Status PostingCursor::State::ReadShortSteps(uint32_t raw, uint64_t skip, uint32_t n, std::vector<uint32_t>* out) {
  if (!short_positions_known) {
    ASHLAR_RETURN_IF_ERROR(source.postings->Ensure(positions_offset, positions_bytes));
    short_positions = {source.postings->data() + positions_offset, positions_bytes};
    short_positions_known = true;
  }
  ByteReader in(short_positions.subspan(positions_before));
  const uint64_t begin = positions_before;
  for (; positions_raw < raw; ++positions_raw) {
    for (uint32_t i = 0; in.ok() && i < totals[positions_raw]; ++i) in.Varint();
    positions_before = begin + in.position();
  }
  for (uint64_t i = 0; in.ok() && i < skip; ++i) in.Varint();
  bool fits = true;
  for (uint32_t i = 0; in.ok() && fits && i < n; ++i) {
    const uint64_t step = in.Varint();
    fits = step <= 0xFFFFFFFFu;
    out->push_back(static_cast<uint32_t>(step));
  }
  if (!in.ok() || !fits) return Damage(positions_offset, "a list's positions are malformed");
  return absl::OkStatus();
}

PostingCursor::PostingCursor() = default;
PostingCursor::~PostingCursor() = default;

// Arrays live in the state, so that the pointers to them survive a move; the source is left empty.
PostingCursor::PostingCursor(PostingCursor&& other) noexcept { *this = std::move(other); }

PostingCursor& PostingCursor::operator=(PostingCursor&& other) noexcept {
  if (this == &other) return *this;
  document_ = other.document_;
  frequency_ = other.frequency_;
  at_ = other.at_;
  count_ = other.count_;
  documents_ = other.documents_;
  frequencies_ = other.frequencies_;
  postings_ = other.postings_;
  state_ = std::move(other.state_);
  other.postings_ = 0;
  other.MoveToEnd();
  return *this;
}

std::unique_ptr<PostingCursor::State, PostingCursor::Delete> PostingCursor::NewState(
    std::pmr::memory_resource* memory) {
  return std::unique_ptr<State, Delete>(std::pmr::polymorphic_allocator<>(memory).new_object<State>(memory));
}

void PostingCursor::Delete::operator()(State* state) const {
  std::pmr::polymorphic_allocator<>(state->memory).delete_object(state);
}

PostingCursor::PostingCursor(absl::Status error) : state_(NewState(std::pmr::get_default_resource())) {
  state_->status = std::move(error);
}

PostingCursor PostingCursor::Open(const ListSource& source, const format::TermInfo& info, uint32_t member,
                                  std::pmr::memory_resource* memory) {
  if (member != kAllMembers && member >= source.shape.members) {
    return PostingCursor(InvalidArgument("the index has no such member"));
  }
  PostingCursor cursor;
  cursor.state_ = NewState(memory);
  State& s = *cursor.state_;
  s.source = source;
  if (source.shape.members > 1) s.member = member;
  cursor.postings_ = member == source.shape.largest ? info.largest_postings : info.postings;
  s.has_blocks = info.has_blocks();
  if (s.has_blocks) {
    cursor.OpenBlocks(info);
  } else {
    cursor.OpenShort(info);
  }
  return cursor;
}

void PostingCursor::OpenShort(const format::TermInfo& info) {
  State& s = *state_;
  ByteSpan bytes = info.inline_documents;
  if (info.postings > 1) {
    if (absl::Status status = s.source.postings->Ensure(info.offset, info.document_bytes); !status.ok()) {
      return Fail(std::move(status));
    }
    bytes = {s.source.postings->data() + info.offset, info.document_bytes};
  }
  s.Allocate(info.postings);
  ByteReader in(bytes);
  if (!(s.grouped() ? s.ReadShortGroup(info.postings, &in) : s.ReadShort(info.postings, &in)))
    return Fail(s.Damage(info.offset, "a short list is malformed"));
  if (!in.done()) return Fail(s.Damage(info.offset, "a short list is longer than its postings"));
  s.raw_count = info.postings;
  s.members_known = true;
  s.positions_offset = info.offset + info.document_bytes;
  s.positions_bytes = info.position_bytes;
  if (!info.inline_positions.empty()) {
    s.short_positions = info.inline_positions;
    s.short_positions_known = true;
  }
  if (absl::Status status = Show(); !status.ok()) return Fail(std::move(status));
  postings_ = count_;
  if (count_ == 0) return MoveToEnd();
  Enter(0);
}

void PostingCursor::OpenBlocks(const format::TermInfo& info) {
  State& s = *state_;
  const VerifiedBytes& section = *s.source.headers;
  if (absl::Status status = section.Ensure(info.offset, format::kListHeadersFixedBytes); !status.ok()) {
    return Fail(std::move(status));
  }
  const std::byte* in = section.data() + info.offset;
  uint64_t bytes = 0;
  const format::Decode decoded = format::ListHeadersBytes(in, &bytes);
  if (decoded == format::Decode::kUnknown)
    return Fail(Newer(section.Damage(info.offset, ""), "a list layout of a later version"));
  if (decoded == format::Decode::kDamage) return Fail(section.Damage(info.offset, "a list's headers are malformed"));
  if (absl::Status status = section.Ensure(info.offset, bytes + format::kPackedSlack); !status.ok()) {
    return Fail(std::move(status));
  }
  format::ReadListHeaders(in, &s.headers);
  const format::ListHeaders& h = s.headers;
  if (h.postings != info.postings || h.largest_postings != info.largest_postings || h.members != s.grouped() ||
      h.positions != s.source.shape.positions) {
    return Fail(section.Damage(info.offset, "a list's headers do not fit its dictionary entry"));
  }
  s.Allocate(format::kBlockPostings);
  if (postings_ == 0) return MoveToEnd();
  Load(0);
}

absl::Status PostingCursor::Show() {
  State& s = *state_;
  if (!s.filtered()) {
    documents_ = s.documents;
    frequencies_ = s.totals;
    count_ = s.raw_count;
    return absl::OkStatus();
  }
  ASHLAR_RETURN_IF_ERROR(s.DecodeMembers());
  const uint32_t* row = s.members + size_t{s.member} * s.stride;
  uint32_t n = 0;
  for (uint32_t i = 0; i < s.raw_count; ++i) {
    s.shown_documents[n] = s.documents[i];
    s.shown_frequencies[n] = row[i];
    s.shown_raw[n] = i;
    n += row[i] != 0 ? 1 : 0;
  }
  documents_ = s.shown_documents;
  frequencies_ = s.shown_frequencies;
  count_ = n;
  return absl::OkStatus();
}

bool PostingCursor::Decode(uint32_t block) {
  absl::Status status;
  if (state_->decoded != block) status = state_->DecodeBlock(block);
  if (status.ok()) status = state_->DecodeFrequencies();
  if (status.ok()) status = Show();
  if (status.ok()) return true;
  Fail(std::move(status));
  return false;
}

bool PostingCursor::Load(uint32_t block) {
  State& s = *state_;
  for (; block < s.headers.blocks; ++block) {
    if (!Decode(block)) return false;
    if (count_ != 0) {
      Enter(0);
      return true;
    }
  }
  MoveToEnd();
  return false;
}

void PostingCursor::Enter(uint32_t at) {
  at_ = at;
  document_ = documents_[at];
  frequency_ = frequencies_[at];
}

void PostingCursor::MoveToEnd() {
  document_ = format::kNoDocument;
  frequency_ = 0;
  at_ = count_ = 0;
}

void PostingCursor::Fail(absl::Status status) {
  state_->status = std::move(status);
  MoveToEnd();
}

void PostingCursor::NextBlock() {
  if (count_ == 0 || !state_->has_blocks) return MoveToEnd();
  Load(state_->block + 1);
}

void PostingCursor::SeekForward(uint32_t target) {
  if (count_ == 0) return;
  State& s = *state_;
  if (target > documents_[count_ - 1]) {
    if (!s.has_blocks) return MoveToEnd();
    if (target > s.headers.LastDocument(s.block)) {
      // Not found leaves `blocks`, from where Load moves to the end.
      if (!Load(s.headers.FindBlock(s.block + 1, target))) return;
    } else if (!Load(s.block + 1)) {  // filtered: the block's last postings are other members'
      return;
    }
    // A filtered block may end below the target; the next one then begins beyond it.
    if (target > documents_[count_ - 1] && !Load(s.block + 1)) return;
  }
  const uint32_t* found = std::lower_bound(documents_ + at_, documents_ + count_, target);
  // The headers said that the block reaches the target: they are not what they were.
  if (found == documents_ + count_) return Fail(s.Damage(0, "a block ends before the last document of its header"));
  Enter(static_cast<uint32_t>(found - documents_));
}

absl::Status PostingCursor::status() const { return state_ == nullptr ? absl::OkStatus() : state_->status; }

const format::ListHeaders* PostingCursor::headers() const {
  return state_ != nullptr && state_->has_blocks && state_->headers.blocks != 0 ? &state_->headers : nullptr;
}

uint32_t PostingCursor::block() const { return state_->block; }

void PostingCursor::SeekBlock(uint32_t block) {
  if (count_ == 0 || block < state_->block || !state_->has_blocks) return;
  if (block == state_->block) return Enter(0);
  Load(block);
}

bool PostingCursor::is_bounded() const {
  return headers() == nullptr || !state_->filtered() || state_->member == state_->source.shape.largest;
}

BlockBounds PostingCursor::bounds() const {
  BlockBounds bounds;
  const format::ListHeaders* const h = headers();
  if (h == nullptr) return bounds;
  bounds.headers = h;
  if (state_->filtered()) {
    bounds.pairs = bounds.group_pairs = 1;
    bounds.pair_frequencies = h->largest_frequencies;
    bounds.pair_lengths = h->largest_lengths;
    bounds.group_pair_frequencies = h->group_largest_frequencies;
    bounds.group_pair_lengths = h->group_largest_lengths;
  } else {
    bounds.pairs = h->pairs;
    bounds.group_pairs = h->group_pairs;
    bounds.pair_frequencies = h->pair_frequencies;
    bounds.pair_lengths = h->pair_lengths;
    bounds.group_pair_frequencies = h->group_pair_frequencies;
    bounds.group_pair_lengths = h->group_pair_lengths;
  }
  return bounds;
}

bool PostingCursor::has_windows() const {
  return headers() != nullptr && state_->headers.windows && !state_->filtered();
}

const format::Window* PostingCursor::OpenWindow(uint32_t window) {
  if (!state_->status.ok() || window >= state_->headers.groups) return nullptr;
  if (absl::Status status = state_->OpenWindow(window); !status.ok()) {
    Fail(std::move(status));
    return nullptr;
  }
  return &state_->window;
}

bool PostingCursor::MoveToBlock(uint32_t block) {
  State& s = *state_;
  if (!s.status.ok()) return false;
  s.first_possible = 0;  // blocks may come in any order
  if (!s.filtered() && !s.grouped() && !s.headers.windows) {
    if (s.decoded != block) {
      if (absl::Status status = s.DecodeBlock(block); !status.ok()) [[unlikely]] {
        Fail(std::move(status));
        return false;
      }
    }
    documents_ = s.documents;
    frequencies_ = s.totals;
    count_ = s.raw_count;
    at_ = 0;
    document_ = documents_[0];
    return true;
  }
  if (!Decode(block)) return false;
  if (count_ != 0) {
    Enter(0);
  } else {
    MoveToEnd();
  }
  return true;
}

std::span<const uint32_t> PostingCursor::ReadFrequencies() {
  const std::span<const uint32_t> frequencies(frequencies_ + at_, count_ - at_);
  if (absl::Status status = state_->DecodeFrequencies(); !status.ok()) Fail(std::move(status));
  return frequencies;
}

void PostingCursor::Rewind() {
  if (!state_->status.ok()) return;
  state_->first_possible = 0;
  Load(0);
}

void PostingCursor::MoveInBlock(uint32_t at) {
  if (at < count_) Enter(at);
}

std::span<const uint32_t> PostingCursor::StepsInBlock(uint32_t at) {
  State& s = *state_;
  if (!s.has_blocks || s.grouped() || !s.source.shape.positions || at >= count_) return {};
  if (!s.OpenPositions().ok()) return {};
  return s.block_positions->Steps(at, s.totals[at]);
}

absl::Status PostingCursor::MemberFrequencies(std::vector<uint32_t>* frequencies) {
  frequencies->clear();
  if (count_ == 0) return status();
  State& s = *state_;
  if (absl::Status status = s.DecodeMembers(); !status.ok()) {
    Fail(status);
    return status;
  }
  const uint32_t raw = s.RawIndex(at_);
  for (uint32_t m = 0; m < s.source.shape.members; ++m) frequencies->push_back(s.FrequencyOf(m, raw));
  return absl::OkStatus();
}

absl::Status PostingCursor::AppendPositions(std::vector<uint32_t>* out, std::vector<uint32_t>* counts) {
  if (counts != nullptr) counts->clear();
  if (count_ == 0) return status();
  State& s = *state_;
  if (!s.source.shape.positions) return absl::OkStatus();
  const uint32_t raw = s.RawIndex(at_);
  const size_t begin = out->size();
  absl::Status status = s.DecodeMembers();
  uint64_t skip = 0;
  for (uint32_t m = 0; status.ok() && m < s.source.shape.members; ++m) {
    const uint32_t n = s.FrequencyOf(m, raw);
    const bool wanted = !s.filtered() || m == s.member;
    if (wanted && counts != nullptr) counts->push_back(n);
    if (wanted && n != 0) status = s.AppendPositions(raw, skip, n, out);
    skip += n;
  }
  if (!status.ok()) {
    out->resize(begin);
    Fail(status);
  }
  return status;
}

absl::Status PostingCursor::CheckPositionsEnd() {
  State& s = *state_;
  if (count_ == 0 || !s.source.shape.positions) return absl::OkStatus();
  if (s.has_blocks) {
    ASHLAR_RETURN_IF_ERROR(s.OpenPositions());
    if (s.block_positions->EndsHere()) return absl::OkStatus();
    return s.Damage(s.positions_offset, "a block's positions do not end with its postings");
  }
  std::vector<uint32_t> steps;
  const uint32_t last = s.raw_count - 1;
  ASHLAR_RETURN_IF_ERROR(s.ReadShortSteps(last, 0, 0, &steps));
  ByteReader in(s.short_positions.subspan(s.positions_before));
  for (uint32_t i = 0; in.ok() && i < s.totals[last]; ++i) in.Varint();
  if (in.done()) return absl::OkStatus();
  return s.Damage(s.positions_offset, "a list's positions do not end with its postings");
}

}  // namespace ashlar::segment
