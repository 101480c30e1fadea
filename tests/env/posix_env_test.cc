// What only the operating system does: interrupted and failing calls, locks between processes,
// forks, files that change under a mapping. System calls are replaced by the linker (--wrap), so
// that the code under test has no hook.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/env/env.h"

namespace {

// What the next calls do instead of the real thing: a script per call, one entry a call.
struct Act {
  int error = 0;                // not 0: fail so
  size_t bytes_max = 1u << 30;  // of reads and writes
};
struct Script {
  std::vector<Act> acts;
  int calls = 0;
  Act Next() {
    const size_t index = static_cast<size_t>(calls++);
    return index < acts.size() ? acts[index] : Act{};
  }
};
Script g_pwrite, g_pread, g_fdatasync, g_fsync, g_madvise;

int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {
ssize_t __real_pwrite64(int fd, const void* bytes, size_t size, off64_t offset);
ssize_t __wrap_pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  const Act act = g_pwrite.Next();
  if (act.error != 0) return Fail(act.error);
  return __real_pwrite64(fd, bytes, std::min(size, act.bytes_max), offset);
}
ssize_t __real_pread64(int fd, void* bytes, size_t size, off64_t offset);
ssize_t __wrap_pread64(int fd, void* bytes, size_t size, off64_t offset) {
  const Act act = g_pread.Next();
  if (act.error != 0) return Fail(act.error);
  return __real_pread64(fd, bytes, std::min(size, act.bytes_max), offset);
}
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
  const Act act = g_fdatasync.Next();
  return act.error != 0 ? Fail(act.error) : __real_fdatasync(fd);
}
int __real_fsync(int fd);
int __wrap_fsync(int fd) {
  const Act act = g_fsync.Next();
  return act.error != 0 ? Fail(act.error) : __real_fsync(fd);
}
int __real_madvise(void* address, size_t size, int advice);
int __wrap_madvise(void* address, size_t size, int advice) {
  const Act act = g_madvise.Next();
  return act.error != 0 ? Fail(act.error) : __real_madvise(address, size, advice);
}
}

namespace ashlar::env {
namespace {

using Code = absl::StatusCode;

class PosixEnvTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = (std::filesystem::temp_directory_path() / "ashlar_posix_XXXXXX").string();
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
    ResetScripts();
  }
  void TearDown() override {
    ResetScripts();
    std::filesystem::remove_all(root_);
  }
  static void ResetScripts() { g_pwrite = g_pread = g_fdatasync = g_fsync = g_madvise = Script(); }

  std::string At(std::string_view name) const { return JoinPath(root_, name); }

  void Put(const std::string& path, std::string_view text) {
    auto file = files_->CreateFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(AsBytes(text)).ok());
  }

  std::string Get(const std::string& path) {
    const auto bytes = ReadFile(*files_, path);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? std::string(AsString(*bytes)) : "";
  }

  std::unique_ptr<MappedRegion> Map(const std::string& path) {
    const auto file = files_->OpenForRead(path);
    EXPECT_TRUE(file.ok()) << file.status();
    auto region = (*file)->Map();
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }

  static bool Mentions(const absl::Status& status, const std::string& text) {
    return std::string(status.message()).find(text) != std::string::npos;
  }

  std::string root_;
  FileSystem* const files_ = PosixEnv().files;
};

