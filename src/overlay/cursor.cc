// Cursor: decodes posting lists (posting_list.h has their coding).
#include <algorithm>

#include "src/overlay/overlay.h"

namespace ashlar::overlay {
namespace {

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
  while (document_ < target) Next();
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
  Cursor walk;
  walk.left_ = TermEntry::PostingsOf(term_->published.load(std::memory_order_acquire));
  walk.documents_ = documents_;
  walk.member_ = member_;
  walk.shape_ = shape_;
  walk.at_ = ByteCursor(*term_);
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
