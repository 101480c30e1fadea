#include "src/overlay/posting_list.h"

#include <new>

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

const BlockNote& NoteOf(const TermEntry& term, uint32_t block) {
  const NoteChunk* chunk = term.notes;
  for (; block >= chunk->capacity; chunk = chunk->next) block -= chunk->capacity;
  return chunk->notes()[block];
}

void AppendNote(TermEntry* term, uint32_t block, const BlockNote& note, Arena* arena) {
  NoteChunk** link = &term->notes;
  uint32_t capacity = NoteChunk::kFirstCapacity;
  for (; *link != nullptr && block >= (*link)->capacity; capacity *= 2) {
    block -= (*link)->capacity;
    link = &(*link)->next;
  }
  if (*link == nullptr) {
    auto* chunk = new (arena->Allocate(sizeof(NoteChunk) + capacity * sizeof(BlockNote))) NoteChunk;
    chunk->capacity = capacity;
    *link = chunk;
  }
  new (&(*link)->notes()[block]) BlockNote(note);
}

void ReadPostings(const ListShape& shape, size_t n, ByteCursor* at, uint32_t* last, uint32_t* documents,
                  uint32_t* frequencies) {
  uint32_t document = *last;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t head = at->Varint();
    document += static_cast<uint32_t>(head >> 1);
    documents[i] = document;
    if ((head & 1) != 0) {
      frequencies[i] = 1;
      if (shape.has_payload()) at->Varint();
    } else {
      frequencies[i] = static_cast<uint32_t>(at->Varint());
      if (shape.has_payload()) at->Skip(at->Varint());
    }
  }
  *last = document;
}

}  // namespace ashlar::overlay
