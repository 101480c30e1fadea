#include "src/env/process.h"

#include <fcntl.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace ashlar::env {
namespace {

std::atomic<uint64_t> fork_generation{0};

void CountFork() { fork_generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

uint64_t ForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  (void)registered;
  return fork_generation.load(std::memory_order_relaxed);
}

void ReserveStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free descriptor is this one. The wrong way round, so that reads and writes go on failing with EBADF.
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

}  // namespace ashlar::env