// A forked child that runs `work` and then waits until it is ended or killed.
class Child {
 public:
  explicit Child(const std::function<int()>& work) {
    std::array<int, 2> ready{};
    std::array<int, 2> go{};
    if (::pipe(ready.data()) != 0 || ::pipe(go.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ready[0]);
      ::close(go[1]);
      const char result = static_cast<char>(work());
      if (::write(ready[1], &result, 1) != 1) ::_exit(99);
      char end = 0;
      [[maybe_unused]] const ssize_t n = ::read(go[0], &end, 1);
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(go[0]);
    go_ = go[1];
    char result = 98;
    if (::read(ready[0], &result, 1) != 1) result = 97;
    result_ = result;
    ::close(ready[0]);
  }
  ~Child() {
    if (!reaped_) Kill();
    if (go_ >= 0) ::close(go_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int result() const { return result_; }
  void Kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_ = -1;
  int go_ = -1;
  int result_ = 96;
  bool reaped_ = false;
};

// Whether another process finds the lock taken.
bool LockedForOthers(const std::string& path) {
  const Child child([&path] {
    const auto locked = PosixEnv().files->IsLocked(path);
    return !locked.ok() ? 2 : *locked ? 1 : 0;
  });
  EXPECT_LE(child.result(), 1);
  return child.result() == 1;
}

std::set<int> OpenDescriptors() {
  std::set<int> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    open.insert(std::atoi(entry.path().filename().c_str()));
  }
  // The listing saw its own descriptor, which is closed by now.
  std::erase_if(open, [](int fd) { return ::fcntl(fd, F_GETFD) < 0; });
  return open;
}

TEST_F(PosixEnvTest, InterruptedAndShortWritesAreHidden) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok());
  g_pwrite.acts = {{EINTR}, {0, 1}, {EINTR}, {EINTR}, {0, 3}, {0, 2}};
  ASSERT_TRUE((*file)->WriteAt(2, AsBytes("0123456789")).ok());
  EXPECT_EQ(g_pwrite.calls, 7);
  EXPECT_EQ(Get(At("a")), std::string("\0\0", 2) + "0123456789");
}

TEST_F(PosixEnvTest, AFailedWriteIsTypedAndCountsWhatWasWritten) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok());
  g_pwrite.acts = {{0, 4}, {ENOSPC}};
  const absl::Status full = (*file)->Append(AsBytes("0123456789"));
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_TRUE(Mentions(full, "offset 4")) << full;
  EXPECT_EQ((*file)->size(), 4u);
  g_pwrite = Script{{{EIO}}, 0};
  EXPECT_EQ((*file)->Append(AsBytes("x")).code(), Code::kInternal);
  EXPECT_EQ(PlaceOf((*file)->Append({})), std::nullopt);
  ASSERT_TRUE((*file)->Append(AsBytes("abc")).ok());
  EXPECT_EQ(Get(At("a")), "0123abc");
}

TEST_F(PosixEnvTest, InterruptedAndShortReadsAreHidden) {
  Put(At("a"), "0123456789");
  const auto file = files_->OpenForRead(At("a"));
  ASSERT_TRUE(file.ok());
  g_pread.acts = {{EINTR}, {0, 1}, {0, 2}, {EINTR}};
  std::array<std::byte, 12> out{};
  const auto n = (*file)->ReadAt(0, out);
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(AsString(ByteSpan(out).first(*n)), "0123456789");
  g_pread = Script{{{0, 4}, {EIO}}, 0};
  const absl::Status status = (*file)->ReadAt(0, out).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_TRUE(Mentions(status, "offset 4")) << status;
}

