// Attention of every token of a text to all of them: products of bfloat16 pairs where the level has them, else float32.
#pragma once
#include "bert.h"
#include "simd.h"

PK_BEGIN
constexpr int kQueries = 4;
constexpr int kPair = 2 * W;

static inline int padded(int n) { return (n + kPair - 1) / kPair * kPair; }

#if defined(__AVX512BF16__)
constexpr int kJoined = 2;  // numbers in a cell; products add those of all of them
typedef uint32_t cell;
typedef __m512bh vcell;
static inline vcell vcells(const cell* p) { return (__m512bh)_mm512_loadu_si512(p); }
static inline vcell vspread(cell x) { return (__m512bh)_mm512_set1_epi32((int)x); }
static inline vf vadd_products(vf sum, vcell a, vcell b) { return _mm512_dpbf16_ps(sum, a, b); }
static inline __m256i halves(const float* x) { return (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)); }
// n, a multiple of W, numbers joined with their neighbours.
static inline void to_cells(const float* x, int n, cell* out) {
    for (int i = 0; i < n; i += W) _mm256_storeu_si256((__m256i*)(out + i / 2), halves(x + i));
}
// Numbers of two rows joined one by one; of one where there is no second.
static inline void join_rows(const float* one, const float* other, int n, cell* out) {
    for (int i = 0; i < n; i += W) {
        const __m512i low = _mm512_cvtepu16_epi32(halves(one + i));
        const __m512i high = other ? _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves(other + i)), 16) : _mm512_setzero_si512();
        _mm512_storeu_si512(out + i, _mm512_or_si512(low, high));
    }
}
#else
constexpr int kJoined = 1;
typedef float cell;
typedef vf vcell;
static inline vcell vcells(const cell* p) { return vload(p); }
static inline vcell vspread(cell x) { return vset(x); }
static inline vf vadd_products(vf sum, vcell a, vcell b) { return vfma(a, b, sum); }
static inline void to_cells(const float* x, int n, cell* out) { __builtin_memcpy(out, x, n * sizeof(float)); }
static inline void join_rows(const float* one, const float*, int n, cell* out) { to_cells(one, n, out); }
#endif

static inline float most_of(vf x) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps(x);
#else
    return vhighest(x);
#endif
}

static inline float sum_of(vf x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps(x);
#else
    return vsum(x);
#endif
}

// One head of a text of n tokens.
struct HeadRoom {
    int n, width, dim;  // width: n rounded up to kPair
    cell* keys;         // [dim / kJoined][width], zeros after n
    cell* values;       // [n / kJoined, rounded up][dim]
    cell* queries;      // [kQueries][dim / kJoined]
    float* scores;      // [kQueries][width]
    cell* shares;       // [kQueries][width / kJoined]
};

static inline size_t bert_attention_floats(int n, int dim) {
    return (size_t)padded(n) * 2 * (dim + kQueries) + (size_t)kQueries * dim;
}

static HeadRoom head_room(int n, int dim, float* scratch) {
    const int width = padded(n);
    HeadRoom r{n, width, dim, (cell*)scratch, nullptr, nullptr, nullptr, nullptr};
    r.values = r.keys + (size_t)width * dim;
    r.scores = (float*)(r.values + (size_t)width * dim);
    r.shares = (cell*)(r.scores + (size_t)kQueries * width);
    r.queries = r.shares + (size_t)kQueries * width;
    return r;
}

// `rows`: keys of the head, `hidden` further its values.
static void gather_head(const HeadRoom& r, const float* rows, size_t stride, int hidden) {
    const int parts = r.dim / kJoined;
    for (int i = 0; i < r.width; i++) {
        cell key[kBertHead / kJoined];
        if (i < r.n) to_cells(rows + i * stride, r.dim, key);
        for (int d = 0; d < parts; d++) r.keys[(size_t)d * r.width + i] = i < r.n ? key[d] : cell(0);
    }
    for (int i = 0; i < r.n; i += kJoined) {
        const float* row = rows + i * stride + hidden;
        join_rows(row, i + 1 < r.n ? row + stride : nullptr, r.dim, r.values + (size_t)i / kJoined * r.dim);
    }
}

