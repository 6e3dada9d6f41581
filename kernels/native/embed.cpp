// One weight row to float32.
#include "simd.h"

PK_BEGIN
static void plain(const TensorView& w, const uint8_t* src, float* out) {
    for (int i = 0; i < w.cols; i++) {
        if (w.type == kF32) __builtin_memcpy(out + i, src + 4 * (size_t)i, 4);
        else if (w.type == kF16) out[i] = half_to_float(load_u16(src + 2 * (size_t)i));
        else out[i] = bf16_to_float(load_u16(src + 2 * (size_t)i));
    }
}

static void nibbles(const uint8_t* q, float d, float m, int zero, float* out) {
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((q[i] & 15) - zero) + m;
        out[i + 16] = d * (float)((q[i] >> 4) - zero) + m;
    }
}

static void block(int type, const uint8_t* src, int b, float* out) {
    if (type == kQ4_0) {
        const uint8_t* p = src + (size_t)18 * b;
        nibbles(p + 2, half_to_float(load_u16(p)), 0.0f, 8, out);
    } else if (type == kQ4_1) {
        const uint8_t* p = src + (size_t)20 * b;
        nibbles(p + 4, half_to_float(load_u16(p)), half_to_float(load_u16(p + 2)), 0, out);
    } else {
        const uint8_t* p = src + (size_t)34 * b;
        const float d = half_to_float(load_u16(p));
        for (int i = 0; i < 32; i++) out[i] = d * (float)(int8_t)p[2 + i];
    }
}

void embed_row(const TensorView& weight, int64_t row, float scale, float* out) {
    const uint8_t* src = weight.data + (size_t)row * weight.row_bytes;
    if (quantised(weight.type))
        for (int b = 0; b < weight.cols / kBlock; b++) block(weight.type, src, b, out + (size_t)b * kBlock);
    else plain(weight, src, out);
    for (int i = 0; i < weight.cols; i++) out[i] *= scale;
}
PK_END
