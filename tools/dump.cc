#include "tools/dump.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "format/deaths.h"
#include "format/document_codec.h"
#include "format/frame.h"
#include "format/journal_record.h"
#include "format/section_table.h"
#include "format/segment_meta.h"
#include "src/base/bytes.h"
#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "src/engine/file_names.h"
#include "src/env/env.h"
#include "src/journal/journal.h"
#include "src/segment/segment_impl.h"
#include "tools/json_documents.h"
#include "tools/schema_json.h"

namespace ashlar::tools {
namespace {

using PrintTo = std::function<void(std::string_view)>;

std::string Hex(std::span<const std::byte> bytes) { return absl::BytesToHexString(ToAbsl(AsString(bytes))); }

// Bytes from a file inside quotes, on one line.
std::string Quoted(std::string_view bytes) { return absl::StrCat("\"", absl::Utf8SafeCEscape(ToAbsl(bytes)), "\""); }

std::string_view KindName(format::FileKind kind) {
  switch (kind) {
    case format::FileKind::kJournal:
      return "journal";
    case format::FileKind::kSegment:
      return "segment";
    case format::FileKind::kDeaths:
      return "deaths";
    case format::FileKind::kCatalogValue:
      return "catalog value";
  }
  return "unknown";
}

void PrintHeader(const format::FileHeader& header, const PrintTo& print) {
  print(absl::StrFormat("frame: %s, version %d, incompat %x, ro_compat %x, compat %x\n",
                        std::string(KindName(header.kind)), header.version, header.incompat, header.ro_compat,
                        header.compat));
  print(absl::StrCat("  file id  ", Hex(header.file_id), "\n  store id ", Hex(header.store_id), "\n"));
}

void PrintSchema(const Schema& schema, uint32_t number, const std::string& analyzer_identity, const PrintTo& print) {
  print(absl::StrCat("schema number ", number, ", analyzer ", Quoted(analyzer_identity), "\n", SchemaToJson(schema),
                     "\n"));
}

// An encoded document as JSON, or nothing if the bytes are no document of the schema.
std::optional<std::string> DocumentText(ByteSpan encoded, const Schema& schema) {
  Document document;
  bool known = true;
  const bool whole = format::VisitValues(encoded, [&](const format::ValueView& view) {
    known = known && view.field < schema.fields.size();
    if (!known) return;
    Value value = std::string(view.bytes);
    if (view.type == FieldType::kInt64) value = view.integer;
    if (view.type == FieldType::kDate) value = Date{view.integer};
    if (view.type == FieldType::kDouble) value = view.real;
    if (view.type == FieldType::kBytes) value = Blob{std::string(view.bytes)};
    document.Add(schema.fields[view.field].name, std::move(value));
  });
  if (!whole || !known) return std::nullopt;
  return DocumentToJson(document);
}

// --- journal ---

bool PrintOperations(ByteSpan payload, Sequence sequence, const Schema& schema, const PrintTo& print) {
  return format::VisitOperations(payload, [&](const format::OperationView& operation) {
    if (operation.kind == format::OperationKind::kWatermark) {
      print(absl::StrCat("    watermark ", Quoted(operation.key), "\n"));
      return true;
    }
    print(absl::StrCat("    ", sequence++, " "));
    switch (operation.kind) {
      case format::OperationKind::kPut:
        print(absl::StrCat(
            "put ", DocumentText(operation.document, schema).value_or("(fields that the header does not know)")));
        break;
      case format::OperationKind::kDelete:
        print(absl::StrCat("delete ", Quoted(operation.key)));
        break;
      case format::OperationKind::kDeleteId:
        print(absl::StrCat("delete document ", operation.id));
        break;
      case format::OperationKind::kWatermark:
        break;
    }
    print("\n");
    return true;
  });
}

void PrintRecord(const format::RecordHeader& header, uint64_t offset, const PrintTo& print) {
  const format::JournalRecord& record = header.record;
  const char* name = record.type == format::RecordType::kBatch  ? "batch"
                     : record.type == format::RecordType::kSeal ? "seal"
                                                                : "void";
  print(absl::StrFormat(
      "  offset %d: %s, sequence %d, %d operations, schema %d, durable_to %d, chain %016x, checksum %016x, "
      "%d bytes\n",
      offset, name, record.first_sequence, record.operation_count, record.schema_number, record.durable_to,
      record.chain, header.checksum, header.payload_bytes));
}

absl::Status DumpJournal(ByteSpan bytes, const std::string& path, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const format::JournalHeader header, format::DecodeJournalHeader(bytes, path));
  print(absl::StrFormat("journal header: number %d, salt %016x, next sequence %d, generation %d%s\n", header.number,
                        header.salt, header.next_sequence, header.generation, header.recycled ? ", recycled" : ""));
  print(absl::StrFormat("  goes on from file %d, end %d, chain %016x\n", header.previous_number, header.previous_end,
                        header.previous_chain));
  PrintSchema(header.schema, header.schema_number, header.analyzer_identity, print);
  print("records\n");
  uint64_t offset = format::PeekJournalHeaderBytes(bytes);
  while (offset < bytes.size()) {
    const format::RecordPlace place{header.salt, header.number, offset};
    const std::optional<format::RecordHeader> record = format::DecodeRecordHeader(bytes.subspan(offset), place);
    if (!record.has_value()) break;
    const uint64_t size = format::RecordBytes(record->payload_bytes);
    if (size > bytes.size() - offset || !format::RecordPayloadIsValid(*record, bytes.subspan(offset, size), place))
      break;
    PrintRecord(*record, offset, print);
    const ByteSpan payload = bytes.subspan(offset + format::kRecordHeaderBytes, record->payload_bytes);
    if (record->record.type == format::RecordType::kBatch &&
        !PrintOperations(payload, record->record.first_sequence, header.schema, print)) {
      return DataLoss(path, "record", offset, "the operations are malformed");
    }
    offset += size;
  }
  // Zeros, what a recycled file held before, or a torn record: only a replay can tell.
  print(absl::StrCat("no further valid record at offset ", offset, " of ", bytes.size(), "\n"));
  return absl::OkStatus();
}

// --- deaths, catalog value ---

absl::Status DumpDeaths(ByteSpan bytes, const std::string& path, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const format::DeathsFile deaths, format::DecodeDeaths(bytes, path));
  print(absl::StrCat("deaths of generation ", deaths.generation, "\n"));
  for (const format::SegmentDeaths& segment : deaths.segments) {
    print(absl::StrCat("segment ", segment.segment_number, ": ", segment.deaths.size(), " dead\n"));
    for (const format::Death& death : segment.deaths) {
      print(absl::StrCat("  ordinal ", death.ordinal, " at sequence ", death.sequence, "\n"));
    }
  }
  return absl::OkStatus();
}

