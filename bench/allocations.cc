#include "bench/allocations.h"

#include <execinfo.h>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace ashlar::bench {
namespace {

thread_local Allocations counted;
thread_local bool traced = false;

void WriteTrace(size_t bytes) {
  constexpr int kCallsMax = 24, kOwnCalls = 3;
  traced = false;  // of what this allocates
  void* calls[kCallsMax];
  const int n = backtrace(calls, kCallsMax);
  std::fprintf(stderr, "allocation of %zu bytes\n", bytes);
  std::fflush(stderr);
  if (n > kOwnCalls) backtrace_symbols_fd(calls + kOwnCalls, n - kOwnCalls, fileno(stderr));
  traced = true;
}

void* Allocate(size_t bytes, size_t alignment) {
  ++counted.calls;
  counted.bytes += bytes;
  if (traced) WriteTrace(bytes);
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* AllocateOrThrow(size_t bytes, size_t alignment) {
  void* const result = Allocate(bytes, alignment);
  if (result == nullptr) throw std::bad_alloc();
  return result;
}

}  // namespace

void Allocations::Report(Json* row) const {
  (*row)["allocations"] = calls;
  (*row)["allocated_bytes"] = bytes;
}

Allocations ThreadAllocations() { return counted; }

AllocationTrace::AllocationTrace() { traced = true; }
AllocationTrace::~AllocationTrace() { traced = false; }

}  // namespace ashlar::bench

// The forms for arrays and those that do not throw call these. So does every library of the process.
void* operator new(size_t bytes) { return ashlar::bench::AllocateOrThrow(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return ashlar::bench::AllocateOrThrow(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, size_t) noexcept { std::free(place); }
void operator delete(void* place, std::align_val_t) noexcept { std::free(place); }
void operator delete(void* place, size_t, std::align_val_t) noexcept { std::free(place); }
