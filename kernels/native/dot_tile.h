// Products of a tile with a group of tokens; their order stands in linear_quant.cpp.
#pragma once
#include "lanes.h"

PK_BEGIN
#if defined(PK_LANES)
// Tokens of a group that one pass takes: what registers hold.
constexpr int kPassTokens = sizeof(vi) == 32 ? 4 : 8;

// How often a product of a tile with a group asks for what is read next: every 64 channels of a pass.
static int asks_of_product(int blocks) { return (blocks + 1) / 2 * (kStripRows / W) * (kGroupTokens / kPassTokens); }

// Blocks (parts of one with a scale) whose sums grow side by side: a core that starts two products a cycle and takes five
// cycles for each needs ten sums at a time (Emerald Rapids: 427 to 489 Gop/s for Q4_K, 426 to 482 for Q4_1).
#if defined(__AVX512VNNI__)
constexpr int kSideBySide = 2;
#else
constexpr int kSideBySide = 1;
#endif

// Adds to the int32 sums of N tokens and BLOCKS blocks the products with COUNT vectors of the tile for each, 64 bytes
// apart.
template <ByteKind KIND, int COUNT, int N, int BLOCKS>
PK_INLINE void dot_vectors(vi (&dots)[BLOCKS][N], const uint8_t* q, const int8_t* a, int step) {
#if defined(__ARM_FEATURE_DOTPROD)
    each<COUNT>(PK_EACH(j) {
        const vi w = iload(q + 64 * j);
        const int8_t* tokens = a + j * step;
        each<N / 4>(PK_EACH(i) {
            const vi four = iload(tokens + 16 * i);
            each<4>(PK_EACH(t) { dots[0][4 * i + t] = idot_lane<t>(dots[0][4 * i + t], w, four); });
        });
        each<N % 4>(PK_EACH(i) {
            constexpr int t = N / 4 * 4 + i;
            dots[0][t] = idot<KIND>(dots[0][t], w, broadcast4(tokens + 4 * t));
        });
    });
#else
    each<COUNT>(PK_EACH(j) {
        vi w[BLOCKS];
        each<BLOCKS>(PK_EACH(k) { w[k] = iload(q + 64 * (COUNT * k + j)); });
        each<N>(PK_EACH(t) {
            each<BLOCKS>(PK_EACH(k) {
                dots[k][t] = idot<KIND>(dots[k][t], w[k], broadcast4(a + (COUNT * k + j) * step + 4 * t));
            });
        });
    });
#endif
}

// BLOCKS blocks from b on, their activations at `data` and `meta`.
template <ByteKind KIND, int G, int N, int BLOCKS>
PK_INLINE void add_blocks(vf (&sums)[N], const Tile& tile, int b, int row, const int8_t* data, const float* meta) {
    vi dots[BLOCKS][N];
    each<BLOCKS>(PK_EACH(k) {
        each<N>(PK_EACH(i) { dots[k][i] = zero_point<KIND>(meta + kBlockWords * G * k, G, i); });
    });
    dot_vectors<KIND, 8>(dots, tile.q + (size_t)512 * b + 4 * row, data, 4 * G);
    each<BLOCKS>(PK_EACH(k) {
        const float* words = meta + kBlockWords * G * k;
        const vf d = vload(tile.d + 16 * (b + k) + row);
        each<N>(PK_EACH(i) { sums[i] = vfma(scaled_sum(dots[k][i], words, G, i), d, sums[i]); });
        if constexpr (KIND == kUnsignedMin) {
            const vf m = vload(tile.m + 16 * (b + k) + row);
            each<N>(PK_EACH(i) { sums[i] = vfma(vset(words[G + i]), m, sums[i]); });
        }
    });
}

