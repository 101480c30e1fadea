// ashlar-bench LANE [options]: measures the whole engine, a question a lane. See bench/README.md.
#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "bench/corpus.h"
#include "bench/lane.h"
#include "src/base/status.h"

namespace {

using ashlar::bench::LaneOptions;
using ashlar::bench::ZipfCorpus;

constexpr size_t kOutputBytes = 1 << 20;

absl::Status PrintZipf(const ashlar::bench::ZipfOptions& options) {
  ZipfCorpus corpus(options);
  std::string lines;
  bool more = true;
  while (more) {
    more = corpus.NextLine(&lines);
    if (more && lines.size() < kOutputBytes) continue;
    if (std::fwrite(lines.data(), 1, lines.size(), stdout) != lines.size()) {
      return ashlar::Internal("standard output: could not be written");
    }
    lines.clear();
  }
  return std::fflush(stdout) == 0 ? absl::OkStatus() : ashlar::Internal("standard output: could not be written");
}

void AddCorpusOptions(CLI::App* lane, ashlar::bench::ZipfOptions* options) {
  lane->add_option("--seed", options->seed, "Seed of the corpus")->capture_default_str();
  lane->add_option("--words", options->words, "Words of a document")->capture_default_str();
  lane->add_option("--vocab", options->vocabulary, "Different words")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  lane->add_flag("--variable-length", options->variable_length, "Lognormal lengths with that median");
}

void AddReportOptions(CLI::App* lane, LaneOptions* options) {
  lane->add_option("--dir", options->directory, "Directory that is made for the store and removed")
      ->capture_default_str();
  lane->add_option("--json", options->json_file, "Write the report as one JSON object");
  lane->add_option("--runs", options->runs, "Timed runs of a query")->check(CLI::PositiveNumber)->capture_default_str();
}

void AddLaneOptions(CLI::App* lane, LaneOptions* options) {
  lane->add_option("--docs", options->corpus.documents, "Documents")->check(CLI::PositiveNumber)->capture_default_str();
  AddReportOptions(lane, options);
  AddCorpusOptions(lane, &options->corpus);
}

// Of lanes that measure one store.
void AddFormOptions(CLI::App* lane, LaneOptions* options) {
  lane->add_flag("--keep", options->keep,
                 "Use the store that is in the directory, if there is one, and leave it there");
  lane->add_option("--segments", options->segments, "Segments")->check(CLI::PositiveNumber)->capture_default_str();
  lane->add_option("--deleted", options->deleted, "Percent of the documents that are then deleted")
      ->check(CLI::Range(0, 99))
      ->capture_default_str();
  lane->add_flag("--array", options->array, "Segments loaded instead of mapped");
  lane->add_option("--shape", options->shape, "Only this query shape");
}

int Run(int argc, char** argv) {
  CLI::App app("Benchmarks of Ashlar", "ashlar-bench");
  app.require_subcommand(1);
  std::function<absl::Status()> run;
  LaneOptions options;
  options.corpus.documents = 100'000;
  options.directory = "ashlar-bench-store";

  CLI::App* zipf = app.add_subcommand("zipf", "Print the zipf corpus as JSON Lines");
  zipf->add_option("N", options.corpus.documents, "Documents")->required();
  zipf->add_option("--start", options.corpus.first_id, "Number of the first id")->capture_default_str();
  AddCorpusOptions(zipf, &options.corpus);
  zipf->callback([&] { run = [&] { return PrintZipf(options.corpus); }; });

  CLI::App* store = app.add_subcommand("store", "Write, flush, merge, open, query: the path that a service runs");
  AddLaneOptions(store, &options);
  store->callback([&] { run = [&] { return RunStoreLane(options); }; });

  CLI::App* traversal =
      app.add_subcommand("traversal", "Every traversal on every query shape, and the choice between them");
  AddLaneOptions(traversal, &options);
  AddFormOptions(traversal, &options);
  traversal->add_flag("--trace-allocations", options.trace_allocations,
                      "Write the calls that allocate, of one search a shape, to standard error");
  traversal->add_option("--random", options.random, "So many random queries more")->capture_default_str();
  traversal->callback([&] { run = [&] { return RunTraversalLane(options); }; });

  CLI::App* concurrency = app.add_subcommand("concurrency", "Callers on one snapshot, alone and beside a writer");
  AddLaneOptions(concurrency, &options);
  AddFormOptions(concurrency, &options);
  concurrency->add_option("--callers", options.callers, "Numbers of callers; the first one is what others are beside")
      ->check(CLI::PositiveNumber);
  concurrency->add_option("--seconds", options.seconds, "Of an arm in each of five rounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  concurrency->callback([&] { run = [&] { return RunConcurrencyLane(options); }; });

  CLI::App* prune =
      app.add_subcommand("prune", "What pruning leaves out, by lengths, deleted share, filter, page, words");
  AddLaneOptions(prune, &options);
  prune->add_option("--shape", options.shape, "Only this query shape");
  prune->callback([&] { run = [&] { return RunPruneLane(options); }; });

  CLI::App* scale = app.add_subcommand("scale", "Building, memory, bytes and queries as the store grows");
  AddLaneOptions(scale, &options);
  scale->add_option("--sizes", options.sizes, "Numbers of documents, ascending; 10000000 takes minutes")
      ->check(CLI::PositiveNumber);
  scale->callback([&] { run = [&] { return RunScaleLane(options); }; });

  CLI::App* text = app.add_subcommand("text", "Queries by class over a corpus of JSON Lines");
  AddReportOptions(text, &options);
  text->add_option("--corpus", options.corpus_file, "JSON Lines of {id, title, body}, plain or gzip")
      ->required()
      ->check(CLI::ExistingFile);
  text->add_option("--queries", options.queries_file, "JSON Lines of {query, tags: [kind, class]}")
      ->required()
      ->check(CLI::ExistingFile);
  text->add_option("--per-class", options.per_class, "So many queries of a class at most; 0: all")
      ->capture_default_str();
  text->add_flag("--peers", options.peers, "The same through SQLite FTS5 and Xapian, where they were found");
  text->callback([&] { run = [&] { return RunTextLane(options); }; });

  CLI::App* commit = app.add_subcommand("commit", "Durable small batches after a bulk load");
  AddLaneOptions(commit, &options);
  commit->add_option("--batches", options.batches, "Documents of a batch")->check(CLI::PositiveNumber);
  commit->add_option("--writers", options.writers, "Threads that write")->check(CLI::PositiveNumber);
  commit->add_option("--commits", options.commits, "Commits of an arm in all its rounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  commit->add_option("--rounds", options.rounds, "Times that all arms take their turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  commit->add_flag("--peers", options.peers, "The same through SQLite FTS5, Xapian, RocksDB, LevelDB and LMDB");
  commit->add_option("--peer", options.peer_names, "With --peers: only these")
      ->check(CLI::IsMember({"sqlite", "xapian", "rocksdb", "leveldb", "lmdb"}));
  commit->callback([&] { run = [&] { return RunCommitLane(options); }; });

  CLI::App* ingest = app.add_subcommand("ingest", "Bulk indexing");
  AddLaneOptions(ingest, &options);
  ingest->add_option("--corpus", options.corpus_file, "JSON Lines of {id, title, body} instead of the zipf corpus")
      ->check(CLI::ExistingFile);
  ingest->add_option("--rounds", options.rounds, "Times that all arms take their turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  ingest->add_flag("--peers", options.peers, "The same through SQLite FTS5 and Xapian");
  ingest->callback([&] { run = [&] { return RunIngestLane(options); }; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "ashlar-bench: %s\n", std::string(ashlar::FromAbsl(status.message())).c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ashlar-bench: %s\n", error.what());
    return 1;
  }
}