void PrintCatalogValue(const format::CatalogValue& value, const PrintTo& print) {
  print(absl::StrCat("catalog generation ", value.generation, ", store id ", Hex(value.store_id), "\n"));
  print(absl::StrCat("  floor ", value.floor, ", last sequence ", value.last_sequence, ", next file number ",
                     value.next_file_number, "\n"));
  print(absl::StrCat("  journal number ", value.journal_number, ", known durable: file ", value.durable_journal_number,
                     ", offset ", value.durable_journal_offset, "\n"));
  if (value.watermark.has_value()) print(absl::StrCat("  watermark ", Quoted(*value.watermark), "\n"));
  if (value.deaths_number != 0) {
    print(absl::StrCat("  deaths file ", value.deaths_number, ", id ", Hex(value.deaths_file_id), "\n"));
  }
  for (const format::SegmentEntry& entry : value.segments) {
    print(absl::StrCat("  segment ", entry.number, ": ", entry.documents, " documents, ", entry.dead, " dead, ids ",
                       entry.first_id, " to ", entry.last_id, ", ", entry.file_bytes, " bytes, id ", Hex(entry.file_id),
                       "\n"));
  }
  PrintSchema(value.schema, value.schema_number, value.analyzer_identity, print);
}

// --- segment ---

std::string IndexName(format::IndexId index, const Schema& schema) {
  if (index == format::kGroupIndex) return "group";
  return index < schema.fields.size() ? Quoted(schema.fields[index].name) : absl::StrCat(index);
}

void PrintMeta(const format::SegmentMeta& meta, const PrintTo& print) {
  print(absl::StrCat("meta: segment ", meta.number, ", generation ", meta.generation, ", ", meta.documents,
                     " documents, ids ", meta.first_id, " to ", meta.last_id, "\n"));
  if (meta.largest_field != format::kNoField) {
    print(absl::StrCat("  largest field of the group: ", IndexName(meta.largest_field, meta.schema), "\n"));
  }
  for (const format::IndexSummary& index : meta.indexes) {
    print(absl::StrCat("  index ", IndexName(index.index, meta.schema), ": ", index.terms, " terms, ", index.postings,
                       " postings\n"));
  }
  for (const format::LengthSummary& lengths : meta.lengths) {
    print(absl::StrCat("  lengths of ", IndexName(lengths.index, meta.schema), ": ", lengths.sum, " together\n"));
  }
  PrintSchema(meta.schema, meta.schema_number, meta.analyzer_identity, print);
}

