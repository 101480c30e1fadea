// Codecs and the inverted index: packing, streams, writing an index, walking and seeking its lists, looking up terms.
//
// The corpus is the zipf one (30,000 terms w<rank>x, exponent 1.07, 50 words a document), drawn as bench.md says. Counters: bytes
// per posting of the index without and with positions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "format/packed_stream.h"
#include "src/base/checksum.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/segment/index_reader.h"
#include "src/segment/index_writer.h"

namespace ashlar {
namespace {

constexpr uint32_t kVocabulary = 30'000;
constexpr uint32_t kWords = 50;

// Inverted: for each rank, its occurrences in order of document and position.
struct Corpus {
  uint32_t documents = 0;
  uint64_t postings = 0;
  std::vector<uint32_t> lengths;
  std::vector<uint32_t> of_document;  // occurrences, by rank
  std::vector<uint16_t> position;
  std::vector<uint64_t> begin;        // by rank; one more
  std::vector<uint32_t> by_term;      // ranks in ascending order of their terms' bytes
};

std::string Term(uint32_t rank) {
  std::string term = "w";
  term += std::to_string(rank + 1);
  term += 'x';
  return term;
}

uint32_t DrawLength(bool variable, Prng* prng) {
  if (!variable) return kWords;
  const double u1 = prng->Uniform(), u2 = prng->Uniform();
  const double z = std::sqrt(-2.0 * std::log(1.0 - u1)) * std::cos(6.283185307179586477 * u2);
  return static_cast<uint32_t>(std::min(2000.0, std::max(5.0, std::floor(kWords * std::exp(0.8 * z) + 0.5))));
}

std::unique_ptr<Corpus> MakeCorpus(uint32_t documents, bool variable) {
  std::vector<double> cdf(kVocabulary);
  double sum = 0;
  for (uint32_t r = 0; r < kVocabulary; ++r) cdf[r] = sum += std::pow(double(r + 1), -1.07);
  for (double& c : cdf) c /= sum;
  cdf.back() = 1;
  auto corpus = std::make_unique<Corpus>();
  corpus->documents = documents;
  Prng prng(1);
  std::vector<uint16_t> ranks;
  std::vector<uint64_t> counts(kVocabulary + 1);
  for (uint32_t d = 0; d < documents; ++d) {
    corpus->lengths.push_back(DrawLength(variable, &prng));
    for (uint32_t i = 0; i < corpus->lengths[d]; ++i) {
      const auto at = std::upper_bound(cdf.begin(), cdf.end(), prng.Uniform()) - cdf.begin();
      ranks.push_back(static_cast<uint16_t>(std::min<ptrdiff_t>(at, kVocabulary - 1)));
      ++counts[ranks.back() + 1u];
    }
  }
  for (uint32_t r = 0; r < kVocabulary; ++r) counts[r + 1] += counts[r];
  corpus->begin = counts;
  corpus->of_document.resize(ranks.size());
  corpus->position.resize(ranks.size());
  size_t token = 0;
  for (uint32_t d = 0; d < documents; ++d) {
    for (uint32_t i = 0; i < corpus->lengths[d]; ++i) {
      const uint64_t at = counts[ranks[token++]]++;
      if (at == corpus->begin[ranks[token - 1]] || corpus->of_document[at - 1] != d) ++corpus->postings;
      corpus->of_document[at] = d;
      corpus->position[at] = static_cast<uint16_t>(i);
    }
  }
  for (uint32_t r = 0; r < kVocabulary; ++r) corpus->by_term.push_back(r);
  std::sort(corpus->by_term.begin(), corpus->by_term.end(),
            [](uint32_t a, uint32_t b) { return Term(a) < Term(b); });
  return corpus;
}

// The last corpus made, so that benchmarks of one size share it.
const Corpus& CorpusOf(uint32_t documents, bool variable) {
  static std::unique_ptr<Corpus> corpus;
  static bool corpus_variable = false;
  if (corpus == nullptr || corpus->documents != documents || corpus_variable != variable) {
    corpus.reset();
    corpus = MakeCorpus(documents, variable);
    corpus_variable = variable;
  }
  return *corpus;
}

segment::IndexBytes WriteIndex(const Corpus& corpus, bool positions) {
  segment::MemorySink sink;
  segment::IndexWriter writer({1, 0, positions}, corpus.documents, corpus.lengths, {}, &sink);
  std::vector<uint32_t> row;
  bool ok = true;
  for (const uint32_t rank : corpus.by_term) {
    const uint64_t end = corpus.begin[rank + 1];
    uint64_t at = corpus.begin[rank];
    ok &= writer.BeginTerm(Term(rank), end - at).ok();
    while (at < end) {
      const uint32_t document = corpus.of_document[at];
      row.clear();
      for (; at < end && corpus.of_document[at] == document; ++at) row.push_back(corpus.position[at]);
      const auto frequency = static_cast<uint32_t>(row.size());
      ok &= writer.AddPosting({document, {&frequency, 1}, row}).ok();
    }
    ok &= writer.EndTerm().ok();
  }
  segment::IndexBytes bytes;
  ok &= writer.Finish(&bytes.terms, &bytes.headers).ok();
  bytes.postings = std::move(sink.bytes());
  if (!ok) std::abort();
  return bytes;
}

uint64_t SizeOf(const segment::IndexBytes& bytes) {
  return bytes.terms.size() + bytes.headers.size() + bytes.postings.size();
}

class LoadedBytes final : public segment::VerifiedBytes {
 public:
  explicit LoadedBytes(const ByteBuffer& bytes) : VerifiedBytes(bytes.data(), bytes.size(), true) {}
  absl::Status Damage(uint64_t offset, std::string_view message) const override {
    return DataLoss("", "", offset, message);
  }

