#include "src/catalog/catalog.h"

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/catalog/implementations.h"

namespace ashlar::catalog {

absl::StatusOr<std::unique_ptr<Catalog>> OpenCatalog(env::Env env, const std::string& directory, Access access) {
  // LMDB does its own I/O, so it needs a path that the operating system knows.
  return env.files->NativePath(directory).empty() ? OpenFileCatalog(env, directory, access)
                                                  : OpenLmdbCatalog(env, directory, access);
}

absl::Status ReplaceCatalog(env::Env env, const std::string& directory, const format::CatalogValue& value) {
  return env.files->NativePath(directory).empty() ? ReplaceFileCatalog(env, directory, value)
                                                  : ReplaceLmdbCatalog(env, directory, value);
}

bool IsCatalogFile(std::string_view name) { return IsFileCatalogFile(name) || IsLmdbCatalogFile(name); }

absl::StatusOr<ByteBuffer> EncodeForCommit(const format::CatalogValue& value, std::string_view source) {
  ByteBuffer bytes = format::EncodeCatalogValue(value);
  const absl::StatusOr<format::CatalogValue> again = format::DecodeCatalogValue(bytes, source);
  if (!again.ok())
    return Internal(absl::StrCat(ToAbsl(source), ": refused to commit what could not be read: ",
                                 again.status().message()));
  if (*again != value) return Internal(absl::StrCat(ToAbsl(source), ": refused to commit what would read differently"));
  return bytes;
}

}  // namespace ashlar::catalog
