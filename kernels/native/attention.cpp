// Causal attention over paged K and V in partitions of 512 tokens counted from position 0.
// Inside a partition the softmax is taken over all its scores at once; partitions merge in ascending order.
// Masked keys weigh exactly 0, so a row's result does not depend on the rows it is computed with.
#include "attention_tiles.h"
#if defined(__AVX512BF16__)
#include "attention_bf16.h"
#endif

PK_BEGIN
constexpr float kNone = -__builtin_inff();

struct Workspace {
    float* queries;   // [queries, head_dim_k], scaled
    float* scores;    // [queries, kPartition]
    uint16_t* pairs;  // queries, then weights, as bfloat16 where pages are narrower than float
    float* tile;      // one K or V tile
    float* part;      // [queries, value_width + 2]: sums, then maximum and denominator
    float* total;     // same
};

static inline int value_width(const AttentionArgs& args) { return (args.v.head_dim + W - 1) / W * W; }
static inline int group_of(const AttentionArgs& args) { return args.heads / args.k.heads; }

static size_t tile_floats(const AttentionArgs& args) {
    return (size_t)kTileTokens * imax(args.k.head_dim + 1, value_width(args));
}

int attention_rows(int group) { return imax(1, imin(32, 48 / group)); }

size_t partial_floats(const AttentionArgs& args, int rows) {
    return (size_t)rows * group_of(args) * (value_width(args) + 2);
}

static Workspace carve(const AttentionArgs& args, int rows, uint8_t* scratch, size_t* bytes) {
    const size_t queries = (size_t)rows * group_of(args);
    const size_t narrowed = queries * (size_t)imax(args.k.head_dim + 2 * W, kPartition) / 2;
    const size_t sizes[6] = {queries * args.k.head_dim, queries * kPartition, tile_floats(args),
                             partial_floats(args, rows), partial_floats(args, rows), narrowed};
    float* parts[6];
    size_t at = 0;
    for (int i = 0; i < 6; i++) {
        parts[i] = (float*)(scratch + at);
        at += align64(sizes[i] * 4);
    }
    *bytes = at;
    return Workspace{parts[0], parts[1], (uint16_t*)parts[5], parts[2], parts[3], parts[4]};
}

size_t attention_scratch(const AttentionArgs& args, int rows) {
    size_t bytes;
    carve(args, rows, nullptr, &bytes);
    return bytes;
}

#if defined(__AVX512BF16__)
// Scores are exponents: keys of 11 bits (f16) lose too much as 8 and are multiplied as floats. Logits of a tiny F32 model
// with f16 pages: 1.5e-2 from the reference with narrow K and V, 6e-3 with narrow V, 1.3e-3 with neither.
static inline bool narrow_keys(const AttentionArgs& args) { return args.k.type != kKvF16 && narrow_plane(args.k); }
static inline bool narrow_values(const AttentionArgs& args) { return narrow_plane(args.v); }
#else
static inline bool narrow_keys(const AttentionArgs&) { return false; }
static inline bool narrow_values(const AttentionArgs&) { return false; }
#endif

static void gather_queries(const AttentionArgs& args, const AttentionUnit& unit, float* queries) {
    const int group = group_of(args), dim = args.k.head_dim;
    for (int r = 0; r < unit.rows; r++) {
        const float* q = args.q + (size_t)(unit.row + r) * args.q_stride + (size_t)unit.kv_head * group * dim;
        for (int i = 0; i < group * dim; i++) queries[(size_t)r * group * dim + i] = q[i] * args.scale;
    }
}

struct Range {  // keys [begin, end) of a partition that some row of the unit may see, in whole tiles
    int start;  // position of the partition
    int begin, end;
};

static Range visible(const AttentionArgs& args, const AttentionUnit& unit, int part) {
    const int start = part * kPartition;
    const int last = unit.position + unit.rows - 1;
    const int oldest = args.window > 0 ? unit.position - args.window + 1 : 0;
    const int begin = imax(0, oldest - start) / kTileTokens * kTileTokens;
    const int end = (imin(kPartition, last - start + 1) + kTileTokens - 1) / kTileTokens * kTileTokens;
    return Range{start, begin, end};
}

struct Keys {  // one tile of consecutive keys inside a page
    const uint8_t* page;
    size_t row;
    int tokens;
};

static Keys locate(const KvPlane& plane, const AttentionUnit& unit, int position) {
    const int page = position / plane.page_tokens, slot = position % plane.page_tokens;
    const int valid = imin(kTileTokens, unit.position + unit.rows - position);
    return Keys{(const uint8_t*)(uintptr_t)unit.pages[page], (size_t)unit.kv_head * plane.page_tokens + slot, valid};
}

