// Products of one token straight from the rows of codebook formats. A codebook lies apart by value: plane k holds value k (or
// some neighbouring ones, packed) of all entries, so that a permutation of bytes looks 64 indices up at a time, in registers
// or L1, where a gather takes a load for each. What is looked up is then value k of all indices, and the token's channels are
// put in that order once per superblock. Signs go to the activations, as products take unsigned bytes of the weight. Rows of
// 32 indices go in pairs, a half of the vectors each. Integers, exact in any order; floats as linear_quant.cpp says.
//
// Sums that meet their scales as 16 bits: 3 * 2 * 43 * 127 = 32,766 (IQ2_XS).
#include "dot_codebook.h"

#if defined(__AVX512VBMI__) && defined(__GFNI__)
#include "dot_lanes.h"

PK_BEGIN
namespace {
struct Bytes {
    alignas(64) uint8_t of[64];
};
template <class F>
constexpr Bytes bytes_by(F f) {
    Bytes made{};
    for (int i = 0; i < 64; i++) made.of[i] = (uint8_t)f(i);
    return made;
}

template <int ENTRIES, int PLANES>
struct Planes {
    alignas(64) uint8_t of[PLANES][ENTRIES];
    // `code` of value k of an entry, BITS each, the first ones lowest.
    template <class F>
    Planes(const uint64_t* entries, int bits, F code) : of{} {
        for (int i = 0; i < ENTRIES; i++)
            for (int k = 0; k < PLANES * 8 / bits; k++)
                of[k * bits / 8][i] = (uint8_t)(of[k * bits / 8][i] | code((int8_t)(entries[i] >> (8 * k))) << (k * bits % 8));
    }
};

// A plane's bytes at 64 indices: seven bits in `low`, what is above them as masks.
template <int ABOVE>
PK_INLINE vi look_up(const uint8_t* plane, vi low, const __mmask64* above) {
    if constexpr (ABOVE == 0) {
        return _mm512_permutex2var_epi8(iload(plane), low, iload(plane + 64));
    } else {
        const vi first = look_up<ABOVE - 1>(plane, low, above), second = look_up<ABOVE - 1>(plane + (64 << ABOVE), low, above);
        return _mm512_mask_blend_epi8(above[ABOVE - 1], first, second);
    }
}

PK_INLINE __m256i two_sixteens(const uint8_t* first, const uint8_t* second) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)first)),
                                   _mm_loadu_si128((const __m128i*)second), 1);
}
PK_INLINE vi two_eights(const uint8_t* first, const uint8_t* second) {  // each in all quadwords of its half
    return _mm512_mask_broadcastq_epi64(_mm512_broadcastq_epi64(_mm_loadl_epi64((const __m128i*)first)), 0xf0,
                                        _mm_loadl_epi64((const __m128i*)second));
}

// Byte i of a result from bit BITS.of[i] of its quadword on.
PK_INLINE vi bits_from(const Bytes& bits, vi of) { return _mm512_multishift_epi64_epi8(iload(bits.of), of); }
// Bits of `of` in `mask`, and 1: scales are odd.
PK_INLINE vi odd_of(vi of, vi mask) { return _mm512_ternarylogic_epi32(of, mask, iset(0x00010001), 0xea); }
PK_INLINE vi odd_of_dword(vi of, vi mask) { return _mm512_ternarylogic_epi32(of, mask, iset(1), 0xea); }

// Seven bits, the lowest ones or the highest, to eight of even parity.
constexpr int64_t kParityOfLow = 0x010204081020407f, kParityOfHigh = 0x02040810204080fe;
PK_INLINE vi even_signs(vi sevens, int64_t matrix) { return _mm512_gf2p8affine_epi64_epi8(sevens, _mm512_set1_epi64(matrix), 0); }

template <int STEP>
constexpr Bytes kEvery = bytes_by([](int i) { return STEP * i; });

