// The overlay against the plainest model of it: a list of documents, looked through for every question.
#include "src/overlay/overlay.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/base/prng.h"
#include "src/base/status.h"

namespace ashlar::overlay {
namespace {

using format::kGroupIndex;
using format::kNoDocument;

struct Word {
  std::string term;
  uint32_t position;
};

// A document by hand: the overlay takes analysed ones, and needs no analyzer to be tested.
struct PlainDocument {
  DocumentId id = 0;
  std::string key;
  std::map<uint32_t, std::vector<Word>> fields;
  std::string encoded;
  Sequence death = 0;

  text::AnalyzedDocument Analyzed() const {
    text::AnalyzedDocument analyzed;
    analyzed.key = key;
    const ByteSpan bytes = AsBytes(encoded);
    analyzed.encoded.assign(bytes.begin(), bytes.end());
    for (const auto& [field, words] : fields) {
      text::FieldTokens tokens;
      tokens.field = field;
      for (const Word& word : words) {
        tokens.stream.tokens.push_back({static_cast<uint32_t>(tokens.stream.bytes.size()),
                                        static_cast<uint16_t>(word.term.size()), word.position});
        tokens.stream.bytes += word.term;
      }
      analyzed.fields.push_back(std::move(tokens));
    }
    analyzed.field_count = analyzed.fields.size();
    return analyzed;
  }
};

// 0 key, 1 a, 2 tag, 3 b, 4 c, 5 bare (text without positions), 6 number.
Schema TestSchema(std::vector<std::string> group, bool positions = true) {
  const auto field = [](const char* name, FieldType type, bool with_positions) {
    Field f;
    f.name = name;
    f.type = type;
    f.positions = with_positions;
    return f;
  };
  Schema schema;
  schema.key = "key";
  schema.default_group = std::move(group);
  schema.fields = {field("key", FieldType::kKeyword, false), field("a", FieldType::kText, positions),
                   field("tag", FieldType::kKeyword, false), field("b", FieldType::kText, positions),
                   field("c", FieldType::kText, positions),  field("bare", FieldType::kText, false),
                   field("number", FieldType::kInt64, false)};
  return schema;
}

struct Posting {
  uint32_t document;
  uint32_t frequency;
  std::vector<uint32_t> positions;
  std::vector<uint32_t> row_frequencies;
  std::vector<uint32_t> row_positions;
  bool operator==(const Posting&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Posting& p) {
  return out << "{" << p.document << " x" << p.frequency << ", " << p.positions.size() << " positions}";
}

class Model {
 public:
  explicit Model(const Schema& schema) : schema_(schema) {
    for (const std::string& name : schema.default_group) group_.push_back(static_cast<uint32_t>(schema.IndexOf(name)));
    std::sort(group_.begin(), group_.end());
  }

  std::vector<uint32_t> MembersOf(format::IndexId index) const {
    return index == kGroupIndex ? group_ : std::vector<uint32_t>{index};
  }

  std::vector<Posting> Postings(format::IndexId index, const std::string& term, uint32_t n) const {
    std::vector<Posting> postings;
    for (uint32_t ordinal = 0; ordinal < n; ++ordinal) {
      Posting posting{ordinal, 0, {}, {}, {}};
      for (const uint32_t field : MembersOf(index)) {
        const uint32_t before = posting.frequency;
        AddField(documents[ordinal], field, term, &posting);
        posting.row_frequencies.push_back(posting.frequency - before);
      }
      if (MembersOf(index).size() == 1) posting.positions = posting.row_positions;
      if (posting.frequency > 0) postings.push_back(std::move(posting));
    }
    return postings;
  }

  uint32_t Length(format::IndexId index, uint32_t ordinal) const {
    size_t length = 0;
    for (const uint32_t field : MembersOf(index)) {
      const auto found = documents[ordinal].fields.find(field);
      if (found != documents[ordinal].fields.end()) length += found->second.size();
    }
    return static_cast<uint32_t>(length);
  }

  std::set<std::string> Terms(format::IndexId index) const {
    std::set<std::string> terms;
    for (const PlainDocument& document : documents) {
      for (const uint32_t field : MembersOf(index)) {
        const auto found = document.fields.find(field);
        if (found == document.fields.end()) continue;
        for (const Word& word : found->second) terms.insert(word.term);
      }
    }
    return terms;
  }

