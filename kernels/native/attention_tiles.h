// Pieces of attention: float32 outer-product multiply and conversion of stored K and V to float32 tiles.
#pragma once
#include "lanes.h"
#include "simd.h"

PK_BEGIN
#if defined(__AVX512F__)
constexpr int kPanel = 4;
constexpr int kQueries = 6;
static inline void transpose(vf r[W]) {
    vf t[W], u[W];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int g = 0; g < 16; g += 4)
        for (int c = 0; c < 2; c++) {
            const __m512d a = _mm512_castps_pd(t[g + c]), b = _mm512_castps_pd(t[g + 2 + c]);
            u[g + 2 * c] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            u[g + 2 * c + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    for (int c = 0; c < 4; c++) {
        const vf v0 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88), v1 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xdd);
        const vf v2 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
        const vf v3 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xdd);
        r[c] = _mm512_shuffle_f32x4(v0, v2, 0x88);
        r[4 + c] = _mm512_shuffle_f32x4(v1, v3, 0x88);
        r[8 + c] = _mm512_shuffle_f32x4(v0, v2, 0xdd);
        r[12 + c] = _mm512_shuffle_f32x4(v1, v3, 0xdd);
    }
}
#elif defined(__AVX2__)
constexpr int kPanel = 2;
constexpr int kQueries = 4;
static inline void transpose(vf r[W]) {
    vf t[W], u[W];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int g = 0; g < 8; g += 4)
        for (int c = 0; c < 2; c++) {
            const __m256d a = _mm256_castps_pd(t[g + c]), b = _mm256_castps_pd(t[g + 2 + c]);
            u[g + 2 * c] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
            u[g + 2 * c + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        }
    for (int c = 0; c < 4; c++) {
        r[c] = _mm256_permute2f128_ps(u[c], u[4 + c], 0x20);
        r[4 + c] = _mm256_permute2f128_ps(u[c], u[4 + c], 0x31);
    }
}
#else
constexpr int kPanel = 2;
constexpr int kQueries = 4;
static inline void transpose(vf r[W]) {
    for (int i = 0; i < W; i++)
        for (int j = i + 1; j < W; j++) {
            const float swap = r[i][j];
            r[i][j] = r[j][i];
            r[j][i] = swap;
        }
}
#endif

// c[m, n] = (accumulate ? c : 0) + a[m, k] * b[k, n], k ascending, one fused chain per element; b of floats or of f16.
template <class B>
struct ProductOf {
    const float* a;
    size_t lda;
    const B* b;
    size_t ldb;
    float* c;
    size_t ldc;
    int k;
    bool accumulate;
};
typedef ProductOf<float> Product;

static inline vf load_column(const float* p) { return vload(p); }
static inline vf load_column(const uint16_t* p) { return vload_half(p); }

// `ask` is called once for every k.
template <int M, int N, class B, class Ask>
static inline void product_block(const ProductOf<B>& p, int row, int col, const Ask& ask) {
    vf sums[M * N];
    float* c = p.c + row * p.ldc + col;
    each<M * N>(PK_EACH(x) { sums[x] = p.accumulate ? vload(c + x / N * p.ldc + x % N * W) : vzero(); });
    const float* a = p.a + row * p.lda;
    const B* b = p.b + col;
    for (int k = 0; k < p.k; k++, b += p.ldb) {
        ask();
        vf columns[N];
        each<N>(PK_EACH(j) { columns[j] = load_column(b + j * W); });
        each<M>(PK_EACH(i) {
            const vf x = vset(a[i * p.lda + k]);
            each<N>(PK_EACH(j) { sums[i * N + j] = vfma(x, columns[j], sums[i * N + j]); });
        });
    }
    each<M * N>(PK_EACH(x) { vstore(c + x / N * p.ldc + x % N * W, sums[x]); });
}

template <int N>
static void product_rows(const Product& p, int m, int col) {
    const auto nothing = [] {};
    int row = 0;
    for (; row + kQueries <= m; row += kQueries) product_block<kQueries, N>(p, row, col, nothing);
    const int left = m - row;
    if (left == 1) product_block<1, N>(p, row, col, nothing);
    else if (left == 2) product_block<2, N>(p, row, col, nothing);
    else if (left == 3) product_block<3, N>(p, row, col, nothing);
    else if (left == 4) product_block<(kQueries > 4 ? 4 : 1), N>(p, row, col, nothing);
    else if (left == 5) product_block<(kQueries > 5 ? 5 : 1), N>(p, row, col, nothing);
}

static inline void multiply(const Product& p, int m, int n) {
    int col = 0;
    for (; col + kPanel * W <= n; col += kPanel * W) product_rows<kPanel>(p, m, col);
    for (; col < n; col += W) product_rows<1>(p, m, col);
}

