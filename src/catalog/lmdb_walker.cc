#include "src/catalog/lmdb_walker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::catalog {
namespace {

constexpr int kAttemptsMax = 100;  // commits that may pass by while one walk is under way

// A page: number u64, pad u16, flags u16, then lower u16 and upper u16, or the count of pages of an overflow run as u32.
constexpr size_t kPageHeaderBytes = 16;
constexpr uint16_t kBranchPage = 0x01, kLeafPage = 0x02, kOverflowPage = 0x04, kMetaPage = 0x08;
// A node: low u16, high u16, flags u16, key size u16, key, data.
constexpr size_t kNodeHeaderBytes = 8;
constexpr uint16_t kBigData = 0x01;  // the data is the number of an overflow page
constexpr size_t kKeyBytes = 8;

constexpr size_t kMetaBytes = 136;
constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint32_t kDataVersion = 1;
constexpr uint16_t kIntegerKeys = 0x08;
constexpr uint16_t kNoSubdirectory = 0x4000;  // an open flag that LMDB leaves in the free tree's flags
constexpr uint64_t kNoRoot = ~uint64_t{0};
constexpr size_t kPageBytesMin = 512, kPageBytesMax = 32768;
constexpr unsigned kDepthMax = 32;  // LMDB's own limit
constexpr uint64_t kFirstDataPage = 2;

struct Tree {
  uint16_t flags = 0;
  uint16_t depth = 0;
  uint64_t branch_pages = 0, leaf_pages = 0, overflow_pages = 0, entries = 0;
  uint64_t root = kNoRoot;
};

struct Meta {
  uint64_t offset = 0;  // in the file
  uint32_t page_bytes = 0;
  Tree free, main;
  uint64_t last_page = 0;
  uint64_t transaction = 0;
};

Tree ParseTree(const std::byte* p) {
  return {LoadU16(p + 4), LoadU16(p + 6), LoadU64(p + 8), LoadU64(p + 16), LoadU64(p + 24), LoadU64(p + 32),
          LoadU64(p + 40)};
}

// One walk: the file as it is while neither meta page changes.
class Walker {
 public:
  Walker(const env::ReadableFile& file, const std::string& path) : file_(file), path_(path) {}

  absl::StatusOr<LmdbContent> Run();
  // The bytes of both metas that Run saw.
  const std::array<ByteBuffer, 2>& meta_bytes() const { return meta_bytes_; }
  bool MetasAreUnchanged() const;

 private:
  enum class Kind { kFree, kMain };
  // What one meta leads to.
  struct Snapshot {
    const Meta* meta = nullptr;
    std::unordered_set<uint64_t> used;                         // pages of both trees
    std::vector<std::pair<uint64_t, uint64_t>> free;           // page, transaction that freed it
    std::vector<LmdbEntry> entries;
  };
  struct Walk {
    Kind kind;
    Snapshot* out;
    unsigned depth;                     // of every leaf, as the meta says
    Tree seen;                          // counted on the way
    std::optional<uint64_t> last_key;   // keys ascend over the whole tree
  };
  struct Node {
    ByteSpan key;
    uint16_t flags = 0;
    uint64_t child = 0;      // branch
    uint64_t data_size = 0;  // leaf
    uint64_t data_at = 0;    // leaf: in the page
  };
  struct Page {
    ByteBuffer bytes;
    uint64_t offset = 0;  // in the file
    bool leaf = false;
    size_t count = 0;
  };

