// A vector of W floats per instruction set level. Every operation rounds each lane once; fma is fused where
// the level has it. A result never depends on the lane it was computed in.
#pragma once
#include <utility>

#include "level.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

PK_BEGIN
// Calls f with 0 to N - 1 as constants: GCC 12 leaves arrays in memory that a plain loop indexes.
template <int N, class F>
static inline __attribute__((always_inline)) void each(const F& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        (f(std::integral_constant<int, I>{}), ...);
    }(std::make_integer_sequence<int, N>{});
}
template <int N>
using Count = std::integral_constant<int, N>;
#define PK_EACH(name) [&](auto name) __attribute__((always_inline))

#if defined(__AVX512F__)
typedef __m512 vf;
constexpr int W = 16;
static inline vf vzero() { return _mm512_setzero_ps(); }
static inline vf vset(float x) { return _mm512_set1_ps(x); }
static inline vf vload(const float* p) { return _mm512_loadu_ps(p); }
static inline void vstore(float* p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf vload_n(const float* p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
static inline void vstore_n(float* p, vf a, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a); }
static inline vf vadd(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vsub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vmul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vdiv(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vfma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
// 1 / a to about a unit in the last place, 0 from 2^126 on: a division holds up the port of other products for 16 cycles.
static inline vf vinverse(vf a) {
    const vf x = _mm512_rcp14_ps(a);
    return _mm512_fmadd_ps(x, _mm512_fnmadd_ps(a, x, _mm512_set1_ps(1.0f)), x);
}
// Where one of two is no number the second one counts, on every level: what may be none stands there.
static inline vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vmin(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vround(vf a) { return _mm512_roundscale_ps(a, 0x08); }
static inline vf vzero_below(vf a, vf x, float limit) {  // a, but 0 where x < limit
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NLT_UQ), a);
}
static inline vf vpow2(vf n) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
static inline vf vload_half(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
static inline vf vround_half(vf x) { return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }
static inline vf vload_bf16(const uint16_t* p) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}
static inline vf vload_i8(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
#elif defined(__AVX2__)
typedef __m256 vf;
constexpr int W = 8;
static inline __m256i lane_mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vzero() { return _mm256_setzero_ps(); }
static inline vf vset(float x) { return _mm256_set1_ps(x); }
static inline vf vload(const float* p) { return _mm256_loadu_ps(p); }
static inline void vstore(float* p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf vload_n(const float* p, int n) { return _mm256_maskload_ps(p, lane_mask(n)); }
static inline void vstore_n(float* p, vf a, int n) { _mm256_maskstore_ps(p, lane_mask(n), a); }
static inline vf vadd(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vsub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vmul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vdiv(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf vfma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vinverse(vf a) { return _mm256_div_ps(_mm256_set1_ps(1.0f), a); }
static inline vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vmin(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vround(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vzero_below(vf a, vf x, float limit) {
    return _mm256_and_ps(a, _mm256_cmp_ps(x, _mm256_set1_ps(limit), _CMP_NLT_UQ));
}
static inline vf vpow2(vf n) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
static inline vf vload_half(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
static inline vf vround_half(vf x) { return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }
static inline vf vload_bf16(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
}
static inline vf vload_i8(const int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
}
#else
typedef float vf __attribute__((vector_size(16)));
constexpr int W = 4;
static inline vf vzero() { return vf{0, 0, 0, 0}; }
static inline vf vset(float x) { return vf{x, x, x, x}; }
static inline vf vload(const float* p) {
    vf a;
    __builtin_memcpy(&a, p, sizeof a);
    return a;
}
static inline void vstore(float* p, vf a) { __builtin_memcpy(p, &a, sizeof a); }
static inline vf vload_n(const float* p, int n) {
    vf a = vzero();
    for (int i = 0; i < n; i++) a[i] = p[i];
    return a;
}
static inline void vstore_n(float* p, vf a, int n) {
    for (int i = 0; i < n; i++) p[i] = a[i];
}
static inline vf vadd(vf a, vf b) { return a + b; }
static inline vf vsub(vf a, vf b) { return a - b; }
static inline vf vmul(vf a, vf b) { return a * b; }
static inline vf vdiv(vf a, vf b) { return a / b; }
static inline vf vfma(vf a, vf b, vf c) { return a * b + c; }
static inline vf vinverse(vf a) { return vf{1, 1, 1, 1} / a; }
static inline vf vmax(vf a, vf b) { return a > b ? a : b; }
static inline vf vmin(vf a, vf b) { return a < b ? a : b; }
static inline vf vround(vf a) { return vf{__builtin_rintf(a[0]), __builtin_rintf(a[1]), __builtin_rintf(a[2]), __builtin_rintf(a[3])}; }
static inline vf vzero_below(vf a, vf x, float limit) {
    for (int i = 0; i < W; i++) a[i] = x[i] < limit ? 0.0f : a[i];
    return a;
}
static inline vf vpow2(vf n) {
    vf r;
    for (int i = 0; i < W; i++) r[i] = bits_to_float((uint32_t)((int32_t)n[i] + 127) << 23);
    return r;
}
static inline vf vload_half(const uint16_t* p) {
    return vf{half_to_float(p[0]), half_to_float(p[1]), half_to_float(p[2]), half_to_float(p[3])};
}
static inline vf vround_half(vf x) {
    for (int i = 0; i < W; i++) x[i] = half_to_float(float_to_half(x[i]));
    return x;
}
static inline vf vload_bf16(const uint16_t* p) {
    return vf{bf16_to_float(p[0]), bf16_to_float(p[1]), bf16_to_float(p[2]), bf16_to_float(p[3])};
}
static inline vf vload_i8(const int8_t* p) { return vf{(float)p[0], (float)p[1], (float)p[2], (float)p[3]}; }
#endif

// Int32 sums of a block start from the bits of a float whose last place counts 1: they are then the bits of that float plus
// the sum, and one fma takes it off again while it scales. The product is rounded as after a conversion, as scales have 22 bits.
// Worth 8 % of the loop where products, conversions and additions share two ports (Emerald Rapids, 482 to 520 Gop/s for
// Q4_1). Not beside BF16: Zen 4 converts on ports of its own, so there it would be a load more and nothing less.
#if defined(__AVX512VNNI__) && !defined(__AVX512BF16__)
#define PK_SUM_START
constexpr int32_t kSumStart = 0x4b400000;
constexpr float kSumStartValue = 12582912.0f;  // 1.5 * 2^23
#else
constexpr int32_t kSumStart = 0;
#endif

// Lanes added pairwise, distance halving.
#if defined(__AVX2__)
static inline float vsum(vf a) {
#if defined(__AVX512F__)
    const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
#else
    const __m256 b = a;
#endif
    const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1)), d = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
static inline float vhighest(vf a) {
#if defined(__AVX512F__)
    const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
#else
    const __m256 b = a;
#endif
    const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1)), d = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
#else
static inline float vsum(vf a) {
    float lanes[W];
    vstore(lanes, a);
    for (int half = W / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}
static inline float vhighest(vf a) {
    float lanes[W];
    vstore(lanes, a);
    float best = lanes[0];
    for (int i = 1; i < W; i++) best = lanes[i] > best ? lanes[i] : best;
    return best;
}
#endif

// e^x to about 2 units in the last place; exactly 0 below -87, bounded above by e^88.
static inline vf vexp(vf x) {
    const vf clamped = vmin(vset(88.0f), vmax(vset(-87.0f), x));
    const vf n = vround(vmul(clamped, vset(1.44269504088896341f)));
    vf r = vfma(n, vset(-0.693359375f), clamped);
    r = vfma(n, vset(2.12194440e-4f), r);
    vf p = vset(1.9875691500e-4f);
    p = vfma(p, r, vset(1.3981999507e-3f));
    p = vfma(p, r, vset(8.3334519073e-3f));
    p = vfma(p, r, vset(4.1665795894e-2f));
    p = vfma(p, r, vset(1.6666665459e-1f));
    p = vfma(p, r, vset(5.0000001201e-1f));
    p = vfma(p, vmul(r, r), vadd(r, vset(1.0f)));
    return vzero_below(vmul(p, vpow2(n)), x, -87.0f);
}
// 2^x for x <= 0 to about 2 units in the last place, exactly 1 at 0; 0 far below (from -126 on, or -149).
static inline vf vexp2(vf x) {
#if defined(__AVX512F__)
    const vf f = _mm512_reduce_ps(x, 0x09);
#else
    const vf low = vmax(vset(-126.0f), x);
    const vf n = vround(vsub(low, vset(0.5f)));
    const vf f = vsub(low, n);
#endif
    vf p = vset(1.8670517074e-3f);
    p = vfma(p, f, vset(9.0171951073e-3f));
    p = vfma(p, f, vset(5.5799797181e-2f));
    p = vfma(p, f, vset(2.4016448088e-1f));
    p = vfma(p, f, vset(6.9315130946e-1f));
    p = vfma(p, f, vset(1.0f));
#if defined(__AVX512F__)
    return _mm512_scalef_ps(p, x);
#else
    return vzero_below(vmul(p, vpow2(n)), x, -126.0f);
#endif
}
static inline vf vtanh(vf x) {
    const vf e = vexp(vadd(x, x));
    return vsub(vset(1.0f), vdiv(vset(2.0f), vadd(e, vset(1.0f))));
}
static inline float exp2_one(float x) {
    float lanes[W];
    vstore(lanes, vexp2(vset(x)));
    return lanes[0];
}
static inline float exp_one(float x) {
    float lanes[W];
    vstore(lanes, vexp(vset(x)));
    return lanes[0];
}
PK_END
