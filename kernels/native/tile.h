// A strip of 16 weight rows unpacked to bytes: q[block][4-channel group][row][4], scales d and minima m
// [block][row]. One unpack function per GGML type; everything after it is shared.
#pragma once
#include "simd.h"

PK_BEGIN
struct Tile {
    uint8_t* q;
    float* d;
    float* m;
};

// How the bytes of a tile read: value = d * (byte - zero) + m. AVX-512 multiplies unsigned bytes only.
enum ByteKind { kUnsigned, kUnsignedMinus8, kUnsignedMin, kSigned, kUnsignedMinus128 };

struct TileFormat {
    int type;
    int block_bytes;
    ByteKind kind;
    void (*unpack)(const uint8_t* const rows[kStripRows], int blocks, Tile tile);
};
const TileFormat* tile_format(int ggml_type);

#if defined(__AVX512VNNI__)
constexpr ByteKind kInt8 = kUnsignedMinus128;
constexpr uint8_t kInt8Flip = 0x80;
#else
constexpr ByteKind kInt8 = kSigned;
constexpr uint8_t kInt8Flip = 0;
#endif
PK_END
