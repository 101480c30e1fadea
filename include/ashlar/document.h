// Document and WriteBatch: what goes into a store.
#ifndef ASHLAR_DOCUMENT_H_
#define ASHLAR_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ashlar {

// A document's identity: the sequence number of its last put. Never reused; 0 is no document.
using DocumentId = uint64_t;
// Numbers operations in the order in which they were written; the first is 1.
using Sequence = uint64_t;

// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
struct Date {
  int64_t milliseconds = 0;
  bool operator==(const Date&) const = default;
};

struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

// string: text and keyword fields (valid UTF-8); Blob: bytes fields. An int64 given to a double field is converted
// when that is exact.
using Value = std::variant<std::string, int64_t, double, Date, Blob>;

struct FieldValue {
  std::string field;
  Value value;
  bool operator==(const FieldValue&) const = default;
};

// A list of (field, value); a field may occur several times. What a store gives back is in field order, the values
// of a field in the order in which they were put. Owns its values. Not thread safe.
struct Document {
  std::vector<FieldValue> values;
  bool operator==(const Document&) const = default;

  Document& Add(std::string field, Value value) {
    values.push_back({std::move(field), std::move(value)});
    return *this;
  }
  // The first value of a field, or nullptr.
  const Value* Find(std::string_view field) const {
    for (const FieldValue& v : values)
      if (v.field == field) return &v.value;
    return nullptr;
  }
};

// Operations that become visible and durable together or not at all. Each operation takes one sequence number, in
// order, the superseded ones too. The last operation on a key in a batch wins. One thread at a time.
class WriteBatch {
 public:
  enum class Kind : uint8_t { kInsert, kPut, kPutIf, kDelete, kDeleteId };
  struct Operation {
    Kind kind;
    Document document;        // kInsert, kPut, kPutIf
    std::string key;          // kDelete
    DocumentId expected = 0;  // kPutIf: the version that must be there, 0 = none; kDeleteId: the document
  };

  // Fails the whole batch with AlreadyExists if the key has a live document (or one earlier in this batch).
  void Insert(Document document) { operations_.push_back({Kind::kInsert, std::move(document), {}, 0}); }
  // Replaces the live document of the same key, if there is one. A store without a key field always adds.
  void Put(Document document) { operations_.push_back({Kind::kPut, std::move(document), {}, 0}); }
  // Fails the whole batch with FailedPrecondition unless the key's live document is `expected` (0: there is none).
  void PutIf(Document document, DocumentId expected) {
    operations_.push_back({Kind::kPutIf, std::move(document), {}, expected});
  }
  // Deletes by key; a key that is not there is no error.
  void Delete(std::string key) { operations_.push_back({Kind::kDelete, {}, std::move(key), 0}); }
  // Deletes one document by its id, for stores without keys.
  void DeleteId(DocumentId id) { operations_.push_back({Kind::kDeleteId, {}, {}, id}); }

  bool empty() const { return operations_.empty(); }
  size_t size() const { return operations_.size(); }
  void Clear() { operations_.clear(); }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::vector<Operation> operations_;
};

}  // namespace ashlar

#endif  // ASHLAR_DOCUMENT_H_
