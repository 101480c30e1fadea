// Other people's collections of hostile JSON and strings: JSONTestSuite, the Big List of Naughty Strings, UTF-8 cases.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "src/base/status.h"
#include "tools/json_documents.h"
#include "tools/line_reader.h"
#include "tools/schema_json.h"

namespace ashlar::tools {
namespace {

const char* DataFolder(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder != nullptr ? folder : ".";
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The plain files of a tar archive: 512-byte headers with the name at 0 and the size in octal at 124.
std::vector<std::pair<std::string, std::string>> ReadTar(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> files;
  gzFile archive = gzopen(path.c_str(), "rb");
  char header[512];
  while (archive != nullptr && gzread(archive, header, sizeof header) == sizeof header && header[0] != 0) {
    const std::string name(header, strnlen(header, 100));
    const size_t size = std::strtoul(std::string(header + 124, 12).c_str(), nullptr, 8);
    std::string body((size + 511) / 512 * 512, 0);
    if (gzread(archive, body.data(), static_cast<unsigned>(body.size())) != static_cast<int>(body.size())) break;
    body.resize(size);
    if (header[156] == '0' || header[156] == 0) files.emplace_back(name, body);
  }
  if (archive != nullptr) gzclose_r(archive);
  return files;
}

absl::Status ParseLine(std::string_view line, const Schema& schema, Document* document) {
  std::string padded(line);
  padded.append(kLinePadding, '"');
  DocumentParser parser(schema);
  return parser.Parse(std::string_view(padded).substr(0, line.size()), document);
}

Schema BodySchema() {
  Schema schema;
  for (const char* name : {"a", "b", "", "body"}) {
    schema.fields.emplace_back();
    schema.fields.back().name = name;
  }
  return schema;
}

// "123: ..."
bool BeginsWithColumn(const absl::Status& status) {
  const std::string message(FromAbsl(status.message()));
  const size_t digits = message.find_first_not_of("0123456789");
  return digits != std::string::npos && digits > 0 && message[0] != '0' && message.compare(digits, 2, ": ") == 0;
}

TEST(HostileJsonTest, JsonTestSuite) {
  const auto files = ReadTar(std::string(DataFolder("ASHLAR_TOOLS_DATA")) + "/jsontestsuite.tar.gz");
  int must_parse = 0, objects = 0, must_fail = 0, either = 0;
  for (const auto& [path, text] : files) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path.find("test_parsing/") == std::string::npos || name.size() < 2 || name[1] != '_') continue;
    SCOPED_TRACE(name);
    Document document;
    const absl::Status fixed = ParseLine(text, BodySchema(), &document);
    if (!fixed.ok()) {
      EXPECT_EQ(fixed.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(BeginsWithColumn(fixed)) << fixed;
    }
    const bool malformed = FromAbsl(fixed.message()).find("malformed JSON") != std::string_view::npos;
    if (name[0] == 'n') {
      ++must_fail;
      EXPECT_TRUE(malformed) << fixed;
      EXPECT_TRUE(FindJsonError(text).has_value());
      SchemaInference inference(std::nullopt);
      EXPECT_EQ(inference.Add(text).code(), absl::StatusCode::kInvalidArgument);
    } else if (name[0] == 'y') {
      ++must_parse;
      EXPECT_FALSE(malformed) << fixed;
      EXPECT_FALSE(FindJsonError(text).has_value());
      if (text.find_first_not_of(" \t\r\n") != text.find('{')) continue;
      ++objects;
      // With a schema that knows the members it is a document, or a member comes twice.
      SchemaInference inference(std::nullopt);
      absl::Status status = inference.Add(text);
      absl::StatusOr<Schema> schema = inference.Finish();
      if (status.ok() && schema.ok()) status = ParseLine(text, *schema, &document);
      const std::string message(FromAbsl(status.message()));
      EXPECT_TRUE(status.ok() || message.find("comes twice") != std::string::npos ||
                  message.find("holds an object") != std::string::npos)
          << status;
    } else {
      ++either;
    }
  }
  EXPECT_EQ(must_parse, 95);
  EXPECT_EQ(must_fail, 188);
  EXPECT_EQ(either, 35);
  EXPECT_GE(objects, 10);
}

TEST(HostileJsonTest, NaughtyStringsSurviveTheRoundTrip) {
  const auto strings = nlohmann::json::parse(ReadAll(std::string(DataFolder("ASHLAR_TEXT_DATA")) + "/blns.json"));
  ASSERT_EQ(strings.size(), 515u);
  for (const auto& text : strings) {
    Document document, back;
    document.Add("body", text.get<std::string>());
    const std::string line = nlohmann::json{{"body", text}}.dump();
    ASSERT_TRUE(ParseLine(line, BodySchema(), &back).ok()) << line;
    EXPECT_EQ(back, document) << line;
    ASSERT_TRUE(ParseLine(DocumentToJson(document), BodySchema(), &back).ok()) << line;
    EXPECT_EQ(back, document) << line;
  }
}

// "name:valid hex:BYTES", "name:invalid hex:BYTES:...", see the file's own head.
TEST(HostileJsonTest, Utf8Cases) {
  std::istringstream lines(ReadAll(std::string(DataFolder("ASHLAR_TEXT_DATA")) + "/utf8tests.txt"));
  std::string line;
  int valid = 0, invalid = 0;
  while (std::getline(lines, line)) {
    const size_t first = line.find(':');
    if (line.empty() || line[0] == '#' || first == std::string::npos) continue;
    const size_t second = line.find(':', first + 1);
    const std::string kind = line.substr(first + 1, second - first - 1);
    if (kind != "valid hex" && kind != "invalid hex") continue;
    std::string hex = line.substr(second + 1, line.find(':', second + 1) - second - 1);
    std::erase(hex, ' ');
    const std::string bytes = absl::HexStringToBytes(hex);
    bool plain = true;
    for (const char c : bytes) plain = plain && static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\';
    if (!plain) continue;
    SCOPED_TRACE(line);
    Document document;
    const absl::Status status = ParseLine("{\"body\":\"" + bytes + "\"}", BodySchema(), &document);
    if (kind == "valid hex") {
      ++valid;
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(*document.Find("body"), Value(bytes));
    } else {
      ++invalid;
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(BeginsWithColumn(status)) << status;
    }
  }
  EXPECT_GT(valid, 20);
  EXPECT_GT(invalid, 50);
}

}  // namespace
}  // namespace ashlar::tools
