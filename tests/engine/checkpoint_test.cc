// Checkpoints: what they hold, what they refuse, what a crash leaves of them, and that writing goes on beside them.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "src/base/site.h"
#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

Schema BatchSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"batch", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

Document Doc(const std::string& key, int64_t batch) {
  Document document;
  document.Add("id", key)
      .Add("title", "stone " + std::to_string(batch % 7))
      .Add("body", "lime and mortar " + std::to_string(batch) + (batch % 2 == 0 ? " even" : " odd"))
      .Add("batch", batch);
  return document;
}

// The n-th numbered batch, from 1: replaces, adds, deletes; four operations, so its sequences are known.
WriteBatch NumberedBatch(int64_t n) {
  WriteBatch batch;
  batch.Put(Doc("counter", n));
  batch.Put(Doc("r" + std::to_string(n % 40), n));
  batch.Put(Doc("n" + std::to_string(n), n));
  batch.Delete("n" + std::to_string(n - 30));
  return batch;
}

// Kept, for many tests ask for the same.
const Oracle& StateAfter(int64_t batches) {
  static std::map<int64_t, Oracle>* const states = new std::map<int64_t, Oracle>;
  const auto known = states->find(batches);
  if (known != states->end()) return known->second;
  Oracle oracle(BatchSchema());
  for (int64_t n = 1; n <= batches; ++n) EXPECT_OK(oracle.Apply(NumberedBatch(n)));
  return states->emplace(batches, std::move(oracle)).first->second;
}

// What is live after n batches, by key: DocumentId and batch.
std::map<std::string, std::pair<DocumentId, int64_t>> LiveAfter(int64_t batches) {
  std::map<std::string, std::pair<DocumentId, int64_t>> live;
  for (int64_t n = 1; n <= batches; ++n) {
    const auto first = static_cast<DocumentId>(4 * (n - 1) + 1);
    live["counter"] = {first, n};
    live["r" + std::to_string(n % 40)] = {first + 1, n};
    live["n" + std::to_string(n)] = {first + 2, n};
    live.erase("n" + std::to_string(n - 30));
  }
  return live;
}

void Write(Store& store, int64_t first, int64_t last) {
  for (int64_t n = first; n <= last; ++n) {
    WriteOptions options;
    options.watermark = std::to_string(n * 10);
    ASSERT_OK(store.Write(NumberedBatch(n), options));
  }
}

Options SmallOptions() {
  Options options;
  options.durability = Durability::kOs;
  options.merge_factor = 0;
  return options;
}

Options ReadOnly() {
  Options options;
  options.read_only = true;
  return options;
}

CheckpointOptions Incremental() {
  CheckpointOptions options;
  options.incremental = true;
  return options;
}

// The store in `directory` is exactly the numbered batches up to n.
void ExpectHolds(env::Env env, const std::string& directory, int64_t n) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, OpenOn(env, directory, ReadOnly(), nullptr));
  const Oracle& oracle = StateAfter(n);
  const Snapshot snapshot = copy->TakeSnapshot();
  EXPECT_EQ(snapshot.sequence(), static_cast<Sequence>(4 * n));
  ExpectSameDocuments(snapshot, oracle);
  RandomStore random(static_cast<uint64_t>(n) + 1);
  ExpectEqual(*copy, snapshot, oracle, &random, 1);
  if (n > 0) EXPECT_EQ(copy->GetStats().watermark, std::to_string(n * 10));
  ExpectCheckClean(*copy);
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Create(source_, BatchSchema(), SmallOptions());
    EXPECT_OK(store);
    if (store.ok()) store_ = *std::move(store);
  }
  const TempDir directory_;
  const std::string source_ = directory_.Sub("store"), out_ = directory_.Sub("copy");
  const env::Env env_ = env::PosixEnv();
  std::unique_ptr<Store> store_;
};

