// What the journal's tests share: a directory in memory, batches that are told apart by their bytes, and replay into a list.
#ifndef ASHLAR_TESTS_JOURNAL_JOURNAL_HARNESS_H_
#define ASHLAR_TESTS_JOURNAL_JOURNAL_HARNESS_H_

#include <algorithm>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/env/env.h"
#include "src/journal/journal.h"

namespace ashlar::journal {

inline const std::string kDirectory = "/j";

struct Batch {
  Sequence first = 0;
  uint32_t count = 1;
  std::string bytes;
  bool operator==(const Batch&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Batch& batch) {
  return out << "batch " << batch.first << "+" << batch.count << " of " << batch.bytes.size() << " bytes";
}

// A batch whose bytes depend on its sequence.
inline Batch MakeBatch(Sequence first, size_t size, uint32_t count = 1) {
  Batch batch;
  batch.first = first;
  batch.count = count;
  Prng random(first);
  for (size_t i = 0; i < size; ++i) batch.bytes += static_cast<char>('a' + random.Below(26));
  return batch;
}

inline Record ToRecord(const Batch& batch) {
  Record record;
  record.first_sequence = batch.first;
  record.operation_count = batch.count;
  record.schema_number = 7;
  record.operations = AsBytes(batch.bytes);
  return record;
}

inline FileContext MakeContext() {
  FileContext context;
  context.store_id.fill(std::byte{0x5a});
  Field title;
  title.name = "title";
  context.schema.fields = {title};
  context.schema.default_group = {"title"};
  context.schema_number = 7;
  context.analyzer_identity = "test";
  context.generation = 3;
  return context;
}

struct Replayed {
  absl::Status status;
  ReplayEnd end;
  std::vector<Batch> batches;
};

class JournalTest : public testing::Test {
 protected:
  JournalTest() : memory_(env::NewMemoryEnv()), env_(memory_->env()) {
    EXPECT_TRUE(env_.files->CreateDirectory(kDirectory).ok());
    options_.first_file_bytes = 4096;
    options_.file_bytes_max = 16384;
  }

  std::function<uint64_t()> Numbers() {
    return [this] { return next_number_++; };
  }

  std::unique_ptr<Writer> Create(const ReplayEnd& previous = {}) {
    auto writer = Writer::Create(env_, kDirectory, context_, previous, Numbers(), options_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return writer.ok() ? *std::move(writer) : nullptr;
  }
  std::unique_ptr<Writer> Continue(const ReplayEnd& previous) {
    auto writer = Writer::Continue(env_, kDirectory, context_, previous, Numbers(), options_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return writer.ok() ? *std::move(writer) : nullptr;
  }

  static absl::Status Append(Writer& writer, const std::vector<Batch>& batches) {
    std::vector<Record> records;
    for (const Batch& batch : batches) records.push_back(ToRecord(batch));
    return writer.Append(records);
  }

  ReplayOptions DefaultReplay() const {
    ReplayOptions options;
    options.store_id = context_.store_id;
    options.catalog_generation = context_.generation;
    return options;
  }
  Replayed ReplayAll(const ReplayOptions& options) {
    Replayed out;
    auto end = Replay(env_, kDirectory, options, [&out](const Record& record) {
      EXPECT_EQ(record.schema_number, 7u);
      out.batches.push_back({record.first_sequence, record.operation_count, std::string(AsString(record.operations))});
      return absl::OkStatus();
    });
    out.status = end.status();
    if (end.ok()) out.end = *end;
    return out;
  }
  Replayed ReplayAll() { return ReplayAll(DefaultReplay()); }

  std::string PathOf(uint64_t number) const { return env::JoinPath(kDirectory, FileName(number)); }
  ByteBuffer ReadBytes(const std::string& path) {
    auto bytes = env::ReadFile(*env_.files, path);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *std::move(bytes) : ByteBuffer();
  }
  void WriteBytes(const std::string& path, ByteSpan bytes) {
    auto file = env_.files->OpenForWrite(path);
    if (absl::IsNotFound(file.status())) file = env_.files->CreateFile(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Truncate(0).ok());
    ASSERT_TRUE((*file)->WriteAt(0, bytes).ok());
  }
  std::vector<uint64_t> FileNumbers() {
    std::vector<uint64_t> numbers;
    auto entries = env_.files->List(kDirectory);
    EXPECT_TRUE(entries.ok());
    for (const auto& entry : *entries)
      if (auto number = NumberOf(entry.name)) numbers.push_back(*number);
    return numbers;
  }
  ptrdiff_t SpareFiles() {
    const auto entries = env_.files->List(kDirectory);
    return std::count_if(entries->begin(), entries->end(), [](const auto& one) { return IsSpareFileName(one.name); });
  }
  bool Exists(std::string_view name) { return *env_.files->Exists(env::JoinPath(kDirectory, name)); }

  const std::unique_ptr<env::MemoryEnv> memory_;
  env::Env env_;
  FileContext context_ = MakeContext();
  WriterOptions options_;
  uint64_t next_number_ = 1;
};

}  // namespace ashlar::journal

#endif  // ASHLAR_TESTS_JOURNAL_JOURNAL_HARNESS_H_
