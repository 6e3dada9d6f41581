// The functions that every instruction set level provides.
#pragma once
#include "types.h"

namespace pk {

struct BertModel;
struct BertBatch;

struct KernelTable {
    const char* name;
    int run;  // bytes of a token side by side in a QuantGroup: 4 or 8
    void (*checksum)(const uint8_t* data, size_t length, uint8_t* out);  // XXH3-128 of more than 240 bytes
    bool (*supports)(int ggml_type);
    Rounding (*rounding)(int ggml_type);  // of the activations beside it
    bool (*halved)(int ggml_type);  // wants the halves of a QuantGroup
    size_t (*linear_scratch)(int cols, int rows);
    size_t (*attention_scratch)(const AttentionArgs&, int rows);
    int (*attention_rows)(const AttentionArgs&);
    size_t (*partial_floats)(const AttentionArgs&, int rows);
    void (*embed_row)(const TensorView&, int64_t row, float scale, float* out);
    void (*rms_norm)(const float* src, const float* weight, int n, float eps, float* out);
    void (*rope)(float* buf, int heads, int head_dim, int dims, int kind, const float* cosines, const float* sines);
    void (*store_kv)(const float* src, const KvPlane&, uint8_t* page, int slot);
    void (*gated)(const float* gate, const float* up, float* out, int n, int activation);
    void (*add_scaled)(float* out, const float* src, float scale, int n);
    void (*sigmoid_gate)(float* buf, int width, const float* src, const float* weight, int n);
    void (*route)(const RouteArgs&, const float* logits, float* out);
    void (*softcap)(float* values, int n, float cap);
    void (*round_activations)(Rounding, const float* src, size_t stride, int cols, QuantGroup);
    void (*linear_strips)(const LinearArgs&, int first, int count, uint8_t* scratch);
    void (*attend)(const AttentionArgs&, const AttentionUnit&, uint8_t* scratch);
    void (*merge_partials)(const AttentionArgs&, const AttentionUnit&, int first_part, int last_part);
    size_t (*mla_scratch)(const MlaArgs&, int rows, int heads);
    void (*mla_absorb)(const MlaArgs&, int head, const int* rows, int count, uint8_t* scratch);
    void (*mla_values)(const MlaArgs&, int head, const int* rows, int count, uint8_t* scratch);
    void (*mla_prompt)(const MlaArgs&, const MlaUnit&, uint8_t* scratch);
    size_t (*bert_scratch)(const BertModel&, int rows);
    void (*bert_encode)(const BertModel&, const BertBatch&, int texts_from, int texts_to, uint8_t* scratch);
};

const KernelTable* table_portable();
#if defined(PK_X86)
const KernelTable* table_avx2();
const KernelTable* table_avxvnni();
const KernelTable* table_avx512();
const KernelTable* table_avx512bf16();
#endif
#if defined(PK_ARM)
const KernelTable* table_i8mm();
const KernelTable* table_dotprod();
#endif

}  // namespace pk
