// Mixture of experts: pairs sorted by expert, gate and up with the activation, down with a weighted sum that ascends
// by expert. Threads split outputs, so a row's result does not depend on the rows it is computed with.
#include "experts.h"

#include <algorithm>
#include <cstring>

#include "executor.h"
#include "weave.h"

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

const uint8_t* strip_at(const TensorView& weight, int strip) {
    return weight.data + static_cast<size_t>(strip) * kStripRows * weight.row_bytes;
}

int strips_of(int rows) { return (rows + kStripRows - 1) / kStripRows; }

// The matrix from a strip on, as one of its own: outputs of its strips begin where the caller's memory does.
TensorView from_strip(TensorView weight, int strip) {
    weight.data = strip_at(weight, strip);
    weight.rows -= strip * kStripRows;
    return weight;
}

const float* from_strip(const float* bias, int strip) {
    return bias ? bias + static_cast<size_t>(strip) * kStripRows : nullptr;
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
    const size_t cols = program_.widths[op.src];
    const QuantGroup out = pairs_.input.group(way, group.pair - pairs_.pair_begin, cols, group.pairs);
    for (int t = 0; t < group.pairs; t++) {
        const QuantGroup single = buffers_[op.src].singles.group(way, pairs_.rows[group.pair + t], cols, 1);
        weave(single, way, cols, kernels_->run, t, out);
    }
}

// The source of a product, rounded as its weight wants it.
QuantGroup Executor::input_of(const Op& op, const TensorView& weight, const ExpertRun& run) const {
    const Rounding way = kernels_->rounding(weight.type);
    if (!way) return QuantGroup{};
    return batch_.rows == 1 ? buffers_[op.src].singles.group(way, 0, weight.cols, 1)
                            : pairs_.input.group(way, run.pair - pairs_.pair_begin, weight.cols, run.pairs);
}

// Product of some strips for all pairs of a run into `out` [pairs, strips, kStripRows].
void Executor::expert_strips(const TensorView& weight, const float* src, size_t stride, const QuantGroup& quant,
                             const float* bias, float factor, int pairs, const StripSpan& span, const uint8_t* then,
                             float* out, uint8_t* scratch) const {
    const size_t width = static_cast<size_t>(span.count) * kStripRows;
    const LinearArgs args = {from_strip(weight, span.first), src, stride, quant.data, quant.meta, quant.halves, out, width,
                             from_strip(bias, span.first), factor, false, pairs, then};
    kernels_->linear_strips(args, 0, span.count, scratch);
}

void Executor::open_expert(const Op& op, const ExpertRun& run, const StripSpan& span, const uint8_t* then, uint8_t* scratch) {
    const TensorView& gate = program_.tensors[op.weight + run.expert];
    const TensorView& up = program_.tensors[op.extra + run.expert];
    const size_t cols = gate.cols, width = gate.rows, stride = padded(width), place = run.pair - pairs_.pair_begin;
    const float* src = op.more[kNeedsFloats] ? pairs_.source.floats() + place * cols : nullptr;
    float* gates = reinterpret_cast<float*>(scratch);
    const size_t step = static_cast<size_t>(span.count) * kStripRows;
    float* ups = gates + run.pairs * step;
    uint8_t* rest = reinterpret_cast<uint8_t*>(ups + run.pairs * step);
    expert_strips(gate, src, cols, input_of(op, gate, run), bias_row(program_, op.more[kGateBias], run.expert, gate.rows),
                  factor_of(program_, op, 0, run.expert), run.pairs, span, strip_at(up, span.first), gates, rest);
    expert_strips(up, src, cols, input_of(op, up, run), bias_row(program_, op.more[kUpBias], run.expert, gate.rows),
                  factor_of(program_, op, 1, run.expert), run.pairs, span, then, ups, rest);
    const int first = span.first * kStripRows, rows = std::min(static_cast<int>(step), gate.rows - first);
    for (int t = 0; t < run.pairs; t++)
        kernels_->gated(gates + t * step, ups + t * step, pairs_.opened.floats() + (place + t) * stride + first, rows, op.flag);
}

void Executor::round_opened(const Op& op, const ExpertGroup& group) {
    const size_t width = program_.tensors[op.weight].rows, stride = padded(width), place = group.pair - pairs_.pair_begin;
    const float* opened = pairs_.opened.floats() + place * stride;
    for (Rounding way : kRoundings)
        if (op.more[kNeedsHidden] & way)
            kernels_->round_activations(way, opened, stride, static_cast<int>(width),
                                        pairs_.hidden.group(way, place, width, group.pairs));
}

