#include "bench/callers.h"

#include <time.h>

#include <latch>
#include <thread>
#include <vector>

#include "src/base/check.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

struct Caller {
  absl::Status status;
  uint64_t elapsed_ns = 1;
  Allocations allocations;  // of the last call
  std::vector<uint64_t> cpu_ns, wall_ns;
};

// The end of one call is the beginning of the next, so that the clocks are read once a call.
absl::Status CallUntil(uint64_t duration_ns, const Work& work, Caller* caller) {
  const uint64_t start = NowNs();
  uint64_t wall = start, cpu = ThreadCpuNs();
  while (wall - start < duration_ns) {
    const Allocations before = ThreadAllocations();
    ASHLAR_RETURN_IF_ERROR(work());
    caller->allocations = ThreadAllocations().Since(before);
    const uint64_t wall_now = NowNs(), cpu_now = ThreadCpuNs();
    caller->wall_ns.push_back(wall_now - wall);
    caller->cpu_ns.push_back(cpu_now - cpu);
    wall = wall_now;
    cpu = cpu_now;
  }
  caller->elapsed_ns = wall - start;
  return absl::OkStatus();
}

}  // namespace

uint64_t ThreadCpuNs() {
  struct timespec now = {};
  ASHLAR_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

absl::StatusOr<CallersResult> RunCallers(uint32_t callers, double seconds, const std::function<Work()>& make_work) {
  constexpr size_t kCallsExpected = 1 << 16;  // room for them, so that vectors seldom grow meanwhile
  std::vector<Caller> done(callers);
  std::latch ready(callers);
  std::vector<std::thread> threads;
  for (Caller& caller : done) {
    threads.emplace_back([&caller, &ready, &make_work, seconds] {
      caller.cpu_ns.reserve(kCallsExpected);
      caller.wall_ns.reserve(kCallsExpected);
      const Work work = make_work();
      caller.status = work();
      ready.arrive_and_wait();
      if (caller.status.ok()) caller.status = CallUntil(static_cast<uint64_t>(seconds * 1e9), work, &caller);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CallersResult result;
  for (const Caller& caller : done) {
    ASHLAR_RETURN_IF_ERROR(caller.status);
    result.allocations = caller.allocations;
    result.calls += caller.wall_ns.size();
    result.per_second += static_cast<double>(caller.wall_ns.size()) * 1e9 / static_cast<double>(caller.elapsed_ns);
    for (const uint64_t ns : caller.wall_ns) result.wall.Add(ns);
    for (const uint64_t ns : caller.cpu_ns) {
      result.cpu.Add(ns);
      result.cpu_ns += ns;
    }
  }
  return result;
}

}  // namespace ashlar::bench
