#include "src/engine/death_relay.h"

#include <algorithm>

#include "format/layout.h"
#include "src/base/check.h"

namespace ashlar::engine {

void DeathRelay::Pass(Sequence up_to, LiveSegment* copy) {
  std::vector<format::Death> news;
  for (const Source& source : sources_) {
    for (const format::Death& death : source.deaths->Between(reached_, up_to)) {
      const uint32_t ordinal = source.new_ordinal[death.ordinal];
      ASHLAR_DCHECK(ordinal != format::kNoDocument);
      if (ordinal != format::kNoDocument) news.push_back({ordinal, death.sequence});
    }
  }
  reached_ = std::max(reached_, up_to);
  // A segment's deaths come in order of sequence.
  std::sort(news.begin(), news.end(),
            [](const format::Death& a, const format::Death& b) { return a.sequence < b.sequence; });
  for (const format::Death& death : news) copy->Kill(death.ordinal, death.sequence);
}

}  // namespace ashlar::engine
