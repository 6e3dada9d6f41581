// Products of a tile for levels without vectors of bytes, rounded as in dot_tile.h.
#pragma once
#include "tile.h"

PK_BEGIN
template <ByteKind KIND>
static inline int32_t byte_value(uint8_t byte) { return KIND == kSigned ? (int32_t)(int8_t)byte : (int32_t)byte; }

// Adds to the sums of the rows the products of COUNT channels from channel `from` on with token i of N.
template <int N, ByteKind KIND, int COUNT>
static inline void dot_channels(const Tile& tile, const QuantGroup& group, int i, size_t from, int32_t* dots) {
    for (size_t c = from; c < from + COUNT; c += 4) {
        const uint8_t* q = tile.q + 16 * c;
        const int8_t* a = group.data + N * c + 4 * i;
        for (int r = 0; r < kStripRows; r++)
            for (int k = 0; k < 4; k++) dots[r] += byte_value<KIND>(q[4 * r + k]) * a[k];
    }
}

template <int N, ByteKind KIND>
static void add_block(const Tile& tile, int b, const QuantGroup& group, int i, float* sums) {
    const float* meta = group.meta + (size_t)b * kBlockWords * N;
    int32_t dots[kStripRows];
    for (int r = 0; r < kStripRows; r++) dots[r] = KIND == kUnsignedMinus8 ? load_i32(meta + kBlockOffset8 * N + i) : 0;
    dot_channels<N, KIND, kBlock>(tile, group, i, (size_t)b * kBlock, dots);
    for (int r = 0; r < kStripRows; r++) {
        sums[r] += ((float)dots[r] * meta[i]) * tile.d[16 * b + r];
        if (KIND == kUnsignedMin) sums[r] += meta[N + i] * tile.m[16 * b + r];
    }
}

template <int N, ByteKind KIND>
static void add_halves(const Tile& tile, int b, const QuantGroup& group, int i, float* sums) {
    int32_t dots[2][kStripRows] = {};
    for (int half = 0; half < 2; half++)
        dot_channels<N, KIND, kBlock / 2>(tile, group, i, (size_t)b * kBlock + 16 * half, dots[half]);
    for (int r = 0; r < kStripRows; r++) {
        const float* d = tile.d + 32 * b + r;
        const float pair = (float)dots[1][r] * d[16] + (float)dots[0][r] * d[0];
        sums[r] += pair * group.meta[(size_t)b * kBlockWords * N + i];
    }
}

static inline int32_t pair_product(const void* a, const void* b) {
    int16_t x[2], y[2];
    __builtin_memcpy(x, a, 4);
    __builtin_memcpy(y, b, 4);
    return x[0] * y[0] + x[1] * y[1];
}

template <int N, bool HALVES, ByteKind KIND>
static void add_super(const Tile& tile, int s, const QuantGroup& group, int i, float* sums) {
    constexpr int kScales = HALVES ? 16 : 8;
    constexpr bool kMin = KIND == kUnsignedMin;
    const int32_t* factors = tile.factors + (size_t)s * kFactorWords<kScales, kMin>;
    const float* meta = group.meta + (size_t)s * kSuperWords * N + i;
    int32_t totals[kStripRows] = {}, minima[kStripRows] = {};
    for (int j = 0; j < kScales; j++) {
        int32_t dots[kStripRows] = {};
        dot_channels<N, KIND, kSuper / kScales>(tile, group, i, (size_t)s * kSuper + j * (kSuper / kScales), dots);
        for (int r = 0; r < kStripRows; r++) totals[r] += dots[r] * factors[16 * j + r];
    }
    for (int j = 0; kMin && j < kScales / 2; j++)
        for (int r = 0; r < kStripRows; r++)
            minima[r] += pair_product(factors + 16 * (kScales + j) + r, meta + (kPairWord<HALVES> + j) * N);
    for (int r = 0; r < kStripRows; r++) {
        float total = (float)totals[r] * tile.d[16 * s + r];
        if (kMin) total += (float)minima[r] * tile.m[16 * s + r];
        sums[r] += total * meta[0];
    }
}

static int asks_of_product(int) { return 1; }

template <int N, TileShape SHAPE, ByteKind KIND>
static void dot_group(const Tile& tile, int blocks, const QuantGroup& group, NextLines& next, Results results) {
    next.ask_for(next.step);
    for (int i = 0; i < N; i++) {
        float sums[kStripRows] = {};
        for (int b = 0; b < blocks && SHAPE <= kHalved; b++) {
            if (SHAPE == kWhole) add_block<N, KIND>(tile, b, group, i, sums);
            else add_halves<N, KIND>(tile, b, group, i, sums);
        }
        for (int s = 0; s < blocks / 8 && SHAPE > kHalved; s++)
            add_super<N, halved_super(SHAPE), KIND>(tile, s, group, i, sums);
        for (int r = 0; r < kStripRows; r++) results[i][r] = sums[r];
    }
}
PK_END
