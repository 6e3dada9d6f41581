// Products of one token straight from the rows of codebook formats. A codebook lies apart by value: plane k holds value k (or
// some neighbouring ones, packed) of all entries, so that a permutation of bytes looks 64 indices up at a time, in registers
// or L1, where a gather takes a load for each. What is looked up is then value k of all indices, and the token's channels are
// put in that order once per superblock. Signs go to the activations, as products take unsigned bytes of the weight. Rows of
// 32 indices go in pairs, a half of the vectors each. Integers, exact in any order; floats as linear_quant.cpp says.
//
// Longer than other files for it holds one short product per format.
//
// Sums that meet their scales as 16 bits: 3 * 2 * 43 * 127 = 32,766 (IQ2_XS, IQ2_S), 16 * 9 * 127 = 18,288 (IQ1_M).
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

PK_INLINE vi two_rows(const uint8_t* first, const uint8_t* second) {  // 32 bytes each
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)first)),
                              _mm256_loadu_si256((const __m256i*)second), 1);
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

struct Iq2S {
    static constexpr int kBytes = 82, kScaleAt = 0;
    static constexpr float kUnit = 0.125f;
    typedef Planes<1024, 2> Book;
    typedef Token<8> Channels;
    PK_INLINE Book book() { return Book(codebookIq2S.entries, 2, code_of_magnitude); }
    PK_INLINE vi pair(const uint8_t* p, const uint8_t* other, const Book& book, const Channels& a) {
        static constexpr Bytes kTwo = bytes_by([](int i) { return i % 32 * 2; });
        const vi low = two_rows(p + 2, other + 2), top = bits_from(kTwo, two_eights(p + 66, other + 66));
        const __mmask64 above[3] = {_mm512_movepi8_mask(low), _mm512_test_epi8_mask(top, iset8(1)),
                                    _mm512_test_epi8_mask(top, iset8(2))};
        vi w[8];
        magnitudes<1024, 3>(book, low, above, w);
        return sixteens(w, two_rows(p + 34, other + 34), a, nibble_scales(p + 74, other + 74));
    }
};

// IQ1: a value is eight times a code of two bits, less 7 or, where a bit says so, 9. Products with codes where they lie in a
// byte are so many times as large.
PK_INLINE int code_of_eighths(int value) { return value / 8 + 1; }
typedef Planes<2048, 2> Iq1Book;

struct Iq1Codes {
    vi four[2];
    vi top;  // three bits of an index, and a bit more
    PK_INLINE_MEMBER Iq1Codes(const Iq1Book& book, vi low, __m256i high, const Bytes& places) {
        top = bits_from(places, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), _mm512_castsi256_si512(high)));
        const __mmask64 above[4] = {_mm512_movepi8_mask(low), _mm512_test_epi8_mask(top, iset8(1)),
                                    _mm512_test_epi8_mask(top, iset8(2)), _mm512_test_epi8_mask(top, iset8(4))};
        each<2>(PK_EACH(k) { four[k] = look_up<4>(book.of[k], low, above); });
    }
    PK_INLINE_MEMBER vi codes(int plane, int place) const { return iand(four[plane], iset8(3 << (2 * place))); }
};

