// Products of one token straight from the rows, where a vector holds neighbouring bytes of one or two of them: only sums are
// turned so that a lane is a row. Integers, exact in any order; floats as linear_quant.cpp says. On Emerald Rapids, one core,
// from cache: Q4_K 26 to 32 GB/s, Q6_K 25 to 35, Q8_0 33 to 43. Sums that meet their scales as 16 bits: 15 * 127 * 8 = 15,240
// (Q4_K), 32 * 127 * 4 = 16,256 (Q6_K).
#include "dot_rows.h"

#include "dot_codebook.h"

#if defined(__AVX512VNNI__)
#include "dot_lanes.h"

PK_BEGIN
namespace {
// Head of a superblock of Q4_K for four rows: eight scales, and eight minima as the activation sums are paired, as words.
PK_INLINE void six_bit_words(vi head, vi& scales, vi& minima) {
    const vi keep = _mm512_broadcast_i32x4(_mm_setr_epi16(63, 63, 63, 63, 15, 15, 15, 15)), top = iset(0x00300030);
    const vi nibble = _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0, 0, 0, 4, 4, 4, 4));
    const vi moved = _mm512_srli_epi32(head, 2);
    const vi low = iand(ishuffle(head, words_at(4, 5, 6, 7, 12, 13, 14, 15)), keep);
    const vi low_min = iand(_mm512_srlv_epi16(ishuffle(head, words_at(8, 10, 9, 11, 12, 14, 13, 15)), nibble), keep);
    const vi high = ishuffle(moved, words_at(kNone, kNone, kNone, kNone, 4, 5, 6, 7));
    const vi high_min = ishuffle(moved, words_at(kNone, kNone, kNone, kNone, 8, 10, 9, 11));
    scales = _mm512_ternarylogic_epi32(low, high, top, 0xf8);  // low | (high & top)
    minima = _mm512_ternarylogic_epi32(low_min, high_min, top, 0xf8);
}

// Activations of 128 channels as the bytes of two rows lie: blocks of 32, their first and last 16.
struct Four {
    vi low[2], high[2];
    PK_INLINE_MEMBER void load(const int8_t* a) {
        each<2>(PK_EACH(i) {
            low[i] = quarters(a + 16 * i, a + 64 + 16 * i);
            high[i] = quarters(a + 32 + 16 * i, a + 96 + 16 * i);
        });
    }
};

// 64 bytes of two rows: sums of low and of high nibbles as words, times their scales.
PK_INLINE vi add_nibbles(vi sum, const uint8_t* row, const uint8_t* other, const Four& a, vi scales) {
    const vi x = iload(row), y = iload(other), mask = iset8(15);
    const vi first = _mm512_shuffle_i64x2(x, y, 0x88), last = _mm512_shuffle_i64x2(x, y, 0xdd);
    vi low = _mm512_dpbusd_epi32(fresh_zero(), iand(first, mask), a.low[0]);
    vi high = _mm512_dpbusd_epi32(fresh_zero(), _mm512_andnot_si512(mask, first), a.high[0]);  // 16 times as much
    low = _mm512_dpbusd_epi32(low, iand(last, mask), a.low[1]);
    high = _mm512_dpbusd_epi32(high, _mm512_andnot_si512(mask, last), a.high[1]);
    const vi both = _mm512_mask_blend_epi16(0x55555555, _mm512_slli_epi32(high, 12), low);
    return iadd_pairs(sum, both, scales);
}

