// Integer vectors of W dwords, one for each of W neighbouring rows of a strip: what walks.h is written on. Levels without
// them take the block formats.
#pragma once
#include "tile.h"

#if defined(__AVX512VNNI__) || defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)
#define PK_LANES
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

PK_BEGIN
#define PK_INLINE static inline __attribute__((always_inline))
#define PK_INLINE_MEMBER inline __attribute__((always_inline))

#if defined(__AVX512VNNI__)
typedef __m512i vi;
PK_INLINE vi iset(int32_t x) { return _mm512_set1_epi32(x); }
PK_INLINE vi iset8(int x) { return _mm512_set1_epi8((char)x); }
PK_INLINE vi iload(const void* p) { return _mm512_loadu_si512(p); }
PK_INLINE void istore(void* p, vi a) { _mm512_storeu_si512(p, a); }
PK_INLINE vi iand(vi a, vi b) { return _mm512_and_si512(a, b); }
PK_INLINE vi ior(vi a, vi b) { return _mm512_or_si512(a, b); }
PK_INLINE vi ixor(vi a, vi b) { return _mm512_xor_si512(a, b); }
PK_INLINE vi iadd(vi a, vi b) { return _mm512_add_epi32(a, b); }
PK_INLINE vi isub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
PK_INLINE vi iadd8(vi a, vi b) { return _mm512_add_epi8(a, b); }
PK_INLINE vi isub16(vi a, vi b) { return _mm512_sub_epi16(a, b); }
PK_INLINE vi imul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
// sum + products of two int16 of a and of b, per dword.
PK_INLINE vi iadd_pairs(vi sum, vi a, vi b) { return _mm512_dpwssd_epi32(sum, a, b); }
PK_INLINE vi ishl(vi a, int bits) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits)); }
PK_INLINE vi ishr(vi a, int bits) { return _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits)); }
PK_INLINE vi isar(vi a, int bits) { return _mm512_sra_epi32(a, _mm_cvtsi32_si128(bits)); }
PK_INLINE vi ishuffle(vi table, vi index) { return _mm512_shuffle_epi8(table, index); }
PK_INLINE vi irepeat16(const void* p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)p)); }
PK_INLINE vi iequal(vi a, vi b) { return _mm512_movm_epi32(_mm512_cmpeq_epi32_mask(a, b)); }
// Per byte: `yes` where a has one of the bits.
PK_INLINE vi ichoose(vi a, vi bits, vi yes, vi no) { return _mm512_mask_blend_epi8(_mm512_test_epi8_mask(a, bits), no, yes); }
PK_INLINE vf ifloat(vi a) { return _mm512_cvtepi32_ps(a); }
PK_INLINE vf ias_float(vi a) { return _mm512_castsi512_ps(a); }
PK_INLINE vf ihalf_floats(vi a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }
PK_INLINE vi low32(vi a, vi b) { return _mm512_unpacklo_epi32(a, b); }
PK_INLINE vi high32(vi a, vi b) { return _mm512_unpackhi_epi32(a, b); }
PK_INLINE vi low64(vi a, vi b) { return _mm512_unpacklo_epi64(a, b); }
PK_INLINE vi high64(vi a, vi b) { return _mm512_unpackhi_epi64(a, b); }
// 16 bytes of the rows e, e + 4, e + 8, e + 12.
PK_INLINE vi load_quad(const uint8_t* p, size_t quad) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p)),
                                                _mm_loadu_si128((const __m128i*)(p + quad)), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)(p + 2 * quad))),
                                                 _mm_loadu_si128((const __m128i*)(p + 3 * quad)), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
