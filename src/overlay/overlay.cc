#include "src/overlay/overlay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <string>

#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "src/overlay/arena.h"
#include "src/overlay/hash_table.h"
#include "src/overlay/paged_array.h"

namespace ashlar::overlay {
namespace {

// An inverted index: the group, or one field outside of it.
using Family = uint16_t;
constexpr Family kGroupFamily = 0xFFFF;
static_assert(kFieldsMax < kGroupFamily);

constexpr uint32_t kNoOrdinal = 0xFFFFFFFFu;

// What readers need of a document beside its postings.
struct DocumentRecord {
  std::atomic<Sequence> death{0};
  DocumentId id = 0;
  const std::byte* data = nullptr;  // encoded document, then the key
  uint64_t encoded_bytes = 0;
  uint32_t key_hash = 0;
  uint32_t previous = kNoOrdinal;  // the document before with the same key
  uint32_t key_bytes = 0;

  std::string_view key() const { return {reinterpret_cast<const char*>(data + encoded_bytes), key_bytes}; }
};

uint32_t FoldHash(uint64_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }

uint32_t TermHash(Family family, std::string_view term) {
  return FoldHash(HashBytes(term) ^ (uint64_t{family} + 1) * 0x9E3779B97F4A7C15ull);
}

size_t PutVarint(uint64_t value, std::byte* out) {
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) out[count++] = static_cast<std::byte>(value | 0x80);
  out[count++] = static_cast<std::byte>(value);
  return count;
}

// Where the terms of a field go.
struct FieldPlan {
  bool searchable = false;
  Family family = 0;
  uint32_t member = 0;
  LengthColumn* lengths = nullptr;
};

// One token of the document that is being added.
struct PendingToken {
  uint32_t position;
  uint32_t member;
  uint32_t next;  // the next token of the same term, or kNoToken
};
constexpr uint32_t kNoToken = 0xFFFFFFFFu;

// One distinct term of it; its tokens are in order of member, then position.
struct PendingTerm {
  TermEntry* entry;
  uint32_t first;
  uint32_t last;
  uint32_t frequency;
};

// A large document must not leave large buffers behind.
constexpr size_t kPendingKept = size_t{1} << 16;

template <class T>
void ClearBuffer(std::vector<T>* buffer) {
  buffer->clear();
  if (buffer->capacity() > kPendingKept) buffer->shrink_to_fit();
}

}  // namespace

struct Overlay::Impl {
  explicit Impl(const Schema& schema);

  const FieldPlan* PlanOf(format::IndexId index) const;
  ListShape ShapeOf(Family family) const { return family == kGroupFamily ? group_shape : shapes[family]; }
  const LengthColumn* LengthsOf(Family family) const {
    return family == kGroupFamily ? group_plan.lengths : plans[family].lengths;
  }
  const TermEntry* FindTerm(Family family, std::string_view term) const;
  const DocumentRecord& Record(uint32_t ordinal) const { return *documents.Find(ordinal); }

  void AddTokens(const FieldPlan& plan, const text::TokenStream& stream);
  void AddTokenBlock(const FieldPlan& plan, const text::TokenStream& stream, size_t begin, size_t end);
  TermEntry* FindOrAddTerm(Family family, std::string_view term, uint32_t hash);
  TermEntry* NewTerm(Family family, std::string_view term, uint32_t hash);
  void AddOccurrence(TermEntry* entry, uint32_t member, uint32_t position);
  void AppendPosting(const PendingTerm& term, uint32_t ordinal);
  void NoteBlock(TermEntry* entry, uint32_t postings, uint32_t ordinal);
  void EncodeMembers(const PendingTerm& term, const ListShape& shape);
  void CountFieldPostings(const PendingTerm& term, Family family);
  void AddLengths(const text::AnalyzedDocument& document, uint32_t ordinal);
  void AddRecord(DocumentId id, const text::AnalyzedDocument& document, uint32_t ordinal);
  void IndexKey(DocumentRecord* record, uint32_t ordinal);

  Cursor MakeCursor(const TermEntry& term, const ListShape& shape, uint32_t member, uint32_t n) const;
  Cursor OpenKey(std::string_view key, uint32_t n) const;
  uint32_t NewestOfKey(std::string_view key) const;

