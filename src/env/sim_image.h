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

// What a crash keeps.
struct CrashPolicy {
  enum class Kind {
    kKeepAll,  // everything written, synced or not
    kDropAll,  // nothing but what was synced
    kSubset,   // the i-th pending change iff keep[i]; changes beyond keep.size() are dropped
    kRandom,   // a subset, sectors, sizes and garbage by seed
  };
  Kind kind = Kind::kDropAll;
  std::vector<bool> keep;
  uint64_t seed = 0;
  bool garbage = true;  // kRandom: also garbage and stale sectors

  static CrashPolicy KeepAll() { return {Kind::kKeepAll, {}, 0, false}; }
  static CrashPolicy DropAll() { return {Kind::kDropAll, {}, 0, false}; }
  static CrashPolicy Subset(std::vector<bool> keep) {
    return {Kind::kSubset, std::move(keep), 0, false};
  }
  static CrashPolicy Random(uint64_t seed) { return {Kind::kRandom, {}, seed, true}; }
};

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
  bool operator==(const Content& other) const;

 private:
  using Page = std::array<std::byte, kSimPageBytes>;
  std::vector<std::shared_ptr<const Page>> pages_;
  uint64_t size_ = 0;
};

// A change of a file since its last sync.
struct FileChange {
  bool is_write = true;  // else: resize
  uint64_t offset = 0;   // of a write; the new size of a resize
  ByteBuffer bytes;
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
  std::deque<Content> graveyard;  // of removed files, the last few: where stale sectors come from
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
// Of all durable names and bytes.
uint64_t HashDurable(const Image& image);
// Sizes of all files that have a name now.
uint64_t UsedBytes(const Image& image);

}  // namespace sim
}  // namespace ashlar::env

#endif  // ASHLAR_SRC_ENV_SIM_IMAGE_H_
