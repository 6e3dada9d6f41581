// quantise.cpp for a whole group of 8 tokens side by side: the same bits, a third of the time.
#pragma once

static inline __m512i larger_magnitude(__m512i best, const float* x) {
    const __m512i sign_off = _mm512_set1_epi32(kMagnitude);
    const __m512i low = _mm512_and_si512(_mm512_loadu_si512(x), sign_off);
    return _mm512_max_epi32(best, _mm512_max_epi32(low, _mm512_and_si512(_mm512_loadu_si512(x + 16), sign_off)));
}

// The largest lane of each of 8 vectors.
static inline __m256i largest_of_each(const __m512i v[8]) {
    __m256i half[8], pair[4], quad[2];
    each<8>(PK_EACH(t) { half[t] = _mm256_max_epi32(_mm512_castsi512_si256(v[t]), _mm512_extracti64x4_epi64(v[t], 1)); });
    each<4>(PK_EACH(i) {
        const __m256i a = half[2 * i], b = half[2 * i + 1];
        pair[i] = _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    });
    each<2>(PK_EACH(i) {
        const __m256i a = pair[2 * i], b = pair[2 * i + 1];
        quad[i] = _mm256_max_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    });
    return _mm256_max_epi32(_mm256_permute2x128_si256(quad[0], quad[1], 0x20),
                            _mm256_permute2x128_si256(quad[0], quad[1], 0x31));
}

static inline __m256 scales_of(__m256i largest) {
    const __mmask8 numbers = _mm256_cmplt_epi32_mask(largest, _mm256_set1_epi32(kInfinite));
    const __m256 none = _mm256_castsi256_ps(_mm256_set1_epi32(kNoNumber));
    return _mm256_mask_div_ps(none, numbers, _mm256_castsi256_ps(largest), _mm256_set1_ps(127.0f));
}

static inline __m256 block_scales(__m256 scale) {
#if defined(PK_SUM_START)
    const __m256i up = _mm256_add_epi32(_mm256_castps_si256(scale), _mm256_set1_epi32(2));
    return _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(~3)));
#else
    return scale;
#endif
}

static inline void put_inverses(__m256i largest, float inverses[8]) {
    const __m256 value = _mm256_castsi256_ps(largest);
    const __mmask8 counts = _mm256_cmp_ps_mask(value, _mm256_set1_ps(kSmallest), _CMP_GT_OQ);
    _mm256_store_ps(inverses, _mm256_maskz_div_ps(counts, _mm256_set1_ps(127.0f), value));
}

static inline __m256i sum_of_bytes(__m512i a, __m512i b) {
    const __m512i ones = _mm512_set1_epi8(1);
    const __m512i sum = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, a), ones, b);
    return _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
}

// 32 channels to data[4-channel group][token][4]; sums of the first and of the last 16 channels of each token, and in `most`
// what a sum of 16 magnitudes raises.
static inline void round_eight(const float* src, size_t stride, const float inverses[8], int8_t* data, __m256i sums[2],
                               __m256i& most) {
    __m512i words[8], bytes[4];
    each<8>(PK_EACH(t) {
        const __m512 inverse = _mm512_set1_ps(inverses[t]);
        const __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(src + t * stride), inverse));
        const __m512i high = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(src + t * stride + 16), inverse));
        words[t] = _mm512_packs_epi32(low, high);
    });
    // Lane i: groups i and i + 4 of one token, then of the next.
    each<4>(PK_EACH(i) { bytes[i] = _mm512_packs_epi16(words[2 * i], words[2 * i + 1]); });
    const __m512i near = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), far = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    each<2>(PK_EACH(half) {
        constexpr int kPick = half ? 0xdd : 0x88;
        const __m512 b0 = _mm512_castsi512_ps(bytes[0]), b1 = _mm512_castsi512_ps(bytes[1]);
        const __m512 b2 = _mm512_castsi512_ps(bytes[2]), b3 = _mm512_castsi512_ps(bytes[3]);
        const __m512i first = _mm512_castps_si512(_mm512_shuffle_ps(b0, b1, kPick));
        const __m512i last = _mm512_castps_si512(_mm512_shuffle_ps(b2, b3, kPick));
        const __m512i a = _mm512_permutex2var_epi64(first, near, last), b = _mm512_permutex2var_epi64(first, far, last);
        _mm512_storeu_si512(data + 128 * half, a);
        _mm512_storeu_si512(data + 128 * half + 64, b);
        sums[half] = sum_of_bytes(a, b);
        most = _mm256_max_epi32(most, sum_of_bytes(_mm512_abs_epi8(a), _mm512_abs_epi8(b)));
    });
}

