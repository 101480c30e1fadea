// Power loss under a store whose catalog is LMDB. LMDB does its own I/O, so it can't stand on the simulated disk.
// Instead all writes, syncs and renames of a few workloads, LMDB's and everybody's, are recorded in one order
// (write_trace.h), and cut at every place: whatever of the un-synced part is there, the store opens, its catalog is of
// the last committed generation or of the one that was being committed, no file that it needs is gone, every
// acknowledged batch is there, answers are the oracle's, the check is clean and a write works.
//
// ASHLAR_TRACE_RANDOM=N in the environment adds N random subsets at every place.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "ashlar/store.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/catalog/lmdb_walker.h"
#include "src/testing/oracle.h"
#include "tests/catalog/catalog_harness.h"
#include "tests/catalog/write_trace.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

Schema TraceSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

// What was promised when an operation of the trace was made.
struct Known {
  bool created = false;  // Open has returned
  size_t attempted = 0;  // batches
  size_t durable = 0;    // batches, by promise
  size_t reopened = 0;   // times, after a process had died
  bool operator==(const Known&) const = default;
};

bool HoldsExactly(const std::map<std::string, Document>& found, const Oracle& oracle) {
  const auto keys = oracle.Keys();
  if (keys.size() != found.size()) return false;
  return std::all_of(keys.begin(), keys.end(), [&](const auto& key) {
    const auto one = found.find(key.first);
    return one != found.end() && one->second == oracle.Get(key.first)->document;
  });
}

absl::StatusOr<std::map<std::string, Document>> ReadAll(const Store& store) {
  std::map<std::string, Document> found;
  ASHLAR_RETURN_IF_ERROR(store.TakeSnapshot().Scan(Snapshot::Order::kKey, [&](const StoredDocument& stored) {
    found[stored.key] = stored.document;
    return true;
  }));
  return found;
}

// One run of a workload. Everything it does must succeed.
class Workload {
 public:
  Workload(std::string directory, Durability durability, const Oracle& oracle = Oracle(TraceSchema()))
      : directory_(std::move(directory)), oracle_(oracle) {
    options_.durability = durability;
    options_.create_if_missing = true;
    options_.merge_factor = 0;
    options_.scheduler = Scheduler::kCooperative;  // one order of system calls
    options_.journal_file_bytes_min = 4096;
    states_.push_back(oracle_);
    Mark();
  }
  void Open() {
    const Schema schema = TraceSchema();
    ASSERT_OK_AND_ASSIGN(store_, Store::Open(directory_, options_, &schema));
    known_.created = true;
    Mark();
  }
  void Write(const WriteBatch& batch) {
    ASSERT_OK(oracle_.Apply(batch));
    states_.push_back(oracle_);
    ++known_.attempted;
    Mark();
    ASSERT_OK(store_->Write(batch));
    if (options_.durability == Durability::kSync) known_.durable = known_.attempted;
    Mark();
  }
  void Put(int key, int version) {
    WriteBatch batch;
    batch.Put(Doc(key, version));
    Write(batch);
  }
  void Delete(int key) {
    WriteBatch batch;
    batch.Delete(absl::StrCat("k", key));
    Write(batch);
  }
  void Flush() { Durable(store_->Flush()); }
  void Merge() { Durable(store_->Merge()); }
  void Purge() { Durable(store_->Purge()); }
  void Sync() { Durable(store_->Sync()); }
  absl::Status TryFlush() { return store_->Flush(); }
  // The process ends; the page cache stays.
  void Die() { store_.reset(); }
  // Not OK: the store does not open, or has other documents than it was given.
  absl::Status OpenAgain() {
    ++known_.reopened;
    ASHLAR_ASSIGN_OR_RETURN(store_, Store::Open(directory_, options_));
    Mark();
    ASHLAR_ASSIGN_OR_RETURN(const auto found, ReadAll(*store_));
    return HoldsExactly(found, oracle_) ? absl::OkStatus() : Internal("other documents than before");
  }
  void Close() {
    Durable(store_->Close());
    store_.reset();
  }
  void AddFields(const std::vector<Field>& fields) {
    oracle_.AddFields(fields);
    Durable(store_->AddFields(fields));
  }
  static Document Doc(int key, int version) {
    Document document;
    document.Add("id", absl::StrCat("k", key))
        .Add("title", absl::StrCat("stone ", version))
        .Add("body", absl::StrCat("wall of stone and lime ", version % 2 == 0 ? "even" : "odd"));
    return document;
  }

