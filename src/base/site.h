// Sites: the places of the write path and of verification that the promises rest on, each with a name, so that a test can
// switch one off and see whether anything notices. What nothing notices is either not tested or not needed. The table of
// sites and of what it took to find each one missing stands in docs/testing.md.
//
// Nothing but a mutation run ever disables a site; the cost otherwise is one load of a byte that never changes.
#ifndef ASHLAR_SRC_BASE_SITE_H_
#define ASHLAR_SRC_BASE_SITE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ashlar {

enum class Site : uint8_t {
  kNone,
  // Journal, writing.
  kJournalSync,
  kJournalSyncBeforeNextFile,
  kJournalSyncBeforeRotation,
  kJournalSyncBeforeSeal,
  kJournalNewFileSync,
  kJournalNameAfterSync,
  kJournalDirectorySync,
  kJournalSealSync,
  kJournalSealRewrite,
  kJournalSealRewriteSync,
  kJournalVoid,
  kJournalVoidSync,
  kJournalCopyTail,
  kJournalSpareSync,
  kJournalDurableTo,
  // Acknowledging.
  kWriteSync,
  kWriteSyncAfterSeal,
  kWriteIntervalSync,
  kWriteFailedSyncIsFinal,
  kStatusDurable,
  kStatusBeforeSeal,
  // Flush, merge, publication.
  kSegmentSync,
  kSegmentDirectorySync,
  kDeathsSync,
  kDeathsDirectorySync,
  kDeathsRemovedAfterCommit,
  kFlushDropsAfterCommit,
  kFlushFloorOfFreeze,
  kFlushJournalOfFreeze,
  kFlushDeathsToFloor,
  kFlushRelaysDeaths,
  kMergeRemovesAfterCommit,
  kMergeDropsToFloor,
  kMergeRelaysDeaths,
  kMergeNumberBeyond,
  kUnpublishedRemoval,
  kFileCatalogSync,
  kFileCatalogDirectorySync,
  // Copies.
  kCheckpointParentSync,
  kCheckpointDirectorySync,
  kCheckpointUndoSync,
  // Opening.
  kOpenParentSync,
  kOpenRemovesOrphans,
  kOpenOrphanGeneration,
  kOpenSequenceJump,
  kOpenReservesSequences,
  kOpenSecuresVoid,
  // Verification.
  kCheckFileHeader,
  kCheckStoreId,
  kCheckFramed,
  kCheckStatusPage,
  kCheckStatusGeneration,
  kCheckJournalHeader,
  kCheckJournalStore,
  kCheckJournalNumber,
  kCheckJournalGeneration,
  kCheckJournalLink,
  kCheckJournalMissing,
  kCheckRecordHeader,
  kCheckRecordPayload,
  kCheckRecordChain,
  kCheckTailHeader,
  kCheckTailDurable,
  kCheckTailRecord,
  kCheckDeathsIdentity,
  kCheckSegmentIdentity,
  kCheckSegmentSize,
  kCheckSegmentGeneration,
  kCheckSegmentFooter,
  kCheckSegmentTable,
  kCheckSegmentRoots,
  kCheckSegmentSums,
  kCheckSegmentPage,
  kCheckSegmentPadding,
  // catalog.*: src/catalog, LMDB.
  kCatalogFileSync,
  kCatalogDirectorySync,
  kCatalogMetaSync,
  kCatalogMetaRewrite,
  kCatalogWalk,
  kCatalogMetasInTurn,
  kCatalogPagesAccounted,
  kCatalogEntriesOfTransaction,
  kCatalogNewestIsTransaction,
  kCatalogDeadReaders,
  // lock.*: src/env/posix_lock.cc.
  kLockFileIsOurs,
  kCount,
};

// "journal.group_sync": file area, then what is done there.
std::string_view SiteName(Site site);
// kNone if there is no site of that name.
Site SiteOf(std::string_view name);

namespace internal {
extern std::atomic<Site> disabled_site;
}

// Whether the step is to be done: always, but in a mutation run.
inline bool SiteIsOn(Site site) { return internal::disabled_site.load(std::memory_order_relaxed) != site; }

// One at a time, for the whole process; kNone: all are on again. Not while a store is in a call.
void DisableSite(Site site);

}  // namespace ashlar

#endif  // ASHLAR_SRC_BASE_SITE_H_
