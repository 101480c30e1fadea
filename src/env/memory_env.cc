// Files in memory. A name leads to a file object that open handles share, so removing a name never
// takes bytes away from a reader. A file's bytes are one aligned buffer; mapping shares the buffer,
// and a write to a mapped buffer first moves the file to a copy, so that mapped bytes neither move
// nor change.
//
// Threads: all of it. The name table has one mutex, each file has its own; no code holds two files'
// mutexes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/env/env.h"
#include "src/env/env_error.h"
#include "src/env/page_buffer.h"
#include "src/env/path.h"

namespace ashlar::env {
namespace {

constexpr uint64_t kSizeMax = std::numeric_limits<int64_t>::max();

// A size that a caller gives must not end the process: no memory for it is a status.
template <class Change>
bool WithMemory(Change change) {
  try {
    change();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::length_error&) {
    return false;
  }
}

struct Buffer {
  PageBuffer bytes;
  int regions = 0;  // read-only mappings: bytes must not change
  int pages = 0;    // shared pages: bytes must not move
};

class MemoryFile {
 public:
  size_t Read(uint64_t offset, std::span<std::byte> out) const {
    const std::shared_lock<std::shared_mutex> guard(mutex_);
    const auto& bytes = buffer_->bytes;
    if (offset >= bytes.size() || out.empty()) return 0;
    const size_t n = std::min<size_t>(out.size(), bytes.size() - static_cast<size_t>(offset));
    std::memcpy(out.data(), bytes.data() + offset, n);
    return n;
  }

  // The changes return false if there is no memory for the new size; nothing has changed then.
  [[nodiscard]] bool Write(uint64_t offset, ByteSpan in) {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    return in.empty() || WithMemory([&] { WriteLocked(offset, in); });
  }

  [[nodiscard]] bool Append(ByteSpan in) {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    return in.empty() || WithMemory([&] { WriteLocked(buffer_->bytes.size(), in); });
  }

  [[nodiscard]] bool Resize(uint64_t size) {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    return WithMemory([&] { ResizeLocked(size); });
  }

  uint64_t size() const {
    const std::shared_lock<std::shared_mutex> guard(mutex_);
    return buffer_->bytes.size();
  }

  std::shared_ptr<Buffer> AcquireRegion() {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    // Shared pages change under the reader: a region has to have bytes of its own.
    if (buffer_->pages > 0) {
      auto copy = std::make_shared<Buffer>();
      copy->bytes = buffer_->bytes;
      copy->regions = 1;
      return copy;
    }
    ++buffer_->regions;
    return buffer_;
  }

  void ReleaseRegion(Buffer* buffer) {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    --buffer->regions;
  }

  // With `resize` the file gets exactly `size` bytes, or null for lack of memory; without, null if
  // it has fewer.
  std::shared_ptr<Buffer> AcquirePage(size_t size, bool resize) {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    if (buffer_->bytes.size() != size && resize) {
      if (!WithMemory([&] { ResizeLocked(size); })) return nullptr;
    }
    if (buffer_->bytes.size() < size) return nullptr;
    Detach(false);
    ++buffer_->pages;
    return buffer_;
  }

  void ReleasePage(Buffer* buffer) {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    --buffer->pages;
  }

  // The write lock. True if it was free.
  bool TryLock() {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    return !std::exchange(locked_, true);
  }
  void Unlock() {
    const std::unique_lock<std::shared_mutex> guard(mutex_);
    locked_ = false;
  }
  bool locked() const {
    const std::shared_lock<std::shared_mutex> guard(mutex_);
    return locked_;
  }

 private:
  void ResizeLocked(uint64_t size) {
    if (size == buffer_->bytes.size()) return;
    Detach(true);
    buffer_->bytes.resize(static_cast<size_t>(size));
  }

  void WriteLocked(uint64_t offset, ByteSpan in) {
    const size_t end = static_cast<size_t>(offset) + in.size();
    Detach(end > buffer_->bytes.size());
    auto& bytes = buffer_->bytes;
    if (end > bytes.capacity()) bytes.reserve(std::max(end, 2 * bytes.capacity()));
    if (end > bytes.size()) bytes.resize(end);
    std::memcpy(bytes.data() + offset, in.data(), in.size());
  }

