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
//   for (auto& run : segments) ASHLAR_RETURN_IF_ERROR(search.Run(&run));
//   for (auto& run : overlays) ASHLAR_RETURN_IF_ERROR(search.Run(&run));
//   return search.Results();
//
// Call order: Create AddStatistics* FinishWeights Run* Results, every source once in each. Document frequencies are
// those of live documents over all sources, which is why no source can be scored before all were counted. The order of
// the sources does not change the answer.
//
// Owns: its plan and what it collected. Threads: one. Errors: InvalidArgument from Create; what a cursor or the lengths
// of a source report (DataLoss), from AddStatistics and Run; after an error there are no results.
#ifndef ASHLAR_SRC_QUERY_EXECUTION_H_
#define ASHLAR_SRC_QUERY_EXECUTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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
#include "src/query/merged_cursor.h"
#include "src/query/prepare.h"
#include "src/query/pruned.h"
#include "src/query/scorer.h"
#include "src/query/traversal.h"

namespace ashlar::query {

// What a search needs to know of the snapshot as a whole.
struct IndexStatistics {
  uint64_t live_documents = 0;
  // The live documents' lengths added up; 0 for an index without lengths.
  std::function<uint64_t(format::IndexId)> length_sum;
};

// One source in one search. `source` must outlive it.
template <Source S>
struct SourceRun {
  SourceRun(const S* searched, uint32_t handle_source) : source(searched), index(handle_source) {}

  const S* source;
  uint32_t index;  // Handle::source of its hits
  // Cursors that counting opened and did not move, by term: Run goes on with them and saves the look-ups.
  std::vector<typename S::Cursor> cursors;
};

class Execution {
 public:
  static absl::StatusOr<Execution> Create(const PreparedTerms& prepared, const Schema& schema,
                                          const SearchOptions& options, IndexStatistics statistics);

  // Adds the source's live postings of each term.
  template <Source S>
  absl::Status AddStatistics(SourceRun<S>* run);
  void FinishWeights();
  // Finds the source's hits.
  template <Source S>
  absl::Status Run(SourceRun<S>* run);
  SearchResult Results();
  // From the query alone: no source is looked at.
  bool matches_nothing() const { return plan_.matches_nothing || statistics_.live_documents == 0; }

 private:
  // With more terms, open cursors of all sources at once would take too much memory.
  static constexpr size_t kKeptCursorsMax = 32;

  struct TermState {
    uint64_t live_frequency = 0;  // not counted for kMustNot
    float weight = 0;
    bool scores() const { return live_frequency > 0; }
  };
  // Where a source's documents lie in put order.
  struct Range {
    uint32_t base;
    uint32_t index;
  };

  Execution(Plan plan, IndexStatistics statistics);

  Handle HandleOf(uint32_t put_order) const;
  bool may_prune() const {
    return plan_.options.traversal == Traversal::kAuto || plan_.options.traversal == Traversal::kPruned;
  }
  // An exact total needs every match, unless it is the document frequency of the only term.
  bool needs_every_match() const { return plan_.options.total == Total::kExact && !counts_only_term(); }
  bool counts_only_term() const { return plan_.terms.size() == 1 && plan_.terms[0].occur != Occur::kMustNot; }

  template <class S, class C>
  absl::StatusOr<uint64_t> CountLive(const S& source, C* cursor);
  template <class S>
  MergedCursor<typename S::Cursor> OpenMerged(const S& source, const PlannedTerm& term) const;
  template <class S>
  typename S::Cursor OpenSingle(const S& source, const PlannedTerm& term) const {
    return source.OpenTerm(plan_.indexes[term.index].members[0], term.term);
  }
  template <class S>
  absl::Status RunMerged(const SourceRun<S>& run);
  template <class S>
  absl::Status RunSingle(SourceRun<S>* run);
  template <class S, class C, class L>
  absl::Status Traverse(const S& source, std::vector<OpenedTerm<C, L>>* terms);

