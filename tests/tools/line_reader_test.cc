// Lines of plain and gzip files, long ones and broken ones.
#include "tools/line_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace ashlar::tools {
namespace {

class LineReaderTest : public ::testing::Test {
 protected:
  LineReaderTest() : folder_(std::filesystem::path(::testing::TempDir()) / "ashlar_line_reader") {
    std::filesystem::create_directories(folder_);
  }
  ~LineReaderTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string WriteGzip(const std::string& name, const std::string& bytes) {
    const std::string path = (folder_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

  std::filesystem::path folder_;
};

std::vector<std::string> ReadLines(const std::string& path) {
  auto reader = LineReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> lines;
  std::string_view line;
  while (true) {
    const absl::StatusOr<bool> more = (*reader)->Next(&line);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) break;
    lines.emplace_back(line);
    EXPECT_EQ((*reader)->line_number(), lines.size());
  }
  return lines;
}

TEST_F(LineReaderTest, EndsOfLinesAndFiles) {
  EXPECT_EQ(ReadLines(Write("empty", "")), std::vector<std::string>());
  EXPECT_EQ(ReadLines(Write("one", "a")), std::vector<std::string>({"a"}));
  EXPECT_EQ(ReadLines(Write("two", "a\n\nb\n")), std::vector<std::string>({"a", "", "b"}));
  EXPECT_EQ(ReadLines(Write("nul", std::string("a\0b\n", 4))), std::vector<std::string>({std::string("a\0b", 3)}));
}

TEST_F(LineReaderTest, LinesAcrossBuffersArePlainAndGzipTheSame) {
  std::string bytes;
  std::vector<std::string> expected;
  for (size_t i = 0; i < 300; ++i) {
    expected.push_back(std::string((i * 7919) % 40000, static_cast<char>('a' + i % 26)));
    bytes += expected.back() + "\n";
  }
  expected.push_back(std::string(3 << 20, 'z'));
  bytes += expected.back();
  EXPECT_EQ(ReadLines(Write("plain", bytes)), expected);
  EXPECT_EQ(ReadLines(WriteGzip("packed.gz", bytes)), expected);
}

TEST_F(LineReaderTest, PaddingBehindTheLineIsReadable) {
  auto reader = LineReader::Open(Write("short", "{}"));
  ASSERT_TRUE(reader.ok());
  std::string_view line;
  ASSERT_TRUE(*(*reader)->Next(&line));
  unsigned sum = 0;
  for (size_t i = 0; i < kLinePadding; ++i) sum += static_cast<unsigned char>(line.data()[line.size() + i]);
  EXPECT_EQ(sum, 0u);
}

TEST_F(LineReaderTest, TooLongALineIsRefusedAndPassedOver) {
  const std::string long_line(kLineBytesMax + 1, 'x');
  const std::string path = Write("long", "before\n" + long_line + "\nafter\n" + long_line);
  auto reader = LineReader::Open(path);
  ASSERT_TRUE(reader.ok());
  std::string_view line;
  ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line, "before");
  const absl::Status status = (*reader)->Next(&line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FromAbsl(status.message()), path + ":2:1: the line is longer than the limit of 67108864 bytes");
  ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line, "after");
  EXPECT_EQ((*reader)->line_number(), 3u);
  EXPECT_EQ((*reader)->Next(&line).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(*(*reader)->Next(&line));
}

TEST_F(LineReaderTest, LineOfExactlyTheLimit) {
  const std::string limit(kLineBytesMax, 'x');
  const std::vector<std::string> lines = ReadLines(Write("limit", limit + "\nnext"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), kLineBytesMax);
  EXPECT_EQ(lines[1], "next");
}

TEST_F(LineReaderTest, BrokenGzipIsDamage) {
  const std::string path = WriteGzip("whole.gz", std::string(100000, 'a') + "\nb\n");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  auto reader = LineReader::Open(path);
  ASSERT_TRUE(reader.ok());
  std::string_view line;
  absl::Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = (*reader)->Next(&line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(PlaceOf(status)->file, path);
}

TEST_F(LineReaderTest, SeveralGzipMembersAreOneFile) {
  std::string bytes;
  for (const char* part : {"a\nb", "c\n", "d"}) {
    std::ifstream file(WriteGzip("part.gz", part), std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_EQ(ReadLines(Write("members.gz", bytes)), std::vector<std::string>({"a", "bc", "d"}));
  auto reader = LineReader::Open(Write("rubbish.gz", bytes + "rubbish"));
  ASSERT_TRUE(reader.ok());
  std::string_view line;
  absl::Status status;
  for (int i = 0; i < 4 && status.ok(); ++i) status = (*reader)->Next(&line).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

// The lines before the error, and the error.
absl::Status ReadUntilError(const std::string& path, std::vector<std::string>* lines) {
  auto reader = LineReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::string_view line;
  while (true) {
    const absl::StatusOr<bool> more = (*reader)->Next(&line);
    if (!more.ok()) {
      // It stays the end.
      EXPECT_EQ((*reader)->Next(&line).status(), more.status());
      return more.status();
    }
    if (!*more) return absl::OkStatus();
    lines->emplace_back(line);
  }
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(LineReaderTest, LinesBeforeGzipDamageAreGiven) {
  const std::string whole = ReadBytes(WriteGzip("whole.gz", "a\nb\nc"));
  std::vector<std::string> lines;
  absl::Status status = ReadUntilError(Write("rubbish.gz", whole + "rubbish"), &lines);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  // It is not known whether "c" is all of its line.
  EXPECT_EQ(lines, std::vector<std::string>({"a", "b"}));

  // A wrong checksum behind the data.
  std::string flipped = whole;
  flipped[flipped.size() - 6] ^= 1;
  lines.clear();
  status = ReadUntilError(Write("flipped.gz", flipped), &lines);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(lines, std::vector<std::string>({"a", "b"}));

  lines.clear();
  status = ReadUntilError(Write("cut.gz", whole.substr(0, whole.size() - 5)), &lines);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(lines, std::vector<std::string>({"a", "b"}));
}

TEST_F(LineReaderTest, ZeroBytesBehindGzipArePassedOver) {
  const std::string whole = ReadBytes(WriteGzip("whole.gz", "a\nb"));
  for (const size_t zeros : {size_t{1}, size_t{2}, size_t{511}, size_t{1} << 20}) {
    EXPECT_EQ(ReadLines(Write("zeros.gz", whole + std::string(zeros, '\0'))), std::vector<std::string>({"a", "b"}));
  }
  for (const std::string& behind : {std::string("x"), whole}) {
    std::vector<std::string> lines;
    const absl::Status status = ReadUntilError(Write("behind.gz", whole + std::string(3, '\0') + behind), &lines);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_EQ(lines, std::vector<std::string>({"a"}));
  }
}

TEST_F(LineReaderTest, APipeGivesALineAsSoonAsItIsThere) {
  const std::string path = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Open for both, so that neither end waits for the other; it is never closed, so the reader can't meet the end.
  std::FILE* writer = std::fopen(path.c_str(), "r+");
  ASSERT_NE(writer, nullptr);
  std::fputs("first\nsecond\nthi", writer);
  std::fflush(writer);
  auto reader = LineReader::Open(path);
  ASSERT_TRUE(reader.ok());
  std::string_view line;
  ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line, "first");
  ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line, "second");
  std::fputs("rd\n", writer);
  std::fflush(writer);
  ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line, "third");
  std::fclose(writer);
}

TEST_F(LineReaderTest, MissingFilesAndDirectories) {
  EXPECT_EQ(LineReader::Open((folder_ / "nobody").string()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LineReader::Open(folder_.string()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ashlar::tools
