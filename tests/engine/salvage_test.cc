// Salvage: a small store, each page of each file damaged in turn and each file missing in turn. What is undamaged comes
// out as it was, nothing else does, and the report says what is missing.
#include "src/engine/salvage.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

constexpr uint64_t kPage = 4096;

Schema SmallSchema(bool with_key) {
  Schema schema;
  if (with_key) schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"number", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

// Random bytes do not compress, so that documents lie on many pages.
Document Doc(Prng* prng, int key, int version) {
  std::string body = "stone " + std::to_string(version);
  for (int i = 0; i < 40; ++i) {
    body += ' ';
    for (int c = 0; c < 8; ++c) body += static_cast<char>('a' + prng->Below(26));
  }
  Document document;
  document.Add("id", "k" + std::to_string(key)).Add("body", body).Add("number", int64_t{version});
  return document;
}

Options SmallOptions() {
  Options options;
  options.durability = Durability::kSync;
  options.merge_factor = 0;
  return options;
}

// Two segments with deaths in both, and a journal that replaces and deletes.
struct Filled {
  explicit Filled(bool with_key) : oracle(SmallSchema(with_key)) {}
  Oracle oracle;
  std::map<DocumentId, Document> ever;  // every version that there ever was
};

void Fill(const env::Env& env, bool with_key, Filled* filled) {
  Options options = SmallOptions();
  options.create_if_missing = true;
  const Schema schema = SmallSchema(with_key);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(env, "/store", options, &schema));
  Prng prng(7);
  const auto write = [&](const WriteBatch& batch) {
    const DocumentId first = filled->oracle.next_sequence();
    ASSERT_OK(store->Write(batch));
    ASSERT_OK(filled->oracle.Apply(batch));
    if (const auto put = filled->oracle.GetById(first); put.has_value()) filled->ever[first] = put->document;
  };
  for (int i = 0; i < 60; ++i) {
    WriteBatch batch;
    batch.Put(Doc(&prng, i, i));
    write(batch);
  }
  ASSERT_OK(store->Flush());
  for (int i = 60; i < 110; ++i) {
    WriteBatch batch;
    batch.Put(Doc(&prng, i % 90, i));  // the last ones replace
    write(batch);
  }
  const std::vector<DocumentId> ids = filled->oracle.Ids();
  for (const size_t at : {5u, 17u, 40u}) {
    WriteBatch batch;
    if (with_key) {
      batch.Delete("k" + std::to_string(at + 30));
    } else {
      batch.DeleteId(ids[at]);
    }
    write(batch);
  }
  ASSERT_OK(store->Flush());
  for (int i = 110; i < 130; ++i) {
    WriteBatch batch;
    batch.Put(Doc(&prng, i, i));
    if (with_key && i % 5 == 0) batch.Delete("k" + std::to_string(i - 60));
    write(batch);
  }
  ASSERT_OK(store->Sync());
}

struct Salvaged {
  SalvageReport report;
  std::map<DocumentId, Document> documents;
};

// Salvages, and checks what holds in every case.
absl::StatusOr<Salvaged> SalvageAndCheck(env::SimDisk* disk, const Filled& filled) {
  const env::Env env = disk->NewProcess();
  std::map<std::string, ByteBuffer> before;
  for (const std::string& name : disk->FileNames()) before[name] = *disk->Contents(name);
  absl::StatusOr<SalvageReport> report = engine::SalvageOn(env, "/store", "/out", {});
  for (const auto& [name, bytes] : before) EXPECT_EQ(*disk->Contents(name), bytes) << name << " was changed";
  if (!report.ok()) return report.status();
  Salvaged result;
  result.report = *report;
  Options options = SmallOptions();
  const absl::StatusOr<std::unique_ptr<Store>> out = OpenOn(env, "/out", options, nullptr);
  EXPECT_OK(out);
  if (!out.ok()) return out.status();
  ExpectCheckClean(**out);
  std::set<std::string> keys;
  EXPECT_OK((*out)->TakeSnapshot().Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
    result.documents[stored.id] = stored.document;
    if (!stored.key.empty()) EXPECT_TRUE(keys.insert(stored.key).second) << stored.key;
    const auto real = filled.ever.find(stored.id);
    EXPECT_TRUE(real != filled.ever.end()) << "document " << stored.id << " never was";
    if (real != filled.ever.end()) EXPECT_EQ(stored.document, real->second);
    return true;
  }));
  EXPECT_EQ(result.report.documents_saved, result.documents.size());
  // Ids are not given again, whatever became of their documents.
  Prng prng(1);
  const absl::StatusOr<Sequence> later = (*out)->Put(Doc(&prng, 5000, 1));
  EXPECT_OK(later);
  if (later.ok() && !result.report.catalog_lost && result.report.batches_lost_min == 0)
    EXPECT_GE(*later, filled.oracle.next_sequence());
  return result;
}

