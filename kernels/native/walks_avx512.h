// Walks over strips of the other common formats; layouts as in formats.h and formats_table.h, results equal to theirs.
#pragma once
#include "formats_table.h"
#include "tile_avx512.h"

PK_BEGIN
PK_INLINE __m512i nibble_mask() { return _mm512_set1_epi8(15); }
PK_INLINE __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, nibble_mask()); }
PK_INLINE __m512i high_nibbles(__m512i v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble_mask()); }
PK_INLINE __m512i shift_right(__m512i v, int bits) { return _mm512_srl_epi32(v, _mm_cvtsi32_si128(bits)); }

// Byte i of every dword as a float.
PK_INLINE __m512 byte_float(__m512i v, int i) {
    return _mm512_cvtepi32_ps(_mm512_and_si512(shift_right(v, 8 * i), _mm512_set1_epi32(255)));
}
PK_INLINE __m512 signed_byte_float(__m512i v, int i) {
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_sll_epi32(v, _mm_cvtsi32_si128(24 - 8 * i)), 24));
}

// A 4-bit table as the bytes of a tile.
PK_INLINE __m512i byte_table(const int8_t* values) {
    const __m128i flipped = _mm_xor_si128(_mm_load_si128((const __m128i*)values), _mm_set1_epi8((char)kInt8Flip));
    return _mm512_broadcast_i32x4(flipped);
}
PK_INLINE void look_up_nibbles(__m512i table, const __m512i packed[4], __m512i w[8]) {
    for (int j = 0; j < 4; j++) {
        w[j] = _mm512_shuffle_epi8(table, low_nibbles(packed[j]));
        w[j + 4] = _mm512_shuffle_epi8(table, high_nibbles(packed[j]));
    }
}

// The 6-bit scales and minima of Q4_K and Q5_K, 4 to a vector.
struct SixBits {
    __m512 d, m;
    __m512i scales[2], minima[2];
    PK_INLINE_MEMBER void load(const Strip& s, size_t at) {
        __m512i head[4];
        load_dwords(s, at, head);
        const __m512i six = _mm512_set1_epi8(63), four = nibble_mask(), top = _mm512_set1_epi8(0x30);
        d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(head[0]));
        m = _mm512_sub_ps(_mm512_setzero_ps(), _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(head[0], 16))));
        scales[0] = _mm512_and_si512(head[1], six);
        minima[0] = _mm512_and_si512(head[2], six);
        scales[1] = _mm512_or_si512(_mm512_and_si512(head[3], four), _mm512_and_si512(_mm512_srli_epi32(head[1], 2), top));
        minima[1] = _mm512_or_si512(high_nibbles(head[3]), _mm512_and_si512(_mm512_srli_epi32(head[2], 2), top));
    }
    PK_INLINE_MEMBER void give(int i, Block& block) const {
        block.d = _mm512_mul_ps(d, byte_float(scales[i / 4], i % 4));
        block.m = _mm512_mul_ps(m, byte_float(minima[i / 4], i % 4));
    }
};

struct WalkQ4_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 18;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kBytes * b;
            SixBits six;
            six.load(s, at);
            for (int pair = 0; pair < 4; pair++) {
                __m512i packed[8];
                load_dwords(s, at + 16 + 32 * pair, packed);
                load_dwords(s, at + 32 + 32 * pair, packed + 4);
                Block block;
                for (int j = 0; j < 8; j++) block.w[j] = low_nibbles(packed[j]);
                six.give(2 * pair, block);
                sink.take(b + 2 * pair, block);
                for (int j = 0; j < 8; j++) block.w[j] = high_nibbles(packed[j]);
                six.give(2 * pair + 1, block);
                sink.take(b + 2 * pair + 1, block);
            }
        }
    }
};

struct WalkQ5_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 22;
    PK_INLINE __m512i with_bit(__m512i nibbles, __m512i high, int bit) {
        const __m512i moved = _mm512_slli_epi32(shift_right(high, bit), 4);
        return _mm512_or_si512(nibbles, _mm512_and_si512(moved, _mm512_set1_epi8(16)));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kBytes * b;
            SixBits six;
            six.load(s, at);
            __m512i high[8];
            load_dwords(s, at + 16, high);
            load_dwords(s, at + 32, high + 4);
            for (int pair = 0; pair < 4; pair++) {
                __m512i packed[8];
                load_dwords(s, at + 48 + 32 * pair, packed);
                load_dwords(s, at + 64 + 32 * pair, packed + 4);
                Block block;
                for (int j = 0; j < 8; j++) block.w[j] = with_bit(low_nibbles(packed[j]), high[j], 2 * pair);
                six.give(2 * pair, block);
                sink.take(b + 2 * pair, block);
                for (int j = 0; j < 8; j++) block.w[j] = with_bit(high_nibbles(packed[j]), high[j], 2 * pair + 1);
                six.give(2 * pair + 1, block);
                sink.take(b + 2 * pair + 1, block);
            }
        }
    }
};

