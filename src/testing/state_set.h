// StateSet: how many distinct post-crash states were seen, and the counts that a run reports. Threads: any.
#ifndef ASHLAR_SRC_TESTING_STATE_SET_H_
#define ASHLAR_SRC_TESTING_STATE_SET_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "src/base/mutex.h"

namespace ashlar::testing {

// Hashes only: about 10 bytes a state.
class StateSet {
 public:
  // Whether it is new.
  bool Insert(uint64_t hash) {
    Shard& shard = shards_[hash % kShards];
    MutexLock lock(&shard.mutex);
    const bool is_new = shard.hashes.insert(hash).second;
    if (is_new) size_.fetch_add(1, std::memory_order_relaxed);
    return is_new;
  }
  uint64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 16;
  struct Shard {
    Mutex mutex;
    absl::flat_hash_set<uint64_t> hashes ABSL_GUARDED_BY(mutex);
  };
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> size_{0};
};

struct LabCounters {
  std::atomic<uint64_t> runs{0};              // of workloads, from the beginning to an end
  std::atomic<uint64_t> crashes{0};           // tried; several may leave the same state
  std::atomic<uint64_t> faults{0};            // injected
  std::atomic<uint64_t> recoveries{0};        // of which everything was compared
  std::atomic<uint64_t> recovery_crashes{0};  // in the middle of a recovery
  std::atomic<uint64_t> damages{0};           // bits flipped and files cut
};

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_STATE_SET_H_
