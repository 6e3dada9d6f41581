// Products of tiles with a group of tokens where neighbouring bytes are added in 16 bits (AVX2 without VNNI); the order of the
// sums stands in linear_quant.cpp.
//
// Loads limit them: four activation bytes are broadcast for each product. So a broadcast meets all 16 rows of a strip, and 8
// sums of 16 bits are in registers while all others lie in L1.
//
// Sums of 16 bits may overflow on the way: what their bytes' zero point adds is taken off in them, and only what is left has
// to fit, 2 * 127 * zero for each vector of bytes.
#pragma once
#include "lanes.h"

PK_BEGIN
constexpr int kPassTokens = 4;
constexpr int kParts = kStripRows / W;  // vectors of a strip's rows
constexpr int kSomeBlocks = 64;         // whose zero points are summed at a time
constexpr int kTilesAtOnce = kStripsAtOnce;

// How often the products of a tile with 8 tokens ask for what is read next: every 64 channels of a pass.
static int asks_of_product(int blocks) { return (blocks + 1) / 2 * (kGroupTokens / kPassTokens); }

// Vectors of bytes whose products are added in 16 bits.
template <ByteKind KIND>
constexpr int kAtOnce = KIND == kSigned          ? 1
                        : KIND == kUnsignedMin   ? 4
                        : KIND == kUnsignedMin15 ? 8
                                                 : imin(8, 128 / imax(1, kZeroOf<KIND>));
template <TileShape SHAPE>
constexpr bool kSuperShape = SHAPE > kHalved;
// Vectors of bytes that share a scale, and those of them that are added in 16 bits.
template <TileShape SHAPE>
constexpr int kVectorsOf = SHAPE == kHalved || halved_super(SHAPE) ? 4 : 8;
template <TileShape SHAPE, ByteKind KIND>
constexpr int kRunOf = imin(kAtOnce<KIND>, kVectorsOf<SHAPE>);

typedef int32_t ZeroSums[4 * kSomeBlocks][kGroupTokens];  // pairs of 16 bits by run of vectors and token

// What the zero points of `vectors` vectors add, negative.
template <ByteKind KIND, int RUN>
static void sum_zeros(const QuantGroup& group, const int8_t* data, int vectors, ZeroSums& zeros) {
    const int tokens = group.tokens;
    for (int run = 0; run * RUN < vectors; run++) {
        vi sums = iset(0);
        for (int i = 0; i < RUN; i++, data += 4 * tokens) {
            const vi four = _mm256_maskload_epi32((const int*)data, lane_mask(tokens));
            sums = isub16(sums, ipairs<kUnsigned>(iset8(kZeroOf<KIND>), four));
        }
        istore(zeros[run], sums);
    }
}

// Some blocks of a group, for N of its tokens from the first one that the pointers are of; STEP: of the whole group.
template <int STEP>
struct Activations {
    const int8_t* data;
    const float* meta;
    const int32_t* zeros;  // [run][kGroupTokens]
    int tokens;            // of the group, where STEP is 0
    PK_INLINE_MEMBER int step() const { return STEP ? STEP : tokens; }
    PK_INLINE_MEMBER const int8_t* bytes(int vector, int token) const { return data + (vector * step() + token) * 4; }
    PK_INLINE_MEMBER const float* word(int i, int token) const { return meta + i * step() + token; }
};