// A token's channel k of every four or, in both halves, of every eight.
template <int VALUES>
struct Token {
    vi of[VALUES];
    PK_INLINE_MEMBER explicit Token(const int8_t* a) {
        constexpr __mmask64 kLast = VALUES == 4 ? 0xffffffff00000000u : 0xffff0000ffff0000u;
        each<VALUES>(PK_EACH(k) {
            const vi at = iadd8(iload(kEvery<VALUES>.of), iset8(k));
            const vi first = _mm512_permutex2var_epi8(iload(a), at, iload(a + 64));
            const vi last = _mm512_permutex2var_epi8(iload(a + 128), at, iload(a + 192));
            of[k] = _mm512_mask_blend_epi8(kLast, first, last);
        });
    }
    // With the signs whose bits are set.
    PK_INLINE_MEMBER vi turned(int k, vi signs, vi bits) const {
        return _mm512_mask_sub_epi8(of[k], _mm512_test_epi8_mask(signs, bits), iset(0), of[k]);
    }
};

// Four values an index, 64 indices a row. Of a row: an index' byte of `signs` has its four in the low bits or, where the index is
// odd, in the high ones.
PK_INLINE vi quad_products(const vi w[4], vi signs, const Token<4>& a) {
    vi sum = fresh_zero();
    each<4>(PK_EACH(k) { sum = _mm512_dpbusd_epi32(sum, w[k], a.turned(k, signs, _mm512_set1_epi16((short)(0x1001 << k)))); });
    return sum;
}

struct Iq3Xxs {
    static constexpr int kBytes = 98, kScaleAt = 0;
    static constexpr float kUnit = 0.25f;
    typedef Planes<256, 4> Book;
    typedef Token<4> Channels;
    PK_INLINE Book book() { return Book(codebookIq3Xxs.entries, 8, [](int value) { return value; }); }
    PK_INLINE vi row(const uint8_t* p, const Book& book, const Channels& a) {
        static constexpr Bytes kSigns = bytes_by([](int i) { return i % 8 / 2 * 7; });
        const vi twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        const vi low = iload(p + 2);
        const __mmask64 above[1] = {_mm512_movepi8_mask(low)};
        vi w[4];
        each<4>(PK_EACH(k) { w[k] = look_up<1>(book.of[k], low, above); });
        const __m256i raw = _mm256_loadu_si256((const __m256i*)(p + 66));
        const vi words = _mm512_permutexvar_epi32(twice, _mm512_castsi256_si512(raw));
        const vi sum = quad_products(w, even_signs(bits_from(kSigns, words), kParityOfLow), a);
        return imul(sum, ior(_mm512_srli_epi32(words, 27), iset(1)));  // a bit of signs is below the scale's, and set
    }
};

struct Iq3S {
    static constexpr int kBytes = 110, kScaleAt = 0;
    static constexpr float kUnit = 1.0f;
    typedef Planes<512, 2> Book;
    typedef Token<4> Channels;
    PK_INLINE Book book() { return Book(codebookIq3S.entries, 4, [](int value) { return value; }); }
    PK_INLINE vi row(const uint8_t* p, const Book& book, const Channels& a) {
        static constexpr Bytes kHalf = bytes_by([](int i) { return i / 2; });
        const vi nibble = _mm512_setr_epi32(31, 31, 3, 3, 7, 7, 11, 11, 15, 15, 19, 19, 23, 23, 27, 27);
        const vi low = iload(p + 2);
        uint64_t ninth;
        __builtin_memcpy(&ninth, p + 66, 8);
        const __mmask64 above[2] = {_mm512_movepi8_mask(low), ninth};
        vi w[4];
        each<2>(PK_EACH(k) {
            const vi two = look_up<2>(book.of[k], low, above);
            w[2 * k] = iand(two, iset8(15));
            w[2 * k + 1] = iand(_mm512_srli_epi16(two, 4), iset8(15));
        });
        const __m256i raw = _mm256_loadu_si256((const __m256i*)(p + 74));
        const vi sum = quad_products(w, _mm512_permutexvar_epi8(iload(kHalf.of), _mm512_castsi256_si512(raw)), a);
        return imul(sum, odd_of_dword(_mm512_rorv_epi32(iset(load_i32(p + 106)), nibble), iset(0x1e)));
    }
};

