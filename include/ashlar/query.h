// Query: what is asked, as values. Parsing and analysis belong to the store's schema (Store::Prepare).
#ifndef ASHLAR_QUERY_H_
#define ASHLAR_QUERY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ashlar {

namespace query {
struct PreparedTerms;
}

enum class Occur : uint8_t { kShould, kMust, kMustNot };

// One piece of a query. Its text is analysed like the field's own text; if that gives several words, kMust asks for
// all of them, kShould for any, and kMustNot excludes documents that have any of them.
//
// As a phrase it asks for its words side by side: in one value of one field, in order, and as far apart as in the
// clause. A word that the analyzer removes leaves its place free on both sides: where it removes "to" and "a", the
// phrase "plans to eat" is found in "plans a eat", and not in "plans eat" or "plans to a eat". A phrase of one word is
// that word; one of none is like a clause whose words were all removed. A keyword is one word, whatever is in it.
// InvalidArgument: a phrase of several words on fields of which one keeps no positions (Field::positions), on Prepare if
// the clause names the field, else on Search; more than 99 removed words in a row inside a phrase.
//
// The score of a phrase is BM25 like a word's, in integers as src/query/scorer.h says, with
//   f      = the places of the document where the phrase begins: "a a" begins twice in "a a a"
//   weight = (idf 1 + idf 2 + ...) (k1 + 1) boost, the words' idf added up in the order of the phrase in binary64
// where the idf of a word is what it is for the word alone: by all live documents that have it in the searched fields.
// A word that comes twice counts twice. A phrase with a word that no live document has matches nothing.
struct Clause {
  Occur occur = Occur::kShould;
  std::string field;  // empty: the default group
  std::string text;
  double boost = 1.0;   // in (0, 1e6]
  bool phrase = false;  // several words as a phrase
};

// Any of the kShould clauses (at least one if there is no kMust), all of the kMust, none of the kMustNot.
struct Query {
  std::vector<Clause> clauses;
};

// `any of these words`, `+must`, `-not`, `field:word`, `+field:word`, `word^2.5` (boost), `\:` for a literal sign.
// `"a phrase"`, `+"a phrase"`, `-"a phrase"`, `field:"a phrase"`, `"a phrase"^2.5`; in a phrase `\"` is a quotation
// mark and all other signs are literal. A quotation mark that is not where a word begins is a part of the word: `5"`.
// InvalidArgument names the column of what it can't read. Whether fields exist is checked when the query is prepared.
absl::StatusOr<Query> ParseQuery(std::string_view text);
// Every word is a kShould clause of the default group; no character has a meaning of its own, so prose never becomes
// phrases.
Query PlainWords(std::string_view text);

enum class Total : uint8_t {
  kNone,   // hits only; SearchResult::total is what was seen
  kBound,  // a lower bound
  kExact,  // the number of matching live documents
};

// Never changes the answer, only the way to it. kPruned skips what can't reach the page, and counts an exact total apart; where
// it can't be used (an exact total with a phrase, fields merged at query time, the overlay) kDaat is.
enum class Traversal : uint8_t { kAuto, kExhaustive, kDaat, kPruned };

struct SearchOptions {
  uint64_t k = 10;      // 1 or more; k + offset is cut to the number of live documents
  uint64_t offset = 0;
  double k1 = 1.2;  // in [0, 1000]
  double b = 0.75;  // in [0, 1]
  // The text fields that words without a field search, as one text. Empty, or the default group in any order: the
  // group's own index. Any other subset of the group is merged at query time, which is slower.
  std::vector<std::string> fields;
  Total total = Total::kExact;
  Traversal traversal = Traversal::kAuto;
  // False: damage in a segment that the query needs is DataLoss. True: such a segment is left out as a whole and the answer
  // says so (SearchResult::documents_not_searched). Scores are then those of the other sources: document frequencies are
  // counted in them alone, while the number of documents and the average length stay those of the snapshot.
  bool allow_partial = false;
};

// A query parsed and analysed against a schema; usable with every snapshot of that store. Cheap to copy, immutable,
// usable from any number of threads.
class PreparedQuery {
 public:
  PreparedQuery() = default;
  explicit PreparedQuery(std::shared_ptr<const query::PreparedTerms> terms) : terms_(std::move(terms)) {}
  const query::PreparedTerms* terms() const { return terms_.get(); }

 private:
  std::shared_ptr<const query::PreparedTerms> terms_;
};

}  // namespace ashlar

#endif  // ASHLAR_QUERY_H_
