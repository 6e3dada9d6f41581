#include "run_state.h"

namespace pk {

RunState::RunState(const ProgramData& program) : buffers_(program.widths.size() + 2), rope_tables_(program.ropes.size()) {
    for (size_t i = 0; i < program.widths.size(); i++) buffers_[i].stride = padded(program.widths[i]);
    buffers_[hidden_buffer(program)].stride = program.channels;
    buffers_[logits_buffer(program)].stride = program.vocabulary;
}

void RunState::reserve(const ProgramData& program, int rows) {
    if (rows <= reserved_rows_) return;
    for (size_t i = 0; i < program.widths.size(); i++)
        buffers_[i].memory.reserve(buffers_[i].stride * rows * sizeof(float));
    for (size_t i = 0; i < program.ropes.size(); i++)
        rope_tables_[i].reserve(static_cast<size_t>(rows) * program.ropes[i].dims * sizeof(float));
    reserved_rows_ = rows;
}

}  // namespace pk