// Eight values an index, one of three magnitudes each.
template <int ENTRIES, int ABOVE>
PK_INLINE void magnitudes(const Planes<ENTRIES, 2>& book, vi low, const __mmask64* above, vi w[8]) {
    const vi first = _mm512_broadcast_i32x4(_mm_setr_epi8(8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0));
    const vi second = _mm512_broadcast_i32x4(_mm_setr_epi8(8, 8, 8, 8, 25, 25, 25, 25, 43, 43, 43, 43, 0, 0, 0, 0));
    each<2>(PK_EACH(k) {
        const vi four = look_up<ABOVE>(book.of[k], low, above);
        const vi begin = iand(four, iset8(15)), end = iand(_mm512_srli_epi16(four, 4), iset8(15));
        w[4 * k] = ishuffle(first, begin);
        w[4 * k + 1] = ishuffle(second, begin);
        w[4 * k + 2] = ishuffle(first, end);
        w[4 * k + 3] = ishuffle(second, end);
    });
}

// Sixteen channels with a scale each: sums as words.
PK_INLINE vi sixteens(const vi w[8], vi signs, const Token<8>& a, vi scales) {
    vi pairs[8], total = fresh_zero();
    each<8>(PK_EACH(k) { pairs[k] = _mm512_maddubs_epi16(w[k], a.turned(k, signs, iset8(1 << k))); });
    each<3>(PK_EACH(i) {
        vi sum = _mm512_add_epi16(pairs[3 * i], pairs[3 * i + 1]);
        if constexpr (i < 2) sum = _mm512_add_epi16(sum, pairs[3 * i + 2]);
        total = iadd_pairs(total, sum, scales);
    });
    return total;
}
// Sixteen scales of four bits as words, from eight bytes a row.
PK_INLINE vi nibble_scales(const uint8_t* first, const uint8_t* second) {
    static constexpr Bytes kNibbles = bytes_by([](int i) { return (4 * (i % 32 / 2) + 63) % 64; });  // and the bit below
    return odd_of(bits_from(kNibbles, two_eights(first, second)), iset(0x001e001e));
}
PK_INLINE int code_of_magnitude(int value) { return value >> 4; }

struct Iq2Xxs {
    static constexpr int kBytes = 66, kScaleAt = 0;
    static constexpr float kUnit = 0.125f;
    typedef Planes<256, 2> Book;
    typedef Token<8> Channels;
    PK_INLINE Book book() { return Book(codebookIq2Xxs.entries, 2, code_of_magnitude); }
    PK_INLINE vi pair(const uint8_t* p, const uint8_t* other, const Book& book, const Channels& a) {
        static constexpr Bytes kSigns = bytes_by([](int i) { return i % 4 * 7 + i % 8 / 4 * 32; });
        const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), odd = ior(even, iset(1));
        const vi x = iload(p + 2), y = iload(other + 2);
        const vi low = _mm512_permutex2var_epi32(x, even, y), words = _mm512_permutex2var_epi32(x, odd, y);
        const __mmask64 above[1] = {_mm512_movepi8_mask(low)};
        vi w[8], sum = fresh_zero();
        magnitudes<256, 1>(book, low, above, w);
        const vi signs = even_signs(bits_from(kSigns, words), kParityOfLow);
        each<8>(PK_EACH(k) { sum = _mm512_dpbusd_epi32(sum, w[k], a.turned(k, signs, iset8(1 << k))); });
        return imul(sum, ior(_mm512_srli_epi32(words, 27), iset(1)));
    }
};

struct Iq2Xs {
    static constexpr int kBytes = 74, kScaleAt = 0;
    static constexpr float kUnit = 0.125f;
    typedef Planes<512, 2> Book;
    typedef Token<8> Channels;
    PK_INLINE Book book() { return Book(codebookIq2Xs.entries, 2, code_of_magnitude); }
    PK_INLINE vi pair(const uint8_t* p, const uint8_t* other, const Book& book, const Channels& a) {
        const vi x = iload(p + 2), y = iload(other + 2), even = iload(kEvery<2>.of);
        const vi low = _mm512_permutex2var_epi8(x, even, y), top = _mm512_permutex2var_epi8(x, ior(even, iset8(1)), y);
        const __mmask64 above[2] = {_mm512_movepi8_mask(low), _mm512_test_epi8_mask(top, iset8(1))};
        vi w[8];
        magnitudes<512, 2>(book, low, above, w);
        return sixteens(w, even_signs(top, kParityOfHigh), a, nibble_scales(p + 66, other + 66));
    }
};

