// WriteTrace: every change of a directory's files by this process, LMDB's included, in one order; and CrashModel: what
// a disk may hold when the power goes after a prefix of it.
//
// The program is linked with --wrap for the system calls that change files (tests/catalog/meson.build), and with LMDB
// as a static library, so that its calls are caught too. One thread.
#ifndef ASHLAR_TESTS_CATALOG_WRITE_TRACE_H_
#define ASHLAR_TESTS_CATALOG_WRITE_TRACE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/bytes.h"

namespace ashlar::testing {

struct TraceOp {
  enum class Kind {
    kCreate,         // `name` for `file`
    kMakeDirectory,  // `name`
    kRename,         // `name` to `to`
    kRemove,         // `name`
    kWrite,          // `bytes` at `offset` of `file`
    kTruncate,       // `file` to `offset`, shorter or longer
    kSync,           // all of `file`
    kSyncRange,      // the end of a write through an O_DSYNC descriptor: the write before this one is durable
    kSyncDirectory,  // `name`
    kFailedSync,  // of `file`: what was to be durable is in the page cache, counts as clean, and may be on the disk or
                  // not
    kMark,        // nothing: what the program knew here is `mark`
  };
  Kind kind;
  int file = -1;
  std::string name, to;  // below the root, without a leading '/'
  uint64_t offset = 0;
  ByteBuffer bytes;
  bool shared = false;  // a store into a shared mapping, found when the next call was made
  size_t mark = 0;
};
std::string ToString(const TraceOp& op);

// Files by name, with the directories that exist. Contents are shared between images.
struct DiskImage {
  std::map<std::string, std::shared_ptr<const ByteBuffer>> files;
  std::vector<std::string> directories;  // parents first
  uint64_t Hash() const;
  // Into `root`, an existing directory, whose content is removed first.
  void WriteTo(const std::string& root) const;
  static DiskImage ReadFrom(const std::string& root);
};

struct Trace {
  DiskImage before;
  std::vector<TraceOp> ops;
  std::vector<std::string> names;  // of files, by number: the name each one had first
};

// Records changes below `root` from Begin to End.
void BeginTrace(const std::string& root);
void MarkTrace(size_t mark);
Trace EndTrace();
// While recording: the nth sync from now of a file whose name has `part` in it fails with EIO. `dead`: nothing is
// written to such files and nothing synced after it until ReviveTraced(), as if the process had been killed there.
void FailTracedSync(const std::string& part, int nth, bool dead);
// The same for writes, of which nothing is done.
void FailTracedWrite(const std::string& part, int nth);
// Forgets both; false if the sync or write never came.
bool ReviveTraced();

class CrashModel {
 public:
  explicit CrashModel(const Trace& trace);

  // Steps over the next operation; false at the end.
  bool Advance();
  size_t position() const { return position_; }
  // The bounded set of images that may be there when the power goes here; the same one may come several times. `visit`
  // returns false to stop. Un-synced writes and directory changes are all kept, all dropped, kept alone, dropped alone,
  // torn at 512 bytes and left as zeros; up to `kSubsetItems` in every combination, and `random` combinations beyond.
  void VisitImages(uint64_t seed, int random, const std::function<bool(const DiskImage&)>& visit) const;
  // As the files are for a process that reads them now.
  DiskImage Whole() const;

  static constexpr size_t kSubsetItems = 4;

 private:
  enum class Fate : uint8_t { kDrop, kKeep, kTornFront, kTornBack, kTornRandom, kZeros };
  struct Change {  // of a file
    bool truncate = false;
    uint64_t offset = 0;
    const ByteBuffer* bytes = nullptr;
    bool shared = false;
    bool doubtful = false;  // its sync failed: no later sync makes it durable
    bool certain = false;   // durable, but over a doubtful one
  };
  struct File {
    std::shared_ptr<ByteBuffer> durable = std::make_shared<ByteBuffer>();
    std::vector<Change> pending;
  };
  struct NameChange {
    std::string unset, set;  // empty: none
    int file = -1;           // kDirectory: `set` is a directory
  };
  static constexpr int kDirectory = -2;

  static void Apply(const Change& change, Fate fate, uint64_t seed, ByteBuffer* bytes);
  static void ApplyName(const NameChange& change, std::map<std::string, int>* names);
  static std::string ParentOf(const std::string& name);
  void AddWrite(const TraceOp& op);
  size_t ItemCount() const;
  DiskImage Build(const std::vector<Fate>& fates, uint64_t seed) const;

  const Trace& trace_;
  size_t position_ = 0;
  std::map<int, File> files_;
  std::map<std::string, int> durable_names_;
  std::map<std::string, int> names_;       // as the process sees them
  std::vector<NameChange> pending_names_;  // in order, of all directories
};

}  // namespace ashlar::testing

#endif  // ASHLAR_TESTS_CATALOG_WRITE_TRACE_H_
