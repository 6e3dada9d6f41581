// Attention over bf16 and q8 keys and over 16-bit and q8 values with pairs of bfloat16: two products per lane and instruction. Per element one chain
// over ascending pairs, whatever the number of queries.
#pragma once
#include "attention_tiles.h"
#include "lanes.h"

PK_BEGIN
PK_INLINE __m256i to_bf16(vf x) { return (__m256i)_mm512_cvtneps_pbh(x); }
PK_INLINE vf from_bf16(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }

// c[m, n] = (accumulate ? c : 0) + a[m, 2 k] * b[k][n][2].
struct PairProduct {
    const uint16_t* a;
    size_t lda;
    const uint16_t* b;       // ldb pairs to a row
    size_t ldb;
    float* c;
    size_t ldc;
    int pairs;
    bool accumulate;
};

template <int M, int N>
static inline void pair_block(const PairProduct& p, int row, int col) {
    vf sums[M * N];
    float* c = p.c + row * p.ldc + col;
    each<M * N>(PK_EACH(x) { sums[x] = p.accumulate ? vload(c + x / N * p.ldc + x % N * W) : vzero(); });
    const uint16_t* a = p.a + row * p.lda;
    const uint16_t* b = p.b + 2 * (size_t)col;
    for (int k = 0; k < p.pairs; k++, b += 2 * p.ldb) {
        __m512i columns[N];
        each<N>(PK_EACH(j) { columns[j] = _mm512_loadu_si512(b + 2 * j * W); });
        each<M>(PK_EACH(i) {
            const __m512i x = _mm512_set1_epi32(load_i32(a + i * p.lda + 2 * k));
            each<N>(PK_EACH(j) { sums[i * N + j] = _mm512_dpbf16_ps(sums[i * N + j], (__m512bh)x, (__m512bh)columns[j]); });
        });
    }
    each<M * N>(PK_EACH(x) { vstore(c + x / N * p.ldc + x % N * W, sums[x]); });
}

template <int N>
static void pair_rows(const PairProduct& p, int m, int col) {
    int row = 0;
    for (; row + 6 <= m; row += 6) pair_block<6, N>(p, row, col);
    switch (m - row) {
        case 1: pair_block<1, N>(p, row, col); break;
        case 2: pair_block<2, N>(p, row, col); break;
        case 3: pair_block<3, N>(p, row, col); break;
        case 4: pair_block<4, N>(p, row, col); break;
        case 5: pair_block<5, N>(p, row, col); break;
        default: break;
    }
}

static inline void multiply_pairs(const PairProduct& p, int m, int n) {
    int col = 0;
    for (; col + 4 * W <= n; col += 4 * W) pair_rows<4>(p, m, col);
    for (; col < n; col += W) pair_rows<1>(p, m, col);
}

// `count` floats to bfloat16 in whole vectors; `out` has room for them.
static inline void narrow(const float* x, int count, uint16_t* out) {
    int i = 0;
    for (; i + W <= count; i += W) _mm256_storeu_si256((__m256i*)(out + i), to_bf16(vload(x + i)));
    if (i < count) _mm256_storeu_si256((__m256i*)(out + i), to_bf16(vload_n(x + i, count - i)));
}

// One stored row; channels past head_dim up to a whole vector become zero.
template <int TYPE>
static inline void load_narrow(const uint8_t* page, const KvPlane& plane, size_t row, uint16_t* out) {
    const int whole = plane.head_dim / W * W;
    for (int d = 0; d < whole; d += W)
        _mm256_storeu_si256((__m256i*)(out + d), to_bf16(load_stored<TYPE>(page, plane, row, d)));
    for (int d = whole; d < plane.head_dim; d += W) {
        float rest[W] = {};
        for (int i = 0; d + i < plane.head_dim; i++) rest[i] = load_one<TYPE>(page, plane, row, d + i);
        _mm256_storeu_si256((__m256i*)(out + d), to_bf16(vload(rest)));
    }
}

constexpr int kMostChannels = 1024;  // wider heads take the float path

static inline bool narrow_plane(const KvPlane& plane) {
    return plane.type != kKvF32 && plane.head_dim <= kMostChannels - W;
}

