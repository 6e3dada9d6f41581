// Attention over q8 and q4 keys and values in exact integers. Scores: queries rounded to int8 per 32 channels, one scaled sum per
// block, blocks ascending. Values: weight x scale of the value's block as 14 bits in two planes of 7, relative to the
// largest of the query and partition; sums of a partition are exact, so their order is free.
#pragma once
#include "attention_tiles.h"
#include "lanes.h"

PK_BEGIN
constexpr int kWeightBits = 7;                      // of a plane
constexpr float kLargestWeight = 16383.0f;

// Queries as written by quantise() one by one: data [query][dim]; meta [query][block][kBlockWords]: the scale, and -128 * sum counted from 0.
struct ByteQueries {
    int8_t* data;
    float* meta;
    int dim;
};

static inline size_t byte_key_tile(int dim) { return (size_t)kTileTokens * (dim + dim / kBlock * 4); }

static void byte_queries(const ByteQueries& out, int query, const float* x, float factor) {
    const int blocks = out.dim / kBlock;
    float* meta = out.meta + (size_t)query * blocks * kBlockWords;
    quantise(x, out.dim, out.dim, QuantGroup{out.data + (size_t)query * out.dim, meta, nullptr, 1});
    for (int b = 0; b < blocks; b++, meta += kBlockWords) {
        const int32_t offset = load_i32(meta + kBlockOffset128) - kSumStart;
        __builtin_memcpy(meta + kBlockOffset128, &offset, 4);
        meta[kBlockScale] *= factor;
    }
}

// Scales of rows [row, row + 16), block by block, `stride` floats apart.
static inline void byte_scales(const uint8_t* page, const KvPlane& plane, size_t row, float* out, size_t stride) {
    const int blocks = plane.head_dim / kBlock, stored = plane.row_channels / kBlock;
    const uint16_t* scales = (const uint16_t*)(page + plane.scale_offset) + row * stored;
    if (blocks == 2 && stored == 2) {
        const vf low = vload_half(scales), high = vload_half(scales + W);
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        vstore(out, _mm512_permutex2var_ps(low, even, high));
        vstore(out + stride, _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high));
        return;
    }
    if (blocks == 4 && stored == 4) {
        const __m512i low = _mm512_loadu_si512(scales), high = _mm512_loadu_si512(scales + 2 * W);
        const __m512i fourth = _mm512_setr_epi32(0x00040000, 0x000c0008, 0x00140010, 0x001c0018, 0x00240020, 0x002c0028,
                                                 0x00340030, 0x003c0038, 0, 0, 0, 0, 0, 0, 0, 0);
        each<4>(PK_EACH(b) {
            const __m512i words = _mm512_permutex2var_epi16(low, _mm512_add_epi16(fourth, _mm512_set1_epi16(b)), high);
            vstore(out + b * stride, _mm512_cvtph_ps(_mm512_castsi512_si256(words)));
        });
        return;
    }
    for (int b = 0; b < blocks; b++)
        vstore(out + b * stride, load_halves(Strip{(const uint8_t*)scales, (size_t)stored * 2}, (size_t)b * 2));
}

// A strip of 16 q4 keys: nibbles - 8 as bytes + 128.
static void nibble_keys(const KvPlane& plane, const uint8_t* rows, uint8_t* tile) {
    const Strip strip = {rows, (size_t)plane.row_channels / 2};
    for (int c = 0; c < plane.head_dim; c += kBlock, tile += 512) {
        __m512i packed[4], bytes8[8];
        load_dwords(strip, (size_t)c / 2, packed);
        split_nibbles(packed, bytes8);
        for (int j = 0; j < 8; j++) _mm512_storeu_si512(tile + 64 * j, _mm512_add_epi8(bytes8[j], _mm512_set1_epi8(120)));
    }
}

// Keys to strips of 16: tile[strip][dim / 4][16][4], bytes + 128, then scales [block][kTileTokens]. Rows that no query
// sees are read as they are: their scores get masked.
static void byte_keys(const KvPlane& plane, const Rows& keys, uint8_t* tile) {
    const int dim = plane.head_dim;
    const size_t bytes = row_bytes(plane);
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    float* scales = (float*)(tile + (size_t)kTileTokens * dim);
    for (int first = 0; first < kTileTokens; first += kStripRows) {
        const uint8_t* rows = keys.page + plane.offset + (keys.row + first) * bytes;
        if (keys.ahead) ask_rows(plane, keys, first, kStripRows);
        if (plane.type == kKvQ4) nibble_keys(plane, rows, tile);
        else {
            const Strip strip = {rows, bytes};
            for (int c = 0; c < dim; c += 16) {
                __m512i groups[4];
                load_dwords(strip, (size_t)c, groups);
                for (int j = 0; j < 4; j++)
                    _mm512_storeu_si512(tile + 16 * c + 64 * j, _mm512_xor_si512(groups[j], flip));
            }
        }
        tile += (size_t)kStripRows * dim;
        byte_scales(keys.page, plane, keys.row + first, scales + first, kTileTokens);
    }
}

