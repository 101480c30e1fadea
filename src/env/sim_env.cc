#include "src/env/sim_env.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/env/env_error.h"
#include "src/env/path.h"

namespace ashlar::env {
namespace {

using sim::Entries;
using sim::EntryChange;
using sim::Node;
using sim::NodePtr;

constexpr uint64_t kSizeMax = uint64_t{1} << 36;  // the table of pages is real memory
constexpr int64_t kFirstWallMs = 1'700'000'000'000;

absl::Status PowerLost(const std::string& path) {
  return WithPlace(Internal(absl::StrCat(path, ": the simulated machine has stopped")), path, "",
                   0);
}

// A path's directory and last part.
struct Place {
  NodePtr directory;
  std::string name;
  NodePtr node;  // null: nothing of that name
};

}  // namespace

const char* SimOpName(SimOp op) {
  static constexpr std::array<const char*, 16> kNames = {
      "open",           "read",     "map",       "stat",   "list",   "create",
      "write",          "truncate", "sync",      "rename", "remove", "create directory",
      "sync directory", "lock",     "map shared", "link"};
  return kNames[static_cast<size_t>(op)];
}

class SimProcess;

// Everything there is, behind one mutex. Handles share it, so they may outlive the disk. A name
// that ends in Locked wants the mutex held.
class SimCore : public std::enable_shared_from_this<SimCore> {
 public:
  explicit SimCore(uint64_t seed)
      : seed_(seed),
        image_(sim::NewImage()),
        fault_prng_(seed ^ 0x6661756c74ull),
        time_prng_(seed ^ 0x74696d65ull),
        entropy_prng_(seed ^ 0x656e74726f7079ull) {}

  ~SimCore();

  // What Begin decided: `before` not OK: do nothing and return it; else do the work and return
  // `after`.
  struct Verdict {
    absl::Status before;
    absl::Status after;
    bool interrupted = false;
    const SimFault* fault = nullptr;  // that made `before` or `after` fail, or acts otherwise
  };
  Verdict BeginLocked(uint64_t process, SimOp op, const std::string& path, uint64_t offset = 0,
                      uint64_t length = 0);

  absl::StatusOr<Place> FindLocked(const std::string& path, SimOp op) const;
  absl::StatusOr<NodePtr> FindFileLocked(const std::string& path, SimOp op) const;
  NodePtr CreateLocked(const Place& place, bool is_directory) {
    NodePtr node = sim::NewNode(image_, is_directory);
    sim::ChangeEntries(image_, EntryChange{{{place.directory, place.name, node}}});
    return node;
  }
  absl::Status CheckOpenLocked(uint64_t process, const std::string& path);
  void CountClosed(uint64_t process);
  absl::Status WriteLocked(uint64_t process, const std::string& path, const NodePtr& file,
                           uint64_t offset, ByteSpan bytes);
  absl::Status ResizeLocked(const std::string& path, Node& file, uint64_t size);
  absl::Status SyncLocked(uint64_t process, const std::string& path, Node& file);
  void MixBytesLocked(ByteSpan bytes) { trace_hash_ = Checksum(bytes, trace_hash_); }
  void KillLocked(uint64_t process);
  void CrashLocked(const CrashPolicy& policy);
  void ReleasePage(const NodePtr& file);
  void ReleaseLock(uint64_t process, const NodePtr& file);
  std::shared_ptr<SimCore> Copy(const CrashPolicy& policy) const;
  uint64_t TickLocked() { return elapsed_ns_ += 1 + time_prng_.Below(100); }

  mutable std::recursive_mutex mutex_;  // the observer looks at the disk in the middle of a call
  const uint64_t seed_;
  sim::Image image_;

  std::map<uint64_t, uint64_t> open_files_;  // by living process
  uint64_t next_process_ = 1;
  std::vector<std::unique_ptr<SimProcess>> processes_;  // dead ones too: their Env stays valid

  bool power_cut_ = false;
  std::optional<uint64_t> cut_at_step_;
  std::vector<std::unique_ptr<SimFault>> faults_;  // nth and times count down
  uint64_t capacity_ = UINT64_MAX;
  int capacity_error_ = ENOSPC;
  uint64_t open_files_max_ = UINT64_MAX;
  SimDisk::Hook hook_;
  SimDisk::Observer observer_;
  bool observing_ = false;

  uint64_t operations_ = 0;
  uint64_t steps_ = 0;
  uint64_t trace_hash_ = 0;
  SimCounters counters_;

  Prng fault_prng_;
  Prng time_prng_;
  Prng entropy_prng_;
  uint64_t elapsed_ns_ = 1;
  uint64_t booted_ns_ = 0;
  int64_t wall_jump_ms_ = 0;