TEST_F(CheckpointTest, HoldsWhatASnapshotShows) {
  Write(*store_, 1, 50);
  ASSERT_OK(store_->Flush());
  Write(*store_, 51, 90);
  ASSERT_OK(store_->Flush());
  Write(*store_, 91, 100);  // stay in the overlay, and kill documents of both segments
  for (const bool hard_links : {true, false}) {
    CheckpointOptions options;
    options.hard_links = hard_links;
    const std::string out = out_ + (hard_links ? "-linked" : "-copied");
    ASSERT_OK_AND_ASSIGN(const CheckpointReport report, store_->Checkpoint(out, options));
    EXPECT_EQ(report.sequence, 400u);
    EXPECT_EQ(report.documents, store_->GetStats().documents);
    EXPECT_EQ(report.segments_linked, hard_links ? 2u : 0u);
    EXPECT_EQ(report.segments_copied, hard_links ? 0u : 2u);
    EXPECT_GT(report.bytes_written, 0u);
    ExpectHolds(env_, out, 100);
  }
}

TEST_F(CheckpointTest, AnEmptyStoreAndAnOverlayAloneCanBeCopied) {
  ASSERT_OK(store_->Checkpoint(out_ + "0"));
  ExpectHolds(env_, out_ + "0", 0);
  Write(*store_, 1, 3);
  ASSERT_OK(store_->Checkpoint(out_ + "3"));
  ExpectHolds(env_, out_ + "3", 3);
}

TEST_F(CheckpointTest, TheCopyIsAStoreOfItsOwn) {
  Write(*store_, 1, 20);
  ASSERT_OK(store_->Flush());
  Write(*store_, 21, 30);
  ASSERT_OK(store_->Checkpoint(out_));
  Write(*store_, 31, 40);
  ASSERT_OK(store_->Merge());
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(out_, SmallOptions()));
    for (int64_t n = 31; n <= 35; ++n) {
      ASSERT_OK_AND_ASSIGN(const WriteResult written, copy->Write(NumberedBatch(n)));
      EXPECT_EQ(written.sequence, static_cast<Sequence>(4 * n)) << "goes on where the copy ends";
    }
    ASSERT_OK(copy->Merge());
    ExpectSameDocuments(copy->TakeSnapshot(), StateAfter(35));
    ExpectCheckClean(*copy);
    ASSERT_OK(copy->Close());
  }
  ExpectSameDocuments(store_->TakeSnapshot(), StateAfter(40));
  ExpectCheckClean(*store_);
}

TEST_F(CheckpointTest, AReadOnlyStoreCopiesBesideTheWriter) {
  Write(*store_, 1, 20);
  ASSERT_OK(store_->Flush());
  Write(*store_, 21, 25);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(source_, ReadOnly()));
  Write(*store_, 26, 30);
  ASSERT_OK(store_->Merge());  // takes the names of what the reader has open
  ASSERT_OK_AND_ASSIGN(const CheckpointReport report, reader->Checkpoint(out_));
  EXPECT_EQ(report.segments_copied, 1u) << "through the open file";
  ExpectHolds(env_, out_, 25);
  ASSERT_OK(reader->Refresh());
  ASSERT_OK(reader->Checkpoint(out_, Incremental()));
  ExpectHolds(env_, out_, 30);
}

TEST_F(CheckpointTest, AWriterThatGaveNumbersOutDoesNotMeetThemInTheCopy) {
  Write(*store_, 1, 5);
  store_ = nullptr;
  // A crash may have lost batches whose ids were seen: the store goes on far beyond them, and so must its copy.
  {
    ASSERT_OK_AND_ASSIGN(store_, Store::Open(source_, SmallOptions()));
    WriteBatch batch;
    batch.Put(Doc("x", 1));
    ASSERT_OK(store_->Write(batch));
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(source_, ReadOnly()));
  ASSERT_OK(reader->Checkpoint(out_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(out_, SmallOptions()));
  ASSERT_OK_AND_ASSIGN(const Sequence later, copy->Put(Doc("y", 1)));
  EXPECT_GT(later, Sequence{1} << 29) << "a reader can't know what the writer has given out since";
}

TEST_F(CheckpointTest, OffStoresCopyWhatIsVisible) {
  Options options = SmallOptions();
  options.durability = Durability::kOff;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> off, Store::Create(directory_.Sub("off"), BatchSchema(), options));
  Write(*off, 1, 10);
  WriteBatch batch;
  batch.Put(Doc("invisible", 1));
  WriteOptions bulk;
  bulk.keys_are_new = true;
  ASSERT_OK(off->Write(batch, bulk));  // flushes the overlay, and is not visible before the next flush
  ASSERT_OK(off->Checkpoint(out_));
  ExpectHolds(env_, out_, 10);
}

