#include "src/engine/death_log.h"

#include "src/base/check.h"

namespace ashlar::engine {
namespace {

// Lists remembered per source; beyond, all are forgotten, for keeping track of which are asked for would cost more.
constexpr size_t kListsMax = 4096;

}  // namespace

void DeathLog::Add(uint32_t ordinal, Sequence sequence) {
  MutexLock lock(&mutex_);
  ASHLAR_DCHECK(deaths_.empty() || deaths_.back().sequence <= sequence);
  deaths_.push_back({ordinal, sequence});
}

std::vector<format::Death>::const_iterator DeathLog::EndAt(Sequence at) const {
  return std::partition_point(deaths_.begin(), deaths_.end(),
                              [at](const format::Death& death) { return death.sequence <= at; });
}

uint32_t DeathLog::CountUpTo(Sequence at) const {
  MutexLock lock(&mutex_);
  return static_cast<uint32_t>(EndAt(at) - deaths_.begin());
}

std::vector<format::Death> DeathLog::UpTo(Sequence at) const {
  std::vector<format::Death> result;
  {
    MutexLock lock(&mutex_);
    result.assign(deaths_.begin(), EndAt(at));
  }
  std::sort(result.begin(), result.end(),
            [](const format::Death& a, const format::Death& b) { return a.ordinal < b.ordinal; });
  return result;
}

std::vector<format::Death> DeathLog::Between(Sequence after, Sequence at) const {
  MutexLock lock(&mutex_);
  return std::vector<format::Death>(EndAt(std::min(after, at)), EndAt(at));
}

std::string DeathLog::NameOf(format::IndexId index, std::string_view term) {
  std::string name(reinterpret_cast<const char*>(&index), sizeof index);
  name += term;
  return name;
}

DeathLog::DeadCount DeathLog::Recall(const std::string& list, Sequence at, std::vector<format::Death>* news) const {
  DeadCount known;
  MutexLock lock(&mutex_);
  const auto end = EndAt(at);
  const auto deaths = static_cast<size_t>(end - deaths_.begin());
  // An older snapshot than the one that was remembered counts for itself.
  if (const auto found = counts_.find(list); found != counts_.end() && found->second.deaths <= deaths)
    known = found->second;
  news->assign(deaths_.begin() + static_cast<ptrdiff_t>(known.deaths), end);
  return known;
}

void DeathLog::Remember(const std::string& list, DeadCount count) const {
  MutexLock lock(&mutex_);
  if (counts_.size() >= kListsMax) counts_.clear();
  DeadCount& remembered = counts_[list];
  if (remembered.deaths < count.deaths) remembered = count;
}

}  // namespace ashlar::engine
