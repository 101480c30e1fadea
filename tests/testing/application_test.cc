// The laboratory as an application uses it: through the public headers only.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "ashlar/testing/crash_lab.h"
#include "ashlar/testing/simulated_disk.h"
#include "tests/support/status_matchers.h"
#include "tests/testing/lab_support.h"

namespace ashlar::testing {
namespace {

Schema RowSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"text"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}}, {"text"}};
  return schema;
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(SimulatedDisk* disk, Durability durability) {
  Options options;
  options.create_if_missing = true;
  options.durability = durability;
  options.journal_file_bytes_min = 4096;
  const Schema schema = RowSchema();
  return disk->Open("/store", options, &schema);
}

std::string Row(uint64_t n) { return "row " + std::string(1, static_cast<char>('a' + n)) + ";"; }
constexpr size_t kRowBytes = 6;

absl::Status Index(Store* store, uint64_t n, const std::string& row) {
  WriteBatch batch;
  batch.Put(Document().Add("id", std::to_string(n)).Add("text", row));
  WriteOptions options;
  options.watermark = std::to_string(n + 1);
  return store->Write(batch, options).status();
}

absl::Status Work(SimulatedDisk* disk, LabProgress* progress, Durability durability, bool sync_rows) {
  auto file = disk->CreateFile("/rows");
  if (!file.ok()) return file.status();
  absl::Status status = disk->SyncDirectory("/");
  auto store = OpenStore(disk, durability);
  if (!store.ok()) return store.status();
  for (uint64_t n = 0; n < 6 && status.ok(); ++n) {
    status = (*file)->Append(Row(n));
    if (status.ok() && sync_rows) status = (*file)->Sync();
    if (status.ok()) status = Index(store->get(), n, Row(n));
    if (status.ok()) progress->Acknowledge(n + 1);
    if (status.ok() && n % 3 == 2) status = (*store)->Flush();
  }
  return status.ok() ? (*store)->Close() : status;
}

absl::Status Recover(SimulatedDisk* disk, uint64_t acknowledged, Durability durability) {
  const absl::StatusOr<std::string> rows = disk->ReadFile("/rows");
  const uint64_t count = rows.ok() ? rows->size() / kRowBytes : 0;
  for (uint64_t n = 0; n < count; ++n)
    if (rows->substr(n * kRowBytes, kRowBytes) != Row(n)) return absl::OkStatus();  // torn: its own checksum's matter
  if (count < acknowledged) return absl::DataLossError("an acknowledged row is lost");
  auto store = OpenStore(disk, durability);
  if (!store.ok()) return store.status();
  const uint64_t first = std::stoull((*store)->TakeSnapshot().watermark().value_or("0"));
  if (first > count) return absl::DataLossError("the store is ahead of the rows");
  for (uint64_t n = first; n < count; ++n)
    if (absl::Status status = Index(store->get(), n, Row(n)); !status.ok()) return status;
  const Snapshot snapshot = (*store)->TakeSnapshot();
  if (snapshot.document_count() != count) return absl::DataLossError("rows and store differ");
  for (uint64_t n = 0; n < count; ++n) {
    const auto document = snapshot.Get(std::to_string(n));
    if (!document.ok()) return document.status();
    if (*document->document.Find("text") != Value(Row(n))) return absl::DataLossError("another row");
  }
  return (*store)->Close();
}

LabApplication RowsApplication(Durability durability, bool sync_rows) {
  LabApplication application;
  application.name = "rows";
  application.workload = [=](SimulatedDisk* disk, LabProgress* progress) {
    Work(disk, progress, durability, sync_rows).IgnoreError();
  };
  application.check = [=](SimulatedDisk* disk, uint64_t acknowledged) { return Recover(disk, acknowledged, durability); };
  return application;
}

// C47: a crash at every step between the application's rows and the store; after sending again from the watermark both
// have the same rows.
TEST(ApplicationTest, C47WatermarkAndRowsAgreeAfterEveryCrash) {
  for (const Durability durability : {Durability::kSync, Durability::kOs, Durability::kOff}) {
    const LabReport report = ExploreApplication({}, RowsApplication(durability, true));
    ExpectNoFindings(report);
    EXPECT_GT(report.states, 150u);
    EXPECT_GT(report.faults, 100u);
  }
}

// An application that forgets a sync is found out.
TEST(ApplicationTest, AForgottenSyncIsFound) {
  const LabReport report = ExploreApplication({}, RowsApplication(Durability::kSync, false));
  EXPECT_FALSE(report.findings.empty());
}

TEST(ApplicationTest, DiskKeepsWhatWasSyncedAndNoMore) {
  SimulatedDisk disk(7);
  ASSERT_OK_AND_ASSIGN(auto file, disk.CreateFile("/file"));
  ASSERT_OK(file->Append("durable"));
  ASSERT_OK(file->Sync());
  ASSERT_OK(disk.SyncDirectory("/"));
  ASSERT_OK(file->Append(" or not"));
  const uint64_t hash = disk.durable_hash();
  const auto none = disk.CrashedCopy(Survivors::None());
  const auto all = disk.CrashedCopy(Survivors::All());
  EXPECT_EQ(*none->ReadFile("/file"), "durable");
  EXPECT_EQ(*all->ReadFile("/file"), "durable or not");
  EXPECT_EQ(none->durable_hash(), hash);
  EXPECT_NE(all->durable_hash(), hash);
  EXPECT_GE(disk.EnumerateCrashes(64).size(), 4u);
  disk.Crash(Survivors::None());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_EQ(*disk.Contents("/file"), "durable");
}

TEST(ApplicationTest, FaultsActOnceAndAreCounted) {
  SimulatedDisk disk(7);
  ASSERT_OK_AND_ASSIGN(auto file, disk.CreateFile("/file"));
  DiskFault fault;
  fault.operation = DiskOperation::kWrite;
  fault.path_contains = "file";
  fault.error = ENOSPC;
  disk.AddFault(fault);
  EXPECT_CODE(file->Append("x"), kResourceExhausted);
  ASSERT_OK(file->WriteAt(0, "abc"));
  fault.operation = DiskOperation::kRead;
  fault.effect = DiskFault::Effect::kFlippedBit;
  disk.AddFault(fault);
  EXPECT_EQ(*disk.ReadFile("/file"), "`bc");
  EXPECT_EQ(*disk.ReadFile("/file"), "abc");
  EXPECT_EQ(disk.counters().faults, 2u);
  ASSERT_OK(disk.PutFile("/other", "0123456789"));
  fault.operation = DiskOperation::kWrite;
  fault.effect = DiskFault::Effect::kMisdirected;
  fault.misdirect_path = "/other";
  fault.misdirect_offset = 4;
  disk.AddFault(fault);
  ASSERT_OK(file->WriteAt(0, "XY"));
  EXPECT_EQ(*disk.ReadFile("/file"), "abc");
  EXPECT_EQ(*disk.ReadFile("/other"), "0123XY6789");
}

TEST(ApplicationTest, KilledProcessesLoseTheirHandlesOnly) {
  SimulatedDisk disk(7);
  ASSERT_OK_AND_ASSIGN(auto store, OpenStore(&disk, Durability::kOs));
  ASSERT_OK(Index(store.get(), 0, Row(0)));
  disk.KillProcess();
  EXPECT_FALSE(Index(store.get(), 1, Row(1)).ok());
  ASSERT_OK_AND_ASSIGN(const auto again, OpenStore(&disk, Durability::kOs));
  EXPECT_EQ(again->TakeSnapshot().document_count(), 1u);
}

}  // namespace
}  // namespace ashlar::testing
