// MatchCounter: how many live documents of one source match, without their scores. Each term's documents become bits of
// a stretch of documents; whole words of bits are then united, intersected and counted.
#ifndef ASHLAR_SRC_QUERY_MATCH_COUNTER_H_
#define ASHLAR_SRC_QUERY_MATCH_COUNTER_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory_resource>
#include <span>
#include <vector>

#include "format/dense_window.h"
#include "src/query/search_arena.h"
#include "src/query/traversal.h"
#include "src/simd/kernels.h"
#include "src/simd/scatter.h"

namespace ashlar::query {

// The documents of a stretch as bits; its bits stay in the nearest cache while lists are added.
inline constexpr uint32_t kStretchWindows = 16;
inline constexpr uint32_t kStretchDocuments = kStretchWindows * format::kWindowDocuments;
struct StretchBits {
  static constexpr size_t kWords = kStretchDocuments / 64;
  alignas(64) std::array<uint64_t, kWords> words;

  uint64_t* window(uint32_t i) { return &words[i * simd::kWindowWords]; }
  const uint64_t* window(uint32_t i) const { return &words[i * simd::kWindowWords]; }
  bool HasAny(uint32_t in_window) const {
    return std::any_of(window(in_window), window(in_window) + simd::kWindowWords,
                       [](uint64_t word) { return word != 0; });
  }
  uint64_t Count() const {
    uint64_t count = 0;
    for (uint32_t i = 0; i < kStretchWindows; ++i) count += simd::BestKernels().count_bitmap(window(i));
    return count;
  }
};

// One term's documents, stretch by stretch in ascending order; stretches may be left out.
template <class C>
class MatchList {
 public:
  // `cursor` stands on its first posting, and does so again when this is gone.
  explicit MatchList(C* cursor) : cursor_(*cursor), headers_(cursor->bounds().headers) {
    if (headers_ == nullptr) documents_ = cursor_.block_documents();
  }
  MatchList(const MatchList&) = delete;
  MatchList& operator=(const MatchList&) = delete;
  ~MatchList() {
    if (loaded_ != kNone) cursor_.Rewind();
  }

  uint32_t postings() const { return cursor_.postings(); }
  uint64_t postings_read() const { return postings_read_; }

  // Sets the bits of its documents from `begin` on.
  void AddTo(uint32_t begin, StretchBits* bits) {
    if (headers_ == nullptr) return AddDocuments(begin, bits);
    if (cursor_.has_windows()) {
      for (uint32_t i = 0; i < kStretchWindows; ++i) AddWindow(begin, i, bits);
      return;
    }
    const uint64_t end = uint64_t{begin} + kStretchDocuments;
    for (uint32_t block = headers_->FindBlock(from_block_, begin);
         block < headers_->blocks && headers_->FirstPossible(block) < end; ++block) {
      from_block_ = block;
      Load(block);
      AddDocuments(begin, bits);
    }
  }

