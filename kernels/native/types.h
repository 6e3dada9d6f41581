// Plain data shared by all instruction set levels. Nothing here may contain code that a wide level could emit.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pk {

constexpr int kStripRows = 16;       // output rows that one work unit of a matrix product covers
constexpr int kStripsAtOnce = 4;    // strips of many tokens that a thread takes together
constexpr int kGroupTokens = 8;      // tokens whose quantised activations are interleaved
constexpr int kBlock = 32;           // channels that share one activation scale beside most formats,
constexpr int kSuper = 256;          // and beside formats with superblocks of so many
constexpr int kPartition = 512;      // tokens per softmax partition; part of the numeric contract
constexpr int kTileTokens = 64;      // keys converted at a time inside a partition

enum GgmlType : int32_t {
    kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7, kQ8_0 = 8, kQ2_K = 10, kQ3_K = 11, kQ4_K = 12,
    kQ5_K = 13, kQ6_K = 14, kIQ2_XXS = 16, kIQ2_XS = 17, kIQ3_XXS = 18, kIQ1_S = 19, kIQ4_NL = 20, kIQ3_S = 21,
    kIQ2_S = 22, kIQ4_XS = 23, kIQ1_M = 29, kBF16 = 30, kTQ1_0 = 34, kTQ2_0 = 35, kMXFP4 = 39, kNVFP4 = 40, kQ1_0 = 41,
    kQ2_0 = 42, kTypes = 43
};
enum KvType : int32_t { kKvF32 = 0, kKvF16 = 1, kKvBF16 = 2, kKvQ8 = 3, kKvQ4 = 4 };
enum RopeKind : int32_t { kRopeNorm = 1, kRopeNeox = 2 };
constexpr int kMaxExperts = 1024;

enum Gating : int32_t { kGateSoftmax = 0, kGateSigmoid = 1, kGateSoftmaxChosen = 2, kGateSqrtSoftplus = 3 };
enum Activation : int32_t { kSilu = 0, kGeluTanh = 1, kSwigluClamped = 2 };

struct TensorView {
    const uint8_t* data;
    int32_t type;
    int32_t rows;
    int32_t cols;
    size_t row_bytes;
};

// How a product rounds its activations: not at all, or to int8 with a scale per kBlock or per kSuper channels.
enum Rounding : int32_t { kNotRounded = 0, kPerBlock = 1, kPerSuper = 2 };
constexpr Rounding kRoundings[] = {kPerBlock, kPerSuper};

// Words of 4 bytes that a superblock's meta holds for each token, and where: the scale, int32 -128 * sum of every 32 and of
// every 16 channels, int16 pairs of the sums of 32 and of 16: of four neighbours a, b, c, d the pairs (a, c), (b, d), and the largest
// sum of the magnitudes of 16 channels.
enum SuperWord { kSuperScale = 0, kSuperOffsets = 1, kSuperHalfOffsets = 9, kSuperPairs = 25, kSuperHalfPairs = 29,
                 kSuperMost = 37, kSuperWords = 38 };

// Words that a block's meta holds for each token, and where: the scale, scale * sum of the 32 channels, int32 -8 * sum and
// -128 * sum (counted from kSumStart), and -kSumStartValue * scale where a level wants it.
enum BlockWord { kBlockScale = 0, kBlockSum = 1, kBlockOffset8 = 2, kBlockOffset128 = 3, kBlockStart = 4, kBlockWords = 5 };

// Activations of up to 8 tokens, interleaved: data[block][4-channel group][token][4] (8 for 4
// where the level's `run` is 8). Rounded per block, meta of a block is
// [kBlockWords][tokens]; for formats with a scale per 16 channels `halves` of a block are -128 * sum[tokens] of either half
// as int32. Rounded per superblock, meta of a superblock is [kSuperWords][tokens].
struct QuantGroup {
    int8_t* data;
    float* meta;
    float* halves;           // null: not wanted
    int tokens;
};

// Words of meta, and of halves, of one token.
constexpr size_t meta_words(Rounding rounding, size_t cols) {
    return rounding == kPerSuper ? cols / kSuper * kSuperWords : cols / kBlock * kBlockWords;
}
constexpr size_t half_words(size_t cols) { return cols / kBlock * 2; }

struct LinearArgs {
    TensorView weight;
    const float* src;        // [rows, src_stride], used by float weights
    size_t src_stride;
    const int8_t* quant;     // groups one after the other, rounded as the weight wants it
    const float* quant_meta;
    const float* quant_halves;
    float* out;
    size_t out_stride;
    const float* bias;       // [weight.rows] or null
    float scale;
    bool accumulate;
    int rows;                // tokens
    const uint8_t* then = nullptr;  // weights that are read next; null: those that follow in the matrix
    const int* out_rows = nullptr;  // row of `out` for each token, times out_weights, added to what is there; null: token t is row t
    const float* out_weights = nullptr;
    size_t out_strip = kStripRows;  // floats from the outputs of a strip to those of the next one
    float* out_at(int token, int strip) const {
        return out + static_cast<size_t>(out_rows ? out_rows[token] : token) * out_stride + strip * out_strip;
    }
};

struct RouteArgs {
    int experts;
    int used;
    int gating;
    int groups;
    int groups_used;
    bool normalise;
    float scale;
    const float* bias;       // [experts] or null
};

struct KvPlane {             // K or V of one layer inside a page
    size_t offset;
    size_t scale_offset;     // q8 and q4
    int32_t type;
    int32_t heads;
    int32_t head_dim;
    int32_t page_tokens;
    int32_t row_channels;    // stored channels of a row; more than head_dim where V is the head of a latent K
};

struct AttentionArgs {
    KvPlane k, v;
    const float* q;          // [rows, q_stride]
    size_t q_stride;
    float* out;
    size_t out_stride;
    int heads;
    float scale;
    int window;
    float softcap;
    const float* sinks;
    int split = 1;           // parts of a K/V head's query heads, each a unit of its own
};

// Consecutive rows of one sequence against one K/V head, partitions [part_begin, part_end); or one partition of pages that
// several sequences share, rows of all of them behind it.
struct AttentionUnit {
    const uint64_t* pages;
    int row;                 // first batch row
    int rows;
    int position;            // of the first row
    int kv_head;             // with `split`: the part, counted over all K/V heads
    int part_begin, part_end;
    float* partial;          // null: write the output rows; else [queries][padded V width + 2] per partition,
    size_t partial_step;     // that many floats apart
};

struct MlaArgs {
    KvPlane plane;           // rows [c, k_pe]
    const TensorView* k_b;   // one per head
    const TensorView* v_b;
    const float* q;          // [rows, heads, nope + rope]
    size_t q_stride;
    float* out;              // [rows, heads, value_dim]
    size_t out_stride;
    float* absorbed;         // [rows, heads, kv_lora + rope]
    size_t absorbed_stride;
    float* sums;             // [rows, heads, kv_lora]
    size_t sums_stride;
    int heads;
    int kv_lora, nope, rope, value_dim;
    bool k_transposed;
    float scale;
};

// Consecutive prompt rows of one sequence for some heads.
struct MlaUnit {
    const uint64_t* pages;
    int row;
    int rows;
    int position;
    int head;
    int heads;
};

}  // namespace pk
