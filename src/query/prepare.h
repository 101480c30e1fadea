// Prepare: a Query's words become terms. Planning: terms become what one search looks for in which index.
//
// Preparing needs the analyzers and no snapshot; planning needs the search's options and no analyzer. Words without a
// field are therefore analysed once per distinct analyzer of the schema's text fields: SearchOptions::fields may name
// any of them.
#ifndef ASHLAR_SRC_QUERY_PREPARE_H_
#define ASHLAR_SRC_QUERY_PREPARE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/query.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/text/analyzed_document.h"

namespace ashlar::query {

inline constexpr double kBoostMax = 1e6;
inline constexpr double kK1Max = 1000;

// A word and its place: in the clause or, planned, from the first word of its phrase.
struct PlacedWord {
  std::string term;
  uint32_t place = 0;
  auto operator<=>(const PlacedWord&) const = default;
};

// A clause of the query after analysis.
struct PreparedClause {
  static constexpr uint32_t kSearchedFields = 0xFFFFFFFFu;

  Occur occur = Occur::kShould;
  double boost = 1;
  bool phrase = false;
  uint32_t field = kSearchedFields;  // kSearchedFields: the default group or SearchOptions::fields
  // One list for a field; for kSearchedFields one per PreparedTerms::analyzers. Empty lists: the analyzer removed every
  // word.
  std::vector<std::vector<PlacedWord>> words;
};

struct Plan;

// Immutable once made; what a PreparedQuery holds.
struct PreparedTerms {
  std::vector<AnalyzerOptions> analyzers;
  std::vector<PreparedClause> clauses;
  // For searches of the default group; null: such a search is an error, which planning it tells.
  std::shared_ptr<const Plan> default_plan;
};

// InvalidArgument: no positive clause, an unknown field, a field that can't be searched (numbers, dates, bytes), a word
// without a field in a schema without a default group, a boost out of range, text that is not UTF-8, a phrase on a
// field without positions.
absl::StatusOr<std::shared_ptr<const PreparedTerms>> Prepare(const Query& query, const Schema& schema,
                                                             text::DocumentAnalyzer& analyzer);

// Where a term is looked up: one index, or several fields that are merged at query time into one text.
struct PlannedIndex {
  std::vector<format::IndexId> members;  // ascending; one, unless merged
  // The key field: its documents have no length.
  bool is_key = false;
  bool operator==(const PlannedIndex&) const = default;
};

struct PlannedTerm {
  Occur occur = Occur::kShould;
  uint32_t index = 0;  // in Plan::indexes
  std::string term;
  double boost = 1;
};

// Two words or more.
struct PlannedPhrase {
  Occur occur = Occur::kShould;
  uint32_t index = 0;
  std::vector<PlacedWord> words;  // places ascend from 0
  double boost = 1;
};

// What a search looks for. Its terms and phrases are distinct and in an order that does not depend on the order of the
// clauses.
struct Plan {
  std::vector<PlannedIndex> indexes;
  std::vector<PlannedTerm> terms;
  std::vector<PlannedPhrase> phrases;
  bool has_merged_index = false;
  bool matches_nothing = false;  // the analyzer removed every positive word
};

// InvalidArgument: options out of range, fields that are unknown, repeated, not text, or of different analyzers, or
// that keep no positions for a phrase.
absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const PreparedTerms& prepared, const Schema& schema,
                                                     const SearchOptions& options);

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PREPARE_H_
