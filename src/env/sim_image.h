// The state of a simulated disk: what has reached it, what is pending in the page cache, and what
// may survive when the power goes. No faults, handles or threads here (sim_env.h).
//
// Model. A file has a durable content and an ordered list of changes since its last sync; a
// directory has durable entries, and changes of entries wait in one ordered list until the
// directory is synced. A crash keeps any subset of them that a real machine can leave behind:
//   - file data by sector (512 bytes) or page (4,096): each holds its content as of one of the
//   pending writes that touch
//     it, or the durable one. So later writes may survive without earlier ones, and writes may be
//     torn;
//   - the size independently: as of any pending change, so a file may end early or be extended with
//   zeros;
//   - in a sector that was being written, garbage or stale bytes in the range being written, and
//   never outside it;
//   - entry changes independently, except that a change is lost if an earlier one of the same name
//   is: a rename is never
//     half done, a file is never under neither of its names.
#ifndef ASHLAR_SRC_ENV_SIM_IMAGE_H_
#define ASHLAR_SRC_ENV_SIM_IMAGE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/bytes.h"
#include "src/env/page_buffer.h"

namespace ashlar::env {

inline constexpr size_t kSimSectorBytes = 512;
inline constexpr size_t kSimPageBytes = 4096;

// What becomes of one pending change. Changes of entries and of sizes are kept or lost; the rest is
// for writes, in units of 512 or 4,096 bytes.
struct Fate {
  enum class Kind : uint8_t {
    kLost,
    kKept,
    kTornFront,      // the first `unit` units are there
    kTornBack,       // all but the first `unit` units are there
    kGarbage,        // all is there, but what was written in unit `unit` is noise
    kStale,          // the same, with old bytes of another file
    kExtended,       // the file has its new size, and zeros for bytes
    kExtendedStale,  // the same, with old bytes of another file
  };
  Kind kind = Kind::kLost;
  uint32_t unit = 0;
  uint32_t unit_bytes = kSimSectorBytes;
  bool operator==(const Fate&) const = default;
};

// What a crash keeps.
struct CrashPolicy {
  enum class Kind {
    kKeepAll,  // everything written, synced or not
    kDropAll,  // nothing but what was synced
    kSubset,   // the i-th pending change iff keep[i]; changes beyond keep.size() are dropped
    kRandom,   // a subset, sectors, sizes and garbage by seed
    kFates,    // each pending change as fates[i] says; changes beyond fates.size() are dropped
  };
  Kind kind = Kind::kDropAll;
  std::vector<bool> keep;
  uint64_t seed = 0;    // kRandom; kFates: of noise and of the choice of old bytes
  bool garbage = true;  // kRandom: also garbage and stale sectors
  std::vector<Fate> fates{};

  static CrashPolicy KeepAll() { return {Kind::kKeepAll, {}, 0, false, {}}; }
  static CrashPolicy DropAll() { return {Kind::kDropAll, {}, 0, false, {}}; }
  static CrashPolicy Subset(std::vector<bool> keep) {
    return {Kind::kSubset, std::move(keep), 0, false, {}};
  }
  static CrashPolicy Random(uint64_t seed) { return {Kind::kRandom, {}, seed, true, {}}; }
  static CrashPolicy Fates(std::vector<Fate> fates, uint64_t seed = 0) {
    return {Kind::kFates, {}, seed, true, std::move(fates)};
  }
};
// For people and logs: "keep all", "fates KLF3" (F front, B back, G garbage, O old, Z zeros, S stale
// size; a capital P behind a unit number: 4,096-byte units).
std::string CrashPolicyText(const CrashPolicy& policy);

namespace sim {

// Bytes of a file in immutable pages, shared by copies: a copy costs a pointer a page, a write
// copies the pages that it touches. A missing page is zeros.
class Content {
 public:
  uint64_t size() const { return size_; }
  // [offset, offset + out.size()) must be inside.
  void Read(uint64_t offset, std::span<std::byte> out) const;
  // Grows as needed; a gap becomes zeros.
  void Write(uint64_t offset, ByteSpan bytes);
  void Resize(uint64_t size);
  ByteBuffer ToBuffer() const;
  // Of size and bytes, mixed with `seed`. O(pages), and O(bytes) of pages that are new.
  uint64_t Hash(uint64_t seed) const;
  bool operator==(const Content& other) const;

