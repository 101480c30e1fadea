// Plain functions in place of the AVX-512 instructions that src/simd/avx512.cc uses, so that its logic is tested on
// machines without them. Written from Intel's description of each instruction, one element at a time; where the name is
// the same, so is the meaning. To be included before that file, in a translation unit without <immintrin.h>.
#ifndef ASHLAR_TESTS_SIMD_AVX512_STAND_INS_H_
#define ASHLAR_TESTS_SIMD_AVX512_STAND_INS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ashlar::simd::stand_ins {

template <size_t size>
struct Register {
  std::array<uint8_t, size> bytes{};

  template <class T>
  T Get(size_t i) const {
    T v;
    std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
    return v;
  }
  template <class T>
  void Set(size_t i, T v) {
    std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
  }
};

using __m512i = Register<64>;
using __m256i = Register<32>;
using __m128i = Register<16>;
struct __m512 : Register<64> {};
using __mmask16 = uint16_t;
using __mmask8 = uint8_t;
using __mmask32 = uint32_t;

// Element i of the result is f(i).
template <class T, class R = __m512i, class F>
R Make(F f) {
  R r;
  for (size_t i = 0; i < r.bytes.size() / sizeof(T); ++i) r.template Set<T>(i, static_cast<T>(f(i)));
  return r;
}

// Bit i of the result is f(i), of as many as a register has elements.
template <class T, class F>
uint64_t MaskOf(F f) {
  uint64_t mask = 0;
  for (size_t i = 0; i < 64 / sizeof(T); ++i) mask |= uint64_t{f(i)} << i;
  return mask;
}

template <class R>
R LoadRegister(const void* p) {
  R r;
  std::memcpy(r.bytes.data(), p, r.bytes.size());
  return r;
}
template <class R>
void StoreRegister(void* p, const R& r) {
  std::memcpy(p, r.bytes.data(), r.bytes.size());
}

inline bool Bit(uint64_t mask, size_t i) { return (mask >> i & 1) != 0; }

// --- memory ---

inline __m512i _mm512_loadu_si512(const void* p) { return LoadRegister<__m512i>(p); }
inline __m256i _mm256_loadu_si256(const __m256i* p) { return LoadRegister<__m256i>(p); }
inline __m128i _mm_loadu_si128(const __m128i* p) { return LoadRegister<__m128i>(p); }
inline void _mm512_storeu_si512(void* p, __m512i x) { StoreRegister(p, x); }
inline void _mm256_storeu_si256(__m256i* p, __m256i x) { StoreRegister(p, x); }

// What is masked out is not read.
inline __m512i _mm512_maskz_loadu_epi32(__mmask16 k, const void* p) {
  return Make<uint32_t>([&](size_t i) {
    uint32_t v = 0;
    if (Bit(k, i)) std::memcpy(&v, static_cast<const char*>(p) + 4 * i, 4);
    return v;
  });
}

// --- constants and casts ---

inline __m512i _mm512_setzero_si512() { return {}; }
inline __m512i _mm512_set1_epi8(char v) {
  return Make<char>([&](size_t) { return v; });
}
inline __m512i _mm512_set1_epi16(int16_t v) {
  return Make<int16_t>([&](size_t) { return v; });
}
inline __m512i _mm512_set1_epi32(int v) {
  return Make<int>([&](size_t) { return v; });
}
inline __m256i _mm256_set1_epi32(int v) {
  __m256i r;
  for (size_t i = 0; i < 8; ++i) std::memcpy(&r.bytes[4 * i], &v, 4);
  return r;
}
inline __m512 _mm512_set1_ps(float v) {
  return Make<float, __m512>([&](size_t) { return v; });
}
template <class... Int>
__m512i _mm512_setr_epi32(Int... v) {
  const int values[] = {v...};
  return LoadRegister<__m512i>(values);
}
template <class... Int>
__m512i _mm512_setr_epi64(Int... v) {
  const int64_t values[] = {v...};
  return LoadRegister<__m512i>(values);
}
inline __m512 _mm512_castsi512_ps(__m512i x) { return {x}; }
inline __m256i _mm512_extracti64x4_epi64(__m512i x, int half) {
  return LoadRegister<__m256i>(x.bytes.data() + 32 * half);
}
inline __m256i _mm512_castsi512_si256(__m512i x) { return _mm512_extracti64x4_epi64(x, 0); }

// --- integers ---

