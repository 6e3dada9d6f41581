#include "level.h"

#define PK_STR2(x) #x
#define PK_STR(x) PK_STR2(x)
#define PK_CAT2(a, b) a##b
#define PK_CAT(a, b) PK_CAT2(a, b)

namespace pk {
const KernelTable* PK_CAT(table_, PK_LEVEL)() {
    using namespace PK_LEVEL;
    static const KernelTable table = {
        PK_STR(PK_LEVEL), kTokenRun, checksum, supports, rounding, halved, linear_scratch, attention_scratch, attention_rows, partial_floats,
        embed_row, rms_norm, rope, store_kv, gated, add_scaled, sigmoid_gate, route,
        softcap, round_activations, linear_strips, attend, merge_partials,
        mla_scratch, mla_absorb, mla_values, mla_prompt, bert_scratch, bert_encode};
    return &table;
}
}  // namespace pk
