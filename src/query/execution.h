// Execution: one search over the sources of one snapshot. The engine owns the snapshot and its sources; this owns the
// arithmetic and the order of hits.
//
//   ASHLAR_ASSIGN_OR_RETURN(Execution search,
//                           Execution::Create(*prepared.terms(), schema, options, statistics));
//   std::vector<SourceRun<SegmentSource>> segments;  // (source, its index for Handle::source)
//   std::vector<SourceRun<OverlaySource>> overlays;
//   for (auto& run : segments) ASHLAR_RETURN_IF_ERROR(search.AddStatistics(&run));
//   for (auto& run : overlays) ASHLAR_RETURN_IF_ERROR(search.AddStatistics(&run));
//   search.FinishWeights();
//   for (auto& run : segments) ASHLAR_RETURN_IF_ERROR(search.Prepare(&run, segments.size()));  // may be left out
//   for (auto& run : segments) ASHLAR_RETURN_IF_ERROR(search.Run(&run));  // those with the highest bound() first
//   for (auto& run : overlays) ASHLAR_RETURN_IF_ERROR(search.Run(&run));
//   return search.Results();
//
// Call order: Create AddStatistics* FinishWeights Prepare* Run* Results, every source once in each. Document
// frequencies are those of live documents over all sources, which is why no source can be scored before all were
// counted. The order of the sources does not change the answer.
//
// Owns: what it collected, in memory that must outlive it. Threads: one. Errors: InvalidArgument from Create; what a
// cursor or the lengths of a source report (DataLoss), from AddStatistics and Run; after an error there are no results.
#ifndef ASHLAR_SRC_QUERY_EXECUTION_H_
#define ASHLAR_SRC_QUERY_EXECUTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/hits.h"
#include "ashlar/query.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/status.h"
#include "src/query/cursor.h"
#include "src/query/match_counter.h"
#include "src/query/merged_cursor.h"
#include "src/query/phrase_cursor.h"
#include "src/query/prepare.h"
#include "src/query/pruned.h"
#include "src/query/pruned_phrase.h"
#include "src/query/scorer.h"
#include "src/query/traversal.h"

