#include "bench/text_corpus.h"

#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/lane.h"
#include "src/base/status.h"
#include "tools/json_documents.h"
#include "tools/line_reader.h"

namespace ashlar::bench {
namespace {

void AddDocument(Document document, uint64_t documents_a_batch, Batches* batches) {
  if (batches->batches.empty() || batches->batches.back().size() == documents_a_batch) batches->batches.emplace_back();
  batches->batches.back().Put(std::move(document));
  ++batches->documents;
}

// "+a +b" asks for all, "\"a b\"" for a phrase, "a b" for any.
TextQuery ParseTextQuery(const std::string& text) {
  TextQuery query;
  query.text = text;
  std::string plain = text;
  if (plain.size() >= 2 && plain.front() == '"' && plain.back() == '"') {
    query.kind = TextQuery::Kind::kPhrase;
    plain = plain.substr(1, plain.size() - 2);
  }
  std::istringstream words(plain);
  for (std::string word; words >> word;) {
    if (query.kind != TextQuery::Kind::kPhrase && word.front() == '+') {
      query.kind = TextQuery::Kind::kAll;
      word.erase(0, 1);
    }
    query.words.push_back(word);
  }
  return query;
}

}  // namespace

Schema TextSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  Field id, title, body;
  id.name = "id";
  id.type = FieldType::kKeyword;
  title.name = "title";
  body.name = "body";
  schema.fields = {id, title, body};
  return schema;
}

absl::StatusOr<Batches> ReadTextCorpus(const std::string& path, uint64_t documents_a_batch) {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<tools::LineReader> reader, tools::LineReader::Open(path));
  tools::DocumentParser parser(TextSchema());
  Batches batches;
  std::string_view line;
  while (true) {
    ASHLAR_ASSIGN_OR_RETURN(const bool more, reader->Next(&line));
    if (!more) return batches;
    Document document;
    const absl::Status status = parser.Parse(line, &document);
    if (!status.ok())
      return InvalidArgument(absl::StrCat(path, ":", reader->line_number(), ":", ToAbsl(FromAbsl(status.message()))));
    batches.bytes += line.size() + 1;
    AddDocument(std::move(document), documents_a_batch, &batches);
  }
}

Batches MakeZipfBatches(const ZipfOptions& options, uint64_t documents_a_batch) {
  constexpr uint64_t kJsonAround = sizeof R"({"id":"","body":""})";
  ZipfCorpus corpus(options);
  Batches batches;
  std::string id, body;
  while (corpus.Next(&id, &body)) {
    batches.bytes += kJsonAround + id.size() + body.size();
    AddDocument(Document().Add("id", id).Add("body", body), documents_a_batch, &batches);
  }
  return batches;
}

absl::StatusOr<std::vector<TextQuery>> ReadTextQueries(const std::string& path) {
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<tools::LineReader> reader, tools::LineReader::Open(path));
  std::vector<TextQuery> queries;
  std::string_view line;
  while (true) {
    ASHLAR_ASSIGN_OR_RETURN(const bool more, reader->Next(&line));
    if (!more) return queries;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("query") || !json["query"].is_string() || !json.contains("tags") ||
        !json["tags"].is_array() || json["tags"].empty() || !json["tags"].back().is_string()) {
      return InvalidArgument(absl::StrCat(path, ":", reader->line_number(), ": is no {\"query\", \"tags\"}"));
    }
    queries.push_back(ParseTextQuery(json["query"]));
    queries.back().name = json["tags"].back();
  }
}

}  // namespace ashlar::bench
