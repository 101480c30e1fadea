// One answer: the same documents give the same hits and the same score bits from the overlay, from one segment, from
// seven, from a merged one, mapped or array, by every traversal. 1,000 random queries over 3,000 documents with some
// dead among them.
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

constexpr int kDocuments = 3000;
constexpr int kQueries = 1000;

Schema AnswersSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"note", FieldType::kText, true, false, false, {}}};
  return schema;
}

std::string Words(Prng* prng, uint64_t count) {
  std::string text;
  // Zipf-like: the square of a uniform number favours the low ranks.
  for (uint64_t i = 0; i < count; ++i) {
    const double u = prng->Uniform();
    text += "w" + std::to_string(static_cast<int>(u * u * u * 2000)) + " ";
  }
  return text;
}

// The same operations in the same order for every arrangement, so that DocumentIds are the same.
void Fill(Store* store, int segments, bool flush_last) {
  Prng prng(4);
  for (int i = 0; i < kDocuments; ++i) {
    Document document;
    document.Add("id", "k" + std::to_string(prng.Below(2400)));
    document.Add("title", Words(&prng, 1 + prng.Below(6)));
    document.Add("body", Words(&prng, prng.OneIn(30) ? 900 : 5 + prng.Below(60)));
    if (prng.OneIn(3)) document.Add("note", Words(&prng, 4));
    ASSERT_OK(store->Put(std::move(document)));
    if (prng.OneIn(20)) ASSERT_OK(store->Delete("k" + std::to_string(prng.Below(2400))));
    if (segments > 0 && (i + 1) % (kDocuments / segments) == 0 && (flush_last || i + 1 < kDocuments))
      ASSERT_OK(store->Flush());
  }
}

struct Answer {
  uint64_t total = 0;
  std::vector<std::pair<DocumentId, uint64_t>> hits;  // score bits
  bool operator==(const Answer&) const = default;
};

std::vector<std::pair<DocumentId, uint64_t>> HitsOf(const Snapshot& snapshot, const SearchResult& result) {
  std::vector<std::pair<DocumentId, uint64_t>> hits;
  for (const Hit& hit : result.hits) {
    const Handle handle = hit.handle;
    hits.emplace_back((*snapshot.FetchIds(std::span(&handle, 1)))[0], std::bit_cast<uint64_t>(hit.score));
  }
  return hits;
}

std::vector<Answer> Answers(const Store& store) {
  Prng prng(7);
  std::vector<Answer> answers;
  const Snapshot snapshot = store.TakeSnapshot();
  for (int i = 0; i < kQueries; ++i) {
    Query query;
    const uint64_t clauses = 1 + prng.Below(6);
    for (uint64_t c = 0; c < clauses; ++c) {
      Clause clause;
      if (c > 0 && prng.OneIn(6)) clause.occur = prng.OneIn(2) ? Occur::kMust : Occur::kMustNot;
      const char* const fields[] = {"", "", "", "title", "body", "note"};
      clause.field = fields[prng.Below(6)];
      clause.text = Words(&prng, 1);
      if (prng.OneIn(4) && clause.field != "note") {
        clause.phrase = true;
        clause.text += Words(&prng, 1 + prng.Below(2));
      }
      if (prng.OneIn(5)) clause.boost = 0.5 + prng.Uniform();
      query.clauses.push_back(clause);
    }
    SearchOptions options;
    options.k = prng.OneIn(10) ? 100 : 10;
    if (prng.OneIn(8)) options.fields = {prng.OneIn(2) ? "title" : "body"};
    const absl::StatusOr<PreparedQuery> prepared = store.Prepare(query);
    EXPECT_OK(prepared);
    for (const Traversal traversal : {Traversal::kExhaustive, Traversal::kDaat}) {
      options.traversal = traversal;
      const absl::StatusOr<SearchResult> result = snapshot.Search(*prepared, options);
      EXPECT_OK(result);
      Answer answer;
      answer.total = result->total;
      answer.hits = HitsOf(snapshot, *result);
      answers.push_back(std::move(answer));
    }
    // The page alone, by what may skip.
    options.traversal = Traversal::kPruned;
    options.total = Total::kNone;
    const absl::StatusOr<SearchResult> page = snapshot.Search(*prepared, options);
    EXPECT_OK(page);
    EXPECT_EQ(HitsOf(snapshot, *page), answers.back().hits);
  }
  return answers;
}

TEST(AnswersTest, SameBitsFromEveryArrangement) {
  const TempDir directory;
  Options options;
  options.durability = Durability::kOs;
  options.merge_factor = 0;
  std::vector<Answer> expected;
  int arrangement = 0;
  struct Arrangement {
    const char* name;
    int segments;
    bool flush_last, merge;
  };
  for (const Arrangement& a :
       {Arrangement{"overlay", 0, false, false}, Arrangement{"one segment", 1, true, false},
        Arrangement{"seven segments", 7, true, false}, Arrangement{"six and the overlay", 7, false, false},
        Arrangement{"merged", 7, true, true}}) {
    const std::string path = directory.Sub("s" + std::to_string(arrangement++));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, Store::Create(path, AnswersSchema(), options));
    Fill(store.get(), a.segments, a.flush_last);
    if (a.flush_last) ASSERT_OK(store->Flush());
    if (a.merge) ASSERT_OK(store->Merge());
    if (a.flush_last && !a.merge) ASSERT_GE(store->GetStats().segments.size(), static_cast<size_t>(a.segments));
    for (const std::string way : {"as written", "mapped", "array"}) {
      SCOPED_TRACE(std::string(a.name) + ", " + way);
      if (way != "as written") {  // a long journal is flushed when it is closed, so the overlay is one segment then
        ASSERT_OK(store->Close());
        store.reset();
        Options reopening = options;
        reopening.open_mode = way == "mapped" ? OpenMode::kMapped : OpenMode::kArray;
        ASSERT_OK_AND_ASSIGN(store, Store::Open(path, reopening));
      }
      const std::vector<Answer> answers = Answers(*store);
      ASSERT_EQ(answers.size(), size_t{2 * kQueries});
      for (size_t i = 0; i < answers.size(); i += 2)
        ASSERT_EQ(answers[i], answers[i + 1]) << "traversals differ on query " << i / 2;
      if (expected.empty()) expected = answers;
      for (size_t i = 0; i < answers.size(); ++i) ASSERT_EQ(answers[i], expected[i]) << "query " << i / 2;
      if (HasFatalFailure()) return;
    }
  }
  uint64_t hits = 0;
  for (const Answer& answer : expected) hits += answer.hits.size();
  EXPECT_GT(hits, uint64_t{kQueries}) << "the queries find something";
}

}  // namespace
}  // namespace ashlar::testing
