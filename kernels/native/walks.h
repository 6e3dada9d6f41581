// Walks over the strips of common formats; layouts as in formats.h and formats_table.h, results equal to theirs.
#pragma once
#include "formats_table.h"
#include "lanes.h"

PK_BEGIN
// The bytes of W rows of a strip, block by block: 8 vectors of bytes, scales, minima. A walk hands each block to a sink.
// Bytes count from kByteZero, or from the format's kZero where a scale holds for 16 channels (tiles: kByteZero again).
constexpr int kByteZero = kInt8 == kSigned ? 0 : 128;

struct Block {
    vi w[8];
    vf d, m;
    vf d2, m2;  // of the second half, where a format has a scale per 16 channels
};

PK_INLINE vi low_nibbles(vi v) { return iand(v, iset8(15)); }
PK_INLINE vi high_nibbles(vi v) { return iand(ishr(v, 4), iset8(15)); }

PK_INLINE void split_nibbles(const vi packed[4], vi w[8]) {
    for (int j = 0; j < 4; j++) {
        w[j] = low_nibbles(packed[j]);
        w[j + 4] = high_nibbles(packed[j]);
    }
}

// Low half of each dword is d, high half m.
PK_INLINE void split_scales(vi pair, Block& block) {
    block.d = ihalf_floats(pair);
    block.m = ihalf_floats(ishr(pair, 16));
}

// Byte i of every dword as a float.
PK_INLINE vf byte_float(vi v, int i) { return ifloat(iand(ishr(v, 8 * i), iset(255))); }
PK_INLINE vf signed_byte_float(vi v, int i) { return ifloat(isar(ishl(v, 24 - 8 * i), 24)); }

// A 4-bit table as the bytes of a tile.
PK_INLINE vi byte_table(const int8_t* values) { return iadd8(irepeat16(values), iset8(kByteZero)); }
PK_INLINE void look_up_nibbles(vi table, const vi packed[4], vi w[8]) {
    for (int j = 0; j < 4; j++) {
        w[j] = ishuffle(table, low_nibbles(packed[j]));
        w[j + 4] = ishuffle(table, high_nibbles(packed[j]));
    }
}

struct WalkQ4_0 {
    static constexpr ByteKind kKind = kUnsignedMinus8;
    static constexpr bool kHalves = false;
    static constexpr int kMost = 15;
    static constexpr int kBytes = 18;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b++) {
            Block block;
            vi packed[4];
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
    static constexpr int kMost = 15;
    static constexpr int kBytes = 20;

    template <class Sink>
    PK_INLINE void give(vi pair, const vi packed[4], int b, Sink& sink) {
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
            vi raw[20];
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
            vi head[4], packed[4];
            load_dwords(s, (size_t)kBytes * b, head);
            load_dwords(s, (size_t)kBytes * b + 4, packed);
            give(head[0], packed, b, sink);
        }
    }
};

struct WalkQ8_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kMost = 128;
    static constexpr int kBytes = 34;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vi flip = iset8(kInt8Flip);
        for (int b = 0; b < blocks; b++) {
            Block block;
            load_dwords(s, (size_t)kBytes * b + 2, block.w);
            load_dwords(s, (size_t)kBytes * b + 18, block.w + 4);
            for (int j = 0; j < 8; j++) block.w[j] = ixor(block.w[j], flip);
            block.d = load_halves(s, (size_t)kBytes * b);
            sink.take(b, block);
        }
    }
};

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
    static constexpr int kBytes = 27;       // of 32 channels, rounded up; prefetches only
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
    static constexpr int kBytes = 14;       // of 32 channels, rounded up; prefetches only
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

// Sixteen where bit 4j + c of a row's dword is set, at byte c of its group j.
PK_INLINE vi fifth_bits(vi bits, int j) {
    alignas(16) static const uint32_t kDwords[4] = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
    const vi spread = ishuffle(bits, iadd(irepeat16(kDwords), iset(0x01010101 * (j / 2))));
    return iwhere_bits(spread, iset(j % 2 ? (int)0x80402010 : 0x08040201), iset8(16));
}