  absl::Status ReadMetas();
  absl::Status ReadMeta(size_t index, uint64_t offset, Meta* meta);
  absl::Status CheckMetas() const;
  absl::Status WalkSnapshot(const Meta& meta, Snapshot* out);
  absl::Status WalkTree(const Tree& tree, Kind kind, Snapshot* out);
  absl::Status WalkPage(uint64_t number, unsigned level, std::optional<uint64_t> low, std::optional<uint64_t> high,
                        Walk* walk);
  absl::Status WalkBranch(const Page& page, unsigned level, std::optional<uint64_t> low, std::optional<uint64_t> high,
                          Walk* walk);
  absl::Status WalkLeaf(const Page& page, std::optional<uint64_t> low, std::optional<uint64_t> high, Walk* walk);
  absl::StatusOr<Page> ReadPage(uint64_t number, Walk* walk);
  absl::StatusOr<std::vector<Node>> ParseNodes(const Page& page, Kind kind) const;
  absl::StatusOr<ByteBuffer> ReadData(const Page& page, const Node& node, Walk* walk, uint64_t* offset);
  absl::Status TakeFreeList(uint64_t transaction, ByteSpan list, uint64_t offset, Snapshot* out) const;
  absl::Status CheckPages(Snapshot* out) const;
  absl::Status CheckEntries(const Snapshot& snapshot) const;

  static uint64_t KeyOf(ByteSpan key, Kind kind) {
    const uint64_t value = LoadU64(key.data());
    return kind == Kind::kFree ? value : __builtin_bswap64(value);
  }
  static std::string_view SectionOf(Kind kind) {
    return kind == Kind::kFree ? std::string_view("lmdb free list") : std::string_view("lmdb main tree");
  }
  absl::Status Damage(std::string_view section, uint64_t offset, std::string_view message) const {
    return DataLoss(path_, section, offset, message);
  }

  const env::ReadableFile& file_;
  const std::string& path_;
  uint64_t file_bytes_ = 0;
  uint64_t page_bytes_ = 0;
  std::array<ByteBuffer, 2> meta_bytes_;
  std::array<Meta, 2> metas_;
};

// ---- Meta pages.

absl::Status Walker::ReadMeta(size_t index, uint64_t offset, Meta* meta) {
  constexpr std::string_view kSection = "lmdb meta";
  ByteBuffer& bytes = meta_bytes_[index];
  bytes.assign(kPageHeaderBytes + kMetaBytes, std::byte{0});
  ASHLAR_ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(offset, bytes));
  if (got != bytes.size()) {
    bytes.resize(got);
    return Damage(kSection, offset + got, "the file ends here");
  }
  const std::byte* page = bytes.data();
  const std::byte* p = page + kPageHeaderBytes;
  if (LoadU64(page) != index || LoadU16(page + 10) != kMetaPage) return Damage(kSection, offset, "not a meta page");
  if (LoadU32(p) != kMagic) return Damage(kSection, offset + kPageHeaderBytes, "wrong magic");
  if (LoadU32(p + 4) != kDataVersion) return Damage(kSection, offset + kPageHeaderBytes + 4, "wrong data version");
  // Its address and map size are not read: we give LMDB our own.
  meta->offset = offset;
  meta->page_bytes = LoadU32(p + 24);  // kept where the free tree's pad would be
  meta->free = ParseTree(p + 24);
  meta->main = ParseTree(p + 72);
  meta->last_page = LoadU64(p + 120);
  meta->transaction = LoadU64(p + 128);
  if (meta->page_bytes < kPageBytesMin || meta->page_bytes > kPageBytesMax || !std::has_single_bit(meta->page_bytes))
    return Damage(kSection, offset + kPageHeaderBytes + 24, "impossible page size");
  if ((meta->free.flags & ~kNoSubdirectory) != kIntegerKeys || meta->main.flags != 0)
    return Damage(kSection, offset + kPageHeaderBytes + 28, "impossible tree flags");
  if (meta->last_page < kFirstDataPage - 1 || meta->last_page >= kNoRoot / kPageBytesMax)
    return Damage(kSection, offset + kPageHeaderBytes + 120, "impossible last page");
  return absl::OkStatus();
}

