// A disk that fails: each operation of a build or a merge in turn, and reads of an open segment.
#include <gtest/gtest.h>

#include "src/env/sim_env.h"
#include "src/segment/segment.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

constexpr uint64_t kOperationsMax = 200;  // a build does fewer

class SegmentFault : public testing::Test {
 protected:
  SegmentFault() : disk_(1234), random_(99), store_(disk_.NewProcess()) {
    AddField("title", FieldType::kText, &schema_);
    AddField("id", FieldType::kKeyword, &schema_);
    AddField("body", FieldType::kText, &schema_);
    schema_.default_group = {"title", "body"};
    schema_.key = "id";
    documents_ = RandomDocuments(schema_, 200, 1, &random_);
  }
  bool Exists(uint64_t number) const { return *store_.env.files->Exists("dir/" + FileName(number)); }
  // Makes the n-th operation from now on fail.
  void FailOperation(uint64_t n, int error) {
    env::SimFault fault;
    fault.nth = n;
    fault.error = error;
    disk_.ClearFaults();
    disk_.AddFault(fault);
  }

  env::SimDisk disk_;
  Prng random_;
  ModelStore store_;
  Schema schema_;
  std::vector<ModelDocument> documents_;
};

TEST_F(SegmentFault, AFailedBuildLeavesNoFile) {
  uint64_t failed = 0;
  for (uint64_t n = 1;; ++n) {
    ASSERT_LT(n, kOperationsMax);
    FailOperation(n, n % 2 == 0 ? ENOSPC : EIO);
    const auto entry = store_.Build(schema_, n, documents_);
    disk_.ClearFaults();
    if (!entry.ok()) {
      ++failed;
      EXPECT_TRUE(absl::IsResourceExhausted(entry.status()) || absl::IsInternal(entry.status())) << entry.status();
      EXPECT_FALSE(Exists(n)) << n;
      continue;
    }
    const auto segment = store_.Open(*entry);
    ASSERT_TRUE(segment.ok()) << segment.status();
    ExpectHolds(**segment, schema_, documents_);
    break;
  }
  EXPECT_GE(failed, 4u);  // create, write, sync, directory sync
}

TEST_F(SegmentFault, AFailedMergeLeavesNoFile) {
  std::vector<ModelDocument> more = RandomDocuments(schema_, 100, documents_.back().id + 1, &random_);
  std::vector<MergeInput> inputs(2);
  const auto first = store_.Build(schema_, 1, documents_);
  const auto second = store_.Build(schema_, 2, more);
  std::vector<ModelDocument> all = documents_;
  all.insert(all.end(), more.begin(), more.end());
  for (uint64_t n = 1;; ++n) {
    ASSERT_LT(n, kOperationsMax);
    inputs[0].segment = *store_.Open(*first);  // anew, so that their pages have to be read again
    inputs[1].segment = *store_.Open(*second);
    FailOperation(n, EIO);
    const auto merged = MergeSegments(store_.env, "dir", store_.Spec(schema_, 10 + n), inputs);
    disk_.ClearFaults();
    if (!merged.ok()) {
      EXPECT_FALSE(Exists(10 + n)) << n;
      continue;
    }
    EXPECT_GT(n, 10u);
    const auto segment = store_.Open(merged->entry);
    ASSERT_TRUE(segment.ok()) << segment.status();
    ExpectHolds(**segment, schema_, all);
    break;
  }
}

TEST_F(SegmentFault, AFinishedSegmentSurvivesPowerLoss) {
  const auto entry = store_.Build(schema_, 1, documents_);
  ASSERT_TRUE(entry.ok());
  disk_.CutPower();
  disk_.Crash(env::CrashPolicy::DropAll());
  const auto segment = Segment::Open(disk_.NewProcess(), "dir", *entry, store_.store_id, 7, OpenMode::kArray);
  ASSERT_TRUE(segment.ok()) << segment.status();
  ExpectHolds(**segment, schema_, documents_);
}

// A page that could not be read once is tried again: the failure is the call's, not the segment's.
TEST_F(SegmentFault, AFailedReadFailsTheCallOnly) {
  const auto entry = store_.Build(schema_, 1, documents_);
  ASSERT_TRUE(entry.ok());
  const auto segment = store_.Open(*entry);
  ASSERT_TRUE(segment.ok());
  uint64_t failed = 0;
  for (int round = 0; round < 100; ++round) {
    env::SimFault fault;
    fault.op = env::SimOp::kRead;
    fault.nth = 2;  // so each round gets one page further
    disk_.ClearFaults();
    disk_.AddFault(fault);
    std::vector<std::string> answers;
    const absl::Status status = AskEverything(**segment, schema_, documents_, &answers);
    if (status.ok()) break;
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    ++failed;
  }
  disk_.ClearFaults();
  EXPECT_GE(failed, 5u);
  EXPECT_LT(failed, 100u);
  ExpectHolds(**segment, schema_, documents_);
}

TEST_F(SegmentFault, AFileThatBecomesShorterIsNoticed) {
  const auto entry = store_.Build(schema_, 1, documents_);
  ASSERT_TRUE(entry.ok());
  const auto segment = store_.Open(*entry);
  ASSERT_TRUE(segment.ok());
  ASSERT_TRUE(disk_.TruncateFile("dir/" + FileName(1), 5000).ok());
  EXPECT_TRUE(absl::IsDataLoss(store_.Open(*entry).status()));
}

}  // namespace
}  // namespace ashlar::segment
