// Rows of K or V into a page, and the loads that mirror it.
#include "hadamard.h"

PK_BEGIN
// No number where one of them is infinite or none: magnitudes compare as their bits do.
static float largest_of(const float* x) {
    constexpr int32_t kMagnitude = 0x7fffffff, kInfinite = 0x7f800000, kNoNumber = 0x7fc00000;
    int32_t largest = 0;
    for (int i = 0; i < kBlock; i++) {
        const int32_t magnitude = (int32_t)float_to_bits(x[i]) & kMagnitude;
        largest = magnitude > largest ? magnitude : largest;
    }
    return bits_to_float(largest < kInfinite ? largest : kNoNumber);
}

static inline float inverse_of(uint16_t scale) {
    const float stored = half_to_float(scale);
    return stored > 0.0f ? 1.0f / stored : 0.0f;
}

static void store_q8(const float* x, int head_dim, int8_t* q, uint16_t* scales) {
    for (int b = 0; b < head_dim / kBlock; b++, x += kBlock, q += kBlock) {
        scales[b] = float_to_half(largest_of(x) / 127.0f);
        const float inverse = inverse_of(scales[b]);
        for (int i = 0; i < kBlock; i++) {
            const float v = __builtin_rintf(x[i] * inverse);
            q[i] = (int8_t)(v > -127.0f ? v < 127.0f ? v : 127.0f : -127.0f);
        }
    }
}

static inline uint8_t nibble(float x) {
    const float v = __builtin_rintf(x) + 8.0f;
    return (uint8_t)(v > 0.0f ? v < 15.0f ? v : 15.0f : 0.0f);
}

// Rotated channels as nibbles of value / scale + 8: byte i of a block holds channels i (low) and i + 16.
static void store_q4(const float* src, int head_dim, uint8_t* q, uint16_t* scales) {
    float rotated[kMostRotated];
    __builtin_memcpy(rotated, src, (size_t)head_dim * 4);
    rotate_head(rotated, head_dim);
    const float* x = rotated;
    for (int b = 0; b < head_dim / kBlock; b++, x += kBlock, q += kBlock / 2) {
        scales[b] = float_to_half(largest_of(x) / 7.5f);
        const float inverse = inverse_of(scales[b]);
        for (int i = 0; i < 16; i++) q[i] = (uint8_t)(nibble(x[i] * inverse) | nibble(x[i + 16] * inverse) << 4);
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
        uint16_t* scales = (uint16_t*)(page + plane.scale_offset) + row * (plane.head_dim / kBlock);
        if (plane.type == kKvF32) __builtin_memcpy(data + at * 4, x, (size_t)plane.head_dim * 4);
        else if (plane.type == kKvQ8) store_q8(x, plane.head_dim, (int8_t*)data + at, scales);
        else if (plane.type == kKvQ4) store_q4(x, plane.head_dim, data + at / 2, scales);
        else store_16(x, plane.head_dim, plane.type, (uint16_t*)data + at);
    }
}
PK_END