absl::Status Walker::ReadMetas() {
  ASHLAR_RETURN_IF_ERROR(ReadMeta(0, 0, &metas_[0]));
  page_bytes_ = metas_[0].page_bytes;
  ASHLAR_RETURN_IF_ERROR(ReadMeta(1, page_bytes_, &metas_[1]));
  // After the metas: a commit writes its pages first, so the file is at least as long as they need.
  ASHLAR_ASSIGN_OR_RETURN(file_bytes_, file_.Size());
  return CheckMetas();
}

// The metas are written in turn, one a transaction; both are 0 in a new file.
absl::Status Walker::CheckMetas() const {
  constexpr std::string_view kSection = "lmdb meta";
  const uint64_t even = metas_[0].transaction, odd = metas_[1].transaction;
  if (metas_[1].page_bytes != page_bytes_) return Damage(kSection, metas_[1].offset, "the metas differ in page size");
  const bool fresh = even == 0 && odd == 0;
  const bool in_turn = even % 2 == 0 && odd % 2 == 1 && (even > odd ? even - odd : odd - even) == 1;
  if (!fresh && !in_turn && SiteIsOn(Site::kCatalogMetasInTurn))
    return Damage(kSection, metas_[0].offset, absl::StrCat("transactions ", even, " and ", odd, " are not in turn"));
  return absl::OkStatus();
}

bool Walker::MetasAreUnchanged() const {
  for (size_t i = 0; i < 2; ++i) {
    if (meta_bytes_[i].empty()) continue;  // the walk ended before it
    ByteBuffer now(kPageHeaderBytes + kMetaBytes);
    const absl::StatusOr<size_t> got = file_.ReadAt(i * page_bytes_, now);
    if (!got.ok()) return true;  // no commit passed by; the walk's own answer stands
    now.resize(*got);
    if (now != meta_bytes_[i]) return false;
  }
  return true;
}

// ---- Trees.

absl::StatusOr<Walker::Page> Walker::ReadPage(uint64_t number, Walk* walk) {
  const std::string_view section = SectionOf(walk->kind);
  if (number < kFirstDataPage || number > walk->out->meta->last_page)
    return Damage(section, walk->out->meta->offset, absl::StrCat("page ", number, " is out of range"));
  Page page;
  page.offset = number * page_bytes_;
  if (page.offset + page_bytes_ > file_bytes_)
    return Damage(section, page.offset, absl::StrCat("the file has ", file_bytes_, " bytes and ends before the page"));
  if (!walk->out->used.insert(number).second) return Damage(section, page.offset, "the page is reached twice");
  page.bytes.resize(page_bytes_);
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(file_, path_, section, page.offset, page.bytes));
  const std::byte* p = page.bytes.data();
  const uint16_t flags = LoadU16(p + 10);
  if (LoadU64(p) != number) return Damage(section, page.offset, "the page has another number");
  if (flags != kLeafPage && flags != kBranchPage) return Damage(section, page.offset + 10, "wrong page flags");
  page.leaf = flags == kLeafPage;
  const size_t lower = LoadU16(p + 12), upper = LoadU16(p + 14);
  if (lower < kPageHeaderBytes || lower % 2 != 0 || lower > upper || upper > page_bytes_)
    return Damage(section, page.offset + 12, "impossible bounds of free space");
  page.count = (lower - kPageHeaderBytes) / 2;
  // A branch of one child and an empty leaf are never written.
  if (page.count < (page.leaf ? 1u : 2u)) return Damage(section, page.offset + 12, "too few nodes");
  return page;
}