// Products of the vectors of one scale, from `vector` on; put(part, token, pairs) for each run of them.
template <ByteKind KIND, int VECTORS, int RUN, int N, class A, class Put>
PK_INLINE void dot_vectors(const uint8_t* q, const A& a, int vector, const Put& put) {
    each<VECTORS / RUN>(PK_EACH(run) {
        vi pairs[kParts][N];
        each<RUN>(PK_EACH(i) {
            constexpr int j = run * RUN + i;
            vi w[kParts];
            each<kParts>(PK_EACH(part) { w[part] = iload(q + 64 * j + sizeof(vi) * part); });
            each<N>(PK_EACH(t) {
                const vi four = broadcast4(a.bytes(vector + j, t));
                each<kParts>(PK_EACH(part) {
                    const vi both = ipairs<KIND>(w[part], four);
                    pairs[part][t] = i == 0 ? both : iadd16(pairs[part][t], both);
                    now(pairs[part][t]);
                });
            });
        });
        each<N>(PK_EACH(t) {
            vi zero;
            if constexpr (kZeroOf<KIND> > 0) zero = iset(a.zeros[(vector / RUN + run) * kGroupTokens + t]);
            each<kParts>(PK_EACH(part) {
                if constexpr (kZeroOf<KIND> > 0) put(part, t, iadd16(pairs[part][t], zero));
                else put(part, t, pairs[part][t]);
            });
        });
    });
}

template <int N>
using PartSums = int32_t[kParts][N][W];
template <int N>
using PartFloats = float[kParts][N][W];

// Whole sums of the vectors of one scale.
template <ByteKind KIND, int VECTORS, int RUN, int N, class A, class Put>
PK_INLINE void whole_sums(const uint8_t* q, const A& a, int vector, const Put& put) {
    if constexpr (VECTORS == RUN) {
        dot_vectors<KIND, VECTORS, RUN, N>(q, a, vector, [&](auto part, auto t, vi pairs) __attribute__((always_inline)) {
            put(part, t, isum_pairs(pairs));
        });
    } else {
        alignas(64) PartSums<N> sums = {};
        dot_vectors<KIND, VECTORS, RUN, N>(q, a, vector, [&](auto part, auto t, vi pairs) __attribute__((always_inline)) {
            istore(sums[part][t], iadd(isum_pairs(pairs), iload(sums[part][t])));
        });
        each<N>(PK_EACH(t) { each<kParts>(PK_EACH(part) { put(part, t, iload(sums[part][t])); }); });
    }
}

// Block b of a tile.
template <TileShape SHAPE, ByteKind KIND, int N, class A>
PK_INLINE void add_block(const Tile& tile, int b, const A& a, PartFloats<N>& sums) {
    const uint8_t* q = tile.q + (size_t)512 * b;
    vf scale[N], sum[N];
    if constexpr (SHAPE == kHalved) {
        constexpr int kRun = kRunOf<SHAPE, KIND>;
        const float* d = tile.d + 32 * (size_t)b;
        alignas(64) float both[kParts][N][W];
        whole_sums<KIND, 4, kRun, N>(q, a, 0, [&](auto part, auto t, vi dot) __attribute__((always_inline)) {
            vstore(both[part][t], vmul(ifloat(dot), vload(d + part * W)));
        });
        whole_sums<KIND, 4, kRun, N>(q + 256, a, 4, [&](auto part, auto t, vi dot) __attribute__((always_inline)) {
            const vf pair = vfma(ifloat(dot), vload(d + 16 + part * W), vload(both[part][t]));
            if (part == 0) scale[t] = vset(*a.word(kBlockScale, t));
            vstore(sums[part][t], vfma(pair, scale[t], vload(sums[part][t])));
        });
    } else {
        const float *d = tile.d + 16 * (size_t)b, *m = tile.m + 16 * (size_t)b;
        whole_sums<KIND, 8, kRunOf<SHAPE, KIND>, N>(q, a, 0, [&](auto part, auto t, vi dot) __attribute__((always_inline)) {
            if (part == 0) {
                scale[t] = vset(*a.word(kBlockScale, t));
                if constexpr (has_minima(KIND)) sum[t] = vset(*a.word(kBlockSum, t));
            }
            vf total = vfma(vmul(ifloat(dot), scale[t]), vload(d + part * W), vload(sums[part][t]));
            if constexpr (has_minima(KIND)) total = vfma(sum[t], vload(m + part * W), total);
            vstore(sums[part][t], total);
        });
    }
}

