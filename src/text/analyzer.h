// Analyzer: text to terms. UAX #29 words (ICU; the choices inside it stand in words.h), NFKC case folding, then by
// option marks removed, stop words removed (their position is kept), Snowball stems. The text is cut into words first
// and each word is folded. A word that folds to nothing gives no term and keeps its position.
//
// A final 's of a word (also with U+2019) is no part of the term, in every analyzer: who searches for kennedy wants
// "Kennedy's", too (docs/adr/0004).
//
// Two ways lead to the same terms: a fast one for ASCII and simple letters (ascii_words.h, letters.h), and ICU for the
// rest of a value. tests/text/words_test.cc compares them.
//
// The token limit (documented rule): a term longer than kTermBytesMax bytes of UTF-8 after folding and before stemming
// is cut at the last character boundary (code point) within the limit, counted, and keeps its one position.
#ifndef ASHLAR_SRC_TEXT_ANALYZER_H_
#define ASHLAR_SRC_TEXT_ANALYZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/schema.h"

namespace ashlar::text {

inline constexpr size_t kTermBytesMax = 255;
// Between two values of one field, so that no phrase crosses from one into the next.
inline constexpr uint32_t kPositionGap = 100;

// One occurrence of a term. The bytes lie in TokenStream::bytes.
struct Token {
  uint32_t offset = 0;    // in TokenStream::bytes
  uint16_t length = 0;    // bytes, 1 to kTermBytesMax
  uint32_t position = 0;  // word place in the field, from 0; stop words and gaps count
  std::string_view term(const std::string& bytes) const { return {bytes.data() + offset, length}; }
};

// The tokens of one field of one document. Reused between documents to save allocations.
struct TokenStream {
  std::string bytes;
  std::vector<Token> tokens;
  uint32_t next_position = 0;  // where the next value of this field begins (the gap included)
  uint64_t tokens_cut = 0;     // tokens over the byte limit
  void Clear() {
    bytes.clear();
    tokens.clear();
    next_position = 0;
    tokens_cut = 0;
  }
};

// Owns ICU and Snowball objects; not thread safe: one per thread (see AnalyzerPool of the engine). Same text, same
// options, same identity: same tokens.
class Analyzer {
 public:
  // InvalidArgument for an unknown stemmer.
  static absl::StatusOr<std::unique_ptr<Analyzer>> Create(const AnalyzerOptions& options);
  virtual ~Analyzer() = default;

  // Appends the tokens of one value to `out` and advances out->next_position past it and the gap. `utf8` must be valid
  // UTF-8 (see IsValidUtf8); NUL bytes are ordinary non-word characters. Linear in the value, no allocation a token.
  // InvalidArgument: a value over 1 GiB. ResourceExhausted: over 4 GiB of terms or 2^32 places. Internal: ICU has no data.
  virtual absl::Status Analyze(std::string_view utf8, TokenStream* out) = 0;
};

// True iff the bytes are well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
bool IsValidUtf8(std::string_view bytes);
// The length of the longest well-formed prefix: where the first ill-formed sequence begins, or bytes.size().
size_t FirstInvalidUtf8(std::string_view bytes);

// Names what terms depend on: "ashlar-1 unicode-15.0 icu-72.1 snowball-2.2.0". Stored in the catalog, in every segment
// and journal header.
std::string AnalyzerIdentity();

// Names that Field::analyzer.stem accepts, "none" first.
std::vector<std::string> StemmerNames();

}  // namespace ashlar::text

#endif  // ASHLAR_SRC_TEXT_ANALYZER_H_
