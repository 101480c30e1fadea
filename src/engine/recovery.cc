// Recovery: what opening finds after a crash, or after a clean close. Segments and deaths as of the catalog's floor,
// then the journal's records beyond it, through the same resolution and application as fresh writes. Then files that
// the catalog does not name are removed, if they are provably ours.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/deaths.h"
#include "format/frame.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/file_names.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {
namespace {

// More sequences than the un-synced part of a journal can have handed out: its file is at most 64 MiB or one batch of
// at most 1 GiB, and an operation takes at least two bytes. After an unclean end numbering starts beyond all of them,
// so that a DocumentId that a reader may have seen never comes to mean another document.
constexpr Sequence kUnsyncedSequencesMax = Sequence{1} << 29;

}  // namespace

// A damaged or missing segment must not keep the others from being read. Whether it is missing because a writer has
// published a newer generation, a reader finds out by reading the catalog again.
absl::StatusOr<std::shared_ptr<LiveSegment>> Engine::OpenNamedSegment(const format::SegmentEntry& entry) {
  absl::StatusOr<std::shared_ptr<const segment::Segment>> segment =
      segment::Segment::Open(env_, directory_, entry, committed_.store_id, committed_.generation,
                             SegmentOptions(options_, /*keep_damaged=*/true));
  absl::Status damage = segment.status();
  const std::string path = Path(segment::FileName(entry.number));
  if (absl::IsNotFound(damage)) damage = DataLoss(path, "file", 0, "the file is missing");
  if (!damage.ok() && !IsDamage(damage)) return damage;
  const bool readable = segment.ok();
  if (!readable) {
    damage = WithPlace(damage, path, "file", 0);
    segment = segment::Segment::Unreadable(directory_, entry, damage);
  }
  auto live = std::make_shared<LiveSegment>(*std::move(segment), entry, env_.clock);
  if (!readable) live->SealOff(damage);
  return live;
}

absl::StatusOr<std::vector<std::shared_ptr<LiveSegment>>> Engine::OpenSegments(const format::CatalogValue& value) {
  std::vector<std::shared_ptr<LiveSegment>> segments;
  for (const format::SegmentEntry& entry : value.segments) {
    std::shared_ptr<LiveSegment> live;
    if (view_ != nullptr)  // a refresh goes on with what is open
      for (const std::shared_ptr<LiveSegment>& open : view_->segments)
        if (open->entry().number == entry.number && open->entry().file_id == entry.file_id && !open->sealed_off())
          live = open;
    if (live == nullptr) {
      ASHLAR_ASSIGN_OR_RETURN(live, OpenNamedSegment(entry));
    }
    if (!segments.empty() && segments.back()->segment().last_id() >= live->segment().first_id())
      return DataLoss(live->segment().path(), "meta", 0, "its DocumentIds overlap those of the segment before");
    segments.push_back(std::move(live));
  }
  return segments;
}

absl::Status Engine::LoadDeaths(const format::CatalogValue& value,
                                const std::vector<std::shared_ptr<LiveSegment>>& segments) {
  format::DeathsFile deaths;
  std::string path;
  if (value.deaths_number != 0) {
    path = Path(DeathsFileName(value.deaths_number));
    const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, path);
    if (absl::IsNotFound(bytes.status()))
      return DataLoss(path, "deaths", 0, "the file that the catalog names is missing");
    if (!bytes.ok()) return bytes.status();
    ASHLAR_ASSIGN_OR_RETURN(deaths, format::DecodeDeaths(*bytes, path));
    if (SiteIsOn(Site::kCheckDeathsIdentity) &&
        (deaths.file_id != value.deaths_file_id || deaths.store_id != value.store_id))
      return DataLoss(path, "header", 24, "not the deaths file that the catalog names");
    if (deaths.generation > value.generation)
      return DataLoss(
          path, "header", 0,
          absl::StrCat("built for generation ", deaths.generation, ", but the catalog is at ", value.generation));
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    LiveSegment& live = *segments[i];
    const auto found =
        std::find_if(deaths.segments.begin(), deaths.segments.end(),
                     [&live](const format::SegmentDeaths& d) { return d.segment_number == live.entry().number; });
    const size_t count = found == deaths.segments.end() ? 0 : found->deaths.size();
    if (count != value.segments[i].dead)
      return DataLoss(path.empty() ? live.segment().path() : path, "deaths", 0,
                      absl::StrCat("segment ", live.entry().number, " has ", count,
                                   " dead documents, the catalog says ", value.segments[i].dead));
    if (count == 0) continue;
    std::vector<format::Death> in_order = found->deaths;
    std::sort(in_order.begin(), in_order.end(),
              [](const format::Death& a, const format::Death& b) { return a.sequence < b.sequence; });
    for (const format::Death& death : in_order) {
      if (death.ordinal >= live.document_count() || death.sequence > value.floor)
        return DataLoss(path, "deaths", 0,
                        absl::StrCat("ordinal ", death.ordinal, ", dead at ", death.sequence, ", can't be in segment ",
                                     live.entry().number, " at floor ", value.floor));
      if (live.DeathOf(death.ordinal) == 0) live.Kill(death.ordinal, death.sequence);
    }
  }
  return absl::OkStatus();
}

