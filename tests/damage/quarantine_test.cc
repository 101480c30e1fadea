// A damaged segment is quarantined: what needs its damaged part fails, or, asked for, leaves the segment out; everything
// else works.
#include <gtest/gtest.h>

#include <memory>

#include "ashlar/status.h"
#include "src/env/sim_env.h"
#include "tests/damage/damage_support.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

using format::SectionKind;

// Segments of 300 documents; the second and third replace some of the one before, so the first two have deaths.
class Quarantine : public ::testing::Test {
 protected:
  static constexpr int kPerSegment = 300;
  static constexpr int kReplaced = 40;
  static constexpr int kSegments = 3;

  Quarantine() : disk_(6), oracle_(DamageSchema()) {
    options_.create_if_missing = true;
    options_.merge_factor = 0;
    const Schema schema = DamageSchema();
    store_ = Opened(&schema);
    for (int s = 0; s < kSegments; ++s) {
      WriteBatch batch;
      for (int i = 0; i < kPerSegment; ++i) batch.Put(DamageDocument(s * kPerSegment + i, s));
      for (int i = 0; i < kReplaced && s > 0; ++i) batch.Put(DamageDocument((s - 1) * kPerSegment + i * 7, s));
      Write(batch);
      EXPECT_OK(store_->Flush());
    }
    const std::vector<SegmentStats> segments = store_->GetStats().segments;
    EXPECT_EQ(segments.size(), size_t{kSegments});
    for (const SegmentStats& segment : segments) paths_.push_back(SegmentPath("/s", segment.id));
  }

  std::unique_ptr<Store> Opened(const Schema* schema = nullptr) {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(disk_.NewProcess(), "/s", options_, schema);
    EXPECT_OK(store);
    options_.create_if_missing = false;
    return store.ok() ? *std::move(store) : nullptr;
  }
  void Reopen() {
    EXPECT_OK(store_->Close());
    store_.reset();
    store_ = Opened();
    ASSERT_NE(store_, nullptr);
    oracle_.SetNextSequence(store_->GetStats().visible_sequence + 1);
  }
  void Write(const WriteBatch& batch) {
    const absl::StatusOr<WriteResult> written = store_->Write(batch);
    ASSERT_OK(written);
    oracle_.SetNextSequence(written->sequence + 1 - std::max<size_t>(1, batch.size()));
    ASSERT_OK(oracle_.Apply(batch));
  }
  void Damage(int segment, SectionKind kind) {
    ASSERT_OK_AND_ASSIGN(const ByteBuffer bytes, disk_.Contents(paths_[segment]));
    ASSERT_OK(disk_.FlipBit(paths_[segment], BitIn(bytes, kind)));
  }
  void Remove(int segment) {
    const env::Env env = disk_.NewProcess();
    ASSERT_OK(env.files->Remove(paths_[segment]));
    ASSERT_OK(env.files->SyncDirectory("/s"));
  }
  absl::StatusOr<SearchResult> Search(const Snapshot& snapshot, const std::string& words, const SearchOptions& options) {
    const absl::StatusOr<PreparedQuery> query = store_->Prepare(PlainWords(words));
    EXPECT_OK(query);
    return query.ok() ? snapshot.Search(*query, options) : query.status();
  }
  // The live documents of a segment in the oracle: ids ascend with the segments.
  std::set<DocumentId> IdsOf(int segment) {
    std::set<DocumentId> ids;
    uint64_t first = 1, last = 0;
    for (int s = 0; s <= segment; ++s) {
      first = last + 1;
      last = first + kPerSegment + (s > 0 ? kReplaced : 0) - 1;
    }
    for (const DocumentId id : oracle_.Ids())
      if (id >= first && id <= last) ids.insert(id);
    return ids;
  }
  void ExpectPartial(const std::string& words, const std::set<DocumentId>& left_out, size_t segments,
                     SearchOptions options = {}) {
    SCOPED_TRACE(words);
    const Snapshot snapshot = store_->TakeSnapshot();
    options.allow_partial = true;
    options.k = 1000;
    for (const Traversal traversal : {Traversal::kDaat, Traversal::kExhaustive}) {
      options.traversal = traversal;
      ASSERT_OK_AND_ASSIGN(const SearchResult result, Search(snapshot, words, options));
      EXPECT_EQ(result.documents_not_searched, left_out.size());
      EXPECT_EQ(result.damage.size(), segments);
      ExpectHits(snapshot, result, oracle_.SearchWithout(left_out, PlainWords(words), options));
    }
  }
  void ExpectExact(const std::string& words) {
    ExpectPartial(words, {}, 0);
    const Snapshot snapshot = store_->TakeSnapshot();
    ASSERT_OK_AND_ASSIGN(const SearchResult result, Search(snapshot, words, {}));
    ExpectHits(snapshot, result, oracle_.Search(PlainWords(words)));
  }
  void ExpectFails(const std::string& words, int segment) {
    ExpectDamageIn(Search(store_->TakeSnapshot(), words, {}).status(), paths_[segment]);
  }