 private:
  void AdvanceLocked(const SimOperation& operation);
  SimFault* MatchLocked(const SimOperation& operation);
};

// ------------------------------------------------------------------------------------------------
// Core

void SimCore::AdvanceLocked(const SimOperation& operation) {
  std::array<std::byte, 25> numbers{};
  numbers[0] = static_cast<std::byte>(operation.op);
  StoreU64(numbers.data() + 1, operation.offset);
  StoreU64(numbers.data() + 9, operation.length);
  StoreU64(numbers.data() + 17, operation.step);
  MixBytesLocked(numbers);
  MixBytesLocked(AsBytes(operation.path));
  elapsed_ns_ += 500 + time_prng_.Below(operation.op == SimOp::kSync ? 200'000 : 2'000);
}

// Some effects are for some operations only.
bool CanAct(SimFault::Effect effect, SimOp op) {
  switch (effect) {
    case SimFault::Effect::kInterrupted:
      return op == SimOp::kWrite || op == SimOp::kRead;
    case SimFault::Effect::kFlippedBit:
      return op == SimOp::kRead || op == SimOp::kMap;
    case SimFault::Effect::kMisdirected:
      return op == SimOp::kWrite;
    case SimFault::Effect::kFails:
    case SimFault::Effect::kFailsAfterwards:
      break;
  }
  return true;
}
bool IsFailure(SimFault::Effect effect) {
  return effect == SimFault::Effect::kFails || effect == SimFault::Effect::kFailsAfterwards;
}

// Every fault that matches counts down; the first that is due acts.
SimFault* SimCore::MatchLocked(const SimOperation& operation) {
  SimFault* due = nullptr;
  for (const auto& fault : faults_) {
    if (fault->times == 0 || (fault->op.has_value() && *fault->op != operation.op) ||
        operation.path.find(fault->path_contains) == std::string::npos) {
      continue;
    }
    if (!CanAct(fault->effect, operation.op)) continue;  // and is not counted
    if (fault->nth > 1) {
      --fault->nth;
    } else if (due == nullptr) {
      if (fault->times != UINT64_MAX) --fault->times;
      due = fault.get();
    }
  }
  return due;
}

SimCore::Verdict SimCore::BeginLocked(uint64_t process, SimOp op, const std::string& path,
                                      uint64_t offset, uint64_t length) {
  Verdict verdict;
  if (power_cut_ || open_files_.count(process) == 0) {
    verdict.before = PowerLost(path);
    return verdict;
  }
  const SimOperation operation = {op, operations_, steps_, path, offset, length};
  if (observer_ && IsStep(op) && !observing_) {
    observing_ = true;
    observer_(operation);
    observing_ = false;
  }
  if (IsStep(op) && cut_at_step_ == steps_) {
    power_cut_ = true;
    verdict.before = PowerLost(path);
    return verdict;
  }
  const SimDisk::Decision decision = hook_ ? hook_(operation) : SimDisk::Decision{};
  if (decision.cut_power) {
    power_cut_ = true;
    verdict.before = PowerLost(path);
    return verdict;
  }
  ++operations_;
  if (IsStep(op)) ++steps_;
  AdvanceLocked(operation);
  SimFault* const fault = MatchLocked(operation);
  int error = decision.error;
  if (error == 0 && fault != nullptr && IsFailure(fault->effect)) error = fault->error;
  if (error != 0) {
    const bool done = decision.error == 0 && fault->effect == SimFault::Effect::kFailsAfterwards;
    (done ? verdict.after : verdict.before) = EnvError(error, SimOpName(op), path);
    MixBytesLocked(AsBytes("failed"));
  }
  if (decision.error == 0) verdict.fault = fault;
  verdict.interrupted = fault != nullptr && fault->effect == SimFault::Effect::kInterrupted;
  if (error != 0 || fault != nullptr) ++counters_.faults;
  return verdict;
}

absl::StatusOr<Place> SimCore::FindLocked(const std::string& path, SimOp op) const {
  std::vector<std::string> parts = SplitPath(path);
  if (parts.empty()) return Place{image_.root, "", image_.root};
  Place place;
  place.name = std::move(parts.back());
  parts.pop_back();
  place.directory = sim::Lookup(image_, parts);
  if (place.directory == nullptr) return EnvError(ENOENT, SimOpName(op), path);
  if (!place.directory->is_directory) return EnvError(ENOTDIR, SimOpName(op), path);
  const auto it = place.directory->entries.find(place.name);
  if (it != place.directory->entries.end()) place.node = it->second;
  return place;
}

absl::StatusOr<NodePtr> SimCore::FindFileLocked(const std::string& path, SimOp op) const {
  ASHLAR_ASSIGN_OR_RETURN(const Place place, FindLocked(path, op));
  if (place.node == nullptr) return EnvError(ENOENT, SimOpName(op), path);
  if (place.node->is_directory) return EnvError(EISDIR, SimOpName(op), path);
  return place.node;
}

absl::Status SimCore::CheckOpenLocked(uint64_t process, const std::string& path) {
  if (open_files_.at(process) < open_files_max_) return absl::OkStatus();
  ++counters_.faults;
  return EnvError(EMFILE, "open", path);
}

void SimCore::CountClosed(uint64_t process) {
  const std::lock_guard<std::recursive_mutex> guard(mutex_);
  const auto it = open_files_.find(process);
  if (it != open_files_.end()) --it->second;  // else the process died with all its files
}

// Writes what fits; a fault or a full disk may leave a prefix.
absl::Status SimCore::WriteLocked(uint64_t process, const std::string& path, const NodePtr& file,
                                  uint64_t offset, ByteSpan bytes) {
  if (offset > kSizeMax || bytes.size() > kSizeMax - offset) return EnvError(EFBIG, "write", path);
  for (;;) {
    const Verdict verdict = BeginLocked(process, SimOp::kWrite, path, offset, bytes.size());
    ByteSpan piece = bytes;
    absl::Status result = verdict.after;
    if (!verdict.before.ok()) {
      result = verdict.before;
      piece =
          verdict.fault != nullptr ? bytes.first(fault_prng_.Below(bytes.size() + 1)) : ByteSpan();
    } else if (verdict.interrupted && bytes.size() > 1) {
      piece = bytes.first(1 + fault_prng_.Below(bytes.size() - 1));
    }
    sim::AbsorbPage(*file);
    const uint64_t size = file->current.size();
    if (capacity_ != UINT64_MAX && offset + piece.size() > size) {
      const uint64_t used = sim::UsedBytes(image_);
      const uint64_t end = size + (capacity_ > used ? capacity_ - used : 0);
      if (offset + piece.size() > end) {
        ++counters_.faults;
        result = EnvError(capacity_error_, "write", path);
        piece = piece.first(end > offset ? static_cast<size_t>(end - offset) : 0);
      }
    }
    if (!piece.empty()) {
      MixBytesLocked(piece);
      NodePtr target = file;
      uint64_t target_offset = offset;
      if (verdict.fault != nullptr && verdict.fault->effect == SimFault::Effect::kMisdirected) {
        target_offset = verdict.fault->misdirect_offset;
        if (!verdict.fault->misdirect_path.empty()) {
          const absl::StatusOr<NodePtr> other =
              FindFileLocked(verdict.fault->misdirect_path, SimOp::kWrite);
          target = other.ok() ? *other : nullptr;
        }
      }
      if (target != nullptr) {
        sim::AbsorbPage(*target);
        sim::WriteFile(*target, target_offset, piece);
        sim::RefreshPage(*target);
      }
    }
    ++counters_.writes;
    counters_.bytes_written += piece.size();
    if (!result.ok() || piece.size() == bytes.size()) return result;
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

absl::Status SimCore::ResizeLocked(const std::string& path, Node& file, uint64_t size) {
  sim::AbsorbPage(file);
  const uint64_t old = file.current.size();
  if (size > old && capacity_ != UINT64_MAX) {
    const uint64_t used = sim::UsedBytes(image_);
    if (used > capacity_ || size - old > capacity_ - used) {
      ++counters_.faults;
      return EnvError(capacity_error_, "truncate", path);
    }
  }
  if (size != old) sim::ResizeFile(file, size);
  return absl::OkStatus();
}

absl::Status SimCore::SyncLocked(uint64_t process, const std::string& path, Node& file) {
  const Verdict verdict = BeginLocked(process, SimOp::kSync, path);
  sim::AbsorbPage(file);
  if (!verdict.before.ok()) {
    if (verdict.fault != nullptr) {
      // The reason why a failed sync is final: the kernel calls the pages clean, and the next sync
      // has nothing to say.
      CrashPolicy loss = verdict.fault->sync_loss;
      loss.seed ^= fault_prng_.Next();
      sim::FailSync(file, loss);
    }
    return verdict.before;
  }
  sim::SyncFile(file);
  ++counters_.syncs;
  return verdict.after;
}

void SimCore::KillLocked(uint64_t process) {
  open_files_.erase(process);
  std::vector<Node*> open = {image_.root.get()};
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    if (node->lock_process == process) node->lock_process = 0;
    for (const auto& [name, child] : node->entries) open.push_back(child.get());
  }
}

void SimCore::CrashLocked(const CrashPolicy& policy) {
  sim::AbsorbAllPages(image_);
  image_ = sim::Survivors(image_, policy);
  open_files_.clear();
  power_cut_ = false;
  cut_at_step_.reset();
  faults_.clear();
  hook_ = nullptr;
  observer_ = nullptr;
  booted_ns_ = elapsed_ns_;
  ++counters_.crashes;
  std::array<std::byte, 16> what{};
  StoreU64(what.data(), static_cast<uint64_t>(policy.kind));
  StoreU64(what.data() + 8, policy.seed);
  MixBytesLocked(what);
}

std::shared_ptr<SimCore> SimCore::Copy(const CrashPolicy& policy) const {
  auto copy = std::make_shared<SimCore>(seed_);
  const std::lock_guard<std::recursive_mutex> guard(mutex_);
  sim::AbsorbAllPages(image_);
  copy->image_ = sim::Survivors(image_, policy);
  copy->capacity_ = capacity_;
  copy->capacity_error_ = capacity_error_;
  copy->open_files_max_ = open_files_max_;
  copy->operations_ = operations_;
  copy->steps_ = steps_;
  copy->trace_hash_ = trace_hash_;
  copy->counters_ = counters_;
  ++copy->counters_.crashes;
  copy->fault_prng_ = fault_prng_;
  copy->time_prng_ = time_prng_;
  copy->entropy_prng_ = entropy_prng_;
  copy->elapsed_ns_ = elapsed_ns_;
  copy->booted_ns_ = elapsed_ns_;
  copy->wall_jump_ms_ = wall_jump_ms_;
  return copy;
}

void SimCore::ReleasePage(const NodePtr& file) {
  const std::lock_guard<std::recursive_mutex> guard(mutex_);
  // After a crash this is a node of the old image: harmless.
  sim::AbsorbPage(*file);
  if (--file->page_users == 0) file->page.reset();
}

void SimCore::ReleaseLock(uint64_t process, const NodePtr& file) {
  const std::lock_guard<std::recursive_mutex> guard(mutex_);
  // A killed process has lost its lock already, and another may hold it now.
  if (file->lock_process == process) file->lock_process = 0;
}

// ------------------------------------------------------------------------------------------------
// Handles

namespace {

void FlipOneBit(std::span<std::byte> bytes, uint64_t bit) {
  if (bytes.empty()) return;
  bit %= bytes.size() * 8;
  bytes[static_cast<size_t>(bit / 8)] ^= std::byte{1} << (bit % 8);
}

class SimWritableFile : public WritableFile {
 public:
  SimWritableFile(std::shared_ptr<SimCore> core, uint64_t process, std::string path, NodePtr file)
      : core_(std::move(core)), process_(process), path_(std::move(path)), file_(std::move(file)) {}
  ~SimWritableFile() override {
    if (open_) core_->CountClosed(process_);
  }

  absl::Status WriteAt(uint64_t offset, ByteSpan bytes) override {
    if (!open_) return ClosedError(path_);
    if (bytes.empty()) return absl::OkStatus();
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    return core_->WriteLocked(process_, path_, file_, offset, bytes);
  }
  absl::Status Append(ByteSpan bytes) override { return WriteAt(size(), bytes); }
  absl::Status Sync() override {
    if (!open_) return ClosedError(path_);
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    return core_->SyncLocked(process_, path_, *file_);
  }
  absl::Status Truncate(uint64_t size) override {
    if (!open_) return ClosedError(path_);
    if (size > kSizeMax) return EnvError(EFBIG, "truncate", path_);
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    const auto verdict = core_->BeginLocked(process_, SimOp::kTruncate, path_, size);
    if (!verdict.before.ok()) return verdict.before;
    ASHLAR_RETURN_IF_ERROR(core_->ResizeLocked(path_, *file_, size));
    return verdict.after;
  }
  uint64_t size() const override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    return file_->current.size();
  }
  absl::Status Close() override {
    if (std::exchange(open_, false)) core_->CountClosed(process_);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<SimCore> core_;
  const uint64_t process_;
  const std::string path_;
  const NodePtr file_;
  bool open_ = true;
};

class SimRegion : public MappedRegion {
 public:
  SimRegion(std::shared_ptr<SimCore> core, uint64_t process, std::string path, NodePtr file,
            std::shared_ptr<const PageBuffer> bytes)
      : core_(std::move(core)),
        process_(process),
        path_(std::move(path)),
        file_(std::move(file)),
        bytes_(std::move(bytes)) {}

  const std::byte* data() const override { return bytes_->data(); }
  uint64_t size() const override { return bytes_->size(); }
  absl::Status Populate(uint64_t offset, uint64_t length) const override {
    if (offset > size() || length > size() - offset)
      return OutsideMappingError(path_, offset, length, size());
    if (length == 0) return absl::OkStatus();
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    const auto verdict = core_->BeginLocked(process_, SimOp::kRead, path_, offset, length);
    if (!verdict.before.ok()) return verdict.before;
    if (file_->current.size() < size())
      return ShortenedError(path_, offset, size(), file_->current.size());
    ++core_->counters_.reads;
    core_->counters_.bytes_read += length;
    return verdict.after;
  }

 private:
  const std::shared_ptr<SimCore> core_;
  const uint64_t process_;
  const std::string path_;
  const NodePtr file_;
  const std::shared_ptr<const PageBuffer> bytes_;
};

class SimReadableFile : public ReadableFile {
 public:
  SimReadableFile(std::shared_ptr<SimCore> core, uint64_t process, std::string path, NodePtr file)
      : core_(std::move(core)), process_(process), path_(std::move(path)), file_(std::move(file)) {}
  ~SimReadableFile() override { core_->CountClosed(process_); }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    for (size_t done = 0;;) {
      const std::span<std::byte> rest = out.subspan(done);
      const auto verdict =
          core_->BeginLocked(process_, SimOp::kRead, path_, offset + done, rest.size());
      if (!verdict.before.ok()) return verdict.before;
      if (!verdict.after.ok()) return verdict.after;
      const size_t wanted = verdict.interrupted && rest.size() > 1
                                ? 1 + static_cast<size_t>(core_->fault_prng_.Below(rest.size() - 1))
                                : rest.size();
      const size_t n = ReadOnceLocked(offset + done, rest.first(wanted), verdict.fault);
      done += n;
      if (n < wanted || done == out.size()) return done;
    }
  }
  absl::StatusOr<uint64_t> Size() const override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    const auto verdict = core_->BeginLocked(process_, SimOp::kStat, path_);
    if (!verdict.before.ok()) return verdict.before;
    if (!verdict.after.ok()) return verdict.after;
    return file_->current.size();
  }
  absl::StatusOr<std::unique_ptr<MappedRegion>> Map() const override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    const auto verdict = core_->BeginLocked(process_, SimOp::kMap, path_);
    if (!verdict.before.ok()) return verdict.before;
    if (!verdict.after.ok()) return verdict.after;
    sim::AbsorbPage(*file_);
    std::shared_ptr<const PageBuffer> bytes = file_->mapping.lock();
    const bool flips =
        verdict.fault != nullptr && verdict.fault->effect == SimFault::Effect::kFlippedBit;
    if (bytes == nullptr || flips) {
      auto copy = std::make_shared<PageBuffer>(static_cast<size_t>(file_->current.size()));
      file_->current.Read(0, *copy);
      if (flips) FlipOneBit(*copy, verdict.fault->bit);
      bytes = std::move(copy);
      if (!flips) file_->mapping = bytes;
    }
    return std::make_unique<SimRegion>(core_, process_, path_, file_, std::move(bytes));
  }