namespace ashlar::query {

// What a search needs to know of the snapshot as a whole.
struct IndexStatistics {
  uint64_t live_documents = 0;
  // The live documents' lengths added up; 0 for an index without lengths.
  std::function<uint64_t(format::IndexId)> length_sum;
};

// Pruned over a source, or nothing, if its cursors have no bounds.
template <class S>
struct PrunedIfBounded {
  struct type {};
};
template <class S>
requires BoundedCursor<typename S::Cursor>
struct PrunedIfBounded<S> {
  using type = Pruned<S, typename S::Cursor, typename S::Lengths>;
};
template <class S>
using PrunedOf = typename PrunedIfBounded<S>::type;

// One source in one search. `source` must outlive it.
template <Source S>
struct SourceRun {
  SourceRun(const S* searched, uint32_t handle_source,
            std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : source(searched), index(handle_source), cursors(memory), opened(memory) {}

  using Cursor = typename S::Cursor;
  using Lengths = typename S::Lengths;

  const S* source;
  uint32_t index;  // Handle::source of its hits
  // Cursors that counting opened and did not move, by term: Run goes on with them and saves the look-ups.
  std::pmr::vector<Cursor> cursors;
  // What Prepare opened: Run goes on with it.
  OpenedTerms<Cursor, Lengths> opened;
  ArenaPtr<PrunedOf<S>> pruned;
};

class Execution {
 public:
  static absl::StatusOr<Execution> Create(const PreparedTerms& prepared, const Schema& schema,
                                          const SearchOptions& options, IndexStatistics statistics,
                                          std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Adds the source's live postings of each term.
  template <Source S>
  absl::Status AddStatistics(SourceRun<S>* run);
  void FinishWeights();
  // Opens the source's lists and looks for a threshold in their best postings, so that it is there, from all sources,
  // before the first is run. Returns the most that a document of the source may score, if it can be told.
  template <Source S>
  absl::StatusOr<int32_t> Prepare(SourceRun<S>* run, size_t sources);
  // Finds the source's hits.
  template <Source S>
  absl::Status Run(SourceRun<S>* run);
  SearchResult Results();
  // From the query alone: no source is looked at.
  bool matches_nothing() const { return plan_->matches_nothing || statistics_.live_documents == 0; }

 private:
  // With more terms, open cursors of all sources at once would take too much memory.
  static constexpr size_t kKeptCursorsMax = 32;
  static constexpr size_t kManyWords = 200;
  // With fewer postings, or for the best blocks of an only term, only the lengths that are looked at are verified: else
  // a first search takes as long as reading the whole column, 20 MB for 10,000,000 documents.
  static constexpr uint64_t kFewLengths = 8192;

  struct TermState {
    uint64_t live_frequency = 0;  // not counted for kMustNot
    float weight = 0;
    bool scores() const { return live_frequency > 0; }
  };
  struct PhraseState {
    bool scores = false;  // false for kMustNot
    float weight = 0;
  };
  // Where a source's documents lie in put order.
  struct Range {
    uint32_t base;
    uint32_t index;
  };

  Execution(std::shared_ptr<const Plan> plan, const SearchOptions& options, IndexStatistics statistics,
            std::pmr::memory_resource* memory);

  Handle HandleOf(uint32_t put_order) const;
  bool may_prune() const { return options_.traversal == Traversal::kAuto || options_.traversal == Traversal::kPruned; }
  // An exact total needs every match, unless it is the document frequency of the only term.
  bool needs_every_match() const { return options_.total == Total::kExact && !counts_only_term(); }
  bool counts_only_term() const {
    return plan_->phrases.empty() && plan_->terms.size() == 1 && plan_->terms[0].occur != Occur::kMustNot;
  }

  double IdfOf(uint64_t live_frequency) const;
  // None if a word of it is in no live document.
  std::optional<double> WeightOf(const PlannedPhrase& phrase) const;

  template <class S, class C>
  absl::StatusOr<uint64_t> CountLive(const S& source, C* cursor);
  // The live documents that have a term. `cursor` stands on its first posting; if that must be moved, it is.
  template <class S>
  absl::StatusOr<uint64_t> CountSingle(const S& source, format::IndexId index, std::string_view term,
                                       typename S::Cursor* cursor);
  template <class S>
  absl::StatusOr<uint64_t> CountMerged(const S& source, const PlannedIndex& index, std::string_view term);
  template <class S>
  absl::Status CountPhraseWords(const S& source);

  // The cursor of a term (or of a phrase, of what C can hold) in one member of its index.
  template <class C, class S>
  static C Open(const S& source, format::IndexId member, const PlannedTerm& term) {
    return C(source.OpenTerm(member, term.term));
  }
  template <class C, class S>
  static C Open(const S& source, format::IndexId member, const PlannedPhrase& phrase) {
    return C(PhraseCursor<typename S::Cursor>(OpenWords(source, member, phrase)));
  }
  template <class S>
  static std::vector<typename PhraseMatcher<typename S::Cursor>::Word> OpenWords(const S& source,
                                                                                 format::IndexId member,
                                                                                 const PlannedPhrase& phrase);
  template <class C, class S, class Part>
  MergedCursor<C> OpenMerged(const S& source, const Part& part) const;

  // Opens what scores or excludes. C: the source's own cursor or, where the plan has phrases, PartCursor of it.
  template <class C, class S>
  absl::Status RunMerged(const SourceRun<S>& run);
  template <class S>
  absl::StatusOr<typename S::Lengths> OpenLengths(const S& source, format::IndexId index) const;
  template <class C, class S>
  absl::Status OpenSingle(SourceRun<S>* run, OpenedTerms<C, typename S::Lengths>* opened);
  template <class C, class S>
  absl::Status RunSingle(SourceRun<S>* run);
  // The query is one phrase in one index, and its total need not be exact.
  template <class S>
  absl::Status RunPhrase(SourceRun<S>* run);
  template <class C, class S>
  absl::Status RunWith(SourceRun<S>* run) {
    return plan_->has_merged_index ? RunMerged<C>(*run) : RunSingle<C>(run);
  }
  // Adds the source's matches to the total, which the page alone does not tell.
  template <class S, class C, class L>
  void CountMatches(const S& source, OpenedTerms<C, L>* terms) {
    MatchCounter<S, C, L> counter(source, terms, memory_);
    collected_.total += counter.Count();
    collected_.postings_read += counter.postings_read();
  }
  template <class S, class C, class L>
  absl::Status Traverse(const S& source, OpenedTerms<C, L>* terms);
  // With so many, almost every document may reach the page as far as bounds tell.
  template <class C, class L>
  bool HasManyWords(const OpenedTerms<C, L>& terms) const {
    return options_.traversal == Traversal::kAuto && terms.size() > kManyWords &&
           std::all_of(terms.begin(), terms.end(), [](const auto& term) { return term.occur == Occur::kShould; });
  }
  template <class S, class C, class L>
  bool Prunes(const S& source, const OpenedTerms<C, L>& terms) const;
  template <class S, class C, class L>
  ArenaPtr<Pruned<S, C, L>> MakePruned(const S& source, OpenedTerms<C, L>* terms);
  template <class S, class C, class L>
  absl::Status FinishPruned(const OpenedTerms<C, L>& terms, Pruned<S, C, L>* pruned);
  // A damaged cursor looks like one at its end, so nothing counts before all were asked.
  template <class C, class L>
  static absl::Status StatusOf(const OpenedTerms<C, L>& terms) {
    for (const OpenedTerm<C, L>& term : terms) {
      ASHLAR_RETURN_IF_ERROR(term.cursor.status());
      if constexpr (requires { term.lengths.status(); }) ASHLAR_RETURN_IF_ERROR(term.lengths.status());
    }
    return absl::OkStatus();
  }

  std::pmr::memory_resource* memory_;
  std::shared_ptr<const Plan> plan_;
  SearchOptions options_;
  IndexStatistics statistics_;
  std::pmr::vector<TermState> states_;           // by term of the plan
  std::pmr::vector<PhraseState> phrase_states_;  // by phrase of the plan
  // Live documents by (index, word) of scoring phrases.
  std::pmr::map<std::pair<uint32_t, std::string_view>, uint64_t> phrase_words_;
  std::pmr::vector<Norm> norms_;  // by index of the plan
  int scale_ = 0;
  bool can_match_ = true;
  bool pruned_ = false;      // some source
  bool exhaustive_ = false;  // the same
  Collected collected_;
  std::pmr::vector<Range> ranges_;
};

template <class S, class C>
absl::StatusOr<uint64_t> Execution::CountLive(const S& source, C* cursor) {
  uint64_t live = 0;
  const bool has_deaths = source.has_deaths();
  for (; cursor->document() != format::kNoDocument; cursor->Next()) {
    ++collected_.postings_read;
    live += !has_deaths || !source.IsDead(cursor->document());
  }
  ASHLAR_RETURN_IF_ERROR(cursor->status());
  return live;
}

template <class S>
absl::StatusOr<uint64_t> Execution::CountSingle(const S& source, format::IndexId index, std::string_view term,
                                                typename S::Cursor* cursor) {
  ASHLAR_RETURN_IF_ERROR(cursor->status());
  if (!source.has_deaths()) return cursor->postings();
  if constexpr (CountsDeadPostings<S>) {
    ASHLAR_ASSIGN_OR_RETURN(const uint32_t dead, source.DeadPostings(index, term));
    return cursor->postings() - dead;
  } else {
    return CountLive(source, cursor);
  }
}

template <class S>
absl::StatusOr<uint64_t> Execution::CountMerged(const S& source, const PlannedIndex& index, std::string_view term) {
  std::vector<typename S::Cursor> members;
  for (const format::IndexId member : index.members) members.push_back(source.OpenTerm(member, term));
  MergedCursor<typename S::Cursor> cursor(std::move(members));
  return CountLive(source, &cursor);
}

template <class S>
absl::Status Execution::CountPhraseWords(const S& source) {
  for (auto& [word, live_frequency] : phrase_words_) {
    const PlannedIndex& index = plan_->indexes[word.first];
    if (index.members.size() > 1) {
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t live, CountMerged(source, index, word.second));
      live_frequency += live;
    } else {
      auto cursor = source.OpenTerm(index.members[0], word.second);
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t live, CountSingle(source, index.members[0], word.second, &cursor));
      live_frequency += live;
    }
  }
  return absl::OkStatus();
}

template <class S>
std::vector<typename PhraseMatcher<typename S::Cursor>::Word> Execution::OpenWords(const S& source,
                                                                                   format::IndexId member,
                                                                                   const PlannedPhrase& phrase) {
  std::vector<typename PhraseMatcher<typename S::Cursor>::Word> words;
  for (size_t i = 0; i < phrase.words.size(); ++i) {
    const std::string& term = phrase.words[i].term;
    std::vector<uint32_t> places;
    bool is_first = true;
    for (size_t j = 0; j < phrase.words.size(); ++j) {
      if (phrase.words[j].term != term) continue;
      is_first = is_first && j >= i;
      places.push_back(phrase.words[j].place);
    }
    if (is_first) words.emplace_back(source.OpenPositions(member, term), std::move(places));
  }
  return words;
}

template <class C, class S, class Part>
MergedCursor<C> Execution::OpenMerged(const S& source, const Part& part) const {
  std::vector<C> members;
  for (const format::IndexId member : plan_->indexes[part.index].members)
    members.push_back(Open<C>(source, member, part));
  return MergedCursor<C>(std::move(members));
}

template <Source S>
absl::Status Execution::AddStatistics(SourceRun<S>* run) {
  const S& source = *run->source;
  if (!can_match_ || source.document_count() == 0) return absl::OkStatus();
  ranges_.push_back({source.put_order_base(), run->index});
  const bool walk = source.has_deaths() && !CountsDeadPostings<S>;
  const bool keep =
      !plan_->has_merged_index && plan_->phrases.empty() && !walk && plan_->terms.size() <= kKeptCursorsMax;
  for (size_t i = 0; i < plan_->terms.size(); ++i) {
    const PlannedTerm& term = plan_->terms[i];
    const PlannedIndex& index = plan_->indexes[term.index];
    if (term.occur == Occur::kMustNot && !keep) continue;
    if (index.members.size() > 1) {
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t live, CountMerged(source, index, term.term));
      states_[i].live_frequency += live;
      continue;
    }
    auto cursor = source.OpenTerm(index.members[0], term.term);
    ASHLAR_RETURN_IF_ERROR(cursor.status());
    if (term.occur != Occur::kMustNot) {
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t live, CountSingle(source, index.members[0], term.term, &cursor));
      states_[i].live_frequency += live;
    }
    if (keep) run->cursors.push_back(std::move(cursor));
  }
  return CountPhraseWords(source);
}

