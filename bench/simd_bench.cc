// The kernels of src/simd, each at every level that the machine has: time a call.
//
// A call works on one of 64 blocks (or 8 windows) in turn, so that branches are not learned and inputs lie in L1 or L2.
// Packed blocks are 128 values of 7 bits (a list with one posting in about 60 documents); `patched` ones have 6 more
// that need 14 bits.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "src/base/prng.h"
#include "src/simd/kernels.h"
#include "src/simd/scatter.h"

namespace ashlar::simd {
namespace {

constexpr size_t kBlocks = 64;
constexpr size_t kWindows = 8;
constexpr uint32_t kGapWidth = 7;
constexpr size_t kPatches = 6;
constexpr Scoring kScoring = {1 << 27, 0.3f, 0.02f};

std::vector<std::byte> RandomBytes(size_t n) {
  Prng prng(1);
  std::vector<std::byte> bytes(n + kReadSlack);
  for (std::byte& b : bytes) b = static_cast<std::byte>(prng.Next());
  return bytes;
}

// What all benchmarks read. Any bytes are valid packed values.
struct Data {
  std::vector<std::byte> packed = RandomBytes(kWindows * kWindow);
  std::vector<uint8_t> frequencies, codes;
  std::vector<uint32_t> documents;  // per block ascending
  std::vector<uint32_t> offsets;    // documents of a window, ascending
  std::vector<std::byte> lengths = RandomBytes(2 << 20);
  std::vector<int32_t> scores;
  std::vector<uint64_t> sparse_bitmap, dense_bitmap;
  std::vector<uint32_t> targets;

