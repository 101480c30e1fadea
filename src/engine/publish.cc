// Publication: the catalog commit, which is the one moment at which the store's durable state changes; before it new
// files are orphans, after it the old ones are. Writers go on while it runs: what they need of the committed state
// (committed_, view_) changes only when it is done, in one moment under the writer's mutex.
#include <algorithm>
#include <utility>

#include "format/deaths.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/deaths_file.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"

namespace ashlar::engine {
namespace {

// kOff writes no journal that could tell which sequences were handed out before a crash, so the catalog reserves them.
constexpr Sequence kUnjournaledReserve = Sequence{1} << 40;

// Which segment has how many deaths. At two floors of one store the same numbers mean the same deaths.
std::vector<std::pair<uint64_t, uint32_t>> DeathCounts(const std::vector<format::SegmentEntry>& segments) {
  std::vector<std::pair<uint64_t, uint32_t>> counts;
  for (const format::SegmentEntry& entry : segments)
    if (entry.dead > 0) counts.emplace_back(entry.number, entry.dead);
  return counts;
}

// Segments and their deaths as of the value's floor.
format::DeathsFile FillInSegments(const std::vector<std::shared_ptr<LiveSegment>>& segments,
                                  format::CatalogValue* value) {
  format::DeathsFile deaths;
  value->segments.clear();
  for (const std::shared_ptr<LiveSegment>& live : segments) {
    format::SegmentDeaths of_segment;
    of_segment.segment_number = live->entry().number;
    of_segment.deaths = live->DeathsUpTo(SiteIsOn(Site::kFlushDeathsToFloor) ? value->floor : UINT64_MAX);
    format::SegmentEntry entry = live->entry();
    entry.dead = static_cast<uint32_t>(of_segment.deaths.size());
    value->segments.push_back(entry);
    if (!of_segment.deaths.empty()) deaths.segments.push_back(std::move(of_segment));
  }
  std::sort(deaths.segments.begin(), deaths.segments.end(),
            [](const format::SegmentDeaths& a, const format::SegmentDeaths& b) {
              return a.segment_number < b.segment_number;
            });
  return deaths;
}

}  // namespace

Engine::Publication Engine::BeginPublication() const {
  Publication publication;
  format::CatalogValue& value = publication.value;
  value = committed_;
  ++value.generation;
  const bool reserve = options_.durability == Durability::kOff && !closing_ && SiteIsOn(Site::kOpenReservesSequences);
  value.last_sequence = next_sequence_ - 1 + (reserve ? kUnjournaledReserve : 0);
  publication.segments = view_->segments;
  return publication;
}

absl::Status Engine::WriteDeaths(format::CatalogValue* value, format::DeathsFile deaths) {
  value->deaths_number = 0;
  value->deaths_file_id = {};
  if (deaths.segments.empty()) return absl::OkStatus();
  {
    MutexLock lock(&writer_mutex_);
    value->deaths_number = NextFileNumber();
  }
  env_.entropy->Fill(deaths.file_id);
  deaths.store_id = value->store_id;
  deaths.generation = value->generation;
  value->deaths_file_id = deaths.file_id;
  const std::string name = DeathsFileName(value->deaths_number);
  absl::Status status = WriteDeathsFile(env_, Path(name), deaths).status();
  if (status.ok() && SiteIsOn(Site::kDeathsDirectorySync)) status = env_.files->SyncDirectory(directory_);
  if (!status.ok()) RemoveUnpublished(name);
  return status;
}

// A sync may have failed, or the lock been lost, while files were written.
absl::Status Engine::CheckStillWritable() {
  MutexLock lock(&writer_mutex_);
  return CheckWritable();
}

absl::Status Engine::CommitCatalog(Publication* publication, CommitMode mode) {
  format::CatalogValue* value = &publication->value;
  const uint64_t old_deaths = value->deaths_number;
  const auto old_counts = DeathCounts(value->segments);
  format::DeathsFile deaths = FillInSegments(publication->segments, value);
  if (DeathCounts(value->segments) != old_counts) ASHLAR_RETURN_IF_ERROR(WriteDeaths(value, std::move(deaths)));
  const bool deaths_are_new = value->deaths_number != old_deaths;
  {
    MutexLock lock(&writer_mutex_);
    value->next_file_number = next_file_number_;
  }
  absl::Status status = CheckStillWritable();
  if (status.ok()) {
    if (!SiteIsOn(Site::kDeathsRemovedAfterCommit) && old_deaths != 0 && deaths_are_new)
      RemoveFiles({DeathsFileName(old_deaths)});
    ForgetUnpublished();
    status = mode == CommitMode::kRewrite ? catalog_->Rewrite(*value) : catalog_->Commit(*value);
    if (!status.ok()) Fail(status, !absl::IsResourceExhausted(status)).IgnoreError();
  }
  if (!status.ok()) {
    if (deaths_are_new && value->deaths_number != 0) RemoveUnpublished(DeathsFileName(value->deaths_number));
    return status;
  }
  failure_state_.Succeeded(env_.clock->WallMs());
  if (old_deaths != 0 && deaths_are_new) RemoveFiles({DeathsFileName(old_deaths)});
  return absl::OkStatus();
}

absl::Status Engine::CommitAsItIs(CommitMode mode) {
  MutexLock catalog_lock(&catalog_mutex_);
  Publication publication;
  {
    MutexLock lock(&writer_mutex_);
    publication = BeginPublication();
  }
  ASHLAR_RETURN_IF_ERROR(CommitCatalog(&publication, mode));
  MutexLock lock(&writer_mutex_);
  TakeOver(std::move(publication), view_->frozen);
  return absl::OkStatus();
}

void Engine::TakeOver(Publication publication, std::vector<FrozenOverlay> frozen) {
  committed_ = std::move(publication.value);
  view_ = NewView(std::move(publication.segments), std::move(frozen), view_->overlay);
}

void Engine::RemoveFiles(const std::vector<std::string>& names) const {
  // What can't be removed now is an orphan that the next open removes.
  for (const std::string& name : names) env_.files->Remove(Path(name)).IgnoreError();
}

// A file whose writing or publication failed. If the outcome is unknown the catalog may name it, so it stays.
void Engine::RemoveUnpublished(const std::string& name) {
  if (failure_state_.state() == StoreState::kFailedSync) return;
  {
    MutexLock lock(&state_mutex_);
    unpublished_.push_back(name);
  }
  RemoveFiles({name});
}

// Once a commit has taken numbers beyond that of a file which failed, opening no longer takes it for ours if it is half
// written: so its removal lasts first. A failure here leaves a file that nobody reads.
void Engine::ForgetUnpublished() {
  std::vector<std::string> names;
  {
    MutexLock lock(&state_mutex_);
    if (unpublished_.empty() || !SiteIsOn(Site::kUnpublishedRemoval)) return;
    names.swap(unpublished_);
  }
  RemoveFiles(names);
  env_.files->SyncDirectory(directory_).IgnoreError();
}

}  // namespace ashlar::engine