  MemoryCount memory;
  Arena arena{&memory};
  std::vector<FieldPlan> plans;   // by field number
  std::vector<ListShape> shapes;  // by field number, of fields outside the group
  std::vector<uint32_t> group;    // field numbers of the members, ascending
  ListShape group_shape;
  FieldPlan group_plan;
  int key_field = -1;
  std::vector<std::unique_ptr<LengthColumn>> columns;
  HashTable<TermEntry*> terms{&memory};
  HashTable<uint32_t> keys{&memory};  // ordinal + 1 of the newest document with the key
  PagedArray<DocumentRecord> documents;
  std::atomic<uint32_t> document_count{0};
  std::atomic<uint32_t> death_count{0};

  // The writer's, for the document that is being added.
  std::vector<PendingToken> tokens;
  std::vector<PendingTerm> pending;
  std::vector<std::byte> members;
  format::FrontierTable frontier_table;
  format::Frontier frontier;
  std::vector<uint64_t> field_postings;  // by field number
};

Overlay::Impl::Impl(const Schema& schema)
    : plans(schema.fields.size()), shapes(schema.fields.size()), key_field(schema.KeyIndex()) {
  field_postings.resize(schema.fields.size());
  for (const std::string& name : schema.default_group) {
    const int field = schema.IndexOf(name);
    ASHLAR_CHECK(field >= 0);
    group.push_back(static_cast<uint32_t>(field));
  }
  std::sort(group.begin(), group.end());
  for (uint32_t field = 0; field < plans.size(); ++field) {
    const Field& definition = schema.fields[field];
    const bool text = definition.type == FieldType::kText;
    if ((!text && definition.type != FieldType::kKeyword) || static_cast<int>(field) == key_field) continue;
    columns.push_back(std::make_unique<LengthColumn>());
    plans[field] = {true, static_cast<Family>(field), 0, columns.back().get()};
    shapes[field].positions = text && definition.positions;
  }
  // A group of one is the field itself.
  if (group.size() == 1) group_plan = plans[group[0]];
  if (group.size() < 2) return;
  columns.push_back(std::make_unique<LengthColumn>());
  group_plan = {true, kGroupFamily, 0, columns.back().get()};
  group_shape.members = static_cast<uint32_t>(group.size());
  group_shape.member_bits = static_cast<uint8_t>(std::bit_width(group.size() - 1));
  group_shape.positions = shapes[group[0]].positions;
  for (uint32_t member = 0; member < group.size(); ++member) {
    plans[group[member]].family = kGroupFamily;
    plans[group[member]].member = member;
  }
}

const FieldPlan* Overlay::Impl::PlanOf(format::IndexId index) const {
  const FieldPlan* plan = nullptr;
  if (index == format::kGroupIndex) {
    plan = &group_plan;
  } else if (index < plans.size()) {
    plan = &plans[index];
  }
  return plan != nullptr && plan->searchable ? plan : nullptr;
}

const TermEntry* Overlay::Impl::FindTerm(Family family, std::string_view term) const {
  const uint32_t hash = TermHash(family, term);
  return terms.Find(hash, [&](const TermEntry* entry) {
    return entry->hash == hash && entry->family == family && entry->term() == term;
  });
}

// --- writer ---

TermEntry* Overlay::Impl::NewTerm(Family family, std::string_view term, uint32_t hash) {
  std::byte* memory_of_entry = arena.Allocate(sizeof(TermEntry) + term.size());
  auto* entry = new (memory_of_entry) TermEntry;
  entry->tail = entry->first_chunk;
  entry->tail_left = kFirstChunkBytes;
  entry->hash = hash;
  entry->family = family;
  entry->term_bytes = static_cast<uint16_t>(term.size());
  std::memcpy(memory_of_entry + sizeof(TermEntry), term.data(), term.size());
  return entry;
}

TermEntry* Overlay::Impl::FindOrAddTerm(Family family, std::string_view term, uint32_t hash) {
  std::atomic<TermEntry*>* slot = terms.FindSlot(hash, [&](const TermEntry* entry) {
    return entry->hash == hash && entry->family == family && entry->term() == term;
  });
  TermEntry* entry = slot->load(std::memory_order_relaxed);
  if (entry != nullptr) return entry;
  entry = NewTerm(family, term, hash);
  slot->store(entry, std::memory_order_release);
  terms.Added([](const TermEntry* e) { return e->hash; });
  return entry;
}

