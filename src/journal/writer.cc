// The journal's writing side (SPEC J-*). A file gets its name only when its zeros and its header are durable, and only
// after the file before it was synced; so a file that can be seen vouches for everything before it.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/journal_record.h"
#include "src/base/check.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/journal/file_scanner.h"
#include "src/journal/journal.h"

namespace ashlar::journal {
namespace {

using format::JournalRecord;
using format::RecordType;

constexpr size_t kCopyBytes = size_t{1} << 20;

// A new file of zeros. Really written, not reserved: a commit then changes no metadata, and a sync of it writes data
// only.
absl::StatusOr<std::unique_ptr<env::WritableFile>> CreateZeros(env::FileSystem& files, const std::string& path,
                                                               uint64_t bytes) {
  ASHLAR_ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (exists) ASHLAR_RETURN_IF_ERROR(files.Remove(path));  // left by a crash
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::WritableFile> file, files.CreateFile(path));
  const ByteBuffer zeros(std::min<uint64_t>(kCopyBytes, bytes));
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t n = std::min<uint64_t>(zeros.size(), bytes - at);
    if (const absl::Status status = file->WriteAt(at, ByteSpan(zeros).first(n)); !status.ok()) {
      file.reset();
      files.Remove(path).IgnoreError();
      return status;
    }
    at += n;
  }
  return file;
}
constexpr int kNumberAttemptsMax = 1 << 16;

// Files set aside: as many as one flush lets go of, so that where data keeps coming hardly a file is filled with zeros.
constexpr size_t kSparesMax = 4;
std::string SpareFileName(size_t i) {
  return i == 0 ? std::string(kSpareFileName) : absl::StrCat("journal-spare-", i, ".jnl");
}

// Every file keeps room for the seal, so that closing never needs a new file.
constexpr uint64_t kSealBytes = format::kRecordHeaderBytes;

class FileWriter : public Writer {
 public:
  FileWriter(env::Env env, std::string directory, FileContext context, std::function<uint64_t()> next_number,
             const WriterOptions& options)
      : env_(env),
        files_(*env.files),
        directory_(std::move(directory)),
        context_(std::move(context)),
        next_number_(std::move(next_number)),
        options_(options) {}

  absl::Status Start(const ReplayEnd& previous);
  absl::Status Resume(const ReplayEnd& previous);

  absl::Status Append(std::span<const Record> records) override;
  absl::Status Sync() override;
  absl::Status Rotate(const FileContext& context) override;
  absl::Status Prepare() override;
  uint64_t SpareWanted() override;
  absl::Status AdoptSpare() override;
  using Writer::Seal;
  absl::Status Seal(Sequence next_sequence) override;
  absl::Status DropBelow(uint64_t number) override;
  absl::Status EraseBelow(uint64_t number) override;

  Position end() const override { return {number_, end_}; }
  Position synced() const override { return {number_, synced_}; }
  Position seal_position() const override { return {number_, end_ - kSealBytes}; }
  bool broken() const override { return broken_; }
  WriterCounters counters() const override { return counters_; }
  uint64_t file_count() const override { return sizes_.size(); }
  uint64_t file_bytes() const override {
    uint64_t bytes = 0;
    for (const auto& [number, size] : sizes_) bytes += size;
    return bytes;
  }

 private:
  std::string PathOf(std::string_view name) const { return env::JoinPath(directory_, name); }
  absl::Status CheckUsable() const;
  absl::Status Break(absl::Status cause);
  absl::Status SyncFile(env::WritableFile& file);
  absl::Status SyncDirectory();

