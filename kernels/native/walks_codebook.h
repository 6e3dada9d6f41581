// Walks over strips of formats whose indices stand for entries of a codebook, which are gathered for all rows at once, and of
// those that pack less than two bits. Layouts as in formats.h and formats_table.h, results equal to theirs. x86 only.
//
// Longer than other files for it holds one walk per format.
#pragma once
#include "walks.h"

PK_BEGIN
// The four values of the entry at every row's index: a dword of the tile.
PK_INLINE vi gather_four(const uint64_t* book, vi index) {
#if defined(__AVX512VNNI__)
    return _mm512_mask_i32gather_epi32(iset(0), 0xffff, index, book, 8);
#else
    return _mm256_i32gather_epi32((const int*)book, index, 8);
#endif
}

// The same of eight values: two dwords.
PK_INLINE void gather_eight(const uint64_t* book, vi index, vi out[2]) {
#if defined(__AVX512VNNI__)
    const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), odd = ior(even, iset(1));
    const vi low = _mm512_mask_i32gather_epi64(iset(0), 0xff, _mm512_castsi512_si256(index), book, 8);
    const vi high = _mm512_mask_i32gather_epi64(iset(0), 0xff, _mm512_extracti64x4_epi64(index, 1), book, 8);
    out[0] = _mm512_permutex2var_epi32(low, even, high);
    out[1] = _mm512_permutex2var_epi32(low, odd, high);
#else
    const auto* entries = (const long long*)book;
    const __m256 low = _mm256_castsi256_ps(_mm256_i32gather_epi64(entries, _mm256_castsi256_si128(index), 8));
    const __m256 high = _mm256_castsi256_ps(_mm256_i32gather_epi64(entries, _mm256_extracti128_si256(index, 1), 8));
    out[0] = _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88)), 0xd8);
    out[1] = _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd)), 0xd8);
#endif
}

// Magnitudes that make dword J of 32 channels, counted from `zero`; negative where the channel's bit of `signs` is set.
template <int J>
PK_INLINE vi with_signs(vi magnitudes, vi signs, vi zero) {
    alignas(16) static const uint32_t kDwords[4] = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
    const vi spread = ishuffle(signs, iadd(irepeat16(kDwords), iset(0x01010101 * (J / 2))));
    const vi bits = iset(J % 2 ? (int)0x80402010 : 0x08040201);
#if defined(__AVX512VNNI__)
    return _mm512_mask_sub_epi8(iadd8(zero, magnitudes), _mm512_test_epi8_mask(spread, bits), zero, magnitudes);
#else
    const vi set = _mm256_cmpeq_epi8(iand(spread, bits), bits);
    return iadd8(zero, _mm256_sub_epi8(ixor(magnitudes, set), set));
#endif
}

// Seven bits of each byte to eight of even parity.
PK_INLINE vi even_bytes(vi sevens) {
    alignas(16) static const uint8_t kOdd[16] = {0, 128, 128, 0, 128, 0, 0, 128, 128, 0, 0, 128, 0, 128, 128, 0};
    return ior(sevens, ishuffle(irepeat16(kOdd), iand(ixor(sevens, ishr(sevens, 4)), iset8(15))));
}
// Four times seven bits, from the lowest on.
PK_INLINE vi even_signs(vi word) {
    const vi low = ior(iand(word, iset(0x7f)), iand(ishl(word, 1), iset(0x7f00)));
    return even_bytes(ior(low, ior(iand(ishl(word, 2), iset(0x7f0000)), iand(ishl(word, 3), iset(0x7f000000)))));
}

// Scales are odd: twice a number, and one. Of pairs: of either int16.
PK_INLINE vi odd_scale(vi number) { return iadd(ishl(number, 1), iset(1)); }
PK_INLINE vi odd_pair(vi numbers) { return iadd(ishl(numbers, 1), iset(0x00010001)); }

struct CodebookWalk {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = true;
};
struct WholeWalk : CodebookWalk {
    static constexpr bool kHalves = false;
};
struct HalvedWalk : CodebookWalk {
    static constexpr bool kHalves = true;
};

