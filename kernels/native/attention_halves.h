// Attention of few queries over f16 K and V without float tiles, which only they would read: keys are turned as they are
// stored, values read from the page, and both become floats where they are multiplied.
// Every element is the same chain as over tiles: scores in float32 over ascending channels, sums over ascending tokens, in
// pairs of bfloat16 where the level multiplies them.
#pragma once
#include "attention_tiles.h"
#if defined(__AVX512BF16__)
#include "attention_bf16.h"
#endif

PK_BEGIN
constexpr int kFewQueries = 8;

static inline bool halves_planes(const KvPlane& k, const KvPlane& v) {
#if defined(__AVX512BF16__)
    if (!narrow_plane(v)) return false;
#endif
    return k.type == kKvF16 && v.type == kKvF16 && k.head_dim % (2 * W) == 0 && v.head_dim % W == 0;
}

// 8 keys from `first` on, channels [d, d + 2 W), as words.
PK_INLINE void load_eight(const KvPlane& plane, const Rows& keys, int first, int d, vi out[8]) {
    const size_t bytes = row_bytes(plane);
    const uint8_t* at = keys.page + plane.offset + (keys.row + first) * bytes + 2 * d;
    const int tokens = keys.tokens - first;
    if (tokens >= 8) each<8>(PK_EACH(i) { out[i] = iload(at + i * bytes); });
    else each<8>(PK_EACH(i) { out[i] = i < tokens ? iload(at + i * bytes) : iset(0); });
    transpose_words(out);
}

// Keys to tile[head_dim][kTileTokens].
static void half_keys(const KvPlane& plane, const Rows& keys, uint16_t* tile) {
#if defined(__AVX512F__)
    const __m512i order[2] = {_mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15)};
#endif
    for (int first = 0; first < kTileTokens; first += 16)
        for (int d = 0; d < plane.head_dim; d += 2 * W) {
            vi low[8], high[8];
            load_eight(plane, keys, first, d, low);
            load_eight(plane, keys, first + 8, d, high);
            uint16_t* to = tile + (size_t)d * kTileTokens + first;
            each<8>(PK_EACH(i) {
                each<W / 8>(PK_EACH(half) {
#if defined(__AVX512F__)
                    const vi both = _mm512_permutex2var_epi64(low[i], order[half], high[i]);
                    const __m256i first_channel = _mm512_castsi512_si256(both), other = _mm512_extracti64x4_epi64(both, 1);
#else
                    const vi first_channel = _mm256_permute2x128_si256(low[i], high[i], 0x20);
                    const vi other = _mm256_permute2x128_si256(low[i], high[i], 0x31);
#endif
                    _mm256_storeu_si256((__m256i*)(to + (16 * half + i) * kTileTokens), first_channel);
                    _mm256_storeu_si256((__m256i*)(to + (16 * half + 8 + i) * kTileTokens), other);
                });
            });
        }
}

template <int N>
PK_INLINE void ask(const uint8_t*& ahead) {
    each<(N * W + 31) / 32>(PK_EACH(i) { __builtin_prefetch(ahead + 64 * i, 0, 2); });
    ahead += 2 * N * W;
}

// What registers hold.
template <int M>
constexpr int kHalfPanel = W < 16 ? (M <= 2 ? 4 : M <= 6 ? 2 : 1) : (M <= 6 ? 4 : 2);

// `ahead`: asked for meanwhile, as many bytes as b has.
typedef ProductOf<uint16_t> HalfProduct;
template <int M, int N>
static void half_block(const HalfProduct& p, int col, const uint8_t*& ahead) {
    product_block<M, N>(p, 0, col, [&]() __attribute__((always_inline)) { ask<N>(ahead); });
}

template <int M>
static void half_product(const HalfProduct& p, int n, const uint8_t* ahead) {
    constexpr int N = kHalfPanel<M>;
    int col = 0;
    for (; col + N * W <= n; col += N * W) half_block<M, N>(p, col, ahead);
    for (; col < n; col += W) half_block<M, 1>(p, col, ahead);
}

typedef void (*HalfProducts)(const HalfProduct&, int, const uint8_t*);
static constexpr HalfProducts half_product_of[kFewQueries] = {half_product<1>, half_product<2>, half_product<3>, half_product<4>,
                                                              half_product<5>, half_product<6>, half_product<7>, half_product<8>};

