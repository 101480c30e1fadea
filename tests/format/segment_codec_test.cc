// Codecs of a segment's sections (SPEC S, K, Z, V), each alone: round trips, vectors of the specification, bad bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "format/column.h"
#include "format/key_block.h"
#include "format/lengths.h"
#include "format/packed_numbers.h"
#include "format/page_checksums.h"
#include "format/section_table.h"
#include "format/segment_meta.h"
#include "format/stored_block.h"
#include "src/base/checksum.h"
#include "src/base/prng.h"

namespace ashlar::format {
namespace {

ByteBuffer Hex(std::string_view text) {
  ByteBuffer out;
  for (size_t i = 0; i + 1 < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    out.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
    i += 2;
  }
  return out;
}

TEST(PackedNumbers, K1_HoldAnyWidth) {
  Prng random(1);
  for (unsigned width = 0; width <= 64; ++width) {
    std::vector<uint64_t> values(1 + random.Below(200));
    for (uint64_t& v : values) v = width == 0 ? 0 : random.Next() >> (64 - width);
    ByteBuffer bytes;
    AppendPacked(values, width, &bytes);
    ASSERT_EQ(bytes.size(), PackedNumberBytes(values.size(), width));
    const PlainBytes plain{bytes};
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(PackedAt(bytes.data(), i, width), values[i]);
      uint64_t v = 0;
      ASSERT_TRUE(ReadPacked(plain, 0, i, width, &v));
      EXPECT_EQ(v, values[i]);
    }
    uint64_t v = 0;
    if (width > 0) {
      EXPECT_FALSE(ReadPacked(plain, 0, bytes.size() * 8, width, &v));
    }
  }
}

TEST(PackedNumbers, K1_Vector) {
  ByteBuffer bytes;
  AppendPacked(std::array<uint64_t, 3>{5, 0, 7}, 3, &bytes);
  EXPECT_EQ(bytes, Hex("C5 01 00 00 00 00 00 00"));
}

std::vector<uint64_t> NumbersOfKind(uint64_t kind, size_t count, Prng* random) {
  std::vector<uint64_t> numbers(count);
  uint64_t at = random->Below(1000);
  for (uint64_t& n : numbers) {
    switch (kind) {
      case 0: at += 1; break;                   // a constant stride
      case 1: at += random->Below(20); break;   // ascending
      case 2: at = random->Next(); break;       // anything
      default: at += uint64_t{1} << 50; break;  // huge strides
    }
    n = at;
  }
  return numbers;
}

TEST(NumberArray, K2_HoldsAnything) {
  Prng random(2);
  for (uint64_t round = 0; round < 40; ++round) {
    const std::vector<uint64_t> numbers = NumbersOfKind(round % 4, 1 + random.Below(2000), &random);
    NumberArrayWriter writer;
    for (const uint64_t n : numbers) writer.Add(n);
    ByteBuffer bytes;
    writer.Finish(&bytes);
    if (round % 4 == 0) {
      EXPECT_EQ(bytes.size(), (numbers.size() + 511) / 512 * kNumberBlockBytes);
    }
    const PlainBytes plain{bytes};
    const NumberArray<PlainBytes> array(PartOf(plain, 0, bytes.size()), numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      uint64_t v = 0;
      ASSERT_TRUE(array.At(i, &v));
      EXPECT_EQ(v, numbers[i]);
    }
    uint64_t v = 0;
    EXPECT_FALSE(array.At(numbers.size(), &v));
    if (!std::is_sorted(numbers.begin(), numbers.end())) continue;
    for (int i = 0; i < 50; ++i) {
      const uint64_t target = numbers[random.Below(numbers.size())] + random.Below(3) - 1;
      uint64_t found = 0;
      ASSERT_TRUE(array.LowerBound(target, &found));
      EXPECT_EQ(found,
                static_cast<uint64_t>(std::lower_bound(numbers.begin(), numbers.end(), target) - numbers.begin()));
    }
  }
}

std::vector<std::string> RandomStrings(Prng* random) {
  std::set<std::string> strings;
  const size_t count = 1 + random->Below(300);
  while (strings.size() < count) {
    std::string s(random->OneIn(2) ? random->Below(40) : 0, 'p');
    const uint64_t n = 1 + random->Below(random->OneIn(20) ? 500 : 9);
    for (uint64_t i = 0; i < n; ++i) s += static_cast<char>(random->Below(256));
    strings.insert(s);
  }
  return {strings.begin(), strings.end()};
}

TEST(SortedStrings, K3_AreFoundByRankAndByValue) {
  Prng random(3);
  for (int round = 0; round < 30; ++round) {
    const std::vector<std::string> strings = RandomStrings(&random);
    SortedStringsWriter writer;
    for (const std::string& s : strings) writer.Add(s);
    ByteBuffer bytes(random.Below(64));
    const StringsPlace place = writer.Finish(&bytes);
    const PlainBytes plain{bytes};
    const SortedStrings<PlainBytes> reader(plain, place);
    std::string s;
    for (uint32_t rank = 0; rank < strings.size(); ++rank) {
      ASSERT_TRUE(reader.At(rank, &s));
      EXPECT_EQ(s, strings[rank]);
      for (const std::string& target :
           {strings[rank], strings[rank] + '\0', strings[rank].substr(0, strings[rank].size() / 2)}) {
        uint32_t found = 0;
        bool equal = false;
        ASSERT_TRUE(reader.LowerBound(target, &found, &equal));
        const auto expected = std::lower_bound(strings.begin(), strings.end(), target);
        EXPECT_EQ(found, static_cast<uint32_t>(expected - strings.begin()));
        EXPECT_EQ(equal, expected != strings.end() && *expected == target);
      }
    }
    EXPECT_FALSE(reader.At(static_cast<uint32_t>(strings.size()), &s));
  }
}

TEST(SortedStrings, K3_Vector) {
  SortedStringsWriter writer;
  for (const char* s : {"doc1", "doc10", "doc2"}) writer.Add(s);
  ByteBuffer bytes;
  const StringsPlace place = writer.Finish(&bytes);
  EXPECT_EQ(ByteBuffer(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(place.blocks_length)),
            Hex("04 64 6F 63 31  41 30  31 32"));
}

TEST(StringBlock, K3_AnyBytesAreSafe) {
  Prng random(4);
  for (int round = 0; round < 3000; ++round) {
    ByteBuffer bytes(random.Below(60));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random.OneIn(2) ? random.Below(8) : random.Next());
    StringBlockReader reader{bytes};
    size_t read = 0;
    while (reader.Next()) {
      ++read;
      EXPECT_LE(reader.value().size(), bytes.size() * kStringsPerBlock);
    }
    EXPECT_LE(read, kStringsPerBlock);
  }
}

