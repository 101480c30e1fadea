// Pruned: reads only what can still reach the page. What the postings of a block contribute at most is known from its
// frontier (format/frontier.h), so a block, or a window of documents, is passed over when it can't beat the k-th hit so
// far.
//
// One term: the best groups of blocks first, in them the best blocks. Several: windows of documents, the best few first
// and then in order. In a window, lists whose bounds together can't reach the page (the non-essential ones) are not
// read, but probed for the documents that the others proposed. Where words must occur, the rarest of them proposes.
//
// Exact: every document that is in the page is offered with its whole score. Counts only what it offers.
#ifndef ASHLAR_SRC_QUERY_PRUNED_H_
#define ASHLAR_SRC_QUERY_PRUNED_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "format/layout.h"
#include "src/query/traversal.h"
#include "src/simd/kernels.h"
#include "src/simd/scatter.h"

namespace ashlar::query {

// One scoring term's postings in one source, by block. A short list, and a long one with few postings a window, is
// decoded once and is one block.
template <class C, class L>
class PrunedList {
 public:
  using Term = OpenedTerm<C, L>;

  explicit PrunedList(Term* term) : term_(*term), scoring_{term->weight, term->norm.a, term->norm.b} {
    bounds_ = term_.cursor.bounds();
    if (bounds_.pairs == 0) DecodeShort();
  }

  uint32_t postings() const { return term_.cursor.postings(); }
  bool has_blocks() const { return bounds_.pairs != 0; }
  uint32_t blocks() const { return has_blocks() ? bounds_.headers->blocks : 1; }
  uint32_t FirstPossible(uint32_t block) const {
    return has_blocks() ? static_cast<uint32_t>(bounds_.headers->FirstPossible(block)) : 0;
  }
  uint64_t postings_read() const { return postings_read_; }

  // The most that postings of blocks [first, first + n) contribute; `out` is padded to 16.
  void BlockBounds(uint32_t first, uint32_t n, int32_t* out) const {
    kernels_.bounds(bounds_.pair_frequencies + first, bounds_.pair_lengths + first, bounds_.headers->blocks,
                    bounds_.pairs, n, scoring_, out);
  }
  void GroupBounds(std::vector<int32_t>* out) const {
    out->resize(Padded(bounds_.headers->groups));
    kernels_.bounds(bounds_.group_pair_frequencies, bounds_.group_pair_lengths, bounds_.headers->groups,
                    bounds_.group_pairs, bounds_.headers->groups, scoring_, out->data());
  }

  // Makes documents() and contributions() those of a block; none after damage.
  void Load(uint32_t block) {
    if (block == loaded_) return;
    loaded_ = block;
    documents_ = {};
    if (!term_.cursor.MoveToBlock(block)) return;
    documents_ = term_.cursor.block_documents();
    Score(term_.cursor.block_frequencies(), block_contributions_.data());
    contributions_ = block_contributions_.data();
    postings_read_ += documents_.size();
  }
  std::span<const uint32_t> documents() const { return documents_; }
  const int32_t* contributions() const { return contributions_; }

  // Decodes all of it.
  void Flatten() {
    if (!has_blocks()) return;
    std::vector<uint32_t> documents;
    std::vector<int32_t> contributions;
    for (uint32_t block = 0; block < blocks(); ++block) {
      Load(block);
      documents.insert(documents.end(), documents_.begin(), documents_.end());
      contributions.insert(contributions.end(), contributions_, contributions_ + documents_.size());
    }
    flat_documents_ = std::move(documents);
    flat_contributions_ = std::move(contributions);
    ShowFlat();
  }

