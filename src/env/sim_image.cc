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

// How many versions of a shared page may wait: the kernel writes one back whenever it likes, and a
// page that is never synced would else pile them up.
constexpr size_t kPageVersionsMax = 3;

// All nodes that some name leads to or may lead to after a crash, in order of id; Node::index is
// their place in it.
std::vector<NodePtr> AllNodes(const Image& image) {
  const uint64_t walk = ++image.walks;
  std::vector<NodePtr> found;
  const auto add = [&found, walk](const NodePtr& node) {
    if (node == nullptr || node->walk == walk) return;
    node->walk = walk;
    found.push_back(node);
  };
  add(image.root);
  for (const EntryChange& change : image.pending) {
    for (const EntryChange::Entry& entry : change.entries) {
      add(entry.directory);
      add(entry.node);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const NodePtr node = found[i];
    for (const Entries* const entries : {&node->entries, &node->durable_entries}) {
      for (const auto& [name, child] : *entries) add(child);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const NodePtr& a, const NodePtr& b) { return a->id < b->id; });
  for (size_t i = 0; i < found.size(); ++i) found[i]->index = i;
  return found;
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
  Chooser(const CrashPolicy& policy, const std::vector<const Content*>* stale)
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
  Fate NextFate() {
    const size_t index = next_++;
    return index < policy_.fates.size() ? policy_.fates[index] : Fate{};
  }
  // The next whole change: by the policy's list, or by a coin.
  bool KeepNext() {
    if (policy_.kind == CrashPolicy::Kind::kFates) return NextFate().kind != Fate::Kind::kLost;
    const size_t index = next_++;
    if (policy_.kind == CrashPolicy::Kind::kSubset) {
      return index < policy_.keep.size() && policy_.keep[index];
    }
    return policy_.kind == CrashPolicy::Kind::kKeepAll || Coin();
  }
  Content RandomContent(const Node& file);
  Content SubsetContent(const Node& file);
  Content FatedContent(const Node& file);
  void FatedWrite(const Fate& fate, const FileChange& write, const Content& written, Content* disk);
  void RandomSectors(const FileChange& write, const Content& written, Content* disk);
  void Spoil(uint64_t begin, uint64_t end, bool old_bytes, Content* disk);

  const CrashPolicy& policy_;
  const std::vector<const Content*>* const stale_;
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
      if (spoil_begin < spoil_end) Spoil(spoil_begin, spoil_end, prng_.OneIn(2), disk);
    }
  }
}

// Noise, or what some file held at the same place of its own: old records, with checksums that fit.
void Chooser::Spoil(uint64_t begin, uint64_t end, bool old_bytes, Content* disk) {
  ByteBuffer bytes(static_cast<size_t>(end - begin));
  const Content* old = nullptr;
  if (old_bytes && !stale_->empty()) old = (*stale_)[prng_.Below(stale_->size())];
  if (old != nullptr && old->size() >= end) {
    old->Read(begin, bytes);
  } else {
    for (std::byte& b : bytes) b = static_cast<std::byte>(prng_.Next());
  }
  disk->Write(begin, bytes);
}

Content Chooser::FatedContent(const Node& file) {
  Content disk = file.durable;
  Content state = file.durable;
  bool cut_lost = false;
  for (const FileChange& change : file.pending) {
    const bool cuts = !change.is_write && change.offset < state.size();
    const Fate fate = NextFate();
    const bool lost = cut_lost || fate.kind == Fate::Kind::kLost;
    cut_lost = cut_lost || (cuts && lost);
    ApplyChange(state, change);
    if (lost) continue;
    if (!change.is_write || change.bytes.empty()) {
      ApplyChange(disk, change);
    } else {
      FatedWrite(fate, change, state, &disk);
    }
  }
  return disk;
}

