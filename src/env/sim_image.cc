#include "src/env/sim_image.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "src/base/check.h"
#include "src/base/checksum.h"
#include "src/base/prng.h"

namespace ashlar::env::sim {
namespace {

constexpr size_t kGraveyardFilesMax = 8;

// Calls `visit` once for each node that some name leads to or may lead to after a crash, in order
// of id.
void ForEachNode(const Image& image, const std::function<void(const NodePtr&)>& visit) {
  std::map<uint64_t, NodePtr> found;
  std::vector<NodePtr> open = {image.root};
  for (const EntryChange& change : image.pending) {
    for (const EntryChange::Entry& entry : change.entries) {
      open.push_back(entry.directory);
      if (entry.node != nullptr) open.push_back(entry.node);
    }
  }
  while (!open.empty()) {
    const NodePtr node = open.back();
    open.pop_back();
    if (!found.emplace(node->id, node).second) continue;
    for (const Entries* const entries : {&node->entries, &node->durable_entries}) {
      for (const auto& [name, child] : *entries) open.push_back(child);
    }
  }
  for (const auto& [id, node] : found) visit(node);
}

void ApplyChange(Content& content, const FileChange& change) {
  if (change.is_write) {
    content.Write(change.offset, change.bytes);
  } else {
    content.Resize(change.offset);
  }
}

// Makes the choices of a crash, in a fixed order.
class Chooser {
 public:
  Chooser(const CrashPolicy& policy, const std::vector<Content>* stale)
      : policy_(policy), stale_(stale), prng_(policy.seed) {
    // Uniform coins would make "nearly everything" and "nearly nothing" too rare to be seen.
    constexpr std::array<uint64_t, 5> kBiases = {1, 3, 8, 13, 15};
    keep_of_16_ = kBiases[prng_.Below(kBiases.size())];
    entries_in_order_ = prng_.OneIn(2);
    garbage_ = policy.garbage && prng_.OneIn(3);
  }

  // Which entry changes are kept. A journaling file system keeps a prefix, others anything that
  // makes sense.
  std::vector<bool> KeepEntries(const std::vector<EntryChange>& changes);
  Content SurvivingContent(const Node& file);

 private:
  bool Coin() { return prng_.Below(16) < keep_of_16_; }
  // The next whole change: by the policy's list, or by a coin.
  bool KeepNext() {
    const size_t index = next_++;
    if (policy_.kind == CrashPolicy::Kind::kSubset) {
      return index < policy_.keep.size() && policy_.keep[index];
    }
    return policy_.kind == CrashPolicy::Kind::kKeepAll || Coin();
  }
  Content RandomContent(const Node& file);
  Content SubsetContent(const Node& file);
  void RandomSectors(const FileChange& write, const Content& written, Content* disk);
  void Spoil(uint64_t begin, uint64_t end, Content* disk);

