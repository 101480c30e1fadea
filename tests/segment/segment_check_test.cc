// Check against content that is wrong under right checksums: what a bug or a forger writes, not what a disk does.
#include <gtest/gtest.h>

#include <functional>

#include "format/frame.h"
#include "format/page_checksums.h"
#include "format/section_table.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "src/segment/segment_impl.h"
#include "tests/segment/segment_model.h"

namespace ashlar::segment {
namespace {

class SegmentCheck : public testing::Test {
 protected:
  SegmentCheck() : random_(5), path_("dir/" + FileName(1)) {
    AddField("title", FieldType::kText, &schema_);
    AddField("id", FieldType::kKeyword, &schema_);
    AddField("body", FieldType::kText, &schema_);
    AddField("tag", FieldType::kKeyword, &schema_);
    AddField("size", FieldType::kInt64, &schema_);
    schema_.default_group = {"title", "body"};
    schema_.key = "id";
    documents_ = RandomDocuments(schema_, 700, 1, &random_);
    entry_ = *store_.Build(schema_, 1, documents_);
    bytes_ = *env::ReadFile(*store_.env.files, path_);
    segment_ = std::dynamic_pointer_cast<const SegmentImpl>(*store_.Open(entry_));
    for (const absl::Status& finding : segment_->Check()) ADD_FAILURE() << finding;
  }

  // Puts the bytes in place under checksums that fit, and opens them.
  absl::StatusOr<std::shared_ptr<const Segment>> Forge(ByteBuffer forged) {
    const format::SegmentFooter& footer = segment_->file().footer();
    format::PageChecksummer sums(entry_.file_id);
    sums.Append(ByteSpan(forged).first(footer.data_end));
    sums.Finish();
    for (size_t i = 0; i < sums.sums().size(); ++i)
      StoreU64(forged.data() + footer.data_end + i * 8, sums.sums()[i]);
    const auto roots = format::ChecksumRoots(entry_.file_id, footer.data_end,
                                             ByteSpan(forged).subspan(footer.data_end, sums.sums().size() * 8));
    for (size_t i = 0; i < roots.size(); ++i) StoreU64(forged.data() + footer.root_offset + i * 8, roots[i]);
    format::SegmentFooter changed = footer;
    changed.root_checksum = Checksum(ByteSpan(forged).subspan(footer.root_offset, roots.size() * 8),
                                     PlaceSeed(entry_.file_id, footer.root_offset));
    const size_t footer_at = forged.size() - format::kSegmentFooterBytes;
    format::EncodeSegmentFooter(changed, std::span<std::byte, format::kSegmentFooterBytes>(
                                             forged.data() + footer_at, format::kSegmentFooterBytes));
    EXPECT_TRUE(store_.env.files->Remove(path_).ok());
    const auto file = store_.env.files->CreateFile(path_);
    EXPECT_TRUE(file.ok() && (*file)->Append(forged).ok());
    return store_.Open(entry_);
  }

  // Whether the change is found, by opening or by Check; and then with a place.
  bool IsFound(const ByteBuffer& forged) {
    const auto segment = Forge(forged);
    if (!segment.ok()) return absl::IsDataLoss(segment.status());
    const std::vector<absl::Status> findings = (*segment)->Check();
    for (const absl::Status& finding : findings) EXPECT_TRUE(PlaceOf(finding).has_value()) << finding;
    return !findings.empty();
  }

  uint64_t OffsetOf(format::SectionKind kind, uint32_t id) const { return segment_->file().Find(kind, id)->entry().offset; }

  // The block headers of every long list of an index, in `forged`.
  void VisitHeaders(format::IndexId index, ByteBuffer* forged,
                    const std::function<void(uint64_t offset, const format::ListHeaders&)>& visit) const {
    const IndexReader* reader = *segment_->IndexOf(index);
    TermIterator terms = reader->Terms();
    while (terms.Next()) {
      if (!terms.info().has_blocks()) continue;
      const uint64_t offset = OffsetOf(format::SectionKind::kBlockHeaders, index) + terms.info().offset;
      format::ListHeaders headers;
      format::ReadListHeaders(forged->data() + offset, &headers);
      visit(offset, headers);
    }
  }

