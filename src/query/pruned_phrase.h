// PrunedPhrase: one phrase, read only where it can still reach the page. A phrase occurs no more often than any of its
// words, so what a word's postings could contribute at the phrase's weight bounds what the phrase does: for a block by
// its frontier, for a document by its frequency. Positions are read in the documents that all bounds let through.
//
// A contribution grows with the frequency only up to where roundings outweigh the growth (src/simd/score_math.h);
// beyond, bounds have slack.
//
// Exact like Pruned (pruned.h): every document of the page is offered with its score. Counts only what it offers.
#ifndef ASHLAR_SRC_QUERY_PRUNED_PHRASE_H_
#define ASHLAR_SRC_QUERY_PRUNED_PHRASE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/query/block_contributions.h"
#include "src/query/phrase_cursor.h"
#include "src/query/traversal.h"
#include "src/simd/kernels.h"
#include "src/simd/score_math.h"

namespace ashlar::query {

// Cursors and lengths that PrunedPhrase can read.
template <class C, class L>
concept CanPrunePhrases = BoundedCursor<C> && PositionCursor<C> && requires(C c, const L& lengths, uint32_t at) {
  { lengths.column() } -> std::same_as<const std::byte*>;
  { c.StepsInBlock(at) } -> std::same_as<std::span<const uint32_t>>;
  {c.MoveInBlock(at)};  // to posting `at` of the block that MoveToBlock decoded, or of a list without blocks
};

template <class S, class C, class L>
class PrunedPhrase {
 public:
  using Words = std::vector<typename PhraseCursor<C>::Word>;

  // Whether there is enough to skip.
  static bool IsWorthIt(const Words& words) {
    return std::all_of(words.begin(), words.end(),
                       [](const auto& word) { return word.cursor.postings() > kFewPostings; });
  }

  // `weight`, `norm` and `lengths` are the phrase's. The words' cursors are new.
  PrunedPhrase(const S& source, Words words, float weight, Norm norm, L lengths, Collected* out)
      : source_(source),
        has_deaths_(source.has_deaths()),
        base_(source.put_order_base()),
        matcher_(std::move(words)),
        weight_(weight),
        norm_(norm),
        lengths_(std::move(lengths)),
        out_(*out) {
    for (auto& word : matcher_.words()) lists_.emplace_back(&word.cursor, simd::Scoring{weight, norm.a, norm.b});
  }

  absl::Status Run() {
    out_.total_is_exact = false;
    if (out_.top.limit() == 0) return absl::OkStatus();
    for (uint32_t block = 0; block < lead().blocks(); ++block) {
      if (MayReach(block, Needed(lead().FirstPossible(block)))) ReadBlock(block);
    }
    for (const List& list : lists_) out_.postings_read += list.postings_read();
    return matcher_.status();
  }

 private:
  static constexpr uint32_t kFewPostings = 400;
  class List;

  List& lead() { return lists_[0]; }

  // The least score with which this document, or a later one, may still enter.
  int32_t Needed(uint32_t document) const { return out_.top.Needed(base_ + document); }
  float KOf(uint32_t document) const { return norm_.b == 0 ? norm_.a : norm_.K(lengths_[document]); }

  // Whether a document of this block of the lead can bring that much, as far as blocks tell.
  bool MayReach(uint32_t block, int32_t needed) {
    if (lead().bound(block) < needed) return false;
    const uint32_t first = lead().FirstPossible(block);
    const uint32_t last = lead().LastDocument(block);
    return std::all_of(lists_.begin() + 1, lists_.end(),
                       [&](const List& list) { return list.BoundBetween(first, last) >= needed; });
  }

  void ReadBlock(uint32_t block) {
    lead().Load(block);
    const std::span<const uint32_t> documents = lead().documents();
    if (documents.empty()) return;
    int32_t needed = Needed(documents[0]);
    Score(documents, lead().frequencies());
    const int32_t slack = SlackOf(lead().frequencies());
    size_t n = 0;
    for (uint32_t i = 0; i < documents.size(); ++i) {
      candidates_[n] = i;
      n += contributions_[i] + slack >= needed ? 1 : 0;
    }
    for (size_t c = 0; c < n; ++c) {
      const uint32_t at = candidates_[c];
      if (contributions_[at] + slack >= needed && TryDocument(at, needed)) needed = Needed(documents[at]);
    }
  }

