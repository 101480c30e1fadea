// Situations that went wrong for users of other engines, as tests. The case numbers are of our collection; those about damage
// are in tests/damage.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "src/env/sim_env.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace ashlar::testing {
namespace {

Schema TextSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"rank", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

Document Doc(const std::string& key, const std::string& body) {
  Document document;
  document.Add("id", key).Add("body", body);
  return document;
}

uint64_t CountOf(const Store& store, const Snapshot& snapshot, const Query& query) {
  const absl::StatusOr<PreparedQuery> prepared = store.Prepare(query);
  EXPECT_OK(prepared);
  if (!prepared.ok()) return UINT64_MAX;
  const absl::StatusOr<SearchResult> result = snapshot.Search(*prepared);
  EXPECT_OK(result);
  return result.ok() ? result->total : UINT64_MAX;
}

uint64_t CountOf(const Store& store, const std::string& words) {
  return CountOf(store, store.TakeSnapshot(), PlainWords(words));
}

std::set<std::string> FilesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  return names;
}

TEST(CaseC01, DiskFullInACommitThenSpaceIsFreed) {
  for (uint64_t extra = 0; extra < 3000; extra += 137) {
    SCOPED_TRACE(extra);
    env::SimDisk disk(extra + 1);
    Options options;
    options.create_if_missing = true;
    const Schema schema = TextSchema();
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
    for (int i = 0; i < 20; ++i) ASSERT_OK(store->Put(Doc("old" + std::to_string(i), "before")));
    WriteBatch big;
    for (int i = 0; i < 3000; ++i) big.Put(Doc("a" + std::to_string(i), std::string(200, 'a') + " lost"));
    disk.SetCapacity(disk.used_bytes() + extra * 200);
    const absl::StatusOr<WriteResult> refused = store->Write(big);
    EXPECT_CODE(refused, kResourceExhausted);
    EXPECT_EQ(store->GetStats().state, StoreState::kNoSpace);
    const Stats stats = store->GetStats();
    EXPECT_NE(stats.state_cause.find("No space left"), std::string::npos) << stats.state_cause;
    EXPECT_FALSE(stats.state_remedy.empty());
    EXPECT_GT(stats.state_since_ms, 0);
    EXPECT_EQ(CountOf(*store, "lost"), 0u);
    EXPECT_EQ(CountOf(*store, "before"), 20u);
    disk.AdvanceClock(5'000'000);  // 5 ms
    disk.SetCapacity(UINT64_MAX);
    WriteBatch batch;
    for (int i = 0; i < 100; ++i) batch.Put(Doc("b" + std::to_string(i), "after"));
    ASSERT_OK(store->Write(batch)) << "room again, in the same process";
    const Stats healed = store->GetStats();
    EXPECT_EQ(healed.state, StoreState::kHealthy);
    EXPECT_TRUE(healed.state_cause.empty() && healed.state_remedy.empty());
    EXPECT_GT(healed.state_since_ms, stats.state_since_ms) << "the end of the trouble can be read, too";
    EXPECT_EQ(healed.last_failure, stats.state_cause);
    ASSERT_OK(store->Close());
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> again, OpenOn(disk.NewProcess(), "/s", Options(), nullptr));
    EXPECT_EQ(again->TakeSnapshot().document_count(), 120u);
    EXPECT_EQ(CountOf(*again, "lost"), 0u);
    ExpectCheckClean(*again);
  }
}

