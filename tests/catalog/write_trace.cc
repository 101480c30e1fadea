#include "tests/catalog/write_trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/base/checksum.h"
#include "src/base/prng.h"

// Both spellings: with 64-bit offsets the headers rename the calls.
extern "C" {
#define ASHLAR_REAL(result, name, args) \
  result __real_##name args;            \
  result __real_##name##64 args
ASHLAR_REAL(int, open, (const char* path, int flags, ...));
ASHLAR_REAL(ssize_t, pwrite, (int fd, const void* bytes, size_t size, off_t offset));
ASHLAR_REAL(int, ftruncate, (int fd, off_t size));
ASHLAR_REAL(int, posix_fallocate, (int fd, off_t offset, off_t size));
ASHLAR_REAL(void*, mmap, (void* address, size_t size, int protection, int flags, int fd, off_t offset));
ssize_t __real_write(int fd, const void* bytes, size_t size);
ssize_t __real_writev(int fd, const struct iovec* parts, int count);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_msync(void* address, size_t size, int flags);
int __real_munmap(void* address, size_t size);
int __real_close(int fd);
int __real_rename(const char* from, const char* to);
int __real_remove(const char* path);
int __real_unlink(const char* path);
int __real_mkdir(const char* path, mode_t mode);
}

namespace ashlar::testing {
namespace {

using Kind = TraceOp::Kind;

struct OpenFile {
  int file = -1;  // -1: a directory
  std::string name;
  bool synchronous = false;  // O_DSYNC
};

struct SharedMapping {
  const std::byte* data = nullptr;
  size_t size = 0;
  int file = -1;
};

class Recorder {
 public:
  void Begin(const std::string& root) {
    *this = Recorder();
    root_ = root + "/";
    trace_.before = DiskImage::ReadFrom(root);
    for (const auto& [name, bytes] : trace_.before.files) {
      sizes_[FileOf(name)] = bytes->size();
      contents_.push_back(*bytes);
    }
    on_ = true;
  }
  Trace End() {
    NoteShared();
    on_ = false;
    return std::move(trace_);
  }
  bool on() const { return on_; }

  void FailSync(const std::string& part, int nth, bool dead) {
    failing_part_ = part;
    syncs_before_failure_ = nth;
    dies_ = dead;
  }
  void FailWrite(const std::string& part, int nth) {
    failing_part_ = part;
    writes_before_failure_ = nth;
  }
  bool WriteFails(int fd) {
    const OpenFile* open = Find(fd);
    return open != nullptr && IsFailing(*open) && (IsDead(fd) || --writes_before_failure_ == 0);
  }
  bool Revive() {
    const bool came = syncs_before_failure_ <= 0 || writes_before_failure_ <= 0;
    syncs_before_failure_ = writes_before_failure_ = kNever;
    dies_ = false;
    failing_part_.clear();
    return came;
  }
  // Whether a sync of the file fails now.
  bool SyncFails(int fd) {
    const OpenFile* open = Find(fd);
    if (open == nullptr || !IsFailing(*open)) return false;
    if (IsDead(fd)) return true;
    if (--syncs_before_failure_ != 0) return false;
    Add(Kind::kFailedSync).file = open->file;
    return true;
  }
  bool IsDead(int fd) const {
    const OpenFile* open = Find(fd);
    return open != nullptr && IsFailing(*open) && dies_ && syncs_before_failure_ <= 0;
  }

  // The name below the root; empty if it is elsewhere.
  std::string NameOf(const char* path) const {
    if (!on_ || std::strncmp(path, root_.c_str(), root_.size()) != 0) return "";
    return path + root_.size();
  }
  bool Exists(const std::string& name) const { return numbers_.contains(name); }