// scores[count][kTileTokens], rows kPartition apart, of queries of head_dim channels.
static void half_scores(const KvPlane& plane, const Rows& keys, const float* queries, int count, uint16_t* tile, float* scores) {
    const size_t dim = (size_t)plane.head_dim;
    half_keys(plane, keys, tile);
    half_product_of[count - 1](HalfProduct{queries, dim, tile, kTileTokens, scores, kPartition, (int)dim, false}, kTileTokens,
                               keys.ahead);
}

#if defined(__AVX512BF16__)
typedef uint16_t Weight;
#else
typedef float Weight;
#endif
struct HalfSums {
    const Weight* weights;    // [count], kPartition apart; zeros where no token is
    float* sums;              // [count], `stride` apart
    size_t stride;
    bool fresh;
};

#if defined(__AVX512BF16__)
// Two tokens' values of 16 channels in pairs, channels in the order of `shuffled`.
PK_INLINE __m512i value_pair(const KvPlane& plane, const Rows& rows, int token, int channel) {
    const __m256i none = _mm256_setzero_si256();
    const size_t bytes = row_bytes(plane);
    const uint8_t* at = rows.page + plane.offset + (rows.row + token) * bytes + 2 * channel;
    const __m256i even = token < rows.tokens ? _mm256_loadu_si256((const __m256i*)at) : none;
    const __m256i odd = token + 1 < rows.tokens ? _mm256_loadu_si256((const __m256i*)(at + bytes)) : none;
    const vf low = _mm512_cvtph_ps(_mm256_unpacklo_epi16(even, odd)), high = _mm512_cvtph_ps(_mm256_unpackhi_epi16(even, odd));
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
// Between that order and the plain one, either way.
PK_INLINE vf shuffled(vf x) {
    const __m512i order = _mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi64(order, _mm512_castps_si512(x)));
}

// N vectors of channels from `channel` on.
template <int M, int N>
static void half_columns(const KvPlane& plane, const Rows& values, const HalfSums& to, int channel, const uint8_t*& ahead) {
    vf sums[M * N];
    each<M * N>(PK_EACH(x) {
        const float* sum = to.sums + x / N * to.stride + channel + x % N * W;
        sums[x] = to.fresh ? vzero() : shuffled(vload(sum));
    });
    for (int t = 0; t < kTileTokens; t += 2) {
        ask<2 * N>(ahead);
        __m512i pairs[N];
        each<N>(PK_EACH(j) { pairs[j] = value_pair(plane, values, t, channel + j * W); });
        each<M>(PK_EACH(m) {
            const __m512i weight = _mm512_set1_epi32(load_i32(to.weights + m * kPartition + t));
            each<N>(PK_EACH(j) { sums[m * N + j] = _mm512_dpbf16_ps(sums[m * N + j], (__m512bh)weight, (__m512bh)pairs[j]); });
        });
    }
    each<M * N>(PK_EACH(x) { vstore(to.sums + x / N * to.stride + channel + x % N * W, shuffled(sums[x])); });
}

template <int M>
static void half_pairs(const KvPlane& plane, const Rows& values, const HalfSums& to) {
    constexpr int N = M <= 4 ? 4 : 2;
    const uint8_t* ahead = values.ahead;
    int d = 0;
    for (; d + N * W <= plane.head_dim; d += N * W) half_columns<M, N>(plane, values, to, d, ahead);
    for (; d < plane.head_dim; d += W) half_columns<M, 1>(plane, values, to, d, ahead);
}

typedef void (*HalfPairs)(const KvPlane&, const Rows&, const HalfSums&);
static constexpr HalfPairs half_pairs_of[kFewQueries] = {half_pairs<1>, half_pairs<2>, half_pairs<3>, half_pairs<4>,
                                                         half_pairs<5>, half_pairs<6>, half_pairs<7>, half_pairs<8>};

static void half_sums(const KvPlane& plane, const Rows& values, const HalfSums& to, int count) {
    half_pairs_of[count - 1](plane, values, to);
}
#else
static void half_sums(const KvPlane& plane, const Rows& values, const HalfSums& to, int count) {
    const uint16_t* rows = (const uint16_t*)(values.page + plane.offset + values.row * row_bytes(plane));
    half_product_of[count - 1](HalfProduct{to.weights, kPartition, rows, (size_t)plane.row_channels, to.sums, to.stride,
                                           values.tokens, !to.fresh}, plane.head_dim, values.ahead);
}
#endif
PK_END
