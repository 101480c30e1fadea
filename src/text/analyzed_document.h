// A document, validated and analysed: the first step of a write, done without any shared state.
#ifndef ASHLAR_SRC_TEXT_ANALYZED_DOCUMENT_H_
#define ASHLAR_SRC_TEXT_ANALYZED_DOCUMENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "src/base/bytes.h"
#include "src/text/analyzer.h"

namespace ashlar::text {

// The terms of one searchable field (text or keyword; the key field has none).
struct FieldTokens {
  uint32_t field = 0;
  TokenStream stream;
  // The field's length, as scores use it.
  uint32_t length() const { return static_cast<uint32_t>(stream.tokens.size()); }
};

struct AnalyzedDocument {
  std::string key;                  // empty: the schema has no key
  ByteBuffer encoded;               // all values (format/document_codec.h), the key's too
  // Ascending field number; the first `field_count` are in use (streams are recycled). A field without terms (an empty
  // value, stop words only) is left out, as if it were missing.
  std::vector<FieldTokens> fields;
  size_t field_count = 0;
  uint64_t tokens_cut = 0;
};

// Validates documents against one schema and analyses them. Not thread safe: one per thread.
// A keyword value is one term, as it stands (not folded), cut by the token rule if it is too long; its position is its
// index among the values. An empty keyword has a position and no term.
// After an error the content of `out` is unspecified; it can be used again.
class DocumentAnalyzer {
 public:
  static absl::StatusOr<std::unique_ptr<DocumentAnalyzer>> Create(const Schema& schema);

  // InvalidArgument naming the field (and the byte offset for bad UTF-8): unknown field, a value of the wrong type,
  // invalid UTF-8, NaN or infinite double, no key or two keys, a key that is empty or over 1,024 bytes, a document
  // without values.
  absl::Status Analyze(const Document& document, AnalyzedDocument* out);
  // The same, with the identical result, from an encoded document: replay of the journal. `encoded` may be out->encoded.
  absl::Status AnalyzeEncoded(ByteSpan encoded, AnalyzedDocument* out);
  // The terms of a query's words for one field; replaces what is in `out`. InvalidArgument: bad UTF-8, the key field, a
  // field that is neither text nor keyword.
  absl::Status AnalyzeText(uint32_t field, std::string_view utf8, TokenStream* out);

  ~DocumentAnalyzer();

 private:
  struct Impl;
  explicit DocumentAnalyzer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns an encoded document back into a Document of the schema's field names. DataLoss-free: false if malformed.
bool DecodeDocument(const Schema& schema, ByteSpan encoded, Document* out);

inline constexpr size_t kKeyBytesMax = 1024;

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_ANALYZED_DOCUMENT_H_
