// Journal files as bytes (SPEC J-*): header, records, seal, end marker, and the operations inside a record.
// The framing functions are declared here by the journal's owner; the operations below are shared with the engine.
#ifndef ASHLAR_FORMAT_JOURNAL_RECORD_H_
#define ASHLAR_FORMAT_JOURNAL_RECORD_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "ashlar/document.h"
#include "src/base/bytes.h"

namespace ashlar::format {

enum class OperationKind : uint8_t { kPut = 1, kDelete = 2, kDeleteId = 3 };

struct OperationView {
  OperationKind kind = OperationKind::kPut;
  ByteSpan document;     // kPut: encoded document
  std::string_view key;  // kDelete
  DocumentId id = 0;     // kDeleteId
};

void AppendOperation(const OperationView& operation, ByteBuffer* out);
// False if the bytes are not a well-formed list of operations; stops when `visit` returns false (and returns true).
bool VisitOperations(ByteSpan bytes, const std::function<bool(const OperationView&)>& visit);

}  // namespace ashlar::format

#endif  // ASHLAR_FORMAT_JOURNAL_RECORD_H_
