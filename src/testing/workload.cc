#include "src/testing/workload.h"

#include <charconv>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/base/check.h"
#include "src/base/status.h"

namespace ashlar::testing {
namespace {

using Words = std::vector<std::string>;

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads one text. Every line is one operation, one that repeats some, or the head of a workload.
class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : text_(text), source_(source) {}
  absl::StatusOr<std::vector<Workload>> Parse();

 private:
  absl::Status Bad(std::string_view what) const {
    return InvalidArgument(absl::StrCat(ToAbsl(source_), ":", line_, ": ", ToAbsl(what)));
  }
  absl::Status ParseLine(const Words& words);
  absl::Status ParseOptions(const Words& words, size_t first, Options* options) const;
  absl::Status ParseOption(const std::string& name, const std::string& value, Options* options) const;
  absl::Status ParseParts(const Words& words, Operation* operation, std::vector<Operation>* operations) const;
  absl::Status ParsePart(const Words& words, std::vector<BatchPart>* parts) const;
  absl::StatusOr<Operation> ParseUpkeep(const Words& words) const;
  absl::StatusOr<Operation> ParseFault(const Words& words) const;
  absl::Status ParseAt(const Words& words);

  const std::string_view text_;
  const std::string_view source_;
  int line_ = 0;
  std::vector<Workload> workloads_;
  Options now_;                                       // of the workload, so far
  std::vector<std::pair<uint64_t, size_t>> repeats_;  // how often, and from which operation
};

absl::StatusOr<std::vector<Workload>> Parser::Parse() {
  for (std::string_view rest = text_; !rest.empty();) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    ++line_;
    line = line.substr(0, line.find('#'));
    const Words words = absl::StrSplit(ToAbsl(line), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (!words.empty()) ASHLAR_RETURN_IF_ERROR(ParseLine(words));
  }
  if (!repeats_.empty()) return Bad("'repeat' without 'end'");
  if (workloads_.empty()) return Bad("there is no workload");
  return std::move(workloads_);
}

absl::Status Parser::ParseLine(const Words& words) {
  const std::string& verb = words[0];
  if (verb == "workload") {
    if (words.size() < 2) return Bad("a workload needs a name");
    if (!repeats_.empty()) return Bad("'repeat' without 'end'");
    Workload& workload = workloads_.emplace_back();
    workload.name = words[1];
    // Small files make small images and frequent rotations.
    workload.options.create_if_missing = true;
    workload.options.merge_factor = 0;
    workload.options.journal_file_bytes_min = 4096;
    Words options(words.begin() + 2, words.end());
    const bool keyless = !options.empty() && options[0] == "keyless";
    if (keyless) options.erase(options.begin());
    workload.schema = WorkloadSchema(!keyless);
    ASHLAR_RETURN_IF_ERROR(ParseOptions(options, 0, &workload.options));
    now_ = workload.options;
    return absl::OkStatus();
  }
  if (workloads_.empty()) return Bad("the first line must be 'workload NAME'");
  std::vector<Operation>& operations = workloads_.back().operations;
  if (verb == "repeat") {
    const std::optional<uint64_t> times = words.size() == 2 ? Number(words[1]) : std::nullopt;
    if (!times.has_value() || *times == 0 || *times > 1000) return Bad("'repeat' needs a number from 1 to 1000");
    repeats_.emplace_back(*times, operations.size());
    return absl::OkStatus();
  }
  if (verb == "end") {
    if (repeats_.empty()) return Bad("'end' without 'repeat'");
    const auto [times, first] = repeats_.back();
    repeats_.pop_back();
    const std::vector<Operation> body(operations.begin() + static_cast<std::ptrdiff_t>(first), operations.end());
    for (uint64_t i = 1; i < times; ++i) operations.insert(operations.end(), body.begin(), body.end());
    return absl::OkStatus();
  }
  if (verb == "at") return ParseAt(words);
  static const std::map<std::string, int> kWrites = {
      {"put", 0},   {"insert", 0}, {"put_if", 0}, {"put_if_stale", 0}, {"delete", 0}, {"delete_id", 0},
      {"batch", 0}, {"bad", 0},    {"fail", 0},   {"empty", 0},        {"load", 0}};
  if (kWrites.contains(verb)) {
    Operation operation;
    operation.line = line_;
    return ParseParts(words, &operation, &operations);
  }
  ASHLAR_ASSIGN_OR_RETURN(Operation operation, verb == "fault" ? ParseFault(words) : ParseUpkeep(words));
  operation.line = line_;
  if (operation.kind == Operation::Kind::kReopen || operation.kind == Operation::Kind::kKill) {
    ASHLAR_RETURN_IF_ERROR(ParseOptions(words, 1, &now_));
    operation.options = now_;
  }
  operations.push_back(std::move(operation));
  return absl::OkStatus();
}

// "at STEP OPERATION"
absl::Status Parser::ParseAt(const Words& words) {
  static const std::map<std::string, env::WorkStep> kSteps = {
      {"flush_written", env::WorkStep::kFlushWritten}, {"flush_committed", env::WorkStep::kFlushCommitted},
      {"merge_copying", env::WorkStep::kMergeCopying}, {"merge_written", env::WorkStep::kMergeWritten},
      {"merge_committed", env::WorkStep::kMergeCommitted},
  };
  const auto step = words.size() > 2 ? kSteps.find(words[1]) : kSteps.end();
  if (step == kSteps.end()) return Bad("'at' needs a step and an operation");
  std::vector<Operation>& operations = workloads_.back().operations;
  const size_t first = operations.size();
  ASHLAR_RETURN_IF_ERROR(ParseLine(Words(words.begin() + 2, words.end())));
  for (size_t i = first; i < operations.size(); ++i) {
    const Operation::Kind kind = operations[i].kind;
    if (kind != Operation::Kind::kWrite && kind != Operation::Kind::kSync && kind != Operation::Kind::kFlush)
      return Bad("only writes, 'sync' and 'flush' go on beside a flush or merge");
    operations[i].at = step->second;
  }
  return absl::OkStatus();
}

// "fault write 2 done": the next two writes are done and reported as failed.
absl::StatusOr<Operation> Parser::ParseFault(const Words& words) const {
  static const std::map<std::string, env::SimOp> kOps = {{"write", env::SimOp::kWrite}, {"sync", env::SimOp::kSync}};
  const auto op = words.size() > 2 ? kOps.find(words[1]) : kOps.end();
  const std::optional<uint64_t> times = words.size() > 2 ? Number(words[2]) : std::nullopt;
  const bool done = words.size() == 4 && words[3] == "done";
  if (op == kOps.end() || times.value_or(0) == 0 || (words.size() > 3 && !done))
    return Bad("'fault' needs 'write' or 'sync', how often, and perhaps 'done'");
  Operation operation;
  operation.kind = Operation::Kind::kFault;
  operation.fault.op = op->second;
  operation.fault.times = *times;
  if (done) operation.fault.effect = env::SimFault::Effect::kFailsAfterwards;
  return operation;
}

absl::StatusOr<Operation> Parser::ParseUpkeep(const Words& words) const {
  Operation operation;
  const std::string& verb = words[0];
  const std::optional<uint64_t> parsed = words.size() > 1 ? Number(words[1]) : std::nullopt;
  const uint64_t number = parsed.value_or(1);
  if (verb == "sync") {
    operation.kind = Operation::Kind::kSync;
  } else if (verb == "flush") {
    operation.kind = Operation::Kind::kFlush;
  } else if (verb == "merge") {
    operation.kind = Operation::Kind::kMerge;
    operation.number = number;
  } else if (verb == "purge") {
    operation.kind = Operation::Kind::kPurge;
    operation.number = number;
  } else if (verb == "run_pending") {
    operation.kind = Operation::Kind::kRunPending;
  } else if (verb == "wait" && parsed.has_value()) {
    operation.kind = Operation::Kind::kWait;
    operation.number = number;
  } else if (verb == "add_field" && words.size() == 2) {
    operation.kind = Operation::Kind::kAddField;
    operation.name = words[1];
  } else if (verb == "checkpoint") {
    operation.kind = Operation::Kind::kCheckpoint;
  } else if (verb == "reopen") {
    operation.kind = Operation::Kind::kReopen;
  } else if (verb == "kill") {
    operation.kind = Operation::Kind::kKill;
  } else {
    return Bad(absl::StrCat("'", verb, "' is no operation, or lacks its argument"));
  }
  return operation;
}

// "put 3", "put 1..5" (five batches), "batch put 3; delete 4", "fail insert 3"; then watermark=N durability=MODE
// words=N.
absl::Status Parser::ParseParts(const Words& words, Operation* operation, std::vector<Operation>* operations) const {
  Words rest;
  uint64_t more_words = 0;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      rest.push_back(word);
      continue;
    }
    const std::string name = word.substr(0, equals);
    const std::optional<uint64_t> number = Number(word.substr(equals + 1));
    if (name == "watermark" && number.has_value()) {
      operation->write.watermark = absl::StrCat(*number);
    } else if (name == "words" && number.has_value()) {
      more_words = *number;
    } else if (name == "durability") {
      Options options;
      ASHLAR_RETURN_IF_ERROR(ParseOption(name, word.substr(equals + 1), &options));
      operation->write.durability = options.durability;
    } else {
      return Bad(absl::StrCat("'", word, "' says nothing to a write"));
    }
  }
  if (rest.empty()) return Bad("a write needs its verb first");
  std::string verb = rest[0];
  if (verb == "empty") {
    operations->push_back(*operation);
    return absl::OkStatus();
  }
  operation->must_fail = verb == "fail";
  operation->write.keys_are_new = verb == "load";
  const bool whole = verb == "batch" || verb == "fail" || verb == "load";
  if (whole) rest.erase(rest.begin());
  std::string joined;
  for (const std::string& word : rest) absl::StrAppend(&joined, word, " ");
  for (const absl::string_view piece : absl::StrSplit(joined, ';')) {
    const Words part = absl::StrSplit(piece, ' ', absl::SkipEmpty());
    if (!part.empty()) ASHLAR_RETURN_IF_ERROR(ParsePart(part, &operation->parts));
  }
  for (BatchPart& part : operation->parts) part.words = more_words;
  if (whole) {
    operations->push_back(*operation);
    return absl::OkStatus();
  }
  for (const BatchPart& part : operation->parts) {
    Operation one = *operation;
    one.parts = {part};
    operations->push_back(one);
  }
  return absl::OkStatus();
}

