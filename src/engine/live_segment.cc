#include "src/engine/live_segment.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "src/base/check.h"
#include "src/base/status.h"

namespace ashlar::engine {

LiveSegment::LiveSegment(std::shared_ptr<const segment::Segment> segment, format::SegmentEntry entry, env::Clock* clock)
    : segment_(std::move(segment)), entry_(std::move(entry)), clock_(clock) {
  Note(segment_->LoadDamage());
}

uint32_t LiveSegment::LiveCount(Sequence at) const { return document_count() - DeathCountUpTo(at); }

std::optional<SegmentDamage> LiveSegment::damage() const {
  if (!damaged()) return std::nullopt;
  MutexLock lock(&damage_mutex_);
  return damage_;
}

void LiveSegment::Note(const absl::Status& status) const {
  if (status.ok() || damaged() || !IsDamage(status)) return;
  const std::optional<ErrorPlace> place = PlaceOf(status);
  if (!place.has_value() || place->file != segment_->path()) return;
  const int64_t now_ms = clock_->WallMs();
  MutexLock lock(&damage_mutex_);
  if (damage_.has_value()) return;
  damage_ = SegmentDamage{status, now_ms};
  damaged_.store(true, std::memory_order_release);
}

void LiveSegment::SealOff(absl::Status damage) {
  const int64_t now_ms = clock_->WallMs();
  MutexLock lock(&damage_mutex_);
  if (!damage_.has_value()) damage_ = SegmentDamage{damage, now_ms};
  damaged_.store(true, std::memory_order_release);
  seal_ = std::move(damage);
  sealed_off_.store(true, std::memory_order_release);
}

absl::Status LiveSegment::Seal() const {
  if (!sealed_off()) [[likely]]
    return absl::OkStatus();
  MutexLock lock(&damage_mutex_);
  return seal_;
}

absl::StatusOr<std::optional<uint32_t>> LiveSegment::FindKey(std::string_view key) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->FindKey(key));
}

absl::StatusOr<std::optional<uint32_t>> LiveSegment::FindId(DocumentId id) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->FindId(id));
}

absl::StatusOr<DocumentId> LiveSegment::IdOf(uint32_t ordinal) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->IdOf(ordinal));
}

absl::StatusOr<std::string> LiveSegment::KeyOf(uint32_t ordinal) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->KeyOf(ordinal));
}

absl::StatusOr<ByteBuffer> LiveSegment::StoredOf(uint32_t ordinal) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->StoredOf(ordinal));
}

absl::Status LiveSegment::ColumnValues(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->ColumnValues(field, ordinal, out));
}

absl::Status LiveSegment::VisitKeys(std::string_view from,
                                    const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->VisitKeys(from, visit));
}

// The cursor's own damage shows in its status(), which the reader of it notes.
segment::PostingCursor LiveSegment::OpenTerm(format::IndexId index, std::string_view term,
                                             std::pmr::memory_resource* memory) const {
  if (absl::Status seal = Seal(); !seal.ok()) return segment::PostingCursor(std::move(seal));
  return segment_->OpenTerm(index, term, memory);
}

segment::PostingCursor LiveSegment::OpenPositions(format::IndexId index, std::string_view term,
                                                  std::pmr::memory_resource* memory) const {
  if (absl::Status seal = Seal(); !seal.ok()) return segment::PostingCursor(std::move(seal));
  return segment_->OpenPositions(index, term, memory);
}

absl::StatusOr<segment::LengthReader> LiveSegment::ReadLengths(format::IndexId index) const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->Lengths(index));
}

absl::Status LiveSegment::LengthsKnown(format::IndexId index) const {
  if (!some_lengths_unknown_.load(std::memory_order_acquire)) [[likely]]
    return absl::OkStatus();
  MutexLock lock(&damage_mutex_);
  const auto found = lengths_unknown_.find(index);
  return found != lengths_unknown_.end() ? found->second : absl::OkStatus();
}

absl::StatusOr<segment::LengthReader> LiveSegment::Lengths(format::IndexId index) const {
  ASHLAR_RETURN_IF_ERROR(LengthsKnown(index));
  return ReadLengths(index);
}

absl::StatusOr<segment::LengthReader> LiveSegment::SomeLengths(format::IndexId index) const {
  ASHLAR_RETURN_IF_ERROR(LengthsKnown(index));
  ASHLAR_RETURN_IF_ERROR(Seal());
  return Noted(segment_->SomeLengths(index));
}

absl::Status LiveSegment::CheckIntact() const {
  ASHLAR_RETURN_IF_ERROR(Seal());
  const absl::Status status = segment_->CheckIntact();
  Note(status);
  return status;
}

absl::Status LiveSegment::Explained(const absl::Status& status) const {
  if (status.ok()) return status;
  if (absl::Status lost = CheckIntact(); !lost.ok()) return lost;
  Note(status);
  return status;
}

