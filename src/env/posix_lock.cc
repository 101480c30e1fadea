#include "src/env/posix_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/env/env_error.h"

namespace ashlar::env {
namespace {

// One write lock over the whole file, however long it is.
struct flock WholeFile() {
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  return request;
}

int RetryOpen(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// When this process started, as UTC text; empty where /proc does not tell.
std::string ProcessStartTime() {
  std::array<char, 1024> text{};
  const int fd = RetryOpen("/proc/self/stat", O_RDONLY);
  if (fd < 0) return "";
  const ssize_t length = ::read(fd, text.data(), text.size() - 1);
  ::close(fd);
  if (length <= 0) return "";
  // The second field, the program's name in parentheses, may hold anything; the start time is the
  // 22nd, in clock ticks since boot (proc(5)).
  const std::string stat(text.data(), static_cast<size_t>(length));
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return "";
  const auto ticks = static_cast<int64_t>(std::strtoll(stat.c_str() + at, nullptr, 10));
  struct timespec wall {};
  struct timespec boot {};
  const int64_t ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (::clock_gettime(CLOCK_REALTIME, &wall) != 0 || ::clock_gettime(CLOCK_BOOTTIME, &boot) != 0 ||
      ticks_per_second <= 0) {
    return "";
  }
  const time_t started = wall.tv_sec - boot.tv_sec + ticks / ticks_per_second;
  struct tm parts {};
  std::array<char, 32> out{};
  if (::gmtime_r(&started, &parts) == nullptr) return "";
  const size_t size = std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(out.data(), size);
}

constexpr size_t kHolderBytes = 64;

// What a holder writes into the lock file and what the loser of a conflict reads there.
struct Holder {
  int64_t pid = 0;  // 0: unknown
  std::string started;
};

void WriteHolder(int fd, const Holder& holder) {
  // Only for messages, so a full disk must not stop the owner: it is the lock that counts, not the
  // text. Of one length, so that it replaces an earlier holder's: to truncate first would cost
  // milliseconds, because ext4 then writes the file back when it is closed.
  std::string text = absl::StrCat("pid ", holder.pid, "\nstarted ", holder.started);
  text.resize(kHolderBytes - 1, ' ');
  text += '\n';
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
}

Holder ReadHolder(int fd) {
  Holder holder;
  std::array<char, 128> text{};
  std::array<char, 64> started{};
  if (::pread(fd, text.data(), text.size() - 1, 0) <= 0) return holder;
  long long pid = 0;
  if (std::sscanf(text.data(), "pid %lld\nstarted %63s", &pid, started.data()) >= 1)
    holder.pid = pid;
  holder.started = started.data();
  return holder;
}

absl::Status LockedBy(const std::string& path, const Holder& holder, std::string_view who) {
  std::string message = absl::StrCat(path, ": locked by ", ToAbsl(who));
  if (holder.pid > 0) absl::StrAppend(&message, ", pid ", holder.pid);
  if (!holder.started.empty()) absl::StrAppend(&message, ", started ", holder.started);
  return WithPlace(Unavailable(message), path, "", 0);
}

class LockRegistry {
 public:
  static LockRegistry& Get() {
    // Never destroyed: locks may be released by destructors of static objects.
    static LockRegistry* const registry = new LockRegistry;
    return *registry;
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path);
  absl::StatusOr<bool> IsLocked(const std::string& path);
  int Close(int fd, FileIdentity identity);
  void Release(FileIdentity identity);
  // Whether the lock is held and was held all the time. Somebody else's code in this process may have dropped it by
  // closing a descriptor of the file: then it is taken again, if no other writer came by, whose name would be in the file.
  bool StillHeld(FileIdentity identity);

 private:
  struct Held {
    pid_t owner = 0;
    int fd = -1;
    std::string started;  // as the file says
    std::vector<int> parked;  // closing them would drop the lock
  };

  LockRegistry() {
    // A child must neither inherit a mutex that another thread of its parent held, nor believe that
    // the parent's locks are its own.
    ::pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); },
                     [] {
                       Get().held_.clear();  // the descriptors stay open: not the child's to close
                       Get().mutex_.unlock();
                     });
  }

  // Null also for what a child got past the handlers (vfork, clone): those are its parent's locks.
  Held* FindOwn(FileIdentity identity) {
    const auto it = held_.find(identity);
    return it != held_.end() && it->second.owner == ::getpid() ? &it->second : nullptr;
  }

  absl::Status HeldHere(const std::string& path) {
    return LockedBy(path, {::getpid(), ProcessStartTime()}, "another handle of this process");
  }

  std::mutex mutex_;
  std::map<FileIdentity, Held> held_;
};

class PosixLock : public FileLock {
 public:
  PosixLock(FileIdentity identity, std::string path)
      : identity_(identity), path_(std::move(path)), owner_(::getpid()) {}
  ~PosixLock() override {
    // The copy in a forked child owns nothing: the lock stays with the parent.
    if (::getpid() == owner_) LockRegistry::Get().Release(identity_);
  }