TEST_F(CheckpointTest, IncrementalAddsOnlyWhatIsMissing) {
  Write(*store_, 1, 20);
  ASSERT_OK(store_->Flush());
  ASSERT_OK_AND_ASSIGN(CheckpointReport report, store_->Checkpoint(out_, Incremental()));
  EXPECT_EQ(report.segments_linked, 1u);
  Write(*store_, 21, 30);
  ASSERT_OK(store_->Flush());
  Write(*store_, 31, 33);
  ASSERT_OK_AND_ASSIGN(report, store_->Checkpoint(out_, Incremental()));
  EXPECT_EQ(report.segments_kept, 1u);
  EXPECT_EQ(report.segments_linked, 1u);
  ExpectHolds(env_, out_, 33);
  // Nothing new but the overlay; then nothing new at all.
  Write(*store_, 34, 35);
  ASSERT_OK_AND_ASSIGN(report, store_->Checkpoint(out_, Incremental()));
  EXPECT_EQ(report.segments_kept, 2u);
  ExpectHolds(env_, out_, 35);
  ASSERT_OK(store_->Checkpoint(out_, Incremental()));
  ExpectHolds(env_, out_, 35);
  // All segments are other ones.
  ASSERT_OK(store_->Merge());
  ASSERT_OK_AND_ASSIGN(report, store_->Checkpoint(out_, Incremental()));
  EXPECT_EQ(report.segments_kept, 0u);
  ExpectHolds(env_, out_, 35);
  // A new field.
  ASSERT_OK(store_->AddFields({{"extra", FieldType::kText, true, true, false, {}}}));
  ASSERT_OK(store_->Checkpoint(out_, Incremental()));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(out_, ReadOnly()));
  EXPECT_EQ(copy->schema(), store_->schema());
  ExpectCheckClean(*copy);  // also: no file is left over
}

TEST_F(CheckpointTest, ReadersOfTheOldCheckpointKeepIt) {
  Write(*store_, 1, 20);
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Checkpoint(out_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> old, Store::Open(out_, ReadOnly()));
  Write(*store_, 21, 40);
  ASSERT_OK(store_->Merge());
  ASSERT_OK(store_->Checkpoint(out_, Incremental()));
  ExpectSameDocuments(old->TakeSnapshot(), StateAfter(20));
  ExpectHolds(env_, out_, 40);
  ExpectSameDocuments(old->TakeSnapshot(), StateAfter(20));
}

TEST_F(CheckpointTest, RefusesPlacesThatAreNotFree) {
  Write(*store_, 1, 2);
  EXPECT_CODE(store_->Checkpoint(source_), kInvalidArgument);
  EXPECT_CODE(store_->Checkpoint(source_ + "/./"), kInvalidArgument);
  EXPECT_CODE(store_->Checkpoint(source_ + "/copy"), kInvalidArgument);
  EXPECT_CODE(store_->Checkpoint(directory_.path()), kInvalidArgument);
  EXPECT_CODE(store_->Checkpoint(""), kInvalidArgument);
  EXPECT_CODE(store_->Checkpoint(directory_.Sub("no/such/parent")), kNotFound);
  ASSERT_OK(env_.files->CreateDirectory(out_));
  EXPECT_CODE(store_->Checkpoint(out_), kAlreadyExists);
  ASSERT_OK(store_->Checkpoint(out_, Incremental()));  // an empty one will do
  EXPECT_CODE(store_->Checkpoint(out_), kAlreadyExists);
  EXPECT_CODE(store_->Checkpoint(out_ + "/deeper"), kInvalidArgument);
  // Somebody's files.
  const std::string other = directory_.Sub("other");
  ASSERT_OK(env_.files->CreateDirectory(other));
  std::ofstream(other + "/letter.txt") << "dear";
  EXPECT_CODE(store_->Checkpoint(other, Incremental()), kFailedPrecondition);
  EXPECT_EQ(env_.files->List(other)->size(), 1u);
  // Another store; in use and not.
  const std::string another = directory_.Sub("another");
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> stranger, Store::Create(another, BatchSchema(), SmallOptions()));
  EXPECT_CODE(store_->Checkpoint(another, Incremental()), kUnavailable);
  ASSERT_OK(stranger->Close());
  EXPECT_CODE(store_->Checkpoint(another, Incremental()), kFailedPrecondition);
  ASSERT_OK(Store::Open(another, ReadOnly()));
  EXPECT_CODE(Store::OpenInMemory(BatchSchema()).value()->Checkpoint(directory_.Sub("m")), kFailedPrecondition);
  ASSERT_OK(store_->Close());
  EXPECT_CODE(store_->Checkpoint(directory_.Sub("closed")), kFailedPrecondition);
}

