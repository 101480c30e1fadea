// Merge: keeps segments few. Size-tiered over adjacent runs: a segment's tier is the power of merge_factor that its
// bytes reach, and when the youngest `merge_factor` segments are of one tier or lower they become one. A segment of
// which more than half is dead is rewritten alone. Quarantined segments are left alone, and runs end at them.
//
// Writers and readers go on while documents are copied. Only documents that died up to the floor are dropped: of later
// deaths the journal's tail may be lost, and then they never were. Documents that die later die in the copy, too
// (death_relay.h).
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/death_relay.h"
#include "src/engine/engine.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

constexpr uint64_t kSmallestTierBytes = uint64_t{1} << 20;

// Closing waits for a merge of so much at most: about a tenth of a second.
constexpr uint64_t kEndsAtCloseBytes = uint64_t{8} << 20;

constexpr uint64_t kPauseNs = 1'000'000'000;  // somebody wakes it sooner

// A merge takes a number so far beyond those of the files that flushes make meanwhile: a commit for one of those then
// gives out no number beyond the merge's, whose file is half written and would, after a crash, not be taken for ours.
constexpr uint64_t kNumbersBeyond = uint64_t{1} << 16;

int TierOf(uint64_t bytes, uint32_t merge_factor) {
  int tier = 0;
  for (uint64_t limit = kSmallestTierBytes; bytes > limit && tier < 30; limit *= merge_factor) ++tier;
  return tier;
}

struct Range {
  size_t first = 0;
  size_t count = 0;  // 0: nothing is due
};

// `dead_at`: deaths up to there count.
Range NextMerge(const std::vector<std::shared_ptr<LiveSegment>>& segments, uint32_t merge_factor, Sequence dead_at) {
  std::vector<int> tiers;
  for (const std::shared_ptr<LiveSegment>& live : segments)
    tiers.push_back(TierOf(live->entry().file_bytes, merge_factor));
  for (int tier = 0; tier <= 30; ++tier) {
    // The longest run of neighbours at or below this tier.
    Range best;
    for (size_t i = 0; i < tiers.size();) {
      size_t end = i;
      while (end < tiers.size() && tiers[end] <= tier && !segments[end]->damaged()) ++end;
      if (end - i > best.count) best = {i, end - i};
      i = std::max(end, i + 1);
    }
    if (best.count >= merge_factor) return best;
  }
  for (size_t i = 0; i < segments.size(); ++i)
    if (!segments[i]->damaged() && segments[i]->death_count() * uint64_t{2} > segments[i]->document_count() &&
        segments[i]->DeathCountUpTo(dead_at) * uint64_t{2} > segments[i]->document_count())
      return {i, 1};
  return {};
}

// The neighbours whose merge brings the count nearest to `segments_max`, and the cheapest of those; count 0: none are
// left that may be merged.
Range NextMergeTo(const std::vector<std::shared_ptr<LiveSegment>>& segments, size_t segments_max) {
  for (size_t count = segments.size() - segments_max + 1; count >= 2; --count) {
    Range best;
    uint64_t best_bytes = UINT64_MAX;
    for (size_t first = 0; first + count <= segments.size(); ++first) {
      uint64_t bytes = 0;
      bool damaged = false;
      for (size_t i = first; i < first + count; ++i) {
        bytes += segments[i]->entry().file_bytes;
        damaged |= segments[i]->damaged();
      }
      if (damaged || bytes >= best_bytes) continue;
      best_bytes = bytes;
      best = {first, count};
    }
    if (best.count > 0) return best;
  }
  return {};
}

std::vector<std::shared_ptr<LiveSegment>> Cut(const std::vector<std::shared_ptr<LiveSegment>>& segments, Range range) {
  const auto first = segments.begin() + static_cast<ptrdiff_t>(range.first);
  return {first, first + static_cast<ptrdiff_t>(range.count)};
}

uint64_t BytesOf(const std::vector<std::shared_ptr<LiveSegment>>& segments) {
  uint64_t bytes = 0;
  for (const std::shared_ptr<LiveSegment>& live : segments) bytes += live->entry().file_bytes;
  return bytes;
}

// Those without a document that was put after `last`.
std::vector<std::shared_ptr<LiveSegment>> UpTo(std::vector<std::shared_ptr<LiveSegment>> segments, Sequence last) {
  std::erase_if(segments, [last](const std::shared_ptr<LiveSegment>& live) { return live->entry().last_id > last; });
  return segments;
}

