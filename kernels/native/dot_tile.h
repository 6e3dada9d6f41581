// Products of a tile with a group of tokens; their order stands in linear_quant.cpp.
#pragma once
#include "lanes.h"

PK_BEGIN
#if defined(PK_LANES)
// Tokens of a group that one pass takes: what registers hold.
constexpr int kPassTokens = sizeof(vi) == 32 ? 4 : 8;

// Adds to the int32 sums of N tokens the products with COUNT vectors of the tile, 64 bytes apart, with bytes up to MOST.
template <ByteKind KIND, int MOST, int COUNT, int N>
PK_INLINE void dot_vectors(vi* dots, const uint8_t* q, const int8_t* a, int step) {
#if defined(PK_PAIRS)
    constexpr int kRun = kPairsAtOnce<MOST> < COUNT ? kPairsAtOnce<MOST> : COUNT;
    each<COUNT / kRun>(PK_EACH(run) {
        vi pairs[N];
        each<kRun>(PK_EACH(i) {
            constexpr int j = kRun * run + i;
            const vi w = iload(q + 64 * j);
            each<N>(PK_EACH(t) {
                const vi both = ipairs<KIND>(w, broadcast4(a + j * step + 4 * t));
                pairs[t] = i == 0 ? both : iadd16(pairs[t], both);
            });
        });
        each<N>(PK_EACH(t) { dots[t] = iadd(dots[t], isum_pairs(pairs[t])); });
    });
#elif defined(__ARM_FEATURE_DOTPROD)
    each<COUNT>(PK_EACH(j) {
        const vi w = iload(q + 64 * j);
        const int8_t* tokens = a + j * step;
        each<N / 4>(PK_EACH(i) {
            const vi four = iload(tokens + 16 * i);
            each<4>(PK_EACH(t) { dots[4 * i + t] = idot_lane<t>(dots[4 * i + t], w, four); });
        });
        each<N % 4>(PK_EACH(i) {
            constexpr int t = N / 4 * 4 + i;
            dots[t] = idot<KIND>(dots[t], w, broadcast4(tokens + 4 * t));
        });
    });
#else
    each<COUNT>(PK_EACH(j) {
        const vi w = iload(q + 64 * j);
        each<N>(PK_EACH(t) { dots[t] = idot<KIND>(dots[t], w, broadcast4(a + j * step + 4 * t)); });
    });
#endif
}

template <ByteKind KIND>
constexpr int kMostOf = KIND == kUnsignedMinus8 ? 15 : KIND == kUnsignedMin ? 31 : 128;