// Keys to tile[head_dim / 2][kTileTokens][2], a lone last channel beside a zero; keys past `tokens` become zero.
template <int TYPE>
static void load_key_pairs(const KvPlane& plane, const Rows& keys, uint16_t* tile) {
    const auto& [page, row, tokens, ahead] = keys;
    alignas(64) uint16_t rows[kStripRows][kMostChannels + 32];  // no power of two: rows would share cache sets
    const int pairs = (plane.head_dim + 1) / 2;
    for (int first = 0; first < kTileTokens; first += kStripRows) {
        for (int r = 0; r < kStripRows; r++) {
            if (first + r < tokens) load_narrow<TYPE>(page, plane, row + first + r, rows[r]);
            else __builtin_memset(rows[r], 0, (size_t)(plane.head_dim + W) / W * W * 2);
        }
        for (int k = 0; k < pairs; k += 4) {
            __m512i groups[4];
            load_dwords(Strip{(const uint8_t*)rows[0], sizeof rows[0]}, 4 * (size_t)k, groups);
            for (int j = 0; j < imin(4, pairs - k); j++)
                _mm512_storeu_si512(tile + 2 * ((size_t)(k + j) * kTileTokens + first), groups[j]);
        }
    }
}

// Values to tile[kTileTokens / 2][width][2]: tokens in pairs; those past `tokens` become zero.
template <int TYPE>
static void load_value_pairs(const KvPlane& plane, const Rows& values, uint16_t* tile, int width) {
    const auto& [page, row, tokens, ahead] = values;
    alignas(64) uint16_t rows[2][kMostChannels];
    for (int t = 0; t < kTileTokens; t += 2, tile += 2 * width) {
        for (int i = 0; i < 2; i++) {
            if (t + i < tokens) load_narrow<TYPE>(page, plane, row + t + i, rows[i]);
            else __builtin_memset(rows[i], 0, (size_t)width * 2);
        }
        for (int d = 0; d < width; d += W) {
            const __m512i even = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)(rows[0] + d)));
            const __m512i odd = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)(rows[1] + d)));
            _mm512_storeu_si512(tile + 2 * d, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
        }
    }
}

// As load_value_pairs for f16 and whole vectors of channels: words of both tokens side by side, then rounded.
static void load_half_value_pairs(const KvPlane& plane, const Rows& values, uint16_t* tile) {
    const int tokens = values.tokens;
    const __m512i order = _mm512_setr_epi64(0, 1, 4, 5, 2, 3, 6, 7);
    const size_t bytes = (size_t)plane.row_channels * 2;
    const uint8_t* rows = values.page + plane.offset + values.row * bytes;
    for (int t = 0; t < kTileTokens; t += 2, rows += 2 * bytes, tile += 2 * plane.head_dim) {
        ask_rows(plane, values, t, 2);
        for (int d = 0; d < plane.head_dim; d += W) {
            const __m256i none = _mm256_setzero_si256();
            const __m256i even = t < tokens ? _mm256_loadu_si256((const __m256i*)(rows + 2 * d)) : none;
            const __m256i odd = t + 1 < tokens ? _mm256_loadu_si256((const __m256i*)(rows + bytes + 2 * d)) : none;
            const vf low = _mm512_cvtph_ps(_mm256_unpacklo_epi16(even, odd));
            const vf high = _mm512_cvtph_ps(_mm256_unpackhi_epi16(even, odd));
            const __m512i pairs = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(tile + 2 * d, _mm512_permutexvar_epi64(order, pairs));
        }
    }
}

static inline void key_pairs(const KvPlane& plane, const Rows& keys, uint16_t* tile) {
    if (plane.type == kKvBF16) load_key_pairs<kKvBF16>(plane, keys, tile);
    else load_key_pairs<kKvQ8>(plane, keys, tile);
}

static inline void value_pairs(const KvPlane& plane, const Rows& values, uint16_t* tile, int width) {
    if (plane.type == kKvF16 && plane.head_dim % W == 0) load_half_value_pairs(plane, values, tile);
    else if (plane.type == kKvF16) load_value_pairs<kKvF16>(plane, values, tile, width);
    else if (plane.type == kKvBF16) load_value_pairs<kKvBF16>(plane, values, tile, width);
    else load_value_pairs<kKvQ8>(plane, values, tile, width);
}
PK_END
