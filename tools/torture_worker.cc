// torture-worker: the processes that tools/torture starts, kills and compares. What a store holds after batch n follows from
// the seed and n alone, so every process can compute what every other one must see.
//
//   writer DIR   opens or makes the store, proves that it holds what it must, writes batches, flushes, merges, reopens
//   reader DIR   follows a writer, and compares every snapshot's answers with the oracle's, to the bit
//   settle DIR   one more batch; then no file is there that the store does not name, and the size is within its bound
//   full-disk DIR   fills the file system that DIR is on, again and again, in one process
//   killed N COMMAND...   runs one of the above and kills it at its N-th system call
//
// Exit code 0: all as it must be; 1: not, with a line on standard error; 2: bad usage; 137: `killed` has killed.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ashlar/ashlar.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/testing/oracle.h"

namespace ashlar::tools {
namespace {

using ashlar::testing::Oracle;
using ashlar::testing::OracleResult;

constexpr int kExitKilled = 137;
constexpr const char* kStateKey = "state";  // the document that says how many batches there are
constexpr const char* kWords[] = {"stone", "wall",  "arch",   "granite", "marble", "running", "runs",   "the",
                                  "and",   "lime",  "mortar", "slate",   "chalk",  "basalt",  "hammer", "chisel",
                                  "quoin", "lintel", "vault", "pier",    "corbel", "plinth",  "gable",  "tuff"};

struct Arguments {
  std::string directory;
  uint64_t seed = 1;
  Durability durability = Durability::kSync;
  uint64_t batches = 50;
  uint64_t acknowledged = 0;  // what the killed writers had said
  uint64_t flushed = 0;
  uint64_t snapshots = 100;
  Scheduler scheduler = Scheduler::kCooperative;
  bool big = false;  // documents of some 20 KB, so that a flush takes many writes
};

absl::Status Wrong(std::string_view what) { return Internal(what); }

// A line on standard output, in one write, so that a kill leaves no half of one.
absl::Status Say(std::string_view what, uint64_t number) {
  const std::string line = absl::StrCat(ToAbsl(what), " ", number, "\n");
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return Internal("standard output is closed");
  return absl::OkStatus();
}

// ---- What is written: everything follows from the seed and the number of the batch.

class Script {
 public:
  Script(uint64_t seed, bool big) : seed_(seed), big_(big) {}

  static Schema TheSchema() {
    Schema schema;
    schema.key = "id";
    schema.default_group = {"title", "body"};
    schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                     {"title", FieldType::kText, true, true, false, {}},
                     {"body", FieldType::kText, true, true, false, {}},
                     {"batch", FieldType::kInt64, true, false, true, {}}};
    return schema;
  }
  WriteBatch Batch(uint64_t n) const {
    Prng prng = PrngOf(n, 1);
    WriteBatch batch;
    batch.Put(StateDocument(n));
    for (uint64_t left = 1 + prng.Below(8); left > 0; --left) {
      std::string key = RandomKey(&prng);
      if (prng.OneIn(5))
        batch.Delete(std::move(key));
      else
        batch.Put(RandomDocument(std::move(key), n, &prng));
    }
    return batch;
  }
  enum class Next { kBatch, kFlush, kMerge, kReopen };
  Next After(uint64_t n) const {
    Prng prng = PrngOf(n, 2);
    if (prng.OneIn(10)) return Next::kFlush;
    if (prng.OneIn(30)) return Next::kMerge;
    return prng.OneIn(40) ? Next::kReopen : Next::kBatch;
  }
  static Query RandomQuery(Prng* prng) {
    Query query;
    for (uint64_t left = 1 + prng->Below(4); left > 0; --left) {
      Clause clause;
      clause.text = RandomWord(prng);
      const uint64_t occur = query.clauses.empty() ? 0 : prng->Below(6);
      clause.occur = occur == 4 ? Occur::kMust : occur == 5 ? Occur::kMustNot : Occur::kShould;
      if (prng->OneIn(4)) clause.field = prng->OneIn(2) ? "title" : "body";
      if (prng->OneIn(4)) clause.boost = 0.5 + prng->Uniform();
      query.clauses.push_back(std::move(clause));
    }
    return query;
  }
  std::string RandomKey(Prng* prng) const { return absl::StrCat("k", prng->Below(big_ ? 60 : 300)); }
  Prng PrngOf(uint64_t n, uint64_t purpose) const {
    Prng mixed(seed_ * 0x9E3779B97F4A7C15ull + n * 4 + purpose);
    return Prng(mixed.Next());
  }

