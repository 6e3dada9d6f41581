#include "tile.h"

#include "formats.h"
#include "lanes.h"
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
            for (int j = 0; j < 4; j++) istore(q + 64 * (4 * half + j) + 4 * row, ixor(groups[j], iset8(flip)));
        }
}

template <class Walk>
static constexpr TileFormat direct(int type) {
    return {type, Walk::kKind, Walk::kHalves, walk_strip<Walk>, few_tokens<Walk>, first_tokens<Walk>};
}
#else
static void unpack_bytes(const Strip& s, size_t offset, uint8_t flip, uint8_t* q) {
    for (int r = 0; r < kStripRows; r++)
        for (int i = 0; i < 32; i++) q[64 * (i / 4) + 4 * r + i % 4] = s.data[r * s.stride + offset + i] ^ flip;
}
#endif

static constexpr TileFormat by_block(int type, bool halves, bool minima) {
    return {type, minima ? kUnsignedMin : kInt8, halves, nullptr, nullptr, nullptr};
}

static const TileFormat formats[] = {
#if defined(PK_LANES)
    direct<WalkQ4_0>(kQ4_0), direct<WalkQ4_1>(kQ4_1), direct<WalkQ5_0>(kQ5_0), direct<WalkQ5_1>(kQ5_1),
    direct<WalkQ8_0>(kQ8_0), direct<WalkQ2_K>(kQ2_K), direct<WalkQ3_K>(kQ3_K), direct<WalkQ4_K>(kQ4_K),
    direct<WalkQ5_K>(kQ5_K), direct<WalkQ6_K>(kQ6_K), direct<WalkIQ4_XS>(kIQ4_XS), direct<WalkIQ4_NL>(kIQ4_NL),
    direct<WalkTQ2_0>(kTQ2_0), direct<WalkMXFP4>(kMXFP4), direct<WalkNVFP4>(kNVFP4),
#else
    by_block(kQ4_0, false, false), by_block(kQ4_1, false, true), by_block(kQ5_0, false, false),
    by_block(kQ5_1, false, true), by_block(kQ8_0, false, false), by_block(kQ2_K, true, true),
    by_block(kQ3_K, true, false), by_block(kQ4_K, false, true), by_block(kQ5_K, false, true),
    by_block(kQ6_K, true, false), by_block(kIQ4_XS, false, false), by_block(kIQ4_NL, false, false),
    by_block(kTQ2_0, false, false), by_block(kMXFP4, false, false), by_block(kNVFP4, true, false),
#endif
    by_block(kIQ2_XXS, false, false), by_block(kIQ2_XS, true, false), by_block(kIQ2_S, true, false),
    by_block(kIQ3_XXS, false, false), by_block(kIQ3_S, false, false), by_block(kIQ1_S, false, false),
    by_block(kIQ1_M, true, false), by_block(kTQ1_0, false, false), by_block(kQ1_0, false, false),
    by_block(kQ2_0, false, false),
};

const TileFormat* tile_format(int ggml_type) {
    for (const TileFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}

bool halved(int ggml_type) {
    const TileFormat* format = tile_format(ggml_type);
    return format && format->halves;
}

void unpack_strip(const TileFormat& format, const Strip& strip, int blocks, const Tile& tile) {
    if (format.unpack) return format.unpack(strip, blocks, tile);
    const BlockFormat& block = *block_format(format.type);
    const int inside = block.elements / kBlock, scales = block.elements / (block.halves ? 16 : kBlock);
    const uint8_t flip = block.minima ? 0 : kInt8Flip;
    alignas(64) uint8_t codes[kStripRows][256];
    for (int b = 0, at = 0; b < blocks; b += inside, at++) {
        for (int r = 0; r < kStripRows; r++) {
            float d[16], m[16];
            block.expand(strip.data + r * strip.stride + (size_t)at * block.bytes, codes[r], d, m);
            for (int i = 0; i < scales; i++) {
                tile.d[((size_t)at * scales + i) * kStripRows + r] = d[i];
                if (block.minima) tile.m[((size_t)at * scales + i) * kStripRows + r] = m[i];
            }
        }
        for (int i = 0; i < inside; i++)
            unpack_bytes(Strip{codes[0], sizeof codes[0]}, 32 * i, flip, tile.q + (size_t)512 * (b + i));
    }
}
PK_END