void Chooser::FatedWrite(const Fate& fate, const FileChange& write, const Content& written,
                         Content* disk) {
  const uint64_t unit = std::max<uint64_t>(fate.unit_bytes, kSimSectorBytes);
  const uint64_t begin = write.offset / unit * unit;
  const uint64_t end = write.offset + write.bytes.size();
  if (fate.kind == Fate::Kind::kExtended || fate.kind == Fate::Kind::kExtendedStale) {
    const uint64_t old_size = disk->size();
    if (end <= old_size) return;
    disk->Resize(end);
    if (fate.kind == Fate::Kind::kExtendedStale) Spoil(old_size, end, true, disk);
    return;
  }
  const uint64_t units_end = std::min((end + unit - 1) / unit * unit, written.size());
  uint64_t from = begin;
  uint64_t to = units_end;
  if (fate.kind == Fate::Kind::kTornFront) to = std::min(to, begin + fate.unit * unit);
  if (fate.kind == Fate::Kind::kTornBack) from = std::min(to, begin + fate.unit * unit);
  if (from < to) {
    ByteBuffer bytes(static_cast<size_t>(to - from));
    written.Read(from, bytes);
    disk->Write(from, bytes);
  }
  if (fate.kind != Fate::Kind::kGarbage && fate.kind != Fate::Kind::kStale) return;
  const uint64_t spoil_begin = std::max(begin + fate.unit * unit, write.offset);
  const uint64_t spoil_end = std::min(begin + (fate.unit + 1) * unit, end);
  if (spoil_begin < spoil_end) {
    Spoil(spoil_begin, spoil_end, fate.kind == Fate::Kind::kStale, disk);
  }
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
    case CrashPolicy::Kind::kFates:
      return FatedContent(file);
  }
  return file.durable;
}

std::vector<const Content*> StaleContents(const Image& image, const std::vector<NodePtr>& nodes) {
  std::vector<const Content*> stale;
  for (const auto& content : image.graveyard) stale.push_back(content.get());
  for (const NodePtr& node : nodes) {
    if (!node->is_directory) stale.push_back(&node->durable);
  }
  return stale;
}

bool IsZero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
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
      std::copy_n(page->bytes.begin() + static_cast<std::ptrdiff_t>(in_page), n, out.begin());
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
    // Files are filled with zeros in advance: those pages cost nothing.
    if ((page == nullptr || n == kSimPageBytes) && IsZero(bytes.first(n))) {
      page = nullptr;
    } else {
      auto changed = page == nullptr || n == kSimPageBytes ? std::make_shared<Page>()
                                                           : std::make_shared<Page>(*page);
      std::copy_n(bytes.begin(), n, changed->bytes.begin() + static_cast<std::ptrdiff_t>(in_page));
      page = std::move(changed);
    }
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
    std::fill(changed->bytes.begin() + static_cast<std::ptrdiff_t>(in_page), changed->bytes.end(),
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

uint64_t Content::Page::Hash() const {
  uint64_t known = hash.load(std::memory_order_relaxed);
  if (known == 0) {
    known = Checksum(bytes, 0) | 1;
    hash.store(known, std::memory_order_relaxed);
  }
  return known;
}

uint64_t Content::Hash(uint64_t seed) const {
  static const uint64_t zero_hash = Page().Hash();
  uint64_t result = seed ^ (size_ * 0x9E3779B97F4A7C15ull);
  for (const auto& page : pages_) {
    result = (result ^ (page == nullptr ? zero_hash : page->Hash())) * 0xD6E8FEB86659FD93ull;
    result ^= result >> 32;
  }
  return result;
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
      image.graveyard.push_back(std::make_shared<const Content>(old->second->durable));
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
  file.pending.push_back({true, offset, ByteBuffer(bytes.begin(), bytes.end()), false});
}

void ResizeFile(Node& file, uint64_t size) {
  file.mapping.reset();
  file.current.Resize(size);
  file.pending.push_back({false, size, {}, false});
}

void AbsorbPage(Node& file) {
  if (file.page == nullptr) return;
  const size_t size =
      static_cast<size_t>(std::min<uint64_t>(file.page->size(), file.current.size()));
  ByteBuffer known(size);
  file.current.Read(0, known);
  if (!std::equal(known.begin(), known.end(), file.page->begin())) {
    WriteFile(file, 0, ByteSpan(file.page->data(), size));
    file.pending.back().from_page = true;
    const auto is_version = [](const FileChange& change) { return change.from_page; };
    if (static_cast<size_t>(std::count_if(file.pending.begin(), file.pending.end(), is_version)) >
        kPageVersionsMax) {
      file.pending.erase(std::find_if(file.pending.begin(), file.pending.end(), is_version));
    }
  }
}

void AbsorbAllPages(const Image& image) {
  for (const NodePtr& node : AllNodes(image)) AbsorbPage(*node);
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
  const std::vector<const Content*> stale;
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
  for (const NodePtr& node : AllNodes(image)) count += node->pending.size();
  return count;
}

Image Survivors(const Image& image, const CrashPolicy& policy) {
  const std::vector<NodePtr> nodes = AllNodes(image);
  const bool spoils = (policy.kind == CrashPolicy::Kind::kRandom && policy.garbage) ||
                      policy.kind == CrashPolicy::Kind::kFates;
  const std::vector<const Content*> stale =
      spoils ? StaleContents(image, nodes) : std::vector<const Content*>();
  Chooser chooser(policy, &stale);
  const std::vector<bool> keep = policy.kind == CrashPolicy::Kind::kDropAll
                                     ? std::vector<bool>(image.pending.size())
                                     : chooser.KeepEntries(image.pending);
  Image after;
  after.next_id = image.next_id;
  after.graveyard = image.graveyard;
  std::vector<NodePtr> copies;  // of every node, also of those that no name leads to any more
  copies.reserve(nodes.size());
  for (const NodePtr& node : nodes) {
    auto copy = std::make_shared<Node>();
    copy->id = node->id;
    copy->is_directory = node->is_directory;
    if (!node->is_directory) {
      copy->durable = chooser.SurvivingContent(*node);
      copy->current = copy->durable;
    }
    copies.push_back(std::move(copy));
  }
  for (const NodePtr& node : nodes) {
    for (const auto& [name, child] : node->durable_entries) {
      copies[node->index]->durable_entries[name] = copies[child->index];
    }
  }
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    for (const EntryChange::Entry& entry : image.pending[i].entries) {
      Entries& entries = copies[entry.directory->index]->durable_entries;
      if (entry.node != nullptr) {
        entries[entry.name] = copies[entry.node->index];
      } else {
        entries.erase(entry.name);
      }
    }
  }
  for (const NodePtr& copy : copies) copy->entries = copy->durable_entries;
  after.root = copies[image.root->index];
  return after;
}

