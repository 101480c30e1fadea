// The two implementations of Catalog, for OpenCatalog alone.
#ifndef ASHLAR_SRC_CATALOG_IMPLEMENTATIONS_H_
#define ASHLAR_SRC_CATALOG_IMPLEMENTATIONS_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/catalog/catalog.h"

namespace ashlar::catalog {

absl::StatusOr<std::unique_ptr<Catalog>> OpenFileCatalog(env::Env env, const std::string& directory, Access access);
bool IsFileCatalogFile(std::string_view name);
absl::Status ReplaceFileCatalog(env::Env env, const std::string& directory, const format::CatalogValue& value);

absl::StatusOr<std::unique_ptr<Catalog>> OpenLmdbCatalog(env::Env env, const std::string& directory, Access access);
bool IsLmdbCatalogFile(std::string_view name);
absl::Status ReplaceLmdbCatalog(env::Env env, const std::string& directory, const format::CatalogValue& value);

// The bytes to publish for `value`, proven readable: a value that could not be read back would cost the store.
absl::StatusOr<ByteBuffer> EncodeForCommit(const format::CatalogValue& value, std::string_view source);

}  // namespace ashlar::catalog

#endif  // ASHLAR_SRC_CATALOG_IMPLEMENTATIONS_H_
