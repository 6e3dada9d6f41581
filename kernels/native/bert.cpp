// The encoder's pass over groups of texts.
#include "bert_attention.h"
#include "bert_linear.h"

PK_BEGIN
// x - x * (1 - Phi(x)): erf by formula 7.1.26 of Abramowitz and Stegun, error below 2e-7.
static inline vf vgelu(vf x) {
    const vf size = vmax(x, vsub(vzero(), x));
    const vf t = vdiv(vset(1.0f), vfma(size, vset(0.3275911f * 0.70710678f), vset(1.0f)));
    vf p = vset(1.061405429f);
    p = vfma(p, t, vset(-1.453152027f));
    p = vfma(p, t, vset(1.421413741f));
    p = vfma(p, t, vset(-0.284496736f));
    p = vmul(vfma(p, t, vset(0.254829592f)), t);
    const vf tail = vmul(p, vexp(vmul(vmul(x, x), vset(-0.5f))));
    return vsub(vmax(x, vzero()), vmul(vmul(size, tail), vset(0.5f)));
}

static void gelu_row(float* x, int n) {
    for (int i = 0; i < n; i += W) vstore(x + i, vgelu(vload(x + i)));
}

static void layer_norm(float* x, int n, LayerNorm norm, float eps) {
    vf sum = vzero(), squares = vzero();
    for (int i = 0; i < n; i += W) sum = vadd(sum, vload(x + i));
    const vf mean = vset(vsum(sum) / (float)n);
    for (int i = 0; i < n; i += W) {
        const vf d = vsub(vload(x + i), mean);
        squares = vfma(d, d, squares);
    }
    const vf inverse = vset(1.0f / __builtin_sqrtf(vsum(squares) / (float)n + eps));
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
    float* up;    // [rows, ffn]
    float* attention;
    ByteRows bytes;  // [rows, ffn]
};

static float* taken(uint8_t*& at, size_t floats) {
    float* p = (float*)at;
    at += align64(floats * sizeof(float));
    return p;
}

static Room laid_out(const BertModel& m, int rows, uint8_t* at) {
    rows += kQueries;
    Room r;
    r.x = taken(at, (size_t)rows * m.hidden);
    r.qkv = taken(at, (size_t)rows * 3 * m.hidden);
    r.part = taken(at, (size_t)rows * m.hidden);
    r.up = taken(at, (size_t)rows * m.ffn);
    r.attention = taken(at, bert_attention_floats(rows, m.hidden / m.heads));
    const size_t blocks = (size_t)rows * imax(m.ffn, 2 * m.hidden) / kBertBlock;
    r.bytes.scales = taken(at, blocks);
    r.bytes.lows = taken(at, blocks);
    r.bytes.data = at;
    return r;
}

size_t bert_scratch(const BertModel& m, int rows) {
    uint8_t* const start = (uint8_t*)64;
    const Room room = laid_out(m, rows, start);
    return (size_t)(room.bytes.data - start) + (size_t)(rows + kQueries) * imax(m.ffn, m.hidden);
}

static void linear_rows(const PackedLinear& w, const float* x, int rows, ByteRows bytes, float* out) {
    const int blocks = w.cols / w.block;
    for (int r = 0; r < rows; r++)
        to_bytes(x + (size_t)r * w.cols, w.cols, w.block, bytes.data + (size_t)r * w.cols,
                 bytes.scales + (size_t)r * blocks, bytes.lows + (size_t)r * blocks);
    product(w, bytes, rows, out);
}

static void residual_norm(const BertModel& m, const Room& room, int rows, LayerNorm norm) {
    for (int r = 0; r < rows; r++) {
        add_row(room.x + (size_t)r * m.hidden, room.part + (size_t)r * m.hidden, m.hidden);
        layer_norm(room.x + (size_t)r * m.hidden, m.hidden, norm, m.eps);
    }
}

static void layer(const BertModel& m, const BertLayer& l, const int32_t* starts, int texts, const Room& room) {
    const int first = starts[0], rows = starts[texts] - first;
    linear_rows(l.qkv, room.x, rows, room.bytes, room.qkv);
    for (int i = 0; i < texts; i++) {
        const int at = starts[i] - first;
        attend_text(room.qkv + (size_t)at * 3 * m.hidden, starts[i + 1] - starts[i], m.hidden, m.heads,
                    room.part + (size_t)at * m.hidden, room.attention);
    }
    linear_rows(l.out, room.part, rows, room.bytes, room.up);
    __builtin_memcpy(room.part, room.up, (size_t)rows * m.hidden * sizeof(float));
    residual_norm(m, room, rows, l.after_attention);
    linear_rows(l.up, room.x, rows, room.bytes, room.up);
    for (int r = 0; r < rows; r++) gelu_row(room.up + (size_t)r * m.ffn, m.ffn);
    linear_rows(l.down, room.up, rows, room.bytes, room.part);
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
    const float length = __builtin_sqrtf(vsum(squares));
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