namespace {

constexpr size_t kAllSubsetsOf = 5;  // changes: 32 subsets
constexpr uint64_t kEndUnits = 4;    // of a long write, at its front and at its back

// Fills `out` up to its bound without repeating a list of fates.
class Enumeration {
 public:
  Enumeration(std::vector<const FileChange*> changes, size_t policies_max,
              std::vector<CrashPolicy>* out)
      : changes_(std::move(changes)), policies_max_(policies_max), out_(*out) {}

  void Subsets();
  void Fronts();
  void Singles();
  void Writes();

 private:
  std::vector<Fate> All(Fate::Kind kind) const {
    return std::vector<Fate>(changes_.size(), Fate{kind, 0, kSimSectorBytes});
  }
  void Add(std::vector<Fate> fates) {
    if (out_.size() >= policies_max_) return;
    const auto is_same = [&fates](const CrashPolicy& policy) { return policy.fates == fates; };
    if (std::any_of(out_.begin(), out_.end(), is_same)) return;
    out_.push_back(CrashPolicy::Fates(std::move(fates), out_.size()));
  }
  // One change by `fate`, those before it kept, those after it kept or lost.
  void AddOne(size_t change, const Fate& fate, bool keep_later) {
    std::vector<Fate> fates = All(Fate::Kind::kKept);
    fates[change] = fate;
    if (!keep_later) fates.resize(change + 1);
    Add(std::move(fates));
  }

