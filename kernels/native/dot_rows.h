// What multiplies a strip with one token faster than its walk does.
#pragma once
#include "tile.h"

PK_BEGIN
DotStrip dot_one(int ggml_type);  // null: the walk
PK_END