 private:
  static Document StateDocument(uint64_t n) {
    Document document;
    document.Add("id", kStateKey).Add("title", "state").Add("batch", static_cast<int64_t>(n));
    return document;
  }
  static std::string RandomWord(Prng* prng) {
    return kWords[std::min(prng->Below(std::size(kWords)), prng->Below(std::size(kWords)))];
  }
  Document RandomDocument(std::string key, uint64_t n, Prng* prng) const {
    std::string body;
    for (uint64_t left = big_ ? 3000 : 2 + prng->Below(30); left > 0; --left) body += RandomWord(prng) + " ";
    Document document;
    document.Add("id", std::move(key)).Add("title", RandomWord(prng) + " " + RandomWord(prng)).Add("body", std::move(body));
    document.Add("batch", static_cast<int64_t>(n));
    return document;
  }

  const uint64_t seed_;
  const bool big_;
};

// The oracle after batch n. Going on is cheap, going back begins at the beginning.
class History {
 public:
  explicit History(const Script& script) : script_(script) {}
  const Oracle& At(uint64_t n) {
    if (n < at_) {
      oracle_ = Oracle(Script::TheSchema());
      at_ = 0;
    }
    while (at_ < n)
      if (!oracle_.Apply(script_.Batch(++at_)).ok()) std::abort();  // the script's batches are valid
    return oracle_;
  }

 private:
  const Script& script_;
  Oracle oracle_{Script::TheSchema()};
  uint64_t at_ = 0;
};

// ---- Comparing.

// How many batches a snapshot holds, as its state document says.
absl::StatusOr<uint64_t> BatchesOf(const Snapshot& snapshot) {
  const absl::StatusOr<StoredDocument> state = snapshot.Get(kStateKey);
  if (absl::IsNotFound(state.status())) return 0;
  if (!state.ok()) return state.status();
  return static_cast<uint64_t>(std::get<int64_t>(*state->document.Find("batch")));
}

absl::Status CompareQuery(const Store& store, const Snapshot& snapshot, const Oracle& oracle, const Query& query) {
  SearchOptions options;
  options.k = 20;
  const OracleResult wanted = oracle.Search(query, options);
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery prepared, store.Prepare(query));
  ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, snapshot.Search(prepared, options));
  if (result.total_is_exact && result.total != wanted.total)
    return Wrong(absl::StrCat("a query has ", result.total, " matches instead of ", wanted.total));
  std::vector<Handle> handles;
  for (const Hit& hit : result.hits) handles.push_back(hit.handle);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<std::string> keys, snapshot.FetchKeys(handles));
  if (keys.size() != wanted.hits.size())
    return Wrong(absl::StrCat("a query has ", keys.size(), " hits instead of ", wanted.hits.size()));
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string expected = oracle.GetById(wanted.hits[i].id)->key;
    if (keys[i] != expected) return Wrong(absl::StrCat("hit ", i, " is ", keys[i], " instead of ", expected));
    if (std::bit_cast<uint64_t>(result.hits[i].score) != std::bit_cast<uint64_t>(wanted.hits[i].score))
      return Wrong(absl::StrCat("hit ", i, ", ", expected, ", has another score"));
  }
  return absl::OkStatus();
}

