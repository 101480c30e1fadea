// PhraseCursor: the documents of one index in which the words of a phrase stand in their places.
//
// It looks at documents first and at positions only in those that all words share. Words of one posting come from
// several fields where the index is a group's; a phrase lies in one of them.
#ifndef ASHLAR_SRC_QUERY_PHRASE_CURSOR_H_
#define ASHLAR_SRC_QUERY_PHRASE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "format/layout.h"
#include "src/query/cursor.h"

namespace ashlar::query {

// Counts the places where a phrase begins. `words`: the ascending positions of each of its words, with the word's
// distance from the first one.
class PhraseCounter {
 public:
  struct Word {
    std::span<const uint32_t> positions;
    uint32_t place = 0;
  };
  // Ends with the words in another order. 0 if they are fewer than `least`. O(positions).
  uint32_t Count(std::span<Word> words, uint32_t least = 1) {
    // The rarest word says where the phrase may begin, the others take away.
    std::sort(words.begin(), words.end(),
              [](const Word& a, const Word& b) { return a.positions.size() < b.positions.size(); });
    starts_.clear();
    for (const uint32_t position : words[0].positions) {
      if (position >= words[0].place) starts_.push_back(position - words[0].place);
    }
    for (const Word& word : words.subspan(1)) {
      if (starts_.size() < least) return 0;
      Keep(word, least);
    }
    return starts_.size() < least ? 0 : static_cast<uint32_t>(starts_.size());
  }

 private:
  void Keep(const Word& word, uint32_t least) {
    size_t kept = 0;
    size_t may_miss = starts_.size() - least;
    auto at = word.positions.begin();
    for (const uint32_t start : starts_) {
      const uint64_t wanted = uint64_t{start} + word.place;
      while (at != word.positions.end() && *at < wanted) ++at;
      if (at == word.positions.end()) break;
      if (*at == wanted) {
        starts_[kept++] = start;
      } else if (may_miss-- == 0) {
        break;
      }
    }
    starts_.resize(kept);
  }

  std::vector<uint32_t> starts_;
};

// The cursors of a phrase's words, and how often the phrase begins where they stand.
template <PositionCursor C>
class PhraseMatcher {
 public:
  // A distinct word and its places in the phrase.
  struct Word {
    Word(C word_cursor, std::vector<uint32_t> word_places)
        : cursor(std::move(word_cursor)), places(std::move(word_places)) {}
    C cursor;
    std::vector<uint32_t> places;
    std::vector<uint32_t> positions;  // in the current document
    std::vector<uint32_t> counts;     // of them in each field
  };

  // One word or more.
  explicit PhraseMatcher(std::vector<Word> words) : words_(std::move(words)) {
    std::stable_sort(words_.begin(), words_.end(),
                     [](const Word& a, const Word& b) { return a.cursor.postings() < b.cursor.postings(); });
  }

