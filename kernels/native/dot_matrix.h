// dot_tile.h for processors that multiply matrices of 2 x 8 bytes (i8mm): a vector of sums holds two rows of the strip for
// two tokens, so that one instruction does 32 products. The same order per element, the same bits.
#pragma once
#include "lanes.h"

PK_BEGIN
// Vectors of sums of N tokens and four rows: [pair of tokens][pair of rows]; the last of an odd number is there twice.
template <int N>
constexpr int kSums = (N + 1) / 2 * 2;

// Words of token pair P of N: a a b b.
template <int N, int P>
PK_INLINE vi pair_words(const float* words) {
    if constexpr (2 * P + 1 == N) return iset(load_i32(words + 2 * P));
    else {
        const uint32x2_t two = vreinterpret_u32_f32(vld1_f32(words + 2 * P));
        return vzip1q_u32(vcombine_u32(two, vdup_n_u32(0)), vcombine_u32(two, vdup_n_u32(0)));
    }
}
template <int N, int P>
PK_INLINE vf pair_floats(const float* words) { return ias_float(pair_words<N, P>(words)); }

// Eight channels of token pair P of N.
template <int N, int P>
PK_INLINE vi pair_bytes(const int8_t* a) {
    if constexpr (2 * P + 1 == N) return vreinterpretq_u32_s64(vld1q_dup_s64((const int64_t*)(a + 16 * P)));
    else return iload(a + 16 * P);
}

// Rows a b of a vector of four, or c d, twice.
template <int HALF>
PK_INLINE vi row_pair(vi rows) { return HALF ? high64(rows, rows) : low64(rows, rows); }
template <int HALF>
PK_INLINE vf row_pair(vf rows) { return ias_float(row_pair<HALF>((vi)rows)); }

PK_INLINE vi imatrix(vi sum, vi tokens, vi rows) {
    return vreinterpretq_u32_s32(
        vmmlaq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u32(tokens), vreinterpretq_s8_u32(rows)));
}

// Adds the products of COUNT times 8 channels.
template <int COUNT, int N>
PK_INLINE void dot_vectors(vi* dots, const uint8_t* q, const int8_t* a) {
    each<COUNT>(PK_EACH(j) {
        const vi low = iload(q + 128 * j), high = iload(q + 128 * j + 16);
        each<kSums<N> / 2>(PK_EACH(p) {
            const vi tokens = pair_bytes<N, p>(a + 8 * N * j);
            dots[2 * p] = imatrix(dots[2 * p], tokens, low);
            dots[2 * p + 1] = imatrix(dots[2 * p + 1], tokens, high);
        });
    });
}

// Sums i, of a vector of rows and of words of the tokens.
#define PK_ROWS(rows) row_pair<i % 2>(rows)
#define PK_TOKENS(words) pair_floats<N, i / 2>(words)

template <int N, ByteKind KIND>
PK_INLINE void whole_tile(const Tile& tile, int blocks, const QuantGroup& group, int row, vf* sums) {
    const uint8_t* q = tile.q + kTokenRun * row;
    const int8_t* data = group.data;
    const float* meta = group.meta;
    for (int b = 0; b < blocks; b++, q += 512, data += kBlock * N, meta += kBlockWords * N) {
        vi dots[kSums<N>];
        each<kSums<N>>(PK_EACH(i) { dots[i] = KIND == kUnsignedMinus8 ? pair_words<N, i / 2>(meta + kBlockOffset8 * N) : iset(0); });
        dot_vectors<4, N>(dots, q, data);
        const vf d = vload(tile.d + 16 * b + row);
        each<kSums<N>>(PK_EACH(i) { sums[i] = vfma(vmul(ifloat(dots[i]), PK_TOKENS(meta)), PK_ROWS(d), sums[i]); });
        if constexpr (KIND == kUnsignedMin) {
            const vf m = vload(tile.m + 16 * b + row);
            each<kSums<N>>(PK_EACH(i) { sums[i] = vfma(PK_TOKENS(meta + N), PK_ROWS(m), sums[i]); });
        }
    }
}

template <int N>
PK_INLINE void halved_tile(const Tile& tile, int blocks, const QuantGroup& group, int row, vf* sums) {
    const uint8_t* q = tile.q + kTokenRun * row;
    const int8_t* data = group.data;
    const float* meta = group.meta;
    for (int b = 0; b < blocks; b++, q += 512, data += kBlock * N, meta += kBlockWords * N) {
        vf pairs[kSums<N>];
        each<2>(PK_EACH(half) {
            vi dots[kSums<N>];
            each<kSums<N>>(PK_EACH(i) { dots[i] = iset(0); });
            dot_vectors<2, N>(dots, q + 256 * half, data + 16 * N * half);
            const vf d = vload(tile.d + 32 * b + 16 * half + row);
            each<kSums<N>>(PK_EACH(i) {
                const vf dot = ifloat(dots[i]);
                pairs[i] = half ? vfma(dot, PK_ROWS(d), pairs[i]) : vmul(dot, PK_ROWS(d));
            });
        });
        each<kSums<N>>(PK_EACH(i) { sums[i] = vfma(pairs[i], PK_TOKENS(meta), sums[i]); });
    }
}

