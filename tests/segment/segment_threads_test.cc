// Many threads ask one mapped segment, whose pages are verified as they are touched.
#include <gtest/gtest.h>

#include <thread>

#include "src/segment/segment.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

TEST(SegmentThreads, AgreeWhileVerifying) {
  Prng random(3);
  const ModelStore store;
  Schema schema;
  AddField("id", FieldType::kKeyword, &schema);
  AddField("title", FieldType::kText, &schema);
  AddField("body", FieldType::kText, &schema);
  AddField("size", FieldType::kInt64, &schema);
  schema.key = "id";
  schema.default_group = {"title", "body"};
  const std::vector<ModelDocument> documents = RandomDocuments(schema, 400, 1, &random);
  const auto entry = store.Build(schema, 1, documents);
  ASSERT_TRUE(entry.ok());
  const auto segment = store.Open(*entry);
  ASSERT_TRUE(segment.ok());
  constexpr size_t kThreads = 4;
  std::vector<std::vector<std::string>> answers(kThreads);
  std::vector<absl::Status> statuses(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { statuses[t] = AskEverything(**segment, schema, documents, &answers[t]); });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < kThreads; ++t) {
    EXPECT_TRUE(statuses[t].ok()) << statuses[t];
    EXPECT_EQ(answers[t], answers[0]);
  }
}

}  // namespace
}  // namespace ashlar::segment
