// Several processes and one store: who may write, what a fork shares, what becomes of a writer whose files are moved away.
// Children talk by pipes; nothing waits for time to pass.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ashlar/store.h"
#include "src/base/site.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

#if defined(ASHLAR_ADDRESS_SANITIZER)
// A forked child gives up what belongs to its parent without touching it, and would be told of that as a leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace ashlar::testing {
namespace {

Schema TheSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}}, {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

Document Doc(const std::string& key) {
  Document document;
  document.Add("id", key).Add("body", "stone " + key);
  return document;
}

// A one-way pipe of single bytes. Each process closes nothing: all ends go with it.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void Send(char c) const { EXPECT_EQ(::write(ends_[1], &c, 1), 1); }
  char Receive() const {
    char c = 0;
    EXPECT_EQ(::read(ends_[0], &c, 1), 1);
    return c;
  }

 private:
  int ends_[2] = {-1, -1};
};

pid_t Fork(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}
int Wait(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
int InChild(const std::function<int()>& body) { return Wait(Fork(body)); }

// Names and bytes of everything in a directory but what processes share while they run.
std::map<std::string, std::string> Contents(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename() == "lock") continue;  // to close it would drop this process's lock
    std::ifstream in(entry.path(), std::ios::binary);
    contents[entry.path().filename()] = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  contents.erase("catalog.lmdb-lock");
  return contents;
}

class ProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Create(path_, TheSchema()));
    ASSERT_OK(store->Put(Doc("first")));
    ASSERT_OK(store->Close());
  }
  absl::StatusCode OpenElsewhere(const std::string& path) {
    return static_cast<absl::StatusCode>(InChild([&] { return static_cast<int>(Store::Open(path).status().code()); }));
  }

  const TempDir directory_;
  const std::string path_ = directory_.Sub("s");
};

// ---- Readers beside a writer that purges: the catalog's file is another one each time.

TEST_F(ProcessesTest, ReadersGoOverToTheCatalogThatAPurgeMade) {
  constexpr uint64_t kPurges = 30;
  const Pipe opened;
  const pid_t reader = Fork([&] {
    Options options;
    options.read_only = true;
    const auto store = Store::Open(path_, options);
    if (!store.ok()) return 1;
    opened.Send('o');
    uint64_t last = 0;
    while (last < 1 + kPurges) {
      if (const auto fresh = (*store)->Refresh(); !fresh.ok()) {
        std::cerr << fresh.status() << "\n";
        return 2;
      }
      const Snapshot snapshot = (*store)->TakeSnapshot();
      if (snapshot.document_count() < last || !snapshot.Get("first").ok()) return 3;
      last = snapshot.document_count();
    }
    return 0;
  });
  ASSERT_EQ(opened.Receive(), 'o');
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  for (uint64_t i = 0; i < kPurges; ++i) {
    ASSERT_OK(store->Put(Doc("more" + std::to_string(i))));
    ASSERT_OK(store->Purge());
  }
  EXPECT_EQ(Wait(reader), 0);
}

// ---- The lock.

