// SimulatedDisk: a disk in memory that crashes and fails on demand, for tests of applications that keep a store and perhaps
// files of their own. Everything it does follows from a seed and from the calls made, so a run can be repeated. Part of
// libashlar-testing.
#ifndef ASHLAR_TESTING_SIMULATED_DISK_H_
#define ASHLAR_TESTING_SIMULATED_DISK_H_

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/options.h"
#include "ashlar/schema.h"
#include "ashlar/store.h"

namespace ashlar::env {
class SimDisk;
class WritableFile;
struct CrashPolicy;
}  // namespace ashlar::env

namespace ashlar::testing {

// What survives a power loss of what was not synced. Cheap to copy.
class Survivors {
 public:
  static Survivors All();
  static Survivors None();
  // Some changes and not others, whole or torn at 512 or 4,096 bytes, with noise or old bytes in sectors that were being
  // written, sizes that are too short or too long, and names that are lost.
  static Survivors Random(uint64_t seed);
  std::string Text() const;

 private:
  friend class SimulatedDisk;
  explicit Survivors(std::shared_ptr<const env::CrashPolicy> policy) : policy_(std::move(policy)) {}
  std::shared_ptr<const env::CrashPolicy> policy_;
};

enum class DiskOperation : uint8_t {
  kOpen, kRead, kMap, kStat, kList,  // these change nothing
  kCreate, kWrite, kTruncate, kSync, kRename, kRemove, kCreateDirectory, kSyncDirectory, kLock, kMapShared,  // steps
  kLink,
};

// Waits for the nth matching operation and acts on that one and the next times - 1.
struct DiskFault {
  enum class Effect : uint8_t {
    kFails,            // nothing done, but a failed write may have written any prefix
    kFailsAfterwards,  // done, and reported as failed
    kInterrupted,      // reads and writes: done in several pieces; the caller notices nothing
    kFlippedBit,       // reads and mappings: one bit is wrong this time
    kMisdirected,      // writes: reported as done, but the bytes went elsewhere
  };
  std::optional<DiskOperation> operation{};  // any if not set
  std::string path_contains{};               // any if empty
  uint64_t nth = 1;
  uint64_t times = 1;
  int error = EIO;
  Effect effect = Effect::kFails;
  uint64_t bit = 0;              // kFlippedBit: of what is read
  std::string misdirect_path{};  // kMisdirected; empty: the file itself
  uint64_t misdirect_offset = 0;
  bool sync_keeps = false;  // a failing sync: false loses what was pending, for good; true keeps it
};

struct DiskCounters {
  uint64_t reads = 0, bytes_read = 0, writes = 0, bytes_written = 0, syncs = 0, directory_syncs = 0;
  uint64_t creates = 0, renames = 0, removes = 0, faults = 0, crashes = 0;
};

// A file of the application's own, open for writing. Closed when destroyed, which syncs nothing. One thread at a time.
class SimulatedFile {
 public:
  explicit SimulatedFile(std::unique_ptr<env::WritableFile> file);
  ~SimulatedFile();
  absl::Status Append(std::string_view bytes);
  absl::Status WriteAt(uint64_t offset, std::string_view bytes);
  absl::Status Truncate(uint64_t size);
  absl::Status Sync();
  uint64_t size() const;

 private:
  std::unique_ptr<env::WritableFile> file_;
};

// Owns its contents; must outlive the stores and files opened on it. Threads: any, but only one order of operations repeats.
class SimulatedDisk {
 public:
  explicit SimulatedDisk(uint64_t seed = 1);
  explicit SimulatedDisk(std::unique_ptr<env::SimDisk> disk);
  ~SimulatedDisk();
  SimulatedDisk(const SimulatedDisk&) = delete;
  SimulatedDisk& operator=(const SimulatedDisk&) = delete;

  // --- What the application does. All of it is done by one simulated process until that is killed or the power goes.

  // As Store::Open, on this disk.
  absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& directory, const Options& options = {},
                                              const Schema* schema = nullptr);
  absl::StatusOr<std::unique_ptr<SimulatedFile>> CreateFile(const std::string& path);  // AlreadyExists
  absl::StatusOr<std::unique_ptr<SimulatedFile>> OpenFile(const std::string& path);    // NotFound
  absl::StatusOr<std::string> ReadFile(const std::string& path);
  absl::StatusOr<bool> Exists(const std::string& path);
  absl::Status Rename(const std::string& from, const std::string& to);
  absl::Status Remove(const std::string& path);
  absl::Status CreateDirectory(const std::string& path);
  absl::Status SyncDirectory(const std::string& path);
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory);

  // --- What happens to it.

  // kill -9: everything open fails, locks are free, what was written stays. What comes next is done by a new process.
  void KillProcess();
  // Everything fails from now on, or instead of the step with that index, until Crash.
  void CutPower();
  void CutPowerAtStep(std::optional<uint64_t> step);
  bool power_is_cut() const;
  // The machine starts again with what survived. Faults are forgotten, limits stay.
  void Crash(const Survivors& survivors);
  // Another disk as this one would be after Crash; this one goes on.
  std::unique_ptr<SimulatedDisk> CrashedCopy(const Survivors& survivors) const;
  // A bounded, repeatable list of what may survive now: all, nothing, subsets, torn, garbage and extended.
  std::vector<Survivors> EnumerateCrashes(size_t survivors_max) const;
  // Called before each step, while the disk stands still; may call what is const here. Crash forgets it.
  void SetObserver(std::function<void()> observer);

  void AddFault(const DiskFault& fault);
  void ClearFaults();
  // Writes that make the files larger than this in total fail with `error`. UINT64_MAX: no limit.
  void SetCapacity(uint64_t bytes_max, int error = ENOSPC);
  uint64_t used_bytes() const;
  void SetOpenFilesMax(uint64_t files_max);  // EMFILE beyond

  // At rest, with the name and all.
  absl::Status FlipBit(const std::string& path, uint64_t bit);
  absl::Status TruncateFile(const std::string& path, uint64_t size);
  absl::Status PutFile(const std::string& path, std::string_view bytes);

  void AdvanceClock(uint64_t ns);
  void JumpWallClock(int64_t ms);

  // --- Looking without touching.

  absl::StatusOr<std::string> Contents(const std::string& path) const;         // what reads see
  absl::StatusOr<std::string> DurableContents(const std::string& path) const;  // what is on the disk
  std::vector<std::string> FileNames() const;
  uint64_t steps() const;  // operations so far that changed the disk
  DiskCounters counters() const;
  uint64_t trace_hash() const;    // equal for equal runs of one seed
  uint64_t durable_hash() const;  // of all durable names and bytes

 private:
  struct Process;
  Process& process();

  std::unique_ptr<env::SimDisk> disk_;
  std::unique_ptr<Process> process_;
};

}  // namespace ashlar::testing

#endif  // ASHLAR_TESTING_SIMULATED_DISK_H_