template <class Format>
PK_INLINE vf scales_of(const uint8_t* at, size_t stride) {
    HalfScales scales;
    scales.copy(at + Format::kScaleAt, stride);
    return vmul(scales.floats(), vset(Format::kUnit));
}

// Two rows of sixteen: those of the next block or strip to L1, and as much of a later strip to L2.
template <int BYTES>
PK_INLINE void ask_ahead(const Strip& s, int block, int part, const uint8_t* near, size_t apart) {
    const uint8_t* later = far_ahead<kStripRows>(s, ((size_t)block * kStripRows + 2 * part) * BYTES);
    for (int at = 0; at < 2 * BYTES; at += 64) __builtin_prefetch(later + at, 0, 2);
    prefetch_near<2>(near);
    prefetch_near<2>(near + apart);
}

template <class Format>
PK_INLINE vi products_by_row(const Strip& s, int block, const uint8_t* at, const uint8_t* near, const typename Format::Book& book,
                             const typename Format::Channels& a) {
    vi fours[4];
#pragma GCC unroll 1
    for (int g = 0; g < 4; g++) {
        vi rows[4];
        each<2>(PK_EACH(i) {
            ask_ahead<Format::kBytes>(s, block, 2 * g + i, near, s.stride);
            rows[2 * i] = Format::row(at, book, a);
            rows[2 * i + 1] = Format::row(at + s.stride, book, a);
            at += 2 * s.stride;
            near += 2 * s.stride;
        });
        fours[g] = fold_dwords(rows[0], rows[1], rows[2], rows[3]);
    }
    return fold_quarters(fold_quarters(fours[0], fours[1]), fold_quarters(fours[2], fours[3]));
}

template <class Format>
PK_INLINE vi products_by_pair(const Strip& s, int block, const uint8_t* at, const uint8_t* near, const typename Format::Book& book,
                              const typename Format::Channels& a) {
    vi eights[2];
    const size_t apart = 4 * s.stride;
#pragma GCC unroll 1
    for (int two = 0; two < 2; two++) {
        vi pairs[4];
        each<4>(PK_EACH(e) {
            ask_ahead<Format::kBytes>(s, block, 4 * two + e, near, apart);
            pairs[e] = Format::pair(at, at + apart, book, a);
            at += s.stride;
            near += s.stride;
        });
        at += apart;
        near += apart;
        eights[two] = fold_dwords(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
    return fold_quarters(eights[0], eights[1]);
}

template <class Format>
void dot_rows_of(Strip s, int blocks, const QuantGroup& group, Results results) {
    static const typename Format::Book book = Format::book();
    vf sums = vzero();
    for (int b = 0; b < blocks / 8; b++) {
        const uint8_t* at = s.data + (size_t)b * Format::kBytes;
        const uint8_t* near = b + 1 < blocks / 8 ? at + Format::kBytes : s.next;
        const float* words = group.meta + (size_t)b * kSuperWords;
        const typename Format::Channels a(group.data + (size_t)b * kSuper);
        const vf d = scales_of<Format>(at, s.stride);
        vi products;
        if constexpr (requires { Format::row(at, book, a); }) products = products_by_row<Format>(s, b, at, near, book, a);
        else products = products_by_pair<Format>(s, b, at, near, book, a);
        sums = vfma(vmul(ifloat(products), d), vset(words[kSuperScale]), sums);
    }
    vstore(results[0], sums);
}
}  // namespace

DotStrip dot_codebook(int ggml_type) {
    switch (ggml_type) {
        case kIQ3_XXS: return dot_rows_of<Iq3Xxs>;
        case kIQ3_S: return dot_rows_of<Iq3S>;
        case kIQ2_XXS: return dot_rows_of<Iq2Xxs>;
        case kIQ2_XS: return dot_rows_of<Iq2Xs>;
        default: return nullptr;
    }
}
PK_END
#else
PK_BEGIN
DotStrip dot_codebook(int) { return nullptr; }
PK_END
#endif
