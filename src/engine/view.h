// View, cell and snapshot: how a fixed point in time is shared without stopping the writer.
//
//   View  the sources: segments, frozen overlays, the overlay. A new one when a freeze, a flush, a merge or a new schema
//         changes them.
//   Cell  the point in time within a view: sequence, documents of the overlay, live statistics. A new one per batch
//         group.
//
// A snapshot is one View and the Cell that belonged to it at one moment; ViewBox exchanges both under a mutex that
// guards only that copy (std::atomic<shared_ptr> of g++ 12 is not clean under ThreadSanitizer).
#ifndef ASHLAR_SRC_ENGINE_VIEW_H_
#define ASHLAR_SRC_ENGINE_VIEW_H_

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/mutex.h"
#include "src/engine/live_overlay.h"
#include "src/engine/live_segment.h"
#include "src/env/env.h"

namespace ashlar::engine {

// Sums of the lengths of live documents: one per field number, the default group's last.
using LengthSums = std::vector<uint64_t>;

inline size_t SumIndex(const Schema& schema, format::IndexId index) {
  return index == format::kGroupIndex ? schema.fields.size() : index;
}

// An overlay that gets no more documents, and what the catalog will say once it is a segment. Its documents can still die, at
// sequences beyond the floor.
struct FrozenOverlay {
  std::shared_ptr<LiveOverlay> overlay;
  uint32_t documents = 0;  // dead ones included
  Sequence floor = 0;      // the last sequence before the next overlay began
  std::optional<std::string> watermark;  // as of the floor
  uint64_t journal_number = 0;  // of the first journal file that may hold records beyond the floor; 0: no journal is written
  uint64_t replay_bytes = 0;    // of the journal's records up to the floor
};

struct View {
  uint64_t generation = 0;  // of the catalog, like all up to the schema
  format::StoreId store_id{};
  std::string analyzer_identity;
  uint64_t next_file_number = 0;
  uint32_t schema_number = 0;
  std::shared_ptr<const Schema> schema;
  // Ascending DocumentId: the segments, the frozen overlays, the overlay.
  std::vector<std::shared_ptr<LiveSegment>> segments;
  std::vector<FrozenOverlay> frozen;
  std::shared_ptr<LiveOverlay> overlay;
  std::vector<uint32_t> bases;  // put order of ordinal 0, one per source in that order
  // Keeps files of a memory store alive as long as somebody can read them.
  std::shared_ptr<env::MemoryEnv> memory;
};

struct Cell {
  Sequence sequence = 0;
  uint32_t overlay_documents = 0;  // of View::overlay, dead ones included
  uint64_t live_documents = 0;
  LengthSums length_sums;
  Sequence last_sequence = 0;            // sequences go on beyond this one
  std::optional<std::string> watermark;  // of the batches up to `sequence`
};

// Every snapshot that is held, oldest first. Outlives the engine, for snapshots may.
class SnapshotList {
 public:
  struct Entry {
    Sequence sequence;
    uint64_t taken_ns;
    const View* view;  // the snapshot's own
  };
  using Place = std::list<Entry>::iterator;
  Place Add(Sequence sequence, uint64_t now_ns, const View* view) {
    MutexLock lock(&mutex_);
    return entries_.insert(entries_.end(), Entry{sequence, now_ns, view});
  }
  void Remove(Place place) {
    MutexLock lock(&mutex_);
    entries_.erase(place);
  }
  // {0, 0, nullptr} if none is held.
  Entry Oldest() const {
    MutexLock lock(&mutex_);
    return entries_.empty() ? Entry{0, 0, nullptr} : entries_.front();
  }
  // Those that keep segments open which are not among these.
  std::vector<Entry> HoldersOfOthers(const std::vector<std::shared_ptr<LiveSegment>>& segments) const {
    std::vector<Entry> holders;
    MutexLock lock(&mutex_);
    for (const Entry& entry : entries_)
      for (const std::shared_ptr<LiveSegment>& live : entry.view->segments) {
        if (std::find(segments.begin(), segments.end(), live) != segments.end()) continue;
        holders.push_back({entry.sequence, entry.taken_ns, nullptr});
        break;
      }
    return holders;
  }

 private:
  mutable Mutex mutex_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

class SnapshotState {
 public:
  SnapshotState(std::shared_ptr<const View> view, std::shared_ptr<const Cell> cell, std::shared_ptr<SnapshotList> list,
                uint64_t now_ns)
      : view_(std::move(view)),
        cell_(std::move(cell)),
        list_(std::move(list)),
        place_(list_->Add(cell_->sequence, now_ns, view_.get())) {}
  ~SnapshotState() { list_->Remove(place_); }
  SnapshotState(const SnapshotState&) = delete;
  SnapshotState& operator=(const SnapshotState&) = delete;

  const View& view() const { return *view_; }
  const Cell& cell() const { return *cell_; }

  // The overlays, frozen ones first. As sources they follow the segments.
  size_t overlay_count() const { return view_->frozen.size() + 1; }
  const LiveOverlay& overlay(size_t i) const {
    return i < view_->frozen.size() ? *view_->frozen[i].overlay : *view_->overlay;
  }
  uint32_t overlay_documents(size_t i) const {
    return i < view_->frozen.size() ? view_->frozen[i].documents : cell_->overlay_documents;
  }

 private:
  const std::shared_ptr<const View> view_;
  const std::shared_ptr<const Cell> cell_;
  const std::shared_ptr<SnapshotList> list_;
  const SnapshotList::Place place_;
};

// The current view and cell, always as a pair.
class ViewBox {
 public:
  void Set(std::shared_ptr<const View> view, std::shared_ptr<const Cell> cell) {
    MutexLock lock(&mutex_);
    view_.swap(view);
    cell_.swap(cell);
  }  // the old pair is released after the mutex
  std::pair<std::shared_ptr<const View>, std::shared_ptr<const Cell>> Get() const {
    MutexLock lock(&mutex_);
    return {view_, cell_};
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const View> view_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Cell> cell_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_VIEW_H_
