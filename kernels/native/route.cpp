// Choice of experts for one row; the rules stand in kernels/program.py (Route).
#include "simd.h"

PK_BEGIN
constexpr float kSmallestSum = 6.103515625e-5f;

static void exponentials(float* values, int n, float top) {
    const vf peak = vset(top);
    int i = 0;
    for (; i + W <= n; i += W) vstore(values + i, vexp(vsub(vload(values + i), peak)));
    if (i < n) vstore_n(values + i, vexp(vsub(vload_n(values + i, n - i), peak)), n - i);
}

static void softmax(float* values, int n) {
    float top = values[0], sum = 0.0f;
    for (int i = 1; i < n; i++) top = values[i] > top ? values[i] : top;
    exponentials(values, n, top);
    for (int i = 0; i < n; i++) sum += values[i];
    for (int i = 0; i < n; i++) values[i] /= sum;
}

static void sigmoids(float* values, int n) {
    for (int i = 0; i < n; i++) values[i] = -values[i];
    exponentials(values, n, 0.0f);
    for (int i = 0; i < n; i++) values[i] = 1.0f / (1.0f + values[i]);
}

static float sqrt_softplus(float x) {
    const double larger = x > 0.0f ? x : 0.0f;
    return (float)__builtin_sqrt(larger + __builtin_log1p(__builtin_exp(-__builtin_fabs((double)x))));
}

static void open_gates(float* values, int n, int gating) {
    if (gating == kGateSoftmax) softmax(values, n);
    else if (gating == kGateSigmoid) sigmoids(values, n);
    else if (gating == kGateSqrtSoftplus)
        for (int i = 0; i < n; i++) values[i] = sqrt_softplus(values[i]);
}

// Index of the highest score whose mark is 0; the lower one of equals.
static int best_unmarked(const float* scores, const uint8_t* marks, int n) {
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!marks[i] && (best < 0 || scores[i] > scores[best])) best = i;
    return best;
}

static float two_best(const float* scores, int n) {
    float first = -__builtin_inff(), second = first;
    for (int i = 0; i < n; i++) {
        if (scores[i] > first) {
            second = first;
            first = scores[i];
        } else if (scores[i] > second) second = scores[i];
    }
    return n > 1 ? first + second : first;
}

// Marks the experts of all groups but the best ones.
static void mark_groups(const RouteArgs& args, const float* scores, uint8_t* marks) {
    float groups[kMaxExperts];
    uint8_t used[kMaxExperts] = {};
    const int size = args.experts / args.groups;
    for (int g = 0; g < args.groups; g++) groups[g] = two_best(scores + g * size, size);
    for (int i = 0; i < args.groups_used; i++) used[best_unmarked(groups, used, args.groups)] = 1;
    for (int e = 0; e < args.experts; e++) marks[e] = !used[e / size];
}

void route(const RouteArgs& args, const float* logits, float* out) {
    float chances[kMaxExperts], scores[kMaxExperts];
    uint8_t marks[kMaxExperts] = {}, chosen[kMaxExperts] = {};
    const int n = args.experts;
    for (int i = 0; i < n; i++) chances[i] = logits[i];
    open_gates(chances, n, args.gating);
    for (int i = 0; i < n; i++) scores[i] = args.bias ? chances[i] + args.bias[i] : chances[i];
    if (args.groups > 1) mark_groups(args, scores, marks);
    for (int i = 0; i < args.used; i++) {
        const int best = best_unmarked(scores, marks, n);
        marks[best] = chosen[best] = 1;
    }
    float* weights = out + args.used;
    for (int e = 0, i = 0; e < n; e++) {
        if (!chosen[e]) continue;
        out[i] = (float)e;
        weights[i++] = chances[e];
    }
    if (args.gating == kGateSoftmaxChosen) softmax(weights, args.used);
    float sum = 0.0f;
    for (int i = 0; i < args.used; i++) sum += weights[i];
    const float divisor = !args.normalise ? 1.0f : sum > kSmallestSum ? sum : kSmallestSum;
    for (int i = 0; i < args.used; i++) weights[i] = weights[i] / divisor * args.scale;
}
PK_END