template <class S, class C, class L>
bool Execution::Prunes(const S& source, const OpenedTerms<C, L>& terms) const {
  using P = Pruned<S, C, L>;
  if (!may_prune() || !P::Suits(terms) || HasManyWords(terms)) return false;
  if constexpr (!HasDeadBits<S>) {  // nobody can count apart
    if (needs_every_match() && !P::CountsAll(source, terms)) return false;
  }
  return options_.traversal == Traversal::kPruned || P::IsWorthIt(terms);
}

template <class S, class C, class L>
absl::Status Execution::Traverse(const S& source, OpenedTerms<C, L>* terms) {
  if constexpr (BoundedCursor<C>) {
    if (Prunes<S, C, L>(source, *terms)) return FinishPruned(*terms, MakePruned<S, C, L>(source, terms).get());
  }
  if (options_.traversal == Traversal::kExhaustive || HasManyWords(*terms)) {
    exhaustive_ = true;
    Exhaustive<S, C, L>(source, terms, &collected_).Run();
  } else {
    DocumentAtATime<S, C, L>(source, terms, &collected_).Run();
  }
  return StatusOf(*terms);
}

template <class S, class C, class L>
ArenaPtr<Pruned<S, C, L>> Execution::MakePruned(const S& source, OpenedTerms<C, L>* terms) {
  const bool must_count = needs_every_match() && !Pruned<S, C, L>::CountsAll(source, *terms);
  // Before the other one remembers what its cursors have decoded.
  if constexpr (HasDeadBits<S>) {
    if (must_count) CountMatches(source, terms);
  }
  return NewIn<Pruned<S, C, L>>(memory_, source, terms, !must_count, counts_only_term(), &collected_);
}