  absl::Status FindFiles();
  // What a new file takes over from the one before: the records in [from, to) of it.
  struct Tail {
    std::unique_ptr<FileScanner> scanner;  // null: nothing
    uint64_t from = 0, to = 0;
    uint64_t chain = 0;  // of the record that ends at `from`
    Sequence last_sequence = 0;
  };
  absl::StatusOr<Tail> FindTail(const ReplayEnd& previous);
  absl::Status CopyTail(const Tail& tail, const format::JournalHeader& header, env::WritableFile& file,
                        uint64_t* offset, uint64_t* chain) const;
  Tail NoTail() const {
    Tail tail;
    tail.from = tail.to = end_;
    tail.chain = chain_;
    tail.last_sequence = last_sequence_;
    return tail;
  }
  absl::Status RewriteSeal(const ReplayEnd& previous);
  absl::Status CheckRecords(std::span<const Record> records) const;
  // Encodes the group as it will lie at the end of the current file; the last record's checksum goes to `chain`.
  ByteBuffer EncodeGroup(std::span<const Record> records, uint64_t* chain) const;
  absl::Status VoidGroup(const absl::Status& cause);

  uint64_t NextCapacity() const;
  absl::StatusOr<uint64_t> TakeNumber();
  // A file of at least `needed` bytes of room, written once: the spare, or a new one under its temporary name.
  struct Blank {
    std::string path;
    std::unique_ptr<env::WritableFile> file;
    bool recycled = false;
  };
  absl::StatusOr<Blank> OpenBlank(uint64_t capacity, uint64_t capacity_min);
  absl::StatusOr<Blank> OpenSpare(uint64_t capacity_min);
  // Takes over a file, in the place of a smaller spare if there are as many as may be. False: it is of no use.
  absl::StatusOr<bool> SetAside(const std::string& path, uint64_t bytes);
  absl::StatusOr<Blank> CreateBlank(uint64_t capacity);
  bool HasSpare() const {
    return std::any_of(spares_.begin(), spares_.end(), [](uint64_t bytes) { return bytes != 0; });
  }
  // Goes over to a new file with room for `group_bytes`. The current file must be synced up to the tail.
  absl::Status StartFile(uint64_t group_bytes, const Tail& tail);
  format::JournalHeader MakeHeader(uint64_t number, const Tail& tail);
  absl::Status FillBlank(const Tail& tail, format::JournalHeader* header, env::WritableFile& file, uint64_t* chain);
  void RemoveQuietly(const std::string& path) { files_.Remove(path).IgnoreError(); }

  const env::Env env_;
  env::FileSystem& files_;
  const std::string directory_;
  FileContext context_;
  const std::function<uint64_t()> next_number_;
  const WriterOptions options_;

  std::unique_ptr<env::WritableFile> file_;
  uint64_t number_ = 0, salt_ = 0, capacity_ = 0;
  uint64_t end_ = 0, synced_ = 0;  // offsets in the current file
  uint64_t chain_ = 0;
  Sequence last_sequence_ = 0;
  bool broken_ = false, sealed_ = false;
  bool seal_is_last_ = false;  // nothing was appended since the journal was continued
  WriterCounters counters_;
  uint64_t spare_asked_in_ = 0;  // the file in which SpareWanted last asked for a spare
  uint64_t spare_asked_bytes_ = 0;
  std::array<uint64_t, kSparesMax> spares_{};  // bytes of each spare; 0: there is none
  std::map<uint64_t, uint64_t> sizes_;         // of the files that exist, by number
};

absl::Status FileWriter::CheckUsable() const {
  if (broken_) return FailedPrecondition("the journal is broken after a failed sync; reopen the store");
  if (sealed_) return FailedPrecondition("the journal is sealed");
  return absl::OkStatus();
}

absl::Status FileWriter::Break(absl::Status cause) {
  broken_ = SiteIsOn(Site::kWriteFailedSyncIsFinal);
  return cause;
}

absl::Status FileWriter::SyncFile(env::WritableFile& file) {
  ++counters_.syncs;
  const absl::Status status = file.Sync();
  return status.ok() ? status : Break(status);
}

