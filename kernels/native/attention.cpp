// Causal attention over paged K and V in partitions of 512 tokens counted from position 0.
// In one file because every form of product runs in the same walk over partitions and merges in the same order.
// Inside a partition the softmax is taken over all its scores at once; partitions merge in ascending order. Scores are
// exponents of 2. Masked keys weigh exactly 0, so a row's result does not depend on the rows it is computed with.
#include "attention_order.h"
#include "attention_softmax.h"
#include "carver.h"
#include "hadamard.h"
#if defined(__AVX2__)
#include "attention_halves.h"
#endif
#if defined(__AVX512VNNI__)
#include "attention_int8.h"
#endif

PK_BEGIN
// How K or V are multiplied: as floats, pairs of bfloat16, or bytes.
enum Form { kFloats, kPairs, kBytes };

#if defined(__AVX512VNNI__)
static inline bool byte_plane(const KvPlane& plane) { return plane.type == kKvQ8 || plane.type == kKvQ4; }
#else
static inline bool byte_plane(const KvPlane&) { return false; }
#endif
#if defined(__AVX512BF16__)
// Scores are exponents: keys of 11 bits (f16) lose too much as 8 and are multiplied as floats. Logits of a tiny F32 model
// with f16 pages: 1.5e-2 from the reference with narrow K and V, 6e-3 with narrow V, 1.3e-3 with neither.
static Form key_form(const KvPlane& k) {
    return byte_plane(k) ? kBytes : k.type != kKvF16 && narrow_plane(k) ? kPairs : kFloats;
}
static Form value_form(const KvPlane& v) { return byte_plane(v) ? kBytes : narrow_plane(v) ? kPairs : kFloats; }
#else
static Form key_form(const KvPlane& k) { return byte_plane(k) ? kBytes : kFloats; }
static Form value_form(const KvPlane& v) { return byte_plane(v) ? kBytes : kFloats; }
#endif
#if defined(__AVX2__)
// So few queries that a tile of keys or values would be read hardly more often than made.
static bool no_tiles(const AttentionArgs& args, size_t queries) { return queries <= kFewQueries && halves_planes(args.k, args.v); }
#else
static bool no_tiles(const AttentionArgs&, size_t) { return false; }
#endif

constexpr int kStep = 16;    // keys; a pass ends at a multiple of it behind the last one that counts
constexpr int kPass = 6;     // queries whose scores stay in L1 from the product with K to that with V
constexpr int kTiles = kPartition / kTileTokens;
constexpr size_t kKeptBytes = 640 << 10;

static inline int value_width(const AttentionArgs& args) { return (args.v.head_dim + W - 1) / W * W; }
static inline int group_of(const AttentionArgs& args) { return args.heads / (args.k.heads * args.split); }

static size_t key_tile_bytes(const AttentionArgs& args) {
    const size_t dim = (size_t)args.k.head_dim;
    switch (key_form(args.k)) {
        case kBytes: return align64(kTileTokens * (dim + dim / kBlock * 4));
        case kPairs: return kTileTokens * (dim + 1) / 2 * 4;
        default: return kTileTokens * dim * 4;
    }
}

static size_t value_tile_bytes(const AttentionArgs& args) {
    const Form form = value_form(args.v);
    return (size_t)kTileTokens * value_width(args) * (form == kBytes ? 1 : form == kPairs ? 2 : 4);
}

// Whether a partition's tiles stay in L2, made once for all passes; else a pass takes all queries, tile by tile.
static bool fits(const AttentionArgs& args) {
    return kTiles * (key_tile_bytes(args) + value_tile_bytes(args)) <= kKeptBytes;
}

int attention_rows(const AttentionArgs& args) {
    const int group = group_of(args);
    return fits(args) ? imax(1, imin(128, 192 / group)) : imax(1, imin(32, 48 / group));
}

size_t partial_floats(const AttentionArgs& args, int rows) {
    return (size_t)rows * group_of(args) * (value_width(args) + 2);
}