// Activation sums times minima, int16 pairs of two rows and two tokens.
template <int N, bool HALVES>
PK_INLINE void add_minima(const int32_t* minima, const float* words, vi* totals) {
    constexpr int kPairs = HALVES ? 8 : 4;
    each<kSums<N>>(PK_EACH(i) {
        int32x4_t low = vdupq_n_s32(0), high = low;
        each<kPairs>(PK_EACH(j) {
            const int16x8_t rows = vreinterpretq_s16_u32(row_pair<i % 2>(iload(minima + 16 * j)));
            const int16x8_t tokens = vreinterpretq_s16_u32(pair_words<N, i / 2>(words + (kPairWord<HALVES> + j) * N));
            low = vmlal_s16(low, vget_low_s16(rows), vget_low_s16(tokens));
            high = vmlal_high_s16(high, rows, tokens);
        });
        totals[i] = vreinterpretq_u32_s32(vpaddq_s32(low, high));
    });
}

template <int N, bool HALVES, ByteKind KIND>
PK_INLINE void super_tile(const Tile& tile, int blocks, const QuantGroup& group, int row, vf* sums) {
    constexpr int kScales = HALVES ? 16 : 8, kChannels = kSuper / kScales;
    constexpr bool kMin = KIND == kUnsignedMin;
    const uint8_t* q = tile.q + kTokenRun * row;
    const int8_t* data = group.data;
    const float* meta = group.meta;
    const int32_t* factors = tile.factors + row;
    for (int s = 0; s < blocks / 8; s++, meta += kSuperWords * N) {
        vi totals[kSums<N>];
        each<kSums<N>>(PK_EACH(i) { totals[i] = iset(0); });
        for (int j = 0; j < kScales; j++, q += 16 * kChannels, data += kChannels * N, factors += 16) {
            vi dots[kSums<N>];
            each<kSums<N>>(PK_EACH(i) { dots[i] = iset(0); });
            dot_vectors<kChannels / 8, N>(dots, q, data);
            const vi scale = iload(factors);
            each<kSums<N>>(PK_EACH(i) { totals[i] = iadd(totals[i], imul(dots[i], PK_ROWS(scale))); });
        }
        const vf d = vload(tile.d + 16 * s + row);
        vf scaled[kSums<N>];
        each<kSums<N>>(PK_EACH(i) { scaled[i] = vmul(ifloat(totals[i]), PK_ROWS(d)); });
        if constexpr (kMin) {
            vi minima[kSums<N>];
            add_minima<N, HALVES>(factors, meta, minima);
            factors += 16 * kScales / 2;
            const vf m = vload(tile.m + 16 * s + row);
            each<kSums<N>>(PK_EACH(i) { scaled[i] = vfma(ifloat(minima[i]), PK_ROWS(m), scaled[i]); });
        }
        each<kSums<N>>(PK_EACH(i) { sums[i] = vfma(scaled[i], PK_TOKENS(meta), sums[i]); });
    }
}

static int asks_of_product(int) { return 1; }

template <int N, TileShape SHAPE, ByteKind KIND>
static void dot_group(const Tile& tile, int blocks, const QuantGroup& group, NextLines& next, Results results) {
    next.ask_for(next.step);
    for (int row = 0; row < kStripRows; row += W) {
        vf sums[kSums<N>];
        each<kSums<N>>(PK_EACH(i) { sums[i] = vzero(); });
        if constexpr (SHAPE == kWhole) whole_tile<N, KIND>(tile, blocks, group, row, sums);
        else if constexpr (SHAPE == kHalved) halved_tile<N>(tile, blocks, group, row, sums);
        else super_tile<N, halved_super(SHAPE), KIND>(tile, blocks, group, row, sums);
        each<N>(PK_EACH(t) {
            const vi a = (vi)sums[t / 2 * 2], b = (vi)sums[t / 2 * 2 + 1];
            vstore(results[t] + row, ias_float(t % 2 ? high64(a, b) : low64(a, b)));
        });
    }
}
#undef PK_ROWS
#undef PK_TOKENS
PK_END
