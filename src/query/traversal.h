// Traversals: ways through one source that offer the same documents with the same scores; pruned.h has the one that
// skips. They know cursors and lengths as template parameters, so nothing virtual is called for a posting.
//
// A document matches if it is alive, all kMust terms have it, no kMustNot term has it and, without a kMust term, at
// least one kShould term has it. kShould terms add to the score.
#ifndef ASHLAR_SRC_QUERY_TRAVERSAL_H_
#define ASHLAR_SRC_QUERY_TRAVERSAL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <utility>
#include <vector>

#include "ashlar/query.h"
#include "format/layout.h"
#include "src/query/cursor.h"
#include "src/query/pruned_scratch.h"
#include "src/query/scorer.h"
#include "src/query/top_k.h"

namespace ashlar::query {

// One term in one source, ready to walk.
template <class C, class L>
struct OpenedTerm {
  Occur occur = Occur::kShould;
  float weight = 0;
  Norm norm;
  L lengths;
  C cursor;

  int32_t ContributionHere() const {
    return Contribution(weight, cursor.frequency(), norm.K(lengths[cursor.document()]));
  }
};

// Those of a query in one source.
template <class C, class L>
using OpenedTerms = std::pmr::vector<OpenedTerm<C, L>>;

// What a search has found so far, over all sources.
struct Collected {
  explicit Collected(uint64_t limit, std::pmr::memory_resource* search_memory = std::pmr::get_default_resource())
      : memory(search_memory), top(limit, memory), primed(limit, memory) {}
  std::pmr::memory_resource* memory;  // of the search: for what is gone when the source has been run
  TopK top;
  // Hits that pruning found ahead of its way, to have a threshold: their last key, once they are as many as the page
  // has, is one that the page's last hit reaches. They are found again on the way.
  TopK primed;
  uint64_t floor() const { return primed.limit() != 0 && primed.full() ? primed.lowest() : 0; }
  ScratchLoan scratch;
  uint64_t total = 0;
  bool total_is_exact = true;
  uint64_t postings_read = 0;
};

// Document at a time: all cursors move through the source together.
template <class S, class C, class L>
class DocumentAtATime {
 public:
  using Term = OpenedTerm<C, L>;

  DocumentAtATime(const S& source, OpenedTerms<C, L>* terms, Collected* out)
      : source_(source),
        has_deaths_(source.has_deaths()),
        base_(source.put_order_base()),
        out_(out),
        must_(out->memory),
        should_(out->memory),
        must_not_(out->memory) {
    for (Term& term : *terms) {
      if (term.occur == Occur::kMust) must_.push_back(&term);
      if (term.occur == Occur::kShould) should_.push_back(&term);
      if (term.occur == Occur::kMustNot) must_not_.push_back(&term);
    }
  }

  void Run() {
    if (!must_.empty()) {
      Intersect();
      return;
    }
    for (Term* term : should_) Settle(&term->cursor);
    if (should_.size() <= kScannedCursorsMax) {
      UniteByScan();
    } else {
      UniteByHeap();
    }
  }

 private:
  // Up to here looking at every cursor is faster than keeping a heap.
  static constexpr size_t kScannedCursorsMax = 16;

  bool Passes(uint32_t document) {
    if (has_deaths_ && source_.IsDead(document)) return false;
    for (Term* term : must_not_) {
      if (StandsOn(term, document)) return false;
    }
    return true;
  }

  bool StandsOn(Term* term, uint32_t document) {
    if (term->cursor.document() > document) return false;
    if constexpr (LazyCursor<C>) {
      ++out_->postings_read;
      return term->cursor.SeekTo(document);
    }
    if (term->cursor.document() < document) {
      term->cursor.Seek(document);
      ++out_->postings_read;
    }
    return term->cursor.document() == document;
  }

  void Offer(uint32_t document, int32_t score) {
    ++out_->total;
    out_->top.Offer(score, base_ + document);
  }

  // The rarest term proposes, the others follow it.
  void Intersect() {
    std::stable_sort(must_.begin(), must_.end(),
                     [](const Term* a, const Term* b) { return a->cursor.postings() < b->cursor.postings(); });
    C& lead = must_[0]->cursor;
    Settle(&lead);
    while (lead.document() != format::kNoDocument) {
      const uint32_t document = lead.document();
      ++out_->postings_read;
      uint32_t target = document;
      for (size_t i = 1; i < must_.size() && target == document; ++i) {
        if (!StandsOn(must_[i], document)) target = must_[i]->cursor.document();
      }
      if (target == format::kNoDocument) return;
      if (target != document) {
        lead.Seek(target);
        continue;
      }
      if (Passes(document)) Offer(document, ScoreHere(document));
      lead.Next();
    }
  }

  int32_t ScoreHere(uint32_t document) {
    int32_t score = 0;
    for (const Term* term : must_) score += term->ContributionHere();
    for (Term* term : should_) {
      if (StandsOn(term, document)) score += term->ContributionHere();
    }
    return score;
  }

  void UniteByScan() {
    const size_t count = should_.size();
    uint32_t documents[kScannedCursorsMax];
    for (size_t i = 0; i < count; ++i) documents[i] = should_[i]->cursor.document();
    for (;;) {
      uint32_t document = format::kNoDocument;
      for (size_t i = 0; i < count; ++i) document = std::min(document, documents[i]);
      if (document == format::kNoDocument) return;
      int32_t score = 0;
      const bool passes = Passes(document);
      for (size_t i = 0; i < count; ++i) {
        if (documents[i] == document) documents[i] = ScoreAndStep(should_[i], passes, &score);
      }
      if (passes) Offer(document, score);
    }
  }

