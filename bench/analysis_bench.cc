// Analysis: MB of UTF-8 a second through an Analyzer, and documents a second through a DocumentAnalyzer.
//   analysis_bench --benchmark_filter=Analyze
// Texts are seeded, of a Zipf-like vocabulary; the counter `tokens` shows that the work was done.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "ashlar/document.h"
#include "ashlar/schema.h"
#include "src/base/prng.h"
#include "src/text/analyzed_document.h"
#include "src/text/analyzer.h"

namespace ashlar::text {
namespace {

constexpr size_t kTextBytes = size_t{1} << 20;
constexpr size_t kValueBytes = 2000;

enum Script { kAscii, kAccented, kMixed, kCyrillic, kJapanese };

void AppendCodePoint(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

uint32_t LetterOf(Script script, Prng* prng) {
  const auto latin = static_cast<uint32_t>('a' + prng->Below(26));
  switch (script) {
    case kAscii:
      return latin;
    case kAccented:  // about one word in five has an accent, as in French
      return prng->OneIn(25) ? static_cast<uint32_t>(0xE0 + prng->Below(23)) : latin;
    case kCyrillic:
      return static_cast<uint32_t>(0x430 + prng->Below(32));
    default:
      return static_cast<uint32_t>(prng->OneIn(2) ? 0x3042 + prng->Below(80) : 0x4E00 + prng->Below(2000));
  }
}

std::string Word(Script script, Prng* prng) {
  if (script == kMixed) {
    const uint64_t kind = prng->Below(10);
    script = kind < 6 ? kAscii : kind < 8 ? kAccented : kind < 9 ? kCyrillic : kJapanese;
  }
  std::string word;
  for (uint64_t n = 2 + prng->Below(8); n > 0; --n) AppendCodePoint(LetterOf(script, prng), &word);
  if (script != kJapanese && prng->OneIn(10)) word[0] = static_cast<char>(word[0] & ~0x20);
  return word;
}

// Values of about kValueBytes, kTextBytes in all.
std::vector<std::string> MakeTexts(Script script) {
  Prng prng(42);
  std::vector<std::string> vocabulary;
  for (int i = 0; i < 20000; ++i) {
    std::string word = Word(script, &prng);
    // Changing the first byte of another script's letter would break it.
    if (script != kAscii && !IsValidUtf8(word)) word = "word";
    vocabulary.push_back(std::move(word));
  }
  std::vector<std::string> texts;
  size_t bytes = 0;
  while (bytes < kTextBytes) {
    std::string text;
    while (text.size() < kValueBytes) {
      const double u = prng.Uniform();
      text += vocabulary[static_cast<size_t>(std::pow(static_cast<double>(vocabulary.size()), u)) - 1];
      if (script == kJapanese) continue;
      if (prng.OneIn(8)) text += prng.OneIn(2) ? "," : ".";
      text += ' ';
    }
    bytes += text.size();
    texts.push_back(std::move(text));
  }
  return texts;
}

void Analyze(benchmark::State& state, Script script, const AnalyzerOptions& options) {
  const std::vector<std::string> texts = MakeTexts(script);
  absl::StatusOr<std::unique_ptr<Analyzer>> analyzer = Analyzer::Create(options);
  if (!analyzer.ok()) return state.SkipWithError(analyzer.status().ToString().c_str());
  TokenStream stream;
  size_t bytes = 0;
  size_t tokens = 0;
  for (auto _ : state) {
    tokens = 0;
    for (const std::string& text : texts) {
      stream.Clear();
      if (!(*analyzer)->Analyze(text, &stream).ok()) return state.SkipWithError("analysis failed");
      tokens += stream.tokens.size();
      bytes += text.size();
    }
    benchmark::DoNotOptimize(stream.tokens.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["tokens"] = static_cast<double>(tokens);
}

const AnalyzerOptions kPlain;
const AnalyzerOptions kNoMarks = {StopWords::kNone, "none", Marks::kRemove};
const AnalyzerOptions kEnglish = AnalyzerOptions::English();

BENCHMARK_CAPTURE(Analyze, ascii_plain, kAscii, kPlain);
BENCHMARK_CAPTURE(Analyze, ascii_english, kAscii, kEnglish);
BENCHMARK_CAPTURE(Analyze, accented_plain, kAccented, kPlain);
BENCHMARK_CAPTURE(Analyze, accented_marks_removed, kAccented, kNoMarks);
BENCHMARK_CAPTURE(Analyze, accented_english, kAccented, kEnglish);
BENCHMARK_CAPTURE(Analyze, mixed_plain, kMixed, kPlain);
BENCHMARK_CAPTURE(Analyze, cyrillic_plain, kCyrillic, kPlain);
BENCHMARK_CAPTURE(Analyze, japanese_plain, kJapanese, kPlain);

// One value of `range` kB of Japanese without a space: time a byte must not grow with it.
void AnalyzeOneLongLine(benchmark::State& state) {
  std::string line;
  const std::vector<std::string> texts = MakeTexts(kJapanese);
  while (line.size() < static_cast<size_t>(state.range(0)) * 1000) line += texts[line.size() % texts.size()];
  absl::StatusOr<std::unique_ptr<Analyzer>> analyzer = Analyzer::Create({});
  TokenStream stream;
  size_t bytes = 0;
  for (auto _ : state) {
    stream.Clear();
    if (!(*analyzer)->Analyze(line, &stream).ok()) return state.SkipWithError("analysis failed");
    bytes += line.size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(AnalyzeOneLongLine)->Arg(20)->Arg(80)->Arg(320);

// Validation, encoding and analysis of documents of 50 ASCII words and a key.
void AnalyzeDocument(benchmark::State& state, const AnalyzerOptions& options) {
  Schema schema;
  schema.key = "id";
  schema.fields.resize(2);
  schema.fields[0].name = "id";
  schema.fields[0].type = FieldType::kKeyword;
  schema.fields[1].name = "body";
  schema.fields[1].analyzer = options;
  absl::StatusOr<std::unique_ptr<DocumentAnalyzer>> analyzer = DocumentAnalyzer::Create(schema);
  if (!analyzer.ok()) return state.SkipWithError(analyzer.status().ToString().c_str());
  std::vector<Document> documents;
  for (const std::string& text : MakeTexts(kAscii)) {
    size_t end = 0;
    for (int words = 0; words < 50; ++words) end = text.find(' ', end) + 1;
    documents.emplace_back();
    documents.back().Add("id", std::to_string(documents.size())).Add("body", text.substr(0, end));
  }
  AnalyzedDocument out;
  size_t count = 0;
  for (auto _ : state) {
    for (const Document& document : documents) {
      if (!(*analyzer)->Analyze(document, &out).ok()) return state.SkipWithError("analysis failed");
      benchmark::DoNotOptimize(out.fields.data());
    }
    count += documents.size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(count));
}
BENCHMARK_CAPTURE(AnalyzeDocument, plain, kPlain);
BENCHMARK_CAPTURE(AnalyzeDocument, english, kEnglish);

void ValidateUtf8(benchmark::State& state, Script script) {
  const std::vector<std::string> texts = MakeTexts(script);
  size_t bytes = 0;
  for (auto _ : state) {
    bool valid = true;
    for (const std::string& text : texts) {
      valid &= IsValidUtf8(text);
      bytes += text.size();
    }
    benchmark::DoNotOptimize(valid);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK_CAPTURE(ValidateUtf8, ascii, kAscii);
BENCHMARK_CAPTURE(ValidateUtf8, accented, kAccented);
BENCHMARK_CAPTURE(ValidateUtf8, japanese, kJapanese);

}  // namespace
}  // namespace ashlar::text

BENCHMARK_MAIN();
