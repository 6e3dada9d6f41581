// The rotation of q4 heads: a Walsh-Hadamard transform of each run of 2^k channels, 2^k the largest power of two that
// divides the head, scaled to be orthogonal. It is its own inverse.
#pragma once
#include "simd.h"

PK_BEGIN
constexpr int kMostRotated = 1024;  // channels of a head; kernels/encoding.py refuses more

static void rotate_head(float* x, int head_dim) {
    const int run = head_dim & -head_dim;
    const float scale = 1.0f / __builtin_sqrtf((float)run);
    for (float* end = x + head_dim; x < end; x += run) {
        for (int half = 1; half < run; half *= 2)
            for (int i = 0; i < run; i += 2 * half)
                for (int j = i; j < i + half; j++) {
                    const float a = x[j], b = x[j + half];
                    x[j] = a + b;
                    x[j + half] = a - b;
                }
        for (int i = 0; i < run; i++) x[i] *= scale;
    }
}
PK_END