absl::StatusOr<std::vector<Walker::Node>> Walker::ParseNodes(const Page& page, Kind kind) const {
  const std::string_view section = SectionOf(kind);
  const std::byte* p = page.bytes.data();
  const size_t upper = LoadU16(p + 14);
  std::vector<Node> nodes;
  std::vector<std::pair<size_t, size_t>> extents;  // begin, end
  for (size_t i = 0; i < page.count; ++i) {
    const size_t at = LoadU16(p + kPageHeaderBytes + 2 * i);
    const uint64_t place = page.offset + kPageHeaderBytes + 2 * i;
    if (at < upper || at % 2 != 0 || at + kNodeHeaderBytes > page_bytes_)
      return Damage(section, place, "a node lies outside the page");
    const uint64_t low = LoadU16(p + at), high = LoadU16(p + at + 2);
    Node node;
    node.flags = LoadU16(p + at + 4);
    const size_t key_bytes = LoadU16(p + at + 6);
    if (key_bytes != kKeyBytes && !(key_bytes == 0 && !page.leaf && i == 0))
      return Damage(section, page.offset + at + 6, "wrong key size");
    size_t data_bytes = 0;
    if (page.leaf) {
      if (node.flags != 0 && node.flags != kBigData) return Damage(section, page.offset + at + 4, "wrong node flags");
      node.data_size = low | high << 16;
      data_bytes = node.flags == kBigData ? 8 : static_cast<size_t>(node.data_size);
      node.data_at = at + kNodeHeaderBytes + key_bytes;
    } else {
      node.child = low | high << 16 | uint64_t{node.flags} << 32;
    }
    const size_t end = at + kNodeHeaderBytes + key_bytes + data_bytes;
    if (end > page_bytes_) return Damage(section, page.offset + at, "a node reaches beyond the page");
    node.key = ByteSpan(page.bytes).subspan(at + kNodeHeaderBytes, key_bytes);
    nodes.push_back(node);
    extents.emplace_back(at, end + end % 2);
  }
  // Nodes fill the space above `upper` without gaps.
  std::sort(extents.begin(), extents.end());
  size_t expected = upper;
  for (const auto& [begin, end] : extents) {
    if (begin != expected) return Damage(section, page.offset + begin, "nodes overlap or leave a gap");
    expected = end;
  }
  if (expected != page_bytes_) return Damage(section, page.offset + 14, "nodes do not fill the page");
  return nodes;
}

absl::Status Walker::WalkPage(uint64_t number, unsigned level, std::optional<uint64_t> low,
                              std::optional<uint64_t> high, Walk* walk) {
  ASHLAR_ASSIGN_OR_RETURN(const Page page, ReadPage(number, walk));
  if (page.leaf != (level + 1 == walk->depth))
    return Damage(SectionOf(walk->kind), page.offset, "the tree is not as deep as the meta says");
  return page.leaf ? WalkLeaf(page, low, high, walk) : WalkBranch(page, level, low, high, walk);
}

absl::Status Walker::WalkBranch(const Page& page, unsigned level, std::optional<uint64_t> low,
                                std::optional<uint64_t> high, Walk* walk) {
  ++walk->seen.branch_pages;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<Node> nodes, ParseNodes(page, walk->kind));
  for (size_t i = 0; i < nodes.size(); ++i) {
    // The first key of a branch is never compared; the others part its children.
    const std::optional<uint64_t> from = i == 0 ? low : KeyOf(nodes[i].key, walk->kind);
    const std::optional<uint64_t> to = i + 1 < nodes.size() ? KeyOf(nodes[i + 1].key, walk->kind) : high;
    if ((i > 0 && low.has_value() && *from < *low) || (from.has_value() && to.has_value() && *from >= *to))
      return Damage(SectionOf(walk->kind), page.offset, "keys of a branch do not ascend");
    ASHLAR_RETURN_IF_ERROR(WalkPage(nodes[i].child, level + 1, from, to, walk));
  }
  return absl::OkStatus();
}

