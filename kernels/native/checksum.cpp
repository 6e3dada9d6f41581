// XXH3-128 (seed 0, default secret) of more than 240 bytes, after the specification of the xxHash algorithm
// (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). kernels/checksum/reference.py is the truth.
#include "level.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

PK_BEGIN
constexpr size_t kStripe = 64, kSecret = 192, kStripesPerBlock = (kSecret - kStripe) / 8;
constexpr uint64_t kPrime32[] = {0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du};
constexpr uint64_t kPrime64[] = {0x9E3779B185EBCA87u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u, 0x85EBCA77C2B2AE63u,
                                 0x27D4EB2F165667C5u};
alignas(64) constexpr uint8_t secret[kSecret] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d, 0xe9,
    0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78,
    0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6,
    0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71,
    0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3,
    0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8,
    0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa,
    0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b,
    0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95,
    0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

static inline uint64_t load_u64(const uint8_t* p) {  // little-endian hosts, as everywhere here
    uint64_t v;
    __builtin_memcpy(&v, p, 8);
    return v;
}

// Eight accumulators of 64 bits.
#if defined(__AVX512F__)
struct Lanes {
    __m512i v;
    void load(const uint64_t* p) { v = _mm512_loadu_si512(p); }
    void store(uint64_t* p) const { _mm512_storeu_si512(p, v); }
    void add(const uint8_t* data, const uint8_t* key) {
        const __m512i input = _mm512_loadu_si512(data), mixed = _mm512_xor_si512(input, _mm512_loadu_si512(key));
        const __m512i product = _mm512_mul_epu32(mixed, _mm512_srli_epi64(mixed, 32));
        v = _mm512_add_epi64(v, _mm512_add_epi64(product, _mm512_shuffle_epi32(input, _MM_PERM_BADC)));
    }
};
#elif defined(__AVX2__)
struct Lanes {
    __m256i low, high;
    void load(const uint64_t* p) {
        low = _mm256_loadu_si256((const __m256i*)p);
        high = _mm256_loadu_si256((const __m256i*)(p + 4));
    }
    void store(uint64_t* p) const {
        _mm256_storeu_si256((__m256i*)p, low);
        _mm256_storeu_si256((__m256i*)(p + 4), high);
    }
    static __m256i half(__m256i sum, const uint8_t* data, const uint8_t* key) {
        const __m256i input = _mm256_loadu_si256((const __m256i*)data);
        const __m256i mixed = _mm256_xor_si256(input, _mm256_loadu_si256((const __m256i*)key));
        const __m256i product = _mm256_mul_epu32(mixed, _mm256_srli_epi64(mixed, 32));
        return _mm256_add_epi64(sum, _mm256_add_epi64(product, _mm256_shuffle_epi32(input, 0x4e)));
    }
    void add(const uint8_t* data, const uint8_t* key) {
        low = half(low, data, key);
        high = half(high, data + 32, key + 32);
    }
};
#else
struct Lanes {
    uint64_t v[8];
    void load(const uint64_t* p) { __builtin_memcpy(v, p, 64); }
    void store(uint64_t* p) const { __builtin_memcpy(p, v, 64); }
    void add(const uint8_t* data, const uint8_t* key) {
        for (int i = 0; i < 8; i++) {
            const uint64_t input = load_u64(data + 8 * i), mixed = input ^ load_u64(key + 8 * i);
            v[i ^ 1] += input;
            v[i] += (mixed & 0xffffffffu) * (mixed >> 32);
        }
    }
};
#endif

static void scramble(uint64_t* acc) {
    for (int i = 0; i < 8; i++)
        acc[i] = (acc[i] ^ (acc[i] >> 47) ^ load_u64(secret + kSecret - kStripe + 8 * i)) * kPrime32[0];
}

static uint64_t folded(uint64_t a, uint64_t b) {
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t merged(const uint64_t* acc, const uint8_t* key, uint64_t sum) {
    for (int i = 0; i < 4; i++)
        sum += folded(acc[2 * i] ^ load_u64(key + 16 * i), acc[2 * i + 1] ^ load_u64(key + 16 * i + 8));
    sum = (sum ^ (sum >> 37)) * 0x165667919E3779F9u;
    return sum ^ (sum >> 32);
}

static void put_big_endian(uint64_t value, uint8_t* out) {
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> (56 - 8 * i));
}

void checksum(const uint8_t* data, size_t length, uint8_t* out) {
    alignas(64) uint64_t acc[8] = {kPrime32[2], kPrime64[0], kPrime64[1], kPrime64[2],
                                   kPrime64[3], kPrime32[1], kPrime64[4], kPrime32[0]};
    const size_t blocks = (length - 1) / (kStripe * kStripesPerBlock);
    Lanes lanes;
    lanes.load(acc);
    const uint8_t* at = data;
    for (size_t block = 0; block < blocks; block++) {
        for (size_t i = 0; i < kStripesPerBlock; i++, at += kStripe) lanes.add(at, secret + 8 * i);
        lanes.store(acc);
        scramble(acc);
        lanes.load(acc);
    }
    const size_t stripes = (data + length - 1 - at) / kStripe;
    for (size_t i = 0; i < stripes; i++, at += kStripe) lanes.add(at, secret + 8 * i);
    lanes.add(data + length - kStripe, secret + kSecret - kStripe - 7);
    lanes.store(acc);
    put_big_endian(merged(acc, secret + kSecret - kStripe - 11, ~(length * kPrime64[1])), out);
    put_big_endian(merged(acc, secret + 11, length * kPrime64[0]), out + 8);
}
PK_END