#if defined(__AVX512BF16__)
static inline size_t query_pairs(const AttentionArgs& args) { return ((size_t)args.k.head_dim + W) / W * W; }

static void score_pairs(const AttentionArgs& args, const AttentionUnit& unit, const Range& range, const Workspace& ws) {
    const int queries = unit.rows * group_of(args), dim = args.k.head_dim;
    const size_t stride = query_pairs(args);
    for (int q = 0; q < queries; q++) narrow(ws.queries + (size_t)q * dim, dim, ws.pairs + q * stride);
    for (int at = range.begin; at < range.end; at += kTileTokens) {
        const Keys keys = locate(args.k, unit, range.start + at);
        key_pairs(keys.page, args.k, keys.row, keys.tokens, (uint16_t*)ws.tile);
        const PairProduct product = {ws.pairs, stride, (const uint16_t*)ws.tile, kTileTokens,
                                     ws.scores + at, kPartition, (dim + 1) / 2, false};
        multiply_pairs(product, queries, kTileTokens);
    }
}

static void weigh_pairs(const AttentionArgs& args, const AttentionUnit& unit, const Range& range, const Workspace& ws) {
    const int width = value_width(args), queries = unit.rows * group_of(args);
    for (int q = 0; q < queries; q++)
        narrow(ws.scores + (size_t)q * kPartition + range.begin, range.end - range.begin,
               ws.pairs + (size_t)q * kPartition + range.begin);
    for (int at = range.begin; at < range.end; at += kTileTokens) {
        const Keys keys = locate(args.v, unit, range.start + at);
        value_pairs(keys.page, args.v, keys.row, keys.tokens, (uint16_t*)ws.tile, width);
        const PairProduct product = {ws.pairs + at, kPartition, (const uint16_t*)ws.tile, (size_t)width,
                                     ws.part, (size_t)width + 2, kTileTokens / 2, at != range.begin};
        multiply_pairs(product, queries, width);
    }
}
#else
static void score_pairs(const AttentionArgs&, const AttentionUnit&, const Range&, const Workspace&) {}
static void weigh_pairs(const AttentionArgs&, const AttentionUnit&, const Range&, const Workspace&) {}
#endif

static void score_partition(const AttentionArgs& args, const AttentionUnit& unit, const Range& range,
                            const Workspace& ws) {
    if (narrow_keys(args)) return score_pairs(args, unit, range, ws);
    const int queries = unit.rows * group_of(args);
    for (int at = range.begin; at < range.end; at += kTileTokens) {
        const Keys keys = locate(args.k, unit, range.start + at);
        key_tile(keys.page, args.k, keys.row, keys.tokens, ws.tile);
        const Product product = {ws.queries, (size_t)args.k.head_dim, ws.tile, kTileTokens,
                                 ws.scores + at, kPartition, args.k.head_dim, false};
        multiply(product, queries, kTileTokens);
    }
}

// A weight as the product with V sees it, so that the denominator sums the same numbers.
static inline vf as_weighed(vf weight, bool rounded) {
#if defined(__AVX512BF16__)
    if (rounded) return from_bf16(to_bf16(weight));
#endif
    (void)rounded;
    return weight;
}

// Scores to weights in place; returns maximum and sum of weights.
static void soften(const AttentionArgs& args, const Range& range, int position, float* scores, float* stats) {
    const int low = args.window > 0 ? imax(range.begin, position - args.window + 1 - range.start) : range.begin;
    const int high = imin(range.end, position - range.start + 1);
    if (args.softcap > 0.0f) softcap(scores + range.begin, range.end - range.begin, args.softcap);
    for (int i = range.begin; i < imin(low, range.end); i++) scores[i] = kNone;
    for (int i = imax(high, range.begin); i < range.end; i++) scores[i] = kNone;
    vf best = vset(kNone);
    for (int i = range.begin; i < range.end; i += W) best = vmax(best, vload(scores + i));
    stats[0] = vhighest(best);
    const vf top = vset(stats[0] == kNone ? 0.0f : stats[0]);
    const bool rounded = narrow_values(args);
    vf sum = vzero();
    for (int i = range.begin; i < range.end; i += W) {
        const vf weight = as_weighed(vexp(vsub(vload(scores + i), top)), rounded);
        vstore(scores + i, weight);
        sum = vadd(sum, weight);
    }
    stats[1] = vsum(sum);
}

static void weigh_values(const AttentionArgs& args, const AttentionUnit& unit, const Range& range,
                         const Workspace& ws) {
    if (narrow_values(args)) return weigh_pairs(args, unit, range, ws);
    const int width = value_width(args), queries = unit.rows * group_of(args);
    for (int at = range.begin; at < range.end; at += kTileTokens) {
        const Keys keys = locate(args.v, unit, range.start + at);
        value_tile(keys.page, args.v, keys.row, keys.tokens, ws.tile, width);
        const Product product = {ws.scores + at, kPartition, ws.tile, (size_t)width,
                                 ws.part, (size_t)width + 2, kTileTokens, at != range.begin};
        multiply(product, queries, width);
    }
}

