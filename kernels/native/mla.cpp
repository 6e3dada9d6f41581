// Latent attention. A page stores rows [c, k_pe]; keys and values of a head are K_h c and V_h c.
// Rows computed as prompt expand them per partition of 512 keys and attend as usual; generated rows take the query
// through K_h and the weighted sums of c through V_h. A row's form follows its role, never the batch.
#include "attention_tiles.h"
#include "carver.h"

PK_BEGIN
struct Rounded {             // int8 copies of rows for quantised weights, by the rounding that they want
    QuantGroup by[kPerSuper + 1];
};

static bool wants(const TensorView* weights, int heads, Rounding way) {
    for (int h = 0; h < heads; h++)
        if (rounding(weights[h].type) == way) return true;
    return false;
}

static Rounded take_rounded(const MlaArgs& args, Carver& carver, size_t rows, size_t cols) {
    Rounded out{};
    for (Rounding way : kRoundings) {
        if (!wants(args.k_b, args.heads, way) && !wants(args.v_b, args.heads, way)) continue;
        out.by[way].data = (int8_t*)carver.take(rows * cols);
        out.by[way].meta = carver.floats(rows * meta_words(way, cols));
        if (way == kPerBlock) out.by[way].halves = carver.floats(rows * half_words(cols));
    }
    return out;
}

static inline size_t whole_width(int n) { return (size_t)(n + W - 1) / W * W; }

static void round_rows(Rounding way, const float* x, size_t stride, int rows, int cols, const Rounded& rounded) {
    const QuantGroup& to = rounded.by[way];
    for (int t = 0; t < rows && way; t += kGroupTokens)
        round_activations(way, x + t * stride, stride, cols,
                          QuantGroup{to.data + (size_t)t * cols, to.meta + t * meta_words(way, cols),
                                     to.halves ? to.halves + t * half_words(cols) : nullptr, imin(kGroupTokens, rows - t)});
}

// out[rows, weights[head].rows] = x @ weights[head].T; `rounded` holds x as the weight wants it.
static void project(const TensorView* weights, int head, int heads, const float* x, size_t stride, const Rounded& rounded,
                    int rows, float* out, size_t out_stride, uint8_t* scratch) {
    const TensorView& weight = weights[head];
    const QuantGroup& quant = rounded.by[rounding(weight.type)];
    const uint8_t* then = head + 1 < heads ? weights[head + 1].data : nullptr;
    const LinearArgs args = {weight, x, stride, quant.data, quant.meta, quant.halves, out, out_stride,
                             nullptr, 1.0f, false, rows, then};
    linear_strips(args, 0, (weight.rows + kStripRows - 1) / kStripRows, scratch);
}

// out[rows, weight.cols] = x @ weight, in floats; wide [weight.rows, padded cols], spill [rows, padded cols].
static void project_back(const TensorView& weight, const float* x, size_t stride, int rows, float* out,
                         size_t out_stride, float* wide, float* spill) {
    const size_t width = whole_width(weight.cols);
    for (int r = 0; r < weight.rows; r++) {
        embed_row(weight, r, 1.0f, wide + r * width);
        for (size_t c = weight.cols; c < width; c++) wide[r * width + c] = 0.0f;
    }
    multiply(Product{x, stride, wide, width, spill, width, weight.rows, false}, rows, (int)width);
    for (int t = 0; t < rows; t++) __builtin_memcpy(out + t * out_stride, spill + t * width, (size_t)weight.cols * 4);
}

constexpr int kMlaRows = 64;  // generated rows that share one pass over a head's weights

struct AbsorbSpace {
    float* x;
    float* y;
    Rounded rounded;
    float *wide, *spill;
    uint8_t* rest;
};

static AbsorbSpace carve_absorb(const MlaArgs& args, uint8_t* scratch, size_t* bytes) {
    Carver carver(scratch);
    AbsorbSpace space;
    const size_t most = imax(args.kv_lora, args.nope);
    space.x = carver.floats(kMlaRows * most);
    space.y = carver.floats((size_t)kMlaRows * imax(args.kv_lora, args.value_dim));
    space.rounded = take_rounded(args, carver, kMlaRows, most);
    space.wide = carver.floats(args.nope * whole_width(args.kv_lora));
    space.spill = carver.floats(kMlaRows * whole_width(args.kv_lora));
    space.rest = carver.take(linear_scratch((int)most, kMlaRows));
    *bytes = carver.used();
    return space;
}

