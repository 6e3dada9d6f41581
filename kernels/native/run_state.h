// All that a step holds between two units: a step that was parked keeps it while others run.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "arena.h"
#include "experts.h"
#include "kernel_table.h"
#include "program.h"
#include "shares.h"

namespace pk {

struct Buffer {
    Arena memory;
    float* external = nullptr;   // hidden and logits live in the caller's arrays
    size_t stride = 0;
    Roundings quant;             // rows in groups of 8
    Roundings singles;           // every row a group of its own
    float* data() const { return external ? external : reinterpret_cast<float*>(memory.data()); }
    float* row(int r) const { return data() + static_cast<size_t>(r) * stride; }
};

// Floats of a row, so that every row starts on a cache line.
inline size_t padded(size_t width) { return (width + 15) / 16 * 16; }

struct RowRun {              // consecutive rows
    int row;
    int rows;
};

struct AttentionPlan {
    std::vector<AttentionUnit> units;
    std::vector<AttentionUnit> merges;
    size_t partials = 0;         // floats
    size_t scratch = 0;
};

struct Active {              // a phase of this step
    const Phase* phase;
    int units;
    int grain;
    bool serial;
    AttentionPlan* attention;
};

struct RunState {
    std::vector<Buffer> buffers_;
    std::vector<Arena> rope_tables_;       // cosines then sines, [rows, dims / 2] each
    Arena partials_;
    ExpertPairs pairs_;
    Arena absorbed_, latent_sums_;         // [rows, heads, kv_lora + rope], [rows, heads, kv_lora]
    std::vector<int> generated_;           // rows of role 1
    std::vector<RowRun> prompt_runs_;      // of role 0, by sequence
    int reserved_rows_ = 0;

    BatchView batch_;
    std::vector<int> row_sequence_, row_position_;
    std::vector<Active> active_;
    std::vector<std::pair<Op, std::unique_ptr<AttentionPlan>>> attention_plans_;
    bool head_only_ = false;               // hidden vectors are given, not computed
    int next_ = 0;                         // phase that a parked step goes on with
    std::vector<UnitRange> left_;          // units of it; empty: all

    explicit RunState(const ProgramData& program);
    void reserve(const ProgramData& program, int rows);
};

}  // namespace pk
