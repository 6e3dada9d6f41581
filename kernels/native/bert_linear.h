// Activations as bytes times packed weights. The integer sums are the same at every level.
#pragma once
#include "bert_attention.h"

PK_BEGIN
// x = low + scale * byte, per row and block.
struct ByteRows {
    uint8_t* data;  // [rows, cols]
    float* scales;  // [rows, cols / block]
    float* lows;    // as scales
};

static void to_bytes(const float* x, int cols, int block, uint8_t* out, float* scales, float* lows) {
    for (int b = 0; b < cols / block; b++, x += block, out += block) {
        vf most = vload(x), least = most;
        for (int i = W; i < block; i += W) {
            most = vmax(most, vload(x + i));
            least = vmin(least, vload(x + i));
        }
        const float low = -most_of(vsub(vzero(), least)), range = most_of(most) - low;
        const bool flat = range < 1e-30f;
        scales[b] = flat ? 0.0f : range / 255.0f;
        lows[b] = low;
        const vf inverse = vset(flat ? 0.0f : 255.0f / range);
        for (int i = 0; i < block; i += W) {
            const vf q = vround(vmul(vsub(vload(x + i), vset(low)), inverse));
#if defined(__AVX512F__)
            _mm_storeu_si128((__m128i*)(out + i), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(q)));
#else
            float rounded[W];
            vstore(rounded, vmin(q, vset(255.0f)));
            for (int j = 0; j < W; j++) out[i + j] = (uint8_t)(int)rounded[j];
#endif
        }
    }
}

#if defined(__AVX512VNNI__)
constexpr int kTileTokens = 6;
constexpr int kTileStrips = 2;

template <int T, int BLOCK>
static void product_tile(const PackedLinear& w, int strip, ByteRows a, float* out, size_t out_stride) {
    const int blocks = w.cols / BLOCK;
    const size_t strip_bytes = (size_t)w.cols * kBertStrip, strip_scales = (size_t)blocks * kBertStrip;
    const int8_t* q0 = w.weights + strip * strip_bytes;
    const int8_t* q1 = q0 + strip_bytes;
    __m512 sums[T][2];
    for (int t = 0; t < T; t++) sums[t][0] = sums[t][1] = _mm512_setzero_ps();
    for (int b = 0; b < blocks; b++) {
        const size_t at = strip * strip_scales + (size_t)b * kBertStrip;
        __m512i dots[T][2];
        for (int t = 0; t < T; t++) dots[t][0] = dots[t][1] = _mm512_setzero_si512();
        for (int k = 0; k < BLOCK; k += 4, q0 += 64, q1 += 64) {
            const __m512i w0 = _mm512_loadu_si512(q0), w1 = _mm512_loadu_si512(q1);
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) {
                int32_t four;
                __builtin_memcpy(&four, a.data + (size_t)t * w.cols + b * BLOCK + k, 4);
                const __m512i x = _mm512_set1_epi32(four);
                dots[t][0] = _mm512_dpbusd_epi32(dots[t][0], x, w0);
                dots[t][1] = _mm512_dpbusd_epi32(dots[t][1], x, w1);
            }
        }
        const __m512 s0 = _mm512_loadu_ps(w.scales + at), s1 = _mm512_loadu_ps(w.scales + at + strip_scales);
        const __m512 all0 = _mm512_loadu_ps(w.sums + at), all1 = _mm512_loadu_ps(w.sums + at + strip_scales);
        for (int t = 0; t < T; t++) {
            const __m512 s = _mm512_set1_ps(a.scales[(size_t)t * blocks + b]);
            const __m512 low = _mm512_set1_ps(a.lows[(size_t)t * blocks + b]);
            sums[t][0] = _mm512_fmadd_ps(low, all0, sums[t][0]);
            sums[t][1] = _mm512_fmadd_ps(low, all1, sums[t][1]);
            sums[t][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[t][0]), _mm512_mul_ps(s, s0), sums[t][0]);
            sums[t][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[t][1]), _mm512_mul_ps(s, s1), sums[t][1]);
        }
    }
    const float* bias = w.bias + strip * kBertStrip;
    for (int t = 0; t < T; t++)
        for (int s = 0; s < 2; s++)
            _mm512_storeu_ps(out + t * out_stride + 16 * s, _mm512_add_ps(sums[t][s], _mm512_loadu_ps(bias + 16 * s)));
}
#else
constexpr int kTileTokens = 1;
constexpr int kTileStrips = 1;