  static bool Grows(uint32_t frequency, float k) {
    const auto f = static_cast<float>(frequency);
    return f * (f + k) <= k * simd::kGrowthLimit;
  }

  // What any of these frequencies' contributions may be below that of a lower one: 0 unless one is very high.
  int32_t SlackOf(std::span<const uint32_t> frequencies) const {
    const uint32_t most = *std::max_element(frequencies.begin(), frequencies.end());
    // The growth ends the later the longer the document is, and no length is below its frequency.
    const float k = norm_.K(1);
    if (Grows(most, k)) return 0;
    return (static_cast<int32_t>(std::min(weight_, kMostWeight)) >> simd::kSlackShift) + 1;
  }
  static constexpr float kMostWeight = 1 << 30;

  // The contributions that the lead's postings would make.
  void Score(std::span<const uint32_t> documents, std::span<const uint32_t> frequencies) {
    const size_t padded = (documents.size() + 15) / 16 * 16;
    if (contributions_.size() < padded) {
      contributions_.resize(padded);
      candidates_.resize(padded);
    }
    if (lead().has_blocks()) {
      BlockContributions(weight_, norm_, lengths_, documents.data(), frequencies, contributions_.data());
      return;
    }
    for (size_t i = 0; i < frequencies.size(); ++i)  // its arrays have no room for kernels
      contributions_[i] = Contribution(weight_, frequencies[i], KOf(documents[i]));
  }

  // Offers posting `at` of the lead's block if the phrase is there often enough. Whether it did.
  bool TryDocument(uint32_t at, int32_t needed) {
    const uint32_t document = lead().documents()[at];
    uint32_t frequency = lead().frequencies()[at];
    for (size_t i = 1; i < lists_.size(); ++i) {
      if (!lists_[i].Find(document, needed)) return false;
      frequency = std::min(frequency, lists_[i].frequency());
    }
    const float k = KOf(document);
    if (simd::BoundOf(weight_, static_cast<float>(frequency), k) < needed) return false;
    if (has_deaths_ && source_.IsDead(document)) return false;
    const uint32_t least = LeastFrequency(needed, k, frequency);
    lead().Select(at);
    if (least > 1 && lists_.size() > 1 && !MayBegin(least)) return false;
    for (List& list : lists_) list.Enter();
    const uint32_t count = matcher_.CountHere(least);
    if (count == 0) return false;
    const int32_t score = Contribution(weight_, count, k);
    if (score < needed) return false;
    ++out_.total;
    out_.top.Offer(score, base_ + document);
    return true;
  }

  // Whether the first two words can stand beside each other that often. Most documents are through after a look at a
  // few steps.
  bool MayBegin(uint32_t least) {
    const bool lead_is_rarer = lists_[0].frequency() <= lists_[1].frequency();
    const size_t rarer = lead_is_rarer ? 0 : 1;
    const std::span<const uint32_t> few = lists_[rarer].Steps();
    const std::span<const uint32_t> many = lists_[1 - rarer].Steps();
    if (few.empty() || many.empty()) return true;
    const auto& words = matcher_.words();
    const int64_t distance = int64_t{words[1 - rarer].places[0]} - int64_t{words[rarer].places[0]};
    size_t may_miss = few.size() - least;
    size_t next = 1;
    int64_t wanted = distance, position = many[0];
    for (const uint32_t step : few) {
      wanted += step;
      while (position < wanted && next < many.size()) position += many[next++];
      if (position != wanted && may_miss-- == 0) return false;
    }
    return true;
  }

  // No lower frequency than this one brings `needed`, and `most` is the highest that may.
  uint32_t LeastFrequency(int32_t needed, float k, uint32_t most) {
    if (needed != least_needed_ || k != least_k_) {
      least_needed_ = needed;
      least_k_ = k;
      least_ = simd::LeastFrequency(weight_, k, needed);
    }
    return std::min(least_, most);
  }

