// What the catalog's tests share: values that differ from generation to generation, and a directory for LMDB.
#ifndef ASHLAR_TESTS_CATALOG_CATALOG_HARNESS_H_
#define ASHLAR_TESTS_CATALOG_CATALOG_HARNESS_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "src/env/env.h"

namespace ashlar::catalog {

// A valid value with `segments` segments; different for every generation.
inline format::CatalogValue MakeValue(uint64_t generation, size_t segments = 3) {
  Prng random(generation * 1000 + segments);
  format::CatalogValue value;
  value.generation = generation;
  value.store_id.fill(std::byte{0x17});
  Field field;
  field.name = "title";
  value.schema.fields = {field};
  value.schema.default_group = {"title"};
  value.schema_number = 1;
  value.analyzer_identity = "ashlar-1 icu-72";
  value.floor = generation * 100;
  value.last_sequence = generation * 100 + 7;
  value.journal_number = generation;
  value.next_file_number = 1000000;
  DocumentId id = 1;
  for (size_t i = 0; i < segments; ++i) {
    format::SegmentEntry segment;
    segment.number = i + 1;
    for (std::byte& b : segment.file_id) b = static_cast<std::byte>(random.Next());
    segment.file_bytes = random.Next() >> 20;
    segment.documents = 100;
    segment.dead = static_cast<uint32_t>(random.Below(100));
    segment.first_id = id;
    segment.last_id = id + 99;
    id += 100;
    value.segments.push_back(segment);
  }
  if (generation % 2 == 0) value.watermark = absl::StrCat("up to ", generation);
  return value;
}

// A directory of its own, gone at the end.
class TemporaryDirectory {
 public:
  // `in_memory`: on a file system without a disk where there is one, for tests that commit thousands of times.
  explicit TemporaryDirectory(bool in_memory = false) {
    const std::filesystem::path memory = "/dev/shm";
    const bool has_memory = ::access(memory.c_str(), W_OK | X_OK) == 0;
    const std::filesystem::path base = in_memory && has_memory ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (base / "ashlar-catalog-XXXXXX").string();
    const char* made = ::mkdtemp(pattern.data());
    EXPECT_NE(made, nullptr);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return env::JoinPath(path_, name); }

 private:
  std::string path_;
};

}  // namespace ashlar::catalog

#endif  // ASHLAR_TESTS_CATALOG_CATALOG_HARNESS_H_
