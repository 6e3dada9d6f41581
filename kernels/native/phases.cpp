// Groups operations into phases: row-wise neighbours together, independent matrix products together, and a
// quantisation of a product's source where none of the kind is valid.
#include <algorithm>
#include <set>
#include <utility>

#include "program.h"

namespace pk {
namespace {

class Planner {
public:
    Planner(const ProgramData& program, Rounding (*rounding)(int)) : program_(program), rounding_(rounding) {}

    std::vector<Phase> plan() {
        for (int i = 0; i < static_cast<int>(program_.ropes.size()); i++) {
            Op op{OpKind::RopeRows};
            op.index = i;
            add_row_op(op);
        }
        const std::vector<Op>& ops = program_.ops;
        const size_t tail = first_of_tail();
        for (size_t i = 0; i < ops.size(); i++) {
            if (i == tail) keep_outputs();
            add(ops[i]);
        }
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

    // Of operations; past their end without a head.
    size_t first_of_tail() const {
        const std::vector<Op>& ops = program_.ops;
        if (ops.empty() || ops.back().kind != OpKind::Head) return ops.size();
        size_t first = ops.size() - 1;
        while (first > 0 && !knows_positions(ops[first - 1].kind)) first--;
        return first;
    }

    static bool knows_positions(OpKind kind) {
        return kind == OpKind::Embed || kind == OpKind::Rope || kind == OpKind::KvWrite || kind == OpKind::Attention ||
               kind == OpKind::MlaAttention;
    }

    void keep_outputs() {
        part_ = kTail;
        rounded_.clear();
        phase(Phase::Outputs, true);
    }

    Phase& phase(Phase::Kind kind, bool fresh) {
        if (fresh || phases_.empty() || phases_.back().kind != kind || phases_.back().part != part_)
            phases_.push_back(Phase{kind, part_, {}});
        return phases_.back();
    }

    void add_row_op(const Op& op) {
        phase(Phase::Rows, false).ops.push_back(op);
        if (op.kind != OpKind::Quantise && op.out >= 0) changed(op.out);
    }

    void changed(int buffer) {
        for (Rounding rounding : kRoundings) rounded_.erase({buffer, rounding});
    }

    static Op quantise_op(OpKind kind, int src, Rounding rounding) {
        Op op{kind};
        op.src = src;
        op.flag = rounding;
        return op;
    }

    // Beside the rows of the same source that products wait for already, if there are any.
    void add_quantise(const Op& product, Rounding rounding) {
        const Op op = quantise_op(OpKind::Quantise, product.src, rounding);
        const size_t count = phases_.size();
        const bool late = joins(product) && count > 1 && phases_[count - 2].kind == Phase::Rows &&
                          phases_[count - 2].part == part_;
        if (late) phases_[count - 2].ops.push_back(op);
        else add_row_op(op);
    }

    void add_linear(const Op& op) {
        const Rounding rounding = rounding_(program_.tensors[op.weight].type);
        if (rounding && rounded_.insert({op.src, rounding}).second) add_quantise(op, rounding);
        phase(Phase::Linears, !joins(op)).ops.push_back(op);
        changed(op.out);
    }

    bool joins(const Op& op) const {
        if (phases_.empty() || phases_.back().kind != Phase::Linears || phases_.back().part != part_) return false;
        const std::vector<Op>& others = phases_.back().ops;
        return std::none_of(others.begin(), others.end(), [&](const Op& other) {
            return other.out == op.out || other.out == op.src || other.src == op.out;
        });
    }

    void add_attention(const Op& op) {
        phase(Phase::Attend, true).ops.push_back(op);
        phase(Phase::Merge, true).ops.push_back(op);
        changed(op.out);
    }

    void add_mla(const Op& op) {
        for (Phase::Kind kind : {Phase::MlaAbsorb, Phase::Attend, Phase::Merge, Phase::MlaValues, Phase::MlaPrompt})
            phase(kind, true).ops.push_back(op);
        changed(op.out);
    }

    void add_experts(const Op& op) {
        Op sized = op;
        for (int e = 0; e < op.heads; e++) {
            for (int first : {op.weight, op.extra}) {
                const Rounding rounding = rounding_(program_.tensors[first + e].type);
                if (rounding) sized.more[kNeedsInput] |= rounding;
                else sized.more[kNeedsFloats] = 1;
            }
            sized.more[kNeedsHidden] |= rounding_(program_.tensors[op.index + e].type);
        }
        for (Rounding rounding : kRoundings)
            if (sized.more[kNeedsInput] & rounding) add_row_op(quantise_op(OpKind::QuantiseSingles, op.src, rounding));
        for (Phase::Kind kind : {Phase::ExpertGather, Phase::ExpertOpen, Phase::ExpertQuantise, Phase::ExpertClose})
            phase(kind, true).ops.push_back(sized);
        changed(op.out);
    }

    void add_head(const Op& op) {
        part_ = kHead;
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
    }

    const ProgramData& program_;
    Rounding (*rounding_)(int);
    std::vector<Phase> phases_;
    std::set<std::pair<int, Rounding>> rounded_;  // buffers, and how
    Part part_ = kBody;
};

}  // namespace

std::vector<Phase> plan_phases(const ProgramData& program, Rounding (*rounding)(int ggml_type)) {
    return Planner(program, rounding).plan();
}

}  // namespace pk
