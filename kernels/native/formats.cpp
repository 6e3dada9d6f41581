#include "formats.h"

#include "formats_table.h"

PK_BEGIN
static const BlockFormat formats[] = {
    {kQ4_0, 32, 18, false, false, expand_q4_0, nullptr}, {kQ4_1, 32, 20, false, true, expand_q4_1, nullptr},
    {kQ5_0, 32, 22, false, false, expand_q5_0, nullptr}, {kQ5_1, 32, 24, false, true, expand_q5_1, nullptr},
    {kQ8_0, 32, 34, false, false, expand_q8_0, nullptr}, {kIQ4_NL, 32, 18, false, false, expand_iq4_nl, nullptr},
    {kMXFP4, 32, 17, false, false, expand_mxfp4, nullptr}, {kNVFP4, 64, 36, true, false, expand_nvfp4, nullptr},
    {kQ1_0, 128, 18, false, false, expand_q1_0, nullptr}, {kQ2_0, 64, 18, false, false, expand_q2_0, nullptr},
    {kQ2_K, kSuper, 84, true, true, nullptr, expand_q2_k}, {kQ3_K, kSuper, 110, true, false, nullptr, expand_q3_k},
    {kQ4_K, kSuper, 144, false, true, nullptr, expand_q4_k}, {kQ5_K, kSuper, 176, false, true, nullptr, expand_q5_k},
    {kQ6_K, kSuper, 210, true, false, nullptr, expand_q6_k}, {kIQ2_XXS, kSuper, 66, false, false, nullptr, expand_iq2_xxs},
    {kIQ2_XS, kSuper, 74, true, false, nullptr, expand_iq2_xs}, {kIQ2_S, kSuper, 82, true, false, nullptr, expand_iq2_s},
    {kIQ3_XXS, kSuper, 98, false, false, nullptr, expand_iq3_xxs}, {kIQ3_S, kSuper, 110, false, false, nullptr, expand_iq3_s},
    {kIQ1_S, kSuper, 50, false, false, nullptr, expand_iq1_s}, {kIQ1_M, kSuper, 56, true, false, nullptr, expand_iq1_m},
    {kIQ4_XS, kSuper, 136, false, false, nullptr, expand_iq4_xs}, {kTQ1_0, kSuper, 54, false, false, nullptr, expand_tq1_0},
    {kTQ2_0, kSuper, 66, false, false, nullptr, expand_tq2_0},
};

const BlockFormat* block_format(int ggml_type) {
    for (const BlockFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}
PK_END
