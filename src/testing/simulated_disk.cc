#include "ashlar/testing/simulated_disk.h"

#include <utility>

#include "src/base/bytes.h"
#include "src/base/status.h"
#include "src/env/sim_env.h"
#include "src/testing/workload_runner.h"

namespace ashlar::testing {
namespace {

std::string ToString(const ByteBuffer& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The public lists are the environment's, in its order.
static_assert(static_cast<int>(DiskOperation::kLink) == static_cast<int>(env::SimOp::kLink));
static_assert(static_cast<int>(DiskOperation::kCreate) == static_cast<int>(env::SimOp::kCreate));
static_assert(static_cast<int>(DiskFault::Effect::kMisdirected) == static_cast<int>(env::SimFault::Effect::kMisdirected));

std::shared_ptr<const env::CrashPolicy> Share(env::CrashPolicy policy) {
  return std::make_shared<const env::CrashPolicy>(std::move(policy));
}

}  // namespace

Survivors Survivors::All() { return Survivors(Share(env::CrashPolicy::KeepAll())); }
Survivors Survivors::None() { return Survivors(Share(env::CrashPolicy::DropAll())); }
Survivors Survivors::Random(uint64_t seed) { return Survivors(Share(env::CrashPolicy::Random(seed))); }
std::string Survivors::Text() const { return env::CrashPolicyText(*policy_); }

SimulatedFile::SimulatedFile(std::unique_ptr<env::WritableFile> file) : file_(std::move(file)) {}
SimulatedFile::~SimulatedFile() = default;
absl::Status SimulatedFile::Append(std::string_view bytes) { return file_->Append(AsBytes(bytes)); }
absl::Status SimulatedFile::WriteAt(uint64_t offset, std::string_view bytes) {
  return file_->WriteAt(offset, AsBytes(bytes));
}
absl::Status SimulatedFile::Truncate(uint64_t size) { return file_->Truncate(size); }
absl::Status SimulatedFile::Sync() { return file_->Sync(); }
uint64_t SimulatedFile::size() const { return file_->size(); }

struct SimulatedDisk::Process {
  env::Env env;
};

SimulatedDisk::SimulatedDisk(uint64_t seed) : disk_(std::make_unique<env::SimDisk>(seed)) {}
SimulatedDisk::SimulatedDisk(std::unique_ptr<env::SimDisk> disk) : disk_(std::move(disk)) {}
SimulatedDisk::~SimulatedDisk() = default;

SimulatedDisk::Process& SimulatedDisk::process() {
  if (process_ == nullptr) process_ = std::make_unique<Process>(Process{disk_->NewProcess()});
  return *process_;
}

absl::StatusOr<std::unique_ptr<Store>> SimulatedDisk::Open(const std::string& directory, const Options& options,
                                                           const Schema* schema) {
  return OpenOn(process().env, directory, options, schema);
}

absl::StatusOr<std::unique_ptr<SimulatedFile>> SimulatedDisk::CreateFile(const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(auto file, process().env.files->CreateFile(path));
  return std::make_unique<SimulatedFile>(std::move(file));
}

absl::StatusOr<std::unique_ptr<SimulatedFile>> SimulatedDisk::OpenFile(const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(auto file, process().env.files->OpenForWrite(path));
  return std::make_unique<SimulatedFile>(std::move(file));
}

absl::StatusOr<std::string> SimulatedDisk::ReadFile(const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, env::ReadFile(*process().env.files, path));
  return ToString(bytes);
}

absl::StatusOr<bool> SimulatedDisk::Exists(const std::string& path) { return process().env.files->Exists(path); }
absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  return process().env.files->Rename(from, to);
}
absl::Status SimulatedDisk::Remove(const std::string& path) { return process().env.files->Remove(path); }
absl::Status SimulatedDisk::CreateDirectory(const std::string& path) {
  return process().env.files->CreateDirectory(path);
}
absl::Status SimulatedDisk::SyncDirectory(const std::string& path) { return process().env.files->SyncDirectory(path); }

