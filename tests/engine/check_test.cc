// Check: what is damaged is named, once, and nothing else is; also where the store does not open; and wrong content under
// right checksums is found by what contradicts it.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>

#include "format/catalog_value.h"
#include "format/deaths.h"
#include "src/engine/check_files.h"
#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

Schema SmallSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"number", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

Document Doc(int key, int version) {
  std::string body = "stone";
  for (int i = 0; i < 30; ++i) body += " w" + std::to_string((key * 31 + version * 17 + i * i) % 997);
  Document document;
  document.Add("id", "k" + std::to_string(key))
      .Add("title", "t" + std::to_string(version))
      .Add("body", body)
      .Add("number", int64_t{version});
  return document;
}

class CheckTest : public ::testing::Test {
 protected:
  // Two segments with deaths, and a journal.
  CheckTest() : disk_(11) {
    Options options;
    options.create_if_missing = true;
    options.merge_factor = 0;
    const Schema schema = SmallSchema();
    const absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(disk_.NewProcess(), "/store", options, &schema);
    EXPECT_OK(store);
    if (!store.ok()) return;
    for (int i = 0; i < 150; ++i) {
      EXPECT_OK((*store)->Put(Doc(i % 120, i)));
      if (i % 75 == 74) EXPECT_OK((*store)->Flush());
    }
    for (int i = 150; i < 160; ++i) EXPECT_OK((*store)->Put(Doc(i, i)));
  }

  static std::vector<Finding> Damages(env::SimDisk* disk) {
    const absl::StatusOr<std::vector<Finding>> findings = engine::CheckStoreOn(disk->NewProcess(), "/store");
    EXPECT_OK(findings);
    std::vector<Finding> damages;
    if (findings.ok())
      for (const Finding& finding : *findings)
        if (finding.kind == Finding::Kind::kDamage) damages.push_back(finding);
    return damages;
  }
  std::unique_ptr<env::SimDisk> Copy() const { return disk_.CrashedCopy(env::CrashPolicy::DropAll()); }
  std::string FileWith(std::string_view part) const {
    std::string found;
    for (const std::string& name : FileNames())
      if (name.find(part) != std::string::npos) found = name;
    return found;
  }
  // As findings spell them.
  std::vector<std::string> FileNames() const {
    std::vector<std::string> names;
    for (const std::string& name : disk_.FileNames()) names.push_back("/" + name);
    return names;
  }

  // Changes the newest catalog value and the deaths file, under right checksums, and gives the findings.
  std::vector<Finding> Forge(
      const std::function<void(format::CatalogValue&, format::DeathsFile&)>& change) const {
    const std::unique_ptr<env::SimDisk> disk = Copy();
    const std::string catalog = FileWith("/catalog-0"), deaths = FileWith(".dea");
    format::CatalogValue value = *format::DecodeCatalogValue(*disk->Contents(catalog), catalog);
    format::DeathsFile file = *format::DecodeDeaths(*disk->Contents(deaths), deaths);
    change(value, file);
    EXPECT_OK(disk->PutFile(catalog, format::EncodeCatalogValue(value)));
    EXPECT_OK(disk->PutFile(deaths, format::EncodeDeaths(file)));
    return Damages(disk.get());
  }

  env::SimDisk disk_;
};

TEST_F(CheckTest, AWholeStoreHasNoFindings) {
  const std::unique_ptr<env::SimDisk> disk = Copy();
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, engine::CheckStoreOn(disk->NewProcess(), "/store"));
  for (const Finding& finding : findings) ADD_FAILURE() << finding.message;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(disk->NewProcess(), "/store", Options(), nullptr));
  ASSERT_OK(store->Put(Doc(1, 1)));
  ExpectCheckClean(*store);  // reads the journal that it has just written
}

