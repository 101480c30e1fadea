// The term dictionary as bytes (SPEC T-*).
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/bit_pack.h"
#include "format/posting_block.h"
#include "format/term_block.h"
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

// One posting of the field alone, at `ordinal`, `frequency` times.
ByteBuffer Single(uint32_t ordinal, uint32_t frequency) {
  ByteBuffer bytes;
  AppendShortPosting(ordinal, {&frequency, 1}, 0, &bytes);
  return bytes;
}

struct Terms {
  TermsHeader header;
  ByteBuffer bytes;
  ByteSpan Block(uint64_t block) const {
    const std::byte* index = bytes.data() + header.index_offset;
    const std::byte* pool = index + 4 * (header.block_count + 2);
    const uint64_t begin = LoadU64(pool + LoadU32(index + 4 * block));
    const uint64_t end = LoadU64(pool + LoadU32(index + 4 * (block + 1)));
    return ByteSpan(bytes).subspan(begin, end - begin);
  }
  std::string_view Separator(uint64_t block) const {
    const std::byte* index = bytes.data() + header.index_offset;
    const std::byte* pool = index + 4 * (header.block_count + 2);
    const uint32_t begin = LoadU32(index + 4 * block), end = LoadU32(index + 4 * (block + 1));
    return AsString({pool + begin + 8, end - begin - 8u});
  }
};

Terms Finish(TermsBuilder* builder) {
  Terms terms;
  EXPECT_TRUE(builder->Finish(&terms.bytes));
  EXPECT_TRUE(DecodeTermsHeader(terms.bytes, terms.bytes.size(), &terms.header));
  return terms;
}

// SPEC T, the example: three terms of a field with positions.
Terms Example() {
  TermsBuilder builder({1, 0, true});
  TermEntry stone;  // P's example 2: ordinals 3, 4, 10; 4 bytes of documents, 5 of positions
  stone.postings = stone.largest_postings = 3;
  stone.document_bytes = 4;
  stone.position_bytes = 5;
  builder.Add("stone", stone);
  TermEntry mason;  // once in ordinal 7, at position 12
  const ByteBuffer posting = Single(7, 1);
  const ByteBuffer position = {std::byte{12}};
  mason.postings = mason.largest_postings = 1;
  mason.inline_documents = posting;
  mason.inline_positions = position;
  mason.positions_inline = true;
  builder.Add("stonemason", mason);
  TermEntry wall;  // 200 documents; headers at 64, 450 bytes of payloads and positions
  wall.postings = wall.largest_postings = 200;
  wall.headers_offset = 64;
  wall.list_bytes = 450;
  builder.Add("wall", wall);
  return Finish(&builder);
}

TEST(TermBlockTest, GoldenBytes) {
  const Terms terms = Example();
  EXPECT_EQ(Hex(terms.Block(0)),
            "03 00 14 00 05 73 74 6F 6E 65 05 05 6D 61 73 6F 6E 00 04 77 61 6C 6C 03 04 05 01 0E 0C C8 01 08 C2 03");
  EXPECT_EQ(Hex(ByteSpan(terms.bytes).subspan(terms.header.index_offset, 4 * 3 + 9 + 8)),
            "00 00 00 00 09 00 00 00 11 00 00 00 40 00 00 00 00 00 00 00 73 62 00 00 00 00 00 00 00");
}

TEST(TermBlockTest, ReadsTheExample) {
  const Terms terms = Example();
  EXPECT_EQ(terms.header.term_count, 3u);
  EXPECT_EQ(terms.header.posting_count, 204u);
  TermBlockReader reader;
  ASSERT_TRUE(reader.Init(terms.Block(0), terms.header.shape));
  TermInfo info;
  ASSERT_EQ(reader.Find("stone", &info), 1);
  EXPECT_EQ(info.postings, 3u);
  EXPECT_EQ(info.offset, 0u);
  EXPECT_EQ(info.document_bytes, 4u);
  EXPECT_EQ(info.position_bytes, 5u);
  ASSERT_EQ(reader.Find("stonemason", &info), 1);
  EXPECT_EQ(Hex(info.inline_documents), "0E");
  EXPECT_EQ(Hex(info.inline_positions), "0C");
  ASSERT_EQ(reader.Find("wall", &info), 1);
  EXPECT_TRUE(info.has_blocks());
  EXPECT_EQ(info.offset, 64u);
  for (const char* absent : {"a", "ston", "stoned", "stonemasons", "wal", "walls", "z"}) {
    EXPECT_EQ(reader.Find(absent, &info), 0) << absent;
  }
}