 protected:
  absl::Status Verify(uint64_t, uint64_t) const override { return absl::OkStatus(); }
};

struct Index {
  segment::IndexBytes bytes;
  std::unique_ptr<LoadedBytes> terms, headers, postings;
  std::unique_ptr<segment::IndexReader> reader;
};

std::unique_ptr<Index> MakeIndex(const Corpus& corpus, bool positions) {
  auto index = std::make_unique<Index>();
  index->bytes = WriteIndex(corpus, positions);
  index->terms = std::make_unique<LoadedBytes>(index->bytes.terms);
  index->headers = std::make_unique<LoadedBytes>(index->bytes.headers);
  index->postings = std::make_unique<LoadedBytes>(index->bytes.postings);
  index->reader = *segment::IndexReader::Open(corpus.documents, index->terms.get(), index->headers.get(),
                                              index->postings.get());
  return index;
}

std::vector<uint32_t> RandomValues(uint32_t width, size_t n) {
  Prng prng(width + 1);
  std::vector<uint32_t> values(n + format::kUnpackSlack);
  for (uint32_t& v : values) v = width == 0 ? 0 : static_cast<uint32_t>(prng.Next() >> (64 - width));
  return values;
}

void BM_Pack(benchmark::State& state) {
  const auto width = static_cast<uint32_t>(state.range(0));
  const auto values = RandomValues(width, 128);
  std::vector<std::byte> packed(1024);
  for (auto _ : state) {
    format::Pack(values.data(), 128, width, packed.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(BM_Pack)->Arg(1)->Arg(5)->Arg(11)->Arg(17);

void BM_Unpack(benchmark::State& state) {
  const auto width = static_cast<uint32_t>(state.range(0));
  auto values = RandomValues(width, 128);
  std::vector<std::byte> packed(1024);
  format::Pack(values.data(), 128, width, packed.data());
  for (auto _ : state) {
    format::Unpack(packed.data(), 128, width, values.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(BM_Unpack)->Arg(1)->Arg(5)->Arg(11)->Arg(17);

// Values of mostly 6 bits, some longer.
void BM_AppendStream(benchmark::State& state) {
  auto values = RandomValues(6, 128);
  for (size_t i = 0; i < 128; i += 13) values[i] <<= 5;
  ByteBuffer out;
  for (auto _ : state) {
    out.clear();
    format::AppendStream(values.data(), 128, &out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(BM_AppendStream);

void BM_ReadStream(benchmark::State& state) {
  auto values = RandomValues(6, 128);
  for (size_t i = 0; i < 128; i += 13) values[i] <<= 5;
  ByteBuffer out;
  format::AppendStream(values.data(), 128, &out);
  const size_t bytes = out.size();
  out.resize(bytes + format::kPackedSlack);
  for (auto _ : state) {
    benchmark::DoNotOptimize(format::ReadStream(out.data(), out.data() + bytes, 128, values.data()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(BM_ReadStream);

// Arguments: documents, lengths vary, positions kept.
void BM_WriteIndex(benchmark::State& state) {
  const Corpus& corpus = CorpusOf(static_cast<uint32_t>(state.range(0)), state.range(1) != 0);
  uint64_t bytes = 0;
  segment::IndexBytes sections;
  for (auto _ : state) {
    sections = WriteIndex(corpus, state.range(2) != 0);
    bytes = SizeOf(sections);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(corpus.postings));
  state.counters["postings"] = static_cast<double>(corpus.postings);
  state.counters["terms_bytes"] = static_cast<double>(sections.terms.size());
  state.counters["headers_bytes"] = static_cast<double>(sections.headers.size());
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["bytes_per_posting"] = static_cast<double>(bytes) / static_cast<double>(corpus.postings);
}
BENCHMARK(BM_WriteIndex)
    ->ArgNames({"docs", "varied", "positions"})
    ->Args({100'000, 0, 0})
    ->Args({100'000, 0, 1})
    ->Args({100'000, 1, 0})
    ->Args({100'000, 1, 1})
    ->Args({1'000'000, 0, 0})
    ->Args({1'000'000, 0, 1})
    ->Args({1'000'000, 1, 0})
    ->Args({1'000'000, 1, 1})
    ->Unit(benchmark::kMillisecond);

// Walks a list; argument: rank.
void BM_Next(benchmark::State& state) {
  const auto index = MakeIndex(CorpusOf(100'000, true), false);
  const std::string term = Term(static_cast<uint32_t>(state.range(0)) - 1);
  uint64_t postings = 0, digest = 0;
  for (auto _ : state) {
    segment::PostingCursor cursor = index->reader->OpenTerm(term);
    postings += cursor.postings();
    for (; cursor.document() != format::kNoDocument; cursor.Next()) digest += cursor.document() ^ cursor.frequency();
  }
  benchmark::DoNotOptimize(digest);
  state.SetItemsProcessed(static_cast<int64_t>(postings));
}
BENCHMARK(BM_Next)->ArgName("rank")->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Arg(20'000);

void BM_NextWithPositions(benchmark::State& state) {
  const auto index = MakeIndex(CorpusOf(100'000, true), true);
  const std::string term = Term(static_cast<uint32_t>(state.range(0)) - 1);
  uint64_t postings = 0;
  std::vector<uint32_t> positions;
  for (auto _ : state) {
    segment::PostingCursor cursor = index->reader->OpenTerm(term);
    postings += cursor.postings();
    for (; cursor.document() != format::kNoDocument; cursor.Next()) {
      positions.clear();
      benchmark::DoNotOptimize(cursor.AppendPositions(&positions).ok());
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(postings));
}
BENCHMARK(BM_NextWithPositions)->ArgName("rank")->Arg(1)->Arg(100)->Arg(20'000);

// Leaps of about ten blocks.
void BM_Seek(benchmark::State& state) {
  const auto index = MakeIndex(CorpusOf(100'000, true), false);
  const std::string term = Term(static_cast<uint32_t>(state.range(0)) - 1);
  segment::PostingCursor first = index->reader->OpenTerm(term);
  const uint32_t leap = 100'000 / (first.postings() / 1280 + 1);
  uint64_t seeks = 0;
  for (auto _ : state) {
    segment::PostingCursor cursor = index->reader->OpenTerm(term);
    for (uint32_t target = leap; cursor.document() != format::kNoDocument; target += leap, ++seeks) cursor.Seek(target);
  }
  state.SetItemsProcessed(static_cast<int64_t>(seeks));
}
BENCHMARK(BM_Seek)->ArgName("rank")->Arg(1)->Arg(10)->Arg(100);

// Terms with one posting each: the look-up, and the cursor on it.
std::unique_ptr<Index> MakeSingles(uint32_t terms) {
  Corpus corpus;
  corpus.documents = terms;
  corpus.lengths.assign(terms, kWords);
  for (uint32_t t = 0; t < terms; ++t) {
    corpus.of_document.push_back(t);
    corpus.position.push_back(static_cast<uint16_t>(t % kWords));
    corpus.begin.push_back(t);
    corpus.by_term.push_back(t);
  }
  corpus.begin.push_back(terms);
  std::sort(corpus.by_term.begin(), corpus.by_term.end(),
            [](uint32_t a, uint32_t b) { return Term(a) < Term(b); });
  return MakeIndex(corpus, true);
}

void BM_FindTerm(benchmark::State& state) {
  const auto terms = static_cast<uint32_t>(state.range(0));
  const auto index = MakeSingles(terms);
  std::vector<std::string> names;
  Prng prng(5);
  for (int i = 0; i < 1024; ++i) names.push_back(Term(static_cast<uint32_t>(prng.Below(terms))));
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(index->reader->FindTerm(names[i++ % names.size()]).ok());
}
BENCHMARK(BM_FindTerm)->ArgName("terms")->Arg(30'000)->Arg(1'000'000);

void BM_OpenSinglePosting(benchmark::State& state) {
  const auto index = MakeSingles(30'000);
  const format::TermInfo info = **index->reader->FindTerm(Term(12'345));
  for (auto _ : state) benchmark::DoNotOptimize(index->reader->OpenCursor(info).document());
}
BENCHMARK(BM_OpenSinglePosting);

// A page as segments verify it, and a record as the journal does.
void BM_Checksum(benchmark::State& state) {
  const ByteBuffer bytes(static_cast<size_t>(state.range(0)), std::byte{0x5A});
  for (auto _ : state) benchmark::DoNotOptimize(Checksum(bytes, 7));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Checksum)->Arg(64)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace ashlar

BENCHMARK_MAIN();