// The quota is hit all along the new journal file that the record needs (in it, the record meets no full disk: the file was
// really written before).
TEST(CaseC01, TheQuotaIsHitAlongTheNewFile) {
  env::SimDisk disk(11);
  Options options;
  options.create_if_missing = true;
  options.journal_file_bytes_min = 4096;
  const Schema schema = TextSchema();
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
    WriteBatch old;
    for (int i = 0; i < 1000; ++i) old.Put(Doc("old" + std::to_string(i), "before"));
    ASSERT_OK(store->Write(old));
    ASSERT_OK(store->Flush());
    ASSERT_OK(store->Close());
  }
  WriteBatch a, b;
  for (int i = 0; i < 100; ++i)
    a.Put(Doc((i % 2 == 0 ? "a" : "b") + std::to_string(i), "lost in the full disk, all of it and more"));
  for (int i = 0; i < 100; ++i) b.Put(Doc("b" + std::to_string(i), "after"));
  int refused = 0, extra = 0;
  for (bool fits = false; !fits; extra += 7) {
    ASSERT_LT(extra, 20000);
    SCOPED_TRACE(extra);
    const std::unique_ptr<env::SimDisk> copy = disk.CrashedCopy(env::CrashPolicy::KeepAll());
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(copy->NewProcess(), "/s", options, nullptr));
    copy->SetCapacity(copy->used_bytes() + static_cast<uint64_t>(extra), extra % 2 == 0 ? ENOSPC : EDQUOT);
    const absl::Status first = store->Write(a).status();
    fits = first.ok();
    if (fits) break;
    ++refused;
    ASSERT_EQ(first.code(), absl::StatusCode::kResourceExhausted) << first;
    ASSERT_EQ(store->GetStats().state, StoreState::kNoSpace);
    ASSERT_EQ(store->TakeSnapshot().document_count(), 1000u);
    copy->SetCapacity(UINT64_MAX);
    ASSERT_OK(store->Write(b));
    ASSERT_EQ(store->GetStats().state, StoreState::kHealthy);
    if (extra % 50 != 0) {  // the power goes, or the store is closed
      copy->Crash(env::CrashPolicy::Random(static_cast<uint64_t>(extra)));
    } else {
      ASSERT_OK(store->Close());
    }
    ASSERT_OK_AND_ASSIGN(store, OpenOn(copy->NewProcess(), "/s", options, nullptr));
    ASSERT_EQ(store->TakeSnapshot().document_count(), 1100u);
    ASSERT_EQ(CountOf(*store, "lost"), 0u);
    ASSERT_EQ(CountOf(*store, "after"), 100u);
  }
  EXPECT_GT(refused, 600) << "a new journal file with room for the record";
}

TEST(CaseC01, ABulkLoadMeetsAFullDisk) {
  env::SimDisk disk(2);
  Options options;
  options.create_if_missing = true;
  options.durability = Durability::kOff;
  const Schema schema = TextSchema();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
  WriteBatch load;
  for (int i = 0; i < 500; ++i) load.Put(Doc("a" + std::to_string(i), "loaded in bulk " + std::to_string(i)));
  WriteOptions bulk;
  bulk.keys_are_new = true;
  ASSERT_OK(store->Write(load, bulk));
  disk.SetCapacity(disk.used_bytes() + 2000);
  EXPECT_CODE(store->Flush(), kResourceExhausted);
  EXPECT_EQ(store->TakeSnapshot().document_count(), 0u);
  disk.SetCapacity(UINT64_MAX);
  ASSERT_OK(store->Flush()) << "the load was kept";
  EXPECT_EQ(CountOf(*store, "bulk"), 500u);
  ExpectCheckClean(*store);
}

TEST(CaseC03, AMergeMeetsAFullDisk) {
  env::SimDisk disk(3);
  Options options;
  options.create_if_missing = true;
  options.merge_factor = 0;
  const Schema schema = TextSchema();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, OpenOn(disk.NewProcess(), "/s", options, &schema));
  for (int s = 0; s < 8; ++s) {
    for (int i = 0; i < 100; ++i)
      ASSERT_OK(store->Put(
          Doc("k" + std::to_string(s * 100 + i), "word" + std::to_string(i) + " in segment " + std::to_string(s))));
    ASSERT_OK(store->Flush());
  }
  const std::vector<std::string> before = disk.FileNames();
  disk.SetCapacity(disk.used_bytes() + 8000);
  EXPECT_CODE(store->Merge(), kResourceExhausted);
  EXPECT_EQ(disk.FileNames(), before) << "partial output is gone without a reopening";
  EXPECT_EQ(store->GetStats().state, StoreState::kNoSpace);
  EXPECT_EQ(CountOf(*store, "segment"), 800u);
  for (int i = 0; i < 10; ++i) ASSERT_OK(store->Put(Doc("small" + std::to_string(i), "segment")));
  EXPECT_EQ(CountOf(*store, "segment"), 810u);
  disk.SetCapacity(UINT64_MAX);
  ASSERT_OK(store->Merge());
  EXPECT_EQ(store->GetStats().segments.size(), 1u);
  EXPECT_EQ(CountOf(*store, "segment"), 810u);
  ExpectCheckClean(*store);
}