  std::optional<uint32_t> FindKey(const std::string& key, uint32_t n, Sequence at) const {
    for (uint32_t ordinal = n; ordinal-- > 0;) {
      const PlainDocument& document = documents[ordinal];
      if (document.key == key && (document.death == 0 || document.death > at)) return ordinal;
    }
    return std::nullopt;
  }

  std::vector<PlainDocument> documents;

 private:
  void AddField(const PlainDocument& document, uint32_t field, const std::string& term, Posting* posting) const {
    const auto found = document.fields.find(field);
    if (found == document.fields.end()) return;
    const Field& definition = schema_.fields[field];
    for (const Word& word : found->second) {
      if (word.term != term) continue;
      ++posting->frequency;
      if (definition.type == FieldType::kText && definition.positions) posting->row_positions.push_back(word.position);
    }
  }

  Schema schema_;
  std::vector<uint32_t> group_;
};

std::vector<Posting> Walk(Cursor cursor) {
  std::vector<Posting> postings;
  for (; cursor.document() != kNoDocument; cursor.Next()) {
    Posting posting{cursor.document(), cursor.frequency(), {}, {}, {}};
    cursor.AppendPositions(&posting.positions);
    cursor.AppendRow(&posting.row_frequencies, &posting.row_positions);
    postings.push_back(std::move(posting));
  }
  cursor.Next();  // stays at the end
  EXPECT_EQ(cursor.document(), kNoDocument);
  return postings;
}

void ExpectSeeksAgree(const std::vector<Posting>& expected, Cursor cursor, Prng* prng) {
  uint32_t at = 0;
  for (uint32_t target = 0; target < 400; target += static_cast<uint32_t>(1 + prng->Below(60))) {
    cursor.Seek(target);
    while (at < expected.size() && expected[at].document < target) ++at;
    ASSERT_EQ(cursor.document(), at < expected.size() ? expected[at].document : kNoDocument);
    if (at == expected.size()) return;
    ASSERT_EQ(cursor.frequency(), expected[at].frequency);
    cursor.Seek(target == 0 ? 0 : target - 1);  // never back
    ASSERT_EQ(cursor.document(), expected[at].document);
  }
}

// The postings by block, from the last block to the first, and what bounds them.
void ExpectBlocksAgree(const std::vector<Posting>& expected, const Overlay& overlay, format::IndexId index,
                       Cursor cursor) {
  const BlockBounds bounds = cursor.bounds();
  ASSERT_EQ(bounds.headers != nullptr, bounds.pairs != 0);
  const uint32_t blocks = bounds.pairs == 0 ? 1 : bounds.headers->blocks;
  size_t end = expected.size();
  for (uint32_t block = blocks; block-- > 0;) {
    if (bounds.pairs != 0) ASSERT_TRUE(cursor.MoveToBlock(block));
    const auto documents = cursor.block_documents(), frequencies = cursor.block_frequencies();
    ASSERT_LE(documents.size(), end);
    const size_t begin = end - documents.size();
    for (size_t i = 0; i < documents.size(); ++i) {
      ASSERT_EQ(documents[i], expected[begin + i].document);
      ASSERT_EQ(frequencies[i], expected[begin + i].frequency);
      if (bounds.pairs == 0) continue;
      ASSERT_EQ(bounds.headers->FindBlock(0, documents[i]), block);
      ASSERT_GE(documents[i], bounds.headers->FirstPossible(block));
      const uint32_t length = overlay.Length(index, documents[i]);
      const auto covered = [&](const uint8_t* frequency_codes, const uint8_t* length_codes, size_t stride, size_t at,
                               size_t pairs) {
        for (size_t pair = 0; pair < pairs; ++pair)
          if (format::FrequencyOfCode(frequency_codes[pair * stride + at]) >= frequencies[i] &&
              format::LengthOfCode(length_codes[pair * stride + at]) <= length)
            return true;
        return false;
      };
      if (!cursor.is_bounded()) continue;
      ASSERT_TRUE(covered(bounds.pair_frequencies, bounds.pair_lengths, blocks, block, bounds.pairs));
      ASSERT_TRUE(covered(bounds.group_pair_frequencies, bounds.group_pair_lengths, bounds.headers->groups,
                          block / format::kBlocksPerGroup, bounds.group_pairs));
    }
    if (bounds.pairs != 0 && cursor.is_bounded()) ASSERT_EQ(bounds.headers->LastDocument(block), documents.back());
    end = begin;
  }
  ASSERT_EQ(end, 0u);
  cursor.Rewind();
  ASSERT_EQ(Walk(std::move(cursor)), expected);
}

std::string TermName(uint64_t i) { return absl::StrCat("t", std::string(i % 40, 'x'), i); }

PlainDocument RandomDocument(Prng* prng, DocumentId id) {
  PlainDocument document;
  document.id = id;
  document.key = absl::StrCat("k", prng->Below(60));
  document.encoded = std::string(prng->Below(50), static_cast<char>('a' + prng->Below(26)));
  for (const uint32_t field : {1u, 2u, 3u, 4u, 5u}) {
    if (prng->OneIn(3)) continue;
    uint32_t position = 0;
    for (uint64_t i = prng->Below(12); i > 0; --i) {
      const uint64_t rank = prng->Below(1 + prng->Below(50));
      document.fields[field].push_back({TermName(rank), position});
      position += static_cast<uint32_t>(prng->OneIn(10) ? prng->Below(100000) : 1);
    }
  }
  return document;
}

class OverlayModelTest : public ::testing::TestWithParam<int> {
 protected:
  static Schema SchemaOf(int kind) {
    switch (kind) {
      case 0:
        return TestSchema({});
      case 1:
        return TestSchema({"b"});
      case 2:
        return TestSchema({"c", "a"});
      case 3:
        return TestSchema({"b", "c", "a"});
      default:
        return TestSchema({"a", "b", "c"}, /*positions=*/false);
    }
  }