inline __m512i _mm512_add_epi32(__m512i a, __m512i b) {
  return Make<uint32_t>([&](size_t i) { return a.Get<uint32_t>(i) + b.Get<uint32_t>(i); });
}
inline __m512i _mm512_mask_add_epi32(__m512i other, __mmask16 k, __m512i a, __m512i b) {
  const __m512i sum = _mm512_add_epi32(a, b);
  return Make<uint32_t>([&](size_t i) { return (Bit(k, i) ? sum : other).Get<uint32_t>(i); });
}
inline __m512i _mm512_mask_mov_epi32(__m512i other, __mmask16 k, __m512i a) {
  return Make<uint32_t>([&](size_t i) { return (Bit(k, i) ? a : other).Get<uint32_t>(i); });
}
inline __m512i _mm512_sub_epi32(__m512i a, __m512i b) {
  return Make<uint32_t>([&](size_t i) { return a.Get<uint32_t>(i) - b.Get<uint32_t>(i); });
}
inline __m512i _mm512_adds_epu8(__m512i a, __m512i b) {
  return Make<uint8_t>([&](size_t i) { return std::min(255, a.Get<uint8_t>(i) + b.Get<uint8_t>(i)); });
}
inline __m512i _mm512_adds_epu16(__m512i a, __m512i b) {
  return Make<uint16_t>([&](size_t i) { return std::min(65535, a.Get<uint16_t>(i) + b.Get<uint16_t>(i)); });
}
inline __m512i _mm512_add_epi16(__m512i a, __m512i b) {
  return Make<uint16_t>([&](size_t i) { return a.Get<uint16_t>(i) + b.Get<uint16_t>(i); });
}
inline __m512i _mm512_subs_epu16(__m512i a, __m512i b) {
  return Make<uint16_t>([&](size_t i) { return std::max(0, a.Get<uint16_t>(i) - b.Get<uint16_t>(i)); });
}
inline __m512i _mm512_mulhi_epu16(__m512i a, __m512i b) {
  return Make<uint16_t>([&](size_t i) { return uint32_t{a.Get<uint16_t>(i)} * b.Get<uint16_t>(i) >> 16; });
}
inline __m512i _mm512_min_epu16(__m512i a, __m512i b) {
  return Make<uint16_t>([&](size_t i) { return std::min(a.Get<uint16_t>(i), b.Get<uint16_t>(i)); });
}
inline __m512i _mm512_max_epi32(__m512i a, __m512i b) {
  return Make<int>([&](size_t i) { return std::max(a.Get<int>(i), b.Get<int>(i)); });
}
inline __m512i _mm512_mask_max_epi32(__m512i other, __mmask16 k, __m512i a, __m512i b) {
  const __m512i highest = _mm512_max_epi32(a, b);
  return Make<int>([&](size_t i) { return (Bit(k, i) ? highest : other).Get<int>(i); });
}
inline int _mm512_reduce_max_epi32(__m512i x) {
  int highest = x.Get<int>(0);
  for (size_t i = 1; i < 16; ++i) highest = std::max(highest, x.Get<int>(i));
  return highest;
}
inline __m512i _mm512_and_si512(__m512i a, __m512i b) {
  return Make<uint8_t>([&](size_t i) { return a.bytes[i] & b.bytes[i]; });
}
inline __m512i _mm512_or_si512(__m512i a, __m512i b) {
  return Make<uint8_t>([&](size_t i) { return a.bytes[i] | b.bytes[i]; });
}
inline __m512i _mm512_xor_si512(__m512i a, __m512i b) {
  return Make<uint8_t>([&](size_t i) { return a.bytes[i] ^ b.bytes[i]; });
}
inline __m512i _mm512_slli_epi32(__m512i x, unsigned by) {
  return Make<uint32_t>([&](size_t i) { return x.Get<uint32_t>(i) << by; });
}
inline __m512i _mm512_slli_epi64(__m512i x, unsigned by) {
  return Make<uint64_t>([&](size_t i) { return x.Get<uint64_t>(i) << by; });
}
inline __m512i _mm512_srai_epi32(__m512i x, unsigned by) {
  return Make<int>([&](size_t i) { return x.Get<int>(i) >> by; });
}
inline __m512i _mm512_srlv_epi32(__m512i x, __m512i by) {
  return Make<uint32_t>([&](size_t i) { return x.Get<uint32_t>(i) >> by.Get<uint32_t>(i); });
}
inline int _mm_popcnt_u32(unsigned x) { return std::popcount(x); }
inline int64_t _mm_popcnt_u64(uint64_t x) { return std::popcount(x); }

// --- floats; conversions round to nearest even ---