static void block_dots(const int8_t* w, const uint8_t* a, int block, int32_t dots[kBertStrip]) {
#if defined(__AVX2__)
    __m256i sums[4];
    for (int i = 0; i < 4; i++) sums[i] = _mm256_setzero_si256();
    for (int k = 0; k < block; k += 4, w += 64) {
        uint32_t four;
        __builtin_memcpy(&four, a + k, 4);
        const __m256i pairs = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)four)));
        for (int i = 0; i < 4; i++) {
            const __m256i rows = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(w + 16 * i)));
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(rows, pairs));
        }
    }
    int32_t halves[8];
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_si256((__m256i*)halves, sums[i]);
        for (int r = 0; r < 4; r++) dots[4 * i + r] = halves[2 * r] + halves[2 * r + 1];
    }
#else
    for (int r = 0; r < kBertStrip; r++) dots[r] = 0;
    for (int k = 0; k < block; k += 4, w += 64)
        for (int r = 0; r < kBertStrip; r++)
            for (int c = 0; c < 4; c++) dots[r] += w[4 * r + c] * a[k + c];
#endif
}

template <int T, int BLOCK>
static void product_tile(const PackedLinear& w, int strip, ByteRows a, float* out, size_t) {
    static_assert(T == 1, "");
    const int blocks = w.cols / BLOCK;
    const int8_t* q = w.weights + (size_t)strip * w.cols * kBertStrip;
    float sums[kBertStrip] = {};
    for (int b = 0; b < blocks; b++, q += BLOCK * kBertStrip) {
        const size_t at = ((size_t)strip * blocks + b) * kBertStrip;
        int32_t dots[kBertStrip];
        block_dots(q, a.data + b * BLOCK, BLOCK, dots);
        for (int r = 0; r < kBertStrip; r++)
            sums[r] += a.lows[b] * w.sums[at + r] + (float)dots[r] * (a.scales[b] * w.scales[at + r]);
    }
    for (int r = 0; r < kBertStrip; r++) out[r] = sums[r] + w.bias[strip * kBertStrip + r];
}
#endif

typedef void (*ProductTile)(const PackedLinear&, int, ByteRows, float*, size_t);

#if defined(__AVX512VNNI__)
template <int BLOCK>
static constexpr ProductTile product_tiles[kTileTokens] = {
    product_tile<1, BLOCK>, product_tile<2, BLOCK>, product_tile<3, BLOCK>,
    product_tile<4, BLOCK>, product_tile<5, BLOCK>, product_tile<6, BLOCK>};
#else
template <int BLOCK>
static constexpr ProductTile product_tiles[kTileTokens] = {product_tile<1, BLOCK>};
#endif

static ByteRows rows_from(ByteRows a, int row, int cols, int block) {
    const size_t scales = (size_t)row * (cols / block);
    return {a.data + (size_t)row * cols, a.scales + scales, a.lows + scales};
}

// Strips `from` to before `to` of up to kTileTokens tokens; `out` is where the first strip's numbers go.
static void product_part(const PackedLinear& w, int from, int to, ByteRows rows, int tokens, float* out, size_t stride) {
    const ProductTile* tiles = w.block == kBertFine ? product_tiles<kBertFine> : product_tiles<kBertBlock>;
    for (int strip = from; strip < to; strip += kTileStrips, out += kTileStrips * kBertStrip)
        tiles[tokens - 1](w, strip, rows, out, stride);
}

// out [tokens, rows of w].
static void product(const PackedLinear& w, ByteRows a, int tokens, float* out) {
    for (int strip = 0; strip < w.rows / kBertStrip; strip += kTileStrips)
        for (int token = 0; token < tokens; token += kTileTokens)
            product_part(w, strip, strip + kTileStrips, rows_from(a, token, w.cols, w.block),
                         imin(kTileTokens, tokens - token), out + (size_t)token * w.rows + strip * kBertStrip, w.rows);
}

// Bytes of f(product): a block of outputs is done while it is near. `out` [tokens, rows of w], blocks of kBertBlock.
template <class F>
static void product_bytes(const PackedLinear& w, ByteRows a, int tokens, const F& f, ByteRows out) {
    constexpr int kStrips = kBertBlock / kBertStrip;
    for (int block = 0; block < w.rows / kBertBlock; block++)
        for (int token = 0; token < tokens; token += kTileTokens) {
            const int count = imin(kTileTokens, tokens - token);
            alignas(64) float sums[kTileTokens * kBertBlock];
            product_part(w, block * kStrips, (block + 1) * kStrips, rows_from(a, token, w.cols, w.block), count, sums, kBertBlock);
            for (int i = 0; i < count * kBertBlock; i += W) vstore(sums + i, f(vload(sums + i)));
            for (int t = 0; t < count; t++) {
                const ByteRows row = rows_from(out, token + t, w.rows, kBertBlock);
                to_bytes(sums + t * kBertBlock, kBertBlock, kBertBlock, row.data + block * kBertBlock, row.scales + block,
                         row.lows + block);
            }
        }
}
PK_END
