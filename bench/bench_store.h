// The store that lanes fill with the zipf corpus.
#ifndef ASHLAR_BENCH_BENCH_STORE_H_
#define ASHLAR_BENCH_BENCH_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ashlar/ashlar.h"
#include "bench/corpus.h"
#include "bench/lane.h"

namespace ashlar::bench {

// A key "id" and a text "body", which is the default group.
Schema BenchSchema();

struct WriteTimes {
  uint64_t write_ns = 0;  // in Store::Write
  uint64_t words = 0;
};

// Writes the corpus in batches. `after_batch`, if given, is told after each how many documents there are; `complete`
// may add to a document, the corpus's n-th.
absl::StatusOr<WriteTimes> WriteCorpus(const ZipfOptions& options, Store* store,
                                       const std::function<absl::Status(uint64_t documents)>& after_batch = nullptr,
                                       const std::function<void(uint64_t n, Document*)>& complete = nullptr);

// Deletes that share of the corpus's documents, spread evenly.
absl::Status DeleteShare(uint64_t documents, uint32_t percent, Store* store);

// Opens the store, mapped or in arrays, read-only, and runs a first query: "open_us", "first_query_us" and all else
// into a row of the phase "open".
absl::StatusOr<Json> TimeOpening(const std::string& directory, OpenMode mode, std::unique_ptr<Store>* store);

// The form that the options ask for (segments, deleted share), into the report.
void NoteForm(const LaneOptions& options, Report* report);

// Makes a closed store of that form in the lane's directory, has it measured, and removes it. With `keep` a store that
// is there is used as it is, and stays there. AlreadyExists: something is there and is not to be kept.
absl::Status WithStore(const LaneOptions& options, const std::function<absl::Status()>& measure);

// The same for a lane that makes its stores itself, below the directory.
absl::Status WithDirectory(const LaneOptions& options, const std::function<absl::Status()>& measure);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_BENCH_STORE_H_