void LiveSegment::SetLengthsUnknown(format::IndexId index, const absl::Status& why) {
  MutexLock lock(&damage_mutex_);
  lengths_unknown_.try_emplace(index, why);
  some_lengths_unknown_.store(true, std::memory_order_release);
}

void LiveSegment::InheritUnknownLengths(const LiveSegment& from) {
  if (!from.some_lengths_unknown_.load(std::memory_order_acquire)) return;
  absl::flat_hash_map<format::IndexId, absl::Status> unknown;
  {
    MutexLock lock(&from.damage_mutex_);
    unknown = from.lengths_unknown_;
  }
  for (const auto& [index, why] : unknown) SetLengthsUnknown(index, why);
}

LiveSegment::Deaths::Deaths(uint32_t documents)
    : sequences(std::make_unique<std::atomic<Sequence>[]>(documents)),
      bits(std::make_unique<std::atomic<uint64_t>[]>((size_t{documents} + 63) / 64)) {}

uint64_t LiveSegment::DeadBitsAt(uint32_t word, Sequence at) const {
  const Deaths* deaths = deaths_.load(std::memory_order_acquire);
  if (deaths == nullptr) return 0;
  uint64_t dead = deaths->Bits(word);
  if (dead == 0 || deaths->last.load(std::memory_order_relaxed) <= at) return dead;
  for (uint64_t bits = dead; bits != 0; bits &= bits - 1) {
    const auto bit = static_cast<uint32_t>(std::countr_zero(bits));
    if (!deaths->IsDeadAt(word * 64 + bit, at)) dead &= ~(uint64_t{1} << bit);
  }
  return dead;
}

void LiveSegment::Kill(uint32_t ordinal, Sequence sequence) {
  Deaths* deaths = deaths_.load(std::memory_order_relaxed);
  if (deaths == nullptr) {
    deaths = new Deaths(document_count());
    deaths_.store(deaths, std::memory_order_release);
  }
  ASHLAR_DCHECK(deaths->sequences[ordinal].load(std::memory_order_relaxed) == 0);
  deaths->sequences[ordinal].store(sequence, std::memory_order_relaxed);
  deaths->last.store(sequence, std::memory_order_relaxed);
  deaths->bits[ordinal / 64].fetch_or(uint64_t{1} << (ordinal % 64), std::memory_order_release);
  death_count_.fetch_add(1, std::memory_order_relaxed);
  log_.Add(ordinal, sequence);
}

absl::StatusOr<uint32_t> LiveSegment::DeadPostings(format::IndexId index, std::string_view term, Sequence at) const {
  return log_.DeadPostings(
      index, term, at, [&] { return OpenTerm(index, term); }, [&](uint32_t ordinal) { return IsDeadAt(ordinal, at); },
      [this](const absl::Status& status) { return status.ok() ? CheckIntact() : Noted(status); });
}

absl::StatusOr<std::optional<uint64_t>> LiveSegment::SumLiveLengths(format::IndexId index) {
  uint64_t sum = segment_->LengthSum(index);
  absl::Status status = Seal();
  if (status.ok() && death_count() > 0) {
    const absl::StatusOr<segment::LengthReader> lengths = ReadLengths(index);
    status = lengths.status();
    for (uint32_t ordinal = 0; status.ok() && ordinal < document_count(); ++ordinal)
      if (DeathOf(ordinal) != 0) sum -= (*lengths)[ordinal];
    status.Update(CheckIntact());
  }
  if (status.ok()) return sum;
  if (!IsDamage(status)) return status;
  SetLengthsUnknown(index, status);
  return std::nullopt;
}

void LiveSegment::SubtractLengths(const Schema& schema, uint32_t ordinal, std::vector<uint64_t>* sums) {
  const size_t count = schema.fields.size() + 1;
  const auto index_of = [count](size_t i) {
    return i + 1 == count ? format::kGroupIndex : static_cast<format::IndexId>(i);
  };
  if (lengths_.size() != count) {
    lengths_.clear();
    for (size_t i = 0; i < count; ++i) lengths_.push_back(Lengths(index_of(i)));
  }
  std::vector<uint64_t> lengths(count);
  for (size_t i = 0; i < count; ++i) lengths[i] = lengths_[i].ok() ? (*lengths_[i])[ordinal] : 0;
  const absl::Status intact = CheckIntact();
  for (size_t i = 0; i < count; ++i) {
    if (!lengths_[i].ok() || !intact.ok()) {
      SetLengthsUnknown(index_of(i), lengths_[i].ok() ? intact : lengths_[i].status());
      lengths[i] = segment_->LengthSum(index_of(i)) / std::max(document_count(), 1u);
    }
    (*sums)[i] -= std::min((*sums)[i], lengths[i]);
  }
}

std::vector<format::Death> LiveSegment::DeathsUpTo(Sequence floor) const { return log_.UpTo(floor); }

}  // namespace ashlar::engine
