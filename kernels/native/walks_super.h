// Walks over strips of formats with superblocks of 256 channels; kBytes, of 32 channels and rounded up, is for prefetches only.
#pragma once
#include "walks.h"

PK_BEGIN
// The 6-bit scales and minima of Q4_K and Q5_K, 4 to a vector.
struct SixBits {
    vi scales[2];
    Super super;
    PK_INLINE_MEMBER void load(const Strip& s, size_t at) {
        vi head[4];
        load_dwords(s, at, head);
        const vi six = iset8(63), four = iset8(15), top = iset8(0x30);
        super.d = ihalf_floats(head[0]);
        super.m = vsub(vzero(), ihalf_floats(ishr(head[0], 16)));
        scales[0] = iand(head[1], six);
        scales[1] = ior(iand(head[3], four), iand(ishr(head[1], 2), top));
        byte_pairs(iand(head[2], six), 0, super.pairs);
        byte_pairs(ior(high_nibbles(head[3]), iand(ishr(head[2], 2), top)), 0, super.pairs + 2);
    }
    PK_INLINE_MEMBER void give(int i, Block& block) const { block.scale = byte_of(scales[i / 4], i % 4); }
};

struct WalkQ4_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kSuperblocks = true;
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
            sink.close(b / 8, six.super);
        }
    }
};

struct WalkQ5_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kSuperblocks = true;
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
            sink.close(b / 8, six.super);
        }
    }
};

struct WalkQ6_K {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = true;
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
    PK_INLINE void give(const vi packed[4], const vi high[4], vi scale, int b, int half, Sink& sink) {
        const vi two = iset8(0x30);
        HalfBlock block;
        block.scale = scale;
        for (int j = 0; j < 4; j++) {
            const vi low = K < 2 ? low_nibbles(packed[j]) : high_nibbles(packed[j]);
            block.w[j] = ior(low, iand(top_bits<K>(high[j]), two));
        }
        sink.take_half(b, half, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = load_halves(s, at + 208);
            vi scales[4];
            load_dwords(s, at + 192, scales);
#pragma GCC unroll 1
            for (int four = 0; four < 2; four++) {
                const vi low = scales[2 * four], top = scales[2 * four + 1];
                each<2>(PK_EACH(half) {
                    vi high[4], first[4], second[4];
                    load_dwords(s, at + 128 + 32 * four + 16 * half, high);
                    load_dwords(s, at + 64 * four + 16 * half, first);
                    load_dwords(s, at + 64 * four + 32 + 16 * half, second);
                    give<0>(first, high, signed_byte_of(low, half), b + 4 * four, half, sink);
                    give<1>(second, high, signed_byte_of(low, 2 + half), b + 4 * four + 1, half, sink);
                    give<2>(first, high, signed_byte_of(top, half), b + 4 * four + 2, half, sink);
                    give<3>(second, high, signed_byte_of(top, 2 + half), b + 4 * four + 3, half, sink);
                });
            }
            for (int i = 0; i < 4; i++) byte_pairs(ixor(scales[i], iset8(0x80)), 128, super.pairs + 2 * i);
            sink.close(b / 8, super);
        }
    }
};

struct WalkQ3_K {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = true;
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
        const vi offset = iset(32);
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            vi scales[4];
            Super super;
            super.d = load_scales(s, at, scales);
#pragma GCC unroll 1
            for (int half = 0; half < 2; half++) {
                vi high[4];
                load_dwords(s, at + 16 * half, high);
#pragma GCC unroll 1
                for (int four = 0; four < 2; four++) {
                    vi packed[4];
                    load_dwords(s, at + 32 + 32 * four + 16 * half, packed);
                    each<4>(PK_EACH(k) {
                        HalfBlock block;
                        for (int j = 0; j < 4; j++) {
                            const vi two = iand(ishr(packed[j], 2 * k), iset8(3));
                            const vi moved = ishl(ishr(high[j], k), 2);
                            block.w[j] = ior(two, iand(moved, iset8(4)));
                        }
                        block.scale = isub(byte_of(scales[2 * four + k / 2], 2 * (k % 2) + half), offset);
                        sink.take_half(b + 4 * four + k, half, block);
                    });
                    for (int j = 0; j < 4; j++) high[j] = ishr(high[j], 4);
                }
            }
            for (int i = 0; i < 4; i++) byte_pairs(scales[i], 32, super.pairs + 2 * i);
            sink.close(b / 8, super);
        }
    }
};

// Two bits of every byte; all lowest pairs of 32 bytes are 32 channels, then the next ones.
struct WalkQ2_K {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kSuperblocks = true;
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
            Super super;
            super.d = ihalf_floats(head[3]);
            super.m = vsub(vzero(), ihalf_floats(ishr(head[3], 16)));
            for (int i = 0; i < 4; i++) byte_pairs(high_nibbles(factors[i]), 0, super.pairs + 2 * i);
#pragma GCC unroll 1
            for (int four = 0; four < 2; four++)
                each<2>(PK_EACH(half) {
                    vi packed[4];
                    load_dwords(s, at + 16 + 32 * four + 16 * half, packed);
                    each<4>(PK_EACH(k) {
                        HalfBlock block;
                        for (int j = 0; j < 4; j++) block.w[j] = iand(ishr(packed[j], 2 * k), iset8(3));
                        block.scale = byte_of(low_nibbles(factors[2 * four + k / 2]), 2 * (k % 2) + half);
                        sink.take_half(b + 4 * four + k, half, block);
                    });
                });
            sink.close(b / 8, super);
        }
    }
};

struct WalkTQ2_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = true;
    static constexpr bool kHalves = false;
    static constexpr int kMost = kByteZero + 2;
    static constexpr int kBytes = 9; 
    static constexpr int kSuperblock = 66;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = load_halves(s, at + 64);
            Block block;
            block.scale = iset(1);
            for (int half = 0; half < 2; half++) {
                vi packed[8];
                load_dwords(s, at + 32 * half, packed);
                load_dwords(s, at + 16 + 32 * half, packed + 4);
                for (int k = 0; k < 4; k++) {
                    for (int j = 0; j < 8; j++)
                        block.w[j] = iadd8(iand(ishr(packed[j], 2 * k), iset8(3)), iset8(kByteZero - 1));
                    sink.take(b + 4 * half + k, block);
                }
            }
            sink.close(b / 8, super);
        }
    }
};

struct WalkIQ4_XS {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = true;
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
            Super super;
            super.d = ihalf_floats(head[0]);
            for (int i = 0; i < 8; i++) {
                vi packed[4];
                load_dwords(s, at + 8 + 16 * i, packed);
                Block block;
                look_up_nibbles(table, packed, block.w);
                const vi low = iand(ishr(head[1], 4 * i), four);
                const vi high = iand(ishr(head[0], 16 + 2 * i), two);
                block.scale = isub(ior(low, ishl(high, 4)), iset(32));
                sink.take(b + i, block);
            }
            sink.close(b / 8, super);
        }
    }
};
PK_END
