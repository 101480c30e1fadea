#include "src/segment/stored_reader.h"

#include <utility>

#include "format/packed_numbers.h"
#include "src/base/status.h"
#include "src/segment/section_reader.h"

namespace ashlar::segment {
namespace {

using format::NumberArray;
using format::PartOf;

// What a thread keeps of the block it decoded last; larger ones are let go.
constexpr size_t kKeptBytesMax = size_t{1} << 20;
struct KeptBlock {
  uint64_t serial = 0;  // of the reader; 0: nothing is kept
  StoredReader::Block block;
  ByteBuffer raw;
};
KeptBlock& ThisThread() {
  thread_local KeptBlock kept;
  return kept;
}

uint64_t NextSerial() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

StoredReader::StoredReader(const VerifiedBytes* bytes, uint32_t documents)
    : bytes_(bytes), documents_(documents), serial_(NextSerial()) {}

absl::StatusOr<format::StoredTrailer> StoredReader::Trailer() const {
  if (bytes_->size() < format::kStoredTrailerBytes) return bytes_->Damage(0, "too short for a trailer");
  const uint64_t offset = bytes_->size() - format::kStoredTrailerBytes;
  ASHLAR_RETURN_IF_ERROR(bytes_->Ensure(offset, format::kStoredTrailerBytes));
  const std::optional<format::StoredTrailer> trailer =
      format::DecodeStoredTrailer(ByteSpan(bytes_->data() + offset, format::kStoredTrailerBytes), bytes_->size());
  if (!trailer.has_value() || trailer->documents != documents_) return bytes_->Damage(offset, "bad trailer");
  return *trailer;
}

absl::StatusOr<uint32_t> StoredReader::BlockCount() const {
  ASHLAR_ASSIGN_OR_RETURN(const format::StoredTrailer trailer, Trailer());
  return trailer.blocks;
}

absl::StatusOr<uint32_t> StoredReader::DictionaryCount() const {
  ASHLAR_ASSIGN_OR_RETURN(const format::StoredTrailer trailer, Trailer());
  return trailer.dictionaries;
}

absl::StatusOr<uint32_t> StoredReader::BlockOf(const format::StoredTrailer& trailer, uint32_t ordinal) const {
  const SectionReader reader(bytes_);
  const NumberArray<SectionReader> firsts(PartOf(reader, trailer.first_offset, trailer.first_length), trailer.blocks);
  uint64_t above = 0;  // the first block that begins above the ordinal
  if (!firsts.LowerBound(uint64_t{ordinal} + 1, &above))
    return reader.Failure("bad block index", trailer.first_offset);
  if (above == 0) return bytes_->Damage(trailer.first_offset, "no block holds the document");
  return static_cast<uint32_t>(above - 1);
}

absl::StatusOr<StoredReader::Block> StoredReader::BlockAt(uint32_t block) const {
  ASHLAR_ASSIGN_OR_RETURN(const format::StoredTrailer trailer, Trailer());
  return BlockAt(trailer, block);
}

absl::StatusOr<StoredReader::Block> StoredReader::BlockAt(const format::StoredTrailer& trailer,
                                                          uint32_t block) const {
  const SectionReader reader(bytes_);
  const NumberArray<SectionReader> firsts(PartOf(reader, trailer.first_offset, trailer.first_length), trailer.blocks);
  const NumberArray<SectionReader> places(PartOf(reader, trailer.places_offset, trailer.places_length),
                                          trailer.blocks);
  uint64_t first = 0, next = trailer.documents, begin = 0, end = trailer.blocks_length;
  const bool last = uint64_t{block} + 1 >= trailer.blocks;
  if (!firsts.At(block, &first) || !places.At(block, &begin) ||
      (!last && (!firsts.At(block + 1, &next) || !places.At(block + 1, &end))))
    return reader.Failure("bad block index", trailer.first_offset);
  if (first >= next || next > trailer.documents || begin >= end || end > trailer.blocks_length)
    return bytes_->Damage(trailer.first_offset, "bad block index");
  const std::byte* p = reader.Read(begin, end - begin);
  if (p == nullptr) return reader.Failure("bad block index", begin);
  return Block{static_cast<uint32_t>(first), static_cast<uint32_t>(next - first), ByteSpan(p, end - begin)};
}

absl::StatusOr<ByteSpan> StoredReader::Dictionary(uint32_t index) const {
  ASHLAR_ASSIGN_OR_RETURN(const format::StoredTrailer trailer, Trailer());
  return Dictionary(trailer, index);
}

absl::StatusOr<ByteSpan> StoredReader::Dictionary(const format::StoredTrailer& trailer, uint32_t index) const {
  if (index >= trailer.dictionaries) return bytes_->Damage(trailer.table_offset, "no such dictionary");
  const SectionReader reader(bytes_);
  const uint64_t at = trailer.table_offset + index * format::kStoredDictionaryEntryBytes;
  const std::byte* entry = reader.Read(at, format::kStoredDictionaryEntryBytes);
  if (entry == nullptr) return reader.Failure("bad dictionary table", at);
  const uint64_t offset = LoadU64(entry), length = LoadU64(entry + 8);
  const std::byte* p = reader.Read(offset, length);
  if (p == nullptr) return reader.Failure("bad dictionary table", at);
  return ByteSpan(p, length);
}

absl::StatusOr<const format::Decompressor*> StoredReader::DecompressorOf(uint8_t first_byte) const {
  if (first_byte == format::kStoredNoDictionary || first_byte == format::kStoredPlain) return nullptr;
  const uint32_t index = first_byte - uint32_t{1};
  if (index >= ready_.size()) return bytes_->Damage(0, "a block names a dictionary beyond the table");
  if (const format::Decompressor* d = ready_[index].load(std::memory_order_acquire); d != nullptr) return d;
  ASHLAR_ASSIGN_OR_RETURN(const ByteSpan dictionary, Dictionary(index));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const format::Decompressor* d = ready_[index].load(std::memory_order_acquire); d != nullptr) return d;
  std::unique_ptr<format::Decompressor> made = format::Decompressor::Create(dictionary);
  if (made == nullptr) return bytes_->Damage(0, "a dictionary can't be used");
  owned_.push_back(std::move(made));
  ready_[index].store(owned_.back().get(), std::memory_order_release);
  return owned_.back().get();
}

// From a copy: bytes of a mapping may turn to zeros at any moment, and a decompressor need not be ready for that.
absl::Status StoredReader::Decode(const Block& block, ByteBuffer* raw) const {
  thread_local ByteBuffer copy;
  copy.assign(block.bytes.begin(), block.bytes.end());
  ASHLAR_ASSIGN_OR_RETURN(const format::Decompressor* decompressor,
                          DecompressorOf(static_cast<uint8_t>(copy.front())));
  const bool decoded = format::DecodeStoredBlock(copy, decompressor, raw);
  if (copy.capacity() > kKeptBytesMax) ByteBuffer().swap(copy);
  if (!decoded)
    return bytes_->Damage(static_cast<uint64_t>(block.bytes.data() - bytes_->data()),
                          "a block can't be decompressed");
  return absl::OkStatus();
}

absl::StatusOr<ByteSpan> StoredReader::DocumentIn(const Block& block, ByteSpan raw, uint32_t ordinal) const {
  const std::optional<ByteSpan> document = format::StoredDocument(raw, block.count, ordinal - block.first);
  if (!document.has_value())
    return bytes_->Damage(static_cast<uint64_t>(block.bytes.data() - bytes_->data()), "bad lengths in a block");
  return *document;
}

absl::StatusOr<ByteBuffer> StoredReader::Document(uint32_t ordinal) const {
  KeptBlock& kept = ThisThread();
  const bool hit =
      kept.serial == serial_ && ordinal >= kept.block.first && ordinal - kept.block.first < kept.block.count;
  if (!hit) {
    kept.serial = 0;
    ASHLAR_ASSIGN_OR_RETURN(const format::StoredTrailer trailer, Trailer());
    ASHLAR_ASSIGN_OR_RETURN(const uint32_t index, BlockOf(trailer, ordinal));
    ASHLAR_ASSIGN_OR_RETURN(kept.block, BlockAt(trailer, index));
    ASHLAR_RETURN_IF_ERROR(Decode(kept.block, &kept.raw));
    kept.serial = serial_;
  }
  absl::StatusOr<ByteSpan> document = DocumentIn(kept.block, kept.raw, ordinal);
  if (!document.ok()) return document.status();
  ByteBuffer out(document->begin(), document->end());
  if (kept.raw.capacity() > kKeptBytesMax) kept = KeptBlock();
  return out;
}

}  // namespace ashlar::segment
