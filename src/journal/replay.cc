// Replay: the journal's files as one chain of records (SPEC J-8, J-9). Decides where the journal ends and whether what lies
// behind that end is a torn tail or damage.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/file_number.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/journal/file_scanner.h"
#include "src/journal/journal.h"

namespace ashlar::journal {
namespace {

using format::RecordType;

constexpr std::string_view kRecordSection = "journal record";
constexpr std::string_view kHeaderSection = "journal header";

class Replayer {
 public:
  Replayer(env::Env env, const std::string& directory, const ReplayOptions& options,
           const std::function<absl::Status(const Record&)>& visit, std::vector<FileContext>* headers)
      : files_(*env.files), directory_(directory), options_(options), visit_(visit), headers_(headers) {}

  absl::StatusOr<ReplayEnd> Run();

 private:
  bool resumes() const { return options_.resume.has_value() && options_.resume->end.number != 0; }
  // Somebody else may be writing: what does not fit together may just have moved on.
  bool beside_writer() const { return options_.limit.has_value() || options_.resume.has_value(); }

  absl::StatusOr<std::vector<uint64_t>> ListNumbers();
  absl::Status CheckDurableFileIsThere(const std::vector<uint64_t>& numbers) const;
  absl::StatusOr<std::unique_ptr<FileScanner>> OpenFile(uint64_t number);
  absl::Status CheckHeader(const FileScanner& scanner, uint64_t number) const;
  absl::Status BeginFirst(const FileScanner& scanner);
  absl::Status BeginNext(const FileScanner& next);
  void BeginFile(const FileScanner& scanner);
  // Reads the records of a file, up to `end` at most.
  absl::Status ReadRecords(FileScanner& scanner, uint64_t end);
  absl::Status Take(const ScannedRecord& scanned, FileScanner& scanner);
  absl::Status EndLastFile(FileScanner& scanner);

  absl::Status Missing(uint64_t number) const;
  // A damage report, unless the file has been recycled or removed under a reader.
  absl::Status Damage(FileScanner& scanner, std::string_view section, uint64_t offset, std::string_view message) const;
  absl::Status Overtaken(const std::string& path) const {
    return WithPlace(Unavailable(absl::StrCat(path, ": the journal has moved on")), path, "", 0);
  }

