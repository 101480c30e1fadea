// PrunedList: one scoring term's postings in one source as Pruned reads them: by block, by window, with bounds of both.
#ifndef ASHLAR_SRC_QUERY_PRUNED_LIST_H_
#define ASHLAR_SRC_QUERY_PRUNED_LIST_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "format/dense_window.h"
#include "format/frontier.h"
#include "format/layout.h"
#include "src/query/block_contributions.h"
#include "src/query/length_classes.h"
#include "src/query/search_arena.h"
#include "src/query/traversal.h"
#include "src/simd/kernels.h"
#include "src/simd/score_math.h"

namespace ashlar::query {

static_assert(simd::kWindow == format::kWindowDocuments);

// value / 2^shift, rounded up.
inline int64_t ShiftedUp(int64_t value, int shift) { return (value + (int64_t{1} << shift) - 1) >> shift; }

// How candidates change when a list is probed for them.
enum class Probing : uint8_t { kOptional, kRequired, kExcluded };

// One scoring term's postings in one source, by block. A short list, and a long one with few postings a window, is
// decoded once and is one block.
template <class C, class L>
class PrunedList {
 public:
  using Term = OpenedTerm<C, L>;

  PrunedList(Term* term, std::pmr::memory_resource* memory)
      : memory_(memory), term_(*term), scoring_{term->weight, term->norm.a, term->norm.b} {
    bounds_ = term_.cursor.bounds();
    has_windows_ = term_.cursor.has_windows();
    if (bounds_.pairs == 0) DecodeShort();
  }

  uint32_t postings() const { return term_.cursor.postings(); }
  // In the mean. After BoundWindows.
  uint32_t PostingsAWindow() const { return postings() / static_cast<uint32_t>(window_bounds_.size()); }
  bool has_blocks() const { return bounds_.pairs != 0; }
  uint32_t blocks() const { return has_blocks() ? bounds_.headers->blocks : 1; }
  uint32_t FirstPossible(uint32_t block) const {
    return has_blocks() ? static_cast<uint32_t>(bounds_.headers->FirstPossible(block)) : 0;
  }
  // Only with blocks.
  uint32_t LastPossible(uint32_t block) const { return bounds_.headers->LastDocument(block); }
  uint64_t postings_read() const { return postings_read_; }

  // The most that postings of blocks [first, first + n) contribute; `out` is padded to 16.
  void BlockBounds(uint32_t first, uint32_t n, int32_t* out) const {
    kernels_.bounds(bounds_.pair_frequencies + first, bounds_.pair_lengths + first, bounds_.headers->blocks,
                    bounds_.pairs, n, scoring_, out);
  }
  void GroupBounds(std::pmr::vector<int32_t>* out) const {
    out->resize(Padded(bounds_.headers->groups));
    kernels_.bounds(bounds_.group_pair_frequencies, bounds_.group_pair_lengths, bounds_.headers->groups,
                    bounds_.group_pairs, bounds_.headers->groups, scoring_, out->data());
  }

  // Makes documents() and contributions() those of a block; none after damage.
  void Load(uint32_t block) {
    if (block == loaded_) return;
    loaded_ = block;
    documents_ = {};
    contributions_ = nullptr;
    if (!term_.cursor.MoveToBlock(block)) return;
    documents_ = term_.cursor.block_documents();
    frequencies_ = {};
    postings_read_ += documents_.size();
  }
  std::span<const uint32_t> documents() const { return documents_; }
  // As many as documents. Decoded when they are asked for.
  std::span<const uint32_t> frequencies() {
    if (frequencies_.empty()) frequencies_ = term_.cursor.block_frequencies();
    return frequencies_;
  }
  // Computed when they are asked for: each looks up a length, which costs more than decoding.
  const int32_t* contributions() {
    if (contributions_ == nullptr) {
      Score(documents_.data(), frequencies(), block_contributions_.data());
      contributions_ = block_contributions_.data();
    }
    return contributions_;
  }
  // Writes those of the loaded postings [first, last) that contribute at least `needed`, and returns how many. Both
  // arrays have room for all of them, padded to 16.
  size_t Select(size_t first, size_t last, int32_t needed, uint32_t* documents, int32_t* scores);

