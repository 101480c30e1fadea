// Half of the exhaustive set; lab_exhaustive_long_test.cc has the rest.
#include "tests/testing/lab_support.h"

namespace ashlar::testing {
namespace {

TEST(LabExhaustiveTest, EveryCrashAndEveryFault) {
  CrashLabOptions options;
  options.recovery_share = 8;
  options.drivers = {Driver::kExhaustive};
  options.workloads = WorkloadsThatBegin("abcdfghij");
  const LabReport report = RunLab(options);
  EXPECT_GE(report.states, 30'000u);
  EXPECT_GE(report.faults, 8'000u);
  EXPECT_GE(report.recovery_crashes, 2'000u);
}

}  // namespace
}  // namespace ashlar::testing
