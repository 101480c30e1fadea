// The status page: readers beside a writer see whole publications only.
#include <thread>

#include "tests/journal/journal_harness.h"

namespace ashlar::journal {
namespace {

class StatusPageTest : public JournalTest {
 protected:
  std::unique_ptr<StatusPage> Open(bool writable) {
    auto page = StatusPage::Open(env_, kDirectory, context_.store_id, writable);
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? *std::move(page) : nullptr;
  }
};

TEST_F(StatusPageTest, NotThereUntilAWriterMadeIt) {
  EXPECT_FALSE(StatusPage::Open(env_, kDirectory, context_.store_id, false).ok());
  auto writer = Open(true);
  EXPECT_EQ(writer->Load(), std::nullopt);  // never written
}

TEST_F(StatusPageTest, PublishedIsLoaded) {
  auto writer = Open(true);
  auto reader = Open(false);
  for (uint64_t i = 1; i < 5; ++i) {
    writer->Publish({i, {i * 2, i * 3}, i * 4});
    const std::optional<Status> status = reader->Load();
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->sequence, i);
    EXPECT_EQ(status->position, (Position{i * 2, i * 3}));
    EXPECT_EQ(status->generation, i * 4);
  }
  reader->Publish({99, {1, 1}, 1});  // read-only: ignored
  EXPECT_EQ(writer->Load()->sequence, 4u);
}

TEST_F(StatusPageTest, AnotherStoresPageIsNotBelieved) {
  Open(true)->Publish({1, {1, 100}, 1});
  format::StoreId other{};
  auto page = StatusPage::Open(env_, kDirectory, other, false);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ((*page)->Load(), std::nullopt);
}

TEST_F(StatusPageTest, EveryBitFlipIsNoticedOrHarmless) {
  Open(true)->Publish({7, {2, 300}, 9});
  const std::string path = env::JoinPath(kDirectory, kStatusFileName);
  const ByteBuffer whole = ReadBytes(path);
  for (size_t bit = 0; bit < 128 * 8; ++bit) {
    ByteBuffer bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    WriteBytes(path, bytes);
    const std::optional<Status> status = Open(false)->Load();
    if (bit >= 64 && bit < 72 * 8) {
      EXPECT_EQ(status, std::nullopt) << bit;
    } else if (status.has_value()) {
      EXPECT_EQ(status->sequence, 7u);
      EXPECT_EQ(status->position, (Position{2, 300}));
    }
  }
}

TEST_F(StatusPageTest, NewWriterRepairsThePageOfOneThatDiedInTheMiddle) {
  Open(true)->Publish({7, {2, 300}, 9});
  const std::string path = env::JoinPath(kDirectory, kStatusFileName);
  ByteBuffer bytes = ReadBytes(path);
  bytes[0] |= std::byte{1};
  WriteBytes(path, bytes);
  auto page = Open(true);
  EXPECT_EQ(page->Load(), std::nullopt);
  page->Publish({8, {2, 400}, 9});
  EXPECT_EQ(page->Load()->sequence, 8u);
}

TEST_F(StatusPageTest, RacingReadersSeeWholePublications) {
  auto writer = Open(true);
  auto reader = Open(false);
  writer->Publish({1, {1, 1}, 1});
  std::thread publisher([&writer] {
    for (uint64_t i = 1; i <= 200000; ++i) writer->Publish({i, {i, i}, i});
  });
  uint64_t last = 0;
  while (last < 200000) {
    const std::optional<Status> status = reader->Load();
    if (!status.has_value()) continue;
    ASSERT_GE(status->sequence, last);
    ASSERT_EQ(status->position, (Position{status->sequence, status->sequence}));
    ASSERT_EQ(status->generation, status->sequence);
    last = status->sequence;
  }
  publisher.join();
}

}  // namespace
}  // namespace ashlar::journal
