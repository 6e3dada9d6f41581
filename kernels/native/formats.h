// One block of a quantised row to codes, scales and minima: value = d * code + m. One description per GGML type (layouts:
// ggml-common.h); tiles and embedding rows are both made from it.
#pragma once
#include "level.h"

PK_BEGIN
// Scales of a superblock of 256: scale i is d * scales[i], minimum i is m * minima[i], products that are exact.
struct SuperScales {
    float d, m;
    int32_t scales[16], minima[16];
};

// `codes`: one byte per element, signed unless the format has minima. One scale per 32 elements, or per 16 when `halves`;
// minima likewise, written only by formats that have them. Blocks of 256 elements give theirs through `expand_super`.
struct BlockFormat {
    int type;
    int elements;
    int bytes;
    bool halves;
    bool minima;
    void (*expand)(const uint8_t* block, uint8_t* codes, float* d, float* m);
    void (*expand_super)(const uint8_t* block, uint8_t* codes, SuperScales& scales);
};
const BlockFormat* block_format(int ggml_type);

static inline float load_half(const uint8_t* p) { return half_to_float(load_u16(p)); }
static inline uint32_t load_u32(const uint8_t* p) {
    uint32_t v;
    __builtin_memcpy(&v, p, 4);
    return v;
}

// Low nibbles are the first half of a block, high nibbles the second.
static inline void nibbles(const uint8_t* packed, uint8_t* codes, int bytes = 16) {
    for (int i = 0; i < bytes; i++) {
        codes[i] = packed[i] & 15;
        codes[bytes + i] = packed[i] >> 4;
    }
}

static inline void subtract(uint8_t* codes, int count, int zero) {
    for (int i = 0; i < count; i++) codes[i] = (uint8_t)(codes[i] - zero);
}

// Adds bit i of `bits` to code i, at place `place`.
static inline void add_bits(uint32_t bits, uint8_t* codes, int place) {
    for (int i = 0; i < 32; i++) codes[i] = (uint8_t)(codes[i] | ((bits >> i & 1) << place));
}

static inline void expand_q4_0(const uint8_t* p, uint8_t* codes, float* d, float*) {
    *d = load_half(p);
    nibbles(p + 2, codes);
    subtract(codes, 32, 8);
}
static inline void expand_q4_1(const uint8_t* p, uint8_t* codes, float* d, float* m) {
    *d = load_half(p);
    *m = load_half(p + 2);
    nibbles(p + 4, codes);
}
static inline void expand_q5_0(const uint8_t* p, uint8_t* codes, float* d, float*) {
    *d = load_half(p);
    nibbles(p + 6, codes);
    add_bits(load_u32(p + 2), codes, 4);
    subtract(codes, 32, 16);
}
static inline void expand_q5_1(const uint8_t* p, uint8_t* codes, float* d, float* m) {
    *d = load_half(p);
    *m = load_half(p + 2);
    nibbles(p + 8, codes);
    add_bits(load_u32(p + 4), codes, 4);
}
static inline void expand_q8_0(const uint8_t* p, uint8_t* codes, float* d, float*) {
    *d = load_half(p);
    __builtin_memcpy(codes, p + 2, 32);
}

// 64 bytes hold 256 codes of two bits: per 32 bytes all lowest pairs, then the next ones.
static inline void two_bits(const uint8_t* packed, uint8_t* codes) {
    for (int half = 0; half < 2; half++)
        for (int pair = 0; pair < 4; pair++)
            for (int i = 0; i < 32; i++) codes[128 * half + 32 * pair + i] = packed[32 * half + i] >> (2 * pair) & 3;
}

static inline void expand_q2_k(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p + 80);
    to.m = -load_half(p + 82);
    for (int i = 0; i < 16; i++) {
        to.scales[i] = p[i] & 15;
        to.minima[i] = p[i] >> 4;
    }
    two_bits(p + 16, codes);
}

