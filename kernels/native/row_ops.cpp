// Operations on one row: norms, rotation, gated activation, soft cap.
#include "simd.h"

PK_BEGIN
void rms_norm(const float* src, const float* weight, int n, float eps, float* out) {
    vf sums = vzero();
    int i = 0;
    for (; i + W <= n; i += W) {
        const vf x = vload(src + i);
        sums = vfma(x, x, sums);
    }
    if (i < n) {
        const vf x = vload_n(src + i, n - i);
        sums = vfma(x, x, sums);
    }
    const double mean = (double)vsum(sums) / n + eps;
    const vf scale = vset((float)(1.0 / __builtin_sqrt(mean)));
    for (i = 0; i + W <= n; i += W) vstore(out + i, vmul(vmul(vload(src + i), scale), vload(weight + i)));
    if (i < n) vstore_n(out + i, vmul(vmul(vload_n(src + i, n - i), scale), vload_n(weight + i, n - i)), n - i);
}

static void rotate_pairs(float* x, int half, const float* c, const float* s) {
    for (int i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * c[i] - b * s[i];
        x[2 * i + 1] = a * s[i] + b * c[i];
    }
}

static void rotate_halves(float* x, int half, const float* c, const float* s) {
    for (int i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half];
        x[i] = a * c[i] - b * s[i];
        x[i + half] = a * s[i] + b * c[i];
    }
}

void rope(float* buf, int heads, int head_dim, int dims, int kind, const float* cosines, const float* sines) {
    for (int h = 0; h < heads; h++) {
        float* x = buf + (size_t)h * head_dim;
        if (kind == kRopeNorm) rotate_pairs(x, dims / 2, cosines, sines);
        else rotate_halves(x, dims / 2, cosines, sines);
    }
}

static inline vf silu(vf x) { return vmul(x, vinverse(vadd(vset(1.0f), vexp(vsub(vzero(), x))))); }

// In steps of 16-bit floats, as ggml looks it up: over many layers its rounding is what logits can be compared by.
// Beyond 10 on either side the value is x or 0.
static inline vf gelu_tanh(vf value) {
    const vf x = vround_half(vmax(vset(-10.0f), vmin(vset(10.0f), value)));
    const vf cube = vmul(vmul(x, x), x);
    const vf inner = vmul(vset(0.7978845608028654f), vfma(vset(0.044715f), cube, x));
    const vf rounded = vround_half(vmul(vmul(vset(0.5f), x), vadd(vset(1.0f), vtanh(inner))));
    return vadd(rounded, vmax(vzero(), vsub(value, vset(10.0f))));
}

// gpt-oss: the gate is bounded above, the other half on both sides.
static inline vf swiglu_clamped(vf gate, vf up) {
    const vf g = vmin(vset(7.0f), gate), u = vmax(vset(-7.0f), vmin(vset(7.0f), up));
    const vf sigmoid = vdiv(vset(1.0f), vadd(vset(1.0f), vexp(vmul(g, vset(-1.702f)))));
    return vmul(vmul(g, sigmoid), vadd(u, vset(1.0f)));
}

static inline vf gate_one(vf gate, vf up, int activation) {
    if (activation == kSwigluClamped) return swiglu_clamped(gate, up);
    return vmul(activation == kSilu ? silu(gate) : gelu_tanh(gate), up);
}

void gated(const float* gate, const float* up, float* out, int n, int activation) {
    int i = 0;
    for (; i + W <= n; i += W) vstore(out + i, gate_one(vload(gate + i), vload(up + i), activation));
    if (i < n) vstore_n(out + i, gate_one(vload_n(gate + i, n - i), vload_n(up + i, n - i), activation), n - i);
}

void add_scaled(float* out, const float* src, float scale, int n) {
    for (int i = 0; i < n; i++) out[i] = out[i] + scale * src[i];
}

void sigmoid_gate(float* buf, int width, const float* src, const float* weight, int n) {
    vf sums = vzero();
    int i = 0;
    for (; i + W <= n; i += W) sums = vfma(vload(src + i), vload(weight + i), sums);
    if (i < n) sums = vfma(vload_n(src + i, n - i), vload_n(weight + i, n - i), sums);
    const float gate = 1.0f / (1.0f + exp_one(-vsum(sums)));
    for (i = 0; i < width; i++) buf[i] *= gate;
}

void softcap(float* values, int n, float cap) {
    const vf c = vset(cap), inverse = vset(1.0f / cap);
    int i = 0;
    for (; i + W <= n; i += W) vstore(values + i, vmul(c, vtanh(vmul(vload(values + i), inverse))));
    if (i < n) vstore_n(values + i, vmul(c, vtanh(vmul(vload_n(values + i, n - i), inverse))), n - i);
}
PK_END
