#include "bench/peers.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

using MakePeer = absl::StatusOr<std::unique_ptr<Peer>> (*)(const std::string& directory);
struct Known {
  const char* name;
  bool searches;
  MakePeer make;  // null: its library was not found
};

constexpr Known kKnown[] = {
#ifdef ASHLAR_BENCH_SQLITE
    {"sqlite", true, MakeSqlitePeer},
#else
    {"sqlite", true, nullptr},
#endif
#ifdef ASHLAR_BENCH_XAPIAN
    {"xapian", true, MakeXapianPeer},
#else
    {"xapian", true, nullptr},
#endif
#ifdef ASHLAR_BENCH_ROCKSDB
    {"rocksdb", false, MakeRocksDbPeer},
#else
    {"rocksdb", false, nullptr},
#endif
#ifdef ASHLAR_BENCH_LEVELDB
    {"leveldb", false, MakeLevelDbPeer},
#else
    {"leveldb", false, nullptr},
#endif
    {"lmdb", false, MakeLmdbPeer},
};

absl::StatusOr<std::vector<std::unique_ptr<Peer>>> MakePeers(const std::string& directory, bool only_searching,
                                                             const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (const Known& known : kKnown) {
    if (known.make == nullptr || (only_searching && !known.searches)) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), known.name) == names.end()) continue;
    const std::string own = absl::StrCat(directory, "/", known.name);
    std::filesystem::create_directories(own);
    ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<Peer> peer, known.make(own));
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Peer>>> MakeSearchPeers(const std::string& directory) {
  return MakePeers(directory, /*only_searching=*/true, {});
}

absl::StatusOr<std::vector<std::unique_ptr<Peer>>> MakeCommitPeers(const std::string& directory,
                                                                   const std::vector<std::string>& names) {
  return MakePeers(directory, /*only_searching=*/false, names);
}

std::vector<std::string> MissingPeers() {
  std::vector<std::string> missing;
  for (const Known& known : kKnown)
    if (known.make == nullptr) missing.push_back(absl::StrCat(known.name, ": its library was not found at the build"));
  return missing;
}

std::string_view TextOf(const Document& document, std::string_view field) {
  const Value* const value = document.Find(field);
  return value == nullptr ? std::string_view() : std::string_view(std::get<std::string>(*value));
}

}  // namespace ashlar::bench
