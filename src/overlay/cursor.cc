// Cursor: decodes posting lists (posting_list.h has their coding).
#include <algorithm>

#include "src/overlay/overlay.h"

namespace ashlar::overlay {
namespace {

constexpr size_t kKernelSlack = 16;  // kernels read up to a multiple of 16

// A part of a posting's payload: what one member has of it.
struct MemberPart {
  uint32_t member = 0;
  uint64_t frequency = 0;
};

// Reads the parts of a payload one after another. After Next the part's positions must be read or skipped.
class PayloadReader {
 public:
  PayloadReader(const ListShape& shape, ByteCursor at) : shape_(shape), at_(at) {}

  MemberPart Next() {
    const uint64_t code = at_.Varint();
    return {shape_.MemberOf(code), code >> shape_.member_bits};
  }
  void SkipPositions(uint64_t count) {
    for (; shape_.positions && count > 0; --count) at_.Varint();
  }
  void AppendPositions(uint64_t count, std::vector<uint32_t>* out) {
    uint32_t position = 0;
    for (; shape_.positions && count > 0; --count) {
      position += static_cast<uint32_t>(at_.Varint());
      out->push_back(position);
    }
  }

 private:
  const ListShape& shape_;
  ByteCursor at_;
};

// The frequency of a member in a payload with `total` occurrences; 0 if it has none.
uint64_t FrequencyOf(uint32_t member, uint64_t total, const ListShape& shape, const ByteCursor& payload) {
  PayloadReader reader(shape, payload);
  for (uint64_t seen = 0; seen < total;) {
    const MemberPart part = reader.Next();
    if (part.member == member) return part.frequency;
    reader.SkipPositions(part.frequency);
    seen += part.frequency;
  }
  return 0;
}

}  // namespace

void Cursor::Next() {
  if (!ordinals_.empty()) return NextInKeyList();
  while (left_ > 0) {
    --left_;
    const uint64_t head = at_.Varint();
    last_ += static_cast<uint32_t>(head >> 1);
    if (last_ >= documents_) break;
    uint64_t frequency = 1;
    occurs_once_ = (head & 1) != 0;
    if (occurs_once_) {
      payload_ = at_;
      const uint64_t code = shape_.has_payload() ? at_.Varint() : 0;
      if (member_ != kAllMembers && shape_.MemberOf(code) != member_) continue;
    } else {
      frequency = total_ = static_cast<uint32_t>(at_.Varint());
      const uint64_t bytes = shape_.has_payload() ? at_.Varint() : 0;
      payload_ = at_;
      at_.Skip(bytes);
      if (member_ != kAllMembers) frequency = FrequencyOf(member_, total_, shape_, payload_);
      if (frequency == 0) continue;
    }
    document_ = last_;
    frequency_ = static_cast<uint32_t>(frequency);
    return;
  }
  left_ = 0;
  document_ = format::kNoDocument;
  frequency_ = 0;
}

void Cursor::Seek(uint32_t target) {
  if (!ordinals_.empty()) {
    if (document_ >= target) return;
    const auto at = std::lower_bound(ordinals_.begin() + static_cast<ptrdiff_t>(ordinal_at_), ordinals_.end(), target);
    ordinal_at_ = static_cast<size_t>(at - ordinals_.begin());
    StandInKeyList();
    return;
  }
  // Blocks that end before the target are passed over.
  if (document_ < target && left_ >= kBlockPostings && target - document_ >= kBlockPostings) {
    const uint32_t current = (published_ - left_ - 1) / kBlockPostings;
    const uint32_t block = Table().FindBlock(current, target);
    if (block > current && block < Table().blocks) {
      StandBefore(block);
      Next();
    }
  }
  while (document_ < target) Next();
}

void Cursor::StandBefore(uint32_t block) {
  at_ = Table().begins[block];
  last_ = block == 0 ? 0 : Table().last_documents[block - 1];
  left_ = published_ - block * kBlockPostings;
}

uint32_t BlockTable::FindBlock(uint32_t from, uint32_t document) const {
  const auto first = last_documents.begin();
  const auto found =
      std::lower_bound(first + static_cast<ptrdiff_t>(std::min(from, blocks)), last_documents.end(), document);
  return static_cast<uint32_t>(found - first);
}

const BlockTable& Cursor::Table() const {
  if (table_ != nullptr) return *table_;
  auto table = std::make_unique<BlockTable>();
  std::vector<const BlockNote*> notes;
  FindBlocks(table.get(), &notes);
  FillPairs(notes, table.get());
  table_ = std::move(table);
  return *table_;
}

// Where the blocks that begin among the snapshot's documents are. `notes`: of those that have one.
void Cursor::FindBlocks(BlockTable* table, std::vector<const BlockNote*>* notes) const {
  const uint32_t whole = published_ / kBlockPostings;
  const NoteChunk* chunk = whole == 0 ? nullptr : term_->notes;
  ByteCursor begin = FirstPosting(*term_);
  uint32_t last = 0;
  bool seen = true;
  for (uint32_t block = 0, in_chunk = 0; block < whole && seen; ++block, ++in_chunk) {
    if (in_chunk == chunk->capacity) {
      chunk = chunk->next;
      in_chunk = 0;
    }
    const BlockNote& note = chunk->notes()[in_chunk];
    seen = note.last_document < documents_;
    notes->push_back(&note);
    table->begins.push_back(begin);
    table->last_documents.push_back(note.last_document);
    begin = note.end;
    if (seen) last = note.last_document;
  }
  if (seen) table->begins.push_back(begin);
  // The last block is open, or goes on behind the snapshot: what there is of it is seen by decoding it.
  const uint32_t before = static_cast<uint32_t>(table->begins.size() - 1) * kBlockPostings;
  Decode(table->begins.back(), last, std::min(published_ - before, kBlockPostings));
  table->tail_postings = static_cast<uint32_t>(decoded_->count);
  if (decoded_->count == 0) {
    table->begins.pop_back();
    if (!seen) {
      table->last_documents.pop_back();
      notes->pop_back();
    }
    table->tail_postings = kBlockPostings;
  } else if (seen) {
    table->last_documents.push_back(decoded_->documents[decoded_->count - 1]);
  } else {
    table->last_documents.back() = decoded_->documents[decoded_->count - 1];
  }
  table->blocks = static_cast<uint32_t>(table->begins.size());
  constexpr auto kGroup = static_cast<uint32_t>(format::kBlocksPerGroup);
  table->groups = (table->blocks + kGroup - 1) / kGroup;
}

void Cursor::FillPairs(const std::vector<const BlockNote*>& notes, BlockTable* table) const {
  constexpr size_t kSlack = 64;  // kernels read beyond the last
  const size_t blocks = table->blocks;
  table->pair_frequencies.resize(BlockTable::kPairs * blocks + kSlack);
  table->pair_lengths.resize(BlockTable::kPairs * blocks + kSlack);
  table->group_pair_frequencies.resize(table->groups + kSlack);
  table->group_pair_lengths.resize(table->groups + kSlack, format::kCodeMax);
  format::Frontier::Pair tail{0, format::kCodeMax};
  for (size_t i = 0; notes.size() < blocks && i < decoded_->count; ++i) {
    const uint32_t length = lengths_ == nullptr ? 0 : lengths_->Get(decoded_->documents[i]);
    tail.frequency = std::max(tail.frequency, format::FrequencyCode(decoded_->frequencies[i]));
    tail.length = std::min(tail.length, format::LengthCode(length));
  }
  for (size_t block = 0; block < blocks; ++block) {
    const size_t group = block / format::kBlocksPerGroup;
    for (size_t pair = 0; pair < BlockTable::kPairs; ++pair) {
      const format::Frontier::Pair& from = block < notes.size() ? notes[block]->pairs[pair] : tail;
      table->pair_frequencies[pair * blocks + block] = from.frequency;
      table->pair_lengths[pair * blocks + block] = from.length;
      table->group_pair_frequencies[group] = std::max(table->group_pair_frequencies[group], from.frequency);
      table->group_pair_lengths[group] = std::min(table->group_pair_lengths[group], from.length);
    }
  }
}

BlockBounds Cursor::bounds() const {
  BlockBounds bounds;
  if (term_ == nullptr || published_ < kBlockPostings || Table().blocks == 0) return bounds;
  const BlockTable& table = Table();
  bounds.headers = &table;
  bounds.pairs = BlockTable::kPairs;
  bounds.group_pairs = 1;
  bounds.pair_frequencies = table.pair_frequencies.data();
  bounds.pair_lengths = table.pair_lengths.data();
  bounds.group_pair_frequencies = table.group_pair_frequencies.data();
  bounds.group_pair_lengths = table.group_pair_lengths.data();
  return bounds;
}

bool Cursor::MoveToBlock(uint32_t block) {
  const BlockTable& table = Table();
  const uint32_t last = block == 0 ? 0 : table.last_documents[block - 1];
  DecodeMember(table.begins[block], last, table.PostingsOf(block));
  return true;
}

void Cursor::Rewind() {
  if (term_ == nullptr) return;
  StandBefore(0);
  Next();
}

const Cursor::DecodedBlock* Cursor::Decoded() const {
  if (decoded_ != nullptr) return decoded_.get();
  if (term_ != nullptr) {
    DecodeMember(FirstPosting(*term_), 0, std::min(published_, kBlockPostings));
    return decoded_.get();
  }
  decoded_ = std::make_unique<DecodedBlock>();
  decoded_->count = ordinals_.size();
  decoded_->documents = ordinals_;
  decoded_->documents.resize(decoded_->count + kKernelSlack);
  decoded_->frequencies.assign(decoded_->count + kKernelSlack, 1);
  return decoded_.get();
}

void Cursor::DecodeMember(const ByteCursor& begin, uint32_t last, uint32_t count) const {
  Decode(begin, last, count);
  if (member_ == kAllMembers) return;
  Cursor walk;
  walk.left_ = count;
  walk.documents_ = documents_;
  walk.member_ = member_;
  walk.shape_ = shape_;
  walk.at_ = begin;
  walk.last_ = last;
  size_t n = 0;
  for (walk.Next(); walk.document() != format::kNoDocument; walk.Next(), ++n) {
    decoded_->documents[n] = walk.document();
    decoded_->frequencies[n] = walk.frequency();
  }
  decoded_->count = n;
}

void Cursor::Decode(const ByteCursor& begin, uint32_t last, uint32_t count) const {
  if (decoded_ == nullptr) {
    decoded_ = std::make_unique<DecodedBlock>();
    decoded_->documents.resize(kBlockPostings + kKernelSlack);
    decoded_->frequencies.resize(kBlockPostings + kKernelSlack);
  }
  ByteCursor at = begin;
  uint32_t* const documents = decoded_->documents.data();
  ReadPostings(shape_, count, &at, &last, documents, decoded_->frequencies.data());
  decoded_->count = static_cast<size_t>(std::lower_bound(documents, documents + count, documents_) - documents);
}

void Cursor::NextInKeyList() {
  ++ordinal_at_;
  StandInKeyList();
}

void Cursor::StandInKeyList() {
  const bool ended = ordinal_at_ >= ordinals_.size();
  document_ = ended ? format::kNoDocument : ordinals_[ordinal_at_];
  frequency_ = ended ? 0 : 1;
}

uint32_t Cursor::CountPostings() const {
  if (member_ == kAllMembers) {
    const BlockTable& table = Table();
    return table.blocks == 0 ? 0 : (table.blocks - 1) * kBlockPostings + table.tail_postings;
  }
  Cursor walk;
  walk.left_ = TermEntry::PostingsOf(term_->published.load(std::memory_order_acquire));
  walk.published_ = walk.left_;
  walk.documents_ = documents_;
  walk.member_ = member_;
  walk.shape_ = shape_;
  walk.at_ = FirstPosting(*term_);
  uint32_t count = 0;
  for (walk.Next(); walk.document() != format::kNoDocument; walk.Next()) ++count;
  return count;
}

void Cursor::AppendPositions(std::vector<uint32_t>* out) const {
  if (term_ == nullptr || !shape_.positions || frequency_ == 0) return;
  if (shape_.members > 1 && member_ == kAllMembers) return;
  AppendMember(member_ == kAllMembers ? 0 : member_, out);
}

uint32_t Cursor::AppendMember(uint32_t member, std::vector<uint32_t>* out) const {
  if (occurs_once_) {
    ByteCursor at = payload_;
    const uint64_t code = shape_.has_payload() ? at.Varint() : 0;
    if (shape_.MemberOf(code) != member) return 0;
    if (shape_.positions) out->push_back(static_cast<uint32_t>(code >> shape_.member_bits));
    return 1;
  }
  if (!shape_.has_payload()) return total_;
  PayloadReader reader(shape_, payload_);
  for (uint64_t seen = 0; seen < total_;) {
    const MemberPart part = reader.Next();
    if (part.member == member) {
      reader.AppendPositions(part.frequency, out);
      return static_cast<uint32_t>(part.frequency);
    }
    reader.SkipPositions(part.frequency);
    seen += part.frequency;
  }
  return 0;
}

void Cursor::AppendRow(std::vector<uint32_t>* frequencies, std::vector<uint32_t>* positions) const {
  if (frequency_ == 0) return;
  if (term_ == nullptr) {  // a key
    frequencies->push_back(1);
    return;
  }
  if (member_ != kAllMembers) {
    frequencies->push_back(AppendMember(member_, positions));
    return;
  }
  for (uint32_t member = 0; member < shape_.members; ++member) {
    frequencies->push_back(AppendMember(member, positions));
  }
}

}  // namespace ashlar::overlay