absl::Status CompareGet(const Snapshot& snapshot, const Oracle& oracle, const std::string& key) {
  const std::optional<StoredDocument> wanted = oracle.Get(key);
  const absl::StatusOr<StoredDocument> found = snapshot.Get(key);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  if (found.ok() != wanted.has_value())
    return Wrong(absl::StrCat(key, found.ok() ? " is there and should not be" : " is missing"));
  if (found.ok() && found->document != wanted->document) return Wrong(key + " has another content");
  return absl::OkStatus();
}

// `answers` queries and as many look-ups.
absl::Status CompareSome(const Store& store, const Snapshot& snapshot, const Oracle& oracle, const Script& script,
                         Prng* prng, int answers) {
  if (snapshot.document_count() != oracle.document_count())
    return Wrong(absl::StrCat(snapshot.document_count(), " documents instead of ", oracle.document_count()));
  for (int i = 0; i < answers; ++i) {
    ASHLAR_RETURN_IF_ERROR(CompareQuery(store, snapshot, oracle, Script::RandomQuery(prng)));
    ASHLAR_RETURN_IF_ERROR(CompareGet(snapshot, oracle, script.RandomKey(prng)));
  }
  return absl::OkStatus();
}

absl::Status CompareAll(const Store& store, const Snapshot& snapshot, const Oracle& oracle, const Script& script) {
  uint64_t documents = 0;
  absl::Status wrong;
  ASHLAR_RETURN_IF_ERROR(snapshot.Scan(Snapshot::Order::kKey, [&](const StoredDocument& stored) {
    ++documents;
    const std::optional<StoredDocument> wanted = oracle.Get(stored.key);
    if (!wanted.has_value()) wrong = Wrong(stored.key + " is there and should not be");
    if (wanted.has_value() && wanted->document != stored.document) wrong = Wrong(stored.key + " has another content");
    return wrong.ok();
  }));
  ASHLAR_RETURN_IF_ERROR(wrong);
  if (documents != oracle.document_count())
    return Wrong(absl::StrCat(documents, " documents instead of ", oracle.document_count()));
  Prng prng(documents);
  return CompareSome(store, snapshot, oracle, script, &prng, 3);
}

absl::Status CheckFindings(const Store& store) {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<Finding> findings, store.Check());
  return findings.empty() ? absl::OkStatus() : Wrong("check: " + findings.front().message);
}

// ---- The writer.

Options WriterOptions(const Arguments& arguments) {
  Options options;
  options.create_if_missing = true;
  options.durability = arguments.durability;
  options.scheduler = arguments.scheduler;
  options.interval_ms = 5;
  options.overlay_bytes_max = 256 * 1024;  // flushed and merged by itself now and then
  options.journal_file_bytes_min = 16 * 1024;
  options.merge_factor = 4;
  return options;
}

class Writer {
 public:
  explicit Writer(const Arguments& arguments)
      : arguments_(arguments), script_(arguments.seed, arguments.big), history_(script_) {}

  absl::Status Run() {
    ASHLAR_RETURN_IF_ERROR(Open(arguments_.flushed, arguments_.acknowledged));
    for (uint64_t left = arguments_.batches; left > 0; --left) {
      ASHLAR_RETURN_IF_ERROR(Write());
      ASHLAR_RETURN_IF_ERROR(Upkeep(script_.After(batches_)));
    }
    ASHLAR_RETURN_IF_ERROR(store_->Close());
    return Say("flushed", batches_);
  }

