// Segments: building, merging, opening and looking up, with 100,000 documents of about 300 bytes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/check.h"
#include "src/base/prng.h"
#include "src/env/env.h"
#include "src/segment/segment.h"
#include "src/segment/segment_builder.h"

namespace ashlar::segment {
namespace {

constexpr uint32_t kDocuments = 100000;
constexpr uint32_t kWords = 50;

struct Corpus {
  std::vector<std::string> keys, stored;
  std::map<std::string, std::vector<std::pair<uint32_t, uint32_t>>> terms;  // (ordinal, frequency)
};

std::string Word(Prng* random) {
  const double u = random->Uniform();  // word ranks fall off as those of a text do
  return absl::StrCat("w", static_cast<uint64_t>(30000.0 * u * u * u * u * u), "x");
}

Corpus MakeCorpus(uint32_t first, uint32_t count, uint64_t seed) {
  Prng random(seed);
  Corpus c;
  for (uint32_t i = 0; i < count; ++i) {
    c.keys.push_back(absl::StrCat("d", first + i));
    std::string text;
    std::map<std::string, uint32_t> frequencies;
    for (uint32_t w = 0; w < kWords; ++w) {
      const std::string word = Word(&random);
      absl::StrAppend(&text, word, " ");
      ++frequencies[word];
    }
    for (const auto& [term, frequency] : frequencies) c.terms[term].emplace_back(i, frequency);
    c.stored.push_back(std::move(text));
  }
  return c;
}

Schema BenchSchema() {
  Schema schema;
  Field id, body;
  id.name = "id";
  id.type = FieldType::kKeyword;
  body.name = "body";
  body.positions = false;
  schema.fields = {id, body};
  schema.key = "id";
  schema.default_group = {"body"};
  return schema;
}

SegmentSpec Spec(uint64_t number) {
  SegmentSpec spec;
  spec.number = number;
  spec.schema = BenchSchema();
  spec.documents_expected = kDocuments;
  spec.postings_per_field = {0, 1};
  return spec;
}

std::unique_ptr<SegmentBuilder> AddAll(env::Env env, uint64_t number, const Corpus& c, DocumentId first) {
  std::unique_ptr<SegmentBuilder> b = *SegmentBuilder::Create(env, "dir", Spec(number));
  const uint32_t lengths[2] = {0, kWords};
  for (uint32_t i = 0; i < c.keys.size(); ++i) {
    DocumentRow row;
    row.id = first + i;
    row.key = c.keys[i];
    row.lengths = lengths;
    row.stored = AsBytes(c.stored[i]);
    ASHLAR_CHECK(b->AddDocument(row).ok());
  }
  return b;
}

format::SegmentEntry Build(env::Env env, uint64_t number, const Corpus& c, DocumentId first) {
  std::unique_ptr<SegmentBuilder> b = AddAll(env, number, c, first);
  ASHLAR_CHECK(b->BeginIndex(format::kGroupIndex).ok());
  for (const auto& [term, postings] : c.terms) {
    ASHLAR_CHECK(b->BeginTerm(term, postings.size()).ok());
    for (const auto& [ordinal, frequency] : postings)
      ASHLAR_CHECK(b->AddPosting({ordinal, {&frequency, 1}, {}}).ok());
    ASHLAR_CHECK(b->EndTerm().ok());
  }
  ASHLAR_CHECK(b->EndIndex().ok());
  return *b->Finish();
}

// One store in memory, so that the figures are of our code and not of a disk; `Posix` ones touch files in /tmp.
struct Fixture {
  std::unique_ptr<env::MemoryEnv> memory = env::NewMemoryEnv();
  env::Env env = memory->env();
  Corpus corpus = MakeCorpus(0, kDocuments, 1);
  format::SegmentEntry entry;
  std::shared_ptr<const Segment> segment;
  Fixture() {
    ASHLAR_CHECK(env.files->CreateDirectory("dir").ok());
    entry = Build(env, 1, corpus, 1);
    segment = *Segment::Open(env, "dir", entry, {}, 0, OpenMode::kMapped);
  }
};
Fixture& Shared() {
  static Fixture f;
  return f;
}

void BM_AddDocuments(benchmark::State& state) {
  Fixture& f = Shared();
  for (auto _ : state) ASHLAR_CHECK(AddAll(f.env, 2, f.corpus, 1)->BeginIndex(format::kGroupIndex).ok());
  state.SetItemsProcessed(state.iterations() * kDocuments);
}
BENCHMARK(BM_AddDocuments)->Unit(benchmark::kMillisecond);

void BM_BuildSegment(benchmark::State& state) {
  Fixture& f = Shared();
  for (auto _ : state) {
    const format::SegmentEntry e = Build(f.env, 2, f.corpus, 1);
    state.counters["bytes_per_document"] = static_cast<double>(e.file_bytes) / kDocuments;
    ASHLAR_CHECK(f.env.files->Remove("dir/" + FileName(2)).ok());
  }
  for (const auto& [section, bytes] : f.segment->SectionBytes())
    state.counters[section] = static_cast<double>(bytes) / kDocuments;
  state.SetItemsProcessed(state.iterations() * kDocuments);
}
BENCHMARK(BM_BuildSegment)->Unit(benchmark::kMillisecond);

// Ten segments of a tenth each; argument: one document in so many is dead, 0 nobody.
void BM_Merge(benchmark::State& state) {
  Fixture& f = Shared();
  std::vector<MergeInput> inputs;
  for (uint32_t i = 0; i < 10; ++i) {
    const Corpus c = MakeCorpus(i * kDocuments / 10, kDocuments / 10, i + 1);
    const format::SegmentEntry e = Build(f.env, 10 + i, c, 1 + uint64_t{i} * kDocuments / 10);
    MergeInput input;
    input.segment = *Segment::Open(f.env, "dir", e, {}, 0, OpenMode::kMapped);
    if (state.range(0) != 0) {
      input.dead.resize(e.documents);
      for (uint32_t d = 0; d < e.documents; d += static_cast<uint32_t>(state.range(0))) input.dead[d] = true;
    }
    inputs.push_back(std::move(input));
    ASHLAR_CHECK(f.env.files->Remove("dir/" + FileName(10 + i)).ok());
  }
  for (auto _ : state) {
    ASHLAR_CHECK(MergeSegments(f.env, "dir", Spec(3), inputs).ok());
    ASHLAR_CHECK(f.env.files->Remove("dir/" + FileName(3)).ok());
  }
  state.SetItemsProcessed(state.iterations() * kDocuments);
}
BENCHMARK(BM_Merge)->Arg(0)->Arg(20)->Unit(benchmark::kMillisecond);

void BM_OpenMapped(benchmark::State& state) {
  Fixture& f = Shared();
  for (auto _ : state) benchmark::DoNotOptimize(*Segment::Open(f.env, "dir", f.entry, {}, 0, OpenMode::kMapped));
}
BENCHMARK(BM_OpenMapped)->Unit(benchmark::kMicrosecond);

void BM_OpenMappedPosix(benchmark::State& state) {
  Fixture& f = Shared();
  const env::Env posix = env::PosixEnv();
  const std::string directory = "/tmp/ashlar-segment-bench";
  (void)posix.files->CreateDirectory(directory);
  const std::string path = env::JoinPath(directory, FileName(1));
  (void)posix.files->Remove(path);
  {
    const auto file = *posix.files->CreateFile(path);
    ASHLAR_CHECK(file->Append(*env::ReadFile(*f.env.files, "dir/" + FileName(1))).ok());
  }
  for (auto _ : state) benchmark::DoNotOptimize(*Segment::Open(posix, directory, f.entry, {}, 0, OpenMode::kMapped));
  (void)posix.files->Remove(path);
  (void)posix.files->Remove(directory);
}
BENCHMARK(BM_OpenMappedPosix)->Unit(benchmark::kMicrosecond);

void BM_OpenArray(benchmark::State& state) {
  Fixture& f = Shared();
  for (auto _ : state) benchmark::DoNotOptimize(*Segment::Open(f.env, "dir", f.entry, {}, 0, OpenMode::kArray));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(f.entry.file_bytes));
}
BENCHMARK(BM_OpenArray)->Unit(benchmark::kMillisecond);

void BM_FindKey(benchmark::State& state) {
  Fixture& f = Shared();
  const bool hit = state.range(0) != 0;
  std::vector<std::string> keys;
  Prng random(4);
  for (int i = 0; i < 4096; ++i) keys.push_back(absl::StrCat("d", random.Below(kDocuments) + (hit ? 0 : kDocuments)));
  size_t i = 0, found = 0;
  for (auto _ : state) found += (*f.segment->FindKey(keys[i++ % keys.size()])).has_value() ? 1 : 0;
  ASHLAR_CHECK((found > 0) == hit);
}
BENCHMARK(BM_FindKey)->ArgName("hit")->Arg(1)->Arg(0);

void BM_StoredOf(benchmark::State& state) {
  Fixture& f = Shared();
  Prng random(5);
  uint32_t ordinal = 0;
  for (auto _ : state) {
    ordinal = state.range(0) != 0 ? (ordinal + 1) % kDocuments : static_cast<uint32_t>(random.Below(kDocuments));
    benchmark::DoNotOptimize(*f.segment->StoredOf(ordinal));
  }
}
BENCHMARK(BM_StoredOf)->ArgName("in_order")->Arg(0)->Arg(1);

void BM_KeyOf(benchmark::State& state) {
  Fixture& f = Shared();
  Prng random(6);
  for (auto _ : state) benchmark::DoNotOptimize(*f.segment->KeyOf(static_cast<uint32_t>(random.Below(kDocuments))));
}
BENCHMARK(BM_KeyOf);

void BM_IdOf(benchmark::State& state) {
  Fixture& f = Shared();
  Prng random(7);
  for (auto _ : state) benchmark::DoNotOptimize(*f.segment->IdOf(static_cast<uint32_t>(random.Below(kDocuments))));
}
BENCHMARK(BM_IdOf);

}  // namespace
}  // namespace ashlar::segment

BENCHMARK_MAIN();
