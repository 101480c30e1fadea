// Every bit of every file of a small store flipped, every truncation, sectors exchanged, files of another store and older
// files put in place: each question is then answered rightly or with a typed error that names a place, nothing that is
// whole is lost, and nothing crashes. On the simulated disk, and on the real file system with LMDB.
//
// A stride keeps `meson test` short; ASHLAR_EVERY_BIT=1 in the environment takes all (another number: every so many).
// The zeros behind a journal's records are sampled in either case, every 997th bit.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ashlar/status.h"
#include "format/layout.h"
#include "src/env/sim_env.h"
#include "src/segment/segment_builder.h"
#include "tests/damage/damage_support.h"
#include "tests/engine/random_store.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

constexpr uint64_t kZeroStride = 997;
constexpr uint64_t kSectorBytes = 512;

using Files = std::map<std::string, ByteBuffer>;

// Where a store lies. Restore() puts these files there and no others.
class Place {
 public:
  virtual ~Place() = default;
  virtual std::string directory() const = 0;
  virtual env::Env env() = 0;
  virtual void Restore(const Files& files) = 0;
  virtual Files Read() = 0;
};

class SimPlace : public Place {
 public:
  std::string directory() const override { return "/s"; }
  env::Env env() override { return disk_->NewProcess(); }
  void Restore(const Files& files) override {
    disk_ = std::make_unique<env::SimDisk>(1);
    const env::Env env = disk_->NewProcess();
    if (!env.files->CreateDirectory("/s").ok() || !env.files->SyncDirectory("/").ok()) std::abort();
    for (const auto& [name, bytes] : files)
      if (!disk_->PutFile("/s/" + name, bytes).ok()) std::abort();
  }
  Files Read() override {
    Files files;
    for (const std::string& path : disk_->FileNames()) files[path.substr(path.rfind('/') + 1)] = *disk_->Contents(path);
    return files;
  }

 private:
  std::unique_ptr<env::SimDisk> disk_ = std::make_unique<env::SimDisk>(1);
};

class RealPlace : public Place {
 public:
  RealPlace() {
    std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm/ashlar-damage-XXXXXX"
                                                              : std::filesystem::temp_directory_path() / "ashlar-damage-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern + "/s";
  }
  ~RealPlace() override {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path(), ignored);
  }
  std::string directory() const override { return path_; }
  env::Env env() override { return env::PosixEnv(); }
  void Restore(const Files& files) override {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
    for (const auto& [name, bytes] : files) {
      std::FILE* file = std::fopen((path_ + "/" + name).c_str(), "wb");
      if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
      std::fclose(file);
    }
  }
  Files Read() override {
    Files files;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      files[entry.path().filename()] = *env::ReadFile(*env::PosixEnv().files, entry.path());
    return files;
  }

 private:
  std::string path_;
};

Schema SmallSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"rank", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

Document SmallDocument(int i, int version) {
  Document document;
  document.Add("id", DamageKey(i)).Add("body", "shared word" + std::to_string(i) + " version" + std::to_string(version));
  document.Add("rank", int64_t{i});
  return document;
}

constexpr int kKeys = 12;  // more than there are documents

// What was written, and what the files then were.
struct MadeStore {
  Files files;
  std::vector<Files> older;  // at closings before
  std::map<std::string, std::set<DocumentId>> ids;  // live, by segment file
  std::shared_ptr<Oracle> oracle;
};

