// Splits latent attention into units: generated rows by head before and behind an ordinary attention over the latent
// rows, prompt rows by runs and heads.
#include <algorithm>

#include "executor.h"

namespace pk {

std::vector<RowRun> Executor::runs_of_role(int sequence, int role) const {
    std::vector<RowRun> runs;
    for (int row = batch_.seq_rows[sequence]; row < batch_.seq_rows[sequence + 1]; row++) {
        if ((batch_.roles[row] == 1) != (role == 1)) continue;
        if (!runs.empty() && runs.back().row + runs.back().rows == row) runs.back().rows++;
        else runs.push_back(RowRun{row, 1});
    }
    return runs;
}

std::vector<RowRun> Executor::attending_rows(const Op& op, int sequence) const {
    if (op.kind == OpKind::MlaAttention) return runs_of_role(sequence, 1);
    return {RowRun{batch_.seq_rows[sequence], batch_.seq_rows[sequence + 1] - batch_.seq_rows[sequence]}};
}

MlaArgs Executor::mla_args(const Op& op) const {
    const Buffer& q = buffers_[op.src];
    const Buffer& out = buffers_[op.out];
    MlaArgs args{};
    args.plane = program_.kv_layers[op.index].k;
    args.k_b = &program_.tensors[op.weight];
    args.v_b = &program_.tensors[op.extra];
    args.q = q.data();
    args.q_stride = q.stride;
    args.out = out.data();
    args.out_stride = out.stride;
    args.heads = op.heads;
    args.kv_lora = op.head_dim;
    args.nope = op.more[kNope];
    args.rope = op.more[kRope];
    args.value_dim = op.more[kValueDim];
    args.k_transposed = op.flag != 0;
    args.scale = op.scale;
    args.absorbed = absorbed_.floats();
    args.absorbed_stride = static_cast<size_t>(op.heads) * (args.kv_lora + args.rope);
    args.sums = latent_sums_.floats();
    args.sums_stride = static_cast<size_t>(op.heads) * args.kv_lora;
    return args;
}

// All heads attend over the one latent row per token; V is its first kv_lora channels.
AttentionArgs Executor::absorbed_attention(const Op& op) const {
    const MlaArgs mla = mla_args(op);
    KvPlane values = mla.plane;
    values.head_dim = mla.kv_lora;
    return AttentionArgs{mla.plane, values, mla.absorbed, mla.absorbed_stride, mla.sums, mla.sums_stride, op.heads,
                         op.scale, 0, 0.0f, nullptr, latent_split(op.heads)};
}

// Parts of the heads that attend by themselves, so that short sequences keep all threads busy. Each part reads the latent
// rows again, about a fifth of the work of 16 heads.
int Executor::latent_split(int heads) const {
    double partitions = 0;
    for (int row : generated_) partitions += (row_position_[row] + 1.0) / kPartition;
    const auto length = [&](int split) {
        const double unit = 0.2 + 0.8 / split, threads = pool_.threads();
        return partitions * split * unit / threads + unit * (1 - 1 / threads);
    };
    int split = 1;
    while (heads % (2 * split) == 0 && length(2 * split) < length(split)) split *= 2;
    return split;
}

// Before a step: which rows are generated, and memory for them.
void Executor::plan_mla() {
    generated_.clear();
    size_t absorbed = 0, sums = 0;
    for (const Op& op : program_.ops) {
        if (op.kind != OpKind::MlaAttention) continue;
        const MlaArgs args = mla_args(op);
        absorbed = std::max(absorbed, args.absorbed_stride);
        sums = std::max(sums, args.sums_stride);
    }
    if (absorbed == 0) return;
    prompt_runs_.clear();
    for (int s = 0; s < batch_.sequences; s++)
        for (const RowRun& run : runs_of_role(s, 0)) prompt_runs_.push_back(run);
    for (int row = 0; row < batch_.rows; row++)
        if (batch_.roles[row] == 1) generated_.push_back(row);
    if (generated_.empty()) return;
    absorbed_.reserve(absorbed * batch_.rows * sizeof(float));
    latent_sums_.reserve(sums * batch_.rows * sizeof(float));
}

void Executor::activate_mla(const Phase& phase) {
    const Op& op = phase.ops[0];
    Active active{&phase, op.heads, 1, false, nullptr};
    if (phase.kind == Phase::MlaPrompt) {
        const int heads = heads_per_unit(op);
        active.units = static_cast<int>(prompt_runs_.size()) * ((op.heads + heads - 1) / heads);
    } else if (generated_.empty()) return;
    if (active.units > 0) active_.push_back(active);
}

// Heads that share the conversion of the latent rows; enough units must be left for all threads.
int Executor::heads_per_unit(const Op& op) const { return std::clamp(op.heads / (4 * pool_.threads()), 1, 4); }

MlaUnit Executor::prompt_unit(const Op& op, int unit) const {
    const int heads = heads_per_unit(op), groups = (op.heads + heads - 1) / heads;
    const RowRun& run = prompt_runs_[unit / groups];
    const int first = unit % groups * heads, sequence = row_sequence_[run.row];
    return MlaUnit{batch_.pages + static_cast<size_t>(sequence) * batch_.max_pages, run.row, run.rows,
                   row_position_[run.row], first, std::min(heads, op.heads - first)};
}

void Executor::run_mla(const Phase& phase, int unit, int thread) {
    const MlaArgs args = mla_args(phase.ops[0]);
    uint8_t* scratch = scratch_[thread].data();
    const int count = static_cast<int>(generated_.size());
    if (phase.kind == Phase::MlaAbsorb) kernels_->mla_absorb(args, unit, generated_.data(), count, scratch);
    else if (phase.kind == Phase::MlaValues) kernels_->mla_values(args, unit, generated_.data(), count, scratch);
    else kernels_->mla_prompt(args, prompt_unit(phase.ops[0], unit), scratch);
}

}  // namespace pk
