// Walks over strips of formats with superblocks of 256 channels; kBytes, of 32 channels and rounded up, is for prefetches only.
#pragma once
#include "walks.h"

PK_BEGIN
// The 6-bit scales and minima of Q4_K and Q5_K, 4 to a vector.
struct SixBits {
    vf d, m;
    vi scales[2], minima[2];
    PK_INLINE_MEMBER void load(const Strip& s, size_t at) {
        vi head[4];
        load_dwords(s, at, head);
        const vi six = iset8(63), four = iset8(15), top = iset8(0x30);
        d = ihalf_floats(head[0]);
        m = vsub(vzero(), ihalf_floats(ishr(head[0], 16)));
        scales[0] = iand(head[1], six);
        minima[0] = iand(head[2], six);
        scales[1] = ior(iand(head[3], four), iand(ishr(head[1], 2), top));
        minima[1] = ior(high_nibbles(head[3]), iand(ishr(head[2], 2), top));
    }
    PK_INLINE_MEMBER void give(int i, Block& block) const {
        block.d = vmul(d, byte_float(scales[i / 4], i % 4));
        block.m = vmul(m, byte_float(minima[i / 4], i % 4));
    }
};

struct WalkQ4_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kHalves = false;
    static constexpr int kMost = 15;
    static constexpr int kBytes = 18;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kBytes * b;
            SixBits six;
            six.load(s, at);
            for (int pair = 0; pair < 4; pair++) {
                vi packed[8];
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
    static constexpr int kMost = 31;
    static constexpr int kBytes = 22;
    PK_INLINE vi with_bit(vi nibbles, vi high, int bit) {
        const vi moved = ishl(ishr(high, bit), 4);
        return ior(nibbles, iand(moved, iset8(16)));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kBytes * b;
            SixBits six;
            six.load(s, at);
            vi high[8];
            load_dwords(s, at + 16, high);
            load_dwords(s, at + 32, high + 4);
            for (int pair = 0; pair < 4; pair++) {
                vi packed[8];
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
    static constexpr int kMost = 63;
    static constexpr int kZero = 32;
    static constexpr int kBytes = 27;
    static constexpr int kSuperblock = 210;
    // Two bits of each byte to the places 4 and 5; the rest is junk.
    template <int K>
    PK_INLINE vi top_bits(vi high) {
        if constexpr (K < 2) return ishl(high, 4 - 2 * K);
        else if constexpr (K == 2) return high;
        else return ishr(high, 2);
    }
    template <int K, class Sink>
    PK_INLINE void give(const vi packed[8], const vi high[8], int b, Block& block, Sink& sink) {
        const vi two = iset8(0x30);
        for (int j = 0; j < 8; j++) {
            const vi low = K < 2 ? low_nibbles(packed[j]) : high_nibbles(packed[j]);
            block.w[j] = ior(low, iand(top_bits<K>(high[j]), two));
        }
        sink.take(b, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            const vf d = load_halves(s, at + 208);
            vi scales[4];
            load_dwords(s, at + 192, scales);
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                vi high[8], first[8], second[8];
                for (int i = 0; i < 2; i++) {
                    load_dwords(s, at + 128 + 32 * half + 16 * i, high + 4 * i);
                    load_dwords(s, at + 64 * half + 16 * i, first + 4 * i);
                    load_dwords(s, at + 64 * half + 32 + 16 * i, second + 4 * i);
                }
                const auto scaled = [&](int k) {
                    Block block;
                    const vi four = scales[2 * half + k / 2];
                    block.d = vmul(d, signed_byte_float(four, 2 * (k % 2)));
                    block.d2 = vmul(d, signed_byte_float(four, 2 * (k % 2) + 1));
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
    static constexpr int kMost = 7;
    static constexpr int kZero = 4;
    static constexpr int kBytes = 14;
    static constexpr int kSuperblock = 110;
    // Sixteen 6-bit scales, 4 to a vector, and d. The load starts 2 bytes early so that it ends with the block.
    PK_INLINE vf load_scales(const Strip& s, size_t at, vi scales[4]) {
        vi raw[4];
        load_dwords(s, at + 94, raw);
        vi bytes[3];
        for (int i = 0; i < 3; i++)
            bytes[i] = ior(ishr(raw[i], 16), ishl(raw[i + 1], 16));
        for (int g = 0; g < 4; g++) {
            const vi low = g < 2 ? low_nibbles(bytes[g]) : high_nibbles(bytes[g - 2]);
            const vi high = iand(ishr(bytes[2], 2 * g), iset8(3));
            scales[g] = ior(low, ishl(high, 4));
        }
        return ihalf_floats(ishr(raw[3], 16));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vf offset = vset(32.0f);
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            vi scales[4], high[8];
            const vf d = load_scales(s, at, scales);
            load_dwords(s, at, high);
            load_dwords(s, at + 16, high + 4);
            for (int half = 0; half < 2; half++) {
                vi packed[8];
                load_dwords(s, at + 32 + 32 * half, packed);
                load_dwords(s, at + 48 + 32 * half, packed + 4);
                for (int k = 0; k < 4; k++) {
                    const int group = 4 * half + k;
                    Block block;
                    for (int j = 0; j < 8; j++) {
                        const vi two = iand(ishr(packed[j], 2 * k), iset8(3));
                        const vi moved = ishl(ishr(high[j], group), 2);
                        const vi third = iand(moved, iset8(4));
                        block.w[j] = ior(two, third);
                    }
                    const vi four = scales[group / 2];
                    block.d = vmul(d, vsub(byte_float(four, 2 * (group % 2)), offset));
                    block.d2 = vmul(d, vsub(byte_float(four, 2 * (group % 2) + 1), offset));
                    sink.take(b + group, block);
                }
            }
        }
    }
};

// Two bits of every byte; all lowest pairs of 32 bytes are 32 channels, then the next ones.
PK_INLINE void two_bits_of(const vi packed[8], int pair, vi w[8]) {
    for (int j = 0; j < 8; j++) w[j] = iand(ishr(packed[j], 2 * pair), iset8(3));
}

struct WalkQ2_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kHalves = true;
    static constexpr int kZero = 0;
    static constexpr int kMost = 3;
    static constexpr int kBytes = 11;
    static constexpr int kSuperblock = 84;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            vi factors[4], head[4];
            load_dwords(s, at, factors);
            load_dwords(s, at + 68, head);
            const vf d = ihalf_floats(head[3]), minimum = vsub(vzero(), ihalf_floats(ishr(head[3], 16)));
            for (int half = 0; half < 2; half++) {
                vi packed[8];
                load_dwords(s, at + 16 + 32 * half, packed);
                load_dwords(s, at + 32 + 32 * half, packed + 4);
                for (int k = 0; k < 4; k++) {
                    const vi four = factors[2 * half + k / 2], scales = low_nibbles(four), minima = high_nibbles(four);
                    const int byte = 2 * (k % 2);
                    Block block;
                    two_bits_of(packed, k, block.w);
                    block.d = vmul(d, byte_float(scales, byte));
                    block.d2 = vmul(d, byte_float(scales, byte + 1));
                    block.m = vmul(minimum, byte_float(minima, byte));
                    block.m2 = vmul(minimum, byte_float(minima, byte + 1));
                    sink.take(b + 4 * half + k, block);
                }
            }
        }
    }
};

struct WalkTQ2_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kMost = kByteZero + 2;
    static constexpr int kBytes = 9; 
    static constexpr int kSuperblock = 66;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Block block;
            block.d = load_halves(s, at + 64);
            for (int half = 0; half < 2; half++) {
                vi packed[8];
                load_dwords(s, at + 32 * half, packed);
                load_dwords(s, at + 16 + 32 * half, packed + 4);
                for (int k = 0; k < 4; k++) {
                    two_bits_of(packed, k, block.w);
                    for (int j = 0; j < 8; j++) block.w[j] = iadd8(block.w[j], iset8(kByteZero - 1));
                    sink.take(b + 4 * half + k, block);
                }
            }
        }
    }
};

struct WalkIQ4_XS {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kMost = 128;
    static constexpr int kBytes = 17;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vi table = byte_table(kIq4Values), four = iset(15), two = iset(3);
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kBytes * b;
            vi head[4];
            load_dwords(s, at, head);
            const vf d = ihalf_floats(head[0]);
            for (int i = 0; i < 8; i++) {
                vi packed[4];
                load_dwords(s, at + 8 + 16 * i, packed);
                Block block;
                look_up_nibbles(table, packed, block.w);
                const vi low = iand(ishr(head[1], 4 * i), four);
                const vi high = iand(ishr(head[0], 16 + 2 * i), two);
                const vi step = isub(ior(low, ishl(high, 4)), iset(32));
                block.d = vmul(d, ifloat(step));
                sink.take(b + i, block);
            }
        }
    }
};
PK_END
