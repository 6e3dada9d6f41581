// Formats of superblocks: tiles, and few tokens straight from the strip.
#include "tile_walks.h"

#include "lanes.h"
#if defined(PK_LANES)
#include "tile_sinks.h"

PK_BEGIN
static constexpr TileFormat formats[] = {
    direct<WalkQ2_K>(kQ2_K), direct<WalkQ3_K>(kQ3_K), direct<WalkQ4_K>(kQ4_K), direct<WalkQ5_K>(kQ5_K),
    direct<WalkQ6_K>(kQ6_K), direct<WalkIQ4_XS>(kIQ4_XS), direct<WalkTQ2_0>(kTQ2_0),
};

const TileFormat* super_walk(int ggml_type) { return format_among(formats, ggml_type); }
PK_END
#else
PK_BEGIN
const TileFormat* super_walk(int) { return nullptr; }
PK_END
#endif
