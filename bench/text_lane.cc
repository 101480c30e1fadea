// The text lane: queries by class over a real corpus, through Ashlar and, with --peers, through other engines,
// alternating.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
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

// What is asked of a query: its best hits, or how many match.
struct Wanted {
  const char* name;
  uint64_t k;  // 0: the number of matches
};
constexpr Wanted kWanted[] = {{"top 10", 10}, {"top 100", 100}, {"top 1000", 1000}, {"count", 0}};

// One engine over the queries of one class.
struct Engine {
  std::string name;
  std::function<absl::StatusOr<PeerSearch>(const TextQuery&, uint64_t k)> prepare;
  std::vector<double> us;  // a query: the median of its runs
  uint64_t hits = 0;
  bool answers = true;
  void Clear() {
    us.clear();
    hits = 0;
    answers = true;
  }
};

struct Summary {
  double mean, p50, p99;
};

Summary SummaryOf(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double part) { return us[static_cast<size_t>(part * static_cast<double>(us.size() - 1))]; };
  return {std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size()), at(0.5), at(0.99)};
}

double Rounded(double value) { return std::round(value * 1000) / 1000; }

class TextLane {
 public:
  TextLane(const LaneOptions& options, Report* report) : options_(options), report_(report) {}

  absl::Status Run() {
    ASHLAR_RETURN_IF_ERROR(ReadQueries());
    ASHLAR_RETURN_IF_ERROR(Build());
    for (const Wanted& wanted : kWanted)
      for (const auto& [name, queries] : classes_) ASHLAR_RETURN_IF_ERROR(MeasureClass(name, queries, wanted));
    report_->AddRow({{"not_ahead", not_ahead_}});
    return store_->Close();
  }

 private:
  absl::Status ReadQueries() {
    ASHLAR_ASSIGN_OR_RETURN(std::vector<TextQuery> queries, ReadTextQueries(options_.queries_file));
    for (TextQuery& query : queries) {
      std::vector<TextQuery>& all = classes_[query.name];
      if (options_.per_class == 0 || all.size() < options_.per_class) all.push_back(std::move(query));
    }
    return absl::OkStatus();
  }

  absl::Status Build() {
    ASHLAR_ASSIGN_OR_RETURN(const Batches corpus, ReadTextCorpus(options_.corpus_file, kBatchDocuments));
    report_->corpus() = {{"kind", "text"}, {"docs", corpus.documents}, {"bytes", corpus.bytes}};
    const std::string directory = absl::StrCat(options_.directory, "/ashlar");
    std::filesystem::create_directories(options_.directory);
    Options store_options;
    store_options.durability = Durability::kOff;
    ASHLAR_ASSIGN_OR_RETURN(store_, Store::Create(directory, TextSchema(), store_options));
    ASHLAR_RETURN_IF_ERROR(TimeBuild(
        "ashlar", "one segment, mapped; k1 1.2, b 0.75", directory, corpus,
        [&](const WriteBatch& batch) { return store_->Write(batch).status(); }, [&] { return store_->Merge(1); }));
    snapshot_ = store_->TakeSnapshot();
    engines_.push_back({"ashlar", [this](const TextQuery& query, uint64_t k) { return Prepare(query, k); }, {}});
    if (options_.peers) ASHLAR_RETURN_IF_ERROR(BuildPeers(corpus));
    return absl::OkStatus();
  }

  absl::Status BuildPeers(const Batches& corpus) {
    ASHLAR_ASSIGN_OR_RETURN(peers_, MakeSearchPeers(options_.directory));
    for (const std::unique_ptr<Peer>& peer : peers_) {
      ASHLAR_RETURN_IF_ERROR(TimeBuild(
          peer->name(), peer->form(), absl::StrCat(options_.directory, "/", ToAbsl(peer->name())), corpus,
          [&](const WriteBatch& batch) { return peer->Write(batch); }, [&] { return peer->Optimize(); }));
      engines_.push_back({std::string(peer->name()),
                          [&peer](const TextQuery& query, uint64_t k) { return peer->Prepare(query, k); },
                          {}});
    }
    return absl::OkStatus();
  }

  absl::Status TimeBuild(std::string_view name, std::string_view form, const std::string& directory,
                         const Batches& corpus, const std::function<absl::Status(const WriteBatch&)>& write,
                         const std::function<absl::Status()>& optimize) {
    const uint64_t start = NowNs();
    for (const WriteBatch& batch : corpus.batches) ASHLAR_RETURN_IF_ERROR(write(batch));
    const uint64_t written = NowNs();
    ASHLAR_RETURN_IF_ERROR(optimize());
    Json row = PhaseRow("build", written - start, directory);
    row["engine"] = name;
    row["optimize_seconds"] = static_cast<double>(NowNs() - written) / 1e9;
    row["form"] = form;
    report_->AddRow(std::move(row));
    return absl::OkStatus();
  }

