// The posix half that fcntl locks force on us. Such a lock belongs to the process, and closing ANY
// descriptor of the file drops it. So one registry for the whole process, keyed by device and
// inode, knows the locks that are held; no second descriptor of a locked file is opened where that
// can be avoided, and one that is there anyway is parked until the lock is released instead of
// being closed.
//
// Why fcntl: flock and OFD locks live on in a forked child after the holder was killed; these do
// not. Threads: everything here may be called from any thread.
#ifndef ASHLAR_SRC_ENV_POSIX_LOCK_H_
#define ASHLAR_SRC_ENV_POSIX_LOCK_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <compare>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/env/env.h"

namespace ashlar::env {

// Which file a descriptor or a path refers to, whatever its name.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};
FileIdentity IdentityOf(const struct stat& info);

// Owns a file descriptor. Closing never drops a lock that this process holds on the same file.
class Descriptor {
 public:
  Descriptor(int fd, FileIdentity identity) : fd_(fd), identity_(identity) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // The errno of close, or 0. Idempotent.
  int Close();

 private:
  int fd_;
  FileIdentity identity_;
};

// See FileSystem::Lock and FileSystem::IsLocked.
absl::StatusOr<std::unique_ptr<FileLock>> LockFile(const std::string& path);
absl::StatusOr<bool> IsFileLocked(const std::string& path);

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_POSIX_LOCK_H_
