// Sources to search without an engine: plain lists of postings, and overlays; and one call that runs a search over
// them.
#ifndef ASHLAR_TESTS_QUERY_SEARCH_FIXTURE_H_
#define ASHLAR_TESTS_QUERY_SEARCH_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ashlar/query.h"
#include "ashlar/schema.h"
#include "src/base/check.h"
#include "src/base/status.h"
#include "src/overlay/overlay.h"
#include "src/query/execution.h"
#include "src/query/prepare.h"
#include "src/testing/oracle.h"
#include "src/text/analyzed_document.h"

namespace ashlar::query {

using IndexTerm = std::pair<format::IndexId, std::string>;
struct PlainPosting {
  uint32_t document;
  uint32_t frequency;
  std::vector<std::vector<uint32_t>> positions = {};  // by field of the index
};

// Models PositionCursor over a vector. Fails for good when it reaches posting `fails_at`.
class PlainCursor {
 public:
  PlainCursor() = default;
  PlainCursor(std::span<const PlainPosting> postings, size_t fails_at) : postings_(postings), fails_at_(fails_at) {}
  uint32_t document() const { return ended() ? format::kNoDocument : postings_[at_].document; }
  uint32_t frequency() const { return ended() ? 0 : postings_[at_].frequency; }
  void Next() { at_ += !ended(); }
  void Seek(uint32_t target) {
    while (!ended() && postings_[at_].document < target) ++at_;
  }
  uint32_t postings() const { return static_cast<uint32_t>(postings_.size()); }
  void AppendPositions(std::vector<uint32_t>* positions, std::vector<uint32_t>* counts) const {
    counts->clear();
    if (ended()) return;
    for (const std::vector<uint32_t>& field : postings_[at_].positions) {
      positions->insert(positions->end(), field.begin(), field.end());
      counts->push_back(static_cast<uint32_t>(field.size()));
    }
  }
  absl::Status status() const {
    return at_ >= fails_at_ ? DataLoss("file", "postings", at_, "planted damage") : absl::OkStatus();
  }

 private:
  bool ended() const { return at_ >= postings_.size() || at_ >= fails_at_; }
  std::span<const PlainPosting> postings_;
  size_t at_ = 0;
  size_t fails_at_ = SIZE_MAX;
};

struct PlainLengths {
  const std::vector<uint32_t>* lengths = nullptr;
  uint32_t operator[](uint32_t ordinal) const { return lengths == nullptr ? 0 : (*lengths)[ordinal]; }
};

// A segment that holds its postings in maps.
struct PlainSource {
  using Cursor = PlainCursor;
  using Lengths = PlainLengths;

  uint32_t base = 0;
  std::vector<DocumentId> ids;
  std::vector<bool> dead;
  bool any_dead = false;
  std::map<IndexTerm, std::vector<PlainPosting>> lists;
  std::map<format::IndexId, std::vector<uint32_t>> lengths;
  size_t cursors_fail_at = SIZE_MAX;
  bool lengths_fail = false;

  uint32_t document_count() const { return static_cast<uint32_t>(ids.size()); }
  uint32_t put_order_base() const { return base; }
  bool has_deaths() const { return any_dead; }
  bool IsDead(uint32_t ordinal) const { return dead[ordinal]; }
  Cursor OpenTerm(format::IndexId index, std::string_view term) const {
    const auto found = lists.find({index, std::string(term)});
    return found == lists.end() ? PlainCursor() : PlainCursor(found->second, cursors_fail_at);
  }
  Cursor OpenPositions(format::IndexId index, std::string_view term) const { return OpenTerm(index, term); }
  absl::StatusOr<Lengths> OpenLengths(format::IndexId index) const {
    if (lengths_fail) return DataLoss("file", "lengths", 0, "planted damage");
    const auto found = lengths.find(index);
    return found == lengths.end() ? PlainLengths{} : PlainLengths{&found->second};
  }
};
static_assert(Source<PlainSource>);

// An overlay at a snapshot.
struct OverlaySource {
  using Cursor = overlay::Cursor;
  using Lengths = overlay::Lengths;

  uint32_t base = 0;
  const overlay::Overlay* searched = nullptr;
  uint32_t documents = 0;
  Sequence sequence = 0;
  bool any_dead = false;

