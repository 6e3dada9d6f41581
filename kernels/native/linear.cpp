#include "tile.h"

PK_BEGIN
bool supports(int ggml_type) {
    return ggml_type == kF32 || ggml_type == kF16 || ggml_type == kBF16 || rounding(ggml_type);
}

size_t linear_scratch(int cols, int) {
    const size_t widened = (size_t)cols * 16 + 256;  // four rows of a float matrix
    return align64(widened > quant_scratch(cols) ? widened : quant_scratch(cols));
}

void linear_strips(const LinearArgs& args, int first, int count, uint8_t* scratch) {
    if (rounding(args.weight.type)) return linear_quant_strips(args, first, count, scratch);
    for (int strip = first; strip < first + count; strip++) linear_float_strip(args, strip, scratch);
}

void linear_strip(const LinearArgs& args, int strip, uint8_t* scratch) { linear_strips(args, strip, 1, scratch); }
PK_END