TEST_F(CheckpointTest, RefusesACheckpointThatIsNewer) {
  Write(*store_, 1, 5);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(source_, ReadOnly()));
  Write(*store_, 6, 8);
  ASSERT_OK(store_->Checkpoint(out_));
  EXPECT_CODE(reader->Checkpoint(out_, Incremental()), kFailedPrecondition);
  ExpectHolds(env_, out_, 8);
  ASSERT_OK(reader->Refresh());
  EXPECT_OK(reader->Checkpoint(out_, Incremental()));
}

TEST_F(CheckpointTest, WhoReadsACheckpointGoesOverToTheRenewedOne) {
  Write(*store_, 1, 5);
  ASSERT_OK(store_->Checkpoint(out_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(out_, ReadOnly()));
  Write(*store_, 6, 8);
  ASSERT_OK(store_->Checkpoint(out_, Incremental()));
  EXPECT_EQ(reader->TakeSnapshot().watermark(), "50");
  ASSERT_OK_AND_ASSIGN(const bool fresh, reader->Refresh());
  EXPECT_TRUE(fresh);
  EXPECT_EQ(reader->TakeSnapshot().watermark(), "80");
  ExpectSameDocuments(reader->TakeSnapshot(), StateAfter(8));
  ExpectCheckClean(*reader);
}

// Whatever was acknowledged by the copy as a store is not overwritten.
TEST_F(CheckpointTest, RefusesACheckpointThatWasWrittenTo) {
  Write(*store_, 1, 5);
  const std::vector<std::pair<std::string, std::function<absl::Status(Store&)>>> changes = {
      {"put", [](Store& copy) { return copy.Put(Doc("x", 1)).status(); }},
      {"flushed",
       [](Store& copy) -> absl::Status {
         const absl::Status status = copy.Put(Doc("x", 1)).status();
         return status.ok() ? copy.Flush() : status;
       }},
      {"deleted", [](Store& copy) { return copy.Delete("counter").status(); }},
      {"empty batch", [](Store& copy) { return copy.Write(WriteBatch()).status(); }},
      {"merge",
       [](Store& copy) -> absl::Status {
         const absl::Status status = copy.Delete("counter").status();
         return status.ok() ? copy.Merge() : status;
       }},
      {"field",
       [](Store& copy) {
         return copy.AddFields({{"extra", FieldType::kText, true, true, false, {}}});
       }},
  };
  for (const Durability durability : {Durability::kSync, Durability::kOff}) {
    for (const auto& [name, change] : changes) {
      SCOPED_TRACE(name + (durability == Durability::kOff ? ", off" : ""));
      const std::string out = out_ + name + std::to_string(static_cast<int>(durability));
      ASSERT_OK(store_->Checkpoint(out));
      Options options = SmallOptions();
      options.durability = durability;
      {
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, Store::Open(out, options));
        ASSERT_OK(change(*copy));
        EXPECT_CODE(store_->Checkpoint(out, Incremental()), kUnavailable);
        ASSERT_OK(copy->Close());
      }
      EXPECT_CODE(store_->Checkpoint(out, Incremental()), kFailedPrecondition);
      ASSERT_OK(Store::Open(out, ReadOnly()));
    }
  }
  // Opened for writing, but not written to.
  ASSERT_OK(store_->Checkpoint(out_));
  { ASSERT_OK(Store::Open(out_, SmallOptions())); }
  Write(*store_, 6, 7);
  ASSERT_OK(store_->Checkpoint(out_, Incremental()));
  ExpectHolds(env_, out_, 7);
}