 private:
  size_t ReadOnceLocked(uint64_t offset, std::span<std::byte> out, const SimFault* fault) const {
    sim::AbsorbPage(*file_);
    const uint64_t size = file_->current.size();
    const size_t n =
        offset >= size ? 0 : static_cast<size_t>(std::min<uint64_t>(out.size(), size - offset));
    if (n > 0) file_->current.Read(offset, out.first(n));
    if (fault != nullptr && fault->effect == SimFault::Effect::kFlippedBit) {
      FlipOneBit(out.first(n), fault->bit);
    }
    core_->MixBytesLocked(out.first(n));
    ++core_->counters_.reads;
    core_->counters_.bytes_read += n;
    return n;
  }

  const std::shared_ptr<SimCore> core_;
  const uint64_t process_;
  const std::string path_;
  const NodePtr file_;
};

class SimLock : public FileLock {
 public:
  SimLock(std::shared_ptr<SimCore> core, uint64_t process, NodePtr file)
      : core_(std::move(core)), process_(process), file_(std::move(file)) {}
  ~SimLock() override { core_->ReleaseLock(process_, file_); }

 private:
  const std::shared_ptr<SimCore> core_;
  const uint64_t process_;
  const NodePtr file_;
};

class SimPage : public SharedPage {
 public:
  SimPage(std::shared_ptr<SimCore> core, NodePtr file, std::shared_ptr<PageBuffer> bytes,
          size_t size, bool writable)
      : core_(std::move(core)),
        file_(std::move(file)),
        bytes_(std::move(bytes)),
        size_(size),
        writable_(writable) {}
  ~SimPage() override { core_->ReleasePage(file_); }

