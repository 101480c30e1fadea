// Tests an application with the crash laboratory: it indexes the rows of a file of its own, remembers in the store's
// watermark how far it got, and after a crash sends again what the store does not have.
#include <ashlar/testing/crash_lab.h>
#include <ashlar/testing/simulated_disk.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

namespace {

using ashlar::testing::LabApplication;
using ashlar::testing::LabProgress;
using ashlar::testing::LabReport;
using ashlar::testing::SimulatedDisk;

constexpr uint64_t kRows = 8;
constexpr size_t kRowBytes = 8;
constexpr char kRowsFile[] = "/rows";

ashlar::Schema RowSchema() {
  ashlar::Schema schema;
  schema.key = "id";
  schema.default_group = {"text"};
  schema.fields = {{"id", ashlar::FieldType::kKeyword, true, false, false, {}}, {"text"}};
  return schema;
}

absl::StatusOr<std::unique_ptr<ashlar::Store>> OpenStore(SimulatedDisk* disk) {
  ashlar::Options options;
  options.create_if_missing = true;
  options.durability = ashlar::Durability::kOs;  // the rows are the truth; the store may lag behind them
  const ashlar::Schema schema = RowSchema();
  return disk->Open("/store", options, &schema);
}

// Row n is "row    n", and row 0 the first.
std::string Row(uint64_t n) {
  std::string number = std::to_string(n);
  return "row" + std::string(kRowBytes - 3 - number.size(), ' ') + number;
}

absl::Status Index(ashlar::Store* store, const std::string& row, uint64_t number) {
  ashlar::WriteBatch batch;
  batch.Put(ashlar::Document().Add("id", std::to_string(number)).Add("text", row));
  ashlar::WriteOptions options;
  options.watermark = std::to_string(number + 1);  // rows up to here are in the store
  return store->Write(batch, options).status();
}

// Appends a row durably, then indexes it.
absl::Status Work(SimulatedDisk* disk, LabProgress* progress) {
  auto file = disk->CreateFile(kRowsFile);
  if (!file.ok()) return file.status();
  if (absl::Status status = disk->SyncDirectory("/"); !status.ok()) return status;
  auto store = OpenStore(disk);
  if (!store.ok()) return store.status();
  for (uint64_t n = 0; n < kRows; ++n) {
    absl::Status status = (*file)->Append(Row(n));
    if (status.ok()) status = (*file)->Sync();
    if (status.ok()) status = Index(store->get(), Row(n), n);
    if (!status.ok()) return status;
    progress->Acknowledge(n + 1);
    if (n == kRows / 2) status = (*store)->Flush();
    if (!status.ok()) return status;
  }
  return (*store)->Close();
}

// Every acknowledged row is in the file; after sending again what the watermark does not cover, the store has the same rows.
absl::Status Recover(SimulatedDisk* disk, uint64_t acknowledged) {
  const absl::StatusOr<std::string> rows = disk->ReadFile(kRowsFile);
  const uint64_t count = rows.ok() ? rows->size() / kRowBytes : 0;
  if (count < acknowledged) return absl::DataLossError("an acknowledged row is lost");
  auto store = OpenStore(disk);
  if (!store.ok()) return store.status();
  const uint64_t first = std::stoull((*store)->TakeSnapshot().watermark().value_or("0"));
  if (first > count) return absl::DataLossError("the store is ahead of the rows");
  for (uint64_t n = first; n < count; ++n) {
    if (absl::Status status = Index(store->get(), rows->substr(n * kRowBytes, kRowBytes), n); !status.ok()) return status;
  }
  const ashlar::Snapshot snapshot = (*store)->TakeSnapshot();
  if (snapshot.document_count() != count) return absl::DataLossError("rows and store differ");
  for (uint64_t n = 0; n < count; ++n) {
    const auto document = snapshot.Get(std::to_string(n));
    if (!document.ok()) return document.status();
    if (*document->document.Find("text") != ashlar::Value(rows->substr(n * kRowBytes, kRowBytes)))
      return absl::DataLossError("the store has another row");
  }
  return (*store)->Close();
}

}  // namespace

int main() {
  LabApplication application;
  application.name = "rows";
  application.workload = [](SimulatedDisk* disk, LabProgress* progress) { Work(disk, progress).IgnoreError(); };
  application.check = Recover;
  const LabReport report = ashlar::testing::ExploreApplication({}, application);
  for (const auto& finding : report.findings) std::printf("%s\n", finding.message.c_str());
  std::printf("%llu states, %llu faults, %zu findings\n", static_cast<unsigned long long>(report.states),
              static_cast<unsigned long long>(report.faults), report.findings.size());
  return report.findings.empty() ? 0 : 1;
}