void Overlay::Impl::AddOccurrence(TermEntry* entry, uint32_t member, uint32_t position) {
  const auto token = static_cast<uint32_t>(tokens.size());
  tokens.push_back({position, member, kNoToken});
  // The entry's place in `pending` is left over from an older document unless both agree.
  if (entry->pending < pending.size() && pending[entry->pending].entry == entry) {
    PendingTerm& term = pending[entry->pending];
    tokens[term.last].next = token;
    term.last = token;
    ++term.frequency;
    return;
  }
  entry->pending = static_cast<uint32_t>(pending.size());
  pending.push_back({entry, token, token, 1});
}

// Three passes over a block of tokens, so that the cache misses of its look-ups overlap.
void Overlay::Impl::AddTokenBlock(const FieldPlan& plan, const text::TokenStream& stream, size_t begin, size_t end) {
  constexpr size_t kBlock = 64;
  std::array<uint32_t, kBlock> hashes;
  const size_t count = end - begin;
  for (size_t i = 0; i < count; ++i) {
    hashes[i] = TermHash(plan.family, stream.tokens[begin + i].term(stream.bytes));
    __builtin_prefetch(terms.FirstSlot(hashes[i]));
  }
  for (size_t i = 0; i < count; ++i) {
    const TermEntry* guess = terms.FirstSlot(hashes[i])->load(std::memory_order_relaxed);
    __builtin_prefetch(guess, 1);
  }
  for (size_t i = 0; i < count; ++i) {
    const text::Token& token = stream.tokens[begin + i];
    AddOccurrence(FindOrAddTerm(plan.family, token.term(stream.bytes), hashes[i]), plan.member, token.position);
  }
}

void Overlay::Impl::AddTokens(const FieldPlan& plan, const text::TokenStream& stream) {
  constexpr size_t kBlock = 64;
  for (size_t begin = 0; begin < stream.tokens.size(); begin += kBlock) {
    AddTokenBlock(plan, stream, begin, std::min(begin + kBlock, stream.tokens.size()));
  }
}

void Overlay::Impl::EncodeMembers(const PendingTerm& term, const ListShape& shape) {
  members.clear();
  std::array<std::byte, kVarintBytesMax> code;
  const auto put = [&](uint64_t value) {
    const size_t bytes = PutVarint(value, code.data());
    members.insert(members.end(), code.data(), code.data() + bytes);
  };
  for (uint32_t begin = term.first; begin != kNoToken;) {
    const uint32_t member = tokens[begin].member;
    uint64_t frequency = 0;
    uint32_t end = begin;
    for (; end != kNoToken && tokens[end].member == member; end = tokens[end].next) ++frequency;
    put(frequency << shape.member_bits | member);
    uint32_t position = 0;
    for (uint32_t token = begin; shape.positions && token != end; token = tokens[token].next) {
      put(tokens[token].position - position);  // modulo 2^32, so any order of positions comes back
      position = tokens[token].position;
    }
    begin = end;
  }
}

void Overlay::Impl::AppendPosting(const PendingTerm& term, uint32_t ordinal) {
  TermEntry* entry = term.entry;
  const ListShape shape = ShapeOf(entry->family);
  const uint64_t published = entry->published.load(std::memory_order_relaxed);
  const uint64_t gap = ordinal - TermEntry::LastOrdinalOf(published);
  std::array<std::byte, 3 * kVarintBytesMax> head;
  size_t bytes = 0;
  members.clear();
  if (term.frequency == 1) {
    const PendingToken& token = tokens[term.first];
    bytes = PutVarint(gap << 1 | 1, head.data());
    if (shape.has_payload()) {
      const uint64_t position = shape.positions ? token.position : 0;
      bytes += PutVarint(position << shape.member_bits | token.member, head.data() + bytes);
    }
  } else {
    bytes = PutVarint(gap << 1, head.data());
    bytes += PutVarint(term.frequency, head.data() + bytes);
    if (shape.has_payload()) {
      EncodeMembers(term, shape);
      bytes += PutVarint(members.size(), head.data() + bytes);
    }
  }
  AppendBytes(entry, head.data(), bytes, &arena);
  if (!members.empty()) AppendBytes(entry, members.data(), members.size(), &arena);
  const uint32_t postings = TermEntry::PostingsOf(published) + 1;
  if (postings % kBlockPostings == 0) NoteBlock(entry, postings, ordinal);
  entry->published.store(uint64_t{ordinal} << 32 | postings, std::memory_order_release);
}

