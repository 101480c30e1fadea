// What kind of file system a path is on. Network and cluster file systems keep neither the locks nor the shared mappings
// nor the syncs that a store relies on, so opening refuses them unless asked not to.
#ifndef ASHLAR_SRC_ENV_FILE_SYSTEM_KIND_H_
#define ASHLAR_SRC_ENV_FILE_SYSTEM_KIND_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/env/env.h"

namespace ashlar::env {

// By the number that statfs(2) gives. FUSE is all of its servers in one number, so it counts as a network here; `type`,
// the name of the mount's type where known ("fuse.sshfs", "fuseblk"), says more: fuseblk is a local disk.
FileSystemKind KindOfFileSystem(uint64_t statfs_type, std::string_view mount_type);

// Of a path that exists. NotFound if it does not.
absl::StatusOr<FileSystemKind> FindFileSystemKind(const std::string& path);

}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_FILE_SYSTEM_KIND_H_
