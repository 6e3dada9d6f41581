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
    vf d2;      // of the second half, where a format has a scale per 16 channels
    vi scale;   // in a superblock, instead of d
};

// Half of a block of a superblock where scales hold for 16 channels.
struct HalfBlock {
    vi w[4];
    vi scale;
};

// What a walk says of a superblock when all its blocks were given. Pairs: of the minima, or of the scales where bytes count
// from kZero.
struct Super {
    vf d, m;
    vi pairs[8];
};

// Pairs of int16 of the bytes of four dwords each, from `zero` on: bytes 0 and 2, 1 and 3.
PK_INLINE void byte_pairs(vi four, int zero, vi pairs[2]) {
    const vi byte = iset(0x00ff00ff), from = iset(zero * 0x00010001);
    pairs[0] = isub16(iand(four, byte), from);
    pairs[1] = isub16(iand(ishr(four, 8), byte), from);
}

// Low half of each dword is d, high half m.
PK_INLINE void split_scales(vi pair, Block& block) {
    block.d = ihalf_floats(pair);
    block.m = ihalf_floats(ishr(pair, 16));
}

// Byte i of every dword.
PK_INLINE vi byte_of(vi v, int i) { return iand(ishr(v, 8 * i), iset(255)); }
PK_INLINE vi signed_byte_of(vi v, int i) { return isar(ishl(v, 24 - 8 * i), 24); }

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
    static constexpr bool kSuperblocks = false;
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
    static constexpr bool kSuperblocks = false;
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
    static constexpr bool kSuperblocks = false;
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

// `yes` where bit 4j + c of a row's dword is set, at byte c of its group j.
PK_INLINE vi fifth_bits(vi bits, int j, vi yes, vi no) {
    alignas(16) static const uint32_t kDwords[4] = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
    const vi spread = ishuffle(bits, iadd(irepeat16(kDwords), iset(0x01010101 * (j / 2))));
    return ichoose(spread, iset(j % 2 ? (int)0x80402010 : 0x08040201), yes, no);
}

struct WalkQ5_0 {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = false;
    static constexpr bool kHalves = false;
    static constexpr int kMost = kByteZero + 16;
    static constexpr int kBytes = 22;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b++) {
            const size_t at = (size_t)kBytes * b;
            vi head[4], packed[4];
            load_dwords(s, at, head);
            load_dwords(s, at + 6, packed);
            Block block;
            split_nibbles(packed, block.w);
            const vi bits = ior(ishr(head[0], 16), ishl(head[1], 16));
            for (int j = 0; j < 8; j++)  // less 16 where the bit is not set
                block.w[j] = ior(block.w[j], fifth_bits(bits, j, iset8(kByteZero), iset8(kByteZero - 16)));
            block.d = ihalf_floats(head[0]);
            sink.take(b, block);
        }
    }
};

struct WalkQ5_1 {
    static constexpr ByteKind kKind = kUnsignedMin;
    static constexpr bool kSuperblocks = false;
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
            for (int j = 0; j < 8; j++) block.w[j] = ior(block.w[j], fifth_bits(head[1], j, iset8(16), iset8(0)));
            split_scales(head[0], block);
            sink.take(b, block);
        }
    }
};

struct WalkIQ4_NL {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = false;
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
    static constexpr bool kSuperblocks = false;
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
    static constexpr bool kSuperblocks = false;
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
