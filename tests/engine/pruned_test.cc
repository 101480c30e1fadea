// The pruned traversal over lists of many blocks and windows: the page is the exhaustive one to the bit, and less is
// read.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ashlar/store.h"
#include "src/base/prng.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar {
namespace {

constexpr uint64_t kWords = 2000;

Schema TextSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, false, true, false, {}},
                   {"body", FieldType::kText, false, true, false, {}}};
  return schema;
}

// Frequent words have low numbers: about 1 / rank.
uint64_t RandomWord(Prng* prng) {
  return static_cast<uint64_t>(std::exp(prng->Uniform() * std::log(static_cast<double>(kWords))));
}

std::string Text(Prng* prng, uint64_t words) {
  std::string text;
  while (words-- > 0) absl::StrAppend(&text, "w", RandomWord(prng), " ");
  return text;
}

struct Corpus {
  uint64_t documents = 0;
  uint64_t flushes = 1;
  uint64_t deletes = 0;
  bool all_alike = false;  // every document has the same text, so that all scores tie
  uint64_t overlay = 0;    // documents more that are not flushed; the deletes are of all
};

class PrunedTest : public ::testing::Test {
 protected:
  void Fill(const Corpus& corpus) {
    Options options;
    options.create_if_missing = true;
    options.durability = Durability::kOff;
    options.merge_factor = 0;
    const Schema schema = TextSchema();
    ASSERT_OK_AND_ASSIGN(store_, Store::Open(directory_.path() + "/store", options, &schema));
    Prng prng(11);
    for (uint64_t flush = 0; flush < corpus.flushes; ++flush) {
      WriteBatch batch;
      for (uint64_t i = 0; i < corpus.documents / corpus.flushes; ++i) {
        Document document;
        document.Add("id", absl::StrCat("k", flush, "_", i));
        document.Add("title", corpus.all_alike ? "w1 w2" : Text(&prng, 1 + prng.Below(4)));
        document.Add("body", corpus.all_alike ? "w3 w1" : Text(&prng, prng.OneIn(50) ? 200 : 3 + prng.Below(20)));
        batch.Put(document);
        if (batch.size() < 1000) continue;
        ASSERT_OK(store_->Write(batch));
        batch = WriteBatch();
      }
      ASSERT_OK(store_->Write(batch));
      ASSERT_OK(store_->Flush());
    }
    WriteBatch batch;
    for (uint64_t i = 0; i < corpus.overlay; ++i) {
      Document document;
      document.Add("id", absl::StrCat("o", i));
      document.Add("title", Text(&prng, 1 + prng.Below(4)));
      document.Add("body", Text(&prng, prng.OneIn(50) ? 200 : 3 + prng.Below(20)));
      batch.Put(document);
    }
    ASSERT_OK(store_->Write(batch));
    has_overlay_ = corpus.overlay != 0;
    WriteBatch deletes;
    for (uint64_t i = 0; i < corpus.deletes; ++i) {
      if (corpus.overlay != 0 && prng.OneIn(3)) {
        deletes.Delete(absl::StrCat("o", prng.Below(corpus.overlay)));
      } else if (corpus.documents != 0) {
        deletes.Delete(
            absl::StrCat("k", prng.Below(corpus.flushes), "_", prng.Below(corpus.documents / corpus.flushes)));
      }
    }
    ASSERT_OK(store_->Write(deletes));
    if (corpus.overlay == 0) ASSERT_OK(store_->Flush());
  }

  SearchResult Search(const Query& query, SearchOptions options, Traversal traversal) {
    return Search(store_->TakeSnapshot(), query, options, traversal,
                  traversal == Traversal::kPruned ? Total::kNone : Total::kExact);
  }
  SearchResult Search(const Snapshot& snapshot, const Query& query, SearchOptions options, Traversal traversal,
                      Total total) {
    options.traversal = traversal;
    options.total = total;
    const auto prepared = store_->Prepare(query);
    EXPECT_OK(prepared);
    const auto result = snapshot.Search(*prepared, options);
    EXPECT_OK(result);
    return *result;
  }

  static void ExpectSameHits(const SearchResult& got, const SearchResult& expected) {
    ASSERT_EQ(got.hits.size(), expected.hits.size());
    for (size_t i = 0; i < got.hits.size(); ++i) {
      ASSERT_EQ(got.hits[i].handle.source, expected.hits[i].handle.source) << i;
      ASSERT_EQ(got.hits[i].handle.ordinal, expected.hits[i].handle.ordinal) << i;
      ASSERT_EQ(std::bit_cast<uint64_t>(got.hits[i].score), std::bit_cast<uint64_t>(expected.hits[i].score)) << i;
    }
  }

