// Row-wise operations of the executor: look up what a row needs, then call the kernel.
#include <algorithm>
#include <cmath>

#include "executor.h"

namespace pk {

static const float* floats(const TensorView& tensor) { return reinterpret_cast<const float*>(tensor.data); }

void Executor::rope_rows(const Op& op, int row) {
    const RopeTable& rope = program_.ropes[op.index];
    const int half = rope.dims / 2;
    float* cosines = reinterpret_cast<float*>(rope_tables_[op.index].data()) + static_cast<size_t>(row) * rope.dims;
    for (int i = 0; i < half; i++) {
        const double angle = row_position_[row] * rope.inv_freq[i];
        cosines[i] = static_cast<float>(std::cos(angle) * rope.magnitude);
        cosines[half + i] = static_cast<float>(std::sin(angle) * rope.magnitude);
    }
}

void Executor::write_kv(const Op& op, int row) {
    const int sequence = row_sequence_[row], position = row_position_[row];
    if (!batch_.seq_write[sequence]) return;
    const uint64_t* pages = batch_.pages + static_cast<size_t>(sequence) * batch_.max_pages;
    uint8_t* page = reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(pages[position / program_.page_tokens]));
    const KvLayer& layer = program_.kv_layers[op.index];
    kernels_->store_kv(buffers_[op.src].row(row), layer.k, page, position % program_.page_tokens);
    if (op.extra < 0) return;
    kernels_->store_kv(buffers_[op.extra].row(row), layer.v, page, position % program_.page_tokens);
}

// What the head needs, and what comes before it from the last attention on, is computed for the out_rows alone.
void Executor::keep_outputs() {
    const int* rows = batch_.out_rows;
    const int count = batch_.outputs;
    bool moves = false;
    for (int i = 0; i < count; i++) moves = moves || rows[i] != i;
    std::vector<float> kept;
    for (size_t b = 0; moves && b < program_.widths.size(); b++) {
        const Buffer& buffer = buffers_[b];
        kept.resize(buffer.stride * count);
        for (int i = 0; i < count; i++) std::copy_n(buffer.row(rows[i]), buffer.stride, kept.data() + i * buffer.stride);
        std::copy(kept.begin(), kept.end(), buffer.data());
    }
    batch_.rows = count;
}

void Executor::run_row_op(const Op& op, int row) {
    const KernelTable& k = *kernels_;
    switch (op.kind) {
        case OpKind::RopeRows: rope_rows(op, row); break;
        case OpKind::Embed:
            k.embed_row(program_.tensors[op.weight], batch_.tokens[row], op.scale, buffers_[op.out].row(row));
            break;
        case OpKind::RmsNorm:
            k.rms_norm(buffers_[op.src].row(row), floats(program_.tensors[op.weight]), program_.widths[op.src],
                       op.value, buffers_[op.out].row(row));
            break;
        case OpKind::OutNorm:
            if (head_only_) break;
            k.rms_norm(buffers_[op.src].row(row), floats(program_.tensors[op.weight]),
                       program_.channels, op.value, buffers_[op.out].row(row));
            break;
        case OpKind::HeadNorm:
            for (int h = 0; h < op.heads; h++) {
                float* x = buffers_[op.out].row(row) + static_cast<size_t>(h) * op.head_dim;
                k.rms_norm(x, floats(program_.tensors[op.weight]), op.flag, op.value, x);
            }
            break;
        case OpKind::Rope: {
            const RopeTable& rope = program_.ropes[op.index];
            const float* cosines =
                reinterpret_cast<float*>(rope_tables_[op.index].data()) + static_cast<size_t>(row) * rope.dims;
            k.rope(buffers_[op.out].row(row) + op.flag, op.heads, op.head_dim, rope.dims, rope.kind, cosines,
                   cosines + rope.dims / 2);
            break;
        }
        case OpKind::KvWrite: write_kv(op, row); break;
        case OpKind::Gated:
            k.gated(buffers_[op.src].row(row), buffers_[op.extra].row(row), buffers_[op.out].row(row),
                    program_.widths[op.out], op.flag);
            break;
        case OpKind::Add:
            k.add_scaled(buffers_[op.out].row(row), buffers_[op.src].row(row), op.scale, program_.widths[op.out]);
            break;
        case OpKind::SigmoidGate:
            k.sigmoid_gate(buffers_[op.out].row(row), program_.widths[op.out], buffers_[op.src].row(row),
                           floats(program_.tensors[op.weight]), program_.widths[op.src]);
            break;
        case OpKind::Route: {
            const float* bias = op.extra < 0 ? nullptr : floats(program_.tensors[op.extra]);
            k.route(RouteArgs{op.heads, op.head_dim, op.flag, op.more[0], op.more[1], op.more[2] != 0, op.scale, bias},
                    buffers_[op.src].row(row), buffers_[op.out].row(row));
            break;
        }
        case OpKind::Softcap: k.softcap(buffers_[op.out].row(row), program_.vocabulary, op.cap); break;
        default: break;
    }
}

}  // namespace pk