static void dot_keys(const HeadRoom& r, const float* queries, size_t stride, float scale) {
    const int parts = r.dim / kJoined;
    for (int q = 0; q < kQueries; q++) to_cells(queries + q * stride, r.dim, r.queries + q * parts);
    for (int i = 0; i < r.width; i += kPair) {
        vf sums[kQueries][2];
        each<kQueries>(PK_EACH(q) { sums[q][0] = sums[q][1] = vzero(); });
        for (int d = 0; d < parts; d++) {
            const vcell a = vcells(r.keys + (size_t)d * r.width + i), b = vcells(r.keys + (size_t)d * r.width + i + W);
            each<kQueries>(PK_EACH(q) {
                const vcell x = vspread(r.queries[q * parts + d]);
                sums[q][0] = vadd_products(sums[q][0], x, a);
                sums[q][1] = vadd_products(sums[q][1], x, b);
            });
        }
        each<kQueries>(PK_EACH(q) {
            vstore(r.scores + q * r.width + i, vmul(sums[q][0], vset(scale)));
            vstore(r.scores + q * r.width + i + W, vmul(sums[q][1], vset(scale)));
        });
    }
}

// Turns the first n scores into shares of 1, the rest into 0; returns what the shares are to be divided by.
static float exponentials(const HeadRoom& r, int query) {
    float* scores = r.scores + query * r.width;
    for (int i = r.n; i < r.width; i++) scores[i] = -1e30f;
    vf most = vset(-1e30f), sum = vzero();
    for (int i = 0; i < r.width; i += W) most = vmax(most, vload(scores + i));
    const vf highest = vset(most_of(most));
    for (int i = 0; i < r.width; i += W) {
        const vf e = vexp(vsub(vload(scores + i), highest));
        sum = vadd(sum, e);
        vstore(scores + i, e);
    }
    to_cells(scores, r.width, r.shares + (size_t)query * r.width / kJoined);
    return sum_of(sum);
}

static void add_values(const HeadRoom& r, const float* totals, int queries, float* out, size_t stride) {
    const int rows = (r.n + kJoined - 1) / kJoined, width = r.width / kJoined;
    for (int d = 0; d < r.dim; d += kPair) {
        const int second = d + W < r.dim ? W : 0;  // the first vector once more where there is no second
        vf sums[kQueries][2];
        each<kQueries>(PK_EACH(q) { sums[q][0] = sums[q][1] = vzero(); });
        for (int i = 0; i < rows; i++) {
            const cell* row = r.values + (size_t)i * r.dim + d;
            const vcell a = vcells(row), b = vcells(row + second);
            each<kQueries>(PK_EACH(q) {
                const vcell x = vspread(r.shares[q * width + i]);
                sums[q][0] = vadd_products(sums[q][0], x, a);
                sums[q][1] = vadd_products(sums[q][1], x, b);
            });
        }
        each<kQueries>(PK_EACH(q) {
            if (q < queries) {
                const vf share = vset(1.0f / totals[q]);
                vstore(out + q * stride + d, vmul(sums[q][0], share));
                vstore(out + q * stride + d + second, vmul(sums[q][1], share));
            }
        });
    }
}

// qkv [n, 3 * hidden] -> out [n, hidden]. Rows of qkv up to the next multiple of kQueries are read, not used.
static void attend_text(const float* qkv, int n, int hidden, int heads, float* out, float* scratch) {
    const int dim = hidden / heads;
    const size_t stride = (size_t)3 * hidden;
    const HeadRoom room = head_room(n, dim, scratch);
    const float scale = 1.0f / __builtin_sqrtf((float)dim);
    for (int head = 0; head < heads; head++) {
        gather_head(room, qkv + hidden + head * dim, stride, hidden);
        for (int first = 0; first < n; first += kQueries) {
            dot_keys(room, qkv + first * stride + head * dim, stride, scale);
            float totals[kQueries];
            for (int q = 0; q < kQueries; q++) totals[q] = exponentials(room, q);
            add_values(room, totals, imin(kQueries, n - first), out + (size_t)first * hidden + head * dim, hidden);
        }
    }
}
PK_END
