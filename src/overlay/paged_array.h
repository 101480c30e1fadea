// PagedArray: an array by ordinal that grows without moving. Pages double in size, so 27 pointers reach every ordinal
// and a place is found with one bit scan. One writer; readers may use what was published to them (see overlay.h).
#ifndef ASHLAR_SRC_OVERLAY_PAGED_ARRAY_H_
#define ASHLAR_SRC_OVERLAY_PAGED_ARRAY_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "src/base/check.h"
#include "src/overlay/arena.h"

namespace ashlar::overlay {

// Elements are zero bytes until the writer makes them.
template <class T>
class PagedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  PagedArray() = default;
  PagedArray(const PagedArray&) = delete;
  PagedArray& operator=(const PagedArray&) = delete;
  ~PagedArray() {
    for (std::atomic<T*>& page : pages_) std::free(page.load(std::memory_order_relaxed));
  }

  // Writer: the element's memory; makes its page if needed.
  T* Slot(uint32_t ordinal, MemoryCount* memory) {
    const Place place = PlaceOf(ordinal);
    T* page = pages_[place.page].load(std::memory_order_relaxed);
    if (page == nullptr) page = NewPage(place.page, memory);
    return page + place.offset;
  }

  // nullptr: nothing was ever written near it.
  const T* Find(uint32_t ordinal) const {
    const Place place = PlaceOf(ordinal);
    const T* page = pages_[place.page].load(std::memory_order_acquire);
    return page == nullptr ? nullptr : page + place.offset;
  }
  T* Find(uint32_t ordinal) { return const_cast<T*>(std::as_const(*this).Find(ordinal)); }

 private:
  static constexpr int kFirstPageBits = 6;
  static constexpr size_t kPages = 33 - kFirstPageBits;

  struct Place {
    size_t page;
    uint64_t offset;
  };
  static Place PlaceOf(uint32_t ordinal) {
    const uint64_t shifted = uint64_t{ordinal} + (uint64_t{1} << kFirstPageBits);
    const int top = static_cast<int>(std::bit_width(shifted)) - 1;
    return {static_cast<size_t>(top - kFirstPageBits), shifted - (uint64_t{1} << top)};
  }

  T* NewPage(size_t page, MemoryCount* memory) {
    const size_t count = size_t{1} << (page + kFirstPageBits);
    // calloc leaves large pages untouched until they are used.
    T* elements = static_cast<T*>(std::calloc(count, sizeof(T)));
    ASHLAR_CHECK(elements != nullptr);
    memory->Add(count * sizeof(T));
    pages_[page].store(elements, std::memory_order_release);
    return elements;
  }

  std::array<std::atomic<T*>, kPages> pages_{};
};

// The lengths of one field or the group.
class LengthColumn {
 public:
  void Set(uint32_t ordinal, uint32_t length, MemoryCount* memory) { *lengths_.Slot(ordinal, memory) = length; }
  uint32_t Get(uint32_t ordinal) const {
    const uint32_t* length = lengths_.Find(ordinal);
    return length == nullptr ? 0 : *length;
  }

 private:
  PagedArray<uint32_t> lengths_;
};

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_PAGED_ARRAY_H_