  // Before a change: leaves the buffer to whoever mapped it, if the change could be seen there.
  // Shared pages are meant to see writes, but a change of size may move the bytes.
  void Detach(bool size_changes) {
    if (buffer_->regions == 0 && (buffer_->pages == 0 || !size_changes)) return;
    auto copy = std::make_shared<Buffer>();
    copy->bytes = buffer_->bytes;
    buffer_ = std::move(copy);
  }

  mutable std::shared_mutex mutex_;
  std::shared_ptr<Buffer> buffer_ = std::make_shared<Buffer>();  // never null
  bool locked_ = false;
};

class MemoryWritableFile : public WritableFile {
 public:
  MemoryWritableFile(std::string path, std::shared_ptr<MemoryFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status WriteAt(uint64_t offset, ByteSpan bytes) override {
    ASHLAR_RETURN_IF_ERROR(CheckOpen());
    if (offset > kSizeMax || bytes.size() > kSizeMax - offset) return TooLarge();
    return file_->Write(offset, bytes) ? absl::OkStatus() : NoMemory();
  }
  absl::Status Append(ByteSpan bytes) override {
    ASHLAR_RETURN_IF_ERROR(CheckOpen());
    return file_->Append(bytes) ? absl::OkStatus() : NoMemory();
  }
  absl::Status Sync() override { return CheckOpen(); }
  absl::Status Truncate(uint64_t size) override {
    ASHLAR_RETURN_IF_ERROR(CheckOpen());
    if (size > kSizeMax) return TooLarge();
    return file_->Resize(size) ? absl::OkStatus() : NoMemory();
  }
  uint64_t size() const override { return file_->size(); }
  absl::Status Close() override {
    open_ = false;
    return absl::OkStatus();
  }

 private:
  absl::Status CheckOpen() const { return open_ ? absl::OkStatus() : ClosedError(path_); }
  absl::Status TooLarge() const { return EnvError(EFBIG, "write", path_); }
  absl::Status NoMemory() const { return EnvError(ENOMEM, "write", path_); }

  const std::string path_;
  const std::shared_ptr<MemoryFile> file_;
  bool open_ = true;
};

class MemoryRegion : public MappedRegion {
 public:
  MemoryRegion(std::string path, std::shared_ptr<MemoryFile> file)
      : path_(std::move(path)), file_(std::move(file)), buffer_(file_->AcquireRegion()) {}
  ~MemoryRegion() override { file_->ReleaseRegion(buffer_.get()); }
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  const std::byte* data() const override { return buffer_->bytes.data(); }
  uint64_t size() const override { return buffer_->bytes.size(); }
  absl::Status Populate(uint64_t offset, uint64_t length) const override {
    if (offset <= size() && length <= size() - offset) return absl::OkStatus();
    return OutsideMappingError(path_, offset, length, size());
  }

 private:
  const std::string path_;
  const std::shared_ptr<MemoryFile> file_;
  const std::shared_ptr<Buffer> buffer_;
};

class MemoryReadableFile : public ReadableFile {
 public:
  MemoryReadableFile(std::string path, std::shared_ptr<MemoryFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    return file_->Read(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return file_->size(); }
  absl::StatusOr<std::unique_ptr<MappedRegion>> Map() const override {
    return std::make_unique<MemoryRegion>(path_, file_);
  }

 private:
  const std::string path_;
  const std::shared_ptr<MemoryFile> file_;
};

class MemoryLock : public FileLock {
 public:
  explicit MemoryLock(std::shared_ptr<MemoryFile> file) : file_(std::move(file)) {}
  ~MemoryLock() override { file_->Unlock(); }
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;

 private:
  const std::shared_ptr<MemoryFile> file_;
};

class MemoryPage : public SharedPage {
 public:
  MemoryPage(std::shared_ptr<MemoryFile> file, std::shared_ptr<Buffer> buffer, size_t size,
             bool writable)
      : file_(std::move(file)),
        buffer_(std::move(buffer)),
        data_(buffer_->bytes.data()),
        size_(size),
        writable_(writable) {}
  ~MemoryPage() override { file_->ReleasePage(buffer_.get()); }
  MemoryPage(const MemoryPage&) = delete;
  MemoryPage& operator=(const MemoryPage&) = delete;

