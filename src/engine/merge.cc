// Merge: keeps segments few. Size-tiered over adjacent runs: a segment's tier is the power of merge_factor that its
// bytes reach, and when the youngest `merge_factor` segments are of one tier or lower they become one. A segment of
// which more than half is dead is rewritten alone. Quarantined segments are left alone, and runs end at them. Always
// right after a flush, so that no document that is dropped died beyond the floor: losing the journal's tail can never
// bring back a document that a merge has dropped.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

constexpr uint64_t kSmallestTierBytes = uint64_t{1} << 20;

int TierOf(uint64_t bytes, uint32_t merge_factor) {
  int tier = 0;
  for (uint64_t limit = kSmallestTierBytes; bytes > limit && tier < 30; limit *= merge_factor) ++tier;
  return tier;
}

struct Range {
  size_t first = 0;
  size_t count = 0;  // 0: nothing is due
};

Range NextMerge(const std::vector<std::shared_ptr<LiveSegment>>& segments, uint32_t merge_factor) {
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
    if (!segments[i]->damaged() && segments[i]->death_count() * uint64_t{2} > segments[i]->document_count())
      return {i, 1};
  return {};
}

// The neighbours whose merge brings the count nearest to `segments_max`, and the cheapest of those; count 0: none are left that
// may be merged.
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

}  // namespace

// Refuses before a byte is written what would fill the disk and then fail: the output has about the inputs' live share.
absl::Status Engine::CheckRoomForMerge(size_t first, size_t count) const {
  uint64_t bytes = 0;
  for (size_t i = first; i < first + count; ++i) {
    const LiveSegment& live = *view_->segments[i];
    const double share = 1 - static_cast<double>(live.death_count()) / std::max(1u, live.document_count());
    bytes += static_cast<uint64_t>(static_cast<double>(live.entry().file_bytes) * share);
  }
  ASHLAR_ASSIGN_OR_RETURN(const uint64_t available, env_.files->AvailableBytes(directory_));
  if (bytes <= available) return absl::OkStatus();
  return ResourceExhausted(absl::StrCat(directory_, ": a merge of ", count, " segments needs about ", bytes,
                                        " bytes, and ", available, " are left"));
}

// A mapping that remembers nothing of what was verified before: every page that goes into the new file, under a fresh checksum,
// is verified by this merge. Where the name is gone, the mapping that is still there saves the documents.
absl::StatusOr<std::shared_ptr<const segment::Segment>> Engine::OpenMergeInput(const LiveSegment& live) const {
  if (options_.open_mode == OpenMode::kArray) return live.shared_segment();
  absl::StatusOr<std::shared_ptr<const segment::Segment>> fresh =
      segment::Segment::Open(env_, directory_, live.entry(), committed_.store_id, committed_.generation,
                             SegmentOptions(options_, /*keep_damaged=*/false));
  if (absl::IsNotFound(fresh.status())) return live.shared_segment();
  return fresh;
}

absl::Status Engine::MergeOrQuarantine(size_t first, size_t count) {
  const std::vector<std::shared_ptr<LiveSegment>> inputs(
      view_->segments.begin() + static_cast<ptrdiff_t>(first),
      view_->segments.begin() + static_cast<ptrdiff_t>(first + count));
  const absl::Status status = MergeRange(first, count);
  if (status.ok()) return status;
  bool quarantined = false;
  for (const std::shared_ptr<LiveSegment>& live : inputs) {
    live->Note(status);
    quarantined |= live->damaged();
  }
  return quarantined ? absl::OkStatus() : status;
}