PK_INLINE vf load_halves(const Strip& s, size_t at) {
    const uint8_t* p = s.data + at;
    __m128i low = _mm_setzero_si128(), high = _mm_setzero_si128();
#define PK_PICK(i)                                                  \
    low = _mm_insert_epi16(low, load_u16(p + (i) * s.stride), i);   \
    high = _mm_insert_epi16(high, load_u16(p + ((i) + 8) * s.stride), i);
    PK_PICK(0) PK_PICK(1) PK_PICK(2) PK_PICK(3) PK_PICK(4) PK_PICK(5) PK_PICK(6) PK_PICK(7)
#undef PK_PICK
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}
PK_INLINE vi load_bytes(const Strip& s, size_t at) {
    alignas(16) uint8_t bytes[W];
    for (int r = 0; r < W; r++) bytes[r] = s.data[at + r * s.stride];
    return _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i*)bytes));
}
#elif defined(__AVX2__)
typedef __m256i vi;
PK_INLINE vi iset(int32_t x) { return _mm256_set1_epi32(x); }
PK_INLINE vi iset8(int x) { return _mm256_set1_epi8((char)x); }
PK_INLINE vi iload(const void* p) { return _mm256_loadu_si256((const __m256i*)p); }
PK_INLINE void istore(void* p, vi a) { _mm256_storeu_si256((__m256i*)p, a); }
PK_INLINE vi iand(vi a, vi b) { return _mm256_and_si256(a, b); }
PK_INLINE vi ior(vi a, vi b) { return _mm256_or_si256(a, b); }
PK_INLINE vi ixor(vi a, vi b) { return _mm256_xor_si256(a, b); }
PK_INLINE vi iadd(vi a, vi b) { return _mm256_add_epi32(a, b); }
PK_INLINE vi isub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
PK_INLINE vi iadd8(vi a, vi b) { return _mm256_add_epi8(a, b); }
PK_INLINE vi isub16(vi a, vi b) { return _mm256_sub_epi16(a, b); }
PK_INLINE vi imul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
PK_INLINE vi iadd_pairs(vi sum, vi a, vi b) { return iadd(sum, _mm256_madd_epi16(a, b)); }
PK_INLINE vi ishl(vi a, int bits) { return _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits)); }
PK_INLINE vi ishr(vi a, int bits) { return _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits)); }
PK_INLINE vi isar(vi a, int bits) { return _mm256_sra_epi32(a, _mm_cvtsi32_si128(bits)); }
PK_INLINE vi ishuffle(vi table, vi index) { return _mm256_shuffle_epi8(table, index); }
PK_INLINE vi irepeat16(const void* p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)p)); }
PK_INLINE vi iequal(vi a, vi b) { return _mm256_cmpeq_epi32(a, b); }
PK_INLINE vi ichoose(vi a, vi bits, vi yes, vi no) { return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi8(iand(a, bits), bits)); }
PK_INLINE vf ifloat(vi a) { return _mm256_cvtepi32_ps(a); }
PK_INLINE vf ias_float(vi a) { return _mm256_castsi256_ps(a); }
PK_INLINE vf ihalf_floats(vi a) {
    const vi low = iand(a, iset(0xffff)), packed = _mm256_packus_epi32(low, low);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}