// Tokens [first, first + N) of the G of a group, rows [row, row + W).
template <int N, int G, ByteKind KIND>
PK_INLINE void dot_pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, Results results) {
    vf sums[N];
    each<N>(PK_EACH(i) { sums[i] = vzero(); });
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    for (int b = 0; b < blocks; b++, data += kBlock * G, meta += 4 * G) {
        vi dots[N];
        each<N>(PK_EACH(i) { dots[i] = zero_point<KIND>(meta, G, i); });
        dot_vectors<KIND, kMostOf<KIND>, 8, N>(dots, tile.q + (size_t)512 * b + 4 * row, data, 4 * G);
        const vf d = vload(tile.d + 16 * b + row);
        each<N>(PK_EACH(i) { sums[i] = vfma(vmul(ifloat(dots[i]), vset(meta[i])), d, sums[i]); });
        if constexpr (KIND == kUnsignedMin) {
            const vf m = vload(tile.m + 16 * b + row);
            each<N>(PK_EACH(i) { sums[i] = vfma(vset(meta[G + i]), m, sums[i]); });
        }
    }
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

template <int N, int G, ByteKind KIND>
PK_INLINE void halves_pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, Results results) {
    vf sums[N];
    each<N>(PK_EACH(i) { sums[i] = vzero(); });
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    const float* halves = group.halves + first;
    for (int b = 0; b < blocks; b++, data += kBlock * G, meta += 4 * G, halves += 2 * G) {
        vf pairs[N];
        each<2>(PK_EACH(half) {
            vi dots[N];
            each<N>(PK_EACH(i) { dots[i] = zero_of_half<(KIND == kUnsignedMinus128 ? 128 : 0)>(halves + G * half + i); });
            dot_vectors<KIND, kMostOf<KIND>, 4, N>(dots, tile.q + (size_t)512 * b + 256 * half + 4 * row,
                                                   data + 16 * G * half, 4 * G);
            const vf d = vload(tile.d + 32 * b + 16 * half + row);
            each<N>(PK_EACH(i) {
                const vf dot = ifloat(dots[i]);
                pairs[i] = half ? vfma(dot, d, pairs[i]) : vmul(dot, d);
            });
        });
        each<N>(PK_EACH(i) { sums[i] = vfma(pairs[i], vset(meta[i]), sums[i]); });
    }
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

// Superblocks: sums stay integers until one is complete.
template <int N, int G, bool HALVES, ByteKind KIND>
PK_INLINE void super_pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, Results results) {
    constexpr int kScales = HALVES ? 16 : 8, kVectors = 64 / kScales;
    constexpr bool kMin = KIND == kUnsignedMin;
    vf sums[N];
    each<N>(PK_EACH(i) { sums[i] = vzero(); });
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    const uint8_t* q = tile.q + 4 * row;
    const int32_t* factors = tile.factors + row;
    for (int s = 0; s < blocks / 8; s++, meta += kSuperWords * G) {
        vi totals[N];
        each<N>(PK_EACH(i) { totals[i] = iset(0); });
        for (int j = 0; j < kScales; j++, q += 64 * kVectors, data += 4 * kVectors * G, factors += 16) {
            vi dots[N];
            each<N>(PK_EACH(i) { dots[i] = zero_of_super<KIND, HALVES>(meta + i, G, j); });
            dot_vectors<KIND, kMostOf<KIND>, kVectors, N>(dots, q, data, 4 * G);
            const vi scale = iload(factors);
            each<N>(PK_EACH(i) { totals[i] = iadd(totals[i], imul(dots[i], scale)); });
        }
        vf scaled[N];
        const vf d = vload(tile.d + 16 * s + row);
        each<N>(PK_EACH(i) { scaled[i] = vmul(ifloat(totals[i]), d); });
        if constexpr (kMin) {
            vi minima[N];
            each<N>(PK_EACH(i) { minima[i] = iset(0); });
            each<kScales / 2>(PK_EACH(j) {
                const vi pairs = iload(factors + 16 * j);
                const float* words = meta + (kPairWord<HALVES> + j) * G;
                each<N>(PK_EACH(i) { minima[i] = iadd_pairs(minima[i], pairs, broadcast4((const int8_t*)(words + i))); });
            });
            factors += 16 * kScales / 2;
            const vf m = vload(tile.m + 16 * s + row);
            each<N>(PK_EACH(i) { scaled[i] = vfma(ifloat(minima[i]), m, scaled[i]); });
        }
        each<N>(PK_EACH(i) { sums[i] = vfma(scaled[i], vset(meta[i]), sums[i]); });
    }
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

template <TileShape SHAPE, int N, int G, ByteKind KIND>
PK_INLINE void pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, Results results) {
    if constexpr (SHAPE == kWhole) dot_pass<N, G, KIND>(tile, blocks, group, first, row, results);
    else if constexpr (SHAPE == kHalved) halves_pass<N, G, KIND>(tile, blocks, group, first, row, results);
    else super_pass<N, G, SHAPE == kSuperHalved, KIND>(tile, blocks, group, first, row, results);
}

template <int N, TileShape SHAPE, ByteKind KIND>
static void dot_group(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    constexpr int kFirst = N < kPassTokens ? N : kPassTokens;
    for (int row = 0; row < kStripRows; row += W) {
        pass<SHAPE, kFirst, N, KIND>(tile, blocks, group, 0, row, results);
        if constexpr (N > kFirst) pass<SHAPE, N - kFirst, N, KIND>(tile, blocks, group, kFirst, row, results);
    }
}
#endif
PK_END