class Writer {
 public:
  Writer(Place* place, Oracle* oracle) : place_(place), oracle_(oracle) {
    options_.merge_factor = 0;
    options_.journal_file_bytes_min = 4096;
  }
  void Open(const Schema* schema) {
    options_.create_if_missing = schema != nullptr;
    auto store = OpenOn(place_->env(), place_->directory(), options_, schema);
    ASSERT_OK(store);
    store_ = *std::move(store);
  }
  void Write(const WriteBatch& batch) {
    const absl::StatusOr<WriteResult> written = store_->Write(batch);
    ASSERT_OK(written);
    oracle_->SetNextSequence(written->sequence + 1 - std::max<size_t>(1, batch.size()));
    ASSERT_OK(oracle_->Apply(batch));
  }
  void Put(int i, int version) {
    WriteBatch batch;
    batch.Put(SmallDocument(i, version));
    Write(batch);
  }
  Files Close() {
    EXPECT_OK(store_->Close());
    store_.reset();
    return place_->Read();
  }
  Store& store() { return *store_; }

 private:
  Place* place_;
  Oracle* oracle_;
  Options options_;
  std::unique_ptr<Store> store_;
};

// Three segments, deaths in the first two, and a sealed tail with a put, a replacement and a delete.
MadeStore Make(Place* place, int version) {
  MadeStore made;
  const Schema schema = SmallSchema();
  made.oracle = std::make_shared<Oracle>(schema);
  place->Restore({});
  Writer writer(place, made.oracle.get());
  writer.Open(&schema);
  for (int i = 0; i < 3; ++i) writer.Put(i, version);
  EXPECT_OK(writer.store().Flush());
  made.older.push_back(writer.Close());
  writer.Open(nullptr);
  for (int i = 3; i < 6; ++i) writer.Put(i, version);
  writer.Put(0, version + 1);
  EXPECT_OK(writer.store().Flush());
  writer.Put(6, version);
  made.older.push_back(writer.Close());
  writer.Open(nullptr);
  writer.Put(7, version);
  writer.Put(3, version + 1);
  EXPECT_OK(writer.store().Flush());
  WriteBatch last;
  last.Delete(DamageKey(1));
  writer.Write(last);
  made.older.push_back(writer.Close());
  writer.Open(nullptr);
  writer.Put(8, version);
  writer.Put(4, version + 1);
  const std::vector<SegmentStats> segments = writer.store().GetStats().segments;
  EXPECT_EQ(segments.size(), 3u);
  uint64_t first = 1;
  const std::vector<DocumentId> ends = {3, 7, 10};  // the last sequence before each flush, less jumps: none, all closings are clean
  for (size_t s = 0; s < segments.size() && s < ends.size(); ++s) {
    std::set<DocumentId>& ids = made.ids[segment::FileName(segments[s].id)];
    for (const DocumentId id : made.oracle->Ids())
      if (id >= first && id <= ends[s]) ids.insert(id);
    first = ends[s] + 1;
    EXPECT_FALSE(ids.empty());
  }
  made.files = writer.Close();
  return made;
}

struct Case {
  enum class Kind : uint8_t { kFlip, kTruncate, kExchange, kOther, kOlder, kRemove } kind;
  std::string file;
  uint64_t at = 0;
  std::string other;  // kExchange
  uint64_t other_at = 0;
};

std::string Name(const Case& c) {
  static constexpr std::array<const char*, 6> kNames = {"bit", "truncated to", "sector", "other store's", "older", "removed"};
  return absl::StrCat(c.file, " ", kNames[static_cast<size_t>(c.kind)], " ", c.at,
                      c.other.empty() ? "" : absl::StrCat(" with ", c.other, " ", c.other_at));
}

bool IsJournal(const std::string& name) { return name.starts_with("journal-"); }
bool IsSegment(const std::string& name) { return segment::NumberOf(name) != 0; }

size_t UsedBytes(const ByteBuffer& bytes) {
  size_t used = bytes.size();
  while (used > 0 && bytes[used - 1] == std::byte{0}) --used;
  return used;
}