static inline void put_eight(float* at, __m256i words) { _mm256_storeu_si256((__m256i*)at, words); }
static inline __m256i negative_shifted(__m256i sum, int bits) {
    return _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sum, bits));
}

static void quantise_eight(const float* src, size_t stride, int blocks, QuantGroup group) {
    float* meta = group.meta;
    for (int b = 0; b < blocks; b++, src += kBlock, meta += 8 * kBlockWords) {
        __m512i magnitudes[8];
        each<8>(PK_EACH(t) { magnitudes[t] = larger_magnitude(_mm512_setzero_si512(), src + t * stride); });
        const __m256i largest = largest_of_each(magnitudes);
        const __m256 scale = block_scales(scales_of(largest));
        alignas(32) float inverses[8];
        put_inverses(largest, inverses);
        __m256i halves[2], unused = _mm256_setzero_si256();
        round_eight(src, stride, inverses, group.data + (size_t)b * 8 * kBlock, halves, unused);
        const __m256i sum = _mm256_add_epi32(halves[0], halves[1]);
        _mm256_storeu_ps(meta, scale);
        _mm256_storeu_ps(meta + 8, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(sum)));
        const __m256i start = _mm256_set1_epi32(kSumStart);
        put_eight(meta + 8 * kBlockOffset8, _mm256_sub_epi32(start, _mm256_slli_epi32(sum, 3)));
        put_eight(meta + 8 * kBlockOffset128, _mm256_sub_epi32(start, _mm256_slli_epi32(sum, 7)));
#if defined(PK_SUM_START)
        _mm256_storeu_ps(meta + 8 * kBlockStart, _mm256_mul_ps(scale, _mm256_set1_ps(-kSumStartValue)));
#endif
        for (int i = 0; i < 2 && group.halves; i++) put_eight(group.halves + ((size_t)b * 2 + i) * 8, negative_shifted(halves[i], 7));
    }
}

// See SuperWord.
static inline void put_pairs(const __m256i* sums, int count, float* meta) {
    for (int i = 0; i < count; i++) {
        const int at = i / 2 * 4 + i % 2;
        const __m256i low = _mm256_and_si256(sums[at], _mm256_set1_epi32(0xffff));
        put_eight(meta + 8 * i, _mm256_or_si256(low, _mm256_slli_epi32(sums[at + 2], 16)));
    }
}

static void quantise_super_eight(const float* src, size_t stride, int superblocks, QuantGroup group) {
    float* meta = group.meta;
    int8_t* data = group.data;
    for (int s = 0; s < superblocks; s++, src += kSuper, data += 8 * kSuper, meta += 8 * kSuperWords) {
        __m512i magnitudes[8];
        each<8>(PK_EACH(t) {
            magnitudes[t] = _mm512_setzero_si512();
            for (int i = 0; i < kSuper; i += 32) magnitudes[t] = larger_magnitude(magnitudes[t], src + t * stride + i);
        });
        const __m256i largest = largest_of_each(magnitudes);
        alignas(32) float inverses[8];
        put_inverses(largest, inverses);
        _mm256_storeu_ps(meta, scales_of(largest));
        __m256i halves[16], sums[8], most = _mm256_setzero_si256();
        for (int b = 0; b < 8; b++) {
            round_eight(src + kBlock * b, stride, inverses, data + (size_t)b * 8 * kBlock, halves + 2 * b, most);
            sums[b] = _mm256_add_epi32(halves[2 * b], halves[2 * b + 1]);
            put_eight(meta + 8 * (kSuperOffsets + b), negative_shifted(sums[b], 7));
        }
        for (int i = 0; i < 16; i++) put_eight(meta + 8 * (kSuperHalfOffsets + i), negative_shifted(halves[i], 7));
        put_eight(meta + 8 * kSuperMost, most);
        put_pairs(sums, 4, meta + 8 * kSuperPairs);
        put_pairs(halves, 8, meta + 8 * kSuperHalfPairs);
    }
}
