#include "tile.h"

#include "formats.h"
#include "lanes.h"
#include "tile_walks.h"
#if defined(PK_LANES)
#include "sinks.h"
#endif

PK_BEGIN
#if defined(PK_LANES)
static void unpack_bytes(const Strip& s, size_t offset, uint8_t flip, uint8_t* q) {
    for (int row = 0; row < kStripRows; row += W)
        for (int half = 0; half < 2; half++) {
            vi groups[4];
            load_dwords(rows_from(s, row), offset + 16 * half, groups);
            for (int j = 0; j < 4; j++) groups[j] = ixor(groups[j], iset8(flip));
            store_rows<4>(q + 256 * half + kTokenRun * row, groups);
        }
}
#else
static void unpack_bytes(const Strip& s, size_t offset, uint8_t flip, uint8_t* q) {
    for (int r = 0; r < kStripRows; r++)
        for (int i = 0; i < 32; i++) q[64 * (i / 4) + 4 * r + i % 4] = s.data[r * s.stride + offset + i] ^ flip;
}
#endif

static constexpr TileFormat by_block(int type, TileShape shape, bool minima) {
    return {type, minima ? kUnsignedMin : kInt8, shape, nullptr, nullptr, nullptr};
}

static constexpr TileFormat formats[] = {
    by_block(kQ4_0, kWhole, false), by_block(kQ4_1, kWhole, true), by_block(kQ5_0, kWhole, false),
    by_block(kQ5_1, kWhole, true), by_block(kQ8_0, kWhole, false), by_block(kQ2_K, kSuperHalved, true),
    by_block(kQ3_K, kSuperHalved, false), by_block(kQ4_K, kSuperWhole, true), by_block(kQ5_K, kSuperWhole, true),
    by_block(kQ6_K, kSuperHalved, false), by_block(kIQ4_XS, kSuperWhole, false), by_block(kIQ4_NL, kWhole, false),
    by_block(kTQ2_0, kSuperWhole, false), by_block(kMXFP4, kWhole, false), by_block(kNVFP4, kHalved, false),
    by_block(kIQ2_XXS, kSuperWhole, false), by_block(kIQ2_XS, kSuperHalved, false),
    by_block(kIQ2_S, kSuperHalved, false), by_block(kIQ3_XXS, kSuperWhole, false),
    by_block(kIQ3_S, kSuperWhole, false), by_block(kIQ1_S, kSuperWhole, false), by_block(kIQ1_M, kSuperHalved, false),
    by_block(kTQ1_0, kSuperWhole, false), by_block(kQ1_0, kWhole, false), by_block(kQ2_0, kWhole, false),
};

namespace {
struct ByType {
    const TileFormat* of[kTypes] = {};  // the best one
    ByType() {
        for (const TileFormat& format : formats) {
            const TileFormat* walk = block_walk(format.type);
            if (!walk) walk = super_walk(format.type);
            if (!walk) walk = codebook_walk(format.type);
            of[format.type] = walk ? walk : &format;
        }
    }
};
}  // namespace

const TileFormat* tile_format(int ggml_type) {
    static const ByType best;
    return ggml_type >= 0 && ggml_type < kTypes ? best.of[ggml_type] : nullptr;
}

Rounding rounding(int ggml_type) {
    const TileFormat* format = tile_format(ggml_type);
    return !format ? kNotRounded : format->shape > kHalved ? kPerSuper : kPerBlock;
}

bool halved(int ggml_type) {
    const TileFormat* format = tile_format(ggml_type);
    return format && format->shape == kHalved;
}

static void put_scales(const BlockFormat& format, const float* d, const float* m, int at, int row, const Tile& tile) {
    const int scales = format.elements / (format.halves ? 16 : kBlock);
    for (int i = 0; i < scales; i++) {
        const size_t to = ((size_t)at * scales + i) * kStripRows + row;
        tile.d[to] = d[i];
        if (format.minima) tile.m[to] = m[i];
    }
}

static int32_t factor_of(int32_t scale) {
#if defined(PK_PAIRS)
    return (int32_t)((uint32_t)(uint16_t)scale | (uint32_t)scale << 16);
#else
    return scale;
#endif
}

static void put_factors(const BlockFormat& format, const SuperScales& from, int at, int row, const Tile& tile) {
    const int scales = format.halves ? 16 : 8, rows = format.minima ? scales * 3 / 2 : scales;
    int32_t* factors = tile.factors + (size_t)at * rows * kStripRows + row;
    tile.d[(size_t)at * kStripRows + row] = from.d;
    for (int i = 0; i < scales; i++) factors[kStripRows * i] = factor_of(from.scales[i]);
    if (!format.minima) return;
    tile.m[(size_t)at * kStripRows + row] = from.m;
    for (int i = 0; i < scales / 2; i++) {
        const int32_t* four = from.minima + i / 2 * 4 + i % 2;
        factors[kStripRows * (scales + i)] = four[0] | four[2] << 16;
    }
}

void unpack_strip(const TileFormat& format, const Strip& strip, int blocks, const Tile& tile) {
    if (format.unpack) return format.unpack(strip, blocks, tile);
    const BlockFormat& block = *block_format(format.type);
    const int inside = block.elements / kBlock;
    const uint8_t flip = block.minima ? 0 : kInt8Flip;
    alignas(64) uint8_t codes[kStripRows][256];
    for (int b = 0, at = 0; b < blocks; b += inside, at++) {
        for (int r = 0; r < kStripRows; r++) {
            const uint8_t* src = strip.data + r * strip.stride + (size_t)at * block.bytes;
            float d[4], m[4];
            SuperScales scales;
            if (block.expand) {
                block.expand(src, codes[r], d, m);
                put_scales(block, d, m, at, r, tile);
            } else {
                block.expand_super(src, codes[r], scales);
                put_factors(block, scales, at, r, tile);
            }
        }
        for (int i = 0; i < inside; i++)
            unpack_bytes(Strip{codes[0], sizeof codes[0]}, 32 * i, flip, tile.q + (size_t)512 * (b + i));
    }
}
PK_END