// T-6: up to four positions lie in the entry; more of them in the postings section, where the next list then begins.
TEST(TermBlockTest, ManyPositionsOfASinglePostingLieOutside) {
  TermsBuilder builder({1, 0, true});
  const ByteBuffer four = Single(1, 4), five = Single(2, 5);
  const ByteBuffer positions(4, std::byte{1});
  TermEntry inside, outside, after;
  inside.postings = inside.largest_postings = 1;
  inside.inline_documents = four;
  inside.inline_positions = positions;
  inside.positions_inline = true;
  builder.Add("a", inside);
  outside.postings = outside.largest_postings = 1;
  outside.inline_documents = five;
  outside.position_bytes = 6;
  builder.Add("b", outside);
  after.postings = after.largest_postings = 2;
  after.document_bytes = 3;
  after.position_bytes = 2;
  builder.Add("c", after);
  const Terms terms = Finish(&builder);
  TermBlockReader reader;
  ASSERT_TRUE(reader.Init(terms.Block(0), terms.header.shape));
  TermInfo info;
  ASSERT_EQ(reader.Find("a", &info), 1);
  EXPECT_EQ(info.inline_positions.size(), 4u);
  ASSERT_EQ(reader.Find("b", &info), 1);
  EXPECT_TRUE(info.inline_positions.empty());
  EXPECT_EQ(info.offset, 0u);
  EXPECT_EQ(info.position_bytes, 6u);
  ASSERT_EQ(reader.Find("c", &info), 1);
  EXPECT_EQ(info.offset, 6u);
}

class TermsPropertyTest : public ::testing::TestWithParam<uint32_t> {};

// Random terms and entries of a group of as many members; every term is found, every other is not, and in order.
TEST_P(TermsPropertyTest, RoundTrip) {
  const uint32_t members = GetParam();
  Prng prng(members);
  std::map<std::string, TermEntry> model;
  std::map<std::string, ByteBuffer> postings;
  const IndexShape shape{members, members - 1, false};
  for (int i = 0; i < 3000; ++i) {
    std::string term;
    const size_t size = 1 + prng.Below(prng.OneIn(30) ? kTermBytesMax : 7);
    for (size_t c = 0; c < size; ++c) term += static_cast<char>(prng.OneIn(20) ? prng.Below(256) : 'a' + prng.Below(2));
    TermEntry entry;
    entry.postings = prng.OneIn(2) ? 1 : 1 + static_cast<uint32_t>(prng.Below(400));
    entry.largest_postings = members == 1 ? entry.postings : static_cast<uint32_t>(prng.Below(entry.postings + 1));
    if (entry.postings == 1) {
      std::vector<uint32_t> frequencies(members);
      frequencies[entry.largest_postings != 0 ? shape.largest : 0] = 1 + static_cast<uint32_t>(prng.Below(3));
      postings[term].clear();
      AppendShortPosting(static_cast<uint32_t>(prng.Next() >> 40), frequencies, shape.largest, &postings[term]);
    } else if (entry.postings < kBlockListPostings) {
      entry.document_bytes = 1 + prng.Below(300);
    } else {
      entry.headers_offset = 8 * prng.Below(1 << 20);
      entry.list_bytes = prng.Below(uint64_t{1} << 40);
    }
    model[term] = entry;
  }
  TermsBuilder builder(shape);
  for (auto& [term, entry] : model) {
    if (entry.postings == 1) entry.inline_documents = postings[term];
    builder.Add(term, entry);
  }
  const Terms terms = Finish(&builder);
  ASSERT_EQ(terms.header.term_count, model.size());

  auto expected = model.begin();
  uint64_t offset = 0;
  std::string term;
  for (uint64_t b = 0; b < terms.header.block_count; ++b) {
    TermBlockReader reader;
    ASSERT_TRUE(reader.Init(terms.Block(b), shape));
    ASSERT_LE(terms.Separator(b), expected->first);
    if (b > 0) {
      ASSERT_GT(terms.Separator(b), std::prev(expected)->first);
    }
    TermInfo info;
    for (uint32_t i = 0; i < reader.count(); ++i, ++expected) {
      ASSERT_TRUE(reader.Next(&term, &info));
      ASSERT_EQ(term, expected->first);
      const TermEntry& entry = expected->second;
      TermInfo found;
      ASSERT_EQ(reader.Find(term, &found), 1);
      for (const TermInfo& got : {info, found}) {
        ASSERT_EQ(got.postings, entry.postings);
        ASSERT_EQ(got.largest_postings, entry.largest_postings);
        ASSERT_EQ(got.document_bytes, entry.document_bytes);
        ASSERT_EQ(got.offset, entry.postings < kBlockListPostings ? offset : entry.headers_offset);
        ASSERT_EQ(Hex(got.inline_documents), Hex(entry.inline_documents));
      }
      offset += entry.document_bytes + entry.list_bytes;
      for (const std::string& other : {term + 'a', term + '\0', term.substr(0, term.size() - 1), term + "\xff"}) {
        if (other.empty() || other.size() > kTermBytesMax) continue;
        ASSERT_LE(reader.Find(other, &found), model.contains(other) ? 1 : 0);
        ASSERT_GE(reader.Find(other, &found), 0);
      }
    }
    ASSERT_FALSE(reader.Next(&term, &info));
    ASSERT_TRUE(reader.ok());
  }
  EXPECT_EQ(expected, model.end());
}