template <int M, int N, bool ASKS>
static inline void byte_score_block(const ByteQueries& queries, int query, const uint8_t* tile, int strip, float* out,
                                    Asking& asking) {
    const int dim = queries.dim, blocks = dim / kBlock;
    const size_t meta_row = (size_t)blocks * kBlockWords, strip_bytes = (size_t)kStripRows * dim;
    const int8_t* data = queries.data + (size_t)query * dim;
    const float* meta = queries.meta + query * meta_row;
    const uint8_t* keys = tile + strip * strip_bytes;
    const float* scales = (const float*)(tile + (size_t)kTileTokens * dim) + strip * kStripRows;
    vf sums[M * N];
    each<M * N>(PK_EACH(x) { sums[x] = vzero(); });
    for (int b = 0; b < blocks; b++, keys += 512, data += kBlock, scales += kTileTokens, meta += kBlockWords) {
        __m512i dots[M * N];
        each<M * N>(PK_EACH(x) { dots[x] = _mm512_set1_epi32(load_i32(meta + x / N * meta_row + kBlockOffset128)); });
        each<8>(PK_EACH(j) {
            if constexpr (ASKS) asking.ask<N>();
            __m512i columns[N];
            each<N>(PK_EACH(n) { columns[n] = _mm512_loadu_si512(keys + n * strip_bytes + 64 * j); });
            each<M>(PK_EACH(i) {
                const __m512i q = _mm512_set1_epi32(load_i32(data + (size_t)i * dim + 4 * j));
                each<N>(PK_EACH(n) { dots[i * N + n] = _mm512_dpbusd_epi32(dots[i * N + n], columns[n], q); });
            });
        });
        each<M * N>(PK_EACH(x) {
            const vf dot = vmul(_mm512_cvtepi32_ps(dots[x]), vload(scales + x % N * W));
            sums[x] = vfma(dot, vset(meta[x / N * meta_row]), sums[x]);
        });
    }
    each<M * N>(PK_EACH(x) { vstore(out + (size_t)(x / N) * kPartition + x % N * W, sums[x]); });
}

template <int M, int N>
static void byte_score_rows(const ByteQueries& queries, int query, const uint8_t* tile, float* out, Asking& asking) {
    const bool asks = asking.at;
    for (int strip = 0; strip < kTileTokens / kStripRows; strip += N) {
        float* scores = out + strip * kStripRows;
        if (asks) byte_score_block<M, N, true>(queries, query, tile, strip, scores, asking);
        else byte_score_block<M, N, false>(queries, query, tile, strip, scores, asking);
    }
    asking.at = nullptr;
}

// Queries [first, first + count) against a tile; out[query - first][kPartition].
static void byte_scores(const ByteQueries& queries, int first, int count, const uint8_t* tile, float* out, Asking asking) {
    int i = 0;
    for (; i + 6 <= count; i += 6) byte_score_rows<6, 2>(queries, first + i, tile, out + (size_t)i * kPartition, asking);
    out += (size_t)i * kPartition;
    switch (count - i) {
        case 1: byte_score_rows<1, 4>(queries, first + i, tile, out, asking); break;
        case 2: byte_score_rows<2, 4>(queries, first + i, tile, out, asking); break;
        case 3: byte_score_rows<3, 4>(queries, first + i, tile, out, asking); break;
        case 4: byte_score_rows<4, 2>(queries, first + i, tile, out, asking); break;
        case 5: byte_score_rows<5, 2>(queries, first + i, tile, out, asking); break;
        default: break;
    }
}

// Scales of values to out[block][kPartition]; those of rows past `tokens` become zero.
static void byte_value_scales(const KvPlane& plane, const Rows& values, float* out) {
    for (int first = 0; first < kTileTokens; first += kStripRows)
        byte_scales(values.page, plane, values.row + first, out + first, kPartition);
    for (int b = 0; b < plane.head_dim / kBlock; b++)
        for (int t = values.tokens; t < kTileTokens; t++) out[(size_t)b * kPartition + t] = 0.0f;
}