struct Workspace {
    bool direct;             // no tiles
    bool kept;
    int pass;
    float* queries;          // [queries, head_dim_k], scaled
    uint16_t* query_pairs;   // the same as bfloat16
    int8_t* query_bytes;     // the same as int8, with `query_meta`
    float* query_meta;
    float* scores;           // [pass, kPartition]
    uint16_t* weight_pairs;  // [pass, kPartition]
    uint8_t* planes;         // [pass][value block][2][kPartition]
    float* worth;            // [pass][value block]
    int32_t* sums;           // [pass][head_dim_v]
    float* value_scales;     // [value block][kPartition]
    uint8_t *keys, *values;  // tiles
    float* part;             // [pass, value_width + 2]: sums, then maximum and denominator
    float* total;            // the same for all queries
};

static inline size_t query_pairs(const AttentionArgs& args) { return ((size_t)args.k.head_dim + W) / W * W; }

static Workspace carve(const AttentionArgs& args, int rows, uint8_t* scratch, size_t* bytes) {
    const size_t queries = (size_t)rows * group_of(args), blocks = args.v.head_dim / kBlock;
    const bool byte_keys = key_form(args.k) == kBytes, byte_values = value_form(args.v) == kBytes;
    Carver carver(scratch);
    Workspace ws{};
    ws.direct = no_tiles(args, queries);
    ws.kept = !ws.direct && queries > kPass && fits(args);
    ws.pass = ws.kept ? kPass : (int)queries;
    const size_t pass = (size_t)ws.pass, tiles = ws.kept ? kTiles : 1;
    ws.queries = carver.floats(queries * args.k.head_dim);
    ws.query_pairs = (uint16_t*)carver.take(queries * query_pairs(args) * 2);
    ws.query_bytes = (int8_t*)carver.take(byte_keys ? queries * args.k.head_dim : 0);
    ws.query_meta = carver.floats(byte_keys ? queries * args.k.head_dim / kBlock * kBlockWords : 0);
    ws.scores = carver.floats(pass * kPartition);
    ws.weight_pairs = (uint16_t*)carver.take(pass * kPartition * 2);
    ws.planes = carver.take(byte_values ? pass * blocks * 2 * kPartition : 0);
    ws.worth = carver.floats(pass * blocks);
    ws.sums = (int32_t*)carver.floats(pass * args.v.head_dim);
    ws.value_scales = carver.floats(blocks * kPartition);
    ws.keys = carver.take(tiles * key_tile_bytes(args));
    ws.values = carver.take(tiles * value_tile_bytes(args));
    ws.part = carver.floats(pass * (value_width(args) + 2));
    ws.total = carver.floats(partial_floats(args, rows));
    *bytes = carver.used();
    return ws;
}

size_t attention_scratch(const AttentionArgs& args, int rows) {
    size_t most = 0, bytes;
    for (int fewer = rows; fewer > 0; fewer /= 2, most = bytes > most ? bytes : most) carve(args, fewer, nullptr, &bytes);
    return most;
}

static void prepare_queries(const AttentionArgs& args, const AttentionUnit& unit, const Workspace& ws) {
    const int group = group_of(args), dim = args.k.head_dim;
    const float factor = args.softcap > 0.0f ? args.scale : args.scale * kLog2E;
    for (int r = 0; r < unit.rows * group; r++) {
        const float* q = args.q + (size_t)(unit.row + r / group) * args.q_stride +
                         ((size_t)unit.kv_head * group + r % group) * dim;
        float* out = ws.queries + (size_t)r * dim;
        if (args.k.type == kKvQ4) {
            __builtin_memcpy(out, q, (size_t)dim * 4);
            rotate_head(out, dim);
            q = out;
        }
#if defined(__AVX512VNNI__)
        if (key_form(args.k) == kBytes) {
            byte_queries(ByteQueries{ws.query_bytes, ws.query_meta, dim}, r, q, factor);
            continue;
        }
#endif
        for (int i = 0; i < dim; i++) out[i] = q[i] * factor;
#if defined(__AVX512BF16__)
        if (key_form(args.k) == kPairs) narrow(out, dim, ws.query_pairs + r * query_pairs(args));
#endif
    }
}