TEST_F(CheckpointTest, DamageInTheStoreIsNotCopiedUnseen) {
  Write(*store_, 1, 200);
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Close());
  std::string segment;
  ASSERT_OK_AND_ASSIGN(const auto entries, env_.files->List(source_));
  for (const auto& entry : entries)
    if (entry.name.ends_with(".seg")) segment = source_ + "/" + entry.name;
  ASSERT_OK_AND_ASSIGN(ByteBuffer bytes, env::ReadFile(*env_.files, segment));
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(bytes.size() / 3));
    file.put(static_cast<char>(std::to_integer<int>(bytes[bytes.size() / 3]) ^ 1));
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(source_, ReadOnly()));
  for (const bool hard_links : {true, false}) {
    CheckpointOptions options;
    options.hard_links = hard_links;
    EXPECT_CODE(reader->Checkpoint(out_, options), kDataLoss);
    EXPECT_FALSE(*env_.files->Exists(out_));
  }
}

// --- beside a writer ---

uint64_t HashOfFiles(const std::string& directory) {
  uint64_t hash = 0;
  const auto entries = env::PosixEnv().files->List(directory);
  EXPECT_OK(entries);
  for (const auto& entry : *entries) {
    if (entry.name == "lock" || entry.name == "catalog.lmdb-lock") continue;  // who has it open
    std::ifstream file(directory + "/" + entry.name, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    hash = hash * 31 + std::hash<std::string>()(entry.name + bytes);
  }
  return hash;
}

// Exactly batches 1 to n, for some n; returns it.
int64_t BatchesIn(const std::string& directory) {
  const absl::StatusOr<std::unique_ptr<Store>> copy = Store::Open(directory, ReadOnly());
  EXPECT_OK(copy);
  if (!copy.ok()) return -1;
  const Snapshot snapshot = (*copy)->TakeSnapshot();
  const absl::StatusOr<StoredDocument> counter = snapshot.Get("counter");
  const int64_t n = counter.ok() ? std::get<int64_t>(*counter->document.Find("batch")) : 0;
  EXPECT_EQ(snapshot.sequence(), static_cast<Sequence>(4 * n));
  std::map<std::string, std::pair<DocumentId, int64_t>> found;
  EXPECT_OK(snapshot.Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
    found[stored.key] = {stored.id, std::get<int64_t>(*stored.document.Find("batch"))};
    return true;
  }));
  EXPECT_EQ(found, LiveAfter(n));
  ExpectCheckClean(**copy);
  return n;
}

// Writes numbered batches without pause, with flushes and merges of its own, until it is destroyed.
class SteadyWriter {
 public:
  explicit SteadyWriter(Store* store) : thread_([this, store] { Run(store); }) {}
  ~SteadyWriter() {
    stop_ = true;
    thread_.join();
  }
  int64_t acknowledged() const { return acknowledged_.load(); }
  void WaitFor(int64_t batches) const {
    while (acknowledged() < batches) std::this_thread::yield();
  }

 private:
  void Run(Store* store) {
    for (int64_t n = 1; !stop_; ++n) {
      EXPECT_OK(store->Write(NumberedBatch(n)));
      acknowledged_ = n;
      if (n % 50 == 0) EXPECT_OK(store->Flush());
      if (n % 170 == 0) EXPECT_OK(store->Merge(2));
    }
  }
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> acknowledged_{0};
  std::thread thread_;
};

