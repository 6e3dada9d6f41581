// The product of a tile with a scale per 16 channels and a group of tokens; its order stands in linear_quant.cpp.
#pragma once
#include "tile.h"

PK_BEGIN
#if defined(__AVX512VNNI__)
template <int N, ByteKind KIND>
static void dot_halves(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    __m512 sums[N];
    each<N>(PK_EACH(i) { sums[i] = _mm512_setzero_ps(); });
    const int8_t* data = group.data;
    const float* meta = group.meta;
    const float* halves = group.halves;
    for (int b = 0; b < blocks; b++, data += kBlock * N, meta += 4 * N, halves += 4 * N) {
        __m512 pairs[N];
        each<2>(PK_EACH(half) {
            __m512i dots[N];
            each<N>(PK_EACH(i) {
                dots[i] = KIND == kUnsignedMin ? _mm512_setzero_si512() : _mm512_set1_epi32(load_i32(halves + N * half + i));
            });
            each<4>(PK_EACH(k) {
                constexpr int j = 4 * half + k;
                const __m512i w = _mm512_loadu_si512(tile.q + (size_t)512 * b + 64 * j);
                each<N>(PK_EACH(i) { dots[i] = _mm512_dpbusd_epi32(dots[i], w, broadcast4(data + 4 * (N * j + i))); });
            });
            const __m512 d = _mm512_loadu_ps(tile.d + 32 * b + 16 * half);
            each<N>(PK_EACH(i) {
                const __m512 dot = _mm512_cvtepi32_ps(dots[i]);
                pairs[i] = half ? _mm512_fmadd_ps(dot, d, pairs[i]) : _mm512_mul_ps(dot, d);
            });
        });
        each<N>(PK_EACH(i) { sums[i] = _mm512_fmadd_ps(pairs[i], _mm512_set1_ps(meta[i]), sums[i]); });
        if constexpr (KIND == kUnsignedMin)
            each<2>(PK_EACH(half) {
                const __m512 m = _mm512_loadu_ps(tile.m + 32 * b + 16 * half);
                each<N>(PK_EACH(i) { sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(halves[N * (2 + half) + i]), m, sums[i]); });
            });
    }
    each<N>(PK_EACH(i) { _mm512_storeu_ps(results[i], sums[i]); });
}
#elif defined(__AVX2__)
// Tokens [first, first + N) of the group, rows [side, side + 8).
template <int N, ByteKind KIND>
static void halves_part(const Tile& tile, int blocks, const QuantGroup& group, int first, int side, Results results) {
    __m256 sums[N];
    for (int i = 0; i < N; i++) sums[i] = _mm256_setzero_ps();
    const int n = group.tokens;
    const int8_t* data = group.data + 4 * first;
    const float* meta = group.meta + first;
    const float* halves = group.halves + first;
    for (int b = 0; b < blocks; b++, data += kBlock * n, meta += 4 * n, halves += 4 * n) {
        __m256 pairs[N];
        for (int half = 0; half < 2; half++) {
            __m256i dots[N];
            for (int i = 0; i < N; i++) dots[i] = _mm256_setzero_si256();
            for (int j = 4 * half; j < 4 * half + 4; j++) {
                const __m256i w = _mm256_loadu_si256((const __m256i*)(tile.q + (size_t)512 * b + 4 * side + 64 * j));
                for (int i = 0; i < N; i++)
                    dots[i] = dot4<KIND>(dots[i], w, _mm256_set1_epi32(load_i32(data + 4 * (n * j + i))));
            }
            const __m256 d = _mm256_loadu_ps(tile.d + 32 * b + 16 * half + side);
            for (int i = 0; i < N; i++) {
                const __m256 dot = _mm256_cvtepi32_ps(dots[i]);
                pairs[i] = half ? _mm256_fmadd_ps(dot, d, pairs[i]) : _mm256_mul_ps(dot, d);
            }
        }
        for (int i = 0; i < N; i++) sums[i] = _mm256_fmadd_ps(pairs[i], _mm256_set1_ps(meta[i]), sums[i]);
        if (KIND == kUnsignedMin)
            for (int half = 0; half < 2; half++) {
                const __m256 m = _mm256_loadu_ps(tile.m + 32 * b + 16 * half + side);
                for (int i = 0; i < N; i++)
                    sums[i] = _mm256_fmadd_ps(_mm256_set1_ps(halves[n * (2 + half) + i]), m, sums[i]);
            }
    }
    for (int i = 0; i < N; i++) _mm256_storeu_ps(results[first + i] + side, sums[i]);
}

template <int N, ByteKind KIND>
static void dot_halves(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    for (int side = 0; side < kStripRows; side += 8) {
        halves_part<(N < 4 ? N : 4), KIND>(tile, blocks, group, 0, side, results);
        if constexpr (N > 4) halves_part<N - 4, KIND>(tile, blocks, group, 4, side, results);
    }
}
#else
template <int N, ByteKind KIND>
static void dot_halves(const Tile& tile, int blocks, const QuantGroup& group, Results results) {
    for (int i = 0; i < N; i++) {
        float sums[kStripRows] = {};
        for (int b = 0; b < blocks; b++) {
            int32_t dots[2][kStripRows] = {};
            for (int j = 0; j < 8; j++) {
                const uint8_t* q = tile.q + (size_t)512 * b + 64 * j;
                const int8_t* a = group.data + (size_t)b * kBlock * N + 4 * (N * j + i);
                for (int r = 0; r < kStripRows; r++)
                    for (int c = 0; c < 4; c++) dots[j / 4][r] += byte_value<KIND>(q[4 * r + c]) * a[c];
            }
            const float* halves = group.halves + (size_t)b * 4 * N;
            for (int r = 0; r < kStripRows; r++) {
                const float* d = tile.d + 32 * b + r;
                const float* m = tile.m + 32 * b + r;
                const float pair = (float)dots[1][r] * d[16] + (float)dots[0][r] * d[0];
                sums[r] += pair * group.meta[(size_t)b * 4 * N + i];
                if (KIND == kUnsignedMin) {
                    sums[r] += halves[2 * N + i] * m[0];
                    sums[r] += halves[3 * N + i] * m[16];
                }
            }
        }
        for (int r = 0; r < kStripRows; r++) results[i][r] = sums[r];
    }
}
#endif
PK_END
