// A store that went on in two ways from one copy, and a file of one life put into the other: same name, same store, same size,
// other content.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "src/base/site.h"
#include "src/env/sim_env.h"
#include "src/testing/workload.h"
#include "src/testing/workload_runner.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

using env::CrashPolicy;
using env::SimDisk;

Document Doc(uint64_t key) { return WorkloadDocument(WorkloadSchema(true), key, 1, 0); }

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const env::Env& env) {
  Options options;
  options.create_if_missing = true;
  options.journal_file_bytes_min = 4096;
  options.merge_factor = 0;
  const Schema schema = WorkloadSchema(true);
  return OpenOn(env, kLabDirectory, options, &schema);
}

using Life = std::function<absl::Status(Store&)>;

// The store after a common beginning and one of two lives.
std::unique_ptr<SimDisk> Lived(const Life& life, bool second) {
  SimDisk disk(1);
  {
    const env::Env env = disk.NewProcess();
    const auto store = OpenStore(env);
    EXPECT_OK(store.status());
    for (uint64_t key = 1; key <= 4; ++key) EXPECT_OK((*store)->Put(Doc(key)).status());
    EXPECT_OK((*store)->Flush());
    EXPECT_OK((*store)->Close());
  }
  std::unique_ptr<SimDisk> copy = disk.CrashedCopy(CrashPolicy::KeepAll());
  const env::Env env = copy->NewProcess();
  // Or both lives would give their files the same ids.
  std::array<std::byte, 8> spent{};
  if (second) env.entropy->Fill(spent);
  const auto store = OpenStore(env);
  EXPECT_OK(store.status());
  EXPECT_OK(life(**store));
  EXPECT_OK((*store)->Flush());
  EXPECT_OK((*store)->Close());
  copy->KillProcess(env);
  return copy;
}

// The first life's store with a file of the second; `kind` is a part of its name.
std::unique_ptr<SimDisk> Exchanged(const Life& first, const Life& second, const std::string& kind) {
  std::unique_ptr<SimDisk> disk = Lived(first, false);
  const std::unique_ptr<SimDisk> other = Lived(second, true);
  std::string name;
  for (const std::string& file : disk->FileNames())
    if (file.find(kind) != std::string::npos) name = file;  // the newest
  const auto mine = disk->DurableContents(name), others = other->DurableContents(name);
  EXPECT_OK(mine.status());
  EXPECT_OK(others.status());
  EXPECT_EQ(mine->size(), others->size());
  EXPECT_NE(*mine, *others);
  EXPECT_OK(disk->PutFile(name, *others));
  return disk;
}

// OK if the store shows exactly these documents.
absl::Status Shows(SimDisk* disk, const std::vector<uint64_t>& keys) {
  const auto store = OpenStore(disk->NewProcess());
  if (!store.ok()) return store.status();
  const Snapshot snapshot = (*store)->TakeSnapshot();
  size_t documents = 0;
  const absl::Status scanned = snapshot.Scan(Snapshot::Order::kKey, [&documents](const StoredDocument&) {
    ++documents;
    return true;
  });
  if (!scanned.ok()) return scanned;
  for (const uint64_t key : keys)
    if (const auto got = snapshot.Get("k" + std::to_string(key)); !got.ok()) return got.status();
  return documents == keys.size() ? absl::OkStatus() : absl::InternalError("other documents");
}

TEST(OtherLifeTest, ADeathsFile) {
  const Life first = [](Store& store) { return store.Delete("k1").status(); };
  const Life second = [](Store& store) { return store.Delete("k2").status(); };
  EXPECT_OK(Shows(Lived(first, false).get(), {2, 3, 4}));
  EXPECT_CODE(Shows(Exchanged(first, second, "deaths").get(), {2, 3, 4}), kDataLoss);
  DisableSite(Site::kCheckDeathsIdentity);
  const absl::Status believed = Shows(Exchanged(first, second, "deaths").get(), {2, 3, 4});
  DisableSite(Site::kNone);
  EXPECT_FALSE(believed.ok() || absl::IsDataLoss(believed)) << "the wrong document is dead";
}

TEST(OtherLifeTest, ASegment) {
  const Life first = [](Store& store) { return store.Put(Doc(5)).status(); };
  const Life second = [](Store& store) { return store.Put(Doc(6)).status(); };
  EXPECT_OK(Shows(Lived(first, false).get(), {1, 2, 3, 4, 5}));
  EXPECT_CODE(Shows(Exchanged(first, second, "segment").get(), {1, 2, 3, 4, 5}), kDataLoss);
  DisableSite(Site::kCheckSegmentIdentity);
  const absl::Status believed = Shows(Exchanged(first, second, "segment").get(), {1, 2, 3, 4, 5});
  DisableSite(Site::kNone);
  EXPECT_FALSE(believed.ok() || absl::IsDataLoss(believed)) << "another document is there";
}

}  // namespace
}  // namespace ashlar::testing
