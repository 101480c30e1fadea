// LMDB as a peer of commits: keys and values, no index.
#include <lmdb.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/peers.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr size_t kMapBytes = size_t{16} << 30;

absl::Status StatusOfCode(int code) {
  return code == MDB_SUCCESS ? absl::OkStatus() : Internal(absl::StrCat("LMDB: ", mdb_strerror(code)));
}

MDB_val ValueOf(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

class LmdbPeer : public Peer {
 public:
  ~LmdbPeer() override { mdb_env_close(environment_); }

  std::string_view name() const override { return "lmdb"; }
  std::string_view form() const override { return "synced commits; indexes nothing"; }

  absl::Status Open(const std::string& directory) {
    ASHLAR_RETURN_IF_ERROR(StatusOfCode(mdb_env_create(&environment_)));
    ASHLAR_RETURN_IF_ERROR(StatusOfCode(mdb_env_set_mapsize(environment_, kMapBytes)));
    return StatusOfCode(mdb_env_open(environment_, directory.c_str(), 0, 0644));
  }

  absl::Status Write(const WriteBatch& batch) override {
    MDB_txn* transaction = nullptr;
    ASHLAR_RETURN_IF_ERROR(StatusOfCode(mdb_txn_begin(environment_, nullptr, 0, &transaction)));
    const int code = Put(batch, transaction);
    if (code == MDB_SUCCESS) return StatusOfCode(mdb_txn_commit(transaction));
    mdb_txn_abort(transaction);
    return StatusOfCode(code);
  }

  absl::StatusOr<PeerSearch> Prepare(const TextQuery&, uint64_t) override { return Unimplemented("no index"); }

 private:
  static int Put(const WriteBatch& batch, MDB_txn* transaction) {
    MDB_dbi table;
    int code = mdb_dbi_open(transaction, nullptr, 0, &table);
    for (const WriteBatch::Operation& operation : batch.operations()) {
      if (code != MDB_SUCCESS) return code;
      MDB_val key = ValueOf(TextOf(operation.document, "id")), value = ValueOf(TextOf(operation.document, "body"));
      code = mdb_put(transaction, table, &key, &value, 0);
    }
    return code;
  }

  MDB_env* environment_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> MakeLmdbPeer(const std::string& directory) {
  auto peer = std::make_unique<LmdbPeer>();
  ASHLAR_RETURN_IF_ERROR(peer->Open(directory));
  return std::unique_ptr<Peer>(std::move(peer));
}

}  // namespace ashlar::bench
