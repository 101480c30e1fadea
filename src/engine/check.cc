// Check: everything is read and compared with everything that depends on it. First each file for itself; what concerns
// several is compared only where the files are whole, so that one damage is not told many times.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/deaths.h"
#include "src/base/status.h"
#include "src/engine/document_check.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/engine/finding.h"
#include "src/engine/read_view.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

constexpr size_t kFindingsOfAKindMax = 100;

// Compares the parts of a snapshot with each other.
class CrossCheck {
 public:
  CrossCheck(const SnapshotState& snapshot, std::string directory, std::string deaths_path)
      : view_(snapshot.view()),
        cell_(snapshot.cell()),
        snapshot_(snapshot),
        directory_(std::move(directory)),
        deaths_path_(std::move(deaths_path)) {}

  std::vector<absl::Status> Run() {
    Deaths();
    Documents();
    Keys();
    Lengths();
    return std::move(findings_);
  }

 private:
  void Add(absl::Status status) {
    if (!status.ok() && findings_.size() < kFindingsOfAKindMax) findings_.push_back(std::move(status));
  }
  // About no file in particular.
  void AddStatistics(std::string_view message) { Add(DataLoss(directory_, "statistics", 0, message)); }

  // A document dies after it was put, and not after the snapshot's sequence was reached.
  void Deaths() {
    for (const std::shared_ptr<LiveSegment>& live : view_.segments) {
      if (live->segment().last_id() > cell_.sequence)
        Add(DataLoss(live->segment().path(), "meta", 0,
                     absl::StrCat("DocumentId ", live->segment().last_id(), " is beyond the store's sequence ",
                                  cell_.sequence)));
      for (const format::Death& death : live->DeathsUpTo(cell_.sequence)) {
        const absl::StatusOr<DocumentId> id = live->segment().IdOf(death.ordinal);
        if (!id.ok()) {
          Add(id.status());
        } else if (death.sequence <= *id) {
          Add(DataLoss(deaths_path_, "deaths", 0,
                       absl::StrCat("document ", *id, " of segment ", live->entry().number, " died at ", death.sequence,
                                    ", before it was put")));
        }
      }
    }
  }

  void Documents() {
    uint64_t live_documents = 0;
    for (const std::shared_ptr<LiveSegment>& live : view_.segments)
      live_documents += live->document_count() - live->DeathsUpTo(cell_.sequence).size();
    for (size_t i = 0; i < snapshot_.overlay_count(); ++i) {
      const OverlaySource overlay = Overlay(i);
      for (uint32_t ordinal = 0; ordinal < overlay.document_count(); ++ordinal)
        live_documents += overlay.IsDead(ordinal) ? 0 : 1;
    }
    if (live_documents != cell_.live_documents)
      AddStatistics(absl::StrCat("the segments and the overlay have ", live_documents,
                                 " live documents, the statistics say ", cell_.live_documents));
  }

  // At any snapshot a key has at most one live document.
  void Keys() {
    if (view_.schema->key.empty()) return;
    std::string last;
    uint64_t count = 0;
    Add(VisitKeys(snapshot_, {}, [&](std::string_view key, Handle handle) -> absl::StatusOr<bool> {
      if (count > 0 && key == last) Add(TwoDocuments(last, handle));
      last.assign(key);
      ++count;
      return true;
    }));
  }

  absl::Status TwoDocuments(const std::string& key, Handle handle) const {
    const std::string file = handle.source < view_.segments.size()
                                 ? view_.segments[handle.source]->segment().path()
                                 : directory_;
    const absl::StatusOr<DocumentId> id = ReadId(snapshot_, handle);
    return DataLoss(file, "keys", 0,
                    absl::StrCat("key '", key, "' has two live documents; one of them is ", id.ok() ? *id : 0));
  }

  // The statistics that scores depend on, counted again.
  void Lengths() {
    const Schema& schema = *view_.schema;
    for (size_t at = 0; at < cell_.length_sums.size(); ++at) {
      const bool group = at == schema.fields.size();
      const format::IndexId index = group ? format::kGroupIndex : static_cast<format::IndexId>(at);
      const absl::StatusOr<uint64_t> sum = LengthSum(index);
      if (!sum.ok()) {
        Add(sum.status());
      } else if (*sum != cell_.length_sums[at] && cell_.length_sums[at] + *sum != 0) {
        AddStatistics(absl::StrCat(group ? "the group" : absl::StrCat("field '", schema.fields[at].name, "'"),
                                   ": the live lengths sum to ", *sum, ", the statistics say ",
                                   cell_.length_sums[at]));
      }
    }
  }

  OverlaySource Overlay(size_t i) const {
    return OverlaySource(snapshot_.overlay(i), snapshot_.overlay_documents(i), view_.bases[view_.segments.size() + i],
                         cell_.sequence);
  }

  absl::StatusOr<uint64_t> LengthSum(format::IndexId index) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < view_.segments.size(); ++i) {
      const LiveSegment& live = *view_.segments[i];
      ASHLAR_ASSIGN_OR_RETURN(const segment::LengthReader lengths, live.segment().Lengths(index));
      const SegmentSource source(live, view_.bases[i], cell_.sequence);
      for (uint32_t ordinal = 0; ordinal < live.document_count(); ++ordinal)
        if (!source.IsDead(ordinal)) sum += lengths[ordinal];
    }
    for (size_t i = 0; i < snapshot_.overlay_count(); ++i) {
      const OverlaySource overlay = Overlay(i);
      for (uint32_t ordinal = 0; ordinal < overlay.document_count(); ++ordinal)
        if (!overlay.IsDead(ordinal)) sum += snapshot_.overlay(i).Length(index, ordinal);
    }
    return sum;
  }

  const View& view_;
  const Cell& cell_;
  const SnapshotState& snapshot_;
  const std::string directory_, deaths_path_;
  std::vector<absl::Status> findings_;
};

}  // namespace