  std::byte* data() override { return writable_ ? data_ : nullptr; }
  const std::byte* data() const override { return data_; }
  size_t size() const override { return size_; }

 private:
  const std::shared_ptr<MemoryFile> file_;
  const std::shared_ptr<Buffer> buffer_;
  std::byte* const data_;
  const size_t size_;
  const bool writable_;
};

class MemoryFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<MemoryFile> file, Open(path, kCreate));
    return std::make_unique<MemoryWritableFile>(path, std::move(file));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<MemoryFile> file, Open(path, kExisting));
    return std::make_unique<MemoryWritableFile>(path, std::move(file));
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) override {
    ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<MemoryFile> file, Open(path, kExisting));
    return std::make_unique<MemoryReadableFile>(path, std::move(file));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;

  absl::StatusOr<uint64_t> FileSize(const std::string& path) override {
    ASHLAR_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryFile> file, Open(path, kExisting));
    return file->size();
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    const std::string name = CanonicalPath(path);
    return name.empty() || names_.count(name) != 0;
  }

  absl::StatusOr<uint64_t> AvailableBytes(const std::string& path) override {
    ASHLAR_ASSIGN_OR_RETURN(const bool exists, Exists(path));
    if (!exists) return EnvError(ENOENT, "statvfs", path);
    return UINT64_MAX;
  }

  absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& directory) override;
  absl::Status CreateDirectory(const std::string& path) override;

  absl::Status SyncDirectory(const std::string& path) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    return CheckDirectory(CanonicalPath(path));
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<MemoryFile> file, Open(path, kExistingOrCreate));
    if (file->TryLock()) return std::make_unique<MemoryLock>(std::move(file));
    return WithPlace(Unavailable(absl::StrCat(path, ": locked by another handle of this process")),
                     path, "", 0);
  }
  absl::StatusOr<bool> IsLocked(const std::string& path) override {
    const absl::StatusOr<std::shared_ptr<MemoryFile>> file = Open(path, kExisting);
    if (file.ok()) return (*file)->locked();
    if (absl::IsNotFound(file.status())) return false;
    return file.status();
  }

  absl::StatusOr<std::unique_ptr<SharedPage>> MapShared(const std::string& path, size_t size,
                                                        bool writable) override {
    if (size == 0 || size > kSizeMax) {
      return PageSizeError(path, size);
    }
    ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<MemoryFile> file,
                            Open(path, writable ? kExistingOrCreate : kExisting));
    std::shared_ptr<Buffer> buffer = file->AcquirePage(size, writable);
    if (buffer == nullptr) {
      if (writable) return EnvError(ENOMEM, "map shared", path);
      return ShortenedError(path, 0, size, file->size());
    }
    return std::make_unique<MemoryPage>(std::move(file), std::move(buffer), size, writable);
  }

  std::string NativePath(const std::string&) const override { return ""; }

 private:
  enum OpenMode { kExisting, kExistingOrCreate, kCreate };
  // Canonical path -> file, or null for a directory. The root is not in it. Ordered, so that what
  // is under a directory stands together.
  using NameTable = std::map<std::string, std::shared_ptr<MemoryFile>>;

  static absl::Status Missing(const std::string& path) { return EnvError(ENOENT, "look up", path); }
  static absl::Status IsDirectory(const std::string& path) {
    return EnvError(EISDIR, "open", path);
  }
  static absl::Status NameTaken(const std::string& path) {
    return EnvError(EEXIST, "create", path);
  }

  absl::Status CheckDirectory(const std::string& name) const {
    if (name.empty()) return absl::OkStatus();
    const auto it = names_.find(name);
    return it != names_.end() && it->second == nullptr ? absl::OkStatus() : Missing(name);
  }

  // Of a directory that is in the table: the first name under it, or the end of the table.
  NameTable::iterator FirstUnder(const std::string& name) {
    const auto it = names_.lower_bound(name + "/");
    return it != names_.end() && it->first.compare(0, name.size() + 1, name + "/") == 0
               ? it
               : names_.end();
  }

  absl::StatusOr<std::shared_ptr<MemoryFile>> Open(const std::string& path, OpenMode mode) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const std::string name = CanonicalPath(path);
    const auto it = names_.find(name);
    if (name.empty() || it != names_.end()) {
      if (mode == kCreate) return NameTaken(path);
      if (name.empty() || it->second == nullptr) return IsDirectory(path);
      return it->second;
    }
    if (mode == kExisting) return Missing(path);
    ASHLAR_RETURN_IF_ERROR(CheckDirectory(ParentPath(name)));
    auto file = std::make_shared<MemoryFile>();
    names_.emplace(name, file);
    return file;
  }

  std::mutex mutex_;
  NameTable names_;
};