  env::SimDisk disk_;
  Options options_;
  Oracle oracle_;
  std::unique_ptr<Store> store_;
  std::vector<std::string> paths_;
};

TEST_F(Quarantine, ADamagedListLeavesItsSegmentOut) {
  Damage(1, SectionKind::kPostings);
  for (const OpenMode mode : {OpenMode::kMapped, OpenMode::kArray}) {
    options_.open_mode = mode;
    Reopen();
    EXPECT_EQ(store_->GetStats().state, mode == OpenMode::kMapped ? StoreState::kHealthy : StoreState::kDamaged);
    ExpectExact("word5");
    ExpectFails("shared", 1);
    ExpectPartial("shared", IdsOf(1), 1);
    ExpectPartial("filler third word310", IdsOf(1), 1);
    ExpectExact("word310");
    const Stats stats = store_->GetStats();
    EXPECT_EQ(stats.state, StoreState::kDamaged);
    EXPECT_NE(stats.state_cause.find(paths_[1]), std::string::npos) << stats.state_cause;
    EXPECT_NE(stats.state_remedy.find("salvage"), std::string::npos);
    EXPECT_GT(stats.state_since_ms, 0);
    EXPECT_TRUE(stats.segments[0].damage.empty());
    EXPECT_EQ(stats.segments[1].damage, stats.state_cause);
    EXPECT_TRUE(stats.segments[2].damage.empty());
    // An answer of an older snapshot counts its own live documents.
    const Snapshot before = store_->TakeSnapshot();
    const Oracle then = oracle_;
    const std::set<DocumentId> live_then = IdsOf(1);
    WriteBatch batch;
    const int first = kPerSegment + (mode == OpenMode::kMapped ? 1 : 101);
    for (int i = 0; i < 9; ++i) batch.Put(DamageDocument(first + i, 9));
    Write(batch);
    SearchOptions options;
    options.allow_partial = true;
    ASSERT_OK_AND_ASSIGN(const SearchResult old, Search(before, "shared", options));
    EXPECT_EQ(old.documents_not_searched, live_then.size());
    ExpectHits(before, old, then.SearchWithout(live_then, PlainWords("shared"), options));
    ExpectPartial("shared", IdsOf(1), 1);
    EXPECT_LT(IdsOf(1).size(), live_then.size());
  }
}

TEST_F(Quarantine, ADamagedListFailsItsPhrases) {
  Damage(1, SectionKind::kPostings);
  for (const OpenMode mode : {OpenMode::kMapped, OpenMode::kArray}) {
    options_.open_mode = mode;
    Reopen();
    const Snapshot snapshot = store_->TakeSnapshot();
    for (const char* text : {"\"shared shared\"", "body:\"shared shared\"", "stone -\"shared shared\""}) {
      ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store_->Prepare(text));
      ExpectDamageIn(snapshot.Search(query).status(), paths_[1]);
      SearchOptions options;
      options.allow_partial = true;
      options.k = 1000;
      ASSERT_OK_AND_ASSIGN(const SearchResult partial, snapshot.Search(query, options));
      EXPECT_EQ(partial.damage.size(), 1u);
      ExpectHits(snapshot, partial, oracle_.SearchWithout(IdsOf(1), *ParseQuery(text), options));
    }
  }
}