  std::vector<Word>& words() { return words_; }  // rarest first
  const std::vector<Word>& words() const { return words_; }
  absl::Status status() const {
    for (const Word& word : words_) {
      if (absl::Status status = word.cursor.status(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Of the document that all cursors stand on; 0 after damage, which ends a cursor. What is fewer than `least` may be
  // 0.
  uint32_t CountHere(uint32_t least = 1) {
    size_t fields = SIZE_MAX;
    for (Word& word : words_) {
      word.positions.clear();
      (void)word.cursor.AppendPositions(&word.positions, &word.counts);  // status() says it for good
      fields = std::min(fields, word.counts.size());
    }
    begins_.assign(words_.size(), 0);
    uint32_t count = 0;
    for (size_t field = 0; field < fields; ++field) count += CountIn(field, fields == 1 ? least : 1);
    return count;
  }

 private:
  uint32_t CountIn(size_t field, uint32_t least) {
    placed_.clear();
    bool has_all = true;
    for (size_t i = 0; i < words_.size(); ++i) {
      const Word& word = words_[i];
      const auto positions = std::span(word.positions).subspan(begins_[i]);
      const size_t n = std::min<size_t>(word.counts[field], positions.size());
      begins_[i] += n;
      has_all = has_all && n > 0;
      for (const uint32_t place : word.places) placed_.push_back({positions.first(n), place});
    }
    return has_all ? counter_.Count(placed_, least) : 0;
  }

  std::vector<Word> words_;
  PhraseCounter counter_;
  std::vector<size_t> begins_;  // of the next field in each word's positions
  std::vector<PhraseCounter::Word> placed_;
};

// Models LazyCursor. Frequency: how often the phrase begins in the document.
template <PositionCursor C>
class PhraseCursor {
 public:
  using Word = typename PhraseMatcher<C>::Word;

  // One word or more.
  explicit PhraseCursor(std::vector<Word> words) : matcher_(std::move(words)), document_(lead().document()) {}

  uint32_t document() const { return document_; }
  uint32_t frequency() const { return frequency_; }
  void Next() {
    if (document_ == format::kNoDocument) return;
    lead().Next();
    FindFrom();
  }
  void Seek(uint32_t target) {
    if (document_ >= target && frequency_ > 0) return;
    lead().Seek(target);
    FindFrom();
  }
  bool SeekTo(uint32_t document) {
    if (document_ > document) return false;
    if (document_ == document && frequency_ > 0) return true;
    frequency_ = 0;
    for (Word& word : matcher_.words()) {
      word.cursor.Seek(document);
      if (word.cursor.document() == document) continue;
      document_ = word.cursor.document();
      return false;
    }
    frequency_ = matcher_.CountHere();
    document_ = frequency_ > 0 ? document : document + 1;
    return frequency_ > 0;
  }
  // Of the rarest word: at least as many as the phrase has.
  uint32_t postings() const { return matcher_.words()[0].cursor.postings(); }
  absl::Status status() const { return matcher_.status(); }

 private:
  C& lead() { return matcher_.words()[0].cursor; }

  // To the first document at or after the lead's that has the phrase.
  void FindFrom() {
    frequency_ = 0;
    for (document_ = NextShared(); document_ != format::kNoDocument; document_ = NextShared()) {
      frequency_ = matcher_.CountHere();
      if (frequency_ > 0) return;
      lead().Next();
    }
  }

  // To the first document at or after the lead's that all words share.
  uint32_t NextShared() {
    uint32_t document = lead().document();
    std::vector<Word>& words = matcher_.words();
    for (size_t i = 1; i < words.size() && document != format::kNoDocument;) {
      C& cursor = words[i].cursor;
      cursor.Seek(document);
      if (cursor.document() == document) {
        ++i;
        continue;
      }
      if (cursor.document() == format::kNoDocument) return format::kNoDocument;
      lead().Seek(cursor.document());
      document = lead().document();
      i = 1;
    }
    return document;
  }

  PhraseMatcher<C> matcher_;
  uint32_t document_;  // with frequency 0: nothing is known of it, and nothing is before it
  uint32_t frequency_ = 0;
};

// The cursor of a part of a query that has phrases: a term's or a phrase's. Models LazyCursor.
template <PositionCursor C>
class PartCursor {
 public:
  explicit PartCursor(C term) : term_(std::move(term)) { Show(term_); }
  explicit PartCursor(PhraseCursor<C> phrase) : phrase_(std::make_unique<PhraseCursor<C>>(std::move(phrase))) {
    Show(*phrase_);
  }

  uint32_t document() const { return document_; }
  uint32_t frequency() const { return frequency_; }
  void Next() {
    Move([](auto& cursor) { cursor.Next(); });
  }
  void Seek(uint32_t target) {
    Move([target](auto& cursor) { cursor.Seek(target); });
  }
  bool SeekTo(uint32_t document) {
    if (phrase_ == nullptr) {
      Seek(document);
      return document_ == document;
    }
    const bool found = phrase_->SeekTo(document);
    Show(*phrase_);
    return found;
  }
  uint32_t postings() const { return phrase_ == nullptr ? term_.postings() : phrase_->postings(); }
  absl::Status status() const { return phrase_ == nullptr ? term_.status() : phrase_->status(); }

 private:
  template <class F>
  void Move(const F& move) {
    if (phrase_ == nullptr) {
      move(term_);
      Show(term_);
    } else {
      move(*phrase_);
      Show(*phrase_);
    }
  }
  template <class Moved>
  void Show(const Moved& cursor) {
    document_ = cursor.document();
    frequency_ = cursor.frequency();
  }

  C term_;
  std::unique_ptr<PhraseCursor<C>> phrase_;
  uint32_t document_ = format::kNoDocument;
  uint32_t frequency_ = 0;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_PHRASE_CURSOR_H_