  // --- windows ---
  void BoundWindows(uint32_t windows, uint32_t document_count);
  int32_t window_bound(uint32_t window) const { return window_bounds_[window]; }
  int32_t block_bound(uint32_t block) const { return has_blocks() ? block_bounds_[block] : flat_bound_; }
  // The first block from which documents at or after this one may come; blocks() if there is none.
  uint32_t FindBlock(uint32_t document) const {
    if (has_blocks()) return bounds_.headers->FindBlock(0, document);
    return documents_.empty() || documents_.back() < document ? 1 : 0;
  }
  uint32_t FindBlock(uint32_t from, uint32_t document) const {
    return has_blocks() ? bounds_.headers->FindBlock(from, document) : FindBlock(document);
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  static size_t Padded(size_t n) { return (n + 15) / 16 * 16; }

  void DecodeShort() {
    const std::span<const uint32_t> documents = term_.cursor.block_documents();
    const std::span<const uint32_t> frequencies = term_.cursor.block_frequencies();
    flat_documents_.assign(documents.begin(), documents.end());
    flat_contributions_.resize(documents.size());
    documents_ = documents;
    for (size_t i = 0; i < documents.size(); ++i) flat_contributions_[i] = ContributionOf(documents[i], frequencies[i]);
    postings_read_ += documents.size();
    ShowFlat();
  }
  void ShowFlat() {
    bounds_.pairs = 0;
    loaded_ = 0;
    documents_ = flat_documents_;
    contributions_ = flat_contributions_.data();
    flat_bound_ = flat_contributions_.empty() ? 0 : kernels_.maximum(contributions_, flat_contributions_.size());
  }
  int32_t ContributionOf(uint32_t document, uint32_t frequency) const {
    return Contribution(term_.weight, frequency, term_.norm.K(term_.lengths[document]));
  }
  void Score(std::span<const uint32_t> frequencies, int32_t* out) const {
    const std::byte* const column = term_.lengths.column();
    if (term_.norm.b == 0 || column == nullptr) {
      kernels_.contributions_fixed_u32(frequencies.data(), frequencies.size(), term_.weight, term_.norm.K(0), out);
      return;
    }
    const bool escaped = kernels_.contributions_column_u32(frequencies.data(), column, documents_.data(),
                                                           frequencies.size(), scoring_, out);
    if (!escaped) return;
    for (size_t i = 0; i < frequencies.size(); ++i) out[i] = ContributionOf(documents_[i], frequencies[i]);
  }

  const simd::Kernels& kernels_ = simd::BestKernels();
  Term& term_;
  const simd::Scoring scoring_;
  typename C::Bounds bounds_;
  uint32_t loaded_ = kNone;
  std::span<const uint32_t> documents_;
  const int32_t* contributions_ = nullptr;
  std::array<int32_t, simd::kBlock> block_contributions_;
  std::vector<uint32_t> flat_documents_;
  std::vector<int32_t> flat_contributions_;
  int32_t flat_bound_ = 0;
  std::vector<int32_t> block_bounds_;
  std::vector<int32_t> window_bounds_;
  uint64_t postings_read_ = 0;
};

template <class C, class L>
void PrunedList<C, L>::BoundWindows(uint32_t windows, uint32_t document_count) {
  // Decoded whole where that costs less than what loose bounds would let through.
  constexpr uint32_t kFewPostingsAWindow = 4;
  if (has_blocks() && postings() <= uint64_t{kFewPostingsAWindow} * windows) Flatten();
  window_bounds_.assign(windows, 0);
  const auto raise = [this](uint32_t window, int32_t bound) {
    window_bounds_[window] = std::max(window_bounds_[window], bound);
  };
  if (!has_blocks()) {
    for (size_t i = 0; i < documents_.size(); ++i) raise(documents_[i] / simd::kWindow, contributions_[i]);
    return;
  }
  block_bounds_.resize(Padded(blocks()));
  BlockBounds(0, blocks(), block_bounds_.data());
  uint32_t first = 0;
  for (uint32_t block = 0; block < blocks(); ++block) {
    const uint32_t last = std::min(bounds_.headers->LastDocument(block), document_count - 1);
    for (uint32_t window = first / simd::kWindow; window <= last / simd::kWindow; ++window)
      raise(window, block_bounds_[block]);
    first = last + 1;
  }
}

// Cursors and lengths that Pruned can read.
template <class C, class L>
concept CanPrune = BoundedCursor<C> && requires(const L& lengths) {
  { lengths.column() } -> std::same_as<const std::byte*>;
};

template <class S, class C, class L>
class Pruned {
 public:
  using Term = OpenedTerm<C, L>;
  using List = PrunedList<C, L>;

  // Whether it can do this query.
  static bool Suits(const std::vector<Term>& terms) {
    return std::all_of(terms.begin(), terms.end(),
                       [](const Term& term) { return term.occur == Occur::kMustNot || term.cursor.is_bounded(); });
  }
  // Whether there is enough to skip.
  static bool IsWorthIt(const std::vector<Term>& terms) {
    uint64_t postings = 0;
    for (const Term& term : terms) postings += term.occur == Occur::kMustNot ? 0 : term.cursor.postings();
    return postings > kFewPostings;
  }