  std::byte* data() override { return writable_ ? bytes_->data() : nullptr; }
  const std::byte* data() const override { return bytes_->data(); }
  size_t size() const override { return size_; }

 private:
  const std::shared_ptr<SimCore> core_;
  const NodePtr file_;
  const std::shared_ptr<PageBuffer> bytes_;
  const size_t size_;
  const bool writable_;
};

}  // namespace

// ------------------------------------------------------------------------------------------------
// Processes

namespace {

// Owned by the core, which the handles own; so no ownership here.
class SimFiles : public FileSystem {
 public:
  SimFiles(SimCore* core, uint64_t process) : core_(core), process_(process) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    return Open<WritableFile, SimWritableFile>(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) override {
    return Open<ReadableFile, SimReadableFile>(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<uint64_t> FileSize(const std::string& path) override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    ASHLAR_RETURN_IF_ERROR(LookLocked(SimOp::kStat, path));
    ASHLAR_ASSIGN_OR_RETURN(const NodePtr file, core_->FindFileLocked(path, SimOp::kStat));
    return file->current.size();
  }
  absl::StatusOr<bool> Exists(const std::string& path) override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    ASHLAR_RETURN_IF_ERROR(LookLocked(SimOp::kStat, path));
    return sim::Lookup(core_->image_, SplitPath(path)) != nullptr;
  }
  absl::StatusOr<uint64_t> AvailableBytes(const std::string& path) override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    ASHLAR_RETURN_IF_ERROR(LookLocked(SimOp::kStat, path));
    if (sim::Lookup(core_->image_, SplitPath(path)) == nullptr) {
      return EnvError(ENOENT, "statvfs", path);
    }
    if (core_->capacity_ == UINT64_MAX) return UINT64_MAX;
    const uint64_t used = sim::UsedBytes(core_->image_);
    return core_->capacity_ > used ? core_->capacity_ - used : 0;
  }
  absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& directory) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
  absl::StatusOr<bool> IsLocked(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<SharedPage>> MapShared(const std::string& path, size_t size,
                                                        bool writable) override;
  std::string NativePath(const std::string&) const override { return ""; }

 private:
  SimCore::Verdict BeginLocked(SimOp op, const std::string& path) {
    return core_->BeginLocked(process_, op, path);
  }
  // For operations without effect: failing before or afterwards is the same.
  absl::Status LookLocked(SimOp op, const std::string& path) {
    const SimCore::Verdict verdict = BeginLocked(op, path);
    return verdict.before.ok() ? verdict.after : verdict.before;
  }
  absl::StatusOr<NodePtr> FindDirectoryLocked(const std::string& path, SimOp op) {
    ASHLAR_ASSIGN_OR_RETURN(Place place, core_->FindLocked(path, op));
    if (place.node == nullptr) return EnvError(ENOENT, SimOpName(op), path);
    if (!place.node->is_directory) return EnvError(ENOTDIR, SimOpName(op), path);
    return std::move(place.node);
  }

  template <class Interface, class Handle>
  absl::StatusOr<std::unique_ptr<Interface>> Open(const std::string& path) {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    ASHLAR_RETURN_IF_ERROR(LookLocked(SimOp::kOpen, path));
    ASHLAR_ASSIGN_OR_RETURN(NodePtr file, core_->FindFileLocked(path, SimOp::kOpen));
    ASHLAR_RETURN_IF_ERROR(core_->CheckOpenLocked(process_, path));
    ++core_->open_files_.at(process_);
    return std::make_unique<Handle>(core_->shared_from_this(), process_, path, std::move(file));
  }

  SimCore* const core_;
  const uint64_t process_;
};