void dot_q4_k(Strip s, int blocks, const QuantGroup& group, Results results) {
    constexpr int kBytes = 144;
    vi scale_at[2][2];  // [rows 0, 1 or 2, 3 of four][first or last 128 channels]
    each<2>(PK_EACH(rows) {
        each<2>(PK_EACH(half) {
            const vi near = _mm512_broadcast_i64x4(_mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
            const vi row = _mm512_inserti64x4(iset(8 * rows), _mm256_set1_epi32(8 * rows + 4), 1);
            scale_at[rows][half] = iadd(iadd(near, row), iset(2 * half));
        });
    });
    vf sums = vzero();
    for (int b = 0; b < blocks / 8; b++) {
        const uint8_t* at = s.data + (size_t)b * kBytes;
        const float* words = group.meta + (size_t)b * kSuperWords;
        Four a[2];
        each<2>(PK_EACH(half) { a[half].load(group.data + (size_t)b * kSuper + 128 * half); });
        const vi pair_sums = irepeat16(words + kSuperPairs);
        vi heads[4], minima[4], products[8];
        const uint8_t* row = at;
        const uint8_t* near = b + 1 < blocks / 8 ? at + kBytes : s.next;
        const uint8_t* later = far_ahead<kStripRows>(s, (size_t)b * kBytes * kStripRows);
        each<4>(PK_EACH(e) {
            vi scales, least;
            heads[e] = quad(row, s.stride);
            six_bit_words(heads[e], scales, least);
            minima[e] = iadd_pairs(iset(0), least, pair_sums);
            each<2>(PK_EACH(two) {
                prefetch_later<kBytes, 2 * e + two, 8>(later);
                prefetch_near<3>(near + 8 * two * s.stride);
                prefetch_near<3>(near + (8 * two + 4) * s.stride);
                const uint8_t* first = row + 8 * two * s.stride + 16;
                const uint8_t* second = first + 4 * s.stride;
                vi sum = fresh_zero();
                each<2>(PK_EACH(half) {
                    const vi factor = _mm512_permutexvar_epi32(scale_at[two][half], scales);
                    sum = add_nibbles(sum, first + 64 * half, second + 64 * half, a[half], factor);
                });
                products[4 * two + e] = sum;
            });
            row = here(row + s.stride);
            near = here(near + s.stride);
        });
        const vi product = fold_quarters(fold_dwords(products[0], products[1], products[2], products[3]),
                                         fold_dwords(products[4], products[5], products[6], products[7]));
        const vi minimum = fold_dwords(minima[0], minima[1], minima[2], minima[3]);
        const vi halves = low64(low32(heads[0], heads[1]), low32(heads[2], heads[3]));
        const vf m = vsub(vzero(), ihalf_floats(_mm512_srli_epi32(halves, 16)));
        const vf total = vfma(ifloat(minimum), m, vmul(ifloat(product), ihalf_floats(halves)));
        sums = vfma(total, vset(words[kSuperScale]), sums);
    }
    vstore(results[0], sums);
}

// 64 bytes of low bits and 32 of high ones: 128 channels.
struct SixBitBytes {
    vi low, high;
    PK_INLINE_MEMBER void load(const uint8_t* nibbles, const uint8_t* tops) {
        const vi packed = iload(nibbles), mask = iset8(15);
        const vi shifts = _mm512_inserti64x4(iset(0), _mm256_set1_epi16(2), 1);
        const vi two = iand(_mm512_srlv_epi16(_mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i*)tops)), shifts), iset8(0x33));
        low = select(mask, packed, _mm512_slli_epi16(two, 4));
        high = select(mask, _mm512_srli_epi16(packed, 4), two);
    }
};

// One row's superblock: sums of 16 channels as words, times their scales.
PK_INLINE vi q6_k_row(const uint8_t* row, const vi a[4], const vi zero[4], const vi scale_at[2]) {
    const vi scales = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(row + 192))));
    vi sum = fresh_zero();
    each<2>(PK_EACH(half) {
        SixBitBytes bytes;
        bytes.load(row + 64 * half, row + 128 + 32 * half);
        const vi low = _mm512_dpbusd_epi32(fresh(zero[2 * half]), bytes.low, a[2 * half]);
        const vi high = _mm512_dpbusd_epi32(fresh(zero[2 * half + 1]), bytes.high, a[2 * half + 1]);
        sum = iadd_pairs(sum, _mm512_packs_epi32(low, high), _mm512_permutexvar_epi16(scale_at[half], scales));
    });
    return sum;
}