  env::FileSystem& files_;
  const std::string& directory_;
  const ReplayOptions& options_;
  const std::function<absl::Status(const Record&)>& visit_;
  std::vector<FileContext>* const headers_;
  ReplayEnd state_;
  bool seal_is_last_ = false;
  bool void_is_last_ = false;
};

absl::StatusOr<std::vector<uint64_t>> Replayer::ListNumbers() {
  const uint64_t first = resumes() ? options_.resume->end.number : options_.first_number;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<env::FileSystem::DirectoryEntry> entries, files_.List(directory_));
  std::vector<uint64_t> numbers;
  for (const env::FileSystem::DirectoryEntry& entry : entries) {
    const std::optional<uint64_t> number = NumberOf(entry.name);
    if (!entry.is_file || !number.has_value() || *number < first) continue;
    if (options_.limit.has_value() && *number > options_.limit->number) continue;
    numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::Status Replayer::Missing(uint64_t number) const {
  const std::string path = env::JoinPath(directory_, FileName(number));
  if (beside_writer()) return Overtaken(path);
  return DataLoss(path, kHeaderSection, 0, "the file is missing");
}

absl::Status Replayer::Damage(FileScanner& scanner, std::string_view section, uint64_t offset,
                              std::string_view message) const {
  if (beside_writer()) {
    const absl::StatusOr<bool> exists = files_.Exists(scanner.path());
    if (!scanner.StillSame() || (exists.ok() && !*exists)) return Overtaken(scanner.path());
  }
  return DataLoss(scanner.path(), section, offset, message);
}

absl::Status Replayer::CheckDurableFileIsThere(const std::vector<uint64_t>& numbers) const {
  const Position& durable = options_.durable;
  if (!SiteIsOn(Site::kCheckJournalMissing)) return absl::OkStatus();
  if (beside_writer() || durable.number < options_.first_number || durable.offset == 0) return absl::OkStatus();
  if (std::binary_search(numbers.begin(), numbers.end(), durable.number)) return absl::OkStatus();
  return Missing(durable.number);
}

absl::StatusOr<std::unique_ptr<FileScanner>> Replayer::OpenFile(uint64_t number) {
  const std::string path = env::JoinPath(directory_, FileName(number));
  absl::StatusOr<std::unique_ptr<FileScanner>> scanner = FileScanner::Open(files_, path);
  absl::Status status = scanner.ok() ? CheckHeader(**scanner, number) : scanner.status();
  if (status.ok()) {
    const format::JournalHeader& header = (*scanner)->header();
    if (headers_ != nullptr)
      headers_->push_back(
          {header.store_id, header.schema, header.schema_number, header.analyzer_identity, header.generation});
    return scanner;
  }
  if (beside_writer() && (absl::IsDataLoss(status) || absl::IsNotFound(status))) {
    const absl::StatusOr<bool> exists = files_.Exists(path);
    if (exists.ok() && !*exists) return Overtaken(path);
  }
  return status;
}

absl::Status Replayer::CheckHeader(const FileScanner& scanner, uint64_t number) const {
  const format::JournalHeader& header = scanner.header();
  if (SiteIsOn(Site::kCheckJournalStore) && header.store_id != options_.store_id)
    return DataLoss(scanner.path(), kHeaderSection, 40, "belongs to another store");
  if (SiteIsOn(Site::kCheckJournalNumber) && header.number != number)
    return DataLoss(scanner.path(), kHeaderSection, 80, "has the number of another file");
  if (SiteIsOn(Site::kCheckJournalGeneration) && header.generation > options_.catalog_generation) {
    if (beside_writer()) return Overtaken(scanner.path());
    return DataLoss(scanner.path(), kHeaderSection, 128,
                    absl::StrCat("was made at catalog generation ", header.generation, ", but the catalog is at ",
                                 options_.catalog_generation));
  }
  return absl::OkStatus();
}

void Replayer::BeginFile(const FileScanner& scanner) {
  state_.end = {scanner.header().number, scanner.first_offset()};
  state_.salt = scanner.header().salt;
  state_.capacity = scanner.size();
  state_.durable_to = scanner.first_offset();  // its synced_end counts at the end only
  seal_is_last_ = false;
  void_is_last_ = false;
  ++state_.file_count;
}

absl::Status Replayer::BeginFirst(const FileScanner& scanner) {
  const format::JournalHeader& header = scanner.header();
  if (resumes()) {
    const ReplayEnd& from = *options_.resume;
    if (header.number != from.end.number || header.salt != from.salt) return Overtaken(scanner.path());
    state_ = from;
    state_.file_count = 1;
    state_.replayed_bytes = 0;
    state_.torn_bytes = 0;
    state_.capacity = scanner.size();
    seal_is_last_ = from.sealed;
    return absl::OkStatus();
  }
  if (header.previous_number != 0 && header.previous_number >= options_.first_number)
    return Missing(header.previous_number);
  state_.chain = header.previous_chain;
  state_.last_sequence = header.next_sequence - 1;
  BeginFile(scanner);
  return absl::OkStatus();
}

absl::Status Replayer::BeginNext(const FileScanner& next) {
  if (next.header().next_sequence <= state_.last_sequence)
    return DataLoss(next.path(), kHeaderSection, 88, "begins before the last sequence of the file before");
  state_.last_sequence = next.header().next_sequence - 1;
  BeginFile(next);
  return absl::OkStatus();
}

absl::Status Replayer::Take(const ScannedRecord& scanned, FileScanner& scanner) {
  const format::JournalRecord& record = scanned.header.record;
  if (record.first_sequence <= state_.last_sequence)
    return Damage(scanner, kRecordSection, state_.end.offset, "the sequence goes backwards");
  state_.end.offset += scanned.bytes;
  state_.replayed_bytes += scanned.bytes;
  state_.chain = scanned.header.checksum;
  state_.durable_to = std::max(state_.durable_to, record.durable_to);
  seal_is_last_ = record.type == RecordType::kSeal;
  void_is_last_ = record.type == RecordType::kVoid;
  if (record.type == RecordType::kSeal) state_.last_sequence = record.first_sequence - 1;
  if (record.type != RecordType::kBatch) return absl::OkStatus();
  Record out;
  out.first_sequence = record.first_sequence;
  out.operation_count = record.operation_count;
  out.schema_number = record.schema_number;
  out.operations = scanned.payload;
  state_.last_sequence = out.last_sequence();
  if (out.last_sequence() > options_.floor) return visit_(out);
  state_.replayed_bytes -= scanned.bytes;
  return absl::OkStatus();
}

absl::Status Replayer::ReadRecords(FileScanner& scanner, uint64_t end) {
  while (state_.end.offset < end) {
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<ScannedRecord> scanned, scanner.RecordAt(state_.end.offset, end));
    if (!scanned.has_value()) break;
    if (SiteIsOn(Site::kCheckRecordChain) && scanned->header.record.chain != state_.chain) break;
    ASHLAR_RETURN_IF_ERROR(Take(*scanned, scanner));
  }
  return absl::OkStatus();
}

// SPEC J-9: the records stop here. Damage iff something says that this offset was synced.
absl::Status Replayer::EndLastFile(FileScanner& scanner) {
  const uint64_t offset = state_.end.offset;
  const Position& durable = options_.durable;
  if (SiteIsOn(Site::kCheckTailHeader) && scanner.header().synced_end > offset)
    return Damage(scanner, kRecordSection, offset,
                  absl::StrCat("no valid record, but the file was made with records up to ",
                               scanner.header().synced_end));
  if (SiteIsOn(Site::kCheckTailDurable) && durable.number == state_.end.number && durable.offset > offset)
    return Damage(scanner, kRecordSection, offset,
                  absl::StrCat("no valid record, but the file is known to have been synced to ", durable.offset));
  ASHLAR_ASSIGN_OR_RETURN(const TailEvidence tail, scanner.Tail(offset));
  if (SiteIsOn(Site::kCheckTailRecord) && tail.durable_to > offset)
    return Damage(scanner, kRecordSection, offset,
                  absl::StrCat("no valid record, but a later one knows the file to be synced to ", tail.durable_to));
  state_.torn_bytes = tail.last_used_end - offset;
  state_.durable_to = std::max({state_.durable_to, scanner.header().synced_end, tail.durable_to});
  if (durable.number == state_.end.number) state_.durable_to = std::max(state_.durable_to, durable.offset);
  return absl::OkStatus();
}

absl::StatusOr<ReplayEnd> Replayer::Run() {
  // Behind the limit already: there is nothing to read, and what is beyond the limit is not to be looked at.
  if (resumes() && options_.limit.has_value() && *options_.limit <= options_.resume->end) return *options_.resume;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ListNumbers());
  ASHLAR_RETURN_IF_ERROR(CheckDurableFileIsThere(numbers));
  const bool limited = options_.limit.has_value() && options_.limit->number >= options_.first_number &&
                       options_.limit->number != 0;
  if (limited && (numbers.empty() || numbers.back() != options_.limit->number)) return Missing(options_.limit->number);
  if (numbers.empty()) return resumes() ? absl::StatusOr<ReplayEnd>(Missing(options_.resume->end.number)) : ReplayEnd{};

  ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<FileScanner> scanner, OpenFile(numbers.front()));
  ASHLAR_RETURN_IF_ERROR(BeginFirst(*scanner));
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    ASHLAR_ASSIGN_OR_RETURN(std::unique_ptr<FileScanner> next, OpenFile(numbers[i + 1]));
    const format::JournalHeader& link = next->header();
    if (link.previous_number != numbers[i]) return Missing(link.previous_number);
    // A writer that took over copied what was not durable; a reader that had read on starts again.
    if (resumes() && i == 0 && state_.end.offset > link.previous_end) return Overtaken(scanner->path());
    // The next file was made only after this one was synced to the end that the next one states.
    ASHLAR_RETURN_IF_ERROR(ReadRecords(*scanner, link.previous_end));
    if (SiteIsOn(Site::kCheckJournalLink) &&
        (state_.end.offset != link.previous_end || state_.chain != link.previous_chain))
      return Damage(*scanner, kRecordSection, state_.end.offset,
                    absl::StrCat("no valid record, but the next file goes on from ", link.previous_end));
    scanner = std::move(next);
    ASHLAR_RETURN_IF_ERROR(BeginNext(*scanner));
  }
  if (limited) {
    ASHLAR_RETURN_IF_ERROR(ReadRecords(*scanner, options_.limit->offset));
    if (state_.end.offset < options_.limit->offset)
      return Damage(*scanner, kRecordSection, state_.end.offset,
                    absl::StrCat("no valid record, but the writer acknowledged up to ", options_.limit->offset));
  } else {
    ASHLAR_RETURN_IF_ERROR(ReadRecords(*scanner, scanner->size()));
    ASHLAR_RETURN_IF_ERROR(EndLastFile(*scanner));
  }
  state_.sealed = seal_is_last_ && state_.torn_bytes == 0;
  state_.is_unsure = !state_.sealed && (void_is_last_ || state_.torn_bytes != 0 || scanner->header().recycled);
  return state_;
}

}  // namespace

std::string FileName(uint64_t number) { return NumberedName("journal-", number, ".jnl"); }
std::optional<uint64_t> NumberOf(std::string_view name) { return NumberInName("journal-", name, ".jnl"); }

absl::StatusOr<ReplayEnd> Replay(env::Env env, const std::string& directory, const ReplayOptions& options,
                                 const std::function<absl::Status(const Record&)>& visit,
                                 std::vector<FileContext>* headers) {
  return Replayer(env, directory, options, visit, headers).Run();
}

}  // namespace ashlar::journal
