// Env: every touch of the outside world. Files, directories, mappings, locks and clocks go through these interfaces,
// so that the simulated disk can stand in for the real one. Implementations: posix_env.cc (the operating system),
// memory_env.cc (stores in memory), sim_env.cc (a disk that crashes and fails on demand; tests and crash laboratory).
// One contract test, tests/env/env_contract_test.cc, runs over all of them.
//
// Paths are plain strings with '/' between parts. A file is durable when its bytes are synced AND its directory entry
// is (SyncDirectory of the parent after create, rename and remove).
#ifndef ASHLAR_SRC_ENV_ENV_H_
#define ASHLAR_SRC_ENV_ENV_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/bytes.h"

namespace ashlar::env {

// A file open for writing. One thread at a time, and one such handle a file: whether it notices what another one adds
// is not said. The destructor closes without syncing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Writes all of `bytes` at `offset`, which may be beyond the end (the gap reads as zeros). Short writes and EINTR are
  // hidden. After an error any part of the range may have been written.
  virtual absl::Status WriteAt(uint64_t offset, ByteSpan bytes) = 0;
  // Writes at the current end.
  virtual absl::Status Append(ByteSpan bytes) = 0;
  // Makes all earlier writes of this file durable, its size included (fdatasync). A failed sync may have lost them for
  // good: never retry.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Truncate(uint64_t size) = 0;
  virtual uint64_t size() const = 0;
  // Idempotent; says what the close said.
  virtual absl::Status Close() = 0;
};

// Bytes of a file in the address space. Readers may share it between threads.
class MappedRegion {
 public:
  virtual ~MappedRegion() = default;
  virtual const std::byte* data() const = 0;
  virtual uint64_t size() const = 0;  // of the file when it was mapped
  // Makes [offset, offset + length) readable without a signal, as of now: an I/O error or a file that became shorter is
  // a Status (DataLoss for the latter).
  virtual absl::Status Populate(uint64_t offset, uint64_t length) const = 0;
  // From now on a page that can't be had when it is touched reads as zeros and makes lost() true, for good, instead of
  // ending the process. Bytes count only if lost() is false after they were read. Where touching never fails, this does
  // nothing. ResourceExhausted: no memory to remember the region by.
  virtual absl::Status Guard() { return absl::OkStatus(); }
  virtual bool lost() const { return false; }
};

// A file open for reading; any number of threads. Keeps its bytes readable after the name is removed.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Reads up to out.size() bytes; fewer only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> out) const = 0;
  virtual absl::StatusOr<uint64_t> Size() const = 0;  // now
  // Maps the whole file read-only. The region may outlive the ReadableFile. Meant for files that are finished: whether
  // it shows later writes is not said.
  virtual absl::StatusOr<std::unique_ptr<MappedRegion>> Map() const = 0;
};

// Held until destroyed. After a fork the child's copy releases nothing.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // FailedPrecondition from the moment on at which the name no longer leads to the file that is locked: it, or its
  // directory, was removed, renamed or replaced, and somebody else may lock what is there now.
  virtual absl::Status CheckHeld() { return absl::OkStatus(); }
};

// A small file shared between processes by a writable (or read-only) mapping: the status page.
class SharedPage {
 public:
  virtual ~SharedPage() = default;
  virtual std::byte* data() = 0;  // null when read-only
  virtual const std::byte* data() const = 0;
  virtual size_t size() const = 0;
};

// What a path is on.
struct FileSystemKind {
  std::string name = "local";  // "nfs", "cifs", "9p", ...
  bool network = false;        // or shared by several machines, or by a FUSE server of unknown habits
};