 private:
  // `flushed` and `acknowledged`: what earlier writers have said. At most one batch more may be there, the one that was
  // on its way.
  absl::Status Open(uint64_t flushed, uint64_t acknowledged) {
    const Schema schema = Script::TheSchema();
    ASHLAR_ASSIGN_OR_RETURN(store_, Store::Open(arguments_.directory, WriterOptions(arguments_), &schema));
    const Snapshot snapshot = store_->TakeSnapshot();
    ASHLAR_ASSIGN_OR_RETURN(batches_, BatchesOf(snapshot));
    const uint64_t promised = arguments_.durability == Durability::kOff ? flushed : acknowledged;
    if (batches_ < promised)
      return Wrong(absl::StrCat(promised, " batches were acknowledged and ", batches_, " are there"));
    if (batches_ > acknowledged + 1)
      return Wrong(absl::StrCat(acknowledged, " batches were acknowledged, and already ", batches_, " are there"));
    if (store_->GetStats().watermark.value_or("0") != absl::StrCat(batches_))
      return Wrong("the watermark is not that of the last batch");
    ASHLAR_RETURN_IF_ERROR(CompareAll(*store_, snapshot, history_.At(batches_), script_));
    ASHLAR_RETURN_IF_ERROR(CheckFindings(*store_));
    return Say("opened", batches_);
  }
  absl::Status Write() {
    WriteOptions options;
    options.watermark = absl::StrCat(batches_ + 1);
    ASHLAR_RETURN_IF_ERROR(store_->Write(script_.Batch(batches_ + 1), options).status());
    ++batches_;
    return Say("acked", batches_);
  }
  absl::Status Upkeep(Script::Next next) {
    switch (next) {
      case Script::Next::kBatch:
        return absl::OkStatus();
      case Script::Next::kFlush:
        ASHLAR_RETURN_IF_ERROR(store_->Flush());
        break;
      case Script::Next::kMerge:
        ASHLAR_RETURN_IF_ERROR(store_->Merge());
        break;
      case Script::Next::kReopen:
        ASHLAR_RETURN_IF_ERROR(store_->Close());
        store_.reset();
        ASHLAR_RETURN_IF_ERROR(Say("flushed", batches_));
        return Open(batches_, batches_);
    }
    return Say("flushed", batches_);
  }

  const Arguments arguments_;
  const Script script_;
  History history_;
  std::unique_ptr<Store> store_;
  uint64_t batches_ = 0;
};

// ---- The reader.

class Reader {
 public:
  explicit Reader(const Arguments& arguments)
      : arguments_(arguments), script_(arguments.seed, arguments.big), history_(script_), prng_(arguments.seed + ::getpid()) {}

  absl::Status Run() {
    while (snapshots_ < arguments_.snapshots) {
      ASHLAR_RETURN_IF_ERROR(Follow());
      if (store_ == nullptr) continue;
      ASHLAR_RETURN_IF_ERROR(Compare());
      if (prng_.OneIn(20)) store_.reset();
    }
    ASHLAR_RETURN_IF_ERROR(Say("snapshots", snapshots_));
    ASHLAR_RETURN_IF_ERROR(Say("answers", answers_));
    return Say("retries", retries_);
  }

 private:
  static constexpr int kAnswers = 3;          // a comparison
  static constexpr int kRetriesMax = 100000;  // in a row

  // Opens or refreshes. A writer that publishes at that very moment makes it Unavailable, and another try works.
  absl::Status Follow() {
    absl::Status status;
    if (store_ == nullptr) {
      Options options;
      options.read_only = true;
      options.open_mode = prng_.OneIn(3) ? OpenMode::kArray : OpenMode::kMapped;
      absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(arguments_.directory, options);
      if (store.ok()) store_ = *std::move(store);
      status = store.status();
    } else {
      status = store_->Refresh().status();
    }
    if (status.ok()) {
      retries_in_a_row_ = 0;
      return status;
    }
    ++retries_;
    const bool may_retry = absl::IsUnavailable(status) || absl::IsAborted(status);
    return may_retry && ++retries_in_a_row_ < kRetriesMax ? absl::OkStatus() : status;
  }