  const Options& options() const { return options_; }
  const std::vector<Oracle>& states() const { return states_; }   // after 0, 1, 2 ... batches
  const std::vector<Known>& known() const { return all_known_; }  // by mark

 private:
  void Durable(const absl::Status& status) {
    ASSERT_OK(status);
    known_.durable = known_.attempted;
    Mark();
  }
  void Mark() {
    MarkTrace(all_known_.size());
    all_known_.push_back(known_);
  }

  const std::string directory_;
  Options options_;
  Oracle oracle_;
  std::vector<Oracle> states_;
  Known known_;
  std::vector<Known> all_known_;
  std::unique_ptr<Store> store_;
};

// ---- The workloads.

void CreatesAndReopens(Workload& w) {
  w.Open();
  w.Put(1, 1);
  w.Put(2, 2);
  w.Close();
  w.Open();
  w.Put(1, 3);
  w.Close();
}

void FlushesAndMerges(Workload& w) {
  w.Open();
  for (int round = 0; round < 3; ++round) {
    w.Put(round, round);
    w.Put(round + 1, 10 + round);
    w.Flush();
  }
  w.Delete(1);
  w.Put(2, 20);
  w.Flush();
  w.Merge();
  w.Put(7, 7);
  w.Close();
}

// Another catalog file takes the place of the first one, and of that one.
void Purges(Workload& w) {
  w.Open();
  w.Put(1, 1);
  w.Put(2, 2);
  w.Flush();
  w.Delete(1);
  w.Purge();
  w.Put(3, 3);
  w.Purge();
  w.Put(2, 4);
  w.Flush();
  w.Close();
}

// A value of several pages, so that LMDB writes runs of overflow pages and frees them again.
void AddsManyFields(Workload& w) {
  w.Open();
  w.Put(1, 1);
  std::vector<Field> fields;
  for (int i = 0; i < 120; ++i)
    fields.push_back({absl::StrCat("a_field_with_a_name_of_some_length_", i), FieldType::kText, true, true, false, {}});
  w.AddFields(fields);
  w.Put(2, 2);
  w.Flush();
  w.AddFields({{"last", FieldType::kKeyword, true, false, true, {}}});
  w.Put(1, 3);
  w.Merge();
  w.Close();
}

void ManyCommits(Workload& w) {
  w.Open();
  for (int i = 0; i < 12; ++i) {
    w.Put(i % 3, i);
    w.Flush();
  }
  w.Close();
}

struct Named {
  const char* name;
  void (*script)(Workload&);
  Durability durability;
};
const Named kWorkloads[] = {
    {"creates_sync", CreatesAndReopens, Durability::kSync},
    {"merges_sync", FlushesAndMerges, Durability::kSync},
    {"merges_os", FlushesAndMerges, Durability::kOs},
    {"merges_off", FlushesAndMerges, Durability::kOff},
    {"fields_sync", AddsManyFields, Durability::kSync},
    {"commits_sync", ManyCommits, Durability::kSync},
    {"purges_sync", Purges, Durability::kSync},
    {"purges_os", Purges, Durability::kOs},
};

// ---- What must hold after a crash. Each returns what is wrong, or nothing.

struct Expected {
  Known known;
  uint64_t generation = 0;  // the newest one that is durable; the next one may be there
};

