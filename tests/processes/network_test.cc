// Stores on network file systems: known by what statfs says, refused unless asked for, and named in the error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ashlar/store.h"
#include "src/engine/engine.h"
#include "src/env/file_system_kind.h"
#include "tests/journal/faulty_files.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

Schema TheSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}}, {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

// Passes everything on, and says that it is a network's.
class NetworkFiles : public journal::FaultyFiles {
 public:
  explicit NetworkFiles(env::FileSystem* base, std::string name) : FaultyFiles(base), name_(std::move(name)) {}
  absl::StatusOr<env::FileSystemKind> Kind(const std::string& path) override {
    if (path.find("missing") != std::string::npos) return absl::NotFoundError(path);
    return env::FileSystemKind{name_, true};
  }

 private:
  const std::string name_;
};

TEST(FileSystemKindTest, NetworkAndClusterFileSystemsAreKnown) {
  const struct {
    uint64_t type;
    const char* name;
  } cases[] = {{0x6969, "nfs"},      {0xFF534D42, "cifs"},  {0xFE534D42, "smb2"},  {0x5346414F, "afs"},
               {0x00C36400, "ceph"}, {0x01021997, "9p"},    {0x01161970, "gfs2"},  {0x7461636F, "ocfs2"},
               {0x0BD00BD0, "lustre"}, {0x786F4256, "vboxsf"}};
  for (const auto& c : cases) {
    EXPECT_EQ(env::KindOfFileSystem(c.type, "").name, c.name);
    EXPECT_TRUE(env::KindOfFileSystem(c.type, "").network) << c.name;
    // A signed field.
    EXPECT_EQ(env::KindOfFileSystem(c.type | 0xFFFFFFFF00000000, "").name, c.name);
  }
  // ext4, xfs, btrfs, tmpfs, overlay, zfs, f2fs.
  for (const uint64_t type : {0xEF53u, 0x58465342u, 0x9123683Eu, 0x01021994u, 0x794C7630u, 0x2FC12FC1u, 0xF2F52010u})
    EXPECT_FALSE(env::KindOfFileSystem(type, "").network) << type;
}

TEST(FileSystemKindTest, FuseIsWhatItsMountSays) {
  constexpr uint64_t kFuse = 0x65735546;
  EXPECT_EQ(env::KindOfFileSystem(kFuse, "fuse.sshfs").name, "fuse.sshfs");
  EXPECT_TRUE(env::KindOfFileSystem(kFuse, "fuse.sshfs").network);
  EXPECT_EQ(env::KindOfFileSystem(kFuse, "").name, "fuse");
  EXPECT_TRUE(env::KindOfFileSystem(kFuse, "").network);
  EXPECT_TRUE(env::KindOfFileSystem(kFuse, "virtiofs").network);
  EXPECT_FALSE(env::KindOfFileSystem(kFuse, "fuseblk").network) << "a local disk, such as ntfs-3g's";
}

TEST(FileSystemKindTest, ThisMachine) {
  const TempDir directory;
  ASSERT_OK_AND_ASSIGN(const env::FileSystemKind kind, env::PosixEnv().files->Kind(directory.path()));
  EXPECT_FALSE(kind.network) << kind.name;
  EXPECT_CODE(env::PosixEnv().files->Kind(directory.Sub("missing")), kNotFound);
  const auto memory = env::NewMemoryEnv();
  ASSERT_OK_AND_ASSIGN(const env::FileSystemKind in_memory, memory->env().files->Kind("/anything"));
  EXPECT_FALSE(in_memory.network);
}

TEST(NetworkStoreTest, IsRefusedUnlessAskedFor) {
  const TempDir directory;
  const std::string path = directory.Sub("missing");  // looked up by its parent
  env::Env env = env::PosixEnv();
  NetworkFiles files(env.files, "nfs");
  env.files = &files;
  const Schema schema = TheSchema();
  Options options;
  options.create_if_missing = true;
  const absl::Status refused = engine::Engine::Open(env, nullptr, path, options, &schema).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("nfs"), std::string::npos) << refused;
  EXPECT_NE(refused.message().find("allow_network_file_system"), std::string::npos) << refused;
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is made there";

  options.allow_network_file_system = true;
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, engine::Engine::Open(env, nullptr, path, options, &schema));
    ASSERT_OK(engine->Close());
  }
  // For reading as well: a reader maps what another machine writes.
  const std::string again = directory.Sub("s");
  std::filesystem::rename(path, again);
  for (const bool read_only : {false, true}) {
    Options opening;
    opening.read_only = read_only;
    EXPECT_CODE(engine::Engine::Open(env, nullptr, again, opening, nullptr), kFailedPrecondition);
    opening.allow_network_file_system = true;
    EXPECT_OK(engine::Engine::Open(env, nullptr, again, opening, nullptr));
  }
}

// ---- A real mount: a FUSE server that has an empty root and nothing else, in a name space of its own.

void ServeRoot(int fd) {
  std::array<char, 1 << 16> request;
  for (;;) {
    const ssize_t size = ::read(fd, request.data(), request.size());
    if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) ::_exit(0);
    fuse_in_header in;
    std::memcpy(&in, request.data(), sizeof in);
    struct {
      fuse_out_header header;
      union {
        fuse_init_out init;
        fuse_attr_out attributes;
        fuse_statfs_out statistics;
      };
    } out;
    std::memset(&out, 0, sizeof out);
    size_t body = 0;
    switch (in.opcode) {
      case FUSE_INIT:
        out.init.major = FUSE_KERNEL_VERSION;
        out.init.minor = FUSE_KERNEL_MINOR_VERSION;
        out.init.max_write = 4096;
        body = sizeof out.init;
        break;
      case FUSE_GETATTR:
        out.attributes.attr.ino = FUSE_ROOT_ID;
        out.attributes.attr.mode = S_IFDIR | 0755;
        out.attributes.attr.nlink = 2;
        body = sizeof out.attributes;
        break;
      case FUSE_STATFS:
        body = sizeof out.statistics;
        break;
      case FUSE_LOOKUP:
        out.header.error = -ENOENT;
        break;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        continue;  // never answered
      default:
        out.header.error = -ENOSYS;
    }
    out.header.unique = in.unique;
    out.header.len = static_cast<uint32_t>(sizeof out.header + body);
    if (::write(fd, &out, out.header.len) < 0) ::_exit(0);
  }
}

TEST(NetworkStoreTest, RealFuseMountIsRefused) {
  constexpr int kNotPermitted = 99;
  const TempDir directory;
  const std::string place = directory.Sub("mount");
  std::filesystem::create_directory(place);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const int fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = absl::StrCat("fd=", fd, ",rootmode=40000,user_id=0,group_id=0");
    if (fd < 0 || ::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("ashlar", place.c_str(), "fuse.ashlartest", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
      ::_exit(kNotPermitted);
    const pid_t server = ::fork();
    if (server == 0) ServeRoot(fd);
    const Schema schema = TheSchema();
    Options creating;
    creating.create_if_missing = true;
    int code = 0;
    for (const std::string& path : {place, place + "/store"}) {
      const absl::Status refused = Store::Open(path, creating, &schema).status();
      if (!absl::IsFailedPrecondition(refused)) code = 1;
      if (refused.message().find("fuse.ashlartest") == absl::string_view::npos) code = 2;
      if (code != 0) std::fprintf(stderr, "%s\n", refused.ToString().c_str());
    }
    ::umount2(place.c_str(), MNT_DETACH);
    ::kill(server, SIGKILL);
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNotPermitted) {
    std::printf("a FUSE mount is not permitted here: the refusal was tried by the tests above only\n");
    return;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ashlar::testing