TEST(CaseC05, AFailedSyncIsFinal) {
  env::SimDisk disk(5);
  const Schema schema = TextSchema();
  Options options;
  options.create_if_missing = true;
  const env::Env env = disk.NewProcess();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(env, "/s", options, &schema));
  ASSERT_OK(store->Put(Doc("a", "first")));
  env::SimFault fault;
  fault.op = env::SimOp::kSync;
  fault.path_contains = "journal";
  disk.AddFault(fault);
  EXPECT_FALSE(store->Put(Doc("b", "second")).ok());
  EXPECT_EQ(store->GetStats().state, StoreState::kFailedSync);
  EXPECT_NE(store->GetStats().state_remedy.find("open it again"), std::string::npos);
  const absl::Status third = store->Put(Doc("c", "third")).status();
  EXPECT_CODE(third, kFailedPrecondition);
  EXPECT_NE(third.message().find(store->GetStats().state_cause), absl::string_view::npos) << third;
  EXPECT_CODE(store->Flush(), kFailedPrecondition);
  EXPECT_CODE(store->Sync(), kFailedPrecondition);
  EXPECT_EQ(CountOf(*store, "first second third"), 1u) << "reads go on, and show what was acknowledged";
  disk.Crash(env::CrashPolicy::DropAll());
  store.reset();
  ASSERT_OK_AND_ASSIGN(store, OpenOn(disk.NewProcess(), "/s", Options(), nullptr));
  EXPECT_EQ(CountOf(*store, "first"), 1u);
  EXPECT_EQ(CountOf(*store, "third"), 0u);
  ASSERT_OK(store->Put(Doc("d", "fourth")));
  ExpectCheckClean(*store);
}

// 100 acknowledged batches, and one that was never acknowledged, cut, zeroed or followed by old content at each byte.
TEST(CaseC07, TornTail) {
  env::SimDisk disk(7);
  Options options;
  options.create_if_missing = true;
  options.durability = Durability::kSync;
  options.journal_file_bytes_min = uint64_t{32} << 10;
  const Schema schema = TextSchema();
  const env::Env env = disk.NewProcess();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, OpenOn(env, "/s", options, &schema));
  for (int i = 0; i < 100; ++i) ASSERT_OK(store->Put(Doc("k" + std::to_string(i), "acknowledged")));
  const std::unique_ptr<env::SimDisk> before = disk.CrashedCopy(env::CrashPolicy::KeepAll());
  ASSERT_OK(store->Put(Doc("last", "unacknowledged")));
  std::string journal;
  for (const std::string& name : disk.FileNames())
    if (name.find("journal-0") != std::string::npos) journal = name;
  ASSERT_OK_AND_ASSIGN(const ByteBuffer old, before->Contents(journal));
  ASSERT_OK_AND_ASSIGN(const ByteBuffer full, disk.Contents(journal));
  ASSERT_EQ(old.size(), full.size());
  const auto [first, ignored] = std::mismatch(full.begin(), full.end(), old.begin());
  const size_t start = static_cast<size_t>(first - full.begin()) / 8 * 8;
  size_t end = full.size();
  while (full[end - 1] == std::byte{0}) --end;
  end = (end + 7) / 8 * 8;
  ASSERT_GT(end, start + 64);
  int absent = 0, whole = 0;
  const auto check = [&](const ByteBuffer& bytes) {
    const std::unique_ptr<env::SimDisk> copy = before->CrashedCopy(env::CrashPolicy::KeepAll());
    ASSERT_OK(copy->PutFile(journal, bytes));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> again, OpenOn(copy->NewProcess(), "/s", options, nullptr));
    ASSERT_EQ(CountOf(*again, "acknowledged"), 100u);
    const uint64_t last = CountOf(*again, "unacknowledged");
    const bool intact = bytes.size() >= end && std::equal(full.begin(), full.begin() + static_cast<ptrdiff_t>(end), bytes.begin());
    ASSERT_EQ(last, intact ? 1u : 0u);
    ++(last == 1 ? whole : absent);
    const RecoveryReport report = again->GetStats().recovery;
    ASSERT_EQ(report.batches_replayed, 100u + last);
    const size_t cut = intact ? 0 : std::min(bytes.size(), end);  // what follows the last whole record
    const bool anything = std::any_of(bytes.begin() + static_cast<ptrdiff_t>(std::min(start, bytes.size())), bytes.end(),
                                      [](std::byte b) { return b != std::byte{0}; });
    if (!intact && (cut <= start || !anything)) {
      ASSERT_EQ(report.torn_bytes, 0u);
    } else if (!intact) {
      ASSERT_EQ(report.torn_file, "/" + journal);
      ASSERT_EQ(report.torn_offset, start);
      ASSERT_GT(report.torn_bytes, 0u);
    }
    ExpectCheckClean(*again);
  };
  for (size_t length = start; length <= end; ++length) {
    SCOPED_TRACE(length);
    const auto at = full.begin() + static_cast<ptrdiff_t>(length);
    ByteBuffer bytes(full.begin(), at);
    check(bytes);  // truncated
    bytes.resize(full.size());
    check(bytes);  // zeros from there
    std::copy(full.begin() + 200, full.begin() + 200 + static_cast<ptrdiff_t>(full.size() - length),
              bytes.begin() + static_cast<ptrdiff_t>(length));
    check(bytes);  // older content of the same file
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(whole, 2);
  EXPECT_GT(absent, 2 * static_cast<int>(end - start));
}

