// The commit lane: durable small batches after a bulk load, by durability, size and number of writers, beside what the
// disk takes for one write and one sync of the same bytes, and with --peers beside other engines. All arms take turns.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/lane.h"
#include "bench/peers.h"
#include "src/base/status.h"
#include "src/env/env.h"

namespace ashlar::bench {
namespace {

using WriteBatches = std::vector<WriteBatch>;
using Write = std::function<absl::Status(const WriteBatch&)>;

// Something that commits, over the rounds of one size of batch and one number of writers.
struct Arm {
  std::string engine, durability;
  Write write;
  Store* store = nullptr;  // of Ashlar: has counters

  Latencies latencies{};
  std::vector<double> per_second{};
  Written written{};
  std::map<std::string, uint64_t> counted{};

  void Clear() {
    latencies = {};
    per_second.clear();
    written = {};
    counted.clear();
  }
};

struct Commits {
  Latencies latencies;
  uint64_t elapsed_ns = 0;
};

// Every writer commits its batches, one after the other; all begin at once.
absl::StatusOr<Commits> CommitAll(const std::vector<WriteBatches>& by_writer, const Write& write) {
  struct Done {
    absl::Status status;
    Latencies latencies;
    uint64_t start = 0, end = 0;
  };
  std::vector<Done> done(by_writer.size());
  std::latch ready(static_cast<ptrdiff_t>(by_writer.size()));
  const auto commit = [&](size_t writer) -> absl::Status {
    ready.arrive_and_wait();
    uint64_t start = done[writer].start = NowNs();
    for (const WriteBatch& batch : by_writer[writer]) {
      ASHLAR_RETURN_IF_ERROR(write(batch));
      const uint64_t now = NowNs();
      done[writer].latencies.Add(now - start);
      start = done[writer].end = now;
    }
    return absl::OkStatus();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < by_writer.size(); ++i) threads.emplace_back([&, i] { done[i].status = commit(i); });
  for (std::thread& thread : threads) thread.join();
  Commits commits;
  uint64_t first = UINT64_MAX, last = 0;
  for (const Done& writer : done) {
    ASHLAR_RETURN_IF_ERROR(writer.status);
    commits.latencies.AddAll(writer.latencies);
    first = std::min(first, writer.start);
    last = std::max(last, writer.end);
  }
  commits.elapsed_ns = last - first;
  return commits;
}

// One write and one sync after the other over a file that is there already, so that only bytes are written.
absl::StatusOr<Latencies> TimeRawWrites(const std::string& path, uint64_t bytes, uint64_t writes) {
  env::FileSystem& files = *env::PosixEnv().files;
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, files.CreateFile(path));
  ByteBuffer payload(bytes, std::byte{1});
  for (uint64_t i = 0; i < writes; ++i) ASHLAR_RETURN_IF_ERROR(file->Append(payload));
  ASHLAR_RETURN_IF_ERROR(file->Sync());
  std::fill(payload.begin(), payload.end(), std::byte{2});
  Latencies latencies;
  for (uint64_t i = 0; i < writes; ++i) {
    const uint64_t start = NowNs();
    ASHLAR_RETURN_IF_ERROR(file->WriteAt(i * bytes, payload));
    ASHLAR_RETURN_IF_ERROR(file->Sync());
    latencies.Add(NowNs() - start);
  }
  ASHLAR_RETURN_IF_ERROR(file->Close());
  ASHLAR_RETURN_IF_ERROR(files.Remove(path));
  return latencies;
}

class CommitLane {
 public:
  CommitLane(const LaneOptions& options, Report* report)
      : options_(options), report_(report), corpus_(NewDocuments(options.corpus)) {}

  absl::Status Run() {
    ASHLAR_RETURN_IF_ERROR(MakeArms());
    for (const uint64_t batch : options_.batches)
      for (const uint32_t writers : options_.writers) ASHLAR_RETURN_IF_ERROR(Measure(batch, writers));
    for (const std::unique_ptr<Store>& store : stores_) ASHLAR_RETURN_IF_ERROR(store->Close());
    return absl::OkStatus();
  }

