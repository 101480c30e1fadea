// The ingest lane: bulk indexing of a corpus that is in memory, without and with the journal, by one thread and two,
// and with
// --peers by other engines; every arm a fresh store, in turn.
#include <atomic>
#include <filesystem>
#include <functional>
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
#include "bench/text_corpus.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr uint64_t kBatchDocuments = 1000;

// Of one time through the corpus.
struct Ingested {
  uint64_t wall_ns = 0, cpu_ns = 0;
  uint64_t peak_bytes = 0;  // beyond what was there before
  uint64_t written_bytes = 0, index_bytes = 0, merges = 0;
};

using Write = std::function<absl::Status(const WriteBatch&)>;

// Threads that take the next batch until there is none.
absl::Status WriteAll(const std::vector<WriteBatch>& batches, uint32_t threads, const Write& write) {
  std::atomic<size_t> next = 0;
  std::vector<absl::Status> statuses(threads);
  std::vector<std::thread> running;
  for (absl::Status& status : statuses) {
    running.emplace_back([&batches, &next, &write, &status] {
      for (size_t i = next++; i < batches.size() && status.ok(); i = next++) status = write(batches[i]);
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const absl::Status& status : statuses) ASHLAR_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

class IngestLane {
 public:
  IngestLane(const LaneOptions& options, Report* report) : options_(options), report_(report) {}

  absl::Status Run() {
    const bool text = !options_.corpus_file.empty();
    schema_ = text ? TextSchema() : BenchSchema();
    if (text) {
      ASHLAR_ASSIGN_OR_RETURN(corpus_, ReadTextCorpus(options_.corpus_file, kBatchDocuments));
      report_->corpus() = {{"kind", "text"}, {"docs", corpus_.documents}};
    } else {
      corpus_ = MakeZipfBatches(options_.corpus, kBatchDocuments);
    }
    report_->corpus()["bytes"] = corpus_.bytes;
    MakeArms();
    if (options_.peers) ASHLAR_RETURN_IF_ERROR(MakePeerArms());
    for (uint64_t round = 0; round < options_.rounds; ++round)
      for (Arm& arm : arms_) ASHLAR_RETURN_IF_ERROR(RunArm(&arm));
    for (const Arm& arm : arms_) report_->AddRow(RowOf(arm));
    return absl::OkStatus();
  }

 private:
  struct Arm {
    std::string engine, durability;
    uint32_t threads = 1;
    std::function<absl::Status(const Arm&, Ingested*)> run;
    std::vector<Ingested> rounds{};
  };

  void MakeArms() {
    for (const auto& [mode, name] : {std::pair{Durability::kOff, "off"}, std::pair{Durability::kSync, "sync"}})
      for (const uint32_t threads : {1u, 2u})
        arms_.push_back({"ashlar", name, threads,
                         [this, mode = mode](const Arm& arm, Ingested* done) { return RunAshlar(mode, arm, done); }});
  }

  absl::Status MakePeerArms() {
    // Made once for their names; each round makes its own.
    ASHLAR_ASSIGN_OR_RETURN(const auto peers, MakeSearchPeers(options_.directory));
    for (size_t i = 0; i < peers.size(); ++i) {
      report_->AddRow({{"engine", peers[i]->name()}, {"form", peers[i]->form()}});
      arms_.push_back({std::string(peers[i]->name()), "sync", 1,
                       [this, i](const Arm&, Ingested* done) { return RunPeer(i, done); }});
    }
    std::filesystem::remove_all(options_.directory);
    return absl::OkStatus();
  }

  // Each in an empty directory.
  absl::Status RunArm(Arm* arm) {
    std::filesystem::remove_all(options_.directory);
    std::filesystem::create_directories(options_.directory);
    OwnBytes();  // gives back what the allocator keeps, which would hide the peak
    ResetPeakBytes();
    const uint64_t peak_before = PeakBytesSinceReset();
    Ingested done;
    ASHLAR_RETURN_IF_ERROR(arm->run(*arm, &done));
    done.peak_bytes = PeakBytesSinceReset() - peak_before;
    done.index_bytes = DirectoryBytes(options_.directory);
    arm->rounds.push_back(done);
    return absl::OkStatus();
  }

  absl::Status RunAshlar(Durability mode, const Arm& arm, Ingested* done) {
    Options store_options;
    store_options.durability = mode;
    ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Create(options_.directory + "/store", schema_, store_options));
    const Write write = [&](const WriteBatch& batch) { return store->Write(batch).status(); };
    const auto write_and_flush = [&]() -> absl::Status {
      ASHLAR_RETURN_IF_ERROR(WriteAll(corpus_.batches, arm.threads, write));
      return store->Flush();
    };
    ASHLAR_RETURN_IF_ERROR(Timed(write_and_flush, done));
    const std::map<std::string, uint64_t> counters = store->GetStats().counters;
    if (const auto merges = counters.find("merges"); merges != counters.end()) done->merges = merges->second;
    return store->Close();
  }

  absl::Status RunPeer(size_t number, Ingested* done) {
    ASHLAR_ASSIGN_OR_RETURN(const auto peers, MakeSearchPeers(options_.directory));
    return Timed(
        [&] {
          return WriteAll(corpus_.batches, 1, [&](const WriteBatch& batch) { return peers[number]->Write(batch); });
        },
        done);
  }

  static absl::Status Timed(const std::function<absl::Status()>& work, Ingested* done) {
    const Written written = WrittenBytes();
    const uint64_t cpu = ProcessCpuNs(), start = NowNs();
    ASHLAR_RETURN_IF_ERROR(work());
    done->wall_ns = NowNs() - start;
    done->cpu_ns = ProcessCpuNs() - cpu;
    done->written_bytes = WrittenBytes().Since(written).bytes;
    return absl::OkStatus();
  }

  Json RowOf(const Arm& arm) const {
    const auto median = [&](const std::function<double(const Ingested&)>& of) {
      std::vector<double> values;
      for (const Ingested& round : arm.rounds) values.push_back(of(round));
      return Median(std::move(values));
    };
    const auto documents = static_cast<double>(corpus_.documents), bytes = static_cast<double>(corpus_.bytes);
    const auto per_second = [](double count, uint64_t ns) { return count * 1e9 / static_cast<double>(ns); };
    Json row = {{"engine", arm.engine}, {"durability", arm.durability}, {"threads", arm.threads}};
    row["docs_per_s"] = median([&](const Ingested& round) { return per_second(documents, round.wall_ns); });
    row["docs_per_cpu_s"] = median([&](const Ingested& round) { return per_second(documents, round.cpu_ns); });
    row["mb_per_s"] = median([&](const Ingested& round) { return per_second(bytes / 1e6, round.wall_ns); });
    row["peak_bytes"] = median([](const Ingested& round) { return static_cast<double>(round.peak_bytes); });
    row["index_bytes"] = median([](const Ingested& round) { return static_cast<double>(round.index_bytes); });
    row["bytes_written_per_input_byte"] =
        median([&](const Ingested& round) { return static_cast<double>(round.written_bytes) / bytes; });
    if (arm.engine == "ashlar") row["merges"] = arm.rounds.back().merges;
    return row;
  }

  const LaneOptions& options_;
  Report* const report_;
  Schema schema_;
  Batches corpus_;
  std::vector<Arm> arms_;
};

}  // namespace

absl::Status RunIngestLane(const LaneOptions& options) {
  Report report("ingest", options);
  ASHLAR_RETURN_IF_ERROR(WithDirectory(options, [&] { return IngestLane(options, &report).Run(); }));
  report.NotMeasured("reading or making the corpus: it is in memory before");
  report.NotMeasured("closing a peer; Ashlar's figures are with a flush at the end");
  if (options.peers)
    for (std::string& missing : MissingPeers()) report.NotMeasured(std::move(missing));
  return report.Finish();
}

}  // namespace ashlar::bench
