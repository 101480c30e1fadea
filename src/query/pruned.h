// Pruned: reads only what can still reach the page. What the postings of a block contribute at most is known from its
// frontier (format/frontier.h), so a block, or a window of documents, is passed over when it can't beat the k-th hit so
// far.
//
// Few postings: all are read and merged. One term: the best groups of blocks first, in them the best blocks.
//
// Several: the best postings of the strongest list give a first threshold. If then few rare lists can bring a document
// to the page, each of them leads in turn, the strongest first: it proposes its documents that no earlier one had, and
// the others are probed for them. Otherwise windows of documents, in order: lists whose bounds together can't reach the
// page (the non-essential ones) are not read but probed. Lists with dense windows (format/dense_window.h) are added
// whole, as 8-bit upper bounds by value, and what reaches the threshold that way is scored exactly by probing.
//
// Where words must occur, the rarest of them proposes, window by window.
//
// Exact: every document that is in the page is offered with its whole score. Counts only what it offers: all matches,
// where the postings are few. match_counter.h counts the others.
#ifndef ASHLAR_SRC_QUERY_PRUNED_H_
#define ASHLAR_SRC_QUERY_PRUNED_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "format/layout.h"
#include "src/query/pruned_list.h"
#include "src/query/search_arena.h"
#include "src/query/traversal.h"
#include "src/simd/kernels.h"
#include "src/simd/scatter.h"

namespace ashlar::query {

template <class S, class C, class L>
class Pruned {
  static_assert(BoundedCursor<C>);

 public:
  using Term = OpenedTerm<C, L>;
  using List = PrunedList<C, L>;

  // Whether it can do this query.
  static bool Suits(const OpenedTerms<C, L>& terms) {
    return std::all_of(terms.begin(), terms.end(),
                       [](const Term& term) { return term.occur == Occur::kMustNot || term.cursor.is_bounded(); });
  }
  // Whether it finds every match all the same, and counts them.
  static bool CountsAll(const S& source, const OpenedTerms<C, L>& terms) {
    return HasMust(terms) ? FollowsRarest(source, terms) : PostingsOf(terms) <= kFewPostings;
  }
  // Whether it is faster than reading one document after the other.
  static bool IsWorthIt(const OpenedTerms<C, L>& terms) {
    if (!HasMust(terms)) return PostingsOf(terms) > kVeryFewPostings;
    // One by one, each look-up in a list of many postings decodes a block.
    const uint64_t rarest = RarestOf(terms);
    const auto long_lists = static_cast<uint64_t>(std::count_if(
        terms.begin(), terms.end(), [](const Term& term) { return term.cursor.postings() >= simd::kBlock; }));
    return rarest > kVeryFewPostings || rarest * long_lists > kVeryFewLookUps;
  }

  // `adds_to_total`: what it offers counts, and the total is exact if that is all. Otherwise somebody else counts.
  // `is_only_term`: the total is the term's document frequency, and nobody counts.
  Pruned(const S& source, OpenedTerms<C, L>* terms, bool adds_to_total, bool is_only_term, Collected* out)
      : source_(source),
        has_deaths_(source.has_deaths()),
        base_(source.put_order_base()),
        document_count_(source.document_count()),
        out_(*out),
        adds_to_total_(adds_to_total),
        counts_all_(CountsAll(source, *terms) && !(is_only_term && PostingsOf(*terms) > kSkippedPostings)) {
    for (Term& term : *terms) {
      if (term.occur == Occur::kMustNot) {
        must_not_.push_back(&term);
        continue;
      }
      lists_.emplace_back(&term, memory_);
      if (term.occur == Occur::kShould) {
        should_.push_back(&lists_.back());
        continue;
      }
      InsertSorted(&must_, &lists_.back(), [](const List* a, const List* b) { return a->postings() < b->postings(); });
    }
  }

  // Looks for a threshold in the best postings. `sources`: as many as share the work of it. Before Run, or not at all.
  void Prepare(size_t sources) {
    if (is_prepared_ || counts_all_ || is_one_term() || out_.top.limit() == 0) return;
    is_prepared_ = true;
    BoundWindows();
    active_.reserve(lists_.size());
    // Cursors of words that must not occur move forward only.
    if (!must_.empty() || !must_not_.empty()) return;
    for (List& list : lists_)
      InsertSorted(&strongest_, &list, [](const List* a, const List* b) { return a->bound() > b->bound(); });
    Prime(sources);
  }
  // The most that a document may score, if it is known. After Prepare.
  int32_t bound() const {
    return window_bounds_.empty() ? INT32_MAX : kernels_.maximum(window_bounds_.data(), window_bounds_.size());
  }

  void Run() {
    if (counts_all_) {
      must_.empty() ? AddAll() : FollowRarest();
    } else {
      if (adds_to_total_) out_.total_is_exact = false;
      if (out_.top.limit() == 0) return;
      if (is_one_term()) {
        BestBlocksFirst();
      } else {
        Several();
      }
    }
    for (const List& list : lists_) out_.postings_read += list.postings_read();
  }

 private:
  static constexpr uint32_t kBlocksPerGroup = static_cast<uint32_t>(format::kBlocksPerGroup);
  static constexpr uint64_t kFewPostings = 8192;
  static constexpr uint64_t kVeryFewPostings = 64;
  static constexpr uint64_t kVeryFewLookUps = 8;
  static constexpr uint64_t kSkippedPostings = 1024;  // from which on looking for the best blocks of one list pays
  static constexpr size_t kPrimingPostings = 512;
  static constexpr uint64_t kPrimedMax = 1000;  // hits; for more, priming is most of the work
  static constexpr size_t kLeadsMax = 3;
  static constexpr uint32_t kDocumentsALedPosting = 8;
  static constexpr uint32_t kProbesPerWindow = 48;  // that cost as much as adding dense windows
  static constexpr size_t kWindowsFirst = 10;       // that raise the threshold before the rest is looked at