absl::Status Engine::MergeRange(size_t first, size_t count) {
  if (absl::Status status = CheckRoomForMerge(first, count); !status.ok()) return Fail(status, false);
  const std::vector<std::shared_ptr<LiveSegment>>& all = view_->segments;
  segment::SegmentSpec spec;
  spec.number = NextFileNumber();
  spec.store_id = committed_.store_id;
  spec.schema = committed_.schema;
  spec.schema_number = committed_.schema_number;
  spec.generation = committed_.generation;
  std::vector<segment::MergeInput> inputs;
  std::set<std::string> identities;  // of what made the terms: a merge takes them as they are
  for (size_t i = first; i < first + count; ++i) {
    segment::MergeInput input;
    absl::StatusOr<std::shared_ptr<const segment::Segment>> segment = OpenMergeInput(*all[i]);
    if (!segment.ok()) return Fail(segment.status(), false);
    input.segment = *std::move(segment);
    if (all[i]->has_deaths()) {
      input.dead.resize(all[i]->document_count());
      for (uint32_t ordinal = 0; ordinal < all[i]->document_count(); ++ordinal)
        input.dead[ordinal] = all[i]->DeathOf(ordinal) != 0;
    }
    inputs.push_back(std::move(input));
    for (const absl::string_view identity : absl::StrSplit(all[i]->segment().analyzer_identity(), "; "))
      identities.insert(std::string(identity));
  }
  for (const std::string& identity : identities)
    spec.analyzer_identity += (spec.analyzer_identity.empty() ? "" : "; ") + identity;
  absl::StatusOr<segment::MergeOutput> output = segment::MergeSegments(env_, directory_, spec, inputs);
  if (!output.ok()) {
    RemoveUnpublished(segment::FileName(spec.number));
    return Fail(output.status(), false);
  }

  std::vector<std::shared_ptr<LiveSegment>> segments(all.begin(), all.begin() + static_cast<ptrdiff_t>(first));
  if (output->entry.documents > 0) {
    absl::StatusOr<std::shared_ptr<LiveSegment>> live = OpenSegment(output->entry);
    if (!live.ok()) {
      RemoveUnpublished(segment::FileName(output->entry.number));
      return Fail(live.status(), false);
    }
    segments.push_back(*std::move(live));
  }
  segments.insert(segments.end(), all.begin() + static_cast<ptrdiff_t>(first + count), all.end());

  std::vector<std::string> merged;
  for (size_t i = first; i < first + count; ++i) {
    merged.push_back(segment::FileName(all[i]->entry().number));
    if (all[i]->has_deaths()) deaths_changed_ = true;  // theirs are gone from the deaths file
  }
  if (!SiteIsOn(Site::kMergeRemovesAfterCommit)) RemoveFiles(merged);
  format::CatalogValue value = committed_;
  if (absl::Status status = CommitCatalog(&value, segments); !status.ok()) {
    if (output->entry.documents > 0) RemoveUnpublished(segment::FileName(output->entry.number));
    return status;
  }
  view_ = NewView(std::move(segments), view_->overlay);
  Show();
  RemoveFiles(merged);  // snapshots keep them open
  Count("merges");
  Count("segments_merged", count);
  return absl::OkStatus();
}

absl::Status Engine::MergeDue() {
  if (options_.merge_factor < 2) return absl::OkStatus();
  while (true) {
    Range range = NextMerge(view_->segments, options_.merge_factor);
    if (range.count == 0) return absl::OkStatus();
    if ((cell_.overlay_documents > 0 || deaths_changed_) && SiteIsOn(Site::kMergeAfterFlush)) {
      ASHLAR_RETURN_IF_ERROR(FlushLocked());
      range = NextMerge(view_->segments, options_.merge_factor);
      if (range.count == 0) return absl::OkStatus();
    }
    ASHLAR_RETURN_IF_ERROR(MergeOrQuarantine(range.first, range.count));
  }
}

absl::Status Engine::Merge(uint32_t segments_max) {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock lock(&writer_mutex_);
  ASHLAR_RETURN_IF_ERROR(CheckWritable());
  ASHLAR_RETURN_IF_ERROR(FlushLocked());
  segments_max = std::max(segments_max, 1u);
  while (view_->segments.size() > segments_max) {
    const Range range = NextMergeTo(view_->segments, segments_max);
    if (range.count == 0) break;
    ASHLAR_RETURN_IF_ERROR(MergeOrQuarantine(range.first, range.count));
  }
  // What is left may still hold dead documents: a merge asked for leaves none.
  for (size_t i = 0; i < view_->segments.size(); ++i) {
    if (view_->segments[i]->damaged() || view_->segments[i]->death_count() == 0) continue;
    const size_t before = view_->segments.size();
    ASHLAR_RETURN_IF_ERROR(MergeOrQuarantine(i, 1));
    if (view_->segments.size() < before) --i;
  }
  for (const std::shared_ptr<LiveSegment>& live : view_->segments)
    if (live->damaged() && (view_->segments.size() > segments_max || live->death_count() > 0))
      return Annotate(live->damage()->status,
                      absl::StrCat("all but damaged segments were merged (", ToAbsl(RemedyOf(StoreState::kDamaged)), ")"));
  return absl::OkStatus();
}

}  // namespace ashlar::engine