std::map<DocumentId, Document> Expected(const Oracle& oracle) {
  std::map<DocumentId, Document> expected;
  for (const DocumentId id : oracle.Ids()) expected[id] = oracle.GetById(id)->document;
  return expected;
}

enum class FileKind { kCatalog, kSegment, kDeaths, kJournal, kOther };
FileKind KindOf(const std::string& name) {
  if (name.find("catalog-") != std::string::npos) return FileKind::kCatalog;
  if (name.ends_with(".seg")) return FileKind::kSegment;
  if (name.ends_with(".dea")) return FileKind::kDeaths;
  if (name.find("journal-0") != std::string::npos) return FileKind::kJournal;
  return FileKind::kOther;
}

bool NewestCatalog(const env::SimDisk& disk, const std::string& name) {
  std::string newest;
  for (const std::string& other : disk.FileNames())
    if (KindOf(other) == FileKind::kCatalog) newest = std::max(newest, other);
  return name == newest;
}

// What one damaged file may cost.
void ExpectLosses(const Salvaged& salvaged, const Filled& filled, FileKind kind, const std::string& what) {
  SCOPED_TRACE(what);
  const std::map<DocumentId, Document> expected = Expected(filled.oracle);
  uint64_t missing = 0, undone = 0;
  for (const auto& [id, document] : expected) missing += salvaged.documents.contains(id) ? 0 : 1;
  for (const auto& [id, document] : salvaged.documents) undone += expected.contains(id) ? 0 : 1;
  const SalvageReport& report = salvaged.report;
  if (undone > 0) EXPECT_TRUE(report.deletes_may_be_undone);
  switch (kind) {
    case FileKind::kSegment:
      EXPECT_EQ(undone, 0u);
      EXPECT_FALSE(report.deletes_may_be_undone);
      // A document of which only the DocumentId is known may have been deleted by the journal since.
      EXPECT_GE(report.documents_lost, missing);
      EXPECT_LE(report.documents_lost, missing + 4);
      break;
    case FileKind::kDeaths:
      EXPECT_EQ(missing, 0u);
      EXPECT_EQ(report.documents_lost, 0u);
      break;
    case FileKind::kJournal:
      if (missing > 0) EXPECT_FALSE(report.damage.empty());
      break;
    case FileKind::kCatalog:
    case FileKind::kOther:
      EXPECT_EQ(missing, 0u);
      EXPECT_EQ(undone, 0u);
      EXPECT_EQ(report.documents_lost, 0u);
      break;
  }
  if (missing == 0 && undone == 0 && report.documents_lost == 0 && report.damage.empty()) return;
  EXPECT_FALSE(report.damage.empty()) << "whatever is missing has a reason";
}

class SalvageTest : public ::testing::TestWithParam<bool> {
 protected:
  SalvageTest() : disk_(3), filled_(GetParam()) { Fill(disk_.NewProcess(), GetParam(), &filled_); }
  env::SimDisk disk_;
  Filled filled_;
};

INSTANTIATE_TEST_SUITE_P(Keys, SalvageTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "with" : "without"; });

TEST_P(SalvageTest, AWholeStoreComesOutWhole) {
  ASSERT_OK_AND_ASSIGN(const Salvaged salvaged, SalvageAndCheck(&disk_, filled_));
  EXPECT_EQ(salvaged.documents, Expected(filled_.oracle));
  EXPECT_TRUE(salvaged.report.damage.empty());
  EXPECT_EQ(salvaged.report.documents_lost, 0u);
  EXPECT_FALSE(salvaged.report.deletes_may_be_undone);
  EXPECT_FALSE(salvaged.report.catalog_lost);
  EXPECT_EQ(salvaged.report.last_sequence + 1, filled_.oracle.next_sequence());
}

