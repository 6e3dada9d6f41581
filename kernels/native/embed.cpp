// One weight row to float32.
#include "formats.h"

PK_BEGIN
static void plain(const TensorView& w, const uint8_t* src, float* out) {
    for (int i = 0; i < w.cols; i++) {
        if (w.type == kF32) __builtin_memcpy(out + i, src + 4 * (size_t)i, 4);
        else if (w.type == kF16) out[i] = half_to_float(load_u16(src + 2 * (size_t)i));
        else out[i] = bf16_to_float(load_u16(src + 2 * (size_t)i));
    }
}

static void expand(const BlockFormat& format, const uint8_t* src, uint8_t* codes, float* d, float* m) {
    if (format.expand) return format.expand(src, codes, d, m);
    SuperScales scales;
    format.expand_super(src, codes, scales);
    for (int i = 0; i < (format.halves ? 16 : 8); i++) {
        d[i] = scales.d * (float)scales.scales[i];
        if (format.minima) m[i] = scales.m * (float)scales.minima[i];
    }
}

static void quantised_row(const BlockFormat& format, const TensorView& w, const uint8_t* src, float* out) {
    const int run = format.halves ? 16 : 32;
    for (int at = 0; at < w.cols; at += format.elements, src += format.bytes) {
        uint8_t codes[256];
        float d[16], m[16];
        expand(format, src, codes, d, m);
        for (int i = 0; i < format.elements; i++)
            out[at + i] = format.minima ? d[i / run] * (float)codes[i] + m[i / run] : d[i / run] * (float)(int8_t)codes[i];
    }
}

void embed_row(const TensorView& weight, int64_t row, float scale, float* out) {
    const uint8_t* src = weight.data + (size_t)row * weight.row_bytes;
    const BlockFormat* format = block_format(weight.type);
    if (format) quantised_row(*format, weight, src, out);
    else plain(weight, src, out);
    for (int i = 0; i < weight.cols; i++) out[i] *= scale;
}
PK_END