// The sums of a superblock's minima, of one part of the rows.
template <TileShape SHAPE, int N, class A>
PK_INLINE void minima_sums(const int32_t* factors, const A& a, vi (&minima)[N]) {
    each<32 / kVectorsOf<SHAPE>>(PK_EACH(j) {
        const vi pairs = iload(factors + 16 * j);
        each<N>(PK_EACH(t) {
            const vi words = broadcast4((const int8_t*)a.word(kPairWord<halved_super(SHAPE)> + j, t));
            minima[t] = j == 0 ? iadd_pairs(iset(0), pairs, words) : iadd_pairs(minima[t], pairs, words);
        });
    });
}

// Superblock s of a tile. Both 16-bit halves of a sum take its scale at once: they need not be small together.
template <TileShape SHAPE, ByteKind KIND, int N, class A>
PK_INLINE void add_superblock(const Tile& tile, int s, const A& a, NextLines& next, PartFloats<N>& sums) {
    constexpr int kVectors = kVectorsOf<SHAPE>, kScales = 64 / kVectors;
    const uint8_t* q = tile.q + (size_t)16 * kSuper * s;
    const int32_t* factors = tile.factors + (size_t)s * kFactorWords<kScales, has_minima(KIND)>;
    alignas(64) PartSums<N> whole = {};
    for (int j = 0; j < kScales; j++, q += 64 * kVectors, factors += 16) {
        if (kVectors * j % 16 == 0) next.ask();
        dot_vectors<KIND, kVectors, kRunOf<SHAPE, KIND>, N>(q, a, kVectors * j, [&](auto part, auto t, vi pairs) __attribute__((always_inline)) {
            istore(whole[part][t], iadd_pairs(iload(whole[part][t]), pairs, iload(factors + part * W)));
        });
    }
    each<kParts>(PK_EACH(part) {
        const size_t at = 16 * (size_t)s + part * W;
        vi minima[N];
        if constexpr (has_minima(KIND)) minima_sums<SHAPE, N>(factors + part * W, a, minima);
        each<N>(PK_EACH(t) {
            vf total = vmul(ifloat(iload(whole[part][t])), vload(tile.d + at));
            if constexpr (has_minima(KIND)) total = vfma(ifloat(minima[t]), vload(tile.m + at), total);
            vstore(sums[part][t], vfma(total, vset(*a.word(kSuperScale, t)), vload(sums[part][t])));
        });
    });
}

// Blocks [block, block + blocks) of a tile with N tokens of a group, from `first` on.
template <TileShape SHAPE, ByteKind KIND, int N, int STEP>
static void dot_some(const Tile& tile, int block, int blocks, const QuantGroup& group, int first, const ZeroSums& zeros, NextLines& next,
                     Results results) {
    constexpr int kAtATime = kSuperShape<SHAPE> ? kSuper / kBlock : 1, kWords = kSuperShape<SHAPE> ? kSuperWords : kBlockWords;
    const size_t g = group.tokens;
    Activations<STEP> a = {group.data + block * kBlock * g + 4 * first, group.meta + block / kAtATime * kWords * g + first,
                           zeros[0] + first, group.tokens};
    alignas(64) PartFloats<N> sums;
    each<N>(PK_EACH(t) {
        each<kParts>(PK_EACH(part) { vstore(sums[part][t], block ? vload(results[first + t] + part * W) : vzero()); });
    });
    for (int b = 0; b < blocks; b += kAtATime) {
        if constexpr (kSuperShape<SHAPE>) add_superblock<SHAPE, KIND, N>(tile, (block + b) / 8, a, next, sums);
        else {
            if (b % 2 == 0) next.ask();
            add_block<SHAPE, KIND, N>(tile, block + b, a, sums);
        }
        a.data += kAtATime * kBlock * a.step();
        a.meta += kWords * a.step();
        a.zeros += kAtATime * 8 / kRunOf<SHAPE, KIND> * kGroupTokens;
    }
    each<N>(PK_EACH(t) { each<kParts>(PK_EACH(part) { vstore(results[first + t] + part * W, vload(sums[part][t])); }); });
}

struct TileRange {
    const Tile* tiles;
    int count;
    int blocks;
};