absl::Status Walker::WalkLeaf(const Page& page, std::optional<uint64_t> low, std::optional<uint64_t> high, Walk* walk) {
  ++walk->seen.leaf_pages;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<Node> nodes, ParseNodes(page, walk->kind));
  for (const Node& node : nodes) {
    const uint64_t key = KeyOf(node.key, walk->kind);
    if ((low.has_value() && key < *low) || (high.has_value() && key >= *high) ||
        (walk->last_key.has_value() && key <= *walk->last_key))
      return Damage(SectionOf(walk->kind), page.offset, "keys do not ascend");
    walk->last_key = key;
    ++walk->seen.entries;
    uint64_t offset = 0;
    ASHLAR_ASSIGN_OR_RETURN(ByteBuffer data, ReadData(page, node, walk, &offset));
    if (walk->kind == Kind::kMain)
      walk->out->entries.push_back({key, std::move(data), offset});
    else
      ASHLAR_RETURN_IF_ERROR(TakeFreeList(key, data, offset, walk->out));
  }
  return absl::OkStatus();
}

absl::StatusOr<ByteBuffer> Walker::ReadData(const Page& page, const Node& node, Walk* walk, uint64_t* offset) {
  const std::string_view section = SectionOf(walk->kind);
  const std::byte* in_page = page.bytes.data() + node.data_at;
  if (node.flags != kBigData) {
    *offset = page.offset + node.data_at;
    return ByteBuffer(in_page, in_page + node.data_size);
  }
  // A run of pages of which only the first has a header.
  const uint64_t first = LoadU64(in_page);
  const uint64_t last_page = walk->out->meta->last_page;
  const uint64_t place = page.offset + node.data_at;
  if (first < kFirstDataPage || first > last_page) return Damage(section, place, "an overflow page is out of range");
  ByteBuffer header(kPageHeaderBytes);
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(file_, path_, section, first * page_bytes_, header));
  const uint64_t count = LoadU32(header.data() + 12);
  const uint64_t needed = (kPageHeaderBytes - 1 + node.data_size) / page_bytes_ + 1;
  if (LoadU64(header.data()) != first || LoadU16(header.data() + 10) != kOverflowPage)
    return Damage(section, first * page_bytes_, "not the overflow page of its node");
  if (count < needed || count > last_page - first + 1 || (first + count) * page_bytes_ > file_bytes_)
    return Damage(section, first * page_bytes_ + 12, "wrong number of overflow pages");
  for (uint64_t i = 0; i < count; ++i)
    if (!walk->out->used.insert(first + i).second)
      return Damage(section, (first + i) * page_bytes_, "the page is reached twice");
  walk->seen.overflow_pages += count;
  *offset = first * page_bytes_ + kPageHeaderBytes;
  ByteBuffer data(node.data_size);
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(file_, path_, section, *offset, data));
  return data;
}

// A count, then that many page numbers in descending order; room behind them may be unused.
absl::Status Walker::TakeFreeList(uint64_t transaction, ByteSpan list, uint64_t offset, Snapshot* out) const {
  const std::string_view section = SectionOf(Kind::kFree);
  if (list.size() < 8 || list.size() % 8 != 0) return Damage(section, offset, "wrong size of a list");
  const uint64_t count = LoadU64(list.data());
  if (count > list.size() / 8 - 1) return Damage(section, offset, "a list is longer than its room");
  if (transaction == 0 || transaction > out->meta->transaction) return Damage(section, offset, "a list of the future");
  uint64_t above = out->meta->last_page + 1;
  for (uint64_t i = 1; i <= count; ++i) {
    const uint64_t page = LoadU64(list.data() + 8 * i);
    if (page < kFirstDataPage || page >= above) return Damage(section, offset + 8 * i, "page numbers do not descend");
    out->free.emplace_back(page, transaction);
    above = page;
  }
  return absl::OkStatus();
}

