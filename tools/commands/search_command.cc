// search: the best documents for a query.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/ashlar.h"
#include "src/base/status.h"
#include "tools/commands/commands.h"
#include "tools/commands/common.h"

namespace ashlar::tools {
namespace {

constexpr size_t kExcerptBytes = 80;

struct SearchArguments {
  std::string directory, query, fields;
  OpenMode open_mode = OpenMode::kMapped;
  SearchOptions options;
  bool json = false;
};

// What was found, and how long that took without opening the store.
struct Answer {
  SearchResult result;
  uint64_t took_us = 0;
};

absl::StatusOr<Answer> Find(const Store& store, const Snapshot& snapshot, const SearchArguments& arguments) {
  const uint64_t start = NowNs();
  ASHLAR_ASSIGN_OR_RETURN(const PreparedQuery query, store.Prepare(arguments.query));
  Answer answer;
  ASHLAR_ASSIGN_OR_RETURN(answer.result, snapshot.Search(query, arguments.options));
  answer.took_us = (NowNs() - start) / 1000;
  return answer;
}

std::vector<Handle> HandlesOf(const SearchResult& result) {
  std::vector<Handle> handles;
  for (const Hit& hit : result.hits) handles.push_back(hit.handle);
  return handles;
}

absl::Status PrintJson(const Snapshot& snapshot, const Answer& answer, const SearchArguments& arguments) {
  const std::vector<Handle> handles = HandlesOf(answer.result);
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<std::string> keys, snapshot.FetchKeys(handles));
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<DocumentId> ids, snapshot.FetchIds(handles));
  nlohmann::ordered_json json;
  json["hits"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < handles.size(); ++i) {
    nlohmann::ordered_json hit;
    hit["key"] = keys[i];
    hit["score"] = answer.result.hits[i].score;
    hit["id"] = ids[i];
    json["hits"].push_back(std::move(hit));
  }
  json["total"] = answer.result.total;
  json["total_is_exact"] = answer.result.total_is_exact;
  if (arguments.options.allow_partial) {
    json["documents_not_searched"] = answer.result.documents_not_searched;
    json["damage"] = nlohmann::ordered_json::array();
    for (const absl::Status& damage : answer.result.damage) json["damage"].push_back(std::string(damage.message()));
  }
  json["took_us"] = answer.took_us;
  json["snapshot"]["documents"] = snapshot.document_count();
  json["snapshot"]["segments"] = snapshot.segment_count();
  json["snapshot"]["overlay_documents"] = snapshot.overlay_document_count();
  Print(json.dump());
  Print("\n");
  return absl::OkStatus();
}

// The text values of a document on one line, cut at a character.
std::string Excerpt(const StoredDocument& document, const std::string& key_field) {
  std::string text;
  for (const FieldValue& value : document.document.values) {
    const auto* words = std::get_if<std::string>(&value.value);
    if (words == nullptr || value.field == key_field || words->empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : " | ", *words);
    if (text.size() > kExcerptBytes) break;
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = ' ';
  }
  if (text.size() <= kExcerptBytes) return text;
  size_t end = kExcerptBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

absl::Status PrintText(const Store& store, const Snapshot& snapshot, const Answer& answer,
                       const SearchArguments& arguments) {
  const SearchResult& result = answer.result;
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<StoredDocument> documents, snapshot.Fetch(HandlesOf(result)));
  const Schema schema = store.schema();
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string name = schema.key.empty() ? absl::StrCat("#", documents[i].id) : documents[i].key;
    Print(absl::StrFormat("%3u  %8.4f  %s  %s\n", arguments.options.offset + i + 1, result.hits[i].score, name,
                          Excerpt(documents[i], schema.key)));
  }
  const std::string total =
      arguments.options.total == Total::kNone
          ? absl::StrCat(documents.size(), " hits")
          : absl::StrCat(result.total_is_exact ? "" : "at least ", WithCommas(result.total), " found");
  Print(absl::StrFormat("%s in %s documents, %.3f ms\n", total, WithCommas(snapshot.document_count()),
                        static_cast<double>(answer.took_us) / 1000));
  return absl::OkStatus();
}

void WarnOfWhatIsMissing(const SearchResult& result) {
  if (result.damage.empty()) return;
  std::string text = absl::StrCat("ashlar: warning: ", WithCommas(result.documents_not_searched),
                                  " documents were not searched");
  for (const absl::Status& damage : result.damage) absl::StrAppend(&text, "; ", damage.message());
  std::fprintf(stderr, "%s\n", text.c_str());
}

absl::Status RunSearch(const SearchArguments& arguments) {
  ASHLAR_ASSIGN_OR_RETURN(const auto store, OpenForReading(arguments.directory, arguments.open_mode));
  const Snapshot snapshot = store->TakeSnapshot();
  ASHLAR_ASSIGN_OR_RETURN(const Answer answer, Find(*store, snapshot, arguments));
  WarnOfWhatIsMissing(answer.result);
  if (arguments.json) return PrintJson(snapshot, answer, arguments);
  return PrintText(*store, snapshot, answer, arguments);
}

}  // namespace

void AddSearchCommand(Program* program) {
  auto arguments = std::make_shared<SearchArguments>();
  SearchOptions& options = arguments->options;
  CLI::App* command = program->app.add_subcommand("search",
                                                  "Search: any of these words, +must, -not, field:word, word^2, \"a "
                                                  "phrase\" (put -- before a query that begins with -)");
  command->add_option("DIR", arguments->directory, "Directory of the store")->required();
  command->add_option("QUERY", arguments->query, "Query")->required();
  command->add_option("-k", options.k, "Hits")->check(WholeNumber(0, UINT64_MAX))->capture_default_str();
  command->add_option("--offset", options.offset, "Hits to pass over")
      ->check(WholeNumber(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--open", arguments->open_mode, "mapped or array")
      ->transform(Choice<OpenMode>({{"mapped", OpenMode::kMapped}, {"array", OpenMode::kArray}}))
      ->default_str("mapped");
  // A string, not a list: a list would take the query for another field.
  CLI::Option* fields = command->add_option("--fields", arguments->fields,
                                            "Text fields that words without a field search, with commas between them");
  command->add_option("--k1", options.k1, "BM25 k1")->capture_default_str();
  command->add_option("--b", options.b, "BM25 b")->capture_default_str();
  command->add_option("--total", options.total, "none, bound or exact")
      ->transform(Choice<Total>({{"none", Total::kNone}, {"bound", Total::kBound}, {"exact", Total::kExact}}))
      ->default_str("exact");
  command->add_option("--traversal", options.traversal, "auto, exhaustive, daat or pruned")
      ->transform(Choice<Traversal>({{"auto", Traversal::kAuto},
                                     {"exhaustive", Traversal::kExhaustive},
                                     {"daat", Traversal::kDaat},
                                     {"pruned", Traversal::kPruned}}))
      ->default_str("auto");
  command->add_flag("--partial", options.allow_partial,
                    "Leave damaged segments out instead of failing, and say how many documents were not searched");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([=] {
    if (fields->count() > 0) arguments->options.fields = ParseFieldNames(arguments->fields);
    program->run = [arguments] { return RunSearch(*arguments); };
  });
}

}  // namespace ashlar::tools