  absl::StatusOr<PeerSearch> Prepare(const TextQuery& query, uint64_t k) {
    ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery prepared, store_->Prepare(std::string_view(query.text)));
    SearchOptions options;
    options.k = std::max<uint64_t>(1, k);
    options.total = k == 0 ? Total::kExact : Total::kNone;
    return PeerSearch([this, prepared, options, k]() -> absl::StatusOr<uint64_t> {
      ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, snapshot_.Search(prepared, options));
      return k == 0 ? result.total : result.hits.size();
    });
  }

  // All engines a query, in turn, round after round, after one run that is not counted.
  absl::Status MeasureClass(const std::string& name, const std::vector<TextQuery>& queries, const Wanted& wanted) {
    for (Engine& engine : engines_) engine.Clear();
    for (const TextQuery& query : queries) ASHLAR_RETURN_IF_ERROR(MeasureQuery(query, wanted.k));
    const Summary own = SummaryOf(engines_.front().us);
    for (const Engine& engine : engines_) {
      Json row = {{"class", name}, {"wanted", wanted.name}, {"engine", engine.name}, {"queries", queries.size()}};
      if (!engine.answers) {
        row["not_answered"] = true;
        report_->AddRow(std::move(row));
        continue;
      }
      const Summary summary = SummaryOf(engine.us);
      row["mean_us"] = Rounded(summary.mean);
      row["p50_us"] = Rounded(summary.p50);
      row["p99_us"] = Rounded(summary.p99);
      row["hits_mean"] = static_cast<double>(engine.hits) / static_cast<double>(queries.size());
      if (&engine != &engines_.front()) Compare(name, wanted, engine, own, summary, &row);
      report_->AddRow(std::move(row));
    }
    return absl::OkStatus();
  }

  // Ratios above 1: Ashlar is ahead.
  void Compare(const std::string& name, const Wanted& wanted, const Engine& peer, const Summary& own,
               const Summary& summary, Json* row) {
    const std::pair<const char*, double> ratios[] = {
        {"mean", summary.mean / own.mean}, {"p50", summary.p50 / own.p50}, {"p99", summary.p99 / own.p99}};
    for (const auto& [part, ratio] : ratios) {
      (*row)[absl::StrCat("times_ashlar_", part)] = Rounded(ratio);
      if (ratio <= 1)
        not_ahead_.push_back(absl::StrCat(name, ", ", wanted.name, ", ", peer.name, ": ", part, " ", Rounded(ratio)));
    }
    uint64_t faster = 0;
    for (size_t i = 0; i < peer.us.size(); ++i) faster += peer.us[i] < engines_.front().us[i] ? 1 : 0;
    (*row)["queries_faster_than_ashlar"] = faster;
  }

  absl::Status MeasureQuery(const TextQuery& query, uint64_t k) {
    std::vector<PeerSearch> searches(engines_.size());
    std::vector<Latencies> latencies(engines_.size());
    for (size_t i = 0; i < engines_.size(); ++i) {
      absl::StatusOr<PeerSearch> search = engines_[i].prepare(query, k);
      engines_[i].answers &= !absl::IsUnimplemented(search.status());
      if (!engines_[i].answers) continue;
      ASHLAR_RETURN_IF_ERROR(search.status());
      searches[i] = *std::move(search);
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t hits, searches[i]());
      engines_[i].hits += hits;
    }
    for (uint64_t run = 0; run < options_.runs; ++run) {
      for (size_t i = 0; i < engines_.size(); ++i) {
        if (!engines_[i].answers) continue;
        const uint64_t start = NowNs();
        ASHLAR_RETURN_IF_ERROR(searches[i]().status());
        latencies[i].Add(NowNs() - start);
      }
    }
    for (size_t i = 0; i < engines_.size(); ++i)
      if (engines_[i].answers) engines_[i].us.push_back(latencies[i].MedianUs());
    return absl::OkStatus();
  }

  const LaneOptions& options_;
  Report* const report_;
  std::map<std::string, std::vector<TextQuery>> classes_;
  std::unique_ptr<Store> store_;
  Snapshot snapshot_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Engine> engines_;  // Ashlar first
  Json not_ahead_ = Json::array();
};

}  // namespace

absl::Status RunTextLane(const LaneOptions& options) {
  Report report("text", options);
  ASHLAR_RETURN_IF_ERROR(WithDirectory(options, [&] { return TextLane(options, &report).Run(); }));
  report.NotMeasured(
      "prefix, fuzzy, must with should, facets, sort, filters: not in the query language or not in the queries");
  if (options.peers) {
    for (std::string& missing : MissingPeers()) report.NotMeasured(std::move(missing));
    report.NotMeasured(
        "equality of answers: engines cut words differently (a word with an apostrophe or a dot), FTS5 and Xapian have "
        "another "
        "idf than Ashlar, and a phrase may cross from title to body in none; hits_mean shows how near they are");
    report.NotMeasured(
        "preparing a query: Ashlar's and Xapian's are prepared before; FTS5 parses its match text in each run");
  } else {
    report.NotMeasured("peers: not asked for");
  }
  return report.Finish();
}

}  // namespace ashlar::bench
