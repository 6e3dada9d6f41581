// Attention of few queries over f16 K and V straight from the page: nothing is converted to a tile that only they would read.
// Every element is the same chain as over tiles: scores in float32 over ascending channels, sums in pairs of bfloat16 over
// ascending tokens.
#pragma once
#include "attention_bf16.h"

PK_BEGIN
constexpr int kFewQueries = 8;

static inline bool halves_planes(const KvPlane& k, const KvPlane& v) {
    return k.type == kKvF16 && v.type == kKvF16 && k.head_dim % 32 == 0 && v.head_dim % W == 0 && narrow_plane(v);
}

// Up to kTileTokens consecutive rows of a plane inside a page; what lies behind `tokens` counts as zeros.
struct HalfRows {
    const uint8_t* page;
    const KvPlane& plane;
    size_t row;
    int tokens;
    size_t bytes() const { return (size_t)plane.row_channels * 2; }
    const uint8_t* at(int token) const { return page + plane.offset + (row + token) * bytes(); }
};

// As prefetch_rows, `count` lines from those bytes on.
PK_INLINE void prefetch_lines(const HalfRows& rows, const uint8_t* at, int count) {
    for (int i = 0; i < count; i++) __builtin_prefetch(at + 96 * rows.bytes() + 64 * i, 0, 2);
}

// Channels of 16 keys from `first` on: vector i has channel i below and 8 + i above, vector 8 + i the same of the next 16.
PK_INLINE void load_channels(const HalfRows& rows, int first, int channel, __m512i out[16]) {
    const __m512i order = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), next = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const uint8_t* at = rows.at(first) + 2 * channel;
    prefetch_lines(rows, rows.at(first) + channel / 32 * W * 64, W);
    const int tokens = rows.tokens - first;
    if (tokens >= W) each<16>(PK_EACH(i) { out[i] = _mm512_loadu_si512(at + i * rows.bytes()); });
    else each<16>(PK_EACH(i) { out[i] = i < tokens ? _mm512_loadu_si512(at + i * rows.bytes()) : _mm512_setzero_si512(); });
    transpose_words(out);
    transpose_words(out + 8);
    each<8>(PK_EACH(i) {
        const __m512i low = out[i], high = out[8 + i];
        out[i] = _mm512_permutex2var_epi64(low, order, high);
        out[8 + i] = _mm512_permutex2var_epi64(low, next, high);
    });
}

// scores[M][kTileTokens], rows kPartition apart, of M queries of `dim` channels.
template <int M>
static void half_scores(const HalfRows& keys, const float* queries, float* scores) {
    const int dim = keys.plane.head_dim;
    for (int first = 0; first < kTileTokens; first += W) {
        vf sums[M];
        each<M>(PK_EACH(m) { sums[m] = vzero(); });
        for (int d = 0; d < dim; d += 32) {
            __m512i channels[16];
            load_channels(keys, first, d, channels);
            each<32>(PK_EACH(c) {
                const __m512i two = channels[c / 16 * 8 + c % 8];
                const vf key = _mm512_cvtph_ps(c % 16 < 8 ? _mm512_castsi512_si256(two) : _mm512_extracti64x4_epi64(two, 1));
                each<M>(PK_EACH(m) { sums[m] = vfma(vset(queries[m * dim + d + c]), key, sums[m]); });
            });
        }
        each<M>(PK_EACH(m) { vstore(scores + m * kPartition + first, sums[m]); });
    }
}

// Two tokens' values of 16 channels in pairs, channels in the order of `shuffled`.
PK_INLINE __m512i value_pair(const HalfRows& rows, int token, int channel) {
    const __m256i none = _mm256_setzero_si256();
    const uint8_t* at = rows.at(token) + 2 * channel;
    const __m256i even = token < rows.tokens ? _mm256_loadu_si256((const __m256i*)at) : none;
    const __m256i odd = token + 1 < rows.tokens ? _mm256_loadu_si256((const __m256i*)(at + rows.bytes())) : none;
    const vf low = _mm512_cvtph_ps(_mm256_unpacklo_epi16(even, odd)), high = _mm512_cvtph_ps(_mm256_unpackhi_epi16(even, odd));
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
// Between that order and the plain one, either way.
PK_INLINE vf shuffled(vf x) {
    const __m512i order = _mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi64(order, _mm512_castps_si512(x)));
}

struct HalfSums {
    const uint16_t* weights;  // [M], kPartition apart
    float* sums;              // [M], `stride` apart
    size_t stride;
    bool fresh;
};

// N vectors of channels from `channel` on.
template <int M, int N>
static void half_columns(const HalfRows& values, const HalfSums& to, int channel) {
    vf sums[M * N];
    each<M * N>(PK_EACH(x) {
        const float* sum = to.sums + x / N * to.stride + channel + x % N * W;
        sums[x] = to.fresh ? vzero() : shuffled(vload(sum));
    });
    for (int t = 0; t < kTileTokens; t += 2) {
        prefetch_lines(values, values.at(t) + 2 * channel, (N * W + 31) / 32);
        prefetch_lines(values, values.at(t + 1) + 2 * channel, (N * W + 31) / 32);
        __m512i pairs[N];
        each<N>(PK_EACH(j) { pairs[j] = value_pair(values, t, channel + j * W); });
        each<M>(PK_EACH(m) {
            const __m512i weight = _mm512_set1_epi32(load_i32(to.weights + m * kPartition + t));
            each<N>(PK_EACH(j) { sums[m * N + j] = _mm512_dpbf16_ps(sums[m * N + j], (__m512bh)weight, (__m512bh)pairs[j]); });
        });
    }
    each<M * N>(PK_EACH(x) { vstore(to.sums + x / N * to.stride + channel + x % N * W, shuffled(sums[x])); });
}

template <int M>
static void half_sums(const HalfRows& values, const HalfSums& to) {
    constexpr int N = M <= 4 ? 4 : 2;
    int d = 0;
    for (; d + N * W <= values.plane.head_dim; d += N * W) half_columns<M, N>(values, to, d);
    for (; d < values.plane.head_dim; d += W) half_columns<M, 1>(values, to, d);
}

typedef void (*HalfScores)(const HalfRows&, const float*, float*);
typedef void (*HalfWeighing)(const HalfRows&, const HalfSums&);
static constexpr HalfScores half_scores_of[kFewQueries] = {half_scores<1>, half_scores<2>, half_scores<3>, half_scores<4>,
                                                           half_scores<5>, half_scores<6>, half_scores<7>, half_scores<8>};
static constexpr HalfWeighing half_sums_of[kFewQueries] = {half_sums<1>, half_sums<2>, half_sums<3>, half_sums<4>,
                                                           half_sums<5>, half_sums<6>, half_sums<7>, half_sums<8>};
PK_END
