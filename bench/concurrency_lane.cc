// The concurrency lane: callers on one snapshot, alone and beside a writer that commits and flushes. A control, in
// which the threads share nothing at all, tells what the machine gives to so many threads just then.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "bench/bench_store.h"
#include "bench/callers.h"
#include "bench/lane.h"
#include "bench/query_shapes.h"
#include "src/base/status.h"

namespace ashlar::bench {
namespace {

constexpr uint64_t kRounds = 5;
constexpr uint64_t kWriterBatch = 100, kBatchesAFlush = 20;

// Adds documents to a store, as durable as the store's default, and flushes now and then, until it is told to stop.
class Writer {
 public:
  Writer(Store* store, ZipfCorpus* corpus)
      : store_(store), start_ns_(NowNs()), thread_([this, corpus] { status_ = Write(corpus); }) {}
  ~Writer() {
    if (thread_.joinable()) Stop().IgnoreError();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  absl::Status Stop() {
    stop_ = true;
    thread_.join();
    return status_;
  }
  // Of a writer that was stopped.
  double DocumentsPerSecond() const {
    return static_cast<double>(documents_) * 1e9 / static_cast<double>(end_ns_ - start_ns_);
  }

 private:
  absl::Status Write(ZipfCorpus* corpus) {
    std::string id, body;
    WriteBatch batch;
    for (uint64_t batches = 1; !stop_; ++batches) {
      batch.Clear();
      for (uint64_t i = 0; i < kWriterBatch && corpus->Next(&id, &body); ++i)
        batch.Put(Document().Add("id", id).Add("body", body));
      ASHLAR_RETURN_IF_ERROR(store_->Write(batch).status());
      documents_ += batch.size();
      if (batches % kBatchesAFlush == 0) ASHLAR_RETURN_IF_ERROR(store_->Flush());
    }
    end_ns_ = NowNs();
    return absl::OkStatus();
  }

  Store* const store_;
  const uint64_t start_ns_;
  uint64_t end_ns_ = 0, documents_ = 0;
  absl::Status status_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses the others
};

// One number of callers, with or without the writer, over all rounds.
struct CallersArm {
  bool writer;
  uint32_t callers;
  std::vector<double> per_second, cpu_mean_us, writer_per_second;
  CallersResult all{};

  void Add(const CallersResult& round) {
    per_second.push_back(round.per_second);
    cpu_mean_us.push_back(round.CpuMeanUs());
    all.calls += round.calls;
    all.cpu_ns += round.cpu_ns;
    all.cpu.AddAll(round.cpu);
    all.allocations = round.allocations;
    all.wall.AddAll(round.wall);
  }
};

// The median over the rounds of `of` / `to`.
double MedianRatio(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> ratios;
  for (size_t i = 0; i < of.size(); ++i) ratios.push_back(of[i] / to[i]);
  return Median(std::move(ratios));
}

Json RowOf(std::string_view name, const CallersArm& arm, const CallersArm& first) {
  Json row = {{"name", name},
              {"callers", arm.callers},
              {"writer", arm.writer},
              {"searches_per_s", Median(arm.per_second)},
              // Beside the first arm: one caller alone, in the same round.
              {"times_first", MedianRatio(arm.per_second, first.per_second)},
              {"cpu_per_search_times_first", MedianRatio(arm.cpu_mean_us, first.cpu_mean_us)}};
  arm.all.wall.Report(&row);
  Json cpu;
  arm.all.cpu.Report(&cpu);
  for (const char* part : {"p50_us", "p99_us", "mean_us"}) row[absl::StrCat("cpu_", part)] = cpu[part];
  arm.all.allocations.Report(&row);
  if (arm.writer) row["writer_docs_per_s"] = Median(arm.writer_per_second);
  return row;
}

class ConcurrencyLane {
 public:
  ConcurrencyLane(const LaneOptions& options, Report* report)
      : options_(options), report_(report), corpus_(WriterCorpus(options.corpus)) {}

  absl::Status Run() {
    // The writer's documents go into a copy, so that a store that is kept stays as it is.
    const std::string copy = absl::StrCat(options_.directory, "-beside-writer");
    if (std::filesystem::exists(copy)) return AlreadyExists(absl::StrCat(copy, ": exists; the lane makes it"));
    const absl::Status status = RunOver(copy);
    std::error_code ignored;
    std::filesystem::remove_all(copy, ignored);
    return status;
  }

