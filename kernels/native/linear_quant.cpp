// Quantised weights x int8 activations. Per output element, in every path, blocks ascending: exact int32 inside a block of 32,
// then out = fma(float(block) * activation scale, d, out) and, with minima, out = fma(activation sum, m, out). With a scale
// per 16 channels: pair = fma(float(second half), d1, float(first half) * d0), then out = fma(pair, activation scale, out).
//
// Superblocks of 256, where the activations have one scale too: exact int32 inside, products times integer scales and
// activation sums times integer minima, then total = fma(float(minima), m, float(products) * d) and
// out = fma(total, activation scale, out). Neither sum overflows: 256 * 127 * 128 (a byte) * 128 (a scale) is 5.3e8, partial
// sums before a byte's zero point is taken off (bytes to 255) included; 256 * 127 * 63 (a minimum) is 2.0e6.
#include "dot_rows.h"
#if defined(PK_PAIRS)
#include "dot_pairs.h"
#else
#include "dot_table.h"
#endif

PK_BEGIN
constexpr int kTokensAtOnce = 64;

// So many strips that their tiles leave room in L2.
static int strips_at_once(int cols) { return imax(1, imin(kStripsAtOnce, 16384 / cols)); }

// One row at a time is rounded as W rows are: sum + bias, scaled, weighted, then added to what is there.
static void finish_token(const LinearArgs& args, int token, int strip, int rows, const float* sums) {
    float* out = args.out_at(token, strip);
    const int row = strip * kStripRows;
    const vf scale = vset(args.scale);
    for (int r = 0; r < rows; r += W) {
        const int n = imin(W, rows - r);
        vf value = vload(sums + r);
        if (args.bias) value = vadd(value, n == W ? vload(args.bias + row + r) : vload_n(args.bias + row + r, n));
        value = vmul(value, scale);
        if (args.out_rows) value = vmul(value, vset(args.out_weights[token]));
        if (args.accumulate || args.out_rows) value = vadd(n == W ? vload(out + r) : vload_n(out + r, n), value);
        if (n == W) vstore(out + r, value);
        else vstore_n(out + r, value, n);
    }
}

// The common case apart: neither bias nor scale, a whole strip.
static void finish_tokens(const LinearArgs& args, int token, int tokens, int strip, int rows, const Results sums) {
    if (rows < kStripRows || args.bias || args.scale != 1.0f) {
        for (int t = 0; t < tokens; t++) finish_token(args, token + t, strip, rows, sums[t]);
        return;
    }
    for (int t = 0; t < tokens; t++) {
        float* out = args.out_at(token + t, strip);
        const vf weight = vset(args.out_rows ? args.out_weights[token + t] : 1.0f);
        for (int r = 0; r < kStripRows; r += W) {
            const vf value = vload(sums[t] + r);
            if (args.out_rows) vstore(out + r, vadd(vload(out + r), vmul(value, weight)));
            else vstore(out + r, args.accumulate ? vadd(vload(out + r), value) : value);
        }
    }
}

// A strip at the end of the matrix is completed with zeros.
static const uint8_t* whole_strip(const TensorView& weight, int first, int rows, uint8_t* copy) {
    const uint8_t* data = weight.data + (size_t)first * weight.row_bytes;
    if (rows == kStripRows) return data;
    __builtin_memcpy(copy, data, (size_t)rows * weight.row_bytes);
    __builtin_memset(copy + (size_t)rows * weight.row_bytes, 0, (size_t)(kStripRows - rows) * weight.row_bytes);
    return copy;
}

static QuantGroup group_at(const LinearArgs& args, int token) {
    const size_t cols = args.weight.cols;
    return QuantGroup{const_cast<int8_t*>(args.quant) + token * cols,
                      const_cast<float*>(args.quant_meta) + token * meta_words(rounding(args.weight.type), cols),
                      args.quant_halves ? const_cast<float*>(args.quant_halves) + token * half_words(cols) : nullptr,
                      imin(kGroupTokens, args.rows - token)};
}

