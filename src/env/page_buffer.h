// Memory that starts on a page, as mapped files do: readers rely on aligned sections.
#ifndef ASHLAR_SRC_ENV_PAGE_BUFFER_H_
#define ASHLAR_SRC_ENV_PAGE_BUFFER_H_

#include <cstddef>
#include <new>
#include <vector>

namespace ashlar::env {

template <class T>
struct PageAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{4096};
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const PageAllocator&) const { return true; }
};

using PageBuffer = std::vector<std::byte, PageAllocator<std::byte>>;

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_PAGE_BUFFER_H_
