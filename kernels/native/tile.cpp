#include "tile.h"
#if defined(__AVX512VNNI__)
#include "tile_avx512.h"
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

static inline void unpack_bytes(const Strip& s, size_t offset, uint8_t* q) {
    const __m128i flip = _mm_set1_epi8((char)kInt8Flip);
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
static inline void unpack_bytes(const Strip& s, size_t offset, uint8_t* q) {
    for (int r = 0; r < kStripRows; r++)
        for (int i = 0; i < 32; i++) q[64 * (i / 4) + 4 * r + i % 4] = s.data[r * s.stride + offset + i] ^ kInt8Flip;
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
        unpack_bytes(s, (size_t)34 * b + 2, tile.q + 512 * b);
        for (int r = 0; r < kStripRows; r++) tile.d[16 * b + r] = half(s.data + r * s.stride + (size_t)34 * b);
    }
}

static const TileFormat formats[] = {
    {kQ4_0, 18, kUnsignedMinus8, unpack_q4_0, nullptr},
    {kQ4_1, 20, kUnsignedMin, unpack_q4_1, nullptr},
    {kQ8_0, 34, kInt8, unpack_q8_0, nullptr},
};
#else
template <class Walk>
static constexpr TileFormat format_of(int type) {
    return {type, Walk::kBytes, Walk::kKind, unpack_strip<Walk>, few_tokens<Walk>};
}

static const TileFormat formats[] = {
    format_of<WalkQ4_0>(kQ4_0), format_of<WalkQ4_1>(kQ4_1), format_of<WalkQ8_0>(kQ8_0)};
#endif

const TileFormat* tile_format(int ggml_type) {
    for (const TileFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}
PK_END
