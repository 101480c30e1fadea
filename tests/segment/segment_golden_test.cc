// The golden segment of format version 1: it opens and answers as it was built, the same documents give the same bytes, and
// every flipped bit and every truncation is an error or changes no answer.
//
// To write it anew (while version 1 may still change): ASHLAR_WRITE_GOLDEN=1 segment_golden_test, and commit the file together
// with the change of SPEC.md that made it necessary.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "src/env/sim_env.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

constexpr uint64_t kNumber = 7;

Schema GoldenSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"tag", FieldType::kKeyword, true, false, true, {}},
                   {"year", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

// Everything comes from fixed seeds, the file id too.
struct Golden {
  Golden() : disk(42), store(disk.NewProcess()) {
    Prng random(7);
    documents = RandomDocuments(schema, 4, 100, &random);
  }
  std::string Path() const { return env::JoinPath(store.directory, FileName(kNumber)); }

  const Schema schema = GoldenSchema();
  std::vector<ModelDocument> documents;
  env::SimDisk disk;
  ModelStore store;
};

ByteBuffer ReadGolden(const ByteBuffer& built) {
  const std::string path = std::string(ASHLAR_GOLDEN_DIR) + "/segment.bin";
  if (std::getenv("ASHLAR_WRITE_GOLDEN") != nullptr)
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(built.data()), static_cast<std::streamsize>(built.size()));
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return {AsBytes(bytes).begin(), AsBytes(bytes).end()};
}

TEST(SegmentGoldenTest, SameBytesSameAnswersAndNoDamageIsBelieved) {
  Golden golden;
  const absl::StatusOr<format::SegmentEntry> entry = golden.store.Build(golden.schema, kNumber, golden.documents);
  ASSERT_TRUE(entry.ok()) << entry.status();
  const absl::StatusOr<ByteBuffer> built = golden.disk.Contents(golden.Path());
  ASSERT_TRUE(built.ok());
  const ByteBuffer bytes = ReadGolden(*built);
  EXPECT_EQ(bytes, *built);

  const auto ask = [&](const ByteBuffer& content, std::vector<std::string>* answers) -> absl::Status {
    EXPECT_TRUE(golden.disk.PutFile(golden.Path(), content).ok());
    const absl::StatusOr<std::shared_ptr<const Segment>> segment = golden.store.Open(*entry, OpenMode::kArray);
    if (!segment.ok()) return segment.status();
    return AskEverything(**segment, golden.schema, golden.documents, answers);
  };
  std::vector<std::string> expected;
  ASSERT_TRUE(ask(bytes, &expected).ok());
  ASSERT_FALSE(expected.empty());
  const absl::StatusOr<std::shared_ptr<const Segment>> segment = golden.store.Open(*entry);
  ASSERT_TRUE(segment.ok()) << segment.status();
  ExpectHolds(**segment, golden.schema, golden.documents);

  uint64_t detected = 0, harmless = 0;
  const auto check = [&](const ByteBuffer& damaged, const std::string& what) {
    std::vector<std::string> answers;
    if (ask(damaged, &answers).ok()) {
      ++harmless;
      ASSERT_EQ(answers, expected) << what;
    } else {
      ++detected;
    }
  };
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    ByteBuffer damaged = bytes;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    check(damaged, "bit " + std::to_string(bit));
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(harmless, 0u) << "array mode verifies every byte when it opens";
  for (size_t length = 0; length < bytes.size(); ++length)
    check(ByteBuffer(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)), "length " + std::to_string(length));
  EXPECT_EQ(harmless, 0u);
  EXPECT_EQ(detected, bytes.size() * 9);
}

}  // namespace
}  // namespace ashlar::segment