TEST(KeyFilter, K5_KnowsItsKeysAndFewOthers) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{30000}}) {
    ByteBuffer filter(KeyFilterBytes(count));
    ASSERT_EQ(filter.size() % kFilterBlockBytes, 0u);
    const auto may_hold = [&](const std::string& key) {
      const uint64_t hash = HashBytes(key);
      return KeyFilterMayHold(hash, filter.data() + KeyFilterBlock(hash, filter.size()));
    };
    for (uint64_t i = 0; i < count; ++i) AddToKeyFilter(HashBytes(absl::StrCat("key", i)), filter);
    for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(may_hold(absl::StrCat("key", i)));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < 30000; ++i) wrong += may_hold(absl::StrCat("other", i)) ? 1 : 0;
    EXPECT_LT(wrong, 30000u * 2 / 100);
  }
}

TEST(Lengths, K6_EscapeWhatIsLong) {
  const std::vector<uint32_t> lengths = {0, 7, 65534, 65535, 65536, 4000000000u, 1};
  const ByteBuffer bytes = EncodeLengths(lengths);
  const std::optional<LengthsView> view = DecodeLengths(bytes, static_cast<uint32_t>(lengths.size()));
  ASSERT_TRUE(view.has_value());
  ASSERT_EQ(view->exception_count, 3u);
  size_t exception = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const uint16_t code = LoadU16(view->codes + 2 * i);
    if (lengths[i] < kLengthEscape) {
      EXPECT_EQ(code, lengths[i]);
      continue;
    }
    EXPECT_EQ(code, kLengthEscape);
    EXPECT_EQ(LoadU32(view->exceptions + 8 * exception), i);
    EXPECT_EQ(LoadU32(view->exceptions + 8 * exception++ + 4), lengths[i]);
  }
  EXPECT_FALSE(DecodeLengths(ByteSpan(bytes).first(bytes.size() - 1), 7).has_value());
  EXPECT_FALSE(DecodeLengths(ByteSpan(bytes).first(12), 7).has_value());
  EXPECT_FALSE(DecodeLengths(bytes, 1).has_value());
}