TEST_F(Quarantine, ACheckQuarantinesWhatItFinds) {
  Damage(1, SectionKind::kPostings);
  Reopen();
  EXPECT_EQ(store_->GetStats().state, StoreState::kHealthy);
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, store_->Check());
  ASSERT_FALSE(findings.empty());
  for (const Finding& finding : findings) EXPECT_EQ(finding.file, paths_[1]) << finding.message;
  EXPECT_EQ(store_->GetStats().state, StoreState::kDamaged);
}

TEST_F(Quarantine, DamageInTwoSegmentsAndInOneThatReplaces) {
  Damage(0, SectionKind::kPostings);
  Damage(2, SectionKind::kPostings);
  Reopen();
  std::set<DocumentId> left_out = IdsOf(0);
  left_out.merge(IdsOf(2));
  std::string words = "shared";  // of every list in the damaged pages some
  for (int n = 0; n < 40; ++n) words += " common" + std::to_string(n);
  ExpectFails(words, 0);
  ExpectPartial(words, left_out, 2);
  EXPECT_FALSE(store_->GetStats().segments[2].damage.empty());
}

TEST_F(Quarantine, AMissingSegmentDoesNotCloseTheStore) {
  Remove(1);
  for (const bool read_only : {true, false}) {
    options_.read_only = read_only;
    Reopen();
    EXPECT_EQ(store_->GetStats().state, StoreState::kDamaged);
    EXPECT_EQ(store_->TakeSnapshot().document_count(), oracle_.document_count());
    ExpectFails("shared", 1);
    ExpectFails("word5", 1);
    SearchOptions no_lengths;
    no_lengths.b = 0;
    ExpectPartial("shared", IdsOf(1), 1, no_lengths);
    // Keys that live elsewhere are found; others may be in the lost segment.
    EXPECT_OK(store_->TakeSnapshot().Get(DamageKey(1)));
    EXPECT_OK(store_->TakeSnapshot().Get(DamageKey(2 * kPerSegment + 1)));
    EXPECT_OK(store_->TakeSnapshot().Get(DamageKey(kPerSegment))) << "replaced in the third";
    ExpectDamageIn(store_->TakeSnapshot().Get(DamageKey(kPerSegment + 1)).status(), paths_[1]);
    ExpectDamageIn(store_->TakeSnapshot().Get("nobody").status(), paths_[1]);
    EXPECT_OK(store_->TakeSnapshot().GetById(1 + 1));
    ExpectDamageIn(store_->TakeSnapshot().GetById(kPerSegment + 1).status(), paths_[1]);
  }
  const Sequence before = store_->GetStats().visible_sequence;
  WriteBatch batch;
  batch.Put(DamageDocument(1, 5));
  batch.Put(DamageDocument(5000, 5));
  const absl::Status refused = store_->Write(batch).status();
  ExpectDamageIn(refused, paths_[1]);
  EXPECT_NE(refused.message().find("salvage"), absl::string_view::npos);
  EXPECT_EQ(store_->GetStats().visible_sequence, before) << "no trace";
  EXPECT_EQ(store_->TakeSnapshot().Get(DamageKey(1))->document, oracle_.Get(DamageKey(1))->document);
  WriteBatch replaces;
  replaces.Put(DamageDocument(1, 5));
  replaces.Delete(DamageKey(2 * kPerSegment + 3));
  Write(replaces);
  ASSERT_OK(store_->Sync());
  ASSERT_OK(store_->Flush());
  ExpectDamageIn(store_->Merge(), paths_[1]);
  const std::vector<std::string> files = disk_.FileNames();
  options_.read_only = false;
  Reopen();
  EXPECT_EQ(store_->TakeSnapshot().document_count(), oracle_.document_count());
  SearchOptions no_lengths;
  no_lengths.b = 0;
  ExpectPartial("version5 shared", IdsOf(1), 1, no_lengths);
}