// Strips of the output for all rows: weighted results of the experts, ascending, over all slices.
void Executor::close_experts(const Op& op, const StripSpan& span, const uint8_t* then, uint8_t* scratch) {
    const int last = program_.tensors[op.index].rows;
    const size_t strip_floats = static_cast<size_t>(batch_.rows) * kStripRows, floats = strip_floats * span.count;
    float* sums = pairs_.sliced() ? pairs_.sums.floats() + span.first * strip_floats : reinterpret_cast<float*>(scratch);
    uint8_t* rest = scratch + floats * sizeof(float);
    if (pairs_.run_begin == 0) std::fill_n(sums, floats, 0.0f);
    for (int i = pairs_.run_begin; i < pairs_.run_end; i++) {
        const ExpertRun& run = pairs_.runs[i];
        const TensorView& down = program_.tensors[op.index + run.expert];
        const size_t width = down.cols, stride = padded(width), place = run.pair - pairs_.pair_begin;
        const QuantGroup quant = pairs_.hidden.group(kernels_->rounding(down.type), place, width, run.pairs);
        const bool more = i + 1 < pairs_.run_end;
        const float* bias = from_strip(bias_row(program_, op.more[kDownBias], run.expert, down.rows), span.first);
        LinearArgs args = {from_strip(down, span.first), pairs_.opened.floats() + place * stride, stride, quant.data, quant.meta,
                           quant.halves, sums, kStripRows, bias, factor_of(program_, op, 2, run.expert), false, run.pairs};
        args.then = more ? strip_at(program_.tensors[op.index + pairs_.runs[i + 1].expert], span.first) : then;
        args.out_rows = pairs_.rows.data() + run.pair;
        args.out_weights = pairs_.weights.data() + run.pair;
        args.out_strip = strip_floats;
        kernels_->linear_strips(args, 0, span.count, rest);
    }
    if (pairs_.more()) return;
    for (int s = 0; s < span.count; s++)
        for (int row = 0; row < batch_.rows; row++) {
            const int first = (span.first + s) * kStripRows, count = std::min(kStripRows, last - first);
            float* out = buffers_[op.out].row(row) + first;
            if (!op.more[kAccumulate]) std::fill_n(out, count, 0.0f);
            kernels_->add_scaled(out, sums + s * strip_floats + static_cast<size_t>(row) * kStripRows, op.scale, count);
        }
}

// The phase behind `at`: after a slice that is not the last the first of the operation again.
int Executor::after(int at) {
    if (active_[at].phase->kind != Phase::ExpertClose) return at + 1;
    if (pairs_.more()) return at - (Phase::ExpertClose - Phase::ExpertGather);
    pairs_.restart();
    return at + 1;
}

// Units [first, last) in pieces of neighbouring strips. `after`: what the thread reads behind its share, or null.
void Executor::run_experts(const Active& active, const UnitRange& range, const uint8_t* after, int thread) {
    const Op& op = active.phase->ops[0];
    const bool opens = active.phase->kind == Phase::ExpertOpen;
    const int strips = opens ? strips_of(program_.tensors[op.weight].rows) : active.units;
    const auto run_of = [&](int unit) -> const ExpertRun& { return pairs_.runs[pairs_.run_begin + unit / strips]; };
    const int own = shares_.share(active.units, thread).last;
    for (int unit = range.first; unit < range.last && !cancelled();) {
        const StripSpan span{unit % strips, std::min({kStripsAtOnce, strips - unit % strips, range.last - unit})};
        const ExpertRun& run = run_of(unit);
        unit += span.count;
        const uint8_t* then = unit == own || unit >= active.units ? after
                            : strip_at(program_.tensors[(opens ? op.weight : op.index) + run_of(unit).expert], unit % strips);
        if (opens) open_expert(op, run, span, then, scratch_[thread].data());
        else close_experts(op, span, then, scratch_[thread].data());
    }
}

void Executor::run_expert_rows(const Phase& phase, int unit) {
    const Op& op = phase.ops[0];
    const ExpertGroup& group = pairs_.groups[pairs_.group_begin + unit];
    if (phase.kind == Phase::ExpertGather) gather_group(op, group);
    else round_opened(op, group);
}

size_t Executor::expert_scratch(const Op& op) const {
    size_t bytes = 0;
    for (int tensor : {op.weight, op.extra, op.index})
        bytes = std::max(bytes, kernels_->linear_scratch(program_.tensors[tensor].cols, batch_.rows));
    return bytes + static_cast<size_t>(batch_.rows) * kStripsAtOnce * kStripRows * 2 * sizeof(float);
}

}  // namespace pk