 private:
  static ZipfOptions WriterCorpus(ZipfOptions corpus) {
    corpus.first_id = corpus.documents;
    corpus.documents = UINT64_MAX;
    ++corpus.seed;
    return corpus;
  }

  absl::Status RunOver(const std::string& copy) {
    Options read_only;
    read_only.read_only = true;
    ASHLAR_ASSIGN_OR_RETURN(const auto original, Store::Open(options_.directory, read_only));
    ASHLAR_RETURN_IF_ERROR(original->Checkpoint(copy).status());
    Options store_options;
    store_options.open_mode = options_.array ? OpenMode::kArray : OpenMode::kMapped;
    ASHLAR_ASSIGN_OR_RETURN(store_, Store::Open(copy, store_options));
    ASHLAR_RETURN_IF_ERROR(Measure("control", [] { return Arithmetic(); }));
    const Snapshot snapshot = store_->TakeSnapshot();
    for (const QueryShape& shape : ZipfShapes()) {
      if (!options_.shape.empty() && options_.shape != shape.name) continue;
      ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery query, store_->Prepare(std::string_view(shape.query)));
      const SearchOptions search = OptionsOf(shape, {});
      // What every caller is to find.
      ASHLAR_ASSIGN_OR_RETURN(const SearchResult expected, snapshot.Search(query, search));
      ASHLAR_RETURN_IF_ERROR(Measure(shape.name, [&] {
        return [&]() -> absl::Status {
          ASHLAR_ASSIGN_OR_RETURN(const SearchResult found, snapshot.Search(query, search));
          return SamePage(expected, found);
        };
      }));
    }
    return store_->Close();
  }

  static absl::Status SamePage(const SearchResult& expected, const SearchResult& found) {
    const auto same = [](const Hit& a, const Hit& b) { return a.handle == b.handle && a.score == b.score; };
    if (std::equal(expected.hits.begin(), expected.hits.end(), found.hits.begin(), found.hits.end(), same))
      return absl::OkStatus();
    return Internal("a caller found another page");
  }

  // Adds up 256 KiB of its own again and again.
  static Work Arithmetic() {
    constexpr size_t kWords = size_t{256} << 10 >> 3;
    constexpr int kPasses = 20;
    return [words = std::vector<uint64_t>(kWords, 3)]() mutable {
      for (int pass = 0; pass < kPasses; ++pass) std::partial_sum(words.begin(), words.end(), words.begin());
      return absl::OkStatus();
    };
  }

  absl::Status Measure(std::string_view name, const std::function<Work()>& make_work) {
    std::vector<CallersArm> arms;
    for (const bool writer : {false, true})
      for (const uint32_t callers : options_.callers) arms.push_back({writer, callers, {}, {}, {}});
    for (uint64_t round = 0; round < kRounds; ++round)
      for (CallersArm& arm : arms) ASHLAR_RETURN_IF_ERROR(RunArm(make_work, &arm));
    for (const CallersArm& arm : arms) report_->AddRow(RowOf(name, arm, arms.front()));
    return absl::OkStatus();
  }

  absl::Status RunArm(const std::function<Work()>& make_work, CallersArm* arm) {
    std::unique_ptr<Writer> writer;
    if (arm->writer) writer = std::make_unique<Writer>(store_.get(), &corpus_);
    ASHLAR_ASSIGN_OR_RETURN(const CallersResult round, RunCallers(arm->callers, options_.seconds, make_work));
    arm->Add(round);
    if (!arm->writer) return absl::OkStatus();
    ASHLAR_RETURN_IF_ERROR(writer->Stop());
    arm->writer_per_second.push_back(writer->DocumentsPerSecond());
    return absl::OkStatus();
  }

  const LaneOptions& options_;
  Report* const report_;
  ZipfCorpus corpus_;  // the writer's
  std::unique_ptr<Store> store_;
};

}  // namespace

absl::Status RunConcurrencyLane(const LaneOptions& options) {
  Report report("concurrency", options);
  NoteForm(options, &report);
  ASHLAR_RETURN_IF_ERROR(WithStore(options, [&] { return ConcurrencyLane(options, &report).Run(); }));
  report.NotMeasured("callers on snapshots of their own; durability modes of the writer other than sync");
  return report.Finish();
}

}  // namespace ashlar::bench
