// Damage: every truncation and flipped bits of a segment file give a typed error or the right answers (SPEC S-5 to
// S-8).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "format/frame.h"
#include "format/page_checksums.h"
#include "format/section_table.h"
#include "src/base/checksum.h"
#include "src/base/site.h"
#include "src/base/status.h"
#include "src/segment/segment.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

class SegmentDamage : public testing::Test {
 protected:
  SegmentDamage() : random_(77), path_("dir/" + FileName(1)) {
    Schema schema;
    AddField("title", FieldType::kText, &schema);
    AddField("id", FieldType::kKeyword, &schema);
    AddField("body", FieldType::kText, &schema);
    AddField("tag", FieldType::kKeyword, &schema);
    AddField("size", FieldType::kInt64, &schema);
    schema.default_group = {"title", "body"};
    schema.key = "id";
    schema_ = schema;
    documents_ = RandomDocuments(schema_, 60, 1, &random_);
    entry_ = *store_.Build(schema_, 1, documents_);
    bytes_ = *env::ReadFile(*store_.env.files, path_);
    EXPECT_TRUE(AskEverything(**store_.Open(entry_), schema_, documents_, &truth_).ok());
  }

  void Rewrite(ByteSpan bytes) {
    ASSERT_TRUE(store_.env.files->Remove(path_).ok());
    const auto file = store_.env.files->CreateFile(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }

  // Opens the file and asks everything: an error of the right kind, or the truth. Check() must not crash, and must
  // find something if the questions did.
  void ExpectErrorOrTruth(OpenMode mode) {
    const auto segment = store_.Open(entry_, mode);
    if (!segment.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(segment.status()) || absl::IsUnimplemented(segment.status())) << segment.status();
      return;
    }
    std::vector<std::string> answers;
    const absl::Status status = AskEverything(**segment, schema_, documents_, &answers);
    if (status.ok()) {
      EXPECT_EQ(answers, truth_);
    } else {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_TRUE(PlaceOf(status).has_value());
      EXPECT_FALSE((*segment)->Check().empty());
    }
  }

  Prng random_;
  ModelStore store_;
  std::string path_;
  Schema schema_;
  std::vector<ModelDocument> documents_;
  format::SegmentEntry entry_;
  ByteBuffer bytes_;
  std::vector<std::string> truth_;
};

// A flipped bit in what vouches for the rest is blamed on itself, and not on what it vouches for. Without the check in
// question it is not noticed, or blamed on another place.
TEST_F(SegmentDamage, ChecksumsAreBlamedThemselves) {
  const auto header = format::DecodeFileHeader(bytes_, format::FileKind::kSegment, path_);
  ASSERT_TRUE(header.ok());
  const uint64_t footer_at = bytes_.size() - format::kSegmentFooterBytes;
  const auto footer =
      format::DecodeSegmentFooter(ByteSpan(bytes_).subspan(footer_at), header->file_id, bytes_.size(), path_);
  ASSERT_TRUE(footer.ok());
  constexpr uint64_t kGeneration = 40;  // in the footer; 7, which becomes 6
  const struct {
    Site site;
    uint64_t byte;
    std::string section;
  } cases[] = {{Site::kCheckSegmentFooter, footer_at + kGeneration, "footer"},
               {Site::kCheckSegmentRoots, footer->root_offset, "checksums"},
               {Site::kCheckSegmentSums, footer->data_end, "checksums"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(SiteName(c.site));
    ByteBuffer damaged = bytes_;
    damaged[c.byte] ^= std::byte{1};
    Rewrite(damaged);
    const auto blamed = [this]() -> std::optional<ErrorPlace> {
      const auto segment = store_.Open(entry_);
      if (!segment.ok()) return PlaceOf(segment.status());
      const std::vector<absl::Status> findings = (*segment)->Check();
      return findings.empty() ? std::nullopt : PlaceOf(findings[0]);
    };
    const std::optional<ErrorPlace> place = blamed();
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->section, c.section);
    DisableSite(c.site);
    const std::optional<ErrorPlace> without = blamed();
    DisableSite(Site::kNone);
    EXPECT_TRUE(!without.has_value() || without->section != place->section || without->offset != place->offset);
  }
}

TEST_F(SegmentDamage, EveryTruncationIsNoticed) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    Rewrite(ByteSpan(bytes_).first(size));
    for (const OpenMode mode : {OpenMode::kMapped, OpenMode::kArray}) {
      EXPECT_TRUE(absl::IsDataLoss(store_.Open(entry_, mode).status())) << size;
      format::SegmentEntry shorter = entry_;  // a catalog that believes it
      shorter.file_bytes = size;
      EXPECT_TRUE(absl::IsDataLoss(store_.Open(shorter, mode).status())) << size;
    }
  }
}

TEST_F(SegmentDamage, FlippedBitsAreNoticed) {
  const size_t stride = 1 + bytes_.size() / 700;
  for (size_t at = random_.Below(stride); at < bytes_.size(); at += 1 + random_.Below(2 * stride)) {
    SCOPED_TRACE(testing::Message() << "byte " << at << " of " << bytes_.size());
    ByteBuffer damaged = bytes_;
    damaged[at] ^= static_cast<std::byte>(1 << random_.Below(8));
    Rewrite(damaged);
    ExpectErrorOrTruth(OpenMode::kMapped);
    EXPECT_FALSE(store_.Open(entry_, OpenMode::kArray).ok());
  }
}