absl::Status FileWriter::SyncDirectory() {
  if (!SiteIsOn(Site::kJournalDirectorySync)) return absl::OkStatus();
  const absl::Status status = files_.SyncDirectory(directory_);
  return status.ok() ? status : Break(status);
}

// ---- Beginning.

absl::Status FileWriter::FindFiles() {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, files_.List(directory_));
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    for (size_t i = 0; i < kSparesMax; ++i)
      if (entry.is_file && entry.name == SpareFileName(i)) {
        ASHLAR_ASSIGN_OR_RETURN(spares_[i], files_.FileSize(PathOf(entry.name)));
      }
    const std::optional<uint64_t> number = NumberOf(entry.name);
    if (!entry.is_file || !number.has_value()) continue;
    ASHLAR_ASSIGN_OR_RETURN(sizes_[*number], files_.FileSize(PathOf(entry.name)));
  }
  return absl::OkStatus();
}

// Finds the last record boundary of the previous file that is known to be durable; what lies behind it is to be copied.
absl::StatusOr<FileWriter::Tail> FileWriter::FindTail(const ReplayEnd& previous) {
  Tail tail;
  tail.from = tail.to = previous.end.offset;
  tail.chain = previous.chain;
  tail.last_sequence = previous.last_sequence;
  if (previous.end.number == 0) return tail;
  absl::StatusOr<std::unique_ptr<FileScanner>> scanner =
      FileScanner::Open(files_, PathOf(FileName(previous.end.number)));
  if (absl::IsNotFound(scanner.status())) return tail;  // dropped: the catalog's floor is beyond it
  ASHLAR_RETURN_IF_ERROR(scanner.status());
  if (!SiteIsOn(Site::kJournalCopyTail)) return tail;
  tail.scanner = *std::move(scanner);
  tail.from = tail.scanner->first_offset();
  tail.chain = tail.scanner->header().previous_chain;
  tail.last_sequence = tail.scanner->header().next_sequence - 1;
  while (tail.from < previous.durable_to) {
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<ScannedRecord> record,
                            tail.scanner->RecordAt(tail.from, previous.durable_to));
    if (!record.has_value()) break;
    tail.from += record->bytes;
    tail.chain = record->header.checksum;
    if (record->header.record.type == RecordType::kSeal) tail.last_sequence = record->header.record.first_sequence - 1;
    if (record->header.record.type != RecordType::kBatch) continue;
    tail.last_sequence = record->header.record.first_sequence + record->header.record.operation_count - 1;
  }
  return tail;
}

// Writes the batches of the tail behind the header of a new file; `offset` and `chain` move along.
absl::Status FileWriter::CopyTail(const Tail& tail, const format::JournalHeader& header, env::WritableFile& file,
                                  uint64_t* offset, uint64_t* chain) const {
  ByteBuffer buffer;
  uint64_t buffer_at = *offset;
  for (uint64_t at = tail.from; at < tail.to;) {
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<ScannedRecord> scanned, tail.scanner->RecordAt(at, tail.to));
    if (!scanned.has_value())
      return DataLoss(tail.scanner->path(), "journal record", at, "what was replayed can't be read again");
    at += scanned->bytes;
    if (scanned->header.record.type != RecordType::kBatch) continue;
    JournalRecord record = scanned->header.record;
    record.durable_to = 0;  // the header's synced_end vouches for it
    record.chain = *chain;
    *chain = format::AppendRecord(record, scanned->payload, {header.salt, header.number, *offset}, &buffer);
    *offset = buffer_at + buffer.size();
    if (buffer.size() < kCopyBytes && at < tail.to) continue;
    ASHLAR_RETURN_IF_ERROR(file.WriteAt(buffer_at, buffer));
    buffer_at = *offset;
    buffer.clear();
  }
  return buffer.empty() ? absl::OkStatus() : file.WriteAt(buffer_at, buffer);
}

