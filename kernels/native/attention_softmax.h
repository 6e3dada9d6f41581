// Scores of one query and partition to weights, and the merge of partitions. Scores and maxima are exponents of 2.
#pragma once
#include "simd.h"

PK_BEGIN
constexpr float kNone = -__builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;

struct Seen {                // scores [begin, end) exist, [low, high) count
    int begin, end;
    int low, high;
};

// A weight as the product with V sees it, so that the denominator sums the same numbers.
static inline vf as_weighed(vf weight, bool rounded) {
#if defined(__AVX512BF16__)
    if (rounded) return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(weight)), 16));
#endif
    (void)rounded;
    return weight;
}

// In place; stats: maximum and sum of weights. `rounded`: weights are multiplied as bfloat16.
static void soften(float* scores, const Seen& seen, float cap, bool rounded, float* stats) {
    if (cap > 0.0f) {
        softcap(scores + seen.begin, seen.end - seen.begin, cap);
        for (int i = seen.begin; i < seen.end; i += W) vstore(scores + i, vmul(vload(scores + i), vset(kLog2E)));
    }
    for (int i = seen.begin; i < seen.low; i++) scores[i] = kNone;
    for (int i = seen.high; i < seen.end; i++) scores[i] = kNone;
    vf best = vset(kNone);
    for (int i = seen.begin; i < seen.end; i += W) best = vmax(best, vload(scores + i));
    stats[0] = vhighest(best);
    const vf top = vset(stats[0] == kNone ? 0.0f : stats[0]);
    vf sum = vzero();
    for (int i = seen.begin; i < seen.end; i += W) {
        const vf weight = as_weighed(vexp2(vsub(vload(scores + i), top)), rounded);
        vstore(scores + i, weight);
        sum = vadd(sum, weight);
    }
    stats[1] = vsum(sum);
}

// total <- total and part, both [width + 2]: sums, maximum, denominator.
static void merge(float* total, const float* part, int width) {
    const float a = total[width], b = part[width];
    if (b == kNone) return;
    if (a == kNone) {
        __builtin_memcpy(total, part, (size_t)(width + 2) * 4);
        return;
    }
    const float top = a > b ? a : b, keep = exp2_one(a - top), take = exp2_one(b - top);
    for (int d = 0; d < width; d += W)
        vstore(total + d, vfma(vload(part + d), vset(take), vmul(vload(total + d), vset(keep))));
    total[width] = top;
    total[width + 1] = total[width + 1] * keep + part[width + 1] * take;
}
PK_END