// A group with all tiles, which stay in L2.
template <TileShape SHAPE, ByteKind KIND>
static void dot_group(const TileRange& range, const QuantGroup& group, NextLines& lines, Results* results) {
    alignas(64) ZeroSums zeros;
    NextLines next = lines;
    const int left = group.tokens % kPassTokens, whole = group.tokens - left;
    for (int block = 0; block < range.blocks; block += kSomeBlocks) {
        const int blocks = imin(kSomeBlocks, range.blocks - block);
        const int8_t* data = group.data + (size_t)block * kBlock * group.tokens;
        if constexpr (kZeroOf<KIND> > 0) sum_zeros<KIND, kRunOf<SHAPE, KIND>>(group, data, 8 * blocks, zeros);
        for (int i = 0; i < range.count; i++) {
            const auto some = [&](auto tokens, auto step, int first) {
                dot_some<SHAPE, KIND, tokens, step>(range.tiles[i], block, blocks, group, first, zeros, next, results[i]);
            };
            for (int first = 0; first < whole; first += kPassTokens) {
                if (group.tokens == kGroupTokens) some(Count<kPassTokens>{}, Count<kGroupTokens>{}, first);
                else some(Count<kPassTokens>{}, Count<0>{}, first);
            }
            if (left == 1) some(Count<1>{}, Count<0>{}, whole);
            else if (left == 2) some(Count<2>{}, Count<0>{}, whole);
            else if (left == 3) some(Count<3>{}, Count<0>{}, whole);
        }
    }
    lines = next;
}

typedef void (*DotTiles)(const TileRange&, const QuantGroup&, NextLines&, Results*);

// Of superblocks with a scale per 32 channels.
static DotTiles dot_for_super(ByteKind kind) {
    switch (kind) {
        case kUnsignedMin: return dot_group<kSuperWhole, kUnsignedMin>;
        case kUnsignedMin15: return dot_group<kSuperWhole, kUnsignedMin15>;
        case kUnsignedMinus16: return dot_group<kSuperWhole, kUnsignedMinus16>;
        case kUnsignedMinus64: return dot_group<kSuperWhole, kUnsignedMinus64>;
        default: return dot_group<kSuperWhole, kSigned>;
    }
}

static DotTiles dot_for_super_halves(ByteKind kind) {
    switch (kind) {
        case kUnsignedMin: case kUnsignedMin15: return dot_group<kSuperHalved, kUnsignedMin>;
        case kUnsignedMinus16: return dot_group<kSuperHalved, kUnsignedMinus16>;
        case kUnsignedMinus32: return dot_group<kSuperHalved, kUnsignedMinus32>;
        case kUnsignedMinus64: return dot_group<kSuperHalved, kUnsignedMinus64>;
        default: return dot_group<kSuperHalved, kSigned>;
    }
}

static DotTiles dot_for_blocks(ByteKind kind) {
    switch (kind) {
        case kUnsignedMin: return dot_group<kWhole, kUnsignedMin>;
        case kUnsignedMin15: return dot_group<kWhole, kUnsignedMin15>;
        case kUnsignedMinus8: return dot_group<kWhole, kUnsignedMinus8>;
        case kUnsignedMinus16: return dot_group<kWhole, kUnsignedMinus16>;
        default: return dot_group<kWhole, kSigned>;
    }
}

static DotTiles dot_for(const TileFormat& format) {
    if (format.shape == kWhole) return dot_for_blocks(format.kind);
    if (format.shape == kHalved) return format.kind == kSigned ? dot_group<kHalved, kSigned> : dot_group<kHalved, kUnsignedMinus16>;
    return halved_super(format.shape) ? dot_for_super_halves(format.kind) : dot_for_super(format.kind);
}

// Products of `count` tiles with a group of tokens.
static void dot_tiles(const TileFormat& format, const Tile* tiles, int count, int blocks, const QuantGroup& group, NextLines& next,
                      Results* results) {
    dot_for(format)(TileRange{tiles, count, blocks}, group, next, results);
}
PK_END