  uint32_t document_count() const { return documents; }
  uint32_t put_order_base() const { return base; }
  bool has_deaths() const { return any_dead; }
  bool IsDead(uint32_t ordinal) const {
    const Sequence death = searched->DeathOf(ordinal);
    return death != 0 && death <= sequence;
  }
  Cursor OpenTerm(format::IndexId index, std::string_view term) const {
    return searched->OpenTerm(index, term, documents);
  }
  Cursor OpenPositions(format::IndexId index, std::string_view term) const { return OpenTerm(index, term); }
  absl::StatusOr<Lengths> OpenLengths(format::IndexId index) const { return searched->OpenLengths(index); }
};
static_assert(Source<OverlaySource>);

// Documents in put order, dead ones included, cut into sources. Kept beside an Oracle that holds the live ones.
class Corpus {
 public:
  testing::Oracle oracle;

  explicit Corpus(const Schema& schema) : oracle(schema), schema_(schema) {
    auto made = text::DocumentAnalyzer::Create(schema);
    ASHLAR_CHECK(made.ok());
    analyzer_ = *std::move(made);
  }

  void Put(const Document& document) {
    WriteBatch batch;
    batch.Put(document);
    Apply(batch);
  }
  void Delete(const std::string& key) {
    WriteBatch batch;
    batch.Delete(key);
    Apply(batch);
  }
  // Puts of different keys, and deletes.
  void Apply(const WriteBatch& batch) {
    Sequence sequence = oracle.next_sequence();
    for (const WriteBatch::Operation& operation : batch.operations()) {
      if (operation.kind == WriteBatch::Kind::kDelete) {
        Kill(operation.key, sequence);
      } else {
        Row row;
        row.id = sequence;
        ASHLAR_CHECK(analyzer_->Analyze(operation.document, &row.analyzed).ok());
        Kill(row.analyzed.key, sequence);
        live_[row.analyzed.key] = rows_.size();
        rows_.push_back(std::move(row));
      }
      ++sequence;
    }
    ASHLAR_CHECK(oracle.Apply(batch).ok());
  }

  // Cuts the documents at `cuts` (ascending). The last `overlays` parts become overlays.
  void Cut(std::vector<size_t> cuts, size_t overlays) {
    plain_.clear();
    overlays_.clear();
    overlay_sources_.clear();
    length_sums_.clear();
    cuts.insert(cuts.begin(), 0);
    cuts.push_back(rows_.size());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (i + 1 + overlays < cuts.size()) {
        AddPlain(cuts[i], cuts[i + 1]);
      } else {
        AddOverlay(cuts[i], cuts[i + 1]);
      }
    }
  }

  absl::StatusOr<SearchResult> Search(const Query& query, const SearchOptions& options) {
    ASHLAR_ASSIGN_OR_RETURN(const auto prepared, Prepare(query, schema_, *analyzer_));
    IndexStatistics statistics;
    statistics.live_documents = live_.size();
    statistics.length_sum = [this](format::IndexId index) { return LengthSum(index); };
    ASHLAR_ASSIGN_OR_RETURN(Execution search, Execution::Create(*prepared, schema_, options, statistics));
    std::vector<SourceRun<PlainSource>> segments;
    std::vector<SourceRun<OverlaySource>> overlays;
    uint32_t index = 0;
    for (const PlainSource& source : plain_) segments.emplace_back(&source, index++);
    for (const OverlaySource& source : overlay_sources_) overlays.emplace_back(&source, index++);
    for (auto& run : segments) ASHLAR_RETURN_IF_ERROR(search.AddStatistics(&run));
    for (auto& run : overlays) ASHLAR_RETURN_IF_ERROR(search.AddStatistics(&run));
    search.FinishWeights();
    for (auto& run : segments) ASHLAR_RETURN_IF_ERROR(search.Run(&run));
    for (auto& run : overlays) ASHLAR_RETURN_IF_ERROR(search.Run(&run));
    return search.Results();
  }

  // In the oracle's form.
  absl::StatusOr<testing::OracleResult> Answer(const Query& query, const SearchOptions& options) {
    ASHLAR_ASSIGN_OR_RETURN(const SearchResult found, Search(query, options));
    testing::OracleResult answer;
    answer.total = found.total;
    for (const Hit& hit : found.hits) answer.hits.push_back({IdOf(hit.handle), hit.score});
    return answer;
  }

  DocumentId IdOf(const Handle& handle) const {
    if (handle.source < plain_.size()) return plain_[handle.source].ids[handle.ordinal];
    return overlays_[handle.source - plain_.size()]->IdOf(handle.ordinal);
  }