template <class S, class C, class L>
absl::Status Execution::FinishPruned(const OpenedTerms<C, L>& terms, Pruned<S, C, L>* pruned) {
  pruned_ = true;
  pruned->Run();
  return StatusOf(terms);
}

template <class S>
absl::StatusOr<typename S::Lengths> Execution::OpenLengths(const S& source, format::IndexId index) const {
  if constexpr (HasSomeLengths<S>) {
    uint64_t postings = 0;
    for (const TermState& state : states_) postings += state.live_frequency;
    if (plan_->phrases.empty() && (postings <= kFewLengths || plan_->terms.size() == 1))
      return source.OpenSomeLengths(index);
  }
  return source.OpenLengths(index);
}

template <class C, class S>
absl::Status Execution::OpenSingle(SourceRun<S>* run, OpenedTerms<C, typename S::Lengths>* opened_terms) {
  using L = typename S::Lengths;
  const S& source = *run->source;
  const bool kept = !run->cursors.empty() && run->cursors.size() == plan_->terms.size();
  std::pmr::vector<L> lengths(plan_->indexes.size(), memory_);
  for (size_t i = 0; i < plan_->indexes.size(); ++i) {
    if (norms_[i].b == 0) continue;  // then lengths do not matter
    ASHLAR_ASSIGN_OR_RETURN(lengths[i], OpenLengths(source, plan_->indexes[i].members[0]));
  }
  OpenedTerms<C, L>& opened = *opened_terms;
  opened.reserve(plan_->terms.size() + plan_->phrases.size());
  const auto add = [&](const auto& part, float weight, C cursor) {
    opened.push_back({part.occur, weight, norms_[part.index], lengths[part.index], std::move(cursor)});
    return opened.back().cursor.status();
  };
  for (size_t i = 0; i < plan_->terms.size(); ++i) {
    const PlannedTerm& term = plan_->terms[i];
    if (term.occur != Occur::kMustNot && !states_[i].scores()) continue;
    const format::IndexId member = plan_->indexes[term.index].members[0];
    ASHLAR_RETURN_IF_ERROR(
        add(term, states_[i].weight, kept ? C(std::move(run->cursors[i])) : Open<C>(source, member, term)));
  }
  if constexpr (!std::is_same_v<C, typename S::Cursor>) {
    for (size_t i = 0; i < plan_->phrases.size(); ++i) {
      const PlannedPhrase& phrase = plan_->phrases[i];
      if (phrase.occur != Occur::kMustNot && !phrase_states_[i].scores) continue;
      const format::IndexId member = plan_->indexes[phrase.index].members[0];
      ASHLAR_RETURN_IF_ERROR(add(phrase, phrase_states_[i].weight, Open<C>(source, member, phrase)));
    }
  }
  return absl::OkStatus();
}