std::string CheckCatalog(const std::string& directory, const Expected& expected) {
  const std::string path = directory + "/catalog.lmdb";
  const env::Env env = env::PosixEnv();
  const auto file = env.files->OpenForRead(path);
  if (absl::IsNotFound(file.status()) && !expected.known.created) return "";
  if (!file.ok()) return file.status().ToString();
  const auto content = catalog::WalkLmdb(**file, path);
  if (!content.ok()) return content.status().ToString();
  const uint64_t found = content->entries.empty() ? 0 : content->entries.back().generation;
  if (found == expected.generation || found == expected.generation + 1) return "";
  return absl::StrCat("the catalog is at generation ", found, ", ", expected.generation, " was committed");
}

std::string CheckQuery(const Store& store, const Snapshot& snapshot, const Oracle& oracle, const std::string& text) {
  const auto query = ParseQuery(text);
  const auto prepared = store.Prepare(*query);
  if (!prepared.ok()) return prepared.status().ToString();
  const auto result = snapshot.Search(*prepared);
  if (!result.ok()) return result.status().ToString();
  std::vector<Handle> handles;
  for (const Hit& hit : result->hits) handles.push_back(hit.handle);
  const auto keys = snapshot.FetchKeys(handles);
  if (!keys.ok()) return keys.status().ToString();
  const OracleResult wanted = oracle.Search(*query);
  bool same = wanted.hits.size() == keys->size() && wanted.total == result->total;
  for (size_t i = 0; same && i < keys->size(); ++i)
    same = (*keys)[i] == oracle.GetById(wanted.hits[i].id)->key &&
           std::bit_cast<uint64_t>(wanted.hits[i].score) == std::bit_cast<uint64_t>(result->hits[i].score);
  return same ? "" : absl::StrCat("other hits than the oracle's for ", text);
}

std::string CheckContent(const Store& store, const Known& known, const std::vector<Oracle>& states) {
  const Snapshot snapshot = store.TakeSnapshot();
  const auto found = ReadAll(store);
  if (!found.ok()) return found.status().ToString();
  size_t batches = known.attempted + 1;
  while (batches > 0 && !HoldsExactly(*found, states[batches - 1])) --batches;
  if (batches == 0) return "the documents are no prefix of the batches";
  if (--batches < known.durable) return absl::StrCat(known.durable, " batches were promised, ", batches, " are there");
  for (const char* text : {"stone even", "id:k1 +wall -odd"})
    if (std::string wrong = CheckQuery(store, snapshot, states[batches], text); !wrong.empty()) return wrong;
  const auto findings = store.Check();
  if (!findings.ok()) return findings.status().ToString();
  return findings->empty() ? "" : findings->front().message;
}

std::string CheckWrite(Store& store) {
  absl::Status status = store.Put(Workload::Doc(1000, 1)).status();
  if (status.ok()) status = store.Flush();
  if (status.ok()) status = store.TakeSnapshot().Get("k1000").status();
  if (status.ok()) status = store.Close();
  return status.ok() ? "" : status.ToString();
}

std::string CheckRecovery(const DiskImage& image, const std::string& root, const Options& options,
                          const Expected& expected, const std::vector<Oracle>& states) {
  image.WriteTo(root);
  const std::string directory = root + "/store";
  if (std::string wrong = CheckCatalog(directory, expected); !wrong.empty()) return wrong;
  Options opening = options;
  opening.create_if_missing = false;
  auto store = Store::Open(directory, opening);
  if (absl::IsNotFound(store.status()) && !expected.known.created) {
    // Nothing was promised yet, and making the store again works.
    const Schema schema = TraceSchema();
    store = Store::Open(directory, options, &schema);
  }
  if (!store.ok()) return store.status().ToString();
  if (std::string wrong = CheckContent(**store, expected.known, states); !wrong.empty()) return wrong;
  return CheckWrite(**store);
}

// ---- Cutting.

struct CutResult {
  size_t positions = 0;
  size_t states = 0;  // distinct
  std::string wrong;  // the first finding
};