  absl::Status Compare() {
    Held now{store_->TakeSnapshot(), 0};
    ASHLAR_ASSIGN_OR_RETURN(now.batches, BatchesOf(now.snapshot));
    if (now.batches < last_)
      return Wrong(absl::StrCat("a snapshot of ", now.batches, " batches after one of ", last_));
    const bool is_new = now.batches > last_;
    last_ = now.batches;
    ASHLAR_RETURN_IF_ERROR(CompareSome(*store_, now.snapshot, history_.At(now.batches), script_, &prng_, kAnswers));
    answers_ += 2 * kAnswers + 1;
    // One that is held answers the same, whatever the writer has merged and removed since.
    if (held_.has_value()) {
      ASHLAR_RETURN_IF_ERROR(CompareSome(*store_, held_->first, held_->second, script_, &prng_, 1));
      answers_ += 3;
    }
    if (!is_new) return absl::OkStatus();
    ++snapshots_;
    if (!held_.has_value() || prng_.OneIn(10)) held_.emplace(now.snapshot, history_.At(now.batches));
    return absl::OkStatus();
  }

  struct Held {
    Snapshot snapshot;
    uint64_t batches = 0;
  };
  const Arguments arguments_;
  const Script script_;
  History history_;
  Prng prng_;
  std::unique_ptr<Store> store_;
  std::optional<std::pair<Snapshot, Oracle>> held_;
  uint64_t last_ = 0, snapshots_ = 0, answers_ = 0, retries_ = 0;
  int retries_in_a_row_ = 0;
};

// ---- Files and sizes after many kills.

uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) bytes += entry.file_size();
  return bytes;
}

// A store after kills holds at most so much more than a fresh one of the same documents: dead documents that no merge
// has dropped yet, a journal not flushed yet, catalog, lock and status page.
constexpr uint64_t kBytesFactor = 3, kBytesConstant = uint64_t{1} << 20;

absl::Status Settle(const Arguments& arguments) {
  Arguments one = arguments;
  one.batches = 1;
  ASHLAR_RETURN_IF_ERROR(Writer(one).Run());
  Options reading;
  reading.read_only = true;
  ASHLAR_ASSIGN_OR_RETURN(const auto store, Store::Open(arguments.directory, reading));
  ASHLAR_RETURN_IF_ERROR(CheckFindings(*store));
  std::map<std::string, uint64_t> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(arguments.directory))
    ++kinds[entry.path().extension().string()];
  const Stats stats = store->GetStats();
  if (kinds[".seg"] != stats.segments.size())
    return Wrong(absl::StrCat(kinds[".seg"], " segment files for ", stats.segments.size(), " segments"));
  if (kinds[".new"] != 0) return Wrong("an unfinished file was left");

  const std::string fresh = arguments.directory + ".fresh";
  std::filesystem::remove_all(fresh);
  ASHLAR_ASSIGN_OR_RETURN(const auto copy, Store::Create(fresh, Script::TheSchema()));
  WriteBatch batch;
  ASHLAR_RETURN_IF_ERROR(store->TakeSnapshot().Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
    batch.Put(stored.document);
    return true;
  }));
  ASHLAR_RETURN_IF_ERROR(copy->Write(batch).status());
  ASHLAR_RETURN_IF_ERROR(copy->Flush());
  ASHLAR_RETURN_IF_ERROR(copy->Close());
  const uint64_t here = BytesIn(arguments.directory), there = BytesIn(fresh);
  std::filesystem::remove_all(fresh);
  ASHLAR_RETURN_IF_ERROR(Say("bytes", here));
  ASHLAR_RETURN_IF_ERROR(Say("fresh", there));
  if (here > kBytesFactor * there + kBytesConstant)
    return Wrong(absl::StrCat(here, " bytes, and a fresh store of the same documents has ", there));
  return absl::OkStatus();
}

// ---- A full disk.

class FullDisk {
 public:
  explicit FullDisk(const Arguments& arguments)
      : arguments_(arguments), script_(arguments.seed, /*big=*/true), history_(script_),
        ballast_((std::filesystem::path(arguments.directory).parent_path() / "ballast").string()) {}

