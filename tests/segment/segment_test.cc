// Segments: what was put in comes out, mapped and loaded, merged and not (SPEC S, K, Z, V).
#include "src/segment/segment.h"

#include <gtest/gtest.h>

#include "src/base/site.h"
#include "src/base/status.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

TEST(SegmentNames, AreNumbersBothWays) {
  EXPECT_EQ(FileName(0x2a), "segment-000000000000002a.seg");
  for (const uint64_t n : {uint64_t{1}, uint64_t{0x123456789abcdef0}, UINT64_MAX})
    EXPECT_EQ(NumberOf(FileName(n)), n);
  EXPECT_EQ(NumberOf("segment-000000000000002A.seg"), 0u);
  EXPECT_EQ(NumberOf("segment-2a.seg"), 0u);
  EXPECT_EQ(NumberOf("journal-000000000000002a.seg"), 0u);
}

TEST(Segment, HoldsWhatWasBuilt) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Prng random(seed);
    const ModelStore store;
    const Schema schema = RandomSchema(&random);
    const size_t count = seed % 4 == 0 ? 1 : 1 + random.Below(800);
    const std::vector<ModelDocument> documents = RandomDocuments(schema, count, 1 + random.Below(1000), &random);
    const absl::StatusOr<format::SegmentEntry> entry = store.Build(schema, seed, documents);
    ASSERT_TRUE(entry.ok()) << entry.status();
    EXPECT_EQ(entry->documents, count);
    EXPECT_EQ(*store.env.files->FileSize("dir/" + FileName(seed)), entry->file_bytes);

    const auto mapped = store.Open(*entry, OpenMode::kMapped);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    ExpectHolds(**mapped, schema, documents);
    const auto array = store.Open(*entry, OpenMode::kArray);
    ASSERT_TRUE(array.ok()) << array.status();
    std::vector<std::string> from_mapping, from_array;
    ASSERT_TRUE(AskEverything(**mapped, schema, documents, &from_mapping).ok());
    ASSERT_TRUE(AskEverything(**array, schema, documents, &from_array).ok());
    EXPECT_EQ(from_mapping, from_array);
    EXPECT_TRUE((*mapped)->Check().empty());

    uint64_t bytes = 0;
    for (const auto& [section, n] : (*mapped)->SectionBytes()) bytes += n;
    EXPECT_EQ(bytes, entry->file_bytes);
  }
}

TEST(Segment, KeyFieldHasOneDocumentPerTerm) {
  Prng random(5);
  const ModelStore store;
  Schema schema;
  AddField("id", FieldType::kKeyword, &schema);
  schema.key = "id";
  const std::vector<ModelDocument> documents = RandomDocuments(schema, 300, 1, &random);
  const auto segment = store.Open(*store.Build(schema, 1, documents));
  ASSERT_TRUE(segment.ok()) << segment.status();
  for (uint32_t ordinal = 0; ordinal < documents.size(); ++ordinal) {
    PostingCursor cursor = (*segment)->OpenTerm(0, documents[ordinal].key);
    EXPECT_EQ(cursor.document(), ordinal);
    EXPECT_EQ(cursor.frequency(), 1u);
    EXPECT_EQ(cursor.postings(), 1u);
    cursor.Next();
    EXPECT_EQ(cursor.document(), format::kNoDocument);
    EXPECT_TRUE(cursor.status().ok());
    std::vector<Value> values;
    ASSERT_TRUE((*segment)->ColumnValues(0, ordinal, &values).ok());
    EXPECT_EQ(values, std::vector<Value>{documents[ordinal].key});
  }
  EXPECT_EQ((*segment)->OpenTerm(0, "nobody").document(), format::kNoDocument);
  EXPECT_EQ((*segment)->OpenTerm(17, "nobody").document(), format::kNoDocument);
}