  // Decodes all of it; behind documents() is then format::kNoDocument.
  void Flatten() {
    if (!has_blocks()) return;
    std::pmr::vector<uint32_t> documents(memory_);
    std::pmr::vector<int32_t> contributions(Padded(postings()) + simd::kBlock, memory_);
    documents.reserve(postings() + kBehind);
    for (uint32_t block = 0; block < blocks(); ++block) {
      Load(block);
      if (documents_.empty() || documents.size() + documents_.size() > postings()) continue;  // damage
      Score(documents_.data(), frequencies(), contributions.data() + documents.size());
      documents.insert(documents.end(), documents_.begin(), documents_.end());
    }
    flat_documents_ = std::move(documents);
    flat_contributions_ = std::move(contributions);
    ShowFlat();
  }

  // Of a list that is decoded whole; to be changed by who takes them over. Behind the documents is format::kNoDocument.
  uint32_t* flat_documents() { return flat_documents_.data(); }
  int32_t* flat_contributions() { return flat_contributions_.data(); }
  // Of a list that is decoded whole: adds the contributions of those of n documents, ascending, that it has, and takes
  // these out; returns how many are left. Both arrays are padded to 16.
  size_t TakeShared(uint32_t* documents, int32_t* contributions, size_t n);
  // The same with all of another such list.
  void TakeShared(PrunedList* from) {
    const size_t kept =
        TakeShared(from->flat_documents_.data(), from->flat_contributions_.data(), from->documents_.size());
    std::fill_n(from->flat_documents_.begin() + static_cast<ptrdiff_t>(kept), kBehind, format::kNoDocument);
    from->documents_ = {from->flat_documents_.data(), kept};
  }

  // --- windows ---
  void BoundWindows(uint32_t windows, uint32_t document_count);
  int32_t window_bound(uint32_t window) const { return window_bounds_[window]; }
  int32_t block_bound(uint32_t block) const {
    if (has_windows_) return window_bounds_[block / format::kBlocksPerGroup];
    if (!has_blocks()) return flat_bound_;
    return block_bounds_.empty() ? kUnknownBound : block_bounds_[block];
  }
  // The first block from which documents at or after this one may come; blocks() if there is none.
  uint32_t FindBlock(uint32_t document) {
    if (has_blocks()) {
      // Windows mostly come in order.
      const uint32_t from = found_block_ < blocks() && FirstPossible(found_block_) <= document ? found_block_ : 0;
      return found_block_ = bounds_.headers->FindBlock(from, document);
    }
    return documents_.empty() || documents_.back() < document ? 1 : 0;
  }
  uint32_t FindBlock(uint32_t from, uint32_t document) {
    return has_blocks() ? bounds_.headers->FindBlock(from, document) : FindBlock(document);
  }

  // --- dense windows ---
  bool has_windows() const { return has_windows_; }
  // The most of all windows. After BoundWindows.
  int32_t bound() const { return bound_; }
  // Adds to each of the window's documents at least its contribution / 2^shift, rounded up. `classes`: of the documents
  // by length, if they are told apart.
  void AddWindow(uint32_t window, int shift, const LengthClasses* classes, uint16_t* accumulators);
  // Of the lengths that contributions look up, to look at any; null if that can't be had, or they look up none.
  const std::byte* length_column() const {
    if constexpr (requires { term_.lengths.is_whole(); }) {
      if (!term_.lengths.is_whole()) return nullptr;
    }
    if constexpr (HasLengthColumn<L>) {
      if (term_.norm.b != 0) return term_.lengths.column();
    }
    return nullptr;
  }

  // Adds the list to those of the n candidates (by document, ascending) that it has, and returns how many are left: if
  // they are required, those; if they are excluded, the others. A block is read only if it could bring one of them to
  // `bound_needed`.
  size_t Probe(size_t n, int32_t bound_needed, Probing probing, uint32_t* documents, int32_t* scores);

