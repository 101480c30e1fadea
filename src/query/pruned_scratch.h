// PrunedScratch: the arrays that Pruned adds windows in. A thread keeps one set from search to search.
#ifndef ASHLAR_SRC_QUERY_PRUNED_SCRATCH_H_
#define ASHLAR_SRC_QUERY_PRUNED_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/query/length_classes.h"
#include "src/simd/kernels.h"

namespace ashlar::query {

struct PrunedScratch {
  // All 0 between windows.
  std::vector<int32_t> accumulators = std::vector<int32_t>(simd::kWindow);
  std::vector<uint16_t> bounds = std::vector<uint16_t>(simd::kWindow);  // of documents, scaled down
  std::vector<uint16_t> offsets = std::vector<uint16_t>(simd::kWindow);
  LengthClasses classes;  // of the window that is added
  // Candidates. A block may be looked at behind those of a window.
  std::vector<uint32_t> documents = std::vector<uint32_t>(simd::kWindow + simd::kBlock);
  std::vector<int32_t> scores = std::vector<int32_t>(simd::kWindow + simd::kBlock);
};

// Lends the thread's scratch, or a new one while that is lent. Who does not give it back with GiveBack, because
// something was thrown, leaves the thread without one.
class ScratchLoan {
 public:
  PrunedScratch& get() {
    if (scratch_ == nullptr) scratch_ = Kept() == nullptr ? std::make_unique<PrunedScratch>() : std::move(Kept());
    return *scratch_;
  }
  void GiveBack() {
    if (scratch_ != nullptr) Kept() = std::move(scratch_);
  }

 private:
  static std::unique_ptr<PrunedScratch>& Kept() {
    static thread_local std::unique_ptr<PrunedScratch> kept;
    return kept;
  }
  std::unique_ptr<PrunedScratch> scratch_;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PRUNED_SCRATCH_H_