void dot_q6_k(Strip s, int blocks, const QuantGroup& group, Results results) {
    constexpr int kBytes = 210;
    HalfScales factors;
    vi scale_at[2];
    each<2>(PK_EACH(half) {
        const vi pair = _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0, 0, 0, 4, 4, 4, 4));
        const vi lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        scale_at[half] = iadd(iadd(pair, iset(0x00080008 * half)), iadd(lane, _mm512_slli_epi32(lane, 16)));
    });
    vf sums = vzero();
    for (int b = 0; b < blocks / 8; b++) {
        const uint8_t* at = s.data + (size_t)b * kBytes;
        vi a[4], zero[4];
        each<4>(PK_EACH(i) {
            a[i] = iload(group.data + (size_t)b * kSuper + 64 * i);
            zero[i] = isub(iset(0), _mm512_dpbusd_epi32(iset(0), iset8(32), a[i]));
        });
        factors.copy(at + 208, s.stride);
        vi groups[4];
        const uint8_t* row = at;
        const uint8_t* near = b + 1 < blocks / 8 ? at + kBytes : s.next;
        const uint8_t* later = far_ahead<kStripRows>(s, (size_t)b * kBytes * kStripRows);
        each<4>(PK_EACH(g) {
            vi rows[4];
            each<4>(PK_EACH(r) {
                prefetch_later<kBytes, 4 * g + r, 16>(later);
                prefetch_near<4>(near);
                near = here(near + s.stride);
                rows[r] = q6_k_row(row, a, zero, scale_at);
                row = here(row + s.stride);
            });
            groups[g] = fold_dwords(rows[0], rows[1], rows[2], rows[3]);
        });
        const vi product = fold_quarters(fold_quarters(groups[0], groups[1]), fold_quarters(groups[2], groups[3]));
        const vf d = factors.floats();
        sums = vfma(vmul(ifloat(product), d), vset(group.meta[(size_t)b * kSuperWords + kSuperScale]), sums);
    }
    vstore(results[0], sums);
}

// Every row gets its next line once in two blocks.
PK_INLINE void prefetch_blocks(const Strip& s, int block, const uint8_t* at) {
    at += 8 * (block % 2) * s.stride;
    for (int r = 0; r < 8; r++, at += s.stride) __builtin_prefetch(at + 192, 0, 3);
}

PK_INLINE vi q8_0_block(const Strip& s, const uint8_t* at, const int8_t* channels) {
    const vi a = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i*)channels)), flip = iset8(0x80);
    vi products[8];
    each<4>(PK_EACH(e) {
        each<2>(PK_EACH(two) {
            const uint8_t* row = at + 8 * two * s.stride + 2;
            const vi both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)row)),
                                               _mm256_loadu_si256((const __m256i*)(row + 4 * s.stride)), 1);
            products[4 * two + e] = _mm512_dpbusd_epi32(fresh_zero(), ixor(both, flip), a);
        });
        at = here(at + s.stride);
    });
    return fold_quarters(fold_dwords(products[0], products[1], products[2], products[3]),
                         fold_dwords(products[4], products[5], products[6], products[7]));
}

void dot_q8_0(Strip s, int blocks, const QuantGroup& group, Results results) {
    constexpr int kBytes = 34, kAhead = 4;
    HalfScales scales[kAhead];
    s.later = s.next;  // so short a way is enough here, 5 to 9 % faster from memory than three strips
    for (int b = 0; b < imin(kAhead, blocks); b++) scales[b].copy(s.data + b * kBytes, s.stride);
    vf sums = vzero();
    for (int b = 0; b < blocks; b++) {
        const uint8_t* at = s.data + (size_t)b * kBytes;
        const float* words = group.meta + (size_t)b * kBlockWords;
        prefetch_later<kBytes, 0, 1>(far_ahead<kStripRows>(s, (size_t)b * kBytes * kStripRows));
        prefetch_blocks(s, b, at);
        const vf d = scales[b % kAhead].floats();
        if (b + kAhead < blocks) scales[b % kAhead].copy(at + kAhead * kBytes, s.stride);
        const vi dots = q8_0_block(s, at, group.data + (size_t)b * kBlock);
        sums = vfma(scaled_sum(iadd(dots, iset(load_i32(words + kBlockOffset128))), words, 1, 0), d, sums);
    }
    vstore(results[0], sums);
}
}  // namespace

DotStrip dot_one(int ggml_type) {
    switch (ggml_type) {
        case kQ4_K: return dot_q4_k;
        case kQ6_K: return dot_q6_k;
        case kQ8_0: return dot_q8_0;
        default: return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("gfni") ? dot_codebook(ggml_type) : nullptr;
    }
}
PK_END
#else
PK_BEGIN
DotStrip dot_one(int) { return nullptr; }
PK_END
#endif
