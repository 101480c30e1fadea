#include "format/stored_block.h"

#include <zdict.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

namespace ashlar::format {
namespace {

// Level 1: with a dictionary it is the fastest and, on short texts, the smallest too (measured against 2 and 3).
constexpr int kLevel = 1;
constexpr unsigned kDictionaryId = 32768;  // any; frames do not carry it
constexpr size_t kDictionaryBytesMax = size_t{1} << 20;
constexpr size_t kSamplesMin = 16;
constexpr size_t kDictionaryHeaderBytes = 1024;  // about what the entropy tables need
// zstd's blocks hold at most 128 KiB and take at least 3 bytes, so a claim above this is false.
constexpr uint64_t kZstdBlockBytes = 128 << 10;
constexpr uint64_t kZstdBlockHeaderBytes = 3;

struct FreeZstd {
  void operator()(ZSTD_CCtx* p) const { ZSTD_freeCCtx(p); }
  void operator()(ZSTD_DCtx* p) const { ZSTD_freeDCtx(p); }
  void operator()(ZSTD_CDict* p) const { ZSTD_freeCDict(p); }
  void operator()(ZSTD_DDict* p) const { ZSTD_freeDDict(p); }
};

// One context a thread: making one costs more than a block.
ZSTD_CCtx* ThreadCompressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeZstd> context(ZSTD_createCCtx());
  return context.get();
}
ZSTD_DCtx* ThreadDecompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  return context.get();
}

bool Inside(uint64_t offset, uint64_t length, uint64_t section_bytes) {
  return length <= section_bytes && offset <= section_bytes - length;
}

}  // namespace

struct Compressor::Impl {
  std::unique_ptr<ZSTD_CDict, FreeZstd> dictionary;
};
struct Decompressor::Impl {
  std::unique_ptr<ZSTD_DDict, FreeZstd> dictionary;
};
Compressor::~Compressor() = default;
Decompressor::~Decompressor() = default;

std::unique_ptr<Compressor> Compressor::Create(ByteSpan dictionary) {
  std::unique_ptr<Compressor> c(new Compressor);
  c->impl_ = std::make_unique<Impl>();
  c->impl_->dictionary.reset(ZSTD_createCDict(dictionary.data(), dictionary.size(), kLevel));
  return c->impl_->dictionary != nullptr ? std::move(c) : nullptr;
}

std::unique_ptr<Decompressor> Decompressor::Create(ByteSpan dictionary) {
  if (dictionary.size() > kDictionaryBytesMax) return nullptr;
  std::unique_ptr<Decompressor> d(new Decompressor);
  d->impl_ = std::make_unique<Impl>();
  d->impl_->dictionary.reset(ZSTD_createDDict(dictionary.data(), dictionary.size()));
  return d->impl_->dictionary != nullptr ? std::move(d) : nullptr;
}

std::optional<ByteBuffer> MakeDictionary(ByteSpan samples, std::span<const size_t> sizes) {
  if (sizes.size() < kSamplesMin || samples.empty()) return std::nullopt;
  constexpr size_t kContentBytes = kStoredDictionaryBytes - kDictionaryHeaderBytes;
  // Every n-th sample, so many that they fill the dictionary; a long one gives its beginning.
  const size_t average = samples.size() / sizes.size() + 1;
  const size_t step = std::max<size_t>(1, sizes.size() / (kContentBytes / average + 1));
  ByteBuffer content;
  size_t at = 0;
  for (size_t i = 0; i < sizes.size() && content.size() < kContentBytes; ++i) {
    if (i % step == 0) {
      const ByteSpan s = samples.subspan(at, std::min(sizes[i], kContentBytes - content.size()));
      content.insert(content.end(), s.begin(), s.end());
    }
    at += sizes[i];
  }
  ByteBuffer out(kStoredDictionaryBytes);
  ZDICT_params_t parameters{};
  parameters.compressionLevel = kLevel;
  parameters.dictID = kDictionaryId;
  const size_t n = ZDICT_finalizeDictionary(out.data(), out.size(), content.data(), content.size(), samples.data(),
                                            sizes.data(), static_cast<unsigned>(sizes.size()), parameters);
  if (ZDICT_isError(n) != 0) return std::nullopt;
  out.resize(n);
  return out;
}