TEST_P(SalvageTest, EachPageOfEachFileDamaged) {
  std::map<FileKind, uint64_t> whole;  // runs in which everything came out
  uint64_t runs = 0, segment_runs = 0, segment_lost = 0;
  for (const std::string& name : disk_.FileNames()) {
    const uint64_t size = disk_.DurableContents(name)->size();
    const FileKind kind = KindOf(name);
    for (uint64_t page = 0; page * kPage < size; ++page) {
      if (kind == FileKind::kJournal && page > 12 && page * kPage + kPage < size) continue;  // zeros
      const std::unique_ptr<env::SimDisk> disk = disk_.CrashedCopy(env::CrashPolicy::DropAll());
      const uint64_t middle = page * kPage + std::min(kPage, size - page * kPage) / 2;
      for (const uint64_t at : {page * kPage, middle}) ASSERT_OK(disk->FlipBit(name, at * 8 + page % 8));
      ASSERT_OK_AND_ASSIGN(const Salvaged salvaged, SalvageAndCheck(disk.get(), filled_));
      ExpectLosses(salvaged, filled_, kind, name + " page " + std::to_string(page));
      ++runs;
      if (salvaged.documents == Expected(filled_.oracle)) ++whole[kind];
      if (kind == FileKind::kSegment) {
        ++segment_runs;
        segment_lost += salvaged.report.documents_lost;
      }
      if (kind == FileKind::kCatalog) EXPECT_EQ(salvaged.report.catalog_lost, NewestCatalog(disk_, name));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(runs, 20u);
  EXPECT_GT(segment_runs, 10u);
  // A page holds a few documents; only the first and the last page concern a whole segment.
  EXPECT_LT(segment_lost, segment_runs * 30);
  EXPECT_GT(whole[FileKind::kSegment], 0u);
}

TEST_P(SalvageTest, EachFileMissing) {
  for (const std::string& name : disk_.FileNames()) {
    const std::unique_ptr<env::SimDisk> disk = disk_.CrashedCopy(env::CrashPolicy::DropAll());
    ASSERT_OK(disk->NewProcess().files->Remove(name));
    const bool newest = NewestCatalog(disk_, name);
    const absl::StatusOr<Salvaged> salvaged = SalvageAndCheck(disk.get(), filled_);
    SCOPED_TRACE(name);
    ASSERT_OK(salvaged);
    // Without its newest generation the catalog in files goes back; that is told by newer segments, or not at all.
    if (KindOf(name) != FileKind::kCatalog || !newest) ExpectLosses(*salvaged, filled_, KindOf(name), name);
    if (HasFailure()) return;
  }
}

TEST_P(SalvageTest, WithoutAnyCatalog) {
  const env::Env env = disk_.NewProcess();
  for (const std::string& name : disk_.FileNames())
    if (KindOf(name) == FileKind::kCatalog) ASSERT_OK(env.files->Remove(name));
  disk_.Crash(env::CrashPolicy::KeepAll());
  ASSERT_OK_AND_ASSIGN(const Salvaged salvaged, SalvageAndCheck(&disk_, filled_));
  EXPECT_TRUE(salvaged.report.catalog_lost);
  EXPECT_EQ(salvaged.documents, Expected(filled_.oracle));
  EXPECT_EQ(salvaged.report.documents_lost, 0u);
}

// The inputs of a merge lie beside its output, as after a crash, and no catalog says which count.
TEST_P(SalvageTest, MergeInputsBesideTheOutputWithoutACatalog) {
  std::map<std::string, ByteBuffer> old;
  for (const std::string& name : disk_.FileNames())
    if (KindOf(name) == FileKind::kSegment) old[name] = *disk_.DurableContents(name);
  ASSERT_EQ(old.size(), 2u);
  disk_.Crash(env::CrashPolicy::KeepAll());
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store,
                         OpenOn(disk_.NewProcess(), "/store", SmallOptions(), nullptr));
    ASSERT_OK(store->Merge());
    ASSERT_OK(store->Close());
  }
  const env::Env env = disk_.NewProcess();
  for (const std::string& name : disk_.FileNames())
    if (KindOf(name) == FileKind::kCatalog) ASSERT_OK(env.files->Remove(name));
  for (const auto& [name, bytes] : old) ASSERT_OK(disk_.PutFile(name, bytes));
  disk_.Crash(env::CrashPolicy::KeepAll());
  ASSERT_OK_AND_ASSIGN(const Salvaged salvaged, SalvageAndCheck(&disk_, filled_));
  EXPECT_EQ(salvaged.documents, Expected(filled_.oracle)) << "what the merge dropped stays dropped";
}