TEST_F(CheckpointTest, C43_CheckpointsWhileBatchesAreWritten) {
#if defined(ASHLAR_THREAD_SANITIZER) || defined(ASHLAR_ADDRESS_SANITIZER)
  constexpr int kCheckpoints = 20;  // enough for races; the count of the case is for the other builds
#else
  constexpr int kCheckpoints = 100;
#endif
  struct Taken {
    std::string directory;
    int64_t acknowledged_before;
    uint64_t hash;
  };
  std::vector<Taken> taken;
  uint64_t linked = 0, copied = 0;
  {
    const SteadyWriter writer(store_.get());
    for (int i = 0; i < kCheckpoints; ++i) {
      writer.WaitFor(5 * i);
      CheckpointOptions options;
      options.hard_links = i % 2 == 0;
      const std::string out = out_ + std::to_string(i);
      const int64_t before = writer.acknowledged();
      ASSERT_OK_AND_ASSIGN(const CheckpointReport report, store_->Checkpoint(out, options));
      EXPECT_GE(report.sequence, static_cast<Sequence>(4 * before));
      linked += report.segments_linked;
      copied += report.segments_copied;
      taken.push_back({out, before, HashOfFiles(out)});
    }
    writer.WaitFor(writer.acknowledged() + 100);
  }
  EXPECT_GT(linked, 0u);
  EXPECT_GT(copied, 0u);
  for (const Taken& one : taken) {
    SCOPED_TRACE(one.directory);
    EXPECT_GE(BatchesIn(one.directory), one.acknowledged_before);
    EXPECT_EQ(HashOfFiles(one.directory), one.hash);
  }
}

TEST_F(CheckpointTest, C43_AReaderCopiesWhileBatchesAreWritten) {
  const SteadyWriter writer(store_.get());
  writer.WaitFor(20);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(source_, ReadOnly()));
  for (int i = 0; i < 20; ++i) {
    writer.WaitFor(20 + 15 * i);
    const int64_t before = writer.acknowledged();
    absl::StatusOr<bool> refreshed = reader->Refresh();
    while (absl::IsUnavailable(refreshed.status())) refreshed = reader->Refresh();  // it publishes faster than we look
    ASSERT_OK(refreshed);
    const bool renews = i % 2 == 1;
    ASSERT_OK(
        reader->Checkpoint(renews ? out_ : out_ + std::to_string(i), renews ? Incremental() : CheckpointOptions()));
    EXPECT_GE(BatchesIn(renews ? out_ : out_ + std::to_string(i)), before);
  }
}

// --- on the simulated disk ---

class CheckpointCrashTest : public ::testing::Test {
 protected:
  // A store with `batches` batches, a flush every six.
  static std::unique_ptr<Store> Fill(const env::Env& env, int64_t batches) {
    Options options = SmallOptions();
    options.create_if_missing = true;
    const Schema schema = BatchSchema();
    absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(env, "/store", options, &schema);
    EXPECT_OK(store);
    if (!store.ok()) return nullptr;
    Extend(**store, 1, batches);
    return *std::move(store);
  }
  static void Extend(Store& store, int64_t first, int64_t last) {
    for (int64_t n = first; n <= last; ++n) {
      Write(store, n, n);
      if (n % 6 == 0) EXPECT_OK(store.Flush());
    }
  }
};

std::vector<env::CrashPolicy> Policies(uint64_t seeds) {
  std::vector<env::CrashPolicy> policies = {env::CrashPolicy::DropAll(), env::CrashPolicy::KeepAll()};
  for (uint64_t seed = 0; seed < seeds; ++seed) policies.push_back(env::CrashPolicy::Random(seed));
  return policies;
}

