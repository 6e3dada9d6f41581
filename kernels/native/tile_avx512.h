// Unpacking of a strip in registers. A walk hands every block (8 vectors of bytes, d, m) to a sink: one sink
// stores a tile, the other multiplies at once.
#pragma once
#include "tile.h"

PK_BEGIN
#define PK_INLINE static inline __attribute__((always_inline))
#define PK_INLINE_MEMBER inline __attribute__((always_inline))

struct Block {
    __m512i w[8];
    __m512 d, m;
    __m512 d2;  // of the second half, where a format has a scale per 16 channels
};

// 16 bytes at `at` of each row; vector e holds rows e, e + 4, e + 8, e + 12.
PK_INLINE void load_quads(const Strip& s, size_t at, __m512i v[4]) {
    const uint8_t* p = s.data + at;
    const size_t quad = 4 * s.stride;
    for (int e = 0; e < 4; e++, p += s.stride) {
        const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p)),
                                                    _mm_loadu_si128((const __m128i*)(p + quad)), 1);
        const __m256i high =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)(p + 2 * quad))),
                                    _mm_loadu_si128((const __m128i*)(p + 3 * quad)), 1);
        v[e] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
}

// Dword j of every row, rows in order.
PK_INLINE void load_dwords(const Strip& s, size_t at, __m512i out[4]) {
    __m512i v[4];
    load_quads(s, at, v);
    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi64(a, c);
    out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d);
    out[3] = _mm512_unpackhi_epi64(b, d);
}

PK_INLINE __m512 load_halves(const Strip& s, size_t at) {
    const uint8_t* p = s.data + at;
    __m128i low = _mm_setzero_si128(), high = _mm_setzero_si128();
#define PK_PICK(i)                                                  \
    low = _mm_insert_epi16(low, load_u16(p + (i) * s.stride), i);   \
    high = _mm_insert_epi16(high, load_u16(p + ((i) + 8) * s.stride), i);
    PK_PICK(0) PK_PICK(1) PK_PICK(2) PK_PICK(3) PK_PICK(4) PK_PICK(5) PK_PICK(6) PK_PICK(7)
#undef PK_PICK
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}

PK_INLINE void split_nibbles(const __m512i packed[4], __m512i w[8]) {
    const __m512i mask = _mm512_set1_epi8(15);
    for (int j = 0; j < 4; j++) {
        w[j] = _mm512_and_si512(packed[j], mask);
        w[j + 4] = _mm512_and_si512(_mm512_srli_epi16(packed[j], 4), mask);
    }
}

// Low half of each dword is d, high half m.
PK_INLINE void split_scales(__m512i pair, Block& block) {
    block.d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pair));
    block.m = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pair, 16)));
}

// The matrix is read in order three strips ahead of the multiplication, into L2: L1 has too few miss buffers. The
// first lines of the next strip's rows come to L1; from there on the hardware follows each row by itself.
PK_INLINE void prefetch_ahead(const Strip& s, int block, int block_bytes) {
    const uint8_t* ahead = s.data + 48 * s.stride + (size_t)block * block_bytes * kStripRows;
    for (int at = 0; at < block_bytes * kStripRows; at += 64) _mm_prefetch((const char*)(ahead + at), _MM_HINT_T1);
    if (block >= kStripRows / 2) return;
    const uint8_t* row = s.data + (size_t)(kStripRows + 2 * block) * s.stride;
    for (int i = 0; i < 2; i++, row += s.stride) {
        _mm_prefetch((const char*)row, _MM_HINT_T0);
        _mm_prefetch((const char*)(row + 64), _MM_HINT_T0);
    }
}

struct WalkQ4_0 {
    static constexpr ByteKind kKind = kUnsignedMinus8;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 18;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b++) {
            Block block;
            __m512i packed[4];
            load_dwords(s, (size_t)kBytes * b + 2, packed);
            split_nibbles(packed, block.w);
            block.d = load_halves(s, (size_t)kBytes * b);
            sink.take(b, block);
        }
    }
};

struct WalkQ4_1 {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 20;