  TraceOp& Add(Kind kind) {
    NoteShared();
    return trace_.ops.emplace_back(TraceOp{kind, -1, {}, {}, 0, {}, false, 0});
  }
  void Opened(int fd, const std::string& name, int flags, bool existed) {
    OpenFile& open = open_[fd];
    open = {-1, name, (flags & (O_DSYNC | O_SYNC)) != 0};
    if ((flags & O_DIRECTORY) != 0) return;
    open.file = FileOf(name);
    if (existed) return;
    TraceOp& op = Add(Kind::kCreate);
    op.name = name;
    op.file = open.file;
  }
  const OpenFile* Find(int fd) const {
    const auto found = open_.find(fd);
    return on_ && found != open_.end() ? &found->second : nullptr;
  }
  void Closed(int fd) { open_.erase(fd); }
  void Wrote(int fd, const void* bytes, size_t size, uint64_t offset) {
    const OpenFile* open = Find(fd);
    if (open == nullptr || size == 0) return;
    TraceOp& op = Add(Kind::kWrite);
    op.file = open->file;
    op.offset = offset;
    const auto* data = static_cast<const std::byte*>(bytes);
    op.bytes.assign(data, data + size);
    sizes_[open->file] = std::max(sizes_[open->file], offset + size);
    if (open->synchronous) Add(Kind::kSyncRange).file = open->file;
  }
  void Resized(int fd, uint64_t size, bool may_shrink) {
    const OpenFile* open = Find(fd);
    if (open == nullptr || size == sizes_[open->file] || (!may_shrink && size < sizes_[open->file])) return;
    TraceOp& op = Add(Kind::kTruncate);
    op.file = open->file;
    op.offset = sizes_[open->file] = size;
  }
  void Synced(int fd) {
    const OpenFile* open = Find(fd);
    if (open == nullptr) return;
    TraceOp& op = Add(open->file < 0 ? Kind::kSyncDirectory : Kind::kSync);
    op.file = open->file;
    op.name = open->name;
  }
  void Renamed(const std::string& from, const std::string& to) {
    TraceOp& op = Add(Kind::kRename);
    op.name = from;
    op.to = to;
    numbers_[to] = numbers_.at(from);
    numbers_.erase(from);
  }
  void Removed(const std::string& name) {
    Add(Kind::kRemove).name = name;
    numbers_.erase(name);
  }
  void MadeDirectory(const std::string& name) { Add(Kind::kMakeDirectory).name = name; }
  void Mapped(const void* address, size_t size, int fd) {
    const OpenFile* open = Find(fd);
    if (open != nullptr && open->file >= 0)
      mappings_.push_back({static_cast<const std::byte*>(address), size, open->file});
  }
  void Unmapped(const void* address) {
    if (!on_) return;
    NoteShared();
    std::erase_if(mappings_, [address](const SharedMapping& m) { return m.data == address; });
  }

 private:
  int FileOf(const std::string& name) {
    const auto [found, added] = numbers_.try_emplace(name, static_cast<int>(trace_.names.size()));
    if (added) trace_.names.push_back(name);
    return found->second;
  }
  bool IsFailing(const OpenFile& open) const {
    return !failing_part_.empty() && open.name.find(failing_part_) != std::string::npos;
  }

  // Stores into mappings are no calls; what they changed since the last call is found by comparing.
  void NoteShared() {
    for (const SharedMapping& mapping : mappings_) {
      ByteBuffer& last = shared_[mapping.file];
      const uint64_t size = std::min<uint64_t>(mapping.size, sizes_[mapping.file]);
      if (last.size() == size && std::memcmp(last.data(), mapping.data, size) == 0) continue;
      last.assign(mapping.data, mapping.data + size);
      trace_.ops.push_back({Kind::kWrite, mapping.file, {}, {}, 0, last, true, 0});
    }
  }