absl::Status Parser::ParsePart(const Words& words, std::vector<BatchPart>* parts) const {
  static const std::map<std::string, BatchPart::Kind> kKinds = {
      {"put", BatchPart::Kind::kPut},         {"insert", BatchPart::Kind::kInsert},
      {"put_if", BatchPart::Kind::kPutIf},    {"put_if_stale", BatchPart::Kind::kPutIfStale},
      {"delete", BatchPart::Kind::kDelete},   {"delete_id", BatchPart::Kind::kDeleteId},
      {"bad", BatchPart::Kind::kBadDocument},
  };
  const auto kind = kKinds.find(words[0]);
  if (kind == kKinds.end() || words.size() > 2) return Bad(absl::StrCat("'", words[0], "' can't be part of a batch"));
  BatchPart part;
  part.kind = kind->second;
  uint64_t first = 0, last = 0;
  if (words.size() == 2) {
    const size_t dots = words[1].find("..");
    const std::optional<uint64_t> from = Number(words[1].substr(0, dots));
    const std::optional<uint64_t> to = dots == std::string::npos ? from : Number(words[1].substr(dots + 2));
    if (!from.has_value() || !to.has_value() || *to < *from || *to - *from > 10000)
      return Bad(absl::StrCat("'", words[1], "' is not a key's number, nor a range of them"));
    first = *from;
    last = *to;
  }
  for (part.key = first; part.key <= last; ++part.key) parts->push_back(part);
  return absl::OkStatus();
}

