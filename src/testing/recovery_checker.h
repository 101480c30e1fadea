// What the oracle decides after every recovery: see RecoveryChecker::Recover.
#ifndef ASHLAR_SRC_TESTING_RECOVERY_CHECKER_H_
#define ASHLAR_SRC_TESTING_RECOVERY_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ashlar/store.h"
#include "src/env/sim_env.h"
#include "src/testing/history.h"
#include "src/testing/state_set.h"
#include "src/testing/workload.h"

namespace ashlar::testing {

struct RecoveryOptions {
  size_t policies_max = 64;          // crashes tried at one step, all kept and all dropped among them
  size_t recovery_policies_max = 4;  // the same while a store recovers
  int depth_max = 2;                 // crashes in recoveries of recoveries of ...
  uint64_t recovery_share = 8;       // one state of so many has its recovery crashed as well; 0: none
};

// What is known of a state that was recovered before, by its hash: it needs no second look as long as the promises
// allow it. May be shared by histories of one workload and seed.
struct KnownState {
  uint64_t fingerprint = 0;
  Sequence sequence = 0;    // that it gave to the next batch
  bool numbers_on = false;  // with an end that was clean it would have been the next one
  uint64_t copy = 0;        // of the checkpoint, 0: none
};
using KnownStates = absl::flat_hash_map<uint64_t, KnownState>;

// Explores crashes of one history. Not thread safe; the objects given must outlive it.
class RecoveryChecker {
 public:
  RecoveryChecker(const RecoveryOptions& options, const Options& store_options, const History* history,
                  StateSet* states, LabCounters* counters, KnownStates* known)
      : options_(options),
        store_options_(store_options),
        history_(*history),
        states_(*states),
        counters_(*counters),
        known_(*known) {}

  // Every crash of this moment that the bounds allow. Not OK: a finding; `how` and what the status says replay it.
  absl::Status Explore(const env::SimDisk& disk);
  // One crash of this moment.
  absl::Status ExploreOne(const env::SimDisk& disk, const env::CrashPolicy& policy);

 private:
  absl::Status ExploreAt(const env::SimDisk& disk, size_t policies_max, int depth);
  absl::Status ExploreCopy(const env::SimDisk& disk, const env::CrashPolicy& policy, int depth);
  bool IsAllowed(const KnownState& known) const;
  absl::Status Recover(env::SimDisk* disk, uint64_t hash, int depth, KnownState* known);
  absl::StatusOr<std::unique_ptr<Store>> Open(env::SimDisk* disk, const env::Env& env, const Options& options,
                                              int depth, uint64_t hash);
  absl::Status CheckAnswers(const Store& store, const Snapshot& snapshot, const LabState& state, uint64_t hash) const;
  absl::Status CheckCopy(const env::Env& env, const Store& store, const LabState& state, uint64_t* fingerprint) const;
  absl::Status CheckWrites(env::SimDisk* disk, const env::Env& env, const Options& options,
                           std::unique_ptr<Store> store, const DocumentList& found, uint64_t hash, int depth,
                           KnownState* known) const;

  const RecoveryOptions options_;
  const Options store_options_;
  const History& history_;
  StateSet& states_;
  LabCounters& counters_;
  KnownStates& known_;
};

// OK if the directory holds nothing but what the store names. The store must have been opened and not written to.
absl::Status CheckNoStrays(const env::Env& env, const std::string& directory);
// OK if Check finds nothing.
absl::Status CheckClean(const Store& store);
// OK if the answer is that of the oracle, bit for bit.
absl::Status CompareSearch(const Snapshot& snapshot, const PreparedQuery& prepared, const SearchOptions& options,
                           const OracleResult& expected);
absl::Status CompareGet(const absl::StatusOr<StoredDocument>& got, const std::optional<StoredDocument>& expected);

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_RECOVERY_CHECKER_H_