// Puts `merged`, null if nothing is alive, in the place of the inputs, which are neighbours there. False: they are not.
bool Replace(const std::vector<std::shared_ptr<LiveSegment>>& inputs, const std::shared_ptr<LiveSegment>& merged,
             std::vector<std::shared_ptr<LiveSegment>>* segments) {
  const auto first = std::search(segments->begin(), segments->end(), inputs.begin(), inputs.end());
  if (first == segments->end()) return false;
  const auto place = segments->erase(first, first + static_cast<ptrdiff_t>(inputs.size()));
  if (merged != nullptr) segments->insert(place, merged);
  return true;
}

}  // namespace

Sequence Engine::CommittedFloor() const {
  MutexLock lock(&writer_mutex_);
  return committed_.floor;
}

Engine::MergeJob Engine::BeginMerge(Segments inputs, MergeKind kind) {
  MergeJob job;
  job.inputs = std::move(inputs);
  job.asked = kind != MergeKind::kDue;
  job.spec.fresh_dictionaries = kind == MergeKind::kPurge;
  job.begun_ns = env_.clock->MonotonicNs();
  MutexLock lock(&writer_mutex_);
  job.floor = committed_.floor;
  job.spec.number = NextFileNumber() + (SiteIsOn(Site::kMergeNumberBeyond) ? kNumbersBeyond : 0);
  job.spec.store_id = committed_.store_id;
  job.spec.schema = committed_.schema;
  job.spec.schema_number = committed_.schema_number;
  job.spec.generation = committed_.generation;
  return job;
}

// Refuses before a byte is written what would fill the disk and then fail: the output has about the inputs' live share.
absl::Status Engine::CheckRoomForMerge(const MergeJob& job) const {
  uint64_t bytes = 0;
  for (const std::shared_ptr<LiveSegment>& live : job.inputs) {
    const double share = 1 - static_cast<double>(live->death_count()) / std::max(1u, live->document_count());
    bytes += static_cast<uint64_t>(static_cast<double>(live->entry().file_bytes) * share);
  }
  ASHLAR_ASSIGN_OR_RETURN(const uint64_t available, env_.files->AvailableBytes(directory_));
  if (bytes <= available) return absl::OkStatus();
  return ResourceExhausted(absl::StrCat(directory_, ": a merge of ", job.inputs.size(), " segments needs about ", bytes,
                                        " bytes, and ", available, " are left"));
}

// A mapping that remembers nothing of what was verified before: every page that goes into the new file, under a fresh
// checksum, is verified by this merge. Where the name is gone, the mapping that is still there saves the documents.
absl::StatusOr<std::shared_ptr<const segment::Segment>> Engine::OpenMergeInput(const LiveSegment& live,
                                                                               const segment::SegmentSpec& spec) const {
  if (options_.open_mode == OpenMode::kArray) return live.shared_segment();
  absl::StatusOr<std::shared_ptr<const segment::Segment>> fresh = segment::Segment::Open(
      env_, directory_, live.entry(), spec.store_id, spec.generation, SegmentOptions(options_, /*keep_damaged=*/false));
  if (absl::IsNotFound(fresh.status())) return live.shared_segment();
  return fresh;
}

absl::StatusOr<std::vector<segment::MergeInput>> Engine::OpenMergeInputs(MergeJob* job) const {
  const Sequence dropped_to = SiteIsOn(Site::kMergeDropsToFloor) ? job->floor : UINT64_MAX;
  std::vector<segment::MergeInput> inputs;
  std::set<std::string> identities;  // of what made the terms: a merge takes them as they are
  for (const std::shared_ptr<LiveSegment>& live : job->inputs) {
    segment::MergeInput input;
    ASHLAR_ASSIGN_OR_RETURN(input.segment, OpenMergeInput(*live, job->spec));
    const std::vector<format::Death> deaths = live->DeathsUpTo(dropped_to);
    if (!deaths.empty()) input.dead.resize(live->document_count());
    for (const format::Death& death : deaths) input.dead[death.ordinal] = true;
    inputs.push_back(std::move(input));
    for (const absl::string_view identity : absl::StrSplit(live->segment().analyzer_identity(), "; "))
      identities.insert(std::string(identity));
  }
  for (const std::string& identity : identities)
    job->spec.analyzer_identity += (job->spec.analyzer_identity.empty() ? "" : "; ") + identity;
  return inputs;
}