  // Those bits of `candidates` that are its documents. Others may be set, too.
  void FindAmong(uint32_t begin, const StretchBits& candidates, StretchBits* found) {
    // To look up one document costs as much as to add so many, about.
    constexpr uint64_t kPostingsALookUp = 16;
    found->words.fill(0);
    if (headers_ == nullptr) return AddDocuments(begin, found);
    if (cursor_.has_windows()) {
      for (uint32_t i = 0; i < kStretchWindows; ++i)
        if (candidates.HasAny(i)) AddWindow(begin, i, found);
      return;
    }
    const uint64_t postings_a_stretch =
        uint64_t{postings()} * kStretchDocuments / (uint64_t{headers_->LastDocument(headers_->blocks - 1)} + 1);
    if (candidates.Count() * kPostingsALookUp > postings_a_stretch) return AddTo(begin, found);
    for (size_t word = 0; word < StretchBits::kWords; ++word) {
      for (uint64_t bits = candidates.words[word]; bits != 0; bits &= bits - 1) {
        const auto offset = static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
        if (Has(begin + offset)) found->words[word] |= bits & (~bits + 1);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  void Load(uint32_t block) {
    if (block == loaded_) return;
    loaded_ = block;
    documents_ = {};
    if (!cursor_.MoveToBlock(block)) return;
    documents_ = cursor_.block_documents();
    postings_read_ += documents_.size();
  }
  size_t LowerBound(uint32_t document) const {
    return kernels_.lower_bound(documents_.data(), documents_.size(), document);
  }
  bool Has(uint32_t document) {
    const uint32_t block = headers_->FindBlock(from_block_, document);
    if (block >= headers_->blocks) return false;
    from_block_ = block;
    Load(block);
    const size_t at = LowerBound(document);
    return at < documents_.size() && documents_[at] == document;
  }
  void AddDocuments(uint32_t begin, StretchBits* bits) const {
    const size_t first = documents_.empty() || documents_.front() >= begin ? 0 : LowerBound(begin);
    const uint64_t end = uint64_t{begin} + kStretchDocuments;
    const size_t last =
        documents_.empty() || documents_.back() < end ? documents_.size() : LowerBound(static_cast<uint32_t>(end));
    simd::ScatterBits(documents_.data() + first, last - first, begin, bits->words.data());
  }
  void AddWindow(uint32_t begin, uint32_t in_stretch, StretchBits* bits) {
    const format::Window* const values = cursor_.OpenWindow(begin / format::kWindowDocuments + in_stretch);
    if (values == nullptr) return;
    postings_read_ += values->postings();
    if (values->bitmap() == nullptr) {
      kernels_.or_column(values->values(), values->shape().width, bits->window(in_stretch));
    } else {
      kernels_.or_bitmap(values->bitmap(), bits->window(in_stretch));
    }
  }

  const simd::Kernels& kernels_ = simd::BestKernels();
  C& cursor_;
  const decltype(C::Bounds::headers) headers_;
  std::span<const uint32_t> documents_;  // of a list without blocks, or of the loaded block
  uint32_t loaded_ = kNone;
  uint32_t from_block_ = 0;  // documents to come are not in earlier ones
  uint64_t postings_read_ = 0;
};

template <class S, class C, class L>
class MatchCounter {
 public:
  MatchCounter(const S& source, OpenedTerms<C, L>* terms, std::pmr::memory_resource* memory)
      : source_(source), lists_(memory), must_(memory), should_(memory), must_not_(memory) {
    for (OpenedTerm<C, L>& term : *terms) {
      lists_.emplace_back(&term.cursor);
      if (term.occur != Occur::kMust) {
        (term.occur == Occur::kShould ? should_ : must_not_).push_back(&lists_.back());
        continue;
      }
      InsertSorted(&must_, &lists_.back(), [](const List* a, const List* b) { return a->postings() < b->postings(); });
    }
  }

  // Nothing that counts, after damage: cursors say so.
  uint64_t Count() {
    uint64_t count = 0;
    const uint32_t documents = source_.document_count();
    for (uint64_t begin = 0; begin < documents; begin += kStretchDocuments)
      count += CountStretch(static_cast<uint32_t>(begin));
    return count;
  }
  uint64_t postings_read() const {
    uint64_t postings = 0;
    for (const List& list : lists_) postings += list.postings_read();
    return postings;
  }

 private:
  using List = MatchList<C>;

  uint64_t CountStretch(uint32_t begin) {
    matches_.words.fill(0);
    if (must_.empty()) {
      for (List* list : should_) list->AddTo(begin, &matches_);
    } else {
      must_[0]->AddTo(begin, &matches_);
    }
    for (size_t i = 1; i < must_.size(); ++i) {
      must_[i]->FindAmong(begin, matches_, &found_);
      for (size_t word = 0; word < StretchBits::kWords; ++word) matches_.words[word] &= found_.words[word];
    }
    for (List* list : must_not_) {
      list->FindAmong(begin, matches_, &found_);
      for (size_t word = 0; word < StretchBits::kWords; ++word) matches_.words[word] &= ~found_.words[word];
    }
    if (source_.has_deaths()) RemoveDead(begin);
    return matches_.Count();
  }

  void RemoveDead(uint32_t begin) {
    const size_t words = std::min<size_t>((source_.document_count() - begin + 63) / 64, StretchBits::kWords);
    for (size_t word = 0; word < words; ++word)
      if (matches_.words[word] != 0)
        matches_.words[word] &= ~source_.DeadBits(begin / 64 + static_cast<uint32_t>(word));
  }

  const S& source_;
  std::pmr::list<List> lists_;    // which do not move
  std::pmr::vector<List*> must_;  // rarest first
  std::pmr::vector<List*> should_;
  std::pmr::vector<List*> must_not_;
  StretchBits matches_;
  StretchBits found_;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_MATCH_COUNTER_H_