 private:
  static ZipfOptions NewDocuments(ZipfOptions corpus) {
    corpus.first_id = corpus.documents;
    corpus.documents = UINT64_MAX;
    ++corpus.seed;
    return corpus;
  }

  absl::Status MakeArms() {
    constexpr uint64_t kBulkBatch = 1000;
    std::filesystem::create_directories(options_.directory);
    const std::string loaded = absl::StrCat(options_.directory, "/loaded");
    {
      Options bulk;
      bulk.durability = Durability::kOff;
      ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(loaded, BenchSchema(), bulk));
      ASHLAR_RETURN_IF_ERROR(WriteCorpus(options_.corpus, store.get()).status());
      ASHLAR_RETURN_IF_ERROR(store->Close());
    }
    const std::pair<Durability, const char*> modes[] = {
        {Durability::kSync, "sync"}, {Durability::kInterval, "interval"}, {Durability::kOs, "os"}};
    for (const auto& [mode, name] : modes) ASHLAR_RETURN_IF_ERROR(MakeArm(loaded, mode, name));
    if (!options_.peers) return absl::OkStatus();
    ASHLAR_ASSIGN_OR_RETURN(peers_, MakeCommitPeers(options_.directory, options_.peer_names));
    const Batches bulk = MakeZipfBatches(options_.corpus, kBulkBatch);
    for (const std::unique_ptr<Peer>& peer : peers_) {
      for (const WriteBatch& batch : bulk.batches) ASHLAR_RETURN_IF_ERROR(peer->Write(batch));
      report_->AddRow({{"engine", peer->name()}, {"form", peer->form()}});
      arms_.push_back(
          {std::string(peer->name()), "sync", [&peer](const WriteBatch& batch) { return peer->Write(batch); }});
    }
    return absl::OkStatus();
  }

