// Products of a tile with a group of tokens by the tile's shape, its bytes and the number of tokens.
#pragma once
#include "tile.h"
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "dot_matrix.h"
#elif defined(__AVX512VNNI__) || defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)
#include "dot_tile.h"
#else
#include "dot_plain.h"
#endif

PK_BEGIN
constexpr int kTilesAtOnce = 1;

typedef void (*DotGroup)(const Tile&, int, const QuantGroup&, NextLines&, Results);

template <TileShape SHAPE, ByteKind KIND>
static DotGroup dot_for_tokens(int tokens) {
    static const DotGroup table[] = {dot_group<1, SHAPE, KIND>, dot_group<2, SHAPE, KIND>, dot_group<3, SHAPE, KIND>,
                                     dot_group<4, SHAPE, KIND>, dot_group<5, SHAPE, KIND>, dot_group<6, SHAPE, KIND>,
                                     dot_group<7, SHAPE, KIND>, dot_group<8, SHAPE, KIND>};
    return table[tokens - 1];
}

static DotGroup dot_for(const TileFormat& format, int tokens) {
    const bool minima = format.kind == kUnsignedMin;
    switch (format.shape) {
        case kHalved: return dot_for_tokens<kHalved, kInt8>(tokens);
        case kSuperWhole:
            return minima ? dot_for_tokens<kSuperWhole, kUnsignedMin>(tokens) : dot_for_tokens<kSuperWhole, kInt8>(tokens);
        case kSuperSmall: return dot_for_tokens<kSuperSmall, kUnsignedMin>(tokens);
        case kSuperHalved:
            return minima ? dot_for_tokens<kSuperHalved, kUnsignedMin>(tokens) : dot_for_tokens<kSuperHalved, kInt8>(tokens);
        case kSuperHalvedSmall:
            return minima ? dot_for_tokens<kSuperHalvedSmall, kUnsignedMin>(tokens) : dot_for_tokens<kSuperHalvedSmall, kInt8>(tokens);
        default: break;
    }
    if (minima) return dot_for_tokens<kWhole, kUnsignedMin>(tokens);
    return format.kind == kUnsignedMinus8 ? dot_for_tokens<kWhole, kUnsignedMinus8>(tokens) : dot_for_tokens<kWhole, kInt8>(tokens);
}

static void dot_tiles(const TileFormat& format, const Tile* tile, int, int blocks, const QuantGroup& group, NextLines& next,
                      Results* results) {
    dot_for(format, group.tokens)(*tile, blocks, group, next, *results);
}
PK_END