  Data() {
    Prng prng(2);
    for (size_t i = 0; i < kBlocks * kBlock; ++i) {
      frequencies.push_back(static_cast<uint8_t>(1 + prng.Below(5)));
      codes.push_back(static_cast<uint8_t>(1 + prng.Below(90)));
      const uint32_t before = i % kBlock == 0 ? static_cast<uint32_t>(prng.Below(20'000)) : documents.back() + 1;
      documents.push_back(before + static_cast<uint32_t>(prng.Below(100)));
      scores.push_back(static_cast<int32_t>(prng.Below(1 << 27)));
    }
    codes.resize(codes.size() + kReadSlack);
    // A length of 0xFFFF would be an escape.
    for (size_t i = 1; i < lengths.size(); i += 2) lengths[i] &= std::byte{0x0F};
    sparse_bitmap.resize(kWindowWords);
    dense_bitmap.resize(kWindowWords);
    for (uint32_t d = 0; d < kWindow; ++d) {
      sparse_bitmap[d / 64] |= uint64_t{prng.OneIn(8)} << (d % 64);
      dense_bitmap[d / 64] |= uint64_t{prng.OneIn(2)} << (d % 64);
      if (prng.OneIn(8)) offsets.push_back(d);
    }
    for (size_t b = 0; b < kBlocks; ++b) {
      targets.push_back(documents[b * kBlock + prng.Below(kBlock)] - static_cast<uint32_t>(prng.Below(2)));
    }
  }
  const std::byte* Block(size_t i) const { return packed.data() + i % kBlocks * (2 * kBlock); }
  const std::byte* Window(size_t i) const { return packed.data() + i % kWindows * kWindow; }
  const uint32_t* Documents(size_t i) const { return documents.data() + i % kBlocks * kBlock; }
  const uint8_t* Frequencies(size_t i) const { return frequencies.data() + i % kBlocks * kBlock; }
};

const Data& TheData() {
  static const Data data;
  return data;
}

// Written to by all benchmarks.
struct Scratch {
  alignas(64) uint32_t documents[kBlock];
  alignas(64) uint8_t bytes[kBlock];
  alignas(64) int32_t scores[16 * kBlock];
  alignas(64) uint16_t sums16[kWindow];
  alignas(64) uint16_t scanned[kWindow];
  alignas(64) int32_t sums32[kWindow];
  alignas(64) int32_t found_scores[kWindow];
  alignas(64) uint16_t found[kWindow];
  alignas(64) uint64_t bitmap[kWindowWords];
  uint8_t table[kTableBytes];
};
Scratch scratch;

// On a machine that others use too, the least of many repetitions says what a call takes when it is left alone.
double Least(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }

template <class F>
void Register(const std::string& name, F call) {
  for (const Level level : {Level::kScalar, Level::kAvx2, Level::kAvx512}) {
    const Kernels* kernels = KernelsFor(level);
    if (kernels == nullptr) continue;
    const auto run = [=](benchmark::State& state) {
      size_t i = 0;
      for (auto _ : state) {
        call(*kernels, i++);
        benchmark::ClobberMemory();
      }
    };
    benchmark::RegisterBenchmark((name + "/" + kernels->name).c_str(), run)->ComputeStatistics("minimum", Least);
  }
}

// Puts kPatches high parts of 7 bits where the bytes before them say, as in a stream (SPEC P-4).
void PutPatches(const Kernels& kernels, const std::byte* patches) {
  uint32_t high[16];
  kernels.unpack(patches + kPatches, kPatches, 7, high);
  for (size_t p = 0; p < kPatches; ++p) {
    scratch.documents[static_cast<uint8_t>(patches[p]) % kBlock] |= high[p] << kGapWidth;
  }
}

void RegisterBlocks() {
  const Data& d = TheData();
  Register("unpack_128",
           [&](const Kernels& k, size_t i) { k.unpack(d.Block(i), kBlock, kGapWidth, scratch.documents); });
  Register("natural", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.unpack_gaps(d.Block(i), kBlock, kGapWidth, i, scratch.documents));
  });
  Register("natural_patched", [&](const Kernels& k, size_t i) {
    k.unpack(d.Block(i), kBlock, kGapWidth, scratch.documents);
    PutPatches(k, d.Block(i + 1));
    benchmark::DoNotOptimize(k.prefix_sum(scratch.documents, kBlock, 7, i));
  });
  Register("natural_of_50", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.unpack_gaps(d.Block(i), 50, kGapWidth, i, scratch.documents));
  });
  Register("lanes_transposed", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.unpack_lanes(d.Block(i), kBlock, kGapWidth, i, scratch.documents));
  });
  Register("lanes_transposed_patched", [&](const Kernels& k, size_t i) {
    k.unpack(d.Block(i), kBlock, kGapWidth, scratch.documents);
    PutPatches(k, d.Block(i + 1));
    benchmark::DoNotOptimize(k.prefix_sum_lanes(scratch.documents, kBlock, i));
  });
  Register("lanes_ascending", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.unpack_lanes_ascending(d.Block(i), kBlock, kGapWidth, i, scratch.documents));
  });
  Register("lanes_ascending_of_50", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.unpack_lanes_ascending(d.Block(i), 50, kGapWidth, i, scratch.documents));
  });
  Register("unpack_bytes_128",
           [&](const Kernels& k, size_t i) { k.unpack_bytes_plus_one(d.Block(i), kBlock, 3, scratch.bytes); });
}

void RegisterScores() {
  const Data& d = TheData();
  for (const size_t n : {size_t{16}, size_t{1024}}) {
    Register("bounds_4_pairs_" + std::to_string(n), [&, n](const Kernels& k, size_t i) {
      const uint8_t* codes = d.codes.data() + i % 16;
      k.bounds(codes, codes + 512, n, 4, n, kScoring, scratch.scores);
    });
  }
  Register("contributions_fixed_128", [&](const Kernels& k, size_t i) {
    k.contributions_fixed_u8(d.Frequencies(i), kBlock, kScoring.weight, 1.2f, scratch.scores);
  });
  Register("contributions_row_128", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.contributions_row_u8(d.Frequencies(i), d.lengths.data() + 512 * (i % kBlocks), kBlock,
                                                    kScoring, scratch.scores));
  });
  Register("contributions_column_128", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.contributions_column_u8(d.Frequencies(i), d.lengths.data(), d.Documents(i), kBlock,
                                                       kScoring, scratch.scores));
  });
  Register("contributions_column_u32_128", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(
        k.contributions_column_u32(d.Documents(0), d.lengths.data(), d.Documents(i), kBlock, kScoring, scratch.scores));
  });
}

