// Bytes: little-endian loads and stores, LEB128 varints, and a bounds-checked reader and a growing writer.
#ifndef ASHLAR_SRC_BASE_BYTES_H_
#define ASHLAR_SRC_BASE_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

static_assert(std::endian::native == std::endian::little, "format/ stores little-endian and loads by memcpy");

using ByteBuffer = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

inline ByteSpan AsBytes(std::string_view s) { return {reinterpret_cast<const std::byte*>(s.data()), s.size()}; }
inline std::string_view AsString(ByteSpan b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

template <class T>
inline T LoadAs(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline uint16_t LoadU16(const std::byte* p) { return LoadAs<uint16_t>(p); }
inline uint32_t LoadU32(const std::byte* p) { return LoadAs<uint32_t>(p); }
inline uint64_t LoadU64(const std::byte* p) { return LoadAs<uint64_t>(p); }
inline void StoreU16(std::byte* p, uint16_t v) { std::memcpy(p, &v, sizeof v); }
inline void StoreU32(std::byte* p, uint32_t v) { std::memcpy(p, &v, sizeof v); }
inline void StoreU64(std::byte* p, uint64_t v) { std::memcpy(p, &v, sizeof v); }

inline constexpr size_t kVarintBytesMax = 10;

// Appends to a byte vector it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(ByteBuffer* out) : out_(out) {}
  size_t size() const { return out_->size(); }
  void U8(uint8_t v) { out_->push_back(std::byte{v}); }
  void U16(uint16_t v) { Raw(&v, sizeof v); }
  void U32(uint32_t v) { Raw(&v, sizeof v); }
  void U64(uint64_t v) { Raw(&v, sizeof v); }
  void F64(double v) { Raw(&v, sizeof v); }
  void Varint(uint64_t v) {
    while (v >= 0x80) {
      U8(static_cast<uint8_t>(v | 0x80));
      v >>= 7;
    }
    U8(static_cast<uint8_t>(v));
  }
  void Span(ByteSpan b) { out_->insert(out_->end(), b.begin(), b.end()); }
  void String(std::string_view s) { Span(AsBytes(s)); }
  // Varint length, then the bytes.
  void Sized(std::string_view s) {
    Varint(s.size());
    String(s);
  }
  void Zeros(size_t n) { out_->resize(out_->size() + n); }

 private:
  void Raw(const void* p, size_t n) {
    const auto* b = static_cast<const std::byte*>(p);
    out_->insert(out_->end(), b, b + n);
  }
  ByteBuffer* out_;
};

// Reads a span front to back. The first read that does not fit (or a varint that is too long) makes the reader fail
// for good: it then returns zeros and ok() is false. Callers check ok() once at the end.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan in) : in_(in) {}
  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == in_.size(); }
  size_t position() const { return at_; }
  size_t left() const { return in_.size() - at_; }
  uint8_t U8() { return Fixed<uint8_t>(); }
  uint16_t U16() { return Fixed<uint16_t>(); }
  uint32_t U32() { return Fixed<uint32_t>(); }
  uint64_t U64() { return Fixed<uint64_t>(); }
  double F64() { return Fixed<double>(); }
  uint64_t Varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= in_.size()) break;
      const auto b = static_cast<uint8_t>(in_[at_++]);
      if (shift == 63 && b > 1) break;
      v |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    return Fail<uint64_t>();
  }
  ByteSpan Span(uint64_t n) {
    if (n > left()) return Fail<ByteSpan>();
    const ByteSpan s = in_.subspan(at_, n);
    at_ += n;
    return s;
  }
  std::string_view Sized() { return AsString(Span(Varint())); }

 private:
  template <class T>
  T Fixed() {
    if (sizeof(T) > left()) return Fail<T>();
    const T v = LoadAs<T>(in_.data() + at_);
    at_ += sizeof(T);
    return v;
  }
  template <class T>
  T Fail() {
    ok_ = false;
    at_ = in_.size();
    return T{};
  }
  ByteSpan in_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace ashlar

#endif  // ASHLAR_SRC_BASE_BYTES_H_
