// Oracle: what a store must answer, computed in the plainest way: a map of live documents, and scores by scanning all
// of them for every word. Shares nothing with the store but the analyzer and the value headers.
//
// The formula is that of docs/architecture.md, "Scores", written again from the text; scores compare by bits.
#ifndef ASHLAR_SRC_TESTING_ORACLE_H_
#define ASHLAR_SRC_TESTING_ORACLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/hits.h"
#include "ashlar/query.h"
#include "ashlar/schema.h"
#include "src/text/analyzed_document.h"

namespace ashlar::testing {

struct OracleHit {
  DocumentId id = 0;
  double score = 0;
  bool operator==(const OracleHit&) const = default;  // bits: scores are never NaN, and -0 does not occur
};

struct OracleResult {
  std::vector<OracleHit> hits;
  uint64_t total = 0;
};

struct OracleWrite {
  Sequence sequence = 0;      // the last one of the batch
  std::vector<bool> existed;  // one per operation: whether it replaced or deleted a live document
};

// A copy is a snapshot. Applying a batch, like copying, takes time in proportion to the documents. Not thread safe.
class Oracle {
 public:
  explicit Oracle(const Schema& schema);

  // All of the batch or nothing, its operations one after another. Each takes one sequence, an empty batch one too.
  absl::StatusOr<OracleWrite> Apply(const WriteBatch& batch);
  // Batches of one operation; they must be valid.
  Sequence Put(Document document);
  bool Delete(const std::string& key);  // whether it existed
  // After a reopening: sequences may skip some.
  void SetNextSequence(Sequence next) { next_sequence_ = next; }
  Sequence next_sequence() const { return next_sequence_; }
  void AddFields(const std::vector<Field>& fields);
  const Schema& schema() const { return *schema_; }

  // The query and the options must be valid.
  OracleResult Search(const Query& query, const SearchOptions& options = {}) const;
  // What a partial answer must be when these documents were not searched: they count in the number of documents and in the
  // average lengths, but no word is found in them.
  OracleResult SearchWithout(const std::set<DocumentId>& left_out, const Query& query,
                             const SearchOptions& options = {}) const;

  // What a store gives back; nullopt if there is no live document.
  std::optional<StoredDocument> Get(std::string_view key) const;
  std::optional<StoredDocument> GetById(DocumentId id) const;
  // Ascending by key (bytes).
  std::vector<std::pair<std::string, DocumentId>> Keys() const;
  // Ascending.
  std::vector<DocumentId> Ids() const;
  uint64_t document_count() const { return documents_.size(); }

 private:
  struct Entry {
    std::string key;
    Document document;
    // By field number and value: the terms of its words, empty for a word that is none.
    std::vector<std::vector<std::vector<std::string>>> values;
  };
  // One distinct word or phrase of a query: where it is looked for and what it says, empty for a word that may be any.
  struct Word {
    std::set<uint32_t> fields;
    std::vector<std::string> terms;
    bool operator<(const Word& other) const { return std::tie(fields, terms) < std::tie(other.fields, other.terms); }
  };
  struct Words {
    std::map<Word, std::vector<double>> boosts;  // of the positive ones
    std::set<Word> must;
    std::set<Word> must_not;
  };

  absl::StatusOr<std::shared_ptr<const Entry>> Analyze(const Document& document) const;
  absl::StatusOr<bool> ApplyOne(const WriteBatch::Operation& operation, DocumentId id);
  absl::StatusOr<bool> ApplyPut(const WriteBatch::Operation& operation, DocumentId id);
  bool Remove(DocumentId id);
  DocumentId LiveId(std::string_view key) const;  // 0: none

  std::set<uint32_t> FieldsOf(const std::vector<std::string>& names) const;
  std::vector<std::string> TermsOf(uint32_t field, const std::string& text) const;
  Words WordsOf(const Query& query, const SearchOptions& options) const;
  static uint32_t CountOf(const Entry& entry, const Word& word);
  uint32_t LengthOf(const Entry& entry, const std::set<uint32_t>& fields) const;
  static bool Matches(const Entry& entry, const Words& words);
  StoredDocument Stored(DocumentId id, const Entry& entry) const;

  std::shared_ptr<const Schema> schema_;
  std::shared_ptr<text::DocumentAnalyzer> analyzer_;
  Sequence next_sequence_ = 1;
  std::map<DocumentId, std::shared_ptr<const Entry>> documents_;
  std::map<std::string, DocumentId, std::less<>> ids_;
};

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_ORACLE_H_