void RegisterWindows() {
  const Data& d = TheData();
  for (size_t i = 0; i < kTableBytes; ++i) scratch.table[i] = static_cast<uint8_t>(i);
  for (const uint32_t width : {1u, 2u, 4u, 5u, 6u, 8u}) {
    Register("add_column_b" + std::to_string(width), [&, width](const Kernels& k, size_t i) {
      k.add_column(d.Window(i), width, scratch.table, scratch.sums16);
    });
  }
  for (const bool dense : {false, true}) {
    const auto* bitmap = reinterpret_cast<const std::byte*>((dense ? d.dense_bitmap : d.sparse_bitmap).data());
    Register(std::string("add_bitmap_b2_one_in_") + (dense ? "2" : "8"), [&, bitmap](const Kernels& k, size_t i) {
      k.add_bitmap(bitmap, d.Window(i), 2, scratch.table, scratch.sums16);
    });
  }
  scratch.scanned[77] = 1000;
  Register("scan_16", [&](const Kernels& k, size_t) {
    benchmark::DoNotOptimize(k.scan_16(scratch.scanned, 1000, scratch.found));
  });
  Register("scan_32", [&](const Kernels& k, size_t) {
    scratch.sums32[77] = 1 << 30;
    benchmark::DoNotOptimize(k.scan_32(scratch.sums32, 1 << 30, scratch.found, scratch.found_scores));
  });
  Register("take_32", [&](const Kernels& k, size_t) {
    scratch.sums32[77] = 1 << 30;
    benchmark::DoNotOptimize(k.take_32(scratch.sums32, 1 << 30, scratch.found, scratch.found_scores));
  });
  Register("or_column_b2", [&](const Kernels& k, size_t i) { k.or_column(d.Window(i), 2, scratch.bitmap); });
  Register("or_bitmap", [&](const Kernels& k, size_t i) { k.or_bitmap(d.Window(i), scratch.bitmap); });
  Register("count_bitmap",
           [&](const Kernels& k, size_t) { benchmark::DoNotOptimize(k.count_bitmap(d.dense_bitmap.data())); });
}

// Not by level.
void RegisterScatter() {
  const Data& d = TheData();
  const size_t n = d.offsets.size();
  const auto add = [](const std::string& name, const std::function<void()>& call) {
    const auto run = [=](benchmark::State& state) {
      for (auto _ : state) {
        call();
        benchmark::ClobberMemory();
      }
    };
    benchmark::RegisterBenchmark((name + "/all").c_str(), run)->ComputeStatistics("minimum", Least);
  };
  add("clear_16", [] { ClearWindow(scratch.sums16); });
  add("clear_32", [] { ClearWindow(scratch.sums32); });
  add("scatter_u8_" + std::to_string(n),
      [&d, n] { Scatter(d.offsets.data(), d.frequencies.data(), n, 0, scratch.sums16); });
  add("scatter_i32_" + std::to_string(n),
      [&d, n] { Scatter(d.offsets.data(), d.scores.data(), n, 0, scratch.sums32); });
}

void RegisterSearches() {
  const Data& d = TheData();
  Register("lower_bound_128", [&](const Kernels& k, size_t i) {
    benchmark::DoNotOptimize(k.lower_bound(d.Documents(i), kBlock, d.targets[i % kBlocks]));
  });
  Register("first_at_least_1024", [&](const Kernels& k, size_t) {
    benchmark::DoNotOptimize(k.first_at_least(d.scores.data(), 1024, 1 << 27));
  });
  Register("maximum_1024",
           [&](const Kernels& k, size_t) { benchmark::DoNotOptimize(k.maximum(d.scores.data(), 1024)); });
  // Keeps about half: what is filtered is copied anew each time.
  Register("keep_at_least_128", [&](const Kernels& k, size_t i) {
    std::memcpy(scratch.documents, d.Documents(i), sizeof scratch.documents);
    std::memcpy(scratch.scores, d.scores.data() + i % kBlocks * kBlock, kBlock * sizeof(int32_t));
    benchmark::DoNotOptimize(k.keep_at_least(scratch.documents, scratch.scores, kBlock, 0, 1 << 26));
  });
}

void RegisterAll() {
  RegisterBlocks();
  RegisterScores();
  RegisterWindows();
  RegisterScatter();
  RegisterSearches();
}

}  // namespace
}  // namespace ashlar::simd

int main(int argc, char** argv) {
  ashlar::simd::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
