#include "format/lengths.h"

namespace ashlar::format {
namespace {

uint64_t CodesBytes(uint64_t documents) { return (documents * 2 + 7) / 8 * 8; }

}  // namespace

ByteBuffer EncodeLengths(std::span<const uint32_t> lengths) {
  ByteBuffer out;
  out.reserve(CodesBytes(lengths.size()));
  ByteWriter w(&out);
  for (const uint32_t length : lengths) w.U16(length < kLengthEscape ? static_cast<uint16_t>(length) : kLengthEscape);
  w.Zeros(CodesBytes(lengths.size()) - out.size());
  for (uint32_t ordinal = 0; ordinal < lengths.size(); ++ordinal) {
    if (lengths[ordinal] < kLengthEscape) continue;
    w.U32(ordinal);
    w.U32(lengths[ordinal]);
  }
  return out;
}

std::optional<LengthsView> DecodeLengths(ByteSpan section, uint32_t documents) {
  const uint64_t codes = CodesBytes(documents);
  if (section.size() < codes || (section.size() - codes) % kLengthExceptionBytes != 0) return std::nullopt;
  const uint64_t exceptions = (section.size() - codes) / kLengthExceptionBytes;
  if (exceptions > documents) return std::nullopt;
  return LengthsView{section.data(), section.data() + codes, static_cast<uint32_t>(exceptions)};
}

}  // namespace ashlar::format