std::string TextOf(size_t size, Prng* random) {
  std::string s;
  while (s.size() < size) absl::StrAppend(&s, "word", random->Below(random->Below(500) + 1), " ");
  s.resize(size);
  return s;
}

TEST(StoredBlock, Z2_ComesBackWithAndWithoutADictionary) {
  Prng random(5);
  ByteBuffer samples;
  std::vector<size_t> sizes;
  for (int i = 0; i < 1000; ++i) {
    const std::string s = TextOf(200, &random);
    const ByteSpan bytes = AsBytes(s);
    samples.insert(samples.end(), bytes.begin(), bytes.end());
    sizes.push_back(s.size());
  }
  const std::optional<ByteBuffer> dictionary = MakeDictionary(samples, sizes);
  ASSERT_TRUE(dictionary.has_value());
  const std::unique_ptr<Compressor> compressor = Compressor::Create(*dictionary);
  const std::unique_ptr<Decompressor> decompressor = Decompressor::Create(*dictionary);
  ASSERT_TRUE(compressor != nullptr && decompressor != nullptr);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{3000}, size_t{300000}}) {
    const std::string text = TextOf(size, &random);
    ByteBuffer with, without, raw;
    ASSERT_TRUE(AppendStoredBlock(AsBytes(text), 3, compressor.get(), &with));
    ASSERT_TRUE(AppendStoredBlock(AsBytes(text), 3, nullptr, &without));
    EXPECT_LE(with.size(), size + 4);
    const bool plain = with[0] == std::byte{kStoredPlain};
    if (!plain) {
      EXPECT_EQ(with[0], std::byte{3});
    }
    ASSERT_TRUE(DecodeStoredBlock(with, plain ? nullptr : decompressor.get(), &raw));
    EXPECT_EQ(AsString(raw), text);
    ASSERT_TRUE(DecodeStoredBlock(without, nullptr, &raw));
    EXPECT_EQ(AsString(raw), text);
    if (size == 3000) {
      EXPECT_LT(with.size(), without.size());
    }
  }
}

TEST(StoredBlock, Z3_FalseSizesAreRefused) {
  Prng random(6);
  const std::string text = TextOf(3000, &random);
  ByteBuffer block, raw;
  ASSERT_TRUE(AppendStoredBlock(AsBytes(text), 1, nullptr, &block));
  for (const uint64_t claimed : {uint64_t{0}, uint64_t{2999}, uint64_t{3001}, uint64_t{1} << 29, uint64_t{1} << 40}) {
    ByteBuffer forged(1);
    ByteWriter w(&forged);
    w.Varint(claimed);
    w.Span(ByteSpan(block).subspan(3));
    EXPECT_FALSE(DecodeStoredBlock(forged, nullptr, &raw)) << claimed;
  }
  EXPECT_FALSE(DecodeStoredBlock(ByteSpan(block).first(block.size() - 1), nullptr, &raw));
  EXPECT_FALSE(DecodeStoredBlock({}, nullptr, &raw));
  for (int round = 0; round < 2000; ++round) {  // any bytes are safe
    ByteBuffer damaged = block;
    damaged[random.Below(damaged.size())] = static_cast<std::byte>(random.Next());
    if (DecodeStoredBlock(damaged, nullptr, &raw)) {
      EXPECT_LE(raw.size(), kStoredRawBytesMax);
    }
  }
}

TEST(StoredBlock, Z2_DocumentsAreCutByTheirLengths) {
  const ByteBuffer raw = Hex("02 00 03  61 62  63 64 65");
  EXPECT_EQ(AsString(*StoredDocument(raw, 3, 0)), "ab");
  EXPECT_EQ(AsString(*StoredDocument(raw, 3, 1)), "");
  EXPECT_EQ(AsString(*StoredDocument(raw, 3, 2)), "cde");
  EXPECT_FALSE(StoredDocument(raw, 3, 3).has_value());
  EXPECT_FALSE(StoredDocument(ByteSpan(raw).first(7), 3, 2).has_value());
  EXPECT_FALSE(StoredDocument(ByteSpan(raw).first(2), 3, 0).has_value());
}

