// Owns an encoder's packed weights and scratch.
#pragma once
#include <string>
#include <vector>

#include "bert.h"
#include "kernel_table.h"

namespace pk {

struct EncoderShape {
    int hidden, heads, ffn;
    float eps;
    bool first_token;
};

// float32 tensors that outlive the encoder; matrices are [rows, cols].
struct LayerTensors {
    const float* qkv[3];
    const float* qkv_bias[3];
    const float *out, *out_bias, *norm1, *norm1_bias, *up, *up_bias, *down, *down_bias, *norm2, *norm2_bias;
};

class Encoder {
public:
    Encoder(const EncoderShape& shape, const float* words, const float* positions, const float* type, LayerNorm embedding,
            const std::vector<LayerTensors>& layers, const KernelTable* level);
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;
    // One call at a time per scratch; the weights may be used by many at once.
    void encode(const BertBatch& batch, std::vector<uint8_t>& scratch) const;
    int hidden() const { return model_.hidden; }

private:
    PackedLinear pack(std::vector<const float*> parts, std::vector<const float*> biases, int rows, int cols, int block);
    BertModel model_;
    const KernelTable* level_;
    std::vector<BertLayer> blocks_;
    std::vector<std::vector<int8_t>> weights_;
    std::vector<std::vector<float>> floats_;
};

}  // namespace pk