struct PromptSpace {
    float* latent;           // [kPartition, padded kv_lora + rope]
    Rounded rounded;
    uint8_t* page;           // keys [kPartition, nope + rope], then values [kPartition, value_dim]
    float *wide, *spill;
    float* totals;           // [heads of the unit][rows, padded value_dim + 2]
    uint8_t* rest;
};

static PromptSpace carve_prompt(const MlaArgs& args, int rows, int heads, uint8_t* scratch, size_t* bytes) {
    Carver carver(scratch);
    PromptSpace space;
    const int row = args.kv_lora + args.rope;
    space.latent = carver.floats(kPartition * whole_width(row));
    space.rounded = take_rounded(args, carver, kPartition, args.kv_lora);
    space.page = carver.take(mla_page_bytes(args));
    space.wide = carver.floats(args.kv_lora * whole_width(args.nope));
    space.spill = carver.floats(kPartition * whole_width(args.nope));
    space.totals = carver.floats((size_t)heads * rows * (whole_width(args.value_dim) + 2));
    const AttentionArgs one = mla_head_attention(args, 0);
    space.rest = carver.take((size_t)imax((int)linear_scratch(args.kv_lora, kPartition),
                                          (int)attention_scratch(one, attention_rows(one))));
    *bytes = carver.used();
    return space;
}

size_t mla_page_bytes(const MlaArgs& args) {
    return align64((size_t)kPartition * (args.nope + args.rope) * 4) + align64((size_t)kPartition * args.value_dim * 4);
}

// Attention of one head over an expanded partition, as if it were a page of 512 float32 rows.
AttentionArgs mla_head_attention(const MlaArgs& args, int head) {
    const int dim = args.nope + args.rope;
    const size_t values = align64((size_t)kPartition * dim * 4);
    AttentionArgs one{};
    one.k = KvPlane{0, 0, kKvF32, 1, dim, kPartition, dim};
    one.v = KvPlane{values, 0, kKvF32, 1, args.value_dim, kPartition, args.value_dim};
    one.q = args.q + (size_t)head * dim;
    one.q_stride = args.q_stride;
    one.out = args.out + (size_t)head * args.value_dim;
    one.out_stride = args.out_stride;
    one.heads = 1;
    one.scale = args.scale;
    return one;
}

size_t mla_scratch(const MlaArgs& args, int rows, int heads) {
    size_t absorb, prompt;
    carve_absorb(args, nullptr, &absorb);
    carve_prompt(args, rows, heads, nullptr, &prompt);
    return absorb > prompt ? absorb : prompt;
}

void mla_absorb(const MlaArgs& args, int head, const int* rows, int count, uint8_t* scratch) {
    size_t bytes;
    const AbsorbSpace space = carve_absorb(args, scratch, &bytes);
    const TensorView& weight = args.k_b[head];
    const int dim = args.nope + args.rope;
    for (int first = 0; first < count; first += kMlaRows) {
        const int n = imin(kMlaRows, count - first);
        for (int t = 0; t < n; t++) {
            const float* q = args.q + rows[first + t] * args.q_stride + (size_t)head * dim;
            __builtin_memcpy(space.x + (size_t)t * args.nope, q, (size_t)args.nope * 4);
        }
        if (args.k_transposed) {
            round_rows(rounding(weight.type), space.x, args.nope, n, args.nope, space.rounded);
            project(args.k_b, head, args.heads, space.x, args.nope, space.rounded, n, space.y, args.kv_lora, space.rest);
        } else project_back(weight, space.x, args.nope, n, space.y, args.kv_lora, space.wide, space.spill);
        for (int t = 0; t < n; t++) {
            const float* q = args.q + rows[first + t] * args.q_stride + (size_t)head * dim;
            float* out = args.absorbed + rows[first + t] * args.absorbed_stride + (size_t)head * (args.kv_lora + args.rope);
            __builtin_memcpy(out, space.y + (size_t)t * args.kv_lora, (size_t)args.kv_lora * 4);
            __builtin_memcpy(out + args.kv_lora, q + args.nope, (size_t)args.rope * 4);
        }
    }
}

