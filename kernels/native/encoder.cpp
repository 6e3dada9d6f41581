#include "encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace pk {

namespace {

// One output row's block to bytes; returns their sum.
int quantise(const float* w, int block, float& scale, int8_t* out) {
    float most = 0.0f;
    for (int i = 0; i < block; i++) most = std::max(most, std::fabs(w[i]));
    scale = most / 127.0f;
    const float inverse = most > 1e-30f ? 127.0f / most : 0.0f;
    int sum = 0;
    for (int i = 0; i < block; i++) {
        const float shifted = w[i] * inverse + 12582912.0f;  // rounds to an integer in the low bits
        int32_t bits;
        std::memcpy(&bits, &shifted, 4);
        out[i] = static_cast<int8_t>(bits - 0x4b400000);
        sum += out[i];
    }
    return sum;
}

}  // namespace

Encoder::Encoder(const EncoderShape& shape, const float* words, const float* positions, const float* type,
                 LayerNorm embedding, const std::vector<LayerTensors>& layers, const KernelTable* level)
    : model_{shape.hidden, shape.heads, shape.ffn, static_cast<int>(layers.size()), shape.eps, shape.first_token,
             words, positions, type, embedding, nullptr},
      level_(level) {
    const int dim = shape.hidden / shape.heads;
    if (shape.hidden % kBertBlock || shape.ffn % kBertBlock || shape.hidden % shape.heads || dim % 16 || dim > kBertHead)
        throw std::invalid_argument("an encoder's widths must be multiples of 64, its heads' of 16 and at most 256");
    const int h = shape.hidden, f = shape.ffn;
    for (const LayerTensors& t : layers)
        blocks_.push_back({pack({t.qkv[0], t.qkv[1], t.qkv[2]}, {t.qkv_bias[0], t.qkv_bias[1], t.qkv_bias[2]}, h, h, kBertFine),
                           pack({t.out}, {t.out_bias}, h, h, kBertBlock), pack({t.up}, {t.up_bias}, f, h, kBertBlock),
                           pack({t.down}, {t.down_bias}, h, f, kBertBlock), {t.norm1, t.norm1_bias}, {t.norm2, t.norm2_bias}});
    model_.blocks = blocks_.data();
}

// `parts`, each [rows, cols], one below the other.
PackedLinear Encoder::pack(std::vector<const float*> parts, std::vector<const float*> biases, int rows, int cols,
                           int block) {
    const int count = static_cast<int>(parts.size()), all = rows * count, blocks = cols / block;
    std::vector<int8_t>& weights = weights_.emplace_back(static_cast<size_t>(all) * cols);
    std::vector<float> scales(static_cast<size_t>(all) * blocks), sums(scales.size()), bias(all);
    int8_t bytes[kBertBlock];
    for (int r = 0; r < all; r++) {
        const float* row = parts[r / rows] + static_cast<size_t>(r % rows) * cols;
        bias[r] = biases[r / rows][r % rows];
        int8_t* strip = weights.data() + static_cast<size_t>(r / kBertStrip) * cols * kBertStrip + r % kBertStrip * 4;
        for (int b = 0; b < blocks; b++) {
            const size_t at = (static_cast<size_t>(r / kBertStrip) * blocks + b) * kBertStrip + r % kBertStrip;
            const int sum = quantise(row + b * block, block, scales[at], bytes);
            sums[at] = scales[at] * static_cast<float>(sum);
            for (int i = 0; i < block; i += 4)
                std::memcpy(strip + static_cast<size_t>(b * block + i) * kBertStrip, bytes + i, 4);
        }
    }
    const float* scale_data = floats_.emplace_back(std::move(scales)).data();
    const float* sum_data = floats_.emplace_back(std::move(sums)).data();
    const float* bias_data = floats_.emplace_back(std::move(bias)).data();
    return {all, cols, block, weights.data(), scale_data, sum_data, bias_data};
}

void Encoder::encode(const BertBatch& batch, std::vector<uint8_t>& scratch) const {
    for (int from = 0; from < batch.texts;) {
        int to = from + 1;
        while (to < batch.texts && batch.starts[to + 1] - batch.starts[from] <= kBertGroup) to++;
        const size_t bytes = level_->bert_scratch(model_, batch.starts[to] - batch.starts[from]) + 64;
        if (scratch.size() < bytes) scratch.resize(bytes);
        uint8_t* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        level_->bert_encode(model_, batch, from, to, aligned);
        from = to;
    }
}

}  // namespace pk
