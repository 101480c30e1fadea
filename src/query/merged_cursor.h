// Cursors and lengths of several fields read as one text: SearchOptions::fields that are neither one field nor the
// group.
#ifndef ASHLAR_SRC_QUERY_MERGED_CURSOR_H_
#define ASHLAR_SRC_QUERY_MERGED_CURSOR_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "format/layout.h"
#include "src/query/cursor.h"

namespace ashlar::query {

// The union of the fields' lists, frequencies added. Models PostingCursor, and LazyCursor where its members do.
template <PostingCursor C>
class MergedCursor {
 public:
  MergedCursor() = default;
  explicit MergedCursor(std::vector<C> members) : members_(std::move(members)) { Settle(); }

  uint32_t document() const { return document_; }
  uint32_t frequency() const { return frequency_; }
  void Next() {
    if (document_ == format::kNoDocument) return;
    for (C& member : members_) {
      if (member.document() == document_) member.Next();
    }
    Settle();
  }
  void Seek(uint32_t target) {
    if (!LazyCursor<C> && document_ >= target) return;
    for (C& member : members_) {
      if (LazyCursor<C> || member.document() < target) member.Seek(target);
    }
    Settle();
  }
  bool SeekTo(uint32_t document) requires LazyCursor<C> {
    for (C& member : members_) member.SeekTo(document);
    Settle();
    return document_ == document;
  }
  // The members' added up: an upper bound. The exact size of the union is known only by walking it.
  uint32_t postings() const {
    uint64_t sum = 0;
    for (const C& member : members_) sum += member.postings();
    return static_cast<uint32_t>(std::min<uint64_t>(sum, format::kNoDocument - 1));
  }
  absl::Status status() const {
    for (const C& member : members_) {
      if (absl::Status status = member.status(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  void Settle() {
    document_ = format::kNoDocument;
    frequency_ = 0;
    for (const C& member : members_) {
      if (member.document() > document_ || member.document() == format::kNoDocument) continue;
      if (member.document() < document_) frequency_ = 0;
      document_ = member.document();
      frequency_ += member.frequency();
    }
  }

  std::vector<C> members_;
  uint32_t document_ = format::kNoDocument;
  uint32_t frequency_ = 0;
};

template <class L>
class MergedLengths {
 public:
  MergedLengths() = default;
  explicit MergedLengths(std::vector<L> members) : members_(std::move(members)) {}
  uint32_t operator[](uint32_t ordinal) const {
    uint32_t sum = 0;
    for (const L& member : members_) sum += member[ordinal];
    return sum;
  }

 private:
  std::vector<L> members_;
};

}  // namespace ashlar::query

#endif  // ASHLAR_SRC_QUERY_MERGED_CURSOR_H_