void mla_values(const MlaArgs& args, int head, const int* rows, int count, uint8_t* scratch) {
    size_t bytes;
    const AbsorbSpace space = carve_absorb(args, scratch, &bytes);
    const TensorView& weight = args.v_b[head];
    for (int first = 0; first < count; first += kMlaRows) {
        const int n = imin(kMlaRows, count - first);
        for (int t = 0; t < n; t++)
            __builtin_memcpy(space.x + (size_t)t * args.kv_lora,
                             args.sums + rows[first + t] * args.sums_stride + (size_t)head * args.kv_lora,
                             (size_t)args.kv_lora * 4);
        round_rows(rounding(weight.type), space.x, args.kv_lora, n, args.kv_lora, space.rounded);
        project(args.v_b, head, args.heads, space.x, args.kv_lora, space.rounded, n, space.y, args.value_dim, space.rest);
        for (int t = 0; t < n; t++)
            __builtin_memcpy(args.out + rows[first + t] * args.out_stride + (size_t)head * args.value_dim,
                             space.y + (size_t)t * args.value_dim, (size_t)args.value_dim * 4);
    }
}

// Stored rows [start, start + keys) of the sequence to floats.
static void load_latent(const MlaArgs& args, const uint64_t* pages, int start, int keys, float* latent) {
    const int width = (int)whole_width(args.plane.head_dim);
    for (int at = 0; at < keys; at += kTileTokens) {
        const int position = start + at;
        const uint8_t* page = (const uint8_t*)(uintptr_t)pages[position / args.plane.page_tokens];
        const Rows rows = {page, (size_t)(position % args.plane.page_tokens), imin(kTileTokens, keys - at), nullptr};
        value_tile(args.plane, rows, latent + (size_t)at * width, width);
    }
}

static void expand_partition(const MlaArgs& args, int head, int keys, const PromptSpace& space) {
    const size_t width = whole_width(args.plane.head_dim);
    const int dim = args.nope + args.rope;
    float* k = (float*)space.page;
    float* v = (float*)(space.page + align64((size_t)kPartition * dim * 4));
    if (args.k_transposed)
        project_back(args.k_b[head], space.latent, width, keys, k, dim, space.wide, space.spill);
    else project(args.k_b, head, args.heads, space.latent, width, space.rounded, keys, k, dim, space.rest);
    for (int t = 0; t < keys; t++)
        __builtin_memcpy(k + (size_t)t * dim + args.nope, space.latent + t * width + args.kv_lora, (size_t)args.rope * 4);
    project(args.v_b, head, args.heads, space.latent, width, space.rounded, keys, v, args.value_dim, space.rest);
}

static void attend_expanded(const MlaArgs& args, const MlaUnit& unit, int head, int part, const PromptSpace& space) {
    const AttentionArgs one = mla_head_attention(args, unit.head + head);
    const size_t row_floats = whole_width(args.value_dim) + 2;
    uint64_t pages[1] = {(uint64_t)(uintptr_t)space.page};
    for (int row = 0; row < unit.rows; row += attention_rows(one)) {
        const int rows = imin(attention_rows(one), unit.rows - row), position = unit.position + row;
        if (position + rows <= part * kPartition) continue;
        // Every partition lies in the one page: its entry is number `part` of the list.
        const auto list = (const uint64_t*)((uintptr_t)pages - (uintptr_t)part * sizeof(uint64_t));
        const AttentionUnit block = {list, unit.row + row, rows, position, 0, part, part + 1, nullptr, 0};
        attend_part(one, block, part, space.totals + ((size_t)head * unit.rows + row) * row_floats, space.rest);
    }
}

void mla_prompt(const MlaArgs& args, const MlaUnit& unit, uint8_t* scratch) {
    size_t bytes;
    const PromptSpace space = carve_prompt(args, unit.rows, unit.heads, scratch, &bytes);
    const size_t row_floats = whole_width(args.value_dim) + 2;
    const int end = unit.position + unit.rows;
    clear_totals(space.totals, unit.heads * unit.rows, (int)row_floats - 2);
    for (int part = 0; part * kPartition < end; part++) {
        const int keys = imin(kPartition, end - part * kPartition);
        load_latent(args, unit.pages, part * kPartition, keys, space.latent);
        for (Rounding way : kRoundings)
            if (wants(args.v_b + unit.head, unit.heads, way) ||
                (!args.k_transposed && wants(args.k_b + unit.head, unit.heads, way)))
                round_rows(way, space.latent, whole_width(args.plane.head_dim), keys, args.kv_lora, space.rounded);
        for (int h = 0; h < unit.heads; h++) {
            expand_partition(args, unit.head + h, keys, space);
            attend_expanded(args, unit, h, part, space);
        }
    }
    for (int h = 0; h < unit.heads; h++) {
        const AttentionUnit rows = {nullptr, unit.row, unit.rows, unit.position, 0, 0, 0, nullptr, 0};
        write_totals(mla_head_attention(args, unit.head + h), rows, space.totals + (size_t)h * unit.rows * row_floats);
    }
}
PK_END