    template <class Sink>
    PK_INLINE void give(__m512i pair, const __m512i packed[4], int b, Sink& sink) {
        Block block;
        split_scales(pair, block);
        split_nibbles(packed, block.w);
        sink.take(b, block);
    }

    // Four blocks are 20 dwords a row: no byte is loaded twice.
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        int b = 0;
        for (; b + 4 <= blocks; b += 4) {
            __m512i raw[20];
            const size_t at = (size_t)kBytes * b;
            load_dwords(s, at, raw);
            load_dwords(s, at + 16, raw + 4);
            give(raw[0], raw + 1, b, sink);
            load_dwords(s, at + 32, raw + 8);
            give(raw[5], raw + 6, b + 1, sink);
            load_dwords(s, at + 48, raw + 12);
            give(raw[10], raw + 11, b + 2, sink);
            load_dwords(s, at + 64, raw + 16);
            give(raw[15], raw + 16, b + 3, sink);
        }
        for (; b < blocks; b++) {
            __m512i head[4], packed[4];
            load_dwords(s, (size_t)kBytes * b, head);
            load_dwords(s, (size_t)kBytes * b + 4, packed);
            give(head[0], packed, b, sink);
        }
    }
};

struct WalkQ8_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 34;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const __m512i flip = _mm512_set1_epi8((char)kInt8Flip);
        for (int b = 0; b < blocks; b++) {
            Block block;
            load_dwords(s, (size_t)kBytes * b + 2, block.w);
            load_dwords(s, (size_t)kBytes * b + 18, block.w + 4);
            for (int j = 0; j < 8; j++) block.w[j] = _mm512_xor_si512(block.w[j], flip);
            block.d = load_halves(s, (size_t)kBytes * b);
            sink.take(b, block);
        }
    }
};

// Formats with a scale per 16 channels give bytes that count from kZero; in a tile they count from 128.
template <class Walk>
PK_INLINE __m512i tile_bytes(__m512i w) {
    if constexpr (Walk::kHalves) return _mm512_add_epi8(w, _mm512_set1_epi8((char)(128 - Walk::kZero)));
    else return w;
}

template <class Walk>
struct TileSink {
    static constexpr ByteKind KIND = Walk::kKind;
    Strip strip;
    Tile tile;
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        prefetch_ahead(strip, b, Walk::kBytes);
        store(b, block);
    }
    PK_INLINE_MEMBER void store(int b, const Block& block) {
        for (int j = 0; j < 8; j++) _mm512_storeu_si512(tile.q + (size_t)512 * b + 64 * j, tile_bytes<Walk>(block.w[j]));
        const size_t scales = Walk::kHalves ? 32 : 16;
        _mm512_storeu_ps(tile.d + scales * b, block.d);
        if (Walk::kHalves) _mm512_storeu_ps(tile.d + scales * b + 16, block.d2);
        if (KIND == kUnsignedMin) _mm512_storeu_ps(tile.m + 16 * b, block.m);
    }
};

// What a block's int32 sums start from, so that bytes count from their zero point.
template <ByteKind KIND>
PK_INLINE __m512i zero_point(const float* meta, int tokens, int token) {
    if (KIND == kUnsignedMinus8) return _mm512_set1_epi32(load_i32(meta + 2 * tokens + token));
    if (KIND == kUnsignedMinus128) return _mm512_set1_epi32(load_i32(meta + 3 * tokens + token));
    return _mm512_setzero_si512();
}

PK_INLINE __m512 add_block(__m512i dots, float scale, __m512 d, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dots), _mm512_set1_ps(scale)), d, sum);
}

PK_INLINE __m512i broadcast4(const int8_t* p) { return _mm512_set1_epi32(load_i32(p)); }