struct WalkIQ2_XXS : WholeWalk {
    static constexpr int kMost = kByteZero + 43;
    static constexpr int kBytes = 9;
    static constexpr int kSuperblock = 66;
    template <class Sink>
    PK_INLINE void give(vi indices, vi word, int b, Sink& sink) {
        const vi signs = even_signs(word), zero = iset8(kByteZero);
        Block block;
        block.scale = odd_scale(ishr(word, 28));
        each<4>(PK_EACH(i) {
            vi two[2];
            gather_eight(codebookIq2Xxs.entries, byte_of(indices, i), two);
            block.w[2 * i] = with_signs<2 * i>(two[0], signs, zero);
            block.w[2 * i + 1] = with_signs<2 * i + 1>(two[1], signs, zero);
        });
        sink.take(b, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = vmul(load_halves(s, at), vset(0.125f));
#pragma GCC unroll 1
            for (int i = 0; i < 8; i += 2) {
                vi raw[4];
                load_dwords(s, at + 2 + 8 * i, raw);
                give(raw[0], raw[1], b + i, sink);
                give(raw[2], raw[3], b + i + 1, sink);
            }
            sink.close(b / 8, super);
        }
    }
};

struct WalkIQ3_XXS : WholeWalk {
    static constexpr int kMost = kByteZero + 62;
    static constexpr int kBytes = 13;
    static constexpr int kSuperblock = 98;
    template <class Sink>
    PK_INLINE void give(const vi indices[2], vi word, int b, Sink& sink) {
        const vi signs = even_signs(word), zero = iset8(kByteZero);
        Block block;
        block.scale = odd_scale(ishr(word, 28));
        each<8>(PK_EACH(j) {
            block.w[j] = with_signs<j>(gather_four(codebookIq3Xxs.entries, byte_of(indices[j / 4], j % 4)), signs, zero);
        });
        sink.take(b, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = vmul(load_halves(s, at), vset(0.25f));
#pragma GCC unroll 1
            for (int four = 0; four < 8; four += 4) {
                vi words[4];
                load_dwords(s, at + 66 + 4 * four, words);
                each<2>(PK_EACH(i) {
                    vi raw[4];
                    load_dwords(s, at + 2 + 8 * (four + 2 * i), raw);
                    give(raw, words[2 * i], b + four + 2 * i, sink);
                    give(raw + 2, words[2 * i + 1], b + four + 2 * i + 1, sink);
                });
            }
            sink.close(b / 8, super);
        }
    }
};

struct WalkIQ3_S : WholeWalk {
    static constexpr int kMost = kByteZero + 15;
    static constexpr int kBytes = 14;
    static constexpr int kSuperblock = 110;
    // `high`: the ninth bits of eight indices.
    template <class Sink>
    PK_INLINE void give(const vi indices[2], vi high, vi signs, vi scale, int b, Sink& sink) {
        const vi zero = iset8(kByteZero), ninth = iset(256);
        Block block;
        block.scale = odd_scale(iand(scale, iset(15)));
        each<8>(PK_EACH(j) {
            const vi index = ior(byte_of(indices[j / 4], j % 4), iand(ishl(high, 8 - j), ninth));
            block.w[j] = with_signs<j>(gather_four(codebookIq3S.entries, index), signs, zero);
        });
        sink.take(b, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = load_halves(s, at);
            vi high[4], scales[4];
            load_dwords(s, at + 66, high);
            load_dwords(s, at + 94, scales);  // the last four bytes
#pragma GCC unroll 1
            for (int half = 0; half < 2; half++) {
                vi signs[4];
                load_dwords(s, at + 74 + 16 * half, signs);
                const vi bits = half ? high[1] : high[0], scale = ishr(scales[3], 16 * half);
                each<2>(PK_EACH(i) {
                    vi raw[4];
                    const int g = 4 * half + 2 * i;
                    load_dwords(s, at + 2 + 8 * g, raw);
                    give(raw, ishr(bits, 16 * i), signs[2 * i], ishr(scale, 8 * i), b + g, sink);
                    give(raw + 2, ishr(bits, 16 * i + 8), signs[2 * i + 1], ishr(scale, 8 * i + 4), b + g + 1, sink);
                });
            }
            sink.close(b / 8, super);
        }
    }
};