  bool on_ = false;
  std::string root_;
  Trace trace_;
  std::map<std::string, int> numbers_;
  std::map<int, OpenFile> open_;  // by descriptor
  std::map<int, uint64_t> sizes_;
  std::vector<ByteBuffer> contents_;
  std::vector<SharedMapping> mappings_;
  std::map<int, ByteBuffer> shared_;
  std::string failing_part_;
  static constexpr int kNever = 1 << 30;
  int syncs_before_failure_ = kNever, writes_before_failure_ = kNever;
  bool dies_ = false;
};

Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

}  // namespace

// ---- The calls.

namespace {

template <class Real>
int WrapOpen(Real real, const char* path, int flags, mode_t mode) {
  Recorder& recorder = TheRecorder();
  const std::string name = recorder.NameOf(path);
  const bool existed = !name.empty() && recorder.Exists(name);
  const int fd = real(path, flags, mode);
  if (fd >= 0 && !name.empty()) recorder.Opened(fd, name, flags, existed);
  // The root itself, whose entries are synced as well.
  if (fd >= 0 && name.empty() && recorder.on() && (flags & O_DIRECTORY) != 0)
    if (recorder.NameOf((std::string(path) + "/x").c_str()) == "x") recorder.Opened(fd, "", flags, true);
  return fd;
}

template <class Real>
ssize_t WrapPwrite(Real real, int fd, const void* bytes, size_t size, off_t offset) {
  if (TheRecorder().WriteFails(fd)) return errno = EIO, -1;
  const ssize_t n = real(fd, bytes, size, offset);
  if (n > 0) TheRecorder().Wrote(fd, bytes, static_cast<size_t>(n), static_cast<uint64_t>(offset));
  return n;
}

template <class Real>
int WrapFtruncate(Real real, int fd, off_t size) {
  const int result = real(fd, size);
  if (result == 0) TheRecorder().Resized(fd, static_cast<uint64_t>(size), true);
  return result;
}

template <class Real>
int WrapFallocate(Real real, int fd, off_t offset, off_t size) {
  const int result = real(fd, offset, size);
  if (result == 0) TheRecorder().Resized(fd, static_cast<uint64_t>(offset + size), false);
  return result;
}

template <class Real>
void* WrapMmap(Real real, void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  void* const result = real(address, size, protection, flags, fd, offset);
  if (result != MAP_FAILED && fd >= 0 && (protection & PROT_WRITE) != 0 && (flags & MAP_SHARED) != 0)
    TheRecorder().Mapped(result, size, fd);
  return result;
}

}  // namespace

extern "C" {
int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return WrapOpen(__real_open, path, flags, mode);
}
int __wrap_open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return WrapOpen(__real_open64, path, flags, mode);
}
ssize_t __wrap_pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return WrapPwrite(__real_pwrite, fd, bytes, size, offset);
}
ssize_t __wrap_pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return WrapPwrite(__real_pwrite64, fd, bytes, size, offset);
}
ssize_t __wrap_write(int fd, const void* bytes, size_t size) {
  if (TheRecorder().WriteFails(fd)) return errno = EIO, -1;
  const bool traced = TheRecorder().Find(fd) != nullptr;
  const off_t at = traced ? ::lseek(fd, 0, SEEK_CUR) : 0;
  const ssize_t n = __real_write(fd, bytes, size);
  if (n > 0 && traced) TheRecorder().Wrote(fd, bytes, static_cast<size_t>(n), static_cast<uint64_t>(at));
  return n;
}
ssize_t __wrap_writev(int fd, const struct iovec* parts, int count) {
  if (TheRecorder().WriteFails(fd)) return errno = EIO, -1;
  const bool traced = TheRecorder().Find(fd) != nullptr;
  auto at = static_cast<uint64_t>(traced ? ::lseek(fd, 0, SEEK_CUR) : 0);
  const ssize_t n = __real_writev(fd, parts, count);
  auto left = static_cast<size_t>(std::max<ssize_t>(n, 0));
  for (int i = 0; traced && i < count && left > 0; ++i) {
    const size_t size = std::min(left, parts[i].iov_len);
    TheRecorder().Wrote(fd, parts[i].iov_base, size, at);
    at += size;
    left -= size;
  }
  return n;
}
int __wrap_ftruncate(int fd, off_t size) { return WrapFtruncate(__real_ftruncate, fd, size); }
int __wrap_ftruncate64(int fd, off_t size) { return WrapFtruncate(__real_ftruncate64, fd, size); }
int __wrap_posix_fallocate(int fd, off_t offset, off_t size) {
  return WrapFallocate(__real_posix_fallocate, fd, offset, size);
}
int __wrap_posix_fallocate64(int fd, off_t offset, off_t size) {
  return WrapFallocate(__real_posix_fallocate64, fd, offset, size);
}
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return WrapMmap(__real_mmap, address, size, protection, flags, fd, offset);
}
void* __wrap_mmap64(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return WrapMmap(__real_mmap64, address, size, protection, flags, fd, offset);
}
int __wrap_fsync(int fd) {
  if (TheRecorder().SyncFails(fd)) return errno = EIO, -1;
  const int result = __real_fsync(fd);
  if (result == 0) TheRecorder().Synced(fd);
  return result;
}
int __wrap_fdatasync(int fd) {
  if (TheRecorder().SyncFails(fd)) return errno = EIO, -1;
  const int result = __real_fdatasync(fd);
  if (result == 0) TheRecorder().Synced(fd);
  return result;
}
// Nothing maps for writing what must be durable; if that changes, this trace is blind to it.
int __wrap_msync(void* address, size_t size, int flags) {
  if (TheRecorder().on()) ADD_FAILURE() << "msync is not modelled";
  return __real_msync(address, size, flags);
}
int __wrap_munmap(void* address, size_t size) {
  TheRecorder().Unmapped(address);
  return __real_munmap(address, size);
}
int __wrap_close(int fd) {
  TheRecorder().Closed(fd);
  return __real_close(fd);
}
int __wrap_rename(const char* from, const char* to) {
  const std::string name = TheRecorder().NameOf(from);
  const int result = __real_rename(from, to);
  if (result == 0 && !name.empty()) TheRecorder().Renamed(name, TheRecorder().NameOf(to));
  return result;
}
int __wrap_remove(const char* path) {
  const std::string name = TheRecorder().NameOf(path);
  const int result = __real_remove(path);
  if (result == 0 && !name.empty()) TheRecorder().Removed(name);
  return result;
}
int __wrap_unlink(const char* path) {
  const std::string name = TheRecorder().NameOf(path);
  const int result = __real_unlink(path);
  if (result == 0 && !name.empty()) TheRecorder().Removed(name);
  return result;
}
int __wrap_mkdir(const char* path, mode_t mode) {
  const std::string name = TheRecorder().NameOf(path);
  const int result = __real_mkdir(path, mode);
  if (result == 0 && !name.empty()) TheRecorder().MadeDirectory(name);
  return result;
}
}  // extern "C"

