#include "format/document_codec.h"

#include <bit>

namespace ashlar::format {
namespace {

constexpr uint64_t kFieldNumberMax = kFieldsMax - 1;

// Reads a varint and holds SPEC D-2: only the shortest form is valid.
bool ReadShortest(ByteReader* in, uint64_t* value) {
  const size_t begin = in->position();
  *value = in->Varint();
  if (!in->ok()) return false;
  const size_t used = in->position() - begin;
  const auto bits = static_cast<size_t>(std::bit_width(*value | 1));
  return used == (bits + 6) / 7;
}

bool ReadPayload(ByteReader* in, ValueView* value) {
  switch (value->type) {
    case FieldType::kText:
    case FieldType::kKeyword:
    case FieldType::kBytes: {
      uint64_t size = 0;
      if (!ReadShortest(in, &size)) return false;
      value->bytes = AsString(in->Span(size));
      return in->ok();
    }
    case FieldType::kInt64:
    case FieldType::kDate:
      value->integer = static_cast<int64_t>(in->U64());
      return in->ok();
    case FieldType::kDouble:
      value->real = in->F64();
      return in->ok();
  }
  return false;
}

}  // namespace

void AppendValue(const ValueView& value, ByteBuffer* out) {
  ByteWriter writer(out);
  writer.Varint(value.field);
  writer.U8(static_cast<uint8_t>(value.type));
  switch (value.type) {
    case FieldType::kText:
    case FieldType::kKeyword:
    case FieldType::kBytes:
      writer.Sized(value.bytes);
      break;
    case FieldType::kInt64:
    case FieldType::kDate:
      writer.U64(static_cast<uint64_t>(value.integer));
      break;
    case FieldType::kDouble:
      writer.F64(value.real);
      break;
  }
}

bool VisitValues(ByteSpan encoded, const std::function<void(const ValueView&)>& visit) {
  ByteReader in(encoded);
  uint64_t last_field = 0;
  while (in.left() > 0) {
    ValueView value;
    uint64_t field = 0;
    if (!ReadShortest(&in, &field) || field > kFieldNumberMax || field < last_field) return false;
    last_field = field;
    value.field = static_cast<uint32_t>(field);
    value.type = static_cast<FieldType>(in.U8());
    if (!ReadPayload(&in, &value)) return false;
    visit(value);
  }
  return in.ok();
}

}  // namespace ashlar::format
