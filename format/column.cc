#include "format/column.h"

#include <algorithm>

#include "src/base/check.h"

namespace ashlar::format {
namespace {

bool Inside(uint64_t offset, uint64_t length, uint64_t section_bytes) {
  return length <= section_bytes && offset <= section_bytes - length;
}

void PadToWord(ByteBuffer* out) { out->resize((out->size() + 7) / 8 * 8); }

bool IsColumnType(FieldType type) {
  return type == FieldType::kKeyword || type == FieldType::kInt64 || type == FieldType::kDouble ||
         type == FieldType::kDate;
}

}  // namespace

void ColumnWriter::Add(std::span<const uint64_t> codes) {
  codes_.insert(codes_.end(), codes.begin(), codes.end());
  starts_.push_back(codes_.size());
  ++documents_;
  value_count_ += codes.size();
  if (starts_.size() > kColumnBlockDocuments) EndBlock();
}

void ColumnWriter::EndBlock() {
  const size_t documents = starts_.size() - 1;
  if (documents == 0) return;
  ColumnBlock block;
  block.offset = payload_.size();
  block.values = static_cast<uint32_t>(codes_.size());
  size_t most = 0, with_value = 0;
  for (size_t j = 0; j < documents; ++j) {
    const size_t n = starts_[j + 1] - starts_[j];
    most = std::max(most, n);
    with_value += n > 0 ? 1 : 0;
  }
  if (!codes_.empty()) {
    const auto [min, max] = std::minmax_element(codes_.begin(), codes_.end());
    block.min = *min;
    block.max = *max;
  }
  block.width = static_cast<uint8_t>(BitWidth(block.max - block.min));
  std::vector<uint64_t> values;
  if (most > 1) {
    block.form = ColumnForm::kMany;
    block.start_width = static_cast<uint8_t>(BitWidth(codes_.size()));
    AppendPacked(starts_, block.start_width, &payload_);
    for (const uint64_t code : codes_) values.push_back(code - block.min);
  } else if (most == 1) {
    const bool all = with_value == documents;
    block.form = all ? ColumnForm::kOneEach : ColumnForm::kAtMostOne;
    std::array<std::byte, kColumnBlockDocuments / 8> bits{};
    for (size_t j = 0; j < documents; ++j) {
      const bool has = starts_[j + 1] > starts_[j];
      values.push_back(has ? codes_[starts_[j]] - block.min : 0);
      if (has) bits[j / 8] |= static_cast<std::byte>(1 << (j % 8));
    }
    if (!all) payload_.insert(payload_.end(), bits.begin(), bits.end());
  }
  AppendPacked(values, block.width, &payload_);
  ByteWriter w(&blocks_);
  w.U64(block.min);
  w.U64(block.max);
  w.U64(block.offset);
  w.U32(block.values);
  w.U8(static_cast<uint8_t>(block.form));
  w.U8(block.width);
  w.U8(block.start_width);
  w.U8(0);
  codes_.clear();
  starts_.assign(1, 0);
}

ByteBuffer ColumnWriter::Finish(SortedStringsWriter* strings) {
  EndBlock();
  ByteBuffer out;
  out.reserve(kColumnHeaderBytes + blocks_.size() + payload_.size());
  out.resize(kColumnHeaderBytes);
  ColumnHeader h;
  h.blocks_offset = out.size();
  out.insert(out.end(), blocks_.begin(), blocks_.end());
  h.payload_offset = out.size();
  h.payload_length = payload_.size();
  out.insert(out.end(), payload_.begin(), payload_.end());
  PadToWord(&out);
  if (strings != nullptr) h.strings = strings->Finish(&out);
  std::byte* p = out.data();
  StoreU32(p, static_cast<uint32_t>(type_));
  StoreU32(p + 4, documents_);
  StoreU64(p + 8, value_count_);
  StoreU64(p + 16, h.blocks_offset);
  StoreU64(p + 24, h.payload_offset);
  StoreU64(p + 32, h.payload_length);
  StoreU32(p + 40, h.strings.count);
  StoreU64(p + 48, h.strings.blocks_offset);
  StoreU64(p + 56, h.strings.blocks_length);
  StoreU64(p + 64, h.strings.offsets_offset);
  StoreU64(p + 72, h.strings.offsets_length);
  return out;
}

std::optional<ColumnHeader> DecodeColumnHeader(ByteSpan bytes, uint64_t section_bytes) {
  if (bytes.size() != kColumnHeaderBytes) return std::nullopt;
  const std::byte* p = bytes.data();
  const uint32_t type = LoadU32(p);
  if (type > UINT8_MAX || !IsColumnType(static_cast<FieldType>(type))) return std::nullopt;
  ColumnHeader h;
  h.type = static_cast<FieldType>(type);
  h.documents = LoadU32(p + 4);
  h.values = LoadU64(p + 8);
  h.blocks_offset = LoadU64(p + 16);
  h.payload_offset = LoadU64(p + 24);
  h.payload_length = LoadU64(p + 32);
  h.strings.count = LoadU32(p + 40);
  h.strings.blocks_offset = LoadU64(p + 48);
  h.strings.blocks_length = LoadU64(p + 56);
  h.strings.offsets_offset = LoadU64(p + 64);
  h.strings.offsets_length = LoadU64(p + 72);
  if (LoadU32(p + 44) != 0 || LoadU64(p + 80) != 0 || LoadU64(p + 88) != 0) return std::nullopt;
  const uint64_t blocks = (uint64_t{h.documents} + (kColumnBlockDocuments - 1)) / kColumnBlockDocuments;
  if (!Inside(h.blocks_offset, blocks * kColumnBlockBytes, section_bytes) ||
      !Inside(h.payload_offset, h.payload_length, section_bytes) ||
      !Inside(h.strings.blocks_offset, h.strings.blocks_length, section_bytes) ||
      !Inside(h.strings.offsets_offset, h.strings.offsets_length, section_bytes))
    return std::nullopt;
  return h;
}

std::optional<ColumnBlock> DecodeColumnBlock(ByteSpan bytes) {
  if (bytes.size() != kColumnBlockBytes) return std::nullopt;
  ByteReader in(bytes);
  ColumnBlock b;
  b.min = in.U64();
  b.max = in.U64();
  b.offset = in.U64();
  b.values = in.U32();
  const uint8_t form = in.U8();
  b.width = in.U8();
  b.start_width = in.U8();
  if (form > static_cast<uint8_t>(ColumnForm::kMany) || b.width > 64 || b.start_width > 33 || in.U8() != 0 ||
      b.min > b.max)
    return std::nullopt;
  b.form = static_cast<ColumnForm>(form);
  return b;
}

}  // namespace ashlar::format
