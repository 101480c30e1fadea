#include "src/testing/oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "src/base/check.h"
#include "src/base/status.h"

namespace ashlar::testing {

Oracle::Oracle(const Schema& schema) : schema_(std::make_shared<Schema>(schema)) {
  auto analyzer = text::DocumentAnalyzer::Create(schema);
  ASHLAR_CHECK(analyzer.ok());
  analyzer_ = *std::move(analyzer);
}

void Oracle::AddFields(const std::vector<Field>& fields) {
  Schema schema = *schema_;
  schema.fields.insert(schema.fields.end(), fields.begin(), fields.end());
  Oracle wider(schema);
  schema_ = wider.schema_;
  analyzer_ = wider.analyzer_;
}

// --- writing ---

absl::StatusOr<std::shared_ptr<const Oracle::Entry>> Oracle::Analyze(const Document& document) const {
  text::AnalyzedDocument analyzed;
  ASHLAR_RETURN_IF_ERROR(analyzer_->Analyze(document, &analyzed));
  auto entry = std::make_shared<Entry>();
  entry->key = analyzed.key;
  entry->document = document;
  entry->values.resize(schema_->fields.size());
  for (const FieldValue& value : document.values) {
    const auto field = static_cast<size_t>(schema_->IndexOf(value.field));
    const FieldType type = schema_->fields[field].type;
    if (static_cast<int>(field) == schema_->KeyIndex()) {
      entry->values[field].push_back({analyzed.key});
    } else if (type == FieldType::kText || type == FieldType::kKeyword) {
      entry->values[field].push_back(TermsOf(static_cast<uint32_t>(field), std::get<std::string>(value.value)));
    }
  }
  return entry;
}

// Each value by itself, so that no phrase can lead from one into the next.
std::vector<std::string> Oracle::TermsOf(uint32_t field, const std::string& text) const {
  text::TokenStream stream;
  ASHLAR_CHECK(analyzer_->AnalyzeText(field, text, &stream).ok());
  std::vector<std::string> terms;
  for (const text::Token& token : stream.tokens) {
    if (token.position >= terms.size()) terms.resize(token.position + 1);
    terms[token.position] = token.term(stream.bytes);
  }
  return terms;
}

DocumentId Oracle::LiveId(std::string_view key) const {
  const auto found = ids_.find(key);
  return found == ids_.end() ? 0 : found->second;
}

bool Oracle::Remove(DocumentId id) {
  const auto found = documents_.find(id);
  if (found == documents_.end()) return false;
  ids_.erase(found->second->key);
  documents_.erase(found);
  return true;
}

absl::StatusOr<bool> Oracle::ApplyPut(const WriteBatch::Operation& operation, DocumentId id) {
  ASHLAR_ASSIGN_OR_RETURN(auto entry, Analyze(operation.document));
  const bool has_key = !schema_->key.empty();
  const DocumentId live = has_key ? LiveId(entry->key) : 0;
  if (operation.kind == WriteBatch::Kind::kInsert && live != 0) return AlreadyExists("key exists");
  if (operation.kind == WriteBatch::Kind::kPutIf && live != operation.expected) {
    return FailedPrecondition("another version");
  }
  const bool existed = Remove(live);
  documents_[id] = entry;
  if (has_key) ids_[entry->key] = id;
  return existed;
}

absl::StatusOr<bool> Oracle::ApplyOne(const WriteBatch::Operation& operation, DocumentId id) {
  if (operation.kind == WriteBatch::Kind::kDelete) return Remove(LiveId(operation.key));
  if (operation.kind == WriteBatch::Kind::kDeleteId) return Remove(operation.expected);
  return ApplyPut(operation, id);
}

absl::StatusOr<OracleWrite> Oracle::Apply(const WriteBatch& batch) {
  Oracle after = *this;
  OracleWrite result;
  for (const WriteBatch::Operation& operation : batch.operations()) {
    ASHLAR_ASSIGN_OR_RETURN(const bool existed, after.ApplyOne(operation, after.next_sequence_));
    result.existed.push_back(existed);
    ++after.next_sequence_;
  }
  if (batch.empty()) ++after.next_sequence_;
  result.sequence = after.next_sequence_ - 1;
  *this = std::move(after);
  return result;
}

Sequence Oracle::Put(Document document) {
  WriteBatch batch;
  batch.Put(std::move(document));
  const auto written = Apply(batch);
  ASHLAR_CHECK(written.ok());
  return written->sequence;
}

bool Oracle::Delete(const std::string& key) {
  WriteBatch batch;
  batch.Delete(key);
  const auto written = Apply(batch);
  ASHLAR_CHECK(written.ok());
  return written->existed[0];
}

// --- reading ---

StoredDocument Oracle::Stored(DocumentId id, const Entry& entry) const {
  StoredDocument stored;
  stored.id = id;
  stored.key = entry.key;
  for (const Field& field : schema_->fields) {
    if (!field.stored && field.name != schema_->key) continue;
    for (const FieldValue& value : entry.document.values) {
      if (value.field != field.name) continue;
      Value kept = value.value;
      const int64_t* integer = std::get_if<int64_t>(&kept);
      if (field.type == FieldType::kDouble && integer != nullptr) kept = static_cast<double>(*integer);
      stored.document.Add(field.name, kept);
    }
  }
  return stored;
}

std::optional<StoredDocument> Oracle::Get(std::string_view key) const { return GetById(LiveId(key)); }

std::optional<StoredDocument> Oracle::GetById(DocumentId id) const {
  const auto found = documents_.find(id);
  if (found == documents_.end()) return std::nullopt;
  return Stored(id, *found->second);
}

std::vector<std::pair<std::string, DocumentId>> Oracle::Keys() const { return {ids_.begin(), ids_.end()}; }

std::vector<DocumentId> Oracle::Ids() const {
  std::vector<DocumentId> ids;
  for (const auto& [id, entry] : documents_) ids.push_back(id);
  return ids;
}

// --- searching ---

std::set<uint32_t> Oracle::FieldsOf(const std::vector<std::string>& names) const {
  std::set<uint32_t> fields;
  for (const std::string& name : names) {
    const int field = schema_->IndexOf(name);
    ASHLAR_CHECK(field >= 0);
    fields.insert(static_cast<uint32_t>(field));
  }
  return fields;
}

Oracle::Words Oracle::WordsOf(const Query& query, const SearchOptions& options) const {
  const std::set<uint32_t> searched = FieldsOf(options.fields.empty() ? schema_->default_group : options.fields);
  Words words;
  for (const Clause& clause : query.clauses) {
    const std::set<uint32_t> fields = clause.field.empty() ? searched : FieldsOf({clause.field});
    std::vector<std::string> terms;
    if (clause.field == schema_->key && !clause.field.empty()) {
      terms.push_back(clause.text);
    } else {
      terms = TermsOf(*fields.begin(), clause.text);
    }
    std::vector<std::vector<std::string>> asked;
    if (clause.phrase) {
      // What is removed at an end says nothing.
      while (!terms.empty() && terms[0].empty()) terms.erase(terms.begin());
      if (!terms.empty()) asked.push_back(terms);
    } else {
      for (const std::string& term : terms) {
        if (!term.empty()) asked.push_back({term});
      }
    }
    for (const std::vector<std::string>& one : asked) {
      const Word word{fields, one};
      if (clause.occur == Occur::kMustNot) {
        words.must_not.insert(word);
        continue;
      }
      words.boosts[word].push_back(clause.boost);
      if (clause.occur == Occur::kMust) words.must.insert(word);
    }
  }
  return words;
}

// How often a document has a word, or a phrase begins in it.
uint32_t Oracle::CountOf(const Entry& entry, const Word& word) {
  uint32_t count = 0;
  for (const uint32_t field : word.fields) {
    if (field >= entry.values.size()) continue;  // added after the document
    for (const std::vector<std::string>& value : entry.values[field]) {
      for (size_t begin = 0; begin + word.terms.size() <= value.size(); ++begin) {
        bool fits = true;
        for (size_t i = 0; fits && i < word.terms.size(); ++i)
          fits = word.terms[i].empty() || word.terms[i] == value[begin + i];
        count += fits;
      }
    }
  }
  return count;
}

// The key field has no length.
uint32_t Oracle::LengthOf(const Entry& entry, const std::set<uint32_t>& fields) const {
  uint32_t length = 0;
  for (const uint32_t field : fields) {
    if (static_cast<int>(field) == schema_->KeyIndex()) continue;
    if (field >= entry.values.size()) continue;
    for (const std::vector<std::string>& value : entry.values[field]) {
      for (const std::string& term : value) length += !term.empty();
    }
  }
  return length;
}

bool Oracle::Matches(const Entry& entry, const Words& words) {
  for (const Word& word : words.must) {
    if (CountOf(entry, word) == 0) return false;
  }
  for (const Word& word : words.must_not) {
    if (CountOf(entry, word) != 0) return false;
  }
  if (!words.must.empty()) return true;
  for (const auto& [word, boosts] : words.boosts) {
    if (CountOf(entry, word) != 0) return true;
  }
  return false;
}

OracleResult Oracle::Search(const Query& query, const SearchOptions& options) const {
  return SearchWithout({}, query, options);
}

OracleResult Oracle::SearchWithout(const std::set<DocumentId>& left_out, const Query& query,
                                   const SearchOptions& options) const {
  const Words words = WordsOf(query, options);
  const auto n = static_cast<double>(documents_.size());

  // Weights in binary64. A word that no live document has does not score.
  std::map<Word, double> weights;
  std::vector<double> descending;
  for (const auto& [word, boosts] : words.boosts) {
    double idf = 0;
    bool has_all = true;
    for (const std::string& term : word.terms) {
      if (term.empty()) continue;
      double df = 0;
      for (const auto& [id, entry] : documents_) {
        df += !left_out.contains(id) && CountOf(*entry, {word.fields, {term}}) > 0;
      }
      has_all = has_all && df > 0;
      idf += std::log(1 + (n - df + 0.5) / (df + 0.5));
    }
    if (!has_all) continue;
    std::vector<double> ascending = boosts;
    std::sort(ascending.begin(), ascending.end());
    double boost = 0;
    for (const double one : ascending) boost += one;
    weights[word] = idf * (options.k1 + 1) * boost;
    descending.push_back(weights[word]);
  }
  std::sort(descending.begin(), descending.end(), std::greater<>());
  double sum = 0;
  for (const double weight : descending) sum += weight;
  int e = 0;
  std::frexp(sum, &e);
  const int s = 29 - e;

  std::map<std::set<uint32_t>, double> averages;
  for (const auto& [word, weight] : weights) {
    double lengths = 0;
    for (const auto& [id, entry] : documents_) lengths += LengthOf(*entry, word.fields);
    averages[word.fields] = lengths / n;
  }

  std::vector<std::pair<int64_t, DocumentId>> found;  // (minus the score, id): ascending is the order of hits
  for (const auto& [id, entry] : documents_) {
    if (left_out.contains(id) || !Matches(*entry, words)) continue;
    int64_t score = 0;
    for (const auto& [word, weight] : weights) {
      const uint32_t count = CountOf(*entry, word);
      if (count == 0) continue;
      const double average = averages[word.fields];
      const float a = static_cast<float>(options.k1 * (1 - options.b));
      const float b = options.b == 0 || average == 0 ? 0.0f : static_cast<float>(options.k1 * options.b / average);
      const float length = static_cast<float>(LengthOf(*entry, word.fields));
      const float product = b * length;
      const float k = a + product;
      const float w = static_cast<float>(std::ldexp(weight, s));
      const float f = static_cast<float>(count);
      const float numerator = w * f;
      const float denominator = f + k;
      const float quotient = numerator / denominator;
      score += std::lrint(quotient);
    }
    found.emplace_back(-score, id);
  }
  std::sort(found.begin(), found.end());

  OracleResult result;
  result.total = found.size();
  for (size_t i = options.offset; i < found.size() && i - options.offset < options.k; ++i) {
    result.hits.push_back({found[i].second, std::ldexp(static_cast<double>(-found[i].first), -s)});
  }
  return result;
}

}  // namespace ashlar::testing