// Tokens [first, first + N) of the G of a group, rows [row, row + W).
template <int N, int G, ByteKind KIND>
PK_INLINE void dot_pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, NextLines& next, Results results) {
    vf sums[N];
    each<N>(PK_EACH(i) { sums[i] = vzero(); });
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    int b = 0;
    for (; b + kSideBySide <= blocks; b += kSideBySide, data += kSideBySide * kBlock * G, meta += kSideBySide * kBlockWords * G) {
        if (b % 2 == 0) next.ask();
        add_blocks<KIND, G, N, kSideBySide>(sums, tile, b, row, data, meta);
    }
    if (kSideBySide > 1 && b < blocks) add_blocks<KIND, G, N, 1>(sums, tile, b, row, data, meta);
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

template <int N, int G, ByteKind KIND>
PK_INLINE void halves_pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, NextLines& next,
                           Results results) {
    vf sums[N];
    each<N>(PK_EACH(i) { sums[i] = vzero(); });
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    const float* halves = group.halves + first;
    for (int b = 0; b < blocks; b++, data += kBlock * G, meta += kBlockWords * G, halves += 2 * G) {
        vf pairs[N];
        if (b % 2 == 0) next.ask();
        each<2 / kSideBySide>(PK_EACH(round) {
            constexpr int from = kSideBySide * round;
            vi dots[kSideBySide][N];
            each<kSideBySide>(PK_EACH(k) {
                each<N>(PK_EACH(i) {
                    dots[k][i] = zero_of_half<(KIND == kUnsignedMinus128 ? 128 : 0)>(halves + G * (from + k) + i);
                });
            });
            dot_vectors<KIND, 4>(dots, tile.q + (size_t)512 * b + 256 * from + 4 * row, data + 16 * G * from,
                                                4 * G);
            each<kSideBySide>(PK_EACH(k) {
                const vf d = vload(tile.d + 32 * b + 16 * (from + k) + row);
                each<N>(PK_EACH(i) {
                    const vf dot = ifloat(dots[k][i]);
                    pairs[i] = from + k ? vfma(dot, d, pairs[i]) : vmul(dot, d);
                });
            });
        });
        each<N>(PK_EACH(i) { sums[i] = vfma(pairs[i], vset(meta[i]), sums[i]); });
    }
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

// Products of a superblock with its scales; SMALL: in 16 bits (TileShape).
template <TileShape SHAPE, bool SMALL, ByteKind KIND, int G, int N>
PK_INLINE void add_super(vi (&whole)[N], const uint8_t* q, const int8_t* data, const float* meta, const int32_t* factors,
                         NextLines& next) {
    constexpr bool kHalves = halved_super(SHAPE);
    constexpr int kScales = kHalves ? 16 : 8, kVectors = 64 / kScales;
    for (int j = 0; j < kScales; j += kSideBySide) {
        if (kVectors * j % 16 == 0) next.ask();
        vi dots[kSideBySide][N];
        each<kSideBySide>(PK_EACH(k) {
            each<N>(PK_EACH(i) { dots[k][i] = zero_of_super<KIND, kHalves>(meta + i, G, j + k); });
        });
        dot_vectors<KIND, kVectors>(dots, q + 64 * kVectors * j, data + 4 * kVectors * G * j, 4 * G);
        each<kSideBySide>(PK_EACH(k) {
            vi scale = iload(factors + 16 * (j + k));
            if constexpr (SMALL) each<N>(PK_EACH(i) { whole[i] = iadd_pairs(whole[i], dots[k][i], scale); });
            else {
                if constexpr (SHAPE == kSuperHalvedSmall) scale = isar(ishl(scale, 16), 16);
                each<N>(PK_EACH(i) { whole[i] = iadd(whole[i], imul(dots[k][i], scale)); });
            }
        });
    }
}

template <TileShape SHAPE, ByteKind KIND, int G, int N>
PK_INLINE void super_sums(vi (&whole)[N], const uint8_t* q, const int8_t* data, const float* meta, const int32_t* factors,
                          NextLines& next) {
    each<N>(PK_EACH(i) { whole[i] = iset(0); });
#if defined(PK_SMALL_SUMS)
    if constexpr (small_super(SHAPE))
        if (!exceeds_small<G, N>(meta)) return add_super<SHAPE, true, KIND, G>(whole, q, data, meta, factors, next);
#endif
    add_super<SHAPE, false, KIND, G>(whole, q, data, meta, factors, next);
}

// Superblocks: sums stay exact until one is complete.
template <TileShape SHAPE, int N, int G, ByteKind KIND>
PK_INLINE void super_pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, NextLines& next,
                          Results results) {
    constexpr bool kHalves = halved_super(SHAPE), kMin = KIND == kUnsignedMin;
    constexpr int kScales = kHalves ? 16 : 8;
    vf sums[N];
    each<N>(PK_EACH(i) { sums[i] = vzero(); });
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    const uint8_t* q = tile.q + 4 * row;
    const int32_t* factors = tile.factors + row;
    for (int s = 0; s < blocks / 8; s++, q += 16 * kSuper, data += kSuper * G, meta += kSuperWords * G) {
        vi whole[N];
        vf totals[N];
        super_sums<SHAPE, KIND, G>(whole, q, data, meta, factors, next);
        factors += 16 * kScales;
        const vf d = vload(tile.d + 16 * s + row);
        each<N>(PK_EACH(i) { totals[i] = vmul(ifloat(whole[i]), d); });
        if constexpr (kMin) {
            vi minima[N];
            each<N>(PK_EACH(i) { minima[i] = iset(0); });
            each<kScales / 2>(PK_EACH(j) {
                const vi pairs = iload(factors + 16 * j);
                const float* words = meta + (kPairWord<kHalves> + j) * G;
                each<N>(PK_EACH(i) { minima[i] = iadd_pairs(minima[i], pairs, broadcast4((const int8_t*)(words + i))); });
            });
            factors += 16 * kScales / 2;
            const vf m = vload(tile.m + 16 * s + row);
            each<N>(PK_EACH(i) { totals[i] = vfma(ifloat(minima[i]), m, totals[i]); });
        }
        each<N>(PK_EACH(i) { sums[i] = vfma(totals[i], vset(meta[i]), sums[i]); });
    }
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

template <TileShape SHAPE, int N, int G, ByteKind KIND>
PK_INLINE void pass(const Tile& tile, int blocks, const QuantGroup& group, int first, int row, NextLines& next, Results results) {
    if constexpr (SHAPE == kWhole) dot_pass<N, G, KIND>(tile, blocks, group, first, row, next, results);
    else if constexpr (SHAPE == kHalved) halves_pass<N, G, KIND>(tile, blocks, group, first, row, next, results);
    else super_pass<SHAPE, N, G, KIND>(tile, blocks, group, first, row, next, results);
}

template <int N, TileShape SHAPE, ByteKind KIND>
static void dot_group(const Tile& tile, int blocks, const QuantGroup& group, NextLines& lines, Results results) {
    constexpr int kFirst = N < kPassTokens ? N : kPassTokens;
    NextLines next = lines;
    for (int row = 0; row < kStripRows; row += W) {
        pass<SHAPE, kFirst, N, KIND>(tile, blocks, group, 0, row, next, results);
        if constexpr (N > kFirst) pass<SHAPE, N - kFirst, N, KIND>(tile, blocks, group, kFirst, row, next, results);
    }
    lines = next;
}
#endif
PK_END
