#include "src/text/analyzer.h"

#include <cstring>
#include <limits>
#include <utility>

#include "src/base/status.h"
#include "src/text/ascii_words.h"
#include "src/text/folder.h"
#include "src/text/stemmer.h"
#include "src/text/stop_words.h"
#include "src/text/utf8.h"
#include "src/text/words.h"

namespace ashlar::text {
namespace {

constexpr uint64_t kStreamMax = std::numeric_limits<uint32_t>::max();

class WordAnalyzer final : public Analyzer {
 public:
  WordAnalyzer(const AnalyzerOptions& options, std::unique_ptr<Stemmer> stemmer)
      : stop_(options.stop == StopWords::kEnglish33), stemmer_(std::move(stemmer)), folder_(options.marks) {}

  absl::Status Analyze(std::string_view utf8, TokenStream* out) override {
    if (utf8.size() > kValueBytesMax) return InvalidArgument("a text value over 1 GiB");
    position_ = out->next_position;
    // Every word has a byte at least, so no position can wrap.
    if (position_ + uint64_t{kPositionGap} + utf8.size() > kStreamMax)
      return ResourceExhausted("a field of a document with over 4 billion word places");
    ASHLAR_RETURN_IF_ERROR(AppendStretches(utf8, out));
    out->next_position = static_cast<uint32_t>(position_ + kPositionGap);
    return absl::OkStatus();
  }

 private:
  // Cuts a value into stretches of ASCII, for the fast path, and the rest, for ICU. A cut is made only next to an ASCII
  // space whose other neighbour is ASCII and no space. That is safe: UAX #29 breaks on both sides of such a space whatever
  // stands beyond (nothing joins a space but a space and marks, and marks are not ASCII), and what follows a boundary
  // does not depend on what comes before it. tests/text/words_test.cc compares it with ICU on the whole value.
  absl::Status AppendStretches(std::string_view utf8, TokenStream* out) {
    size_t begin = 0;  // of what is not handled yet, which starts at a boundary
    size_t search = 0;
    while (begin < utf8.size()) {
      const AsciiStretch ascii = NextAsciiStretch(utf8, search);
      search = ascii.next_search;
      const bool last = search >= utf8.size();
      if (ascii.begin < ascii.end) {
        if (begin < ascii.begin) ASHLAR_RETURN_IF_ERROR(AppendOther(utf8.substr(begin, ascii.begin - begin), out));
        ASHLAR_RETURN_IF_ERROR(AppendAscii(utf8.substr(ascii.begin, ascii.end - ascii.begin), out));
        begin = ascii.end;
      }
      if (last) break;
    }
    return begin < utf8.size() ? AppendOther(utf8.substr(begin), out) : absl::OkStatus();
  }

  absl::Status AppendAscii(std::string_view ascii, TokenStream* out) {
    if (out->bytes.size() + ascii.size() > kStreamMax) return TooLong();
    // The whole stretch is folded at once and the terms lie in it: no copy for each.
    const size_t base = out->bytes.size();
    out->bytes.append(ascii);
    FoldAscii(out->bytes.data() + base, ascii.size());
    absl::Status status;
    ForEachWord(ascii, [&](size_t begin, size_t end) {
      const uint64_t position = position_++;
      size_t length = end - begin;
      if (length > kTermBytesMax) {
        length = kTermBytesMax;
        ++out->tokens_cut;
      }
      const size_t offset = base + begin;
      const std::string_view term(out->bytes.data() + offset, length);
      if (stop_ && IsEnglishStopWord(term)) return;
      if (stemmer_ != nullptr) {
        if (absl::Status s = AppendStem(term, offset, position, out); !s.ok()) status = std::move(s);
        return;
      }
      Push(offset, length, position, out);
    });
    return status;
  }

  // Overwrites the word in the stream by its stem where it fits, which it nearly always does.
  absl::Status AppendStem(std::string_view word, size_t offset, uint64_t position, TokenStream* out) {
    absl::StatusOr<std::string_view> stem = stemmer_->Stem(word);
    if (!stem.ok()) return std::move(stem).status();
    const size_t length = CutToCharacter(*stem, kTermBytesMax);
    if (length <= word.size()) {
      std::memmove(out->bytes.data() + offset, stem->data(), length);
      Push(offset, length, position, out);
      return absl::OkStatus();
    }
    if (out->bytes.size() + length > kStreamMax) return TooLong();
    const size_t end = out->bytes.size();
    out->bytes.append(stem->data(), length);
    Push(end, length, position, out);
    return absl::OkStatus();
  }

  absl::Status AppendOther(std::string_view utf8, TokenStream* out) {
    ASHLAR_RETURN_IF_ERROR(icu_words_.Find(utf8, &words_));
    for (const WordRange& word : words_)
      ASHLAR_RETURN_IF_ERROR(AppendWord(utf8.substr(word.begin, word.end - word.begin), out));
    return absl::OkStatus();
  }

  absl::Status AppendWord(std::string_view word, TokenStream* out) {
    const uint64_t position = position_++;
    if (AsciiPrefix(word) == word.size()) {
      folded_.assign(word);
      FoldAscii(folded_.data(), folded_.size());
    } else {
      ASHLAR_RETURN_IF_ERROR(folder_.Fold(word, &folded_));
    }
    if (folded_.size() > kTermBytesMax) {
      folded_.resize(CutToCharacter(folded_, kTermBytesMax));
      ++out->tokens_cut;
    }
    if (folded_.empty() || (stop_ && IsEnglishStopWord(folded_))) return absl::OkStatus();
    if (out->bytes.size() + folded_.size() > kStreamMax) return TooLong();
    const size_t offset = out->bytes.size();
    out->bytes.append(folded_);
    if (stemmer_ != nullptr)
      return AppendStem({out->bytes.data() + offset, folded_.size()}, offset, position, out);
    Push(offset, folded_.size(), position, out);
    return absl::OkStatus();
  }

  static void Push(size_t offset, size_t length, uint64_t position, TokenStream* out) {
    out->tokens.push_back({static_cast<uint32_t>(offset), static_cast<uint16_t>(length),
                           static_cast<uint32_t>(position)});
  }

  static absl::Status TooLong() { return ResourceExhausted("a field of a document with over 4 GiB of terms"); }

  const bool stop_;
  const std::unique_ptr<Stemmer> stemmer_;
  Folder folder_;
  IcuWords icu_words_;
  uint64_t position_ = 0;
  std::vector<WordRange> words_;
  std::string folded_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Analyzer>> Analyzer::Create(const AnalyzerOptions& options) {
  std::unique_ptr<Stemmer> stemmer;
  if (options.stem != "none") {
    ASHLAR_ASSIGN_OR_RETURN(stemmer, Stemmer::Create(options.stem));
  }
  return std::unique_ptr<Analyzer>(std::make_unique<WordAnalyzer>(options, std::move(stemmer)));
}

}  // namespace ashlar::text
