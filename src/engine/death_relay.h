// DeathRelay: documents are copied into a new segment (from a frozen overlay, or from segments that a merge joins)
// while writers go on deleting them where they were. What died meanwhile dies in the copy, too.
#ifndef ASHLAR_SRC_ENGINE_DEATH_RELAY_H_
#define ASHLAR_SRC_ENGINE_DEATH_RELAY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ashlar/document.h"
#include "src/engine/death_log.h"
#include "src/engine/live_segment.h"

namespace ashlar::engine {

// Threads: one. The sources must outlive it.
class DeathRelay {
 public:
  // Documents that died at or before `floor` were left out when they were copied.
  explicit DeathRelay(Sequence floor) : reached_(floor) {}

  // `new_ordinal` maps the source's ordinals to the copy's; format::kNoDocument: left out.
  void AddSource(const DeathLog* deaths, std::vector<uint32_t> new_ordinal) {
    sources_.push_back({deaths, std::move(new_ordinal)});
  }
  // Takes over the deaths up to `up_to` that were not taken over yet. All of them must be in the logs: `up_to` is a
  // sequence that was reached, or the writer stands still. Most are taken over while the writer goes on; the last pass
  // is short.
  void Pass(Sequence up_to, LiveSegment* copy);

 private:
  struct Source {
    const DeathLog* deaths;
    std::vector<uint32_t> new_ordinal;
  };
  std::vector<Source> sources_;
  Sequence reached_;
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_DEATH_RELAY_H_