 private:
  // Writes (which candidate, its document, its frequency) of those that the list has, and returns how many.
  size_t FindInWindows(size_t n, const uint32_t* documents);
  // Unless `in_order`, those of one block come in any order.
  size_t FindInBlocks(size_t n, int32_t bound_needed, bool in_order, const uint32_t* documents, const int32_t* scores);
  size_t FindInBlock(const uint32_t* documents, size_t begin, size_t end, size_t found);
  size_t FindManyInBlock(int32_t bound_needed, const uint32_t* documents, const int32_t* scores, size_t begin,
                         size_t end, size_t found);
  static constexpr size_t kManyInABlock = 12;
  size_t EndOfThose(uint32_t last, const uint32_t* documents, size_t begin, size_t n) const;
  // The same for a list that is one block and has its contributions.
  size_t FindInFlat(size_t n, const uint32_t* documents);
  size_t FindInWindow(const format::Window& values, const uint32_t* documents, size_t begin, size_t end, size_t found);
  size_t FindIn(std::span<const uint32_t> block, const uint32_t* documents, size_t begin, size_t end, size_t found);
  void MakeRoomToFind(size_t n);
  // Below it no posting of the loaded block contributes `needed`. Only with blocks.
  uint32_t LeastFrequency(int64_t needed) const {
    return simd::LeastFrequency(term_.weight, term_.norm.K(ShortestLength()), needed);
  }
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  static constexpr int32_t kUnknownBound = INT32_MAX / 2;  // before BoundWindows
  static constexpr size_t kBehind = 16;                    // a flat list's documents are padded by as many
  static size_t Padded(size_t n) { return (n + 15) / 16 * 16; }

  void DecodeShort() {
    const std::span<const uint32_t> documents = term_.cursor.block_documents();
    const std::span<const uint32_t> frequencies = term_.cursor.block_frequencies();
    flat_documents_.reserve(documents.size() + kBehind);
    flat_documents_.assign(documents.begin(), documents.end());
    flat_contributions_.resize(Padded(documents.size() + 1));
    Score(documents.data(), frequencies, flat_contributions_.data());
    postings_read_ += documents.size();
    ShowFlat();
  }
  void ShowFlat() {
    bounds_.pairs = 0;
    loaded_ = 0;
    const size_t n = flat_documents_.size();
    flat_documents_.insert(flat_documents_.end(), kBehind, format::kNoDocument);
    documents_ = {flat_documents_.data(), n};
    contributions_ = flat_contributions_.data();
    flat_bound_ = n == 0 ? 0 : kernels_.maximum(contributions_, n);
  }
  // Of the loaded block, rounded down.
  uint32_t ShortestLength() const {
    const bool of_group = has_windows_;
    const uint32_t at = of_group ? static_cast<uint32_t>(loaded_ / format::kBlocksPerGroup) : loaded_;
    const uint8_t* const codes = of_group ? bounds_.group_pair_lengths : bounds_.pair_lengths;
    const size_t pairs = of_group ? bounds_.group_pairs : bounds_.pairs;
    return format::LengthOfCode(
        codes[(pairs - 1) * (of_group ? bounds_.headers->groups : bounds_.headers->blocks) + at]);
  }
  void Score(const uint32_t* documents, std::span<const uint32_t> frequencies, int32_t* out) const {
    BlockContributions(term_.weight, term_.norm, term_.lengths, documents, frequencies, out);
  }
  const uint8_t* TableOf(uint32_t window, const format::Window& values, int shift);
  void ClassedTableOf(uint32_t window, const format::Window& values, const LengthClasses& classes, int shift,
                      uint8_t* table) const;

