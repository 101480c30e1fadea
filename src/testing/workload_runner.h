// Runs a workload on a simulated disk and keeps its history. The store must do everything right that no fault prevents:
// whatever else it does is an error of Run.
#ifndef ASHLAR_SRC_TESTING_WORKLOAD_RUNNER_H_
#define ASHLAR_SRC_TESTING_WORKLOAD_RUNNER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/store.h"
#include "src/env/sim_env.h"
#include "src/testing/history.h"
#include "src/testing/workload.h"

namespace ashlar::testing {

inline constexpr char kLabDirectory[] = "/store";
inline constexpr char kLabCopyDirectory[] = "/copy";  // of checkpoints

// A store over any environment, as Store::Open makes one over the operating system's.
absl::StatusOr<std::unique_ptr<Store>> OpenOn(env::Env env, const std::string& directory, const Options& options,
                                              const Schema* schema);

// OK if the live store shows exactly the acknowledged state.
absl::Status CompareLive(const Store& store, const History& history);

// OK if the checkpoint is one of those that may be there; `fingerprint` is its state's, 0 for none.
absl::Status CompareCopy(const env::Env& env, const History& history, uint64_t* fingerprint);
// Whether a checkpoint was refused because the one in place is newer: the store lost what was not durable, the copy
// not.
bool IsNewerCopy(const absl::Status& status);

// One thread. The disk, the workload and the history must outlive it.
class WorkloadRunner : private env::WorkObserver {
 public:
  WorkloadRunner(env::SimDisk* disk, const Workload* workload, History* history);
  ~WorkloadRunner() override;

  // All operations, up to the end or until the power is cut. Not OK: a finding.
  absl::Status Run();
  // Opens the store if it is not open, and does one operation: for drivers that make them up as they go.
  absl::Status Step(const Operation& operation);
  // Bits are flipped under the store: an error that says so is none.
  void ExcuseDamage() { damage_excused_ = true; }
  // The disk is nearly full: the store may refuse work for that before it tries.
  void SetRoomLimited(bool limited) { room_limited_ = limited; }
  bool power_is_cut() const { return disk_->power_is_cut(); }
  uint64_t operations_done() const { return operations_done_; }
  // Compares what the store shows with the history, if it is open. Not OK: a finding.
  absl::Status CompareNow() const;
  // The process ends without closing anything.
  void Die();
  // The same, and the disk has lost, or will lose before the next step, what was not durable.
  void LosePower();
  const Options& options() const { return options_; }

 private:
  // A step of a flush or merge in an operation: does what waits for it.
  void Reached(env::WorkStep step) override;
  bool MayGoBeside(env::WorkStep step, const Operation& operation) const;
  // Of the write that is being done, and has been acknowledged as far as anybody else can see.
  absl::Status AcknowledgeOuter();
  absl::Status Open();
  absl::Status OpenOnce();
  absl::Status Do(const Operation& operation);
  absl::Status Write(const Operation& operation);
  absl::Status AddField(const Operation& operation);
  absl::Status Upkeep(const Operation& operation);
  absl::Status Checkpoint();
  absl::Status CloseStore();
  // An operation failed. OK if it had the right to.
  absl::Status Excuse(const absl::Status& status, std::string_view what);
  bool FailedSync() const;
  void NoteInterval(uint64_t called_ns);

  env::SimDisk* const disk_;
  const Workload& workload_;
  History& history_;
  Options options_;
  env::Env env_{};
  std::unique_ptr<Store> store_;
  uint64_t version_ = 0;
  uint64_t operations_done_ = 0;
  uint64_t faults_before_ = 0;  // of the operation being done
  bool bulk_ = false;           // batches wait that are not visible before a flush
  bool closed_cleanly_ = false;
  bool damage_excused_ = false;
  bool power_lost_ = false;
  bool room_limited_ = false;
  std::deque<Operation> beside_;              // wait for a step
  const Operation* doing_ = nullptr;          // the operation that is being done, in which steps are reached
  std::optional<Sequence> outer_visible_;     // doing_ is a write: the visible sequence before it
  bool outer_acknowledged_ = false;           // and it was acknowledged in the history
  size_t outer_state_ = 0;                    // as which state
  std::vector<bool> outer_existed_;
  absl::Status beside_status_;                // of what was done beside: a finding
  // kInterval: when each acknowledged state that may not be durable yet was acknowledged.
  std::vector<std::pair<uint64_t, size_t>> acknowledged_ns_;
};

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_WORKLOAD_RUNNER_H_