  const std::vector<const FileChange*> changes_;  // null: of entries
  const size_t policies_max_;
  std::vector<CrashPolicy>& out_;
};

void Enumeration::Subsets() {
  for (uint64_t mask = 1; mask + 1 < uint64_t{1} << changes_.size(); ++mask) {
    std::vector<Fate> fates = All(Fate::Kind::kLost);
    for (size_t i = 0; i < fates.size(); ++i) {
      if ((mask >> i & 1) != 0) fates[i].kind = Fate::Kind::kKept;
    }
    Add(std::move(fates));
  }
}

void Enumeration::Fronts() {
  for (size_t i = changes_.size(); i-- > 1;) {
    std::vector<Fate> front = All(Fate::Kind::kKept);
    std::vector<Fate> back = front;
    front.resize(i);
    std::fill_n(back.begin(), i, Fate{});
    Add(std::move(front));
    Add(std::move(back));
  }
}

void Enumeration::Singles() {
  for (size_t i = changes_.size(); i-- > 0;) {
    std::vector<Fate> lost = All(Fate::Kind::kKept);
    lost[i] = Fate{};
    Add(std::move(lost));
    std::vector<Fate> kept = All(Fate::Kind::kLost);
    kept[i].kind = Fate::Kind::kKept;
    Add(std::move(kept));
  }
}

void Enumeration::Writes() {
  for (size_t i = changes_.size(); i-- > 0;) {
    const FileChange* const write = changes_[i];
    if (write == nullptr || !write->is_write || write->bytes.empty()) continue;
    const uint64_t end = write->offset + write->bytes.size();
    for (const size_t unit_bytes : {kSimSectorBytes, kSimPageBytes}) {
      const uint64_t begin = write->offset / unit_bytes * unit_bytes;
      const uint64_t units = (end - begin + unit_bytes - 1) / unit_bytes;
      if (units == 1 && unit_bytes != kSimSectorBytes) continue;
      for (uint64_t unit = 0; unit < units; ++unit) {
        if (unit >= kEndUnits && unit + kEndUnits < units) continue;
        const auto fate = [unit, unit_bytes](Fate::Kind kind) {
          return Fate{kind, static_cast<uint32_t>(unit), static_cast<uint32_t>(unit_bytes)};
        };
        if (unit > 0) {
          AddOne(i, fate(Fate::Kind::kTornFront), false);
          AddOne(i, fate(Fate::Kind::kTornFront), true);
          AddOne(i, fate(Fate::Kind::kTornBack), true);
        }
        AddOne(i, fate(Fate::Kind::kGarbage), false);
        AddOne(i, fate(Fate::Kind::kStale), true);
      }
    }
    AddOne(i, Fate{Fate::Kind::kExtended, 0, kSimSectorBytes}, true);
    AddOne(i, Fate{Fate::Kind::kExtended, 0, kSimSectorBytes}, false);
    AddOne(i, Fate{Fate::Kind::kExtendedStale, 0, kSimSectorBytes}, false);
  }
}

}  // namespace

std::vector<CrashPolicy> EnumerateCrashes(const Image& image, size_t policies_max) {
  std::vector<CrashPolicy> policies = {CrashPolicy::DropAll()};
  const std::vector<NodePtr> nodes = AllNodes(image);
  std::vector<const FileChange*> changes(image.pending.size(), nullptr);
  for (const NodePtr& node : nodes) {
    for (const FileChange& change : node->pending) changes.push_back(&change);
  }
  if (changes.empty()) return policies;
  policies.push_back(CrashPolicy::KeepAll());
  Enumeration enumeration(changes, policies_max, &policies);
  if (changes.size() <= kAllSubsetsOf) {
    enumeration.Subsets();
  } else {
    enumeration.Fronts();
    enumeration.Singles();
  }
  enumeration.Writes();
  return policies;
}

uint64_t HashDurable(const Image& image) {
  uint64_t hash = 0;
  const std::function<void(const Node&)> add = [&](const Node& node) {
    hash = Checksum({}, hash + (node.is_directory ? 1 : 2));
    if (!node.is_directory) hash = node.durable.Hash(hash);
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

namespace ashlar::env {

std::string CrashPolicyText(const CrashPolicy& policy) {
  switch (policy.kind) {
    case CrashPolicy::Kind::kKeepAll:
      return "keep all";
    case CrashPolicy::Kind::kDropAll:
      return "drop all";
    case CrashPolicy::Kind::kRandom:
      return "random " + std::to_string(policy.seed);
    case CrashPolicy::Kind::kSubset: {
      std::string text = "subset ";
      for (const bool keep : policy.keep) text += keep ? 'K' : 'L';
      return text;
    }
    case CrashPolicy::Kind::kFates:
      break;
  }
  std::string text = "fates ";
  for (const Fate& fate : policy.fates) {
    text += "LKFBGOZS"[static_cast<size_t>(fate.kind)];
    if (fate.kind < Fate::Kind::kTornFront || fate.kind > Fate::Kind::kStale) continue;
    text += std::to_string(fate.unit);
    if (fate.unit_bytes == kSimPageBytes) text += 'P';
  }
  return text;
}

}  // namespace ashlar::env