TEST(StoredTrailer, Z4_ComesBackAndIsChecked) {
  StoredTrailer t;
  t.documents = 100;
  t.blocks = 10;
  t.blocks_length = 5000;
  t.first_offset = 5000, t.first_length = 24;
  t.places_offset = 5024, t.places_length = 80;
  t.table_offset = 5104;
  t.dictionaries = 2;
  ByteBuffer bytes;
  EncodeStoredTrailer(t, &bytes);
  ASSERT_EQ(bytes.size(), kStoredTrailerBytes);
  EXPECT_EQ(DecodeStoredTrailer(bytes, 5200), t);
  EXPECT_FALSE(DecodeStoredTrailer(bytes, 5110).has_value());
  StoreU32(bytes.data() + 56, kStoredDictionariesMax + 1);
  EXPECT_FALSE(DecodeStoredTrailer(bytes, 5200).has_value());
}

TEST(ColumnCodes, V1_CompareAsValuesDo) {
  const std::vector<int64_t> integers = {INT64_MIN, -5, -1, 0, 1, 7, INT64_MAX};
  for (size_t i = 0; i < integers.size(); ++i) {
    EXPECT_EQ(IntegerOfCode(IntegerCode(integers[i])), integers[i]);
    if (i > 0) {
      EXPECT_LT(IntegerCode(integers[i - 1]), IntegerCode(integers[i]));
    }
  }
  const std::vector<double> doubles = {-1e300, -1.5, -1e-310, -0.0, 0.0, 1e-310, 2.0, 1e300};
  for (size_t i = 0; i < doubles.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(DoubleOfCode(DoubleCode(doubles[i]))), std::bit_cast<uint64_t>(doubles[i]));
    if (i > 0) {
      EXPECT_LT(DoubleCode(doubles[i - 1]), DoubleCode(doubles[i]));
    }
  }
}

TEST(Column, V3_EveryFormComesBack) {
  Prng random(7);
  for (uint64_t form = 0; form < 8; ++form) {
    const uint64_t most = form % 4;  // 0: none, 1: one each, 2: at most one, 3: many
    std::vector<std::vector<uint64_t>> documents(1 + random.Below(1500));
    ColumnWriter writer(FieldType::kInt64);
    for (auto& codes : documents) {
      const uint64_t n = most == 0 ? 0 : most == 1 ? 1 : random.Below(most);
      for (uint64_t i = 0; i < n; ++i)
        codes.push_back(form < 4 ? 1000 + random.Below(50) : random.OneIn(9) ? random.Next() : 5);
      std::sort(codes.begin(), codes.end());
      writer.Add(codes);
    }
    const ByteBuffer bytes = writer.Finish(nullptr);
    const auto header = DecodeColumnHeader(ByteSpan(bytes).first(kColumnHeaderBytes), bytes.size());
    ASSERT_TRUE(header.has_value());
    EXPECT_FALSE(DecodeColumnHeader(ByteSpan(bytes).first(kColumnHeaderBytes), kColumnHeaderBytes).has_value());
    const PlainBytes plain{bytes};
    const Column<PlainBytes> column(plain, *header);
    for (uint32_t i = 0; i < documents.size(); ++i) {
      std::vector<uint64_t> codes;
      ASSERT_TRUE(column.Codes(i, &codes));
      EXPECT_EQ(codes, documents[i]);
    }
    std::vector<uint64_t> codes;
    EXPECT_FALSE(column.Codes(static_cast<uint32_t>(documents.size()), &codes));
  }
}

SegmentFooter SomeFooter() {
  SegmentFooter f;
  f.data_end = 8192;
  f.root_count = 1;
  f.root_offset = AlignSection(8192 + 2 * 8);
  f.table_offset = AlignSection(f.root_offset + 8);
  f.table_count = 2;
  f.file_bytes = f.table_offset + 2 * kSectionEntryBytes + kSegmentFooterBytes;
  f.generation = 12;
  f.file_id.fill(std::byte{0xAB});
  return f;
}

TEST(SegmentFooter, S6_ComesBackAndEveryBitIsChecked) {
  const SegmentFooter f = SomeFooter();
  std::array<std::byte, kSegmentFooterBytes> bytes{};
  EncodeSegmentFooter(f, bytes);
  const auto decoded = DecodeSegmentFooter(bytes, f.file_id, f.file_bytes, "file");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, f);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::array<std::byte, kSegmentFooterBytes> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_TRUE(absl::IsDataLoss(DecodeSegmentFooter(damaged, f.file_id, f.file_bytes, "file").status())) << bit;
  }
  FileId other = f.file_id;
  other[0] ^= std::byte{1};
  EXPECT_TRUE(absl::IsDataLoss(DecodeSegmentFooter(bytes, other, f.file_bytes, "file").status()));
}

