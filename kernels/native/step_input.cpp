#include "step_input.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

#include "types.h"

namespace nb = nanobind;

namespace pk {
namespace {

constexpr uint8_t kGenerated = 1;  // a role, see program.h

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

const char* type_name(ArrayView::Item item) {
    switch (item) {
        case ArrayView::kFloat: return "float32";
        case ArrayView::kInt: return "int32";
        case ArrayView::kByte: return "uint8";
        default: return "uint64";
    }
}

// Letters of the buffer protocol; those of C's long differ between systems.
bool is_item(const Py_buffer& buffer, ArrayView::Item item) {
    const char* format = buffer.format ? buffer.format : "B";
    if (format[0] == '\0' || format[1] != '\0') return false;
    switch (item) {
        case ArrayView::kFloat: return format[0] == 'f';
        case ArrayView::kInt: return std::strchr("il", format[0]) && buffer.itemsize == 4;
        case ArrayView::kByte: return format[0] == 'B';
        default: return std::strchr("LQ", format[0]) && buffer.itemsize == 8;
    }
}

template <class Lengths>
std::string shape_text(const Lengths& lengths, size_t count) {
    std::string text = "(";
    for (size_t i = 0; i < count; i++) {
        const Py_ssize_t length = lengths[i];
        text += (i ? ", " : "") + (length < 0 ? std::string("None") : std::to_string(length));
    }
    return text + (count == 1 ? ",)" : ")");
}

bool fits(const Py_buffer& buffer, std::initializer_list<Py_ssize_t> shape) {
    if (static_cast<size_t>(buffer.ndim) != shape.size()) return false;
    return std::equal(shape.begin(), shape.end(), buffer.shape,
                      [](Py_ssize_t wanted, Py_ssize_t found) { return wanted < 0 || wanted == found; });
}

// Of an embedding: rows that every token id must have. -1: the program has none.
int token_rows(const ProgramData& program) {
    int rows = -1;
    for (const Op& op : program.ops)
        if (op.kind == OpKind::Embed) {
            const int own = program.tensors[op.weight].rows;
            rows = rows < 0 ? own : std::min(rows, own);
        }
    return rows;
}

void check_rows(const BatchView& batch) {
    const int32_t* borders = batch.seq_rows;
    const int count = batch.sequences + 1;
    if (borders[0] == 0 && borders[count - 1] == batch.rows && std::is_sorted(borders, borders + count)) return;
    std::string text;
    for (int i = 0; i < count; i++) text += (i ? ", " : "") + std::to_string(borders[i]);
    refuse("seq_rows [" + text + "] do not cover " + std::to_string(batch.rows) + " rows in order");
}

bool within(const int32_t* values, int count, int limit) {
    return std::all_of(values, values + count, [limit](int32_t value) { return 0 <= value && value < limit; });
}

void check_ranges(const BatchView& batch, const ProgramData& program) {
    if (std::any_of(batch.seq_start, batch.seq_start + batch.sequences, [](int32_t start) { return start < 0; }))
        refuse("seq_start has a negative position");
    if (!within(batch.out_rows, batch.outputs, batch.rows))
        refuse("out_rows must lie in 0.." + std::to_string(batch.rows - 1));
    const int limit = token_rows(program);
    if (limit >= 0 && !within(batch.tokens, batch.rows, limit))
        refuse("token ids must lie in 0.." + std::to_string(limit - 1));
}

// Of sequence `s`, for so many rows of it.
int64_t pages_needed(const BatchView& batch, int s, int page_tokens, int64_t rows) {
    return (batch.seq_start[s] + rows + page_tokens - 1) / page_tokens;
}

void check_pages(const BatchView& batch, int s, int64_t needed) {
    if (needed > batch.max_pages)
        refuse(std::to_string(needed) + " pages are needed, the block table has " + std::to_string(batch.max_pages));
    const uint64_t* used = batch.pages + static_cast<size_t>(s) * batch.max_pages;
    const auto wrong = [](uint64_t address) { return address == 0 || address % 64 != 0; };
    if (std::any_of(used, used + needed, wrong))
        refuse("sequence " + std::to_string(s) + ": a page address is missing or not 64-byte aligned");
}

// Any number beyond 32 bits is -1, which no check lets through.
int32_t small(nb::handle number) {
    const long long value = PyLong_AsLongLong(number.ptr());
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return value < 0 || value > INT32_MAX ? -1 : static_cast<int32_t>(value);
}

template <class T>
size_t append(nb::handle numbers, std::vector<T>& to) {
    const nb::object fast = nb::steal(PySequence_Fast(numbers.ptr(), "a run holds sequences of numbers"));
    if (!fast.is_valid()) throw nb::python_error();
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.ptr());
    PyObject** items = PySequence_Fast_ITEMS(fast.ptr());
    for (Py_ssize_t i = 0; i < count; i++) to.push_back(static_cast<T>(small(items[i])));
    return static_cast<size_t>(count);
}

}  // namespace