absl::StatusOr<std::vector<std::string>> SimulatedDisk::List(const std::string& directory) {
  ASHLAR_ASSIGN_OR_RETURN(const auto entries, process().env.files->List(directory));
  std::vector<std::string> names;
  for (const env::FileSystem::DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

void SimulatedDisk::KillProcess() {
  if (process_ != nullptr) disk_->KillProcess(process_->env);
  process_.reset();
}

void SimulatedDisk::CutPower() { disk_->CutPower(); }
void SimulatedDisk::CutPowerAtStep(std::optional<uint64_t> step) { disk_->CutPowerAtStep(step); }
bool SimulatedDisk::power_is_cut() const { return disk_->power_is_cut(); }

void SimulatedDisk::Crash(const Survivors& survivors) {
  process_.reset();
  disk_->Crash(*survivors.policy_);
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::CrashedCopy(const Survivors& survivors) const {
  return std::make_unique<SimulatedDisk>(disk_->CrashedCopy(*survivors.policy_));
}

std::vector<Survivors> SimulatedDisk::EnumerateCrashes(size_t survivors_max) const {
  std::vector<Survivors> all;
  for (env::CrashPolicy& policy : disk_->EnumerateCrashes(survivors_max)) all.push_back(Survivors(Share(std::move(policy))));
  return all;
}

void SimulatedDisk::SetObserver(std::function<void()> observer) {
  if (!observer) return disk_->SetObserver(nullptr);
  disk_->SetObserver([call = std::move(observer)](const env::SimOperation&) { call(); });
}

void SimulatedDisk::AddFault(const DiskFault& fault) {
  env::SimFault inner;
  if (fault.operation.has_value()) inner.op = static_cast<env::SimOp>(*fault.operation);
  inner.path_contains = fault.path_contains;
  inner.nth = fault.nth;
  inner.times = fault.times;
  inner.error = fault.error;
  inner.effect = static_cast<env::SimFault::Effect>(fault.effect);
  inner.bit = fault.bit;
  inner.misdirect_path = fault.misdirect_path;
  inner.misdirect_offset = fault.misdirect_offset;
  if (fault.sync_keeps) inner.sync_loss = env::CrashPolicy::KeepAll();
  disk_->AddFault(std::move(inner));
}

void SimulatedDisk::ClearFaults() { disk_->ClearFaults(); }
void SimulatedDisk::SetCapacity(uint64_t bytes_max, int error) { disk_->SetCapacity(bytes_max, error); }
uint64_t SimulatedDisk::used_bytes() const { return disk_->used_bytes(); }
void SimulatedDisk::SetOpenFilesMax(uint64_t files_max) { disk_->SetOpenFilesMax(files_max); }

absl::Status SimulatedDisk::FlipBit(const std::string& path, uint64_t bit) { return disk_->FlipBit(path, bit); }
absl::Status SimulatedDisk::TruncateFile(const std::string& path, uint64_t size) {
  return disk_->TruncateFile(path, size);
}
absl::Status SimulatedDisk::PutFile(const std::string& path, std::string_view bytes) {
  return disk_->PutFile(path, AsBytes(bytes));
}

void SimulatedDisk::AdvanceClock(uint64_t ns) { disk_->AdvanceClock(ns); }
void SimulatedDisk::JumpWallClock(int64_t ms) { disk_->JumpWallClock(ms); }

absl::StatusOr<std::string> SimulatedDisk::Contents(const std::string& path) const {
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, disk_->Contents(path));
  return ToString(bytes);
}

absl::StatusOr<std::string> SimulatedDisk::DurableContents(const std::string& path) const {
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, disk_->DurableContents(path));
  return ToString(bytes);
}

std::vector<std::string> SimulatedDisk::FileNames() const { return disk_->FileNames(); }
uint64_t SimulatedDisk::steps() const { return disk_->steps(); }
uint64_t SimulatedDisk::trace_hash() const { return disk_->trace_hash(); }
uint64_t SimulatedDisk::durable_hash() const { return disk_->DurableHash(); }

DiskCounters SimulatedDisk::counters() const {
  const env::SimCounters c = disk_->counters();
  return {c.reads,   c.bytes_read, c.writes,  c.bytes_written, c.syncs,  c.directory_syncs,
          c.creates, c.renames,    c.removes, c.faults,        c.crashes};
}

}  // namespace ashlar::testing