static void make_key_tile(const AttentionArgs& args, const Rows& keys, uint8_t* tile) {
#if defined(__AVX512VNNI__)
    if (key_form(args.k) == kBytes) return byte_keys(args.k, keys, tile);
#endif
#if defined(__AVX512BF16__)
    if (key_form(args.k) == kPairs) return key_pairs(args.k, keys, (uint16_t*)tile);
#endif
    key_tile(args.k, keys, (float*)tile);
}

static void make_value_tile(const AttentionArgs& args, const Rows& values, uint8_t* tile) {
    const int width = value_width(args);
#if defined(__AVX512VNNI__)
    if (value_form(args.v) == kBytes) return byte_values(args.v, values, tile);
#endif
#if defined(__AVX512BF16__)
    if (value_form(args.v) == kPairs) return value_pairs(args.v, values, (uint16_t*)tile, width);
#endif
    value_tile(args.v, values, (float*)tile, width);
}

// What all passes over a partition share.
static void open_partition(const AttentionArgs& args, const AttentionUnit& unit, const Range& range, const Workspace& ws) {
    for (int at = range.begin; at < range.end; at += kTileTokens) {
        if (ws.kept) {
            const size_t tile = (size_t)at / kTileTokens;
            make_key_tile(args, tile_rows(args, unit, range, at, false, true), ws.keys + tile * key_tile_bytes(args));
            make_value_tile(args, tile_rows(args, unit, range, at, true, true), ws.values + tile * value_tile_bytes(args));
        }
#if defined(__AVX512VNNI__)
        if (value_form(args.v) != kBytes) continue;
        byte_value_scales(args.v, locate(args.v, args, unit, range.start + at), ws.value_scales + at);
#endif
    }
}

// Queries [first, first + count) of a unit through one partition.
struct Pass {
    int first, count;
    Range range;
};

// `ahead`: asked for meanwhile, or null.
static void score_tile(const AttentionArgs& args, const Pass& pass, int tokens, const uint8_t* tile, float* scores,
                       [[maybe_unused]] const uint8_t* ahead, const Workspace& ws) {
    const int dim = args.k.head_dim;
#if defined(__AVX512VNNI__)
    if (key_form(args.k) == kBytes)
        return byte_scores(ByteQueries{ws.query_bytes, ws.query_meta, dim}, pass.first, pass.count, tile, scores,
                           Asking{ahead, args.k.type == kKvQ4 ? 32 : 64});
#endif
#if defined(__AVX512BF16__)
    if (key_form(args.k) == kPairs) {
        const size_t stride = query_pairs(args);
        return multiply_pairs(PairProduct{ws.query_pairs + pass.first * stride, stride, (const uint16_t*)tile, kTileTokens,
                                          scores, kPartition, (dim + 1) / 2, false}, pass.count, tokens);
    }
#endif
    multiply(Product{ws.queries + (size_t)pass.first * dim, (size_t)dim, (const float*)tile, kTileTokens, scores,
                     kPartition, dim, false}, pass.count, tokens);
}

static void score_pass(const AttentionArgs& args, const AttentionUnit& unit, const Pass& pass, const Workspace& ws) {
    for (int at = pass.range.begin; at < pass.range.end; at += kTileTokens) {
        uint8_t* tile = ws.keys;
        const uint8_t* ahead = nullptr;
        if (ws.kept) tile += (size_t)at / kTileTokens * key_tile_bytes(args);
        else {
            Rows keys = tile_rows(args, unit, pass.range, at, false, false);
#if defined(__AVX2__)
            if (ws.direct) {
                half_scores(args.k, keys, ws.queries, pass.count, (uint16_t*)tile, ws.scores + at);
                continue;
            }
#endif
            if (key_form(args.k) == kBytes) ahead = std::exchange(keys.ahead, nullptr);
            make_key_tile(args, keys, tile);
        }
        score_tile(args, pass, imin(kTileTokens, pass.range.end - at), tile, ws.scores + at, ahead, ws);
    }
}

