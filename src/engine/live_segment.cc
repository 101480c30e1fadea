#include "src/engine/live_segment.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/status.h"

namespace ashlar::engine {
namespace {

// Terms remembered per segment; beyond, all are forgotten, for keeping track of which are asked for would cost more.
constexpr size_t kDeadCountsMax = 4096;
// A seek costs about this many steps to the next posting.
constexpr size_t kPostingsPerSeek = 16;

}  // namespace

void LiveSegment::Kill(uint32_t ordinal, Sequence sequence) {
  std::atomic<Sequence>* deaths = deaths_.load(std::memory_order_relaxed);
  if (deaths == nullptr) {
    deaths = new std::atomic<Sequence>[document_count()]();
    deaths_.store(deaths, std::memory_order_release);
  }
  ASHLAR_DCHECK(deaths[ordinal].load(std::memory_order_relaxed) == 0);
  deaths[ordinal].store(sequence, std::memory_order_relaxed);
  death_count_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(&log_mutex_);
  ASHLAR_DCHECK(log_.empty() || log_.back().sequence <= sequence);
  log_.push_back({ordinal, sequence});
}

absl::StatusOr<uint32_t> LiveSegment::DeadPostings(format::IndexId index, std::string_view term, Sequence at) const {
  std::string key(reinterpret_cast<const char*>(&index), sizeof index);
  key += term;
  DeadCount known;
  std::vector<format::Death> news;
  {
    MutexLock lock(&log_mutex_);
    const auto end = std::partition_point(log_.begin(), log_.end(),
                                          [at](const format::Death& death) { return death.sequence <= at; });
    const auto deaths = static_cast<size_t>(end - log_.begin());
    // An older snapshot than the one that was remembered counts for itself.
    if (const auto found = dead_counts_.find(key); found != dead_counts_.end() && found->second.deaths <= deaths)
      known = found->second;
    news.assign(log_.begin() + static_cast<ptrdiff_t>(known.deaths), end);
  }
  if (news.empty()) return known.postings;

  segment::PostingCursor cursor = segment_->OpenTerm(index, term);
  DeadCount now{known.deaths + news.size(), known.postings};
  if (news.size() * kPostingsPerSeek < cursor.postings()) {
    std::sort(news.begin(), news.end(),
              [](const format::Death& a, const format::Death& b) { return a.ordinal < b.ordinal; });
    for (const format::Death& death : news) {
      cursor.Seek(death.ordinal);
      now.postings += cursor.document() == death.ordinal;
    }
  } else {
    now.postings = 0;
    for (; cursor.document() != format::kNoDocument; cursor.Next()) {
      const Sequence death = DeathOf(cursor.document());
      now.postings += death != 0 && death <= at;
    }
  }
  ASHLAR_RETURN_IF_ERROR(cursor.status());

  MutexLock lock(&log_mutex_);
  if (dead_counts_.size() >= kDeadCountsMax) dead_counts_.clear();
  DeadCount& remembered = dead_counts_[key];
  if (remembered.deaths < now.deaths) remembered = now;
  return now.postings;
}

absl::Status LiveSegment::LoadLengths(const Schema& schema) {
  if (lengths_.size() == schema.fields.size() + 1) return absl::OkStatus();
  std::vector<segment::LengthReader> loaded;
  for (size_t i = 0; i <= schema.fields.size(); ++i) {
    const bool group = i == schema.fields.size();
    ASHLAR_ASSIGN_OR_RETURN(const segment::LengthReader reader,
                            segment_->Lengths(group ? format::kGroupIndex : static_cast<format::IndexId>(i)));
    loaded.push_back(reader);
  }
  lengths_ = std::move(loaded);
  return absl::OkStatus();
}

std::vector<format::Death> LiveSegment::DeathsUpTo(Sequence floor) const {
  std::vector<format::Death> result;
  {
    MutexLock lock(&log_mutex_);
    for (const format::Death& death : log_)
      if (death.sequence <= floor) result.push_back(death);
  }
  std::sort(result.begin(), result.end(),
            [](const format::Death& a, const format::Death& b) { return a.ordinal < b.ordinal; });
  return result;
}

}  // namespace ashlar::engine