  // A copy of the loaded store for each mode.
  absl::Status MakeArm(const std::string& loaded, Durability mode, const char* name) {
    const std::string directory = absl::StrCat(options_.directory, "/", name);
    Options read_only;
    read_only.read_only = true;
    ASHLAR_ASSIGN_OR_RETURN(const auto original, Store::Open(loaded, read_only));
    ASHLAR_RETURN_IF_ERROR(original->Checkpoint(directory).status());
    Options store_options;
    store_options.durability = mode;
    ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(directory, store_options));
    Store* const open = store.get();
    stores_.push_back(std::move(store));
    arms_.push_back({"ashlar", name, [open](const WriteBatch& batch) { return open->Write(batch).status(); }, open});
    return absl::OkStatus();
  }

  absl::Status Measure(uint64_t batch, uint32_t writers) {
    for (Arm& arm : arms_) arm.Clear();
    Latencies raw;
    const uint64_t commits = std::max<uint64_t>(1, options_.commits / options_.rounds / writers);  // of a writer
    for (uint64_t round = 0; round < options_.rounds; ++round) {
      for (Arm& arm : arms_) ASHLAR_RETURN_IF_ERROR(RunRound(batch, writers, commits, &arm));
      const uint64_t bytes = std::max<uint64_t>(1, JournalBytesOfCommit(arms_.front()));  // Ashlar, synced
      ASHLAR_ASSIGN_OR_RETURN(const Latencies some,
                              TimeRawWrites(absl::StrCat(options_.directory, "/raw"), bytes, commits * writers));
      raw.AddAll(some);
    }
    for (const Arm& arm : arms_) report_->AddRow(RowOf(arm, batch, writers, raw));
    return absl::OkStatus();
  }

  absl::Status RunRound(uint64_t batch, uint32_t writers, uint64_t commits, Arm* arm) {
    std::vector<WriteBatches> by_writer(writers);
    for (WriteBatches& own : by_writer)
      for (uint64_t i = 0; i < commits; ++i) own.push_back(NextBatch(batch));
    const std::map<std::string, uint64_t> counted = CountersOf(*arm);
    const Written written = WrittenBytes();
    ASHLAR_ASSIGN_OR_RETURN(const Commits done, CommitAll(by_writer, arm->write));
    const Written more = WrittenBytes().Since(written);
    arm->written.bytes += more.bytes;
    arm->written.calls += more.calls;
    for (const auto& [name, count] : CountersOf(*arm)) {
      const auto before = counted.find(name);
      arm->counted[name] += count - (before == counted.end() ? 0 : before->second);
    }
    arm->latencies.AddAll(done.latencies);
    arm->per_second.push_back(static_cast<double>(commits * writers) * 1e9 / static_cast<double>(done.elapsed_ns));
    return absl::OkStatus();
  }

  WriteBatch NextBatch(uint64_t documents) {
    WriteBatch batch;
    std::string id, body;
    for (uint64_t i = 0; i < documents && corpus_.Next(&id, &body); ++i)
      batch.Put(Document().Add("id", id).Add("body", body));
    return batch;
  }

  static std::map<std::string, uint64_t> CountersOf(const Arm& arm) {
    return arm.store == nullptr ? std::map<std::string, uint64_t>() : arm.store->GetStats().counters;
  }

  static uint64_t Counted(const Arm& arm, const char* name) {
    const auto found = arm.counted.find(name);
    return found == arm.counted.end() ? 0 : found->second;
  }
  // Without what a new file of the journal is filled with.
  static uint64_t JournalBytesOfCommit(const Arm& arm) { return Counted(arm, "journal_bytes") / arm.latencies.count(); }

  Json RowOf(const Arm& arm, uint64_t batch, uint32_t writers, const Latencies& raw) const {
    Json row = {{"engine", arm.engine}, {"durability", arm.durability}, {"batch", batch}, {"writers", writers}};
    arm.latencies.Report(&row);
    row["p999_us"] = arm.latencies.QuantileUs(0.999);
    row["max_us"] = arm.latencies.QuantileUs(1);
    row["commits_per_s"] = Median(arm.per_second);
    const auto per_commit = [&](uint64_t count) {
      return static_cast<double>(count) / static_cast<double>(arm.latencies.count());
    };
    row["writes_per_commit"] = per_commit(arm.written.calls);
    row["bytes_per_commit"] = per_commit(arm.written.bytes);
    if (arm.store != nullptr) {
      row["syncs_per_commit"] = per_commit(Counted(arm, "journal_syncs"));
      row["journal_bytes_per_commit"] = JournalBytesOfCommit(arm);
      row["files_created"] = Counted(arm, "journal_files_created");
      row["files_recycled"] = Counted(arm, "journal_files_recycled");
      row["flushes"] = Counted(arm, "flushes");
    }
    row["raw_p50_us"] = raw.MedianUs();
    row["raw_p99_us"] = raw.QuantileUs(0.99);
    row["times_raw_p50"] = arm.latencies.MedianUs() / raw.MedianUs();
    return row;
  }

  const LaneOptions& options_;
  Report* const report_;
  ZipfCorpus corpus_;  // of the commits
  std::vector<std::unique_ptr<Store>> stores_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Arm> arms_;
};

}  // namespace

absl::Status RunCommitLane(const LaneOptions& options) {
  Report report("commit", options);
  ASHLAR_RETURN_IF_ERROR(WithDirectory(options, [&] { return CommitLane(options, &report).Run(); }));
  report.NotMeasured("syncs of peers, and those of a flush: syncs_per_commit is of the journal");
  report.NotMeasured(
      "raw: one thread, whatever the number of writers; its bytes are those that a synced commit of Ashlar adds to the "
      "journal");
  if (options.peers) {
    for (std::string& missing : MissingPeers()) report.NotMeasured(std::move(missing));
    report.NotMeasured("peers look for no document of the same key; RocksDB, LevelDB and LMDB index nothing");
  }
  return report.Finish();
}

}  // namespace ashlar::bench