void BeginTrace(const std::string& root) { TheRecorder().Begin(root); }
void MarkTrace(size_t mark) { TheRecorder().Add(Kind::kMark).mark = mark; }
Trace EndTrace() { return TheRecorder().End(); }
void FailTracedSync(const std::string& part, int nth, bool dead) { TheRecorder().FailSync(part, nth, dead); }
void FailTracedWrite(const std::string& part, int nth) { TheRecorder().FailWrite(part, nth); }
bool ReviveTraced() { return TheRecorder().Revive(); }

std::string ToString(const TraceOp& op) {
  static constexpr const char* kNames[] = {"create", "mkdir",      "rename",   "remove",      "write", "truncate",
                                           "sync",   "sync range", "sync dir", "failed sync", "mark"};
  return std::string(kNames[static_cast<int>(op.kind)]) + " file " + std::to_string(op.file) + " " + op.name +
         (op.to.empty() ? "" : " -> " + op.to) + " @" + std::to_string(op.offset) + "+" +
         std::to_string(op.bytes.size()) + (op.shared ? " (mapping)" : "") +
         (op.kind == Kind::kMark ? " " + std::to_string(op.mark) : "");
}

// ---- Images.

uint64_t DiskImage::Hash() const {
  uint64_t hash = 1;
  const auto mix = [&hash](std::string_view name, uint64_t content) {
    const uint64_t both[2] = {hash ^ HashBytes(name), content};
    hash = Checksum(std::as_bytes(std::span(both)), 0);
  };
  for (const std::string& name : directories) mix(name, 1);
  for (const auto& [name, bytes] : files) mix(name, Checksum(*bytes, 0));
  return hash;
}

void DiskImage::WriteTo(const std::string& root) const {
  for (const auto& entry : std::filesystem::directory_iterator(root)) std::filesystem::remove_all(entry.path());
  for (const std::string& name : directories) std::filesystem::create_directory(root + "/" + name);
  for (const auto& [name, bytes] : files) {
    const int fd = __real_open64((root + "/" + name).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
    const bool written =
        fd >= 0 && __real_pwrite64(fd, bytes->data(), bytes->size(), 0) == static_cast<ssize_t>(bytes->size());
    ASSERT_TRUE(written) << name;
    __real_close(fd);
  }
}

DiskImage DiskImage::ReadFrom(const std::string& root) {
  DiskImage image;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().string().substr(root.size() + 1);
    if (entry.is_directory()) {
      image.directories.push_back(name);
      continue;
    }
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    image.files[name] = std::make_shared<ByteBuffer>(data, data + bytes.size());
  }
  std::sort(image.directories.begin(), image.directories.end());
  return image;
}

// ---- Crashes.