bool IsCatalog(const Trace& trace, const TraceOp& op) {
  return op.file >= 0 && trace.names[static_cast<size_t>(op.file)].find("/catalog") != std::string::npos;
}

bool TakesTheCatalogsName(const TraceOp& op) {
  return op.kind == TraceOp::Kind::kRename && op.to.ends_with("/catalog.lmdb");
}

// Whether a catalog that was made by then has its name yet.
bool IsInTheMaking(const Trace& trace, size_t at, int file) {
  bool made = false;
  for (size_t i = 0; i < at; ++i) {
    const TraceOp& op = trace.ops[i];
    if (op.kind == TraceOp::Kind::kCreate && op.file == file) made = op.name.ends_with("/catalog-new.lmdb");
    if (TakesTheCatalogsName(op)) made = false;
  }
  return made;
}

// A commit writes its pages, syncs, writes its meta page behind the part that never changes, and syncs again.
bool IsMetaSync(const Trace& trace, size_t at) {
  constexpr uint64_t kMetaPages = 2 * 4096, kFromMapSize = 32;
  const TraceOp& sync = trace.ops[at];
  if (sync.kind != TraceOp::Kind::kSync || !IsCatalog(trace, sync) || IsInTheMaking(trace, at, sync.file)) return false;
  while (at-- > 0) {
    const TraceOp& op = trace.ops[at];
    if (op.kind == TraceOp::Kind::kWrite && op.file == sync.file)
      return op.offset < kMetaPages && op.offset % 4096 == kFromMapSize;
  }
  return false;
}

// 0: none.
uint64_t GenerationIn(const DiskImage& image, const std::string& root) {
  image.WriteTo(root);
  const std::string path = root + "/store/catalog.lmdb";
  const auto content = catalog::WalkLmdb(**env::PosixEnv().files->OpenForRead(path), path);
  return content.ok() && !content->entries.empty() ? content->entries.back().generation : 0;
}

// A purge's commit is the name of the file that it has made, once the directory is synced. The first catalog's is none.
bool IsReplacementSync(const Trace& trace, size_t at) {
  if (trace.ops[at].kind != TraceOp::Kind::kSyncDirectory) return false;
  while (at > 0 && trace.ops[at - 1].kind != TraceOp::Kind::kSyncDirectory && !TakesTheCatalogsName(trace.ops[at - 1]))
    --at;
  if (at == 0 || !TakesTheCatalogsName(trace.ops[at - 1])) return false;
  return std::any_of(trace.ops.begin(), trace.ops.begin() + static_cast<ptrdiff_t>(at) - 1, TakesTheCatalogsName);
}

CutResult CutEverywhere(const Trace& trace, const Workload& workload, const std::string& root, int random) {
  CutResult result;
  std::set<uint64_t> seen;
  CrashModel model(trace);
  size_t reopened = 0;
  Expected expected;
  expected.known = workload.known().front();
  // A catalog that was there before: its generation is that of its walked bytes.
  if (trace.before.files.contains("store/catalog.lmdb")) {
    expected.generation = GenerationIn(trace.before, root);
    expected.known.created = true;
  }
  do {
    if (model.position() > 0) {
      const TraceOp& op = trace.ops[model.position() - 1];
      if (op.kind == TraceOp::Kind::kMark) {
        const bool created = expected.known.created;
        expected.known = workload.known()[op.mark];
        expected.known.created |= created;
        if (expected.known.reopened > reopened) expected.generation = GenerationIn(model.Whole(), root);
        reopened = expected.known.reopened;
      }
      if (IsMetaSync(trace, model.position() - 1) || IsReplacementSync(trace, model.position() - 1))
        ++expected.generation;
    }
    ++result.positions;
    model.VisitImages(model.position(), random, [&](const DiskImage& image) {
      const Known& known = expected.known;
      const uint64_t promise =
          expected.generation << 40 | known.attempted << 20 | known.durable << 1 | (known.created ? 1 : 0);
      if (!seen.insert(image.Hash() ^ promise * 0x9E3779B97F4A7C15ull).second) return true;
      result.wrong = CheckRecovery(image, root, workload.options(), expected, workload.states());
      return result.wrong.empty();
    });
    if (!result.wrong.empty()) {
      result.wrong = absl::StrCat("cut after operation ", model.position(), " (",
                                  model.position() == 0 ? "" : ToString(trace.ops[model.position() - 1]), "), state ",
                                  seen.size(), ": ", result.wrong);
      break;
    }
  } while (model.Advance());
  result.states = seen.size();
  return result;
}

