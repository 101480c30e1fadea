// Codecs of posting lists (SPEC P-*): packing, streams, codes, frontiers, short lists, packed blocks, headers,
// positions.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "format/bit_pack.h"
#include "format/dense_window.h"
#include "format/frontier.h"
#include "format/packed_stream.h"
#include "format/position_block.h"
#include "format/posting_block.h"
#include "gtest/gtest.h"
#include "src/base/prng.h"

namespace ashlar::format {
namespace {

std::string Hex(ByteSpan bytes) {
  std::string hex;
  for (const std::byte b : bytes) {
    if (!hex.empty()) hex += ' ';
    hex += "0123456789ABCDEF"[static_cast<size_t>(b) >> 4];
    hex += "0123456789ABCDEF"[static_cast<size_t>(b) & 15];
  }
  return hex;
}

uint32_t OfWidth(uint32_t width, Prng* prng) {
  return width == 0 ? 0 : static_cast<uint32_t>(prng->Next() >> (64 - width));
}

// The bytes alone, on the heap with nothing but the slack that decoders may look at after them, filled with noise.
ByteBuffer WithSlack(ByteSpan bytes, Prng* prng) {
  ByteBuffer padded(bytes.begin(), bytes.end());
  for (size_t i = 0; i < kPackedSlack; ++i) padded.push_back(static_cast<std::byte>(prng->Next()));
  return padded;
}

TEST(BitPackTest, EveryWidthAndLength) {
  Prng prng(1);
  for (uint32_t width = 0; width <= 32; ++width) {
    for (size_t n = 0; n <= 300; ++n) {
      std::vector<uint32_t> values(n);
      for (uint32_t& v : values) v = OfWidth(width, &prng);
      ByteBuffer packed(PackedBytes(n, width));
      Pack(values.data(), n, width, packed.data());
      // P-3 by the letter.
      for (size_t bit = 0; bit < n * width; ++bit) {
        const bool expected = (values[bit / width] >> (bit % width) & 1) != 0;
        ASSERT_EQ((static_cast<uint32_t>(packed[bit / 8]) >> (bit % 8) & 1) != 0, expected);
      }
      const ByteBuffer padded = WithSlack(packed, &prng);
      std::vector<uint32_t> out(n + kUnpackSlack);
      Unpack(padded.data(), n, width, out.data());
      out.resize(n);
      ASSERT_EQ(out, values) << "width " << width << " n " << n;
    }
  }
}

// Values of one width with some of another among them.
std::vector<uint32_t> Mixed(size_t n, uint32_t width, uint32_t other, uint64_t one_in, Prng* prng) {
  std::vector<uint32_t> values(n);
  for (uint32_t& v : values) v = OfWidth(prng->OneIn(one_in) ? other : width, prng);
  return values;
}

TEST(PackedStreamTest, EveryWidthPatchedAndNot) {
  Prng prng(2);
  for (uint32_t width = 0; width <= 32; ++width) {
    for (uint32_t other = 0; other <= 32; ++other) {
      for (const size_t n : {1, 2, 7, 8, 9, 63, 64, 65, 127, 128}) {
        const auto values = Mixed(n, width, other, 1 + prng.Below(40), &prng);
        ByteBuffer bytes;
        AppendStream(values.data(), n, &bytes);
        ASSERT_LE(bytes.size(), 1 + PackedBytes(n, std::max(width, other)));
        const ByteBuffer padded = WithSlack(bytes, &prng);
        std::vector<uint32_t> out(n + kUnpackSlack);
        const std::byte* end = padded.data() + bytes.size();
        ASSERT_EQ(ReadStream(padded.data(), end, n, out.data()), end);
        ASSERT_EQ(SkipStream(padded.data(), end, n), end);
        out.resize(n);
        ASSERT_EQ(out, values);
        // One byte less is damage.
        ASSERT_EQ(ReadStream(padded.data(), end - 1, n, out.data()), nullptr);
        ASSERT_EQ(SkipStream(padded.data(), end - 1, n), nullptr);
      }
    }
  }
}

TEST(PackedStreamTest, AFewLongValuesCostLittle) {
  std::vector<uint32_t> values(128, 3);
  values[5] = values[77] = 1'000'000;
  ByteBuffer bytes;
  AppendStream(values.data(), 128, &bytes);
  EXPECT_LT(bytes.size(), 32u + 12u);
}

TEST(PackedStreamTest, RefusesWhatBreaksTheRule) {
  Prng prng(3);
  std::vector<uint32_t> out(128 + kUnpackSlack);
  const auto reads = [&](std::vector<uint8_t> bytes, size_t n) {
    ByteBuffer buffer;
    for (const uint8_t b : bytes) buffer.push_back(std::byte{b});
    const size_t size = buffer.size();
    buffer = WithSlack(buffer, &prng);
    return ReadStream(buffer.data(), buffer.data() + size, n, out.data()) != nullptr;
  };
  EXPECT_TRUE(reads({0}, 8));
  EXPECT_FALSE(reads({}, 8));
  EXPECT_FALSE(reads({33, 0, 0, 0, 0, 0}, 1));
  EXPECT_TRUE(reads({0x80, 2, 8, 1, 5, 9, 9}, 8));
  EXPECT_FALSE(reads({0x80, 0, 8}, 8));                         // no patch
  EXPECT_FALSE(reads({0x80, 2, 0, 1, 5}, 8));                   // of no width
  EXPECT_FALSE(reads({0x80 | 30, 1, 3, 0, 0, 0, 0, 0, 0}, 1));  // wider than 32 bits together
  EXPECT_FALSE(reads({0x80, 2, 8, 5, 5, 9, 9}, 8));             // places do not ascend
  EXPECT_FALSE(reads({0x80, 2, 8, 5, 8, 9, 9}, 8));             // beyond the values
  EXPECT_FALSE(reads({0x80, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 8));  // more than values
}

// SPEC P, example 1.
TEST(PackedStreamTest, GoldenBytes) {
  const std::vector<uint32_t> values = {1, 2, 3, 4, 5, 6, 7, 300};
  ByteBuffer bytes;
  AppendStream(values.data(), values.size(), &bytes);
  EXPECT_EQ(Hex(bytes), "83 01 06 D1 58 9F 07 25");
}

TEST(CodeTest, LengthsRoundDownAndFrequenciesUp) {
  Prng prng(4);
  for (uint32_t code = 0; code <= 255; ++code) {
    if (code > 0) {
      ASSERT_GT(CodeValue(code), CodeValue(code - 1));
    }
    ASSERT_EQ(LengthCode(CodeValue(code)), code);
    ASSERT_EQ(FrequencyCode(CodeValue(code)), code);
  }
  const auto check = [](uint32_t v) {
    const uint8_t length = LengthCode(v), frequency = FrequencyCode(v);
    ASSERT_LE(LengthOfCode(length), v);
    ASSERT_GE(FrequencyOfCode(frequency), v);
    // And no further than they must.
    if (length < kCodeMax) {
      ASSERT_GT(LengthOfCode(static_cast<uint8_t>(length + 1)), v);
    }
    if (frequency > 0) {
      ASSERT_LT(CodeValue(frequency - 1u), v);
    }
  };
  for (uint32_t v = 0; v < 300'000; ++v) check(v);
  for (int i = 0; i < 100'000; ++i) check(OfWidth(static_cast<uint32_t>(prng.Below(33)), &prng));
  check(0xFFFFFFFFu);
}

TEST(FrontierTest, HoldsExactlyTheUnbeatenPairs) {
  Prng prng(5);
  for (int round = 0; round < 2000; ++round) {
    FrontierTable table;
    std::vector<Frontier::Pair> pairs;
    for (uint64_t n = 1 + prng.Below(128); n > 0; --n) {
      const Frontier::Pair pair{static_cast<uint8_t>(1 + prng.Below(uint64_t{1} << prng.Below(8))),
                                static_cast<uint8_t>(prng.Below(256))};
      pairs.push_back(pair);
      table.Add(pair.frequency, pair.length);
    }
    Frontier frontier;
    table.Take(&frontier);
    std::vector<Frontier::Pair> expected;
    for (const auto& p : pairs) {
      const bool beaten = std::any_of(pairs.begin(), pairs.end(), [&](const Frontier::Pair& q) {
        return q != p && q.frequency >= p.frequency && q.length <= p.length;
      });
      if (!beaten && std::find(expected.begin(), expected.end(), p) == expected.end()) expected.push_back(p);
    }
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.frequency > b.frequency; });
    ASSERT_EQ(std::vector(frontier.pairs.begin(), frontier.pairs.begin() + static_cast<ptrdiff_t>(frontier.count)),
              expected);
    // The table is empty again.
    table.Add(1, 200);
    table.Take(&frontier);
    ASSERT_EQ(frontier.count, 1u);
    ASSERT_EQ(frontier.pairs[0], (Frontier::Pair{1, 200}));
  }
}

bool Covers(const Frontier& few, const Frontier::Pair& pair) {
  return std::any_of(few.pairs.begin(), few.pairs.begin() + static_cast<ptrdiff_t>(few.count),
                     [&](const Frontier::Pair& p) { return p.frequency >= pair.frequency && p.length <= pair.length; });
}

double Best(const ReductionScale& scale, const Frontier& frontier) {
  double best = 0;
  for (size_t i = 0; i < frontier.count; ++i) best = std::max(best, scale.Score(frontier.pairs[i]));
  return best;
}

// The least best score of any way to merge neighbours into at most `most` pairs: least[n][i] for the first i pairs in n
// runs.
double LeastBest(const ReductionScale& scale, const Frontier& whole, size_t most) {
  std::vector<std::vector<double>> least(most + 1, std::vector<double>(whole.count + 1, 2));
  least[0][0] = 0;
  for (size_t n = 1; n <= most; ++n) {
    for (size_t end = 1; end <= whole.count; ++end) {
      least[n][end] = least[n - 1][end];
      for (size_t begin = 0; begin < end; ++begin) {
        const double run = scale.Score({whole.pairs[begin].frequency, whole.pairs[end - 1].length});
        least[n][end] = std::min(least[n][end], std::max(least[n - 1][begin], run));
      }
    }
  }
  return least[most][whole.count];
}

TEST(FrontierTest, ReducedItStillCoversAndTheBestHardlyRises) {
  Prng prng(6);
  int reduced = 0, kept = 0, could_be_kept = 0;
  for (int round = 0; round < 3000; ++round) {
    const ReductionScale scale(20 + static_cast<double>(prng.Below(200)));
    FrontierTable table;
    for (int i = 0; i < 128; ++i) {
      const auto f = static_cast<uint32_t>(1 + prng.Below(uint64_t{1} << prng.Below(7)));
      const auto length = f + static_cast<uint32_t>(prng.Below(uint64_t{1} << prng.Below(10)));
      table.Add(FrequencyCode(f), LengthCode(length));
    }
    Frontier whole;
    table.Take(&whole);
    Frontier few = whole;
    const size_t most = prng.OneIn(2) ? kBlockListPairs.block : kWindowListPairs.group;
    ReduceFrontier(scale, most, &few);
    ASSERT_EQ(few.count, std::min(whole.count, most));
    for (size_t i = 0; i < whole.count; ++i) ASSERT_TRUE(Covers(few, whole.pairs[i]));
    ASSERT_EQ(few.pairs[0].frequency, whole.pairs[0].frequency);
    ASSERT_EQ(few.pairs[few.count - 1].length, whole.pairs[whole.count - 1].length);
    if (whole.count <= most) continue;
    const double best = Best(scale, whole), least = LeastBest(scale, whole, most);
    ASSERT_GE(Best(scale, few), best);
    ASSERT_LE(Best(scale, few), 1.1 * least);
    ++reduced;
    kept += Best(scale, few) == best ? 1 : 0;
    could_be_kept += least == best ? 1 : 0;
  }
  EXPECT_GT(reduced, 500);
  EXPECT_GT(kept * 100, could_be_kept * 95);
}

// --- short lists ---

TEST(ShortPostingTest, RoundTrips) {
  Prng prng(7);
  for (const uint32_t members : {1u, 2u, 5u}) {
    const uint32_t largest = members / 2;
    for (int round = 0; round < 3000; ++round) {
      std::vector<uint32_t> frequencies(members), got(members);
      do {
        for (uint32_t& f : frequencies) f = OfWidth(static_cast<uint32_t>(prng.Below(prng.OneIn(9) ? 29 : 3)), &prng);
      } while (*std::max_element(frequencies.begin(), frequencies.end()) == 0);
      const uint32_t gap = OfWidth(static_cast<uint32_t>(prng.Below(33)), &prng);
      ByteBuffer bytes;
      AppendShortPosting(gap, frequencies, largest, &bytes);
      ByteReader in(bytes);
      ShortPosting posting;
      ASSERT_TRUE(ReadShortPosting(&in, largest, got, &posting));
      ASSERT_TRUE(in.done());
      ASSERT_EQ(posting.gap, gap);
      ASSERT_EQ(got, frequencies);
      uint32_t sum = 0;
      for (const uint32_t f : frequencies) sum += f;
      ASSERT_EQ(posting.frequency, sum);
    }
  }
}

TEST(ShortPostingTest, RefusesFrequenciesOutOfRange) {
  const auto reads = [](std::vector<uint64_t> varints, size_t members) {
    ByteBuffer bytes;
    for (const uint64_t v : varints) ByteWriter(&bytes).Varint(v);
    ByteReader in(bytes);
    std::vector<uint32_t> frequencies(members);
    ShortPosting posting;
    return ReadShortPosting(&in, 0, frequencies, &posting);
  };
  EXPECT_TRUE(reads({1, 0x80000000u - 2}, 1));
  EXPECT_FALSE(reads({1, 0x80000000u - 1}, 1));
  EXPECT_FALSE(reads({1}, 1));
  EXPECT_FALSE(reads({uint64_t{1} << 33}, 1));
  EXPECT_FALSE(reads({1, 0, 0}, 2));
  EXPECT_TRUE(reads({1, 0x40000000u, 0x40000000u}, 2));
  EXPECT_FALSE(reads({1, 0x40000000u, 0x40000001u}, 2));
  EXPECT_FALSE(reads({1, 0xFFFFFFFFFFFFFFFFu, 2}, 2));
}

// SPEC P, example 2.
TEST(ShortPostingTest, GoldenBytes) {
  ByteBuffer bytes;
  const std::vector<uint32_t> one = {1}, three = {3};
  AppendShortPosting(3, one, 0, &bytes);
  AppendShortPosting(0, three, 0, &bytes);
  AppendShortPosting(5, one, 0, &bytes);
  EXPECT_EQ(Hex(bytes), "06 01 01 0A");
}

// --- blocks ---

TEST(PackedBlockTest, RoundTripsAtEveryCount) {
  Prng prng(8);
  for (size_t n = 1; n <= kBlockPostings; ++n) {
    for (const uint32_t width : {0u, 1u, 4u, 11u, 24u}) {
      const uint64_t first = prng.OneIn(2) ? 0 : OfWidth(20, &prng);
      std::vector<uint32_t> documents, frequencies;
      uint64_t next = first;
      for (size_t i = 0; i < n; ++i) {
        next += OfWidth(width, &prng);
        documents.push_back(static_cast<uint32_t>(next++));
        frequencies.push_back(1 + OfWidth(static_cast<uint32_t>(prng.Below(32)), &prng));
      }
      ByteBuffer bytes;
      AppendPackedBlock(first, documents, frequencies, &bytes);
      const ByteBuffer padded = WithSlack(bytes, &prng);
      const std::byte* end = padded.data() + bytes.size();
      std::vector<uint32_t> d(n + kUnpackSlack), f(n + kUnpackSlack);
      ASSERT_EQ(ReadPackedBlock(padded.data(), end, n, first, documents.back(), d.data(), f.data()), end);
      d.resize(n);
      f.resize(n);
      ASSERT_EQ(d, documents);
      ASSERT_EQ(f, frequencies);
      // The header's last document is checked, as are documents that would pass 2^32.
      d.resize(n + kUnpackSlack);
      f.resize(n + kUnpackSlack);
      EXPECT_EQ(ReadPackedBlock(padded.data(), end, n, first, documents.back() + 1, d.data(), f.data()), nullptr);
      EXPECT_EQ(
          ReadPackedBlock(padded.data(), end, n, first + (uint64_t{1} << 32), documents.back(), d.data(), f.data()),
          nullptr);
    }
  }
}

ListHeaderValues RandomHeaders(uint32_t blocks, bool positions, bool members, size_t pairs, Prng* prng) {
  ListHeaderValues values;
  values.positions = positions;
  values.members = members;
  uint32_t document = 0;
  for (uint32_t b = 0; b < blocks; ++b) {
    if (b % kBlocksPerGroup == 0) {
      GroupHeader group;
      group.payload_base = prng->Next() >> 20;
      group.positions_base = prng->Next() >> 20;
      group.pair_count = static_cast<uint8_t>(1 + prng->Below(2 * pairs));
      for (size_t p = 0; p < group.pair_count; ++p) group.pairs[p] = {uint8_t(200 - p), uint8_t(100 - p)};
      values.groups.push_back(group);
    }
    BlockHeader block;
    block.last_document = document += 1 + static_cast<uint32_t>(prng->Below(5000));
    block.payload_end = (b % 32 + 1) * 100 + static_cast<uint32_t>(prng->Below(50));
    block.positions_end = (b % 32 + 1) * 300 + static_cast<uint32_t>(prng->Below(50));
    block.count = static_cast<uint8_t>(1 + prng->Below(kBlockPostings));
    block.pair_count = static_cast<uint8_t>(1 + prng->Below(pairs));
    for (size_t p = 0; p < block.pair_count; ++p) {
      block.pairs[p] = {static_cast<uint8_t>(250 - 2 * p), static_cast<uint8_t>(90 - p)};
    }
    block.largest = {static_cast<uint8_t>(prng->Next()), static_cast<uint8_t>(prng->Next())};
    values.postings += block.count;
    values.blocks.push_back(block);
  }
  values.largest_postings = values.postings / 2;
  return values;
}

// --- dense windows ---

struct WindowModel {
  std::vector<uint16_t> offsets;
  std::vector<uint32_t> frequencies;
  std::array<uint8_t, kBlocksPerGroup> counts{};
};

// One document in `one_in` has the term; a frequency has up to `bits` bits, one in `far_in` of them (0: none) up to 31.
WindowModel RandomWindow(uint32_t one_in, uint32_t bits, uint32_t far_in, Prng* prng) {
  WindowModel model;
  for (uint32_t offset = 0; offset < kWindowDocuments; ++offset) {
    if (!prng->OneIn(one_in)) continue;
    const bool far = far_in != 0 && prng->OneIn(far_in);
    model.offsets.push_back(static_cast<uint16_t>(offset));
    model.frequencies.push_back(1 + OfWidth(far ? 31 : static_cast<uint32_t>(prng->Below(bits + 1)), prng));
    ++model.counts[offset / kSliceDocuments];
  }
  return model;
}

void ExpectWindow(const Window& window, const WindowModel& model) {
  size_t i = 0;
  for (uint32_t offset = 0; offset < kWindowDocuments; ++offset) {
    const bool there = i < model.offsets.size() && model.offsets[i] == offset;
    ASSERT_EQ(window.FrequencyAt(offset), there ? model.frequencies[i] : 0) << offset;
    i += there ? 1 : 0;
  }
  i = 0;
  for (uint32_t slice = 0; slice < kBlocksPerGroup; ++slice) {
    std::array<uint32_t, kSliceDocuments> documents, frequencies;
    ASSERT_TRUE(window.DecodeSlice(slice, 8192, documents.data(), frequencies.data()));
    for (uint32_t at = 0; at < model.counts[slice]; ++at, ++i) {
      ASSERT_EQ(documents[at], 8192u + model.offsets[i]);
      ASSERT_EQ(frequencies[at], model.frequencies[i]);
    }
  }
}

TEST(DenseWindowTest, RoundTrip) {
  Prng prng(31);
  int columns = 0, bitmaps = 0, with_exceptions = 0;
  for (const uint32_t one_in : {1, 2, 3, 8, 100, 5000}) {
    for (const uint32_t bits : {0, 1, 3, 7, 9}) {
      for (const uint32_t far_in : {0, 2, 40}) {
        const WindowModel model = RandomWindow(one_in, bits, far_in, &prng);
        ByteBuffer bytes;
        const WindowShape shape = AppendWindow(model.offsets, model.frequencies, &bytes);
        const ByteBuffer padded = WithSlack(bytes, &prng);
        Window window;
        ASSERT_TRUE(window.Open(padded.data(), bytes.size(), shape, model.counts.data()));
        ASSERT_EQ(window.size(), bytes.size());
        ASSERT_EQ(window.postings(), model.offsets.size());
        ASSERT_NO_FATAL_FAILURE(ExpectWindow(window, model));
        ++(shape.encoding == WindowEncoding::kColumn ? columns : bitmaps);
        with_exceptions += shape.exceptions != 0 ? 1 : 0;
        // Neither one byte less, nor a count that is another.
        EXPECT_FALSE(window.Open(padded.data(), bytes.size() - 1, shape, model.counts.data()));
        std::array<uint8_t, kBlocksPerGroup> counts = model.counts;
        counts[5] = static_cast<uint8_t>(counts[5] == 0 ? 1 : counts[5] - 1);
        std::array<uint32_t, kSliceDocuments> documents, frequencies;
        if (window.Open(padded.data(), bytes.size(), shape, counts.data())) {
          EXPECT_FALSE(window.DecodeSlice(5, 0, documents.data(), frequencies.data()));
        }
      }
    }
  }
  EXPECT_GT(columns, 20);
  EXPECT_GT(bitmaps, 20);
  EXPECT_GT(with_exceptions, 20);
}

TEST(DenseWindowTest, WhatNoWindowIs) {
  std::vector<uint16_t> offsets;
  std::vector<uint32_t> frequencies;
  std::array<uint8_t, kBlocksPerGroup> counts{};
  for (uint32_t offset = 0; offset < kWindowDocuments; offset += 4) {
    offsets.push_back(static_cast<uint16_t>(offset));
    frequencies.push_back(offset == 700 ? 1'000'000 : offset == 704 ? 200 : 1);
    ++counts[offset / kSliceDocuments];
  }
  ByteBuffer bytes;
  const WindowShape shape = AppendWindow(offsets, frequencies, &bytes);
  ASSERT_EQ(shape, (WindowShape{WindowEncoding::kBitmap, 1, 2}));
  Prng prng(32);
  const ByteBuffer padded = WithSlack(bytes, &prng);
  Window window;
  ASSERT_TRUE(window.Open(padded.data(), bytes.size(), shape, counts.data()));
  const auto opens = [&](WindowShape other) { return window.Open(padded.data(), padded.size(), other, counts.data()); };
  EXPECT_FALSE(opens({static_cast<WindowEncoding>(0), 1, 2}));
  EXPECT_FALSE(opens({static_cast<WindowEncoding>(3), 1, 2}));
  EXPECT_FALSE(opens({WindowEncoding::kBitmap, 9, 2}));
  EXPECT_FALSE(opens({WindowEncoding::kBitmap, 0, 2}));     // nothing could stand for an exception
  EXPECT_FALSE(opens({WindowEncoding::kBitmap, 1, 1025}));  // more than there are postings
  EXPECT_FALSE(opens({WindowEncoding::kColumn, 0, 0}));
  // Exceptions ascend, lie in the window, and are too high for a value.
  const size_t at = bytes.size() - 2 * 6;
  const auto opens_with = [&](size_t where, uint8_t value) {
    ByteBuffer changed = padded;
    changed[where] = static_cast<std::byte>(value);
    return window.Open(changed.data(), bytes.size(), shape, counts.data()) && window.ExceptionsAreValid();
  };
  EXPECT_TRUE(opens_with(at, 0xBD));
  EXPECT_FALSE(opens_with(at, 0xFF));      // 767 before 704
  EXPECT_FALSE(opens_with(at + 3, 0x10));  // 4,288
  EXPECT_FALSE(opens_with(at + 8, 1));     // frequency 1
  EXPECT_FALSE(opens_with(at + 7, 0xFF));  // above 2^31
}

TEST(ListHeadersTest, RoundTrip) {
  Prng prng(9);
  for (const uint32_t blocks : {1u, 2u, 31u, 32u, 33u, 64u, 500u}) {
    for (int variant = 0; variant < 12; ++variant) {
      const ListHeaderValues values =
          RandomHeaders(blocks, variant % 2 != 0, variant / 2 % 2 != 0, 1 + static_cast<size_t>(variant) / 4, &prng);
      ByteBuffer bytes;
      AppendListHeaders(values, &bytes);
      ASSERT_EQ(bytes.size() % kListHeadersAlignment, 0u);
      uint64_t size = 0;
      ASSERT_EQ(ListHeadersBytes(bytes.data(), &size), Decode::kOk);
      ASSERT_LE(size, bytes.size());
      ASSERT_GT(size + kListHeadersAlignment, bytes.size());
      ListHeaders h;
      ReadListHeaders(bytes.data(), &h);
      ASSERT_EQ(h.blocks, blocks);
      ASSERT_EQ(h.groups, values.groups.size());
      ASSERT_EQ(h.postings, values.postings);
      ASSERT_EQ(h.largest_postings, values.largest_postings);
      for (uint32_t b = 0; b < blocks; ++b) {
        const BlockHeader& block = values.blocks[b];
        const GroupHeader& group = values.groups[b / kBlocksPerGroup];
        ASSERT_EQ(h.LastDocument(b), block.last_document);
        ASSERT_EQ(h.Count(b), block.count);
        ASSERT_EQ(h.encodings[b], 1u);
        ASSERT_EQ(h.FirstPossible(b), b == 0 ? 0u : values.blocks[b - 1].last_document + 1u);
        uint64_t offset, length;
        ASSERT_TRUE(h.Payload(b, &offset, &length));
        ASSERT_EQ(offset + length, group.payload_base + block.payload_end);
        ASSERT_EQ(offset, group.payload_base + (b % kBlocksPerGroup == 0 ? 0 : values.blocks[b - 1].payload_end));
        if (values.positions) {
          ASSERT_TRUE(h.Positions(b, &offset, &length));
          ASSERT_EQ(offset + length, group.positions_base + block.positions_end);
        }
        for (uint32_t p = 0; p < h.pairs; ++p) {
          const auto& pair = block.pairs[std::min<size_t>(p, block.pair_count - 1u)];
          ASSERT_EQ(h.pair_frequencies[p * blocks + b], pair.frequency);
          ASSERT_EQ(h.pair_lengths[p * blocks + b], pair.length);
        }
        for (uint32_t p = 0; p < h.group_pairs; ++p) {
          const auto& pair = group.pairs[std::min<size_t>(p, group.pair_count - 1u)];
          ASSERT_EQ(h.group_pair_frequencies[p * h.groups + b / 32], pair.frequency);
          ASSERT_EQ(h.group_pair_lengths[p * h.groups + b / 32], pair.length);
        }
        if (values.members) {
          ASSERT_EQ(h.largest_frequencies[b], block.largest.frequency);
          ASSERT_EQ(h.largest_lengths[b], block.largest.length);
          ASSERT_GE(h.group_largest_frequencies[b / 32], block.largest.frequency);
          ASSERT_LE(h.group_largest_lengths[b / 32], block.largest.length);
        }
      }
      for (int i = 0; i < 200; ++i) {
        const auto from = static_cast<uint32_t>(prng.Below(blocks + 1));
        const auto target = static_cast<uint32_t>(prng.Below(values.blocks.back().last_document + 2));
        uint32_t expected = from;
        while (expected < blocks && values.blocks[expected].last_document < target) ++expected;
        ASSERT_EQ(h.FindBlock(from, target), expected);
      }
    }
  }
}

// --- positions ---

TEST(PositionsTest, StepsAndSumsAreInverse) {
  Prng prng(10);
  for (int round = 0; round < 500; ++round) {
    std::vector<uint32_t> frequencies, positions, steps;
    for (uint64_t m = 1 + prng.Below(4); m > 0; --m) {
      frequencies.push_back(static_cast<uint32_t>(prng.Below(20)));
      uint64_t position = 0;
      for (uint32_t i = 0; i < frequencies.back(); ++i) {
        position += OfWidth(static_cast<uint32_t>(prng.Below(27)), &prng);
        positions.push_back(static_cast<uint32_t>(position));
      }
    }
    ASSERT_TRUE(AppendSteps(frequencies, positions, &steps));
    ASSERT_TRUE(SumSteps(frequencies, steps));
    ASSERT_EQ(steps, positions);
  }
  std::vector<uint32_t> steps;
  const std::vector<uint32_t> two = {2}, falling = {2, 1}, three = {1, 2, 3};
  EXPECT_FALSE(AppendSteps(two, falling, &steps));
  EXPECT_FALSE(AppendSteps(two, three, &steps));
  std::vector<uint32_t> far = {0xFFFFFFFFu, 1};
  EXPECT_FALSE(SumSteps(two, far));
}

}  // namespace
}  // namespace ashlar::format