  bool is_one_term() const { return lists_.size() == 1 && must_not_.empty() && lists_.front().has_blocks(); }
  static bool HasMust(const OpenedTerms<C, L>& terms) {
    return std::any_of(terms.begin(), terms.end(), [](const Term& term) { return term.occur == Occur::kMust; });
  }
  // Of the words that must occur.
  static uint64_t RarestOf(const OpenedTerms<C, L>& terms) {
    uint64_t rarest = UINT64_MAX;
    for (const Term& term : terms)
      if (term.occur == Occur::kMust) rarest = std::min<uint64_t>(rarest, term.cursor.postings());
    return rarest;
  }
  // Whether the rarest has so few postings that looking each up in the other lists costs less than going by windows.
  static bool FollowsRarest(const S& source, const OpenedTerms<C, L>& terms) {
    constexpr uint64_t kPostingsAWindow = 16;
    return RarestOf(terms) <= kPostingsAWindow * (source.document_count() / simd::kWindow + 1);
  }
  // Of the lists that bring documents.
  static uint64_t PostingsOf(const OpenedTerms<C, L>& terms) {
    uint64_t postings = 0;
    for (const Term& term : terms) postings += term.occur == Occur::kMustNot ? 0 : term.cursor.postings();
    return postings;
  }

  // The least score with which this document, or a later one, may still enter.
  int32_t Needed(uint32_t document) const {
    const uint32_t put_order = base_ + document;
    return std::max(TopK::ScoreToReach(out_.floor(), put_order), out_.top.Needed(put_order));
  }
  static uint32_t WindowOf(uint32_t document) { return document / static_cast<uint32_t>(simd::kWindow); }

  void Offer(uint32_t document, int32_t score) { Offer(document, score, &out_.top); }
  void Offer(uint32_t document, int32_t score, TopK* top) {
    if (has_deaths_ && source_.IsDead(document)) return;
    for (Term* term : must_not_) {
      if (term->cursor.document() < document) term->cursor.Seek(document);
      if (term->cursor.document() == document) return;
    }
    out_.total += adds_to_total_ && top == &out_.top ? 1 : 0;
    top->Offer(score, base_ + document);
  }

  // The candidates that have their whole score.
  void OfferCandidates(size_t n, int32_t needed) {
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, 0, needed);
    for (size_t i = 0; i < n; ++i) Offer(documents_[i], scores_[i]);
  }

  // --- few postings ---
  // Documents, ascending and with kNoDocument behind them, and their scores.
  struct Sorted {
    uint32_t* documents = nullptr;
    int32_t* scores = nullptr;
    size_t n = 0;
  };
  struct MergeBuffer {
    explicit MergeBuffer(std::pmr::memory_resource* memory) : documents(memory), scores(memory) {}
    std::pmr::vector<uint32_t> documents;
    std::pmr::vector<int32_t> scores;
  };
  static constexpr size_t kPadding = 16;  // of kernels
  static constexpr size_t kMerged = 4;    // lists at a time
  void AddAll();
  size_t LongerLists(std::span<List* const> lists) const;
  Sorted MergeShorter(std::span<List* const> from, std::array<MergeBuffer, 2>* buffers);
  template <size_t n>
  static size_t MergeOf(const Sorted* lists, uint32_t* documents, int32_t* scores);
  static size_t Merge(std::span<const Sorted> lists, uint32_t* documents, int32_t* scores);
  void FollowRarest();
  void OfferAll(const uint32_t* documents, const int32_t* scores, size_t n);

  // --- one term ---
  void BestBlocksFirst();
  void BestBlocksOf(uint32_t group);
  void OfferBlock(uint32_t block);

  // --- several ---
  void Several();
  // Leads.
  void Prime(size_t sources);
  std::pmr::vector<uint32_t> BestBlocks(const List& list, size_t wanted) const;
  bool LeadsSuit() const;
  void Lead(size_t lead);
  size_t ProposeBest(List* list, size_t wanted);
  int32_t BoundOfLater(size_t lead, uint32_t first_window, uint32_t last_window);
  size_t ScoreLed(size_t lead, size_t n);
  void OfferLed(size_t n, TopK* top);
  void PrimeBy(size_t lead, uint32_t block, size_t wanted);

  // Windows.
  void Windows();
  void BoundWindows();
  void Window(uint32_t window);
  void AllOf(uint32_t window, uint32_t begin, uint32_t end, int32_t needed);
  std::pair<size_t, size_t> PartOf(const List& list, uint32_t block, uint32_t begin, uint32_t end) const;
  size_t Propose(List* lead, uint32_t begin, uint32_t end, int32_t bound_needed);
  void AnyOf(uint32_t begin, uint32_t end);
  size_t SplitLists(uint32_t window, int32_t needed, int32_t* passed_over);
  std::span<const uint32_t> Scatter(List* list, uint32_t block, uint32_t begin, uint32_t end);
  void Add(List* list, uint32_t begin, uint32_t end, int32_t bound_needed);
  bool AddsWindows(size_t non_essential) const;
  bool AddingCostsLess(size_t n, size_t lists);
  void AddWhole(uint32_t begin, uint32_t end, int32_t needed);
  void AddBoundsFirst(uint32_t window, size_t non_essential, int32_t needed);
  void AddBounds(List* list, uint32_t begin, uint32_t end, int32_t bound_needed);
  size_t Probe(List* list, size_t n, int32_t bound_needed, Probing probing) {
    return list->Probe(n, bound_needed, probing, documents_.data(), scores_.data());
  }