  absl::Status CheckHeld() override {
    struct stat info {};
    if (!SiteIsOn(Site::kLockFileIsOurs)) return absl::OkStatus();
    if (::stat(path_.c_str(), &info) != 0 || IdentityOf(info) != identity_ ||
        !LockRegistry::Get().StillHeld(identity_))
      lost_ = true;
    if (!lost_) return absl::OkStatus();
    // It stays so: whoever was there meanwhile may have written.
    return WithPlace(FailedPrecondition(absl::StrCat(
                         path_, ": the lock was lost: its file was removed or replaced while it was held, or another "
                                "writer took it")),
                     path_, "", 0);
  }

 private:
  const FileIdentity identity_;
  const std::string path_;
  const pid_t owner_;
  std::atomic<bool> lost_ = false;
};

absl::StatusOr<std::unique_ptr<FileLock>> LockRegistry::Lock(const std::string& path) {
  const std::lock_guard<std::mutex> guard(mutex_);
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    // Asked before opening: there should be no second descriptor to close.
    if (FindOwn(IdentityOf(info)) != nullptr) return HeldHere(path);
    if (S_ISDIR(info.st_mode)) return EnvError(EISDIR, "open lock file", path);
  }
  const int fd = RetryOpen(path, O_RDWR | O_CREAT);
  if (fd < 0) return EnvError(errno, "open lock file", path);
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return EnvError(error, "stat lock file", path);
  }
  const FileIdentity identity = IdentityOf(info);
  if (Held* const held = FindOwn(identity); held != nullptr) {  // the name was exchanged meanwhile
    held->parked.push_back(fd);
    return HeldHere(path);
  }
  struct flock request = WholeFile();
  if (::fcntl(fd, F_SETLK, &request) == 0) {
    // Another file may have taken its name between the opening and the lock: then this lock keeps nobody out.
    if (::stat(path.c_str(), &info) != 0 || IdentityOf(info) != identity) {
      ::close(fd);
      return WithPlace(Unavailable(absl::StrCat(path, ": the lock file was exchanged")), path, "", 0);
    }
    WriteHolder(fd, {::getpid(), ProcessStartTime()});
    held_[identity] = Held{::getpid(), fd, ReadHolder(fd).started, {}};
    return std::make_unique<PosixLock>(identity, path);
  }
  const int error = errno;
  Holder holder = ReadHolder(fd);
  struct flock found = WholeFile();
  const bool known =
      ::fcntl(fd, F_GETLK, &found) == 0 && found.l_type != F_UNLCK && found.l_pid > 0;
  if (known && found.l_pid != holder.pid)
    holder = {found.l_pid, ""};  // the text is an earlier holder's
  ::close(fd);
  if (error != EAGAIN && error != EACCES) return EnvError(error, "lock", path);
  return LockedBy(path, holder, "another process");
}

absl::StatusOr<bool> LockRegistry::IsLocked(const std::string& path) {
  // The mutex is held throughout, so that no lock is taken here between the test and the close
  // below.
  const std::lock_guard<std::mutex> guard(mutex_);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return EnvError(errno, "stat lock file", path);
  }
  if (FindOwn(IdentityOf(info)) != nullptr) return true;
  const int fd = RetryOpen(path, O_RDONLY);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    return EnvError(errno, "open lock file", path);
  }
  if (::fstat(fd, &info) == 0) {
    if (Held* const held = FindOwn(IdentityOf(info)); held != nullptr) {
      held->parked.push_back(fd);
      return true;
    }
  }
  struct flock found = WholeFile();
  const int result = ::fcntl(fd, F_GETLK, &found);
  const int error = errno;
  ::close(fd);
  if (result != 0) return EnvError(error, "test lock", path);
  return found.l_type != F_UNLCK;
}

int LockRegistry::Close(int fd, FileIdentity identity) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (Held* const held = FindOwn(identity); held != nullptr) {
    held->parked.push_back(fd);
    return 0;
  }
  // Linux has closed the descriptor even when it says EINTR; closing again could hit a stranger's.
  return ::close(fd) == 0 || errno == EINTR ? 0 : errno;
}

bool LockRegistry::StillHeld(FileIdentity identity) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Held* const held = FindOwn(identity);
  struct flock request = WholeFile();
  if (held == nullptr || ::fcntl(held->fd, F_SETLK, &request) != 0) return false;
  const Holder holder = ReadHolder(held->fd);
  return holder.pid == ::getpid() && holder.started == held->started;
}

void LockRegistry::Release(FileIdentity identity) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto it = held_.find(identity);
  if (it == held_.end()) return;
  // The first close drops the lock. The file itself stays: to remove it would let two processes
  // lock two files.
  ::close(it->second.fd);
  for (const int fd : it->second.parked) ::close(fd);
  held_.erase(it);
}

}  // namespace

FileIdentity IdentityOf(const struct stat& info) { return {info.st_dev, info.st_ino}; }

int Descriptor::Close() {
  if (fd_ < 0) return 0;
  return LockRegistry::Get().Close(std::exchange(fd_, -1), identity_);
}

absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path) {
  return LockRegistry::Get().Lock(path);
}

absl::StatusOr<bool> IsFileLocked(const std::string& path) {
  return LockRegistry::Get().IsLocked(path);
}

}  // namespace ashlar::env