absl::StatusOr<std::unique_ptr<WritableFile>> SimFiles::CreateFile(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kCreate, path);
  if (!verdict.before.ok()) return verdict.before;
  ASHLAR_ASSIGN_OR_RETURN(const Place place, core_->FindLocked(path, SimOp::kCreate));
  if (place.node != nullptr) return EnvError(EEXIST, "create", path);
  ASHLAR_RETURN_IF_ERROR(core_->CheckOpenLocked(process_, path));
  NodePtr file = core_->CreateLocked(place, false);
  ++core_->counters_.creates;
  if (!verdict.after.ok()) return verdict.after;
  ++core_->open_files_.at(process_);
  return std::make_unique<SimWritableFile>(core_->shared_from_this(), process_, path,
                                           std::move(file));
}

// Whether `inner` is `outer` or below it.
bool IsInside(const NodePtr& outer, const NodePtr& inner) {
  if (outer == inner) return true;
  return std::any_of(
      outer->entries.begin(), outer->entries.end(),
      [&inner](const Entries::value_type& entry) { return IsInside(entry.second, inner); });
}

absl::Status SimFiles::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kRename, from);
  if (!verdict.before.ok()) return verdict.before;
  core_->MixBytesLocked(AsBytes(to));
  ASHLAR_ASSIGN_OR_RETURN(const Place source, core_->FindLocked(from, SimOp::kRename));
  ASHLAR_ASSIGN_OR_RETURN(const Place target, core_->FindLocked(to, SimOp::kRename));
  if (source.node == nullptr) return EnvError(ENOENT, "rename", from);
  if (source.node == target.node) return verdict.after;
  if (source.node->is_directory && IsInside(source.node, target.directory)) {
    return FailedPrecondition(absl::StrCat(from, ": cannot move a directory into itself, ", to));
  }
  if (target.node != nullptr) {
    const bool onto_directory = target.node->is_directory;
    if (onto_directory && !source.node->is_directory) return EnvError(EISDIR, "rename", to);
    if (!onto_directory && source.node->is_directory) return EnvError(ENOTDIR, "rename", to);
    if (onto_directory && !target.node->entries.empty()) return EnvError(ENOTEMPTY, "rename", to);
  }
  sim::ChangeEntries(core_->image_, EntryChange{{{target.directory, target.name, source.node},
                                                 {source.directory, source.name, nullptr}}});
  ++core_->counters_.renames;
  return verdict.after;
}