struct WalkQ6_K {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = true;
    static constexpr int kZero = 32;
    static constexpr int kBytes = 27;       // of 32 channels, rounded up; prefetches only
    static constexpr int kSuperblock = 210;
    // Two bits of each byte to the places 4 and 5; the rest is junk.
    template <int K>
    PK_INLINE __m512i top_bits(__m512i high) {
        if constexpr (K < 2) return _mm512_slli_epi16(high, 4 - 2 * K);
        else if constexpr (K == 2) return high;
        else return _mm512_srli_epi16(high, 2);
    }
    template <int K, class Sink>
    PK_INLINE void give(const __m512i packed[8], const __m512i high[8], int b, Block& block, Sink& sink) {
        const __m512i two = _mm512_set1_epi8(0x30);
        for (int j = 0; j < 8; j++) {
            const __m512i low = K < 2 ? low_nibbles(packed[j]) : high_nibbles(packed[j]);
            block.w[j] = _mm512_ternarylogic_epi32(low, top_bits<K>(high[j]), two, 0xf8);  // low | (top & two)
        }
        sink.take(b, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            const __m512 d = load_halves(s, at + 208);
            __m512i scales[4];
            load_dwords(s, at + 192, scales);
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                __m512i high[8], first[8], second[8];
                for (int i = 0; i < 2; i++) {
                    load_dwords(s, at + 128 + 32 * half + 16 * i, high + 4 * i);
                    load_dwords(s, at + 64 * half + 16 * i, first + 4 * i);
                    load_dwords(s, at + 64 * half + 32 + 16 * i, second + 4 * i);
                }
                const auto scaled = [&](int k) {
                    Block block;
                    const __m512i four = scales[2 * half + k / 2];
                    block.d = _mm512_mul_ps(d, signed_byte_float(four, 2 * (k % 2)));
                    block.d2 = _mm512_mul_ps(d, signed_byte_float(four, 2 * (k % 2) + 1));
                    return block;
                };
                Block block = scaled(0);
                give<0>(first, high, b + 4 * half, block, sink);
                block = scaled(1);
                give<1>(second, high, b + 4 * half + 1, block, sink);
                block = scaled(2);
                give<2>(first, high, b + 4 * half + 2, block, sink);
                block = scaled(3);
                give<3>(second, high, b + 4 * half + 3, block, sink);
            }
        }
    }
};

struct WalkQ3_K {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = true;
    static constexpr int kZero = 4;
    static constexpr int kBytes = 14;       // of 32 channels, rounded up; prefetches only
    static constexpr int kSuperblock = 110;
    // Sixteen 6-bit scales, 4 to a vector, and d. The load starts 2 bytes early so that it ends with the block.
    PK_INLINE __m512 load_scales(const Strip& s, size_t at, __m512i scales[4]) {
        __m512i raw[4];
        load_dwords(s, at + 94, raw);
        __m512i bytes[3];
        for (int i = 0; i < 3; i++)
            bytes[i] = _mm512_or_si512(_mm512_srli_epi32(raw[i], 16), _mm512_slli_epi32(raw[i + 1], 16));
        for (int g = 0; g < 4; g++) {
            const __m512i low = g < 2 ? low_nibbles(bytes[g]) : high_nibbles(bytes[g - 2]);
            const __m512i high = _mm512_and_si512(shift_right(bytes[2], 2 * g), _mm512_set1_epi8(3));
            scales[g] = _mm512_or_si512(low, _mm512_slli_epi32(high, 4));
        }
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(raw[3], 16)));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const __m512 offset = _mm512_set1_ps(32.0f);
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            __m512i scales[4], high[8];
            const __m512 d = load_scales(s, at, scales);
            load_dwords(s, at, high);
            load_dwords(s, at + 16, high + 4);
            for (int half = 0; half < 2; half++) {
                __m512i packed[8];
                load_dwords(s, at + 32 + 32 * half, packed);
                load_dwords(s, at + 48 + 32 * half, packed + 4);
                for (int k = 0; k < 4; k++) {
                    const int group = 4 * half + k;
                    Block block;
                    for (int j = 0; j < 8; j++) {
                        const __m512i two = _mm512_and_si512(shift_right(packed[j], 2 * k), _mm512_set1_epi8(3));
                        const __m512i moved = _mm512_slli_epi32(shift_right(high[j], group), 2);
                        const __m512i third = _mm512_and_si512(moved, _mm512_set1_epi8(4));
                        block.w[j] = _mm512_or_si512(two, third);
                    }
                    const __m512i four = scales[group / 2];
                    block.d = _mm512_mul_ps(d, _mm512_sub_ps(byte_float(four, 2 * (group % 2)), offset));
                    block.d2 = _mm512_mul_ps(d, _mm512_sub_ps(byte_float(four, 2 * (group % 2) + 1), offset));
                    sink.take(b + group, block);
                }
            }
        }
    }
};