// Bytes that are wrong but have right checksums: the structure itself must hold, whatever it says.
TEST_F(SegmentDamage, ForgedBytesDoNotCrash) {
  const size_t footer_at = bytes_.size() - format::kSegmentFooterBytes;
  const auto footer =
      format::DecodeSegmentFooter(ByteSpan(bytes_).subspan(footer_at), entry_.file_id, bytes_.size(), path_);
  ASSERT_TRUE(footer.ok());
  for (int round = 0; round < 700; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    ByteBuffer forged = bytes_;
    const uint64_t flips = 1 + random_.Below(3);
    for (uint64_t i = 0; i < flips; ++i) {
      const size_t at = format::kFileHeaderBytes + random_.Below(footer->data_end - format::kFileHeaderBytes);
      forged[at] = random_.OneIn(2) ? static_cast<std::byte>(random_.Next())
                                    : forged[at] ^ static_cast<std::byte>(1 << random_.Below(8));
    }
    format::PageChecksummer sums(entry_.file_id);
    sums.Append(ByteSpan(forged).first(footer->data_end));
    sums.Finish();
    for (size_t i = 0; i < sums.sums().size(); ++i) StoreU64(forged.data() + footer->data_end + i * 8, sums.sums()[i]);
    const auto roots = format::ChecksumRoots(entry_.file_id, footer->data_end,
                                             ByteSpan(forged).subspan(footer->data_end, sums.sums().size() * 8));
    for (size_t i = 0; i < roots.size(); ++i) StoreU64(forged.data() + footer->root_offset + i * 8, roots[i]);
    format::SegmentFooter changed = *footer;
    changed.root_checksum = Checksum(ByteSpan(forged).subspan(footer->root_offset, roots.size() * 8),
                                     PlaceSeed(entry_.file_id, footer->root_offset));
    format::EncodeSegmentFooter(changed, std::span<std::byte, format::kSegmentFooterBytes>(
                                             forged.data() + footer_at, format::kSegmentFooterBytes));
    Rewrite(forged);
    const auto segment = store_.Open(entry_, random_.OneIn(2) ? OpenMode::kMapped : OpenMode::kArray);
    if (!segment.ok()) continue;
    std::vector<std::string> answers;
    const absl::Status status = AskEverything(**segment, schema_, documents_, &answers);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status) || absl::IsUnimplemented(status) ||
                absl::IsInvalidArgument(status))
        << status;
    const std::vector<absl::Status> findings = (*segment)->Check();  // must not crash either
    if (!status.ok()) {
      EXPECT_FALSE(findings.empty()) << status;
    }
    MergeInput input;
    input.segment = *segment;
    (void)MergeSegments(store_.env, "dir", store_.Spec(schema_, 2), {input});  // must not crash
    (void)store_.env.files->Remove("dir/" + FileName(2));
  }
}

TEST_F(SegmentDamage, PiecesOfAnotherFileAreNoticed) {
  ASSERT_TRUE(store_.Build(schema_, 2, RandomDocuments(schema_, 70, 1, &random_)).ok());
  const ByteBuffer other = *env::ReadFile(*store_.env.files, "dir/" + FileName(2));
  for (size_t at = 0; at < std::min(bytes_.size(), other.size()); at += format::kPageBytes) {
    ByteBuffer mixed = bytes_;
    const size_t n = std::min({format::kPageBytes, bytes_.size() - at, other.size() - at});
    std::copy_n(other.begin() + static_cast<ptrdiff_t>(at), n, mixed.begin() + static_cast<ptrdiff_t>(at));
    ASSERT_NE(mixed, bytes_);
    Rewrite(mixed);
    EXPECT_FALSE(store_.Open(entry_, OpenMode::kArray).ok()) << at;
    ExpectErrorOrTruth(OpenMode::kMapped);
  }
  Rewrite(other);
  EXPECT_TRUE(absl::IsDataLoss(store_.Open(entry_).status()));
}

// Two pages that changed places have right bytes at a wrong place.
TEST_F(SegmentDamage, ExchangedPagesAreNoticed) {
  ByteBuffer exchanged = bytes_;
  ASSERT_GT(bytes_.size(), 3 * format::kPageBytes);
  std::swap_ranges(exchanged.begin() + format::kPageBytes, exchanged.begin() + 2 * format::kPageBytes,
                   exchanged.begin() + 2 * format::kPageBytes);
  Rewrite(exchanged);
  EXPECT_TRUE(absl::IsDataLoss(store_.Open(entry_, OpenMode::kArray).status()));
  ExpectErrorOrTruth(OpenMode::kMapped);
  const auto segment = store_.Open(entry_);
  ASSERT_TRUE(segment.ok());
  EXPECT_GE((*segment)->Check().size(), 2u);
}