absl::Status Engine::RunMerge(MergeJob job) {
  if (absl::Status status = CheckRoomForMerge(job); !status.ok()) return Fail(status, false);
  const absl::StatusOr<std::vector<segment::MergeInput>> inputs = OpenMergeInputs(&job);
  if (!inputs.ok()) return Fail(inputs.status(), false);
  const auto has_to_end = [this, &job] { return StepMerge(job); };
  absl::StatusOr<segment::MergeOutput> output = segment::MergeSegments(env_, directory_, job.spec, *inputs, has_to_end);
  absl::Status status = output.status();
  if (status.ok()) {
    Reached(env::WorkStep::kMergeWritten);
    status = PublishMerge(job, *std::move(output));
  } else if (!absl::IsAborted(status)) {
    Fail(status, false).IgnoreError();
  }
  if (!status.ok()) RemoveUnpublished(segment::FileName(job.spec.number));
  return status;
}

absl::Status Engine::PublishMerge(const MergeJob& job, segment::MergeOutput output) {
  // No flush may be in the air when the commit gives out numbers beyond the merge's, for the same reason as above.
  MutexLock flush_lock(&flush_mutex_);
  DeathRelay relay(job.floor);
  std::shared_ptr<LiveSegment> live;
  if (output.entry.documents > 0) {
    absl::StatusOr<std::shared_ptr<LiveSegment>> opened = OpenNewSegment(output.entry, job.spec);
    if (!opened.ok()) return Fail(opened.status(), false);
    live = *std::move(opened);
    for (size_t i = 0; i < job.inputs.size() && SiteIsOn(Site::kMergeRelaysDeaths); ++i)
      relay.AddSource(&job.inputs[i]->deaths(), std::move(output.new_ordinal[i]));
  }
  MutexLock catalog_lock(&catalog_mutex_);
  Publication publication;
  Sequence reached = 0;
  {
    MutexLock lock(&writer_mutex_);
    if (next_file_number_ > job.spec.number && SiteIsOn(Site::kMergeNumberBeyond))
      return absl::AbortedError("more files were made during the merge than there are numbers below its own");
    next_file_number_ = std::max(next_file_number_, job.spec.number + 1);
    publication = BeginPublication();
    reached = cell_.sequence;
  }
  for (const std::shared_ptr<LiveSegment>& input : job.inputs)  // met meanwhile
    if (const std::optional<SegmentDamage> damage = input->damage(); damage.has_value()) return damage->status;
  if (!Replace(job.inputs, live, &publication.segments)) return Internal("the segments of a merge are gone");
  if (live != nullptr) relay.Pass(reached, live.get());
  std::vector<std::string> merged;
  for (const std::shared_ptr<LiveSegment>& input : job.inputs)
    merged.push_back(segment::FileName(input->entry().number));
  if (!SiteIsOn(Site::kMergeRemovesAfterCommit)) RemoveFiles(merged);
  ASHLAR_RETURN_IF_ERROR(CommitCatalog(&publication));
  RemoveFiles(merged);  // who reads them has them open
  Reached(env::WorkStep::kMergeCommitted);
  {
    MutexLock lock(&writer_mutex_);
    if (live != nullptr) relay.Pass(UINT64_MAX, live.get());
    for (const std::shared_ptr<LiveSegment>& input : job.inputs)
      if (live != nullptr) live->InheritUnknownLengths(*input);
    TakeOver(std::move(publication), view_->frozen);
    Show();
  }
  Count("merges");
  Count("segments_merged", job.inputs.size());
  Count("bytes_merged", output.entry.file_bytes);
  return absl::OkStatus();
}

bool Engine::MergeHasToEnd(const Segments& inputs, bool asked) const {
  if (!asked && scheduler_->merge_is_asked_for()) return true;
  if (scheduler_->stopping() && BytesOf(inputs) > kEndsAtCloseBytes) return true;
  return !failure_state_.CheckWritable().ok();
}

uint64_t Engine::MergeWaitNs(const MergeJob& job) const {
  if (scheduler_->merges_are_paused()) return kPauseNs;
  if (options_.merge_bytes_per_second == 0) return 0;
  const absl::StatusOr<uint64_t> written = env_.files->FileSize(Path(segment::FileName(job.spec.number)));
  const double seconds =
      static_cast<double>(written.value_or(0)) / static_cast<double>(options_.merge_bytes_per_second);
  const auto due_ns = static_cast<uint64_t>(seconds * 1e9);
  const uint64_t spent_ns = env_.clock->MonotonicNs() - job.begun_ns;
  return due_ns > spent_ns ? due_ns - spent_ns : 0;
}