  absl::Status Run() {
    Options options = WriterOptions(arguments_);
    options.overlay_bytes_max = uint64_t{64} << 20;  // no flush but ours
    options.merge_factor = 0;
    const Schema schema = Script::TheSchema();
    ASHLAR_ASSIGN_OR_RETURN(store_, Store::Open(arguments_.directory, options, &schema));
    for (uint64_t round = 0; round < arguments_.batches; ++round) {
      ASHLAR_RETURN_IF_ERROR(Annotate(Batches(), "batches"));
      ASHLAR_RETURN_IF_ERROR(Annotate(Refused(round, [this] { return store_->Flush(); }), "flush"));
      ASHLAR_RETURN_IF_ERROR(Write());
      ASHLAR_RETURN_IF_ERROR(store_->Flush());
      ASHLAR_RETURN_IF_ERROR(Annotate(Refused(round, [this] { return store_->Merge(); }), "merge"));
    }
    ASHLAR_RETURN_IF_ERROR(store_->Close());
    ASHLAR_ASSIGN_OR_RETURN(store_, Store::Open(arguments_.directory, options));
    ASHLAR_RETURN_IF_ERROR(Compare());
    ASHLAR_RETURN_IF_ERROR(CheckFindings(*store_));
    ASHLAR_RETURN_IF_ERROR(store_->Close());
    ASHLAR_RETURN_IF_ERROR(Say("batches", batches_));
    return Say("refused", refused_);
  }

 private:
  // Takes all room but `keep` bytes.
  void Fill(uint64_t keep) {
    const uint64_t room = std::filesystem::space(arguments_.directory).available;
    std::ofstream file(ballast_, std::ios::binary | std::ios::trunc);
    const std::string block(4096, 'b');
    for (uint64_t written = 0; written + keep < room && file; written += block.size()) file << block;
  }
  void MakeRoom() { std::filesystem::remove(ballast_); }

  absl::Status Write() {
    WriteOptions options;
    options.watermark = absl::StrCat(batches_ + 1);
    ASHLAR_RETURN_IF_ERROR(store_->Write(script_.Batch(batches_ + 1), options).status());
    ++batches_;
    return absl::OkStatus();
  }
  absl::Status Compare() {
    const Snapshot snapshot = store_->TakeSnapshot();
    ASHLAR_ASSIGN_OR_RETURN(const uint64_t batches, BatchesOf(snapshot));
    if (batches != batches_) return Wrong(absl::StrCat(batches, " batches instead of ", batches_));
    return CompareAll(*store_, snapshot, history_.At(batches_), script_);
  }
  absl::Status ExpectState(StoreState state) const {
    const Stats stats = store_->GetStats();
    if (stats.state == state) return absl::OkStatus();
    return Wrong(absl::StrCat("the store is ", ToAbsl(StoreStateName(stats.state)), " (", stats.state_cause, ") instead of ",
                              ToAbsl(StoreStateName(state))));
  }
  absl::Status ExpectNoSpace(const absl::Status& status) {
    if (status.ok()) return Wrong("it worked without room");
    if (!absl::IsResourceExhausted(status)) return Annotate(status, "not a no-space error");
    ++refused_;
    ASHLAR_RETURN_IF_ERROR(ExpectState(StoreState::kNoSpace));
    return Compare();
  }

  // Batches until there is no room; then room, and the next one works.
  absl::Status Batches() {
    Fill(512 * 1024);
    absl::Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) status = Write();
    ASHLAR_RETURN_IF_ERROR(ExpectNoSpace(status));
    MakeRoom();
    ASHLAR_RETURN_IF_ERROR(Write());
    ASHLAR_RETURN_IF_ERROR(ExpectState(StoreState::kHealthy));
    return Compare();
  }
  // A flush or a merge that finds less and less room until it is refused; then room, and it works.
  template <class Operation>
  absl::Status Refused(uint64_t round, Operation operation) {
    Fill(4096 * (round * 7 % 20));
    ASHLAR_RETURN_IF_ERROR(ExpectNoSpace(operation()));
    MakeRoom();
    ASHLAR_RETURN_IF_ERROR(operation());
    ASHLAR_RETURN_IF_ERROR(Write());
    ASHLAR_RETURN_IF_ERROR(ExpectState(StoreState::kHealthy));
    return Compare();
  }

  const Arguments arguments_;
  const Script script_;
  History history_;
  const std::string ballast_;
  std::unique_ptr<Store> store_;
  uint64_t batches_ = 0, refused_ = 0;
};