struct WalkQ5_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kMost = kByteZero + 16;
    static constexpr int kBytes = 22;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b++) {
            const size_t at = (size_t)kBytes * b;
            vi head[4], packed[4];
            load_dwords(s, at + 2, head);
            load_dwords(s, at + 6, packed);
            Block block;
            split_nibbles(packed, block.w);
            for (int j = 0; j < 8; j++)
                block.w[j] = iadd8(ior(block.w[j], fifth_bits(head[0], j)), iset8(kByteZero - 16));
            block.d = load_halves(s, at);
            sink.take(b, block);
        }
    }
};

struct WalkQ5_1 {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kHalves = false;
    static constexpr int kMost = 31;
    static constexpr int kBytes = 24;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b++) {
            const size_t at = (size_t)kBytes * b;
            vi head[4], packed[4];
            load_dwords(s, at, head);
            load_dwords(s, at + 8, packed);
            Block block;
            split_nibbles(packed, block.w);
            for (int j = 0; j < 8; j++) block.w[j] = ior(block.w[j], fifth_bits(head[1], j));
            split_scales(head[0], block);
            sink.take(b, block);
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
    static constexpr int kBytes = 11;       // of 32 channels, rounded up; prefetches only
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
    static constexpr int kBytes = 9;        // of 32 channels, rounded up; prefetches only
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

struct WalkIQ4_NL {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = false;
    static constexpr int kMost = 128;
    static constexpr int kBytes = 18;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vi table = byte_table(kIq4Values);
        for (int b = 0; b < blocks; b++) {
            vi packed[4];
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
    static constexpr int kMost = kByteZero + 12;
    static constexpr int kBytes = 17;
    // Half of 2^(e - 127); the smallest are subnormal.
    PK_INLINE vf exponents(vi e) {
        const vi bits = ior(ishl(e, 23), iand(iequal(e, iset(0)), iset(0x400000)));
        return vmul(ias_float(bits), vset(0.5f));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vi table = byte_table(kFp4Values);
        for (int b = 0; b < blocks; b++) {
            vi packed[4];
            load_dwords(s, (size_t)kBytes * b + 1, packed);
            Block block;
            look_up_nibbles(table, packed, block.w);
            block.d = exponents(load_bytes(s, (size_t)kBytes * b));
            sink.take(b, block);
        }
    }
};

struct WalkNVFP4 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kHalves = true;
    static constexpr int kZero = 16;
    static constexpr int kMost = 28;
    static constexpr int kBytes = 18;
    // Half of E4M3, by way of a float with the same exponent and mantissa; 0x7f counts as zero.
    PK_INLINE vf scale(vi four, int i) {
        const vi code = iand(ishr(four, 8 * i), iset(255));
        const vi bits = ishl(iand(code, iset(0x7f)), 20), none = iequal(code, iset(0x7f));
        return vmul(ias_float(iand(bits, ixor(none, iset(-1)))), vset(6.646139978924579e35f));  // 2^119
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vi table = iadd8(irepeat16(kFp4Values), iset8(kZero));
        for (int b = 0; b < blocks; b += 2) {
            vi raw[4], first[4], second[4];
            load_dwords(s, (size_t)kBytes * b, raw);
            load_dwords(s, (size_t)kBytes * b + 4, first);
            load_dwords(s, (size_t)kBytes * b + 20, second);
            const vi scales = raw[0];
            for (int i = 0; i < 2; i++) {
                const vi* packed = i ? second : first;
                Block block;
                for (int j = 0; j < 8; j++) {
                    const vi two = packed[j / 4 * 2 + j % 2];
                    block.w[j] = ishuffle(table, j % 4 < 2 ? low_nibbles(two) : high_nibbles(two));
                }
                block.d = scale(scales, 2 * i);
                block.d2 = scale(scales, 2 * i + 1);
                sink.take(b + i, block);
            }
        }
    }
};
PK_END