  const S& source_;
  const bool has_deaths_;
  const uint32_t base_;
  const uint32_t document_count_;
  Collected& out_;
  const bool adds_to_total_;
  const bool counts_all_;
  bool is_prepared_ = false;
  const simd::Kernels& kernels_ = simd::BestKernels();
  std::pmr::memory_resource* const memory_ = out_.memory;
  std::pmr::list<List> lists_{memory_};    // which do not move
  std::pmr::vector<List*> must_{memory_};  // rarest first
  std::pmr::vector<List*> should_{memory_};
  std::pmr::vector<Term*> must_not_{memory_};
  std::pmr::vector<int32_t> window_bounds_{memory_};                      // of all lists together
  std::pmr::vector<List*> strongest_{memory_};                            // all of them by bound, descending
  std::pmr::vector<std::pair<size_t, uint32_t>> primed_blocks_{memory_};  // (lead, block) that were looked at whole
  std::pmr::vector<uint32_t> primed_documents_{memory_};                  // of theirs those that may enter,
  std::pmr::vector<int32_t> primed_scores_{memory_};                      // with whole scores
  std::pmr::vector<int32_t> later_bounds_{memory_};  // of lists behind the lead, in the windows of one block
  std::pmr::vector<std::pair<int32_t, List*>> active_{memory_};  // (bound, list) of this window, ascending
  uint32_t windows_to_add_whole_ = 0;                            // before candidates are looked for again
  int shift_ = 0;
  const std::byte* lengths_ = nullptr;  // by which documents are told apart, if they are
  LengthClasses& classes_ = out_.scratch.get().classes;
  std::vector<int32_t>& accumulators_ = out_.scratch.get().accumulators;
  std::vector<uint16_t>& bounds_ = out_.scratch.get().bounds;  // / 2^shift_
  std::vector<uint16_t>& offsets_ = out_.scratch.get().offsets;
  std::vector<uint32_t>& documents_ = out_.scratch.get().documents;
  std::vector<int32_t>& scores_ = out_.scratch.get().scores;
};

// ---- Few postings.

// All are decoded. Shorter lists are merged by document, four at a time. In the longer ones documents stay where they
// are: those of shorter lists that they have are added there.
template <class S, class C, class L>
void Pruned<S, C, L>::AddAll() {
  std::pmr::vector<List*> lists(memory_);  // longest first
  lists.reserve(lists_.size());
  for (List& list : lists_) {
    list.Flatten();
    InsertSorted(&lists, &list, [](const List* a, const List* b) { return a->postings() > b->postings(); });
  }
  const size_t longer = LongerLists(lists);
  for (size_t i = 1; i < longer; ++i)
    for (size_t j = 0; j < i; ++j) lists[j]->TakeShared(lists[i]);
  if (longer < lists.size()) {
    std::array<MergeBuffer, 2> buffers{MergeBuffer(memory_), MergeBuffer(memory_)};
    const Sorted merged = MergeShorter(std::span(lists).subspan(longer), &buffers);
    size_t n = merged.n;
    for (size_t j = 0; j < longer && n > 0; ++j) n = lists[j]->TakeShared(merged.documents, merged.scores, n);
    OfferAll(merged.documents, merged.scores, n);
  }
  for (size_t i = 0; i < longer; ++i)
    OfferAll(lists[i]->documents().data(), lists[i]->contributions(), lists[i]->documents().size());
}

// How many of these, longest first, had better not be merged with the others.
template <class S, class C, class L>
size_t Pruned<S, C, L>::LongerLists(std::span<List* const> lists) const {
  // Cursors of words that must not occur move forward only, so documents must come in order.
  if (!must_not_.empty() || lists.size() == 1) return 0;
  constexpr uint64_t kMerge = 3, kLookUp = 4, kBlock = 25;  // ns, about: a posting, a posting, a block
  uint64_t shorter = 0;
  for (const List* list : lists) shorter += list->postings();
  uint64_t least = UINT64_MAX, looking_up = 0, blocks = 0;  // `blocks`: of the longer ones
  size_t best = 0;
  for (size_t longer = 0; longer <= lists.size(); ++longer) {
    uint64_t rounds = 0;
    for (size_t n = lists.size() - longer; n > 1; n = (n + kMerged - 1) / kMerged) ++rounds;
    const uint64_t cost = looking_up + kMerge * shorter * rounds + kLookUp * shorter * longer +
                          kBlock * std::min(shorter * longer, blocks);
    if (cost < least) {
      least = cost;
      best = longer;
    }
    if (longer == lists.size()) break;
    const uint64_t postings = lists[longer]->postings();
    shorter -= postings;
    looking_up += kLookUp * postings * longer + kBlock * std::min(postings * longer, blocks);
    blocks += postings / simd::kBlock + 1;
  }
  return best;
}

