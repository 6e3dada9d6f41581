// Sinks that store a tile, alone or beside the products of a group of tokens; and walks with each of the sinks.
#pragma once
#include "sinks.h"

PK_BEGIN
#if defined(PK_PAIRS)
// Small signed bytes count from a zero point in a tile: products of unsigned ones need no signs moved for each token.
constexpr ByteKind kind_of_small(int most) {
    return most <= 16 ? kUnsignedMinus16 : most <= 32 ? kUnsignedMinus32 : most <= 64 ? kUnsignedMinus64 : kSigned;
}
template <class Walk>
constexpr ByteKind tile_kind() {
    if constexpr (Walk::kKind == kUnsignedMin) return Walk::kMost <= 15 ? kUnsignedMin15 : kUnsignedMin;
    else if constexpr (Walk::kKind != kSigned) return Walk::kKind;
    else if constexpr (Walk::kHalves) return kind_of_small(imax(Walk::kZero, Walk::kMost - Walk::kZero));
    else return kind_of_small(Walk::kMost);
}
#else
template <class Walk>
constexpr ByteKind tile_kind() { return Walk::kKind; }
#endif

// What a tile's bytes have more than a walk's.
template <class Walk>
constexpr int zero_moved() {
    constexpr ByteKind kKind = tile_kind<Walk>();
    constexpr int kTileZero = kKind == Walk::kKind ? kByteZero : kZeroOf<kKind>;
    if constexpr (has_minima(kKind)) return 0;
    else if constexpr (Walk::kHalves) return kTileZero - Walk::kZero;
    else return kTileZero - kByteZero;
}

// `tile` begins with the strip's first row.
template <class Walk>
struct TileSink {
    static constexpr bool kMin = Walk::kKind == kUnsignedMin;
    static constexpr int kScales = Walk::kHalves ? 16 : 8;
    Strip strip;
    Tile tile;
    TileSink(const Strip& rows, const Tile& whole, int row)
        : strip(rows), tile{whole.q + kTokenRun * row, whole.d + row, whole.m + row, whole.factors + row} {}
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        prefetch_block<Walk>(strip, b);
        store(b, block);
    }
    PK_INLINE_MEMBER static vi as_factor(vi scale) {
#if defined(PK_PAIRS)
        return ior(iand(scale, iset(0xffff)), ishl(scale, 16));
#else
#if defined(PK_SMALL_SUMS)
        if constexpr (Walk::kHalves && !kMin) return iand(scale, iset(0xffff));
#endif
        return scale;
#endif
    }
    PK_INLINE_MEMBER int32_t* factors(int superblock) const { return tile.factors + (size_t)superblock * kFactorWords<kScales, kMin>; }
    PK_INLINE_MEMBER void take_half(int b, int half, const HalfBlock& block) {
        prefetch_half<Walk>(strip, b, half);
        store_half(b, half, block);
    }
    template <int COUNT>
    PK_INLINE_MEMBER void store_bytes(const vi* w, uint8_t* q) {
        vi bytes[COUNT];
        each<COUNT>(PK_EACH(j) {
            if constexpr (zero_moved<Walk>() != 0) bytes[j] = iadd8(w[j], iset8(zero_moved<Walk>()));
            else bytes[j] = w[j];
        });
        store_rows<COUNT>(q, bytes);
    }
    PK_INLINE_MEMBER void store(int b, const Block& block) {
        store_bytes<8>(block.w, tile.q + (size_t)512 * b);
        if constexpr (Walk::kSuperblocks) istore(factors(b / 8) + b % 8 * 16, as_factor(block.scale));
        else {
            float* d = tile.d + (Walk::kHalves ? 32 : 16) * (size_t)b;
            vstore(d, block.d);
            if constexpr (Walk::kHalves) vstore(d + 16, block.d2);
            if constexpr (kMin) vstore(tile.m + 16 * (size_t)b, block.m);
        }
    }
    PK_INLINE_MEMBER void store_half(int b, int half, const HalfBlock& block) {
        store_bytes<4>(block.w, tile.q + (size_t)512 * b + 256 * half);
        istore(factors(b / 8) + (b % 8 * 2 + half) * 16, as_factor(block.scale));
    }
    PK_INLINE_MEMBER void close(int superblock, const Super& super) {
        vstore(tile.d + 16 * (size_t)superblock, super.d);
        if constexpr (kMin) {
            vstore(tile.m + 16 * (size_t)superblock, super.m);
            each<kScales / 2>(PK_EACH(j) { istore(factors(superblock) + 16 * (kScales + j), super.pairs[j]); });
        }
    }
};