// Up to kTileTokens consecutive rows of a plane inside a page; `ahead`: as many bytes that are read some tiles later.
struct Rows {
    const uint8_t* page;
    size_t row;
    int tokens;
    const uint8_t* ahead;
};

static inline size_t row_bytes(const KvPlane& plane) {
    const size_t channels = (size_t)plane.row_channels;
    return plane.type == kKvF32 ? 4 * channels : plane.type == kKvQ8 ? channels : plane.type == kKvQ4 ? channels / 2 : 2 * channels;
}

// Into L2 (L1 has too few miss buffers), a few at a time: a burst of requests is worth nothing.
static inline void ask_rows(const KvPlane& plane, const Rows& rows, int first, int count) {
    const size_t bytes = row_bytes(plane);
    const uint8_t* p = rows.ahead + first * bytes;
    for (size_t at = 0; at < count * bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
}

// What is asked for while a tile is multiplied: the tile lies in L1, so all miss buffers are free for it, where making it waits
// for lines of L2. A line for every vector, or half of one.
struct Asking {
    const uint8_t* at;       // null: nothing
    int step;
    template <int COUNT>
    inline void ask() {
        each<COUNT>(PK_EACH(i) { __builtin_prefetch(at + i * step, 0, 2); });
        at += COUNT * step;
    }
};

template <int TYPE>
static inline vf load_stored(const uint8_t* page, const KvPlane& plane, size_t row, int d) {
    const uint8_t* data = page + plane.offset;
    const size_t at = row * plane.row_channels + d;
    if (TYPE == kKvF32) return vload((const float*)data + at);
    if (TYPE == kKvF16) return vload_half((const uint16_t*)data + at);
    if (TYPE == kKvBF16) return vload_bf16((const uint16_t*)data + at);
    const uint16_t* scales = (const uint16_t*)(page + plane.scale_offset) + row * (plane.row_channels / kBlock);
    const vf scale = vset(half_to_float(scales[d / kBlock]));
    if (TYPE == kKvQ8) return vmul(vload_i8((const int8_t*)data + at), scale);
    int8_t values[W];
    const uint8_t* nibbles = data + (at - d % kBlock) / 2 + d % 16;
    for (int i = 0; i < W; i++) values[i] = (int8_t)((d % kBlock < 16 ? nibbles[i] & 15 : nibbles[i] >> 4) - 8);
    return vmul(vload_i8(values), scale);
}

template <int TYPE>
static inline float load_one(const uint8_t* page, const KvPlane& plane, size_t row, int d) {
    const uint8_t* data = page + plane.offset;
    const size_t at = row * plane.row_channels + d;
    if (TYPE == kKvF32) return ((const float*)data)[at];
    if (TYPE == kKvF16) return half_to_float(((const uint16_t*)data)[at]);
    return bf16_to_float(((const uint16_t*)data)[at]);  // q8 and q4 head widths are multiples of 32
}

#if defined(__AVX2__)
#if defined(__AVX512BW__)
PK_INLINE vi low16(vi a, vi b) { return _mm512_unpacklo_epi16(a, b); }
PK_INLINE vi high16(vi a, vi b) { return _mm512_unpackhi_epi16(a, b); }
#else
PK_INLINE vi low16(vi a, vi b) { return _mm256_unpacklo_epi16(a, b); }
PK_INLINE vi high16(vi a, vi b) { return _mm256_unpackhi_epi16(a, b); }
#endif
// Words of 8 rows: vector i becomes, in lane l, word 8 l + i of every row.
static inline void transpose_words(vi r[8]) {
    vi t[8], u[8];
    each<4>(PK_EACH(i) {
        t[2 * i] = low16(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = high16(r[2 * i], r[2 * i + 1]);
    });
    each<4>(PK_EACH(i) {
        constexpr int a = i / 2 * 4 + i % 2;
        u[2 * i] = low32(t[a], t[a + 2]);
        u[2 * i + 1] = high32(t[a], t[a + 2]);
    });
    each<4>(PK_EACH(i) {
        r[2 * i] = low64(u[i], u[i + 4]);
        r[2 * i + 1] = high64(u[i], u[i + 4]);
    });
}
#endif

#if defined(__AVX512BW__)
// Lanes 2 PAIR and 2 PAIR + 1 of both: channels 16 PAIR + i and 16 PAIR + 8 + i of 16 keys, to rows of a tile.
template <int PAIR>
static inline void put_channels(__m512i first, __m512i second, float* channel) {
    const __m512i order = PAIR ? _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15) : _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i both = _mm512_permutex2var_epi64(first, order, second);
    vstore(channel, _mm512_cvtph_ps(_mm512_castsi512_si256(both)));
    vstore(channel + 8 * kTileTokens, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)));
}

