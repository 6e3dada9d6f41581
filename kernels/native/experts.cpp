// Mixture of experts: pairs sorted by expert, gate and up with the activation, down with a weighted sum that ascends
// by expert. Threads split outputs, so a row's result does not depend on the rows it is computed with.
#include "experts.h"

#include <algorithm>
#include <cstring>

#include "executor.h"

namespace pk {

void ExpertPairs::sort(const float* route, size_t stride, int count, int experts, int used) {
    std::vector<int> ends(static_cast<size_t>(experts) + 1, 0);
    const auto id = [&](int row, int i) {
        const float value = route[row * stride + i];
        return value >= 0 && value < static_cast<float>(experts) ? static_cast<int>(value) : -1;
    };
    for (int row = 0; row < count; row++)
        for (int i = 0; i < used; i++)
            if (id(row, i) >= 0) ends[id(row, i) + 1]++;
    for (int e = 0; e < experts; e++) ends[e + 1] += ends[e];
    rows.resize(ends[experts]);
    weights.resize(ends[experts]);
    std::vector<int> next(ends.begin(), ends.end() - 1);
    for (int row = 0; row < count; row++)
        for (int i = 0; i < used; i++) {
            if (id(row, i) < 0) continue;
            const int pair = next[id(row, i)]++;
            rows[pair] = row;
            weights[pair] = route[row * stride + used + i];
        }
    runs.clear();
    groups.clear();
    for (int e = 0; e < experts; e++) {
        if (ends[e + 1] == ends[e]) continue;
        runs.push_back(ExpertRun{e, ends[e], ends[e + 1] - ends[e]});
        for (int pair = ends[e]; pair < ends[e + 1]; pair += kGroupTokens)
            groups.push_back(ExpertGroup{pair, std::min(kGroupTokens, ends[e + 1] - pair)});
    }
}

namespace {

int strips_of(int rows) { return (rows + kStripRows - 1) / kStripRows; }

// Words of `singles` (groups of one token) side by side: token t of every word run of `width` bytes.
template <class Word>
void weave(const Word* single, size_t words, int tokens, int token, Word* out) {
    for (size_t i = 0; i < words; i++) out[i * tokens + token] = single[i];
}

const float* bias_row(const ProgramData& program, int tensor, int expert, int width) {
    if (tensor < 0) return nullptr;
    return reinterpret_cast<const float*>(program.tensors[tensor].data) + static_cast<size_t>(expert) * width;
}

// Of the products of gate (0), up (1) or down (2): the tensor of factors is [3, experts].
float factor_of(const ProgramData& program, const Op& op, int part, int expert) {
    if (op.more[kFactors] < 0) return 1.0f;
    return reinterpret_cast<const float*>(program.tensors[op.more[kFactors]].data)[static_cast<size_t>(part) * op.heads + expert];
}

}  // namespace

// Runs before the first shared phase of the operation: sizes depend on the routing.
void Executor::sort_pairs(const Op& op) {
    const Buffer& route = buffers_[op.more[kRoute]];
    pairs_.sort(route.data(), route.stride, batch_.rows, op.heads, op.head_dim);
    const size_t count = pairs_.rows.size(), cols = program_.widths[op.src];
    const size_t width = program_.tensors[op.weight].rows;
    if (op.more[kNeedsFloats]) pairs_.source.reserve(count * cols * sizeof(float));
    if (op.more[kNeedsInput]) pairs_.input.reserve(count, cols, halves_);
    pairs_.opened.reserve(count * padded(width) * sizeof(float));
    if (op.more[kNeedsHidden]) pairs_.hidden.reserve(count, width, halves_);
}

int Executor::expert_units(const Phase& phase) {
    const Op& op = phase.ops[0];
    switch (phase.kind) {
        case Phase::ExpertGather: {
            sort_pairs(op);
            const bool direct = batch_.rows == 1 && !op.more[kNeedsFloats];
            return direct ? 0 : static_cast<int>(pairs_.groups.size());
        }
        case Phase::ExpertOpen:
            return static_cast<int>(pairs_.runs.size()) * strips_of(program_.tensors[op.weight].rows);
        case Phase::ExpertQuantise: return op.more[kNeedsHidden] ? static_cast<int>(pairs_.groups.size()) : 0;
        default: return strips_of(program_.tensors[op.index].rows);
    }
}

void Executor::gather_group(const Op& op, const ExpertGroup& group) {
    const Buffer& src = buffers_[op.src];
    const size_t cols = program_.widths[op.src], words = cols / kBlock * 4;
    const QuantGroup out = op.more[kNeedsInput] ? pairs_.input.group(group.pair, cols, group.pairs) : QuantGroup{};
    for (int t = 0; t < group.pairs; t++) {
        const int row = pairs_.rows[group.pair + t];
        if (op.more[kNeedsFloats]) std::copy_n(src.row(row), cols, pairs_.source.floats() + (group.pair + t) * cols);
        if (!op.more[kNeedsInput]) continue;
        const QuantGroup single = src.singles.group(row, cols, 1);
        weave(reinterpret_cast<const uint32_t*>(single.data), cols / 4, group.pairs, t, reinterpret_cast<uint32_t*>(out.data));
        weave(single.meta, words, group.pairs, t, out.meta);
        if (halves_) weave(single.halves, words, group.pairs, t, out.halves);
    }
}

// Product of one strip for all pairs of a run into `out` [pairs, kStripRows].
void Executor::expert_strip(const TensorView& weight, const float* src, size_t stride, const QuantGroup& quant,
                            const float* bias, float factor, int pairs, int strip, float* out, uint8_t* scratch) const {
    const LinearArgs args = {weight, src, stride, quant.data, quant.meta, quant.halves,
                             out - static_cast<ptrdiff_t>(strip) * kStripRows, kStripRows, bias, factor, false, pairs};
    kernels_->linear_strips(args, strip, 1, scratch);
}

void Executor::open_expert(const Op& op, const ExpertRun& run, int strip, uint8_t* scratch) {
    const TensorView& gate = program_.tensors[op.weight + run.expert];
    const TensorView& up = program_.tensors[op.extra + run.expert];
    const size_t cols = gate.cols, width = gate.rows, stride = padded(width);
    const float* src = pairs_.source.floats() + static_cast<size_t>(run.pair) * cols;
    const QuantGroup quant = batch_.rows == 1 ? buffers_[op.src].singles.group(0, cols, 1)
                                              : pairs_.input.group(run.pair, cols, run.pairs);
    float* gates = reinterpret_cast<float*>(scratch);
    float* ups = gates + static_cast<size_t>(run.pairs) * kStripRows;
    uint8_t* rest = reinterpret_cast<uint8_t*>(ups + static_cast<size_t>(run.pairs) * kStripRows);
    expert_strip(gate, src, cols, quant, bias_row(program_, op.more[kGateBias], run.expert, gate.rows),
                 factor_of(program_, op, 0, run.expert), run.pairs, strip, gates, rest);
    expert_strip(up, src, cols, quant, bias_row(program_, op.more[kUpBias], run.expert, gate.rows),
                 factor_of(program_, op, 1, run.expert), run.pairs, strip, ups, rest);
    const int first = strip * kStripRows, rows = std::min(kStripRows, gate.rows - first);
    for (int t = 0; t < run.pairs; t++)
        kernels_->gated(gates + t * kStripRows, ups + t * kStripRows,
                        pairs_.opened.floats() + (run.pair + t) * stride + first, rows, op.flag);
}

// One strip of the output for all rows: weighted results of the experts, ascending.
void Executor::close_experts(const Op& op, int strip, uint8_t* scratch) {
    const int first = strip * kStripRows, count = std::min(kStripRows, program_.tensors[op.index].rows - first);
    const size_t floats = static_cast<size_t>(batch_.rows) * kStripRows;
    float* sums = reinterpret_cast<float*>(scratch);
    float* parts = sums + floats;
    uint8_t* rest = reinterpret_cast<uint8_t*>(parts + floats);
    std::fill_n(sums, floats, 0.0f);
    for (const ExpertRun& run : pairs_.runs) {
        const TensorView& down = program_.tensors[op.index + run.expert];
        const size_t width = down.cols, stride = padded(width);
        const QuantGroup quant = pairs_.hidden.group(run.pair, width, run.pairs);
        expert_strip(down, pairs_.opened.floats() + run.pair * stride, stride, quant,
                     bias_row(program_, op.more[kDownBias], run.expert, down.rows),
                     factor_of(program_, op, 2, run.expert), run.pairs, strip, parts, rest);
        for (int t = 0; t < run.pairs; t++)
            kernels_->add_scaled(sums + static_cast<size_t>(pairs_.rows[run.pair + t]) * kStripRows, parts + t * kStripRows,
                                 pairs_.weights[run.pair + t], count);
    }
    for (int row = 0; row < batch_.rows; row++) {
        float* out = buffers_[op.out].row(row) + first;
        if (!op.more[kAccumulate]) std::fill_n(out, count, 0.0f);
        kernels_->add_scaled(out, sums + static_cast<size_t>(row) * kStripRows, op.scale, count);
    }
}

void Executor::run_experts(const Phase& phase, int unit, int thread) {
    const Op& op = phase.ops[0];
    uint8_t* scratch = scratch_[thread].data();
    if (phase.kind == Phase::ExpertGather) gather_group(op, pairs_.groups[unit]);
    else if (phase.kind == Phase::ExpertOpen) {
        const int strips = strips_of(program_.tensors[op.weight].rows);
        open_expert(op, pairs_.runs[unit / strips], unit % strips, scratch);
    } else if (phase.kind == Phase::ExpertQuantise) {
        const ExpertGroup& group = pairs_.groups[unit];
        const size_t width = program_.tensors[op.weight].rows, stride = padded(width);
        kernels_->quantise(pairs_.opened.floats() + group.pair * stride, stride, static_cast<int>(width),
                           pairs_.hidden.group(group.pair, width, group.pairs));
    } else close_experts(op, unit, scratch);
}

size_t Executor::expert_scratch(const Op& op) const {
    size_t bytes = 0;
    for (int tensor : {op.weight, op.extra, op.index})
        bytes = std::max(bytes, kernels_->linear_scratch(program_.tensors[tensor].cols, batch_.rows));
    return bytes + static_cast<size_t>(batch_.rows) * kStripRows * 2 * sizeof(float);
}

}  // namespace pk