absl::Status Parser::ParseOptions(const Words& words, size_t first, Options* options) const {
  for (size_t i = first; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return Bad(absl::StrCat("'", words[i], "' is not NAME=VALUE"));
    ASHLAR_RETURN_IF_ERROR(ParseOption(words[i].substr(0, equals), words[i].substr(equals + 1), options));
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseOption(const std::string& name, const std::string& value, Options* options) const {
  static const std::map<std::string, Durability> kDurabilities = {{"sync", Durability::kSync},
                                                                  {"interval", Durability::kInterval},
                                                                  {"os", Durability::kOs},
                                                                  {"off", Durability::kOff}};
  const std::optional<uint64_t> number = Number(value);
  if (name == "durability" && kDurabilities.contains(value)) {
    options->durability = kDurabilities.at(value);
  } else if (name == "mode" && (value == "mapped" || value == "array")) {
    options->open_mode = value == "mapped" ? OpenMode::kMapped : OpenMode::kArray;
  } else if (name == "merge_factor" && number.has_value()) {
    options->merge_factor = static_cast<uint32_t>(*number);
  } else if (name == "overlay_bytes_max" && number.has_value()) {
    options->overlay_bytes_max = *number;
  } else if (name == "journal_file_bytes_min" && number.has_value()) {
    options->journal_file_bytes_min = *number;
  } else if (name == "interval_ms" && number.has_value()) {
    options->interval_ms = static_cast<uint32_t>(*number);
  } else {
    return Bad(absl::StrCat("'", name, "=", value, "' is no option"));
  }
  return absl::OkStatus();
}

// Few words, so that documents share them and every list has several postings.
constexpr const char* kBodyWords[] = {"stone",  "wall",  "lime",  "arch",     "running",
                                      "mortar", "slate", "chalk", "caf\u00e9"};

Clause MakeClause(Occur occur, std::string field, std::string text, double boost = 1) {
  return {occur, std::move(field), std::move(text), boost};
}

}  // namespace

absl::StatusOr<std::vector<Workload>> ParseWorkloads(std::string_view text, std::string_view source) {
  return Parser(text, source).Parse();
}

const std::vector<Workload>& BuiltInWorkloads() {
  static const std::vector<Workload>* const workloads = [] {
    absl::StatusOr<std::vector<Workload>> parsed = ParseWorkloads(BuiltInWorkloadText(), "built-in workloads");
    ASHLAR_CHECK(parsed.ok());
    return new std::vector<Workload>(*std::move(parsed));
  }();
  return *workloads;
}

Schema WorkloadSchema(bool has_key) {
  Schema schema;
  schema.default_group = {"title", "body"};
  if (has_key) {
    schema.key = "id";
    schema.fields.push_back({"id", FieldType::kKeyword, true, false, false, {}});
  }
  schema.fields.push_back({"title", FieldType::kText, true, true, false, {}});
  schema.fields.push_back({"body", FieldType::kText, true, true, false, {}});
  schema.fields.push_back({"tag", FieldType::kKeyword, true, false, true, {}});
  schema.fields.push_back({"version", FieldType::kInt64, true, false, true, {}});
  return schema;
}

Field AddedField(const std::string& name) { return {name, FieldType::kText, true, true, false, {}}; }

Document WorkloadDocument(const Schema& schema, uint64_t key, uint64_t version, uint64_t words) {
  constexpr size_t kCount = std::size(kBodyWords);
  Document document;
  if (!schema.key.empty()) document.Add("id", absl::StrCat("k", key));
  document.Add("title", absl::StrCat("stone ", version % 7, " ", kBodyWords[version % kCount]));
  std::string body = absl::StrCat(kBodyWords[version * 5 % kCount], " and ", kBodyWords[key % kCount]);
  for (uint64_t i = 0; i < words; ++i) absl::StrAppend(&body, " ", kBodyWords[(version + i * i) % kCount]);
  document.Add("body", std::move(body));
  document.Add("tag", std::string(version % 3 == 0 ? "red" : "green"));
  document.Add("version", static_cast<int64_t>(version));
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    // Fields that were added later.
    if (schema.IndexOf("version") >= static_cast<int>(i)) continue;
    document.Add(schema.fields[i].name, absl::StrCat("later ", kBodyWords[version % kCount]));
  }
  return document;
}