std::string Differences(const DiskImage& model, const DiskImage& disk) {
  std::string text;
  for (const auto& [name, bytes] : disk.files) {
    const auto found = model.files.find(name);
    if (found == model.files.end()) text += name + " is not in the model; ";
    if (found == model.files.end() || *found->second == *bytes) continue;
    const auto at = std::mismatch(bytes->begin(), bytes->end(), found->second->begin(), found->second->end()).first;
    absl::StrAppend(&text, name, " differs at ", at - bytes->begin(), " of ", bytes->size(), " and ",
                    found->second->size(), "; ");
  }
  if (model.files.size() != disk.files.size() || model.directories != disk.directories) text += "other names";
  return text;
}

int RandomSubsets() {
  const char* const text = std::getenv("ASHLAR_TRACE_RANDOM");
  return text == nullptr ? 4 : std::atoi(text);
}

// A finding or a crash of the process, both in a child, because a mutation may let LMDB read anything.
bool FoundInChild(const Trace& trace, const Workload& workload, const std::string& root, size_t* states) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const CutResult result = CutEverywhere(trace, workload, root, 0);
    const bool written = ::write(pipe_ends[1], &result.states, sizeof result.states) == sizeof result.states;
    ::_exit(!written ? 2 : result.wrong.empty() ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  if (::read(pipe_ends[0], states, sizeof *states) != sizeof *states) *states = 0;
  ::close(pipe_ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) || WEXITSTATUS(status) == 1;
}

class LmdbTraceTest : public ::testing::TestWithParam<Named> {
 protected:
  // Runs a workload in a directory that holds `before`.
  Trace Record(const Named& named, const DiskImage& before, std::unique_ptr<Workload>* workload) {
    before.WriteTo(directory_.path());
    BeginTrace(directory_.path());
    *workload = std::make_unique<Workload>(directory_ / "store", named.durability);
    named.script(**workload);
    return EndTrace();
  }

  const catalog::TemporaryDirectory directory_{/*in_memory=*/true};
};

INSTANTIATE_TEST_SUITE_P(Workloads, LmdbTraceTest, ::testing::ValuesIn(kWorkloads),
                         [](const auto& param) { return param.param.name; });

TEST_P(LmdbTraceTest, EveryCut) {
  std::unique_ptr<Workload> workload;
  const Trace trace = Record(GetParam(), {}, &workload);
  // LMDB's own calls are in it: each commit syncs its pages and then its meta page.
  size_t syncs = 0, meta_syncs = 0;
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    syncs += trace.ops[i].kind == TraceOp::Kind::kSync && IsCatalog(trace, trace.ops[i]);
    meta_syncs += IsMetaSync(trace, i);
  }
  ASSERT_GT(meta_syncs, 0u);
  ASSERT_GE(syncs, 2 * meta_syncs);
  // Whole, the model is what is on the disk.
  CrashModel model(trace);
  while (model.Advance()) continue;
  EXPECT_EQ(Differences(model.Whole(), DiskImage::ReadFrom(directory_.path())), "");

  const CutResult result = CutEverywhere(trace, *workload, directory_.path(), RandomSubsets());
  EXPECT_EQ(result.wrong, "");
  EXPECT_GT(result.states, trace.ops.size());
  std::printf("%s: %zu operations, %zu distinct states after a crash\n", GetParam().name, trace.ops.size(),
              result.states);
}

