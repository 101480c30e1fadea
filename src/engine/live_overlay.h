// LiveOverlay: an overlay and the log of its deaths.
#ifndef ASHLAR_SRC_ENGINE_LIVE_OVERLAY_H_
#define ASHLAR_SRC_ENGINE_LIVE_OVERLAY_H_

#include "src/engine/death_log.h"
#include "src/overlay/overlay.h"

namespace ashlar::engine {

// Threads: as overlay::Overlay.
class LiveOverlay : public overlay::Overlay {
 public:
  using overlay::Overlay::Overlay;

  void Kill(uint32_t ordinal, Sequence sequence) {
    overlay::Overlay::Kill(ordinal, sequence);
    deaths_.Add(ordinal, sequence);
  }

  const DeathLog& deaths() const { return deaths_; }

  // How many postings of a term are of documents that are dead at `at`; `n` documents belong to the snapshot.
  absl::StatusOr<uint32_t> DeadPostings(format::IndexId index, std::string_view term, uint32_t n, Sequence at) const {
    if (death_count() == 0) return 0;
    const auto is_dead = [&](uint32_t ordinal) {
      const Sequence death = DeathOf(ordinal);
      return death != 0 && death <= at;
    };
    return deaths_.DeadPostings(
        index, term, at, [&] { return OpenTerm(index, term, n); }, is_dead,
        [](const absl::Status& status) { return status; });
  }

 private:
  DeathLog deaths_;
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_LIVE_OVERLAY_H_