struct WalkQ5_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 22;
    // Bit 4j + c of a row's dword belongs to byte c of its group j.
    PK_INLINE __m512i with_bits(__m512i nibbles, __m512i bits, int j) {
        const __m512i place = _mm512_set1_epi32(0x01010101 * (j / 2));
        const __m512i base = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
        const __m512i spread = _mm512_shuffle_epi8(bits, _mm512_add_epi8(base, place));
        const __mmask64 set = _mm512_test_epi8_mask(spread, _mm512_set1_epi32(j % 2 ? (int)0x80402010 : 0x08040201));
        const __m512i centred = _mm512_add_epi8(nibbles, _mm512_set1_epi8(128 - 16));
        return _mm512_mask_add_epi8(centred, set, centred, _mm512_set1_epi8(16));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b++) {
            const size_t at = (size_t)kBytes * b;
            __m512i head[4], packed[4];
            load_dwords(s, at + 2, head);
            load_dwords(s, at + 6, packed);
            Block block;
            split_nibbles(packed, block.w);
            for (int j = 0; j < 8; j++) block.w[j] = with_bits(block.w[j], head[0], j);
            block.d = load_halves(s, at);
            sink.take(b, block);
        }
    }
};

struct WalkIQ4_XS {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 17;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const __m512i table = byte_table(kIq4Values), four = _mm512_set1_epi32(15), two = _mm512_set1_epi32(3);
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kBytes * b;
            __m512i head[4];
            load_dwords(s, at, head);
            const __m512 d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(head[0]));
            for (int i = 0; i < 8; i++) {
                __m512i packed[4];
                load_dwords(s, at + 8 + 16 * i, packed);
                Block block;
                look_up_nibbles(table, packed, block.w);
                const __m512i low = _mm512_and_si512(shift_right(head[1], 4 * i), four);
                const __m512i high = _mm512_and_si512(shift_right(head[0], 16 + 2 * i), two);
                const __m512i step = _mm512_sub_epi32(_mm512_or_si512(low, _mm512_slli_epi32(high, 4)), _mm512_set1_epi32(32));
                block.d = _mm512_mul_ps(d, _mm512_cvtepi32_ps(step));
                sink.take(b + i, block);
            }
        }
    }
};

struct WalkIQ4_NL {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 18;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const __m512i table = byte_table(kIq4Values);
        for (int b = 0; b < blocks; b++) {
            __m512i packed[4];
            load_dwords(s, (size_t)kBytes * b + 2, packed);
            Block block;
            look_up_nibbles(table, packed, block.w);
            block.d = load_halves(s, (size_t)kBytes * b);
            sink.take(b, block);
        }
    }
};

struct WalkMXFP4 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kBytes = 17;
    PK_INLINE __m512 exponents(const Strip& s, size_t at) {
        const uint8_t* p = s.data + at;
        alignas(16) uint8_t bytes[kStripRows];
        for (int r = 0; r < kStripRows; r++) bytes[r] = p[r * s.stride];
        const __m512i e = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i*)bytes)), one = _mm512_set1_epi32(1);
        const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
        const __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
        return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, _mm512_cmple_epi32_mask(e, one), small));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const __m512i table = byte_table(kFp4Values);
        for (int b = 0; b < blocks; b++) {
            __m512i packed[4];
            load_dwords(s, (size_t)kBytes * b + 1, packed);
            Block block;
            look_up_nibbles(table, packed, block.w);
            block.d = exponents(s, (size_t)kBytes * b);
            sink.take(b, block);
        }
    }
};
PK_END
