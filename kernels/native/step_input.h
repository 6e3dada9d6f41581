// What a step computes, from Python objects and checked: everything that kernels rely on. Errors name the field.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "program.h"

namespace pk {

// A C-contiguous numpy array for as long as this lives. std::invalid_argument: another type or shape.
class ArrayView {
public:
    enum Item : char { kFloat = 'f', kInt = 'i', kByte = 'B', kWord = 'L' };  // float32, int32, uint8, uint64

    // `shape`: -1 where any length will do.
    ArrayView(nanobind::handle array, const char* name, Item item, std::initializer_list<Py_ssize_t> shape);
    ~ArrayView() { PyBuffer_Release(&buffer_); }
    ArrayView(const ArrayView&) = delete;
    ArrayView& operator=(const ArrayView&) = delete;

    template <class T>
    T* data() const {
        return static_cast<T*>(buffer_.buf);
    }
    int length(int axis) const { return static_cast<int>(buffer_.shape[axis]); }

private:
    Py_buffer buffer_;
};

// Arrays of a step that come as runs of tokens; their memory is used again by the next step.
class StepArrays {
public:
    // `runs`: tuples (ids, roles, position of the first, block table, write, outputs), see NativeProgram.step_runs.
    void fill(nanobind::sequence runs);
    // Pages of the same sequences, which may have moved. `tables`: a block table per sequence.
    void place(nanobind::sequence tables);
    void show(BatchView& batch) const;
    // Generated tokens of sequence `s`, all wanted: the next behind the `fed` that count of its step before, and a draft.
    // In order for all sequences; then they are to be shown again.
    void follow(size_t s, int fed, int32_t token, const std::vector<int32_t>& draft);
    // Tokens of sequence `s` behind its first.
    std::vector<int32_t> draft(size_t s) const {
        return std::vector<int32_t>(tokens_.begin() + seq_rows_[s] + 1, tokens_.begin() + seq_rows_[s + 1]);
    }

private:
    void lay_tables();

    std::vector<int32_t> tokens_, seq_rows_, seq_start_, out_rows_;
    std::vector<uint8_t> roles_, seq_write_;
    std::vector<uint64_t> pages_;  // [sequences, max_pages_]
    std::vector<std::vector<uint64_t>> tables_;
    int max_pages_ = 0;
};

// Rows in order, positions, token ids and pages. std::invalid_argument names what is wrong.
void check_batch(const BatchView& batch, const ProgramData& program);
// Pages for so many rows of sequence `s`. std::invalid_argument: there are fewer.
void check_room(const BatchView& batch, const ProgramData& program, int s, int64_t rows);

}  // namespace pk