  Pruned(const S& source, std::vector<Term>* terms, Collected* out)
      : source_(source),
        has_deaths_(source.has_deaths()),
        base_(source.put_order_base()),
        document_count_(source.document_count()),
        out_(*out) {
    for (Term& term : *terms) {
      if (term.occur == Occur::kMustNot) {
        must_not_.push_back(&term);
        continue;
      }
      lists_.emplace_back(&term);
      (term.occur == Occur::kMust ? must_ : should_).push_back(&lists_.back());
    }
    std::stable_sort(must_.begin(), must_.end(),
                     [](const List* a, const List* b) { return a->postings() < b->postings(); });
  }

  void Run() {
    out_.total_is_exact = false;
    if (out_.top.limit() == 0) return;
    if (lists_.size() == 1 && must_not_.empty() && lists_[0].has_blocks()) {
      BestBlocksFirst();
    } else {
      Windows();
    }
    for (const List& list : lists_) out_.postings_read += list.postings_read();
  }

 private:
  static constexpr uint32_t kBlocksPerGroup = static_cast<uint32_t>(format::kBlocksPerGroup);
  static constexpr uint64_t kFewPostings = 2048;
  static constexpr size_t kWindowsFirst = 10;  // that raise the threshold before the rest is looked at

  // The least score with which this document, or a later one, may still enter.
  int32_t Needed(uint32_t document) const {
    if (!out_.top.full()) return 0;
    const uint64_t lowest = out_.top.lowest();
    const int32_t score = TopK::ScoreOf(lowest);
    return base_ + document < TopK::PutOrderOf(lowest) ? score : score + 1;
  }

  void Offer(uint32_t document, int32_t score) {
    if (has_deaths_ && source_.IsDead(document)) return;
    for (Term* term : must_not_) {
      if (term->cursor.document() < document) term->cursor.Seek(document);
      if (term->cursor.document() == document) return;
    }
    ++out_.total;
    out_.top.Offer(score, base_ + document);
  }

  // --- one term ---
  void BestBlocksFirst();
  void BestBlocksOf(uint32_t group);
  void OfferBlock(uint32_t block);

  // --- several ---
  void Windows();
  void BoundWindows();
  void Window(uint32_t window);
  void AllOf(uint32_t window, uint32_t begin, uint32_t end, int32_t needed);
  size_t Propose(List* lead, uint32_t begin, uint32_t end, int32_t bound_needed);
  void AnyOf(uint32_t begin, uint32_t end);
  size_t SplitLists(uint32_t window, int32_t needed, int32_t* passed_over);
  std::span<const uint32_t> Scatter(List* list, uint32_t block, uint32_t begin, uint32_t end);
  void Add(List* list, uint32_t begin, uint32_t end, int32_t bound_needed);
  size_t Probe(List* list, size_t n, int32_t bound_needed, bool required);