template <int N, class Walk>
struct DotSink {
    Strip strip;
    const int8_t* data;
    const float* meta;
    const float* halves;
    __m512 sums[N];
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        prefetch_ahead(strip, b, Walk::kBytes);
        const int8_t* a = data + (size_t)b * kBlock * N;
        const float* scales = meta + (size_t)b * 4 * N;
        if constexpr (Walk::kHalves) return take_halves(block, a, scales, halves + (size_t)b * 4 * N);
#pragma GCC unroll 8
        for (int i = 0; i < N; i++) {
            __m512i even = zero_point<Walk::kKind>(scales, N, i), odd = _mm512_setzero_si512();
#pragma GCC unroll 4
            for (int j = 0; j < 8; j += 2) {
                even = _mm512_dpbusd_epi32(even, block.w[j], broadcast4(a + 4 * (N * j + i)));
                odd = _mm512_dpbusd_epi32(odd, block.w[j + 1], broadcast4(a + 4 * (N * (j + 1) + i)));
            }
            sums[i] = add_block(_mm512_add_epi32(even, odd), scales[i], block.d, sums[i]);
            if (Walk::kKind == kUnsignedMin) sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(scales[N + i]), block.m, sums[i]);
        }
    }
    // In the order of dot_halves.h.
    PK_INLINE_MEMBER void take_halves(const Block& block, const int8_t* a, const float* scales, const float* offsets) {
#pragma GCC unroll 8
        for (int i = 0; i < N; i++) {
            constexpr int kLess = __builtin_ctz(128 / Walk::kZero);  // exact: the offsets are multiples of 128
            __m512i first = _mm512_srai_epi32(_mm512_set1_epi32(load_i32(offsets + i)), kLess);
            __m512i second = _mm512_srai_epi32(_mm512_set1_epi32(load_i32(offsets + N + i)), kLess);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                first = _mm512_dpbusd_epi32(first, block.w[j], broadcast4(a + 4 * (N * j + i)));
                second = _mm512_dpbusd_epi32(second, block.w[j + 4], broadcast4(a + 4 * (N * (j + 4) + i)));
            }
            const __m512 pair = _mm512_mul_ps(_mm512_cvtepi32_ps(first), block.d);
            sums[i] = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_cvtepi32_ps(second), block.d2, pair),
                                      _mm512_set1_ps(scales[i]), sums[i]);
        }
    }
};

// Both at once: the bytes are in registers anyway.
template <int N, class Walk>
struct FirstSink {
    DotSink<N, Walk> dots;
    TileSink<Walk> tiles;
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        tiles.store(b, block);
        dots.take(b, block);
    }
};

template <class Walk>
static void walk_strip(Strip strip, int blocks, Tile tile) {
    TileSink<Walk> sink{strip, tile};
    Walk::walk(strip, blocks, sink);
}

template <int N, class Walk>
PK_INLINE DotSink<N, Walk> dot_sink(Strip strip, const QuantGroup& group) {
    DotSink<N, Walk> sink;
    sink.strip = strip;
    sink.data = group.data;
    sink.meta = group.meta;
    sink.halves = group.halves;
    for (int i = 0; i < N; i++) sink.sums[i] = _mm512_setzero_ps();
    return sink;
}

template <int N, class Walk>
static void dot_strip(Strip strip, int blocks, const QuantGroup& group, Results results) {
    DotSink<N, Walk> sink = dot_sink<N, Walk>(strip, group);
    Walk::walk(strip, blocks, sink);
    for (int i = 0; i < N; i++) _mm512_storeu_ps(results[i], sink.sums[i]);
}

template <class Walk>
static void first_tokens(Strip strip, int blocks, const QuantGroup& group, Tile tile, Results results) {
    FirstSink<kGroupTokens, Walk> sink{dot_sink<kGroupTokens, Walk>(strip, group), TileSink<Walk>{strip, tile}};
    Walk::walk(strip, blocks, sink);
    for (int i = 0; i < kGroupTokens; i++) _mm512_storeu_ps(results[i], sink.dots.sums[i]);
}

template <class Walk>
static constexpr DotStrip few_tokens[kGroupTokens] = {
    dot_strip<1, Walk>, dot_strip<2, Walk>, dot_strip<3, Walk>, dot_strip<4, Walk>,
    dot_strip<5, Walk>, dot_strip<6, Walk>, dot_strip<7, Walk>, dot_strip<8, Walk>};
PK_END