absl::Status Walker::WalkTree(const Tree& tree, Kind kind, Snapshot* out) {
  Walk walk{kind, out, tree.depth, {}, {}};
  const uint64_t at = out->meta->offset + kPageHeaderBytes + (kind == Kind::kFree ? 24 : 72);
  if (tree.root != kNoRoot) {
    if (tree.depth == 0 || tree.depth > kDepthMax) return Damage("lmdb meta", at + 6, "impossible depth");
    ASHLAR_RETURN_IF_ERROR(WalkPage(tree.root, 0, std::nullopt, std::nullopt, &walk));
    walk.seen.depth = tree.depth;
  }
  const Tree& seen = walk.seen;
  if (seen.depth != tree.depth || seen.branch_pages != tree.branch_pages || seen.leaf_pages != tree.leaf_pages ||
      seen.overflow_pages != tree.overflow_pages || seen.entries != tree.entries)
    return Damage("lmdb meta", at, "the tree is not as large as the meta says");
  return absl::OkStatus();
}

absl::Status Walker::CheckPages(Snapshot* out) const {
  if (!SiteIsOn(Site::kCatalogPagesAccounted)) return absl::OkStatus();
  std::sort(out->free.begin(), out->free.end());
  uint64_t last = 0;
  for (const auto& [page, transaction] : out->free) {
    if (page == last || out->used.count(page) != 0)
      return Damage("lmdb free list", page * page_bytes_, "the page is in use or listed twice");
    last = page;
  }
  if (out->used.size() + out->free.size() != out->meta->last_page - (kFirstDataPage - 1))
    return Damage("lmdb meta", out->meta->offset + kPageHeaderBytes + 120, "pages are missing from the free list");
  return absl::OkStatus();
}

absl::Status Walker::CheckEntries(const Snapshot& snapshot) const {
  const uint64_t transaction = snapshot.meta->transaction;
  const uint64_t expected = std::min<uint64_t>(transaction, 2);
  bool right = snapshot.entries.size() == expected;
  for (uint64_t i = 0; right && i < expected; ++i)
    right = snapshot.entries[i].generation == transaction - expected + 1 + i;
  if (right || !SiteIsOn(Site::kCatalogEntriesOfTransaction)) return absl::OkStatus();
  return Damage("lmdb meta", snapshot.meta->offset + kPageHeaderBytes + 128,
                absl::StrCat("transaction ", transaction, " does not hold its generation"));
}

absl::Status Walker::WalkSnapshot(const Meta& meta, Snapshot* out) {
  out->meta = &meta;
  ASHLAR_RETURN_IF_ERROR(WalkTree(meta.free, Kind::kFree, out));
  ASHLAR_RETURN_IF_ERROR(WalkTree(meta.main, Kind::kMain, out));
  ASHLAR_RETURN_IF_ERROR(CheckPages(out));
  return CheckEntries(*out);
}

absl::StatusOr<LmdbContent> Walker::Run() {
  ASHLAR_RETURN_IF_ERROR(ReadMetas());
  const size_t newest = metas_[0].transaction >= metas_[1].transaction ? 0 : 1;
  Snapshot newer, older;
  ASHLAR_RETURN_IF_ERROR(WalkSnapshot(metas_[newest], &newer));
  ASHLAR_RETURN_IF_ERROR(WalkSnapshot(metas_[1 - newest], &older));
  // What the older state uses was freed by the newer one at the earliest; said to be freed before, it would be overwritten
  // by a commit that a crash could then not undo.
  for (const auto& [page, transaction] : newer.free)
    if (transaction < metas_[newest].transaction && older.used.count(page) != 0)
      return Damage("lmdb free list", page * page_bytes_, "a page of the older state is free too early");
  LmdbContent content;
  content.entries = std::move(newer.entries);
  content.file_bytes_needed = (metas_[newest].last_page + 1) * page_bytes_;
  return content;
}

}  // namespace

absl::StatusOr<LmdbContent> WalkLmdb(const env::ReadableFile& file, const std::string& path) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Walker walker(file, path);
    absl::StatusOr<LmdbContent> content = walker.Run();
    if (walker.MetasAreUnchanged()) return content;
  }
  return Unavailable(absl::StrCat(path, ": commits pass by faster than the catalog can be read"));
}

}  // namespace ashlar::catalog
