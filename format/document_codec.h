// A document as bytes (SPEC D-*): field numbers and values, in ascending field number, values of a field in put order.
// The journal, the overlay and the stored-documents section all hold this form.
#ifndef ASHLAR_FORMAT_DOCUMENT_CODEC_H_
#define ASHLAR_FORMAT_DOCUMENT_CODEC_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "src/base/bytes.h"

namespace ashlar::format {

// One value as it lies in an encoded document. `bytes` points into it.
struct ValueView {
  uint32_t field = 0;
  FieldType type = FieldType::kText;
  std::string_view bytes;  // text, keyword, bytes
  int64_t integer = 0;     // int64, date (milliseconds)
  double real = 0;         // double
};

// Appends one value. Values must come in ascending field number.
// Encoding: varint(field), u8 type, then: text/keyword/bytes = varint length + bytes; int64/date = u64; double = u64 bits.
void AppendValue(const ValueView& value, ByteBuffer* out);

// Calls `visit` for each value in order. DataLoss-free: returns false if the bytes are not a well-formed document.
bool VisitValues(ByteSpan encoded, const std::function<void(const ValueView&)>& visit);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_DOCUMENT_CODEC_H_
