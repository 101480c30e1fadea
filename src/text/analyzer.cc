#include "src/text/analyzer.h"

#include <cstring>
#include <limits>
#include <utility>

#include "src/base/status.h"
#include "src/text/ascii_words.h"
#include "src/text/folder.h"
#include "src/text/letters.h"
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
      : stop_(options.stop == StopWords::kEnglish33),
        marks_(options.marks),
        stemmer_(std::move(stemmer)),
        folder_(options.marks) {}

  absl::Status Analyze(std::string_view utf8, TokenStream* out) override {
    if (utf8.size() > kValueBytesMax) return InvalidArgument("a text value over 1 GiB");
    position_ = out->next_position;
    // Every word has a byte at least, so no position can wrap.
    if (position_ + uint64_t{kPositionGap} + utf8.size() > kStreamMax)
      return ResourceExhausted("a field of a document with over 4 billion word places");
    ASHLAR_RETURN_IF_ERROR(AppendValue(utf8, out));
    out->next_position = static_cast<uint32_t>(position_ + kPositionGap);
    return absl::OkStatus();
  }

 private:
  absl::Status AppendValue(std::string_view utf8, TokenStream* out) {
    if (AsciiPrefix(utf8) < utf8.size()) return AppendStretches(utf8, out);
    std::string* const folded = FoldedText(out);
    if (folded->size() + utf8.size() > kStreamMax) return TooLong();
    const size_t base = folded->size();
    folded->append(utf8);
    FoldAscii(folded->data() + base, utf8.size());
    return AppendFoldedWords(base, out);
  }

  // Where text is folded as a whole: in the stream, so that its words are terms without a copy, or aside when stems
  // take their place.
  std::string* FoldedText(TokenStream* out) {
    if (stemmer_ == nullptr) return &out->bytes;
    folded_text_.clear();
    return &folded_text_;
  }

  // Cuts a value into stretches of simple characters, for the fast path, and the rest, for ICU. A cut is made only
  // between a space and a simple character that is none. That is safe: UAX #29 breaks there whatever stands beyond
  // (nothing joins a space but a space and marks, and marks are not simple), and what follows a boundary does not
  // depend on what comes before it. tests/text/words_test.cc compares it with ICU on the whole value.
  absl::Status AppendStretches(std::string_view utf8, TokenStream* out) {
    if (simple_ == nullptr) simple_ = &SimpleCharacters::Of(marks_);
    size_t begin = 0;  // of what is not handled yet, which starts at a boundary
    size_t run = 0;
    while (run < utf8.size()) {
      const size_t run_end = simple_->RunEnd(utf8, run);
      const Stretch stretch = TrimToSpaces(utf8, run, run_end);
      if (stretch.begin < stretch.end) {
        if (begin < stretch.begin) {
          ASHLAR_RETURN_IF_ERROR(AppendOther(utf8.substr(begin, stretch.begin - begin), out));
        }
        ASHLAR_RETURN_IF_ERROR(AppendSimple(utf8.substr(stretch.begin, stretch.end - stretch.begin), out));
        begin = stretch.end;
      }
      run = NextCharacter(utf8, run_end);
    }
    return begin < utf8.size() ? AppendOther(utf8.substr(begin), out) : absl::OkStatus();
  }

  struct Stretch {
    size_t begin;
    size_t end;
  };

  // The part of a run of simple characters that begins and ends at the text's ends or beside spaces.
  static Stretch TrimToSpaces(std::string_view utf8, size_t run, size_t run_end) {
    Stretch s{run, run_end};
    if (run > 0) {
      while (s.begin < s.end && utf8[s.begin] != ' ') ++s.begin;
      while (s.begin < s.end && utf8[s.begin] == ' ') ++s.begin;
    }
    if (run_end < utf8.size()) {
      while (s.end > s.begin && utf8[s.end - 1] != ' ') --s.end;
      while (s.end > s.begin && utf8[s.end - 1] == ' ') --s.end;
    }
    return s;
  }

  absl::Status AppendSimple(std::string_view stretch, TokenStream* out) {
    std::string* const folded = FoldedText(out);
    // Folding makes at most three bytes of one.
    if (folded->size() + 3 * stretch.size() > kStreamMax) return TooLong();
    const size_t base = folded->size();
    simple_->AppendFolded(stretch, folded);
    return AppendFoldedWords(base, out);
  }

  // Makes tokens of the words of FoldedText() from `base` on.
  absl::Status AppendFoldedWords(size_t base, TokenStream* out) {
    if (stemmer_ != nullptr) return AppendStems(out);
    const std::string_view folded = std::string_view(out->bytes).substr(base);
    ForEachWord(folded, [&](size_t begin, size_t end) {
      const uint64_t position = position_++;
      const std::string_view term = TermOf(folded.substr(begin, end - begin), out);
      if (stop_ && IsEnglishStopWord(term)) return;
      Push(base + begin, term.size(), position, out);
    });
    return absl::OkStatus();
  }

  absl::Status AppendStems(TokenStream* out) {
    absl::Status status;
    const std::string_view folded = folded_text_;
    ForEachWord(folded, [&](size_t begin, size_t end) {
      const uint64_t position = position_++;
      if (status.ok()) status = AppendTerm(TermOf(folded.substr(begin, end - begin), out), position, out);
    });
    return status;
  }

  // A folded word without a final 's (or with U+2019 for the apostrophe): "kennedy's" is about "kennedy".
  static std::string_view WithoutPossessive(std::string_view word) {
    for (const std::string_view ending : {std::string_view("'s"), std::string_view("\xE2\x80\x99s")})
      if (word.size() > ending.size() && word.ends_with(ending)) return word.substr(0, word.size() - ending.size());
    return word;
  }

  // The possessive and the token rule of analyzer.h.
  static std::string_view TermOf(std::string_view word, TokenStream* out) {
    const std::string_view term = WithoutPossessive(word);
    if (term.size() <= kTermBytesMax) return term;
    ++out->tokens_cut;
    return term.substr(0, CutToCharacter(term, kTermBytesMax));
  }

  // Appends a folded and cut word that does not lie in the stream, or its stem.
  absl::Status AppendTerm(std::string_view term, uint64_t position, TokenStream* out) {
    if (term.empty() || (stop_ && IsEnglishStopWord(term))) return absl::OkStatus();
    if (stemmer_ != nullptr) {
      if (!stemmer_->Stem(term, &term)) return ResourceExhausted("no memory to stem a word");
      term = term.substr(0, CutToCharacter(term, kTermBytesMax));
    }
    if (out->bytes.size() + term.size() > kStreamMax) return TooLong();
    const size_t offset = out->bytes.size();
    out->bytes.append(term);
    Push(offset, term.size(), position, out);
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
    return AppendTerm(TermOf(folded_, out), position, out);
  }

  static void Push(size_t offset, size_t length, uint64_t position, TokenStream* out) {
    out->tokens.push_back(
        {static_cast<uint32_t>(offset), static_cast<uint16_t>(length), static_cast<uint32_t>(position)});
  }

  static absl::Status TooLong() { return ResourceExhausted("a field of a document with over 4 GiB of terms"); }

  const bool stop_;
  const Marks marks_;
  const SimpleCharacters* simple_ = nullptr;  // the process's; found at the first value that is not ASCII
  const std::unique_ptr<Stemmer> stemmer_;
  Folder folder_;
  IcuWords icu_words_;
  uint64_t position_ = 0;
  std::vector<WordRange> words_;
  std::string folded_;       // of one word
  std::string folded_text_;  // of a stretch
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