  // With a total, which is counted apart, and without.
  void ExpectSamePage(const Query& query, const SearchOptions& options) {
    ExpectSamePage(store_->TakeSnapshot(), query, options);
  }
  void ExpectSamePage(const Snapshot& snapshot, const Query& query, const SearchOptions& options) {
    const SearchResult expected = Search(snapshot, query, options, Traversal::kExhaustive, Total::kExact);
    const SearchResult got = Search(snapshot, query, options, Traversal::kPruned, Total::kNone);
    if (!has_overlay_) EXPECT_EQ(got.traversal, Traversal::kPruned);
    if (got.total_is_exact) EXPECT_EQ(got.total, expected.total);
    EXPECT_LE(got.total, expected.total);
    ASSERT_NO_FATAL_FAILURE(ExpectSameHits(got, expected));
    const SearchResult counted = Search(snapshot, query, options, Traversal::kPruned, Total::kExact);
    EXPECT_TRUE(counted.total_is_exact);
    EXPECT_EQ(counted.total, expected.total);
    ASSERT_NO_FATAL_FAILURE(ExpectSameHits(counted, expected));
  }

  static SearchOptions RandomOptions(Prng* prng) {
    SearchOptions options;
    const uint64_t sizes[] = {1, 10, 10, 100, 5000};
    options.k = sizes[prng->Below(5)];
    if (prng->OneIn(6)) options.offset = prng->Below(30);
    if (prng->OneIn(4)) options.b = prng->OneIn(2) ? 0 : 1;
    if (prng->OneIn(8)) options.k1 = prng->OneIn(2) ? 0 : 100;
    return options;
  }

  void ExpectSamePages(int queries) {
    Prng prng(5);
    for (int i = 0; i < queries; ++i) {
      Query query;
      const bool must = prng.OneIn(4);
      for (uint64_t clauses = prng.OneIn(3) ? 1 : 1 + prng.Below(prng.OneIn(4) ? 20 : 5); clauses > 0; --clauses) {
        Clause clause;
        clause.text = absl::StrCat("w", RandomWord(&prng));
        const char* const fields[] = {"", "", "", "title", "body"};
        clause.field = fields[prng.Below(5)];
        if (!query.clauses.empty() && prng.OneIn(8)) clause.occur = Occur::kMustNot;
        if (must && prng.OneIn(2)) clause.occur = Occur::kMust;
        if (prng.OneIn(4)) clause.boost = 0.1 + 3 * prng.Uniform();
        query.clauses.push_back(clause);
      }
      const SearchOptions options = RandomOptions(&prng);
      SCOPED_TRACE(absl::StrCat("query ", i, " of ", query.clauses.size(), " words, k ", options.k));
      ASSERT_NO_FATAL_FAILURE(ExpectSamePage(query, options));
    }
  }

  // Phrases of two to four words, most of them frequent ones.
  void ExpectSamePhrasePages(int queries) {
    Prng prng(6);
    uint64_t found = 0;
    for (int i = 0; i < queries; ++i) {
      Clause clause;
      clause.phrase = true;
      for (uint64_t words = 2 + (prng.OneIn(4) ? prng.Below(3) : 0); words > 0; --words)
        absl::StrAppend(&clause.text, "w", prng.OneIn(4) ? RandomWord(&prng) : 1 + prng.Below(6), " ");
      if (prng.OneIn(8)) clause.text = "w1 w1";
      const char* const fields[] = {"", "", "", "title", "body"};
      clause.field = fields[prng.Below(5)];
      if (prng.OneIn(3)) clause.occur = Occur::kMust;
      if (prng.OneIn(4)) clause.boost = 0.1 + 3 * prng.Uniform();
      const SearchOptions options = RandomOptions(&prng);
      SCOPED_TRACE(absl::StrCat("phrase ", i, ": ", clause.field, ":\"", clause.text, "\", k ", options.k));
      Query query;
      query.clauses = {clause};
      found += Search(query, options, Traversal::kExhaustive).total;
      ASSERT_NO_FATAL_FAILURE(ExpectSamePage(query, options));
    }
    EXPECT_GT(found, static_cast<uint64_t>(queries) * 20);
  }

  const testing::TempDir directory_;
  std::unique_ptr<Store> store_;
  bool has_overlay_ = false;  // whose lists of one field of a group have no bounds
};

