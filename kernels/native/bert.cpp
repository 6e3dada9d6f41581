// The encoder's pass over groups of texts.
#include "bert_attention.h"
#include "bert_linear.h"

PK_BEGIN
// x * Phi(x), Phi - 1/2 as an odd polynomial up to 4.25, from where on it is 1/2: error below 1e-4 (minimax fit).
static inline vf vgelu(vf x) {
    const vf at = vmin(vmax(x, vset(-4.25f)), vset(4.25f)), z = vmul(at, at);
    vf p = vset(-8.461209408e-10f);
    p = vfma(p, z, vset(7.571414161e-08f));
    p = vfma(p, z, vset(-2.938975783e-06f));
    p = vfma(p, z, vset(6.552981485e-05f));
    p = vfma(p, z, vset(-9.404714992e-04f));
    p = vfma(p, z, vset(9.257937157e-03f));
    p = vfma(p, z, vset(-6.545375762e-02f));
    p = vfma(p, z, vset(3.984202312e-01f));
    return vmul(x, vfma(p, at, vset(0.5f)));
}

static void layer_norm(float* x, int n, LayerNorm norm, float eps) {
    vf sum = vzero(), squares = vzero();
    for (int i = 0; i < n; i += W) sum = vadd(sum, vload(x + i));
    const vf mean = vset(sum_of(sum) / (float)n);
    for (int i = 0; i < n; i += W) {
        const vf d = vsub(vload(x + i), mean);
        squares = vfma(d, d, squares);
    }
    const vf inverse = vset(1.0f / __builtin_sqrtf(sum_of(squares) / (float)n + eps));
    for (int i = 0; i < n; i += W)
        vstore(x + i, vfma(vmul(vsub(vload(x + i), mean), inverse), vload(norm.weight + i), vload(norm.bias + i)));
}

static void add_row(float* x, const float* y, int n) {
    for (int i = 0; i < n; i += W) vstore(x + i, vadd(vload(x + i), vload(y + i)));
}

struct Room {
    float* x;     // [rows, hidden]
    float* qkv;   // [rows, 3 * hidden]
    float* part;  // [rows, hidden]
    float* attention;
    ByteRows bytes;  // [rows, hidden]
    ByteRows wide;   // [rows, ffn]
};

static float* taken(uint8_t*& at, size_t floats) {
    float* p = (float*)at;
    at += align64(floats * sizeof(float));
    return p;
}

static ByteRows taken_bytes(uint8_t*& at, int rows, int cols, int block) {
    ByteRows r;
    r.scales = taken(at, (size_t)rows * (cols / block));
    r.lows = taken(at, (size_t)rows * (cols / block));
    r.data = at;
    at += align64((size_t)rows * cols);
    return r;
}

static Room laid_out(const BertModel& m, int rows, uint8_t*& at) {
    rows += kQueries;
    Room r;
    r.x = taken(at, (size_t)rows * m.hidden);
    r.qkv = taken(at, (size_t)rows * 3 * m.hidden);
    r.part = taken(at, (size_t)rows * m.hidden);
    r.attention = taken(at, bert_attention_floats(rows, m.hidden / m.heads));
    r.bytes = taken_bytes(at, rows, m.hidden, kBertFine);
    r.wide = taken_bytes(at, rows, m.ffn, kBertBlock);
    return r;
}

size_t bert_scratch(const BertModel& m, int rows) {
    uint8_t *const start = (uint8_t*)64, *end = start;
    laid_out(m, rows, end);
    return (size_t)(end - start);
}

static void rows_to_bytes(const float* x, int rows, int cols, int block, ByteRows out) {
    for (int r = 0; r < rows; r++) {
        const ByteRows row = rows_from(out, r, cols, block);
        to_bytes(x + (size_t)r * cols, cols, block, row.data, row.scales, row.lows);
    }
}

static void residual_norm(const BertModel& m, const Room& room, int rows, LayerNorm norm) {
    for (int r = 0; r < rows; r++) {
        add_row(room.x + (size_t)r * m.hidden, room.part + (size_t)r * m.hidden, m.hidden);
        layer_norm(room.x + (size_t)r * m.hidden, m.hidden, norm, m.eps);
    }
}

static void layer(const BertModel& m, const BertLayer& l, const int32_t* starts, int texts, const Room& room) {
    const int first = starts[0], rows = starts[texts] - first;
    rows_to_bytes(room.x, rows, m.hidden, l.qkv.block, room.bytes);
    product(l.qkv, room.bytes, rows, room.qkv);
    for (int i = 0; i < texts; i++) {
        const int at = starts[i] - first;
        attend_text(room.qkv + (size_t)at * 3 * m.hidden, starts[i + 1] - starts[i], m.hidden, m.heads,
                    room.part + (size_t)at * m.hidden, room.attention);
    }
    rows_to_bytes(room.part, rows, m.hidden, l.out.block, room.bytes);
    product(l.out, room.bytes, rows, room.part);
    residual_norm(m, room, rows, l.after_attention);
    rows_to_bytes(room.x, rows, m.hidden, l.up.block, room.bytes);
    product_bytes(l.up, room.bytes, rows, vgelu, room.wide);
    product(l.down, room.wide, rows, room.part);
    residual_norm(m, room, rows, l.after_ffn);
}

static void embed_text(const BertModel& m, const int32_t* tokens, int n, float* x) {
    for (int i = 0; i < n; i++, x += m.hidden) {
        __builtin_memcpy(x, m.words + (size_t)tokens[i] * m.hidden, m.hidden * sizeof(float));
        add_row(x, m.positions + (size_t)i * m.hidden, m.hidden);
        add_row(x, m.type, m.hidden);
        layer_norm(x, m.hidden, m.embedding, m.eps);
    }
}

static void pool(const BertModel& m, const float* x, int n, float* out) {
    const int rows = m.first_token ? 1 : n;
    for (int i = 0; i < m.hidden; i += W) vstore(out + i, vzero());
    for (int r = 0; r < rows; r++) add_row(out, x + (size_t)r * m.hidden, m.hidden);
    vf squares = vzero();
    for (int i = 0; i < m.hidden; i += W) squares = vfma(vload(out + i), vload(out + i), squares);
    const float length = __builtin_sqrtf(sum_of(squares));
    const vf inverse = vset(length > 1e-12f ? 1.0f / length : 0.0f);
    for (int i = 0; i < m.hidden; i += W) vstore(out + i, vmul(vload(out + i), inverse));
}

void bert_encode(const BertModel& m, const BertBatch& batch, int texts_from, int texts_to, uint8_t* scratch) {
    const int32_t* starts = batch.starts + texts_from;
    const int texts = texts_to - texts_from, first = starts[0];
    const Room room = laid_out(m, starts[texts] - first, scratch);
    for (int i = 0; i < texts; i++)
        embed_text(m, batch.tokens + starts[i], starts[i + 1] - starts[i], room.x + (size_t)(starts[i] - first) * m.hidden);
    for (int l = 0; l < m.layers; l++) layer(m, m.blocks[l], starts, texts, room);
    for (int i = 0; i < texts; i++)
        pool(m, room.x + (size_t)(starts[i] - first) * m.hidden, starts[i + 1] - starts[i],
             batch.vectors + (size_t)(texts_from + i) * m.hidden);
}
PK_END