struct Iq1S {
    static constexpr int kBytes = 50, kScaleAt = 0;
    static constexpr float kUnit = 0.125f;
    typedef Iq1Book Book;
    struct Channels : Token<8> {
        vi sevens, twos;  // 7 times and twice the sum of every 32
        PK_INLINE_MEMBER explicit Channels(const int8_t* a) : Token<8>(a) {
            vi sum = iset(0);
            each<8>(PK_EACH(k) { sum = _mm512_dpbusd_epi32(sum, iset8(1), of[k]); });
            twos = iadd(sum, sum);
            sevens = isub(_mm512_slli_epi32(sum, 3), sum);
        }
    };
    PK_INLINE Book book() { return Book(codebookIq1S.entries, 2, code_of_eighths); }
    PK_INLINE vi pair(const uint8_t* p, const uint8_t* other, const Book& book, const Channels& a) {
        static constexpr Bytes kPlaces = bytes_by([](int i) { return i % 16 / 4 * 16 + i % 4 * 3; });
        const __m256i high = two_sixteens(p + 34, other + 34);
        const Iq1Codes bytes(book, two_rows(p + 2, other + 2), high, kPlaces);
        vi sums[4];
        each<4>(PK_EACH(i) {
            sums[i] = _mm512_dpbusd_epi32(fresh_zero(), bytes.codes(0, i), a.of[i]);
            sums[i] = _mm512_dpbusd_epi32(sums[i], bytes.codes(1, i), a.of[4 + i]);
        });
        const vi low = iadd(_mm512_slli_epi32(sums[0], 3), _mm512_slli_epi32(sums[1], 1));
        const vi codes = iadd(low, iadd(_mm512_srai_epi32(sums[2], 1), _mm512_srai_epi32(sums[3], 3)));
        const vi heads = _mm512_cvtepu16_epi32(high), plain = isub(codes, a.sevens);
        const vi sum = _mm512_mask_sub_epi32(plain, _mm512_test_epi32_mask(heads, iset(0x8000)), plain, a.twos);
        return imul(sum, odd_of_dword(_mm512_srli_epi32(heads, 11), iset(0x0e)));
    }
};

struct Iq1M {
    static constexpr int kBytes = 56;
    static constexpr float kUnit = 0.125f;
    typedef Iq1Book Book;
    struct Channels : Token<8> {
        vi sevens, twos[2];  // as words: 7 times the sum of every 16, twice that of their first and last 8
        PK_INLINE_MEMBER explicit Channels(const int8_t* a) : Token<8>(a) {
            each<2>(PK_EACH(i) {
                twos[i] = iset(0);
                const vi two = iset(0x00020002 << (8 * i));
                each<8>(PK_EACH(k) { twos[i] = _mm512_add_epi16(twos[i], _mm512_maddubs_epi16(two, of[k])); });
            });
            const vi both = _mm512_add_epi16(twos[0], twos[1]);
            sevens = isub16(_mm512_slli_epi16(both, 2), _mm512_srai_epi16(both, 1));
        }
    };
    PK_INLINE Book book() { return Book(codebookIq1S.entries, 2, code_of_eighths); }
    PK_INLINE vi pair(const uint8_t* p, const uint8_t* other, const Book& book, const Channels& a) {
        static constexpr Bytes kPlaces = bytes_by([](int i) { return i % 16 * 4; });
        static constexpr Bytes kScales = bytes_by([](int i) { return (i % 32 / 8 * 16 + i % 8 / 2 * 3 + 63) % 64; });
        const Iq1Codes bytes(book, two_rows(p, other), two_sixteens(p + 32, other + 32), kPlaces);
        vi pairs[8];
        each<8>(PK_EACH(k) { pairs[k] = _mm512_maddubs_epi16(bytes.codes(k / 4, k % 4), a.of[k]); });
        const vi first = _mm512_slli_epi16(_mm512_add_epi16(pairs[0], pairs[4]), 3);
        const vi second = _mm512_slli_epi16(_mm512_add_epi16(pairs[1], pairs[5]), 1);
        const vi third = _mm512_srai_epi16(_mm512_add_epi16(pairs[2], pairs[6]), 1);
        const vi fourth = _mm512_add_epi16(_mm512_srai_epi16(pairs[3], 3), _mm512_srai_epi16(pairs[7], 3));
        const vi codes = _mm512_add_epi16(_mm512_add_epi16(first, second), _mm512_add_epi16(third, fourth));
        vi sum = isub16(codes, a.sevens);
        each<2>(PK_EACH(i) {
            const __mmask32 nines = _mm512_test_epi16_mask(bytes.top, _mm512_set1_epi16((short)(8 << (8 * i))));
            sum = _mm512_mask_sub_epi16(sum, nines, sum, a.twos[i]);
        });
        return iadd_pairs(fresh_zero(), sum, odd_of(bits_from(kScales, two_eights(p + 48, other + 48)), iset(0x000e000e)));
    }
    // The top nibbles of four words.
    PK_INLINE uint16_t scale(const uint8_t* p) {
        uint64_t words;
        __builtin_memcpy(&words, p + 48, 8);
        return (uint16_t)((words >> 12 & 15) | (words >> 24 & 0xf0) | (words >> 36 & 0xf00) | (words >> 48 & 0xf000));
    }
};