  size_t document_count() const { return rows_.size(); }
  std::vector<PlainSource>& plain() { return plain_; }
  text::DocumentAnalyzer& analyzer() { return *analyzer_; }

 private:
  struct Row {
    DocumentId id = 0;
    Sequence death = 0;
    text::AnalyzedDocument analyzed;
  };

  void Kill(const std::string& key, Sequence sequence) {
    const auto found = live_.find(key);
    if (found == live_.end()) return;
    rows_[found->second].death = sequence;
    live_.erase(found);
  }

  std::vector<format::IndexId> IndexesOf(uint32_t field) const {
    std::vector<format::IndexId> indexes = {field};
    for (const std::string& name : schema_.default_group) {
      if (schema_.IndexOf(name) == static_cast<int>(field)) indexes.push_back(format::kGroupIndex);
    }
    return indexes;
  }

  // Remembered until the next Cut.
  uint64_t LengthSum(format::IndexId index) {
    const auto known = length_sums_.find(index);
    if (known != length_sums_.end()) return known->second;
    uint64_t& sum = length_sums_[index];
    for (const Row& row : rows_) {
      if (row.death != 0) continue;
      for (size_t i = 0; i < row.analyzed.field_count; ++i) {
        for (const format::IndexId one : IndexesOf(row.analyzed.fields[i].field)) {
          if (one == index) sum += row.analyzed.fields[i].length();
        }
      }
    }
    return sum;
  }

  static constexpr size_t kFieldsMax = 8;  // of a schema of these tests

  void AddPlain(size_t begin, size_t end) {
    PlainSource source;
    source.base = static_cast<uint32_t>(begin);
    for (size_t i = begin; i < end; ++i) {
      const Row& row = rows_[i];
      const auto ordinal = static_cast<uint32_t>(i - begin);
      source.ids.push_back(row.id);
      source.dead.push_back(row.death != 0);
      source.any_dead = source.any_dead || row.death != 0;
      if (schema_.KeyIndex() >= 0)
        AddPosting(&source, static_cast<uint32_t>(schema_.KeyIndex()), row.analyzed.key, ordinal, 0, 0);
      for (size_t f = 0; f < row.analyzed.field_count; ++f) {
        const text::FieldTokens& field = row.analyzed.fields[f];
        for (const format::IndexId index : IndexesOf(field.field)) {
          std::vector<uint32_t>& lengths = source.lengths[index];
          lengths.resize(end - begin);
          lengths[ordinal] += field.length();
          for (const text::Token& token : field.stream.tokens) {
            AddPosting(&source, index, std::string(token.term(field.stream.bytes)), ordinal, f, token.position);
          }
        }
      }
    }
    plain_.push_back(std::move(source));
  }

  static void AddPosting(PlainSource* source, format::IndexId index, const std::string& term, uint32_t ordinal,
                         size_t field, uint32_t position) {
    std::vector<PlainPosting>& list = source->lists[{index, term}];
    if (list.empty() || list.back().document != ordinal) list.push_back({ordinal, 0});
    ++list.back().frequency;
    std::vector<std::vector<uint32_t>>& positions = list.back().positions;
    positions.resize(std::max(positions.size(), kFieldsMax));
    positions[field].push_back(position);
  }

  void AddOverlay(size_t begin, size_t end) {
    overlays_.push_back(std::make_unique<overlay::Overlay>(schema_));
    OverlaySource source;
    source.base = static_cast<uint32_t>(begin);
    source.searched = overlays_.back().get();
    source.documents = static_cast<uint32_t>(end - begin);
    source.sequence = oracle.next_sequence() - 1;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t ordinal = overlays_.back()->Add(rows_[i].id, rows_[i].analyzed);
      if (rows_[i].death == 0) continue;
      overlays_.back()->Kill(ordinal, rows_[i].death);
      source.any_dead = true;
    }
    overlay_sources_.push_back(source);
  }

  Schema schema_;
  std::unique_ptr<text::DocumentAnalyzer> analyzer_;
  std::vector<Row> rows_;
  std::map<std::string, size_t> live_;  // key -> row
  std::vector<PlainSource> plain_;
  std::vector<std::unique_ptr<overlay::Overlay>> overlays_;
  std::vector<OverlaySource> overlay_sources_;
  std::map<format::IndexId, uint64_t> length_sums_;
};

}  // namespace ashlar::query

#endif  // ASHLAR_TESTS_QUERY_SEARCH_FIXTURE_H_