TEST_F(PrunedTest, OneSegment) {
  Fill({.documents = 60'000});
  ExpectSamePages(300);
  ExpectSamePhrasePages(150);
}

TEST_F(PrunedTest, SegmentsWithDeadDocuments) {
  Fill({.documents = 50'000, .flushes = 3, .deletes = 5'000});
  ExpectSamePages(200);
  ExpectSamePhrasePages(100);
}

// The overlay has bounds of its own.
TEST_F(PrunedTest, OnlyAnOverlay) {
  Fill({.overlay = 60'000});
  ExpectSamePages(150);
  for (const char* text : {"w1", "w1 w700", "w1 w3 w900", "+w1 +w900"}) {
    const auto query = ParseQuery(text);
    ASSERT_OK(query);
    const SearchResult pruned = Search(*query, {}, Traversal::kPruned);
    EXPECT_EQ(pruned.traversal, Traversal::kPruned) << text;
    EXPECT_LT(pruned.postings_read * 2, Search(*query, {}, Traversal::kExhaustive).postings_read) << text;
  }
}

TEST_F(PrunedTest, OverlayAndSegmentWithDeadDocuments) {
  Fill({.documents = 20'000, .deletes = 4'000, .overlay = 15'000});
  ExpectSamePages(200);
  // Documents that came after the snapshot are not of it.
  const Snapshot before = store_->TakeSnapshot();
  Prng prng(31);
  WriteBatch batch;
  for (int i = 0; i < 3'000; ++i) {
    batch.Put(Document().Add("id", absl::StrCat(prng.OneIn(2) ? "o" : "n", i)).Add("body", Text(&prng, 10)));
  }
  ASSERT_OK(store_->Write(batch));
  for (const char* text : {"w1", "w1 w2", "w5 w60 w700", "+w1 +w2", "w1 w2 -w3", "w1900"}) {
    SCOPED_TRACE(text);
    const auto query = ParseQuery(text);
    ASSERT_OK(query);
    ASSERT_NO_FATAL_FAILURE(ExpectSamePage(before, *query, {}));
    ASSERT_NO_FATAL_FAILURE(ExpectSamePage(store_->TakeSnapshot(), *query, {}));
  }
}

// Of a word that most documents got after the snapshot: all that it shows is the overlay's first document.
TEST_F(PrunedTest, AListThatGrewSinceTheSnapshot) {
  Fill({});
  has_overlay_ = true;
  Prng prng(17);
  WriteBatch batch;
  batch.Put(Document().Add("id", "first").Add("body", "w1 grown"));
  for (int i = 0; i < 20'000; ++i) batch.Put(Document().Add("id", absl::StrCat("k", i)).Add("body", Text(&prng, 10)));
  ASSERT_OK(store_->Write(batch));
  const Snapshot before = store_->TakeSnapshot();
  batch.Clear();
  for (int i = 0; i < 300; ++i) batch.Put(Document().Add("id", absl::StrCat("n", i)).Add("body", "w1 grown"));
  ASSERT_OK(store_->Write(batch));
  for (const char* text : {"w1 w2 w3 -grown", "w1 w2 w3 grown", "+w1 +w2 -grown", "+w1 +grown"}) {
    SCOPED_TRACE(text);
    const auto query = ParseQuery(text);
    ASSERT_OK(query);
    ASSERT_NO_FATAL_FAILURE(ExpectSamePage(before, *query, {}));
    ASSERT_NO_FATAL_FAILURE(ExpectSamePage(store_->TakeSnapshot(), *query, {}));
  }
}

// What ties with the last hit of the page comes after it by DocumentId.
TEST_F(PrunedTest, EqualScoresEverywhere) {
  Fill({.documents = 20'000, .flushes = 2, .deletes = 2'000, .all_alike = true});
  for (const char* text : {"w1", "w1 w2", "w3 w2 w1", "body:w1", "title:w1 body:w3", "\"w1 w2\"", "title:\"w1 w2\""}) {
    for (const uint64_t k : {1, 10, 1000, 30'000}) {
      SearchOptions options;
      options.k = k;
      SCOPED_TRACE(absl::StrCat(text, " ", k));
      const auto query = ParseQuery(text);
      ASSERT_OK(query);
      ASSERT_NO_FATAL_FAILURE(ExpectSamePage(*query, options));
    }
  }
}

// The total of one word is known without walking over its documents, dead ones or not; that of few postings is counted
// by the way; that of many is counted as bits.
// Two words of which neither is rare: many candidates of the one meet each block of the other, and some of both occur
// several times in a document.
TEST_F(PrunedTest, PairsOfMiddlingWords) {
  Options options;
  options.create_if_missing = true;
  options.durability = Durability::kOff;
  const Schema schema = TextSchema();
  ASSERT_OK_AND_ASSIGN(store_, Store::Open(directory_.path() + "/store", options, &schema));
  constexpr uint64_t kOneIn[] = {10, 13, 20, 40, 90, 300};
  Prng prng(12);
  for (int batches = 0; batches < 50; ++batches) {
    WriteBatch batch;
    for (int i = 0; i < 1000; ++i) {
      Document document;
      document.Add("id", absl::StrCat(batches, "_", i));
      std::string text = "w1";
      uint64_t words = 1;
      for (uint64_t word = 0; word < std::size(kOneIn); ++word) {
        if (!prng.OneIn(kOneIn[word])) continue;
        do {
          absl::StrAppend(&text, " m", word);
          ++words;
        } while (prng.OneIn(4));
      }
      // Half of the documents are equally long.
      const uint64_t length = i % 2 == 0 ? 30 : 10 + prng.Below(60);
      while (words++ < length) absl::StrAppend(&text, " w2");
      document.Add("body", text);
      batch.Put(document);
    }
    ASSERT_OK(store_->Write(batch));
  }
  ASSERT_OK(store_->Flush());
  for (size_t a = 0; a < std::size(kOneIn); ++a) {
    for (size_t b = a + 1; b < std::size(kOneIn); ++b) {
      for (const uint64_t k : {1, 10, 60}) {
        SearchOptions search;
        search.k = k;
        search.b = (a + b) % 3 == 0 ? 0 : 0.75;
        SCOPED_TRACE(absl::StrCat("m", a, " m", b, " k ", k));
        ASSERT_NO_FATAL_FAILURE(ExpectSamePage(PlainWords(absl::StrCat("m", a, " m", b)), search));
        ASSERT_NO_FATAL_FAILURE(ExpectSamePage(PlainWords(absl::StrCat("m", a, " m", b, " m5")), search));
      }
    }
  }
}

TEST_F(PrunedTest, ExactTotals) {
  Fill({.documents = 60'000, .flushes = 2, .deletes = 3'000});
  for (const char* text : {"w1", "w3", "w900", "title:w2", "w1500 w1800", "w1500 -w1", "w1 w2", "w1 w2 w7 -w3",
                           "w1 w2 -w1500", "+w1500 w1", "+w1 +w2", "+w1 +w900", "+w2 +w5 -w3", "+w4 +w9 w1 -w700",
                           "+title:w1 +body:w2", "w1 w2 -title:w1", "nothing"}) {
    SCOPED_TRACE(text);
    const auto query = ParseQuery(text);
    ASSERT_OK(query);
    const Snapshot snapshot = store_->TakeSnapshot();
    SearchOptions options;
    const SearchResult expected = Search(snapshot, *query, options, Traversal::kExhaustive, Total::kExact);
    const SearchResult got = Search(snapshot, *query, options, Traversal::kAuto, Total::kExact);
    EXPECT_TRUE(got.total_is_exact);
    EXPECT_EQ(got.total, expected.total);
    ASSERT_NO_FATAL_FAILURE(ExpectSameHits(got, expected));
    EXPECT_EQ(got.traversal == Traversal::kPruned, expected.total > 0);
    options.offset = 1'000'000;
    EXPECT_EQ(Search(snapshot, *query, options, Traversal::kAuto, Total::kExact).total, expected.total);
  }
}

// A snapshot does not see deaths after it, in pages as in totals.
TEST_F(PrunedTest, DeathsAfterTheSnapshot) {
  Fill({.documents = 40'000, .deletes = 2'000});
  const auto query = ParseQuery("w1 w2 w40");
  ASSERT_OK(query);
  const Snapshot before = store_->TakeSnapshot();
  const SearchResult old = Search(before, *query, {}, Traversal::kExhaustive, Total::kExact);
  WriteBatch deletes;
  for (const Hit& hit : old.hits) {
    const auto key = before.FetchKeys({&hit.handle, 1});
    ASSERT_OK(key);
    deletes.Delete((*key)[0]);
  }
  for (int i = 0; i < 10'000; i += 3) deletes.Delete(absl::StrCat("k0_", i));
  ASSERT_OK(store_->Write(deletes));
  ASSERT_NO_FATAL_FAILURE(ExpectSamePage(before, *query, {}));
  ASSERT_NO_FATAL_FAILURE(ExpectSameHits(Search(before, *query, {}, Traversal::kPruned, Total::kExact), old));
  const Snapshot after = store_->TakeSnapshot();
  ASSERT_NO_FATAL_FAILURE(ExpectSamePage(after, *query, {}));
  EXPECT_LT(Search(after, *query, {}, Traversal::kPruned, Total::kExact).total, old.total);
}

TEST_F(PrunedTest, ReadsLess) {
  Fill({.documents = 60'000});
  for (const char* text : {"w1", "w1 w700", "w1 w3 w900", "+w1 +w900"}) {
    const auto query = ParseQuery(text);
    ASSERT_OK(query);
    const uint64_t all = Search(*query, {}, Traversal::kExhaustive).postings_read;
    EXPECT_LT(Search(*query, {}, Traversal::kPruned).postings_read * 2, all) << text;
  }
  // Most documents with a phrase that is everywhere are not even found to have it.
  const auto phrase = ParseQuery("\"w1 w2\"");
  ASSERT_OK(phrase);
  EXPECT_LT(Search(*phrase, {}, Traversal::kPruned).total * 10, Search(*phrase, {}, Traversal::kExhaustive).total);
}

}  // namespace
}  // namespace ashlar
