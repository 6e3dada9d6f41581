#include "tile.h"

PK_BEGIN
bool quantised(int ggml_type) { return tile_format(ggml_type) != nullptr; }

bool supports(int ggml_type) {
    return ggml_type == kF32 || ggml_type == kF16 || ggml_type == kBF16 || quantised(ggml_type);
}

size_t linear_scratch(int cols, int) {
    // The int8 tile with scales and minima (24 bytes a channel) and a copy of a partial strip, or four widened rows.
    return align64((size_t)cols * 42 + 256);
}

void linear_strip(const LinearArgs& args, int strip, uint8_t* scratch) {
    if (quantised(args.weight.type)) linear_quant_strip(args, strip, scratch);
    else linear_float_strip(args, strip, scratch);
}
PK_END
