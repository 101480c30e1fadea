// Arena: memory that is only given out, never back, until all of it goes. One thread allocates; what was published
// through an atomic may be read by any.
#ifndef ASHLAR_SRC_OVERLAY_ARENA_H_
#define ASHLAR_SRC_OVERLAY_ARENA_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ashlar::overlay {

// Bytes in use by one overlay. One thread adds, any may read.
class MemoryCount {
 public:
  void Add(uint64_t bytes) { bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed); }
  uint64_t Get() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> bytes_{0};
};

class Arena {
 public:
  explicit Arena(MemoryCount* memory) : memory_(memory) {}

  // Memory aligned to 8 bytes, not zeroed. A failed allocation of a block terminates, like any small `new`.
  std::byte* Allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > left_) NewBlock(bytes);
    std::byte* result = at_;
    at_ += bytes;
    left_ -= bytes;
    return result;
  }

 private:
  static constexpr size_t kFirstBlockBytes = size_t{16} << 10;
  static constexpr size_t kLastBlockBytes = size_t{1} << 20;

  void NewBlock(size_t bytes_min) {
    const size_t bytes = std::max(block_bytes_, bytes_min);
    // A block is made of 8-byte words, which aligns it.
    blocks_.push_back(std::unique_ptr<uint64_t[]>(new uint64_t[(bytes + 7) / 8]));
    at_ = reinterpret_cast<std::byte*>(blocks_.back().get());
    left_ = bytes;
    block_bytes_ = std::min(block_bytes_ * 2, kLastBlockBytes);
    memory_->Add(bytes);
  }

  MemoryCount* memory_;
  std::byte* at_ = nullptr;
  size_t left_ = 0;
  size_t block_bytes_ = kFirstBlockBytes;
  std::vector<std::unique_ptr<uint64_t[]>> blocks_;
};

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_ARENA_H_
