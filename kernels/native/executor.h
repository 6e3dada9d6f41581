// Runs a program for a batch: all phases on one team of threads, a range of units to each, see shares.h.
#pragma once
#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "run_state.h"
#include "shares.h"
#include "thread_pool.h"

namespace pk {

constexpr size_t kWarmBytes = 64 << 10;   // of the next matrix, asked for while others are still busy
constexpr int kMostAhead = 16;            // matrices

struct RowGroup {            // neighbouring sequences of one row each whose first `parts` partitions are the same pages
    int first;
    int sequences;
    int parts;
};

enum class Outcome : int { Stopped, Completed, Parked };
enum CancelFlag : uint8_t { kGoOn, kStop, kPark };  // numbers of kernels/program.py

struct StripSpan {           // neighbouring strips of a matrix
    int first;
    int count;
};

class Executor : RunState {
public:
    Executor(ProgramData program, int threads, const KernelTable* kernels);
    // Parked: the flag asked for it, between two units of a phase. The step keeps its state and goes on with resume(),
    // after any number of other steps; its batch and the pages in it must stay. One step can be parked; others are
    // stopped instead. After `milliseconds` (0: never) a resumed step is parked again.
    Outcome step(const BatchView& batch);
    Outcome resume(double milliseconds);
    void drop() { has_parked_ = false; }
    bool head(const BatchView& batch);    // only the output phases, from batch.hidden
    void reserve(int rows) { RunState::reserve(program_, rows); }
    Buffer& buffer(int index) { return buffers_[index]; }
    const ProgramData& program() const { return program_; }
    const KernelTable& kernels() const { return *kernels_; }
    int threads() const { return pool_.threads(); }
    void fill(float value);               // all scratch, for tests

private:
    Outcome run(bool only_head);
    Outcome go_on();
    bool asked_to_park() const { return may_park() && (flag() == kPark || late()); }
    void leave(int at);
    void index_rows();
    void activate(const Phase& phase);
    void activate_attention(const Phase& phase);
    AttentionPlan build_attention(const Op& op);
    const uint64_t* pages_of(int sequence) const {
        return batch_.pages + static_cast<size_t>(sequence) * batch_.max_pages;
    }
    int shared_parts(int a, int b) const;
    RowGroup sharing(const Op& op, int first, int most) const;
    void add_parts(AttentionUnit unit, int from, int heads, size_t partials, size_t head_floats, AttentionPlan& plan);
    void add_group(const Op& op, const RowGroup& group, AttentionPlan& plan);
    void add_block(const Op& op, int sequence, int row, int rows, AttentionPlan& plan, bool split);
    void place_partials();
    void reserve_quant(const Op& op, int rows);
    int width_of(int buffer) const;
    void open(Active& active);
    int grain(int units, int rows) const;
    void reserve_scratch();
    int strips(const Op& op) const;
    void work(int thread);
    // Weights that a waiting thread asks for, a few lines at a time.
    struct Ahead {
        const uint8_t* parts[kMostAhead];
        size_t bytes = 0, done = 0;  // of every part
        int count = 0;
        const uint8_t* first() const { return count ? parts[0] : nullptr; }
        void fetch();
    };
    Ahead ahead_of(int at, int thread) const;
    void add_ahead(const TensorView& weight, int strip, size_t most, Ahead& ahead) const;
    void run_units(const Active& active, const uint8_t* after, int thread);
    void run_unit(const Active& active, int unit, int thread);
    void advance(int next);
    void run_rows(const Phase& phase, int group);
    void keep_outputs();
    void run_row_op(const Op& op, int row);
    void run_quantise(const Op& op, int first, int rows);
    void open_slice(const Op& op);
    int after(int at);
    int expert_units(const Phase& phase);
    void gather_group(const Op& op, const ExpertGroup& group);
    void weave_group(const Op& op, const ExpertGroup& group, Rounding way) const;
    QuantGroup input_of(const Op& op, const TensorView& weight, const ExpertRun& run) const;
    void expert_strips(const TensorView& weight, const float* src, size_t stride, const QuantGroup& quant,
                       const float* bias, float factor, int pairs, const StripSpan& span, const uint8_t* then,
                       float* out, uint8_t* scratch) const;
    void open_expert(const Op& op, const ExpertRun& run, const StripSpan& span, const uint8_t* then, uint8_t* scratch);
    void round_opened(const Op& op, const ExpertGroup& group);
    void close_experts(const Op& op, const StripSpan& span, const uint8_t* then, uint8_t* scratch);
    void run_experts(const Active& active, const UnitRange& range, const uint8_t* after, int thread);
    void run_expert_rows(const Phase& phase, int unit);
    size_t expert_scratch(const Op& op) const;
    void run_linears(const Active& active, const UnitRange& range, const uint8_t* after, int thread);
    void rope_rows(const Op& op, int row);
    void write_kv(const Op& op, int row);
    LinearArgs linear_args(const Op& op, int rows) const;
    AttentionArgs attention_args(const Op& op) const;
    AttentionArgs absorbed_attention(const Op& op) const;
    int latent_split(int heads) const;
    std::vector<RowRun> attending_rows(const Op& op, int sequence) const;
    std::vector<RowRun> runs_of_role(int sequence, int role) const;
    MlaArgs mla_args(const Op& op) const;
    int heads_per_unit(const Op& op) const;
    MlaUnit prompt_unit(const Op& op, int unit) const;
    void plan_mla();
    void activate_mla(const Phase& phase);
    void run_mla(const Phase& phase, int unit, int thread);
    bool late() const { return deadline_ && std::chrono::steady_clock::now() >= *deadline_; }
    uint8_t flag() const { return batch_.cancel ? *batch_.cancel : static_cast<uint8_t>(kGoOn); }
    bool may_park() const { return batch_.on_park == OnPark::Park && !has_parked_; }
    bool cancelled() const {
        return flag() == kStop || (flag() == kPark && batch_.on_park != OnPark::Finish && !may_park());
    }

    ProgramData program_;
    const KernelTable* kernels_;
    ThreadPool pool_;
    Barrier barrier_;
    std::vector<Phase> phases_;
    std::vector<Arena> scratch_;           // one per thread
    RunState parked_;                      // of the parked step, else spare
    bool has_parked_ = false;
    std::optional<std::chrono::steady_clock::time_point> deadline_;
    Shares shares_;
    alignas(64) std::atomic<int> cursor_{0};
    bool halves_ = false;                  // some weight wants the sums of half blocks
    bool stopped_ = false;
    bool parks_ = false;                   // the step that runs is about to be parked
};

}  // namespace pk
