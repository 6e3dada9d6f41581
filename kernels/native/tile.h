// A strip of 16 weight rows unpacked to bytes: q[block][4-channel group][row][4] (8 for 4 with i8mm: kTokenRun), scales d and minima m [block][row],
// or d [block][half][row] where a format has a scale per 16 channels. Of superblocks d and m are [superblock][row], and
// factors[superblock]: the integer scales [8, or 16 with halves][row], then half as many pairs of minima [pair][row], as the
// activation sums are paired (SuperWord). Everything behind a tile is shared by all formats.
#pragma once
#include "simd.h"

PK_BEGIN
struct Tile {
    uint8_t* q;
    float* d;
    float* m;
    int32_t* factors;
};

// 16 whole rows, `stride` bytes apart. `next`, `later`: where the strips to ask for in advance lie, the one that follows and
// one that is read so much later as memory needs; null only where no walk reads it.
struct Strip {
    const uint8_t* data;
    size_t stride;
    const uint8_t* next = nullptr;
    const uint8_t* later = nullptr;
};

// How the bytes of a tile read: value = d * (byte - zero) + m. AVX-512 multiplies unsigned bytes only. Those behind
// kUnsignedMinus128 are of levels with PK_PAIRS, Min15 of bytes up to 15.
enum ByteKind {
    kUnsigned, kUnsignedMinus8, kUnsignedMin, kSigned, kUnsignedMinus128,
    kUnsignedMinus16, kUnsignedMinus32, kUnsignedMinus64, kUnsignedMin15
};
template <ByteKind KIND>
constexpr int kZeroOf = KIND == kUnsignedMinus8    ? 8
                        : KIND == kUnsignedMinus16 ? 16
                        : KIND == kUnsignedMinus32 ? 32
                        : KIND == kUnsignedMinus64 ? 64
                                                   : 0;
constexpr bool has_minima(ByteKind kind) { return kind == kUnsignedMin || kind == kUnsignedMin15; }

// Products with neighbouring bytes are added in 16 bits.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
#define PK_PAIRS
#endif

#if defined(__AVX512VNNI__)
constexpr ByteKind kInt8 = kUnsignedMinus128;
constexpr uint8_t kInt8Flip = 0x80;
#else
constexpr ByteKind kInt8 = kSigned;
constexpr uint8_t kInt8Flip = 0;
#endif

// Dwords of a superblock's factors, and the first word of activation sums that meet the minima.
template <int SCALES, bool MIN>
constexpr int kFactorWords = (MIN ? SCALES * 3 / 2 : SCALES) * kStripRows;
template <bool HALVES>
constexpr int kPairWord = HALVES ? kSuperHalfPairs : kSuperPairs;

typedef float Results[kGroupTokens][kStripRows];

// Weights that are read next, asked for into L2 evenly while tiles are multiplied: requests in a burst wait for each other (6 %
// of a prefill of experts with some 32 tokens each).
struct NextLines {
    const uint8_t* at;
    const uint8_t* end;
    size_t step;             // bytes each time
    void ask() {
        for (size_t i = 0; i < step; i += 64) __builtin_prefetch(at + i, 0, 2);
        at = at + step < end ? at + step : end;
    }
    void ask_for(size_t bytes) {
        for (const uint8_t* stop = at + bytes < end ? at + bytes : end; at < stop; at += 64) __builtin_prefetch(at, 0, 2);
    }
};
typedef void (*DotStrip)(Strip strip, int blocks, const QuantGroup& group, Results results);

// Small: sums of a scale fit in 16 bits where no 16 activations are larger together than kSmallMost, which is nearly always
// (they spread over 127 steps at the largest of 256), so that one instruction multiplies them by their scale and adds them.
// Bytes are then at most 32 with a scale per 16 channels, 15 with one per 32; the integers and so the results are the same.
enum TileShape { kWhole, kHalved, kSuperWhole, kSuperHalved, kSuperSmall, kSuperHalvedSmall };
constexpr bool halved_super(TileShape shape) { return shape == kSuperHalved || shape == kSuperHalvedSmall; }
constexpr bool small_super(TileShape shape) { return shape >= kSuperSmall; }
constexpr int kSmallMost = 1023;  // * 32, * 2 * 15 < 2^15

// A tile's integer scales where products of pairs of int16 use them: the upper one is 0, or with PK_PAIRS the same again.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define PK_SMALL_SUMS
#endif

// Tokens up to which a strip is multiplied without a tile.
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr int kDirectTokens = 1;  // a tile's bytes lie as the matrix instructions want them
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr int kDirectTokens = 3;  // from 4 on products by lane spare what a tile costs
#else
constexpr int kDirectTokens = kGroupTokens;
#endif

struct TileFormat {
    int type;
    ByteKind kind;
    TileShape shape;
    void (*unpack)(Strip strip, int blocks, Tile tile);  // null: by way of the block format
    const DotStrip* few;  // by number of tokens - 1: straight from the strip, or null where a tile is as good
    void (*first)(Strip strip, int blocks, const QuantGroup& group, Tile tile, Results results);  // 8 tokens, and the tile; null: apart
};
const TileFormat* tile_format(int ggml_type);
void unpack_strip(const TileFormat& format, const Strip& strip, int blocks, const Tile& tile);

static inline int32_t load_i32(const void* p) {
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return v;
}
PK_END
