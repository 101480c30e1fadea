// What failed or was killed while a store or its journal was young: found by the crash laboratory.
#include <gtest/gtest.h>

#include "src/base/site.h"
#include "src/env/sim_env.h"
#include "src/testing/workload.h"
#include "src/testing/workload_runner.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

using env::CrashPolicy;
using env::SimDisk;
using env::SimFault;
using env::SimOp;

absl::StatusOr<std::unique_ptr<Store>> OpenAgain(SimDisk* disk, Durability durability = Durability::kSync) {
  Options options;
  options.create_if_missing = true;
  options.durability = durability;
  options.journal_file_bytes_min = 4096;
  const Schema schema = WorkloadSchema(true);
  return OpenOn(disk->NewProcess(), kLabDirectory, options, &schema);
}

Document Doc(uint64_t key) { return WorkloadDocument(WorkloadSchema(true), key, key, 0); }

SimFault Fault(SimOp op, uint64_t nth, SimFault::Effect effect) {
  SimFault fault;
  fault.op = op;
  fault.nth = nth;
  fault.effect = effect;
  return fault;
}

// Whatever operation fails while a store is made and takes its first writes: what is acknowledged after trying again
// survives power loss.
TEST(FailedStartTest, TryingAgainLosesNothing) {
  for (const SimOp op : {SimOp::kCreateDirectory, SimOp::kSyncDirectory, SimOp::kRename, SimOp::kSync, SimOp::kCreate}) {
    for (const auto effect : {SimFault::Effect::kFails, SimFault::Effect::kFailsAfterwards}) {
      for (uint64_t nth = 1; nth < 8; ++nth) {
        SCOPED_TRACE(std::string(env::SimOpName(op)) + " " + std::to_string(nth));
        SimDisk disk(nth);
        disk.AddFault(Fault(op, nth, effect));
        std::vector<uint64_t> acknowledged;
        std::unique_ptr<Store> store;
        for (uint64_t key = 0; key < 8; ++key) {
          if (store == nullptr) {
            auto opened = OpenAgain(&disk);
            if (!opened.ok()) continue;
            store = *std::move(opened);
          }
          if (store->Put(Doc(key)).ok()) acknowledged.push_back(key);
          if (store->GetStats().state == StoreState::kFailedSync) store.reset();
        }
        ASSERT_GE(acknowledged.size(), 5u);
        disk.Crash(CrashPolicy::DropAll());
        store.reset();
        ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk));
        for (const uint64_t key : acknowledged) EXPECT_OK(store->TakeSnapshot().Get("k" + std::to_string(key)));
      }
    }
  }
}

// A second unclean end within what the first one left un-synced.
TEST(FailedStartTest, KillsAndPowerLossReuseNoSequence) {
  SimDisk disk(1);
  Sequence newest = 0;
  for (int round = 0; round < 3; ++round) {
    const env::Env process = disk.NewProcess();
    Options options;
    options.create_if_missing = true;
    options.durability = Durability::kOs;
    const Schema schema = WorkloadSchema(true);
    ASSERT_OK_AND_ASSIGN(const auto store, OpenOn(process, kLabDirectory, options, &schema));
    for (uint64_t key = 0; key < 3; ++key) {
      ASSERT_OK_AND_ASSIGN(newest, store->Put(Doc(key)));
    }
    disk.KillProcess(process);
  }
  disk.Crash(CrashPolicy::DropAll());
  ASSERT_OK_AND_ASSIGN(const auto store, OpenAgain(&disk, Durability::kOs));
  ASSERT_OK_AND_ASSIGN(const Sequence next, store->Put(Doc(9)));
  EXPECT_GT(next, newest);
}