PK_INLINE vi low32(vi a, vi b) { return _mm256_unpacklo_epi32(a, b); }
PK_INLINE vi high32(vi a, vi b) { return _mm256_unpackhi_epi32(a, b); }
PK_INLINE vi low64(vi a, vi b) { return _mm256_unpacklo_epi64(a, b); }
PK_INLINE vi high64(vi a, vi b) { return _mm256_unpackhi_epi64(a, b); }
// 16 bytes of the rows e, e + 4.
PK_INLINE vi load_quad(const uint8_t* p, size_t quad) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p)),
                                   _mm_loadu_si128((const __m128i*)(p + quad)), 1);
}
PK_INLINE vf load_halves(const Strip& s, size_t at) {
    const uint8_t* p = s.data + at;
    __m128i h = _mm_setzero_si128();
#define PK_PICK(i) h = _mm_insert_epi16(h, load_u16(p + (i) * s.stride), i);
    PK_PICK(0) PK_PICK(1) PK_PICK(2) PK_PICK(3) PK_PICK(4) PK_PICK(5) PK_PICK(6) PK_PICK(7)
#undef PK_PICK
    return _mm256_cvtph_ps(h);
}
PK_INLINE vi load_bytes(const Strip& s, size_t at) {
    alignas(8) uint8_t bytes[W];
    for (int r = 0; r < W; r++) bytes[r] = s.data[at + r * s.stride];
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)bytes));
}
#else
typedef uint32x4_t vi;
PK_INLINE uint8x16_t bytes_of(vi a) { return vreinterpretq_u8_u32(a); }
PK_INLINE vi of_bytes(uint8x16_t a) { return vreinterpretq_u32_u8(a); }
PK_INLINE vi iset(int32_t x) { return vdupq_n_u32((uint32_t)x); }
PK_INLINE vi iset8(int x) { return of_bytes(vdupq_n_u8((uint8_t)x)); }
PK_INLINE vi iload(const void* p) { return of_bytes(vld1q_u8((const uint8_t*)p)); }
PK_INLINE void istore(void* p, vi a) { vst1q_u8((uint8_t*)p, bytes_of(a)); }
PK_INLINE vi iand(vi a, vi b) { return vandq_u32(a, b); }
PK_INLINE vi ior(vi a, vi b) { return vorrq_u32(a, b); }
PK_INLINE vi ixor(vi a, vi b) { return veorq_u32(a, b); }
PK_INLINE vi iadd(vi a, vi b) { return vaddq_u32(a, b); }
PK_INLINE vi isub(vi a, vi b) { return vsubq_u32(a, b); }
PK_INLINE vi iadd8(vi a, vi b) { return of_bytes(vaddq_u8(bytes_of(a), bytes_of(b))); }
PK_INLINE vi isub16(vi a, vi b) {
    return vreinterpretq_u32_u16(vsubq_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)));
}
PK_INLINE vi imul(vi a, vi b) { return vmulq_u32(a, b); }
PK_INLINE vi iadd_pairs(vi sum, vi a, vi b) {
    const int16x8_t x = vreinterpretq_s16_u32(a), y = vreinterpretq_s16_u32(b);
    const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
    return iadd(sum, vreinterpretq_u32_s32(vpaddq_s32(low, high)));
}
PK_INLINE vi ishl(vi a, int bits) { return vshlq_u32(a, vdupq_n_s32(bits)); }
PK_INLINE vi ishr(vi a, int bits) { return vshlq_u32(a, vdupq_n_s32(-bits)); }
PK_INLINE vi isar(vi a, int bits) { return vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(a), vdupq_n_s32(-bits))); }
PK_INLINE vi ishuffle(vi table, vi index) { return of_bytes(vqtbl1q_u8(bytes_of(table), bytes_of(index))); }
PK_INLINE vi irepeat16(const void* p) { return iload(p); }
PK_INLINE vi iequal(vi a, vi b) { return vceqq_u32(a, b); }
PK_INLINE vi ichoose(vi a, vi bits, vi yes, vi no) {
    return of_bytes(vbslq_u8(vtstq_u8(bytes_of(a), bytes_of(bits)), bytes_of(yes), bytes_of(no)));
}
PK_INLINE vf ifloat(vi a) { return (vf)vcvtq_f32_s32(vreinterpretq_s32_u32(a)); }
PK_INLINE vf ias_float(vi a) { return (vf)vreinterpretq_f32_u32(a); }
PK_INLINE vf ihalf_floats(vi a) { return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(a))); }
PK_INLINE vi low32(vi a, vi b) { return vzip1q_u32(a, b); }
PK_INLINE vi high32(vi a, vi b) { return vzip2q_u32(a, b); }
PK_INLINE vi low64(vi a, vi b) { return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b))); }
PK_INLINE vi high64(vi a, vi b) { return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b))); }
PK_INLINE vi load_quad(const uint8_t* p, size_t) { return iload(p); }
PK_INLINE vf load_halves(const Strip& s, size_t at) {
    uint16x4_t halves = vdup_n_u16(0);
    each<W>(PK_EACH(r) { halves = vld1_lane_u16((const uint16_t*)(s.data + at + r * s.stride), halves, r); });
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(halves));
}
PK_INLINE vi load_bytes(const Strip& s, size_t at) {
    uint8x16_t bytes = vdupq_n_u8(0);
    each<W>(PK_EACH(r) { bytes = vld1q_lane_u8(s.data + at + r * s.stride, bytes, 4 * r); });
    return of_bytes(bytes);
}
#endif

#if defined(PK_PAIRS)
// Vectors of bytes up to MOST of which the sum of products still fits in 16 bits.
template <int MOST>
constexpr int kPairsAtOnce = MOST <= 16 ? 8 : MOST <= 32 ? 4 : MOST <= 64 ? 2 : 1;
template <ByteKind KIND>
PK_INLINE vi ipairs(vi w, vi a) {
    return KIND == kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w)) : _mm256_maddubs_epi16(w, a);
}
PK_INLINE vi iadd16(vi a, vi b) { return _mm256_add_epi16(a, b); }
// Here and not later: GCC 12 moves all additions behind all products, which then go through memory.
PK_INLINE void now(vi& value) { asm("" : "+x"(value)); }
PK_INLINE vi isum_pairs(vi pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
#else
// sum + products of four bytes of w and of a, per dword; AVX-512 multiplies unsigned bytes of w.
template <ByteKind KIND>
PK_INLINE vi idot(vi sum, vi w, vi a) {
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(sum, w, a);
#elif defined(__AVXVNNI__)
    return KIND == kSigned ? _mm256_dpbusd_avx_epi32(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(a, w))
                           : _mm256_dpbusd_avx_epi32(sum, w, a);
#else
    return vreinterpretq_u32_s32(vdotq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u32(w), vreinterpretq_s8_u32(a)));
#endif
}
#endif