  void Fill(uint32_t count) {
    DocumentId id = 0;
    for (uint32_t i = 0; i < count; ++i) {
      id += 1 + prng_.Below(3);
      model_.documents.push_back(RandomDocument(&prng_, id));
      ASSERT_EQ(overlay_.Add(id, model_.documents.back().Analyzed()), i);
      const auto victim = static_cast<uint32_t>(prng_.Below(i + 1));
      if (!prng_.OneIn(4) || model_.documents[victim].death != 0) continue;
      model_.documents[victim].death = id;
      overlay_.Kill(victim, id);
    }
  }

  std::vector<format::IndexId> Indexes() const {
    std::vector<format::IndexId> indexes = {1, 2, 3, 4, 5};
    if (!schema_.default_group.empty()) indexes.push_back(kGroupIndex);
    return indexes;
  }

  const uint64_t seed_ = 71 + static_cast<uint64_t>(GetParam());
  Prng prng_{seed_};
  Schema schema_ = SchemaOf(GetParam());
  Overlay overlay_{schema_};
  Model model_{schema_};
};

TEST_P(OverlayModelTest, PostingsAreThoseOfTheFirstDocuments) {
  SCOPED_TRACE(seed_);
  Fill(300);
  for (const uint32_t n : {0u, 1u, 2u, 77u, 299u, 300u}) {
    for (const format::IndexId index : Indexes()) {
      for (uint64_t rank = 0; rank < 50; ++rank) {
        const std::vector<Posting> expected = model_.Postings(index, TermName(rank), n);
        SCOPED_TRACE(absl::StrCat("n ", n, " index ", index, " term ", rank));
        const auto open = [&] { return overlay_.OpenTerm(index, TermName(rank), n); };
        ASSERT_EQ(open().postings(), expected.size());
        ASSERT_EQ(Walk(open()), expected);
        ASSERT_NO_FATAL_FAILURE(ExpectSeeksAgree(expected, open(), &prng_));
        ASSERT_NO_FATAL_FAILURE(ExpectBlocksAgree(expected, overlay_, index, open()));
      }
    }
  }
}

TEST_P(OverlayModelTest, LengthsRecordsAndIds) {
  SCOPED_TRACE(seed_);
  Fill(300);
  for (uint32_t ordinal = 0; ordinal < 300; ++ordinal) {
    const PlainDocument& document = model_.documents[ordinal];
    for (const format::IndexId index : Indexes()) {
      ASSERT_EQ(overlay_.Length(index, ordinal), model_.Length(index, ordinal));
      ASSERT_EQ(overlay_.OpenLengths(index)[ordinal], model_.Length(index, ordinal));
    }
    EXPECT_EQ(overlay_.IdOf(ordinal), document.id);
    EXPECT_EQ(overlay_.KeyOf(ordinal), document.key);
    EXPECT_EQ(AsString(overlay_.DocumentOf(ordinal)), document.encoded);
    EXPECT_EQ(overlay_.DeathOf(ordinal), document.death);
    EXPECT_EQ(overlay_.FindId(document.id, 300), ordinal);
    EXPECT_EQ(overlay_.FindId(document.id, ordinal), std::nullopt);
  }
  EXPECT_EQ(overlay_.FindId(0, 300), std::nullopt);
  EXPECT_EQ(overlay_.FindId(1u << 30, 300), std::nullopt);
  EXPECT_EQ(overlay_.document_count(), 300u);
}

TEST_P(OverlayModelTest, KeysFindTheNewestLiveDocument) {
  SCOPED_TRACE(seed_);
  Fill(300);
  for (int round = 0; round < 2000; ++round) {
    const std::string key = absl::StrCat("k", prng_.Below(62));
    const auto n = static_cast<uint32_t>(prng_.Below(301));
    const Sequence at = prng_.Below(700);
    ASSERT_EQ(overlay_.FindKey(key, n, at), model_.FindKey(key, n, at)) << key << " " << n << " " << at;
    std::vector<uint32_t> ordinals;
    for (uint32_t i = 0; i < n; ++i) {
      if (model_.documents[i].key == key) ordinals.push_back(i);
    }
    Cursor cursor = overlay_.OpenTerm(0, key, n);
    ASSERT_EQ(cursor.postings(), ordinals.size());
    std::vector<uint32_t> walked;
    for (const Posting& posting : Walk(overlay_.OpenTerm(0, key, n))) walked.push_back(posting.document);
    ASSERT_EQ(walked, ordinals);
    const auto documents = cursor.block_documents();
    ASSERT_EQ(std::vector<uint32_t>(documents.begin(), documents.end()), ordinals);
    const auto target = static_cast<uint32_t>(prng_.Below(300));
    cursor.Seek(target);
    const auto next = std::lower_bound(ordinals.begin(), ordinals.end(), target);
    ASSERT_EQ(cursor.document(), next == ordinals.end() ? kNoDocument : *next);
  }
}

TEST_P(OverlayModelTest, FlushSeesTermsAndKeysInOrder) {
  SCOPED_TRACE(seed_);
  Fill(300);
  for (const format::IndexId index : Indexes()) {
    std::vector<std::string> terms;
    uint64_t postings = 0;
    const absl::Status status = overlay_.VisitTerms(index, [&](std::string_view term, Cursor cursor) {
      terms.emplace_back(term);
      postings += cursor.postings();
      EXPECT_EQ(Walk(std::move(cursor)), model_.Postings(index, terms.back(), 300));
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok());
    const std::set<std::string> expected = model_.Terms(index);
    ASSERT_EQ(terms, std::vector<std::string>(expected.begin(), expected.end()));
    if (index == kGroupIndex) continue;
    EXPECT_EQ(overlay_.PostingsOf(index), postings);
  }
  std::vector<uint32_t> by_key(300);
  for (uint32_t i = 0; i < 300; ++i) by_key[i] = i;
  std::stable_sort(by_key.begin(), by_key.end(),
                   [&](uint32_t a, uint32_t b) { return model_.documents[a].key < model_.documents[b].key; });
  EXPECT_EQ(overlay_.OrdinalsByKey(), by_key);
}

INSTANTIATE_TEST_SUITE_P(Groups, OverlayModelTest, ::testing::Values(0, 1, 2, 3, 4));

TEST(OverlayTest, VisitTermsStopsAtTheFirstError) {
  Overlay overlay(TestSchema({}));
  PlainDocument document{1, "k", {{1, {{"x", 0}, {"y", 1}}}}, "", 0};
  overlay.Add(1, document.Analyzed());
  int visited = 0;
  const absl::Status status = overlay.VisitTerms(1, [&](std::string_view, Cursor) {
    ++visited;
    return NotFound("stop");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(visited, 1);
}

TEST(OverlayTest, UnknownIndexesAndTermsAreEmpty) {
  Overlay overlay(TestSchema({}));
  PlainDocument document{1, "k", {{1, {{"x", 0}}}}, "", 0};
  overlay.Add(1, document.Analyzed());
  EXPECT_EQ(overlay.OpenTerm(1, "x", 1).postings(), 1u);
  EXPECT_EQ(overlay.OpenTerm(1, "", 1).document(), kNoDocument);
  EXPECT_EQ(overlay.OpenTerm(1, std::string(70000, 'x'), 1).document(), kNoDocument);
  EXPECT_EQ(overlay.OpenTerm(3, "x", 1).document(), kNoDocument);
  EXPECT_EQ(overlay.OpenTerm(6, "x", 1).document(), kNoDocument);    // a number
  EXPECT_EQ(overlay.OpenTerm(999, "x", 1).document(), kNoDocument);  // no such field
  EXPECT_EQ(overlay.OpenTerm(kGroupIndex, "x", 1).document(), kNoDocument);
  EXPECT_EQ(overlay.Length(kGroupIndex, 0), 0u);
  EXPECT_EQ(overlay.OpenTerm(0, "k", 1).postings(), 1u);
  EXPECT_EQ(overlay.OpenTerm(0, "j", 1).postings(), 0u);
}

// One posting longer than the largest chunk, and a list through every chunk size.
TEST(OverlayTest, LongPostingsAndLongLists) {
  Overlay overlay(TestSchema({"a", "b"}));
  Model model(TestSchema({"a", "b"}));
  for (uint32_t i = 0; i < 12000; ++i) {
    PlainDocument document{i + 1, absl::StrCat("k", i), {{1, {{"often", i}}}}, "", 0};
    if (i % 5000 == 17) {
      for (uint32_t p = 0; p < 9000; ++p) document.fields[3].push_back({"often", p * 3000});
    }
    overlay.Add(document.id, document.Analyzed());
    model.documents.push_back(std::move(document));
  }
  Prng prng(3);
  for (const format::IndexId index : {kGroupIndex, 1u, 3u}) {
    for (const uint32_t n : {12000u, 11999u, 6400u, 129u, 128u, 127u}) {
      SCOPED_TRACE(absl::StrCat("index ", index, " n ", n));
      const std::vector<Posting> expected = model.Postings(index, "often", n);
      EXPECT_EQ(overlay.OpenTerm(index, "often", n).postings(), expected.size());
      EXPECT_TRUE(Walk(overlay.OpenTerm(index, "often", n)) == expected);
      ASSERT_NO_FATAL_FAILURE(ExpectBlocksAgree(expected, overlay, index, overlay.OpenTerm(index, "often", n)));
      Cursor cursor = overlay.OpenTerm(index, "often", n);
      for (size_t i = 0; i < expected.size(); i += prng.Below(700)) {
        cursor.Seek(expected[i].document);
        ASSERT_EQ(cursor.document(), expected[i].document);
        ASSERT_EQ(cursor.frequency(), expected[i].frequency);
      }
    }
  }
}

TEST(OverlayTest, PositionsNeedNotAscend) {
  Overlay overlay(TestSchema({}));
  PlainDocument document{1, "k", {{1, {{"x", 9}, {"x", 2}, {"x", 0xFFFFFFFFu}}}}, "", 0};
  overlay.Add(1, document.Analyzed());
  std::vector<uint32_t> positions;
  overlay.OpenTerm(1, "x", 1).AppendPositions(&positions);
  EXPECT_EQ(positions, (std::vector<uint32_t>{9, 2, 0xFFFFFFFFu}));
}

TEST(OverlayTest, CountsDeaths) {
  Overlay overlay(TestSchema({}));
  for (DocumentId id = 1; id <= 3; ++id) overlay.Add(id, PlainDocument{id, "k", {{1, {{"x", 0}}}}, "", 0}.Analyzed());
  EXPECT_EQ(overlay.death_count(), 0u);
  overlay.Kill(1, 3);
  overlay.Kill(0, 4);
  EXPECT_EQ(overlay.death_count(), 2u);
  EXPECT_EQ(overlay.DeathOf(1), 3u);
  EXPECT_EQ(overlay.DeathOf(2), 0u);
}

TEST(OverlayTest, BytesCoverWhatIsHeld) {
  Overlay overlay(TestSchema({}));
  const uint64_t empty = overlay.bytes();
  EXPECT_LT(empty, 16384u);
  PlainDocument document{1, "k", {{1, {{"x", 0}}}}, std::string(3 << 20, 'e'), 0};
  overlay.Add(1, document.Analyzed());
  EXPECT_GE(overlay.bytes(), empty + (3u << 20));
}

}  // namespace
}  // namespace ashlar::overlay