// The fields are committed before the journal goes over to a file with the new schema: a failure there is not theirs.
TEST(FailedStartTest, AddedFieldsAreThereOrNot) {
  for (const SimOp op : {SimOp::kSync, SimOp::kCreate, SimOp::kWrite, SimOp::kRename, SimOp::kSyncDirectory}) {
    for (uint64_t nth = 1; nth < 8; ++nth) {
      SCOPED_TRACE(std::string(env::SimOpName(op)) + " " + std::to_string(nth));
      SimDisk disk(nth);
      ASSERT_OK_AND_ASSIGN(auto store, OpenAgain(&disk));
      ASSERT_OK(store->Put(Doc(1)));
      disk.AddFault(Fault(op, nth, SimFault::Effect::kFails));
      const bool added = store->AddFields({AddedField("extra")}).ok();
      const bool failed_sync = store->GetStats().state == StoreState::kFailedSync;
      EXPECT_EQ(store->schema().IndexOf("extra") >= 0, added);
      disk.ClearFaults();
      if (!failed_sync) EXPECT_OK(store->Put(Doc(2)));
      disk.Crash(CrashPolicy::DropAll());
      ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk));
      if (added || !failed_sync) EXPECT_EQ(store->schema().IndexOf("extra") >= 0, added);
      EXPECT_OK(store->TakeSnapshot().Get("k1"));
      if (!failed_sync) EXPECT_OK(store->TakeSnapshot().Get("k2"));
    }
  }
}

// What a killed process had acknowledged is in the page cache only until something syncs it: Sync and Close do.
TEST(FailedStartTest, SyncAndCloseSecureWhatWasReplayed) {
  for (const bool closes : {false, true}) {
    SimDisk disk(1);
    const env::Env process = disk.NewProcess();
    Options options;
    options.create_if_missing = true;
    options.durability = Durability::kOs;
    const Schema schema = WorkloadSchema(true);
    ASSERT_OK_AND_ASSIGN(auto store, OpenOn(process, kLabDirectory, options, &schema));
    ASSERT_OK(store->Put(Doc(1)));
    disk.KillProcess(process);
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kOs));
    ASSERT_OK(closes ? store->Close() : store->Sync());
    disk.Crash(CrashPolicy::DropAll());
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kOs));
    EXPECT_OK(store->TakeSnapshot().Get("k1"));
  }
}

// A session that recovers, writes nothing and closes must not make others forget what the lost batches were numbered.
TEST(FailedStartTest, ACloseWithoutWritesKeepsTheJumpInNumbering) {
  for (const int writes_behind : {0, 1}) {
    SimDisk disk(1);
    ASSERT_OK_AND_ASSIGN(auto store, OpenAgain(&disk, Durability::kOs));
    ASSERT_OK(store->Put(Doc(1)));
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kOs));
    Sequence last = 0;
    for (uint64_t key = 2; key < 9; ++key) {
      ASSERT_OK_AND_ASSIGN(last, store->Put(Doc(key)));
    }
    disk.Crash(CrashPolicy::DropAll());
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kOs));
    ASSERT_EQ(store->TakeSnapshot().document_count(), 2u) << "the first batch of a session is synced, the others are lost";
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kOs));
    for (int i = 0; i < writes_behind; ++i) {
      ASSERT_OK_AND_ASSIGN(const Sequence next, store->Put(Doc(10)));
      EXPECT_GT(next, last);
      last = next;
    }
    disk.Crash(CrashPolicy::DropAll());
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kSync));
    ASSERT_OK_AND_ASSIGN(const Sequence written, store->Put(Doc(11)));
    EXPECT_GT(written, last);
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(store, OpenAgain(&disk, Durability::kSync));
    EXPECT_EQ(store->TakeSnapshot().document_count(), 3u + static_cast<uint64_t>(writes_behind));
  }
}

// create_if_missing makes no store over the files of one that lost its catalog.
TEST(FailedStartTest, ALostCatalogIsNotMadeAnew) {
  SimDisk disk(1);
  ASSERT_OK_AND_ASSIGN(auto store, OpenAgain(&disk));
  ASSERT_OK(store->Put(Doc(1)));
  ASSERT_OK(store->Flush());
  ASSERT_OK(store->Close());
  const env::Env env = disk.NewProcess();
  size_t kept = 0;
  for (const std::string& name : disk.FileNames()) {
    if (name.find("catalog-") != std::string::npos) {
      ASSERT_OK(env.files->Remove("/" + name));
    } else {
      ++kept;
    }
  }
  EXPECT_CODE(OpenAgain(&disk), kDataLoss);
  EXPECT_EQ(disk.FileNames().size(), kept) << "nothing was made and nothing removed";
}

