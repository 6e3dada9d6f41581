// A BERT text encoder: attention in both directions, layer norms after the sums, GELU. Weights are bytes with a scale
// per output row and block of input channels; sums are integers within a block, floats over blocks.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pk {

constexpr int kBertBlock = 64;   // channels with one scale, of weights and activations alike
constexpr int kBertFine = 32;    // the same for queries, keys and values, which suffer most from rounding
constexpr int kBertStrip = 16;   // output rows side by side
constexpr int kBertHead = 256;   // channels of a head at most
constexpr int kBertGroup = 256;  // tokens that pass through all layers together, more only for a longer text

struct PackedLinear {
    int rows, cols, block;  // rows: a multiple of 2 * kBertStrip; block: kBertBlock or kBertFine
    const int8_t* weights;  // [rows / 16][cols / 4][16][4]
    const float* scales;    // [rows / 16][cols / block][16]
    const float* sums;      // of each block's weights, as scales
    const float* bias;      // [rows]
};

struct LayerNorm {
    const float* weight;
    const float* bias;
};

struct BertLayer {
    PackedLinear qkv, out, up, down;
    LayerNorm after_attention, after_ffn;
};

struct BertModel {
    int hidden, heads, ffn, layers;
    float eps;
    bool first_token;        // the text's vector is its first token's, else the mean of all
    const float* words;      // [vocabulary, hidden]
    const float* positions;  // [longest, hidden]
    const float* type;       // [hidden], of the first segment
    LayerNorm embedding;
    const BertLayer* blocks;
};

struct BertBatch {
    const int32_t* tokens;
    const int32_t* starts;  // [texts + 1]
    int texts;
    float* vectors;  // [texts, hidden], unit length
};

}  // namespace pk