// Where damage keeps a segment's lengths from being summed, its live documents are taken to be as long as the mean of
// the others. Only partial answers can show that: a search that needs the lengths of that index fails at this segment.
absl::StatusOr<LengthSums> Engine::SumLiveLengths(const View& view, uint64_t* live_documents) const {
  const Schema& schema = *view.schema;
  LengthSums sums(schema.fields.size() + 1, 0);
  *live_documents = 0;
  for (const std::shared_ptr<LiveSegment>& live : view.segments)
    *live_documents += live->document_count() - live->death_count();
  for (const format::IndexId index : searchable_) {
    uint64_t sum = 0, summed = 0;  // over so many documents
    for (const std::shared_ptr<LiveSegment>& live : view.segments) {
      ASHLAR_ASSIGN_OR_RETURN(const std::optional<uint64_t> of_segment, live->SumLiveLengths(index));
      if (!of_segment.has_value()) continue;
      sum += *of_segment;
      summed += live->document_count() - live->death_count();
    }
    if (summed > 0 && summed < *live_documents)
      sum += static_cast<uint64_t>(static_cast<double>(sum) / static_cast<double>(summed) *
                                   static_cast<double>(*live_documents - summed));
    sums[SumIndex(schema, index)] = sum;
  }
  return sums;
}

std::optional<journal::Status> Engine::LoadStatus() const {
  const absl::StatusOr<std::unique_ptr<journal::StatusPage>> page =
      journal::StatusPage::Open(env_, directory_, committed_.store_id, /*writable=*/false);
  return page.ok() ? (*page)->Load() : std::nullopt;
}

absl::StatusOr<bool> Engine::HasJournal(uint64_t first_number) const {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, env_.files->List(directory_));
  return std::any_of(entries.begin(), entries.end(), [first_number](const env::FileSystem::DirectoryEntry& entry) {
    return journal::NumberOf(entry.name).value_or(0) >= first_number;
  });
}

