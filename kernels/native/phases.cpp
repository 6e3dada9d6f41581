// Groups operations into phases: row-wise neighbours together, independent matrix products together, and a
// quantisation of a product's source where none is valid.
#include <algorithm>
#include <set>

#include "program.h"

namespace pk {
namespace {

class Planner {
public:
    Planner(const ProgramData& program, bool (*quantised)(int)) : program_(program), quantised_(quantised) {}

    std::vector<Phase> plan() {
        for (int i = 0; i < static_cast<int>(program_.ropes.size()); i++) {
            Op op{OpKind::RopeRows};
            op.index = i;
            add_row_op(op);
        }
        for (const Op& op : program_.ops) add(op);
        return std::move(phases_);
    }

private:
    void add(const Op& op) {
        switch (op.kind) {
            case OpKind::Linear: add_linear(op); break;
            case OpKind::Attention: add_attention(op); break;
            case OpKind::Experts: add_experts(op); break;
            case OpKind::MlaAttention: add_mla(op); break;
            case OpKind::Head: add_head(op); break;
            default: add_row_op(op);
        }
    }

    Phase& phase(Phase::Kind kind, bool fresh) {
        if (fresh || phases_.empty() || phases_.back().kind != kind || phases_.back().on_outputs != on_outputs_)
            phases_.push_back(Phase{kind, on_outputs_, {}});
        return phases_.back();
    }

    void add_row_op(const Op& op) {
        phase(Phase::Rows, false).ops.push_back(op);
        if (op.kind != OpKind::Quantise && op.out >= 0) quantised_buffers_.erase(op.out);
    }

    void add_linear(const Op& op) {
        if (quantised_(program_.tensors[op.weight].type) && quantised_buffers_.insert(op.src).second) {
            Op quantise{OpKind::Quantise};
            quantise.src = op.src;
            add_row_op(quantise);
        }
        const bool joins = !phases_.empty() && phases_.back().kind == Phase::Linears && independent(op);
        phase(Phase::Linears, !joins).ops.push_back(op);
        quantised_buffers_.erase(op.out);
    }

    bool independent(const Op& op) const {
        const std::vector<Op>& others = phases_.back().ops;
        return std::none_of(others.begin(), others.end(), [&](const Op& other) {
            return other.out == op.out || other.out == op.src || other.src == op.out;
        });
    }

    void add_attention(const Op& op) {
        phase(Phase::Attend, true).ops.push_back(op);
        phase(Phase::Merge, true).ops.push_back(op);
        quantised_buffers_.erase(op.out);
    }

    void add_mla(const Op& op) {
        for (Phase::Kind kind : {Phase::MlaAbsorb, Phase::Attend, Phase::Merge, Phase::MlaValues, Phase::MlaPrompt})
            phase(kind, true).ops.push_back(op);
        quantised_buffers_.erase(op.out);
    }

    void add_experts(const Op& op) {
        Op sized = op;
        for (int e = 0; e < op.heads; e++) {
            for (int first : {op.weight, op.extra})
                sized.more[quantised_(program_.tensors[first + e].type) ? kNeedsInput : kNeedsFloats] = 1;
            if (quantised_(program_.tensors[op.index + e].type)) sized.more[kNeedsHidden] = 1;
        }
        if (sized.more[kNeedsInput]) {
            Op quantise{OpKind::QuantiseSingles};
            quantise.src = op.src;
            add_row_op(quantise);
        }
        for (Phase::Kind kind : {Phase::ExpertGather, Phase::ExpertOpen, Phase::ExpertQuantise, Phase::ExpertClose})
            phase(kind, true).ops.push_back(sized);
        quantised_buffers_.erase(op.out);
    }

    void add_head(const Op& op) {
        on_outputs_ = true;
        Op norm = op;
        norm.kind = OpKind::OutNorm;
        norm.out = hidden_buffer(program_);
        add_row_op(norm);
        Op linear{OpKind::Linear};
        linear.out = logits_buffer(program_);
        linear.src = hidden_buffer(program_);
        linear.weight = op.extra;
        linear.scale = op.scale;
        add_linear(linear);
        if (op.cap > 0) {
            Op cap{OpKind::Softcap};
            cap.out = logits_buffer(program_);
            cap.cap = op.cap;
            add_row_op(cap);
        }
        on_outputs_ = false;
    }

    const ProgramData& program_;
    bool (*quantised_)(int);
    std::vector<Phase> phases_;
    std::set<int> quantised_buffers_;
    bool on_outputs_ = false;
};

}  // namespace

std::vector<Phase> plan_phases(const ProgramData& program, bool (*quantised)(int ggml_type)) {
    return Planner(program, quantised).plan();
}

}  // namespace pk