static inline void expand_q3_k(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p + 108);
    const uint8_t* s = p + 96;
    for (int i = 0; i < 16; i++) {
        const int low = i < 8 ? s[i] & 15 : s[i - 8] >> 4, high = s[8 + i % 4] >> (2 * (i / 4)) & 3;
        to.scales[i] = (low | high << 4) - 32;
    }
    two_bits(p + 32, codes);
    for (int group = 0; group < 8; group++)
        for (int i = 0; i < 32; i++)
            codes[32 * group + i] = (uint8_t)(codes[32 * group + i] + 4 * (p[i] >> group & 1) - 4);
}

// 12 bytes hold eight scales and eight minima of 6 bits.
static inline void scales_and_minima(const uint8_t* p, SuperScales& to) {
    to.d = load_half(p);
    to.m = -load_half(p + 2);
    const uint8_t* s = p + 4;
    for (int i = 0; i < 4; i++) {
        to.scales[i] = s[i] & 63;
        to.minima[i] = s[4 + i] & 63;
        to.scales[4 + i] = (s[8 + i] & 15) | s[i] >> 6 << 4;
        to.minima[4 + i] = s[8 + i] >> 4 | s[4 + i] >> 6 << 4;
    }
}

static inline void expand_q4_k(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    scales_and_minima(p, to);
    for (int pair = 0; pair < 4; pair++) nibbles(p + 16 + 32 * pair, codes + 64 * pair, 32);
}

static inline void expand_q5_k(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    scales_and_minima(p, to);
    for (int pair = 0; pair < 4; pair++) nibbles(p + 48 + 32 * pair, codes + 64 * pair, 32);
    for (int group = 0; group < 8; group++)
        for (int i = 0; i < 32; i++)
            codes[32 * group + i] = (uint8_t)(codes[32 * group + i] | (p[16 + i] >> group & 1) << 4);
}

static inline void expand_q6_k(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    to.d = load_half(p + 208);
    for (int i = 0; i < 16; i++) to.scales[i] = (int8_t)p[192 + i];
    uint8_t high[256];
    two_bits(p + 128, high);
    nibbles(p, codes, 64);
    nibbles(p + 64, codes + 128, 64);
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)((codes[i] | high[i] << 4) - 32);
}

// Bytes of base-3 fractions, most significant digit first.
static inline uint8_t* trits(const uint8_t* packed, int bytes, int digits, uint8_t* codes) {
    for (int digit = 0, power = 1; digit < digits; digit++, power *= 3)
        for (int i = 0; i < bytes; i++) {
            const unsigned rolled = (uint8_t)(packed[i] * power);
            *codes++ = (uint8_t)((rolled * 3 >> 8) - 1);
        }
    return codes;
}
static inline void same_scale(float scale, float* d, int count) {
    for (int i = 0; i < count; i++) d[i] = scale;
}
static inline void same_scale(float scale, SuperScales& to) {
    to.d = scale;
    for (int i = 0; i < 8; i++) to.scales[i] = 1;
}
static inline void expand_tq1_0(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    same_scale(load_half(p + 52), to);
    trits(p + 48, 4, 4, trits(p + 32, 16, 5, trits(p, 32, 5, codes)));
}
static inline void expand_tq2_0(const uint8_t* p, uint8_t* codes, SuperScales& to) {
    same_scale(load_half(p + 64), to);
    two_bits(p, codes);
    subtract(codes, 256, 1);
}
static inline void expand_q1_0(const uint8_t* p, uint8_t* codes, float* d, float*) {
    same_scale(load_half(p), d, 4);
    for (int i = 0; i < 128; i++) codes[i] = (uint8_t)(2 * (p[2 + i / 8] >> (i % 8) & 1) - 1);
}
static inline void expand_q2_0(const uint8_t* p, uint8_t* codes, float* d, float*) {
    same_scale(load_half(p), d, 2);
    for (int i = 0; i < 64; i++) codes[i] = (uint8_t)((p[2 + i / 4] >> (2 * (i % 4)) & 3) - 1);
}
PK_END