TEST(CaseC09, StrayFilesInTheDirectory) {
  const TempDir directory;
  const std::string path = directory.Sub("s");
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Create(path, TextSchema()));
    ASSERT_OK(store->Put(Doc("a", "x")));
    ASSERT_OK(store->Flush());
    ASSERT_OK(store->Close());
  }
  std::ofstream(path + "/segment-00000000000000ff.seg");  // empty, with a name of ours
  std::ofstream(path + "/segment-1.seg") << "not a name of ours";
  std::ofstream(path + "/notes.txt") << "a user's";
  std::filesystem::create_directory(path + "/folder");
  const std::set<std::string> before = FilesIn(path);
  {
    Options reading;
    reading.read_only = true;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> reader, Store::Open(path, reading));
    EXPECT_EQ(CountOf(*reader, "x"), 1u);
    EXPECT_EQ(FilesIn(path), before) << "a reader deletes nothing";
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Open(path));
  ASSERT_OK(store->Put(Doc("b", "x")));
  const std::set<std::string> after = FilesIn(path);
  EXPECT_FALSE(after.contains("segment-00000000000000ff.seg"));
  for (const char* stranger : {"segment-1.seg", "notes.txt", "folder"})
    EXPECT_TRUE(after.contains(stranger)) << stranger;
  ASSERT_OK_AND_ASSIGN(const std::vector<Finding> findings, store->Check());
  EXPECT_EQ(findings.size(), 3u);
  for (const Finding& finding : findings) EXPECT_EQ(finding.kind, Finding::Kind::kNote) << finding.message;
}

// A child process that writes batches of ten until it is killed, reporting each acknowledged one through the pipe.
pid_t StartWriter(const std::string& path, uint64_t overlay_bytes, int first, int* acks) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    Options options;
    options.overlay_bytes_max = overlay_bytes;
    options.merge_factor = 3;
    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path, options);
    if (!store.ok()) _exit(2);
    for (int batch = first;; ++batch) {
      WriteBatch ten;
      for (int i = 0; i < 10; ++i)
        ten.Put(Doc("k" + std::to_string(batch) + "_" + std::to_string(i),
                    "b" + std::to_string(batch) + " " + std::string(300, 'x')));
      if (!(*store)->Write(ten).ok()) _exit(3);
      if (write(ends[1], &batch, sizeof batch) != static_cast<ssize_t>(sizeof batch)) _exit(4);
    }
  }
  close(ends[1]);
  *acks = ends[0];
  return child;
}

