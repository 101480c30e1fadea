// Memory that starts on a page, as mapped files do (readers rely on aligned sections), and huge pages.
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

// A size from which huge pages are worth asking for, and their alignment.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;
// Asks for huge pages in memory that was not touched yet: a first touch then costs one fault for 2 MiB instead of 512.
void AdviseHugePages(void* begin, size_t bytes);

using PageBuffer = std::vector<std::byte, PageAllocator<std::byte>>;

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_PAGE_BUFFER_H_
