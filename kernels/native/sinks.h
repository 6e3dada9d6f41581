// What a walk hands its blocks to: sinks that multiply them with the activations of some tokens (those that store a tile:
// tile_sinks.h). The order of the sums stands in linear_quant.cpp.
#pragma once
#include "walks_super.h"

PK_BEGIN
// W rows of a strip; those that follow are of the same strip or of the next.
PK_INLINE Strip rows_from(const Strip& s, int row) {
    const size_t at = row * s.stride, end = at + W * s.stride;
    return Strip{s.data + at, s.stride, row + W < kStripRows ? s.data + end : s.next, s.later + at};
}

// Asked for into L2 while byte `offset` of ROWS rows is multiplied: of short rows what lies as far behind s.later, of longer
// ones what is read kFarBytes later, at most as much as the rows have. Three long strips ahead cost up to a sixth of memory's
// rate.
constexpr size_t kLongStrip = 32 << 10, kFarBytes = 48 << 10;
template <int ROWS>
PK_INLINE const uint8_t* far_ahead(const Strip& s, size_t offset) {
    const size_t bytes = ROWS * s.stride, ahead = offset + kFarBytes;
    if (bytes <= kLongStrip * ROWS / kStripRows) return s.later + offset;
    if (bytes <= kFarBytes) return s.next + offset;
    return ahead < bytes ? s.data + ahead : s.next + (ahead - bytes);
}

// Weights are read in order some way ahead of the multiplication, into L2: L1 has too few miss buffers. The same
// number of lines for every part of a block: in bursts they wait for each other.
PK_INLINE void prefetch_strip(const Strip& s, int part, int part_bytes) {
    const uint8_t* ahead = far_ahead<W>(s, (size_t)part * part_bytes);
    for (int at = 0; at < part_bytes; at += 64) __builtin_prefetch(ahead + at, 0, 2);
}

// The first lines of the rows that come next go to L1; from there on the hardware follows each row by itself.
PK_INLINE void prefetch_rows(const Strip& s, int block) {
    if (block >= W / 2) return;
    const uint8_t* row = s.next + (size_t)(2 * block) * s.stride;
    for (int i = 0; i < 2; i++, row += s.stride) {
        __builtin_prefetch(row, 0, 3);
        __builtin_prefetch(row + 64, 0, 3);
    }
}

template <class Walk>
PK_INLINE void prefetch_block(const Strip& s, int block) {
    prefetch_strip(s, block, Walk::kBytes * W);
    prefetch_rows(s, block);
}

template <class Walk>
PK_INLINE void prefetch_half(const Strip& s, int block, int half) {
    prefetch_strip(s, block / 4 * 8 + 4 * half + block % 4, Walk::kBytes * W / 2);  // in the order of the calls
    if (half == 0) prefetch_rows(s, block);
}

// start + products of COUNT vectors of bytes up to MOST with the dwords at a, `step` bytes apart.
template <ByteKind KIND, int MOST, int COUNT>
PK_INLINE vi idots(vi start, const vi* w, const int8_t* a, int step) {
#if defined(PK_PAIRS)
    constexpr int kRun = kPairsAtOnce<MOST> < COUNT ? kPairsAtOnce<MOST> : COUNT;
    each<COUNT / kRun>(PK_EACH(run) {
        vi pairs = ipairs<KIND>(w[kRun * run], broadcast4(a + kRun * run * step));
        each<kRun - 1>(PK_EACH(i) {
            constexpr int j = kRun * run + i + 1;
            pairs = iadd16(pairs, ipairs<KIND>(w[j], broadcast4(a + j * step)));
            now(pairs);
        });
        start = iadd(start, isum_pairs(pairs));
    });
    return start;
#else
#if defined(__ARM_FEATURE_DOTPROD)
    if (step == 4) {  // one token: its channels lie together
        vi odd = iset(0);
        each<COUNT / 4>(PK_EACH(i) {
            const vi four = iload(a + 16 * i);
            start = idot_lane<0>(start, w[4 * i], four);
            odd = idot_lane<1>(odd, w[4 * i + 1], four);
            start = idot_lane<2>(start, w[4 * i + 2], four);
            odd = idot_lane<3>(odd, w[4 * i + 3], four);
        });
        return iadd(start, odd);
    }
#endif
    if constexpr (COUNT < 8) {
        each<COUNT>(PK_EACH(j) { start = idot<KIND>(start, w[j], broadcast4(a + j * step)); });
        return start;
    } else {
        vi odd = iset(0);
        each<COUNT / 2>(PK_EACH(i) {
            start = idot<KIND>(start, w[2 * i], broadcast4(a + 2 * i * step));
            odd = idot<KIND>(odd, w[2 * i + 1], broadcast4(a + (2 * i + 1) * step));
        });
        return iadd(start, odd);
    }
#endif
}

