// Float weights x float32 activations. Per output element: W partial sums over ascending channels (the tail padded
// with zeros), then added pairwise.
#include "simd.h"

PK_BEGIN
constexpr int kRowBlock = 4;
constexpr int kTokenBlock = 4;

static void widen_row(const TensorView& weight, int row, float* out) {
    const uint8_t* src = weight.data + (size_t)row * weight.row_bytes;
    const int n = weight.cols;
    int i = 0;
    if (weight.type == kF32) {
        __builtin_memcpy(out, src, (size_t)n * 4);
        i = n;
    } else if (weight.type == kF16) {
        for (; i + W <= n; i += W) vstore(out + i, vload_half((const uint16_t*)(src + 2 * i)));
        for (; i < n; i++) out[i] = half_to_float(load_u16(src + 2 * i));
    } else {
        for (; i + W <= n; i += W) vstore(out + i, vload_bf16((const uint16_t*)(src + 2 * i)));
        for (; i < n; i++) out[i] = bf16_to_float(load_u16(src + 2 * i));
    }
}

template <int TOKENS>
static void dot_block(const float* const w[kRowBlock], const float* x, size_t stride, int n,
                      float out[kTokenBlock][kRowBlock]) {
    vf sums[TOKENS][kRowBlock];
    for (int t = 0; t < TOKENS; t++)
        for (int r = 0; r < kRowBlock; r++) sums[t][r] = vzero();
    for (int k = 0; k < n; k += W) {
        const int left = n - k;
        vf rows[kRowBlock];
        for (int r = 0; r < kRowBlock; r++) rows[r] = left >= W ? vload(w[r] + k) : vload_n(w[r] + k, left);
        for (int t = 0; t < TOKENS; t++) {
            const vf a = left >= W ? vload(x + t * stride + k) : vload_n(x + t * stride + k, left);
            for (int r = 0; r < kRowBlock; r++) sums[t][r] = vfma(rows[r], a, sums[t][r]);
        }
    }
    for (int t = 0; t < TOKENS; t++)
        for (int r = 0; r < kRowBlock; r++) out[t][r] = vsum(sums[t][r]);
}

static void dot_tokens(const float* const w[kRowBlock], const float* x, size_t stride, int n, int tokens,
                       float out[kTokenBlock][kRowBlock]) {
    if (tokens == 4) dot_block<4>(w, x, stride, n, out);
    else if (tokens == 3) dot_block<3>(w, x, stride, n, out);
    else if (tokens == 2) dot_block<2>(w, x, stride, n, out);
    else dot_block<1>(w, x, stride, n, out);
}

static void finish(const LinearArgs& args, int token, int row, float sum) {
    float* out = args.out_at(token, row / kStripRows) + row % kStripRows;
    const float value = (args.bias ? sum + args.bias[row] : sum) * args.scale;
    if (args.out_rows) *out = *out + args.out_weights[token] * value;
    else *out = args.accumulate ? *out + value : value;
}

void linear_float_strip(const LinearArgs& args, int strip, uint8_t* scratch) {
    const int cols = args.weight.cols;
    const int last = imin((strip + 1) * kStripRows, args.weight.rows);
    for (int row = strip * kStripRows; row < last; row += kRowBlock) {
        const int rows = imin(kRowBlock, last - row);
        const float* w[kRowBlock];
        for (int r = 0; r < kRowBlock; r++) {
            const int source = row + imin(r, rows - 1);
            float* wide = (float*)scratch + (size_t)r * cols;
            const bool in_place = args.weight.type == kF32;
            if (!in_place && r < rows) widen_row(args.weight, source, wide);
            if (in_place) w[r] = (const float*)(args.weight.data + (size_t)source * args.weight.row_bytes);
            else w[r] = r < rows ? wide : (float*)scratch;
        }
        for (int token = 0; token < args.rows; token += kTokenBlock) {
            const int tokens = imin(kTokenBlock, args.rows - token);
            float out[kTokenBlock][kRowBlock];
            dot_tokens(w, args.src + (size_t)token * args.src_stride, args.src_stride, cols, tokens, out);
            for (int t = 0; t < tokens; t++)
                for (int r = 0; r < rows; r++) finish(args, token + t, row + r, out[t][r]);
        }
    }
}
PK_END
