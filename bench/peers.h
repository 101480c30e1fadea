// Peers: other engines that lanes run beside Ashlar, over the same documents, in the same process. Each is there if its
// library was found when ashlar-bench was built.
#ifndef ASHLAR_BENCH_PEERS_H_
#define ASHLAR_BENCH_PEERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "bench/text_corpus.h"

namespace ashlar::bench {

// Runs a prepared query; the number of hits, or of matches where those were asked for.
using PeerSearch = std::function<absl::StatusOr<uint64_t>()>;

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string_view name() const = 0;
  // What has to be known to read its figures.
  virtual std::string_view form() const = 0;
  // Adds the documents of the batch's puts, durably, in one transaction. Looks for no documents of the same key, so it
  // does less than Ashlar. Any thread; one at a time where the library has it so.
  virtual absl::Status Write(const WriteBatch& batch) = 0;
  // Brings the index into its best form for searching.
  virtual absl::Status Optimize() { return absl::OkStatus(); }
  // `k` 0: counts all matches instead. Unimplemented: it can't answer such a query.
  virtual absl::StatusOr<PeerSearch> Prepare(const TextQuery& query, uint64_t k) = 0;
};

// Of the libraries that were found. Each makes its files in a directory of its own name below `directory`.
absl::StatusOr<std::vector<std::unique_ptr<Peer>>> MakeSearchPeers(const std::string& directory);
// Those, and stores of keys and values, which index nothing; no names: all.
absl::StatusOr<std::vector<std::unique_ptr<Peer>>> MakeCommitPeers(const std::string& directory,
                                                                   const std::vector<std::string>& names);
// What is missing, for Report::NotMeasured; empty if nothing is.
std::vector<std::string> MissingPeers();

absl::StatusOr<std::unique_ptr<Peer>> MakeLevelDbPeer(const std::string& directory);
absl::StatusOr<std::unique_ptr<Peer>> MakeLmdbPeer(const std::string& directory);
absl::StatusOr<std::unique_ptr<Peer>> MakeRocksDbPeer(const std::string& directory);
absl::StatusOr<std::unique_ptr<Peer>> MakeSqlitePeer(const std::string& directory);
absl::StatusOr<std::unique_ptr<Peer>> MakeXapianPeer(const std::string& directory);

// The text of a field of a document; empty if it has none.
std::string_view TextOf(const Document& document, std::string_view field);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_PEERS_H_
