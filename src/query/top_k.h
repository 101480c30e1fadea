// TopK: keeps the best documents by (score, put order). Put order = rank by DocumentId, so a tie goes to the lower one.
#ifndef ASHLAR_SRC_QUERY_TOP_K_H_
#define ASHLAR_SRC_QUERY_TOP_K_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

namespace ashlar::query {

class TopK {
 public:
  // score << 32 | ~put order: one comparison orders two hits. Scores are not negative.
  static uint64_t KeyOf(int32_t score, uint32_t put_order) {
    return static_cast<uint64_t>(static_cast<uint32_t>(score)) << 32 | static_cast<uint32_t>(~put_order);
  }
  static int32_t ScoreOf(uint64_t key) { return static_cast<int32_t>(key >> 32); }
  static uint32_t PutOrderOf(uint64_t key) { return ~static_cast<uint32_t>(key); }

  // Memory grows with what is offered, not with the limit.
  explicit TopK(uint64_t limit, std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : limit_(limit), keys_(memory) {}

  void Offer(int32_t score, uint32_t put_order) {
    const uint64_t key = KeyOf(score, put_order);
    if (keys_.size() < limit_) {
      if (keys_.empty()) keys_.reserve(std::min(limit_, kReserved));
      keys_.push_back(key);
      if (keys_.size() == limit_) std::make_heap(keys_.begin(), keys_.end(), std::greater<>());
    } else if (limit_ > 0 && key > keys_.front()) {
      ReplaceLowest(key);
    }
  }

  uint64_t limit() const { return limit_; }
  // From now on only what is above lowest() gets in.
  bool full() const { return keys_.size() == limit_; }
  uint64_t lowest() const { return keys_.front(); }  // of a full one with a limit
  bool MayEnter(uint64_t key) const { return !full() || key > lowest(); }
  // The least score with which this put order, or a later one, may still enter.
  int32_t Needed(uint32_t put_order) const { return full() ? ScoreToReach(lowest() + 1, put_order) : 0; }
  // The least score that gives this put order at least that key.
  static int32_t ScoreToReach(uint64_t key, uint32_t put_order) {
    const int32_t score = ScoreOf(key);
    return KeyOf(score, put_order) >= key ? score : score + 1;
  }

  // Best first. Ends the collecting.
  std::span<const uint64_t> Take() {
    std::sort(keys_.begin(), keys_.end(), std::greater<>());
    return keys_;
  }

 private:
  // The lowest key is on top; the hole it leaves sinks to where the new key fits.
  void ReplaceLowest(uint64_t key) {
    size_t hole = 0;
    for (size_t child = 1; child < keys_.size(); child = 2 * hole + 1) {
      if (child + 1 < keys_.size() && keys_[child + 1] < keys_[child]) ++child;
      if (keys_[child] >= key) break;
      keys_[hole] = keys_[child];
      hole = child;
    }
    keys_[hole] = key;
  }

  static constexpr uint64_t kReserved = 128;
  uint64_t limit_;
  std::pmr::vector<uint64_t> keys_;  // a min-heap once it is full
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_TOP_K_H_
