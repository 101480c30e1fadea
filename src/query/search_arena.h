// SearchArena: where a search takes its memory from. A thread keeps one from search to search, so that a search
// allocates nothing but the page that it gives back.
#ifndef ASHLAR_SRC_QUERY_SEARCH_ARENA_H_
#define ASHLAR_SRC_QUERY_SEARCH_ARENA_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

namespace ashlar::query {

// Sanitizers tell arrays apart only if each is an allocation of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ASHLAR_ARENA_ALLOCATES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ASHLAR_ARENA_ALLOCATES 1
#endif
#endif

// Lends the thread's arena, or a new one while that is lent. Whatever took memory from it must be gone before the loan
// is.
class ArenaLoan {
 public:
  ArenaLoan() : arena_(Kept() == nullptr ? std::make_unique_for_overwrite<Arena>() : std::move(Kept())) {}
  ~ArenaLoan() {
    arena_->memory.release();
    Kept() = std::move(arena_);
  }
  ArenaLoan(const ArenaLoan&) = delete;
  ArenaLoan& operator=(const ArenaLoan&) = delete;

  std::pmr::memory_resource* memory() {
#ifdef ASHLAR_ARENA_ALLOCATES
    return std::pmr::new_delete_resource();
#else
    return &arena_->memory;
#endif
  }

 private:
  // What the thread keeps; beyond it a search takes memory from the heap and gives it back at its end.
  static constexpr size_t kKeptBytes = 1024 * 1024;
  struct Arena {
    alignas(64) std::array<std::byte, kKeptBytes> first;
    std::pmr::monotonic_buffer_resource memory{first.data(), first.size()};
  };
  static std::unique_ptr<Arena>& Kept() {
    static thread_local std::unique_ptr<Arena> kept;
    return kept;
  }
  std::unique_ptr<Arena> arena_;
};

// An object of its own in an arena.
struct ArenaDelete {
  std::pmr::memory_resource* memory = nullptr;
  template <class T>
  void operator()(T* object) const {
    std::pmr::polymorphic_allocator<>(memory).delete_object(object);
  }
};
template <class T>
using ArenaPtr = std::unique_ptr<T, ArenaDelete>;
template <class T, class... Args>
ArenaPtr<T> NewIn(std::pmr::memory_resource* memory, Args&&... args) {
  return ArenaPtr<T>(std::pmr::polymorphic_allocator<>(memory).new_object<T>(std::forward<Args>(args)...), {memory});
}

// Puts a value behind those that it is not less than; std::stable_sort would allocate.
template <class T, class Less>
void InsertSorted(std::pmr::vector<T>* sorted, T value, Less less) {
  sorted->insert(std::upper_bound(sorted->begin(), sorted->end(), value, less), value);
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_SEARCH_ARENA_H_