// The block of the last postings is whole: it is read once more for its frontier, which is less work than keeping one
// for every list.
void Overlay::Impl::NoteBlock(TermEntry* entry, uint32_t postings, uint32_t ordinal) {
  const ListShape shape = ShapeOf(entry->family);
  const LengthColumn* const lengths = LengthsOf(entry->family);
  const uint32_t block = postings / kBlockPostings - 1;
  std::array<uint32_t, kBlockPostings> ordinals, frequencies;
  ByteCursor at = FirstPosting(*entry);
  uint32_t last = 0;
  if (block != 0) {
    const BlockNote& before = NoteOf(*entry, block - 1);
    at = before.end;
    last = before.last_document;
  }
  ReadPostings(shape, kBlockPostings, &at, &last, ordinals.data(), frequencies.data());
  uint64_t length_sum = 0;
  for (size_t i = 0; i < kBlockPostings; ++i) {
    const uint32_t length = lengths == nullptr ? 0 : lengths->Get(ordinals[i]);
    frontier_table.Add(format::FrequencyCode(frequencies[i]), format::LengthCode(length));
    length_sum += length;
  }
  frontier_table.Take(&frontier);
  constexpr size_t kPairs = format::kBlockListPairs.block;
  if (frontier.count > kPairs) {
    const double average = static_cast<double>(length_sum) / kBlockPostings;
    format::ReduceFrontier(format::ReductionScale(average), kPairs, &frontier);
  }
  BlockNote note;
  note.end = at;
  note.last_document = ordinal;
  for (size_t pair = 0; pair < note.pairs.size(); ++pair)
    note.pairs[pair] = frontier.pairs[std::min(pair, frontier.count - 1)];
  AppendNote(entry, block, note, &arena);
}

void Overlay::Impl::CountFieldPostings(const PendingTerm& term, Family family) {
  if (family != kGroupFamily) {
    ++field_postings[family];
    return;
  }
  uint32_t member = kNoToken;
  for (uint32_t token = term.first; token != kNoToken; token = tokens[token].next) {
    if (tokens[token].member == member) continue;
    member = tokens[token].member;
    ++field_postings[group[member]];
  }
}

void Overlay::Impl::AddLengths(const text::AnalyzedDocument& document, uint32_t ordinal) {
  uint32_t group_length = 0;
  for (size_t i = 0; i < document.field_count; ++i) {
    const text::FieldTokens& field = document.fields[i];
    const FieldPlan& plan = plans[field.field];
    if (!plan.searchable || field.length() == 0) continue;
    plan.lengths->Set(ordinal, field.length(), &memory);
    if (plan.family == kGroupFamily) group_length += field.length();
  }
  if (group_length != 0) group_plan.lengths->Set(ordinal, group_length, &memory);
}

void Overlay::Impl::IndexKey(DocumentRecord* record, uint32_t ordinal) {
  const std::string_view key = record->key();
  std::atomic<uint32_t>* slot = keys.FindSlot(record->key_hash, [&](uint32_t ref) {
    const DocumentRecord& other = Record(ref - 1);
    return other.key_hash == record->key_hash && other.key() == key;
  });
  const uint32_t newest = slot->load(std::memory_order_relaxed);
  if (newest != 0) record->previous = newest - 1;
  slot->store(ordinal + 1, std::memory_order_release);
  if (newest == 0) keys.Added([&](uint32_t ref) { return Record(ref - 1).key_hash; });
}

void Overlay::Impl::AddRecord(DocumentId id, const text::AnalyzedDocument& document, uint32_t ordinal) {
  auto* record = new (documents.Slot(ordinal, &memory)) DocumentRecord;
  std::byte* data = arena.Allocate(document.encoded.size() + document.key.size());
  // An empty span may have no address, which memcpy must not get.
  if (!document.encoded.empty()) std::memcpy(data, document.encoded.data(), document.encoded.size());
  if (!document.key.empty()) std::memcpy(data + document.encoded.size(), document.key.data(), document.key.size());
  record->id = id;
  record->data = data;
  record->encoded_bytes = document.encoded.size();
  record->key_bytes = static_cast<uint32_t>(document.key.size());
  if (document.key.empty()) return;
  record->key_hash = FoldHash(HashBytes(document.key));
  IndexKey(record, ordinal);
}

