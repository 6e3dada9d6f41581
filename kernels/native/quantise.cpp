// Activations to int8 with one float scale per 32 or per 256 channels, interleaved for the matrix product. Where one of them
// is infinite or no number the scale is none, and so is every product: bytes can't say it.
#include "simd.h"

PK_BEGIN
// Below this the quotient 127 / largest would overflow; such blocks count as zero.
constexpr float kSmallest = 1e-35f;
// Magnitudes compare as their bits do, infinity and what is no number above all others.
constexpr int32_t kMagnitude = 0x7fffffff, kInfinite = 0x7f800000, kNoNumber = 0x7fc00000;

static inline float scale_of(int32_t largest) {
    return largest < kInfinite ? bits_to_float((uint32_t)largest) / 127.0f : bits_to_float(kNoNumber);
}
static inline float inverse_of(int32_t largest) {
    const float value = bits_to_float((uint32_t)largest);
    return value > kSmallest ? 127.0f / value : 0.0f;
}

#if defined(__AVX512F__)
// COUNT channels; sums of 16 each.
template <int COUNT>
static inline void quantise_run(const float* x, int8_t* q, float* scale, int* sums) {
    const __m512i sign_off = _mm512_set1_epi32(kMagnitude);
    __m512i most = _mm512_setzero_si512();
    for (int i = 0; i < COUNT; i += W) most = _mm512_max_epi32(most, _mm512_and_si512(_mm512_loadu_si512(x + i), sign_off));
    const int32_t largest = _mm512_reduce_max_epi32(most);
    *scale = scale_of(largest);
    const vf inverse = vset(inverse_of(largest));
    for (int i = 0; i < COUNT; i += W) {
        const __m512i rounded = _mm512_cvtps_epi32(vmul(vload(x + i), inverse));
        _mm_store_si128((__m128i*)(q + i), _mm512_cvtepi32_epi8(rounded));
        sums[i / W] = _mm512_reduce_add_epi32(rounded);
    }
}
#elif defined(__AVX2__)
// The same of 32 channels: bytes in order, sums of 16 each.
static inline void round_channels(const float* x, vf inverse, int8_t* q, int* sums) {
    __m256i words[4];
    each<4>(PK_EACH(i) { words[i] = _mm256_cvtps_epi32(vmul(vload(x + W * i), inverse)); });
    const __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(words[0], words[1]), _mm256_packs_epi32(words[2], words[3]));
    const __m256i bytes = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i*)q, bytes);
    const __m256i four = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
    const __m256i two = _mm256_add_epi32(four, _mm256_shuffle_epi32(four, 0x4e));
    const __m256i one = _mm256_add_epi32(two, _mm256_shuffle_epi32(two, 0xb1));
    sums[0] = _mm256_extract_epi32(one, 0);
    sums[1] = _mm256_extract_epi32(one, 4);
}

template <int COUNT>
static inline void quantise_run(const float* x, int8_t* q, float* scale, int* sums) {
    const __m256i sign_off = _mm256_set1_epi32(kMagnitude);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < COUNT; i += W)
        most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_loadu_si256((const __m256i*)(x + i)), sign_off));
    __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    const int32_t largest = _mm_cvtsi128_si32(_mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
    *scale = scale_of(largest);
    const vf inverse = vset(inverse_of(largest));
    for (int i = 0; i < COUNT; i += kBlock) round_channels(x + i, inverse, q + i, sums + i / 16);
}
#else
static int32_t largest_magnitude(const float* x, int count) {
    int32_t best = 0;
    for (int i = 0; i < count; i++) {
        const int32_t a = (int32_t)float_to_bits(x[i]) & kMagnitude;
        best = a > best ? a : best;
    }
    return best;
}

// Round to nearest even by the float adder; |x| <= 127.
static inline int8_t to_int8(float x) {
    return (int8_t)(int32_t)(float_to_bits(x + 12582912.0f) - 0x4b400000u);
}

template <int COUNT>
static void quantise_run(const float* x, int8_t* q, float* scale, int* sums) {
    const int32_t largest = largest_magnitude(x, COUNT);
    *scale = scale_of(largest);
    const float inverse = inverse_of(largest);
    for (int i = 0; i < COUNT; i++) q[i] = to_int8(x[i] * inverse);
    for (int i = 0; i < COUNT / 16; i++) {
        sums[i] = 0;
        for (int c = 0; c < 16; c++) sums[i] += q[16 * i + c];
    }
}
#endif

