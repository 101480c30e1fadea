// The operating system's files, clock and random bytes. Linux.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "src/base/check.h"
#include "src/base/mutex.h"
#include "src/base/status.h"
#include "src/env/env.h"
#include "src/env/env_error.h"
#include "src/env/file_system_kind.h"
#include "src/env/page_buffer.h"
#include "src/env/posix_lock.h"
#include "src/env/process.h"
#include "src/env/sigbus_guard.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older headers lack the name
#endif

namespace ashlar::env {
namespace {

constexpr uint64_t kOffsetMax = std::numeric_limits<off_t>::max();
constexpr size_t kReadBackBytes = 64 * 1024;
constexpr int kAdviseAttemptsMax = 16;  // when the kernel says to try again

// A system call again and again while a signal interrupts it.
template <class Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// One descriptor of the process that nothing uses, for the sync of a directory when there is no other left. It comes
// when files have got their names, so it would be a failed sync, and those are final.
class DescriptorReserve {
 public:
  // -1: errno says why not.
  int OpenDirectory(const char* path) {
    MutexLock lock(&mutex_);
    const auto open_it = [path] { return Retry([=] { return ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }); };
    int fd = open_it();
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && reserved_ >= 0) {
      ::close(std::exchange(reserved_, -1));
      fd = open_it();
    }
    return fd;
  }
  void CloseDirectory(int fd) {
    MutexLock lock(&mutex_);
    ::close(fd);
    if (reserved_ < 0) reserved_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }

 private:
  Mutex mutex_;
  int reserved_ ABSL_GUARDED_BY(mutex_) = -1;
};

DescriptorReserve& TheReserve() {
  static DescriptorReserve* const reserve = new DescriptorReserve;  // outlives every store
  return *reserve;
}

// Reads until `out` is full or the file ends. The errno, or 0; `*read` counts what came.
int ReadFully(int fd, uint64_t offset, std::span<std::byte> out, size_t* read) {
  *read = 0;
  if (offset > kOffsetMax) return 0;  // no file is that long
  out = out.first(static_cast<size_t>(std::min<uint64_t>(out.size(), kOffsetMax - offset)));
  while (*read < out.size()) {
    const ssize_t n = Retry([&] {
      return ::pread(fd, out.data() + *read, out.size() - *read,
                     static_cast<off_t>(offset + *read));
    });
    if (n < 0) return errno;
    if (n == 0) return 0;
    *read += static_cast<size_t>(n);
  }
  return 0;
}

// A regular file that was just opened, with its size.
struct OpenedFile {
  std::unique_ptr<Descriptor> descriptor;
  uint64_t size = 0;
};

// O_NONBLOCK changes nothing for files but keeps a FIFO in a file's place from stopping us forever.
absl::StatusOr<OpenedFile> OpenRegular(const std::string& path, int flags) {
  const int fd = Retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666); });
  if (fd < 0) return EnvError(errno, "open", path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return EnvError(error, "stat", path);
  }
  OpenedFile opened{std::make_unique<Descriptor>(fd, IdentityOf(info)),
                    static_cast<uint64_t>(info.st_size)};
  if (S_ISDIR(info.st_mode)) return EnvError(EISDIR, "open", path);
  if (!S_ISREG(info.st_mode)) {
    return WithPlace(FailedPrecondition(absl::StrCat(path, ": not a regular file")), path, "", 0);
  }
  return opened;
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, OpenedFile file)
      : path_(std::move(path)), descriptor_(std::move(file.descriptor)), size_(file.size) {}

  absl::Status WriteAt(uint64_t offset, ByteSpan bytes) override {
    ASHLAR_RETURN_IF_ERROR(CheckOpen());
    if (offset > kOffsetMax || bytes.size() > kOffsetMax - offset)
      return EnvError(EFBIG, "write", path_);
    while (!bytes.empty()) {
      const ssize_t n = Retry([&] {
        return ::pwrite(descriptor_->fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (n < 0) return EnvError(errno, absl::StrCat("write at offset ", offset), path_);
      if (n == 0) return EnvError(EIO, "write nothing", path_);  // never seen; would loop for ever
      bytes = bytes.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
      size_ = std::max(size_, offset);
    }
    return absl::OkStatus();
  }

  absl::Status Append(ByteSpan bytes) override { return WriteAt(size_, bytes); }

  absl::Status Sync() override {
    ASHLAR_RETURN_IF_ERROR(CheckOpen());
    // An interrupted sync has not reported (and so not forgotten) any failed write: that one may be
    // repeated.
    if (Retry([&] { return ::fdatasync(descriptor_->fd()); }) != 0)
      return EnvError(errno, "sync", path_);
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t size) override {
    ASHLAR_RETURN_IF_ERROR(CheckOpen());
    if (size > kOffsetMax) return EnvError(EFBIG, "truncate", path_);
    if (Retry([&] { return ::ftruncate(descriptor_->fd(), static_cast<off_t>(size)); }) != 0) {
      return EnvError(errno, "truncate", path_);
    }
    size_ = size;
    return absl::OkStatus();
  }

  uint64_t size() const override { return size_; }

  absl::Status Close() override {
    if (!descriptor_->is_open()) return closed_;
    if (const int error = descriptor_->Close(); error != 0)
      closed_ = EnvError(error, "close", path_);
    return closed_;
  }

 private:
  absl::Status CheckOpen() const {
    if (descriptor_->is_open()) return absl::OkStatus();
    return ClosedError(path_);
  }

  const std::string path_;
  std::unique_ptr<Descriptor> descriptor_;
  uint64_t size_;
  absl::Status closed_;
};

class PosixMappedRegion : public MappedRegion {
 public:
  // `data` is null iff the file is empty.
  PosixMappedRegion(std::string path, std::shared_ptr<Descriptor> descriptor, std::byte* data,
                    uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), data_(data), size_(size) {}
  ~PosixMappedRegion() override {
    guard_.reset();  // first, so that the handler never takes what is mapped here next for ours
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  PosixMappedRegion(const PosixMappedRegion&) = delete;
  PosixMappedRegion& operator=(const PosixMappedRegion&) = delete;

  const std::byte* data() const override { return data_; }
  uint64_t size() const override { return size_; }

  absl::Status Populate(uint64_t offset, uint64_t length) const override {
    if (offset > size_ || length > size_ - offset) {
      return OutsideMappingError(path_, offset, length, size_);
    }
    if (length == 0) return absl::OkStatus();
    if (lost()) return LostError();
    int error = Advise(offset, length);
    // Asked after the pages were touched, and always: where a file ends inside a page, the rest of
    // the page reads as zeros and nothing else would tell.
    ASHLAR_RETURN_IF_ERROR(CheckNotShorter(offset));
    if (error == 0) return absl::OkStatus();
    // An old kernel without the advice, or a page that cannot be read: a plain read finds out
    // which, and names it.
    ASHLAR_RETURN_IF_ERROR(ReadBack(offset, length));
    if (error == EINVAL) return absl::OkStatus();
    error = Advise(offset, length);  // the read may have cured it
    if (error == 0) return absl::OkStatus();
    return EnvError(error == EFAULT ? EIO : error, absl::StrCat("populate at offset ", offset),
                    path_);
  }

  absl::Status Guard() override {
    if (data_ == nullptr || guard_ != nullptr) return absl::OkStatus();
    auto guard = std::make_unique<GuardedMapping>(data_, size_);
    if (!guard->ok()) return ResourceExhausted(absl::StrCat(path_, ": cannot guard the mapping"));
    guard_ = std::move(guard);
    return absl::OkStatus();
  }

  bool lost() const override { return guard_ != nullptr && guard_->lost(); }

 private:
  absl::Status LostError() const {
    ASHLAR_RETURN_IF_ERROR(CheckNotShorter(guard_->lost_offset()));
    return DataLoss(path_, "file", guard_->lost_offset(),
                    "a page could not be read, or the file was shorter for a time");
  }

  // The errno, or 0.
  int Advise(uint64_t offset, uint64_t length) const {
    static const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t begin = offset / page_bytes * page_bytes;
    const size_t span = static_cast<size_t>(offset + length - begin);
    int error = 0;
    for (int attempt = 0; attempt < kAdviseAttemptsMax; ++attempt) {
      if (::madvise(data_ + begin, span, MADV_POPULATE_READ) == 0) return 0;
      error = errno;
      if (error != EINTR && error != EAGAIN) break;
    }
    return error;
  }

  absl::Status CheckNotShorter(uint64_t offset) const {
    struct stat info {};
    if (::fstat(descriptor_->fd(), &info) != 0) return EnvError(errno, "stat", path_);
    if (static_cast<uint64_t>(info.st_size) >= size_) return absl::OkStatus();
    return ShortenedError(path_, offset, size_, static_cast<uint64_t>(info.st_size));
  }

  absl::Status ReadBack(uint64_t offset, uint64_t length) const {
    std::vector<std::byte> scratch(static_cast<size_t>(std::min<uint64_t>(length, kReadBackBytes)));
    while (length > 0) {
      const std::span<std::byte> part(
          scratch.data(), static_cast<size_t>(std::min<uint64_t>(length, scratch.size())));
      size_t read = 0;
      if (const int error = ReadFully(descriptor_->fd(), offset, part, &read); error != 0) {
        return EnvError(error, absl::StrCat("read at offset ", offset + read), path_);
      }
      if (read < part.size()) return ShortenedError(path_, offset, size_, offset + read);
      offset += read;
      length -= read;
    }
    return absl::OkStatus();
  }

  const std::string path_;
  const std::shared_ptr<Descriptor> descriptor_;
  std::byte* const data_;
  const uint64_t size_;
  std::unique_ptr<GuardedMapping> guard_;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(std::string path, std::shared_ptr<Descriptor> descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const override {
    size_t read = 0;
    if (const int error = ReadFully(descriptor_->fd(), offset, out, &read); error != 0) {
      return EnvError(error, absl::StrCat("read at offset ", offset + read), path_);
    }
    return read;
  }

  absl::StatusOr<uint64_t> Size() const override {
    struct stat info {};
    if (::fstat(descriptor_->fd(), &info) != 0) return EnvError(errno, "stat", path_);
    return static_cast<uint64_t>(info.st_size);
  }

  absl::StatusOr<std::unique_ptr<MappedRegion>> Map() const override {
    ASHLAR_ASSIGN_OR_RETURN(const uint64_t size, Size());
    std::byte* data = nullptr;
    if (size > 0) {  // an empty mapping is an error to mmap, not to us
      void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_->fd(), 0);
      if (address == MAP_FAILED) return EnvError(errno, "map", path_);
      data = static_cast<std::byte*>(address);
    }
    return std::make_unique<PosixMappedRegion>(path_, descriptor_, data, size);
  }

 private:
  const std::string path_;
  const std::shared_ptr<Descriptor> descriptor_;  // shared with the regions: they ask for the size
};

class PosixSharedPage : public SharedPage {
 public:
  PosixSharedPage(std::byte* data, size_t size, bool writable)
      : data_(data), size_(size), writable_(writable) {}
  ~PosixSharedPage() override { ::munmap(data_, size_); }
  PosixSharedPage(const PosixSharedPage&) = delete;
  PosixSharedPage& operator=(const PosixSharedPage&) = delete;

  std::byte* data() override { return writable_ ? data_ : nullptr; }
  const std::byte* data() const override { return data_; }
  size_t size() const override { return size_; }

 private:
  std::byte* const data_;
  const size_t size_;
  const bool writable_;
};

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    return OpenWritable(path, O_RDWR | O_CREAT | O_EXCL);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) override {
    return OpenWritable(path, O_RDWR);
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    ASHLAR_ASSIGN_OR_RETURN(OpenedFile opened, OpenRegular(path, O_RDONLY));
    return std::make_unique<PosixReadableFile>(path, std::move(opened.descriptor));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(from));
    ASHLAR_RETURN_IF_ERROR(CheckPath(to));
    if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    if (errno == EINVAL) {
      return FailedPrecondition(absl::StrCat(from, ": cannot move a directory into itself, ", to));
    }
    return EnvError(errno, absl::StrCat("rename to ", to), from);
  }

  absl::Status Link(const std::string& from, const std::string& to) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(from));
    ASHLAR_RETURN_IF_ERROR(CheckPath(to));
    struct stat info {};
    if (::stat(from.c_str(), &info) != 0) return EnvError(errno, "link", from);
    if (S_ISDIR(info.st_mode)) return EnvError(EISDIR, "link", from);
    if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    switch (errno) {
      case EXDEV:
      case EPERM:
      case EMLINK:
      case ENOSYS:
      case EOPNOTSUPP:
        return WithPlace(Unimplemented(absl::StrCat(from, ": link as ", to, ": ", std::strerror(errno))), from, "", 0);
      default:
        return EnvError(errno, absl::StrCat("link as ", to), errno == EEXIST ? to : from);
    }
  }

  absl::Status Remove(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    if (std::remove(path.c_str()) == 0) return absl::OkStatus();
    return EnvError(errno, "remove", path);
  }

  absl::StatusOr<uint64_t> FileSize(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return EnvError(errno, "stat", path);
    if (S_ISDIR(info.st_mode)) return EnvError(EISDIR, "size", path);
    return static_cast<uint64_t>(info.st_size);
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return EnvError(errno, "stat", path);
  }

  absl::StatusOr<uint64_t> AvailableBytes(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0) return EnvError(errno, "statvfs", path);
    return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  }

  absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& directory) override;

  absl::Status CreateDirectory(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    if (::mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
    return EnvError(errno, "create directory", path);
  }

  absl::Status SyncDirectory(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    const int fd = TheReserve().OpenDirectory(path.c_str());
    if (fd < 0) return EnvError(errno, "open directory", path);
    const int error = Retry([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
    TheReserve().CloseDirectory(fd);
    return error == 0 ? absl::OkStatus() : EnvError(error, "sync directory", path);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    return LockFile(path);
  }

  absl::StatusOr<bool> IsLocked(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    return IsFileLocked(path);
  }

  absl::StatusOr<std::unique_ptr<SharedPage>> MapShared(const std::string& path, size_t size,
                                                        bool writable) override;

  std::string NativePath(const std::string& path) const override { return path; }

  absl::StatusOr<FileSystemKind> Kind(const std::string& path) override {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    return FindFileSystemKind(path);
  }

 private:
  // The system would silently use what stands before the NUL.
  static absl::Status CheckPath(const std::string& path) {
    if (path.find('\0') == std::string::npos) return absl::OkStatus();
    return InvalidArgument("a path must not hold a NUL byte");
  }

  static absl::StatusOr<std::unique_ptr<WritableFile>> OpenWritable(const std::string& path,
                                                                    int flags) {
    ASHLAR_RETURN_IF_ERROR(CheckPath(path));
    ASHLAR_ASSIGN_OR_RETURN(OpenedFile opened, OpenRegular(path, flags));
    return std::make_unique<PosixWritableFile>(path, std::move(opened));
  }
};

absl::StatusOr<std::vector<FileSystem::DirectoryEntry>> PosixFileSystem::List(
    const std::string& directory) {
  ASHLAR_RETURN_IF_ERROR(CheckPath(directory));
  const std::unique_ptr<DIR, int (*)(DIR*)> handle(::opendir(directory.c_str()), &::closedir);
  if (handle == nullptr) return EnvError(errno, "open directory", directory);
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;  // readdir says null both at the end and on an error
    const struct dirent* const found = ::readdir(handle.get());
    if (found == nullptr) break;
    DirectoryEntry entry;
    entry.name = found->d_name;
    if (entry.name == "." || entry.name == "..") continue;
    entry.is_file = found->d_type == DT_REG;
    if (found->d_type == DT_UNKNOWN || found->d_type == DT_LNK) {
      struct stat info {};
      entry.is_file =
          ::fstatat(::dirfd(handle.get()), found->d_name, &info, 0) == 0 && S_ISREG(info.st_mode);
    }
    entries.push_back(std::move(entry));
  }
  if (errno != 0) return EnvError(errno, "list", directory);
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

absl::StatusOr<std::unique_ptr<SharedPage>> PosixFileSystem::MapShared(const std::string& path,
                                                                       size_t size, bool writable) {
  ASHLAR_RETURN_IF_ERROR(CheckPath(path));
  if (size == 0 || size > kOffsetMax) return PageSizeError(path, size);
  ASHLAR_ASSIGN_OR_RETURN(const OpenedFile opened,
                          OpenRegular(path, writable ? O_RDWR | O_CREAT : O_RDONLY));
  const int fd = opened.descriptor->fd();
  if (writable) {
    if (opened.size > size &&
        Retry([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) != 0) {
      return EnvError(errno, "truncate", path);
    }
    // A hole in a shared mapping is a SIGBUS when the disk is full: take the space now, where it is
    // an error.
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(fd, 0, static_cast<off_t>(size));
    if (error != 0) return EnvError(error, "allocate", path);
  } else if (opened.size < size) {
    return ShortenedError(path, 0, size, opened.size);
  }
  void* const address =
      ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return EnvError(errno, "map", path);
  return std::make_unique<PosixSharedPage>(static_cast<std::byte*>(address), size, writable);
}

class PosixClock : public Clock {
 public:
  uint64_t MonotonicNs() override {
    const struct timespec now = Now(CLOCK_MONOTONIC);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
  }
  int64_t WallMs() override {
    const struct timespec now = Now(CLOCK_REALTIME);
    return static_cast<int64_t>(now.tv_sec) * 1000 + static_cast<int64_t>(now.tv_nsec) / 1'000'000;
  }

 private:
  static struct timespec Now(clockid_t clock) {
    struct timespec now {};
    ASHLAR_CHECK(::clock_gettime(clock, &now) == 0);  // fails for unknown clocks only
    return now;
  }
};

class PosixEntropy : public Entropy {
 public:
  void Fill(std::span<std::byte> out) override {
    while (!out.empty()) {
      const ssize_t n = Retry([&] { return ::getrandom(out.data(), out.size(), 0); });
      ASHLAR_CHECK(n > 0);  // ids that repeat would let one file pass for another
      out = out.subspan(static_cast<size_t>(n));
    }
  }
};

}  // namespace

void AdviseHugePages(void* begin, size_t bytes) { ::madvise(begin, bytes, MADV_HUGEPAGE); }

Env PosixEnv() {
  ReserveStandardDescriptors();
  static PosixFileSystem* const files = new PosixFileSystem;
  static PosixClock* const clock = new PosixClock;
  static PosixEntropy* const entropy = new PosixEntropy;
  return {files, clock, entropy, nullptr, /*has_threads=*/true};
}

}  // namespace ashlar::env
