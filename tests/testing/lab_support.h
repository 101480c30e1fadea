// Runs the laboratory and fails the test for every finding.
#ifndef ASHLAR_TESTS_TESTING_LAB_SUPPORT_H_
#define ASHLAR_TESTS_TESTING_LAB_SUPPORT_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "ashlar/testing/crash_lab.h"

namespace ashlar::testing {

inline void ExpectNoFindings(const LabReport& report) {
  for (const LabFinding& finding : report.findings)
    ADD_FAILURE() << finding.driver << " " << finding.workload << ": " << finding.message << "\n" << finding.replay;
  std::printf("%llu distinct states, %llu faults, %llu recoveries, %llu crashes in recoveries, %llu damages\n",
              static_cast<unsigned long long>(report.states), static_cast<unsigned long long>(report.faults),
              static_cast<unsigned long long>(report.recoveries),
              static_cast<unsigned long long>(report.recovery_crashes),
              static_cast<unsigned long long>(report.damages));
}

inline LabReport RunLab(const CrashLabOptions& options) {
  const absl::StatusOr<LabReport> report = RunCrashLab(options);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  ExpectNoFindings(*report);
  return *report;
}

}  // namespace ashlar::testing

#endif  // ASHLAR_TESTS_TESTING_LAB_SUPPORT_H_