// A change of one entry, like a creation, but of a file that is there.
absl::Status SimFiles::Link(const std::string& from, const std::string& to) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kLink, from);
  if (!verdict.before.ok()) return verdict.before;
  core_->MixBytesLocked(AsBytes(to));
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file, core_->FindFileLocked(from, SimOp::kLink));
  ASHLAR_ASSIGN_OR_RETURN(const Place target, core_->FindLocked(to, SimOp::kLink));
  if (target.node != nullptr) return EnvError(EEXIST, "link", to);
  sim::ChangeEntries(core_->image_, EntryChange{{{target.directory, target.name, file}}});
  ++core_->counters_.creates;
  return verdict.after;
}

absl::Status SimFiles::Remove(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kRemove, path);
  if (!verdict.before.ok()) return verdict.before;
  ASHLAR_ASSIGN_OR_RETURN(const Place place, core_->FindLocked(path, SimOp::kRemove));
  if (place.node == nullptr) return EnvError(ENOENT, "remove", path);
  if (place.node == core_->image_.root) return EnvError(EISDIR, "remove", path);
  if (!place.node->entries.empty()) return EnvError(ENOTEMPTY, "remove", path);
  sim::ChangeEntries(core_->image_, EntryChange{{{place.directory, place.name, nullptr}}});
  ++core_->counters_.removes;
  return verdict.after;
}

absl::StatusOr<std::vector<FileSystem::DirectoryEntry>> SimFiles::List(
    const std::string& directory) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_RETURN_IF_ERROR(LookLocked(SimOp::kList, directory));
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr node, FindDirectoryLocked(directory, SimOp::kList));
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : node->entries) entries.push_back({name, !child->is_directory});
  return entries;
}

absl::Status SimFiles::CreateDirectory(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kCreateDirectory, path);
  if (!verdict.before.ok()) return verdict.before;
  ASHLAR_ASSIGN_OR_RETURN(const Place place, core_->FindLocked(path, SimOp::kCreateDirectory));
  if (place.node != nullptr) return EnvError(EEXIST, "create directory", path);
  core_->CreateLocked(place, true);
  ++core_->counters_.creates;
  return verdict.after;
}

absl::Status SimFiles::SyncDirectory(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kSyncDirectory, path);
  if (!verdict.before.ok()) return verdict.before;
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr node, FindDirectoryLocked(path, SimOp::kSyncDirectory));
  sim::SyncDirectory(core_->image_, *node);
  ++core_->counters_.directory_syncs;
  return verdict.after;
}

absl::StatusOr<std::unique_ptr<FileLock>> SimFiles::Lock(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kLock, path);
  if (!verdict.before.ok()) return verdict.before;
  ASHLAR_ASSIGN_OR_RETURN(Place place, core_->FindLocked(path, SimOp::kLock));
  if (place.node == nullptr) place.node = core_->CreateLocked(place, false);
  if (place.node->is_directory) return EnvError(EISDIR, "lock", path);
  if (!verdict.after.ok()) return verdict.after;
  if (place.node->lock_process != 0) {
    return WithPlace(
        Unavailable(absl::StrCat(path, ": locked by simulated process ", place.node->lock_process)),
        path, "", 0);
  }
  place.node->lock_process = process_;
  return std::make_unique<SimLock>(core_->shared_from_this(), process_, std::move(place.node));
}