template <class S, class C, class L>
auto Pruned<S, C, L>::MergeShorter(std::span<List* const> from, std::array<MergeBuffer, 2>* buffers) -> Sorted {
  std::pmr::vector<Sorted> lists(memory_);
  lists.reserve(from.size());
  size_t postings = 0;
  for (List* list : from) {
    lists.push_back(Sorted{list->flat_documents(), list->flat_contributions(), list->documents().size()});
    postings += list->documents().size();
  }
  for (size_t round = 0; lists.size() > 1; ++round) {
    MergeBuffer& to = (*buffers)[round % 2];
    to.documents.resize(postings + lists.size() + kPadding);
    to.scores.resize(postings + lists.size() + kPadding);
    std::pmr::vector<Sorted> merged(memory_);
    size_t end = 0;
    for (size_t i = 0; i < lists.size(); i += kMerged) {
      const std::span<const Sorted> some(&lists[i], std::min(kMerged, lists.size() - i));
      const size_t n = Merge(some, &to.documents[end], &to.scores[end]);
      merged.push_back({&to.documents[end], &to.scores[end], n});
      end += n + 1;
    }
    lists.swap(merged);
  }
  return lists[0];
}

// Adds what n lists have for a document. No branch on the values: they have no pattern.
template <class S, class C, class L>
template <size_t n>
size_t Pruned<S, C, L>::MergeOf(const Sorted* lists, uint32_t* documents, int32_t* scores) {
  std::array<const uint32_t*, n> next;
  std::array<const int32_t*, n> next_score;
  for (size_t i = 0; i < n; ++i) {
    next[i] = lists[i].documents;
    next_score[i] = lists[i].scores;
  }
  for (size_t merged = 0;; ++merged) {
    uint32_t document = *next[0];
    for (size_t i = 1; i < n; ++i) document = std::min(document, *next[i]);
    documents[merged] = document;
    if (document == format::kNoDocument) return merged;
    int32_t score = 0;
    for (size_t i = 0; i < n; ++i) {
      const bool has_it = *next[i] == document;
      score += has_it ? *next_score[i] : 0;
      next[i] += has_it ? 1 : 0;
      next_score[i] += has_it ? 1 : 0;
    }
    scores[merged] = score;
  }
}

template <class S, class C, class L>
size_t Pruned<S, C, L>::Merge(std::span<const Sorted> lists, uint32_t* documents, int32_t* scores) {
  static_assert(kMerged == 4);
  switch (lists.size()) {
    case 1:
      return MergeOf<1>(lists.data(), documents, scores);
    case 2:
      return MergeOf<2>(lists.data(), documents, scores);
    case 3:
      return MergeOf<3>(lists.data(), documents, scores);
    default:
      return MergeOf<4>(lists.data(), documents, scores);
  }
}

// The rarest word that must occur brings all its documents; the others are looked up for them.
template <class S, class C, class L>
void Pruned<S, C, L>::FollowRarest() {
  List* const lead = must_[0];
  lead->Flatten();
  const size_t postings = lead->documents().size();
  for (size_t i = 0; i < postings; i += simd::kWindow) {
    size_t n = std::min(postings - i, simd::kWindow);
    std::copy_n(lead->documents().data() + i, n, documents_.data());
    std::copy_n(lead->contributions() + i, n, scores_.data());
    for (size_t j = 1; j < must_.size(); ++j) n = Probe(must_[j], n, INT32_MIN, Probing::kRequired);
    for (List* list : should_) Probe(list, n, INT32_MIN, Probing::kOptional);
    OfferAll(documents_.data(), scores_.data(), n);
  }
}

// Matches of the source, all in a stretch of documents, with their whole scores, in order.
template <class S, class C, class L>
void Pruned<S, C, L>::OfferAll(const uint32_t* documents, const int32_t* scores, size_t n) {
  if (has_deaths_ || !must_not_.empty()) {
    for (size_t i = 0; i < n; ++i) Offer(documents[i], scores[i]);
    return;
  }
  if (adds_to_total_) out_.total += n;
  if (out_.top.limit() == 0 || n == 0) return;
  int32_t needed = Needed(documents[0]);  // by a later document, no less
  for (size_t i = 0; i < n; ++i) {
    if (needed > 0) i += kernels_.first_at_least(scores + i, n - i, needed);
    if (i == n) return;
    out_.top.Offer(scores[i], base_ + documents[i]);
    needed = Needed(documents[i]);
  }
}

// ---- One term.

template <class S, class C, class L>
void Pruned<S, C, L>::BestBlocksFirst() {
  const List& list = lists_.front();
  std::pmr::vector<int32_t> bounds(memory_);
  list.GroupBounds(&bounds);
  const uint32_t groups = (list.blocks() + kBlocksPerGroup - 1) / kBlocksPerGroup;
  // As the best hit that a group may have, so that of equal bounds the earlier group comes first.
  std::pmr::vector<std::pair<uint64_t, uint32_t>> heap(groups, memory_);
  for (uint32_t group = 0; group < groups; ++group)
    heap[group] = {TopK::KeyOf(bounds[group], base_ + list.FirstPossible(group * kBlocksPerGroup)), group};
  std::make_heap(heap.begin(), heap.end());
  for (; !heap.empty() && out_.top.MayEnter(heap.front().first); heap.pop_back()) {
    BestBlocksOf(heap.front().second);
    std::pop_heap(heap.begin(), heap.end());
  }
}

template <class S, class C, class L>
void Pruned<S, C, L>::BestBlocksOf(uint32_t group) {
  List& list = lists_.front();
  const uint32_t first = group * kBlocksPerGroup;
  const uint32_t n = std::min(kBlocksPerGroup, list.blocks() - first);
  std::array<int32_t, kBlocksPerGroup> bounds;
  list.BlockBounds(first, n, bounds.data());
  std::array<std::pair<uint64_t, uint32_t>, kBlocksPerGroup> order;
  uint32_t worth = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t key = TopK::KeyOf(bounds[i], base_ + list.FirstPossible(first + i));
    if (out_.top.MayEnter(key)) order[worth++] = {key, first + i};
  }
  std::sort(order.begin(), order.begin() + worth, std::greater<>());
  for (uint32_t i = 0; i < worth && out_.top.MayEnter(order[i].first); ++i) OfferBlock(order[i].second);
}

