// Formats of codebooks and of less than two bits, where the level has better than their block formats.
#pragma once
#include "tile.h"

PK_BEGIN
const TileFormat* codebook_format(int ggml_type);  // null: by way of the block format
PK_END