  const S& source_;
  const bool has_deaths_;
  const uint32_t base_;
  const uint32_t document_count_;
  Collected& out_;
  const simd::Kernels& kernels_ = simd::BestKernels();
  std::deque<List> lists_;   // which do not move
  std::vector<List*> must_;  // rarest first
  std::vector<List*> should_;
  std::vector<Term*> must_not_;
  std::vector<int32_t> window_bounds_;             // of all lists together
  std::vector<std::pair<int32_t, List*>> active_;  // (bound, list) of this window, ascending
  std::vector<int32_t> accumulators_;
  std::vector<uint16_t> offsets_;
  std::vector<uint32_t> documents_;  // candidates of this window
  std::vector<int32_t> scores_;
};

// ---- One term.

template <class S, class C, class L>
void Pruned<S, C, L>::BestBlocksFirst() {
  const List& list = lists_[0];
  std::vector<int32_t> bounds;
  list.GroupBounds(&bounds);
  const uint32_t groups = (list.blocks() + kBlocksPerGroup - 1) / kBlocksPerGroup;
  // As the best hit that a group may have, so that of equal bounds the earlier group comes first.
  std::vector<std::pair<uint64_t, uint32_t>> heap(groups);
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
  List& list = lists_[0];
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
  List& list = lists_[0];
  list.Load(block);
  const std::span<const uint32_t> documents = list.documents();
  if (documents.empty()) return;
  int32_t needed = Needed(documents.front());
  for (size_t i = 0; i < documents.size(); ++i) {
    if (list.contributions()[i] < needed) continue;
    Offer(documents[i], list.contributions()[i]);
    needed = Needed(documents[i]);
  }
}

// ---- Several.

template <class S, class C, class L>
void Pruned<S, C, L>::BoundWindows() {
  const auto windows = static_cast<uint32_t>((uint64_t{document_count_} + simd::kWindow - 1) / simd::kWindow);
  window_bounds_.assign(windows, 0);
  for (List& list : lists_) {
    list.BoundWindows(windows, document_count_);
    for (uint32_t window = 0; window < windows; ++window) window_bounds_[window] += list.window_bound(window);
  }
}

template <class S, class C, class L>
void Pruned<S, C, L>::Windows() {
  BoundWindows();
  const auto windows = static_cast<uint32_t>(window_bounds_.size());
  accumulators_.assign(simd::kWindow, 0);
  offsets_.resize(simd::kWindow);
  documents_.resize(simd::kWindow);
  scores_.resize(simd::kWindow);
  std::vector<bool> done(windows, false);
  // Cursors of words that must not occur move forward only.
  if (must_not_.empty() && windows > kWindowsFirst) {
    std::vector<uint32_t> order(windows);
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
  int32_t passed_over = 0;
  const size_t non_essential = SplitLists(window, needed, &passed_over);
  for (size_t i = non_essential; i < active_.size(); ++i)
    Add(active_[i].second, begin, end, needed - (bound - active_[i].first));
  size_t n = kernels_.take_32(accumulators_.data(), needed - passed_over, offsets_.data(), scores_.data());
  for (size_t i = 0; i < n; ++i) documents_[i] = begin + offsets_[i];
  for (size_t i = non_essential; i-- > 0 && n > 0;) {
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, passed_over, needed);
    passed_over -= active_[i].first;
    Probe(active_[i].second, n, needed - passed_over, /*required=*/false);
  }
  n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, 0, needed);
  for (size_t i = 0; i < n; ++i) Offer(documents_[i], scores_[i]);
}

// The rarest list proposes, the other required ones take away what they don't have, the rest adds.
template <class S, class C, class L>
void Pruned<S, C, L>::AllOf(uint32_t window, uint32_t begin, uint32_t end, int32_t needed) {
  int32_t more = window_bounds_[window] - must_[0]->window_bound(window);
  size_t n = Propose(must_[0], begin, end, needed - more);
  for (size_t i = 1; i < must_.size() && n > 0; ++i) {
    more -= must_[i]->window_bound(window);
    n = Probe(must_[i], n, needed - more, /*required=*/true);
  }
  for (List* list : should_) {
    n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, more, needed);
    more -= list->window_bound(window);
    Probe(list, n, needed - more, /*required=*/false);
  }
  n = kernels_.keep_at_least(documents_.data(), scores_.data(), n, 0, needed);
  for (size_t i = 0; i < n; ++i) Offer(documents_[i], scores_[i]);
}

// The list's documents in the window that bring `bound_needed` themselves, as candidates; returns how many.
template <class S, class C, class L>
size_t Pruned<S, C, L>::Propose(List* lead, uint32_t begin, uint32_t end, int32_t bound_needed) {
  size_t n = 0;
  for (uint32_t block = lead->FindBlock(begin); block < lead->blocks() && lead->FirstPossible(block) < end; ++block) {
    if (lead->block_bound(block) < bound_needed) continue;
    lead->Load(block);
    const std::span<const uint32_t> documents = lead->documents();
    for (size_t i = 0; i < documents.size(); ++i) {
      if (documents[i] < begin || documents[i] >= end || lead->contributions()[i] < bound_needed) continue;
      documents_[n] = documents[i];
      scores_[n++] = lead->contributions()[i];
    }
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
  const std::span<const uint32_t> all = list->documents();
  const auto first = std::lower_bound(all.begin(), all.end(), begin);
  const std::span<const uint32_t> documents(first, std::lower_bound(first, all.end(), end));
  simd::Scatter(documents.data(), list->contributions() + (first - all.begin()), documents.size(), begin,
                accumulators_.data());
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

// Adds the list to those of the n candidates that it has, and returns how many are left: if it is `required`, those. A
// block is read only if it could bring one of them to `bound_needed`.
template <class S, class C, class L>
size_t Pruned<S, C, L>::Probe(List* list, size_t n, int32_t bound_needed, bool required) {
  if (n == 0) return 0;
  uint32_t block = list->FindBlock(documents_[0]);
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t document = documents_[i];
    int32_t score = scores_[i];
    bool found = false;
    block = list->FindBlock(block, document);
    if (block < list->blocks() && score + list->block_bound(block) >= bound_needed) {
      list->Load(block);
      const std::span<const uint32_t> documents = list->documents();
      const auto at = std::lower_bound(documents.begin(), documents.end(), document);
      found = at != documents.end() && *at == document;
      if (found) score += list->contributions()[at - documents.begin()];
    }
    if (required && !found) continue;
    documents_[kept] = document;
    scores_[kept++] = score;
  }
  return kept;
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PRUNED_H_
