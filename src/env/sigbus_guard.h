// SIGBUS guard: a page of a mapped file that can't be had (the file became shorter, the disk failed) reads as zeros and is told of,
// instead of ending the process. See docs/adr/0006.
#ifndef ASHLAR_SRC_ENV_SIGBUS_GUARD_H_
#define ASHLAR_SRC_ENV_SIGBUS_GUARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ashlar::env {

// What: one mapping in the process-wide table that the signal handler looks into.
// Owns: its place in the table, given back when it is destroyed: before the mapping is undone.
// Threads: any. lost() is true before any thread can see a zero that stands for a lost byte.
class GuardedMapping {
 public:
  // Installs the handler if this is the first of the process. [begin, begin + size) must be mapped and stay mapped.
  GuardedMapping(const std::byte* begin, size_t size);
  ~GuardedMapping();
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;

  // False: no memory for a place in the table, or the handler could not be installed.
  bool ok() const { return place_ != nullptr; }
  // A page was lost. One relaxed-enough load.
  bool lost() const;
  // Offset of the page that was lost first; meaningful if lost().
  uint64_t lost_offset() const;

  struct Place;

 private:
  Place* place_ = nullptr;
};

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_SIGBUS_GUARD_H_
