// The handler may run in any thread at any moment, so it uses atomics, sigaction and mmap only, and the table is without
// locks: places are never freed, only used again, and a place that is being changed is passed over by whoever looks for
// another address.
#include "src/env/sigbus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace ashlar::env {

struct GuardedMapping::Place {
  std::atomic<bool> taken{false};
  std::atomic<uint32_t> version{0};  // odd: being changed
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: no mapping
  std::atomic<bool> lost{false};
  std::atomic<uintptr_t> lost_at{0};
};

namespace {

using Place = GuardedMapping::Place;

constexpr size_t kPlacesPerChunk = 64;
struct Chunk {
  Place places[kPlacesPerChunk];
  Chunk* next = nullptr;  // set before it is in the list
};
std::atomic<Chunk*> chunks{nullptr};

// The handler that was there before, written once before ours can run.
struct sigaction previous {};
std::atomic<bool> previous_is_used_up{false};  // SA_RESETHAND
uintptr_t page_bytes = 0;

void Set(Place* place, uintptr_t begin, uintptr_t end) {
  place->version.fetch_add(1, std::memory_order_seq_cst);
  place->begin.store(begin, std::memory_order_seq_cst);
  place->end.store(end, std::memory_order_seq_cst);
  place->version.fetch_add(1, std::memory_order_seq_cst);
}

// The mapping that is being read can't be changed meanwhile, so its place is stable; others may be torn, and don't count.
Place* Find(uintptr_t address) {
  for (Chunk* chunk = chunks.load(std::memory_order_acquire); chunk != nullptr; chunk = chunk->next) {
    for (Place& place : chunk->places) {
      const uint32_t version = place.version.load(std::memory_order_seq_cst);
      const uintptr_t begin = place.begin.load(std::memory_order_seq_cst);
      const uintptr_t end = place.end.load(std::memory_order_seq_cst);
      if (version % 2 != 0 || version != place.version.load(std::memory_order_seq_cst)) continue;
      if (begin <= address && address < end) return &place;
    }
  }
  return nullptr;
}

// As if ours were not there. Where the default or "ignore" stood the system ends the process at a fault, which comes again
// as soon as we return; a signal that somebody sent does not come again, so it is raised.
void PassOn(int signal, siginfo_t* info, void* context) {
  const bool sent = info->si_code <= 0;
  const bool reset = (previous.sa_flags & SA_RESETHAND) != 0 && previous_is_used_up.exchange(true);
  if ((previous.sa_flags & SA_SIGINFO) != 0 && !reset) return previous.sa_sigaction(signal, info, context);
  if (!reset && previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
  if (!reset && previous.sa_handler == SIG_IGN && sent) return;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  if (sent) ::raise(signal);  // blocked until the handler returns
}

void Handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Place* const place = info->si_code > 0 ? Find(address) : nullptr;
  if (place != nullptr) {
    const uintptr_t page = address / page_bytes * page_bytes;
    uintptr_t none = 0;
    place->lost_at.compare_exchange_strong(none, page, std::memory_order_seq_cst);
    place->lost.store(true, std::memory_order_seq_cst);  // before a zero can be seen
    // The bare system call: mmap() is not on the list of what a handler may call, and ThreadSanitizer takes it for a write,
    // though other threads fault themselves or find the zeros that are theirs to find.
    const int64_t mapped =
        ::syscall(SYS_mmap, page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped == static_cast<int64_t>(page)) {
      errno = error;
      return;  // the load is done again, and finds zeros
    }
  }
  PassOn(signal, info, context);
  errno = error;
}

// Once, for good: who installs a handler later is asked to pass on what is not theirs, and putting ours before it again would make
// the two call each other for ever.
bool Install() {
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (::sigaction(SIGBUS, nullptr, &previous) != 0) return false;
  struct sigaction ours {};
  ours.sa_sigaction = &Handle;
  ours.sa_mask = previous.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  return ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

Place* Take() {
  while (true) {
    Chunk* const first = chunks.load(std::memory_order_acquire);
    for (Chunk* chunk = first; chunk != nullptr; chunk = chunk->next)
      for (Place& place : chunk->places)
        if (!place.taken.load(std::memory_order_relaxed) && !place.taken.exchange(true, std::memory_order_acquire))
          return &place;
    auto* const more = new (std::nothrow) Chunk;  // never freed: the handler may be looking at it
    if (more == nullptr) return nullptr;
    more->places[0].taken.store(true, std::memory_order_relaxed);
    more->next = first;
    if (chunks.compare_exchange_strong(more->next, more, std::memory_order_acq_rel)) return &more->places[0];
    delete more;  // somebody else was faster, and has places
  }
}

}  // namespace

GuardedMapping::GuardedMapping(const std::byte* begin, size_t size) {
  static const bool installed = Install();
  if (!installed) return;
  place_ = Take();
  if (place_ == nullptr) return;
  place_->lost.store(false, std::memory_order_relaxed);
  place_->lost_at.store(0, std::memory_order_relaxed);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  Set(place_, address, (address + size + page_bytes - 1) / page_bytes * page_bytes);
}

GuardedMapping::~GuardedMapping() {
  if (place_ == nullptr) return;
  Set(place_, 0, 0);
  place_->taken.store(false, std::memory_order_release);
}

bool GuardedMapping::lost() const { return place_ != nullptr && place_->lost.load(std::memory_order_acquire); }

uint64_t GuardedMapping::lost_offset() const {
  return place_->lost_at.load(std::memory_order_relaxed) - place_->begin.load(std::memory_order_relaxed);
}

}  // namespace ashlar::env
