// SimDisk: an environment that fails and loses power on demand. Everything it does, faults
// included, follows from one 64-bit seed and the calls made, so a run can be replayed; trace_hash()
// of two equal runs is equal.
//
// A driver starts a process on the disk (NewProcess), lets it work, cuts the power at some step
// (CutPowerAtStep or a hook), and looks at what may be left: Crash(policy) reboots this disk,
// CrashedCopy(policy) leaves it as it is and gives another one, so that many crashes of one moment
// can be tried without running up to it again. After a crash every handle of the old processes
// fails; a new process sees what survived. What may survive stands in sim_image.h.
//
// Threads: any. Repeatable only if the order of operations is.
#ifndef ASHLAR_SRC_ENV_SIM_ENV_H_
#define ASHLAR_SRC_ENV_SIM_ENV_H_

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/bytes.h"
#include "src/env/env.h"
#include "src/env/sim_image.h"

namespace ashlar::env {

enum class SimOp : uint8_t {
  // These change nothing.
  kOpen,
  kRead,  // also populating a mapping
  kMap,
  kStat,  // size, existence, locked or not
  kList,
  // These change the disk: each is a step.
  kCreate,
  kWrite,
  kTruncate,
  kSync,
  kRename,
  kRemove,
  kCreateDirectory,
  kSyncDirectory,
  kLock,
  kMapShared,
  kLink,
};
constexpr bool IsStep(SimOp op) { return op >= SimOp::kCreate; }
const char* SimOpName(SimOp op);

struct SimOperation {
  SimOp op = SimOp::kOpen;
  uint64_t index = 0;  // among all operations since the disk was made
  uint64_t step = 0;   // steps before this operation
  std::string path;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// A fault waits for the nth operation that matches, and then acts on that one and the next times -
// 1 matching ones.
struct SimFault {
  enum class Effect {
    kFails,            // nothing done, but a failed write may have written any prefix
    kFailsAfterwards,  // done, and reported as failed
    kInterrupted,  // reads and writes: done in several pieces, each an operation of its own, as
                   // after EINTR or a short count; the caller notices nothing
    kFlippedBit,   // reads and mappings: one bit is wrong, and right again at the next try
    kMisdirected,  // writes: reported as done, but the bytes went to misdirect_offset of
                   // misdirect_path (the file itself if empty)
  };
  std::optional<SimOp> op{};    // any operation if not set
  std::string path_contains{};  // any path if empty
  uint64_t nth = 1;
  uint64_t times = 1;  // UINT64_MAX: for good
  int error = EIO;
  Effect effect = Effect::kFails;
  uint64_t bit = 0;  // kFlippedBit: of what is read, modulo its length
  std::string misdirect_path{};
  uint64_t misdirect_offset = 0;
  // What a failing sync does with the pending writes: they are clean afterwards and a later sync
  // succeeds without them. The default loses all; KeepAll makes them durable nevertheless.
  CrashPolicy sync_loss = CrashPolicy::DropAll();
};

struct SimCounters {
  uint64_t reads = 0;
  uint64_t bytes_read = 0;
  uint64_t writes = 0;
  uint64_t bytes_written = 0;
  uint64_t syncs = 0;
  uint64_t directory_syncs = 0;
  uint64_t creates = 0;
  uint64_t renames = 0;
  uint64_t removes = 0;
  uint64_t faults = 0;  // operations that a SimFault, a limit or the hook made fail or interrupted
  uint64_t crashes = 0;
};

class SimCore;

class SimDisk {
 public:
  explicit SimDisk(uint64_t seed);
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  // Processes. The Env is valid as long as the disk, but all it does fails once the process is
  // dead. Locks belong to processes; what one has written, synced or not, the others see.
  Env NewProcess();
  // kill -9: handles fail, locks are dropped, the page cache stays.
  void KillProcess(const Env& process);

  // Power. After a cut every operation of every process fails until Crash; nothing is decided about
  // what survives yet.
  void CutPower();
  // The power goes instead of the step with this index (see steps()); nullopt: it stays.
  void CutPowerAtStep(std::optional<uint64_t> step);
  bool power_is_cut() const;
  // All processes die, the survivors become the disk, the power is back. Faults, hook and
  // CutPowerAtStep are forgotten, limits stay.
  void Crash(const CrashPolicy& policy);
  // A disk as this one would be after Crash(policy). O(files + pending bytes): unchanged pages are
  // shared.
  std::unique_ptr<SimDisk> CrashedCopy(const CrashPolicy& policy) const;
  // What may be left of this moment, a bounded and repeatable list: see sim::EnumerateCrashes.
  std::vector<CrashPolicy> EnumerateCrashes(size_t policies_max) const;
  // Called before each step, in the thread that takes it and while the disk stands still; may call
  // what looks at the disk (CrashedCopy, DurableHash, steps ...) and nothing that changes it. So all
  // crashes of a run can be tried while it runs once. A crash forgets it; copies have none.
  using Observer = std::function<void(const SimOperation&)>;
  void SetObserver(Observer observer);

  // Faults.
  void AddFault(SimFault fault);
  void ClearFaults();
  // A write that would make the files larger than this in total writes what fits and fails with
  // `error` (ENOSPC, EDQUOT). May be raised, lowered and taken away (UINT64_MAX).
  void SetCapacity(uint64_t bytes_max, int error = ENOSPC);
  uint64_t used_bytes() const;
  // Opening more files at once than this fails with EMFILE, by process.
  void SetOpenFilesMax(uint64_t files_max);
  // Asked before each operation, and may change its fate. Called with the disk's mutex held: must
  // not call the disk.
  struct Decision {
    bool cut_power = false;
    int error = 0;  // not 0: the operation fails so
  };
  using Hook = std::function<Decision(const SimOperation&)>;
  void SetHook(Hook hook);

  // Damage, at rest: of what is durable and of what the next read or mapping sees; existing
  // mappings keep what they have. NotFound; InvalidArgument outside of what is durable in the file.
  absl::Status FlipBit(const std::string& path, uint64_t bit);
  absl::Status ExchangeSectors(const std::string& a, uint64_t sector_a, const std::string& b,
                               uint64_t sector_b, uint64_t sector_bytes = kSimSectorBytes);
  absl::Status TruncateFile(const std::string& path, uint64_t size);
  // Puts a whole file in place, durable with its name; the directory must be there.
  absl::Status PutFile(const std::string& path, ByteSpan bytes);

  // Looking without touching: no operation, no fault, not in the trace.
  absl::StatusOr<ByteBuffer> Contents(const std::string& path) const;         // what reads see
  absl::StatusOr<ByteBuffer> DurableContents(const std::string& path) const;  // by current name
  std::vector<std::string> FileNames() const;  // of all files, sorted
  size_t pending_count() const;                // see sim::PendingCount
  // Equal iff all durable names and bytes are.
  uint64_t DurableHash() const;

  uint64_t seed() const;
  uint64_t operations() const;
  uint64_t steps() const;
  SimCounters counters() const;
  // Of all operations, their arguments, the bytes read and written, and the injected failures.
  uint64_t trace_hash() const;

  // Time moves by a little with each operation and each look at the clock; nothing ever waits.
  void AdvanceClock(uint64_t ns);
  void JumpWallClock(int64_t ms);

 private:
  explicit SimDisk(std::shared_ptr<SimCore> core);
  std::shared_ptr<SimCore> core_;  // shared with the handles
};

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_SIM_ENV_H_