TEST(CaseC11AndC13, WritersKilledWhileTheyHoldTheLockLeaveNoOrphansAndLoseNothing) {
  const TempDir directory;
  const std::string path = directory.Sub("s");
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store, Store::Create(path, TextSchema()));
  ASSERT_OK(store->Close());
  store.reset();
  int next = 0;
  Prng prng(13);
  for (int round = 0; round < 25; ++round) {
    int acks = -1;
    const pid_t child = StartWriter(path, 64 * 1024, next, &acks);
    ASSERT_GT(child, 0);
    int acknowledged = next - 1;
    // Killed after a number of acknowledgements, not of milliseconds: the test does not depend on the clock.
    for (uint64_t left = 1 + prng.Below(40); left > 0; --left)
      ASSERT_EQ(read(acks, &acknowledged, sizeof acknowledged), static_cast<ssize_t>(sizeof acknowledged));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    while (read(acks, &acknowledged, sizeof acknowledged) == static_cast<ssize_t>(sizeof acknowledged)) {
    }
    close(acks);
    ASSERT_OK_AND_ASSIGN(store, Store::Open(path));
    for (int batch = 0; batch <= acknowledged; ++batch)
      ASSERT_EQ(CountOf(*store, "b" + std::to_string(batch)), 10u) << batch;
    const uint64_t in_flight = CountOf(*store, "b" + std::to_string(acknowledged + 1));
    ASSERT_TRUE(in_flight == 0 || in_flight == 10) << "half a batch";
    next = acknowledged + 2;
    if (in_flight == 0) {
      WriteBatch fill;  // keeps "every batch up to next" simple
      for (int i = 0; i < 10; ++i)
        fill.Put(Doc("k" + std::to_string(next - 1) + "_" + std::to_string(i), "b" + std::to_string(next - 1)));
      ASSERT_OK(store->Write(fill));
    }
    ExpectCheckClean(*store);  // lists every file that the store does not know
    ASSERT_OK(store->Close());
    store.reset();
  }
}

TEST(CaseC15, SnapshotWhileMergesDeleteItsInputs) {
  const TempDir directory;
  const std::string path = directory.Sub("s");
  Options options;
  options.merge_factor = 0;
  options.durability = Durability::kOs;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Create(path, TextSchema(), options));
  Oracle oracle(TextSchema());
  for (int s = 0; s < 20; ++s) {
    for (int i = 0; i < 30; ++i) {
      Document document = Doc("k" + std::to_string(i * 20 + s), "word" + std::to_string(i) + " stone");
      document.Add("rank", int64_t{i});
      ASSERT_OK(store->Put(document));
      oracle.Put(document);
    }
    ASSERT_OK(store->Flush());
  }
  std::set<std::string> old_segments;
  for (const std::string& name : FilesIn(path))
    if (name.starts_with("segment-")) old_segments.insert(name);
  ASSERT_EQ(old_segments.size(), 20u);
  ASSERT_OK(store->Prepare("stone"));
  Snapshot snapshot = store->TakeSnapshot();
  EXPECT_EQ(CountOf(*store, snapshot, PlainWords("nowhere")), 0u);  // touches the dictionaries only
  ASSERT_OK(store->Merge());
  for (const std::string& name : FilesIn(path)) EXPECT_FALSE(old_segments.contains(name)) << name;
  ASSERT_EQ(snapshot.segment_count(), 20u);
  RandomStore random(15);
  ExpectEqual(*store, snapshot, oracle, &random, 30);
  ExpectSameDocuments(snapshot, oracle);
  snapshot = store->TakeSnapshot();
  EXPECT_EQ(snapshot.segment_count(), 1u);
  ExpectEqual(*store, snapshot, oracle, &random, 30);
}