TEST_P(SalvageTest, AJournalCountsUpToItsDamage) {
  std::string journal;
  for (const std::string& name : disk_.FileNames())
    if (KindOf(name) == FileKind::kJournal) journal = name;
  const ByteBuffer bytes = *disk_.DurableContents(journal);
  uint64_t stopped = 0;
  Sequence last = 0;
  for (uint64_t at = 400; at < 8000; at += 211) {
    const std::unique_ptr<env::SimDisk> disk = disk_.CrashedCopy(env::CrashPolicy::DropAll());
    ASSERT_OK(disk->FlipBit(journal, at * 8));
    ASSERT_OK_AND_ASSIGN(const Salvaged salvaged, SalvageAndCheck(disk.get(), filled_));
    if (salvaged.report.damage.empty()) continue;
    ++stopped;
    EXPECT_GT(salvaged.report.batches_lost_min, 0u);
    EXPECT_TRUE(salvaged.report.deletes_may_be_undone);
    EXPECT_GE(salvaged.report.last_sequence, last);
    last = salvaged.report.last_sequence;
    EXPECT_LT(last + 1, filled_.oracle.next_sequence());
  }
  EXPECT_GT(stopped, 20u);
}

TEST_P(SalvageTest, RefusesWhatItCanNotDo) {
  const env::Env env = disk_.NewProcess();
  EXPECT_CODE(engine::SalvageOn(env, "/nowhere", "/out", {}), kNotFound);
  ASSERT_OK(env.files->CreateDirectory("/empty"));
  EXPECT_CODE(engine::SalvageOn(env, "/empty", "/out", {}), kNotFound);
  EXPECT_CODE(engine::SalvageOn(env, "/store", "/empty", {}), kAlreadyExists);
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(env, "/store", SmallOptions(), nullptr));
    EXPECT_CODE(engine::SalvageOn(env, "/store", "/out", {}), kUnavailable);
  }
  EXPECT_FALSE(*env.files->Exists("/out"));
  for (const std::string& name : disk_.FileNames())
    if (KindOf(name) != FileKind::kDeaths && name.starts_with("store")) ASSERT_OK(disk_.TruncateFile(name, 0));
  EXPECT_CODE(engine::SalvageOn(env, "/store", "/out", {}), kDataLoss);
}

// A key's older version stands in where the deaths are lost and the newer one can't be read, and is told of.
TEST(SalvageVersionsTest, TheNewestReadableVersionOfAKeyWins) {
  env::SimDisk disk(9);
  Filled filled(true);
  Fill(disk.NewProcess(), true, &filled);
  for (const std::string& name : disk.FileNames())
    if (KindOf(name) == FileKind::kDeaths) ASSERT_OK(disk.TruncateFile(name, 10));
  std::string youngest;
  for (const std::string& name : disk.FileNames())
    if (KindOf(name) == FileKind::kSegment) youngest = name;
  const uint64_t pages = disk.DurableContents(youngest)->size() / kPage;
  uint64_t stand_ins = 0;
  for (uint64_t page = 1; page < pages; ++page) {
    const std::unique_ptr<env::SimDisk> damaged = disk.CrashedCopy(env::CrashPolicy::DropAll());
    ASSERT_OK(damaged->FlipBit(youngest, (page * kPage + 9) * 8));
    ASSERT_OK_AND_ASSIGN(const Salvaged salvaged, SalvageAndCheck(damaged.get(), filled));
    for (const Finding& finding : salvaged.report.damage)
      stand_ins += finding.message.find("is saved in its place") != std::string::npos;
  }
  EXPECT_GT(stand_ins, 0u);
}

}  // namespace
}  // namespace ashlar::testing
