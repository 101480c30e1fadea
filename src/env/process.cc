#include "src/env/process.h"

#include <pthread.h>

#include <atomic>

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

}  // namespace ashlar::env
