// What a thread asks for in advance while it waits for others: the start of its share of the next matrices.
#include <algorithm>

#include "executor.h"

namespace pk {

void Executor::add_ahead(const TensorView& weight, int strip, size_t most, Ahead& ahead) const {
    if (ahead.count == kMostAhead) return;
    const size_t skipped = static_cast<size_t>(strip) * kStripRows * weight.row_bytes;
    const size_t left = weight.rows * weight.row_bytes - skipped, bytes = std::min(left, most);
    ahead.bytes = ahead.count ? std::min(ahead.bytes, bytes) : bytes;
    ahead.parts[ahead.count++] = weight.data + skipped;
}

// Where the thread's share of the next matrices begins, if they will be read for few tokens.
Executor::Ahead Executor::ahead_of(int at, int thread) const {
    constexpr int kNear = 5;
    Ahead ahead;
    const int end = std::min(at + 1 + kNear, static_cast<int>(active_.size()));
    for (int next = at + 1; next < end && batch_.rows <= kGroupTokens; next++) {
        const Phase& phase = *active_[next].phase;
        if (phase.kind == Phase::Linears) {
            int first = shares_.share(active_[next].units, thread).first, op = 0;
            while (first >= strips(phase.ops[op])) first -= strips(phase.ops[op++]);
            add_ahead(program_.tensors[phase.ops[op].weight], first, kWarmBytes, ahead);
            break;
        }
        if (phase.kind == Phase::ExpertClose && active_[at].phase->kind == Phase::ExpertOpen) {
            for (const ExpertRun& run : pairs_.runs) {
                const TensorView& weight = program_.tensors[phase.ops[0].index + run.expert];
                const int units = (weight.rows + kStripRows - 1) / kStripRows;
                add_ahead(weight, shares_.share(units, thread).first, 3 * kStripRows * weight.row_bytes, ahead);
            }
            break;
        }
        if (phase.kind == Phase::ExpertOpen) break;
    }
    return ahead;
}

// Into L2.
void Executor::Ahead::fetch() {
    for (int line = 0; line < 8 && done < bytes; line++, done += 64)
        for (int i = 0; i < count; i++) __builtin_prefetch(parts[i] + done, 0, 2);
}

}  // namespace pk
