// Activations to int8 with one float scale per 32 channels, interleaved for the matrix product.
#include "simd.h"

PK_BEGIN
// Below this the quotient 127 / largest would overflow; such blocks count as zero.
constexpr float kSmallest = 1e-35f;

#if defined(__AVX512F__)
static inline void quantise_block(const float* x, int8_t* q, float* scale, int sums[2]) {
    const vf a = vload(x), b = vload(x + W);
    const vf magnitude = vmax(_mm512_abs_ps(a), _mm512_abs_ps(b));
    const float largest = _mm512_reduce_max_ps(magnitude);
    *scale = largest / 127.0f;
    const vf inverse = vset(largest > kSmallest ? 127.0f / largest : 0.0f);
    const __m512i low = _mm512_cvtps_epi32(vmul(a, inverse)), high = _mm512_cvtps_epi32(vmul(b, inverse));
    _mm_store_si128((__m128i*)q, _mm512_cvtepi32_epi8(low));
    _mm_store_si128((__m128i*)(q + W), _mm512_cvtepi32_epi8(high));
    sums[0] = _mm512_reduce_add_epi32(low);
    sums[1] = _mm512_reduce_add_epi32(high);
}
#else
static float largest_magnitude(const float* x) {
    float best = 0.0f;
    for (int i = 0; i < kBlock; i++) {
        const float a = __builtin_fabsf(x[i]);
        best = a > best ? a : best;
    }
    return best;
}

// Round to nearest even by the float adder; |x| <= 127.
static inline int8_t to_int8(float x) {
    return (int8_t)(int32_t)(float_to_bits(x + 12582912.0f) - 0x4b400000u);
}

static void quantise_block(const float* x, int8_t* q, float* scale, int sums[2]) {
    const float largest = largest_magnitude(x);
    *scale = largest / 127.0f;
    const float inverse = largest > kSmallest ? 127.0f / largest : 0.0f;
    sums[0] = sums[1] = 0;
    for (int i = 0; i < kBlock; i++) {
        q[i] = to_int8(x[i] * inverse);
        sums[i / 16] += q[i];
    }
}
#endif

static void put_halves(float* halves, int tokens, float scale, const int sums[2]) {
    for (int i = 0; i < 2; i++) {
        const int32_t off128 = -128 * sums[i];
        __builtin_memcpy(halves + i * tokens, &off128, 4);
        halves[(2 + i) * tokens] = scale * (float)sums[i];
    }
}

void quantise(const float* src, size_t stride, int cols, QuantGroup group) {
    const int n = group.tokens, blocks = cols / kBlock;
    for (int t = 0; t < n; t++) {
        for (int b = 0; b < blocks; b++) {
            alignas(64) int8_t q[kBlock];
            float scale;
            int sums[2];
            quantise_block(src + t * stride + (size_t)b * kBlock, q, &scale, sums);
            const int sum = sums[0] + sums[1];
            int8_t* data = group.data + (size_t)b * kBlock * n + 4 * t;
            for (int j = 0; j < kBlock / 4; j++) __builtin_memcpy(data + 4 * n * j, q + 4 * j, 4);
            float* meta = group.meta + (size_t)b * 4 * n;
            meta[t] = scale;
            meta[n + t] = scale * (float)sum;
            const int32_t off8 = -8 * sum, off128 = -128 * sum;
            __builtin_memcpy(meta + 2 * n + t, &off8, 4);
            __builtin_memcpy(meta + 3 * n + t, &off128, 4);
            if (group.halves) put_halves(group.halves + (size_t)b * 4 * n + t, n, scale, sums);
        }
    }
}
PK_END