std::vector<Case> CasesOf(const MadeStore& made, uint64_t stride) {
  std::vector<Case> cases;
  uint64_t skip = 0;
  const auto add = [&](Case c) {
    if (skip-- != 0) return;
    skip = stride - 1;
    cases.push_back(std::move(c));
  };
  for (const auto& [name, bytes] : made.files) {
    const uint64_t used = IsJournal(name) ? UsedBytes(bytes) * 8 : bytes.size() * 8;
    for (uint64_t bit = 0; bit < used; ++bit) add({Case::Kind::kFlip, name, bit, "", 0});
    for (uint64_t bit = used; bit < bytes.size() * 8; bit += kZeroStride) add({Case::Kind::kFlip, name, bit, "", 0});
  }
  skip = 0;
  for (const auto& [name, bytes] : made.files) {
    const uint64_t used = IsJournal(name) ? UsedBytes(bytes) : bytes.size();
    for (uint64_t size = 0; size < bytes.size(); size += size > used ? kZeroStride : 1)
      add({Case::Kind::kTruncate, name, size, "", 0});
  }
  skip = 0;
  for (const auto& [a, a_bytes] : made.files)
    for (const auto& [b, b_bytes] : made.files)
      for (uint64_t i = 0; a < b && i * kSectorBytes < a_bytes.size() && i < 40; ++i)
        for (uint64_t j = 0; j * kSectorBytes < b_bytes.size() && j < 40; ++j) add({Case::Kind::kExchange, a, i, b, j});
  for (const auto& [name, bytes] : made.files) {
    cases.push_back({Case::Kind::kOther, name, 0, "", 0});
    cases.push_back({Case::Kind::kRemove, name, 0, "", 0});
    for (uint64_t i = 0; i < made.older.size(); ++i)
      if (made.older[i].contains(name) && made.older[i].at(name) != bytes) cases.push_back({Case::Kind::kOlder, name, i, "", 0});
  }
  return cases;
}


Files Damaged(const Case& c, const MadeStore& made, const Files& other) {
  Files files = made.files;
  ByteBuffer& bytes = files.at(c.file);
  switch (c.kind) {
    case Case::Kind::kFlip:
      bytes[c.at / 8] ^= static_cast<std::byte>(1 << c.at % 8);
      break;
    case Case::Kind::kTruncate:
      bytes.resize(c.at);
      break;
    case Case::Kind::kExchange: {
      ByteBuffer& b = files.at(c.other);
      const size_t n = std::min({kSectorBytes, bytes.size() - c.at * kSectorBytes, b.size() - c.other_at * kSectorBytes});
      std::swap_ranges(bytes.begin() + static_cast<ptrdiff_t>(c.at * kSectorBytes),
                       bytes.begin() + static_cast<ptrdiff_t>(c.at * kSectorBytes + n),
                       b.begin() + static_cast<ptrdiff_t>(c.other_at * kSectorBytes));
      break;
    }
    case Case::Kind::kOther:
      if (other.contains(c.file)) bytes = other.at(c.file);
      break;
    case Case::Kind::kOlder:
      bytes = made.older[c.at].at(c.file);
      break;
    case Case::Kind::kRemove:
      files.erase(c.file);
      break;
  }
  return files;
}

// Uses a damaged store in every way and compares with the oracle. One case.
class Exercise {
 public:
  Exercise(const Case& c, const MadeStore& made, Place* place)
      : case_(c), made_(made), place_(place), oracle_(*made.oracle) {
    for (const std::string& file : {c.file, c.other})
      if (made.ids.contains(file)) touched_.push_back(file);
    only_segments_ = IsSegment(c.file) && (c.other.empty() || IsSegment(c.other));
    options_.merge_factor = 0;
    options_.journal_file_bytes_min = 4096;
    if (c.at % 2 == 1) options_.open_mode = OpenMode::kArray;
  }

  // Wrong answers, told as text; empty: none.
  const std::string& wrong() const { return wrong_; }
  bool detected() const { return detected_; }

