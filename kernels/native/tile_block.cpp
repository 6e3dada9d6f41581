// Formats with a scale per block: tiles, and few tokens straight from the strip.
#include "tile_walks.h"

#include "lanes.h"
#if defined(PK_LANES)
#include "tile_sinks.h"

PK_BEGIN
static constexpr TileFormat formats[] = {
    direct<WalkQ4_0>(kQ4_0), direct<WalkQ4_1>(kQ4_1), direct<WalkQ5_0>(kQ5_0), direct<WalkQ5_1>(kQ5_1),
    direct<WalkQ8_0>(kQ8_0), direct<WalkIQ4_NL>(kIQ4_NL), direct<WalkMXFP4>(kMXFP4), direct<WalkNVFP4>(kNVFP4),
};

const TileFormat* block_walk(int ggml_type) { return format_among(formats, ggml_type); }
PK_END
#else
PK_BEGIN
const TileFormat* block_walk(int) { return nullptr; }
PK_END
#endif
