// Attention of every token of a text to all of them, in float32.
#pragma once
#include "bert.h"
#include "simd.h"

PK_BEGIN
constexpr int kQueries = 4;
constexpr int kPair = 2 * W;

static inline int padded(int n) { return (n + kPair - 1) / kPair * kPair; }
static inline size_t bert_attention_floats(int n, int dim) { return (size_t)padded(n) * (2 * dim + kQueries); }

// Columns of one head: keys as [dim][padded n], zeros after n; values as [n][dim].
static void gather_head(const float* qkv, int n, int hidden, int dim, int head, float* keys, float* values) {
    const int width = padded(n);
    for (int i = 0; i < width; i++) {
        const float* row = qkv + (size_t)i * 3 * hidden + hidden + head * dim;
        for (int d = 0; d < dim; d++) keys[d * width + i] = i < n ? row[d] : 0.0f;
        if (i < n) __builtin_memcpy(values + (size_t)i * dim, row + hidden, dim * sizeof(float));
    }
}

static void dot_keys(const float* queries, size_t stride, const float* keys, int width, int dim, float scale, float* scores) {
    for (int i = 0; i < width; i += kPair) {
        vf sums[kQueries][2];
        for (int q = 0; q < kQueries; q++) sums[q][0] = sums[q][1] = vzero();
        for (int d = 0; d < dim; d++) {
            const vf a = vload(keys + d * width + i), b = vload(keys + d * width + i + W);
            for (int q = 0; q < kQueries; q++) {
                const vf x = vset(queries[q * stride + d]);
                sums[q][0] = vfma(x, a, sums[q][0]);
                sums[q][1] = vfma(x, b, sums[q][1]);
            }
        }
        for (int q = 0; q < kQueries; q++)
            for (int s = 0; s < 2; s++) vstore(scores + q * width + i + s * W, vmul(sums[q][s], vset(scale)));
    }
}

// Turns the first n scores into shares of 1, the rest into 0; returns what the shares are to be divided by.
static float exponentials(float* scores, int n, int width) {
    for (int i = n; i < width; i++) scores[i] = -1e30f;
    vf most = vset(-1e30f), sum = vzero();
    for (int i = 0; i < width; i += W) most = vmax(most, vload(scores + i));
    const vf highest = vset(vhighest(most));
    for (int i = 0; i < width; i += W) {
        const vf e = vexp(vsub(vload(scores + i), highest));
        sum = vadd(sum, e);
        vstore(scores + i, e);
    }
    return vsum(sum);
}

static void add_values(const float* shares, int width, const float* values, int n, int dim, const float* totals, int queries,
                       float* out, size_t stride) {
    for (int d = 0; d < dim; d += kPair) {
        const bool two = d + W < dim;
        vf sums[kQueries][2];
        for (int q = 0; q < kQueries; q++) sums[q][0] = sums[q][1] = vzero();
        for (int i = 0; i < n; i++) {
            const vf a = vload(values + (size_t)i * dim + d), b = two ? vload(values + (size_t)i * dim + d + W) : vzero();
            for (int q = 0; q < kQueries; q++) {
                const vf x = vset(shares[q * width + i]);
                sums[q][0] = vfma(x, a, sums[q][0]);
                sums[q][1] = vfma(x, b, sums[q][1]);
            }
        }
        for (int q = 0; q < queries; q++)
            for (int s = 0; s < 1 + two; s++)
                vstore(out + q * stride + d + s * W, vmul(sums[q][s], vset(1.0f / totals[q])));
    }
}

// qkv [n, 3 * hidden] -> out [n, hidden]. Rows of qkv up to the next multiple of kQueries are read, not used.
static void attend_text(const float* qkv, int n, int hidden, int heads, float* out, float* scratch) {
    const int dim = hidden / heads, width = padded(n);
    float* keys = scratch;
    float* values = keys + (size_t)width * dim;
    float* scores = values + (size_t)width * dim;
    const float scale = 1.0f / __builtin_sqrtf((float)dim);
    for (int head = 0; head < heads; head++) {
        gather_head(qkv, n, hidden, dim, head, keys, values);
        for (int first = 0; first < n; first += kQueries) {
            const int queries = imin(kQueries, n - first);
            dot_keys(qkv + (size_t)first * 3 * hidden + head * dim, 3 * hidden, keys, width, dim, scale, scores);
            float totals[kQueries];
            for (int q = 0; q < kQueries; q++) totals[q] = exponentials(scores + q * width, n, width);
            add_values(scores, width, values, n, dim, totals, queries, out + (size_t)first * hidden + head * dim, hidden);
        }
    }
}
PK_END
