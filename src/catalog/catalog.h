// Catalog: the commit point. One checksummed value per generation; the newest two are kept.
// Implementations: lmdb_catalog.cc where the file system has native paths; file_catalog.cc over env::FileSystem for stores
// in memory and the simulated disk. One contract test runs over both.
#ifndef ASHLAR_SRC_CATALOG_CATALOG_H_
#define ASHLAR_SRC_CATALOG_CATALOG_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/catalog_value.h"
#include "src/env/env.h"

namespace ashlar::catalog {

// Contract: Commit is atomic and durable when it returns OK; after a crash during Commit the newest value is the old
// or the new one; after a failed Commit it is unknown until reopened (the caller stops publishing), except ResourceExhausted,
// after which it is the old one and Commit may be tried again.
// Threads: any; Commit by one at a time.
class Catalog {
 public:
  virtual ~Catalog() = default;
  // The newest value. NotFound if nothing was ever committed; DataLoss if the newest can't be read: an older one is never
  // a silent fallback.
  virtual absl::StatusOr<format::CatalogValue> Read() = 0;
  // `value.generation` must be the newest plus one (1 for the first).
  virtual absl::Status Commit(const format::CatalogValue& value) = 0;
  // Commit after which nothing of older values is left under the catalog's names: where several lie in one file, a new
  // one takes its place. Other handles go on reading the old file until they are opened again.
  virtual absl::Status Rewrite(const format::CatalogValue& value) = 0;
  // Whether another file has taken the place of the one that this handle reads.
  virtual absl::StatusOr<bool> WasReplaced() = 0;
  // Verifies every page and value; returns what it found, each with its place.
  virtual absl::StatusOr<std::vector<absl::Status>> Check() = 0;
};

enum class Access { kCreate, kWrite, kRead };

// Opens the catalog of a store directory. kCreate makes one if there is none, and syncs its file and its directory before
// it returns; kWrite and kRead: NotFound if there is none. kRead changes nothing but LMDB's reader table, and works on read-only
// media. Every page of an LMDB file is checked by a bounded walker of ours before LMDB is let near it.
absl::StatusOr<std::unique_ptr<Catalog>> OpenCatalog(env::Env env, const std::string& directory, Access access);

// Makes `value` the newest of a directory that may have a catalog of an older generation or none; its generation may leave
// some out. Built aside and put in place by a rename: after a crash the directory has the old catalog or the new one. For
// copies of a store: the caller holds the directory's lock, and who has the old catalog open goes on seeing that.
absl::Status ReplaceCatalog(env::Env env, const std::string& directory, const format::CatalogValue& value);

// Names of files in the directory that belong to the catalog, so that nobody takes them for orphans.
bool IsCatalogFile(std::string_view name);

}  // namespace ashlar::catalog

#endif  // ASHLAR_SRC_CATALOG_CATALOG_H_