CrashModel::CrashModel(const Trace& trace) : trace_(trace) {
  int file = 0;
  for (const auto& [name, bytes] : trace.before.files) {
    files_[file].durable = std::make_shared<ByteBuffer>(*bytes);
    durable_names_[name] = file++;
  }
  for (const std::string& name : trace.before.directories) durable_names_[name] = kDirectory;
  names_ = durable_names_;
}

std::string CrashModel::ParentOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? std::string() : name.substr(0, slash);
}

void CrashModel::ApplyName(const NameChange& change, std::map<std::string, int>* names) {
  if (!change.unset.empty()) names->erase(change.unset);
  if (!change.set.empty()) (*names)[change.set] = change.file;
}

void CrashModel::Apply(const Change& change, Fate fate, uint64_t seed, ByteBuffer* bytes) {
  if (change.truncate) {
    if (fate != Fate::kDrop) bytes->resize(change.offset);
    return;
  }
  constexpr uint64_t kSector = 512;
  const uint64_t end = change.offset + change.bytes->size();
  const uint64_t first = change.offset / kSector, last = (end - 1) / kSector;
  Prng random(seed);
  if (fate == Fate::kZeros && bytes->size() < end) bytes->resize(end);
  for (uint64_t sector = first; sector <= last; ++sector) {
    const bool front = (sector - first) * 2 < last - first + 1;
    bool keep = fate == Fate::kKeep;
    if (fate == Fate::kTornFront) keep = front && last > first;
    if (fate == Fate::kTornBack) keep = !front;
    if (fate == Fate::kTornRandom) keep = random.OneIn(2);
    if (!keep) continue;
    const uint64_t from = std::max(change.offset, sector * kSector), to = std::min(end, (sector + 1) * kSector);
    if (bytes->size() < to) bytes->resize(to);
    std::memcpy(bytes->data() + from, change.bytes->data() + (from - change.offset), to - from);
  }
}

bool CrashModel::Advance() {
  if (position_ == trace_.ops.size()) return false;
  const TraceOp& op = trace_.ops[position_++];
  const auto rename = [this](NameChange change) {
    ApplyName(change, &names_);
    pending_names_.push_back(std::move(change));
  };
  switch (op.kind) {
    case Kind::kCreate:
      files_[op.file];
      rename({"", op.name, op.file});
      break;
    case Kind::kMakeDirectory:
      rename({"", op.name, kDirectory});
      break;
    case Kind::kRename:
      rename({op.name, op.to, names_.at(op.name)});
      break;
    case Kind::kRemove:
      rename({op.name, "", -1});
      break;
    case Kind::kWrite:
      AddWrite(op);
      break;
    case Kind::kTruncate:
      files_[op.file].pending.push_back({true, op.offset, nullptr, false, false, false});
      break;
    case Kind::kSyncRange:
    case Kind::kSync: {
      File& file = files_[op.file];
      const bool range = op.kind == Kind::kSyncRange;
      // Over what a failed sync left in doubt, in its place: what is beneath is not known.
      if (std::any_of(file.pending.begin(), file.pending.end(), [](const Change& change) { return change.doubtful; })) {
        for (size_t i = range ? file.pending.size() - 1 : 0; i < file.pending.size(); ++i)
          file.pending[i].certain = !file.pending[i].doubtful;
        break;
      }
      auto durable = std::make_shared<ByteBuffer>(*file.durable);
      for (const Change& change : range ? std::vector<Change>{file.pending.back()} : file.pending)
        Apply(change, Fate::kKeep, 0, durable.get());
      file.durable = std::move(durable);
      if (range)
        file.pending.pop_back();
      else
        file.pending.clear();
      break;
    }
    case Kind::kFailedSync:
      for (Change& change : files_[op.file].pending) change.doubtful = !change.certain;
      break;
    case Kind::kSyncDirectory:
      std::erase_if(pending_names_, [this, &op](const NameChange& change) {
        if (ParentOf(change.set.empty() ? change.unset : change.set) != op.name) return false;
        ApplyName(change, &durable_names_);
        return true;
      });
      break;
    case Kind::kMark:
      break;
  }
  return true;
}