template <bool SUPER, int N, class Walk>
struct Dots { typedef DotSink<N, Walk> Sink; };
template <int N, class Walk>
struct Dots<true, N, Walk> { typedef SuperDotSink<N, Walk> Sink; };
template <int N, class Walk>
using DotsOf = typename Dots<Walk::kSuperblocks, N, Walk>::Sink;

// Both at once: the bytes are in registers anyway.
template <int N, class Walk>
struct FirstSink {
    DotsOf<N, Walk> dots;
    TileSink<Walk> tiles;
    PK_INLINE_MEMBER void take(int b, const Block& block) {
        tiles.store(b, block);
        dots.take(b, block);
    }
    PK_INLINE_MEMBER void take_half(int b, int half, const HalfBlock& block) {
        tiles.store_half(b, half, block);
        dots.take_half(b, half, block);
    }
    PK_INLINE_MEMBER void close(int superblock, const Super& super) {
        tiles.close(superblock, super);
        dots.close(superblock, super);
    }
};

template <class Walk>
static void walk_strip(Strip strip, int blocks, Tile tile) {
    for (int row = 0; row < kStripRows; row += W) {
        const Strip rows = rows_from(strip, row);
        TileSink<Walk> sink(rows, tile, row);
        Walk::walk(rows, blocks, sink);
    }
}

template <int N, class Walk>
static void dot_strip(Strip strip, int blocks, const QuantGroup& group, Results results) {
    for (int row = 0; row < kStripRows; row += W) {
        const Strip rows = rows_from(strip, row);
        DotsOf<N, Walk> sink(rows, group);
        Walk::walk(rows, blocks, sink);
        sink.put(results, row);
    }
}

template <class Walk>
static void first_tokens(Strip strip, int blocks, const QuantGroup& group, Tile tile, Results results) {
    for (int row = 0; row < kStripRows; row += W) {
        const Strip rows = rows_from(strip, row);
        FirstSink<kGroupTokens, Walk> sink{DotsOf<kGroupTokens, Walk>(rows, group), TileSink<Walk>(rows, tile, row)};
        Walk::walk(rows, blocks, sink);
        sink.dots.put(results, row);
    }
}

template <class Walk, class Places>
struct FewTokens;
template <class Walk, int... I>
struct FewTokens<Walk, std::integer_sequence<int, I...>> {
    static constexpr DotStrip kTable[] = {dot_strip<I + 1, Walk>...};
};
template <class Walk>
static constexpr const DotStrip* few_tokens = FewTokens<Walk, std::make_integer_sequence<int, kDirectTokens>>::kTable;

template <class Walk>
static constexpr TileFormat direct(int type) {
    constexpr TileShape kShape = !Walk::kSuperblocks ? (Walk::kHalves ? kHalved : kWhole)
                                 : Walk::kHalves     ? kSuperHalvedSmall
                                 : kSmall<Walk>      ? kSuperSmall
                                                     : kSuperWhole;
#if defined(__ARM_FEATURE_DOTPROD) || defined(PK_PAIRS)
    return {type, tile_kind<Walk>(), kShape, walk_strip<Walk>, few_tokens<Walk>, nullptr};
#else
    return {type, tile_kind<Walk>(), kShape, walk_strip<Walk>, few_tokens<Walk>, first_tokens<Walk>};
#endif
}

template <int N>
static const TileFormat* format_among(const TileFormat (&formats)[N], int ggml_type) {
    for (const TileFormat& format : formats)
        if (format.type == ggml_type) return &format;
    return nullptr;
}
PK_END
