// Hits: what a search gives back.
#ifndef ASHLAR_HITS_H_
#define ASHLAR_HITS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ashlar/document.h"
#include "ashlar/query.h"

namespace ashlar {

// Where a document lies in a snapshot. Valid while the Snapshot it came from lives, and only with it.
struct Handle {
  uint32_t source = 0;   // index of the segment or overlay in the snapshot
  uint32_t ordinal = 0;  // place in it
  bool operator==(const Handle&) const = default;
};

// Ordered by higher score, then lower DocumentId.
struct Hit {
  Handle handle;
  double score = 0;
};

struct SearchResult {
  std::vector<Hit> hits;
  uint64_t total = 0;          // see Total
  bool total_is_exact = false;
  Traversal traversal = Traversal::kAuto;  // the one that ran
  uint64_t postings_read = 0;
  // Live documents of the segments that damage kept out; 0 unless SearchOptions::allow_partial. Then also why.
  uint64_t documents_not_searched = 0;
  std::vector<absl::Status> damage;  // one per segment left out
};

// A fetched document: what `Snapshot::Fetch`, `Get` and `Scan` give.
struct StoredDocument {
  DocumentId id = 0;
  std::string key;  // empty in a store without keys
  Document document;  // stored fields only, the key field included
};

}  // namespace ashlar

#endif  // ASHLAR_HITS_H_