  const CrashPolicy& policy_;
  const std::vector<Content>* const stale_;
  Prng prng_;
  size_t next_ = 0;
  uint64_t keep_of_16_ = 8;
  bool entries_in_order_ = false;
  bool garbage_ = false;
};

std::vector<bool> Chooser::KeepEntries(const std::vector<EntryChange>& changes) {
  const bool random = policy_.kind == CrashPolicy::Kind::kRandom;
  const size_t prefix = random && entries_in_order_ ? prng_.Below(changes.size() + 1) : 0;
  std::vector<bool> keep(changes.size());
  for (size_t i = 0; i < changes.size(); ++i) {
    keep[i] = random && entries_in_order_ ? i < prefix : KeepNext();
    for (size_t j = 0; j < i && keep[i]; ++j) {
      if (keep[j]) continue;
      for (const EntryChange::Entry& entry : changes[j].entries) {
        if (changes[i].Touches(entry)) keep[i] = false;
      }
    }
  }
  return keep;
}

// Whole changes only. A change after a lost cut of the file is lost as well: its blocks are not the
// file's.
Content Chooser::SubsetContent(const Node& file) {
  Content disk = file.durable;
  Content state = file.durable;
  bool cut_lost = false;
  for (const FileChange& change : file.pending) {
    const bool cuts = !change.is_write && change.offset < state.size();
    const bool kept = KeepNext() && !cut_lost;
    cut_lost = cut_lost || (cuts && !kept);
    ApplyChange(state, change);
    if (!kept) continue;
    if (!change.is_write || change.bytes.empty()) {
      ApplyChange(disk, change);
      continue;
    }
    // Whole sectors, with what earlier writes had left in them: the cache is written back by sector
    // at least.
    const uint64_t begin = change.offset / kSimSectorBytes * kSimSectorBytes;
    const uint64_t end = change.offset + change.bytes.size();
    const uint64_t sector_end = (end + kSimSectorBytes - 1) / kSimSectorBytes * kSimSectorBytes;
    ByteBuffer sectors(static_cast<size_t>(std::min(sector_end, state.size()) - begin));
    state.Read(begin, sectors);
    disk.Write(begin, sectors);
  }
  return disk;
}

Content Chooser::RandomContent(const Node& file) {
  Content disk = file.durable;   // what the sectors hold
  Content state = file.durable;  // what the page cache held after each change
  std::vector<uint64_t> sizes = {file.durable.size()};
  size_t oldest_size = 0;
  for (const FileChange& change : file.pending) {
    if (!change.is_write) {
      const bool cuts = change.offset < state.size();
      // What follows a lost cut went into blocks that are not the file's.
      if (cuts && !Coin()) break;
      state.Resize(change.offset);
      if (cuts && disk.size() > change.offset) disk.Resize(change.offset);
      if (cuts) oldest_size = sizes.size();
    } else if (!change.bytes.empty()) {
      state.Write(change.offset, change.bytes);
      RandomSectors(change, state, &disk);
    }
    sizes.push_back(state.size());
  }
  const bool newest = prng_.OneIn(2);
  disk.Resize(newest ? sizes.back() : sizes[oldest_size + prng_.Below(sizes.size() - oldest_size)]);
  return disk;
}

void Chooser::RandomSectors(const FileChange& write, const Content& written, Content* disk) {
  const bool whole = !prng_.OneIn(3);  // else torn
  const bool keep_whole = whole && Coin();
  if (whole && !keep_whole && !garbage_) return;
  const uint64_t unit = prng_.OneIn(2) ? kSimSectorBytes : kSimPageBytes;
  const uint64_t end = write.offset + write.bytes.size();
  const bool prefix = prng_.OneIn(2);  // of a torn write; else any of its units
  bool in_prefix = true;
  ByteBuffer bytes;
  for (uint64_t at = write.offset / unit * unit; at < end; at += unit) {
    in_prefix = in_prefix && !prng_.OneIn(4);
    const bool keep = whole ? keep_whole : prefix ? in_prefix : prng_.OneIn(2);
    if (keep) {
      bytes.resize(static_cast<size_t>(std::min(unit, written.size() - at)));
      written.Read(at, bytes);
      disk->Write(at, bytes);
    } else if (garbage_ && prng_.OneIn(4)) {
      const uint64_t sector = at + prng_.Below(unit / kSimSectorBytes) * kSimSectorBytes;
      const uint64_t spoil_begin = std::max(sector, write.offset);
      const uint64_t spoil_end = std::min(sector + kSimSectorBytes, end);
      if (spoil_begin < spoil_end) Spoil(spoil_begin, spoil_end, disk);
    }
  }
}

// Noise, or what some file held at the same place of its own: old records, with checksums that fit.
void Chooser::Spoil(uint64_t begin, uint64_t end, Content* disk) {
  ByteBuffer bytes(static_cast<size_t>(end - begin));
  const Content* old = nullptr;
  if (!stale_->empty() && prng_.OneIn(2)) old = &(*stale_)[prng_.Below(stale_->size())];
  if (old != nullptr && old->size() >= end) {
    old->Read(begin, bytes);
  } else {
    for (std::byte& b : bytes) b = static_cast<std::byte>(prng_.Next());
  }
  disk->Write(begin, bytes);
}

Content Chooser::SurvivingContent(const Node& file) {
  switch (policy_.kind) {
    case CrashPolicy::Kind::kDropAll:
      return file.durable;
    case CrashPolicy::Kind::kKeepAll:
    case CrashPolicy::Kind::kSubset:
      return SubsetContent(file);
    case CrashPolicy::Kind::kRandom:
      return RandomContent(file);
  }
  return file.durable;
}

std::vector<Content> StaleContents(const Image& image) {
  std::vector<Content> stale(image.graveyard.begin(), image.graveyard.end());
  ForEachNode(image, [&stale](const NodePtr& node) {
    if (!node->is_directory) stale.push_back(node->durable);
  });
  return stale;
}

}  // namespace

void Content::Read(uint64_t offset, std::span<std::byte> out) const {
  ASHLAR_CHECK(offset <= size_ && out.size() <= size_ - offset);
  while (!out.empty()) {
    const size_t in_page = static_cast<size_t>(offset % kSimPageBytes);
    const size_t n = std::min(out.size(), kSimPageBytes - in_page);
    const auto& page = pages_[static_cast<size_t>(offset / kSimPageBytes)];
    if (page == nullptr) {
      std::fill_n(out.begin(), n, std::byte{0});
    } else {
      std::copy_n(page->begin() + static_cast<std::ptrdiff_t>(in_page), n, out.begin());
    }
    out = out.subspan(n);
    offset += n;
  }
}

void Content::Write(uint64_t offset, ByteSpan bytes) {
  if (offset + bytes.size() > size_) Resize(offset + bytes.size());
  while (!bytes.empty()) {
    const size_t in_page = static_cast<size_t>(offset % kSimPageBytes);
    const size_t n = std::min(bytes.size(), kSimPageBytes - in_page);
    auto& page = pages_[static_cast<size_t>(offset / kSimPageBytes)];
    auto changed = page == nullptr ? std::make_shared<Page>() : std::make_shared<Page>(*page);
    std::copy_n(bytes.begin(), n, changed->begin() + static_cast<std::ptrdiff_t>(in_page));
    page = std::move(changed);
    bytes = bytes.subspan(n);
    offset += n;
  }
}

void Content::Resize(uint64_t size) {
  const size_t in_page = static_cast<size_t>(size % kSimPageBytes);
  pages_.resize(static_cast<size_t>((size + kSimPageBytes - 1) / kSimPageBytes));
  // What is cut off must read as zeros when the file grows again.
  if (size < size_ && in_page != 0 && pages_.back() != nullptr) {
    auto changed = std::make_shared<Page>(*pages_.back());
    std::fill(changed->begin() + static_cast<std::ptrdiff_t>(in_page), changed->end(),
              std::byte{0});
    pages_.back() = std::move(changed);
  }
  size_ = size;
}

ByteBuffer Content::ToBuffer() const {
  ByteBuffer bytes(static_cast<size_t>(size_));
  Read(0, bytes);
  return bytes;
}

bool Content::operator==(const Content& other) const {
  return size_ == other.size_ && (pages_ == other.pages_ || ToBuffer() == other.ToBuffer());
}

bool EntryChange::Touches(const Entry& other) const {
  return std::any_of(entries.begin(), entries.end(), [&other](const Entry& entry) {
    return entry.directory == other.directory && entry.name == other.name;
  });
}

Image NewImage() {
  Image image;
  image.root = NewNode(image, true);
  return image;
}

NodePtr NewNode(Image& image, bool is_directory) {
  auto node = std::make_shared<Node>();
  node->id = image.next_id++;
  node->is_directory = is_directory;
  return node;
}

NodePtr Lookup(const Image& image, const std::vector<std::string>& parts) {
  NodePtr node = image.root;
  for (const std::string& part : parts) {
    if (!node->is_directory) return nullptr;
    const auto it = node->entries.find(part);
    if (it == node->entries.end()) return nullptr;
    node = it->second;
  }
  return node;
}

void ChangeEntries(Image& image, EntryChange change) {
  for (const EntryChange::Entry& entry : change.entries) {
    Entries& entries = entry.directory->entries;
    const auto old = entries.find(entry.name);
    if (old != entries.end() && !old->second->is_directory && old->second != entry.node) {
      image.graveyard.push_back(old->second->durable);
      if (image.graveyard.size() > kGraveyardFilesMax) image.graveyard.pop_front();
    }
    if (entry.node != nullptr) {
      entries[entry.name] = entry.node;
    } else if (old != entries.end()) {
      entries.erase(old);
    }
  }
  image.pending.push_back(std::move(change));
}

void WriteFile(Node& file, uint64_t offset, ByteSpan bytes) {
  file.mapping.reset();
  file.current.Write(offset, bytes);
  file.pending.push_back({true, offset, ByteBuffer(bytes.begin(), bytes.end())});
}

void ResizeFile(Node& file, uint64_t size) {
  file.mapping.reset();
  file.current.Resize(size);
  file.pending.push_back({false, size, {}});
}

void AbsorbPage(Node& file) {
  if (file.page == nullptr) return;
  const size_t size =
      static_cast<size_t>(std::min<uint64_t>(file.page->size(), file.current.size()));
  ByteBuffer known(size);
  file.current.Read(0, known);
  if (!std::equal(known.begin(), known.end(), file.page->begin())) {
    WriteFile(file, 0, ByteSpan(file.page->data(), size));
  }
}

void AbsorbAllPages(const Image& image) {
  ForEachNode(image, [](const NodePtr& node) { AbsorbPage(*node); });
}

void RefreshPage(Node& file) {
  if (file.page == nullptr) return;
  const uint64_t size = std::min<uint64_t>(file.page->size(), file.current.size());
  file.current.Read(0, std::span(*file.page).first(static_cast<size_t>(size)));
}

void SyncFile(Node& file) {
  for (const FileChange& change : file.pending) ApplyChange(file.durable, change);
  file.pending.clear();
}

void FailSync(Node& file, const CrashPolicy& loss) {
  const std::vector<Content> stale;
  file.durable = Chooser(loss, &stale).SurvivingContent(file);
  file.pending.clear();
}

void SyncDirectory(Image& image, const Node& directory) {
  std::vector<bool> wanted(image.pending.size());
  // From the last to the first: a change takes earlier ones of the same names with it.
  for (size_t i = image.pending.size(); i-- > 0;) {
    const auto& entries = image.pending[i].entries;
    bool want = std::any_of(entries.begin(), entries.end(), [&directory](const auto& entry) {
      return entry.directory.get() == &directory;
    });
    for (size_t j = i + 1; j < image.pending.size() && !want; ++j) {
      if (!wanted[j]) continue;
      want = std::any_of(entries.begin(), entries.end(),
                         [&](const auto& entry) { return image.pending[j].Touches(entry); });
    }
    wanted[i] = want;
  }
  std::vector<EntryChange> left;
  for (size_t i = 0; i < image.pending.size(); ++i) {
    if (!wanted[i]) {
      left.push_back(std::move(image.pending[i]));
      continue;
    }
    for (const EntryChange::Entry& entry : image.pending[i].entries) {
      if (entry.node != nullptr) {
        entry.directory->durable_entries[entry.name] = entry.node;
      } else {
        entry.directory->durable_entries.erase(entry.name);
      }
    }
  }
  image.pending = std::move(left);
}

size_t PendingCount(const Image& image) {
  size_t count = image.pending.size();
  ForEachNode(image, [&count](const NodePtr& node) { count += node->pending.size(); });
  return count;
}

Image Survivors(const Image& image, const CrashPolicy& policy) {
  const std::vector<Content> stale = policy.kind == CrashPolicy::Kind::kRandom && policy.garbage
                                         ? StaleContents(image)
                                         : std::vector<Content>();
  Chooser chooser(policy, &stale);
  const std::vector<bool> keep = policy.kind == CrashPolicy::Kind::kDropAll
                                     ? std::vector<bool>(image.pending.size())
                                     : chooser.KeepEntries(image.pending);
  Image after;
  after.next_id = image.next_id;
  after.graveyard = image.graveyard;
  std::map<const Node*, NodePtr> copies;  // every node, also those that no name leads to any more
  ForEachNode(image, [&](const NodePtr& node) {
    auto copy = std::make_shared<Node>();
    copy->id = node->id;
    copy->is_directory = node->is_directory;
    if (!node->is_directory) {
      copy->durable = chooser.SurvivingContent(*node);
      copy->current = copy->durable;
    }
    copies.emplace(node.get(), std::move(copy));
  });
  for (const auto& [node, copy] : copies) {
    for (const auto& [name, child] : node->durable_entries)
      copy->durable_entries[name] = copies.at(child.get());
  }
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    for (const EntryChange::Entry& entry : image.pending[i].entries) {
      Entries& entries = copies.at(entry.directory.get())->durable_entries;
      if (entry.node != nullptr) {
        entries[entry.name] = copies.at(entry.node.get());
      } else {
        entries.erase(entry.name);
      }
    }
  }
  for (const auto& [node, copy] : copies) copy->entries = copy->durable_entries;
  after.root = copies.at(image.root.get());
  return after;
}

uint64_t HashDurable(const Image& image) {
  uint64_t hash = 0;
  const std::function<void(const Node&)> add = [&](const Node& node) {
    hash = Checksum({}, hash + (node.is_directory ? 1 : 2));
    if (!node.is_directory) {
      const ByteBuffer bytes = node.durable.ToBuffer();
      hash = Checksum(bytes, hash + bytes.size());
    }
    for (const auto& [name, child] : node.durable_entries) {
      hash = Checksum(AsBytes(name), hash);
      add(*child);
    }
    hash = Checksum({}, hash + 3);
  };
  add(*image.root);
  return hash;
}

uint64_t UsedBytes(const Image& image) {
  uint64_t used = 0;
  std::vector<const Node*> open = {image.root.get()};
  std::set<const Node*> counted;  // a file may have several names
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!counted.insert(node).second) continue;
    used += node->current.size();
    for (const auto& [name, child] : node->entries) open.push_back(child.get());
  }
  return used;
}

}  // namespace ashlar::env::sim