absl::Status PrintDocuments(const segment::SegmentImpl& segment, const PrintTo& print) {
  print("documents: ordinal, DocumentId, key, stored values\n");
  for (uint32_t ordinal = 0; ordinal < segment.document_count(); ++ordinal) {
    ASHLAR_ASSIGN_OR_RETURN(const DocumentId id, segment.IdOf(ordinal));
    print(absl::StrCat("  ", ordinal, " ", id, " "));
    if (segment.key_field() >= 0) {
      ASHLAR_ASSIGN_OR_RETURN(const std::string key, segment.KeyOf(ordinal));
      print(Quoted(key));
    }
    ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer stored, segment.StoredOf(ordinal));
    print(absl::StrCat(" ", DocumentText(stored, segment.schema()).value_or("(malformed)"), "\n"));
  }
  return absl::OkStatus();
}

absl::Status PrintLengths(const segment::SegmentImpl& segment, format::IndexId index, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const segment::LengthReader lengths, segment.Lengths(index));
  print(absl::StrCat("lengths of ", IndexName(index, segment.schema()), ":"));
  for (uint32_t ordinal = 0; ordinal < segment.document_count(); ++ordinal) print(absl::StrCat(" ", lengths[ordinal]));
  print("\n");
  return absl::OkStatus();
}

// "ordinal:frequency@positions".
absl::Status PrintPosting(segment::PostingCursor* cursor, bool positions, const PrintTo& print) {
  print(absl::StrCat(" ", cursor->document(), ":", cursor->frequency()));
  if (!positions) return absl::OkStatus();
  std::vector<uint32_t> places;
  ASHLAR_RETURN_IF_ERROR(cursor->AppendPositions(&places));
  for (size_t i = 0; i < places.size(); ++i) print(absl::StrCat(i == 0 ? "@" : ",", places[i]));
  return absl::OkStatus();
}

absl::Status PrintIndex(const segment::SegmentImpl& segment, format::IndexId index, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const segment::IndexReader* reader, segment.IndexOf(index));
  if (reader == nullptr) return absl::OkStatus();
  print(absl::StrCat("index ", IndexName(index, segment.schema()), ": term, documents, ordinal:frequency@positions\n"));
  segment::TermIterator terms = reader->Terms();
  while (terms.Next()) {
    segment::PostingCursor cursor = terms.OpenCursor();
    print(absl::StrCat("  ", Quoted(terms.term()), " ", cursor.postings()));
    for (; cursor.document() != format::kNoDocument; cursor.Next()) {
      ASHLAR_RETURN_IF_ERROR(PrintPosting(&cursor, reader->shape().positions, print));
    }
    ASHLAR_RETURN_IF_ERROR(cursor.status());
    print("\n");
  }
  return terms.status();
}

// A segment file says all that the catalog would say of it.
format::SegmentEntry EntryOf(const format::SegmentMeta& meta, const format::SegmentFooter& footer) {
  format::SegmentEntry entry;
  entry.number = meta.number;
  entry.file_id = footer.file_id;
  entry.file_bytes = footer.file_bytes;
  entry.documents = meta.documents;
  entry.first_id = meta.first_id;
  entry.last_id = meta.last_id;
  return entry;
}

