// A naive model of a segment: documents as plain values, and random ones to build segments from.
#ifndef ASHLAR_TESTS_SEGMENT_SEGMENT_MODEL_H_
#define ASHLAR_TESTS_SEGMENT_SEGMENT_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "src/base/prng.h"
#include "src/env/env.h"
#include "src/segment/segment.h"
#include "src/segment/segment_builder.h"

namespace ashlar::segment {

struct ModelDocument {
  DocumentId id = 0;
  std::string key;
  std::vector<std::map<std::string, std::vector<uint32_t>>> terms;  // by field: term -> positions, ascending
  std::vector<std::vector<Value>> columns;                          // by field: sorted values
  std::string stored;
  uint32_t LengthOf(uint32_t field) const;
};

void AddField(std::string name, FieldType type, Schema* schema);
// A group of one to three text fields (or none), a key (or none), keywords and numbers, in random order.
Schema RandomSchema(Prng* random);
// Documents with ascending ids from `first_id` on and keys that are not in `used`.
std::vector<ModelDocument> RandomDocuments(const Schema& schema, size_t count, DocumentId first_id, Prng* random);

struct ModelStore {
  env::Env env;
  std::string directory = "dir";
  format::StoreId store_id{};
  std::unique_ptr<env::MemoryEnv> memory;

  ModelStore();                               // in memory
  explicit ModelStore(env::Env environment);  // makes the directory
  SegmentSpec Spec(const Schema& schema, uint64_t number) const;
  absl::StatusOr<format::SegmentEntry> Build(const Schema& schema, uint64_t number,
                                             const std::vector<ModelDocument>& documents) const;
  absl::StatusOr<std::shared_ptr<const Segment>> Open(const format::SegmentEntry& entry,
                                                      OpenMode mode = OpenMode::kMapped) const;
};

// Asks the segment everything and compares with the documents; fails the current test on a difference. `schema`: of
// the documents.
void ExpectHolds(const Segment& segment, const Schema& schema, const std::vector<ModelDocument>& documents);
// Asks the segment everything; the first error. What is answered is added to `answers` (for comparisons of two
// segments).
absl::Status AskEverything(const Segment& segment, const Schema& schema, const std::vector<ModelDocument>& documents,
                           std::vector<std::string>* answers);

}  // namespace ashlar::segment

#endif  // ASHLAR_TESTS_SEGMENT_SEGMENT_MODEL_H_