// ---- What the catalog's promises rest on, taken away one at a time: each is found.

TEST_F(LmdbTraceTest, SyncsThatAreLeftOutAreFound) {
  const Named named = kWorkloads[1];
  for (const Site site : {Site::kCatalogFileSync, Site::kCatalogDirectorySync, Site::kCatalogMetaSync}) {
    DisableSite(site);
    std::unique_ptr<Workload> workload;
    const Trace trace = Record(named, {}, &workload);
    DisableSite(Site::kNone);
    size_t states = 0;
    EXPECT_TRUE(FoundInChild(trace, *workload, directory_.path(), &states)) << SiteName(site);
    std::printf("without %s: found at state %zu\n", std::string(SiteName(site)).c_str(), states);
  }
  // LMDB's own sync of its pages, which shows that this test would notice if LMDB lost it.
  std::unique_ptr<Workload> workload;
  Trace trace = Record(named, {}, &workload);
  size_t first = 0;  // the file's creation stays as it is
  while (!IsMetaSync(trace, first)) ++first;
  std::vector<size_t> page_syncs;
  for (size_t i = first + 1; i < trace.ops.size(); ++i)
    if (trace.ops[i].kind == TraceOp::Kind::kSync && IsCatalog(trace, trace.ops[i]) && !IsMetaSync(trace, i))
      page_syncs.push_back(i);
  ASSERT_FALSE(page_syncs.empty());
  for (const size_t i : page_syncs) trace.ops[i] = {TraceOp::Kind::kSync, 9999, {}, {}, 0, {}, false, 0};
  size_t states = 0;
  EXPECT_TRUE(FoundInChild(trace, *workload, directory_.path(), &states));
  std::printf("without LMDB's sync of its pages: found at state %zu\n", states);
}

// A flush, one of whose catalog's syncs fails; the process ends there, or goes on and notices. What is read when the
// store is opened again may be in the page cache only, and opening removes files.
class FailedCommit {
 public:
  explicit FailedCommit(const catalog::TemporaryDirectory& directory) : directory_(directory) {}

  // False if the flush has fewer syncs than `nth`; not OK: the store that was opened again is not right.
  absl::StatusOr<bool> Record(int nth, bool dead) {
    DiskImage().WriteTo(directory_.path());
    BeginTrace(directory_.path());
    workload_ = std::make_unique<Workload>(directory_ / "store", Durability::kSync);
    const absl::StatusOr<bool> came = Run(nth, dead);
    trace_ = EndTrace();
    return came;
  }
  const Trace& trace() const { return trace_; }
  const Workload& workload() const { return *workload_; }

 private:
  absl::StatusOr<bool> Run(int nth, bool dead) {
    Workload& w = *workload_;
    w.Open();
    w.Put(1, 1);
    w.Flush();
    w.Put(2, 2);
    w.Delete(1);
    FailTracedSync("catalog.lmdb", nth, dead);
    const absl::Status status = w.TryFlush();
    if (!ReviveTraced()) return false;
    if (status.ok()) return Internal("a flush whose sync failed was said to be done");
    w.Die();
    ASHLAR_RETURN_IF_ERROR(w.OpenAgain());
    w.Put(3, 3);
    w.Flush();
    w.Close();
    return true;
  }

  const catalog::TemporaryDirectory& directory_;
  std::unique_ptr<Workload> workload_;
  Trace trace_;
};

TEST_F(LmdbTraceTest, EveryCutAfterAFailedSync) {
  for (const bool dead : {false, true}) {
    for (int nth = 1;; ++nth) {
      FailedCommit failed(directory_);
      ASSERT_OK_AND_ASSIGN(const bool came, failed.Record(nth, dead));
      if (!came) {
        EXPECT_EQ(nth, 3) << "a commit syncs its pages and its meta page";
        break;
      }
      const CutResult result = CutEverywhere(failed.trace(), failed.workload(), directory_.path(), RandomSubsets());
      EXPECT_EQ(result.wrong, "") << "sync " << nth << (dead ? ", killed" : "");
      std::printf("sync %d of a commit fails%s: %zu distinct states\n", nth, dead ? ", killed" : "", result.states);
    }
  }
}

