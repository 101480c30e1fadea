// The inverted index of a segment: what is written is read back, by every way of walking it.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/segment/index_support.h"

namespace ashlar::segment {
namespace {

constexpr uint32_t kDocuments = 12'000;

// Counts at the borders of short lists, blocks and groups of blocks, and many small ones.
std::vector<uint32_t> Counts(Prng* prng) {
  std::vector<uint32_t> counts = {1, 1, 2, 3, 64, 126, 127, 128, 129, 255, 256, 257, 4095, 4096, 4097, 5000, 11'000};
  for (int i = 0; i < 300; ++i) counts.push_back(1 + static_cast<uint32_t>(prng->Below(uint64_t{1} << prng->Below(8))));
  for (int i = 0; i < 8; ++i) counts.push_back(128 + static_cast<uint32_t>(prng->Below(3000)));
  return counts;
}

void ExpectPosting(PostingCursor* cursor, const ModelPosting& expected, bool positions) {
  ASSERT_EQ(cursor->document(), expected.ordinal);
  ASSERT_EQ(cursor->frequency(), expected.total());
  if (!positions) return;
  std::vector<uint32_t> got = {7}, counts;
  ASSERT_TRUE(cursor->AppendPositions(&got, &counts).ok()) << cursor->status();
  ASSERT_EQ(got[0], 7u);
  got.erase(got.begin());
  ASSERT_EQ(got, expected.positions);
  ASSERT_EQ(counts, expected.frequencies);
}

void ExpectList(PostingCursor cursor, const std::vector<ModelPosting>& expected, bool positions) {
  for (const ModelPosting& p : expected) {
    ExpectPosting(&cursor, p, positions);
    if (::testing::Test::HasFatalFailure()) return;
    cursor.Next();
  }
  EXPECT_EQ(cursor.document(), format::kNoDocument);
  EXPECT_EQ(cursor.frequency(), 0u);
  EXPECT_TRUE(cursor.status().ok()) << cursor.status();
  cursor.Next();
  cursor.Seek(5);
  EXPECT_EQ(cursor.document(), format::kNoDocument);
}

const ModelPosting* AtOrAfter(const std::vector<ModelPosting>& postings, uint32_t target) {
  const auto at = std::lower_bound(postings.begin(), postings.end(), target,
                                   [](const ModelPosting& p, uint32_t t) { return p.ordinal < t; });
  return at == postings.end() ? nullptr : &*at;
}

// One cursor to every ordinal in turn, and many by leaps.
void ExpectSeeks(const IndexReader& reader, const format::TermInfo& info, uint32_t member,
                 const std::vector<ModelPosting>& expected, bool positions, Prng* prng) {
  const auto check = [&](PostingCursor* cursor, uint32_t target, bool with_positions) {
    cursor->Seek(target);
    const ModelPosting* p = AtOrAfter(expected, target);
    ASSERT_EQ(cursor->document(), p == nullptr ? format::kNoDocument : p->ordinal) << "target " << target;
    if (p != nullptr) ExpectPosting(cursor, *p, with_positions);
  };
  PostingCursor every = reader.OpenCursor(info, member);
  for (uint32_t target = 0; target <= kDocuments; ++target) {
    check(&every, target, positions && target % 16 == 0);
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (int round = 0; round < 20; ++round) {
    PostingCursor leaping = reader.OpenCursor(info, member);
    uint32_t target = 0;
    while (leaping.document() != format::kNoDocument) {
      target += static_cast<uint32_t>(prng->Below(1 + (uint64_t{1} << prng->Below(13))));
      target = std::max(target, leaping.document());
      check(&leaping, target, positions);
      if (::testing::Test::HasFatalFailure()) return;
      if (prng->OneIn(3)) leaping.Next();
    }
    ASSERT_TRUE(leaping.status().ok()) << leaping.status();
  }
}

void ExpectIndex(const OpenIndex& index, const Model& model) {
  const IndexReader& reader = *index.reader;
  EXPECT_EQ(reader.shape(), model.shape);
  EXPECT_EQ(reader.term_count(), model.terms.size());
  TermIterator iterator = reader.Terms();
  uint64_t postings_total = 0;
  for (const auto& [term, postings] : model.terms) {
    ASSERT_TRUE(iterator.Next()) << iterator.status();
    ASSERT_EQ(iterator.term(), term);
    ASSERT_EQ(iterator.info().postings, postings.size());
    postings_total += postings.size();
    const auto found = reader.FindTerm(term);
    ASSERT_TRUE(found.ok() && found->has_value()) << term;
    EXPECT_EQ((*found)->postings, postings.size());
    EXPECT_EQ((*found)->has_blocks(), postings.size() >= 128);
    ExpectList(reader.OpenCursor(**found), postings, model.shape.positions);
    ExpectList(iterator.OpenCursor(), postings, false);
    if (::testing::Test::HasFatalFailure()) FAIL() << "term " << term;
  }
  EXPECT_FALSE(iterator.Next());
  EXPECT_TRUE(iterator.status().ok()) << iterator.status();
  EXPECT_EQ(reader.posting_count(), postings_total);
  const absl::Status check = reader.Check([&](uint32_t ordinal) { return model.lengths[ordinal]; });
  EXPECT_TRUE(check.ok()) << check;
}

// members, largest, positions, seed
class IndexTest : public ::testing::TestWithParam<std::tuple<int, int, bool, int>> {
 protected:
  void SetUp() override {
    const auto [members, largest, positions, seed] = GetParam();
    RecordProperty("seed", seed);
    prng_ = Prng(static_cast<uint64_t>(seed));
    format::IndexShape shape;
    shape.members = static_cast<uint32_t>(members);
    shape.largest = static_cast<uint32_t>(largest);
    shape.positions = positions;
    model_ = RandomModel(shape, kDocuments, Counts(&prng_), &prng_);
    index_ = OpenIndex::Of(WriteModel(model_, &members_), kDocuments);
    ASSERT_NE(index_.reader, nullptr);
  }
  Prng prng_{0};
  Model model_;
  OpenIndex index_;
  std::map<uint32_t, IndexBytes> members_;
};

TEST_P(IndexTest, ReadsBackWhatWasWritten) { ExpectIndex(index_, model_); }

TEST_P(IndexTest, SeeksToEveryOrdinal) {
  int lists = 0;
  for (const auto& [term, postings] : model_.terms) {
    if (postings.size() < 120 && ++lists % 16 != 0) continue;
    const auto info = index_.reader->FindTerm(term);
    ASSERT_TRUE(info.ok() && info->has_value());
    ExpectSeeks(*index_.reader, **info, kAllMembers, postings, model_.shape.positions, &prng_);
    if (HasFatalFailure()) FAIL() << "term " << term;
  }
}

TEST_P(IndexTest, FiltersByMember) {
  for (uint32_t m = 0; model_.shape.members > 1 && m < model_.shape.members; ++m) {
    const Model own = MemberOf(model_, m, model_.shape.positions);
    for (const auto& [term, all] : model_.terms) {
      const auto info = index_.reader->FindTerm(term);
      ASSERT_TRUE(info.ok() && info->has_value());
      const auto it = own.terms.find(term);
      const std::vector<ModelPosting> none;
      const std::vector<ModelPosting>& expected = it == own.terms.end() ? none : it->second;
      PostingCursor cursor = index_.reader->OpenCursor(**info, m);
      if (m == model_.shape.largest || all.size() < 128) {
        EXPECT_EQ(cursor.postings(), expected.size());
      }
      ExpectList(std::move(cursor), expected, model_.shape.positions);
      if (all.size() >= 4000) {
        ExpectSeeks(*index_.reader, **info, m, expected, model_.shape.positions, &prng_);
      }
      if (HasFatalFailure()) FAIL() << "term " << term << " member " << m;
    }
  }
}

TEST_P(IndexTest, GivesEveryMembersFrequency) {
  for (const auto& [term, postings] : model_.terms) {
    PostingCursor all = index_.reader->OpenTerm(term);
    PostingCursor largest = index_.reader->OpenTerm(term, model_.shape.largest);
    std::vector<uint32_t> frequencies;
    for (const ModelPosting& p : postings) {
      ASSERT_TRUE(all.MemberFrequencies(&frequencies).ok());
      ASSERT_EQ(frequencies, p.frequencies);
      all.Next();
      if (p.frequencies[model_.shape.largest] == 0) continue;
      ASSERT_TRUE(largest.MemberFrequencies(&frequencies).ok());
      ASSERT_EQ(frequencies, p.frequencies);
      largest.Next();
    }
  }
}

TEST_P(IndexTest, WritesTheSmallerMembersOwnIndexes) {
  EXPECT_EQ(members_.size(), model_.shape.members - 1);
  for (auto& [m, bytes] : members_) {
    const Model own = MemberOf(model_, m, false);
    ExpectIndex(OpenIndex::Of(bytes, kDocuments), own);
    if (HasFatalFailure()) FAIL() << "member " << m;
  }
}

TEST_P(IndexTest, FindsNoTermThatIsNotThere) {
  for (const auto& [term, postings] : model_.terms) {
    for (std::string other : {term + "!", term.substr(0, term.size() - 1), term + '\xff', '\0' + term}) {
      if (model_.terms.contains(other)) continue;
      const auto found = index_.reader->FindTerm(other);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_FALSE(found->has_value()) << other;
      ASSERT_EQ(index_.reader->OpenTerm(other).document(), format::kNoDocument);
    }
  }
  EXPECT_FALSE(index_.reader->FindTerm("")->has_value());
  EXPECT_FALSE(index_.reader->FindTerm(std::string(300, 'b'))->has_value());
}

// Any contribution in a block is at most the maximum over its pairs, for scorers of many shapes (SPEC P-7).
TEST_P(IndexTest, BlockBoundsHoldForMonotoneScorers) {
  const auto scores = [](double k1, double b, double average) {
    return [=](double f, double length) { return f / (f + k1 * (1 - b + b * length / average)); };
  };
  const std::vector<std::function<double(double, double)>> scorers = {
      scores(1.2, 0.75, 100),
      scores(0.1, 1, 20),
      scores(50, 0, 1),
      scores(1000, 1, 1000),
      [](double f, double length) { return f - 3 * length; },
      [](double f, double) { return f; },
      [](double, double length) { return -length; }};
  for (const auto& [term, postings] : model_.terms) {
    PostingCursor cursor = index_.reader->OpenTerm(term);
    const format::ListHeaders* h = cursor.headers();
    ASSERT_EQ(h != nullptr, postings.size() >= 128);
    if (h == nullptr) continue;
    for (const auto& score : scorers) {
      const auto bound = [&](const uint8_t* fs, const uint8_t* ls, uint32_t pairs, uint32_t stride, uint32_t at) {
        double best = -1e300;
        for (uint32_t p = 0; p < pairs; ++p) {
          best = std::max(
              best, score(format::FrequencyOfCode(fs[p * stride + at]), format::LengthOfCode(ls[p * stride + at])));
        }
        return best;
      };
      size_t i = 0;
      for (uint32_t b = 0; b < h->blocks; ++b) {
        const double block = bound(h->pair_frequencies, h->pair_lengths, h->pairs, h->blocks, b);
        const double group = bound(h->group_pair_frequencies, h->group_pair_lengths, h->group_pairs, h->groups, b / 32);
        for (uint32_t n = 0; n < h->Count(b); ++n, ++i) {
          const double got = score(postings[i].total(), model_.lengths[postings[i].ordinal]);
          ASSERT_LE(got, block);
          ASSERT_LE(got, group);
          if (!h->members) continue;
          const uint32_t own = postings[i].frequencies[model_.shape.largest];
          const uint32_t length = model_.member_lengths[model_.shape.largest][postings[i].ordinal];
          if (own == 0) continue;
          ASSERT_LE(own, format::FrequencyOfCode(h->largest_frequencies[b]));
          ASSERT_GE(length, format::LengthOfCode(h->largest_lengths[b]));
          ASSERT_LE(own, format::FrequencyOfCode(h->group_largest_frequencies[b / 32]));
          ASSERT_GE(length, format::LengthOfCode(h->group_largest_lengths[b / 32]));
        }
      }
      ASSERT_EQ(i, postings.size());
    }
  }
}

TEST_P(IndexTest, SeeksToBlocks) {
  for (const auto& [term, postings] : model_.terms) {
    if (postings.size() < 1000) continue;
    PostingCursor cursor = index_.reader->OpenTerm(term);
    const format::ListHeaders& h = *cursor.headers();
    std::vector<size_t> first = {0};  // posting of each block
    for (uint32_t b = 0; b < h.blocks; ++b) first.push_back(first.back() + h.Count(b));
    for (uint32_t b = 0; b < h.blocks; b += 1 + static_cast<uint32_t>(prng_.Below(3))) {
      if (h.Count(b) == 0) continue;  // of a window
      cursor.SeekBlock(b);
      ASSERT_EQ(cursor.block(), b);
      ASSERT_EQ(cursor.document(), postings[first[b]].ordinal);
      ASSERT_EQ(cursor.block_documents().size(), h.Count(b));
      ASSERT_EQ(cursor.block_documents().back(), postings[first[b + 1] - 1].ordinal);
      ASSERT_LE(cursor.block_documents().back(), h.LastDocument(b));
      ASSERT_EQ(cursor.block_frequencies().back(), postings[first[b + 1] - 1].total());
    }
  }
}

// The frequency of any document, without walking to it.
TEST_P(IndexTest, WindowsHaveEveryDocument) {
  int lists = 0;
  for (const auto& [term, postings] : model_.terms) {
    PostingCursor cursor = index_.reader->OpenTerm(term);
    ASSERT_EQ(cursor.has_windows(), postings.size() >= kDocuments / 8) << postings.size();
    if (!cursor.has_windows()) continue;
    ++lists;
    size_t i = 0;
    for (uint32_t d = 0; d <= postings.back().ordinal; ++d) {
      const format::Window* const window = cursor.OpenWindow(d / format::kWindowDocuments);
      ASSERT_NE(window, nullptr) << cursor.status();
      const bool there = d == postings[i].ordinal;
      ASSERT_EQ(window->FrequencyAt(d % format::kWindowDocuments), there ? postings[i].total() : 0) << d;
      i += there ? 1 : 0;
    }
    ASSERT_EQ(cursor.OpenWindow(cursor.headers()->groups), nullptr);
    ASSERT_EQ(cursor.document(), postings[0].ordinal);  // it has not moved
    if (model_.shape.members == 1) continue;
    ASSERT_FALSE(index_.reader->OpenTerm(term, model_.shape.largest).has_windows());
  }
  ASSERT_GE(lists, 3);
}

TEST_P(IndexTest, SurvivesAMove) {
  for (const auto& [term, postings] : model_.terms) {
    PostingCursor first = index_.reader->OpenTerm(term);
    PostingCursor second = std::move(first);
    EXPECT_EQ(first.document(), format::kNoDocument);
    first.Next();
    first = std::move(second);
    ExpectList(std::move(first), postings, model_.shape.positions);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, IndexTest,
                         ::testing::Values(std::make_tuple(1, 0, true, 1), std::make_tuple(1, 0, false, 2),
                                           std::make_tuple(2, 1, true, 3), std::make_tuple(3, 0, true, 4),
                                           std::make_tuple(2, 0, false, 5)));

// --- reading no more than needed ---

// Of a list of so many postings, opening and a far seek ask for less than `least` bytes each, of more than `all`.
void ExpectSeekTouchesLittle(uint32_t documents, uint32_t postings, uint64_t least, uint64_t all) {
  Prng prng(11);
  const Model model = RandomModel({}, documents, {postings}, &prng);
  const OpenIndex index = OpenIndex::Of(WriteModel(model), model.documents);
  PostingCursor cursor = index.reader->OpenTerm(model.terms.begin()->first);
  const uint64_t at_open = index.postings->ensured();
  EXPECT_LT(at_open, least);
  cursor.Seek(documents / 4 * 3);
  EXPECT_LT(index.postings->ensured() - at_open, least);
  EXPECT_GT(index.postings->size(), all);
}

TEST(IndexCostTest, SeekTouchesOneBlock) { ExpectSeekTouchesLittle(100'000, 11'000, 1000, 4'000); }

TEST(IndexCostTest, SeekTouchesOneWindow) { ExpectSeekTouchesLittle(40'000, 30'000, 2200, 15'000); }

TEST(IndexCostTest, PositionsAreReadWhenAskedFor) {
  Prng prng(12);
  const Model model = RandomModel({1, 0, true}, 12'000, {11'000}, &prng);
  const OpenIndex index = OpenIndex::Of(WriteModel(model), model.documents);
  PostingCursor cursor = index.reader->OpenTerm(model.terms.begin()->first);
  EXPECT_GT(index.postings->ensured(), 0u);
  while (cursor.document() != format::kNoDocument) cursor.Next();
  const uint64_t payloads = index.postings->ensured();
  cursor = index.reader->OpenTerm(model.terms.begin()->first);
  std::vector<uint32_t> positions;
  ASSERT_TRUE(cursor.AppendPositions(&positions).ok());
  EXPECT_LT(payloads, index.postings->size() * 2 / 3);
  EXPECT_LT(index.postings->ensured() - payloads, 2'500u);
}

// --- large lists: positions leave the writer's buffer several times ---

TEST(IndexLargeTest, PositionsOfALongListAreWrittenInRuns) {
  Prng prng(13);
  Model model;
  model.shape.positions = true;
  model.documents = 60'000;
  model.lengths.assign(model.documents, 100);
  for (uint32_t d = 0; d < model.documents; ++d) {
    ModelPosting p{d, {40}, {}};
    for (uint32_t i = 0; i < 40; ++i) p.positions.push_back(i * 1000 + static_cast<uint32_t>(prng.Below(1000)));
    model.terms["t"].push_back(std::move(p));
  }
  model.terms["u"] = {{3, {1}, {9}}, {5, {1}, {8}}};
  const OpenIndex index = OpenIndex::Of(WriteModel(model), model.documents);
  EXPECT_GT(index.postings->size(), 3u << 20);
  ExpectIndex(index, model);
}

// --- what the writer refuses ---

TEST(IndexWriterTest, RefusesRowsOutOfOrderOrShape) {
  const std::vector<uint32_t> lengths(10, 5);
  const std::vector<uint32_t> one = {1}, two = {2}, none = {0}, pair = {1, 1}, huge = {0x80000001u};
  const std::vector<uint32_t> at = {4}, falling = {4, 3};
  const auto fails = [&](const std::function<absl::Status(IndexWriter*)>& calls, bool positions = false) {
    MemorySink sink;
    IndexWriter writer({1, 0, positions}, 10, lengths, {}, &sink);
    const absl::Status status = calls(&writer);
    ByteBuffer terms, headers;
    // The first error is final.
    EXPECT_EQ(writer.Finish(&terms, &headers), status);
    return status.code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(fails([&](IndexWriter* w) { return w->AddPosting({1, one, {}}); }));
  EXPECT_TRUE(fails([&](IndexWriter* w) { return w->BeginTerm("", 1); }));
  EXPECT_TRUE(fails([&](IndexWriter* w) { return w->BeginTerm(std::string(256, 'a'), 1); }));
  EXPECT_TRUE(fails([&](IndexWriter* w) { return w->EndTerm(); }));
  const auto in_term = [&](const std::function<absl::Status(IndexWriter*)>& calls, bool positions = false) {
    return fails(
        [&](IndexWriter* w) {
          EXPECT_TRUE(w->BeginTerm("b", 1).ok());
          return calls(w);
        },
        positions);
  };
  EXPECT_TRUE(in_term([&](IndexWriter* w) { return w->BeginTerm("c", 1); }));
  EXPECT_TRUE(in_term([&](IndexWriter* w) { return w->AddPosting({1, none, {}}); }));
  EXPECT_TRUE(in_term([&](IndexWriter* w) { return w->AddPosting({1, pair, {}}); }));
  EXPECT_TRUE(in_term([&](IndexWriter* w) { return w->AddPosting({1, huge, {}}); }));
  EXPECT_TRUE(in_term([&](IndexWriter* w) { return w->AddPosting({1, two, at}); }, true));
  EXPECT_TRUE(in_term([&](IndexWriter* w) { return w->AddPosting({1, two, falling}); }, true));
  EXPECT_TRUE(in_term([&](IndexWriter* w) {
    EXPECT_TRUE(w->AddPosting({1, one, {}}).ok());
    return w->AddPosting({1, one, {}});
  }));
  EXPECT_TRUE(in_term([&](IndexWriter* w) {
    EXPECT_TRUE(w->AddPosting({1, one, {}}).ok());
    EXPECT_TRUE(w->EndTerm().ok());
    return w->BeginTerm("b", 1);
  }));
}

TEST(IndexWriterTest, AnEmptyIndexAndAnEmptyTermAreFine) {
  MemorySink sink;
  IndexWriter writer({}, 0, {}, {}, &sink);
  ASSERT_TRUE(writer.BeginTerm("nothing", 1).ok());
  ASSERT_TRUE(writer.EndTerm().ok());
  IndexBytes bytes;
  ASSERT_TRUE(writer.Finish(&bytes.terms, &bytes.headers).ok());
  bytes.postings = sink.bytes();
  const OpenIndex index = OpenIndex::Of(bytes, 0);
  EXPECT_EQ(index.reader->term_count(), 0u);
  EXPECT_FALSE(index.reader->FindTerm("nothing")->has_value());
  EXPECT_FALSE(index.reader->Terms().Next());
  EXPECT_TRUE(index.reader->Check().ok());
}

TEST(IndexWriterTest, ASinksErrorIsPassedOn) {
  class FullSink final : public ByteSink {
   public:
    absl::Status Append(ByteSpan) override { return ResourceExhausted("full"); }
    uint64_t offset() const override { return 0; }
  };
  FullSink sink;
  IndexWriter writer({}, 0, {}, {}, &sink);
  ByteBuffer terms, headers;
  EXPECT_EQ(writer.Finish(&terms, &headers).code(), absl::StatusCode::kResourceExhausted);
}

// --- far ordinals and wide numbers ---

TEST(IndexTestEdges, ExtremeOrdinalsFrequenciesAndPositions) {
  Model model;
  model.shape.positions = true;
  model.documents = 0xFFFFFFFFu;
  for (uint32_t i = 0; i < 200; ++i) {
    ModelPosting p{i * 21'474'836u, {1}, {i % 2 == 0 ? 0xFFFFFFFFu : 0u}};
    model.terms["far"].push_back(p);
  }
  model.terms["last"] = {{0xFFFFFFFEu, {2}, {0xFFFFFFFFu, 0xFFFFFFFFu}}};
  const OpenIndex index = OpenIndex::Of(WriteModel(model), model.documents);
  for (const auto& [term, postings] : model.terms) ExpectList(index.reader->OpenTerm(term), postings, true);
  PostingCursor cursor = index.reader->OpenTerm("far");
  cursor.Seek(0xFFFFFFFFu);
  EXPECT_EQ(cursor.document(), format::kNoDocument);

  Model often;
  often.documents = 200;
  for (uint32_t i = 0; i < 200; ++i) often.terms["often"].push_back({i, {i % 3 == 0 ? 0x80000000u : 1u}, {}});
  often.terms["once"] = {{7, {0x80000000u}, {}}};
  const OpenIndex heavy = OpenIndex::Of(WriteModel(often), often.documents);
  for (const auto& [term, postings] : often.terms) ExpectList(heavy.reader->OpenTerm(term), postings, false);
  EXPECT_TRUE(heavy.reader->Check([](uint32_t) { return 0; }).ok());
}

}  // namespace
}  // namespace ashlar::segment