// TQ1_0: a byte stands for five digits, those of all bytes side by side.
struct Tq1 {
    static constexpr int kBytes = 54, kScaleAt = 52;
    static constexpr float kUnit = 1.0f;
    struct Book {
        alignas(64) uint8_t of[2][256];
    };
    struct Channels {
        vi of[5];
        PK_INLINE_MEMBER explicit Channels(const int8_t* a) {
            each<5>(PK_EACH(n) {
                alignas(64) int8_t placed[64] = {};
                __builtin_memcpy(placed, a + 32 * n, 32);
                __builtin_memcpy(placed + 32, a + 160 + 16 * n, 16);
                if constexpr (n < 4) __builtin_memcpy(placed + 48, a + 240 + 4 * n, 4);
                of[n] = iload(placed);
            });
        }
    };
    PK_INLINE Book book() {
        Book made{};
        for (int i = 0; i < 256; i++)
            for (int n = 0, rest = i; n < 5; n++, rest = rest * 3 % 256)
                made.of[n / 4][i] = (uint8_t)(made.of[n / 4][i] | (rest * 3 >> 8) << (2 * (n % 4)));
        return made;
    }
    PK_INLINE vi row(const uint8_t* p, const Book& book, const Channels& a) {
        const vi packed = _mm512_maskz_loadu_epi8(((__mmask64)1 << 52) - 1, p);
        const __mmask64 above[1] = {_mm512_movepi8_mask(packed)};
        const vi four = look_up<1>(book.of[0], packed, above), last = look_up<1>(book.of[1], packed, above);
        vi sums[4];
        each<4>(PK_EACH(n) { sums[n] = _mm512_dpbusd_epi32(fresh_zero(), iand(four, iset8(3 << (2 * n))), a.of[n]); });
        sums[0] = _mm512_dpbusd_epi32(sums[0], last, a.of[4]);
        const vi low = iadd(sums[0], _mm512_srai_epi32(sums[1], 2));
        return iadd(low, iadd(_mm512_srai_epi32(sums[2], 4), _mm512_srai_epi32(sums[3], 6)));
    }
};

template <class Format>
PK_INLINE vf scales_of(const uint8_t* at, size_t stride) {
    HalfScales scales;
    if constexpr (requires { Format::scale(at); }) {
        for (int r = 0; r < kStripRows; r++, at += stride) scales.of[r] = Format::scale(at);
    } else {
        scales.copy(at + Format::kScaleAt, stride);
    }
    return vmul(scales.floats(), vset(Format::kUnit));
}

// Two rows of sixteen: those of the next block or strip to L1, and as much of a later strip to L2.
template <int BYTES>
PK_INLINE void ask_ahead(const Strip& s, int block, int part, const uint8_t* near, size_t apart) {
    const uint8_t* later = s.later + (size_t)block * BYTES * kStripRows + part * 2 * BYTES;
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

// What codes count from, where a superblock has but one scale.
PK_INLINE vi below_zero(const float* words) {
    int32_t sum = 0;
    for (int i = 0; i < 8; i++) sum += load_i32(words + kSuperOffsets + i);
    return iset(sum / 128);
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
        if constexpr (std::is_same_v<Format, Tq1>) products = iadd(products, below_zero(words));
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
        case kIQ2_S: return dot_rows_of<Iq2S>;
        case kIQ1_S: return dot_rows_of<Iq1S>;
        case kIQ1_M: return dot_rows_of<Iq1M>;
        case kTQ1_0: return dot_rows_of<Tq1>;
        default: return nullptr;
    }
}
PK_END
#else
PK_BEGIN
DotStrip dot_codebook(int) { return nullptr; }
PK_END
#endif