// No checkpoint, or a whole one; and the next one succeeds.
TEST_F(CheckpointCrashTest, PowerLossLeavesAllOrNothing) {
  bool done = false;
  int whole = 0, none = 0;
  std::set<uint64_t> states;  // seen before
  for (uint64_t step = 0; !done; ++step) {
    env::SimDisk disk(step + 1);
    const env::Env process = disk.NewProcess();
    const std::unique_ptr<Store> store = Fill(process, 15);
    disk.CutPowerAtStep(disk.steps() + step);
    CheckpointOptions options;
    options.hard_links = step % 2 == 0;
    done = store->Checkpoint("/copy", options).ok();
    for (const env::CrashPolicy& policy : Policies(6)) {
      SCOPED_TRACE("step " + std::to_string(step));
      const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policy);
      if (!states.insert(after->DurableHash() + (done ? 1 : 0)).second) continue;
      const env::Env env = after->NewProcess();
      const absl::StatusOr<std::unique_ptr<Store>> copy = OpenOn(env, "/copy", ReadOnly(), nullptr);
      if (copy.ok()) {
        ++whole;
        ExpectHolds(env, "/copy", 15);
      } else {
        ++none;
        EXPECT_CODE(copy, kNotFound);
        EXPECT_FALSE(done) << "what was returned is durable";
      }
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> again, OpenOn(env, "/store", SmallOptions(), nullptr));
      ExpectCheckClean(*again);
      // The un-synced store may have lost batches, so its sequence may be behind the copy's: that is refused.
      if (again->TakeSnapshot().sequence() == 60u) {
        ASSERT_OK(again->Checkpoint("/copy", Incremental()));
        ExpectHolds(env, "/copy", 15);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(none, 10);
}

// The old checkpoint or the new one, whatever survives; each can be read, renewed and opened for writing.
TEST_F(CheckpointCrashTest, PowerLossDuringARenewalLeavesTheOldOrTheNew) {
  bool done = false;
  int older = 0, newer = 0;
  std::set<uint64_t> states;  // seen before
  for (uint64_t step = 0; !done; ++step) {
    env::SimDisk disk(step + 1);
    const env::Env process = disk.NewProcess();
    const std::unique_ptr<Store> store = Fill(process, 14);
    ASSERT_OK(store->Checkpoint("/copy"));
    Extend(*store, 15, 20);
    if (step % 3 == 0) ASSERT_OK(store->Merge());
    ASSERT_OK(store->Sync());
    disk.CutPowerAtStep(disk.steps() + step);
    CheckpointOptions options = Incremental();
    options.hard_links = step % 2 == 0;
    done = store->Checkpoint("/copy", options).ok();
    for (const env::CrashPolicy& policy : Policies(6)) {
      SCOPED_TRACE("step " + std::to_string(step));
      const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policy);
      if (!states.insert(after->DurableHash() + (done ? 1 : 0)).second) continue;
      const env::Env env = after->NewProcess();
      Sequence sequence = 0;
      {
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, OpenOn(env, "/copy", ReadOnly(), nullptr));
        sequence = copy->TakeSnapshot().sequence();
        ASSERT_TRUE(sequence == 56 || sequence == 80) << sequence;
        ExpectSameDocuments(copy->TakeSnapshot(), StateAfter(static_cast<int64_t>(sequence / 4)));
        ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, copy->Check());
        for (const Finding& finding : findings) EXPECT_EQ(finding.kind, Finding::Kind::kNote) << finding.message;
      }
      ++(sequence == 56 ? older : newer);
      if (done) EXPECT_EQ(sequence, 80u);
      {
        const std::unique_ptr<env::SimDisk> other = after->CrashedCopy(env::CrashPolicy::DropAll());
        const env::Env writing = other->NewProcess();
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, OpenOn(writing, "/copy", SmallOptions(), nullptr));
        ASSERT_OK(copy->Put(Doc("x", 1)));
        ExpectCheckClean(*copy);  // leftovers are removed
      }
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> again, OpenOn(env, "/store", SmallOptions(), nullptr));
      ASSERT_OK(again->Checkpoint("/copy", Incremental()));
      ExpectHolds(env, "/copy", 20);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(older, 20);
  EXPECT_GT(newer, 5);
}

