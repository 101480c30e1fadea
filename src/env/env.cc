#include "src/env/env.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/env/env_error.h"

namespace ashlar::env {

absl::Status EnvError(int error, std::string_view operation, const std::string& path) {
  absl::Status status = ErrnoError(error, operation, path);
  if (error != EISDIR && error != ENOTEMPTY) return status;
  return WithPlace(absl::FailedPreconditionError(status.message()), path, "", 0);
}

absl::Status ClosedError(const std::string& path) {
  return FailedPrecondition(absl::StrCat(path, ": the file is closed"));
}

absl::Status OutsideMappingError(const std::string& path, uint64_t offset, uint64_t length,
                                 uint64_t size) {
  return WithPlace(InvalidArgument(absl::StrCat(path, ": range at ", offset, " of ", length,
                                                " bytes is outside a mapping of ", size)),
                   path, "", offset);
}

absl::Status ShortenedError(const std::string& path, uint64_t offset, uint64_t expected,
                            uint64_t found) {
  return DataLoss(
      path, "file", offset,
      absl::StrCat("the file is too short: expected ", expected, " bytes, found ", found));
}

absl::Status PageSizeError(const std::string& path, uint64_t size) {
  return InvalidArgument(absl::StrCat(path, ": cannot share a page of ", size, " bytes"));
}

absl::StatusOr<ByteBuffer> ReadFile(FileSystem& files, const std::string& path, uint64_t size_max) {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForRead(path));
  ASHLAR_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > size_max) {
    return WithPlace(ResourceExhausted(
                         absl::StrCat(path, ": ", size, " bytes, at most ", size_max, " are read")),
                     path, "", 0);
  }
  ByteBuffer bytes(size);
  ASHLAR_ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, bytes));
  bytes.resize(read);  // the file may have become shorter since
  return bytes;
}

absl::Status ReadExactly(const ReadableFile& file, const std::string& path,
                         std::string_view section, uint64_t offset, std::span<std::byte> out) {
  absl::StatusOr<size_t> read = file.ReadAt(offset, out);
  if (!read.ok()) return WithPlace(std::move(read).status(), path, section, offset);
  if (*read == out.size()) return absl::OkStatus();
  return DataLoss(
      path, section, offset,
      absl::StrCat("the file ends too early: expected ", out.size(), " bytes, found ", *read));
}

}  // namespace ashlar::env