bool Engine::StepMerge(const MergeJob& job) {
  Reached(env::WorkStep::kMergeCopying);
  if (!background_) return MergeHasToEnd(job.inputs, job.asked) || (!job.asked && scheduler_->merges_are_paused());
  while (!MergeHasToEnd(job.inputs, job.asked)) {
    if (scheduler_->TakeWake()) DoUrgentWork().IgnoreError();
    const uint64_t wait_ns = job.asked || scheduler_->stopping() ? 0 : MergeWaitNs(job);
    if (wait_ns == 0) return false;
    const uint64_t sync_ns = NextSyncNs();
    scheduler_->WaitForChange(sync_ns == 0 ? wait_ns : std::min(wait_ns, sync_ns));
    if (sync_ns != 0) PrepareJournal().IgnoreError();
  }
  return true;
}

absl::Status Engine::MergeOrQuarantine(const Segments& inputs, MergeKind kind) {
  const absl::Status status = RunMerge(BeginMerge(inputs, kind));
  if (status.ok()) return status;
  bool quarantined = false;
  for (const std::shared_ptr<LiveSegment>& live : inputs) {
    live->Note(status);
    quarantined |= live->damaged();
  }
  return quarantined ? absl::OkStatus() : status;
}

absl::Status Engine::MergeDue() {
  if (options_.merge_factor < 2) return absl::OkStatus();
  MutexLock lock(&merge_mutex_);
  while (!scheduler_->merges_are_paused()) {
    Segments segments = CurrentSegments();
    Range range = NextMerge(segments, options_.merge_factor, CommittedFloor());
    if (range.count == 0) {
      if (NextMerge(segments, options_.merge_factor, UINT64_MAX).count == 0) return absl::OkStatus();
      // Many died since the last flush: after one they can go.
      MutexLock flush_lock(&flush_mutex_);
      ASHLAR_RETURN_IF_ERROR(FlushAll(/*rotate=*/false));
      segments = CurrentSegments();
      range = NextMerge(segments, options_.merge_factor, CommittedFloor());
      if (range.count == 0) return absl::OkStatus();
    }
    const Segments inputs = Cut(segments, range);
    if (MergeHasToEnd(inputs, /*asked=*/false)) return absl::OkStatus();
    const absl::Status status = MergeOrQuarantine(inputs, MergeKind::kDue);
    if (absl::IsAborted(status)) return absl::OkStatus();  // it is due again
    ASHLAR_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

void Engine::PauseMerges() {
  if (CheckFork().ok()) scheduler_->PauseMerges();
}

void Engine::ResumeMerges() {
  if (CheckFork().ok()) scheduler_->ResumeMerges();
}

absl::Status Engine::Merge(uint32_t segments_max) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  scheduler_->BeginAskedMerge();
  absl::Status status;
  {
    MutexLock lock(&merge_mutex_);
    status = MergeTo(std::max(segments_max, 1u), MergeKind::kAsked);
  }
  scheduler_->EndAskedMerge();
  return status;
}

absl::Status Engine::MergeTo(uint32_t segments_max, MergeKind kind) {
  Segments to_rewrite;  // a purge: all that were there
  {
    MutexLock lock(&flush_mutex_);
    if (kind == MergeKind::kPurge) {
      ASHLAR_ASSIGN_OR_RETURN(to_rewrite, FlushForPurge());
    } else {
      ASHLAR_RETURN_IF_ERROR(FlushAll());
    }
  }
  // What is flushed and what dies from here on is not asked for.
  const Sequence floor = CommittedFloor();
  const auto has_to_go = [&](const std::shared_ptr<LiveSegment>& live) {
    return live->DeathCountUpTo(floor) > 0 || std::find(to_rewrite.begin(), to_rewrite.end(), live) != to_rewrite.end();
  };
  Segments segments = UpTo(CurrentSegments(), floor);
  while (segments.size() > segments_max) {
    const Range range = NextMergeTo(segments, segments_max);
    if (range.count == 0) break;
    ASHLAR_RETURN_IF_ERROR(MergeOrQuarantine(Cut(segments, range), kind));
    segments = UpTo(CurrentSegments(), floor);
  }
  // What is left may still hold dead documents: a merge asked for leaves none.
  for (const std::shared_ptr<LiveSegment>& live : segments) {
    if (live->damaged() || !has_to_go(live)) continue;
    ASHLAR_RETURN_IF_ERROR(MergeOrQuarantine({live}, kind));
  }
  segments = UpTo(CurrentSegments(), floor);
  for (const std::shared_ptr<LiveSegment>& live : segments)
    if (live->damaged() && (segments.size() > segments_max || has_to_go(live)))
      return Annotate(live->damage()->status, absl::StrCat("all but damaged segments were merged (",
                                                           ToAbsl(RemedyOf(StoreState::kDamaged)), ")"));
  return absl::OkStatus();
}

}  // namespace ashlar::engine