TEST(CaseC33, TruncationAtAnEmoji) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::OpenInMemory(TextSchema()));
  const std::string letters(63, 'q');
  const std::string first = letters + "\xF0\x90\x8C\xB0", second = letters + "\xF0\x90\x8C\xB1";  // Old Italic letters
  ASSERT_OK(store->Put(Doc("a", first)));
  ASSERT_OK(store->Put(Doc("b", second)));
  EXPECT_EQ(CountOf(*store, first), 1u);
  EXPECT_EQ(CountOf(*store, second), 1u);
  // At the limit the cut falls on a character boundary, both become the same term, and both are counted.
  const std::string limit(253, 'q');
  ASSERT_OK(store->Put(Doc("c", limit + "\xF0\x90\x8C\xB0")));
  ASSERT_OK(store->Put(Doc("d", limit + "\xF0\x90\x8C\xB1")));
  EXPECT_EQ(CountOf(*store, limit + "\xF0\x90\x8C\xB0"), 2u);
  EXPECT_EQ(CountOf(*store, limit), 2u);
  EXPECT_EQ(store->GetStats().counters.at("tokens_cut"), 2u);
}

TEST(CaseC35, OneHugeToken) {
  for (const std::string unit : {"h", "\xE1\x83\x90"}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::OpenInMemory(TextSchema()));
    std::string body;
    for (int i = 0; i < 150; ++i) body += "before" + std::to_string(i) + " ";
    std::string huge;
    while (huge.size() < 200000) huge += unit;
    body += huge;
    for (int i = 0; i < 150; ++i) body += " after" + std::to_string(i);
    WriteBatch batch;
    for (int i = 0; i < 100; ++i) batch.Put(Doc("k" + std::to_string(i), i == 50 ? body : "plain"));
    ASSERT_OK(store->Write(batch));
    ASSERT_OK(store->Flush());
    for (int i = 0; i < 150; ++i) {
      ASSERT_EQ(CountOf(*store, "before" + std::to_string(i)), 1u);
      ASSERT_EQ(CountOf(*store, "after" + std::to_string(i)), 1u);
    }
    EXPECT_EQ(CountOf(*store, "plain"), 99u);
    EXPECT_GE(store->GetStats().counters.at("tokens_cut"), 1u);
  }
}

// A phrase on fields of which one keeps no places of words: never an empty answer.
TEST(CaseC27, APhraseWithoutPositions) {
  Schema schema = TextSchema();
  schema.fields[1].positions = false;
  schema.fields.push_back({"note", FieldType::kText, true, true, false, {}});
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::OpenInMemory(schema));
  ASSERT_OK(store->Put(Doc("a", "red fox").Add("note", "red fox")));
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_OK(store->Flush());
    const Snapshot snapshot = store->TakeSnapshot();
    const auto search = [&](const std::string& text, std::vector<std::string> fields) {
      const absl::StatusOr<PreparedQuery> query = store->Prepare(text);
      if (!query.ok()) return absl::StatusOr<SearchResult>(query.status());
      SearchOptions options;
      options.fields = std::move(fields);
      return snapshot.Search(*query, options);
    };
    const std::pair<const char*, std::vector<std::string>> refused[] = {
        {"\"red fox\"", {}},       {"\"red fox\"", {"body"}}, {"\"red fox\"", {"note", "body"}},
        {"body:\"red fox\"", {}},  {"red -\"red fox\"", {}},  {"note:\"red fox\" +\"red fox\"", {}},
        {"\"nowhere at all\"", {}}};
    for (const auto& [text, fields] : refused) {
      const absl::StatusOr<SearchResult> result = search(text, fields);
      EXPECT_CODE(result, kInvalidArgument);
      EXPECT_NE(result.status().message().find("\"body\""), absl::string_view::npos) << result.status();
      EXPECT_NE(result.status().message().find("positions"), absl::string_view::npos) << result.status();
    }
    for (const char* text : {"\"fox\"", "+\"red\" -\"hen\"", "note:\"red fox\""}) {
      const absl::StatusOr<SearchResult> result = search(text, {});
      ASSERT_OK(result);
      EXPECT_EQ(result->total, 1u) << text;
    }
    ASSERT_OK_AND_ASSIGN(const SearchResult noted, search("\"red fox\"", {"note"}));
    EXPECT_EQ(noted.total, 1u);
  }
}

