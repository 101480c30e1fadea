// HashTable: an open-addressing table of references that readers probe while one writer adds to it. It grows by
// publishing a larger copy; the smaller ones are kept until the end, because a reader may still be in one. A reader
// finds all that was published to it (see overlay.h), and perhaps more.
#ifndef ASHLAR_SRC_OVERLAY_HASH_TABLE_H_
#define ASHLAR_SRC_OVERLAY_HASH_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/overlay/arena.h"

namespace ashlar::overlay {

// Ref: a small trivially copyable value; Ref{} is an empty slot.
template <class Ref>
class HashTable {
 public:
  explicit HashTable(MemoryCount* memory) : memory_(memory) { Publish(kFirstSlots); }

  // The reference for which `equal` holds among those added with this hash, or Ref{}.
  template <class Equal>
  Ref Find(uint32_t hash, const Equal& equal) const {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (uint32_t at = hash & table.mask;; at = (at + 1) & table.mask) {
      // Loaded once: the writer may fill a slot that was seen empty.
      const Ref ref = table.slots[at].load(std::memory_order_acquire);
      if (ref == Ref{} || equal(ref)) return ref;
    }
  }

  // Calls `visit` for every reference, in no order.
  template <class Visitor>
  void Visit(const Visitor& visit) const {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (size_t i = 0; i <= table.mask; ++i) {
      const Ref ref = table.slots[i].load(std::memory_order_acquire);
      if (ref != Ref{}) visit(ref);
    }
  }

  // --- writer ---
  // The slot to read or to fill (then call Added).
  template <class Equal>
  std::atomic<Ref>* FindSlot(uint32_t hash, const Equal& equal) {
    return FindSlot(*table_.load(std::memory_order_relaxed), hash, equal);
  }
  // The slot at which a search for the hash begins.
  const std::atomic<Ref>* FirstSlot(uint32_t hash) const {
    const Table& table = *table_.load(std::memory_order_relaxed);
    return &table.slots[hash & table.mask];
  }
  // After a slot was filled: grows at half full. `hash_of(ref)` gives back the hash that a reference was added with.
  template <class HashOf>
  void Added(const HashOf& hash_of) {
    const Table& old = *table_.load(std::memory_order_relaxed);
    if (++count_ * 2 <= size_t{old.mask} + 1) return;
    if (size_t{old.mask} + 1 >= kSlotsMax) return;
    Grow(old, hash_of);
  }

 private:
  static constexpr size_t kFirstSlots = 64;
  // Hashes have 32 bits, and a slot must stay free to end a search: 2^32 - 2 documents fit.
  static constexpr size_t kSlotsMax = size_t{1} << 32;

  struct Table {
    explicit Table(size_t count) : mask(static_cast<uint32_t>(count - 1)), slots(new std::atomic<Ref>[count]()) {}
    uint32_t mask;
    std::unique_ptr<std::atomic<Ref>[]> slots;
  };

  template <class Equal>
  static std::atomic<Ref>* FindSlot(const Table& table, uint32_t hash, const Equal& equal) {
    for (uint32_t at = hash & table.mask;; at = (at + 1) & table.mask) {
      const Ref ref = table.slots[at].load(std::memory_order_relaxed);
      if (ref == Ref{} || equal(ref)) return &table.slots[at];
    }
  }

  template <class HashOf>
  void Grow(const Table& old, const HashOf& hash_of) {
    auto table = std::make_unique<Table>((size_t{old.mask} + 1) * 2);
    for (size_t i = 0; i <= old.mask; ++i) {
      const Ref ref = old.slots[i].load(std::memory_order_relaxed);
      if (ref == Ref{}) continue;
      FindSlot(*table, hash_of(ref), [](Ref) { return false; })->store(ref, std::memory_order_relaxed);
    }
    Publish(std::move(table));
  }

  void Publish(size_t slots) { Publish(std::make_unique<Table>(slots)); }
  void Publish(std::unique_ptr<Table> table) {
    memory_->Add((size_t{table->mask} + 1) * sizeof(Ref));
    table_.store(table.get(), std::memory_order_release);
    tables_.push_back(std::move(table));
  }

  MemoryCount* memory_;
  std::atomic<Table*> table_{nullptr};
  std::vector<std::unique_ptr<Table>> tables_;
  size_t count_ = 0;
};

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_HASH_TABLE_H_