  Prng random_;
  ModelStore store_;
  std::string path_;
  Schema schema_;
  std::vector<ModelDocument> documents_;
  format::SegmentEntry entry_;
  ByteBuffer bytes_;
  std::shared_ptr<const SegmentImpl> segment_;
};

// Bounds that are too low would make a search skip what it should find, and nothing else would notice.
TEST_F(SegmentCheck, BoundsBelowTheirPostings) {
  uint64_t lists = 0, changes = 0;
  ByteBuffer forged = bytes_;
  const auto expect_found = [&](std::string_view what, std::vector<std::pair<const uint8_t*, uint8_t>> values) {
    ByteBuffer changed = forged;
    bool differs = false;
    for (const auto& [at, value] : values) {
      const auto offset = static_cast<size_t>(reinterpret_cast<const std::byte*>(at) - forged.data());
      differs |= changed[offset] != std::byte{value};
      changed[offset] = std::byte{value};
    }
    if (!differs) return;
    ++changes;
    EXPECT_TRUE(IsFound(changed)) << what;
  };
  for (const format::IndexId index : {format::kGroupIndex, format::IndexId{3}}) {
    VisitHeaders(index, &forged, [&](uint64_t, const format::ListHeaders& h) {
      if (++lists % 3 != 1) return;
      for (uint32_t block = 0; block < h.blocks; block += 3) {
        std::vector<std::pair<const uint8_t*, uint8_t>> frequencies, lengths;
        for (uint32_t p = 0; p < h.pairs; ++p) {
          frequencies.push_back({&h.pair_frequencies[p * h.blocks + block], 0});
          lengths.push_back({&h.pair_lengths[p * h.blocks + block], 255});
        }
        expect_found("frequencies of a block", frequencies);
        expect_found("lengths of a block", lengths);
        if (!h.members || h.largest_frequencies[block] == 0) continue;
        expect_found("largest member's frequency", {{&h.largest_frequencies[block], 0}});
        expect_found("largest member's length", {{&h.largest_lengths[block], 255}});
      }
      std::vector<std::pair<const uint8_t*, uint8_t>> frequencies, lengths;
      for (uint32_t p = 0; p < h.group_pairs; ++p) {
        frequencies.push_back({&h.group_pair_frequencies[p * h.groups], 0});
        lengths.push_back({&h.group_pair_lengths[p * h.groups], 255});
      }
      expect_found("frequencies of a group of blocks", frequencies);
      expect_found("lengths of a group of blocks", lengths);
      if (!h.members || h.group_largest_frequencies[0] == 0) return;
      expect_found("largest member's frequency in a group", {{&h.group_largest_frequencies[0], 0}});
      expect_found("largest member's length in a group", {{&h.group_largest_lengths[0], 255}});
    });
  }
  EXPECT_GT(lists, 0u);
  EXPECT_GT(changes, 8u);
}

TEST_F(SegmentCheck, CountsAndEndsOfLists) {
  uint64_t changes = 0;
  ByteBuffer forged = bytes_;
  VisitHeaders(format::kGroupIndex, &forged, [&](uint64_t offset, const format::ListHeaders& h) {
    if (changes > 40) return;
    const auto change = [&](std::string_view what, const void* at, uint32_t width) {
      for (const int delta : {1, -1}) {
        ByteBuffer changed = forged;
        const auto place = static_cast<size_t>(static_cast<const std::byte*>(at) - forged.data());
        if (width == 1) {
          changed[place] = static_cast<std::byte>(std::to_integer<int>(changed[place]) + delta);
        } else {
          StoreU32(changed.data() + place, LoadU32(changed.data() + place) + static_cast<uint32_t>(delta));
        }
        ++changes;
        EXPECT_TRUE(IsFound(changed)) << what << " " << delta << ", list at " << offset;
      }
    };
    const uint32_t block = h.blocks / 2;
    change("last document", h.last_documents + size_t{4} * block, 4);
    change("payload end", h.payload_ends + size_t{4} * block, 4);
    if (h.positions) change("positions end", h.positions_ends + size_t{4} * block, 4);
    change("count", h.counts + block, 1);
    change("last document of a group", h.group_last_documents, 4);
  });
  EXPECT_GT(changes, 8u);
}

TEST_F(SegmentCheck, WrongLengths) {
  for (const format::IndexId index : {format::IndexId{0}, format::IndexId{2}, format::IndexId{3}, format::kGroupIndex}) {
    for (uint32_t ordinal = 0; ordinal < documents_.size(); ordinal += 97) {
      for (const int delta : {1, -1}) {
        ByteBuffer forged = bytes_;
        std::byte* code = forged.data() + OffsetOf(format::SectionKind::kLengths, index) + size_t{2} * ordinal;
        if (LoadU16(code) == 0 && delta < 0) continue;
        StoreU16(code, static_cast<uint16_t>(LoadU16(code) + delta));
        EXPECT_TRUE(IsFound(forged)) << index << ", document " << ordinal << " " << delta;
      }
    }
  }
}

TEST_F(SegmentCheck, WrongMeta) {
  const Section& section = *segment_->file().Find(format::SectionKind::kMeta);
  const auto expect_found = [&](std::string_view what, const std::function<void(format::SegmentMeta&)>& change) {
    format::SegmentMeta meta = segment_->meta();
    change(meta);
    const ByteBuffer encoded = format::EncodeSegmentMeta(meta);
    ASSERT_EQ(encoded.size(), section.size()) << what;
    ByteBuffer forged = bytes_;
    std::copy(encoded.begin(), encoded.end(), forged.begin() + static_cast<ptrdiff_t>(section.entry().offset));
    EXPECT_TRUE(IsFound(forged)) << what;
  };
  for (size_t i = 0; i < segment_->meta().lengths.size(); ++i)
    expect_found("a sum of lengths", [i](format::SegmentMeta& m) { m.lengths[i].sum ^= 1; });
  for (size_t i = 0; i < segment_->meta().indexes.size(); ++i) {
    expect_found("a number of postings", [i](format::SegmentMeta& m) { m.indexes[i].postings ^= 1; });
    expect_found("a number of terms", [i](format::SegmentMeta& m) { m.indexes[i].terms ^= 1; });
  }
  expect_found("a first id", [](format::SegmentMeta& m) { m.first_id += 1; });
  expect_found("a last id", [](format::SegmentMeta& m) { m.last_id -= 1; });
}

// Where everything can be told from something else (not the words, values and places themselves), what Check has nothing to
// say about has no effect on any answer.
TEST_F(SegmentCheck, WhatIsNotFoundChangesNoAnswer) {
  std::vector<std::string> truth;
  ASSERT_TRUE(AskEverything(*segment_, schema_, documents_, &truth).ok());
  int found = 0, harmless = 0;
  for (const std::unique_ptr<Section>& section : segment_->file().sections()) {
    const format::SectionKind kind = section->entry().kind;
    if (kind != format::SectionKind::kLengths && kind != format::SectionKind::kBlockHeaders &&
        kind != format::SectionKind::kKeyFilter && kind != format::SectionKind::kMeta)
      continue;
    for (int round = 0; round < 12 && section->size() > 0; ++round) {
      ByteBuffer forged = bytes_;
      const uint64_t at = section->entry().offset + random_.Below(section->size());
      forged[at] ^= static_cast<std::byte>(1 << random_.Below(8));
      if (IsFound(forged)) {
        ++found;
        continue;
      }
      SCOPED_TRACE(testing::Message() << section->label() << ", byte " << at - section->entry().offset);
      ++harmless;
      const auto segment = store_.Open(entry_);
      ASSERT_TRUE(segment.ok()) << segment.status();
      std::vector<std::string> answers;
      ASSERT_TRUE(AskEverything(**segment, schema_, documents_, &answers).ok());
      EXPECT_TRUE(answers == truth);
    }
  }
  EXPECT_GT(found, 20) << harmless << " were harmless";
}

// One damaged page is one finding, whatever lies on it.
TEST_F(SegmentCheck, ADamagedPageIsNamedOnce) {
  const uint64_t pages = (segment_->file().footer().data_end + format::kPageBytes - 1) / format::kPageBytes;
  for (uint64_t page = 0; page < pages; ++page) {
    SCOPED_TRACE(page);
    ByteBuffer damaged = bytes_;
    const uint64_t at = std::max<uint64_t>(page * format::kPageBytes, format::kFileHeaderBytes + 8);
    damaged[at] ^= std::byte{4};
    ASSERT_TRUE(store_.env.files->Remove(path_).ok());
    const auto file = store_.env.files->CreateFile(path_);
    ASSERT_TRUE(file.ok() && (*file)->Append(damaged).ok());
    const auto segment = store_.Open(entry_);
    if (!segment.ok()) continue;  // the meta section
    const std::vector<absl::Status> findings = (*segment)->Check();
    ASSERT_EQ(findings.size(), 1u) << findings[1];
    EXPECT_EQ(PlaceOf(findings[0])->offset, page * format::kPageBytes);
    EXPECT_EQ(PlaceOf(findings[0])->file, path_);
  }
}

}  // namespace
}  // namespace ashlar::segment