// Removed words keep their places, in documents and in phrases.
TEST(Phrases, StopWordsLeaveGaps) {
  Schema schema = TextSchema();
  schema.fields[1].analyzer = AnalyzerOptions::English();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::OpenInMemory(schema));
  ASSERT_OK(store->Put(Doc("s1", "plans to eat")));
  ASSERT_OK(store->Put(Doc("s2", "plans eat")));
  ASSERT_OK(store->Put(Doc("s3", "plans to the eat")));
  Document values;
  ASSERT_OK(store->Put(values.Add("id", "s4").Add("body", "plans to the").Add("body", "eat")));
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_OK(store->Flush());
    const Snapshot snapshot = store->TakeSnapshot();
    const auto keys_of = [&](const std::string& text) {
      const absl::StatusOr<PreparedQuery> query = store->Prepare(text);
      EXPECT_OK(query);
      const absl::StatusOr<SearchResult> result = snapshot.Search(*query);
      EXPECT_OK(result);
      std::vector<Handle> handles;
      for (const Hit& hit : result->hits) handles.push_back(hit.handle);
      return *snapshot.FetchKeys(handles);
    };
    using Keys = std::vector<std::string>;
    EXPECT_EQ(keys_of("\"plans to eat\""), Keys{"s1"});
    EXPECT_EQ(keys_of("\"plans a eat\""), Keys{"s1"});
    EXPECT_EQ(keys_of("\"a plan to eats the\""), Keys{"s1"});
    EXPECT_EQ(keys_of("\"plans eat\""), Keys{"s2"});
    EXPECT_EQ(keys_of("\"plans to a eat\""), Keys{"s3"});
    EXPECT_EQ(keys_of("\"plans to the to eat\""), Keys{});
    EXPECT_EQ(keys_of("plans -\"plans eat\"").size(), 3u);
    EXPECT_EQ(keys_of("\"the plans\"").size(), 4u);
    EXPECT_EQ(keys_of("\"to the\""), Keys{});
    EXPECT_EQ(keys_of("+\"to the\" \"plans eat\""), Keys{"s2"});
  }
}

TEST(CaseC37, ReplaceByKey) {
  const TempDir directory;
  Options options;
  options.overlay_bytes_max = 64 * 1024;
  options.merge_factor = 2;
  options.durability = Durability::kOs;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, Store::Create(directory.Sub("s"), TextSchema(), options));
  for (int k = 0; k < 10; ++k) ASSERT_OK(store->Put(Doc("k" + std::to_string(k), "version0")));
  for (int version = 1; version <= 50; ++version) {
    const std::string now = "version" + std::to_string(version), old = "version" + std::to_string(version - 1);
    WriteBatch batch;
    for (int k = 0; k < 10; ++k) {
      const std::string key = "k" + std::to_string(k);
      batch.Put(Doc(key, "between" + std::to_string(version)));
      if (k % 2 == 0) batch.Delete(key);
      batch.Put(Doc(key, now));
    }
    ASSERT_OK(store->Write(batch));
    if (version % 5 == 0) ASSERT_OK(store->Flush());
    if (version % 10 == 0) ASSERT_OK(store->RunPending());
    ASSERT_EQ(store->TakeSnapshot().document_count(), 10u);
    ASSERT_EQ(CountOf(*store, now), 10u);
    ASSERT_EQ(CountOf(*store, old), 0u);
    ASSERT_EQ(CountOf(*store, "between" + std::to_string(version)), 0u);
    for (int k = 0; k < 10; ++k) {
      ASSERT_OK_AND_ASSIGN(const StoredDocument found, store->TakeSnapshot().Get("k" + std::to_string(k)));
      ASSERT_EQ(std::get<std::string>(*found.document.Find("body")), now);
    }
  }
  ExpectCheckClean(*store);
}

}  // namespace
}  // namespace ashlar::testing