  // Returns where the cursor then stands.
  uint32_t ScoreAndStep(Term* term, bool passes, int32_t* score) {
    if (passes) *score += term->ContributionHere();
    ++out_->postings_read;
    term->cursor.Next();
    return term->cursor.document();
  }

  void UniteByHeap() {
    // (document, place in should_), the lowest document on top.
    std::vector<std::pair<uint32_t, uint32_t>> heap;
    for (uint32_t i = 0; i < should_.size(); ++i) {
      const uint32_t document = should_[i]->cursor.document();
      if (document != format::kNoDocument) heap.emplace_back(document, i);
    }
    const auto later = std::greater<>();
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      const uint32_t document = heap.front().first;
      const bool passes = Passes(document);
      int32_t score = 0;
      while (!heap.empty() && heap.front().first == document) {
        std::pop_heap(heap.begin(), heap.end(), later);
        heap.back().first = ScoreAndStep(should_[heap.back().second], passes, &score);
        if (heap.back().first == format::kNoDocument) {
          heap.pop_back();
        } else {
          std::push_heap(heap.begin(), heap.end(), later);
        }
      }
      if (passes) Offer(document, score);
    }
  }

  const S& source_;
  const bool has_deaths_;
  const uint32_t base_;
  Collected* out_;
  std::pmr::vector<Term*> must_;
  std::pmr::vector<Term*> should_;
  std::pmr::vector<Term*> must_not_;
};

// Term at a time: adds every posting of one term after another into an accumulator, in windows of documents so that
// memory does not depend on the source. No seeks and no choices: what the other traversal is compared with.
template <class S, class C, class L>
class Exhaustive {
 public:
  using Term = OpenedTerm<C, L>;

  Exhaustive(const S& source, OpenedTerms<C, L>* terms, Collected* out) : source_(source), terms_(*terms), out_(out) {
    for (Term& term : terms_) {
      must_count_ += term.occur == Occur::kMust;
      Settle(&term.cursor);
    }
    const uint32_t window = std::min(kWindow, source.document_count());
    scores_.resize(window);
    marks_.resize(window);
  }

  void Run() {
    for (uint64_t begin = NextDocument(); begin < source_.document_count(); begin = NextDocument()) {
      const uint64_t end = std::min<uint64_t>(begin + kWindow, source_.document_count());
      AddWindow(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
      OfferWindow(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
    }
  }

 private:
  static constexpr uint32_t kWindow = 16384;
  static constexpr uint32_t kExcluded = 0xFFFFFFFFu;

  uint32_t NextDocument() const {
    uint32_t document = format::kNoDocument;
    for (const Term& term : terms_) {
      if (term.occur != Occur::kMustNot) document = std::min(document, term.cursor.document());
    }
    return document;
  }

  void AddWindow(uint32_t begin, uint32_t end) {
    std::fill(scores_.begin(), scores_.end(), 0);
    std::fill(marks_.begin(), marks_.end(), 0);
    // The mark counts the kMust terms met so far, so these come first and a document that missed one falls behind.
    uint32_t met = 0;
    for (Term& term : terms_) {
      if (term.occur == Occur::kMust) Add(&term, begin, end, met, met + 1), ++met;
    }
    for (Term& term : terms_) {
      if (term.occur != Occur::kShould) continue;
      if (must_count_ > 0) {
        Add(&term, begin, end, must_count_, must_count_);
      } else {
        AddAny(&term, begin, end);
      }
    }
    for (Term& term : terms_) {
      if (term.occur == Occur::kMustNot) Exclude(&term, begin, end);
    }
  }

  // Adds the term to the documents whose mark is `from`, and makes it `to`.
  void Add(Term* term, uint32_t begin, uint32_t end, uint32_t from, uint32_t to) {
    for (; term->cursor.document() < end; term->cursor.Next()) {
      ++out_->postings_read;
      const uint32_t at = term->cursor.document() - begin;
      if (marks_[at] != from) continue;
      marks_[at] = to;
      scores_[at] += term->ContributionHere();
    }
  }

  void AddAny(Term* term, uint32_t begin, uint32_t end) {
    for (; term->cursor.document() < end; term->cursor.Next()) {
      ++out_->postings_read;
      const uint32_t at = term->cursor.document() - begin;
      marks_[at] = 1;
      scores_[at] += term->ContributionHere();
    }
  }

  void Exclude(Term* term, uint32_t begin, uint32_t end) {
    for (; term->cursor.document() < end; term->cursor.Next()) {
      ++out_->postings_read;
      if (term->cursor.document() >= begin) marks_[term->cursor.document() - begin] = kExcluded;
    }
  }

  void OfferWindow(uint32_t begin, uint32_t end) {
    const uint32_t wanted = must_count_ > 0 ? must_count_ : 1;
    const uint32_t base = source_.put_order_base();
    for (uint32_t document = begin; document < end; ++document) {
      if (marks_[document - begin] != wanted) continue;
      if (source_.has_deaths() && source_.IsDead(document)) continue;
      ++out_->total;
      out_->top.Offer(scores_[document - begin], base + document);
    }
  }

  const S& source_;
  OpenedTerms<C, L>& terms_;
  Collected* out_;
  uint32_t must_count_ = 0;
  std::vector<int32_t> scores_;
  std::vector<uint32_t> marks_;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_TRAVERSAL_H_