inline __m512 _mm512_add_ps(__m512 a, __m512 b) {
  return Make<float, __m512>([&](size_t i) { return a.Get<float>(i) + b.Get<float>(i); });
}
inline __m512 _mm512_mul_ps(__m512 a, __m512 b) {
  return Make<float, __m512>([&](size_t i) { return a.Get<float>(i) * b.Get<float>(i); });
}
inline __m512 _mm512_div_ps(__m512 a, __m512 b) {
  return Make<float, __m512>([&](size_t i) { return a.Get<float>(i) / b.Get<float>(i); });
}
inline __m512 _mm512_cvtepi32_ps(__m512i x) {
  return Make<float, __m512>([&](size_t i) { return static_cast<float>(x.Get<int>(i)); });
}
inline __m512 _mm512_cvtepu32_ps(__m512i x) {
  return Make<float, __m512>([&](size_t i) { return static_cast<float>(x.Get<uint32_t>(i)); });
}
inline __m512 _mm512_mask_mov_ps(__m512 other, __mmask16 k, __m512 x) {
  return Make<float, __m512>([&](size_t i) { return (Bit(k, i) ? x : other).Get<float>(i); });
}
inline __m512 _mm512_mask_cvtepi32_ps(__m512 other, __mmask16 k, __m512i x) {
  return _mm512_mask_mov_ps(other, k, _mm512_cvtepi32_ps(x));
}
// What is no int32 becomes the least one.
inline __m512i _mm512_cvtps_epi32(__m512 x) {
  return Make<int>([&](size_t i) {
    const float v = x.Get<float>(i);
    return v >= -0x1p31f && v < 0x1p31f ? static_cast<int>(std::nearbyintf(v)) : INT32_MIN;
  });
}

// --- comparisons ---

inline __mmask16 _mm512_cmpeq_epi32_mask(__m512i a, __m512i b) {
  return static_cast<__mmask16>(MaskOf<int>([&](size_t i) { return a.Get<int>(i) == b.Get<int>(i); }));
}
inline __mmask16 _mm512_cmpge_epi32_mask(__m512i a, __m512i b) {
  return static_cast<__mmask16>(MaskOf<int>([&](size_t i) { return a.Get<int>(i) >= b.Get<int>(i); }));
}
inline __mmask16 _mm512_mask_cmpge_epi32_mask(__mmask16 k, __m512i a, __m512i b) {
  return k & _mm512_cmpge_epi32_mask(a, b);
}
inline __mmask16 _mm512_cmplt_epi32_mask(__m512i a, __m512i b) {
  return static_cast<__mmask16>(~_mm512_cmpge_epi32_mask(a, b));
}
inline __mmask16 _mm512_mask_cmplt_epu32_mask(__mmask16 k, __m512i a, __m512i b) {
  return k & static_cast<__mmask16>(MaskOf<int>([&](size_t i) { return a.Get<uint32_t>(i) < b.Get<uint32_t>(i); }));
}
inline __mmask16 _mm512_cmplt_epu32_mask(__m512i a, __m512i b) {
  return _mm512_mask_cmplt_epu32_mask(0xFFFF, a, b);
}
inline __mmask8 _mm256_cmpeq_epi32_mask(__m256i a, __m256i b) {
  uint32_t mask = 0;
  for (size_t i = 0; i < 8; ++i) mask |= (std::memcmp(&a.bytes[4 * i], &b.bytes[4 * i], 4) == 0 ? 1u : 0u) << i;
  return static_cast<__mmask8>(mask);
}
inline __mmask32 _mm512_cmpge_epu16_mask(__m512i a, __m512i b) {
  return static_cast<__mmask32>(MaskOf<uint16_t>([&](size_t i) { return a.Get<uint16_t>(i) >= b.Get<uint16_t>(i); }));
}
inline constexpr int _CMP_NLE_UQ = 0x16;
// Not less or equal, true where a number is none. Others are not used.
inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int) {
  return static_cast<__mmask16>(MaskOf<float>([&](size_t i) { return !(a.Get<float>(i) <= b.Get<float>(i)); }));
}
inline __mmask16 _mm512_test_epi32_mask(__m512i a, __m512i b) {
  return static_cast<__mmask16>(MaskOf<int>([&](size_t i) { return (a.Get<int>(i) & b.Get<int>(i)) != 0; }));
}
inline uint64_t _mm512_test_epi8_mask(__m512i a, __m512i b) {
  return MaskOf<uint8_t>([&](size_t i) { return (a.bytes[i] & b.bytes[i]) != 0; });
}
inline uint64_t _mm512_movepi8_mask(__m512i x) {
  return MaskOf<uint8_t>([&](size_t i) { return x.bytes[i] >= 128; });
}