// COUNT 4-channel groups of W rows to where the first of the rows begins in a tile.
template <int COUNT>
PK_INLINE void store_rows(uint8_t* q, const vi* w) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
    each<COUNT / 2>(PK_EACH(j) {
        istore(q + 128 * j, low32(w[2 * j], w[2 * j + 1]));
        istore(q + 128 * j + 16, high32(w[2 * j], w[2 * j + 1]));
    });
#else
    each<COUNT>(PK_EACH(j) { istore(q + 64 * j, w[j]); });
#endif
}
#if defined(__ARM_FEATURE_DOTPROD)
// The same with token LANE of four.
template <int LANE>
PK_INLINE vi idot_lane(vi sum, vi w, vi four) {
    return vreinterpretq_u32_s32(vdotq_laneq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u32(w), vreinterpretq_s8_u32(four), LANE));
}
#endif
PK_INLINE vi broadcast4(const int8_t* p) { return iset(load_i32(p)); }

// Dword j of 16 bytes at `at` of every row, rows in order.
PK_INLINE void load_dwords(const Strip& s, size_t at, vi out[4]) {
    const uint8_t* p = s.data + at;
    const size_t quad = 4 * s.stride;
    const vi v0 = load_quad(p, quad), v1 = load_quad(p + s.stride, quad), v2 = load_quad(p + 2 * s.stride, quad),
             v3 = load_quad(p + 3 * s.stride, quad);
    const vi a = low32(v0, v1), b = high32(v0, v1), c = low32(v2, v3), d = high32(v2, v3);
    out[0] = low64(a, c);
    out[1] = high64(a, c);
    out[2] = low64(b, d);
    out[3] = high64(b, d);
}

PK_INLINE vi low_nibbles(vi v) { return iand(v, iset8(15)); }
PK_INLINE vi high_nibbles(vi v) { return iand(ishr(v, 4), iset8(15)); }

PK_INLINE void split_nibbles(const vi packed[4], vi w[8]) {
    for (int j = 0; j < 4; j++) {
        w[j] = low_nibbles(packed[j]);
        w[j + 4] = high_nibbles(packed[j]);
    }
}

// What a block's int32 sums start from, so that bytes count from their zero point.
template <ByteKind KIND>
PK_INLINE vi zero_point(const float* meta, int tokens, int token) {
    if (KIND == kUnsignedMinus8) return iset(load_i32(meta + kBlockOffset8 * tokens + token));
    if (KIND == kUnsignedMinus128) return iset(load_i32(meta + kBlockOffset128 * tokens + token));
    return iset(kSumStart);
}
// A block's sum, from its zero_point on, times its activation scale.
PK_INLINE vf scaled_sum(vi sum, const float* meta, int tokens, int token) {
#if defined(PK_SUM_START)
    return vfma(ias_float(sum), vset(meta[token]), vset(meta[kBlockStart * tokens + token]));
#else
    (void)tokens;
    return vmul(ifloat(sum), vset(meta[token]));
#endif
}
// The same for 16 channels of bytes that count from ZERO; exact, the offsets are multiples of 128.
template <int ZERO>
PK_INLINE vi zero_of_half(const float* offset) {
    if constexpr (ZERO == 0) return iset(0);
    else return isar(iset(load_i32(offset)), __builtin_ctz(128 / ZERO));
}
// What the sums of scale I of a superblock start from, of 32 or of 16 channels.
template <ByteKind KIND, bool HALVES>
PK_INLINE vi zero_of_super(const float* meta, int tokens, int i) {
    if constexpr (KIND != kUnsignedMinus128) return iset(0);
    else return iset(load_i32(meta + ((HALVES ? kSuperHalfOffsets : kSuperOffsets) + i) * tokens));
}
// Whether sums of a scale of some token may need more than 16 bits.
template <int G, int N>
PK_INLINE bool exceeds_small(const float* meta) {
    bool exceeds = false;
    each<N>(PK_EACH(i) { exceeds |= load_i32(meta + kSuperMost * G + i) > kSmallMost; });
    return exceeds;
}
PK_END
#endif