  void Run() {
    options_.read_only = true;
    if (auto store = Open()) {
      if (LostItsEvidence(*store)) return;
      Ask(*store);
      Typed(store->Close());
    }
    options_.read_only = false;
    const Files before = place_->Read();
    if (auto store = Open()) {
      Ask(*store);
      Write(store.get());
      Ask(*store);
      Typed(store->Flush());
      const bool merged = Typed(store->Merge());
      Ask(*store);
      if (!merged) ExpectFilesOf(before);
      Typed(store->Close());
      store.reset();
      options_.read_only = case_.at % 4 >= 2;
      if ((store = Open())) {
        Ask(*store);
        Typed(store->Close());
      }
    } else {
      const Files after = place_->Read();
      for (const auto& [name, bytes] : before)
        if (!after.contains(name)) Wrong(absl::StrCat(name, " was removed by an opening that failed"));
    }
  }

 private:
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  // OK, or an error that says where. Returns whether it was OK.
  bool Typed(const absl::Status& status) {
    if (status.ok()) return true;
    detected_ = true;
    // Without a catalog it is not a store.
    if (absl::IsNotFound(status) && case_.kind == Case::Kind::kRemove && case_.file.starts_with("catalog")) return false;
    const std::optional<ErrorPlace> place = PlaceOf(status);
    const bool known = absl::IsDataLoss(status) || absl::IsUnimplemented(status) || absl::IsNotFound(status);
    if (!known || !place.has_value() || place->file.empty() || (place->section.empty() && !absl::IsNotFound(status)))
      Wrong(absl::StrCat("an error without a place: ", status.ToString()));
    return false;
  }