TEST(SectionTable, S4_GapsOverlapsAndTwinsAreDamage) {
  const auto decode = [](std::vector<SectionEntry> entries) {
    SegmentFooter f = SomeFooter();
    ByteBuffer bytes;
    EncodeSectionTable(entries, &bytes);
    f.table_count = static_cast<uint32_t>(entries.size());
    f.table_checksum = Checksum(bytes, PlaceSeed(f.file_id, f.table_offset));
    return DecodeSectionTable(bytes, f, "file").status();
  };
  const std::vector<SectionEntry> good = {{SectionKind::kStored, 0, 0, 64, 1000},
                                          {SectionKind::kMeta, 0, 0, 1088, 8192 - 1088}};
  EXPECT_TRUE(decode(good).ok());
  std::vector<SectionEntry> bad = good;
  bad[1].offset += 64, bad[1].length -= 64;
  EXPECT_TRUE(absl::IsDataLoss(decode(bad)));  // a gap
  bad = good;
  bad[0].length += 64;
  EXPECT_TRUE(absl::IsDataLoss(decode(bad)));  // an overlap
  bad = good;
  bad[1].length = UINT64_MAX - 10;
  EXPECT_TRUE(absl::IsDataLoss(decode(bad)));
  bad = good;
  bad[1].length -= 64;
  EXPECT_TRUE(absl::IsDataLoss(decode(bad)));  // data that no section holds
  bad = good;
  bad[1].kind = SectionKind::kStored;
  EXPECT_TRUE(absl::IsDataLoss(decode(bad)));
  bad = good;
  bad[1].flags = 2;
  EXPECT_TRUE(absl::IsUnimplemented(decode(bad)));
  bad[1].flags = 3;
  EXPECT_TRUE(decode(bad).ok());
}

TEST(PageChecksums, S5_DependOnPlaceAndFileOnly) {
  Prng random(8);
  FileId id{};
  ByteBuffer bytes(3 * kPageBytes + 100);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.Next());
  PageChecksummer pieces(id), whole(id);
  whole.Append(bytes);
  whole.Finish();
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(1 + random.Below(3000), bytes.size() - at);
    pieces.Append(ByteSpan(bytes).subspan(at, n));
    at += n;
  }
  pieces.Finish();
  EXPECT_EQ(pieces.sums(), whole.sums());
  ASSERT_EQ(whole.sums().size(), 4u);
  EXPECT_EQ(whole.sums()[3], PageChecksum(id, 3 * kPageBytes, ByteSpan(bytes).subspan(3 * kPageBytes)));
  const ByteSpan page = ByteSpan(bytes).first(kPageBytes);
  EXPECT_NE(PageChecksum(id, 0, page), PageChecksum(id, kPageBytes, page));
  FileId other{};
  other[15] = std::byte{1};
  EXPECT_NE(PageChecksum(id, 0, page), PageChecksum(other, 0, page));
}

TEST(SegmentMeta, S9_ComesBackAndTruncationsAreRefused) {
  SegmentMeta m;
  m.number = 4;
  m.generation = 9;
  m.documents = 3;
  m.first_id = 10;
  m.last_id = 15;
  m.schema_number = 2;
  Field f;
  f.name = "body";
  m.schema.fields = {f};
  m.schema.default_group = {"body"};
  m.analyzer_identity = "ashlar-1";
  m.largest_field = 0;
  m.indexes = {{0, 5, 6}, {kGroupIndex, 5, 6}};
  m.lengths = {{0, 77}};
  const ByteBuffer bytes = EncodeSegmentMeta(m);
  EXPECT_EQ(DecodeSegmentMeta(bytes), m);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(DecodeSegmentMeta(ByteSpan(bytes).first(n)).has_value());
  SegmentMeta bad = m;
  bad.last_id = 11;  // no room for three documents
  EXPECT_FALSE(DecodeSegmentMeta(EncodeSegmentMeta(bad)).has_value());
  bad = m;
  bad.indexes = {{1, 5, 6}};
  EXPECT_FALSE(DecodeSegmentMeta(EncodeSegmentMeta(bad)).has_value());
  bad = m;
  bad.largest_field = kNoField;
  EXPECT_FALSE(DecodeSegmentMeta(EncodeSegmentMeta(bad)).has_value());
}

}  // namespace
}  // namespace ashlar::format
