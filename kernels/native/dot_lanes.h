// What products of one token straight from the rows share: sums turned so that a lane is a row, scales, prefetches.
#pragma once
#include "sinks.h"

PK_BEGIN
namespace {
// x0 + x2, y0 + y2, x1 + x3, y1 + y3 of four dwords each.
PK_INLINE vi fold32(vi x, vi y) { return iadd(low32(x, y), high32(x, y)); }
PK_INLINE vi fold64(vi x, vi y) { return iadd(low64(x, y), high64(x, y)); }
// Sums of the four dwords of every quarter of w, x, y, z.
PK_INLINE vi fold_dwords(vi w, vi x, vi y, vi z) { return fold64(fold32(w, x), fold32(y, z)); }
// Neighbouring quarters of x, then of y, added.
PK_INLINE vi fold_quarters(vi x, vi y) {
    return iadd(_mm512_shuffle_i64x2(x, y, 0x88), _mm512_shuffle_i64x2(x, y, 0xdd));
}

// Bits of a where `mask` is set, else of b. Told with b first, as the instruction overwrites it.
PK_INLINE vi select(vi mask, vi a, vi b) { return _mm512_ternarylogic_epi32(b, a, mask, 0xd8); }

// So that addresses of rows are added up where they are used: computed before the loop they are more than registers
// hold.
PK_INLINE const uint8_t* here(const uint8_t* p) {
    asm("" : "+r"(p));
    return p;
}

// What sums start from, in a register of their own: products overwrite it, and a copy from another register would take
// one of the two vector ports.
PK_INLINE vi fresh_zero() {
    vi zero;
    asm volatile("vpxor %x0, %x0, %x0" : "=x"(zero));
    return zero;
}
PK_INLINE vi fresh(const vi& at) {
    vi copy;
    asm volatile("vmovdqa64 %1, %0" : "=v"(copy) : "m"(at));
    return copy;
}
PK_INLINE vi quarters(const int8_t* even, const int8_t* odd) {
    const vi a = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)even));
    return _mm512_mask_broadcast_i32x4(a, 0xf0f0, _mm_loadu_si128((const __m128i*)odd));
}

// 16 bytes of the rows e, e + 4, e + 8, e + 12.
PK_INLINE vi quad(const uint8_t* p, size_t stride) {
    vi v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)p));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_loadu_si128((const __m128i*)(p + 4 * stride)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_loadu_si128((const __m128i*)(p + 8 * stride)));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_loadu_si128((const __m128i*)(p + 12 * stride)));
}

// Bytes of 128 bits, for every quarter; kNone makes a zero.
constexpr char kNone = -1;
PK_INLINE vi words_at(int a, int b, int c, int d, int e, int f, int g, int h) {
    return _mm512_broadcast_i32x4(_mm_setr_epi8((char)a, kNone, (char)b, kNone, (char)c, kNone, (char)d, kNone, (char)e,
                                                kNone, (char)f, kNone, (char)g, kNone, (char)h, kNone));
}

// Scales of all rows at `at`, by way of memory: what inserts them into a vector takes a vector port for each, and the
// compiler would make vectors of them before it stores them.
struct HalfScales {
    alignas(32) uint16_t of[kStripRows];
    PK_INLINE_MEMBER void copy(const uint8_t* at, size_t stride) {
        volatile uint16_t* to = of;
        each<kStripRows>(PK_EACH(r) {
            to[r] = load_u16(at);
            at = here(at + stride);
        });
    }
    PK_INLINE_MEMBER vf floats() const { return _mm512_cvtph_ps(_mm256_load_si256((const __m256i*)of)); }
};

// Part I of N of a block of BYTES: as many lines of what is read later go to L2, evenly, as in bursts they wait
// for each other. What is read one block later, of the same rows or of the next strip, goes to L1.
template <int BYTES, int I, int N>
PK_INLINE void prefetch_later(const uint8_t* ahead) {
    constexpr int kSize = BYTES * kStripRows;
    each<kSize * (I + 1) / N / 64 - kSize * I / N / 64>(PK_EACH(line) {
        __builtin_prefetch(ahead + 64 * (kSize * I / N / 64 + line), 0, 2);
    });
}
template <int COUNT>
PK_INLINE void prefetch_near(const uint8_t* at) {
    each<COUNT>(PK_EACH(line) { __builtin_prefetch(at + 64 * line, 0, 3); });
}
}  // namespace
PK_END
