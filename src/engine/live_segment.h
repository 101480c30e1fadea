// LiveSegment: a segment and the deaths of its documents. Shared by every view that shows the segment, so that a
// delete copies nothing: death[ordinal] is written once, and a snapshot at S sees a document as dead iff 0 < death <=
// S.
#ifndef ASHLAR_SRC_ENGINE_LIVE_SEGMENT_H_
#define ASHLAR_SRC_ENGINE_LIVE_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "format/deaths.h"
#include "src/base/mutex.h"
#include "src/segment/segment.h"

namespace ashlar::engine {

// Threads: Kill, LoadLengths and Length by one writer at a time; everything else by any thread.
class LiveSegment {
 public:
  LiveSegment(std::shared_ptr<const segment::Segment> segment, format::SegmentEntry entry)
      : segment_(std::move(segment)), entry_(std::move(entry)) {}
  LiveSegment(const LiveSegment&) = delete;
  LiveSegment& operator=(const LiveSegment&) = delete;
  ~LiveSegment() { delete[] deaths_.load(std::memory_order_relaxed); }

  const segment::Segment& segment() const { return *segment_; }
  const std::shared_ptr<const segment::Segment>& shared_segment() const { return segment_; }
  const format::SegmentEntry& entry() const { return entry_; }
  uint32_t document_count() const { return segment_->document_count(); }

  // The sequence of a document's death, 0 if it is alive. Relaxed loads are enough: who holds a snapshot at S acquired
  // it after every death <= S was stored, and any other value means "alive at S".
  Sequence DeathOf(uint32_t ordinal) const {
    const std::atomic<Sequence>* deaths = deaths_.load(std::memory_order_acquire);
    return deaths == nullptr ? 0 : deaths[ordinal].load(std::memory_order_relaxed);
  }
  bool has_deaths() const { return deaths_.load(std::memory_order_acquire) != nullptr; }
  uint32_t death_count() const { return death_count_.load(std::memory_order_relaxed); }

  // Marks a document dead. The array is made at the first death. Sequences must not fall from call to call.
  void Kill(uint32_t ordinal, Sequence sequence);

  // How many postings of a term are of documents that are dead at `at`. Costs nothing where nobody died; remembered per
  // term and brought up to date by the deaths since.
  absl::StatusOr<uint32_t> DeadPostings(format::IndexId index, std::string_view term, Sequence at) const;

  // Writer only: makes Length() usable for every index of `schema`; damage shows here, before anything is written.
  absl::Status LoadLengths(const Schema& schema);
  // Of a document, by SumIndex of the schema given to LoadLengths.
  uint32_t Length(size_t sum_index, uint32_t ordinal) const { return lengths_[sum_index][ordinal]; }

  // All deaths at or before `floor`, by ascending ordinal.
  std::vector<format::Death> DeathsUpTo(Sequence floor) const;

 private:
  const std::shared_ptr<const segment::Segment> segment_;
  const format::SegmentEntry entry_;
  std::atomic<std::atomic<Sequence>*> deaths_{nullptr};
  std::atomic<uint32_t> death_count_{0};

  // What DeadPostings remembers of a term: its dead postings among the first `deaths` of the log.
  struct DeadCount {
    size_t deaths = 0;
    uint32_t postings = 0;
  };
  mutable Mutex log_mutex_;                                     // a leaf, held for copies only
  std::vector<format::Death> log_ ABSL_GUARDED_BY(log_mutex_);  // in order of sequence
  mutable absl::flat_hash_map<std::string, DeadCount> dead_counts_ ABSL_GUARDED_BY(log_mutex_);

  std::vector<segment::LengthReader> lengths_;  // fields by number, then the group; the writer's
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_LIVE_SEGMENT_H_