template <class S, class C, class L>
void Pruned<S, C, L>::OfferBlock(uint32_t block) {
  List& list = lists_.front();
  list.Load(block);
  if (list.documents().empty()) return;
  const size_t n =
      list.Select(0, list.documents().size(), Needed(list.documents().front()), documents_.data(), scores_.data());
  for (size_t i = 0; i < n; ++i) Offer(documents_[i], scores_[i]);
}

// ---- Several.

template <class S, class C, class L>
void Pruned<S, C, L>::Several() {
  Prepare(1);
  if (LeadsSuit()) {
    for (size_t i = 0; i < primed_documents_.size(); ++i) Offer(primed_documents_[i], primed_scores_[i]);
    for (size_t i = 0; i < strongest_.size(); ++i) Lead(i);
  } else {
    Windows();
  }
}

// ---- Leads.

// What the lists behind the lead bring at most in these windows, by list into later_bounds_, and together.
template <class S, class C, class L>
int32_t Pruned<S, C, L>::BoundOfLater(size_t lead, uint32_t first_window, uint32_t last_window) {
  later_bounds_.resize(strongest_.size());
  int32_t sum = 0;
  for (size_t i = lead + 1; i < strongest_.size(); ++i) {
    int32_t most = 0;
    for (uint32_t window = first_window; window <= last_window; ++window)
      most = std::max(most, strongest_[i]->window_bound(window));
    later_bounds_[i] = most;
    sum += most;
  }
  return sum;
}

// The n candidates of the lead: without those of earlier leads, and with what later lists add. Returns how many are
// left that may enter.
template <class S, class C, class L>
size_t Pruned<S, C, L>::ScoreLed(size_t lead, size_t n) {
  if (n == 0) return 0;
  const int32_t needed = Needed(documents_[0]);
  int32_t more = BoundOfLater(lead, WindowOf(documents_[0]), WindowOf(documents_[n - 1]));
  for (size_t i = lead + 1; i < strongest_.size() && n > 0; ++i) {
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, more, needed);
    if (later_bounds_[i] == 0) continue;
    more -= later_bounds_[i];
    n = Probe(strongest_[i], n, needed - more, Probing::kOptional);
  }
  n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, 0, needed);
  for (size_t i = 0; i < lead && n > 0; ++i) n = Probe(strongest_[i], n, INT32_MIN, Probing::kExcluded);
  return n;
}

template <class S, class C, class L>
void Pruned<S, C, L>::OfferLed(size_t n, TopK* top) {
  for (size_t i = 0; i < n; ++i) Offer(documents_[i], scores_[i], top);
}

// A page full of hits among the best postings of the strongest list: what the k-th of them has, the page's last has at
// least.
template <class S, class C, class L>
void Pruned<S, C, L>::Prime(size_t sources) {
  const size_t page = out_.top.limit();
  if (page > kPrimedMax) return;
  const size_t wanted = std::max<size_t>(std::max<size_t>(kPrimingPostings, 8 * page) / sources, 2 * page);
  // Where the strongest is too rare to fill the page, the next ones go on.
  for (size_t lead = 0; lead < strongest_.size() && (lead == 0 || !out_.primed.full()); ++lead) {
    List* const list = strongest_[lead];
    if (!list->has_blocks()) {
      PrimeBy(lead, 0, wanted);
      continue;
    }
    for (const uint32_t block : BestBlocks(*list, (wanted + simd::kBlock - 1) / simd::kBlock))
      PrimeBy(lead, block, wanted);
  }
}

// By a block of the lead. If that is all of it, it need not lead again.
template <class S, class C, class L>
void Pruned<S, C, L>::PrimeBy(size_t lead, uint32_t block, size_t wanted) {
  List* const list = strongest_[lead];
  list->Load(block);
  const bool is_all = list->documents().size() <= wanted;
  const size_t n = ScoreLed(lead, ProposeBest(list, wanted));
  OfferLed(n, &out_.primed);
  if (!is_all) return;
  primed_blocks_.emplace_back(lead, block);
  primed_documents_.insert(primed_documents_.end(), documents_.begin(), documents_.begin() + static_cast<ptrdiff_t>(n));
  primed_scores_.insert(primed_scores_.end(), scores_.begin(), scores_.begin() + static_cast<ptrdiff_t>(n));
}

// The blocks with the highest bounds, ascending; of a list with windows, those of its best windows.
template <class S, class C, class L>
std::pmr::vector<uint32_t> Pruned<S, C, L>::BestBlocks(const List& list, size_t wanted) const {
  using Bounded = std::pmr::vector<std::pair<int32_t, uint32_t>>;  // by bound, negative
  Bounded blocks(memory_);
  blocks.reserve(list.has_windows() ? 0 : list.blocks());
  const auto keep_best = [](size_t n, Bounded* all) {
    n = std::min(n, all->size());
    std::nth_element(all->begin(), all->begin() + static_cast<ptrdiff_t>(n - 1), all->end());
    all->resize(n);
  };
  if (list.has_windows()) {
    Bounded windows(memory_);
    for (uint32_t window = 0; window < (list.blocks() + kBlocksPerGroup - 1) / kBlocksPerGroup; ++window)
      windows.emplace_back(-list.window_bound(window), window);
    keep_best(wanted, &windows);
    std::array<int32_t, kBlocksPerGroup> bounds;
    for (const auto& [bound, window] : windows) {
      const uint32_t first = window * kBlocksPerGroup, n = std::min(kBlocksPerGroup, list.blocks() - first);
      list.BlockBounds(first, n, bounds.data());
      for (uint32_t i = 0; i < n; ++i) blocks.emplace_back(-bounds[i], first + i);
    }
  } else {
    for (uint32_t block = 0; block < list.blocks(); ++block) blocks.emplace_back(-list.block_bound(block), block);
  }
  keep_best(wanted, &blocks);
  std::pmr::vector<uint32_t> best(memory_);
  best.reserve(blocks.size());
  for (const auto& [bound, block] : blocks) best.push_back(block);
  std::sort(best.begin(), best.end());
  return best;
}

