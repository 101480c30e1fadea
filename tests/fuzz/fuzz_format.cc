// Any bytes into every decoder of format/, and into the JSON-free parsers beside it: none may crash, and what decodes must
// encode to the same bytes where the encoding is unique.
//
// With -Dfuzzing=true (clang) this is a libFuzzer target; else tests/fuzz/replay_main.cc feeds it the golden files, every
// prefix of them, and seeded random damage of them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ashlar/query.h"
#include "format/catalog_value.h"
#include "format/column.h"
#include "format/deaths.h"
#include "format/document_codec.h"
#include "format/frame.h"
#include "format/journal_record.h"
#include "format/key_block.h"
#include "format/schema_codec.h"
#include "format/section_table.h"
#include "format/segment_meta.h"
#include "format/stored_block.h"
#include "format/term_block.h"
#include "src/text/analyzer.h"

namespace ashlar {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();  // what a fuzzer looks for
}

void Files(ByteSpan bytes) {
  for (const format::FileKind kind : {format::FileKind::kJournal, format::FileKind::kSegment, format::FileKind::kDeaths})
    (void)format::DecodeFileHeader(bytes, kind, "f");
  if (const auto value = format::DecodeCatalogValue(bytes, "f"); value.ok()) {
    const ByteBuffer again = format::EncodeCatalogValue(*value);
    Require(again.size() == bytes.size() && AsString(again) == AsString(bytes));
  }
  if (const auto deaths = format::DecodeDeaths(bytes, "f"); deaths.ok())
    Require(AsString(format::EncodeDeaths(*deaths)) == AsString(bytes));
  (void)format::DecodeJournalHeader(bytes, "f");
  (void)format::DecodeRecordHeader(bytes, {});
  if (bytes.size() < format::kSegmentFooterBytes) return;
  (void)format::DecodeSegmentFooter(bytes.last(format::kSegmentFooterBytes), {}, bytes.size(), "f");
  format::SegmentFooter footer;
  footer.file_bytes = bytes.size();
  footer.table_count = static_cast<uint32_t>(bytes.size() / 24);
  (void)format::DecodeSectionTable(bytes, footer, "f");
}

void Parts(ByteSpan bytes) {
  if (const std::optional<Schema> schema = format::DecodeSchema(bytes)) (void)schema->Validate();
  (void)format::DecodeSegmentMeta(bytes);
  (void)format::DecodeKeysHeader(bytes, bytes.size());
  (void)format::DecodeStoredTrailer(bytes, bytes.size());
  (void)format::DecodeColumnHeader(bytes, bytes.size());
  (void)format::DecodeColumnBlock(bytes);
  format::TermsHeader terms;
  (void)format::DecodeTermsHeader(bytes, bytes.size(), &terms);
  ByteBuffer raw;
  (void)format::DecodeStoredBlock(bytes, nullptr, &raw);
  ByteBuffer again;
  if (format::VisitValues(bytes, [&again](const format::ValueView& value) { format::AppendValue(value, &again); }))
    Require(AsString(again) == AsString(bytes));
  (void)format::VisitOperations(bytes, [](const format::OperationView&) { return true; });
}

void Text(std::string_view text) {
  (void)ParseQuery(text);
  Require((text::FirstInvalidUtf8(text) == text.size()) == text::IsValidUtf8(text));
}

}  // namespace
}  // namespace ashlar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ashlar::ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  ashlar::Files(bytes);
  ashlar::Parts(bytes);
  ashlar::Text(ashlar::AsString(bytes));
  return 0;
}
