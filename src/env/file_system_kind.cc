#include "src/env/file_system_kind.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/env/env_error.h"

namespace ashlar::env {
namespace {

struct Known {
  uint64_t type;
  std::string_view name;
};
constexpr uint64_t kFuse = 0x65735546;
// Those of statfs(2) and of the kernel's linux/magic.h that keep their files on other machines or share them with other
// machines. Names are those of mount(8).
constexpr Known kNetwork[] = {
    {0x6969, "nfs"},       {0x517B, "smb"},        {0xFF534D42, "cifs"},    {0xFE534D42, "smb2"},   {0x5346414F, "afs"},
    {0x6B414653, "afs"},   {0x73757245, "coda"},   {0x564C, "ncpfs"},       {0x00C36400, "ceph"},   {0x01021997, "9p"},
    {0x01161970, "gfs2"},  {0x7461636F, "ocfs2"},  {0x0BD00BD0, "lustre"},  {0x47504653, "gpfs"},   {0x19830326, "beegfs"},
    {0xAAD7AAEA, "panfs"}, {0x20030528, "orangefs"}, {0x786F4256, "vboxsf"}, {0xBACBACBC, "vmhgfs"}, {0x7C7C6673, "prl_fs"},
    {0x013111A8, "ibrix"}, {0x61636673, "acfs"},   {0xBEEFDEAD, "snfs"},    {kFuse, "fuse"},
};

// The type of the mount of a device, as /proc tells it; empty if it does not.
std::string MountType(dev_t device) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/mountinfo", "re"), &std::fclose);
  if (file == nullptr) return "";
  const std::string number = absl::StrCat(major(device), ":", minor(device));
  std::string type;
  char* line = nullptr;
  size_t capacity = 0;
  // Identifier, parent, device, root, mount point, options, optional fields, "-", type (proc(5)).
  while (type.empty() && ::getline(&line, &capacity, file.get()) >= 0) {
    const std::string_view text(line);
    std::vector<std::string_view> words;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(' ', begin), text.size());
      words.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (words.size() < 3 || words[2] != number) continue;
    for (size_t i = 6; i + 1 < words.size(); ++i) {
      if (words[i] != "-") continue;
      type = std::string(words[i + 1]);
      break;
    }
  }
  std::free(line);
  return type;
}

}  // namespace

FileSystemKind KindOfFileSystem(uint64_t statfs_type, std::string_view mount_type) {
  // statfs(2) has a signed field on some machines.
  const uint64_t type = statfs_type & 0xFFFFFFFF;
  for (const Known& known : kNetwork) {
    if (known.type != type) continue;
    if (type == kFuse && mount_type == "fuseblk") return {"fuseblk", false};
    return {std::string(type == kFuse && !mount_type.empty() ? mount_type : known.name), true};
  }
  return {};
}

absl::StatusOr<FileSystemKind> FindFileSystemKind(const std::string& path) {
  struct statfs information {};
  int result = -1;
  do {
    result = ::statfs(path.c_str(), &information);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return EnvError(errno, "statfs", path);
  const auto type = static_cast<uint64_t>(information.f_type);
  if ((type & 0xFFFFFFFF) != kFuse) return KindOfFileSystem(type, "");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return EnvError(errno, "stat", path);
  return KindOfFileSystem(type, MountType(info.st_dev));
}

}  // namespace ashlar::env
