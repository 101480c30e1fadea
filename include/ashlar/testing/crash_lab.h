// The crash laboratory: looks for crashes and faults after which a store, or what an application keeps beside it, is not what was
// promised. Part of libashlar-testing, not of libashlar.
#ifndef ASHLAR_TESTING_CRASH_LAB_H_
#define ASHLAR_TESTING_CRASH_LAB_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::testing {

class SimulatedDisk;

// Ashlar's own drivers.
enum class Driver : uint8_t {
  kExhaustive,  // every workload: every crash point with a bounded enumeration of survivors; every fault at every operation
  kRandom,      // seeded long runs, several crashes and faults each
  kDamage,      // every bit of every file of small stores flipped, every truncation
};
std::string_view DriverName(Driver driver);  // "exhaustive", "random", "damage"

struct LabFinding {
  std::string driver;
  std::string workload;
  uint64_t seed = 0;    // of the laboratory
  std::string message;  // what was wrong, and after which fault and crash
  std::string replay;   // a command that shows it again
};

struct LabReport {
  uint64_t states = 0;            // distinct, by the hash of all durable names and bytes
  uint64_t crashes = 0;           // tried; several may leave one state
  uint64_t faults = 0;            // injected
  uint64_t recoveries = 0;        // after which everything was compared
  uint64_t recovery_crashes = 0;  // crashes in the middle of a recovery
  uint64_t damages = 0;           // bits flipped and files cut
  uint64_t runs = 0;              // of workloads
  double seconds = 0;
  std::vector<LabFinding> findings;
};

struct CrashLabOptions {
  uint64_t seed = 1;
  uint64_t states_max = 0;  // ends when so many distinct states were seen; 0: when the drivers are through
  uint64_t random_runs_max = 0;  // 0: none without states_max, else as many as it takes
  uint32_t threads = 1;
  uint32_t findings_max = 10;  // ends after so many
  std::vector<Driver> drivers = {Driver::kExhaustive, Driver::kDamage, Driver::kRandom};
  // In the language of docs/crashlab.md, or names of built-in workloads, for kExhaustive and kDamage; empty: all that are
  // built in.
  std::string workloads;
  uint32_t policies_max = 48;    // crashes tried at one step
  uint32_t recovery_share = 16;  // one recovery of so many is itself crashed at every step; 0: none
  uint32_t damage_share = 1;     // one bit of so many is flipped
  // Called now and then by one of the threads, with the findings left out.
  std::function<void(const LabReport&)> progress;
};

// Runs Ashlar's own drivers. InvalidArgument if the workloads can't be parsed. What they find is in the report.
absl::StatusOr<LabReport> RunCrashLab(const CrashLabOptions& options);

// A mutation run: the laboratory with one step of the write path or one check switched off. What it does not find is not
// tested, or not needed.
struct MutationResult {
  std::string site;
  bool found = false;
  std::string driver;
  std::string workload;
  uint64_t seed = 0;
  uint64_t states = 0;  // distinct, until it was found
  double seconds = 0;
  std::string message;  // the finding
};
std::vector<std::string> MutationSites();
// Each of `sites` (empty: all) in a forked process, so not while other threads run. The drivers are run in the order of
// `options`, damage first for checks. `done`, if given, is called after each.
absl::StatusOr<std::vector<MutationResult>> RunMutations(const CrashLabOptions& options,
                                                         const std::vector<std::string>& sites,
                                                         const std::function<void(const MutationResult&)>& done = {});

// What an application has acknowledged to whoever uses it, as a number that only grows.
class LabProgress {
 public:
  void Acknowledge(uint64_t count) { acknowledged_ = count; }
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  uint64_t acknowledged_ = 0;
};

// An application under test. Both functions must do the same when they are called again with an equal disk.
struct LabApplication {
  std::string name;
  // Works on an empty disk and says what it acknowledges, at once. An error of the disk or the store ends it.
  std::function<void(SimulatedDisk*, LabProgress*)> workload;
  // Looks at a disk after power loss and recovers from it. Not OK: a finding. May write; the disk is a copy.
  std::function<absl::Status(SimulatedDisk*, uint64_t acknowledged)> check;
  bool faults = true;  // also one run with each fault at each operation
};

// Explores an application: crashes at every step, and faults at every operation followed by crashes. Of the options, seed,
// states_max, findings_max, policies_max, threads (for faults) and progress count.
LabReport ExploreApplication(const CrashLabOptions& options, const LabApplication& application);

// The names of the built-in workloads.
std::vector<std::string> BuiltInWorkloadNames();

}  // namespace ashlar::testing

#endif  // ASHLAR_TESTING_CRASH_LAB_H_