TEST(Segment, RejectsWhatIsNotItsOwn) {
  Prng random(6);
  const ModelStore store;
  const Schema schema = RandomSchema(&random);
  const auto entry = store.Build(schema, 1, RandomDocuments(schema, 20, 1, &random));
  ASSERT_TRUE(entry.ok());
  for (const OpenMode mode : {OpenMode::kMapped, OpenMode::kArray}) {
    const auto open = [&](const format::SegmentEntry& named, const format::StoreId& of_store, uint64_t generation) {
      return Segment::Open(store.env, "dir", named, of_store, generation, mode).status();
    };
    // Damage because of that one check.
    const auto expect_damage = [&](Site site, const format::SegmentEntry& named, const format::StoreId& of_store,
                                   uint64_t generation) {
      EXPECT_TRUE(absl::IsDataLoss(open(named, of_store, generation))) << SiteName(site);
      DisableSite(site);
      EXPECT_TRUE(open(named, of_store, generation).ok()) << SiteName(site);
      DisableSite(Site::kNone);
    };
    EXPECT_TRUE(open(*entry, store.store_id, 7).ok());
    expect_damage(Site::kCheckSegmentGeneration, *entry, store.store_id, 6);
    format::StoreId other = store.store_id;
    other[3] ^= std::byte{1};
    expect_damage(Site::kCheckStoreId, *entry, other, 7);
    format::SegmentEntry wrong = *entry;
    wrong.file_id[0] ^= std::byte{1};
    expect_damage(Site::kCheckSegmentIdentity, wrong, store.store_id, 7);
    wrong = *entry;
    wrong.file_bytes += 1;
    expect_damage(Site::kCheckSegmentSize, wrong, store.store_id, 7);
    wrong = *entry;
    wrong.documents += 1;
    EXPECT_TRUE(absl::IsDataLoss(open(wrong, store.store_id, 7)));
    wrong = *entry;
    wrong.number = 2;
    EXPECT_TRUE(absl::IsNotFound(open(wrong, store.store_id, 7)));
  }
}

TEST(SegmentBuilder, RefusesBadRows) {
  const ModelStore store;
  Schema schema;
  AddField("id", FieldType::kKeyword, &schema);
  AddField("size", FieldType::kInt64, &schema);
  schema.key = "id";
  const auto builder = SegmentBuilder::Create(store.env, "dir", store.Spec(schema, 1));
  ASSERT_TRUE(builder.ok());
  const std::vector<uint32_t> lengths(2);
  DocumentRow row;
  row.id = 5;
  row.key = "a";
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->AddDocument(row)));  // no lengths
  row.lengths = lengths;
  EXPECT_TRUE((*builder)->AddDocument(row).ok());
  row.key = "b";
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->AddDocument(row)));  // the same id
  row.id = 6;
  row.key = {};
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->AddDocument(row)));
  row.key = "b";
  format::ValueView value;
  value.field = 1;
  value.type = FieldType::kDouble;
  row.columns = {&value, 1};
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->AddDocument(row)));
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->BeginIndex(1)));
}

TEST(SegmentBuilder, NamesADuplicateKey) {
  Prng random(8);
  const ModelStore store;
  Schema schema;
  AddField("id", FieldType::kKeyword, &schema);
  schema.key = "id";
  std::vector<ModelDocument> documents = RandomDocuments(schema, 40, 1, &random);
  documents[33].key = documents[4].key;
  const absl::Status status = store.Build(schema, 1, documents).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_NE(FromAbsl(status.message()).find(documents[4].key), std::string_view::npos);
  EXPECT_FALSE(*store.env.files->Exists("dir/" + FileName(1)));
}

TEST(SegmentBuilder, UnfinishedRemovesItsFile) {
  const ModelStore store;
  Schema schema;
  AddField("size", FieldType::kInt64, &schema);
  {
    const auto builder = SegmentBuilder::Create(store.env, "dir", store.Spec(schema, 9));
    ASSERT_TRUE(builder.ok());
    EXPECT_TRUE(*store.env.files->Exists("dir/" + FileName(9)));
    EXPECT_TRUE(absl::IsAlreadyExists(SegmentBuilder::Create(store.env, "dir", store.Spec(schema, 9)).status()));
  }
  EXPECT_FALSE(*store.env.files->Exists("dir/" + FileName(9)));
}

TEST(Segment, LongDocumentsAndLengthsSurvive) {
  Prng random(10);
  const ModelStore store;
  Schema schema;
  AddField("text", FieldType::kText, &schema);
  schema.default_group = {"text"};
  std::vector<ModelDocument> documents = RandomDocuments(schema, 30, 1, &random);
  for (uint32_t n = 65533; n <= 65537; ++n) {
    std::vector<uint32_t>& positions = documents[n - 65533 + 11].terms[0]["w1"];
    positions.resize(n - documents[n - 65533 + 11].LengthOf(0) + positions.size());
    for (uint32_t i = 0; i < positions.size(); ++i) positions[i] = 2 * i;
  }
  for (int i = 0; i < 300000; ++i) documents[20].stored += static_cast<char>(random.Next());  // does not compress
  documents[21].stored = std::string(500000, 'x');
  const auto segment = store.Open(*store.Build(schema, 1, documents));
  ASSERT_TRUE(segment.ok()) << segment.status();
  ExpectHolds(**segment, schema, documents);
  EXPECT_TRUE((*segment)->Check().empty());
}

}  // namespace
}  // namespace ashlar::segment