// Both halves of 32 channels of eight-value entries, whose magnitudes stay below 64.
struct WalkIQ2Halves : HalvedWalk {
    static constexpr int kMost = 64 + 43;
    static constexpr int kZero = 64;
    template <class Sink>
    PK_INLINE void give(const uint64_t* book, const vi indices[4], vi signs, vi scale, int b, Sink& sink) {
        const vi zero = iset8(kZero);
        each<2>(PK_EACH(half) {
            HalfBlock block;
            block.scale = odd_scale(iand(ishr(scale, 4 * half), iset(15)));
            each<2>(PK_EACH(i) {
                vi two[2];
                constexpr int entry = 2 * half + i;
                gather_eight(book, indices[entry], two);
                block.w[2 * i] = with_signs<2 * entry>(two[0], signs, zero);
                block.w[2 * i + 1] = with_signs<2 * entry + 1>(two[1], signs, zero);
            });
            sink.take_half(b, half, block);
        });
    }
    // Sixteen scales of four bits.
    PK_INLINE void pairs_of(const vi scales[2], Super& super) {
        const vi nibble = iset(15), other = iset(0x000f0000);
        each<4>(PK_EACH(i) {
            const vi two = ishr(scales[i / 2], 16 * (i % 2));
            super.pairs[2 * i] = odd_pair(ior(iand(two, nibble), iand(ishl(two, 8), other)));
            super.pairs[2 * i + 1] = odd_pair(ior(iand(ishr(two, 4), nibble), iand(ishl(two, 4), other)));
        });
    }
};

struct WalkIQ2_XS : WalkIQ2Halves {
    static constexpr int kBytes = 10;
    static constexpr int kSuperblock = 74;
    // Of four codes: nine bits of index, seven of signs.
    PK_INLINE vi signs_of(vi first, vi second) {
        const vi low = ior(iand(ishr(first, 9), iset(0x7f)), iand(ishr(first, 17), iset(0x7f00)));
        return even_bytes(ior(low, ior(iand(ishl(second, 7), iset(0x7f0000)), iand(ishr(second, 1), iset(0x7f000000)))));
    }
    template <class Sink>
    PK_INLINE void give_codes(vi first, vi second, vi scale, int b, Sink& sink) {
        const vi nine = iset(511);
        const vi indices[4] = {iand(first, nine), iand(ishr(first, 16), nine), iand(second, nine), iand(ishr(second, 16), nine)};
        give(codebookIq2Xs.entries, indices, signs_of(first, second), scale, b, sink);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = vmul(load_halves(s, at), vset(0.125f));
            vi scales[4];
            load_dwords(s, at + 58, scales);  // the last eight bytes
#pragma GCC unroll 1
            for (int i = 0; i < 8; i += 2) {
                vi raw[4];
                load_dwords(s, at + 2 + 8 * i, raw);
                const vi scale = ishr(i < 4 ? scales[2] : scales[3], 8 * (i % 4));
                give_codes(raw[0], raw[1], scale, b + i, sink);
                give_codes(raw[2], raw[3], ishr(scale, 8), b + i + 1, sink);
            }
            pairs_of(scales + 2, super);
            sink.close(b / 8, super);
        }
    }
};

struct WalkIQ2_S : WalkIQ2Halves {
    static constexpr int kBytes = 11;
    static constexpr int kSuperblock = 82;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = vmul(load_halves(s, at), vset(0.125f));
            vi tail[4];  // eight bytes of high bits, eight of scales
            load_dwords(s, at + 66, tail);
#pragma GCC unroll 1
            for (int four = 0; four < 8; four += 4) {
                vi low[4], signs[4];
                load_dwords(s, at + 2 + 4 * four, low);
                load_dwords(s, at + 34 + 4 * four, signs);
                const vi high = four ? tail[1] : tail[0], scale = four ? tail[3] : tail[2];
                each<4>(PK_EACH(g) {
                    vi indices[4];
                    const vi two = iset(0x300), bits = ishr(high, 8 * g);
                    each<4>(PK_EACH(i) { indices[i] = ior(byte_of(low[g], i), iand(ishl(bits, 8 - 2 * i), two)); });
                    give(codebookIq2S.entries, indices, signs[g], ishr(scale, 8 * g), b + four + g, sink);
                });
            }
            pairs_of(tail + 2, super);
            sink.close(b / 8, super);
        }
    }
};

// Bytes of 1 where a dword's bit is clear, of -1 where it is set: the shift of an eighth of IQ1's patterns.
PK_INLINE vi eighth_of(vi v, int bit) { return ior(isar(ishl(v, 31 - bit), 31), iset(0x01010101)); }