absl::Status Engine::ReplayJournal(bool resume) {
  journal::ReplayOptions options;
  options.store_id = committed_.store_id;
  options.first_number = committed_.journal_number;
  options.durable = {committed_.durable_journal_number, committed_.durable_journal_offset};
  options.floor = committed_.floor;
  options.catalog_generation = committed_.generation;
  if (resume) options.resume = replay_end_;
  bool writer_lives = false;  // another one
  if (options_.read_only) {
    ASHLAR_ASSIGN_OR_RETURN(writer_lives, env_.files->IsLocked(Path(kLockFileName)));
  }
  const std::optional<journal::Status> status = LoadStatus();
  if (writer_lives) {
    // Bytes beyond what the writer has acknowledged may be half written: they are neither read nor called damage.
    if (!status.has_value()) {
      // Nothing to say about a journal that is not there: a checkpoint that is being renewed.
      ASHLAR_ASSIGN_OR_RETURN(const bool has_journal, HasJournal(committed_.journal_number));
      if (has_journal) return absl::AbortedError("the writer has not said yet how far its journal goes");
      options.limit = journal::Position();
    } else if (status->generation > committed_.generation) {
      return absl::AbortedError("the writer has published a newer generation");
    } else {
      options.limit = status->position;
    }
  } else if (status.has_value() && status->generation > committed_.generation &&
             SiteIsOn(Site::kCheckStatusGeneration)) {
    // It is published behind the commit, so the catalog went back. Nothing is removed that the right one needs.
    return DataLoss(Path(journal::kStatusFileName), "status page", 56,
                    absl::StrCat("generation ", status->generation, " was published, but the catalog is at ",
                                 committed_.generation));
  } else if (status.has_value() && status->durable.number >= options.first_number) {
    options.durable = std::max(options.durable, status->durable);
  }
  {
    MutexLock lock(&state_mutex_);
    recovery_.batches_replayed = 0;
  }
  ASHLAR_ASSIGN_OR_RETURN(AnalyzerPool::Loan analyzer, analyzers_.Borrow());
  replay_analyzer_ = &*analyzer;
  std::vector<journal::FileContext> headers;
  const auto visit = [this](const journal::Record& record)
                         ABSL_NO_THREAD_SAFETY_ANALYSIS { return ReplayRecord(record); };
  absl::StatusOr<journal::ReplayEnd> end = journal::Replay(env_, directory_, options, visit, &headers);
  replay_analyzer_ = nullptr;
  if (!end.ok()) return end.status();
  for (const journal::FileContext& header : headers) {
    if (header.schema_number > committed_.schema_number)
      return DataLoss(Path(journal::FileName(end->end.number)), "header", 0,
                      absl::StrCat("written with schema ", header.schema_number, ", but the catalog has ",
                                   committed_.schema_number));
  }
  replay_end_ = *end;
  replay_durable_ = options.durable;
  replay_bytes_ = end->replayed_bytes;
  next_sequence_ = std::max({cell_.sequence, end->last_sequence, committed_.last_sequence}) + 1;
  if (!end->sealed && end->file_count > 0 && SiteIsOn(Site::kOpenSequenceJump)) next_sequence_ += kUnsyncedSequencesMax;
  {
    MutexLock lock(&state_mutex_);
    recovery_.bytes_replayed = end->replayed_bytes;
    recovery_.torn_file = end->torn_bytes > 0 ? Path(journal::FileName(end->end.number)) : "";
    recovery_.torn_offset = end->torn_bytes > 0 ? end->end.offset : 0;
    recovery_.torn_bytes = end->torn_bytes;
  }
  return absl::OkStatus();
}

absl::Status Engine::ReplayRecord(const journal::Record& record) {
  const std::string file = Path("journal");
  const auto damaged = [&](std::string_view what) {
    return DataLoss(file, "record", 0, absl::StrCat("record of sequence ", record.first_sequence, ": ", ToAbsl(what)));
  };
  if (record.schema_number > committed_.schema_number) return damaged("written with a newer schema than the catalog's");
  std::vector<AnalyzedOperation> operations;
  std::optional<std::string> watermark;
  absl::Status status;
  const bool well_formed =
      format::VisitOperations(record.operations, [&](const format::OperationView& view) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        if (view.kind == format::OperationKind::kWatermark) {
          watermark.emplace(view.key);
          return true;
        }
        AnalyzedOperation& operation = operations.emplace_back();
        switch (view.kind) {
          case format::OperationKind::kPut:
            operation.kind = WriteBatch::Kind::kPut;
            status = replay_analyzer_->AnalyzeEncoded(view.document, &operation.document);
            break;
          case format::OperationKind::kDelete:
            operation.kind = WriteBatch::Kind::kDelete;
            operation.key = std::string(view.key);
            break;
          case format::OperationKind::kDeleteId:
            operation.kind = WriteBatch::Kind::kDeleteId;
            operation.expected = view.id;
            break;
          case format::OperationKind::kWatermark:
            break;
        }
        return status.ok();
      });
  if (!status.ok()) return damaged(FromAbsl(status.message()));
  if (!well_formed) return damaged("its operations are malformed");
  if (record.operation_count != std::max<size_t>(1, operations.size())) return damaged("wrong number of operations");
  const WriteOptions options;
  PendingWrite write;
  write.operations = &operations;
  write.options = &options;
  Group group;
  ASHLAR_RETURN_IF_ERROR(ResolveBatch(&write, record.first_sequence, &group));
  Apply(&group.effects);
  if (watermark.has_value()) watermark_ = std::move(watermark);
  cell_.sequence = record.last_sequence();
  MutexLock lock(&state_mutex_);
  ++recovery_.batches_replayed;
  return absl::OkStatus();
}

