#include "tile.h"

#include "formats.h"
#if defined(__AVX512VNNI__)
#include "tile_avx512.h"
#include "walks_avx512.h"
#endif

PK_BEGIN
#if !defined(__AVX512VNNI__)
#if defined(__AVX2__)
// 16 bytes of each of four rows become four groups of 4 channels, rows side by side.
static inline void transpose4(const Strip& s, int row, size_t offset, __m128i out[4]) {
    const uint8_t* p = s.data + row * s.stride + offset;
    const __m128i a = _mm_loadu_si128((const __m128i*)(p));
    const __m128i b = _mm_loadu_si128((const __m128i*)(p + s.stride));
    const __m128i c = _mm_loadu_si128((const __m128i*)(p + 2 * s.stride));
    const __m128i d = _mm_loadu_si128((const __m128i*)(p + 3 * s.stride));
    const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    out[0] = _mm_unpacklo_epi64(ab_low, cd_low);
    out[1] = _mm_unpackhi_epi64(ab_low, cd_low);
    out[2] = _mm_unpacklo_epi64(ab_high, cd_high);
    out[3] = _mm_unpackhi_epi64(ab_high, cd_high);
}

static inline void unpack_nibbles(const Strip& s, size_t offset, uint8_t* q) {
    const __m128i mask = _mm_set1_epi8(15);
    for (int r = 0; r < kStripRows; r += 4) {
        __m128i groups[4];
        transpose4(s, r, offset, groups);
        for (int j = 0; j < 4; j++) {
            _mm_storeu_si128((__m128i*)(q + 64 * j + 4 * r), _mm_and_si128(groups[j], mask));
            const __m128i high = _mm_and_si128(_mm_srli_epi16(groups[j], 4), mask);
            _mm_storeu_si128((__m128i*)(q + 64 * (j + 4) + 4 * r), high);
        }
    }
}

static inline void unpack_bytes(const Strip& s, size_t offset, uint8_t flip_bits, uint8_t* q) {
    const __m128i flip = _mm_set1_epi8((char)flip_bits);
    for (int r = 0; r < kStripRows; r += 4)
        for (int half = 0; half < 2; half++) {
            __m128i groups[4];
            transpose4(s, r, offset + 16 * half, groups);
            for (int j = 0; j < 4; j++)
                _mm_storeu_si128((__m128i*)(q + 64 * (4 * half + j) + 4 * r), _mm_xor_si128(groups[j], flip));
        }
}
static inline float half(const uint8_t* p) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(load_u16(p)))); }
#else
static inline void unpack_nibbles(const Strip& s, size_t offset, uint8_t* q) {
    for (int r = 0; r < kStripRows; r++)
        for (int i = 0; i < 16; i++) {
            const uint8_t byte = s.data[r * s.stride + offset + i];
            q[64 * (i / 4) + 4 * r + i % 4] = byte & 15;
            q[64 * (i / 4 + 4) + 4 * r + i % 4] = byte >> 4;
        }
}
static inline void unpack_bytes(const Strip& s, size_t offset, uint8_t flip, uint8_t* q) {
    for (int r = 0; r < kStripRows; r++)
        for (int i = 0; i < 32; i++) q[64 * (i / 4) + 4 * r + i % 4] = s.data[r * s.stride + offset + i] ^ flip;
}
static inline float half(const uint8_t* p) { return half_to_float(load_u16(p)); }
#endif

static void unpack_q4_0(Strip s, int blocks, Tile tile) {
    for (int b = 0; b < blocks; b++) {
        unpack_nibbles(s, (size_t)18 * b + 2, tile.q + 512 * b);
        for (int r = 0; r < kStripRows; r++) tile.d[16 * b + r] = half(s.data + r * s.stride + (size_t)18 * b);
    }
}

static void unpack_q4_1(Strip s, int blocks, Tile tile) {
    for (int b = 0; b < blocks; b++) {
        unpack_nibbles(s, (size_t)20 * b + 4, tile.q + 512 * b);
        for (int r = 0; r < kStripRows; r++) {
            tile.d[16 * b + r] = half(s.data + r * s.stride + (size_t)20 * b);
            tile.m[16 * b + r] = half(s.data + r * s.stride + (size_t)20 * b + 2);
        }
    }
}