absl::Status FileWriter::Start(const ReplayEnd& previous) {
  ASHLAR_RETURN_IF_ERROR(FindFiles());
  number_ = previous.end.number;
  end_ = previous.end.offset;
  capacity_ = previous.capacity;
  last_sequence_ = previous.last_sequence;
  ASHLAR_ASSIGN_OR_RETURN(const Tail tail, FindTail(previous));
  return StartFile(0, tail);
}

// The seal may be in the page cache only, clean after a failed sync and never to be written. So it is written again,
// the same bytes; all before it is durable, so nothing that matters is at risk meanwhile.
absl::Status FileWriter::RewriteSeal(const ReplayEnd& previous) {
  const std::string path = PathOf(FileName(previous.end.number));
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::ReadableFile> in, files_.OpenForRead(path));
  ASHLAR_ASSIGN_OR_RETURN(file_, files_.OpenForWrite(path));
  const uint64_t at = previous.end.offset - kSealBytes;
  ByteBuffer seal(kSealBytes);
  ASHLAR_RETURN_IF_ERROR(env::ReadExactly(*in, path, "journal record", at, seal));
  if (SiteIsOn(Site::kJournalSealRewrite)) ASHLAR_RETURN_IF_ERROR(file_->WriteAt(at, seal));
  return SiteIsOn(Site::kJournalSealRewriteSync) ? SyncFile(*file_) : absl::OkStatus();
}

absl::Status FileWriter::Resume(const ReplayEnd& previous) {
  if (!previous.sealed || previous.end.number == 0) return FailedPrecondition("only a sealed journal is continued");
  ASHLAR_RETURN_IF_ERROR(FindFiles());
  ASHLAR_RETURN_IF_ERROR(RewriteSeal(previous));
  number_ = previous.end.number;
  salt_ = previous.salt;
  capacity_ = file_->size();
  end_ = synced_ = previous.end.offset;
  chain_ = previous.chain;
  last_sequence_ = previous.last_sequence;
  seal_is_last_ = true;
  return absl::OkStatus();
}

// ---- Records.

absl::Status FileWriter::CheckRecords(std::span<const Record> records) const {
  Sequence last = last_sequence_;
  for (const Record& record : records) {
    if (record.operation_count == 0 || record.first_sequence <= last || record.last_sequence() < record.first_sequence)
      return InvalidArgument(absl::StrCat("journal: sequence ", record.first_sequence, " with ", record.operation_count,
                                          " operations does not follow ", last));
    if (record.operations.size() > format::kRecordPayloadBytesMax)
      return ResourceExhausted(absl::StrCat("journal: a batch of ", record.operations.size(), " bytes is too large"));
    last = record.last_sequence();
  }
  return absl::OkStatus();
}

ByteBuffer FileWriter::EncodeGroup(std::span<const Record> records, uint64_t* chain) const {
  ByteBuffer bytes;
  *chain = chain_;
  for (const Record& in : records) {
    JournalRecord record;
    record.type = RecordType::kBatch;
    record.first_sequence = in.first_sequence;
    record.operation_count = in.operation_count;
    record.schema_number = in.schema_number;
    record.durable_to = SiteIsOn(Site::kJournalDurableTo) ? synced_ : end_;
    record.chain = *chain;
    *chain = format::AppendRecord(record, in.operations, {salt_, number_, end_ + bytes.size()}, &bytes);
  }
  return bytes;
}

absl::Status FileWriter::Append(std::span<const Record> records) {
  ASHLAR_RETURN_IF_ERROR(CheckUsable());
  if (records.empty()) return absl::OkStatus();
  ASHLAR_RETURN_IF_ERROR(CheckRecords(records));
  uint64_t group_bytes = 0;
  for (const Record& record : records) group_bytes += format::RecordBytes(record.operations.size());
  if (end_ > capacity_ || capacity_ - end_ < group_bytes + kSealBytes) {
    if (SiteIsOn(Site::kJournalSyncBeforeNextFile)) ASHLAR_RETURN_IF_ERROR(Sync());
    ASHLAR_RETURN_IF_ERROR(StartFile(group_bytes, NoTail()));
  }
  uint64_t chain = 0;
  const ByteBuffer bytes = EncodeGroup(records, &chain);
  ASHLAR_DCHECK(bytes.size() == group_bytes);
  ++counters_.writes;
  const absl::Status status = file_->WriteAt(end_, bytes);
  if (!status.ok()) return VoidGroup(status);
  counters_.bytes += bytes.size();
  end_ += bytes.size();
  chain_ = chain;
  seal_is_last_ = false;
  last_sequence_ = records.back().last_sequence();
  return absl::OkStatus();
}

