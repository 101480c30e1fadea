// LevelDB as a peer of commits: keys and values, no index.
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/peers.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

leveldb::Slice SliceOf(std::string_view text) { return {text.data(), text.size()}; }

class LevelDbPeer : public Peer {
 public:
  explicit LevelDbPeer(leveldb::DB* database) : database_(database) { durable_.sync = true; }

  std::string_view name() const override { return "leveldb"; }
  std::string_view form() const override { return "its defaults, WriteOptions::sync; indexes nothing"; }

  absl::Status Write(const WriteBatch& batch) override {
    leveldb::WriteBatch puts;
    for (const WriteBatch::Operation& operation : batch.operations())
      puts.Put(SliceOf(TextOf(operation.document, "id")), SliceOf(TextOf(operation.document, "body")));
    const leveldb::Status status = database_->Write(durable_, &puts);
    return status.ok() ? absl::OkStatus() : Internal(absl::StrCat("LevelDB: ", status.ToString()));
  }

  absl::StatusOr<PeerSearch> Prepare(const TextQuery&, uint64_t) override { return Unimplemented("no index"); }

 private:
  const std::unique_ptr<leveldb::DB> database_;
  leveldb::WriteOptions durable_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> MakeLevelDbPeer(const std::string& directory) {
  leveldb::Options options;
  options.create_if_missing = true;
  leveldb::DB* database = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, directory, &database);
  if (!status.ok()) return Internal(absl::StrCat("LevelDB: ", status.ToString()));
  return std::unique_ptr<Peer>(std::make_unique<LevelDbPeer>(database));
}

}  // namespace ashlar::bench