TEST_F(PosixEnvTest, AFailedSyncIsReportedAndNotRepeated) {
  auto file = files_->CreateFile(At("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("x")).ok());
  g_fdatasync.acts = {{EIO}};
  EXPECT_EQ((*file)->Sync().code(), Code::kInternal);
  EXPECT_EQ(g_fdatasync.calls, 1);
  g_fdatasync = Script{{{EINTR}, {EINTR}}, 0};
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(g_fdatasync.calls, 3);
  g_fsync.acts = {{EIO}};
  EXPECT_EQ(files_->SyncDirectory(root_).code(), Code::kInternal);
  EXPECT_EQ(g_fsync.calls, 1);
  EXPECT_TRUE(files_->SyncDirectory(root_).ok());
}

TEST_F(PosixEnvTest, PopulateFallsBackToReading) {
  Put(At("a"), std::string(200'000, 'x'));
  const auto region = Map(At("a"));
  g_madvise.acts = {{EINVAL}};  // a kernel that does not know the advice
  EXPECT_TRUE(region->Populate(1000, 150'000).ok());
  EXPECT_EQ(g_madvise.calls, 1);
  EXPECT_EQ(g_pread.calls, 3) << "64 KiB at a time";
  g_madvise = Script{{{EINVAL}}, 0};
  g_pread = Script{{{}, {EIO}}, 0};
  const absl::Status status = region->Populate(0, 200'000);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_TRUE(Mentions(status, "offset 65536")) << status;
}

TEST_F(PosixEnvTest, PopulateReportsPagesThatCannotBeRead) {
  Put(At("a"), std::string(20'000, 'x'));
  const auto region = Map(At("a"));
  g_madvise.acts = {{EFAULT}};
  g_pread.acts = {{EIO}};
  EXPECT_EQ(region->Populate(0, 20'000).code(), Code::kInternal);
  // Readable after all: not an error. Never readable through the mapping: an error, though reads
  // succeed.
  ResetScripts();
  g_madvise.acts = {{EFAULT}};
  EXPECT_TRUE(region->Populate(0, 20'000).ok());
  g_madvise = Script{{{EFAULT}, {EFAULT}}, 0};
  EXPECT_EQ(region->Populate(0, 20'000).code(), Code::kInternal);
  g_madvise = Script{{{EAGAIN}, {EINTR}}, 0};
  EXPECT_TRUE(region->Populate(0, 20'000).ok());
  EXPECT_EQ(g_madvise.calls, 3);
  g_madvise = Script{{{ENOMEM}, {ENOMEM}}, 0};
  EXPECT_EQ(region->Populate(0, 20'000).code(), Code::kResourceExhausted);
}

TEST_F(PosixEnvTest, AShortenedFileIsDataLossAndNotASignal) {
  for (const int advice_error : {0, EINVAL}) {
    for (const uint64_t shortened : {0u, 4096u, 15'000u, 19'999u}) {
      SCOPED_TRACE(testing::Message()
                   << "advice error " << advice_error << ", shortened to " << shortened);
      const std::string path = At("a");
      Put(path, std::string(20'000, 'x'));
      const auto region = Map(path);
      EXPECT_TRUE(region->Populate(0, 20'000).ok());
      ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(shortened)), 0);
      if (advice_error != 0) g_madvise = Script{{{advice_error}, {advice_error}}, 0};
      const absl::Status status = region->Populate(12'000, 8000);
      EXPECT_EQ(status.code(), Code::kDataLoss) << status;
      EXPECT_TRUE(Mentions(status, "expected 20000 bytes, found " + std::to_string(shortened)))
          << status;
      const auto place = PlaceOf(status);
      ASSERT_TRUE(place.has_value());
      EXPECT_EQ(place->file, path);
      EXPECT_EQ(place->offset, 12'000u);
      ResetScripts();
      ASSERT_TRUE(files_->Remove(path).ok());
    }
  }
}

TEST_F(PosixEnvTest, SpecialFilesAreRefusedAndDoNotBlock) {
  ASSERT_EQ(::mkfifo(At("fifo").c_str(), 0600), 0);
  EXPECT_EQ(files_->OpenForRead(At("fifo")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->OpenForWrite(At("fifo")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(files_->OpenForRead("/dev/null").status().code(), Code::kFailedPrecondition);
}

TEST_F(PosixEnvTest, APathWithNulIsRefused) {
  const std::string path = At(std::string_view("a\0b", 3));
  EXPECT_EQ(files_->CreateFile(path).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(files_->Exists(path).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(*files_->Exists(At("a")));
}

TEST_F(PosixEnvTest, ListTellsWhatLinksLeadTo) {
  Put(At("a"), "x");
  ASSERT_EQ(::symlink("a", At("to_file").c_str()), 0);
  ASSERT_EQ(::symlink(".", At("to_directory").c_str()), 0);
  const auto entries = files_->List(root_);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[1].name, "to_directory");
  EXPECT_FALSE((*entries)[1].is_file);
  EXPECT_EQ((*entries)[2].name, "to_file");
  EXPECT_TRUE((*entries)[2].is_file);
}

TEST_F(PosixEnvTest, ARefusalOfTheSystemIsPermissionDenied) {
  Put(At("mine"), "x");
  ASSERT_EQ(::chmod(At("mine").c_str(), 0400), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0555), 0);
  // Root may do everything, so a child tries as nobody.
  const Child child([this] {
    if (::getuid() == 0 && ::setuid(65534) != 0) return 50;
    if (files_->CreateFile(At("new")).status().code() != Code::kPermissionDenied) return 1;
    if (files_->OpenForWrite(At("mine")).status().code() != Code::kPermissionDenied) return 2;
    if (files_->Remove(At("mine")).code() != Code::kPermissionDenied) return 3;
    if (files_->CreateDirectory(At("dir")).code() != Code::kPermissionDenied) return 4;
    if (files_->Lock(At("LOCK")).status().code() != Code::kPermissionDenied) return 5;
    return 0;
  });
  EXPECT_EQ(child.result(), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
}

TEST_F(PosixEnvTest, AnotherProcessHoldsTheLock) {
  std::unique_ptr<FileLock> held;
  Child child([&] {
    auto lock = files_->Lock(At("LOCK"));
    if (!lock.ok()) return 1;
    held = *std::move(lock);
    return 0;
  });
  ASSERT_EQ(child.result(), 0);
  const absl::Status status = files_->Lock(At("LOCK")).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_TRUE(Mentions(status, "pid " + std::to_string(child.pid()))) << status;
  EXPECT_TRUE(Mentions(status, "started 20")) << status;
  EXPECT_TRUE(*files_->IsLocked(At("LOCK")));
  child.Kill();
  EXPECT_FALSE(*files_->IsLocked(At("LOCK"))) << "the system drops the lock of a killed process";
  const auto lock = files_->Lock(At("LOCK"));
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(LockedForOthers(At("LOCK")));
}

TEST_F(PosixEnvTest, AConflictInTheProcessNamesItself) {
  const auto lock = files_->Lock(At("LOCK"));
  ASSERT_TRUE(lock.ok());
  const absl::Status status = files_->Lock(At("LOCK")).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_TRUE(Mentions(status, "this process, pid " + std::to_string(::getpid()))) << status;
  // The same file by another name.
  ASSERT_EQ(::link(At("LOCK").c_str(), At("ALIAS").c_str()), 0);
  EXPECT_EQ(files_->Lock(At("ALIAS")).status().code(), Code::kUnavailable);
  EXPECT_TRUE(LockedForOthers(At("ALIAS")));
}

TEST_F(PosixEnvTest, AnOldHoldersTextIsNotBelieved) {
  Put(At("LOCK"), "pid 1\nstarted 1999-01-01T00:00:00Z\n");
  Child child([&] {
    // Locked without our code, so the text stays.
    const int fd = ::open(At("LOCK").c_str(), O_RDWR);
    struct flock request {};
    request.l_type = F_WRLCK;
    return ::fcntl(fd, F_SETLK, &request);
  });
  ASSERT_EQ(child.result(), 0);
  const absl::Status status = files_->Lock(At("LOCK")).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_TRUE(Mentions(status, "pid " + std::to_string(child.pid()))) << status;
  EXPECT_FALSE(Mentions(status, "1999")) << status;
}

TEST_F(PosixEnvTest, AForkedChildReleasesNothing) {
  auto lock = files_->Lock(At("LOCK"));
  ASSERT_TRUE(lock.ok());
  const std::string text = Get(At("LOCK"));
  const Child child([&] {
    lock->reset();
    // The parent still holds it, so the child cannot have it.
    return files_->Lock(At("LOCK")).status().code() == Code::kUnavailable ? 0 : 1;
  });
  EXPECT_EQ(child.result(), 0);
  EXPECT_TRUE(LockedForOthers(At("LOCK")));
  EXPECT_EQ(Get(At("LOCK")), text);
  lock->reset();
  EXPECT_FALSE(LockedForOthers(At("LOCK")));
}

TEST_F(PosixEnvTest, AChildThatOutlivesTheKilledHolderHoldsNothing) {
  std::unique_ptr<FileLock> held;
  std::array<int, 2> end{};
  ASSERT_EQ(::pipe(end.data()), 0);
  Child holder([&] {
    auto lock = files_->Lock(At("LOCK"));
    if (!lock.ok()) return 1;
    held = *std::move(lock);
    if (::fork() == 0) {  // lives until the test closes the pipe
      ::close(end[1]);
      char byte = 0;
      [[maybe_unused]] const ssize_t n = ::read(end[0], &byte, 1);
      ::_exit(0);
    }
    return 0;
  });
  ASSERT_EQ(holder.result(), 0);
  EXPECT_TRUE(*files_->IsLocked(At("LOCK")));
  holder.Kill();
  EXPECT_TRUE(files_->Lock(At("LOCK")).ok());
  ::close(end[0]);
  ::close(end[1]);
}

TEST_F(PosixEnvTest, AChildMayLockOnceTheParentReleased) {
  auto lock = files_->Lock(At("LOCK"));
  ASSERT_TRUE(lock.ok());
  std::array<int, 2> released{};
  ASSERT_EQ(::pipe(released.data()), 0);
  std::array<int, 2> answer{};
  ASSERT_EQ(::pipe(answer.data()), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte = 0;
    [[maybe_unused]] ssize_t n = ::read(released[0], &byte, 1);
    auto own = files_->Lock(At("LOCK"));
    byte = own.ok() && files_->Lock(At("LOCK")).status().code() == Code::kUnavailable ? 'y' : 'n';
    own->reset();
    n = ::write(answer[1], &byte, 1);
    ::_exit(0);
  }
  lock->reset();
  char byte = 'g';
  ASSERT_EQ(::write(released[1], &byte, 1), 1);
  ASSERT_EQ(::read(answer[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  int status = 0;
  ::waitpid(pid, &status, 0);
  for (const int fd : {released[0], released[1], answer[0], answer[1]}) ::close(fd);
}

// Closing any descriptor of a file drops the fcntl locks of the process; ours must not.
TEST_F(PosixEnvTest, OtherHandlesOfTheLockFileDoNotReleaseIt) {
  const std::set<int> before = OpenDescriptors();
  auto early = files_->OpenForRead(At("LOCK"));
  Put(At("LOCK"), "");
  early = files_->OpenForRead(At("LOCK"));
  ASSERT_TRUE(early.ok());
  auto lock = files_->Lock(At("LOCK"));
  ASSERT_TRUE(lock.ok());
  early->reset();
  EXPECT_TRUE(LockedForOthers(At("LOCK"))) << "a handle older than the lock was closed";
  EXPECT_FALSE(Get(At("LOCK")).empty());
  EXPECT_TRUE(LockedForOthers(At("LOCK"))) << "the file was read";
  EXPECT_TRUE(*files_->IsLocked(At("LOCK")));
  EXPECT_FALSE(files_->Lock(At("LOCK")).ok());
  EXPECT_TRUE(LockedForOthers(At("LOCK"))) << "the lock was asked for";
  {
    auto writer = files_->OpenForWrite(At("LOCK"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  { EXPECT_TRUE(files_->MapShared(At("LOCK"), 16, false).ok()); }
  EXPECT_TRUE(LockedForOthers(At("LOCK")));
  lock->reset();
  EXPECT_FALSE(LockedForOthers(At("LOCK")));
  EXPECT_EQ(OpenDescriptors(), before) << "parked descriptors are closed with the lock";
}

TEST_F(PosixEnvTest, DescriptorsAreClosedAndNotInherited) {
  const std::set<int> before = OpenDescriptors();
  {
    auto writer = files_->CreateFile(At("a"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(AsBytes("x")).ok());
    const auto reader = files_->OpenForRead(At("a"));
    ASSERT_TRUE(reader.ok());
    const auto region = (*reader)->Map();
    ASSERT_TRUE(region.ok());
    const auto lock = files_->Lock(At("LOCK"));
    ASSERT_TRUE(lock.ok());
    const auto page = files_->MapShared(At("page"), 4096, true);
    ASSERT_TRUE(page.ok());
    int opened = 0;
    for (const int fd : OpenDescriptors()) {
      if (before.count(fd) != 0) continue;
      ++opened;
      EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << "descriptor " << fd;
    }
    EXPECT_EQ(opened, 3) << "writer, reader with its region, lock; a page needs none";
    EXPECT_FALSE(files_->CreateFile(At("a")).ok());
    EXPECT_FALSE(files_->OpenForRead(root_).ok());
    EXPECT_TRUE(files_->List(root_).ok());
    EXPECT_TRUE(files_->SyncDirectory(root_).ok());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(PosixEnvTest, SharedPagesAreSharedBetweenProcesses) {
  const auto page = files_->MapShared(At("page"), 4096, true);
  ASSERT_TRUE(page.ok());
  const Child child([&] {
    const auto own = files_->MapShared(At("page"), 4096, true);
    if (!own.ok()) return 1;
    (*own)->data()[5] = std::byte{77};
    return 0;
  });
  ASSERT_EQ(child.result(), 0);
  EXPECT_EQ((*page)->data()[5], std::byte{77});
}

TEST_F(PosixEnvTest, NativePathIsThePath) {
  EXPECT_EQ(files_->NativePath(At("a")), At("a"));
  EXPECT_EQ(NewMemoryEnv()->env().files->NativePath("a"), "");
}

}  // namespace
}  // namespace ashlar::env
