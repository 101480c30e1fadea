#include "format/schema_codec.h"

#include <algorithm>
#include <string>

namespace ashlar::format {
namespace {

constexpr uint8_t kStored = 1;
constexpr uint8_t kPositions = 2;
constexpr uint8_t kColumn = 4;

bool ReadName(ByteReader* in, size_t bytes_max, std::string* out) {
  const std::string_view name = in->Sized();
  if (!in->ok() || name.size() > bytes_max) return false;
  out->assign(name);
  return true;
}

bool ReadField(ByteReader* in, Field* field) {
  if (!ReadName(in, kFieldNameBytesMax, &field->name) || field->name.empty()) return false;
  const uint8_t type = in->U8();
  const uint8_t flags = in->U8();
  const uint8_t stop = in->U8();
  const uint8_t marks = in->U8();
  if (!in->ok() || type < static_cast<uint8_t>(FieldType::kText) || type > static_cast<uint8_t>(FieldType::kBytes) ||
      flags > (kStored | kPositions | kColumn) || stop > static_cast<uint8_t>(StopWords::kEnglish33) ||
      marks > static_cast<uint8_t>(Marks::kRemove))
    return false;
  field->type = static_cast<FieldType>(type);
  field->stored = (flags & kStored) != 0;
  field->positions = (flags & kPositions) != 0;
  field->column = (flags & kColumn) != 0;
  field->analyzer.stop = static_cast<StopWords>(stop);
  field->analyzer.marks = static_cast<Marks>(marks);
  return ReadName(in, kStemNameBytesMax, &field->analyzer.stem);
}

}  // namespace

void EncodeSchema(const Schema& schema, ByteBuffer* out) {
  ByteWriter w(out);
  w.Varint(schema.fields.size());
  for (const Field& field : schema.fields) {
    w.Sized(field.name);
    w.U8(static_cast<uint8_t>(field.type));
    w.U8(static_cast<uint8_t>((field.stored ? kStored : 0) | (field.positions ? kPositions : 0) |
                              (field.column ? kColumn : 0)));
    w.U8(static_cast<uint8_t>(field.analyzer.stop));
    w.U8(static_cast<uint8_t>(field.analyzer.marks));
    w.Sized(field.analyzer.stem);
  }
  w.Sized(schema.key);
  w.Varint(schema.default_group.size());
  for (const std::string& name : schema.default_group) w.Sized(name);
}

std::optional<Schema> DecodeSchema(ByteSpan bytes) {
  if (bytes.size() > kSchemaBytesMax) return std::nullopt;
  ByteReader in(bytes);
  Schema schema;
  const uint64_t field_count = in.Varint();
  if (field_count > kFieldsMax) return std::nullopt;
  schema.fields.resize(field_count);
  for (Field& field : schema.fields)
    if (!ReadField(&in, &field)) return std::nullopt;
  if (!ReadName(&in, kFieldNameBytesMax, &schema.key)) return std::nullopt;
  const uint64_t group_count = in.Varint();
  if (group_count > field_count) return std::nullopt;
  schema.default_group.resize(group_count);
  for (std::string& name : schema.default_group)
    if (!ReadName(&in, kFieldNameBytesMax, &name) || name.empty()) return std::nullopt;
  if (!in.done()) return std::nullopt;
  // A varint has several spellings; only the shortest one is a schema's, so that bytes and values map one to one.
  ByteBuffer again;
  again.reserve(bytes.size());
  EncodeSchema(schema, &again);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) return std::nullopt;
  return schema;
}

}  // namespace ashlar::format