// Batches that are only in the journal are replayed beside a damaged segment: nothing that was acknowledged is lost, and
// the journal stays until the file is whole again.
TEST_F(Quarantine, AJournalTailBesideAMissingSegment) {
  WriteBatch batch;
  batch.Put(DamageDocument(kPerSegment + 5, 8));
  batch.Delete(DamageKey(kPerSegment + 6));
  batch.Put(DamageDocument(7000, 8));
  Write(batch);
  ASSERT_OK_AND_ASSIGN(const ByteBuffer whole, disk_.Contents(paths_[1]));
  const Oracle before = oracle_;
  ASSERT_OK(store_->Close());
  Remove(1);
  Reopen();
  EXPECT_EQ(store_->GetStats().state, StoreState::kDamaged);
  ASSERT_OK_AND_ASSIGN(const StoredDocument replaced, store_->TakeSnapshot().Get(DamageKey(kPerSegment + 5)));
  EXPECT_EQ(replaced.document, oracle_.Get(DamageKey(kPerSegment + 5))->document);
  EXPECT_OK(store_->TakeSnapshot().Get(DamageKey(7000)));
  ExpectDamageIn(store_->TakeSnapshot().Get(DamageKey(kPerSegment + 6)).status(), paths_[1]);
  ExpectDamageIn(store_->Flush(), paths_[1]);
  ExpectDamageIn(store_->Merge(), paths_[1]);
  WriteBatch more;
  more.Put(DamageDocument(3, 8));
  Write(more);
  ASSERT_OK(store_->Close());
  ASSERT_OK(disk_.PutFile(paths_[1], whole));
  Reopen();
  EXPECT_EQ(store_->GetStats().state, StoreState::kHealthy);
  ExpectSameDocuments(store_->TakeSnapshot(), oracle_);
  ExpectExact("shared version8");
  ASSERT_OK(store_->Flush());
  ASSERT_OK(store_->Merge());
  ExpectSameDocuments(store_->TakeSnapshot(), oracle_);
  ExpectCheckClean(*store_);
}

TEST_F(Quarantine, MergesWorkAroundIt) {
  WriteBatch batch;
  for (int i = 0; i < 50; ++i) batch.Put(DamageDocument(8000 + i, 4));
  Write(batch);
  ASSERT_OK(store_->Flush());
  Damage(1, SectionKind::kStored);
  options_.merge_factor = 2;
  Reopen();
  const absl::Status merged = store_->Merge();
  ExpectDamageIn(merged, paths_[1]);
  const Stats stats = store_->GetStats();
  ASSERT_EQ(stats.segments.size(), 3u) << "the first, which had deaths, the damaged one, and the last two as one";
  EXPECT_EQ(stats.segments[0].deleted, 0u);
  EXPECT_GT(stats.segments[1].deleted, 0u);
  EXPECT_FALSE(stats.segments[1].damage.empty());
  EXPECT_EQ(stats.segments[2].deleted, 0u);
  ExpectExact("shared");
  ASSERT_OK(store_->RunPending());
  Reopen();
  ExpectExact("shared");
  EXPECT_EQ(store_->GetStats().segments.size(), 3u);
  ExpectDamageIn(store_->Merge(), paths_[1]);
}