template <class C, class S>
absl::Status Execution::RunSingle(SourceRun<S>* run) {
  OpenedTerms<C, typename S::Lengths> opened(memory_);
  ASHLAR_RETURN_IF_ERROR(OpenSingle(run, &opened));
  return Traverse(*run->source, &opened);
}

template <class C, class S>
absl::Status Execution::RunMerged(const SourceRun<S>& run) {
  using M = MergedCursor<C>;
  using L = MergedLengths<typename S::Lengths>;
  const S& source = *run.source;
  std::pmr::vector<L> lengths(plan_->indexes.size(), memory_);
  for (size_t i = 0; i < plan_->indexes.size(); ++i) {
    if (norms_[i].b == 0) continue;
    std::vector<typename S::Lengths> members;
    for (const format::IndexId member : plan_->indexes[i].members) {
      ASHLAR_ASSIGN_OR_RETURN(auto one, source.OpenLengths(member));
      members.push_back(std::move(one));
    }
    lengths[i] = L(std::move(members));
  }
  OpenedTerms<M, L> opened(memory_);
  opened.reserve(plan_->terms.size() + plan_->phrases.size());
  const auto add = [&](const auto& part, float weight) {
    opened.push_back({part.occur, weight, norms_[part.index], lengths[part.index], OpenMerged<C>(source, part)});
    return opened.back().cursor.status();
  };
  for (size_t i = 0; i < plan_->terms.size(); ++i) {
    if (plan_->terms[i].occur != Occur::kMustNot && !states_[i].scores()) continue;
    ASHLAR_RETURN_IF_ERROR(add(plan_->terms[i], states_[i].weight));
  }
  if constexpr (!std::is_same_v<C, typename S::Cursor>) {
    for (size_t i = 0; i < plan_->phrases.size(); ++i) {
      if (plan_->phrases[i].occur != Occur::kMustNot && !phrase_states_[i].scores) continue;
      ASHLAR_RETURN_IF_ERROR(add(plan_->phrases[i], phrase_states_[i].weight));
    }
  }
  return Traverse(source, &opened);
}