// Every operation of a checkpoint fails once: it is typed, what was made is removed, the store is not disturbed.
TEST_F(CheckpointCrashTest, FailuresRemoveWhatWasMade) {
  for (const bool incremental : {false, true}) {
    uint64_t fired = 0;
    for (const env::SimOp op :
         {env::SimOp::kCreate, env::SimOp::kWrite, env::SimOp::kSync, env::SimOp::kRename, env::SimOp::kCreateDirectory,
          env::SimOp::kSyncDirectory, env::SimOp::kLink, env::SimOp::kLock, env::SimOp::kMap}) {
      for (uint64_t nth = 1; nth < 100; ++nth) {
        SCOPED_TRACE(std::string(env::SimOpName(op)) + " " + std::to_string(nth));
        env::SimDisk disk(nth);
        const std::unique_ptr<Store> store = Fill(disk.NewProcess(), 14);
        if (incremental) ASSERT_OK(store->Checkpoint("/copy"));
        Extend(*store, 15, 20);
        const std::vector<std::string> before = disk.FileNames();
        env::SimFault fault;
        fault.op = op;
        fault.path_contains = "/copy";
        fault.nth = nth;
        fault.error = nth % 2 == 0 ? EIO : ENOSPC;
        disk.AddFault(fault);
        CheckpointOptions options;
        options.incremental = incremental;
        options.hard_links = nth % 3 != 0;
        const uint64_t faults = disk.counters().faults;
        const absl::StatusOr<CheckpointReport> report = store->Checkpoint("/copy", options);
        if (disk.counters().faults == faults) break;
        ++fired;
        disk.ClearFaults();
        if (!report.ok() && !incremental) EXPECT_EQ(disk.FileNames(), before);
        const env::Env env = disk.NewProcess();
        if (incremental) {
          ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> copy, OpenOn(env, "/copy", ReadOnly(), nullptr));
          const Sequence sequence = copy->TakeSnapshot().sequence();
          if (report.ok()) EXPECT_EQ(sequence, 80u);
          ExpectSameDocuments(copy->TakeSnapshot(), StateAfter(static_cast<int64_t>(sequence / 4)));
        }
        ASSERT_OK(store->Checkpoint("/copy", Incremental()));
        ExpectHolds(env, "/copy", 20);
        ExpectCheckClean(*store);
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(fired, 20u);
  }
}

// Copies that can neither be opened nor are no checkpoint, among those that power loss leaves while a failed first one
// is taken back.
class UndoneCheckpointTest : public CheckpointCrashTest {
 protected:
  int CountDamaged() {
    int damaged = 0, undone = 0;
    for (uint64_t nth = 1; nth < 60; ++nth) {
      env::SimDisk disk(nth);
      const std::unique_ptr<Store> store = Fill(disk.NewProcess(), 14);
      EXPECT_OK(store->Delete("k3").status());
      env::SimFault fault;
      fault.op = env::SimOp::kStat;
      fault.path_contains = "/copy";
      fault.nth = nth;
      fault.error = EMFILE;
      disk.AddFault(fault);
      const uint64_t faults = disk.counters().faults;
      disk.SetObserver([&](const env::SimOperation&) {
        if (disk.counters().faults == faults) return;
        for (const env::CrashPolicy& policy : disk.EnumerateCrashes(32)) {
          const std::unique_ptr<env::SimDisk> after = disk.CrashedCopy(policy);
          const absl::StatusOr<std::unique_ptr<Store>> copy = OpenOn(after->NewProcess(), "/copy", ReadOnly(), nullptr);
          damaged += !copy.ok() && !absl::IsNotFound(copy.status()) ? 1 : 0;
        }
      });
      undone += store->Checkpoint("/copy").ok() ? 0 : 1;
      disk.SetObserver(nullptr);
      if (disk.counters().faults == faults) break;
    }
    EXPECT_GT(undone, 3);
    return damaged;
  }
};

TEST_F(UndoneCheckpointTest, PowerLossLeavesNoDamagedOne) {
  EXPECT_EQ(CountDamaged(), 0);
  DisableSite(Site::kCheckpointUndoSync);
  EXPECT_GT(CountDamaged(), 0) << "checkpoint.undo_sync was switched off and nothing noticed";
  DisableSite(Site::kNone);
}

TEST_F(CheckpointCrashTest, ASegmentWhoseNameIsGoneIsCopiedFromTheOpenFile) {
  env::SimDisk disk(1);
  const std::unique_ptr<Store> store = Fill(disk.NewProcess(), 20);
  env::SimFault fault;
  fault.op = env::SimOp::kLink;
  fault.error = ENOENT;
  disk.AddFault(fault);
  ASSERT_OK_AND_ASSIGN(const CheckpointReport report, store->Checkpoint("/copy"));
  EXPECT_EQ(report.segments_copied, 1u);
  EXPECT_EQ(report.segments_linked, 2u);
  ExpectHolds(disk.NewProcess(), "/copy", 20);
}

}  // namespace
}  // namespace ashlar::testing
