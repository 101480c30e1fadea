// Which faults an operation can meet: one list for all drivers.
#ifndef ASHLAR_SRC_TESTING_FAULT_PLAN_H_
#define ASHLAR_SRC_TESTING_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/env/sim_env.h"

namespace ashlar::testing {

// An operation of a faultless run: a place for a fault.
struct TracedOperation {
  env::SimOp op = env::SimOp::kOpen;
  uint64_t nth = 0;  // of its kind, from 1
  std::string path;
};

// From now on; uses the disk's hook. `trace` must outlive the disk's use.
void RecordTrace(env::SimDisk* disk, std::vector<TracedOperation>* trace);

// Every kind of fault that can meet the operation, each once.
std::vector<env::SimFault> FaultsFor(const TracedOperation& operation);
std::string FaultText(const env::SimFault& fault);

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_FAULT_PLAN_H_