INSTANTIATE_TEST_SUITE_P(Members, TermsPropertyTest, ::testing::Values(1u, 2u, 3u));

TEST(TermsHeaderTest, RefusesWhatBreaksTheRule) {
  const Terms terms = Example();
  const auto decodes = [&](size_t at, uint8_t value) {
    ByteBuffer bytes = terms.bytes;
    bytes[at] = static_cast<std::byte>(value);
    TermsHeader header;
    return DecodeTermsHeader(bytes, bytes.size(), &header);
  };
  EXPECT_TRUE(decodes(0, 1));
  EXPECT_FALSE(decodes(0, 0));   // no member
  EXPECT_FALSE(decodes(1, 8));   // too many
  EXPECT_FALSE(decodes(4, 1));   // largest is no member
  EXPECT_FALSE(decodes(8, 2));   // unknown flag
  for (const size_t reserved : {12, 15, 48, 56, 63}) EXPECT_FALSE(decodes(reserved, 1)) << reserved;
  EXPECT_FALSE(decodes(32, 200));  // blocks beyond the section
  EXPECT_FALSE(decodes(40, 10));   // index inside the header
  EXPECT_FALSE(decodes(45, 1));    // index beyond the section
  TermsHeader header;
  EXPECT_FALSE(DecodeTermsHeader(ByteSpan(terms.bytes).first(63), 63, &header));
  EXPECT_FALSE(DecodeTermsHeader(terms.bytes, kTermsHeaderBytes + kPackedSlack - 1, &header));
}

// Every bit of a block: an error or an answer, never a step outside (run under a sanitizer).
TEST(TermBlockTest, EveryBitFlipIsSafe) {
  const Terms terms = Example();
  const ByteSpan block = terms.Block(0);
  size_t changed = 0;
  for (size_t bit = 0; bit < 8 * block.size(); ++bit) {
    ByteBuffer damaged(block.begin(), block.end());
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    TermBlockReader reader;
    TermInfo info;
    std::string term, all;
    bool failed = !reader.Init(damaged, terms.header.shape);
    for (const char* name : {"stone", "stonemason", "wall", "w"}) failed |= reader.Find(name, &info) < 0;
    while (reader.Next(&term, &info)) {
      ASSERT_GE(info.postings, 1u);
      ASSERT_LE(term.size(), kTermBytesMax);
      all += term + Hex(info.inline_documents) + Hex(info.inline_positions) + std::to_string(info.postings) + ',' +
             std::to_string(info.offset) + ',' + std::to_string(info.document_bytes + info.position_bytes);
    }
    failed |= !reader.ok();
    changed += failed || all != "stone3,0,9stonemason0E0C1,9,0wall200,64,0" ? 1 : 0;
  }
  EXPECT_GT(changed * 10, 8 * block.size() * 9);
}

}  // namespace
}  // namespace ashlar::format
