#include "tests/damage/damage_support.h"

#include <gtest/gtest.h>

#include <bit>

#include "ashlar/status.h"
#include "format/frame.h"
#include "src/env/env.h"
#include "src/segment/segment_builder.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {

Schema DamageSchema() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"title", FieldType::kText, true, true, false, {}},
                   {"body", FieldType::kText, true, true, false, {}},
                   {"tag", FieldType::kKeyword, true, false, true, {}},
                   {"rank", FieldType::kInt64, true, false, true, {}}};
  return schema;
}

std::string DamageKey(int i) { return "key" + std::to_string(i); }

Document DamageDocument(int i, int version) {
  Document document;
  document.Add("id", DamageKey(i));
  document.Add("title", std::string("stone ") + (i % 3 == 0 ? "third" : "other") + " title" + std::to_string(i));
  std::string body = "shared shared word" + std::to_string(i) + " version" + std::to_string(version);
  for (int n = 0; n < i % 5; ++n) body += " filler";
  for (int n = 0; n < 40; ++n)  // lists enough that they fill pages of their own
    if ((i * 7 + n * 3) % 5 < 2) body += " common" + std::to_string(n);
  document.Add("body", body).Add("tag", std::string(i % 2 == 0 ? "even" : "odd"));
  document.Add("rank", int64_t{i});
  return document;
}

std::string SegmentPath(const std::string& directory, uint64_t number) {
  return env::JoinPath(directory, segment::FileName(number));
}

std::vector<format::SectionEntry> SectionsOf(ByteSpan file) {
  const auto header = format::DecodeFileHeader(file, format::FileKind::kSegment, "file", std::nullopt);
  EXPECT_OK(header);
  if (!header.ok()) return {};
  const auto footer = format::DecodeSegmentFooter(file.last(format::kSegmentFooterBytes), header->file_id, file.size(),
                                                  "file");
  EXPECT_OK(footer);
  if (!footer.ok()) return {};
  const auto sections = format::DecodeSectionTable(
      file.subspan(footer->table_offset, file.size() - format::kSegmentFooterBytes - footer->table_offset), *footer,
      "file");
  EXPECT_OK(sections);
  return sections.ok() ? *sections : std::vector<format::SectionEntry>();
}

uint64_t BitIn(ByteSpan file, format::SectionKind kind) {
  for (const format::SectionEntry& entry : SectionsOf(file)) {
    const uint64_t page = (entry.offset + format::kPageBytes - 1) / format::kPageBytes * format::kPageBytes;
    if (entry.kind == kind && page + format::kPageBytes <= entry.offset + entry.length)
      return (page + format::kPageBytes / 2) * 8 + 3;
  }
  ADD_FAILURE() << "no section " << format::SectionName(kind) << " has a page of its own";
  return 0;
}

void ExpectDamageIn(const absl::Status& status, const std::string& file) {
  EXPECT_CODE(status, kDataLoss);
  const std::optional<ErrorPlace> place = PlaceOf(status);
  ASSERT_TRUE(place.has_value()) << status;
  EXPECT_EQ(place->file, file) << status;
  EXPECT_FALSE(place->section.empty()) << status;
  EXPECT_NE(status.message().find(file), absl::string_view::npos) << status;
}

void ExpectHits(const Snapshot& snapshot, const SearchResult& result, const OracleResult& expected) {
  EXPECT_EQ(result.total, expected.total);
  ASSERT_EQ(result.hits.size(), expected.hits.size());
  std::vector<Handle> handles;
  for (const Hit& hit : result.hits) handles.push_back(hit.handle);
  ASSERT_OK_AND_ASSIGN(const std::vector<DocumentId> ids, snapshot.FetchIds(handles));
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], expected.hits[i].id) << "hit " << i;
    EXPECT_EQ(std::bit_cast<uint64_t>(result.hits[i].score), std::bit_cast<uint64_t>(expected.hits[i].score)) << i;
  }
}

}  // namespace ashlar::testing
