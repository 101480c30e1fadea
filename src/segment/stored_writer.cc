#include "src/segment/stored_writer.h"

#include <algorithm>
#include <utility>

#include "src/base/status.h"

namespace ashlar::segment {
namespace {

// With fewer bytes of documents a dictionary costs more than it saves.
constexpr size_t kSampleBytesMin = format::kStoredSampleBytes / 4;

}  // namespace

std::optional<uint8_t> StoredWriter::Adopt(ByteSpan dictionary) {
  for (size_t i = 0; i < dictionaries_.size(); ++i)
    if (std::equal(dictionaries_[i].bytes.begin(), dictionaries_[i].bytes.end(), dictionary.begin(),
                   dictionary.end()))
      return static_cast<uint8_t>(i);
  if (dictionaries_.size() == format::kStoredDictionariesMax) return std::nullopt;
  std::unique_ptr<format::Compressor> compressor = format::Compressor::Create(dictionary);
  if (compressor == nullptr) return std::nullopt;
  dictionaries_.push_back({ByteBuffer(dictionary.begin(), dictionary.end()), std::move(compressor)});
  sampling_ = false;
  return static_cast<uint8_t>(dictionaries_.size() - 1);
}

absl::Status StoredWriter::Add(ByteSpan document) {
  ++documents_;
  if (!sampling_) return AddToBlock(document);
  sample_.insert(sample_.end(), document.begin(), document.end());
  sample_sizes_.push_back(document.size());
  // Empty documents fill no sample, so their number ends it too.
  const bool full =
      sample_.size() >= format::kStoredSampleBytes || sample_sizes_.size() >= format::kStoredSampleBytes;
  return full ? EndSample() : absl::OkStatus();
}

absl::Status StoredWriter::EndSample() {
  sampling_ = false;
  if (sample_.size() >= kSampleBytesMin) {
    std::optional<ByteBuffer> dictionary = format::MakeDictionary(sample_, sample_sizes_);
    if (dictionary.has_value()) {
      std::unique_ptr<format::Compressor> compressor = format::Compressor::Create(*dictionary);
      if (compressor != nullptr) dictionaries_.push_back({*std::move(dictionary), std::move(compressor)});
    }
  }
  const ByteBuffer sample = std::move(sample_);
  const std::vector<size_t> sizes = std::move(sample_sizes_);
  sample_ = {};
  sample_sizes_ = {};
  size_t at = 0;
  for (const size_t n : sizes) {
    ASHLAR_RETURN_IF_ERROR(AddToBlock(ByteSpan(sample).subspan(at, n)));
    at += n;
  }
  return absl::OkStatus();
}

absl::Status StoredWriter::AddToBlock(ByteSpan document) {
  // A long document gets a block of its own, so that its short neighbours stay cheap to fetch.
  if (document.size() >= format::kStoredBlockBytes) ASHLAR_RETURN_IF_ERROR(EndBlock());
  ByteWriter(&heads_).Varint(document.size());
  bodies_.insert(bodies_.end(), document.begin(), document.end());
  ++block_documents_;
  if (bodies_.size() >= format::kStoredBlockBytes || block_documents_ == format::kStoredBlockDocumentsMax)
    return EndBlock();
  return absl::OkStatus();
}

absl::Status StoredWriter::EndBlock() {
  if (block_documents_ == 0) return absl::OkStatus();
  raw_.assign(heads_.begin(), heads_.end());
  raw_.insert(raw_.end(), bodies_.begin(), bodies_.end());
  if (raw_.size() > format::kStoredRawBytesMax)
    return InvalidArgument("the stored values of a document are larger than 1 GiB");
  block_.clear();
  const format::Compressor* compressor = dictionaries_.empty() ? nullptr : dictionaries_.front().compressor.get();
  if (!format::AppendStoredBlock(raw_, 1, compressor, &block_))
    return ResourceExhausted("no memory to compress stored documents");
  ASHLAR_RETURN_IF_ERROR(WriteBlock(block_, block_documents_));
  heads_.clear();
  bodies_.clear();
  block_documents_ = 0;
  return absl::OkStatus();
}

absl::Status StoredWriter::WriteBlock(ByteSpan block, uint32_t documents) {
  firsts_.Add(block_first_);
  places_.Add(sink_->offset());
  block_first_ += documents;
  ++blocks_;
  return sink_->Append(block);
}

absl::Status StoredWriter::CopyBlock(ByteSpan block, uint32_t documents, uint8_t first_byte) {
  if (sampling_) ASHLAR_RETURN_IF_ERROR(EndSample());
  ASHLAR_RETURN_IF_ERROR(EndBlock());
  documents_ += documents;
  block_.assign(block.begin(), block.end());
  block_[0] = std::byte{first_byte};
  return WriteBlock(block_, documents);
}

absl::Status StoredWriter::Finish() {
  if (sampling_) ASHLAR_RETURN_IF_ERROR(EndSample());
  ASHLAR_RETURN_IF_ERROR(EndBlock());
  return WriteTail();
}

absl::Status StoredWriter::WriteTail() {
  format::StoredTrailer trailer;
  trailer.documents = documents_;
  trailer.blocks = blocks_;
  trailer.blocks_length = sink_->offset();
  ByteBuffer table;
  ByteWriter w(&table);
  for (const Dictionary& d : dictionaries_) {
    w.U64(sink_->offset());
    w.U64(d.bytes.size());
    ASHLAR_RETURN_IF_ERROR(sink_->Append(d.bytes));
  }
  ByteBuffer tail;
  const uint64_t start = sink_->offset();
  tail.resize((8 - start % 8) % 8);
  trailer.first_offset = start + tail.size();
  firsts_.Finish(&tail);
  trailer.places_offset = start + tail.size();
  trailer.first_length = trailer.places_offset - trailer.first_offset;
  places_.Finish(&tail);
  trailer.table_offset = start + tail.size();
  trailer.places_length = trailer.table_offset - trailer.places_offset;
  tail.insert(tail.end(), table.begin(), table.end());
  trailer.dictionaries = static_cast<uint32_t>(dictionaries_.size());
  format::EncodeStoredTrailer(trailer, &tail);
  return sink_->Append(tail);
}

}  // namespace ashlar::segment