absl::Status DumpSegment(ByteSpan bytes, const format::FileHeader& header, const std::string& path,
                         const PrintTo& print) {
  if (bytes.size() < format::kFileHeaderBytes + format::kSegmentFooterBytes) {
    return DataLoss(path, "footer", bytes.size(), "the file is too short");
  }
  const size_t footer_offset = bytes.size() - format::kSegmentFooterBytes;
  ASHLAR_ASSIGN_OR_RETURN(
      const format::SegmentFooter footer,
      format::DecodeSegmentFooter(bytes.subspan(footer_offset), header.file_id, bytes.size(), path));
  print(absl::StrCat("footer: generation ", footer.generation, ", data to ", footer.data_end, ", ", footer.root_count,
                     " checksum roots at ", footer.root_offset, ", ", footer.table_count, " sections at ",
                     footer.table_offset, "\nsections\n"));
  const uint64_t table_bytes = uint64_t{footer.table_count} * format::kSectionEntryBytes;
  if (footer.table_offset > bytes.size() || table_bytes > bytes.size() - footer.table_offset) {
    return DataLoss(path, "section table", footer.table_offset, "it is not inside the file");
  }
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<format::SectionEntry> sections,
                          format::DecodeSectionTable(bytes.subspan(footer.table_offset, table_bytes), footer, path));
  std::optional<format::SegmentMeta> meta;
  for (const format::SectionEntry& section : sections) {
    print(absl::StrFormat("  %-20s offset %12d  length %12d  flags %d\n",
                          format::SectionLabel(section.kind, section.id), section.offset, section.length,
                          section.flags));
    if (section.kind == format::SectionKind::kMeta) {
      meta = format::DecodeSegmentMeta(bytes.subspan(section.offset, section.length));
    }
  }
  if (!meta.has_value()) return DataLoss(path, "meta", 0, "there is none, or it is malformed");
  PrintMeta(*meta, print);

  // Array mode: every page is verified before anything of it is printed.
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  ASHLAR_ASSIGN_OR_RETURN(const auto segment,
                          segment::SegmentImpl::OpenFile(env::PosixEnv(), directory, EntryOf(*meta, footer),
                                                         header.store_id, footer.generation, OpenMode::kArray));
  ASHLAR_RETURN_IF_ERROR(PrintDocuments(*segment, print));
  for (const format::LengthSummary& lengths : meta->lengths) {
    ASHLAR_RETURN_IF_ERROR(PrintLengths(*segment, lengths.index, print));
  }
  for (const format::IndexSummary& index : meta->indexes) {
    ASHLAR_RETURN_IF_ERROR(PrintIndex(*segment, index.index, print));
  }
  return absl::OkStatus();
}

// --- files without a frame ---

absl::StatusOr<format::CatalogValue> ReadCatalog(const std::string& directory) {
  ASHLAR_ASSIGN_OR_RETURN(const auto catalog, catalog::OpenCatalog(env::PosixEnv(), directory, catalog::Access::kRead));
  return catalog->Read();
}

absl::Status DumpCatalog(const std::string& directory, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue value, ReadCatalog(directory));
  PrintCatalogValue(value, print);
  return absl::OkStatus();
}

absl::Status DumpStatusPage(const std::string& directory, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue value, ReadCatalog(directory));
  ASHLAR_ASSIGN_OR_RETURN(const auto page,
                          journal::StatusPage::Open(env::PosixEnv(), directory, value.store_id, /*writable=*/false));
  const std::optional<journal::Status> status = page->Load();
  if (!status.has_value()) {
    print("status page: never written, or of another store\n");
    return absl::OkStatus();
  }
  print(absl::StrCat("status page: sequence ", status->sequence, ", journal file ", status->position.number,
                     ", offset ", status->position.offset, ", generation ", status->generation, "\n"));
  return absl::OkStatus();
}

absl::Status DumpLock(const std::string& path, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, env::ReadFile(*env::PosixEnv().files, path));
  print(absl::StrCat("lock file: last written by ", Quoted(AsString(bytes)), "\n"));
  return absl::OkStatus();
}

absl::Status DumpFramed(const std::string& path, const PrintTo& print) {
  ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer bytes, env::ReadFile(*env::PosixEnv().files, path));
  if (bytes.size() < format::kFileHeaderBytes) return DataLoss(path, "frame", bytes.size(), "the file is too short");
  // The kind is the file's own claim; the header's checksum vouches for it.
  const auto kind = static_cast<format::FileKind>(LoadU16(bytes.data() + 8));
  ASHLAR_ASSIGN_OR_RETURN(const format::FileHeader header, format::DecodeFileHeader(bytes, kind, path));
  PrintHeader(header, print);
  switch (kind) {
    case format::FileKind::kJournal:
      return DumpJournal(bytes, path, print);
    case format::FileKind::kSegment:
      return DumpSegment(bytes, header, path, print);
    case format::FileKind::kDeaths:
      return DumpDeaths(bytes, path, print);
    case format::FileKind::kCatalogValue: {
      ASHLAR_ASSIGN_OR_RETURN(const format::CatalogValue value, format::DecodeCatalogValue(bytes, path));
      PrintCatalogValue(value, print);
      return absl::OkStatus();
    }
  }
  return DataLoss(path, "frame", 8, "there is no such kind of file");
}

}  // namespace

absl::Status DumpFile(const std::string& path, const PrintTo& print) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  print(absl::StrCat("file ", path, "\n"));
  if (name == engine::kLockFileName) return DumpLock(path, print);
  if (name == journal::kStatusFileName) return DumpStatusPage(directory, print);
  if (catalog::IsCatalogFile(name)) return DumpCatalog(directory, print);
  return DumpFramed(path, print);
}

}  // namespace ashlar::tools
