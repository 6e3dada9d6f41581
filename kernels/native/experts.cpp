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
    restart();
}

void ExpertPairs::next_slice(int most) {
    run_begin = run_end, group_begin = group_end, pair_begin = pair_end;
    const int count = static_cast<int>(runs.size());
    while (run_end < count && (run_end == run_begin || pair_end + runs[run_end].pairs - pair_begin <= most))
        pair_end += runs[run_end++].pairs;
    while (group_end < static_cast<int>(groups.size()) && groups[group_end].pair < pair_end) group_end++;
}

namespace {

constexpr size_t kSliceBytes = 12 << 20;

int strips_of(int rows) { return (rows + kStripRows - 1) / kStripRows; }

// Words of `singles` (groups of one token) side by side: token t of every word run of `width` bytes.
template <class Word>
void weave(const Word* single, size_t words, size_t tokens, int token, Word* out) {
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

// Runs before the first shared phase of every slice: sizes depend on the routing.
void Executor::open_slice(const Op& op) {
    const size_t cols = program_.widths[op.src], width = program_.tensors[op.weight].rows;
    if (!pairs_.sorted()) {
        const Buffer& route = buffers_[op.more[kRoute]];
        pairs_.sort(route.data(), route.stride, batch_.rows, op.heads, op.head_dim);
    }
    const size_t pair_bytes = cols * (op.more[kNeedsFloats] ? 6 : 2) + width * 6;
    const size_t most = std::max<size_t>(1, kSliceBytes / pair_bytes);
    pairs_.next_slice(static_cast<int>(most));
    const size_t used = pairs_.pair_end - pairs_.pair_begin;
    const size_t count = std::max(used, std::min(most, pairs_.rows.size()));  // of any slice, so that memory does not grow
    if (op.more[kNeedsFloats]) pairs_.source.reserve(count * cols * sizeof(float));
    pairs_.opened.reserve(count * padded(width) * sizeof(float));
    for (Rounding way : kRoundings) {
        if (op.more[kNeedsInput] & way) pairs_.input.reserve(way, count, cols, halves_);
        if (op.more[kNeedsHidden] & way) pairs_.hidden.reserve(way, count, width, halves_);
    }
    if (pairs_.sliced())
        pairs_.sums.reserve(static_cast<size_t>(strips_of(program_.tensors[op.index].rows)) * batch_.rows * kStripRows * sizeof(float));
}

int Executor::expert_units(const Phase& phase) {
    const Op& op = phase.ops[0];
    switch (phase.kind) {
        case Phase::ExpertGather: {
            open_slice(op);
            const bool direct = batch_.rows == 1 && !op.more[kNeedsFloats];
            return direct ? 0 : pairs_.group_count();
        }
        case Phase::ExpertOpen:
            return pairs_.run_count() * strips_of(program_.tensors[op.weight].rows);
        case Phase::ExpertQuantise: return op.more[kNeedsHidden] ? pairs_.group_count() : 0;
        default: return strips_of(program_.tensors[op.index].rows);
    }
}

void Executor::gather_group(const Op& op, const ExpertGroup& group) {
    const Buffer& src = buffers_[op.src];
    const size_t cols = program_.widths[op.src];
    for (int pair = group.pair; op.more[kNeedsFloats] && pair < group.pair + group.pairs; pair++)
        std::copy_n(src.row(pairs_.rows[pair]), cols, pairs_.source.floats() + (pair - pairs_.pair_begin) * cols);
    for (Rounding way : kRoundings)
        if (op.more[kNeedsInput] & way) weave_group(op, group, way);
}

void Executor::weave_group(const Op& op, const ExpertGroup& group, Rounding way) const {
    const size_t cols = program_.widths[op.src], n = group.pairs;
    const QuantGroup out = pairs_.input.group(way, group.pair - pairs_.pair_begin, cols, group.pairs);
    for (int t = 0; t < group.pairs; t++) {
        const QuantGroup single = buffers_[op.src].singles.group(way, pairs_.rows[group.pair + t], cols, 1);
        weave(reinterpret_cast<const uint32_t*>(single.data), cols / 4, n, t, reinterpret_cast<uint32_t*>(out.data));
        weave(single.meta, meta_words(way, cols), n, t, out.meta);
        if (single.halves) weave(single.halves, half_words(cols), n, t, out.halves);
    }
}

// The source of a product, rounded as its weight wants it.
QuantGroup Executor::input_of(const Op& op, const TensorView& weight, const ExpertRun& run) const {
    const Rounding way = kernels_->rounding(weight.type);
    if (!way) return QuantGroup{};
    return batch_.rows == 1 ? buffers_[op.src].singles.group(way, 0, weight.cols, 1)
                            : pairs_.input.group(way, run.pair - pairs_.pair_begin, weight.cols, run.pairs);
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
    const size_t cols = gate.cols, width = gate.rows, stride = padded(width), place = run.pair - pairs_.pair_begin;
    const float* src = pairs_.source.floats() + place * cols;
    float* gates = reinterpret_cast<float*>(scratch);
    float* ups = gates + static_cast<size_t>(run.pairs) * kStripRows;
    uint8_t* rest = reinterpret_cast<uint8_t*>(ups + static_cast<size_t>(run.pairs) * kStripRows);
    expert_strip(gate, src, cols, input_of(op, gate, run), bias_row(program_, op.more[kGateBias], run.expert, gate.rows),
                 factor_of(program_, op, 0, run.expert), run.pairs, strip, gates, rest);
    expert_strip(up, src, cols, input_of(op, up, run), bias_row(program_, op.more[kUpBias], run.expert, gate.rows),
                 factor_of(program_, op, 1, run.expert), run.pairs, strip, ups, rest);
    const int first = strip * kStripRows, rows = std::min(kStripRows, gate.rows - first);
    for (int t = 0; t < run.pairs; t++)
        kernels_->gated(gates + t * kStripRows, ups + t * kStripRows,
                        pairs_.opened.floats() + (place + t) * stride + first, rows, op.flag);
}

void Executor::round_opened(const Op& op, const ExpertGroup& group) {
    const size_t width = program_.tensors[op.weight].rows, stride = padded(width), place = group.pair - pairs_.pair_begin;
    const float* opened = pairs_.opened.floats() + place * stride;
    for (Rounding way : kRoundings)
        if (op.more[kNeedsHidden] & way)
            kernels_->round_activations(way, opened, stride, static_cast<int>(width),
                                        pairs_.hidden.group(way, place, width, group.pairs));
}

// One strip of the output for all rows: weighted results of the experts, ascending, over all slices.
void Executor::close_experts(const Op& op, int strip, uint8_t* scratch) {
    const int first = strip * kStripRows, count = std::min(kStripRows, program_.tensors[op.index].rows - first);
    const size_t floats = static_cast<size_t>(batch_.rows) * kStripRows;
    float* parts = reinterpret_cast<float*>(scratch);
    float* sums = pairs_.sliced() ? pairs_.sums.floats() + strip * floats : parts + floats;
    uint8_t* rest = reinterpret_cast<uint8_t*>(parts + 2 * floats);
    if (pairs_.run_begin == 0) std::fill_n(sums, floats, 0.0f);
    for (int i = pairs_.run_begin; i < pairs_.run_end; i++) {
        const ExpertRun& run = pairs_.runs[i];
        const TensorView& down = program_.tensors[op.index + run.expert];
        const size_t width = down.cols, stride = padded(width), place = run.pair - pairs_.pair_begin;
        const QuantGroup quant = pairs_.hidden.group(kernels_->rounding(down.type), place, width, run.pairs);
        expert_strip(down, pairs_.opened.floats() + place * stride, stride, quant,
                     bias_row(program_, op.more[kDownBias], run.expert, down.rows),
                     factor_of(program_, op, 2, run.expert), run.pairs, strip, parts, rest);
        for (int t = 0; t < run.pairs; t++)
            kernels_->add_scaled(sums + static_cast<size_t>(pairs_.rows[run.pair + t]) * kStripRows, parts + t * kStripRows,
                                 pairs_.weights[run.pair + t], count);
    }
    if (pairs_.more()) return;
    for (int row = 0; row < batch_.rows; row++) {
        float* out = buffers_[op.out].row(row) + first;
        if (!op.more[kAccumulate]) std::fill_n(out, count, 0.0f);
        kernels_->add_scaled(out, sums + static_cast<size_t>(row) * kStripRows, op.scale, count);
    }
}

// The phase behind `at`: after a slice that is not the last the first of the operation again.
int Executor::after(int at) {
    if (active_[at].phase->kind != Phase::ExpertClose) return at + 1;
    if (pairs_.more()) return at - (Phase::ExpertClose - Phase::ExpertGather);
    pairs_.restart();
    return at + 1;
}

void Executor::run_experts(const Phase& phase, int unit, int thread) {
    const Op& op = phase.ops[0];
    uint8_t* scratch = scratch_[thread].data();
    if (phase.kind == Phase::ExpertGather) gather_group(op, pairs_.groups[pairs_.group_begin + unit]);
    else if (phase.kind == Phase::ExpertOpen) {
        const int strips = strips_of(program_.tensors[op.weight].rows);
        open_expert(op, pairs_.runs[pairs_.run_begin + unit / strips], unit % strips, scratch);
    } else if (phase.kind == Phase::ExpertQuantise) round_opened(op, pairs_.groups[pairs_.group_begin + unit]);
    else close_experts(op, unit, scratch);
}

size_t Executor::expert_scratch(const Op& op) const {
    size_t bytes = 0;
    for (int tensor : {op.weight, op.extra, op.index})
        bytes = std::max(bytes, kernels_->linear_scratch(program_.tensors[tensor].cols, batch_.rows));
    return bytes + static_cast<size_t>(batch_.rows) * kStripRows * 2 * sizeof(float);
}

}  // namespace pk
