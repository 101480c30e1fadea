// Callers: threads that do one thing over and over for a while, each timed for itself.
#ifndef ASHLAR_BENCH_CALLERS_H_
#define ASHLAR_BENCH_CALLERS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/allocations.h"
#include "bench/lane.h"

namespace ashlar::bench {

using Work = std::function<absl::Status()>;

// CPU time of the calling thread. getrusage counts whole ticks of the system, which are longer than most searches.
uint64_t ThreadCpuNs();

struct CallersResult {
  double per_second = 0;  // of all callers together
  uint64_t calls = 0;
  uint64_t cpu_ns = 0;
  Latencies cpu, wall;      // of each call
  Allocations allocations;  // of one call

  double CpuMeanUs() const { return static_cast<double>(cpu_ns) / 1000 / static_cast<double>(calls); }
};

// Runs so many callers for so long; each does its work once before all begin. `make_work` is called in the caller's
// thread.
absl::StatusOr<CallersResult> RunCallers(uint32_t callers, double seconds, const std::function<Work()>& make_work);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_CALLERS_H_
