// Random schemas, documents, batches and queries, and the comparison of a store's snapshot with the oracle.
#ifndef ASHLAR_TESTS_ENGINE_RANDOM_STORE_H_
#define ASHLAR_TESTS_ENGINE_RANDOM_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "ashlar/store.h"
#include "src/base/prng.h"
#include "src/env/env.h"
#include "src/testing/oracle.h"

namespace ashlar::testing {

// Everything random about one run.
class RandomStore {
 public:
  explicit RandomStore(uint64_t seed);

  Schema RandomSchema();
  Options RandomOptions();
  Document RandomDocument(const Schema& schema);
  WriteBatch RandomBatch(const Schema& schema, const Oracle& oracle);
  Query RandomQuery(const Schema& schema);
  SearchOptions RandomSearchOptions(const Schema& schema);
  std::string RandomKey();

  Prng& prng() { return prng_; }

 private:
  std::string RandomWords();
  std::string FrequentWord();
  Prng prng_;
  uint64_t keys_;
};

// A store over any environment, made as engine::Engine::Open does.
absl::StatusOr<std::unique_ptr<Store>> OpenOn(env::Env env, const std::string& directory, const Options& options,
                                              const Schema* schema);

// Fails the test unless the snapshot answers `queries` random searches, by every traversal, and look-ups like the
// oracle.
void ExpectEqual(const Store& store, const Snapshot& snapshot, const Oracle& oracle, RandomStore* random, int queries);
// Every document, key and id, in order.
void ExpectSameDocuments(const Snapshot& snapshot, const Oracle& oracle);
void ExpectCheckClean(const Store& store);

}  // namespace ashlar::testing

#endif  // ASHLAR_TESTS_ENGINE_RANDOM_STORE_H_