  Plan plan_;
  IndexStatistics statistics_;
  std::vector<TermState> states_;  // by term of the plan
  std::vector<Norm> norms_;        // by index of the plan
  int scale_ = 0;
  bool can_match_ = true;
  bool pruned_ = false;
  Collected collected_;
  std::vector<Range> ranges_;
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
MergedCursor<typename S::Cursor> Execution::OpenMerged(const S& source, const PlannedTerm& term) const {
  std::vector<typename S::Cursor> members;
  for (const format::IndexId member : plan_.indexes[term.index].members) {
    members.push_back(source.OpenTerm(member, term.term));
  }
  return MergedCursor<typename S::Cursor>(std::move(members));
}

template <Source S>
absl::Status Execution::AddStatistics(SourceRun<S>* run) {
  const S& source = *run->source;
  if (!can_match_ || source.document_count() == 0) return absl::OkStatus();
  ranges_.push_back({source.put_order_base(), run->index});
  const bool walk = source.has_deaths() && !CountsDeadPostings<S>;
  const bool keep = !plan_.has_merged_index && !walk && plan_.terms.size() <= kKeptCursorsMax;
  for (size_t i = 0; i < plan_.terms.size(); ++i) {
    const PlannedTerm& term = plan_.terms[i];
    if (plan_.indexes[term.index].members.size() > 1) {
      if (term.occur == Occur::kMustNot) continue;
      auto cursor = OpenMerged(source, term);
      ASHLAR_ASSIGN_OR_RETURN(const uint64_t live, CountLive(source, &cursor));
      states_[i].live_frequency += live;
      continue;
    }
    if (term.occur == Occur::kMustNot && !keep) continue;
    auto cursor = OpenSingle(source, term);
    ASHLAR_RETURN_IF_ERROR(cursor.status());
    if (term.occur != Occur::kMustNot) {
      uint64_t live = cursor.postings();
      if constexpr (CountsDeadPostings<S>) {
        if (source.has_deaths()) {
          ASHLAR_ASSIGN_OR_RETURN(const uint32_t dead,
                                  source.DeadPostings(plan_.indexes[term.index].members[0], term.term));
          live -= dead;
        }
      } else if (walk) {
        ASHLAR_ASSIGN_OR_RETURN(live, CountLive(source, &cursor));
      }
      states_[i].live_frequency += live;
    }
    if (keep) run->cursors.push_back(std::move(cursor));
  }
  return absl::OkStatus();
}

template <class S, class C, class L>
absl::Status Execution::Traverse(const S& source, std::vector<OpenedTerm<C, L>>* terms) {
  bool pruned = false;
  if constexpr (CanPrune<C, L>) {
    pruned = may_prune() && Pruned<S, C, L>::Suits(*terms) &&
             (!needs_every_match() || Pruned<S, C, L>::CountsAll(*terms)) &&
             (plan_.options.traversal == Traversal::kPruned || Pruned<S, C, L>::IsWorthIt(*terms));
    if (pruned) Pruned<S, C, L>(source, terms, &collected_).Run();
  }
  pruned_ |= pruned;
  if (pruned) {
    // Done.
  } else if (plan_.options.traversal == Traversal::kExhaustive) {
    Exhaustive<S, C, L>(source, terms, &collected_).Run();
  } else {
    DocumentAtATime<S, C, L>(source, terms, &collected_).Run();
  }
  // A damaged cursor looks like one at its end, so nothing counts before all were asked.
  for (const OpenedTerm<C, L>& term : *terms) ASHLAR_RETURN_IF_ERROR(term.cursor.status());
  return absl::OkStatus();
}

template <class S>
absl::Status Execution::RunSingle(SourceRun<S>* run) {
  using C = typename S::Cursor;
  using L = typename S::Lengths;
  const S& source = *run->source;
  const bool kept = run->cursors.size() == plan_.terms.size();
  std::vector<L> lengths(plan_.indexes.size());
  for (size_t i = 0; i < plan_.indexes.size(); ++i) {
    if (norms_[i].b == 0) continue;  // then lengths do not matter
    ASHLAR_ASSIGN_OR_RETURN(lengths[i], source.OpenLengths(plan_.indexes[i].members[0]));
  }
  std::vector<OpenedTerm<C, L>> terms;
  terms.reserve(plan_.terms.size());
  for (size_t i = 0; i < plan_.terms.size(); ++i) {
    const PlannedTerm& term = plan_.terms[i];
    if (term.occur != Occur::kMustNot && !states_[i].scores()) continue;
    C cursor = kept ? std::move(run->cursors[i]) : OpenSingle(source, term);
    ASHLAR_RETURN_IF_ERROR(cursor.status());
    terms.push_back({term.occur, states_[i].weight, norms_[term.index], lengths[term.index], std::move(cursor)});
  }
  return Traverse(source, &terms);
}

template <class S>
absl::Status Execution::RunMerged(const SourceRun<S>& run) {
  using C = MergedCursor<typename S::Cursor>;
  using L = MergedLengths<typename S::Lengths>;
  const S& source = *run.source;
  std::vector<L> lengths(plan_.indexes.size());
  for (size_t i = 0; i < plan_.indexes.size(); ++i) {
    if (norms_[i].b == 0) continue;
    std::vector<typename S::Lengths> members;
    for (const format::IndexId member : plan_.indexes[i].members) {
      ASHLAR_ASSIGN_OR_RETURN(auto one, source.OpenLengths(member));
      members.push_back(std::move(one));
    }
    lengths[i] = L(std::move(members));
  }
  std::vector<OpenedTerm<C, L>> terms;
  terms.reserve(plan_.terms.size());
  for (size_t i = 0; i < plan_.terms.size(); ++i) {
    const PlannedTerm& term = plan_.terms[i];
    if (term.occur != Occur::kMustNot && !states_[i].scores()) continue;
    C cursor = OpenMerged(source, term);
    ASHLAR_RETURN_IF_ERROR(cursor.status());
    terms.push_back({term.occur, states_[i].weight, norms_[term.index], lengths[term.index], std::move(cursor)});
  }
  return Traverse(source, &terms);
}

template <Source S>
absl::Status Execution::Run(SourceRun<S>* run) {
  if (!can_match_ || run->source->document_count() == 0) return absl::OkStatus();
  return plan_.has_merged_index ? RunMerged(*run) : RunSingle(run);
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_EXECUTION_H_