// Scores of a pass to weights in the form that the values want.
static void soften_pass(const AttentionArgs& args, const AttentionUnit& unit, const Pass& pass, float* rows,
                        const Workspace& ws) {
    const int width = value_width(args), group = group_of(args);
    const Range& range = pass.range;
    const Form form = value_form(args.v);
    for (int i = 0; i < pass.count; i++) {
        const int position = unit.position + (pass.first + i) / group - range.start;
        float* scores = ws.scores + (size_t)i * kPartition;
        const int low = args.window > 0 ? imax(range.begin, position - args.window + 1) : range.begin;
        const Seen seen = {range.begin, range.end, imin(low, range.end), imax(range.begin, imin(range.end, position + 1))};
        soften(scores, seen, args.softcap, form == kPairs, rows + (size_t)i * (width + 2) + width);
#if defined(__AVX512VNNI__)
        const int blocks = args.v.head_dim / kBlock;
        for (int b = 0; form == kBytes && b < blocks; b++)
            ws.worth[i * blocks + b] = byte_weights(scores, ws.value_scales + (size_t)b * kPartition, range.begin, range.end,
                                                    ws.planes + ((size_t)i * blocks + b) * 2 * kPartition);
#endif
#if defined(__AVX512BF16__)
        if (form == kPairs)
            narrow(scores + range.begin, range.end - range.begin, ws.weight_pairs + (size_t)i * kPartition + range.begin);
#endif
    }
}

// Weights [at, at + tokens) of all queries of a pass x values, added to what earlier tokens gave unless `fresh`.
static void weigh_tiles(const AttentionArgs& args, const Pass& pass, int at, int tokens, bool fresh, const uint8_t* tile,
                        float* rows, [[maybe_unused]] const uint8_t* ahead, const Workspace& ws) {
    const int width = value_width(args);
    const size_t row = (size_t)width + 2;
#if defined(__AVX512VNNI__)
    if (value_form(args.v) == kBytes) {
        if (fresh) __builtin_memset(ws.sums, 0, (size_t)pass.count * args.v.head_dim * 4);
        return byte_sums(ByteProduct{ws.planes + at, tile, ws.sums, args.v.head_dim, tokens}, pass.count,
                         Asking{ahead, args.v.type == kKvQ4 ? 32 : 64});
    }
#endif
#if defined(__AVX512BF16__)
    if (value_form(args.v) == kPairs)
        return multiply_pairs(PairProduct{ws.weight_pairs + at, kPartition, (const uint16_t*)tile, (size_t)width, rows, row,
                                          tokens / 2, !fresh}, pass.count, width);
#endif
    multiply(Product{ws.scores + at, kPartition, (const float*)tile, (size_t)width, rows, row, tokens, !fresh}, pass.count,
             width);
}

#if defined(__AVX2__)
static const Weight* weights_of(const Workspace& ws) {
#if defined(__AVX512BF16__)
    return ws.weight_pairs;
#else
    return ws.scores;
#endif
}
#endif

static void weigh_pass(const AttentionArgs& args, const AttentionUnit& unit, const Pass& pass, float* rows,
                       const Workspace& ws) {
    const Range& range = pass.range;
    const int step = ws.kept ? range.end - range.begin : kTileTokens;
    for (int at = range.begin; at < range.end; at += step) {
        uint8_t* tile = ws.values;
        const uint8_t* ahead = nullptr;
        if (ws.kept) tile += (size_t)at / kTileTokens * value_tile_bytes(args);
        else {
            Rows values = tile_rows(args, unit, range, at, true, false);
#if defined(__AVX2__)
            if (ws.direct) {
                const HalfSums to = {weights_of(ws) + at, rows, (size_t)value_width(args) + 2, at == range.begin};
                half_sums(args.v, values, to, pass.count);
                continue;
            }
#endif
            if (value_form(args.v) == kBytes) ahead = std::exchange(values.ahead, nullptr);
            make_value_tile(args, values, tile);
        }
        weigh_tiles(args, pass, at, imin(step, range.end - at), at == range.begin, tile, rows, ahead, ws);
    }
#if defined(__AVX512VNNI__)
    const size_t row = (size_t)value_width(args) + 2, dim = args.v.head_dim;
    for (int i = 0; i < pass.count && value_form(args.v) == kBytes; i++)
        byte_results(ws.sums + i * dim, ws.worth + i * (dim / kBlock), (int)dim, rows + i * row);
#endif
}

