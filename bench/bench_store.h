// The store that lanes fill with the zipf corpus.
#ifndef ASHLAR_BENCH_BENCH_STORE_H_
#define ASHLAR_BENCH_BENCH_STORE_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "ashlar/ashlar.h"
#include "bench/corpus.h"

namespace ashlar::bench {

// A key "id" and a text "body", which is the default group.
Schema BenchSchema();

struct WriteTimes {
  uint64_t write_ns = 0;  // in Store::Write
  uint64_t words = 0;
};

// Writes the corpus in batches. `after_batch`, if given, is told after each how many documents there are.
absl::StatusOr<WriteTimes> WriteCorpus(const ZipfOptions& options, Store* store,
                                       const std::function<absl::Status(uint64_t documents)>& after_batch = nullptr);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_BENCH_STORE_H_
