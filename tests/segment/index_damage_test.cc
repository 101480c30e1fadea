// Damaged bytes of an inverted index, without the checksums that would stop them first: an error or another answer, but
// never a crash, an endless walk, or an ordinal that is out of order or out of range.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/query/phrase_cursor.h"
#include "tests/segment/index_support.h"

namespace ashlar::segment {
namespace {

constexpr uint32_t kDocuments = 700;

// A section of exactly the bytes given, on the heap, so that a sanitizer sees a step beyond them.
class PlainBytes final : public VerifiedBytes {
 public:
  PlainBytes(const ByteBuffer& bytes, std::string name)
      : VerifiedBytes(bytes.data(), bytes.size(), true), name_(std::move(name)) {}
  absl::Status Damage(uint64_t offset, std::string_view message) const override {
    return DataLoss("test.seg", name_, offset, message);
  }

 protected:
  absl::Status Verify(uint64_t, uint64_t) const override { return absl::OkStatus(); }

 private:
  std::string name_;
};

// What a look at everything came to.
struct Findings {
  bool failed = false;   // some call gave an error
  uint64_t answers = 0;  // a digest of all that was read
};

void ExpectTyped(const absl::Status& status) {
  EXPECT_TRUE(status.code() == absl::StatusCode::kDataLoss || status.code() == absl::StatusCode::kUnimplemented)
      << status;
}

void Mix(uint64_t value, Findings* findings) {
  findings->answers = (findings->answers ^ value) * 0x9E3779B97F4A7C15ull;
  findings->answers ^= findings->answers >> 29;
}

void Note(const absl::Status& status, Findings* findings) {
  if (status.ok()) return;
  ExpectTyped(status);
  findings->failed = true;
}

void WalkCursor(PostingCursor cursor, uint32_t documents, Findings* findings) {
  std::vector<uint32_t> positions, counts;
  int64_t before = -1;
  while (cursor.document() != format::kNoDocument) {
    ASSERT_GT(int64_t{cursor.document()}, before);
    ASSERT_LT(cursor.document(), documents);
    ASSERT_GE(cursor.frequency(), 1u);
    before = cursor.document();
    Mix(cursor.document(), findings);
    Mix(cursor.frequency(), findings);
    positions.clear();
    if (!cursor.AppendPositions(&positions, &counts).ok()) break;
    for (const uint32_t p : positions) Mix(p, findings);
    for (const uint32_t c : counts) Mix(c, findings);
    cursor.Next();
  }
  Note(cursor.status(), findings);
}

void SeekCursor(PostingCursor cursor, uint32_t documents, Findings* findings) {
  for (uint32_t target = 0; cursor.document() != format::kNoDocument; target += 90) {
    cursor.Seek(target);
    ASSERT_GE(cursor.document(), target);
    ASSERT_TRUE(cursor.document() < documents || cursor.document() == format::kNoDocument);
    Mix(cursor.document(), findings);
  }
  Note(cursor.status(), findings);
}

// Every document's frequency by direct access.
void LookIntoWindows(PostingCursor cursor, Findings* findings) {
  if (!cursor.has_windows()) return;
  for (uint32_t number = 0;; ++number) {
    const format::Window* const window = cursor.OpenWindow(number);
    if (window == nullptr) break;
    for (uint32_t offset = 0; offset < format::kWindowDocuments; ++offset) Mix(window->FrequencyAt(offset), findings);
  }
  Note(cursor.status(), findings);
}

void WalkPhrase(const IndexReader& reader, const Model& model, const std::string& first, Findings* findings) {
  const std::string& second = model.terms.begin()->first;
  using Phrase = query::PhraseCursor<PostingCursor>;
  std::vector<Phrase::Word> words;
  words.emplace_back(reader.OpenTerm(first), std::vector<uint32_t>{0, 2});
  words.emplace_back(reader.OpenTerm(second), std::vector<uint32_t>{1});
  Phrase phrase(std::move(words));
  query::Settle(&phrase);
  for (int64_t before = -1; phrase.document() != format::kNoDocument; phrase.Next()) {
    ASSERT_GT(int64_t{phrase.document()}, before);
    ASSERT_LT(phrase.document(), model.documents);
    ASSERT_GE(phrase.frequency(), 1u);
    before = phrase.document();
    Mix(phrase.document(), findings);
    Mix(phrase.frequency(), findings);
  }
  Note(phrase.status(), findings);
}

Findings LookAtEverything(const IndexBytes& bytes, const Model& model) {
  Findings findings;
  const PlainBytes terms(bytes.terms, "terms"), headers(bytes.headers, "block headers");
  const PlainBytes postings(bytes.postings, "postings");
  auto reader = IndexReader::Open(model.documents, &terms, &headers, &postings);
  if (!reader.ok()) {
    ExpectTyped(reader.status());
    findings.failed = true;
    return findings;
  }
  for (const auto& [term, list] : model.terms) {
    Mix((*reader)->OpenTerm(term).postings(), &findings);
    WalkCursor((*reader)->OpenTerm(term), model.documents, &findings);
    const uint32_t largest = std::min((*reader)->shape().largest, (*reader)->shape().members - 1);
    WalkCursor((*reader)->OpenTerm(term, largest), model.documents, &findings);
    SeekCursor((*reader)->OpenTerm(term), model.documents, &findings);
    LookIntoWindows((*reader)->OpenTerm(term), &findings);
    WalkPhrase(**reader, model, term, &findings);
  }
  TermIterator iterator = (*reader)->Terms();
  std::string before;
  while (iterator.Next()) {
    EXPECT_LT(before, iterator.term());
    before = iterator.term();
  }
  Note(iterator.status(), &findings);
  Note((*reader)->Check([&](uint32_t ordinal) { return model.lengths[ordinal]; }), &findings);
  return findings;
}

// A block list of two blocks, short lists and single postings in a group of two, with positions.
Model SmallModel() {
  Prng prng(21);
  return RandomModel({2, 1, true}, kDocuments, {140, 3, 20, 1, 1, 1, 2}, &prng);
}

void FlipEveryBit(const IndexBytes& bytes, ByteBuffer IndexBytes::*section, const Model& model) {
  const Findings clean = LookAtEverything(bytes, model);
  ASSERT_FALSE(clean.failed);
  IndexBytes damaged = bytes;
  uint64_t noticed = 0, flips = 0;
  for (size_t byte = 0; byte < (bytes.*section).size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      (damaged.*section)[byte] ^= static_cast<std::byte>(1 << bit);
      const Findings findings = LookAtEverything(damaged, model);
      (damaged.*section)[byte] = (bytes.*section)[byte];
      if (::testing::Test::HasFailure()) FAIL() << "byte " << byte << " bit " << bit;
      ++flips;
      noticed += findings.failed || findings.answers != clean.answers ? 1 : 0;
    }
  }
  // Bits of padding, and bounds that got looser, are all that may go unnoticed even here, without checksums.
  EXPECT_GT(noticed * 10, flips * 3);
}

TEST(IndexDamageTest, EveryBitOfTheTerms) {
  const Model model = SmallModel();
  FlipEveryBit(WriteModel(model), &IndexBytes::terms, model);
}

TEST(IndexDamageTest, EveryBitOfTheHeaders) {
  const Model model = SmallModel();
  FlipEveryBit(WriteModel(model), &IndexBytes::headers, model);
}

TEST(IndexDamageTest, EveryBitOfThePostings) {
  const Model model = SmallModel();
  FlipEveryBit(WriteModel(model), &IndexBytes::postings, model);
}

// Two dense windows in a group of two: a bitmap or a column with exceptions, as the frequencies have it.
Model DenseModel(bool column) {
  Prng prng(24);
  Model model = RandomModel({2, 1, false}, 2 * format::kWindowDocuments, {column ? 8'000u : 1'100u}, &prng);
  auto& postings = model.terms.begin()->second;
  for (size_t i = 0; i < postings.size(); i += 50) {
    postings[i].frequencies[0] += 1'000;
    model.lengths[postings[i].ordinal] += 1'000;
    model.member_lengths[0][postings[i].ordinal] += 1'000;
  }
  return model;
}

// One bit of every byte: there are too many to flip them all. `least_noticed`: in percent.
void FlipABitOfEveryByte(ByteBuffer IndexBytes::*section, bool column, uint64_t least_noticed) {
  Prng prng(25);
  const Model model = DenseModel(column);
  const IndexBytes bytes = WriteModel(model);
  const Findings clean = LookAtEverything(bytes, model);
  ASSERT_FALSE(clean.failed);
  uint64_t noticed = 0, flips = 0;
  for (size_t byte = 0; byte < (bytes.*section).size(); byte += 1 + prng.Below(column ? 8 : 2)) {
    IndexBytes damaged = bytes;
    (damaged.*section)[byte] ^= static_cast<std::byte>(1 << prng.Below(8));
    const Findings findings = LookAtEverything(damaged, model);
    if (::testing::Test::HasFailure()) FAIL() << "byte " << byte;
    ++flips;
    noticed += findings.failed || findings.answers != clean.answers ? 1 : 0;
  }
  EXPECT_GT(flips, 100u);
  EXPECT_GT(noticed * 100, flips * least_noticed);
}

TEST(IndexDamageTest, BitsOfDenseWindows) {
  FlipABitOfEveryByte(&IndexBytes::postings, false, 30);
  FlipABitOfEveryByte(&IndexBytes::postings, true, 30);
}

// Three bytes of four are bounds, of which only those that got tighter can be noticed without checksums.
TEST(IndexDamageTest, BitsOfTheHeadersOfDenseWindows) { FlipABitOfEveryByte(&IndexBytes::headers, false, 25); }

TEST(IndexDamageTest, EveryTruncation) {
  const Model model = SmallModel();
  const IndexBytes bytes = WriteModel(model);
  for (ByteBuffer IndexBytes::*section : {&IndexBytes::terms, &IndexBytes::headers, &IndexBytes::postings}) {
    for (size_t size = 0; size < (bytes.*section).size(); ++size) {
      IndexBytes cut = bytes;
      (cut.*section).resize(size);
      (cut.*section).shrink_to_fit();
      const Findings findings = LookAtEverything(cut, model);
      // The last bytes are padding that a decoder asks for only beside a packed block.
      if (size + format::kPackedSlack < (bytes.*section).size()) {
        EXPECT_TRUE(findings.failed) << size;
      }
      if (HasFailure()) return;
    }
  }
}

TEST(IndexDamageTest, RandomBytes) {
  const uint64_t seed = 22;
  RecordProperty("seed", static_cast<int>(seed));
  Prng prng(seed);
  const Model model = SmallModel();
  const IndexBytes bytes = WriteModel(model);
  for (int round = 0; round < 20'000; ++round) {
    IndexBytes damaged = bytes;
    for (ByteBuffer* section : {&damaged.terms, &damaged.headers, &damaged.postings}) {
      for (uint64_t n = prng.Below(3); n > 0; --n) {
        (*section)[prng.Below(section->size())] = static_cast<std::byte>(prng.Next());
      }
    }
    LookAtEverything(damaged, model);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// Ids of later versions are told apart from damage.
TEST(IndexDamageTest, LaterVersionsAreUnimplemented) {
  Prng prng(23);
  const Model model = RandomModel({}, kDocuments, {300}, &prng);
  const std::string term = model.terms.begin()->first;
  const auto status_with = [&](size_t at, uint8_t value) {
    IndexBytes bytes = WriteModel(model);
    bytes.headers[at] = static_cast<std::byte>(value);
    const OpenIndex index = OpenIndex::Of(bytes, kDocuments);
    return index.reader->OpenTerm(term).status().code();
  };
  // P-8: the layout id, flags; P-9: three blocks' encoding ids come after 16 bytes, one u64 and u32 a group, two u32 a
  // block and their counts.
  const size_t encodings = 16 + 8 + 4 + 3 * 8 + 3;
  EXPECT_EQ(status_with(0, 1), absl::StatusCode::kOk);
  EXPECT_EQ(status_with(0, 3), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status_with(0, 0), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status_with(3, 4), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status_with(1, 3), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status_with(1, 32), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status_with(encodings, 1), absl::StatusCode::kOk);
  EXPECT_EQ(status_with(encodings, 2), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status_with(encodings, 0), absl::StatusCode::kDataLoss);
}

TEST(IndexDamageTest, LaterWindowEncodingsAreUnimplemented) {
  Prng prng(26);
  const Model model = RandomModel({}, 2 * format::kWindowDocuments, {2'000}, &prng);
  const auto status_with = [&](uint8_t value) {
    IndexBytes bytes = WriteModel(model);
    bytes.headers[16 + 2 * (8 + 4 + 2)] = static_cast<std::byte>(value);  // of the first of two windows (P-13)
    const OpenIndex index = OpenIndex::Of(bytes, model.documents);
    return index.reader->OpenTerm(model.terms.begin()->first).status().code();
  };
  EXPECT_EQ(status_with(2), absl::StatusCode::kOk);
  EXPECT_EQ(status_with(3), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status_with(0), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ashlar::segment
