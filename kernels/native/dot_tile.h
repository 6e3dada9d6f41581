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
    for (int b = 0; b < blocks; b++, data += kBlock * G, meta += 4 * G, halves += 4 * G) {
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
        if constexpr (KIND == kUnsignedMin)
            each<2>(PK_EACH(half) {
                const vf m = vload(tile.m + 32 * b + 16 * half + row);
                each<N>(PK_EACH(i) { sums[i] = vfma(vset(halves[G * (2 + half) + i]), m, sums[i]); });
            });
    }
    each<N>(PK_EACH(i) { vstore(results[first + i] + row, sums[i]); });
}

template <int N, ByteKind KIND>
static void dot_group(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    constexpr int kFirst = N < kPassTokens ? N : kPassTokens;
    for (int row = 0; row < kStripRows; row += W) {
        dot_pass<kFirst, N, KIND>(tile, blocks, group, 0, row, results);
        if constexpr (N > kFirst) dot_pass<N - kFirst, N, KIND>(tile, blocks, group, kFirst, row, results);
    }
}

template <int N, ByteKind KIND>
static void dot_halves(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    constexpr int kFirst = N < kPassTokens ? N : kPassTokens;
    for (int row = 0; row < kStripRows; row += W) {
        halves_pass<kFirst, N, KIND>(tile, blocks, group, 0, row, results);
        if constexpr (N > kFirst) halves_pass<N - kFirst, N, KIND>(tile, blocks, group, kFirst, row, results);
    }
}
#else
template <ByteKind KIND>
static inline int32_t byte_value(uint8_t byte) { return KIND == kSigned ? (int32_t)(int8_t)byte : (int32_t)byte; }

template <int N, ByteKind KIND>
static void dot_group(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    for (int i = 0; i < N; i++) {
        float sums[kStripRows] = {};
        for (int b = 0; b < blocks; b++) {
            const float* meta = group.meta + (size_t)b * 4 * N;
            int32_t dots[kStripRows];
            for (int r = 0; r < kStripRows; r++) dots[r] = KIND == kUnsignedMinus8 ? load_i32(meta + 2 * N + i) : 0;
            for (int j = 0; j < 8; j++) {
                const uint8_t* q = tile.q + (size_t)512 * b + 64 * j;
                const int8_t* a = group.data + (size_t)b * kBlock * N + 4 * (N * j + i);
                for (int r = 0; r < kStripRows; r++)
                    for (int c = 0; c < 4; c++) dots[r] += byte_value<KIND>(q[4 * r + c]) * a[c];
            }
            for (int r = 0; r < kStripRows; r++) {
                sums[r] += ((float)dots[r] * meta[i]) * tile.d[16 * b + r];
                if (KIND == kUnsignedMin) sums[r] += meta[N + i] * tile.m[16 * b + r];
            }
        }
        for (int r = 0; r < kStripRows; r++) results[i][r] = sums[r];
    }
}

template <int N, ByteKind KIND>
static void dot_halves(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    for (int i = 0; i < N; i++) {
        float sums[kStripRows] = {};
        for (int b = 0; b < blocks; b++) {
            int32_t dots[2][kStripRows] = {};
            for (int j = 0; j < 8; j++) {
                const uint8_t* q = tile.q + (size_t)512 * b + 64 * j;
                const int8_t* a = group.data + (size_t)b * kBlock * N + 4 * (N * j + i);
                for (int r = 0; r < kStripRows; r++)
                    for (int c = 0; c < 4; c++) dots[j / 4][r] += byte_value<KIND>(q[4 * r + c]) * a[c];
            }
            const float* halves = group.halves + (size_t)b * 4 * N;
            for (int r = 0; r < kStripRows; r++) {
                const float* d = tile.d + 32 * b + r;
                const float* m = tile.m + 32 * b + r;
                const float pair = (float)dots[1][r] * d[16] + (float)dots[0][r] * d[0];
                sums[r] += pair * group.meta[(size_t)b * 4 * N + i];
                if (KIND == kUnsignedMin) {
                    sums[r] += halves[2 * N + i] * m[0];
                    sums[r] += halves[3 * N + i] * m[16];
                }
            }
        }
        for (int r = 0; r < kStripRows; r++) results[i][r] = sums[r];
    }
}
#endif
PK_END