Overlay::Overlay(const Schema& schema) : impl_(std::make_unique<Impl>(schema)) {}
Overlay::~Overlay() = default;

uint32_t Overlay::Add(DocumentId id, const text::AnalyzedDocument& document) {
  Impl& impl = *impl_;
  const uint32_t ordinal = impl.document_count.load(std::memory_order_relaxed);
  ASHLAR_CHECK(ordinal < format::kNoDocument - 1);
  ASHLAR_DCHECK(ordinal == 0 || IdOf(ordinal - 1) < id);
  impl.AddRecord(id, document, ordinal);
  for (size_t i = 0; i < document.field_count; ++i) {
    const text::FieldTokens& field = document.fields[i];
    ASHLAR_CHECK(field.field < impl.plans.size());
    const FieldPlan& plan = impl.plans[field.field];
    if (plan.searchable) impl.AddTokens(plan, field.stream);
  }
  impl.AddLengths(document, ordinal);
  for (const PendingTerm& term : impl.pending) {
    impl.CountFieldPostings(term, term.entry->family);
    impl.AppendPosting(term, ordinal);
  }
  ClearBuffer(&impl.pending);
  ClearBuffer(&impl.tokens);
  ClearBuffer(&impl.members);
  impl.document_count.store(ordinal + 1, std::memory_order_release);
  return ordinal;
}

void Overlay::Kill(uint32_t ordinal, Sequence sequence) {
  impl_->documents.Find(ordinal)->death.store(sequence, std::memory_order_release);
  const uint32_t deaths = impl_->death_count.load(std::memory_order_relaxed);
  impl_->death_count.store(deaths + 1, std::memory_order_release);
}

uint32_t Overlay::document_count() const { return impl_->document_count.load(std::memory_order_acquire); }
uint32_t Overlay::death_count() const { return impl_->death_count.load(std::memory_order_acquire); }
uint64_t Overlay::bytes() const { return impl_->memory.Get(); }

// --- readers ---

Cursor Overlay::Impl::MakeCursor(const TermEntry& term, const ListShape& shape, uint32_t member, uint32_t n) const {
  Cursor cursor;
  const uint64_t published = term.published.load(std::memory_order_acquire);
  cursor.left_ = TermEntry::PostingsOf(published);
  cursor.published_ = cursor.left_;
  cursor.documents_ = n;
  cursor.shape_ = shape;
  cursor.member_ = shape.members > 1 ? member : Cursor::kAllMembers;
  cursor.at_ = FirstPosting(term);
  cursor.term_ = &term;
  cursor.lengths_ = LengthsOf(term.family);
  const bool whole = cursor.left_ == 0 || TermEntry::LastOrdinalOf(published) < n;
  cursor.postings_ = whole && cursor.member_ == Cursor::kAllMembers ? cursor.left_ : Cursor::kNotCounted;
  cursor.Next();
  return cursor;
}

uint32_t Overlay::Impl::NewestOfKey(std::string_view key) const {
  const uint32_t hash = FoldHash(HashBytes(key));
  const uint32_t ref = keys.Find(hash, [&](uint32_t candidate) {
    const DocumentRecord& record = Record(candidate - 1);
    return record.key_hash == hash && record.key() == key;
  });
  return ref == 0 ? kNoOrdinal : ref - 1;
}

Cursor Overlay::Impl::OpenKey(std::string_view key, uint32_t n) const {
  Cursor cursor;
  for (uint32_t ordinal = NewestOfKey(key); ordinal != kNoOrdinal; ordinal = Record(ordinal).previous) {
    if (ordinal < n) cursor.ordinals_.push_back(ordinal);
  }
  std::reverse(cursor.ordinals_.begin(), cursor.ordinals_.end());
  cursor.postings_ = static_cast<uint32_t>(cursor.ordinals_.size());
  if (cursor.ordinals_.empty()) return cursor;
  cursor.document_ = cursor.ordinals_[0];
  cursor.frequency_ = 1;
  return cursor;
}

