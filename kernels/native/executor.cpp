#include "executor.h"

#include <algorithm>
#include <cmath>

namespace pk {

Executor::Executor(ProgramData program, int threads, const KernelTable* kernels)
    : RunState(program), program_(std::move(program)), kernels_(kernels), pool_(threads), barrier_(threads),
      phases_(plan_phases(program_, kernels->rounding)), scratch_(threads), parked_(program_), shares_(threads) {
    for (const TensorView& tensor : program_.tensors) halves_ = halves_ || kernels_->halved(tensor.type);
}

void Executor::fill(float value) {
    auto fill_arena = [value](const Arena& arena) {
        float* data = reinterpret_cast<float*>(arena.data());
        std::fill(data, data + arena.size() / sizeof(float), value);
    };
    auto fill_quantised = [&](const Roundings& roundings) {
        for (const Quantised& q : roundings.ways)
            for (const Arena* arena : {&q.data, &q.meta, &q.halves}) fill_arena(*arena);
    };
    for (Buffer& buffer : buffers_) {
        fill_arena(buffer.memory);
        fill_quantised(buffer.quant);
        fill_quantised(buffer.singles);
    }
    for (const Roundings* q : {&pairs_.input, &pairs_.hidden}) fill_quantised(*q);
    for (const Arena* arena : {&pairs_.source, &pairs_.opened, &pairs_.sums, &absorbed_, &latent_sums_}) fill_arena(*arena);
    for (const Arena& arena : scratch_) fill_arena(arena);
    for (const Arena& arena : rope_tables_) fill_arena(arena);
    fill_arena(partials_);
}

int Executor::width_of(int buffer) const {
    return buffer == hidden_buffer(program_) ? program_.channels : program_.widths[buffer];
}

void Executor::reserve_quant(const Op& op, int rows) {
    Buffer& buffer = buffers_[op.src];
    Roundings& to = op.kind == OpKind::Quantise ? buffer.quant : buffer.singles;
    to.reserve(static_cast<Rounding>(op.flag), rows, width_of(op.src), halves_);
}

void Executor::index_rows() {
    row_sequence_.resize(batch_.rows);
    row_position_.resize(batch_.rows);
    for (int s = 0; s < batch_.sequences; s++)
        for (int r = batch_.seq_rows[s]; r < batch_.seq_rows[s + 1]; r++) {
            row_sequence_[r] = s;
            row_position_[r] = batch_.seq_start[s] + r - batch_.seq_rows[s];
        }
}

Outcome Executor::step(const BatchView& batch) {
    batch_ = batch;
    reserve(batch.rows);
    index_rows();
    plan_mla();
    pairs_.restart();
    return run(false);
}

Outcome Executor::resume(double milliseconds) {
    using namespace std::chrono;
    std::swap(static_cast<RunState&>(*this), parked_);
    has_parked_ = false;
    if (milliseconds > 0) deadline_ = steady_clock::now() + microseconds(static_cast<int64_t>(milliseconds * 1e3));
    const Outcome outcome = go_on();
    deadline_.reset();
    return outcome;
}

bool Executor::head(const BatchView& batch) {
    batch_ = batch;
    return run(true) == Outcome::Completed;
}

int Executor::strips(const Op& op) const {
    return (program_.tensors[op.weight].rows + kStripRows - 1) / kStripRows;
}

void Executor::activate(const Phase& phase) {
    const int rows = phase.on_outputs() ? batch_.outputs : batch_.rows;
    if (rows == 0) return;
    Active active{&phase, 0, 1, false, nullptr};
    if (phase.kind == Phase::Rows) {
        active.units = (rows + kGroupTokens - 1) / kGroupTokens;
        active.serial = active.units == 1;
        for (const Op& op : phase.ops)
            if (op.kind == OpKind::Quantise || op.kind == OpKind::QuantiseSingles) reserve_quant(op, rows);
    } else if (phase.kind == Phase::Outputs) {
        active.units = 1;
        active.serial = true;
    } else if (phase.kind == Phase::Linears) {
        for (const Op& op : phase.ops) active.units += strips(op);
        active.grain = grain(active.units, rows);
    }
    active_.push_back(active);
}

// Units that a thread takes at once, before another may take from the rest of its share.
int Executor::grain(int units, int rows) const {
    return rows > kGroupTokens ? kStripsAtOnce : std::clamp(units / (pool_.threads() * 16), 1, 8);
}

// Sizes the phases that depend on the routing, which is known by now.
void Executor::open(Active& active) {
    if (active.phase->kind < Phase::ExpertGather) return;
    active.units = expert_units(*active.phase);
    const bool rows = active.phase->kind == Phase::ExpertGather || active.phase->kind == Phase::ExpertQuantise;
    active.serial = rows && batch_.rows == 1;
    active.grain = rows ? 1 : grain(active.units, batch_.rows);
}

Outcome Executor::run(bool only_head) {
    buffers_[hidden_buffer(program_)].external = batch_.hidden;
    buffers_[logits_buffer(program_)].external = batch_.logits;
    active_.clear();
    attention_plans_.clear();
    for (const Phase& phase : phases_) {
        if (only_head && phase.part != kHead) continue;
        if (phase.kind == Phase::Attend || phase.kind == Phase::Merge) activate_attention(phase);
        else if (phase.kind >= Phase::MlaAbsorb && phase.kind <= Phase::MlaPrompt) activate_mla(phase);
        else activate(phase);
    }
    place_partials();
    reserve_scratch();
    head_only_ = only_head;
    next_ = 0;
    left_.clear();
    return go_on();
}

// From what is left of phase `next_` on.
Outcome Executor::go_on() {
    stopped_ = parks_ = false;
    if (left_.empty()) {
        advance(next_);
    } else {
        shares_.deal(left_);
        left_.clear();
        cursor_.store(next_, std::memory_order_release);
    }
    if (cursor_.load() < static_cast<int>(active_.size()))
        pool_.run([](void* self, int thread) { static_cast<Executor*>(self)->work(thread); }, this);
    if (!parks_) return stopped_ ? Outcome::Stopped : Outcome::Completed;
    std::swap(static_cast<RunState&>(*this), parked_);
    has_parked_ = true;
    return Outcome::Parked;
}

void Executor::reserve_scratch() {
    size_t bytes = 4096;
    for (const Active& active : active_) {
        if (active.phase->kind == Phase::Linears)
            for (const Op& op : active.phase->ops)
                bytes = std::max(bytes, kernels_->linear_scratch(program_.tensors[op.weight].cols, batch_.rows));
        if (active.phase->kind == Phase::ExpertOpen) bytes = std::max(bytes, expert_scratch(active.phase->ops[0]));
        if (active.phase->kind >= Phase::MlaAbsorb && active.phase->kind <= Phase::MlaPrompt)
            bytes = std::max(bytes, kernels_->mla_scratch(mla_args(active.phase->ops[0]), batch_.rows,
                                                          heads_per_unit(active.phase->ops[0])));
        if (active.attention) bytes = std::max(bytes, active.attention->scratch);
    }
    for (Arena& arena : scratch_) arena.reserve(bytes);
}

// Called by one thread while the others wait: runs serial phases and opens the next shared one.
void Executor::advance(int next) {
    const int end = static_cast<int>(active_.size());
    for (; next < end && !cancelled() && !parks_; next = after(next)) {
        if (next != next_ && asked_to_park()) {  // not before the first one, so that each run gets on
            parks_ = true;
            next_ = next;
            break;
        }
        Active& active = active_[next];
        open(active);
        if (active.units > 0 && !active.serial) break;
        for (int unit = 0; unit < active.units; unit++) run_unit(active, unit, 0);
    }
    if (next < end && (parks_ || cancelled())) {
        stopped_ = !parks_;
        next = end;
    }
    if (next < end) shares_.deal(active_[next].units);
    cursor_.store(next, std::memory_order_release);
}

// Called by one thread while the others wait, behind a phase: opens the next, unless something of it is left to do.
void Executor::leave(int at) {
    stopped_ = cancelled();
    if (!stopped_ && shares_.any()) {
        parks_ = true;
        next_ = at;
        left_ = shares_.left();
    }
    advance(stopped_ || parks_ ? static_cast<int>(active_.size()) : after(at));
}

void Executor::work(int thread) {
    for (;;) {
        const int at = cursor_.load(std::memory_order_acquire);
        if (at >= static_cast<int>(active_.size())) return;
        Ahead ahead = ahead_of(at, thread);
        run_units(active_[at], ahead.first(), thread);
        barrier_.arrive([&] { leave(at); }, [&] { ahead.fetch(); });
    }
}

// Until none are left or the step is to be parked, but some in each run, so that it gets on: a phase of a large slice of
// prefill can take 50 ms. `after`: weights that the thread reads behind this phase, or null.
void Executor::run_units(const Active& active, const uint8_t* after, int thread) {
    const Phase::Kind kind = active.phase->kind;
    for (UnitRange range; !cancelled() && !(range = shares_.take(thread, active.grain)).empty();) {
        if (kind == Phase::Linears) run_linears(active, range, after, thread);
        else if (kind == Phase::ExpertOpen || kind == Phase::ExpertClose) run_experts(active, range, after, thread);
        else
            for (int unit = range.first; unit < range.last && !cancelled(); unit++) run_unit(active, unit, thread);
        if (asked_to_park()) break;
    }
}

void Executor::run_unit(const Active& active, int unit, int thread) {
    switch (active.phase->kind) {
        case Phase::Rows: run_rows(*active.phase, unit); break;
        case Phase::Outputs: keep_outputs(); break;
        case Phase::Attend:
            kernels_->attend(attention_args(active.phase->ops[0]), active.attention->units[unit],
                             scratch_[thread].data());
            break;
        case Phase::Merge: {
            const AttentionUnit& merge = active.attention->merges[unit];
            kernels_->merge_partials(attention_args(active.phase->ops[0]), merge, merge.part_begin, merge.part_end);
            break;
        }
        case Phase::MlaAbsorb:
        case Phase::MlaValues:
        case Phase::MlaPrompt: run_mla(*active.phase, unit, thread); break;
        default: run_expert_rows(*active.phase, unit);
    }
}

void Executor::run_rows(const Phase& phase, int group) {
    const int total = phase.on_outputs() ? batch_.outputs : batch_.rows;
    const int first = group * kGroupTokens, last = std::min(first + kGroupTokens, total);
    for (const Op& op : phase.ops) {
        if (op.kind == OpKind::Quantise || op.kind == OpKind::QuantiseSingles) {
            run_quantise(op, first, last - first);
            continue;
        }
        for (int row = first; row < last; row++) run_row_op(op, row);
    }
}

void Executor::run_quantise(const Op& op, int first, int rows) {
    const Buffer& buffer = buffers_[op.src];
    const int cols = width_of(op.src);
    const Rounding way = static_cast<Rounding>(op.flag);
    const auto round = [&](const Roundings& to, int row, int count) {
        kernels_->round_activations(way, buffer.row(row), buffer.stride, cols, to.group(way, row, cols, count));
    };
    if (op.kind == OpKind::Quantise) return round(buffer.quant, first, rows);
    for (int row = first; row < first + rows; row++) round(buffer.singles, row, 1);
}

LinearArgs Executor::linear_args(const Op& op, int rows) const {
    const Buffer& src = buffers_[op.src];
    const Buffer& out = buffers_[op.out];
    const float* bias = op.extra < 0 ? nullptr : reinterpret_cast<const float*>(program_.tensors[op.extra].data);
    const TensorView& weight = program_.tensors[op.weight];
    const QuantGroup quant = src.quant.group(kernels_->rounding(weight.type), 0, width_of(op.src), rows);
    return LinearArgs{weight, src.data(), src.stride, quant.data, quant.meta, quant.halves,
                      out.data(), out.stride, bias, op.scale, op.flag != 0, rows};
}

// Strips of a phase's matrices, one matrix after the other. `after`: what the thread reads behind its share, or null.
void Executor::run_linears(const Active& active, const UnitRange& range, const uint8_t* after, int thread) {
    const std::vector<Op>& ops = active.phase->ops;
    const int rows = active.phase->on_outputs() ? batch_.outputs : batch_.rows;
    const bool ends = range.last == shares_.share(active.units, thread).last;
    int before = 0;
    for (size_t i = 0; i < ops.size(); before += strips(ops[i++])) {
        const int count = strips(ops[i]), begin = std::max(range.first - before, 0), end = std::min(range.last - before, count);
        if (begin >= end) continue;
        LinearArgs args = linear_args(ops[i], rows);
        if (ends && before + end == range.last) args.then = after;
        else if (end == count && i + 1 < ops.size()) args.then = program_.tensors[ops[i + 1].weight].data;
        kernels_->linear_strips(args, begin, end - begin, scratch_[thread].data());
    }
}

}  // namespace pk