// A bit in each page of each section: the merge of the file fails, or did not need the page and is right; and what it wrote before
// it noticed is gone.
TEST_F(Quarantine, NoDamagedByteGetsAFreshChecksum) {
  ASSERT_OK(store_->Close());
  store_.reset();
  ASSERT_OK_AND_ASSIGN(const ByteBuffer bytes, disk_.Contents(paths_[1]));
  int failed = 0, harmless = 0;
  for (const OpenMode mode : {OpenMode::kMapped, OpenMode::kArray}) {
    for (const format::SectionEntry& section : SectionsOf(bytes)) {
      for (uint64_t at = section.offset; at < section.offset + section.length; at += format::kPageBytes) {
        SCOPED_TRACE(format::SectionLabel(section.kind, section.id) + " at " + std::to_string(at));
        const std::unique_ptr<env::SimDisk> disk = disk_.CrashedCopy(env::CrashPolicy::KeepAll());
        Options options;
        options.open_mode = mode;
        options.merge_factor = 0;
        const env::Env env = disk->NewProcess();
        ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(env, "/s", options, nullptr));
        // Verified once, and then damaged, as far as a mapping shows it: a merge must not believe what was verified before.
        ExpectSameDocuments(store->TakeSnapshot(), oracle_);
        ASSERT_OK(disk->FlipBit(paths_[1], at * 8 + at % 8));
        const std::vector<std::string> files = disk->FileNames();
        const absl::Status merged = store->Merge();
        if (mode == OpenMode::kArray) {
          ASSERT_OK(merged) << "the array holds what was verified";
        } else if (!merged.ok()) {
          ExpectDamageIn(merged, paths_[1]);
          EXPECT_EQ(store->GetStats().segments.size(), 3u);
          ++failed;
          continue;
        } else {
          ++harmless;
        }
        ASSERT_EQ(store->GetStats().segments.size(), 1u);
        ExpectSameDocuments(store->TakeSnapshot(), oracle_);
        ExpectCheckClean(*store);
      }
    }
  }
  EXPECT_GT(failed, 10);
  std::printf("flipped before a merge: %d noticed, %d in pages that a merge does not need\n", failed, harmless);
}

TEST(QuarantineWithoutKeys, WritesGoOnWithAMissingSegment) {
  env::SimDisk disk(8);
  Schema schema;
  schema.default_group = {"body"};
  schema.fields = {{"body", FieldType::kText, true, true, false, {}}};
  Options options;
  options.create_if_missing = true;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
  Document document;
  document.Add("body", std::string("some words"));
  for (int s = 0; s < 2; ++s) {
    for (int i = 0; i < 5; ++i) ASSERT_OK(store->Put(document));
    ASSERT_OK(store->Flush());
  }
  ASSERT_OK(store->Put(document));  // replayed at the next opening
  const uint64_t lost = store->GetStats().segments[0].id;
  ASSERT_OK(store->Close());
  ASSERT_OK(disk.NewProcess().files->Remove(SegmentPath("/s", lost)));
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK_AND_ASSIGN(store, OpenOn(disk.NewProcess(), "/s", Options(), nullptr));
    ASSERT_OK(store->Put(document));
    ASSERT_OK(store->Flush());
    EXPECT_EQ(store->TakeSnapshot().document_count(), 12u + round);
    ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store->Prepare("words"));
    SearchOptions partial;
    partial.allow_partial = true;
    ASSERT_OK_AND_ASSIGN(const SearchResult result, store->TakeSnapshot().Search(query, partial));
    EXPECT_EQ(result.total, 7u + round);
    EXPECT_EQ(result.documents_not_searched, 5u);
    WriteBatch by_id;
    by_id.DeleteId(2);
    ExpectDamageIn(store->Write(by_id).status(), SegmentPath("/s", lost));
    ASSERT_OK(store->Close());
  }
}

Schema TextSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}}};
  return schema;
}

Document Doc(const std::string& key, const std::string& body) {
  Document document;
  document.Add("id", key).Add("body", body);
  return document;
}

// Words that many documents have, so that lists fill pages of their own.
std::string Common(int i) {
  std::string words;
  for (int n = 0; n < 40; ++n)
    if ((i * 7 + n * 3) % 5 < 2) words += " common" + std::to_string(n);
  return words;
}