  std::pmr::memory_resource* memory_;
  const simd::Kernels& kernels_ = simd::BestKernels();
  Term& term_;
  const simd::Scoring scoring_;
  typename C::Bounds bounds_;
  uint32_t loaded_ = kNone;
  uint32_t found_block_ = 0;
  std::span<const uint32_t> documents_;
  std::span<const uint32_t> frequencies_;
  const int32_t* contributions_ = nullptr;  // of documents_, or not computed yet
  std::array<int32_t, simd::kBlock> block_contributions_;
  std::pmr::vector<uint32_t> flat_documents_{memory_};
  std::pmr::vector<int32_t> flat_contributions_{memory_};
  int32_t flat_bound_ = 0;
  std::pmr::vector<int32_t> block_bounds_{memory_};
  std::pmr::vector<int32_t> window_bounds_{memory_};
  int32_t bound_ = 0;
  bool has_windows_ = false;
  // What the values of the window that was added last stand for, at most, / 2^shift.
  struct Table {
    alignas(64) std::array<uint8_t, simd::kTableBytes> bounds;
    uint32_t values = 0;
    uint8_t length = 0;
    bool fits_all = false;  // windows with the same number of values and shortest length
    bool bitmap = false;
  };
  ArenaPtr<Table> table_;
  // Candidates that were found in the list.
  std::pmr::vector<uint32_t> found_at_{memory_}, found_documents_{memory_}, found_frequencies_{memory_},
      places_{memory_};
  std::pmr::vector<int32_t> found_contributions_{memory_};
  uint64_t postings_read_ = 0;
};

template <class C, class L>
void PrunedList<C, L>::BoundWindows(uint32_t windows, uint32_t document_count) {
  // Decoded whole where that costs less than what loose bounds would let through.
  constexpr uint32_t kFewPostingsAWindow = 4;
  if (has_windows_) {
    GroupBounds(&window_bounds_);
    window_bounds_.resize(windows);
    std::fill(window_bounds_.begin() + std::min(bounds_.headers->groups, windows), window_bounds_.end(), 0);
    bound_ = kernels_.maximum(window_bounds_.data(), window_bounds_.size());
    return;
  }
  if (has_blocks() && postings() <= uint64_t{kFewPostingsAWindow} * windows) Flatten();
  window_bounds_.assign(windows, 0);
  const auto raise = [this](uint32_t window, int32_t bound) {
    window_bounds_[window] = std::max(window_bounds_[window], bound);
  };
  if (!has_blocks()) {
    for (size_t i = 0; i < documents_.size(); ++i) raise(documents_[i] / simd::kWindow, contributions_[i]);
    bound_ = flat_bound_;
    return;
  }
  block_bounds_.resize(Padded(blocks()));
  BlockBounds(0, blocks(), block_bounds_.data());
  bound_ = kernels_.maximum(block_bounds_.data(), blocks());
  uint32_t first = 0;
  for (uint32_t block = 0; block < blocks(); ++block) {
    const uint32_t last = std::min(bounds_.headers->LastDocument(block), document_count - 1);
    for (uint32_t window = first / simd::kWindow; window <= last / simd::kWindow; ++window)
      raise(window, block_bounds_[block]);
    first = last + 1;
  }
}

// A value's bound: that of its frequency with the shortest length that the window's frontier has for it or a higher
// one.
template <class C, class L>
const uint8_t* PrunedList<C, L>::TableOf(uint32_t window, const format::Window& values, int shift) {
  const uint32_t n = 1u << values.shape().width;
  const uint32_t groups = bounds_.headers->groups, pairs = bounds_.group_pairs;
  const auto frequency_of = [&](uint32_t pair) {
    return bounds_.group_pair_frequencies[size_t{pair} * groups + window];
  };
  const auto length_of = [&](uint32_t pair) { return bounds_.group_pair_lengths[size_t{pair} * groups + window]; };
  const bool bitmap = values.bitmap() != nullptr;
  const uint8_t shortest = length_of(pairs - 1);
  const bool one_length = length_of(0) == shortest && !values.has_exceptions();
  if (table_ == nullptr) table_ = NewIn<Table>(memory_);
  Table& table = *table_;
  if (one_length && table.fits_all && table.values == n && table.length == shortest && table.bitmap == bitmap)
    return table.bounds.data();
  std::array<uint8_t, simd::kTableBytes + simd::kReadSlack> frequencies{}, lengths{};
  std::array<int32_t, simd::kTableBytes> bounds;
  uint32_t pair = pairs - 1;
  for (uint32_t value = 0; value < n; ++value) {
    frequencies[value] = format::FrequencyCode(value + (bitmap ? 1 : 0));
    while (pair > 0 && frequency_of(pair) < frequencies[value]) --pair;
    lengths[value] = length_of(pair);
  }
  if (values.has_exceptions()) frequencies[n - 1] = frequency_of(0);
  kernels_.bounds(frequencies.data(), lengths.data(), n, 1, n, scoring_, bounds.data());
  // Exceptions may be of any frequency from there on; the window's own bound is above all of them.
  if (values.has_exceptions()) bounds[n - 1] = window_bounds_[window];
  for (uint32_t value = 0; value < n; ++value)
    table.bounds[value] = static_cast<uint8_t>(std::min<int64_t>(ShiftedUp(bounds[value], shift), 255));
  table.values = n;
  table.length = shortest;
  table.fits_all = one_length;
  table.bitmap = bitmap;
  return table.bounds.data();
}

// As TableOf, for each class: the shortest length is then that of the class, if it is not below the frontier's.
template <class C, class L>
void PrunedList<C, L>::ClassedTableOf(uint32_t window, const format::Window& values, const LengthClasses& classes,
                                      int shift, uint8_t* table) const {
  const uint32_t n = 1u << values.shape().width;
  const uint32_t groups = bounds_.headers->groups, pairs = bounds_.group_pairs;
  const uint8_t* const pair_frequencies = bounds_.group_pair_frequencies + window;
  const uint8_t* const pair_lengths = bounds_.group_pair_lengths + window;
  std::array<uint8_t, 1 << simd::kClassedWidthMax> frequency_codes{}, shortest{};
  uint32_t pair = pairs - 1;
  for (uint32_t value = 0; value < n; ++value) {
    frequency_codes[value] = format::FrequencyCode(value + (values.bitmap() != nullptr ? 1 : 0));
    while (pair > 0 && pair_frequencies[size_t{pair} * groups] < frequency_codes[value]) --pair;
    shortest[value] = pair_lengths[size_t{pair} * groups];
  }
  // Exceptions may be of any frequency from there on. (To add each by itself instead cost more than it saved.)
  if (values.has_exceptions()) frequency_codes[n - 1] = pair_frequencies[0];
  std::array<uint8_t, simd::kClassedBytes + simd::kReadSlack> frequencies{}, lengths{};
  std::array<int32_t, simd::kClassedBytes> bounds;
  for (size_t i = 0; i < simd::kClassedBytes; i += n) {
    const uint8_t least = classes.least_codes[i / 2];
    for (size_t value = 0; value < n; ++value) {
      frequencies[i + value] = frequency_codes[value];
      lengths[i + value] = std::max(shortest[value], least);
    }
  }
  kernels_.bounds(frequencies.data(), lengths.data(), simd::kClassedBytes, 1, simd::kClassedBytes, scoring_,
                  bounds.data());
  for (size_t i = 0; i < simd::kClassedBytes; ++i) {
    const int32_t bound = std::min(bounds[i], window_bounds_[window]);
    table[i] = static_cast<uint8_t>(std::min<int64_t>(ShiftedUp(bound, shift), 255));
  }
}

template <class C, class L>
void PrunedList<C, L>::AddWindow(uint32_t window, int shift, const LengthClasses* classes, uint16_t* accumulators) {
  const format::Window* const values = term_.cursor.OpenWindow(window);
  if (values == nullptr) return;
  postings_read_ += values->postings();
  const uint32_t width = values->shape().width;
  if (classes != nullptr && width <= simd::kClassedWidthMax) {
    alignas(64) std::array<uint8_t, simd::kTableBytes> table;
    ClassedTableOf(window, *values, *classes, shift, table.data());
    if (values->bitmap() == nullptr) {
      kernels_.add_classed_column(values->values(), width, classes->of.data(), table.data(), accumulators);
    } else {
      kernels_.add_classed_bitmap(values->bitmap(), values->values(), width, classes->of.data(), table.data(),
                                  accumulators);
    }
    return;
  }
  const uint8_t* const table = TableOf(window, *values, shift);
  if (values->bitmap() == nullptr) {
    kernels_.add_column(values->values(), width, table, accumulators);
  } else {
    kernels_.add_bitmap(values->bitmap(), values->values(), width, table, accumulators);
  }
}

template <class C, class L>
size_t PrunedList<C, L>::Select(size_t first, size_t last, int32_t needed, uint32_t* documents, int32_t* scores) {
  const size_t n = last - first;
  if (contributions_ != nullptr || needed <= 0) {
    const int32_t* const known = contributions();
    std::copy_n(documents_.data() + first, n, documents);
    std::copy_n(known + first, n, scores);
    return kernels_.keep_at_least(documents, scores, n, 0, needed);
  }
  // First by the frequency alone, as if every document were as short as the block's shortest: that needs no length.
  const uint32_t least = LeastFrequency(needed);
  if (least == simd::kNoFrequency) return 0;
  MakeRoomToFind(n);
  const size_t taken = kernels_.take_frequent(documents_.data() + first, frequencies().data() + first, n, least,
                                              documents, found_frequencies_.data());
  Score(documents, {found_frequencies_.data(), taken}, scores);
  return kernels_.keep_at_least(documents, scores, taken, 0, needed);
}

template <class C, class L>
void PrunedList<C, L>::MakeRoomToFind(size_t n) {
  if (found_at_.size() >= Padded(n)) return;
  for (auto* array : {&found_at_, &found_documents_, &found_frequencies_, &places_}) array->resize(Padded(n));
  found_contributions_.resize(Padded(n));
}

template <class C, class L>
size_t PrunedList<C, L>::FindInWindows(size_t n, const uint32_t* documents) {
  size_t found = 0;
  for (size_t begin = 0, end = 0; begin < n; begin = end) {
    const uint32_t window = documents[begin] / format::kWindowDocuments;
    const uint32_t last = window * format::kWindowDocuments + (format::kWindowDocuments - 1);
    end = EndOfThose(last, documents, begin, n);
    const format::Window* const values = term_.cursor.OpenWindow(window);
    if (values != nullptr) found += FindInWindow(*values, documents, begin, end, found);
  }
  return found;
}

// Notes candidates [begin, end) that a window has behind those already found, and returns how many.
template <class C, class L>
size_t PrunedList<C, L>::FindInWindow(const format::Window& values, const uint32_t* documents, size_t begin, size_t end,
                                      size_t found) {
  const uint32_t width = values.shape().width;
  if (values.bitmap() == nullptr) {
    kernels_.look_up_column(values.values(), width, documents + begin, end - begin, places_.data());
  } else {
    kernels_.look_up_bitmap(values.bitmap(), values.ranks(), values.values(), width, documents + begin, end - begin,
                            places_.data());
  }
  const uint32_t escape = values.has_exceptions() ? values.escape() : 0;
  size_t n = found, exception = 0;
  for (size_t i = begin; i < end; ++i) {
    const uint32_t value = places_[i - begin];
    if (value == 0) continue;
    found_at_[n] = static_cast<uint32_t>(i);
    found_documents_[n] = documents[i];
    found_frequencies_[n] =
        value == escape ? values.ExceptionAt(documents[i] % format::kWindowDocuments, &exception) : value;
    n += found_frequencies_[n] != 0 ? 1 : 0;
  }
  return n - found;
}

// Where the candidates [begin, n) that are at most `last` end. They are few.
template <class C, class L>
size_t PrunedList<C, L>::EndOfThose(uint32_t last, const uint32_t* documents, size_t begin, size_t n) const {
  if (documents[n - 1] <= last) return n;
  constexpr size_t kNear = 16;
  const size_t near = std::min(kNear, n - begin);
  const size_t found = kernels_.lower_bound(documents + begin, near, last + 1);
  if (found < near) return begin + found;
  return begin + near + kernels_.lower_bound(documents + begin + near, n - begin - near, last + 1);
}

template <class C, class L>
size_t PrunedList<C, L>::FindInBlocks(size_t n, int32_t bound_needed, bool in_order, const uint32_t* documents,
                                      const int32_t* scores) {
  size_t found = 0;
  uint32_t block = 0;
  for (size_t begin = 0, end = 0; begin < n; begin = end) {
    block = FindBlock(block, documents[begin]);
    if (block >= blocks()) break;
    end = EndOfThose(LastPossible(block), documents, begin, n);
    if (block_bound(block) < int64_t{bound_needed} - kernels_.maximum(scores + begin, end - begin)) continue;
    Load(block);
    if (documents_.empty()) continue;
    found += in_order || end - begin < kManyInABlock || end - begin > simd::kBlock
                 ? FindInBlock(documents, begin, end, found)
                 : FindManyInBlock(bound_needed, documents, scores, begin, end, found);
  }
  return found;
}

// In the loaded block.
template <class C, class L>
size_t PrunedList<C, L>::FindInBlock(const uint32_t* documents, size_t begin, size_t end, size_t found) {
  const size_t n = FindIn(documents_, documents, begin, end, found);
  if (n == 0) return 0;
  const std::span<const uint32_t> block_frequencies = frequencies();
  for (size_t i = found; i < found + n; ++i) {
    found_documents_[i] = documents[found_at_[i]];
    found_frequencies_[i] = block_frequencies[places_[i]];
  }
  return n;
}

// Most candidates need more than what most postings bring. So those few postings that bring enough for an ordinary
// candidate are looked up among all of them, and only candidates with a higher score are looked up among the postings.
template <class C, class L>
size_t PrunedList<C, L>::FindManyInBlock(int32_t bound_needed, const uint32_t* documents, const int32_t* scores,
                                         size_t begin, size_t end, size_t found) {
  const size_t n = end - begin;
  const int32_t ordinary = std::max({scores[begin], scores[begin + n / 2], scores[end - 1]});
  const uint32_t least = LeastFrequency(int64_t{bound_needed} - ordinary);
  if (least == 1) return FindInBlock(documents, begin, end, found);
  std::array<uint32_t, simd::kBlock> taken, taken_frequencies, which, places;
  size_t so_far = 0;
  const auto note = [&](size_t candidate, uint32_t frequency) {
    found_at_[found + so_far] = static_cast<uint32_t>(begin + candidate);
    found_documents_[found + so_far] = documents[begin + candidate];
    found_frequencies_[found + so_far++] = frequency;
  };
  const std::span<const uint32_t> block_frequencies = frequencies();
  if (least != simd::kNoFrequency) {
    const size_t m = kernels_.take_frequent(documents_.data(), block_frequencies.data(), documents_.size(), least,
                                            taken.data(), taken_frequencies.data());
    const size_t both = kernels_.find(documents + begin, n, taken.data(), m, which.data(), places.data());
    for (size_t i = 0; i < both; ++i)
      if (scores[begin + places[i]] <= ordinary) note(places[i], taken_frequencies[which[i]]);
  }
  size_t higher = 0;  // taken: their documents, taken_frequencies: which candidates they are
  for (size_t i = 0; i < n; ++i) {
    taken[higher] = documents[begin + i];
    taken_frequencies[higher] = static_cast<uint32_t>(i);
    higher += scores[begin + i] > ordinary ? 1 : 0;
  }
  const size_t both =
      kernels_.find(documents_.data(), documents_.size(), taken.data(), higher, which.data(), places.data());
  for (size_t i = 0; i < both; ++i) note(taken_frequencies[which[i]], block_frequencies[places[i]]);
  return so_far;
}

// Notes candidates [begin, end) that a block has behind those already found, and returns how many.
template <class C, class L>
size_t PrunedList<C, L>::FindIn(std::span<const uint32_t> block, const uint32_t* documents, size_t begin, size_t end,
                                size_t found) {
  if (block.empty()) return 0;
  uint32_t* const at = found_at_.data() + found;
  const size_t n =
      kernels_.find(block.data(), block.size(), documents + begin, end - begin, at, places_.data() + found);
  for (size_t i = 0; i < n; ++i) at[i] += static_cast<uint32_t>(begin);
  return n;
}

template <class C, class L>
size_t PrunedList<C, L>::FindInFlat(size_t n, const uint32_t* documents) {
  size_t found = 0, at = 0;  // in the list: candidates ascend
  for (size_t begin = 0, end = 0; begin < n; begin = end) {
    at += kernels_.lower_bound(documents_.data() + at, documents_.size() - at, documents[begin]);
    if (at == documents_.size()) break;
    const std::span<const uint32_t> part = documents_.subspan(at, std::min(documents_.size() - at, simd::kBlock));
    end = part.back() >= documents[n - 1] ? n
                                          : begin + kernels_.lower_bound(documents + begin, n - begin, part.back() + 1);
    end = std::max(end, begin + 1);  // in a list that does not ascend, too
    const size_t so_far = found;
    found += FindIn(part, documents, begin, end, found);
    for (size_t i = so_far; i < found; ++i) found_contributions_[i] = contributions_[at + places_[i]];
  }
  return found;
}

template <class C, class L>
size_t PrunedList<C, L>::TakeShared(uint32_t* documents, int32_t* contributions, size_t n) {
  constexpr int32_t kTaken = -1;
  MakeRoomToFind(n);
  size_t taken = 0;
  for (size_t begin = 0, end = 0, at = 0; begin < n; begin = end) {
    at += kernels_.lower_bound(documents_.data() + at, documents_.size() - at, documents[begin]);
    if (at == documents_.size()) break;
    const std::span<const uint32_t> part = documents_.subspan(at, std::min(documents_.size() - at, simd::kBlock));
    end = std::max(EndOfThose(part.back(), documents, begin, n), begin + 1);
    const size_t found = FindIn(part, documents, begin, end, 0);
    for (size_t i = 0; i < found; ++i) {
      flat_contributions_[at + places_[i]] += contributions[found_at_[i]];
      contributions[found_at_[i]] = kTaken;
    }
    taken += found;
  }
  return taken == 0 ? n : kernels_.keep_at_least(documents, contributions, n, 0, kTaken + 1);
}

template <class C, class L>
size_t PrunedList<C, L>::Probe(size_t n, int32_t bound_needed, Probing probing, uint32_t* documents, int32_t* scores) {
  if (n == 0) return 0;
  MakeRoomToFind(n);
  const size_t found = !has_blocks()  ? FindInFlat(n, documents)
                       : has_windows_ ? FindInWindows(n, documents)
                                      : FindInBlocks(n, bound_needed, probing != Probing::kOptional, documents, scores);
  if (has_blocks()) {
    if (has_windows_) postings_read_ += found;
    if (probing != Probing::kExcluded)
      Score(found_documents_.data(), {found_frequencies_.data(), found}, found_contributions_.data());
  }
  if (probing == Probing::kOptional) {
    for (size_t i = 0; i < found; ++i) scores[found_at_[i]] += found_contributions_[i];
    return n;
  }
  if (probing == Probing::kRequired) {
    for (size_t i = 0; i < found; ++i) {
      documents[i] = documents[found_at_[i]];
      scores[i] = scores[found_at_[i]] + found_contributions_[i];
    }
    return found;
  }
  size_t kept = 0, next = 0;
  for (size_t i = 0; i < n; ++i) {
    if (next < found && found_at_[next] == i) {
      ++next;
      continue;
    }
    documents[kept] = documents[i];
    scores[kept++] = scores[i];
  }
  return kept;
}

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PRUNED_LIST_H_
