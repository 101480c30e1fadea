// The LMDB walker: reads a catalog's LMDB file with bounded preads and proves that it is whole before LMDB maps it. LMDB has
// no checksums and follows the page numbers and offsets that it finds, so a damaged file can crash it or make it go back to
// an older state. Facts about the file (LMDB 0.9, data version 1): two meta pages written in turn, meta page i holding
// the transactions with id = i modulo 2; each leads to a B-tree of free pages and a main B-tree; every page up to the last
// one is in exactly one place, a tree or a free list; the trees of both metas are never overwritten.
//
// What is true of a catalog beyond that: generation g is committed by transaction g, keys are generations (8 bytes,
// big-endian), and the newest two are kept.
#ifndef ASHLAR_SRC_CATALOG_LMDB_WALKER_H_
#define ASHLAR_SRC_CATALOG_LMDB_WALKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/bytes.h"
#include "src/env/env.h"

namespace ashlar::catalog {

struct LmdbEntry {
  uint64_t generation = 0;
  ByteBuffer value;
  uint64_t offset = 0;  // of the value in the file
};

struct LmdbContent {
  std::vector<LmdbEntry> entries;  // of the newest transaction, ascending; empty: nothing was committed yet
  uint64_t file_bytes_needed = 0;  // what the newest transaction's pages take
};

// DataLoss naming file, page ("lmdb meta", "lmdb free list", "lmdb main tree") and offset if anything is wrong. Reads each page
// at most once per tree: O(file) time, O(file) memory for the values. Safe beside a living writer: starts again when a commit
// passes by, and gives up with Unavailable if that never ends.
absl::StatusOr<LmdbContent> WalkLmdb(const env::ReadableFile& file, const std::string& path);

}  // namespace ashlar::catalog

#endif  // ASHLAR_SRC_CATALOG_LMDB_WALKER_H_
