// The promise of docs/testing.md: the whole exhaustive set, then random runs until 200,000 distinct states were seen after a
// crash. A failure names the command that shows it again.
#include "tests/testing/lab_support.h"

namespace ashlar::testing {
namespace {

TEST(LabStatesTest, EveryCrashEveryFaultAndRandomRuns) {
  CrashLabOptions options;
  options.recovery_share = 8;
  options.threads = 2;
  options.drivers = {Driver::kExhaustive, Driver::kRandom};
  options.states_max = 200'000;
  const LabReport report = RunLab(options);
  EXPECT_GE(report.states, 200'000u);
  // The exhaustive set alone has more than these; it was not cut short.
  EXPECT_GE(report.faults, 42'000u);
  EXPECT_GE(report.recovery_crashes, 80'000u);
}

}  // namespace
}  // namespace ashlar::testing
