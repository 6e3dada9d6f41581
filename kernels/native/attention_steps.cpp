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

void Executor::add_block(const Op& op, int sequence, int row, int rows, AttentionPlan& plan, bool split) {
    const AttentionArgs args = attention_args(op);
    const int position = row_position_[row], last = position + rows - 1;
    const int oldest = args.window > 0 ? std::max(0, position - args.window + 1) : 0;
    const int begin = oldest / kPartition, end = last / kPartition + 1;
    AttentionUnit unit{batch_.pages + static_cast<size_t>(sequence) * batch_.max_pages, row, rows, position, 0,
                       begin, end, nullptr};
    const size_t floats = kernels_->partial_floats(args, rows);
    const int parts = split ? end - begin : 1;
    // Offsets for now; they become pointers when the total is known.
    const auto place = [&](int head, int part) {
        return reinterpret_cast<float*>((plan.partials + (static_cast<size_t>(head) * parts + part) * floats + 1) * sizeof(float));
    };
    // Heads of a partition follow each other, as they do in memory.
    for (int part = 0; part < parts; part++)
        for (unit.kv_head = 0; unit.kv_head < args.k.heads; unit.kv_head++) {
            AttentionUnit piece = unit;
            if (parts > 1) {
                if (part == 0) {
                    plan.merges.push_back(unit);
                    plan.merges.back().partial = place(unit.kv_head, 0);
                }
                piece.part_begin = begin + part;
                piece.part_end = begin + part + 1;
                piece.partial = place(unit.kv_head, part);
            }
            plan.units.push_back(piece);
        }
    if (parts > 1) plan.partials += floats * parts * args.k.heads;
}

AttentionPlan Executor::build_attention(const Op& op) {
    const AttentionArgs args = attention_args(op);
    const int most = kernels_->attention_rows(args);
    int blocks = 0;
    for (int s = 0; s < batch_.sequences; s++)
        for (const RowRun& run : attending_rows(op, s)) blocks += (run.rows + most - 1) / most;
    const bool split = blocks * args.k.heads < 8 * pool_.threads();
    AttentionPlan plan;
    for (int s = 0; s < batch_.sequences; s++)
        for (const RowRun& run : attending_rows(op, s))
            for (int row = run.row; row < run.row + run.rows; row += most)
                add_block(op, s, row, std::min(most, run.row + run.rows - row), plan, split);
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
