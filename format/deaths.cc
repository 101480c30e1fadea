#include "format/deaths.h"

#include <algorithm>
#include <limits>

#include "format/record_frame.h"

namespace ashlar::format {
namespace {

constexpr std::string_view kSection = "deaths";

// Ordinals as gaps, sequences as distances from the smallest one: deaths of one time cost two or three bytes each.
void PutSegment(const SegmentDeaths& segment, uint64_t number_gap, ByteWriter* w) {
  Sequence base = std::numeric_limits<Sequence>::max();
  for (const Death& death : segment.deaths) base = std::min(base, death.sequence);
  w->Varint(number_gap);
  w->Varint(segment.deaths.size());
  w->Varint(base);
  uint64_t next_ordinal = 0;
  for (const Death& death : segment.deaths) {
    w->Varint(death.ordinal - next_ordinal);
    w->Varint(death.sequence - base);
    next_ordinal = uint64_t{death.ordinal} + 1;
  }
}

// Null, or what is wrong. `number` is the last segment's number and becomes this one's.
const char* GetSegment(ByteReader* in, uint64_t* number, SegmentDeaths* segment) {
  const uint64_t gap = in->Varint();
  const uint64_t count = in->Varint();
  const Sequence base = in->Varint();
  if (!in->ok() || count > in->left() / 2) return "the segment's list ends too early";
  if (gap == 0 || gap > std::numeric_limits<uint64_t>::max() - *number) return "segment numbers do not ascend";
  if (count == 0) return "an empty list";
  if (base == 0) return "a death at sequence 0";
  *number += gap;
  segment->segment_number = *number;
  segment->deaths.reserve(count);
  uint64_t next_ordinal = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t skip = in->Varint();
    const uint64_t after = in->Varint();
    if (!in->ok()) return "the segment's list ends too early";
    if (skip >= kNoDocument || next_ordinal + skip >= kNoDocument) return "an ordinal out of range";
    if (after > std::numeric_limits<Sequence>::max() - base) return "a sequence out of range";
    const uint64_t ordinal = next_ordinal + skip;
    segment->deaths.push_back({static_cast<uint32_t>(ordinal), base + after});
    next_ordinal = ordinal + 1;
  }
  return nullptr;
}

ByteBuffer Encode(const DeathsFile& deaths) {
  FileHeader header;
  header.kind = FileKind::kDeaths;
  header.file_id = deaths.file_id;
  header.store_id = deaths.store_id;
  ByteBuffer out = BeginFramed(header);
  ByteWriter w(&out);
  w.U64(deaths.generation);
  w.Varint(deaths.segments.size());
  uint64_t number = 0;
  for (const SegmentDeaths& segment : deaths.segments) {
    PutSegment(segment, segment.segment_number - number, &w);
    number = segment.segment_number;
  }
  EndFramed(header.file_id, &out);
  return out;
}

}  // namespace

ByteBuffer EncodeDeaths(const DeathsFile& deaths) { return Encode(deaths); }

absl::StatusOr<DeathsFile> DecodeDeaths(ByteSpan bytes, std::string_view file) {
  ASHLAR_ASSIGN_OR_RETURN(const Framed framed, OpenFramed(bytes, FileKind::kDeaths, file));
  DeathsFile deaths;
  deaths.file_id = framed.header.file_id;
  deaths.store_id = framed.header.store_id;
  ByteReader in(framed.body);
  deaths.generation = in.U64();
  const uint64_t segment_count = in.Varint();
  if (!in.ok() || segment_count > in.left())
    return DataLoss(file, kSection, kFileHeaderBytes, "the list of segments ends too early");
  uint64_t number = 0;
  for (uint64_t i = 0; i < segment_count; ++i) {
    const uint64_t at = kFileHeaderBytes + in.position();
    SegmentDeaths& segment = deaths.segments.emplace_back();
    if (const char* fault = GetSegment(&in, &number, &segment)) return DataLoss(file, kSection, at, fault);
  }
  if (!in.done()) return DataLoss(file, kSection, kFileHeaderBytes + in.position(), "bytes after the last segment");
  // One value has one encoding (SPEC L-4).
  if (const std::optional<uint64_t> at = FirstDifference(Encode(deaths), bytes))
    return DataLoss(file, kSection, *at, "not in its canonical form");
  return deaths;
}

}  // namespace ashlar::format
