// Overlay: the in-memory inverted index of what is not flushed yet. Append-only: one writer adds documents, any number of
// readers look at the first n of them (n comes from their snapshot) without locks and without waiting.
//
// Memory order: the writer finishes a document's postings, then publishes the document count that includes it (by way of the
// engine's snapshot cell, under a mutex or with release); a reader that got n by acquire sees all of the first n documents.
// Within shared structures (term table, posting chunks, key table) counts and heads are atomics, so that ThreadSanitizer
// agrees.
#ifndef ASHLAR_SRC_OVERLAY_OVERLAY_H_
#define ASHLAR_SRC_OVERLAY_OVERLAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "format/layout.h"
#include "src/base/bytes.h"
#include "src/text/analyzed_document.h"

namespace ashlar::overlay {

class Overlay;

// Walks the postings of one term among the first n documents. Models query::PostingCursor.
// Owns nothing: valid while the Overlay lives.
class Cursor {
 public:
  Cursor() = default;                 // empty list
  uint32_t document() const { return document_; }    // format::kNoDocument at the end
  uint32_t frequency() const { return frequency_; }
  void Next();
  void Seek(uint32_t target);         // to the first document >= target; never back
  uint32_t postings() const { return postings_; }    // documents in the list, dead ones included
  absl::Status status() const { return absl::OkStatus(); }
  // Appends the positions of the current posting, ascending. Empty where the field keeps none, and on the group's own list.
  void AppendPositions(std::vector<uint32_t>* out) const;

 private:
  friend class Overlay;
  uint32_t document_ = format::kNoDocument;
  uint32_t frequency_ = 0;
  uint32_t postings_ = 0;
  // The owner of src/overlay adds what it needs.
};

class Overlay {
 public:
  explicit Overlay(const Schema& schema);
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  // --- writer ---
  // Adds a document and returns its ordinal. DocumentIds must ascend. Ordinals count from 0.
  uint32_t Add(DocumentId id, const text::AnalyzedDocument& document);
  // Marks a document dead at `sequence` (> 0); once per document.
  void Kill(uint32_t ordinal, Sequence sequence);
  uint32_t document_count() const;   // added so far (the writer's view)
  uint64_t bytes() const;            // of memory in use, all of it; any thread

  // --- readers; `n` is the snapshot's document count ---
  Cursor OpenTerm(format::IndexId index, std::string_view term, uint32_t n) const;
  // Length of a field (or the group) of a document, 0 if missing.
  uint32_t Length(format::IndexId index, uint32_t ordinal) const;
  Sequence DeathOf(uint32_t ordinal) const;  // 0: alive
  DocumentId IdOf(uint32_t ordinal) const;
  std::string_view KeyOf(uint32_t ordinal) const;
  ByteSpan DocumentOf(uint32_t ordinal) const;  // encoded, all values
  // The newest of the first n documents with this key whose death is 0 or > at; nullopt if there is none.
  std::optional<uint32_t> FindKey(std::string_view key, uint32_t n, Sequence at) const;
  std::optional<uint32_t> FindId(DocumentId id, uint32_t n) const;

  // --- flush: only when frozen (no writer any more) ---
  // Ordinals in ascending order of key (bytes); documents without a key are left out.
  std::vector<uint32_t> OrdinalsByKey() const;
  // Terms of an index in ascending byte order, each with a cursor over all documents. For the group the caller merges the
  // cursors of its fields. Stops at the first error.
  absl::Status VisitTerms(format::IndexId field,
                          const std::function<absl::Status(std::string_view term, Cursor cursor)>& visit) const;
  // Postings of a field, for choosing the largest of the group.
  uint64_t PostingsOf(format::IndexId field) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::overlay

#endif  // ASHLAR_SRC_OVERLAY_OVERLAY_H_
