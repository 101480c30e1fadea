// RocksDB as a peer of commits: keys and values, no index.
#include <rocksdb/db.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/peers.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

rocksdb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }

class RocksDbPeer : public Peer {
 public:
  explicit RocksDbPeer(rocksdb::DB* database) : database_(database) { durable_.sync = true; }

  std::string_view name() const override { return "rocksdb"; }
  std::string_view form() const override { return "its defaults, WriteOptions::sync; indexes nothing"; }

  absl::Status Write(const WriteBatch& batch) override {
    rocksdb::WriteBatch puts;
    for (const WriteBatch::Operation& operation : batch.operations())
      puts.Put(SliceOf(TextOf(operation.document, "id")), SliceOf(TextOf(operation.document, "body")));
    const rocksdb::Status status = database_->Write(durable_, &puts);
    return status.ok() ? absl::OkStatus() : Internal(absl::StrCat("RocksDB: ", status.ToString()));
  }

  absl::StatusOr<PeerSearch> Prepare(const TextQuery&, uint64_t) override { return Unimplemented("no index"); }

 private:
  const std::unique_ptr<rocksdb::DB> database_;
  rocksdb::WriteOptions durable_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> MakeRocksDbPeer(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* database = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &database);
  if (!status.ok()) return Internal(absl::StrCat("RocksDB: ", status.ToString()));
  return std::unique_ptr<Peer>(std::make_unique<RocksDbPeer>(database));
}

}  // namespace ashlar::bench
