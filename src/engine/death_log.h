// DeathLog: the deaths of one source in their order, and how many postings of a list they make dead, which is counted
// once a list and brought up to date by the deaths since.
#ifndef ASHLAR_SRC_ENGINE_DEATH_LOG_H_
#define ASHLAR_SRC_ENGINE_DEATH_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "format/deaths.h"
#include "format/layout.h"
#include "src/base/mutex.h"
#include "src/base/status.h"

namespace ashlar::engine {

// Threads: Add by one writer at a time; everything else by any thread. The mutex is held for copies only.
class DeathLog {
 public:
  // Sequences must not fall from call to call.
  void Add(uint32_t ordinal, Sequence sequence);
  uint32_t CountUpTo(Sequence at) const;
  // In ascending order of ordinal.
  std::vector<format::Death> UpTo(Sequence at) const;
  // Those after `after` and up to `at`, in order of sequence.
  std::vector<format::Death> Between(Sequence after, Sequence at) const;

  // How many postings of a list are of documents that are dead at `at`. `open_cursor` gives a cursor on the list;
  // `is_dead` tells whether a document is dead at `at`; `checked` says, after the list was read, whether what it gave
  // counts.
  template <class Open, class IsDead, class Checked>
  absl::StatusOr<uint32_t> DeadPostings(format::IndexId index, std::string_view term, Sequence at,
                                        const Open& open_cursor, const IsDead& is_dead, const Checked& checked) const {
    constexpr size_t kPostingsPerSeek = 16;  // a seek costs about so many steps to the next posting
    const std::string list = NameOf(index, term);
    std::vector<format::Death> news;
    DeadCount count = Recall(list, at, &news);
    if (news.empty()) return count.postings;
    auto cursor = open_cursor();
    count.deaths += news.size();
    if (news.size() * kPostingsPerSeek < cursor.postings()) {
      std::sort(news.begin(), news.end(),
                [](const format::Death& a, const format::Death& b) { return a.ordinal < b.ordinal; });
      for (const format::Death& death : news) {
        cursor.Seek(death.ordinal);
        count.postings += cursor.document() == death.ordinal ? 1 : 0;
      }
    } else {
      count.postings = 0;
      for (; cursor.document() != format::kNoDocument; cursor.Next())
        count.postings += is_dead(cursor.document()) ? 1 : 0;
    }
    ASHLAR_RETURN_IF_ERROR(checked(cursor.status()));
    Remember(list, count);
    return count.postings;
  }

 private:
  // Of a list: its dead postings among the first `deaths` of the log.
  struct DeadCount {
    size_t deaths = 0;
    uint32_t postings = 0;
  };
  static std::string NameOf(format::IndexId index, std::string_view term);
  // What is remembered of the list, if it is not younger than `at`, and the deaths since, up to `at`.
  DeadCount Recall(const std::string& list, Sequence at, std::vector<format::Death>* news) const;
  void Remember(const std::string& list, DeadCount count) const;
  std::vector<format::Death>::const_iterator EndAt(Sequence at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;                                        // a leaf
  std::vector<format::Death> deaths_ ABSL_GUARDED_BY(mutex_);  // in order of sequence
  mutable absl::flat_hash_map<std::string, DeadCount> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_DEATH_LOG_H_