// LMDB spoils its meta page when it can't be written.
TEST_F(LmdbTraceTest, AStoreOpensAgainAfterAFailedWrite) {
  for (int nth = 1;; ++nth) {
    DiskImage().WriteTo(directory_.path());
    BeginTrace(directory_.path());
    Workload w(directory_ / "store", Durability::kSync);
    w.Open();
    for (int round = 0; round < 3; ++round) {
      w.Put(round, round);
      w.Flush();
    }
    w.Delete(1);
    FailTracedWrite("catalog.lmdb", nth);
    const absl::Status status = w.TryFlush();
    const bool came = ReviveTraced();
    ASSERT_EQ(status.ok(), !came);
    w.Die();
    ASSERT_OK(w.OpenAgain()) << "write " << nth;
    w.Flush();
    w.Close();
    EndTrace();
    if (came) continue;
    EXPECT_GT(nth, 2) << "a commit writes its pages and its meta page";
    break;
  }
}

TEST_F(LmdbTraceTest, AMetaThatIsNotWrittenAgainIsFound) {
  FailedCommit failed(directory_);
  DisableSite(Site::kCatalogMetaRewrite);
  const absl::StatusOr<bool> came = failed.Record(2, /*dead=*/true);
  DisableSite(Site::kNone);
  ASSERT_OK(came.status());
  size_t states = 0;
  EXPECT_TRUE(FoundInChild(failed.trace(), failed.workload(), directory_.path(), &states));
  std::printf("without %s: found at state %zu\n", std::string(SiteName(Site::kCatalogMetaRewrite)).c_str(), states);
}

// Recovery is a workload as well: power goes again while a store opens after a crash.
TEST_F(LmdbTraceTest, EveryCutOfARecovery) {
  std::unique_ptr<Workload> first;
  const Trace trace = Record(kWorkloads[1], {}, &first);
  // Before the last close, in the middle of the merge's commit, and in the middle of a flush.
  std::vector<size_t> positions;
  for (size_t i = 0; i < trace.ops.size(); ++i)
    if (IsMetaSync(trace, i)) positions.push_back(i);
  ASSERT_GT(positions.size(), 4u);
  size_t states = 0;
  for (const size_t position : {positions[2], positions.back() - 1, positions.back() + 1, positions.back() + 6}) {
    CrashModel model(trace);
    size_t mark = 0;
    while (model.position() < position && model.Advance())
      if (const TraceOp& op = trace.ops[model.position() - 1]; op.kind == TraceOp::Kind::kMark) mark = op.mark;
    const Known known = first->known()[mark];
    DiskImage before = model.Whole();
    // The documents of before are the first state of what follows; which ones is read from the recovered store.
    before.WriteTo(directory_.path());
    Oracle oracle(TraceSchema());
    {
      ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory_ / "store"));
      ASSERT_OK(store->TakeSnapshot().Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
        oracle.Put(stored.document);
        return true;
      }));
    }
    ASSERT_GE(oracle.document_count() + 1, first->states()[known.durable].document_count());
    before.WriteTo(directory_.path());
    BeginTrace(directory_.path());
    Workload second(directory_ / "store", Durability::kSync, oracle);
    second.Open();
    second.Put(2, 50);
    second.Flush();
    second.Close();
    const Trace recovery = EndTrace();
    const CutResult result = CutEverywhere(recovery, second, directory_.path(), RandomSubsets());
    EXPECT_EQ(result.wrong, "") << "first cut after operation " << position;
    states += result.states;
  }
  std::printf("recoveries: %zu distinct states after a second crash\n", states);
}

}  // namespace
}  // namespace ashlar::testing
