#include "bench/bench_store.h"

#include <string>

#include "bench/lane.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr uint64_t kBatchDocuments = 1000;

}  // namespace

Schema BenchSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  Field id, body;
  id.name = "id";
  id.type = FieldType::kKeyword;
  body.name = "body";
  schema.fields = {id, body};
  return schema;
}

absl::StatusOr<WriteTimes> WriteCorpus(const ZipfOptions& options, Store* store,
                                       const std::function<absl::Status(uint64_t documents)>& after_batch) {
  ZipfCorpus corpus(options);
  WriteTimes times;
  WriteBatch batch;
  std::string id, body;
  uint64_t documents = 0;
  bool more = true;
  while (more) {
    more = corpus.Next(&id, &body);
    if (more) batch.Put(Document().Add("id", id).Add("body", body));
    if (batch.size() < kBatchDocuments && (more || batch.empty())) continue;
    documents += batch.size();
    const uint64_t start = NowNs();
    ASHLAR_RETURN_IF_ERROR(store->Write(batch).status());
    times.write_ns += NowNs() - start;
    batch.Clear();
    if (after_batch) ASHLAR_RETURN_IF_ERROR(after_batch(documents));
  }
  times.words = corpus.words_made();
  return times;
}

}  // namespace ashlar::bench