  const S& source_;
  const bool has_deaths_;
  const uint32_t base_;
  PhraseMatcher<C> matcher_;
  const float weight_;
  const Norm norm_;
  const L lengths_;
  Collected& out_;
  std::vector<List> lists_;  // of the matcher's words, rarest first
  std::vector<int32_t> contributions_;
  std::vector<uint32_t> candidates_;
  int32_t least_needed_ = -1;  // what LeastFrequency said last
  float least_k_ = 0;
  uint32_t least_ = 0;
};

// One word's postings, by block. A list without headers is one block.
template <class S, class C, class L>
class PrunedPhrase<S, C, L>::List {
 public:
  List(C* cursor, const simd::Scoring& scoring) : cursor_(cursor), bounds_(cursor->bounds()) {
    if (bounds_.headers == nullptr) {
      Show();
      loaded_ = 0;
      return;
    }
    block_bounds_.assign((blocks() + 15) / 16 * 16, std::numeric_limits<int32_t>::max());
    if (!cursor->is_bounded() || bounds_.pairs == 0) return;
    simd::BestKernels().bounds(bounds_.pair_frequencies, bounds_.pair_lengths, blocks(), bounds_.pairs, blocks(),
                               scoring, block_bounds_.data());
  }

  bool has_blocks() const { return bounds_.headers != nullptr; }
  uint32_t blocks() const { return has_blocks() ? bounds_.headers->blocks : 1; }
  int32_t bound(uint32_t block) const {
    return has_blocks() ? block_bounds_[block] : std::numeric_limits<int32_t>::max();
  }
  uint32_t FirstPossible(uint32_t block) const {
    return has_blocks() ? static_cast<uint32_t>(bounds_.headers->FirstPossible(block)) : 0;
  }
  uint32_t LastDocument(uint32_t block) const {
    return has_blocks() ? bounds_.headers->LastDocument(block) : format::kNoDocument;
  }
  // The most of its blocks that have documents in [first, last].
  int32_t BoundBetween(uint32_t first, uint32_t last) const {
    if (!has_blocks()) return std::numeric_limits<int32_t>::max();
    int32_t most = std::numeric_limits<int32_t>::min();
    for (uint32_t block = BlockOf(first); block < blocks() && FirstPossible(block) <= last; ++block)
      most = std::max(most, block_bounds_[block]);
    return most;
  }

  void Load(uint32_t block) {
    if (block == loaded_) return;
    loaded_ = block;
    at_ = 0;
    documents_ = {};
    if (cursor_->MoveToBlock(block)) Show();
  }
  std::span<const uint32_t> documents() const { return documents_; }
  std::span<const uint32_t> frequencies() const { return frequencies_; }

  // Whether it has a document, which is not before those asked for so far. No if its block can't bring `needed`.
  bool Find(uint32_t document, int32_t needed) {
    if (documents_.empty() || documents_.back() < document) {
      const uint32_t block = has_blocks() ? BlockOf(document) : 1;
      if (block >= blocks() || bound(block) < needed) return false;
      Load(block);
      if (documents_.empty() || documents_.back() < document) return false;
    }
    if (documents_[at_] < document) MoveTo(document);
    return documents_[at_] == document;
  }
  uint32_t frequency() const { return frequencies_[at_]; }  // of what was found

  // Makes a posting of the block the one that was found.
  void Select(uint32_t at) { at_ = at; }
  std::span<const uint32_t> Steps() { return cursor_->StepsInBlock(at_); }
  // Has the cursor stand there, for positions.
  void Enter() { cursor_->MoveInBlock(at_); }

  uint64_t postings_read() const { return postings_read_; }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // The block in which a document is if it is in the list; blocks() if there is none.
  uint32_t BlockOf(uint32_t document) const {
    const uint32_t from = loaded_ == kNone ? 0 : loaded_;
    return bounds_.headers->FindBlock(from, document);
  }

  // The block reaches the document. Documents ascend, so it is at most as many postings ahead as documents; in a dense
  // list, about that.
  void MoveTo(uint32_t document) {
    size_t high = std::min<size_t>(documents_.size() - 1, at_ + (document - documents_[at_]));
    for (int steps = 0; documents_[high - 1] >= document; ++steps) {
      if (steps == kSteps) {
        at_ += static_cast<uint32_t>(simd::BestKernels().lower_bound(documents_.data() + at_, high - at_, document));
        return;
      }
      --high;
    }
    at_ = static_cast<uint32_t>(high);
  }
  static constexpr int kSteps = 4;

  void Show() {
    documents_ = cursor_->block_documents();
    frequencies_ = cursor_->block_frequencies();
    postings_read_ += documents_.size();
  }

  C* cursor_;
  typename C::Bounds bounds_;
  std::vector<int32_t> block_bounds_;
  uint32_t loaded_ = kNone;
  uint32_t at_ = 0;
  std::span<const uint32_t> documents_;
  std::span<const uint32_t> frequencies_;
  uint64_t postings_read_ = 0;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PRUNED_PHRASE_H_