template <class S>
absl::Status Execution::RunPhrase(SourceRun<S>* run) {
  using C = typename S::Cursor;
  using L = typename S::Lengths;
  if constexpr (CanPrunePhrases<C, L>) {
    const PlannedPhrase& phrase = plan_->phrases[0];
    const Norm& norm = norms_[phrase.index];
    const format::IndexId member = plan_->indexes[phrase.index].members[0];
    auto words = OpenWords(*run->source, member, phrase);
    for (const auto& word : words) ASHLAR_RETURN_IF_ERROR(word.cursor.status());
    if (options_.traversal == Traversal::kPruned || PrunedPhrase<S, C, L>::IsWorthIt(words)) {
      L lengths;
      if (norm.b != 0) {
        ASHLAR_ASSIGN_OR_RETURN(lengths, run->source->OpenLengths(member));
      }
      pruned_ = true;
      return PrunedPhrase<S, C, L>(*run->source, std::move(words), phrase_states_[0].weight, norm, lengths, &collected_)
          .Run();
    }
  }
  return RunSingle<PartCursor<C>>(run);
}

template <Source S>
absl::StatusOr<int32_t> Execution::Prepare(SourceRun<S>* run, size_t sources) {
  using C = typename S::Cursor;
  if constexpr (BoundedCursor<C>) {
    if (!can_match_ || run->source->document_count() == 0 || !may_prune()) return INT32_MAX;
    if (plan_->has_merged_index || !plan_->phrases.empty() || plan_->terms.size() > kKeptCursorsMax) return INT32_MAX;
    ASHLAR_RETURN_IF_ERROR(OpenSingle(run, &run->opened));
    if (!Prunes<S, C, typename S::Lengths>(*run->source, run->opened)) return INT32_MAX;
    run->pruned = MakePruned<S, C, typename S::Lengths>(*run->source, &run->opened);
    run->pruned->Prepare(sources);
    return run->pruned->bound();
  }
  return INT32_MAX;
}

template <Source S>
absl::Status Execution::Run(SourceRun<S>* run) {
  if (!can_match_ || run->source->document_count() == 0) return absl::OkStatus();
  if constexpr (BoundedCursor<typename S::Cursor>) {
    if (run->pruned != nullptr) return FinishPruned(run->opened, run->pruned.get());
  }
  if (!run->opened.empty()) return Traverse(*run->source, &run->opened);
  const bool only_phrase = plan_->terms.empty() && plan_->phrases.size() == 1 && !plan_->has_merged_index;
  if (only_phrase && may_prune() && !needs_every_match()) return RunPhrase(run);
  // A cursor that may be a phrase costs more: only for those who ask for one.
  using C = typename S::Cursor;
  return plan_->phrases.empty() ? RunWith<C>(run) : RunWith<PartCursor<C>>(run);
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_EXECUTION_H_
