// What a search allocates: the page that it gives back, and nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"
#include "ashlar/store.h"
#include "src/base/prng.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace {
thread_local size_t allocations = 0;
}

// The others of the library call these.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ashlar {
namespace {

constexpr uint64_t kDocuments = 40000;
constexpr double kWords = 5000;

// Frequent words have low numbers: about 1 / rank.
std::string Text(Prng* prng) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    absl::StrAppend(&text, "w", static_cast<uint64_t>(std::exp(prng->Uniform() * std::log(kWords))), " ");
  return text;
}

class AllocationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Schema schema;
    schema.key = "id";
    schema.default_group = {"body"};
    schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                     {"body", FieldType::kText, false, true, false, {}}};
    ASSERT_OK_AND_ASSIGN(store_, Store::Create(directory_.Sub("store"), schema));
    Prng prng(7);
    for (uint64_t id = 0; id < kDocuments; id += 1000) {
      WriteBatch batch;
      for (uint64_t i = id; i < id + 1000; ++i)
        batch.Put(Document().Add("id", absl::StrCat(i)).Add("body", Text(&prng)));
      ASSERT_OK(store_->Write(batch).status());
    }
    ASSERT_OK(store_->Merge());
  }

  size_t AllocationsOf(std::string_view query, uint64_t k) {
    const auto prepared = store_->Prepare(query);
    const Snapshot snapshot = store_->TakeSnapshot();
    SearchOptions options;
    options.k = k;
    options.total = total_;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(snapshot.Search(*prepared, options)->hits.size(), k);
    const size_t before = allocations;
    const auto result = snapshot.Search(*prepared, options);
    return allocations - before;
  }

  testing::TempDir directory_;
  std::unique_ptr<Store> store_;
  Total total_ = Total::kNone;
};

TEST_F(AllocationsTest, APageIsAllThatASearchAllocates) {
  for (const Total total : {Total::kNone, Total::kExact}) {
    total_ = total;
    EXPECT_EQ(AllocationsOf("w1", 10), 1u);
    EXPECT_EQ(AllocationsOf("w4000", 3), 1u);
    EXPECT_EQ(AllocationsOf("w3000 w3500 w4000", 5), 1u);
    EXPECT_EQ(AllocationsOf("w300 w500", 10), 1u);
    EXPECT_EQ(AllocationsOf("w1 w10 w100 w1000", 10), 1u);
    EXPECT_EQ(AllocationsOf("w1 w2 w3 w4 w5 w6 w7 w8 w9 w10", 100), 1u);
    EXPECT_EQ(AllocationsOf("+w2 +w30", 10), 1u);
    EXPECT_EQ(AllocationsOf("w2 w300 -w3", 10), 1u);
  }
}

}  // namespace
}  // namespace ashlar