absl::StatusOr<bool> SimFiles::IsLocked(const std::string& path) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_RETURN_IF_ERROR(LookLocked(SimOp::kStat, path));
  const absl::StatusOr<NodePtr> file = core_->FindFileLocked(path, SimOp::kStat);
  if (file.ok()) return (*file)->lock_process != 0;
  if (absl::IsNotFound(file.status())) return false;
  return file.status();
}

absl::StatusOr<std::unique_ptr<SharedPage>> SimFiles::MapShared(const std::string& path,
                                                                size_t size, bool writable) {
  if (size == 0 || size > kSizeMax) return PageSizeError(path, size);
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const SimCore::Verdict verdict = BeginLocked(SimOp::kMapShared, path);
  if (!verdict.before.ok()) return verdict.before;
  ASHLAR_ASSIGN_OR_RETURN(Place place, core_->FindLocked(path, SimOp::kMapShared));
  if (place.node == nullptr) {
    if (!writable) return EnvError(ENOENT, "map shared", path);
    place.node = core_->CreateLocked(place, false);
  }
  Node& file = *place.node;
  if (file.is_directory) return EnvError(EISDIR, "map shared", path);
  if (writable) ASHLAR_RETURN_IF_ERROR(core_->ResizeLocked(path, file, size));
  if (file.current.size() < size) return ShortenedError(path, 0, size, file.current.size());
  if (!verdict.after.ok()) return verdict.after;
  if (file.page == nullptr) {
    file.page = std::make_shared<PageBuffer>(static_cast<size_t>(file.current.size()));
    sim::RefreshPage(file);
  }
  // Shared memory cannot move, so here all must agree on its size.
  if (file.page->size() < size) {
    return FailedPrecondition(
        absl::StrCat(path, ": is shared already, with ", file.page->size(), " bytes"));
  }
  ++file.page_users;
  return std::make_unique<SimPage>(core_->shared_from_this(), place.node, file.page, size,
                                   writable);
}

class SimClock : public Clock {
 public:
  explicit SimClock(SimCore* core) : core_(core) {}
  uint64_t MonotonicNs() override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    return core_->TickLocked() - core_->booted_ns_;
  }
  int64_t WallMs() override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    return kFirstWallMs + core_->wall_jump_ms_ +
           static_cast<int64_t>(core_->TickLocked() / 1'000'000);
  }

 private:
  SimCore* const core_;
};

class SimEntropy : public Entropy {
 public:
  explicit SimEntropy(SimCore* core) : core_(core) {}
  void Fill(std::span<std::byte> out) override {
    const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
    for (std::byte& b : out) b = static_cast<std::byte>(core_->entropy_prng_.Next());
  }

 private:
  SimCore* const core_;
};

}  // namespace

class SimProcess {
 public:
  SimProcess(SimCore* core, uint64_t id)
      : id_(id), files_(core, id), clock_(core), entropy_(core) {}
  uint64_t id() const { return id_; }
  Env env() { return {&files_, &clock_, &entropy_}; }

 private:
  const uint64_t id_;
  SimFiles files_;
  SimClock clock_;
  SimEntropy entropy_;
};

SimCore::~SimCore() = default;  // here, where SimProcess is complete

// ------------------------------------------------------------------------------------------------
// SimDisk

SimDisk::SimDisk(uint64_t seed) : core_(std::make_shared<SimCore>(seed)) {}
SimDisk::SimDisk(std::shared_ptr<SimCore> core) : core_(std::move(core)) {}
SimDisk::~SimDisk() = default;

Env SimDisk::NewProcess() {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  const uint64_t id = core_->next_process_++;
  core_->open_files_[id] = 0;
  core_->processes_.push_back(std::make_unique<SimProcess>(core_.get(), id));
  return core_->processes_.back()->env();
}

void SimDisk::KillProcess(const Env& process) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  for (const auto& known : core_->processes_) {
    if (known->env().files == process.files) core_->KillLocked(known->id());
  }
}

void SimDisk::CutPower() {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->power_cut_ = true;
}

void SimDisk::CutPowerAtStep(std::optional<uint64_t> step) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->cut_at_step_ = step;
}

bool SimDisk::power_is_cut() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return core_->power_cut_;
}

void SimDisk::Crash(const CrashPolicy& policy) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->CrashLocked(policy);
}

std::unique_ptr<SimDisk> SimDisk::CrashedCopy(const CrashPolicy& policy) const {
  return std::unique_ptr<SimDisk>(new SimDisk(core_->Copy(policy)));
}

std::vector<CrashPolicy> SimDisk::EnumerateCrashes(size_t policies_max) const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  sim::AbsorbAllPages(core_->image_);
  return sim::EnumerateCrashes(core_->image_, policies_max);
}

void SimDisk::SetObserver(Observer observer) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->observer_ = std::move(observer);
}

void SimDisk::AddFault(SimFault fault) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->faults_.push_back(std::make_unique<SimFault>(std::move(fault)));
}