// Any thread. NotFound for a name or a parent that is not there; FailedPrecondition for a directory where a file is
// wanted and for a directory that is not empty. Open files, regions, pages and locks stay valid when
// their names are removed.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates a file; AlreadyExists if the name is there.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;
  // Opens an existing file for writing; NotFound if it is not there. Keeps its bytes.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& path) = 0;
  // Replaces `to` if it is there.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Gives a file a second name (a hard link); its bytes stay one. AlreadyExists if `to` is there; Unimplemented where
  // the two can't share a file (other file systems, limits, rights), so that the caller may copy.
  virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  // Removes a file or an empty directory.
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::StatusOr<uint64_t> FileSize(const std::string& path) = 0;
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  // Room for more bytes where `path` is, as far as is known; UINT64_MAX if no limit is.
  virtual absl::StatusOr<uint64_t> AvailableBytes(const std::string& path) = 0;
  struct DirectoryEntry {
    std::string name;
    bool is_file = true;
  };
  // Names in a directory, without "." and "..", sorted.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(const std::string& directory) = 0;
  // Creates one directory; AlreadyExists if the name is there.
  virtual absl::Status CreateDirectory(const std::string& path) = 0;
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Takes the write lock on a lock file, creating it if needed. Never waits: Unavailable, with the holder's pid and
  // start time where known, if another process or another handle of this process holds it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
  // Whether somebody (this process included) holds the lock. Changes nothing. A missing file is not locked.
  virtual absl::StatusOr<bool> IsLocked(const std::string& path) = 0;

  // Maps `size` bytes of a file for sharing; `writable` creates it or sets its size (and takes the space, so that using
  // the page cannot fail). DataLoss if a read-only one is shorter than `size`, InvalidArgument if `size` is 0.
  virtual absl::StatusOr<std::unique_ptr<SharedPage>> MapShared(const std::string& path, size_t size, bool writable) = 0;

  // The path for the operating system, where there is one: LMDB needs it. Empty for memory and simulation.
  virtual std::string NativePath(const std::string& path) const = 0;

  // Memory and simulation are local.
  virtual absl::StatusOr<FileSystemKind> Kind(const std::string&) { return FileSystemKind(); }
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t MonotonicNs() = 0;
  virtual int64_t WallMs() = 0;
};

// 16 random bytes for file ids and store ids, 8 for salts. The simulator's come from its seed.
class Entropy {
 public:
  virtual ~Entropy() = default;
  virtual void Fill(std::span<std::byte> out) = 0;
};

// Steps of the work that goes on beside a store's writers.
enum class WorkStep : uint8_t {
  kFlushWritten,    // an overlay is a durable segment file, of which nobody knows yet
  kFlushCommitted,  // the catalog names it; this process's readers and writers don't know yet
  kMergeCopying,    // between two blocks of a merge, at the latest before its last one
  kMergeWritten,    // as the two of a flush
  kMergeCommitted,
};

// For tests: is told when a step is reached, in the thread that works, which goes on when Reached returns. Nothing that a
// commit, a search or a snapshot needs is held then.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  virtual void Reached(WorkStep step) = 0;
};

// What an engine is given. Not owned; must outlive it.
struct Env {
  FileSystem* files = nullptr;
  Clock* clock = nullptr;
  Entropy* entropy = nullptr;
  WorkObserver* observer = nullptr;  // may be null
  bool has_threads = false;          // stores may do their work in a thread unless told otherwise; false: runs repeat
};

// The operating system's. Process-wide, never destroyed.
Env PosixEnv();

// Files in memory, for stores that live in memory only. Everything is durable at once and gone with the object.
class MemoryEnv {
 public:
  virtual ~MemoryEnv() = default;
  virtual Env env() = 0;
};
std::unique_ptr<MemoryEnv> NewMemoryEnv();

// Reads a whole file; ResourceExhausted if it is larger than `size_max`, because a size found on disk must not decide
// how much memory is taken.
absl::StatusOr<ByteBuffer> ReadFile(FileSystem& files, const std::string& path, uint64_t size_max = UINT64_MAX);
// Reads exactly out.size() bytes; DataLoss naming `section` if the file ends before.
absl::Status ReadExactly(const ReadableFile& file, const std::string& path, std::string_view section, uint64_t offset,
                         std::span<std::byte> out);
inline std::string JoinPath(const std::string& directory, std::string_view name) {
  std::string path = directory;
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_ENV_H_
