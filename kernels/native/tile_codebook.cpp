// Formats of codebooks and of less than two bits, where rows are gathered for: tiles, and one token straight from the strip.
// A file of its own, as tile.cpp takes the compiler long enough.
#include "tile_codebook.h"

#if defined(__AVX2__)
#include "tile_sinks.h"
#include "walks_codebook.h"

PK_BEGIN
template <class Walk>
static constexpr DotStrip few_direct[kDirectTokens] = {dot_strip<1, Walk>};

template <class Walk>
static constexpr TileFormat direct(int type) {
    constexpr TileShape kSuperShape = Walk::kHalves ? kSuperHalved : kSuperWhole;
    return {type, kInt8, Walk::kSuperblocks ? kSuperShape : kWhole, walk_strip<Walk>, few_direct<Walk>, nullptr};
}

static constexpr TileFormat formats[] = {
    direct<WalkIQ3_XXS>(kIQ3_XXS), direct<WalkIQ2_XXS>(kIQ2_XXS), direct<WalkIQ3_S>(kIQ3_S), direct<WalkIQ2_S>(kIQ2_S),
    direct<WalkIQ2_XS>(kIQ2_XS), direct<WalkIQ1_M>(kIQ1_M), direct<WalkIQ1_S>(kIQ1_S), direct<WalkTQ1_0>(kTQ1_0),
    direct<WalkQ1_0>(kQ1_0), direct<WalkQ2_0>(kQ2_0),
};

const TileFormat* codebook_format(int ggml_type) {
    for (const TileFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}
PK_END
#else
PK_BEGIN
const TileFormat* codebook_format(int) { return nullptr; }
PK_END
#endif