bool AppendStoredBlock(ByteSpan raw, uint8_t first_byte, const Compressor* compressor, ByteBuffer* out) {
  ZSTD_CCtx* context = ThreadCompressor();
  if (context == nullptr) return false;
  ByteWriter w(out);
  const size_t start = out->size();
  w.U8(compressor != nullptr ? first_byte : kStoredNoDictionary);
  w.Varint(raw.size());
  const size_t header = out->size();
  out->resize(header + ZSTD_compressBound(raw.size()));
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0);
  if (compressor != nullptr) ZSTD_CCtx_refCDict(context, compressor->impl_->dictionary.get());
  const size_t n = ZSTD_compress2(context, out->data() + header, out->size() - header, raw.data(), raw.size());
  if (ZSTD_isError(n) != 0) {
    out->resize(start);
    return false;
  }
  if (n < raw.size()) {
    out->resize(header + n);
  } else {  // random bytes: kept as they are
    (*out)[start] = std::byte{kStoredPlain};
    out->resize(header);
    w.Span(raw);
  }
  return true;
}

bool DecodeStoredBlock(ByteSpan block, const Decompressor* decompressor, ByteBuffer* raw) {
  ByteReader in(block);
  const uint8_t first_byte = in.U8();
  const uint64_t raw_bytes = in.Varint();
  if (!in.ok() || raw_bytes > kStoredRawBytesMax) return false;
  const ByteSpan payload = block.subspan(in.position());
  if (first_byte == kStoredPlain) {
    if (payload.size() != raw_bytes) return false;
    raw->assign(payload.begin(), payload.end());
    return true;
  }
  if ((first_byte == kStoredNoDictionary) != (decompressor == nullptr)) return false;
  if (raw_bytes > (payload.size() / kZstdBlockHeaderBytes + 1) * kZstdBlockBytes) return false;
  if (ZSTD_getFrameContentSize(payload.data(), payload.size()) != raw_bytes) return false;
  ZSTD_DCtx* context = ThreadDecompressor();
  if (context == nullptr) return false;
  raw->resize(raw_bytes);
  const size_t n = decompressor != nullptr
                       ? ZSTD_decompress_usingDDict(context, raw->data(), raw->size(), payload.data(), payload.size(),
                                                    decompressor->impl_->dictionary.get())
                       : ZSTD_decompressDCtx(context, raw->data(), raw->size(), payload.data(), payload.size());
  return ZSTD_isError(n) == 0 && n == raw_bytes;
}

std::optional<ByteSpan> StoredDocument(ByteSpan raw, uint32_t count, uint32_t index) {
  if (index >= count) return std::nullopt;
  ByteReader in(raw);
  uint64_t offset = 0, length = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t n = in.Varint();
    if (n > raw.size()) return std::nullopt;
    if (i < index) offset += n;  // at most 2^32 numbers below 2^31
    if (i == index) length = n;
  }
  const uint64_t from = in.position() + offset;
  if (!in.ok() || from > raw.size() || length > raw.size() - from) return std::nullopt;
  return raw.subspan(from, length);
}

void EncodeStoredTrailer(const StoredTrailer& t, ByteBuffer* out) {
  ByteWriter w(out);
  w.U32(t.documents);
  w.U32(t.blocks);
  w.U64(t.blocks_length);
  w.U64(t.first_offset);
  w.U64(t.first_length);
  w.U64(t.places_offset);
  w.U64(t.places_length);
  w.U64(t.table_offset);
  w.U32(t.dictionaries);
  w.U32(0);
}

std::optional<StoredTrailer> DecodeStoredTrailer(ByteSpan bytes, uint64_t section_bytes) {
  if (bytes.size() != kStoredTrailerBytes) return std::nullopt;
  ByteReader in(bytes);
  StoredTrailer t;
  t.documents = in.U32();
  t.blocks = in.U32();
  t.blocks_length = in.U64();
  t.first_offset = in.U64();
  t.first_length = in.U64();
  t.places_offset = in.U64();
  t.places_length = in.U64();
  t.table_offset = in.U64();
  t.dictionaries = in.U32();
  if (in.U32() != 0 || t.dictionaries > kStoredDictionariesMax || t.blocks > t.documents) return std::nullopt;
  if (t.blocks_length > section_bytes || !Inside(t.first_offset, t.first_length, section_bytes) ||
      !Inside(t.places_offset, t.places_length, section_bytes) ||
      !Inside(t.table_offset, uint64_t{t.dictionaries} * kStoredDictionaryEntryBytes, section_bytes))
    return std::nullopt;
  return t;
}

}  // namespace ashlar::format