 private:
  // Never changed once it is shared. The hash is computed once for all copies.
  struct Page {
    std::array<std::byte, kSimPageBytes> bytes;
    mutable std::atomic<uint64_t> hash{0};  // 0: not computed yet
    Page() : bytes{} {}
    Page(const Page& other) : bytes(other.bytes) {}
    uint64_t Hash() const;
  };
  std::vector<std::shared_ptr<const Page>> pages_;
  uint64_t size_ = 0;
};

// A change of a file since its last sync.
struct FileChange {
  bool is_write = true;  // else: resize
  uint64_t offset = 0;   // of a write; the new size of a resize
  ByteBuffer bytes;
  bool from_page = false;  // a write through a shared page
};

struct Node;
using NodePtr = std::shared_ptr<Node>;
using Entries = std::map<std::string, NodePtr>;

// A file or a directory, whatever its names.
struct Node {
  uint64_t id = 0;  // in order of creation; what decides any order by node
  bool is_directory = false;

  // Files.
  Content current;  // what reads see
  Content durable;
  std::vector<FileChange> pending;
  std::weak_ptr<const PageBuffer> mapping;  // of the current content; reset by every write
  std::shared_ptr<PageBuffer> page;         // while shared pages are open: newer than `current`
  int page_users = 0;
  uint64_t lock_process = 0;  // 0: not locked

  // Directories. Changes from the one to the other are in Image::pending.
  Entries entries;
  Entries durable_entries;

  // Of the walk over all nodes that saw this one last.
  uint64_t walk = 0;
  size_t index = 0;  // in that walk
};

// One change of names, all or nothing: one entry, or two for a rename.
struct EntryChange {
  struct Entry {
    NodePtr directory;
    std::string name;
    NodePtr node;  // null: removed
  };
  std::vector<Entry> entries;
  bool Touches(const Entry& other) const;
};

struct Image {
  NodePtr root;
  uint64_t next_id = 1;
  std::vector<EntryChange> pending;
  // Of removed files, the last few: where stale sectors come from.
  std::deque<std::shared_ptr<const Content>> graveyard;
  mutable uint64_t walks = 0;
};

Image NewImage();
NodePtr NewNode(Image& image, bool is_directory);

// Null if it is not there.
NodePtr Lookup(const Image& image, const std::vector<std::string>& parts);

// Applies the change to the current entries and remembers it as pending.
void ChangeEntries(Image& image, EntryChange change);
void WriteFile(Node& file, uint64_t offset, ByteSpan bytes);
void ResizeFile(Node& file, uint64_t size);
// Turns what was written through a shared page into a pending write.
void AbsorbPage(Node& file);
void AbsorbAllPages(const Image& image);

// Shows a change of the current content to those who share the page.
void RefreshPage(Node& file);

void SyncFile(Node& file);
// A sync that fails: the pages are clean now, and what was pending is lost, wholly or by `loss`;
// reads still see it.
void FailSync(Node& file, const CrashPolicy& loss);
// With it also the changes that these need, wherever they are.
void SyncDirectory(Image& image, const Node& directory);

// How many changes wait: the length of a complete CrashPolicy::keep. Entry changes come first, in
// their order, then file changes by node and order.
size_t PendingCount(const Image& image);
// What is on the disk after a crash; shares nothing that can change. O(pages of all files).
Image Survivors(const Image& image, const CrashPolicy& policy);
// A bounded enumeration of what may survive, the same for equal images: all kept, all dropped, all
// subsets of a few changes or else every front, back and single change; each write torn at each unit
// (of long ones at the first and last few), with a garbage or stale unit, or with its size alone.
// At most `policies_max` (2 or more), those of the newest changes first.
std::vector<CrashPolicy> EnumerateCrashes(const Image& image, size_t policies_max);
// Of all durable names and bytes.
uint64_t HashDurable(const Image& image);
// Sizes of all files that have a name now.
uint64_t UsedBytes(const Image& image);

}  // namespace sim
}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_SIM_IMAGE_H_