std::vector<absl::Status> Engine::CheckCommitted() const {
  std::vector<absl::Status> findings;
  const absl::StatusOr<std::vector<absl::Status>> catalog = catalog_->Check();
  if (catalog.ok()) {
    findings = *catalog;
  } else {
    findings.push_back(catalog.status());
  }
  if (committed_.deaths_number != 0) {
    const std::string path = Path(DeathsFileName(committed_.deaths_number));
    const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, path);
    const absl::StatusOr<format::DeathsFile> deaths =
        bytes.ok() ? format::DecodeDeaths(*bytes, path) : bytes.status();
    if (!deaths.ok()) {
      findings.push_back(deaths.status());
    } else if (deaths->file_id != committed_.deaths_file_id) {
      findings.push_back(DataLoss(path, "header", 24, "not the deaths file that the catalog names"));
    }
  }
  // What was replayed was verified then; what this writer appended is read here.
  if (journal_ != nullptr && !journal_->broken()) {
    journal::ReplayOptions options;
    options.store_id = committed_.store_id;
    options.first_number = committed_.journal_number;
    options.floor = UINT64_MAX;
    options.catalog_generation = committed_.generation;
    options.limit = journal_->end();
    const absl::Status replayed =
        journal::Replay(env_, directory_, options, [](const journal::Record&) { return absl::OkStatus(); }).status();
    if (!replayed.ok()) findings.push_back(replayed);
  }
  return findings;
}

// Zeros are a page that power loss took before it ever reached the disk.
bool Engine::StatusPageSaysSomething() const {
  const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, Path(journal::kStatusFileName));
  return bytes.ok() && std::any_of(bytes->begin(), bytes->end(), [](std::byte b) { return b != std::byte{0}; });
}

// What is not ours is a note, never damage. A writer in another process may be making or removing files at this moment.
absl::StatusOr<std::vector<std::string>> Engine::Strangers(const View& view, const KnownFiles& known) const {
  bool writer_lives = false;
  if (options_.read_only) {
    ASHLAR_ASSIGN_OR_RETURN(writer_lives, env_.files->IsLocked(Path(kLockFileName)));
  }
  std::vector<std::string> strangers;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, env_.files->List(directory_));
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    bool ours = entry.name == kLockFileName || entry.name == journal::kStatusFileName ||
                catalog::IsCatalogFile(entry.name) || journal::NumberOf(entry.name).has_value() ||
                journal::IsSpareFileName(entry.name) || entry.name == journal::kNewFileName ||
                entry.name == journal::kNextFileName;
    if (const uint64_t number = segment::NumberOf(entry.name); number != 0)
      for (const std::shared_ptr<LiveSegment>& live : view.segments) ours |= live->entry().number == number;
    if (const uint64_t number = DeathsNumberOf(entry.name); number != 0) ours |= number == known.deaths_number;
    if (!options_.read_only && std::max(segment::NumberOf(entry.name), DeathsNumberOf(entry.name)) != 0) {
      const uint64_t number = std::max(segment::NumberOf(entry.name), DeathsNumberOf(entry.name));
      ours |= number == known.flush_number || number >= known.next_file_number;
    }
    if (writer_lives && (segment::NumberOf(entry.name) != 0 || DeathsNumberOf(entry.name) != 0)) continue;
    if (!ours || !entry.is_file) strangers.push_back(Path(entry.name));
  }
  return strangers;
}

absl::StatusOr<std::vector<Finding>> Engine::Check(bool segments, const CheckProgress& progress) const {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  std::vector<absl::Status> findings;
  std::vector<Finding> result;
  KnownFiles known;
  {
    MutexLock catalog_lock(&catalog_mutex_);
    MutexLock lock(&writer_mutex_);
    if (closed_) return FailedPrecondition("the store is closed");
    known = {committed_.deaths_number, flush_number_, next_file_number_};
    findings = CheckCommitted();
    if (!LoadStatus().has_value() && StatusPageSaysSomething())
      result.push_back({Finding::Kind::kNote, Path(journal::kStatusFileName), "status", 0,
                        Path(journal::kStatusFileName) +
                            " can't be read, so it proves nothing; the next writer makes it anew"});
  }
  const std::shared_ptr<const SnapshotState> snapshot = TakeSnapshot();
  uint64_t done = 0, all = 0;
  for (const std::shared_ptr<LiveSegment>& live : snapshot->view().segments) all += live->entry().file_bytes;
  for (const std::shared_ptr<LiveSegment>& live : snapshot->view().segments) {
    if (!segments) break;
    std::vector<absl::Status> of_segment = live->segment().Check();
    if (absl::Status lost = live->CheckIntact(); of_segment.empty() && !lost.ok()) of_segment.push_back(std::move(lost));
    for (const absl::Status& finding : of_segment) live->Note(finding);
    findings.insert(findings.end(), of_segment.begin(), of_segment.end());
    if (of_segment.empty()) {
      if (absl::Status status = CheckDocuments(live->segment()); !status.ok()) findings.push_back(std::move(status));
    }
    done += live->entry().file_bytes;
    if (progress) progress(done, all);
  }
  if (findings.empty())
    findings =
        CrossCheck(*snapshot, directory_,
                   known.deaths_number != 0 ? Path(DeathsFileName(known.deaths_number)) : directory_)
            .Run();
  for (const absl::Status& status : findings) result.push_back(FindingOf(status));
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<std::string> strangers, Strangers(snapshot->view(), known));
  for (const std::string& path : strangers)
    result.push_back({Finding::Kind::kNote, path, "", 0, path + " is not a file of this store"});
  return result;
}

}  // namespace ashlar::engine
