// Splits the attention of a step into units: blocks of rows x K/V heads, and over partitions when that alone
// would leave threads idle. The split never changes a result.
#include <algorithm>

#include "executor.h"

namespace pk {

AttentionArgs Executor::attention_args(const Op& op) const {
    if (op.kind == OpKind::MlaAttention) return absorbed_attention(op);
    const KvLayer& layer = program_.kv_layers[op.index];
    const Buffer& q = buffers_[op.src];
    const Buffer& out = buffers_[op.out];
    const float* sinks = op.extra < 0 ? nullptr : reinterpret_cast<const float*>(program_.tensors[op.extra].data);
    return AttentionArgs{layer.k, layer.v, q.data(), q.stride, out.data(), out.stride, op.heads, op.scale,
                         op.flag, op.cap, sinks};
}

static bool same_plan(const ProgramData& p, const Op& a, const Op& b) {
    const KvLayer& x = p.kv_layers[a.index];
    const KvLayer& y = p.kv_layers[b.index];
    return a.kind == b.kind && a.heads == b.heads && a.head_dim == b.head_dim && a.flag == b.flag &&
           x.k.heads == y.k.heads && x.k.head_dim == y.k.head_dim &&
           x.v.head_dim == y.v.head_dim;
}

void Executor::activate_attention(const Phase& phase) {
    if (batch_.rows == 0) return;
    const Op& op = phase.ops[0];
    AttentionPlan* plan = nullptr;
    for (auto& known : attention_plans_)
        if (same_plan(program_, known.first, op)) plan = known.second.get();
    if (!plan) {
        attention_plans_.emplace_back(op, std::make_unique<AttentionPlan>(build_attention(op)));
        plan = attention_plans_.back().second.get();
    }
    const bool merge = phase.kind == Phase::Merge;
    const int units = static_cast<int>(merge ? plan->merges.size() : plan->units.size());
    if (units > 0) active_.push_back(Active{&phase, units, 1, merge && batch_.rows <= 2, plan});
}

// Leading partitions whose pages two sequences share and both rows see as a whole.
int Executor::shared_parts(int a, int b) const {
    const int rows[2] = {batch_.seq_rows[a], batch_.seq_rows[b]};
    const int parts = (std::min(row_position_[rows[0]], row_position_[rows[1]]) + 1) / kPartition;
    const uint64_t* first = batch_.pages + static_cast<size_t>(a) * batch_.max_pages;
    const uint64_t* second = batch_.pages + static_cast<size_t>(b) * batch_.max_pages;
    const int page_tokens = program_.page_tokens;
    int page = 0;
    while (page * page_tokens < parts * kPartition && first[page] == second[page]) page++;
    return std::min(parts, page * page_tokens / kPartition);
}

// Sequences from `first` on that attend with one row each and share partitions, at most `most` of them.
RowGroup Executor::sharing(const Op& op, int first, int most) const {
    const auto row_of = [&](int s) {
        const std::vector<RowRun> runs = attending_rows(op, s);
        return runs.size() == 1 && batch_.seq_rows[s + 1] - batch_.seq_rows[s] == 1 ? runs[0].row : -1;
    };
    RowGroup group{first, 1, 0};
    if (op.kind == OpKind::Attention && op.flag > 0) return group;  // windows begin where each row stands
    if (row_of(first) < 0) return group;
    for (int next = first + 1; next < batch_.sequences && group.sequences < most && row_of(next) >= 0; next++) {
        const int parts = shared_parts(first, next);
        if (parts == 0) break;
        group.parts = group.sequences == 1 ? parts : std::min(group.parts, parts);
        group.sequences++;
    }
    return group;
}

// Offsets for now; they become pointers when the total is known.
static float* offset(size_t floats) { return reinterpret_cast<float*>((floats + 1) * sizeof(float)); }

// `partials`: offset of the block's first partial, partitions `step` floats apart, from partition `from` on.
void Executor::add_parts(AttentionUnit unit, int from, int heads, size_t partials, size_t head_floats,
                         AttentionPlan& plan) {
    const int end = unit.part_end;
    // Heads of a partition follow each other, as they do in memory.
    for (int part = from; part < end; part++)
        for (unit.kv_head = 0; unit.kv_head < heads; unit.kv_head++) {
            unit.part_begin = part;
            unit.part_end = part + 1;
            unit.partial = offset(partials + part * unit.partial_step + unit.kv_head * head_floats);
            plan.units.push_back(unit);
        }
}

void Executor::add_block(const Op& op, int sequence, int row, int rows, AttentionPlan& plan, bool split) {
    const AttentionArgs args = attention_args(op);
    const int position = row_position_[row], last = position + rows - 1, heads = args.k.heads * args.split;
    const int oldest = args.window > 0 ? std::max(0, position - args.window + 1) : 0;
    const int begin = oldest / kPartition, end = last / kPartition + 1;
    const size_t floats = kernels_->partial_floats(args, rows), step = floats * heads;
    AttentionUnit unit{pages_of(sequence), row, rows, position, 0, begin, end, nullptr, step};
    const bool whole = !split || end - begin == 1;
    for (unit.kv_head = 0; unit.kv_head < heads; unit.kv_head++) {
        if (!whole) unit.partial = offset(plan.partials + unit.kv_head * floats);
        (whole ? plan.units : plan.merges).push_back(unit);
    }
    if (whole) return;
    add_parts(unit, begin, heads, plan.partials - begin * step, floats, plan);
    plan.partials += step * (end - begin);
}

// Rows of several sequences: the shared partitions once for all, the others one by one.
void Executor::add_group(const Op& op, const RowGroup& group, AttentionPlan& plan) {
    const AttentionArgs args = attention_args(op);
    const int row = batch_.seq_rows[group.first], heads = args.k.heads * args.split;
    const size_t floats = kernels_->partial_floats(args, group.sequences), one = kernels_->partial_floats(args, 1);
    const size_t step = floats * heads;
    int most = 0;
    const AttentionUnit shared{pages_of(group.first), row, group.sequences, group.parts * kPartition, 0, 0, group.parts,
                               nullptr, step};
    add_parts(shared, 0, heads, plan.partials, floats, plan);
    for (int i = 0; i < group.sequences; i++) {
        const int position = row_position_[row + i], end = position / kPartition + 1;
        const size_t base = plan.partials + i * one;
        AttentionUnit unit{pages_of(group.first + i), row + i, 1, position, 0, 0, end, nullptr, step};
        for (unit.kv_head = 0; unit.kv_head < heads; unit.kv_head++) {
            unit.partial = offset(base + unit.kv_head * floats);
            plan.merges.push_back(unit);
        }
        add_parts(unit, group.parts, heads, base, floats, plan);
        most = std::max(most, end);
    }
    plan.partials += step * most;
}

AttentionPlan Executor::build_attention(const Op& op) {
    const AttentionArgs args = attention_args(op);
    const int most = kernels_->attention_rows(args);
    int blocks = 0;
    for (int s = 0; s < batch_.sequences; s++)
        for (const RowRun& run : attending_rows(op, s)) blocks += (run.rows + most - 1) / most;
    const bool split = blocks * args.k.heads * args.split < 8 * pool_.threads();
    AttentionPlan plan;
    for (int s = 0; s < batch_.sequences;) {
        const RowGroup group = sharing(op, s, most);
        if (group.parts > 0) add_group(op, group, plan);
        else
            for (const RowRun& run : attending_rows(op, s))
                for (int row = run.row; row < run.row + run.rows; row += most)
                    add_block(op, s, row, std::min(most, run.row + run.rows - row), plan, split);
        s += group.parts > 0 ? group.sequences : 1;
    }
    plan.scratch = kernels_->attention_scratch(args, std::min(most, batch_.rows));
    return plan;
}

// Plans run one after the other, so they share the memory for partials.
void Executor::place_partials() {
    size_t floats = 0;
    for (const auto& known : attention_plans_) floats = std::max(floats, known.second->partials);
    float* base = reinterpret_cast<float*>(partials_.reserve(floats * sizeof(float)));
    auto place = [base](AttentionUnit& unit) {
        if (unit.partial) unit.partial = base + (reinterpret_cast<uintptr_t>(unit.partial) / sizeof(float) - 1);
    };
    for (auto& known : attention_plans_) {
        std::for_each(known.second->units.begin(), known.second->units.end(), place);
        std::for_each(known.second->merges.begin(), known.second->merges.end(), place);
    }
}

}  // namespace pk