// --- widening and narrowing ---

inline __m512i _mm512_cvtepu8_epi32(__m128i x) {
  return Make<uint32_t>([&](size_t i) { return x.bytes[i]; });
}
inline __m512i _mm512_cvtepu16_epi32(__m256i x) {
  return Make<uint32_t>([&](size_t i) { return x.Get<uint16_t>(i); });
}
inline __m512i _mm512_cvtepu8_epi16(__m256i x) {
  return Make<uint16_t>([&](size_t i) { return x.bytes[i]; });
}
inline __m256i _mm512_cvtepi16_epi8(__m512i x) {
  return Make<uint8_t, __m256i>([&](size_t i) { return x.Get<uint16_t>(i); });
}
inline __m256i _mm512_cvtepi32_epi16(__m512i x) {
  return Make<uint16_t, __m256i>([&](size_t i) { return x.Get<uint32_t>(i); });
}

// --- moving elements ---

inline __m512i _mm512_permutexvar_epi8(__m512i index, __m512i x) {
  return Make<uint8_t>([&](size_t i) { return x.bytes[index.bytes[i] % 64]; });
}
inline __m512i _mm512_permutexvar_epi32(__m512i index, __m512i x) {
  return Make<uint32_t>([&](size_t i) { return x.Get<uint32_t>(index.Get<uint32_t>(i) % 16); });
}
inline __m512i _mm512_permutex2var_epi8(__m512i a, __m512i index, __m512i b) {
  return Make<uint8_t>([&](size_t i) { return (index.bytes[i] & 64 ? b : a).bytes[index.bytes[i] % 64]; });
}
inline __m512i _mm512_permutex2var_epi32(__m512i a, __m512i index, __m512i b) {
  return Make<uint32_t>([&](size_t i) {
    const uint32_t at = index.Get<uint32_t>(i) % 32;
    return (at < 16 ? a : b).Get<uint32_t>(at % 16);
  });
}
inline __m512i _mm512_permutex2var_epi64(__m512i a, __m512i index, __m512i b) {
  return Make<uint64_t>([&](size_t i) {
    const auto at = index.Get<uint64_t>(i);
    return (at & 8 ? b : a).Get<uint64_t>(at % 8);
  });
}
// Bits of a 64-bit element from each control byte on, around its end.
inline __m512i _mm512_multishift_epi64_epi8(__m512i control, __m512i x) {
  return Make<uint8_t>([&](size_t i) { return std::rotr(x.Get<uint64_t>(i / 8), control.bytes[i] % 64); });
}
inline __m512i _mm512_maskz_mov_epi8(uint64_t k, __m512i x) {
  return Make<uint8_t>([&](size_t i) { return (k >> i & 1) != 0 ? x.bytes[i] : 0; });
}
inline __m512i _mm512_mask_mov_epi8(__m512i other, uint64_t k, __m512i x) {
  return Make<uint8_t>([&](size_t i) { return (Bit(k, i) ? x : other).bytes[i]; });
}
// Interleaving, 128 bits at a time: the low (`from` 0) or high halves of each.
template <class T>
__m512i Unpack(__m512i a, __m512i b, bool high) {
  constexpr size_t kQuarter = 16 / sizeof(T);
  return Make<T>([&](size_t i) {
    const size_t at = i / kQuarter * kQuarter + i % kQuarter / 2 + (high ? kQuarter / 2 : 0);
    return (i % 2 == 0 ? a : b).template Get<T>(at);
  });
}
inline __m512i _mm512_unpacklo_epi32(__m512i a, __m512i b) { return Unpack<uint32_t>(a, b, false); }
inline __m512i _mm512_unpackhi_epi32(__m512i a, __m512i b) { return Unpack<uint32_t>(a, b, true); }
inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) { return Unpack<uint64_t>(a, b, false); }
inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) { return Unpack<uint64_t>(a, b, true); }

inline __m512i _mm512_maskz_compress_epi32(__mmask16 k, __m512i x) {
  __m512i r;
  size_t next = 0;
  for (size_t i = 0; i < 16; ++i) {
    if (Bit(k, i)) r.Set<uint32_t>(next++, x.Get<uint32_t>(i));
  }
  return r;
}
inline __m512i _mm512_maskz_expand_epi8(uint64_t k, __m512i x) {
  size_t next = 0;
  return Make<uint8_t>([&](size_t i) { return Bit(k, i) ? x.bytes[next++] : uint8_t{0}; });
}

}  // namespace ashlar::simd::stand_ins

#endif  // ASHLAR_TESTS_SIMD_AVX512_STAND_INS_H_