// One partition: its sums, maxima and denominators to `partial`, or merged into `totals`, both [queries, value_width + 2].
static void attend_partition(const AttentionArgs& args, const AttentionUnit& unit, int part, float* partial, float* totals,
                             const Workspace& ws) {
    const int group = group_of(args), queries = unit.rows * group, row = value_width(args) + 2;
    const bool tiles = ws.direct || key_form(args.k) == kBytes || value_form(args.v) == kBytes;
    const int step = tiles ? kTileTokens : kStep;
    open_partition(args, unit, visible(args, unit.position, unit.rows, part, kTileTokens), ws);
    for (int first = 0; first < queries; first += ws.pass) {
        const int count = imin(ws.pass, queries - first), top = first / group;
        float* rows = partial ? partial + (size_t)first * row : ws.part;
        const Pass pass = {first, count, visible(args, unit.position + top, (first + count - 1) / group - top + 1, part, step)};
        clear_totals(rows, count, row - 2);
        if (pass.range.begin < pass.range.end) {
            score_pass(args, unit, pass, ws);
            soften_pass(args, unit, pass, rows, ws);
            weigh_pass(args, unit, pass, rows, ws);
        }
        for (int i = 0; totals && i < count; i++) merge(totals + (size_t)(first + i) * row, rows + (size_t)i * row, row - 2);
    }
}

static void write_out(const AttentionArgs& args, const AttentionUnit& unit, int query, const float* total) {
    const int group = group_of(args), width = value_width(args), dim = args.v.head_dim;
    const int head = unit.kv_head * group + query % group;
    float factor = 1.0f, denominator = total[width + 1];
    if (args.sinks) {
        const float sink = args.sinks[head] * kLog2E, top = sink > total[width] ? sink : total[width];
        factor = exp2_one(total[width] - top);
        denominator = denominator * factor + exp2_one(sink - top);
    }
    const float inverse = factor / denominator;
    float* out = args.out + (size_t)(unit.row + query / group) * args.out_stride + (size_t)head * dim;
    for (int d = 0; d < dim; d++) out[d] = total[d] * inverse;
    if (args.v.type == kKvQ4) rotate_head(out, dim);
}

void clear_totals(float* total, int queries, int width) {
    for (int q = 0; q < queries; q++) total[(size_t)q * (width + 2) + width] = kNone;
}

// One partition, merged into `totals` [queries, value_width + 2].
void attend_part(const AttentionArgs& args, const AttentionUnit& unit, int part, float* totals, uint8_t* scratch) {
    size_t bytes;
    const Workspace ws = carve(args, unit.rows, scratch, &bytes);
    prepare_queries(args, unit, ws);
    attend_partition(args, unit, part, nullptr, totals, ws);
}

void write_totals(const AttentionArgs& args, const AttentionUnit& unit, const float* totals) {
    const int row = value_width(args) + 2;
    for (int q = 0; q < unit.rows * group_of(args); q++) write_out(args, unit, q, totals + (size_t)q * row);
}

void attend(const AttentionArgs& args, const AttentionUnit& unit, uint8_t* scratch) {
    size_t bytes;
    const Workspace ws = carve(args, unit.rows, scratch, &bytes);
    prepare_queries(args, unit, ws);
    if (unit.partial) return attend_partition(args, unit, unit.part_begin, unit.partial, nullptr, ws);
    clear_totals(ws.total, unit.rows * group_of(args), value_width(args));
    for (int part = unit.part_begin; part < unit.part_end; part++) attend_partition(args, unit, part, nullptr, ws.total, ws);
    write_totals(args, unit, ws.total);
}

// unit.partial: the partials of partitions [first, last), one after the other; the first one becomes the total.
void merge_partials(const AttentionArgs& args, const AttentionUnit& unit, int first, int last) {
    const int queries = unit.rows * group_of(args), row = value_width(args) + 2;
    for (int q = 0; q < queries; q++) {
        float* total = unit.partial + (size_t)q * row;
        for (int part = first + 1; part < last; part++)
            merge(total, unit.partial + (part - first) * unit.partial_step + (size_t)q * row, row - 2);
        write_out(args, unit, q, total);
    }
}
PK_END
