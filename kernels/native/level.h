// Everything compiled per instruction set level lives in pk::<level>, so that no symbol is shared between levels.
#pragma once
#include "kernel_table.h"

#define PK_BEGIN namespace pk { namespace PK_LEVEL {
#define PK_END } }

PK_BEGIN
static constexpr int imin(int a, int b) { return a < b ? a : b; }
static constexpr int imax(int a, int b) { return a > b ? a : b; }
// Bytes of a row or token side by side in a tile or QuantGroup: what one instruction adds up.
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr int kTokenRun = 8;
#else
constexpr int kTokenRun = 4;
#endif
static inline size_t align64(size_t n) { return (n + 63) / 64 * 64; }

static inline float bits_to_float(uint32_t bits) {
    float f;
    __builtin_memcpy(&f, &bits, 4);
    return f;
}
static inline uint32_t float_to_bits(float f) {
    uint32_t bits;
    __builtin_memcpy(&bits, &f, 4);
    return bits;
}
static inline uint16_t load_u16(const uint8_t* p) {
    uint16_t v;
    __builtin_memcpy(&v, p, 2);
    return v;
}

static inline float half_to_float(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) return bits_to_float(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x0400u) return bits_to_float(sign | ((magnitude << 13) + 0x38000000u));
    const float subnormal = (float)magnitude * 5.9604644775390625e-8f;  // 2^-24
    return bits_to_float(sign | float_to_bits(subnormal));
}

// Round to nearest, ties to even.
static inline uint16_t float_to_half(float f) {
    const uint32_t bits = float_to_bits(f);
    const uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
    if (magnitude < 0x38800000u) {
        const float shifted = bits_to_float(magnitude) + 0.5f;  // the adder rounds to multiples of 2^-24
        return (uint16_t)(sign | (float_to_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
static inline float bf16_to_float(uint16_t b) { return bits_to_float((uint32_t)b << 16); }
static inline uint16_t float_to_bf16(float f) {
    const uint32_t bits = float_to_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
PK_END

// Defined once per level.
PK_BEGIN
void checksum(const uint8_t* data, size_t length, uint8_t* out);
bool supports(int ggml_type);
Rounding rounding(int ggml_type);
bool halved(int ggml_type);
size_t linear_scratch(int cols, int rows);
size_t attention_scratch(const AttentionArgs&, int rows);
int attention_rows(const AttentionArgs&);
size_t partial_floats(const AttentionArgs&, int rows);
void embed_row(const TensorView&, int64_t row, float scale, float* out);
void rms_norm(const float* src, const float* weight, int n, float eps, float* out);
void rope(float* buf, int heads, int head_dim, int dims, int kind, const float* cosines, const float* sines);
void store_kv(const float* src, const KvPlane&, uint8_t* page, int slot);
void gated(const float* gate, const float* up, float* out, int n, int activation);
void add_scaled(float* out, const float* src, float scale, int n);
void sigmoid_gate(float* buf, int width, const float* src, const float* weight, int n);
void route(const RouteArgs&, const float* logits, float* out);
void softcap(float* values, int n, float cap);
void quantise(const float* src, size_t stride, int cols, QuantGroup);  // per block
void round_activations(Rounding, const float* src, size_t stride, int cols, QuantGroup);
void linear_strip(const LinearArgs&, int strip, uint8_t* scratch);
void linear_strips(const LinearArgs&, int first, int count, uint8_t* scratch);
void linear_float_strip(const LinearArgs&, int strip, uint8_t* scratch);
void linear_quant_strips(const LinearArgs&, int first, int count, uint8_t* scratch);
size_t quant_scratch(int cols);
void attend(const AttentionArgs&, const AttentionUnit&, uint8_t* scratch);
void merge_partials(const AttentionArgs&, const AttentionUnit&, int first_part, int last_part);
void clear_totals(float* total, int queries, int width);
void attend_part(const AttentionArgs&, const AttentionUnit&, int part, float* totals, uint8_t* scratch);
void write_totals(const AttentionArgs&, const AttentionUnit&, const float* totals);
AttentionArgs mla_head_attention(const MlaArgs&, int head);
size_t mla_page_bytes(const MlaArgs&);
size_t mla_scratch(const MlaArgs&, int rows, int heads);
void mla_absorb(const MlaArgs&, int head, const int* rows, int count, uint8_t* scratch);
void mla_values(const MlaArgs&, int head, const int* rows, int count, uint8_t* scratch);
void mla_prompt(const MlaArgs&, const MlaUnit&, uint8_t* scratch);
size_t bert_scratch(const BertModel&, int rows);
void bert_encode(const BertModel&, const BertBatch&, int texts_from, int texts_to, uint8_t* scratch);
PK_END
