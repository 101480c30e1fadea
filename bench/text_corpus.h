// The text corpus: any JSON Lines file of {"id", "title", "body"}, and queries for it, {"query", "tags": [kind, class]}
// a line.
#ifndef ASHLAR_BENCH_TEXT_CORPUS_H_
#define ASHLAR_BENCH_TEXT_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "bench/corpus.h"

namespace ashlar::bench {

// A key "id", and "title" and "body" as one text.
Schema TextSchema();

// A whole corpus in memory, so that reading it is in nobody's time.
struct Batches {
  std::vector<WriteBatch> batches;
  uint64_t documents = 0;
  uint64_t bytes = 0;  // of JSON Lines
};
absl::StatusOr<Batches> ReadTextCorpus(const std::string& path, uint64_t documents_a_batch);
Batches MakeZipfBatches(const ZipfOptions& options, uint64_t documents_a_batch);

// Words of which all, any, or all side by side are asked for.
struct TextQuery {
  enum class Kind : uint8_t { kAny, kAll, kPhrase };
  Kind kind = Kind::kAny;
  std::string text;  // in Ashlar's language
  std::string name;  // of its class
  std::vector<std::string> words;
};
absl::StatusOr<std::vector<TextQuery>> ReadTextQueries(const std::string& path);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_TEXT_CORPUS_H_