// Of a mapping's states the newest two may be there: pages are written back at any time. LMDB's reader table is made
// anew by whoever is alone with it, so what it holds after a crash is of no interest, and is taken as written.
void CrashModel::AddWrite(const TraceOp& op) {
  File& file = files_[op.file];
  if (trace_.names[static_cast<size_t>(op.file)].ends_with("-lock")) {
    auto durable = std::make_shared<ByteBuffer>(*file.durable);
    Apply({false, op.offset, &op.bytes, op.shared, false, false}, Fate::kKeep, 0, durable.get());
    file.durable = std::move(durable);
    return;
  }
  if (op.shared) {
    const auto older = std::find_if(file.pending.begin(), file.pending.end(), [](const Change& c) { return c.shared; });
    if (std::count_if(older, file.pending.end(), [](const Change& c) { return c.shared; }) > 1)
      file.pending.erase(older);
  }
  file.pending.push_back({false, op.offset, &op.bytes, op.shared, false, false});
}

size_t CrashModel::ItemCount() const {
  size_t count = pending_names_.size();
  for (const auto& [number, file] : files_) count += file.pending.size();
  return count;
}

// Fates: of the changes of names, then of the files' changes, by number.
DiskImage CrashModel::Build(const std::vector<Fate>& fates, uint64_t seed) const {
  std::map<std::string, int> names = durable_names_;
  size_t item = 0;
  for (const NameChange& change : pending_names_)
    if (fates[item++] != Fate::kDrop) ApplyName(change, &names);
  std::map<int, std::shared_ptr<const ByteBuffer>> contents;
  for (const auto& [number, file] : files_) {
    std::shared_ptr<ByteBuffer> bytes = file.durable;
    for (const Change& change : file.pending) {
      const Fate fate = change.certain ? Fate::kKeep : fates[item];
      ++item;
      if (fate == Fate::kDrop) continue;
      if (bytes == file.durable) bytes = std::make_shared<ByteBuffer>(*file.durable);
      Apply(change, fate, seed + item, bytes.get());
    }
    contents[number] = bytes;
  }
  DiskImage image;
  for (const auto& [name, file] : names) {
    const std::string parent = ParentOf(name);
    if (!parent.empty() && !names.contains(parent)) continue;  // its directory was lost
    if (file == kDirectory)
      image.directories.push_back(name);
    else
      image.files[name] = contents.at(file);
  }
  return image;
}

DiskImage CrashModel::Whole() const { return Build(std::vector<Fate>(ItemCount(), Fate::kKeep), 0); }

void CrashModel::VisitImages(uint64_t seed, int random, const std::function<bool(const DiskImage&)>& visit) const {
  const size_t n = ItemCount(), names = pending_names_.size();
  const auto all = [n](Fate fate) { return std::vector<Fate>(n, fate); };
  std::vector<std::vector<Fate>> sets = {all(Fate::kKeep), all(Fate::kDrop)};
  if (n > 0) {
    sets.push_back(all(Fate::kZeros));
    std::vector<Fate> names_only = all(Fate::kDrop), data_only = all(Fate::kKeep);
    std::fill_n(names_only.begin(), names, Fate::kKeep);
    std::fill_n(data_only.begin(), names, Fate::kDrop);
    sets.push_back(names_only);
    sets.push_back(data_only);
  }
  for (size_t i = 0; i < n; ++i) {
    sets.push_back(all(Fate::kDrop));
    sets.back()[i] = Fate::kKeep;
    sets.push_back(all(Fate::kKeep));
    sets.back()[i] = Fate::kDrop;
    for (const Fate torn : {Fate::kTornFront, Fate::kTornBack, Fate::kTornRandom}) {
      if (i < names) break;
      sets.push_back(all(Fate::kKeep));
      sets.back()[i] = torn;
    }
  }
  if (n <= kSubsetItems) {
    for (unsigned mask = 0; mask < 1u << n; ++mask) {
      sets.push_back(all(Fate::kDrop));
      for (size_t i = 0; i < n; ++i)
        if ((mask >> i & 1) != 0) sets.back()[i] = Fate::kKeep;
    }
  }
  Prng prng(seed);
  for (int i = 0; i < random && n > 0; ++i) {
    sets.push_back(all(Fate::kDrop));
    for (Fate& fate : sets.back()) fate = prng.OneIn(2) ? Fate::kKeep : static_cast<Fate>(prng.Below(6));
  }
  for (const std::vector<Fate>& fates : sets)
    if (!visit(Build(fates, prng.Next()))) return;
}

}  // namespace ashlar::testing