TEST(QuarantineOfLengths, FailsWhatNeedsThemAndNotWrites) {
  constexpr int kDocuments = 6000;  // lengths take pages of their own
  env::SimDisk disk(9);
  Options options;
  options.create_if_missing = true;
  const Schema schema = TextSchema();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
  WriteBatch batch;
  for (int i = 0; i < kDocuments; ++i) batch.Put(Doc(DamageKey(i), i % 2 == 0 ? "even number" : "odd"));
  ASSERT_OK(store->Write(batch));
  ASSERT_OK(store->Flush());
  ASSERT_OK(store->Delete(DamageKey(0)));  // with deaths, opening needs the lengths
  ASSERT_OK(store->Flush());
  const std::string path = SegmentPath("/s", store->GetStats().segments[0].id);
  ASSERT_OK(store->Close());
  ASSERT_OK_AND_ASSIGN(const ByteBuffer bytes, disk.Contents(path));
  ASSERT_OK(disk.FlipBit(path, BitIn(bytes, SectionKind::kLengths)));
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK_AND_ASSIGN(store, OpenOn(disk.NewProcess(), "/s", Options(), nullptr));
    EXPECT_EQ(store->GetStats().state, StoreState::kDamaged);
    EXPECT_EQ(store->TakeSnapshot().document_count(), uint64_t{kDocuments - 1});
    ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store->Prepare("even"));
    const absl::StatusOr<SearchResult> scored = store->TakeSnapshot().Search(query);
    ExpectDamageIn(scored.status(), path);
    EXPECT_EQ(PlaceOf(scored.status())->section, "lengths");
    SearchOptions no_lengths;
    no_lengths.b = 0;
    ASSERT_OK_AND_ASSIGN(const SearchResult found, store->TakeSnapshot().Search(query, no_lengths));
    EXPECT_EQ(found.total, uint64_t{kDocuments / 2 - 1} - round) << "the first round replaces one of them";
    SearchOptions partial;
    partial.allow_partial = true;
    ASSERT_OK_AND_ASSIGN(const SearchResult others, store->TakeSnapshot().Search(query, partial));
    EXPECT_EQ(others.documents_not_searched, static_cast<uint64_t>(kDocuments - 1 - 3 * round));
    ASSERT_OK_AND_ASSIGN(const WriteResult replaced, [&] {
      WriteBatch writes;
      for (int i = 0; i < 3; ++i) writes.Put(Doc(DamageKey(round * 10 + 1 + i), "odd again"));
      return store->Write(writes);
    }());
    EXPECT_EQ(replaced.documents_replaced, 3u) << "a document whose length can't be read can be replaced";
    EXPECT_EQ(store->TakeSnapshot().document_count(), uint64_t{kDocuments - 1});
    ASSERT_OK_AND_ASSIGN(const StoredDocument again, store->TakeSnapshot().Get(DamageKey(round * 10 + 2)));
    EXPECT_EQ(std::get<std::string>(*again.document.Find("body")), "odd again");
    if (round == 1) ASSERT_OK(store->Flush());
    ASSERT_OK(store->Close());  // in the first round the journal is replayed
  }
}

