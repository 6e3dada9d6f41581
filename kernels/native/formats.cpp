#include "formats.h"

#include "formats_table.h"

PK_BEGIN
static const BlockFormat formats[] = {
    {kQ4_0, 32, 18, false, false, expand_q4_0},      {kQ4_1, 32, 20, false, true, expand_q4_1},
    {kQ5_0, 32, 22, false, false, expand_q5_0},      {kQ5_1, 32, 24, false, true, expand_q5_1},
    {kQ8_0, 32, 34, false, false, expand_q8_0},      {kQ2_K, 256, 84, true, true, expand_q2_k},
    {kQ3_K, 256, 110, true, false, expand_q3_k},     {kQ4_K, 256, 144, false, true, expand_q4_k},
    {kQ5_K, 256, 176, false, true, expand_q5_k},     {kQ6_K, 256, 210, true, false, expand_q6_k},
    {kIQ2_XXS, 256, 66, false, false, expand_iq2_xxs}, {kIQ2_XS, 256, 74, true, false, expand_iq2_xs},
    {kIQ2_S, 256, 82, true, false, expand_iq2_s},    {kIQ3_XXS, 256, 98, false, false, expand_iq3_xxs},
    {kIQ3_S, 256, 110, false, false, expand_iq3_s},  {kIQ1_S, 256, 50, false, false, expand_iq1_s},
    {kIQ1_M, 256, 56, true, false, expand_iq1_m},    {kIQ4_NL, 32, 18, false, false, expand_iq4_nl},
    {kIQ4_XS, 256, 136, false, false, expand_iq4_xs}, {kTQ1_0, 256, 54, false, false, expand_tq1_0},
    {kTQ2_0, 256, 66, false, false, expand_tq2_0},   {kMXFP4, 32, 17, false, false, expand_mxfp4},
    {kNVFP4, 64, 36, true, false, expand_nvfp4},     {kQ1_0, 128, 18, false, false, expand_q1_0},
    {kQ2_0, 64, 18, false, false, expand_q2_0},
};

const BlockFormat* block_format(int ggml_type) {
    for (const BlockFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}
PK_END