// The loaded postings as candidates: if there are more than `wanted`, about so many of the best.
template <class S, class C, class L>
size_t Pruned<S, C, L>::ProposeBest(List* list, size_t wanted) {
  const std::span<const uint32_t> documents = list->documents();
  const int32_t* const contributions = list->contributions();
  int32_t least = 0;
  if (documents.size() > wanted) {
    std::pmr::vector<int32_t> order(contributions, contributions + documents.size(), memory_);
    std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(wanted), order.end(), std::greater<>());
    least = order[wanted];
  }
  size_t n = 0;
  for (size_t i = 0; i < documents.size() && n < std::min(2 * wanted, simd::kWindow); ++i) {
    documents_[n] = documents[i];
    scores_[n] = contributions[i];
    n += contributions[i] >= least ? 1 : 0;
  }
  return n;
}

// Whether the lists that can bring a document to the page are few and rare.
template <class S, class C, class L>
bool Pruned<S, C, L>::LeadsSuit() const {
  if (strongest_.empty()) return false;
  const int32_t needed = Needed(0);
  if (needed == 0) return false;
  int64_t rest = 0;
  for (const List* list : strongest_) rest += list->bound();
  uint64_t postings = 0;
  for (size_t i = 0; i < strongest_.size() && rest >= needed; ++i) {
    const List& list = *strongest_[i];
    postings += list.postings();
    if (i == kLeadsMax || list.has_windows() || postings > document_count_ / kDocumentsALedPosting) return false;
    rest -= list.bound();
  }
  return true;
}

template <class S, class C, class L>
void Pruned<S, C, L>::Lead(size_t lead) {
  List* const list = strongest_[lead];
  int64_t all = 0;
  for (size_t i = lead; i < strongest_.size(); ++i) all += strongest_[i]->bound();
  if (all < Needed(0)) return;
  for (uint32_t block = 0; block < list->blocks(); ++block) {
    if (std::find(primed_blocks_.begin(), primed_blocks_.end(), std::pair(lead, block)) != primed_blocks_.end())
      continue;
    const uint32_t first = list->FirstPossible(block);
    const uint32_t last = list->has_blocks() ? list->LastPossible(block) : document_count_ - 1;
    const int32_t needed = Needed(first);
    const int32_t more = BoundOfLater(lead, WindowOf(first), WindowOf(std::min(last, document_count_ - 1)));
    if (list->block_bound(block) + more < needed) continue;
    list->Load(block);
    const size_t postings = list->documents().size();
    for (size_t i = 0; i < postings; i += simd::kWindow) {  // a flat list is longer than a block
      const size_t to = std::min(postings, i + simd::kWindow);
      OfferLed(ScoreLed(lead, list->Select(i, to, needed - more, documents_.data(), scores_.data())), &out_.top);
    }
  }
}

// ---- Windows.

template <class S, class C, class L>
void Pruned<S, C, L>::BoundWindows() {
  const auto windows = static_cast<uint32_t>((uint64_t{document_count_} + simd::kWindow - 1) / simd::kWindow);
  window_bounds_.assign(windows, 0);
  for (List& list : lists_) {
    list.BoundWindows(windows, document_count_);
    for (uint32_t window = 0; window < windows; ++window) window_bounds_[window] += list.window_bound(window);
    if (!list.has_windows()) continue;
    while (ShiftedUp(list.bound(), shift_) > 255) ++shift_;
  }
  // Lists of other lengths than the first one's would need classes of their own.
  lengths_ = lists_.front().length_column();
  for (const List& list : lists_)
    if (list.length_column() != lengths_) lengths_ = nullptr;
  if (lengths_ != nullptr && !classes_.Choose(lengths_, document_count_)) lengths_ = nullptr;
}

template <class S, class C, class L>
void Pruned<S, C, L>::Windows() {
  const auto windows = static_cast<uint32_t>(window_bounds_.size());
  std::pmr::vector<bool> done(windows, false, memory_);
  // Cursors of words that must not occur move forward only.
  if (must_not_.empty() && Needed(0) == 0 && windows > kWindowsFirst) {
    std::pmr::vector<uint32_t> order(windows, memory_);
    for (uint32_t window = 0; window < windows; ++window) order[window] = window;
    const auto better = [this](uint32_t a, uint32_t b) { return window_bounds_[a] > window_bounds_[b]; };
    std::partial_sort(order.begin(), order.begin() + kWindowsFirst, order.end(), better);
    for (size_t i = 0; i < kWindowsFirst; ++i) {
      Window(order[i]);
      done[order[i]] = true;
    }
  }
  for (uint32_t window = 0; window < windows; ++window)
    if (!done[window]) Window(window);
}