static inline void put(float* at, int32_t word) { __builtin_memcpy(at, &word, 4); }

// The scale of a block as products need it.
static inline float block_scale(float scale) {
#if defined(PK_SUM_START)
    return bits_to_float((float_to_bits(scale) + 2u) & ~3u);
#else
    return scale;
#endif
}

static inline void put_block_words(float scale, int sum, float* meta, int tokens) {
    meta[kBlockScale] = scale;
    meta[kBlockSum * tokens] = scale * (float)sum;
    put(meta + kBlockOffset8 * tokens, kSumStart - 8 * sum);
    put(meta + kBlockOffset128 * tokens, kSumStart - 128 * sum);
#if defined(PK_SUM_START)
    meta[kBlockStart * tokens] = scale * -kSumStartValue;
#endif
}

// COUNT channels of token t.
template <int COUNT>
static inline void interleave(const int8_t* q, int8_t* data, int tokens, int t) {
    for (int j = 0; j < COUNT; j += kTokenRun) __builtin_memcpy(data + tokens * j + kTokenRun * t, q + j, kTokenRun);
}

#if defined(__AVX512VNNI__)
#define PK_EIGHT
#include "quantise_eight.h"
#endif

void quantise(const float* src, size_t stride, int cols, QuantGroup group) {
    const int n = group.tokens, blocks = cols / kBlock;
#if defined(PK_EIGHT)
    if (n == 8) return quantise_eight(src, stride, blocks, group);
#endif
    for (int t = 0; t < n; t++) {
        for (int b = 0; b < blocks; b++) {
            alignas(64) int8_t q[kBlock];
            float scale;
            int sums[2];
            quantise_run<kBlock>(src + t * stride + (size_t)b * kBlock, q, &scale, sums);
            interleave<kBlock>(q, group.data + (size_t)b * kBlock * n, n, t);
            put_block_words(block_scale(scale), sums[0] + sums[1], group.meta + (size_t)b * kBlockWords * n + t, n);
            for (int i = 0; i < 2 && group.halves; i++) put(group.halves + ((size_t)b * 2 + i) * n + t, -128 * sums[i]);
        }
    }
}

static inline int32_t pair_of(int low, int high) { return (int32_t)((uint32_t)(uint16_t)low | (uint32_t)high << 16); }

// See SuperWord; `step` words apart.
static void put_sums(const int half_sums[16], float* meta, int step) {
    int sums[8];
    for (int i = 0; i < 16; i++) put(meta + (kSuperHalfOffsets + i) * step, -128 * half_sums[i]);
    for (int i = 0; i < 8; i++) {
        sums[i] = half_sums[2 * i] + half_sums[2 * i + 1];
        put(meta + (kSuperOffsets + i) * step, -128 * sums[i]);
    }
    for (int i = 0; i < 8; i++) {
        const int at = i / 2 * 4 + i % 2;
        put(meta + (kSuperHalfPairs + i) * step, pair_of(half_sums[at], half_sums[at + 2]));
        if (i < 4) put(meta + (kSuperPairs + i) * step, pair_of(sums[at], sums[at + 2]));
    }
}

// The largest sum of the magnitudes of 16 channels.
static int most_of(const int8_t* q) {
    int most = 0;
    for (int i = 0; i < kSuper; i += 16) {
        int sum = 0;
        for (int c = 0; c < 16; c++) sum += q[i + c] < 0 ? -q[i + c] : q[i + c];
        most = imax(most, sum);
    }
    return most;
}

void quantise_super(const float* src, size_t stride, int cols, QuantGroup group) {
    const int n = group.tokens;
#if defined(PK_EIGHT)
    if (n == 8) return quantise_super_eight(src, stride, cols / kSuper, group);
#endif
    for (int t = 0; t < n; t++) {
        for (int s = 0; s < cols / kSuper; s++) {
            alignas(64) int8_t q[kSuper];
            int sums[16];
            float* meta = group.meta + (size_t)s * kSuperWords * n + t;
            quantise_run<kSuper>(src + t * stride + (size_t)s * kSuper, q, meta + kSuperScale, sums);
            interleave<kSuper>(q, group.data + (size_t)s * kSuper * n, n, t);
            put_sums(sums, meta, n);
            put(meta + kSuperMost * n, most_of(q));
        }
    }
}

void round_activations(Rounding rounding, const float* src, size_t stride, int cols, QuantGroup group) {
    if (rounding == kPerSuper) quantise_super(src, stride, cols, group);
    else quantise(src, stride, cols, group);
}
PK_END
