// LiveSegment: a segment and the deaths of its documents. Shared by every view that shows the segment, so that a
// delete copies nothing: death[ordinal] is written once, and a snapshot at S sees a document as dead iff 0 < death <=
// S.
//
// Quarantine. The engine reads a segment through this class, which notes the first damage that any reading meets. From
// then on the segment is not merged and shows in the statistics; what needs none of its damaged bytes goes on as
// before. Two things can't be made good by reading on, so they hold for good:
//   sealed off       the file can't be opened, or the journal's replay could not find out which of its documents are
//   dead:
//                    every reading fails
//   unknown lengths  the sum of its live lengths can't be told, so its lengths are not given out either
#ifndef ASHLAR_SRC_ENGINE_LIVE_SEGMENT_H_
#define ASHLAR_SRC_ENGINE_LIVE_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/options.h"
#include "ashlar/schema.h"
#include "ashlar/status.h"
#include "format/catalog_value.h"
#include "format/deaths.h"
#include "src/base/mutex.h"
#include "src/engine/death_log.h"
#include "src/env/env.h"
#include "src/segment/segment.h"

namespace ashlar::engine {

// Damage to what is stored: broken bytes, or bytes that the disk does not give.
inline bool IsDamage(const absl::Status& status) { return absl::IsDataLoss(status) || absl::IsInternal(status); }

// How the segments of a store opened with `options` are opened.
inline segment::ReadOptions SegmentOptions(const Options& options, bool keep_damaged) {
  segment::ReadOptions result(options.open_mode);
  result.sigbus_guard = options.sigbus_guard;
  result.keep_damaged = keep_damaged;
  return result;
}

struct SegmentDamage {
  absl::Status status;   // with its place
  int64_t since_ms = 0;  // wall clock
};

// Threads: Kill, SealOff, SumLiveLengths and SubtractLengths by one writer at a time; everything else by any thread.
class LiveSegment {
 public:
  // Damage that the segment met when it was opened is noted. `clock` must outlive it.
  LiveSegment(std::shared_ptr<const segment::Segment> segment, format::SegmentEntry entry, env::Clock* clock);
  LiveSegment(const LiveSegment&) = delete;
  LiveSegment& operator=(const LiveSegment&) = delete;
  ~LiveSegment() { delete deaths_.load(std::memory_order_relaxed); }

  const segment::Segment& segment() const { return *segment_; }
  const std::shared_ptr<const segment::Segment>& shared_segment() const { return segment_; }
  const format::SegmentEntry& entry() const { return entry_; }
  uint32_t document_count() const { return segment_->document_count(); }

  // The sequence of a document's death, 0 if it is alive. Relaxed loads are enough: who holds a snapshot at S acquired
  // it after every death <= S was stored, and any other value means "alive at S".
  Sequence DeathOf(uint32_t ordinal) const {
    const Deaths* deaths = deaths_.load(std::memory_order_acquire);
    return deaths == nullptr ? 0 : deaths->sequences[ordinal].load(std::memory_order_relaxed);
  }
  // Whether the document is dead at `at`: mostly a look at one bit.
  bool IsDeadAt(uint32_t ordinal, Sequence at) const {
    const Deaths* deaths = deaths_.load(std::memory_order_acquire);
    if (deaths == nullptr || (deaths->Bits(ordinal / 64) >> (ordinal % 64) & 1) == 0) return false;
    return deaths->IsDeadAt(ordinal, at);
  }
  // Bit i: document 64 word + i is dead at `at`.
  uint64_t DeadBitsAt(uint32_t word, Sequence at) const;
  bool has_deaths() const { return deaths_.load(std::memory_order_acquire) != nullptr; }
  uint32_t death_count() const { return death_count_.load(std::memory_order_relaxed); }

  // Live documents as of a snapshot.
  uint32_t LiveCount(Sequence at) const;

  // --- damage ---
  bool damaged() const { return damaged_.load(std::memory_order_acquire); }
  std::optional<SegmentDamage> damage() const;
  // Notes `status` if it is the first damage with a place in this segment's file.
  void Note(const absl::Status& status) const;
  // From now on every reading fails with `damage`.
  void SealOff(absl::Status damage);
  bool sealed_off() const { return sealed_off_.load(std::memory_order_acquire); }
  // The journal has batches whose effect on this segment is not known: the floor must not pass them.
  bool unsettled() const { return unsettled_; }
  void set_unsettled() { unsettled_ = true; }