static void attend_partition(const AttentionArgs& args, const AttentionUnit& unit, int part, const Workspace& ws) {
    const Range range = visible(args, unit, part);
    const int group = group_of(args), width = value_width(args);
    score_partition(args, unit, range, ws);
    float stats[2];
    for (int q = 0; q < unit.rows * group; q++) {
        soften(args, range, unit.position + q / group, ws.scores + (size_t)q * kPartition, stats);
        float* row = ws.part + (size_t)q * (width + 2) + width;
        row[0] = stats[0];
        row[1] = stats[1];
    }
    weigh_values(args, unit, range, ws);
}

// total <- total and part, both [value_width + 2].
static void merge(float* total, const float* part, int width) {
    const float a = total[width], b = part[width];
    if (b == kNone) return;
    if (a == kNone) {
        __builtin_memcpy(total, part, (size_t)(width + 2) * 4);
        return;
    }
    const float top = a > b ? a : b, keep = exp_one(a - top), take = exp_one(b - top);
    for (int d = 0; d < width; d += W)
        vstore(total + d, vfma(vload(part + d), vset(take), vmul(vload(total + d), vset(keep))));
    total[width] = top;
    total[width + 1] = total[width + 1] * keep + part[width + 1] * take;
}

static void write_out(const AttentionArgs& args, const AttentionUnit& unit, int query, const float* total) {
    const int group = group_of(args), width = value_width(args), dim = args.v.head_dim;
    const int head = unit.kv_head * group + query % group;
    float factor = 1.0f, denominator = total[width + 1];
    if (args.sinks) {
        const float sink = args.sinks[head], top = sink > total[width] ? sink : total[width];
        factor = exp_one(total[width] - top);
        denominator = denominator * factor + exp_one(sink - top);
    }
    const float inverse = factor / denominator;
    float* out = args.out + (size_t)(unit.row + query / group) * args.out_stride + (size_t)head * dim;
    for (int d = 0; d < dim; d++) out[d] = total[d] * inverse;
}

void clear_totals(float* total, int queries, int width) {
    for (int q = 0; q < queries; q++) total[(size_t)q * (width + 2) + width] = kNone;
}

// One partition, merged into `totals` [queries, value_width + 2].
void attend_part(const AttentionArgs& args, const AttentionUnit& unit, int part, float* totals, uint8_t* scratch) {
    size_t bytes;
    const Workspace ws = carve(args, unit.rows, scratch, &bytes);
    const int row = value_width(args) + 2;
    gather_queries(args, unit, ws.queries);
    attend_partition(args, unit, part, ws);
    for (int q = 0; q < unit.rows * group_of(args); q++) merge(totals + (size_t)q * row, ws.part + (size_t)q * row, row - 2);
}

void write_totals(const AttentionArgs& args, const AttentionUnit& unit, const float* totals) {
    const int row = value_width(args) + 2;
    for (int q = 0; q < unit.rows * group_of(args); q++) write_out(args, unit, q, totals + (size_t)q * row);
}

void attend(const AttentionArgs& args, const AttentionUnit& unit, uint8_t* scratch) {
    size_t bytes;
    Workspace ws = carve(args, unit.rows, scratch, &bytes);
    const int queries = unit.rows * group_of(args), row = value_width(args) + 2;
    gather_queries(args, unit, ws.queries);
    if (unit.partial) {
        ws.part = unit.partial;
        attend_partition(args, unit, unit.part_begin, ws);
        return;
    }
    clear_totals(ws.total, queries, row - 2);
    for (int part = unit.part_begin; part < unit.part_end; part++) {
        attend_partition(args, unit, part, ws);
        for (int q = 0; q < queries; q++) merge(ws.total + (size_t)q * row, ws.part + (size_t)q * row, row - 2);
    }
    for (int q = 0; q < queries; q++) write_out(args, unit, q, ws.total + (size_t)q * row);
}

// unit.partial: the partials of partitions [first, last), one after the other; the first one becomes the total.
void merge_partials(const AttentionArgs& args, const AttentionUnit& unit, int first, int last) {
    const int queries = unit.rows * group_of(args), row = value_width(args) + 2;
    const size_t step = partial_floats(args, unit.rows);
    for (int q = 0; q < queries; q++) {
        float* total = unit.partial + (size_t)q * row;
        for (int part = first + 1; part < last; part++)
            merge(total, unit.partial + (part - first) * step + (size_t)q * row, row - 2);
        write_out(args, unit, q, total);
    }
}
PK_END