// As load_keys, 32 channels of 16 keys at a time, as 16-bit words.
static void load_half_keys(const KvPlane& plane, const Rows& keys, float* tile) {
    const int tokens = keys.tokens;
    const size_t bytes = (size_t)plane.row_channels * 2;
    const uint8_t* rows = keys.page + plane.offset + keys.row * bytes;
    for (int first = 0; first < kTileTokens; first += W, rows += W * bytes)
        for (int d = 0; d < plane.head_dim; d += 32) {
            if (d == 0) ask_rows(plane, keys, first, W);
            __m512i low[8], high[8];
            each<8>(PK_EACH(i) {
                const uint8_t* at = rows + i * bytes + 2 * d;
                low[i] = first + i < tokens ? _mm512_loadu_si512(at) : _mm512_setzero_si512();
                high[i] = first + 8 + i < tokens ? _mm512_loadu_si512(at + 8 * bytes) : _mm512_setzero_si512();
            });
            transpose_words(low);
            transpose_words(high);
            float* channels = tile + (size_t)d * kTileTokens + first;
            each<8>(PK_EACH(i) {
                put_channels<0>(low[i], high[i], channels + i * kTileTokens);
                put_channels<1>(low[i], high[i], channels + (16 + i) * kTileTokens);
            });
        }
}
#endif

// Rows [row, row + tokens) transposed to tile[head_dim][kTileTokens]; the other columns become zero.
template <int TYPE>
static void load_keys(const KvPlane& plane, const Rows& keys, float* tile) {
    const auto& [page, row, tokens, ahead] = keys;
    const int whole = plane.head_dim / W * W;
    for (int first = 0; first < kTileTokens; first += W) {
        for (int d = 0; d < whole; d += W) {
            vf block[W];
            for (int i = 0; i < W; i++)
                block[i] = first + i < tokens ? load_stored<TYPE>(page, plane, row + first + i, d) : vzero();
            transpose(block);
            for (int i = 0; i < W; i++) vstore(tile + (size_t)(d + i) * kTileTokens + first, block[i]);
        }
        for (int d = whole; d < plane.head_dim; d++)
            for (int i = 0; i < W; i++)
                tile[(size_t)d * kTileTokens + first + i] =
                    first + i < tokens ? load_one<TYPE>(page, plane, row + first + i, d) : 0.0f;
    }
}

// Rows to tile[kTileTokens][width], width = head_dim padded with zeros to W; rows past `tokens` become zero.
template <int TYPE>
static void load_values(const KvPlane& plane, const Rows& values, float* tile, int width) {
    const auto& [page, row, tokens, ahead] = values;
    const int whole = plane.head_dim / W * W;
    for (int t = 0; t < kTileTokens; t++, tile += width) {
        if (t >= tokens) {
            for (int d = 0; d < width; d += W) vstore(tile + d, vzero());
            continue;
        }
        for (int d = 0; d < whole; d += W) vstore(tile + d, load_stored<TYPE>(page, plane, row + t, d));
        for (int d = whole; d < width; d++)
            tile[d] = d < plane.head_dim ? load_one<TYPE>(page, plane, row + t, d) : 0.0f;
    }
}

static inline void key_tile(const KvPlane& plane, const Rows& keys, float* tile) {
#if defined(__AVX512BW__)
    if (plane.type == kKvF16 && plane.head_dim % 32 == 0) return load_half_keys(plane, keys, tile);
#endif
    if (plane.type == kKvF32) load_keys<kKvF32>(plane, keys, tile);
    else if (plane.type == kKvF16) load_keys<kKvF16>(plane, keys, tile);
    else if (plane.type == kKvBF16) load_keys<kKvBF16>(plane, keys, tile);
    else if (plane.type == kKvQ4) load_keys<kKvQ4>(plane, keys, tile);
    else load_keys<kKvQ8>(plane, keys, tile);
}

static inline void value_tile(const KvPlane& plane, const Rows& values, float* tile, int width) {
    if (plane.type == kKvF32) load_values<kKvF32>(plane, values, tile, width);
    else if (plane.type == kKvF16) load_values<kKvF16>(plane, values, tile, width);
    else if (plane.type == kKvBF16) load_values<kKvBF16>(plane, values, tile, width);
    else if (plane.type == kKvQ4) load_values<kKvQ4>(plane, values, tile, width);
    else load_values<kKvQ8>(plane, values, tile, width);
}
PK_END
