// The contract of Catalog (src/catalog/catalog.h), over LMDB and over files in memory.
#include <thread>

#include "tests/catalog/catalog_harness.h"

namespace ashlar::catalog {
namespace {

class CatalogContractTest : public testing::TestWithParam<bool> {
 protected:
  CatalogContractTest() {
    if (GetParam()) {
      env_ = env::PosixEnv();
      directory_ = temporary_.path();
    } else {
      memory_ = env::NewMemoryEnv();
      env_ = memory_->env();
      directory_ = "/store";
      EXPECT_TRUE(env_.files->CreateDirectory(directory_).ok());
    }
  }
  std::unique_ptr<Catalog> Open(Access access) {
    auto catalog = OpenCatalog(env_, directory_, access);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return catalog.ok() ? *std::move(catalog) : nullptr;
  }

  TemporaryDirectory temporary_;
  std::unique_ptr<env::MemoryEnv> memory_;
  env::Env env_;
  std::string directory_;
};

TEST_P(CatalogContractTest, OnlyCreateMakesOne) {
  EXPECT_TRUE(absl::IsNotFound(OpenCatalog(env_, directory_, Access::kWrite).status()));
  EXPECT_TRUE(absl::IsNotFound(OpenCatalog(env_, directory_, Access::kRead).status()));
  EXPECT_TRUE(env_.files->List(directory_)->empty());
  EXPECT_TRUE(absl::IsNotFound(Open(Access::kCreate)->Read().status()));
  EXPECT_TRUE(absl::IsNotFound(Open(Access::kCreate)->Read().status()));
  EXPECT_TRUE(absl::IsNotFound(Open(Access::kWrite)->Read().status()));
  EXPECT_TRUE(absl::IsNotFound(Open(Access::kRead)->Read().status()));
}

TEST_P(CatalogContractTest, NewestValueIsReadHereAndAfterReopening) {
  auto catalog = Open(Access::kCreate);
  for (uint64_t generation = 1; generation <= 50; ++generation) {
    const format::CatalogValue value = MakeValue(generation, generation);
    ASSERT_TRUE(catalog->Commit(value).ok());
    ASSERT_EQ(*catalog->Read(), value);
    ASSERT_EQ(*Open(Access::kRead)->Read(), value);
    if (generation % 7 != 0) continue;
    catalog.reset();
    catalog = Open(Access::kWrite);
    ASSERT_EQ(*catalog->Read(), value);
  }
  EXPECT_TRUE(catalog->Check()->empty());
}

TEST_P(CatalogContractTest, GenerationsFollowEachOther) {
  auto catalog = Open(Access::kCreate);
  EXPECT_TRUE(absl::IsFailedPrecondition(catalog->Commit(MakeValue(2))));
  ASSERT_TRUE(catalog->Commit(MakeValue(1)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(catalog->Commit(MakeValue(1))));
  EXPECT_TRUE(absl::IsFailedPrecondition(catalog->Commit(MakeValue(3))));
  ASSERT_TRUE(catalog->Commit(MakeValue(2)).ok());
  EXPECT_EQ(catalog->Read()->generation, 2u);
}

TEST_P(CatalogContractTest, ReplaceMakesAnyGenerationTheNewest) {
  for (const uint64_t generation : {1, 2, 3, 4, 5, 6, 7, 40, 41, 1000, 1001, 1003, 4002, 4007}) {
    SCOPED_TRACE(generation);
    // In place of what was there, and where there is nothing.
    ASSERT_TRUE(ReplaceCatalog(env_, directory_, MakeValue(generation)).ok());
    const std::string fresh = directory_ + "/fresh" + std::to_string(generation);
    ASSERT_TRUE(env_.files->CreateDirectory(fresh).ok());
    ASSERT_TRUE(ReplaceCatalog(env_, fresh, MakeValue(generation)).ok());
    for (const std::string& place : {directory_, fresh}) {
      auto catalog = OpenCatalog(env_, place, Access::kWrite);
      ASSERT_TRUE(catalog.ok()) << catalog.status();
      EXPECT_EQ(*(*catalog)->Read(), MakeValue(generation));
      EXPECT_TRUE((*catalog)->Check()->empty());
      if (place == directory_) continue;
      for (uint64_t next = generation + 1; next < generation + 5; ++next) {
        ASSERT_TRUE((*catalog)->Commit(MakeValue(next)).ok());
        EXPECT_EQ(*(*catalog)->Read(), MakeValue(next));
        EXPECT_TRUE((*catalog)->Check()->empty());
      }
    }
  }
  const auto entries = env_.files->List(directory_);
  ASSERT_TRUE(entries.ok());
  for (const auto& entry : *entries) EXPECT_EQ(entry.name.find("new"), std::string::npos);
}

TEST_P(CatalogContractTest, WhoHasTheReplacedCatalogOpenKeepsIt) {
  ASSERT_TRUE(ReplaceCatalog(env_, directory_, MakeValue(7)).ok());
  const auto old = Open(Access::kRead);
  ASSERT_TRUE(ReplaceCatalog(env_, directory_, MakeValue(20)).ok());
  EXPECT_EQ(*Open(Access::kRead)->Read(), MakeValue(20));
  if (GetParam()) EXPECT_EQ(*old->Read(), MakeValue(7));
  EXPECT_EQ(*Open(Access::kWrite)->Read(), MakeValue(20));
}

TEST_P(CatalogContractTest, RewriteLeavesNothingOfOlderValues) {
  auto catalog = Open(Access::kCreate);
  const auto reader = Open(Access::kRead);
  format::CatalogValue value = MakeValue(1);
  value.analyzer_identity = "an identity of long ago";
  ASSERT_TRUE(catalog->Commit(value).ok());
  for (uint64_t generation = 2; generation < 6; ++generation) ASSERT_TRUE(catalog->Commit(MakeValue(generation)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(catalog->Rewrite(MakeValue(7))));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(Access::kRead)->Rewrite(MakeValue(6))));
  ASSERT_TRUE(catalog->Rewrite(MakeValue(6)).ok());
  const auto entries = env_.files->List(directory_);
  ASSERT_TRUE(entries.ok());
  for (const auto& entry : *entries) {
    if (!entry.is_file || entry.name.ends_with("-lock")) continue;  // to close that would drop this process's locks
    const auto bytes = env::ReadFile(*env_.files, env::JoinPath(directory_, entry.name));
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(std::string_view(AsString(*bytes)).find("long ago"), std::string_view::npos) << entry.name;
  }
  // Who writes goes on, and who reads finds out.
  EXPECT_FALSE(*catalog->WasReplaced());
  EXPECT_EQ(*reader->WasReplaced(), GetParam());
  EXPECT_EQ(*catalog->Read(), MakeValue(6));
  ASSERT_TRUE(catalog->Commit(MakeValue(7)).ok());
  EXPECT_EQ(*Open(Access::kRead)->Read(), MakeValue(7));
  ASSERT_TRUE(catalog->Rewrite(MakeValue(8)).ok());
  ASSERT_TRUE(catalog->Rewrite(MakeValue(9)).ok());
  EXPECT_TRUE(catalog->Check()->empty());
  catalog.reset();
  EXPECT_EQ(*Open(Access::kWrite)->Read(), MakeValue(9));
}

TEST_P(CatalogContractTest, ReadersDoNotCommit) {
  ASSERT_TRUE(Open(Access::kCreate)->Commit(MakeValue(1)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(Access::kRead)->Commit(MakeValue(2))));
}

TEST_P(CatalogContractTest, ValueThatCouldNotBeReadIsRefused) {
  auto catalog = Open(Access::kCreate);
  format::CatalogValue value = MakeValue(1);
  value.segments[1].first_id = value.segments[0].last_id;  // overlaps
  EXPECT_TRUE(absl::IsInternal(catalog->Commit(value)));
  EXPECT_TRUE(absl::IsNotFound(catalog->Read().status()));
  EXPECT_TRUE(catalog->Commit(MakeValue(1)).ok());
}

TEST_P(CatalogContractTest, ReaderSeesCommitsOfAnotherHandle) {
  auto writer = Open(Access::kCreate);
  auto reader = Open(Access::kRead);
  EXPECT_TRUE(absl::IsNotFound(reader->Read().status()));
  for (uint64_t generation = 1; generation <= 5; ++generation) {
    ASSERT_TRUE(writer->Commit(MakeValue(generation)).ok());
    EXPECT_EQ(reader->Read()->generation, generation);
  }
}

TEST_P(CatalogContractTest, LargeValues) {
  auto catalog = Open(Access::kCreate);
  for (uint64_t generation = 1; generation <= 4; ++generation) {
    const format::CatalogValue value = MakeValue(generation, 20000);
    ASSERT_TRUE(catalog->Commit(value).ok());
    ASSERT_EQ(*catalog->Read(), value);
  }
  catalog.reset();
  EXPECT_EQ(*Open(Access::kWrite)->Read(), MakeValue(4, 20000));
}

TEST_P(CatalogContractTest, ManyReadersBesideAWriter) {
  auto writer = Open(Access::kCreate);
  ASSERT_TRUE(writer->Commit(MakeValue(1)).ok());
  constexpr uint64_t kGenerations = 100;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([this] {
      uint64_t last = 0;
      while (last < kGenerations) {
        auto reader = OpenCatalog(env_, directory_, Access::kRead);
        ASSERT_TRUE(reader.ok()) << reader.status();
        auto value = (*reader)->Read();
        ASSERT_TRUE(value.ok()) << value.status();
        ASSERT_GE(value->generation, last);
        ASSERT_EQ(*value, MakeValue(value->generation));
        last = value->generation;
      }
    });
  }
  for (uint64_t generation = 2; generation <= kGenerations; ++generation)
    EXPECT_TRUE(writer->Commit(MakeValue(generation)).ok());
  for (std::thread& reader : readers) reader.join();
}

TEST_P(CatalogContractTest, EveryFileOfItsOwnIsKnown) {
  auto catalog = Open(Access::kCreate);
  for (uint64_t generation = 1; generation <= 4; ++generation) ASSERT_TRUE(catalog->Commit(MakeValue(generation)).ok());
  auto entries = env_.files->List(directory_);
  EXPECT_LE(entries->size(), 3u);
  for (const auto& entry : *entries) EXPECT_TRUE(IsCatalogFile(entry.name)) << entry.name;
  for (const std::string_view name : {"catalog", "catalog.lmdb2", "catalog-1.cat", "status", "journal-spare.jnl", "notes.cat"})
    EXPECT_FALSE(IsCatalogFile(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(Implementations, CatalogContractTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Lmdb" : "Files"; });

// ---- The file catalog's damage: the newest name is believed, never an older one in its place.

class FileCatalogTest : public testing::Test {
 protected:
  FileCatalogTest() : memory_(env::NewMemoryEnv()), env_(memory_->env()) {
    EXPECT_TRUE(env_.files->CreateDirectory("/s").ok());
    auto catalog = OpenCatalog(env_, "/s", Access::kCreate);
    for (uint64_t generation = 1; generation <= 3; ++generation)
      EXPECT_TRUE((*catalog)->Commit(MakeValue(generation, 1)).ok());
  }
  void Write(const std::string& path, ByteSpan bytes) {
    auto file = env_.files->OpenForWrite(path);
    if (!file.ok()) file = env_.files->CreateFile(path);
    ASSERT_TRUE((*file)->Truncate(0).ok());
    ASSERT_TRUE((*file)->WriteAt(0, bytes).ok());
  }
  absl::StatusOr<format::CatalogValue> Read() {
    auto catalog = OpenCatalog(env_, "/s", Access::kWrite);
    return catalog.ok() ? (*catalog)->Read() : absl::StatusOr<format::CatalogValue>(catalog.status());
  }
  const std::string newest_ = "/s/catalog-0000000000000003.cat";
  std::unique_ptr<env::MemoryEnv> memory_;
  env::Env env_;
};

TEST_F(FileCatalogTest, EveryBitFlipAndTruncationOfTheNewestIsDamage) {
  const ByteBuffer whole = *env::ReadFile(*env_.files, newest_);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    ByteBuffer bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Write(newest_, bytes);
    const auto value = Read();
    ASSERT_TRUE(absl::IsDataLoss(value.status())) << bit << " " << value.status();
    ASSERT_EQ(PlaceOf(value.status())->file, newest_);
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    Write(newest_, ByteSpan(whole).first(size));
    ASSERT_TRUE(absl::IsDataLoss(Read().status())) << size;
  }
  auto catalog = OpenCatalog(env_, "/s", Access::kWrite);
  EXPECT_EQ((*catalog)->Check()->size(), 1u);
}

TEST_F(FileCatalogTest, CommitThatNeverFinishedIsIgnored) {
  Write("/s/catalog-new.cat", AsBytes("half a val"));
  EXPECT_EQ(Read()->generation, 3u);
  auto catalog = OpenCatalog(env_, "/s", Access::kWrite);
  ASSERT_TRUE((*catalog)->Commit(MakeValue(4)).ok());
  EXPECT_EQ(Read()->generation, 4u);
  EXPECT_FALSE(*env_.files->Exists("/s/catalog-new.cat"));
}

TEST_F(FileCatalogTest, ValueUnderAnotherNameIsDamage) {
  ASSERT_TRUE(env_.files->Rename(newest_, "/s/catalog-0000000000000009.cat").ok());
  EXPECT_TRUE(absl::IsDataLoss(Read().status()));
}

}  // namespace
}  // namespace ashlar::catalog