namespace {
struct StripRange {
    const LinearArgs& args;
    const TileFormat& format;
    uint8_t* tiles;   // one after the other
    uint8_t* copy;    // of a partial strip
    int begin, end;   // strips
    DotStrip few;     // for so many tokens; null: by way of tiles
    int cols() const { return args.weight.cols; }
    int rows_of(int strip) const { return imin(kStripRows, args.weight.rows - strip * kStripRows); }
    // What follows the last strip, nothing (a line that was just read) at the end of the matrix.
    const uint8_t* ahead(int strip, int distance) const {
        const size_t bytes = kStripRows * args.weight.row_bytes;
        if (strip + distance >= end && args.then) return args.then + (strip + distance - end) * bytes;
        const bool inside = (strip + distance) * kStripRows < args.weight.rows;
        return args.weight.data + (inside ? strip + distance : strip) * bytes;
    }
    // Strips from `strip` on, at most `count`, or as much of what is read next, asked for during so many products.
    NextLines next(int strip, int count, int products) const {
        const bool leaves = strip >= end && args.then;
        const int rows = leaves ? count * kStripRows : imax(0, imin(count * kStripRows, args.weight.rows - strip * kStripRows));
        const size_t bytes = rows * args.weight.row_bytes;
        const uint8_t* at = leaves ? args.then : args.weight.data + (bytes ? (size_t)strip * kStripRows * args.weight.row_bytes : 0);
        return NextLines{at, at + bytes, bytes / (size_t)imax(1, products * asks_of_product(cols() / kBlock)) + (bytes > 0)};
    }
    // Strips that memory needs to answer; three of most matrices, more where rows are short.
    int distance() const { return imax(3, imin((20 << 10) / (kStripRows * (int)args.weight.row_bytes), end - begin)); }
    Strip source(int strip) const {
        const uint8_t* data = whole_strip(args.weight, strip * kStripRows, rows_of(strip), copy);
        return Strip{data, args.weight.row_bytes, ahead(strip, 1), ahead(strip, distance())};
    }
    Tile tile(int i) const {
        const size_t n = cols();
        uint8_t* at = tiles + i * 24 * n;
        if (format.shape <= kHalved) return Tile{at, (float*)(at + 16 * n), (float*)(at + 20 * n), nullptr};
        uint8_t* scales = at + 22 * n;
        return Tile{at, (float*)scales, (float*)(scales + n / 4), (int32_t*)(at + 16 * n)};
    }
};
}  // namespace

// Straight from the file's bytes.
static void few_tokens_strip(const StripRange& range, int strip) {
    const QuantGroup group = group_at(range.args, 0);
    alignas(64) Results results;
    range.few(range.source(strip), range.cols() / kBlock, group, results);
    finish_tokens(range.args, 0, group.tokens, strip, range.rows_of(strip), results);
}

// Tiles `tiles` of the strips from `strip` on. The output rows lie apart: their lines are asked for before the product that
// goes there.
static void dot_tokens(const StripRange& range, const Tile* tiles, int strip, int count, int token, int last, NextLines& next) {
    for (; token < last; token += kGroupTokens) {
        const QuantGroup group = group_at(range.args, token);
        for (int i = 0; i < count; i++)
            for (int t = 0; t < group.tokens; t++) __builtin_prefetch(range.args.out_at(token + t, strip + i), 1);
        alignas(64) Results results[kTilesAtOnce];
        dot_tiles(range.format, tiles, count, range.cols() / kBlock, group, next, results);
        for (int i = 0; i < count; i++)
            finish_tokens(range.args, token, group.tokens, strip + i, range.rows_of(strip + i), results[i]);
    }
}

// Makes tile i; where the format can, the first tokens are multiplied meanwhile. Returns how many.
static int make_tile(const StripRange& range, int strip, int i) {
    const Tile tile = range.tile(i);
    if (!range.format.first) {
        unpack_strip(range.format, range.source(strip), range.cols() / kBlock, tile);
        return 0;
    }
    alignas(64) Results results;
    range.format.first(range.source(strip), range.cols() / kBlock, group_at(range.args, 0), tile, results);
    finish_tokens(range.args, 0, kGroupTokens, strip, range.rows_of(strip), results);
    return kGroupTokens;
}

// Tiles of some strips stay in L2, and so do the activations of some tokens that meet them all.
static void tiled_strips(const StripRange& range, int first, int count) {
    int done = 0;
    Tile tiles[kStripsAtOnce];
    for (int i = 0; i < count; i++) {
        done = make_tile(range, first + i, i);
        tiles[i] = range.tile(i);
    }
    NextLines next = range.next(first + count, count, count * ((range.args.rows - done + kGroupTokens - 1) / kGroupTokens));
    for (int token = done; token < range.args.rows; token += kTokensAtOnce)
        for (int i = 0; i < count; i += kTilesAtOnce)
            dot_tokens(range, tiles + i, first + i, imin(kTilesAtOnce, count - i), token, imin(token + kTokensAtOnce, range.args.rows), next);
}

static DotStrip few_tokens(const TileFormat& format, int tokens) {
    const DotStrip one = tokens == 1 ? dot_one(format.type) : nullptr;
    if (one) return one;
    return format.few && tokens <= kDirectTokens ? format.few[tokens - 1] : nullptr;
}

size_t quant_scratch(int cols) { return (size_t)cols * (24 * strips_at_once(cols) + 18) + 256; }

void linear_quant_strips(const LinearArgs& args, int first, int count, uint8_t* scratch) {
    const TileFormat& format = *tile_format(args.weight.type);
    const int most = strips_at_once(args.weight.cols);
    const StripRange range = {args, format, scratch, scratch + (size_t)most * 24 * args.weight.cols, first, first + count,
                              few_tokens(format, args.rows)};
    for (int last = first + count; first < last; first += range.few ? 1 : most) {
        if (range.few) few_tokens_strip(range, first);
        else tiled_strips(range, first, imin(most, last - first));
    }
}
PK_END
