// Workloads: what the crash laboratory lets a store do, as text. One operation a line; docs/crashlab.md describes the
// language. A workload is a value: running it twice on disks of one seed does the same twice.
#ifndef ASHLAR_SRC_TESTING_WORKLOAD_H_
#define ASHLAR_SRC_TESTING_WORKLOAD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/options.h"
#include "ashlar/schema.h"
#include "src/env/env.h"
#include "src/env/sim_env.h"
#include "src/testing/oracle.h"

namespace ashlar::testing {

// One part of a batch. Which document it means is decided when it is run: versions count up, and expected ids are those
// of the documents that live then.
struct BatchPart {
  enum class Kind : uint8_t { kPut, kInsert, kPutIf, kPutIfStale, kDelete, kDeleteId, kBadDocument };
  Kind kind = Kind::kPut;
  uint64_t key = 0;    // of the document "k<key>"; in a store without keys, the rank of a live document for kDeleteId
  uint64_t words = 0;  // more words in its body
};

struct Operation {
  enum class Kind : uint8_t {
    kWrite,
    kSync,
    kFlush,
    kMerge,
    kPurge,
    kRunPending,
    kAddField,
    kCheckpoint,  // into one place, incrementally
    kWait,
    kReopen,  // closes, then opens
    kKill,    // the process dies, the page cache stays; then opens
    kFault,   // of operations to come
  };
  Kind kind = Kind::kWrite;
  std::vector<BatchPart> parts;  // kWrite; none: an empty batch
  WriteOptions write;
  std::optional<Options> options;  // kReopen, kKill: from now on
  uint64_t number = 0;             // kMerge, kPurge: segments, kWait: milliseconds
  std::string name;                // kAddField
  std::optional<env::WorkStep> at;  // done when work in a later operation reaches this step; only kWrite, kSync, kFlush
  env::SimFault fault;             // kFault
  bool must_fail = false;          // kWrite: the batch breaks a rule, so nothing of it may be seen
  int line = 0;
};

struct Workload {
  std::string name;
  Schema schema;  // WorkloadSchema, or one with the same fields
  Options options;
  std::vector<Operation> operations;
};

// InvalidArgument naming the line. `source` is for that message.
absl::StatusOr<std::vector<Workload>> ParseWorkloads(std::string_view text, std::string_view source);
// The exhaustive set, parsed once.
const std::vector<Workload>& BuiltInWorkloads();
std::string_view BuiltInWorkloadText();

// The store that workloads use.
Schema WorkloadSchema(bool has_key);
Field AddedField(const std::string& name);
Document WorkloadDocument(const Schema& schema, uint64_t key, uint64_t version, uint64_t words);
// The batch of a write, given what lives; counts `version` up for each document.
WriteBatch MakeBatch(const std::vector<BatchPart>& parts, const Oracle& oracle, uint64_t* version);

// Queries of which every recovery answers some: every index, occurrence and way to fetch.
struct LabQuery {
  Query query;
  SearchOptions options;
};
const std::vector<LabQuery>& LabQueries();

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_WORKLOAD_H_