// An optional section of a kind that this build does not know is skipped; one that is needed is Unimplemented, not
// damage.
TEST_F(SegmentDamage, UnknownSectionsAreToldApart) {
  const size_t footer_at = bytes_.size() - format::kSegmentFooterBytes;
  const auto footer =
      format::DecodeSegmentFooter(ByteSpan(bytes_).subspan(footer_at), entry_.file_id, bytes_.size(), path_);
  ASSERT_TRUE(footer.ok());
  for (const bool optional : {false, true}) {
    ByteBuffer changed = bytes_;
    bool found = false;
    for (size_t i = 0; i < footer->table_count; ++i) {
      std::byte* entry = changed.data() + footer->table_offset + i * format::kSectionEntryBytes;
      if (LoadU16(entry) != static_cast<uint16_t>(format::SectionKind::kKeyFilter)) continue;
      StoreU16(entry, 999);
      StoreU16(entry + 2, optional ? format::kSectionOptional : uint16_t{0});
      found = true;
    }
    ASSERT_TRUE(found);
    format::SegmentFooter f = *footer;
    f.table_checksum = Checksum(ByteSpan(changed).subspan(f.table_offset, f.table_count * format::kSectionEntryBytes),
                                PlaceSeed(f.file_id, f.table_offset));
    format::EncodeSegmentFooter(
        f, std::span<std::byte, format::kSegmentFooterBytes>(changed.data() + footer_at, format::kSegmentFooterBytes));
    Rewrite(changed);
    const auto segment = store_.Open(entry_);
    if (!optional) {
      EXPECT_TRUE(absl::IsUnimplemented(segment.status())) << segment.status();
      continue;
    }
    ASSERT_TRUE(segment.ok()) << segment.status();
    ExpectHolds(**segment, schema_, documents_);
  }
}

// Lengths that are verified where they are looked at: damage fails those who look there, and nobody else.
TEST_F(SegmentDamage, SomeLengthsFailWhereTheyAreDamaged) {
  Schema schema;
  AddField("body", FieldType::kText, &schema);
  schema.default_group = {"body"};
  constexpr uint32_t kDocuments = 20000;  // 10 pages of lengths
  const std::vector<ModelDocument> documents = RandomDocuments(schema, kDocuments, 1, &random_);
  const std::string path = "dir/" + FileName(2);
  const format::SegmentEntry entry = *store_.Build(schema, 2, documents);
  ByteBuffer bytes = *env::ReadFile(*store_.env.files, path);
  const auto footer = format::DecodeSegmentFooter(ByteSpan(bytes).subspan(bytes.size() - format::kSegmentFooterBytes),
                                                  entry.file_id, bytes.size(), path);
  ASSERT_TRUE(footer.ok());
  const auto sections = format::DecodeSectionTable(
      ByteSpan(bytes).subspan(footer->table_offset, bytes.size() - format::kSegmentFooterBytes - footer->table_offset),
      *footer, path);
  ASSERT_TRUE(sections.ok());
  const auto lengths = std::find_if(sections->begin(), sections->end(), [](const format::SectionEntry& section) {
    return section.kind == format::SectionKind::kLengths;
  });
  ASSERT_NE(lengths, sections->end());
  const auto undamaged = *store_.Open(entry);
  const auto whole = undamaged->Lengths(format::kGroupIndex);
  ASSERT_TRUE(whole.ok() && whole->is_whole());

  {  // Without damage all are verified after a while.
    const auto segment = *store_.Open(entry);
    auto some = segment->SomeLengths(format::kGroupIndex);
    ASSERT_TRUE(some.ok());
    EXPECT_FALSE(some->is_whole());
    for (uint32_t ordinal = 0; ordinal < kDocuments; ordinal += 999) EXPECT_EQ((*some)[ordinal], (*whole)[ordinal]);
    EXPECT_TRUE(some->status().ok());
    int opened = 0;
    for (; opened < 100 && !some->is_whole(); ++opened) some = segment->SomeLengths(format::kGroupIndex);
    EXPECT_LT(opened, 10);
  }
  constexpr uint32_t kDamaged = 15000;
  bytes[lengths->offset + 2 * kDamaged] ^= std::byte{1};
  path_ = path;
  Rewrite(bytes);
  const auto segment = *store_.Open(entry);
  EXPECT_TRUE(absl::IsDataLoss(segment->Lengths(format::kGroupIndex).status()));
  for (int opened = 0; opened < 100; ++opened) {
    const auto some = segment->SomeLengths(format::kGroupIndex);
    ASSERT_TRUE(some.ok());
    ASSERT_FALSE(some->is_whole());
    EXPECT_EQ((*some)[7], (*whole)[7]);
    EXPECT_TRUE(some->status().ok());
    const uint32_t looked_at[] = {8, kDamaged + 1};
    some->Ensure(looked_at, 1);
    EXPECT_TRUE(some->status().ok());
    some->Ensure(looked_at, 2);
    EXPECT_TRUE(absl::IsDataLoss(some->status()));
    EXPECT_EQ(PlaceOf(some->status())->section, "lengths");
  }
}

}  // namespace
}  // namespace ashlar::segment