// Four rows of 64 bytes to 4 x 16 channels of 4 tokens each.
PK_INLINE void interleave_rows(__m512i r[4]) {
    const __m512i a = _mm512_unpacklo_epi8(r[0], r[1]), b = _mm512_unpackhi_epi8(r[0], r[1]);
    const __m512i c = _mm512_unpacklo_epi8(r[2], r[3]), d = _mm512_unpackhi_epi8(r[2], r[3]);
    const __m512i q0 = _mm512_unpacklo_epi16(a, c), q1 = _mm512_unpackhi_epi16(a, c);
    const __m512i q2 = _mm512_unpacklo_epi16(b, d), q3 = _mm512_unpackhi_epi16(b, d);
    const __m512i t0 = _mm512_shuffle_i32x4(q0, q1, 0x44), t1 = _mm512_shuffle_i32x4(q0, q1, 0xee);
    const __m512i t2 = _mm512_shuffle_i32x4(q2, q3, 0x44), t3 = _mm512_shuffle_i32x4(q2, q3, 0xee);
    r[0] = _mm512_shuffle_i32x4(t0, t2, 0x88);
    r[1] = _mm512_shuffle_i32x4(t0, t2, 0xdd);
    r[2] = _mm512_shuffle_i32x4(t1, t3, 0x88);
    r[3] = _mm512_shuffle_i32x4(t1, t3, 0xdd);
}

PK_INLINE __m512i load_bytes(const uint8_t* p, int channels) {
    if (channels == 64) return _mm512_loadu_si512(p);
    return _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i*)p));
}

PK_INLINE __m512i load_nibbles(const uint8_t* p, int channels) {
    const __m256i packed = channels == 64 ? _mm256_loadu_si256((const __m256i*)p)
                                          : _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i*)p));
    const __m512i twice = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), _mm512_castsi256_si512(packed));
    const __m512i high = _mm512_mask_srli_epi16(twice, 0xff00ff00u, twice, 4);
    return _mm512_sub_epi8(_mm512_and_si512(high, _mm512_set1_epi8(15)), _mm512_set1_epi8(8));
}

// CHANNELS channels of four rows; the count is a constant: GCC 12 makes a copying instruction of a loop of stores.
template <bool NIBBLES, int CHANNELS>
PK_INLINE void put_values(const uint8_t* from, size_t bytes, uint8_t* tile) {
    __m512i r[4];
    each<4>(PK_EACH(i) { r[i] = NIBBLES ? load_nibbles(from + i * bytes, CHANNELS) : load_bytes(from + i * bytes, CHANNELS); });
    interleave_rows(r);
    each<CHANNELS / 16>(PK_EACH(i) { _mm512_storeu_si512(tile + 64 * i, r[i]); });
}

template <bool NIBBLES>
static void put_four_values(const uint8_t* from, size_t bytes, int dim, uint8_t* tile) {
    constexpr int kPacked = NIBBLES ? 2 : 1;
    int c = 0;
    for (; c + 64 <= dim; c += 64) put_values<NIBBLES, 64>(from + c / kPacked, bytes, tile + 4 * (size_t)c);
    if (c < dim) put_values<NIBBLES, 32>(from + c / kPacked, bytes, tile + 4 * (size_t)c);
}

// Values to tile[kTileTokens / 4][dim][4].
static void byte_values(const KvPlane& plane, const Rows& values, uint8_t* tile) {
    const size_t bytes = row_bytes(plane), step = 4 * (size_t)plane.head_dim;
    const uint8_t* data = values.page + plane.offset + values.row * bytes;
    for (int t = 0; t < kTileTokens; t += 4, data += 4 * bytes, tile += step) {
        if (values.ahead) ask_rows(plane, values, t, 4);
        if (plane.type == kKvQ4) put_four_values<true>(data, bytes, plane.head_dim, tile);
        else put_four_values<false>(data, bytes, plane.head_dim, tile);
    }
}

// 64 weights: both planes of 7 bits, in the order of the tokens.
PK_INLINE void store_planes(const __m512i w[4], uint8_t* high, uint8_t* low) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i mask = _mm512_set1_epi16((1 << kWeightBits) - 1);
    const __m512i a = _mm512_packs_epi32(w[0], w[1]), b = _mm512_packs_epi32(w[2], w[3]);
    const __m512i upper = _mm512_packus_epi16(_mm512_srli_epi16(a, kWeightBits), _mm512_srli_epi16(b, kWeightBits));
    const __m512i lower = _mm512_packus_epi16(_mm512_and_si512(a, mask), _mm512_and_si512(b, mask));
    _mm512_storeu_si512(high, _mm512_permutexvar_epi32(order, upper));
    _mm512_storeu_si512(low, _mm512_permutexvar_epi32(order, lower));
}