  std::unique_ptr<Store> Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenOn(place_->env(), place_->directory(), options_, nullptr);
    if (Typed(store.status())) {
      oracle_.SetNextSequence((*store)->GetStats().visible_sequence + 1);
      return *std::move(store);
    }
    if (only_segments_) Wrong(absl::StrCat("damage of segments keeps the store from opening: ", store.status().ToString()));
    return nullptr;
  }

  // One exchange damages two places: the journal's last records and the status page, which alone knows of them when nothing
  // follows them. That is the known limit of docs/durability.md: it looks like power loss in the middle of a write, and is cut and
  // reported as that.
  bool LostItsEvidence(const Store& store) {
    const bool both = case_.kind == Case::Kind::kExchange && IsJournal(case_.file) && case_.other == "status" &&
                      case_.other_at == 0;
    if (!both || store.GetStats().recovery.torn_file.empty()) return false;
    detected_ = true;
    return true;
  }

  // Segments that still have the file that was damaged are allowed to fail; all else is not.
  bool MayFail(const absl::Status& status) const {
    if (!only_segments_) return true;
    const std::optional<ErrorPlace> place = PlaceOf(status);
    for (const std::string& file : touched_)
      if (place.has_value() && place->file.ends_with(file)) return true;
    return false;
  }

  void Ask(const Store& store) {
    const Snapshot snapshot = store.TakeSnapshot();
    if (snapshot.document_count() != oracle_.document_count() && !unsettled_)
      return Wrong(absl::StrCat(snapshot.document_count(), " documents, not ", oracle_.document_count()));
    for (const char* text :
         {"shared", "+word4 version2", "word1 version1 shared^2", "+shared -version1", "\"shared word1\""})
      AskFor(store, snapshot, text);
    for (int i = 0; i < kKeys; ++i) AskKey(snapshot, DamageKey(i));
    std::vector<DocumentId> ids;
    if (Typed(snapshot.Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& found) {
          ids.push_back(found.id);
          return true;
        })) && ids != oracle_.Ids())
      Wrong("a scan gives other documents");
  }

  void AskFor(const Store& store, const Snapshot& snapshot, const std::string& text) {
    const absl::StatusOr<Query> query = ParseQuery(text);
    const absl::StatusOr<PreparedQuery> prepared = store.Prepare(*query);
    if (!prepared.ok()) return Wrong(prepared.status().ToString());
    for (const Traversal traversal : {Traversal::kDaat, Traversal::kExhaustive}) {
      SearchOptions options;
      options.traversal = traversal;
      const absl::StatusOr<SearchResult> result = snapshot.Search(*prepared, options);
      if (!Typed(result.status())) {
        if (!MayFail(result.status())) Wrong(absl::StrCat(text, ": ", result.status().ToString()));
      } else {
        Compare(text, snapshot, *result, oracle_.Search(*query, options));
      }
      options.allow_partial = true;
      options.b = 0;  // then lengths, which may be unknown, do not matter
      const absl::StatusOr<SearchResult> partial = snapshot.Search(*prepared, options);
      if (!Typed(partial.status())) {
        Wrong(absl::StrCat("partial, ", text, ": ", partial.status().ToString()));
        continue;
      }
      std::set<DocumentId> left_out;
      for (const absl::Status& damage : partial->damage) {
        Typed(damage);
        if (!MayFail(damage)) Wrong(absl::StrCat("left out: ", damage.ToString()));
        for (const auto& [file, ids] : made_.ids)
          if (PlaceOf(damage).has_value() && PlaceOf(damage)->file.ends_with(file))
            for (const DocumentId id : ids)
              if (oracle_.GetById(id).has_value()) left_out.insert(id);
      }
      if (partial->documents_not_searched != left_out.size() && !unsettled_)
        Wrong(absl::StrCat(partial->documents_not_searched, " documents not searched, not ", left_out.size()));
      if (snapshot.document_count() == oracle_.document_count())
        Compare(text, snapshot, *partial, oracle_.SearchWithout(left_out, *query, options));
    }
  }

  void Compare(const std::string& text, const Snapshot& snapshot, const SearchResult& result, const OracleResult& expected) {
    std::vector<Handle> handles;
    for (const Hit& hit : result.hits) handles.push_back(hit.handle);
    const absl::StatusOr<std::vector<DocumentId>> ids = snapshot.FetchIds(handles);
    if (!Typed(ids.status())) return;
    bool equal = result.total == expected.total && ids->size() == expected.hits.size();
    for (size_t i = 0; equal && i < ids->size(); ++i)
      equal = (*ids)[i] == expected.hits[i].id &&
              std::bit_cast<uint64_t>(result.hits[i].score) == std::bit_cast<uint64_t>(expected.hits[i].score);
    if (!equal) Wrong(absl::StrCat("another answer to ", text, ": ", result.total, " found, expected ", expected.total));
  }

  void AskKey(const Snapshot& snapshot, const std::string& key) {
    const absl::StatusOr<StoredDocument> found = snapshot.Get(key);
    const std::optional<StoredDocument> expected = oracle_.Get(key);
    if (found.ok()) {
      if (!expected.has_value() || found->id != expected->id || found->document != expected->document)
        Wrong(absl::StrCat("another document of ", key));
    } else if (absl::IsNotFound(found.status()) && !PlaceOf(found.status()).has_value()) {
      if (expected.has_value()) Wrong(absl::StrCat(key, " was lost"));
    } else {
      Typed(found.status());
      bool whole = expected.has_value();  // in a source that nothing happened to
      for (const std::string& file : touched_) whole = whole && !made_.ids.at(file).contains(expected->id);
      if (whole && only_segments_) Wrong(absl::StrCat(key, " is whole and can't be read: ", found.status().ToString()));
    }
  }

  void Write(Store* store) {
    const auto apply = [&](const WriteBatch& batch) {
      const absl::StatusOr<WriteResult> written = store->Write(batch);
      if (!Typed(written.status())) {
        if (!MayFail(written.status())) Wrong(absl::StrCat("a write fails: ", written.status().ToString()));
        return;
      }
      oracle_.SetNextSequence(written->sequence);
      const absl::StatusOr<OracleWrite> expected = oracle_.Apply(batch);
      if (!expected.ok() || expected->existed != written->existed) Wrong("a write replaced something else");
    };
    for (const int i : {2, 5, 7, 9}) {
      WriteBatch batch;
      batch.Put(SmallDocument(i, 6));
      apply(batch);
    }
    WriteBatch deletes;
    deletes.Delete(DamageKey(6));
    apply(deletes);
  }

  void ExpectFilesOf(const Files& before) {
    const Files after = place_->Read();
    for (const std::string& file : touched_)
      if (before.contains(file) && (!after.contains(file) || after.at(file) != before.at(file)))
        Wrong(absl::StrCat(file, " was removed or changed"));
  }

  const Case& case_;
  const MadeStore& made_;
  Place* place_;
  Oracle oracle_;
  Options options_;
  std::vector<std::string> touched_;  // segments
  bool only_segments_ = false;
  bool unsettled_ = true;  // the journal's tail replaces documents, so counts may be too high beside a segment that can't be read
  std::string wrong_;
  bool detected_ = false;
};