// Any part of the group may be in the file, whole records too. The marker takes the place of the first one, so nothing
// chains to the others; and the journal goes on behind the marker, because at the same offset the same batch, tried
// again, would have the same bytes as before and make the rest of the failed group follow it.
absl::Status FileWriter::VoidGroup(const absl::Status& cause) {
  JournalRecord marker;
  marker.type = RecordType::kVoid;
  marker.first_sequence = last_sequence_ + 1;
  marker.durable_to = synced_;
  marker.chain = chain_;
  ByteBuffer bytes;
  const uint64_t chain = format::AppendRecord(marker, {}, {salt_, number_, end_}, &bytes);
  seal_is_last_ = false;
  ++counters_.writes;
  absl::Status undone;
  if (SiteIsOn(Site::kJournalVoid)) undone = file_->WriteAt(end_, bytes);
  if (undone.ok() && SiteIsOn(Site::kJournalVoidSync)) undone = SyncFile(*file_);
  if (!undone.ok()) {
    broken_ = true;
    return Annotate(cause, "journal write failed and could not be undone");
  }
  end_ += bytes.size();
  synced_ = end_;
  chain_ = chain;
  return cause;
}

absl::Status FileWriter::Sync() {
  ASHLAR_RETURN_IF_ERROR(CheckUsable());
  if (synced_ == end_) return absl::OkStatus();
  if (SiteIsOn(Site::kJournalSync)) ASHLAR_RETURN_IF_ERROR(SyncFile(*file_));
  synced_ = end_;
  return absl::OkStatus();
}

absl::Status FileWriter::Seal(Sequence next_sequence) {
  // The seal says that everything before it is durable.
  if (SiteIsOn(Site::kJournalSyncBeforeSeal)) ASHLAR_RETURN_IF_ERROR(Sync());
  for (size_t i = 0; i < kSparesMax; ++i)  // a closed store keeps no empty file
    if (std::exchange(spares_[i], 0) != 0) RemoveQuietly(PathOf(SpareFileName(i)));
  sealed_ = seal_is_last_;
  if (sealed_) return file_->Close();
  JournalRecord seal;
  seal.type = RecordType::kSeal;
  seal.first_sequence = std::max(last_sequence_ + 1, next_sequence);
  seal.durable_to = synced_;
  seal.chain = chain_;
  ByteBuffer bytes;
  const uint64_t chain = format::AppendRecord(seal, {}, {salt_, number_, end_}, &bytes);
  ++counters_.writes;
  if (const absl::Status status = file_->WriteAt(end_, bytes); !status.ok()) return Break(status);
  // Opening looks through all that follows the seal (64 MiB: 30 ms), so only a small file's worth stays.
  const uint64_t keep = end_ + bytes.size() + options_.first_file_bytes;
  if (capacity_ > keep && file_->Truncate(keep).ok()) capacity_ = sizes_[number_] = keep;
  if (SiteIsOn(Site::kJournalSealSync)) ASHLAR_RETURN_IF_ERROR(SyncFile(*file_));
  counters_.bytes += bytes.size();
  end_ += bytes.size();
  synced_ = end_;
  chain_ = chain;
  sealed_ = true;
  return file_->Close();
}

// ---- Files.