TEST_F(ProcessesTest, CaseC11WriterKilledWhileItsChildLives) {
  const Pipe ready, release;
  pid_t grandchild = -1;
  int numbers[2];
  ASSERT_EQ(::pipe(numbers), 0);
  const pid_t writer = Fork([&] {
    auto store = Store::Open(path_);
    if (!store.ok() || !(*store)->Put(Doc("second")).ok()) return 1;
    const pid_t child = Fork([&] {
      ready.Send('r');
      release.Receive();
      store->reset();  // the handle of a dead parent's store: touches nothing
      return 0;
    });
    if (::write(numbers[1], &child, sizeof child) != sizeof child) return 1;
    for (;;) ::pause();
  });
  ASSERT_EQ(ready.Receive(), 'r');
  ASSERT_EQ(::read(numbers[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  ASSERT_EQ(::kill(writer, SIGKILL), 0);
  ASSERT_EQ(Wait(writer), -SIGKILL);
  ASSERT_EQ(::kill(grandchild, 0), 0) << "the child must still live";
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
    EXPECT_OK(store->TakeSnapshot().Get("second"));
    ASSERT_OK(store->Put(Doc("third")));
    // Its end, destructors included, changes nothing for the new writer.
    release.Send('x');
    while (::kill(grandchild, 0) == 0) ::sched_yield();
    ASSERT_OK(store->Put(Doc("fourth")));
    EXPECT_EQ(OpenElsewhere(path_), absl::StatusCode::kUnavailable);
    ASSERT_OK(store->Close());
  }
  for (const int fd : numbers) ::close(fd);
}

TEST_F(ProcessesTest, LockFilesOfEarlierWritersMeanNothing) {
  const std::string lock = path_ + "/lock";
  const std::string texts[] = {"", "pid 1\nstarted now\n", absl::StrCat("pid ", ::getppid(), "\nstarted 2001-01-01\n"),
                               "pid 99999999999999999999\n", std::string(100000, 'x'), std::string("\0\0\0", 3)};
  for (const std::string& text : texts) {
    std::ofstream(lock, std::ios::trunc) << text;
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
    ASSERT_OK(store->Put(Doc("again")));
    const absl::Status other = Store::Open(path_).status();
    EXPECT_TRUE(absl::IsUnavailable(other)) << other;
    EXPECT_NE(other.message().find(absl::StrCat("pid ", ::getpid())), std::string::npos) << other;
    ASSERT_OK(store->Close());
  }
}

TEST_F(ProcessesTest, OneWriterWhateverThePathIs) {
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  const std::string link = directory_.Sub("link");
  std::filesystem::create_directory_symlink(path_, link);
  const std::string relative = std::filesystem::relative(path_, std::filesystem::current_path()).string();
  for (const std::string& path : {path_, path_ + "/", link, relative, directory_.Sub("./s/../s"), link + "/."}) {
    const absl::Status here = Store::Open(path).status();
    EXPECT_TRUE(absl::IsUnavailable(here)) << path << ": " << here;
    EXPECT_EQ(OpenElsewhere(path), absl::StatusCode::kUnavailable) << path;
    // A reader in this process, and its end, leave the lock alone.
    Options reading;
    reading.read_only = true;
    ASSERT_OK_AND_ASSIGN(const auto reader, Store::Open(path, reading));
    EXPECT_OK(reader->TakeSnapshot().Get("first"));
    ASSERT_OK(reader->Close());
  }
  EXPECT_EQ(OpenElsewhere(path_), absl::StatusCode::kUnavailable);
  // A bind mount, where a process may make one in a name space of its own.
  const std::string bound = directory_.Sub("bound");
  std::filesystem::create_directory(bound);
  const int code = InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(path_.c_str(), bound.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return 99;
    return static_cast<int>(Store::Open(bound).status().code());
  });
  if (code == 99) std::printf("bind mounts are not permitted here\n");
  if (code != 99) EXPECT_EQ(code, static_cast<int>(absl::StatusCode::kUnavailable));
  ASSERT_OK(store->Put(Doc("second")));
}

// ---- Forks.

TEST_F(ProcessesTest, ForkedChildGetsATypedErrorAndTouchesNothing) {
  ASSERT_OK_AND_ASSIGN(auto store, Store::Open(path_));
  ASSERT_OK(store->Put(Doc("second")));
  ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store->Prepare("stone"));
  const Snapshot snapshot = store->TakeSnapshot();
  const auto before = Contents(path_);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto refused = [](const absl::Status& status) { return absl::IsFailedPrecondition(status); };
    int wrong = 0;
    if (!refused(store->Put(Doc("child")).status())) wrong = 1;
    if (!refused(store->Flush()) || !refused(store->Sync()) || !refused(store->Merge())) wrong = 2;
    if (!refused(store->RunPending()) || !refused(store->AddFields({})) || !refused(store->Check().status())) wrong = 3;
    // A snapshot is memory: it goes on answering.
    const auto result = snapshot.Search(query);
    if (!result.ok() || result->total != 2) wrong = 4;
    if (!refused(store->Close())) wrong = 5;
    store.reset();
    // The directory may be opened anew by the child once the parent has let go, not before.
    if (!absl::IsUnavailable(Store::Open(path_).status())) wrong = 6;
    std::exit(wrong);  // with all destructors of static objects
  }
  EXPECT_EQ(Wait(child), 0);
  EXPECT_TRUE(Contents(path_) == before);
  EXPECT_EQ(OpenElsewhere(path_), absl::StatusCode::kUnavailable);
  ASSERT_OK(store->Put(Doc("third")));
  ASSERT_OK(store->Flush());
  ASSERT_OK(store->Close());
}