// Beyond every sequence of a run. One that is near could be given to a document of the same batch.
constexpr DocumentId kNeverGiven = DocumentId{1} << 62;

WriteBatch MakeBatch(const std::vector<BatchPart>& parts, const Oracle& oracle, uint64_t* version) {
  WriteBatch batch;
  for (const BatchPart& part : parts) {
    const std::string key = absl::StrCat("k", part.key);
    const auto document = [&] { return WorkloadDocument(oracle.schema(), part.key, ++*version, part.words); };
    const auto live_id = [&]() -> DocumentId {
      if (!oracle.schema().key.empty()) {
        const std::optional<StoredDocument> live = oracle.Get(key);
        return live.has_value() ? live->id : 0;
      }
      const std::vector<DocumentId> ids = oracle.Ids();
      return ids.empty() ? 0 : ids[part.key % ids.size()];
    };
    switch (part.kind) {
      case BatchPart::Kind::kPut:
        batch.Put(document());
        break;
      case BatchPart::Kind::kInsert:
        batch.Insert(document());
        break;
      case BatchPart::Kind::kPutIf:
        batch.PutIf(document(), live_id());
        break;
      case BatchPart::Kind::kPutIfStale:
        batch.PutIf(document(), live_id() + kNeverGiven);
        break;
      case BatchPart::Kind::kDelete:
        batch.Delete(key);
        break;
      case BatchPart::Kind::kDeleteId:
        batch.DeleteId(live_id());
        break;
      case BatchPart::Kind::kBadDocument:
        batch.Put(document().Add("no such field", std::string("x")));
        break;
    }
  }
  return batch;
}

const std::vector<LabQuery>& LabQueries() {
  static const auto* const queries = [] {
    auto* list = new std::vector<LabQuery>();
    const auto add = [list](std::vector<Clause> clauses) -> SearchOptions& {
      list->push_back({Query{std::move(clauses)}, {}});
      return list->back().options;
    };
    add({MakeClause(Occur::kShould, "", "stone")});
    add({MakeClause(Occur::kShould, "", "wall lime"), MakeClause(Occur::kShould, "title", "arch", 2.5)}).k = 3;
    add({MakeClause(Occur::kMust, "", "stone"), MakeClause(Occur::kMustNot, "tag", "red")}).k = 1000;
    add({MakeClause(Occur::kMust, "body", "and"), MakeClause(Occur::kShould, "", "mortar slate chalk")}).offset = 1;
    add({MakeClause(Occur::kShould, "tag", "green"), MakeClause(Occur::kMust, "", "running")}).b = 0;
    add({MakeClause(Occur::kShould, "", "caf\u00e9 3")}).fields = {"title"};
    return list;
  }();
  return *queries;
}

}  // namespace ashlar::testing