static void unpack_q8_0(Strip s, int blocks, Tile tile) {
    for (int b = 0; b < blocks; b++) {
        unpack_bytes(s, (size_t)34 * b + 2, kInt8Flip, tile.q + 512 * b);
        for (int r = 0; r < kStripRows; r++) tile.d[16 * b + r] = half(s.data + r * s.stride + (size_t)34 * b);
    }
}

#else
static inline void unpack_bytes(const Strip& s, size_t offset, uint8_t flip_bits, uint8_t* q) {
    const __m512i flip = _mm512_set1_epi8((char)flip_bits);
    for (int half = 0; half < 2; half++) {
        __m512i groups[4];
        load_dwords(s, offset + 16 * half, groups);
        for (int j = 0; j < 4; j++) _mm512_storeu_si512(q + 64 * (4 * half + j), _mm512_xor_si512(groups[j], flip));
    }
}

template <class Walk>
static constexpr TileFormat direct(int type) {
    return {type, Walk::kKind, Walk::kHalves, walk_strip<Walk>, few_tokens<Walk>, first_tokens<Walk>};
}
#endif

static constexpr TileFormat by_block(int type, bool halves, bool minima) {
    return {type, minima ? kUnsignedMin : kInt8, halves, nullptr, nullptr, nullptr};
}

static const TileFormat formats[] = {
#if defined(__AVX512VNNI__)
    direct<WalkQ4_0>(kQ4_0), direct<WalkQ4_1>(kQ4_1), direct<WalkQ8_0>(kQ8_0), direct<WalkQ5_0>(kQ5_0),
    direct<WalkQ4_K>(kQ4_K), direct<WalkQ5_K>(kQ5_K), direct<WalkQ6_K>(kQ6_K), direct<WalkIQ4_XS>(kIQ4_XS),
    direct<WalkIQ4_NL>(kIQ4_NL), direct<WalkMXFP4>(kMXFP4), direct<WalkQ3_K>(kQ3_K),
#else
    {kQ4_0, kUnsignedMinus8, false, unpack_q4_0, nullptr, nullptr},
    {kQ4_1, kUnsignedMin, false, unpack_q4_1, nullptr, nullptr},
    {kQ8_0, kInt8, false, unpack_q8_0, nullptr, nullptr},
    by_block(kQ5_0, false, false), by_block(kQ4_K, false, true), by_block(kQ5_K, false, true),
    by_block(kQ6_K, true, false), by_block(kIQ4_XS, false, false), by_block(kIQ4_NL, false, false),
    by_block(kMXFP4, false, false), by_block(kQ3_K, true, false),
#endif
    by_block(kQ5_1, false, true), by_block(kQ2_K, true, true),
    by_block(kIQ2_XXS, false, false), by_block(kIQ2_XS, true, false), by_block(kIQ2_S, true, false),
    by_block(kIQ3_XXS, false, false), by_block(kIQ3_S, false, false), by_block(kIQ1_S, false, false),
    by_block(kIQ1_M, true, false), by_block(kTQ1_0, false, false), by_block(kTQ2_0, false, false),
    by_block(kNVFP4, true, false), by_block(kQ1_0, false, false), by_block(kQ2_0, false, false),
};

const TileFormat* tile_format(int ggml_type) {
    for (const TileFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}

bool halved(int ggml_type) {
    const TileFormat* format = tile_format(ggml_type);
    return format && format->halves;
}

void unpack_strip(const TileFormat& format, const Strip& strip, int blocks, const Tile& tile) {
    if (format.unpack) return format.unpack(strip, blocks, tile);
    const BlockFormat& block = *block_format(format.type);
    const int inside = block.elements / kBlock, scales = block.elements / (block.halves ? 16 : kBlock);
    const uint8_t flip = block.minima ? 0 : kInt8Flip;
    alignas(64) uint8_t codes[kStripRows][256];
    for (int b = 0, at = 0; b < blocks; b += inside, at++) {
        for (int r = 0; r < kStripRows; r++) {
            float d[16], m[16];
            block.expand(strip.data + r * strip.stride + (size_t)at * block.bytes, codes[r], d, m);
            for (int i = 0; i < scales; i++) {
                tile.d[((size_t)at * scales + i) * kStripRows + r] = d[i];
                if (block.minima) tile.m[((size_t)at * scales + i) * kStripRows + r] = m[i];
            }
        }
        for (int i = 0; i < inside; i++)
            unpack_bytes(Strip{codes[0], sizeof codes[0]}, 32 * i, flip, tile.q + (size_t)512 * (b + i));
    }
}
PK_END