// A store whose catalog was replaced by an older one: that before the last commit, which made no file, and of which only the
// status page tells; or, with the status page gone, one of some commits before.
class OldCatalog {
 public:
  OldCatalog() : disk_(1) {
    auto store = OpenAgain(&disk_, Durability::kOff);
    EXPECT_OK(store.status());
    Write(store->get(), 1);
    old_ = CatalogFiles();
    Write(store->get(), 2);
    // The file is there before the catalog names it, so one commit more must pass before it proves anything.
    Write(store->get(), 3);
    last_but_one_ = CatalogFiles();
    EXPECT_OK((*store)->AddFields({AddedField("later")}));
    EXPECT_OK((*store)->Close());
    new_ = CatalogFiles();
  }
  void PutOld(bool with_status) {
    Replace(new_, with_status ? last_but_one_ : old_);
    const env::Env env = disk_.NewProcess();
    if (!with_status) EXPECT_OK(env.files->Remove("/store/status"));
    names_ = disk_.FileNames();
    disk_.KillProcess(env);
  }
  void PutNew() {
    Replace(last_but_one_, {});
    Replace(old_, new_);
  }
  bool IsAsItWas() const { return disk_.FileNames() == names_; }
  SimDisk& disk() { return disk_; }

 private:
  using Files = std::vector<std::pair<std::string, ByteBuffer>>;

  // A document more, and one dies in a segment.
  static void Write(Store* store, uint64_t round) {
    EXPECT_OK(store->Put(Doc(10 + round)).status());
    EXPECT_OK(store->Flush());
    EXPECT_OK(store->Put(Doc(10)).status());
    EXPECT_OK(store->Flush());
  }
  Files CatalogFiles() const {
    Files files;
    for (const std::string& name : disk_.FileNames())
      if (name.find("catalog-") != std::string::npos) files.emplace_back("/" + name, *disk_.DurableContents(name));
    return files;
  }
  void Replace(const Files& from, const Files& to) {
    const env::Env env = disk_.NewProcess();
    for (const auto& [name, bytes] : from) env.files->Remove(name).IgnoreError();
    EXPECT_OK(env.files->SyncDirectory("/store"));
    disk_.KillProcess(env);
    for (const auto& [name, bytes] : to) EXPECT_OK(disk_.PutFile(name, bytes));
  }

  SimDisk disk_;
  Files old_, last_but_one_, new_;
  std::vector<std::string> names_;
};

TEST(FailedStartTest, ACatalogThatWentBackIsNoticedAndNothingIsRemoved) {
  for (const bool with_status : {true, false}) {
    OldCatalog store;
    store.PutOld(with_status);
    EXPECT_CODE(OpenAgain(&store.disk()), kDataLoss) << with_status;
    EXPECT_TRUE(store.IsAsItWas());
    store.PutNew();
    ASSERT_OK_AND_ASSIGN(const auto again, OpenAgain(&store.disk()));
    EXPECT_EQ(again->TakeSnapshot().document_count(), 4u);
    EXPECT_GE(again->schema().IndexOf("later"), 0);
  }
  // Each of the two proofs is needed.
  for (const bool with_status : {true, false}) {
    OldCatalog store;
    store.PutOld(with_status);
    DisableSite(with_status ? Site::kCheckStatusGeneration : Site::kOpenOrphanGeneration);
    const bool noticed = !OpenAgain(&store.disk()).ok() && store.IsAsItWas();
    DisableSite(Site::kNone);
    EXPECT_FALSE(noticed) << with_status;
  }
}

}  // namespace
}  // namespace ashlar::testing