// A file that no catalog of this generation can have left behind shows that the catalog went back: then nothing is
// removed.
absl::Status Engine::CheckOrphanGeneration(format::FileKind kind, uint64_t number, const std::string& path) const {
  // A checkpoint that was being renewed when the power went has some of the newer files.
  if (format::IsCheckpoint(committed_)) return absl::OkStatus();
  std::optional<uint64_t> generation;  // that the catalog had when the file was made
  if (kind == format::FileKind::kSegment) {
    const absl::StatusOr<uint64_t> built_on = segment::PeekGeneration(env_, directory_, number, committed_.store_id);
    if (built_on.ok()) generation = *built_on;
  } else if (kind == format::FileKind::kDeaths) {
    const absl::StatusOr<ByteBuffer> bytes = env::ReadFile(*env_.files, path);
    const absl::StatusOr<format::DeathsFile> deaths = bytes.ok() ? format::DecodeDeaths(*bytes, path) : bytes.status();
    if (deaths.ok() && deaths->store_id == committed_.store_id) generation = deaths->generation - 1;
  }
  if (!generation.has_value() || *generation <= committed_.generation) return absl::OkStatus();
  return DataLoss(path, kind == format::FileKind::kSegment ? "footer" : "deaths", 0,
                  absl::StrCat("built on generation ", *generation, ", but the catalog is at ", committed_.generation,
                               "; nothing was removed"));
}

absl::StatusOr<std::vector<std::string>> Engine::FindOrphans(uint64_t* last_number) const {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, env_.files->List(directory_));
  std::vector<std::string> orphans;
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    if (!entry.is_file) continue;
    // A journal file that was never finished.
    if (entry.name == journal::kNewFileName) orphans.push_back(entry.name);
    format::FileKind kind;
    uint64_t number = 0;
    bool named = false;  // by the catalog
    if ((number = segment::NumberOf(entry.name)) != 0) {
      kind = format::FileKind::kSegment;
      for (const format::SegmentEntry& s : committed_.segments) named |= s.number == number;
    } else if ((number = DeathsNumberOf(entry.name)) != 0) {
      kind = format::FileKind::kDeaths;
      named = number == committed_.deaths_number;
    } else if (const std::optional<uint64_t> journal = journal::NumberOf(entry.name)) {
      kind = format::FileKind::kJournal;
      number = *journal;
      named = number >= committed_.journal_number;
    } else {
      continue;  // a stranger's, or the catalog's, the lock, the status page
    }
    *last_number = std::max(*last_number, number);
    if (named) continue;
    // Ours beyond doubt: empty, or with a header of this store, or without one and numbered by a session that died before its
    // commit, or left by a checkpoint that was being renewed. One of another store or of a later version is left alone.
    const std::string path = Path(entry.name);
    ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> file, env_.files->OpenForRead(path));
    ASHLAR_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    std::byte header[format::kFileHeaderBytes];
    bool ours = size == 0 || number >= committed_.next_file_number || format::IsCheckpoint(committed_);
    if (size >= sizeof header && file->ReadAt(0, header).ok()) {
      const absl::StatusOr<format::FileHeader> decoded = format::DecodeFileHeader(header, kind, path, std::nullopt);
      if (decoded.ok()) ours = decoded->store_id == committed_.store_id || !SiteIsOn(Site::kCheckStoreId);
      if (absl::IsUnimplemented(decoded.status())) ours = false;
    }
    if (!ours) continue;
    if (SiteIsOn(Site::kOpenOrphanGeneration)) ASHLAR_RETURN_IF_ERROR(CheckOrphanGeneration(kind, number, path));
    orphans.push_back(entry.name);
  }
  return orphans;
}

absl::Status Engine::RemoveOrphans() {
  uint64_t last_number = 0;
  ASHLAR_ASSIGN_OR_RETURN(std::vector<std::string> orphans, FindOrphans(&last_number));
  // Empty, and while the store is open its thread may be making one.
  ASHLAR_ASSIGN_OR_RETURN(const bool has_next, env_.files->Exists(Path(journal::kNextFileName)));
  if (has_next) orphans.emplace_back(journal::kNextFileName);
  next_file_number_ = std::max(next_file_number_, last_number + 1);
  if (SiteIsOn(Site::kOpenRemovesOrphans)) RemoveFiles(orphans);
  MutexLock lock(&state_mutex_);
  recovery_.orphans_removed = orphans.size();
  if (SiteIsOn(Site::kOpenRemovesOrphans)) unpublished_ = std::move(orphans);
  return absl::OkStatus();
}

}  // namespace ashlar::engine