TEST_F(CheckTest, EachDamagedPageIsNamedAndNothingElse) {
  uint64_t runs = 0;
  for (const std::string& name : FileNames()) {
    const uint64_t size = disk_.DurableContents(name)->size();
    const bool journal = name.find("journal") != std::string::npos;
    for (uint64_t page = 0; page * 4096 < size; ++page) {
      if (journal && page > 1) break;  // zeros that mean nothing
      SCOPED_TRACE(name + " page " + std::to_string(page));
      const std::unique_ptr<env::SimDisk> disk = Copy();
      ASSERT_OK(disk->FlipBit(name, (page * 4096 + std::min<uint64_t>(size - page * 4096, 4096) / 2) * 8));
      const std::vector<Finding> damages = Damages(disk.get());
      ++runs;
      if (name.ends_with("/status") || name.ends_with("/lock")) {
        EXPECT_TRUE(damages.empty());
        continue;
      }
      // Padding, such as the end of a journal's file, may be anything.
      if (damages.empty() && journal) continue;
      ASSERT_EQ(damages.size(), 1u) << (damages.size() > 1 ? damages[1].message : "");
      // A record is malformed wherever in it the bit is.
      EXPECT_EQ(damages[0].file, name) << damages[0].message;
      EXPECT_NE(damages[0].section, "");
      if (name.ends_with(".seg")) EXPECT_EQ(damages[0].offset / 4096, page) << damages[0].message;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(runs, 10u);
}

TEST_F(CheckTest, EachMissingFileIsNamed) {
  for (const std::string& name : FileNames()) {
    if (name.ends_with("/status") || name.ends_with("/lock")) continue;
    if (name.find("/catalog-0") != std::string::npos) continue;  // the one before it takes its place
    SCOPED_TRACE(name);
    const std::unique_ptr<env::SimDisk> disk = Copy();
    ASSERT_OK(disk->NewProcess().files->Remove(name));
    disk->Crash(env::CrashPolicy::KeepAll());
    const std::vector<Finding> damages = Damages(disk.get());
    ASSERT_EQ(damages.size(), 1u) << (damages.size() > 1 ? damages[1].message : "");
    EXPECT_NE(damages[0].message.find(name), std::string::npos) << damages[0].message;
  }
}

TEST_F(CheckTest, AStoreThatDoesNotOpenIsCheckedFileByFile) {
  const std::unique_ptr<env::SimDisk> disk = Copy();
  const env::Env env = disk->NewProcess();
  const std::string segment = FileWith(".seg"), deaths = FileWith(".dea");
  // Of the copy: names whose removal was not synced are back.
  for (const std::string& name : disk->FileNames())
    if (name.find("/catalog-0") != std::string::npos) ASSERT_OK(env.files->Remove(name));
  disk->Crash(env::CrashPolicy::KeepAll());
  ASSERT_OK(disk->FlipBit(segment, 4096 * 8 + 77));
  ASSERT_OK(disk->FlipBit(deaths, 80 * 8));
  std::set<std::string> named;
  for (const Finding& finding : Damages(disk.get())) named.insert(finding.file);
  EXPECT_EQ(named, (std::set<std::string>{"/store", segment, deaths}));
  EXPECT_CODE(engine::CheckStoreOn(disk->NewProcess(), "/nowhere"), kNotFound);
  ASSERT_OK(disk->NewProcess().files->CreateDirectory("/empty"));
  EXPECT_CODE(engine::CheckStoreOn(disk->NewProcess(), "/empty"), kNotFound);
}

TEST_F(CheckTest, FilesOfOthersAreNotes) {
  const std::unique_ptr<env::SimDisk> disk = Copy();
  ASSERT_OK(disk->PutFile("/store/letter.txt", {}));
  EXPECT_TRUE(Damages(disk.get()).empty());
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, engine::CheckStoreOn(disk->NewProcess(), "/store"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, Finding::Kind::kNote);
  EXPECT_EQ(findings[0].file, "/store/letter.txt");
}

TEST_F(CheckTest, WrongDeathsUnderRightChecksums) {
  ASSERT_TRUE(Forge([](format::CatalogValue&, format::DeathsFile&) {}).empty());
  using Values = std::pair<format::CatalogValue*, format::DeathsFile*>;
  const std::vector<std::pair<std::string, std::function<void(Values)>>> changes = {
      {"one less than the catalog says", [](Values v) { v.second->segments[0].deaths.pop_back(); }},
      {"a replaced document lives again",
       [](Values v) {
         v.second->segments[0].deaths.pop_back();
         --v.first->segments[0].dead;
       }},
      {"an ordinal out of range",
       [](Values v) { v.second->segments[0].deaths.back().ordinal = v.first->segments[0].documents; }},
      {"dead before it was put", [](Values v) { v.second->segments[0].deaths.back().sequence = 1; }},
      {"dead beyond the floor", [](Values v) { v.second->segments[0].deaths.back().sequence = v.first->floor + 1; }},
      {"another generation", [](Values v) { v.second->generation = v.first->generation + 1; }},
  };
  for (const auto& change : changes) {  // clang 14 can't capture parts of a pair
    SCOPED_TRACE(change.first);
    const std::vector<Finding> damages = Forge(
        [&change](format::CatalogValue& value, format::DeathsFile& deaths) { change.second({&value, &deaths}); });
    EXPECT_FALSE(damages.empty());
  }
}

TEST_F(CheckTest, AWrongCatalogUnderRightChecksums) {
  const std::vector<std::pair<std::string, std::function<void(format::CatalogValue&)>>> changes = {
      {"documents", [](format::CatalogValue& v) { ++v.segments[0].documents; }},
      {"last id", [](format::CatalogValue& v) { --v.segments[0].last_id; }},
      {"file bytes", [](format::CatalogValue& v) { ++v.segments[0].file_bytes; }},
      {"file id", [](format::CatalogValue& v) { v.segments[0].file_id[0] ^= std::byte{1}; }},
      {"deaths file id", [](format::CatalogValue& v) { v.deaths_file_id[0] ^= std::byte{1}; }},
      {"a segment is left out", [](format::CatalogValue& v) { v.segments.erase(v.segments.begin()); }},
      {"floor", [](format::CatalogValue& v) { v.floor = v.segments.back().last_id - 1; }},
  };
  for (const auto& change : changes) {
    SCOPED_TRACE(change.first);
    const absl::StatusOr<std::vector<Finding>> findings = [&]() -> absl::StatusOr<std::vector<Finding>> {
      const std::unique_ptr<env::SimDisk> disk = Copy();
      const std::string catalog = FileWith("/catalog-0");
      format::CatalogValue value = *format::DecodeCatalogValue(*disk->Contents(catalog), catalog);
      change.second(value);
      EXPECT_OK(disk->PutFile(catalog, format::EncodeCatalogValue(value)));
      return engine::CheckStoreOn(disk->NewProcess(), "/store");
    }();
    ASSERT_OK(findings);
    EXPECT_FALSE(findings->empty());  // a segment that is left out is a stranger's file: a note
  }
}

TEST_F(CheckTest, ProgressGoesToTheEnd) {
  const std::unique_ptr<env::SimDisk> disk = Copy();
  uint64_t last = 0, end = 0;
  ASSERT_OK(engine::CheckStoreOn(disk->NewProcess(), "/store", [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    last = done;
    end = all;
  }));
  EXPECT_EQ(last, end);
  EXPECT_GT(end, 0u);
}

}  // namespace
}  // namespace ashlar::testing
