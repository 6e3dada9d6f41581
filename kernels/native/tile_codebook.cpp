// Formats of codebooks and of less than two bits, where rows are gathered for: tiles, and one token straight from the
// strip.
#include "tile_walks.h"

#if defined(__AVX2__)
#include "tile_sinks.h"
#include "walks_codebook.h"

PK_BEGIN
template <class Walk>
static constexpr DotStrip few_direct[kDirectTokens] = {dot_strip<1, Walk>};

template <class Walk>
static constexpr TileFormat gathered(int type) {
    constexpr TileShape kSuperShape = Walk::kHalves ? kSuperHalved : kSuperWhole;
    return {type, tile_kind<Walk>(), Walk::kSuperblocks ? kSuperShape : kWhole, walk_strip<Walk>, few_direct<Walk>, nullptr};
}

static constexpr TileFormat formats[] = {
    gathered<WalkIQ3_XXS>(kIQ3_XXS), gathered<WalkIQ2_XXS>(kIQ2_XXS), gathered<WalkIQ3_S>(kIQ3_S), gathered<WalkIQ2_S>(kIQ2_S),
    gathered<WalkIQ2_XS>(kIQ2_XS), gathered<WalkIQ1_M>(kIQ1_M), gathered<WalkIQ1_S>(kIQ1_S), gathered<WalkTQ1_0>(kTQ1_0),
    gathered<WalkQ1_0>(kQ1_0), gathered<WalkQ2_0>(kQ2_0),
};

const TileFormat* codebook_walk(int ggml_type) {
    return format_among(formats, ggml_type);
}
PK_END
#else
PK_BEGIN
const TileFormat* codebook_walk(int) { return nullptr; }
PK_END
#endif
