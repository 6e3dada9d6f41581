// Block formats whose codes stand for entries of a table: 4-bit tables and the codebooks of i-quants.
#pragma once
#include "codebooks.h"
#include "formats.h"

PK_BEGIN
alignas(16) static const int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the values of E2M1, the 4-bit float of the microscaling formats.
alignas(16) static const int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline void look_up(const int8_t* table, uint8_t* codes, int count) {
    for (int i = 0; i < count; i++) codes[i] = (uint8_t)table[codes[i]];
}

static inline void expand_iq4_nl(const uint8_t* p, uint8_t* codes, float* d, float*) {
    *d = load_half(p);
    nibbles(p + 2, codes);
    look_up(kIq4Values, codes, 32);
}

static inline void expand_iq4_xs(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p);
    const int high = load_u16(p + 2);
    for (int i = 0; i < 8; i++) {
        const int low = p[4 + i / 2] >> (4 * (i % 2)) & 15;
        to.scales[i] = (low | (high >> (2 * i) & 3) << 4) - 32;
    }
    for (int i = 0; i < 8; i++) nibbles(p + 8 + 16 * i, codes + 32 * i);
    look_up(kIq4Values, codes, 256);
}

// Half of 2^(e - 127), because the table holds twice the values; the smallest are subnormal.
static inline float half_e8m0(uint8_t e) { return bits_to_float(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23); }
static inline void expand_mxfp4(const uint8_t* p, uint8_t* codes, float* d, float*) {
    *d = half_e8m0(p[0]);
    nibbles(p + 1, codes);
    look_up(kFp4Values, codes, 32);
}

// Half of unsigned E4M3 with bias 7; 0x7F, no number, counts as zero.
static inline float half_e4m3(uint8_t code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    if (code == 0x7f) return 0.0f;
    if (exponent == 0) return (float)mantissa * 9.765625e-4f;  // 2^-10
    return bits_to_float((uint32_t)(exponent + 119) << 23 | (uint32_t)mantissa << 20);
}
static inline void expand_nvfp4(const uint8_t* p, uint8_t* codes, float* d, float*) {
    for (int i = 0; i < 4; i++) {
        d[i] = half_e4m3(p[i]);
        nibbles(p + 4 + 8 * i, codes + 16 * i, 8);
    }
    look_up(kFp4Values, codes, 64);
}

// Negates byte i of `values` (none is zero) where bit i is set.
static inline uint64_t with_signs(uint64_t values, uint32_t bits) {
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t spread = (bits & 255u) * ones & 0x8040201008040201u;
    const uint64_t set = (spread + 0x7f * ones) >> 7 & ones;
    return (values ^ set * 255) + set;
}
// Seven sign bits stand for eight of even parity.
static inline uint32_t even_parity(uint32_t code) {
    code &= 127u;
    return code | (uint32_t)(__builtin_popcount(code) & 1) << 7;
}
static inline void put(uint64_t values, uint8_t* codes) { __builtin_memcpy(codes, &values, 8); }
static inline uint64_t join(uint64_t low, uint64_t high) { return low | high << 32; }

// Scales are odd: twice a number of four bits, and one.
static inline int odd(uint32_t bits) { return (int)(2 * bits + 1); }

static inline void expand_iq2_xxs(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p) * 0.125f;
    for (int group = 0; group < 8; group++) {
        const uint8_t* index = p + 2 + 8 * group;
        const uint32_t word = load_u32(index + 4);
        to.scales[group] = odd(word >> 28);
        for (int i = 0; i < 4; i++)
            put(with_signs(codebookIq2Xxs.entries[index[i]], even_parity(word >> (7 * i))), codes + 32 * group + 8 * i);
    }
}

// Sixteen scales of four bits.
static inline void iq2_scales(const uint8_t* nibbles, float scale, SuperScales& to) {
    to.d = scale * 0.125f;
    for (int i = 0; i < 16; i++) to.scales[i] = odd(nibbles[i / 2] >> (4 * (i % 2)) & 15);
}
static inline void expand_iq2_xs(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    iq2_scales(p + 66, load_half(p), to);
    for (int i = 0; i < 32; i++) {
        const uint32_t code = load_u16(p + 2 + 2 * i);
        put(with_signs(codebookIq2Xs.entries[code & 511], even_parity(code >> 9)), codes + 8 * i);
    }
}
static inline void expand_iq2_s(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    iq2_scales(p + 74, load_half(p), to);
    for (int i = 0; i < 32; i++) {
        const uint32_t code = p[2 + i] | (uint32_t)(p[66 + i / 4] >> (2 * (i % 4)) & 3) << 8;
        put(with_signs(codebookIq2S.entries[code], p[34 + i]), codes + 8 * i);
    }
}

static inline void expand_iq3_xxs(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p) * 0.25f;
    for (int group = 0; group < 8; group++) {
        const uint8_t* index = p + 2 + 8 * group;
        const uint32_t word = load_u32(p + 66 + 4 * group);
        to.scales[group] = odd(word >> 28);
        for (int i = 0; i < 4; i++) {
            const uint64_t values = join(codebookIq3Xxs.entries[index[2 * i]], codebookIq3Xxs.entries[index[2 * i + 1]]);
            put(with_signs(values, even_parity(word >> (7 * i))), codes + 32 * group + 8 * i);
        }
    }
}
static inline void expand_iq3_s(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p);
    for (int i = 0; i < 8; i++) to.scales[i] = odd(p[106 + i / 2] >> (4 * (i % 2)) & 15);
    for (int i = 0; i < 32; i++) {
        uint64_t values[2];
        for (int j = 0; j < 2; j++) {
            const int at = 2 * i + j;
            values[j] = codebookIq3S.entries[p[2 + at] | (p[66 + at / 8] >> (at % 8) & 1) << 8];
        }
        put(with_signs(join(values[0], values[1]), p[74 + i]), codes + 8 * i);
    }
}

// Eight times a ternary pattern and its shift of an eighth, up or down.
static inline void shifted_pattern(uint32_t code, bool down, uint8_t* codes) {
    put(codebookIq1S.entries[code], codes);
    for (int i = 0; i < 8; i++) codes[i] = (uint8_t)(codes[i] + (down ? -1 : 1));
}
static inline void expand_iq1_s(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p) * 0.125f;
    for (int group = 0; group < 8; group++) {
        const uint32_t head = load_u16(p + 34 + 2 * group);
        to.scales[group] = odd(head >> 12 & 7);
        for (int i = 0; i < 4; i++)
            shifted_pattern(p[2 + 4 * group + i] | (head >> (3 * i) & 7) << 8, (head & 0x8000u) != 0,
                            codes + 32 * group + 8 * i);
    }
}
static inline void expand_iq1_m(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    uint32_t words[4], top = 0;
    for (int i = 0; i < 4; i++) {
        words[i] = load_u16(p + 48 + 2 * i);
        top |= words[i] >> 12 << (4 * i);
    }
    to.d = half_to_float((uint16_t)top) * 0.125f;
    for (int i = 0; i < 16; i++) to.scales[i] = odd(words[i / 4] >> (3 * (i % 4)) & 7);
    for (int i = 0; i < 32; i++) {
        const uint32_t high = p[32 + i / 2] >> (4 * (i % 2));
        shifted_pattern(p[i] | (high & 7) << 8, (high & 8) != 0, codes + 8 * i);
    }
}
PK_END