absl::Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string source = CanonicalPath(from);
  const std::string target = CanonicalPath(to);
  const auto it = names_.find(source);
  if (it == names_.end()) return Missing(from);
  ASHLAR_RETURN_IF_ERROR(CheckDirectory(ParentPath(target)));
  if (source == target) return absl::OkStatus();
  if (target.empty()) return IsDirectory(to);
  const bool is_directory = it->second == nullptr;
  if (is_directory && (target + "/").compare(0, source.size() + 1, source + "/") == 0) {
    return FailedPrecondition(absl::StrCat(from, ": cannot move a directory into itself, ", to));
  }
  const auto old = names_.find(target);
  if (old != names_.end() && is_directory != (old->second == nullptr))
    return is_directory ? Missing(to) : IsDirectory(to);
  if (is_directory && old != names_.end() && FirstUnder(target) != names_.end()) {
    return EnvError(ENOTEMPTY, "rename", to);
  }
  names_[target] = it->second;
  names_.erase(it);
  while (is_directory) {  // and all that is in it
    const auto inner = FirstUnder(source);
    if (inner == names_.end()) break;
    names_[target + inner->first.substr(source.size())] = inner->second;
    names_.erase(inner);
  }
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Link(const std::string& from, const std::string& to) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto it = names_.find(CanonicalPath(from));
  if (it == names_.end()) return Missing(from);
  if (it->second == nullptr) return IsDirectory(from);
  const std::string target = CanonicalPath(to);
  if (target.empty() || names_.count(target) != 0) return NameTaken(to);
  ASHLAR_RETURN_IF_ERROR(CheckDirectory(ParentPath(target)));
  names_.emplace(target, it->second);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string name = CanonicalPath(path);
  const auto it = names_.find(name);
  if (it == names_.end()) return name.empty() ? IsDirectory(path) : Missing(path);
  if (it->second == nullptr && FirstUnder(name) != names_.end()) {
    return EnvError(ENOTEMPTY, "remove", path);
  }
  names_.erase(it);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FileSystem::DirectoryEntry>> MemoryFileSystem::List(
    const std::string& directory) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string name = CanonicalPath(directory);
  ASHLAR_RETURN_IF_ERROR(CheckDirectory(name));
  std::vector<DirectoryEntry> entries;
  const size_t prefix = name.empty() ? 0 : name.size() + 1;
  for (auto it = name.empty() ? names_.begin() : FirstUnder(name); it != names_.end(); ++it) {
    if (prefix != 0 && it->first.compare(0, prefix, name + "/") != 0) break;
    const std::string rest = it->first.substr(prefix);
    if (rest.find('/') == std::string::npos) entries.push_back({rest, it->second != nullptr});
  }
  // Names of one directory stand in the table's order, which is theirs.
  return entries;
}

absl::Status MemoryFileSystem::CreateDirectory(const std::string& path) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string name = CanonicalPath(path);
  if (name.empty() || names_.count(name) != 0) return NameTaken(path);
  ASHLAR_RETURN_IF_ERROR(CheckDirectory(ParentPath(name)));
  names_.emplace(name, nullptr);
  return absl::OkStatus();
}

class MemoryEnvImpl : public MemoryEnv {
 public:
  Env env() override {
    const Env posix = PosixEnv();
    return {&files_, posix.clock, posix.entropy};
  }

 private:
  MemoryFileSystem files_;
};

}  // namespace

std::unique_ptr<MemoryEnv> NewMemoryEnv() { return std::make_unique<MemoryEnvImpl>(); }

}  // namespace ashlar::env
