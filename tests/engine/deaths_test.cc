// Document frequencies are those of live documents, whether few of a long list died (counted by seeking) or many
// (counted by walking), and for snapshots taken before and after.
#include <gtest/gtest.h>

#include <vector>

#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

TEST(DeathsTest, FewDeathsInLongLists) {
  env::SimDisk disk(1);
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"note", FieldType::kText, true, true, false, {}},
                   {"tag", FieldType::kKeyword, true, false, true, {}}};
  Options options;
  options.create_if_missing = true;
  options.merge_factor = 0;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
  Oracle oracle(schema);
  Prng prng(2);
  WriteBatch load;
  for (int i = 0; i < 2500; ++i) {
    Document document;
    std::string body = "stone wall";
    for (const char* word : {"arch", "granite", "marble", "x", "y", "z"})
      if (prng.OneIn(3)) body += std::string(" ") + word;
    document.Add("id", "doc" + std::to_string(i)).Add("body", body);
    if (prng.OneIn(2)) document.Add("note", std::string("slate chalk stone"));
    if (prng.OneIn(2)) document.Add("tag", std::string("granite"));
    load.Put(std::move(document));
  }
  ASSERT_OK(store->Write(load));
  ASSERT_OK(oracle.Apply(load));
  ASSERT_OK(store->Flush());
  RandomStore random(3);
  Snapshot held = store->TakeSnapshot();
  Oracle held_oracle = oracle;
  for (int round = 0; round < 40; ++round) {
    WriteBatch batch;
    for (uint64_t n = round == 30 ? 1500 : 1 + prng.Below(3); n > 0; --n)
      batch.Delete("doc" + std::to_string(prng.Below(2500)));
    ASSERT_OK(store->Write(batch));
    ASSERT_OK(oracle.Apply(batch));
    ExpectEqual(*store, store->TakeSnapshot(), oracle, &random, 2);
    ExpectEqual(*store, held, held_oracle, &random, 1);
    if (round % 7 == 6) {
      held = store->TakeSnapshot();
      held_oracle = oracle;
    }
    if (round == 20) ASSERT_OK(store->Flush());  // writes the deaths file
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(store->GetStats().segments.size(), 1u);
  EXPECT_GT(store->GetStats().segments[0].deleted, 1000u);
}

}  // namespace
}  // namespace ashlar::testing