struct WalkIQ1_S : WholeWalk {
    static constexpr int kMost = kByteZero + 9;
    static constexpr int kBytes = 7;
    static constexpr int kSuperblock = 50;
    // The low half of `head`: three bits more of four indices, the scale, the shift.
    template <class Sink>
    PK_INLINE void give(vi low, vi head, int b, Sink& sink) {
        const vi moved = ishl(head, 8), three = iset(0x700), shift = iadd8(iset8(kByteZero), eighth_of(head, 15));
        Block block;
        block.scale = odd_scale(iand(ishr(head, 12), iset(7)));
        each<4>(PK_EACH(i) {
            vi two[2];
            gather_eight(codebookIq1S.entries, ior(byte_of(low, i), iand(ishr(moved, 3 * i), three)), two);
            block.w[2 * i] = iadd8(two[0], shift);
            block.w[2 * i + 1] = iadd8(two[1], shift);
        });
        sink.take(b, block);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            Super super;
            super.d = vmul(load_halves(s, at), vset(0.125f));
            vi heads[4];
            load_dwords(s, at + 34, heads);
#pragma GCC unroll 1
            for (int four = 0; four < 8; four += 4) {
                vi low[4];
                load_dwords(s, at + 2 + 4 * four, low);
                each<2>(PK_EACH(i) {
                    const vi head = four ? heads[2 + i] : heads[i];
                    give(low[2 * i], head, b + four + 2 * i, sink);
                    give(low[2 * i + 1], ishr(head, 16), b + four + 2 * i + 1, sink);
                });
            }
            sink.close(b / 8, super);
        }
    }
};

struct WalkIQ1_M : HalvedWalk {
    static constexpr int kMost = 16 + 9;
    static constexpr int kZero = 16;
    static constexpr int kBytes = 7;
    static constexpr int kSuperblock = 56;
    // The top nibbles of four words, of which scales fill the rest.
    PK_INLINE vf scale_of(const vi words[2]) {
        const vi low = ior(iand(ishr(words[0], 12), iset(0x0f)), iand(ishr(words[0], 24), iset(0xf0)));
        const vi high = ior(iand(ishr(words[1], 4), iset(0x0f00)), iand(ishr(words[1], 16), iset(0xf000)));
        return vmul(ihalf_floats(ior(low, high)), vset(0.125f));
    }
    PK_INLINE void pairs_of(const vi words[2], Super& super) {
        const vi three = iset(7), other = iset(0x70000);
        each<4>(PK_EACH(i) {
            const vi four = ishr(words[i / 2], 16 * (i % 2));
            super.pairs[2 * i] = odd_pair(ior(iand(four, three), iand(ishl(four, 10), other)));
            super.pairs[2 * i + 1] = odd_pair(ior(iand(ishr(four, 3), three), iand(ishl(four, 7), other)));
        });
    }
    // Per index a nibble of `high`: three bits more, and the shift.
    template <class Sink>
    PK_INLINE void give(vi low, vi high, vi scales, int b, Sink& sink) {
        const vi moved = ishl(high, 8), three = iset(0x700), zero = iset8(kZero);
        each<2>(PK_EACH(half) {
            HalfBlock block;
            block.scale = odd_scale(iand(ishr(scales, 3 * half), iset(7)));
            each<2>(PK_EACH(i) {
                vi two[2];
                constexpr int entry = 2 * half + i;
                gather_eight(codebookIq1S.entries, ior(byte_of(low, entry), iand(ishr(moved, 4 * entry), three)), two);
                const vi shift = iadd8(zero, eighth_of(high, 4 * entry + 3));
                block.w[2 * i] = iadd8(two[0], shift);
                block.w[2 * i + 1] = iadd8(two[1], shift);
            });
            sink.take_half(b, half, block);
        });
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            vi tail[4];  // eight bytes more, and the words
            load_dwords(s, at + 40, tail);
            Super super;
            super.d = scale_of(tail + 2);
#pragma GCC unroll 1
            for (int four = 0; four < 8; four += 4) {
                vi low[4], high[4];
                load_dwords(s, at + 4 * four, low);
                load_dwords(s, at + 32, high);
                const vi words = four ? tail[3] : tail[2];
                each<4>(PK_EACH(g) {
                    const vi two = four ? (g < 2 ? high[2] : high[3]) : (g < 2 ? high[0] : high[1]);
                    give(low[g], ishr(two, 16 * (g % 2)), ishr(words, 16 * (g / 2) + 6 * (g % 2)), b + four + g, sink);
                });
            }
            pairs_of(tail + 2, super);
            sink.close(b / 8, super);
        }
    }
};