// Weights [begin, end) of a query for one block of channels; returns what a unit of the sums is worth, no number where a
// weight is none: none is negative, so that they compare as their bits do, and what is no number above all.
static float byte_weights(const float* weights, const float* scales, int begin, int end, uint8_t* planes) {
    __m512i most = _mm512_setzero_si512();
    for (int i = begin; i < end; i += W)
        most = _mm512_max_epu32(most, _mm512_castps_si512(vmul(vload(weights + i), vload(scales + i))));
    const float largest = bits_to_float(_mm512_reduce_max_epu32(most));
    const vf inverse = vset(largest > 1e-30f ? kLargestWeight / largest : 0.0f);
    for (int i = begin; i < end; i += kTileTokens) {
        __m512i w[4];
        for (int j = 0; j < 4; j++)
            w[j] = _mm512_cvtps_epi32(vmul(vmul(vload(weights + i + W * j), vload(scales + i + W * j)), inverse));
        store_planes(w, planes + i, planes + kPartition + i);
    }
    return largest / kLargestWeight;
}

struct ByteProduct {         // sums[query][dim] += weights of `tokens` tokens x values
    const uint8_t* planes;   // [query][block][2][kPartition], at the first token
    const uint8_t* tile;     // [tokens / 4][dim][4]
    int32_t* sums;
    int dim;
    int tokens;
};

// One block of channels: two vectors.
template <int M, bool ASKS>
static void byte_sum_block(const ByteProduct& p, int query, int block, Asking& asking) {
    const size_t step = (size_t)p.dim / kBlock * 2 * kPartition, row = (size_t)p.dim;
    const uint8_t* planes = p.planes + query * step + (size_t)block * 2 * kPartition;
    const uint8_t* values = p.tile + (size_t)block * kBlock * 4;
    int32_t* sums = p.sums + query * row + (size_t)block * kBlock;
    __m512i high[M * 2], low[M * 2];
    each<M * 2>(PK_EACH(x) {
        high[x] = _mm512_setzero_si512();
        low[x] = _mm512_loadu_si512(sums + x / 2 * row + 16 * (x % 2));
    });
    for (int t = 0; t < p.tokens; t += 4, values += 4 * row) {
        if constexpr (ASKS) asking.ask<2>();
        const __m512i v[2] = {_mm512_loadu_si512(values), _mm512_loadu_si512(values + 64)};
        each<M>(PK_EACH(i) {
            const uint8_t* w = planes + i * step + t;
            const __m512i upper = _mm512_set1_epi32(load_i32(w)), lower = _mm512_set1_epi32(load_i32(w + kPartition));
            each<2>(PK_EACH(n) {
                high[2 * i + n] = _mm512_dpbusd_epi32(high[2 * i + n], upper, v[n]);
                low[2 * i + n] = _mm512_dpbusd_epi32(low[2 * i + n], lower, v[n]);
            });
        });
    }
    each<M * 2>(PK_EACH(x) {
        _mm512_storeu_si512(sums + x / 2 * row + 16 * (x % 2), _mm512_add_epi32(low[x], _mm512_slli_epi32(high[x], kWeightBits)));
    });
}

template <int M>
static void byte_sum_rows(const ByteProduct& p, int query, int block, Asking& asking, bool asks) {
    if (asks && asking.at) byte_sum_block<M, true>(p, query, block, asking);
    else byte_sum_block<M, false>(p, query, block, asking);
}

static void byte_sums(const ByteProduct& p, int count, Asking asking) {
    for (int block = 0; block < p.dim / kBlock; block++) {
        int i = 0;
        for (; i + 3 <= count; i += 3) byte_sum_rows<3>(p, i, block, asking, i == 0);
        if (count - i == 2) byte_sum_rows<2>(p, i, block, asking, i == 0);
        else if (count - i == 1) byte_sum_rows<1>(p, i, block, asking, i == 0);
    }
}

// A query's sums as floats; worth: of a unit, by block.
static void byte_results(const int32_t* sums, const float* worth, int dim, float* out) {
    for (int d = 0; d < dim; d += W)
        vstore(out + d, vmul(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums + d)), vset(worth[d / kBlock])));
}
PK_END
