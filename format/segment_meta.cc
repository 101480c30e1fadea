#include "format/segment_meta.h"

#include <algorithm>
#include <utility>

#include "format/schema_codec.h"

namespace ashlar::format {
namespace {

// An index for the group and each field.
bool CountFits(uint64_t count, const Schema& schema) { return count <= schema.fields.size() + 1; }

bool IsIndexOf(IndexId index, const Schema& schema) { return index == kGroupIndex || index < schema.fields.size(); }

// Reads a list of at most one entry an index, ascending by index.
template <class Entry, class ReadEntry>
bool ReadSummaries(ByteReader* in, const Schema& schema, std::vector<Entry>* out, const ReadEntry& read) {
  const uint64_t count = in->Varint();
  if (!CountFits(count, schema)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    Entry e;
    e.index = in->U32();
    read(in, &e);
    if (!in->ok() || !IsIndexOf(e.index, schema) || (!out->empty() && out->back().index >= e.index)) return false;
    out->push_back(e);
  }
  return true;
}

}  // namespace

ByteBuffer EncodeSegmentMeta(const SegmentMeta& m) {
  ByteBuffer out;
  out.reserve(512);  // about; also spares g++ 12 a false warning about the first append
  ByteWriter w(&out);
  w.U64(m.number);
  w.U64(m.generation);
  w.U32(m.documents);
  w.U64(m.first_id);
  w.U64(m.last_id);
  w.U32(m.schema_number);
  ByteBuffer schema;
  EncodeSchema(m.schema, &schema);
  w.Sized(AsString(schema));
  w.Sized(m.analyzer_identity);
  w.U32(m.largest_field);
  w.Varint(m.indexes.size());
  for (const IndexSummary& s : m.indexes) {
    w.U32(s.index);
    w.Varint(s.terms);
    w.Varint(s.postings);
  }
  w.Varint(m.lengths.size());
  for (const LengthSummary& s : m.lengths) {
    w.U32(s.index);
    w.Varint(s.sum);
  }
  return out;
}

std::optional<SegmentMeta> DecodeSegmentMeta(ByteSpan bytes) {
  ByteReader in(bytes);
  SegmentMeta m;
  m.number = in.U64();
  m.generation = in.U64();
  m.documents = in.U32();
  m.first_id = in.U64();
  m.last_id = in.U64();
  m.schema_number = in.U32();
  std::optional<Schema> schema = DecodeSchema(AsBytes(in.Sized()));
  if (!in.ok() || !schema.has_value()) return std::nullopt;
  m.schema = *std::move(schema);
  m.analyzer_identity = in.Sized();
  m.largest_field = in.U32();
  if (!ReadSummaries(&in, m.schema, &m.indexes, [](ByteReader* r, IndexSummary* s) {
        s->terms = r->Varint();
        s->postings = r->Varint();
      }))
    return std::nullopt;
  if (!ReadSummaries(&in, m.schema, &m.lengths, [](ByteReader* r, LengthSummary* s) { s->sum = r->Varint(); }))
    return std::nullopt;
  if (!in.done()) return std::nullopt;
  if (m.documents == 0 || m.documents == kNoDocument || m.first_id == 0 || m.last_id < m.first_id)
    return std::nullopt;
  if (m.last_id - m.first_id < m.documents - 1) return std::nullopt;
  if (m.schema.default_group.empty() != (m.largest_field == kNoField)) return std::nullopt;
  if (m.largest_field != kNoField && m.largest_field >= m.schema.fields.size()) return std::nullopt;
  return m;
}

}  // namespace ashlar::format
