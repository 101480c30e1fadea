// Merging is building the live documents in one segment.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/segment/segment.h"
#include "src/segment/segment_impl.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

struct Inputs {
  std::vector<MergeInput> segments;
  std::vector<ModelDocument> live;
  std::vector<std::vector<uint32_t>> new_ordinal;
};

// Builds `parts` segments with consecutive ids; each document dies with chance 1 in `death` (0: nobody).
Inputs BuildInputs(const ModelStore& store, const Schema& schema, size_t parts, size_t documents_max, uint64_t death,
                   OpenMode mode, Prng* random) {
  Inputs inputs;
  DocumentId next_id = 1;
  for (size_t part = 0; part < parts; ++part) {
    std::vector<ModelDocument> documents = RandomDocuments(schema, 1 + random->Below(documents_max), next_id, random);
    next_id = documents.back().id + 1;
    const auto entry = store.Build(schema, part + 1, documents);
    EXPECT_TRUE(entry.ok()) << entry.status();
    MergeInput input;
    input.segment = *store.Open(*entry, mode);
    if (death != 0) input.dead.resize(documents.size());
    std::vector<uint32_t>& map = inputs.new_ordinal.emplace_back();
    for (size_t i = 0; i < documents.size(); ++i) {
      const bool dead = death != 0 && random->OneIn(death);
      if (dead) input.dead[i] = true;
      map.push_back(dead ? format::kNoDocument : static_cast<uint32_t>(inputs.live.size()));
      if (!dead) inputs.live.push_back(std::move(documents[i]));
    }
    inputs.segments.push_back(std::move(input));
  }
  return inputs;
}

TEST(SegmentMerge, EqualsBuildingTheLiveDocuments) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng random(seed);
    const ModelStore store;
    const Schema schema = RandomSchema(&random);
    const OpenMode mode = random.OneIn(2) ? OpenMode::kMapped : OpenMode::kArray;
    const Inputs inputs = BuildInputs(store, schema, 1 + random.Below(5), 500, random.Below(4), mode, &random);
    const absl::StatusOr<MergeOutput> merged =
        MergeSegments(store.env, "dir", store.Spec(schema, 100), inputs.segments);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(merged->new_ordinal, inputs.new_ordinal);
    EXPECT_EQ(merged->entry.documents, inputs.live.size());
    if (inputs.live.empty()) {
      EXPECT_FALSE(*store.env.files->Exists("dir/" + FileName(100)));
      continue;
    }
    const auto segment = store.Open(merged->entry);
    ASSERT_TRUE(segment.ok()) << segment.status();
    ExpectHolds(**segment, schema, inputs.live);
    EXPECT_TRUE((*segment)->Check().empty());

    const auto rebuilt = store.Open(*store.Build(schema, 101, inputs.live));
    ASSERT_TRUE(rebuilt.ok());
    std::vector<std::string> from_merge, from_build;
    ASSERT_TRUE(AskEverything(**rebuilt, schema, inputs.live, &from_build).ok());
    ASSERT_TRUE(AskEverything(**segment, schema, inputs.live, &from_merge).ok());
    // With a larger group the two may have chosen other largest fields, and counts of filtered lists then differ.
    if (GroupFieldsOf(schema).size() < 2) {
      EXPECT_EQ(from_merge, from_build);
    }
  }
}