// Lists that have something here, by bound; returns how many of them, from the lowest, together can't reach the page,
// and the sum of their bounds.
template <class S, class C, class L>
size_t Pruned<S, C, L>::SplitLists(uint32_t window, int32_t needed, int32_t* passed_over) {
  active_.clear();
  for (List& list : lists_)
    if (list.window_bound(window) > 0) active_.emplace_back(list.window_bound(window), &list);
  std::sort(active_.begin(), active_.end());
  size_t n = 0;
  *passed_over = 0;
  while (n < active_.size() && *passed_over + active_[n].first < needed) *passed_over += active_[n++].first;
  return n;
}

template <class S, class C, class L>
void Pruned<S, C, L>::Window(uint32_t window) {
  const uint32_t begin = window * static_cast<uint32_t>(simd::kWindow);
  const uint32_t end = std::min<uint32_t>(document_count_ - begin, simd::kWindow) + begin;
  const int32_t needed = Needed(begin);
  const int32_t bound = window_bounds_[window];
  if (bound < needed) return;
  if (!must_.empty()) return AllOf(window, begin, end, needed);
  if (needed <= 0) return AnyOf(begin, end);
  if (windows_to_add_whole_ > 0) {
    --windows_to_add_whole_;
    return AddWhole(begin, end, needed);
  }
  int32_t passed_over = 0;
  const size_t non_essential = SplitLists(window, needed, &passed_over);
  if (AddsWindows(non_essential)) return AddBoundsFirst(window, non_essential, needed);
  for (size_t i = non_essential; i < active_.size(); ++i)
    Add(active_[i].second, begin, end, needed - (bound - active_[i].first));
  size_t n = kernels_.take_32(accumulators_.data(), needed - passed_over, offsets_.data(), scores_.data());
  for (size_t i = 0; i < n; ++i) documents_[i] = begin + offsets_[i];
  for (size_t i = non_essential; i-- > 0 && n > 0;) {
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, passed_over, needed);
    if (AddingCostsLess(n, i + 1)) return AddWhole(begin, end, needed);
    passed_over -= active_[i].first;
    Probe(active_[i].second, n, needed - passed_over, Probing::kOptional);
  }
  OfferCandidates(n, needed);
}

// Whether dense windows are added whole: an essential one has to be, the others if probing them would cost more.
template <class S, class C, class L>
bool Pruned<S, C, L>::AddsWindows(size_t non_essential) const {
  uint32_t candidates = 0;  // that the essential lists make, about
  for (size_t i = non_essential; i < active_.size(); ++i) {
    if (active_[i].second->has_windows()) return true;
    candidates += active_[i].second->PostingsAWindow();
  }
  if (candidates <= kProbesPerWindow) return false;
  return std::any_of(active_.begin(), active_.begin() + static_cast<ptrdiff_t>(non_essential),
                     [](const auto& active) { return active.second->has_windows(); });
}

// Bounds are added by document; documents that reach the threshold so are scored list by list, those that may bring
// most first. Of the lists that are not essential, those are added too that cost less so than by being probed for
// candidates.
template <class S, class C, class L>
void Pruned<S, C, L>::AddBoundsFirst(uint32_t window, size_t non_essential, int32_t needed) {
  const uint32_t begin = window * static_cast<uint32_t>(simd::kWindow);
  const uint32_t end = std::min<uint32_t>(document_count_ - begin, simd::kWindow) + begin;
  const int32_t bound = window_bounds_[window];
  int32_t passed_over = 0;
  if (lengths_ != nullptr) classes_.Classify(lengths_, begin, end - begin);
  for (size_t i = 0; i < active_.size(); ++i) {
    List* const list = active_[i].second;
    const bool is_little = active_[i].first >> shift_ <= 1;  // no more than rounding adds
    if (list->has_windows() && !is_little) {
      list->AddWindow(window, shift_, lengths_ == nullptr ? nullptr : &classes_, bounds_.data());
    } else if (!list->has_windows() && (i >= non_essential || !list->has_blocks())) {
      AddBounds(list, begin, end, needed - (bound - active_[i].first));
    } else {
      passed_over += active_[i].first;
    }
  }
  const int64_t limit = ShiftedUp(int64_t{needed} - passed_over, shift_);
  size_t n = kernels_.scan_16(bounds_.data(), static_cast<uint16_t>(std::min<int64_t>(limit, 0xFFFF)), offsets_.data());
  simd::ClearWindow(bounds_.data());
  for (size_t i = 0; i < n; ++i) {
    documents_[i] = begin + offsets_[i];
    scores_[i] = 0;
  }
  int32_t more = bound;
  for (size_t i = active_.size(); i-- > 0 && n > 0;) {
    more -= active_[i].first;
    n = Probe(active_[i].second, n, needed - more, Probing::kOptional);
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, more, needed);
    if (AddingCostsLess(n, i)) return AddWhole(begin, end, needed);
  }
  OfferCandidates(n, needed);
}

// Whether n candidates that are left for so many lists cost more than adding all postings here. Many words make many
// candidates, because their bounds together are above any threshold.
template <class S, class C, class L>
bool Pruned<S, C, L>::AddingCostsLess(size_t n, size_t lists) {
  constexpr uint64_t kAddedAProbe = 4;
  constexpr size_t kFewLists = 16;  // candidates get few by themselves
  constexpr uint32_t kWindowsAlike = 15;
  if (active_.size() <= kFewLists || n * lists < simd::kWindow) return false;
  uint64_t postings = 0;
  for (const auto& [bound, list] : active_) postings += 1 + list->PostingsAWindow();
  if (n * lists * kAddedAProbe <= postings) return false;
  windows_to_add_whole_ = kWindowsAlike;  // then it is tried again
  return true;
}