// Bytes of base-3 fractions, most significant digit first: a product with a power of three, modulo 256, begins with the
// digit that follows.
struct WalkTQ1_0 : WholeWalk {
    static constexpr int kMost = kByteZero + 2;
    static constexpr int kBytes = 7;
    static constexpr int kSuperblock = 54;
    // floor(3 v / 256) - 1, and v * 3 modulo 256.
    PK_INLINE vi next_digit(vi& v) {
#if defined(__AVX512VNNI__)
        const vi none = iset8(kByteZero - 1), one = iset8(kByteZero), two = iset8(kByteZero + 1);
        const vi digit = _mm512_mask_blend_epi8(_mm512_cmpge_epu8_mask(v, iset8(171)),
                                                _mm512_mask_blend_epi8(_mm512_cmpge_epu8_mask(v, iset8(86)), none, one), two);
#else
        const vi second = _mm256_cmpeq_epi8(_mm256_max_epu8(v, iset8(86)), v);
        const vi third = _mm256_cmpeq_epi8(_mm256_max_epu8(v, iset8(171)), v);
        const vi digit = _mm256_sub_epi8(iset8(kByteZero - 1), iadd8(second, third));
#endif
        v = iadd8(v, iadd8(v, v));
        return digit;
    }
    PK_INLINE void digits(vi packed[], vi out[], int count) {
        for (int j = 0; j < count; j++) out[j] = next_digit(packed[j]);
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 8) {
            const size_t at = (size_t)kSuperblock * (b / 8);
            vi packed[8], tail[4];
            load_dwords(s, at, packed);
            load_dwords(s, at + 16, packed + 4);
            Block block;
            block.scale = iset(1);
#pragma GCC unroll 1
            for (int i = 0; i < 5; i++) {
                digits(packed, block.w, 8);
                sink.take(b + i, block);
            }
            load_dwords(s, at + 32, packed);
            load_dwords(s, at + 38, tail);  // the last six bytes
#pragma GCC unroll 1
            for (int i = 5; i < 7; i++) {
                digits(packed, block.w, 4);
                digits(packed, block.w + 4, 4);
                sink.take(b + i, block);
            }
            vi four = ior(ishr(tail[2], 16), ishl(tail[3], 16));
            digits(packed, block.w, 4);
            for (int j = 4; j < 8; j++) block.w[j] = next_digit(four);
            sink.take(b + 7, block);
            Super super;
            super.d = ihalf_floats(ishr(tail[3], 16));
            sink.close(b / 8, super);
        }
    }
};

struct PackedWalk {
    static constexpr ByteKind kKind = kInt8;
    static constexpr bool kSuperblocks = false;
    static constexpr bool kHalves = false;
};

struct WalkQ1_0 : PackedWalk {
    static constexpr int kMost = kByteZero + 1;
    static constexpr int kBytes = 5;
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        const vi plus = iset8(kByteZero + 1), minus = iset8(kByteZero - 1);
        for (int b = 0; b < blocks; b += 4) {
            const size_t at = (size_t)18 * (b / 4);
            vi bits[4];
            load_dwords(s, at + 2, bits);
            Block block;
            block.d = load_halves(s, at);
            each<4>(PK_EACH(i) {
                for (int j = 0; j < 8; j++) block.w[j] = fifth_bits(bits[i], j, plus, minus);
                sink.take(b + i, block);
            });
        }
    }
};

struct WalkQ2_0 : PackedWalk {
    static constexpr int kMost = kByteZero + 2;
    static constexpr int kBytes = 9;
    // Byte J of a dword as four codes.
    template <int J>
    PK_INLINE vi codes(vi packed) {
        alignas(16) static const uint32_t kDwords[4] = {0, 0x04040404, 0x08080808, 0x0c0c0c0c};
        const vi spread = ishuffle(packed, iadd(irepeat16(kDwords), iset(0x01010101 * J)));
        const vi low = ichoose(spread, iset(0x40100401), iset8(kByteZero), iset8(kByteZero - 1));
        return iadd8(low, ichoose(spread, iset((int)0x80200802), iset8(2), iset8(0)));
    }
    template <class Sink>
    PK_INLINE void walk(const Strip& s, int blocks, Sink& sink) {
        for (int b = 0; b < blocks; b += 2) {
            const size_t at = (size_t)18 * (b / 2);
            vi packed[4];
            load_dwords(s, at + 2, packed);
            Block block;
            block.d = load_halves(s, at);
            each<2>(PK_EACH(i) {
                each<8>(PK_EACH(j) { block.w[j] = codes<j % 4>(packed[2 * i + j / 4]); });
                sink.take(b + i, block);
            });
        }
    }
};
PK_END
