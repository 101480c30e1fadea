// PostingCursor: walks one posting list of a segment, reading packed blocks straight from its bytes.
#ifndef ASHLAR_SRC_SEGMENT_POSTING_CURSOR_H_
#define ASHLAR_SRC_SEGMENT_POSTING_CURSOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "format/layout.h"

namespace ashlar::segment {

// Models query::PostingCursor. Move-only; valid while the Segment lives. Never throws: on damage it moves to the end
// and status() says why, for good.
class PostingCursor {
 public:
  PostingCursor();  // empty list
  PostingCursor(PostingCursor&&) noexcept;
  PostingCursor& operator=(PostingCursor&&) noexcept;
  ~PostingCursor();

  uint32_t document() const { return document_; }  // format::kNoDocument at the end
  uint32_t frequency() const { return frequency_; }
  void Next();
  void Seek(uint32_t target);  // to the first document >= target; never back
  uint32_t postings() const { return postings_; }  // documents in the list, dead ones included
  absl::Status status() const;
  // Appends the positions of the current posting. For the group: each member field's one after another, in ascending
  // field number; `counts`, if given, receives how many belong to each member.
  absl::Status AppendPositions(std::vector<uint32_t>* out, std::vector<uint32_t>* counts = nullptr);

  // Implementation state, owned by src/segment.
  struct State;
  explicit PostingCursor(std::unique_ptr<State> state);

 private:
  uint32_t document_ = format::kNoDocument;
  uint32_t frequency_ = 0;
  uint32_t postings_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_POSTING_CURSOR_H_
