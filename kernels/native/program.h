// The decoded program and batch of a step.
#pragma once
#include <cstdint>
#include <vector>

#include "types.h"

namespace pk {

// Column meanings are set by kernels/encoding.py.
enum class OpKind : int { Embed, RmsNorm, HeadNorm, Linear, Rope, KvWrite, Attention, Gated, Head, Quantise, RopeRows, OutNorm, Softcap, Add, SigmoidGate, QuantiseSingles, Route, Experts, MlaAttention };

struct Op {
    OpKind kind;
    int out = -1;
    int src = -1;
    int weight = -1;     // tensor
    int extra = -1;      // tensor (bias, sinks, output weight) or buffer (v, up)
    int index = -1;      // rope or KV layer
    int heads = 0;
    int head_dim = 0;
    int flag = 0;        // accumulate, activation, window, first channel, normed channels, gating, rounding
    int more[9] = {};    // what else an operation needs, in the order of kernels/encoding.py
    float value = 0;     // eps or scale
    float scale = 1;
    float cap = 0;
};

// Columns of Op::more for experts; the last three are set when phases are planned: what the weights of gate and up
// (input) and down (hidden) want of their source; of input and hidden a bit for each rounding.
enum ExpertColumn { kRoute, kGateBias, kUpBias, kDownBias, kAccumulate, kFactors, kNeedsFloats, kNeedsInput, kNeedsHidden };

enum MlaColumn { kNope, kRope, kValueDim };

struct KvLayer {
    KvPlane k, v;
};

struct RopeTable {
    int dims;
    int kind;
    double magnitude;
    std::vector<double> inv_freq;
};

struct ProgramData {
    std::vector<int> widths;
    std::vector<TensorView> tensors;
    std::vector<KvLayer> kv_layers;
    std::vector<RopeTable> ropes;
    std::vector<Op> ops;
    int page_tokens = 0;
    int vocabulary = 0;
    int channels = 0;
};

// What PARK does to a step: see kernels/program.py. Finish: nothing, whoever asked for the step looks at the flag behind it.
enum class OnPark : uint8_t { Stop, Park, Finish };

struct BatchView {
    const int32_t* tokens = nullptr;
    const uint8_t* roles = nullptr;   // 1: generated
    int rows = 0;
    const int32_t* seq_rows = nullptr;
    const int32_t* seq_start = nullptr;
    int sequences = 0;
    const uint64_t* pages = nullptr;
    int max_pages = 0;
    const uint8_t* seq_write = nullptr;
    const int32_t* out_rows = nullptr;
    int outputs = 0;
    const volatile uint8_t* cancel = nullptr;
    OnPark on_park = OnPark::Stop;
    float* logits = nullptr;
    float* hidden = nullptr;
};

// Of a program: what works on all rows of the batch; what lies behind the last operation that knows positions, if a head
// follows, and works on the out_rows alone; the head.
enum Part : int { kBody, kTail, kHead };

// Consecutive operations that need no barrier between them. Outputs: keeps the out_rows of all buffers, in their order.
struct Phase {
    enum Kind { Rows, Linears, Attend, Merge, MlaAbsorb, MlaValues, MlaPrompt, Outputs,
                ExpertGather, ExpertOpen, ExpertQuantise, ExpertClose } kind;
    Part part;
    std::vector<Op> ops;
    bool on_outputs() const { return part != kBody; }
};

// The two buffers behind the program's own: hidden vectors and logits of the out_rows.
inline int hidden_buffer(const ProgramData& p) { return static_cast<int>(p.widths.size()); }
inline int logits_buffer(const ProgramData& p) { return static_cast<int>(p.widths.size()) + 1; }

std::vector<Phase> plan_phases(const ProgramData& program, Rounding (*rounding)(int ggml_type));

}  // namespace pk