  // --- reading: as segment::Segment does, and damage is noted ---
  absl::StatusOr<std::optional<uint32_t>> FindKey(std::string_view key) const;
  absl::StatusOr<std::optional<uint32_t>> FindId(DocumentId id) const;
  absl::StatusOr<DocumentId> IdOf(uint32_t ordinal) const;
  absl::StatusOr<std::string> KeyOf(uint32_t ordinal) const;
  absl::StatusOr<ByteBuffer> StoredOf(uint32_t ordinal) const;
  absl::Status ColumnValues(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const;
  absl::Status VisitKeys(std::string_view from,
                         const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const;
  segment::PostingCursor OpenTerm(format::IndexId index, std::string_view term,
                                  std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const;
  segment::PostingCursor OpenPositions(format::IndexId index, std::string_view term,
                                       std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const;
  absl::StatusOr<segment::LengthReader> Lengths(format::IndexId index) const;
  absl::StatusOr<segment::LengthReader> SomeLengths(format::IndexId index) const;  // see Segment
  // Whether this segment's share of the index's live lengths is in the sums exactly.
  absl::Status LengthsKnown(format::IndexId index) const;
  // After cursors and lengths were used: whether what they gave counts.
  absl::Status CheckIntact() const;
  // An error of such a use, noted. Lost bytes read as zeros and look like any damage: then it is the loss that is told.
  absl::Status Explained(const absl::Status& status) const;

  // Marks a document dead. The array is made at the first death. Sequences must not fall from call to call.
  void Kill(uint32_t ordinal, Sequence sequence);

  // How many postings of a term are of documents that are dead at `at`. Costs nothing where nobody died; remembered per
  // term and brought up to date by the deaths since.
  absl::StatusOr<uint32_t> DeadPostings(format::IndexId index, std::string_view term, Sequence at) const;

  // The live documents' lengths of an index, added up; nullopt, for good, if damage keeps them from being told.
  absl::StatusOr<std::optional<uint64_t>> SumLiveLengths(format::IndexId index);
  // Takes the lengths of a document that dies from sums by index (fields by number, then the group). Where they can't
  // be read the segment's share of the sum is not known any more: its mean length is taken.
  void SubtractLengths(const Schema& schema, uint32_t ordinal, std::vector<uint64_t>* sums);

  // This segment takes another one's place in a view: what is not known of that one's lengths is not known of this one's, for
  // the sums are as they are.
  void InheritUnknownLengths(const LiveSegment& from);

  // All deaths at or before `floor`, by ascending ordinal.
  std::vector<format::Death> DeathsUpTo(Sequence floor) const;
  uint32_t DeathCountUpTo(Sequence floor) const { return log_.CountUpTo(floor); }
  const DeathLog& deaths() const { return log_; }

 private:
  template <class T>
  T Noted(T result) const {
    if (result.ok()) [[likely]]
      return result;
    return Explained(StatusOf(result));
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <class T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }
  absl::Status Seal() const;  // why everything fails; OK unless sealed off
  absl::StatusOr<segment::LengthReader> ReadLengths(format::IndexId index) const;
  void SetLengthsUnknown(format::IndexId index, const absl::Status& why);

  const std::shared_ptr<const segment::Segment> segment_;
  const format::SegmentEntry entry_;
  env::Clock* const clock_;

  mutable Mutex damage_mutex_;  // a leaf
  mutable std::atomic<bool> damaged_{false};
  mutable std::optional<SegmentDamage> damage_ ABSL_GUARDED_BY(damage_mutex_);
  std::atomic<bool> sealed_off_{false};
  absl::Status seal_ ABSL_GUARDED_BY(damage_mutex_);
  std::atomic<bool> some_lengths_unknown_{false};
  absl::flat_hash_map<format::IndexId, absl::Status> lengths_unknown_ ABSL_GUARDED_BY(damage_mutex_);  // and why
  bool unsettled_ = false;                                                                             // the writer's

  // Made at the first death. A bit is set after its sequence and after `last`, so who sees it sees those.
  struct Deaths {
    explicit Deaths(uint32_t documents);
    uint64_t Bits(uint32_t word) const { return bits[word].load(std::memory_order_acquire); }
    bool IsDeadAt(uint32_t ordinal, Sequence at) const {
      const Sequence death = sequences[ordinal].load(std::memory_order_relaxed);
      return death != 0 && death <= at;
    }
    const std::unique_ptr<std::atomic<Sequence>[]> sequences;  // by ordinal
    const std::unique_ptr<std::atomic<uint64_t>[]> bits;
    std::atomic<Sequence> last{0};
  };
  std::atomic<Deaths*> deaths_{nullptr};
  std::atomic<uint32_t> death_count_{0};

  DeathLog log_;

  std::vector<absl::StatusOr<segment::LengthReader>> lengths_;  // fields by number, then the group; the writer's
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_LIVE_SEGMENT_H_