template <int N, class Walk>
struct DotSink {
    Strip strip;
    const int8_t* data;
    const float* meta;
    const float* halves;
    vf sums[N];
    DotSink(const Strip& rows, const QuantGroup& group)
        : strip(rows), data(group.data), meta(group.meta), halves(group.halves) {
        each<N>(PK_EACH(i) { sums[i] = vzero(); });
    }
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        prefetch_block<Walk>(strip, b);
        const int8_t* a = data + (size_t)b * kBlock * N;
        const float* words = meta + (size_t)b * kBlockWords * N;
        if constexpr (Walk::kHalves) take_halves(block, a, words, halves + (size_t)b * 2 * N);
        else take_whole(block, a, words);
    }
    PK_INLINE_MEMBER void take_whole(const Block& block, const int8_t* a, const float* words) {
        each<N>(PK_EACH(i) {
            const vi start = zero_point<Walk::kKind>(words, N, i);
            const vi dots = idots<Walk::kKind, Walk::kMost, 8>(start, block.w, a + 4 * i, 4 * N);
            sums[i] = vfma(scaled_sum(dots, words, N, i), block.d, sums[i]);
            if constexpr (Walk::kKind == kUnsignedMin) sums[i] = vfma(vset(words[N + i]), block.m, sums[i]);
        });
    }
    PK_INLINE_MEMBER void take_halves(const Block& block, const int8_t* a, const float* scales, const float* offsets) {
        each<N>(PK_EACH(i) {
            const vi zero = zero_of_half<Walk::kZero>(offsets + i), zero2 = zero_of_half<Walk::kZero>(offsets + N + i);
            const vi first = idots<kUnsignedMin, Walk::kMost, 4>(zero, block.w, a + 4 * i, 4 * N);
            const vi second = idots<kUnsignedMin, Walk::kMost, 4>(zero2, block.w + 4, a + 4 * (4 * N + i), 4 * N);
            const vf pair = vfma(ifloat(second), block.d2, vmul(ifloat(first), block.d));
            sums[i] = vfma(pair, vset(scales[i]), sums[i]);
        });
    }
    PK_INLINE_MEMBER void put(Results results, int row) const {
        each<N>(PK_EACH(i) { vstore(results[i] + row, sums[i]); });
    }
};

// Superblocks whose sums of a scale are small (TileShape).
template <class Walk>
constexpr bool kSmall = Walk::kHalves || (Walk::kKind == kUnsignedMin && Walk::kMost <= 15);

// The same for superblocks: sums stay integers until one is complete. Small ones are told apart where tokens are many enough.
template <int N, class Walk>
struct SuperDotSink {
    static constexpr bool kMin = Walk::kKind == kUnsignedMin;
#if defined(__AVX512VNNI__)
    static constexpr bool kTellSmall = kSmall<Walk> && N >= 4;
#else
    static constexpr bool kTellSmall = false;
#endif
    static constexpr bool kTileBytes = kTellSmall && Walk::kHalves && !kMin;  // counted from kByteZero, each sum for itself
    Strip strip;
    const int8_t* data;
    const float* meta;
    bool small = false;
    vi totals[N];
    vf sums[N];
    SuperDotSink(const Strip& rows, const QuantGroup& group) : strip(rows), data(group.data), meta(group.meta) {
        each<N>(PK_EACH(i) {
            totals[i] = iset(0);
            sums[i] = vzero();
        });
    }
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        prefetch_block<Walk>(strip, b);
        const int8_t* a = data + (size_t)b * kBlock * N;
        const float* words = meta + (size_t)(b / 8) * kSuperWords * N;
        if (kTellSmall && b % 8 == 0) small = !exceeds_small<N, N>(words);
        vi dots[N];
        each<N>(PK_EACH(i) {
            const vi zero = zero_of_super<Walk::kKind, false>(words + i, N, b % 8);
            dots[i] = idots<Walk::kKind, Walk::kMost, 8>(zero, block.w, a + 4 * i, 4 * N);
        });
        add(dots, block.scale);
    }
    PK_INLINE_MEMBER void take_half(int b, int half, const HalfBlock& block) {
        prefetch_half<Walk>(strip, b, half);
        const int8_t* a = data + ((size_t)b * kBlock + 16 * half) * N;
        const float* words = meta + (size_t)(b / 8) * kSuperWords * N;
        if (kTellSmall && b % 8 + half == 0) small = !exceeds_small<N, N>(words);
        vi w[4], dots[N];
        each<4>(PK_EACH(j) { w[j] = kTileBytes ? iadd8(block.w[j], iset8(kByteZero - Walk::kZero)) : block.w[j]; });
        each<N>(PK_EACH(i) {
            const vi zero = zero_of_super<kTileBytes ? kUnsignedMinus128 : kUnsignedMin, true>(words + i, N, b % 8 * 2 + half);
            dots[i] = idots<kUnsignedMin, Walk::kMost, 4>(zero, w, a + 4 * i, 4 * N);
        });
        add(dots, block.scale);
    }
    PK_INLINE_MEMBER void add(const vi (&dots)[N], vi scale) {
        if constexpr (kTellSmall) {
            if (small) {
                const vi factor = kTileBytes ? iand(scale, iset(0xffff)) : scale;
                each<N>(PK_EACH(i) { totals[i] = iadd_pairs(totals[i], dots[i], factor); });
                return;
            }
        }
        each<N>(PK_EACH(i) { totals[i] = iadd(totals[i], imul(dots[i], scale)); });
    }
    PK_INLINE_MEMBER void close(int superblock, const Super& super) {
        const float* words = meta + (size_t)superblock * kSuperWords * N;
        constexpr bool kMoved = Walk::kHalves && !kMin && !kTileBytes;
        each<N>(PK_EACH(i) {
            vi pairs = iset(0);
            if constexpr (kMin || kMoved)
                each<Walk::kHalves ? 8 : 4>(PK_EACH(j) {
                    const float* sum = words + (kPairWord<Walk::kHalves> + j) * N + i;
                    pairs = iadd_pairs(pairs, super.pairs[j], broadcast4((const int8_t*)sum));
                });
            if constexpr (kMoved) totals[i] = isub(totals[i], ishl(pairs, __builtin_ctz(Walk::kZero)));
            vf total = vmul(ifloat(totals[i]), super.d);
            if constexpr (kMin) total = vfma(ifloat(pairs), super.m, total);
            sums[i] = vfma(total, vset(words[i]), sums[i]);
            totals[i] = iset(0);
        });
    }
    PK_INLINE_MEMBER void put(Results results, int row) const {
        each<N>(PK_EACH(i) { vstore(results[i] + row, sums[i]); });
    }
};
PK_END