TEST_F(ProcessesTest, ForkedChildOfAReaderGetsATypedError) {
  Options reading;
  reading.read_only = true;
  ASSERT_OK_AND_ASSIGN(auto reader, Store::Open(path_, reading));
  EXPECT_EQ(InChild([&] {
              if (!absl::IsFailedPrecondition(reader->Refresh().status())) return 1;
              reader.reset();
              const auto own = Store::Open(path_);
              return own.ok() && (*own)->Put(Doc("child")).ok() && (*own)->Flush().ok() ? 0 : 2;
            }),
            0);
  ASSERT_OK_AND_ASSIGN(const bool is_new, reader->Refresh());
  EXPECT_TRUE(is_new);
  EXPECT_OK(reader->TakeSnapshot().Get("child"));
}

// ---- Files that are moved away under a writer.

class MovedFiles : public ProcessesTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Does to the files of an open store what the parameter says.
  void Disturb() {
    const std::string what = GetParam();
    const std::string lock = path_ + "/lock";
    if (what == "lock_removed") std::filesystem::remove(lock);
    if (what == "lock_replaced") {
      std::ofstream(lock + "2") << "another";
      std::filesystem::rename(lock + "2", lock);
    }
    if (what == "directory_renamed" || what == "directory_replaced") std::filesystem::rename(path_, directory_.Sub("moved"));
    if (what == "directory_removed") std::filesystem::remove_all(path_);
    if (what == "directory_replaced") {
      ASSERT_EQ(InChild([&] {
                  const auto other = Store::Create(path_, TheSchema());
                  return other.ok() && (*other)->Put(Doc("other")).ok() && (*other)->Flush().ok() && (*other)->Close().ok() ? 0 : 1;
                }),
                0);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(, MovedFiles,
                         ::testing::Values("lock_removed", "lock_replaced", "directory_renamed", "directory_removed",
                                           "directory_replaced"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(MovedFiles, EndTheWriterWithATypedError) {
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  ASSERT_OK(store->Put(Doc("second")));
  const Snapshot snapshot = store->TakeSnapshot();
  Disturb();
  const bool there = std::filesystem::exists(path_);
  const auto before = there ? Contents(path_) : std::map<std::string, std::string>();
  for (const absl::Status& status : {store->Put(Doc("third")).status(), store->Flush(), store->Merge(), store->Sync(),
                                     store->AddFields({{"more", FieldType::kText, true, true, false, {}}})}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("lock"), std::string::npos) << status;
  }
  // Reading goes on, also through old snapshots.
  EXPECT_OK(snapshot.Get("second"));
  EXPECT_OK(store->TakeSnapshot().Get("first"));
  EXPECT_CODE(store->TakeSnapshot().Get("third"), kNotFound);
  EXPECT_FALSE(store->Close().ok());
  // Nothing was written to what is there now.
  EXPECT_EQ(std::filesystem::exists(path_), there);
  if (there) EXPECT_TRUE(Contents(path_) == before);
}

TEST_F(ProcessesTest, NoTwoWritersWhenTheLockFileIsReplaced) {
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  ASSERT_OK(store->Put(Doc("second")));
  std::filesystem::remove(path_ + "/lock");
  // The next writer gets the lock of a new file, and everything that was acknowledged.
  const Pipe ready, release;
  const pid_t next = Fork([&] {
    const auto own = Store::Open(path_);
    const bool good = own.ok() && (*own)->TakeSnapshot().Get("second").ok() && (*own)->Put(Doc("third")).ok();
    ready.Send(good ? 'g' : 'b');
    release.Receive();
    return good && (*own)->Put(Doc("fourth")).ok() && (*own)->Flush().ok() && (*own)->Close().ok() ? 0 : 1;
  });
  ASSERT_EQ(ready.Receive(), 'g');
  EXPECT_CODE(store->Put(Doc("lost")), kFailedPrecondition);
  // Also if the first lock file came back: somebody wrote meanwhile.
  EXPECT_CODE(store->Flush(), kFailedPrecondition);
  EXPECT_FALSE(store->Close().ok());
  release.Send('x');
  ASSERT_EQ(Wait(next), 0);
  ASSERT_OK_AND_ASSIGN(const auto after, Store::Open(path_));
  for (const char* key : {"first", "second", "third", "fourth"}) EXPECT_OK(after->TakeSnapshot().Get(key)) << key;
  EXPECT_CODE(after->TakeSnapshot().Get("lost"), kNotFound);
  ASSERT_OK_AND_ASSIGN(const auto findings, after->Check());
  EXPECT_TRUE(findings.empty()) << findings[0].message;
}

// An fcntl lock goes when any descriptor of the file is closed, by anybody's code in the process: a program that copies its
// own directory, for example.
TEST_F(ProcessesTest, LockThatThisProcessDroppedIsTakenAgainUnlessAnotherWriterCame) {
  const auto read_lock_file = [this] {
    std::ifstream in(path_ + "/lock");
    std::string text;
    EXPECT_TRUE(std::getline(in, text));
  };
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  read_lock_file();
  ASSERT_OK(store->Put(Doc("second")));
  EXPECT_EQ(OpenElsewhere(path_), absl::StatusCode::kUnavailable) << "the write has taken the lock again";
  read_lock_file();
  const int other = InChild([&] {
    const auto own = Store::Open(path_);
    return own.ok() && (*own)->Put(Doc("third")).ok() && (*own)->Close().ok() ? 0 : 1;
  });
  ASSERT_EQ(other, 0);
  EXPECT_CODE(store->Put(Doc("lost")), kFailedPrecondition);
  EXPECT_CODE(store->Flush(), kFailedPrecondition);
  EXPECT_FALSE(store->Close().ok());
  ASSERT_OK_AND_ASSIGN(const auto after, Store::Open(path_));
  for (const char* key : {"first", "second", "third"}) EXPECT_OK(after->TakeSnapshot().Get(key)) << key;
  ASSERT_OK_AND_ASSIGN(const auto findings, after->Check());
  EXPECT_TRUE(findings.empty()) << findings[0].message;
}

// The site of that check, taken away: two writers work on one store, and the test above would see it.
TEST_F(ProcessesTest, WithoutTheLockCheckTwoWritersAreFound) {
  DisableSite(Site::kLockFileIsOurs);
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  std::filesystem::remove(path_ + "/lock");
  EXPECT_OK(store->Put(Doc("second")));
  DisableSite(Site::kNone);
  EXPECT_CODE(store->Put(Doc("third")), kFailedPrecondition);
  EXPECT_FALSE(store->Close().ok());
}

// ---- Descriptors.

TEST_F(ProcessesTest, StandardDescriptorsMayBeClosed) {
  const int code = InChild([&] {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
    const auto store = Store::Open(path_);
    if (!store.ok() || !(*store)->Put(Doc("second")).ok() || !(*store)->Flush().ok()) return 1;
    // What a program prints must not land in a file of the store.
    for (int fd = 1; fd <= 2; ++fd)
      if (::write(fd, "garbage", 7) > 0) return 2;
    if (!(*store)->Put(Doc("third")).ok() || !(*store)->Close().ok()) return 3;
    return 0;
  });
  EXPECT_EQ(code, 0);
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(path_));
  EXPECT_OK(store->TakeSnapshot().Get("third"));
  ASSERT_OK_AND_ASSIGN(const auto findings, store->Check());
  EXPECT_TRUE(findings.empty()) << findings[0].message;
}

}  // namespace
}  // namespace ashlar::testing
