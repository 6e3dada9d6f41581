// Formats that the level unpacks, or multiplies, by a walk over the strip; null: by way of the block format. Each kind in
// a file of its own, as the compiler takes long over them.
#pragma once
#include "tile.h"

PK_BEGIN
const TileFormat* block_walk(int ggml_type);     // a scale per block
const TileFormat* super_walk(int ggml_type);     // superblocks of 256
const TileFormat* codebook_walk(int ggml_type);  // codebooks, and less than two bits
PK_END