Cursor Overlay::OpenTerm(format::IndexId index, std::string_view term, uint32_t n) const {
  if (impl_->key_field >= 0 && index == static_cast<uint32_t>(impl_->key_field)) return impl_->OpenKey(term, n);
  const FieldPlan* plan = impl_->PlanOf(index);
  if (plan == nullptr) return {};
  const TermEntry* entry = impl_->FindTerm(plan->family, term);
  if (entry == nullptr) return {};
  const uint32_t member = index == format::kGroupIndex ? Cursor::kAllMembers : plan->member;
  return impl_->MakeCursor(*entry, impl_->ShapeOf(plan->family), member, n);
}

Lengths Overlay::OpenLengths(format::IndexId index) const {
  const FieldPlan* plan = impl_->PlanOf(index);
  return Lengths(plan == nullptr ? nullptr : plan->lengths);
}

uint32_t Overlay::Length(format::IndexId index, uint32_t ordinal) const { return OpenLengths(index)[ordinal]; }
Sequence Overlay::DeathOf(uint32_t ordinal) const {
  return impl_->Record(ordinal).death.load(std::memory_order_acquire);
}
uint64_t Overlay::DeadBitsAt(uint32_t word, uint32_t n, Sequence at) const {
  uint64_t bits = 0;
  for (uint32_t i = 0, ordinal = word * 64; i < 64 && ordinal < n; ++i, ++ordinal) {
    const Sequence death = DeathOf(ordinal);
    bits |= uint64_t{death != 0 && death <= at} << i;
  }
  return bits;
}
DocumentId Overlay::IdOf(uint32_t ordinal) const { return impl_->Record(ordinal).id; }
std::string_view Overlay::KeyOf(uint32_t ordinal) const { return impl_->Record(ordinal).key(); }
ByteSpan Overlay::DocumentOf(uint32_t ordinal) const {
  const DocumentRecord& record = impl_->Record(ordinal);
  return {record.data, record.encoded_bytes};
}

std::optional<uint32_t> Overlay::FindKey(std::string_view key, uint32_t n, Sequence at) const {
  for (uint32_t ordinal = impl_->NewestOfKey(key); ordinal != kNoOrdinal; ordinal = impl_->Record(ordinal).previous) {
    const DocumentRecord& record = impl_->Record(ordinal);
    if (ordinal >= n) continue;
    const Sequence death = record.death.load(std::memory_order_acquire);
    if (death == 0 || death > at) return ordinal;
  }
  return std::nullopt;
}

std::optional<uint32_t> Overlay::FindId(DocumentId id, uint32_t n) const {
  uint32_t low = 0;
  uint32_t high = n;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (IdOf(middle) < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low < n && IdOf(low) == id) return low;
  return std::nullopt;
}

// --- flush ---

std::vector<uint32_t> Overlay::OrdinalsByKey() const {
  std::vector<uint32_t> ordinals;
  const uint32_t count = document_count();
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    if (impl_->Record(ordinal).key_bytes != 0) ordinals.push_back(ordinal);
  }
  std::sort(ordinals.begin(), ordinals.end(), [this](uint32_t a, uint32_t b) {
    const int order = KeyOf(a).compare(KeyOf(b));
    return order != 0 ? order < 0 : a < b;
  });
  return ordinals;
}

absl::Status Overlay::VisitTerms(format::IndexId index,
                                 const std::function<absl::Status(std::string_view, Cursor)>& visit) const {
  const FieldPlan* plan = impl_->PlanOf(index);
  if (plan == nullptr) return absl::OkStatus();
  std::vector<const TermEntry*> entries;
  impl_->terms.Visit([&](const TermEntry* entry) {
    if (entry->family == plan->family) entries.push_back(entry);
  });
  std::sort(entries.begin(), entries.end(),
            [](const TermEntry* a, const TermEntry* b) { return a->term() < b->term(); });
  const uint32_t member = index == format::kGroupIndex ? Cursor::kAllMembers : plan->member;
  const ListShape shape = impl_->ShapeOf(plan->family);
  for (const TermEntry* entry : entries) {
    Cursor cursor = impl_->MakeCursor(*entry, shape, member, document_count());
    if (cursor.document() == format::kNoDocument) continue;  // not in this field of the group
    ASHLAR_RETURN_IF_ERROR(visit(entry->term(), std::move(cursor)));
  }
  return absl::OkStatus();
}

uint64_t Overlay::PostingsOf(format::IndexId field) const {
  return field < impl_->field_postings.size() ? impl_->field_postings[field] : 0;
}

}  // namespace ashlar::overlay