TEST(CaseC17, OneFlippedBitInOneSegment) {
  constexpr int kSegments = 5, kDocuments = 1000, kDamaged = 2;
  env::SimDisk disk(17);
  Options options;
  options.create_if_missing = true;
  options.merge_factor = 0;
  const Schema schema = TextSchema();
  Oracle oracle(schema);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
  for (int s = 0; s < kSegments; ++s) {
    WriteBatch batch;
    for (int i = 0; i < kDocuments; ++i)
      batch.Put(Doc("s" + std::to_string(s) + "k" + std::to_string(i),
                    "only" + std::to_string(s) + " shared word" + std::to_string(i) + Common(i)));
    ASSERT_OK(store->Write(batch));
    ASSERT_OK(oracle.Apply(batch));
    ASSERT_OK(store->Flush());
  }
  const std::string name = SegmentPath("/s", store->GetStats().segments[kDamaged].id);
  ASSERT_OK(store->Close());
  store.reset();
  ASSERT_OK_AND_ASSIGN(const ByteBuffer bytes, disk.Contents(name));
  const uint64_t bit = BitIn(bytes, SectionKind::kPostings);
  ASSERT_OK(disk.FlipBit(name, bit));
  options.create_if_missing = false;
  ASSERT_OK_AND_ASSIGN(store, OpenOn(disk.NewProcess(), "/s", options, nullptr));
  const Snapshot snapshot = store->TakeSnapshot();
  EXPECT_EQ(snapshot.document_count(), uint64_t{kSegments * kDocuments});

  // Queries that do not need the block are exact: these words are in one document of each segment.
  std::set<DocumentId> left_out;
  for (int i = 0; i < kDocuments; ++i) left_out.insert(static_cast<DocumentId>(kDamaged * kDocuments + i + 1));
  for (const std::string words : {"word7", "word999 word3", "only0", "only4 word12"}) {
    ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store->Prepare(words));
    ASSERT_OK_AND_ASSIGN(const SearchResult result, snapshot.Search(query));
    ExpectHits(snapshot, result, oracle.Search(PlainWords(words)));
    EXPECT_EQ(result.documents_not_searched, 0u);
  }
  EXPECT_EQ(store->GetStats().state, StoreState::kHealthy) << "nobody has met the damage yet";
  int failed = 0;
  for (const std::string& words : {std::string("shared"), std::string("only2 word5"), Common(0) + Common(1) + Common(2)}) {
    ASSERT_OK_AND_ASSIGN(const PreparedQuery query, store->Prepare(words));
    SearchOptions search;
    const absl::StatusOr<SearchResult> result = snapshot.Search(query, search);
    search.allow_partial = true;
    ASSERT_OK_AND_ASSIGN(const SearchResult partial, snapshot.Search(query, search));
    if (result.ok()) {
      ExpectHits(snapshot, *result, oracle.Search(PlainWords(words)));
      EXPECT_EQ(partial.documents_not_searched, 0u);
      continue;
    }
    ++failed;
    EXPECT_CODE(result, kDataLoss);
    ASSERT_TRUE(PlaceOf(result.status()).has_value());
    EXPECT_EQ(PlaceOf(result.status())->file, name);
    EXPECT_EQ(PlaceOf(result.status())->section, "postings");
    EXPECT_EQ(PlaceOf(result.status())->offset, bit / 8 / 4096 * 4096);
    EXPECT_EQ(partial.documents_not_searched, uint64_t{kDocuments});
    ASSERT_EQ(partial.damage.size(), 1u);
    EXPECT_EQ(partial.damage[0], result.status());
    ExpectHits(snapshot, partial, oracle.SearchWithout(left_out, PlainWords(words), search));
  }
  EXPECT_GE(failed, 1);
  Stats stats = store->GetStats();
  EXPECT_EQ(stats.state, StoreState::kDamaged);
  EXPECT_GT(stats.state_since_ms, 0);
  EXPECT_FALSE(stats.state_remedy.empty());
  for (int s = 0; s < kSegments; ++s) EXPECT_EQ(stats.segments[s].damage.empty(), s != kDamaged) << s;

  // Commits, flushes and the merge of the others go on.
  WriteBatch batch;
  batch.Put(Doc("new", "commit works"));
  batch.Put(Doc("s2k5", "replaced in the damaged segment"));
  ASSERT_OK(store->Write(batch));
  ASSERT_OK(oracle.Apply(batch));
  ASSERT_OK(store->Flush());
  ExpectSameDocuments(store->TakeSnapshot(), oracle);
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, store->Check());
  ASSERT_FALSE(findings.empty());
  for (const Finding& finding : findings)
    EXPECT_NE(finding.message.find(name), std::string::npos) << finding.message;
  const absl::Status merged = store->Merge();
  EXPECT_CODE(merged, kDataLoss);
  EXPECT_NE(merged.message().find(name), absl::string_view::npos) << merged;
  stats = store->GetStats();
  ASSERT_EQ(stats.segments.size(), 3u) << "two, the damaged one, and three";
  EXPECT_FALSE(stats.segments[1].damage.empty());
  ExpectSameDocuments(store->TakeSnapshot(), oracle);
}

}  // namespace
}  // namespace ashlar::testing