// Doubles while files fill up; a file that was left early is followed by one of its own size.
uint64_t FileWriter::NextCapacity() const {
  if (capacity_ == 0) return options_.first_file_bytes;
  const uint64_t doubled = capacity_ > options_.file_bytes_max / 2 ? options_.file_bytes_max : capacity_ * 2;
  const uint64_t next = end_ >= capacity_ / 2 ? doubled : capacity_;
  return std::clamp(next, std::min(options_.first_file_bytes, options_.file_bytes_max), options_.file_bytes_max);
}

// A number above every file's: after a crash the catalog may not know of the last files.
absl::StatusOr<uint64_t> FileWriter::TakeNumber() {
  const uint64_t used = std::max(number_, sizes_.empty() ? 0 : sizes_.rbegin()->first);
  for (int i = 0; i < kNumberAttemptsMax; ++i) {
    const uint64_t number = next_number_();
    if (number > used) return number;
  }
  return Internal(absl::StrCat("journal: no file number above ", used, " was given"));
}

absl::StatusOr<FileWriter::Blank> FileWriter::OpenSpare(uint64_t capacity_min) {
  const auto largest = std::max_element(spares_.begin(), spares_.end());
  if (*largest < capacity_min) return NotFound("no spare file is large enough");
  const std::string path = PathOf(SpareFileName(static_cast<size_t>(largest - spares_.begin())));
  *largest = 0;
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::WritableFile> file, files_.OpenForWrite(path));
  // Else power loss might give the overwritten file its old name back, and nobody could tell whose it is.
  if (SiteIsOn(Site::kJournalSpareSync)) ASHLAR_RETURN_IF_ERROR(files_.SyncDirectory(directory_));
  return Blank{path, std::move(file), true};
}

absl::StatusOr<bool> FileWriter::SetAside(const std::string& path, uint64_t bytes) {
  const auto smallest = std::min_element(spares_.begin(), spares_.end());
  // Not what a large batch blew up, nor files of the time when they were small.
  if (bytes <= *smallest || bytes > options_.file_bytes_max || bytes < NextCapacity() / 2) return false;
  ASHLAR_RETURN_IF_ERROR(files_.Rename(path, PathOf(SpareFileName(static_cast<size_t>(smallest - spares_.begin())))));
  *smallest = bytes;
  return true;
}

absl::StatusOr<FileWriter::Blank> FileWriter::CreateBlank(uint64_t capacity) {
  const std::string path = PathOf(kNewFileName);
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::WritableFile> file, CreateZeros(files_, path, capacity));
  return Blank{path, std::move(file), false};
}

absl::StatusOr<FileWriter::Blank> FileWriter::OpenBlank(uint64_t capacity, uint64_t capacity_min) {
  absl::StatusOr<Blank> spare = OpenSpare(capacity_min);
  if (spare.ok() || !absl::IsNotFound(spare.status())) return spare;
  absl::StatusOr<Blank> blank = CreateBlank(capacity);
  // Where a large file finds no room, a small one may.
  if (absl::IsResourceExhausted(blank.status()) && capacity_min < capacity) return CreateBlank(capacity_min);
  return blank;
}

format::JournalHeader FileWriter::MakeHeader(uint64_t number, const Tail& tail) {
  format::JournalHeader header;
  std::array<std::byte, 8> salt;
  env_.entropy->Fill(salt);
  env_.entropy->Fill(header.file_id);
  header.store_id = context_.store_id;
  header.salt = LoadU64(salt.data());
  header.number = number;
  header.next_sequence = tail.last_sequence + 1;
  header.previous_number = number_;
  header.previous_end = tail.from;
  header.previous_chain = tail.chain;
  header.generation = context_.generation;
  header.schema_number = context_.schema_number;
  header.schema = context_.schema;
  header.analyzer_identity = context_.analyzer_identity;
  return header;
}