// What the children that do the work tell, in memory that they share with us.
struct Board {
  static constexpr size_t kTold = 40;
  uint64_t next = 0;  // the case being done
  uint64_t detected = 0, harmless = 0, wrong = 0, crashed = 0, told = 0;
  char text[kTold][400];
};

void Tell(Board* board, const std::string& text) {
  if (board->told < Board::kTold) std::snprintf(board->text[board->told++], sizeof board->text[0], "%s", text.c_str());
}

void RunChild(const std::vector<Case>& cases, const MadeStore& made, const Files& other, Place* place, Board* board) {
  for (; board->next < cases.size(); ++board->next) {
    const Case& c = cases[board->next];
    place->Restore(Damaged(c, made, other));
    Exercise exercise(c, made, place);
    exercise.Run();
    if (!exercise.wrong().empty()) {
      ++board->wrong;
      Tell(board, Name(c) + ": " + exercise.wrong());
    } else {
      ++(exercise.detected() ? board->detected : board->harmless);
    }
  }
}

void RunAll(Place* place, uint64_t stride, const char* what) {
  if (std::getenv("ASHLAR_EVERY_BIT") != nullptr) stride = std::max(1, std::atoi(std::getenv("ASHLAR_EVERY_BIT")));
  const MadeStore made = Make(place, 1);
  const Files other = Make(place, 1).files;
  ASSERT_FALSE(::testing::Test::HasFailure());
  const std::vector<Case> cases = CasesOf(made, stride);
  auto* const board = static_cast<Board*>(
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(board, MAP_FAILED);
  new (board) Board;
  while (board->next < cases.size()) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      RunChild(cases, made, other, place, board);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++board->crashed;
    Tell(board, absl::StrCat(Name(cases[board->next]), ": died with status ", status));
    ++board->next;
  }
  std::printf("%s: %zu cases (every %llu.): %llu detected, %llu harmless, %llu wrong, %llu crashed\n", what, cases.size(),
              static_cast<unsigned long long>(stride), static_cast<unsigned long long>(board->detected),
              static_cast<unsigned long long>(board->harmless), static_cast<unsigned long long>(board->wrong),
              static_cast<unsigned long long>(board->crashed));
  for (const auto& [name, bytes] : made.files) std::printf("  %s: %zu bytes\n", name.c_str(), bytes.size());
  for (uint64_t i = 0; i < board->told; ++i) ADD_FAILURE() << board->text[i];
  EXPECT_EQ(board->wrong, 0u);
  EXPECT_EQ(board->crashed, 0u);
  EXPECT_GT(board->detected, 0u);
  EXPECT_GT(board->harmless, 0u);
  ::munmap(board, sizeof(Board));
}

TEST(EveryBit, OnTheSimulatedDisk) {
  SimPlace place;
  RunAll(&place, 59, "simulated disk, file catalog");
}

TEST(EveryBit, OnTheRealFileSystemWithLmdb) {
  RealPlace place;
  RunAll(&place, 307, "real file system, LMDB");
}

}  // namespace
}  // namespace ashlar::testing