void SimDisk::ClearFaults() {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->faults_.clear();
}

void SimDisk::SetCapacity(uint64_t bytes_max, int error) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->capacity_ = bytes_max;
  core_->capacity_error_ = error;
}

uint64_t SimDisk::used_bytes() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return sim::UsedBytes(core_->image_);
}

void SimDisk::SetOpenFilesMax(uint64_t files_max) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->open_files_max_ = files_max;
}

void SimDisk::SetHook(Hook hook) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->hook_ = std::move(hook);
}

absl::Status SimDisk::FlipBit(const std::string& path, uint64_t bit) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file, core_->FindFileLocked(path, SimOp::kWrite));
  const uint64_t offset = bit / 8;
  if (offset >= file->durable.size())
    return InvalidArgument(absl::StrCat(path, ": no durable bit ", bit));
  for (sim::Content* const content : {&file->durable, &file->current}) {
    if (offset >= content->size()) continue;
    std::byte value{};
    content->Read(offset, {&value, 1});
    value ^= std::byte{1} << (bit % 8);
    content->Write(offset, {&value, 1});
  }
  file->mapping.reset();
  return absl::OkStatus();
}

absl::Status SimDisk::ExchangeSectors(const std::string& a, uint64_t sector_a, const std::string& b,
                                      uint64_t sector_b, uint64_t sector_bytes) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file_a, core_->FindFileLocked(a, SimOp::kWrite));
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file_b, core_->FindFileLocked(b, SimOp::kWrite));
  const auto inside = [sector_bytes](const sim::Content& content, uint64_t sector) {
    return content.size() >= sector_bytes &&
           sector <= (content.size() - sector_bytes) / sector_bytes;
  };
  if (sector_bytes == 0 || !inside(file_a->durable, sector_a) ||
      !inside(file_b->durable, sector_b)) {
    return InvalidArgument(absl::StrCat(a, ", ", b, ": no such durable sectors"));
  }
  ByteBuffer bytes_a(static_cast<size_t>(sector_bytes));
  ByteBuffer bytes_b(static_cast<size_t>(sector_bytes));
  file_a->durable.Read(sector_a * sector_bytes, bytes_a);
  file_b->durable.Read(sector_b * sector_bytes, bytes_b);
  for (sim::Content* const content : {&file_a->durable, &file_a->current}) {
    content->Write(sector_a * sector_bytes, bytes_b);
  }
  for (sim::Content* const content : {&file_b->durable, &file_b->current}) {
    content->Write(sector_b * sector_bytes, bytes_a);
  }
  file_a->mapping.reset();
  file_b->mapping.reset();
  return absl::OkStatus();
}

absl::Status SimDisk::TruncateFile(const std::string& path, uint64_t size) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file, core_->FindFileLocked(path, SimOp::kTruncate));
  if (size > file->durable.size())
    return InvalidArgument(absl::StrCat(path, ": has fewer durable bytes than ", size));
  file->pending.clear();
  file->durable.Resize(size);
  file->current.Resize(size);
  file->mapping.reset();
  return absl::OkStatus();
}

absl::Status SimDisk::PutFile(const std::string& path, ByteSpan bytes) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const Place place, core_->FindLocked(path, SimOp::kCreate));
  if (place.node != nullptr && place.node->is_directory) return EnvError(EISDIR, "put", path);
  const NodePtr file = core_->CreateLocked(place, false);
  file->current.Write(0, bytes);
  file->durable = file->current;
  sim::SyncDirectory(core_->image_, *place.directory);
  return absl::OkStatus();
}

absl::StatusOr<ByteBuffer> SimDisk::Contents(const std::string& path) const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file, core_->FindFileLocked(path, SimOp::kRead));
  return file->current.ToBuffer();
}

absl::StatusOr<ByteBuffer> SimDisk::DurableContents(const std::string& path) const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  ASHLAR_ASSIGN_OR_RETURN(const NodePtr file, core_->FindFileLocked(path, SimOp::kRead));
  return file->durable.ToBuffer();
}

std::vector<std::string> SimDisk::FileNames() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  std::vector<std::string> names;
  std::vector<std::pair<std::string, const Node*>> open = {{"", core_->image_.root.get()}};
  while (!open.empty()) {
    const auto [path, node] = open.back();
    open.pop_back();
    if (!node->is_directory) names.push_back(path);
    for (const auto& [name, child] : node->entries)
      open.emplace_back(JoinPath(path, name), child.get());
  }
  std::sort(names.begin(), names.end());
  return names;
}

size_t SimDisk::pending_count() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  sim::AbsorbAllPages(core_->image_);
  return sim::PendingCount(core_->image_);
}

uint64_t SimDisk::DurableHash() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return sim::HashDurable(core_->image_);
}

uint64_t SimDisk::seed() const { return core_->seed_; }

uint64_t SimDisk::operations() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return core_->operations_;
}

uint64_t SimDisk::steps() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return core_->steps_;
}

SimCounters SimDisk::counters() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return core_->counters_;
}

uint64_t SimDisk::trace_hash() const {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  return core_->trace_hash_;
}

void SimDisk::AdvanceClock(uint64_t ns) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->elapsed_ns_ += ns;
}

void SimDisk::JumpWallClock(int64_t ms) {
  const std::lock_guard<std::recursive_mutex> guard(core_->mutex_);
  core_->wall_jump_ms_ += ms;
}

}  // namespace ashlar::env