// The tail, the header, one sync. A spare's old content stays: the salt makes it invalid.
absl::Status FileWriter::FillBlank(const Tail& tail, format::JournalHeader* header, env::WritableFile& file,
                                   uint64_t* chain) {
  uint64_t end = format::EncodeJournalHeader(*header).size();
  ASHLAR_RETURN_IF_ERROR(CopyTail(tail, *header, file, &end, chain));
  header->synced_end = end;
  ASHLAR_RETURN_IF_ERROR(file.WriteAt(0, format::EncodeJournalHeader(*header)));
  if (!SiteIsOn(Site::kJournalNewFileSync)) return absl::OkStatus();
  ++counters_.syncs;
  const absl::Status status = file.Sync();
  // No room for a file that nobody needs yet is no harm done; any other failed sync is final.
  if (!status.ok() && !absl::IsResourceExhausted(status)) broken_ = true;
  return status;
}

absl::Status FileWriter::StartFile(uint64_t group_bytes, const Tail& tail) {
  ASHLAR_ASSIGN_OR_RETURN(const uint64_t number, TakeNumber());
  format::JournalHeader header = MakeHeader(number, tail);
  const uint64_t header_bytes = format::EncodeJournalHeader(header).size();
  if (header_bytes > format::kJournalHeaderBytesMax) return InvalidArgument("journal: the schema is too large");

  const uint64_t needed = header_bytes + (tail.to - tail.from) + group_bytes + kSealBytes;
  ASHLAR_ASSIGN_OR_RETURN(Blank blank,
                          OpenBlank(std::max(NextCapacity(), needed), std::max(options_.first_file_bytes, needed)));
  header.recycled = blank.recycled;
  uint64_t chain = tail.chain;
  if (!SiteIsOn(Site::kJournalNameAfterSync)) {
    ASHLAR_RETURN_IF_ERROR(files_.Rename(blank.path, PathOf(FileName(number))));
    blank.path = PathOf(FileName(number));
  }
  const absl::Status status = FillBlank(tail, &header, *blank.file, &chain);
  if (!status.ok()) {
    blank.file.reset();
    RemoveQuietly(blank.path);
    return status;
  }
  if (const absl::Status renamed = files_.Rename(blank.path, PathOf(FileName(number))); !renamed.ok()) {
    // A file that has its name all the same ends the one before it, so nothing more may go there.
    const absl::StatusOr<bool> exists = files_.Exists(PathOf(FileName(number)));
    return exists.ok() && !*exists ? renamed : Break(renamed);
  }
  ASHLAR_RETURN_IF_ERROR(SyncDirectory());

  ++(blank.recycled ? counters_.files_recycled : counters_.files_created);
  if (number_ != 0) ++counters_.rotations;
  // Opened again under its name, so that errors name the file that is there.
  absl::StatusOr<std::unique_ptr<env::WritableFile>> named = files_.OpenForWrite(PathOf(FileName(number)));
  file_ = named.ok() ? *std::move(named) : std::move(blank.file);
  number_ = number;
  seal_is_last_ = false;
  salt_ = header.salt;
  capacity_ = file_->size();
  sizes_[number] = capacity_;
  end_ = synced_ = header.synced_end;
  chain_ = chain;
  return absl::OkStatus();
}

absl::Status FileWriter::Rotate(const FileContext& context) {
  if (SiteIsOn(Site::kJournalSyncBeforeRotation)) ASHLAR_RETURN_IF_ERROR(Sync());
  FileContext before = std::exchange(context_, context);
  absl::Status status = StartFile(0, NoTail());
  if (!status.ok()) context_ = std::move(before);
  return status;
}

absl::Status FileWriter::Prepare() {
  ASHLAR_RETURN_IF_ERROR(CheckUsable());
  if (HasSpare()) return absl::OkStatus();
  const uint64_t bytes = NextCapacity();
  ASHLAR_ASSIGN_OR_RETURN(const Blank blank, CreateBlank(bytes));
  ++counters_.syncs;
  if (const absl::Status status = blank.file->Sync(); !status.ok()) {
    if (!absl::IsResourceExhausted(status)) broken_ = true;
    RemoveQuietly(blank.path);
    return status;
  }
  return SetAside(blank.path, bytes).status();
}

