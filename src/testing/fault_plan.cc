#include "src/testing/fault_plan.h"

#include <cerrno>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"

namespace ashlar::testing {
namespace {

using env::CrashPolicy;
using env::SimFault;
using env::SimOp;

SimFault Failing(int error, SimFault::Effect effect = SimFault::Effect::kFails) {
  SimFault fault;
  fault.error = error;
  fault.effect = effect;
  return fault;
}

// A flipped bit is told from a torn tail only where something proves that the bytes were durable; where nothing does, the
// documents say so (docs/durability.md, "Journal"), and there is nothing to test.
bool MayFlip(const std::string& path) { return path.find("journal") == std::string::npos; }

}  // namespace

void RecordTrace(env::SimDisk* disk, std::vector<TracedOperation>* trace) {
  auto counts = std::make_shared<std::map<SimOp, uint64_t>>();
  disk->SetHook([trace, counts](const env::SimOperation& operation) {
    trace->push_back({operation.op, ++(*counts)[operation.op], operation.path});
    return env::SimDisk::Decision{};
  });
}

std::vector<SimFault> FaultsFor(const TracedOperation& operation) {
  using Effect = SimFault::Effect;
  std::vector<SimFault> faults;
  switch (operation.op) {
    case SimOp::kOpen:
      faults = {Failing(EIO), Failing(EMFILE), Failing(ENOMEM)};
      break;
    case SimOp::kRead:
      faults = {Failing(EIO), Failing(EINTR, Effect::kInterrupted)};
      if (MayFlip(operation.path)) faults.push_back(Failing(0, Effect::kFlippedBit));
      break;
    case SimOp::kMap:
      faults = {Failing(EIO), Failing(ENOMEM)};
      if (MayFlip(operation.path)) faults.push_back(Failing(0, Effect::kFlippedBit));
      break;
    case SimOp::kStat:
    case SimOp::kList:
      faults = {Failing(EIO)};
      break;
    case SimOp::kCreate:
      faults = {Failing(EIO), Failing(ENOSPC), Failing(EDQUOT), Failing(EMFILE), Failing(EIO, Effect::kFailsAfterwards)};
      break;
    case SimOp::kWrite:
      faults = {Failing(EIO), Failing(ENOSPC), Failing(EDQUOT), Failing(EINTR, Effect::kInterrupted),
                Failing(EIO, Effect::kFailsAfterwards)};
      break;
    case SimOp::kTruncate:
      faults = {Failing(EIO), Failing(ENOSPC), Failing(EIO, Effect::kFailsAfterwards)};
      break;
    case SimOp::kSync:
      faults = {Failing(EIO), Failing(EIO), Failing(ENOSPC), Failing(EDQUOT), Failing(EIO, Effect::kFailsAfterwards)};
      faults[1].sync_loss = CrashPolicy::KeepAll();
      faults[3].sync_loss = CrashPolicy::Random(operation.nth);
      break;
    case SimOp::kRename:
    case SimOp::kLink:
    case SimOp::kCreateDirectory:
      faults = {Failing(EIO), Failing(ENOSPC), Failing(EIO, Effect::kFailsAfterwards)};
      break;
    case SimOp::kRemove:
    case SimOp::kSyncDirectory:
    case SimOp::kLock:
    case SimOp::kMapShared:
      faults = {Failing(EIO), Failing(ENOSPC), Failing(EIO, Effect::kFailsAfterwards)};
      break;
  }
  for (SimFault& fault : faults) {
    fault.op = operation.op;
    fault.nth = operation.nth;
    fault.bit = operation.nth * 2654435761u;
  }
  return faults;
}

std::string FaultText(const SimFault& fault) {
  static constexpr const char* kEffects[] = {"", " afterwards", " interrupted", " flipped bit", " misdirected"};
  return absl::StrCat(env::SimOpName(fault.op.value_or(SimOp::kOpen)), " ", fault.nth, " error ", fault.error,
                      kEffects[static_cast<size_t>(fault.effect)]);
}

}  // namespace ashlar::testing
