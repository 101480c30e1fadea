// Deletes of what a query matches, and of what has expired: found on a snapshot, then written as deletes by DocumentId
// through the write path, like those of anybody. A document that was replaced meanwhile has another DocumentId, so what
// came meanwhile is never deleted.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/document_codec.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/engine/read_view.h"

namespace ashlar::engine {
namespace {

// The DocumentIds of all documents that match, ascending.
absl::StatusOr<std::vector<DocumentId>> FindMatching(const SnapshotState& snapshot, const PreparedQuery& query,
                                                     const DeleteOptions& options) {
  SearchOptions search;
  search.k = std::max<uint64_t>(1, snapshot.cell().live_documents);
  search.fields = options.fields;
  search.total = Total::kNone;
  ASHLAR_ASSIGN_OR_RETURN(const SearchResult result, Search(snapshot, query, search));
  std::vector<DocumentId> ids;
  ids.reserve(result.hits.size());
  for (const Hit& hit : result.hits) {
    ASHLAR_ASSIGN_OR_RETURN(const DocumentId id, ReadId(snapshot, hit.handle));
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Dates of one field by place in a snapshot.
class DateReader {
 public:
  DateReader(const SnapshotState& snapshot, uint32_t field) : snapshot_(snapshot), field_(field) {}

  // The latest date of a document; nullopt if it has none.
  absl::StatusOr<std::optional<int64_t>> Latest(Handle place) {
    latest_.reset();
    const std::vector<std::shared_ptr<LiveSegment>>& segments = snapshot_.view().segments;
    if (place.source < segments.size()) {
      ASHLAR_RETURN_IF_ERROR(ReadColumn(*segments[place.source], place.ordinal));
    } else {
      ReadOverlay(snapshot_.overlay(place.source - segments.size()), place.ordinal);
    }
    return latest_;
  }

 private:
  absl::Status ReadColumn(const LiveSegment& live, uint32_t ordinal) {
    if (field_ >= live.segment().schema().fields.size()) return absl::OkStatus();  // added later
    values_.clear();
    ASHLAR_RETURN_IF_ERROR(live.ColumnValues(field_, ordinal, &values_));
    for (const Value& value : values_) Note(std::get<Date>(value).milliseconds);
    return absl::OkStatus();
  }

  void ReadOverlay(const LiveOverlay& overlay, uint32_t ordinal) {
    format::VisitValues(overlay.DocumentOf(ordinal), [this](const format::ValueView& value) {
      if (value.field == field_) Note(value.integer);
    });
  }

  void Note(int64_t date) { latest_ = std::max(latest_.value_or(date), date); }

  const SnapshotState& snapshot_;
  const uint32_t field_;
  std::optional<int64_t> latest_;
  std::vector<Value> values_;
};

absl::StatusOr<std::vector<DocumentId>> FindExpired(const SnapshotState& snapshot, uint32_t field, Date now) {
  DateReader dates(snapshot, field);
  std::vector<DocumentId> ids;
  for (uint32_t source = 0; source < SourceCountOf(snapshot); ++source) {
    const uint32_t count = DocumentCountOf(snapshot, source);
    for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
      const Handle place = {source, ordinal};
      if (IsDeadIn(snapshot, place)) continue;
      ASHLAR_ASSIGN_OR_RETURN(const std::optional<int64_t> date, dates.Latest(place));
      if (!date.has_value() || *date >= now.milliseconds) continue;
      ASHLAR_ASSIGN_OR_RETURN(const DocumentId id, ReadId(snapshot, place));
      ids.push_back(id);
    }
  }
  return ids;
}

absl::StatusOr<uint32_t> FindDateField(const Schema& schema, std::string_view name) {
  const int number = schema.IndexOf(name);
  if (number < 0) return InvalidArgument(absl::StrCat("no field '", ToAbsl(name), "' to expire by"));
  const Field& field = schema.fields[static_cast<size_t>(number)];
  if (field.type != FieldType::kDate)
    return InvalidArgument(absl::StrCat("field '", field.name, "' to expire by is of type ",
                                        ToAbsl(FieldTypeName(field.type)), ", not date"));
  if (!field.column) return InvalidArgument(absl::StrCat("field '", field.name, "' to expire by has no column"));
  return static_cast<uint32_t>(number);
}

}  // namespace

absl::Status Engine::CheckMayDelete() const {
  ASHLAR_RETURN_IF_ERROR(CheckFork());
  MutexLock lock(&writer_mutex_);
  return CheckWritable();
}

absl::StatusOr<DeleteResult> Engine::DeleteMatching(const PreparedQuery& query, const DeleteOptions& options) {
  ASHLAR_RETURN_IF_ERROR(CheckMayDelete());
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<DocumentId> ids, FindMatching(*TakeSnapshot(), query, options));
  return DeleteIds(ids, options);
}

absl::StatusOr<DeleteResult> Engine::Expire(std::string_view field, Date now, const DeleteOptions& options) {
  ASHLAR_RETURN_IF_ERROR(CheckMayDelete());
  const std::shared_ptr<const SnapshotState> snapshot = TakeSnapshot();
  ASHLAR_ASSIGN_OR_RETURN(const uint32_t number, FindDateField(*snapshot->view().schema, field));
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<DocumentId> ids, FindExpired(*snapshot, number, now));
  return DeleteIds(ids, options);
}

absl::StatusOr<DeleteResult> Engine::DeleteIds(const std::vector<DocumentId>& ids, const DeleteOptions& options) {
  DeleteResult result;
  if (ids.empty() && !options.write.watermark.has_value()) return result;
  const size_t most = options.batch_documents_max == 0 ? SIZE_MAX : options.batch_documents_max;
  size_t begin = 0;
  do {
    const size_t end = begin + std::min(most, ids.size() - begin);
    WriteBatch batch;
    for (size_t i = begin; i < end; ++i) batch.DeleteId(ids[i]);
    WriteOptions write = options.write;
    if (end < ids.size()) write.watermark.reset();
    ASHLAR_ASSIGN_OR_RETURN(const WriteResult written, Write(batch, write));
    result.documents += written.documents_replaced;
    result.sequence = written.sequence;
    ++result.batches;
    begin = end;
  } while (begin < ids.size());
  return result;
}

}  // namespace ashlar::engine