// Fields that were added after the first inputs were built, and inputs that differ in their largest field.
TEST(SegmentMerge, TakesEarlierSchemas) {
  Prng random(31);
  const ModelStore store;
  Schema schema;
  AddField("title", FieldType::kText, &schema);
  AddField("id", FieldType::kKeyword, &schema);
  AddField("body", FieldType::kText, &schema);
  schema.default_group = {"title", "body"};
  schema.key = "id";
  Schema wider = schema;
  AddField("tag", FieldType::kKeyword, &wider);
  AddField("note", FieldType::kText, &wider);
  std::vector<ModelDocument> first = RandomDocuments(schema, 200, 1, &random);
  std::vector<ModelDocument> second = RandomDocuments(wider, 300, 100000, &random);
  for (ModelDocument& d : first) d.terms[0].clear();
  for (ModelDocument& d : second) d.terms[2].clear();
  std::vector<MergeInput> inputs(2);
  inputs[0].segment = *store.Open(*store.Build(schema, 1, first));
  inputs[1].segment = *store.Open(*store.Build(wider, 2, second));
  const auto merged = MergeSegments(store.env, "dir", store.Spec(wider, 3), inputs);
  ASSERT_TRUE(merged.ok()) << merged.status();
  std::vector<ModelDocument> all = first;
  for (ModelDocument& d : all) {
    d.terms.resize(wider.fields.size());
    d.columns.resize(wider.fields.size());
  }
  all.insert(all.end(), second.begin(), second.end());
  const auto segment = store.Open(merged->entry);
  ASSERT_TRUE(segment.ok()) << segment.status();
  ExpectHolds(**segment, wider, all);
  EXPECT_TRUE((*segment)->Check().empty());
}

// Segments large enough to have dictionaries: blocks are copied, and more dictionaries come together than one segment
// may name.
TEST(SegmentMerge, CopiesBlocksWithTheirDictionaries) {
  Prng random(32);
  const ModelStore store;
  Schema schema;
  AddField("id", FieldType::kKeyword, &schema);
  schema.key = "id";
  std::vector<MergeInput> inputs;
  std::vector<ModelDocument> live;
  uint64_t stored_bytes = 0;
  for (uint64_t part = 0; part < 10; ++part) {
    std::vector<ModelDocument> documents = RandomDocuments(schema, 1500, 1 + part * 100000, &random);
    for (ModelDocument& d : documents)
      d.stored = d.stored.substr(0, 300) + "part " + std::string(1, static_cast<char>('0' + part));
    MergeInput input;
    input.segment = *store.Open(*store.Build(schema, part + 1, documents));
    stored_bytes += input.segment->SectionBytes().at("stored");
    if (part % 3 == 0) {
      input.dead.resize(documents.size());
      input.dead[700] = true;
      documents.erase(documents.begin() + 700);
    }
    inputs.push_back(std::move(input));
    live.insert(live.end(), documents.begin(), documents.end());
  }
  const auto merged = MergeSegments(store.env, "dir", store.Spec(schema, 100), inputs);
  ASSERT_TRUE(merged.ok()) << merged.status();
  const auto segment = store.Open(merged->entry);
  ASSERT_TRUE(segment.ok()) << segment.status();
  ExpectHolds(**segment, schema, live);
  EXPECT_LT((*segment)->SectionBytes().at("stored"), stored_bytes);
  EXPECT_EQ(*static_cast<const SegmentImpl&>(**segment).stored().DictionaryCount(), format::kStoredDictionariesMax);
  EXPECT_TRUE((*segment)->Check().empty());
}

TEST(SegmentMerge, StopsWhenCancelled) {
  Prng random(33);
  const ModelStore store;
  const Schema schema = RandomSchema(&random);
  const Inputs inputs = BuildInputs(store, schema, 3, 3000, 0, OpenMode::kMapped, &random);
  int asked = 0;
  const auto merged =
      MergeSegments(store.env, "dir", store.Spec(schema, 100), inputs.segments, [&] { return ++asked == 1; });
  EXPECT_TRUE(absl::IsAborted(merged.status())) << merged.status();
  EXPECT_FALSE(*store.env.files->Exists("dir/" + FileName(100)));
}

TEST(SegmentMerge, WritesNothingWhenAllAreDead) {
  Prng random(34);
  const ModelStore store;
  const Schema schema = RandomSchema(&random);
  const Inputs inputs = BuildInputs(store, schema, 2, 30, 1, OpenMode::kMapped, &random);
  const auto merged = MergeSegments(store.env, "dir", store.Spec(schema, 100), inputs.segments);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->entry.documents, 0u);
  EXPECT_FALSE(*store.env.files->Exists("dir/" + FileName(100)));
}

}  // namespace
}  // namespace ashlar::segment
