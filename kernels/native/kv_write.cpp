// Rows of K or V into a page, and the loads that mirror it.
#include "simd.h"

PK_BEGIN
static void store_q8(const float* x, int head_dim, int8_t* q, uint16_t* scales) {
    for (int b = 0; b < head_dim / kBlock; b++, x += kBlock, q += kBlock) {
        float largest = 0.0f;
        for (int i = 0; i < kBlock; i++) largest = __builtin_fabsf(x[i]) > largest ? __builtin_fabsf(x[i]) : largest;
        scales[b] = float_to_half(largest / 127.0f);
        const float stored = half_to_float(scales[b]);
        const float inverse = stored > 0.0f ? 1.0f / stored : 0.0f;
        for (int i = 0; i < kBlock; i++) {
            const float v = __builtin_rintf(x[i] * inverse);
            q[i] = (int8_t)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v);
        }
    }
}

static void store_16(const float* x, int n, int type, uint16_t* out) {
    if (type == kKvF16)
        for (int i = 0; i < n; i++) out[i] = float_to_half(x[i]);
    else
        for (int i = 0; i < n; i++) out[i] = float_to_bf16(x[i]);
}

void store_kv(const float* src, const KvPlane& plane, uint8_t* page, int slot) {
    for (int h = 0; h < plane.heads; h++) {
        const float* x = src + (size_t)h * plane.head_dim;
        const size_t row = (size_t)h * plane.page_tokens + slot, at = row * plane.head_dim;
        uint8_t* data = page + plane.offset;
        if (plane.type == kKvF32) __builtin_memcpy(data + at * 4, x, (size_t)plane.head_dim * 4);
        else if (plane.type == kKvQ8)
            store_q8(x, plane.head_dim, (int8_t*)data + at,
                     (uint16_t*)(page + plane.scale_offset) + row * (plane.head_dim / kBlock));
        else store_16(x, plane.head_dim, plane.type, (uint16_t*)data + at);
    }
}
PK_END