// ---- Killing at a system call.

// Each call stops its thread twice, at its entry and at its exit; all threads count. Of one thread the kill comes at an entry, so
// that the call is not made any more; of two, who stops then is the system's choice.
int KillAtCall(uint64_t calls, char** command) {
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    ::raise(SIGSTOP);
    ::execv("/proc/self/exe", command);
    ::_exit(1);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 1;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE);
  uint64_t stops = 0;
  pid_t thread = child;
  long pass_on = 0;  // NOLINT: ptrace's type
  for (;;) {
    // A thread that was to go on may have died with the others.
    if (thread != 0 && ::ptrace(PTRACE_SYSCALL, thread, nullptr, pass_on) != 0 && errno != ESRCH) return 1;
    thread = ::waitpid(-1, &status, __WALL);
    if (thread < 0) return 1;
    if (!WIFSTOPPED(status) && thread != child) {
      thread = 0;
      continue;
    }
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "torture-worker: ended by signal %d\n", WTERMSIG(status));
      return 1;
    }
    const bool at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    pass_on = at_call || WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
    if (!at_call || ++stops < 2 * calls + 1) continue;
    ::kill(child, SIGKILL);
    while (::waitpid(-1, &status, __WALL) > 0) {
    }
    return kExitKilled;
  }
}

// ---- The command line.

bool ParseArguments(int argc, char** argv, Arguments* arguments) {
  if (argc < 3) return false;
  arguments->directory = argv[2];
  const std::map<std::string, uint64_t*> numbers = {{"--seed", &arguments->seed},
                                                    {"--batches", &arguments->batches},
                                                    {"--acked", &arguments->acknowledged},
                                                    {"--flushed", &arguments->flushed},
                                                    {"--snapshots", &arguments->snapshots}};
  const std::map<std::string, Durability> modes = {{"sync", Durability::kSync},
                                                   {"interval", Durability::kInterval},
                                                   {"os", Durability::kOs},
                                                   {"off", Durability::kOff}};
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--big") {
      arguments->big = true;
      continue;
    }
    if (name == "--background") {
      arguments->scheduler = Scheduler::kBackground;
      continue;
    }
    if (++i == argc) return false;
    if (const auto number = numbers.find(name); number != numbers.end()) {
      if (!absl::SimpleAtoi(argv[i], number->second)) return false;
    } else if (const auto mode = modes.find(argv[i]); name == "--mode" && mode != modes.end()) {
      arguments->durability = mode->second;
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  uint64_t calls = 0;
  if (command == "killed" && argc > 3 && absl::SimpleAtoi(argv[2], &calls)) {
    argv[2] = argv[0];
    return KillAtCall(calls, argv + 2);
  }
  Arguments arguments;
  absl::Status status;
  if (!ParseArguments(argc, argv, &arguments)) {
    std::fprintf(stderr, "usage: torture-worker writer|reader|settle|full-disk DIR [--seed S] [--mode M] ..., or killed N ...\n");
    return 2;
  }
  if (command == "writer") {
    status = Writer(arguments).Run();
  } else if (command == "reader") {
    status = Reader(arguments).Run();
  } else if (command == "settle") {
    status = Settle(arguments);
  } else if (command == "full-disk") {
    status = FullDisk(arguments).Run();
  } else {
    return 2;
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "torture-worker %s: %s\n", command.c_str(), status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace ashlar::tools

int main(int argc, char** argv) { return ashlar::tools::Main(argc, argv); }
