// Counts what each thread takes from operator new. Only in ashlar-bench: the library is not changed by being measured.
// What C libraries take from malloc themselves (ICU, zstd, LMDB) is not in it.
#ifndef ASHLAR_BENCH_ALLOCATIONS_H_
#define ASHLAR_BENCH_ALLOCATIONS_H_

#include <cstdint>

#include "bench/lane.h"

namespace ashlar::bench {

struct Allocations {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // as asked for

  Allocations Since(const Allocations& before) const { return {calls - before.calls, bytes - before.bytes}; }
  // "allocations", "allocated_bytes" into a row.
  void Report(Json* row) const;
};

// Of the calling thread, since it began.
Allocations ThreadAllocations();

// While one lives, every allocation of its thread is written to standard error with the calls that led to it, as
// `program(+offset)`, which addr2line reads.
class AllocationTrace {
 public:
  AllocationTrace();
  ~AllocationTrace();
  AllocationTrace(const AllocationTrace&) = delete;
  AllocationTrace& operator=(const AllocationTrace&) = delete;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_ALLOCATIONS_H_
