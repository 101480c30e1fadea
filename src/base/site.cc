#include "src/base/site.h"

#include <array>

namespace ashlar {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Site::kCount)> kNames = {
    "none",
    "journal.sync",
    "journal.sync_before_next_file",
    "journal.sync_before_rotation",
    "journal.sync_before_seal",
    "journal.new_file_sync",
    "journal.name_after_sync",
    "journal.directory_sync",
    "journal.seal_sync",
    "journal.seal_rewrite",
    "journal.seal_rewrite_sync",
    "journal.void",
    "journal.void_sync",
    "journal.copy_tail",
    "journal.spare_sync",
    "journal.durable_to",
    "write.sync",
    "write.sync_after_seal",
    "write.interval_sync",
    "write.failed_sync_is_final",
    "status.durable",
    "status.before_seal",
    "segment.sync",
    "segment.directory_sync",
    "deaths.sync",
    "deaths.directory_sync",
    "deaths.removed_after_commit",
    "flush.drops_after_commit",
    "flush.floor_of_freeze",
    "flush.journal_of_freeze",
    "flush.deaths_to_floor",
    "flush.relays_deaths",
    "merge.removes_after_commit",
    "merge.drops_to_floor",
    "merge.relays_deaths",
    "merge.number_beyond",
    "unpublished.removal",
    "file_catalog.sync",
    "file_catalog.directory_sync",
    "checkpoint.parent_sync",
    "checkpoint.directory_sync",
    "checkpoint.undo_sync",
    "open.parent_sync",
    "open.removes_orphans",
    "open.orphan_generation",
    "open.sequence_jump",
    "open.reserves_sequences",
    "open.secures_void",
    "check.file_header",
    "check.store_id",
    "check.framed",
    "check.status_page",
    "check.status_generation",
    "check.journal_header",
    "check.journal_store",
    "check.journal_number",
    "check.journal_generation",
    "check.journal_link",
    "check.journal_missing",
    "check.record_header",
    "check.record_payload",
    "check.record_chain",
    "check.tail_header",
    "check.tail_durable",
    "check.tail_record",
    "check.deaths_identity",
    "check.segment_identity",
    "check.segment_size",
    "check.segment_generation",
    "check.segment_footer",
    "check.segment_table",
    "check.segment_roots",
    "check.segment_sums",
    "check.segment_page",
    "check.segment_padding",
    "catalog.file_sync",
    "catalog.directory_sync",
    "catalog.meta_sync",
    "catalog.meta_rewrite",
    "catalog.walk",
    "catalog.metas_in_turn",
    "catalog.pages_accounted",
    "catalog.entries_of_transaction",
    "catalog.newest_is_transaction",
    "catalog.dead_readers",
    "lock.file_is_ours",
};

}  // namespace

namespace internal {
std::atomic<Site> disabled_site{Site::kNone};
}

std::string_view SiteName(Site site) { return kNames[static_cast<size_t>(site)]; }

Site SiteOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Site>(i);
  return Site::kNone;
}

void DisableSite(Site site) { internal::disabled_site.store(site, std::memory_order_relaxed); }

}  // namespace ashlar
