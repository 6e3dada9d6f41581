// What multiplies a strip of a codebook format with one token faster than its walk does.
#pragma once
#include "tile.h"

PK_BEGIN
DotStrip dot_codebook(int ggml_type);  // null: the walk
PK_END