uint64_t FileWriter::SpareWanted() {
  if (broken_ || sealed_ || spare_asked_in_ == number_ || end_ < capacity_ / 2 || HasSpare()) return 0;
  spare_asked_in_ = number_;
  spare_asked_bytes_ = NextCapacity();
  return spare_asked_bytes_;
}

absl::Status FileWriter::AdoptSpare() {
  const std::string path = PathOf(kNextFileName);
  absl::Status status = CheckUsable();
  if (status.ok() && !HasSpare()) {  // one that became free meanwhile does as well
    const absl::StatusOr<bool> adopted = SetAside(path, spare_asked_bytes_);
    if (adopted.ok() && *adopted) return absl::OkStatus();
    status = adopted.status();
  }
  RemoveQuietly(path);
  return status;
}

absl::Status FileWriter::DropBelow(uint64_t number) {
  ASHLAR_RETURN_IF_ERROR(CheckUsable());
  while (!sizes_.empty()) {
    const auto [lowest, size] = *sizes_.begin();
    if (lowest >= number || lowest == number_) break;
    const std::string path = PathOf(FileName(lowest));
    const absl::StatusOr<bool> kept = SetAside(path, size);
    const absl::Status status = kept.ok() && !*kept ? files_.Remove(path) : kept.status();
    if (!status.ok() && !absl::IsNotFound(status)) return status;
    sizes_.erase(sizes_.begin());
  }
  return absl::OkStatus();
}

absl::Status FileWriter::EraseBelow(uint64_t number) {
  ASHLAR_RETURN_IF_ERROR(CheckUsable());
  absl::Status result;
  const auto erase = [this, &result](const std::string& path) {
    const absl::Status status = files_.Remove(path);
    const bool gone = status.ok() || absl::IsNotFound(status);
    if (!gone) result.Update(status);
    return gone;
  };
  std::erase_if(sizes_, [&](const auto& file) {
    return file.first < number && file.first != number_ && erase(PathOf(FileName(file.first)));
  });
  for (size_t i = 0; i < kSparesMax; ++i)
    if (erase(PathOf(SpareFileName(i)))) spares_[i] = 0;
  return result;
}

}  // namespace

bool IsSpareFileName(std::string_view name) {
  for (size_t i = 0; i < kSparesMax; ++i)
    if (name == SpareFileName(i)) return true;
  return false;
}

absl::Status WriteSpare(env::Env env, const std::string& directory, uint64_t bytes) {
  const std::string path = env::JoinPath(directory, kNextFileName);
  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<env::WritableFile> file, CreateZeros(*env.files, path, bytes));
  const absl::Status status = file->Sync();
  if (status.ok()) return status;
  file.reset();
  env.files->Remove(path).IgnoreError();
  return status;
}

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(env::Env env, const std::string& directory,
                                                       const FileContext& context, const ReplayEnd& previous,
                                                       std::function<uint64_t()> next_number,
                                                       const WriterOptions& options) {
  auto writer = std::make_unique<FileWriter>(env, directory, context, std::move(next_number), options);
  ASHLAR_RETURN_IF_ERROR(writer->Start(previous));
  return std::unique_ptr<Writer>(std::move(writer));
}

absl::StatusOr<std::unique_ptr<Writer>> Writer::Continue(env::Env env, const std::string& directory,
                                                         const FileContext& context, const ReplayEnd& previous,
                                                         std::function<uint64_t()> next_number,
                                                         const WriterOptions& options) {
  auto writer = std::make_unique<FileWriter>(env, directory, context, std::move(next_number), options);
  ASHLAR_RETURN_IF_ERROR(writer->Resume(previous));
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace ashlar::journal