template <class S, class C, class L>
void Pruned<S, C, L>::AddWhole(uint32_t begin, uint32_t end, int32_t needed) {
  for (List& list : lists_) Add(&list, begin, end, INT32_MIN);
  const size_t n = kernels_.take_32(accumulators_.data(), needed, offsets_.data(), scores_.data());
  for (size_t i = 0; i < n; ++i) documents_[i] = begin + offsets_[i];
  OfferCandidates(n, needed);
}

// As Add, of contributions / 2^shift_, rounded up.
template <class S, class C, class L>
void Pruned<S, C, L>::AddBounds(List* list, uint32_t begin, uint32_t end, int32_t bound_needed) {
  std::array<uint16_t, simd::kBlock> shifted;
  const int32_t up = (1 << shift_) - 1;  // as ShiftedUp, in 32 bits
  for (uint32_t block = list->FindBlock(begin); block < list->blocks() && list->FirstPossible(block) < end; ++block) {
    if (list->block_bound(block) < bound_needed) continue;
    list->Load(block);
    const std::span<const uint32_t> all = list->documents();
    auto [first, last] = PartOf(*list, block, begin, end);
    const int32_t* const contributions = list->contributions();
    while (first < last) {  // a flat list is longer than a block
      const size_t n = std::min(last - first, shifted.size());
      for (size_t i = 0; i < n; ++i)
        shifted[i] = static_cast<uint16_t>(std::min((contributions[first + i] + up) >> shift_, 0xFFFF));
      simd::Scatter(&all[first], shifted.data(), n, begin, bounds_.data());
      first += n;
    }
  }
}

// Which of the loaded block's postings are in [begin, end).
template <class S, class C, class L>
std::pair<size_t, size_t> Pruned<S, C, L>::PartOf(const List& list, uint32_t block, uint32_t begin,
                                                  uint32_t end) const {
  const std::span<const uint32_t> all = list.documents();
  if (all.empty()) return {0, 0};
  const size_t first = list.FirstPossible(block) >= begin ? 0 : kernels_.lower_bound(all.data(), all.size(), begin);
  const size_t last = all.back() < end ? all.size() : kernels_.lower_bound(all.data(), all.size(), end);
  return {first, last};
}

// The rarest list proposes, the other required ones take away what they don't have, the rest adds.
template <class S, class C, class L>
void Pruned<S, C, L>::AllOf(uint32_t window, uint32_t begin, uint32_t end, int32_t needed) {
  int32_t more = window_bounds_[window] - must_[0]->window_bound(window);
  size_t n = Propose(must_[0], begin, end, needed - more);
  for (size_t i = 1; i < must_.size() && n > 0; ++i) {
    more -= must_[i]->window_bound(window);
    n = Probe(must_[i], n, needed - more, Probing::kRequired);
  }
  for (List* list : should_) {
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, more, needed);
    more -= list->window_bound(window);
    Probe(list, n, needed - more, Probing::kOptional);
  }
  OfferCandidates(n, needed);
}

// The list's documents in the window that bring `bound_needed` themselves, as candidates; returns how many.
template <class S, class C, class L>
size_t Pruned<S, C, L>::Propose(List* lead, uint32_t begin, uint32_t end, int32_t bound_needed) {
  size_t n = 0;
  for (uint32_t block = lead->FindBlock(begin); block < lead->blocks() && lead->FirstPossible(block) < end; ++block) {
    if (lead->block_bound(block) < bound_needed) continue;
    lead->Load(block);
    const auto [first, last] = PartOf(*lead, block, begin, end);
    n += lead->Select(first, last, bound_needed, &documents_[n], &scores_[n]);
  }
  return n;
}

// While everything that matches may enter, also with a score of 0: which documents match is remembered apart.
template <class S, class C, class L>
void Pruned<S, C, L>::AnyOf(uint32_t begin, uint32_t end) {
  std::array<uint64_t, simd::kWindowWords> matches{};
  for (List& list : lists_) {
    for (uint32_t block = list.FindBlock(begin); block < list.blocks() && list.FirstPossible(block) < end; ++block) {
      const std::span<const uint32_t> documents = Scatter(&list, block, begin, end);
      simd::ScatterBits(documents.data(), documents.size(), begin, matches.data());
    }
  }
  for (size_t word = 0; word < matches.size(); ++word) {
    for (uint64_t bits = matches[word]; bits != 0; bits &= bits - 1) {
      const auto offset = static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
      Offer(begin + offset, accumulators_[offset]);
    }
  }
  simd::ClearWindow(accumulators_.data());
}

// Adds the block's part in [begin, end) to the accumulators; returns its documents.
template <class S, class C, class L>
std::span<const uint32_t> Pruned<S, C, L>::Scatter(List* list, uint32_t block, uint32_t begin, uint32_t end) {
  list->Load(block);
  const auto [first, last] = PartOf(*list, block, begin, end);
  const std::span<const uint32_t> documents = list->documents().subspan(first, last - first);
  simd::Scatter(documents.data(), list->contributions() + first, documents.size(), begin, accumulators_.data());
  return documents;
}

// Blocks with a lower bound have nothing that can reach the page with all that the other lists may add.
template <class S, class C, class L>
void Pruned<S, C, L>::Add(List* list, uint32_t begin, uint32_t end, int32_t bound_needed) {
  for (uint32_t block = list->FindBlock(begin); block < list->blocks() && list->FirstPossible(block) < end; ++block) {
    if (list->block_bound(block) < bound_needed) continue;
    Scatter(list, block, begin, end);
  }
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PRUNED_H_
