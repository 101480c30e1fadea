#include "src/overlay/posting_list.h"

namespace ashlar::overlay {
namespace {

void AddChunk(TermEntry* term, Arena* arena) {
  const int level = std::min(term->level + 1, kLastLevel);
  const size_t bytes = ChunkBytes(level);
  std::byte* chunk = arena->Allocate(bytes + sizeof(std::byte*));
  std::memcpy(term->tail, &chunk, sizeof chunk);
  term->tail = chunk;
  term->tail_left = static_cast<uint16_t>(bytes);
  term->level = static_cast<uint8_t>(level);
}

}  // namespace

void AppendBytes(TermEntry* term, const std::byte* bytes, size_t count, Arena* arena) {
  while (count > term->tail_left) {
    const size_t part = term->tail_left;
    std::memcpy(term->tail, bytes, part);
    term->tail += part;
    bytes += part;
    count -= part;
    AddChunk(term, arena);
  }
  std::memcpy(term->tail, bytes, count);
  term->tail += count;
  term->tail_left = static_cast<uint16_t>(term->tail_left - count);
}

}  // namespace ashlar::overlay