ArrayView::ArrayView(nb::handle array, const char* name, Item item, std::initializer_list<Py_ssize_t> shape) {
    if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        refuse(std::string(name) + " must be a " + type_name(item) + " array");
    }
    std::string wrong;
    if (!is_item(buffer_, item)) wrong = std::string(" must be a ") + type_name(item) + " array";
    else if (!fits(buffer_, shape))
        wrong = " has shape " + shape_text(buffer_.shape, buffer_.ndim) + ", expected " + shape_text(shape.begin(), shape.size());
    else if (!PyBuffer_IsContiguous(&buffer_, 'C')) wrong = " must be contiguous";
    if (wrong.empty()) return;
    PyBuffer_Release(&buffer_);
    refuse(name + wrong);
}

void StepArrays::fill(nb::sequence runs) {
    tokens_.clear(), roles_.clear(), seq_start_.clear(), seq_write_.clear(), out_rows_.clear();
    seq_rows_.assign(1, 0);
    const size_t count = nb::len(runs);
    tables_.resize(count);
    size_t number = 0;
    for (nb::handle run : runs) {
        if (!PyTuple_Check(run.ptr()) || PyTuple_GET_SIZE(run.ptr()) != 6) refuse("a run is a tuple of six");
        PyObject** parts = &PyTuple_GET_ITEM(run.ptr(), 0);
        const size_t rows = append(parts[0], tokens_), roles = append(parts[1], roles_);
        if (roles != rows) refuse("a run of " + std::to_string(rows) + " ids has " + std::to_string(roles) + " roles");
        const int end = static_cast<int>(tokens_.size()), outputs = small(parts[5]);
        if (outputs < 0 || outputs > static_cast<int>(rows)) refuse("out_rows must lie in the run");
        for (int row = end - outputs; row < end; row++) out_rows_.push_back(row);
        seq_rows_.push_back(end);
        seq_start_.push_back(small(parts[2]));
        seq_write_.push_back(PyObject_IsTrue(parts[4]) == 1);
        const ArrayView table(parts[3], "pages", ArrayView::kWord, {-1});
        tables_[number++].assign(table.data<uint64_t>(), table.data<uint64_t>() + table.length(0));
    }
    lay_tables();
}

void StepArrays::follow(size_t s, int fed, int32_t token, const std::vector<int32_t>& draft) {
    if (s == 0) tokens_.clear();
    tokens_.push_back(token);
    tokens_.insert(tokens_.end(), draft.begin(), draft.end());
    seq_start_[s] += fed;
    seq_rows_[s + 1] = static_cast<int>(tokens_.size());
    roles_.assign(tokens_.size(), kGenerated);
    out_rows_.resize(tokens_.size());
    std::iota(out_rows_.begin(), out_rows_.end(), 0);
}

void StepArrays::place(nb::sequence tables) {
    if (nb::len(tables) != tables_.size()) refuse("another number of sequences than the step has");
    size_t number = 0;
    for (nb::handle given : tables) {
        const ArrayView table(given, "pages", ArrayView::kWord, {static_cast<Py_ssize_t>(tables_[number].size())});
        tables_[number++].assign(table.data<uint64_t>(), table.data<uint64_t>() + table.length(0));
    }
    lay_tables();
}

void StepArrays::lay_tables() {
    max_pages_ = 0;
    for (const auto& table : tables_) max_pages_ = std::max(max_pages_, static_cast<int>(table.size()));
    pages_.assign(tables_.size() * max_pages_, 0);
    for (size_t s = 0; s < tables_.size(); s++) std::copy(tables_[s].begin(), tables_[s].end(), &pages_[s * max_pages_]);
}

void StepArrays::show(BatchView& batch) const {
    batch.tokens = tokens_.data();
    batch.roles = roles_.data();
    batch.rows = static_cast<int>(tokens_.size());
    batch.seq_rows = seq_rows_.data();
    batch.seq_start = seq_start_.data();
    batch.sequences = static_cast<int>(seq_start_.size());
    batch.pages = pages_.data();
    batch.max_pages = max_pages_;
    batch.seq_write = seq_write_.data();
    batch.out_rows = out_rows_.data();
    batch.outputs = static_cast<int>(out_rows_.size());
}

void check_batch(const BatchView& batch, const ProgramData& program) {
    if (batch.rows == 0) refuse("the batch has no rows");
    check_rows(batch);
    check_ranges(batch, program);
    for (int s = 0; s < batch.sequences; s++) check_room(batch, program, s, batch.seq_rows[s + 1] - batch.seq_rows[s]);
}

void check_room(const BatchView& batch, const ProgramData& program, int s, int64_t rows) {
    if (!program.kv_layers.empty()) check_pages(batch, s, pages_needed(batch, s, program.page_tokens, rows));
}

}  // namespace pk
