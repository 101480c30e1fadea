// Random runs until enough distinct states were seen; a failing run replays with the command that the failure names.
#include "tests/testing/lab_support.h"

namespace ashlar::testing {
namespace {

TEST(LabRandomTest, RandomRuns) {
  CrashLabOptions options;
  options.drivers = {Driver::kRandom};
  options.states_max = 80'000;
  const LabReport report = RunLab(options);
  EXPECT_GE(report.states, 80'000u);
  EXPECT_GE(report.faults, 50u);
}

}  // namespace
}  // namespace ashlar::testing
